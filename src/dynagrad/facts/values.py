"""The values of facts: numbers of any type and library, checked, one for each row.

A `ValueShape` is the form of a value, and a name in `FORBIDDEN` stands for the values that are not allowed. Those of
each semiring are in `semirings.py`. Arguments are checked by `columns.py`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from ..errors import FactError, Place, counted, raised, shown
from .relation import Array, ValueShape

MISSING = "nothing is there; leave rows with missing entries out"


# -- arrays ----------------------------------------------------------------------------------------------------------


def is_array(value: object) -> bool:
    """Whether a value, other than a list, can be converted to a numpy array."""
    return not isinstance(value, type | np.generic) and any(
        hasattr(value, name) for name in ("__array__", "__array_interface__", "__dlpack__")
    )


def as_array(place: Place, value: Any) -> Array:
    """A plain numpy array: subclasses such as `np.matrix` have indexing rules of their own."""
    if isinstance(value, np.ndarray):
        if is_masked(value):
            raise place.error("the array has masked entries; leave those rows out")
        return plain(value)
    try:
        if hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
            return np.asarray(value)
        return np.from_dlpack(value)
    except Exception as error:  # other libraries' arrays may raise anything: on another device, needing a gradient
        raise place.error(f"the {type(value).__name__} could not be read as an array: {raised(error)}") from error


def plain(value: Array) -> Array:
    """An array of any subclass as a plain `np.ndarray`, without its mask."""
    return value if type(value) is np.ndarray else np.ndarray.view(value, np.ndarray)


def check_matrix(place: Place, value: Any, dimensions: int) -> None:
    """Raises for a `np.matrix`, which always has two dimensions, where another number is needed."""
    if isinstance(value, np.matrix) and dimensions != 2:
        raise place.error(
            "a np.matrix has two dimensions, and so has each row and column of it; write np.asarray(x), or "
            "np.asarray(x).ravel() for one dimension"
        )


def _masks() -> bool:
    """Whether there can be masks: numpy imports what they are of when it is first asked for, which takes a while."""
    return "numpy.ma" in sys.modules


def is_missing(value: Any) -> bool:
    """Whether a value is the masked entry of an array."""
    return _masks() and value is np.ma.masked


def is_masked(value: Any) -> bool:
    """Whether an array has a masked entry, or a record array a masked field."""
    if not _masks():
        return False
    mask = np.ma.getmask(value)
    if mask is np.ma.nomask:
        return False
    if mask.dtype.names is not None:
        mask = np.ascontiguousarray(mask).view(np.bool_)
    return bool(mask.any())


# -- values ----------------------------------------------------------------------------------------------------------

FORBIDDEN: dict[str, tuple[Callable[[Array], Array], str]] = {
    "finite": (lambda a: ~np.isfinite(a), "values here are finite numbers"),
    "no_nan": (np.isnan, "values here are numbers"),
    "no_nan_no_posinf": (lambda a: np.isnan(a) | (a == np.inf), "values here are numbers or -inf"),
    "no_nan_no_neginf": (lambda a: np.isnan(a) | (a == -np.inf), "values here are numbers or inf"),
}
"""By the name of a restriction: the test for forbidden values, and the message for them."""


def has_width(value_shape: ValueShape) -> bool:
    """Whether a value is several numbers."""
    return value_shape == "expectation" or isinstance(value_shape, tuple)


def read_values(place: Place, count: int, raw: Any, value_shape: ValueShape, finite: str) -> Array | None:
    """Values of facts as an array; None if all are True, which says nothing beyond the facts themselves."""
    if is_array(raw):
        check_matrix(place, raw, 1 + has_width(value_shape))
        raw = as_array(place, raw)
        if raw.ndim == 0:
            raise place.error(f"one value was given for {counted(count, 'row')}; give one value for each")
    if len(raw) != count:
        were = "value was" if len(raw) == 1 else "values were"
        raise place.error(f"{len(raw)} {were} given for {counted(count, 'row')}; give one value for each")
    if not count:
        raw = []  # an empty column may have any type
    elif value_shape != "boolean" and _all_true(raw):
        return None
    kind = value_shape if isinstance(value_shape, str) else value_shape[0]
    width = value_shape[1] if isinstance(value_shape, tuple) else None
    values = _READERS[kind](place, raw, width)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        bad, allowed = FORBIDDEN[finite]
        wrong = bad(values)
        if wrong.any():
            at = np.argwhere(wrong)[0]
            raise place.error(f"{values[tuple(at)]} is not possible; {allowed}", int(at[0]), place.arity)
    return values


def _all_true(raw: Any) -> bool:
    if isinstance(raw, np.ndarray):
        return raw.dtype.kind == "b" and bool(raw.all())
    return set(map(type, raw)) <= {bool, np.bool_} and all(raw)


def _number(value: Any) -> float:
    """A float from a number of any type. Raises `FactError` for anything else."""
    if isinstance(value, bool | np.bool_):
        raise FactError(
            f"{value} is not a number"
            + ("" if value else "; leave out facts that do not hold, or give 0.0 as the value")
        )
    if value is None or is_missing(value):
        raise FactError(MISSING)
    if isinstance(value, str | bytes | complex | list | tuple) or not hasattr(value, "__float__"):
        raise FactError(
            f"the value {shown(value)} is not a number; the last column of a table is its value, unless the key "
            "counts it as an argument: with rewrite/3 there are three"
        )
    try:
        return float(value)
    except OverflowError:
        raise FactError(f"the value {shown(value)} is beyond the range of floats") from None
    except Exception as error:
        raise FactError(f"the value {shown(value)} is not a number: {raised(error)}") from None


def _each(place: Place, raw: Iterable[Any], check: Callable[[Any], Any]) -> Iterator[Any]:
    for row, value in enumerate(raw):
        yield place.checked(row, place.arity, value, check)


def _one_each(place: Place, raw: Array, what: str = "number") -> None:
    if raw.ndim != 1:
        raise place.error(f"the array of values has shape {raw.shape}; one {what} per row is needed")


def _read_floats(place: Place, raw: Any, _: int | None) -> Array:
    if isinstance(raw, np.ndarray):
        _one_each(place, raw)
        if raw.dtype.kind in "fiu":
            return raw.astype(np.float64)
        raw = raw.tolist()
    if set(map(type, raw)) <= {int, float}:
        try:
            return np.array(raw, np.float64)
        except OverflowError:
            pass  # read one by one below, with errors that name the row
    return np.fromiter(_each(place, raw, _number), np.float64, len(raw))


def _whole(value: Any) -> int:
    if not isinstance(value, int | np.integer) or isinstance(value, bool | np.bool_):
        number = _number(value)
        if number != math.floor(number) if math.isfinite(number) else True:
            raise FactError(f"the value {shown(value)} is not a whole number, and counts are")
        if abs(number) > 2**53:
            raise FactError(f"the value {shown(value)} is a float too large to be exact; give an int")
    return int(value)


LARGEST_COUNT = 2**128 - 2
"""The largest number of derivations that is told from more."""


def _read_counts(place: Place, raw: Any, width: int | None) -> Array:
    values = _whole_numbers(place, raw)
    wrong = (values < 0) | (values > LARGEST_COUNT) if values.dtype == object else values < 0
    if wrong.any():
        row = int(wrong.argmax())
        message = f"{shown(int(values[row]))} is no count, which is a whole number from 0 to 2**128 - 2"
        raise place.error(message, row, place.arity)
    return values


def _whole_numbers(place: Place, raw: Any) -> Array:
    if isinstance(raw, np.ndarray):
        _one_each(place, raw)
        if raw.dtype.kind == "i" or (raw.dtype.kind == "u" and (not len(raw) or raw.max() < 2**63)):
            return raw.astype(np.int64)
        raw = raw.tolist()
    numbers = raw if set(map(type, raw)) <= {int} else list(_each(place, raw, _whole))
    try:
        return np.array(numbers, np.int64)
    except OverflowError:
        return np.array(numbers, object)


def _truth(value: Any) -> bool:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    number = _number(value)
    if number not in (0.0, 1.0):
        raise FactError(f"the value {shown(value)} is neither true nor false; give True, False, 1 or 0, or no value")
    return number == 1.0


def _read_truths(place: Place, raw: Any, _: int | None) -> Array:
    if isinstance(raw, np.ndarray):
        _one_each(place, raw, "value")
        if raw.dtype.kind == "b":
            return raw.copy()
        raw = raw.tolist()
    return np.fromiter(_each(place, raw, _truth), np.bool_, len(raw))


def _parts(value: Any) -> list[float]:
    """The numbers of a vector, with nested tuples and arrays flattened."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, list | tuple):
        raise FactError(f"the value {shown(value)} is not a tuple of numbers, as values are here")
    numbers: list[float] = []
    for part in value:
        if is_masked(part):
            raise FactError(f"the value {shown(value)} has masked entries")
        if is_array(part) and getattr(part, "ndim", False):
            part = np.asarray(part).tolist()
        numbers.extend(map(_number, part) if isinstance(part, list | tuple) else (_number(part),))
    return numbers


def _pair(value: Any) -> list[float]:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise FactError(
            f"the value {shown(value)} is not a pair (p, r), as values are here, with r a number or a tuple of numbers"
        )
    return _parts(value)


def _read_vectors(
    place: Place, raw: Any, width: int | None, read_one: Callable[[Any], list[float]] = _parts, at_least: int = 1
) -> Array:
    if isinstance(raw, np.ndarray) and raw.dtype.kind in "fiu":
        if raw.ndim != 2:
            raise place.error(f"the array of values has shape {raw.shape}; a row of numbers for each fact is needed")
        values = raw.astype(np.float64)
    else:
        rows = list(_each(place, raw, read_one))
        expected = width if width is not None else len(rows[0]) if rows else at_least
        for row, numbers in enumerate(rows):
            if len(numbers) != expected:
                raise place.error(
                    f"the value has {counted(len(numbers), 'number')}, and should have {expected}", row, place.arity
                )
        values = np.array(rows, np.float64).reshape(len(rows), expected)
    if (width is not None and values.shape[1] != width) or values.shape[1] < at_least:
        raise place.error(f"values have {counted(values.shape[1], 'number')}, and should have {width or at_least}")
    return values


def _read_pairs(place: Place, raw: Any, width: int | None) -> Array:
    return _read_vectors(place, raw, width, _pair, 2)


_READERS: dict[str, Callable[[Place, Any, int | None], Array]] = {
    "float": _read_floats,
    "count": _read_counts,
    "boolean": _read_truths,
    "vector": _read_vectors,
    "expectation": _read_pairs,
}
