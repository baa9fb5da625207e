"""The black-box cases of tests/cases: one run of all of them, one test for each."""
from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures import installation_faults
from server import LHBOX, ROOT

CASES = ROOT / "tests" / "cases"
NAMES = sorted(path.name.split("-")[0] for path in CASES.glob("C*.json"))


CHECK_SECONDS = 30.0


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the runner keeps the installations of the cases."""
    return tmp_path_factory.mktemp("cases")


@pytest.fixture(scope="module")
def outcomes(homes: Path) -> dict[str, str]:
    """What the runner said about each case: the line that begins with its outcome, and what follows."""
    slow = ["--slow"] if os.environ.get("LHBOX_TEST_TIER") == "all" else []
    # Sinks with keys are not in this version.
    run = subprocess.run([sys.executable, str(CASES / "run.py"), "--lhbox", LHBOX, "--jobs", "2", "--no-keys", "--keep",
                          *slow, str(CASES)], capture_output=True, text=True, timeout=1800,
                         env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(homes)})
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


def test_the_tables_of_the_cases_are_sound(outcomes: dict[str, str], homes: Path) -> None:
    installations = sorted(homes.glob("*/data/lhbox.db"))
    assert installations
    faults = [fault for ledger in installations for fault in installation_faults(ledger.parent, CHECK_SECONDS)]
    assert not faults, "\n".join(faults[:20])
