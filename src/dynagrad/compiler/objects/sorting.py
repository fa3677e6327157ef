"""`sorted` and `list.sort` while a function is specialised.

With static keys the order is static. With dynamic keys the graph computes it with `argsort`, and each number of an item
is gathered by it, so the items must have one structure.

`np.sort` and `np.argsort` are functions of numpy like others.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import Error
from ...ir import Node
from ..evaluate.arrays import at_index, holds_node, stacked
from ..evaluate.iteration import items
from ..evaluate.joins import AbstractValue, Dynamic, Mismatch, abstract, build, flatten, join
from ..evaluate.specialiser import Args, Named, Specialiser, calls
from ..evaluate.values import Array, List, describe, node_of, type_of, unwrapped, wrapped
from ..numpy.calls import numpy_call
from .containers import METHODS


@calls(sorted, knows="key reverse")
def _sorted(s: Specialiser, args: Args, named: Named) -> Any:
    return List(ordered(s, items(s, args[0]), **named))


def _sort(s: Specialiser, x: List, **named: Any) -> None:
    s.write(x, ordered(s, x.content, **named))


METHODS[List, "sort"] = _sort


def ordered(s: Specialiser, inside: Sequence[Any], key: Any = None, reverse: Any = False) -> tuple[Any, ...]:
    """Items sorted by their keys; the sort is stable."""
    keys = [unwrapped(x if key is None else s.call(key, [x])) for x in inside]
    if not isinstance(reverse, bool | int):
        raise Error("reverse= of sorted() must be known when the function is compiled")
    known = _static_keys(keys)
    if known is not None:
        places = sorted(range(len(keys)), key=lambda i: known[i], reverse=bool(reverse))
        return tuple(inside[i] for i in places)
    if len(inside) < 2:
        return tuple(inside)
    order = _argsort(s, keys[::-1] if reverse else keys)
    found = _permuted(s, inside[::-1] if reverse else inside, order)
    return found[::-1] if reverse else found


def _static_keys(keys: list[Any]) -> list[Any] | None:
    """Static keys that decide the order: the keys, or of tuples their static prefixes, if no two are equal."""
    if not any(map(holds_node, keys)):
        return keys
    if not all(isinstance(k, tuple) for k in keys) and not all(isinstance(k, list) for k in keys):
        return None
    known = min(next((i for i, part in enumerate(k) if holds_node(part)), len(k)) for k in keys)
    first = [k[:known] for k in keys]
    if any(isinstance(part, np.ndarray) for k in first for part in k):
        return None
    return None if any(a == b for a, b in itertools.combinations(first, 2)) else first


def _argsort(s: Specialiser, keys: Sequence[Any]) -> Any:
    """The permutation that sorts dynamic keys; tuples are sorted by their last part first, stably."""
    widths = {len(k) if isinstance(k, tuple) else None for k in keys}
    columns = list(zip(*keys, strict=True)) if widths != {None} and len(widths) == 1 else [keys]
    order: Any = None
    for column in reversed(columns):
        if any(t is None or t.shape for t in map(type_of, column)):
            raise Error(
                "sorted() with keys that are known only as the function runs takes keys that are numbers, or tuples of "
                f"numbers of one length, and not {describe(column[0])}"
            )
        values = wrapped(stacked(column))
        if order is None:
            order = numpy_call(s, np.argsort, [values], {"kind": "stable"})
        else:
            then = numpy_call(s, np.argsort, [_at(s, values, order)], {"kind": "stable"})
            order = _at(s, order, then)
    return order


def _at(s: Specialiser, x: Array, places: Any) -> Any:

    return at_index(s, x, places)


def _permuted(s: Specialiser, inside: Sequence[Any], order: Any) -> tuple[Any, ...]:
    """Items in the order of a dynamic permutation."""
    form: AbstractValue = abstract(inside[0], deep=True)
    try:
        for x in inside[1:]:
            form = join(form, abstract(x, deep=True))
    except Mismatch as problem:
        raise Error(
            f"sorted() orders these items as the function runs, so all must have one structure; there are {problem.a} "
            f"and {problem.b}"
        ) from None
    if isinstance(form, Dynamic) and not form.type.shape:
        form = Dynamic(form.type, False)
    rows = [list(flatten(x, form)) for x in inside]
    columns: list[Any] = [wrapped(stacked(column)) for column in zip(*rows, strict=True)]
    found = []
    for i in range(len(inside)):
        place = _at(s, order, i)
        nodes: list[Node] = [node_of(_at(s, column, place)) for column in columns]
        found.append(build(form, iter(nodes)))
    return tuple(found)
