"""Values as reduction has them: terms whose substitutions are not carried out yet, and duals in canonical form.

A closure is an abstraction with the values of its free variables. The dual of a product is a `Split`, the sum of a dual
of each part; that of a function or of a dual is a sum of `Evaluation(A, T)`, which takes h to T(h A). Where a
function's derivative counts, and not its value alone, the dual is an `Unread` pullback, which is reduced when it is
applied to a tangent, or a dual `Along` a linear map of one. A `Deferred` Jacobian is found when it is known what its
value is applied to. `read_back` carries the substitutions out and gives a plain term. Nothing is reduced here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from ....errors import Span
from ..primitives import PrimitiveFunction
from ..terms import (
    BINDERS,
    ZERO,
    App,
    Coefficients,
    Covector,
    DualMap,
    FormPullback,
    Lam,
    Num,
    Pair,
    Pattern,
    Proj,
    PullbackTerm,
    TermSum,
    Var,
    Zero,
    children,
    free_variables,
    rebuilt,
    variables_of,
)
from ..trampoline import Call, run
from ..trees import counted
from ..types import Arrow, DualType, Product, TermType, resolved
from .administrative import LEFT_OUT, TermSeries, lets
from .tuples import nested, nested_pattern, unnested

Environment = dict[str, PullbackTerm]


class MachineValue(PullbackTerm):
    """A value that is no plain term."""

    __slots__ = ()
    parts = ()
    span = None

    def __repr__(self) -> str:
        return repr(read_back(self))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MachineClosure(MachineValue):
    """An abstraction under an environment."""

    function: Lam
    environment: Mapping[str, PullbackTerm]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Chain(MachineValue):
    """A pullback of a value along a let series, taken apart from `start` on. `form` is its 1-form."""

    pattern: Pattern
    series: TermSeries
    environment: Mapping[str, PullbackTerm]
    form: PullbackTerm
    start: int = 0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Split(MachineValue):
    """The dual of a product: one of each part."""

    first: PullbackTerm
    second: PullbackTerm


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Evaluation(MachineValue):
    """The dual `(λh. h A)^ . T` of functions, or of duals."""

    argument: PullbackTerm
    functional: PullbackTerm


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Unread(MachineValue):
    """The dual `((Ω λx. L) . w) V` of a function V, which is read by applying it to tangents."""

    chain: Chain
    point: PullbackTerm


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Along(MachineValue):
    """The dual map `(λv. S)^ . T` for a T that is read by applying it to tangents."""

    pattern: Pattern
    body: PullbackTerm
    environment: Mapping[str, PullbackTerm]
    functional: PullbackTerm


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Deferred(PullbackTerm):
    """The Jacobian of `λy. L`, or of L where `pattern` is None, along the tangents of its roots, which L depends on.

    It waits for the value of y: before, a function that y binds stands in the way. `names` are the free variables of L,
    the roots first, and `values` what they are. A symbolic one is found by reducing L with names for its roots.
    """

    parts = ("values", "tangents")
    pattern: Pattern | None
    body: PullbackTerm
    names: tuple[str, ...]
    roots: int
    type: TermType | None
    """The type of L."""
    symbolic: bool
    values: PullbackTerm
    tangents: PullbackTerm
    span: Span | None = field(default=None, kw_only=True)

    def __repr__(self) -> str:
        return repr(read_back(self))

    def environment(self) -> dict[str, PullbackTerm]:
        """The values of what is free in L."""
        return dict(zip(self.names, unnested(self.values, len(self.names)), strict=True))

    def tangent_of(self) -> dict[str, PullbackTerm]:
        """The tangent of each root."""
        return dict(zip(self.names, unnested(self.tangents, self.roots), strict=False))


class Activation(dict[str, PullbackTerm]):
    """The values of variables in one activation of a body, and the elementary terms that some were bound to."""

    __slots__ = ("definitions",)

    def __init__(self, values: Mapping[str, PullbackTerm] = (), definitions: Mapping[str, PullbackTerm] = ()) -> None:  # type: ignore[assignment]  # nothing is an empty mapping, too
        super().__init__(values)
        self.definitions: dict[str, PullbackTerm] = dict(definitions)


def depends(of: PullbackTerm, names: Mapping[str, object]) -> bool:
    """Whether one of the names is free in a term; values have none of them."""
    match of:
        case Var(name):
            return name in names
        case Lam() | DualMap() | FormPullback() | App(Lam(), _):
            return any(name in names for name in free_variables(of))
    todo = children(of)
    while todo:
        here = todo.pop()
        if isinstance(here, Var):
            if here.name in names:
                return True
        elif isinstance(here, BINDERS):
            if any(name in names for name in free_variables(here)):
                return True
        else:
            todo += children(here)
    return False


def floats(value: PullbackTerm) -> list[float] | None:
    """The numbers of a value that is made of them; None where one is not known."""
    found: list[float] = []
    todo = [value]
    while todo:
        counted(len(found))
        match todo.pop():
            case Num(number):
                found.append(number)
            case Zero():
                found.append(0.0)
            case Pair(first, second):
                todo += (second, first)
            case _:
                return None
    return found


def numbers(value: PullbackTerm, width: int) -> list[float] | None:
    """The numbers of a value of R^n, which may be the term 0."""
    if isinstance(value, Zero):
        return [0.0] * width
    return floats(value)


def dot(coefficients: Coefficients, value: PullbackTerm) -> float | None:
    """The value of a dual of R^n at a tangent, in which 0 may stand for any part; None where a number is not known."""
    total = 0.0
    todo = [(coefficients, value)]
    while todo:
        part, given = todo.pop()
        match given:
            case Zero():
                pass
            case Num(number) if not isinstance(part, tuple):
                total += part * number
            case Pair(first, second) if isinstance(part, tuple):
                todo += ((part[1], second), (part[0], first))
            case _:
                return None
    return total


def reals(value: PullbackTerm, given: PrimitiveFunction) -> list[float] | None:
    """The numbers that a primitive is given: its tangents, and the point, each of which may be the term 0."""
    found: list[float] = []
    for index in range(given.order + 1):
        block = value
        if index < given.order:
            if isinstance(value, Pair):
                block, value = value.first, value.second
            elif not isinstance(value, Zero):
                return None
        inner = numbers(block, given.width)
        if inner is None:
            return None
        found += inner
    return found


def halves(dual: PullbackTerm) -> tuple[PullbackTerm, PullbackTerm] | None:
    """The duals of the two parts of a product."""
    match dual:
        case Covector((first, second)):
            return Covector(first), Covector(second)
        case Split(first, second):
            return first, second
        case Zero():
            return ZERO, ZERO
    return None


def joined(first: PullbackTerm, second: PullbackTerm) -> PullbackTerm:
    """The dual of a product that has these parts."""
    if isinstance(first, Covector) and isinstance(second, Covector):
        return Covector((first.coefficients, second.coefficients))
    if isinstance(first, Zero) and isinstance(second, Zero):
        return ZERO
    return Split(first, second)


def zeros_like(value: PullbackTerm) -> PullbackTerm:
    """The zero dual of where a value lives: with coefficients, if it is made of numbers."""
    if floats(value) is None or isinstance(value, Zero):
        return ZERO
    done: list[Coefficients] = []
    todo: list[PullbackTerm | None] = [value]
    while todo:
        match todo.pop():
            case None:
                second, first = done.pop(), done.pop()
                done.append((first, second))
            case Pair(first_part, second_part):
                todo += (None, second_part, first_part)
            case Zero():
                return ZERO
            case _:
                done.append(0.0)
    return Covector(done[0])


# -- as plain terms ----------------------------------------------------------------------------------------------------


def read_back(of: PullbackTerm, environment: Mapping[str, PullbackTerm] | None = None) -> PullbackTerm:
    """The plain term that a term under an environment stands for."""
    return run(_read(of, environment or {}, {}, Count()))


@dataclass(slots=True)
class Count:
    """How many parts there were, and after how many the rest is left out."""

    parts: int = 0
    most: int | None = field(default_factory=lambda: _most.get())


_most: ContextVar[int | None] = ContextVar("_most", default=None)


@contextmanager
def abbreviated(parts: int | None) -> Iterator[None]:
    """Terms are read back up to about so many parts meanwhile, for those who look at their start alone."""
    token = _most.set(parts)
    try:
        yield
    finally:
        _most.reset(token)


def is_abbreviated() -> bool:
    """Whether the start of terms is enough."""
    return _most.get() is not None


def _read(
    of: PullbackTerm,
    environment: Mapping[str, PullbackTerm],
    seen: dict[int, tuple[PullbackTerm, PullbackTerm]],
    count: Count,
) -> Call[PullbackTerm]:
    """Environments hold values, which are closed but for names that no environment has; so nothing is captured."""
    count.parts = counted(count.parts)
    if count.most is not None and count.parts > count.most:
        return LEFT_OUT
    found = seen.get(id(of)) if isinstance(of, MachineValue) else None
    if found is not None:
        return found[1]
    made: PullbackTerm
    match of:
        case Var(name):
            value = environment.get(name)
            if value is None:
                return of
            made = yield _read(value, {}, seen, count)
        case MachineClosure(function, inner):
            made = yield _read(function, inner, seen, count)
        case Chain(pattern, series, inner, form, start):
            body = yield _read(series.term(start, count.most), _without(inner, pattern), seen, count)
            made = FormPullback(pattern, body, (yield _read(form, {}, seen, count)))
        case Split(first, second):
            name, other = "a", "b"
            parts = []
            for at, part in ((name, first), (other, second)):
                if not isinstance(part, Zero):
                    parts.append(DualMap((name, other), Var(at), (yield _read(part, {}, seen, count))))
            made = TermSum(parts[0], parts[1]) if len(parts) == 2 else parts[0]
        case Evaluation(argument, functional):
            given = yield _read(argument, {}, seen, count)
            taken = yield _read(functional, {}, seen, count)
            name = "h"
            free = free_variables(given)
            while name in free:
                name += "'"
            made = DualMap(name, App(Var(name), given), taken)
        case Unread(chain, point):
            pullback = yield _read(chain, {}, seen, count)
            made = App(pullback, (yield _read(point, {}, seen, count)))
        case Along(pattern, body, inner, functional):
            body = yield _read(body, _without(inner, pattern), seen, count)
            made = DualMap(pattern, body, (yield _read(functional, {}, seen, count)))
        case Deferred():
            made = yield _read(unreduced(of), environment, seen, count)
        case Lam() | DualMap() | FormPullback():
            body = yield _read(of.body, _without(environment, of.pattern), seen, count)
            others = []
            for part in children(of)[1:]:
                others.append((yield _read(part, environment, seen, count)))
            made = rebuilt(of, [body, *others])
        case App(Lam() as function, bound):  # what is bound is written first
            argument = yield _read(bound, environment, seen, count)
            made = App((yield _read(function, environment, seen, count)), argument, span=of.span)
        case _:
            if not of.parts:
                return of
            inner_parts = []
            for part in children(of):
                inner_parts.append((yield _read(part, environment, seen, count)))
            made = rebuilt(of, inner_parts)
    if isinstance(of, MachineValue):
        seen[id(of)] = of, made
    return made


def _without(environment: Mapping[str, PullbackTerm], pattern: Pattern) -> Mapping[str, PullbackTerm]:
    if isinstance(pattern, str) and pattern not in environment:
        return environment
    bound = [name for name in variables_of(pattern) if name in environment]
    return {name: value for name, value in environment.items() if name not in bound} if bound else environment


def unreduced(of: Deferred) -> PullbackTerm:
    """A deferred Jacobian as a term: a pullback, applied to the tangent; by the type of L.

    It is `((Ω λx. L) . (λ_. 1^)) V v` for a real L, and for a dual the functional that takes e to the same of `L e`.
    """
    environment, tangents = of.environment(), of.tangent_of()
    roots = of.names[: of.roots]
    fixed = {name: value for name, value in environment.items() if name not in tangents}
    body = closed(Lam(nested_pattern(roots), of.body), fixed)
    assert isinstance(body, Lam)
    taken = {*free_variables(of.body), *of.names}
    at = nested([environment[name] for name in roots])
    along = nested([tangents[name] for name in roots])

    def fresh(name: str) -> str:
        while name in taken:
            name += "'"
        taken.add(name)
        return name

    def made(type: TermType | None, inner: PullbackTerm) -> PullbackTerm:
        match resolved(type) if type is not None else None:
            case Product(first, second):
                return Pair(made(first, Proj(1, inner)), made(second, Proj(2, inner)))
            case Arrow(_, target):
                name = fresh("e")
                return Lam(name, made(target, App(inner, Var(name))))
            case DualType():
                name, dual = fresh("e"), fresh("d")
                form = Lam("_", DualMap(dual, App(Var(dual), Var(name)), Covector(1.0)))
                return DualMap(name, App(App(FormPullback(body.pattern, inner, form), at), along), Covector(1.0))
        return App(App(FormPullback(body.pattern, inner, Lam("_", Covector(1.0))), at), along)

    whole = made(of.type, body.body)
    return whole if of.pattern is None else Lam(of.pattern, whole)


def settled(of: PullbackTerm, names: Collection[str]) -> PullbackTerm:
    """A term in which values that mention one of the names, which the term binds, are plain terms."""
    memo: dict[int, bool] = {}

    def mentions(value: PullbackTerm) -> Call[bool]:
        known = memo.get(id(value))
        if known is not None:
            return known
        memo[id(value)] = False
        inner: list[PullbackTerm]
        match value:
            case Var(name):
                inner, found = [], name in names
            case MachineClosure(function, environment):
                inner = list(environment.values())
                found = any(name in names and name not in environment for name in free_variables(function))
            case Chain(_, series, environment, form):
                inner = [*environment.values(), form]
                found = any(n in names and n not in environment for _, e in series.bindings for n in free_variables(e))
            case Split(first, second) | Evaluation(first, second) | Unread(first, second):
                inner, found = [first, second], False
            case Along(_, body, environment, functional):
                inner = [*environment.values(), functional]
                found = any(name in names and name not in environment for name in free_variables(body))
            case _:
                inner, found = children(value), False
        for part in inner:
            if found:
                break
            found = yield mentions(part)
        memo[id(value)] = found
        return found

    def walk(here: PullbackTerm) -> Call[PullbackTerm]:
        if isinstance(here, MachineValue):
            return read_back(here) if (yield mentions(here)) else here
        if not here.parts:
            return here
        made = []
        for part in children(here):
            made.append((yield walk(part)))
        return rebuilt(here, made)

    return run(walk(of))


def closed(of: PullbackTerm, environment: Mapping[str, PullbackTerm]) -> PullbackTerm:
    """A term in which the values of an environment stand for its free variables; they stay values."""

    def walk(here: PullbackTerm, hidden: Mapping[str, PullbackTerm]) -> Call[PullbackTerm]:
        if isinstance(here, Var):
            return hidden.get(here.name, here)
        if not here.parts:
            return here
        if isinstance(here, BINDERS):
            inner = _without(hidden, here.pattern)
            body, *others = children(here)
            made = [(yield walk(body, inner))]
            for part in others:
                made.append((yield walk(part, hidden)))
            return rebuilt(here, made)
        made = []
        for part in children(here):
            made.append((yield walk(part, hidden)))
        return rebuilt(here, made)

    needed = {name: environment[name] for name in free_variables(of) if name in environment}
    return run(walk(of, needed)) if needed else of


def residual_term(residual: list[tuple[str, PullbackTerm]], value: PullbackTerm) -> PullbackTerm:
    """A value under the bindings that it needs."""
    return lets([(name, read_back(bound)) for name, bound in residual], read_back(value))
