"""Errors that a graph raises as it runs (`graph/failures.py`): a status and its words."""

from __future__ import annotations

from collections.abc import Callable

from ...graph.code import code_of
from ...graph.failures import FAILURES
from ...graph.node import Node

FIRST = 80  # `kFailure` in failure.hpp

ERRORS = {FIRST + code: kind for code, (kind, _) in FAILURES.items()}
"""The exceptions that stand for a status."""


def _write(node: Node, out: str, code: str, steps: str, change: str) -> str:
    text = '""'
    for number, (_, words) in FAILURES.items():
        text = f'*{code} == {number} ? "{words}" : {text}'
    return f"status:failure(call, *{code}, {text}, *{steps}, *{change})"


def rule_of(node: Node) -> Callable[..., str] | None:
    """The rule for a node, if it raises an error."""
    return _write if code_of(node) == ("failure",) else None
