"""From raw columns to a relation: each column of arguments is checked, and gets the type of its entries.

Errors name the place of the entry. Forms of tables are not known here (`readers.py`, `files.py`), nor the types that
columns of several predicates share (`charts/binding/encoding.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import FactError, Place, counted
from .relation import (
    Array,
    AtomColumn,
    Column,
    IntColumn,
    Relation,
    TermColumn,
    ValueShape,
    atom_column,
    dense_codes,
    encode,
)
from .terms import INTEGER_MAX, INTEGER_MIN, Term, atom, canonical
from .values import read_values


@dataclass(frozen=True, slots=True)
class Raw:
    """The columns of a table, not yet checked: lists, arrays, or finished columns.

    `from_array` says that a column of floats may be one of integers that an array converted. `names` are the names of
    the columns, that of the values last, if the table had any.
    """

    count: int
    columns: Sequence[Any]
    values: Any | None
    dense_shape: tuple[int, ...] | None = None
    from_array: bool = False
    names: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Coded:
    """Dictionary-encoded texts: codes into `names`, which may repeat or not occur, unless `settled`."""

    codes: Array
    names: list[Any]
    settled: bool = False


def finish(
    place: Place,
    raw: Raw,
    *,
    value_shape: ValueShape = "float",
    finite: str = "finite",
    float_columns: Collection[int] = (),
) -> Relation:
    """The relation of a raw table, checked."""
    columns = tuple(
        _column(place, index, column, raw.from_array and index not in float_columns)
        for index, column in enumerate(raw.columns)
    )
    for index, column in enumerate(columns):
        if len(column) != raw.count:
            raise place.error(
                f"{counted(len(column), 'entry', 'entries')}, but {counted(raw.count, 'row')} expected", None, index
            )
    given = raw.values
    if isinstance(given, Coded):  # texts are no values; `read_values` says so
        given = [given.names[code] for code in given.codes.tolist()]
    values = None if given is None else read_values(place, raw.count, given, value_shape, finite)
    return Relation(place.key, raw.count, columns, values, value_shape, raw.dense_shape, raw.names)


# -- columns of arguments --------------------------------------------------------------------------------------------


def _column(place: Place, index: int, raw: Any, refuse_whole_floats: bool) -> Column:
    if isinstance(raw, IntColumn | AtomColumn | TermColumn):
        return raw
    if isinstance(raw, Coded):
        return _coded_column(place, index, raw)
    if isinstance(raw, np.ndarray):
        if raw.ndim != 1:
            raise place.error(f"an argument holds arrays of shape {raw.shape[1:]}", None, index)
        if raw.dtype.kind in "iu":
            return _int_column(place, index, raw)
        if refuse_whole_floats and raw.dtype.kind == "f" and len(raw):
            whole = raw == np.floor(raw)
            if whole.all() and np.isfinite(raw).all():
                raise place.error(
                    f"{raw[0]} is a float, and 1.0 is not 1; convert the column with .astype(int), or declare the "
                    "argument's type as float if floats are meant",
                    0,
                    index,
                )
        raw = raw.tolist()
    return _list_column(place, index, raw)


def _int_column(place: Place, index: int, numbers: Array) -> IntColumn:
    if len(numbers) and (numbers.min() < INTEGER_MIN or numbers.max() > INTEGER_MAX):
        row = int(((numbers < INTEGER_MIN) | (numbers > INTEGER_MAX)).argmax())
        place.checked(row, index, int(numbers[row]), atom)
    return IntColumn(numbers.astype(np.int64))  # a copy: the caller may change the array later


_PLAIN_ATOMS = frozenset({int, str, float})


def _list_column(place: Place, index: int, column: Sequence[Any]) -> Column:
    kinds = set(map(type, column))
    if not kinds <= _PLAIN_ATOMS:
        if any(issubclass(kind, list | tuple | Term) for kind in kinds):
            return TermColumn([place.checked(row, index, v, canonical) for row, v in enumerate(column)])
        column = [place.checked(row, index, value, atom) for row, value in enumerate(column)]
        kinds = set(map(type, column))
    if kinds == {int}:
        try:
            numbers = np.array(column, np.int64)
        except OverflowError:
            numbers = np.array([min(max(v, -(2**63)), 2**63 - 1) for v in column], np.int64)
            row = int(((numbers < INTEGER_MIN) | (numbers > INTEGER_MAX)).argmax())
            place.checked(row, index, column[row], atom)
        return _int_column(place, index, numbers)
    if float not in kinds:
        return _atom_column(place, index, column)
    for row, value in enumerate(column):
        place.checked(row, index, value, atom)
    return atom_column(column)


def _atom_column(place: Place, index: int, column: Sequence[Any]) -> AtomColumn:
    """A column of strings, perhaps with integers."""
    codes, distinct = encode(column)
    _check_atoms(place, index, codes, distinct)
    return AtomColumn(codes, distinct)


def _check_atoms(place: Place, index: int, codes: Array, atoms: Sequence[Any]) -> None:
    if set(map(type, atoms)) <= {str} and all(map(str.isascii, atoms)):  # the usual case, and a quick one
        return
    for code, value in enumerate(atoms):
        if type(value) is not str or not value.isascii():
            try:
                atom(value)
            except FactError as error:
                raise place.error(str(error), int((codes == code).argmax()), index) from None


def _coded_column(place: Place, index: int, coded: Coded) -> AtomColumn:
    if coded.settled:
        _check_atoms(place, index, coded.codes, coded.names)
        return AtomColumn(coded.codes.astype(np.int32, copy=False), coded.names)
    codes, names = dense_codes(coded.codes, coded.names)
    again, distinct = encode(names)
    if len(distinct) < len(names):
        codes = again[codes]
    _check_atoms(place, index, codes, distinct)
    return AtomColumn(codes, distinct)
