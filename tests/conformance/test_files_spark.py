"""Spark's two Parquet readers agree on our files, and its filters return what a full scan returns."""
from __future__ import annotations

from typing import Any

import pytest

from connect import block
from file_values import COLUMNS, FILES, make
from server import Server
from spark import attach

TABLES: dict[str, tuple[int, dict[str, str]]] = {
    "files.spark_v2": (2, {}),
    "files.spark_v3": (3, {f"write.parquet.bloom-filter-enabled.column.{name}": "true" for name in COLUMNS}),
    "files.spark_pages": (3, {"write.parquet.page-row-limit": "1", "write.parquet.compression-codec": "gzip"}),
    "files.spark_plain": (3, {"write.parquet.compression-codec": "snappy", "write.parquet.dict-size-bytes": "1024"}),
}
# Spark has no time of day: it cannot open a table with such a column.
SPARK_COLUMNS = {name: column for name, column in COLUMNS.items() if column[0] != "time"}


@pytest.fixture(scope="module")
def lake(server: Server, spark: Any) -> Any:
    for name, (version, properties) in TABLES.items():
        make(server, name, SPARK_COLUMNS, version, properties=properties)
    return attach(spark, block(server, "spark"))


def read(lake: Any, source: str, vectorized: bool, predicate: str = "true") -> list[str]:
    """The rows as Spark's JSON: NaNs and zeros of both signs compare so, and times of year 1 are no Python times."""
    frame = lake.read.option("vectorization-enabled", str(vectorized).lower()).table(source).where(predicate)
    return sorted(row[0] for row in frame.selectExpr("to_json(struct(*))").collect())


@pytest.mark.parametrize("name", TABLES)
def test_the_vectorized_reader_and_the_other_agree(server: Server, lake: Any, name: str) -> None:
    source = f"{server.dev['warehouse']}.{name}"
    rows = read(lake, source, True)
    assert len(rows) == 4 * FILES and rows == read(lake, source, False)


def literal(type_: str, value: Any) -> str | None:
    """As Spark SQL, of the values whose text form is the same there."""
    if value in ("NaN", "Infinity", "-Infinity") or isinstance(value, float):
        return f"CAST('{value}' AS {type_.upper()})"
    if type_ in ("fixed[2]", "binary"):
        return f"unbase64('{value}')"
    if type_ == "string" or type_ == "uuid":
        return None if "\0" in value else "'" + value + "'"
    if type_.startswith("timestamp"):
        return f"CAST('{value}' AS {'TIMESTAMP' if type_ == 'timestamptz' else 'TIMESTAMP_NTZ'})"
    spark_type = {"long": "BIGINT"}.get(type_, type_.upper())
    return f"CAST('{value}' AS {spark_type})"


@pytest.mark.parametrize("name", TABLES)
def test_filters_return_what_a_full_scan_returns(server: Server, lake: Any, name: str) -> None:
    """The whole table is kept first, where no file is left out. NaN is in no bound (iceberg#9130), and the reference
    library orders a literal -0.0 below a bound 0.0, where Spark takes them for equal: neither is asked for. Nor is uuid:
    the library orders its halves as signed numbers and leaves files out that hold the value (iceberg#14216)."""
    source = f"{server.dev['warehouse']}.{name}"
    whole = lake.read.table(source).localCheckpoint()
    whole.createOrReplaceTempView("whole")
    for column, (type_, values) in SPARK_COLUMNS.items():
        number = f" AND NOT isnan({column})" if type_ in ("float", "double") else ""
        if type_ == "uuid":
            continue
        for at, value in enumerate(values):
            text = literal(type_, value)
            if text is None or value == "NaN" or "-0.0'" in text or value in values[:at]:
                continue
            how = ("=", "<", ">=", "<=", ">")[at % 5]
            predicate = f"{column} {how} {text}{number}"
            wanted = sorted(row.n for row in whole.where(predicate).select("n").collect())
            for vectorized in (True, False):
                frame = lake.read.option("vectorization-enabled", str(vectorized).lower()).table(source)
                assert sorted(row.n for row in frame.where(predicate).select("n").collect()) == wanted, predicate
