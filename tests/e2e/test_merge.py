"""A table's many small manifests become few between the rolls, and every reader finds the same rows: now, and in each snapshot of
before."""
from __future__ import annotations

import subprocess
import time
from collections import Counter
from typing import Any

import pytest

from senders import COLUMNS, Load, table_rows
from server import Server, duckdb_attached, pyiceberg_catalog
from test_exactly_once_table import TABLE, rows_of, until_it_lands

FEW = {"commit.manifest.min-count-to-merge": "5"}
ROLLS = 12
FORMS = {"v2": {"format_version": 2}, "v3 by day": {"format_version": 3, "partition": ["day(at)"]}}


def rows_of_roll(number: int) -> list[dict[str, Any]]:
    return [{"id": f"{number}-{row}", "n": number * 10 + row, "at": f"2026-0{1 + row}-{1 + number:02}T00:00:00Z"} for row in range(3)]


def merges(table: Any) -> list[Any]:
    """Snapshots of the table, each of which put manifests together."""
    return [snapshot for snapshot in table.snapshots() if snapshot.summary.operation.value == "replace"]


def wait_for_merge(server: Server, name: str) -> Any:
    deadline = time.monotonic() + 60
    while True:
        table = pyiceberg_catalog(server).load_table(name)
        if merges(table) and table.inspect.manifests().num_rows < 5:
            return table
        assert time.monotonic() < deadline, server.tail()
        time.sleep(0.2)


def lineage(table: Any) -> dict[str, tuple[int, ...]]:
    """Of each live file: the snapshot that added it, and its sequence numbers."""
    return {task["data_file"]["file_path"]: (task["snapshot_id"], task["sequence_number"], task["file_sequence_number"])
            for task in table.inspect.entries().to_pylist() if task["status"] != 2}


def verify(server: Server, sink: dict[str, Any]) -> None:
    report = server.call("POST", f"/v1/sinks/{sink['id']}/verify").json
    assert report["sound"], report
    assert server.books(sink)["difference"] == 0


@pytest.mark.parametrize("form", FORMS)
def test_manifests_of_many_rolls_are_merged_and_rows_stay_what_they_are(own_server: Server, form: str) -> None:
    server = own_server.start()
    server.make_table("demo.many", {"id": "string", "n": "int", "at": "timestamptz"}, properties=FEW, **FORMS[form])
    sink = server.make_sink("demo.many", "many_in", roll_seconds=3600)
    rows: list[dict[str, Any]] = []
    counts: dict[int, int] = {}  # of rows by snapshot

    def roll(number: int) -> None:
        assert server.send(sink, f"b{number}", rows_of_roll(number)).status == 202
        rolled = server.roll(sink)
        rows.extend(rows_of_roll(number))
        counts[rolled["last_roll"]["snapshot_id"]] = len(rows)

    for number in range(ROLLS):
        roll(number)
    before = lineage(pyiceberg_catalog(server).load_table("demo.many"))
    table = wait_for_merge(server, "demo.many")
    assert lineage(table) == before
    for merge in merges(table):
        parent = table.snapshot_by_id(merge.parent_snapshot_id)
        told, of_parent = merge.summary.additional_properties, parent.summary.additional_properties
        assert {key: told[key] for key in told if key.startswith("total-")} == \
            {key: of_parent[key] for key in of_parent if key.startswith("total-")}
        assert not [key for key in told if key.startswith(("added-", "deleted-", "removed-", "lakehousebox."))]
        assert (told["manifests-created"], told["changed-partition-count"]) == ("1", "0")
        assert int(told["manifests-kept"]) + int(told["manifests-replaced"]) == \
            int(of_parent["manifests-created"]) + int(of_parent["manifests-kept"])
    for number in range(ROLLS, ROLLS + 2):  # rolls go on over it
        roll(number)
    table = pyiceberg_catalog(server).load_table("demo.many")
    wanted = sorted((row["id"], row["n"]) for row in rows)
    found = table.scan().to_arrow().to_pylist()
    assert sorted((row["id"], row["n"]) for row in found) == wanted
    assert {row["id"]: row["at"].isoformat()[:10] for row in found} == {row["id"]: row["at"][:10] for row in rows}
    one = table.scan(row_filter="at >= '2026-02-03T00:00:00+00:00' and at < '2026-02-04T00:00:00+00:00'").to_arrow()
    assert one["id"].to_pylist() == ["2-1"]  # by the bounds of what was merged
    lake = duckdb_attached(server)
    assert sorted(lake.execute(f"SELECT id, n FROM {server.dev['warehouse']}.demo.many").fetchall()) == wanted
    for snapshot, count in counts.items():
        assert table.scan(snapshot_id=snapshot).to_arrow().num_rows == count
        assert lake.execute(f"SELECT count(*) FROM {server.dev['warehouse']}.demo.many AT (VERSION => {snapshot})").fetchall() == [(count,)]
    lake.close()
    verify(server, sink)
    assert server.terminate() == 0
    recovered = subprocess.run([*server.command, "recover", "--data", str(server.data)], capture_output=True, text=True, timeout=60)
    assert recovered.returncode == 0, recovered
    server.start()
    roll(ROLLS + 2)
    assert sorted(table_rows(server, "demo.many")) == sorted(row["id"] for row in rows)
    verify(server, sink)


def test_merges_among_rolls_and_appends_of_others_lose_nothing(own_server: Server) -> None:
    server = own_server.start()
    server.make_table(TABLE, COLUMNS, properties={"commit.manifest.min-count-to-merge": "2"})
    sink = server.make_sink(TABLE, "shared_in", roll_seconds=1)
    landed: list[str] = []
    with Load(server, sink, TABLE, senders=4) as load:
        for number in range(2):
            load.rolled()
            landed.append(f"foreign-{number}")
            until_it_lands(server, lambda table: table.append(rows_of(table, landed[-1:])))
            before, deadline = len(merges(pyiceberg_catalog(server).load_table(TABLE))), time.monotonic() + 60
            while len(merges(pyiceberg_catalog(server).load_table(TABLE))) == before:
                assert time.monotonic() < deadline, server.tail()
                time.sleep(0.2)
    load.settle()
    foreign = Counter(row for row in table_rows(server, TABLE) if row.startswith("foreign-"))
    assert set(landed) == set(foreign)  # PyIceberg may repeat a commit of which it did not hear
