"""Tables out: rows of arguments with values, as queries and gradients return them.

A `Table` is a read-only interface to a `Relation`; it can be given as facts again. pandas and pyarrow are imported only
when they are asked for.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..calls import maker, public
from ..errors import FactError, QueryError, counted, cut, shown
from ..packages import optional
from .relation import AtomColumn, Column, IntColumn, Relation, RelationHolder, take
from .terms import Interner, canonical, float_text, symbol_text, term_text

ROWS_SHOWN = 20
SCANS = 8  # lookups by a scan of all rows, before an index is built
CANDIDATES = 500  # rows that are compared to find the nearest one for an error


class Table(RelationHolder):
    """Rows `(arguments..., value)` of one predicate; symbols are `str`, lists tuples, other terms `dg.Term`.

    Queries make them, and they may be given as facts. A lookup of a row that is not there raises `QueryError`, which
    names the nearest one.

    >>> from dynagrad.facts.readers import read
    >>> table = make_table(read("rewrite/2", [("np", "det", 0.25), ("np", "n", 0.75)]))
    >>> table["np", "n"], len(table), list(table)[0]
    (0.75, 2, ('np', 'det', 0.25))
    >>> table.values
    array([0.25, 0.75])
    >>> table
    rewrite/2: 2 rows
      np  det  0.25
      np  n    0.75
    """

    __slots__ = ("_finders", "_index", "_relation", "_scans", "names")

    names: tuple[str, ...]
    """The names of the columns in frames and Arrow tables, the value last."""

    def __init__(self, relation: Relation, names: Sequence[str] | None = None) -> None:
        if relation.values is None:
            relation = replace(relation, values=np.ones(relation.count, np.bool_), value_shape="boolean")
        if names is None:
            names = _names(relation)
        if len(names) != relation.arity + 1 or len(set(names)) != len(names):
            raise QueryError(f"{relation.key} needs {relation.arity + 1} different names for its columns")
        self._relation = replace(relation, files=()) if relation.files else relation  # its values are of no file
        self.names = tuple(names)
        self._finders: list[tuple[npt.NDArray[np.int64], Callable[[Any], int | None]]] | None = None
        self._index: dict[tuple[int, ...], int] | None = None
        self._scans = 0

    # -- columns

    @property
    def key(self) -> str:
        """The predicate, such as `rewrite/3`."""
        return self._relation.key

    @property
    def arity(self) -> int:
        """The number of columns of arguments."""
        return self._relation.arity

    @property
    def values(self) -> npt.NDArray[Any]:
        """The values in the order of the rows, as a read-only array; for a dense table in the shape of its facts.

        In `expectation` and for tuples it has a row per fact and a column per number.
        """
        assert self._relation.values is not None
        values = self._relation.values.view()
        if self._relation.dense_shape is not None:
            values = values.reshape(*self._relation.dense_shape, *values.shape[1:])
        values.flags.writeable = False
        return values

    @property
    @public
    def arguments(self) -> list[Any]:
        """The columns of arguments: arrays where all are integers, else lists."""
        return [_exposed(column) for column in self._relation.columns]

    def __len__(self) -> int:
        return self._relation.count

    @public
    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return zip(*(column.to_list() for column in self._relation.columns), self._python_values(), strict=True)

    def __reversed__(self) -> Iterator[tuple[Any, ...]]:
        """The rows, the last first."""
        return iter(list(self)[::-1])

    def _python_values(self) -> list[Any]:
        values: npt.NDArray[Any] | None = self._relation.values
        assert values is not None
        listed: list[Any] = values.tolist()
        if values.ndim == 1:
            return listed
        return list(map(_pair if self._relation.value_shape == "expectation" else tuple, listed))

    def __eq__(self, other: object) -> bool:
        """Whether the rows are the same in the same order."""
        if not isinstance(other, Table):
            return NotImplemented
        if (self.key, len(self)) != (other.key, len(other)):
            return False
        if self._python_values() != other._python_values():
            return False
        columns = zip(self._relation.columns, other._relation.columns, strict=True)
        return all(_same_column(left, right) for left, right in columns)

    def __dynagrad_relation__(self) -> Relation:
        return self._relation

    __hash__ = None  # type: ignore[assignment]  # as for any container that compares by what it holds

    def __reduce__(self) -> tuple[Callable[..., Table], tuple[Relation, tuple[str, ...]]]:
        return make_table, (self._relation, self.names)

    # -- lookup

    @public
    def __getitem__(self, arguments: Any) -> Any:
        """The value of the first row with these arguments: `table["s", "np"]`, `table["x"]`, `table[()]`."""
        given = arguments if isinstance(arguments, tuple) else (arguments,)
        if len(given) != self.arity:
            hint = f"; a list alone is written ({shown(arguments)},)" if self.arity == 1 and len(given) > 1 else ""
            raise QueryError(f"{self.key} is looked up by {counted(self.arity, 'argument')}, not by {len(given)}{hint}")
        row = self._row(given)
        assert self._relation.values is not None
        value = self._relation.values[row]
        if isinstance(value, np.ndarray):
            numbers = tuple(value.tolist())
            return _pair(numbers) if self._relation.value_shape == "expectation" else numbers
        return value.item() if isinstance(value, np.generic) else value

    def _row(self, given: tuple[Any, ...]) -> int:
        if self._finders is None:
            self._finders = [_finder(column) for column in self._relation.columns]
        codes = []
        for place, (value, (_, find)) in enumerate(zip(given, self._finders, strict=True), 1):
            try:
                codes.append(find(canonical(value)))
            except FactError as error:
                raise QueryError(f"{self.key}, argument {place} of a lookup: {error}") from None
        if None not in codes:
            row = self._find([code for code in codes if code is not None])
            if row is not None:
                return row
        raise QueryError(self._nothing(given, codes))

    def _find(self, codes: list[int]) -> int | None:
        assert self._finders is not None
        if not self.arity:
            return 0 if len(self) else None
        if self._index is None and self._scans < SCANS:
            self._scans += 1
            found = np.ones(len(self), np.bool_)
            for (column, _), code in zip(self._finders, codes, strict=True):
                found &= column == code
            row = int(found.argmax()) if len(found) else 0
            return row if len(found) and found[row] else None
        if self._index is None:
            rows = zip(*(column[::-1].tolist() for column, _ in self._finders), strict=True)
            last = len(self) - 1  # in reverse, so that the first of several equal rows stays
            self._index = {row: last - i for i, row in enumerate(rows)}
        return self._index.get(tuple(codes))

    def _nothing(self, given: tuple[Any, ...], codes: list[int | None]) -> str:
        """The message where no row matches, with the row that agrees in most arguments, then in most letters."""
        wanted = self._item_text(given)
        if not len(self):
            return f"there is no {wanted}: the table is empty"
        assert self._finders is not None
        agree = np.zeros(len(self), np.int64)
        for (column, _), code in zip(self._finders, codes, strict=True):
            if code is not None:
                agree += column == code
        rows = np.flatnonzero(agree == agree.max())[:CANDIDATES]
        columns = [column.take(rows).to_list() for column in self._relation.columns]
        texts = [self._item_text(row) for row in zip(*columns, strict=True)]
        matcher = difflib.SequenceMatcher(b=wanted, autojunk=False)

        def likeness(text: str) -> float:
            matcher.set_seq1(text)
            return matcher.ratio()

        return f"there is no {wanted}; the nearest is {max(texts, key=likeness)}"

    def _item_text(self, arguments: Sequence[Any]) -> str:
        name = symbol_text(self.key.rsplit("/", 1)[0])
        return f"{cut(name, 60)}({','.join(term_text(a, 40) for a in arguments)})" if arguments else name

    # -- conversions

    @public
    def to_arrow(self) -> Any:
        """A `pyarrow.Table`. Lists of symbols or of integers become lists, other terms texts in the syntax of rules."""
        pa = optional("pyarrow", "an Arrow table")
        arrays = [_arrow_column(pa, column) for column in self._relation.columns]
        return pa.table([*arrays, self._arrow_values(pa)], names=list(self.names))

    def _arrow_values(self, pa: Any) -> Any:
        values = self._relation.values
        assert values is not None
        if values.ndim == 2 and values.shape[1]:
            flat = pa.array(np.ascontiguousarray(values).reshape(-1))
            return pa.FixedSizeListArray.from_arrays(flat, values.shape[1])
        if values.dtype != object:
            return pa.array(values)
        try:
            return pa.array(values.tolist(), pa.int64())
        except (OverflowError, pa.ArrowException):
            return pa.array([str(value) if value.bit_length() < 10_000 else hex(value) for value in values.tolist()])

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    @public
    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with a column per argument and the value last; names are those of facts in a frame."""
        pd = optional("pandas", "a data frame")
        columns: dict[str, Any] = {}
        for name, column in zip(self.names, self._relation.columns, strict=False):
            columns[name] = column.numbers if isinstance(column, IntColumn) else _objects(column.to_list())
        values = self._relation.values
        assert values is not None
        columns[self.names[-1]] = values if values.ndim == 1 else _objects(self._python_values())
        return pd.DataFrame(columns)

    def __repr__(self) -> str:
        count = len(self)
        title = f"{self.key}: {counted(count, 'row')}"
        head = make_table(take(self._relation, np.arange(ROWS_SHOWN))) if count > ROWS_SHOWN else self
        cells = [[_cell(value) for value in row] for row in head]
        numbers = [all(isinstance(row[i], int | float) for row in head) for i in range(self.arity + 1)]
        widths = [max((len(row[i]) for row in cells), default=0) for i in range(self.arity + 1)]
        lines = [
            "  "
            + "  ".join(
                cell.rjust(width) if number and i < self.arity else cell.ljust(width)
                for i, (cell, width, number) in enumerate(zip(row, widths, numbers, strict=True))
            ).rstrip()
            for row in cells
        ]
        if count > ROWS_SHOWN:
            lines.append(f"  ... {count - ROWS_SHOWN} more")
        return "\n".join([title, *lines])


def relation_of(table: Table) -> Relation:
    """The relation behind a table, for other rooms of the package."""
    return table._relation


make_table = maker(
    Table,
    "tables come from chart.query, chart.table and gradients; facts are given as they are, such as a list of tuples",
)


# -- columns ---------------------------------------------------------------------------------------------------------


def _names(relation: Relation) -> tuple[str, ...]:
    """The names of the columns in the frame that the facts came as, else default ones."""
    names = relation.names
    if names is None or len(names) < relation.arity:
        return (*(f"arg{i}" for i in range(1, relation.arity + 1)), "value")
    if len(names) > relation.arity:
        return names
    last = "value"
    while last in names:
        last += "_"
    return (*names, last)


def _exposed(column: Column) -> Any:
    if not isinstance(column, IntColumn):
        return column.to_list()
    numbers = column.numbers.view()
    numbers.flags.writeable = False
    return numbers


def _objects(values: list[Any]) -> npt.NDArray[Any]:
    """An array of Python objects; `np.array` would make rows of tuples."""
    array = np.empty(len(values), object)
    for i, value in enumerate(values):
        array[i] = value
    return array


def _pair(numbers: Sequence[float]) -> tuple[float, Any]:
    return (numbers[0], numbers[1] if len(numbers) == 2 else tuple(numbers[1:]))


def _finder(column: Column) -> tuple[npt.NDArray[np.int64], Callable[[Any], int | None]]:
    """The codes of a column, and a function from a canonical term to its code, or None where no row has it."""
    if isinstance(column, IntColumn):
        return column.numbers, lambda value: value if type(value) is int else None
    if isinstance(column, AtomColumn):
        codes = {(type(value), value): code for code, value in enumerate(column.atoms)}

        def find(value: Any) -> int | None:
            if value == ():
                value = "nil"
            return codes.get((type(value), value)) if isinstance(value, str | int | float) else None

        return column.codes.astype(np.int64), find
    interner = Interner()
    return np.fromiter(map(interner.add, column.terms), np.int64, len(column.terms)), interner.add


def _same_column(left: Column, right: Column) -> bool:
    if isinstance(left, IntColumn) and isinstance(right, IntColumn):
        return bool(np.array_equal(left.numbers, right.numbers))
    interner = Interner()
    return list(map(interner.add, left.to_list())) == list(map(interner.add, right.to_list()))


def _arrow_column(pa: Any, column: Column) -> Any:
    if isinstance(column, IntColumn):
        return pa.array(column.numbers)
    if isinstance(column, AtomColumn):
        kinds = set(map(type, column.atoms))
        atoms = column.atoms if len(kinds) < 2 else list(map(term_text, column.atoms))
        types = {float: pa.float64(), int: pa.int64()}
        typed = pa.array(atoms, types.get(kinds.pop(), pa.large_string()) if len(kinds) == 1 else pa.large_string())
        return typed.take(pa.array(column.codes))
    for kind, element in ((str, pa.large_string()), (int, pa.int64())):
        if all(type(value) is tuple and set(map(type, value)) <= {kind} for value in column.terms):
            return pa.array(map(list, column.terms), pa.list_(element))
    return pa.array(map(term_text, column.terms), pa.large_string())


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int) and value.bit_length() > 300:
        return shown(value)
    if isinstance(value, int | float):
        return cut(float_text(value), 60)
    return term_text(value, 60)
