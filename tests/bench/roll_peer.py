"""One peer as a roller: NDJSON of given columns to a zstd-1 Parquet file.

    roll_peer.py duckdb|polars|chdb|pyarrow THREADS

Reads lines of JSON {"source", "target", "columns", "group_rows"}, answers lines {"wall", "cpu", "peak_mib"}. The columns are
Iceberg's types as text; each peer is given its schema, so that none has to guess, and writes a column __ingest_ts, too.
"""
from __future__ import annotations

import json
import os
import re
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from columns import fields_of, split_type

sys.path.insert(0, str(Path(__file__).resolve().parent))
Roll = Callable[[str, str, dict[str, str], int], None]


# ---- DuckDB ----

DUCKDB = {"string": "VARCHAR", "long": "BIGINT", "int": "INTEGER", "double": "DOUBLE", "boolean": "BOOLEAN",
          "timestamptz": "TIMESTAMPTZ", "timestamp": "TIMESTAMP", "date": "DATE"}


def duckdb_type(text: str) -> str:
    word, inside = split_type(text)
    if word == "struct":
        return "STRUCT(" + ", ".join(f'"{name}" {duckdb_type(kind)}' for name, kind in fields_of(inside)) + ")"
    if word == "list":
        return duckdb_type(inside) + "[]"
    return f"DECIMAL({inside})" if word == "decimal" else DUCKDB[word]


def duckdb_source(source: str, columns: dict[str, str]) -> str:
    spec = ", ".join(f"'{name}': '{duckdb_type(kind)}'" for name, kind in columns.items())
    return f"read_json('{source}', format='newline_delimited', columns={{{spec}}}, maximum_object_size=67108864)"


def open_duckdb(threads: int) -> Roll:
    import duckdb
    connection = duckdb.connect(config={"threads": threads})
    connection.execute("SET TimeZone='UTC'")

    def roll(source: str, target: str, columns: dict[str, str], group_rows: int) -> None:
        connection.execute(f"COPY (SELECT *, now() AS __ingest_ts FROM {duckdb_source(source, columns)}) TO '{target}' "
                           f"(FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1, ROW_GROUP_SIZE {group_rows})")
    return roll


# ---- Polars ----


def open_polars(threads: int) -> Roll:
    import datetime

    import polars as pl
    simple = {"string": pl.String, "long": pl.Int64, "int": pl.Int32, "double": pl.Float64, "boolean": pl.Boolean,
              "timestamptz": pl.String, "timestamp": pl.String, "date": pl.Date}

    def kind_of(text: str) -> Any:
        word, inside = split_type(text)
        if word == "struct":
            return pl.Struct({name: kind_of(kind) for name, kind in fields_of(inside)})
        if word == "list":
            return pl.List(kind_of(inside))
        return pl.String if word == "decimal" else simple[word]

    def typed(name: str, text: str) -> Any:
        """What its reader does not take from a string is made of it."""
        word, inside = split_type(text)
        if word == "decimal":
            precision, scale = map(int, inside.split(","))
            return pl.col(name).cast(pl.Decimal(precision, scale))
        if word in ("timestamp", "timestamptz"):
            zone = "UTC" if word == "timestamptz" else None
            shape = "%Y-%m-%dT%H:%M:%S%.3fZ" if zone else "%Y-%m-%dT%H:%M:%S"
            return pl.col(name).str.to_datetime(shape, time_unit="us", time_zone=zone)
        return pl.col(name)

    def roll(source: str, target: str, columns: dict[str, str], group_rows: int) -> None:
        frame = pl.read_ndjson(source, schema={name: kind_of(kind) for name, kind in columns.items()})
        now = datetime.datetime.now(datetime.timezone.utc)
        frame = frame.select(*(typed(name, kind) for name, kind in columns.items()),
                             pl.lit(now).cast(pl.Datetime("us", "UTC")).alias("__ingest_ts"))
        frame.write_parquet(target, compression="zstd", compression_level=1, row_group_size=group_rows)
    return roll


# ---- chdb ----

CHDB = {"string": "String", "long": "Int64", "int": "Int32", "double": "Float64", "boolean": "Bool",
        "timestamptz": "DateTime64(6, \\'UTC\\')", "timestamp": "DateTime64(6, \\'UTC\\')", "date": "Date32"}


def chdb_type(text: str) -> str:
    word, inside = split_type(text)
    if word == "struct":
        return "Tuple(" + ", ".join(f"{name} {chdb_type(kind)}" for name, kind in fields_of(inside)) + ")"
    if word == "list":
        return f"Array({chdb_type(inside)})"
    simple = f"Decimal({inside})" if word == "decimal" else CHDB[word]
    return f"Nullable({simple})"


def open_chdb(threads: int) -> Roll:
    from chdb import session
    connection = session.Session()

    def roll(source: str, target: str, columns: dict[str, str], group_rows: int) -> None:
        structure = ", ".join(f"{name} {chdb_type(kind)}" for name, kind in columns.items())
        connection.query(
            f"SELECT *, now64(6, 'UTC') AS __ingest_ts FROM file('{source}', JSONEachRow, '{structure}') INTO OUTFILE '{target}' TRUNCATE "
            f"FORMAT Parquet SETTINGS max_threads={threads}, input_format_parallel_parsing={int(threads > 1)}, "
            f"date_time_input_format='best_effort', output_format_parquet_compression_method='zstd', "
            f"output_format_compression_level=1, output_format_parquet_row_group_size={group_rows}, "
            f"output_format_parquet_parallel_encoding={int(threads > 1)}, output_format_parquet_string_as_string=1, "
            f"input_format_null_as_default=0")
    return roll


# ---- pyarrow ----


def open_pyarrow(threads: int) -> Roll:
    import datetime

    import pyarrow as pa
    import pyarrow.json as reader
    import pyarrow.parquet as parquet
    pa.set_cpu_count(threads)
    simple = {"string": pa.string(), "long": pa.int64(), "int": pa.int32(), "double": pa.float64(), "boolean": pa.bool_(),
              "timestamptz": pa.timestamp("us", "UTC"), "timestamp": pa.timestamp("us"), "date": pa.date32()}

    def kind_of(text: str) -> Any:
        word, inside = split_type(text)
        if word == "struct":
            return pa.struct([(name, kind_of(kind)) for name, kind in fields_of(inside)])
        if word == "list":
            return pa.list_(kind_of(inside))
        return pa.decimal128(*map(int, inside.split(","))) if word == "decimal" else simple[word]

    def roll(source: str, target: str, columns: dict[str, str], group_rows: int) -> None:
        # A zone is not read from text here: as UTC without its letter, then with its zone.
        wanted = pa.schema([(name, kind_of(kind)) for name, kind in columns.items()])
        table = reader.read_json(source, reader.ReadOptions(use_threads=threads > 1, block_size=4 << 20),
                                 reader.ParseOptions(explicit_schema=wanted, unexpected_field_behavior="error"))
        now = pa.scalar(datetime.datetime.now(datetime.timezone.utc), pa.timestamp("us", "UTC"))
        table = table.append_column("__ingest_ts", pa.repeat(now, table.num_rows))
        parquet.write_table(table, target, compression="zstd", compression_level=1, row_group_size=group_rows)
    return roll


OPEN = {"duckdb": open_duckdb, "polars": open_polars, "chdb": open_chdb, "pyarrow": open_pyarrow}


def memory_mib(name: str) -> float:
    found = re.search(rf"^{name}:\s+(\d+)", Path("/proc/self/status").read_text(), re.M)
    assert found is not None
    return int(found.group(1)) / 1024


def main() -> None:
    roll = OPEN[sys.argv[1]](int(sys.argv[2]))
    for line in sys.stdin:
        asked = json.loads(line)
        Path("/proc/self/clear_refs").write_text("5")
        resident = memory_mib("VmRSS")
        start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
        roll(asked["source"], asked["target"], asked["columns"], asked["group_rows"])
        wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
        print(json.dumps({"wall": wall, "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
                          "peak_mib": memory_mib("VmHWM") - resident, "bytes": os.path.getsize(asked["target"])}), flush=True)


if __name__ == "__main__":
    main()
