"""A table into which a sink rolls every second while an engine works on it; at the end every acknowledged row is there
exactly once, and `lhbox verify` has nothing to say."""
from __future__ import annotations

import os
import subprocess
import time
from contextlib import contextmanager
from typing import Any, Callable, Iterator

from senders import COLUMNS, Load
from server import LHBOX, Server

# The rows of engines: no sender makes such ids.
FOREIGN = "foreign-"


@contextmanager
def rolling(server: Server, name: str, **table: Any) -> Iterator[Load]:
    """The table `demo.<name>` (id, n), a sink on it and senders that do not stop before the block ends. Work on it should
    wait for `load.rolled()` between steps, so that each step meets a table that moved."""
    server.make_table(f"demo.{name}", COLUMNS, **table)
    sink = server.make_sink(f"demo.{name}", f"{name}_in", roll_seconds=1)
    with Load(server, sink, f"demo.{name}", senders=2, prefix=name) as load:
        load.rolled()
        yield load
    load.settle()
    env = {**os.environ, "LHBOX_URL": server.dev["url"], "LHBOX_API_KEY": server.dev["api_key"]}
    verified = subprocess.run([LHBOX, "verify"], env=env, cwd=server.home, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL)
    assert verified.returncode == 0, verified.stdout + verified.stderr


def until_committed(action: Callable[[], Any], is_conflict: Callable[[Exception], bool], within: float = 60.0) -> Any:
    """What a user does whose engine does not repeat a commit that lost its race: the whole action again."""
    deadline = time.monotonic() + within
    while True:
        try:
            return action()
        except Exception as error:
            if not is_conflict(error) or time.monotonic() > deadline:
                raise
