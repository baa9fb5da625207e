"""The bench tells what it measured: bars, the last line, the page; and its rows are what they are said to be."""
from __future__ import annotations

import json
import os
import struct
import subprocess
from pathlib import Path

import pytest
from columns import fields_of, split_type
from report import BARS, BEGIN, END, Figure, Report, write_page

BUILD = Path(os.environ.get("LHBOX_BUILD", Path(__file__).resolve().parents[2] / "build" / "release")) / "tests" / "bench"
MACHINE = {"cpu": "a processor", "cores": 2, "memory_gib": 8, "kernel": "6"}


def figure(id: str, *values: float, **more: object) -> Figure:
    return Figure(id, BARS[id].what, list(values), **more)  # type: ignore[arg-type]


def test_a_bar_is_held_by_the_median() -> None:
    assert figure("T5", 1.0, 2.5, 9.0).held
    assert not figure("T5", 2.4, 2.4, 9.0).held
    assert figure("T8", 0.1, 0.8, 0.9).held
    assert not figure("T8", 0.1, 0.81, 0.9).held


def test_a_figure_that_is_spoiled_or_missing_holds_no_bar() -> None:
    assert not figure("T5", 9.0, spoiled="our files are larger").held
    assert not figure("T5").held


def test_the_last_line_counts_what_counts(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report(MACHINE, quick=False)
    report.add(figure("T5", 3.0))
    report.add(figure("T3", 9.0, counts=False))
    report.add(Figure("I2", "no bar", [1.0]))
    report.missing("T2r", "redis is not installed")
    assert report.last_line() == "BARS: 1 of 2 hold"
    assert "redis is not installed" in capsys.readouterr().out


def test_load_of_others_is_marked() -> None:
    assert figure("T5", 3.0, foreign=0.2).note_text() == "others used 20% of the cores"
    assert figure("T5", 3.0, foreign=0.04).note_text() == ""


def test_the_page_is_renewed_between_its_markers(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write_page(page, "new")
    assert page.read_text() == f"before\n{BEGIN}\nnew\n{END}\nafter\n"
    page.write_text("no markers\n")
    with pytest.raises(ValueError):
        write_page(page, "new")


def test_types_are_taken_apart() -> None:
    assert split_type("struct<a: long, b: list<decimal(3,1)>> required") == ("struct", "a: long, b: list<decimal(3,1)>")
    assert fields_of("a: long, b: decimal(3,1), c: list<string>") == [("a", "long"), ("b", "decimal(3,1)"), ("c", "list<string>")]
    assert split_type("long") == ("long", "")


def test_percentiles_are_of_the_requests_due_in_the_time(tmp_path: Path) -> None:
    from intake import p99_between
    log = tmp_path / "log"
    log.write_bytes(b"".join(struct.pack("=qq", due, due + due) for due in range(1000)))
    assert p99_between(log, 0, 100) == (98.0, 100)
    assert p99_between(log, 5000, 6000) == (0.0, 0)


def rows_of(*arguments: str) -> list[dict[str, object]]:
    run = subprocess.run([BUILD / "generate", *arguments], capture_output=True, check=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


def test_hostile_rows_are_those_of_the_plain_set() -> None:
    names = [line.split(":")[0] for line in subprocess.run([BUILD / "generate", "hostile", "--columns"], capture_output=True, check=True,
                                                           text=True).stdout.splitlines()]
    plain, hostile = rows_of("hostile", "500", "--plain"), rows_of("hostile", "500")
    assert [{name: row.get(name) for name in names} for row in hostile] == plain
    assert {tuple(row) for row in plain} == {tuple(names)}
    assert len({tuple(row) for row in hostile}) > 400


def test_arrays_hold_the_same_rows_as_lines() -> None:
    arrays = rows_of("event", "300", "20000", "--bad=10")
    assert [row for array in arrays for row in array] == rows_of("event", "300", "--bad=10")


def test_plain_leaves_the_bad_rows_out() -> None:
    run = subprocess.run([BUILD / "generate", "event", "300", "--bad=10"], capture_output=True, check=True, text=True)
    bad = int(run.stderr.split("bad=")[1])
    assert 0 < bad < 100
    assert len(rows_of("event", "300", "--bad=10", "--plain")) == 300 - bad
