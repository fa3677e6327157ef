"""What operations on whole arrays tell those who rewrite and compile graphs, and how an operation is added.

`Operation.code` is a tuple: the family, and the parameters that its declaration fixed. Shapes are among them only
where no argument has them, since nodes know theirs. What holds for a family stands in `FAMILIES`, for operations on
elements on their declarations.

To add an operation on arrays: declare it in ops/arrays.py (or reductions.py, matrices.py, or a file beside them) with
`linear` or `several`: its value in numpy, its tangent, its adjoint, in operations that are there. That is all: it can
be differentiated to any order, traced, and run by compiled code, which calls numpy for what it does not know. Its
`code` says a family of the table where it belongs to one, and else a new one, with a reason in BY_NUMPY until native
code knows it. An elementwise operation goes to ops/scalars.py, and its `cxx` is the native code.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import Error
from .node import Node
from .operation import Operation
from .ops.places import Pattern, pattern_of
from .types import Shape


@dataclass(frozen=True)
class Family:
    """Operations on whole arrays that differ in their parameters alone."""

    parameters: tuple[str, ...]
    result: str  # what it is
    role: str = "whole"
    """What native code makes of it: a `view` is arithmetic with indices, an `update` writes pieces over an array, of
    `each` an element is computed by itself, a `fold` joins elements along axes, the `whole` is left to a function."""
    fold: str = ""  # the function of call.hpp that joins two elements
    same: bool = False  # whether it only says in which order the same elements stand
    moves: bool = False  # whether it only moves elements, and adds zeros: the sum of two is one of the sum
    shown: tuple[str, ...] | None = None  # what the text of a graph calls its parameters; None where they have no names
    joins: bool = False  # whether its arguments stand side by side in the result
    elements: Literal["computed", "kept", "picked"] = "computed"
    """Whether each element of the result is one of an argument, or a sum of some; `picked`: not of all of them."""


FAMILIES: Mapping[str, Family] = {
    "broadcast": Family((), "the argument, repeated to the node's shape", role="view", shown=(), elements="kept"),
    "sum_to": Family(
        (),
        "summed over what broadcasting to the argument's shape would have repeated",
        role="fold",
        fold="plus",
        shown=(),
        elements="kept",
    ),
    "reshape": Family(
        (), "the same elements in the order of C", role="view", same=True, moves=True, shown=(), elements="kept"
    ),
    "transpose": Family(
        ("axes",),
        "axis i is axis axes[i] of the argument",
        role="view",
        same=True,
        moves=True,
        shown=("axes",),
        elements="kept",
    ),
    "sum": Family(
        ("axes", "keepdims"),
        "the sum over axes, counted from 0",
        role="fold",
        fold="plus",
        shown=("axis", "keepdims"),
        elements="kept",
    ),
    "prod": Family(
        ("axes", "keepdims"), "the product over axes", role="fold", fold="times", shown=("axis", "keepdims")
    ),
    "max": Family(
        ("axes", "keepdims"),
        "the largest over axes",
        role="fold",
        fold="larger",
        shown=("axis", "keepdims"),
        elements="picked",
    ),
    "min": Family(
        ("axes", "keepdims"),
        "the smallest over axes",
        role="fold",
        fold="smaller",
        shown=("axis", "keepdims"),
        elements="picked",
    ),
    "winners": Family(("largest", "axes"), "truth values: where the first largest, or smallest, of the axes stands"),
    "logsumexp": Family(("axes", "keepdims"), "the log of the sum of exponentials over axes"),
    "softmax": Family(("axes",), "exponentials over their sum over axes"),
    "log_softmax": Family(("axes",), "the logs of these"),
    "cumsum": Family(("axis",), "running sums", shown=("axis",)),
    "cumprod": Family(("axis",), "running products", shown=("axis",)),
    "item": Family(
        ("pattern",), "the argument at a place (`ops/places.py`); others fill the pattern's holes", role="view"
    ),
    "add_at": Family(("pattern",), "the first argument, with the second added at a place", role="update"),
    "set_at": Family(("pattern",), "the first argument, with the second standing at a place", role="update"),
    "getitem": Family(("index",), "the argument at Python's index, see `code_of`", role="view", elements="picked"),
    "place": Family(
        ("index", "shape"),
        "zeros of that shape with the argument at an index",
        role="update",
        moves=True,
        elements="kept",
    ),
    "take_along": Family(("axis",), "np.take_along_axis; the second argument is places", elements="picked"),
    "put_along": Family(
        ("axis", "shape"),
        "zeros of that shape with the first argument added at the places of the second",
        elements="kept",
    ),
    "sort": Family(("axis",), "in ascending order; NaN comes last", shown=("axis",), elements="kept"),
    "argsort": Family(
        ("axis",), "the places in ascending order, equals as they stand; NaN comes last", shown=("axis",)
    ),
    "roll": Family(("shift", "axis"), "moved round an axis", role="each", moves=True, elements="kept"),
    "triangle": Family(
        ("lower", "k"), "matrices with zeros above, or else below, the k-th diagonal", role="each", elements="picked"
    ),
    "diagonal": Family(("offset",), "the diagonals of matrices", role="view", elements="picked"),
    "on_diagonal": Family(
        ("offset", "shape"),
        "matrices of zeros, of that shape together, with the argument on a diagonal",
        role="update",
        elements="kept",
    ),
    "concatenate": Family(
        ("axis",), "the arguments along an axis", role="update", joins=True, shown=("axis",), elements="kept"
    ),
    "stack": Family(
        ("axis",), "the arguments along a new axis", role="update", joins=True, shown=("axis",), elements="kept"
    ),
    "matmul": Family((), "as numpy's", role="fold", shown=()),
    "windows": Family(
        ("axes",), "the stretches along axes, of which the node's new last axes are one", role="view", elements="kept"
    ),
    "overlaps": Family(
        ("axes", "sizes", "shape"), "windows of these sizes added up to an array of that shape", elements="kept"
    ),
    "convolve": Family(("full",), "of two rows: where they overlap, or where the second lies within the first"),
    "einsum": Family(
        ("inputs", "output"), "letters of each argument and of the result: see `arrays.einsum`", role="fold"
    ),
    "solve": Family((), "the columns of the second argument, divided by the matrix that is the first", shown=()),
    "solve_lower": Family(
        ("transposed",), "the same with the lower triangle of a matrix, or with its transpose", shown=()
    ),
    "lower_product": Family((), "the lower triangle of a transposed lower triangle times a matrix", shown=()),
    "inv": Family(
        ("strict",), "of matrices; `strict` for a derivative, which does not exist at a singular one", shown=()
    ),
    "det": Family((), "the determinants of matrices on the last two axes", shown=()),
    "cofactors": Family((), "their cofactors", shown=()),
    "cholesky": Family((), "their lower Cholesky factors", shown=()),
    "logabsdet": Family((), "the logs of the sizes of determinants"),
    "slogdet_sign": Family((), "the signs of determinants"),
    "symmetric": Family((), "the lower triangle, mirrored"),
}
"""The families that native code knows. Others are computed by numpy, since they are rare, large, or both: BY_NUMPY."""

_SVD = "an iteration of LAPACK that costs far more than a call of numpy"
_RULE = "stands in derivatives of decompositions only"
BY_NUMPY: dict[str, str] = {
    "eigvalsh": _SVD,
    "eigenvectors": _SVD,
    "svdvals": _SVD,
    "svd_u": _SVD,
    "svd_v": _SVD,
    "qr_q": "a decomposition of LAPACK, whose two results numpy computes at once",
    "qr_r": "a decomposition of LAPACK, whose two results numpy computes at once",
    "pinv": _SVD,
    "of_some_rank": _RULE,
    "mixed_cofactors": "by an elimination with complete pivoting",
    "left_basis": "made of singular values",
    "right_basis": "made of singular values",
    "orientation": "made of singular values",
    "gaps": _RULE,
    "reciprocal": _RULE,
}
"""Families that native code leaves to numpy, and why; the parameters are a triangle ("L", "U"), a count, a name."""


def code_of(node: Node) -> tuple[Any, ...]:
    """The tag of a node's operation, () where it has none; Python's index is a pattern then, as ir/ops/places.py has
    it.

    >>> from dynagrad.ir.ops.arrays import getitem
    >>> from dynagrad.ir.node import fresh
    >>> from dynagrad.ir.types import arrays, real
    >>> code_of(getitem((..., slice(None, None, -1)))(fresh(arrays(real, (4, 5)))))
    ('getitem', (Slice(start=0, stop=4, step=1), Slice(start=4, stop=-1, step=-1)))
    """
    code = node.operation.code
    if not isinstance(code, tuple):
        return ()
    if code[0] not in ("getitem", "place"):
        return code
    found = pattern_at(node.operation, node.arguments[0].type.shape)
    return () if found is None else (code[0], found[0], *code[2:])


@functools.lru_cache(maxsize=4096)
def pattern_at(operation: Operation, shape: Shape) -> tuple[Pattern, tuple[Any, ...]] | None:
    """The pattern of an index of Python's, and the arrays that fill its holes; None where it makes none.

    The pattern depends on the shape of the array, which is that of the argument or, of `place`, known to the operation.
    """
    code = operation.code
    assert isinstance(code, tuple)
    try:
        return pattern_of(shape if code[0] == "getitem" else code[2], code[1])
    except Error:
        return None


def family_of(operation: Operation) -> Family | None:
    """The family of an operation on whole arrays, where it is one that native code knows."""
    code = operation.code
    return FAMILIES.get(code[0]) if isinstance(code, tuple) and code else None
