"""Each printed block attaches its engine, which finds the table of `lhbox dev` and reads it."""
from __future__ import annotations

import json
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


def test_duckdb_reads_the_rejects(server: Server, tmp_path: Path) -> None:
    """The query stands in the block as a comment, since it fails while there is no reject; and as it is in the API."""
    server.make_table("demo.strict", {"n": "long required"})
    sink = server.make_sink("demo.strict", "strict_in", roll_seconds=3600)
    assert server.send(sink, "one", [{"n": 1}, {"n": "many"}, {"m": 2}]).status == 202
    server.roll(sink)
    text = block(server, "duckdb")
    recipe = server.call("GET", "/v1/connection").json["read_recipes"]["rejects"]
    commented = "".join(line.removeprefix("-- ") for line in text.splitlines(True) if line.startswith("-- "))
    assert commented.split("\n", 1)[1].strip() == recipe.strip()
    lake = duckdb(server, tmp_path, text)
    found = lake.execute(f"SELECT batch_id, \"row\", reason, \"column\", data FROM ({recipe.strip().rstrip(';')}) ORDER BY \"row\"").fetchall()
    assert [row[:4] for row in found] == [("one", 1, "bad_number", "n"), ("one", 2, "unknown_column", "m")], found
    assert [json.loads(row[4]) for row in found] == [{"n": "many"}, {"m": 2}]
