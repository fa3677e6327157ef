"""Directions of facts and items with cotangents, read from the forms in which users give them.

A direction has a number for each fact; here it becomes an array of doubles in the order of the facts that were given.
Nothing is run or differentiated here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import FactError, QueryError, counted, cut, shown
from ...facts.relation import Relation, concatenate, fact_text, places_of, row_numbers
from ...facts.values import is_masked, plain
from ..binding.context import read_facts
from ..binding.loading import Prepared
from ..lookup import check_known
from ..replay import Replay

Array = npt.NDArray[np.float64]


def read_directions(replay: Replay, prepared: Prepared, direction: Any) -> dict[str, Array]:
    """A direction of the facts of several predicates: for each of these, a row of numbers for each gathered fact."""
    if not isinstance(direction, Mapping):
        raise FactError(
            f'a direction has numbers by predicate, as {{"rewrite/3": [...]}}, and {shown(direction)} has none'
        )
    given = {}
    for key, rows in direction.items():
        if not isinstance(key, str):
            raise QueryError(f'{shown(key)} is not a predicate; write it with its arity, such as "rewrite/3"')
        check_known(replay.facts.context, prepared, key)
        given[key] = replay.facts.for_all(key, read_direction(replay, key, rows))
    return given


def read_direction(replay: Replay, key: str, rows: Any) -> Array:
    """A direction of a predicate's facts: a row of numbers for each fact that was given."""
    own, scale = replay.facts.own(key), replay.scale
    if own is None:
        raise QueryError(f"there are no facts of {key}, so there is no direction for them")
    width = scale.width
    if isinstance(rows, np.ndarray) and not (is_masked(rows) or isinstance(rows, np.matrix)):
        rows = plain(rows)
    numbers = _plain_numbers(rows, own, width)
    if numbers is not None:
        if not np.isfinite(numbers).all():
            row = int((~np.isfinite(numbers)).any(axis=1).argmax())
            raise FactError(f"the direction of {key}, row {row + 1}, is NaN or infinite")
        return numbers
    if isinstance(rows, np.ndarray):
        bare = rows.dtype.names is None  # a record array has rows
    else:
        bare = isinstance(rows, list) and bool(rows)  # an empty list has no rows
    if bare and len(rows) != own.count and all(isinstance(x, int | float | np.number) for x in rows):
        there = f"there {'is' if own.count == 1 else 'are'} {counted(own.count, 'fact')}"
        raise FactError(f"the direction of {key} has {counted(len(rows), 'number')}, and {there}")
    relation = read_facts(replay.facts.context, {key: rows}, False, bare=True, strict=True)[key]
    if not relation.count:
        return np.zeros((own.count, width))
    if relation.values is None:
        raise FactError(f"the direction of {key} has no numbers")
    together = concatenate(replace(own, values=None), replace(relation, values=None), scale.one)
    codes = row_numbers(together)
    rows_of = places_of(codes[: own.count], codes[own.count :])
    strange = rows_of < 0
    given = relation.values.reshape(relation.count, -1)
    wrong = strange | ~np.isfinite(given).all(axis=1)
    if wrong.any():
        n = int(wrong.argmax())
        text = cut(fact_text(relation, n))
        if strange[n]:
            raise FactError(f"the direction has {text}, which is not a fact of this chart, or too often")
        raise FactError(f"the direction of {text} is infinite")
    out = np.zeros((own.count, width))
    out[rows_of] = given
    return out


def _plain_numbers(rows: Any, own: Relation, width: int) -> Array | None:
    """An array with one number, or `width`, for each fact, in their order or in the shape of their dense array; None
    for anything else."""
    try:
        numbers = np.asarray(rows)
    except Exception:  # the reader of facts says what is wrong with it
        return None
    more = (width,) if width > 1 else ()
    shapes = [(own.count, *more)] if own.dense_shape is None else [(own.count, *more), (*own.dense_shape, *more)]
    tuples = width == 1 and isinstance(rows, list) and any(isinstance(row, tuple) for row in rows)  # rows of facts
    if tuples or numbers.dtype.kind not in "fiub" or numbers.shape not in shapes or is_masked(rows):
        return None
    return numbers.astype(np.float64).reshape(own.count, width)


def read_weighted(item: Any) -> list[tuple[Any, Any]]:
    """Pairs of items and cotangents, from an item or a mapping."""
    if isinstance(item, Mapping) and not item:
        raise QueryError('the mapping has no items; a gradient is of at least one, such as {"goal": 1.0}')
    return list(item.items()) if isinstance(item, Mapping) else [(item, 1.0)]


def read_cotangent(item: Any, value: Any) -> float:
    """The cotangent of an item, as a finite float."""
    if isinstance(value, np.ndarray) and value.shape == ():
        value = value[()]
    try:
        number = float(value) if isinstance(value, int | float | np.floating | np.integer) else math.nan
    except OverflowError:  # of a whole number
        number = math.nan
    if not math.isfinite(number):
        raise QueryError(f"the cotangent of {shown(item)} must be a finite number, not {shown(value)}")
    return number
