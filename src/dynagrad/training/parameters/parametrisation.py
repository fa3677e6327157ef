"""`Parametrisation`: a differentiable map from free parameters to the log weights of rows, and its derivatives.

Each kind of it is a file beside this one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from ...errors import Error
from .groups import Declared, Groups, in_declared
from .rows import Doubles, Flags, Indices, Rows


class Parametrisation(ABC):
    """How the weights of some rows depend on free parameters, `theta`: a vector of `size` numbers.

    Weights are told by their logs; a parametrisation with `logs` False gives the values of facts as they are, for
    programs in plain arithmetic. Nothing is kept but what the user gave: `theta` is an argument everywhere.
    """

    rows: Rows
    size: int
    logs: bool = True
    groups: Groups | None = None
    """Which weights sum to one; None where none do."""
    frozen: Flags | None = None
    """Which parameters stay as they are; None where all are free."""
    common_names: Mapping[str, str] = MappingProxyType({})
    """The name that stands for a parameter and others, by its own; of those that have one."""
    rowwise: bool = False
    """Whether the weights of some rows can be had without those of the others."""

    def in_groups(self, declared: Sequence[Declared | None] | None) -> Parametrisation:
        """This parametrisation in the groups that a program declares for its rows; None where it declares none.

        Raises Error where it has others.
        """
        if declared is not None and self.groups is not None:
            in_declared(self.rows, self.groups, declared, places=False)
        return self

    def doubts(self) -> list[str]:
        """What is to be warned of in what the rows came with: values are where training begins, if they can be."""
        if self.rows.values is None:
            return []
        with np.errstate(over="ignore"):
            begun = self.weights(self.start(np.random.default_rng(0)))
            begun = np.exp(begun) if self.logs else begun
        if np.allclose(begun, self.rows.values, rtol=1e-6, atol=1e-12):
            return []
        n = int(np.flatnonzero(~np.isclose(begun, self.rows.values, rtol=1e-6, atol=1e-12))[0])
        what = f"{self.rows.text(n)} has the value {self.rows.values[n]:.6g}, which counts for nothing"
        kind = type(self).__name__
        return [f"{what}: {kind} gives it {begun[n]:.6g} where training begins; leave the values of rows out"]

    @abstractmethod
    def start(self, random: np.random.Generator) -> Doubles:
        """The parameters that training begins with."""

    def draw(self, random: np.random.Generator) -> Doubles:
        """Other parameters to begin with, at random; those of `start` where nothing says how they are drawn."""
        return self.start(random)

    @abstractmethod
    def weights(self, theta: Doubles) -> Doubles:
        """The log weight of each row, or with `logs` False its value."""

    def weights_of(self, theta: Doubles, rows: Indices) -> Doubles:
        """The same, with those of some rows alone where that is less work: then the others have a weight of zero."""
        return self.weights(theta)

    @abstractmethod
    def pull(self, theta: Doubles, cotangent: Doubles) -> Doubles:
        """The gradient by the parameters, from that by what `weights` gives."""

    def push(self, theta: Doubles, tangent: Doubles) -> Doubles:
        """How what `weights` gives changes along a direction of the parameters."""
        raise self._first_order()

    def bend(self, theta: Doubles, cotangent: Doubles, tangent: Doubles) -> Doubles:
        """How what `pull` gives for the same cotangent changes along a direction of the parameters."""
        raise self._first_order()

    def free(self, numbers: Doubles) -> Doubles:
        """Numbers of the parameters, with zero for those that stay as they are."""
        return numbers if self.frozen is None or not self.frozen.any() else np.where(self.frozen, 0.0, numbers)

    def _first_order(self) -> Error:
        return Error(
            f"{type(self).__name__} has no second derivatives; a method that asks for gradients alone is 'l-bfgs'"
        )

    @abstractmethod
    def names(self) -> list[str]:
        """A name for each parameter, for files and messages."""
