"""What charts answer by derivatives: gradients, tangents, outside values, marginals, expected counts, entropy.

Each is a plain function of a `FinishedRun`. The question becomes seeds or directions here, and the derivatives become
the answer. The backward pass is started by `gradient.py`, a run is repeated with derivatives by `charts/replay.py`; the
methods of `Chart` say what the answers mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import NotDifferentiable, QueryError, ValueRangeError, shown
from ...facts.readers import read
from ...facts.relation import Relation
from ...facts.table import Table
from ...plan.right_sides import numbers
from ...rules.normal import Rules
from ...rules.semirings import COUNT, ENTROPY, MARGINAL, OUTSIDE, SEMIRINGS
from ...runtime.library import Stop
from ..binding.context import ProgramContext
from ..binding.loading import Directions
from ..lookup import place_of, unknown_in, value_of, warn_if_unknown, words_at, words_of, zero_of
from ..replay import differentiable
from ..run import Run
from . import detached  # noqa: F401  # how gradients and tangents are pickled
from .directions import read_cotangent, read_directions
from .gradient import Gradient, GradientRequest, Seed, Tangents, adjoint_width, backward, like, row_adjoints


@dataclass(frozen=True)
class FinishedRun:
    """The run of a chart that a question is about, and what stops the answer at a limit on time."""

    run: Run
    stop: Stop | None = None

    @property
    def context(self) -> ProgramContext:
        return self.run.context

    def value(self, item: Any) -> Any:
        return value_of(self.context, self.run.ready(), item, quiet=True)

    def warn_if_unknown(self, item: Any) -> None:
        warn_if_unknown(self.context, self.run.ready(), item)

    def derived(self, item: Any) -> bool:
        return words_of(self.context, self.run.ready(), item)[1] is not None


# -- gradients and tangents --------------------------------------------------------------------------------------------


def gradient(ran: FinishedRun, items: Sequence[tuple[Any, Any]], counts: float | None = None) -> Gradient:
    """The gradient of a weighted sum of items; or expected counts, where `counts` is the value of the goal."""
    request = _request(ran, items)
    for item, _ in items:
        ran.warn_if_unknown(item)
    value = ran.value(items[0][0])
    if len(items) > 1 or items[0][1] != 1:
        terms = [(float(c), ran.value(item)) for item, c in items if c]
        if request.replay.scale.shape == "expectation":
            value = tuple(sum(c * pair[i] for c, pair in terms) for i in (0, 1))
        else:
            value = float(sum(c * float(v) for c, v in terms))
    return Gradient(request, value, counts, ran.stop)


def row_gradient(ran: FinishedRun, item: Any, keys: Sequence[str], cotangent: float) -> list[npt.NDArray[np.float64]]:
    """The derivatives of an item, times a cotangent, by facts: an array for each predicate, a row for each fact.

    The bound facts come first, then those of the run. Raises what `gradient` raises.
    """
    request = _request(ran, [(item, cotangent)])
    replay, prepared = request.replay, request.prepared
    if not request.seeds:  # never derived
        width, places = adjoint_width(prepared, replay.scale), map(replay.facts.places, keys)
        return [np.zeros((shared + run, width)) for shared, _, run in places]
    prepared.chart.adjoints_of = None  # nor the request below: it has the chart, which would outlive its batch
    backward(prepared, replay.scale, request.seeds, stop=ran.stop)
    return [row_adjoints(replay, prepared, key, ran.stop) for key in keys]


def own_tables(ran: FinishedRun, keys: Sequence[str], rows: Sequence[npt.NDArray[np.float64]]) -> list[Table]:
    """Derivatives by the facts of the run, the last of these rows, as a table for each predicate."""
    own = [ran.run.facts.brought(key) or read(key, []) for key in keys]
    return [like(r, ran.context.scale, numbers[len(numbers) - r.count :]) for r, numbers in zip(own, rows, strict=True)]


def tangents(ran: FinishedRun, direction: Any) -> Tangents:
    """The derivatives of all items along a direction."""
    replay = ran.run.replay()
    given = read_directions(replay, ran.run.ready(), direction)
    prepared = replay.rerun(False, Directions((given,), (None,)), stop=ran.stop)
    return Tangents(ran.context, prepared)


def _request(ran: FinishedRun, items: Sequence[tuple[Any, Any]], *, whole: bool = False) -> GradientRequest:
    """The run with a tape, and the seeds for some items with cotangents; `whole` is for outside values."""
    replay = ran.run.replay()
    scale = replay.scale
    unlogged = whole and SEMIRINGS[scale.name].adds_logs  # other classes may keep adjoints by log weights
    prepared = replay.rerun(True, outside=True, stop=ran.stop) if unlogged else ran.run.tape(ran.stop)
    seeds = []
    for item, given in items:
        cotangent = read_cotangent(item, given)
        key, codes = place_of(ran.context, prepared, item)
        words = words_at(prepared, key, codes, scale.width)
        if words is None or codes is None:
            continue
        width = adjoint_width(prepared, scale)
        start = np.zeros(width)
        start[0] = cotangent
        seeds.append(Seed(key, tuple(codes), start.view(np.uint64)))
    return GradientRequest(replay, prepared, tuple(seeds), whole)


# -- questions about derivations ---------------------------------------------------------------------------------------


def outside(ran: FinishedRun, item: Any, goal: Any) -> Any:
    """The outside value of an item, in the semiring's scale."""
    _check_sums(ran, OUTSIDE)
    request = _request(ran, [(goal, 1.0)], whole=True)
    for asked in (goal, item):
        ran.warn_if_unknown(asked)
    key, codes = place_of(ran.context, request.prepared, item)
    words = request.item(key, codes, ran.stop)
    return zero_of(ran.context, key) if words is None else request.replay.scale.value(words)


def marginal(ran: FinishedRun, item: Any, goal: Any) -> float:
    """The expected number of uses of an item in a derivation of the goal."""
    _check_sums(ran, MARGINAL)
    if not ran.derived(goal):  # no derivation could use the item
        for asked in (goal, item):
            ran.warn_if_unknown(asked)
        return 0.0
    share = float(gradient(ran, [(goal, 1.0)]).item(item))
    if SEMIRINGS[ran.context.scale.name].times_adds:
        return share
    total = _total(ran, goal)
    return 0.0 if share == 0 else share * float(ran.value(item)) / total


def expected_counts(ran: FinishedRun, goal: Any) -> Gradient:
    """The expected number of uses of each fact and each item in a derivation of the goal."""
    _check_sums(ran, COUNT)
    real = not SEMIRINGS[ran.context.scale.name].times_adds
    total = _total(ran, goal) if real and ran.derived(goal) else 1.0 if real else None
    return gradient(ran, [(goal, 1.0)], total)


def entropy(ran: FinishedRun, goal: Any) -> float:
    """The entropy of the goal's derivations, from the derivative of log Z along an inverse temperature."""
    _check_sums(ran, ENTROPY)
    replay = ran.run.replay()
    log = SEMIRINGS[replay.scale.name].adds_logs
    directions = {}
    rules = ran.context.rules
    reached = _opened(rules, place_of(ran.context, ran.run.ready(), goal)[0])
    for key in rules.predicates:
        if key in reached and rules.predicates[key].external:
            raise QueryError(
                f"the entropy of {shown(goal)} needs the weights of all its facts, and those of {key} are a function's"
            )
    if not log and any(n < 0 for rule in rules.rules if rule.head.key in reached for n in numbers(rule.value)):
        raise QueryError("a rule has a negative constant, so derivations have no distribution")
    for key, relation in replay.facts.gathered().items():
        if key in reached:
            directions[key] = _temperature_tangent(relation, log)[:, None]
    constants = (lambda w: w) if log else (lambda w: w * math.log(w) if w > 0 else 0.0)
    prepared = replay.rerun(False, Directions((directions,), (constants,)), stop=ran.stop)
    words = words_at(prepared, *place_of(ran.context, prepared, goal), 2)
    if words is None:
        said = unknown_in(ran.context, prepared, goal)
        raise QueryError(
            f"{shown(goal)} was not derived, so there is no distribution of its derivations{said and '; '}{said}"
        )
    total, tangent = (float(x) for x in words.view(np.float64))
    if not (math.isfinite(total) if log else total > 0):
        raise QueryError(f"{shown(goal)} has weight {total}, so there is no distribution of its derivations")
    return _difference(total, tangent, goal) if log else math.log(total) - tangent / total


def _opened(rules: Rules, goal: str) -> set[str]:
    """The predicates whose items and facts derivations of a predicate have, those that are only tested aside."""
    below: dict[str, set[str]] = {}
    for rule in rules.rules:
        if rule.aggregator != "|=":  # of clauses, whose items are worth one
            below.setdefault(rule.head.key, set()).update(a.item.key for a in rule.antecedents if not a.side)
    seen, new = {goal}, [goal]
    while new:
        more = below.get(new.pop(), set()) - seen
        seen |= more
        new += more
    return seen


def worth_one(ran: FinishedRun, goal: Any) -> bool:
    """Whether clauses derive an item, which is worth one however often it is derived."""
    key, _ = place_of(ran.context, ran.run.ready(), goal)
    return ran.context.rules.predicates[key].aggregator == "|="


MOST_ROUNDING = 1e-6
"""Nats of an entropy that rounding may take."""


def _difference(total: float, mean: float, goal: Any) -> float:
    """log Z less the mean log weight. Raises where logs are so large that the difference is of rounding."""
    if not math.isfinite(mean) or math.ulp(max(abs(total), abs(mean))) > MOST_ROUNDING:
        raise ValueRangeError(
            f"the log weight of {shown(goal)} is {total:g}, of a size at which rounding leaves no digits for the "
            "entropy of its derivations; subtract a constant from the logs of the facts, or leave out facts that "
            "mask with large logs"
        )
    return total - mean


def _temperature_tangent(relation: Relation, log: bool) -> npt.NDArray[np.float64]:
    """The derivative of w**b, or in `log` of its log, with respect to b at one, for the weight w of each row."""
    weights = np.full(relation.count, 0.0 if log else 1.0) if relation.values is None else relation.values
    if log:
        return np.where(np.isfinite(weights), weights, 0.0)
    if (weights < 0).any():
        row = int((weights < 0).argmax())
        said = relation.places.error("the weight is negative, so derivations have no distribution", row)
        raise QueryError(str(said))
    return np.asarray(weights * np.log(np.where(weights > 0, weights, 1.0)))


def _check_sums(ran: FinishedRun, what: str) -> None:
    """Raises where the program's semiring does not define `what`: its values are not sums of derivations' weights."""
    name = ran.context.scale.name
    differentiable(ran.context.scale)
    if what not in SEMIRINGS[name].sums:
        allowed = [other for other, row in SEMIRINGS.items() if what in row.sums]
        raise NotDifferentiable(
            f"{what} is defined over derivations with weights, for a program in {', '.join(allowed)}; "
            f"this one is {name}"
        )


def _total(ran: FinishedRun, goal: Any) -> float:
    """The weight of all derivations of the goal."""
    total = float(ran.value(goal))
    if not (total > 0 or total < 0):
        raise QueryError(f"{shown(goal)} has weight {total}, so shares of it have no meaning")
    return total
