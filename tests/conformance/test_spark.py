"""Spark SQL against the embedded catalog, attached as `lhbox connect spark` says."""
from __future__ import annotations

from typing import Any

import pytest

from connect import block
from server import Server
from spark import attach, rows


@pytest.fixture(scope="module")
def lake(server: Server, spark: Any) -> Any:
    return attach(spark, block(server, "spark"))


def test_the_block_attaches(server: Server, lake: Any) -> None:
    assert rows(lake, f"SELECT * FROM {server.dev['demo']['table']}") == []
