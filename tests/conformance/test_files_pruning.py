"""A filter on any type returns what a full scan returns, and leaves files out that hold nothing of it. (PyIceberg 0.12 makes
no filter of nanoseconds: DuckDB alone judges them.)"""
from __future__ import annotations

import math
import os
import uuid
from collections import defaultdict
from pathlib import Path
from typing import Any, Callable, Iterator

import pyarrow.parquet as pq
import pytest
from pyiceberg.expressions import (EqualTo, GreaterThan, GreaterThanOrEqual, In, IsNaN, IsNull, LessThan, LessThanOrEqual,
                                   NotEqualTo, NotNull, StartsWith)

from connect import duckdb, pyiceberg
from file_values import COLUMNS, FILES, NANO_COLUMNS, make
from server import Server

ALL = os.environ.get("LHBOX_TEST_TIER") == "all"
EACH = 1 if ALL else 5  # of the filters, in the short tier
BLOOM = {f"write.parquet.bloom-filter-enabled.column.{name}": "true" for name in COLUMNS}
TABLES: dict[str, tuple[dict[str, Any], int, dict[str, str]]] = {
    "files.bloom": (COLUMNS, 3, BLOOM),
    "files.ns": (NANO_COLUMNS, 3, {}),
}
if ALL:
    TABLES |= {
        "files.v2": (COLUMNS, 2, {}),
        "files.v3": (COLUMNS, 3, {}),
        "files.whole": (COLUMNS, 3, {"write.metadata.metrics.default": "full"}),
        "files.short": (COLUMNS, 3, {"write.metadata.metrics.default": "truncate(1)"}),
        "files.counts": (COLUMNS, 3, {"write.metadata.metrics.default": "counts"}),
        "files.none": (COLUMNS, 3, {"write.metadata.metrics.default": "none"}),
    }


@pytest.fixture(scope="module")
def filled(server: Server) -> Server:
    for name, (columns, version, properties) in TABLES.items():
        make(server, name, columns, version, properties=properties)
    return server


# ---- DuckDB ----

@pytest.fixture(scope="module")
def lake(filled: Server, tmp_path_factory: pytest.TempPathFactory) -> Any:
    connection = duckdb(filled, tmp_path_factory.mktemp("duckdb"))
    connection.execute("SET TimeZone = 'UTC'")
    return connection


@pytest.mark.parametrize("name", TABLES)
def test_duckdb_filters_return_what_a_full_scan_returns(filled: Server, lake: Any, name: str) -> None:
    source = f"{filled.dev['warehouse']}.{name}"
    lake.execute(f"CREATE OR REPLACE TABLE memory.main.whole AS SELECT * FROM {source}")
    lake.execute("BEGIN")  # one look at the catalog for all queries
    try:
        check_columns(lake, name, source, list(TABLES[name][0]))
    finally:
        lake.execute("ROLLBACK")


def check_columns(lake: Any, name: str, source: str, columns: list[str]) -> None:
    for column in columns:
        type_, = lake.execute(f"SELECT DISTINCT typeof({column}) FROM memory.main.whole").fetchone()
        texts = [text for text, in lake.execute(f"SELECT DISTINCT {column}::VARCHAR FROM memory.main.whole "
                                                f"WHERE {column} IS NOT NULL ORDER BY 1").fetchall()]
        for at, text in list(enumerate(texts))[::EACH]:
            literal = "'" + text.replace("'", "''").replace("\0", "' || chr(0) || '") + f"'::VARCHAR::{type_}"
            # A NaN is in no bound (Iceberg), and greater than all (DuckDB): DuckDB misses those that bounds don't show.
            if text == "nan" and name not in ("files.counts", "files.none"):
                continue
            number = f" AND NOT isnan({column})" if type_ in ("FLOAT", "DOUBLE") and text != "nan" else ""
            for how in ("=", "<", ">=") if at % 2 else ("=", "<=", ">"):
                check_duckdb(lake, source, f"{column} {how} {literal}{number}")
        check_duckdb(lake, source, f"{column} IS NULL")
        check_duckdb(lake, source, f"{column} IS NOT NULL")


def check_duckdb(lake: Any, source: str, predicate: str) -> None:
    wanted, found = (lake.execute(f"SELECT list(n ORDER BY n) FROM {table} WHERE {predicate}").fetchone()
                     for table in ("memory.main.whole", source))
    assert found == wanted, predicate


# ---- PyIceberg ----

Filter = tuple[Any, Callable[[Any], bool]]


def expressions(column: str, values: list[Any]) -> Iterator[Filter]:
    """Expressions, each with what it means for a value that is not null."""
    for at, value in enumerate(values):
        yield EqualTo(column, value), lambda v, value=value: v == value
        yield LessThan(column, value), lambda v, value=value: v < value
        yield LessThanOrEqual(column, value), lambda v, value=value: v <= value
        yield GreaterThan(column, value), lambda v, value=value: v > value
        yield GreaterThanOrEqual(column, value), lambda v, value=value: v >= value
        yield NotEqualTo(column, value), lambda v, value=value: v != value
        other = values[at // 2]
        yield In(column, [value, other]), lambda v, both=(value, other): v in both
        if isinstance(value, str) and value:
            for length in {1, 15, 16, 17, len(value)}:
                yield StartsWith(column, value[:length]), lambda v, start=value[:length]: v.startswith(start)
    yield IsNull(column), lambda v: v is None
    yield NotNull(column), lambda v: v is not None
    if any(isinstance(value, float) for value in values):
        yield IsNaN(column), lambda v: isinstance(v, float) and math.isnan(v)


def plain(value: Any) -> Any:
    return uuid.UUID(bytes=value) if isinstance(value, bytes) and len(value) == 16 else value


def there(value: Any) -> bool:
    return value is not None and not (isinstance(value, float) and math.isnan(value))


def in_range(value: Any) -> bool:
    """PyIceberg takes no literal that does not fit its column."""
    return not isinstance(value, float) or math.isfinite(value)


@pytest.mark.parametrize("name", [name for name in TABLES if name != "files.ns"])
def test_pyiceberg_plans_every_file_that_holds_a_match(filled: Server, name: str) -> None:
    """And fewer than all, where bounds are kept; none is left out for want of counts (iceberg_8_3_60)."""
    table = pyiceberg(filled).load_table(name)
    files: dict[str, list[dict[str, Any]]] = {}
    for task in table.scan().plan_files():
        path = task.file.file_path.removeprefix("file://")
        files[task.file.file_path] = pq.ParquetFile(path).read().to_pylist()
    assert len(files) == FILES
    pruned: dict[str, int] = defaultdict(int)
    for column in COLUMNS:
        found = [[plain(row[column]) for row in rows] for rows in files.values()]
        values = sorted({value for each in found for value in each if there(value) and in_range(value)})
        for expression, holds in list(expressions(column, values))[::EACH]:
            nulls = isinstance(expression, (IsNull, NotNull, IsNaN))
            wanted = {path for path, each in zip(files, found)
                      if any(holds(v) for v in each if nulls or there(v) or (v is not None and isinstance(expression, NotEqualTo)))}
            planned = {task.file.file_path for task in table.scan(row_filter=expression).plan_files()}
            assert wanted <= planned, (expression, wanted - planned)
            pruned[column] += len(planned) < FILES
    if name not in ("files.counts", "files.none"):
        assert all(pruned[column] > 0 for column in COLUMNS), dict(pruned)
    if name == "files.none":
        assert sum(pruned.values()) == 0
