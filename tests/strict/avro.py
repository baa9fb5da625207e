"""Manifest lists and manifests: exact schemas, header, counts, sequence numbers, row ids, partition bounds.

Files that other writers made are held to what every reader needs; our own to the reference library's form as well.
"""
from __future__ import annotations

import datetime
import json
import struct
from pathlib import Path
from typing import Any, Iterator

import fastavro

EXISTING, ADDED, DELETED = 0, 1, 2
LIST = [("manifest_path", 500, "string"), ("manifest_length", 501, "long"), ("partition_spec_id", 502, "int"),
        ("content", 517, "int"), ("sequence_number", 515, "long"), ("min_sequence_number", 516, "long"),
        ("added_snapshot_id", 503, "long"), ("added_files_count", 504, "int"), ("existing_files_count", 505, "int"),
        ("deleted_files_count", 506, "int"), ("added_rows_count", 512, "long"), ("existing_rows_count", 513, "long"),
        ("deleted_rows_count", 514, "long"), ("partitions", 507, "r508"), ("key_metadata", 519, "?bytes"),
        ("first_row_id", 520, "?long 3")]
SUMMARY = [("contains_null", 509, "boolean"), ("contains_nan", 518, "?boolean"), ("lower_bound", 510, "?bytes"),
           ("upper_bound", 511, "?bytes")]
ENTRY = [("status", 0, "int"), ("snapshot_id", 1, "?long"), ("sequence_number", 3, "?long"),
         ("file_sequence_number", 4, "?long")]
FILE = [("content", 134, "int"), ("file_path", 100, "string"), ("file_format", 101, "string"), ("partition", 102, "r102"),
        ("record_count", 103, "long"), ("file_size_in_bytes", 104, "long"), ("column_sizes", 108, "map 117 118 long"),
        ("value_counts", 109, "map 119 120 long"), ("null_value_counts", 110, "map 121 122 long"),
        ("nan_value_counts", 137, "map 138 139 long"), ("lower_bounds", 125, "map 126 127 bytes"),
        ("upper_bounds", 128, "map 129 130 bytes"), ("key_metadata", 131, "?bytes"), ("split_offsets", 132, "list 133 long"),
        ("equality_ids", 135, "list 136 int"), ("sort_order_id", 140, "?int"), ("first_row_id", 142, "?long 3"),
        ("referenced_data_file", 143, "?string"), ("content_offset", 144, "?long 3"),
        ("content_size_in_bytes", 145, "?long 3")]
HEADER = {"schema", "schema-id", "partition-spec", "partition-spec-id", "format-version", "content"}
PARTITION_TYPES = {"day": {"type": "int", "logicalType": "date"}, "year": "int", "month": "int", "hour": "int"}


class Avro:
    """A whole Avro file. Of its records, maps keyed by integers are dicts."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            reader = fastavro.reader(file)
            self.rows: list[dict[str, Any]] = list(reader)
            self.codec, self.header = reader.codec, reader.metadata
        self.schema = json.loads(self.header["avro.schema"])


# ---- schemas ----

def optional(type_: Any) -> dict[str, Any]:
    return {"type": ["null", type_], "default": None}


def avro_field(name: str, field_id: int, kind: str, version: int) -> dict[str, Any] | None:
    words = kind.split()
    if words[-1] == "3":
        if version < 3:
            return None
        words.pop()
    if words[0] == "map":
        pair = [{"name": "key", "type": "int", "field-id": int(words[1])},
                {"name": "value", "type": words[3], "field-id": int(words[2])}]
        items = {"type": "record", "name": f"k{words[1]}_v{words[2]}", "fields": pair}
        rest = optional({"type": "array", "items": items, "logicalType": "map"})
    elif words[0] == "list":
        rest = optional({"type": "array", "items": words[2], "element-id": int(words[1])})
    elif words[0] == "r508":
        rest = optional({"type": "array", "element-id": 508,
                         "items": {"type": "record", "name": "r508", "fields": avro_fields(SUMMARY, version)}})
    elif words[0][0] == "?":
        rest = optional(words[0][1:])
    else:
        rest = {"type": words[0]}
    return {"name": name, **rest, "field-id": field_id}


def avro_fields(fields: list[tuple[str, int, str]], version: int) -> list[dict[str, Any]]:
    made = [avro_field(name, field_id, kind, version) for name, field_id, kind in fields]
    return [field for field in made if field is not None]


def list_schema(version: int) -> dict[str, Any]:
    return {"type": "record", "name": "manifest_file", "fields": avro_fields(LIST, version)}


def avro_name(name: str) -> str:
    """As the reference library makes Avro names of any names."""
    data = name.encode("utf-16-le")
    units = struct.unpack(f"<{len(data) // 2}H", data)
    out = ""
    for at, unit in enumerate(units):
        letter = chr(unit)
        if unit < 128 and (letter.isalpha() or letter == "_" or (letter.isdigit() and at > 0)):
            out += letter
        else:
            out += f"_{letter}" if unit < 128 and letter.isdigit() else f"_x{unit:X}"
    return out


def entry_schema(version: int, spec: list[dict[str, Any]]) -> dict[str, Any]:
    """Of a manifest under a spec of time transforms and void fields, which is what a sink writes."""
    partition = []
    for field in spec:
        name = avro_name(field["name"])
        own = {} if name == field["name"] else {"iceberg-field-name": field["name"]}
        type_ = PARTITION_TYPES.get(field["transform"])
        partition.append({"name": name, **optional(type_), "field-id": field["field-id"], **own})
    data = avro_fields(FILE, version)
    for field in data:
        if field["name"] == "partition":
            field["type"] = {"type": "record", "name": "r102", "fields": partition}
    return {"type": "record", "name": "manifest_entry", "fields": [
        *avro_fields(ENTRY, version),
        {"name": "data_file", "type": {"type": "record", "name": "r2", "fields": data}, "field-id": 2}]}


def without_types_of(schema: dict[str, Any], void: set[int]) -> dict[str, Any]:
    """The type of a void field is its source's, which may be gone: it is not compared."""
    for field in schema["fields"][-1]["type"]["fields"]:
        if field["name"] == "partition":
            for part in field["type"]["fields"]:
                if part["field-id"] in void:
                    part["type"] = ["null", None]
    return schema


# ---- manifest lists ----

def check_list(avro: Avro, table: dict[str, Any], snapshot: dict[str, Any], ours: bool) -> Iterator[str]:
    version = table["format-version"] if "first-row-id" in snapshot else 2
    if ours:
        if avro.schema != list_schema(version):
            yield "the Avro schema is not the reference library's"
        if avro.codec not in ("deflate", "null"):
            yield f"codec {avro.codec}"
        parent = str(snapshot.get("parent-snapshot-id", "null"))
        wanted = {"snapshot-id": str(snapshot["snapshot-id"]), "parent-snapshot-id": parent, "format-version": str(version),
                  "sequence-number": str(snapshot["sequence-number"])}
        for key, value in wanted.items():
            if avro.header.get(key) != value:
                yield f"header {key} is {avro.header.get(key)}, not {value}"
    paths = [row["manifest_path"] for row in avro.rows]
    if len(set(paths)) < len(paths):
        yield "a manifest stands twice"
    for row in avro.rows:
        yield from check_list_row(row, table, snapshot, ours)
    yield from check_row_ranges(avro.rows, snapshot, ours)


def check_list_row(row: dict[str, Any], table: dict[str, Any], snapshot: dict[str, Any], ours: bool) -> Iterator[str]:
    name = row["manifest_path"].rsplit("/", 1)[-1]
    specs = {spec["spec-id"]: spec["fields"] for spec in table["partition-specs"]}
    if row["partition_spec_id"] not in specs:
        yield f"{name}: spec {row['partition_spec_id']} is not there"
    elif ours and row["added_snapshot_id"] == snapshot["snapshot-id"] and \
            (row["partitions"] is None or len(row["partitions"]) != len(specs[row["partition_spec_id"]])):
        yield f"{name}: partitions {row['partitions']}"
    if not 0 <= row["min_sequence_number"] <= row["sequence_number"] <= snapshot.get("sequence-number", 0):
        yield f"{name}: sequence numbers {row['min_sequence_number']}, {row['sequence_number']}"
    if (row["added_snapshot_id"] == snapshot["snapshot-id"]) != (row["sequence_number"] == snapshot.get("sequence-number", 0)):
        yield f"{name}: added by {row['added_snapshot_id']} with sequence number {row['sequence_number']}"
    if not name.endswith(".avro"):
        yield f"{name} does not end in .avro"
    if "//" in row["manifest_path"].split("://", 1)[-1][1:]:
        yield f"{name}: // in the path"


def check_row_ranges(rows: list[dict[str, Any]], snapshot: dict[str, Any], ours: bool) -> Iterator[str]:
    if "first-row-id" not in snapshot:
        return
    ranges = []
    for row in rows:
        first = row.get("first_row_id")
        if (first is None) != (row["content"] == 1) and (ours or row["content"] == 0):  # DuckDB numbers deletes
            yield f"first_row_id {first} of a manifest of content {row['content']}"
        elif first is not None and row["content"] == 0:
            ranges.append((first, first + row["added_rows_count"] + row["existing_rows_count"]))
    ranges.sort()
    if any(before[1] > after[0] for before, after in zip(ranges, ranges[1:])):
        yield "row ids of manifests overlap"
    if ranges and ranges[-1][1] > snapshot["first-row-id"] + snapshot["added-rows"]:
        yield "row ids reach past the snapshot's"


# ---- manifests ----

def check_manifest(avro: Avro, row: dict[str, Any], table: dict[str, Any], ours: bool) -> Iterator[str]:
    if not avro.rows:
        yield "has no entries"
        return
    specs = {spec["spec-id"]: spec["fields"] for spec in table["partition-specs"]}
    spec = specs.get(row["partition_spec_id"], [])
    if ours:
        yield from check_header(avro, row, table, spec)
    yield from check_counts(avro.rows, row)
    for entry in avro.rows:
        yield from check_entry(entry, row, table, ours)
    if ours:
        yield from check_partition_bounds(avro.rows, row, spec)


def check_header(avro: Avro, row: dict[str, Any], table: dict[str, Any], spec: list[dict[str, Any]]) -> Iterator[str]:
    header = avro.header
    yield from (f"header {key} is missing" for key in sorted(HEADER - set(header)))
    version = int(header.get("format-version", "0"))
    if version not in (2, 3) or version > table["format-version"]:
        yield f"format-version {version}"
    else:
        void = {field["field-id"] for field in spec if field["transform"] == "void"}
        if without_types_of(avro.schema, void) != without_types_of(entry_schema(version, spec), void):
            yield "the Avro schema is not the reference library's"
    if avro.codec not in ("deflate", "null"):
        yield f"codec {avro.codec}"
    if json.loads(header.get("partition-spec", "null")) != spec:
        yield f"header partition-spec is {header.get('partition-spec')}"
    if header.get("partition-spec-id") != str(row["partition_spec_id"]):
        yield f"header partition-spec-id is {header.get('partition-spec-id')}"
    schema = json.loads(header.get("schema", "{}"))
    if schema not in table["schemas"] or header.get("schema-id") != str(schema.get("schema-id")):
        yield "header schema is none of the table's"
    if header.get("content") != ("deletes" if row["content"] else "data"):
        yield f"header content is {header.get('content')}"


def check_counts(entries: list[dict[str, Any]], row: dict[str, Any]) -> Iterator[str]:
    for status, word in ((ADDED, "added"), (EXISTING, "existing"), (DELETED, "deleted")):
        found = [entry["data_file"]["record_count"] for entry in entries if entry["status"] == status]
        told = row[f"{word}_files_count"], row[f"{word}_rows_count"]
        if told != (len(found), sum(found)):
            yield f"{word}: {len(found)} files, {sum(found)} rows; the list says {told}"
    live = [row["sequence_number"] if entry["sequence_number"] is None else entry["sequence_number"]
            for entry in entries if entry["status"] != DELETED]
    if live and min(live) != row["min_sequence_number"]:
        yield f"the smallest sequence number is {min(live)}; the list says {row['min_sequence_number']}"


def check_entry(entry: dict[str, Any], row: dict[str, Any], table: dict[str, Any], ours: bool) -> Iterator[str]:
    data, status = entry["data_file"], entry["status"]
    name = data["file_path"].rsplit("/", 1)[-1]
    numbers = [entry["snapshot_id"], entry["sequence_number"], entry["file_sequence_number"]]
    if status != ADDED and None in numbers and (ours or row["content"] == 0):  # DuckDB of deletion vectors it replaces
        yield f"{name}: an entry that is not added has {numbers}"
    if ours and (status != ADDED or numbers != [row["added_snapshot_id"], None, None]):
        yield f"{name}: status {status} with {numbers}"
    if data.get("first_row_id") is not None and status == ADDED and row["content"] == 0 and ours:
        yield f"{name}: first_row_id {data['first_row_id']} of an added file"
    if (data["content"] == 0) != (row["content"] == 0):
        yield f"{name}: content {data['content']} in a manifest of content {row['content']}"
    if data["file_format"].upper() not in ("PARQUET", "PUFFIN") or (ours and data["file_format"] != "PARQUET"):
        yield f"{name}: format {data['file_format']}"
    if ours and ([] in (data["split_offsets"], data["equality_ids"]) or data["sort_order_id"] is not None):
        yield f"{name}: an empty list, or sort order {data['sort_order_id']}"
    orders = {order["order-id"] for order in table["sort-orders"]}
    if data.get("sort_order_id") is not None and data["sort_order_id"] not in orders:
        yield f"{name}: sort order {data['sort_order_id']} is not there"


# ---- partitions ----

EPOCH = datetime.date(1970, 1, 1)


def partition_tuple(entry: dict[str, Any]) -> list[int | None]:
    """The values, dates as days."""
    values = entry["data_file"]["partition"].values()
    return [(value - EPOCH).days if isinstance(value, datetime.date) else value for value in values]


def check_partition_bounds(entries: list[dict[str, Any]], row: dict[str, Any], spec: list[dict[str, Any]]) -> Iterator[str]:
    tuples = [partition_tuple(entry) for entry in entries]
    for at, (field, told) in enumerate(zip(spec, row["partitions"] or [])):
        values = [values[at] for values in tuples]
        there = [value for value in values if value is not None]
        wanted = {"contains_null": None in values, "contains_nan": False,
                  "lower_bound": struct.pack("<i", min(there)) if there else None,
                  "upper_bound": struct.pack("<i", max(there)) if there else None}
        if told != wanted:
            yield f"partition {field['name']}: {told}, not {wanted}"
