"""What an answer says beside its status: a next step, a path, plain numbers; and what a burst leaves behind."""
from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from server import LHBOX, Server

MIB = 1 << 20
COLUMN = {"name": "x", "type": "long"}


def refusals(server: Server) -> list[tuple[str, str, Any, str]]:
    return [("GET", "/v1/nothing", None, "not_found"), ("GET", "/metrics", None, "not_found"),
            ("GET", "/v1/sinks/nobody", None, "sink_not_found"),
            ("GET", "/v1/tables/dev.demo.nothing", None, "table_not_found"),
            ("GET", "/v1/tables/nowhere.demo.events", None, "warehouse_not_found"),
            ("POST", "/v1/sinks", {"name": "a", "table": "demo.events", "warehouse": "nowhere"}, "warehouse_not_found"),
            ("POST", "/v1/sinks", {"name": "a", "table": "demo.events", "warehouse": "dev"}, "sink_exists"),
            ("POST", "/v1/warehouses", {"name": "dev"}, "name_taken"),
            ("POST", "/v1/tables", {"table": "dev.demo.events", "columns": [COLUMN]}, "table_exists"),
            ("POST", "/v1/tables", {"table": "dev.demo.other", "columns": [{**COLUMN, "foo": 1}]}, "unknown_field"),
            ("POST", "/v1/sinks", b"[]", "invalid_request"), ("POST", "/v1/sinks", b"{", "invalid_json"),
            ("GET", "/v1/sinks/demo_in/batches/none", None, "batch_not_found"),
            ("DELETE", "/v1/keys/000000000000", None, "not_found")]


def test_every_refusal_names_a_next_step(server: Server) -> None:
    for method, path, body, code in refusals(server):
        answer = server.call(method, path, body)
        assert answer.code == code, (method, path, answer)
        error = answer.json["error"]
        assert error["hint"], (method, path, answer)
        assert not error["message"].startswith(":"), answer


def test_a_post_without_a_length_is_told_how_to_say_so(server: Server) -> None:
    with socket.create_connection(server.address, timeout=30) as connection:
        connection.sendall(f"POST /v1/sinks/demo_in/roll HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {server.dev['api_key']}"
                           "\r\n\r\n".encode())
        answer = connection.recv(4096)
    assert answer.startswith(b"HTTP/1.1 411 ") and b"curl: -d ''" in answer, answer
    assert server.call("POST", "/v1/sinks/demo_in/roll", b"").status == 202


def test_a_full_backlog_is_429_until_a_roll_makes_room(own_server: Server) -> None:
    own_server.env["LHBOX_INTAKE_BACKLOG_BATCHES"] = "2"
    server = own_server.start()
    server.make_table("demo.full", {"x": "long"})
    sink = server.make_sink("demo.full", "full_in", roll_seconds=3600)
    assert [server.send(sink, batch, [{"x": 1}]).status for batch in "ab"] == [202, 202]
    full = server.send(sink, "c", [{"x": 1}])
    assert (full.status, full.code) == (429, "sink_backlog_full") and int(full.headers["retry-after"]) > 0, full
    assert server.send(sink, "a", [{"x": 1}]).json["duplicate"] is True
    server.roll(sink)
    assert server.send(sink, "c", [{"x": 1}]).status == 202


def test_an_unknown_member_of_a_column_is_named_by_its_path(server: Server) -> None:
    columns = [COLUMN, {"name": "y", "type": "long", "foo": 1}]
    answer = server.call("POST", "/v1/tables", {"table": "dev.demo.other", "columns": columns})
    assert (answer.code, answer.json["error"]["path"]) == ("unknown_field", "columns[1].foo"), answer


def test_a_roll_that_waits_on_a_sink_that_is_deleted_says_so(server: Server) -> None:
    for turn in range(5):
        server.make_table(f"gone.t{turn}", {"x": "long"})
        sink = server.make_sink(f"gone.t{turn}", f"gone{turn}", roll_seconds=86400)
        assert server.send(sink, "one", [{"x": 1}]).status == 202
        answers = []
        roll = threading.Thread(target=lambda: answers.append(server.call("POST", f"/v1/sinks/{sink['id']}/roll?wait=30")))
        roll.start()
        deleted = server.call("DELETE", f"/v1/sinks/{sink['id']}")
        roll.join()
        assert deleted.status == 202, deleted
        if deleted.json["pending_batches_discarded"] == 1:
            assert (answers[0].status, answers[0].code) == (410, "sink_deleted"), answers[0]
        else:
            assert answers[0].status in (200, 410), answers[0]


def test_seconds_have_no_digits_of_a_double(server: Server) -> None:
    demo = server.dev["demo"]
    sink = {"id": demo["sink_id"], "send_key": demo["send_key"]}
    for turn in range(8):
        assert server.send(sink, f"s{turn}", [{"x": turn}]).status == 202
        server.roll(sink)
        body = server.call("GET", f"/v1/sinks/{sink['id']}").body.decode()
        seconds = body.split('"seconds":')[2].split(",")[0]
        assert len(seconds) <= len("12.123456"), seconds


def resident_bytes(server: Server) -> int:
    assert server.process is not None
    status = Path(f"/proc/{server.process.pid}/status").read_text("ascii")
    return int(status.split("VmRSS:")[1].split()[0]) * 1024


def test_a_burst_of_large_bodies_leaves_no_memory_behind(own_server: Server) -> None:
    if b"__sanitizer" in Path(LHBOX).read_bytes():
        pytest.skip("a sanitizer keeps what is freed")
    demo = own_server.start().dev["demo"]
    sink = {"id": demo["sink_id"], "send_key": demo["send_key"]}
    row = b'{"x":1,"who":"' + b"a" * (MIB // 4) + b'"}'
    body = b"[" + b",".join([row] * 50) + b"]"
    for turn in range(3):
        answers: list[int] = []
        senders = [threading.Thread(target=lambda i=i: answers.append(own_server.send(sink, f"b{turn}-{i}", body).status))
                   for i in range(8)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        assert set(answers) <= {202, 503}, answers
        own_server.roll(sink)
    own_server.books(sink)
    # What rolls and bodies gave back is kept for the next ones, 128 MiB at most and 20 s at most.
    assert resident_bytes(own_server) < 64 * MIB + 128 * MIB, resident_bytes(own_server)
    deadline = time.monotonic() + 60
    while resident_bytes(own_server) >= 64 * MIB:
        assert time.monotonic() < deadline, resident_bytes(own_server)
        time.sleep(0.5)


def test_a_long_rejected_row_is_cut_for_people_and_whole_for_programs(server: Server) -> None:
    server.make_table("long.rows", {"x": "long"})
    sink = server.make_sink("long.rows", "long_rows")
    assert server.send(sink, "one", [{"x": "é" * 10_000}]).status == 202
    server.roll(sink)
    shown = [subprocess.run([LHBOX, "sink", "rejects", "long_rows", *more], capture_output=True, text=True, check=True,
                            env={**os.environ, "LHBOX_URL": server.dev["url"], "LHBOX_API_KEY": server.dev["api_key"]},
                            timeout=30).stdout for more in ([], ["--json"])]
    assert max(map(len, shown[0].splitlines())) < 800 and "…" in shown[0]
    assert "é" * 10_000 in shown[1]


def test_threads_that_roll_step_back_before_those_that_answer(server: Server) -> None:
    assert server.process is not None
    tasks = Path(f"/proc/{server.process.pid}/task").iterdir()
    nice = sorted(int((task / "stat").read_text().rsplit(")", 1)[1].split()[16]) for task in tasks)
    back = min(nice[0] + 15, 19)
    assert set(nice) == {nice[0], back} and 2 <= nice.count(back) < nice.count(nice[0]), nice
