"""Every type, in every shape, in both format versions: what was sent is what PyIceberg and DuckDB read.

What they cannot read stands in LIMITS with what was seen, and is looked at, too: a reader that learns it fails the
test, and the limit goes.
"""
from __future__ import annotations

from typing import Any, Iterator

import duckdb
import pyiceberg
import pytest

from arrow_values import table_values
from server import Server, duckdb_attached, pyiceberg_catalog
from type_matrix import Limit, Section, fill, page_shows, pair_name, pairs, sent_text
from type_values import Case, Value

PYICEBERG = Section(f"PyIceberg {pyiceberg.__version__}", "PyIceberg 0.12", {})
DUCKDB = Section(f"DuckDB {duckdb.__version__}", "DuckDB 1.5", {
    "timestamptz_ns": Limit("Unrecognized primitive type: timestamptz_ns",
                            "its Iceberg extension refuses the table: `Unrecognized primitive type: timestamptz_ns`"),
    "unknown": Limit("Unrecognized primitive type: unknown",
                     "its Iceberg extension refuses the table: `Unrecognized primitive type: unknown`"),
})


@pytest.fixture(scope="module")
def warned(server: Server) -> dict[str, list[str]]:
    return fill(server)


@pytest.fixture(scope="module")
def catalog(server: Server) -> Any:
    return pyiceberg_catalog(server)


@pytest.fixture(scope="module")
def lake(server: Server, warned: dict[str, list[str]]) -> Iterator[Any]:
    connection = duckdb_attached(server)
    connection.execute(f"USE {server.dev['warehouse']}.types")
    yield connection
    connection.close()


@pytest.mark.parametrize("pair", pairs(), ids=pair_name)
def test_pyiceberg_reads_what_was_sent(catalog: Any, warned: dict[str, list[str]], pair: tuple[int, Case]) -> None:
    version, case = pair

    def read(table: str, columns: list[str]) -> dict[str, list[Value]]:
        scan = catalog.load_table(table).scan(selected_fields=tuple(columns))
        return table_values(scan.to_arrow().sort_by("n"), case.kind)

    PYICEBERG.judge(version, case, read, warned)


@pytest.mark.parametrize("pair", pairs(), ids=pair_name)
def test_duckdb_reads_what_was_sent(lake: Any, warned: dict[str, list[str]], pair: tuple[int, Case]) -> None:
    version, case = pair

    def read(table: str, columns: list[str]) -> dict[str, list[Value]]:
        named = ", ".join(f'"{name}"' for name in columns)
        found = lake.execute(f"SELECT {named} FROM {table.removeprefix('types.')} ORDER BY n")
        return table_values(found.to_arrow_table(), case.kind)

    DUCKDB.judge(version, case, read, warned)


def test_the_page_shows_what_was_seen() -> None:
    page_shows("sent", sent_text())
    page_shows("PyIceberg", PYICEBERG.text())
    page_shows("DuckDB", DUCKDB.text())
