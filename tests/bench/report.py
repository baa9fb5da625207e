"""Figures: the bars they are held against, the table, the result file, the page."""
from __future__ import annotations

import json
import statistics
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from machine import FOREIGN_MAX, Load

BEGIN, END = "<!-- figures: made by make bench -->", "<!-- figures: end -->"


@dataclass(frozen=True)
class Bar:
    """What a figure must reach. `least`: the figure must be at least the bar; else at most."""

    id: str
    what: str
    bar: float
    aim: float
    least: bool
    unit: str = "x"

    def reached(self, value: float) -> bool:
        return value >= self.bar if self.least else value <= self.bar


BARS = {bar.id: bar for bar in (
    Bar("T1", "durable 202/s, 1 KiB, best of 64 and 256 connections ÷ nginx, not durable", 0.5, 1.0, True),
    Bar("T2p", "the same ÷ PostgreSQL's inserts", 3, 6, True),
    Bar("T2r", "the same ÷ redis, appendfsync always", 1.0, 2, True),
    Bar("T3", "p50 of a durable answer, 1 connection ÷ a bare O_DSYNC write", 3, 2, False),
    Bar("T4b", "p99 at 20,000/s open loop, rolls running ÷ idle", 4, 2, False),
    Bar("T5", "roll, CPU, iot event wide: DuckDB ÷ ours, files no larger", 2.5, 4, True),
    Bar("T6p", "roll, CPU: Polars ÷ ours", 3, 5, True),
    Bar("T6c", "roll, CPU: chdb ÷ ours", 3, 5, True),
    Bar("T6a", "roll, CPU: pyarrow ÷ ours", 3, 5, True),
    Bar("T7", "roll, wall, 2 threads: DuckDB ÷ ours", 2.5, 5, True),
    Bar("T8", "peak memory of a roll of 60 MiB: ours ÷ DuckDB", 0.8, 0.5, False),
    Bar("T10", "roll, CPU: 10 % rejects ÷ none", 1.15, 1.05, False),
    Bar("T11", "commit ÷ four durable files", 2.5, 1.3, False),
    Bar("T12", "commit at 380 snapshots × 1,000 ids ÷ at 20 × 0", 10, 3, False),
    Bar("C1", "append to the same kind of table: PyIceberg ÷ ours, whole", 10, 50, True),
    Bar("T16", "POST to visible row, roll due, 1 MB waiting", 250, 50, False, "ms"),
)}


@dataclass
class Figure:
    """One measured line. `values` are the ratios of the pairs (or times); none: it could not be measured."""

    id: str
    what: str
    values: list[float]
    ours: str = ""
    peer: str = ""
    note: str = ""
    foreign: float = 0.0
    spoiled: str = ""  # why it does not count although the number is there
    counts: bool = True  # False: the machine cannot show it
    unit: str = "x"
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def bar(self) -> Bar | None:
        return BARS.get(self.id)

    @property
    def median(self) -> float | None:
        return statistics.median(self.values) if self.values else None

    @property
    def held(self) -> bool:
        return bool(self.bar and self.values and not self.spoiled and self.bar.reached(statistics.median(self.values)))

    def verdict(self) -> str:
        if self.bar is None:
            return ""
        if not self.counts:
            return "not counted"
        return "held" if self.held else "missed"

    def label(self) -> str:
        """The id; empty for a part of the figure above it."""
        return "" if " " in self.id else self.id

    def value_text(self) -> str:
        if not self.values:
            return "-"
        if len(self.values) == 1:
            return f"{self.values[0]:.4g} {self.unit}"
        return f"{self.median:.4g} {self.unit} ({min(self.values):.3g} to {max(self.values):.3g})"

    def bar_text(self) -> str:
        if self.bar is None:
            return ""
        return f"{'≥' if self.bar.least else '≤'} {self.bar.bar:g} (aim {self.bar.aim:g})"

    def note_text(self) -> str:
        busy = f"others used {self.foreign:.0%} of the cores" if self.foreign > FOREIGN_MAX else ""
        return "; ".join(" ".join(part.split())[:200] for part in (self.spoiled, self.note, busy) if part)


class Report:
    """Takes figures as they come, and prints each at once."""

    def __init__(self, machine: dict[str, Any], quick: bool) -> None:
        self.machine, self.quick = machine, quick
        self.date = time.strftime("%Y-%m-%d %H:%M")
        self.figures: list[Figure] = []

    def add(self, figure: Figure, load: Load | None = None) -> None:
        if load is not None:
            figure.foreign = load.foreign()
        self.figures.append(figure)
        label = figure.label()
        print(f"  {label:<4} {figure.what:<78} {figure.value_text():<32} {figure.bar_text():<16} {figure.verdict():<7}"
              f" {figure.ours}{' | ' + figure.peer if figure.peer else ''}{' | ' + figure.note_text() if figure.note_text() else ''}",
              flush=True)

    def missing(self, id: str, why: str) -> None:
        self.add(Figure(id, BARS[id].what, [], spoiled=why))

    def counted(self) -> tuple[int, int]:
        barred = [figure for figure in self.figures if figure.bar and figure.counts]
        return sum(figure.held for figure in barred), len(barred)

    def last_line(self) -> str:
        held, count = self.counted()
        return f"BARS: {held} of {count} hold"

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        figures = [asdict(figure) | {"median": figure.median, "held": figure.held if figure.bar else None,
                                     "bar": figure.bar.bar if figure.bar else None} for figure in self.figures]
        held, count = self.counted()
        path.write_text(json.dumps({"date": self.date, "quick": self.quick, "machine": self.machine, "bars_held": held,
                                    "bars": count, "figures": figures}, indent=1, ensure_ascii=False) + "\n")

    def markdown(self) -> str:
        machine = self.machine
        lines = [f"{self.date}, {machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB, Linux {machine['kernel']}"
                 f"{', a quick run' if self.quick else ''}. {self.last_line()}.", "",
                 "| id | figure | median (least to most) | bar | | ours, peer | note |", "|---|---|---|---|---|---|---|"]
        for figure in self.figures:
            sides = "; ".join(part for part in (figure.ours, figure.peer) if part)
            cells = (figure.label(), figure.what.strip(), figure.value_text(), figure.bar_text(), figure.verdict(),
                     sides, figure.note_text())
            lines.append("| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |")
        return "\n".join(lines)


def write_page(page: Path, table: str) -> None:
    """The table between the page's two markers."""
    text = page.read_text()
    before, _, rest = text.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise ValueError(f"{page} has no {BEGIN} … {END}")
    page.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}")
