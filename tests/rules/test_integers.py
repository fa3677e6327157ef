"""Integers that no argument can have are found in the text, with a caret; others are left to the run (1 s)."""

from __future__ import annotations

import pytest

from dynagrad.errors import ProgramError
from dynagrad.rules import check, parse

BEYOND, ZERO = "always beyond the range of arguments", "divides by zero"


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("p(X+99999999999) += q(X).", BEYOND, 3),
        ("p(X) += q(X+99999999999).", BEYOND, 11),
        ("p(f(X+4294967296)) += q(X).", BEYOND, 5),
        ("p(X) += q(X) for Y = 5000000000 - X*0, Y > 3.", BEYOND, 22),
        ("p(X) += q(X) for Y = -5000000000 + abs(X), Y > 3.", BEYOND, 22),
        ("p(Y) += q(X) for Y = f(X-99999999999).", BEYOND, 24),
        ("p(99999999999) += q(X).", "is beyond the range", 3),
        ("p(X) += q(X) for X == 99999999999.", "is beyond the range", 23),
        ("p(X//0) += q(X).", ZERO, 3),
        ("p(X mod (1-1)) += q(X).", ZERO, 3),
        ("p(X) += q(X) for X mod (X*0) == 1.", ZERO, 18),
    ],
)
def test_what_can_never_be_an_argument_is_refused(text: str, message: str, column: int) -> None:
    with pytest.raises(ProgramError, match=message) as caught:
        check(parse(text))
    assert caught.value.span is not None and caught.value.span.column == column


@pytest.mark.parametrize(
    "text",
    [
        "p(X+4294967295) += q(X).",
        "p(X*X*4611686018427387904) += q(X).",
        "p(X) += q(X) for X + 99999999999 > 3.",
        "p(X) += q(X) for X < 99999999999.",
        "p((X*99999999999) mod 7) += q(X).",
        "p((X*99999999999) // X) += q(X).",
        "p(min(X,5)) += q(X) for Y = min(X+99999999999,5), Y < X.",
        "p(X//Y) += q(X) * q(Y) for Y != 0.",
    ],
)
def test_what_may_be_one_is_not(text: str) -> None:
    assert check(parse(text)).rules
