"""Gradient methods over all data: conjugate gradients, variable metric, limited memory, truncated Newton.

They are scipy's, but for limited memory without bounds, options and L1, which is `limited_memory.py`.

Truncated Newton asks for products of the Hessian with vectors, which are exact: a backward pass over dual numbers for
each example. Semirings and parametrisations without second derivatives are an error there.

A run that is taken up again replays the evaluations that were made (`evaluations.py`), which costs nothing, and goes on
from there with the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from ...errors import Error, NotConverged, warn
from ...packages import optional
from ..convergence.kinks import kink_near, kinks
from ..convergence.saddles import saddle
from ..parameters.rows import Doubles
from ..priors import L1
from ..problem import Problem
from ..specification import Theta, ravelled, unravelled
from ..steps import NO_BETTER, Ended, Observe, Saddle, TrainingStep
from .evaluations import Evaluations
from .limited_memory import limited_memory
from .remaining import Remaining
from .scipy_arguments import broken, checked_bounds, checked_constraints, checked_options, refused

P = ParamSpec("P")
R = TypeVar("R")

SCIPY = {
    "cg": "CG",
    "bfgs": "BFGS",
    "l-bfgs": "L-BFGS-B",
    "newton-cg": "Newton-CG",
    "tnc": "TNC",
    "slsqp": "SLSQP",
    "trust-constr": "trust-constr",
    "trust-ncg": "trust-ncg",
    "trust-krylov": "trust-krylov",
}
"""Our names of scipy's methods."""
OVER = {
    "cg": 1,
    "bfgs": 1,
    "l-bfgs": 1,
    "newton-cg": 1,
    "tnc": 3,
    "slsqp": 9,
    "trust-constr": 0,
    "trust-ncg": 1,
    "trust-krylov": 1,
}
"""What scipy's methods say of a run that took all the iterations or evaluations that its options allow."""
SHORTER = 1e-3
"""How much shorter the first step of trust-constr may be, each time that it goes on from where it ended."""
BOUNDED = ("l-bfgs", "tnc", "slsqp", "trust-constr")
CONSTRAINED = ("slsqp", "trust-constr")
SECOND = ("newton-cg", "trust-ncg", "trust-krylov")
"""Truncated Newton: they ask for products of the Hessian with vectors."""


_MANY = 1_000_000_000
ENDLESS: dict[str, dict[str, Any]] = {
    "cg": {"maxiter": _MANY, "gtol": 1e-12},
    "bfgs": {"maxiter": _MANY, "gtol": 1e-12},
    "l-bfgs": {"maxiter": _MANY, "maxfun": _MANY, "ftol": 0.0, "gtol": 1e-12},
    "newton-cg": {"maxiter": _MANY, "xtol": 1e-300},  # with 0, scipy before 1.12 makes no step
    "tnc": {"maxfun": _MANY, "ftol": 0.0, "xtol": 0.0, "gtol": 1e-12},
    "slsqp": {"maxiter": _MANY, "ftol": 1e-18},
    "trust-constr": {"maxiter": _MANY, "gtol": 1e-12, "xtol": 1e-15},
    "trust-ncg": {"maxiter": _MANY, "gtol": 1e-12},
    "trust-krylov": {"maxiter": _MANY, "gtol": 1e-12},
}
"""Options of scipy's that leave it to the observer when it is enough."""


class _Stop(Exception):
    """The observer has seen enough."""


REJECTED = 25
"""So many steps that are rejected one after another shrink a region of trust to nothing."""
EDGE = 3
"""After this many steps in a row that were shortened to where the objective is finite, a run warns of an edge."""


def minimise(
    problem: Problem,
    theta: Theta,
    observe: Observe,
    state: Mapping[str, Any],
    *,
    method: str,
    bounds: Any = None,
    constraints: Any = (),
    options: Mapping[str, Any] | None = None,
) -> Ended:
    """The parameters that make minus the objective small, by our method or one of `scipy.optimize.minimize`.

    `bounds` and `constraints` are as scipy has them, over all parameters one after another; `options` are its own.
    """
    if bounds is not None and method not in BOUNDED:
        raise Error(f"{method} has no bounds; these have: {', '.join(BOUNDED)}")
    if constraints is None:
        raise Error("constraints are those of scipy, or a list of them, not None: leave it out where there are none")
    constrained = not (isinstance(constraints, list | tuple) and not constraints)
    if constrained and method not in CONSTRAINED:
        raise Error(f"{method} has no constraints; these have: {', '.join(CONSTRAINED)}")
    if not np.isfinite(problem.spec.log_prior(theta)):
        raise Error(
            "the prior density of the initial parameters is zero or no number: some have a probability of zero, or are "
            "not finite; begin with others"
        )
    strengths = _l1(problem, theta)
    if strengths.any():
        if bounds is not None:
            raise Error("an L1 prior and bounds cannot be had at once")
        return _with_l1(problem, theta, observe, state, strengths, method, options)
    evaluate = Evaluations(problem, theta, state)

    def negative(vector: Doubles) -> tuple[float, Doubles]:
        value, gradient = evaluate(vector)
        return -value, -gradient

    start = evaluate.shown(evaluate.start)
    if bounds is not None:
        bounds = checked_bounds(bounds, [name for p in problem.spec.parametrisations.values() for name in p.names()])
    if constrained:
        constraints = checked_constraints(constraints, start)
    remaining = None if constrained else Remaining(bounds)
    look = _looking(problem, limited=constrained or bounds is not None)
    callbacks = _Callbacks(negative, start, theta, evaluate, observe, method, evaluate.whole, look, remaining)
    found = _run(callbacks, start, method, bounds, constraints, options)
    _warn_of_kinks(problem, found, callbacks, limited=constrained or bounds is not None)
    wrong = broken(constraints, evaluate.shown(ravelled(found.theta))) if constrained else None
    if wrong is not None:
        warn(f"where {method} ended, {wrong}: there may be no parameters with which all constraints hold")
    return found


def _looking(problem: Problem, limited: bool) -> Callable[[Theta, Theta], Saddle | None]:
    """Who looks for a saddle: nobody where limits may hold parameters there."""
    return lambda before, now: None if limited else saddle(problem, before, now)


def _warn_of_kinks(problem: Problem, found: Ended, callbacks: _Callbacks, limited: bool) -> None:
    """Warns where a method that wants no kinks found no better step, and there are some.

    Where limits hold parameters back, none is looked for nearby: functions may have no values beyond.
    """
    if callbacks.told_enough or found.left <= SMALL:
        return
    where = kinks(problem.spec) or (None if limited else kink_near(problem, found.theta))
    if where is not None:
        warn(
            f"the objective has kinks, {where}, and {callbacks.method} wants a smooth one: it ended where it found no "
            "better step, which may be no maximum; methods that step after a few examples, such as method='adagrad', "
            "have no such condition"
        )


SMALL = 1e-9
"""How much may be left to gain at a maximum."""


def _ours(method: Callable[P, R]) -> Callable[P, R]:
    """What a method calls, whose errors are kept, to be told from scipy's."""

    @wraps(method)
    def call(*arguments: P.args, **named: P.kwargs) -> R:
        try:
            return method(*arguments, **named)
        except Exception as error:
            callbacks = arguments[0]
            assert isinstance(callbacks, _Callbacks)
            callbacks.failed.append(error)
            raise

    return call


class _Callbacks:
    """What a method calls: `negative` is what it makes small, `step` tells the observer of its steps.

    `fold` makes parameters of the numbers that the method has: one for each, or two where there is an L1 prior. The
    observer is told of each step that it does not know from a checkpoint.
    """

    KEPT = 4
    """So many evaluations are kept, as a step is to a place that was evaluated before."""

    def __init__(
        self,
        negative: Callable[[Doubles], tuple[float, Doubles]],
        start: Doubles,
        like: Theta,
        evaluate: Evaluations,
        observe: Observe,
        method: str,
        fold: Callable[[Doubles], Doubles],
        look: Callable[[Theta, Theta], Saddle | None],
        remaining: Remaining | None,
    ) -> None:
        self.remaining = remaining
        """What is left to gain; None where constraints make that hard to say."""
        self.left = np.inf
        self._expected: float | None = None
        self._look = look
        self._negative, self._like, self._evaluate, self._observe = negative, like, evaluate, observe
        self.method, self._fold = method, fold
        self.told_enough = False
        """Whether the observer ended the run."""
        self.last = self.theta(start)
        """The parameters after the last step."""
        self._before = self.last
        self._place: tuple[Doubles, Doubles] | None = None  # where the last step came to, with the gradient there
        self.anew = None if method == "l-bfgs" or remaining is None else self._anew
        self.failed: list[Exception] = []
        self._seen: list[tuple[Doubles, float, float, Doubles]] = []  # places, with what was found there
        self._finite: tuple[Doubles, float, Doubles] | None = None  # the last of these with an objective
        self._refusals, self._edge = 0, 0  # since the last step; the last steps that each had some
        self._steps, self._rejected, self._at = 0, 0, np.array(start)
        self._given_up = False  # as all steps were rejected

    def theta(self, vector: Doubles) -> Theta:
        """Parameters from what a method has."""
        return unravelled(self._fold(vector), self._like)

    @_ours
    def objective(self, vector: Doubles) -> tuple[float, Doubles]:
        if not np.isfinite(vector).all():
            if not self._seen:
                raise Error(f"{self.method} would begin with {vector.tolist()}: initial parameters must be numbers")
            raise _Stop  # a search that has no digits left may divide by zero
        value, gradient = self._negative(vector)
        if not self._seen and self.remaining is not None:
            self.remaining.begin(vector, gradient)
        del self._seen[: 1 - self.KEPT]
        self._seen.append((np.array(vector), value, self._evaluate.data, gradient))
        if np.isfinite(value):
            self._finite = (np.array(vector), value, gradient)
        else:
            self._refusals += 1
        return value, gradient

    def walled(self, vector: Doubles) -> tuple[float, Doubles]:
        """The objective for scipy, whose searches along a line do not all cope with infinity: a wall in its place.

        It is above the last value that was finite, and slopes up from there, so that a shorter step is tried.
        """
        value, gradient = self.objective(vector)
        if np.isfinite(value) or self._finite is None:
            return value, gradient
        at, low, slopes = self._finite
        away = vector - at
        rise = abs(float(slopes @ away))
        return low + max(1.0, abs(low)) + 10 * rise, 20 * rise / max(float(away @ away), 1e-300) * away

    def expects(self, decrease: float) -> None:
        """What our method has still to gain, as far as it knows."""
        self._expected = decrease

    def looked(self) -> Saddle | None:
        """Whether the parameters after the last step are at a saddle."""
        return self._look(self._before, self.last)

    def _anew(self) -> float:
        """What is left to gain after the last step, by the curvature all around."""
        if self._place is None or self.remaining is None:
            return np.inf

        def slope_at(vector: Doubles) -> Doubles:
            value, gradient = self._negative(vector)
            return gradient if np.isfinite(value) else np.full(len(vector), np.nan)

        with self._evaluate.aside():
            return self.remaining.anew(*self._place, slope_at)

    def begins_afresh(self) -> None:
        """Another run goes on from where the last one ended: what was rejected before is none of its steps."""
        self._rejected = 0

    def ended(self, x: Doubles, success: bool = False, why: str = NO_BETTER) -> Ended:
        """Where a method ended. Raises NotConverged where no step that it tried has an objective."""
        failed = self._refusals > 0 and not success
        if failed and not np.isfinite(self._seen[-1][1]):
            refused = self._evaluate.refused
            raise NotConverged(
                f"{self.method} found no step after which the objective is finite, as far as it looked: {refused}"
            ) from refused
        self.warn_of_the_edge(failed)
        self._before, self.last = self.last, self.theta(x)
        point = next((known for known in reversed(self._seen) if np.array_equal(known[0], x)), None)
        if self._steps == 0 and self.remaining is not None and point is not None:
            self.left = self.remaining.after(x, point[3])
            self._place = np.array(x), point[3]
        return Ended(self.last, why, self.left, self.looked, self.anew)

    def stopped(self) -> Ended:
        """Where the observer had enough, or a search had no digits left."""
        self.warn_of_the_edge(self._given_up and self._refusals > 0)
        return Ended(self.last, NO_BETTER, self.left, self.looked, self.anew)

    def warn_of_the_edge(self, failed: bool = False) -> None:
        """Warns where the last steps, or the search for one more, came to where the objective is not finite."""
        if failed or self._edge >= EDGE:
            warn(
                f"the objective is not finite a little further along the last steps, so that {self.method} may have "
                "ended at an edge, and not at a maximum: a prior keeps parameters away from it"
            )

    @_ours
    def step(self, vector: Any, *_: Any) -> None:
        x = np.asarray(getattr(vector, "x", vector))
        self._rejected = self._rejected + 1 if np.array_equal(x, self._at) else 0
        self._at = np.array(x)
        if 0 < self._rejected < REJECTED:
            return  # a region of trust that shrinks has not converged
        if self._rejected:
            self._given_up = True
            raise _Stop
        point = next((known for known in reversed(self._seen) if np.array_equal(known[0], x)), None)
        if point is None:
            self.objective(x)
            point = self._seen[-1]
        value, data, gradient = point[1:]
        if not np.isfinite(value):
            return
        self._edge, self._refusals = self._edge + 1 if self._refusals else 0, 0
        self._before, self.last = self.last, self.theta(x)
        self._steps += 1
        self._place = np.array(x), gradient
        if self.remaining is not None:
            self.left = self.remaining.after(x, gradient, self._expected)
        evaluate = self._evaluate
        if self._steps <= evaluate.told:
            return  # it was told before
        count, evaluate.count = evaluate.count, 0
        made = {"evaluations": evaluate.trace, "start": evaluate.start, "told": self._steps}
        made["counted"] = evaluate.counted
        change = float(np.linalg.norm(gradient))
        step = TrainingStep(self.last, -value, data, change, count, made, look=self.looked, anew=self.anew)
        if self._observe(step if self.remaining is None else replace(step, left=self.left)):
            self.told_enough = True
            raise _Stop

    @_ours
    def product(self, vector: Doubles, direction: Doubles) -> Doubles:
        """The Hessian of `negative` times a vector."""
        if not (np.isfinite(vector).all() and np.isfinite(direction).all()):
            raise _Stop
        return -self._evaluate.product(vector, direction)


def _run(
    callbacks: _Callbacks,
    start: Doubles,
    method: str,
    bounds: Any,
    constraints: Any,
    options: Mapping[str, Any] | None,
) -> Ended:
    """Runs our method; or scipy's, and again from where it ended while that fails and still gets lower."""
    if method == "l-bfgs" and bounds is None and not options:
        return _run_ours(callbacks, start)
    optimize = optional("scipy.optimize", f"method={method!r}")
    wanted = {**ENDLESS[method], **checked_options(optimize, options, SCIPY[method], ENDLESS[method])}
    given: dict[str, Any] = {"constraints": constraints} if method in CONSTRAINED else {}
    if method in SECOND:
        given["hessp"] = callbacks.product
    given |= {"jac": True, "method": SCIPY[method], "bounds": bounds, "callback": callbacks.step, "options": wanted}
    x, reached = start, np.inf
    while True:  # a search along a line may fail for want of digits; from where it ended, a fresh one goes on
        try:
            with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
                found = optimize.minimize(callbacks.walled, x, **given)
        except _Stop:
            return callbacks.stopped()
        except Exception as error:
            if any(error is own for own in callbacks.failed) or not (bounds or constraints or options):
                raise
            told = {"bounds": bounds, "constraints": constraints or None, "options": options}
            raise refused(SCIPY[method], error, **told) from error
        x = np.asarray(found.x)
        if not np.isfinite(found.fun):
            raise NotConverged(f"{method} ended at an objective that is not finite: {found.message}")
        enough = found.success and not _shrunk(callbacks, found)
        if enough or not found.fun < reached or found.status == OVER[method]:
            why = "options" if found.status == OVER[method] and not found.success else NO_BETTER
            return callbacks.ended(x, found.success, why)
        reached = found.fun
        callbacks.begins_afresh()
        if method == "trust-constr":  # with short steps, lest it ends as the last run did
            wanted["initial_tr_radius"] = SHORTER * wanted.get("initial_tr_radius", 1.0)


def _shrunk(callbacks: _Callbacks, found: Any) -> bool:
    """Whether the region of trust shrank to nothing, which scipy calls a success, where there is more to gain.

    A step to where the objective is huge leaves a curvature behind, beside which all others are rounding.
    """
    if callbacks.method != "trust-constr" or callbacks.remaining is None:
        return False
    return bool(found.tr_radius < ENDLESS["trust-constr"]["xtol"] and callbacks.left > SMALL)


def _run_ours(callbacks: _Callbacks, start: Doubles) -> Ended:
    """Runs our own method for what has no bounds."""
    try:
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            return callbacks.ended(limited_memory(callbacks.objective, start, callbacks.step, callbacks.expects))
    except _Stop:
        return callbacks.stopped()


# -- L1: each parameter as a difference of two that are at least 0 -----------------------------------------------------


def _l1(problem: Problem, theta: Theta) -> Doubles:
    priors = problem.spec.priors
    strength = {n: priors[n].strength if isinstance(priors.get(n), L1) else 0.0 for n in theta}  # type: ignore[attr-defined]
    return ravelled({n: np.full(len(x), strength[n]) for n, x in theta.items()})


def _with_l1(
    problem: Problem,
    theta: Theta,
    observe: Observe,
    state: Mapping[str, Any],
    strengths: Doubles,
    method: str,
    options: Mapping[str, Any] | None,
) -> Ended:
    """With absolute values the objective has kinks; as theta = up - down, both at least 0, it has none.

    Andrew and Gao 2007 ("Scalable training of L1-regularized log-linear models") compare this with their own method.
    """
    if method not in ("l-bfgs", "tnc"):
        raise Error(f"an L1 prior has kinks, and {method} wants none; use method='l-bfgs'")
    evaluate = Evaluations(problem, theta, state)
    first, n = evaluate.start, len(strengths)

    def fold(vector: Doubles) -> Doubles:
        return vector[:n] - vector[n:]

    def negative(vector: Doubles) -> tuple[float, Doubles]:
        folded = fold(vector)
        value, gradient = evaluate(folded)
        smooth = value + float(strengths @ np.abs(folded))
        slope = gradient + strengths * np.sign(folded)
        return -smooth + float(strengths @ (vector[:n] + vector[n:])), np.concatenate(
            [-slope + strengths, slope + strengths]
        )

    start = np.concatenate([np.maximum(first, 0.0), np.maximum(-first, 0.0)])
    bounds = [(0.0, None)] * (2 * n)
    look = _looking(problem, limited=True)
    callbacks = _Callbacks(negative, start, theta, evaluate, observe, method, fold, look, Remaining(bounds))
    found = _run(callbacks, start, method, bounds, (), options)
    _warn_of_kinks(problem, found, callbacks, limited=False)
    return found
