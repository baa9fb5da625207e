"""The catalog's REST face by plain HTTP: what each client's past bugs ask of a server, by their number in the guide."""
from __future__ import annotations

import base64
import http.client
import json
import threading
import urllib.parse
import uuid
from pathlib import Path
from typing import Any

import pytest

from server import Answer, Server

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": True, "type": "long"},
                                       {"id": 2, "name": "text", "required": False, "type": "string"}]}
SEP = "%1F"


def base(server: Server) -> str:
    return f"/iceberg/v1/{server.dev['warehouse']}"


def fresh(prefix: str = "n") -> str:
    return f"{prefix}{uuid.uuid4().hex[:10]}"


def make_space(server: Server, *parts: str, **properties: str) -> str:
    answer = server.call("POST", f"{base(server)}/namespaces", {"namespace": list(parts), "properties": properties})
    assert answer.status == 200, answer
    return SEP.join(urllib.parse.quote(p, safe="") for p in parts)


def make_table(server: Server, space: str, name: str, **more: Any) -> dict[str, Any]:
    answer = server.call("POST", f"{base(server)}/namespaces/{space}/tables", {"name": name, "schema": SCHEMA, **more})
    assert answer.status == 200, answer
    return answer.json


def refused(answer: Answer, status: int, kind: str, message: str = "") -> None:
    assert answer.status == status, answer
    error = answer.json["error"]
    assert error["type"] == kind and error["code"] == status and message in error["message"], error


def set_property(key: str, value: str, **more: Any) -> dict[str, Any]:
    return {"requirements": [], "updates": [{"action": "set-properties", "updates": {key: value}}], **more}


@pytest.fixture(scope="module")
def space(server: Server) -> str:
    server.damaged = r"snap-\d+\.avro is gone$"  # commits of snapshots whose files nobody wrote
    return make_space(server, fresh("space"))


def local_path(uri: str) -> Path:
    assert uri.startswith("file:///")
    return Path(uri[len("file://"):])


# ---- configuration, tokens ----

def test_01_config_has_both_maps_and_the_endpoints(server: Server) -> None:
    config = server.call("GET", f"/iceberg/v1/config?warehouse={server.dev['warehouse']}").json
    assert config["defaults"] == {} and config["overrides"] == {"prefix": server.dev["warehouse"]}
    for wanted in ("POST /v1/{prefix}/transactions/commit", "HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}",
                   "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}"):
        assert wanted in config["endpoints"]


def test_26_52_warehouse_is_a_name_its_place_empty_or_absent(server: Server, space: str) -> None:
    root = make_table(server, space, fresh())["metadata"]["location"].split("/tables/")[0] + "/tables"
    for query in ("", "?warehouse=", f"?warehouse={server.dev['warehouse']}", "?warehouse=" + urllib.parse.quote(root, safe="")):
        assert server.call("GET", f"/iceberg/v1/config{query}").status == 200, query
    refused(server.call("GET", "/iceberg/v1/config?warehouse=/no/such/place"), 404, "NoSuchWarehouseException",
            server.dev["warehouse"])


def test_a_path_without_prefix_is_the_only_warehouse(server: Server) -> None:
    assert server.call("GET", "/iceberg/v1/namespaces").json == server.call("GET", f"{base(server)}/namespaces").json
    refused(server.call("GET", "/iceberg/v1/nowhere/namespaces"), 404, "NoSuchWarehouseException")


def token(server: Server, form: dict[str, str], headers: dict[str, str] | None = None) -> Answer:
    return server.call("POST", "/iceberg/v1/oauth/tokens", urllib.parse.urlencode(form).encode(), "",
                       {"Content-Type": "application/x-www-form-urlencoded", **(headers or {})})


def test_token_for_a_key_in_the_form_or_by_basic(server: Server) -> None:
    key = server.dev["api_key"]
    form = token(server, {"grant_type": "client_credentials", "client_id": "any", "client_secret": key,
                          "scope": "PRINCIPAL_ROLE:ALL"})
    pair = base64.b64encode(f"any:{key}".encode()).decode()
    basic = token(server, {"grant_type": "client_credentials", "scope": "catalog"}, {"Authorization": f"Basic {pair}"})
    for answer in (form, basic):
        assert answer.status == 200, answer
        assert answer.json["token_type"] == "bearer" and answer.json["expires_in"] > 0
        assert answer.json["issued_token_type"] == "urn:ietf:params:oauth:token-type:access_token"
        assert answer.headers["cache-control"] == "no-store"
        assert server.call("GET", f"{base(server)}/namespaces", key=answer.json["access_token"]).status == 200


def test_45_token_exchange_of_a_key(server: Server) -> None:
    answer = token(server, {"grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
                            "subject_token": server.dev["api_key"],
                            "subject_token_type": "urn:ietf:params:oauth:token-type:access_token"})
    assert answer.status == 200, answer
    again = token(server, {"grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
                           "subject_token": answer.json["access_token"],
                           "subject_token_type": "urn:ietf:params:oauth:token-type:access_token"})
    assert again.status == 200, again
    assert server.call("GET", f"{base(server)}/namespaces", key=again.json["access_token"]).status == 200


def test_45_an_exchange_for_anything_else_is_refused(server: Server) -> None:
    exchange = {"grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
                "subject_token_type": "urn:ietf:params:oauth:token-type:access_token"}
    for form in ({"subject_token": "eyJhbGciOiJub25lIn0.e30."}, {},
                 {"subject_token": server.dev["api_key"], "actor_token": "x"},
                 {"subject_token": server.dev["api_key"], "requested_token_type": "urn:ietf:params:oauth:token-type:id_token"}):
        answer = token(server, exchange | form)
        assert (answer.status, answer.json["error"]) == (400, "invalid_request"), answer
        assert "exchange" in answer.json["error_description"], answer


def test_token_errors_have_the_oauth_shape(server: Server) -> None:
    wrong = token(server, {"grant_type": "client_credentials", "client_secret": "al_key_wrong"})
    assert (wrong.status, wrong.json["error"]) == (401, "invalid_client") and wrong.json["error_description"]
    assert (a := token(server, {"grant_type": "password"})).status == 400 and a.json["error"] == "unsupported_grant_type"
    assert (a := token(server, {})).status == 400 and a.json["error"] == "invalid_request"
    assert server.call("POST", "/iceberg/v1/oauth/tokens?client_secret=x", b"grant_type=client_credentials", "").status == 400
    refused(server.call("GET", "/iceberg/v1/oauth/tokens", key=""), 405, "UnsupportedOperationException")


def test_no_key_is_401_in_the_catalogs_form(server: Server) -> None:
    for key in ("", "None", "al_key_wrong"):
        answer = server.call("GET", f"{base(server)}/namespaces", key=key)
        refused(answer, 401, "NotAuthorizedException")
        assert answer.headers["www-authenticate"] == "Bearer"


def test_a_send_key_gets_send_only(server: Server) -> None:
    key = server.dev["demo"]["send_key"]
    for method, path in (("GET", f"{base(server)}/namespaces"), ("POST", f"{base(server)}/transactions/commit"),
                         ("GET", "/iceberg/v1/config"), ("POST", "/iceberg/v1/oauth/tokens")):
        refused(server.call(method, path, {} if method == "POST" else None, key), 403, "ForbiddenException", "send_only")
    refused(token(server, {"grant_type": "client_credentials", "client_secret": key}), 403, "ForbiddenException", "send_only")


# ---- errors ----

def test_30_every_error_has_the_wrapper(server: Server) -> None:
    refused(server.call("GET", "/iceberg/v2/config"), 404, "NotFoundException")
    refused(server.call("GET", f"{base(server)}/nothing"), 404, "NotFoundException")
    answer = server.call("PUT", f"{base(server)}/namespaces", {})
    refused(answer, 405, "UnsupportedOperationException")
    assert set(answer.headers["allow"].split(", ")) == {"GET", "POST"}
    refused(server.call("POST", f"{base(server)}/namespaces", b"{not json"), 400, "BadRequestException")
    refused(server.call("POST", f"{base(server)}/namespaces", b"[]"), 400, "BadRequestException")
    refused(server.call("POST", f"{base(server)}/namespaces", {"namespace": []}), 400, "BadRequestException")
    refused(server.call("GET", f"{base(server)}/namespaces?pageSize=0"), 400, "BadRequestException")
    refused(server.call("GET", f"{base(server)}/namespaces?pageToken=%25%25"), 400, "BadRequestException")


def test_37_missing_things_are_404_with_their_type(server: Server, space: str) -> None:
    refused(server.call("GET", f"{base(server)}/namespaces/{space}/tables/none"), 404, "NoSuchTableException",
            f"Table does not exist: {space}.none")
    refused(server.call("GET", f"{base(server)}/namespaces/none"), 404, "NoSuchNamespaceException",
            "Namespace does not exist: none")
    refused(server.call("GET", f"{base(server)}/namespaces/none/tables"), 404, "NoSuchNamespaceException")
    refused(server.call("POST", f"{base(server)}/namespaces/none/tables", {"name": "t", "schema": SCHEMA}), 404,
            "NoSuchNamespaceException")
    refused(server.call("DELETE", f"{base(server)}/namespaces/{space}/tables/none"), 404, "NoSuchTableException")
    refused(server.call("POST", f"{base(server)}/namespaces/{space}/tables/none", set_property("a", "1")), 404,
            "NoSuchTableException")


def test_42_empty_namespace_in_the_path_is_400(server: Server) -> None:
    refused(server.call("GET", f"{base(server)}/namespaces//tables"), 400, "BadRequestException", "namespace")


# ---- namespaces ----

def test_12_13_21_nested_namespaces_by_the_default_separator(server: Server) -> None:
    top = fresh()
    nested = make_space(server, top, "b c", "d.é")
    assert server.call("HEAD", f"{base(server)}/namespaces/{nested}").status == 204
    answer = server.call("GET", f"{base(server)}/namespaces/{nested}")
    assert answer.json["namespace"] == [top, "b c", "d.é"] and answer.json["properties"] == {}
    assert server.call("HEAD", f"{base(server)}/namespaces/{top}{SEP}none").status == 404
    make_table(server, nested, "t")
    assert server.call("HEAD", f"{base(server)}/namespaces/{nested}/tables/t").status == 204
    plus = nested.replace("%20", "+")
    assert server.call("HEAD", f"{base(server)}/namespaces/{plus}").status == 204


def test_24_25_28_parent_lists_direct_children_by_full_path(server: Server) -> None:
    top = fresh()
    make_space(server, top, "b", "c")
    make_space(server, top, "d")

    def children(*parts: str) -> Any:
        return server.call("GET", f"{base(server)}/namespaces?pageToken=&parent={SEP.join(parts)}").json
    assert children(top) == {"namespaces": [[top, "b"], [top, "d"]]}
    assert children(top, "b") == {"namespaces": [[top, "b", "c"]]}
    assert children(top, "b", "c") == {"namespaces": []}
    assert [top] in server.call("GET", f"{base(server)}/namespaces").json["namespaces"]
    refused(server.call("GET", f"{base(server)}/namespaces?parent=none"), 404, "NoSuchNamespaceException")


def test_43_racing_creates_of_a_namespace_get_one_200_and_409s(server: Server) -> None:
    name, statuses = fresh(), []
    threads = [threading.Thread(target=lambda: statuses.append(server.call(
        "POST", f"{base(server)}/namespaces", {"namespace": [name]}).status)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200] + [409] * 7
    refused(server.call("POST", f"{base(server)}/namespaces", {"namespace": [name]}), 409, "AlreadyExistsException",
            f"Namespace already exists: {name}")


def test_namespace_properties(server: Server) -> None:
    name = fresh()
    make_space(server, name, a="1", b="2")
    path = f"{base(server)}/namespaces/{name}/properties"
    answer = server.call("POST", path, {"removals": ["a", "z"], "updates": {"b": "3"}})
    assert answer.json == {"updated": ["b"], "removed": ["a"], "missing": ["z"]}
    assert server.call("GET", f"{base(server)}/namespaces/{name}").json["properties"] == {"b": "3"}
    refused(server.call("POST", path, {"removals": ["b"], "updates": {"b": "4"}}), 422, "UnprocessableEntityException")


def test_namespace_that_is_not_empty_is_409(server: Server) -> None:
    name = fresh()
    make_space(server, name)
    make_table(server, name, "t")
    refused(server.call("DELETE", f"{base(server)}/namespaces/{name}"), 409, "NamespaceNotEmptyException", "is not empty")
    assert server.call("DELETE", f"{base(server)}/namespaces/{name}/tables/t").status == 204
    assert server.call("DELETE", f"{base(server)}/namespaces/{name}").status == 204
    refused(server.call("DELETE", f"{base(server)}/namespaces/{name}"), 404, "NoSuchNamespaceException")


def test_lists_come_in_pages_when_asked(server: Server) -> None:
    name = fresh()
    make_space(server, name)
    for i in range(5):
        make_table(server, name, f"t{i}")
    path, found, page = f"{base(server)}/namespaces/{name}/tables", [], ""
    while True:
        answer = server.call("GET", f"{path}?pageSize=2&pageToken={page}").json
        assert len(answer["identifiers"]) <= 2
        found += [i["name"] for i in answer["identifiers"]]
        page = answer.get("next-page-token", "")
        if not page:
            break
    assert found == [f"t{i}" for i in range(5)]
    assert len(server.call("GET", path).json["identifiers"]) == 5


# ---- tables ----

def test_06_09_15_38_41_an_empty_table_is_canonical(server: Server, space: str) -> None:
    name = fresh()
    made = make_table(server, space, name)
    loaded = server.call("GET", f"{base(server)}/namespaces/{space}/tables/{name}").json
    assert loaded == made and set(loaded) == {"metadata-location", "metadata"}
    metadata = loaded["metadata"]
    assert metadata["current-snapshot-id"] == -1 and metadata["snapshots"] == [] and metadata["refs"] == {}
    assert metadata["snapshot-log"] == [] and metadata["metadata-log"] == [] and "properties" in metadata
    assert metadata["current-schema-id"] == 0 and metadata["default-spec-id"] == 0 and metadata["format-version"] == 2
    assert json.loads(local_path(loaded["metadata-location"]).read_bytes())["table-uuid"] == metadata["table-uuid"]


def test_33_locations_are_file_uris_with_three_slashes(server: Server, space: str) -> None:
    made = make_table(server, space, fresh())
    assert made["metadata-location"].startswith("file:///") and made["metadata"]["location"].startswith("file:///")


def test_04_39_staged_create_stores_nothing_and_makes_the_directories(server: Server, space: str) -> None:
    name = fresh()
    staged = make_table(server, space, name, **{"stage-create": True})
    assert "metadata-location" not in staged
    place = local_path(staged["metadata"]["location"])
    assert (place / "metadata").is_dir() and (place / "data").is_dir() and not list(place.rglob("*.json"))
    refused(server.call("GET", f"{base(server)}/namespaces/{space}/tables/{name}"), 404, "NoSuchTableException")


def test_14_metadata_table_probes_are_404_and_a_table_may_be_named_so(server: Server, space: str) -> None:
    make_table(server, space, "t14")
    for probe in ("snapshots", "files", "history"):
        refused(server.call("GET", f"{base(server)}/namespaces/{space}{SEP}t14/tables/{probe}"), 404, "NoSuchTableException")
    make_table(server, space, "files")
    assert server.call("HEAD", f"{base(server)}/namespaces/{space}/tables/files").status == 204


def test_17_18_head_is_204_without_a_body(server: Server, space: str) -> None:
    name = fresh()
    make_table(server, space, name)
    for path in (f"/namespaces/{space}", f"/namespaces/{space}/tables/{name}"):
        answer = server.call("HEAD", base(server) + path)
        assert (answer.status, answer.body) == (204, b"")
        assert server.call("HEAD", base(server) + path + "x").status == 404


def test_31_32_views_are_an_empty_list_beside_the_tables(server: Server, space: str) -> None:
    assert server.call("GET", f"{base(server)}/namespaces/{space}/views").json == {"identifiers": []}
    refused(server.call("GET", f"{base(server)}/namespaces/{space}/views/v"), 404, "NoSuchViewException",
            f"View does not exist: {space}.v")


def test_etag_and_if_none_match(server: Server, space: str) -> None:
    name = fresh()
    make_table(server, space, name)
    path = f"{base(server)}/namespaces/{space}/tables/{name}"
    tag = server.call("GET", path).headers["etag"]
    refs = server.call("GET", f"{path}?snapshots=refs").headers["etag"]
    assert tag != refs
    for sent in (tag, f"W/{tag}", tag.strip('"'), f'"other", {tag}'):
        answer = server.call("GET", path, headers={"If-None-Match": sent})
        assert (answer.status, answer.body) == (304, b""), sent
    assert server.call("GET", path, headers={"If-None-Match": refs}).status == 200
    assert server.call("POST", path, set_property("a", "1")).status == 200
    assert server.call("GET", path, headers={"If-None-Match": tag}).status == 200
    refused(server.call("GET", f"{path}?snapshots=some"), 400, "BadRequestException")


def test_snapshots_refs_shows_the_referenced_only(server: Server, space: str) -> None:
    name = fresh()
    made = make_table(server, space, name)
    path = f"{base(server)}/namespaces/{space}/tables/{name}"
    for request in (append(made, 5, None, 1), append(made, 6, 5, 2)):
        assert (answer := server.call("POST", path, request)).status == 200, answer
    shown = server.call("GET", f"{path}?snapshots=refs").json["metadata"]
    assert [s["snapshot-id"] for s in shown["snapshots"]] == [6] and len(shown["snapshot-log"]) == 2
    assert len(server.call("GET", f"{path}?snapshots=all").json["metadata"]["snapshots"]) == 2


def test_36_lost_metadata_file_is_404_and_the_name_can_be_freed(server: Server, space: str) -> None:
    name = fresh()
    made = make_table(server, space, name)
    path = f"{base(server)}/namespaces/{space}/tables/{name}"
    file = local_path(made["metadata-location"])
    saved = file.with_name("saved.metadata.json")
    file.rename(saved)
    refused(server.call("GET", path), 404, "NotFoundException",
            f"Failed to open input stream for file: {made['metadata-location']}")
    body = {"name": name, "metadata-location": f"file://{saved}"}
    refused(server.call("POST", f"{base(server)}/namespaces/{space}/register", body), 409, "AlreadyExistsException")
    answer = server.call("POST", f"{base(server)}/namespaces/{space}/register", {**body, "overwrite": True})
    assert answer.status == 200 and answer.json["metadata"]["table-uuid"] == made["metadata"]["table-uuid"]
    saved.unlink()
    assert server.call("DELETE", path).status == 204
    make_table(server, space, name)


def test_47_register_refuses_what_cannot_be_read(server: Server, space: str) -> None:
    path = f"{base(server)}/namespaces/{space}/register"
    for place in ("s3://bucket/x.metadata.json", "file:///etc/passwd", "gs://b/x.json"):
        refused(server.call("POST", path, {"name": fresh(), "metadata-location": place}), 403, "ForbiddenException")
    made = make_table(server, space, fresh())
    no_metadata = local_path(made["metadata-location"]).with_name("no.metadata.json")
    no_metadata.write_text('{"format-version": 2}')
    refused(server.call("POST", path, {"name": fresh(), "metadata-location": f"file://{no_metadata}"}), 400,
            "BadRequestException")
    place = made["metadata"]["location"] + "/metadata/none.metadata.json"
    refused(server.call("POST", path, {"name": fresh(), "metadata-location": place}), 404, "NotFoundException")


def test_locations_outside_the_warehouse_are_403(server: Server, space: str) -> None:
    path = f"{base(server)}/namespaces/{space}/tables"
    refused(server.call("POST", path, {"name": fresh(), "schema": SCHEMA, "location": "file:///tmp/outside"}), 403,
            "ForbiddenException")


def test_05_drop_takes_both_values_of_purge(server: Server, space: str) -> None:
    for flag, left in (("false", True), ("False", True), ("true", False), ("True", False)):
        name = fresh()
        file = local_path(make_table(server, space, name)["metadata-location"])
        path = f"{base(server)}/namespaces/{space}/tables/{name}"
        assert server.call("DELETE", f"{path}?purgeRequested={flag}").status == 204
        assert file.exists() == left, flag
        refused(server.call("DELETE", path), 404, "NoSuchTableException")


def test_table_of_a_sink_is_an_engines_to_drop(server: Server, space: str) -> None:
    name = fresh()
    server.make_table(f"{space}.{name}", {"x": "long"})
    sink = server.make_sink(f"{space}.{name}", fresh())
    assert server.send(sink, "k1", [{"x": 1}]).status == 202
    path = f"{base(server)}/namespaces/{space}/tables/{name}"
    assert server.call("DELETE", path).status == 204
    refused(server.call("GET", path), 404, "NoSuchTableException")
    shown = server.call("GET", f"/v1/sinks/{sink['id']}").json
    assert shown["books"]["difference"] == 0 and shown["books"]["accepted"] == 1, "what was accepted waits for the table"


def test_rename(server: Server, space: str) -> None:
    old, taken, other = fresh(), fresh(), make_space(server, fresh())
    made = make_table(server, space, old)
    make_table(server, space, taken)
    path = f"{base(server)}/tables/rename"

    def rename(source: tuple[str, str], destination: tuple[str, str]) -> Answer:
        return server.call("POST", path, {"source": {"namespace": [source[0]], "name": source[1]},
                                          "destination": {"namespace": [destination[0]], "name": destination[1]}})
    refused(rename((space, old), (space, taken)), 409, "AlreadyExistsException",
            f"Cannot rename {space}.{old} to {space}.{taken}. Table already exists")
    refused(rename((space, "none"), (space, fresh())), 404, "NoSuchTableException")
    refused(rename((space, old), ("none", old)), 404, "NoSuchNamespaceException")
    assert rename((space, old), (other, "new")).status == 204
    assert server.call("GET", f"{base(server)}/namespaces/{other}/tables/new").json["metadata"] == made["metadata"]
    refused(server.call("GET", f"{base(server)}/namespaces/{space}/tables/{old}"), 404, "NoSuchTableException")


def test_metrics_reports_are_taken(server: Server, space: str) -> None:
    name = fresh()
    make_table(server, space, name)
    path = f"{base(server)}/namespaces/{space}/tables/{name}/metrics"
    assert server.call("POST", path, {"report-type": "some-new-report"}).status == 204
    refused(server.call("POST", path.replace(name, "none"), {}), 404, "NoSuchTableException")


# ---- commits ----

def append(table: dict[str, Any], snapshot: int, parent: int | None, sequence: int) -> dict[str, Any]:
    """An append as DuckDB sends it, of a manifest list that nobody reads."""
    metadata = table["metadata"]
    described = {"snapshot-id": snapshot, "sequence-number": sequence, "timestamp-ms": metadata["last-updated-ms"] + sequence,
                 "manifest-list": f"{metadata['location']}/metadata/snap-{snapshot}.avro", "schema-id": 0,
                 "summary": {"operation": "append"}}
    if parent is not None:
        described["parent-snapshot-id"] = parent
    return {"requirements": [{"type": "assert-table-uuid", "uuid": metadata["table-uuid"]},
                             {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": parent}],
            "updates": [{"action": "add-snapshot", "snapshot": described},
                        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": snapshot}]}


def test_commit_answers_the_new_table(server: Server, space: str) -> None:
    name = fresh()
    made = make_table(server, space, name)
    path = f"{base(server)}/namespaces/{space}/tables/{name}"
    answer = server.call("POST", path, append(made, 2**53 + 1, None, 1))
    assert answer.status == 200 and answer.json["metadata-location"] != made["metadata-location"]
    assert answer.json["metadata"]["current-snapshot-id"] == 2**53 + 1
    assert answer.headers["etag"] == server.call("GET", path).headers["etag"]


def test_16_48_what_is_asserted_is_checked(server: Server, space: str) -> None:
    name = fresh()
    made = make_table(server, space, name)
    path = f"{base(server)}/namespaces/{space}/tables/{name}"
    assert server.call("POST", path, append(made, 1, None, 1)).status == 200
    refused(server.call("POST", path, append(made, 2, None, 2)), 409, "CommitFailedException", "Requirement failed")
    other = {"requirements": [{"type": "assert-table-uuid", "uuid": str(uuid.uuid4())}], "updates": []}
    refused(server.call("POST", path, other), 409, "CommitFailedException", "Requirement failed: UUID does not match")
    refused(server.call("POST", path, append(made, 3, 1, 1)), 409, "CommitFailedException")
    refused(server.call("POST", path, {"updates": [{"action": "no-such-thing"}]}), 400, "BadRequestException", "no-such-thing")
    refused(server.call("POST", path, {"requirements": [{"type": "assert-mood"}], "updates": []}), 400,
            "BadRequestException", "assert-mood")


def test_16_29_commit_sent_again_is_a_success(server: Server, space: str) -> None:
    name = fresh()
    made = make_table(server, space, name)
    path = f"{base(server)}/namespaces/{space}/tables/{name}"
    first = append(made, 1, None, 1)
    assert server.call("POST", path, first).status == 200
    again = server.call("POST", path, first)
    assert again.status == 200 and len(again.json["metadata"]["snapshots"]) == 1
    change = {"identifier": {"namespace": [space], "name": name}, **first}
    assert server.call("POST", f"{base(server)}/transactions/commit", {"table-changes": [change]}).status == 204


def test_transaction_is_all_or_nothing(server: Server, space: str) -> None:
    """iceberg_8_6_91: what one part of it refuses, no part has done."""
    names = [fresh(), fresh()]
    for name in names:
        make_table(server, space, name)
    bad = {"requirements": [{"type": "assert-current-schema-id", "current-schema-id": 9}], "updates": []}

    def changes(*requests: dict[str, Any]) -> dict[str, Any]:
        return {"table-changes": [{"identifier": {"namespace": [space], "name": name}, **request}
                                  for name, request in zip(names, requests)]}

    def properties() -> list[Any]:
        return [server.call("GET", f"{base(server)}/namespaces/{space}/tables/{name}").json["metadata"]["properties"].get("a")
                for name in names]
    path = f"{base(server)}/transactions/commit"
    refused(server.call("POST", path, changes(set_property("a", "1"), {**set_property("a", "1"), **bad})), 409,
            "CommitFailedException")
    assert properties() == [None, None]
    answer = server.call("POST", path, changes(set_property("a", "1"), set_property("a", "2")))
    assert (answer.status, answer.body) == (204, b"")
    assert properties() == ["1", "2"]
    twice = changes(set_property("a", "3"))["table-changes"] * 2
    refused(server.call("POST", path, {"table-changes": twice}), 400, "BadRequestException", "twice")
    refused(server.call("POST", path, {"table-changes": [set_property("a", "3")]}), 400, "BadRequestException", "identifier")
    refused(server.call("POST", path, {"table-changes": []}), 400, "BadRequestException")


def test_racing_commits_lose_no_update(server: Server, space: str) -> None:
    name = fresh()
    make_table(server, space, name)
    path = f"{base(server)}/namespaces/{space}/tables/{name}"
    statuses: list[int] = []

    def work(who: int) -> None:
        for i in range(6):
            statuses.append(server.call("POST", path, set_property(f"{who}-{i}", "x")).status)
    threads = [threading.Thread(target=work, args=(who,)) for who in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [200] * 36
    properties = server.call("GET", path).json["metadata"]["properties"]
    assert all(f"{who}-{i}" in properties for who in range(6) for i in range(6))


def test_a_client_that_goes_away_leaves_a_whole_table(server: Server, space: str) -> None:
    """The connection is cut before the answer is read: the commit is there once, and a repeat finds it."""
    name = fresh()
    made = make_table(server, space, name)
    path = f"{base(server)}/namespaces/{space}/tables/{name}"
    request = append(made, 1, None, 1)
    connection = http.client.HTTPConnection(*server.address)
    connection.request("POST", path, json.dumps(request), {"Authorization": f"Bearer {server.dev['api_key']}"})
    connection.close()
    assert server.call("POST", path, request).status == 200
    assert len(server.call("GET", path).json["metadata"]["snapshots"]) == 1


def test_53_version_hint_follows_every_commit(server: Server, space: str) -> None:
    name = fresh()
    place = local_path(make_table(server, space, name)["metadata"]["location"])
    path = f"{base(server)}/namespaces/{space}/tables/{name}"
    for i in range(3):
        location = server.call("POST", path, set_property("a", str(i))).json["metadata-location"]
        hint = (place / "metadata" / "version-hint.text").read_text()
        assert location.endswith(f"/metadata/{hint}.metadata.json")


def test_names_of_all_kinds(server: Server, space: str) -> None:
    for name in ("Ünï çödé", "with space", "UPPER.and.dots", "a+b", "percent%41", "quote'\"", "x" * 200):
        made = make_table(server, space, name)
        path = f"{base(server)}/namespaces/{space}/tables/{urllib.parse.quote(name, safe='')}"
        assert server.call("GET", path).json["metadata"]["table-uuid"] == made["metadata"]["table-uuid"], name
        assert server.call("DELETE", f"{path}?purgeRequested=true").status == 204
    for name in ("", "/", "a\u0001b", "x" * 257):
        answer = server.call("POST", f"{base(server)}/namespaces/{space}/tables", {"name": name, "schema": SCHEMA})
        refused(answer, 400, "BadRequestException")
