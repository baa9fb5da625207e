"""A full disk, a disk whose fsync fails, and too few descriptors: nothing is acknowledged that is not kept, and when there is
room again everything goes on."""
from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Iterator

import pytest

from senders import COLUMNS, Load, table_rows
from server import Server
from system_calls import needs_tracer, read_calls

MIB = 1024 * 1024


# ---- full ----

@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 48 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m,mode=0700", "tmpfs", str(place)], capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"a file system of its own needs the right to mount: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(place: Path, leave: int = 0) -> Path:
    """Takes all space but `leave` bytes."""
    filler = place / "filler"
    free = shutil.disk_usage(place).free - leave
    with filler.open("wb", buffering=0) as file:
        try:
            while free > 0:
                free -= file.write(bytes(min(free, 4096)))
        except OSError:
            pass  # full
    return filler


def refused(load: Load) -> dict[str, int]:
    total: dict[str, int] = {}
    for sender in load.senders:
        for code, count in dict(sender.refused).items():
            total[code] = total.get(code, 0) + count
    return total


def refused_more(load: Load, server: Server, count: int, within: float = 30.0) -> None:
    wanted, deadline = sum(refused(load).values()) + count, time.monotonic() + within
    while sum(refused(load).values()) < wanted:
        load.calm()
        assert server.process is not None and server.process.poll() is None, server.tail()
        assert time.monotonic() < deadline, (refused(load), server.tail())
        time.sleep(0.05)


@pytest.mark.parametrize("watched", ["watched", "unwatched"])
def test_a_full_disk_refuses_and_loses_nothing(small_disk: Path, watched: str) -> None:
    """`unwatched`: the intake is not closed before the disk is full, so that writes themselves fail."""
    env = {} if watched == "watched" else {"LHBOX_SERVER_DISK_FREE_BYTES": "0", "LHBOX_SERVER_DISK_FREE_PERCENT": "0"}
    server = Server(small_disk, env=env)
    try:
        server.start()
        server.make_table("demo.full", COLUMNS)
        sink = server.make_sink("demo.full", "full_in", roll_seconds=1)
        with Load(server, sink, "demo.full", senders=8, pause=0.05, notes=small_disk.parent) as load:
            load.more(16)
            for _ in range(2):
                filler = fill(small_disk, leave=2 * MIB if watched == "watched" else 0)
                refused_more(load, server, 40)
                kept = load.acknowledged
                refused_more(load, server, 40)
                if watched == "watched":
                    assert load.acknowledged == kept
                filler.unlink()
                load.more(32)
        codes = refused(load)
        assert set(codes) <= {"disk_low", "ledger_down", "store_down", "unavailable"} and codes.get("disk_low", 0) > 0, codes
        load.settle()
        shown = server.call("GET", f"/v1/sinks/{sink['id']}").json
        assert shown["state"] == "active", shown
    finally:
        server.kill()


# ---- fsync fails ----

@pytest.mark.parametrize("what", ["any", "log", "ledger", "objects"])
def test_after_a_failed_fsync_nothing_is_acknowledged(own_server: Server, what: str) -> None:
    """With the intake log, but where only the syncs of one file are to fail."""
    needs_tracer()
    server = own_server
    if what in ("ledger", "objects"):
        server.env["LHBOX_INTAKE_LOG_BYTES"] = "0"
    server.start()
    server.make_table("demo.failing", COLUMNS)
    sink = server.make_sink("demo.failing", "failing_in", roll_seconds=1)
    segments = [part for path in (server.data / "intake-log").glob("*.0*") for part in ("-P", str(path))]
    calls = "pwrite64" if what == "log" else "fsync,fdatasync,syncfs"
    only = {"any": [], "log": segments, "ledger": ["-P", str(server.data / "lhbox.db-wal")], "objects": ["-P", str(server.folder(sink))]}[what]
    trace = server.home / "trace"
    with Load(server, sink, "demo.failing", senders=8) as load:
        load.more(16)
        assert server.process is not None
        tracer = subprocess.Popen(
            ["strace", "-f", "-qq", "-tt", "-s", "200", "-o", str(trace), "-p", str(server.process.pid), "-e",
             f"trace={calls},sendmsg,sendto,exit_group", "-e", f"inject={calls}:error=EIO", *only],
            stderr=subprocess.DEVNULL)
        try:
            assert server.wait(20) == 74, server.tail()
        finally:
            tracer.terminate()
            tracer.wait(10)
        server.start()
        load.more(16)
    calls = read_calls(trace)
    failed = next(call for call in calls if "(INJECTED)" in call.text)
    assert [call for call in calls if call.began > failed.ended and "HTTP/1.1 2" in call.text] == []
    assert '"event":"durability_lost"' in server.log.read_text(), server.tail()
    load.settle()


# ---- no descriptors ----

def test_too_few_descriptors_refuse_and_lose_nothing(own_server: Server) -> None:
    limiter = shutil.which("prlimit")
    if limiter is None:
        pytest.skip("prlimit is not installed")
    server = own_server
    server.start()
    assert server.process is not None
    used = len(os.listdir(f"/proc/{server.process.pid}/fd"))
    server.terminate()
    server.command = [limiter, f"--nofile={used + 24}:{used + 24}", *server.command]
    server.start()
    server.make_table("demo.many", COLUMNS)
    sink = server.make_sink("demo.many", "many_in", roll_seconds=1)
    crowd: list[socket.socket] = []
    with Load(server, sink, "demo.many", senders=16) as load:
        load.more(16)
        for _ in range(100):  # the kernel takes them; the server has no descriptor for most
            crowd.append(socket.create_connection(server.address, timeout=5))
        time.sleep(2.0)
        assert server.process is not None and server.process.poll() is None, server.tail()
        for connection in crowd:
            connection.close()
        load.more(32)
    assert "descriptor" in server.log.read_text() or "EMFILE" in server.log.read_text() or "Too many open files" in server.log.read_text(), \
        server.tail()
    load.settle()
    assert server.call("GET", f"/v1/sinks/{sink['id']}").json["state"] == "active"
    assert len(set(table_rows(server, "demo.many"))) > 0
    assert server.terminate() == 0
