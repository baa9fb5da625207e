"""The black-box cases of tests/cases: one run of all of them, one test for each."""
from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from server import LHBOX, ROOT

CASES = ROOT / "tests" / "cases"
NAMES = sorted(path.name.split("-")[0] for path in CASES.glob("C*.json"))


@pytest.fixture(scope="module")
def outcomes() -> dict[str, str]:
    """What the runner said about each case: the line that begins with its outcome, and what follows."""
    slow = ["--slow"] if os.environ.get("LHBOX_TEST_TIER") == "all" else []
    # Sinks with keys are not in this version.
    run = subprocess.run([sys.executable, str(CASES / "run.py"), "--lhbox", LHBOX, "--jobs", "2", "--no-keys", *slow,
                          str(CASES)], capture_output=True, text=True, timeout=1800,
                         env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    said = {match.group(1): match.group()
            for match in re.finditer(r"^(?:ok|FAIL|skip) +(C\d+) .*\n(?: .*\n)*", run.stdout, re.M)}
    assert said, run.stdout[-2000:] + run.stderr[-2000:]
    return said


@pytest.mark.parametrize("case", NAMES)
def test_case(outcomes: dict[str, str], case: str) -> None:
    said = outcomes.get(case, "the runner said nothing of it")
    if said.startswith("skip"):
        pytest.skip(said.strip())
    assert said.startswith("ok"), said
