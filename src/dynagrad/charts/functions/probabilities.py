"""Arguments of functions that are probabilities: their jets on the semiring's scale, and derivatives by them.

A jet of order K has a component for each set of K directions, whose products are those of nilpotent numbers
(`jets.py`). So the log of a jet is a jet, with components that the argument has not; and the gradient by the
probability is the jet of that by the log, times the jet of the log's derivative.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ...errors import FactError, NotDifferentiable, cut
from ...semirings import not_probable

Array = npt.NDArray[np.float64]


SMALL = 2.0**-500
"""What stands for a probability of 0 where there are derivatives, since the log of 0 has none.

A goal's weight is Z + p Y + ..., where p is the probability: its log has the derivative Y / Z at 0, which is p Y / Z,
the derivative by log p, over p. With a p of this size nothing that follows has a digit in Z.
"""
_SAME = 1e-12


def check_probabilities(name: str, array: Array) -> None:
    """Raises FactError for the first number that is no probability."""
    wrong = not_probable(array)
    if wrong is not None:
        raise FactError(f"{name}, at [{', '.join(map(str, wrong.place))}]: {wrong}")


def lifted(names: Sequence[str], arrays: Sequence[Array], order: int) -> list[Array] | None:
    """Probabilities with `SMALL` for 0; None where none is 0. Raises where derivatives of that order are not there."""
    zeros = [name for name, array in zip(names, arrays, strict=True) if (array <= 0).any()]
    if zeros and order > 1:
        raise NotDifferentiable(
            f"{zeros[0]} has a probability of 0, at which only first derivatives of a log are implemented, and one of "
            f"order {order} is asked for; ask for it in real, or leave the probability out"
        )
    return [np.where(array <= 0, SMALL, array) for array in arrays] if zeros else None


def check_lifted(goals: Sequence[str], at_zero: Array, lifted: Array) -> None:
    """Raises where goals have other values with `SMALL` for 0, so that derivatives are not those at 0."""
    for goal, right, found in zip(goals, at_zero.tolist(), lifted.tolist(), strict=True):
        lost = math.isinf(right)
        if right == found or (not lost and abs(right - found) <= _SAME * max(1.0, abs(right))):
            continue
        why = "is" if lost else "is too near to"
        raise NotDifferentiable(
            f"{cut(goal)} has no derivative by a probability of 0: its own weight {why} 0 without it, and so the log "
            "changes without bound; ask for it in real, or leave the probability out"
        )


# -- jets: the first axis is that of components ------------------------------------------------------------------------


def _product(a: Array, b: Array) -> Array:
    if len(a) == 1:
        return a * b
    half = len(a) // 2  # a + e b, where e is the last direction
    low, high = a[:half], b[:half]
    return np.concatenate([_product(low, high), _product(low, b[half:]) + _product(a[half:], high)])


def _reciprocal(a: Array) -> Array:
    if len(a) == 1:
        return 1.0 / a
    half = len(a) // 2
    inverse = _reciprocal(a[:half])
    return np.concatenate([inverse, -_product(a[half:], _product(inverse, inverse))])


def _log(a: Array) -> Array:
    if len(a) == 1:
        with np.errstate(divide="ignore"):
            return np.log(a)
    half = len(a) // 2
    return np.concatenate([_log(a[:half]), _product(a[half:], _reciprocal(a[:half]))])


def _jets(x: Mapping[int, Sequence[Array]], order: int) -> list[Array]:
    """The jets of all arguments, from their components by set of directions."""
    made = []
    for place, array in enumerate(x[0]):
        jet = np.zeros((1 << order, *array.shape))
        for mask, arrays in x.items():
            jet[mask] = arrays[place]
        made.append(jet)
    return made


def on_scale(x: Mapping[int, Sequence[Array]], order: int, sign: float) -> dict[int, Sequence[Array]]:
    """The components of the facts, which are logs with this sign, from those of the probabilities."""
    logs = [sign * _log(jet) + 0.0 for jet in _jets(x, order)]
    return {mask: [jet[mask] for jet in logs] for mask in range(1 << order)}


def slopes_of(x: Mapping[int, Sequence[Array]], order: int, sign: float) -> list[Array]:
    """The jets of the derivatives of the facts by the probabilities."""
    return [sign * _reciprocal(jet) for jet in _jets(x, order)]


def by_probabilities(rows: Array, slope: Array) -> Array:
    """The jets of a gradient by probabilities; `rows` is that by facts, with the components along its second axis."""
    jets = np.moveaxis(rows, 1, 0)
    return np.moveaxis(_product(jets, slope.reshape(jets.shape)), 0, 1)
