"""A training problem: a specification, data, workers, and what is done about examples that fail.

What is evaluated is a `specification.py`, who works it out `workers.py`; how parameters are improved is for `methods/`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..charts.batches.objective import BelowZero
from ..charts.batches.result import of_the_run
from ..errors import Error, FactError, NotConverged, NotDifferentiable, QueryError, SourceError, ValueRangeError, warn
from ..forks import cached
from .constant import elsewhere, moves, moves_at, said_of
from .examples import DataPasses, Example, name_of
from .objectives.evaluation import LOGS, ModelRun, runs_of
from .objectives.likelihood import Conditional
from .parameters.rows import Doubles
from .specification import Specification, Theta, Workers
from .totals import Totals, added
from .unbounded import grows_for_ever, still_grows
from .used_rows import UsedRows

MISSING = ("warn", "skip", "error")
ABOVE = 1e-6
"""The log of a conditional probability is above this for no want of digits."""
ROUNDING = 1e-10
"""What rounding may magnify to where cycles are solved: nothing was left out of the sum."""
WEIGHTLESS = "all examples have the weight 0"
NAMED = 3  # how many examples a message names


UNDERIVED = (NotConverged, NotDifferentiable, ValueRangeError, QueryError, SourceError, ArithmeticError)
"""Errors of an example that leave it without a value; any other is one of its facts, or of the model."""


class Tally:
    """How many examples counted, of how many: in the last pass, and in parts since it was last asked."""

    def __init__(self) -> None:
        self._whole = self._parts = (0, 0)

    def add(self, totals: Totals, whole: bool) -> None:
        """Notes a pass, or a part of one."""
        counted, examples = totals.counted, len(totals.values)
        if whole:
            self._whole = counted, examples
        else:
            self._parts = self._parts[0] + counted, self._parts[1] + examples

    def take(self) -> tuple[int, int]:
        """Of the parts since it was last asked, or else of the last pass."""
        found, self._parts = self._parts if self._parts[1] else self._whole, (0, 0)
        return found


@dataclass(eq=False)
class Noticed:
    """What was seen of the data, and is said once."""

    heaviest: float = -np.inf
    """The largest weight of an example so far."""
    told_weightless: bool = False
    told_constant: bool = False
    """Whether a warning told that the objective does not depend on the parameters."""


@dataclass(eq=False)
class Problem:
    """What a method improves: it evaluates parameters on data."""

    spec: Specification
    passes: DataPasses
    workers: Workers
    missing: str = "warn"
    """What is done about examples whose goal is not derived: "warn" (once), "skip", or "error"."""
    bounded: bool = False
    """Whether limits on parameters are among the options of the method."""
    tally: Tally = field(default_factory=Tally)
    """How many examples counted, here and where a method asks for something else of the same data."""
    noticed: Noticed = field(default_factory=Noticed)
    """The same of what is said of the data."""
    _warned: bool = field(default=False, init=False)
    _observed: bool = field(default=False, init=False)
    """Whether an example says what was observed, or a warning said that none does."""
    _above: bool = field(default=False, init=False)
    """Whether a warning told of a conditional probability above one."""
    moves: bool = field(default=False, init=False)
    """Whether some gradient was not zero."""
    _told_unbounded: bool = field(default=False, init=False)
    """Whether a warning told that the objective has no finite maximum."""
    _weights: Mapping[str, Doubles] = field(default_factory=dict, init=False)
    """Those of the last pass."""
    _fit: dict[int, list[Example]] = field(default_factory=dict, init=False)
    """Shards of lasting data that were looked through."""

    def totals(self, weights: Mapping[str, Doubles], gradient: bool = True, least: int = 0) -> Totals:
        """A pass over the data. Raises NotConverged where fewer examples than `least` count."""
        self._weights = weights
        found = added(self.workers(self.spec, weights, self._shards(), gradient))
        if found.counted < least:
            fewer = f"{found.counted:,} of {least:,} examples count that did before"
            raise NotConverged(f"{fewer}, and {self._reason(found, found.missing[0], weights)}")
        self.checked(found, weights)
        self.after_a_pass()
        return found

    @property
    def weightless(self) -> bool:
        """Whether all examples that were seen so far have the weight 0."""
        return self.noticed.heaviest == 0.0

    def after_a_pass(self) -> None:
        """Warns where the objective was zero in all examples: none has a weight, or says what was observed."""
        if self.weightless and not self.noticed.told_weightless:
            self.noticed.told_weightless = self.noticed.told_constant = True
            warn(f"{WEIGHTLESS}: they count, and teach nothing")
        objective = self.spec.objective
        if self._observed or not isinstance(objective, Conditional) or objective.observed or objective.clamped:
            return
        self._observed = self.noticed.told_constant = True
        lost = "conditional likelihood is the same whatever the weights are"
        if objective.cost is not None:
            lost = "margin compares the best derivation with one of all, and not with the right one"
        warn(f"no example says what was observed, so its {lost}: give training.Example(facts, observed)")

    def weights_for(self, theta: Theta, examples: Sequence[Example]) -> dict[str, Doubles]:
        """The weights for some examples, of the rows alone that these can use where that is less work."""
        return self.spec.weights(theta, self._used.of(examples) if self.passes.lasting else None)

    @cached
    def _used(self) -> UsedRows:
        return UsedRows(self.spec)

    def of_shard(self, weights: Mapping[str, Doubles], shard: list[Example]) -> Totals:
        """Of some examples alone."""
        self._weights = weights
        return self.checked(added(self.workers(self.spec, weights, [self._fitting(shard)], True)), weights, shard)

    def _shards(self) -> Iterator[list[Example]]:
        for shard in self.passes.shards():
            if self._fit.get(id(shard)) is not shard:
                self._fitting(shard)
                if self.passes.lasting:  # then it is the same list in each pass
                    self._fit[id(shard)] = shard
            yield shard

    def _fitting(self, shard: list[Example]) -> list[Example]:
        """The examples. Raises FactError where one has facts of what is learned: the two would be added."""
        learned = self.spec.places
        for example in shard:
            self.noticed.heaviest = max(self.noticed.heaviest, example.weight)
            self._observed = self._observed or bool(example.observed) or example.derivation is not None
            for key in (*example.facts, *example.observed):
                if key in learned:
                    raise FactError(f"{name_of(example)} has facts for {key}, whose rows are parameters of the model")
        return shard

    def objective(self, theta: Theta, gradient: bool = True, least: int = 0) -> tuple[float, Totals]:
        """The objective with its priors. Raises NotConverged where it is not finite, or fewer than `least` count."""
        weights = self.spec.weights(theta)
        for key, numbers in self.spec.values(weights).items():
            if not (numbers < np.inf).all():
                raise NotConverged(f"a weight of {key} is not finite, or is too large for a double")
        totals = self.totals(weights, gradient, least)
        return totals.value + self.spec.log_prior(theta), totals

    def must_count(self, theta: Theta) -> None:
        """Raises QueryError, with the reason, where no example counts: for methods that see a few at a time."""
        self.totals(self.spec.weights(theta), gradient=False)

    def product(self, theta: Theta, first: Totals, tangent: Theta) -> Theta:
        """The Hessian of the objective, with its priors, times a vector; `first` is what `objective` gave."""
        weights, along = self.spec.weights(theta), self.spec.push(theta, tangent)
        second = self.checked(added(self.workers(self.spec, weights, self._shards(), along)), weights)
        return self.spec.curvature(theta, tangent, first, second)

    # -- what failed

    def checked(self, totals: Totals, weights: Mapping[str, Doubles], shard: list[Example] | None = None) -> Totals:
        """Raises for what cannot be gone on with, and warns of examples that do not count."""
        for number, error in totals.failures.items():
            if isinstance(error, Warning):  # where these are errors
                raise error
            if isinstance(error, BelowZero):
                where = name_of(self._example(number, shard))
                raise NotConverged(
                    f"{where}: {self.spec.goal} is below 0, and the objective takes its log: facts and weights that "
                    "are factors have to be 0 or above"
                )
            if not isinstance(error, UNDERIVED):
                kind = FactError if isinstance(error, FactError) else Error
                raise kind(f"{name_of(self._example(number, shard))}: {of_the_run(error)}") from error
        missing = totals.missing
        self.tally.add(totals, whole=shard is None)
        if len(missing) == len(totals.values):
            if not len(totals.values):
                raise Error("the data have no examples")
            if shard is None:
                raise QueryError(f"no example counts: {self._reason(totals, missing[0], weights)}")
        if missing and self.missing != "skip":
            if self.missing == "error":
                raise QueryError(self._reason(totals, missing[0], weights, shard))
            if not self._warned:
                self._warned = True
                more = "" if len(missing) == 1 else f" ({len(missing):,} of {len(totals.values):,} examples do not)"
                warn(f"{self._reason(totals, missing[0], weights, shard)}; it does not count{more}")
        self._warn_above_one(totals, shard)
        if totals.gradient and not self.moves:
            self.moves = moves(self.spec, weights, totals)
        if totals.gradient and not (self._told_unbounded or self.bounded):
            self._tell(grows_for_ever(self.spec, totals.gradient))
        infinite = np.flatnonzero(np.isinf(totals.values)).tolist()
        if infinite or not np.isfinite(totals.value):
            where = ", ".join(name_of(self._example(n, shard)) for n in infinite[:NAMED]) or "the sum"
            raise NotConverged(f"the objective is not finite: in {where}")
        for key, numbers in totals.gradient.items():
            if not np.isfinite(numbers).all():
                raise NotConverged(f"the gradient by the weights of {key} is not finite")
        return totals

    def first_step(self, theta: Theta, still: bool) -> None:
        """Warns, after the first step, of an objective that does not depend on the parameters.

        `still` says that the step found nothing to change.
        """
        if self.noticed.told_constant or (self.moves and not still) or self.spec.frozen.all():
            return
        self.noticed.told_constant = True
        for other in elsewhere(self.spec, theta):
            try:
                found = added(self.workers(self.spec, self.spec.weights(other), self._shards(), True))
                if not found.counted or moves_at(self.spec, other, found):
                    return
            except Error:  # it is not the same everywhere
                return
        warn(said_of(self.spec))

    def ended(self, theta: Theta, objectives: Sequence[float]) -> None:
        """Warns, when a run has ended, of an objective that does not seem to have a finite maximum."""
        if not (self._told_unbounded or self.bounded):
            self._tell(still_grows(self.spec, theta, objectives))

    def _tell(self, warning: str | None) -> None:
        if warning is not None:
            self._told_unbounded = True
            warn(warning)

    def _warn_above_one(self, totals: Totals, shard: list[Example] | None) -> None:
        """Warns, once, of what was observed and is no part of what is summed over without it."""
        objective = self.spec.objective
        if self._above or not isinstance(objective, Conditional) or objective.cost or objective.observed:
            return
        above = np.flatnonzero(totals.values > ABOVE).tolist()
        if above:
            self._above = True
            name = name_of(self._example(above[0], shard))
            warn(
                f"the conditional probability of {name} is above one, with a log of {totals.values[above[0]]:.3g}: "
                "what was observed is no part of what is summed over without it, so that weights may grow for ever. "
                + (
                    "Are facts of observed missing among its facts, or have other values there?"
                    if objective.clamped is None
                    else "Does the program of the clamped run derive what that of the model does not?"
                )
            )

    def cuts_off(self) -> bool:
        """Whether the run of an example, with the weights of the last pass, leaves a rest of its sum out.

        Only one that iterates cycles does: where each item is popped once, nothing is left.
        """
        for example in self.passes:
            for program, _, facts in runs_of(self.spec.objective, self.spec.program, self.spec.goal, example):
                try:
                    chart = self.spec.with_weights(self._weights, program).run(facts)
                except Error:
                    return True
                if chart.error_bound > ROUNDING or not chart.converged:
                    return True
        return False

    def _example(self, number: int, shard: list[Example] | None) -> Example:
        if shard is not None:
            return shard[number]
        return next(e for n, e in enumerate(self.passes) if n == number)

    def names(self, numbers: list[int]) -> str:
        """Some examples by name, for messages."""
        return ", ".join(name_of(self._example(n, None)) for n in numbers[:NAMED])

    def _reason(
        self, totals: Totals, number: int, weights: Mapping[str, Doubles], shard: list[Example] | None = None
    ) -> str:
        """Why an example does not count."""
        example = self._example(number, shard)
        name = name_of(example)
        if example.derivation is not None and number in totals.failures:  # a run tells of other derivations
            return f"{name} failed: {of_the_run(totals.failures[number])}"
        runs = runs_of(self.spec.objective, self.spec.program, self.spec.goal, example)
        lines = [self._lacks(run, name, weights) for run in runs]
        if number in totals.failures and not any(lines):
            return f"{name} failed: {of_the_run(totals.failures[number])}"
        return next(filter(None, lines), f"{self.spec.goal} is not derived in {name}")

    def _lacks(self, run: ModelRun, name: str, weights: Mapping[str, Doubles]) -> str | None:
        """Why a run has no value; None where it has one, or fails."""
        program, goal, facts = run
        try:
            chart = self.spec.with_weights(weights, program).run(facts)
            if goal in chart:
                if chart[goal] != (-np.inf if self.spec.program.semiring in LOGS else 0.0):
                    return None
                small = ", or are too small for a double" if self.spec.program.semiring == "real" else ""
                return f"{goal} has weight zero in {name}: all of its derivations use weights of zero{small}"
            attempts = chart.why_not(goal).attempts
        except Error:
            return None
        wanted = dict.fromkeys(", ".join(dict.fromkeys(attempt.missing)) for attempt in attempts)  # said once
        lines = "; or ".join([*wanted][:2])
        return f"{goal} is not derived in {name}" + (f", for want of {lines}" if lines else "")
