"""Duals as values: added up, taken apart, scaled, read as coefficients, and put together for what a pattern binds.

How a dual is found for each elementary term is in `rules.py` and `transpose.py`.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from ..primitives import finite, known
from ..terms import (
    ZERO,
    App,
    Coefficients,
    Covector,
    DualMap,
    Jac,
    Num,
    Pair,
    Pattern,
    Prim,
    PullbackTerm,
    TermSum,
    Var,
    Zero,
    variables_of,
)
from ..trampoline import Call
from ..trees import nested_right, relabelled
from ..types import Product, TermType, flat, resolved
from .machine import AbstractMachine, Adjoints
from .rules import total
from .tuples import nested, tuple_of
from .values import Along, Evaluation, Split, Unread, halves, joined, reals, zeros_like


class Duals(AbstractMachine):
    """The part of the machine that computes with duals."""

    def put(self, name: str, t: PullbackTerm, adjoints: Adjoints) -> Call[None]:
        before = adjoints.get(name)
        adjoints[name] = t if before is None else (yield self.add(before, t))

    def coefficients(self, t: PullbackTerm) -> Call[PullbackTerm]:
        """A dual of reals as `c^`, where it can be read."""
        if not isinstance(t, TermSum | Along | Unread | Split):
            return t
        slope: PullbackTerm = yield self.apply(t, Num(1.0))
        match slope:
            case Num(value):
                return Covector(value)
            case Zero():
                return ZERO
        fresh = self.fresh("u")
        return self.emit(DualMap(fresh, App(Jac("mult", Pair(Var(fresh), ZERO)), Pair(ZERO, slope)), Covector(1.0)))

    def halves(self, t: PullbackTerm) -> tuple[PullbackTerm, PullbackTerm]:
        found = halves(t)
        if found is not None:
            return found
        if isinstance(t, TermSum):
            (a, b), (c, d) = self.halves(t.first), self.halves(t.second)
            return total(a, c), total(b, d)
        left, right = self.fresh("u"), self.fresh("u")
        first, second = Pair(Var(left), ZERO), Pair(ZERO, Var(right))
        if isinstance(t, Along | Unread):
            return Along(left, first, {}, t), Along(right, second, {}, t)
        return self.emit(DualMap(left, first, t)), self.emit(DualMap(right, second, t))

    def slope(self, of: Jac, at: PullbackTerm, t: PullbackTerm) -> Call[PullbackTerm]:
        """The dual of a primitive's argument, from that of its value."""
        t = yield self.coefficients(t)
        if isinstance(t, Zero):
            return ZERO
        given = reals(at, known(of.name))
        if given is None or not isinstance(t, Covector):
            fresh = self.fresh("u")
            return self.emit(DualMap(fresh, App(Jac(of.name, Var(fresh)), at), t))
        return self.along_slopes(of, given, slice(None), t)

    def along_slopes(self, of: Jac | Prim, given: list[float], which: slice, t: Covector) -> PullbackTerm:
        """The dual of some arguments of a primitive, whose value has the dual `c^`."""
        count = t.coefficients
        assert not isinstance(count, tuple)
        slopes = known(of.name).slopes(given, which)
        if not all(map(math.isfinite, slopes)):
            if isinstance(of, Jac) and len(slopes) == len(given) > 1:
                return self._by_parts(of, given, slopes, t, count)
            self.at(of, lambda: known(of.name).check_slopes(given, slopes))
        return Covector(tuple_of(self.at(of, lambda: [finite(slope * count, "the derivative") for slope in slopes])))

    def _by_parts(self, of: Jac, at: list[float], slopes: list[float], t: Covector, count: float) -> PullbackTerm:
        """The same where a partial derivative is not there: its dual is read where something depends on it."""
        parts: list[PullbackTerm] = []
        for index, slope in enumerate(slopes):
            if math.isfinite(slope):
                parts.append(Covector(self.at(of, partial(finite, slope * count, "the derivative"))))
            else:
                name = self.fresh("u")
                along = [Var(name) if other == index else ZERO for other in range(len(slopes))]
                body = App(Jac(of.name, nested(along), span=of.span), nested([Num(value) for value in at]))
                parts.append(Along(name, body, {}, t))
        return nested_right(parts, joined)

    def scaled(self, dual: PullbackTerm, t: PullbackTerm) -> Call[PullbackTerm]:
        """`v -> T(D v)` for a dual D."""
        t = yield self.coefficients(t)
        made: PullbackTerm = self._scaled(dual, t)
        return made

    def _scaled(self, dual: PullbackTerm, t: PullbackTerm) -> PullbackTerm:
        match dual:
            case Zero():
                return ZERO
            case Split(first, second):
                return joined(self._scaled(first, t), self._scaled(second, t))
            case Evaluation(argument, functional):
                return Evaluation(argument, self._scaled(functional, t))
            case TermSum(first, second):
                return TermSum(self._scaled(first, t), self._scaled(second, t))
            case Covector(coefficients) if isinstance(t, Covector):
                return Covector(_times(coefficients, t.coefficients))
            case Along() | Unread():
                name = self.fresh("u")
                return Along(name, App(dual, Var(name)), {}, t)
        fresh = self.fresh("u")
        return self.emit(DualMap(fresh, App(dual, Var(fresh)), t))

    def assembled(self, pattern: Pattern, value: PullbackTerm | None, adjoints: Adjoints) -> Call[PullbackTerm]:
        """The dual of what a pattern binds, from those of its variables."""
        if not any(name in adjoints for name in variables_of(pattern)):
            return ZERO
        done: list[PullbackTerm] = []
        todo: list[tuple[Pattern, PullbackTerm | None] | None] = [(pattern, value)]
        while todo:
            item = todo.pop()
            if item is None:
                second, first = done.pop(), done.pop()
                done.append(joined(first, second))
                continue
            part, given = item
            if isinstance(part, str):
                dual = adjoints.get(part, ZERO)
                if not isinstance(dual, Covector | Var):
                    zero = zeros_like(given) if given is not None else ZERO
                    dual = yield self.filled(dual, self.zero(part) if isinstance(zero, Zero) else zero)
                done.append(dual)
            else:
                inner = (given.first, given.second) if isinstance(given, Pair) else (None, None)
                todo += (None, (part[1], inner[1]), (part[0], inner[0]))
        return done[0]

    def zero(self, name: str) -> PullbackTerm:
        """The zero dual of a variable's type, with coefficients if it is made of reals."""
        type = self.types.get(name)
        if type is None or not flat(resolved(type)):
            return ZERO
        return Covector(_zeros(type))

    def filled(self, dual: PullbackTerm, zero: PullbackTerm) -> Call[PullbackTerm]:
        """A dual with coefficients for its parts that are 0, or that can be read, where the type has them."""
        if not isinstance(zero, Covector) or isinstance(dual, Covector):
            return dual
        if isinstance(dual, Zero):
            return zero
        made: PullbackTerm
        if not isinstance(zero.coefficients, tuple):
            made = yield self.coefficients(dual)
            return zero if isinstance(made, Zero) else made
        if isinstance(dual, Var):
            return dual
        left, right = zero.coefficients
        first, second = self.halves(dual)
        first = yield self.filled(first, Covector(left))
        second = yield self.filled(second, Covector(right))
        return joined(first, second)


def summands(t: PullbackTerm) -> list[PullbackTerm]:
    """The parts of a sum of duals."""
    found: list[PullbackTerm] = []
    todo = [t]
    while todo:
        match todo.pop():
            case TermSum(first, second):
                todo += (second, first)
            case Zero():
                pass
            case part:
                found.append(part)
    return found


def _times(coefficients: Coefficients, by: Any) -> Coefficients:
    made: Coefficients = relabelled(coefficients, lambda c: finite(c * by, "the derivative"))
    return made


def _zeros(type: TermType) -> Coefficients:
    type = resolved(type)
    return (_zeros(type.first), _zeros(type.second)) if isinstance(type, Product) else 0.0
