"""A table with compact encodings: what is in it, as numbers that every reader's Arrow must give, and in which encodings.

Row groups of some 1 MiB with pages of 7,000 rows, so that neither falls together with what a reader takes at a time (Spark
5,000 rows, DuckDB 2,048), and runs of nulls longer than a page."""
from __future__ import annotations

import datetime
import functools
import random
import struct
from pathlib import Path
from typing import Any, Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from connect import pyiceberg
from server import Server

TABLE = "encodings.compact"
ROWS, DAY0 = 40_000, datetime.date(1970, 1, 1)
PROPERTIES = {"write.parquet.encodings": "compact", "write.parquet.row-group-size-bytes": str(1 << 20),
              "write.parquet.page-row-limit": "7000"}
# `mixed` has few values in the first rows, and then none twice.
COLUMNS = {"n": "long required", "an_int": "int", "a_long": "long", "a_float": "float", "a_double": "double",
           "a_date": "date", "a_timestamp": "timestamp", "a_timestamptz": "timestamptz", "a_decimal9": "decimal(9,2)",
           "a_decimal18": "decimal(18,4)", "mixed": "long required", "mixed_double": "double", "nothing": "int"}
FLOATS = ("a_float", "a_double", "mixed_double")
DELTA, SPLIT, DICTIONARY = "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT", "RLE_DICTIONARY"


def numbers(n: int, any_: random.Random) -> dict[str, Any]:
    """Row n: integers as they are stored, floats as floats."""
    edge, step = n % 2999 == 1500, n * 7 + any_.randrange(5)
    wide = any_.random()
    row: dict[str, Any] = {
        "an_int": (-2**31, 2**31 - 1)[any_.randrange(2)] if edge else step - 100_000,
        "a_long": (-2**63, 2**63 - 1)[any_.randrange(2)] if edge else step * 1_000_003,
        "a_float": struct.unpack("<f", struct.pack("<f", 20 + any_.random()))[0], "a_double": 20 + wide,
        "a_date": n + any_.randrange(3) - 20_000, "a_timestamp": (step - 99_999) * 1_000_000 + any_.randrange(10),
        "a_timestamptz": 1_700_000_000_000_000 + step * 250_000, "a_decimal9": step * 3 - 70_000,
        "a_decimal18": step * 10**9 - 10**14}
    if n % 13 == 5 or 16_000 <= n < 32_000:
        row = dict.fromkeys(row)
    few = n < 15_000
    return {"n": n, **row, "mixed": n % 3 if few else step * 11, "mixed_double": n % 5 / 4 if few else wide - 0.5, "nothing": None}


@functools.cache
def wanted() -> dict[str, list[Any]]:
    any_ = random.Random(5)
    rows = [numbers(n, any_) for n in range(ROWS)]
    return {name: [row[name] for row in rows] for name in COLUMNS}


def decimal_text(unscaled: int, scale: int) -> str:
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    return ("-" if unscaled < 0 else "") + digits[:-scale] + "." + digits[-scale:]


def sent(name: str, value: Any) -> Any:
    """As JSON has it."""
    if value is None or name in FLOATS or isinstance(value, float):
        return value
    if name == "a_date":
        return str(DAY0 + datetime.timedelta(days=value))
    if name.startswith("a_timestamp"):
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=value)
        return moment.isoformat(timespec="microseconds") + ("Z" if name.endswith("tz") else "")
    return decimal_text(value, 2 if name == "a_decimal9" else 4) if name.startswith("a_decimal") else value


def make(server: Server) -> None:
    """All rows by one batch, and so in one file."""
    server.make_table(TABLE, COLUMNS, properties=PROPERTIES)
    sink = server.make_sink(TABLE, "encodings")
    values = wanted()
    rows = [{name: sent(name, values[name][n]) for name in COLUMNS} for n in range(ROWS)]
    assert server.send(sink, "b0", rows).json["rejected"] == 0
    server.roll(sink)
    assert server.books(sink)["committed"] == ROWS, server.books(sink)


def files(server: Server) -> list[Path]:
    tasks = pyiceberg(server).load_table(TABLE).scan().plan_files()
    return [Path(task.file.file_path.removeprefix("file://")) for task in tasks]


def page_encodings(path: Path, name: str) -> Iterator[set[str]]:
    """Of a column's chunks, row group by row group; that of the levels left out."""
    with pq.ParquetFile(path) as file:
        index = file.schema.names.index(name)
        for group in range(file.num_row_groups):
            yield set(file.metadata.row_group(group).column(index).encodings) - {"RLE"}


def integers(array: pa.Array) -> list[int | None]:
    """Dates and times in their units since 1970, decimals without their points."""
    type_ = array.type
    if pa.types.is_decimal(type_):
        return [None if v is None else int(v.scaleb(type_.scale)) for v in array.to_pylist()]
    if pa.types.is_date(type_):
        return pc.cast(pc.cast(array, pa.date32()), pa.int32()).to_pylist()
    if pa.types.is_timestamp(type_):
        return pc.cast(pc.cast(array, pa.timestamp("us", type_.tz)), pa.int64()).to_pylist()
    return array.to_pylist()


def check(found: pa.Table, names: Iterable[str] = COLUMNS) -> None:
    """All rows, in whatever order, of these columns, of which n is one."""
    found = found.sort_by("n")
    for name in names:
        values = integers(found.column(name).combine_chunks())
        if values != wanted()[name]:
            assert len(values) == ROWS
            n = next(n for n in range(ROWS) if values[n] != wanted()[name][n])
            raise AssertionError(f"{name} row {n}: {values[n]} is not {wanted()[name][n]}")
