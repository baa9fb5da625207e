"""Every route by every kind of credential, against one file of expected statuses."""
from __future__ import annotations

import re
from pathlib import Path

import pytest

from server import ROOT, Server

FILE = Path(__file__).with_name("rights.txt")
CREDENTIALS = ("none", "wrong", "read", "write", "admin", "token", "send", "bootstrap")
LINES = [line.split() for line in FILE.read_text().splitlines() if line and not line.startswith("#")]


@pytest.fixture(scope="module")
def credentials(server: Server) -> dict[str, str]:
    """One of each kind; the token is of level write."""
    keys = {"none": "", "admin": server.dev["api_key"], "send": server.dev["demo"]["send_key"],
            "bootstrap": (server.data / "keys" / "bootstrap").read_text().strip(),
            "wrong": server.dev["api_key"][:-1] + ("A" if server.dev["api_key"][-1] != "A" else "B")}
    for level in ("read", "write"):
        answer = server.call("POST", "/v1/keys", {"name": f"a_{level}_key", "level": level})
        assert answer.status == 201, answer
        keys[level] = answer.json["api_key"]
    token = server.call("POST", "/iceberg/v1/oauth/tokens", key="", body=(
        f"grant_type=client_credentials&client_id=x&client_secret={keys['write']}").encode(),
        headers={"Content-Type": "application/x-www-form-urlencoded"})
    assert token.status == 200, token
    return keys | {"token": token.json["access_token"]}


def test_every_management_route_stands_in_the_file() -> None:
    routes = re.findall(r'^X\((\w+), "([^"]+)"', (ROOT / "src/server/routes.def").read_text(), re.M)
    listed = {(line[0], re.sub(r"\{sink\}|\{warehouse\}(\.demo\.none)?|none|000000000000", "*", line[1])) for line in LINES}
    assert set(routes) <= listed, f"missing: {set(routes) - listed}"


@pytest.mark.parametrize("line", LINES, ids=lambda line: f"{line[0]} {line[1]}")
def test_a_route_takes_only_the_credentials_that_the_file_says(server: Server, credentials: dict[str, str],
                                                               line: list[str]) -> None:
    method, path, *expected = line
    path = path.format(sink=server.dev["demo"]["sink_id"], warehouse=server.dev["warehouse"])
    for kind, wanted in zip(CREDENTIALS, expected, strict=True):
        body = {} if method in ("POST", "PATCH") else None
        answer = server.call(method, path, body, credentials[kind])
        if wanted == "+":
            assert answer.status not in (401, 403), f"{kind}: {answer}"
        else:
            assert answer.status == int(wanted), f"{kind}: {answer}"
        if answer.status == 403 and kind == "send" and not path.startswith("/iceberg"):
            assert answer.code == "send_only"
