"""Strength reduction: several divisions by the same square root become one `rsqrt` and products.

A square root is never subnormal, since its square would be smaller than any double. So its reciprocal is infinite only
for a root of zero, and zero only for an infinite one, where the quotients are, too. Therefore these divisions, unlike
those by other numbers, may share a reciprocal: values change by rounding alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..node import Node, constant, intern, order, substitute
from ..ops import scalars as ops

_ONE = constant(1.0)


def share_roots(outputs: Sequence[Node]) -> tuple[Node, ...]:
    """The outputs with one `rsqrt` for each root that is a divisor several times, or under a one.

    >>> from dynagrad.ir import sqrt, variable
    >>> x, y = variable("x"), variable("y")
    >>> share_roots([x / sqrt(y), 2.0 / sqrt(y)])
    (x * rsqrt(y), 2.0 * rsqrt(y))
    """
    by_root: dict[Node, list[Node]] = {}
    for node in order(outputs):
        if node.operation is ops.divide and node.arguments[1].operation is ops.sqrt:
            by_root.setdefault(node.arguments[1], []).append(node)
    by: dict[Node, Node] = {}
    for root, quotients in by_root.items():
        if len(quotients) > 1 or quotients[0].arguments[0] is _ONE:
            inverse = intern(ops.rsqrt, root.arguments)
            for q in quotients:
                over = q.arguments[0]
                by[q] = inverse if over is _ONE else intern(ops.multiply, (over, inverse))
    return _replaced(outputs, by) if by else tuple(outputs)


def _replaced(outputs: Sequence[Node], by: dict[Node, Node]) -> tuple[Node, ...]:
    """The outputs with quotients replaced, also inside of replacements."""
    done: dict[Node, Node] = {}
    for node in order(outputs):
        if node in by:
            done[node] = substitute([by[node]], done)[0]
    return substitute(outputs, done)
