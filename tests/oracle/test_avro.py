"""Our Avro files read by fastavro, and its files, of every shape, read by us."""
from __future__ import annotations

import io
import json
import random
import struct
import subprocess
from pathlib import Path
from typing import Any

import fastavro
import pytest

from programs import BUILD, run

CODECS = ["null", "deflate", "snappy", "zstandard"]
ENTRIES = [
    {"status": 0, "snapshot_id": None,
     "data_file": {"path": "s3://wh/ü.parquet", "ratio": -0.5, "small": 0.0, "flag": False,
                   "sizes": [{"key": 63, "value": b"\0\xff\x80"}, {"key": 64, "value": b"\0\xff\x80"}], "splits": []}},
    {"status": 1, "snapshot_id": -2 ** 63,
     "data_file": {"path": "", "ratio": 0.5, "small": struct.unpack("<f", struct.pack("<f", 1 / 3))[0], "flag": True,
                   "sizes": [{"key": 63, "value": b"\0\xff"}, {"key": 64, "value": b"\0\xff"}],
                   "splits": [0, -2 ** 63, 2 ** 63 - 1]}},
    {"status": 2, "snapshot_id": 2 ** 63 - 1,
     "data_file": {"path": "s3://wh/ü.parquet", "ratio": 1.5, "small": struct.unpack("<f", struct.pack("<f", 2 / 3))[0],
                   "flag": False, "sizes": None, "splits": [0, -2 ** 63, 2 ** 63 - 1]}},
]


@pytest.mark.parametrize("codec", CODECS)
def test_fastavro_reads_what_we_write(codec: str, tmp_path: Path) -> None:
    path = tmp_path / "entries.avro"
    run("avro_case", "write", codec, str(path))
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        assert reader.codec == codec
        assert reader.metadata["format-version"] == "2"
        assert reader.metadata["partition-spec"] == "[]"
        fields = json.loads(reader.metadata["avro.schema"])["fields"]
        assert [f["field-id"] for f in fields] == [0, 1, 2]
        assert fields[2]["type"]["fields"][5]["type"]["element-id"] == 108
        assert list(reader) == ENTRIES


def test_equal_input_gives_equal_bytes(tmp_path: Path) -> None:
    first, second, other = (tmp_path / name for name in "abc")
    for path in (first, second):
        run("avro_case", "write", "deflate", str(path))
    run("avro_case", "write", "null", str(other))
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes()[-16:] != other.read_bytes()[-16:]


@pytest.mark.parametrize("codec", CODECS)
def test_we_read_what_we_write(codec: str, tmp_path: Path) -> None:
    path = tmp_path / "entries.avro"
    run("avro_case", "write", codec, str(path))
    records = json.loads(run("avro_case", "read", str(path)))
    assert [[item[1] for item in record] for record in records] == [[0, 1, 2]] * 3
    assert [item[1] for item in records[0][2][2]] == [100, 101, 102, 103, 104, 107]
    assert records[1][1] == ["snapshot_id", 1, -2 ** 63]


# ---- any schema ----

class Maker:
    """Random schemas, and values of them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names = 0

    def name(self) -> str:
        self.names += 1
        return f"n{self.names}"

    def schema(self, depth: int) -> Any:
        simple = ["null", "boolean", "int", "long", "float", "double", "bytes", "string", "fixed", "enum"]
        kind = self.random.choice(simple if depth == 0 else [*simple, *["record", "array", "map", "union"] * 2])
        if kind == "fixed":
            return {"type": "fixed", "name": self.name(), "size": self.random.choice([0, 1, 16])}
        if kind == "enum":
            return {"symbols": ["A", "B", "C"], "name": self.name(), "type": "enum"}
        if kind == "record":
            return self.record(depth)
        if kind == "array":
            return {"items": self.schema(depth - 1), "type": "array", "element-id": 7}
        if kind == "map":
            return {"type": "map", "values": self.schema(depth - 1)}
        if kind == "union":
            return ["null", *self.random.sample(["long", "string", "boolean", "double"], 2)]
        return self.random.choice([kind, {"type": kind}])

    def record(self, depth: int) -> Any:
        fields = [{"name": self.name(), "type": self.schema(depth - 1), "doc": "a \"field\" \u00fc"}
                  for _ in range(self.random.randrange(5))]
        for field in fields[::2]:
            field["field-id"] = self.random.randrange(1, 1000)
        return {"fields": fields, "type": "record", "name": self.name()}

    def value(self, schema: Any) -> Any:
        if isinstance(schema, list):
            return self.value(self.random.choice(schema))
        kind = schema if isinstance(schema, str) else schema["type"]
        pick = self.random
        if kind == "fixed":
            return pick.randbytes(schema["size"])
        if kind == "enum":
            return pick.choice(schema["symbols"])
        if kind == "record":
            return {f["name"]: self.value(f["type"]) for f in schema["fields"]}
        if kind == "array":
            return [self.value(schema["items"]) for _ in range(pick.choice([0, 1, 5]))]
        if kind == "map":
            return {f"k{i}": self.value(schema["values"]) for i in range(pick.choice([0, 1, 3]))}
        return {"null": None, "boolean": pick.random() < 0.5, "int": pick.choice([-2 ** 31, 2 ** 31 - 1, 0, -1, 64]),
                "long": pick.choice([-2 ** 63, 2 ** 63 - 1, 0, 127, 8192]), "float": pick.choice([0.0, -1.5, 3e38]),
                "double": pick.choice([0.0, -0.0, 1e300, float("inf")]), "bytes": pick.randbytes(pick.randrange(200)),
                "string": "ü😀" * pick.randrange(70)}[kind]


def said(schema: Any, value: Any) -> Any:
    """A value as avro_case prints it."""
    if isinstance(schema, list):
        kinds = {"null": type(None), "boolean": bool, "long": int, "double": float, "string": str}
        return said(next(s for s in schema if type(value) is kinds[s]), value)
    kind = schema if isinstance(schema, str) else schema["type"]
    if kind in ("float", "double"):
        return struct.pack("<d", value if kind == "double" else struct.unpack("<f", struct.pack("<f", value))[0]).hex()
    if kind in ("string", "enum"):
        return value.encode().hex()
    if kind in ("bytes", "fixed"):
        return value.hex()
    if kind == "record":
        return [[f["name"], f.get("field-id", -1), said(f["type"], value[f["name"]])] for f in schema["fields"]]
    if kind == "array":
        return {"items": [said(schema["items"], v) for v in value]}
    if kind == "map":
        return {"items": [[["key", -1, k.encode().hex()], ["value", -1, said(schema["values"], v)]] for k, v in value.items()]}
    return value


@pytest.mark.parametrize("seed", range(60))
def test_we_read_what_fastavro_writes(seed: int, tmp_path: Path) -> None:
    maker = Maker(seed)
    schema = maker.record(4)
    values = [maker.value(schema) for _ in range(maker.random.choice([0, 1, 40]))]
    path = tmp_path / "any.avro"
    with path.open("wb") as file:
        fastavro.writer(file, schema, values, codec=CODECS[seed % 4], sync_interval=300)
    assert json.loads(run("avro_case", "read", str(path))) == [said(schema, value) for value in values]


def test_types_are_found_by_name(tmp_path: Path) -> None:
    """A name stands for the type defined before it, in its own namespace first, and inside itself."""
    schema = {"type": "record", "name": "a.node", "fields": [
        {"name": "hash", "type": {"type": "fixed", "name": "md", "size": 2}},
        {"name": "again", "type": "md"},
        {"name": "full", "type": "a.md"},
        {"name": "next", "type": ["null", "node"]}]}
    values = [{"hash": b"ab", "again": b"cd", "full": b"ef",
               "next": {"hash": b"gh", "again": b"ij", "full": b"kl", "next": None}}]
    path = tmp_path / "named.avro"
    with path.open("wb") as file:
        fastavro.writer(file, schema, values)
    record = json.loads(run("avro_case", "read", str(path)))[0]
    assert [item[2] for item in record[:3]] == ["6162", "6364", "6566"]
    assert [item[2] for item in record[3][2]] == ["6768", "696a", "6b6c", None]


@pytest.mark.parametrize("codec", CODECS)
def test_damage_is_told_and_never_crashes(codec: str, tmp_path: Path) -> None:
    """Each byte of a file changed or missing: it is read, or it is corrupt, and nothing else happens."""
    out = io.BytesIO()
    schema = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "long"}, {"name": "s", "type": "string"}]}
    fastavro.writer(out, schema, [{"n": i, "s": "x" * i} for i in range(20)], codec=codec)
    good, path, told = out.getvalue(), tmp_path / "bad.avro", 0
    for at in range(0, len(good), 3):
        for bad in (good[:at], good[:at] + bytes([good[at] ^ 0x41]) + good[at + 1:]):
            path.write_bytes(bad)
            done = subprocess.run([BUILD / "tests" / "programs" / "avro_case", "read", path], capture_output=True)
            assert done.returncode in (0, 3), done.stderr
            told += done.returncode == 3
            if done.returncode == 3:
                assert done.stderr.startswith(b"CORRUPT: ")
    assert told > len(good) // 3
