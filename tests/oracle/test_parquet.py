"""Our Parquet files as others read them: values, schema, statistics, indexes.

The rows and what they hold come from tests/programs/parquet_case; pyarrow and DuckDB read the files.
"""
from __future__ import annotations

import json
import struct
import uuid
import zlib
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any, Iterator

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.io.pyarrow import (MetricModeTypes, MetricsMode, StatisticsCollector,
                                  data_file_statistics_from_parquet_metadata)
from pyiceberg.types import StringType

import parquet_thrift as thrift
from programs import run

CASES = ["types", "types_plain", "types_one_row", "nested", "nested_dictionary", "pages", "pages_small", "strings",
         "strings_in_groups", "strings_raised", "huge", "types_gzip", "types_snappy", "pages_by_rows", "metrics",
         "metrics_nested", "metrics_pages", "metrics_strings", "types_compact", "types_plain_compact", "nested_compact",
         "pages_compact", "pages_small_compact", "metrics_pages_compact", "numbers", "numbers_compact", "numbers_mixed_compact",
         "numbers_by_1_compact", "numbers_by_33_compact", "numbers_by_128_compact", "numbers_by_129_compact"]
PLAIN, RLE, DELTA, RLE_DICTIONARY, SPLIT = 0, 3, 5, 8, 9
COMPACT = {1: DELTA, 2: DELTA, 4: SPLIT, 5: SPLIT}  # by the physical type
NESTED = ("struct", "list", "map")


class Case:
    """A file, and what must be in it."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.path = path
        said = json.loads(run("parquet_case", name, str(path)))
        self.fields, self.rows, self.stats, self.options = said["fields"], said["rows"], said["stats"], said
        self.bytes = path.read_bytes()
        self.footer = thrift.footer(self.bytes)
        self.leaves = [leaf for field in self.fields for leaf in leaves_of(field)]
        chosen = {column["id"]: column for column in said["columns"]}
        for leaf in self.leaves:
            leaf.options = chosen.get(leaf.field["id"], leaf.options)

    def groups(self) -> list[list[Any]]:
        size = self.options["row_group_rows"]
        return [self.rows[i:i + size] for i in range(0, len(self.rows), size)]


class Leaf:
    """A column of the file: the fields from the top down to it."""

    def __init__(self, fields: list[dict[str, Any]]) -> None:
        self.fields = fields
        self.field = fields[-1]
        self.repeated = any(f["type"] in ("list", "map") for f in fields)
        self.options = {"metrics": "bounds", "units": 16, "bloom": False}

    def path(self) -> list[str]:
        middle = {"list": ["list"], "map": ["key_value"]}
        return [name for f in self.fields for name in [f["name"], *middle.get(f["type"], [])]]

    def definition_max(self) -> int:
        return sum(not f["required"] for f in self.fields) + self.repetition_max()

    def repetition_max(self) -> int:
        return sum(f["type"] in ("list", "map") for f in self.fields)


def leaves_of(field: dict[str, Any], above: list[dict[str, Any]] = []) -> Iterator[Leaf]:
    if field["type"] == "unknown":
        return
    if field["type"] not in NESTED:
        yield Leaf([*above, field])
    for child in field["fields"]:
        yield from leaves_of(child, [*above, field])


def stored(field: dict[str, Any]) -> bool:
    return any(True for _ in leaves_of(field))


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    return Case(request.param, tmp_path_factory.mktemp("parquet") / f"{request.param}.parquet")


# ---- values as the program says them ----

def unscaled(value: Decimal, scale: int) -> str:
    with localcontext() as context:
        context.prec = 60
        return str(int(value.scaleb(scale)))


def scale_of(type_: str) -> int:
    return int(type_.rstrip(")").split(",")[1])


def floats(values: list[Any], form: str) -> list[Any]:
    return [None if v is None else struct.pack(form, v).hex() for v in values]


def canonical_leaf(type_: str, array: pa.Array) -> list[Any]:
    if type_ in ("date", "time") or type_.startswith("timestamp"):
        return array.cast(pa.int32() if type_ == "date" else pa.int64()).to_pylist()
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if type_ in ("float", "double"):
        width = 4 if type_ == "float" else 8
        data = array.buffers()[1].to_pybytes()[array.offset * width:]
        valid = array.is_valid().to_pylist()
        return [data[i * width:i * width + width].hex() if ok else None for i, ok in enumerate(valid)]
    values = array.to_pylist()
    if type_.startswith("decimal"):
        return [None if v is None else unscaled(v, scale_of(type_)) for v in values]
    if type_ == "uuid" and pa.types.is_string(array.type):
        values = [None if v is None else uuid.UUID(v).bytes for v in values]
    if type_ in ("uuid", "binary") or type_.startswith("fixed"):
        return [None if v is None else bytes(v).hex() for v in values]
    return values


def canonical(field: dict[str, Any], array: pa.Array | None, count: int) -> list[Any]:
    """The values of an Arrow array in the program's form; None stands for a column that is not there."""
    if array is None or not stored(field):
        return [None] * count
    type_, valid = field["type"], array.is_valid().to_pylist()
    if type_ == "struct":
        by_name = {array.type.field(i).name: array.field(i) for i in range(array.type.num_fields)}
        columns = [canonical(f, by_name.get(f["name"]), count) for f in field["fields"]]
        return [list(row) if ok else None for row, ok in zip(zip(*columns), valid)]
    if type_ == "list":
        inner = canonical(field["fields"][0], array.values, len(array.values))
    elif type_ == "map":
        keys = canonical(field["fields"][0], array.keys, len(array.keys))
        inner = [list(pair) for pair in zip(keys, canonical(field["fields"][1], array.items, len(array.items)))]
    else:
        return canonical_leaf(type_, array)
    offsets = array.offsets.to_pylist()
    return [inner[offsets[i]:offsets[i + 1]] if valid[i] else None for i in range(count)]


def readable(field: dict[str, Any], value: Any, reader: str) -> Any:
    """What this reader can see of a value. A struct that has nothing to store is not in the file, and null for
    all of them; DuckDB has no timestamptz_ns and gives microseconds."""
    if value is None or not stored(field):
        return None
    if field["type"] == "struct":
        return [readable(f, v, reader) for f, v in zip(field["fields"], value)]
    if field["type"] == "list":
        return [readable(field["fields"][0], v, reader) for v in value]
    if field["type"] == "map":
        return [[k, readable(field["fields"][1], v, reader)] for k, v in value]
    if field["type"] == "timestamptz_ns" and reader == "duckdb":
        return int(Decimal(value) / 1000)
    return value


def array_of(table: pa.Table, name: str) -> pa.Array | None:
    if name not in table.column_names:
        return None
    column = table.column(name).combine_chunks()
    return column.chunk(0) if isinstance(column, pa.ChunkedArray) else column


def check_rows(case: Case, table: pa.Table, reader: str) -> None:
    assert table.num_rows == len(case.rows)
    for index, field in enumerate(case.fields):
        wanted = [readable(field, row[index], reader) for row in case.rows]
        found = canonical(field, array_of(table, field["name"]), len(case.rows))
        if found != wanted:
            at = next(i for i in range(len(wanted)) if found[i] != wanted[i])
            pytest.fail(f"{field['name']} {field['type']} row {at}: {found[at]!r:.200} is not {wanted[at]!r:.200}")


def test_pyarrow_reads_every_value(case: Case) -> None:
    check_rows(case, pq.read_table(case.path, page_checksum_verification=True), "pyarrow")


def test_duckdb_reads_every_value(case: Case) -> None:
    connection = duckdb.connect()
    connection.execute("SET threads = 1; SET TimeZone = 'UTC'")
    found = connection.execute("SELECT * FROM read_parquet(?)", [str(case.path)]).to_arrow_table()
    check_rows(case, found, "duckdb")


def test_duckdb_finds_rows_by_statistics(case: Case) -> None:
    """A filter on each plain column finds the rows that a scan would: statistics never hide one."""
    connection = duckdb.connect()
    for index, field in enumerate(case.fields):
        if field["type"] not in ("int", "long", "string"):
            continue
        values = [row[index] for row in case.rows if row[index] is not None]
        for value in {v for v in values[:: max(1, len(values) // 3)] if len(str(v)) < 1000}:
            wanted = values.count(value)
            query = f'SELECT count(*) FROM read_parquet(?) WHERE "{field["name"]}" = ?'
            assert connection.execute(query, [str(case.path), value]).fetchone() == (wanted,)


# ---- schema ----

PHYSICAL = {"boolean": "BOOLEAN", "int": "INT32", "long": "INT64", "float": "FLOAT", "double": "DOUBLE", "date": "INT32",
            "time": "INT64", "timestamp": "INT64", "timestamptz": "INT64", "timestamp_ns": "INT64",
            "timestamptz_ns": "INT64", "string": "BYTE_ARRAY", "binary": "BYTE_ARRAY", "uuid": "FIXED_LEN_BYTE_ARRAY"}
CONVERTED = {"string": 0, "date": 6, "time": 8, "timestamp": 10, "timestamptz": 10}
CONVERTED_DECIMAL = 5


def decimal_bytes(precision: int) -> int:
    return next(n for n in range(1, 17) if 2 ** (8 * n - 1) > 10 ** precision - 1)


def physical_of(type_: str) -> tuple[str, int]:
    if type_.startswith("decimal"):
        precision = int(type_[8:].split(",")[0])
        small = "INT32" if precision <= 9 else "INT64" if precision <= 18 else None
        return (small, 0) if small else ("FIXED_LEN_BYTE_ARRAY", decimal_bytes(precision))
    if type_.startswith("fixed"):
        return "FIXED_LEN_BYTE_ARRAY", int(type_[6:-1])
    return PHYSICAL[type_], 16 if type_ == "uuid" else 0


def logical_of(type_: str) -> dict[str, Any]:
    if type_.startswith("decimal"):
        return {"Type": "Decimal", "precision": int(type_[8:].split(",")[0]), "scale": scale_of(type_)}
    if type_ == "time":
        return {"Type": "Time", "isAdjustedToUTC": False, "timeUnit": "microseconds"}
    if type_.startswith("timestamp"):
        return {"Type": "Timestamp", "isAdjustedToUTC": "tz" in type_,
                "timeUnit": "nanoseconds" if type_.endswith("_ns") else "microseconds"}
    return {"Type": {"string": "String", "date": "Date", "uuid": "UUID"}.get(type_, "None")}


def test_leaves_have_the_types_of_the_specification(case: Case) -> None:
    """iceberg_8_4_64_65_66_67: UTC flags, units, no annotation of integers, decimals by precision."""
    schema = pq.ParquetFile(case.path).schema
    elements = [element for element in case.footer[2] if 5 not in element]
    assert len(schema) == len(elements) == len(case.leaves)
    for index, leaf in enumerate(case.leaves):
        column, type_ = schema.column(index), leaf.field["type"]
        physical, length = physical_of(type_)
        assert column.path == ".".join(leaf.path())
        assert column.physical_type == physical
        if length:
            assert column.length == length
        logical = json.loads(column.logical_type.to_json())
        for key, value in logical_of(type_).items():
            assert logical[key] == value, (type_, logical)
        wanted = CONVERTED_DECIMAL if type_.startswith("decimal") else CONVERTED.get(type_)
        assert elements[index].get(6) == wanted, type_
        assert column.max_definition_level == leaf.definition_max()
        assert column.max_repetition_level == leaf.repetition_max()


def test_every_node_has_its_field_id_and_repetition(case: Case) -> None:
    """The tree of SchemaElements: ids on every named field, none on the repeated groups, which are list/element and
    key_value (iceberg_8_4_68_70)."""
    elements = iter(case.footer[2])
    root = next(elements)
    assert root[4] == b"table" and 9 not in root and 3 not in root

    def check(field: dict[str, Any]) -> None:
        element, children = next(elements), [f for f in field["fields"] if stored(f)]
        assert element[4].decode() == field["name"]
        assert element[9] == field["id"]
        assert element[3] == (0 if field["required"] else 1)
        if field["type"] in ("list", "map"):
            assert element[5] == 1 and 1 not in element
            assert element[6] == (3 if field["type"] == "list" else 1)
            assert list(element[10]) == [3 if field["type"] == "list" else 2]
            middle = next(elements)
            assert middle[3] == 2 and 9 not in middle and 6 not in middle and 10 not in middle
            assert middle[4] == (b"list" if field["type"] == "list" else b"key_value")
            assert middle[5] == len(children)
        elif field["type"] == "struct":
            assert element[5] == len(children) and 1 not in element
        for child in children:
            check(child)

    fields = [f for f in case.fields if stored(f)]
    assert root[5] == len(fields)
    for field in fields:
        check(field)
    assert next(elements, None) is None


def test_pyarrow_shows_field_ids(case: Case) -> None:
    schema = pq.read_schema(case.path)
    by_name = {f["name"]: f for f in case.fields}
    for field in schema:
        assert field.metadata[b"PARQUET:field_id"] == str(by_name[field.name]["id"]).encode()


def test_footer_names_writer_schema_and_orders(case: Case) -> None:
    metadata = pq.read_metadata(case.path)
    assert metadata.created_by.startswith("lhbox version ")
    assert metadata.metadata[b"iceberg.schema"] == b'{"type":"struct"}'
    assert metadata.num_rows == len(case.rows)
    assert metadata.num_row_groups == len(case.groups())
    assert case.footer[1] == 1
    assert case.footer[7] == [{1: {}}] * len(case.leaves)


# ---- statistics ----

def leaf_slots(leaf: Leaf, case: Case, rows: list[Any]) -> list[Any]:
    """One entry for each value of the leaf, None for whatever is null or empty above it."""
    top = case.fields.index(leaf.fields[0])
    slots = [row[top] for row in rows]
    for field, child in zip(leaf.fields, leaf.fields[1:]):
        at = next(i for i, f in enumerate(field["fields"]) if f["id"] == child["id"])
        if field["type"] == "struct":
            slots = [None if s is None else s[at] for s in slots]
        elif field["type"] == "list":
            slots = [v for s in slots for v in (s or [None])]
        else:
            slots = [None if pair is None else pair[at] for s in slots for pair in (s or [None])]
    return slots


def is_nan(field: dict[str, Any], value: str) -> bool:
    number = struct.unpack("<f" if field["type"] == "float" else "<d", bytes.fromhex(value))[0]
    return field["type"] in ("float", "double") and number != number


def sort_key(type_: str, value: Any) -> Any:
    if type_ in ("float", "double"):
        bits = int.from_bytes(bytes.fromhex(value), "little")
        top = 1 << (31 if type_ == "float" else 63)
        return bits if bits < top else top - 1 - bits
    if type_.startswith("decimal"):
        return int(value)
    return value.encode() if type_ == "string" else value


def bounds(leaf: Leaf, slots: list[Any]) -> tuple[Any, Any]:
    type_ = leaf.field["type"]
    values = [s for s in slots if s is not None]
    if type_ in ("float", "double"):
        values = [v for v in values if not is_nan(leaf.field, v)]
    if not values:
        return None, None
    return min(values, key=lambda v: sort_key(type_, v)), max(values, key=lambda v: sort_key(type_, v))


def raised(units: list[int], last: int) -> list[int] | None:
    """The units with the last one that can be raised by one, cut behind it."""
    while units:
        unit = units.pop() + 1
        if last > 0xFF and unit == 0xD800:
            unit = 0xE000
        if unit <= last:
            return [*units, unit]
    return None


def cut(type_: str, value: Any, upper: bool, most: int = 16) -> Any:
    """What is kept of a bound: so many code points or bytes; None for an upper bound that cannot be raised."""
    if type_ == "string":
        if len(value) <= most or not upper:
            return value[:most]
        units = raised([ord(c) for c in value[:most]], 0x10FFFF)
        return None if units is None else "".join(map(chr, units))
    if type_ == "binary":
        data = bytes.fromhex(value)
        if len(data) <= most or not upper:
            return data[:most].hex()
        units = raised(list(data[:most]), 0xFF)
        return None if units is None else bytes(units).hex()
    return value


def single_value(type_: str, value: Any) -> bytes:
    """Iceberg's single-value serialization (table specification, appendix D)."""
    if type_ == "boolean":
        return b"\1" if value else b"\0"
    if type_ in ("int", "date"):
        return struct.pack("<i", value)
    if type_ in ("long", "time") or type_.startswith("timestamp"):
        return struct.pack("<q", value)
    if type_.startswith("decimal"):
        number = int(value)
        size = next(n for n in range(1, 17) if -(1 << (8 * n - 1)) <= number < 1 << (8 * n - 1))
        return number.to_bytes(size, "big", signed=True)
    return value.encode() if type_ == "string" else bytes.fromhex(value)


def parquet_value(type_: str, value: Any, upper: bool) -> bytes:
    """A bound as Parquet's Statistics have it."""
    if type_.startswith("decimal"):
        physical, length = physical_of(type_)
        width = {"INT32": 4, "INT64": 8}.get(physical, length)
        return int(value).to_bytes(width, "big" if length else "little", signed=True)
    if type_ in ("float", "double"):
        data = bytes.fromhex(value)
        if data.rstrip(b"\x80").rstrip(b"\0") == b"" and data[-1] in (0, 0x80):
            return data[:-1] + (b"\0" if upper else b"\x80")
        return data
    return single_value(type_, value)


def test_row_groups_have_the_statistics_of_their_values(case: Case) -> None:
    for group, rows in zip(case.footer[4], case.groups()):
        assert group[3] == len(rows)
        for chunk, leaf in zip(group[1], case.leaves):
            meta, type_, slots = chunk[3], leaf.field["type"], leaf_slots(leaf, case, rows)
            low, high = bounds(leaf, slots)
            if type_ == "fixed[300]":
                low = high = None
            statistics = meta[12]
            assert meta[5] == len(slots)
            assert statistics[3] == slots.count(None)
            kept_low = None if low is None else cut(type_, low, False)
            kept_high = None if high is None else cut(type_, high, True)
            assert statistics.get(6) == (None if kept_low is None else parquet_value(type_, kept_low, False)), leaf.path()
            assert statistics.get(5) == (None if kept_high is None else parquet_value(type_, kept_high, True)), leaf.path()
            if kept_low is not None:
                assert statistics[8] == (kept_low == low)
            if kept_high is not None:
                assert statistics[7] == (kept_high == high)


def test_manifest_statistics_are_those_of_the_file(case: Case) -> None:
    """Over all row groups, cut by code points, decimals in fewest bytes, booleans and empty strings too, zeros by their
    sign and no NaN: iceberg_8_3_55_to_59."""
    stats, metadata = case.stats, pq.read_metadata(case.path)
    assert stats["rows"] == len(case.rows)
    assert stats["file_bytes"] == len(case.bytes)
    assert [c["id"] for c in stats["columns"]] == [leaf.field["id"] for leaf in case.leaves]
    for index, (column, leaf) in enumerate(zip(stats["columns"], case.leaves)):
        type_, slots = leaf.field["type"], leaf_slots(leaf, case, case.rows)
        chunks = [metadata.row_group(g).column(index) for g in range(metadata.num_row_groups)]
        assert column["bytes"] == sum(c.total_compressed_size for c in chunks)
        mode = "none" if leaf.repeated else leaf.options["metrics"]
        counts = [len(slots), slots.count(None), -1]
        if type_ in ("float", "double"):
            counts[2] = sum(s is not None and is_nan(leaf.field, s) for s in slots)
        assert [column["values"], column["nulls"], column["nans"]] == ([-1] * 3 if mode == "none" else counts)
        low, high = bounds(leaf, slots) if mode == "bounds" else (None, None)
        most = leaf.options["units"] or len(case.bytes)
        wanted = [None if bound is None else cut(type_, bound, upper, most) for bound, upper in ((low, False), (high, True))]
        wanted = [None if w is None else single_value(type_, w).hex() for w in wanted]
        assert [column["lower"], column["upper"]] == wanted, leaf.path()


def test_manifest_statistics_agree_with_pyiceberg(case: Case) -> None:
    """PyIceberg computes the same counts, sizes and split offsets from our footer."""
    metadata = pq.read_metadata(case.path)
    mapping = {".".join(leaf.path()): leaf.field["id"] for leaf in case.leaves}
    counts = {i: StatisticsCollector(i, StringType(), MetricsMode(MetricModeTypes.COUNTS), "") for i in mapping.values()}
    theirs, ours = data_file_statistics_from_parquet_metadata(metadata, counts, mapping), case.stats
    assert theirs.record_count == ours["rows"]
    assert theirs.split_offsets == ours["splits"]
    assert theirs.column_sizes == {c["id"]: c["bytes"] for c in ours["columns"]}
    told = [c for c in ours["columns"] if c["values"] >= 0]
    assert [theirs.value_counts[c["id"]] for c in told] == [c["values"] for c in told]
    assert [theirs.null_value_counts[c["id"]] for c in told] == [c["nulls"] for c in told]


# ---- pages ----

def pages_of(case: Case, chunk: dict[int, Any]) -> list[tuple[int, dict[int, Any], bytes]]:
    """Offset, header and body of each page of a chunk; they fill the chunk exactly."""
    meta, pages = chunk[3], []
    at = meta.get(11, meta[9])
    end = at + meta[7]
    while at < end:
        header, body = thrift.at(case.bytes, at)
        pages.append((at, header, case.bytes[body:body + header[3]]))
        at = body + header[3]
    assert at == end
    return pages


def test_pages_fill_their_chunks_and_have_their_checksums(case: Case) -> None:
    """PLAIN or RLE_DICTIONARY unless asked for others, in data pages v1: iceberg_8_4_69."""
    expected_at = 4
    for group in case.footer[4]:
        assert group[5] == expected_at
        assert group[6] == sum(c[3][7] for c in group[1])
        assert group[2] == sum(c[3][6] for c in group[1])
        for chunk in group[1]:
            meta, pages = chunk[3], pages_of(case, chunk)
            assert pages[0][0] == expected_at
            expected_at += meta[7]
            assert (pages[0][1][1] == 2) == (11 in meta)
            data = [header for _, header, _ in pages if header[1] == 0]
            assert len(data) == len(pages) - (11 in meta)
            assert sum(header[5][1] for header in data) == meta[5]
            encoding, = {header[5][2] for header in data}
            assert encoding in ([RLE_DICTIONARY] if 11 in meta else [PLAIN, COMPACT.get(meta[1])])
            assert encoding in (PLAIN, RLE_DICTIONARY) or case.options["compact"]
            dictionary = [PLAIN] if 11 in meta else []
            assert meta[2] == sorted({*dictionary, RLE, encoding})  # no more than what is there
            assert [(count[1], count[2], count[3]) for count in meta[13]] == [*((2, e, 1) for e in dictionary), (0, encoding, len(data))]
            for _, header, body in pages:
                assert header[4] & 0xFFFFFFFF == zlib.crc32(body)


def test_page_indexes_say_where_pages_are_and_what_they_hold(case: Case) -> None:
    for group, rows in zip(case.footer[4], case.groups()):
        for chunk, leaf in zip(group[1], case.leaves):
            offsets, end = thrift.at(case.bytes, chunk[4])
            assert end - chunk[4] == chunk[5]
            pages = [page for page in pages_of(case, chunk) if page[1][1] == 0]
            assert [location[1] for location in offsets[1]] == [page[0] for page in pages]
            firsts = [location[3] for location in offsets[1]]
            assert firsts[0] == 0 and firsts == sorted(set(firsts))
            slots = [leaf_slots(leaf, case, rows[a:b]) for a, b in zip(firsts, [*firsts[1:], len(rows)])]
            assert [page[1][5][1] for page in pages] == [len(s) for s in slots]
            check_column_index(case, chunk, leaf, slots)


def check_column_index(case: Case, chunk: dict[int, Any], leaf: Leaf, slots: list[list[Any]]) -> None:
    type_ = leaf.field["type"]
    kept = []
    for page in slots:
        low, high = bounds(leaf, page)
        kept.append((None if low is None else cut(type_, low, False), None if high is None else cut(type_, high, True)))
    has_bounds = [k for k, page in zip(kept, slots) if any(s is not None for s in page)]
    if type_ == "fixed[300]" or any(None in k for k in has_bounds):
        assert 6 not in chunk
        return
    index, end = thrift.at(case.bytes, chunk[6])
    assert end - chunk[6] == chunk[7]
    assert index[1] == [all(s is None for s in page) for page in slots]
    assert index[2] == [b"" if low is None else parquet_value(type_, low, False) for low, _ in kept]
    assert index[3] == [b"" if high is None else parquet_value(type_, high, True) for _, high in kept]
    assert index[5] == [page.count(None) for page in slots]


# ---- bloom filters ----

def bloom_of(case: Case, chunk: dict[int, Any]) -> bytes | None:
    """The blocks of a chunk's filter."""
    meta = chunk[3]
    if 14 not in meta:
        assert 15 not in meta
        return None
    header, start = thrift.at(case.bytes, meta[14])
    assert header[2] == header[3] == header[4] == {1: {}}
    assert start + header[1] == meta[14] + meta[15]
    return case.bytes[start:start + header[1]]


def test_bloom_filters_are_where_they_are_asked_for(case: Case) -> None:
    for group, rows in zip(case.footer[4], case.groups()):
        for chunk, leaf in zip(group[1], case.leaves):
            slots = [s for s in leaf_slots(leaf, case, rows) if s is not None]
            plain = leaf.field["type"] in ("boolean", "binary") or leaf.field["type"].startswith("fixed")
            wanted = leaf.options["bloom"] and not plain and slots != []
            blocks = bloom_of(case, chunk)
            assert (blocks is not None) == wanted
            if blocks is not None:
                assert len(blocks) >= 32 and len(blocks) & (len(blocks) - 1) == 0
                assert any(blocks)


def duckdb_probe(case: Case, name: str, literal: str) -> list[bool]:
    """For each row group: does DuckDB take the value for surely absent by the column's bloom filter?"""
    rows = duckdb.execute("SELECT bloom_filter_excludes FROM parquet_bloom_probe($1, $2, " + literal + ")",
                          [str(case.path), name]).fetchall()
    return [row[0] for row in rows]


@pytest.mark.parametrize("type_", ["int", "long", "float", "double", "string"])
def test_duckdb_finds_what_is_there_by_bloom_filter_and_misses_what_is_not(type_: str, tmp_path: Path) -> None:
    case = Case("metrics_pages", tmp_path / "file.parquet")
    for leaf in case.leaves:
        name = leaf.field["name"]
        if leaf.repeated or leaf.field["type"] != type_ or not leaf.options["bloom"]:
            continue
        excluded = 0
        for at, rows in enumerate(case.groups()):
            values = [s for s in leaf_slots(leaf, case, rows) if s is not None]
            for value in values[::len(values) // 20]:
                assert not duckdb_probe(case, name, duckdb_literal(type_, value))[at]
            for n in range(20):
                absent = {"string": f"not there {n}", "float": struct.pack("<f", -77.125 - n).hex(),
                          "double": struct.pack("<d", -77.125 - n).hex()}
                excluded += duckdb_probe(case, name, duckdb_literal(type_, absent.get(type_, -1000 - n)))[at]
        assert excluded >= 20 * len(case.groups()) * (1 - 2 * leaf.options["fpp"]) - 2
        return
    raise AssertionError(f"no {type_} with a filter")


def duckdb_literal(type_: str, value: Any) -> str:
    if type_ == "string":
        return f"'{value}'"
    if type_ in ("float", "double"):
        number = struct.unpack("<f" if type_ == "float" else "<d", bytes.fromhex(value))[0]
        return f"{number!r}::{type_.upper()}"
    return f"{value}::{'INTEGER' if type_ == 'int' else 'BIGINT'}"


@pytest.mark.parametrize("name", ["metrics", "metrics_pages", "metrics_strings"])
def test_duckdb_filters_find_what_a_full_scan_finds(name: str, tmp_path: Path) -> None:
    """Row groups and pages are left out by statistics and bloom filters: never one that holds what is looked for."""
    case = Case(name, tmp_path / "file.parquet")
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE whole AS SELECT * FROM '{case.path}'")
    for field in case.fields:
        if field["type"] in NESTED:
            continue
        column = f'"{field["name"]}"'
        values = connection.execute(f"SELECT DISTINCT {column} FROM whole ORDER BY hash({column}) LIMIT 6").fetchall()
        for (value,) in values:
            for how in ("=", "<", ">="):
                found = [connection.execute(f"SELECT count(*) FROM {source} WHERE {column} {how} $1", [value]).fetchone()
                         for source in ("whole", f"'{case.path}'")]
                assert found[0] == found[1], (column, how, value)


def test_either_zero_is_found_by_bloom_filter(tmp_path: Path) -> None:
    case = Case("metrics_strings", tmp_path / "file.parquet")
    found = 0
    for leaf in case.leaves:
        if leaf.options["bloom"] and leaf.field["name"].startswith("zero"):
            for zero in ("0.0", "-0.0"):
                assert duckdb_probe(case, leaf.field["name"], f"'{zero}'::{leaf.field['type'].upper()}") == [False] * 3
            found += 1
    assert found > 0


def test_pages_end_after_so_many_rows(tmp_path: Path) -> None:
    case = Case("pages_by_rows", tmp_path / "file.parquet")
    for group in case.footer[4]:
        for chunk in group[1]:
            offsets, _ = thrift.at(case.bytes, chunk[4])
            assert [location[3] for location in offsets[1]] == list(range(0, group[3], 70))


def page_encodings(case: Case, column: int) -> list[int]:
    """Of the data pages of each chunk of a column."""
    return [pages_of(case, group[1][column])[-1][1][5][2] for group in case.footer[4]]


def test_numbers_are_compact_where_asked_for(tmp_path: Path) -> None:
    compact, plain = (Case(name, tmp_path / name) for name in ("numbers_compact", "numbers"))
    for column, leaf in enumerate(compact.leaves):
        assert page_encodings(plain, column) == [PLAIN] * 3
        if not leaf.repeated:
            assert page_encodings(compact, column) == [COMPACT[compact.footer[4][0][1][column][3][1]]] * 3, leaf.field
    assert compact.stats["file_bytes"] < plain.stats["file_bytes"] * 0.8
    assert [case.stats["columns"][0]["lower"] for case in (compact, plain)] == ["00000080"] * 2


def test_a_dictionary_comes_first(tmp_path: Path) -> None:
    """And the next row group of the column goes without."""
    case = Case("numbers_mixed_compact", tmp_path / "mixed")
    for column, leaf in enumerate(case.leaves):
        kind = COMPACT[case.footer[4][0][1][column][3][1]]
        if kind == DELTA and not leaf.repeated:
            assert page_encodings(case, column) == [RLE_DICTIONARY, DELTA], leaf.field


def test_what_is_smaller_in_plain_stays_so(tmp_path: Path) -> None:
    case = Case("pages_compact", tmp_path / "pages")
    ints = [page_encodings(case, column)[0] for column, leaf in enumerate(case.leaves)
            if leaf.field["name"].startswith("many") and leaf.field["type"] == "int"]
    assert ints == [PLAIN, PLAIN]  # any 31 bits


def encodings(case: Case, name: str) -> list[bool]:
    """Whether each chunk of the columns of this name has a dictionary."""
    return [11 in chunk[3] for group in case.footer[4] for chunk, leaf in zip(group[1], case.leaves)
            if leaf.field["name"].startswith(name) and leaf.field["type"] != "boolean"]


def test_dictionaries_are_used_where_they_pay(tmp_path: Path) -> None:
    case = Case("pages", tmp_path / "pages.parquet")
    few, many = encodings(case, "few"), encodings(case, "many")
    assert all(few) and few
    assert not any(many) and many
    pages = [len(pages_of(case, chunk)) for chunk in case.footer[4][0][1]]
    assert min(pages) > 3
    assert len(case.rows) > 65536


def test_what_the_codec_saves_next_to_nothing_of_is_stored_as_it_is(tmp_path: Path) -> None:
    case = Case("pages", tmp_path / "pages.parquet")
    codecs = {leaf.field["name"]: chunk[3][4] for chunk, leaf in zip(case.footer[4][0][1], case.leaves)}
    assert codecs["many_16"] == codecs["few_15"] == 0  # any 32 bits, and which of few
    assert codecs["many_20"] == codecs["many_4"] == 6
    for chunk, leaf in zip(case.footer[4][0][1], case.leaves):
        assert chunk[3][4] == 6 or chunk[3][6] == chunk[3][7], leaf.field["name"]


def test_dictionaries_past_their_limit_are_given_up(tmp_path: Path) -> None:
    case = Case("pages_small", tmp_path / "pages.parquet")
    by_type = {leaf.field["type"]: 11 in chunk[3] for chunk, leaf in zip(case.footer[4][0][1], case.leaves)
               if leaf.field["name"].startswith("few_")}
    assert by_type["int"] and not by_type["string"]


def test_nothing_changes_from_run_to_run(tmp_path: Path) -> None:
    first, second = (Case("nested", tmp_path / name) for name in ("a", "b"))
    assert first.bytes == second.bytes
