"""What a sink makes of tables as their owners set them up: paths, codecs, sort orders, name mappings, promoted columns,
partitions that change, branches, statistics. PyIceberg and DuckDB read the results; the fixture's strict checker holds
every file against the guide."""
from __future__ import annotations

import datetime
import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyiceberg.expressions import EqualTo, GreaterThan
from pyiceberg.table.locations import ObjectStoreLocationProvider
from pyiceberg.transforms import DayTransform, HourTransform, IdentityTransform, MonthTransform, YearTransform
from pyiceberg.types import LongType

from connect import duckdb, pyiceberg
from server import Server
from strict.avro import Avro
from strict.check import local, read_metadata


class Table:
    """A table with a sink on it."""

    def __init__(self, server: Server, name: str, columns: dict[str, str], **more: Any) -> None:
        self.server, self.name = server, f"kept.{name}"
        server.make_table(self.name, columns, **more)
        self.sink = server.make_sink(self.name, name)
        self.sent = 0

    def load(self) -> Any:
        return pyiceberg(self.server).load_table(self.name)

    def metadata(self) -> dict[str, Any]:
        return read_metadata(local(self.load().metadata_location))

    def roll(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """Sends and rolls; the head of main."""
        self.sent += 1
        answer = self.server.send(self.sink, f"b{self.sent}", rows)
        assert answer.status == 202, answer
        self.server.roll(self.sink)
        assert self.server.books(self.sink)["pending"] == 0, self.server.call("GET", f"/v1/sinks/{self.sink['id']}")
        return self.head()

    def head(self) -> dict[str, Any]:
        metadata = self.metadata()
        return next(s for s in metadata["snapshots"] if s["snapshot-id"] == metadata["current-snapshot-id"])

    def entries(self) -> list[dict[str, Any]]:
        """Of the head's newest manifest."""
        newest = Avro(local(self.head()["manifest-list"])).rows[0]
        return Avro(local(newest["manifest_path"])).rows

    def files(self) -> list[Path]:
        return [local(entry["data_file"]["file_path"]) for entry in self.entries()]

    def rows(self) -> list[dict[str, Any]]:
        rows = self.load().scan().to_arrow().drop_columns(["__ingest_ts"]).to_pylist()
        return sorted(rows, key=lambda row: str(row))


@pytest.fixture(scope="module")
def lake(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return duckdb(server, tmp_path_factory.mktemp("duckdb"))


def both_read(table: Table, lake: Any, rows: list[dict[str, Any]]) -> None:
    assert table.rows() == sorted(rows, key=lambda row: str(row))
    names = ", ".join(rows[0])
    found = lake.execute(
        f"SELECT {names} FROM {table.server.dev['warehouse']}.{table.name}").fetchall()
    assert sorted(map(str, found)) == sorted(str(tuple(row.values())) for row in rows)


# ---- files ----

@pytest.mark.parametrize("codec", ["zstd", "snappy", "gzip", "uncompressed", "lz4"])
def test_the_codec_of_the_table_is_written(server: Server, lake: Any, codec: str) -> None:
    """What is not written becomes zstd."""
    table = Table(server, f"codec_{codec}", {"id": "long", "s": "string"},
                  properties={"write.parquet.compression-codec": codec})
    rows = [{"id": n, "s": "text " * 40} for n in range(50)]
    table.roll(rows)
    column = pq.read_metadata(table.files()[0]).row_group(0).column(1)
    assert column.compression == ("ZSTD" if codec == "lz4" else codec.upper())
    both_read(table, lake, rows)


def test_row_groups_and_pages_are_as_small_as_asked(server: Server, lake: Any) -> None:
    table = Table(server, "small_groups", {"id": "long", "s": "string"}, properties={
        "write.parquet.row-group-size-bytes": "20000", "write.parquet.page-row-limit": "50",
        "write.parquet.page-size-bytes": "2000"})
    rows = [{"id": n, "s": f"text number {n} " * 4} for n in range(2000)]
    table.roll(rows)
    metadata = pq.read_metadata(table.files()[0])
    assert metadata.num_row_groups > 3
    assert table.entries()[0]["data_file"]["split_offsets"] == sorted(table.entries()[0]["data_file"]["split_offsets"])
    both_read(table, lake, rows)


def test_metrics_are_told_as_asked(server: Server) -> None:
    table = Table(server, "metrics", {"a": "string", "b": "string", "c": "string", "d": "string"}, properties={
        "write.metadata.metrics.default": "truncate(4)", "write.metadata.metrics.column.b": "none",
        "write.metadata.metrics.column.c": "counts", "write.metadata.metrics.column.d": "full"})
    table.roll([{name: "abcdefghijklmnopqrstuvwxyz" for name in "abcd"}])
    data = table.entries()[0]["data_file"]
    counts, lower, upper = ({item["key"]: item["value"] for item in data[key]}
                            for key in ("value_counts", "lower_bounds", "upper_bounds"))
    assert counts == {1: 1, 3: 1, 4: 1, 5: 1}  # and the arrival
    assert (lower[1], upper[1]) == (b"abcd", b"abce")
    assert lower[4] == upper[4] == b"abcdefghijklmnopqrstuvwxyz"
    assert not {2, 3} & (set(lower) | set(upper))


def test_bloom_filters_are_written_on_request(server: Server, lake: Any) -> None:
    table = Table(server, "bloom", {"a": "string", "b": "string"},
                  properties={"write.parquet.bloom-filter-enabled.column.a": "true"})
    rows = [{"a": f"key {n}", "b": f"key {n}"} for n in range(200)]
    table.roll(rows)
    found = lake.execute("SELECT path_in_schema, bloom_filter_length > 0 FROM parquet_metadata($1) ORDER BY 1",
                         [str(table.files()[0])]).fetchall()
    assert [name for name, filtered in found if filtered] == ["a"]
    both_read(table, lake, rows)


# ---- places ----

def test_files_lie_where_the_table_says(server: Server, lake: Any) -> None:
    home = server.data / "warehouse" / server.dev["warehouse"] / "tables" / "elsewhere"
    table = Table(server, "placed", {"id": "long"}, properties={
        "write.data.path": f"file://{home}/d/", "write.metadata.path": f"file://{home}/m"})
    table.roll([{"id": 1}])
    assert table.files()[0].parent == home / "d"
    assert local(table.load().metadata_location).parent == home / "m"
    assert local(table.head()["manifest-list"]).parent == home / "m"
    both_read(table, lake, [{"id": 1}])


def test_hashed_paths_are_those_of_the_reference_library(server: Server, lake: Any) -> None:
    table = Table(server, "hashed", {"id": "long", "d": "date"}, format_version=3, partition=["month(d)"],
                  properties={"write.object-storage.enabled": "true"})
    rows = [{"id": n, "d": f"2026-{n + 1:02}-03"} for n in range(3)]
    table.roll(rows)
    folder = local(table.metadata()["location"]) / "data"
    for path in table.files():
        parts = path.relative_to(folder).parts
        assert "/".join(parts[:4]) == ObjectStoreLocationProvider._compute_hash("/".join(parts[4:]))
        assert re.fullmatch(r"d_month=2026-0[123]", parts[4])
    both_read(table, lake, [{**row, "d": datetime.date.fromisoformat(row["d"])} for row in rows])


def test_places_outside_are_refused(server: Server) -> None:
    answer = server.call("POST", "/v1/tables", {
        "table": f"{server.dev['warehouse']}.kept.outside", "columns": [{"name": "id", "type": "long"}],
        "properties": {"write.data.path": "file:///somewhere/else"}})
    assert answer.status in (403, 409) and answer.code == "location_refused", answer


def test_iceberg_8_1_24_gzipped_metadata_has_its_suffix(server: Server, lake: Any) -> None:
    table = Table(server, "gzipped", {"id": "long"}, properties={"write.metadata.compression-codec": "gzip"})
    table.roll([{"id": 1}])
    path = local(table.load().metadata_location)
    assert path.name.endswith(".gz.metadata.json") and path.read_bytes()[:2] == b"\x1f\x8b"
    both_read(table, lake, [{"id": 1}])


# ---- schema ----

def test_iceberg_8_6_93_a_name_mapping_knows_the_new_column(server: Server) -> None:
    mapping = [{"field-id": 1, "names": ["id", "old.id"]}]
    table = Table(server, "mapped", {"id": "long"}, properties={"schema.name-mapping.default": json.dumps(mapping)})
    table.roll([{"id": 1}])
    metadata = table.metadata()
    assert json.loads(metadata["properties"]["schema.name-mapping.default"]) == [
        *mapping, {"field-id": metadata["last-column-id"], "names": ["__ingest_ts"]}]
    assert table.load().name_mapping() is not None
    plain = Table(server, "unmapped", {"id": "long"})
    plain.roll([{"id": 1}])
    assert "schema.name-mapping.default" not in plain.metadata()["properties"]


def test_iceberg_8_3_62_filters_on_a_promoted_column_find_older_files(server: Server, lake: Any) -> None:
    """Older files have bounds of four bytes for a column that is now a long, or a wider decimal."""
    table = Table(server, "promoted", {"n": "int", "m": "decimal(4,2)", "f": "float"})
    table.roll([{"n": n, "m": f"{n}.25", "f": n + 0.5} for n in (-7, 40)])
    with table.load().update_schema() as update:
        update.update_column("n", LongType())
    table.roll([{"n": 2**40, "m": "7.25", "f": 1.5}])
    loaded = table.load()
    for value in (-7, 40, 2**40):
        assert loaded.scan(row_filter=EqualTo("n", value)).to_arrow()["n"].to_pylist() == [value]
    assert sorted(loaded.scan(row_filter=GreaterThan("n", -8)).to_arrow()["n"].to_pylist()) == [-7, 40, 2**40]
    for value in (-7, 40, 2**40):
        assert lake.execute(f"SELECT n FROM {server.dev['warehouse']}.{table.name} WHERE n = {value}").fetchall() == [(value,)]


def test_statistics_entries_are_kept(server: Server) -> None:
    """iceberg_8_1_7: of the statistics, those of a snapshot that is still there."""
    table = Table(server, "kept", {"id": "long"})
    head = table.roll([{"id": 1}])
    base = f"{server.data}/x.puffin"
    statistics = {"snapshot-id": head["snapshot-id"], "statistics-path": base, "file-size-in-bytes": 1,
                  "file-footer-size-in-bytes": 1, "blob-metadata": []}
    answer = server.call("POST", f"/iceberg/v1/{server.dev['warehouse']}/namespaces/kept/tables/kept", {
        "requirements": [], "updates": [{"action": "set-statistics", "statistics": statistics}]})
    assert answer.status == 200, answer
    table.roll([{"id": 2}])
    assert table.metadata()["statistics"] == [statistics]


def test_members_that_we_do_not_know_are_kept(server: Server) -> None:
    """iceberg_8_1_11: another writer's, at every place, and numbers that no double holds."""
    source = Table(server, "known", {"id": "long"})
    source.roll([{"id": 1}])
    document = source.metadata()
    odd = {"deep": [1, 9007199254740993, 0.1, None, {"é": "\u0000"}]}
    document.update({"x-top": odd, "table-uuid": "0f9a7c1e-3b2d-4c5a-9e8f-123456789abc"})
    document["schemas"][0]["x-schema"] = document["snapshots"][0]["x-snapshot"] = odd
    document["properties"].pop("lakehousebox.sink.roll")
    path = local(source.load().metadata_location).with_name("00009-0f9a7c1e-3b2d-4c5a-9e8f-123456789abc.metadata.json")
    path.write_text(json.dumps(document))
    answer = server.call("POST", f"/iceberg/v1/{server.dev['warehouse']}/namespaces/kept/register",
                         {"name": "odd", "metadata-location": f"file://{path}"})
    assert answer.status == 200, answer
    assert server.call("DELETE", f"/v1/sinks/{source.sink['id']}").status == 202
    sink = server.make_sink("kept.odd", "odd_in")
    assert server.send(sink, "b", [{"id": 2}]).status == 202
    server.roll(sink)
    after = read_metadata(local(pyiceberg(server).load_table("kept.odd").metadata_location))
    assert len(after["snapshots"]) > len(document["snapshots"])
    old = next(s for s in after["snapshots"] if s["snapshot-id"] == document["snapshots"][0]["snapshot-id"])
    assert after["x-top"] == after["schemas"][0]["x-schema"] == old["x-snapshot"] == odd


def test_iceberg_8_3_63_a_sort_order_is_not_claimed(server: Server, lake: Any) -> None:
    table = Table(server, "sorted", {"id": "long"})
    answer = server.call("POST", f"/iceberg/v1/{server.dev['warehouse']}/namespaces/kept/tables/sorted", {
        "requirements": [], "updates": [
            {"action": "add-sort-order", "sort-order": {"order-id": 1, "fields": [
                {"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}]}},
            {"action": "set-default-sort-order", "sort-order-id": -1}]})
    assert answer.status == 200, answer
    table.roll([{"id": 2}, {"id": 1}])
    assert table.metadata()["default-sort-order-id"] == 1
    assert [entry["data_file"]["sort_order_id"] for entry in table.entries()] == [None]
    both_read(table, lake, [{"id": 1}, {"id": 2}])


# ---- partitions ----

TIMES = ["0001-01-01T00:00:00", "1969-12-31T23:59:59.999999", "1969-12-31T22:59:59.999999", "1970-01-01T00:00:00",
         "1968-02-29T00:00:00.000001", "2026-11-30T23:59:59", None]
TRANSFORMS = {"year": YearTransform(), "month": MonthTransform(), "day": DayTransform(), "hour": HourTransform()}


@pytest.mark.parametrize("type_", ["date", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"])
def test_partitions_of_every_transform_before_and_after_1970(server: Server, type_: str) -> None:
    """One file per value, null included, each with the value that the rows have (the strict checker makes it again); a
    filter by any of the times finds its row. The source stands in the file, too: iceberg_8_4_72, iceberg_8_5_74_75_77."""
    names = [name for name in TRANSFORMS if type_ != "date" or name != "hour"]
    columns = {"n": "int", **{f"t_{name}": type_ for name in names}}
    table = Table(server, f"parts_{type_}", columns, format_version=3, partition=[f"{name}(t_{name})" for name in names])
    times = [time for time in TIMES if time is None or not type_.endswith("_ns") or time > "1677"]
    sent = [None if time is None else time[:10] if type_ == "date" else time + ("Z" if "tz" in type_ else "") for time in times]
    table.roll([{"n": n, **{f"t_{name}": value for name in names}} for n, value in enumerate(sent)])
    tuples = [tuple(entry["data_file"]["partition"].values()) for entry in table.entries()]
    assert len(tuples) == len(set(tuples)) == len(set(sent))
    assert (None,) * len(names) in tuples
    if not type_.endswith("_ns"):
        for n, value in enumerate(sent):
            if value is not None:
                found = table.load().scan(row_filter=EqualTo(f"t_{names[0]}", value.replace("Z", "+00:00"))).to_arrow()["n"].to_pylist()
                assert n in found and len(found) == sent.count(value)


def test_void_fields_are_null_and_no_partition(server: Server, lake: Any) -> None:
    """A dropped field of a specification stays in it as void where the table's version wants so."""
    table = Table(server, "voided", {"id": "long", "d": "date"}, format_version=3, partition=["day(d)"])
    table.roll([{"id": 1, "d": "2026-01-01"}])
    answer = server.call("POST", f"/iceberg/v1/{server.dev['warehouse']}/namespaces/kept/tables/voided", {
        "requirements": [], "updates": [
            {"action": "add-spec", "spec": {"spec-id": 5, "fields": [
                {"source-id": 2, "field-id": 1000, "name": "d_day", "transform": "void"}]}},
            {"action": "set-default-spec", "spec-id": -1}]})
    assert answer.status == 200, answer
    table.roll([{"id": 2, "d": "2026-01-02"}, {"id": 3, "d": "2026-01-03"}])
    assert [entry["data_file"]["partition"] for entry in table.entries()] == [{"d_day": None}]
    day = datetime.date(2026, 1, 1)
    both_read(table, lake, [{"id": n, "d": day + datetime.timedelta(days=n - 1)} for n in (1, 2, 3)])


def test_a_specification_that_changes_between_rolls_is_followed(server: Server) -> None:
    """iceberg_8_2_51 and iceberg_8_6_92: new files are under the new one, old manifests keep theirs."""
    table = Table(server, "respecified", {"id": "long", "ts": "timestamp"}, format_version=3, partition=["month(ts)"])
    at = ["2026-01-01T01:00:00", "2026-01-01T02:00:00", "2026-02-01T01:00:00"]
    table.roll([{"id": n, "ts": ts} for n, ts in enumerate(at)])
    assert len(table.files()) == 2
    with table.load().update_spec() as update:
        update.remove_field("ts_month")
        update.add_field("ts", DayTransform(), "ts_day")
    table.roll([{"id": n, "ts": ts} for n, ts in enumerate(at, 3)])
    with table.load().update_spec() as update:
        update.remove_field("ts_day")
    table.roll([{"id": n, "ts": ts} for n, ts in enumerate(at, 6)])
    lists = Avro(local(table.head()["manifest-list"])).rows
    assert [row["partition_spec_id"] for row in lists] == [2, 1, 0]
    found = table.load().scan(row_filter=EqualTo("ts", at[1])).to_arrow()["id"].to_pylist()
    assert sorted(found) == [1, 4, 7]
    assert len(table.load().scan().to_arrow()) == 9


def test_partitions_that_a_sink_does_not_write_are_refused(server: Server) -> None:
    """Identity, bucket and truncate: at the sink's creation, and when an engine adds one later."""
    for name, partition in (("identity", ["s"]), ("bucket", ["bucket[4](s)"]), ("truncate", ["truncate[2](s)"])):
        server.make_table(f"kept.by_{name}", {"s": "string"}, format_version=3, partition=partition)
        answer = server.call("POST", "/v1/sinks", {"name": f"by_{name}", "table": f"kept.by_{name}",
                                                   "warehouse": server.dev["warehouse"]})
        assert (answer.status, answer.code) == (409, "partitioned_table_unsupported"), answer
    server.make_table("kept.by_day_v2", {"d": "date"}, partition=["day(d)"])
    answer = server.call("POST", "/v1/sinks", {"name": "by_day_v2", "table": "kept.by_day_v2",
                                               "warehouse": server.dev["warehouse"]})
    assert (answer.status, answer.code) == (409, "partitioned_table_unsupported"), answer
    table = Table(server, "later", {"s": "string"}, format_version=3)
    table.roll([{"s": "a"}])
    with table.load().update_spec() as update:
        update.add_field("s", IdentityTransform(), "s_part")
    assert server.send(table.sink, "waits", [{"s": "b"}]).status == 202
    server.call("POST", f"/v1/sinks/{table.sink['id']}/roll?wait=3")
    shown = server.call("GET", f"/v1/sinks/{table.sink['id']}").json
    assert (shown["state"], shown["state_reason"]) == ("disabled", "schema_unsupported"), shown
    assert shown["books"]["pending"] == 1 and shown["books"]["difference"] == 0


# ---- snapshots ----

def test_iceberg_8_6_88_the_parent_is_the_head_of_main(server: Server) -> None:
    """Whatever a branch of an engine has on top; its refs stay, retention included (iceberg_8_1_10)."""
    table = Table(server, "branched", {"id": "long"})
    first = table.roll([{"id": 1}])
    with table.load().manage_snapshots() as manage:
        manage.create_branch(first["snapshot-id"], "audit", max_snapshot_age_ms=86400000, min_snapshots_to_keep=3)
        manage.create_tag(first["snapshot-id"], "v1", max_ref_age_ms=8640000000)
    loaded = table.load()
    loaded.append(loaded.scan().to_arrow(), branch="audit")
    refs = table.metadata()["refs"]
    assert refs["audit"]["snapshot-id"] != first["snapshot-id"]
    second = table.roll([{"id": 2}])
    metadata = table.metadata()
    assert second["parent-snapshot-id"] == first["snapshot-id"]
    assert second["sequence-number"] == 3 == metadata["last-sequence-number"]
    assert {name: ref for name, ref in metadata["refs"].items() if name != "main"} == {
        name: ref for name, ref in refs.items() if name != "main"}
    assert [entry["snapshot-id"] for entry in metadata["snapshot-log"]] == [first["snapshot-id"], second["snapshot-id"]]


def test_row_ids_go_on_from_roll_to_roll(server: Server, lake: Any) -> None:
    """DuckDB shows the row ids that a version 3 table's manifests give: one each, none twice."""
    table = Table(server, "lineage", {"id": "long", "d": "date"}, format_version=3, partition=["day(d)"])
    for roll in range(3):
        table.roll([{"id": 10 * roll + n, "d": f"2026-01-0{n + 1}"} for n in range(5)])
    metadata = table.metadata()
    assert metadata["next-row-id"] == 15
    assert [(s["first-row-id"], s["added-rows"]) for s in metadata["snapshots"]] == [(0, 5), (5, 5), (10, 5)]
    found = lake.execute(f"SELECT _row_id, id FROM {server.dev['warehouse']}.{table.name} ORDER BY 1").fetchall()
    assert [row_id for row_id, _ in found] == list(range(15))
    assert all(row_id // 5 == value // 10 for row_id, value in found)
