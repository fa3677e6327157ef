"""Workers, which evaluate shards: threads of this process, or an executor with processes or machines.

Shards are fixed by the numbers of examples, and their totals come in their order; so what is added up is the same for
any number of workers. What a worker needs of the model is sent once, the weights of now once a pass, and with each
shard its examples. How things get to workers and what their death looks like is `pools.py`'s business.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from ..arguments import whole_number
from ..charts.binding.example_cache import ExampleCache
from ..charts.program import Bound, Program
from ..errors import Error, counted
from .examples import Example, name_of
from .objectives.evaluation import Task
from .parameters.rows import Doubles
from .pools import HELD, Died, Handle, Pool, packed, pool_of
from .specification import Along, Specification, Workers, reweighted, wanted
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
    before: dict[object, Task] = {}  # by what was asked for: runs with gradients are of another class
    cache = ExampleCache() if lasting else None

    def work(
        spec: Specification, weights: Mapping[str, Doubles], shards: Iterable[list[Example]], gradient: bool | Along
    ) -> Iterator[Totals]:
        asked = gradient if isinstance(gradient, bool) else "along"
        task = spec.task(weights, gradient, threads, before.get(asked), cache)
        before[asked] = task
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


class PoolWorkers:
    """Shards by the workers of a pool; those of a worker that dies are run again.

    With `lasting` a shard is sent once, and workers keep its examples, encoded and loaded, from pass to pass. As a
    context it ends the workers that were begun for it, and removes what was sent.
    """

    def __init__(self, pool: Pool, lasting: bool = False) -> None:
        self._pool = pool
        self._room = MOST_SENT if lasting else 0
        self._models: dict[int, tuple[Specification, Handle]] = {}
        self._shards: dict[tuple[Any, ...], tuple[list[Example], Handle]] = {}

    def __enter__(self) -> PoolWorkers:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close()

    def __call__(
        self,
        spec: Specification,
        weights: Mapping[str, Doubles],
        shards: Iterable[list[Example]],
        gradient: bool | Along,
    ) -> Iterator[Totals]:
        model = self._model(spec, weights)
        values = self._pool.send((spec.values(weights), gradient), "the weights")
        one = _ShardsOut(self._pool, model, values)
        try:
            for shard in shards:
                one.hand(self._shard(shard))
                if len(one.waiting) >= AHEAD * self._pool.size:
                    yield one.first()
            while one.waiting:
                yield one.first()
        finally:
            one.end()

    def _model(self, spec: Specification, weights: Mapping[str, Doubles]) -> Handle:
        """The model, which is sent once."""
        if id(spec) not in self._models:  # the specification is kept with it, so that no other gets its id
            task = spec.task(weights, False, 1)
            self._models[id(spec)] = (spec, self._pool.send((task, spec.objective), "the model"))
        return self._models[id(spec)][1]

    def _shard(self, shard: list[Example]) -> Handle:
        """The examples of a shard: sent once and for all where there is room, or to go with the call."""
        follow = all(e.number == shard[0].number + n for n, e in enumerate(shard))  # and are drawn in no random order
        if not self._room or not follow or len(shard) < LEAST_SENT:
            return _handed(self._pool.enclosed, shard)
        key = tuple((e.number, id(e.facts), id(e.observed) if e.observed else 0, id(e.derivation)) for e in shard)
        if key not in self._shards:
            if len(shard) > self._room:
                return _handed(self._pool.enclosed, shard)
            self._room -= len(shard)
            self._shards[key] = shard, _handed(self._pool.send, shard)  # which holds what the key names
        return self._shards[key][1]


def _handed(send: Callable[[Any, str], Handle], shard: list[Example]) -> Handle:
    """A shard on its way to a worker. Raises Error, with the example and its facts, where it cannot be sent."""
    try:
        return send(shard, "an example")
    except Error:
        for example in shard:
            for key, rows in (*example.facts.items(), *example.observed.items()):
                packed(rows, f"what {name_of(example)} has for {key}", ROWS)
            packed(example, name_of(example), ROWS)
        raise


ROWS = (
    "Rows of numbers, texts, terms and arrays can be sent, and objects of classes that stand at the top of a module if "
    "they can be pickled"
)
"""What of an example can be sent."""


class _ShardsOut:
    """One pass over data: shards that workers have, in their order."""

    def __init__(self, pool: Pool, model: Handle, values: Handle) -> None:
        self._pool, self._model, self._values = pool, model, values
        self.waiting: deque[_Submitted] = deque()

    def hand(self, shard: Handle) -> None:
        """Hands a shard to a worker."""
        self.waiting.append(_Submitted(shard, self._submitted(shard)))

    def _submitted(self, shard: Handle) -> Any:
        for _ in range(RETRIES + 1):
            try:
                return self._pool.submit(of_shard, self._model, self._values, shard)
            except Died:
                self._pool.renew()
        raise _too_often()

    def first(self) -> Totals:
        """The totals of the shard that has waited longest; where a worker died, what it had is handed on."""
        while True:
            try:
                found: Totals = self._pool.result(self.waiting[0].pending)
            except Died as error:
                self.waiting[0].deaths += 1
                if self.waiting[0].deaths > RETRIES:
                    raise _too_often() from error
                self._pool.renew()
                for one in self.waiting:
                    if self._pool.lost(one.pending):
                        one.pending = self._submitted(one.shard)
            else:
                self.waiting.popleft()
                return found

    def end(self) -> None:
        """Forgets what is left."""
        for one in self.waiting:
            self._pool.cancel(one.pending)
        self._pool.drop(self._values)


def _too_often() -> Error:
    return Error(
        f"workers died {counted(RETRIES + 1, 'time')} over one shard: for want of memory, or because an example "
        "ends their "
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
    bound, others = kept.bound(numbers, asked if isinstance(asked, bool) else "along")
    now = replace(task, bound=bound, others=others, weights=numbers, gradient=gradient, along=along, cache=cache)
    found: Totals = objective.totals(now, examples)
    return found


class _WorkerState:
    """What a worker keeps with a model: the shared facts and the examples, encoded and loaded."""

    def __init__(self, task: Task) -> None:
        self.task, self.cache = task, ExampleCache()
        self._bound: dict[object, tuple[Any, tuple[Bound, Mapping[Program, Bound]]]] = {}

    def bound(self, numbers: Mapping[str, Doubles], asked: object) -> tuple[Bound, Mapping[Program, Bound]]:
        """The programs with these weights; what was encoded for others, of the same kind of run, is not again."""
        held = self._bound.get(asked)
        if held is None or held[0] is not numbers:
            before = (self.task.bound, self.task.others) if held is None else held[1]
            held = self._bound[asked] = numbers, reweighted(*before, numbers)
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
    with PoolWorkers(pool_of(executor), lasting) as workers:
        yield workers
