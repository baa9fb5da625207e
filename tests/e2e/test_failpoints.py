"""kill -9 at each named point of the code, one after the other, under senders: after each the next start settles what was
under way, and nothing is lost or doubled."""
from __future__ import annotations

import json
import re
import shutil
import sqlite3
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, Callable

import pytest

from senders import ALL, COLUMNS, Load, check, failpoint_binary, run_until_killed, table_rows
from server import ROOT, Server, reject_records
from test_kill import ON_THE_WAY

SENDERS = 16
CLAIM = ("claim_attempted", "claim_sent")
REJECTED = ("plan_void_rejected", "verdict_durable")
VOID = ("plan_voiding", "fence_recorded", "fence_sent", "fence_landed")
CREATE = ("sink_settings_written", "sink_inserted")
DELETE = ("deleting_written", "sink_deleting", "last_fence_recorded", "last_fence_sent", "last_fence_landed", "deleted_written",
          "sink_deleted")
RECOVER = ("recover_flagged", "recover_fence_recorded", "recover_fence_sent", "recover_fence_landed", "plans_undone", "plan_proven",
           "orphan_copied", "orphan_adopted", "recover_adopted")
REPLAY = ("intake_log_row_made",)
ELSEWHERE = {"incarnation_stored", "orphan_judged"}  # no row is under way there: tests/unit and tests/sim pass them


def named_in_the_code() -> set[str]:
    return {name for path in (ROOT / "src").rglob("*.c") for name in re.findall(r"CRASH_POINT\((\w+)\);", path.read_text())}


def test_each_point_in_the_code_has_its_kill_here() -> None:
    assert named_in_the_code() == {*ON_THE_WAY, *CREATE, *CLAIM, *REJECTED, *VOID, *DELETE, *RECOVER, *REPLAY, *ELSEWHERE}


@pytest.fixture
def dying(own_server: Server) -> Server:
    own_server.command = [failpoint_binary()]
    return own_server


def die(server: Server, point: str, act: Callable[[], Any] | None = None, within: float = 20.0) -> None:
    if not run_until_killed(server, point, act=act, within=within):
        raise AssertionError(f"{point} was not passed\n{server.tail()}")


def in_background(server: Server, method: str, path: str, **body: Any) -> Callable[[], None]:
    """A request whose answer the kill takes away."""
    def ask() -> None:
        try:
            server.call(method, path, body or None)
        except Exception:  # however the connection ends
            pass
    return lambda: threading.Thread(target=ask, daemon=True).start()


def hold_lease(server: Server, sink: dict[str, Any], seconds: float) -> None:
    """Another roller has the sink for so long; this one's waits. The server is stopped."""
    with sqlite3.connect(server.data / "lhbox.db") as ledger:
        until = int((time.time() + seconds) * 1e6)
        assert ledger.execute("UPDATE sink SET lease_holder = 'another', lease_until = ? WHERE id = ?",
                              (until, sink["id"])).rowcount == 1
    ledger.close()


def patched(server: Server, sink: dict[str, Any]) -> None:
    assert server.call("PATCH", f"/v1/sinks/{sink['id']}", {"roll_seconds": 2}).status == 200


def chain_and_each(points: tuple[str, ...]) -> list[tuple[str, ...]]:
    """All of them one after the other on the same data; with the long tier each alone, too."""
    return [points, *([(point,) for point in points] if ALL else [])]


# ---- on the way of each batch ----

def test_nothing_is_lost_or_doubled_by_a_kill_at_each_point_on_the_way(dying: Server) -> None:
    dying.start()
    dying.make_table("demo.killed", COLUMNS)
    sink = dying.make_sink("demo.killed", "killed_in", roll_seconds=1)
    with Load(dying, sink, "demo.killed", senders=SENDERS) as load:
        for point in ON_THE_WAY:
            load.rolled()
            dying.kill()
            die(dying, point)
            dying.start()
        load.rolled()
    assert load.settle() > len(ON_THE_WAY)


# ---- create ----

@pytest.mark.parametrize("point", CREATE)
def test_a_sink_whose_key_nobody_heard_is_made_again(dying: Server, point: str) -> None:
    dying.start()
    dying.make_table("demo.killed", COLUMNS)
    dying.kill()
    wanted = {"name": "killed_in", "table": "demo.killed", "warehouse": dying.dev["warehouse"], "roll_seconds": 1}
    die(dying, point, in_background(dying, "POST", "/v1/sinks", **wanted))
    dying.start()
    answer = dying.call("POST", "/v1/sinks", wanted)
    assert (answer.status, answer.code) == ((409, "sink_exists") if point == "sink_inserted" else (201, None)), answer
    if answer.status == 409:
        assert dying.call("DELETE", "/v1/sinks/killed_in").status == 202
        answer = dying.call("POST", "/v1/sinks", wanted)
    with Load(dying, answer.json, "demo.killed", senders=2) as load:
        load.rolled()
    load.settle()
    assert dying.terminate() == 0
    recovered = subprocess.run([*dying.command, "recover", "--data", str(dying.data), "--json"], capture_output=True, text=True, timeout=60)
    assert recovered.returncode == 0, recovered
    ends = [told["end"] for told in json.loads(recovered.stdout)["sinks"] if told["name"] == "killed_in"]
    assert sorted(ends) == (["deleted", "recovered"] if point == "sink_inserted" else ["recovered"])


# ---- claim ----

@pytest.mark.parametrize("point", CLAIM)
def test_a_claim_is_made_once(dying: Server, point: str) -> None:
    dying.start()
    dying.make_table("demo.killed", COLUMNS)
    sink = dying.make_sink("demo.killed", "killed_in", roll_seconds=1)
    dying.kill()
    with Load(dying, sink, "demo.killed", senders=2) as load:
        die(dying, point)
        dying.start()
        load.rolled()
    load.settle()


# ---- a roll in which every row is rejected ----

@pytest.mark.parametrize("point", REJECTED)
def test_an_all_rejected_roll_is_told_once(dying: Server, point: str) -> None:
    dying.start()
    dying.make_table("demo.killed", COLUMNS)
    sink = dying.make_sink("demo.killed", "killed_in", roll_seconds=3600)
    assert dying.send(sink, "good", [{"id": "good-0"}]).status == 202
    dying.roll(sink)
    assert dying.send(sink, "bad", [{"id": "bad-0", "n": "x"}, {"id": "bad-1", "n": "x"}]).status == 202
    dying.kill()
    die(dying, point, in_background(dying, "POST", f"/v1/sinks/{sink['id']}/roll?wait=30"))
    dying.start()
    assert dying.send(sink, "after", [{"id": "after-0"}]).status == 202
    dying.roll(sink)
    assert sorted(record["data"]["id"] for record in reject_records(dying, sink)) == ["bad-0", "bad-1"]
    assert sorted(table_rows(dying, "demo.killed")) == ["after-0", "good-0"]
    books = dying.books(sink)
    assert (books["committed"], books["rejected"], books["pending"]) == (2, 2, 0)


# ---- a void with its fence ----

@pytest.mark.parametrize("points", chain_and_each(VOID), ids="-".join)
def test_a_plan_that_is_taken_back_leaves_its_rows_to_the_next(dying: Server, points: tuple[str, ...]) -> None:
    dying.start()
    dying.make_table("demo.killed", COLUMNS)
    sink = dying.make_sink("demo.killed", "killed_in", roll_seconds=1)
    with Load(dying, sink, "demo.killed", senders=4) as load:
        load.rolled()
        dying.kill()
        die(dying, "catalog_before_swap")  # attempted, and not landed
    hold_lease(dying, sink, 4.0)
    die(dying, points[0], lambda: patched(dying, sink))
    for point in points[1:]:
        die(dying, point)
    dying.start()
    load.settle()
    plans = sqlite3.connect(f"file:{dying.data / 'lhbox.db'}?mode=ro", uri=True)
    assert plans.execute("SELECT count(*) FROM plan WHERE sink = ? AND state = 4", (sink["id"],)).fetchone() == (1,)
    plans.close()


# ---- delete ----

@pytest.mark.parametrize("point", DELETE)
def test_what_a_delete_discards_never_appears(dying: Server, point: str) -> None:
    dying.start()
    dying.make_table("demo.killed", COLUMNS)
    sink = dying.make_sink("demo.killed", "killed_in", roll_seconds=3600)
    assert dying.send(sink, "kept", [{"id": "kept-0"}]).status == 202
    dying.roll(sink)
    assert dying.send(sink, "waits", [{"id": "waits-0"}]).status == 202
    dying.kill()
    die(dying, point, in_background(dying, "DELETE", f"/v1/sinks/{sink['id']}"))
    dying.start()
    refused = dying.send(sink, "late", [{"id": "late-0"}])
    deadline = time.monotonic() + 60
    while (answer := dying.call("DELETE", f"/v1/sinks/{sink['id']}")).status == 503:
        assert time.monotonic() < deadline, answer
        time.sleep(0.2)
    assert answer.status in (200, 202, 404), answer
    if point == "deleting_written":
        assert refused.status in (202, 404, 409, 410, 503), refused
    else:
        assert refused.status in (401, 404, 409, 410), refused
    again = dying.make_sink("demo.killed", "again_in", roll_seconds=3600)
    assert dying.send(again, "waits", [{"id": "again-0"}]).status == 202
    dying.roll(again)
    assert sorted(table_rows(dying, "demo.killed")) == ["again-0", "kept-0"]


# ---- recover ----

def copy_ledger(server: Server, to: Path) -> None:
    source, target = sqlite3.connect(server.data / "lhbox.db"), sqlite3.connect(to)
    source.backup(target)
    source.close()
    target.close()


def put_back(server: Server, copy: Path) -> None:
    for path in server.data.glob("lhbox.db*"):
        path.unlink()
    shutil.copy(copy, server.data / "lhbox.db")


@pytest.mark.parametrize("points", chain_and_each(RECOVER), ids="-".join)
def test_a_recover_that_is_killed_begins_again(dying: Server, points: tuple[str, ...]) -> None:
    dying.start()
    dying.make_table("demo.killed", COLUMNS)
    sink = dying.make_sink("demo.killed", "killed_in", roll_seconds=1)
    with Load(dying, sink, "demo.killed", senders=4, prefix="a") as before:
        before.rolled()
        copy_ledger(dying, dying.home / "copy.db")
        before.rolled()
        before.rolled()
        assert dying.call("PATCH", f"/v1/sinks/{sink['id']}", {"roll_seconds": 3600}).status == 200
        before.more(5)  # these wait; the copy knows nothing of them
    dying.kill()
    put_back(dying, dying.home / "copy.db")
    die(dying, points[0], lambda: dying.send(sink, "nudge-0", [{"id": "nudge-0-0"}]))  # its roll would find the table ahead
    for point in points[1:]:
        die(dying, point)
    dying.start()
    with Load(dying, sink, "demo.killed", senders=4, prefix="b") as after:
        after.more(5)
    dying.roll(sink)
    sent = before.sent | after.sent | {"nudge-0"}
    check(dying, sink, "demo.killed", [before.journal, after.journal], sent)
    assert dying.books(sink)["pending"] == 0
    every = Counter(table_rows(dying, "demo.killed"))
    assert every and max(every.values()) == 1


@pytest.mark.parametrize("point", REPLAY)
def test_a_replay_that_is_killed_begins_again(dying: Server, point: str) -> None:
    dying.start()
    dying.make_table("demo.killed", COLUMNS)
    sink = dying.make_sink("demo.killed", "killed_in", roll_seconds=3600)
    with Load(dying, sink, "demo.killed", senders=4) as load:
        load.more(20)
        dying.kill()
        for _ in range(2):
            die(dying, point)
        dying.start()
        load.more(5)
    load.settle()
