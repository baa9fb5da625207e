"""Stock PyIceberg against the embedded catalog: create, append, evolve, load, drop."""
from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.exceptions import (CommitFailedException, NamespaceAlreadyExistsError, NamespaceNotEmptyError,
                                  NoSuchNamespaceError, NoSuchTableError, NoSuchViewError, TableAlreadyExistsError,
                                  ViewAlreadyExistsError)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType, TimestamptzType
from pyiceberg.view.metadata import ViewVersion

from server import Server, duckdb_attached, pyiceberg_catalog

SCHEMA = Schema(NestedField(5, "id", LongType(), required=False), NestedField(9, "text", StringType(), required=False),
                NestedField(11, "at", TimestamptzType(), required=False))
ROWS = pa.table({"id": [1, 2], "text": ["a", "b"], "at": pa.array([0, 1], pa.timestamp("us", "UTC"))})


@pytest.fixture(scope="module")
def catalog(server: Server) -> Any:
    catalog = pyiceberg_catalog(server)
    catalog.create_namespace("py")
    return catalog


def test_namespaces(catalog: Any) -> None:
    catalog.create_namespace(("py", "inner"), {"owner": "me"})
    assert ("py", "inner") in catalog.list_namespaces("py")
    assert catalog.list_namespaces(("py", "inner")) == []
    assert catalog.load_namespace_properties(("py", "inner")) == {"owner": "me"}
    changed = catalog.update_namespace_properties(("py", "inner"), {"owner"}, {"a": "1"})
    assert changed.removed == ["owner"] and changed.updated == ["a"]
    assert catalog.namespace_exists(("py", "inner")) and not catalog.namespace_exists("none")
    with pytest.raises(NamespaceAlreadyExistsError):
        catalog.create_namespace(("py", "inner"))
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace("py")
    catalog.drop_namespace(("py", "inner"))
    with pytest.raises(NoSuchNamespaceError):
        catalog.load_namespace_properties(("py", "inner"))


def test_create_append_scan_and_drop(catalog: Any) -> None:
    table = catalog.create_table("py.t", SCHEMA)
    assert [f.field_id for f in table.schema().fields] == [1, 2, 3]
    assert table.scan().to_arrow().num_rows == 0
    table.append(ROWS)
    table.append(ROWS)
    assert catalog.load_table("py.t").scan().to_arrow().num_rows == 4
    assert ("py", "t") in catalog.list_tables("py") and catalog.table_exists("py.t")
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table("py.t", SCHEMA)
    catalog.drop_table("py.t")
    assert not catalog.table_exists("py.t")
    with pytest.raises(NoSuchTableError):
        catalog.load_table("py.t")


def test_overwrite_delete_and_upsert(catalog: Any) -> None:
    table = catalog.create_table("py.changed", Schema(NestedField(1, "id", LongType(), required=True),
                                                      NestedField(2, "text", StringType()), identifier_field_ids=[1]))
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "text": ["a", "b", "c"]},
                    schema=pa.schema([pa.field("id", pa.int64(), False), pa.field("text", pa.string())]))
    table.append(rows)
    table.delete("id = 2")
    changed = rows.set_column(1, "text", pa.array(["x", "y", "z"]))
    table.upsert(changed)
    found = catalog.load_table("py.changed").scan().to_arrow().sort_by("id").to_pydict()
    assert found == {"id": [1, 2, 3], "text": ["x", "y", "z"]}
    table.overwrite(rows)
    assert catalog.load_table("py.changed").scan().to_arrow().num_rows == 3


def test_create_transaction_with_partitions_order_and_data(catalog: Any) -> None:
    spec = PartitionSpec(PartitionField(9, 1000, IdentityTransform(), "text_part"))
    order = SortOrder(SortField(5, IdentityTransform()))
    with catalog.create_table_transaction("py.staged", SCHEMA, partition_spec=spec, sort_order=order,
                                          properties={"a": "1"}) as transaction:
        transaction.append(ROWS)
    table = catalog.load_table("py.staged")
    assert table.spec().fields[0].name == "text_part" and table.sort_order().fields[0].source_id == 1
    assert table.scan().to_arrow().num_rows == 2 and table.properties["a"] == "1"


def test_schema_and_properties_change(catalog: Any) -> None:
    table = catalog.create_table("py.evolved", SCHEMA)
    table.append(ROWS)
    with table.update_schema() as update:
        update.add_column("more", LongType())
        update.rename_column("text", "words")
    with table.transaction() as transaction:
        transaction.set_properties({"a": "1", "b": "2"})
    with table.transaction() as transaction:
        transaction.remove_properties("b")
    again = catalog.load_table("py.evolved")
    assert [f.name for f in again.schema().fields] == ["id", "words", "at", "more"] and again.properties["a"] == "1"
    assert "b" not in again.properties
    assert again.scan().to_arrow().column("more").to_pylist() == [None, None]


def test_partition_evolution(catalog: Any) -> None:
    table = catalog.create_table("py.parted", SCHEMA)
    table.append(ROWS)
    with table.update_spec() as update:
        update.add_identity("text")
    table.append(ROWS)
    assert catalog.load_table("py.parted").scan().to_arrow().num_rows == 4


def test_stale_writers_lose_nothing(catalog: Any) -> None:
    catalog.create_table("py.raced", SCHEMA)
    winner, loser = catalog.load_table("py.raced"), catalog.load_table("py.raced")
    winner.append(ROWS)
    loser.append(ROWS)  # told that the base moved, it commits again on the new one
    assert catalog.load_table("py.raced").scan().to_arrow().num_rows == 4


def test_replaced_table_is_not_written(catalog: Any) -> None:
    old = catalog.create_table("py.replaced", SCHEMA)
    catalog.drop_table("py.replaced")
    catalog.create_table("py.replaced", SCHEMA)
    with pytest.raises((CommitFailedException, ValueError), match="UUID does not match"):
        old.append(ROWS)
    assert catalog.load_table("py.replaced").scan().to_arrow().num_rows == 0


def test_rename_and_register(catalog: Any) -> None:
    table = catalog.create_table("py.old", SCHEMA)
    catalog.rename_table("py.old", "py.new")
    assert catalog.load_table("py.new").metadata.table_uuid == table.metadata.table_uuid
    catalog.drop_table("py.new")
    again = catalog.register_table("py.back", table.metadata_location)
    assert again.metadata.table_uuid == table.metadata.table_uuid
    catalog.purge_table("py.back")
    with pytest.raises(NoSuchTableError):
        catalog.load_table("py.back")


def test_views(catalog: Any) -> None:
    version = ViewVersion.model_validate({
        "version-id": 1, "schema-id": 0, "timestamp-ms": 1790000000000, "summary": {}, "default-namespace": ["py"],
        "representations": [{"type": "sql", "sql": "SELECT 1 AS id", "dialect": "spark"}]})
    made = catalog.create_view("py.view", SCHEMA, version)
    assert catalog.list_views("py") == [("py", "view")] and ("py", "view") not in catalog.list_tables("py")
    loaded = catalog.load_view("py.view")
    assert loaded.metadata == made.metadata and loaded.metadata.versions[0].representations[0].root.sql == "SELECT 1 AS id"
    with pytest.raises(ViewAlreadyExistsError):
        catalog.create_view("py.view", SCHEMA, version)
    assert catalog.view_exists("py.view")
    catalog.drop_view("py.view")
    assert not catalog.view_exists("py.view")
    with pytest.raises(NoSuchViewError):
        catalog.drop_view("py.view")


def test_branches_tags_and_expiry(catalog: Any) -> None:
    table = catalog.create_table("py.tagged", SCHEMA)
    table.append(ROWS)
    first = table.current_snapshot().snapshot_id
    table.append(ROWS)
    table.manage_snapshots().create_tag(first, "first").create_branch(first, "side").commit()
    assert set(catalog.load_table("py.tagged").refs()) == {"main", "first", "side"}
    table.manage_snapshots().remove_tag("first").remove_branch("side").commit()
    table.maintenance.expire_snapshots().by_id(first).commit()
    assert len(catalog.load_table("py.tagged").snapshots()) == 1


def test_06_tables_are_read_alike_by_duckdb(server: Server, catalog: Any) -> None:
    catalog.create_table("py.both", SCHEMA)
    lake = duckdb_attached(server)
    name = f"{server.dev['warehouse']}.py.both"
    assert lake.execute(f"SELECT count(*) FROM {name}").fetchone() == (0,)
    catalog.load_table("py.both").append(ROWS)
    assert lake.execute(f"SELECT id, text FROM {name} ORDER BY id").fetchall() == [(1, "a"), (2, "b")]
    lake.execute(f"INSERT INTO {name} VALUES (3, 'c', NULL)")
    assert catalog.load_table("py.both").scan().to_arrow().num_rows == 3


def test_oauth_credential(server: Server) -> None:
    from pyiceberg.catalog import load_catalog
    catalog = load_catalog("oauth", type="rest", uri=f"{server.dev['url']}/iceberg", warehouse=server.dev["warehouse"],
                           credential=f"any:{server.dev['api_key']}")
    assert ("demo",) in catalog.list_namespaces()


def test_without_a_token_it_is_told(server: Server) -> None:
    from pyiceberg.catalog import load_catalog
    from pyiceberg.exceptions import UnauthorizedError
    with pytest.raises(UnauthorizedError):
        load_catalog("none", type="rest", uri=f"{server.dev['url']}/iceberg", warehouse=server.dev["warehouse"])
