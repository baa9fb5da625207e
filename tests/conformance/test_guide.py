"""The list in README.md is true: each case of the Iceberg guide has a test that is named by its number, or a reason."""
from __future__ import annotations

import os
import re
from collections import defaultdict
from pathlib import Path
from typing import Iterator

TESTS = Path(__file__).resolve().parents[1]
PAGE = Path(__file__).parent / "README.md"
CASES = 102
NAME = re.compile(r"iceberg_8_[1-7]((?:_(?:and_|to_)?\d+)+)(?!\d)")
HEAD = "| no. | shown in, or why by none |\n|---|---|\n"


def numbers(text: str) -> Iterator[int]:
    """`…_55_to_59` names five cases, `…_12_and_13` two."""
    for found in NAME.finditer(text):
        last = 0
        for word, number in re.findall(r"_(and_|to_)?(\d+)", found[1]):
            yield from range(last + 1 if word == "to_" else int(number), int(number) + 1)
            last = int(number)


def named() -> dict[int, set[str]]:
    """The test files that name each case."""
    found: dict[int, set[str]] = defaultdict(set)
    for path in [*TESTS.rglob("*.py"), *TESTS.rglob("*.c")]:
        for number in numbers(path.read_text("utf-8")):
            found[number].add(path.relative_to(TESTS).as_posix())
    return found


def row(number: int, files: set[str], why: str) -> str:
    return f"| {number} | " + (", ".join(f"`{file}`" for file in sorted(files)) if files else f"none: {why}") + " |"


def test_every_case_of_the_iceberg_guide_is_listed_with_the_tests_that_name_it() -> None:
    text = PAGE.read_text()
    head, table = text.split(HEAD, 1)
    rows, rest = re.match(r"((?:\|[^\n]*\n)*)(.*)", table, re.S).groups()
    why = dict(re.findall(r"^\| (\d+) \| none: (.+) \|$", rows, re.M))
    found = named()
    wanted = "".join(row(number, found[number], why.get(str(number), "")) + "\n" for number in range(1, CASES + 1))
    if os.environ.get("LHBOX_WRITE_DOCS"):
        PAGE.write_text(head + HEAD + wanted + rest)
    assert "none:  |" not in wanted
    assert rows == wanted or os.environ.get("LHBOX_WRITE_DOCS")
