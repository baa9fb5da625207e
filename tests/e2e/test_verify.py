"""`lhbox verify`: quiet on a healthy installation, under load too; every kind of damage made by hand is found under its rule."""
from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Callable

import fastavro
import pytest

from server import LHBOX, Server, pyiceberg_catalog

SOUND, FOUND = 0, 5


class Garden:
    """A server with one sink that has known everything: rolls, rejects, refusals, a void plan, and batches that wait."""

    def __init__(self, server: Server) -> None:
        self.server = server.start()
        server.make_table("garden.plants", {"id": "string", "n": "int required"})
        self.sink = server.make_sink("garden.plants", "plants_in", roll_seconds=3600)
        self.send("a", good=3, bad=1, refused=1)
        self.send("b", good=2)
        server.roll(self.sink)
        self.send("c", good=4, bad=2)
        server.roll(self.sink)
        self.send("hopeless", bad=2)
        server.roll(self.sink)
        self.send("w1", good=2, refused=1)
        self.send("w2", good=1)

    def send(self, batch: str, good: int = 0, bad: int = 0, refused: int = 0) -> None:
        rows: list[Any] = [{"id": f"{batch}-{i}", "n": i} for i in range(good)]
        rows += [{"id": f"{batch}-bad-{i}", "n": "many"} for i in range(bad)] + [7] * refused
        answer = self.server.send(self.sink, batch, rows)
        assert answer.status == 202, answer

    def verify(self, *args: str) -> tuple[int, dict[str, Any]]:
        done = self.run("verify", *args, "--json")
        return done.returncode, json.loads(done.stdout)

    def run(self, *args: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "LHBOX_URL": self.server.dev["url"], "LHBOX_API_KEY": self.server.dev["api_key"]}
        return subprocess.run([LHBOX, *args], env=env, text=True, capture_output=True, timeout=120, cwd=self.server.home)

    def rules(self, *args: str) -> set[str]:
        """The rules that are broken; none when it is sound."""
        code, answer = self.verify(*args)
        findings = [finding for sink in answer["sinks"] for finding in sink["findings"]]
        assert code == (FOUND if findings else SOUND), (code, answer)
        assert answer["sound"] == (not findings)
        for finding in findings:
            assert finding["subject"] and finding["finding"] and finding["cure"], finding
        return {finding["rule"] for finding in findings}

    def ledger(self, *statements: str) -> None:
        """Statements on the ledger, while nobody serves it."""
        assert self.server.terminate() == 0
        with sqlite3.connect(self.server.data / "lhbox.db") as ledger:
            for statement in statements:
                assert ledger.execute(statement).rowcount > 0, statement
        ledger.close()
        self.server.start()

    def ask(self, query: str) -> Any:
        with sqlite3.connect(f"file:{self.server.data / 'lhbox.db'}?mode=ro", uri=True) as ledger:
            return ledger.execute(query).fetchone()[0]

    def files(self, pattern: str) -> list[Path]:
        found = sorted(self.server.folder(self.sink).glob(pattern))
        assert found, pattern
        return found

    def table_files(self, pattern: str) -> list[Path]:
        tables = self.server.data / "warehouse" / self.server.dev["warehouse"] / "tables" / "garden"
        found = sorted(tables.glob(f"*/{pattern}"))
        assert found, pattern
        return found


@pytest.fixture
def garden(own_server: Server) -> Garden:
    planted = Garden(own_server)
    own_server.damaged = "."  # each test makes a fault of its own
    assert planted.rules() == set()
    return planted


def replace(path: Path, old: bytes, new: bytes) -> None:
    content = path.read_bytes()
    assert old in content, (path, content)
    path.write_bytes(content.replace(old, new, 1))


def rewrite_avro(path: Path, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        records, schema = list(reader), reader.writer_schema
        meta = {key: value for key, value in reader.metadata.items() if not key.startswith("avro.")}
    with path.open("wb") as file:
        fastavro.writer(file, schema, change(records), codec="deflate", metadata=meta)


# ---- healthy ----

def test_a_healthy_installation_is_sound(garden: Garden) -> None:
    code, answer = garden.verify("--rows")
    assert (code, answer["sound"]) == (SOUND, True)
    report = next(sink for sink in answer["sinks"] if sink["sink"] == garden.sink["id"])
    assert report["checked"] == {"batches": 6, "plans": 3, "objects": 5, "rejects_files": 5, "snapshots": 2, "manifests": 2,
                                 "data_files": 2, "rows": 9}
    assert report["notes"] == []


def test_it_stays_sound_through_a_sinks_life(garden: Garden) -> None:
    server, sink = garden.server, garden.sink
    assert server.call("PATCH", f"/v1/sinks/{sink['id']}", {"roll_seconds": 1800}).status == 200
    assert server.send(sink, "b", [{"id": "b-0", "n": 0}, {"id": "b-1", "n": 1}]).json["duplicate"] is True
    server.roll(sink)
    assert garden.rules() == set()
    server.kill()
    server.start()
    assert garden.rules("--rows") == set()
    table = pyiceberg_catalog(server).load_table("garden.plants")
    with table.update_schema() as update:
        update.rename_column("n", "m")
    garden.send("after", bad=3)
    server.roll(sink)
    assert garden.rules() == set()
    assert server.call("DELETE", f"/v1/sinks/{sink['id']}").status == 202
    answer = server.call("POST", f"/v1/sinks/{sink['id']}/verify").json
    assert answer["sound"], answer


def test_rolls_under_way_are_no_damage(garden: Garden) -> None:
    stop = threading.Event()

    def send_and_roll() -> None:
        number = 0
        while not stop.is_set():
            garden.send(f"load-{number}", good=3, bad=number % 3, refused=number % 2)
            number += 1
            if number % 5 == 0:
                garden.server.call("POST", f"/v1/sinks/{garden.sink['id']}/roll")

    sender = threading.Thread(target=send_and_roll)
    sender.start()
    try:
        deadline = time.monotonic() + 8
        looks = 0
        while time.monotonic() < deadline:
            assert garden.rules("plants_in") == set()
            looks += 1
    finally:
        stop.set()
        sender.join()
    assert looks >= 5


def test_one_sink_is_named_by_name_id_or_table(garden: Garden) -> None:
    for name in ("plants_in", garden.sink["id"], "garden.plants", f"{garden.server.dev['warehouse']}.garden.plants"):
        code, answer = garden.verify(name)
        assert code == SOUND and [sink["name"] for sink in answer["sinks"]] == ["plants_in"], name
    assert garden.run("verify", "nobody").returncode == 1


def test_reading_is_enough_and_no_key_is_not(garden: Garden) -> None:
    made = garden.server.call("POST", "/v1/keys", {"name": "reader", "level": "read"}).json
    path = f"/v1/sinks/{garden.sink['id']}/verify"
    assert garden.server.call("POST", path, key=made["api_key"]).json["sound"] is True
    assert garden.server.call("POST", path, key="").status == 401
    assert garden.server.call("POST", path, key=garden.sink["send_key"]).status == 403


# ---- damaged: the ledger ----

def test_a_committed_batch_without_its_row(garden: Garden) -> None:
    garden.ledger("DELETE FROM batch WHERE batch_id = 'b'")
    assert "I2" in garden.rules()


def test_a_waiting_batch_without_its_row(garden: Garden) -> None:
    garden.ledger("DELETE FROM batch WHERE batch_id = 'w2'")
    assert {"I2", "I13"} <= garden.rules()


def test_a_void_uid_that_is_used(garden: Garden) -> None:
    garden.ledger("INSERT INTO void_uid (uid, at) SELECT uid, received_at FROM batch WHERE batch_id = 'w1'")
    assert garden.rules() == {"I6"}


@pytest.mark.parametrize("change", ["rows_committed = rows_committed + 1",
                                    "rows_committed = rows_committed - 1, rows_rejected = rows_rejected + 1",
                                    "rows_accepted = rows_accepted - 2", "waiting_batches = waiting_batches + 1",
                                    "rows_refused = rows_refused + 1"])
def test_counters_that_were_changed(garden: Garden, change: str) -> None:
    garden.ledger(f"UPDATE sink SET {change} WHERE name = 'plants_in'")
    assert garden.rules() == {"I13"}


def test_a_committed_batch_that_was_set_back_to_pending(garden: Garden) -> None:
    garden.ledger("UPDATE batch SET state = 0 WHERE batch_id = 'a'")
    assert "I17" in garden.rules()


def test_a_chain_of_plans_that_was_cut(garden: Garden) -> None:
    garden.ledger("UPDATE plan SET prev = 'zzzzzzzzzzzzzzzzzzzzzzzzzz' WHERE n = 2 AND state = 3")
    assert garden.rules() == {"I7"}


def test_ingest_times_that_run_backwards(garden: Garden) -> None:
    garden.ledger("UPDATE batch SET ingest_ts = ingest_ts - 3600000000 WHERE batch_id = 'w2'")
    assert garden.rules() == {"I20"}


# ---- damaged: the store ----

def test_an_object_that_is_missing(garden: Garden) -> None:
    garden.files("w1.*.ndjson")[0].unlink()
    assert garden.rules() == {"I16"}


def test_an_object_that_was_altered(garden: Garden) -> None:
    replace(garden.files("w2.*.ndjson")[0], b"w2-0", b"w2-1")
    assert garden.rules() == {"I2"}


def test_an_object_that_was_cut_short(garden: Garden) -> None:
    path = garden.files("w2.*.ndjson")[0]
    path.write_bytes(path.read_bytes()[:-1])
    assert garden.rules() == {"I2"}


def test_a_rejects_file_that_was_altered(garden: Garden) -> None:
    replace(garden.files("rejects/c.ndjson")[0], b"c-bad-0", b"c-bad-9")
    assert garden.rules() == {"I15"}


def test_a_reason_that_was_altered(garden: Garden) -> None:
    path = garden.files("rejects/c.ndjson")[0]
    altered = path.read_bytes().replace(b'"bad_number"', b'"wrong_type"', 1)
    path.unlink()
    path.write_bytes(altered)  # a new file, without the hash that stands beside ours
    assert garden.rules() == {"I15"}


def test_a_rejected_row_that_was_taken_out(garden: Garden) -> None:
    path = garden.files("rejects/c.ndjson")[0]
    lines = path.read_bytes().splitlines(keepends=True)
    path.unlink()
    path.write_bytes(lines[0])
    assert garden.rules() == {"I13"}


def test_a_refused_row_that_was_taken_out(garden: Garden) -> None:
    garden.files("rejects/a~*.intake.ndjson")[0].unlink()
    assert garden.rules() == {"I15"}


def test_a_rejects_file_of_a_batch_without_rejects(garden: Garden) -> None:
    source = garden.files("rejects/c.ndjson")[0]
    (source.parent / "b.ndjson").write_bytes(source.read_bytes().replace(b'"c"', b'"b"'))
    assert garden.rules() == {"I15"}


def test_a_plan_object_that_was_altered(garden: Garden) -> None:
    replace(garden.files("plans/1-*.json")[0], b'"rows":', b'"rows": ')
    assert garden.rules() == {"I7"}


def test_a_plan_object_that_is_missing(garden: Garden) -> None:
    garden.files("plans/2-*.json")[0].unlink()
    assert garden.rules() == {"I7"}


def test_a_verdict_that_is_missing(garden: Garden) -> None:
    garden.files("plans/*.void.json")[0].unlink()
    assert garden.rules() == {"I16"}


def test_what_nobody_knows_is_told_and_no_damage(garden: Garden) -> None:
    folder = garden.server.folder(garden.sink)
    (folder / "lost.0123456789abcdefghjkmnpqrs.ndjson").write_text('{"id":"x","n":1}')
    code, answer = garden.verify("plants_in")
    assert code == SOUND
    assert [note["kind"] for note in answer["sinks"][0]["notes"]] == ["orphan"]


# ---- damaged: the table ----

def test_a_property_that_was_set_back(garden: Garden) -> None:
    first = garden.ask("SELECT p.id FROM plan p JOIN sink s ON s.id = p.sink WHERE p.n = 1 AND p.state = 3")
    table = pyiceberg_catalog(garden.server).load_table("garden.plants")
    installation, sink_id, n, _ = table.properties["lakehousebox.sink.roll"].split(":")
    assert n == "2"
    with table.transaction() as transaction:
        transaction.set_properties({"lakehousebox.sink.roll": f"{installation}:{sink_id}:1:{first}"})
    assert garden.rules() == {"I10"}


def test_a_property_that_was_removed(garden: Garden) -> None:
    table = pyiceberg_catalog(garden.server).load_table("garden.plants")
    with table.transaction() as transaction:
        transaction.remove_properties("lakehousebox.sink.roll")
    assert garden.rules() == {"I10"}


def test_a_property_that_is_ahead(garden: Garden) -> None:
    table = pyiceberg_catalog(garden.server).load_table("garden.plants")
    installation, sink_id, _, plan = table.properties["lakehousebox.sink.roll"].split(":")
    with table.transaction() as transaction:
        transaction.set_properties({"lakehousebox.sink.roll": f"{installation}:{sink_id}:9:{plan}"})
    assert garden.rules() == {"I27"}


def test_a_file_that_stands_twice_in_a_manifest(garden: Garden) -> None:
    manifest = garden.table_files("metadata/*-m0.avro")[0]
    rewrite_avro(manifest, lambda entries: entries + entries)

    def grown(listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for entry in listed:
            if entry["manifest_path"].endswith(manifest.name):
                entry["manifest_length"] = manifest.stat().st_size
                entry["added_files_count"] *= 2
                entry["added_rows_count"] *= 2
        return listed

    for manifest_list in garden.table_files("metadata/snap-*.avro"):
        rewrite_avro(manifest_list, grown)
    assert garden.rules() == {"I13"}


def test_a_manifest_that_stands_twice_in_its_list(garden: Garden) -> None:
    for manifest_list in garden.table_files("metadata/snap-*.avro"):
        rewrite_avro(manifest_list, lambda listed: listed + listed[:1])
    assert garden.rules() == {"I13"}


def test_a_manifest_that_is_missing(garden: Garden) -> None:
    garden.table_files("metadata/*-m0.avro")[0].unlink()
    assert garden.rules() == {"I25"}


def test_a_data_file_that_is_missing(garden: Garden) -> None:
    garden.table_files("data/*.parquet")[0].unlink()
    assert garden.rules() == {"I25"}


def test_a_data_file_that_was_truncated(garden: Garden) -> None:
    path = garden.table_files("data/*.parquet")[0]
    path.write_bytes(path.read_bytes()[:-10])
    assert garden.rules() == {"I25"}


def test_a_data_file_of_other_bytes_is_found_by_reading_it(garden: Garden) -> None:
    path = garden.table_files("data/*.parquet")[0]
    path.write_bytes(bytes(path.stat().st_size))
    assert garden.rules() == set()
    assert garden.rules("--rows") == {"I25"}


def test_a_version_hint_that_names_another_version(garden: Garden) -> None:
    hint = next(path for path in garden.table_files("metadata/version-hint.text"))
    hint.write_text("00000-lost")
    assert garden.rules() == {"I27"}


def test_findings_are_said_with_their_cure(garden: Garden) -> None:
    garden.files("w1.*.ndjson")[0].unlink()
    done = garden.run("verify")
    assert done.returncode == FOUND
    assert "DAMAGED" in done.stdout and "I16  w1" in done.stdout and "lhbox sink batches discard" in done.stdout
