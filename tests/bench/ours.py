"""Our side: a server of its own, sets of rows sent and rolled, and what came of it checked by two other readers."""
from __future__ import annotations

import http.client
import shutil
import sys
import time
import urllib.parse
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))
from data import Rows  # noqa: E402
from machine import process_cpu, reset_peak, status_mib, wait_until_idle  # noqa: E402
from roll_peer import duckdb_source, duckdb_type  # noqa: E402
from server import Server, duckdb_attached, pyiceberg_catalog  # noqa: E402

# No roll begins by itself while batches are counted, and none is refused for those that wait.
PATIENT = {"LHBOX_ROLL_BATCHES": "1000000", "LHBOX_INTAKE_BACKLOG_BATCHES": "10000000", "LHBOX_INTAKE_BACKLOG_BYTES": str(1 << 42)}


class WrongRows(Exception):
    """An output is not what was sent: there is no figure."""


def fingerprint(connection: Any, source: str, columns: dict[str, str]) -> tuple[Any, ...]:
    """How many rows, and a sum over each column in which every value counts, in whatever order they come."""
    sums = ", ".join(f'sum(hash(CAST("{name}" AS {duckdb_type(kind)}))::HUGEINT)' for name, kind in columns.items())
    return connection.execute(f"SELECT count(*), {sums} FROM {source}").fetchone()


def open_judge() -> Any:
    import duckdb
    connection = duckdb.connect()
    connection.execute("SET TimeZone='UTC'")
    return connection


class Expected:
    """What the rows of each set add up to, as DuckDB reads the lines."""

    def __init__(self) -> None:
        self.judge, self.known = open_judge(), {}

    def of(self, rows: Rows) -> tuple[Any, ...]:
        if rows.source not in self.known:
            found = fingerprint(self.judge, duckdb_source(str(rows.source), rows.columns), rows.columns)
            if found[0] != rows.good:
                raise WrongRows(f"{rows.source.name} has {found[0]} rows, {rows.good} were made")
            self.known[rows.source] = found
        return self.known[rows.source]

    def check_file(self, rows: Rows, path: Path, who: str) -> None:
        if fingerprint(self.judge, f"'{path}'", rows.columns) != self.of(rows):
            raise WrongRows(f"{who}: {path.name} is not what {rows.source.name} holds")


class Ours:
    """A server in a directory of its own."""

    def __init__(self, directory: Path, env: dict[str, str] | None = None) -> None:
        directory.mkdir()
        self.directory = directory
        self.server = Server(directory, env={**PATIENT, **(env or {})}).start()
        self.made = 0
        self.reader: Any = None

    @property
    def pid(self) -> int:
        assert self.server.process is not None
        return self.server.process.pid

    def end(self) -> None:
        self.server.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    # ---- tables and sends ----

    def sink(self, columns: dict[str, str], **more: Any) -> tuple[str, dict[str, Any]]:
        """A new table, and its sink."""
        self.made += 1
        name = f"t{self.made}"
        self.server.make_table(f"bench.{name}", columns)
        return name, self.server.make_sink(f"bench.{name}", name, **{"roll_seconds": 86400, **more})

    def send(self, sink: dict[str, Any], bodies: list[bytes]) -> None:
        connection = http.client.HTTPConnection(*self.server.address, timeout=90)
        for number, body in enumerate(bodies):
            connection.request("POST", f"/v1/sinks/{sink['id']}", body, {
                "Authorization": f"Bearer {sink['send_key']}", "Content-Type": "application/json", "Idempotency-Key": f"r{number}"})
            response = connection.getresponse()
            answer = response.read()
            assert response.status == 202, answer
        connection.close()

    def roll_now(self, sink: dict[str, Any]) -> dict[str, Any]:
        answer = self.server.call("POST", f"/v1/sinks/{sink['id']}/roll?wait=60")
        assert answer.status == 200, answer
        return answer.json["last_roll"]

    def table_metadata(self, name: str) -> dict[str, Any]:
        answer = self.server.call("GET", f"/iceberg/v1/{self.server.dev['warehouse']}/namespaces/bench/tables/{name}")
        assert answer.status == 200, answer
        return answer.json["metadata"]

    # ---- one roll ----

    def roll(self, rows: Rows, expected: Expected, twice: bool = False) -> dict[str, Any]:
        """All rows of a set, sent, rolled at once and checked; twice: by PyIceberg, too."""
        name, sink = self.sink(rows.columns)
        self.send(sink, rows.bodies)
        wait_until_idle(self.pid)
        reset_peak(self.pid)
        start, cpu = time.perf_counter(), process_cpu(self.pid)
        last = self.roll_now(sink)
        wall, cpu = time.perf_counter() - start, process_cpu(self.pid) - cpu
        peak = status_mib(self.pid, "VmHWM")
        if (last["rows"], last["rejected_rows"]) != (rows.good, rows.bad):
            raise WrongRows(f"{rows.source.name}: {last} of {rows.good} good and {rows.bad} bad rows")
        self.check(name, rows, expected, twice)
        files = self.files(name)
        return {"wall": wall, "cpu": cpu, "peak_mib": peak, "bytes": sum(path.stat().st_size for path in files), "files": files}

    def files(self, name: str) -> list[Path]:
        location = urllib.parse.unquote(urllib.parse.urlsplit(self.table_metadata(name)["location"]).path)
        return sorted(Path(location).rglob("data/**/*.parquet"))

    def check(self, name: str, rows: Rows, expected: Expected, twice: bool) -> None:
        wanted = expected.of(rows)
        if self.reader is None:
            self.reader = duckdb_attached(self.server)
            self.reader.execute("SET TimeZone='UTC'")
        if rows.good > 0:
            found = fingerprint(self.reader, f"{self.server.dev['warehouse']}.bench.{name}", rows.columns)
            if found != wanted:
                raise WrongRows(f"DuckDB finds other rows in the table of {rows.source.name}: {found}, {wanted}")
        if twice:
            judge = open_judge()
            table = pyiceberg_catalog(self.server).load_table(f"bench.{name}").scan().to_arrow()
            judge.register("scanned", table)
            if fingerprint(judge, "scanned", rows.columns) != wanted:
                raise WrongRows(f"PyIceberg finds other rows in the table of {rows.source.name}")


def group_rows_of(files: list[Path]) -> int:
    """The most rows of a row group, which the peers then use, too."""
    import pyarrow.parquet as parquet
    groups = [parquet.ParquetFile(path).metadata for path in files]
    return max(meta.row_group(i).num_rows for meta in groups for i in range(meta.num_row_groups))

