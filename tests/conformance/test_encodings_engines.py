"""Compact encodings (write.parquet.encodings), read by Spark's two readers, Polars and ClickHouse."""
from __future__ import annotations

from typing import Any, Iterator

import chdb
import polars
import pyarrow as pa
import pytest

import connect
from encoding_values import COLUMNS, TABLE, check, make
from server import Server
from spark import attach

pytestmark = pytest.mark.filterwarnings("ignore:Iceberg scan planning")


@pytest.fixture(scope="module")
def filled(server: Server) -> Server:
    make(server)
    return server


@pytest.fixture(scope="module")
def session(filled: Server, spark: Any) -> Any:
    return attach(spark, connect.block(filled, "spark"))


@pytest.mark.parametrize("vectorised", [True, False], ids=["vectorised", "row-by-row"])
def test_spark_reads_them(filled: Server, session: Any, vectorised: bool) -> None:
    session.conf.set("spark.sql.iceberg.vectorization.enabled", str(vectorised).lower())
    frame = session.table(f"{filled.dev['warehouse']}.{TABLE}").select(*COLUMNS)
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert ("ColumnarToRow" in plan) == vectorised, plan
    check(pa.Table.from_batches(frame._collect_as_arrow()))


def test_polars_reads_them(filled: Server) -> None:
    check(polars.scan_iceberg(connect.pyiceberg(filled).load_table(TABLE)).collect().to_arrow())


@pytest.fixture
def lake(filled: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.chdir(filled.data / "warehouse")
    connection = chdb.connect(":memory:")
    yield connection
    connection.close()


def test_clickhouse_reads_them(filled: Server, lake: Any) -> None:
    folder = connect.pyiceberg(filled).load_table(TABLE).location().removeprefix("file://")
    answer = lake.query(f"SELECT {', '.join(COLUMNS)} FROM icebergLocal('{folder}')", "ArrowStream")
    check(pa.ipc.open_stream(answer.bytes()).read_all())
