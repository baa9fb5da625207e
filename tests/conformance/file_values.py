"""Tables of many files whose bounds are hard: each column of one type, each file with two of its values, so that a filter
leaves most files out; and the same rows again as one file a row group apart."""
from __future__ import annotations

import json
from typing import Any

from server import Server

TEXTS = ["", "a", "a" * 16, "a" * 16 + "b", "a" * 15 + "\ud7ffz", "a" * 15 + "\U0010ffffz", "\U0010ffff" * 16 + "z",
         "ä" * 20, "\U0001f600" * 17, "\uffff" * 17, "zz", "\u0000"]
BLOBS = ["", "AA==", "/w==", "/" * 24, "qrvM3aq7zN2qu8zdqrvM3f8=", "qrvM3aq7zN2qu8zdqrvM/f8=", "gA==", "fw==", "AQI=",
         "//8A", "QQ==", "YWJj"]
TIMES = ["0001-01-01T00:00:00", "1677-09-21T00:12:44", "1969-12-31T23:59:59.999999", "1969-12-31T22:00:00",
         "1970-01-01T00:00:00", "1970-01-01T00:00:00.000001", "1970-01-01T01:00:00", "1999-12-31T23:59:59.999999",
         "2000-02-29T12:00:00", "2026-11-30T12:34:56.789012", "2262-04-11T23:47:16", "9999-12-31T23:59:59.999999"]
NANOS = [time for time in TIMES[2:10]] + ["1969-12-31T23:59:59.999999999", "1970-01-01T00:00:00.000000001",
                                                             "2026-11-30T12:34:56.789012345", "2026-11-30T12:34:56.789012346"]
FLOATS: list[Any] = ["NaN", "-Infinity", -3.4e38, -1.5, -1e-45, -0.0, 0.0, 1e-45, 1.5, 3.4e38, "Infinity", "NaN"]

# name: type, twelve values as they are sent
COLUMNS: dict[str, tuple[str, list[Any]]] = {
    "c_boolean": ("boolean", [False] * 5 + [True] * 7),
    "c_int": ("int", [-2**31, -65536, -256, -1, 0, 1, 127, 128, 255, 256, 65536, 2**31 - 1]),
    "c_long": ("long", [-2**63, -2**53 - 1, -2**32, -1, 0, 1, 255, 256, 2**31, 2**53 + 1, 2**62, 2**63 - 1]),
    "c_float": ("float", FLOATS),
    "c_double": ("double", FLOATS[:2] + [-1.7e308] + FLOATS[3:9] + [1.7e308] + FLOATS[10:]),
    "c_decimal9": ("decimal(9,2)", ["-9999999.99", "-327.69", "-1.29", "-1.28", "-0.01", "0", "0.01", "1.27", "1.28", "2.56",
                                    "327.68", "9999999.99"]),
    "c_decimal18": ("decimal(18,0)", [-10**18 + 1, -2**40, -129, -128, -1, 0, 1, 127, 128, 2**31, 2**40, 10**18 - 1]),
    "c_decimal38": ("decimal(38,10)", ["-9999999999999999999999999999.9999999999", "-18446744073709551616.5", "-1.5", "-0.0000000128",
                                       "-0.0000000001", "0", "0.0000000001", "0.0000000127", "0.0000000128", "1.5",
                                       "18446744073709551616.5", "9999999999999999999999999999.9999999999"]),
    "c_date": ("date", ["0001-01-01", "1500-02-28", "1677-09-21", "1969-01-01", "1969-12-31", "1970-01-01", "1970-01-02",
                        "1999-12-31", "2000-02-29", "2026-11-30", "2262-04-12", "9999-12-31"]),
    "c_time": ("time", ["00:00:00", "00:00:00.000001", "00:00:01", "00:59:59.999999", "01:00:00", "11:59:59", "12:00:00",
                        "12:34:56.789012", "18:00:00", "23:00:00", "23:59:59", "23:59:59.999999"]),
    "c_timestamp": ("timestamp", TIMES),
    "c_timestamptz": ("timestamptz", [time + "Z" for time in TIMES]),
    "c_string": ("string", TEXTS),
    "c_uuid": ("uuid", [f"{first}0000000-0000-4000-8000-00000000000{last}" for first, last in
                        ("00", "01", "10", "70", "7f", "80", "8f", "a0", "b1", "c2", "f0", "ff")]),
    "c_fixed": ("fixed[2]", ["AAA=", "AAE=", "AP8=", "AQA=", "f/8=", "gAA=", "gAE=", "/wA=", "//4=", "//8=", "QUI=", "YWI="]),
    "c_binary": ("binary", BLOBS),
}
NANO_COLUMNS = {"c_timestamp_ns": ("timestamp_ns", NANOS[:12])}
FILES = 12


def row(columns: dict[str, tuple[str, list[Any]]], n: int) -> dict[str, Any]:
    """Of file n // 4: two neighbours of each column's values, and nulls."""
    file, place = divmod(n, 4)
    made: dict[str, Any] = {"n": n, "day": f"2026-01-{file + 1:02}"}
    for at, (name, (_, values)) in enumerate(columns.items()):
        first = (file * 5 + at) % FILES  # another order for each column
        made[name] = None if place == 2 else values[first if place == 0 else (first + 1) % FILES]
    if place == 3 and file == 0:  # a file with a null in every place
        made.update(dict.fromkeys(columns))
    return made


def make(server: Server, name: str, columns: dict[str, tuple[str, list[Any]]], version: int, **more: Any) -> None:
    """The table, its rows in twelve files: by as many rolls, or by partition."""
    types = {"n": "long required", "day": "date required", **{column: type_ for column, (type_, _) in columns.items()}}
    partitioned = {"partition": ["day(day)"]} if version == 3 else {}
    server.make_table(name, types, format_version=version, **partitioned, **more)
    sink = server.make_sink(name, name.replace(".", "_"))
    rows = [row(columns, n) for n in range(4 * FILES)]
    size = len(rows) if version == 3 else 4
    for at in range(0, len(rows), size):
        body = json.dumps(rows[at:at + size]).encode()
        assert server.send(sink, f"b{at}", body).json["rejected"] == 0
        server.roll(sink)
    assert server.books(sink)["committed"] == len(rows), server.books(sink)
