"""Pieces of work cost no more instructions than they did: a body checked and split, groups accepted by the ledger, a roll
finished there, lines decoded (of good rows, and with rejects), columns encoded.

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
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
RECORD = HERE / "instructions.json"
BUILD = Path(os.environ.get("LHBOX_BUILD", HERE.parents[1] / "build" / "release"))
WORSE_MAX = 1.5
RECORDED: dict[str, int] = json.loads(RECORD.read_text())


def count(command: str) -> int:
    """Instructions inside work(), but those of libcrypto: valgrind's processor has none that hash, a real one does."""
    program, *arguments = command.split()
    with tempfile.NamedTemporaryFile("r") as out:
        run = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out.name}", "--toggle-collect=work",
                              str(BUILD / "tests" / "bench" / program), *arguments], capture_output=True, text=True, timeout=120)
        assert run.returncode == 0, run.stderr
        profile = out.read()
    objects = by_object(profile)
    assert f"summary: {sum(objects.values())}" in profile.splitlines()
    return sum(counted for name, counted in objects.items() if "libcrypto" not in name)


def by_object(profile: str) -> dict[str, int]:
    """Instructions of each program and library, from a file of callgrind's: a line after calls= is of the called."""
    names: dict[str, str] = {}
    counts: dict[str, int] = {}
    where, is_call = "", False
    for line in profile.splitlines():
        if found := re.fullmatch(r"ob=\((\d+)\)(?: (.*))?", line):
            where = names.setdefault(found.group(1), found.group(2) or "")
        elif found := re.fullmatch(r"cob=\((\d+)\) (.*)", line):
            names[found.group(1)] = found.group(2)
        elif line.startswith("calls="):
            is_call = True
        elif found := re.fullmatch(r"(?:[+-]?\d+|\*) (\d+)", line):
            counts[where] = counts.get(where, 0) + (0 if is_call else int(found.group(1)))
            is_call = False
    return counts


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
