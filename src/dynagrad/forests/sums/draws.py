"""Draws from the derivations of an item, in proportion to their weight.

Native code draws; the sums that it draws by come from `totals.py`.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import islice

import numpy as np
import numpy.typing as npt

from ...arguments import numeric_function, whole_number
from ...calls import maker
from ...errors import Error, RoomError, counted
from ...runtime.library import Stop
from ..algebra import Doubles
from ..derivation import Derivation, make_derivation
from ..listed import Listed
from ..native import Walk
from ..packed import Packed
from ..ranking.k_best import MOST_INSTANCES, product_of
from .totals import summed, weightless

BATCH = 10_000
"""How many draws a thread makes at a time."""
LOOK = 0.2  # seconds between looks at signals


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
        for found in _drawn(walk, seed, start, start + n, stop):
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
        return f"<{counted(len(self), 'draw')} from the derivations of {self._forest.text(0)}>"


make_samples = maker(Samples, "draws come from chart.sample(item, n)")


_Draws = tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64], Doubles]


def _drawn(walk: Walk, seed: int, start: int, end: int, stop: Stop | None) -> Iterator[_Draws | int]:
    """The draws in parts, each by a thread; the parts do not change what is drawn."""
    parts = iter([(low, min(low + BATCH, end)) for low in range(start, end, BATCH)])
    threads = os.cpu_count() or 1
    if threads < 2 or end - start <= BATCH:
        for low, high in parts:
            yield walk.sample(seed, low, high, MOST_INSTANCES, stop)
        return
    own = Stop(None if stop is None else stop.deadline)  # for these threads alone

    def draw(part: tuple[int, int]) -> _Draws | int:
        return walk.sample(seed, part[0], part[1], MOST_INSTANCES, own)

    pool = ThreadPoolExecutor(threads)
    try:
        waiting = deque(pool.submit(draw, part) for part in islice(parts, 2 * threads))
        while waiting:
            yield _awaited(waiting.popleft(), stop)
            waiting.extend(pool.submit(draw, part) for part in islice(parts, 1))
    finally:
        own.set()  # where somebody stopped this thread
        pool.shutdown(cancel_futures=True)


def _awaited(future: Future[_Draws | int], stop: Stop | None) -> _Draws | int:
    """The result of a future, with a look at signals now and then: one may have reached another thread."""
    while not future.done():
        if stop is not None and stop.raised:
            raise KeyboardInterrupt
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
        return weightless(forest, "there is none to draw")
    return RoomError(f"a draw has more than {MOST_INSTANCES:,} instances")
