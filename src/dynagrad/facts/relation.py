"""`Relation`: the facts of a predicate in columns (dictionary-encoded where they are symbols), and operations on them.

A relation is immutable. Relations are made by `readers.py` and `files.py`, and encoded by
`charts/binding/encoding.py`. Semirings are not known here: their one is an argument where it is needed.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from ..errors import FactError, Place, RowPlaces, shown
from .terms import Flat, Interner, flatten, item_text, unflatten

Array = npt.NDArray[Any]
Codes = npt.NDArray[np.int32]

ValueShape = Literal["float", "count", "boolean", "expectation"] | tuple[Literal["vector"], int | None]
"""The form of a value: a float, an exact whole number, true or false, a pair (p, r), or a vector of some length."""


# -- columns ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class IntColumn:
    """A column of integers."""

    numbers: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.numbers)

    def to_list(self) -> list[Any]:
        return self.numbers.tolist()  # type: ignore[no-any-return]  # of int64 it is a list

    def take(self, rows: Array) -> IntColumn:
        return IntColumn(self.numbers[rows])


@dataclass(frozen=True, slots=True, eq=False)
class AtomColumn:
    """A dictionary-encoded column of symbols, perhaps with floats and integers among them.

    `codes` are indices of `atoms`, which are distinct and in the order of their first rows.
    """

    codes: npt.NDArray[np.int32]
    atoms: list[str | float | int]
    _mixed: list[bool] = field(default_factory=list, init=False, repr=False)  # the answer of `mixed`

    @property
    def mixed(self) -> bool:
        """Whether there are integers among the atoms; memoised, as every run asks."""
        if not self._mixed:
            self._mixed.append(int in set(map(type, self.atoms)))
        return self._mixed[0]

    def __len__(self) -> int:
        return len(self.codes)

    def to_list(self) -> list[Any]:
        return list(map(self.atoms.__getitem__, self.codes.tolist()))

    def take(self, rows: Array) -> AtomColumn:
        return type(self)(*dense_codes(self.codes[rows], self.atoms))


class RowSymbol(str):
    """A symbol in a column of texts, unlike the texts of files, which may still become integers."""

    __slots__ = ()


class TextColumn(AtomColumn):
    """A column with texts of a file whose type is still open: it depends on the program, see `files.py`.

    Atoms of the type `str` are such texts. Others come from rows that stand beside those of the file: symbols, which
    are `RowSymbol`, integers, floats and terms.
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class TermColumn:
    """A column that holds lists or compound terms, in canonical form."""

    terms: list[Any]

    def __len__(self) -> int:
        return len(self.terms)

    def to_list(self) -> list[Any]:
        return list(self.terms)

    def take(self, rows: Array) -> TermColumn:
        return TermColumn([self.terms[row] for row in rows.tolist()])

    def __reduce__(self) -> tuple[Callable[[Flat], TermColumn], tuple[Flat]]:
        return _restore_terms, (flatten(self.terms),)


def _restore_terms(flat: Flat) -> TermColumn:
    return TermColumn(unflatten(flat))


Column = IntColumn | AtomColumn | TermColumn
_Atoms = TypeVar("_Atoms", bound=AtomColumn)


@dataclass(frozen=True, slots=True, eq=False)
class Relation:
    """The facts of one predicate. `values` is None where rows have none: each then is the semiring's one.

    `values` has an entry per fact; vectors and pairs are rows of a two-dimensional array, and counts beyond 64 bits an
    array of Python integers. `dense_shape` is the shape of a dense array that the facts came as; rows are then in C
    order. `names` are the names of columns in a frame that they came as, that of the values last if it had them.
    `files` are the places of rows that come from files, as in `RowPlaces`, for messages.
    """

    key: str
    count: int
    columns: tuple[Column, ...]
    values: Array | None
    value_shape: ValueShape = "float"
    dense_shape: tuple[int, ...] | None = None
    names: tuple[str, ...] | None = None
    files: tuple[tuple[int, Place], ...] = field(default=(), repr=False)

    def __setstate__(self, state: Sequence[Any]) -> None:
        """Fields that a pickle of before does not have are as where nothing is known of them."""
        for part in fields(self):
            object.__setattr__(self, part.name, part.default)
        for part, value in zip(fields(self), state, strict=False):
            object.__setattr__(self, part.name, value)

    @property
    def places(self) -> RowPlaces:
        """Where its rows come from."""
        return RowPlaces(self.files or ((0, Place(self.key, self.arity)),))

    @property
    def arity(self) -> int:
        return len(self.columns)

    def __len__(self) -> int:
        return self.count


_KEY = re.compile(r"(?s)(.+)/(0|[1-9][0-9]{0,5})\Z")


def parse_key(key: str) -> tuple[str, int]:
    """The name and arity of a key.

    >>> parse_key("rewrite/3")
    ('rewrite', 3)
    """
    match = _KEY.match(key) if isinstance(key, str) else None
    if match is None:
        raise FactError(f"{shown(key)} names no predicate; write name/arity, such as 'rewrite/3'")
    return match[1], int(match[2])


def fact_text(relation: Relation, row: int) -> str:
    """A fact in the syntax of rules, without its value."""
    at = np.array([row])
    return item_text(relation.key, [column.take(at).to_list()[0] for column in relation.columns])


# -- dictionary encoding -----------------------------------------------------------------------------------------------


BLOCK = 1 << 18
"""The number of rows that one call of numpy encodes: signals are handled between calls."""


def encode(column: Sequence[Any]) -> tuple[npt.NDArray[np.int32], list[Any]]:
    """The code of each entry, and the distinct entries in the order of their first rows."""
    number: defaultdict[Any, int] = defaultdict(itertools.count().__next__)  # numbers new entries
    codes, found = np.empty(len(column), np.int32), map(number.__getitem__, column)
    for block in range(0, len(column), BLOCK):
        part = codes[block : block + BLOCK]
        part[:] = np.fromiter(itertools.islice(found, len(part)), np.int32, len(part))
    return codes, list(number)


def atom_key(value: Any) -> Any:
    """The key of an atom in a dictionary: 1 and 1.0 are different atoms."""
    if type(value) is str:
        return value
    return (type(value), repr(value) if isinstance(value, tuple) else value)  # (1,) == (1.0,)


def atom_column(values: Iterable[Any]) -> AtomColumn:
    """A column of symbols, integers and floats."""
    codes, distinct = encode([(type(value), value) for value in values])
    return AtomColumn(codes, [value + 0.0 if kind is float else value for kind, value in distinct])


def dense_codes(codes: Array, names: Sequence[Any]) -> tuple[npt.NDArray[np.int32], list[Any]]:
    """The same entries with only the names that occur, in the order of their first rows."""
    first = np.full(len(names), len(codes), np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    order = np.argsort(first, kind="stable")
    order = order[: int((first < len(codes)).sum())]
    place_of = np.zeros(len(names), np.int32)
    place_of[order] = np.arange(len(order), dtype=np.int32)
    return place_of[codes], [names[i] for i in order.tolist()]


# -- rows ------------------------------------------------------------------------------------------------------------


def concatenate(first: Relation, second: Relation, one: Any) -> Relation:
    """The rows of both relations, those of the first one first. Where one has none, the other keeps its shape."""
    columns = tuple(_concatenate_columns(a, b) for a, b in zip(first.columns, second.columns, strict=True))
    values: Array | None = None
    if first.values is not None or second.values is not None:
        a, b = (_filled(r, one, first if first.values is not None else second) for r in (first, second))
        if not (first.count and second.count):  # an empty relation may have values of any width
            values = a if first.count else b
        elif a.dtype == object or b.dtype == object:
            values = np.concatenate([a.astype(object), b.astype(object)])
        else:
            values = np.concatenate([a, b])
    names = second.names if first.names is None else first.names
    shape = first.dense_shape if not second.count else second.dense_shape if not first.count else None
    files = first.files
    if first.files or second.files:
        files = (*first.places.parts, *((first.count + n, place) for n, place in second.places.parts))
    return Relation(first.key, first.count + second.count, columns, values, first.value_shape, shape, names, files)


def _filled(relation: Relation, one: Any, like: Relation) -> Array:
    if relation.values is not None:
        return relation.values
    assert like.values is not None
    shape = (relation.count, *like.values.shape[1:])
    row = np.array([x for part in (one if isinstance(one, tuple) else (one,)) for x in np.ravel(part)])
    return np.broadcast_to(row if len(shape) > 1 else row[0], shape).astype(like.values.dtype)


def _opened(column: Column) -> TextColumn:
    """A column beside texts whose type is open; its own entries keep theirs."""
    if isinstance(column, TextColumn):
        return column
    if isinstance(column, AtomColumn):
        return TextColumn(column.codes, [RowSymbol(a) if isinstance(a, str) else a for a in column.atoms])
    if isinstance(column, IntColumn):
        numbers, places = np.unique(column.numbers, return_inverse=True)
        return TextColumn(*dense_codes(places.reshape(-1), numbers.tolist()))
    codes, keys = encode(list(map(repr, column.terms)))
    first = dict(zip(codes[::-1].tolist(), column.terms[::-1], strict=True))
    terms = [first[code] for code in range(len(keys))]
    return TextColumn(codes, [RowSymbol(t) if isinstance(t, str) else t for t in terms])


def _concatenate_columns(a: Column, b: Column) -> Column:
    if not len(a) or not len(b):
        return a if len(a) else b
    if isinstance(a, TextColumn) or isinstance(b, TextColumn):
        return _appended(_opened(a), _opened(b))
    if isinstance(a, IntColumn) and isinstance(b, IntColumn):
        return IntColumn(np.concatenate([a.numbers, b.numbers]))
    if isinstance(a, AtomColumn) and isinstance(b, AtomColumn):
        return _appended(a, b)
    values = [*a.to_list(), *b.to_list()]
    if any(isinstance(c, TermColumn) for c in (a, b)):
        return TermColumn(values)
    return atom_column(values)


def _appended(a: _Atoms, b: _Atoms) -> _Atoms:
    """The entries of two columns of one kind."""
    number = dict(zip(map(atom_key, a.atoms), itertools.count()))
    moved = [number.setdefault(atom_key(x), len(number)) for x in b.atoms]
    new = [x for x, code in zip(b.atoms, moved, strict=True) if code >= len(a.atoms)]
    return type(a)(np.concatenate([a.codes, np.array(moved, np.int32)[b.codes]]), [*a.atoms, *new])


def row_numbers(relation: Relation) -> Codes:
    """A number for each row; rows with equal arguments, and only those, have equal numbers."""
    numbers = np.zeros(relation.count, np.int64)
    for column in relation.columns:
        if isinstance(column, IntColumn):
            codes = column.numbers
        elif isinstance(column, AtomColumn):
            codes = column.codes.astype(np.int64)
        else:
            interner = Interner()
            codes = np.fromiter(map(interner.add, column.terms), np.int64, len(column))
        codes = np.unique(codes, return_inverse=True)[1].reshape(-1)
        numbers = np.unique(numbers * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1].reshape(-1)
    return numbers.astype(np.int32)


def take(relation: Relation, rows: Array) -> Relation:
    """Some rows of a relation."""
    values = None if relation.values is None else relation.values[rows]
    columns = tuple(c.take(rows) for c in relation.columns)
    return Relation(relation.key, len(rows), columns, values, relation.value_shape, names=relation.names)


FEW = 8
"""The ratio of rows to rows that are looked for, from which on rows are filtered column by column first."""


def _may_match(here: Relation, gone: Relation) -> npt.NDArray[np.bool_]:
    """The rows whose entries all occur in the same column of `gone`, as a mask."""
    mask = np.ones(here.count, np.bool_)
    for mine, theirs in zip(here.columns, gone.columns, strict=True):
        if isinstance(mine, IntColumn) and isinstance(theirs, IntColumn):
            mask &= np.isin(mine.numbers, theirs.numbers)
        elif isinstance(mine, AtomColumn) and isinstance(theirs, AtomColumn) and type(mine) is type(theirs):
            wanted = set(map(atom_key, theirs.atoms))
            mask &= np.array([atom_key(x) in wanted for x in mine.atoms], np.bool_)[mine.codes]
    return mask


def matching(here: Relation, gone: Relation, one: Any) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Masks of the rows of `here` that are among `gone`, and the reverse. Values are compared where `gone` has them."""
    if gone.count * FEW < here.count:
        rows = np.flatnonzero(_may_match(here, gone))
        if len(rows) < here.count:
            mask, found = matching(take(here, rows), gone, one)
            among = np.zeros(here.count, np.bool_)
            among[rows[mask]] = True
            return among, found
    numbers = row_numbers(concatenate(replace(here, values=None), replace(gone, values=None), one))
    mine, theirs = numbers[: here.count], numbers[here.count :]
    among = np.isin(mine, theirs)
    if gone.values is None:
        return among, np.isin(theirs, mine)
    both = concatenate(here, gone, one).values
    assert both is not None
    wanted: dict[int, list[int]] = {}
    for n, number in enumerate(theirs.tolist()):
        wanted.setdefault(number, []).append(n)
    found = np.zeros(gone.count, np.bool_)
    for row in np.flatnonzero(among).tolist():
        same = [n for n in wanted[int(mine[row])] if np.array_equal(both[row], both[here.count + n])]
        among[row] = bool(same)
        found[same] = True
    return among, found


def earlier_copies(numbers: Array) -> npt.NDArray[np.int64]:
    """For each number, how many before it are the same.

    >>> earlier_copies(np.array([7, 5, 7, 7])).tolist()
    [0, 0, 1, 2]
    """
    order = np.argsort(numbers, kind="stable")
    places, found = np.arange(len(numbers)), np.zeros(len(numbers), np.int64)
    begins = np.ones(len(numbers), np.bool_)
    begins[1:] = numbers[order[1:]] != numbers[order[:-1]]
    found[order] = places - np.maximum.accumulate(np.where(begins, places, 0))
    return found


def places_of(here: Codes, there: Codes) -> npt.NDArray[np.int64]:
    """Where in `here` each row of `there` is, by numbers of rows: the n-th of several copies is the n-th one here.

    Minus one where there is none.

    >>> places_of(np.array([1, 2, 1]), np.array([1, 3, 1, 1])).tolist()
    [0, -1, 2, -1]
    """
    if not len(here):
        return np.full(len(there), -1, np.int64)
    numbers = int(max(here.max(), there.max(initial=0))) + 1
    mine, theirs = (n + earlier_copies(n) * numbers for n in (here.astype(np.int64), there.astype(np.int64)))
    order = np.argsort(mine)
    found = order[np.minimum(np.searchsorted(mine, theirs, sorter=order), len(mine) - 1)]
    return np.where(mine[found] == theirs, found, -1)


def replaced(here: Relation, new: Relation, one: Any, typed: tuple[Relation, Relation] | None = None) -> Relation:
    """The rows of `here`, with those of `new` in place of all copies of the same facts.

    A row of `new` stands where the fact stood, the n-th one for a fact where its n-th copy did; others come last. While
    no row comes and none goes, a dense table keeps its shape. `typed` has both with the types of their texts, by which
    facts are the same.
    """
    a, b = (here, new) if typed is None else typed
    rows = np.flatnonzero(_may_match(a, b)) if new.count * FEW < here.count else np.arange(here.count)
    some = a if len(rows) == here.count else take(a, rows)
    numbers = row_numbers(concatenate(replace(some, values=None), replace(b, values=None), one))
    mine, theirs = numbers[: len(rows)], numbers[len(rows) :]
    found = places_of(mine, theirs)
    known = found >= 0
    source, kept = np.arange(here.count), np.ones(here.count, np.bool_)
    kept[rows[np.isin(mine, theirs)]] = False
    places = rows[found[known]]
    source[places], kept[places] = here.count + np.flatnonzero(known), True
    values = concatenate(replace(here, columns=()), replace(new, columns=()), one).values
    if known.all() and kept.all():
        return replace(here, values=None if values is None else values[source], value_shape=new.value_shape)
    return take(concatenate(here, new, one), np.concatenate([source[kept], here.count + np.flatnonzero(~known)]))


class RelationHolder:
    """What holds a relation, and may be given as facts again: a table."""

    __slots__ = ()

    def __dynagrad_relation__(self) -> Relation:
        raise NotImplementedError


def relation_of(facts: object) -> Relation | None:
    """The relation that facts are, or hold; None for facts of other forms."""
    if isinstance(facts, RelationHolder):
        return facts.__dynagrad_relation__()
    return facts if isinstance(facts, Relation) else None
