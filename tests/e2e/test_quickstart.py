"""From `lhbox dev` to rows in stock DuckDB and PyIceberg: the blocks that it prints, run as they are printed."""
from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import duckdb
import pytest

from server import EXTENSIONS, LHBOX, Server, extension_file

SECONDS_MAX = 5.0
ROWS = [(1, "north"), (2, None)]


@pytest.fixture
def stock_duckdb(tmp_path: Path) -> Any:
    """DuckDB with its extensions already installed, so that the printed INSTALL finds them and asks no network."""
    folder = str(tmp_path / "extensions")
    connection = duckdb.connect(config={"extension_directory": folder})
    for name in EXTENSIONS:
        connection.execute(f"INSTALL '{extension_file(name)}'")
    connection.close()
    return duckdb.connect(config={"extension_directory": folder})


def printed_blocks(server: Server) -> dict[str, str]:
    """The blocks of the start's text: what stands under each "# " heading, by the heading's last word."""
    text = server.log.read_text("utf-8")
    while "Ctrl-C stops" not in text:
        text = server.log.read_text("utf-8")
    blocks: dict[str, str] = {}
    for part in re.split(r"^# ", text, flags=re.M)[1:]:
        heading, block = part.split("\n", 1)
        word = next(word for word in ("Send", "DuckDB", "PyIceberg") if word in heading)
        blocks[word] = re.split(r"^Ctrl-C", block, flags=re.M)[0].strip()
    return blocks


def run_shell(block: str) -> str:
    run = subprocess.run(["bash", "-ec", block], capture_output=True, text=True, timeout=30)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_rows_are_read_by_duckdb_within_five_seconds_of_the_start(own_server: Server, stock_duckdb: Any) -> None:
    began = time.monotonic()
    blocks = printed_blocks(own_server.start())
    assert '"accepted":2' in run_shell(blocks["Send"]).replace(" ", "")
    *before, select = [text for text in blocks["DuckDB"].split(";") if text.strip()]
    for statement in before:
        stock_duckdb.execute(statement)
    rows: list[tuple[Any, ...]] = []
    while not rows and time.monotonic() - began < SECONDS_MAX:
        rows = stock_duckdb.execute(select).fetchall()
    taken = time.monotonic() - began
    names = [column[0] for column in stock_duckdb.description]
    seen = [(row[names.index("x")], row[names.index("who")]) for row in rows]
    assert sorted(seen) == ROWS, f"{rows} after {taken:.1f} s"
    assert taken < SECONDS_MAX


def test_the_printed_pyiceberg_block_prints_the_rows(own_server: Server) -> None:
    server = own_server.start()
    blocks = printed_blocks(server)
    run_shell(blocks["Send"])
    server.roll({"id": server.dev["demo"]["sink_id"]})
    run = subprocess.run([sys.executable, "-c", blocks["PyIceberg"]], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    assert re.search(r'x: \[\[1,2\]\]\s+who: \[\["north",null\]\]', run.stdout), run.stdout


def test_the_printed_send_works_as_often_as_it_is_pasted(own_server: Server) -> None:
    blocks = printed_blocks(own_server.start())
    for _ in range(2):
        assert '"accepted":2' in run_shell(blocks["Send"]).replace(" ", "")


def test_the_cli_reads_the_profile_that_dev_writes(own_server: Server) -> None:
    server = own_server.start()
    (server.home / "lhbox-data").symlink_to(server.data)
    shown = subprocess.run([LHBOX, "sink", "list", "--json"], cwd=server.home, capture_output=True, text=True, timeout=30,
                           env={"HOME": str(server.home), "PATH": os.environ["PATH"]})
    assert shown.returncode == 0, shown.stderr
    assert server.dev["demo"]["sink_id"] in shown.stdout
