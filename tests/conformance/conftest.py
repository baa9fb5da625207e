"""Stock engines as users of the catalog. With LHBOX_TEST_TIER=all come the long flows and what only build/venv-engines can
run: Spark, Polars, ClickHouse, and the REST compatibility kit."""
from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / name) for name in ("e2e", "oracle")]

from fixtures import own_server, server  # noqa: E402
from spark import spark  # noqa: E402

__all__ = ["own_server", "server", "spark"]

LONG = ["rck/*", "*duckdb.py", "*pyiceberg.py", "*spark*.py", "*polars.py", "*clickhouse.py", "*engines.py"]
collect_ignore_glob = [] if os.environ.get("LHBOX_TEST_TIER") == "all" else LONG
