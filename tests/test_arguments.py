"""What users pass is checked by name, and what is made as it is looked at acts as a sequence. Costs nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.arguments import numeric_function, real_number, whole_number, yes_or_no
from dynagrad.forests.listed import Listed


@pytest.mark.parametrize(
    ("check", "given"),
    [
        (lambda x: whole_number("k", x, 1, 9), 0),
        (lambda x: whole_number("k", x, 1, 9), 10),
        (lambda x: whole_number("k", x), 1.0),
        (lambda x: whole_number("k", x), True),
        (lambda x: whole_number("k", x), "3"),
        (lambda x: real_number("k", x), False),
        (lambda x: real_number("k", x), float("nan")),
        (lambda x: real_number("k", x), 10**400),
        (lambda x: real_number("k", x), None),
        (lambda x: real_number("k", x, 0.0), -1e-300),
        (lambda x: yes_or_no("k", x), 1),
        (lambda x: yes_or_no("k", x), np.ones(2)),
        (lambda x: numeric_function("k", x), 2),
        (lambda x: numeric_function("k", lambda _: x)(0), "2"),
        (lambda x: numeric_function("k", lambda _: x)(0), float("nan")),
    ],
)
def test_what_does_not_do_is_an_error_with_its_name(check: Callable[[Any], Any], given: Any) -> None:
    with pytest.raises(dg.Error, match=r"\bk must be"):
        check(given)


def test_what_does_is_given_back() -> None:
    assert whole_number("k", np.int8(3), 1, 9) == 3
    assert real_number("k", np.float32(0.5)) == 0.5
    assert yes_or_no("k", True) is True
    assert numeric_function("k", lambda x: x > 1)(2) == 1.0


def test_a_sequence_makes_what_is_looked_at_alone() -> None:
    made: list[int] = []

    def make(n: int) -> str:
        made.append(n)
        return str(n)

    listed = Listed(1_000_000, make)
    assert (listed[3], listed[-1], listed[np.int64(2)], list(listed[4:0:-2])) == ("3", "999999", "2", ["4", "2"])
    assert made == [3, 999_999, 2, 4, 2]
    for wrong in (1_000_000, -1_000_001, "a", 0.5, slice("a"), slice(None, None, 0)):
        with pytest.raises(dg.Error):
            listed[wrong]  # type: ignore[call-overload]
    with pytest.raises(IndexError, match=r"there are 1,000,000 of them, and none at 1000000"):
        listed[1_000_000]
    few = Listed(3, make)
    assert list(few) == ["0", "1", "2"] and "2" in few and 2 not in few and np.ones(2) not in few
    assert few.index("1") == 1 and repr(few) == "[0, 1, 2]"
