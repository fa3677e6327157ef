"""A training run from its beginning to its end: when to stop, what to keep, what to say on the way.

A `Watcher` is told of each step by a method. It evaluates held-out data, writes the log and the checkpoint, calls back,
and says when it is enough. Checkpoints are whole and new, or they are as before: a run that is killed at any moment
goes on from the last, and ends with the bits of one that was not.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from . import storage
from .problem import Problem
from .reports import NAMES, Fit, Record
from .specification import Theta
from .steps import Step

Callback = Callable[[Record], Any]


class Watcher:
    """Told of each step; it keeps what the run will be judged by."""

    def __init__(
        self,
        dev: Problem | None,
        iterations: int,
        tolerance: float,
        patience: int | None,
        callback: Callback | None,
        log: Path | None,
        checkpoint: Path | None,
        every: int,
        about: Mapping[str, Any],
        start: Theta,
    ) -> None:
        self.history: list[Record] = []
        self.stopped = "method"
        self.theta = start
        self.best: tuple[float, Theta] | None = None
        self._dev, self._iterations, self._tolerance, self._patience = dev, iterations, tolerance, patience
        self._callback, self._log, self._checkpoint, self._every = callback, log, checkpoint, every
        self._about, self._start = about, start
        self._began = self._last = time.monotonic()
        self._spent = 0.0  # by the run that this one goes on from
        self._small = 0

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Goes on from a checkpoint."""
        self.history = [Record(**r) for r in saved["history"]]
        self.theta = saved["theta"]
        self.best = (saved["best"]["value"], saved["best"]["theta"]) if saved.get("best") else None
        self._spent = self.history[-1].seconds if self.history else 0.0

    @property
    def finished(self) -> bool:
        """Whether a run that was taken up had ended."""
        return self._reason(None) is not None

    def __call__(self, step: Step) -> bool:
        now = time.monotonic()
        dev = None if self._dev is None else self._dev.objective(step.theta, gradient=False)[0]
        record = Record(
            len(self.history) + 1,
            step.objective,
            step.data,
            step.change,
            dev,
            self._spent + now - self._began,
            step.examples / max(now - self._last, 1e-9),
        )
        self._last = time.monotonic()
        self.history.append(record)
        self.theta = step.theta
        if dev is not None and (self.best is None or dev > self.best[0]):
            self.best = (dev, step.theta)
        reason = self._reason(step)
        if self._log is not None:
            _logged(self._log, record)
        if self._checkpoint is not None and (reason is not None or len(self.history) % self._every == 0):
            best = None if self.best is None else {"value": self.best[0], "theta": self.best[1]}
            saved = {"about": dict(self._about), "start": self._start, "theta": self.theta, "state": dict(step.state)}
            storage.write_checkpoint(
                self._checkpoint, {**saved, "history": [asdict(r) for r in self.history], "best": best}
            )
        if self._callback is not None and self._callback(record) is False:
            reason = reason or "callback"
        if reason is not None:
            self.stopped = reason
        return reason is not None

    def _reason(self, step: Step | None) -> str | None:
        """Why it is enough, if it is."""
        if len(self.history) >= 2 and (step is None or step.settled):
            before, now = self.history[-2].objective, self.history[-1].objective
            if abs(now - before) <= self._tolerance * max(1.0, abs(now)):
                return "converged"
        if self._patience is not None and self.best is not None:
            behind = [r.dev for r in self.history]
            if len(behind) - 1 - behind.index(self.best[0]) >= self._patience:
                return "dev"
        return "iterations" if len(self.history) >= self._iterations else None


def _logged(path: Path, record: Record) -> None:
    """Appends a line to a log."""
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, NAMES)
        if new:
            writer.writeheader()
        writer.writerow(asdict(record))


def run(
    problem: Problem,
    method: Callable[..., Theta],
    name: str,
    start: Theta,
    *,
    dev: Problem | None,
    iterations: int,
    tolerance: float,
    patience: int | None,
    callback: Callback | None,
    log: Path | None,
    checkpoint: Path | None,
    every: int,
    about: Mapping[str, Any],
    keep: Callable[[Theta], None],
) -> Fit:
    """Trains, and hands over the parameters: `keep` gets the last good ones, however the run ends."""
    watcher = Watcher(dev, iterations, tolerance, patience, callback, log, checkpoint, every, about, start)
    theta, state = start, {}
    if checkpoint is not None and (saved := storage.read_checkpoint(checkpoint)) is not None:
        storage.check_same(saved["about"], about, checkpoint)
        watcher.restore(saved)
        state = saved["state"]
        theta = saved["start"] if "evaluations" in state else saved["theta"]
    try:
        if not (watcher.history and watcher.finished):
            theta = method(problem, theta, watcher, state)
        if not watcher.history:  # nothing better was found: this is where it is
            value, totals = problem.objective(theta, gradient=False)
            watcher(Step(theta, value, totals.value, examples=len(totals.values)))
            watcher.stopped = "method"
    finally:
        if watcher.history:
            keep(watcher.theta if watcher.best is None else watcher.best[1])
    return Fit(name, tuple(watcher.history), watcher.stopped)
