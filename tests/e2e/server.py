"""One `lhbox dev` process on a data directory of its own, and the outside readers of its tables."""
from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import time
import urllib.parse
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LHBOX = os.environ.get("LHBOX", str(ROOT / "build" / "lhbox"))
EXTENSIONS = ("httpfs", "avro", "iceberg")


class Answer:
    """Status, headers (lower-case names) and body of one response."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self) -> Any:
        return json.loads(self.body) if self.body else None

    @property
    def code(self) -> str | None:
        error = self.json.get("error") if isinstance(self.json, dict) else None
        return error.get("code") if error else None

    def __repr__(self) -> str:
        return f"{self.status} {self.body[:500]!r}"


class Server:
    """Start, stop, kill, restart, and requests."""

    def __init__(self, home: Path, args: list[str] | None = None, env: dict[str, str] | None = None) -> None:
        self.home, self.data, self.log = home, home / "data", home / "server.log"
        self.args, self.env = args or [], {**os.environ, **(env or {})}
        self.command = [LHBOX]  # a tracer or a limit may stand before the binary
        self.process: subprocess.Popen[bytes] | None = None
        self.dev: dict[str, Any] = {}
        self.damaged = ""  # the faults that the tests have made in tables: an expression, which the last check passes over

    def start(self, within: float = 30.0) -> "Server":
        self.launch()
        assert self.process is not None
        deadline = time.monotonic() + within
        while time.monotonic() < deadline:
            assert self.process.poll() is None, f"the server ended with {self.process.returncode}:\n{self.tail()}"
            try:
                self.dev = json.loads((self.data / "dev.json").read_text())
                if self.call("GET", "/v1/sinks").status == 200:
                    return self
            except (OSError, ValueError, http.client.HTTPException):
                pass
            time.sleep(0.02)
        raise AssertionError(f"the server did not answer:\n{self.tail()}")

    def launch(self, env: dict[str, str] | None = None) -> None:
        """Starts the process and does not wait for it to serve."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self.command, "dev", "--data", str(self.data), "--port", "0", *self.args], stdin=subprocess.DEVNULL,
                stdout=log, stderr=subprocess.STDOUT, env={**self.env, **(env or {})}, cwd=self.home)

    def signal(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def wait(self, within: float = 60.0) -> int:
        assert self.process is not None
        code = self.process.wait(within)
        self.process = None
        return code

    def kill(self) -> None:
        if self.process is not None:
            self.signal(signal.SIGKILL)
            self.wait()

    def terminate(self) -> int:
        self.signal(signal.SIGTERM)
        return self.wait()

    def tail(self, lines: int = 30) -> str:
        return "\n".join(self.log.read_text("utf-8", "replace").splitlines()[-lines:])

    @property
    def address(self) -> tuple[str, int]:
        url = urllib.parse.urlsplit(self.dev["url"])
        return url.hostname or "127.0.0.1", url.port or 80

    def call(self, method: str, path: str, body: Any = None, key: str | None = None,
             headers: dict[str, str] | None = None, timeout: float = 90.0) -> Answer:
        """One request; `key` is the admin key unless given ("" for none). `body` is sent as JSON, or as it is when bytes."""
        key = self.dev["api_key"] if key is None else key
        sent = {"Content-Type": "application/json", **(headers or {})} if body is not None else dict(headers or {})
        if key:
            sent["Authorization"] = f"Bearer {key}"
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection = http.client.HTTPConnection(*self.address, timeout=timeout)
        try:
            connection.request(method, path, data, sent)
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def send(self, sink: dict[str, Any], batch_id: str, rows: Any) -> Answer:
        """One batch to a sink as POST /v1/sinks answered it."""
        return self.call("POST", f"/v1/sinks/{sink['id']}", rows, sink["send_key"], {"Idempotency-Key": batch_id})

    def make_table(self, name: str, columns: dict[str, str], **more: Any) -> Answer:
        answer = self.call("POST", "/v1/tables", {
            "table": f"{self.dev['warehouse']}.{name}", **more,
            "columns": [{"name": n, "type": t.removesuffix(" required"), "required": t.endswith(" required")}
                        for n, t in columns.items()]})
        assert answer.status == 201, answer
        return answer

    def make_sink(self, table: str, name: str, **more: Any) -> dict[str, Any]:
        answer = self.call("POST", "/v1/sinks", {"name": name, "table": table, "warehouse": self.dev["warehouse"], **more})
        assert answer.status == 201, answer
        return answer.json

    def roll(self, sink: dict[str, Any]) -> dict[str, Any]:
        answer = self.call("POST", f"/v1/sinks/{sink['id']}/roll?wait=30")
        assert answer.status == 200, answer
        return answer.json

    def books(self, sink: dict[str, Any]) -> dict[str, int]:
        shown = self.call("GET", f"/v1/sinks/{sink['id']}").json
        assert shown["books"]["difference"] == 0, shown["books"]
        return shown["books"]

    def folder(self, sink: dict[str, Any]) -> Path:
        """The sink's folder in the file bucket."""
        return self.data / "warehouse" / self.dev["warehouse"] / "files" / "_sink" / sink["id"]


def extension_file(name: str) -> str:
    package = __import__(f"duckdb_extension_{name}")
    return str(next(Path(package.__file__).parent.rglob(f"{name}.duckdb_extension")))


def duckdb_attached(server: Server) -> Any:
    """A DuckDB connection with the server's catalog attached under its warehouse's name."""
    import duckdb
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for name in EXTENSIONS:
        connection.execute(f"LOAD '{extension_file(name)}'")
    connection.execute(f"ATTACH '{server.dev['warehouse']}' AS {server.dev['warehouse']} (TYPE iceberg, "
                       f"ENDPOINT '{server.dev['url']}/iceberg', TOKEN '{server.dev['api_key']}')")
    return connection


def pyiceberg_catalog(server: Server) -> Any:
    from pyiceberg.catalog import load_catalog
    return load_catalog("lhbox", type="rest", uri=f"{server.dev['url']}/iceberg", warehouse=server.dev["warehouse"],
                        token=server.dev["api_key"])


def reject_records(server: Server, sink: dict[str, Any]) -> list[dict[str, Any]]:
    """Every record in the sink's rejects files, as an outside reader finds them."""
    return [json.loads(line) for path in sorted(server.folder(sink).glob("rejects/*.ndjson"))
            for line in path.read_text("utf-8").splitlines()]
