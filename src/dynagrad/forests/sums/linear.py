"""Linear systems x = right + M x of what goes around a cycle, with M sparse.

Which systems there are is for `expectations.py` and `totals.py`. Those of charts are solved in C++
(`solving/linear.hpp`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import Error, RoomError, counted
from ...runtime.library import Stop
from ..algebra import Doubles
from ..time_limit import look

FEW, MOST_SWEEPS = 300, 10_000
"""Up to how many unknowns a system is solved at once, and how many terms of its sum are added up of more."""
MOST_UNKNOWNS = 3_000
"""The most unknowns that are solved at once where that sum takes more terms."""


def linear_solution(
    right: Doubles, to: npt.NDArray[Any], source: npt.NDArray[Any], weights: Doubles, stop: Stop | None
) -> Doubles | None:
    """The solution, where M has these weights at these places; None where none is found.

    Of many unknowns it is summed up term by term, which takes the longer the less goes around the cycle is lost.
    """
    n = len(right)
    if n > FEW:
        x = right
        for _ in range(MOST_SWEEPS):
            look(stop)
            with np.errstate(over="ignore", invalid="ignore"):
                following = right + np.bincount(to, weights * x[source], n)
                apart = float(np.abs(following - x).max())
            x = following
            if apart <= 1e-16 * float(np.abs(x).max()):
                return x
            if not math.isfinite(apart):
                return None
    if n > MOST_UNKNOWNS:
        return None
    matrix = np.eye(n)
    np.subtract.at(matrix, (to, source), weights)
    try:
        found: Doubles = np.asarray(np.linalg.solve(matrix, right), np.float64)
    except np.linalg.LinAlgError:
        return None
    return found if np.isfinite(found).all() else None


def not_solved(item: str, n: int) -> Error:
    return RoomError(
        f"a cycle through {item} goes through {counted(n, 'item')}, and so little is lost around it that "
        "expectations cannot be "
        "summed up; ask for an item that fewer derive"
    )
