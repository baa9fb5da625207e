"""Stock engines as users of the catalog. The short tier runs what build/venv can run: DuckDB and PyIceberg; with
LHBOX_TEST_TIER=all come those of build/venv-engines: Spark, Polars, ClickHouse, and the REST compatibility kit."""
from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

from fixtures import own_server, server  # noqa: E402
from spark import spark  # noqa: E402

__all__ = ["own_server", "server", "spark"]

ALL = os.environ.get("LHBOX_TEST_TIER") == "all"
collect_ignore_glob = [] if ALL else ["rck/*", "*spark*.py", "*polars*.py", "*clickhouse*.py"]
