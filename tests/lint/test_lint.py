"""tools/lint passes a clean tree and names each kind of violation planted in it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

HEADER = """/* {stem}: a module made for this test.
 *
 * Pure; any thread. */
#ifndef LHBOX_{guard}_H
#define LHBOX_{guard}_H

#include "base/num.h"

i64 {stem}_answer(i64 value);

#endif
"""
SOURCE = """#include "{folder}/{stem}.h"

i64 {stem}_answer(i64 value)
{{
    return value + 1;
}}
"""


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def add_module(root: Path, folder: str, stem: str) -> None:
    guard = f"{folder}/{stem}".replace("/", "_").upper()
    write(root, f"src/{folder}/{stem}.h", HEADER.format(stem=stem, guard=guard))
    write(root, f"src/{folder}/{stem}.c", SOURCE.format(folder=folder, stem=stem))


def lint(root: Path) -> tuple[int, str]:
    run = subprocess.run([sys.executable, str(ROOT / "tools" / "lint"), str(root)], capture_output=True, text=True)
    assert run.stderr == ""
    return run.returncode, run.stdout


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The real base/, and one small module in each tier above."""
    shutil.copytree(ROOT / "src" / "base", tmp_path / "src" / "base")
    shutil.copy(ROOT / ".clang-format", tmp_path)
    for folder, stem in (("format", "json"), ("format/parquet", "parquet"), ("format/parquet", "thrift"),
                         ("io", "store"), ("io", "file"), ("table", "schema"), ("table", "schema_private"),
                         ("sink", "plan"), ("server", "serve"), ("cli", "send")):
        add_module(tmp_path, folder, stem)
    write(tmp_path, "src/main.c", '#include "cli/send.h"\n#include "server/serve.h"\n\n#include <stdio.h>\n\n'
          'int main(void)\n{\n    printf("%d", 1);\n    return 0;\n}\n')
    return tmp_path


def test_clean_tree_passes(tree: Path) -> None:
    code, output = lint(tree)
    assert output == f"lint: {len([*tree.rglob('src/**/*.[ch]')])} C files, 0 violations\n"
    assert code == 0


def test_empty_tree_is_no_success(tmp_path: Path) -> None:
    shutil.copy(ROOT / ".clang-format", tmp_path)
    assert lint(tmp_path)[0] != 0


# file, what is put on its end, the rule that must name the file
APPENDED = {
    "base includes upward": ("src/base/str.c", '#include "format/json.h"\n', "layer"),
    "format includes io": ("src/format/json.c", '#include "io/store.h"\n', "layer"),
    "io includes format": ("src/io/store.c", '#include "format/json.h"\n', "layer"),
    "io includes table": ("src/io/store.c", '#include "table/schema.h"\n', "layer"),
    "table includes sink": ("src/table/schema.c", '#include "sink/plan.h"\n', "layer"),
    "table includes more than io's interfaces": ("src/table/schema.c", '#include "io/file.h"\n', "layer"),
    "sink includes server": ("src/sink/plan.c", '#include "server/serve.h"\n', "layer"),
    "server includes cli": ("src/server/serve.c", '#include "cli/send.h"\n', "layer"),
    "cli includes server": ("src/cli/send.c", '#include "server/serve.h"\n', "layer"),
    "a header includes upward": ("src/base/num.h", '#include "format/json.h"\n', "layer"),
    "an include climbs": ("src/format/json.c", '#include "../base/num.h"\n', "include"),
    "an include without its folder": ("src/format/json.c", '#include "json.h"\n', "include"),
    "the system's assert": ("src/format/json.c", "#include <assert.h>\n", "include"),
    "a private header of a folder": ("src/table/schema.c", '#include "format/parquet/thrift.h"\n', "private"),
    "a private header by name": ("src/sink/plan.c", '#include "table/schema_private.h"\n', "private"),
    "base uses a library": ("src/base/str.c", "#include <zlib.h>\n", "outside"),
    "format uses a library of io": ("src/format/json.c", "#include <sqlite3.h>\n", "outside"),
    "io uses a library of table": ("src/io/store.c", "#include <jansson.h>\n", "outside"),
    "table uses a library of io": ("src/table/schema.c", "#include <curl/curl.h>\n", "outside"),
    "a library nobody may use": ("src/server/serve.c", "#include <glib.h>\n", "outside"),
    "a long line": ("src/io/store.c", "/* " + "x" * 100 + " */\n", "line"),
    "a promise": ("src/io/store.c", "/* TO" "DO: the rest */\n", "promise"),
    "another promise": ("src/io/store.c", "/* FIX" "ME */\n", "promise"),
    "a place of one machine": ("src/io/store.c", "/* see /ho" "me/ada/notes */\n", "place"),
    "an unformatted line": ("src/io/store.c", "\nstatic int  x  =1;\n", "format"),
    "a name of no module": ("src/io/store.c", "\nint frobnicate(void)\n{\n    return 1;\n}\n", "name"),
    "a long function": ("src/io/store.c", "\nint store_long(int a)\n{\n" + "    a++;\n" * 68 + "    return a;\n}\n",
                        "function"),
    "a long static function": ("src/io/store.c", "\nstatic int fill(int a)\n{\n" + "    a++;\n" * 68
                               + "    return a;\n}\n", "function"),
    "a long file": ("src/io/store.c", "\n" + "extern int store_count;\n" * 800, "file"),
}


@pytest.mark.parametrize("what", APPENDED)
def test_violation_is_named(tree: Path, what: str) -> None:
    name, text, rule = APPENDED[what]
    with (tree / name).open("a") as file:
        file.write(text)
    code, output = lint(tree)
    found = [line for line in output.splitlines() if line.startswith(name + ":") and f": {rule}: " in line]
    assert code != 0
    assert len(found) == 1, output


def test_function_of_the_longest_length_passes(tree: Path) -> None:
    with (tree / "src/io/store.c").open("a") as file:
        file.write("\nint store_long(int a)\n{\n" + "    a++;\n" * 66 + "    return a;\n}\n")
    assert lint(tree)[0] == 0


CALLS = ("malloc calloc realloc free strdup asprintf strcpy strcat strncpy sprintf vsprintf strtok atoi alloca system "
         "popen fork execv localtime rand random time clock_gettime sleep usleep nanosleep printf fprintf puts "
         "setjmp longjmp setlocale getrandom").split()


@pytest.mark.parametrize("call", CALLS)
def test_banned_call_is_named(tree: Path, call: str) -> None:
    with (tree / "src/sink/plan.c").open("a") as file:
        file.write(f"\nstatic void try_it(void)\n{{\n    {call}();\n}}\n")
    code, output = lint(tree)
    assert code != 0
    assert f": banned: {call}:" in output


def test_names_in_comments_strings_and_members_are_no_calls(tree: Path) -> None:
    with (tree / "src/sink/plan.c").open("a") as file:
        file.write('\n/* malloc(1) */\nstatic const char *text = "free(x) \\" system(y)";\n\n'
                   "static void try_it(struct seam *seam)\n{\n    seam->free(seam);\n    seam->self.time(1);\n"
                   "    plan_free(text); // sprintf(text)\n}\n")
    code, output = lint(tree)
    assert code == 0, output


def test_unsafe_call_in_a_test_is_named_but_not_allocation(tree: Path) -> None:
    write(tree, "tests/unit/sink/plan_test.c",
          '#include "sink/plan.h"\n\n#include <stdlib.h>\n\nint main(void)\n{\n    free(malloc(1));\n'
          "    return atoi(\"1\");\n}\n")
    code, output = lint(tree)
    assert code != 0
    assert [line.split(": ", 1)[1] for line in output.splitlines() if "plan_test" in line] == [
        "banned: atoi: there is a bounded or checked way"]


def test_unit_test_sees_its_tier_and_those_below(tree: Path) -> None:
    write(tree, "tests/unit/format/json_test.c", '#include "sink/plan.h"\n#include "format/parquet/thrift.h"\n')
    output = lint(tree)[1]
    assert "tests/unit/format/json_test.c:1: layer: format may not include sink/plan.h" in output
    assert "tests/unit/format/json_test.c:2: private: " in output


def test_header_without_its_comment_is_named(tree: Path) -> None:
    path = tree / "src/sink/plan.h"
    path.write_text(path.read_text().replace("/* plan: ", "/* A "))
    assert "src/sink/plan.h:1: header: " in lint(tree)[1]


def test_wrong_guard_is_named(tree: Path) -> None:
    path = tree / "src/sink/plan.h"
    path.write_text(path.read_text().replace("LHBOX_SINK_PLAN_H", "PLAN_H"))
    assert "src/sink/plan.h:1: guard: is not LHBOX_SINK_PLAN_H" in lint(tree)[1]


def test_source_without_a_header_is_named(tree: Path) -> None:
    (tree / "src/sink/plan.h").unlink()
    assert "src/sink/plan.c:1: module: " in lint(tree)[1]


def test_folder_without_its_public_header_is_named(tree: Path) -> None:
    (tree / "src/format/parquet/parquet.h").rename(tree / "src/format/parquet/file.h")
    assert "src/format/parquet:1: module: " in lint(tree)[1]


def test_folder_that_is_no_tier_is_named(tree: Path) -> None:
    add_module(tree, "extra", "thing")
    assert "src/extra:1: layer: extra is no tier" in lint(tree)[1]


def test_too_many_modules_in_a_folder_are_named(tree: Path) -> None:
    for number in range(20):
        add_module(tree, "sink", f"part{number}")
    assert "src/sink:1: folder: has 21 modules, 20 at most" in lint(tree)[1]


@pytest.mark.parametrize("stem", ["util", "common", "misc", "helpers", "manager", "core", "plan_helper"])
def test_name_that_says_nothing_is_named(tree: Path, stem: str) -> None:
    add_module(tree, "sink", stem)
    assert f"src/sink/{stem}.c:1: name: {stem}.c says nothing" in lint(tree)[1]
