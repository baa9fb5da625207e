"""What the parts of a bench share: its directory, its report, and which figures are wanted."""
from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from report import BARS, Report


@dataclass
class Bench:
    directory: Path
    report: Report
    quick: bool = False
    only: list[str] = field(default_factory=list)  # empty: all

    failed: bool = False

    @property
    def pairs(self) -> int:
        return 2 if self.quick else 5

    def wants(self, *ids: str) -> bool:
        """An asked-for T6 is T6p, T6c and T6a; T1 is not T10."""
        return not self.only or any(id == one or id.startswith(one) and not id[len(one)].isdigit() for id in ids for one in self.only)

    def part(self, ids: tuple[str, ...], measure: Callable[[], None]) -> None:
        """Measures what is wanted of these figures. Whatever goes wrong is told, and those of them with a bar are missed."""
        if not self.wants(*ids):
            return
        try:
            measure()
        except Exception as wrong:  # noqa: BLE001
            traceback.print_exc()
            self.failed = True
            told = {figure.id for figure in self.report.figures}
            for id in ids:
                if id in BARS and self.wants(id) and id not in told:
                    self.report.missing(id, f"failed: {type(wrong).__name__}: {wrong}"[:300])
