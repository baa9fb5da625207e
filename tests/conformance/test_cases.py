"""The list of cases in README.md is whole and true."""
from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CASES = 54


def rows() -> dict[int, str]:
    text = (Path(__file__).parent / "README.md").read_text()
    return {int(number): cell for number, cell in re.findall(r"^\| R(\d+) \|[^|]*\| (.*) \|$", text, re.M)}


def test_each_case_has_a_test_or_a_reason() -> None:
    assert sorted(rows()) == list(range(1, CASES + 1))
    for number, cell in rows().items():
        assert "`" in cell or cell.startswith("none: "), number


def test_each_test_that_is_named_exists() -> None:
    places = [*ROOT.glob("tests/e2e/*.py"), *ROOT.glob("tests/conformance/**/*.py"), *ROOT.glob("tests/unit/**/*.c")]
    named = {name for path in places for name in re.findall(r"(?:def|static void) (\w+)\(", path.read_text())}
    wanted = {name for cell in rows().values() for name in re.findall(r"`(\w+)`", cell)}
    assert wanted and wanted <= named, wanted - named
