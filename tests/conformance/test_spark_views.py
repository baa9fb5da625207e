"""Views by Spark SQL, and the Idempotency-Key that its client sends because the catalog takes it."""
from __future__ import annotations

import sqlite3
from typing import Any

import pytest

from connect import block
from server import Server
from spark import attach, rows


@pytest.fixture(scope="module")
def lake(server: Server, spark: Any) -> Any:
    session = attach(spark, block(server, "spark"))
    session.sql(f"CREATE NAMESPACE {server.dev['warehouse']}.spark_views")
    return session


def test_a_view_lives(server: Server, lake: Any) -> None:
    space = f"{server.dev['warehouse']}.spark_views"
    lake.sql(f"CREATE TABLE {space}.t (id BIGINT, name STRING) USING iceberg")
    lake.sql(f"INSERT INTO {space}.t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    lake.sql(f"CREATE VIEW {space}.v COMMENT 'small ones' AS SELECT id, name FROM {space}.t WHERE id < 3")
    assert rows(lake, f"SELECT * FROM {space}.v ORDER BY id") == [(1, "a"), (2, "b")]
    assert [row[1] for row in rows(lake, f"SHOW VIEWS IN {space}")] == ["v"]
    assert [row[1] for row in rows(lake, f"SHOW TABLES IN {space}")] == ["t"]
    lake.sql(f"CREATE OR REPLACE VIEW {space}.v AS SELECT name FROM {space}.t WHERE id > 1")
    assert rows(lake, f"SELECT * FROM {space}.v ORDER BY name") == [("b",), ("c",)]
    lake.sql(f"ALTER VIEW {space}.v SET TBLPROPERTIES ('checked' = 'yes')")
    lake.sql(f"ALTER VIEW {space}.v RENAME TO {space}.w")
    assert rows(lake, f"SELECT count(*) FROM {space}.w") == [(2,)]
    with pytest.raises(Exception, match="with same name already exists|TABLE_OR_VIEW_ALREADY_EXISTS|already exists"):
        lake.sql(f"CREATE TABLE {space}.w (id BIGINT) USING iceberg")
    lake.sql(f"DROP VIEW {space}.w")
    assert rows(lake, f"SHOW VIEWS IN {space}") == []
    lake.sql(f"DROP TABLE {space}.t PURGE")


def test_requests_leave_their_receipts(server: Server, lake: Any) -> None:
    ledger = sqlite3.connect(f"file:{server.data / 'lhbox.db'}?mode=ro", uri=True)
    assert ledger.execute("SELECT count(*) FROM catalog_receipt WHERE status = 0").fetchone()[0] > 5
    ledger.close()
