"""What a function raises while it is specialised: `raise` and `assert`, and `try` around what cannot raise.

Whether something is raised may be decided as the graph runs. The specialiser has a token: a whole number, always 0,
that is changed like a variable where something may be raised, by a branch that raises or leaves it as it was. So
choices, loops and calls hand it on, and at the end the results come after it: nothing that is checked is left out, and
what is checked comes before what is computed afterwards.
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
    """`raise x`, which has no value."""
    cls = x if isinstance(x, type) else type(x)
    if not (isinstance(cls, type) and issubclass(cls, BaseException)):
        cls = Exception
    s.may_raise(cls)
    parts = _shown(x)
    if not s.level:
        raise s.error(f"the function raises {DynamicText.of(*parts)}")
    fail(s, parts)
    return UNDEFINED


def _shown(x: Any) -> tuple[Any, ...]:
    """What is raised, as texts and numbers."""
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
    """Raises RunError where the graph gets here; the parts are texts and numbers."""
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
    """What a failed `assert` raises."""
    given = message[0] if message else f"{shown} does not hold"
    return AssertionError(given if known(given) else DynamicText.of(given))
