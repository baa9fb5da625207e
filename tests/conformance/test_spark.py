"""Spark SQL, attached as `lhbox connect spark` says, on tables into which a sink rolls."""
from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from connect import block
from rolling import FOREIGN, rolling, until_committed
from server import Server
from spark import attach, pinned_jar, rows

DAY_SECONDS = 86_400


@pytest.fixture(scope="module")
def lake(server: Server, spark: Any) -> Any:
    session = attach(spark, block(server, "spark"))
    session.sql(f"USE {server.dev['warehouse']}.demo")
    return session


def lost_race(error: Exception) -> bool:
    """Iceberg repeats a commit that lost its race, but not one whose rows the other may have touched."""
    return "Found conflicting files" in str(error) or "CommitFailedException" in str(error)


def run(lake: Any, statement: str) -> list[tuple[Any, ...]]:
    return until_committed(lambda: rows(lake, statement), lost_race)


def foreign(lake: Any, table: str) -> list[tuple[Any, ...]]:
    return rows(lake, f"SELECT id, n FROM {table} WHERE id LIKE '{FOREIGN}%' ORDER BY id")


def row_level(mode: str) -> dict[str, str]:
    """With Iceberg's own isolation, serializable, a statement that takes longer than a second loses every race against a sink
    that rolls every second."""
    return {f"write.{what}.{name}": value for what in ("merge", "update", "delete")
            for name, value in (("mode", mode), ("isolation-level", "snapshot"))}


def place(server: Server, table: str) -> Path:
    answer = server.call("GET", f"/iceberg/v1/{server.dev['warehouse']}/namespaces/demo/tables/{table}")
    assert answer.status == 200, answer
    return Path(answer.json["metadata"]["location"].removeprefix("file://"))


def test_the_block_as_it_is_pasted(server: Server, tmp_path: Path) -> None:
    """By Spark's own command; only --packages becomes the pinned jar's file."""
    words = shlex.split(block(server, "spark").replace("\\\n", " "))
    at = words.index("--packages")
    words[at:at + 2] = ["--jars", str(pinned_jar(words[at + 1]))]
    words[0] = str(Path(sys.executable).with_name("spark-sql"))
    query = f"SELECT count(*), 'rows' FROM {server.dev['demo']['table']}"
    done = subprocess.run([*words, "--master", "local[1]", "-e", query], cwd=tmp_path, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable})
    assert done.stdout.split() == ["0", "rows"], done.stderr[-3000:]


@pytest.mark.parametrize("version, mode", [(2, "copy-on-write"), (2, "merge-on-read"), (3, "merge-on-read")])
def test_writes_while_a_sink_rolls(server: Server, lake: Any, version: int, mode: str) -> None:
    table = f"spark_v{version}_{mode.replace('-', '_')}"
    with rolling(server, table, format_version=version, properties=row_level(mode)) as load:
        run(lake, f"INSERT INTO {table} VALUES ('foreign-a', 1, NULL), ('foreign-b', 2, NULL), ('foreign-c', 3, NULL)")
        load.rolled()
        run(lake, f"UPDATE {table} SET n = 20 WHERE id = 'foreign-b'")
        load.rolled()
        run(lake, f"DELETE FROM {table} WHERE id = 'foreign-a'")
        load.rolled()
        run(lake, f"MERGE INTO {table} t USING (SELECT * FROM VALUES ('foreign-c', 30L), ('foreign-d', 40L) AS s(id, n)) s "
                  "ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n "
                  "WHEN NOT MATCHED THEN INSERT (id, n, __ingest_ts) VALUES (s.id, s.n, NULL)")
        load.rolled()
    assert foreign(lake, table) == [("foreign-b", 20), ("foreign-c", 30), ("foreign-d", 40)]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_snapshot_isolation_loses_no_race(server: Server, lake: Any, mode: str) -> None:
    """With this property an update of all rows goes through at the first try, whatever was rolled meanwhile."""
    table = f"spark_isolated_{mode.replace('-', '_')}"
    with rolling(server, table, properties=row_level(mode)) as load:
        for digit in (1_000, 10_000, 100_000):
            load.rolled()
            rows(lake, f"UPDATE {table} SET n = n + {digit}")
    seen = {row[0] for row in rows(lake, f"SELECT DISTINCT n DIV 1000 FROM {table}")}
    assert {111, 110, 100} <= seen <= {111, 110, 100, 0}


def test_create_and_create_as_select_from_a_rolling_table(server: Server, lake: Any) -> None:
    with rolling(server, "spark_source") as load:
        run(lake, "CREATE TABLE spark_made (id STRING NOT NULL, n BIGINT COMMENT 'how many') USING iceberg "
                  "PARTITIONED BY (bucket(4, id)) TBLPROPERTIES ('who' = 'me')")
        run(lake, "CREATE TABLE spark_copy USING iceberg AS SELECT id, n FROM spark_source")
        run(lake, "INSERT INTO spark_made SELECT id, n FROM spark_copy")
        load.rolled()
        run(lake, "CREATE OR REPLACE TABLE spark_copy USING iceberg AS SELECT id FROM spark_made")
    copied = rows(lake, "SELECT count(*), count(DISTINCT id) FROM spark_copy")
    assert copied[0][0] == copied[0][1] > 0
    assert rows(lake, "SELECT count(*) FROM spark_copy ANTI JOIN spark_source USING (id)") == [(0,)]


def test_alter_while_a_sink_rolls(server: Server, lake: Any) -> None:
    with rolling(server, "spark_altered") as load:
        for statement in ("ADD COLUMN note STRING COMMENT 'what was seen'", "ALTER COLUMN note FIRST", "RENAME COLUMN note TO remark",
                          "SET TBLPROPERTIES ('who' = 'me')", "DROP COLUMN remark", "UNSET TBLPROPERTIES ('who')"):
            run(lake, f"ALTER TABLE spark_altered {statement}")
            load.rolled()
    names = [row[0] for row in rows(lake, "DESCRIBE spark_altered")]
    assert names[:3] == ["id", "n", "__ingest_ts"] and "remark" not in names


def test_partition_evolution_while_a_sink_rolls(server: Server, lake: Any) -> None:
    """What a sink may write: version 3, by parts of one timestamp. Each roll takes the spec that it meets."""
    with rolling(server, "spark_parted", format_version=3) as load:
        for statement in ("ADD PARTITION FIELD days(__ingest_ts)", "REPLACE PARTITION FIELD days(__ingest_ts) WITH hours(__ingest_ts)",
                          "DROP PARTITION FIELD hours(__ingest_ts)"):
            run(lake, f"ALTER TABLE spark_parted {statement}")
            load.rolled()
            load.rolled()  # the first may have begun before the change
    specs = {row[0] for row in rows(lake, "SELECT DISTINCT spec_id FROM demo.spark_parted.files")}
    assert len(specs) >= 3, specs
    (found,), = rows(lake, "SELECT count(*) FROM spark_parted WHERE __ingest_ts >= DATE '2020-01-01'")
    assert rows(lake, "SELECT count(*) FROM spark_parted") == [(found,)]


def test_branches_and_tags_while_a_sink_rolls(server: Server, lake: Any) -> None:
    with rolling(server, "spark_refs") as load:
        run(lake, "ALTER TABLE spark_refs CREATE TAG first")
        run(lake, "ALTER TABLE spark_refs CREATE BRANCH side")
        load.rolled()
        run(lake, "INSERT INTO demo.spark_refs.branch_side VALUES ('foreign-side', 1, NULL)")
        load.rolled()
        counts = {name: rows(lake, f"SELECT count(*) FROM spark_refs VERSION AS OF '{name}'")[0][0]
                  for name in ("first", "side", "main")}
        assert 0 < counts["first"] and counts["first"] + 1 <= counts["side"] and counts["first"] < counts["main"]
        run(lake, "ALTER TABLE spark_refs DROP TAG first")
        run(lake, "ALTER TABLE spark_refs DROP BRANCH side")
    assert foreign(lake, "spark_refs") == []


@pytest.mark.parametrize("version", [2, 3])
def test_maintenance_while_a_sink_rolls(server: Server, lake: Any, version: int) -> None:
    table = f"spark_kept_v{version}"
    call = f"CALL {server.dev['warehouse']}.system"
    with rolling(server, table, format_version=version) as load:
        for _ in range(3):
            load.rolled()
        rewritten = run(lake, f"{call}.rewrite_data_files(table => 'demo.{table}', options => map('rewrite-all', 'true'))")
        assert rewritten[0][0] >= 3 and rewritten[0][1] >= 1
        load.rolled()
        manifests = run(lake, f"{call}.rewrite_manifests('demo.{table}')")
        assert manifests[0][0] >= 2
        load.rolled()
        now = rows(lake, "SELECT date_format(current_timestamp(), 'yyyy-MM-dd HH:mm:ss.SSS')")[0][0]
        expired = run(lake, f"{call}.expire_snapshots(table => 'demo.{table}', older_than => TIMESTAMP '{now}', retain_last => 1)")
        assert expired[0][0] >= 3  # data files that only the expired snapshots held
        load.rolled()


def test_orphans_are_removed_and_nothing_else(server: Server, lake: Any) -> None:
    """With every file older than the three days that remove_orphan_files spares."""
    table, old = "spark_orphans", time.time() - 5 * DAY_SECONDS
    with rolling(server, table) as load:
        load.rolled()
        folder = place(server, table)
        orphan = folder / "data" / "orphan.parquet"
        orphan.write_bytes(b"left behind")
        for path in folder.rglob("*"):
            if path.is_file():
                os.utime(path, (old, old))
        removed = run(lake, f"CALL {server.dev['warehouse']}.system.remove_orphan_files(table => 'demo.{table}')")
        assert not orphan.exists()
        assert str(orphan) in {Path(row[0].removeprefix("file:")).as_posix().replace("//", "/") for row in removed}
        load.rolled()
    assert (folder / "metadata" / "version-hint.text").exists()


def test_metadata_tables(server: Server, lake: Any) -> None:
    with rolling(server, "spark_seen") as load:
        load.rolled()
    (records,), = rows(lake, "SELECT sum(record_count) FROM demo.spark_seen.files")
    assert rows(lake, "SELECT count(*) FROM spark_seen") == [(records,)]
    operations = {row[0] for row in rows(lake, "SELECT operation FROM demo.spark_seen.snapshots")}
    assert operations == {"append"}
    assert len(rows(lake, "SELECT * FROM demo.spark_seen.history")) == len(rows(lake, "SELECT * FROM demo.spark_seen.snapshots"))


def test_a_session_sees_what_the_sink_commits(server: Server, lake: Any) -> None:
    with rolling(server, "spark_fresh") as load:
        seen = 0
        for _ in range(3):
            load.rolled()
            before, seen = seen, rows(lake, "SELECT count(*) FROM spark_fresh")[0][0]
            assert seen > before


def test_views(server: Server, lake: Any) -> None:
    with rolling(server, "spark_viewed") as load:
        run(lake, "CREATE VIEW spark_view AS SELECT id, n FROM spark_viewed")
        before = rows(lake, "SELECT count(*) FROM spark_view")[0][0]
        load.rolled()
        assert rows(lake, "SELECT count(*) FROM spark_view")[0][0] > before
        run(lake, "CREATE OR REPLACE VIEW spark_view (name COMMENT 'who') AS SELECT id FROM spark_viewed WHERE n = 0")
        assert rows(lake, "SELECT count(name) FROM spark_view")[0][0] > 0
    assert [row[1] for row in rows(lake, "SHOW VIEWS")] == ["spark_view"]
    run(lake, "DROP VIEW spark_view")
    assert rows(lake, "SHOW VIEWS") == []
