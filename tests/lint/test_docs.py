"""Pages that are made from tables are what the tables say, and their links lead somewhere."""
from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_generated_pages_are_fresh() -> None:
    run = subprocess.run([ROOT / "tools" / "gen", "--check"], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout


def test_links_between_pages_lead_somewhere() -> None:
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*.md")):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
