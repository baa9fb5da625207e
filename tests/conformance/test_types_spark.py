"""Every type, in every shape, in both format versions: what was sent is what Spark reads, by both of its readers.

Iceberg's vectorised reader takes scans of plain columns; the other one takes all. What Spark cannot read stands in
LIMITS with what was seen (see test_types).
"""
from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyspark
import pytest

from arrow_values import table_values
from connect import block
from evolution import evolve, found, table_of
from server import Server
from spark import attach
from type_matrix import Limit, Section, fill, page_shows, pair_name, pairs
from type_values import Case, Value

LIMITS = {
    "variant": Limit("Unsupported type: variant", "Spark 3.5 has no such type, and the table is refused: `Unsupported type: variant`"),
    "time": Limit("Spark does not support time fields",
                  "Spark 3.5 has no such type, and the table is refused: `Spark does not support time fields`"),
    "timestamp_ns": Limit("Cannot convert unsupported type to Spark: timestamp_ns",
                          "apache/iceberg#13681: `Cannot convert unsupported type to Spark: timestamp_ns`"),
    "timestamptz_ns": Limit("Cannot convert unsupported type to Spark: timestamptz_ns",
                            "apache/iceberg#13681: `Cannot convert unsupported type to Spark: timestamptz_ns`"),
}
NAME = f"Spark {pyspark.__version__} with Iceberg 1.11.0"
PLAIN = Section(f"{NAME}, row by row", "Spark 3.5", LIMITS)
VECTORISED = Section(f"{NAME}, vectorised", "Spark 3.5", LIMITS, shapes=("flat",))


@pytest.fixture(scope="module")
def warned(server: Server) -> dict[str, list[str]]:
    return fill(server)


@pytest.fixture(scope="module")
def session(server: Server, spark: Any) -> Any:
    return attach(spark, block(server, "spark"))


@pytest.fixture(scope="module")
def evolved(server: Server) -> None:
    for version in (2, 3):
        evolve(server, version)


def collect(session: Any, server: Server, kind: str, table: str, columns: list[str], vectorised: bool) -> dict[str, list[Value]]:
    session.conf.set("spark.sql.iceberg.vectorization.enabled", str(vectorised).lower())
    frame = session.table(f"{server.dev['warehouse']}.{table}").select(*columns)
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert ("ColumnarToRow" in plan) == vectorised, plan
    return table_values(pa.Table.from_batches(frame._collect_as_arrow()).sort_by("n"), kind)


@pytest.mark.parametrize("section", [PLAIN, VECTORISED], ids=["row-by-row", "vectorised"])
@pytest.mark.parametrize("pair", pairs(), ids=pair_name)
def test_spark_reads_what_was_sent(session: Any, server: Server, warned: dict[str, list[str]], pair: tuple[int, Case],
                                   section: Section) -> None:
    version, case = pair

    def read(table: str, columns: list[str]) -> dict[str, list[Value]]:
        return collect(session, server, case.kind, table, columns, section is VECTORISED)

    section.judge(version, case, read, warned)


@pytest.mark.parametrize("vectorised", [False, True], ids=["row-by-row", "vectorised"])
@pytest.mark.parametrize("version", [2, 3])
def test_spark_reads_both_sides_of_a_changed_schema(session: Any, server: Server, evolved: None, version: int,
                                                    vectorised: bool) -> None:
    wanted = {name: values for name, values in found(version).items() if not vectorised or name not in ("c", "l")}
    assert collect(session, server, "", table_of(version), list(wanted), vectorised) == wanted


def test_the_page_shows_what_was_seen() -> None:
    page_shows("Spark", PLAIN.text() + "\n" + VECTORISED.text())
