"""Solves the ground equations of a program in many digits: the oracle of solved cycles and their gradients.

An engine that solves cycles promises the solution, however it gets there; its gradient is that of the implicit
function. So here the items that were popped are unknowns, each the sum of what its instances send, and a whole stage is
solved at once: by iteration, and where that is slow by Newton's method with a Jacobian of differences. Derivatives are
differences of solutions, as in `replay.py`, whose matching and arithmetic are used. Slow on purpose.
"""

from __future__ import annotations

from typing import Any

import mpmath

from oracle import Key
from replay import Computation, _flat, _Stage

ROUNDS, NEWTON = 60, 80
SMALL = "1e-47"


def _like(number: Any, parts: list[Any]) -> Any:
    """Numbers in the shape of another."""
    return tuple(_like(x, parts) for x in number) if isinstance(number, tuple) else parts.pop(0)


class Solution(Computation):
    """A program, its facts and the items that it derives, ready to be solved with other numbers."""

    def _run(self, stage: _Stage, waiting: dict[Key, list[Any]], chart: dict[Key, Any], base: bool) -> None:
        if stage.pops is None:
            return super()._run(stage, waiting, chart, base)
        instances = {id(i): i for those in stage.drives.values() for i, _ in those} | {id(i): i for i in stage.fires}
        popped = set(stage.pops)

        def sent(values: dict[Key, Any]) -> dict[Key, list[Any]]:
            """All contributions to items of the stage, given the values of its unknowns."""
            known = {**chart, **values}
            found: dict[Key, list[Any]] = {item: list(those) for item, those in waiting.items()}
            for instance in instances.values():
                numbers = [self._antecedent(item, known) for item in instance.items]
                if not any(number is None for number in numbers):
                    head = (instance.rule.head.key, instance.head)
                    found.setdefault(head, []).append(self._value(instance, numbers))
            return found

        def step(values: dict[Key, Any]) -> dict[Key, Any]:
            found = sent(values)
            inside = [item for item in found if item in popped or item[0] in stage.unfolded]
            return {item: self.arithmetic.total(item[0], found[item]) for item in inside}

        values: dict[Key, Any] = {}
        while len(grown := step(values)) > len(values):
            values = grown  # first all are derived, with what they have so far
        assert popped <= set(values), "what was popped is not derived"
        values = self._solved(values, step)
        chart.update(values)
        for item, those in sent(values).items():
            if item[0] in stage.sinks:
                chart[item] = self.arithmetic.total(item[0], those)
        return None

    def _solved(self, values: dict[Key, Any], step: Any) -> dict[Key, Any]:
        small = mpmath.mpf(SMALL)

        def apart(a: dict[Key, Any], b: dict[Key, Any]) -> list[Any]:
            return [x - y for item in a for x, y in zip(_flat(a[item]), _flat(b[item]), strict=True)]

        def near(left: list[Any], here: dict[Key, Any]) -> bool:
            sizes = [abs(x) for item in here for x in _flat(here[item])]
            return all(abs(d) <= small * (s + 1e-30) for d, s in zip(left, sizes, strict=True))

        for _ in range(ROUNDS):
            after = step(values)
            if near(apart(after, values), values):
                return after
            values = after
        items = list(values)
        for _ in range(NEWTON):
            after = step(values)
            left = apart(after, values)
            if near(left, values):
                return after
            flat = [x for item in items for x in _flat(values[item])]
            h = mpmath.mpf("1e-24") * (1 + max(map(abs, flat)))

            def unflat(numbers: list[Any], values: dict[Key, Any] = values) -> dict[Key, Any]:
                rest = list(numbers)
                return {item: _like(values[item], rest) for item in items}

            jacobian = mpmath.eye(len(flat))
            for n in range(len(flat)):
                moved = step(unflat([x + h if m == n else x for m, x in enumerate(flat)]))
                for m, d in enumerate(apart(moved, after)):
                    jacobian[m, n] -= d / h
            by = mpmath.lu_solve(jacobian, mpmath.matrix(left))
            values = unflat([x + d for x, d in zip(flat, by, strict=True)])
        raise AssertionError("the equations were not solved")
