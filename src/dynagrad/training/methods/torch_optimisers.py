"""Steps of the optimisers of PyTorch, which are classes of `torch.optim`, over minibatches.

Modules of PyTorch that give weights are in `training/parameters/network.py`; steps of our own, in `stochastic.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...arguments import whole_number
from ...errors import Error
from ...packages import optional
from ..examples import Example
from ..parameters.rows import Doubles
from ..problem import Problem
from ..specification import Theta, ravelled, unravelled
from ..steps import Observe
from ..totals import Totals
from .stochastic import epochs, mean_gradient

WRONG = (TypeError, ValueError, RuntimeError, AssertionError)
"""What classes of PyTorch raise for options that they cannot work with."""


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
    size = whole_number("size", size, 1)
    if "optimiser" in state and not isinstance(state["optimiser"], dict):
        raise Error("the checkpoint is of another method")
    return epochs(problem, observe, state, _TorchSteps(problem, theta, state, optimiser, options), size, seed)


class _TorchSteps:
    """Parameters as one tensor, which an optimiser moves."""

    def __init__(
        self,
        problem: Problem,
        like: Theta,
        state: Mapping[str, Any],
        optimiser: Callable[..., Any],
        options: Mapping[str, Any],
    ) -> None:
        self._torch = torch = optional("torch", "a torch optimiser")
        self._problem, self._like, self._name = problem, like, optimiser.__name__
        self._vector = torch.tensor(ravelled(like), dtype=torch.float64, requires_grad=True)
        try:
            self._optimiser = optimiser([self._vector], **options)
            if "optimiser" in state:
                self._optimiser.load_state_dict(_tensors(torch, state["optimiser"]))
        except (*WRONG, KeyError) as error:
            raise Error(f"{self._name} cannot be made: {error}") from None
        self._frozen = torch.tensor(problem.spec.frozen)
        self._fixed = self._vector.detach()[self._frozen].clone()

    def step(self, examples: list[Example], part: float) -> tuple[Totals, Doubles]:
        torch, asked, own = self._torch, list[tuple[Totals, Doubles]](), list[Exception]()

        def closure() -> Any:
            here = unravelled(self._vector.detach().numpy(), self._like)
            try:
                totals, gradient = mean_gradient(self._problem, here, examples, part)
            except Exception as error:  # of the model, or of a user's function in it
                own.append(error)
                raise
            self._vector.grad = torch.tensor(-gradient)
            asked.append((totals, gradient))
            return torch.tensor(-totals.value / max(totals.weight, 1.0))

        try:
            self._optimiser.step(closure)
        except WRONG as error:
            if any(error is one for one in own):
                raise
            raise Error(f"{self._name} cannot step: {error}") from None
        if not asked:
            raise Error(f"{self._name} asked for no gradient")
        with torch.no_grad():
            self._vector[self._frozen] = self._fixed  # which the decay of weights moves too
        return asked[0]

    def at(self) -> Theta:
        return unravelled(self._vector.detach().numpy().copy(), self._like)

    reached = at

    def kept(self) -> Mapping[str, Any]:
        return {"optimiser": _plain_of(self._torch, self._optimiser.state_dict())}


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
