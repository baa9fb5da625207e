"""PyIceberg, attached as `lhbox connect pyiceberg` says, on tables into which a sink rolls."""
from __future__ import annotations

from typing import Any, Callable

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.expressions import EqualTo, StartsWith
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform
from pyiceberg.types import LongType, NestedField, StringType

import connect
from rolling import FOREIGN, rolling, until_committed
from server import Server


@pytest.fixture(scope="module")
def catalog(server: Server) -> Any:
    return connect.pyiceberg(server)


def change(catalog: Any, table: str, action: Callable[[Any], Any]) -> Any:
    """The action on the table as it is now, again when a roll was faster."""
    return until_committed(lambda: action(catalog.load_table(f"demo.{table}")),
                           lambda error: isinstance(error, CommitFailedException))


def rows_for(table: Any, values: dict[str, int]) -> pa.Table:
    """Rows of the table's own schema: id and n, the rest null."""
    schema = table.schema().as_arrow()
    given = {"id": list(values), "n": list(values.values())}
    return pa.table({field.name: pa.array(given.get(field.name, [None] * len(values)), field.type) for field in schema},
                    schema=schema)


def foreign(catalog: Any, table: str) -> dict[str, int]:
    found = catalog.load_table(f"demo.{table}").scan(StartsWith("id", FOREIGN)).to_arrow().to_pydict()
    assert len(found["id"]) == len(set(found["id"]))
    return dict(zip(found["id"], found["n"]))


def test_append_delete_overwrite_and_upsert(catalog: Any, server: Server) -> None:
    with rolling(server, "py_rows") as load:
        change(catalog, "py_rows", lambda t: t.append(rows_for(t, {"foreign-a": 1, "foreign-b": 2, "foreign-c": 3})))
        load.rolled()
        change(catalog, "py_rows", lambda t: t.delete(EqualTo("id", "foreign-a")))
        load.rolled()
        change(catalog, "py_rows", lambda t: t.overwrite(rows_for(t, {"foreign-b": 20}), EqualTo("id", "foreign-b")))
        load.rolled()
        change(catalog, "py_rows", lambda t: t.upsert(rows_for(t, {"foreign-c": 30, "foreign-d": 40}), join_cols=["id"]))
        load.rolled()
    assert foreign(catalog, "py_rows") == {"foreign-b": 20, "foreign-c": 30, "foreign-d": 40}


def test_create_from_a_rolling_table(catalog: Any, server: Server) -> None:
    with rolling(server, "py_source") as load:
        found = catalog.load_table("demo.py_source").scan().to_arrow()
        made = catalog.create_table("demo.py_copy", found.schema)
        made.append(found)
        load.rolled()
    copied = catalog.load_table("demo.py_copy").scan().to_arrow()
    assert sorted(copied["id"].to_pylist()) == sorted(found["id"].to_pylist()) and copied.num_rows > 0


def test_schema_evolution(catalog: Any, server: Server) -> None:
    def add(table: Any) -> None:
        with table.update_schema() as update:
            update.add_column("note", StringType(), "what was seen")

    def rename(table: Any) -> None:
        with table.update_schema() as update:
            update.rename_column("note", "remark")
            update.move_first("note")

    def drop(table: Any) -> None:
        with table.update_schema() as update:
            update.delete_column("remark")

    with rolling(server, "py_schema") as load:
        for step in (add, rename, drop):
            change(catalog, "py_schema", step)
            load.rolled()
            change(catalog, "py_schema", lambda t: t.append(rows_for(t, {f"foreign-{step.__name__}": 1})))
            load.rolled()
    names = [field.name for field in catalog.load_table("demo.py_schema").schema().fields]
    assert names == ["id", "n", "__ingest_ts"]
    assert foreign(catalog, "py_schema") == {"foreign-add": 1, "foreign-rename": 1, "foreign-drop": 1}


def test_branches_and_tags(catalog: Any, server: Server) -> None:
    with rolling(server, "py_refs") as load:
        first = change(catalog, "py_refs", lambda t: t.manage_snapshots().create_tag(t.current_snapshot().snapshot_id, "first")
                       .create_branch(t.current_snapshot().snapshot_id, "side").commit() or t.current_snapshot().snapshot_id)
        load.rolled()
        change(catalog, "py_refs", lambda t: t.append(rows_for(t, {"foreign-side": 1}), branch="side"))
        load.rolled()
        table = catalog.load_table("demo.py_refs")
        assert set(table.refs()) == {"main", "first", "side"}
        assert table.refs()["first"].snapshot_id == first != table.refs()["main"].snapshot_id
        at_tag = table.scan(snapshot_id=first).to_arrow().num_rows
        assert table.scan().use_ref("side").to_arrow().num_rows == at_tag + 1
        change(catalog, "py_refs", lambda t: t.manage_snapshots().remove_tag("first").remove_branch("side").commit())
        load.rolled()
    assert set(catalog.load_table("demo.py_refs").refs()) == {"main"} and foreign(catalog, "py_refs") == {}


def test_expiry_of_the_sinks_snapshots(catalog: Any, server: Server) -> None:
    """Owners may expire what the sink committed: its own place in the table is no snapshot."""
    with rolling(server, "py_expired") as load:
        for _ in range(3):
            load.rolled()

        def expire(table: Any) -> None:
            old = [s.snapshot_id for s in table.snapshots() if s.snapshot_id != table.current_snapshot().snapshot_id]
            table.maintenance.expire_snapshots().by_ids(old).commit()

        change(catalog, "py_expired", expire)
        load.rolled()


def test_partition_evolution(catalog: Any, server: Server) -> None:
    """Of a version 3 table by parts of a timestamp, which a sink may write: each roll takes the spec that it meets."""
    def add(table: Any) -> None:
        with table.update_spec() as update:
            update.add_field("__ingest_ts", DayTransform(), "day")

    def drop(table: Any) -> None:
        with table.update_spec() as update:
            update.remove_field("day")

    with rolling(server, "py_evolved", format_version=3) as load:
        for step in (add, drop):
            change(catalog, "py_evolved", step)
            load.rolled()
            load.rolled()  # the first may have begun before the change
    table = catalog.load_table("demo.py_evolved")
    assert {0, 1} <= set(table.inspect.data_files()["spec_id"].to_pylist())


def test_partition_evolution_disables_the_sink_and_loses_nothing(catalog: Any, server: Server) -> None:
    """A version 2 table that becomes partitioned is none that a sink may write: it says so and keeps what it took."""
    server.make_table("demo.py_parted", {"id": "string required", "n": "long"})
    sink = server.make_sink("demo.py_parted", "py_parted_in", roll_seconds=3600)
    assert server.send(sink, "one", [{"id": "a", "n": 1}]).status == 202
    server.roll(sink)

    def spec(add: bool) -> Callable[[Any], None]:
        def evolve(table: Any) -> None:
            with table.update_spec() as update:
                update.add_identity("id") if add else update.remove_field("id")
        return evolve

    change(catalog, "py_parted", spec(add=True))
    change(catalog, "py_parted", lambda t: t.append(rows_for(t, {"foreign-a": 1})))
    assert server.send(sink, "two", [{"id": "b", "n": 2}]).status == 202
    server.call("POST", f"/v1/sinks/{sink['id']}/roll?wait=3")
    shown = server.call("GET", f"/v1/sinks/{sink['id']}").json
    assert (shown["state"], shown["state_reason"]) == ("disabled", "schema_unsupported"), shown
    assert server.books(sink)["pending"] == 1
    change(catalog, "py_parted", spec(add=False))
    assert server.call("PATCH", f"/v1/sinks/{sink['id']}", {}).status == 200
    server.roll(sink)
    assert sorted(catalog.load_table("demo.py_parted").scan().to_arrow()["id"].to_pylist()) == ["a", "b", "foreign-a"]


def test_a_transaction_of_several_changes(catalog: Any, server: Server) -> None:
    def several(table: Any) -> None:
        with table.transaction() as transaction:
            transaction.set_properties({"owner": "me"})
            transaction.append(rows_for(table, {"foreign-a": 1}))
            transaction.append(rows_for(table, {"foreign-b": 2}))

    with rolling(server, "py_several") as load:
        change(catalog, "py_several", several)
        load.rolled()
    assert foreign(catalog, "py_several") == {"foreign-a": 1, "foreign-b": 2}
    assert catalog.load_table("demo.py_several").properties["owner"] == "me"


def test_version_3_is_read_with_the_deletes_of_others(catalog: Any, server: Server, tmp_path: Any) -> None:
    """PyIceberg 0.12 reads version 3 and does not write it."""
    lake = connect.duckdb(server, tmp_path)
    with rolling(server, "py_three", format_version=3) as load:
        name = f"{server.dev['warehouse']}.demo.py_three"
        until_committed(lambda: lake.execute(f"INSERT INTO {name} (id, n) VALUES ('foreign-a', 1), ('foreign-b', 2)"),
                        lambda error: "conflict" in str(error).lower())
        load.rolled()
        until_committed(lambda: lake.execute(f"DELETE FROM {name} WHERE id = 'foreign-a'"),
                        lambda error: "conflict" in str(error).lower())
        load.rolled()
        assert foreign(catalog, "py_three") == {"foreign-b": 2}


def test_create_with_every_part(catalog: Any) -> None:
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.transforms import IdentityTransform
    schema = Schema(NestedField(1, "id", StringType(), required=True), NestedField(2, "n", LongType()))
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "id_part"))
    table = catalog.create_table("demo.py_created", schema, partition_spec=spec, properties={"owner": "me"})
    table.append(pa.table({"id": ["a", "b"], "n": [1, 2]},
                          schema=pa.schema([pa.field("id", pa.string(), False), pa.field("n", pa.int64())])))
    assert catalog.load_table("demo.py_created").scan(EqualTo("id", "b")).to_arrow().to_pydict() == {"id": ["b"], "n": [2]}
