"""SIGTERM under load: exit 0, and no send that was accepted loses its answer."""
from __future__ import annotations

import http.client
import json
import signal
import subprocess
import time
from typing import Any

import pytest

from senders import ALL, COLUMNS, Load, check
from server import LHBOX, Server

STOPS = 100 if ALL else 10
SENDERS = 16


def stored_batches(load: Load) -> set[str]:
    """The batches that the ledger has, by our own listing after the stop."""
    seen: set[str] = set()
    cursor = ""
    while True:
        page = load.server.call("GET", f"/v1/sinks/{load.sink['id']}/batches?limit=1000{cursor}").json
        seen |= {batch["batch_id"] for batch in page["batches"]}
        if not page.get("next_cursor"):
            return seen
        cursor = f"&cursor={page['next_cursor']}"


def test_a_stop_under_load_ends_well_and_answers_what_it_accepted(own_server: Server) -> None:
    server = own_server.start()
    server.make_table("demo.stopped", COLUMNS)
    sink = server.make_sink("demo.stopped", "stopped_in", roll_seconds=1)
    journals, sent = [], set()
    for number in range(STOPS):
        with Load(server, sink, "demo.stopped", senders=SENDERS, prefix=f"r{number}s", pause=0.0) as load:
            load.more(SENDERS * 2)
            server.signal(signal.SIGTERM)
            began = time.monotonic()
            assert server.wait(60) == 0, server.tail()
            assert time.monotonic() - began < 30
            load.stopping.set()
        server.start()
        acknowledged = {batch for sender in load.senders for batch in sender.acknowledged}
        stored = {batch for batch in stored_batches(load) if batch.startswith(f"r{number}s")}
        assert stored == acknowledged, f"accepted without an answer {stored - acknowledged}, lost {acknowledged - stored}"
        journals.append(load.journal)
        sent |= load.sent
    server.roll(sink)
    assert check(server, sink, "demo.stopped", journals, sent) > STOPS * SENDERS
    assert server.books(sink)["pending"] == 0


def test_a_second_signal_ends_it_at_once_and_loses_nothing(own_server: Server) -> None:
    server = own_server.start()
    server.make_table("demo.stopped", COLUMNS)
    sink = server.make_sink("demo.stopped", "stopped_in", roll_seconds=1)
    with Load(server, sink, "demo.stopped", senders=SENDERS, pause=0.0) as load:
        load.more(SENDERS)
        server.signal(signal.SIGTERM)
        server.signal(signal.SIGINT)
        assert server.wait(5) == 0
        server.start()
        load.more(1)
    load.settle()


# ---- frozen ----

def refused_start(server: Server) -> None:
    """A second process on the same data, started on purpose."""
    began = time.monotonic()
    second = subprocess.run([LHBOX, "dev", "--data", str(server.data), "--port", "0"], capture_output=True, text=True, timeout=60)
    assert second.returncode == 1, second
    assert "another process uses the directory" in second.stderr, second.stderr
    assert time.monotonic() - began < 10


def send_unread(server: Server, sink: dict[str, Any], batch_id: str) -> http.client.HTTPConnection:
    """A whole request to a process that is frozen: it waits at the listener."""
    connection = http.client.HTTPConnection(*server.address, timeout=90)
    connection.request("POST", f"/v1/sinks/{sink['id']}", json.dumps([{"id": "waited", "n": 1}]),
                       {"Authorization": f"Bearer {sink['send_key']}", "Idempotency-Key": batch_id, "Content-Type": "application/json"})
    return connection


def refused_or_cut(connection: http.client.HTTPConnection) -> bool:
    try:
        return connection.getresponse().status == 503
    except (http.client.HTTPException, ConnectionError):
        return True
    finally:
        connection.close()


@pytest.mark.parametrize("seconds", [1, 31] + ([10, 40, 90] if ALL else []))
def test_a_frozen_process_keeps_its_place_and_wakes_to_the_same_truth(own_server: Server, seconds: int) -> None:
    server = own_server.start()
    server.make_table("demo.frozen", COLUMNS)
    sink = server.make_sink("demo.frozen", "frozen_in", roll_seconds=1)
    with Load(server, sink, "demo.frozen", senders=8) as load:
        load.more(8)
        for _ in range(3 if seconds == 1 and ALL else 1):
            load.rolled()
            server.signal(signal.SIGSTOP)
            refused_start(server)
            waiting = [send_unread(server, sink, f"waited-{number}") for number in range(20 if seconds > 30 else 0)]
            time.sleep(seconds)
            refused_start(server)
            server.signal(signal.SIGCONT)
            assert all(refused_or_cut(connection) for connection in waiting), "sent before the lease was lost, and taken after it"
            load.more(16)
    load.settle()
