"""Rules 5 and 6: the dual of a linear map, and the reverse phase.

`(λv. S)^ . T` is found by going over S from the outside in: what T says of S becomes what duals say of the parts of S
that depend on v. A let series is gone over backward (6), with the dual of each variable added up from all its uses.
What is not known, because a free variable stands in its way, is left as a dual map along one elementary term.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..infer import slots
from ..primitives import computed, known
from ..rename import renamed_pattern
from ..terms import (
    ZERO,
    App,
    Covector,
    DualMap,
    Jac,
    Lam,
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
from .steps import Context
from .values import At, Chain, Frame, Split, depends, halves, joined, matched, numbers, read_back, tuple_of, zeros_like

Machine = Any
"""That of `reduce.py`, which stands above."""

Adjoints = dict[str, Term]
"""The dual of each variable, as far as it was added up."""


class Sweep:
    """The reverse phase of a machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    # -- dual maps -----------------------------------------------------------------------------------------------------

    def dual_map(self, of: DualMap, frame: dict[str, Term], t: Term) -> Call[Term]:
        """`(λx. S)^ . T` for a value T."""
        machine = self.machine
        if isinstance(t, Zero):
            return ZERO
        if isinstance(t, Var):
            function = read_back(Lam(of.pattern, of.body), frame)
            assert isinstance(function, Lam)
            return machine.emit(DualMap(function.pattern, function.body, t))
        series = machine.series_of(of.body)
        adjoints: Adjoints = {}
        names = dict.fromkeys(variables_of(of.pattern))
        scope = dict(frame)
        many = len(series.bindings) > 1
        step = machine.step("6" if many else "5", lambda: machine._dual(of, frame, read_back(t)), None)
        outer, machine.context = machine.context, None
        yield self.transpose(series.term(), t, scope, names, adjoints)
        machine.context = outer
        made = self.assembled(of.pattern, None, adjoints)
        machine.close(step, lambda: read_back(made))
        return made

    def back(self, chain: Chain, linear: list[tuple[str, Term]], last: Term, t: Term, outer: Context) -> Call[Adjoints]:
        """The reverse phase of a pullback: the duals of what its pattern binds."""
        machine = self.machine
        adjoints: Adjoints = {}
        if isinstance(last, Zero) or isinstance(t, Zero):
            return adjoints
        assert isinstance(last, Var)
        adjoints[last.name] = t
        bound = dict.fromkeys(variables_of(chain.pattern))
        names = {**bound, **dict.fromkeys(name for name, _ in linear)}
        contexts = _contexts(machine.context, outer)
        positions = {name: index for index, (name, _) in enumerate(chain.series.bindings)}
        patterns: list[Pattern] | None = None
        log = _Log(chain, adjoints)
        for name, of in reversed(linear):
            dual = adjoints.pop(name, None)
            index = positions[name]
            if dual is None:
                continue
            final = index == len(positions) - 1
            machine.context = contexts[index] if contexts else outer
            step = machine.step("5", log.redex(index, of, dual, final), None)
            machine.context = None
            changed: Adjoints = {}
            yield self.transpose(of, dual, {}, names, changed)
            for other, part in changed.items():
                before = adjoints.get(other)
                adjoints[other] = part if before is None else (yield machine.add(before, part))
            log.note(name, {other: adjoints[other] for other in changed})
            machine.close(step, log.contractum(index))
        machine.context = outer
        _ = patterns
        return adjoints

    # -- one linear term -----------------------------------------------------------------------------------------------

    def put(self, name: str, t: Term, adjoints: Adjoints) -> Call[None]:
        before = adjoints.get(name)
        adjoints[name] = t if before is None else (yield self.machine.add(before, t))

    def transpose(
        self, of: Term, t: Term, scope: dict[str, Term], names: dict[str, None], adjoints: Adjoints
    ) -> Call[None]:
        """Adds what T says of a term to the duals of the names that it depends on; it is linear in these."""
        machine = self.machine
        if isinstance(t, Zero):
            return
        match of:
            case Zero():
                return
            case Var(name):
                if name in names:
                    yield self.put(name, t, adjoints)
            case App(Lam(), _):
                yield self.series(of, t, scope, names, adjoints)
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
            case App(Jac(name, along), point):
                at = yield machine.evaluate(point, scope)
                yield self.transpose(along, self.slope(name, at, t), scope, names, adjoints)
            case App(function, argument):
                if depends(argument, names):
                    dual = yield machine.evaluate(function, scope)
                    yield self.transpose(argument, self.scaled(dual, t), scope, names, adjoints)
                else:
                    at = yield machine.evaluate(argument, scope)
                    yield self.transpose(function, At(at, t), scope, names, adjoints)
            case Prim(name, argument):
                yield self.tangents(name, argument, t, scope, names, adjoints)
            case _:
                atoms = self.atoms(t)
                if atoms is None:
                    yield self.apart(of, t, scope, names, adjoints)
                    return
                for at, inner_dual in atoms:
                    yield self.function(of, at, inner_dual, scope, names, adjoints)

    def function(
        self, of: Term, at: Term, t: Term, scope: dict[str, Term], names: dict[str, None], adjoints: Adjoints
    ) -> Call[None]:
        """What `h -> T(h A)` says of a term that is a function or a dual."""
        machine = self.machine
        match of:
            case Lam(pattern, body):
                inner = Frame(scope)
                machine.bind(pattern, at, inner)
                yield self.transpose(body, t, inner, _without(names, pattern), adjoints)
            case Jac(name, along):
                yield self.transpose(along, self.slope(name, at, t), scope, names, adjoints)
            case DualMap(pattern, body, functional):
                if depends(functional, names):
                    inner = Frame(scope)
                    machine.bind(pattern, at, inner)
                    value = yield machine.evaluate(body, inner)
                    yield self.transpose(functional, At(value, t), scope, names, adjoints)
                else:
                    dual = yield machine.evaluate(functional, scope)
                    inner = Frame(scope)
                    machine.bind(pattern, at, inner)
                    yield self.transpose(body, self.scaled(dual, t), inner, _without(names, pattern), adjoints)
            case Pullback(pattern, body, form):
                frame = Frame(scope)
                machine.bind(pattern, at, frame)
                active = {name: machine.names.fresh(name + "'") for name in variables_of(pattern)}
                tangents = [active[name] for name in variables_of(pattern)]
                linear, last, value = yield machine.series_jacobian(body, frame, active)
                for point, inner_dual in self.atoms(t) or ():
                    inner = Frame({})
                    machine.bind(_renamed(pattern, tangents), point, inner)
                    for name, bound in linear:
                        inner[name] = yield machine.evaluate(bound, inner)
                    along = yield machine.evaluate(last, inner)
                    yield self.transpose(form, At(value, At(along, inner_dual)), scope, names, adjoints)
            case _:
                raise AssertionError(of)

    def series(
        self, of: Term, t: Term, scope: dict[str, Term], names: dict[str, None], adjoints: Adjoints
    ) -> Call[None]:
        """Rule 6, for a whole let series: forward along what is constant, and backward along what is not."""
        machine = self.machine
        names = dict(names)
        steps: list[tuple[Pattern, Term]] = []
        while isinstance(of, App) and isinstance(of.function, Lam):
            pattern, bound = of.function.pattern, of.argument
            if depends(bound, names):
                steps.append((pattern, bound))
                for name in variables_of(pattern):
                    names[name] = None
            else:
                value = yield machine.evaluate(bound, scope)
                machine.bind(pattern, value, scope)
                for name in variables_of(pattern):
                    names.pop(name, None)
            of = of.function.body
        yield self.transpose(of, t, scope, names, adjoints)
        for pattern, bound in reversed(steps):
            dual = self.assembled(
                pattern, None, {name: adjoints.pop(name) for name in variables_of(pattern) if name in adjoints}
            )
            if not isinstance(dual, Zero):
                machine.step("5", _thunk(pattern, bound, dual, scope), lambda: ZERO)
                yield self.transpose(bound, dual, scope, names, adjoints)

    def tangents(
        self, name: str, argument: Term, t: Term, scope: dict[str, Term], names: dict[str, None], adjoints: Adjoints
    ) -> Call[None]:
        """A derivative of a primitive, in the one of its tangents that depends on the names."""
        machine = self.machine
        parts = slots(name, argument) or []
        at = next(index for index, part in enumerate(parts) if depends(part, names))
        values = []
        for index, part in enumerate(parts):
            values.append(part if index == at else (yield machine.evaluate(part, scope)))
        given = known(name)
        width = given.width
        fixed = [[0.0] * width if index == at else numbers(value, width) for index, value in enumerate(values)]
        if all(part is not None for part in fixed) and isinstance(t, Covector):
            numbers_of = [number for part in fixed for number in part]  # type: ignore[union-attr]  # none of them is None
            slopes = computed(given.inputs, given.partials[at * width : (at + 1) * width], numbers_of)
            dual: Term = Covector(tuple_of([float(slope) * t.coefficients for slope in slopes]))  # type: ignore[operator]  # a primitive is real
        else:
            fresh = machine.names.fresh("u")
            values[at] = Var(fresh)
            dual = machine.emit(DualMap(fresh, _call(name, values), t))
        yield self.transpose(parts[at], dual, scope, names, adjoints)

    # -- duals ---------------------------------------------------------------------------------------------------------

    def halves(self, t: Term) -> tuple[Term, Term]:
        found = halves(t)
        if found is not None:
            return found
        if isinstance(t, Sum):
            (a, b), (c, d) = self.halves(t.first), self.halves(t.second)
            return Sum(a, c), Sum(b, d)
        machine = self.machine
        left, right = machine.names.fresh("u"), machine.names.fresh("u")
        return (
            machine.emit(DualMap(left, Pair(Var(left), ZERO), t)),
            machine.emit(DualMap(right, Pair(ZERO, Var(right)), t)),
        )

    def slope(self, name: str, at: Term, t: Term) -> Term:
        """The dual of a primitive's argument, from that of its value."""
        machine = self.machine
        given = numbers(at, len(known(name).inputs))
        if given is None or not isinstance(t, Covector):
            fresh = machine.names.fresh("u")
            return machine.emit(DualMap(fresh, App(Jac(name, Var(fresh)), at), t))
        assert not isinstance(t.coefficients, tuple)
        return Covector(tuple_of([slope * t.coefficients for slope in known(name).slopes(given)]))

    def scaled(self, dual: Term, t: Term) -> Term:
        """`v -> T(D v)` for a dual D."""
        match dual:
            case Zero():
                return ZERO
            case Split(first, second):
                return joined(self.scaled(first, t), self.scaled(second, t))
            case At(argument, functional):
                return At(argument, self.scaled(functional, t))
            case Sum(first, second):
                return Sum(self.scaled(first, t), self.scaled(second, t))
            case Covector(coefficients) if isinstance(t, Covector):
                return Covector(_times(coefficients, t.coefficients))
        fresh = self.machine.names.fresh("u")
        return self.machine.emit(DualMap(fresh, App(dual, Var(fresh)), t))

    def atoms(self, t: Term) -> list[tuple[Term, Term]] | None:
        """A dual of functions as a sum of `At`; None where it is not known."""
        found: list[tuple[Term, Term]] = []
        todo = [t]
        while todo:
            match todo.pop():
                case At(argument, functional):
                    found.append((argument, functional))
                case Sum(first, second):
                    todo += (second, first)
                case Zero():
                    pass
                case _:
                    return None
        return found

    def apart(
        self, of: Term, t: Term, scope: dict[str, Term], names: dict[str, None], adjoints: Adjoints
    ) -> Call[None]:
        """A dual that is not known, along each name in turn with the others zero."""
        machine = self.machine
        used = [name for name in free_variables(of) if name in names]
        for name in used:
            fresh = machine.names.fresh("u")
            inner = {**scope, **dict.fromkeys(used, ZERO), name: Var(fresh)}
            made = machine.emit(DualMap(fresh, read_back(of, inner), t))
            yield self.put(name, made, adjoints)

    # -- results -------------------------------------------------------------------------------------------------------

    def assembled(self, pattern: Pattern, value: Term | None, adjoints: Adjoints) -> Term:
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
                if isinstance(dual, Zero | Split):
                    zero = zeros_like(given) if given is not None else ZERO
                    dual = _filled(dual, self.zero(part) if isinstance(zero, Zero) else zero)
                done.append(dual)
            else:
                inner = (given.first, given.second) if isinstance(given, Pair) else (None, None)
                todo += (None, (part[1], inner[1]), (part[0], inner[0]))
        return done[0]

    def zero(self, name: str) -> Term:
        """The zero dual of a variable's type, with coefficients if it is made of reals."""
        type = self.machine.typed.of_variable.get(name)
        if type is None or not flat(resolved(type)):
            return ZERO
        return Covector(_zeros(type))


def _without(names: dict[str, None], pattern: Pattern) -> dict[str, None]:
    bound = set(variables_of(pattern))
    return {name: None for name in names if name not in bound} if bound & names.keys() else names


def _renamed(pattern: Pattern, names: list[str]) -> Pattern:
    return renamed_pattern(pattern, dict(zip(variables_of(pattern), names, strict=True)))


def _call(name: str, parts: Iterable[Term]) -> Term:
    *before, made = parts
    for part in reversed(before):
        made = Pair(part, made)
    return Prim(name, made)


def _filled(dual: Term, zero: Term) -> Term:
    """A dual with coefficients for its parts that are 0, where the type has them."""
    if not isinstance(zero, Covector):
        return dual
    if isinstance(dual, Zero):
        return zero
    if isinstance(dual, Split) and isinstance(zero.coefficients, tuple):
        first, second = zero.coefficients
        return joined(_filled(dual.first, Covector(first)), _filled(dual.second, Covector(second)))
    return dual


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
            done.append(part * by)
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
