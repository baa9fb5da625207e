"""An older lhbox.db is put back while the store has gone on: nothing acknowledged is lost, nothing doubled. The judge is DuckDB."""
from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from server import LHBOX, Server, duckdb_attached, reject_records

COLUMNS = {"id": "string", "n": "int required"}
FOUND = 5


class Garden:
    """A server with one sink, and every row that was acknowledged."""

    def __init__(self, server: Server) -> None:
        self.server, self.acknowledged = server.start(), Counter[str]()
        server.make_table("demo.garden", COLUMNS)
        self.sink = server.make_sink("demo.garden", "garden_in", roll_seconds=3600)

    def send(self, batch: str, rows: int = 3, bad: int = 0) -> None:
        body: list[Any] = [{"id": f"{batch}-{row}", "n": row} for row in range(rows)]
        body += [{"id": f"{batch}-bad-{row}", "n": "many"} for row in range(bad)]
        answer, deadline = self.server.send(self.sink, batch, body), time.monotonic() + 30
        while answer.status == 503 and time.monotonic() < deadline:  # after a recover every node registers again
            time.sleep(0.2)
            answer = self.server.send(self.sink, batch, body)
        assert answer.status == 202, answer
        self.acknowledged.update({f"{batch}-{row}": 1 for row in range(rows)})

    def ledger(self) -> Path:
        return self.server.data / "lhbox.db"

    def copy_ledger(self) -> Path:
        """A consistent copy by SQLite's own backup, with or without a server on it."""
        copy = self.server.home / f"ledger-{time.monotonic_ns()}.db"
        with sqlite3.connect(self.ledger()) as source, sqlite3.connect(copy) as target:
            source.backup(target)
        return copy

    def put_back(self, copy: Path) -> None:
        assert self.server.process is None
        for old in self.server.data.glob("lhbox.db*"):
            old.unlink()
        shutil.copy(copy, self.ledger())

    def recover(self) -> tuple[int, dict[str, Any]]:
        done = self.command("recover", "--data", str(self.server.data), "--json")
        return done.returncode, json.loads(done.stdout)

    def command(self, *args: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "LHBOX_URL": self.server.dev["url"], "LHBOX_API_KEY": self.server.dev["api_key"]}
        return subprocess.run([LHBOX, *args], text=True, capture_output=True, timeout=30, cwd=self.server.home, env=env)

    def in_table(self, table: str = "demo.garden") -> Counter[str]:
        with duckdb_attached(self.server) as reader:
            rows = reader.execute(f"SELECT id FROM {self.server.dev['warehouse']}.{table}").fetchall()
        return Counter(row for (row,) in rows)

    def check(self) -> None:
        """After a roll: each acknowledged row once, the books balanced, each batch known by its id."""
        self.server.roll(self.sink)
        assert self.in_table() == self.acknowledged
        assert self.server.books(self.sink)["pending"] == 0


@pytest.fixture
def garden(own_server: Server) -> Garden:
    return Garden(own_server)


def go_on(garden: Garden) -> None:
    """Rolls, rejects, a pending batch, after the copy."""
    garden.send("rolled", bad=1)
    garden.server.roll(garden.sink)
    garden.send("again")
    garden.server.roll(garden.sink)
    garden.send("waits")


@pytest.mark.parametrize("ending", ["kill", "terminate"])
def test_an_older_ledger_recovers_at_start(garden: Garden, ending: str) -> None:
    server = garden.server
    garden.send("first")
    server.roll(garden.sink)
    garden.send("pending")
    server.terminate()
    copy = garden.copy_ledger()
    server.start()
    go_on(garden)
    server.kill() if ending == "kill" else server.terminate()
    garden.put_back(copy)
    server.start()
    shown = server.call("GET", f"/v1/sinks/{garden.sink['id']}").json
    assert shown["state"] == "active" and "recovering" not in shown, shown
    assert '"event":"sink_recovered"' in server.log.read_text()
    garden.check()
    assert len(reject_records(server, garden.sink)) == 1
    assert server.books(garden.sink)["rejected"] == 1
    # A resend is known, whatever the copy knew of it.
    answer = server.send(garden.sink, "again", [{"id": f"again-{row}", "n": row} for row in range(3)])
    assert answer.status == 202 and answer.json["duplicate"] is True, answer
    assert server.send(garden.sink, "again", [{"id": "other", "n": 1}]).code == "idempotency_key_reused"
    garden.send("later")
    garden.check()


def test_the_same_copy_may_be_put_back_again_and_again(garden: Garden) -> None:
    server = garden.server
    garden.send("first")
    server.terminate()
    copy = garden.copy_ledger()
    for turn in range(3):
        server.start()
        garden.send(f"turn-{turn}")
        if turn != 1:
            server.roll(garden.sink)
        server.kill()
        garden.put_back(copy)
    server.start()
    garden.check()


def test_a_copy_of_seconds_ago_recovers_when_the_table_is_ahead(garden: Garden) -> None:
    server = garden.server
    garden.send("first")
    server.roll(garden.sink)
    copy = garden.copy_ledger()  # while it serves, within the minute of one incarnation
    go_on(garden)
    server.kill()
    garden.put_back(copy)
    server.start()
    garden.check()


def test_recover_by_command_reports_each_sink(garden: Garden) -> None:
    server = garden.server
    garden.send("first")
    server.roll(garden.sink)
    copy = garden.copy_ledger()
    go_on(garden)
    busy = garden.command("recover", "--data", str(server.data))
    assert busy.returncode == 1 and busy.stderr.startswith("lhbox: "), busy
    server.terminate()
    garden.put_back(copy)
    code, report = garden.recover()
    told = {sink["sink_id"]: sink for sink in report["sinks"]}[garden.sink["id"]]
    assert code == 0 and told["end"] == "recovered", report
    assert (told["plans"], told["committed"], told["adopted"], told["missing"]) == (2, 2, 1, 0), told
    code, report = garden.recover()
    told = {sink["sink_id"]: sink for sink in report["sinks"]}[garden.sink["id"]]
    assert code == 0 and told["plans"] == told["committed"] == told["adopted"] == 0, told
    server.start()
    garden.check()


def test_a_table_and_a_sink_that_the_copy_lacks_are_made_again(garden: Garden) -> None:
    server = garden.server
    server.terminate()
    copy = garden.copy_ledger()
    server.start()
    server.make_table("fresh.young", COLUMNS)
    sink = server.make_sink("fresh.young", "young_in", roll_seconds=3600)
    assert server.send(sink, "a", [{"id": "a-0", "n": 1}]).status == 202
    server.roll(sink)
    assert server.send(sink, "b", [{"id": "b-0", "n": 1}]).status == 202
    server.kill()
    garden.put_back(copy)
    server.start()
    server.roll(sink)
    assert garden.in_table("fresh.young") == Counter(["a-0", "b-0"])
    assert server.books(sink)["committed"] == 2
    assert server.send(sink, "c", [{"id": "c-0", "n": 1}]).status == 202  # its key is good as before


def make_project(server: Server, name: str) -> None:
    """Later calls are made with its key."""
    secret = (server.data / "keys" / "bootstrap").read_text().strip()
    made = server.call("POST", "/v1/projects", {"name": name}, secret)
    assert made.status == 201, made
    server.dev["api_key"] = made.json["api_key"]


def test_a_warehouse_and_a_project_that_the_copy_lacks_come_back_by_hand(garden: Garden) -> None:
    """The files are there; once the warehouse is made again under its name, recover finds its tables and sinks in them."""
    server = garden.server
    before = garden.copy_ledger()
    make_project(server, "young")
    assert server.call("POST", "/v1/warehouses", {"name": "later"}).status == 201
    table = {"table": "later.demo.late", "columns": [{"name": "id", "type": "string"}, {"name": "n", "type": "long"}]}
    assert server.call("POST", "/v1/tables", table).status == 201
    made = server.call("POST", "/v1/sinks", {"name": "late_in", "table": "demo.late", "warehouse": "later", "roll_seconds": 3600})
    assert made.status == 201, made
    sink = made.json
    assert server.send(sink, "rolled", [{"id": "a", "n": 1}, {"id": "b", "n": 2}]).status == 202
    server.roll(sink)
    assert server.send(sink, "waits", [{"id": "c", "n": 3}]).status == 202
    server.kill()
    garden.put_back(before)
    server.start()
    make_project(server, "young")
    young = server.dev["api_key"]
    assert server.call("GET", f"/v1/sinks/{sink['id']}").status == 404
    assert server.call("POST", "/v1/warehouses", {"name": "later"}).status == 201
    assert server.terminate() == 0
    code, report = garden.recover()
    assert code == 0 and [told["end"] for told in report["sinks"] if told["name"] == "late_in"] == ["recovered"], report
    server.start()
    server.dev["api_key"] = young
    server.roll(sink)
    assert server.books(sink)["committed"] == 3
    again = server.send(sink, "waits", [{"id": "c", "n": 3}])
    assert again.status == 202 and again.json["duplicate"] is True, again
    server.dev["warehouse"] = "later"
    assert garden.in_table("demo.late") == Counter("abc")


def test_a_deleted_sink_stays_deleted(garden: Garden) -> None:
    server = garden.server
    garden.send("first")
    server.roll(garden.sink)
    garden.send("dropped")
    server.terminate()
    copy = garden.copy_ledger()
    server.start()
    assert server.call("DELETE", f"/v1/sinks/{garden.sink['id']}").status == 202
    server.kill()
    garden.put_back(copy)
    server.start()
    assert server.call("GET", f"/v1/sinks/{garden.sink['id']}").json["state"] == "deleted"
    assert garden.in_table() == Counter({f"first-{row}": 1 for row in range(3)})


def test_without_its_plan_objects_a_sink_stops_and_says_so(garden: Garden) -> None:
    server = garden.server
    garden.send("first")
    server.roll(garden.sink)
    server.terminate()
    copy = garden.copy_ledger()
    server.start()
    garden.send("second")
    server.roll(garden.sink)
    server.terminate()
    plan = max(server.folder(garden.sink).glob("plans/2-*.json"))
    plan.unlink()
    garden.put_back(copy)
    code, report = garden.recover()
    told = {sink["sink_id"]: sink for sink in report["sinks"]}[garden.sink["id"]]
    assert code == FOUND and told["end"] == "stopped" and plan.stem in told["detail"], report
    server.start()
    shown = server.call("GET", f"/v1/sinks/{garden.sink['id']}").json
    assert (shown["state"], shown["state_reason"], shown["recovering"]) == ("disabled", "ledger_mismatch", True), shown
    refused = server.send(garden.sink, "third", [{"id": "x", "n": 1}])
    assert refused.status == 503, refused
    # The operator gives up on what the table holds beyond the ledger; the second batch is sent again by him.
    assert server.call("POST", f"/v1/sinks/{garden.sink['id']}/resume", {"reclaim": True}).status == 200
    garden.send("third")
    garden.check()


def test_a_store_older_than_its_ledger_is_not_served(garden: Garden) -> None:
    server = garden.server
    bucket, deadline = server.folder(garden.sink).parent, time.monotonic() + 10
    while not (bucket / "incarnation.json").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    server.terminate()
    (bucket / "incarnation.json").write_text(json.dumps({"format": 1, "installation": "", "incarnation": 0}))
    done = garden.command("dev", "--data", str(server.data), "--port", "0")
    assert done.returncode == 1 and "another installation" in done.stderr, done
    (bucket / "incarnation.json").unlink()
    done = garden.command("dev", "--data", str(server.data), "--port", "0")
    assert done.returncode == 1 and "older than the ledger" in done.stderr, done


def test_quarantine_and_reclaim_refuse_what_is_not_there(garden: Garden) -> None:
    server, path = garden.server, f"/v1/sinks/{garden.sink['id']}"
    assert server.call("GET", f"{path}/batches?state=quarantined").json == {"batches": []}
    answer = server.call("POST", f"{path}/batches/nobody/resolve", {"keep": "0" * 26})
    assert answer.status == 404 and answer.code == "batch_not_found", answer
    for body in ({}, {"keep": "x"}, {"keep": 7}, {"keep": None}, {"other": 1}):
        assert server.call("POST", f"{path}/batches/nobody/resolve", body).status == 400
    assert server.call("POST", f"{path}/resume", {"reclaim": True}).status == 409


def test_two_contents_of_one_id_wait_for_a_person(garden: Garden) -> None:
    """The id is accepted in two histories; a copy of before both knows neither."""
    server = garden.server
    server.terminate()
    before = garden.copy_ledger()
    server.start()
    answer = server.send(garden.sink, "twice", [{"id": "one", "n": 1}])
    assert answer.status == 202
    assert server.terminate() == 0  # else the intake log would bring the hidden one back
    hidden = next(path for path in server.folder(garden.sink).glob("twice.*.ndjson"))
    aside = garden.server.home / hidden.name
    names = [hidden, hidden.with_name(f".{hidden.name}.meta")]
    shutil.copy2(hidden, aside)
    attributes = {name: os.getxattr(hidden, name) for name in os.listxattr(hidden)}
    for name in names:
        name.unlink(missing_ok=True)
    garden.put_back(before)
    server.start()
    assert server.send(garden.sink, "twice", [{"id": "two", "n": 2}]).status == 202
    server.kill()
    if not attributes:
        pytest.skip("the file system has no extended attributes; the metadata cannot be put aside")
    shutil.copy(aside, hidden)
    for name, value in attributes.items():
        os.setxattr(hidden, name, value)
    garden.put_back(before)
    server.start()
    listed = garden.command("sink", "batches", garden.sink["id"], "--quarantined", "--json")
    assert listed.returncode == 0, listed
    waiting = json.loads(listed.stdout)["batches"]
    assert len(waiting) == 1 and waiting[0]["batch_id"] == "twice" and len(waiting[0]["objects"]) == 2, waiting
    refused = server.send(garden.sink, "twice", [{"id": "two", "n": 2}])
    assert refused.status == 409 and refused.code == "batch_quarantined", refused
    first = next(uid for uid in waiting[0]["objects"] if uid in hidden.name)
    shown = garden.command("sink", "batches", garden.sink["id"], "--quarantined")
    assert all(uid in shown.stdout for uid in waiting[0]["objects"]), shown
    assert garden.command("sink", "batches", "resolve", garden.sink["id"], "twice").returncode == 2
    wrong = garden.command("sink", "batches", "resolve", garden.sink["id"], "twice", "--keep", "0" * 26)
    assert wrong.returncode == 1, wrong
    kept = garden.command("sink", "batches", "resolve", garden.sink["id"], "twice", "--keep", first, "--json")
    assert kept.returncode == 0 and json.loads(kept.stdout)["state"] == "pending", kept
    garden.acknowledged["one"] = 1
    garden.check()
