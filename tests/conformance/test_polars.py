"""Polars reads, through the catalog of `lhbox connect pyiceberg`, tables into which a sink rolls."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import polars
import pytest

import connect
from rolling import rolling
from server import Server

# It plans by PyIceberg, and says that a package of its own would be faster.
pytestmark = pytest.mark.filterwarnings("ignore:Iceberg scan planning")


def scan(catalog: Any, table: str) -> polars.LazyFrame:
    return polars.scan_iceberg(catalog.load_table(f"demo.{table}"))


@pytest.mark.parametrize("version", [2, 3])
def test_reads_while_a_sink_rolls(server: Server, version: int) -> None:
    catalog, table, seen = connect.pyiceberg(server), f"polars_v{version}", 0
    with rolling(server, table, format_version=version) as load:
        for _ in range(3):
            load.rolled()
            before, seen = seen, scan(catalog, table).collect()["id"].n_unique()
            assert seen > before
    found = scan(catalog, table).select("id", "n", "__ingest_ts").collect()
    assert found["id"].n_unique() == found.height and found["__ingest_ts"].null_count() == 0
    few = scan(catalog, table).filter(polars.col("n") > 2).collect()
    assert sorted(few["id"]) == sorted(found.filter(polars.col("n") > 2)["id"])


@pytest.mark.parametrize("version", [2, 3])
def test_reads_what_others_deleted(server: Server, tmp_path: Path, version: int) -> None:
    """Position deletes of version 2, over several data files, and deletion vectors of version 3."""
    catalog, table, lake = connect.pyiceberg(server), f"polars_deleted_v{version}", connect.duckdb(server, tmp_path)
    name = f"{server.dev['warehouse']}.demo.{table}"
    lake.execute(f"CREATE TABLE {name} (id BIGINT, n BIGINT) WITH ('format-version' = '{version}')")
    for start in (0, 10):
        lake.execute(f"INSERT INTO {name} SELECT range, range * 2 FROM range({start}, {start + 10})")
    lake.execute(f"DELETE FROM {name} WHERE id IN (3, 13)")
    lake.execute(f"UPDATE {name} SET n = 0 WHERE id = 5")
    wanted = lake.execute(f"SELECT id, n FROM {name} ORDER BY id").fetchall()
    assert len(wanted) == 18 and scan(catalog, table).collect().sort("id").rows() == wanted
