"""Pullbacks along let series: rules 8 and 7, and the forward phase, which is a rule of `rules.py` for each link.

The Jacobians of the elementary terms are found at their values, from the first to the last; then the 1-form is applied,
and the duals are found on the way back, which is in `transpose.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from ..terms import (
    ZERO,
    App,
    DualMap,
    FormPullback,
    Jac,
    Lam,
    Pair,
    PullbackTerm,
    Var,
    Zero,
    free_variables,
    variables_of,
)
from ..trampoline import Call, pause
from .administrative import LEFT_OUT, lets
from .machine import AbstractMachine, Active, Linear, Outcome, Stuck
from .numbering import rule
from .rules import ELEMENTARY, choose, tangent
from .tuples import matched, nested, nested_pattern
from .values import Activation, Chain, Deferred, depends, is_abbreviated, read_back, unreduced

_SHOWN = 20
"""How many links of a pullback stand in the abbreviation of a term."""


class Pullbacks(AbstractMachine):
    """The part of the machine that pulls back."""

    def taken_apart(self, chain: Chain) -> Call[Chain]:
        """A pullback along a let series becomes one along each of its elementary terms in turn."""
        outer, here = self.context, chain
        while here.start < len(chain.series.bindings) - 1:
            here = self.first_taken(here)
            yield pause()  # the first of these steps is there before the last
        self.last_taken(here)
        self.context = outer
        return chain

    @rule("8", "pullback along a let series")
    def first_taken(self, here: Chain) -> Chain:
        """`(Ω λx. let y = E in L) . w` becomes `(Ω λx. <x, E>) . ((Ω λ<x, y>. L) . w)`."""
        following = next_of(here)
        self.step("8", lambda: read_back(here), lambda: link(here, read_back(following)))
        self.context = (lambda inner: link(here, inner), self.context)
        return following

    @rule("7", "pullback along the last of a let series")
    def last_taken(self, here: Chain) -> None:
        """`(Ω λx. let y = E in y) . w` becomes `(Ω λx. E) . w`."""
        self.step("7", lambda: read_back(here), lambda: last(here, read_back(here.form)))

    def pulled_back(self, chain: Chain, value: PullbackTerm) -> Call[PullbackTerm]:
        """`((Ω λx. L) . w) V`: forward along the elementary terms, through w, and back."""
        before = self.phase
        found: PullbackTerm | None = yield self.attempted(self._there_and_back(chain, value))
        self.phase = before
        if found is None:
            if self.premises:
                raise Stuck
            return self.emit(App(chain, value))
        return found

    def _there_and_back(self, chain: Chain, value: PullbackTerm) -> Call[PullbackTerm]:
        frame, outer = Activation(chain.environment), self.context
        self.bind(chain.pattern, value, frame)
        self.phase = "forward"
        linear, last, made = yield self.forward(chain, value, frame, {n: n for n in variables_of(chain.pattern)})
        t: PullbackTerm = yield self.apply(chain.form, made)
        self.phase = "reverse"
        dual: PullbackTerm = yield self.back(chain, value, linear, last, t, outer)
        self.context = outer
        return dual

    def forward(
        self, chain: Chain, value: PullbackTerm, frame: Activation, active: dict[str, str]
    ) -> Call[tuple[Linear, PullbackTerm, PullbackTerm]]:
        """The Jacobians of the elementary terms at their values, the tangent of the last, and its value."""
        linear: Linear = []
        here, given, made = chain, value, ZERO
        for name, of in chain.series.bindings:
            jacobian, made = yield self._link(here, of, given, frame, active)
            frame[name] = made
            if isinstance(jacobian, Zero):
                active.pop(name, None)  # a name may be bound twice
            else:
                active[name] = name
                frame.definitions[name] = of
                linear.append((name, jacobian))
            here, given = next_of(here), Pair(given, made)
        return linear, tangent(Var(chain.series.bindings[-1][0]), active), made

    def _link(
        self, here: Chain, of: PullbackTerm, given: PullbackTerm, frame: Activation, active: Active
    ) -> Call[tuple[PullbackTerm, PullbackTerm]]:
        """The Jacobian of one elementary term and its value. All but the last stand in a pair with what was there
        before, so rule 20 has that of the term as its premise."""
        context, final = self.context, here.start == len(here.series.bindings) - 1
        found: PullbackTerm | None

        def back(jacobian: PullbackTerm, inner: PullbackTerm) -> PullbackTerm:
            body = read_back(jacobian)
            return DualMap(here.pattern, body if final else Pair(matched(here.pattern), body), inner)

        def forward(jacobian: PullbackTerm, inner: PullbackTerm) -> PullbackTerm:
            if final:
                return back(jacobian, App(read_back(here.form), inner))
            return back(jacobian, App(unrolled(next_of(here)), Pair(read_back(given), inner)))

        if final:
            jacobian, found = yield self.jacobian_of(
                of, frame, active, lambda: App(last(here, read_back(here.form)), read_back(given)), forward
            )
        else:
            step = self.step("20", lambda: App(link(here, unrolled(next_of(here))), read_back(given)), None)
            jacobian, found = yield self.jacobian_of(of, frame, active)
            there = found  # the value, if a premise found it
            self.close(step, lambda: forward(jacobian, read_back(of, frame) if there is None else read_back(there)))
        if found is None:
            self.context = (lambda inner: forward(jacobian, inner), context)
            found = yield self.evaluate(of, frame)
        self.context = (lambda inner: back(jacobian, inner), context)
        return jacobian, found

    def jacobian_of(
        self,
        of: PullbackTerm,
        frame: Activation,
        active: Active,
        whole: Callable[[], PullbackTerm] | None = None,
        becomes: Callable[[PullbackTerm, PullbackTerm], PullbackTerm] | None = None,
    ) -> Call[Outcome]:
        """The Jacobian of an elementary term, by its rule. That of the last of a pullback is the `whole` redex, and
        becomes what `becomes` says of the Jacobian and the value."""
        if isinstance(of, Deferred) and depends(of, active):  # by the pullback that it is
            inner = unreduced(of)
            linear, last, value = yield self.series_jacobian(inner, self.needed_in(inner, frame), dict(active))
            return (ZERO if isinstance(last, Zero) else lets(linear, last)), value
        number = choose(of, active)
        if isinstance(of, App) and number == "19b" and self.is_dual(self.value_of(of.function, frame)):
            number = "14"
        free = free_variables(of)
        names = [name for name in free if name in active] or [next(iter(active), "_")]
        values = {name: frame[name] for name in free if name in frame}

        def redex() -> PullbackTerm:
            fixed = {name: value for name, value in values.items() if name not in names}
            function = read_back(Lam(nested_pattern(names), of), fixed)
            assert isinstance(function, Lam)
            at = nested([read_back(values.get(name, ZERO)) for name in names])
            return App(FormPullback(function.pattern, function.body, Var("ω")), at)

        outer = self.context
        if whole is None:
            self.context = None
        step = self.step(number, redex if whole is None else whole, None)
        self.context = None
        jacobian, found = yield ELEMENTARY[number](self, of, frame, active)
        if number == "19b" and isinstance(of, App) and _only_function(of, jacobian, active):
            step.rule = "19c"
        self.context = outer

        def contractum() -> PullbackTerm:
            value = read_back(of, values) if found is None else read_back(found)
            if becomes is not None:
                return becomes(jacobian, value)
            if isinstance(jacobian, Zero):
                return ZERO
            function = read_back(Lam(nested_pattern([active_then[name] for name in names]), jacobian))
            assert isinstance(function, Lam)
            return DualMap(function.pattern, function.body, App(Var("ω"), value))

        active_then = {name: active.get(name, name) for name in names}
        self.close(step, contractum)
        return jacobian, found


def next_of(chain: Chain) -> Chain:
    """The chain after its first elementary term."""
    bound = (chain.pattern, chain.series.bindings[chain.start][0])
    return Chain(bound, chain.series, chain.environment, chain.form, chain.start + 1)


def link(chain: Chain, inner: PullbackTerm) -> PullbackTerm:
    """`(Ω λx. <x, E>) . inner` for the first elementary term of a chain."""
    return _along(chain, Pair(matched(chain.pattern), chain.series.bindings[chain.start][1]), inner)


def last(chain: Chain, inner: PullbackTerm) -> PullbackTerm:
    """`(Ω λx. E) . inner` for the last."""
    return _along(chain, chain.series.bindings[-1][1], inner)


def _along(chain: Chain, body: PullbackTerm, inner: PullbackTerm) -> PullbackTerm:
    function = read_back(Lam(chain.pattern, body), chain.environment)
    assert isinstance(function, Lam)
    return FormPullback(function.pattern, function.body, inner)


def unrolled(chain: Chain) -> PullbackTerm:
    """A chain with each of its links, as it is after rules 8 and 7."""
    links, count = [chain], len(chain.series.bindings) - chain.start
    shown = min(count, _SHOWN) if is_abbreviated() else count
    while len(links) < shown:
        links.append(next_of(links[-1]))
    made: PullbackTerm = LEFT_OUT
    if shown == count:
        made = last(links.pop(), read_back(chain.form))
    for each in reversed(links):
        made = link(each, made)
    return made


def _only_function(of: App, jacobian: PullbackTerm, active: Active) -> bool:
    """Whether the tangent of an application is that of its function alone."""
    if isinstance(of.function, Jac) or isinstance(jacobian, Zero):
        return isinstance(jacobian, Zero)
    return (
        isinstance(jacobian, App)
        and jacobian.function == tangent(of.function, active)
        and not isinstance(jacobian.function, Zero)
    )
