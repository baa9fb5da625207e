"""The powers of five in src/base/real_powers.def, against whole numbers of any size."""

from __future__ import annotations

import re
from pathlib import Path

TABLE = Path(__file__).parents[2] / "src/base/real_powers.def"


def leading_bits(power: int) -> int:
    """The first 128 bits of 5^power: cut, but rounded up from -27 to -1."""
    if power >= 0:
        whole = 5**power
        shift = whole.bit_length() - 128
        return whole >> shift if shift > 0 else whole << -shift
    divisor = 5**-power
    return (1 << (127 + divisor.bit_length())) // divisor + (1 if power >= -27 else 0)


def test_the_powers_are_those_of_five() -> None:
    found = re.findall(r"X\(0x([0-9a-f]{16}), 0x([0-9a-f]{16})\)", TABLE.read_text())
    assert [int(high + low, 16) for high, low in found] == [leading_bits(q) for q in range(-342, 309)]
