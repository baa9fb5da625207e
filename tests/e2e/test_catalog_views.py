"""The catalog's views by plain HTTP; R<number>: the case of a client's past bug, see tests/conformance/README.md."""
from __future__ import annotations

import json
import threading
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from senders import failpoint_binary, run_until_killed
from server import Answer, Server
from test_catalog_rest import SCHEMA, SEP, base, fresh, local_path, make_space, make_table, refused


def version(sql: str = "SELECT 1", *, dialects: tuple[str, ...] = ("spark",), **more: Any) -> dict[str, Any]:
    return {"version-id": 1, "schema-id": 0, "timestamp-ms": 1790000000000, "summary": {"engine-name": "test"},
            "default-namespace": ["n"], "representations": [{"type": "sql", "sql": sql, "dialect": d} for d in dialects], **more}


def make_view(server: Server, space: str, name: str, sql: str = "SELECT 1", **more: Any) -> dict[str, Any]:
    answer = server.call("POST", f"{base(server)}/namespaces/{space}/views",
                         {"name": name, "schema": SCHEMA, "view-version": version(sql), "properties": {}, **more})
    assert answer.status == 200, answer
    return answer.json


def replace(sql: str, **more: Any) -> dict[str, Any]:
    return {"requirements": [], "updates": [{"action": "add-schema", "schema": SCHEMA},
                                            {"action": "add-view-version", "view-version": version(sql, **{"schema-id": -1, **more})},
                                            {"action": "set-current-view-version", "view-version-id": -1}]}


def properties(**updates: str) -> dict[str, Any]:
    return {"updates": [{"action": "set-properties", "updates": updates}]}


def path_of(server: Server, space: str, name: str) -> str:
    return f"{base(server)}/namespaces/{space}/views/{name}"


@pytest.fixture(scope="module")
def space(server: Server) -> str:
    return make_space(server, fresh("views"))


def test_view_is_made_loaded_replaced_and_dropped(server: Server, space: str) -> None:
    name = fresh("v")
    path = path_of(server, space, name)
    made = make_view(server, space, name)
    metadata = made["metadata"]
    assert (metadata["format-version"], metadata["current-version-id"]) == (1, 1)
    assert [s["schema-id"] for s in metadata["schemas"]] == [0]
    assert metadata["version-log"] == [{"timestamp-ms": 1790000000000, "version-id": 1}]
    assert json.loads(local_path(made["metadata-location"]).read_text()) == metadata
    assert server.call("GET", path).json == made
    head = server.call("HEAD", path)
    assert (head.status, head.body) == (204, b"")
    asserted = {**replace("SELECT 2"), "requirements": [{"type": "assert-view-uuid", "uuid": metadata["view-uuid"].upper()}]}
    after = server.call("POST", path, asserted)
    assert after.status == 200 and after.json["metadata-location"] != made["metadata-location"]
    shown = after.json["metadata"]
    assert (shown["current-version-id"], [v["version-id"] for v in shown["versions"]]) == (2, [1, 2])
    assert [e["version-id"] for e in shown["version-log"]] == [1, 2] and len(shown["schemas"]) == 1
    hint = local_path(shown["location"]) / "metadata" / "version-hint.text"
    assert after.json["metadata-location"].endswith(f"/metadata/{hint.read_text()}.metadata.json")
    assert server.call("DELETE", path).status == 204
    for method in ("GET", "DELETE"):
        refused(server.call(method, path), 404, "NoSuchViewException", f"View does not exist: {space}.{name}")
    assert server.call("HEAD", path).status == 404
    refused(server.call("POST", path, replace("SELECT 3")), 404, "NoSuchViewException")


def test_what_is_asserted_of_a_view_is_checked(server: Server, space: str) -> None:
    name = fresh("v")
    make_view(server, space, name)
    path = path_of(server, space, name)
    other = {**properties(a="1"), "requirements": [{"type": "assert-view-uuid", "uuid": str(uuid.uuid4())}]}
    refused(server.call("POST", path, other), 409, "CommitFailedException", "Requirement failed: view UUID does not match")
    unknown = {**properties(a="1"), "requirements": [{"type": "assert-mood"}]}
    refused(server.call("POST", path, unknown), 400, "IllegalArgumentException", "assert-mood")
    refused(server.call("POST", path, {"updates": [{"action": "add-snapshot"}]}), 400, "IllegalArgumentException", "add-snapshot")
    refused(server.call("POST", path, {}), 400, "IllegalArgumentException", "updates")
    assert server.call("GET", path).json["metadata"]["properties"] == {}


def test_23_view_without_properties(server: Server, space: str) -> None:
    """R23: Trino sends none."""
    answer = server.call("POST", f"{base(server)}/namespaces/{space}/views",
                         {"name": fresh("v"), "schema": SCHEMA, "view-version": version()})
    assert answer.status == 200 and answer.json["metadata"]["properties"] == {}


def test_31_32_views_stand_beside_tables_and_not_among_them(server: Server) -> None:
    """R31, R32: an empty list is 200; a view is no table."""
    space = make_space(server, fresh(), "inner")
    path = f"{base(server)}/namespaces/{space}"
    assert server.call("GET", f"{path}/views").json == {"identifiers": []}
    parts = space.split(SEP)
    for i in range(3):
        make_view(server, space, f"v{i}")
    make_table(server, space, "t")
    assert server.call("GET", f"{path}/tables").json == {"identifiers": [{"namespace": parts, "name": "t"}]}
    assert [i["name"] for i in server.call("GET", f"{path}/views?pageToken=").json["identifiers"]] == ["v0", "v1", "v2"]
    first = server.call("GET", f"{path}/views?pageSize=2").json
    rest = server.call("GET", f"{path}/views?pageSize=2&pageToken={first['next-page-token']}").json
    assert [i["name"] for i in first["identifiers"] + rest["identifiers"]] == ["v0", "v1", "v2"] and "next-page-token" not in rest
    refused(server.call("GET", f"{path}/tables/v0"), 404, "NoSuchTableException")
    refused(server.call("GET", f"{path}/views/t"), 404, "NoSuchViewException")
    refused(server.call("DELETE", path), 409, "NamespaceNotEmptyException", "is not empty")
    refused(server.call("GET", f"{base(server)}/namespaces/none/views"), 404, "NoSuchNamespaceException")


def test_a_name_is_a_tables_or_a_views(server: Server, space: str) -> None:
    table, view = fresh("t"), fresh("v")
    made = make_table(server, space, table)
    make_view(server, space, view)
    path = f"{base(server)}/namespaces/{space}"
    body = {"schema": SCHEMA, "view-version": version()}
    refused(server.call("POST", f"{path}/views", {"name": table, **body}), 409, "AlreadyExistsException",
            f"Table with same name already exists: {space}.{table}")
    refused(server.call("POST", f"{path}/views", {"name": view, **body}), 409, "AlreadyExistsException",
            f"View already exists: {space}.{view}")
    refused(server.call("POST", f"{path}/tables", {"name": view, "schema": SCHEMA}), 409, "AlreadyExistsException",
            f"View with same name already exists: {space}.{view}")
    create = {"requirements": [{"type": "assert-create"}], "updates": []}
    refused(server.call("POST", f"{path}/tables/{view}", create), 409, "AlreadyExistsException", "View with same name")
    refused(server.call("POST", f"{path}/register", {"name": view, "metadata-location": made["metadata-location"]}), 409,
            "AlreadyExistsException")

    def rename(what: str, source: str, target: str, into: str = space) -> Answer:
        return server.call("POST", f"{base(server)}/{what}/rename", {"source": {"namespace": [space], "name": source},
                                                                     "destination": {"namespace": [into], "name": target}})
    refused(rename("views", view, table), 409, "AlreadyExistsException",
            f"Cannot rename {space}.{view} to {space}.{table}. Table already exists")
    refused(rename("tables", table, view), 409, "AlreadyExistsException", "View already exists")
    refused(rename("views", table, fresh()), 404, "NoSuchViewException")
    refused(rename("views", view, view, "none"), 404, "NoSuchNamespaceException")
    other = make_space(server, fresh())
    before = server.call("GET", path_of(server, space, view)).json
    assert rename("views", view, "moved", other).status == 204
    assert server.call("GET", path_of(server, other, "moved")).json == before


def test_view_is_registered_and_pointed_elsewhere(server: Server, space: str) -> None:
    name, copy = fresh("v"), fresh("v")
    made = make_view(server, space, name)
    assert server.call("DELETE", path_of(server, space, name)).status == 204
    path = f"{base(server)}/namespaces/{space}/register-view"
    body = {"name": copy, "metadata-location": made["metadata-location"]}
    assert (answer := server.call("POST", path, body)).json == made, answer
    refused(server.call("POST", path, body), 409, "AlreadyExistsException")
    assert server.call("POST", path, {**body, "overwrite": True}).status == 200
    table = make_table(server, space, fresh())
    refused(server.call("POST", path, {"name": fresh(), "metadata-location": table["metadata-location"]}), 400,
            "BadRequestException", "format version")
    gone = made["metadata"]["location"] + "/metadata/none.metadata.json"
    refused(server.call("POST", path, {"name": fresh(), "metadata-location": gone}), 404, "NotFoundException",
            f"Failed to open input stream for file: {gone}")


def test_views_outside_the_warehouse_are_403(server: Server, space: str) -> None:
    name = fresh("v")
    body = {"name": name, "schema": SCHEMA, "view-version": version()}
    path = f"{base(server)}/namespaces/{space}"
    refused(server.call("POST", f"{path}/views", {**body, "location": "file:///tmp/outside"}), 403, "ForbiddenException")
    refused(server.call("POST", f"{path}/views", {**body, "properties": {"write.metadata.path": "/tmp/outside"}}), 403,
            "ForbiddenException")
    refused(server.call("POST", f"{path}/register-view", {"name": name, "metadata-location": "file:///etc/passwd"}), 403,
            "ForbiddenException")
    before = make_view(server, space, name)
    view = path_of(server, space, name)
    refused(server.call("POST", view, {"updates": [{"action": "set-location", "location": "s3://b/x"}]}), 403, "ForbiddenException")
    refused(server.call("POST", view, properties(**{"write.metadata.path": "file:/etc"})), 403, "ForbiddenException")
    assert server.call("GET", view).json == before


def test_old_versions_go_and_the_log_has_no_gap(server: Server, space: str) -> None:
    name = fresh("v")
    make_view(server, space, name)
    path = path_of(server, space, name)
    for i in range(2, 14):
        assert (answer := server.call("POST", path, replace(f"SELECT {i}"))).status == 200, answer
    shown = server.call("GET", path).json["metadata"]
    assert [v["version-id"] for v in shown["versions"]] == list(range(4, 14))
    assert [e["version-id"] for e in shown["version-log"]] == list(range(4, 14))
    back = {"updates": [{"action": "set-current-view-version", "view-version-id": 4}]}
    assert server.call("POST", path, back).json["metadata"]["current-version-id"] == 4
    fewer = server.call("POST", path, properties(**{"version.history.num-entries": "2"})).json["metadata"]
    assert [v["version-id"] for v in fewer["versions"]] == [4, 13], "the current one stays"
    assert [e["version-id"] for e in fewer["version-log"]] == [13, 4]
    refused(server.call("POST", path, properties(**{"version.history.num-entries": "0"})), 400, "IllegalArgumentException")


def test_dialects(server: Server, space: str) -> None:
    name = fresh("v")
    both = version(dialects=("spark", "trino"))
    path = path_of(server, space, name)
    twice = {"name": name, "schema": SCHEMA, "view-version": version(dialects=("spark", "SPARK"))}
    refused(server.call("POST", f"{base(server)}/namespaces/{space}/views", twice), 400, "IllegalArgumentException",
            "Cannot add multiple queries for dialect")
    make_view(server, space, name, **{"view-version": both})
    refused(server.call("POST", path, replace("SELECT 2")), 400, "IllegalArgumentException", "loss of view dialects")
    allowed = properties(**{"replace.drop-dialect.allowed": "true"})
    assert server.call("POST", path, {"updates": allowed["updates"] + replace("SELECT 2")["updates"]}).status == 200


def test_16_29_view_commit_sent_again_changes_nothing(server: Server, space: str) -> None:
    """R16, R29: the answer was lost, and the same commit comes again."""
    name = fresh("v")
    make_view(server, space, name)
    path = path_of(server, space, name)
    first = server.call("POST", path, replace("SELECT 2"))
    again = server.call("POST", path, replace("SELECT 2"))
    assert first.status == again.status == 200 and first.json == again.json


def test_racing_view_commits_lose_no_update(server: Server, space: str) -> None:
    name = fresh("v")
    make_view(server, space, name)
    path = path_of(server, space, name)
    statuses: list[int] = []
    threads = [threading.Thread(target=lambda who=who: statuses.extend(
        server.call("POST", path, properties(**{f"{who}-{i}": "x"})).status for i in range(6))) for who in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [200] * 36
    assert len(server.call("GET", path).json["metadata"]["properties"]) == 36


def test_36_lost_view_file_is_404_and_the_name_can_be_freed(server: Server, space: str) -> None:
    name = fresh("v")
    made = make_view(server, space, name)
    local_path(made["metadata-location"]).unlink()
    path = path_of(server, space, name)
    refused(server.call("GET", path), 404, "NotFoundException", "Failed to open input stream for file: ")
    assert server.call("DELETE", path).status == 204
    make_view(server, space, name)


def test_slashes_and_blanks_in_a_views_name(server: Server, space: str) -> None:
    for name, coded in (("a/b c", "a%2Fb+c"), ("a+b", "a+b"), ("x.y", "x.y"), ("ü/", "%C3%BC%2F")):
        made = make_view(server, space, name)
        assert server.call("GET", path_of(server, space, coded)).json == made, name


def metadata_files(view: dict[str, Any]) -> list[Path]:
    return sorted((local_path(view["metadata"]["location"]) / "metadata").glob("*.metadata.json"))


@pytest.mark.parametrize("point, landed", [("catalog_before_swap", False), ("catalog_after_swap", True),
                                           ("catalog_after_hint", True)])
def test_crash_in_a_view_commit_leaves_an_orphan_at_most(own_server: Server, point: str, landed: bool) -> None:
    """The file is written before the pointer moves: a crash leaves the view as it was, or as it was to be."""
    own_server.command = [failpoint_binary()]
    own_server.start()
    make_space(own_server, "views")
    made = make_view(own_server, "views", "v")
    path = path_of(own_server, "views", "v")
    own_server.kill()

    def send() -> None:
        try:
            own_server.call("POST", path, replace("SELECT 2"))
        except OSError:
            pass
        except Exception:  # however the connection ends
            pass
    assert run_until_killed(own_server, point, act=lambda: threading.Thread(target=send, daemon=True).start())
    own_server.start()
    shown = own_server.call("GET", path).json
    assert shown["metadata"]["current-version-id"] == (2 if landed else 1)
    assert (shown["metadata-location"] == made["metadata-location"]) != landed
    assert len(metadata_files(made)) == 2
    again = own_server.call("POST", path, replace("SELECT 2"))
    assert again.status == 200 and [v["version-id"] for v in again.json["metadata"]["versions"]] == [1, 2]
    deadline = time.monotonic() + 30
    hint = local_path(made["metadata"]["location"]) / "metadata" / "version-hint.text"
    while f"/{hint.read_text()}.metadata.json" not in again.json["metadata-location"]:
        assert time.monotonic() < deadline, hint.read_text()
        time.sleep(0.05)
