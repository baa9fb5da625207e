"""Idempotency-Key on the catalog's routes: R29 of the guide's cases (tests/conformance/README.md)."""
from __future__ import annotations

import threading
import uuid
from typing import Any

import pytest

from senders import failpoint_binary, run_until_killed
from server import Answer, Server
from test_catalog_rest import SCHEMA, base, fresh, make_space, make_table, refused, set_property
from test_catalog_views import make_view, path_of, properties, version


def once(server: Server, method: str, path: str, body: Any = None, key: str | None = None) -> Answer:
    return server.call(method, path, body, headers={"Idempotency-Key": key or str(uuid.uuid4())})


@pytest.fixture(scope="module")
def space(server: Server) -> str:
    return make_space(server, fresh("once"))


def test_29_the_lifetime_is_told(server: Server) -> None:
    assert server.call("GET", "/iceberg/v1/config").json["idempotency-key-lifetime"] == "PT30M"


def test_29_a_repeat_of_each_request_has_no_effect_and_an_equal_answer(server: Server, space: str) -> None:
    top, place = fresh(), f"{base(server)}/namespaces"
    table, view = fresh("t"), fresh("v")
    for method, path, body in (
            ("POST", place, {"namespace": [top], "properties": {"a": "1"}}),
            ("POST", f"{place}/{top}/properties", {"updates": {"b": "2"}, "removals": ["a"]}),
            ("POST", f"{place}/{top}/tables", {"name": table, "schema": SCHEMA}),
            ("POST", f"{place}/{top}/tables/{table}", set_property("p", "1")),
            ("POST", f"{base(server)}/transactions/commit",
             {"table-changes": [{"identifier": {"namespace": [top], "name": table}, **set_property("p", "2")}]}),
            ("POST", f"{place}/{top}/views", {"name": view, "schema": SCHEMA, "view-version": version()}),
            ("POST", f"{place}/{top}/views/{view}", properties(p="1")),
            ("POST", f"{base(server)}/views/rename", {"source": {"namespace": [top], "name": view},
                                                      "destination": {"namespace": [top], "name": "w"}}),
            ("POST", f"{base(server)}/tables/rename", {"source": {"namespace": [top], "name": table},
                                                       "destination": {"namespace": [top], "name": "u"}}),
            ("DELETE", f"{place}/{top}/views/w", None),
            ("DELETE", f"{place}/{top}/tables/u", None),
            ("DELETE", f"{place}/{top}", None)):
        key = str(uuid.uuid4())
        first = once(server, method, path, body, key)
        assert first.status in (200, 204), (path, first)
        again = once(server, method, path, body, key)
        assert (again.status, again.json) == (first.status, first.json), (path, first, again)


def test_29_a_repeat_does_not_undo_what_came_after_it(server: Server, space: str) -> None:
    name, key = fresh(), str(uuid.uuid4())
    make_table(server, space, name)
    path = f"{base(server)}/namespaces/{space}/tables/{name}"
    assert once(server, "POST", path, set_property("p", "first"), key).status == 200
    assert server.call("POST", path, set_property("p", "second")).status == 200
    again = once(server, "POST", path, set_property("p", "first"), key)
    assert again.json["metadata"]["properties"]["p"] == "second", "the present table is the answer"
    drop = str(uuid.uuid4())
    assert once(server, "DELETE", path, key=drop).status == 204
    made = make_table(server, space, name)
    assert once(server, "DELETE", path, key=drop).status == 204
    assert server.call("GET", path).json["metadata"]["table-uuid"] == made["metadata"]["table-uuid"]


def test_29_a_request_that_changed_nothing_changes_nothing_later(server: Server, space: str) -> None:
    name, key = fresh("v"), str(uuid.uuid4())
    make_view(server, space, name, properties={"p": "1"})
    path = path_of(server, space, name)
    assert once(server, "POST", path, properties(p="1"), key).status == 200
    assert server.call("POST", path, properties(p="2")).status == 200
    assert once(server, "POST", path, properties(p="1"), key).json["metadata"]["properties"] == {"p": "2"}


def test_29_a_refusal_is_repeated_in_its_words(server: Server, space: str) -> None:
    name, key = fresh(), str(uuid.uuid4())
    path = f"{base(server)}/namespaces/{space}/tables/{name}"
    first = once(server, "POST", path, set_property("p", "1"), key)
    refused(first, 404, "NoSuchTableException")
    make_table(server, space, name)
    again = once(server, "POST", path, set_property("p", "1"), key)
    assert (again.status, again.json) == (first.status, first.json)
    assert server.call("POST", path, set_property("p", "1")).status == 200


def test_29_a_key_is_one_requests(server: Server, space: str) -> None:
    name, key = fresh(), str(uuid.uuid4())
    make_table(server, space, name)
    path = f"{base(server)}/namespaces/{space}/tables/{name}"
    assert once(server, "POST", path, set_property("p", "1"), key).status == 200
    refused(once(server, "POST", path, set_property("p", "2"), key), 400, "BadRequestException", "another request")
    refused(once(server, "DELETE", path, key=key), 400, "BadRequestException", "another request")
    refused(once(server, "POST", path, set_property("p", "2"), "not-a-uuid"), 400, "BadRequestException", "UUID")
    assert once(server, "POST", path, set_property("p", "1"), key.upper()).status == 200
    assert once(server, "GET", path, key="not-a-uuid").status == 200, "reading takes no notice"


def test_29_staged_create_is_done_each_time(server: Server, space: str) -> None:
    key, path = str(uuid.uuid4()), f"{base(server)}/namespaces/{space}/tables"
    body = {"name": fresh(), "schema": SCHEMA, "stage-create": True}
    for _ in range(2):
        answer = once(server, "POST", path, body, key)
        assert answer.status == 200 and "metadata-location" not in answer.json, answer


def test_29_twins_at_the_same_time_take_effect_once(server: Server) -> None:
    name, key = fresh(), str(uuid.uuid4())
    answers: list[Answer] = []
    threads = [threading.Thread(target=lambda: answers.append(once(
        server, "POST", f"{base(server)}/namespaces", {"namespace": [name]}, key))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answer.status for answer in answers] == [200] * 8, answers


@pytest.mark.parametrize("point, landed", [("catalog_before_swap", False), ("catalog_after_swap", True)])
def test_29_receipt_and_effect_are_one(own_server: Server, point: str, landed: bool) -> None:
    """The process dies beside the commit: the repeat has its effect exactly when the first had none."""
    own_server.command = [failpoint_binary()]
    own_server.start()
    make_space(own_server, "once")
    make_table(own_server, "once", "t")
    path, key = f"{base(own_server)}/namespaces/once/tables/t", str(uuid.uuid4())
    own_server.kill()

    def send() -> None:
        try:
            once(own_server, "POST", path, set_property("p", "1"), key)
        except Exception:  # however the connection ends
            pass
    assert run_until_killed(own_server, point, act=lambda: threading.Thread(target=send, daemon=True).start())
    own_server.start()
    assert ("p" in own_server.call("GET", path).json["metadata"]["properties"]) == landed
    assert own_server.call("POST", path, {"updates": [{"action": "remove-properties", "removals": ["p"]}]}).status == 200
    assert once(own_server, "POST", path, set_property("p", "1"), key).status == 200
    assert ("p" in own_server.call("GET", path).json["metadata"]["properties"]) != landed
