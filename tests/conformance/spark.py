"""One Spark for all tests of a run, started by the first that asks; a server's catalog is attached to a session of
its own, with the settings that `lhbox connect spark` printed."""
from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any, Iterator

import pytest

from server import ROOT

JARS = ROOT / "build" / "deps" / "jars"
EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A SparkSession with Iceberg's extensions and no catalog yet (see attach)."""
    from pyspark.sql import SparkSession
    home = tmp_path_factory.mktemp("spark")
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    session = (SparkSession.builder.master("local[1]")
               .config("spark.jars", ",".join(str(jar) for jar in sorted(JARS.glob("iceberg-spark-runtime-*.jar"))))
               .config("spark.sql.extensions", EXTENSIONS)
               .config("spark.driver.memory", "1g")
               .config("spark.ui.enabled", "false")
               .config("spark.sql.shuffle.partitions", "1")
               .config("spark.sql.warehouse.dir", str(home / "warehouse"))
               .config("spark.local.dir", str(home))
               .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={home}")
               .config("spark.sql.session.timeZone", "UTC")
               .config("spark.log.level", "ERROR")
               .getOrCreate())
    yield session
    session.stop()


def pinned_jar(package: str) -> Path:
    _, artifact, version = package.split(":")
    jar = JARS / f"{artifact}-{version}.jar"
    assert jar.exists(), f"{package} is not the pinned one"
    return jar


def settings(block: str) -> tuple[str, dict[str, str]]:
    """The package and the settings of a printed spark-sql command."""
    words = shlex.split(block.replace("\\\n", " "))
    assert words[0] == "spark-sql", block
    package = words[words.index("--packages") + 1]
    pairs = [words[at + 1].split("=", 1) for at, word in enumerate(words) if word == "--conf"]
    return package, {name: value for name, value in pairs}


def attach(spark: Any, block: str) -> Any:
    """A new session with the block's catalog, which stands under the warehouse's name."""
    package, conf = settings(block)
    pinned_jar(package)
    assert conf.pop("spark.sql.extensions") == EXTENSIONS
    session = spark.newSession()
    for name, value in conf.items():
        session.conf.set(name, value)
    return session


def rows(session: Any, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in session.sql(query).collect()]
