"""Views of arrays made by functions of numpy: where the result is one, and its lens onto the array.

Whether `reshape` and `ravel` return a view depends on the memory layout of an array. It is decided by calling numpy on
an array of bytes with that layout. Where the layout is not known, both memory orders are tried; a view on which they
disagree can be read, but not written to. Views made by indexing are in `compiler/evaluate/arrays.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...eager.numpy.linalg import rearranged
from ...ir import Node
from ..evaluate.arrays import holds_node
from ..evaluate.values import Array, List, type_of, unwrapped, wrapped

Evaluate = Callable[[Any, list[Any], dict[str, Any]], Any]
Inverse = tuple[Any, list[Any]]
"""The inverse of a view: a function of numpy, and its arguments after the first."""


def _permuted(shape: tuple[int, ...], axes: Any = None) -> Inverse:
    return np.transpose, [None if axes is None else tuple(np.argsort([a % len(shape) for a in axes]).tolist())]


def _reshaped(shape: tuple[int, ...], *_: Any, order: str = "C", **__: Any) -> Inverse | None:
    return (np.reshape, [shape]) if order == "C" else None


VIEWS: dict[Any, Callable[..., Inverse | None]] = {
    np.transpose: _permuted,
    np.swapaxes: lambda shape, axis1, axis2: (np.swapaxes, [axis1, axis2]),
    np.moveaxis: lambda shape, source, destination: (np.moveaxis, [destination, source]),
    np.flip: lambda shape, axis=None: (np.flip, [axis]),
    np.fliplr: lambda shape: (np.fliplr, []),
    np.flipud: lambda shape: (np.flipud, []),
    np.rot90: lambda shape, k=1, axes=(0, 1): (np.rot90, [-k, axes]),
    np.diagonal: lambda *_, **__: None,  # read-only in numpy too
    np.broadcast_to: lambda *_, **__: None,
} | dict.fromkeys(
    (np.reshape, np.ravel, np.expand_dims, np.squeeze, np.atleast_1d, np.atleast_2d, np.atleast_3d), _reshaped
)
"""Functions of numpy that return views, and the inverse of each; None where the view is read-only."""


def view(
    function: Any, x: Array, rest: list[Any], options: dict[str, Any], evaluate: Evaluate, always: bool = False
) -> Array | None:
    """The result of a function as a view of its argument; None where numpy makes a copy."""

    def get(content: Any) -> Any:
        return evaluate(function, [content, *rest], options)

    shared = {True} if always or holds_node((rest, options)) else set(_shares_memory(x, get))
    if shared == {False}:
        return None
    t = type_of(x)
    assert t is not None
    way = VIEWS[function](t.shape, *rest, **options) if shared == {True} else None

    def put(content: Any, new: Any) -> Any:
        assert way is not None
        return evaluate(way[0], [new, *way[1]], {})

    return Array(None, x.owner, x, get, None, None if way is None else put)


def einsum_view(arguments: Sequence[Any], options: dict[str, Any], evaluate: Evaluate) -> Array | None:
    """The result of an `einsum` that only permutes axes or takes diagonals of one array, as a view, read-only for
    diagonals; None for others."""
    at = [i for i, x in enumerate(arguments) if isinstance(x, Array)]
    given = [unwrapped(x) for x in arguments]
    one = rearranged(given) if len(at) == 1 else None
    if one is None:
        return None
    x, (_, names, output) = arguments[at[0]], one

    def put(content: Any, new: Any) -> Any:
        return evaluate(np.einsum, [f"{output}->{names}", new], options)

    return Array(
        None,
        x.owner,
        x,
        lambda content: evaluate(np.einsum, [f"{names}->{output}", content], options),
        None,
        put if len(set(names)) == len(names) else None,
    )


def meshgrid_views(arguments: Sequence[Any], found: Sequence[Any], evaluate: Evaluate, options: dict[str, Any]) -> Any:
    """The results of `meshgrid` with copy=False: read-only views of the arrays."""
    given = [unwrapped(x) for x in arguments]

    def one(i: int) -> Any:
        def get(content: Any) -> Any:
            return evaluate(np.meshgrid, [*given[:i], content, *given[i + 1 :]], options)[i]

        x = arguments[i]
        return Array(None, x.owner, x, get) if isinstance(x, Array) else wrapped(found[i])

    made = tuple(map(one, range(len(found))))
    return List(made) if isinstance(found, list) else made


def _shares_memory(x: Array, get: Callable[[Any], Any]) -> Iterator[bool]:
    """Whether a function returns a view of an array, for each memory layout that the array may have."""
    for given in _memory_layouts(x):
        yield not given.size or bool(np.may_share_memory(get(given), given))


def _memory_layouts(x: Array) -> Iterator[np.ndarray[Any, Any]]:
    """Arrays of bytes with the memory layouts that an array may have."""
    steps: list[Array] = []
    while x.base is not None:
        steps.append(x)
        x = x.base
    t = type_of(x)
    assert t is not None
    orders: Sequence[Any] = "C" if x.contiguous or t.ndim < 2 else "CF"
    for order in orders:
        found = np.empty(t.shape, np.int8, order)
        for step in reversed(steps):
            found = step.get(found) if step.index is None else found[_with_static_indices(step.index)]
        yield found


def _with_static_indices(index: Any) -> Any:
    """An index with 0 for dynamic indices, which do not affect the layout."""
    if isinstance(index, tuple):
        return tuple(map(_with_static_indices, index))
    return 0 if isinstance(index, Node) else index
