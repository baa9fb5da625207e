"""DuckDB, attached as `lhbox connect duckdb` says, on tables into which a sink rolls."""
from __future__ import annotations

from pathlib import Path
from typing import Any, Iterator

import duckdb
import pytest

import connect
from rolling import FOREIGN, rolling, until_committed
from server import Server


@pytest.fixture
def lake(server: Server, tmp_path: Path) -> Iterator[Any]:
    connection = connect.duckdb(server, tmp_path)
    connection.execute(f"USE {server.dev['warehouse']}.demo")
    yield connection
    connection.close()


def lost_race(error: Exception) -> bool:
    return isinstance(error, duckdb.Error) and "conflict" in str(error).lower()


def run(lake: Any, *statements: str) -> None:
    """The statements as one transaction, again when a roll was faster."""
    def transaction() -> None:
        lake.execute("BEGIN")
        try:
            for statement in statements:
                lake.execute(statement)
            lake.execute("COMMIT")
        except duckdb.Error:
            try:
                lake.execute("ROLLBACK")
            except duckdb.Error:
                pass  # a COMMIT that failed has ended it
            raise
    until_committed(transaction, lost_race)


def foreign(lake: Any, table: str) -> list[tuple[Any, ...]]:
    return lake.execute(f"SELECT id, n FROM {table} WHERE id LIKE '{FOREIGN}%' ORDER BY id").fetchall()


@pytest.mark.parametrize("version", [2, 3])
def test_writes_while_a_sink_rolls(server: Server, lake: Any, version: int) -> None:
    table = f"duck_v{version}"
    with rolling(server, table, format_version=version) as load:
        run(lake, f"INSERT INTO {table} (id, n) VALUES ('foreign-a', 1), ('foreign-b', 2), ('foreign-c', 3)")
        load.rolled()
        run(lake, f"UPDATE {table} SET n = 20 WHERE id = 'foreign-b'")
        load.rolled()
        run(lake, f"DELETE FROM {table} WHERE id = 'foreign-a'")
        load.rolled()
        run(lake, f"MERGE INTO {table} USING (VALUES ('foreign-c', 30), ('foreign-d', 40)) AS s(id, n) ON {table}.id = s.id "
                  "WHEN MATCHED THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, s.n)")
        load.rolled()
        assert foreign(lake, table) == [("foreign-b", 20), ("foreign-c", 30), ("foreign-d", 40)]
    assert foreign(lake, table) == [("foreign-b", 20), ("foreign-c", 30), ("foreign-d", 40)]


def test_create_and_create_as_select_from_a_rolling_table(server: Server, lake: Any) -> None:
    with rolling(server, "duck_source") as load:
        lake.execute("CREATE TABLE duck_made (id VARCHAR, n BIGINT)")
        lake.execute("CREATE TABLE duck_copy AS SELECT id, n FROM duck_source")
        run(lake, "INSERT INTO duck_made SELECT id, n FROM duck_copy")
        load.rolled()
    copied = lake.execute("SELECT count(*), count(DISTINCT id) FROM duck_copy").fetchone()
    assert copied[0] == copied[1] > 0
    assert lake.execute("SELECT count(*), count(DISTINCT id) FROM duck_made").fetchone() == copied
    assert lake.execute("SELECT count(*) FROM duck_copy ANTI JOIN duck_source USING (id, n)").fetchone() == (0,)


def test_a_transaction_over_two_rolling_tables_is_all_or_nothing(server: Server, lake: Any) -> None:
    with rolling(server, "duck_left") as left, rolling(server, "duck_right") as right:
        for number in range(5):
            left.rolled()
            right.rolled()
            run(lake, f"INSERT INTO duck_left (id, n) VALUES ('foreign-{number}', {number})",
                f"INSERT INTO duck_right (id, n) VALUES ('foreign-{number}', {number})")
            assert foreign(lake, "duck_left") == foreign(lake, "duck_right") == [(f"foreign-{n}", n) for n in range(number + 1)]


def test_a_new_column_while_a_sink_rolls(server: Server, lake: Any) -> None:
    with rolling(server, "duck_wider") as load:
        run(lake, "ALTER TABLE duck_wider ADD COLUMN note VARCHAR")
        load.rolled()
        run(lake, "INSERT INTO duck_wider (id, n, note) VALUES ('foreign-a', 1, 'seen')")
        load.rolled()
    assert lake.execute("SELECT id, note FROM duck_wider WHERE note IS NOT NULL").fetchall() == [("foreign-a", "seen")]


def test_an_update_of_all_rows_keeps_each_once(server: Server, lake: Any) -> None:
    """Each update reaches all rows that came before it: of the three digits a row has the last ones, without a gap."""
    with rolling(server, "duck_all") as load:
        for digit in (1_000, 10_000, 100_000):
            load.rolled()
            run(lake, f"UPDATE duck_all SET n = n + {digit}")
    seen = {row[0] for row in lake.execute("SELECT DISTINCT n // 1000 FROM duck_all").fetchall()}
    assert {111, 110, 100} <= seen <= {111, 110, 100, 0}
