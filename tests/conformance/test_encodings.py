"""Compact encodings (write.parquet.encodings), read by DuckDB and PyIceberg; test_encodings_engines has the others."""
from __future__ import annotations

from pathlib import Path

import pytest

from connect import duckdb, pyiceberg
from encoding_values import COLUMNS, DELTA, DICTIONARY, FLOATS, SPLIT, TABLE, check, files, make, page_encodings
from server import Server


@pytest.fixture(scope="module")
def filled(server: Server) -> Server:
    make(server)
    return server


def test_one_column_has_a_dictionary_and_does_without(filled: Server) -> None:
    path, = files(filled)
    found = {name: list(page_encodings(path, name)) for name in COLUMNS}
    for name, groups in found.items():
        compact = SPLIT if name in FLOATS else DELTA
        if name == "nothing":
            assert all(group <= {"PLAIN", DICTIONARY} for group in groups), found
        elif name.startswith("mixed"):
            assert groups[0] == {"PLAIN", DICTIONARY} and groups[-1] == {compact}, found
        else:
            assert groups[0] == groups[-1] == {compact}, found


def test_duckdb_reads_them(filled: Server, tmp_path: Path) -> None:
    lake = duckdb(filled, tmp_path)
    lake.execute("SET TimeZone = 'UTC'")
    table = f"{filled.dev['warehouse']}.{TABLE}"
    check(lake.execute(f"SELECT * FROM {table}").to_arrow_table())
    assert lake.execute(f"SELECT sum(n) FROM {table} WHERE n BETWEEN 6990 AND 7010").fetchone() == (sum(range(6990, 7011)),)


def test_pyiceberg_reads_them(filled: Server) -> None:
    check(pyiceberg(filled).load_table(TABLE).scan().to_arrow())
