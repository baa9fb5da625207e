"""What `make bench` runs. bench/numbers.md says what each figure is.

    bench.py [--quick] [--only ID,ID…] [--page FILE] [--out FILE]

Every output is checked before its time is told. The last line says how many bars hold; the exit code does not, as figures depend
on the machine: it says whether all could be measured and every output was right.
"""
from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import commits
import intake
import machine
import rolls
from context import Bench
from data import ROOT
from ours import Ours
from report import Figure, Report, write_page
from server import LHBOX


def program(bench: Bench) -> None:
    """Size of the binary, memory of a server that has nothing to do."""
    ours = Ours(bench.directory / "idle")
    bench.report.add(Figure("P1", "binary (20 MiB at most)", [os.path.getsize(os.path.realpath(LHBOX)) / (1 << 20)], unit="MiB"))
    bench.report.add(Figure("P2", "memory of an idle server (30 MiB at most)", [machine.status_mib(ours.pid, "VmRSS")], unit="MiB"))
    ours.end()


def run_all(bench: Bench) -> None:
    bench.part(("P1", "P2"), lambda: program(bench))
    for name, run in (("intake", intake.run), ("rolls", rolls.run), ("commits", commits.run)):
        print(name, flush=True)
        run(bench)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="2 pairs each, about 2 minutes")
    parser.add_argument("--only", default="", help="ids, joined by commas: T5,T6")
    parser.add_argument("--out", type=Path, help="the result file; else build/bench/DATE.json")
    parser.add_argument("--page", type=Path, help="write the table into this page, between its markers")
    arguments = parser.parse_args()
    home = ROOT / "build" / "bench"
    home.mkdir(parents=True, exist_ok=True)
    report = Report(machine.describe(), arguments.quick)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(dir=home, prefix="run-") as directory:
        Path(directory).chmod(0o755)  # PostgreSQL's own user passes through
        bench = Bench(Path(directory), report, arguments.quick, [one for one in arguments.only.split(",") if one])
        print(f"{report.date}, {report.machine['cpu']}, {report.machine['cores']} cores", flush=True)
        run_all(bench)
    out = arguments.out or home / f"{time.strftime('%Y-%m-%d-%H%M%S')}.json"
    report.write(out)
    if arguments.page:
        write_page(arguments.page, report.markdown())
    print(f"{time.monotonic() - begun:.0f} s, written to {out}")
    if bench.failed:
        print("something went wrong: see above")
    print(report.last_line())
    return 1 if bench.failed else 0


if __name__ == "__main__":
    sys.exit(main())
