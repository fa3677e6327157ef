"""Objectives and calls for tests of workers, in a module that worker processes can import."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dynagrad.training import pools, workers
from dynagrad.training.examples import Example
from dynagrad.training.objectives.evaluation import Task
from dynagrad.training.objectives.likelihood import Likelihood
from dynagrad.training.totals import Totals


@dataclass(frozen=True)
class Deadly(Likelihood):
    """The likelihood; but so many workers that come to the example of a name end by SIGKILL, as when memory is out."""

    folder: str
    name: str
    deaths: int = 1

    def totals(self, task: Task, examples: Sequence[Example]) -> Totals:
        if any(e.name == self.name for e in examples):
            for n in range(self.deaths):
                try:
                    Path(self.folder, f"{n}").touch(exist_ok=False)
                except FileExistsError:
                    continue
                os.kill(os.getpid(), signal.SIGKILL)
        return super().totals(task, examples)


@dataclass(frozen=True)
class Wrong(Likelihood):
    """Raises, in a worker, what a user's objective may raise."""

    def totals(self, task: Task, examples: Sequence[Example]) -> Totals:
        raise ZeroDivisionError("in the objective")


def kept_in_a_worker() -> tuple[int, list[int]]:
    """How many shards this process keeps, and with each model how many examples that were loaded."""
    return len(pools.STAYING.held), [len(kept.cache) for kept in workers.MODELS]
