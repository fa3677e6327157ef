"""Pullback terms of 10,000 bindings: parsed, typed, reduced and printed; and the first step of one."""

from __future__ import annotations

import time

from dynagrad.languages.pullback import parse, reduce, show

from .common import Row

COUNT = 10_000
LETS = "".join(f"let y{i + 1} = sin(y{i}) in " for i in range(COUNT)) + f"y{COUNT}"
TERMS = {"let bindings": f"let y0 = 1 in {LETS}", "let bindings under a pullback": f"((Ω λy0. {LETS}) . (λ_. 1^)) 1"}


def _whole(text: str) -> float:
    start = time.perf_counter()
    show(parse(text))
    show(reduce(text).result)
    return time.perf_counter() - start


def _first(text: str) -> float:
    term = parse(text)
    start = time.perf_counter()
    next(iter(reduce(term)))
    return time.perf_counter() - start


def pullback() -> list[Row]:
    """Both kinds of terms, and the first step of the running example."""
    example = "((Ω λ<x, y>. square((x + 1) * (2 * x + y * y))) . (λ_. 1^)) <1, 3>"
    rows = [
        Row(f"{COUNT:,} {what}: parsed, typed, reduced, printed", min(_whole(text) for _ in range(3)), target=2.0)
        for what, text in TERMS.items()
    ]
    first = min(_first(example) for _ in range(5))
    return [*rows, Row("first step of the running example", first, target=0.05)]
