"""What terms mean, by the words of the design alone: Python closures, and `dg.vjp` and `dg.jvp` for derivatives.

It shares nothing with reduction, nor with the evaluator. Differential substitution is a second judge, for terms that
are first-order once their functions are applied.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import dynagrad as dg
from dynagrad.languages.pullback.terms import (
    App,
    Covector,
    DualMap,
    FormPullback,
    Jac,
    Lam,
    Num,
    Pair,
    Pattern,
    Prim,
    Proj,
    PullbackTerm,
    TermSum,
    Var,
    Zero,
)

PRIMITIVES: dict[str, Callable[..., Any]] = {
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "exp": np.exp,
    "log": np.log,
    "square": lambda x: x * x,
    "mult": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "neg": lambda x: -x,
}
sys.setrecursionlimit(max(20_000, sys.getrecursionlimit()))
Scope = dict[str, Any]


def add(a: Any, b: Any) -> Any:
    if a is None or b is None:  # the term 0
        return b if a is None else a
    if isinstance(a, tuple):
        return (add(a[0], b[0]), add(a[1], b[1]))
    if callable(a):
        return lambda u: add(a(u), b(u))
    return a + b


def numbers(value: Any, count: int) -> list[Any]:
    if value is None:
        return [0.0] * count
    if count == 1:
        return [value]
    first, rest = value
    return [0.0 if first is None else first, *numbers(rest, count - 1)]


def flat(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, tuple) and all(map(flat, value)))


def dot(c: Any, u: Any) -> Any:
    if u is None:
        return 0.0
    return dot(c[0], u[0]) + dot(c[1], u[1]) if isinstance(c, tuple) else c * u


def bind(scope: Scope, pattern: Pattern, value: Any) -> Scope:
    if isinstance(pattern, str):
        return {**scope, pattern: value}
    first, second = (None, None) if value is None else value
    return bind(bind(scope, pattern[0], first), pattern[1], second)


def apply(f: Any, a: Any) -> Any:
    return None if f is None else f(a)


def derivative(f: Callable[[Any], Any], v: Any, u: Any) -> Any:
    """D f (v) u for a function to the reals."""
    if flat(v):
        _, pull = dg.vjp(f, v)
        return dot(pull(1.0)[0], u)
    return dg.derivative(lambda e: f(add(v, scaled(e, u))))(0.0)


def scaled(e: Any, u: Any) -> Any:
    if u is None:
        return None
    if isinstance(u, tuple):
        return (scaled(e, u[0]), scaled(e, u[1]))
    return (lambda a: scaled(e, u(a))) if callable(u) else e * u


def meaning(of: PullbackTerm, scope: Scope) -> Any:
    """The value of a term; None for 0."""
    match of:
        case Var(name):
            return scope[name]
        case Num(value):
            return value
        case Zero():
            return None
        case Covector(coefficients):
            return lambda u: dot(coefficients, u)
        case App(Lam(pattern, body), bound):
            return meaning(body, bind(scope, pattern, meaning(bound, scope)))
        case Lam(pattern, body):
            return lambda a: meaning(body, bind(scope, pattern, a))
        case App(function, argument):
            return apply(meaning(function, scope), meaning(argument, scope))
        case Pair(first, second):
            return (meaning(first, scope), meaning(second, scope))
        case TermSum(first, second):
            return add(meaning(first, scope), meaning(second, scope))
        case Proj(index, inner):
            whole = meaning(inner, scope)
            return None if whole is None else whole[index - 1]
        case Prim(name, argument):
            return primitive(name, meaning(argument, scope))
        case Jac(name, along) if name.endswith("'"):
            s = meaning(along, scope)
            return lambda p: dg.jvp(lambda x: primitive(name, x), (p,), (filled(s, p),))[1]
        case Jac(name, along):
            s = numbers(meaning(along, scope), width(name))
            return lambda p: directional(PRIMITIVES[name], numbers(p, width(name)), s)
        case DualMap(pattern, body, functional):
            t = meaning(functional, scope)
            return lambda v: apply(t, meaning(body, bind(scope, pattern, v)))
        case FormPullback(pattern, body, form):
            w = meaning(form, scope)

            def pulled(v: Any) -> Any:
                def inside(x: Any) -> Any:
                    return meaning(body, bind(scope, pattern, x))

                t = apply(w, inside(v))

                def functional(x: Any) -> Any:
                    found = apply(t, inside(x))
                    return 0.0 if found is None else found

                return lambda u: 0.0 if u is None else derivative(functional, v, u)

            return pulled
    raise AssertionError(of)


def filled(value: Any, like: Any) -> Any:
    """The value with numbers in place of the term 0."""
    if isinstance(like, tuple):
        first, second = (None, None) if value is None else value
        return (filled(first, like[0]), filled(second, like[1]))
    return 0.0 if value is None else value


def width(name: str) -> int:
    return 2 if name in ("mult", "div") else 1


def primitive(name: str, value: Any) -> Any:
    """The value of a primitive, or of a derivative of one: each tangent is one more derivative by the point."""
    base = name.rstrip("'")
    tangents: list[list[Any]] = []
    for _ in range(len(name) - len(base)):
        tangent, value = (None, None) if value is None else value
        tangents.append(numbers(tangent, width(base)))
    return derived(PRIMITIVES[base], tangents, numbers(value, width(base)))


def derived(f: Callable[..., Any], tangents: list[list[Any]], at: list[Any]) -> Any:
    if not tangents:
        return f(*at)
    *before, last = tangents
    return directional(lambda *q: derived(f, before, list(q)), at, last)


def directional(f: Callable[..., Any], at: list[Any], along: list[Any]) -> Any:
    return dg.jvp(lambda x: f(*x), (tuple(at),), (tuple(along),))[1]


# -- differential substitution -----------------------------------------------------------------------------------------


def substituted(of: PullbackTerm, scope: dict[str, PullbackTerm]) -> PullbackTerm:
    """The term with functions applied and bindings carried out; its bound variables all have names of their own."""
    match of:
        case Var(name):
            return scope.get(name, of)
        case App(function, argument):
            f, a = substituted(function, scope), substituted(argument, scope)
            if isinstance(f, Lam):
                return substituted(f.body, dict(matched(f.pattern, a)))
            return App(f, a)
        case Lam(pattern, body):
            return Lam(pattern, substituted(body, scope))
        case Pair(first, second):
            return Pair(substituted(first, scope), substituted(second, scope))
        case TermSum(first, second):
            return TermSum(substituted(first, scope), substituted(second, scope))
        case Proj(index, inner):
            whole = substituted(inner, scope)
            if isinstance(whole, Pair):
                return whole.first if index == 1 else whole.second
            return Proj(index, whole)
        case Prim(name, argument):
            return Prim(name, substituted(argument, scope))
    return of


def matched(pattern: Pattern, a: PullbackTerm) -> list[tuple[str, PullbackTerm]]:
    if isinstance(pattern, str):
        return [(pattern, a)]
    first, second = (a.first, a.second) if isinstance(a, Pair) else (Proj(1, a), Proj(2, a))
    return matched(pattern[0], first) + matched(pattern[1], second)


def along(of: PullbackTerm, tangents: dict[str, PullbackTerm]) -> PullbackTerm:
    """The derivative of a term whose functions are applied: each linear occurrence of a variable becomes its tangent,
    in turn."""
    match of:
        case Var(name):
            return tangents.get(name, Zero())
        case Num() | Zero():
            return Zero()
        case Pair(first, second):
            return Pair(along(first, tangents), along(second, tangents))
        case TermSum(first, second):
            return TermSum(along(first, tangents), along(second, tangents))
        case Proj(index, inner):
            return Proj(index, along(inner, tangents))
        case Prim(name, argument):
            return App(Jac(name, along(argument, tangents)), argument)
    raise AssertionError(of)
