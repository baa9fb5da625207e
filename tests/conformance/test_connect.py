"""Each printed block attaches its engine, which finds the table of `lhbox dev` and reads it."""
from __future__ import annotations

from pathlib import Path

from connect import block, duckdb, pyiceberg
from server import Server


def test_duckdb(server: Server, tmp_path: Path) -> None:
    lake = duckdb(server, tmp_path)
    assert lake.execute(f"SELECT * FROM {server.dev['demo']['table']}").fetchall() == []


def test_pyiceberg(server: Server) -> None:
    assert ("demo", "events") in pyiceberg(server).list_tables("demo")


def test_trino_names_the_catalog(server: Server) -> None:
    """There is no Trino to run here: the lines are its documented properties, with this server's place and key."""
    lines = dict(line.split("=", 1) for line in block(server, "trino").split())
    assert lines["connector.name"] == "iceberg" and lines["iceberg.catalog.type"] == "rest"
    assert lines["iceberg.rest-catalog.uri"] == f"{server.dev['url']}/iceberg"
    assert lines["iceberg.rest-catalog.oauth2.token"] == server.dev["api_key"]
