"""The strict checker: everything that the most demanding reader wants of a table, checked over all its files.

    PYTHONPATH=tests build/venv/bin/python -m strict.check METADATA_FILE… | DATA_DIRECTORY

Engines that the tests cannot run (Trino, Snowflake, Redshift) read by exact schemas, lengths and counts; this stands in for
them. It also makes again what manifests say of files: sizes, counts, bounds and partitions, from the rows.
"""
from __future__ import annotations

import gzip
import json
import re
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any, Callable, Iterator

from strict.avro import DELETED, Avro, check_list, check_manifest
from strict.files import check_file
from strict.metadata import check_metadata

NAME = re.compile(r"\d{5,}-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(\.gz)?\.metadata\.json")


def local(uri: str) -> Path:
    """The path of a file URI, or of a path."""
    return Path(re.sub(r"^file:/*", "/", uri))


def read_metadata(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


def is_ours(snapshot: dict[str, Any]) -> bool:
    return any(key.startswith("lakehousebox.sink.") for key in snapshot.get("summary", {}))


class Check:
    """One table under check. Stops early, and says so, when the time is used up: newest snapshots come first."""

    def __init__(self, metadata: Path, deadline: float = float("inf"),
                 ours: Callable[[dict[str, Any]], bool] = is_ours) -> None:
        self.path, self.table = metadata, read_metadata(metadata)
        self.deadline, self.ours = deadline, ours
        self.snapshots = {s["snapshot-id"]: s for s in self.table.get("snapshots", [])}
        self.manifests: dict[str, Avro] = {}
        self.seen_files: set[str] = set()
        self.finished = True

    def in_time(self) -> bool:
        self.finished = self.finished and time.monotonic() < self.deadline
        return self.finished

    def faults(self) -> Iterator[str]:
        """One line each; what cannot even be read is one, too."""
        try:
            yield from self.all_faults()
        except (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError) as error:
            yield f"cannot be read: {error!r}"

    def all_faults(self) -> Iterator[str]:
        if not NAME.fullmatch(self.path.name):
            yield f"metadata file {self.path.name}"
        yield from check_metadata(self.table)
        newest = sorted(self.snapshots.values(), key=lambda s: s.get("sequence-number", 0), reverse=True)
        for snapshot in newest:
            if "manifest-list" in snapshot and self.in_time():
                for fault in self.snapshot_faults(snapshot):
                    yield f"snapshot {snapshot['snapshot-id']}: {fault}"

    def snapshot_faults(self, snapshot: dict[str, Any]) -> Iterator[str]:
        path = local(snapshot["manifest-list"])
        if not path.exists():
            yield f"{path.name} is gone"
            return
        manifests, ours = Avro(path), self.ours(snapshot)
        yield from (f"{path.name}: {fault}" for fault in check_list(manifests, self.table, snapshot, ours))
        if ours:
            yield from self.parent_faults(manifests, snapshot)
        live: list[str] = []
        for row in manifests.rows:
            yield from self.manifest_faults(row)
            if row["manifest_path"] in self.manifests:
                live += [entry["data_file"]["file_path"] for entry in self.manifests[row["manifest_path"]].rows
                         if entry["status"] != DELETED and entry["data_file"]["file_format"].upper() == "PARQUET"]
        if len(set(live)) < len(live):
            yield "a file is live twice"
        yield from self.total_faults(snapshot, manifests)

    def parent_faults(self, manifests: Avro, snapshot: dict[str, Any]) -> Iterator[str]:
        """An append keeps every manifest of its parent, in their order, behind its own."""
        parent = self.snapshots.get(snapshot.get("parent-snapshot-id", -1))
        if parent is None or not local(parent["manifest-list"]).exists():
            return
        kept = [row["manifest_path"] for row in Avro(local(parent["manifest-list"])).rows]
        found = [row["manifest_path"] for row in manifests.rows]
        if found[len(found) - len(kept):] != kept or len(found) - len(kept) > 1:
            yield f"the parent's {len(kept)} manifests do not follow the new ones"
        if snapshot["timestamp-ms"] <= parent["timestamp-ms"]:
            yield "is not after its parent"

    def total_faults(self, snapshot: dict[str, Any], manifests: Avro) -> Iterator[str]:
        """Totals of a summary, against the live files (without deletes, which take rows away)."""
        if any(row["content"] for row in manifests.rows):
            return
        files = sum(row["added_files_count"] + row["existing_files_count"] for row in manifests.rows)
        rows = sum(row["added_rows_count"] + row["existing_rows_count"] for row in manifests.rows)
        new = [row for row in manifests.rows if row["added_snapshot_id"] == snapshot["snapshot-id"]]
        added = sum(row["added_files_count"] for row in new), sum(row["added_rows_count"] for row in new)
        for key, found in (("total-data-files", files), ("total-records", rows),
                           ("added-data-files", added[0]), ("added-records", added[1])):
            if int(snapshot["summary"].get(key, found)) != found:
                yield f"{key} is {snapshot['summary'][key]}, found {found}"

    def manifest_faults(self, row: dict[str, Any]) -> Iterator[str]:
        path, name = local(row["manifest_path"]), row["manifest_path"].rsplit("/", 1)[-1]
        if row["manifest_path"] in self.manifests:
            return
        if not path.exists():
            yield f"{name} is gone"
            return
        if path.stat().st_size != row["manifest_length"]:
            yield f"{name} has {path.stat().st_size} bytes, the list says {row['manifest_length']}"
        avro = self.manifests[row["manifest_path"]] = Avro(path)
        adder = self.snapshots.get(row["added_snapshot_id"])
        ours = adder is not None and self.ours(adder)
        yield from (f"{name}: {fault}" for fault in check_manifest(avro, row, self.table, ours))
        for entry in avro.rows:
            if entry["status"] != DELETED:
                yield from self.file_faults(entry, avro, row, ours)

    def file_faults(self, entry: dict[str, Any], avro: Avro, row: dict[str, Any], ours: bool) -> Iterator[str]:
        data = entry["data_file"]
        path, name = local(data["file_path"]), Path(data["file_path"]).name
        if data["file_path"] in self.seen_files or not self.in_time():
            return
        self.seen_files.add(data["file_path"])
        if not path.exists():
            yield f"{name} is gone"
        elif path.stat().st_size != data["file_size_in_bytes"]:
            yield f"{name} has {path.stat().st_size} bytes, the manifest says {data['file_size_in_bytes']}"
        elif ours:
            specs = {spec["spec-id"]: spec["fields"] for spec in self.table["partition-specs"]}
            asked = any(key.startswith("write.metadata.metrics.") for key in self.table.get("properties", {}))
            schema = json.loads(avro.header["schema"])
            for fault in check_file(path, entry, schema, specs[row["partition_spec_id"]], not asked):
                yield f"{name}: {fault}"


def tables_of(data: Path) -> list[tuple[str, Path]]:
    """Name and metadata file of every table in an installation's catalog."""
    connection = sqlite3.connect(f"file:{data / 'lhbox.db'}?mode=ro", uri=True)
    try:
        rows = connection.execute("SELECT warehouse || '.' || namespace || '.' || name, metadata_location "
                                  "FROM catalog_table WHERE kind = 0 ORDER BY 1").fetchall()
    finally:
        connection.close()
    return [(name, local(uri)) for name, uri in rows]


def installation_faults(data: Path, seconds: float = float("inf")) -> list[str]:
    """Every fault of every table of a stopped installation, as far as the time allows."""
    deadline, found = time.monotonic() + seconds, []
    for name, path in tables_of(data) if (data / "lhbox.db").exists() else []:
        if not path.exists():
            found.append(f"{name}: {path.name} is gone")
        elif time.monotonic() < deadline:
            found += [f"{name}: {fault}" for fault in Check(path, deadline).faults()]
    return found


def main(arguments: list[str]) -> int:
    faults: list[str] = []
    for argument in map(Path, arguments):
        faults += installation_faults(argument) if argument.is_dir() else list(Check(argument).faults())
    print("\n".join(faults) or "no fault")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
