"""The first start, cut off anywhere, and starts on a directory from which something is gone."""
from __future__ import annotations

import json
import socket
import subprocess
import time
from pathlib import Path

from server import LHBOX, Server


def demo_takes_a_row(server: Server) -> None:
    demo = server.dev["demo"]
    sink = {"id": demo["sink_id"], "send_key": demo["send_key"]}
    before = server.books(sink)["committed"]
    answer = server.send(sink, f"after-{before}", [{"x": 1}])
    assert answer.status == 202, answer
    server.roll(sink)
    assert server.books(sink)["committed"] == before + 1


def test_a_first_start_that_was_killed_anywhere_is_made_good_by_the_next(tmp_path: Path) -> None:
    for step in range(16):
        home = tmp_path / str(step)
        home.mkdir()
        server = Server(home)
        try:
            server.launch()
            time.sleep(step * 0.015)  # another place of the start each time; each of them is a right one
            server.kill()
            server.start()
            demo_takes_a_row(server)
            assert server.terminate() == 0, server.tail()
        finally:
            server.kill()


def test_a_sink_made_by_a_start_that_wrote_no_profile_gets_a_key(own_server: Server) -> None:
    first = own_server.start().dev["demo"]
    own_server.terminate()
    (own_server.data / "dev.json").unlink()
    second = own_server.start().dev["demo"]
    assert second["sink_id"] != first["sink_id"]
    demo_takes_a_row(own_server)


def test_a_lost_profile_takes_no_key_from_who_sends(own_server: Server) -> None:
    demo = own_server.start().dev["demo"]
    sink = {"id": demo["sink_id"], "send_key": demo["send_key"]}
    demo_takes_a_row(own_server)
    own_server.terminate()
    (own_server.data / "dev.json").unlink()
    again = own_server.start().dev["demo"]
    assert again == {**demo, "send_key": ""}
    assert "lhbox sink delete demo_in" in own_server.tail(100)
    assert own_server.send(sink, "still", [{"x": 2}]).status == 202
    own_server.roll(sink)
    assert own_server.call("DELETE", "/v1/sinks/demo_in").status == 202
    own_server.terminate()
    own_server.start()
    demo_takes_a_row(own_server)


def test_a_port_in_use_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        run = subprocess.run([LHBOX, "dev", "--data", str(tmp_path / "data"), "--port", str(taken.getsockname()[1])],
                             capture_output=True, text=True, timeout=30)
    assert run.returncode == 1
    assert "cannot be listened on" in run.stderr and "--port 0" in run.stderr, run.stderr


def test_a_profile_without_a_key_is_named(own_server: Server) -> None:
    own_server.start()
    own_server.terminate()
    (own_server.data / "dev.json").write_text(json.dumps({"demo": {}}))
    own_server.launch()
    assert own_server.wait() != 0
    assert "dev.json holds no API key" in own_server.tail() and "remove the file" in own_server.tail()
