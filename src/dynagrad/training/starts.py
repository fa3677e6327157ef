"""The runs from all starts: what is kept of each, in memory and in checkpoints, and which is the best.

How one goes, and when it ends, is for `fit.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..errors import warn
from .convergence.saddles import text_of
from .reports.records import Fit, Record
from .specification import Theta
from .steps import NO_BETTER, Saddle


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


@dataclass(frozen=True, eq=False)
class Kept:
    """All that is known of the run from one start, but for the state of its method."""

    history: tuple[Record, ...]
    theta: Theta
    best: BestOnDev | None
    stopped: str | None
    settled: int
    """How many of the last steps may mean convergence."""
    left: float
    look_at: int
    """The step from which on a saddle is looked for again."""
    on_the_way: bool
    """Whether objectives of steps are those of parameters that the step went through."""
    reached: float | None
    """The objective of the parameters that it ended with, where it was measured."""

    @staticmethod
    def read(saved: Mapping[str, Any]) -> Kept:
        """From a checkpoint."""
        best = BestOnDev(**saved["best"]) if saved["best"] else None
        history = tuple(Record(**record) for record in saved["history"])
        settled, left, look_at = saved["settled"], saved["left"], saved["look at"]
        on_the_way, reached = saved["on the way"], saved["reached"]
        return Kept(history, saved["theta"], best, saved["stopped"], settled, left, look_at, on_the_way, reached)

    @property
    def saved(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {
            "settled": self.settled,
            "left": self.left,
            "look at": self.look_at,
            "on the way": self.on_the_way,
            "reached": self.reached,
            "theta": self.theta,
            "history": [asdict(record) for record in self.history],
            "best": None if self.best is None else vars(self.best),
            "stopped": self.stopped,
        }

    @property
    def objective(self) -> float:
        """That of the parameters that it ended with, or else of its last step."""
        return float(self.history[-1].objective if self.reached is None else self.reached)

    @property
    def rank(self) -> tuple[float, float]:
        """The larger, the better: on held-out data, or by the objective."""
        return (0, self.objective) if self.best is None else (self.best.counted, self.best.value)

    def without_parameters(self) -> Kept:
        """What is kept of one that is not the best."""
        return replace(self, theta={}, best=None if self.best is None else replace(self.best, theta={}))


@dataclass(eq=False)
class Runs:
    """The runs from all starts that are done, as they are written to a checkpoint; parameters only of the best."""

    count: int
    done: list[Kept]
    told: bool = False
    """Whether a warning told of a saddle."""

    def add(self, run: Kept) -> None:
        """One that is done, or was broken off."""
        self.done.append(run)
        best = self._best()
        self.done = [one if one is best else one.without_parameters() for one in self.done]

    def records(self) -> list[Record]:
        """Of all steps, one run after another."""
        return [record for one in self.done for record in one.history]

    def tell(self, found: Saddle) -> None:
        """Warns of a saddle, once."""
        if not self.told:
            self.told = True
            among = f" (from one of {self.count} starts)" if self.count > 1 else ""
            warn(f"{text_of(found, self.count)}{among}")

    def _best(self) -> Kept:
        """That which is best on held-out data, or else has the largest objective; the first of equals."""
        return max(self.done, key=lambda one: one.rank)

    def parameters(self) -> Theta:
        """Those of the best."""
        one = self._best()
        return one.theta if one.best is None else one.best.theta

    def fit(self, method: str) -> Fit:
        """What users are told."""
        one = self._best()
        best = None if one.best is None else one.history[one.best.step - 1]
        reached = tuple(run.objective for run in self.done) if self.count > 1 else ()
        return Fit(method, one.history, one.stopped or NO_BETTER, best, reached)
