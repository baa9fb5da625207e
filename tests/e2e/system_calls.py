"""What strace saw of a server: its calls with the order in which they began and ended."""
from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

LINE = re.compile(r"^(\d+) +[\d:.]+ (.*)$")
BEGUN = re.compile(r"^(\w+)\((.*?)(?: <unfinished \.\.\.>)?$", re.S)
RESUMED = re.compile(r"^<\.\.\. (\w+) resumed>(.*)$", re.S)


@dataclass
class Call:
    """`began` and `ended` are line numbers: what ended before another began has happened before it."""
    name: str
    text: str
    began: int
    ended: int

    @property
    def failed(self) -> bool:
        return " = -1 " in self.text

    @property
    def path(self) -> str:
        """Of its first descriptor."""
        found = re.match(r"\d+<([^>]*)>", self.text)
        return found.group(1) if found else ""


def needs_tracer() -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    if os.geteuid() != 0:
        pytest.skip("only root may trace the server, which hides its memory from others")


def read_calls(trace: Path) -> list[Call]:
    calls: list[Call] = []
    under_way: dict[str, Call] = {}
    for number, line in enumerate(trace.read_text("utf-8", "replace").splitlines()):
        parsed = LINE.match(line)
        if parsed is None:
            continue
        thread, rest = parsed.groups()
        if (resumed := RESUMED.match(rest)) is not None:
            call = under_way.pop(thread, None)
            if call is not None:
                call.text, call.ended = call.text + resumed.group(2), number
            continue
        begun = BEGUN.match(rest)
        if begun is None:
            continue
        call = Call(begun.group(1), begun.group(2), number, number)
        if rest.endswith("<unfinished ...>"):
            call.ended = 1 << 60
            under_way[thread] = call
        calls.append(call)
    return calls
