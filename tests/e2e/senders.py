"""Senders that retry, the fsynced journal of what they saw acknowledged, and the judge: DuckDB, PyIceberg and the rejects files."""
from __future__ import annotations

import http.client
import json
import os
import random
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from server import Answer, Server, duckdb_attached, pyiceberg_catalog, reject_records

ROWS = 5
ALL = os.environ.get("LHBOX_TEST_TIER") == "all"
COLUMNS = {"id": "string required", "n": "long"}


class Sender(threading.Thread):
    """Sends batches one after the other, each until it is answered, and writes down what was acknowledged. Now and then
    it sends an acknowledged one again."""

    def __init__(self, number: int, load: "Load") -> None:
        super().__init__(daemon=True)
        self.number, self.load, self.random = number, load, random.Random(f"{load.seed} {number}")
        self.journal = load.journal.open("a")
        self.sent: list[str] = []
        self.acknowledged: list[str] = []
        self.refused: Counter[str] = Counter()
        self.broken = 0  # sends whose outcome is unknown
        self.trouble: str | None = None

    def rows_of(self, batch_id: str) -> list[dict[str, Any]]:
        """The same rows for the same id, always; each tenth batch has a row that is rejected."""
        rows: list[dict[str, Any]] = [{"id": f"{batch_id}-{row}", "n": row} for row in range(ROWS)]
        if batch_id.endswith("0"):
            rows[-1]["n"] = "bad"
        return rows

    def run(self) -> None:
        for batch in range(1_000_000):
            if self.load.stopping.is_set():
                return
            batch_id = f"{self.load.prefix}{self.number}-{batch}"
            self.sent.append(batch_id)
            if not self.until_answered(batch_id, again=False):
                return
            if self.random.random() < 0.05 and not self.until_answered(self.random.choice(self.acknowledged), again=True):
                return
            time.sleep(self.load.pause)

    def until_answered(self, batch_id: str, again: bool) -> bool:
        while not self.load.stopping.is_set():
            answer = self.attempt(batch_id)
            if answer is not None and answer.status == 202:
                if again and answer.json.get("duplicate") is not True:
                    self.trouble = f"{batch_id} was acknowledged, and is new again: {answer!r}"
                    return False
                self.note(batch_id)
                return True
            if answer is not None and answer.status not in (429, 503):
                self.trouble = f"{batch_id}: {answer!r}"
                return False
            time.sleep(0.02)
        return False

    def attempt(self, batch_id: str) -> Answer | None:
        """None: the outcome is unknown."""
        try:
            answer = self.load.server.send(self.load.sink, batch_id, self.rows_of(batch_id))
        except (OSError, http.client.HTTPException, ValueError):
            self.broken += 1
            return None
        if answer.status != 202:
            self.refused[answer.code or str(answer.status)] += 1
        return answer

    def note(self, batch_id: str) -> None:
        self.journal.write(json.dumps([row["id"] for row in self.rows_of(batch_id)]) + "\n")
        self.journal.flush()
        os.fsync(self.journal.fileno())
        self.acknowledged.append(batch_id)


class Load:
    """Senders on one sink until the block ends; then `settle` and `check` ask what became of it all."""

    def __init__(self, server: Server, sink: dict[str, Any], table: str, senders: int = 8, prefix: str = "s",
                 pause: float = 0.01, notes: Path | None = None) -> None:
        """`notes`: where the journal of what was acknowledged lies, else beside the server's files."""
        self.server, self.sink, self.table, self.prefix, self.pause = server, sink, table, prefix, pause
        self.seed = os.environ.get("LHBOX_SEED", "1")
        self.journal = (notes or server.home) / f"acknowledged-{prefix}"
        self.stopping = threading.Event()
        self.senders = [Sender(number, self) for number in range(senders)]

    def __enter__(self) -> "Load":
        for sender in self.senders:
            sender.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.stopping.set()
        for sender in self.senders:
            sender.join(120)
            assert not sender.is_alive(), "a send got no answer and no end"
        self.calm()

    def calm(self) -> None:
        for sender in self.senders:
            assert sender.trouble is None, sender.trouble

    @property
    def acknowledged(self) -> int:
        return sum(len(sender.acknowledged) for sender in self.senders)

    def more(self, batches: int, within: float = 60.0) -> None:
        """Waits until so many more batches were acknowledged."""
        wanted, deadline = self.acknowledged + batches, time.monotonic() + within
        while self.acknowledged < wanted:
            self.calm()
            assert time.monotonic() < deadline, f"{self.acknowledged} of {wanted}\n{self.server.tail()}"
            time.sleep(0.02)

    def rolled(self, within: float = 60.0) -> None:
        """Waits until a roll of now has ended."""
        def ended() -> int:
            return self.server.books(self.sink)["committed"]
        before, deadline = ended(), time.monotonic() + within
        while ended() == before:
            self.calm()
            assert time.monotonic() < deadline, f"nothing was rolled\n{self.server.tail()}"
            time.sleep(0.05)

    @property
    def sent(self) -> set[str]:
        return {batch for sender in self.senders for batch in sender.sent}

    def settle(self) -> int:
        """Rolls what waits; every judge's word. Returns the acknowledged rows."""
        self.server.roll(self.sink)
        books = self.server.books(self.sink)
        assert books["pending"] == 0, books
        rows = check(self.server, self.sink, self.table, [self.journal], self.sent)
        assert books["committed"] + books["rejected"] == books["accepted"] >= rows, (books, rows)
        report = self.server.call("POST", f"/v1/sinks/{self.sink['id']}/verify").json
        assert report["sound"], report
        return rows


def table_rows(server: Server, table: str) -> list[str]:
    connection = duckdb_attached(server)
    try:
        return [row[0] for row in connection.execute(f"SELECT id FROM {server.dev['warehouse']}.{table}").fetchall()]
    finally:
        connection.close()


def check(server: Server, sink: dict[str, Any], table: str, journals: list[Path], sent: set[str], foreign: str = "foreign-") -> int:
    """Every acknowledged row exactly once in table or rejects; every other at most once; nothing never sent."""
    acknowledged = {row for journal in journals for line in journal.read_text().splitlines() for row in json.loads(line)}
    every = table_rows(server, table)
    ours = [row for row in every if not row.startswith(foreign)]
    rejected = [record["data"]["id"] for record in reject_records(server, sink)]
    counts = Counter(ours + rejected)
    twice = {row: count for row, count in counts.items() if count > 1}
    lost = acknowledged - counts.keys()
    unknown = {row.rsplit("-", 1)[0] for row in counts} - sent
    assert not twice and not lost and not unknown, \
        f"twice {len(twice)} {dict(list(twice.items())[:20])}, lost {len(lost)} {sorted(lost)[:20]}, never sent {sorted(unknown)[:20]}"
    assert pyiceberg_catalog(server).load_table(table).scan().to_arrow().num_rows == len(every)
    return len(acknowledged)


# ---- the build with named crash points ----

def failpoint_path() -> Path | None:
    given = os.environ.get("LHBOX_FAILPOINTS") or (
        f"{os.environ['LHBOX_ASAN_BUILD']}/src/lhbox" if os.environ.get("LHBOX_ASAN_BUILD") else "")
    return Path(given) if given and Path(given).exists() else None


def has_failpoints() -> bool:
    return failpoint_path() is not None


def failpoint_binary() -> str:
    """The binary whose named points can kill it: LHBOX_FAILPOINTS, or the sanitizers' build."""
    path = failpoint_path()
    if path is None:
        pytest.skip("no build with failpoints: name its binary in LHBOX_FAILPOINTS (meson setup DIR -Dfailpoints=true)")
    return str(path)


def run_until_killed(server: Server, point: str, count: int = 1, within: float = 30.0, act: Any = None) -> bool:
    """Starts the server, which dies by SIGKILL at the count-th passage of the point. `act` runs once it serves. False:
    it did not come there in time; it runs on."""
    server.launch({"LHBOX_CRASH_POINT": f"{point}:{count}"})
    process, deadline, acted = server.process, time.monotonic() + within, act is None
    assert process is not None
    while process.poll() is None and time.monotonic() < deadline:
        try:
            server.dev = json.loads((server.data / "dev.json").read_text())
            if not acted and server.call("GET", "/v1/sinks", timeout=5).status == 200:
                acted = True
                act()
        except (OSError, ValueError, http.client.HTTPException):
            pass
        time.sleep(0.02)
    if process.poll() is None:
        return False
    code = server.wait()
    assert code == -9, f"{point}: the server ended with {code}:\n{server.tail()}"
    return True
