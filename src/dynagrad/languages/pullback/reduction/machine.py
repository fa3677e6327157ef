"""The state of the abstract machine, which its parts share: steps, names, and an abstract method for what each part is
asked.

No rule is here, but for A. `call_by_value.py` evaluates, `pullbacks.py` has the forward phase, `premises.py` the
Jacobians of bodies, `transpose.py` the reverse phase and `duals.py` what it computes with; each calls the others by
what is abstract here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from ....collector import collecting_later
from ....errors import NotConverged, NotDifferentiable, ValueRangeError, counted
from ..infer import Typed
from ..rename import FreshNames, names_of
from ..show import show
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
    free_variables,
)
from ..trampoline import Call, pause
from ..trees import folded
from ..types import Arrow, DualType, Product, R, TermType, TypeVariable, resolved
from .administrative import TermSeries, lets, reduce_administratively, series_of
from .numbering import rule
from .steps import Context, Step
from .values import Activation, Along, Chain, Deferred, Evaluation, MachineClosure, Split, Unread, read_back

Active = Mapping[str, str]
"""The variables that depend on x, and what their tangents are called."""
Outcome = tuple[PullbackTerm, PullbackTerm | None]
"""S, and the value of E if a premise found it."""
Adjoints = dict[str, PullbackTerm]
"""The dual of each variable, as far as it was added up."""
Linear = list[tuple[str, PullbackTerm]]
"""A let series of tangents."""


Computed = TypeVar("Computed")


class Stuck(Exception):
    """There is no Jacobian yet: a free variable stands in function position, or what is no abstraction would."""


class AbstractMachine(ABC):
    """The state of a reduction: what stands around the redex, residual bindings, and the steps since the last event."""

    def __init__(self, typed: Typed, max_steps: int) -> None:
        self.types = typed.of_variable
        self.typed = typed
        self.names = FreshNames(names_of(typed.term))
        self.events: list[Any] = []
        self.context: Context = None
        self.residual: list[tuple[str, PullbackTerm]] = []
        self.applied: PullbackTerm = typed.term  # last
        self.depth = 0  # of open steps
        self.premises = 0  # that are under way
        self.phase = ""
        self.left = max_steps
        self.max_steps = max_steps
        # by the identity of a term, which is kept beside what is known of it, so that its identity stays its own
        self.series: dict[int, tuple[PullbackTerm, TermSeries]] = {}
        self.captured: dict[int, tuple[PullbackTerm, list[str]]] = {}
        self.body_types: dict[int, tuple[PullbackTerm, TermType]] = {}

    # -- what the parts ask of each other ------------------------------------------------------------------------------

    @abstractmethod
    def evaluate(self, of: PullbackTerm, frame: Activation) -> Call[PullbackTerm]:
        """The value of a term."""

    @abstractmethod
    def apply(self, f: PullbackTerm, a: PullbackTerm) -> Call[PullbackTerm]:
        """The value of a function or a dual at a value."""

    @abstractmethod
    def add(self, u: PullbackTerm, v: PullbackTerm, of: PullbackTerm | None = None) -> Call[PullbackTerm]:
        """The sum of two values, as which a term is computed."""

    @abstractmethod
    def taken_apart(self, chain: Chain) -> Call[Chain]:
        """A pullback along each elementary term of a let series in turn."""

    @abstractmethod
    def pulled_back(self, chain: Chain, value: PullbackTerm) -> Call[PullbackTerm]:
        """`((Ω λx. L) . w) V`"""

    @abstractmethod
    def jacobian_of(self, of: PullbackTerm, frame: Activation, active: Active) -> Call[Outcome]:
        """The Jacobian of an elementary term, by its rule."""

    @abstractmethod
    def series_jacobian(
        self, body: PullbackTerm, frame: Activation, active: dict[str, str]
    ) -> Call[tuple[Linear, PullbackTerm, PullbackTerm]]:
        """The Jacobian of a body as a let series of tangents, the tangent of its value, and the value."""

    @abstractmethod
    def curried(self, of: Lam, frame: Activation, active: Active) -> Call[PullbackTerm]:
        """The Jacobian of a body under its binder, as an abstraction of the tangent; or 0."""

    @abstractmethod
    def inside(self, function: MachineClosure, argument: PullbackTerm, along: PullbackTerm) -> Call[Outcome]:
        """The Jacobian of a function's body at an argument, along a tangent, and the value there."""

    @abstractmethod
    def unfolded(self, of: PullbackTerm, frame: Activation, active: Active) -> Call[PullbackTerm]:
        """A pullback as an abstraction, by reducing its application to a fresh variable; or one that is deferred."""

    @abstractmethod
    def deferred(
        self, pattern: Pattern | None, body: PullbackTerm, frame: Activation, active: Active, type: TermType | None
    ) -> Deferred:
        """The Jacobian of the application of a pullback, of which there is none before its argument is known."""

    @abstractmethod
    def found(self, of: Deferred, at: PullbackTerm | None, t: PullbackTerm) -> Call[list[PullbackTerm]]:
        """The duals of the roots of a deferred Jacobian, at a value of what it binds; T is the dual of its value."""

    @abstractmethod
    def derivative(self, of: Deferred, at: PullbackTerm | None) -> Call[PullbackTerm]:
        """A deferred Jacobian whose tangents are known, at a value of what it binds."""

    @abstractmethod
    def read(self, dual: Unread, along: PullbackTerm) -> Call[PullbackTerm]:
        """An unread dual, applied to a tangent."""

    @abstractmethod
    def transpose(
        self, of: PullbackTerm, t: PullbackTerm, scope: Activation, names: dict[str, None], adjoints: Adjoints
    ) -> Call[None]:
        """Adds to the duals of the names what T, the dual of a term that is linear in them, gives for each."""

    @abstractmethod
    def dual_map(self, of: DualMap, frame: Activation, t: PullbackTerm) -> Call[PullbackTerm]:
        """`(λx. S)^ . T` for a value T."""

    @abstractmethod
    def back(
        self, chain: Chain, value: PullbackTerm, linear: Linear, last: PullbackTerm, t: PullbackTerm, outer: Context
    ) -> Call[PullbackTerm]:
        """The reverse phase of a pullback: the dual of what its pattern binds."""

    @abstractmethod
    def assembled(self, pattern: Pattern, value: PullbackTerm | None, adjoints: Adjoints) -> Call[PullbackTerm]:
        """The dual of what a pattern binds, from those of its variables."""

    # -- steps ---------------------------------------------------------------------------------------------------------

    def step(self, rule: str, redex: Callable[[], PullbackTerm], contractum: Callable[[], PullbackTerm] | None) -> Step:
        """Leaves a step; without its contractum it is open until `close`."""
        self.left -= 1
        if self.left < 0:
            raise NotConverged(
                f"the reduction takes more than {counted(self.max_steps, 'step')}; allow more with max_steps=. "
                f"The function that was applied last is `{show(self.applied, limit=60)}`"
                + self.typed.where(self.applied)
            )
        made = Step(rule, redex, self.context, self.phase)
        made._contractum = contractum
        self.events.append(made)
        if contractum is None:
            self.depth += 1
        return made

    def close(self, step: Step, contractum: Callable[[], PullbackTerm]) -> None:
        step._contractum = contractum
        self.depth -= 1
        self.events.append(self.depth)

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

    def premise(self, call: Call[Any]) -> Call[tuple[Any, list[tuple[str, PullbackTerm]]]]:
        """What a call gives, and residual bindings of its own. A pullback that is stuck in it stops it."""
        (residual, self.residual), outer = (self.residual, []), self.context
        self.context = None
        self.premises += 1
        try:
            made = yield call
            return made, self.residual
        finally:
            self.premises -= 1
            self.residual, self.context = residual, outer

    def at(self, of: PullbackTerm, compute: Callable[[], Computed]) -> Computed:
        """What is computed for a term: where there is no value, the error says where."""
        try:
            return compute()
        except (ValueRangeError, NotDifferentiable) as error:
            raise type(error)(f"{error}{self.typed.where(of)}") from None

    # -- names, variables and types ------------------------------------------------------------------------------------

    def fresh(self, like: str, type: TermType | None = None) -> str:
        """A new name, of a type if it is known."""
        name = self.names.fresh(like)
        if type is not None:
            self.types[name] = type
        return name

    def emit(self, of: PullbackTerm) -> PullbackTerm:
        """A name for what cannot be reduced."""
        name = self.fresh("n", self.type_of(of))
        self.residual.append((name, of))
        return Var(name)

    def type_of(self, value: PullbackTerm) -> TermType | None:
        """The type of a value, or of what cannot be reduced, as far as it is seen at once."""
        match value:
            case Var(name):
                found = self.types.get(name)
                return None if found is None else resolved(found)
            case Num() | Prim():
                return R
            case Covector() | Split() | Evaluation() | Unread() | Along():
                return DualType(TypeVariable(0))
            case DualMap(pattern, _, _):
                return DualType(self.type_of_pattern(pattern))
            case Chain(pattern):
                source = self.type_of_pattern(pattern)
                return Arrow(source, DualType(source))
            case TermSum(first, second):
                return self.type_of(second) if isinstance(first, Zero) else self.type_of(first)
            case Jac():
                return Arrow(TypeVariable(0), R)
            case Proj(index, inner):
                whole = self.type_of(inner)
                if isinstance(whole, Product):
                    return resolved(whole.first if index == 1 else whole.second)
            case App(function, _):
                whole = self.type_of(function)
                if isinstance(whole, Arrow):
                    return resolved(whole.target)
                if isinstance(whole, DualType):
                    return R
        return None

    def type_of_pattern(self, pattern: Pattern) -> TermType:
        return folded(pattern, lambda name: self.types.get(name) or TypeVariable(0), Product)

    def is_dual(self, value: PullbackTerm) -> bool:
        return isinstance(self.type_of(value), DualType)

    def bind(self, pattern: Pattern, value: PullbackTerm, frame: Activation) -> None:
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

    def project(self, index: int, value: PullbackTerm) -> PullbackTerm:
        match value:
            case Pair(first, second):
                return first if index == 1 else second
            case Zero():
                return ZERO
        return self.emit(Proj(index, value))

    def tangents(self, names: Sequence[str]) -> dict[str, str]:
        """New names for the tangents of variables."""
        return {name: self.fresh(name + "'", self.types.get(name)) for name in names}

    # -- bodies --------------------------------------------------------------------------------------------------------

    def series_of(self, body: PullbackTerm) -> Call[TermSeries]:
        """The let series of a body; it is made once."""
        found = self.series.get(id(body))
        if found is None:
            made = series_of(body)
            if made is None:
                made = yield self.administrative(body)
            found = self.series[id(body)] = body, made
        return found[1]

    @rule("A", "administrative reduction")
    def administrative(self, body: PullbackTerm) -> Call[TermSeries]:
        """A body becomes a let series of elementary terms. The step is there before the series is made."""
        step = self.step("A", lambda: body, None)
        yield pause()
        with collecting_later():
            made = reduce_administratively(body, self.names, self.typed)
        self.close(step, lambda: made.term())
        return made

    def free(self, of: PullbackTerm) -> list[str]:
        """What is free in an abstraction or a body; it is found once."""
        found = self.captured.get(id(of))
        if found is None:
            found = self.captured[id(of)] = of, list(free_variables(of))
        return found[1]

    def needed(self, of: PullbackTerm, environment: Mapping[str, PullbackTerm]) -> dict[str, PullbackTerm]:
        """The values of what is free in a term."""
        if not environment:
            return {}
        return {name: environment[name] for name in self.free(of) if name in environment}

    def needed_in(self, of: PullbackTerm, frame: Activation) -> Activation:
        """The part of a frame that a term may look at: its free variables, and those of their definitions."""
        made = Activation()
        todo = list(self.free(of))
        while todo:
            name = todo.pop()
            if name in frame and name not in made:
                made[name] = frame[name]
                definition = frame.definitions.get(name)
                if definition is not None:
                    made.definitions[name] = definition
                    todo += self.free(definition)
        return made

    def closure(self, of: Lam, environment: Mapping[str, PullbackTerm]) -> PullbackTerm:
        return MachineClosure(of, self.needed(of, environment))

    def with_residual(self, inner: PullbackTerm) -> PullbackTerm:
        """A term under the residual bindings."""
        return lets([(name, read_back(bound)) for name, bound in self.residual], inner)

    @staticmethod
    def value_of(of: PullbackTerm, environment: Mapping[str, PullbackTerm]) -> PullbackTerm:
        """The value of a variable; a value as it is."""
        return environment.get(of.name, of) if isinstance(of, Var) else of
