"""Data files against what manifests say of them: sizes, counts and bounds are made again from the rows."""
from __future__ import annotations

import datetime
import decimal
import json
import math
import struct
from pathlib import Path
from typing import Any, Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from strict.avro import partition_tuple

PHYSICAL = {"boolean": "BOOLEAN", "int": "INT32", "date": "INT32", "long": "INT64", "time": "INT64", "timestamp": "INT64",
            "timestamptz": "INT64", "timestamp_ns": "INT64", "timestamptz_ns": "INT64", "float": "FLOAT",
            "double": "DOUBLE", "string": "BYTE_ARRAY", "binary": "BYTE_ARRAY", "uuid": "FIXED_LEN_BYTE_ARRAY"}
LOGICAL = {"string": "String", "uuid": "UUID", "date": "Date", "time": "Time", "timestamp": "Timestamp",
           "timestamptz": "Timestamp", "timestamp_ns": "Timestamp", "timestamptz_ns": "Timestamp"}
UTC = {"timestamptz": True, "timestamptz_ns": True, "timestamp": False, "timestamp_ns": False, "time": False}


class Leaf:
    """A primitive column of the schema: its id, type, path in the file, and whether it repeats. The two parts of a
    variant have no id."""

    def __init__(self, field_id: int | None, type_: str, path: list[str], repeats: bool) -> None:
        self.id, self.type, self.path, self.repeats = field_id, type_, path, repeats


def leaves(fields: list[dict[str, Any]], path: list[str], repeats: bool) -> Iterator[Leaf]:
    for field in fields:
        type_, here = field["type"], [*path, field["name"]]
        if type_ == "variant":
            yield from (Leaf(None, "binary", [*here, part], repeats) for part in ("metadata", "value"))
        elif isinstance(type_, str):
            if type_ != "unknown":
                yield Leaf(field["id"], type_, here, repeats)
        elif type_["type"] == "struct":
            yield from leaves(type_["fields"], here, repeats)
        elif type_["type"] == "list":
            element = {"id": type_["element-id"], "name": "element", "type": type_["element"]}
            yield from leaves([element], [*here, "list"], True)
        else:
            pair = [{"id": type_["key-id"], "name": "key", "type": type_["key"]},
                    {"id": type_["value-id"], "name": "value", "type": type_["value"]}]
            yield from leaves(pair, [*here, "key_value"], True)


def check_file(path: Path, entry: dict[str, Any], schema: dict[str, Any], spec: list[dict[str, Any]],
               metrics_are_ours: bool) -> Iterator[str]:
    """A Parquet file that a sink wrote, whose manifest has this schema and spec. `metrics_are_ours`: the table asks for
    no other bounds than the usual."""
    data = entry["data_file"]
    with pq.ParquetFile(path) as file:
        footer, wanted = file.metadata, list(leaves(schema["fields"], [], False))
        if footer.num_rows != data["record_count"]:
            yield f"{footer.num_rows} rows, the manifest says {data['record_count']}"
        splits = [first_page(footer.row_group(i).column(0)) for i in range(footer.num_row_groups)]
        if data["split_offsets"] != splits:
            yield f"row groups begin at {splits}, the manifest says {data['split_offsets']}"
        found = [footer.schema.column(i) for i in range(footer.num_columns)]
        if [column.path for column in found] != [".".join(leaf.path) for leaf in wanted]:
            yield f"columns {[column.path for column in found]}"
            return
        if json.loads((footer.metadata or {}).get(b"iceberg.schema", b"{}")).get("fields") is None:
            yield "iceberg.schema is missing"
        for column, leaf in zip(found, wanted):
            yield from check_column(column, leaf)
        yield from check_field_ids(list(file.schema_arrow), schema["fields"])
        rows = file.read()
    yield from check_metrics(footer, rows, wanted, data, metrics_are_ours)
    yield from check_partition(rows, schema, spec, entry)


def first_page(column: Any) -> int:
    dictionary = column.dictionary_page_offset
    return min(column.data_page_offset, dictionary) if dictionary else column.data_page_offset


# ---- schema ----

def check_column(column: Any, leaf: Leaf) -> Iterator[str]:
    name, physical = column.path, PHYSICAL.get(leaf.type, "FIXED_LEN_BYTE_ARRAY")
    logical = json.loads(column.logical_type.to_json())
    if leaf.type.startswith("decimal"):
        precision, scale = (int(part) for part in leaf.type[8:-1].split(","))
        physical = "INT32" if precision <= 9 else "INT64" if precision <= 18 else "FIXED_LEN_BYTE_ARRAY"
        if (logical.get("precision"), logical.get("scale")) != (precision, scale):
            yield f"{name}: {logical} for {leaf.type}"
    if column.physical_type != physical:
        yield f"{name}: {column.physical_type} for {leaf.type}"
    if leaf.type in UTC and logical.get("isAdjustedToUTC") != UTC[leaf.type]:
        yield f"{name}: {logical} for {leaf.type}"
    if leaf.type in UTC and logical.get("timeUnit") != ("nanoseconds" if leaf.type.endswith("_ns") else "microseconds"):
        yield f"{name}: {logical} for {leaf.type}"
    wanted = "Decimal" if leaf.type.startswith("decimal") else LOGICAL.get(leaf.type, "None")
    if logical.get("Type") != wanted:
        yield f"{name}: {logical} for {leaf.type}"


def arrow_children(type_: pa.DataType) -> list[pa.Field]:
    if pa.types.is_map(type_):
        return [type_.key_field, type_.item_field]
    if pa.types.is_list(type_):
        return [type_.value_field]
    return [type_.field(i) for i in range(type_.num_fields)]


def children(type_: Any) -> list[dict[str, Any]]:
    """The named fields right below a nested type."""
    if not isinstance(type_, dict):
        return []
    if type_["type"] == "struct":
        return type_["fields"]
    keys = ["element"] if type_["type"] == "list" else ["key", "value"]
    return [{"id": type_[f"{key}-id"], "name": key, "type": type_[key], "required": type_.get(f"{key}-required", True)}
            for key in keys]


def check_field_ids(file: list[pa.Field], fields: list[dict[str, Any]]) -> Iterator[str]:
    """At every depth: the id, and that what is required is so in the file."""
    by_name = {field.name: field for field in file}
    for field in fields:
        found = by_name.get(field["name"])
        if found is None:
            continue  # unknown, and groups of nothing else
        field_id = (found.metadata or {}).get(b"PARQUET:field_id", b"").decode()
        if field_id != str(field["id"]):
            yield f"{field['name']}: field id {field_id!r}, not {field['id']}"
        if found.nullable == field["required"]:
            yield f"{field['name']}: nullable {found.nullable}, required {field['required']}"
        if isinstance(field["type"], dict):
            yield from check_field_ids(arrow_children(found.type), children(field["type"]))


# ---- metrics ----

def flat(rows: pa.Table, leaf: Leaf) -> pa.Array:
    """The leaf's values, null where anything above it is."""
    array = rows.column(leaf.path[0]).combine_chunks()
    array = array.chunk(0) if isinstance(array, pa.ChunkedArray) else array
    for name in leaf.path[1:]:
        array = pc.struct_field(array, name)
    return array


def value_bytes(type_: str, array: pa.Array) -> list[bytes]:
    """Iceberg's single-value form of each value that is there, and is no NaN."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    array = array.drop_null()
    if type_ in ("date", "time") or type_.startswith("timestamp"):
        array = array.cast(pa.int32() if type_ == "date" else pa.int64())
    form = {"int": "<i", "date": "<i", "float": "<f", "double": "<d"}.get(type_, "<q")
    values = array.to_pylist()
    if type_ == "boolean":
        return [b"\1" if value else b"\0" for value in values]
    if type_.startswith("decimal"):
        with decimal.localcontext(prec=60):
            numbers = [int(value.scaleb(array.type.scale)) for value in values]
        return [n.to_bytes(((n if n >= 0 else ~n).bit_length() + 8) // 8, "big", signed=True) for n in numbers]
    if type_ in ("string", "binary", "uuid") or type_.startswith("fixed"):
        values = [value.bytes if hasattr(value, "bytes") else value for value in values]
        return [value.encode() if isinstance(value, str) else bytes(value) for value in values]
    return [struct.pack(form, value) for value in values if not (isinstance(value, float) and math.isnan(value))]


def order(type_: str, value: bytes) -> Any:
    if type_ in ("float", "double"):
        bits = int.from_bytes(value, "little")
        top = 1 << (8 * len(value) - 1)
        return bits if bits < top else top - 1 - bits
    if type_.startswith("decimal"):
        return int.from_bytes(value, "big", signed=True)
    if type_ in ("string", "binary", "uuid", "boolean") or type_.startswith("fixed"):
        return value
    return int.from_bytes(value, "little", signed=True)


def raised(units: list[int], last: int) -> list[int] | None:
    while units:
        unit = units.pop() + 1
        if last > 0xFF and unit == 0xD800:
            unit = 0xE000
        if unit <= last:
            return [*units, unit]
    return None


def cut_bounds(type_: str, low: bytes, high: bytes, most: int) -> tuple[bytes, bytes | None]:
    """The least and greatest value as they are kept: so many code points or bytes, the upper one raised."""
    if type_ == "string":
        text, top = low.decode(), high.decode()
        if len(top) > most:
            units = raised([ord(letter) for letter in top[:most]], 0x10FFFF)
            return text[:most].encode(), None if units is None else "".join(map(chr, units)).encode()
        return text[:most].encode(), high
    if type_ == "binary":
        if len(high) > most:
            units = raised(list(high[:most]), 0xFF)
            return low[:most], None if units is None else bytes(units)
        return low[:most], high
    return low, high


def pairs(data: dict[str, Any], key: str) -> dict[int, Any]:
    return {item["key"]: item["value"] for item in data[key] or []}


def check_metrics(footer: Any, rows: pa.Table, wanted: list[Leaf], data: dict[str, Any], usual: bool) -> Iterator[str]:
    sizes, values, nulls, nans, lowers, uppers = (pairs(data, key) for key in (
        "column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds"))
    for at, leaf in enumerate(wanted):
        name = ".".join(leaf.path)
        if leaf.id is None:
            if any(footer.row_group(i).column(at).statistics.has_min_max for i in range(footer.num_row_groups)):
                yield f"{name}: bounds of a variant"
            continue
        size = sum(footer.row_group(i).column(at).total_compressed_size for i in range(footer.num_row_groups))
        if sizes.get(leaf.id) != size:
            yield f"{name}: {size} bytes, the manifest says {sizes.get(leaf.id)}"
        if leaf.repeats:
            if leaf.id in values or leaf.id in nulls or leaf.id in lowers or leaf.id in uppers:
                yield f"{name}: metrics below a list or map"
            continue
        if usual and at < 100 and leaf.id not in values:
            yield f"{name} has no counts"
        if leaf.id in values:
            yield from check_leaf(name, leaf, flat(rows, leaf), values[leaf.id], nulls.get(leaf.id), nans.get(leaf.id))
        if leaf.id in lowers or leaf.id in uppers or (usual and leaf.id in values):
            found = lowers.get(leaf.id), uppers.get(leaf.id)
            yield from check_bounds(name, leaf, value_bytes(leaf.type, flat(rows, leaf)), found, usual)


def check_leaf(name: str, leaf: Leaf, array: pa.Array, count: int, nulls: int | None, nans: int | None) -> Iterator[str]:
    nan_count = None
    if leaf.type in ("float", "double"):
        nan_count = pc.sum(pc.is_nan(array)).as_py() or 0
    if (count, nulls, nans) != (len(array), array.null_count, nan_count):
        yield f"{name}: values, nulls, NaNs {count, nulls, nans}; found {len(array), array.null_count, nan_count}"


def check_bounds(name: str, leaf: Leaf, values: list[bytes], told: tuple[bytes | None, bytes | None],
                 usual: bool) -> Iterator[str]:
    if not values:
        if told != (None, None):
            yield f"{name}: bounds {told} of no values"
        return
    low = min(values, key=lambda value: order(leaf.type, value))
    high = max(values, key=lambda value: order(leaf.type, value))
    lengths = [16] if usual else [16, 1 << 30, *range(1, 257)]
    if told not in [cut_bounds(leaf.type, low, high, most) for most in lengths]:
        yield f"{name}: bounds {told} of {low!r} and {high!r}"


# ---- partitions ----

def check_partition(rows: pa.Table, schema: dict[str, Any], spec: list[dict[str, Any]], entry: dict[str, Any]) -> Iterator[str]:
    names = {field["id"]: field for field in schema["fields"]}
    for field, told in zip(spec, partition_tuple(entry), strict=True):
        if field["transform"] == "void" or field["source-id"] not in names:
            if told is not None:
                yield f"partition {field['name']} is {told}"
            continue
        source = names[field["source-id"]]
        values = pc.unique(rows.column(source["name"])).cast(pa.int32() if source["type"] == "date" else pa.int64())
        found = {transformed(field["transform"], source["type"], value) for value in values.to_pylist()}
        if found != {told}:
            yield f"partition {field['name']} is {told}, the rows are of {sorted(map(str, found))[:5]}"


def transformed(transform: str, type_: str, value: int | None) -> int | None:
    if value is None:
        return None
    hour = {"date": 0}.get(type_, 3_600_000_000_000 if type_.endswith("_ns") else 3_600_000_000)
    days = value if hour == 0 else value // (24 * hour)
    if transform == "hour":
        return value // hour
    if transform == "day":
        return days
    date = datetime.date(1970, 1, 1) + datetime.timedelta(days=days)
    return date.year - 1970 if transform == "year" else (date.year - 1970) * 12 + date.month - 1
