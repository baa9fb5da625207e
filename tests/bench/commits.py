"""Commits: beside the disk (T11), over a long history (T12), beside PyIceberg (C1), and from POST to a row that shows (T16)."""
from __future__ import annotations

import http.client
import json
import statistics
import subprocess
import time
from typing import Any

from context import Bench
from data import BUILD, generate
from machine import Load
from ours import Ours, WrongRows
from report import Figure
from server import pyiceberg_catalog

ROWS = 1000  # of each append beside PyIceberg
PENDING_BATCHES = 8  # of 128 KiB each; the next one makes the roll due
VISIBLE_WITHIN = 20.0


def columns_of(name: str) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in generate([name, "--columns"])[0].decode().splitlines())


def body_of(rows: int, seed: int = 0) -> bytes:
    return generate(["iot", str(rows), str(1 << 40), f"--seed={seed}"])[0].strip()


# ---- T11, T12 ----


def timed(bench: Bench, name: str, histories: list[int]) -> list[dict[str, float]]:
    """The rounds of tests/bench/commit_time; what it committed is read by PyIceberg before a time is told."""
    from pyiceberg.table import StaticTable
    place = bench.directory / name
    place.mkdir()
    rounds = 2 + (3 if bench.quick else 11)
    run = subprocess.run([BUILD / "commit_time", place, str(rounds), *map(str, histories)], capture_output=True, text=True, timeout=300)
    if run.returncode != 0:
        raise RuntimeError(f"commit_time: {run.stderr}")
    *lines, last = (json.loads(line) for line in run.stdout.splitlines())
    for table in last["tables"]:
        found = StaticTable.from_metadata(table["metadata"]).scan().to_arrow().num_rows
        if found != table["rows"]:
            raise WrongRows(f"{name}: {found} rows, {table['rows']} were committed")
    return lines[2:]


def beside_disk(bench: Bench) -> None:
    load = Load()
    rounds = timed(bench, "commits-floor", [20, 64])
    bench.report.add(Figure("T11", "commit at 20 snapshots × 64 ids ÷ four durable files", [one["first"] / one["floor"] for one in rounds],
                            ours=f"{statistics.median(one['first'] for one in rounds) / 1e3:.2f} ms",
                            peer=f"{statistics.median(one['floor'] for one in rounds) / 1e3:.2f} ms"), load)


def over_history(bench: Bench) -> None:
    load = Load()
    rounds = timed(bench, "commits-history", [20, 0, 380, 1000])
    bench.report.add(Figure("T12", "commit at 380 snapshots × 1,000 ids ÷ at 20 × 0", [one["second"] / one["first"] for one in rounds],
                            ours=f"{statistics.median(one['second'] for one in rounds) / 1e3:.2f} ms",
                            peer=f"{statistics.median(one['first'] for one in rounds) / 1e3:.2f} ms"), load)


# ---- C1 ----


def roll(connection: http.client.HTTPConnection, sink: dict[str, Any], key: str) -> None:
    connection.request("POST", f"/v1/sinks/{sink['id']}/roll?wait=60", headers={"Authorization": f"Bearer {key}"})
    response = connection.getresponse()
    body = response.read()
    assert response.status == 200, body


def beside_pyiceberg(bench: Bench) -> None:
    """The same rows, file included, through the same catalog: our roll of a waiting batch, and PyIceberg's append of the rows that
    our roll wrote. Each asks over a connection that it keeps."""
    ours = Ours(bench.directory / "append")
    try:
        name, sink = ours.sink(columns_of("iot"))
        other, _ = ours.sink(columns_of("iot"))
        catalog = pyiceberg_catalog(ours.server)
        ours.send(sink, [body_of(ROWS)])
        ours.roll_now(sink)
        arrow = catalog.load_table(f"bench.{name}").scan().to_arrow().drop_columns(["__ingest_ts"])
        table = catalog.load_table(f"bench.{other}")
        table.append(arrow)
        connection = http.client.HTTPConnection(*ours.server.address, timeout=90)
        ratios, took = [], {"ours": [], "pyiceberg": []}
        load = Load()
        for number in range(bench.pairs):
            answer = ours.server.send(sink, f"a{number}", body_of(ROWS))
            assert answer.status == 202, answer
            start = time.perf_counter()
            roll(connection, sink, ours.server.dev["api_key"])
            took["ours"].append(time.perf_counter() - start)
            start = time.perf_counter()
            table.append(arrow)
            took["pyiceberg"].append(time.perf_counter() - start)
            ratios.append(took["pyiceberg"][-1] / took["ours"][-1])
        for one in (name, other):
            found = catalog.load_table(f"bench.{one}").scan().to_arrow().num_rows
            if found != (bench.pairs + 1) * ROWS:
                raise WrongRows(f"{one} has {found} rows, {(bench.pairs + 1) * ROWS} were appended")
        ms = {who: statistics.median(values) * 1e3 for who, values in took.items()}
        bench.report.add(Figure("C1", f"append of {ROWS:,} rows, file and all: PyIceberg ÷ our whole roll", ratios,
                                ours=f"{ms['ours']:.1f} ms", peer=f"{ms['pyiceberg']:.1f} ms"), load)
    finally:
        ours.end()


# ---- T16 ----


def rows_visible(connection: http.client.HTTPConnection, path: str, key: str) -> int:
    """What a fresh load of the table says it holds."""
    connection.request("GET", path, headers={"Authorization": f"Bearer {key}"})
    response = connection.getresponse()
    body = response.read()
    assert response.status == 200, body
    metadata: dict[str, Any] = json.loads(body)["metadata"]
    head = next((one for one in metadata.get("snapshots", []) if one["snapshot-id"] == metadata.get("current-snapshot-id")), None)
    return int(head["summary"]["total-records"]) if head else 0


def visible(bench: Bench) -> None:
    ours = Ours(bench.directory / "visible", {"LHBOX_ROLL_BATCHES": str(PENDING_BATCHES + 1)})
    try:
        name, sink = ours.sink(columns_of("iot"))
        body, last = body_of((128 << 10) // 130), body_of(1)
        dev = ours.server.dev
        path = f"/iceberg/v1/{dev['warehouse']}/namespaces/bench/tables/{name}"
        each = PENDING_BATCHES * ((128 << 10) // 130) + 1
        watcher = http.client.HTTPConnection(*ours.server.address, timeout=30)
        took, load = [], Load()
        for number in range(bench.pairs + 1):
            for batch in range(PENDING_BATCHES):
                assert ours.server.send(sink, f"p{number}-{batch}", body).status == 202
            time.sleep(1.2)  # in dev, a sink's rolls by count begin a second apart at least
            start = time.perf_counter()
            assert ours.server.send(sink, f"p{number}-last", last).status == 202
            while (found := rows_visible(watcher, path, dev["api_key"])) < each * (number + 1):
                if time.perf_counter() - start > VISIBLE_WITHIN:
                    raise WrongRows(f"{found} rows show after {VISIBLE_WITHIN:.0f} s")
                time.sleep(0.001)
            took.append((time.perf_counter() - start) * 1e3)
        rows = pyiceberg_catalog(ours.server).load_table(f"bench.{name}").scan().to_arrow().num_rows
        if rows != each * len(took):
            raise WrongRows(f"PyIceberg finds {rows} rows, {each * len(took)} were sent")
        bench.report.add(Figure("T16", "POST to visible row, roll due, 1 MB waiting", took[1:], unit="ms"), load)
    finally:
        ours.end()


def run(bench: Bench) -> None:
    for id, part in (("T11", beside_disk), ("T12", over_history), ("C1", beside_pyiceberg), ("T16", visible)):
        bench.part((id,), lambda: part(bench))
