"""Array libraries that can evaluate a graph: numpy, or one that follows the array API standard.

A namespace (`Numpy`, `Standard`) makes constants and applies operations. In numpy's an operation is its own `value`.
For other libraries the tables here map elementwise operations by name, and operations on whole arrays by family
(`code.py`). An operation in neither table raises an error.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import Error
from .node import Node
from .operation import apply
from .ops.places import Slice

_NUMBERS = frozenset((float, int, bool, np.float64, np.int64, np.bool_))


class Numpy:
    """Floats and numpy arrays, and numbers that carry derivatives."""

    def constant(self, value: Any) -> Any:
        return value

    def apply(self, node: Node, arguments: Sequence[Any]) -> Any:
        operation = node.operation
        if _NUMBERS.issuperset(map(type, arguments)):  # by far the most, and soon told
            return operation.value(*arguments)
        if all(isinstance(x, int | float | np.ndarray | np.generic) for x in arguments):
            if operation.array is not None and any(isinstance(x, np.ndarray) and x.ndim for x in arguments):
                with np.errstate(all="ignore"):
                    return operation.array(*arguments)
            return operation.value(*arguments)
        return apply(operation, *arguments)


# the standard's names where they differ
_NAMES = (
    {
        "absolute": "abs",
        "arcsin": "asin",
        "arccos": "acos",
        "arctan": "atan",
        "arctan2": "atan2",
        "arcsinh": "asinh",
        "arccosh": "acosh",
        "arctanh": "atanh",
        "power": "pow",
        "rint": "round",
        "modulo": "remainder",
        "log_add": "logaddexp",
        "integer_add": "add",
        "integer_subtract": "subtract",
        "integer_multiply": "multiply",
        "integer_negative": "negative",
        "integer_floor_divide": "floor_divide",
        "integer_remainder": "remainder",
        "integer_absolute": "abs",
        "integer_left_shift": "bitwise_left_shift",
        "integer_right_shift": "bitwise_right_shift",
        "integer_where": "where",
        "boolean_where": "where",
    }
    | {
        f"integer_{name}": name
        for name in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "minimum", "maximum")
    }
    | {f"integer_bitwise_{name}": f"bitwise_{name}" for name in ("and", "or", "xor")}
)


def _power(xp: Any, a: Any, n: Any) -> Any:
    """An integer power modulo 2**64; 0 for a negative exponent. jax's own looks at six bits of the exponent."""
    found = xp.where(n < 0, xp.asarray(0), xp.asarray(1))
    for bit in range(63):
        found = xp.where(xp.bitwise_and(n, xp.asarray(1 << bit)) == 0, found, found * a)
        a = a * a
    return found


def _power_fits(xp: Any, a: Any, n: Any) -> Any:
    """Whether an integer power fits in 64 bits. Powers of two or more lie far from 2**63 but for -2**63 itself."""
    far = 2.0**63
    found = xp.pow(xp.astype(a, xp.float64), xp.astype(n, xp.float64))
    near = (found < far * (1.0 - 1e-12)) & (found >= -far * (1.0 + 1e-12))
    return (n >= 0) & ((n < 2) | ((a >= -1) & (a <= 1)) | near)


_MADE: dict[str, Callable[..., Any]] = {
    "integer_power": _power,
    "integer_power_fits": _power_fits,
    "sigmoid": lambda xp, x: 1.0 / (1.0 + xp.exp(-x)),
    "cbrt": lambda xp, x: xp.sign(x) * xp.pow(xp.abs(x), 1.0 / 3.0),
    "exp2": lambda xp, x: xp.exp(x * math.log(2.0)),
    "reciprocal": lambda xp, x: 1.0 / x,
    "rsqrt": lambda xp, x: 1.0 / xp.sqrt(x),
    "integer_invert": lambda xp, x: -x - 1,  # which torch calls by another name than the standard
    "to_real": lambda xp, x: xp.astype(x, xp.float64),
    "boolean_to_real": lambda xp, x: xp.astype(x, xp.float64),
    "to_integer": lambda xp, x: xp.astype(x, xp.int64),
    "boolean_to_integer": lambda xp, x: xp.astype(x, xp.int64),
    "fmaximum": lambda xp, a, b: xp.where(xp.isnan(a) | (b > a), b, a),
    "fminimum": lambda xp, a, b: xp.where(xp.isnan(a) | (b < a), b, a),
}


def _key(pattern: Sequence[Any], holes: Sequence[Any]) -> tuple[Any, ...]:
    left = iter(holes)
    out: list[Any] = []
    for entry in pattern:
        if entry == "hole":
            hole = next(left)
            out.append(hole if getattr(hole, "ndim", 0) else int(hole))
        else:
            out.append(None if entry == "new axis" else entry.python() if isinstance(entry, Slice) else entry)
    return tuple(out)


def _upward(key: tuple[Any, ...], shape: Sequence[int]) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """An index without slices of negative step, and the axes of its result that have to be flipped for it."""
    out, flipped, axis, place = list[Any](), list[int](), 0, 0
    for entry in key:
        if isinstance(entry, slice):
            places = range(*entry.indices(shape[axis]))
            if places.step < 0:
                places = places[::-1]
                flipped.append(place)
                out.append(slice(places.start, places.stop, places.step))
            else:
                out.append(entry)
            place += 1
        else:
            out.append(entry)
            place += 0 if isinstance(entry, int) else 1
        axis += entry is not None
    return tuple(out), tuple(flipped)


def _arrays_in(key: tuple[Any, ...]) -> bool:
    return any(getattr(k, "ndim", 0) for k in key)


def _read(xp: Any, x: Any, key: tuple[Any, ...]) -> Any:
    key, flipped = _upward(key, x.shape)
    if flipped and _arrays_in(key):
        raise Error(
            f"{xp.__name__} has no index with both a slice of negative step and an array; use numpy arrays for it"
        )
    found = x[key]
    return xp.flip(found, axis=flipped) if flipped else found


def _write(xp: Any, x: Any, key: tuple[Any, ...], z: Any, add: bool) -> Any:
    """`x` with `z` written or added at an index; where an element occurs in it several times, each addition counts."""
    if hasattr(x, "at"):  # jax
        return x.at[key].add(z) if add else x.at[key].set(z)
    key, flipped = _upward(key, x.shape)
    if not _arrays_in(key):
        if flipped:
            z = xp.flip(xp.broadcast_to(xp.asarray(z), x[key].shape), axis=flipped)
        out = xp.asarray(x, copy=True)
        out[key] = out[key] + z if add else z
        return out
    if flipped or not hasattr(x, "index_put"):
        raise Error(f"{xp.__name__} cannot write at an index that is known only when the graph runs; use numpy arrays")
    size = math.prod(x.shape)
    places = xp.reshape(xp.arange(size), x.shape)[key]
    values = xp.broadcast_to(xp.asarray(z, dtype=x.dtype), places.shape)
    flat = xp.reshape(x, (size,)).index_put((xp.reshape(places, (-1,)),), xp.reshape(values, (-1,)), accumulate=add)
    return xp.reshape(flat, x.shape)


def _sum_to(xp: Any, node: Node, x: Any) -> Any:
    shape = node.type.shape
    extra = x.ndim - len(shape)
    axes = (*range(extra), *(i + extra for i, n in enumerate(shape) if n == 1 and x.shape[i + extra] != 1))
    return xp.reshape(xp.sum(x, axis=axes), shape) if axes else x


def _winners(xp: Any, node: Node, x: Any) -> Any:
    """Truth values: where the first maximum, or minimum, over some axes stands."""
    _, largest, axes = node.operation.code
    rest = tuple(i for i in range(x.ndim) if i not in axes)
    turned = xp.permute_dims(x, rest + axes)
    lengths = tuple(x.shape[i] for i in rest)
    flat = xp.reshape(turned, (*lengths, -1))
    first = (xp.argmax if largest else xp.argmin)(flat, axis=-1, keepdims=True)
    mask = xp.reshape(xp.arange(flat.shape[-1]) == first, turned.shape)
    return xp.permute_dims(mask, tuple(sorted(range(x.ndim), key=(rest + axes).__getitem__)))


def _place(xp: Any, node: Node, x: Any) -> Any:
    _, index, shape = node.operation.code
    key = _python(index, shape)
    return _write(xp, xp.zeros(shape, dtype=xp.float64), key, x, add=True)


def _python(index: Any, shape: Sequence[int]) -> tuple[Any, ...]:
    """A Python index with an entry for each axis."""
    entries = index if isinstance(index, tuple) else (index,)
    if any(not (i is None or i is Ellipsis or isinstance(i, int | slice)) or isinstance(i, bool) for i in entries):
        raise Error("an index with arrays in it is computed by numpy only; use numpy arrays for it")
    used = sum(1 for i in entries if i is not None and i is not Ellipsis)
    full = [slice(None)] * (len(shape) - used)
    out: list[Any] = []
    for entry in entries if any(i is Ellipsis for i in entries) else (*entries, Ellipsis):
        out.extend(full if entry is Ellipsis else [entry])
    return tuple(out)


def _reduction(name: str) -> Callable[..., Any]:
    return lambda xp, node, x: getattr(xp, name)(x, axis=tuple(node.operation.code[1]), keepdims=node.operation.code[2])


_CODES: dict[str, Callable[..., Any]] = {
    "broadcast": lambda xp, node, x: xp.broadcast_to(x, node.type.shape),
    "sum_to": _sum_to,
    "reshape": lambda xp, node, x: xp.reshape(x, node.type.shape),
    "transpose": lambda xp, node, x: xp.permute_dims(x, tuple(node.operation.code[1])),
    **{name: _reduction(name) for name in ("sum", "prod", "max", "min")},
    "winners": _winners,
    "matmul": lambda xp, node, a, b: xp.matmul(a, b),
    "item": lambda xp, node, x, *holes: _read(xp, x, _key(node.operation.code[1], holes)),
    "add_at": lambda xp, node, x, z, *holes: _write(xp, x, _key(node.operation.code[1], holes), z, add=True),
    "set_at": lambda xp, node, x, z, *holes: _write(xp, x, _key(node.operation.code[1], holes), z, add=False),
    "getitem": lambda xp, node, x: _read(xp, x, _python(node.operation.code[1], x.shape)),
    "place": _place,
    "concatenate": lambda xp, node, *xs: xp.concat(xs, axis=node.operation.code[1]),
    "stack": lambda xp, node, *xs: xp.stack(xs, axis=node.operation.code[1]),
    "cumsum": lambda xp, node, x: xp.cumulative_sum(x, axis=node.operation.code[1]),
    "cumprod": lambda xp, node, x: xp.cumulative_prod(x, axis=node.operation.code[1]),
    "flip": lambda xp, node, x: xp.flip(x, axis=node.operation.code[1]),
    "solve": lambda xp, node, a, b: xp.linalg.solve(a, b),
    "solve_lower": lambda xp, node, a, b: xp.linalg.solve(
        xp.matrix_transpose(xp.tril(a)) if node.operation.code[1] else xp.tril(a), b
    ),
    "inv": lambda xp, node, a: xp.linalg.inv(a),
    "det": lambda xp, node, a: xp.linalg.det(a),
    "cholesky": lambda xp, node, a: xp.linalg.cholesky(a),
}


@dataclass(frozen=True)
class Standard:
    """Arrays of another library; `xp` is its namespace."""

    xp: Any

    def constant(self, value: Any) -> Any:
        return self.xp.asarray(value) if isinstance(value, np.ndarray) else value

    def apply(self, node: Node, arguments: Sequence[Any]) -> Any:
        operation, xp = node.operation, self.xp
        if all(isinstance(x, int | float) for x in arguments):
            return self.constant(operation.value(*arguments))
        arguments = [xp.asarray(x) if isinstance(x, int | float | np.ndarray | np.generic) else x for x in arguments]
        if operation.elementwise:
            made = _MADE.get(operation.name)
            function = getattr(xp, _NAMES.get(operation.name, operation.name), None) if made is None else None
            if made is not None or function is not None:
                return made(xp, *arguments) if made is not None else function(*arguments)  # type: ignore[misc]  # there is one, as was asked before
        else:
            rule = _CODES.get(operation.code[0]) if isinstance(operation.code, tuple) else None
            if rule is not None:
                try:
                    return rule(xp, node, *arguments)
                except AttributeError:  # part of the standard is optional, and some is newer than some libraries
                    pass
        raise Error(f"{xp.__name__} has no function for the operation {operation.name}; use numpy arrays for it")


def namespace_of(values: Sequence[Any]) -> Any:
    """The namespace of the first array of another library; numpy's where there is none.

    >>> type(namespace_of([1.0, np.ones(2)])).__name__
    'Numpy'
    """
    for value in values:
        if isinstance(value, np.ndarray | np.generic | float | int):
            continue
        if hasattr(value, "__array_namespace__"):
            return Standard(value.__array_namespace__())
        if type(value).__module__.split(".")[0] == "torch":
            return Standard(_torch(value.device))
    return Numpy()


def _torch(device: Any) -> Any:
    """torch under the names of the standard; new tensors are made on this device."""
    import torch  # an optional package

    space = types.SimpleNamespace(**{name: getattr(torch, name) for name in dir(torch) if not name.startswith("__")})
    space.__name__ = "torch"
    space.astype = lambda x, dtype: x.to(dtype)
    space.permute_dims = torch.permute
    space.concat = torch.cat
    space.max, space.min = torch.amax, torch.amin
    space.equal, space.not_equal = torch.eq, torch.ne  # its own `equal` compares whole tensors
    space.flip = lambda x, axis: torch.flip(x, (axis,) if isinstance(axis, int) else axis)
    space.cumulative_sum = lambda x, axis: torch.cumsum(x, axis)
    space.cumulative_prod = lambda x, axis: torch.cumprod(x, axis)
    space.argmax = lambda x, axis, keepdims: torch.argmax(x, dim=axis, keepdim=keepdims)
    space.argmin = lambda x, axis, keepdims: torch.argmin(x, dim=axis, keepdim=keepdims)
    space.prod = _torch_product
    space.arange = lambda n: torch.arange(n, device=device)
    space.zeros = lambda shape, dtype: torch.zeros(shape, dtype=dtype, device=device)

    def asarray(x: Any, copy: bool | None = None, dtype: Any = None) -> Any:
        if isinstance(x, torch.Tensor):
            x = x.clone() if copy else x
            return x if dtype is None else x.to(dtype)
        return torch.tensor(x, dtype=dtype or (torch.float64 if isinstance(x, float) else None), device=device)

    space.asarray = asarray
    return space


def _torch_product(x: Any, axis: Sequence[int], keepdims: bool) -> Any:
    for i in sorted(axis, reverse=True):
        x = x.prod(dim=i, keepdim=keepdims)
    return x
