"""The product's intake and decoder against the reference model, line by line (tests/reference).

The model is imported, not started for each case. LHBOX_DIFF_ROWS sets how many random rows are compared
(5,000), LHBOX_DIFF_SEED where the seeds begin (1); a difference names its seed, which repeats it.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

from reference import cli, random_rows  # noqa: E402
from reference.record import Batch  # noqa: E402
from reference.types import read_schema  # noqa: E402

ROWS = int(os.environ.get("LHBOX_DIFF_ROWS", "5000"))
FIRST_SEED = int(os.environ.get("LHBOX_DIFF_SEED", "1"))
ROWS_PER_CASE = 20
CASES_PER_RUN = 250


def program() -> Path:
    build = Path(os.environ.get("LHBOX_BUILD", TESTS.parent / "build" / "release"))
    path = build / "tests" / "programs" / "decode_case"
    assert path.exists(), f"{path} is not built"
    return path


def model_lines(case: dict) -> list[str]:
    """What `python3 -m reference.cli run` prints for the case."""
    batch = Batch(case["batch_id"], case["received_us"])
    line, result = cli.intake_line(bytes.fromhex(case["body_hex"]), batch)
    lines = [line]
    if result is not None:
        rolled = Batch(batch.batch_id, batch.received_at, 1)
        options = cli.options_of(case["unknown_fields"], case["key"], rolled)
        schema = read_schema(json.dumps(case["schema"]))
        lines += cli.row_lines(result.stored, schema, options)
    return lines


def product_lines(cases: list[dict]) -> list[list[str]]:
    """What the product says about each case."""
    given = "".join(json.dumps(case) + "\n" for case in cases).encode()
    done = subprocess.run([program()], input=given, capture_output=True, timeout=600)
    assert done.returncode == 0, done.stderr.decode()
    blocks = done.stdout.decode("utf-8").split("--\n")
    assert blocks.pop() == ""
    assert len(blocks) == len(cases)
    return [block.removesuffix("\n").split("\n") for block in blocks]


def compare(cases: list[dict]) -> None:
    for case, got in zip(cases, product_lines(cases), strict=True):
        wanted = model_lines(case)
        for number, (model, product) in enumerate(zip(wanted, got, strict=False)):
            assert product == model, (
                f"seed {case['seed']}, line {number}\n{case['unknown_fields']} {case['key']} "
                f"{json.dumps(case['schema'])}\nmodel:   {model}\nproduct: {product}")
        assert len(got) == len(wanted), f"seed {case['seed']}: number of lines"


def random_cases(first: int, count: int) -> list[dict]:
    return [json.loads(random_rows.random_case(seed, ROWS_PER_CASE).json()) for seed in range(first, first + count)]


# ---- schemas with a past ---------------------------------------------------------------------------

DEFAULTS = {"decimal": "0.0", "list": [], "map": {"keys": [], "values": []}}


def default_of(type_: Any) -> Any:
    """A default for the types that random cases give none; None: there is none."""
    if isinstance(type_, dict):
        return DEFAULTS.get(type_["type"])
    if type_.startswith("fixed"):
        return "0f" * int(type_[6:-1])
    scale = type_.endswith((",0)", ", 0)")) if type_.startswith("decimal") else None
    return None if scale is None else "0" if scale else DEFAULTS["decimal"]


def evolved(case: dict) -> dict:
    """The case as if its table had seen columns come, go, move and be renamed: field ids without order and with gaps,
    and more columns with defaults."""
    rng = random.Random(f"evolved {case['seed']}")
    fresh = iter(rng.sample(range(1, 100_000), 1000))

    def walk(type_: Any) -> Any:
        if not isinstance(type_, dict):
            return type_
        made = {key: next(fresh) if key.endswith("-id") and key != "schema-id" else walk(value) if key in ("element", "key", "value") else value
                for key, value in type_.items()}
        if type_["type"] == "struct":
            made["fields"] = [field_of(entry) for entry in type_["fields"]]
        return made

    def field_of(entry: dict) -> dict:
        made = entry | {"id": next(fresh), "type": walk(entry["type"])}
        default = default_of(entry["type"])
        if "write-default" not in entry and default is not None and rng.random() < 0.5:
            made |= {"write-default": default, "initial-default": default}
        return made

    return case | {"schema": walk(case["schema"])}


def test_random_rows_of_evolved_schemas_get_the_same_verdicts() -> None:
    for first in range(FIRST_SEED, FIRST_SEED + max(ROWS // ROWS_PER_CASE // 5, 1), CASES_PER_RUN):
        last = min(first + CASES_PER_RUN, FIRST_SEED + max(ROWS // ROWS_PER_CASE // 5, 1))
        compare([evolved(case) for case in random_cases(first, last - first)])


def with_body(case: dict, body: bytes) -> dict:
    return case | {"body_hex": body.hex()}


def test_random_rows_get_the_same_verdicts_values_and_records() -> None:
    seed = FIRST_SEED
    left = -(-ROWS // ROWS_PER_CASE)
    while left > 0:
        count = min(left, CASES_PER_RUN)
        compare(random_cases(seed, count))
        seed += count
        left -= count


def test_broken_bodies_are_refused_at_the_same_byte() -> None:
    count = max(500, ROWS // 20)
    for first in range(FIRST_SEED, FIRST_SEED + count, CASES_PER_RUN):
        seeds = range(first, min(first + CASES_PER_RUN, FIRST_SEED + count))
        cases = [with_body(case, random_rows.random_body(case["seed"]))
                 for case in (json.loads(random_rows.random_case(seed, 0).json()) for seed in seeds)]
        compare(cases)


# ---- what random cases do not reach ----------------------------------------------------------------

def case_of(columns: list[tuple[str, str]], body: bytes, unknown: str = "reject", key: tuple[str, ...] = (),
            seed: int = 0) -> dict:
    from reference.types import schema_json, schema_of
    return {"seed": seed, "schema": schema_json(schema_of(columns), 1), "unknown_fields": unknown, "key": list(key),
            "batch_id": "hand-made", "received_at": "1970-01-01T00:00:01Z", "received_us": 1_000_000,
            "body_hex": body.hex()}


def body_of(*elements: str) -> bytes:
    return ("[" + ",".join(elements) + "]").encode("utf-8")


HAND_MADE = {
    "no more than twenty in also": case_of(
        [(f"c{n}", "int") for n in range(60)], body_of("{" + ",".join(f'"c{n}":"x"' for n in range(60)) + "}")),
    "hits stop inside a list": case_of(
        [("a", "list<list<int> required>"), ("b", "int")],
        body_of('{"a":[[1,2,"x"],[' + ",".join(["true"] * 40) + "],null,3]}", '{"a":[[1],[2,3],[]],"b":7}')),
    "hits stop inside maps and structs": case_of(
        [("m", "map<int, struct<a: int required, b: list<int required>>>"), ("z", "long")],
        body_of('{"m":{' + ",".join(f'"{n}":{{"b":[null]}}' for n in range(30)) + "}}", '{"m":{"1":{"a":1}},"z":1}',
                '{"m":[' + ",".join(['{"key":1,"value":3}'] * 30) + "]}")),
    "many members and many repeated ones": case_of(
        [("m", "map<string, int>"), ("x", "int")],
        body_of('{"m":{' + ",".join(f'"k{n % 40}":{n}' for n in range(100)) + '},"x":1}',
                '{"m":{' + ",".join(f'"k{n}":{n}' for n in range(100)) + '},"x":1,"m":2,"x":3,"m":4}')),
    "many keys of a map": case_of(
        [("m", "map<long, int>"), ("f", "map<double, int>"), ("s", "map<struct<a: int, b: list<string>>, int>")],
        body_of('{"m":{' + ",".join(f'"{n}":{n}' for n in range(500)) + "}}",
                '{"m":[' + ",".join(f'{{"key":{n % 495}.0,"value":{n}}}' for n in range(500)) + "]}",
                '{"f":{"0":1,"-0":2,"NaN":3,"1e1":4}}', '{"f":[{"key":"NaN"},{"key":"NaN"},{"key":0},{"key":-0.0}]}',
                '{"s":[{"key":{"a":1,"b":["x"]}},{"key":{"b":["x"],"a":1.0}},{"key":{"a":1,"b":["x",null]}},{"key":{}}]}')),
    "a map as a key, with keys twice in it": case_of(
        [("m", "map<map<int, int>, int>")],
        body_of('{"m":[{"key":{"1":1,"2":2},"value":1},{"key":{"1":1,"2":2}},{"key":[{"key":1},{"key":1.0}]},'
                '{"key":[{"key":1},{"key":1}]},{"key":[null]},{"key":[]}]}')),
    "long names are cut in paths": case_of(
        [("x", "int")],
        body_of('{"' + "é" * 300 + '":1}', '{"' + "a" * 512 + '":1}', '{"' + "a" * 513 + '":1}',
                '{"' + "a" * 511 + "é" + '":1}', '{"' + "a" * 510 + "\\ud800" + '":1}', '{"' + "日" * 3000 + '":{"b":1,"b":2}}',
                '{"' + "\\ud83d" * 400 + '":1}')),
    "deep paths": case_of(
        [("x", "int")],
        body_of('{"x":' + '{"nested":[0,' * 30 + '{"a":1,"a":2}' + "]}" * 30 + "}",
                '{"y":' + '[{"":' * 31 + '{"\\udfff":1}' + "}]" * 31 + "}"), "ignore"),
    "long values are cut in details": case_of(
        [("i", "int"), ("d", "date"), ("b", "fixed[3]")],
        body_of('{"i":"' + "1" * 198 + 'x"}', '{"i":"' + "1" * 199 + 'x"}', '{"d":"' + "é" * 120 + '"}', '{"d":"a' + "日" * 90 + '"}',
                '{"b":"' + "A" * 400 + '"}')),
    "numbers of many digits": case_of(
        [("l", "long"), ("d", "double"), ("f", "float"), ("m", "decimal(38,10)")],
        body_of(*('{"%s":%s}' % (name, number) for name in "ldfm" for number in (
            "1" + "0" * 400 + "e-400", "1" + "0" * 2000 + "e-1000", "0." + "0" * 2000 + "1e1000", "0." + "0" * 999 + "1e999",
            "0." + "3" * 5000, "9" * 310, "-" + "9" * 300 + "." + "9" * 300, "1e-0000000000000000000001", "1e+00000000000000000000999",
            "0." + "0" * 330 + "5e330", "123456789012345678901234567890e-20", "9007199254740993", "16777217", "8589973504",
            "8589973503", "0.000000000000000000000000000000000000011754943", "1e22", "1e23", "1e-22", "3e10", "16777216e10", "4503599627370497.5",
            "179769313486231580793728971405303415079934132710037826936173778980444968292764750946649017977587207096330286416692887910946555547851940402630657488671505820681908902000708383676273854845817711531764475730270069855571366959622842914819860834936475292719074168444365510704342711559699508093042880")))),
    "numbers as text": case_of(
        [("l", "long"), ("d", "double"), ("f", "float"), ("m", "decimal(9,2)")],
        body_of(*('{"%s":"%s"}' % (name, number) for name in "ldfm" for number in (
            "1 ", "\\t1", "1\\u0000", "1\\u0030", "\\u0031", "1e5", "1E+5", "-", "--1", "00", "0.", "1.0e", "Infinit", "NaN ", "-0", "-0.0",
            "1" * 30, "0x10", "1,5", "\u0661")))),
    "capture in row order": case_of(
        [("x", "int"), ("rest", "string")],
        body_of('{ "b" :\t[1, 2] , "x":1,"a\\u0041":{"k":"\\ud800","k":1},"rest":"mine","b":3}', '{"x":1,"q":"\\ud83d","r":["\\udc00",{"s":"\\udc00"}]}',
                '{"x":1,"q":{"a":"fine\\n","é":[ ]},"__ingest_ts2":null}', '{"x":1,"rest":{"rest":null}}', '{"x":1,"REST":1,"X":2}', '{"__ingest_ts":1,"q":2}')
        , "capture:rest"),
    "near misses": case_of(
        [("aB", "int"), ("Ab", "int"), ("__ingest_ts", "timestamptz"), ("s", "struct<Inner: int, \"a.b\": int>"), ("m", "map<int, int>")],
        body_of('{"ab":1}', '{"AB":1,"aB":2}', '{"__INGEST_TS":1}', '{"s":{"inner":1}}', '{"s":{"A.B":1},"S":1}', '{"m":[{"Key":1,"value":2}]}',
                '{"m":[{"key":1,"VALUE":2}]}', '{"\u212ab":1}')),
    "keys null": case_of(
        [("a", "int required"), ("k1", "string required"), ("k2", "long"), ("z", "int")],
        body_of('{"a":"x"}', '{"k2":null,"k1":"\\ud800","z":[]}', '{"a":1,"k1":"","k2":0}', '{"k1":null,"nope":1}'), key=("k2", "k1")),
    "stored rows come after refused ones": case_of(
        [("x", "int")], body_of("1", '{"x":1}', "[]", "null", '{"x":2}', '"s"')),
    "pretty-printed": case_of(
        [("x", "list<int>"), ("y", "int")], b'[\r\n  {\r\n "x" : [\r1,\n2] ,\r\n"y": "a\\nb" }\n, {"y":\n{"a":\r\n1}}]'),
}


@pytest.mark.parametrize("name", HAND_MADE)
def test_hand_made(name: str) -> None:
    compare([HAND_MADE[name] | {"seed": seed} for seed in (0, 1, 7)])


def test_write_defaults_stand_in_for_what_is_absent_alone() -> None:
    def field(id_: int, name: str, type_: object, default: object, required: bool = False) -> dict:
        entry = {"id": id_, "name": name, "type": type_, "required": required}
        if default is not None:
            entry |= {"write-default": default, "initial-default": default}
        return entry

    struct = {"type": "struct", "fields": [field(20, "a", "int", 7, True), field(21, "b", "string", None),
                                           field(22, "in", {"type": "struct", "fields": [field(23, "c", "long", None, True)]}, {})]}
    fields = [
        field(1, "l", {"type": "list", "element-id": 30, "element": "int", "element-required": False}, [1, None, 3], True),
        field(2, "m", {"type": "map", "key-id": 31, "key": "string", "value-id": 32, "value": "double", "value-required": False},
              {"keys": ["a", "b"], "values": [1.5, None]}),
        field(3, "s", struct, {}, True),
        field(4, "d", "decimal(5, 2)", "12.5"), field(5, "f", "fixed[2]", "00ff"), field(6, "b", "binary", ""),
        field(7, "t", "timestamptz_ns", "2017-11-16T22:31:08.123456789+00:00"), field(8, "i", "int", 0, True),
        field(9, "y", "boolean", False), field(10, "n", "long", None),
    ]
    case = case_of([("x", "int")], body_of(
        "{}", '{"l":null,"m":null,"s":null,"i":null}', '{"s":{}}', '{"s":{"in":{}}}', '{"s":{"in":{"c":1},"b":"x"},"l":[],"m":{}}',
        '{"s":{"a":null,"in":{"c":2}}}', '{"s":{"in":null},"d":"1","y":null}'))
    compare([case | {"schema": {"type": "struct", "schema-id": 1, "fields": fields}}])


def test_wide_rows() -> None:
    """Many columns, in order, shuffled, with some left out, some unknown and some twice."""
    from random import Random
    rng = Random(5)
    names = [f"column_{n}" for n in range(400)]
    rows = []
    for kept in (400, 400, 200, 3):
        some = rng.sample(names, kept)
        rows.append("{" + ",".join(f'"{name}":{n}' for n, name in enumerate(some)) + "}")
    rows.insert(0, "{" + ",".join(f'"{name}":1' for name in names) + "}")
    rows.append("{" + ",".join(f'"{name}":1' for name in [*names[:50], "COLUMN_7", *names[40:60]]) + "}")
    rows.append("{" + ",".join(f'"{name.upper()}":1' for name in names[::-1]) + "}")
    compare([case_of([(name, "int") for name in names], body_of(*rows))])
