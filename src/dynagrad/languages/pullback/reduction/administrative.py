"""Administrative reduction: a term becomes a let series of elementary terms, in which no subterm is evaluated twice.

The bodies of abstractions, dual maps and pullbacks become let series too. The order of bindings is that of a
call-by-value evaluation from left to right. A derivative of a primitive keeps its tangents apart: `f'(z, z)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..infer import Typed, slots
from ..rename import FreshNames, names_of
from ..terms import (
    App,
    DualMap,
    FormPullback,
    Jac,
    Lam,
    Pair,
    Pattern,
    Prim,
    Proj,
    PullbackTerm,
    TermSum,
    Var,
)
from ..trampoline import Call, run
from ..trees import nested_right
from ..types import TermType

Binding = tuple[str, PullbackTerm]
LEFT_OUT = Var("…")
"""What stands for the rest of a term in an abbreviation."""


@dataclass(frozen=True, eq=False)
class TermSeries:
    """A let series: variables and elementary terms. Its value is that of the last variable."""

    bindings: tuple[Binding, ...]

    def term(self, start: int = 0, most: int | None = None) -> PullbackTerm:
        """The series from a binding on as nested `let`; after `most` of them the rest is left out."""
        if most is not None and start + most < len(self.bindings):
            return lets(self.bindings[start : start + most], LEFT_OUT)
        return lets(self.bindings[start:], Var(self.bindings[-1][0]))


def lets(bindings: list[Binding] | tuple[Binding, ...], body: PullbackTerm) -> PullbackTerm:
    """`let y1 = E1 in ... in body`"""
    for name, bound in reversed(bindings):
        body = App(Lam(name, body), bound)
    return body


@dataclass(frozen=True, eq=False)
class _Supply:
    """New names for subterms, and the types of what they stand for."""

    names: FreshNames
    of_part: Mapping[int, TermType]
    of_variable: dict[str, TermType]

    def fresh(self, of: PullbackTerm | None = None) -> str:
        name = self.names.fresh("t")
        if of is not None and id(of) in self.of_part:
            self.of_variable[name] = self.of_part[id(of)]
        return name


def reduce_administratively(
    of: PullbackTerm, names: FreshNames | None = None, typed: Typed | None = None
) -> TermSeries:
    """The let series of a term whose binders bind different names.

    >>> from ..parse import parse
    >>> reduce_administratively(parse("square((x + 1) * x)")).term()
    let t = 1 in let t₁ = x + t in let t₂ = <t₁, x> in let t₃ = mult(t₂) in let t₄ = square(t₃) in t₄
    """
    if names is None:
        names = FreshNames(names_of(of))
    parts, variables = (typed.of_part, typed.of_variable) if typed is not None else ({}, {})
    return run(_series(of, _Supply(names, parts, variables)))


def _series(of: PullbackTerm, names: _Supply) -> Call[TermSeries]:
    bindings: list[Binding] = []
    last = yield _elementary(of, bindings, names)
    if not (isinstance(last, Var) and bindings and bindings[-1][0] == last.name):
        bindings.append((names.fresh(of), last))
    return TermSeries(tuple(bindings))


def _named(of: PullbackTerm, bindings: list[Binding], names: _Supply) -> Call[PullbackTerm]:
    """A variable that stands for the term."""
    if isinstance(of, Var):
        return of
    made = yield _elementary(of, bindings, names)
    if isinstance(made, Var):
        return made
    name = names.fresh(of)
    bindings.append((name, made))
    return Var(name, span=of.span)


def unpacked(pattern: Pattern, of: str, names: _Supply) -> list[Binding]:
    """The bindings of the variables of a pattern to what they are of a pair."""
    made: list[Binding] = []
    todo: list[tuple[Pattern, str]] = [(pattern, of)]
    while todo:
        part, whole = todo.pop()
        assert not isinstance(part, str)
        inner: list[tuple[Pattern, str]] = []
        for index in (1, 2):
            component = part[index - 1]
            name = component if isinstance(component, str) else names.fresh()
            made.append((name, Proj(index, Var(whole))))
            if not isinstance(component, str):
                inner.append((component, name))
        todo += reversed(inner)
    return made


def _elementary(of: PullbackTerm, bindings: list[Binding], names: _Supply) -> Call[PullbackTerm]:
    while isinstance(of, App) and isinstance(of.function, Lam):
        pattern = of.function.pattern
        bound = yield _elementary(of.argument, bindings, names)
        if isinstance(pattern, str):
            bindings.append((pattern, bound))
        else:
            if not isinstance(bound, Var):
                name = names.fresh()
                bindings.append((name, bound))
            else:
                name = bound.name
            bindings += unpacked(pattern, name, names)
        of = of.function.body
    match of:
        case TermSum(first, second):
            left = yield _named(first, bindings, names)
            return TermSum(left, (yield _named(second, bindings, names)), span=of.span)
        case Pair(first, second):
            left = yield _named(first, bindings, names)
            return Pair(left, (yield _named(second, bindings, names)), span=of.span)
        case App(function, argument):
            left = yield _named(function, bindings, names)
            return App(left, (yield _named(argument, bindings, names)), span=of.span)
        case Proj(index, inner):
            return Proj(index, (yield _named(inner, bindings, names)), span=of.span)
        case Prim(name, argument):
            apart = []
            for slot in slots(name, argument) or [argument]:
                apart.append((yield _named(slot, bindings, names)))
            return Prim(name, nested_right(apart, Pair), span=of.span)
        case Jac(name, along):
            return Jac(name, (yield _named(along, bindings, names)), span=of.span)
        case Lam(pattern, body):
            return Lam(pattern, (yield _series(body, names)).term(), span=of.span)
        case DualMap(pattern, body, functional):
            inside = (yield _series(body, names)).term()
            return DualMap(pattern, inside, (yield _named(functional, bindings, names)), span=of.span)
        case FormPullback(pattern, body, form):
            inside = (yield _series(body, names)).term()
            return FormPullback(pattern, inside, (yield _named(form, bindings, names)), span=of.span)
    return of


def series_of(of: PullbackTerm) -> TermSeries | None:
    """The let series that a term is already; None if it is none."""
    bindings: list[Binding] = []
    while type(of) is App and type(of.function) is Lam:
        function, bound = of.function, of.argument
        if type(function.pattern) is not str or not elementary(bound):
            return None
        bindings.append((function.pattern, bound))
        of = function.body
    return TermSeries(tuple(bindings)) if bindings and isinstance(of, Var) and of.name == bindings[-1][0] else None


def elementary(of: PullbackTerm) -> bool:
    """Whether a term is elementary, bodies aside."""
    match of:
        case Prim(_, Var()) | Lam():
            return True
        case App(Lam(), _):
            return False
        case Prim(name, argument):
            return all(isinstance(slot, Var) for slot in slots(name, argument) or [argument])
        case DualMap(_, _, inner) | FormPullback(_, _, inner):
            return isinstance(inner, Var)
    return all(isinstance(getattr(of, name), Var) for name in of.parts)
