"""Three pieces of work cost no more instructions than they did: a body checked and split, lines decoded, columns encoded.

Counted by callgrind, so that the machine's load does not matter. instructions.json holds the counts; after a change that
is meant, or that made one smaller, write them anew:

    build/venv/bin/python tests/bench/test_instructions.py
"""
from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
RECORD = HERE / "instructions.json"
BUILD = Path(os.environ.get("LHBOX_BUILD", HERE.parents[1] / "build" / "release"))
WORSE_MAX = 1.5
RECORDED: dict[str, int] = json.loads(RECORD.read_text())


def count(command: str) -> int:
    """Instructions inside work()."""
    program, *arguments = command.split()
    run = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=work",
                          str(BUILD / "tests" / "bench" / program), *arguments], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    found = re.search(r"Collected : (\d+)", run.stderr)
    assert found is not None, run.stderr
    return int(found.group(1))


@pytest.mark.parametrize("command", RECORDED)
def test_instructions(command: str) -> None:
    counted = count(command)
    assert counted > 0
    assert counted <= RECORDED[command] * WORSE_MAX, f"{counted} instructions, {RECORDED[command]} recorded"


def record() -> int:
    counts = {command: count(command) for command in RECORDED}
    for command, counted in counts.items():
        print(f"{command:<24} {counted:>12} {counted / RECORDED[command]:7.2f} of the recorded")
    RECORD.write_text(json.dumps(counts, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(record())
