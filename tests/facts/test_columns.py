"""Columns of arguments: their kind follows from their entries, whose types they keep."""

import pytest

from dynagrad.errors import FactError
from dynagrad.facts.readers import read
from dynagrad.facts.relation import AtomColumn, TermColumn
from dynagrad.facts.terms import Term


def test_lists_and_terms_make_a_column_of_terms() -> None:
    relation = read("p/1", [(["n", ["pp"]],), ("x",), (Term("f", 1),), ((),), (3,)])
    assert isinstance(relation.columns[0], TermColumn)
    assert relation.columns[0].to_list() == [("n", ("pp",)), "x", Term("f", 1), (), 3]


def test_mixed_atoms_keep_their_types() -> None:
    column = read("p/1", [(1,), (1.0,), ("1",), (0.0,), (-0.0,), (1,)]).columns[0]
    assert isinstance(column, AtomColumn)
    assert [(type(atom), atom) for atom in column.atoms] == [(int, 1), (float, 1.0), (str, "1"), (float, 0.0)]
    assert column.codes.tolist() == [0, 1, 2, 3, 3, 0]


def test_columns_of_floats_in_frames_are_taken_for_a_mistake_unless_declared() -> None:
    frame = pytest.importorskip("pandas").DataFrame({"left": ["s", "s", "np"], "n": [1.0, 2.0, 1.0]})
    with pytest.raises(FactError, match=r"row 1, column 2: 1.0 is a float, and 1.0 is not 1; convert .*astype\(int\)"):
        read("p/2", frame)
    column = read("p/2", frame, float_columns={1}).columns[1]
    assert column.to_list() == [1.0, 2.0, 1.0] and isinstance(column.to_list()[0], float)
    frame["n"] += 0.5
    assert read("p/2", frame).columns[1].to_list() == [1.5, 2.5, 1.5]
