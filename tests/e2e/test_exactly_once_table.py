"""What owners and other engines do to a table in the middle of rolls, through PyIceberg: rows are neither lost nor doubled, and
what cannot be told stops the sink with its reason and its rows."""
from __future__ import annotations

import sqlite3
import threading
import time
from collections import Counter
from typing import Any, Callable

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException, ServiceUnavailableError
from pyiceberg.expressions import StartsWith
from pyiceberg.types import StringType

from senders import ALL, COLUMNS, Load, check, failpoint_binary, run_until_killed, table_rows
from server import Server, pyiceberg_catalog, reject_records

PROPERTY = "lakehousebox.sink.roll"
TABLE = "demo.shared"


@pytest.fixture
def shared(own_server: Server) -> tuple[Server, dict[str, Any]]:
    own_server.start()
    own_server.make_table(TABLE, COLUMNS)
    return own_server, own_server.make_sink(TABLE, "shared_in", roll_seconds=1)


def until_it_lands(server: Server, change: Callable[[Any], None]) -> None:
    """An owner's change: loaded afresh and done again whenever a roll was faster."""
    deadline = time.monotonic() + 60
    while True:
        try:
            change(pyiceberg_catalog(server).load_table(TABLE))
            return
        except (CommitFailedException, CommitStateUnknownException, ServiceUnavailableError):
            assert time.monotonic() < deadline
            time.sleep(0.05)


def rows_of(table: Any, ids: list[str]) -> pa.Table:
    schema = table.schema().as_arrow()
    columns = {field.name: pa.array(ids if field.name == "id" else [None] * len(ids), field.type) for field in schema}
    return pa.table(columns, schema=schema)


def state_of(server: Server, sink: dict[str, Any]) -> tuple[str, str | None]:
    shown = server.call("GET", f"/v1/sinks/{sink['id']}").json
    return shown["state"], shown.get("state_reason")


def stopped(server: Server, sink: dict[str, Any], reason: str) -> None:
    deadline = time.monotonic() + 30
    while state_of(server, sink) != ("disabled", reason):
        assert time.monotonic() < deadline, (state_of(server, sink), server.tail())
        time.sleep(0.05)


# ---- changes that rolls live with ----

def test_appends_deletes_and_schema_changes_between_rolls(shared: tuple[Server, dict[str, Any]]) -> None:
    server, sink = shared
    expected: list[str] = []
    with Load(server, sink, TABLE, senders=8) as load:
        for number in range(4):
            load.rolled()
            ids = [f"foreign-{number}-{row}" for row in range(3)]
            until_it_lands(server, lambda table: table.append(rows_of(table, ids)))
            expected += ids[1:]
            until_it_lands(server, lambda table: table.delete(f"id == '{ids[0]}'"))

            def grow(table: Any) -> None:
                with table.update_schema() as update:
                    update.add_column(f"extra_{number}", StringType())

            until_it_lands(server, grow)
            if number % 2 == 1:
                def shrink(table: Any) -> None:
                    with table.update_schema() as update:
                        update.delete_column(f"extra_{number}")
                until_it_lands(server, shrink)
        load.rolled()
    load.settle()
    assert sorted(row for row in table_rows(server, TABLE) if row.startswith("foreign-")) == sorted(expected)
    assert state_of(server, sink) == ("active", None)


@pytest.mark.skipif(not ALL, reason="long: LHBOX_TEST_TIER=all")
def test_a_storm_of_foreign_commits_delays_and_loses_nothing(shared: tuple[Server, dict[str, Any]]) -> None:
    server, sink = shared
    stop, landed = threading.Event(), []

    def storm() -> None:
        while not stop.is_set():
            name = f"foreign-{len(landed)}"
            until_it_lands(server, lambda table: table.append(rows_of(table, [name])))
            landed.append(name)

    with Load(server, sink, TABLE, senders=4) as load:
        thread = threading.Thread(target=storm)
        thread.start()
        try:
            for _ in range(4):
                load.rolled()
        finally:
            stop.set()
            thread.join()
    load.settle()
    foreign = Counter(row for row in table_rows(server, TABLE) if row.startswith("foreign-"))
    assert set(landed) == set(foreign)  # PyIceberg may repeat a commit of which it did not hear


# ---- what cannot be told ----

def unset(table: Any) -> None:
    with table.transaction() as transaction:
        transaction.remove_properties(PROPERTY)


def to_something_else(table: Any) -> None:
    installation, sink_id, n, _ = table.properties[PROPERTY].split(":")
    with table.transaction() as transaction:
        transaction.set_properties({PROPERTY: f"{installation}:{sink_id}:{n}:zzzzzzzzzzzzzzzzzzzzzzzzzz"})


@pytest.mark.parametrize("change", [unset, to_something_else] if ALL else [unset], ids=lambda change: change.__name__)
def test_a_property_that_was_changed_stops_the_sink_and_keeps_its_rows(shared: tuple[Server, dict[str, Any]],
                                                                       change: Callable[[Any], None]) -> None:
    server, sink = shared
    with Load(server, sink, TABLE, senders=8) as load:
        load.rolled()
        until_it_lands(server, change)
        stopped(server, sink, "ledger_mismatch")
        before = sorted(table_rows(server, TABLE))
        load.more(16)  # it goes on accepting
        time.sleep(1.5)  # a roll would be due
    assert sorted(table_rows(server, TABLE)) == before
    books = server.books(sink)
    assert books["pending"] > 0 and books["accepted"] == books["committed"] + books["rejected"] + books["pending"]
    server.kill()
    server.start()  # nor does a start go over it
    assert state_of(server, sink) == ("disabled", "ledger_mismatch")
    answer = server.call("POST", f"/v1/sinks/{sink['id']}/resume", {"reclaim": True})
    assert answer.status == 200, answer
    load.settle()
    assert state_of(server, sink) == ("active", None)


def expire_to_one(server: Server) -> None:
    table = pyiceberg_catalog(server).load_table(TABLE)
    current = table.metadata.current_snapshot_id
    old = [snapshot.snapshot_id for snapshot in table.metadata.snapshots if snapshot.snapshot_id != current]
    assert old
    expire = table.maintenance.expire_snapshots()
    for snapshot in old:
        expire = expire.by_id(snapshot)
    expire.commit()
    assert len(pyiceberg_catalog(server).load_table(TABLE).metadata.snapshots) == 1


@pytest.mark.parametrize("point, landed", [("commit_landed", True)] + ([("catalog_before_swap", False)] if ALL else []))
def test_expired_to_one_snapshot_between_commit_and_recovery(shared: tuple[Server, dict[str, Any]], point: str, landed: bool) -> None:
    """Another roller holds the sink after the kill; before its lease ends the owner appends and expires all else. What the
    property says is enough."""
    server, sink = shared
    server.kill()
    server.command = [failpoint_binary()]
    server.start()
    with Load(server, sink, TABLE, senders=4) as load:
        load.rolled()
        server.kill()
        assert run_until_killed(server, point)
    with sqlite3.connect(server.data / "lhbox.db") as ledger:
        ledger.execute("UPDATE sink SET lease_holder = 'another', lease_until = ?", (int((time.time() + 5) * 1e6),))
    ledger.close()
    server.start()
    before = Counter(table_rows(server, TABLE))
    plan = "SELECT n, state FROM plan WHERE sink = ? ORDER BY n DESC LIMIT 1"
    with sqlite3.connect(f"file:{server.data / 'lhbox.db'}?mode=ro", uri=True) as ledger:
        n, state = ledger.execute(plan, (sink["id"],)).fetchone()
    ledger.close()
    assert state == 1, "attempted"
    table = pyiceberg_catalog(server).load_table(TABLE)
    assert (int(table.properties[PROPERTY].split(":")[2]) == n) == landed
    until_it_lands(server, lambda table: table.append(rows_of(table, ["foreign-0"])))
    expire_to_one(server)
    with sqlite3.connect(f"file:{server.data / 'lhbox.db'}?mode=ro", uri=True) as ledger:
        assert ledger.execute(plan, (sink["id"],)).fetchone() == (n, 1), "recovered too early to show anything"
    ledger.close()
    load.settle()
    after = Counter(table_rows(server, TABLE))
    assert before <= after and max(after.values()) == 1


def test_dropped_and_made_again_stops_the_sink_and_touches_nothing(shared: tuple[Server, dict[str, Any]]) -> None:
    server, sink = shared
    with Load(server, sink, TABLE, senders=8) as load:
        load.rolled()
        catalog = pyiceberg_catalog(server)
        schema = catalog.load_table(TABLE).schema()
        catalog.drop_table(TABLE)
        catalog.create_table(TABLE, schema)
        stopped(server, sink, "table_replaced")
        load.more(16)
        time.sleep(1.5)  # a roll would be due
    assert table_rows(server, TABLE) == []
    assert PROPERTY not in pyiceberg_catalog(server).load_table(TABLE).properties
    books = server.books(sink)
    assert books["pending"] > 0
    deleted = server.call("DELETE", f"/v1/sinks/{sink['id']}")
    assert deleted.status == 202 and deleted.json["pending_batches_discarded"] > 0, deleted
    again = server.make_sink(TABLE, "again_in", roll_seconds=1)
    assert server.send(again, "n-0", [{"id": "n-0-0", "n": 1}]).status == 202
    server.roll(again)
    assert table_rows(server, TABLE) == ["n-0-0"]
    assert reject_records(server, again) == []
    check(server, again, TABLE, [], {"n-0"})
