"""Weights that a module of PyTorch gives, such as a neural network, and their derivatives by PyTorch.

PyTorch is imported when one is made. PyTorch's optimisers are in
`training/methods/torch_optimisers.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...arguments import function_of, yes_or_no
from ...calls import strict_options
from ...errors import Error, NotConverged, counted, raised, shown
from ...moved import warn_of_name
from ...packages import optional
from .parametrisation import Parametrisation
from .rows import Doubles, Indices, Rows

SOME = "the numbers of some rows"
GRADIENT = "gradient"


@dataclass(frozen=True, eq=False)
class _Run:
    """What the module gave for all rows, or for some, and with what; `scores` have the graph for a gradient, until
    there was one."""

    theta: bytes
    state: tuple[Any, ...]
    numbers: Doubles
    scores: Any
    rows: Indices | None = None


class Torch(Parametrisation):
    """Rows whose log weights are what a `torch.nn.Module` gives for `inputs`.

    `module(*inputs)` is a tensor with a number for each row, or a dict of these by predicate. With `logs=False` the
    numbers are the values of the facts as they are. The module begins with the parameters that it has, and is run as it
    is: put it into `eval()` mode if it has dropout, as each pass has to find the same function. `to_module` writes
    parameters into it.

    With `rowwise=True` the number of a row has to depend on nothing but that row of each of `inputs`, which are
    tensors. A gradient then runs the module for the rows alone that it is not zero for; and for a minibatch of examples
    in a list it is run for those that they can use, once for weights and gradient, with a likelihood, a conditional one
    or another objective of the package and a program in `log` or `real`. In place of such inputs there may be one
    function: of a tensor with the numbers of some rows, it gives the tuple of inputs for these, such as the sentences
    that they are of.

    Which rows those are is looked up in the forest of each example when it first comes up in a call of `fit`, which
    takes a millisecond or more. Where a run for all rows takes less, as for a small layer over a few thousand rows,
    `rowwise="gradient"` looks nothing up: weights are those of all rows, and only gradients leave rows out.

    For example, with a row of inputs for each row of `emit/2`:
    `Torch({"emit/2": rows}, torch.nn.Linear(8, 1, dtype=torch.float64), inputs)`.
    """

    @strict_options
    def __init__(
        self,
        rows: Mapping[str, Any],
        module: Any,
        *inputs: Any,
        logs: bool = True,
        rowwise: bool | str = False,
        apart: bool | None = None,
    ) -> None:
        if apart is not None:
            warn_of_name("training.Torch(..., apart=...)", "rowwise=...", 2)
            rowwise = apart
        self._torch = optional("torch", "training.Torch")
        if not isinstance(module, self._torch.nn.Module):
            raise Error(f"a torch.nn.Module is wanted, not {shown(module)}")
        self.rows, self.module, self.inputs, self.logs = Rows(rows), module, inputs, yes_or_no("logs", logs)
        gradient = isinstance(rowwise, str) and rowwise == GRADIENT
        self._apart = gradient or yes_or_no(f'rowwise, unless it is "{GRADIENT}",', rowwise)
        """Whether the number of a row depends on its own inputs alone."""
        self.rowwise = self._apart and not gradient
        self._named = [(name, p) for name, p in module.named_parameters() if p.requires_grad]
        if not self._named:
            raise Error("the module has no parameters that may be changed")
        self._parameters = [p for _, p in self._named]
        self.size = sum(p.numel() for p in self._parameters)
        self._start = np.concatenate([np.ravel(p.detach().cpu().double().numpy()) for p in self._parameters])
        self._last: _Run | None = None
        function = len(inputs) == 1 and callable(inputs[0]) and not isinstance(inputs[0], self._torch.Tensor)
        self._inputs_of = function_of("what gives inputs", inputs[0], 1, SOME) if self._apart and function else None
        if self._apart:
            self._check_rowwise()

    def _check_rowwise(self) -> None:
        """Raises Error for inputs without a row for each row, and where a row's number depends on other rows."""
        count = len(self.rows)
        for n, given in enumerate(() if self._inputs_of is not None else self.inputs):
            if not isinstance(given, self._torch.Tensor) or given.ndim == 0 or len(given) != count:
                raise Error(f"rowwise=True needs inputs with as many rows, {count:,}; input {n} has others")
        if not self.inputs:
            raise Error(f"rowwise=True needs inputs: tensors with a row for each of {counted(count, 'row')}")
        some = np.arange(0, count, 2)
        with self._torch.no_grad():
            among, alone = self._scores(self._start)[some], self._scores(self._start, some)
        if not self._torch.allclose(among, alone, rtol=1e-3, atol=1e-3, equal_nan=True):
            raise Error(
                "rowwise=True is for modules where the number of a row depends on its own inputs alone; this one gives "
                "others where fewer rows are run, as batch normalisation, dropout, or a sum over rows would"
            )

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_last": None}  # a graph is of this process alone

    def to_module(self, theta: Doubles) -> Any:
        """The module, with these parameters in it."""
        self._last = None
        begin = 0
        with self._torch.no_grad():
            for p in self._parameters:
                part = self._torch.from_numpy(np.array(theta[begin : begin + p.numel()]))
                p.copy_(part.reshape(p.shape))
                begin += p.numel()
        return self.module

    def _scores(self, theta: Doubles, used: Any = None) -> Any:
        """What the module gives for all rows, or for some."""
        module = self.to_module(theta)
        inputs, count = self.inputs, len(self.rows) if used is None else len(used)
        if self._inputs_of is not None:
            given = self._inputs_of(self._torch.as_tensor(np.arange(count) if used is None else used))
            inputs = given if isinstance(given, tuple) else (given,)
        elif used is not None:
            inputs = tuple(x[self._torch.as_tensor(used, device=x.device)] for x in inputs)
        try:
            found = module(*inputs)
        except (TypeError, ValueError, RuntimeError, IndexError) as error:
            raise Error(f"the module cannot be run on its inputs: {raised(error)}") from error
        if isinstance(found, Mapping) and not self._apart:
            if set(found) != set(self.rows.keys):
                given = ", ".join(map(str, found)) or "nothing"
                raise Error(f"the module gives tensors for {given}; the rows are of {', '.join(self.rows.keys)}")
            found = self._torch.cat([found[key].reshape(-1) for key in self.rows.keys])
        if not isinstance(found, self._torch.Tensor):
            raise Error(f"the module gives {shown(found)}, and not a tensor with a number for each row")
        found = found.reshape(-1)
        if len(found) != count:
            raise Error(f"the module gives {counted(len(found), 'number')} for {counted(count, 'row')}")
        return found

    def start(self, random: np.random.Generator) -> Doubles:
        return self._start.copy()

    def _run(self, theta: Doubles, gradient: bool) -> _Run:
        """The module run for all rows: once for the weights of some parameters, their gradient, and held-out data,
        unless a function gives the inputs."""
        found = self._last
        if found is None or found.rows is not None or self._inputs_of is not None or not self._is_of(found, theta):
            found = None
        if found is None or (gradient and found.scores is None):
            with self._torch.set_grad_enabled(not self._apart):
                scores = self._scores(theta)
            numbers = scores.detach().cpu().double().numpy()
            found = _Run(theta.tobytes(), self._state(), numbers, None if self._apart else scores)
        self._last = replace(found, scores=None) if gradient else found
        return found

    def _is_of(self, found: _Run, theta: Doubles) -> bool:
        """Whether it is what the module gives now, with these parameters."""
        return (found.theta, found.state) == (theta.tobytes(), self._state())

    def _state(self) -> tuple[Any, ...]:
        """What a user may change of the module and its inputs between two runs; without versions, never the same.

        What a function of inputs reads is not known: so between two passes it is asked again.
        """
        tensors = (*self.module.parameters(), *self.module.buffers(), *(() if self._inputs_of else self.inputs))
        versions = (
            (id(x), x._version) if isinstance(x, self._torch.Tensor) and not x.is_inference() else object()
            for x in tensors
        )
        return (*versions, *(part.training for part in self.module.modules()))

    def weights(self, theta: Doubles) -> Doubles:
        return self._checked(np.array(self._run(theta, gradient=False).numbers))

    def weights_of(self, theta: Doubles, rows: Indices) -> Doubles:
        if not self._apart:
            return self.weights(theta)
        found = np.full(len(self.rows), -np.inf if self.logs else 0.0)
        if len(rows):
            scores = self._scores(theta, rows)
            numbers = scores.detach().cpu().double().numpy()
            self._last = _Run(theta.tobytes(), self._state(), numbers, scores, rows)
            found[rows] = numbers
        return self._checked(found)

    def _checked(self, found: Doubles) -> Doubles:
        if np.isnan(found).any():
            raise NotConverged(f"the module gives NaN for {self.rows.text(int(np.flatnonzero(np.isnan(found))[0]))}")
        return found

    def _like(self, numbers: Doubles, tensor: Any) -> Any:
        return self._torch.as_tensor(numbers, dtype=tensor.dtype, device=tensor.device)

    def _grad(self, of: Any, cotangent: Any = None, keep: bool = False) -> list[Any]:
        if not of.requires_grad:
            return [self._torch.zeros_like(p) for p in self._parameters]
        found = self._torch.autograd.grad(of, self._parameters, cotangent, create_graph=keep, allow_unused=True)
        return [self._torch.zeros_like(p) if g is None else g for g, p in zip(found, self._parameters, strict=True)]

    def _flat(self, parts: list[Any]) -> Doubles:
        return np.concatenate([np.ravel(g.detach().cpu().double().numpy()) for g in parts])

    def pull(self, theta: Doubles, cotangent: Doubles) -> Doubles:
        if not self._apart:
            scores = self._run(theta, gradient=True).scores
            return self._flat(self._grad(scores, self._like(cotangent, scores)))
        used = np.flatnonzero(cotangent)
        if not len(used):
            return np.zeros(self.size)
        last = self._last
        if last is not None and last.rows is not None and self._is_of(last, theta) and np.isin(used, last.rows).all():
            scores, used, self._last = last.scores, last.rows, None
        else:
            scores = self._scores(theta, used)
        return self._flat(self._grad(scores, self._like(cotangent[used], scores)))

    def _along(self, parts: list[Any], tangent: Doubles) -> Any:
        """The inner product of gradients with a direction."""
        flat = self._torch.cat([g.reshape(-1) for g in parts])
        return flat @ self._like(tangent, flat)

    def push(self, theta: Doubles, tangent: Doubles) -> Doubles:
        scores = self._scores(theta)
        weights = self._torch.zeros_like(scores, requires_grad=True)  # the pullback is linear in these
        inner = self._along(self._grad(scores, weights, keep=True), tangent)
        (found,) = self._torch.autograd.grad(inner, [weights], allow_unused=True)
        return np.zeros(len(self.rows)) if found is None else np.asarray(found.cpu().double().numpy())

    def bend(self, theta: Doubles, cotangent: Doubles, tangent: Doubles) -> Doubles:
        scores = self._scores(theta)
        inner = self._along(self._grad(scores, self._like(cotangent, scores), keep=True), tangent)
        return self._flat(self._grad(inner))

    def names(self) -> list[str]:
        return [f"{name}[{n}]" for name, p in self._named for n in range(p.numel())]
