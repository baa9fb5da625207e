"""Arrow columns, as all readers of the matrix give them, to the plain values of type_values."""
from __future__ import annotations

import struct
import uuid
from typing import Any, Iterable

import pyarrow as pa


def sorted_pairs(pairs: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """A map has no order."""
    return sorted(pairs, key=lambda pair: pair[0])


def table_values(table: pa.Table, kind: str) -> dict[str, list[Any]]:
    """Every column by name; `kind` is the type that the case is about."""
    return {name: [_value(table.column(name)[n], kind) for n in range(table.num_rows)] for name in table.column_names}


def _value(scalar: pa.Scalar, kind: str) -> Any:
    if isinstance(scalar, pa.ExtensionScalar):
        scalar = scalar.value if scalar.is_valid else scalar
    if not scalar.is_valid:
        return None
    type_ = scalar.type
    if pa.types.is_struct(type_):
        return {type_.field(i).name: _value(scalar[i], kind) for i in range(type_.num_fields)}
    if pa.types.is_map(type_):
        pairs = scalar.values
        return sorted_pairs((_value(pairs.field(0)[i], kind), _value(pairs.field(1)[i], kind)) for i in range(len(pairs)))
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return [_value(element, kind) for element in scalar.values]
    return _scalar(scalar, kind)


def _scalar(scalar: pa.Scalar, kind: str) -> Any:
    type_ = scalar.type
    if pa.types.is_floating(type_):
        return struct.pack(">f" if type_ == pa.float32() else ">d", scalar.as_py()).hex()
    if pa.types.is_temporal(type_):
        return _temporal(scalar, kind)
    if kind == "uuid" and (pa.types.is_fixed_size_binary(type_)):
        return str(uuid.UUID(bytes=scalar.as_py()))
    value = scalar.as_py()
    return value.hex() if isinstance(value, bytes) else value


def _temporal(scalar: pa.Scalar, kind: str) -> int:
    """In the unit of the kind; the zone's being there or not must fit it, too."""
    type_ = scalar.type
    if not pa.types.is_timestamp(type_):
        return scalar.value
    assert (type_.tz is not None) == ("tz" in kind), f"{type_} for {kind}"
    wanted = "ns" if kind.endswith("_ns") else "us"
    assert type_.unit == wanted, f"{type_} for {kind}"
    return scalar.value


