"""The tags of array operations: every operation has one, the table lists it, and it says what is done."""

from __future__ import annotations

import types

import numpy as np
import pytest

from dynagrad.ir.code import BY_NUMPY, FAMILIES, code_of, pattern_at
from dynagrad.ir.node import Node, fresh
from dynagrad.ir.operation import Operation
from dynagrad.ir.ops import arrays, determinants, matrices, reductions
from dynagrad.ir.ops.places import HOLE, NEW, Slice, index_of
from dynagrad.ir.show import operation_text
from dynagrad.ir.types import arrays as array_type
from dynagrad.ir.types import real

# One choice of parameters for each operation that has some.
MADE = {
    "broadcast_to": ((2, 3),),
    "sum_to": ((3,),),
    "reshape": ((6,),),
    "transpose": ((1, 0),),
    "total": ((0,), True),
    "product": ((1,), False),
    "winners": (True, (1,)),
    "extreme": (False, (0,), False),
    "cumsum": (1,),
    "cumprod": (0,),
    "getitem": (1,),
    "place": ((1,), (3,)),
    "take_along": (0,),
    "put_along": (0, (3, 2)),
    "argsort": (1,),
    "sort": (1,),
    "roll": (2, 0),
    "triangle": (True, -1),
    "diagonal": (1,),
    "on_diagonal": (1, (3, 3)),
    "concatenate": (0, 2),
    "stack": (1, 2),
    "einsum": (("ij", "jk"), "ik"),
    "mixed_cofactors": (2,),
}


def operations() -> dict[str, Operation]:
    """All that these files declare, and one of each kind that is made with parameters."""
    found = {}
    for module in (arrays, reductions, matrices, determinants):
        for name, value in vars(module).items():
            if isinstance(value, Operation):
                found[name] = value
            elif name in MADE:
                found[name] = value(*MADE[name])
    return found


def real_of(*shape: int) -> Node:
    return fresh(array_type(real, shape))


@pytest.mark.parametrize("name", operations())
def test_every_operation_has_a_tag_that_the_table_lists(name: str) -> None:
    tag = operations()[name].code
    assert isinstance(tag, tuple)
    assert (tag[0] in FAMILIES) != (tag[0] in BY_NUMPY)
    if tag[0] in FAMILIES:
        assert len(tag) == 1 + len(FAMILIES[tag[0]].parameters)


def test_every_maker_of_operations_is_looked_at_here() -> None:
    makers = {
        name
        for module in (arrays, reductions, matrices, determinants)
        for name, value in vars(module).items()
        if hasattr(value, "cache_info") and not name.startswith("_")
    }
    makers |= {
        name
        for module in (arrays, reductions, matrices, determinants)
        for name, value in vars(module).items()
        if isinstance(value, types.FunctionType) and value.__annotations__.get("return") == "Operation"
    } - {"linear", "several", "cut"}
    assert {name for name in makers if not name.startswith("_")} == set(MADE)


def test_reasons_are_given_for_families_that_are_there() -> None:
    assert set(BY_NUMPY) <= {operation.code[0] for operation in operations().values()}


def test_parameters_are_those_of_the_operation() -> None:
    assert reductions.total((0,), True).code == ("sum", (0,), True)
    assert reductions.extreme(False, (1,)).code == ("min", (1,), False)
    assert arrays.einsum(("ij", "jk"), "ik").code == ("einsum", ("ij", "jk"), "ik")
    assert arrays.on_diagonal(1, (3, 3)).code == ("on_diagonal", 1, (3, 3))


@pytest.mark.parametrize(
    "index",
    [
        2,
        -1,
        (slice(1, 3), -2),
        (..., 0),
        (..., slice(None, None, -1)),
        (None, slice(-2, None)),
        (slice(3, 0, -2), None, 4),
    ],
)
def test_the_pattern_of_an_index_is_the_index(index: object) -> None:
    x = np.arange(20.0).reshape(4, 5)
    read = code_of(arrays.getitem(index)(real_of(4, 5)))
    assert read[0] == "getitem" and all(isinstance(e, int | Slice) or e == NEW for e in read[1])
    assert np.array_equal(x[index_of(read[1], ())], x[index])
    key = index if isinstance(index, tuple) else (index,)
    put = code_of(arrays.place(key, (4, 5))(real_of(*x[index].shape)))
    assert put == ("place", read[1], (4, 5))


def test_arrays_in_an_index_are_holes_of_its_pattern() -> None:
    for taken, filled in (([1, 1], [1, 1]), (np.array([True, False, False, True]), [0, 3])):
        operation = arrays.getitem((taken,))
        assert code_of(operation(real_of(4))) == ("getitem", (HOLE,))
        found = pattern_at(operation, (4,))
        assert found is not None and [h.tolist() for h in found[1]] == [filled]
    assert code_of(arrays.place(([1, 1],), (4,))(real_of(2))) == ("place", (HOLE,), (4,))
    assert operation_text(arrays.getitem((slice(1, 3), [1, 0]))(real_of(4, 5)), ["x"]) == "x[1:3, [1, 0]]"


def test_an_operation_without_a_tag_has_none() -> None:
    assert code_of(real_of(2) * 2.0) == ()
