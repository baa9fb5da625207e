"""Reads the Thrift structs of a Parquet file without a library, for what libraries don't show."""
from __future__ import annotations

import struct
from typing import Any


class Compact:
    """Thrift's compact protocol: a struct becomes a dict by field id, lists are lists."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        result, shift = 0, 0
        while True:
            byte = self.byte()
            result |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return result

    def zigzag(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def struct(self) -> dict[int, Any]:
        fields: dict[int, Any] = {}
        last = 0
        while (head := self.byte()) != 0:
            step, kind = head >> 4, head & 15
            last = last + step if step else self.zigzag()
            assert last not in fields
            fields[last] = kind == 1 if kind in (1, 2) else self.value(kind)
        return fields

    def value(self, kind: int) -> Any:
        if kind in (1, 2):
            return self.byte() == 1
        if kind in (4, 5, 6):
            return self.zigzag()
        if kind == 8:
            size = self.varint()
            self.at += size
            return self.data[self.at - size:self.at]
        if kind == 9:
            head = self.byte()
            count = head >> 4 if head >> 4 != 15 else self.varint()
            return [self.value(head & 15) for _ in range(count)]
        assert kind == 12, kind
        return self.struct()


def footer(data: bytes) -> dict[int, Any]:
    """FileMetaData."""
    assert data[:4] == data[-4:] == b"PAR1"
    size = struct.unpack("<I", data[-8:-4])[0]
    reader = Compact(data, len(data) - 8 - size)
    result = reader.struct()
    assert reader.at == len(data) - 8
    return result


def at(data: bytes, offset: int) -> tuple[dict[int, Any], int]:
    """The struct at an offset, and the offset behind it."""
    reader = Compact(data, offset)
    return reader.struct(), reader.at
