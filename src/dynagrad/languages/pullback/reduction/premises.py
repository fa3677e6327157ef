"""Premises: the Jacobians of bodies, where one rule asks for the reduction of another term.

The body of an abstraction is reduced with names for what it binds (16b, 16c, 18), the body of a function that is
applied with the values that it binds (19b), and a pullback with names for all that it depends on (17), so that what
comes out can be differentiated once more. Where a name for a function stands in the way, the Jacobian is deferred: its
dual is found in the reverse phase, when it is known what its value was applied to. Reals can always have names. A
function on which a deferred pullback depends is moved along a tangent instead: its dual is left unread.

The rules that ask are in `rules.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
    PullbackTerm,
    TermSum,
    Var,
    Zero,
    variables_of,
)
from ..trampoline import Call
from ..types import Arrow, DualType, Product, TermType, TypeVariable, flat, resolved
from .administrative import Binding, TermSeries, lets
from .machine import AbstractMachine, Active, Linear, Outcome, Stuck
from .rules import tangent
from .tuples import nested
from .values import Activation, Chain, Deferred, MachineClosure, Unread, floats, read_back, residual_term, settled


class Premises(AbstractMachine):
    """The part of the machine that reduces premises."""

    def series_jacobian(
        self, body: PullbackTerm, frame: Activation, active: dict[str, str]
    ) -> Call[tuple[Linear, PullbackTerm, PullbackTerm]]:
        """The Jacobian of a body as a let series of tangents, the tangent of its value, and the value."""
        linear: Linear = []
        found: PullbackTerm | None = ZERO
        series: TermSeries = yield self.series_of(body)
        for name, of in series.bindings:
            jacobian, found = yield self.jacobian_of(of, frame, active)
            if found is None:
                found = yield self.evaluate(of, frame)
            frame[name] = found
            if isinstance(jacobian, Zero):
                active.pop(name, None)  # a name may be bound twice
            else:
                active[name] = self.fresh(name + "'", self.types.get(name))
                frame.definitions[name] = of
                linear.append((active[name], jacobian))
        assert found is not None
        return linear, tangent(Var(series.bindings[-1][0]), active), found

    def curried(self, of: Lam, frame: Activation, active: Active) -> Call[PullbackTerm]:
        """The Jacobian of a body under its binder, as an abstraction of the tangent; or 0."""
        new = {name: self.fresh(name, self.types.get(name)) for name in variables_of(of.pattern)}
        inner = self.needed_in(of, frame)
        inner.update((name, Var(other)) for name, other in new.items())
        found: Any = yield self.attempted(self.premise(self.series_jacobian(of.body, inner, dict(active))))
        if found is None:
            roots = [name for name in self.free(of) if name in active]
            type: TermType | None = yield self._type_of_body(of)
            return self._waiting(of.pattern, of.body, self.free(of), roots, frame, active, type, False)
        (linear, last, _), bindings = found
        if isinstance(last, Zero):
            return ZERO
        whole = lets(bindings, lets(linear, last))
        return Lam(renamed_pattern(of.pattern, new), settled(whole, {*new.values(), *(name for name, _ in bindings)}))

    def inside(self, function: MachineClosure, argument: PullbackTerm, along: PullbackTerm) -> Call[Outcome]:
        """The Jacobian of a function's body at an argument, along a tangent, and the value there."""
        pattern = function.function.pattern
        frame = Activation(function.environment)
        self.bind(pattern, argument, frame)
        active = self.tangents(variables_of(pattern))
        renamed = renamed_pattern(pattern, active)
        linear, last, value = yield self.series_jacobian(function.function.body, frame, active)
        if isinstance(last, Zero):
            return ZERO, value
        return App(Lam(renamed, lets(linear, last)), along), value

    def unfolded(self, of: PullbackTerm, frame: Activation, active: Active) -> Call[PullbackTerm]:
        """A pullback as an abstraction, by reducing its application to a fresh variable; or one that is deferred."""
        pattern: Pattern = of.pattern  # type: ignore[attr-defined]  # pullbacks have patterns
        type = self.type_of_pattern(pattern)
        at = self.fresh(pattern if isinstance(pattern, str) else "p", type)
        body = App(of, Var(at))
        roots, definitions = self._roots(of, frame, active)
        found: PullbackTerm | None = yield self.attempted(self.symbolically(lets(definitions, body), frame, roots))
        if found is None:
            return self.deferred(at, body, frame, active, DualType(type))
        self.body_types[id(found)] = found, DualType(type)
        return Lam(at, found)

    def symbolically(self, body: PullbackTerm, frame: Activation, roots: Sequence[str]) -> Call[PullbackTerm]:
        """What a body reduces to with new names for some variables, as a term in which these stand again."""
        inner = Activation(self.needed(body, frame))
        back: dict[str, PullbackTerm] = {}
        for root in roots:
            name = self.fresh(root, self.types.get(root))
            inner[root], back[name] = Var(name), Var(root)
        value, bindings = yield self.premise(self.evaluate(body, inner))
        return read_back(residual_term(bindings, value), back)

    def _type_of_body(self, of: Lam) -> Call[TermType | None]:
        known = self.body_types.get(id(of.body))
        if known is not None:
            return known[1]
        series: TermSeries = yield self.series_of(of.body)
        return self.types.get(series.bindings[-1][0])

    def _roots(self, of: PullbackTerm, frame: Activation, active: Active) -> tuple[list[str], list[Binding]]:
        """What a term depends on that is active and has no definition, or is made of numbers; and the definitions of
        the rest, in order: functions are looked into."""
        roots: list[str] = []
        definitions: list[Binding] = []
        seen: set[str] = set()
        todo: list[str | Binding] = list(reversed(self.free(of)))
        while todo:
            item = todo.pop()
            if not isinstance(item, str):
                definitions.append(item)
            elif item in active and item not in seen:
                seen.add(item)
                definition = frame.definitions.get(item)
                if definition is None or isinstance(frame[item], Var) or floats(frame[item]) is not None:
                    roots.append(item)
                else:
                    todo += ((item, definition), *reversed(self.free(definition)))
        return roots, definitions

    # -- Jacobians that wait -------------------------------------------------------------------------------------------

    def deferred(
        self, pattern: Pattern | None, body: PullbackTerm, frame: Activation, active: Active, type: TermType | None
    ) -> Deferred:
        """The Jacobian of the application of a pullback, of which there is none before its argument is known."""
        roots, definitions = self._roots(body, frame, active)
        whole = lets(definitions, body)
        return self._waiting(pattern, whole, self.free(whole), roots, frame, active, type, True)

    def _waiting(
        self,
        pattern: Pattern | None,
        body: PullbackTerm,
        free: list[str],
        roots: list[str],
        frame: Activation,
        active: Active,
        type: TermType | None,
        symbolic: bool,
    ) -> Deferred:
        bound = () if pattern is None else variables_of(pattern)
        others = [name for name in free if name not in roots and name not in bound]
        return Deferred(
            pattern,
            body,
            (*roots, *others),
            len(roots),
            type,
            symbolic,
            nested([frame.get(name, Var(name)) for name in (*roots, *others)]),
            nested([Var(active[name]) for name in roots]),
        )

    def _at(self, of: Deferred, at: PullbackTerm | None) -> Activation:
        frame = Activation(of.environment())
        if of.pattern is not None and at is not None:
            self.bind(of.pattern, at, frame)
        return frame

    def found(self, of: Deferred, at: PullbackTerm | None, t: PullbackTerm) -> Call[list[PullbackTerm]]:
        """The duals of the roots of a deferred Jacobian, at a value of what it binds; T is the dual of its value."""
        frame, roots = self._at(of, at), of.names[: of.roots]
        if not of.symbolic:
            duals: dict[str, PullbackTerm] = yield self._duals(of.body, frame, roots, t)
            return [duals.get(root, ZERO) for root in roots]
        reals = [root for root in roots if self._is_flat(root, frame[root])]
        duals = {}
        if reals:
            body: PullbackTerm = yield self.symbolically(of.body, frame, reals)
            duals = yield self._duals(body, Activation({root: frame[root] for root in reals}), reals, t)
        for root in roots:
            if root not in reals:
                if isinstance(frame[root], Var):
                    raise Stuck
                environment = {name: value for name, value in frame.items() if name != root}
                series: TermSeries = yield self.series_of(of.body)
                chain = Chain(root, series, environment, MachineClosure(Lam("_", t), {}))
                duals[root] = Unread(chain, frame[root])
        return [duals.get(root, ZERO) for root in roots]

    def _duals(
        self, body: PullbackTerm, frame: Activation, roots: Sequence[str], t: PullbackTerm
    ) -> Call[dict[str, PullbackTerm]]:
        names = self.tangents(roots)
        linear, last, _ = yield self.series_jacobian(body, frame, dict(names))
        adjoints: dict[str, PullbackTerm] = {}
        if not isinstance(last, Zero):
            yield self.transpose(lets(linear, last), t, Activation(), dict.fromkeys(names.values()), adjoints)
        return {root: adjoints.get(name, ZERO) for root, name in names.items()}

    def _is_flat(self, name: str, value: PullbackTerm) -> bool:
        type = resolved(self.types.get(name) or TypeVariable(0))
        return isinstance(value, Var) or floats(value) is not None if isinstance(type, TypeVariable) else flat(type)

    def derivative(self, of: Deferred, at: PullbackTerm | None) -> Call[PullbackTerm]:
        """A deferred Jacobian whose tangents are known, at a value of what it binds."""
        frame, roots, body = self._at(of, at), of.names[: of.roots], of.body
        along: dict[str, PullbackTerm] = of.tangent_of()
        if of.symbolic:  # along a real e, from V to V + e U
            e = self.fresh("e")
            for root in roots:
                point, u = self.fresh("v"), self.fresh("u")
                frame[point], frame[u] = frame.pop(root), along[root]
                body = App(Lam(root, body), self._moved(self.types.get(root), Var(point), Var(u), Var(e)))
            body = yield self.symbolically(body, frame, [e])
            frame, roots, along = Activation({e: Num(0.0)}), (e,), {e: Num(1.0)}
        names = self.tangents(roots)
        linear, last, _ = yield self.series_jacobian(body, frame, dict(names))
        inner = Activation({names[root]: along[root] for root in roots})
        for name, bound in linear:
            inner[name] = yield self.evaluate(bound, inner)
        value: PullbackTerm = yield self.evaluate(last, inner)
        return value

    # -- duals that are read -------------------------------------------------------------------------------------------

    def read(self, dual: Unread, along: PullbackTerm) -> Call[PullbackTerm]:
        """An unread dual, applied to a tangent U: the derivative of `((Ω λx. L) . w)` from V to V + e U along e."""
        if isinstance(along, Zero):
            return ZERO
        chain = dual.chain
        e, point, u = self.fresh("e"), self.fresh("v"), self.fresh("u")
        moved = self._moved(self.type_of_pattern(chain.pattern), Var(point), Var(u), Var(e))
        series: TermSeries = yield self.series_of(App(Lam(chain.pattern, chain.series.term()), moved))
        environment = {**chain.environment, point: dual.point, u: along}
        of_real: PullbackTerm = yield self.pulled_back(Chain(e, series, environment, chain.form), Num(0.0))
        value: PullbackTerm = yield self.apply(of_real, Num(1.0))
        return value

    def _moved(self, type: TermType | None, v: PullbackTerm, u: PullbackTerm, e: PullbackTerm) -> PullbackTerm:
        """`V + e U`, by the type of both."""
        match resolved(type) if type is not None else None:
            case Product(first, second):
                return Pair(
                    self._moved(first, Proj(1, v), Proj(1, u), e), self._moved(second, Proj(2, v), Proj(2, u), e)
                )
            case Arrow(_, target):
                name = self.fresh("y")
                return Lam(name, self._moved(target, App(v, Var(name)), App(u, Var(name)), e))
            case DualType():
                name = self.fresh("y")
                scaled = App(Jac("mult", Pair(App(u, Var(name)), ZERO)), Pair(ZERO, e))
                return TermSum(v, DualMap(name, scaled, Covector(1.0)))
        return TermSum(v, Prim("mult", Pair(e, u)))
