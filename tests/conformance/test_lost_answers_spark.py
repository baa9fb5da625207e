"""A commit is applied and its answer is lost: Spark's next action finds the table whole."""
from __future__ import annotations

from pathlib import Path
from typing import Any, Iterator

import py4j.protocol
import pyspark.errors
import pytest

import connect
import spark as stock
from cutting_proxy import CuttingProxy
from lost import ROUNDS, Engine, cut_rounds, killed_rounds, started


class Spark(Engine):
    errors = (py4j.protocol.Py4JError, pyspark.errors.PySparkException)

    def __init__(self, proxy: CuttingProxy, spark: Any) -> None:
        self.session = stock.attach(spark, proxy.through(connect.block(proxy.server, "spark")))
        self.session.sql(f"USE {proxy.server.dev['warehouse']}.demo")
        self.session.sql("INSERT INTO lost VALUES (1, 0), (2, 0)")

    def change(self, name: str, number: int, rows: dict[int, int]) -> None:
        self.session.sql({
            "insert": f"INSERT INTO lost VALUES ({number}, 0)",
            "update": "UPDATE lost SET n = n + 1",
            "delete": f"DELETE FROM lost WHERE id = {max(rows)}",
            "merge": f"MERGE INTO lost t USING (SELECT id, n + 10 AS n FROM lost UNION ALL SELECT {number}L, 7L) AS s "
                     "ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, s.n)",
            "create": f"CREATE TABLE copy_{number} USING iceberg AS SELECT id, n FROM lost",
        }[name]).collect()

    def rows(self, table: str) -> list[tuple[int, int]]:
        return stock.rows(self.session, f"SELECT id, n FROM {table}")


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[CuttingProxy]:
    server = started(tmp_path)
    with CuttingProxy(server) as proxy:
        yield proxy
    server.kill()


def test_the_connection_is_cut_before_the_answer(proxy: CuttingProxy, spark: Any) -> None:
    """Spark gives up at once."""
    assert cut_rounds(proxy, Spark(proxy, spark)) == {"success": 0, "failure": ROUNDS}


def test_the_server_is_killed_right_after_applying(proxy: CuttingProxy, spark: Any) -> None:
    killed_rounds(proxy.server, Spark(proxy, spark))
