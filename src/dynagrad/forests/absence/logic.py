"""Logic variables: values that may be unknown, and what makes two of them equal.

Matching of rules with known values only is in `forests/terms.py`, the search that binds these in `searching.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...facts.terms import Term, canonical, term_text
from ..terms import Unbound, same


@dataclass(eq=False)
class LogicVariable:
    """A logic variable."""

    name: str


@dataclass(frozen=True)
class Shape:
    """A compound term with logic variables in it."""

    functor: str
    arguments: tuple[Any, ...]


Env = dict[int, Any]


def walk(value: Any, env: Env) -> Any:
    while isinstance(value, LogicVariable) and id(value) in env:
        value = env[id(value)]
    return value


def _parts(value: Any) -> tuple[str, tuple[Any, ...]] | None:
    if isinstance(value, Shape):
        return value.functor, value.arguments
    if isinstance(value, Term):
        return value.functor, value.arguments
    if isinstance(value, tuple) and value:
        return "cons", (value[0], value[1:])
    return None


def unify(a: Any, b: Any, env: Env) -> bool:
    """Makes two values equal; binds logic variables."""
    stack = [(a, b)]
    while stack:
        x, y = stack.pop()
        x, y = walk(x, env), walk(y, env)
        if x is y:
            continue
        if isinstance(x, LogicVariable):
            env[id(x)] = y
        elif isinstance(y, LogicVariable):
            env[id(y)] = x
        elif isinstance(x, Shape) or isinstance(y, Shape):
            p, q = _parts(x), _parts(y)
            if p is None or q is None or p[0] != q[0] or len(p[1]) != len(q[1]):
                return False
            stack.extend(zip(p[1], q[1], strict=True))
        elif not same(x, y):
            return False
    return True


def ground(value: Any, env: Env) -> Any:
    """The value without logic variables. Raises Unbound."""
    value = walk(value, env)
    if isinstance(value, LogicVariable):
        raise Unbound
    if isinstance(value, Shape):
        return canonical(Term(value.functor, *(ground(v, env) for v in value.arguments)))
    return value


def text(value: Any, env: Env) -> str:
    value = walk(value, env)
    if isinstance(value, LogicVariable):
        return value.name
    if isinstance(value, Shape):
        return f"{value.functor}({','.join(text(v, env) for v in value.arguments)})"
    return term_text(value)
