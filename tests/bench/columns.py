"""Iceberg's types as text, taken apart: struct<lat: double, lon: double>, list<string>, decimal(12,2)."""
from __future__ import annotations


def split_type(text: str) -> tuple[str, str]:
    """The word, and what is between its brackets."""
    text = text.strip().removesuffix(" required")
    for opening, closing in ("<>", "()", "[]"):
        word, found, rest = text.partition(opening)
        if found and word.isidentifier():
            return word, rest[:-1] if rest.endswith(closing) else rest
    return text, ""


def fields_of(inside: str) -> list[tuple[str, str]]:
    """The fields of a struct: split at the commas of its own level."""
    parts, level, start = [], 0, 0
    for at, byte in enumerate(inside):
        level += (byte in "<([") - (byte in ">)]")
        if byte == "," and level == 0:
            parts.append(inside[start:at])
            start = at + 1
    parts.append(inside[start:])
    return [(name.strip(), kind.strip()) for name, kind in (part.split(":", 1) for part in parts)]
