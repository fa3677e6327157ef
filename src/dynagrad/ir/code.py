"""Families of array operations: what passes and code generation know of each, and how an operation is added.

`Operation.code` is a tuple: the family, and the parameters that the declaration fixed. Shapes are among them only
where no argument has them, since nodes know theirs. The properties of a family stand in `FAMILIES`, those of an
elementwise operation on its declaration.

To add an operation on arrays: declare it in ops/arrays.py (or reductions.py, matrices.py, or a file beside them) with
`linear` or `several`: its value in numpy, its tangent and its adjoint in terms of other operations. That is all: it can
be differentiated to any order, traced, and run by compiled code, which calls numpy for what it has no code for. Its
`code` names a family of the table or a new one, which stands with a reason in BY_NUMPY until native code knows it. An
elementwise operation goes to ops/scalars.py, and its `cxx` is the native code.
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
    """Array operations that differ only in their parameters."""

    parameters: tuple[str, ...]
    result: str  # what the operation computes
    lowering: str = "whole"
    """How native code computes it: a `view` is index arithmetic, an `update` writes pieces over an array, `each` is
    computed element by element, a `fold` reduces along axes, and `whole` is a call of a function; see
    `passes/classify.py`."""
    fold: str = ""  # the function of elements.hpp that combines two elements of a reduction
    same: bool = False  # whether the result is a permutation or reshaping of the argument
    moves: bool = False  # whether it only moves elements, and adds zeros: so it distributes over sums
    shown: tuple[str, ...] | None = None  # what the text of a graph calls its parameters; None where they have no names
    joins: bool = False  # whether the result consists of the arguments side by side
    elements: Literal["computed", "kept", "picked"] = "computed"
    """`kept`: each element of the result is an element of an argument, or a sum of some; `picked`: and some elements of
    an argument may be in none."""


FAMILIES: Mapping[str, Family] = {
    "broadcast": Family((), "the argument, repeated to the node's shape", lowering="view", shown=(), elements="kept"),
    "sum_to": Family(
        (),
        "summed over what broadcasting to the argument's shape would have repeated",
        lowering="fold",
        fold="plus",
        shown=(),
        elements="kept",
    ),
    "reshape": Family(
        (), "the same elements in row-major order", lowering="view", same=True, moves=True, shown=(), elements="kept"
    ),
    "transpose": Family(
        ("axes",),
        "axis i is axis axes[i] of the argument",
        lowering="view",
        same=True,
        moves=True,
        shown=("axes",),
        elements="kept",
    ),
    "sum": Family(
        ("axes", "keepdims"),
        "the sum over axes, counted from 0",
        lowering="fold",
        fold="plus",
        shown=("axis", "keepdims"),
        elements="kept",
    ),
    "prod": Family(
        ("axes", "keepdims"), "the product over axes", lowering="fold", fold="times", shown=("axis", "keepdims")
    ),
    "max": Family(
        ("axes", "keepdims"),
        "the largest over axes",
        lowering="fold",
        fold="larger",
        shown=("axis", "keepdims"),
        elements="picked",
    ),
    "min": Family(
        ("axes", "keepdims"),
        "the smallest over axes",
        lowering="fold",
        fold="smaller",
        shown=("axis", "keepdims"),
        elements="picked",
    ),
    "winners": Family(("largest", "axes"), "truth values: where the first maximum, or minimum, over axes stands"),
    "logsumexp": Family(("axes", "keepdims"), "the log of the sum of exponentials over axes"),
    "softmax": Family(("axes",), "exponentials over their sum over axes"),
    "log_softmax": Family(("axes",), "the logs of these"),
    "shares": Family(("axes",), "softmax, and zeros where all elements over the axes are -inf"),
    "cumsum": Family(("axis",), "running sums", shown=("axis",)),
    "cumprod": Family(("axis",), "running products", shown=("axis",)),
    "item": Family(
        ("pattern",),
        "the first argument at an index (`ops/places.py`); others fill the pattern's holes",
        lowering="view",
    ),
    "add_at": Family(("pattern",), "the first argument, with the second added at an index", lowering="update"),
    "set_at": Family(("pattern",), "the first argument, with the second written at an index", lowering="update"),
    "getitem": Family(
        ("index",), "the argument at a constant index, see `code_of`", lowering="view", elements="picked"
    ),
    "place": Family(
        ("index", "shape"),
        "zeros of that shape with the argument at a constant index",
        lowering="update",
        moves=True,
        elements="kept",
    ),
    "take_along": Family(("axis",), "np.take_along_axis; the second argument has positions", elements="picked"),
    "put_along": Family(
        ("axis", "shape"),
        "zeros of that shape with the first argument added at the positions of the second",
        elements="kept",
    ),
    "sort": Family(("axis",), "in ascending order; NaN comes last", shown=("axis",), elements="kept"),
    "argsort": Family(("axis",), "the positions in ascending order, by a stable sort; NaN comes last", shown=("axis",)),
    "roll": Family(("shift", "axis"), "rotated along an axis", lowering="each", moves=True, elements="kept"),
    "triangle": Family(
        ("lower", "k"),
        "matrices with zeros above, or else below, the k-th diagonal",
        lowering="each",
        elements="picked",
    ),
    "diagonal": Family(("offset",), "the diagonals of matrices", lowering="view", elements="picked"),
    "on_diagonal": Family(
        ("offset", "shape"),
        "zeros of that shape with the argument on a diagonal of the matrices",
        lowering="update",
        elements="kept",
    ),
    "concatenate": Family(
        ("axis",), "the arguments along an axis", lowering="update", joins=True, shown=("axis",), elements="kept"
    ),
    "stack": Family(
        ("axis",), "the arguments along a new axis", lowering="update", joins=True, shown=("axis",), elements="kept"
    ),
    "matmul": Family((), "as numpy's", lowering="fold", shown=()),
    "windows": Family(("axes",), "sliding windows along axes, on new last axes", lowering="view", elements="kept"),
    "overlaps": Family(
        ("axes", "sizes", "shape"), "windows of these sizes added up to an array of that shape", elements="kept"
    ),
    "convolve": Family(("full",), "the convolution of two vectors, in mode 'full' or 'valid'"),
    "einsum": Family(
        ("inputs", "output"), "letters of each argument and of the result: see `arrays.einsum`", lowering="fold"
    ),
    "solve": Family((), "the solution x of a x = b for a matrix b", shown=()),
    "solve_lower": Family(("transposed",), "the same for the lower triangle of a, or its transpose", shown=()),
    "lower_product": Family((), "the lower triangle of a transposed lower triangle times a matrix", shown=()),
    "inv": Family(
        ("strict",),
        "inverses of matrices; `strict` in derivatives: a singular matrix raises NotDifferentiable",
        shown=(),
    ),
    "det": Family((), "the determinants of matrices on the last two axes", shown=()),
    "cofactors": Family((), "the matrices of cofactors", shown=()),
    "cholesky": Family((), "lower Cholesky factors", shown=()),
    "logabsdet": Family((), "the logarithms of the absolute values of determinants"),
    "slogdet_sign": Family((), "the signs of determinants"),
    "symmetric": Family((), "the lower triangle, mirrored"),
}
"""The families that native code knows. Others are rare, or costly enough to be left to numpy: BY_NUMPY."""

_SVD = "an iteration of LAPACK that costs far more than a call of numpy"
_RULE = "occurs only in derivatives of decompositions"
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
    "mixed_cofactors": "an elimination with complete pivoting",
    "left_basis": "computed from a singular value decomposition",
    "right_basis": "computed from a singular value decomposition",
    "orientation": "computed from a singular value decomposition",
    "gaps": _RULE,
    "reciprocal": _RULE,
}
"""Families that native code leaves to numpy, and why; parameters are a triangle ("L" or "U"), a count or a name."""


def code_of(node: Node) -> tuple[Any, ...]:
    """The family and parameters of a node's operation, () where it has none; a Python index is made a pattern, as in
    `ir/ops/places.py`.

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
    """The pattern of a constant Python index, and the arrays that fill its holes; None where it has none.

    The pattern depends on the shape of the indexed array: that of the argument or, for `place`, one of its parameters.
    """
    code = operation.code
    assert isinstance(code, tuple)
    try:
        return pattern_of(shape if code[0] == "getitem" else code[2], code[1])
    except Error:
        return None


def family_of(operation: Operation) -> Family | None:
    """The family of an array operation; None for those that native code does not know, and for elementwise ones."""
    code = operation.code
    return FAMILIES.get(code[0]) if isinstance(code, tuple) and code else None
