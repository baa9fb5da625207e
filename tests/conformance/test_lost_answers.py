"""A commit is applied and its answer is lost: the next action of DuckDB and PyIceberg finds the table whole."""
from __future__ import annotations

from pathlib import Path
from typing import Any, Iterator

import duckdb
import pyarrow as pa
import pyiceberg.exceptions
import pytest
import requests

import connect
from cutting_proxy import CuttingProxy
from lost import ROUNDS, TABLE, Engine, cut_rounds, killed_rounds, started
from server import pyiceberg_catalog


class DuckDB(Engine):
    errors = (duckdb.Error,)

    def __init__(self, proxy: CuttingProxy, home: Path) -> None:
        self.lake = connect.duckdb(proxy.server, home, proxy.through(connect.block(proxy.server, "duckdb")))
        self.lake.execute(f"USE {proxy.server.dev['warehouse']}.demo")
        self.lake.execute("INSERT INTO lost VALUES (1, 0), (2, 0)")

    def change(self, name: str, number: int, rows: dict[int, int]) -> None:
        self.lake.execute({
            "insert": f"INSERT INTO lost VALUES ({number}, 0)",
            "update": "UPDATE lost SET n = n + 1",
            "delete": f"DELETE FROM lost WHERE id = {max(rows)}",
            "merge": f"MERGE INTO lost USING (SELECT id, n + 10 AS n FROM lost UNION ALL SELECT {number}, 7) AS s ON lost.id = s.id "
                     "WHEN MATCHED THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.n)",
            "create": f"CREATE TABLE copy_{number} AS SELECT id, n FROM lost",
        }[name])

    def rows(self, table: str) -> list[tuple[int, int]]:
        return self.lake.execute(f"SELECT id, n FROM {table.removeprefix('demo.')}").fetchall()


class PyIceberg(Engine):
    errors = (requests.exceptions.ConnectionError, pyiceberg.exceptions.CommitStateUnknownException)

    def __init__(self, proxy: CuttingProxy) -> None:
        self.catalog = connect.python(proxy.through(connect.block(proxy.server, "pyiceberg")))["catalog"]
        self.schema = self.catalog.load_table(TABLE).schema()
        self.catalog.load_table(TABLE).append(self.arrow({1: 0, 2: 0}))

    def arrow(self, rows: dict[int, int]) -> pa.Table:
        return pa.table({"id": list(rows), "n": list(rows.values())}, schema=self.schema.as_arrow())

    def change(self, name: str, number: int, rows: dict[int, int]) -> None:
        table = self.catalog.load_table(TABLE)
        if name == "insert":
            table.append(self.arrow({number: 0}))
        elif name == "update":
            table.overwrite(self.arrow(self.CHANGES["update"](rows, number)))
        elif name == "delete":
            table.delete(f"id == {max(rows)}")
        elif name == "merge":
            table.upsert(self.arrow(self.CHANGES["merge"](rows, number)), join_cols=["id"])
        else:
            with self.catalog.create_table_transaction(f"demo.copy_{number}", self.schema) as transaction:
                transaction.append(self.arrow(rows))

    def rows(self, table: str) -> list[tuple[int, int]]:
        found = self.catalog.load_table(table).scan().to_arrow()
        return list(zip(found["id"].to_pylist(), found["n"].to_pylist()))


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[CuttingProxy]:
    server = started(tmp_path)
    with CuttingProxy(server) as proxy:
        yield proxy
    server.kill()
    assert "Sanitizer" not in server.tail(1000), server.tail(100)


def engine_of(name: str, proxy: CuttingProxy, home: Path) -> Engine:
    return DuckDB(proxy, home) if name == "duckdb" else PyIceberg(proxy)


def all_whole(proxy: CuttingProxy) -> None:
    """Every table that there is, read from its files by PyIceberg past the proxy."""
    catalog: Any = pyiceberg_catalog(proxy.server)
    for table in catalog.list_tables("demo"):
        catalog.load_table(table).scan().to_arrow()


@pytest.mark.parametrize("name", ["duckdb", "pyiceberg"])
def test_the_connection_is_cut_before_the_answer(proxy: CuttingProxy, tmp_path: Path, name: str) -> None:
    """DuckDB sends again, and is told of its success when it hears the second answer; PyIceberg gives up."""
    told = cut_rounds(proxy, engine_of(name, proxy, tmp_path))
    assert told["success"] == (ROUNDS // 2 if name == "duckdb" else 0), told
    all_whole(proxy)


@pytest.mark.parametrize("name", ["duckdb", "pyiceberg"])
def test_the_server_is_killed_right_after_applying(proxy: CuttingProxy, tmp_path: Path, name: str) -> None:
    killed_rounds(proxy.server, engine_of(name, proxy, tmp_path))
    all_whole(proxy)
