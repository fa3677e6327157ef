"""Relations and numbers as Arrow files, and back to the same bits.

A column of symbols is a column of strings; what Arrow has no type for, terms and symbols with numbers among them, is
JSON in strings. What a column is stands in the metadata of its field.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...errors import Error, counted
from ...facts.relation import AtomColumn, Column, IntColumn, Relation, TermColumn, TextColumn, atom_column, encode
from ...forests.storage import term_from_json, term_to_json
from ...packages import optional

ARGUMENT, VALUE = "argument ", "value"


def arrow() -> Any:
    """The library that reads and writes Arrow files."""
    return optional("pyarrow", "a folder with a model")


def file_of(columns: Mapping[str, Any], about: Mapping[str, Any] | None = None) -> bytes:
    """An Arrow file of columns by name, which are numpy's or Arrow's arrays, perhaps with metadata."""
    pa = arrow()
    fields, arrays = [], []
    for name, column in columns.items():
        array, kind = column if isinstance(column, tuple) else (column, None)
        array = array if isinstance(array, pa.Array) else pa.array(array)
        arrays.append(array)
        fields.append(pa.field(name, array.type, metadata=None if kind is None else {"kind": kind}))
    schema = pa.schema(fields, metadata={"about": json.dumps(about or {})})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as writer:
        writer.write_table(pa.table(arrays, schema=schema))
    return bytes(sink.getvalue())


def table_of(data: bytes) -> Any:
    """The `pyarrow.Table` of a file, in one piece and valid."""
    pa = arrow()
    table = pa.ipc.open_file(pa.BufferReader(data)).read_all()
    table.validate(full=True)
    return table.combine_chunks()


def numbers(table: Any, name: str) -> Any:
    """A column of numbers, none of which is missing."""
    column = table.column(name)
    if column.null_count:
        raise ValueError(f"the column {name} has gaps")
    return column.to_numpy().copy()


# -- relations ---------------------------------------------------------------------------------------------------------


def columns_of(relation: Relation) -> tuple[dict[str, Any], dict[str, Any]]:
    """A relation as columns, and what is to be known beside."""
    found: dict[str, Any] = {f"{ARGUMENT}{n + 1}": _written(column) for n, column in enumerate(relation.columns)}
    if relation.values is not None:
        found[VALUE] = np.ascontiguousarray(relation.values, np.float64)
    about = {"key": relation.key, "rows": relation.count, "shape": relation.dense_shape, "names": relation.names}
    return found, about


def relation_of(table: Any) -> Relation:
    """A relation from its columns."""
    about = json.loads(table.schema.metadata[b"about"])
    arity = sum(name.startswith(ARGUMENT) for name in table.column_names)
    columns = tuple(_read(table, f"{ARGUMENT}{n + 1}") for n in range(arity))
    values = numbers(table, VALUE) if VALUE in table.column_names else None
    count = int(about["rows"])
    if table.num_columns and table.num_rows != count:
        raise ValueError(f"{about['key']} has {counted(table.num_rows, 'row')}, not {count}")
    shape, names = about["shape"], about["names"]
    return Relation(
        about["key"],
        count,
        columns,
        values,
        dense_shape=None if shape is None else tuple(shape),
        names=None if names is None else tuple(names),
    )


def _written(column: Column) -> tuple[Any, str]:
    if isinstance(column, IntColumn):
        return column.numbers, "integers"
    values = column.to_list()
    if isinstance(column, AtomColumn) and all(type(x) is str for x in column.atoms):
        try:
            return arrow().array(values, arrow().string()), "texts" if isinstance(column, TextColumn) else "symbols"
        except UnicodeEncodeError:  # half a pair of surrogates
            pass
    return jsons(values), "terms" if isinstance(column, TermColumn) else "atoms"


def _read(table: Any, name: str) -> Column:
    kind = table.field(name).metadata[b"kind"].decode()
    if kind == "integers":
        return IntColumn(numbers(table, name).astype(np.int64))
    values = table.column(name).to_pylist()
    if kind in ("symbols", "texts"):
        if not all(type(x) is str for x in values):
            raise ValueError(f"{name} has gaps")
        return (TextColumn if kind == "texts" else AtomColumn)(*encode(values))
    terms = [term_from_json(json.loads(x)) for x in values]
    return atom_column(terms) if kind == "atoms" else TermColumn(terms)


def jsons(values: list[Any]) -> Any:
    """Terms as JSON in a column of strings."""
    try:
        return arrow().array([json.dumps(term_to_json(x)) for x in values], arrow().string())
    except RecursionError:
        raise Error("a term of the model is nested too deep to be saved") from None
    except TypeError as error:
        raise Error(f"a model with something that is no term cannot be saved: {error}") from None
