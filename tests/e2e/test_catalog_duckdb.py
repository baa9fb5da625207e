"""Stock DuckDB against the embedded catalog: attach, create, write, read, drop."""
from __future__ import annotations

from pathlib import Path
from typing import Any, Iterator

import pytest

from server import EXTENSIONS, Server, duckdb_attached, extension_file


@pytest.fixture
def lake(server: Server) -> Iterator[Any]:
    connection = duckdb_attached(server)
    connection.execute(f"USE {server.dev['warehouse']}.demo")
    yield connection
    connection.close()


def load(server: Server, table: str) -> dict[str, Any]:
    answer = server.call("GET", f"/iceberg/v1/{server.dev['warehouse']}/namespaces/demo/tables/{table}")
    assert answer.status == 200, answer
    return answer.json


def test_attach_lists_schemas_and_tables(server: Server, lake: Any) -> None:
    lake.execute("CREATE TABLE listed (id BIGINT)")
    tables = lake.execute("SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = ?",
                          [server.dev["warehouse"]]).fetchall()
    assert ("demo", "listed") in tables


def test_06_empty_table_reads_as_no_rows(lake: Any) -> None:
    lake.execute("CREATE TABLE empty (id BIGINT, text VARCHAR)")
    assert lake.execute("SELECT * FROM empty").fetchall() == []


def test_insert_select_update_delete(lake: Any) -> None:
    lake.execute("CREATE TABLE t (id BIGINT, text VARCHAR)")
    lake.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL)")
    lake.execute("UPDATE t SET text = 'z' WHERE id = 1")
    lake.execute("DELETE FROM t WHERE id = 2")
    assert lake.execute("SELECT id, text FROM t ORDER BY id").fetchall() == [(1, "z"), (3, None)]


def test_merge_sends_two_snapshots_in_one_commit(server: Server, lake: Any) -> None:
    lake.execute("CREATE TABLE merged (id BIGINT, n BIGINT)")
    lake.execute("INSERT INTO merged VALUES (1, 1), (2, 2)")
    before = len(load(server, "merged")["metadata"]["metadata-log"])
    lake.execute("MERGE INTO merged USING (VALUES (2, 20), (3, 30)) AS s(id, n) ON merged.id = s.id "
                 "WHEN MATCHED THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.n)")
    assert lake.execute("SELECT * FROM merged ORDER BY id").fetchall() == [(1, 1), (2, 20), (3, 30)]
    assert len(load(server, "merged")["metadata"]["metadata-log"]) == before + 1


def test_04_create_table_as_select(lake: Any) -> None:
    lake.execute("CREATE TABLE made AS SELECT range AS n, range * 0.5 AS half FROM range(100)")
    assert lake.execute("SELECT count(*), sum(n), sum(half) FROM made").fetchone() == (100, 4950, 2475.0)


def test_transaction_over_two_tables(server: Server, lake: Any) -> None:
    lake.execute("CREATE TABLE left_side (n BIGINT)")
    lake.execute("CREATE TABLE right_side (n BIGINT)")
    lake.execute("BEGIN")
    lake.execute("INSERT INTO left_side VALUES (1)")
    lake.execute("INSERT INTO right_side VALUES (2)")
    lake.execute("COMMIT")
    assert lake.execute("SELECT n FROM left_side UNION ALL SELECT n FROM right_side").fetchall() == [(1,), (2,)]


def test_schema_evolution(lake: Any) -> None:
    lake.execute("CREATE TABLE grown (a BIGINT)")
    lake.execute("INSERT INTO grown VALUES (1)")
    lake.execute("ALTER TABLE grown ADD COLUMN b VARCHAR")
    lake.execute("INSERT INTO grown VALUES (2, 'two')")
    assert lake.execute("SELECT a, b FROM grown ORDER BY a").fetchall() == [(1, None), (2, "two")]


def test_version_3_table(lake: Any) -> None:
    lake.execute("CREATE TABLE three (id BIGINT) WITH ('format-version' = '3')")
    lake.execute("INSERT INTO three SELECT * FROM range(10)")
    lake.execute("DELETE FROM three WHERE id = 4")
    assert lake.execute("SELECT count(*) FROM three").fetchone() == (9,)


def test_schemas_and_tables_are_dropped(server: Server, lake: Any) -> None:
    name = f"{server.dev['warehouse']}.passing"
    lake.execute(f"CREATE SCHEMA {name}")
    lake.execute(f"CREATE TABLE {name}.t (id BIGINT)")
    lake.execute(f"DROP TABLE {name}.t")
    lake.execute(f"DROP SCHEMA {name}")
    answer = server.call("HEAD", f"/iceberg/v1/{server.dev['warehouse']}/namespaces/passing")
    assert answer.status == 404


def test_53_foreign_commit_is_seen_by_an_attached_connection(server: Server, lake: Any) -> None:
    other = duckdb_attached(server)
    lake.execute("CREATE TABLE shared (id BIGINT)")
    table = f"{server.dev['warehouse']}.demo.shared"
    for wanted in range(1, 4):
        lake.execute("INSERT INTO shared VALUES (?)", [wanted])
        assert other.execute(f"SELECT count(*) FROM {table}").fetchone() == (wanted,)


def test_lost_race_keeps_the_winners_rows(server: Server, lake: Any) -> None:
    """Two transactions on one base: the second is refused, and the first one's file is still there."""
    import duckdb
    other = duckdb_attached(server)
    table = f"{server.dev['warehouse']}.demo.raced"
    lake.execute("CREATE TABLE raced (id BIGINT)")
    lake.execute("INSERT INTO raced VALUES (0)")
    for connection, value in ((lake, 1), (other, 2)):
        connection.execute("BEGIN")
        connection.execute(f"INSERT INTO {table} VALUES ({value})")
    lake.execute("COMMIT")
    with pytest.raises(duckdb.Error):
        other.execute("COMMIT")
    assert duckdb_attached(server).execute(f"SELECT id FROM {table} ORDER BY id").fetchall() == [(0,), (1,)]


def test_oauth_client_credentials(server: Server) -> None:
    import duckdb
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for name in EXTENSIONS:
        connection.execute(f"LOAD '{extension_file(name)}'")
    connection.execute(f"CREATE SECRET (TYPE iceberg, CLIENT_ID 'any', CLIENT_SECRET '{server.dev['api_key']}', "
                       f"OAUTH2_SERVER_URI '{server.dev['url']}/iceberg/v1/oauth/tokens')")
    connection.execute(f"ATTACH '{server.dev['warehouse']}' AS lake (TYPE iceberg, ENDPOINT '{server.dev['url']}/iceberg')")
    connection.execute("CREATE TABLE lake.demo.by_token (id BIGINT)")
    assert connection.execute("SELECT count(*) FROM lake.demo.by_token").fetchone() == (0,)


def test_scan_of_the_table_directory_by_its_hint(server: Server, lake: Any) -> None:
    lake.execute("CREATE TABLE hinted AS SELECT 7 AS n")
    place = load(server, "hinted")["metadata"]["location"]
    assert Path(place.removeprefix("file://"), "metadata", "version-hint.text").exists()
    assert lake.execute(f"SELECT n FROM iceberg_scan('{place}', version_name_format = '%s%s.metadata.json', "
                        "version = '?')").fetchall() == [(7,)]
