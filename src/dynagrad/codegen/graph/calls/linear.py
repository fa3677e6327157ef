"""Calls for linear algebra: which function of which header, with which sizes.

A rule gives a C++ statement, a `Status`, or None for a case that is left to Python: stacks of matrices that broadcast
in both operands. The loops themselves are C++ (`graphs/linalg/`).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ....ir.code import code_of
from ....ir.node import Node
from ....ir.types import Shape
from .status import Status, Written

Rule = Callable[..., Written | None]  # (node, result, *arguments); pointers, in C++


def _steps(out: Shape, left: Shape, right: Shape) -> tuple[bool, bool] | None:
    """Whether each operand advances from matrix to matrix, or is the same for all; None where it broadcasts in part."""
    moves = []
    for stack in (left, right):
        if math.prod(stack) != 1 and math.prod(stack) != math.prod(out):
            return None
        moves.append(math.prod(stack) == math.prod(out) and math.prod(out) > 1)
    return moves[0], moves[1]


def _matmul(node: Node, out: str, a: str, b: str) -> str | None:
    left, right = (x.shape for x in node.arguments)
    if not left or not right:
        return None
    m, k = (1, left[0]) if len(left) == 1 else left[-2:]
    n = 1 if len(right) == 1 else right[-1]
    stack = node.shape[: len(node.shape) - (len(left) > 1) - (len(right) > 1)]
    moves = _steps(stack, left[:-2], right[:-2])
    if moves is None:
        return None
    if math.prod(stack) == 1:
        return f"matmul({out}, {a}, {b}, {m}, {k}, {n});"
    steps = m * k * moves[0], k * n * moves[1]
    return f"matmul({math.prod(stack)}, {out}, {a}, {steps[0]}, {b}, {steps[1]}, {m}, {k}, {n});"


def _solve(node: Node, out: str, a: str, b: str) -> Written | None:
    left, right = (x.shape for x in node.arguments)
    single = len(right) == 1
    n, m = left[-1], 1 if single else right[-1]
    stack = node.shape[: len(node.shape) - 2 + single]
    moves = _steps(stack, left[:-2], () if single else right[:-2])
    if moves is None:
        return None
    if math.prod(stack) == 1:
        return Status(f"solve(call, {out}, {a}, {b}, {n}, {m})")
    return Status(f"solve(call, {math.prod(stack)}, {out}, {a}, {n * n * moves[0]}, {b}, {n * m * moves[1]}, {n}, {m})")


def _solve_lower(node: Node, out: str, a: str, b: str) -> Written | None:
    left, right = (x.shape for x in node.arguments)
    n, m = right[-2:]
    moves = _steps(node.shape[:-2], left[:-2], right[:-2])
    if moves is None:
        return None
    steps, flag = (n * n * moves[0], n * m * moves[1]), "true" if code_of(node)[1] else "false"
    count = math.prod(node.shape[:-2])
    return Status(f"solve_lower(call, {count}, {out}, {a}, {steps[0]}, {b}, {steps[1]}, {n}, {m}, {flag})")


def _lower_product(node: Node, out: str, a: str, b: str) -> str | None:
    left, right = (x.shape for x in node.arguments)
    n, moves = left[-1], _steps(node.shape[:-2], left[:-2], right[:-2])
    if moves is None:
        return None
    steps = n * n * moves[0], n * n * moves[1]
    return f"lower_product({math.prod(node.shape[:-2])}, {out}, {a}, {steps[0]}, {b}, {steps[1]}, {n});"


def _of_matrices(name: str) -> Rule:
    def rule(node: Node, out: str, a: str) -> Written:
        shape = node.arguments[0].shape
        text = f"{name}(call, {math.prod(shape[:-2])}, {out}, {a}, {shape[-1]})"
        strict = name == "inverse" and code_of(node)[1:] == (True,)
        return Status(f"differentiable(call, {text})" if strict else text)

    return rule


def _of_determinant(place: int) -> Rule:
    def rule(node: Node, out: str, a: str) -> Written:
        shape = node.arguments[0].shape
        places = ", ".join(out if i == place else "nullptr" for i in range(3))
        return Status(f"determinant(call, {math.prod(shape[:-2])}, {places}, {a}, {shape[-1]})")

    return rule


RULES: dict[str, dict[str, Rule]] = {
    "linalg/products": {"matmul": _matmul},
    "linalg/factors": {
        "solve": _solve,
        "solve_lower": _solve_lower,
        "lower_product": _lower_product,
        "inv": _of_matrices("inverse"),
        "cholesky": _of_matrices("cholesky"),
    },
    "linalg/determinants": {
        "cofactors": _of_matrices("cofactors"),
        "slogdet_sign": _of_determinant(0),
        "logabsdet": _of_determinant(1),
        "det": _of_determinant(2),
    },
}
"""By the header in `dynagrad/graphs` that has the functions, and by family of `Operation.code`."""


def rule_in(header: str) -> Callable[[Node], Rule | None]:
    """The lookup of a header: from a node on reals to its rule, or None."""
    rules = RULES[header]

    def rule_of(node: Node) -> Rule | None:
        code = code_of(node)
        if not code or node.type.kind != "real" or any(a.type.kind != "real" for a in node.arguments):
            return None
        return rules.get(code[0])

    return rule_of
