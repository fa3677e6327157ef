"""Who works out the totals of shards: threads of this process, or an executor with processes or machines.

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
from .pools import Died, Handle, Pool, pool_of
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


def in_pool(pool: Pool) -> Workers:
    """Shards by the workers of a pool; those of a worker that dies are run again."""
    sent: dict[int, tuple[Specification, Handle]] = {}

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
                handle = pool.enclosed(shard, "an example")
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
    gradient, along = wanted(asked)
    now = replace(task, bound=with_weights(task.bound, numbers), weights=numbers, gradient=gradient, along=along)
    found: Totals = objective.totals(now, shard.get())
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
        yield in_pool(pool)
    finally:
        pool.close()
