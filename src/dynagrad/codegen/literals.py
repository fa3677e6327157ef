"""How numbers are spelled in C++."""

from __future__ import annotations

import math

_INTEGER_MIN = -(2**63)


def literal(value: float | int | bool) -> str:
    """A number in C++; one with a sign in parentheses.

    >>> literal(2.0), literal(-1), literal(True), literal(float("-inf"))
    ('2.0', '(-1)', 'true', '(-HUGE_VAL)')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if value == _INTEGER_MIN:
            return "INT64_MIN"
        text = str(abs(value)) + ("LL" if abs(value) >= 2**31 else "")
        return text if value >= 0 else f"(-{text})"
    if math.isnan(value):
        return "double(NAN)"
    text = "HUGE_VAL" if math.isinf(value) else repr(abs(value))
    return text if math.copysign(1.0, value) > 0.0 else f"(-{text})"
