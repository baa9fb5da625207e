"""kill -9 at random moments under senders that retry: the judge is DuckDB, and what the senders saw acknowledged."""
from __future__ import annotations

import json
import os
import random
import threading
import time
from collections import Counter
from pathlib import Path

from server import Server, duckdb_attached, pyiceberg_catalog, reject_records

SENDERS = 8
KILLS = int(os.environ.get("LHBOX_KILLS", "6"))
ROWS = 5


class Sender(threading.Thread):
    """Sends batches one after the other, each until it is answered, and writes down what was acknowledged."""

    def __init__(self, number: int, server: Server, sink: dict, journal: Path, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self.number, self.server, self.sink, self.stop = number, server, sink, stop
        self.journal = journal.open("a")
        self.sent: list[str] = []
        self.trouble: str | None = None

    def run(self) -> None:
        for batch in range(1_000_000):
            if self.stop.is_set():
                return
            batch_id = f"s{self.number}-{batch}"
            rows = [{"id": f"{batch_id}-{row}", "n": row} for row in range(ROWS)]
            rows[-1]["n"] = "bad" if batch % 10 == 0 else rows[-1]["n"]
            self.sent.append(batch_id)
            if not self.until_answered(batch_id, rows):
                return

    def until_answered(self, batch_id: str, rows: list[dict]) -> bool:
        while not self.stop.is_set():
            try:
                answer = self.server.send(self.sink, batch_id, rows)
            except Exception:  # whatever a broken connection raises: the outcome is unknown
                time.sleep(0.01)
                continue
            if answer.status == 202:
                self.journal.write(json.dumps([row["id"] for row in rows]) + "\n")
                self.journal.flush()
                os.fsync(self.journal.fileno())
                return True
            if answer.status not in (429, 503):
                self.trouble = repr(answer)
                return False
            time.sleep(0.01)
        return False


def check(server: Server, sink: dict, journal: Path, sent: set[str]) -> int:
    """Every acknowledged row exactly once in table or rejects; every other at most once; nothing never sent."""
    acknowledged = {row for line in journal.read_text().splitlines() for row in json.loads(line)}
    table = [row[0] for row in duckdb_attached(server).execute("SELECT id FROM dev.demo.killed").fetchall()]
    rejected = [record["data"]["id"] for record in reject_records(server, sink)]
    counts = Counter(table + rejected)
    twice = {row: count for row, count in counts.items() if count > 1}
    lost = acknowledged - counts.keys()
    unknown = {row.rsplit("-", 1)[0] for row in counts} - sent
    assert not twice and not lost and not unknown, f"twice {twice}, lost {sorted(lost)[:20]}, never sent {unknown}"
    seen = pyiceberg_catalog(server).load_table("demo.killed").scan().to_arrow().num_rows
    assert seen == len(table)
    return len(acknowledged)


def test_no_row_is_lost_or_doubled_by_kills_under_load(own_server: Server) -> None:
    server, random_moment = own_server.start(), random.Random(int(os.environ.get("LHBOX_SEED", "1")))
    server.make_table("demo.killed", {"id": "string required", "n": "long"})
    sink = server.make_sink("demo.killed", "killed_in", roll_seconds=1)
    journal, stop = server.home / "acknowledged", threading.Event()
    senders = [Sender(number, server, sink, journal, stop) for number in range(SENDERS)]
    for sender in senders:
        sender.start()
    for _ in range(KILLS):
        time.sleep(random_moment.uniform(0.2, 2.5))
        server.kill()
        server.start()
    time.sleep(1.0)
    stop.set()
    for sender in senders:
        sender.join(120)
        assert sender.trouble is None, sender.trouble
    server.roll(sink)
    books = server.books(sink)
    assert books["pending"] == 0
    rows = check(server, sink, journal, {batch for sender in senders for batch in sender.sent})
    assert rows > KILLS * ROWS, "the senders got hardly anything through"
    assert books["committed"] + books["rejected"] == books["accepted"] >= rows


def test_the_checker_sees_a_lost_and_a_doubled_row(own_server: Server) -> None:
    server = own_server.start()
    server.make_table("demo.killed", {"id": "string required", "n": "long"})
    sink = server.make_sink("demo.killed", "killed_in")
    journal = server.home / "acknowledged"
    for batch_id, rows in (("a-1", ["a-1-0"]), ("a-2", ["a-1-0"])):
        assert server.send(sink, batch_id, [{"id": row} for row in rows]).status == 202
    server.roll(sink)
    for wrong in (["a-1-0"], ["a-1-0", "a-3-0"]):
        journal.write_text(json.dumps(wrong) + "\n")
        try:
            check(server, sink, journal, {"a-1", "a-2", "a-3"})
        except AssertionError as found:
            assert ("twice {'a-1-0': 2}" in str(found)) and (("a-3-0" in str(found)) == (len(wrong) == 2))
        else:
            raise AssertionError("the checker is blind")
