"""metadata.json, as strictly as the most demanding reader takes it (Iceberg table specification, "Table metadata")."""
from __future__ import annotations

import re
from typing import Any, Iterator

MINUTE_MS = 60_000
REQUIRED = ("format-version", "table-uuid", "location", "last-sequence-number", "last-updated-ms", "last-column-id",
            "schemas", "current-schema-id", "partition-specs", "default-spec-id", "last-partition-id", "sort-orders",
            "default-sort-order-id")
RESERVED = ("format-version", "uuid", "snapshot-count", "current-snapshot-summary", "current-snapshot-id",
            "current-snapshot-timestamp-ms", "current-schema", "default-partition-spec", "default-sort-order")
TRANSFORM = re.compile(r"identity|void|year|month|day|hour|(bucket|truncate)\[\d+\]")


def check_metadata(table: dict[str, Any]) -> Iterator[str]:
    """One line for each fault of a table's metadata."""
    yield from (f"{key} is missing" for key in REQUIRED if key not in table)
    version = table.get("format-version")
    if version not in (1, 2, 3):
        yield f"format-version {version}"
    if version == 1:
        yield from check_copies(table)
    yield from check_nulls(table, version)
    if table["location"].endswith("/"):
        yield "the location ends in /"
    yield from check_layout(table)
    yield from check_properties(table)
    yield from check_snapshots(table, version)
    yield from check_refs(table, version)
    yield from check_logs(table)


def check_copies(table: dict[str, Any]) -> Iterator[str]:
    """Version 1 has its current schema and default spec twice."""
    schemas = {schema["schema-id"]: schema for schema in table["schemas"]}
    specs = {spec["spec-id"]: spec["fields"] for spec in table["partition-specs"]}
    if table.get("schema") != schemas.get(table["current-schema-id"]):
        yield "schema is not the current one"
    if table.get("partition-spec") != specs.get(table["default-spec-id"]):
        yield "partition-spec is not the default one"


def check_nulls(table: dict[str, Any], version: int) -> Iterator[str]:
    """Readers take a null in most places for a broken table."""
    for key, value in table.items():
        if value is None and not (key == "current-snapshot-id" and version == 3):
            yield f"{key} is null"
    for snapshot in table.get("snapshots", []):
        for key, value in snapshot.items():
            if value is None:
                yield f"snapshot {snapshot.get('snapshot-id')}: {key} is null"


def check_properties(table: dict[str, Any]) -> Iterator[str]:
    for key, value in table.get("properties", {}).items():
        if not isinstance(value, str):
            yield f"property {key} is no string"
        if key in RESERVED:
            yield f"property {key} is reserved"


# ---- schemas, specs, orders ----

def repeats(values: list[Any]) -> set[Any]:
    return {value for value in values if values.count(value) > 1} if len(set(values)) < len(values) else set()


def fields_of(type_: Any) -> Iterator[tuple[int, Any]]:
    """Field id and type of everything in a type, at any depth."""
    if not isinstance(type_, dict):
        return
    if type_["type"] == "struct":
        inside = [(field["id"], field["type"]) for field in type_["fields"]]
    elif type_["type"] == "list":
        inside = [(type_["element-id"], type_["element"])]
    else:
        inside = [(type_["key-id"], type_["key"]), (type_["value-id"], type_["value"])]
    for field_id, inner in inside:
        yield field_id, inner
        yield from fields_of(inner)


def check_layout(table: dict[str, Any]) -> Iterator[str]:
    for items, key, current in (("schemas", "schema-id", "current-schema-id"),
                                ("partition-specs", "spec-id", "default-spec-id"),
                                ("sort-orders", "order-id", "default-sort-order-id")):
        ids = [item.get(key) for item in table[items]]
        yield from (f"{key} {twice} stands twice" for twice in repeats(ids))
        if table[current] not in ids:
            yield f"{current} {table[current]} is not there"
    for schema in table["schemas"]:
        ids = [field_id for field_id, _ in fields_of(schema)]
        yield from (f"field id {twice} stands twice in schema {schema['schema-id']}" for twice in repeats(ids))
        if ids and not 1 <= min(ids) <= max(ids) <= table["last-column-id"]:
            yield f"field ids of schema {schema['schema-id']} reach from {min(ids)} to {max(ids)}"
    for order in table["sort-orders"]:
        if (order["order-id"] == 0) != (order["fields"] == []):
            yield f"sort order {order['order-id']} has {len(order['fields'])} fields"
    yield from check_specs(table)


def check_specs(table: dict[str, Any]) -> Iterator[str]:
    meaning: dict[int, tuple[Any, str]] = {}
    columns = {field["name"]: field["id"] for schema in table["schemas"] for field in schema["fields"]
               if schema["schema-id"] == table["current-schema-id"]}
    for spec in table["partition-specs"]:
        for field in spec["fields"]:
            field_id, what = field["field-id"], (field.get("source-id"), field["transform"])
            if not 1000 <= field_id <= table["last-partition-id"]:
                yield f"partition field id {field_id}, last-partition-id {table['last-partition-id']}"
            if "void" not in (what[1], meaning.setdefault(field_id, what)[1]) and meaning[field_id] != what:
                yield f"partition field id {field_id} has two meanings"
            if not TRANSFORM.fullmatch(field["transform"]):
                yield f"transform {field['transform']}"
        names = [field["name"] for field in spec["fields"]]
        yield from (f"partition name {twice} stands twice" for twice in repeats(names))
        if spec["spec-id"] == table["default-spec-id"]:
            for field in spec["fields"]:
                if field["name"] in columns and (field["transform"] != "identity" or
                                                 columns[field["name"]] != field.get("source-id")):
                    yield f"partition name {field['name']} is a column's"


# ---- snapshots, refs, logs ----

def check_snapshots(table: dict[str, Any], version: int) -> Iterator[str]:
    snapshots = table.get("snapshots", [])
    yield from (f"snapshot {twice} stands twice" for twice in repeats([s["snapshot-id"] for s in snapshots]))
    schemas = {schema["schema-id"] for schema in table["schemas"]}
    for snapshot in snapshots:
        name = f"snapshot {snapshot['snapshot-id']}"
        if snapshot.get("sequence-number", 0) > table["last-sequence-number"]:
            yield f"{name}: sequence number {snapshot['sequence-number']}, the last is {table['last-sequence-number']}"
        if not snapshot.get("manifest-list"):
            yield f"{name} has no manifest list"
        if snapshot.get("schema-id", table["current-schema-id"]) not in schemas:
            yield f"{name}: schema {snapshot['schema-id']} is not there"
        summary = snapshot.get("summary", {})
        if summary.get("operation") not in ("append", "replace", "overwrite", "delete"):
            yield f"{name}: operation {summary.get('operation')}"
        yield from (f"{name}: summary {key} is no string" for key, value in summary.items() if not isinstance(value, str))
    yield from check_row_ids(table, version)


def check_row_ids(table: dict[str, Any], version: int) -> Iterator[str]:
    if version < 3:
        if "next-row-id" in table:
            yield "next-row-id in version 2"
        return
    if not isinstance(table.get("next-row-id"), int):
        yield "next-row-id is missing"
        return
    ranges = []
    for snapshot in table.get("snapshots", []):
        if ("first-row-id" in snapshot) != ("added-rows" in snapshot):
            yield f"snapshot {snapshot['snapshot-id']} has one of first-row-id and added-rows"
        elif "first-row-id" in snapshot:
            ranges.append((snapshot["first-row-id"], snapshot["first-row-id"] + snapshot["added-rows"]))
    ranges.sort()
    if any(before[1] > after[0] for before, after in zip(ranges, ranges[1:])):
        yield "row ids of snapshots overlap"
    if ranges and ranges[-1][1] > table["next-row-id"]:
        yield f"next-row-id {table['next-row-id']} is below a snapshot's"


def check_refs(table: dict[str, Any], version: int) -> Iterator[str]:
    ids = {snapshot["snapshot-id"] for snapshot in table.get("snapshots", [])}
    refs, current = table.get("refs", {}), table.get("current-snapshot-id", "absent")
    for name, ref in refs.items():
        if ref["snapshot-id"] not in ids:
            yield f"ref {name} names snapshot {ref['snapshot-id']}, which is not there"
        if ref["type"] not in ("branch", "tag") or (name == "main" and ref["type"] != "branch"):
            yield f"ref {name} is a {ref['type']}"
    if "main" in refs:
        if refs["main"]["snapshot-id"] != current:
            yield f"main is {refs['main']['snapshot-id']}, the current snapshot {current}"
    elif current != (None if version == 3 else -1):
        yield f"there is no main, and the current snapshot is {current}"


def check_logs(table: dict[str, Any]) -> Iterator[str]:
    for name in ("snapshot-log", "metadata-log"):
        times = [entry["timestamp-ms"] for entry in table.get(name, [])]
        slack = MINUTE_MS if name == "snapshot-log" else 0  # a client's clock stamps its snapshots
        if any(after < before - slack for before, after in zip(times, times[1:])):
            yield f"{name} goes back in time"
        if times and table["last-updated-ms"] < times[-1] - slack:
            yield f"last-updated-ms is before the end of {name}"
    log = table.get("snapshot-log", [])
    if log and "main" in table.get("refs", {}) and log[-1]["snapshot-id"] != table["current-snapshot-id"]:
        yield "snapshot-log does not end with the current snapshot"
    most = int(table.get("properties", {}).get("write.metadata.previous-versions-max", "100"))
    if len(table.get("metadata-log", [])) > max(most, 1):
        yield f"metadata-log has {len(table['metadata-log'])} entries, {most} are wanted"
