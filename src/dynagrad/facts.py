"""Facts in: every form of table that a user may hand over becomes a `Relation`, which is column by column.

Checks that need no program are done here, and their messages name the predicate, the row (from 1) and the column (from
1). What types columns share, which values a semiring allows and what probabilities turn into is for the caller to say.
Nothing here imports pandas or polars, and pyarrow only when an Arrow object is given.
"""

from __future__ import annotations

import importlib
import itertools
import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .errors import Error, FactError
from .terms import INTEGER_MAX, INTEGER_MIN, Flat, Term, atom, canonical, cut, flatten, item_text, shown, unflatten

Array = npt.NDArray[Any]

ValueShape = Literal["float", "count", "boolean", "expectation"] | tuple[Literal["vector"], int | None]
"""How one value looks: a number, a whole number kept exactly, true or false, a pair (p, r), or a vector of a length."""


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
    """A column of symbols, maybe with floats and integers among them.

    `codes` are places in `atoms`, which are distinct and in the order of their first row.
    """

    codes: npt.NDArray[np.int32]
    atoms: list[str | float | int]
    _mixed: list[bool] = field(default_factory=list, init=False, repr=False)  # what `mixed` found

    @property
    def mixed(self) -> bool:
        """Whether there are integers among the atoms; looked up once, as every run asks."""
        if not self._mixed:
            self._mixed.append(int in set(map(type, self.atoms)))
        return self._mixed[0]

    def __len__(self) -> int:
        return len(self.codes)

    def to_list(self) -> list[Any]:
        return list(map(self.atoms.__getitem__, self.codes.tolist()))

    def take(self, rows: Array) -> AtomColumn:
        return type(self)(*_dense_codes(self.codes[rows], self.atoms))


class TextColumn(AtomColumn):
    """A column of a text file whose type is still open: the program's types say what the texts are, see `files`."""

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


@dataclass(frozen=True, slots=True, eq=False)
class Relation:
    """The facts of one predicate. `values` is None where rows came without: each then means the semiring's one.

    `values` has a row per fact; vectors and pairs are rows of a two-dimensional array, `count` falls back to an array
    of Python integers where 64 bits are too few. `dense_shape` is the shape of the array that the facts came as, if
    they did; rows are then in C order.
    """

    key: str
    count: int
    columns: tuple[Column, ...]
    values: Array | None
    value_shape: ValueShape = "float"
    dense_shape: tuple[int, ...] | None = None

    @property
    def arity(self) -> int:
        return len(self.columns)

    def __len__(self) -> int:
        return self.count


# -- where something is ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """Says in messages where facts stand. `lines` are the numbers of rows in a file, where these are not 1, 2, ..."""

    key: str
    arity: int
    file: str = ""
    lines: Sequence[int] | None = field(default=None, repr=False)

    def error(self, message: str, row: int | None = None, column: int | None = None) -> FactError:
        """The error for row and column, both from 0; the column after the arguments is the value."""
        words = [self.key]
        if self.file:
            words.append(self.file)
        if row is not None:
            words.append(f"{'line' if self.file else 'row'} {self.lines[row] if self.lines else row + 1}")
        if column is not None:
            words.append("value" if column == self.arity else f"column {column + 1}")
        return FactError(f"{', '.join(words)}: {message}")


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


def import_module(name: str, extra: str, wanted_for: str) -> Any:
    """An optional package, or an error that says how to get it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Error(f"{wanted_for} needs {name}; install it with: pip install 'dynagrad[{extra}]'") from error


# -- the way in ------------------------------------------------------------------------------------------------------


def read(
    key: str,
    rows: object,
    *,
    value_shape: ValueShape = "float",
    finite: str = "finite",
    float_columns: Collection[int] = (),
) -> Relation:
    """Facts for the predicate `key`, from any form of table.

    `finite` says what numbers a value may not be, see `FORBIDDEN`. `float_columns` (from 0) are arguments declared as
    floats: elsewhere an array's column of whole floats is taken for integers gone astray.

    >>> relation = read("rewrite/2", [("np", "det", 0.5), ("np", "n", 0.5)])
    >>> relation.columns[1].to_list(), relation.values.tolist()
    (['det', 'n'], [0.5, 0.5])
    >>> read("end/1", {7: True}).columns[0].to_list()
    [7]
    >>> read("cost/2", np.zeros((2, 3))).count
    6
    """
    name, arity = parse_key(key)
    place = Place(f"{name}/{arity}", arity)
    given = rows if isinstance(rows, Relation) else getattr(rows, "relation", None)
    if isinstance(given, Relation):
        return _read_relation(place, given, value_shape, finite)
    raw = _raw(place, rows, value_shape)
    return finish(place, raw, value_shape=value_shape, finite=finite, float_columns=float_columns)


@dataclass(frozen=True, slots=True)
class Raw:
    """A table taken apart, not yet checked: columns are lists, arrays, or finished columns.

    `from_array` where floats have the type of a whole array, so that integers may have become floats by accident.
    """

    count: int
    columns: Sequence[Any]
    values: Any | None
    dense_shape: tuple[int, ...] | None = None
    from_array: bool = False


def finish(
    place: Place,
    raw: Raw,
    *,
    value_shape: ValueShape = "float",
    finite: str = "finite",
    float_columns: Collection[int] = (),
) -> Relation:
    """Check a table that was taken apart, and give its columns their types."""
    columns = tuple(
        _column(place, index, column, raw.from_array and index not in float_columns)
        for index, column in enumerate(raw.columns)
    )
    for index, column in enumerate(columns):
        if len(column) != raw.count:
            raise place.error(f"{len(column)} entries, but {raw.count} rows were expected", None, index)
    values = None if raw.values is None else read_values(place, raw.count, raw.values, value_shape, finite)
    return Relation(place.key, raw.count, columns, values, value_shape, raw.dense_shape)


def fact_text(relation: Relation, row: int) -> str:
    """A fact in the syntax of rules, without its value."""
    at = np.array([row])
    return item_text(relation.key, [column.take(at).to_list()[0] for column in relation.columns])


def with_values(relation: Relation, values: object, *, value_shape: ValueShape, finite: str = "finite") -> Relation:
    """The same rows with new values: one per row in their order, or an array shaped like the one that came in."""
    place = Place(relation.key, relation.arity)
    if relation.dense_shape is not None and _is_array(values):
        array = _as_array(place, values)
        if array.shape[: relation.arity] == relation.dense_shape:
            values = array.reshape(relation.count, *array.shape[relation.arity :])
    if not _is_array(values):
        if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
            raise place.error(f"{shown(values)} is no array of values; give one value for each of the rows")
        values = _listed(place, values)
    new = read_values(place, relation.count, values, value_shape, finite)
    return replace(relation, values=new, value_shape=value_shape)


def _read_relation(place: Place, given: Relation, value_shape: ValueShape, finite: str) -> Relation:
    if given.arity != place.arity:
        raise place.error(f"the table has {given.arity} columns of arguments, but {place.arity} are needed")
    values = given.values
    if values is not None:
        values = read_values(place, given.count, values, value_shape, finite)
    return replace(given, key=place.key, values=values, value_shape=value_shape)


# -- forms of tables -------------------------------------------------------------------------------------------------


def _raw(place: Place, rows: Any, value_shape: ValueShape) -> Raw:
    """Which form the table has, and what it is made of."""
    if isinstance(rows, Mapping):
        return _from_dict(place, rows)
    if isinstance(rows, str | bytes | Term) or rows is None:
        hint = "; read a file with dg.read_file(path, key)" if isinstance(rows, str) else ""
        raise place.error(f"{shown(rows)} is no table of facts{hint}")
    if isinstance(rows, bool | int | float | np.generic) or (_is_array(rows) and getattr(rows, "ndim", None) == 0):
        if place.arity:
            raise place.error(f"{shown(rows)} is no table of facts; give rows such as {_sample(place)}")
        return Raw(1, (), [rows.item() if hasattr(rows, "item") else rows])
    if hasattr(rows, "iloc") and hasattr(rows, "columns"):
        return _from_frame(place, [rows.iloc[:, i] for i in range(rows.shape[1])], len(rows), _pandas_column)
    if hasattr(rows, "iter_rows") and hasattr(rows, "get_columns"):
        return _from_frame(place, rows.get_columns(), rows.height, _polars_column)
    if hasattr(rows, "collect") and hasattr(rows, "lazy"):
        raise place.error("a lazy frame holds no rows yet; call its .collect() first")
    if hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "__arrow_c_array__"):
        return from_arrow(place, rows)
    if isinstance(rows, tuple) and len(rows) == 2 and _is_array(rows[0]):
        return _from_pair(place, *rows)
    if _is_array(rows):
        return _from_array(place, rows, value_shape)
    if isinstance(rows, Iterable):
        return _from_rows(place, rows)
    raise place.error(
        f"{shown(rows)} is no table of facts; give a list of tuples, a dict, a frame, an Arrow table or an array"
    )


def _sample(place: Place) -> str:
    """An example of rows, for messages."""
    if place.arity == 0:
        return "[(0.5,)]"
    return f"[({', '.join(chr(ord('a') + i) if i < 26 else '...' for i in range(min(place.arity, 27)))}, 0.5), ...]"


def _widths(place: Place) -> str:
    arguments = f"{place.arity} argument{'' if place.arity == 1 else 's'}"
    return f"a row is {arguments}, or {arguments} and a value"


def _listed(place: Place, rows: Iterable[Any]) -> list[Any]:
    """All the rows; what goes wrong while they are made is reported with the row."""
    if isinstance(rows, list):
        return rows
    table: list[Any] = []
    try:
        table.extend(rows)
    except Exception as error:  # the caller's generator may raise anything
        raise place.error(
            f"the rows could not be read: {type(error).__name__}: {cut(str(error))}", len(table)
        ) from error
    return table


def _from_rows(place: Place, rows: Iterable[Any]) -> Raw:
    table = _listed(place, rows)
    if not set(map(type, table)) <= {tuple, list}:
        for row, value in enumerate(table):
            if not isinstance(value, tuple | list):
                hint = f"({value!r},)" if isinstance(value, int | str) and len(repr(value)) < 40 else "(a, b, 0.5)"
                raise place.error(f"{shown(value)} is no row; rows are tuples, such as {hint}", row)
    widths = set(map(len, table)) or {place.arity}
    if len(widths) > 1 or not widths <= {place.arity, place.arity + 1}:
        first = len(table[0])
        for row, value in enumerate(table):
            if len(value) not in (place.arity, place.arity + 1):
                raise place.error(f"{_columns(len(value))}, but {_widths(place)}", row)
            if len(value) != first:
                have, lack = ("a", "has none") if len(value) > first else ("no", "has one")
                raise place.error(f"the row has {have} value, but row 1 {lack}; give all rows a value or none", row)
    columns = [list(map(itemgetter(i), table)) for i in range(place.arity)]
    values = list(map(itemgetter(place.arity), table)) if place.arity + 1 in widths else None
    return Raw(len(table), columns, values)


def _columns(count: int) -> str:
    return f"{count} column{'' if count == 1 else 's'}"


def _from_dict(place: Place, rows: Mapping[Any, Any]) -> Raw:
    keys = list(rows)
    for row, arguments in enumerate(keys):
        if isinstance(arguments, tuple):
            if len(arguments) == place.arity:
                continue
            hint = f"; a list term alone is written ({shown(arguments)},)" if place.arity == 1 else ""
            raise place.error(
                f"the key {shown(arguments)} has {_columns(len(arguments))}, not {place.arity}{hint}", row
            )
        if place.arity != 1:
            raise place.error(f"the key {shown(arguments)} is no tuple of {place.arity} arguments", row)
        keys[row] = (arguments,)
    columns = [list(map(itemgetter(i), keys)) for i in range(place.arity)]
    return Raw(len(keys), columns, list(rows.values()))


def _is_array(value: object) -> bool:
    """Whether numpy could make an array of it, lists apart."""
    return not isinstance(value, type | np.generic) and any(
        hasattr(value, name) for name in ("__array__", "__array_interface__", "__dlpack__")
    )


def _as_array(place: Place, value: Any) -> Array:
    if isinstance(value, np.ndarray):
        return np.ma.getdata(value) if not np.ma.isMaskedArray(value) else _unmasked(place, value)
    try:
        if hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
            return np.asarray(value)
        return np.from_dlpack(value)
    except Exception as error:  # other libraries' arrays may raise anything: on another device, needing a gradient
        raise place.error(f"the {type(value).__name__} could not be read as an array: {cut(str(error))}") from error


def _unmasked(place: Place, value: Any) -> Array:
    if np.ma.is_masked(value):
        raise place.error("the array has masked entries; leave those rows out")
    return np.ma.getdata(value)


def _from_pair(place: Place, arguments: Any, values: Any) -> Raw:
    array = _as_array(place, arguments)
    if array.ndim == 1 and place.arity == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] != place.arity:
        raise place.error(
            f"the array of arguments has shape {array.shape}, but {place.arity} columns are needed: "
            f"(number of rows, {place.arity})"
        )
    if array.dtype.kind in "fc" and array.size:
        raise place.error(
            f"the array of arguments holds {array.dtype} numbers, and 1.0 is not 1; convert it with .astype(int)"
        )
    if array.dtype.kind not in "iuOUf":
        raise place.error(f"the array of arguments holds {array.dtype}, not integers")
    columns: list[Any] = [array[:, i] for i in range(place.arity)]
    if values is not None and not _is_array(values):
        if not isinstance(values, list | tuple):
            raise place.error(f"{shown(values)} is no array of values; a pair is (arguments, values)")
        values = list(values)
    return Raw(len(array), columns, values, from_array=True)


def _from_array(place: Place, rows: Any, value_shape: ValueShape) -> Raw:
    array = _as_array(place, rows)
    if array.dtype.names is not None and array.ndim == 1:  # a record array is a frame
        return _from_frame(place, [array[name] for name in array.dtype.names], len(array), lambda _, __, column: column)
    vectors = 1 if value_shape == "expectation" or isinstance(value_shape, tuple) else 0
    if array.ndim != place.arity + vectors:
        last = " and one for the parts of a value" if vectors else ""
        raise place.error(
            f"an array of shape {array.shape} was given; a dense table has one dimension per argument, {place.arity} "
            f"here{last}; rows of integers are given as a pair (arguments, values)"
        )
    shape = array.shape[: place.arity]
    for index, size in enumerate(shape):
        if size > INTEGER_MAX:
            raise place.error(f"{size} cells are beyond the range of integers", None, index)
    count = math.prod(shape)
    columns: list[Any] = []
    repeats, tiles = count, 1
    for size in shape:
        repeats = repeats // size if size else 0
        columns.append(IntColumn(np.tile(np.repeat(np.arange(size, dtype=np.int64), repeats), tiles)))
        tiles *= size
    return Raw(count, columns, array.reshape(count, *array.shape[place.arity :]), dense_shape=shape)


# -- frames and Arrow ------------------------------------------------------------------------------------------------


def _from_frame(place: Place, columns: Sequence[Any], count: int, read_column: Callable[[Place, int, Any], Any]) -> Raw:
    if len(columns) not in (place.arity, place.arity + 1):
        raise place.error(f"the table has {_columns(len(columns))}, but {_widths(place)}")
    raw = [read_column(place, index, column) for index, column in enumerate(columns)]
    return Raw(count, raw[: place.arity], raw[place.arity] if len(raw) > place.arity else None, from_array=True)


_MISSING = "nothing is there; leave rows with missing entries out"


def _pandas_column(place: Place, index: int, column: Any) -> Any:
    dtype = column.dtype
    kind = getattr(dtype, "kind", "O")
    if isinstance(dtype, np.dtype) and kind in "iufb":
        return column.to_numpy()
    missing = np.asarray(column.isna())
    if missing.any():
        raise place.error(_MISSING, int(missing.argmax()), index)
    if kind in "iufb":
        return column.to_numpy(dtype=getattr(dtype, "numpy_dtype", None))
    return column.tolist()


def _polars_column(place: Place, index: int, column: Any) -> Any:
    if column.null_count():
        raise place.error(_MISSING, int(column.is_null().arg_max()), index)
    if column.dtype.is_integer() or column.dtype.is_float():
        return column.to_numpy()
    return column.to_list()


def from_arrow(place: Place, rows: Any) -> Raw:
    """A table from anything that hands out an Arrow stream."""
    pa = import_module("pyarrow", "arrow", "an Arrow table")
    try:
        if not isinstance(rows, pa.Table):
            if hasattr(rows, "__arrow_c_stream__"):
                rows = pa.RecordBatchReader.from_stream(rows).read_all()
            else:
                rows = pa.Table.from_batches([pa.record_batch(rows)])
    except Exception as error:  # the maker of the stream may raise anything
        raise place.error(f"the {type(rows).__name__} is no Arrow table of facts: {cut(str(error))}") from error
    return _from_frame(place, rows.columns, rows.num_rows, _arrow_column)


def _arrow_column(place: Place, index: int, chunks: Any) -> Any:
    pa = importlib.import_module("pyarrow")
    types = pa.types
    settled = False
    if chunks.null_count:
        missing = chunks.is_null().to_numpy(zero_copy_only=False) if hasattr(chunks, "is_null") else np.ones(1)
        raise place.error(_MISSING, int(missing.argmax()), index)
    if types.is_dictionary(chunks.type):
        if not _is_arrow_text(types, chunks.type.value_type):
            return _arrow_column(place, index, chunks.cast(chunks.type.value_type))
    elif _is_arrow_text(types, chunks.type):
        chunks = chunks.dictionary_encode()
        settled = True  # each text once, in the order of its first row
    elif types.is_integer(chunks.type) or types.is_floating(chunks.type):
        return chunks.to_numpy()
    else:
        return chunks.to_pylist()
    array = chunks.unify_dictionaries().combine_chunks()
    if hasattr(array, "chunks"):  # an old pyarrow gives chunks again where there are none
        return []
    names = array.dictionary.to_pylist()
    codes = np.asarray(array.indices.to_numpy(zero_copy_only=False))
    if None in names:
        bad = np.isin(codes, [i for i, name in enumerate(names) if name is None])
        if bad.any():
            raise place.error(_MISSING, int(bad.argmax()), index)
    return _Coded(codes, names, settled)


def _is_arrow_text(types: Any, kind: Any) -> bool:
    tests = ("is_string", "is_large_string", "is_string_view")
    return any(getattr(types, test)(kind) for test in tests if hasattr(types, test))


# -- argument columns ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Coded:
    """Texts as numbers into names, which may repeat or never occur, unless `settled` says that they do not."""

    codes: Array
    names: list[Any]
    settled: bool = False


def _column(place: Place, index: int, raw: Any, refuse_whole_floats: bool) -> Column:
    if isinstance(raw, IntColumn | AtomColumn | TermColumn):
        return raw
    if isinstance(raw, _Coded):
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
        checked(place, row, index, int(numbers[row]), atom)
    return IntColumn(numbers.astype(np.int64))  # a copy: the caller may go on to change the array


def checked(place: Place, row: int, index: int, value: object, check: Callable[[object], Any]) -> Any:
    try:
        return check(value)
    except FactError as error:
        raise place.error(str(error), row, index) from None


_PLAIN_ATOMS = frozenset({int, str, float})


def _list_column(place: Place, index: int, column: Sequence[Any]) -> Column:
    kinds = set(map(type, column))
    if not kinds <= _PLAIN_ATOMS:
        if any(issubclass(kind, list | tuple | Term) for kind in kinds):
            return TermColumn([checked(place, row, index, v, canonical) for row, v in enumerate(column)])
        column = [checked(place, row, index, value, atom) for row, value in enumerate(column)]
        kinds = set(map(type, column))
    if kinds == {int}:
        try:
            numbers = np.array(column, np.int64)
        except OverflowError:
            numbers = np.array([min(max(v, -(2**63)), 2**63 - 1) for v in column], np.int64)
            row = int(((numbers < INTEGER_MIN) | (numbers > INTEGER_MAX)).argmax())
            checked(place, row, index, column[row], atom)
        return _int_column(place, index, numbers)
    if float not in kinds:
        return _atom_column(place, index, column)
    for row, value in enumerate(column):  # floats: 1 and 1.0 are one key of a dict, so the type goes with the value
        checked(place, row, index, value, atom)
    typed = [(type(value), value) for value in column]
    codes, distinct = encode(typed)
    return AtomColumn(codes, [value + 0.0 if kind is float else value for kind, value in distinct])


def encode(column: Sequence[Any]) -> tuple[npt.NDArray[np.int32], list[Any]]:
    """Each entry as its place among the distinct ones, and these in the order of their first row."""
    number: defaultdict[Any, int] = defaultdict(itertools.count().__next__)  # counts what it has not seen
    codes = np.fromiter(map(number.__getitem__, column), np.int32, len(column))
    return codes, list(number)


def _atom_column(place: Place, index: int, column: Sequence[Any]) -> AtomColumn:
    """Strings, maybe with integers."""
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


def _coded_column(place: Place, index: int, coded: _Coded) -> AtomColumn:
    if coded.settled:
        _check_atoms(place, index, coded.codes, coded.names)
        return AtomColumn(coded.codes.astype(np.int32, copy=False), coded.names)
    codes, names = _dense_codes(coded.codes, coded.names)
    again, distinct = encode(names)
    if len(distinct) < len(names):
        codes = again[codes]
    _check_atoms(place, index, codes, distinct)
    return AtomColumn(codes, distinct)


def _dense_codes(codes: Array, names: Sequence[Any]) -> tuple[npt.NDArray[np.int32], list[Any]]:
    """The same entries with only the names that occur, in the order of their first row."""
    first = np.full(len(names), len(codes), np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    order = np.argsort(first, kind="stable")
    order = order[: int((first < len(codes)).sum())]
    place_of = np.zeros(len(names), np.int32)
    place_of[order] = np.arange(len(order), dtype=np.int32)
    return place_of[codes], [names[i] for i in order.tolist()]


# -- values ----------------------------------------------------------------------------------------------------------

FORBIDDEN: dict[str, tuple[Callable[[Array], Array], str]] = {
    "finite": (lambda a: ~np.isfinite(a), "values here are finite numbers"),
    "no_nan": (np.isnan, "values here are numbers"),
    "no_nan_no_posinf": (lambda a: np.isnan(a) | (a == np.inf), "values here are numbers or -inf"),
    "no_nan_no_neginf": (lambda a: np.isnan(a) | (a == -np.inf), "values here are numbers or inf"),
}
"""What a value may not be, by the name of the restriction, and how to say it."""


def read_values(place: Place, count: int, raw: Any, value_shape: ValueShape, finite: str) -> Array | None:
    """Values of facts as an array; None if each is just True, which says no more than that the fact is there."""
    if _is_array(raw):
        raw = _as_array(place, raw)
        if raw.ndim == 0:
            raise place.error(f"one value was given for {count} rows; give one value for each")
    if len(raw) != count:
        raise place.error(f"{len(raw)} values were given for {count} rows; give one value for each")
    if value_shape != "boolean" and count and _all_true(raw):
        return None
    kind = value_shape if isinstance(value_shape, str) else value_shape[0]
    width = value_shape[1] if isinstance(value_shape, tuple) else None
    values = _READERS[kind](place, raw, width)
    if values.dtype.kind == "f":
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
    """A float from any kind of number; the reason as a `FactError` if it is none."""
    if isinstance(value, bool | np.bool_):
        raise FactError(
            f"{value} is no number" + ("" if value else "; leave out facts that do not hold, or give 0.0 as the value")
        )
    if value is None:
        raise FactError(_MISSING)
    if isinstance(value, str | bytes | complex | list | tuple) or not hasattr(value, "__float__"):
        raise FactError(f"the value {shown(value)} is no number; the last column of a table is its value")
    try:
        return float(value)
    except OverflowError:
        raise FactError(f"the value {shown(value)} is beyond the range of floats") from None
    except Exception as error:
        raise FactError(f"the value {shown(value)} is no number: {cut(str(error))}") from None


def _each(place: Place, raw: Iterable[Any], check: Callable[[Any], Any]) -> Iterator[Any]:
    for row, value in enumerate(raw):
        yield checked(place, row, place.arity, value, check)


def _read_floats(place: Place, raw: Any, _: int | None) -> Array:
    if isinstance(raw, np.ndarray):
        if raw.ndim != 1:
            raise place.error(f"the array of values has shape {raw.shape}; one number per row is needed")
        if raw.dtype.kind in "fiu":
            return raw.astype(np.float64)
        raw = raw.tolist()
    if set(map(type, raw)) <= {int, float}:
        try:
            return np.array(raw, np.float64)
        except OverflowError:
            pass  # the slow way says where
    return np.fromiter(_each(place, raw, _number), np.float64, len(raw))


def _whole(value: Any) -> int:
    if not isinstance(value, int | np.integer) or isinstance(value, bool | np.bool_):
        number = _number(value)
        if number != math.floor(number) if math.isfinite(number) else True:
            raise FactError(f"the value {shown(value)} is no whole number, and counts are")
        if abs(number) > 2**53:
            raise FactError(f"the value {shown(value)} is a float too large to be exact; give an int")
    return int(value)


def _read_counts(place: Place, raw: Any, _: int | None) -> Array:
    if isinstance(raw, np.ndarray):
        if raw.ndim != 1:
            raise place.error(f"the array of values has shape {raw.shape}; one number per row is needed")
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
        if raw.ndim != 1:
            raise place.error(f"the array of values has shape {raw.shape}; one value per row is needed")
        if raw.dtype.kind == "b":
            return raw.copy()
        raw = raw.tolist()
    return np.fromiter(_each(place, raw, _truth), np.bool_, len(raw))


def _parts(value: Any) -> list[float]:
    """The numbers of a vector, the parts of a tuple one after the other."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, list | tuple):
        raise FactError(f"the value {shown(value)} is no tuple of numbers, as values are here")
    numbers: list[float] = []
    for part in value:
        if _is_array(part) and getattr(part, "ndim", False):
            part = np.asarray(part).tolist()
        numbers.extend(map(_number, part) if isinstance(part, list | tuple) else (_number(part),))
    return numbers


def _pair(value: Any) -> list[float]:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise FactError(
            f"the value {shown(value)} is no pair (p, r), as values are here, with r a number or a tuple of numbers"
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
                raise place.error(f"the value has {len(numbers)} numbers, but {expected} are needed", row, place.arity)
        values = np.array(rows, np.float64).reshape(len(rows), expected)
    if (width is not None and values.shape[1] != width) or values.shape[1] < at_least:
        raise place.error(f"values have {values.shape[1]} numbers, but {width or at_least} are needed")
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
