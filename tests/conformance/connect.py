"""The blocks that `lhbox connect` prints, run as they are: only INSTALL takes the pinned extension's file."""
from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

from server import LHBOX, Server, extension_file


def block(server: Server, engine: str) -> str:
    """What `lhbox connect ENGINE` prints."""
    env = {**os.environ, "LHBOX_URL": server.dev["url"], "LHBOX_API_KEY": server.dev["api_key"]}
    return subprocess.run([LHBOX, "connect", engine, "--warehouse", server.dev["warehouse"]], env=env, check=True,
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=server.home).stdout


def with_pinned_extensions(sql: str) -> str:
    return re.sub(r"\bINSTALL (\w+);", lambda found: f"INSTALL '{extension_file(found[1])}';", sql)


def duckdb(server: Server, home: Path, sql: str | None = None) -> Any:
    """A connection in which the DuckDB block ran; its extensions are installed in `home`."""
    import duckdb as engine
    connection = engine.connect(config={"extension_directory": str(home / "duckdb"),
                                        "allow_unsigned_extensions": "true"})
    connection.execute(with_pinned_extensions(sql or block(server, "duckdb")))
    return connection


def python(text: str) -> dict[str, Any]:
    """Runs a printed Python block; the names it made."""
    names: dict[str, Any] = {}
    exec(compile(text, "lhbox connect", "exec"), names)
    return names


def pyiceberg(server: Server) -> Any:
    """The catalog of the PyIceberg block."""
    return python(block(server, "pyiceberg"))["catalog"]
