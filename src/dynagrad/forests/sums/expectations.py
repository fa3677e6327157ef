"""Expectations of functions that are sums over the rule instances of a derivation, and their covariances.

What the derivations add up to is found first, by `totals.py`; counts of derivations are in `counting.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...arguments import numeric_function
from ...errors import Error, shown
from ...runtime.library import Stop
from ..algebra import Doubles
from ..packed import Packed, RuleInstance
from ..time_limit import look
from .linear import linear_solution, not_solved
from .totals import must_weigh, summed


def expected_counts(forest: Packed, stop: Stop | None = None) -> Doubles:
    """How often each instance is used in a derivation of the root, on average."""
    walk = summed(forest, stop)
    found = walk.expect(stop)
    if found is not None:
        return found
    a = forest.arrays
    shares = np.array(walk.shares(stop))
    nodes, begin, cyclic, component = walk.order(stop)
    chance = np.zeros(len(a.rule))
    used = np.zeros(len(a.begin))
    used[0] = 1.0
    for c in range(len(begin) - 2, -1, -1):  # heads first
        look(stop)
        members = nodes[int(begin[c]) : int(begin[c + 1])].tolist()
        for v in members:
            b, e = int(a.begin[v]), int(a.end[v])
            chance[b:e] = shares[b:e]
        if cyclic[c]:
            place = {v: i for i, v in enumerate(members)}
            uses = [
                (place[u], place[v], i)
                for v in members
                for i in range(int(a.begin[v]), int(a.end[v]))
                for u in forest.antecedents(i)
                if u >= 0 and u in place
            ]
            to, source, instance = np.array(uses, np.int64).reshape(-1, 3).T
            solved = linear_solution(used[members], to, source, chance[instance], stop)
            if solved is None:
                raise not_solved(forest.text(members[0]), len(members))
            used[members] = solved
        for v in members:
            for i in range(int(a.begin[v]), int(a.end[v])):
                if not chance[i] or not used[v]:
                    continue
                for u in forest.antecedents(i):
                    if u >= 0 and component[u] != c:
                        used[u] += used[v] * chance[i]
    return np.asarray(used[a.owner] * chance)


def expectation(forest: Packed, value: Callable[[RuleInstance], Any], stop: Stop | None = None) -> Any:
    """The expectation of the sum over a derivation's instances of a function of them: numbers, or arrays."""
    if not callable(value):
        raise Error(f"expected takes a function of a rule instance, not {shown(value)}")
    must_weigh(forest, "there is no expectation over them", stop)
    counts = expected_counts(forest, stop)
    total: Any = 0.0
    for i in np.flatnonzero(counts).tolist():
        look(stop)
        found = value(RuleInstance(forest, i))
        try:
            total = total + float(counts[i]) * found
        except (TypeError, ValueError):
            raise Error(f"expected adds up numbers, or arrays of one shape, and was given {shown(found)}") from None
    return total


def covariance(
    forest: Packed,
    first: Callable[[RuleInstance], float],
    second: Callable[[RuleInstance], float] | None = None,
    stop: Stop | None = None,
) -> float:
    """The covariance of two sums over a derivation's instances; the variance of one, where there is no second.

    Given its last instance, the derivations of the antecedents are independent. So the covariance of an item is that
    of what its instances expect, plus the expected sum of the covariances of antecedents (Li and Eisner 2009,
    "First- and second-order expectation semirings").
    """
    first = numeric_function("first", first)
    second = None if second is None else numeric_function("second", second)
    walk = summed(forest, stop)
    must_weigh(forest, "there is no covariance over them", stop)
    a = forest.arrays
    shares = np.array(walk.shares(stop))
    used = np.flatnonzero(shares > 0).tolist()
    f, g = np.zeros(len(a.rule)), np.zeros(len(a.rule))
    for i in used:
        look(stop)
        f[i] = first(RuleInstance(forest, i))
        g[i] = f[i] if second is None else second(RuleInstance(forest, i))
    means = [np.zeros(len(a.begin)), np.zeros(len(a.begin))]
    spread, found = np.zeros(len(a.rule)), np.zeros(len(a.begin))
    nodes, begin, cyclic, _ = walk.order(stop)
    for c in range(len(begin) - 1):
        look(stop)
        component = _Component(forest, nodes[int(begin[c]) : int(begin[c + 1])].tolist(), shares, bool(cyclic[c]), stop)
        for mean, values in zip(means, (f, g), strict=True):
            component.solve(values, mean)
        for i, head, below in component.instances:
            x, y = (values[i] + mean[below].sum() - mean[head] for mean, values in zip(means, (f, g), strict=True))
            spread[i] = x * y
        component.solve(spread, found)
    return float(found[0])


class _Component:
    """A component of a forest, for numbers of items that add up over their instances, in proportion to shares."""

    def __init__(self, forest: Packed, members: list[int], shares: Doubles, cyclic: bool, stop: Stop | None) -> None:
        a = forest.arrays
        self.members, self.shares = members, shares
        self.instances = [
            (i, v, [u for u in forest.antecedents(i) if u >= 0])
            for v in members
            for i in range(int(a.begin[v]), int(a.end[v]))
            if shares[i] > 0
        ]
        self.place = {v: n for n, v in enumerate(members)}
        inside = self.instances if cyclic else []
        uses = [(self.place[head], self.place[u], i) for i, head, below in inside for u in below if u in self.place]
        self.uses = np.array(uses, np.int64).reshape(-1, 3).T  # head, antecedent, instance
        self.forest, self.stop = forest, stop

    def solve(self, own: Doubles, of: Doubles) -> None:
        """Of each member, the sum over its instances of what is its own and what antecedents have, by its share."""
        constant = np.zeros(len(self.members))
        for i, head, below in self.instances:
            outside = sum(of[u] for u in below if u not in self.place)
            constant[self.place[head]] += self.shares[i] * (own[i] + outside)
        to, source, instance = self.uses
        found = linear_solution(constant, to, source, self.shares[instance], self.stop) if len(to) else constant
        if found is None:
            raise not_solved(self.forest.text(self.members[0]), len(self.members))
        of[self.members] = found
