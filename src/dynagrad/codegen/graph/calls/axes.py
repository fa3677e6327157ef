"""Writes calls of `dynagrad/graphs/axes.hpp`: sorts, scans, gathers, extrema and convolutions along axes.

A rule gives a C++ statement, a `Status`, or None for a case that is left to Python: maxima over axes that are not
adjacent, and indices that broadcast along other axes.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ....ir.code import code_of
from ....ir.node import Node
from ....ir.types import Shape
from .status import Status, Written

Rule = Callable[..., Written | None]  # (node, result, *arguments); pointers, in C++


def split(shape: Shape, axes: tuple[int, ...]) -> tuple[int, int, int] | None:
    """The number of elements before, on and after axes; None where these are not adjacent and in order.

    >>> split((2, 3, 4, 5), (1, 2)), split((2, 3, 4), (0, 2))
    ((2, 12, 5), None)
    """
    if not axes or axes != tuple(range(axes[0], axes[-1] + 1)):
        return None
    counts = [1, 1, 1]
    for axis, n in enumerate(shape):
        counts[(axis >= axes[0]) + (axis > axes[-1])] *= n
    return counts[0], counts[1], counts[2]


def _winners(node: Node, out: str, x: str) -> str | None:
    _, largest, axes = code_of(node)
    parts = split(node.arguments[0].shape, tuple(axes))
    if parts is None or node.type.kind != "boolean":
        return None
    return f"winners<{'true' if largest else 'false'}>({out}, {x}, {parts[0]}, {parts[1]}, {parts[2]});"


def _cumprod(node: Node, out: str, x: str) -> str | None:
    parts = split(node.shape, (code_of(node)[1],))
    return parts and f"cumprod({out}, {x}, {parts[0]}, {parts[1]}, {parts[2]});"


def _symmetric(node: Node, out: str, x: str) -> str:
    return f"symmetric({out}, {x}, {math.prod(node.shape[:-2])}, {node.shape[-1]});"


def _along(name: str) -> Rule:
    """The rule of `take_along` and `put_along`, which gather from and scatter to an axis of an array."""

    def rule(node: Node, out: str, x: str, order: str) -> Written | None:
        axis = code_of(node)[1]
        places = node.arguments[1].shape
        whole, part = (node.arguments[0].shape, node.shape) if name == "take_along" else (node.shape, places)
        if part != places or node.arguments[0].shape not in (whole, places):
            return None
        if len(whole) != len(places) or any(
            a != b for k, (a, b) in enumerate(zip(whole, places, strict=True)) if k != axis
        ):
            return None
        if name == "put_along" and node.arguments[0].shape != places:
            return None
        parts = split(whole, (axis,))
        assert parts is not None
        return Status(f"{name}(call, {out}, {x}, {order}, {parts[0]}, {parts[1]}, {places[axis]}, {parts[2]})")

    return rule


def _sort(node: Node, out: str, x: str) -> Written | None:
    code = code_of(node)
    parts = split(node.shape, (code[1],))
    if parts is None or node.type.kind != ("real" if code[0] == "sort" else "integer"):
        return None
    to = f"{out}, nullptr" if code[0] == "sort" else f"nullptr, {out}"
    return Status(f"sort_along(call, {to}, {x}, {parts[0]}, {parts[1]}, {parts[2]})")


def _convolve(node: Node, out: str, a: str, v: str) -> str | None:
    x, y = (n.shape for n in node.arguments)
    if len(x) != 1 or len(y) != 1:
        return None
    name = "convolve_full" if code_of(node)[1] else "convolve_valid"
    return f"{name}({out}, {a}, {x[0]}, {v}, {y[0]});"


def _overlaps(node: Node, out: str, d: str) -> str:
    _, axes, _, shape = code_of(node)
    given = node.arguments[0].shape
    n = len(shape)
    own = [1] * n
    for k in range(n - 2, -1, -1):
        own[k] = own[k + 1] * shape[k + 1]
    # The stride in the result of each axis of the argument: a window's position, and the position inside the window.
    far = [*own, *(own[axis] for axis in axes)]
    lengths = ", ".join(map(str, given))
    return (
        f"{{ static const int64_t lengths[] = {{{lengths}}}, far[] = {{{', '.join(map(str, far))}}}; "
        f"overlaps({out}, {math.prod(shape)}, {d}, {len(given)}, lengths, far); }}"
    )


RULES: dict[str, Rule] = {
    "convolve": _convolve,
    "overlaps": _overlaps,
    "winners": _winners,
    "cumprod": _cumprod,
    "symmetric": _symmetric,
    "take_along": _along("take_along"),
    "put_along": _along("put_along"),
    "sort": _sort,
    "argsort": _sort,
}
"""By family of `Operation.code`."""


def rule_of(node: Node) -> Rule | None:
    """The rule for a node on reals; None where there is none."""
    code = code_of(node)
    if not code or node.arguments[0].type.kind != "real":
        return None
    return RULES.get(code[0])
