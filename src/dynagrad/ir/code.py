"""What operations on whole arrays tell a code generator, and how an operation is added.

`Operation.code` is a tuple: the family, and the parameters that its declaration fixed. Shapes are among them only
where no argument has them, since nodes know theirs. An elementwise operation has none: it has its text, `cxx`.

    family              parameters      the result
    broadcast                           the argument, repeated to the node's shape
    sum_to                              summed over what broadcasting to the argument's shape would have repeated
    reshape                             the same elements in the order of C
    transpose           axes            axis i is axis axes[i] of the argument
    sum prod max min    axes, keepdims  a reduction over axes, counted from 0
    winners             largest, axes   truth values: where the first largest, or smallest, of the axes stands
    logsumexp           axes, keepdims  the log of the sum of exponentials over axes
    softmax             axes            exponentials over their sum over axes
    log_softmax         axes            the logs of these
    cumsum cumprod      axis            running sums and products
    item                pattern         the argument at a place (`ops/places.py`); others fill the pattern's holes
    add_at set_at       pattern         the first argument, with the second added, or standing, at a place
    getitem             index           the argument at Python's index, see `code_of`
    place               index, shape    zeros of that shape with the argument at an index
    take_along          axis            np.take_along_axis; the second argument is places
    put_along           axis, shape     zeros of that shape with the first argument added at the places of the second
    sort argsort        axis            in ascending order, equals as they stand; NaN comes last
    roll                shift, axis     moved round an axis
    triangle            lower, k        matrices with zeros above, or else below, the k-th diagonal
    diagonal            offset          the diagonals of matrices
    on_diagonal         offset, shape   matrices of zeros, of that shape together, with the argument on a diagonal
    concatenate stack   axis            the arguments along an axis, and along a new one
    matmul                              as numpy's
    windows             axes            the stretches along axes, of which the node's new last axes are one
    overlaps            axes, sizes, shape      windows of these sizes added up to an array of that shape
    convolve            full            of two rows: where they overlap, or where the second lies within the first
    einsum              inputs, output  letters of each argument and of the result: see `arrays.einsum`
    solve                               the columns of the second argument, divided by the matrix that is the first
    solve_lower         transposed      the same with the lower triangle of a matrix, or with its transpose
    lower_product                       the lower triangle of a transposed lower triangle times a matrix
    inv                 strict          of matrices; `strict` for a derivative, which does not exist at a singular one
    det cofactors cholesky              of matrices on the last two axes
    logabsdet slogdet_sign              the log of the size of a determinant, and its sign
    symmetric                           the lower triangle, mirrored
    and, computed by numpy, since they are rare, large, or both: see BY_NUMPY.

To add an operation on arrays: declare it in ops/arrays.py (or reductions.py, matrices.py, or a file beside them) with
`linear` or `several`: its value in numpy, its tangent, its adjoint, in operations that are there. That is all: it can
be differentiated to any order, traced, and run by compiled code, which calls numpy for what it does not know. Its
`code` says a family of the table above where it belongs to one, and else a new one, with a reason in BY_NUMPY until
native code knows it. An elementwise operation goes to ops/scalars.py, and its `cxx` is the native code.
"""

from __future__ import annotations

from typing import Any

from .node import Node
from .ops.places import pattern_of

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

    The pattern depends on the shape of the array. An index with arrays in it makes none, and so no tag.

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
    shape = node.arguments[0].type.shape if code[0] == "getitem" else code[2]
    parts = code[1] if isinstance(code[1], tuple) else (code[1],)
    if not all(i is None or i is Ellipsis or (isinstance(i, int | slice) and not isinstance(i, bool)) for i in parts):
        return ()
    pattern, _ = pattern_of(shape, code[1])
    return (code[0], pattern, *code[2:])
