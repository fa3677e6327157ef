"""Reduction: a machine that carries out the rules, and leaves a tree of steps behind.

A redex is found by call-by-value contexts, from left to right. Substitutions are environments, so a binding costs the
same however long the term is; abstractions keep the values of their free variables. What cannot be reduced, because a
free variable stands in its way, gets a name: it stands in the residual bindings, and the variable is its value. Rules 1
to 4 and 6 to 8 are here, 5 and the reverse phase are in `transpose.py`, 9 to 20 in `rules.py`.

It is long because the machine is one: the contexts, and the ways of going on in each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ....errors import Error, NotConverged, shown
from ..infer import Typed, infer
from ..parse import parse
from ..primitives import known
from ..rename import Names, names_of, renamed_pattern
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
from ..trampoline import Call, watched
from ..types import Arrow, Dual, Product, Real, resolved
from .administrative import Series, lets, reduce_administratively, series_of
from .rules import ELEMENTARY, Active, Outcome, Stuck, choose, tangent
from .steps import Context, Plug, Reduction, Step
from .transpose import Sweep
from .values import (
    At,
    Chain,
    Closure,
    Frame,
    Split,
    Value,
    closed,
    depends,
    floats,
    halves,
    joined,
    matched,
    numbers,
    read_back,
    residual_term,
)

MOST_STEPS = 10_000_000
"""How many steps a reduction may take, unless it is told otherwise."""


def reduce(of: Term | str, *, filename: str = "", max_steps: int = MOST_STEPS) -> Reduction:
    """The reduction of a term, which starts when it is looked at.

    >>> reduce(r"((W \\<x, y>. square((x + 1) * (2 * x + y * y))) . (\\_. 1^)) <1, 3>").result
    (660, 528)^
    """
    text = of if isinstance(of, str) else ""
    if not isinstance(of, str | Term):
        raise Error(f"a term or the text of one is needed, and {shown(of)} is neither")
    typed = infer(parse(of, filename) if isinstance(of, str) else of, text, filename)
    machine = Machine(typed, max_steps)
    return Reduction(typed.term, typed.type, watched(machine.whole(typed.term), machine.events))


class Machine:
    """The state of a reduction: what stands around the redex, residual bindings, and the steps since the last event."""

    def __init__(self, typed: Typed, max_steps: int = MOST_STEPS) -> None:
        self.typed = typed
        self.names = Names(names_of(typed.term))
        self.events: list[Any] = []
        self.context: Context = None
        self.residual: list[tuple[str, Term]] = []
        self.depth = 0  # of open steps
        self.phase = ""
        self.left = max_steps
        self.max_steps = max_steps
        self.series: dict[int, tuple[Term, Series]] = {}
        self.captured: dict[int, tuple[Term, list[str]]] = {}
        self.sweep = Sweep(self)

    # -- steps ---------------------------------------------------------------------------------------------------------

    def step(self, rule: str, redex: Callable[[], Term], contractum: Callable[[], Term] | None) -> Step:
        """Leaves a step; without its contractum it is open until `close`."""
        self.left -= 1
        if self.left < 0:
            raise NotConverged(f"the reduction takes more than {self.max_steps} steps; allow more with max_steps=")
        made = Step(rule, redex, self.context, self.phase)
        made._contractum = contractum
        self.events.append(made)
        if contractum is None:
            self.depth += 1
        return made

    def close(self, step: Step, contractum: Callable[[], Term]) -> None:
        step._contractum = contractum
        self.depth -= 1
        self.events.append(self.depth)

    def inside_of(self, plug: Plug) -> Context:
        """Goes into a context; gives the one before, to return to."""
        before = self.context
        self.context = (plug, before)
        return before

    # -- the whole -----------------------------------------------------------------------------------------------------

    def whole(self, of: Term) -> Call[Term]:
        self.context = (self._with_residual, None)
        value = yield self.evaluate(of, Frame())
        return residual_term(self.residual, value)

    def _with_residual(self, inner: Term) -> Term:
        return lets([(name, read_back(bound)) for name, bound in self.residual], inner)

    def emit(self, of: Term) -> Term:
        """A name for what cannot be reduced."""
        name = self.names.fresh("n")
        self.residual.append((name, of))
        return Var(name)

    def bind(self, pattern: Pattern, value: Term, frame: Frame) -> None:
        todo = [(pattern, value)]
        while todo:
            part, given = todo.pop()
            if isinstance(part, str):
                frame[part] = given
            elif isinstance(given, Pair):
                todo += ((part[1], given.second), (part[0], given.first))
            elif isinstance(given, Zero):
                todo += ((part[1], ZERO), (part[0], ZERO))
            else:
                todo += ((part[1], self.project(2, given)), (part[0], self.project(1, given)))

    def project(self, index: int, value: Term) -> Term:
        match value:
            case Pair(first, second):
                return first if index == 1 else second
            case Zero():
                return ZERO
        return self.emit(Proj(index, value))

    def value_of(self, of: Term, environment: Mapping[str, Term]) -> Term:
        """The value of a variable; a value as it is."""
        return environment.get(of.name, of) if isinstance(of, Var) else of

    def is_dual(self, value: Term) -> bool:
        if isinstance(value, Covector | Split | At):
            return True
        if isinstance(value, Sum):
            return self.is_dual(value.first)
        if isinstance(value, Var):
            return isinstance(resolved(self.typed.of_variable.get(value.name, ZERO)), Dual)  # type: ignore[arg-type]  # 0 is no type
        return False

    def series_of(self, body: Term) -> Series:
        """The let series of a body; it is made once."""
        found = self.series.get(id(body))
        if found is None:
            made = series_of(body)
            if made is None:
                made = self.administrative(body)
            found = self.series[id(body)] = body, made
        return found[1]

    def administrative(self, body: Term) -> Series:
        made = reduce_administratively(body, self.names, self.typed)
        self.step("A", lambda: body, lambda: made.term())
        return made

    def closure(self, of: Lam, environment: Mapping[str, Term]) -> Term:
        return Closure(of, self.needed(of, environment))

    def needed(self, of: Term, environment: Mapping[str, Term]) -> dict[str, Term]:
        """The values of what is free in an abstraction."""
        found = self.captured.get(id(of))
        if found is None:
            found = self.captured[id(of)] = of, list(free_variables(of))
        return {name: environment[name] for name in found[1] if name in environment}

    # -- evaluation: rules 1 to 8 --------------------------------------------------------------------------------------

    def evaluate(self, of: Term, frame: Frame) -> Call[Term]:
        outer = self.context
        try_again = True
        while try_again:
            match of:
                case Var(name):
                    return frame.get(name, of)
                case Num() | Zero() | Covector() | Value():
                    return of
                case Lam():
                    return self.closure(of, frame)
                case App(Lam(pattern, body) as function, bound):
                    if isinstance(bound, Var | Num | Value | Covector):
                        value = self.value_of(bound, frame)
                    elif isinstance(bound, Lam):
                        value = self.closure(bound, frame)
                    else:
                        self.context = (lambda inner, f=function, e=frame: App(read_back(f, e), inner), outer)
                        value = yield self.evaluate(bound, frame)
                        self.context = outer
                    self.step(
                        "1",
                        lambda f=function, v=value, e=frame: App(read_back(f, e), read_back(v)),  # type: ignore[misc]  # defaults keep what it is now
                        lambda b=body, e=frame: read_back(b, e),  # type: ignore[misc]  # defaults keep what it is now
                    )
                    if type(pattern) is str:
                        frame[pattern] = value
                    else:
                        self.bind(pattern, value, frame)
                    of = body
                    continue
                case App(first, second):
                    self.context = (lambda inner, s=second, e=frame: App(inner, read_back(s, e)), outer)
                    f = yield self.evaluate(first, frame)
                    self.context = (lambda inner, f=f: App(read_back(f), inner), outer)
                    a = yield self.evaluate(second, frame)
                    self.context = outer
                    if isinstance(f, Closure):
                        frame, of = self.entered(f, a)
                        continue
                    return (yield self.apply(f, a))
                case Pair(first, second) | Sum(first, second):
                    kind = type(of)
                    self.context = (lambda inner, s=second, e=frame, k=kind: k(inner, read_back(s, e)), outer)
                    a = yield self.evaluate(first, frame)
                    self.context = (lambda inner, a=a, k=kind: k(read_back(a), inner), outer)
                    b = yield self.evaluate(second, frame)
                    self.context = outer
                    if kind is Pair:
                        return Pair(a, b)
                    return (yield self.summed(a, b))
                case Proj(index, inner_term):
                    self.context = (lambda inner, i=index: Proj(i, inner), outer)
                    a = yield self.evaluate(inner_term, frame)
                    self.context = outer
                    return self.projected(index, a)
                case Prim(name, argument):
                    self.context = (lambda inner, n=name: Prim(n, inner), outer)
                    a = yield self.evaluate(argument, frame)
                    self.context = outer
                    return self.primitive(name, a)
                case Jac(name, along):
                    self.context = (lambda inner, n=name: Jac(n, inner), outer)
                    a = yield self.evaluate(along, frame)
                    self.context = outer
                    return a if isinstance(a, Zero) else Jac(name, a)
                case DualMap(pattern, body, functional):
                    self.context = (lambda inner, d=of, e=frame: self._dual(d, e, inner), outer)
                    t = yield self.evaluate(functional, frame)
                    self.context = outer
                    return (yield self.sweep.dual_map(of, frame, t))
                case Pullback(pattern, body, form):
                    self.context = (lambda inner, p=of: Pullback(p.pattern, inner, p.form), outer)
                    series = self.series_of(body)
                    self.context = (
                        lambda inner, p=of, s=series, e=frame: Pullback(  # type: ignore[misc]  # defaults keep what it is now
                            p.pattern,
                            read_back(Lam(p.pattern, s.term()), e).body,  # type: ignore[attr-defined]  # an abstraction has a body
                            inner,
                        ),
                        outer,
                    )
                    w = yield self.evaluate(form, frame)
                    self.context = outer
                    if isinstance(w, Zero):
                        return ZERO
                    return self.taken_apart(Chain(pattern, series, self.needed(Lam(pattern, series.term()), frame), w))
            raise AssertionError(of)
        raise AssertionError

    @staticmethod
    def _dual(of: DualMap, frame: Frame, inner: Term) -> Term:
        function = read_back(Lam(of.pattern, of.body), frame)
        assert isinstance(function, Lam)
        return DualMap(function.pattern, function.body, inner)

    def entered(self, f: Closure, a: Term) -> tuple[Frame, Term]:
        """Rule 1: the body of a function, and the environment it is in."""
        frame = Frame(f.environment)
        pattern = f.function.pattern
        self.step("1", lambda: App(read_back(f), read_back(a)), lambda: read_back(f.function.body, frame))
        if type(pattern) is str:
            frame[pattern] = a
        else:
            self.bind(pattern, a, frame)
        return frame, f.function.body

    def taken_apart(self, chain: Chain) -> Chain:
        """Rules 8 and 7: a pullback along a let series becomes one along each of its elementary terms in turn."""
        pattern, count = chain.pattern, len(chain.series.bindings)
        outer = self.context
        for index in range(count - 1):
            here = Chain(pattern, chain.series, chain.environment, chain.form, index)
            bound = (pattern, chain.series.bindings[index][0])
            following = Chain(bound, chain.series, chain.environment, chain.form, index + 1)
            self.step("8", lambda h=here: read_back(h), lambda h=here, f=following: self.link(h, read_back(f)))  # type: ignore[misc]  # defaults keep what it is now
            self.context = (lambda inner, h=here: self.link(h, inner), self.context)
            pattern = bound
        last = Chain(pattern, chain.series, chain.environment, chain.form, count - 1)
        self.step("7", lambda: read_back(last), lambda: self.last(last, read_back(last.form)))
        self.context = outer
        return chain

    @staticmethod
    def link(chain: Chain, inner: Term) -> Term:
        """`(Ω λx. <x, E>) . inner` for the first binding of a chain."""
        whole = read_back(
            Lam(chain.pattern, Pair(matched(chain.pattern), chain.series.bindings[chain.start][1])), chain.environment
        )
        assert isinstance(whole, Lam)
        return Pullback(whole.pattern, whole.body, inner)

    @staticmethod
    def last(chain: Chain, inner: Term) -> Term:
        whole = read_back(Lam(chain.pattern, chain.series.bindings[-1][1]), chain.environment)
        assert isinstance(whole, Lam)
        return Pullback(whole.pattern, whole.body, inner)

    def projected(self, index: int, a: Term) -> Term:
        """Rule 2."""
        part = self.project(index, a)
        if not isinstance(a, Var):
            self.step("2", lambda: Proj(index, read_back(a)), lambda: read_back(part))
        return part

    def summed(self, a: Term, b: Term) -> Call[Term]:
        made = yield self.add(a, b)
        self.step("sum", lambda: Sum(read_back(a), read_back(b)), lambda: read_back(made))
        return made

    def primitive(self, name: str, a: Term) -> Term:
        """Rule 3."""
        given = numbers(a, len(known(name).inputs))
        if given is None:
            return self.emit(Prim(name, a))
        value = Num(known(name).value(given))
        self.step("3", lambda: Prim(name, read_back(a)), lambda: value)
        return value

    def apply(self, f: Term, a: Term) -> Call[Term]:
        match f:
            case Closure():
                frame, body = self.entered(f, a)
                return (yield self.evaluate(body, frame))
            case Chain():
                return (yield self.pulled_back(f, a))
            case Zero():
                return ZERO
            case Sum(first, second):
                one = yield self.apply(first, a)
                other = yield self.apply(second, a)
                made = yield self.add(one, other)
                self.step("sum", lambda: App(read_back(f), read_back(a)), lambda: read_back(made))
                return made
            case Jac(name, along):
                made = self.jacobian(name, along, a)
                if not isinstance(made, Var):
                    self.step("4", lambda: App(read_back(f), read_back(a)), lambda: made)
                return made
            case Covector(coefficients):
                given = floats(a) if not isinstance(a, Zero) else []
                if given is None:
                    return self.emit(App(f, a))
                number = Num(sum(c * g for c, g in zip(_flat(coefficients), given, strict=False)))
                self.step("dual", lambda: App(read_back(f), read_back(a)), lambda: number)
                return number
            case Split(first, second):
                one = yield self.apply(first, self.project(1, a))
                other = yield self.apply(second, self.project(2, a))
                made = yield self.add(one, other)
            case At(argument, functional):
                inner = yield self.apply(a, argument)
                made = yield self.apply(functional, inner)
            case _:
                return self.emit(App(f, a))
        self.step("dual", lambda: App(read_back(f), read_back(a)), lambda: read_back(made))
        return made

    def jacobian(self, name: str, along: Term, a: Term) -> Term:
        """Rule 4."""
        width = len(known(name).inputs)
        at, ds = numbers(a, width), numbers(along, width)
        if at is None or ds is None:
            return self.emit(App(Jac(name, along), a))
        return Num(sum(slope * d for slope, d in zip(known(name).slopes(at), ds, strict=True) if d != 0.0))

    def add(self, u: Term, v: Term) -> Call[Term]:
        """The sum of two values."""
        match u, v:
            case Zero(), _:
                return v
            case _, Zero():
                return u
            case Num(a), Num(b):
                return Num(a + b)
            case (Var(), _) | (_, Var()):
                return self.emit(Sum(u, v))
            case Pair(a, b), Pair(c, d):
                first = yield self.add(a, c)
                return Pair(first, (yield self.add(b, d)))
            case (Covector(a), Covector(b)) if not isinstance(a, tuple) and not isinstance(b, tuple):
                return Covector(a + b)
        if isinstance(u, Covector | Split) and isinstance(v, Covector | Split):
            left, right = halves(u), halves(v)
            assert left is not None and right is not None
            first = yield self.add(left[0], right[0])
            return joined(first, (yield self.add(left[1], right[1])))
        return Sum(u, v)

    # -- pullbacks -----------------------------------------------------------------------------------------------------

    def pulled_back(self, chain: Chain, value: Term) -> Call[Term]:
        """`((Ω λx. L) . w) V`: forward along the elementary terms, through w, and back."""
        frame = Frame(chain.environment)
        outer, before = self.context, self.phase
        self.bind(chain.pattern, value, frame)
        active = {name: name for name in variables_of(chain.pattern)}
        self.phase = "forward"
        found = yield self.attempted(self.forward(chain, value, frame, active))
        if found is None:
            self.phase = before
            return self.emit(App(chain, value))
        linear, last, made = found
        t = yield self.apply(chain.form, made)
        self.phase = "reverse"
        adjoints = yield self.sweep.back(chain, linear, last, t, outer)
        self.context, self.phase = outer, before
        return self.sweep.assembled(chain.pattern, value, adjoints)

    def attempted(self, call: Call[Any]) -> Call[Any]:
        """What a call gives; None where it is stuck, with nothing left behind but its steps."""
        context, phase, depth, residual = self.context, self.phase, self.depth, len(self.residual)
        try:
            return (yield call)
        except Stuck:
            self.context, self.phase, self.depth = context, phase, depth
            self.events.append(depth)
            del self.residual[residual:]
            return None

    def forward(
        self, chain: Chain, value: Term, frame: Frame, active: dict[str, str]
    ) -> Call[tuple[list[tuple[str, Term]], Term, Term]]:
        """The Jacobians of the elementary terms at their values, and the value of the last."""
        linear: list[tuple[str, Term]] = []
        bindings = chain.series.bindings
        pattern, given = chain.pattern, value
        made: Term = ZERO
        for index, (name, of) in enumerate(bindings):
            final = index == len(bindings) - 1
            here = Chain(pattern, chain.series, chain.environment, chain.form, index)
            following = Chain((pattern, name), chain.series, chain.environment, chain.form, index + 1)
            step = None
            if not final:
                step = self.step(
                    "20",
                    lambda h=here, f=following, v=given: App(self.link(h, self.unrolled(f)), read_back(v)),  # type: ignore[misc]  # defaults keep what it is now
                    None,
                )
            context = self.context
            whole = (lambda h=here, v=given: App(self.last(h, read_back(h.form)), read_back(v))) if final else None
            jacobian, found = yield self.jacobian_of(of, frame, active, whole, here)
            plug = self._forward_plug(here, following, jacobian, active, given, final)
            if step is not None:
                self.close(
                    step,
                    lambda p=plug, o=of, e=frame, a=found: p(read_back(o, e) if a is None else read_back(a)),  # type: ignore[misc]  # defaults keep what it is now
                )
            self.context = (plug, context)
            if found is None:
                found = yield self.evaluate(of, frame)
            made = found
            frame[name] = made
            self.context = (self._reverse_plug(here, jacobian, active, final), context)
            if not isinstance(jacobian, Zero):
                active[name] = name
                frame.definitions[name] = of
                linear.append((name, jacobian))
            pattern, given = (pattern, name), Pair(given, made)
        last = tangent(Var(bindings[-1][0]), active)
        return linear, last, made

    def unrolled(self, chain: Chain) -> Term:
        """A chain with each of its links, as it is after rules 8 and 7."""
        pattern, links = chain.pattern, []
        count = len(chain.series.bindings)
        for index in range(chain.start, count):
            links.append(Chain(pattern, chain.series, chain.environment, chain.form, index))
            pattern = (pattern, chain.series.bindings[index][0])
        made = self.last(links[-1], read_back(chain.form))
        for link in reversed(links[:-1]):
            made = self.link(link, made)
        return made

    def _forward_plug(
        self, here: Chain, following: Chain, jacobian: Term, active: dict[str, str], given: Term, final: bool
    ) -> Plug:
        back = self._reverse_plug(here, jacobian, active, final)

        def plug(inner: Term) -> Term:
            if final:
                return back(App(read_back(here.form), inner))
            return back(App(self.unrolled(following), Pair(read_back(given), inner)))

        return plug

    def _reverse_plug(self, here: Chain, jacobian: Term, active: dict[str, str], final: bool) -> Plug:
        def plug(inner: Term) -> Term:
            body = read_back(jacobian)
            return DualMap(here.pattern, body if final else Pair(matched(here.pattern), body), inner)

        return plug

    def jacobian_of(
        self,
        of: Term,
        frame: Frame,
        active: Active,
        whole_redex: Callable[[], Term] | None = None,
        chain: Chain | None = None,
    ) -> Call[Outcome]:
        """The Jacobian of an elementary term, by its rule. The last of a pullback's is a redex of the whole term."""
        number = choose(of, frame, active)
        if number == "19b" and self.is_dual(self.value_of(of.function, frame)):  # type: ignore[attr-defined]  # it is an application
            number = "14"
        names = [name for name in free_variables(of) if name in active] or [next(iter(active))]
        values = [frame[name] for name in names]

        def redex() -> Term:
            fixed = {name: value for name, value in frame.items() if name not in names}
            whole = read_back(Lam(_nested(names), of), fixed)
            assert isinstance(whole, Lam)
            return App(Pullback(whole.pattern, whole.body, Var("ω")), read_back(_values(values)))

        outer = self.context
        if whole_redex is None:
            self.context = None
        step = self.step(number, whole_redex or redex, None)
        self.context = None
        jacobian, found = yield ELEMENTARY[number](self, of, frame, active)
        if (
            number == "19b"
            and not isinstance(of.function, Jac)  # type: ignore[attr-defined]  # it is an application
            and isinstance(jacobian, Zero | App)
            and _only_function(of, jacobian, active)  # type: ignore[arg-type]  # it is an application
        ):
            step.rule = "19c"
        self.context = outer

        def contractum() -> Term:
            if whole_redex is not None and chain is not None:
                at_value = read_back(of, frame_then) if found is None else read_back(found)
                return self._forward_plug(chain, chain, jacobian, {}, ZERO, True)(at_value)
            if isinstance(jacobian, Zero):
                return ZERO
            whole = read_back(Lam(_nested([active[name] for name in names]), jacobian))
            assert isinstance(whole, Lam)
            value = read_back(of, {k: v for k, v in frame.items() if k in at}) if found is None else read_back(found)
            return DualMap(whole.pattern, whole.body, App(Var("ω"), value))

        at = set(free_variables(of))
        frame_then = {name: frame[name] for name in at if name in frame}
        self.close(step, contractum)
        return jacobian, found

    def series_jacobian(self, body: Term, frame: Frame, active: dict[str, str]) -> Call[Any]:
        """The Jacobian of a body in a premise, as a let series of tangents, and its value."""
        linear: list[tuple[str, Term]] = []
        found: Term | None = ZERO
        series = self.series_of(body)
        for name, of in series.bindings:
            jacobian, found = yield self.jacobian_of(of, frame, active)
            if found is None:
                found = yield self.evaluate(of, frame)
            frame[name] = found
            if not isinstance(jacobian, Zero):
                active[name] = self.names.fresh(name + "'")
                frame.definitions[name] = of
                linear.append((active[name], jacobian))
        return linear, tangent(Var(series.bindings[-1][0]), active), found

    def curried(self, of: Lam, frame: Frame, active: Active) -> Call[Any]:
        """The Jacobian of a body under its binder, as an abstraction of the tangent; or 0."""
        new = {name: self.names.fresh(name) for name in variables_of(of.pattern)}
        inner = Frame(frame, frame.definitions)
        for name, other in new.items():
            inner[name] = Var(other)
        residual, self.residual = self.residual, []
        try:
            found = yield self.attempted(self.series_jacobian(of.body, inner, dict(active)))
            bindings = self.residual
        finally:
            self.residual = residual
        if found is None:
            return Lam(renamed_pattern(of.pattern, new), self.unreduced(of, inner, active))
        linear, last, _ = found
        if isinstance(last, Zero):
            return ZERO
        return Lam(renamed_pattern(of.pattern, new), lets(bindings, lets(linear, last)))

    def unreduced(self, of: Lam, frame: Frame, active: Active) -> Term:
        """The Jacobian of a body that waits for a function that its binder binds: a pullback, applied to the tangent.

        It is written by the type of the body: `((Ω λx. L) . (λ_. 1^)) V v` for a real.
        """
        series = self.series_of(of.body)
        names = [name for name in active if depends(of, {name: None})]
        fixed = {name: value for name, value in frame.items() if name not in names}
        body = closed(Lam(_nested(names), series.term()), fixed)
        assert isinstance(body, Lam)
        at = _values([frame[name] for name in names])
        along = _values([Var(active[name]) for name in names])

        def made(type: Any, inner: Term) -> Term:
            type = resolved(type) if type is not None else None
            match type:
                case Real():
                    form = Lam("_", Covector(1.0))
                    return App(App(Pullback(body.pattern, inner, form), at), along)
                case Product(first, second):
                    return Pair(made(first, Proj(1, inner)), made(second, Proj(2, inner)))
                case Arrow(_, target):
                    name = self.names.fresh("e")
                    return Lam(name, made(target, App(inner, Var(name))))
            raise Stuck

        return made(self.typed.of_variable.get(series.bindings[-1][0]), body.body)

    def inside(self, function: Closure, argument: Term, along: Term) -> Call[Outcome]:
        """The Jacobian of a function's body at an argument, along a tangent, and the value there."""
        pattern = function.function.pattern
        frame = Frame(function.environment)
        self.bind(pattern, argument, frame)
        active = {name: self.names.fresh(name + "'") for name in variables_of(pattern)}
        renamed = renamed_pattern(pattern, active)
        linear, last, value = yield self.series_jacobian(function.function.body, frame, active)
        if isinstance(last, Zero):
            return ZERO, value
        return App(Lam(renamed, lets(linear, last)), along), value

    def unfolded(self, of: Term, frame: Mapping[str, Term], active: Active) -> Call[Any]:
        """Rule 17: a pullback as an abstraction, by reducing its application to a fresh variable.

        What depends on x gets a name of its own meanwhile, unless it is a function: its definition is looked at.
        """
        definitions = frame.definitions if isinstance(frame, Frame) else {}
        wanted: dict[str, None] = {}
        todo = list(free_variables(of))
        while todo:
            name = todo.pop()
            if name in active and name not in wanted:
                wanted[name] = None
                if name in definitions and not _plain(frame[name]):
                    todo += list(free_variables(definitions[name]))
        symbolic, renamed = Frame(frame), {}
        residual, self.residual = self.residual, []
        outer, self.context = self.context, None
        try:
            for name in frame:
                if name in wanted:
                    if name in definitions and not _plain(frame[name]):
                        symbolic[name] = yield self.evaluate(definitions[name], symbolic)
                    else:
                        renamed[name] = self.names.fresh(name)
                        symbolic[name] = Var(renamed[name])
            chain = of if isinstance(of, Chain) else (yield self.evaluate(of, symbolic))
            at = self.names.fresh(of.pattern if isinstance(of.pattern, str) else "p")  # type: ignore[attr-defined]  # both kinds have patterns
            if isinstance(chain, Zero):
                return Closure(Lam(at, ZERO), {})
            mark = len(self.residual)
            dual = yield self.pulled_back(chain, Var(at))
            if (
                len(self.residual) == mark + 1
                and isinstance(self.residual[mark][1], App)
                and self.residual[mark][1].function is chain  # type: ignore[attr-defined]  # it is an application
            ):
                raise Stuck
            body = residual_term(self.residual, dual)
        finally:
            self.residual, self.context = residual, outer
        back = {other: Var(name) for name, other in renamed.items()}
        function = read_back(Lam(at, body), back)
        return Closure(function, {}) if isinstance(of, Chain) else function  # type: ignore[arg-type]  # it is an abstraction


def _plain(value: Term) -> bool:
    return isinstance(value, Var) or floats(value) is not None


def _only_function(of: App, jacobian: Term, active: Active) -> bool:
    """Whether the tangent of an application is that of its function alone."""
    if isinstance(jacobian, Zero):
        return True
    return (
        isinstance(jacobian, App)
        and jacobian.function == tangent(of.function, active)
        and not isinstance(jacobian.function, Zero)
    )


def _nested(names: list[str]) -> Pattern:
    *before, made = names
    tree: Pattern = made
    for name in reversed(before):
        tree = (name, tree)
    return tree


def _values(values: list[Term]) -> Term:
    *before, made = values
    for value in reversed(before):
        made = Pair(value, made)
    return made


def _flat(coefficients: Any) -> list[float]:
    found: list[float] = []
    todo = [coefficients]
    while todo:
        part = todo.pop()
        if isinstance(part, tuple):
            todo += (part[1], part[0])
        else:
            found.append(part)
    return found
