"""Fixtures of tests/e2e and tests/conformance: a server for a module, and one that a test may kill."""
from __future__ import annotations

from pathlib import Path
from typing import Iterator

import pytest

from server import Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A running server shared by the tests of one file."""
    running = Server(tmp_path_factory.mktemp("lhbox")).start()
    yield running
    assert running.terminate() == 0, running.tail()  # a sanitizer that found something says so here, too


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    """A server of this test alone, not started yet."""
    own = Server(tmp_path)
    yield own
    own.kill()
    assert not own.log.exists() or "Sanitizer" not in own.tail(1000), own.tail(100)
