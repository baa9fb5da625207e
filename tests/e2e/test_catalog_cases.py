"""Cases of clients' past bugs that no other file shows; R<number>: tests/conformance/README.md lists them all."""
from __future__ import annotations

import http.client
import json
import re
from typing import Any

import pytest

from senders import ALL
from server import Server
from test_catalog_rest import SCHEMA, append, base, fresh, local_path, make_space, make_table, set_property
from test_catalog_views import make_view


@pytest.fixture(scope="module")
def space(server: Server) -> str:
    server.damaged = r"snap-\d+\.avro is gone$"  # commits of snapshots whose files nobody wrote
    return make_space(server, fresh("cases"))


@pytest.fixture(scope="module")
def rolled(server: Server, space: str) -> dict[str, Any]:
    """The metadata of a table after two rolls."""
    name = fresh()
    server.make_table(f"{space}.{name}", {"x": "long"})
    sink = server.make_sink(f"{space}.{name}", fresh())
    for i in range(2):
        assert server.send(sink, f"k{i}", [{"x": i}, {"x": i}]).status == 202
        server.roll(sink)
    return server.call("GET", f"{base(server)}/namespaces/{space}/tables/{name}").json["metadata"]


def test_07_snapshot_without_operation_is_read_and_never_written(server: Server, space: str, rolled: dict[str, Any]) -> None:
    """R7: old metadata has such snapshots; what we write, or take from others, always names it."""
    assert all(snapshot["summary"]["operation"] == "append" for snapshot in rolled["snapshots"])
    name = fresh()
    made = make_table(server, space, name)
    path = f"{base(server)}/namespaces/{space}/tables/{name}"
    request = append(made, 5, None, 1)
    del request["updates"][0]["snapshot"]["summary"]["operation"]
    assert server.call("POST", path, request).status == 400
    answer = server.call("POST", path, append(made, 5, None, 1)).json
    old = answer["metadata"]
    del old["snapshots"][0]["summary"]
    file = local_path(answer["metadata-location"]).with_name("old.metadata.json")
    file.write_text(json.dumps(old))
    again = server.call("POST", f"{base(server)}/namespaces/{space}/register",
                        {"name": f"{name}_old", "metadata-location": f"file://{file}"})
    assert again.status == 200 and "summary" not in again.json["metadata"]["snapshots"][0]
    assert server.call("DELETE", f"{base(server)}/namespaces/{space}/tables/{name}_old").status == 204


def test_08_summaries_have_the_totals(rolled: dict[str, Any]) -> None:
    """R8: Redshift reads no table without them."""
    totals = [{key: int(value) for key, value in snapshot["summary"].items() if key.startswith(("added-", "total-"))}
              for snapshot in rolled["snapshots"] if snapshot["summary"].get("added-records") == "2"]
    assert len(totals) == 2
    for i, summary in enumerate(totals, 1):
        assert summary["added-data-files"] == 1 and summary["added-files-size"] > 0
        assert summary["total-records"] == 2 * i and summary["total-data-files"] == i and summary["total-files-size"] > 0
        assert (summary["total-delete-files"], summary["total-position-deletes"], summary["total-equality-deletes"]) == (0, 0, 0)


def test_20_no_header_comes_twice(server: Server, space: str) -> None:
    """R20: a header that is repeated is signed, or read, wrongly."""
    name = fresh()
    make_table(server, space, name)
    for method, path in (("GET", "/iceberg/v1/config"), ("GET", f"{base(server)}/namespaces/{space}/tables/{name}"),
                         ("HEAD", f"{base(server)}/namespaces/{space}"), ("GET", f"{base(server)}/namespaces/none"),
                         ("PUT", f"{base(server)}/namespaces")):
        connection = http.client.HTTPConnection(*server.address)
        connection.request(method, path, None, {"Authorization": f"Bearer {server.dev['api_key']}"})
        response = connection.getresponse()
        names = [header.lower() for header, _ in response.getheaders()]
        response.read()
        connection.close()
        assert len(names) == len(set(names)), names


def test_40_snapshot_ids_of_ours_are_exact_in_a_double(server: Server, space: str, rolled: dict[str, Any]) -> None:
    """R40: readers in JavaScript; ids of others keep all of 63 bits."""
    assert all(0 < snapshot["snapshot-id"] < 2**53 for snapshot in rolled["snapshots"])
    name = fresh()
    made = make_table(server, space, name)
    answer = server.call("POST", f"{base(server)}/namespaces/{space}/tables/{name}", append(made, 2**63 - 1, None, 1))
    assert answer.json["metadata"]["current-snapshot-id"] == 2**63 - 1
    assert f'"current-snapshot-id":{2**63 - 1}'.encode() in answer.body


def test_44_a_table_that_was_made_is_there_for_everybody(server: Server) -> None:
    """R44: created, then "does not exist" on the write; with upper case, and in a namespace called default."""
    default = "default" if server.call("HEAD", f"{base(server)}/namespaces/default").status == 204 else make_space(server, "default")
    name = f"Upper{fresh()}"
    make_table(server, default, name)
    path = f"{base(server)}/namespaces/{default}/tables/{name}"
    assert server.call("HEAD", path).status == 204
    assert server.call("POST", path, set_property("a", "1")).status == 200
    assert server.call("HEAD", path.replace("Upper", "upper")).status == 404


def test_49_version_2_unless_asked(server: Server, space: str) -> None:
    """R49: readers refuse version 3 by policy."""
    assert make_table(server, space, fresh())["metadata"]["format-version"] == 2
    for version in (1, 2, 3):
        made = make_table(server, space, fresh(), properties={"format-version": str(version)})
        assert made["metadata"]["format-version"] == version and "format-version" not in made["metadata"]["properties"]


def test_51_what_we_make_ourselves_lies_one_level_deep(server: Server) -> None:
    """R51: engines that know no nested namespaces."""
    warehouse, namespace, _ = server.dev["demo"]["table"].split(".")
    listed = server.call("GET", f"{base(server)}/namespaces").json["namespaces"]
    assert warehouse == server.dev["warehouse"] and [namespace] in listed


def test_54_places_have_plain_letters_whatever_the_name(server: Server, space: str) -> None:
    """R54: names that a store or another catalog would refuse."""
    for name in ("Ünï çödé", "a/b", "q'\"", "100%"):
        for made in (make_table(server, space, name), make_view(server, space, f"{name} view")):
            end = made["metadata"]["location"].split(f"/{space}/", 1)[1]
            assert re.fullmatch(r"[A-Za-z0-9_.-]+", end) and not end.startswith("."), end


def test_staged_table_of_version_1_keeps_what_its_readers_want(server: Server, space: str) -> None:
    """Version 1 has its schema and spec a second time; an upgrade ends that."""
    name = fresh()
    make_table(server, space, name, properties={"format-version": "1"})
    path = f"{base(server)}/namespaces/{space}/tables/{name}"
    wider = {**SCHEMA, "fields": [*SCHEMA["fields"], {"id": 3, "name": "n", "required": False, "type": "int"}]}
    shown = server.call("POST", path, {"updates": [{"action": "add-schema", "schema": wider},
                                                   {"action": "set-current-schema", "schema-id": -1}]}).json["metadata"]
    assert [field["name"] for field in shown["schema"]["fields"]] == ["id", "text", "n"] and shown["partition-spec"] == []
    after = server.call("POST", path, {"updates": [{"action": "upgrade-format-version", "format-version": 2}]}).json["metadata"]
    assert "schema" not in after and "partition-spec" not in after and after["format-version"] == 2


def test_unregister_keeps_the_files_and_tells_where_they_are(server: Server, space: str) -> None:
    name = fresh()
    made = make_table(server, space, name)
    path = f"{base(server)}/namespaces/{space}/tables/{name}"
    answer = server.call("POST", f"{path}/unregister", {})
    assert (answer.status, answer.json) == (200, made)
    assert server.call("HEAD", path).status == 404 and local_path(made["metadata-location"]).exists()
    assert server.call("POST", f"{path}/unregister", {}).status == 404
    body = {"name": name, "metadata-location": made["metadata-location"]}
    assert server.call("POST", f"{base(server)}/namespaces/{space}/register", body).json == made


def test_local_tables_need_no_credentials(server: Server, space: str) -> None:
    name = fresh()
    make_table(server, space, name)
    path = f"{base(server)}/namespaces/{space}/tables/{name}/credentials"
    assert server.call("GET", path).json == {"storage-credentials": []}
    assert server.call("GET", path.replace(name, "none")).status == 404


def test_every_list_is_paged(server: Server) -> None:
    top = make_space(server, fresh())
    for i in range(5):
        make_space(server, top, f"s{i}")
        make_table(server, top, f"t{i}")
        make_view(server, top, f"v{i}")

    def all_of(path: str, member: str) -> list[Any]:
        found, token = [], ""
        while True:
            answer = server.call("GET", f"{base(server)}/{path}pageSize=2&pageToken={token}").json
            assert len(answer[member]) <= 2
            found += answer[member]
            token = answer.get("next-page-token")
            if token is None:
                return found
    assert all_of(f"namespaces?parent={top}&", "namespaces") == [[top, f"s{i}"] for i in range(5)]
    assert [i["name"] for i in all_of(f"namespaces/{top}/tables?", "identifiers")] == [f"t{i}" for i in range(5)]
    assert [i["name"] for i in all_of(f"namespaces/{top}/views?", "identifiers")] == [f"v{i}" for i in range(5)]


def test_a_replace_that_raced_a_roll_is_taken_and_sound(server: Server, space: str) -> None:
    """A client replaces the table that it read before the last roll: its sequence number is the roll's, too."""
    name = fresh()
    server.make_table(f"{space}.{name}", {"x": "long"})
    sink = server.make_sink(f"{space}.{name}", fresh())
    for i in range(2):
        assert server.send(sink, f"k{i}", [{"x": i}]).status == 202
        server.roll(sink)
    path = f"{base(server)}/namespaces/{space}/tables/{name}"
    made = server.call("GET", path).json
    last = made["metadata"]["snapshots"][-1]
    request = append(made, 77, None, last["sequence-number"])
    request["requirements"].pop()
    request["updates"][0]["snapshot"]["manifest-list"] = last["manifest-list"]
    assert server.call("POST", path, request).status == 409, "a snapshot without a parent is no replace"
    request["updates"].insert(0, {"action": "remove-snapshot-ref", "ref-name": "main"})
    after = server.call("POST", path, request)
    assert after.status == 200 and after.json["metadata"]["current-snapshot-id"] == 77, after
    assert after.json["metadata"]["last-sequence-number"] == last["sequence-number"]
    assert server.send(sink, "k2", [{"x": 2}]).status == 202
    server.roll(sink)
    report = server.call("POST", f"/v1/sinks/{sink['id']}/verify").json
    assert report["sound"], report
    assert server.call("DELETE", path).status == 204  # its snapshot 77 has another's manifests


def test_a_sink_takes_no_table_of_version_1(server: Server, space: str) -> None:
    name = fresh()
    make_table(server, space, name, properties={"format-version": "1"})
    answer = server.call("POST", "/v1/sinks", {"name": fresh(), "table": f"{space}.{name}", "warehouse": server.dev["warehouse"]})
    assert (answer.status, answer.code) == (409, "format_version_unsupported"), answer


@pytest.mark.skipif(not ALL, reason="takes long")
def test_11_what_is_too_large_to_answer_is_refused_before_it_is_applied(server: Server, space: str) -> None:
    """R10, R11: a commit that was applied is never called refused, and what was taken can be loaded."""
    name = fresh()
    made = make_table(server, space, name)
    path = f"{base(server)}/namespaces/{space}/tables/{name}"
    size, answers = 15 << 20, []
    for i in range(4):
        answers.append(server.call("POST", path, set_property(f"p{i}", "x" * size)).status)
    assert answers == [200, 200, 200, 400]
    loaded = server.call("GET", path)
    assert loaded.status == 200 and set(loaded.json["metadata"]["properties"]) >= {"p0", "p1", "p2"}
    large = loaded.json["metadata"]
    large["properties"] = {f"q{i}": "x" * size for i in range(5)}
    file = local_path(made["metadata-location"]).with_name("large.metadata.json")
    file.write_text(json.dumps(large))
    assert server.call("DELETE", path).status == 204
    answer = server.call("POST", f"{base(server)}/namespaces/{space}/register",
                         {"name": name, "metadata-location": f"file://{file}"})
    assert (answer.status, answer.json["error"]["message"]) == (500, "the answer is too large")
    assert server.call("HEAD", path).status == 204, "it is registered"
    assert server.call("POST", path, set_property("a", "1")).status == 400, "and surely not committed to"
    assert server.call("DELETE", path).status == 204
