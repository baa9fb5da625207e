"""ClickHouse (chdb) reads through the REST catalog tables into which a sink rolls, and from their folders.

The tables' files must be below its `user_files_path`; in chdb that is the working directory."""
from __future__ import annotations

from pathlib import Path
from typing import Any, Iterator

import chdb
import pytest

import connect
from rolling import FOREIGN, rolling
from server import Server


@pytest.fixture
def lake(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.chdir(server.data / "warehouse")
    connection = chdb.connect(":memory:")
    connection.query("SET allow_database_iceberg = 1")
    connection.query(f"CREATE DATABASE lake ENGINE = DataLakeCatalog('{server.dev['url']}/iceberg') SETTINGS "
                     f"catalog_type = 'rest', warehouse = '{server.dev['warehouse']}', vended_credentials = false, "
                     f"auth_header = 'Authorization: Bearer {server.dev['api_key']}'")
    yield connection
    connection.close()


def number(lake: Any, query: str) -> int:
    return int(str(lake.query(query, "TSV")))


def test_tables_are_listed(server: Server, lake: Any) -> None:
    assert "demo.events" in str(lake.query("SHOW TABLES FROM lake", "TSV")).split()


@pytest.mark.parametrize("version", [2, 3])
def test_reads_while_a_sink_rolls(server: Server, lake: Any, version: int) -> None:
    table, seen = f"click_v{version}", 0
    with rolling(server, table, format_version=version) as load:
        for _ in range(3):
            load.rolled()
            before, seen = seen, number(lake, f"SELECT count(DISTINCT id) FROM lake.`demo.{table}`")
            assert seen > before
    wanted = connect.pyiceberg(server).load_table(f"demo.{table}").scan().to_arrow()
    assert number(lake, f"SELECT count() FROM lake.`demo.{table}`") == wanted.num_rows
    assert number(lake, f"SELECT sum(n) FROM lake.`demo.{table}` WHERE n > 2") == sum(n for n in wanted["n"].to_pylist() if n > 2)
    folder = connect.pyiceberg(server).load_table(f"demo.{table}").location().removeprefix("file://")
    assert number(lake, f"SELECT count() FROM icebergLocal('{folder}')") == wanted.num_rows


def test_reads_what_others_deleted(server: Server, lake: Any, tmp_path: Path) -> None:
    """Position deletes of version 2; of version 3 it reads no deletion vectors."""
    duck, name = connect.duckdb(server, tmp_path), f"{server.dev['warehouse']}.demo.click_deleted"
    duck.execute(f"CREATE TABLE {name} AS SELECT range AS id FROM range(10)")
    duck.execute(f"INSERT INTO {name} SELECT range FROM range(10, 20)")
    duck.execute(f"DELETE FROM {name} WHERE id IN (3, 13)")
    assert number(lake, "SELECT count() FROM lake.`demo.click_deleted`") == 18
    assert number(lake, "SELECT count() FROM lake.`demo.click_deleted` WHERE id IN (3, 13)") == 0


def test_inserts_while_a_sink_rolls(server: Server, lake: Any) -> None:
    lake.query("SET allow_insert_into_iceberg = 1")
    with rolling(server, "click_written") as load:
        for row in range(3):
            load.rolled()
            lake.query(f"INSERT INTO lake.`demo.click_written` (id, n) VALUES ('foreign-{row}', {row})")
    found = connect.pyiceberg(server).load_table("demo.click_written").scan().to_arrow()["id"].to_pylist()
    assert sorted(id for id in found if id.startswith(FOREIGN)) == ["foreign-0", "foreign-1", "foreign-2"]
