"""Whether all ways of running a closed pullback term agree with what it means through `dg.vjp`."""

from __future__ import annotations

import random

from dynagrad.languages.pullback.evaluate import evaluate
from dynagrad.languages.pullback.reduction.reduce import reduce
from dynagrad.languages.pullback.terms import Covector, PullbackTerm, Zero
from languages.pullback.oracle import meaning
from languages.pullback.strangers import stranger
from languages.pullback.terms import Source

BASIS = [(1.0, 0.0), (0.0, 1.0)]


def near(a: float, b: float) -> bool:
    """To 1e-12 of their size, or to four units in the last place of 1, where what was summed cancels to nothing."""
    return abs(a - b) <= 1e-12 * max(abs(a), abs(b)) + 1e-15


def oracle(program: PullbackTerm) -> tuple[float, float]:
    dual = meaning(program, {})
    first, second = (0.0 if dual is None else dual(u) or 0.0 for u in BASIS)
    return first, second


def evaluated(program: PullbackTerm) -> tuple[float, float]:
    dual = evaluate(program)
    first, second = (0.0 if dual == 0.0 else dual(u) for u in BASIS)
    return first, second


def reduced(of: PullbackTerm) -> tuple[float, float]:
    match reduce(of).result:
        case Covector((float() as a, float() as b)):
            return a, b
        case Zero():
            return 0.0, 0.0
        case other:
            raise AssertionError(f"stuck: {of} is {other}")


def agree(program: PullbackTerm) -> None:
    """Raises AssertionError where reduction or the evaluator gives another dual than the oracle."""
    wanted = oracle(program)
    for found in (evaluated(program), reduced(program)):
        assert all(near(a, b) for a, b in zip(found, wanted, strict=True)), (str(program), found, wanted)


def agree_with_stranger(seed: int) -> None:
    """Raises AssertionError where a stranger's term has another value than differences in 50 digits give."""
    text, wanted = stranger(seed)
    for found in (float(evaluate(text)), float(str(reduce(text).result))):
        assert abs(found - wanted) <= 1e-9 * max(1.0, abs(wanted)), (text, found, wanted)


def drawn(kind: type[Source], seed: int) -> PullbackTerm:
    """A program by its number."""
    pick = random.Random(seed)
    return kind(pick).program(pick.randrange(1, 12))
