"""Arguments of functions that are probabilities: their jets on the semiring's scale, and derivatives by them.

A jet of order K has a component for each set of K directions, whose products are those of nilpotent numbers
(`jets.py`). So the log of a jet is a jet, with components that the argument has not; and the gradient by the
probability is the jet of that by the log, times the jet of the log's derivative.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ...errors import FactError, NotDifferentiable
from ...semirings import ROUNDING

Array = npt.NDArray[np.float64]


def check_probabilities(name: str, array: Array) -> None:
    """Raises FactError for the first number that is no probability."""
    wrong = (array < 0) | (array > 1 + ROUNDING)
    if wrong.any():
        at = np.argwhere(wrong)[0]
        place = ", ".join(str(int(i)) for i in at)
        number = float(array[tuple(at)])
        raise FactError(f"{name}, at [{place}]: {number} is not a probability, which is a number from 0 to 1")


def check_positive(names: Sequence[str], arrays: Sequence[Array]) -> None:
    """Raises where a log has no derivative."""
    for name, array in zip(names, arrays, strict=True):
        if (array <= 0).any():
            raise NotDifferentiable(
                f"{name} has a probability of 0, and its log has no derivative; ask for it in real, or leave it out"
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
