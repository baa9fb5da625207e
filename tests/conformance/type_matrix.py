"""The type matrix: a table for each type and format version, filled through the send route, and what readers find in
them. docs/types.md is made of the results; LHBOX_WRITE_DOCS=1 writes it, else it is compared.

Each case has a table of its own, since a reader that does not know a type refuses the whole table.
"""
from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Callable

from server import ROOT, Server
from type_values import CASES, SHAPES, Case, Value, body, columns, rows

PAGE = ROOT / "docs" / "types.md"
VERSIONS = (2, 3)
# A reader is asked for some columns of a table, ordered by n, and answers their values.
Reader = Callable[[str, list[str]], dict[str, list[Value]]]


def pairs() -> list[tuple[int, Case]]:
    return [(version, case) for version in VERSIONS for case in CASES if version in case.versions]


def pair_name(pair: tuple[int, Case]) -> str:
    return f"v{pair[0]}-{pair[1].type}"


def table_name(version: int, case: Case) -> str:
    word = "".join(c if c.isalnum() else "_" for c in case.type).strip("_")
    return f"types.v{version}_{word}"


def fill(server: Server) -> dict[str, list[str]]:
    """Every table of the matrix, its rows accepted, rolled and in the books; with what the sink warned of."""
    warned = {}
    for version, case in pairs():
        name = table_name(version, case)
        server.make_table(name, columns(case), format_version=version)
        sink = server.make_sink(name, name.replace(".", "_"))
        answer = server.send(sink, "all", body(case))
        assert answer.status == 202, (case.type, answer)
        server.roll(sink)
        assert server.books(sink)["committed"] == len(rows(case)), (case.type, server.books(sink))
        warned[name] = sink["warnings"]
    return warned


# ---- judging --------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Limit:
    """What a reader cannot do with a type: a text of its error, and where it is known or what was seen."""

    error: str
    seen: str


@dataclass
class Section:
    """One reader's part of the page."""

    title: str
    engine: str  # as warnings of a sink name it
    limits: dict[str, Limit]
    shapes: tuple[str, ...] = tuple(SHAPES)
    cells: dict[tuple[int, str, str], str] = field(default_factory=dict)
    compared: int = 0

    def judge(self, version: int, case: Case, read: Reader, warned: dict[str, list[str]]) -> None:
        """Reads the case's table, and compares every value; a limit must be met exactly as it is written, and the sink
        must have warned of it."""
        asked = self.columns_of(case)
        there = [shape for shape in self.shapes if SHAPES[shape][0] in asked]
        limit = self.limits.get(case.kind)
        refused = [text for text in warned[table_name(version, case)] if "cannot open" in text and self.engine in text]
        assert bool(refused) == (limit is not None), refused
        if limit is not None:
            error = error_of(read, table_name(version, case), asked)
            assert limit.error in error, f"not the limit that was seen: {error}"
            self.cells |= {(version, case.type, shape): "no" for shape in there}
            return
        wrong = differences(case, asked, read(table_name(version, case), ["n", *asked]))
        assert not wrong, "\n".join(wrong)
        self.cells |= {(version, case.type, shape): "=" for shape in there}
        self.compared += len(asked) * len(rows(case))

    def columns_of(self, case: Case) -> list[str]:
        return [name for shape in self.shapes for name in SHAPES[shape] if name in columns(case)]

    def text(self) -> str:
        """The section as the page has it."""
        judged = {(version, type_) for version, type_, _ in self.cells}
        assert judged == {(version, case.type) for version, case in pairs()}, "not all cases were judged"
        heads = [f"v{version} {shape}" for version in VERSIONS for shape in self.shapes]
        lines = [f"## {self.title}", "", "| type | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
        for case in CASES:
            cells = [self.cells.get((version, case.type, shape), "") for version in VERSIONS for shape in self.shapes]
            lines.append(f"| {case.type} | " + " | ".join(cells) + " |")
        lines += ["", f"{self.compared:,} values compared, 0 differ.", ""]
        lines += [f"- **{kind}**: {limit.seen}." for kind, limit in self.limits.items()]
        return "\n".join(lines).rstrip() + "\n"


def error_of(read: Reader, table: str, asked: list[str]) -> str:
    try:
        read(table, ["n", *asked])
    except Exception as error:  # noqa: BLE001: whatever the reader says is what is compared
        return f"{type(error).__name__}: {error}"
    return "no error at all"


def differences(case: Case, asked: list[str], got: dict[str, list[Value]]) -> list[str]:
    wanted = rows(case)
    if got["n"] != list(range(len(wanted))):
        return [f"rows {got['n']} in place of {len(wanted)}"]
    return [f"{name}, row {row.shows!r}: {row.values[name]!r} was sent, {got[name][n]!r} was read"
            for name in asked for n, row in enumerate(wanted) if got[name][n] != row.values[name]]


# ---- the page -------------------------------------------------------------------------------------

def mark(name: str) -> str:
    return f"<!-- {name}: made by tests/conformance -->\n"


def page_shows(name: str, text: str) -> None:
    """Compares the part of docs/types.md between two marks, or writes it there."""
    page = PAGE.read_text("utf-8")
    parts = page.split(mark(name))
    assert len(parts) == 3, f"{PAGE} lacks the two marks of {name}"
    wanted = mark(name).join([parts[0], text, parts[2]])
    if os.environ.get("LHBOX_WRITE_DOCS") == "1":
        PAGE.write_text(wanted, "utf-8")
    assert PAGE.read_text("utf-8") == wanted, f"{name} in {PAGE} is not what was seen (LHBOX_WRITE_DOCS=1 writes it)"


def sent_text() -> str:
    """What was sent, as the page has it."""
    lines = ["| type | minimum | maximum | typical | empty | also |", "|---|---|---|---|---|---|"]
    for case in CASES:
        more = " ".join(cell(json) for json, _ in case.more)
        lines.append(f"| {case.type} | {cell(case.minimum[0])} | {cell(case.maximum[0])} | {cell(case.typical[0])} | "
                     f"{cell(case.empty[0]) if case.empty else ''} | {more} |")
    return "\n".join(lines) + "\n"


def cell(json: str) -> str:
    """JSON text in a table: what does not print is escaped, what is long is cut."""
    shown = "".join(c if c.isprintable() and ord(c) < 0x10000 or c in "😀" else f"\\u{{{ord(c):x}}}" for c in json)
    return f"`{shown if len(shown) <= 48 else shown[:45] + '…'}`"
