"""The strict checker (tests/strict) finds what it must: tables of ours, damaged in one place each."""
from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any, Callable

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from programs import run  # noqa: E402
from strict.avro import Avro  # noqa: E402
from strict.check import Check, local, read_metadata  # noqa: E402


@pytest.fixture(scope="module", params=["2", "3"])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three snapshots; of version 3, partitioned by day."""
    home = tmp_path_factory.mktemp("whole")
    partitions = ["day(ts)"] if request.param == "3" else []
    return local(run("table_case", str(home), request.param, "append append append", *partitions).decode().strip())


class Table:
    """A copy of a table that may be damaged; its files still name each other by the first one's paths."""

    def __init__(self, whole: Path, home: Path) -> None:
        self.root, self.home = whole.parents[1], home / "copy"
        shutil.copytree(self.root, self.home)
        for path in self.home.rglob("*.avro"):
            rewrite(path, moved=(str(self.root), str(self.home)))
        self.metadata = self.home / "metadata" / whole.name
        text = self.metadata.read_text().replace(str(self.root), str(self.home))
        self.metadata.write_text(text)
        self.sizes()

    def sizes(self) -> None:
        """Lists say how long manifests are, which rewriting changed."""
        for path in self.lists():
            rewrite(path, rows=lambda rows: [row.update(manifest_length=local(row["manifest_path"]).stat().st_size)
                                             for row in rows])

    def lists(self) -> list[Path]:
        return [local(snapshot["manifest-list"]) for snapshot in self.json()["snapshots"]]

    def manifest(self) -> Path:
        return local(Avro(self.lists()[-1]).rows[0]["manifest_path"])

    def data(self) -> list[Path]:
        return [local(entry["data_file"]["file_path"]) for entry in Avro(self.manifest()).rows]

    def json(self) -> dict[str, Any]:
        return read_metadata(self.metadata)

    def faults(self) -> list[str]:
        return list(Check(self.metadata, ours=lambda snapshot: True).faults())


def rewrite(path: Path, rows: Callable[[list[Any]], Any] | None = None, schema: Callable[[Any], Any] | None = None,
            header: Callable[[dict[str, str]], Any] | None = None, moved: tuple[str, str] | None = None,
            codec: str = "deflate") -> None:
    avro = Avro(path)
    records, text = avro.rows, avro.header["avro.schema"]
    keys = {key: value for key, value in avro.header.items() if not key.startswith("avro.")}
    if moved:
        records = json_moved(records, *moved)
    if rows:
        rows(records)
    if schema:
        changed = json.loads(text)
        schema(changed)
        text = json.dumps(changed)
    if header:
        header(keys)
    with path.open("wb") as file:
        fastavro.writer(file, json.loads(text), records, codec=codec, metadata=keys)


def json_moved(value: Any, old: str, new: str) -> Any:
    if isinstance(value, dict):
        return {key: json_moved(inner, old, new) for key, inner in value.items()}
    if isinstance(value, list):
        return [json_moved(inner, old, new) for inner in value]
    return value.replace(old, new) if isinstance(value, str) else value


@pytest.fixture
def table(whole: Path, tmp_path: Path) -> Table:
    return Table(whole, tmp_path)


def test_a_whole_table_has_no_fault(table: Table) -> None:
    assert table.faults() == []


# ---- metadata ----

METADATA: dict[str, tuple[str, str]] = {
    "last-column-id is missing": ("del m['last-column-id']", "last-column-id is missing"),
    "next-row-id is missing": ("m['format-version'] == 3 and m.pop('next-row-id') or m.update({'next-row-id': 1})",
                               "next-row-id"),
    "a null parent": ("m['snapshots'][0]['parent-snapshot-id'] = None", "parent-snapshot-id is null"),
    "a null list": ("m['statistics'] = None", "statistics is null"),
    "a number in a summary": ("m['snapshots'][0]['summary']['total-records'] = 10", "is no string"),
    "a number as property": ("m['properties']['a'] = 1", "is no string"),
    "a reserved property": ("m['properties']['format-version'] = '2'", "is reserved"),
    "a slash at the end": ("m['location'] += '/'", "ends in /"),
    "a field id twice": ("m['schemas'][0]['fields'][1]['id'] = 1", "stands twice"),
    "field id 0": ("m['schemas'][0]['fields'][1]['id'] = 0", "field ids of schema"),
    "a field id past the last": ("m['schemas'][0]['fields'][1]['id'] = 99", "field ids of schema"),
    "a schema twice": ("m['schemas'].append(m['schemas'][0])", "schema-id . stands twice"),
    "no such schema": ("m['current-schema-id'] = 7", "current-schema-id 7 is not there"),
    "no such spec": ("m['default-spec-id'] = 7", "default-spec-id 7 is not there"),
    "no unsorted order": ("m['sort-orders'][0]['fields'] = [{}]", "sort order 0 has 1"),
    "a snapshot twice": ("m['snapshots'].append(m['snapshots'][0])", "stands twice"),
    "a number past the last": ("m['last-sequence-number'] = 2", "sequence number 3"),
    "a ref to nowhere": ("m['refs']['x'] = {'type': 'tag', 'snapshot-id': 5}", "which is not there"),
    "main is a tag": ("m['refs']['main']['type'] = 'tag'", "main is a tag"),
    "main is another": ("m['current-snapshot-id'] = m['snapshots'][0]['snapshot-id']", "main is|snapshot-log does not"),
    "a log that goes back": ("m['metadata-log'][-1]['timestamp-ms'] -= 10**9", "goes back|before the end"),
    "snapshots that go back": ("m['snapshot-log'][-1]['timestamp-ms'] -= 10**9", "goes back"),
    "a log past now": ("m['last-updated-ms'] -= 10**9", "before the end"),
    "no operation": ("del m['snapshots'][0]['summary']['operation']", "operation None"),
    "an unknown operation": ("m['snapshots'][0]['summary']['operation'] = 'upsert'", "operation upsert"),
    "a total that is wrong": ("m['snapshots'][2]['summary']['total-records'] = '31'", "total-records is 31"),
    "no files counted": ("m['snapshots'][2]['summary']['added-data-files'] = '0'", "added-data-files is 0"),
    "a parent that is later": ("m['snapshots'][2]['timestamp-ms'] = m['snapshots'][1]['timestamp-ms']", "not after its parent"),
    "partition id below 1000": ("m['partition-specs'][0]['fields'] = [{'field-id': 1, 'source-id': 1, 'name': 'p', "
                                "'transform': 'identity'}]", "partition field id 1"),
}


@pytest.mark.parametrize("name", METADATA)
def test_damaged_metadata_is_found(table: Table, name: str) -> None:
    """Among them field id 0 (iceberg_8_4_71) and a summary that counts no files (iceberg_8_1_15)."""
    damage, wanted = METADATA[name]
    document = table.json()
    exec(damage, {"m": document})
    table.metadata.write_text(json.dumps(document))
    assert any(re.search(wanted, fault) for fault in table.faults()), table.faults()


# ---- Avro files ----

def first(**values: Any) -> Callable[[list[Any]], Any]:
    return lambda rows: rows[0].update(values)


def data_file(**values: Any) -> Callable[[list[Any]], Any]:
    return lambda rows: rows[0]["data_file"].update(values)


LISTS: dict[str, tuple[dict[str, Any], str]] = {
    "length": ({"rows": lambda rows: rows[0].update(manifest_length=rows[0]["manifest_length"] + 1)}, "bytes, the list says"),
    "files": ({"rows": first(added_files_count=9)}, "added: "),
    "rows": ({"rows": first(added_rows_count=9)}, "added: "),
    "deleted rows": ({"rows": first(deleted_rows_count=1)}, "deleted: "),
    "smallest number": ({"rows": first(min_sequence_number=0)}, "smallest sequence number"),
    "number": ({"rows": first(sequence_number=9)}, "sequence numbers"),
    "adder": ({"rows": first(added_snapshot_id=9)}, "added by 9"),
    "no partitions": ({"rows": first(partitions=None)}, "partitions None"),
    "no such spec": ({"rows": first(partition_spec_id=9)}, "spec 9 is not there"),
    "content": ({"rows": first(content=1)}, "content"),
    "parent left out": ({"rows": lambda rows: rows.pop()}, "do not follow|is gone|total"),
    "parent's order": ({"rows": lambda rows: rows.reverse()}, "do not follow"),
    "a manifest twice": ({"rows": lambda rows: rows.append(rows[0])}, "stands twice"),
    "record name": ({"schema": lambda s: s.update(name="manifest")}, "Avro schema"),
    "field id": ({"schema": lambda s: s["fields"][1].pop("field-id")}, "Avro schema"),
    "field order": ({"schema": lambda s: s["fields"].reverse()}, "Avro schema"),
    "nullable count": ({"schema": lambda s: s["fields"][7].update(type=["null", "int"])}, "Avro schema"),
    "header": ({"header": lambda h: h.pop("sequence-number")}, "header sequence-number"),
    "codec": ({"codec": "bzip2"}, "codec bzip2"),
}
MANIFESTS: dict[str, tuple[dict[str, Any], str]] = {
    "record name": ({"schema": lambda s: s["fields"][4]["type"].update(name="data_file")}, "Avro schema"),
    "map type": ({"schema": lambda s: s["fields"][4]["type"]["fields"][7]["type"][1].pop("logicalType")}, "Avro schema"),
    "no default": ({"schema": lambda s: s["fields"][1].pop("default")}, "Avro schema"),
    "header": ({"header": lambda h: h.pop("content")}, "header content"),
    "spec in the header": ({"header": lambda h: h.update({"partition-spec": "null"})}, "header partition-spec"),
    "schema in the header": ({"header": lambda h: h.update({"schema": "{}"})}, "header schema"),
    "status": ({"rows": first(status=0)}, "existing: "),
    "snapshot": ({"rows": first(snapshot_id=9)}, "status 1 with"),
    "explicit number": ({"rows": first(sequence_number=3)}, "status 1 with"),
    "rows": ({"rows": data_file(record_count=9)}, "rows"),
    "size": ({"rows": data_file(file_size_in_bytes=9)}, "bytes, the manifest says 9"),
    "format": ({"rows": data_file(file_format="parquet")}, "format parquet"),
    "content": ({"rows": data_file(content=1)}, "content 1"),
    "splits": ({"rows": data_file(split_offsets=[5])}, "row groups begin"),
    "empty list": ({"rows": data_file(equality_ids=[])}, "an empty list"),
    "sort order": ({"rows": data_file(sort_order_id=0)}, "sort order 0"),
    "column sizes": ({"rows": data_file(column_sizes=[{"key": 1, "value": 1}])}, "bytes, the manifest says 1"),
    "value counts": ({"rows": data_file(value_counts=[{"key": 1, "value": 99}])}, "values, nulls, NaNs"),
    "no counts": ({"rows": data_file(value_counts=None)}, "has no counts"),
    "null counts": ({"rows": data_file(null_value_counts=[{"key": 1, "value": 9}])}, "values, nulls, NaNs"),
    "lower bound": ({"rows": data_file(lower_bounds=[{"key": 1, "value": b"\0" * 8}])}, "bounds"),
    "upper bound": ({"rows": data_file(upper_bounds=[{"key": 4, "value": b"row"}])}, "bounds"),
    "no bound": ({"rows": data_file(upper_bounds=None)}, "bounds"),
    "no entries": ({"rows": lambda rows: rows.clear()}, "has no entries"),
    "a file twice": ({"rows": lambda rows: rows.append(rows[0])}, "live twice|added: "),
    "a gone file": ({"rows": data_file(file_path="file:///nowhere.parquet")}, "is gone"),
}


@pytest.mark.parametrize("name", LISTS)
def test_damaged_lists_are_found(table: Table, name: str) -> None:
    """Codecs that not all read among them: iceberg_8_2_47."""
    damage, wanted = LISTS[name]
    rewrite(table.lists()[-1], **damage)
    assert any(re.search(wanted, fault) for fault in table.faults()), table.faults()


@pytest.mark.parametrize("name", MANIFESTS)
def test_damaged_manifests_are_found(table: Table, name: str) -> None:
    """A format in lower case (iceberg_8_2_46) and a manifest without entries (iceberg_8_2_52) among them."""
    damage, wanted = MANIFESTS[name]
    rewrite(table.manifest(), **damage)
    table.sizes()
    assert any(re.search(wanted, fault) for fault in table.faults()), table.faults()


def test_row_ids_that_overlap_are_found(table: Table) -> None:
    if table.json()["format-version"] == 3:
        rewrite(table.lists()[-1], rows=lambda rows: rows[0].update(first_row_id=rows[1]["first_row_id"] + 1))
        assert any("row ids of manifests overlap" in fault for fault in table.faults())
        rewrite(table.lists()[-1], rows=first(first_row_id=None))
        assert any("first_row_id None" in fault for fault in table.faults())


def test_partition_values_that_are_not_the_rows_are_found(table: Table) -> None:
    if table.json()["format-version"] == 3:
        rewrite(table.manifest(), rows=lambda rows: rows[0]["data_file"]["partition"].update(ts_day=None))
        table.sizes()
        assert any("partition ts_day is None, the rows are of" in fault for fault in table.faults())
        assert any("partition ts_day: {" in fault for fault in table.faults())


# ---- data files ----

def test_a_cut_file_is_found(table: Table) -> None:
    path = table.data()[0]
    path.write_bytes(path.read_bytes()[:-1])
    assert any("bytes, the manifest says" in fault for fault in table.faults())


def test_a_file_without_field_ids_or_with_other_types_is_found(table: Table) -> None:
    path = table.data()[0]
    rows = pq.read_table(path)
    for damaged, wanted in (
            (rows.replace_schema_metadata().cast(pa.schema([pa.field(f.name, f.type) for f in rows.schema])), "id: field id ''"),
            (rows.set_column(0, "id", rows["id"].cast(pa.int32())), "id: INT32 for long"),
            (rows.set_column(1, "ts", rows["ts"].cast(pa.timestamp("us"))), "isAdjustedToUTC"),
            (rows.drop_columns(["name"]), "columns \\[")):
        pq.write_table(damaged, path)
        rewrite(table.manifest(), rows=data_file(file_size_in_bytes=path.stat().st_size))
        table.sizes()
        assert any(re.search(wanted, fault) for fault in table.faults()), table.faults()


def test_the_rows_of_another_file_are_found(table: Table) -> None:
    manifest = Avro(table.manifest()).rows[0]["data_file"]
    other = next(local(row["data_file"]["file_path"])
                 for row in Avro(local(Avro(table.lists()[0]).rows[0]["manifest_path"])).rows)
    table.data()[0].write_bytes(other.read_bytes())
    rewrite(table.manifest(), rows=data_file(file_size_in_bytes=other.stat().st_size, record_count=manifest["record_count"]))
    table.sizes()
    assert any("bounds" in fault for fault in table.faults())
