"""An independent reader of the variant encoding (Parquet format, VariantEncoding.md), strict: every byte of both parts
must be accounted for. Numbers come with the type they were stored as."""
from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any

INTEGERS = {3: ("int8", 1), 4: ("int16", 2), 5: ("int32", 4), 6: ("int64", 8)}
DECIMALS = {8: ("decimal4", 4, 9), 9: ("decimal8", 8, 18), 10: ("decimal16", 16, 38)}


def little(data: bytes) -> int:
    return int.from_bytes(data, "little")


def names_of(metadata: bytes) -> list[str]:
    """The dictionary. Its flag must say truly whether the names are sorted."""
    header = metadata[0]
    assert header & 0x0F == 1 and header & 0x20 == 0, f"header {header:#x}"
    width = (header >> 6) + 1
    count = little(metadata[1:1 + width])
    at = 1 + width
    offsets = [little(metadata[at + i * width:at + (i + 1) * width]) for i in range(count + 1)]
    start = at + (count + 1) * width
    assert offsets[0] == 0 and offsets == sorted(offsets) and start + offsets[-1] == len(metadata)
    raw = [metadata[start + a:start + b] for a, b in zip(offsets, offsets[1:])]
    assert len(set(raw)) == count, "a name stands twice"
    assert bool(header & 0x10) == (raw == sorted(raw)), "the sorted flag is wrong"
    return [name.decode("utf-8") for name in raw]


def read(metadata: bytes, value: bytes) -> Any:
    """The value: dict, list, str, bool, None, and numbers as (stored type, value)."""
    names = names_of(metadata)
    used: set[int] = set()
    found, size = _value(value, names, used)
    assert size == len(value), f"{len(value) - size} bytes too many"
    assert used == set(range(len(names))), "a name that no object has"
    return found


def _value(data: bytes, names: list[str], used: set[int]) -> tuple[Any, int]:
    basic, rest = data[0] & 3, data[0] >> 2
    if basic == 1:
        return data[1:1 + rest].decode("utf-8"), 1 + rest
    if basic == 2:
        return _object(data, rest, names, used)
    if basic == 3:
        return _array(data, rest, names, used)
    return _primitive(data, rest)


def _primitive(data: bytes, kind: int) -> tuple[Any, int]:
    if kind in (0, 1, 2):
        return {0: None, 1: True, 2: False}[kind], 1
    if kind in INTEGERS:
        name, size = INTEGERS[kind]
        return (name, int.from_bytes(data[1:1 + size], "little", signed=True)), 1 + size
    if kind == 7:
        return ("double", struct.unpack("<d", data[1:9])[0]), 9
    if kind in DECIMALS:
        name, size, digits = DECIMALS[kind]
        scale, unscaled = data[1], int.from_bytes(data[2:2 + size], "little", signed=True)
        assert scale <= 38 and len(str(abs(unscaled))) <= digits
        sign, figures = int(unscaled < 0), tuple(map(int, str(abs(unscaled))))
        return (name, Decimal((sign, figures, -scale))), 2 + size
    assert kind == 16, f"primitive {kind}"
    size = little(data[1:5])
    return data[5:5 + size].decode("utf-8"), 5 + size


def _items(data: bytes, offsets: list[int], names: list[str], used: set[int]) -> list[Any]:
    """The items that begin at the offsets; together they fill the room up to the last offset."""
    found = []
    spans = []
    for offset in offsets[:-1]:
        item, size = _value(data[offset:offsets[-1]], names, used)
        found.append(item)
        spans.append((offset, offset + size))
    spans.sort()
    edges = [0, *(end for _, end in spans)]
    assert [start for start, _ in spans] == edges[:-1] and edges[-1] == offsets[-1], "gaps or overlaps"
    return found


def _array(data: bytes, rest: int, names: list[str], used: set[int]) -> tuple[Any, int]:
    width, large = (rest & 3) + 1, rest >> 2 & 1
    count_width = 4 if large else 1
    count = little(data[1:1 + count_width])
    at = 1 + count_width
    offsets = [little(data[at + i * width:at + (i + 1) * width]) for i in range(count + 1)]
    start = at + (count + 1) * width
    assert offsets == sorted(offsets)
    return _items(data[start:], offsets, names, used), start + offsets[-1]


def _object(data: bytes, rest: int, names: list[str], used: set[int]) -> tuple[Any, int]:
    width, id_width, large = (rest & 3) + 1, (rest >> 2 & 3) + 1, rest >> 4 & 1
    count_width = 4 if large else 1
    count = little(data[1:1 + count_width])
    at = 1 + count_width
    ids = [little(data[at + i * id_width:at + (i + 1) * id_width]) for i in range(count)]
    at += count * id_width
    offsets = [little(data[at + i * width:at + (i + 1) * width]) for i in range(count + 1)]
    start = at + (count + 1) * width
    used.update(ids)
    keys = [names[i] for i in ids]
    raw = [key.encode() for key in keys]
    assert raw == sorted(set(raw)), "members are not in the order of their names"
    return dict(zip(keys, _items(data[start:], offsets, names, used))), start + offsets[-1]
