"""The list in README.md is true: each case of the Iceberg guide has a test that is named by its number, or a reason."""
from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import Iterator

TESTS = Path(__file__).resolve().parents[1]
CASES = 102
NAME = re.compile(r"iceberg_8_[1-7]((?:_(?:and_|to_)?\d+)+)(?!\d)")
ROW = re.compile(r"\| (\d+) \| (?:none: (?P<why>\S.*)|(?P<files>`.*`)) \|")


def numbers(text: str) -> Iterator[int]:
    """`…_55_to_59` names five cases, `…_12_and_13` two."""
    for found in NAME.finditer(text):
        last = 0
        for word, number in re.findall(r"_(and_|to_)?(\d+)", found[1]):
            yield from range(last + 1 if word == "to_" else int(number), int(number) + 1)
            last = int(number)


def section(title: str) -> list[str]:
    text = (Path(__file__).parent / "README.md").read_text()
    return text.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0].splitlines()


def test_every_case_of_the_iceberg_guide_is_listed_with_the_tests_that_name_it() -> None:
    named: dict[int, set[str]] = defaultdict(set)
    for path in [*TESTS.rglob("*.py"), *TESTS.rglob("*.c")]:
        for number in numbers(path.read_text("utf-8")):
            named[number].add(path.relative_to(TESTS).as_posix())
    rows = [ROW.fullmatch(line) for line in section("The cases of the Iceberg guide") if re.match(r"\| \d", line)]
    assert all(rows)
    listed = {int(row[1]): set(re.findall(r"`([^`]+)`", row["files"] or "")) for row in rows if row}
    assert list(listed) == list(range(1, CASES + 1))
    assert listed == {number: named.get(number, set()) for number in listed}
