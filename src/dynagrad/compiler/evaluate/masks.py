"""Elements of an array under a dynamic mask: elementwise operations on them, and the errors for all else.

Their number is dynamic, so they are represented by the whole array with the mask, and computed on the whole array.
Reductions of them, and calls with them, are in `compiler/numpy/masked.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...errors import Error, LiftError
from ...ir import Node
from ...ir.ops import integers
from ...ir.ops import scalars as ops
from ..frontend.core import Position
from ..frontend.source import error
from .values import Masked, node_of, type_of, unwrapped


def mask_error(x: Masked) -> LiftError:
    """The error for an operation that would need the number of the elements."""
    return error(
        "how many elements a mask or filter() chooses is known only as the function runs, and shapes must be known "
        "when it is compiled; use np.where(mask, x, 0.0), or np.sum with it. x[mask] itself can be used in arithmetic, "
        "assigned to the same places (x[mask] *= 2) and reduced (x[mask].sum()); filter(f, x) can be used in sum(), "
        "len(list()), np.mean(list()) and the like",
        x.at,
    )


def refuse_masked(x: Any) -> None:
    """Raises LiftError where there are such elements in an unwrapped value."""
    if isinstance(x, Masked):
        raise mask_error(x)
    for part in x if isinstance(x, tuple | list) else ():
        refuse_masked(part)


def masked_elements(content: Any, mask: Node, at: Position | None) -> Masked:
    """`content[mask]`, written at a position."""
    node = node_of(content)
    if node.shape[: mask.ndim] != mask.shape:
        raise Error(f"a mask of shape {mask.shape} does not fit an array of shape {node.shape}")
    return Masked(node, mask, at)


def broadcast_mask(mask: Node, shape: tuple[int, ...]) -> Node:
    """A mask of the first axes, with axes of length 1 for the others."""
    extra = len(shape) - mask.ndim
    return mask[(..., *(None,) * extra)] if extra else mask


def where(test: Node, a: Node, b: Node) -> Node:
    """`np.where` for nodes of any one kind."""
    kinds = {a.type.kind, b.type.kind}
    operation = ops.where
    if kinds == {"boolean"}:
        operation = integers.choose
    elif "real" not in kinds:
        operation = integers.where
    found: Node = operation(test, a, b)
    return found


# -- element by element ------------------------------------------------------------------------------------------------


def elementwise(compute: Callable[..., Any], args: Sequence[Any]) -> Masked:
    """An elementwise function applied to arguments of which some are masked elements."""
    first = next(x for x in args if isinstance(x, Masked))
    depth = first.values.ndim - first.mask.ndim  # the axes of a row
    found = []
    for x in args:
        t = None if isinstance(x, Masked) else type_of(x)
        same_mask = isinstance(x, Masked) and x.mask is first.mask and x.values.ndim - x.mask.ndim <= depth
        if not same_mask and (t is None or t.ndim > depth):
            raise mask_error(first)
        found.append(x.values if isinstance(x, Masked) else unwrapped(x))
    result = compute(*found)
    shape = getattr(result, "shape", ())
    if not isinstance(result, Node) or shape[: first.mask.ndim] != first.mask.shape:
        raise mask_error(first)
    return Masked(result, first.mask, first.at)
