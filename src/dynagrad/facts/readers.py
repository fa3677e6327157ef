"""Facts in: every form of table in memory (tuples, dicts, frames, Arrow, arrays) becomes a `Relation`.

Here the form of a table is recognised, and its arguments and values are found; `columns.py` and `values.py` check them.
Messages name the predicate, the row (from 1) and the column (from 1). Types that columns share, values that a semiring
allows, and probabilities are for the caller. Nothing here imports pandas or polars, and pyarrow only when an Arrow
object is given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

import numpy as np

from ..errors import Place, counted, cut, raised, shown
from ..packages import optional
from .columns import Coded, Raw, finish
from .relation import IntColumn, Relation, ValueShape, parse_key, relation_of
from .terms import INTEGER_MAX, Term
from .values import MISSING, as_array, check_matrix, has_width, is_array, is_missing, read_values

# -- reading ---------------------------------------------------------------------------------------------------------


def read(
    key: str,
    rows: object,
    *,
    value_shape: ValueShape = "float",
    finite: str = "finite",
    float_columns: Collection[int] = (),
) -> Relation:
    """Facts for the predicate `key`, from any form of table.

    `finite` names the values that are forbidden, see `FORBIDDEN`. `float_columns` (from 0) are arguments declared as
    floats: elsewhere a column of whole floats in an array is an error, as integers were probably meant.

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
    given = relation_of(rows)
    if given is not None:
        return _read_relation(place, given, value_shape, finite)
    with place.reading():
        raw = _raw(place, rows, value_shape)
        return finish(place, raw, value_shape=value_shape, finite=finite, float_columns=float_columns)


def with_values(relation: Relation, values: object, *, value_shape: ValueShape, finite: str = "finite") -> Relation:
    """The same rows with new values: one per row in their order, or an array of the shape that the facts came in."""
    place = Place(relation.key, relation.arity)
    with place.reading():
        if relation.dense_shape is not None and is_array(values):
            array = as_array(place, values)
            if array.shape[: relation.arity] == relation.dense_shape:
                values = array.reshape(relation.count, *array.shape[relation.arity :])
        if not is_array(values):
            if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
                raise place.error(f"{shown(values)} is not an array of values; give one value for each of the rows")
            values = _listed(place, values)
        new = read_values(place, relation.count, values, value_shape, finite)
    return replace(relation, values=new, value_shape=value_shape)


def _read_relation(place: Place, given: Relation, value_shape: ValueShape, finite: str) -> Relation:
    if given.arity != place.arity:
        raise place.error(f"the table has {counted(given.arity, 'column')} of arguments, and not {place.arity}")
    values, files = given.values, tuple((row, replace(file, key=place.key)) for row, file in given.files)
    if len(files) == 1:
        place = files[0][1]
    if values is not None:
        values = read_values(place, given.count, values, value_shape, finite)
    return replace(given, key=place.key, values=values, value_shape=value_shape, files=files)


# -- forms of tables -------------------------------------------------------------------------------------------------


def _raw(place: Place, rows: Any, value_shape: ValueShape) -> Raw:
    """The raw columns of a table, by its form."""
    if isinstance(rows, Mapping):
        return _from_dict(place, rows)
    if isinstance(rows, str | bytes | Term) or rows is None:
        hint = "; read a file with dg.read_file(path, key)" if isinstance(rows, str) else ""
        raise place.error(f"{shown(rows)} is not a table of facts{hint}")
    if is_missing(rows):
        raise place.error(MISSING)
    if hasattr(rows, "tocoo"):
        raise place.error(
            "a sparse matrix was given; give its entries as arrays: with m = x.tocoo(), "
            "(np.stack([m.row, m.col], axis=1), m.data)"
        )
    if not place.arity and has_width(value_shape) and _is_value(rows):
        return Raw(1, (), [rows])
    if isinstance(rows, np.ndarray):
        check_matrix(place, rows, place.arity + has_width(value_shape))
        rows = as_array(place, rows)
    if isinstance(rows, bool | int | float | np.generic) or (is_array(rows) and getattr(rows, "ndim", None) == 0):
        if place.arity:
            raise place.error(f"{shown(rows)} is not a table of facts; give rows such as {_sample(place)}")
        return Raw(1, (), [rows.item() if hasattr(rows, "item") else rows])
    if hasattr(rows, "iloc") and hasattr(rows, "columns"):
        columns = [rows.iloc[:, i] for i in range(rows.shape[1])]
        return _from_frame(place, columns, len(rows), _pandas_column, rows.columns)
    if hasattr(rows, "iloc") and hasattr(rows, "index"):
        return _from_series(place, rows)
    if hasattr(rows, "iter_rows") and hasattr(rows, "get_columns"):
        return _from_frame(place, rows.get_columns(), rows.height, _polars_column, rows.columns)
    if hasattr(rows, "to_frame") and hasattr(rows, "null_count"):
        return _from_polars_series(place, rows, value_shape)
    if hasattr(rows, "collect") and hasattr(rows, "lazy"):
        raise place.error("a lazy frame holds no rows yet; call its .collect() first")
    if hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "__arrow_c_array__"):
        return from_arrow(place, rows)
    if isinstance(rows, tuple) and len(rows) == 2 and is_array(rows[0]):
        return _from_pair(place, *rows)
    if is_array(rows):
        return _from_array(place, rows, value_shape)
    if isinstance(rows, Iterable):
        return _from_rows(place, rows)
    raise place.error(
        f"{shown(rows)} is not a table of facts; give a list of tuples, a dict, a frame, an Arrow table or an array"
    )


def _is_value(rows: Any) -> bool:
    """Whether this is the value of the only fact of a predicate without arguments, such as the pair (p, r)."""
    return isinstance(rows, tuple | list) and bool(rows) and isinstance(rows[0], int | float | np.number)


def _sample(place: Place) -> str:
    """An example of rows, for messages."""
    if place.arity == 0:
        return "[(0.5,)]"
    return f"[({', '.join(chr(ord('a') + i) if i < 26 else '...' for i in range(min(place.arity, 27)))}, 0.5), ...]"


def _widths(place: Place) -> str:
    arguments = counted(place.arity, "argument")
    return f"a row is {arguments}, or {arguments} and a value"


def _key_for(place: Place, width: int) -> str:
    """The keys of predicates that rows of this width are for."""
    name = cut(place.key.rpartition("/")[0], 60)
    return f"; these rows are for {name}/{width - 1} with values, or for {name}/{width}" if width else ""


def _listed(place: Place, rows: Iterable[Any]) -> list[Any]:
    """All rows of an iterable; an error that it raises is reported with the row."""
    if isinstance(rows, list):
        return rows
    table: list[Any] = []
    try:
        table.extend(rows)
    except Exception as error:  # the caller's generator may raise anything
        raise place.error(f"the rows could not be read: {raised(error)}", len(table)) from error
    return table


def _from_rows(place: Place, rows: Iterable[Any]) -> Raw:
    table = _listed(place, rows)
    if not set(map(type, table)) <= {tuple, list}:
        for row, value in enumerate(table):
            if not isinstance(value, tuple | list):
                raise place.error(f"{shown(value)} is not a row; {_row_hint(place, value)}", row)
    widths = set(map(len, table)) or {place.arity}
    if len(widths) > 1 or not widths <= {place.arity, place.arity + 1}:
        first = len(table[0])
        for row, value in enumerate(table):
            if len(value) not in (place.arity, place.arity + 1):
                raise place.error(f"{_columns(len(value))}, but {_widths(place)}{_key_for(place, len(value))}", row)
            if len(value) != first:
                have, lack = ("a", "has none") if len(value) > first else ("no", "has one")
                raise place.error(f"the row has {have} value, but row 1 {lack}; give all rows a value or none", row)
    columns = [list(map(itemgetter(i), table)) for i in range(place.arity)]
    values = list(map(itemgetter(place.arity), table)) if place.arity + 1 in widths else None
    return Raw(len(table), columns, values)


def _row_hint(place: Place, value: Any) -> str:
    """What to give in place of something that is no row."""
    short = isinstance(value, int | float | str) and len(repr(value)) < 40
    if not place.arity and short:
        return f"the only fact of this predicate is given as its value, {value!r}, or as the row [({value!r},)]"
    hint = f"rows are tuples, such as {f'({value!r},)' if short else '(a, b, 0.5)'}"
    if place.arity == 1 and isinstance(value, int | float | np.number):
        hint += "; numbers for the arguments 0, 1, ... are given as an array, np.array([...])"
    return hint


def _columns(count: int) -> str:
    return counted(count, "column")


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
            raise place.error(f"the key {shown(arguments)} is not a tuple of {counted(place.arity, 'argument')}", row)
        keys[row] = (arguments,)
    columns = [list(map(itemgetter(i), keys)) for i in range(place.arity)]
    return Raw(len(keys), columns, list(rows.values()))


def _from_pair(place: Place, arguments: Any, values: Any) -> Raw:
    array = as_array(place, arguments)
    if array.ndim == 1 and place.arity == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] != place.arity:
        raise place.error(
            f"the array of arguments has shape {array.shape}, and should have {counted(place.arity, 'column')}: "
            f"(number of rows, {place.arity})"
        )
    if array.dtype.kind in "fc" and array.size:
        raise place.error(
            f"the array of arguments holds {array.dtype} numbers, and 1.0 is not 1; convert it with .astype(int)"
        )
    if array.dtype.kind not in "iuOUf":
        raise place.error(f"the array of arguments holds {array.dtype}, not integers")
    columns: list[Any] = [array[:, i] for i in range(place.arity)]
    if values is not None and not is_array(values):
        if not isinstance(values, list | tuple):
            raise place.error(f"{shown(values)} is not an array of values; a pair is (arguments, values)")
        values = list(values)
    return Raw(len(array), columns, values, from_array=True)


def _from_array(place: Place, rows: Any, value_shape: ValueShape) -> Raw:
    array = as_array(place, rows)
    if array.dtype.names is not None and array.ndim == 1:  # a record array is a frame
        names = array.dtype.names
        return _from_frame(place, [array[name] for name in names], len(array), lambda _, __, column: column, names)
    vectors = has_width(value_shape)
    if array.dtype.kind in "USO" and any(isinstance(x, str | bytes) for x in array.reshape(-1)[:1].tolist()):
        rows_of = "zip(array)" if array.ndim == 1 else "map(tuple, array.tolist())"
        raise place.error(
            "an array of texts was given, and a dense table is one of numbers; symbols are strings in rows: "
            f"list({rows_of})"
        )
    if array.ndim != place.arity + vectors:
        last = " and one for the parts of a value" if vectors else ""
        raise place.error(
            f"an array of shape {array.shape} was given; a dense table has one dimension per argument, {place.arity} "
            f"here{last}; rows of integers are given as a pair (arguments, values)"
        )
    shape = array.shape[: place.arity]
    for index, size in enumerate(shape):
        if size > INTEGER_MAX:
            raise place.error(f"{counted(size, 'cell')} are beyond the range of integers", None, index)
    count = math.prod(shape)
    columns: list[Any] = []
    repeats, tiles = count, 1
    for size in shape:
        repeats = repeats // size if size else 0
        columns.append(IntColumn(np.tile(np.repeat(np.arange(size, dtype=np.int64), repeats), tiles)))
        tiles *= size
    return Raw(count, columns, array.reshape(count, *array.shape[place.arity :]), dense_shape=shape)


# -- frames and Arrow ------------------------------------------------------------------------------------------------


def _from_frame(
    place: Place,
    columns: Sequence[Any],
    count: int,
    read_column: Callable[[Place, int, Any], Any],
    names: Iterable[Any],
) -> Raw:
    if not (len(columns) or count):  # an empty frame has no columns: pd.DataFrame([])
        return _from_rows(place, [])
    if len(columns) not in (place.arity, place.arity + 1):
        raise place.error(
            f"the table has {_columns(len(columns))}, but {_widths(place)}{_key_for(place, len(columns))}; "
            "or choose columns"
        )
    raw = [read_column(place, index, column) for index, column in enumerate(columns)]
    values = raw[place.arity] if len(raw) > place.arity else None
    return Raw(count, raw[: place.arity], values, from_array=True, names=column_names(names))


def column_names(given: Iterable[Any]) -> tuple[str, ...] | None:
    """The names of columns, if all are texts and distinct."""
    names = tuple(given)
    return names if all(isinstance(n, str) and n for n in names) and len(set(names)) == len(names) else None


def _from_series(place: Place, rows: Any) -> Raw:
    """A pandas Series: its index has the arguments; but a Series of texts with a default index is a column of them."""
    kind = getattr(rows.dtype, "kind", "O")
    if place.arity == 1 and kind not in "iufb" and _is_counted(rows.index):
        return Raw(len(rows), [_pandas_column(place, 0, rows)], None, from_array=True, names=column_names([rows.name]))
    index = rows.index
    if index.nlevels != place.arity:
        raise place.error(
            f"the index of the Series has {counted(index.nlevels, 'level')}, and the predicate "
            f"has {counted(place.arity, 'argument')}; the index has the arguments of each value"
        )
    frame = index.to_frame(index=False)
    columns = [_pandas_column(place, i, frame.iloc[:, i]) for i in range(place.arity)]
    values = _pandas_column(place, place.arity, rows)
    return Raw(len(rows), columns, values, from_array=True, names=column_names([*index.names, rows.name]))


def _is_counted(index: Any) -> bool:
    """Whether an index is the default one, which counts the rows."""
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1


def _from_polars_series(place: Place, rows: Any, value_shape: ValueShape) -> Raw:
    """A polars Series: numbers are the values of the arguments 0, 1, ...; anything else is a column of arguments."""
    if place.arity != 1:
        raise place.error(
            f"a Series has one column, and the predicate has {counted(place.arity, 'argument')}; give a frame"
        )
    if rows.dtype.is_integer() or rows.dtype.is_float():
        return _from_array(place, _polars_column(place, 1, rows), value_shape)
    return Raw(len(rows), [_polars_column(place, 0, rows)], None, from_array=True, names=column_names([rows.name]))


def _pandas_column(place: Place, index: int, column: Any) -> Any:
    dtype = column.dtype
    kind = getattr(dtype, "kind", "O")
    if isinstance(dtype, np.dtype) and kind in "iufb":
        return column.to_numpy()
    missing = np.asarray(column.isna())
    if missing.any():
        raise place.error(MISSING, int(missing.argmax()), index)
    if kind in "iufb":
        return column.to_numpy(dtype=getattr(dtype, "numpy_dtype", None))
    return column.tolist()


def _polars_column(place: Place, index: int, column: Any) -> Any:
    if column.null_count():
        raise place.error(MISSING, int(column.is_null().arg_max()), index)
    if (
        column.dtype.is_integer() and "128" not in str(column.dtype)
    ) or column.dtype.is_float():  # numpy has none of 128
        return column.to_numpy()
    return column.to_list()


def from_arrow(place: Place, rows: Any) -> Raw:
    """The raw columns of anything that exports an Arrow stream or array."""
    pa = optional("pyarrow", "an Arrow table")
    try:
        if not isinstance(rows, pa.Table):
            rows = pa.table(rows)
        rows.validate(full=True)  # the code below trusts lengths, offsets, indices and texts
    except Exception as error:  # the exporter of the stream may raise anything
        raise place.error(f"the {type(rows).__name__} is not an Arrow table of facts: {raised(error)}") from error
    return _from_frame(place, rows.columns, rows.num_rows, _arrow_column, rows.column_names)


def _arrow_column(place: Place, index: int, chunks: Any) -> Any:
    types = optional("pyarrow", "an Arrow table").types
    settled = False
    if chunks.null_count:
        missing = chunks.is_null().to_numpy(zero_copy_only=False) if hasattr(chunks, "is_null") else np.ones(1)
        raise place.error(MISSING, int(missing.argmax()), index)
    if types.is_dictionary(chunks.type):
        if not _is_arrow_text(types, chunks.type.value_type):
            return _arrow_column(place, index, chunks.cast(chunks.type.value_type))
    elif _is_arrow_text(types, chunks.type):
        chunks = chunks.dictionary_encode()
        settled = True  # each text occurs once, in the order of first rows
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
            raise place.error(MISSING, int(bad.argmax()), index)
    return Coded(codes, names, settled)


def _is_arrow_text(types: Any, kind: Any) -> bool:
    tests = ("is_string", "is_large_string", "is_string_view")
    return any(getattr(types, test)(kind) for test in tests if hasattr(types, test))
