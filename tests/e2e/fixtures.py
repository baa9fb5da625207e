"""Fixtures of tests/e2e and tests/conformance: a server for a module, and one that a test may kill."""
from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Iterator

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from server import Server  # noqa: E402
from strict.check import installation_faults  # noqa: E402

CHECK_SECONDS = 2.0


def check_tables(stopped: Server) -> None:
    """Every table that the tests wrote is held against the strict checker, as far as the time allows."""
    expected = re.compile(stopped.damaged) if stopped.damaged else None
    faults = [fault for fault in installation_faults(stopped.data, CHECK_SECONDS)
              if expected is None or not expected.search(fault)]
    assert not faults, "\n".join(faults[:20])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A running server shared by the tests of one file."""
    running = Server(tmp_path_factory.mktemp("lhbox")).start()
    yield running
    assert running.terminate() == 0, running.tail()  # a sanitizer that found something says so here, too
    check_tables(running)


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    """A server of this test alone, not started yet."""
    own = Server(tmp_path)
    yield own
    own.kill()
    assert not own.log.exists() or "Sanitizer" not in own.tail(1000), own.tail(100)
    check_tables(own)
