"""Gradient methods that step after a few examples: plain, with momentum, AdaGrad, Adam, averaged; and those of PyTorch.

Examples are shuffled by the seed and the number of the epoch, within a window, so that streams need not fit in memory.
Robbins and Monro 1951; Duchi, Hazan and Singer 2011; Kingma and Ba 2015; averages as Polyak and Juditsky 1992 and, for
the structured perceptron, Collins 2002.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...arguments import bounded_number, function_of, real_number, whole_number, yes_or_no
from ...errors import Error, shown
from ...facts.readers import import_module
from ..examples import Example
from ..parameters.rows import Doubles
from ..problem import Problem
from ..specification import Theta, ravelled, unravelled
from ..steps import Observe, TrainingStep

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
    like = theta
    held: State = {k: np.asarray(x) for k, x in state.get("held", {}).items()}
    vector = np.asarray(state["vector"]) if "vector" in state else ravelled(theta)
    total = np.asarray(state["total"]) if "total" in state else np.zeros(len(vector))
    k, epoch, count = int(state.get("k", 0)), int(state.get("epoch", 0)), int(state.get("count", 0))
    while True:
        value, seen, counted, norms = 0.0, 0, 0, 0.0
        for examples in shuffled(problem, size, seed, epoch):
            here = unravelled(vector, like)
            totals = problem.of_shard(problem.spec.weights(here), examples)
            part = len(examples) / max(count, seen + len(examples))  # of the data, as far as they are known
            gradient = _gradient(problem, here, totals, part) / max(totals.weight, 1.0)
            now = bounded_number("a result of rate", at(k), 0.0) if callable(at) else at
            vector = vector + now * rule.update(gradient, held, k, chosen)
            total = total + vector
            k += 1
            value += totals.value
            counted += totals.counted
            seen += len(examples)
            norms += float(gradient @ gradient)
        if not seen:
            raise Error("the data have no examples")
        count, epoch = seen, epoch + 1
        result = unravelled(total / k if averaged else vector, like)
        if not counted:
            problem.must_count(result)
        made = {"held": held, "vector": vector, "total": total, "k": k, "epoch": epoch, "count": count}
        objective = value + problem.spec.log_prior(result)
        if observe(TrainingStep(result, objective, value, float(np.sqrt(norms)), seen, made, settled=False)):
            return result


def _gradient(problem: Problem, theta: Theta, totals: Any, part: float) -> Doubles:
    """Of the data, and a part of that of the priors."""
    return ravelled(problem.spec.pull(theta, totals, part))


def by_torch(
    problem: Problem,
    theta: Theta,
    observe: Observe,
    state: Mapping[str, Any],
    *,
    optimiser: Callable[..., Any],
    size: int = 16,
    seed: int = 0,
    **options: Any,
) -> Theta:
    """Steps of a class of `torch.optim`, such as `torch.optim.AdamW`, with its own options."""
    torch = import_module("torch", "torch", "a torch optimiser")
    size = whole_number("size", size, 1)
    if "optimiser" in state and not isinstance(state["optimiser"], dict):
        raise Error("the checkpoint is of another method")
    vector = torch.tensor(ravelled(theta), dtype=torch.float64, requires_grad=True)
    try:
        stepper = optimiser([vector], **options)
        if "optimiser" in state:
            stepper.load_state_dict(_tensors(torch, state["optimiser"]))
    except (TypeError, ValueError, RuntimeError, KeyError) as error:
        raise Error(f"{optimiser.__name__} cannot be made: {error}") from None
    epoch, count = int(state.get("epoch", 0)), int(state.get("count", 0))
    frozen = torch.tensor(problem.spec.frozen)
    fixed = vector.detach()[frozen].clone()
    while True:
        value, seen, counted, norms = 0.0, 0, 0, 0.0
        for examples in shuffled(problem, size, seed, epoch):
            part = len(examples) / max(count, seen + len(examples))
            asked: list[tuple[float, Doubles, int]] = []

            def closure(examples: list[Example] = examples, part: float = part, asked: Any = asked) -> Any:
                here = unravelled(vector.detach().numpy(), theta)
                totals = problem.of_shard(problem.spec.weights(here), examples)
                gradient = _gradient(problem, here, totals, part) / max(totals.weight, 1.0)
                vector.grad = torch.tensor(-gradient)
                asked.append((totals.value, gradient, totals.counted))
                return torch.tensor(-totals.value / max(totals.weight, 1.0))

            try:
                stepper.step(closure)
            except (TypeError, ValueError, RuntimeError) as error:
                raise Error(f"{optimiser.__name__} cannot step: {error}") from None
            if not asked:
                raise Error(f"{optimiser.__name__} asked for no gradient")
            with torch.no_grad():
                vector[frozen] = fixed  # which the decay of weights moves too
            here_value, gradient, here_counted = asked[0]
            value += here_value
            counted += here_counted
            seen += len(examples)
            norms += float(gradient @ gradient)
        if not seen:
            raise Error("the data have no examples")
        epoch, count = epoch + 1, seen
        result = unravelled(vector.detach().numpy().copy(), theta)
        if not counted:
            problem.must_count(result)
        objective = value + problem.spec.log_prior(result)
        now = {"epoch": epoch, "count": count, "optimiser": _plain_of(torch, stepper.state_dict())}
        if observe(TrainingStep(result, objective, value, float(np.sqrt(norms)), seen, now, settled=False)):
            return result


def _plain_of(torch: Any, x: Any) -> Any:
    """What an optimiser of torch keeps, with arrays for its tensors."""
    if isinstance(x, torch.Tensor):
        return x.detach().cpu().numpy().copy()
    if isinstance(x, dict):
        return {k: _plain_of(torch, v) for k, v in x.items()}
    return [_plain_of(torch, v) for v in x] if isinstance(x, list | tuple) else x


def _tensors(torch: Any, x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return torch.tensor(x)
    if isinstance(x, dict):
        return {k: _tensors(torch, v) for k, v in x.items()}
    return [_tensors(torch, v) for v in x] if isinstance(x, list | tuple) else x
