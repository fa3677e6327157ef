"""numpy's functions that write to their first argument, and those whose results are views of it, on mutable arrays.

This file finds which value goes to which element; `arrays.py` writes it.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import Error
from ...ir.ops import arrays
from ..kinds import plain, shape_of
from ..numbers import Number, lift
from ..numpy.functions import FUNCTIONS, item_of
from ..perturbations import place


def _named(*names: str) -> frozenset[Any]:
    """The functions of numpy with these names, as far as this version has them."""
    found = []
    for name in names:
        with contextlib.suppress(AttributeError):
            found.append(operator.attrgetter(name)(np))
    return frozenset(found)


SPLITS = _named("split", "array_split", "hsplit", "vsplit", "dsplit", "unstack")
ONE_BY_ONE = _named("atleast_1d", "atleast_2d", "atleast_3d")
"""Functions of several arrays whose results are views of each."""
VIEWS = (
    SPLITS
    | ONE_BY_ONE
    | _named(
        *("reshape", "ravel", "transpose", "permute_dims", "swapaxes", "moveaxis", "rollaxis", "squeeze"),
        *("expand_dims", "flip", "fliplr", "flipud", "rot90", "diagonal", "matrix_transpose", "real", "real_if_close"),
        *("broadcast_to", "ascontiguousarray", "asfortranarray", "asarray", "asanyarray"),
        *("diag", "linalg.diagonal", "linalg.matrix_transpose", "lib.stride_tricks.sliding_window_view"),
    )
)
"""Functions whose results are views of their first argument, or copies where numpy copies."""


def pieces(x: Any, function: Any, rest: Sequence[Any], options: dict[str, Any]) -> list[Any]:
    """The views that a function such as `np.split` makes of a mutable array."""
    count = len(function(np.empty(shape_of(x)), *rest, **options))

    def piece(i: int) -> Callable[[Any], Any]:
        return lambda whole: function(whole, *rest, **options)[i]

    return [x.viewed(piece(i)) for i in range(count)]


def _writing(function: Any, value_at: int, value_name: str) -> Callable[..., None]:
    """The version for mutable arrays of a function that writes values: numpy's is run on numbered values to see where
    each of them goes."""

    def write(x: Any, *arguments: Any, **options: Any) -> None:
        positional, named = list(arguments), dict(options)
        values = plain(positional[value_at] if len(positional) > value_at else named.get(value_name))
        shape = shape_of(values)
        numbered = np.arange(1, int(np.prod(shape, dtype=np.int64)) + 1).reshape(shape)
        if len(positional) > value_at:
            positional[value_at] = numbered
        else:
            named[value_name] = numbered
        order = np.zeros(shape_of(x), dtype=np.int64)
        function(order, *positional, **named)
        at = order != 0
        if at.any():
            x[at] = item_of(FUNCTIONS[np.ravel](values), order[at] - 1) if shape else values

    return write


WRITES: dict[Any, Callable[..., None]] = {
    function: _writing(function, value_at, value_name)
    for function, value_at, value_name in (
        (np.copyto, 0, "src"),
        (np.fill_diagonal, 0, "val"),
        (np.place, 1, "vals"),
        (np.put, 1, "v"),
        (np.put_along_axis, 1, "values"),
        (np.putmask, 1, "values"),
    )
}
"""The versions for mutable arrays, with the position and name of the values among the arguments after the array."""


def into(name: str, out: Any, found: Any) -> Any:
    """`out=`: writes results to mutable arrays."""
    outs = out if isinstance(out, tuple) else (out,)
    founds = found if isinstance(found, tuple) else (found,)
    for target, y in zip(outs, founds, strict=True):
        if target is not None:
            if isinstance(y, Number) and not isinstance(target, Number):
                raise Error(
                    f"{name}: out= is a plain array, which cannot hold derivatives; make it with dynagrad.numpy, or "
                    f"assign the result instead{place()}"
                )
            target[...] = y
    made = tuple(y if target is None else target for target, y in zip(outs, founds, strict=True))
    return made if isinstance(out, tuple) and len(made) > 1 else made[0]


def rounds(places: Any) -> list[Any]:
    """Splits indices into rounds without duplicates: the positions of first occurrences, of second ones, and so on.

    >>> rounds(np.array([5, 2, 5, 5]))
    [array([0, 1]), array([2]), array([3])]
    """
    if not len(places):
        return []
    order = np.argsort(places, kind="stable")
    first = np.concatenate([[0], np.flatnonzero(np.diff(places[order])) + 1])
    turn = np.empty(len(places), np.intp)
    turn[order] = np.arange(len(places)) - np.repeat(first, np.diff(np.append(first, len(places))))
    return np.split(np.argsort(turn, kind="stable"), np.cumsum(np.bincount(turn))[:-1])


def each(ufunc: Any, x: Any, index: Any, *others: Any) -> None:
    """`ufunc.at`: an element that is indexed twice is changed twice."""
    if isinstance(x, np.ndarray):
        raise Error(
            f"np.{ufunc.__name__}.at writes to a plain array, which cannot hold derivatives; make the array with "
            f"dynagrad.numpy{place()}"
        )
    others = tuple(map(plain, others))
    places = np.arange(int(np.prod(shape_of(x), dtype=np.int64))).reshape(shape_of(x))[index]
    shape, flat = places.shape, places.ravel()
    if others and shape_of(others[0]) != shape:
        others = (FUNCTIONS[np.broadcast_to](others[0], shape), *others[1:])
    by = [FUNCTIONS[np.ravel](y) if shape else FUNCTIONS[np.reshape](y, (1,)) for y in others]
    now = FUNCTIONS[np.ravel](x.settled())
    if ufunc in (np.add, np.subtract):
        added = lift(arrays.place((flat,), shape_of(now)), by)
        found = now + added if ufunc is np.add else now - added
    else:
        found = x.copy().ravel()
        for some in rounds(flat):
            found[flat[some]] = ufunc(found[flat[some]], *(y[some] for y in by))
    x[...] = FUNCTIONS[np.reshape](plain(found), shape_of(x))
