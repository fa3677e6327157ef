"""Operations that raise an error when they run, and the messages of these errors.

`failure` stands in a branch that is taken when something went wrong. Its arguments are the code of the error and two
numbers for the message, which has them in this order as `%lld` and `%.3g`, so that C++ can format it too. An error that
a user raises has its own message, in the node, with any number of arguments.

C++ formats them in `graphs/failure.hpp`. Errors of the compiler itself are raised at once, and are no operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import Error, NotConverged, NotDifferentiable, RunError
from ..runtime.shared import SHARED
from .control import zero
from .node import Node, constant, intern, whole
from .operation import Operation
from .ops import scalars as ops
from .types import DIFFERENTIABLE, Type, boolean, heap, integer, real

# 1 is not an error: see SETTLED of autodiff/fixed_point.py
UNSETTLED, _, NAN, INFINITE, SINGULAR, NOT_FINITE, LINEAR_UNSETTLED, RAISED = range(8)

_START = "start nearer to the solution, or take smaller steps, such as x + 0.5 * (f(x) - x)"

FAILURES: dict[int, tuple[type[Error], str]] = {
    UNSETTLED: (
        NotConverged,
        "fixed_point: no fixed point was reached in %lld steps; the last one still changed x by %.3g. Give more "
        "max_steps or a larger tolerance, start nearer, or iterate something that contracts, such as a step of "
        "Newton's method",
    ),
    NAN: (Error, f"fixed_point: step %lld reached NaN; {_START}"),
    INFINITE: (Error, f"fixed_point: step %lld reached an infinity; {_START}"),
    NOT_FINITE: (NotDifferentiable, "fixed_point: the derivative of f at the solution is not finite"),
    SINGULAR: (
        NotDifferentiable,
        "fixed_point: I - A is singular, where A is the derivative of f at the solution: an eigenvalue of A is 1, as "
        "where two solutions meet, and then the solution is no differentiable function of what f depends on",
    ),
    LINEAR_UNSETTLED: (
        NotDifferentiable,
        "fixed_point: v = r + A v, where A is the derivative of f at the solution, did not settle in %lld steps: an "
        "eigenvalue of A is 1 or close to it. Where that is expected, give more max_steps",
    ),
}


def failure(code: int, steps: int = 0, change: float = 0.0) -> Error:
    """The error with this code.

    >>> str(failure(NAN, 3))[:32]
    'fixed_point: step 3 reached NaN;'
    """
    kind, text = FAILURES[code]
    return kind(text.replace("%lld", f"{steps}").replace("%.3g", f"{change:.3g}"))


def _fail(code: Any, steps: Any, change: Any) -> float:
    raise failure(int(code), int(steps), float(change))


fail = Operation("failure", (integer, integer, real), real, _fail, (None, None, None), "", code=("failure",))


def failing(types: Sequence[Type], code: Node, steps: Node | None = None, change: Node | None = None) -> list[Node]:
    """Results of these types for a branch that raises an error.

    >>> from dynagrad.ir.types import arrays
    >>> [x] = failing([arrays(real, (2,))], whole(NAN))
    >>> x.type.name
    'real[2]'
    """
    arguments = code, whole(0) if steps is None else steps, constant(0.0) if change is None else change
    number = intern(fail, arguments, "failure", real)  # an attribute keeps it from being constant-folded
    return [ops.add(zero(t), number) for t in types]


# -- errors that users raise -------------------------------------------------------------------------------------------

LONGEST = SHARED.constant("kMessage") - 16
"""The most bytes of a message, which leaves room for its numbers."""


@dataclass(frozen=True, eq=False)
class Raised:
    """The message of one `raise` statement, with a `%lld` for each integer and a `%.12g` for each real.

    Compared by identity, so that no two statements are hash-consed into one node, which would run where the first is.
    """

    text: str


def message_of(text: str, numbers: Sequence[Any]) -> str:
    """The formatted message.

    >>> message_of("%lld of %.12g", (3, 0.1))
    '3 of 0.1'
    """
    return text.replace("%lld", "%d") % tuple(numbers)


def raising(text: str, token: Node, test: Node, numbers: Sequence[Node] = ()) -> Node:
    """An integer whose computation raises RunError, after everything that the token depends on (a data dependence).

    It also depends on the test that guards it, since a node of constants alone would be hoisted out of its branch.

    >>> raising("no", whole(0), constant(True)).type.name
    'integer'
    """
    while len(text.encode()) > LONGEST:
        text = text[:-8].rstrip("%lgd.12") + "..."
    place = Raised(text)

    def value(token: Any, test: Any, *shown: Any) -> int:
        raise RunError(message_of(text, shown))

    types = (integer, boolean, *(n.type for n in numbers))
    operation = Operation("raise", types, integer, value, (None,) * len(types), "", code=("raise", text))
    return intern(operation, (token, test, *numbers), place, integer)


def always_fails(node: Node) -> bool:
    """Whether a node raises an error wherever it is computed.

    >>> always_fails(raising("no", whole(0), constant(True))), always_fails(whole(0))
    (True, False)
    """
    code = node.operation.code
    return code is not None and code[0] in ("raise", "failure")


def _after(kind: Type) -> Operation:
    passed = (lambda d, _, token, x: d) if kind.kind in DIFFERENTIABLE else None
    return Operation(
        f"{kind.name}_after",
        (integer, kind),
        kind,
        lambda token, x: x,
        (None, passed),
        "{1}",
        array=lambda token, x: np.broadcast_to(x, np.broadcast_shapes(np.shape(token), np.shape(x))),
    )


_AFTER = {kind.kind: _after(kind) for kind in (real, integer, boolean, heap)}


def after(token: Node, x: Node) -> Node:
    """The value of `x`, computed after a token: the identity, with a data dependence.

    >>> from dynagrad.ir.node import variable
    >>> after(variable("t", integer), variable("x")).type.name
    'real'
    """
    found: Node = _AFTER[x.type.kind](token, x)
    return found
