"""The small C programs of tests/programs, as built by Meson."""
from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("LHBOX_BUILD", ROOT / "build"))


def run(name: str, *arguments: str) -> bytes:
    """Runs a program and answers what it printed; any failure of it fails the test."""
    done = subprocess.run([BUILD / "tests" / "programs" / name, *arguments], capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout
