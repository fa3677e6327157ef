"""Who works out the totals of shards: threads of this process, or an executor with processes or machines.

Shards are fixed by the numbers of examples, and their totals come in their order; so what is added up is the same for
any number of workers. A worker that dies has its shard run again, `RETRIES` times.
"""

from __future__ import annotations

import os
import pickle
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, Executor, Future
from pathlib import Path
from typing import Any

from ..charts.kept import Kept
from ..charts.program import Bound
from ..errors import Error, shown
from .examples import Example
from .parameters.rows import Doubles
from .specification import Specification, Workers
from .totals import Totals

RETRIES = 3
AHEAD = 2
"""Shards that wait for each worker of an executor."""


def in_threads(threads: int | None, lasting: bool = False) -> Workers:
    """Shard after shard, the examples of each on so many threads.

    What a pass encodes and loads is kept for the next: of the facts that all examples share, and with `lasting`, where
    the data stay as they are, of each example.
    """
    before: dict[bool, Bound] = {}  # by whether gradients were asked for: runs for these are of another class
    kept = Kept() if lasting else None

    def work(
        spec: Specification, weights: Mapping[str, Doubles], shards: Iterable[list[Example]], gradient: bool
    ) -> Iterator[Totals]:
        task = spec.task(weights, gradient, threads, before.get(gradient), kept)
        before[gradient] = task.bound
        for shard in shards:
            yield spec.objective.totals(task, shard)

    return work


def in_executor(executor: Executor) -> Workers:
    """Shards by the workers of an executor, such as `concurrent.futures.ProcessPoolExecutor`."""
    if not hasattr(executor, "submit"):
        raise Error(f"executor must be one of concurrent.futures, or have submit as they have, not {shown(executor)}")
    sent: dict[int, Path] = {}

    def work(
        spec: Specification, weights: Mapping[str, Doubles], shards: Iterable[list[Example]], gradient: bool
    ) -> Iterator[Totals]:
        if id(spec) not in sent:
            handle, name = tempfile.mkstemp(prefix="dynagrad-model-", suffix=".pickle")
            with os.fdopen(handle, "wb") as file:
                pickle.dump(spec, file)
            sent[id(spec)] = Path(name)
        path = str(sent[id(spec)])
        most = AHEAD * (getattr(executor, "_max_workers", None) or os.cpu_count() or 1)
        waiting: deque[tuple[Future[Totals], list[Example]]] = deque()

        def first() -> Totals:
            future, shard = waiting.popleft()
            for left in range(RETRIES, -1, -1):
                try:
                    return future.result()
                except BrokenExecutor as error:
                    if not left:
                        raise Error(f"the workers died {RETRIES + 1} times over a shard: {error}") from error
                    future = executor.submit(of_shard, path, weights, shard, gradient)
            raise AssertionError

        for shard in shards:
            waiting.append((executor.submit(of_shard, path, weights, shard, gradient), shard))
            if len(waiting) >= most:
                yield first()
        while waiting:
            yield first()

    return work


_held: dict[str, Specification] = {}


def of_shard(path: str, weights: Mapping[str, Doubles], shard: list[Example], gradient: bool) -> Totals:
    """The totals of a shard, in a worker's process; the model is read once by each."""
    if path not in _held:
        _held.clear()
        _held[path] = pickle.loads(Path(path).read_bytes())
    spec = _held[path]
    return spec.objective.totals(spec.task(weights, gradient, 1), shard)


def workers_of(threads: int | None, executor: Any, lasting: bool = False) -> Workers:
    """Threads unless there is an executor; `lasting` says that the data are in memory, and stay as they are."""
    return in_threads(threads, lasting) if executor is None else in_executor(executor)
