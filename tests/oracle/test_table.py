"""Our tables opened by PyIceberg, DuckDB and fastavro, from metadata.json down to the rows."""
from __future__ import annotations

import datetime
import importlib
import json
from pathlib import Path
from typing import Any

import duckdb
import fastavro
import pytest
from pyiceberg.table import StaticTable

from programs import run

UTC = datetime.timezone.utc
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=UTC)
DAY = "day é 1%"

# name, version, steps, partitions
CASES = {
    "empty": ("2", "", []),
    "empty-v3": ("3", "", ["day(ts)"]),
    "fence-only": ("2", "fence fence", []),
    "plain": ("2", "append append fence append", []),
    "plain-v3": ("3", "append fence append", []),
    "retried": ("2", "append retry append", []),
    "retried-v3": ("3", "retry retry", ["day(ts)"]),
    "daily": ("2", "append append", ["day(ts)"]),
    "hourly-v3": ("3", "append append", ["hour(ts)"]),
    "months": ("3", "append append append", ["month(ts)", f"year({DAY})"]),
    "odd-name": ("2", "append append", [f"month({DAY})"]),
    "upgraded": ("2", "append append upgrade append", ["day(ts)"]),
    "respec": ("3", "append respec append", ["day(ts)"]),
}


class Case:
    def __init__(self, name: str, directory: Path) -> None:
        version, self.steps, self.partitions = CASES[name]
        printed = run("table_case", str(directory), version, self.steps, *self.partitions)
        self.metadata_uri = printed.decode().strip()
        self.metadata = json.loads(local(self.metadata_uri).read_text())
        words = self.steps.split()
        self.version = 3 if "upgrade" in words else int(version)
        self.row_count = 10 * sum(word in ("append", "retry") for word in words)
        self.snapshot_count = sum({"append": 1, "retry": 2, "fence": 1}.get(word, 0) for word in words)

    def snapshots(self) -> list[dict[str, Any]]:
        return self.metadata["snapshots"]

    def head(self) -> dict[str, Any] | None:
        return next((s for s in self.snapshots() if s["snapshot-id"] == self.metadata["current-snapshot-id"]), None)


def local(uri: str) -> Path:
    assert uri.startswith("file:///")
    return Path(uri[len("file://"):])


def open_duckdb() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for name in ("avro", "iceberg"):
        package = Path(importlib.import_module(f"duckdb_extension_{name}").__file__).parent
        connection.execute(f"LOAD '{next(package.rglob(f'{name}.duckdb_extension'))}'")
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def row(n: int) -> dict[str, Any]:
    at = EPOCH + datetime.timedelta(microseconds=(n - 12) * 2700000000001)
    null = n % 7 == 3
    return {"id": n, "ts": None if null else at, DAY: None if null else at.date(), "name": f"row {n}"}


def value_of(transform: str, n: int) -> Any:
    at = row(n)["ts"]
    if at is None:
        return None
    days = (at.date() - EPOCH.date()).days
    return {"year": at.year - 1970, "month": (at.year - 1970) * 12 + at.month - 1, "day": days,
            "hour": days * 24 + at.hour}[transform]


def avro(uri: str) -> tuple[list[dict[str, Any]], dict[str, Any], dict[str, str]]:
    with local(uri).open("rb") as file:
        reader = fastavro.reader(file)
        return list(reader), json.loads(reader.metadata["avro.schema"]), reader.metadata


@pytest.fixture(params=list(CASES))
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    return Case(request.param, tmp_path)


def test_pyiceberg_reads_every_row(case: Case) -> None:
    table = StaticTable.from_metadata(case.metadata_uri)
    assert table.metadata.format_version == case.version
    assert len(table.metadata.snapshots) == case.snapshot_count
    rows = table.scan().to_arrow().sort_by("id").to_pylist()
    assert rows == [row(n) for n in range(case.row_count)]


def test_duckdb_reads_every_row(case: Case) -> None:
    connection = open_duckdb()
    rows = connection.execute(f"SELECT * FROM iceberg_scan('{local(case.metadata_uri)}') ORDER BY id").fetchall()
    assert [dict(zip(("id", "ts", DAY, "name"), found)) for found in rows] == [row(n) for n in range(case.row_count)]
    counted = connection.execute(f"SELECT sum(record_count) FROM iceberg_metadata('{local(case.metadata_uri)}')")
    assert (counted.fetchone()[0] or 0) == case.row_count


def test_pruning_by_partition_finds_what_a_full_scan_finds(case: Case) -> None:
    table = StaticTable.from_metadata(case.metadata_uri)
    for n in range(0, case.row_count, 3):
        wanted = row(n)
        if wanted["ts"] is not None:
            found = table.scan(row_filter=f"ts == '{wanted['ts'].isoformat()}'").to_arrow().to_pylist()
            assert found == [wanted]
    nulls = table.scan(row_filter="ts is null").to_arrow().sort_by("id").to_pylist()
    assert nulls == [row(n) for n in range(case.row_count) if n % 7 == 3]


def test_partition_values_are_what_the_transforms_give(case: Case) -> None:
    head = case.head()
    specs = {spec["spec-id"]: spec["fields"] for spec in case.metadata["partition-specs"]}
    connection = duckdb.connect()
    for manifest in avro(head["manifest-list"])[0] if head else []:
        for entry in avro(manifest["manifest_path"])[0]:
            data = entry["data_file"]
            fields = specs[manifest["partition_spec_id"]]
            path = str(local(data["file_path"]))
            ids = [r[0] for r in connection.execute("SELECT id FROM read_parquet($1)", [path]).fetchall()]
            for value, field in zip(data["partition"].values(), fields, strict=True):
                if isinstance(value, datetime.date):
                    value = (value - EPOCH.date()).days
                assert {value_of(field["transform"], n) for n in ids} == {value}


def check_names(fields: list[dict[str, Any]]) -> None:
    """Every Avro field has its id, every optional one null first and null as default."""
    for field in fields:
        assert isinstance(field["field-id"], int), field
        kind = field["type"]
        if isinstance(kind, list):
            assert kind[0] == "null" and len(kind) == 2 and field["default"] is None
            kind = kind[1]
        if isinstance(kind, dict) and kind["type"] == "record":
            check_names(kind["fields"])
        if isinstance(kind, dict) and kind["type"] == "array":
            items = kind["items"]
            assert kind.get("logicalType") == "map" or isinstance(kind["element-id"], int)
            if isinstance(items, dict):
                check_names(items["fields"])


def test_avro_files_are_exact(case: Case) -> None:
    for snapshot in case.snapshots():
        manifests, schema, meta = avro(snapshot["manifest-list"])
        check_names(schema["fields"])
        assert [f["field-id"] for f in schema["fields"]][:13] == [
            500, 501, 502, 517, 515, 516, 503, 504, 505, 506, 512, 513, 514]
        assert meta["snapshot-id"] == str(snapshot["snapshot-id"])
        assert meta["parent-snapshot-id"] == str(snapshot.get("parent-snapshot-id", "null"))
        assert meta["sequence-number"] == str(snapshot["sequence-number"])
        for manifest in manifests:
            check_manifest(case, manifest)


def check_manifest(case: Case, manifest: dict[str, Any]) -> None:
    path = local(manifest["manifest_path"])
    entries, schema, meta = avro(manifest["manifest_path"])
    check_names(schema["fields"])
    assert path.suffix == ".avro" and path.stat().st_size == manifest["manifest_length"]
    assert set(meta) >= {"schema", "schema-id", "partition-spec", "partition-spec-id", "format-version", "content"}
    assert isinstance(json.loads(meta["partition-spec"]), list)
    assert len(entries) == manifest["added_files_count"] > 0
    assert sum(e["data_file"]["record_count"] for e in entries) == manifest["added_rows_count"]
    assert manifest["existing_files_count"] == manifest["deleted_files_count"] == 0
    assert len(manifest["partitions"]) == len(json.loads(meta["partition-spec"]))
    assert {e["snapshot_id"] for e in entries} == {manifest["added_snapshot_id"]}
    for entry in entries:
        data = entry["data_file"]
        assert entry["status"] == 1 and entry["sequence_number"] is None and entry["file_sequence_number"] is None
        assert data["content"] == 0 and data["file_format"] == "PARQUET"
        assert local(data["file_path"]).stat().st_size == data["file_size_in_bytes"]
        assert [item["key"] for item in data["value_counts"]] == [1, 2, 3, 4]
        assert {item["value"] for item in data["value_counts"]} == {data["record_count"]}


def test_summaries_and_sequence_numbers_add_up(case: Case) -> None:
    total = 0
    for index, snapshot in enumerate(case.snapshots()):
        summary = snapshot["summary"]
        total += int(summary.get("added-records", "0"))
        assert snapshot["sequence-number"] == index + 1
        assert int(summary["total-records"]) == total
        manifests = avro(snapshot["manifest-list"])[0]
        assert sum(m["added_rows_count"] for m in manifests) == total
        assert len({m["manifest_path"] for m in manifests}) == len(manifests)
    assert total == case.row_count
    times = [entry["timestamp-ms"] for entry in case.metadata["snapshot-log"]]
    assert times == sorted(times) and case.metadata["last-updated-ms"] >= max(times, default=0)
    assert case.metadata["last-sequence-number"] == case.snapshot_count


def test_row_ids_are_disjoint(case: Case) -> None:
    if case.version < 3:
        assert "next-row-id" not in case.metadata
        return
    head = case.head()
    manifests = avro(head["manifest-list"])[0] if head and "first-row-id" in head else []
    ranges = sorted((m["first_row_id"], m["first_row_id"] + m["added_rows_count"]) for m in manifests)
    assert all(before[1] <= after[0] for before, after in zip(ranges, ranges[1:]))
    assert all(end <= case.metadata["next-row-id"] for _, end in ranges)
    assert sum(s.get("added-rows", 0) for s in case.snapshots()) == case.metadata["next-row-id"]


def test_no_null_where_a_reader_would_fail(case: Case) -> None:
    for key, value in case.metadata.items():
        assert value is not None or (key == "current-snapshot-id" and case.version == 3)
    for snapshot in case.snapshots():
        assert None not in snapshot.values()
        assert all(isinstance(value, str) for value in snapshot["summary"].values())
        assert 0 < snapshot["snapshot-id"] < 2 ** 53
        assert isinstance(snapshot["schema-id"], int)
