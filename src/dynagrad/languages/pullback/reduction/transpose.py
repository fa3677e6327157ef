"""Rules 5 and 6: the dual of a linear map, and the reverse phase.

`(λv. S)^ . T` is found by going over S from the outside in: what T says of S becomes what duals say of the parts of S
that depend on v. A let series is gone over backward (6), with the dual of each variable added up from all its uses.
What is not known, because a free variable stands in its way, is left as a dual map along one elementary term.
"""

from __future__ import annotations

from typing import Any

from ..infer import slots
from ..primitives import finite, known
from ..rename import renamed_pattern
from ..terms import (
    ZERO,
    App,
    Covector,
    DualMap,
    Jac,
    Lam,
    Num,
    Pair,
    Pattern,
    Prim,
    Proj,
    Pullback,
    Sum,
    Term,
    Var,
    Zero,
    free_variables,
    variables_of,
)
from ..trampoline import Call
from ..types import flat, resolved
from .administrative import Series
from .machine import Adjoints, Linear, Machine
from .numbering import rule
from .rules import call
from .standard import dual_of
from .steps import Context
from .values import (
    Along,
    At,
    Chain,
    Closure,
    Deferred,
    Frame,
    Split,
    Unread,
    depends,
    halves,
    joined,
    matched,
    nested,
    nested_pattern,
    numbers,
    read_back,
    tuple_of,
    zeros_like,
)


class Reverse(Machine):
    """The part of the machine that goes back."""

    # -- dual maps -----------------------------------------------------------------------------------------------------

    def dual_map(self, of: DualMap, frame: Frame, t: Term) -> Call[Term]:
        """`(λx. S)^ . T` for a value T: rule 5, or rule 6 where S is a let series."""
        if isinstance(t, Zero):
            return ZERO
        if isinstance(t, Var):
            return self.emit(dual_of(of, frame, t))
        series: Series = yield self.series_of(of.body)
        if len(series.bindings) > 1:
            made: Term = yield self.contravariant(of, series.term(), frame, t)
        else:
            made = yield self.dual_along(of, series.term(), frame, t)
        return made

    @rule("5", "dual along an elementary linear map")
    def dual_along(self, of: DualMap, body: Term, frame: Frame, t: Term) -> Call[Term]:
        """`(λx. S)^ . T` becomes what T says of the parts of S that depend on x."""
        made: Term = yield self._dual("5", of, body, frame, t)
        return made

    @rule("6", "contravariance of dual maps")
    def contravariant(self, of: DualMap, body: Term, frame: Frame, t: Term) -> Call[Term]:
        """`(λx. let y = E in L)^ . T` becomes `(λx. <x, E>)^ . ((λ<x, y>. L)^ . T)`; 5 for each E is its premise."""
        made: Term = yield self._dual("6", of, body, frame, t)
        return made

    def _dual(self, number: str, of: DualMap, body: Term, frame: Frame, t: Term) -> Call[Term]:
        adjoints: Adjoints = {}
        step = self.step(number, lambda: dual_of(of, frame, read_back(t)), None)
        outer, self.context = self.context, None
        names = dict.fromkeys(variables_of(of.pattern))
        yield self.transpose(body, t, Frame(self.needed(of, frame)), names, adjoints)
        self.context = outer
        made: Term = yield self.assembled(of.pattern, None, adjoints)
        self.close(step, lambda: read_back(made))
        return made

    def back(self, chain: Chain, linear: Linear, last: Term, t: Term, outer: Context) -> Call[Adjoints]:
        """The reverse phase of a pullback: the duals of what its pattern binds, by rule 5 for each link."""
        adjoints: Adjoints = {}
        if isinstance(last, Zero) or isinstance(t, Zero):
            return adjoints
        assert isinstance(last, Var)
        adjoints[last.name] = t
        bound = dict.fromkeys(variables_of(chain.pattern))
        names = {**bound, **dict.fromkeys(name for name, _ in linear)}
        contexts = _contexts(self.context, outer)
        positions = {name: index for index, (name, _) in enumerate(chain.series.bindings)}
        log = _Log(chain, adjoints)
        for name, of in reversed(linear):
            dual = adjoints.pop(name, None)
            index = positions[name]
            if dual is None:
                continue
            self.context = contexts[index] if contexts else outer
            step = self.step("5", log.redex(index, of, dual, index == len(positions) - 1), None)
            self.context = None
            changed: Adjoints = {}
            yield self.transpose(of, dual, Frame(), names, changed)
            for other, part in changed.items():
                yield self.put(other, part, adjoints)
            log.note(name, {other: adjoints[other] for other in changed})
            self.close(step, log.contractum(index))
        self.context = outer
        return adjoints

    # -- one linear term -----------------------------------------------------------------------------------------------

    def put(self, name: str, t: Term, adjoints: Adjoints) -> Call[None]:
        before = adjoints.get(name)
        adjoints[name] = t if before is None else (yield self.add(before, t))

    def transpose(self, of: Term, t: Term, scope: Frame, names: dict[str, None], adjoints: Adjoints) -> Call[None]:
        """Adds what T says of a term to the duals of the names that it depends on; it is linear in these."""
        if isinstance(t, Zero):
            return
        at: Term
        match of:
            case Zero():
                return
            case Var(name):
                if name in names:
                    yield self.put(name, t, adjoints)
            case App(Lam(), _):
                yield self.series_back(of, t, scope, names, adjoints)
            case Sum(first, second):
                yield self.transpose(first, t, scope, names, adjoints)
                yield self.transpose(second, t, scope, names, adjoints)
            case Pair(first, second):
                left, right = self.halves(t)
                yield self.transpose(first, left, scope, names, adjoints)
                yield self.transpose(second, right, scope, names, adjoints)
            case Proj(index, inner):
                whole = joined(t, ZERO) if index == 1 else joined(ZERO, t)
                yield self.transpose(inner, whole, scope, names, adjoints)
            case App(Jac() as jacobian, point):
                at = yield self.evaluate(point, scope)
                yield self.transpose(jacobian.along, (yield self.slope(jacobian, at, t)), scope, names, adjoints)
            case App(function, argument) if depends(argument, names):
                dual: Term = yield self.evaluate(function, scope)
                if isinstance(dual, Zero):
                    return
                if self.is_dual(dual) or isinstance(dual, Var):
                    yield self.transpose(argument, (yield self.scaled(dual, t)), scope, names, adjoints)
                else:
                    yield self.along_at_zero(of, t, scope, names, adjoints)
            case App(function, argument):
                at = yield self.evaluate(argument, scope)
                yield self.transpose(function, At(at, t), scope, names, adjoints)
            case Prim():
                yield self.derivative_back(of, t, scope, names, adjoints)
            case Deferred(pattern=None):
                yield self.deferred_back(of, None, t, scope, names, adjoints)
            case _:
                for part in summands(t):
                    match part:
                        case At(argument, inner_dual):
                            yield self.function(of, argument, inner_dual, scope, names, adjoints)
                        case Unread() | Along():
                            yield self.unread_along(of, part, scope, names, adjoints)
                        case _:
                            yield self.apart(of, part, scope, names, adjoints)

    def function(
        self, of: Term, at: Term, t: Term, scope: Frame, names: dict[str, None], adjoints: Adjoints
    ) -> Call[None]:
        """What `h -> T(h A)` says of a term that is a function or a dual."""
        inner = Frame(scope)
        match of:
            case Lam(pattern, body):
                self.bind(pattern, at, inner)
                yield self.transpose(body, t, inner, _without(names, pattern), adjoints)
            case Jac(_, along):
                yield self.transpose(along, (yield self.slope(of, at, t)), scope, names, adjoints)
            case DualMap(pattern, body, functional) if depends(functional, names):
                self.bind(pattern, at, inner)
                value: Term = yield self.evaluate(body, inner)
                yield self.transpose(functional, At(value, t), scope, names, adjoints)
            case DualMap(pattern, body, functional):
                dual: Term = yield self.evaluate(functional, scope)
                self.bind(pattern, at, inner)
                yield self.transpose(body, (yield self.scaled(dual, t)), inner, _without(names, pattern), adjoints)
            case Pullback(pattern, body, form):
                if depends(Lam(pattern, body), names) or any(not isinstance(part, At) for part in summands(t)):
                    yield self.along_at_zero(App(of, at), t, scope, names, adjoints)
                    return
                self.bind(pattern, at, inner)
                active = self.tangents(variables_of(pattern))
                linear, last, value = yield self.series_jacobian(body, inner, dict(active))
                for part in summands(t):
                    assert isinstance(part, At)
                    along = Frame()
                    self.bind(renamed_pattern(pattern, active), part.argument, along)
                    for name, bound in linear:
                        along[name] = yield self.evaluate(bound, along)
                    tangent: Term = yield self.evaluate(last, along)
                    yield self.transpose(form, At(value, At(tangent, part.functional)), scope, names, adjoints)
            case Deferred():
                yield self.deferred_back(of, at, t, scope, names, adjoints)
            case _:
                raise AssertionError(of)

    def series_back(self, of: Term, t: Term, scope: Frame, names: dict[str, None], adjoints: Adjoints) -> Call[None]:
        """A whole let series: forward along what is constant, and backward along what is not."""
        names, scope = dict(names), Frame(scope)
        steps: list[tuple[Pattern, Term]] = []
        while isinstance(of, App) and isinstance(of.function, Lam):
            pattern, bound = of.function.pattern, of.argument
            if depends(bound, names):
                steps.append((pattern, bound))
                names.update(dict.fromkeys(variables_of(pattern)))
            else:
                self.bind(pattern, (yield self.evaluate(bound, scope)), scope)
                for name in variables_of(pattern):
                    names.pop(name, None)
            of = of.function.body
        yield self.transpose(of, t, scope, names, adjoints)
        for pattern, bound in reversed(steps):
            own = {name: adjoints.pop(name) for name in variables_of(pattern) if name in adjoints}
            dual: Term = yield self.assembled(pattern, None, own)
            if not isinstance(dual, Zero):
                self.step("5", _thunk(pattern, bound, dual, scope), lambda: ZERO)
                yield self.transpose(bound, dual, scope, names, adjoints)

    def derivative_back(
        self, of: Prim, t: Term, scope: Frame, names: dict[str, None], adjoints: Adjoints
    ) -> Call[None]:
        """A derivative of a primitive, in those of its tangents that depend on the names."""
        parts = slots(of.name, of.argument) or []
        values: list[Term] = []
        for part in parts:
            values.append(ZERO if depends(part, names) else (yield self.evaluate(part, scope)))
        given = known(of.name)
        width = given.width
        fixed = [numbers(value, width) for value in values]
        t = yield self.coefficients(t)
        for at, part in enumerate(parts):
            if not depends(part, names):
                continue
            if all(value is not None for value in fixed) and isinstance(t, Covector):
                reals = [number for value in fixed for number in value or ()]
                dual: Term = self.along_slopes(of, reals, slice(at * width, (at + 1) * width), t)
            else:
                fresh = self.fresh("u")
                dual = self.emit(DualMap(fresh, call(of, of.name, [*values[:at], Var(fresh), *values[at + 1 :]]), t))
            yield self.transpose(part, dual, scope, names, adjoints)

    # -- where a value is not enough -----------------------------------------------------------------------------------

    def deferred_back(
        self, of: Deferred, at: Term | None, t: Term, scope: Frame, names: dict[str, None], adjoints: Adjoints
    ) -> Call[None]:
        """A Jacobian that was deferred, now that it is known what its value is applied to."""
        values: Term = yield self.evaluate(of.values, scope)
        now = Deferred(of.pattern, of.body, of.names, of.roots, of.type, of.symbolic, values, of.tangents)
        tangents = of.tangent_of()
        duals: list[Term] = yield self.found(now, at, t)
        for root, dual in zip(of.names, duals, strict=False):
            yield self.transpose(tangents[root], dual, scope, names, adjoints)

    def along_at_zero(self, of: Term, t: Term, scope: Frame, names: dict[str, None], adjoints: Adjoints) -> Call[None]:
        """The dual map of what is linear through a pullback: the pullback along it at 0, for a linear map is its own
        derivative."""
        used = [name for name in free_variables(of) if name in names]
        series: Series = yield self.series_of(of)
        environment = {name: value for name, value in self.needed(of, scope).items() if name not in used}
        chain = Chain(nested_pattern(used), series, environment, Closure(Lam("_", t), {}))
        dual: Term = yield self.pulled_back(chain, nested([ZERO] * len(used)))
        for index, name in enumerate(used):
            first, dual = self.halves(dual) if index < len(used) - 1 else (dual, ZERO)
            if not isinstance(first, Zero):
                yield self.put(name, first, adjoints)

    def unread_along(self, of: Term, t: Term, scope: Frame, names: dict[str, None], adjoints: Adjoints) -> Call[None]:
        """A dual that is read by applying it, along each name in turn with the others zero."""
        used = [name for name in free_variables(of) if name in names]
        fixed = {**self.needed(of, scope), **dict.fromkeys(used, ZERO)}
        for name in used:
            environment = {other: value for other, value in fixed.items() if other != name}
            yield self.put(name, Along(name, of, environment, t), adjoints)

    def apart(self, of: Term, t: Term, scope: Frame, names: dict[str, None], adjoints: Adjoints) -> Call[None]:
        """A dual that is not known, along each name in turn with the others zero."""
        used = [name for name in free_variables(of) if name in names]
        for name in used:
            fresh = self.fresh("u")
            inner = {**scope, **dict.fromkeys(used, ZERO), name: Var(fresh)}
            yield self.put(name, self.emit(DualMap(fresh, read_back(of, inner), t)), adjoints)

    # -- duals ---------------------------------------------------------------------------------------------------------

    def coefficients(self, t: Term) -> Call[Term]:
        """A dual of reals as `c^`, where it can be read."""
        if not isinstance(t, Sum | Along | Unread | Split):
            return t
        slope: Term = yield self.apply(t, Num(1.0))
        match slope:
            case Num(value):
                return Covector(value)
            case Zero():
                return ZERO
        fresh = self.fresh("u")
        return self.emit(DualMap(fresh, App(Jac("mult", Pair(Var(fresh), ZERO)), Pair(ZERO, slope)), Covector(1.0)))

    def halves(self, t: Term) -> tuple[Term, Term]:
        found = halves(t)
        if found is not None:
            return found
        if isinstance(t, Sum):
            (a, b), (c, d) = self.halves(t.first), self.halves(t.second)
            return _both(a, c), _both(b, d)
        left, right = self.fresh("u"), self.fresh("u")
        first, second = Pair(Var(left), ZERO), Pair(ZERO, Var(right))
        if isinstance(t, Along | Unread):
            return Along(left, first, {}, t), Along(right, second, {}, t)
        return self.emit(DualMap(left, first, t)), self.emit(DualMap(right, second, t))

    def slope(self, of: Jac, at: Term, t: Term) -> Call[Term]:
        """The dual of a primitive's argument, from that of its value."""
        t = yield self.coefficients(t)
        if isinstance(t, Zero):
            return ZERO
        given = numbers(at, len(known(of.name).inputs))
        if given is None or not isinstance(t, Covector):
            fresh = self.fresh("u")
            return self.emit(DualMap(fresh, App(Jac(of.name, Var(fresh)), at), t))
        return self.along_slopes(of, given, slice(None), t)

    def along_slopes(self, of: Jac | Prim, given: list[float], which: slice, t: Covector) -> Term:
        """The dual of some arguments of a primitive, whose value has the dual `c^`."""
        count = t.coefficients
        assert not isinstance(count, tuple)
        slopes = self.at(of, lambda: known(of.name).slopes(given, which))
        return Covector(tuple_of(self.at(of, lambda: [finite(slope * count, "the derivative") for slope in slopes])))

    def scaled(self, dual: Term, t: Term) -> Call[Term]:
        """`v -> T(D v)` for a dual D."""
        t = yield self.coefficients(t)
        made: Term = self._scaled(dual, t)
        return made

    def _scaled(self, dual: Term, t: Term) -> Term:
        match dual:
            case Zero():
                return ZERO
            case Split(first, second):
                return joined(self._scaled(first, t), self._scaled(second, t))
            case At(argument, functional):
                return At(argument, self._scaled(functional, t))
            case Sum(first, second):
                return Sum(self._scaled(first, t), self._scaled(second, t))
            case Covector(coefficients) if isinstance(t, Covector):
                return Covector(_times(coefficients, t.coefficients))
            case Along() | Unread():
                name = self.fresh("u")
                return Along(name, App(dual, Var(name)), {}, t)
        fresh = self.fresh("u")
        return self.emit(DualMap(fresh, App(dual, Var(fresh)), t))

    # -- results -------------------------------------------------------------------------------------------------------

    def assembled(self, pattern: Pattern, value: Term | None, adjoints: Adjoints) -> Call[Term]:
        """The dual of what a pattern binds, from those of its variables."""
        if not any(name in adjoints for name in variables_of(pattern)):
            return ZERO
        done: list[Term] = []
        todo: list[tuple[Pattern, Term | None] | None] = [(pattern, value)]
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

    def zero(self, name: str) -> Term:
        """The zero dual of a variable's type, with coefficients if it is made of reals."""
        type = self.types.get(name)
        if type is None or not flat(resolved(type)):
            return ZERO
        return Covector(_zeros(type))

    def filled(self, dual: Term, zero: Term) -> Call[Term]:
        """A dual with coefficients for its parts that are 0, or that can be read, where the type has them."""
        if not isinstance(zero, Covector) or isinstance(dual, Covector):
            return dual
        if isinstance(dual, Zero):
            return zero
        made: Term
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


def summands(t: Term) -> list[Term]:
    """The parts of a sum of duals."""
    found: list[Term] = []
    todo = [t]
    while todo:
        match todo.pop():
            case Sum(first, second):
                todo += (second, first)
            case Zero():
                pass
            case part:
                found.append(part)
    return found


def _both(a: Term, b: Term) -> Term:
    if isinstance(a, Zero):
        return b
    return a if isinstance(b, Zero) else Sum(a, b)


def _without(names: dict[str, None], pattern: Pattern) -> dict[str, None]:
    bound = set(variables_of(pattern))
    return {name: None for name in names if name not in bound} if bound & names.keys() else names


def _times(coefficients: Any, by: Any) -> Any:
    done: list[Any] = []
    todo: list[Any] = [coefficients]
    while todo:
        part = todo.pop()
        if part is None:
            second, first = done.pop(), done.pop()
            done.append((first, second))
        elif isinstance(part, tuple):
            todo += (None, part[1], part[0])
        else:
            done.append(finite(part * by, "the derivative"))
    return done[0]


def _zeros(type: Any) -> Any:
    type = resolved(type)
    return (_zeros(type.first), _zeros(type.second)) if hasattr(type, "first") else 0.0


def _thunk(pattern: Pattern, bound: Term, dual: Term, scope: dict[str, Term]) -> Any:
    return lambda: DualMap(pattern, read_back(bound, scope), read_back(dual))


def _contexts(context: Context, outer: Context) -> list[Context]:
    """The contexts of a forward phase, from its start on: what stands around each link on the way back."""
    found: list[Context] = []
    while context is not outer and context is not None:
        context = context[1]
        found.append(context)
    return found[::-1]


class _Log:
    """The duals of all variables of a pullback at each point of its reverse phase, for those who look at its steps."""

    def __init__(self, chain: Chain, adjoints: Adjoints) -> None:
        self.chain = chain
        self.start = dict(adjoints)
        self.entries: list[tuple[str, Adjoints]] = []

    def note(self, name: str, changed: Adjoints) -> None:
        self.entries.append((name, changed))

    def at(self, count: int) -> Adjoints:
        now = dict(self.start)
        for name, changed in self.entries[:count]:
            now.pop(name, None)
            now.update(changed)
        return now

    def _dual(self, index: int, count: int) -> Term:
        """The dual of what is bound before the binding of that index."""
        pattern = self.chain.pattern
        for name, _ in self.chain.series.bindings[:index]:
            pattern = (pattern, name)
        now = self.at(count)
        parts: list[Term] = []
        for name in variables_of(pattern):
            if name in now:
                parts.append(
                    DualMap(pattern, Var(name), read_back(now[name]))
                    if not isinstance(pattern, str)
                    else read_back(now[name])
                )
        made = parts[0] if parts else ZERO
        for part in parts[1:]:
            made = Sum(made, part)
        return made

    def redex(self, index: int, of: Term, dual: Term, final: bool) -> Any:
        count = len(self.entries)

        def made() -> Term:
            pattern = self.chain.pattern
            for name, _ in self.chain.series.bindings[:index]:
                pattern = (pattern, name)
            body = read_back(of)
            if final:
                return DualMap(pattern, body, read_back(dual))
            return DualMap(pattern, Pair(matched(pattern), body), self._dual(index + 1, count))

        return made

    def contractum(self, index: int) -> Any:
        count = len(self.entries)
        return lambda: self._dual(index, count)
