"""Rules 5 and 6: the dual of a linear map, and the reverse phase.

`(λv. S)^ . T` is the transpose of S, which is linear in v, applied to T. Each construct has its transpose: T is the
dual of S, and gives duals of the parts of S that depend on v. A let series is gone over backward (6), with the dual of
each variable added up from all its uses. What is not known, because a free variable stands in its way, is left as a
dual map along one elementary term.

Adjoints here are terms, added up under binders; tapes and graphs are swept in `autodiff/accumulation.py`.
"""

from __future__ import annotations

from typing import Any

from ..infer import slots
from ..primitives import known
from ..rename import renamed_pattern
from ..terms import (
    ZERO,
    App,
    Covector,
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
    Zero,
    free_variables,
    variables_of,
)
from ..trampoline import Call
from .administrative import TermSeries
from .call_by_value import dual_of
from .duals import Duals, summands
from .machine import Adjoints, Linear
from .numbering import rule
from .rules import call
from .steps import Context
from .tuples import matched, nested, nested_pattern
from .values import (
    Activation,
    Along,
    Chain,
    Deferred,
    Evaluation,
    MachineClosure,
    Unread,
    depends,
    joined,
    numbers,
    read_back,
)


class Reverse(Duals):
    """The part of the machine that goes back."""

    # -- dual maps -----------------------------------------------------------------------------------------------------

    def dual_map(self, of: DualMap, frame: Activation, t: PullbackTerm) -> Call[PullbackTerm]:
        """`(λx. S)^ . T` for a value T: rule 5, or rule 6 where S is a let series."""
        if isinstance(t, Zero):
            self.step("sum", lambda: dual_of(of, frame, ZERO), lambda: ZERO)
            return ZERO
        if isinstance(t, Var):
            return self.emit(dual_of(of, frame, t))
        series: TermSeries = yield self.series_of(of.body)
        if len(series.bindings) > 1:
            made: PullbackTerm = yield self.contravariant(of, series.term(), frame, t)
        else:
            made = yield self.dual_along(of, series.term(), frame, t)
        return made

    @rule("5", "dual along an elementary linear map")
    def dual_along(self, of: DualMap, body: PullbackTerm, frame: Activation, t: PullbackTerm) -> Call[PullbackTerm]:
        """`(λx. S)^ . T` becomes the dual that takes u to T(S[u/x])."""
        made: PullbackTerm = yield self._dual("5", of, body, frame, t)
        return made

    @rule("6", "contravariance of dual maps")
    def contravariant(self, of: DualMap, body: PullbackTerm, frame: Activation, t: PullbackTerm) -> Call[PullbackTerm]:
        """`(λx. let y = E in L)^ . T` becomes `(λx. <x, E>)^ . ((λ<x, y>. L)^ . T)`; 5 for each E is its premise."""
        made: PullbackTerm = yield self._dual("6", of, body, frame, t)
        return made

    def _dual(
        self, number: str, of: DualMap, body: PullbackTerm, frame: Activation, t: PullbackTerm
    ) -> Call[PullbackTerm]:
        adjoints: Adjoints = {}
        step = self.step(number, lambda: dual_of(of, frame, read_back(t)), None)
        outer, self.context = self.context, None
        names = dict.fromkeys(variables_of(of.pattern))
        yield self.transpose(body, t, Activation(self.needed(of, frame)), names, adjoints)
        self.context = outer
        made: PullbackTerm = yield self.assembled(of.pattern, None, adjoints)
        self.close(step, lambda: read_back(made))
        return made

    def back(
        self, chain: Chain, value: PullbackTerm, linear: Linear, last: PullbackTerm, t: PullbackTerm, outer: Context
    ) -> Call[PullbackTerm]:
        """The reverse phase of a pullback: the dual of what its pattern binds, by rule 5 for each link."""
        adjoints: Adjoints = {}
        made: PullbackTerm = ZERO
        if isinstance(last, Var) and not isinstance(t, Zero):
            adjoints[last.name] = t
        bound = dict.fromkeys(variables_of(chain.pattern))
        names = {**bound, **dict.fromkeys(name for name, _ in linear)}
        contexts = _contexts(self.context, outer)
        jacobians = dict(linear)
        log = _Log(chain, adjoints)
        for index, (name, _) in reversed([*enumerate(chain.series.bindings)]):
            of = jacobians.get(name, ZERO)
            dual = adjoints.pop(name, ZERO)
            final = index == len(chain.series.bindings) - 1
            self.context = contexts[index] if contexts else outer
            step = self.step("5", log.redex(index, of, t if final else dual, final), None)
            self.context = None
            changed: Adjoints = {}
            yield self.transpose(of, dual, Activation(), names, changed)
            for other, part in changed.items():
                yield self.put(other, part, adjoints)
            log.note(name, {other: adjoints[other] for other in changed})
            if index == 0:
                made = yield self.assembled(chain.pattern, value, adjoints)
            self.close(step, log.contractum(index) if index else _reading(made))
        self.context = outer
        return made

    # -- one linear term -----------------------------------------------------------------------------------------------

    def transpose(
        self, of: PullbackTerm, t: PullbackTerm, scope: Activation, names: dict[str, None], adjoints: Adjoints
    ) -> Call[None]:
        """Adds to the duals of the names what T, the dual of a term that is linear in them, gives for each."""
        if isinstance(t, Zero):
            return
        at: PullbackTerm
        match of:
            case Zero():
                return
            case Var(name):
                if name in names:
                    yield self.put(name, t, adjoints)
            case App(Lam(), _):
                yield self.series_back(of, t, scope, names, adjoints)
            case TermSum(first, second):
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
                dual: PullbackTerm = yield self.evaluate(function, scope)
                if isinstance(dual, Zero):
                    return
                if self.is_dual(dual) or isinstance(dual, Var):
                    yield self.transpose(argument, (yield self.scaled(dual, t)), scope, names, adjoints)
                else:
                    yield self.along_at_zero(of, t, scope, names, adjoints)
            case App(function, argument):
                at = yield self.evaluate(argument, scope)
                yield self.transpose(function, Evaluation(at, t), scope, names, adjoints)
            case Prim():
                yield self.derivative_back(of, t, scope, names, adjoints)
            case Deferred(pattern=None):
                yield self.deferred_back(of, None, t, scope, names, adjoints)
            case _:
                for part in summands(t):
                    match part:
                        case Evaluation(argument, inner_dual):
                            yield self.function(of, argument, inner_dual, scope, names, adjoints)
                        case Unread() | Along():
                            yield self.unread_along(of, part, scope, names, adjoints)
                        case _:
                            yield self.along_each_name(of, part, scope, names, adjoints)

    def function(
        self,
        of: PullbackTerm,
        at: PullbackTerm,
        t: PullbackTerm,
        scope: Activation,
        names: dict[str, None],
        adjoints: Adjoints,
    ) -> Call[None]:
        """The same of a term that is a function or a dual, where its dual is `h -> T(h A)`."""
        inner = Activation(scope)
        match of:
            case Lam(pattern, body):
                self.bind(pattern, at, inner)
                yield self.transpose(body, t, inner, _without(names, pattern), adjoints)
            case Jac(_, along):
                yield self.transpose(along, (yield self.slope(of, at, t)), scope, names, adjoints)
            case DualMap(pattern, body, functional) if depends(functional, names):
                self.bind(pattern, at, inner)
                value: PullbackTerm = yield self.evaluate(body, inner)
                yield self.transpose(functional, Evaluation(value, t), scope, names, adjoints)
            case DualMap(pattern, body, functional):
                dual: PullbackTerm = yield self.evaluate(functional, scope)
                self.bind(pattern, at, inner)
                yield self.transpose(body, (yield self.scaled(dual, t)), inner, _without(names, pattern), adjoints)
            case FormPullback(pattern, body, form):
                if depends(Lam(pattern, body), names) or any(not isinstance(part, Evaluation) for part in summands(t)):
                    yield self.along_at_zero(App(of, at), t, scope, names, adjoints)
                    return
                self.bind(pattern, at, inner)
                active = self.tangents(variables_of(pattern))
                linear, last, value = yield self.series_jacobian(body, inner, dict(active))
                for part in summands(t):
                    assert isinstance(part, Evaluation)
                    tangents = Activation()
                    self.bind(renamed_pattern(pattern, active), part.argument, tangents)
                    for name, bound in linear:
                        tangents[name] = yield self.evaluate(bound, tangents)
                    tangent: PullbackTerm = yield self.evaluate(last, tangents)
                    yield self.transpose(
                        form, Evaluation(value, Evaluation(tangent, part.functional)), scope, names, adjoints
                    )
            case Deferred():
                yield self.deferred_back(of, at, t, scope, names, adjoints)
            case _:
                raise AssertionError(of)

    def series_back(
        self, of: PullbackTerm, t: PullbackTerm, scope: Activation, names: dict[str, None], adjoints: Adjoints
    ) -> Call[None]:
        """A whole let series: forward along what is constant, and backward along what is not."""
        names, scope = dict(names), Activation(scope)
        steps: list[tuple[Pattern, PullbackTerm]] = []
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
            dual: PullbackTerm = yield self.assembled(pattern, None, own)
            if not isinstance(dual, Zero):
                self.step("5", _thunk(pattern, bound, dual, scope), lambda: ZERO)
                yield self.transpose(bound, dual, scope, names, adjoints)

    def derivative_back(
        self, of: Prim, t: PullbackTerm, scope: Activation, names: dict[str, None], adjoints: Adjoints
    ) -> Call[None]:
        """The same of a derivative of a primitive, which is linear in each of its tangents."""
        parts = slots(of.name, of.argument) or []
        values: list[PullbackTerm] = []
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
                dual: PullbackTerm = self.along_slopes(of, reals, slice(at * width, (at + 1) * width), t)
            else:
                fresh = self.fresh("u")
                dual = self.emit(DualMap(fresh, call(of, of.name, [*values[:at], Var(fresh), *values[at + 1 :]]), t))
            yield self.transpose(part, dual, scope, names, adjoints)

    # -- where a value is not enough -----------------------------------------------------------------------------------

    def deferred_back(
        self,
        of: Deferred,
        at: PullbackTerm | None,
        t: PullbackTerm,
        scope: Activation,
        names: dict[str, None],
        adjoints: Adjoints,
    ) -> Call[None]:
        """A Jacobian that was deferred, now that it is known what its value is applied to."""
        values: PullbackTerm = yield self.evaluate(of.values, scope)
        now = Deferred(of.pattern, of.body, of.names, of.roots, of.type, of.symbolic, values, of.tangents)
        tangents = of.tangent_of()
        duals: list[PullbackTerm] = yield self.found(now, at, t)
        for root, dual in zip(of.names, duals, strict=False):
            yield self.transpose(tangents[root], dual, scope, names, adjoints)

    def along_at_zero(
        self, of: PullbackTerm, t: PullbackTerm, scope: Activation, names: dict[str, None], adjoints: Adjoints
    ) -> Call[None]:
        """The dual map of what is linear through a pullback: the pullback along it at 0, for a linear map is its own
        derivative."""
        used = [name for name in free_variables(of) if name in names]
        series: TermSeries = yield self.series_of(of)
        environment = {name: value for name, value in self.needed(of, scope).items() if name not in used}
        chain = Chain(nested_pattern(used), series, environment, MachineClosure(Lam("_", t), {}))
        dual: PullbackTerm = yield self.pulled_back(chain, nested([ZERO] * len(used)))
        for index, name in enumerate(used):
            first, dual = self.halves(dual) if index < len(used) - 1 else (dual, ZERO)
            if not isinstance(first, Zero):
                yield self.put(name, first, adjoints)

    def unread_along(
        self, of: PullbackTerm, t: PullbackTerm, scope: Activation, names: dict[str, None], adjoints: Adjoints
    ) -> Call[None]:
        """A dual that is read by applying it, along each name in turn with the others zero."""
        used = [name for name in free_variables(of) if name in names]
        fixed = {**self.needed(of, scope), **dict.fromkeys(used, ZERO)}
        for name in used:
            environment = {other: value for other, value in fixed.items() if other != name}
            yield self.put(name, Along(name, of, environment, t), adjoints)

    def along_each_name(
        self, of: PullbackTerm, t: PullbackTerm, scope: Activation, names: dict[str, None], adjoints: Adjoints
    ) -> Call[None]:
        """A dual that is not known, along each name in turn with the others zero."""
        used = [name for name in free_variables(of) if name in names]
        for name in used:
            fresh = self.fresh("u")
            inner = {**scope, **dict.fromkeys(used, ZERO), name: Var(fresh)}
            yield self.put(name, self.emit(DualMap(fresh, read_back(of, inner), t)), adjoints)


def _without(names: dict[str, None], pattern: Pattern) -> dict[str, None]:
    bound = set(variables_of(pattern))
    return {name: None for name in names if name not in bound} if bound & names.keys() else names


def _thunk(pattern: Pattern, bound: PullbackTerm, dual: PullbackTerm, scope: dict[str, PullbackTerm]) -> Any:
    return lambda: DualMap(pattern, read_back(bound, scope), read_back(dual))


def _reading(value: PullbackTerm) -> Any:
    return lambda: read_back(value)


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

    def _dual(self, index: int, count: int) -> PullbackTerm:
        """The dual of what is bound before the binding of that index."""
        pattern = self.chain.pattern
        for name, _ in self.chain.series.bindings[:index]:
            pattern = (pattern, name)
        now = self.at(count)
        parts: list[PullbackTerm] = []
        for name in variables_of(pattern):
            if name in now:
                parts.append(
                    DualMap(pattern, Var(name), read_back(now[name]))
                    if not isinstance(pattern, str)
                    else read_back(now[name])
                )
        made = parts[0] if parts else ZERO
        for part in parts[1:]:
            made = TermSum(made, part)
        return made

    def redex(self, index: int, of: PullbackTerm, dual: PullbackTerm, final: bool) -> Any:
        count = len(self.entries)

        def made() -> PullbackTerm:
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
