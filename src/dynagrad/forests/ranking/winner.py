"""The best derivation in plain arithmetic: where items have one instance each, or `max=` and `min=` choose one.

Semirings, where every derivation has a weight, are ranked in `k_best.py` and `user.py`.
"""

from __future__ import annotations

from typing import Any

from ...errors import QueryError, counted
from ...runtime.library import Stop
from ..derivation import Derivation, make_derivation
from ..packed import Packed, RuleInstance
from ..time_limit import look

Choices = dict[int, list[int]]


def winner(forest: Packed, stop: Stop | None = None) -> Derivation:
    """The one derivation that makes the value of the root. Raises QueryError where several instances do together.

    Where several instances attain a maximum, one whose items are derived without the item itself is taken.
    """
    choices: Choices = {}
    stack = [0]
    while stack:
        look(stop)
        node = stack.pop()
        if node in choices:
            continue
        choices[node] = _choices(forest, node)
        for instance in choices[node]:
            stack.extend(u for u in forest.antecedents(instance) if u >= 0)
    chosen = _well_founded(forest, choices, stop)
    instances: list[int] = []
    todo = [0]
    while todo:
        look(stop)
        node = todo.pop()
        instances.append(chosen[node])
        todo.extend(reversed([u for u in forest.antecedents(chosen[node]) if u >= 0]))
    return make_derivation(forest, instances, None)


def _choices(forest: Packed, node: int) -> list[int]:
    """The instances that may be what made an item: the only one, or those that attain its value."""
    a = forest.arrays
    every = list(range(int(a.begin[node]), int(a.end[node])))
    if len(every) == 1:
        return every
    key = forest.name(node)[0]
    aggregator = forest.meaning.aggregators.get(key, "+=")
    if aggregator not in ("max=", "min="):
        raise QueryError(
            f"{forest.text(node)} has {counted(len(every), 'instance')}, which `{aggregator}` puts together, so "
            "none of them is "
            f"the best: in plain arithmetic `best` needs max= or min= where items of {key} have several. Declare a "
            "semiring, or look at chart.forest and chart.why"
        )
    values: list[Any] = [RuleInstance(forest, i).value for i in every]
    best = (max if aggregator == "max=" else min)(values)
    return [i for i, value in zip(every, values, strict=True) if value == best]


def _well_founded(forest: Packed, choices: Choices, stop: Stop | None) -> dict[int, int]:
    """Of each item the first choice whose items are all settled before it."""
    waiting: dict[int, set[int]] = {}
    uses: dict[int, list[tuple[int, int]]] = {}
    ready: list[tuple[int, int]] = []
    for node, listed in choices.items():
        look(stop)
        for instance in listed:
            below = {u for u in forest.antecedents(instance) if u >= 0}
            waiting[instance] = below
            for u in below:
                uses.setdefault(u, []).append((node, instance))
            if not below:
                ready.append((node, instance))
    chosen: dict[int, int] = {}
    while ready:
        following: list[tuple[int, int]] = []
        for node, instance in sorted(ready):
            if node in chosen:
                continue
            chosen[node] = instance
            for head, use in uses.get(node, ()):
                waiting[use].discard(node)
                if not waiting[use]:
                    following.append((head, use))
        ready = following
    if 0 not in chosen:
        raise QueryError(f"the value of {forest.text(0)} goes around a cycle, so that no single derivation makes it")
    return chosen
