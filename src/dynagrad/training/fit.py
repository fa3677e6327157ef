"""A training run from its beginning to its end: when to stop, what to keep, what to say on the way.

A `Watcher` is told of each step by a method. It evaluates held-out data, writes the log and the checkpoint, calls back,
and says when it is enough. Checkpoints are whole and new, or they are as before: a run that is killed at any moment
goes on from the last, and ends with the bits of one that was not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .problem import Problem
from .reports.logs import Log
from .reports.progress import Bar
from .reports.records import Fit, Record
from .specification import Theta
from .steps import Trace, TrainingStep
from .storage.checkpoint import Checkpoint
from .totals import Totals

Callback = Callable[[Record], Any]


@dataclass(frozen=True, kw_only=True)
class FitSettings:
    """When a run ends, and what it writes."""

    iterations: int
    tolerance: float
    patience: int | None = None
    callback: Callback | None = None
    log: Path | None = None
    every: int = 1
    progress: bool = False


@dataclass(frozen=True, eq=False)
class BestOnDev:
    """What is best on held-out data: most examples count, and then the objective is largest."""

    counted: int
    value: float
    step: int
    theta: Theta

    def below(self, counted: int, value: float) -> bool:
        """Whether others are better."""
        return (counted, value) > (self.counted, self.value)


class Watcher:
    """Told of each step; it keeps what the run will be judged by."""

    def __init__(
        self,
        settings: FitSettings,
        problem: Problem,
        dev: Problem | None,
        checkpoint: Checkpoint | None,
        bar: Bar,
        start: Theta,
    ) -> None:
        self.history: list[Record] = []
        self.stopped: str | None = None
        self.theta = start
        self.best: BestOnDev | None = None
        self._settings, self._problem, self._dev, self._checkpoint, self._bar = settings, problem, dev, checkpoint, bar
        self._log: Log | None = None
        self._step: Mapping[str, Any] = {"state": {}, "settled": True}
        self._began = self._last = time.monotonic()
        self._spent = 0.0  # by the run that this one goes on from

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Goes on from a checkpoint. A run that had ended has ended, unless it may go on by the limits of now."""
        self.history = [Record(**r) for r in saved["history"]]
        self.theta = saved["theta"]
        self.best = BestOnDev(**saved["best"]) if saved["best"] else None
        self._step = {"state": saved["state"], "settled": saved["settled"]}
        self._spent = self.history[-1].seconds
        self.stopped = "method" if saved["stopped"] == "method" else self._reason(saved["settled"])
        if self.stopped is None:
            self._call(self.history[-1])  # which the run that was killed may not have come to

    def open_log(self) -> None:
        """The log, with what is known."""
        if self._settings.log is not None:
            self._log = Log(self._settings.log, self.history)

    def close(self) -> None:
        """Ends the log."""
        if self._log is not None:
            self._log.close()

    def __call__(self, step: TrainingStep) -> bool:
        now = time.monotonic()
        held_out = None if self._dev is None else self._held_out(self._dev, step.theta)
        dev = None if held_out is None else held_out.value
        record = Record(
            len(self.history) + 1,
            step.objective,
            step.data,
            step.change,
            dev,
            self._spent + now - self._began,
            step.examples / max(now - self._last, 1e-9),
            *self._problem.tally.take(),
        )
        self._last = time.monotonic()
        self.history.append(record)
        self.theta = step.theta
        if held_out is not None and (self.best is None or self.best.below(held_out.counted, held_out.value)):
            self.best = BestOnDev(held_out.counted, held_out.value, len(self.history), step.theta)
        self._step = {"state": dict(step.state), "settled": step.settled}
        self.stopped = self._reason(step.settled)
        if self._log is not None:
            self._log.add(record)
        if self.stopped is not None or len(self.history) % self._settings.every == 0:
            self.write()
        self._bar.show(record)
        self._call(record)
        return self.stopped is not None

    def _held_out(self, dev: Problem, theta: Theta) -> Totals:
        """The objective of held-out data, without priors."""
        return dev.totals(dev.spec.weights(theta), gradient=False)

    def write(self) -> None:
        """Writes the checkpoint."""
        if self._checkpoint is None:
            for trace in self._step["state"].values():
                if isinstance(trace, Trace):
                    trace.new.clear()  # nobody will ask for it
            return
        best = None if self.best is None else vars(self.best)
        history = [asdict(r) for r in self.history]
        self._checkpoint.write(
            {**self._step, "theta": self.theta, "history": history, "best": best, "stopped": self.stopped}
        )

    def _call(self, record: Record) -> None:
        callback = self._settings.callback
        if callback is not None and callback(record) is False and self.stopped is None:
            self.stopped = "callback"

    def _reason(self, settled: bool) -> str | None:
        """Why it is enough, if it is."""
        if len(self.history) >= 2 and settled:
            before, now = self.history[-2].objective, self.history[-1].objective
            if abs(now - before) <= self._settings.tolerance * max(1.0, abs(now)):
                return "converged"
        if self._settings.patience is not None and self.best is not None:
            if len(self.history) - self.best.step >= self._settings.patience:
                return "dev"
        return "iterations" if len(self.history) >= self._settings.iterations else None


def run(
    problem: Problem,
    method: Callable[..., Theta],
    name: str,
    start: Theta,
    settings: FitSettings,
    *,
    dev: Problem | None,
    checkpoint: Checkpoint | None,
    keep: Callable[[Theta], None],
) -> Fit:
    """Trains, and hands over the parameters: `keep` gets the last good ones, however the run ends."""
    saved = None if checkpoint is None else checkpoint.read()
    with Bar(settings.progress, settings.iterations) as bar:
        watcher = Watcher(settings, problem, dev, checkpoint, bar, start)
        if saved is not None:
            watcher.restore(saved)
        watcher.open_log()
        try:
            if watcher.stopped is None:

                def observe(step: TrainingStep) -> bool:
                    if not watcher.history:
                        problem.first_step(step.theta, step.change == 0.0)
                    return watcher(step)

                theta = method(problem, watcher.theta, observe, {} if saved is None else saved["state"])
                if not watcher.history:  # nothing better was found: this is where it is
                    value, totals = problem.objective(theta, gradient=False)
                    observe(TrainingStep(theta, value, totals.value, change=0.0, examples=len(totals.values)))
                    watcher.stopped = None
                if watcher.stopped is None:
                    watcher.stopped = "method"
                    watcher.write()
            if watcher.stopped in ("iterations", "method", "dev"):
                problem.ended(watcher.theta, [record.objective for record in watcher.history])
        finally:
            watcher.close()
            if watcher.history:
                keep(watcher.theta if watcher.best is None else watcher.best.theta)
    best = None if watcher.best is None else watcher.history[watcher.best.step - 1]
    return Fit(name, tuple(watcher.history), watcher.stopped or "method", best)
