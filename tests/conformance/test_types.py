"""Every type, in every shape, in both format versions: what was sent is what PyIceberg and DuckDB read.

What they cannot read stands in LIMITS with what was seen, and is looked at, too: a reader that learns it fails the
test, and the limit goes.
"""
from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any, Iterator

import duckdb
import pyarrow.parquet
import pyiceberg
import pytest

from arrow_values import sorted_pairs, table_values
from server import Server, duckdb_attached, pyiceberg_catalog
from type_matrix import Limit, Section, differences, fill, page_shows, pair_name, pairs, sent_text, table_name
from type_values import CASES, Case, Value, columns
import variant_reader

PYICEBERG = Section(f"PyIceberg {pyiceberg.__version__}", "PyIceberg 0.12", {
    "variant": Limit("Unsupported field type: 'variant'",
                     "it cannot load the table's metadata: `Unsupported field type: 'variant'`"),
})
DUCKDB = Section(f"DuckDB {duckdb.__version__}", "DuckDB 1.5", {
    "timestamptz_ns": Limit("Unrecognized primitive type: timestamptz_ns",
                            "its Iceberg extension refuses the table: `Unrecognized primitive type: timestamptz_ns`"),
    "unknown": Limit("Unrecognized primitive type: unknown",
                     "its Iceberg extension refuses the table: `Unrecognized primitive type: unknown`"),
})


@pytest.fixture(scope="module")
def warned(server: Server) -> dict[str, list[str]]:
    return fill(server)


@pytest.fixture(scope="module")
def catalog(server: Server) -> Any:
    return pyiceberg_catalog(server)


@pytest.fixture(scope="module")
def lake(server: Server, warned: dict[str, list[str]]) -> Iterator[Any]:
    connection = duckdb_attached(server)
    connection.execute(f"USE {server.dev['warehouse']}.types")
    yield connection
    connection.close()


@pytest.mark.parametrize("pair", pairs(), ids=pair_name)
def test_pyiceberg_reads_what_was_sent(catalog: Any, warned: dict[str, list[str]], pair: tuple[int, Case]) -> None:
    version, case = pair

    def read(table: str, columns: list[str]) -> dict[str, list[Value]]:
        scan = catalog.load_table(table).scan(selected_fields=tuple(columns))
        return table_values(scan.to_arrow().sort_by("n"), case.kind)

    PYICEBERG.judge(version, case, read, warned)


def from_python(columns: list[str], rows: list[tuple[Any, ...]]) -> dict[str, list[Value]]:
    """Variants as DuckDB's Python client gives them, where a map is a dict."""
    def value(name: str, found: Any) -> Value:
        return sorted_pairs(found.items()) if name.startswith("map") and found is not None else found

    return {name: [value(name, numbers_exact(row[at])) for row in rows] for at, name in enumerate(columns)}


def numbers_exact(value: Any) -> Value:
    if isinstance(value, dict):
        return {name: numbers_exact(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [numbers_exact(inner) for inner in value]
    return Decimal(repr(value)) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


@pytest.mark.parametrize("pair", pairs(), ids=pair_name)
def test_duckdb_reads_what_was_sent(lake: Any, warned: dict[str, list[str]], pair: tuple[int, Case]) -> None:
    version, case = pair

    def read(table: str, columns: list[str]) -> dict[str, list[Value]]:
        named = ", ".join(f'"{name}"' for name in columns)
        found = lake.execute(f"SELECT {named} FROM {table.removeprefix('types.')} ORDER BY n")
        if case.kind == "variant":
            return from_python(columns, found.fetchall())
        return table_values(found.to_arrow_table(), case.kind)

    DUCKDB.judge(version, case, read, warned)


def test_iceberg_8_4_73_a_variant_is_unshredded(server: Server, warned: dict[str, list[str]]) -> None:
    """Each is two byte strings and nothing else, which an independent reader takes apart."""
    case = next(case for case in CASES if case.kind == "variant")
    place = server.call("GET", f"/v1/tables/{server.dev['warehouse']}.{table_name(3, case)}").json["location"]
    path, = Path(place.removeprefix("file://"), "data").glob("*.parquet")
    names = ["n", *columns(case)]
    got = {name: [parts_read(value) for value in column]
           for name, column in pyarrow.parquet.read_table(path, columns=names).to_pydict().items()}
    assert differences(case, [name for name in columns(case) if name != "n"], got) == []


def parts_read(value: Any) -> Value:
    """Nested values with each {metadata, value} replaced by what it means."""
    if isinstance(value, dict):
        if value.keys() == {"metadata", "value"}:
            return without_types(variant_reader.read(value["metadata"], value["value"]))
        return {name: parts_read(inner) for name, inner in value.items()}
    if isinstance(value, list):
        made = [parts_read(inner) for inner in value]
        return sorted_pairs(made) if value and isinstance(value[0], tuple) else made
    return tuple(parts_read(inner) for inner in value) if isinstance(value, tuple) else value


def without_types(value: Any) -> Value:
    if isinstance(value, dict):
        return {name: without_types(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [without_types(inner) for inner in value]
    return numbers_exact(value[1]) if isinstance(value, tuple) else value


@pytest.mark.parametrize("kind, captured", [("string", '{"b":{"c":[1, 2.50]},"d":null}'),
                                            ("variant", {"b": {"c": [1, Decimal("2.5")]}, "d": None})])
def test_unknown_names_are_captured(server: Server, kind: str, captured: Any) -> None:
    name = f"types.captured_in_{kind}"
    server.make_table(name, {"n": "int required", "rest": kind}, format_version=3)
    sink = server.make_sink(name, name.replace(".", "_"), unknown_fields="capture:rest")
    assert server.send(sink, "all", b'[{"n":0,"b":{"c":[1, 2.50]},"d":null},{"n":1}]').status == 202
    server.roll(sink)
    found = duckdb_attached(server).execute(f"SELECT rest FROM {server.dev['warehouse']}.{name} ORDER BY n").fetchall()
    assert found == [(captured,), (None,)]
    answer = server.call("POST", "/v1/sinks", {"name": "other", "table": name, "unknown_fields": "capture:n",
                                               "warehouse": server.dev["warehouse"]})
    assert answer.status in (400, 409), answer


def test_the_page_shows_what_was_seen() -> None:
    page_shows("sent", sent_text())
    page_shows("PyIceberg", PYICEBERG.text())
    page_shows("DuckDB", DUCKDB.text())
