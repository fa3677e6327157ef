"""`raise` and `assert` while a function is specialised, and checks that the graph makes as it runs.

Whether an exception is raised may be dynamic. Checks are ordered by a token, as effects are in JAX: a whole number,
always 0, that the specialiser treats as a variable. A branch that raises changes it, so choices, loops and calls pass
it on, and the results of a function come after it. No check is dropped as dead code, and a check comes before what is
computed after it. The operations that raise are declared in `ir/failures.py`.
"""

from __future__ import annotations

from typing import Any

from ...errors import Error
from ...ir import Node
from ...ir.failures import raising
from ...ir.node import constant
from ...ir.types import KINDS
from ..frontend.core import UNDEFINED
from .specialiser import Specialiser, primitive
from .values import DynamicText, as_type, known, node_of


@primitive("raise")
def raise_(s: Specialiser, x: Any) -> Any:
    """`raise x`, which has no value. At the top level it is an error of specialisation."""
    cls = x if isinstance(x, type) else type(x)
    if not (isinstance(cls, type) and issubclass(cls, BaseException)):
        cls = Exception
    s.may_raise(cls)
    parts = _shown(x)
    s.raised = x
    if not s.level:
        raise s.error(str(x) if isinstance(x, Error) else f"the function raises {DynamicText.of(*parts)}")
    fail(s, parts)
    return UNDEFINED


def _shown(x: Any) -> tuple[Any, ...]:
    """The message of an exception, as texts and numbers."""
    if isinstance(x, type):
        return (x.__name__,)
    if not isinstance(x, BaseException):
        return ("an exception",)
    name = type(x).__name__
    if not x.args:
        return (name,)
    if len(x.args) == 1 and isinstance(x.args[0], DynamicText):
        return (f"{name}: ", *x.args[0].parts)
    return (f"{name}: {x}",)


def fail(s: Specialiser, parts: tuple[Any, ...]) -> None:
    """Raises RunError where the graph takes this branch; the message is made of texts and numbers."""
    place = f" ({s.at.file.rsplit('/', 1)[-1]}, line {s.at.line})" if s.at is not None else ""
    numbers: list[Node] = []
    text = ""
    for part in (*parts, place):
        if isinstance(part, Node):
            whole = part.type.kind == "integer"
            text += "%lld" if whole else "%.12g"
            numbers.append(part if whole else as_type(part, KINDS["real"]))
        else:
            text += str(part).replace("%", "%%")
    test = constant(True) if s.test is None else s.test
    s.put(s.token, raising(text, node_of(s.token.content), test, numbers))


def check(s: Specialiser, test: Any, *parts: Any) -> None:
    """Raises RunError where a condition does not hold as the graph runs."""
    if isinstance(test, bool):
        if not test:
            raise Error(str(DynamicText.of(*parts)))
        return
    s.cond(test, lambda: None, lambda: fail(s, parts))


@primitive("assertion")
def assertion(s: Specialiser, shown: str, *message: Any) -> Any:
    """The exception of a failed `assert`."""
    given = message[0] if message else f"{shown} does not hold"
    return AssertionError(given if known(given) else DynamicText.of(given))
