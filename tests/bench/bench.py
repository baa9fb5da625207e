"""What `make bench` prints: durable answers a second, rolls beside DuckDB on one core, size and idle memory, and the machine's
own figures. Every output is checked before its time is printed. Nothing here is a test: figures depend on the machine.
"""
from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))
from server import LHBOX, ROOT, Server, duckdb_attached  # noqa: E402

COLUMNS = {"device": "string required", "ts": "timestamptz", "celsius": "double", "volts": "double", "seq": "long",
           "ok": "boolean"}
MIB = 1 << 20


def show(name: str, value: str) -> None:
    print(f"  {name:<58} {value}", flush=True)


# ---- the machine ----


def durable_write_us(directory: Path, count: int = 200) -> float:
    """Median of a 1 KiB write with O_DSYNC."""
    fd = os.open(directory / "dsync", os.O_CREAT | os.O_WRONLY | os.O_DSYNC, 0o600)
    took = []
    for _ in range(count):
        start = time.perf_counter()
        os.pwrite(fd, b"x" * 1024, 0)
        took.append((time.perf_counter() - start) * 1e6)
    os.close(fd)
    return statistics.median(took)


def durable_file_us(directory: Path, count: int = 100) -> float:
    """Median of a new 1 KiB file: write, fsync, rename, fsync of the directory."""
    folder = os.open(directory, os.O_RDONLY)
    took = []
    for number in range(count):
        start = time.perf_counter()
        fd = os.open(directory / "tmp", os.O_CREAT | os.O_WRONLY, 0o600)
        os.write(fd, b"x" * 1024)
        os.fsync(fd)
        os.close(fd)
        os.rename(directory / "tmp", directory / f"f{number}")
        os.fsync(folder)
        took.append((time.perf_counter() - start) * 1e6)
    os.close(folder)
    return statistics.median(took)


# ---- intake ----


def durable_answers(server: Server, sink: dict, connections: int, seconds: int) -> dict[str, float]:
    """wrk with unique ids; every 2xx it counted must be a batch that the server counted."""
    before = server.call("GET", f"/v1/sinks/{sink['id']}").json["received"]["batches"]
    threads = min(2, connections)
    run = subprocess.run(
        ["wrk", f"-t{threads}", f"-c{connections}", f"-d{seconds}s", "-s", str(Path(__file__).with_name("post.lua")),
         "-H", f"Authorization: Bearer {sink['send_key']}", f"{server.dev['url']}/v1/sinks/{sink['id']}", "--",
         f"b{connections}-{time.time_ns()}"], capture_output=True, text=True, timeout=seconds + 60)
    line = next((line for line in run.stdout.splitlines() if line.startswith("RESULT")), None)
    assert line is not None, run.stdout + run.stderr
    requests, duration_us, p50, p99, errors = map(int, line.split()[1:])
    assert errors == 0, f"{errors} requests failed:\n{run.stdout}\n{server.tail()}"
    after = server.call("GET", f"/v1/sinks/{sink['id']}").json["received"]["batches"]
    assert after - before >= requests, f"{requests} answers, {after - before} batches"
    return {"per_second": requests / (duration_us / 1e6), "p50_ms": p50 / 1e3, "p99_ms": p99 / 1e3}


# ---- rolls ----


def event_rows(count: int) -> list[str]:
    """Rows of a fleet of sensors: low-cardinality names, rising times, numbers with noise."""
    return [json.dumps({"device": f"sensor-{n % 997:04}", "ts": f"2026-09-{1 + n // 86400 % 28:02}T{n // 3600 % 24:02}:{n // 60 % 60:02}:{n % 60:02}.{n * 7919 % 1000000:06}Z",
                        "celsius": round((n * 7919 % 60000) / 1000 - 20, 3), "volts": round(3 + (n * 31 % 997) / 1000, 3),
                        "seq": n, "ok": n % 13 != 0}, separators=(",", ":")) for n in range(count)]


def process_cpu(pid: int) -> float:
    """User and system seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def our_roll(server: Server, name: str, rows: list[str]) -> tuple[float, float, int]:
    """Seconds of wall and CPU time of one roll of all rows, and the size of its file."""
    server.make_table(f"bench.{name}", COLUMNS)
    sink = server.make_sink(f"bench.{name}", name, roll_seconds=86400)
    size = 20000
    for number in range(0, len(rows), size):
        body = ("[" + ",".join(rows[number:number + size]) + "]").encode()
        answer = server.send(sink, f"r{number}", body)
        assert answer.status == 202, answer
    assert server.process is not None
    start, cpu = time.perf_counter(), process_cpu(server.process.pid)
    server.roll(sink)
    wall, cpu = time.perf_counter() - start, process_cpu(server.process.pid) - cpu
    connection = duckdb_attached(server)
    table = f"{server.dev['warehouse']}.bench.{name}"
    count, total = connection.execute(f"SELECT count(*), sum(seq) FROM {table}").fetchone()
    assert (count, int(total)) == (len(rows), len(rows) * (len(rows) - 1) // 2), "the roll's rows are not what was sent"
    files = list((server.data / "warehouse" / server.dev["warehouse"] / "tables" / "bench").rglob(f"{name}*/data/**/*.parquet"))
    return wall, cpu, sum(path.stat().st_size for path in files)


def duckdb_roll(directory: Path, rows: list[str]) -> tuple[float, float, int]:
    """The same rows as NDJSON through DuckDB with one thread: read_json, COPY to zstd Parquet."""
    source, target = directory / "rows.ndjson", directory / "rows.parquet"
    source.write_text("\n".join(rows) + "\n")
    script = f"""
import duckdb, resource, time
c = duckdb.connect(config={{"threads": 1}})
start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
c.execute("COPY (SELECT *, now() AS __ingest_ts FROM read_json('{source}', format='newline_delimited', columns={{device:'VARCHAR', ts:'TIMESTAMPTZ', celsius:'DOUBLE', volts:'DOUBLE', seq:'BIGINT', ok:'BOOLEAN'}})) TO '{target}' (FORMAT parquet, COMPRESSION zstd)")
after = resource.getrusage(resource.RUSAGE_SELF)
print(time.perf_counter() - start, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
      c.execute("SELECT count(*) FROM '{target}'").fetchone()[0])
"""
    wall, cpu, count = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                                      check=True).stdout.split()
    assert int(count) == len(rows)
    return float(wall), float(cpu), target.stat().st_size


def rolls(server: Server, directory: Path, pairs: int, count: int) -> dict[str, float]:
    """A B A B: ours, DuckDB."""
    rows = event_rows(count)
    size = sum(map(len, rows)) + len(rows)
    ours, theirs = [], []
    for number in range(pairs):
        ours.append(our_roll(server, f"events_{number}", rows))
        theirs.append(duckdb_roll(directory, rows))
    median = {who: [statistics.median(run[i] for run in runs) for i in range(3)] for who, runs in (("ours", ours), ("duckdb", theirs))}
    for who in ("ours", "duckdb"):
        wall, cpu, file_size = median[who]
        show(f"{who}: {size / MIB:.0f} MiB of JSON to Parquet", f"{size / MIB / cpu:6.1f} MiB a CPU second, wall {wall:.2f} s, file {file_size / MIB:.2f} MiB")
    ratios = [theirs[i][1] / ours[i][1] for i in range(pairs)]
    show("DuckDB's CPU time ÷ ours (median of pairs)", f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
    return {"mib_per_cpu_second": size / MIB / median["ours"][1], "cpu_ratio": statistics.median(ratios)}


# ---- all ----


def resident_mib(pid: int) -> float:
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=5, help="of each intake run")
    parser.add_argument("--pairs", type=int, default=3, help="of rolls")
    parser.add_argument("--rows", type=int, default=300_000, help="of each roll")
    parser.add_argument("--out", default=str(ROOT / "build" / "bench.json"))
    arguments = parser.parse_args()
    results: dict[str, object] = {"date": time.strftime("%Y-%m-%d"), "machine": platform.platform(), "cores": os.cpu_count()}
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as home:
        directory = Path(home)
        print("The machine")
        show("cores, load", f"{os.cpu_count()}, {os.getloadavg()[0]:.2f}")
        (directory / "disk").mkdir()
        results["dsync_write_us"], results["durable_file_us"] = durable_write_us(directory / "disk"), durable_file_us(directory / "disk")
        show("1 KiB write with O_DSYNC, median", f"{results['dsync_write_us']:.0f} µs")
        show("1 KiB durable file (fsync, rename, fsync), median", f"{results['durable_file_us']:.0f} µs")
        server = Server(directory).start()
        try:
            assert server.process is not None
            print("The program")
            results["binary_mib"] = os.path.getsize(os.path.realpath(LHBOX)) / MIB
            results["idle_mib"] = resident_mib(server.process.pid)
            show("binary (bar: 20 MiB)", f"{results['binary_mib']:.1f} MiB")
            show("idle memory (bar: 30 MiB)", f"{results['idle_mib']:.1f} MiB")
            print("Durable 202s, one batch of 1 KiB a request")
            server.make_table("bench.intake", COLUMNS)
            sink = server.make_sink("bench.intake", "intake", roll_seconds=86400)
            for connections in (1, 16, 64):
                results[f"intake_{connections}"] = one = durable_answers(server, sink, connections, arguments.seconds)
                show(f"{connections} connections", f"{one['per_second']:8.0f} a second, p50 {one['p50_ms']:.2f} ms, p99 {one['p99_ms']:.2f} ms")
                server.roll(sink)
            print("Rolls on one core")
            results["roll"] = rolls(server, directory, arguments.pairs, arguments.rows)
            show("peak memory of the server", f"{peak_mib(server.process.pid):.0f} MiB")
        finally:
            server.kill()
    Path(arguments.out).write_text(json.dumps(results, indent=1) + "\n")
    print(f"written to {os.path.relpath(arguments.out, ROOT)}")
    return 0


def peak_mib(pid: int) -> float:
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    sys.exit(main())
