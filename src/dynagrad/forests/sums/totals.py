"""What the weights of the derivations of each item add up to.

Native code adds up components without a cycle. What a cyclic component adds up to is the least solution of its
equations: the chart has it, where its plus adds up derivations; else it is found here by Newton's method (Esparza,
Kiefer and Luttenberger 2010, "Newtonian program analysis").

How many derivations there are is for `counting.py`.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ...errors import NotConverged, QueryError, RoomError, counted
from ...runtime.library import Stop
from ..algebra import FAR, Doubles, Kind, check_sums
from ..native import Walk
from ..packed import Packed
from ..time_limit import look
from .linear import MOST_UNKNOWNS, linear_solution

MOST_ROUNDS = 200
"""The most steps of Newton's method."""


def summed(forest: Packed, stop: Stop | None = None) -> Walk:
    """The forest with the sum of every node."""
    check_sums(forest.meaning.algebra)
    walk = forest.walk(sampling=True)
    with walk.lock:
        if not walk.summed:
            _sum_up(forest, walk, stop)
    return walk


def weighs(forest: Packed, stop: Stop | None = None) -> bool:
    """Whether some derivation of the root has a weight that is not zero."""
    return bool(summed(forest, stop).totals()[0][0] != 0)


def must_weigh(forest: Packed, without: str, stop: Stop | None) -> None:
    """Raises where all derivations of the root have weight zero, so that they are `without` what was asked for."""
    if not weighs(forest, stop):
        raise weightless(forest, without)


def weightless(forest: Packed, without: str) -> QueryError:
    """The error for it, which says so where weights are not zero but as low as those of masks."""
    given, root = forest.meaning.given, forest.text(0)
    if given.ndim == 1 and given.dtype.kind == "f":
        masked = given[np.isfinite(given) & np.isneginf(forest.meaning.algebra.chances(given))]
        if len(masked):
            return QueryError(
                f"all derivations of {root} are masked by facts such as one of {masked[0]:g}, which counts as nothing "
                f"beside other logs, so {without}; leave the facts out, or give them logs of a size below {FAR:.2g}"
            )
    return QueryError(f"all derivations of {root} have weight zero, so {without}")


def _sum_up(forest: Packed, walk: Walk, stop: Stop | None) -> None:
    known = _chart_sums(forest) if forest.meaning.algebra.adds and _has_sums(forest) else None
    if known is not None:
        walk.know(*known)
    anew = True
    while known is None and (component := walk.sums(stop, anew=anew)) is not None:
        anew = False
        nodes, begin, _, _ = walk.order(stop)
        members = nodes[int(begin[component]) : int(begin[component + 1])]
        walk.settle(members, *_solve(forest, walk, members, stop))
    walk.summed = True


def _has_sums(forest: Packed) -> bool:
    """Whether the values of the chart are sums over all derivations."""
    return forest.meaning.exact and not forest.meaning.partial


def _chart_sums(forest: Packed) -> tuple[Doubles, npt.NDArray[np.int64]] | None:
    """The values of the chart as sums over derivations; None where they underflowed, or may be infinitely many."""
    if forest.meaning.algebra.name == "count":
        return None
    values = forest.meaning.values()
    numbers = forest.meaning.algebra.chances(values)
    if forest.meaning.algebra.sampled is not Kind.SUMS and (numbers < 1e-290).any():
        return None
    if forest.meaning.algebra.sampled is Kind.SUMS:
        with np.errstate(over="ignore", invalid="ignore"):
            bits = numbers / math.log(2)
            whole = np.where(np.isfinite(bits), np.floor(bits), 0.0)
            return np.where(np.isfinite(bits), np.exp2(bits - whole), 0.0), whole.astype(np.int64)
    return numbers, np.zeros(len(numbers), np.int64)


def _solve(
    forest: Packed, walk: Walk, members: npt.NDArray[np.uint32], stop: Stop | None
) -> tuple[Doubles, npt.NDArray[np.int64]]:
    """What the nodes of a cyclic component sum up to."""
    algebra = forest.meaning.algebra
    n = len(members)
    if walk.view.kind == Kind.SIZES or algebra.name == "count":
        raise NotConverged(
            f"{forest.text(int(members[0]))} has infinitely many derivations of one weight, and none can be drawn "
            "uniformly from them"
        )
    if n > MOST_UNKNOWNS:
        raise RoomError(
            f"a cycle goes through {counted(n, 'item')}, and draws are made from cycles of at most "
            f"{MOST_UNKNOWNS:,}; declare "
            "real or log, whose charts have the sums"
        )
    found = _Equations(forest, walk, members).solved(stop)
    if found is None:
        item = forest.text(int(members[0]))
        raise NotConverged(
            f"the weights of the derivations of {item} do not add up to a finite number: what goes around its cycle "
            "does not shrink. Make the weights around the cycle smaller"
        )
    bits = found / math.log(2)
    whole = np.where(np.isfinite(bits), np.floor(bits), 0.0)
    return np.where(np.isfinite(bits), np.exp2(bits - whole), 0.0), whole.astype(np.int64)


class _Equations:
    """The equations x = f(x) of a cyclic component: polynomials with coefficients of at least 0, all in logs.

    The unknowns may lie a hundred orders of magnitude apart, and the smallest ones count as much as the others. So they
    are scaled before each step by what is known of them.
    """

    def __init__(self, forest: Packed, walk: Walk, members: npt.NDArray[np.uint32]) -> None:
        a = forest.arrays
        m, e = walk.totals()
        logs = np.where(m > 0, np.log(np.maximum(m, 1e-300)), -np.inf) + e * math.log(2)
        own = _log_numbers(forest, walk)
        place = {int(v): i for i, v in enumerate(members)}
        heads: list[int] = []
        weights: list[float] = []
        inner: list[list[int]] = []
        for i, v in enumerate(members.tolist()):
            for instance in range(int(a.begin[v]), int(a.end[v])):
                below = [u for u in forest.antecedents(instance) if u >= 0]
                heads.append(i)
                inner.append([place[u] for u in below if u in place])
                weights.append(own[instance] + sum(float(logs[u]) for u in below if u not in place))
        self.count = len(members)
        self.heads, self.weights = np.array(heads), np.array(weights)
        self.begin = np.searchsorted(self.heads, np.arange(self.count))
        # the unknowns of each instance, and where one has fewer than another, the number one behind the unknowns
        width = max(map(len, inner))
        self.inner = np.array([[*u, *[self.count] * (width - len(u))] for u in inner]).reshape(len(inner), width)
        uses = [(heads[i], u, i) for i, below in enumerate(inner) for u in below]
        self.uses = np.array(uses, np.int64).reshape(-1, 3).T  # head, antecedent, instance

    def parts(self, x: Doubles) -> Doubles:
        """The log of what each instance contributes."""
        return np.asarray(self.weights + np.append(x, 0.0)[self.inner].sum(axis=1))

    def solved(self, stop: Stop | None) -> Doubles | None:
        """The logs of the least solution; None if it is not finite."""
        x = self._start(stop)
        some = np.isfinite(x)
        before = math.inf
        for _ in range(MOST_ROUNDS):
            look(stop)
            with np.errstate(invalid="ignore", over="ignore"):
                share = np.exp(self.parts(x) - x[self.heads])
            share = np.where(np.isfinite(share), share, 0.0)
            f = np.where(some, np.bincount(self.heads, share, self.count), 1.0)
            step = linear_solution(f - 1, self.uses[0], self.uses[1], share[self.uses[2]], stop)
            if step is None:
                return x if before < 1e-6 else None
            largest = float(np.abs(step).max())
            if not math.isfinite(largest) or (step < -1e-9 * max(1.0, largest)).any():
                return x if before < 1e-6 else None
            x = x + np.log1p(np.maximum(step, 0))
            if largest < 1e-15 or (largest < 1e-6 and largest >= before):  # all digits, or all that there are
                return x
            before = largest
        return x

    def _start(self, stop: Stop | None) -> Doubles:
        """The logs of sums over derivations up to a height: lower bounds, which are near for most items."""
        x: Doubles = np.full(self.count, -np.inf)
        for _ in range(2 * self.count + 10):
            look(stop)
            parts = self.parts(x)
            most = np.maximum.reduceat(parts, self.begin)
            with np.errstate(invalid="ignore", divide="ignore"):
                sums = np.add.reduceat(np.exp(parts - most[self.heads]), self.begin)
                after = np.where(np.isfinite(most), most + np.log(sums), -np.inf)
                change = np.where(np.isfinite(after), after - x, 0.0)
            x = after
            if (change < 0.1).all():
                break
        return x


def _log_numbers(forest: Packed, walk: Walk) -> list[float]:
    """The log of each instance's own weight."""
    a = forest.arrays
    constant, given = walk.held.constant, walk.held.given
    own = np.where(a.rule < 0, np.append(given, 1.0)[-1 - np.minimum(a.rule, -1)], constant[np.maximum(a.rule, 0)])
    if walk.view.kind == Kind.SUMS:
        return [float(x) for x in own]
    with np.errstate(divide="ignore"):
        return [float(x) for x in np.log(own)]
