"""Handlers of numpy's products and of `np.linalg`.

Inverses and decompositions are operations of `ir/ops/matrices.py`, with their derivatives; least squares are in
`fitting.py`.
"""

from __future__ import annotations

import math
import operator
import string
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import NotDifferentiable, counted
from ...ir import Node
from ...ir.ops import arrays, determinants, matrices, reductions
from ...ir.ops import scalars as ops
from ...ir.ops.arrays import shape_of
from ...ir.ops.families import scaled_root
from ..kinds import plain, real_part
from ..numbers import lift
from .functions import axes_of, elements, implements, item_of, rank

# -- products ----------------------------------------------------------------------------------------------------------


@implements("linalg.matmul")
def _matmul(x1: Any, x2: Any) -> Any:
    return lift(arrays.matmul, (x1, x2))


@implements("dot")
def dot(a: Any, b: Any) -> Any:
    a, b = plain(a), plain(b)
    ranks = rank(a), rank(b)
    if 0 in ranks:
        return lift(ops.multiply, (a, b))
    if ranks[1] <= 2:
        return lift(arrays.matmul, (a, b))
    return _tensordot(a, b, (-1, -2))


@implements("vdot")
def _vdot(a: Any, b: Any) -> Any:
    return dot(np.ravel(a), np.ravel(b))


@implements("vecdot", "linalg.vecdot")
def _vecdot(x1: Any, x2: Any, *, axis: int = -1) -> Any:
    return np.sum(lift(ops.multiply, (x1, x2)), axis)


@implements("inner")
def _inner(a: Any, b: Any) -> Any:
    a, b = plain(a), plain(b)
    return lift(ops.multiply, (a, b)) if not (rank(a) and rank(b)) else _tensordot(a, b, (-1, -1))


@implements("outer", "linalg.outer")
def _outer(a: Any, b: Any) -> Any:
    return lift(ops.multiply, (np.reshape(np.ravel(a), (-1, 1)), np.ravel(b)))


@implements("kron")
def _kron(a: Any, b: Any) -> Any:
    a, b = plain(a), plain(b)
    n = max(rank(a), rank(b))
    sa, sb = ((1,) * (n - rank(x)) + shape_of(x) for x in (a, b))
    wide = np.reshape(a, tuple(m for k in sa for m in (k, 1))) if n else a
    tall = np.reshape(b, tuple(m for k in sb for m in (1, k))) if n else b
    return np.reshape(lift(ops.multiply, (wide, tall)), tuple(i * j for i, j in zip(sa, sb, strict=True)))


@implements("cross")
def _cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = plain(a), plain(b)
    if not (rank(a) and rank(b)):
        raise ValueError("At least one array has zero dimension")
    a, b = np.moveaxis(a, axisa, -1), np.moveaxis(b, axisb, -1)
    if not {shape_of(a)[-1], shape_of(b)[-1]} <= {2, 3}:
        raise ValueError("np.cross: the vectors should have two or three dimensions")
    (a0, a1, *a2), (b0, b1, *b2) = ([item_of(x, (..., i)) for i in range(shape_of(x)[-1])] for x in (a, b))
    last = a0 * b1 - a1 * b0
    if not a2 and not b2:
        return last
    first = a1 * b2[0] - a2[0] * b1 if a2 and b2 else a1 * b2[0] if b2 else -(a2[0] * b1)
    second = a2[0] * b0 - a0 * b2[0] if a2 and b2 else -(a0 * b2[0]) if b2 else a2[0] * b0
    parts = np.broadcast_arrays(first, second, last)
    return np.moveaxis(np.stack(parts, axis=-1), -1, axisc)


@implements("linalg.cross")
def _cross_of_three(x1: Any, x2: Any, *, axis: int = -1) -> Any:
    if shape_of(plain(x1))[axis] != 3 or shape_of(plain(x2))[axis] != 3:
        raise ValueError("np.linalg.cross takes vectors in three dimensions")
    return _cross(x1, x2, axis=axis)


@implements("tensordot", "linalg.tensordot")
def _tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    a, b = plain(a), plain(b)
    if isinstance(axes, int | np.integer):
        axes = (tuple(range(-int(axes), 0)), tuple(range(int(axes))))
    over_a, over_b = axes_of(axes[0], rank(a)), axes_of(axes[1], rank(b))
    free_a = tuple(i for i in range(rank(a)) if i not in over_a)
    free_b = tuple(i for i in range(rank(b)) if i not in over_b)
    if [shape_of(a)[i] for i in over_a] != [shape_of(b)[i] for i in over_b]:
        raise ValueError("shape-mismatch for sum")
    count = elements(shape_of(a), over_a)
    rows, columns = elements(shape_of(a), free_a), elements(shape_of(b), free_b)
    left = np.reshape(np.transpose(a, free_a + over_a), (rows, count))
    right = np.reshape(np.transpose(b, over_b + free_b), (count, columns))
    shape = (*(shape_of(a)[i] for i in free_a), *(shape_of(b)[i] for i in free_b))
    return np.reshape(lift(arrays.matmul, (left, right)), shape)


@implements("einsum")
def _einsum(*operands: Any, optimize: Any = None) -> Any:
    inputs, output, xs = _subscripts(operands)
    for i, names in enumerate(inputs):
        for letter in dict.fromkeys(names):
            while inputs[i].count(letter) > 1:  # a diagonal of an operand
                first = inputs[i].index(letter)
                second = inputs[i].index(letter, first + 1)
                xs[i] = np.diagonal(xs[i], 0, first, second)
                inputs[i] = "".join(c for k, c in enumerate(inputs[i]) if k not in (first, second)) + letter
    return lift(arrays.einsum(tuple(inputs), output), xs)


def rearranged(operands: Sequence[Any]) -> tuple[Any, str, str] | None:
    """For an `einsum` that only permutes axes or takes diagonals, which is a view in numpy: the array, the letters of
    its axes, and those of the result's. None for others."""
    if len(operands) != 2 if isinstance(operands[0], str) else len(operands) not in (2, 3):
        return None
    (names,), output, _ = _subscripts(operands)
    return (operands[isinstance(operands[0], str)], names, output) if set(names) == set(output) else None


def strided(whole: Any, names: str, output: str) -> Any:
    """The view of a plain array that such an `einsum` makes."""
    shape = [min(n for n, c in zip(whole.shape, names, strict=True) if c == letter) for letter in output]
    steps = [sum(n for n, c in zip(whole.strides, names, strict=True) if c == letter) for letter in output]
    return np.lib.stride_tricks.as_strided(whole, shape, steps)


def _letter(axis: Any) -> str:
    """The letter for an axis given by number; the order is the same."""
    i = operator.index(axis)
    if not 0 <= i < 52:
        raise ValueError(f"einsum: an axis should be a number from 0 to 51, and is {i}")
    return (string.ascii_uppercase + string.ascii_lowercase)[i]


def _subscripts(operands: Sequence[Any]) -> tuple[list[str], str, list[Any]]:
    """The letters of each operand and of the result, with letters for the axes of an ellipsis."""
    if isinstance(operands[0], str):
        text, xs = operands[0].replace(" ", ""), [plain(x) for x in operands[1:]]
    else:  # operand, axes, operand, axes, ..., perhaps axes of the result
        pairs = [operands[i : i + 2] for i in range(0, len(operands) - len(operands) % 2, 2)]
        xs = [plain(x) for x, _ in pairs]
        spelled = [
            "".join("..." if i is Ellipsis else _letter(i) for i in axes)
            for axes in [axes for _, axes in pairs] + list(operands[len(pairs) * 2 :])
        ]
        text = ",".join(spelled[: len(pairs)]) + ("->" + spelled[-1] if len(operands) % 2 else "")
    left, arrow, output = text.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(xs):
        raise ValueError(f"einsum: {text!r} is of {counted(len(inputs), 'operand')}, and not of {len(xs)}")
    spare = [letter for letter in string.ascii_letters if letter not in text]
    longest = 0
    for i, names in enumerate(inputs):
        hidden = rank(xs[i]) - len(names.replace("...", ""))
        if hidden < 0 or (hidden and "..." not in names):
            raise ValueError(
                f"einsum: operand {i + 1} has {counted(rank(xs[i]), 'axis', 'axes')}, which {names!r} does not match"
            )
        longest = max(longest, hidden)
        inputs[i] = names.replace("...", "".join(spare[:hidden][::-1]))
    common = "".join(spare[:longest][::-1])
    if arrow and longest and "..." not in output:
        raise ValueError(f"einsum: the result of {text!r} leaves out the axes of the ellipsis")
    if arrow:
        output = output.replace("...", common)
    else:
        named = "".join(inputs)
        output = common + "".join(c for c in sorted(set(named)) if named.count(c) == 1 and c not in common)
    if len(set(output)) < len(output) or not set(output) <= set("".join(inputs)):
        raise ValueError(f"einsum: the result of {text!r} names an axis twice, or one that no operand has")
    return inputs, output, xs


# -- linear algebra ----------------------------------------------------------------------------------------------------

_VECTORS_HAVE_ONE_AXIS = int(np.__version__.split(".")[0]) >= 2  # before numpy 2, one less than the matrices
_SLOGDET, _EIGH = type(np.linalg.slogdet(np.eye(1))), type(np.linalg.eigh(np.eye(1)))
_QR, _SVD = type(np.linalg.qr(np.eye(1))), type(np.linalg.svd(np.eye(1)))


@implements("linalg.solve")
def _solve(a: Any, b: Any) -> Any:
    a, b = plain(a), plain(b)
    if rank(b) == (1 if _VECTORS_HAVE_ONE_AXIS else rank(a) - 1):
        column = _solved(a, np.reshape(b, (*shape_of(b), 1)))
        return np.reshape(column, shape_of(column)[:-1])
    return _solved(a, b)


def _solved(a: Any, b: Any) -> Any:
    """The solution of a x = b for a matrix b. In a graph, a Cholesky factor is recognised and solved as a triangle."""
    if isinstance(a, Node):
        if a.operation is matrices.cholesky:
            return matrices.solve_lower(a, b)
        turned = a.operation.code == ("transpose", (*range(a.ndim - 2), a.ndim - 1, a.ndim - 2))
        if turned and a.arguments[0].operation is matrices.cholesky:
            return matrices.solve_lower_transposed(a.arguments[0], b)
    return lift(matrices.solve, (a, b))


@implements("linalg.inv")
def _inv(a: Any) -> Any:
    return lift(matrices.inverse, (a,))


@implements("linalg.det")
def _det(a: Any) -> Any:
    return lift(determinants.determinant, (a,))


@implements("linalg.slogdet")
def _slogdet(a: Any) -> Any:
    return _SLOGDET(lift(determinants.sign_of_determinant, (a,)), lift(determinants.log_determinant, (a,)))


def _symmetric(a: Any, *, upper: bool) -> Any:
    return lift(matrices.symmetric, (arrays.swap(a) if upper else a,))


@implements("linalg.cholesky")
def _cholesky(a: Any, *, upper: bool = False) -> Any:
    factor = lift(matrices.cholesky, (_symmetric(a, upper=upper),))
    return arrays.swap(factor) if upper else factor


@implements("linalg.eigh")
def _eigh(a: Any, UPLO: str = "L") -> Any:
    upper = UPLO.upper() == "U"
    whole = _symmetric(a, upper=upper)
    values = matrices.eigenvalues_upper if upper else matrices.eigenvalues
    vectors = matrices.eigenvectors_upper if upper else matrices.eigenvectors
    return _EIGH(lift(values, (whole,)), lift(vectors, (whole,)))


@implements("linalg.eigvalsh")
def _eigvalsh(a: Any, UPLO: str = "L") -> Any:
    upper = UPLO.upper() == "U"
    return lift(matrices.eigenvalues_upper if upper else matrices.eigenvalues, (_symmetric(a, upper=upper),))


@implements("linalg.qr")
def _qr(a: Any, mode: str = "reduced") -> Any:
    rows, columns = shape_of(a)[-2:]
    if mode not in ("reduced", "r") and not (mode == "complete" and rows == columns):
        raise NotDifferentiable(f"np.linalg.qr with mode={mode!r} has no derivative; use 'reduced' or 'r'")
    square = item_of(a, (..., slice(rows))) if columns > rows else a
    r = lift(matrices.qr_upper, (square,))
    if mode == "r" and columns <= rows:
        return r
    q = lift(matrices.qr_orthogonal, (square,))
    if columns > rows:  # the remaining columns, in the basis of the first ones
        rest = lift(arrays.matmul, (arrays.swap(q), item_of(a, (..., slice(rows, None)))))
        r = np.concatenate([r, rest], -1)
    return r if mode == "r" else _QR(q, r)


@implements("linalg.svd")
def _svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    if hermitian:  # only the lower triangle is read
        a = np.tril(a) + arrays.swap(np.tril(a, -1))
    s = lift(matrices.singular_values, (a,))
    if not compute_uv:
        return s
    rows, columns = shape_of(a)[-2:]
    if full_matrices and rows != columns:
        raise NotDifferentiable(
            "np.linalg.svd: the vectors that complete a square matrix are not unique, so they have no derivative; use "
            "full_matrices=False"
        )
    return _SVD(lift(matrices.left_vectors, (a,)), s, arrays.swap(lift(matrices.right_vectors, (a,))))


@implements("linalg.svdvals")
def _svdvals(x: Any) -> Any:
    return lift(matrices.singular_values, (x,))


@implements("linalg.matrix_power")
def _matrix_power(a: Any, n: int) -> Any:
    if n < 0:
        return _matrix_power(_inv(a), -n)
    power: Any = None
    while n:
        if n % 2:
            power = a if power is None else lift(arrays.matmul, (power, a))
        n //= 2
        a = lift(arrays.matmul, (a, a)) if n else a
    return np.broadcast_to(np.eye(shape_of(a)[-1]), shape_of(a)).copy() if power is None else power


@implements("linalg.multi_dot")
def _multi_dot(arrays_: Any) -> Any:
    first, *rest = arrays_
    for x in rest:
        first = dot(first, x)
    return first


@implements("linalg.norm")
def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    x = plain(x)
    axes = axes_of(axis, rank(x))
    if ord is None:
        return _root_of_powers(x, 2.0, axes, keepdims)
    if len(axes) == 1:
        return _vector_norm(x, axis=axes, keepdims=keepdims, ord=ord)
    if len(axes) != 2:
        raise ValueError("Improper number of dimensions to norm.")
    return (
        _matrix_norm(np.moveaxis(x, axes, (-2, -1)), keepdims=False, ord=ord)
        if not keepdims
        else np.expand_dims(_matrix_norm(np.moveaxis(x, axes, (-2, -1)), keepdims=False, ord=ord), axes)
    )


_SMALL = 2.0**-1000  # a tangent divided by this does not overflow


def _root_of_powers(x: Any, p: float, axes: tuple[int, ...], keepdims: bool) -> Any:
    """The p-norm along axes, for p of 1 or more."""
    shape = shape_of(x)
    if not elements(shape, axes):
        return lift(reductions.total(axes, bool(keepdims)), (x,))  # 0 for no elements, and so is its derivative
    if math.prod(shape):
        largest = lift(reductions.extreme(True, axes, True), (lift(ops.absolute, (real_part(x),)),))
        size = ops.where(ops.less(largest, math.inf), ops.maximum(largest, _SMALL), 1.0)
        scale = ops.exp2(ops.floor(ops.log2(size)))  # a power of two: scaling is exact
    else:
        scale = np.ones([1 if i in axes else n for i, n in enumerate(shape)])
    x = lift(ops.divide, (x, scale))
    powers = lift(ops.multiply, (x, x)) if p == 2.0 else lift(ops.power, (lift(ops.absolute, (x,)), p))
    sums = lift(reductions.total(axes, bool(keepdims)), (powers,))
    return lift(scaled_root(p), (sums, scale if keepdims else arrays.reshape(shape_of(sums))(scale)))


def _extreme(largest: bool, sizes: Any, axis: Any, keepdims: bool = False) -> Any:
    """The largest of sizes, which is 0 for no elements, or the least."""
    shape = shape_of(sizes)
    if largest and not elements(shape, axes_of(axis, len(shape))):
        return np.sum(sizes, axis, keepdims=keepdims)
    return (np.max if largest else np.min)(sizes, axis, keepdims=keepdims)


@implements("linalg.vector_norm")
def _vector_norm(x: Any, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    x = plain(x)
    ord = 2 if ord is None else ord
    if 1 < ord < math.inf:
        return _root_of_powers(x, float(ord), axes_of(axis, rank(x)), keepdims)
    size = abs(x)
    if ord == 1:
        return np.sum(size, axis, keepdims=keepdims)
    if ord in (math.inf, -math.inf):
        return _extreme(ord > 0, size, axis, keepdims)
    if ord == 0:
        return np.sum(real_part(x) != 0, axis=axes_of(axis, rank(x)), keepdims=keepdims).astype(float)
    return np.sum(size ** float(ord), axis, keepdims=keepdims) ** (1.0 / float(ord))


@implements("linalg.matrix_norm")
def _matrix_norm(x: Any, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    x = plain(x)
    if ord in ("fro", None):
        return _root_of_powers(x, 2.0, axes_of((-2, -1), rank(x)), keepdims)
    if ord in (1, -1, math.inf, -math.inf):
        sums = np.sum(abs(x), -2 if abs(ord) == 1 else -1)
        found = _extreme(ord > 0, sums, -1)
    elif ord in (2, -2, "nuc"):
        s = lift(matrices.singular_values, (x,))
        found = np.sum(s, -1) if ord == "nuc" else _extreme(ord > 0, s, -1)
    else:
        raise ValueError(f"Invalid norm order {ord!r} for matrices")
    return np.expand_dims(found, (-2, -1)) if keepdims else found
