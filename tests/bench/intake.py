"""The intake: durable answers a second beside nginx, PostgreSQL, redis and SQLite (T1, T2), one connection beside the disk (T3),
an open loop with rolls running (T4b), body sizes (I2), duplicates (I5), a thousand sinks (I6).
"""
from __future__ import annotations

import json
import os
import sqlite3
import statistics
import struct
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from context import Bench
from data import BUILD, generate, generated
from machine import Load, durable_write_us, wait_until_idle
from ours import Ours, WrongRows
from peers import Missing, Service, nginx, postgres, program, redis
from report import Figure

CONNECTIONS = (64, 256)
PEER_CONNECTIONS = 64
BODY_BYTES = 1024
RATE = 20_000
WRITE_COUNTS_US = 50  # a bare write must take so long, or the disk keeps no promise
IDLE_P99_MAX_US = 50_000
IOT = ["iot", "--columns"]


def iot_body(size: int) -> bytes:
    """One batch of about so many bytes."""
    rows = max(1, size // 130)
    return generate(["iot", str(rows), str(1 << 40)])[0].strip()


class Sender:
    """Posts a body to targets with tests/bench/send."""

    def __init__(self, directory: Path, port: int, targets: list[tuple[str, str]], body: bytes, name: str) -> None:
        self.port, self.runs, self.name = port, 0, name
        self.targets, self.body, self.log = (directory / f"{name}.{kind}" for kind in ("targets", "body", "log"))
        self.targets.write_text("".join(f"{path} {key}\n" for path, key in targets))
        self.body.write_bytes(body)

    def command(self, connections: int, seconds: float, *options: str) -> list[str]:
        self.runs += 1
        return [str(BUILD / "send"), str(self.port), str(self.targets), str(self.body), str(connections), str(seconds),
                f"--ids={self.name}{self.runs}", *options]

    def run(self, connections: int, seconds: float, *options: str) -> dict[str, Any]:
        run = subprocess.run(self.command(connections, seconds, *options), capture_output=True, text=True, timeout=seconds + 120)
        if run.returncode != 0:
            raise RuntimeError(f"send to {self.name}: {run.stdout} {run.stderr}")
        return json.loads(run.stdout)


def to_nginx(directory: Path, service: Service, body: bytes) -> Sender:
    return Sender(directory, service.port, [("/", "none")], body, f"{service.name}-{service.port}")


class OursIntake:
    """Our server with one sink; each run's answers are held against what the server has counted."""

    def __init__(self, bench: Bench, name: str, body: bytes, sinks: int = 1, env: dict[str, str] | None = None) -> None:
        self.ours = Ours(bench.directory / name, env)
        columns = dict(line.split(": ", 1) for line in generate(IOT)[0].decode().splitlines())
        self.sinks = [self.ours.sink(columns)[1] for _ in range(sinks)]
        self.sender = Sender(bench.directory, self.ours.server.address[1],
                             [(f"/v1/sinks/{sink['id']}", sink["send_key"]) for sink in self.sinks], body, name)

    def counted(self) -> tuple[int, int]:
        """Batches, duplicates."""
        seen = [self.ours.server.call("GET", f"/v1/sinks/{sink['id']}").json["received"] for sink in self.sinks]
        return sum(one["batches"] for one in seen), sum(one["duplicates"] for one in seen)

    def run(self, connections: int, seconds: float, *options: str) -> dict[str, Any]:
        batches, duplicates = self.counted()
        told = self.sender.run(connections, seconds, *options)
        more_batches, more_duplicates = self.counted()
        told["batches"], told["duplicates"] = more_batches - batches, more_duplicates - duplicates
        found = told["batches"] + told["duplicates"]
        if not told["answers"] <= found <= told["answers"] + told["unanswered"]:
            raise WrongRows(f"{told['answers']} answers, {found} batches counted")
        # What the server still does with what it acknowledged is not done beside a peer.
        wait_until_idle(self.ours.pid)
        return told

    def end(self) -> None:
        self.ours.end()


# ---- T1, T2 ----


def postgres_rate(service: Service, directory: Path, body: bytes, seconds: int) -> float:
    """Inserts a second of the same body into a table with a key; the type json checks it as we do."""
    script = directory / "insert.sql"
    if not script.exists():
        script.write_text(f"INSERT INTO batches (body) VALUES ('{body.decode()}');\n")
        subprocess.run([program("psql"), "-h", "127.0.0.1", "-p", str(service.port), "-U", "postgres", "-qc",
                        "CREATE TABLE batches (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body json)"], check=True)
    # The simple protocol: a prepared statement would take what follows the text's colons for its variables.
    run = subprocess.run([program("pgbench"), "-h", "127.0.0.1", "-p", str(service.port), "-U", "postgres", "-n", "-c",
                          str(PEER_CONNECTIONS), "-j", "2", "-T", str(seconds), "-f", str(script), "postgres"],
                         capture_output=True, text=True, timeout=seconds + 60)
    line = next((line for line in run.stdout.splitlines() if line.startswith("tps = ")), None)
    if line is None:
        raise RuntimeError(f"pgbench: {run.stderr} {run.stdout}")
    return float(line.split()[2])


def redis_rate(service: Service, body: bytes, seconds: int, last: float) -> float:
    """Sets a second of the same body under keys of their own; as many as fit the time by the last figure."""
    count = int(max(20_000, last * seconds))
    run = subprocess.run([program("redis-benchmark"), "-p", str(service.port), "-c", str(PEER_CONNECTIONS), "-n", str(count), "-r",
                          "1000000000", "--csv", "SET", "batch:__rand_int__", body.decode()], capture_output=True, text=True, timeout=120)
    try:
        return float(run.stdout.splitlines()[-1].rsplit('","', 7)[1])  # the first of the eight fields holds the body
    except (IndexError, ValueError):
        raise RuntimeError(f"redis-benchmark: {run.stdout} {run.stderr}") from None


def sqlite_rate(directory: Path, body: bytes, seconds: float) -> float:
    """One row a transaction, WAL, synchronous=FULL."""
    connection = sqlite3.connect(directory / "peer.sqlite", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE IF NOT EXISTS batches (id INTEGER PRIMARY KEY, body TEXT)")
    text, count, start = body.decode(), 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        connection.execute("INSERT INTO batches (body) VALUES (?)", (text,))
        count += 1
    connection.close()
    return count / (time.perf_counter() - start)


def best_nginx(bench: Bench, body: bytes) -> tuple[Service, Sender]:
    """One worker or two, whichever answers more here."""
    tried = []
    for workers in (1, 2):
        service = nginx(bench.directory, workers)
        sender = to_nginx(bench.directory, service, body)
        tried.append((sender.run(64, 0.5)["per_second"], service, sender))
    tried.sort(key=lambda one: -one[0])
    tried[1][1].end()
    return tried[0][1], tried[0][2]


class Rates:
    """Per pair: the rate of each. A peer that is missing or fails is told in its figure."""

    def __init__(self, bench: Bench, body: bytes) -> None:
        self.bench, self.body, self.missing = bench, body, {}
        self.rates: dict[str, list[float]] = {}
        self.p99: dict[str, list[float]] = {}
        self.nginx = self.start("T1", lambda: best_nginx(bench, body))
        self.postgres = self.start("T2p", lambda: postgres(bench.directory))
        self.redis = self.start("T2r", lambda: redis(bench.directory))

    def start(self, id: str, make: Any) -> Any:
        try:
            return make() if self.bench.wants(id) else None
        except (Missing, RuntimeError, OSError, subprocess.SubprocessError) as wrong:
            self.missing[id] = str(wrong)
            return None

    def end(self) -> None:
        for service in (self.nginx[0] if self.nginx else None, self.postgres, self.redis):
            if service:
                service.end()

    def note(self, who: str, rate: float) -> None:
        self.rates.setdefault(who, []).append(rate)

    def round(self, ours: OursIntake, seconds: float) -> None:
        kept = {"ours": [], "nginx": []}
        for connections in CONNECTIONS:
            if self.nginx:
                kept["nginx"].append(self.nginx[1].run(connections, seconds)["per_second"])
            told = ours.run(connections, seconds)
            kept["ours"].append(told["per_second"])
            self.p99.setdefault(f"ours {connections}", []).append(told["p99_us"])
        for who, rates in kept.items():
            if rates:
                self.note(who, max(rates))
        whole = max(1, int(seconds))
        last = self.rates.get("redis", [20_000.0])[-1]
        if self.postgres:
            self.measure("T2p", "postgres", lambda: postgres_rate(self.postgres, self.bench.directory, self.body, whole))
        if self.redis:
            self.measure("T2r", "redis", lambda: redis_rate(self.redis, self.body, whole, last))
        if self.bench.wants("T2s"):
            self.measure("T2s", "sqlite", lambda: sqlite_rate(self.bench.directory, self.body, seconds / 2))

    def measure(self, id: str, who: str, rate: Callable[[], float]) -> None:
        """A peer that fails once is left out from then on; ours is measured all the same."""
        if id in self.missing:
            return
        try:
            self.note(who, rate())
        except (Missing, RuntimeError, OSError, subprocess.SubprocessError, sqlite3.Error) as wrong:
            self.missing[id] = str(wrong)

    def figure(self, id: str, who: str, what: str, load: Load) -> None:
        bench = self.bench
        if not bench.wants(id):
            return
        if id in self.missing or who not in self.rates:
            why = self.missing.get(id, f"{who} was not measured")
            bench.report.add(Figure(id, what, [], spoiled=why))
            return
        ours, theirs = self.rates["ours"], self.rates[who]
        bench.report.add(Figure(id, what, [a / b for a, b in zip(ours, theirs)], ours=f"{statistics.median(ours):,.0f}/s",
                                peer=f"{statistics.median(theirs):,.0f}/s", details={"ours": ours, who: theirs}), load)


def rates(bench: Bench) -> None:
    body = iot_body(BODY_BYTES)
    ours = OursIntake(bench, "intake", body)
    peers = Rates(bench, body)
    try:
        ours.run(64, 0.5)
        load = Load()
        for _ in range(bench.pairs):
            peers.round(ours, 1 if bench.quick else 2)
        peers.figure("T1", "nginx", "durable 202/s, 1 KiB, best of 64 and 256 connections ÷ nginx, not durable", load)
        peers.figure("T2p", "postgres", "the same ÷ PostgreSQL's inserts, 64 clients", load)
        peers.figure("T2r", "redis", "the same ÷ redis, appendfsync always, 64 clients", load)
        peers.figure("T2s", "sqlite", "the same ÷ SQLite, FULL, one row a transaction", load)
    finally:
        peers.end()
        ours.end()


# ---- T3 ----


def single(bench: Bench) -> None:
    ours = OursIntake(bench, "single", iot_body(BODY_BYTES))
    try:
        ours.run(1, 0.5)
        load, bare, answers = Load(), [], []
        for _ in range(bench.pairs):
            bare.append(durable_write_us(bench.directory))
            answers.append(float(ours.run(1, 1)["p50_us"]))
        write = statistics.median(bare)
        bench.report.add(Figure("T3", "p50 of a durable answer, 1 connection ÷ a bare O_DSYNC write",
                                [a / b for a, b in zip(answers, bare)], ours=f"{statistics.median(answers):.0f} µs",
                                peer=f"{write:.0f} µs", counts=write >= WRITE_COUNTS_US,
                                note="" if write >= WRITE_COUNTS_US else f"a bare write under {WRITE_COUNTS_US} µs: not counted"), load)
    finally:
        ours.end()


# ---- T4b ----


def p99_between(log: Path, begun_us: float, ended_us: float) -> tuple[float, int]:
    """p99 of the requests that were due in the time, and how many they were."""
    data = log.read_bytes()
    latencies = sorted(end - due for due, end in struct.iter_unpack("=qq", data) if begun_us <= due < ended_us)
    return (float(latencies[int((len(latencies) - 1) * 0.99)]) if latencies else 0.0), len(latencies)


def rest(intake: OursIntake) -> None:
    """Nothing waits for a roll that would begin by itself, nor for the disk."""
    if intake.counted()[0] > 0:
        intake.ours.roll_now(intake.sinks[0])
    wait_until_idle(intake.ours.pid)
    os.sync()


def open_loop(bench: Bench) -> None:
    """Each pair is one open loop: a second idle, then as long as two rolls of 60 MiB take."""
    intake = OursIntake(bench, "open", iot_body(BODY_BYTES))
    ours, rows = intake.ours, generated(bench.directory, "event")
    ratios, idle_us, busy_us, reached, refused = [], [], [], [], 0
    load = Load()
    try:
        for _ in range(bench.pairs):
            sinks = [ours.sink(rows.columns)[1] for _ in range(2)]
            for sink in sinks:
                ours.send(sink, rows.bodies)
            rest(intake)
            before = intake.counted()[0]
            command = intake.sender.command(64, 4, f"--rate={RATE}", f"--log={intake.sender.log}")
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
                time.sleep(1.5)  # the first half second is not counted
                begun = time.monotonic() * 1e6
                threads = [threading.Thread(target=ours.roll_now, args=(sink,)) for sink in sinks]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                ended = time.monotonic() * 1e6
                told = json.loads(process.communicate(timeout=60)[0])
            if not told["answers"] <= intake.counted()[0] - before <= told["answers"] + told["unanswered"] + told["refused"]:
                raise WrongRows(f"{told} but {intake.counted()[0] - before} batches counted")
            idle, idle_count = p99_between(intake.sender.log, begun - 1e6, begun)
            busy, busy_count = p99_between(intake.sender.log, begun, ended)
            reached.append(idle_count)
            refused += told["refused"]
            if busy_count > 0:
                ratios.append(busy / max(idle, 1))
            idle_us.append(idle)
            busy_us.append(busy)
        late = ""
        if statistics.median(reached) < 0.95 * RATE or statistics.median(idle_us) > IDLE_P99_MAX_US or refused:
            late = f"{RATE:,}/s is not held when idle: {statistics.median(reached):,.0f} of a second's requests answered, {refused} refused"
        bench.report.add(Figure("T4b", f"p99 at {RATE:,}/s open loop: two rolls of 60 MiB running ÷ idle", ratios,
                                ours=f"{statistics.median(busy_us) / 1e3:.2f} ms", peer=f"{statistics.median(idle_us) / 1e3:.2f} ms",
                                spoiled=late), load)
    finally:
        intake.end()


# ---- I2, I5, I6 ----


def body_sizes(bench: Bench) -> None:
    for size, name, connections in ((16 << 10, "16 KiB", 16), (64 << 10, "64 KiB", 16), (1 << 20, "1 MiB", 4), (15 << 20, "15 MiB", 4)):
        # Events: a body of them has fewer rows than an array may have.
        body = generate(["event", str(max(1, size // 502)), str(1 << 40)])[0].strip()
        intake = OursIntake(bench, f"size{size}", body)
        load = Load()
        try:
            runs = [intake.run(connections, 2)["per_second"] for _ in range(2 if bench.quick else 3)]
        finally:
            intake.end()
        bench.report.add(Figure("I2", f"durable bodies of {name}, {connections} connections", [one * len(body) / (1 << 20) for one in runs],
                                unit="MiB/s"), load)


def duplicates(bench: Bench) -> None:
    """As many answers as without duplicates, or more: one is found by its id."""
    intake = OursIntake(bench, "twice", iot_body(BODY_BYTES))
    load, ratios, shares = Load(), [], []
    try:
        for _ in range(2 if bench.quick else 3):
            plain = intake.run(64, 1)["per_second"]
            told = intake.run(64, 1, "--duplicates=256")
            ratios.append(told["per_second"] / plain)
            shares.append(told["duplicates"] / told["answers"])
    finally:
        intake.end()
    bench.report.add(Figure("I5", "answers a second: half of them duplicates ÷ none", ratios,
                            note=f"{statistics.median(shares):.0%} were"), load)


def many_sinks(bench: Bench) -> None:
    count = 100 if bench.quick else 1000
    body = iot_body(BODY_BYTES)
    one, many = OursIntake(bench, "one", body), OursIntake(bench, "many", body, count)
    load, ratios = Load(), []
    try:
        for _ in range(2 if bench.quick else 3):
            single_rate = one.run(64, 1)["per_second"]
            ratios.append(many.run(64, 1)["per_second"] / single_rate)
    finally:
        one.end()
        many.end()
    bench.report.add(Figure("I6", f"answers a second, 64 connections: {count} sinks in turn ÷ one", ratios), load)


def run(bench: Bench) -> None:
    for ids, part in ((("T1", "T2p", "T2r", "T2s"), rates), (("T3",), single), (("T4b",), open_loop), (("I2",), body_sizes),
                      (("I5",), duplicates), (("I6",), many_sinks)):
        bench.part(ids, lambda: part(bench))
