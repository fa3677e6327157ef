"""Runs the fuzzers on fixed numbers (16 s), which are among the first of `make fuzz`."""

from __future__ import annotations

import inspect
from collections import Counter

import pytest

import dynagrad as dg
import random_charts
from dynagrad.rules import parse
from fuzz import calls, programs
from fuzz.run import fuzz


@pytest.mark.parametrize(
    ("kind", "first", "count"),
    [
        ("programs", 0, 500),
        ("charts", 8, 2),
        ("tables", 0, 400),
        ("files", 0, 250),
        ("caches", 0, 200),
        ("headers", 0, 1),
        ("calls", 0, 3),
        ("pullback", 900, 150),  # those before have terms that are in `languages/pullback/test_agreement.py`
        ("nests", 1000, 50),
        ("steps", 1, 3),  # the one before takes as long as twenty others
    ],
)
def test_nothing_crashes_and_every_error_is_one_of_ours(kind: str, first: int, count: int) -> None:
    tried, wrong = fuzz(kind, first, count=count)
    assert (tried, wrong) == (count, [])


def test_a_fuzzer_that_does_not_start_is_started_once() -> None:
    tried, (wrong,) = fuzz("nothing", 0, count=2500)
    assert tried == 0 and "before the first" in wrong and "No module named 'fuzz.nothing'" in wrong


def test_random_charts_have_their_share_of_everything() -> None:
    """Of a sample, whose shares may be a third less than those of all."""
    had = Counter[str]()
    for number in range(27):
        given = random_charts.drawn(number, count=4)
        had += Counter() if given is None else given.had
    shares = random_charts.shares(had)
    assert {what: share for what, share in shares.items() if share < random_charts.SHARES[what] * 2 / 3} == {}


def test_every_public_function_is_called_by_name() -> None:
    functions = {name for name in dg.__all__ if inspect.isfunction(getattr(dg, name))}
    assert functions <= set(calls.CALLED) and {"Program", "Chart", "Term"} <= set(calls.CALLED)


def test_half_of_the_texts_are_more_than_errors_of_syntax() -> None:
    def is_read(number: int) -> bool:
        try:
            parse(programs.text(number))
        except dg.SyntaxError:
            return False
        return True

    assert sum(map(is_read, range(100))) >= 40
