"""Rounds of commits that are applied and whose answers are lost: by a cut connection, or by a server that is killed right
after applying and started again. The table as the engine should find it is kept beside as plain rows."""
from __future__ import annotations

import threading
from pathlib import Path
from typing import Callable

from cutting_proxy import CuttingProxy
from senders import ALL, failpoint_binary
from server import Server

ROUNDS = 50 if ALL else 3
TABLE = "demo.lost"
ALWAYS = 1_000_000


class Engine:
    """What a round needs of an engine. `errors` is what its user is told when it gives up."""

    errors: tuple[type[Exception], ...]
    # name -> the change of the rows (id -> n) that it makes; `number` is new to the table.
    CHANGES: dict[str, Callable[[dict[int, int], int], dict[int, int]]] = {
        "insert": lambda rows, number: {**rows, number: 0},
        "update": lambda rows, number: {id: n + 1 for id, n in rows.items()},
        "delete": lambda rows, number: {id: n for id, n in rows.items() if id != max(rows)},
        "merge": lambda rows, number: {**{id: n + 10 for id, n in rows.items()}, number: 7},
        "create": lambda rows, number: rows,
    }

    def change(self, name: str, number: int, rows: dict[int, int]) -> None:
        """Makes the change of the table that holds `rows`; `create` copies it to `demo.copy_<number>`."""
        raise NotImplementedError

    def rows(self, table: str) -> list[tuple[int, int]]:
        """What the same session reads now, in any order."""
        raise NotImplementedError


class Rounds:
    """Runs them, each change in its turn, and remembers what the user was told of the commits that were applied."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.wanted: dict[int, int] = {1: 0, 2: 0}
        self.told: dict[str, int] = {"success": 0, "failure": 0}

    def run(self, number: int) -> None:
        name = list(Engine.CHANGES)[number % len(Engine.CHANGES)]
        try:
            self.engine.change(name, 10 + number, self.wanted)
            self.told["success"] += 1
        except self.engine.errors:
            self.told["failure"] += 1
        self.wanted = Engine.CHANGES[name](self.wanted, 10 + number)
        self.created: str | None = f"demo.copy_{10 + number}" if name == "create" else None

    def judge(self) -> None:
        """The next action of the same session, after a commit that was applied."""
        assert sorted(self.engine.rows(TABLE)) == sorted(self.wanted.items())
        if self.created is not None:
            assert sorted(self.engine.rows(self.created)) == sorted(self.wanted.items())


def started(home: Path) -> Server:
    """A server with the table, empty of rows: the engine puts in what `Rounds` begins with."""
    server = Server(home)
    server.command = [failpoint_binary()]
    server.start()
    server.make_table(TABLE, {"id": "long required", "n": "long"})
    return server


def cut_rounds(proxy: CuttingProxy, engine: Engine) -> dict[str, int]:
    """Every other time the commit is lost once, else however often it is sent again."""
    rounds = Rounds(engine)
    for number in range(ROUNDS):
        proxy.lost, proxy.cuts = [], 1 if number % 2 else ALWAYS
        rounds.run(number)
        proxy.cuts = 0
        assert proxy.lost and proxy.lost[0] in (200, 204), proxy.lost
        rounds.judge()
    return rounds.told


def killed_rounds(server: Server, engine: Engine) -> None:
    """The server dies in each round, and is started while the engine still asks."""
    rounds = Rounds(engine)
    server.terminate()
    server.env["LHBOX_CRASH_POINT"] = "catalog_after_swap"
    server.start()
    for number in range(ROUNDS):
        codes: list[int] = []

        def restart() -> None:
            codes.append(server.wait(120))
            server.start()

        watch = threading.Thread(target=restart)
        watch.start()
        rounds.run(number)
        watch.join(120)
        assert codes == [-9] and not watch.is_alive(), codes
        rounds.judge()
