"""The server dies between a commit and its answer: DuckDB takes the commit for refused and deletes its files."""
from __future__ import annotations

from pathlib import Path

import pytest

from server import LHBOX, Server, duckdb_attached


def has_crash_points() -> bool:
    """A build with named places at which it can be made to die (meson -Dfailpoints=true)."""
    return b"LHBOX_CRASH_POINT" in Path(LHBOX).read_bytes()


@pytest.mark.skipif(not has_crash_points(), reason="needs a build with crash points")
@pytest.mark.parametrize("point, landed", [("catalog_before_swap", False), ("catalog_after_swap", True)])
def test_table_is_whole_after_the_answer_was_lost(tmp_path: Path, point: str, landed: bool) -> None:
    import duckdb
    server = Server(tmp_path).start()
    table = f"{server.dev['warehouse']}.demo.lost"
    lake = duckdb_attached(server)
    lake.execute(f"CREATE TABLE {table} (id BIGINT)")
    lake.execute(f"INSERT INTO {table} VALUES (1)")
    server.terminate()
    dying = Server(tmp_path, env={"LHBOX_CRASH_POINT": point}).start()
    lake = duckdb_attached(dying)
    with pytest.raises(duckdb.Error):
        lake.execute(f"INSERT INTO {table} VALUES (2)")
    dying.wait()
    again = Server(tmp_path).start()
    wanted = [(1,), (2,)] if landed else [(1,)]
    assert duckdb_attached(again).execute(f"SELECT id FROM {table} ORDER BY id").fetchall() == wanted
    again.kill()
