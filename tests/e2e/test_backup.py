"""`lhbox backup DIR` while senders send and rolls run; the copy, put in the data directory's place, has lost and doubled nothing."""
from __future__ import annotations

import json
import os
import shutil
import sqlite3
import stat
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from server import LHBOX, Server, duckdb_attached, reject_records

SENDERS = 4


class Load:
    """Senders that retry until they are answered, and rolls; what was acknowledged when."""

    def __init__(self, server: Server, sink: dict[str, Any]) -> None:
        self.server, self.sink = server, sink
        self.acknowledged: dict[str, float] = {}
        self.sent: set[str] = set()
        self.trouble: list[str] = []
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self.send, args=(number,)) for number in range(SENDERS)]
        self.threads.append(threading.Thread(target=self.roll))

    def __enter__(self) -> "Load":
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.stopping.set()
        for thread in self.threads:
            thread.join()
        assert not self.trouble, self.trouble

    def send(self, number: int) -> None:
        batch = 0
        while not self.stopping.is_set():
            rows: list[Any] = [{"id": f"{number}-{batch}-{row}", "n": row} for row in range(5)]
            if batch % 4 == 0:
                rows[2]["n"] = "many"
            self.sent |= {row["id"] for row in rows}
            answer = self.server.send(self.sink, f"b-{number}-{batch}", rows)
            if answer.status == 202:
                self.acknowledged |= {row["id"]: time.monotonic() for row in rows}
            elif answer.status not in (429, 503):
                self.trouble.append(repr(answer))
            batch += 1

    def roll(self) -> None:
        while not self.stopping.is_set():
            self.server.call("POST", f"/v1/sinks/{self.sink['id']}/roll?wait=5")

    def wait_for(self, rows: int) -> None:
        deadline = time.monotonic() + 60
        while len(self.acknowledged) < rows:
            assert time.monotonic() < deadline and not self.trouble, self.trouble
            time.sleep(0.01)


def backup(server: Server, target: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([LHBOX, "backup", str(target), "--data", str(server.data), *args], text=True,
                          capture_output=True, timeout=300, env={**os.environ}, cwd=server.home)


def places(server: Server, sink: dict[str, Any]) -> Counter[str]:
    """How often each row stands in the table or in the rejects, by outside readers, after a roll."""
    server.roll(sink)
    catalog = duckdb_attached(server)
    rows = catalog.execute(f"SELECT id FROM {server.dev['warehouse']}.garden.plants").fetchall()
    catalog.close()
    return Counter(row[0] for row in rows) + Counter(record["data"]["id"] for record in reject_records(server, sink))


def restore(server: Server, copy: Path) -> None:
    """The data directory is lost; the copy takes its place."""
    server.kill()
    shutil.move(server.data, server.home / "lost")
    shutil.copytree(copy, server.data, copy_function=copy_with_attributes)
    server.start()


def copy_with_attributes(source: str, target: str) -> str:
    shutil.copy2(source, target)  # with its extended attributes, where Linux has them
    return target


@pytest.fixture
def garden(own_server: Server) -> tuple[Server, dict[str, Any]]:
    own_server.start()
    own_server.make_table("garden.plants", {"id": "string", "n": "int required"})
    return own_server, own_server.make_sink("garden.plants", "plants_in", roll_seconds=3600)


@pytest.mark.parametrize("how", ["copy", "link"])
def test_a_backup_under_load_restores_what_was_acknowledged(garden: tuple[Server, dict[str, Any]], how: str) -> None:
    server, sink = garden
    copy = server.home / "copy"
    with Load(server, sink) as load:
        load.wait_for(500)
        began = time.monotonic()
        done = backup(server, copy, "--json", *(["--link"] if how == "link" else []))
        load.wait_for(len(load.acknowledged) + 200)
    assert done.returncode == 0, done
    assert json.loads(done.stdout)["sound"] is True
    restore(server, copy)
    before = {row for row, at in load.acknowledged.items() if at < began}
    assert len(before) >= 500
    found = places(server, sink)
    assert before - set(found) == set(), "acknowledged before the backup began, and lost"
    assert [row for row, times in found.items() if times != 1] == [], "doubled"
    assert set(found) <= load.sent
    server.books(sink)
    report = server.call("POST", f"/v1/sinks/{sink['id']}/verify?rows=true").json
    assert report["sound"], json.dumps(report["findings"], indent=1)


def test_senders_may_send_everything_again_after_a_restore(garden: tuple[Server, dict[str, Any]]) -> None:
    server, sink = garden
    copy = server.home / "copy"
    batches = {f"b{number}": [{"id": f"{number}-{row}", "n": row} for row in range(3)] for number in range(12)}

    def send(ids: list[str]) -> None:
        for batch in ids:
            answer = server.send(sink, batch, batches[batch])
            while answer.status == 503:  # a copy recovers before it accepts
                time.sleep(0.05)
                answer = server.send(sink, batch, batches[batch])
            assert answer.status == 202, answer

    names = list(batches)
    send(names[:4])
    server.roll(sink)
    send(names[4:6])
    assert backup(server, copy).returncode == 0
    send(names[6:9])
    server.roll(sink)
    send(names[9:])
    restore(server, copy)
    send(names)
    found = places(server, sink)
    assert found == Counter(row["id"] for rows in batches.values() for row in rows)
    server.books(sink)


def test_the_copy_is_complete_private_and_readable_by_sha256sum(garden: tuple[Server, dict[str, Any]]) -> None:
    server, sink = garden
    copy = server.home / "copy"
    assert server.send(sink, "b", [{"id": "1", "n": 1}, {"id": "2", "n": "x"}]).status == 202
    server.roll(sink)
    assert server.send(sink, "c", [{"id": "3", "n": 1}]).status == 202
    done = backup(server, copy)
    assert done.returncode == 0 and "2 sinks verified" in done.stdout, done
    listed = {line.split("  ", 1)[1] for line in (copy / "SHA256SUMS").read_text().splitlines()}
    there = {str(path.relative_to(copy)) for path in copy.rglob("*") if path.is_file()} - {"SHA256SUMS"}
    assert listed == there
    checked = subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=copy, capture_output=True)
    assert checked.returncode == 0, checked
    for path in (copy, copy / "keys" / "bootstrap", copy / "lhbox.db", copy / "dev.json"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    for path in copy.rglob("*.intake.ndjson"):
        assert os.listxattr(path)
    with sqlite3.connect(f"file:{copy / 'lhbox.db'}?mode=ro", uri=True) as ledger:
        assert ledger.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert ledger.execute("SELECT copied FROM installation").fetchone() == (1,)
    with sqlite3.connect(f"file:{server.data / 'lhbox.db'}?mode=ro", uri=True) as ledger:
        assert ledger.execute("SELECT copied FROM installation").fetchone() == (0,)


def test_damage_is_found_while_it_is_copied(garden: tuple[Server, dict[str, Any]]) -> None:
    server, sink = garden
    assert server.send(sink, "b", [{"id": "1", "n": 1}]).status == 202
    next(server.folder(sink).glob("b.*.ndjson")).unlink()
    done = backup(server, server.home / "copy")
    assert done.returncode == 5 and "I16" in done.stdout, done


def test_objects_stay_while_they_are_copied_and_go_afterwards(garden: tuple[Server, dict[str, Any]]) -> None:
    server, sink = garden
    for number in range(3):
        assert server.send(sink, f"b{number}", [{"id": f"{number}", "n": 1}]).status == 202
        assert backup(server, server.home / f"copy{number}").returncode == 0
        server.roll(sink)
    deadline = time.monotonic() + 30
    while list(server.folder(sink).glob("*.ndjson")):
        assert time.monotonic() < deadline, "the objects of committed batches are still there"
        time.sleep(0.1)


def test_places_where_no_backup_goes(garden: tuple[Server, dict[str, Any]]) -> None:
    server, _ = garden
    full = server.home / "full"
    full.mkdir()
    (full / "mine").write_text("mine")
    for target, words in ((full, "something in"), (server.data / "copy", "lie in each other"), (server.home, "lie in each other"),
                          (Path("/proc/none"), "")):
        done = backup(server, target)
        assert done.returncode == 1 and words in done.stderr, (target, done)
    assert [path.name for path in full.iterdir()] == ["mine"]
    assert not (server.data / "copy").exists()
    assert backup(server, server.home / "copy").returncode == 0


def test_without_a_server_there_is_none(own_server: Server) -> None:
    done = backup(own_server, own_server.home / "copy")
    assert done.returncode == 3 and "running server" in done.stderr, done
