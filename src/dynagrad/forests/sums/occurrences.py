"""The chance that an instance occurs in a derivation, at least once: its posterior.

How often it is used on average (`expectations.py`) is the same where no derivation uses it twice, and more elsewhere:
a rule of a grammar is used many times in a parse. Which nodes can occur twice is seen in a forest of any size by
tokens: an item that needs a fact of which no derivation has two occurs once. For the others the chance that an
instance occurs is worked out from antecedents to heads, for many instances at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...errors import NotConverged
from ...runtime.library import Stop
from ..algebra import Doubles
from ..native import Walk
from ..packed import Packed
from ..time_limit import look
from .linear import FEW, MOST_SWEEPS, not_solved

Places = npt.NDArray[np.int64]

FEW_PRODUCTS = 5_000_000
"""Up to how many chances of a node are multiplied without a look for nodes that occur once."""
BATCH_CELLS = 4_000_000
"""About how many numbers are worked out at once."""
MOST_STEPS = 60
"""The most steps of Newton's method around a cycle; it takes one where a derivation goes around in one way."""


@dataclass(frozen=True)
class _Step:
    """Nodes whose antecedents lie in earlier steps, or among them if the step is a cycle; instances without chance are
    left out."""

    nodes: Places
    first: Places
    """Where the instances of each node begin."""
    instances: Places
    antecedents: tuple[Places, ...]
    """The first antecedent of each instance, the second, and so on; the number of nodes stands for none."""
    cyclic: bool


def chances(forest: Packed, walk: Walk, counts: Doubles, wanted: Places, stop: Stop | None = None) -> Doubles:
    """The chance of each wanted instance; `counts` has how often each is used on average. Sums were found before."""
    found = np.array(counts[wanted])
    if not len(wanted):
        return found
    shares = np.array(walk.shares(stop))
    steps = list(_steps(forest, walk, shares, stop))
    many = np.ones(len(wanted), np.bool_)
    if len(forest.arrays.rule) * len(wanted) > FEW_PRODUCTS:
        many = ~_occur_once(forest, steps, stop)[forest.arrays.owner[wanted]]
    places = np.flatnonzero(many)
    largest = max(len(forest.arrays.begin), *(len(step.instances) for step in steps))
    size = max(1, BATCH_CELLS // largest)
    for start in range(0, len(places), size):
        part = places[start : start + size]
        found[part] = _chances(forest, steps, shares, wanted[part], stop)
    return found


def _steps(forest: Packed, walk: Walk, shares: Doubles, stop: Stop | None) -> Iterator[_Step]:
    """The nodes that the root reaches, antecedents first, as many at once as do not need each other."""
    a = forest.arrays
    nodes, begin, cyclic, _ = walk.order(stop)
    level = np.full(len(a.begin), -1, np.int64)
    levels: dict[tuple[int, int], list[int]] = {}
    for c in range(len(begin) - 1):
        look(stop)
        members = nodes[int(begin[c]) : int(begin[c + 1])].tolist()
        height = 0
        for v in members:
            below = a.antecedent[int(a.first[int(a.begin[v])]) : int(a.first[int(a.end[v])])]
            if len(below := below[below >= 0]):
                height = max(height, int(level[below].max()) + 1)
        level[members] = height
        levels.setdefault((height, c + 1 if cyclic[c] else 0), []).extend(members)
    for (_, cycle), members in sorted(levels.items()):
        step = _step(forest, shares, np.array(members, np.int64), bool(cycle))
        if len(step.nodes):
            yield step


def _step(forest: Packed, shares: Doubles, nodes: Places, cyclic: bool) -> _Step:
    a = forest.arrays
    counts = (a.end[nodes] - a.begin[nodes]).astype(np.int64)
    instances = np.arange(counts.sum()) + np.repeat(a.begin[nodes] - (np.cumsum(counts) - counts), counts)
    owner = np.repeat(np.arange(len(nodes)), counts)
    possible = shares[instances] > 0
    instances, owner = instances[possible], owner[possible]
    used, first = np.unique(owner, return_index=True)
    width = (a.first[instances + 1] - a.first[instances]).astype(np.int64)
    antecedents = []
    for k in range(int(width.max(initial=0))):
        there = np.flatnonzero(width > k)
        column = np.full(len(instances), len(a.begin), np.int64)
        column[there] = a.antecedent[a.first[instances[there]].astype(np.int64) + k]
        column[column < 0] = len(a.begin)
        antecedents.append(column)
    return _Step(nodes[used], first, instances, tuple(antecedents), cyclic)


def _own(step: _Step, wanted: Places) -> tuple[Places, Places]:
    """Which of the step's instances are wanted, and their columns."""
    order = np.argsort(step.instances)
    at = np.searchsorted(step.instances, wanted, sorter=order)
    at = order[np.minimum(at, len(order) - 1)]
    columns = np.flatnonzero(step.instances[at] == wanted)
    return at[columns], columns


def _chances(forest: Packed, steps: list[_Step], shares: Doubles, wanted: Places, stop: Stop | None) -> Doubles:
    """The chance of each of some instances, a column each."""
    found = np.zeros((len(forest.arrays.begin) + 1, len(wanted)))
    for step in steps:
        look(stop)
        found[step.nodes] = (
            _around(forest, step, found, shares, wanted, stop) if step.cyclic else _once(step, found, shares, wanted)
        )
    return np.asarray(found[0])


def _once(step: _Step, found: Doubles, shares: Doubles, wanted: Places) -> Doubles:
    """The chances of nodes from those of their antecedents, which are independent."""
    occurs = np.zeros((len(step.instances), len(wanted)))
    for column in step.antecedents:
        occurs += found[column] * (1.0 - occurs)
    occurs[_own(step, wanted)] = 1.0
    occurs *= shares[step.instances, None]
    return np.asarray(np.add.reduceat(occurs, step.first))


def _around(forest: Packed, step: _Step, found: Doubles, shares: Doubles, wanted: Places, stop: Stop | None) -> Doubles:
    """The same around a cycle: one minus the least solution of the equations for the chance that it does not occur.

    Newton's method goes up to it from zero, see `totals.py`; with very many unknowns the equations are iterated.
    """
    size, n = len(wanted), len(step.nodes)
    if n > FEW:
        found[step.nodes] = 1.0
        for _ in range(MOST_SWEEPS):
            look(stop)
            following = _once(step, found, shares, wanted)
            apart = float(np.abs(following - found[step.nodes]).max())
            found[step.nodes] = following
            if apart <= 1e-15:
                return following
        raise not_solved(forest.text(int(step.nodes[0])), n)
    place = np.full(len(found), -1, np.int64)
    place[step.nodes] = np.arange(n)
    owner = np.repeat(np.arange(n), np.diff([*step.first, len(step.instances)]))
    outside = np.repeat(shares[step.instances, None], size, axis=1)
    outside[_own(step, wanted)] = 0.0
    for column in step.antecedents:
        outside *= np.where(place[column, None] < 0, 1.0 - found[column], 1.0)
    inside = [
        (i, members)
        for i, below in enumerate(zip(*step.antecedents, strict=True))
        if (members := [int(place[u]) for u in below if place[u] >= 0])
    ]
    absent, rest = np.zeros((n, size)), np.zeros((n, size))
    for _ in range(MOST_STEPS):
        look(stop)
        value, slope = np.array(outside), np.zeros((size, n, n))
        for i, members in inside:
            value[i] *= np.prod(absent[members], axis=0)
            for k, u in enumerate(members):
                slope[:, owner[i], u] += outside[i] * np.prod(absent[members[:k] + members[k + 1 :]], axis=0)
        rest = np.add.reduceat(value, step.first) - absent
        try:
            move = np.linalg.solve(np.eye(n) - slope, rest.T[:, :, None])[:, :, 0].T
        except np.linalg.LinAlgError:
            break
        absent = np.clip(absent + move, 0.0, 1.0)
        if float(np.abs(move).max()) <= 1e-15:
            break
    if float(np.abs(rest).max()) > 1e-12:
        raise NotConverged(
            f"the chances of what goes around the cycle of {forest.text(int(step.nodes[0]))} were not found; make the "
            "weights around the cycle smaller"
        )
    return 1.0 - absent


def _occur_once(forest: Packed, steps: list[_Step], stop: Stop | None) -> npt.NDArray[np.bool_]:
    """Which nodes are seen to occur at most once in a derivation: those that need a fact that does.

    Of each node three sets of facts are kept, 64 facts a word: those of which a derivation may have one, those of which
    it may have two, and those that all its derivations have.
    """
    a = forest.arrays
    facts, n = np.flatnonzero(a.rule < 0), len(a.begin)
    once = np.zeros(n, np.bool_)
    for start in range(0, len(facts), 64):
        tokens = facts[start : start + 64]
        bits = np.uint64(1) << np.arange(len(tokens), dtype=np.uint64)
        one, two, all_ = (np.zeros(n + 1, np.uint64) for _ in range(3))
        for step in steps:
            look(stop)
            has, twice, needs = (np.zeros(len(step.instances), np.uint64) for _ in range(3))
            for column in step.antecedents:
                twice |= two[column] | (has & one[column])
                has |= one[column]
                needs |= all_[column]
            own, columns = _own(step, tokens)
            has[own] |= bits[columns]
            needs[own] |= bits[columns]
            one[step.nodes] = np.bitwise_or.reduceat(has, step.first)
            two[step.nodes] = np.bitwise_or.reduceat(twice, step.first)
            all_[step.nodes] = np.bitwise_and.reduceat(needs, step.first)
            if step.cyclic:
                inside = np.bitwise_or.reduce(one[step.nodes])
                one[step.nodes], two[step.nodes], all_[step.nodes] = inside, inside, 0
        once |= (all_[:n] & ~two[0]) != 0
    return once
