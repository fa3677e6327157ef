"""Examples from tables that have all of them, told apart by a column.

Facts of all examples alike are given to the model; files of examples are read by `training/examples.py`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from ...calls import public
from ...errors import FactError, shown
from ...facts.readers import read
from ...facts.relation import Relation, encode, take
from ..examples import Example


@public
def by_column(tables: Mapping[str, Any], column: str) -> list[Example]:
    """Examples from tables that have all of them one below the other: rows with the same in `column` are of one.

    `tables` are by predicate, as facts are, each a pandas or polars frame, an Arrow table, a record array or a dict of
    columns, with the column beside those of the arguments and perhaps one of values. Examples come in the order in
    which they are first named, with that as their names; where a table does not name one, its predicate has no facts.

    >>> words = {"sentence": [1, 1, 2], "word": ["the", "dog", "she"], "place": [0, 1, 0]}
    >>> for example in by_column({"word/2": words}, "sentence"):
    ...     print(example.name, example.facts["word/2"].columns[0].to_list())
    1 ['the', 'dog']
    2 ['she']
    """
    if not isinstance(tables, Mapping) or not tables:
        raise FactError(f"by_column takes a dict from predicates to tables, not {shown(tables)}")
    found: dict[Any, dict[str, Relation]] = {}
    empty: dict[str, Relation] = {}
    for key, table in tables.items():
        names, columns = _columns(key, table)
        if not isinstance(column, Hashable) or column not in names:
            raise FactError(f"the table of {key} has no column {shown(column)}; it has {', '.join(map(str, names))}")
        columns = [_listed(key, name, c) for name, c in zip(names, columns, strict=True)]
        if len(sizes := {len(c) for c in columns}) > 1:
            raise FactError(f"the columns of the table of {key} have {' and '.join(map(str, sorted(sizes)))} rows")
        at = names.index(column)
        for n, x in enumerate(columns[at]):
            if x is None or not isinstance(x, Hashable) or x != x:
                raise FactError(f"the table of {key}, row {n + 1}: {shown(x)} cannot name an example")
        number, parts = encode([(type(x), x) for x in columns[at]])
        left = {name: columns[n] for n, name in enumerate(names) if n != at}
        relation = read(key, list(zip(*left.values(), strict=True)))
        empty[key] = take(relation, np.zeros(0, np.int64))
        order = np.argsort(number, kind="stable")
        ends = np.cumsum(np.bincount(number, minlength=len(parts)))
        for part, rows in zip(parts, np.split(order, ends[:-1]), strict=True):
            found.setdefault(part, {})[key] = take(relation, rows)
    return [Example({**empty, **facts}, name=str(part[1])) for part, facts in found.items()]


def _columns(key: str, table: Any) -> tuple[list[Any], list[Any]]:
    """The names and the columns of a table."""
    if isinstance(table, Mapping):
        return list(table), list(table.values())
    if isinstance(table, np.ndarray) and table.dtype.names is not None:
        return list(table.dtype.names), [table[name] for name in table.dtype.names]
    if hasattr(table, "iloc") and hasattr(table, "columns"):
        return list(table.columns), [table.iloc[:, n] for n in range(table.shape[1])]
    if hasattr(table, "get_columns"):
        return list(table.columns), list(table.get_columns())
    if hasattr(table, "column_names"):
        return list(table.column_names), list(table.columns)
    raise FactError(f"{key}: {shown(table)} is no table with named columns; give a frame, or a dict of columns")


def _listed(key: str, name: Any, column: Any) -> list[Any]:
    """What a column has, in its order."""
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method) and not isinstance(column, type):
            return list(getattr(column, method)())
    if isinstance(column, str | bytes | Mapping) or not isinstance(column, Iterable):
        raise FactError(f"the table of {key}: its column {shown(name)} is {shown(column)}, and not a list")
    return list(column)
