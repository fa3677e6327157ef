"""Calls for operations that raise (`ir/failures.py`): a status and a message."""

from __future__ import annotations

from collections.abc import Callable

from ....errors import RunError
from ....ir.code import code_of
from ....ir.failures import FAILURES, RAISED
from ....ir.node import Node
from ....runtime.shared import SHARED
from ...cxx import string
from .status import Status, Written

FIRST = SHARED.numbers("GraphOutcome")["FAILURE"]

ERRORS = {FIRST + code: kind for code, (kind, _) in FAILURES.items()} | {FIRST + RAISED: RunError}
"""The exception for each status."""


def _write(node: Node, out: str, code: str, steps: str, change: str) -> Written:
    text = '""'
    for number, (_, words) in FAILURES.items():
        text = f'*{code} == {number} ? "{words}" : {text}'
    return Status(f"failure(call, *{code}, {text}, *{steps}, *{change})")


def _raise(node: Node, out: str, token: str, test: str, *numbers: str) -> Written:
    text = string(code_of(node)[1])
    casts = ["" if a.type.kind == "real" else "(long long)" for a in node.arguments[2:]]
    given = "".join(f", {cast}*{number}" for cast, number in zip(casts, numbers, strict=True))
    return Status(f"raised(call, {RAISED}, {text}{given})")


def rule_of(node: Node) -> Callable[..., Written] | None:
    """The rule for a node that raises an error; None for others."""
    tag = code_of(node)
    if tag and tag[0] == "raise":
        return _raise
    return _write if tag == ("failure",) else None
