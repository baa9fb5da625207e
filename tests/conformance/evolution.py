"""A table whose schema changes between two rolls, and what every reader must find in it by field ids."""
from __future__ import annotations

from typing import Any

from server import Server, reject_records
from type_values import Value

# As in type_values.
FOUND_V2: dict[str, list[Value]] = {
    "n": [0, 1, 2], "name": ["old", None, "new"], "big": [1, None, 2**53 + 1], "c": [{"ex": 5, "z": None}, None, {"ex": 6, "z": 8}],
    "gone": [None, None, "text"], "l": [[{"e": 1, "f": None}], [], [{"e": None, "f": 2}]]}
FOUND_V3 = FOUND_V2 | {"d": [7, 7, 9], "s": ["before", "before", "now"]}


def found(version: int) -> dict[str, list[Value]]:
    return FOUND_V3 if version == 3 else FOUND_V2


def table_of(version: int) -> str:
    return f"types.evolved_v{version}"


def field(id_: int, name: str, type_: Any, **more: Any) -> dict[str, Any]:
    return {"id": id_, "name": name, "type": type_, "required": False} | more


def evolve(server: Server, version: int) -> None:
    """Rows before and after: columns renamed, moved, promoted, dropped, added, added under a dropped one's name; in
    version 3 with defaults. A batch that was sent before and is rolled after is judged by the schema it meets."""
    name = table_of(version)
    server.make_table(name, {"n": "int required", "a": "string", "b": "int", "c": "struct<x: int, y: string>", "gone": "double",
                             "l": "list<struct<e: int>>"}, format_version=version)
    sink = server.make_sink(name, f"evolved_v{version}")
    assert server.send(sink, "first", [
        {"n": 0, "a": "old", "b": 1, "c": {"x": 5, "y": "dropped"}, "gone": 2.5, "l": [{"e": 1}]}, {"n": 1, "l": []}]).status == 202
    server.roll(sink)
    assert server.send(sink, "between", [{"n": 8, "a": "too late"}, {"n": 9, "gone": 1.5}]).status == 202
    change_schema(server, name, version)
    assert server.send(sink, "second", [
        {"n": 2, "name": "new", "big": 2**53 + 1, "c": {"ex": 6, "z": 8}, "gone": "text", "l": [{"f": 2}]}]).status == 202
    server.roll(sink)
    books = server.books(sink)
    assert (books["committed"], books["rejected"]) == (3, 2), books
    assert [(r["batch_id"], r["row"], r["column"], r["reason"]) for r in reject_records(server, sink)] == [
        ("between", 0, "a", "unknown_column"), ("between", 1, "gone", "wrong_type")]


def change_schema(server: Server, name: str, version: int) -> None:
    space, table = name.split(".")
    path = f"/iceberg/v1/{server.dev['warehouse']}/namespaces/{space}/tables/{table}"
    metadata = server.call("GET", path).json["metadata"]
    now = next(schema for schema in metadata["schemas"] if schema["schema-id"] == metadata["current-schema-id"])
    ids = {entry["name"]: entry for entry in now["fields"]}
    new = metadata["last-column-id"] + 1
    fields = [
        field(ids["b"]["id"], "big", "long"),
        ids["n"],
        field(ids["c"]["id"], "c", {"type": "struct", "fields": [
            field(new, "z", "long"), field(ids["c"]["type"]["fields"][0]["id"], "ex", "int")]}),
        field(ids["a"]["id"], "name", "string"),
        ids["__ingest_ts"],
        field(new + 1, "gone", "string"),
        field(ids["l"]["id"], "l", ids["l"]["type"] | {"element": {"type": "struct", "fields": [
            field(new + 2, "f", "int"), *ids["l"]["type"]["element"]["fields"]]}}),
    ]
    if version == 3:
        fields += [field(new + 3, "d", "int", **{"initial-default": 7, "write-default": 9}),
                   field(new + 4, "s", "string", required=True, **{"initial-default": "before", "write-default": "now"})]
    answer = server.call("POST", path, {"requirements": [], "updates": [
        {"action": "add-schema", "schema": {"type": "struct", "fields": fields}, "last-column-id": new + 4},
        {"action": "set-current-schema", "schema-id": -1}]})
    assert answer.status == 200, answer
