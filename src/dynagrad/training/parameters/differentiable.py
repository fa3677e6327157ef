"""Weights that any differentiable function of a user gives, and its derivatives by the calculus of the package.

Here are only calls of `dg.vjp` and its kin; for modules of PyTorch there is `network.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ... import numpy as own
from ...arguments import function_of, yes_or_no
from ...calls import strict_options
from ...eager.pytree import leaves, unravelled
from ...eager.verbs.gradients import jvp, vjp
from ...errors import Error, NotConverged, counted, shown
from .parametrisation import Parametrisation
from .rows import Doubles, Rows


class Differentiable(Parametrisation):
    """Rows whose log weights are what a function of free parameters gives.

    `function` takes `parameters`, a structure of numbers and arrays as `dg.grad` takes it, and gives an array with a
    number for each row, or a dict of these by predicate; it may be compiled with `dg.compile`. With `logs=False` the
    numbers are the values of the facts as they are.

    >>> from dynagrad import numpy as np
    >>> from dynagrad import training
    >>> free = training.Differentiable({"w/1": [("a",), ("b",)]}, lambda p: np.array([p, -p]), 1.0)
    >>> free.weights(free.start(None))
    array([ 1., -1.])
    """

    @strict_options
    def __init__(
        self, rows: Mapping[str, Any], function: Callable[[Any], Any], parameters: Any, *, logs: bool = True
    ) -> None:
        self.rows, self.logs = Rows(rows), yes_or_no("logs", logs)
        self.function, self.parameters = function_of("function", function, 1, "the parameters"), parameters
        self._start = np.concatenate([np.zeros(0), *map(_numbers, leaves(parameters))])
        self.size = len(self._start)
        if not self.size:
            raise Error(f"the parameters have no numbers that can change, such as 1.0, but are {shown(parameters)}")

    def structured(self, theta: Doubles) -> Any:
        """A vector as parameters of the form that the function takes."""
        return unravelled(self.parameters, theta)

    def _values(self, parameters: Any) -> Any:
        found = self.function(parameters)
        if isinstance(found, Mapping):
            if set(found) != set(self.rows.keys):
                given = ", ".join(map(str, found)) or "nothing"
                raise Error(f"the function gives arrays for {given}; the rows are of {', '.join(self.rows.keys)}")
            found = [found[key] for key in self.rows.keys]
        if isinstance(found, list | tuple):
            return own.concatenate([np.zeros(0), *(own.ravel(x) for x in found)])
        return found

    def start(self, random: np.random.Generator) -> Doubles:
        return self._start.copy()

    def weights(self, theta: Doubles) -> Doubles:
        return self._checked(self._values(self.structured(theta)))

    def _checked(self, found: Any) -> Doubles:
        try:
            values = np.ravel(np.asarray(found, np.float64))
        except (TypeError, ValueError):
            raise Error(f"the function gives {shown(found)}, and not an array with a number for each row") from None
        if len(values) != len(self.rows):
            raise Error(f"the function gives {counted(len(values), 'number')} for {counted(len(self.rows), 'row')}")
        if np.isnan(values).any():
            raise NotConverged(f"the function gives NaN for {self.rows.text(int(np.flatnonzero(np.isnan(values))[0]))}")
        return values

    def pull(self, theta: Doubles, cotangent: Doubles) -> Doubles:
        found, pullback = vjp(self._values, self.structured(theta))
        (gradient,) = pullback(cotangent.reshape(np.shape(found)))
        return _vector(gradient)

    def push(self, theta: Doubles, tangent: Doubles) -> Doubles:
        _, moved = jvp(self._values, (self.structured(theta),), (self.structured(tangent),))
        return np.ravel(np.asarray(moved, np.float64))

    def bend(self, theta: Doubles, cotangent: Doubles, tangent: Doubles) -> Doubles:
        def pulled(parameters: Any) -> Any:
            found, pullback = vjp(self._values, parameters)
            (gradient,) = pullback(cotangent.reshape(np.shape(found)))
            return gradient

        _, moved = jvp(pulled, (self.structured(theta),), (self.structured(tangent),))
        return _vector(moved)

    def names(self) -> list[str]:
        return [f"parameter {n}" for n in range(self.size)]


def _vector(structure: Any) -> Doubles:
    """The numbers of a structure, as a vector of its own."""
    return np.concatenate([np.zeros(0), *(np.ravel(np.asarray(x, np.float64)) for x in leaves(structure))])


def _numbers(leaf: Any) -> Doubles:
    """What a leaf of the parameters begins with."""
    try:
        found = np.ravel(np.asarray(leaf, np.float64))
    except (TypeError, ValueError):
        found = np.array([np.nan])
    if not np.isfinite(found).all():
        raise Error(f"parameters are finite numbers and arrays of these, not {shown(leaf)}")
    return found
