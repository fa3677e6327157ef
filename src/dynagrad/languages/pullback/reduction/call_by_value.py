"""Evaluation by call-by-value contexts, from left to right: rules 1 to 4, sums, and duals that are applied.

Substitutions are environments, so a binding costs the same however long the term is. What cannot be reduced, because a
free variable stands in its way, gets a name. Rules 7 and 8, which reduce pullbacks, are in `pullbacks.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..primitives import finite, known
from ..terms import (
    ZERO,
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
from ..trampoline import Call
from .administrative import TermSeries
from .machine import AbstractMachine
from .numbering import rule
from .values import (
    Activation,
    Along,
    Chain,
    Deferred,
    Evaluation,
    MachineClosure,
    MachineValue,
    Split,
    Unread,
    dot,
    halves,
    joined,
    read_back,
    reals,
)


class CallByValue(AbstractMachine):
    """The part of the machine that evaluates."""

    def evaluate(self, of: PullbackTerm, frame: Activation) -> Call[PullbackTerm]:
        """The value of a term."""
        outer = self.context
        a: PullbackTerm
        b: PullbackTerm
        while True:
            match of:
                case Var(name):
                    return frame.get(name, of)
                case Num() | Zero() | Covector() | MachineValue():
                    return of
                case Lam():
                    return self.closure(of, frame)
                case App(Lam(_, body) as function, bound):
                    if isinstance(bound, Var | Num | MachineValue | Covector):
                        a = self.value_of(bound, frame)
                    elif isinstance(bound, Lam):
                        a = self.closure(bound, frame)
                    else:
                        self.context = (lambda inner, f=function, e=frame: App(read_back(f, e), inner), outer)
                        a = yield self.evaluate(bound, frame)
                        self.context = outer
                    self.application(function, frame, a, frame)
                    of = body
                case App(first, second):
                    self.context = (lambda inner, s=second, e=frame: App(inner, read_back(s, e)), outer)
                    a = yield self.evaluate(first, frame)
                    self.context = (lambda inner, f=a: App(read_back(f), inner), outer)
                    b = yield self.evaluate(second, frame)
                    self.context = outer
                    if not isinstance(a, MachineClosure):
                        value: PullbackTerm = yield self.apply(a, b)
                        return value
                    frame, of = self.entered(a, b), a.function.body
                case Pair(first, second) | TermSum(first, second):
                    kind = type(of)
                    self.context = (lambda inner, s=second, e=frame, k=kind: k(inner, read_back(s, e)), outer)
                    a = yield self.evaluate(first, frame)
                    self.context = (lambda inner, a=a, k=kind: k(read_back(a), inner), outer)
                    b = yield self.evaluate(second, frame)
                    self.context = outer
                    if kind is Pair:
                        return Pair(a, b)
                    value = yield self.summed(of, a, b)
                    return value
                case Proj(index, inner_term):
                    self.context = (lambda inner, i=index: Proj(i, inner), outer)
                    a = yield self.evaluate(inner_term, frame)
                    self.context = outer
                    return self.projection(index, a)
                case Prim(name, argument):
                    self.context = (lambda inner, n=name: Prim(n, inner), outer)
                    a = yield self.evaluate(argument, frame)
                    self.context = outer
                    return self.primitive(of, a)
                case Jac(name, along):
                    self.context = (lambda inner, n=name: Jac(n, inner), outer)
                    a = yield self.evaluate(along, frame)
                    self.context = outer
                    if isinstance(a, Zero):
                        self.step("sum", lambda: Jac(name, ZERO), lambda: ZERO)
                        return a
                    return Jac(name, a, span=of.span)
                case DualMap(_, _, functional):
                    self.context = (lambda inner, d=of, e=frame: dual_of(d, e, inner), outer)
                    a = yield self.evaluate(functional, frame)
                    self.context = outer
                    value = yield self.dual_map(of, frame, a)
                    return value
                case FormPullback():
                    value = yield self.pullback(of, frame)
                    return value
                case Deferred():
                    values = yield self.evaluate(of.values, frame)
                    tangents = yield self.evaluate(of.tangents, frame)
                    known_now = Deferred(
                        of.pattern, of.body, of.names, of.roots, of.type, of.symbolic, values, tangents
                    )
                    if of.pattern is not None:
                        return known_now
                    value = yield self.derivative(known_now, None)
                    return value
                case _:
                    raise AssertionError(of)

    def pullback(self, of: FormPullback, frame: Activation) -> Call[PullbackTerm]:
        """A pullback of a value: A-reduction in its body, then its 1-form, then rules 8 and 7."""
        outer = self.context
        self.context = (lambda inner: FormPullback(of.pattern, inner, of.form), outer)
        series: TermSeries = yield self.series_of(of.body)

        def around(inner: PullbackTerm) -> PullbackTerm:
            whole = read_back(Lam(of.pattern, series.term()), frame)
            assert isinstance(whole, Lam)
            return FormPullback(of.pattern, whole.body, inner)

        self.context = (around, outer)
        form: PullbackTerm = yield self.evaluate(of.form, frame)
        self.context = outer
        if isinstance(form, Zero):
            self.step("sum", lambda: around(ZERO), lambda: ZERO)
            return ZERO
        chain: Chain = yield self.taken_apart(Chain(of.pattern, series, self.needed(of, frame), form))
        return chain

    @rule("1", "application of an abstraction")
    def application(
        self, function: Lam, environment: Mapping[str, PullbackTerm], a: PullbackTerm, frame: Activation
    ) -> None:
        """`(λx. S) V` becomes S with V for x, which is a binding of the frame."""
        pattern: Pattern = function.pattern
        self.step(
            "1",
            lambda: App(read_back(function, environment), read_back(a)),
            lambda: read_back(function.body, frame),
        )
        if type(pattern) is str:
            frame[pattern] = a
        else:
            self.bind(pattern, a, frame)

    def entered(self, f: MachineClosure, a: PullbackTerm) -> Activation:
        """The frame of a function's body, by rule 1."""
        frame = Activation(f.environment)
        self.applied = f.function
        self.application(f.function, f.environment, a, frame)
        return frame

    @rule("2", "projection of a pair")
    def projection(self, index: int, a: PullbackTerm) -> PullbackTerm:
        """`πi <V1, V2>` becomes Vi."""
        part = self.project(index, a)
        if not isinstance(a, Var):
            self.step("2", lambda: Proj(index, read_back(a)), lambda: read_back(part))
        return part

    @rule("3", "value of a primitive")
    def primitive(self, of: Prim, a: PullbackTerm) -> PullbackTerm:
        """`f(r)` becomes a numeral."""
        given = reals(a, known(of.name))
        if given is None:
            return self.emit(Prim(of.name, a))
        value = Num(self.at(of, lambda: known(of.name).value(given)))
        self.step("3", lambda: Prim(of.name, read_back(a)), lambda: value)
        return value

    @rule("4", "Jacobian of a primitive")
    def jacobian(self, f: Jac, a: PullbackTerm) -> PullbackTerm:
        """`(Jf . r) r'` becomes a numeral."""
        at, ds = reals(a, known(f.name)), reals(f.along, known(f.name))
        if at is None or ds is None:
            return self.emit(App(f, a))
        value = Num(self.at(f, lambda: known(f.name).along(at, ds)))
        self.step("4", lambda: App(read_back(f), read_back(a)), lambda: value)
        return value

    @rule("sum", "sums")
    def summed(self, of: PullbackTerm, a: PullbackTerm, b: PullbackTerm) -> Call[PullbackTerm]:
        """`r + r'` becomes a numeral; values of other types are added part by part. What is linear in 0 is 0."""
        made: PullbackTerm = yield self.add(a, b, of)
        self.step("sum", lambda: TermSum(read_back(a), read_back(b)), lambda: read_back(made))
        return made

    @rule("dual", "application of a dual")
    def dual_applied(self, f: PullbackTerm, a: PullbackTerm) -> Call[PullbackTerm]:
        """A dual of R^n multiplies and adds; those of other types apply their tangents, which are premises."""
        made: PullbackTerm
        if isinstance(f, Covector):
            total = dot(f.coefficients, a)
            if total is None:
                return self.emit(App(f, a))
            made = Num(self.at(f, lambda: finite(total, "the value of the dual")))
            self.step("dual", lambda: App(read_back(f), read_back(a)), lambda: made)
            return made
        step = self.step("dual", lambda: App(read_back(f), read_back(a)), None)
        outer, self.context = self.context, None
        match f:
            case Split(first, second):
                one = yield self.apply(first, self.project(1, a))
                other = yield self.apply(second, self.project(2, a))
                made = yield self.add(one, other)
            case Evaluation(argument, functional):
                inner = yield self.apply(a, argument)
                made = yield self.apply(functional, inner)
            case Along(pattern, body, environment, functional):
                frame = Activation(environment)
                self.bind(pattern, a, frame)
                inner = yield self.evaluate(body, frame)
                made = yield self.apply(functional, inner)
            case _:
                assert isinstance(f, Unread)
                made = yield self.read(f, a)
        self.context = outer
        self.close(step, lambda: read_back(made))
        return made

    def apply(self, f: PullbackTerm, a: PullbackTerm) -> Call[PullbackTerm]:
        """The value of a function or a dual at a value."""
        made: PullbackTerm
        match f:
            case MachineClosure():
                frame = self.entered(f, a)
                made = yield self.evaluate(f.function.body, frame)
            case Chain():
                made = yield self.pulled_back(f, a)
            case Zero():
                self.step("sum", lambda: App(ZERO, read_back(a)), lambda: ZERO)
                made = ZERO
            case Jac():
                made = self.jacobian(f, a)
            case Deferred():
                made = yield self.derivative(f, a)
            case Covector() | Split() | Evaluation() | Along() | Unread():
                made = yield self.dual_applied(f, a)
            case TermSum(first, second):
                step = self.step("sum", lambda: App(read_back(f), read_back(a)), None)
                outer, self.context = self.context, None
                one = yield self.apply(first, a)
                other = yield self.apply(second, a)
                made = yield self.add(one, other)
                self.context = outer
                self.close(step, lambda: read_back(made))
            case _:
                made = self.emit(App(f, a))
        return made

    def add(self, u: PullbackTerm, v: PullbackTerm, of: PullbackTerm | None = None) -> Call[PullbackTerm]:
        """The sum of two values, as which a term is computed."""
        match u, v:
            case Zero(), _:
                return v
            case _, Zero():
                return u
            case Num(x), Num(y):
                return Num(self.at(of or TermSum(u, v), lambda: finite(x + y, "the sum")))
            case (Var(), _) | (_, Var()):
                return self.emit(TermSum(u, v))
            case Pair(a, b), Pair(c, d):
                first: PullbackTerm = yield self.add(a, c, of)
                second: PullbackTerm = yield self.add(b, d, of)
                return Pair(first, second)
            case Covector(float() as one), Covector(float() as other):
                total = one + other
                return Covector(self.at(of or TermSum(u, v), lambda: finite(total, "the sum")))
        if isinstance(u, Covector | Split) and isinstance(v, Covector | Split):
            left, right = halves(u), halves(v)
            assert left is not None and right is not None
            first = yield self.add(left[0], right[0], of)
            second = yield self.add(left[1], right[1], of)
            return joined(first, second)
        return TermSum(u, v)


def dual_of(of: DualMap, environment: Activation, inner: PullbackTerm) -> PullbackTerm:
    """A dual map under an environment, with another functional."""
    function = read_back(Lam(of.pattern, of.body), environment)
    assert isinstance(function, Lam)
    return DualMap(function.pattern, function.body, inner)
