"""Apache Iceberg's REST Compatibility Kit against the embedded catalog: each of its tests is one here (tests.txt lists
them). Maven brings its pinned parts from Maven Central into build/deps/maven; a new catalog for each run."""
from __future__ import annotations

import json
import os
import re
import subprocess
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Iterator

import pytest

from server import LHBOX, ROOT

HERE = Path(__file__).parent
TESTS = (HERE / "tests.txt").read_text().splitlines()
EMPTY = "the REST protocol has no form of the empty namespace: a name in a path is never empty"
# What the kit leaves out by itself, and why that is right.
SKIPPED = {
    "View listViewsInEmptyNamespace": EMPTY,
    "Catalog createAndDropEmptyNamespace": EMPTY,
    "Catalog listNamespacesWithEmptyNamespace": EMPTY,
    "Catalog listTablesInEmptyNamespace": EMPTY,
    "Catalog namespacePropertiesOnEmptyNamespace": EMPTY,
    "Catalog testListNestedNamespaces": "the kit has no switch for it (tests/e2e/test_catalog_rest.py R24 shows it)",
}


class Served:
    """`lhbox serve` on an empty data directory, with one warehouse that takes file locations below /tmp."""

    def __init__(self, home: Path) -> None:
        self.home, self.log = home, home / "server.log"
        config = home / "lhbox.conf"
        config.write_text(f"[server]\nport = 0\ndata = {home}/data\n[catalog rck]\nallowed_locations = file:///tmp\n")
        self.ask("init", "--config", str(config), "--save", str(home / "key.json"))
        self.key = json.loads((home / "key.json").read_text())["api_key"]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen([LHBOX, "serve", "--config", str(config)], stdout=log,
                                            stderr=subprocess.STDOUT, cwd=home)
        self.url = self.wait_for_url()
        (home / "api.key").write_text(self.key)
        self.ask("warehouse", "create", "rck", "--url", self.url, "--key-file", str(home / "api.key"))

    def ask(self, *words: str) -> None:
        ran = subprocess.run([LHBOX, *words], cwd=self.home, capture_output=True, text=True)
        assert ran.returncode == 0, ran

    def wait_for_url(self) -> str:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.log.read_text()
            if found := re.search(r'"event":"serving","url":"([^"]+)"', self.log.read_text()):
                return found[1]
            time.sleep(0.02)
        raise AssertionError(self.log.read_text())

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(60) == 0, self.log.read_text()


def run_kit(served: Served) -> Path:
    """Runs the kit; the folder of its JUnit files."""
    maven = served.home / "maven"
    ran = subprocess.run(
        ["mvn", "-q", "-B", "-C", "-f", str(HERE / "pom.xml"), "surefire:test", f"-Drck.build={maven}",
         f"-Dmaven.repo.local={ROOT / 'build' / 'deps' / 'maven'}", f"-Drck.uri={served.url}/iceberg",
         "-Drck.warehouse=rck"],
        env={**os.environ, "CATALOG_TOKEN": served.key}, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    reports = maven / "surefire-reports"
    assert list(reports.glob("*.xml")), ran.stdout + ran.stderr  # a failed test is told below, by its name
    return reports


def outcome_of(case: ElementTree.Element) -> tuple[str, str]:
    for child in case:
        if child.tag in ("failure", "error", "skipped"):
            return child.tag, f"{child.get('message')}\n{child.text}"
    return "passed", ""


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[str, str]]]:
    """Outcome and message of each test that the kit ran, by kind and name."""
    served = Served(tmp_path_factory.mktemp("rck"))
    try:
        reports = run_kit(served)
    finally:
        served.stop()
    found = {}
    for report in reports.glob("TEST-*.xml"):
        kind = "View" if "ViewCatalogTests" in report.name else "Catalog"
        for case in ElementTree.parse(report).iter("testcase"):
            found[f"{kind} {case.get('name')}"] = outcome_of(case)
    yield found


def test_the_list_is_the_kits(kit: dict[str, tuple[str, str]]) -> None:
    assert sorted(kit) == TESTS


@pytest.mark.parametrize("name", TESTS)
def test_kit(kit: dict[str, tuple[str, str]], name: str) -> None:
    outcome, message = kit.get(name, ("missing", "the kit did not run it"))
    if outcome == "skipped" and name in SKIPPED:
        pytest.skip(SKIPPED[name])
    assert outcome == "passed", message
