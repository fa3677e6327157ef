"""Sums over the derivations of a forest: how many there are, draws in proportion to their weight, and expectations.

Native code sums up components without a cycle. What a cyclic component sums up to is the least solution of its
equations: the chart has it, where its plus adds up derivations; else it is found here by Newton's method (Esparza,
Kiefer and Luttenberger 2010, "Newtonian program analysis").
"""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arguments import numeric_function, whole_number
from ..calls import maker
from ..errors import Error, NotConverged, QueryError, RoomError, shown
from ..runtime.library import Stop
from .algebra import NO_WEIGHT, Kind
from .derivation import Derivation, make_derivation
from .listed import Listed
from .native import Walk
from .packed import Packed, RuleInstance
from .ranking.k_best import MOST_INSTANCES, product_of
from .time_limit import look

Doubles = npt.NDArray[np.float64]
MOST_UNKNOWNS = 3_000
"""The most items of a cyclic component whose equations are solved here."""
MOST_ROUNDS = 200
"""The most steps of Newton's method."""
BATCH = 10_000
"""How many draws a thread makes at a time."""
LOOK = 0.2  # seconds between looks at signals
MOST_SIMPLE = 1_000_000
"""How many steps the counting of simple derivations takes at most."""


def count(forest: Packed, stop: Stop | None = None) -> int | float:
    """How many derivations the root has: a whole number, or inf."""
    walk = forest.walk()
    found = walk.count(stop)
    return _count_exactly(forest, walk, stop) if found is None else found


def _count_exactly(forest: Packed, walk: Walk, stop: Stop | None) -> int:
    nodes, _, _, _ = walk.order(stop)  # no component is cyclic: native code said so
    known: dict[int, int] = {}
    a = forest.arrays
    for v in nodes.tolist():
        look(stop)
        known[v] = sum(
            math.prod(known[u] for u in forest.antecedents(i) if u >= 0) for i in range(int(a.begin[v]), int(a.end[v]))
        )
    return known[0]


def count_simple(forest: Packed, stop: Stop | None = None) -> int:
    """How many derivations repeat no item on their own path. Raises NotConverged where that takes too long."""
    a = forest.arrays
    steps = 0
    nodes, _, cyclic, component = forest.walk().order(stop)
    known: dict[int, int] = {}  # of items that reach no cycle
    around: set[int] = set()  # those that do
    for v in nodes.tolist():
        look(stop)
        below = [u for i in range(int(a.begin[v]), int(a.end[v])) for u in forest.antecedents(i) if u >= 0]
        if cyclic[component[v]] or any(u in around for u in below):
            around.add(v)

    def number(v: int, path: frozenset[int]) -> int:
        nonlocal steps
        look(stop)
        steps += 1
        if steps > MOST_SIMPLE:
            raise NotConverged(
                f"counting the derivations that repeat no item takes more than {MOST_SIMPLE:,} steps; count them all"
            )
        if v not in around and v in known:
            return known[v]
        within = path | {v}
        total = 0
        for i in range(int(a.begin[v]), int(a.end[v])):
            product = 1
            for u in forest.antecedents(i):
                if u >= 0:
                    product *= 0 if u in within else number(u, within)
                if not product:
                    break
            total += product
        if v not in around:
            known[v] = total
        return total

    for v in nodes.tolist():  # antecedents first, so that nothing nests deeply outside of cycles
        if v not in around:
            number(v, frozenset())
    try:
        return number(0, frozenset())
    except RecursionError:
        raise NotConverged("the derivations are too deep to count those that repeat no item; count them all") from None


# -- sums --------------------------------------------------------------------------------------------------------------


def summed(forest: Packed, stop: Stop | None = None) -> Walk:
    """The forest with the sum of every node."""
    algebra = forest.meaning.algebra
    if algebra.sampled is None:
        if algebra.times is None:
            raise QueryError(NO_WEIGHT)
        raise QueryError("draws need weights that add up, and a semiring of your own has none that are known")
    walk = forest.walk(sampling=True)
    if walk.summed:
        return walk
    known = _chart_sums(forest) if algebra.adds and _has_sums(forest) else None
    if known is not None:
        walk.know(*known)
    again = True
    while known is None and (component := walk.sums(stop, again=again)) is not None:
        again = False
        nodes, begin, _, _ = walk.order(stop)
        members = nodes[int(begin[component]) : int(begin[component + 1])]
        walk.settle(members, *_solve(forest, walk, members, stop))
    walk.summed = True
    return walk


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
            f"a cycle goes through {n:,} items, and draws are made from cycles of at most {MOST_UNKNOWNS:,}; declare "
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

    def parts(self, x: Doubles) -> Doubles:
        """The log of what each instance contributes."""
        return np.asarray(self.weights + np.append(x, 0.0)[self.inner].sum(axis=1))

    def solved(self, stop: Stop | None) -> Doubles | None:
        """The logs of the least solution; None where there is none that is finite."""
        x = self._start(stop)
        some = np.isfinite(x)
        before = math.inf
        for _ in range(MOST_ROUNDS):
            look(stop)
            with np.errstate(invalid="ignore", over="ignore"):
                share = np.exp(self.parts(x) - x[self.heads])
            share = np.where(np.isfinite(share), share, 0.0)
            f = np.where(some, np.bincount(self.heads, share, self.count), 1.0)
            jacobian = np.zeros((self.count, self.count + 1))
            for column in self.inner.T:
                np.add.at(jacobian, (self.heads, column), share)
            try:
                step = np.linalg.solve(np.eye(self.count) - jacobian[:, :-1], f - 1)
            except np.linalg.LinAlgError:
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


def log_total(forest: Packed) -> float:
    """The log of the sum of the weights of all derivations of the root."""
    walk = summed(forest)
    m, e = walk.totals()
    return -math.inf if m[0] == 0 else math.log(m[0]) + int(e[0]) * math.log(2)


# -- draws -------------------------------------------------------------------------------------------------------------


class Samples(Listed[Derivation]):
    """Draws from the derivations of an item, in proportion to their weight. Draw i depends on the seed and i alone.

    They are kept as numbers of instances, and made into derivations as they are looked at. `log_probability` has the
    log of the chance of each.
    """

    def __init__(self, forest: Packed, n: int, seed: int = 0, start: int = 0, stop: Stop | None = None) -> None:
        """Draws start .. start + n - 1."""
        n, seed, start = whole_number("n", n, 0), whole_number("seed", seed), whole_number("start", start, 0)
        walk = summed(forest, stop)
        self._forest = forest
        instances, begins, logs, total = [], [np.zeros(1, np.int64)], [], 0
        for found in _drawn(walk, seed, start, start + n, Stop(None if stop is None else stop.deadline)):
            if isinstance(found, int):
                raise _not_drawn(forest, found)
            instances.append(found[0])
            begins.append(found[1][1:] + total)
            logs.append(found[2])
            total += len(found[0])
        self.instances = np.concatenate([np.zeros(0, np.uint32), *instances])
        """The instances of all draws, draw after draw, each before those of its antecedents; no facts given once."""
        self.begin = np.concatenate(begins)
        """Where each draw begins in `instances`, and where the last one ends."""
        self.log_probability = np.concatenate([np.zeros(0), *logs])

        super().__init__(len(self.begin) - 1, self._draw)

    def _draw(self, n: int) -> Derivation:
        instances = _completed(self._forest, self.instances[self.begin[n] : self.begin[n + 1]].tolist())
        weight = product_of(self._forest, instances)
        return make_derivation(self._forest, instances, weight, float(self.log_probability[n]))

    def score_gradient(self, value: Callable[[Derivation], float]) -> dict[str, float]:
        """Estimates the derivative of the expectation of a function of a derivation by the log weight of each fact.

        It is the mean of value times score, with the mean value as a baseline (Williams 1992, "Simple statistical
        gradient-following algorithms"). Facts that no draw uses have none.
        """
        value = numeric_function("value", value)
        derivations = list(self)
        values = np.array([value(d) for d in derivations])
        if len(values) < 2:
            raise Error("a gradient is estimated from at least two draws")
        values = (values - values.mean()) / (len(values) - 1)
        found: dict[str, float] = {}
        for derivation, weight in zip(derivations, values.tolist(), strict=True):
            for fact in derivation.facts():
                found[fact] = found.get(fact, 0.0) + weight
        return found

    def __repr__(self) -> str:
        return f"<{len(self):,} draws from the derivations of {self._forest.text(0)}>"


make_samples = maker(Samples, "draws come from chart.sample(item, n)")


_Draws = tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64], Doubles]


def _drawn(walk: Walk, seed: int, start: int, end: int, stop: Stop) -> Iterator[_Draws | int]:
    """The draws in parts, each by a thread; the parts do not change what is drawn."""
    parts = iter([(low, min(low + BATCH, end)) for low in range(start, end, BATCH)])
    threads = os.cpu_count() or 1

    def draw(part: tuple[int, int]) -> _Draws | int:
        return walk.sample(seed, part[0], part[1], MOST_INSTANCES, stop)

    if threads < 2 or end - start <= BATCH:
        yield from map(draw, parts)
        return
    pool = ThreadPoolExecutor(threads)
    try:
        waiting = deque(pool.submit(draw, part) for part in islice(parts, 2 * threads))
        while waiting:
            yield _awaited(waiting.popleft())
            waiting.extend(pool.submit(draw, part) for part in islice(parts, 1))
    finally:
        stop.set()  # where somebody stopped this thread
        pool.shutdown(cancel_futures=True)


def _awaited(future: Future[_Draws | int]) -> _Draws | int:
    """The result of a future, with a look at signals now and then: one may have reached another thread."""
    while not future.done():
        wait([future], LOOK)
    return future.result()


def _completed(forest: Packed, drawn: Sequence[int]) -> list[int]:
    """The instances of a draw, with facts that are given once."""
    a = forest.arrays
    found: list[int] = []
    following = iter(drawn)
    stack = [0]
    while stack:
        node = stack.pop()
        begin = int(a.begin[node])
        if found and int(a.end[node]) == begin + 1 and a.rule[begin] < 0:
            found.append(begin)
            continue
        found.append(next(following))
        stack.extend(reversed([u for u in forest.antecedents(found[-1]) if u >= 0]))
    return found


def _not_drawn(forest: Packed, how: int) -> Error:
    if how == 3:
        return QueryError(f"all derivations of {forest.text(0)} have weight zero, so there is none to draw")
    return RoomError(f"a draw has more than {MOST_INSTANCES:,} instances")


# -- expectations ------------------------------------------------------------------------------------------------------


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
            matrix = np.eye(len(members))
            for v in members:
                for i in range(int(a.begin[v]), int(a.end[v])):
                    for u in forest.antecedents(i):
                        if u >= 0 and u in place:
                            matrix[place[u], place[v]] -= chance[i]
            solved = np.linalg.solve(matrix, used[members])
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
        component = _Component(forest, nodes[int(begin[c]) : int(begin[c + 1])].tolist(), shares, bool(cyclic[c]))
        for mean, values in zip(means, (f, g), strict=True):
            component.solve(values, mean)
        for i, head, below in component.instances:
            x, y = (values[i] + mean[below].sum() - mean[head] for mean, values in zip(means, (f, g), strict=True))
            spread[i] = x * y
        component.solve(spread, found)
    return float(found[0])


class _Component:
    """A component of a forest, for numbers of items that add up over their instances, in proportion to shares."""

    def __init__(self, forest: Packed, members: list[int], shares: Doubles, cyclic: bool) -> None:
        a = forest.arrays
        self.members, self.shares = members, shares
        self.instances = [
            (i, v, [u for u in forest.antecedents(i) if u >= 0])
            for v in members
            for i in range(int(a.begin[v]), int(a.end[v]))
            if shares[i] > 0
        ]
        self.place = {v: n for n, v in enumerate(members)}
        self.matrix: Doubles | None = None
        if cyclic:
            self.matrix = np.eye(len(members))
            for i, head, below in self.instances:
                for u in below:
                    if u in self.place:
                        self.matrix[self.place[head], self.place[u]] -= shares[i]

    def solve(self, own: Doubles, of: Doubles) -> None:
        """Of each member, the sum over its instances of what is its own and what antecedents have, by its share."""
        constant = np.zeros(len(self.members))
        for i, head, below in self.instances:
            outside = sum(of[u] for u in below if u not in self.place)
            constant[self.place[head]] += self.shares[i] * (own[i] + outside)
        of[self.members] = constant if self.matrix is None else np.linalg.solve(self.matrix, constant)
