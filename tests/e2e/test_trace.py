"""The order of system calls before each 202. With the intake log: the record's write, durable when it returns; then the
object's name, the ledger's row in the WAL, the first byte of the answer. Without: the object's bytes, their fsync, the rename, the
directory's fsync; then the row and its fsync; then the answer. And of a roll: what it names is durable before the plan's attempt is
written, the attempt stands before the pointer in the ledger's log, the metadata is durable before the pointer, and that before its copy."""
from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest

from server import Server
from system_calls import Call, needs_tracer, read_calls

TRACED = "openat,openat2,fsync,fdatasync,sync_file_range,write,writev,pwrite64,pwritev,renameat,rename,renameat2,sendto,sendmsg,mkdirat,mkdir"
SENDERS, BATCHES = 8, 8


class Traced:
    def __init__(self, server: Server, trace: Path) -> None:
        self.server, self.trace = server, trace
        server.command = ["strace", "-D", "-f", "-tt", "-y", "-s", "40000", "-o", str(trace), "-e", f"trace={TRACED}", *server.command]


@pytest.fixture
def traced(own_server: Server) -> Traced:
    """Without a log."""
    needs_tracer()
    own_server.env["LHBOX_INTAKE_LOG_BYTES"] = "0"
    return Traced(own_server, own_server.home / "trace")


@pytest.fixture
def logged(own_server: Server) -> Traced:
    needs_tracer()
    return Traced(own_server, own_server.home / "trace")


def first(calls: list[Call], after: int, what: str, *marks: str, name: tuple[str, ...], path: str | None = None) -> Call:
    for call in calls:
        if call.began > after and call.name in name and not call.failed and all(mark in call.text for mark in marks) and \
                (path is None or call.path == path):
            return call
    raise AssertionError(f"no {what}")


SYNC = ("fsync", "fdatasync")


def durable_file(calls: list[Call], written: Call) -> Call:
    """The call with which a file that was written under a temporary name is there for good."""
    folder, temporary = written.path.rsplit("/", 1)
    last = max(call.ended for call in calls if call.name == "writev" and call.path == written.path)
    synced = first(calls, last, "fsync of the file", name=SYNC, path=written.path)
    renamed = first(calls, synced.ended, "rename", f'"{temporary}"', name=("renameat",), path=folder)
    target = re.search(r', \d+<([^>]*)>, "', renamed.text)
    assert target is not None, renamed
    return first(calls, renamed.ended, "fsync of the directory", name=SYNC, path=target.group(1))


def check_order(calls: list[Call], server: Server, batch_id: str) -> None:
    answers = [call for call in calls if call.name in ("sendmsg", "sendto", "write", "writev") and "HTTP/1.1 202" in call.text and
               f'\\"batch_id\\":\\"{batch_id}\\"' in call.text]
    assert len(answers) == 1, (batch_id, answers)
    files = [call for call in calls if call.name == "writev" and "/.files.tmp/" in call.path and f"{batch_id}-" in call.text]
    assert files, f"no object of {batch_id}"
    wal = f"{server.data}/lhbox.db-wal"
    durable = 0
    for written in files:
        durable = max(durable, durable_file(calls, written).ended)
    row = first(calls, durable, "row in the WAL", batch_id, name=("pwrite64",), path=wal)
    kept = first(calls, row.ended, "fsync of the WAL", name=SYNC, path=wal)
    assert kept.ended < answers[0].began, f"{batch_id} was answered before its row was durable"


def check_logged(calls: list[Call], server: Server, batch_id: str) -> None:
    answers = [call for call in calls if call.name in ("sendmsg", "sendto", "write", "writev") and "HTTP/1.1 202" in call.text and
               f'\\"batch_id\\":\\"{batch_id}\\"' in call.text]
    assert len(answers) == 1, (batch_id, answers)
    record = next((call for call in calls if call.name == "pwrite64" and "/intake-log/" in call.path and batch_id in call.text), None)
    assert record is not None, f"no record of {batch_id}"
    opened = [call for call in calls if call.name in ("openat", "openat2") and record.path in call.text and "O_DSYNC" in call.text]
    assert opened and opened[0].ended < record.began, f"writes to {record.path} are not durable when they return"
    assert record.ended < answers[0].began, f"{batch_id} was answered before its record was durable"
    first(calls, record.ended, "row in the WAL", batch_id, name=("pwrite64",), path=f"{server.data}/lhbox.db-wal")


def folders_are_durable(calls: list[Call], server: Server) -> None:
    """A new folder of objects is in its parent for good before the next 202."""
    made = [call for call in calls if call.name == "mkdirat" and not call.failed and "/files" in call.path]
    assert made
    for folder in made:
        synced = first(calls, folder.ended, f"fsync of {folder.path}", name=SYNC, path=folder.path)
        answer = [call for call in calls if call.began > folder.ended and "HTTP/1.1 202" in call.text]
        assert not answer or synced.ended < answer[0].began, folder


def send_many(traced: Traced) -> list[str]:
    """All are answered 202, and the server has ended."""
    server = traced.server.start()
    server.make_table("demo.traced", {"id": "string", "n": "long"})
    sink = server.make_sink("demo.traced", "traced_in", roll_seconds=1)
    answers: dict[str, Any] = {}

    def send(number: int) -> None:
        for batch in range(BATCHES):
            batch_id = f"t{number:02}x{batch:04}"
            rows: list[Any] = [{"id": f"{batch_id}-{row}", "n": row} for row in range(3)]
            rows += [f"{batch_id}-refused"] if batch % 4 == 0 else []
            answers[batch_id] = server.send(sink, batch_id, rows).status

    threads = [threading.Thread(target=send, args=(number,)) for number in range(SENDERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    server.roll(sink)
    assert server.terminate() == 0
    assert set(answers.values()) == {202} and len(answers) == SENDERS * BATCHES
    return list(answers)


def test_each_202_comes_after_object_and_row_are_durable(traced: Traced) -> None:
    batches = send_many(traced)
    calls = read_calls(traced.trace)
    for batch_id in batches:
        check_order(calls, traced.server, batch_id)
    folders_are_durable(calls, traced.server)


def test_each_202_comes_after_its_record_in_the_log_is_durable(logged: Traced) -> None:
    batches = send_many(logged)
    calls = read_calls(logged.trace)
    for batch_id in batches:
        check_logged(calls, logged.server, batch_id)


def test_the_check_sees_an_order_that_is_wrong(traced: Traced) -> None:
    """The same trace with the answer moved before each of the steps."""
    server = traced.server.start()
    server.make_table("demo.traced", {"id": "string", "n": "long"})
    sink = server.make_sink("demo.traced", "traced_in", roll_seconds=3600)
    assert server.send(sink, "t00x0000", [{"id": "t00x0000-0", "n": 1}]).status == 202
    assert server.terminate() == 0
    calls = read_calls(traced.trace)
    check_order(calls, server, "t00x0000")
    answer = next(call for call in calls if "HTTP/1.1 202" in call.text)
    written = next(call for call in calls if call.name == "writev" and "/.files.tmp/" in call.path and "t00x0000-" in call.text)
    needed = [call for call in calls if written.ended < call.began < answer.began and
              (call.name in SYNC or call.name == "renameat") and (server.folder(sink).as_posix() in call.text or
                                                                  "/.files.tmp/" in call.text or "lhbox.db-wal" in call.text)]
    assert [call.name for call in needed] == ["fsync", "renameat", "fsync", "fsync"], needed
    for step in needed:
        with pytest.raises(AssertionError):
            check_order([call for call in calls if call is not step], server, "t00x0000")


# ---- rolls ----

NAMED_BY_A_ROLL = (r"/plans/1-\w+\.json$", r"/data/.*\.parquet$", r"-m0\.avro$", r"/snap-.*\.avro$", r"\.metadata\.json$")


def put_steps(calls: list[Call], target: str) -> list[Call]:
    """Write, fsync, rename and fsync of the directory of the last file whose path ends as the pattern says."""
    for renamed in reversed(calls):
        parts = re.search(r'"([^"]+)", \d+<([^>]*)>, "([^"]+)"', renamed.text)
        if renamed.name == "renameat" and not renamed.failed and parts and re.search(target, f"{parts[2]}/{parts[3]}"):
            temporary = f"{renamed.path}/{parts[1]}"
            written = first(calls, -1, f"write of {target}", name=("writev",), path=temporary)
            last = max(call.ended for call in calls if call.name == "writev" and call.path == temporary)
            synced = first(calls, last, f"fsync of {target}", name=SYNC, path=temporary)
            assert synced.ended < renamed.began, f"{target} has its name before it is durable"
            return [written, synced, renamed, first(calls, renamed.ended, f"fsync of the directory of {target}", name=SYNC, path=parts[2])]
    raise AssertionError(f"no {target}")


def put_name(calls: list[Call], target: str) -> str:
    return put_steps(calls, target)[2].text.split('"')[3]


def check_roll(calls: list[Call], server: Server) -> list[Call]:
    """Plan object, data file, manifest, list and metadata are durable before the plan is attempted; that stands in the log before the
    pointer, whose sync is its own, and that comes before the hint tells of it. The syncs on which this rests are the answer."""
    wal = f"{server.data}/lhbox.db-wal"
    files = [put_steps(calls, target) for target in NAMED_BY_A_ROLL]
    attempted = first(calls, -1, "attempted plan", put_name(calls, r"\.parquet$"), name=("pwrite64",), path=wal)
    for steps in files:
        assert steps[-1].ended < attempted.began, f"attempted before {steps[2].text} is durable"
    moved = first(calls, attempted.ended, "pointer", put_name(calls, r"\.metadata\.json$"), name=("pwrite64",), path=wal)
    settled = first(calls, moved.ended, "fsync of the pointer", name=SYNC, path=wal)
    hint = put_steps(calls, r"/version-hint\.text$")
    assert settled.ended < hint[2].began, "the hint is ahead of the pointer"
    return [*(steps[i] for steps in files for i in (1, 3)), settled, hint[1], hint[3]]


def test_a_roll_counts_on_nothing_that_is_not_durable(traced: Traced) -> None:
    server = traced.server.start()
    server.make_table("demo.traced", {"id": "string", "n": "long"})
    sink = server.make_sink("demo.traced", "traced_in", roll_seconds=3600)
    assert server.send(sink, "t0", [{"id": "a", "n": 1}]).status == 202
    server.roll(sink)
    assert server.terminate() == 0
    calls = read_calls(traced.trace)
    for needed in check_roll(calls, server):
        # what may stand in for a sync that is missing is a later one, which then is too late
        without = [call for call in calls if call.name not in SYNC or call.path != needed.path or call.ended < needed.began]
        with pytest.raises(AssertionError):
            check_roll(without, server)
