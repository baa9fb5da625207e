"""The power fails: after kill -9 the ledger falls back to what was synced before the load, and of the objects some are gone,
some are half there, some are zeros. Everything acknowledged comes back from the intake log."""
from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from typing import Any

from senders import COLUMNS, Load
from server import Server

LEDGER = ("lhbox.db", "lhbox.db-wal")


class Disk:
    """What was durable when it was looked at last: a start syncs what its log brings back."""

    def __init__(self, server: Server, sink: dict[str, Any]) -> None:
        self.server, self.folder, self.kept = server, server.folder(sink), server.home / "durable"
        self.objects: set[Path] = set()

    def files(self) -> set[Path]:
        return {path for path in self.folder.rglob("*.ndjson") if path.parent.name != "plans"}

    def note(self) -> None:
        self.objects = self.files()
        ledger, before = self.server.data / LEDGER[0], -1
        while before != ledger.stat().st_mtime_ns:  # else pages moved from the WAL meanwhile
            before = ledger.stat().st_mtime_ns
            shutil.rmtree(self.kept, ignore_errors=True)
            self.kept.mkdir()
            for name in LEDGER:
                shutil.copy(self.server.data / name, self.kept / name)

    def lose_ledger(self) -> None:
        for name in LEDGER:
            shutil.copy(self.kept / name, self.server.data / name)
        (self.server.data / "lhbox.db-shm").unlink(missing_ok=True)

    def lose_objects(self, chance: random.Random) -> list[str]:
        fates = []
        for path in sorted(self.files() - self.objects):
            fate = chance.choice(("kept", "gone", "cut", "zeros", "bare"))
            size = path.stat().st_size
            if fate == "gone":
                path.unlink()
            elif fate == "cut":
                os.truncate(path, size // 2)
            elif fate == "zeros":
                path.write_bytes(bytes(size))
            elif fate == "bare":  # its bytes, and none of what stands beside them
                for name in os.listxattr(path):
                    os.removexattr(path, name)
            fates.append(fate)
        return fates


def test_everything_acknowledged_comes_back_from_the_log(own_server: Server) -> None:
    server, chance = own_server.start(), random.Random(os.environ.get("LHBOX_SEED", "1"))
    server.make_table("demo.power", COLUMNS)
    sink = server.make_sink("demo.power", "power_in", roll_seconds=3600)
    disk = Disk(server, sink)
    with Load(server, sink, "demo.power", senders=8) as load:
        load.more(8)
        for _ in range(3):
            server.kill()
            server.start()  # what came before it is durable without the log
            disk.note()
            load.more(60)
            server.kill()
            before = load.acknowledged
            disk.lose_ledger()
            fates = disk.lose_objects(chance)
            assert before >= 60 and len(fates) > 0
            server.start()
            assert '"event":"intake_log_replayed"' in server.log.read_text(), server.tail()
            load.more(8)
    load.settle()
    assert server.terminate() == 0


def test_a_log_of_another_installation_stops_the_start(own_server: Server) -> None:
    server = own_server.start()
    assert server.terminate() == 0
    head = server.data / "intake-log" / "head"
    text = head.read_text()
    installation = next(word for word in text.replace("=", " ").split() if len(word) == 26)
    head.write_text(text.replace(installation, "0" * 26))
    server.launch()
    assert server.wait(20) != 0
    assert "intake-log" in server.tail() or "installation" in server.tail(), server.tail()


def test_without_a_log_what_an_earlier_start_left_in_one_is_still_taken_in(own_server: Server) -> None:
    server = own_server.start()
    server.make_table("demo.off", COLUMNS)
    sink = server.make_sink("demo.off", "off_in", roll_seconds=3600)
    disk = Disk(server, sink)
    disk.note()
    with Load(server, sink, "demo.off", senders=4) as load:
        load.more(16)
        server.kill()
        disk.lose_ledger()
        server.env["LHBOX_INTAKE_LOG_BYTES"] = "0"
        server.start()
        load.more(8)
    load.settle()
    assert server.terminate() == 0
