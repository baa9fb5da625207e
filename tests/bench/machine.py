"""The machine: what it is, what others do on it, what a durable write costs; CPU time and memory of processes."""
from __future__ import annotations

import os
import platform
import statistics
import time
from pathlib import Path
from typing import Any

TICK = os.sysconf("SC_CLK_TCK")
FOREIGN_MAX = 0.05  # of all cores; above this a figure is marked
CLEAR_PEAK = "5"


# ---- processes ----


def process_cpu(pid: int) -> float:
    """User and system seconds of a process so far, of all its threads, to the nanosecond."""
    return time.clock_gettime((~pid << 3) | 2)  # the process's own clock, as clock_getcpuclockid makes it


def status_mib(pid: int, field: str) -> float:
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith(field + ":"))
    return int(line.split()[1]) / 1024


def reset_peak(pid: int) -> None:
    """VmHWM begins again at what is resident now."""
    Path(f"/proc/{pid}/clear_refs").write_text(CLEAR_PEAK)


def wait_until_idle(pid: int, within: float = 10.0) -> None:
    """Until the process uses less than 2 % of a core over 50 ms, so that what it still had to do is not counted."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        before = process_cpu(pid)
        time.sleep(0.05)
        if process_cpu(pid) - before < 0.001:
            return


# ---- the load of others ----


def _processes() -> dict[int, tuple[int, float]]:
    """pid: (parent, seconds of it and of its ended children)."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            found[int(entry)] = (int(fields[1]), sum(map(int, fields[11:15])) / TICK)
    return found


def _descends(pid: int, ancestor: int, processes: dict[int, tuple[int, float]]) -> bool:
    while pid in processes and pid != ancestor:
        pid = processes[pid][0]
    return pid == ancestor


class Load:
    """What others used of the machine's cores since this was made: all that /proc/stat counts, less this process and its
    children, and less the kernel's own threads, which work for whoever writes to the disk."""

    def __init__(self) -> None:
        self.begun, self.all, self.ours = time.monotonic(), *self._look()

    @staticmethod
    def _look() -> tuple[float, float]:
        user, nice, system = map(int, Path("/proc/stat").read_text().split(None, 4)[1:4])
        processes = _processes()
        ours = sum(cpu for pid, (_, cpu) in processes.items()
                   if _descends(pid, os.getpid(), processes) or _descends(pid, 2, processes))
        return (user + nice + system) / TICK, ours

    def foreign(self) -> float:
        """As a share of all cores."""
        all_now, ours_now = self._look()
        elapsed = max(time.monotonic() - self.begun, 1 / TICK) * (os.cpu_count() or 1)
        return max(0.0, (all_now - self.all) - (ours_now - self.ours)) / elapsed


# ---- the disk ----


def durable_write_us(directory: Path, count: int = 400) -> float:
    """Median of a 4 KiB write with O_DSYNC into a file that is there already, one block after the other."""
    block, path = b"x" * 4096, directory / "blocks"
    with path.open("wb") as file:
        file.write(bytes(4096 * count))
        os.fsync(file.fileno())
    fd = os.open(path, os.O_WRONLY | os.O_DSYNC)
    took = []
    for number in range(count):
        start = time.perf_counter()
        os.pwrite(fd, block, number * 4096)
        took.append((time.perf_counter() - start) * 1e6)
    os.close(fd)
    path.unlink()
    return statistics.median(took)


def durable_file_us(directory: Path, count: int = 60) -> float:
    """Median of a new 4 KiB file: write, fsync, rename, fsync of the directory."""
    place = directory / "files"
    place.mkdir()
    folder = os.open(place, os.O_RDONLY)
    took = []
    for number in range(count):
        start = time.perf_counter()
        fd = os.open(place / "tmp", os.O_CREAT | os.O_WRONLY, 0o600)
        os.write(fd, b"x" * 4096)
        os.fsync(fd)
        os.close(fd)
        os.rename(place / "tmp", place / f"f{number}")
        os.fsync(folder)
        took.append((time.perf_counter() - start) * 1e6)
    os.close(folder)
    for path in place.iterdir():
        path.unlink()
    place.rmdir()
    return statistics.median(took)


def describe() -> dict[str, Any]:
    model = next((line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.machine())
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {"cpu": model, "cores": os.cpu_count(), "memory_gib": round(pages / 2**30, 1), "kernel": platform.release()}
