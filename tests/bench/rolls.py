"""Rolls: NDJSON to Parquet beside the peers (T5, T6, T7), memory (T8), rejects (T10, R3), real rows."""
from __future__ import annotations

import math
import statistics
from pathlib import Path
from typing import Any

from context import Bench
from data import REAL, Rows, generated
from machine import Load, status_mib
from ours import Expected, Ours, group_rows_of
from peers import Missing, Roller
from report import Figure

SETS = ("iot", "event", "wide")
PEERS = {"T5": "duckdb", "T6p": "polars", "T6c": "chdb", "T6a": "pyarrow"}
MIB = 1 << 20


def geometric_mean(values: list[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, values)))


class Rolls:
    """The server, the peers that are here, and the runs so far: runs[set][who] is a list, one entry a pair."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.expected = bench, Expected()
        self.servers: dict[int, Ours] = {}  # by the threads that each has for a roll
        self.rollers: dict[str, Roller] = {}
        self.missing: dict[str, str] = {}
        self.runs: dict[str, dict[str, list[dict[str, Any]]]] = {}
        self.groups: dict[Path, int] = {}

    def end(self) -> None:
        for roller in self.rollers.values():
            roller.end()
        for server in self.servers.values():
            server.end()

    def roller(self, name: str, threads: int) -> Roller | None:
        who = f"{name}{threads}"
        if who not in self.rollers and who not in self.missing:
            try:
                self.rollers[who] = Roller(name, threads)
            except Missing as missing:
                self.missing[who] = str(missing)
        return self.rollers.get(who)

    def roll_ours(self, rows: Rows, threads: int = 1) -> dict[str, Any]:
        if threads not in self.servers:
            self.servers[threads] = Ours(self.bench.directory / f"rolls{threads}", {"LHBOX_ROLL_THREADS": str(threads)})
        first = rows.source not in self.groups
        run = self.servers[threads].roll(rows, self.expected, twice=first)
        if first and run["files"]:
            self.groups[rows.source] = group_rows_of(run["files"])
        return run

    def roll_peer(self, name: str, threads: int, rows: Rows) -> dict[str, Any] | None:
        roller = self.roller(name, threads)
        if roller is None:
            return None
        target = self.bench.directory / f"{rows.name}-{name}.parquet"
        run = roller.roll(rows.source, target, rows.columns, self.groups[rows.source])
        self.expected.check_file(rows, target, name)
        target.unlink()
        return run

    def round(self, rows: Rows, peers: list[tuple[str, int]]) -> None:
        """For each number of threads: ours, then each peer."""
        kept = self.runs.setdefault(rows.name, {})
        for threads in sorted({threads for _, threads in peers}):
            kept.setdefault(f"ours{threads}", []).append(self.roll_ours(rows, threads))
            for name in (name for name, wanted in peers if wanted == threads):
                run = self.roll_peer(name, threads, rows)
                if run is not None:
                    kept.setdefault(f"{name}{threads}", []).append(run)

    def ratios(self, sets: list[str], name: str, threads: int, what: str) -> list[float]:
        """Per pair: the geometric mean over the sets of peer ÷ ours."""
        ours, theirs = f"ours{threads}", f"{name}{threads}"
        count = min(len(self.runs[set].get(theirs, [])) for set in sets)
        return [geometric_mean([self.runs[set][theirs][i][what] / self.runs[set][ours][i][what] for set in sets])
                for i in range(count)]

    def median(self, name: str, who: str, what: str) -> float:
        return statistics.median(run[what] for run in self.runs[name][who])


# ---- T5, T6, T7 ----


def compare(bench: Bench, rolls: Rolls, sets: dict[str, Rows]) -> None:
    wanted = [(PEERS[id], 1) for id in PEERS if bench.wants(id)] + ([("duckdb", 2)] if bench.wants("T7") else [])
    load = Load()
    for rows in sets.values():  # not counted: the first of all is slower on both sides
        rolls.round(rows, wanted)
    rolls.runs.clear()
    for _ in range(bench.pairs):
        for rows in sets.values():
            rolls.round(rows, wanted)
    for id, name in PEERS.items():
        if not bench.wants(id):
            continue
        if f"{name}1" in rolls.missing:
            bench.report.missing(id, rolls.missing[f"{name}1"])
            continue
        tell_cpu(bench, rolls, sets, id, name, load)
    if bench.wants("T7"):
        tell_wall(bench, rolls, sets, load)


def tell_cpu(bench: Bench, rolls: Rolls, sets: dict[str, Rows], id: str, name: str, load: Load) -> None:
    names = list(sets)
    sizes = {set: rolls.median(set, "ours1", "bytes") / rolls.median(set, f"{name}1", "bytes") for set in names}
    size = geometric_mean(list(sizes.values()))
    too_large = f"our files are {size:.3f} of DuckDB's" if id == "T5" and size > 1 else ""
    rates = {set: [sets[set].bytes / MIB / rolls.median(set, who, "cpu") for who in ("ours1", f"{name}1")] for set in names}
    bench.report.add(Figure(
        id, f"roll, CPU, {' '.join(names)}: {name} ÷ ours", rolls.ratios(names, name, 1, "cpu"),
        ours="MiB a CPU second " + " ".join(f"{rates[set][0]:.0f}" for set in names),
        peer=" ".join(f"{rates[set][1]:.0f}" for set in names), note=f"size ÷ {name}'s {size:.2f}", spoiled=too_large,
        details={"size_ratio": sizes, "mib_per_cpu_second": rates}), load)
    for set in names:
        bench.report.add(Figure(f"{id} {set}", f"  {set}: {name} ÷ ours", rolls.ratios([set], name, 1, "cpu"),
                                note=f"size ÷ {name}'s {sizes[set]:.2f}"))


def tell_wall(bench: Bench, rolls: Rolls, sets: dict[str, Rows], load: Load) -> None:
    names = list(sets)
    if "duckdb2" in rolls.missing:
        bench.report.missing("T7", rolls.missing["duckdb2"])
        return
    walls = {set: [rolls.median(set, who, "wall") * 1e3 for who in ("ours2", "duckdb2")] for set in names}
    bench.report.add(Figure(
        "T7", f"roll, wall, 2 threads, {' '.join(names)}: duckdb ÷ ours, committed and durable",
        rolls.ratios(names, "duckdb", 2, "wall"), ours="ms " + " ".join(f"{walls[set][0]:.0f}" for set in names),
        peer=" ".join(f"{walls[set][1]:.0f}" for set in names), details={"wall_ms": walls}), load)


# ---- T8 ----


def memory(bench: Bench, expected: Expected) -> None:
    """Each time a fresh server and a fresh DuckDB: what the roll adds to what the idle process had."""
    rows = generated(bench.directory, "event")
    ratios, ours_mib, theirs_mib = [], [], []
    load = Load()
    for number in range(bench.pairs):
        ours = Ours(bench.directory / f"memory{number}")
        idle = status_mib(ours.pid, "VmRSS")
        run = ours.roll(rows, expected)
        group_rows = group_rows_of(run["files"])
        ours.end()
        roller = Roller("duckdb", 2)
        target = bench.directory / "memory.parquet"
        peer = roller.roll(rows.source, target, rows.columns, group_rows)
        roller.end()
        expected.check_file(rows, target, "duckdb")
        ours_mib.append(run["peak_mib"] - idle)
        theirs_mib.append(peer["peak_mib"])
        ratios.append(ours_mib[-1] / theirs_mib[-1])
    bench.report.add(Figure("T8", "peak memory of a roll of 60 MiB of events: ours ÷ duckdb", ratios,
                            ours=f"{statistics.median(ours_mib):.0f} MiB", peer=f"{statistics.median(theirs_mib):.0f} MiB"), load)


# ---- T10, R3 ----


def rejects(bench: Bench, rolls: Rolls) -> None:
    none, some = (generated(bench.directory, "event", 0.5, bad) for bad in (0, 10))
    ratios, cpu = [], {"none": [], "some": []}
    load = Load()
    rolls.roll_ours(some)
    for _ in range(bench.pairs):
        cpu["none"].append(rolls.roll_ours(none)["cpu"])
        cpu["some"].append(rolls.roll_ours(some)["cpu"])
        ratios.append(cpu["some"][-1] / cpu["none"][-1])
    bench.report.add(Figure("T10", "roll, CPU, events: 10 % rejects ÷ none", ratios,
                            ours=f"{statistics.median(cpu['some']) * 1e3:.0f} ms",
                            peer=f"{statistics.median(cpu['none']) * 1e3:.0f} ms"), load)


def reject_rates(bench: Bench, rolls: Rolls) -> None:
    for bad in (0, 1, 10, 100):
        rows, load = generated(bench.directory, "hostile", 0.5, bad), Load()
        runs = [rolls.roll_ours(rows)["cpu"] for _ in range(2 if bench.quick else 3)]
        sent = sum(map(len, rows.bodies))
        bench.report.add(Figure("R3", f"hostile rows, {bad} % rejects: MiB a CPU second", [sent / MIB / one for one in runs],
                                unit="MiB/s"), load)


# ---- real rows ----


def real(bench: Bench, rolls: Rolls) -> None:
    for name, make in REAL.items():
        try:
            rows, load = make(bench.directory), Load()
        except Missing as missing:
            bench.report.add(Figure("R1", f"roll, CPU, {name}", [], note=str(missing)))
            continue
        for _ in range(2 if bench.quick else 3):
            rolls.round(rows, [("duckdb", 1)])
        if "duckdb1" in rolls.missing:
            bench.report.add(Figure("R1", f"roll, CPU, {name}", [], note=rolls.missing["duckdb1"]))
            continue
        size = rolls.median(name, "ours1", "bytes") / rolls.median(name, "duckdb1", "bytes")
        bench.report.add(Figure("R1", f"roll, CPU, {name} ({rows.bytes / MIB:.0f} MiB): duckdb ÷ ours", rolls.ratios([name], "duckdb", 1, "cpu"),
                                ours=f"{rows.bytes / MIB / rolls.median(name, 'ours1', 'cpu'):.0f} MiB a CPU second",
                                note=f"size ÷ duckdb's {size:.2f}"), load)


def run(bench: Bench) -> None:
    if not bench.wants(*PEERS, "T7", "T8", "T10", "R3", "R1"):
        return
    rolls = Rolls(bench)
    share = 0.5 if bench.quick else 1.0
    try:
        bench.part(("T5", "T6p", "T6c", "T6a", "T7"),
                   lambda: compare(bench, rolls, {name: generated(bench.directory, name, share) for name in SETS}))
        bench.part(("T8",), lambda: memory(bench, rolls.expected))
        bench.part(("T10",), lambda: rejects(bench, rolls))
        bench.part(("R3",), lambda: reject_rates(bench, rolls))
        bench.part(("R1",), lambda: real(bench, rolls))
    finally:
        rolls.end()
