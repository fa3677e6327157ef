"""Pullback terms of 10,000 bindings: parsed, typed, reduced, printed, each for itself and together; first steps; how
reducing and compiling grow with the term.

A first step is timed from when the term was parsed and typed, since a mistake anywhere in it is said before any step.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from dynagrad.languages.pullback import compile, infer, lines, parse, reduce, show

from .common import Row, growth, megabytes, megabytes_of_compiler, timed

COUNT = 10_000
LETS = "".join(f"let y{i + 1} = sin(y{i}) in " for i in range(COUNT)) + f"y{COUNT}"
NESTED = "".join(f"let y{i + 1} = sin(y{i}) * y{i} in " for i in range(COUNT // 2)) + f"y{COUNT // 2}"
TERMS = {"let bindings": f"let y0 = 1 in {LETS}", "let bindings under a pullback": f"((Ω λy0. {LETS}) . (λ_. 1^)) 1"}
EXAMPLE = "((Ω λ<x, y>. square((x + 1) * (2 * x + y * y))) . (λ_. 1^)) <1, 3>"
FIRST = {
    "the running example": EXAMPLE,
    f"{COUNT:,} let bindings under a pullback": TERMS["let bindings under a pullback"],
    f"{COUNT // 2:,} let bindings of nested primitives under a pullback": f"((Ω λy0. {NESTED}) . (λ_. 1^)) 1",
}


def _least(run: Callable[[Any], object], make: Callable[[], Any], times: int = 3) -> float:
    found = []
    for _ in range(times):
        given = make()
        start = time.perf_counter()
        run(given)
        found.append(time.perf_counter() - start)
    return min(found)


def _whole(text: str) -> None:
    show(parse(text))
    show(reduce(text).result)


def compiled_pullback(n: int) -> list[float]:
    """Seconds to compile the pullback of n bindings, of each of which both sides of a product stand; megabytes that
    its graph takes at its most, and the C++ compiler."""

    def text(bindings: int) -> str:
        lets = "".join(f"let y{i + 1} = sin(y{i}) * y{i} in " for i in range(bindings))
        return f"λx. ((Ω λy0. {lets}y{bindings}) . (λ_. 1^)) x"

    compile(text(1))(0.9)
    seconds = timed(lambda: compile(text(n))(0.9))
    return [seconds, megabytes(lambda: compile(text(n))), megabytes_of_compiler()]


def reduced_pullback(n: int) -> list[float]:
    """Seconds to reduce the pullback of n bindings, and megabytes that this takes at its most."""
    text = f"((Ω λy0. {''.join(f'let y{i + 1} = sin(y{i}) in ' for i in range(n))}y{n}) . (λ_. 1^)) 1"
    term = parse(text)
    return [_least(lambda reduction: reduction.result, lambda: reduce(term)), megabytes(lambda: reduce(term).result)]


def reductions() -> list[Row]:
    """Reductions of terms that are twice as long."""
    (half, of_half), (whole, of_whole) = (reduced_pullback(n) for n in (COUNT, 2 * COUNT))
    what, less = f"pullback of {2 * COUNT:,} bindings, reduced", f"of {COUNT:,}"
    return [Row(what, whole, "s", less, half, 3.0), Row(f"{what}: memory", of_whole, "MB", less, of_half, 3.0)]


def pullback() -> list[Row]:
    """Both kinds of terms, in parts and as a whole, and first steps; how reducing and compiling grow."""
    rows = []
    for what, text in TERMS.items():
        term = parse(text)
        for part, seconds in {
            "parsed": _least(parse, lambda text=text: text),
            "printed": _least(show, lambda term=term: term),
            "typed": _least(infer, lambda term=term: term),
            "reduced": _least(lambda reduction: reduction.result, lambda term=term: reduce(term)),
        }.items():
            rows.append(Row(f"{COUNT:,} {what}: {part}", seconds))
        whole = _least(_whole, lambda text=text: text)
        rows.append(Row(f"{COUNT:,} {what}: parsed, printed, typed, reduced, printed", whole, target=2.0))
    for what, text in FIRST.items():
        step = _least(lambda reduction: next(iter(reduction)), lambda text=text: reduce(text), 5)
        rows.append(Row(f"first step of {what}, typed", step, target=0.05))
        shown = _least(lambda shown: [next(shown) for _ in range(3)], lambda text=text: lines(reduce(text)), 5)
        rows.append(Row(f"first step of {what}, shown as text", shown, target=0.05))
    code = "from benchmarks.pullback import compiled_pullback\nprint(*compiled_pullback({n}))"
    return rows + reductions() + growth("pullback", "bindings", (400, 800, 1600), code)
