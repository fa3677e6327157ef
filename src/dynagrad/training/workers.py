"""Workers, which evaluate shards: threads of this process, or an executor with processes or machines.

Shards are fixed by the numbers of examples, and their totals come in their order; so what is added up is the same for
any number of workers. What a worker needs of the model is sent once, the weights of now once a pass, and with each
shard its examples. How things get to workers and what their death looks like is `pools.py`'s business.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from ..arguments import whole_number
from ..charts.binding.example_cache import ExampleCache
from ..charts.program import Bound, with_weights
from ..errors import Error
from .examples import Example
from .objectives.evaluation import Task
from .parameters.rows import Doubles
from .pools import HELD, Died, Handle, Pool, pool_of
from .specification import Along, Specification, Workers, wanted
from .totals import Totals

RETRIES = 3
"""How often a shard is run again whose worker died."""
AHEAD = 2
"""Shards that wait for each worker of an executor."""


def in_threads(threads: int | None, lasting: bool = False) -> Workers:
    """Shard after shard, the examples of each on so many threads.

    What a pass encodes and loads is kept for the next: of the facts that all examples share, and with `lasting`, where
    the data stay as they are, of each example.
    """
    threads = None if threads is None else whole_number("threads", threads, 1)
    before: dict[object, Bound] = {}  # by what was asked for: runs with gradients are of another class
    cache = ExampleCache() if lasting else None

    def work(
        spec: Specification, weights: Mapping[str, Doubles], shards: Iterable[list[Example]], gradient: bool | Along
    ) -> Iterator[Totals]:
        asked = gradient if isinstance(gradient, bool) else "along"
        task = spec.task(weights, gradient, threads, before.get(asked), cache)
        before[asked] = task.bound
        for shard in shards:
            yield spec.objective.totals(task, shard)

    return work


@dataclass
class _Submitted:
    """A shard that was handed to a worker, and how often its worker has died."""

    shard: Handle
    pending: Any
    deaths: int = 0


MOST_SENT, LEAST_SENT = 1 << 16, 16
"""So many examples at most, in shards of so many at least, are sent once and for all; others go with each call."""


def in_pool(pool: Pool, lasting: bool = False) -> Workers:
    """Shards by the workers of a pool; those of a worker that dies are run again.

    With `lasting` a shard is sent once, and workers keep its examples, encoded and loaded, from pass to pass.
    """
    sent: dict[int, tuple[Specification, Handle]] = {}
    shards_sent: dict[tuple[Any, ...], tuple[list[Example], Handle]] = {}
    room = MOST_SENT if lasting else 0

    def handle_of(shard: list[Example]) -> Handle:
        nonlocal room
        follow = all(e.number == shard[0].number + n for n, e in enumerate(shard))  # and are drawn in no random order
        if not lasting or not follow or len(shard) < LEAST_SENT:
            return pool.enclosed(shard, "an example")
        key = tuple((e.number, id(e.facts), id(e.observed) if e.observed else 0, id(e.derivation)) for e in shard)
        if key not in shards_sent:
            if len(shard) > room:
                return pool.enclosed(shard, "an example")
            room -= len(shard)
            shards_sent[key] = shard, pool.send(shard, "an example")  # which holds what the key names
        return shards_sent[key][1]

    def model_of(spec: Specification, weights: Mapping[str, Doubles]) -> Handle:
        if id(spec) not in sent:  # the specification is kept with it, so that no other gets its id
            task = spec.task(weights, False, 1)
            sent[id(spec)] = (spec, pool.send((task, spec.objective), "the model"))
        return sent[id(spec)][1]

    def work(
        spec: Specification, weights: Mapping[str, Doubles], shards: Iterable[list[Example]], gradient: bool | Along
    ) -> Iterator[Totals]:
        model, values = model_of(spec, weights), pool.send((spec.values(weights), gradient), "the weights")
        waiting: deque[_Submitted] = deque()

        def submitted(shard: Handle) -> Any:
            for _ in range(RETRIES + 1):
                try:
                    return pool.submit(of_shard, model, values, shard)
                except Died:
                    pool.renew()
            raise _too_often()

        def first() -> Totals:
            while True:
                try:
                    found: Totals = pool.result(waiting[0].pending)
                except Died as error:
                    waiting[0].deaths += 1
                    if waiting[0].deaths > RETRIES:
                        raise _too_often() from error
                    pool.renew()
                    for one in waiting:
                        if pool.lost(one.pending):
                            one.pending = submitted(one.shard)
                else:
                    waiting.popleft()
                    return found

        try:
            for shard in shards:
                handle = handle_of(shard)
                waiting.append(_Submitted(handle, submitted(handle)))
                if len(waiting) >= AHEAD * pool.size:
                    yield first()
            while waiting:
                yield first()
        finally:
            for one in waiting:
                pool.cancel(one.pending)
            pool.drop(values)

    return work


def _too_often() -> Error:
    return Error(
        f"workers died {RETRIES + 1} times over one shard: for want of memory, or because an example ends their "
        "process. A script that trains with processes begins its work below `if __name__ == '__main__':`, as each "
        "process reads the script"
    )


def of_shard(model: Handle, values: Handle, shard: Handle) -> Totals:
    """The totals of a shard, in a worker."""
    task: Task
    task, objective = model.get()
    numbers, asked = values.get()
    examples, stays = shard.get_to_stay()
    gradient, along = wanted(asked)
    kept = _kept_with(task) if model.copied else _WorkerState(task)
    cache = kept.cache if stays else None
    bound = kept.bound(numbers, asked if isinstance(asked, bool) else "along")
    now = replace(task, bound=bound, weights=numbers, gradient=gradient, along=along, cache=cache)
    found: Totals = objective.totals(now, examples)
    return found


class _WorkerState:
    """What a worker keeps with a model: the shared facts and the examples, encoded and loaded."""

    def __init__(self, task: Task) -> None:
        self.task, self.cache = task, ExampleCache()
        self._bound: dict[object, tuple[Any, Bound]] = {}

    def bound(self, numbers: Mapping[str, Doubles], asked: object) -> Bound:
        """The program with these weights; what was encoded for others, of the same kind of run, is not again."""
        held = self._bound.get(asked)
        if held is None or held[0] is not numbers:
            held = numbers, with_weights(self.task.bound if held is None else held[1], numbers)
            self._bound[asked] = held
        return held[1]


MODELS: list[_WorkerState] = []
"""In a worker's process, what is kept with the models that were asked for last."""


def _kept_with(task: Task) -> _WorkerState:
    found = next((kept for kept in MODELS if kept.task is task), None)
    if found is None:
        found = _WorkerState(task)
        MODELS.append(found)
        del MODELS[:-HELD]
    return found


@contextmanager
def workers_of(threads: int | None, executor: Any, lasting: bool = False) -> Iterator[Workers]:
    """Threads unless there is an executor; what was begun for it is ended, and temporary files are removed.

    `lasting` says that the data are in memory, and stay as they are.
    """
    if executor is None:
        yield in_threads(threads, lasting)
        return
    pool = pool_of(executor)
    try:
        yield in_pool(pool, lasting)
    finally:
        pool.close()
