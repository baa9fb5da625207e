"""Random malformed requests: each has one known defect, and must get the answer of that defect, at once, from a server that lives on."""
from __future__ import annotations

import os
import random
import socket
from dataclasses import dataclass, field
from typing import Callable, Iterator

import pytest

from server import Server

COUNT = int(os.environ.get("LHBOX_MALFORMED", "1500"))
MIB = 1 << 20


@dataclass
class Request:
    """A valid send, taken apart so that a defect can be put in."""

    path: str
    key: str
    rng: random.Random
    method: str = "POST"
    version: str = "HTTP/1.1"
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b'[{"x":1}]'
    raw_head: bytes | None = None

    def __post_init__(self) -> None:
        self.headers = [("Host", "127.0.0.1"), ("Authorization", f"Bearer {self.key}"),
                        ("Idempotency-Key", f"m-{self.rng.getrandbits(64):x}"), ("Content-Type", "application/json"),
                        ("Content-Length", str(len(self.body)))]

    def set(self, name: str, value: str | None) -> None:
        self.headers = [(n, v) for n, v in self.headers if n != name] + ([(name, value)] if value is not None else [])

    def add(self, name: str, value: str) -> None:
        self.headers.insert(self.rng.randrange(len(self.headers) + 1), (name, value))

    def with_body(self, body: bytes) -> None:
        self.body = body
        self.set("Content-Length", str(len(body)))

    def bytes(self) -> bytes:
        if self.raw_head is not None:
            return self.raw_head + self.body
        lines = [f"{self.method} {self.path} {self.version}"] + [f"{n}: {v}" for n, v in self.headers]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + self.body


Defect = tuple[Callable[[Request], None], set[int]]
DEFECTS: dict[str, Defect] = {}


def defect(*statuses: int) -> Callable[[Callable[[Request], None]], Callable[[Request], None]]:
    """Registers a way to spoil a request, and the statuses that are right answers to it."""
    def register(spoil: Callable[[Request], None]) -> Callable[[Request], None]:
        DEFECTS[spoil.__name__] = (spoil, set(statuses))
        return spoil
    return register


@defect(401)
def no_authorization(r: Request) -> None:
    r.set("Authorization", None)


@defect(401)
def a_wrong_key(r: Request) -> None:
    at = r.rng.randrange(21, len(r.key))
    r.set("Authorization", f"Bearer {r.key[:at]}{'A' if r.key[at] != 'A' else 'B'}{r.key[at + 1:]}")


@defect(401)
def an_unknown_sink(r: Request) -> None:
    r.path = f"/v1/sinks/snk_{r.rng.getrandbits(48):012x}"


@defect(400)
def no_batch_id(r: Request) -> None:
    r.set("Idempotency-Key", r.rng.choice([None, ""]))


@defect(400)
def a_batch_id_of_bad_form(r: Request) -> None:
    r.set("Idempotency-Key", r.rng.choice(["a b", "a/b", "ä", "a" * 129, '"a', "a,b", "srv.1", "dev.x", "idx.1", "sql.2", "replay.3"]))


@defect(400)
def two_of_a_header(r: Request) -> None:
    name = r.rng.choice(["Authorization", "Idempotency-Key", "Content-Type", "Content-Length", "Host"])
    r.add(name, next(v for n, v in r.headers if n == name))


@defect(405)
def another_method(r: Request) -> None:
    r.method, r.body = r.rng.choice(["PUT", "OPTIONS", "TRACE"]), b""
    r.set("Content-Length", "0")


@defect(404, 401)
def an_unknown_path(r: Request) -> None:
    r.path = r.rng.choice(["/", "/v2/sinks", "/v1/sink", "/v1/sinks/x/y/z", "/v1", "/favicon.ico"])


@defect(400)
def an_odd_path(r: Request) -> None:
    r.path = r.path + r.rng.choice(["/..", "/./x", "%00", "%2f", "%2F..", "/%2e%2e/x", "%zz", "%1", "/../x"])


@defect(415)
def another_content_type(r: Request) -> None:
    r.set("Content-Type", r.rng.choice(["text/plain", "application/x-ndjson", "application/jsonx", "application/json; charset=latin1", "multipart/form-data"]))


@defect(415)
def an_encoded_body(r: Request) -> None:
    r.add("Content-Encoding", r.rng.choice(["gzip", "br", "zstd", "deflate"]))


@defect(411)
def no_length(r: Request) -> None:
    r.set("Content-Length", None)


@defect(413)
def too_long_a_length(r: Request) -> None:
    r.set("Content-Length", str(16 * MIB + r.rng.randrange(1, 1 << 40)))


@defect(400)
def a_malformed_length(r: Request) -> None:
    length = len(r.body)
    r.set("Content-Length",
          r.rng.choice([f"+{length}", f"0x{length:x}", f"{length},{length}", f"-{length}", f"{length} {length}", f"{length}.0",
                                         "9" * 20, "a"]))


@defect(400)
def a_length_and_an_encoding(r: Request) -> None:
    r.add("Transfer-Encoding", "chunked")


@defect(501, 400)
def another_transfer_encoding(r: Request) -> None:
    r.set("Content-Length", None)
    r.add("Transfer-Encoding", r.rng.choice(["gzip", "gzip, chunked", "identity", "xchunked"]))


@defect(400)
def chunked_in_1_0(r: Request) -> None:
    r.version = "HTTP/1.0"
    r.set("Content-Length", None)
    r.add("Transfer-Encoding", "chunked")


@defect(400)
def a_malformed_chunk(r: Request) -> None:
    r.set("Content-Length", None)
    r.add("Transfer-Encoding", "chunked")
    r.body = r.rng.choice([b"0x9\r\n[{\"x\":1}]\r\n0\r\n\r\n", b"+9\r\n[{\"x\":1}]\r\n0\r\n\r\n", b"g\r\n", b"fffffffff\r\n",
                           b"9\n[{\"x\":1}]\n0\n\n", b"9;" + b"e" * 300 + b"\r\n[{\"x\":1}]\r\n0\r\n\r\n", b"-1\r\n", b"\r\n"])


@defect(413)
def chunks_past_the_limit(r: Request) -> None:
    r.set("Content-Length", None)
    r.add("Transfer-Encoding", "chunked")
    r.body = b"1000001\r\n["


@defect(400)
def a_broken_line_in_the_head(r: Request) -> None:
    good = r.bytes()
    end = good.index(b"\r\n\r\n")
    line = r.rng.choice([b"X\r: y", b"X : y", b": y", b" folded", b"X: a\nY: b", b"X: a\x00b", b"X: a\rb", b"X(y): z", b"no colon"])
    r.raw_head = good[:end] + b"\r\n" + line + b"\r\n\r\n"


@defect(400)
def no_host(r: Request) -> None:
    r.set("Host", None)


@defect(431)
def too_much_head(r: Request) -> None:
    if r.rng.random() < 0.5:
        r.add("X-Long", "a" * r.rng.randrange(17000, 60000))
    else:
        r.headers += [(f"X-{n}", "v") for n in range(70)]


@defect(414)
def too_long_a_target(r: Request) -> None:
    r.path += "?" + "a" * r.rng.randrange(8300, 12000)


@defect(505, 400)
def another_version(r: Request) -> None:
    r.version = r.rng.choice(["HTTP/2.0", "HTTP/1.2", "HTTP/0.9", "HTTP/3.0"])


@defect(505, 400)
def the_preface_of_http_2(r: Request) -> None:
    r.raw_head, r.body = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b""


@defect(417)
def another_expectation(r: Request) -> None:
    r.add("Expect", r.rng.choice(["200-ok", "100-continue-please", "x"]))


@defect(400)
def noise(r: Request) -> None:
    r.raw_head, r.body = bytes(r.rng.randrange(256) for _ in range(r.rng.randrange(1, 200))) + b"\r\n\r\n", b""


@defect(400)
def a_body_that_is_no_json(r: Request) -> None:
    r.with_body(r.rng.choice([b"[", b"[1,]", b"[{]", b"[{\"x\":01}]", b"[NaN]", b"['a']", b"", b"[1] 2", b"[\"\x01\"]", b"\xff", b"[\xff]", b"[" * 600]))


@defect(400)
def a_body_that_is_no_array(r: Request) -> None:
    r.with_body(r.rng.choice([b"{\"x\":1}", b"\"x\"", b"1", b"null", b"{}\n{}"]))


@defect(413)
def too_many_rows(r: Request) -> None:
    r.with_body(b"[" + b"{}," * 100_000 + b"{}]")


@defect(400)
def a_key_in_the_query(r: Request) -> None:
    r.path += f"?key={r.key}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that does not slow down guessers of keys: there are thousands of wrong ones here."""
    running = Server(tmp_path_factory.mktemp("lhbox"), env={"LHBOX_INTAKE_FAILURES_PER_MINUTE": "1000000"}).start()
    yield running
    running.kill()


def answer_of(server: Server, request: bytes) -> bytes:
    """All that comes back until the server closes or the answer is whole; sending goes on as long as it can."""
    with socket.create_connection(server.address, timeout=20) as connection:
        try:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
        except (BrokenPipeError, ConnectionResetError):
            pass
        received = b""
        while True:
            try:
                piece = connection.recv(65536)
            except ConnectionResetError:
                return received
            if not piece:
                return received
            received += piece


@pytest.mark.parametrize("name", sorted(DEFECTS))
def test_each_defect_gets_its_answer(server: Server, name: str) -> None:
    demo = server.dev["demo"]
    spoil, statuses = DEFECTS[name]
    rng = random.Random(f"{name}-{os.environ.get('LHBOX_SEED', '1')}")
    for _ in range(max(3, COUNT // len(DEFECTS) // (20 if name in ("too_many_rows",) else 1))):
        request = Request(f"/v1/sinks/{demo['sink_id']}", demo["send_key"], rng)
        spoil(request)
        sent = request.bytes()
        received = answer_of(server, sent)
        assert received.startswith(b"HTTP/1.1 "), f"{sent[:400]!r} got {received[:200]!r}"
        status = int(received[9:12])
        assert status in statuses, f"{sent[:600]!r} got {received[:400]!r}"
        assert b"x-request-id:" in received.lower() and b'"error"' in received
    assert server.call("GET", "/healthz").status == 200


def test_nothing_malformed_was_stored(server: Server) -> None:
    demo = server.dev["demo"]
    shown = server.call("GET", f"/v1/sinks/{demo['sink_id']}").json
    assert shown["received"]["batches"] == 0 and shown["books"]["accepted"] == 0
