"""The command line: the page's examples, exit codes, secrets, sends that must not be lost or doubled, help and completion."""
from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Iterator

import pytest

from server import LHBOX, ROOT, Server

OK, REFUSED, USAGE, UNREACHABLE, TIMED_OUT, FOUND = range(6)
NOBODY = "http://127.0.0.1:1"


class Shell:
    """A user: a directory, an environment without profiles, and the command."""

    def __init__(self, home: Path, **env: str) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.home = home
        known = {name: value for name, value in os.environ.items() if not name.startswith("LHBOX_")}
        self.env = {**known, "HOME": str(home), "XDG_CONFIG_HOME": str(home / "config"), **env}

    def run(self, *args: str, stdin: str | None = None, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([LHBOX, *args], cwd=self.home, env={**self.env, **env}, input=stdin, text=True,
                              capture_output=True, timeout=120)

    def ok(self, *args: str, stdin: str | None = None) -> str:
        done = self.run(*args, stdin=stdin)
        assert done.returncode == OK, (args, done.stdout, done.stderr)
        return done.stdout

    def fails(self, code: int, *args: str, stdin: str | None = None) -> str:
        done = self.run(*args, stdin=stdin)
        assert done.returncode == code, (args, done.returncode, done.stdout, done.stderr)
        assert re.search("^lhbox: ", done.stderr, re.M) or code == FOUND, done.stderr
        return done.stderr

    def answer(self, *args: str) -> Any:
        return json.loads(self.ok(*args, "--json"))


@pytest.fixture
def shell(server: Server, tmp_path: Path) -> Shell:
    """A user of the module's server, in a project and a warehouse of this test alone."""
    admin = Shell(tmp_path / "admin", LHBOX_URL=server.dev["url"])
    name = "w" + os.urandom(5).hex()
    key = admin.ok("project", "create", name, "--bootstrap-file", str(server.data / "keys/bootstrap"), "--show-key").strip()
    user = Shell(tmp_path / "user", LHBOX_URL=server.dev["url"], LHBOX_API_KEY=key, WAREHOUSE=name)
    user.ok("warehouse", "create", name)
    return user


def make_sink(shell: Shell, *flags: str, columns: tuple[str, ...] = ("x:long:required", "who:string")) -> str:
    """A table and its sink; the path of the file with the send key."""
    warehouse = shell.env["WAREHOUSE"]
    shell.ok("table", "create", f"{warehouse}.garden.events", *(part for c in columns for part in ("--column", c)))
    shell.ok("sink", "create", warehouse, "--table", "garden.events", "--name", "events_in", "--save", "sink.json", *flags)
    return "sink.json"


# ---- the page ----

def test_the_examples_of_the_page_work_as_printed(shell: Shell) -> None:
    warehouse = shell.env["WAREHOUSE"]
    (shell.home / "batch.json").write_text('[{"x": 1, "who": "north"}, {"x": 2}]')
    save = str(shell.home / "events-sink.json")
    shell.ok("table", "create", f"{warehouse}.garden.events", "--column", "x:long:required", "--column", "who:string")
    created = shell.run("sink", "create", warehouse, "--table", "garden.events", "--name", "events_in", "--save", save)
    assert created.returncode == OK and "al_send_" not in created.stdout + created.stderr
    assert f"lhbox table document {warehouse}.garden.events" in created.stderr
    sent = shell.run("sink", "send", "events_in", "batch.json", "--send-key-file", save)
    assert sent.returncode == OK and "2 accepted, 0 rejected, pending" in sent.stdout
    assert re.search(r"batch id [0-9a-f]{32}", sent.stderr)
    shell.ok("sink", "send", "events_in", "batch.json", "--send-key-file", save, "--wait")
    shown = shell.ok("sink", "get", "events_in")
    assert re.search(r"^rows committed +2$", shown, re.M) and re.search(r"^seconds behind +0$", shown, re.M)
    shell.ok("table", "create", f"{warehouse}.garden.log", "--format-version", "3", "--partition", "day(ts)",
             "--column", "ts:timestamptz:required")
    assert "format_version" not in shell.ok("table", "get", f"{warehouse}.garden.log")
    assert shell.answer("table", "get", f"{warehouse}.garden.log")["format_version"] == 3


def test_what_comes_later_is_refused_as_such(shell: Shell) -> None:
    make_sink(shell)
    warehouse = shell.env["WAREHOUSE"]
    shell.ok("table", "create", f"{warehouse}.garden.observations", "--column", "observation_id:string:required")
    refused = shell.fails(REFUSED, "sink", "create", warehouse, "--table", "garden.observations", "--name", "observations_in",
                          "--key", "observation_id", "--save", "obs-sink.json")
    assert "not_implemented" in refused and not (shell.home / "obs-sink.json").exists()
    assert "not_implemented" in shell.fails(REFUSED, "sink", "update", "events_in", "--key", "x")
    assert "not_implemented" in shell.fails(REFUSED, "sink", "dedupe", "events_in")
    shell.ok("sink", "update", "events_in", "--no-key")


def test_every_noun_can_be_made_shown_listed_and_deleted(shell: Shell) -> None:
    make_sink(shell, "--roll-seconds", "5", "--unknown-fields", "ignore")
    warehouse = shell.env["WAREHOUSE"]
    table = f"{warehouse}.garden.events"
    assert warehouse in shell.ok("warehouse", "list") and shell.answer("warehouse", "get", warehouse)["name"] == warehouse
    assert [t["table"] for t in shell.answer("table", "list", "--warehouse", warehouse)["tables"]] == [table]
    shell.ok("table", "document", table, "--doc", "one visit", "--column", "who=the gate: which=one")
    shown = shell.answer("table", "get", table)
    assert shown["doc"] == "one visit" and shown["columns"][1]["doc"] == "the gate: which=one"
    sink = shell.answer("sink", "get", "events_in")
    assert sink["roll"]["seconds"] == 5 and sink["unknown_fields"] == "ignore"
    assert shell.answer("sink", "update", "events_in", "--name", "gate", "--inactivity-seconds", "9")["roll"]["inactivity_seconds"] == 9
    assert shell.answer("sink", "update", "gate", "--no-inactivity")["roll"]["inactivity_seconds"] is None
    assert "table_has_sink" in shell.fails(REFUSED, "table", "delete", table)
    assert shell.answer("sink", "resume", "gate")["state"] == "active"
    assert shell.answer("sink", "delete", "gate")["pending_batches_discarded"] == 0
    shell.ok("table", "delete", table)
    assert "table_not_found" in shell.fails(REFUSED, "table", "get", table)
    shell.ok("key", "create", "reader", "--level", "read", "--save", "reader.key")
    key = (shell.home / "reader.key").read_text().strip()
    listed = shell.answer("key", "list")["keys"]
    assert key not in json.dumps(listed)
    reader = next(k for k in listed if k["name"] == "reader")
    assert "forbidden" in shell.run("key", "list", LHBOX_API_KEY=key).stderr
    shell.ok("key", "delete", reader["id"])
    assert "unauthorized" in shell.run("table", "list", LHBOX_API_KEY=key).stderr


def test_connect_prints_a_block_that_can_be_pasted(shell: Shell) -> None:
    key = shell.env["LHBOX_API_KEY"]
    block = shell.ok("connect", "duckdb")
    assert f"TOKEN '{key}'" in block and f"ATTACH '{shell.env['WAREHOUSE']}'" in block
    hidden = shell.ok("connect", "duckdb", "--hide-key")
    assert key not in hidden and "<your API key>" in hidden
    everything = shell.ok("connect")
    assert all(f"# {engine}\n" in everything for engine in ("duckdb", "pyiceberg", "spark", "trino", "curl"))
    assert "sinks_note" in shell.answer("connect")
    shell.fails(USAGE, "connect", "excel")


# ---- exit codes ----

@pytest.mark.parametrize("args", [
    ["sink", "sned", "a", "b"], ["nonsense"], ["sink", "get"], ["sink", "get", "a", "b"], ["sink", "get", "a", "--jsno"],
    ["sink", "list", "--limit", "many"], ["sink", "list", "--limit"], ["sink", "list", "--json=yes"], ["sink", "list", "-x"],
    ["table", "create", "a.b.c"], ["table", "create", "a.b.c", "--column", "x"], ["table", "document", "a.b.c"],
    ["table", "document", "a.b.c", "--column", "x"], ["key", "create", "k", "--show-key"], ["completion", "csh"],
    ["sink", "create", "w", "--name", "n", "--show-key"], ["sink", "send", "s", "f"], ["sink", "roll", "s", "--wait", "61"],
    ["sink", "update", "s", "--key", "a", "--no-key"], ["warehouse", "create", "w", "--store", "{"], ["dev", "--set", "port"],
    ["login", "--url", NOBODY],
])
def test_wrong_command_lines_end_with_2_and_say_how(tmp_path: Path, args: list[str]) -> None:
    said = Shell(tmp_path, LHBOX_URL=NOBODY, LHBOX_API_KEY="k").fails(USAGE, *args)
    assert "--help" in said


def test_a_near_miss_is_named(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    assert "did you mean `lhbox sink send`" in shell.fails(USAGE, "sink", "sned", "a", "b")
    assert "did you mean --send-key-file" in shell.fails(USAGE, "sink", "send", "a", "b", "--send-key-flie", "f")


def test_without_a_server_the_end_is_3(tmp_path: Path) -> None:
    shell = Shell(tmp_path, LHBOX_SEND_KEY="k")
    assert "lhbox dev" in shell.fails(UNREACHABLE, "sink", "list")
    assert "cannot be reached" in shell.run("sink", "list", LHBOX_URL=NOBODY, LHBOX_API_KEY="k").stderr
    assert shell.run("sink", "list", LHBOX_URL=NOBODY, LHBOX_API_KEY="k").returncode == UNREACHABLE
    (tmp_path / "b.json").write_text("[{}]")
    shell.fails(UNREACHABLE, "sink", "send", "snk_1", "b.json", "--url", NOBODY, "--retry-seconds", "1")


def test_waiting_too_long_ends_with_4(shell: Shell) -> None:
    make_sink(shell)
    done = shell.run("sink", "send", "events_in", "-", "--send-key-file", "sink.json", "--wait", "--wait-seconds", "0",
                     stdin='[{"x":1}]')
    assert done.returncode == TIMED_OUT and "1 accepted" in done.stdout


def test_config_check_finds_and_prints(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    assert "port = 8181" in shell.ok("config", "check")
    assert "port = 99" in shell.ok("config", "check", "--port", "99")
    assert "queue_max = 7" in shell.ok("config", "check", "--set", "intake.queue_max=7")
    (tmp_path / "bad.conf").write_text("[server]\nprot = 1\n")
    found = shell.run("config", "check", "--config", "bad.conf")
    assert found.returncode == FOUND and "port" in found.stdout + found.stderr


def test_json_of_a_refusal_is_the_apis(shell: Shell) -> None:
    done = shell.run("--json", "sink", "get", "none")
    assert done.returncode == REFUSED and json.loads(done.stdout)["error"]["code"] == "sink_not_found"
    assert "sink_not_found" in done.stderr


# ---- secrets ----

def test_a_secret_needs_a_place_before_the_api_is_called(shell: Shell) -> None:
    warehouse = shell.env["WAREHOUSE"]
    shell.ok("table", "create", f"{warehouse}.garden.events", "--column", "x:long")
    create = ["sink", "create", warehouse, "--table", "garden.events", "--name", "events_in"]
    shell.fails(USAGE, *create)
    shell.fails(USAGE, *create, "--save", "a", "--show-key")
    assert shell.answer("sink", "list")["sinks"] == []
    (shell.home / "there").write_text("mine")
    assert "exists already" in shell.fails(REFUSED, *create, "--save", "there")
    assert (shell.home / "there").read_text() == "mine" and shell.answer("sink", "list")["sinks"] == []
    shell.fails(REFUSED, *create, "--save", "no/such/folder/file")
    assert shell.answer("sink", "list")["sinks"] == []
    shell.ok(*create, "--save", "sink.json")
    saved = shell.home / "sink.json"
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600
    assert set(json.loads(saved.read_text())) == {"sink_id", "name", "send_url", "send_key"}
    shell.fails(REFUSED, *create, "--save", "second.json")
    assert not (shell.home / "second.json").exists()


def test_show_key_prints_the_key_alone(shell: Shell) -> None:
    warehouse = shell.env["WAREHOUSE"]
    shell.ok("table", "create", f"{warehouse}.garden.events", "--column", "x:long")
    shown = shell.ok("sink", "create", warehouse, "--table", "garden.events", "--name", "events_in", "--show-key")
    assert re.fullmatch(r"al_send_[0-9a-f]{12}_[\w-]{43}\n", shown)
    sent = shell.run("sink", "send", "events_in", "-", stdin="[{}]", LHBOX_SEND_KEY=shown.strip())
    assert sent.returncode == OK, sent.stderr


def test_login_tries_the_key_and_keeps_it_for_its_server_only(shell: Shell, server: Server) -> None:
    user = Shell(shell.home / "other")
    (user.home / "key").write_text(shell.env["LHBOX_API_KEY"] + "\n")
    (user.home / "bad").write_text("al_key_no")
    user.fails(REFUSED, "login", "--url", server.dev["url"], "--key-file", "bad")
    profile = user.home / "config/lhbox/profile.json"
    assert not profile.exists()
    user.ok("login", "--url", server.dev["url"] + "/", "--key-file", "key")
    assert stat.S_IMODE(profile.stat().st_mode) == 0o600
    user.ok("sink", "list")
    assert "no API key" in user.fails(USAGE, "sink", "list", "--url", NOBODY)


def test_the_dev_profile_is_found_in_the_directory(server: Server, tmp_path: Path) -> None:
    user = Shell(tmp_path)
    (tmp_path / "lhbox-data").symlink_to(server.data)
    assert "dev" in user.ok("warehouse", "list")


def test_init_keeps_its_key_like_any_other(tmp_path: Path) -> None:
    user = Shell(tmp_path)
    user.fails(USAGE, "init")
    user.ok("init", "--save", "admin.key")
    assert stat.S_IMODE((tmp_path / "admin.key").stat().st_mode) == 0o600
    assert (tmp_path / "lhbox-data/keys/bootstrap").exists()


# ---- sending ----

def test_ndjson_becomes_batches_and_every_line_arrives(shell: Shell) -> None:
    make_sink(shell)
    count = 100_050
    lines = "".join(f'{{"x":{n},"who":"ü {n}"}}\r\n' + ("\n" if n % 1000 == 0 else "") for n in range(count))
    done = shell.run("sink", "send", "events_in", "-", "--send-key-file", "sink.json", "--batch-id", "many", "--wait",
                     stdin=lines + '{"who":"no x"}')
    assert done.returncode == OK, done.stderr
    assert "batch many-0001: 100000 accepted" in done.stdout and "batch many-0002: 51 accepted" in done.stdout
    assert done.stdout.endswith("committed\n")
    sink = shell.answer("sink", "get", "events_in")
    assert sink["books"]["committed"] == count and sink["books"]["rejected"] == 1
    record = shell.answer("sink", "rejects", "events_in", "--reason", "required_missing")["rejects"][0]
    assert record["batch_id"] == "many-0002" and record["row"] == 50
    assert [b["state"] for b in shell.answer("sink", "batches", "events_in")["batches"]] == ["committed"] * 2
    assert shell.answer("sink", "batches", "events_in", "many-0001")["rows"] == 100_000


def test_a_body_is_never_larger_than_a_batch_may_be(shell: Shell) -> None:
    make_sink(shell)
    line = '{"x":1,"who":"' + "y" * (1 << 20) + '"}\n'
    with (shell.home / "big.ndjson").open("w") as file:
        for _ in range(40):
            file.write(line)
    done = shell.ok("sink", "send", "events_in", "big.ndjson", "--send-key-file", "sink.json")
    assert done.splitlines()[-1] == "3 batches: 40 accepted, 0 rejected"
    (shell.home / "big.json").write_text("[" + ",".join([line] * 17) + "]")
    assert "NDJSON" in shell.fails(REFUSED, "sink", "send", "events_in", "big.json", "--send-key-file", "sink.json")
    (shell.home / "long.ndjson").write_text(line + '{"x":1,"who":"' + "y" * (17 << 20) + '"}\n')
    assert "line 2 of long.ndjson" in shell.fails(REFUSED, "sink", "send", "events_in", "long.ndjson", "--send-key-file", "sink.json")


def test_the_same_file_twice_is_stored_once(shell: Shell) -> None:
    make_sink(shell)
    for _ in range(2):
        said = shell.ok("sink", "send", "events_in", "-", "--send-key-file", "sink.json", stdin='[{"x":1}]')
    assert "was there already" in said
    assert shell.answer("sink", "get", "events_in")["received"]["rows"] == 1


def test_a_dry_run_tells_each_row_and_stores_nothing(shell: Shell) -> None:
    make_sink(shell)
    said = shell.ok("sink", "send", "events_in", "-", "--send-key-file", "sink.json", "--dry-run", stdin='[{"x":1},{"who":"a"}]')
    assert "1 accepted, 1 rejected" in said and "row 1: required_missing x" in said
    assert shell.answer("sink", "get", "events_in")["received"]["batches"] == 0


def test_what_cannot_be_sent_is_said(shell: Shell) -> None:
    make_sink(shell)
    key = ["--send-key-file", "sink.json"]
    assert "cannot be read" in shell.fails(REFUSED, "sink", "send", "events_in", "no-such-file", *key)
    assert "invalid_json" in shell.fails(REFUSED, "sink", "send", "events_in", "-", *key, stdin="[{]")
    assert "not_an_array" in shell.fails(REFUSED, "sink", "send", "events_in", "-", *key, stdin='"x"')
    assert "not of another_in" in shell.fails(USAGE, "sink", "send", "another_in", "-", *key, stdin="[]")
    assert "bad_key" in shell.fails(REFUSED, "sink", "send", "snk_000000000000", "-", "--send-key", "al_send_no", stdin="[]")


class Moody(BaseHTTPRequestHandler):
    """Answers as the script of the test says, and remembers what it was asked."""

    protocol_version = "HTTP/1.1"
    script: list[Any] = []
    seen: list[tuple[str, dict[str, str], bytes]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        Moody.seen.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        mood = Moody.script.pop(0)
        if mood == "broken":
            self.close_connection = True
            return
        status, headers, answer = mood
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(answer))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def moody() -> Iterator[str]:
    """A server that does what Moody.script says; its URL."""
    Moody.seen, Moody.script = [], []
    listening = ThreadingHTTPServer(("127.0.0.1", 0), Moody)
    thread = threading.Thread(target=listening.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{listening.server_port}"
    listening.shutdown()
    thread.join()
    listening.server_close()


TAKEN = (202, {}, b'{"accepted":1,"rejected":0,"reasons":[],"batch_id":"b","bytes":7,"state":"pending"}')


def test_what_may_pass_is_tried_again_with_the_same_id_and_bytes(moody: str, tmp_path: Path) -> None:
    busy = b'{"error":{"code":"overloaded","message":"m","hint":"","retryable":true}}'
    Moody.script = [(503, {"Retry-After": "1"}, busy), "broken", (429, {"Retry-After": "0"}, busy), (502, {}, b"<html>"), TAKEN]
    done = Shell(tmp_path).run("sink", "send", "snk_1", "-", "--url", moody, "--send-key", "secret", stdin='[{"x":1}]')
    assert done.returncode == OK, done.stderr
    assert len(Moody.seen) == 5
    batch_id = hashlib.sha256(b'[{"x":1}]').hexdigest()[:32]
    for path, headers, body in Moody.seen:
        assert (path, headers["idempotency-key"], headers["authorization"], body) == (
            "/v1/sinks/snk_1", batch_id, "Bearer secret", b'[{"x":1}]')
    assert "the server answered 503; again in 1" in done.stderr and "secret" not in done.stderr


def test_what_will_not_pass_is_not_tried_again(moody: str, tmp_path: Path) -> None:
    Moody.script = [(422, {}, b'{"error":{"code":"idempotency_key_reused","message":"m","hint":"h"}}')]
    said = Shell(tmp_path).fails(REFUSED, "sink", "send", "snk_1", "-", "--url", moody, "--send-key", "k", stdin="[]")
    assert "idempotency_key_reused: m" in said and "hint: h" in said and len(Moody.seen) == 1


def test_trying_again_has_an_end(moody: str, tmp_path: Path) -> None:
    Moody.script = [(503, {"Retry-After": "2"}, b'{"error":{"code":"draining","message":"m","hint":""}}')] * 9
    said = Shell(tmp_path).run("sink", "send", "snk_1", "-", "--url", moody, "--send-key", "k", "--retry-seconds", "1", stdin="[]")
    assert said.returncode == REFUSED and "draining" in said.stderr and len(Moody.seen) == 1


def test_redirects_are_not_followed_with_a_key(moody: str, tmp_path: Path) -> None:
    Moody.script = [(302, {"Location": f"{moody}/elsewhere"}, b"")]
    Shell(tmp_path, LHBOX_URL=moody, LHBOX_API_KEY="k").fails(REFUSED, "sink", "list")
    assert len(Moody.seen) == 1


def test_an_answer_cannot_steer_the_terminal(moody: str, tmp_path: Path) -> None:
    listed = json.dumps({"sinks": [{"name": "a\x1b[2Jb", "id": "snk_1"}]}).encode()
    Moody.script = [(200, {}, listed), (400, {}, json.dumps({"error": {"code": "c", "message": "\x1b]0;t", "hint": ""}}).encode()),
                    (200, {}, b"<html>")]
    shell = Shell(tmp_path, LHBOX_URL=moody, LHBOX_API_KEY="k")
    assert "a?[2Jb" in shell.ok("sink", "list")
    assert "\x1b" not in shell.fails(REFUSED, "sink", "list")
    assert "is it an lhbox?" in shell.fails(REFUSED, "sink", "list")


# ---- help, completion, docs ----

def commands() -> list[str]:
    listed = subprocess.run([LHBOX, "--help"], text=True, capture_output=True, check=True).stdout
    return re.findall(r"^  ([a-z]+(?: [a-z]+)*)  +[A-Z]", listed, re.M)


def test_help_teaches_on_every_level() -> None:
    assert {"dev", "config check", "sink send", "sink batches discard", "key delete"} <= set(commands())
    for path in commands():
        shown = subprocess.run([LHBOX, *path.split(), "--help"], text=True, capture_output=True, check=True).stdout
        assert f"Usage:\n  lhbox {path}" in shown and "Example:\n  " in shown and "--help" in shown, path
        assert shown == subprocess.run([LHBOX, "help", *path.split()], text=True, capture_output=True, check=True).stdout
    group = subprocess.run([LHBOX, "sink", "--help"], text=True, capture_output=True, check=True).stdout
    assert "sink send" in group and "table create" not in group
    assert subprocess.run([LHBOX, "sink"], capture_output=True).returncode == USAGE
    assert subprocess.run([LHBOX, "--version"], text=True, capture_output=True, check=True).stdout.startswith("lhbox 0.")


def completed(*words: str) -> set[str]:
    script = ('eval "$("$0" completion bash)"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _lhbox; '
              'printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-c", script, LHBOX, "lhbox", *words], text=True, capture_output=True, check=True)
    return set(done.stdout.split())


def test_bash_completes_words_and_flags() -> None:
    assert completed("si") == {"sink"}
    assert {"create", "send", "rejects"} <= completed("sink", "")
    assert completed("sink", "send", "events_in", "--send-key-") == {"--send-key-file"}
    assert completed("config", "") == {"check"}


@pytest.mark.parametrize("shell_name", ["zsh", "fish"])
def test_other_shells_get_all_commands(shell_name: str) -> None:
    script = subprocess.run([LHBOX, "completion", shell_name], text=True, capture_output=True, check=True).stdout
    assert all(path.split()[-1] in script for path in commands()) and "--send-key-file" in script.replace("-l '", "--")


def test_docs_cli_is_made_from_the_table() -> None:
    made = subprocess.run([LHBOX, "docs"], text=True, capture_output=True, check=True).stdout
    assert made == (ROOT / "docs/cli.md").read_text(), "run `build/lhbox docs > docs/cli.md`"
