"""tests/bench/send against a small server: what it counts is what was asked, also when the server closes connections."""
from __future__ import annotations

import json
import os
import struct
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

BUILD = Path(os.environ.get("LHBOX_BUILD", Path(__file__).resolve().parents[2] / "build" / "release")) / "tests" / "bench"
BODY = b'[{"a":1}]'


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen: list[tuple[str, str, str, bytes]]
    status = 202

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append((self.path, self.headers["Authorization"], self.headers["Idempotency-Key"], body))
        self.send_response(self.status)
        self.send_header("Content-Length", "2")
        if len(self.seen) % 7 == 0:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def handler() -> Iterator[tuple[int, type[Handler]]]:
    kind = type("Kind", (Handler,), {"seen": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1], kind
    server.shutdown()
    thread.join()
    server.server_close()


def send(tmp_path: Path, port: int, *arguments: str) -> tuple[int, dict[str, Any]]:
    (tmp_path / "targets").write_text("/one key1\n/two key2\n")
    (tmp_path / "body").write_bytes(BODY)
    run = subprocess.run([BUILD / "send", str(port), str(tmp_path / "targets"), str(tmp_path / "body"), *arguments],
                         capture_output=True, text=True, timeout=60)
    return run.returncode, json.loads(run.stdout)


def test_every_answer_is_a_request_of_its_own(tmp_path: Path, handler: tuple[int, type[Handler]]) -> None:
    port, kind = handler
    code, told = send(tmp_path, port, "3", "0.5", "--ids=x")
    ids = [seen[2] for seen in kind.seen]
    assert code == 0
    assert told["answers"] == len(ids) == len(set(ids)) > 10
    assert {seen[:2] for seen in kind.seen} == {("/one", "Bearer key1"), ("/two", "Bearer key2")}
    assert {seen[3] for seen in kind.seen} == {BODY}
    assert 0 < told["p50_us"] <= told["p99_us"] <= told["p999_us"]


def test_an_open_loop_sends_what_is_due_and_counts_from_then(tmp_path: Path, handler: tuple[int, type[Handler]]) -> None:
    port, _ = handler
    code, told = send(tmp_path, port, "4", "1", "--rate=50", f"--log={tmp_path / 'log'}")
    dues = sorted(due for due, _ in struct.iter_unpack("=qq", (tmp_path / "log").read_bytes()))
    assert (code, told["answers"]) == (0, 50)
    assert all(abs(b - a - 20000) <= 1 for a, b in zip(dues, dues[1:]))


def test_a_refusal_is_a_failure(tmp_path: Path, handler: tuple[int, type[Handler]]) -> None:
    port, kind = handler
    kind.status = 429
    code, told = send(tmp_path, port, "1", "0.2")
    assert (code, told["answers"]) == (1, 0)
    assert told["refused"] > 0


def test_duplicates_are_ids_of_before(tmp_path: Path, handler: tuple[int, type[Handler]]) -> None:
    port, kind = handler
    send(tmp_path, port, "4", "0.5", "--duplicates=10")
    numbers = [int(seen[2].removeprefix("b-")) for seen in kind.seen]
    assert len(numbers) > 20
    assert len(numbers) - len(set(numbers)) == sum(number % 2 == 1 and number > 10 for number in range(len(numbers)))
    assert all(number % 2 == 0 or number < 10 for number in numbers)
