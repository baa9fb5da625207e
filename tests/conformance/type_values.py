"""What the type matrix sends: for each Iceberg type its rows as JSON text, and the values that a reader must find.

A value is kept in one plain form for all readers, which nothing rounds: integers, days, microseconds and nanoseconds
as int, floats as their bits, decimals as Decimal, bytes as hex, maps as pairs sorted by key, variants as from JSON with
all numbers as Decimal.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

Value = Any
Sent = tuple[str, Value]  # JSON text, value


def text(value: str) -> Sent:
    import json
    return json.dumps(value, ensure_ascii=False), value


def variant(json: str) -> Sent:
    from json import loads
    return json, loads(json, parse_int=Decimal, parse_float=Decimal)


def same(value: int | bool) -> Sent:
    return str(value).lower(), value


@dataclass(frozen=True)
class Case:
    """One type; `more` are further values worth sending."""

    type: str
    minimum: Sent
    maximum: Sent
    typical: Sent
    empty: Sent | None = None
    more: tuple[Sent, ...] = ()
    versions: tuple[int, ...] = (2, 3)
    is_key: bool = True

    @property
    def kind(self) -> str:
        """The type's word: decimal of decimal(9,2)."""
        return self.type.split("(")[0].split("[")[0]

    @property
    def values(self) -> list[Sent]:
        return [self.minimum, self.maximum, self.typical, *self.more]


def decimal(precision: int, scale: int, typical: str) -> Case:
    digits = "9" * precision
    largest = digits[:precision - scale] or "0"
    largest += "." + digits[precision - scale:] if scale else ""
    return Case(f"decimal({precision},{scale})", (f"-{largest}", Decimal(f"-{largest}")),
                (f'"{largest}"', Decimal(largest)), (typical, Decimal(typical)))


CASES = [
    Case("boolean", same(False), same(True), same(True), is_key=False),
    Case("int", same(-2**31), same(2**31 - 1), same(42)),
    Case("long", same(-2**63), same(2**63 - 1), same(2**53 + 1)),
    Case("float", ("-3.4028235e38", "ff7fffff"), ("3.4028235e38", "7f7fffff"), ("0.1", "3dcccccd"),
         more=(('"NaN"', "7fc00000"), ('"Infinity"', "7f800000"), ('"-Infinity"', "ff800000"), ("-0.0", "80000000"),
               ("0", "00000000"), ("1e-45", "00000001"))),
    Case("double", ("-1.7976931348623157e308", "ffefffffffffffff"), ("1.7976931348623157e308", "7fefffffffffffff"),
         ("0.1", "3fb999999999999a"),
         more=(('"NaN"', "7ff8000000000000"), ('"Infinity"', "7ff0000000000000"), ('"-Infinity"', "fff0000000000000"),
               ("-0.0", "8000000000000000"), ("0", "0000000000000000"), ("4.9e-324", "0000000000000001"))),
    decimal(1, 0, "7"), decimal(9, 2, "12.50"), decimal(18, 18, "0.000000000000000001"), decimal(19, 0, "1234567890123456789"),
    decimal(38, 10, "-1.0000000001"), decimal(38, 38, "0." + "0" * 37 + "1"),
    Case("date", ('"0001-01-01"', -719162), ('"9999-12-31"', 2932896), ('"2026-11-30"', 20787),
         more=(('"1969-12-31"', -1), ('"1500-02-28"', -171606))),
    Case("time", ('"00:00"', 0), ('"23:59:59.999999"', 86_399_999_999), ('"12:34:56.789012"', 45_296_789_012)),
    Case("timestamp", ('"0001-01-01T00:00:00"', -62_135_596_800_000_000), ('"9999-12-31T23:59:59.999999"', 253_402_300_799_999_999),
         ('"2026-11-30T12:34:56.789012"', 1_796_042_096_789_012),
         more=(('"1969-12-31T23:59:59.999999"', -1), ('"1500-02-28 12:00"', -14_826_715_200_000_000))),
    Case("timestamptz", ('"0001-01-01T00:00:00Z"', -62_135_596_800_000_000),
         ('"9999-12-31T23:59:59.999999Z"', 253_402_300_799_999_999),
         ('"2026-11-30T14:34:56.789012+02:00"', 1_796_042_096_789_012),
         more=(('"1969-12-31T23:59:59.999999Z"', -1), ('"1500-02-28 12:00Z"', -14_826_715_200_000_000))),
    Case("timestamp_ns", ('"1677-09-21T00:12:43.145224192"', -2**63), ('"2262-04-11T23:47:16.854775807"', 2**63 - 1),
         ('"2026-11-30T12:34:56.789012345"', 1_796_042_096_789_012_345),
         more=(('"1969-12-31T23:59:59.999999999"', -1), ('"2262-04-11T23:47:16.854775806"', 2**63 - 2),
               ('"1677-09-21T00:12:43.145224194"', -2**63 + 2)), versions=(3,)),
    Case("timestamptz_ns", ('"1677-09-21T00:12:43.145224192Z"', -2**63), ('"2262-04-11T23:47:16.854775807Z"', 2**63 - 1),
         ('"2026-11-30T14:34:56.789012345+02:00"', 1_796_042_096_789_012_345),
         more=(('"1969-12-31T23:59:59.999999999Z"', -1), ('"2262-04-11T23:47:16.854775806Z"', 2**63 - 2),
               ('"1677-09-21T00:12:43.145224194Z"', -2**63 + 2)), versions=(3,)),
    Case("string", ('"\\u0000"', "\0"), text("\U0010ffff"), text("Zürich, 日本, 😀"), text(""),
         more=(text("\U0010ffff" * 17), text("a" * 15 + "\ud7ff\U00010000"), ('"\\"\\\\\\n\\u001f"', '"\\\n\x1f'))),
    Case("uuid", text("00000000-0000-0000-0000-000000000000"), text("ffffffff-ffff-ffff-ffff-ffffffffffff"),
         ('"F79C3E09-677C-4BBD-A479-3F349CB785E7"', "f79c3e09-677c-4bbd-a479-3f349cb785e7")),
    Case("fixed[1]", ('"AA=="', "00"), ('"/w=="', "ff"), ('"Kg=="', "2a")),
    Case("fixed[16]", ('"AAAAAAAAAAAAAAAAAAAAAA=="', "00" * 16), ('"_____________________w"', "ff" * 16),
         ('"AAECAwQFBgcICQoLDA0ODw=="', bytes(range(16)).hex())),
    Case("binary", ('"AA=="', "00"), ('"' + "/" * 24 + '"', "ff" * 18), ('"qrvM3Q=="', "aabbccdd"), ('""', "")),
    Case("variant", variant(str(-2**63)), variant("9" * 38), variant('{"b":[1,2.50,"x",null,true],"a":{"é":1e300}}'), variant("{}"),
         more=(variant("[]"), variant('""'), variant('"' + "x" * 64 + '"'), variant("false"), variant("0.1"), variant("-32769"),
               variant("1e-38"), variant("123456789.5")), versions=(3,), is_key=False),
    Case("unknown", ("null", None), ("null", None), ("null", None), versions=(3,), is_key=False),
]


@dataclass(frozen=True)
class Row:
    """One row of a case: what it shows, its JSON members, and its values by column."""

    shows: str
    members: dict[str, str] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)


# Of each shape: optional without and within, required without and within, and the two mixtures.
SHAPES = {"flat": ("flat", "flat_req"), "in struct": ("struct", "struct_req", "struct_within", "struct_without"),
          "in list": ("list", "list_req", "list_within", "list_without"),
          "in map": ("map", "map_req", "map_within", "map_without"), "as key": ("key",)}


LISTS, MAPS = SHAPES["in list"], SHAPES["in map"]


def columns(case: Case) -> dict[str, str]:
    """The table of a case: each shape, optional and required at every level."""
    if case.kind == "unknown":  # never required, and nothing may hold it alone
        return {"n": "int required", "flat": "unknown", "struct": "struct<v: unknown, w: int>"}
    found = {"n": "int required", "flat": case.type, "flat_req": f"{case.type} required",
             "struct": f"struct<v: {case.type}, w: int>", "struct_req": f"struct<v: {case.type} required> required",
             "list": f"list<{case.type}>", "list_req": f"list<{case.type} required> required",
             "map": f"map<string, {case.type}>", "map_req": f"map<string, {case.type} required> required"}
    found |= {"struct_within": f"struct<v: {case.type} required>", "struct_without": f"struct<v: {case.type}> required",
              "list_within": f"list<{case.type} required>", "list_without": f"list<{case.type}> required",
              "map_within": f"map<string, {case.type} required>", "map_without": f"map<string, {case.type}> required"}
    if case.is_key:
        found["key"] = f"map<{case.type}, int>"
    return found


def rows(case: Case) -> list[Row]:
    made = [_null(case), _null_inside(case), _empty(case)]
    made += [_all(case, sent) for sent in case.values]
    return made


def body(case: Case) -> bytes:
    """The batch with the case's rows, numbered by the column n."""
    lines = ["{" + ",".join([f'"n":{n}', *(f'"{name}":{json}' for name, json in row.members.items())]) + "}"
             for n, row in enumerate(rows(case))]
    return ("[" + ",\n".join(lines) + "]").encode("utf-8")


def _required(sent: Sent) -> Row:
    json, value = sent
    members, values = {"flat_req": json}, {"flat_req": value}
    for end in ("req", "within", "without"):
        members |= {f"struct_{end}": f'{{"v":{json}}}', f"list_{end}": f"[{json}]", f"map_{end}": f'{{"k":{json}}}'}
        values |= {f"struct_{end}": {"v": value}, f"list_{end}": [value], f"map_{end}": [("k", value)]}
    return Row("", members, values)


def _key(case: Case, sent: Sent) -> tuple[str, Value]:
    json, value = sent
    return (f'{{{json}:1}}' if case.kind == "string" else f'[{{"key":{json},"value":1}}]'), [(value, 1)]


def _with(case: Case, shows: str, base: Row, members: dict[str, str], values: dict[str, Value]) -> Row:
    kept = columns(case)
    made = Row(shows, {**base.members, **members}, {**base.values, **values})
    return Row(shows, {k: v for k, v in made.members.items() if k in kept}, {k: v for k, v in made.values.items() if k in kept})


def _null(case: Case) -> Row:
    names = ("flat", "struct", "list", "map", "key", "struct_within", "list_within", "map_within")
    return _with(case, "null", _required(case.typical), dict.fromkeys(names, "null"), dict.fromkeys(names))


def _null_inside(case: Case) -> Row:
    key, key_value = _key(case, case.typical)
    return _with(case, "null inside", _required(case.typical),
                 {"struct": '{"v":null}', "list": "[null]", "map": '{"k":null}', "key": key.replace("1}", "null}"),
                  "struct_without": '{"v":null}', "list_without": "[null]", "map_without": '{"k":null}'},
                 {"flat": None, "struct": {"v": None, "w": None}, "list": [None], "map": [("k", None)], "key": [(key_value[0][0], None)],
                  "struct_without": {"v": None}, "list_without": [None], "map_without": [("k", None)]})


def _empty(case: Case) -> Row:
    given = case.empty or case.typical
    base = _required(given)
    flat = ({"flat": case.empty[0]}, {"flat": case.empty[1]}) if case.empty else ({}, {"flat": None})
    return _with(case, "empty", base,
                 {**flat[0], "struct": "{}", "struct_without": "{}", "key": "{}", **dict.fromkeys(LISTS, "[]"), **dict.fromkeys(MAPS, "{}")},
                 {**flat[1], "struct": {"v": None, "w": None}, "struct_without": {"v": None}, "key": [],
                  **{name: [] for name in (*LISTS, *MAPS)}})


def _all(case: Case, sent: Sent) -> Row:
    (json, value), (other, other_value) = sent, case.typical
    key, key_value = _key(case, sent)
    members = {"flat": json, "struct": f'{{"w":1,"v":{json}}}', "list": f"[{json},{other},{json}]", "map": f'{{"a":{json},"":{other}}}',
               "key": key}
    values = {"flat": value, "struct": {"v": value, "w": 1}, "list": [value, other_value, value], "map": [("", other_value), ("a", value)],
              "key": key_value}
    return _with(case, json, _required(sent), members, values)
