"""kill -9 under senders that retry, at random moments and at named points: the judge is DuckDB, and what the senders saw
acknowledged. LHBOX_KILLS scales: two of five are at named points."""
from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path

import pytest

from senders import ALL, COLUMNS, ROWS, Load, check, failpoint_binary, has_failpoints, run_until_killed
from server import LHBOX, Server

KILLS = int(os.environ.get("LHBOX_KILLS", "50" if ALL else "8"))
SENDERS = int(os.environ.get("LHBOX_SENDERS", "32" if ALL else "8"))
ON_THE_WAY = ("intake_after_log", "intake_told", "intake_log_synced", "intake_after_put", "intake_after_ledger", "db_after_commit", "store_before_rename", "store_after_rename", "plan_made",
              "plan_object_written", "try_begun", "data_file_written", "commit_manifest_written", "commit_list_written",
              "commit_files_durable",
              "plan_attempted", "catalog_before_swap", "catalog_after_swap", "catalog_after_hint", "commit_sent", "commit_landed",
              "plan_finished", "object_deleted", "objects_deleted")
AT_THE_START = ("intake_log_synced",)  # and then only when the log is half full


def kill_at_random(server: Server, load: Load, chance: random.Random, settled: bool) -> None:
    """`settled`: after a roll has ended, so that none is killed three times (that stops its sink: crash_loop)."""
    server.command = [LHBOX]
    server.start()
    if settled:
        load.rolled()
    time.sleep(chance.uniform(0.0, 2.0))
    server.kill()


def kill_at(server: Server, point: str, count: int) -> None:
    server.command = [failpoint_binary()]
    if not run_until_killed(server, point, count, within=60.0):
        raise AssertionError(f"{point} was not passed {count} times in a minute under load\n{server.tail()}")


def test_no_row_is_lost_or_doubled_by_kills_under_load(own_server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server, chance = own_server, random.Random(int(os.environ.get("LHBOX_SEED", "1")))
    server.start()
    server.make_table("demo.killed", COLUMNS)
    sink = server.make_sink("demo.killed", "killed_in", roll_seconds=1)
    named = 0
    with Load(server, sink, "demo.killed", senders=SENDERS) as load:
        load.more(SENDERS)
        server.kill()
        for kill in range(KILLS):
            if kill % 10 not in (1, 3, 5, 7) or not has_failpoints():
                kill_at_random(server, load, chance, settled=kill % 2 == 0)
            else:
                point = ON_THE_WAY[named % len(ON_THE_WAY)]
                kill_at(server, point, 1 if point in AT_THE_START else chance.choice((1, 1, 2, 5)))
                named += 1
        server.command = [LHBOX]
        server.start()
        load.more(SENDERS)
    rows = load.settle()
    books = server.books(sink)
    with capsys.disabled():
        print(f"\n{KILLS} kills -9, {named} of them at {min(named, len(ON_THE_WAY))} named points, {SENDERS} senders: {rows} rows "
              f"acknowledged, {books['committed']} in the table, {books['rejected']} in the rejects; 0 lost, 0 doubled")
    assert rows > KILLS * ROWS, "the senders got hardly anything through"


def test_the_checker_sees_a_lost_and_a_doubled_row(own_server: Server) -> None:
    server = own_server.start()
    server.make_table("demo.killed", COLUMNS)
    sink = server.make_sink("demo.killed", "killed_in")
    journal = server.home / "acknowledged"
    for batch_id, rows in (("a-1", ["a-1-0"]), ("a-2", ["a-1-0"])):
        assert server.send(sink, batch_id, [{"id": row} for row in rows]).status == 202
    server.roll(sink)
    for wrong in (["a-1-0"], ["a-1-0", "a-3-0"]):
        journal.write_text(json.dumps(wrong) + "\n")
        with pytest.raises(AssertionError, match="twice 1 {'a-1-0': 2}") as found:
            check(server, sink, "demo.killed", [journal], {"a-1", "a-2", "a-3"})
        assert ("a-3-0" in str(found.value)) == (len(wrong) == 2)
    with pytest.raises(AssertionError, match="never sent"):
        check(server, sink, "demo.killed", [Path(os.devnull)], {"a-3"})
