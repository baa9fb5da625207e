"""JSON to variant, judged by an independent reader of the encoding: the value, and the type each number is stored as."""
from __future__ import annotations

import json
import os
import random
import subprocess
from decimal import Decimal
from typing import Any

import pytest

from programs import BUILD
from variant_reader import read

ROWS = 20000 if os.environ.get("LHBOX_TEST_TIER") == "all" else 1000


class Text(str):
    """A number as it was written."""


def stored_as(text: str) -> tuple[str, Any]:
    """The law: integral values that fit 64 bits as the smallest integer, others as a decimal of up to 38 digits where
    that is exact, else as a double."""
    exponent = int(text.lower().partition("e")[2] or "0")
    if abs(exponent) > 999 and any(c in "123456789" for c in text.lower().partition("e")[0]):
        return "double", float(text)
    sign, digits, scale = Decimal(text).as_tuple()
    unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
    while unscaled and unscaled % 10 == 0:
        unscaled, scale = unscaled // 10, scale + 1
    scale = 0 if unscaled == 0 else scale
    if 0 <= scale <= 38 and len(str(abs(unscaled))) + scale <= 38:
        unscaled, scale = unscaled * 10**scale, 0
    if scale == 0 and -2**63 <= unscaled < 2**63:
        bits = next(n for n in (8, 16, 32, 64) if -2**(n - 1) <= unscaled < 2**(n - 1))
        return f"int{bits}", unscaled
    figures = len(str(abs(unscaled)))
    if -38 <= scale <= 0 and figures <= 38:
        return f"decimal{4 if figures <= 9 else 8 if figures <= 18 else 16}", Decimal((sign, tuple(map(int, str(abs(unscaled)))), scale))
    return "double", float(text)


def wanted(text: str) -> Any:
    """What the JSON text must come back as."""
    def numbers(value: Any) -> Any:
        if isinstance(value, Text):
            return stored_as(value)
        if isinstance(value, dict):
            return {name: numbers(inner) for name, inner in value.items()}
        return [numbers(inner) for inner in value] if isinstance(value, list) else value
    return numbers(json.loads(text, parse_int=Text, parse_float=Text))


def decode(rows: list[str], unknown: str = "reject", type_: str = "variant") -> list[dict[str, Any]]:
    """What the product says about rows of one column v."""
    field = {"id": 1, "name": "v", "type": type_, "required": False}
    case = {"seed": 0, "schema": {"type": "struct", "schema-id": 1, "fields": [field]}, "unknown_fields": unknown, "key": [],
            "batch_id": "b", "received_at": "1970-01-01T00:00:01Z", "received_us": 1_000_000,
            "body_hex": ("[" + ",".join(rows) + "]").encode("utf-8", "surrogatepass").hex()}
    done = subprocess.run([BUILD / "tests" / "programs" / "decode_case"], input=json.dumps(case).encode() + b"\n",
                          capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    lines = done.stdout.decode().split("\n")
    assert lines[-2:] == ["--", ""]
    return [json.loads(line) for line in lines[1:-2]]


def value_of(verdict: dict[str, Any]) -> Any:
    parts = verdict["ok"]["v"]
    return None if parts is None else read(bytes.fromhex(parts[0]), bytes.fromhex(parts[1]))


def check(texts: list[str]) -> None:
    verdicts = decode([f'{{"v":{text}}}' for text in texts])
    assert len(verdicts) == len(texts)
    for text, verdict in zip(texts, verdicts):
        found = value_of(verdict)
        assert json_same(found, wanted(text)), f"{text}: {found!r}"


def json_same(left: Any, right: Any) -> bool:
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(json_same(a, b) for a, b in zip(left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(json_same(left[name], right[name]) for name in left)
    return type(left) is type(right) and repr(left) == repr(right)


NUMBERS = [
    "0", "-0", "-0.0", "0e5", "0E-1200", "0.000", "1", "-1", "127", "128", "-128", "-129", "32767", "32768", "-32769",
    "2147483647", "2147483648", "-2147483649", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "-9223372036854775809", "5.0", "5e0", "1e2", "100e-2", "1.50", "-1.5", "0.1", "1e-38", "1e-39", "12e-38", "1e18", "1e19", "1e37", "1e38",
    "9" * 38, "9" * 39, "1" + "0" * 37, "1" + "0" * 38, "-" + "9" * 38, "0." + "9" * 38, "0." + "9" * 39, "1." + "0" * 60, "123456789.5", "99999999.9",
    "999999999.9", "12345678901234567.8", "123456789012345678.9", "0.1e-999", "1e-400", "1e-1000", "1e308", "1.7976931348623157e308",
    "4.9e-324", "3.14159265358979323846264338327950288419716939937510", "1e+2", "1E+2", "0.30000000000000004",
]


def test_each_number_has_the_smallest_exact_form() -> None:
    check(NUMBERS)
    assert value_of(decode(['{"v":1e-1000}'])[0]) == ("double", 0.0)


def test_values_that_are_no_numbers() -> None:
    check(["true", "false", '""', '"a"', f'"{"x" * 63}"', f'"{"x" * 64}"', f'"{"é" * 32}"', f'"{"z" * 70000}"', '"\\u0000\\n\\ud83d\\ude00"',
           "[]", "{}", "[[]]", "[{}]", '{"":{"":[]}}', "[null,true]", '{"a":null}'])
    assert value_of(decode(['{"v":null}'])[0]) is None and value_of(decode(["{}"])[0]) is None


def test_objects_and_arrays_grow_wide_and_deep() -> None:
    wide = "{" + ",".join(f'"k{n * 7919 % 70001:05}":{n}' for n in range(70000)) + "}"
    check([f"[{','.join(['1'] * n)}]" for n in (254, 255, 256, 257, 70000)] +
          ["{" + ",".join(f'"k{i}":{i}' for i in range(n)) + "}" for n in (255, 256, 257)] + [wide] +
          ["[" * 62 + "]" * 62, '{"a":' * 62 + "1" + "}" * 62, "[" + ",".join([f'"{"y" * 70000}"'] * 50) + "]"] +
          ['{"b":[{"a":1,"c":2},{"c":3,"b":4}],"a":{"b":{"a":"b"}}}', '{"\\u0061é":1,"日本":2,"Z":3,"😀":4,"\\uffff":5}'])


def random_json(rng: random.Random, depth: int) -> str:
    pick = rng.randint(0, 7 if depth else 4)
    if pick == 5:
        return "[" + ",".join(random_json(rng, depth - 1) for _ in range(rng.choice((0, 1, 2, 5, 300 if depth == 1 else 3)))) + "]"
    if pick >= 6:
        names = rng.sample(["a", "b", "c", "", "é", "long name", "日本", "A", "aa", "ab", *(f"n{i}" for i in range(300))], rng.choice((0, 1, 3, 8)))
        return "{" + ",".join(f"{json.dumps(name)}:{random_json(rng, depth - 1)}" for name in names) + "}"
    if pick == 0:
        return rng.choice(("null", "true", "false"))
    if pick == 1:
        return json.dumps("".join(rng.choice("ab \"\\\n\0é日😀") for _ in range(rng.choice((0, 3, 62, 63, 64, 200)))), ensure_ascii=rng.random() < 0.5)
    if pick == 2:
        return rng.choice(NUMBERS)
    digits = str(rng.randrange(10 ** rng.randint(1, 42)))
    return rng.choice(("", "-")) + digits + rng.choice(("", f".{rng.randrange(10 ** 9)}", f"e{rng.randint(-60, 20)}", f".{rng.randrange(99)}E-{rng.randint(0, 30)}"))


def test_random_values_come_back() -> None:
    rng = random.Random(11)
    for _ in range(ROWS // 100):
        check([text for text in (random_json(rng, 4) for _ in range(100)) if text != "null"])


# ---- rows that do not fit -------------------------------------------------------------------------

@pytest.mark.parametrize("row, hits", [
    ('{"v":1e400}', [("v", "out_of_range", "1e400 is no variant")]),
    ('{"v":{"a":[1,-1e309]}}', [("v.a[1]", "out_of_range", "-1e309 is no variant")]),
    ('{"v":"\\ud83d"}', [("v", "bad_unicode", "a surrogate without its pair")]),
    ('{"v":["\\udc00",{"x":"\\ud800"}]}', [("v[0]", "bad_unicode", "a surrogate without its pair"),
                                          ("v[1].x", "bad_unicode", None)]),
    ('{"v":{"a":1,"a":2}}', [("v.a", "duplicate_key", "the name appears twice")]),
    ('{"v":{"\\ud83d":1}}', [("v.\ufffd", "bad_unicode", "a surrogate without its pair")]),
])
def test_a_value_that_no_variant_holds_is_a_reject(row: str, hits: list[tuple[str, str, str | None]]) -> None:
    record = decode([row])[0]["reject"]
    assert (record["column"], record["reason"], record["detail"]) == hits[0]
    assert [(hit["column"], hit["reason"]) for hit in record["also"]] == [hit[:2] for hit in hits[1:]]


def test_unknown_names_are_captured_as_an_object() -> None:
    rows = ['{"b":[1.5],"a":{"x":null}}', "{}", '{"v":1}', '{"z":1e400}', '{"z":"\\ud83d"}', '{"__ingest_ts":null}', '{"a":1,"a":2}']
    got = decode(rows, "capture:v")
    assert value_of(got[0]) == {"a": {"x": None}, "b": [("decimal4", Decimal("1.5"))]}
    assert got[1]["ok"]["v"] is None
    assert value_of(got[2]) == {"v": ("int8", 1)}
    assert [(r["reject"]["column"], r["reject"]["reason"]) for r in got[3:]] == [
        ("z", "out_of_range"), ("z", "bad_unicode"), ("__ingest_ts", "reserved_column"), ("a", "duplicate_key")]


def test_variants_stand_in_lists_maps_and_structs() -> None:
    nested = {"type": "list", "element-id": 2, "element": "variant", "element-required": False}
    parts = decode(['{"v":[1,null,{"a":[]}]}'], type_=nested)[0]["ok"]["v"]
    assert [p and read(bytes.fromhex(p[0]), bytes.fromhex(p[1])) for p in parts] == [("int8", 1), None, {"a": []}]
    keyed = {"type": "map", "key-id": 2, "key": "variant", "value-id": 3, "value": "variant", "value-required": True}
    got = decode(['{"v":[{"key":1,"value":{}},{"key":"1","value":2}]}', '{"v":[{"key":1,"value":3},{"key":1.0,"value":4}]}',
                  '{"v":{"a":1}}', '{"v":[{"key":2,"value":null}]}'], type_=keyed)
    assert [[read(bytes.fromhex(p[0]), bytes.fromhex(p[1])) for p in pair] for pair in got[0]["ok"]["v"]] == [
        [("int8", 1), {}], ["1", ("int8", 2)]]
    assert [r["reject"]["reason"] for r in got[1:]] == ["duplicate_key", "wrong_type", "required_missing"]
