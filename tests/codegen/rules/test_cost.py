"""Planning, and writing the class of a plan, take linear time in the numbers of rules and of predicates.

Nothing is compiled. Costs two seconds.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

import pytest

from dynagrad.codegen.rules.compiled import backward_source_of, source_of
from plan.planned import planned

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")


def grammar(count: int) -> str:
    """So many nonterminals, each with a lexical rule and a binary one."""
    pick = random.Random(0).randrange
    text = [f"nt{n}(I,K) += 0.1 * word(w{n % 5},I,K)." for n in range(count)]
    text += [f"nt{n}(I,K) += 0.3 * nt{pick(count)}(I,J) * nt{pick(count)}(J,K)." for n in range(count)]
    return ":- semiring log.\n" + "\n".join([*text, "goal += nt0(0,N) * end(N)."])


def crowded(count: int) -> str:
    """So many rules over ten predicates, whose items may be in cycles."""
    text = [f"p{n % 10}(I,K) += 0.5 * p{n * 7 % 10}(I,J) * p{n * 3 % 10}(J,K)." for n in range(count)]
    return ":- semiring real.\n" + "\n".join([*text, "p0(I,K) += word(_,I,K)."])


def calls(what: Callable[[], Any]) -> tuple[int, Any]:
    """How many functions are called, of Python and of C: generators count each time that they are resumed."""
    count = 0

    def called(*event: Any) -> None:
        nonlocal count
        count += event[1] in ("call", "c_call")

    sys.setprofile(called)
    try:
        found = what()
    finally:
        sys.setprofile(None)
    return count, found


FACTS = {"word/3": [(f"w{n}", n, n + 1) for n in range(5)], "end/1": [(5,)]}


def costs(text: str, facts: dict[str, Any]) -> tuple[int, int, int]:
    """The calls for a plan, the source of its class, and that of its backward pass."""
    planning, plan = calls(lambda: planned(text, facts))
    writing, generated = calls(lambda: source_of(plan))
    return planning, writing, calls(lambda: backward_source_of(plan, generated))[0]


def test_four_times_the_predicates_take_four_times_the_work() -> None:
    for small, large in zip(costs(grammar(30), FACTS), costs(grammar(120), FACTS), strict=True):
        assert large < 4.5 * small


def test_four_times_the_rules_of_few_predicates_take_four_times_the_work() -> None:
    facts = {"word/3": FACTS["word/3"]}
    for small, large in zip(costs(crowded(30), facts), costs(crowded(120), facts), strict=True):
        assert large < 4.2 * small
