"""Schemas that change between rolls: files of both sides are read by field ids, with the defaults of version 3."""
from __future__ import annotations

import pytest

from arrow_values import table_values
from evolution import evolve, found, table_of
from server import Server, duckdb_attached, pyiceberg_catalog


@pytest.fixture(scope="module", params=[2, 3], ids=["v2", "v3"])
def version(request: pytest.FixtureRequest, server: Server) -> int:
    evolve(server, request.param)
    return request.param


def test_pyiceberg_reads_both_sides(server: Server, version: int) -> None:
    scan = pyiceberg_catalog(server).load_table(table_of(version)).scan(selected_fields=tuple(found(version)))
    assert table_values(scan.to_arrow().sort_by("n"), "") == found(version)


def test_duckdb_reads_both_sides(server: Server, version: int) -> None:
    rows = duckdb_attached(server).execute(
        f"SELECT {', '.join(found(version))} FROM {server.dev['warehouse']}.{table_of(version)} ORDER BY n")
    assert table_values(rows.to_arrow_table(), "") == found(version)
