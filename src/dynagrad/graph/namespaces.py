"""Where operations are computed: numpy, or another library of arrays that follows the array API standard.

A `Namespace` knows how a constant gets there and how an operation is applied there. numpy's is the operations' own
`value`. For another library the table here says which of its functions an elementwise operation is, by name, and what
operations on whole arrays are, by the first word of their `code` (code.py). What is in neither raises.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import Error
from .node import Node
from .operation import apply
from .places import Slice


class Numpy:
    """Floats and numpy arrays, and numbers that carry derivatives."""

    def constant(self, value: Any) -> Any:
        return value

    def apply(self, node: Node, given: Sequence[Any]) -> Any:
        operation = node.operation
        if all(isinstance(x, int | float | np.ndarray | np.generic) for x in given):
            if operation.array is not None and any(isinstance(x, np.ndarray) and x.ndim for x in given):
                with np.errstate(all="ignore"):
                    return operation.array(*given)
            return operation.value(*given)
        return apply(operation, *given)


# the standard's names where they differ from ours
_NAMES = {
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
    "integer_where": "where",
    "boolean_where": "where",
} | {f"integer_{name}": name for name in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")}

_MADE: dict[str, Callable[..., Any]] = {
    "sigmoid": lambda xp, x: 1.0 / (1.0 + xp.exp(-x)),
    "cbrt": lambda xp, x: xp.sign(x) * xp.pow(xp.abs(x), 1.0 / 3.0),
    "exp2": lambda xp, x: xp.exp(x * math.log(2.0)),
    "reciprocal": lambda xp, x: 1.0 / x,
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


def _add_at(xp: Any, node: Node, x: Any, z: Any, *holes: Any) -> Any:
    key = _key(node.operation.code[1], holes)
    if hasattr(x, "at"):  # jax
        return x.at[key].add(z)
    out = xp.asarray(x, copy=True)
    if any(getattr(k, "ndim", 0) for k in key):
        if not hasattr(out, "index_put_") or not all(getattr(k, "ndim", 0) for k in key):
            raise Error(f"{xp.__name__} has no sum at places that may occur several times")
        return out.index_put_(key, xp.asarray(z, dtype=out.dtype), accumulate=True)
    out[key] = out[key] + z
    return out


def _set_at(xp: Any, node: Node, x: Any, z: Any, *holes: Any) -> Any:
    key = _key(node.operation.code[1], holes)
    if hasattr(x, "at"):
        return x.at[key].set(z)
    out = xp.asarray(x, copy=True)
    out[key] = z
    return out


def _sum_to(xp: Any, node: Node, x: Any) -> Any:
    shape = node.type.shape
    extra = x.ndim - len(shape)
    axes = (*range(extra), *(i + extra for i, n in enumerate(shape) if n == 1 and x.shape[i + extra] != 1))
    return xp.reshape(xp.sum(x, axis=axes), shape) if axes else x


_CODES: dict[str, Callable[..., Any]] = {
    "broadcast": lambda xp, node, x: xp.broadcast_to(xp.asarray(x), node.type.shape),
    "sum_to": _sum_to,
    "reshape": lambda xp, node, x: xp.reshape(x, node.type.shape),
    "transpose": lambda xp, node, x: xp.permute_dims(x, tuple(node.operation.code[1])),
    "sum": lambda xp, node, x: xp.sum(x, axis=tuple(node.operation.code[1]), keepdims=node.operation.code[2]),
    "prod": lambda xp, node, x: xp.prod(x, axis=tuple(node.operation.code[1]), keepdims=node.operation.code[2]),
    "max": lambda xp, node, x: xp.max(x, axis=tuple(node.operation.code[1]), keepdims=node.operation.code[2]),
    "min": lambda xp, node, x: xp.min(x, axis=tuple(node.operation.code[1]), keepdims=node.operation.code[2]),
    "matmul": lambda xp, node, a, b: xp.matmul(a, b),
    "item": lambda xp, node, x, *holes: x[_key(node.operation.code[1], holes)],
    "add_at": _add_at,
    "set_at": _set_at,
    "concatenate": lambda xp, node, *xs: xp.concat(xs, axis=node.operation.code[1]),
    "stack": lambda xp, node, *xs: xp.stack(xs, axis=node.operation.code[1]),
    "cumsum": lambda xp, node, x: xp.cumulative_sum(x, axis=node.operation.code[1]),
    "flip": lambda xp, node, x: xp.flip(x, axis=node.operation.code[1]),
    "solve": lambda xp, node, a, b: xp.linalg.solve(a, b),
    "inv": lambda xp, node, a: xp.linalg.inv(a),
    "det": lambda xp, node, a: xp.linalg.det(a),
    "cholesky": lambda xp, node, a: xp.linalg.cholesky(a),
}


@dataclass(frozen=True)
class Standard:
    """Arrays of another library; `xp` is its namespace."""

    xp: Any

    def constant(self, value: Any) -> Any:
        return self.xp.asarray(value) if isinstance(value, np.ndarray | float) else value

    def apply(self, node: Node, given: Sequence[Any]) -> Any:
        operation, xp = node.operation, self.xp
        if all(isinstance(x, int | float) for x in given):
            return operation.value(*given)
        try:
            if operation.elementwise:
                made = _MADE.get(operation.name)
                if made is not None:
                    return made(xp, *(self._there(x) for x in given))
                return getattr(xp, _NAMES.get(operation.name, operation.name))(*(self._there(x) for x in given))
            rule = _CODES[operation.code[0]]
        except (AttributeError, KeyError, TypeError):
            raise Error(f"{operation.name} is nothing that {xp.__name__} computes; use numpy arrays for it") from None
        return rule(xp, node, *given)

    def _there(self, x: Any) -> Any:
        return self.xp.asarray(x) if isinstance(x, int | float | np.ndarray) else x


def namespace_of(values: Sequence[Any]) -> Any:
    """The namespace of the first array that is not numpy's.

    >>> type(namespace_of([1.0, np.ones(2)])).__name__
    'Numpy'
    """
    for value in values:
        if isinstance(value, np.ndarray | np.generic | float | int):
            continue
        if hasattr(value, "__array_namespace__"):
            return Standard(value.__array_namespace__())
        if type(value).__module__.split(".")[0] == "torch":
            return Standard(_torch())
    return Numpy()


def _torch() -> Any:
    """torch under the standard's names, where its own differ."""
    import types

    import torch  # only where there is a tensor

    space = types.SimpleNamespace(**{name: getattr(torch, name) for name in dir(torch) if not name.startswith("__")})
    space.__name__ = "torch"
    space.astype = lambda x, dtype: x.to(dtype)
    space.permute_dims = torch.permute
    space.concat = torch.cat
    space.max, space.min = torch.amax, torch.amin
    space.cumulative_sum = lambda x, axis: torch.cumsum(x, axis)
    space.prod = _torch_product
    space.asarray = lambda x, copy=None, dtype=None: (
        x.clone() if copy and isinstance(x, torch.Tensor) else torch.as_tensor(x, dtype=dtype or _double(torch, x))
    )
    return space


def _double(torch: Any, x: Any) -> Any:
    return torch.float64 if isinstance(x, float) else None


def _torch_product(x: Any, axis: Sequence[int], keepdims: bool) -> Any:
    for i in sorted(axis, reverse=True):
        x = x.prod(dim=i, keepdim=keepdims)
    return x
