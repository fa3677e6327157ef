"""A training run from its beginning to its end: when to stop, what to keep, what to say on the way.

A `Watcher` is told of each step by a method. It evaluates held-out data, writes the log and the checkpoint, calls back,
and says when it is enough; whether a run has converged is for `convergence/`. There is one from each start; what is
kept of all of them is in `starts.py`.
Checkpoints are whole and new, or they are as before: a run that is killed at any moment goes on from the last, and ends
with the bits of one that was not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .convergence.gain import left_to_gain
from .convergence.saddles import alike
from .problem import Problem
from .reports.logs import Log
from .reports.progress import Bar
from .reports.records import Fit, Record
from .specification import Theta
from .starts import BestOnDev, Kept, Runs
from .steps import NO_BETTER, Ended, Saddle, Trace, TrainingStep
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


LOOK_AGAIN = 20
"""After so many steps from a saddle it is looked for one again."""
ASK_AGAIN = 5
"""After so many steps a method is asked again what is left to gain, where its last steps do not tell."""
CONVERGED, SADDLE = "converged", "saddle"
WEIGHTLESS = "no example has a weight"
"""Why a run ended that has nothing to learn from: where it is, is where it or its prior would have it."""
BY_LIMITS = (CONVERGED, "iterations", "dev", "callback")
"""The ends that other limits would put off; all others are of the method."""


class Watcher:
    """Told of each step from one start; it keeps what the run will be judged by."""

    def __init__(
        self,
        settings: FitSettings,
        problem: Problem,
        dev: Problem | None,
        checkpoint: Checkpoint | None,
        bar: Bar,
        start: Theta,
        runs: Runs,
    ) -> None:
        self.history: list[Record] = []
        self.stopped: str | None = None
        self.theta = start
        self.best: BestOnDev | None = None
        self.stepped = False
        """Whether there was a step, beside those of a run that this one goes on from."""
        self.log: Log | None = None
        self._settings, self._problem, self._dev, self._checkpoint, self._bar = settings, problem, dev, checkpoint, bar
        self._runs = runs
        self._step: Mapping[str, Any] = {"state": {}}
        self._settled, self._left, self._look_at = 0, np.inf, 0
        self._on_the_way = False
        self._reached: float | None = None
        self._began = self._last = time.monotonic()
        self._spent = 0.0  # by the run that this one goes on from

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Goes on from a checkpoint. A run that had ended has ended, unless it may go on by the limits of now."""
        if self.read(Kept.read(saved), saved.get("state", {})):
            self._call(self.history[-1])  # which the run that was killed may not have come to

    def read(self, kept: Kept, state: Mapping[str, Any]) -> bool:
        """Takes over what was kept of a run; whether it had steps, and goes on."""
        self.history, self.theta, self.best = list(kept.history), kept.theta, kept.best
        self._step = {"state": state}
        if not self.history:
            return False
        self._settled, self._left, self._look_at = kept.settled, kept.left, kept.look_at
        self._on_the_way, self._reached = kept.on_the_way, kept.reached
        self._spent = self.history[-1].seconds
        stopped = kept.stopped
        by_itself = stopped is not None and stopped not in BY_LIMITS
        self.stopped = stopped if by_itself or (stopped == CONVERGED and self._little_left()) else self._limit()
        return self.stopped is None

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
        self.theta, self.stepped = step.theta, True
        if held_out is not None and (self.best is None or self.best.below(held_out.counted, held_out.value)):
            self.best = BestOnDev(held_out.counted, held_out.value, len(self.history), step.theta)
        self._step = {"state": dict(step.state)}
        self._settled = self._settled + 1 if step.settled else 0
        self._on_the_way = step.on_the_way
        steps = [r.objective for r in self.history[-min(self._settled, 3) :]]
        self._left = left_to_gain(steps) if step.left is None else step.left
        self.stopped = (self._converged(step) if self._little_left() else None) or self._limit()
        if self.log is not None:
            self.log.add(record)
        if self.stopped is not None or len(self.history) % self._settings.every == 0:
            self.write()
        self._bar.show(record)
        self._call(record)
        return self.stopped is not None

    def _held_out(self, dev: Problem, theta: Theta) -> Totals:
        """The objective of held-out data, without priors."""
        return dev.totals(dev.spec.weights(theta), gradient=False)

    def ended(self, by: Ended, problem: Problem) -> None:
        """The method returned: told to by this observer, or as it goes no further."""
        if not self.history:  # nothing better was found: this is where it is
            value, totals = problem.objective(by.theta, gradient=False)
            problem.first_step(by.theta, still=True)
            self(TrainingStep(by.theta, value, totals.value, examples=len(totals.values)))
            self.stopped = None
        if self.stopped is None:
            most = self._settings.tolerance * self._scale()
            near = by.left <= most and (by.anew is None or by.anew() <= most)
            found = by.look() if near and by.look is not None else None
            if found is not None:
                self._runs.tell(found)
            self.stopped = SADDLE if found is not None else self._still() if near else by.why
            self.write()

    def write(self) -> None:
        """Writes the checkpoint."""
        if self._checkpoint is None:
            for trace in self._step["state"].values():
                if isinstance(trace, Trace):
                    trace.new.clear()  # nobody will ask for it
            return
        self._checkpoint.write({**self._step, **self.kept().saved, "done": [one.saved for one in self._runs.done]})

    def measure(self) -> None:
        """Finds the objective of the parameters, where those of the steps are of others: so that starts compare."""
        if self._on_the_way and self._reached is None:
            self._reached = self._problem.objective(self.theta, gradient=False)[0]
            self._problem.tally.take()  # which is no step's

    def kept(self) -> Kept:
        """All that is known of this start, but for the state of the method."""
        return Kept(
            tuple(self.history),
            self.theta,
            self.best,
            self.stopped,
            self._settled,
            self._left,
            self._look_at,
            self._on_the_way,
            self._reached,
        )

    def _call(self, record: Record) -> None:
        callback = self._settings.callback
        if callback is not None and callback(record) is False and self.stopped is None:
            self.stopped = "callback"

    def tell(self, found: Saddle) -> None:
        """Warns of a saddle, once."""
        self._runs.tell(found)

    def _scale(self) -> float:
        return max(1.0, abs(self.history[-1].objective))

    def _little_left(self) -> bool:
        """Whether the last step gained little, and there is little left to gain."""
        if len(self.history) < 2 or not self._settled:
            return False
        most = self._settings.tolerance * self._scale()
        return abs(self.history[-1].objective - self.history[-2].objective) <= most and self._left <= most

    def _converged(self, step: TrainingStep) -> str | None:
        """What a run is whose numbers say that it has converged; None where it is to go on."""
        if len(self.history) < self._look_at:
            return None
        if step.anew is not None:
            self._left = step.anew()
            if not self._little_left():
                self._look_at = len(self.history) + ASK_AGAIN
                return None
        found = None if step.look is None else step.look()
        if found is None:
            return self._still()
        if found.leaving:
            self._look_at = len(self.history) + LOOK_AGAIN
            return None
        self._runs.tell(found)
        return SADDLE

    def _still(self) -> str:
        """What a run is that has nothing to gain any more."""
        return WEIGHTLESS if self._problem.weightless else CONVERGED

    def _limit(self) -> str | None:
        """The limit that says that it is enough, if one does."""
        if self._settings.patience is not None and self.best is not None:
            if len(self.history) - self.best.step >= self._settings.patience:
                return "dev"
        return "iterations" if len(self.history) >= self._settings.iterations else None


def run(
    problem: Problem,
    method: Callable[..., Theta | Ended],
    name: str,
    starts: Sequence[Theta],
    settings: FitSettings,
    *,
    dev: Problem | None,
    checkpoint: Checkpoint | None,
    keep: Callable[[Theta], None],
) -> Fit:
    """Trains from each start, and hands over the best parameters: the last good ones, however the run ends.

    Of several starts that is best which is so on held-out data, or has the largest objective.
    """
    saved = None if checkpoint is None else checkpoint.read()
    runs = Runs(len(starts), [] if saved is None else [Kept.read(one) for one in saved["done"]])
    with Bar(settings.progress, settings.iterations) as bar:
        for one in runs.done:
            if Watcher(settings, problem, dev, None, bar, {}, runs).read(one, {}):
                # It may go on by the limits of now, and what it needs for that is not kept: all begin again.
                assert checkpoint is not None
                saved, runs = None, Runs(len(starts), [])
                checkpoint.forget()
                break
        watcher = Watcher(settings, problem, dev, checkpoint, bar, starts[len(runs.done)], runs)
        if saved is not None:
            watcher.restore(saved)
        log = None if settings.log is None else Log(settings.log, [*runs.records(), *watcher.history])
        try:
            while True:
                watcher.log = log
                _from_one_start(problem, method, watcher, {} if saved is None else saved["state"])
                if len(starts) > 1:
                    watcher.measure()
                if watcher.stopped == "callback" or len(runs.done) + 1 == len(starts):
                    break
                runs.add(watcher.kept())
                watcher, saved = Watcher(settings, problem, dev, checkpoint, bar, starts[len(runs.done)], runs), None
                if checkpoint is not None:
                    watcher.write()  # which needs no evaluations of the run before
                    checkpoint.forget()
        finally:
            if log is not None:
                log.close()
            if watcher.history:
                runs.add(watcher.kept())
            if runs.done:
                keep(runs.parameters())
    return runs.fit(name)


def _from_one_start(
    problem: Problem, method: Callable[..., Theta | Ended], watcher: Watcher, state: Mapping[str, Any]
) -> None:
    """Trains until the method or the watcher has enough."""
    if watcher.stopped is None:

        def observe(step: TrainingStep) -> bool:
            if not watcher.history:
                problem.first_step(step.theta, step.change == 0.0)
            return watcher(step)

        found = method(problem, watcher.theta, observe, state)
        watcher.ended(found if isinstance(found, Ended) else Ended(found, NO_BETTER), problem)
    if watcher.stopped not in (CONVERGED, SADDLE, "callback"):
        problem.ended(watcher.theta, [record.objective for record in watcher.history])
        at = alike(problem, watcher.theta) if watcher.stepped else None
        if at is not None:
            watcher.tell(at)
