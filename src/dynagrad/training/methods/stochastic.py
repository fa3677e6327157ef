"""Gradient methods that step after a few examples: plain, with momentum, AdaGrad, Adam, averaged.

`epochs` goes over the data again and again; a `Stepper` says what is done after each few examples. Those of PyTorch are
in `torch_optimisers.py`.

Examples are shuffled by the seed and the number of the epoch, within a window, so that streams need not fit in memory.
Robbins and Monro 1951; Duchi, Hazan and Singer 2011; Kingma and Ba 2015; averages as Polyak and Juditsky 1992 and, for
the structured perceptron, Collins 2002.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ...arguments import bounded_number, function_of, real_number, whole_number, yes_or_no
from ...errors import Error, shown
from ..examples import Example
from ..parameters.rows import Doubles
from ..problem import Problem
from ..specification import Theta, ravelled, unravelled
from ..steps import Observe, TrainingStep
from ..totals import Totals

Schedule = float | Callable[[int], float]
State = dict[str, Doubles]
Update = Callable[[Doubles, State, int, Mapping[str, float]], Doubles]
WINDOW = 4096
"""How many examples are shuffled at once."""


def _plain(g: Doubles, state: State, k: int, o: Mapping[str, float]) -> Doubles:
    if not o["momentum"]:
        return g
    state["velocity"] = o["momentum"] * state.get("velocity", np.zeros(len(g))) + g
    return state["velocity"]


def _adagrad(g: Doubles, state: State, k: int, o: Mapping[str, float]) -> Doubles:
    state["squares"] = state.get("squares", np.zeros(len(g))) + g * g
    return g / (np.sqrt(state["squares"]) + o["epsilon"])


def _adam(g: Doubles, state: State, k: int, o: Mapping[str, float]) -> Doubles:
    a, b = o["beta1"], o["beta2"]
    state["first"] = a * state.get("first", np.zeros(len(g))) + (1 - a) * g
    state["second"] = b * state.get("second", np.zeros(len(g))) + (1 - b) * g * g
    return (state["first"] / (1 - a ** (k + 1))) / (np.sqrt(state["second"] / (1 - b ** (k + 1))) + o["epsilon"])


@dataclass(frozen=True)
class UpdateRule:
    """How a gradient becomes a step: the direction, and the rate unless another is given."""

    update: Update
    rate: float
    options: Mapping[str, float] = field(default_factory=dict)


RULES: dict[str, UpdateRule] = {
    "sgd": UpdateRule(_plain, 0.1, {"momentum": 0.0}),
    "adagrad": UpdateRule(_adagrad, 0.1, {"epsilon": 1e-10}),
    "adam": UpdateRule(_adam, 0.01, {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}),
    "perceptron": UpdateRule(_plain, 1.0, {"momentum": 0.0}),
}
BOUNDS = {
    "momentum": (0.0, 1.0, False),
    "beta1": (0.0, 1.0, False),
    "beta2": (0.0, 1.0, False),
    "epsilon": (0.0, np.inf, True),
}
"""The least value of each option, what it has to be below, and whether it has to be above the least."""


def shuffled(problem: Problem, size: int, seed: int, epoch: int) -> Iterator[list[Example]]:
    """The examples in minibatches: windows of them shuffled, each epoch in another order."""
    random = np.random.default_rng([seed, epoch])
    for window in problem.passes.shards(WINDOW):
        order = random.permutation(len(window)).tolist()
        for begin in range(0, len(window), size):
            yield [window[n] for n in order[begin : begin + size]]
    problem.after_a_pass()


class Stepper(Protocol):
    """Parameters that move after each few examples."""

    def step(self, examples: list[Example], part: float) -> tuple[Totals, Doubles]:
        """Moves them, by a part of the priors: what the examples gave where they were, and the mean gradient there."""
        ...

    def at(self) -> Theta:
        """Where they are."""
        ...

    def reached(self) -> Theta:
        """Where they are, or their mean."""
        ...

    def kept(self) -> Mapping[str, Any]:
        """All that it needs to go on from here."""
        ...


def epochs(
    problem: Problem, observe: Observe, state: Mapping[str, Any], stepper: Stepper, size: int, seed: int
) -> Theta:
    """Steps over the data, in another order each time, until the observer has seen enough."""
    epoch, count = int(state.get("epoch", 0)), int(state.get("count", 0))
    while True:
        value, seen, counted, norms = 0.0, 0, 0, 0.0
        for examples in shuffled(problem, size, seed, epoch):
            part = len(examples) / max(count, seen + len(examples))  # of the data, as far as they are known
            totals, gradient = stepper.step(examples, part)
            value += totals.value
            counted += totals.counted
            seen += len(examples)
            norms += float(gradient @ gradient)
        if not seen:
            raise Error("the data have no examples")
        epoch, count = epoch + 1, seen
        result = stepper.reached()
        if not counted:
            problem.must_count(result)
        made = {**stepper.kept(), "epoch": epoch, "count": count}
        objective, change = value + problem.spec.log_prior(stepper.at()), float(np.sqrt(norms))
        if observe(TrainingStep(result, objective, value, change, seen, made, on_the_way=True, settled=False)):
            return result


def mean_gradient(problem: Problem, theta: Theta, examples: list[Example], part: float) -> tuple[Totals, Doubles]:
    """Of some examples, with a part of the priors: what they gave, and the gradient for each unit of their weight."""
    totals = problem.of_shard(problem.weights_for(theta, examples), examples)
    return totals, ravelled(problem.spec.pull(theta, totals, part)) / max(totals.weight, 1.0)


class _Steps:
    """Steps along the gradient by one of our rules."""

    def __init__(
        self,
        problem: Problem,
        like: Theta,
        state: Mapping[str, Any],
        rule: UpdateRule,
        options: Mapping[str, float],
        rate: Schedule,
        averaged: bool,
    ) -> None:
        self._problem, self._like, self._rule, self._options = problem, like, rule, options
        self._rate, self._averaged = rate, averaged
        self._held: State = {k: np.asarray(x) for k, x in state.get("held", {}).items()}
        self._vector = np.asarray(state["vector"]) if "vector" in state else ravelled(like)
        self._total = np.asarray(state["total"]) if "total" in state else np.zeros(len(self._vector))
        self._k = int(state.get("k", 0))

    def step(self, examples: list[Example], part: float) -> tuple[Totals, Doubles]:
        totals, gradient = mean_gradient(self._problem, unravelled(self._vector, self._like), examples, part)
        rate = self._rate
        now = bounded_number("a result of rate", rate(self._k), 0.0) if callable(rate) else rate
        self._vector = self._vector + now * self._rule.update(gradient, self._held, self._k, self._options)
        self._total = self._total + self._vector
        self._k += 1
        return totals, gradient

    def at(self) -> Theta:
        return unravelled(self._vector, self._like)

    def reached(self) -> Theta:
        return unravelled(self._total / self._k if self._averaged else self._vector, self._like)

    def kept(self) -> Mapping[str, Any]:
        return {"held": self._held, "vector": self._vector, "total": self._total, "k": self._k}


def ascend(
    problem: Problem,
    theta: Theta,
    observe: Observe,
    state: Mapping[str, Any],
    *,
    method: str,
    rate: Schedule | None = None,
    size: int = 16,
    average: bool | None = None,
    seed: int = 0,
    **options: float,
) -> Theta:
    """Steps along the mean gradient of minibatches; priors count in proportion to their part of the data.

    `rate` is a number or a function of the step. With `average` the result is the mean of the parameters of all steps,
    as it is for the perceptron unless told otherwise.
    """
    rule = RULES[method]
    unknown = set(options) - set(rule.options)
    if unknown:
        raise Error(f"{method} has no option {min(unknown)}; it has rate, size, average, {', '.join(rule.options)}")
    chosen = dict(rule.options)
    for name, given in options.items():
        least, below, above = BOUNDS[name]
        chosen[name] = bounded_number(name, given, least, below, above=above)
    averaged = method == "perceptron" if average is None else yes_or_no("average", average)
    size = whole_number("size", size, 1)
    at = rule.rate if rate is None else rate
    if callable(at):
        function_of("rate", at, 1, "the number of the step")
    elif not 0 < real_number("rate", at) < np.inf:
        raise Error(f"rate must be a finite number above 0, or a function of the step, not {shown(rate)}")
    return epochs(problem, observe, state, _Steps(problem, theta, state, rule, chosen, at, averaged), size, seed)
