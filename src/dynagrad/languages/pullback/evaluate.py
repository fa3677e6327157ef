"""A direct evaluator in continuation-passing style, from left to right like reduction.

A pullback evaluates its body on tape cells. Each primitive leaves its backward step on the tape, which is swept when
the 1-form has given the dual of the result. Functions have no cells: the derivative along a function U is found when
the dual is applied to U, as the derivative by e of the body at V + e U. Nothing here recurses on a term: each call
returns the next step, and `run` takes one after the other. `cells.py` has the values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...collector import collecting_later
from ...errors import Error, NotConverged, NotDifferentiable, ValueRangeError, shown
from ...errors import counted as number_of
from ...ir import multiply
from ...ir.operation import as_number
from .cells import (
    ZERO,
    CellTape,
    Coefficients,
    Continue,
    FunctionValue,
    Traced,
    applied,
    dot,
    mapped,
    moved,
    plus,
    stripped,
    unbounded,
)
from .infer import Typed, infer
from .primitives import PrimitiveFunction, computed, finite, known
from .show import show
from .terms import (
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
from .trees import checked_steps, counted, folded, leaves, nested_right
from .types import Arrow, DualType, Product, R, Real, TermType, TypeVariable, fits, flat, resolved

Environment = dict[str, Any]
MOST_STEPS = 20_000_000
"""How many steps an evaluation may take, unless it is told otherwise: a few for each part of a term."""
_AT_ONCE = 100_000
"""How many of them are taken between two searches for garbage."""


class Evaluator:
    """Evaluates the parts of a term whose types are known."""

    def __init__(self, typed: Typed, max_steps: int = MOST_STEPS) -> None:
        self.typed, self.max_steps = typed, max_steps
        self.applied: PullbackTerm = typed.term  # last

    def run(self, step: Any) -> None:
        """Runs a step, then the step that it returns, and so on until a step returns None (a trampoline)."""
        left = self.max_steps
        while left > 0:
            with collecting_later():
                for _ in range(min(left, _AT_ONCE)):
                    if step is None:
                        return
                    step = step()
            left -= _AT_ONCE
        if step is not None:
            raise NotConverged(
                f"the evaluation takes more than {number_of(self.max_steps, 'step')}; allow more with max_steps=. "
                f"The function that was applied last is `{show(self.applied, limit=60)}`"
                + self.typed.where(self.applied)
            )

    def of(self, term: PullbackTerm, environment: Environment, k: Continue) -> Any:
        """The next step towards handing the value of a term to a continuation."""
        match term:
            case Var(name):
                if name not in environment:
                    raise Error(f"`{name}` is free in the term, and has no value{self.typed.where(term)}")
                return lambda: k(environment[name])
            case Num(value):
                return lambda: k(value)
            case Zero():
                return lambda: k(ZERO)
            case Covector(coefficients):
                return lambda: k(Coefficients(coefficients))
            case Lam(pattern, body):
                return lambda: k(FunctionValue(lambda u, then: lambda: self.entered(term, environment, u, then)))
            case App(Lam(pattern, body), bound):  # all names are different, so the binding stays in this scope
                return lambda: self.of(
                    bound, environment, lambda v: lambda: self.of(body, bind(environment, pattern, v), k)
                )
            case App(function, argument):
                return lambda: self.of(
                    function,
                    environment,
                    lambda f: lambda: self.of(argument, environment, lambda a: self.applied_to(term, f, a, k)),
                )
            case Pair(first, second):
                return self.both(first, second, environment, lambda a, b: lambda: k((a, b)))
            case TermSum(first, second):
                return self.both(first, second, environment, lambda a, b: lambda: k(self.sum(term, a, b)))
            case Proj(index, inner):
                return lambda: self.of(inner, environment, lambda v: lambda: k(ZERO if v is ZERO else v[index - 1]))
            case Prim(_, argument):
                return lambda: self.of(
                    argument,
                    environment,
                    lambda v: lambda: k(self.primitive(term, v)),
                )
            case Jac(_, along):
                return lambda: self.of(along, environment, lambda v: lambda: k(self.jacobian(term, v)))
            case DualMap(pattern, body, functional):
                return lambda: self.of(
                    functional, environment, lambda t: self.dual_map(pattern, body, t, environment, k)
                )
            case FormPullback(pattern, body, form):
                return lambda: self.of(
                    form,
                    environment,
                    lambda w: (
                        lambda: k(
                            FunctionValue(lambda v, then: self.pulled_back(pattern, body, w, v, environment, then))
                        )
                    ),
                )
        raise AssertionError(term)

    def applied_to(self, of: App, f: Any, a: Any, k: Continue) -> Any:
        """The next step of an application; the value of a dual may be too large."""
        if not isinstance(f, Coefficients):
            return applied(f, a, k)
        value = dot(f.tree, a)
        if unbounded(value):
            self.placed(of, lambda: finite(value, "the value of the dual"))
        return lambda: k(value)

    def entered(self, of: Lam, environment: Environment, u: Any, k: Continue) -> Any:
        """The next step in the body of a function."""
        self.applied = of
        return self.of(of.body, bind(_Scope(environment), of.pattern, u), k)

    def sum(self, of: PullbackTerm, a: Any, b: Any) -> Any:
        """The sum of two values; an error where it is too large."""
        made = plus(a, b)
        if unbounded(made):
            self.placed(of, lambda: finite(made, "the sum"))
        return made

    def placed(self, of: PullbackTerm, compute: Callable[[], Any]) -> Any:
        """What is computed for a term: where there is no value, the error says where."""
        try:
            return compute()
        except (NotDifferentiable, ValueRangeError) as error:
            raise type(error)(f"{error}{self.typed.where(of)}") from None

    def primitive(self, of: Prim, value: Any) -> Any:
        given = known(of.name)
        return self.computed(of, given, _reals(value, given))

    def computed(self, of: Prim | Jac, given: PrimitiveFunction, reals: list[Any]) -> Any:
        """A primitive at reals of any kind; at floats that have no value there, an error."""
        if all(type(x) is float for x in reals):
            return self.placed(of, lambda: given.value(reals))
        for x in reals:
            while type(x) is Traced:
                x.tape.where, x = (lambda: self.typed.where(of)), x.primal
        result = given(reals)
        inner = result
        while type(inner) is Traced:
            inner = inner.primal
        if unbounded(inner):
            raise ValueRangeError(f"{given.name} is {inner} there: it has no value{self.typed.where(of)}")
        return result

    def jacobian(self, of: Jac, along: Any) -> Any:
        """A Jacobian along a value, as a function of the point."""
        if along is ZERO:
            return ZERO
        point, whole = known(of.name), known(of.name + "'")
        if point.order:  # f'(u, p) may change in u, too
            return FunctionValue(
                lambda at, k: lambda: k(self.slope(of, point, _reals(along, point), _reals(at, point)))
            )

        def derivative(at: Any) -> Any:
            ds, reals = _reals(along, point), _reals(at, point)
            if all(type(x) is float for x in (*ds, *reals)):
                return self.placed(of, lambda: point.along(reals, ds))
            return self.computed(of, whole, [*ds, *reals])

        return FunctionValue(lambda at, k: lambda: k(derivative(at)))

    def slope(self, of: Jac, given: PrimitiveFunction, along: list[Any], at: list[Any]) -> Any:
        """The derivative of a primitive at a point, along a tangent of all that it is given."""
        total: Any = ZERO
        for part, slope in zip(along, computed(given.inputs, given.partials, at), strict=True):
            total = plus(total, multiply(part, slope))
        return self.placed(of, lambda: finite(total, "the derivative")) if type(total) is float else total

    def both(self, first: PullbackTerm, second: PullbackTerm, environment: Environment, k: Callable[..., Any]) -> Any:
        return lambda: self.of(first, environment, lambda a: lambda: self.of(second, environment, lambda b: k(a, b)))

    def dual_map(self, pattern: Pattern, body: PullbackTerm, t: Any, environment: Environment, k: Continue) -> Any:
        """`(λx. S)^ . T`: the derivative of a linear map is the map, so it is that at 0, if x is a tuple of reals."""
        type = self.pattern_type(pattern)
        if flat(type):
            form = FunctionValue(lambda _, then: lambda: then(t))
            return self.pulled_back(pattern, body, form, by_type(type, ZERO, lambda *_: 0.0), environment, k)
        return lambda: k(
            FunctionValue(
                lambda u, then: self.of(body, bind(_Scope(environment), pattern, u), lambda v: applied(t, v, then))
            )
        )

    def pattern_type(self, pattern: Pattern) -> TermType:
        return folded(pattern, self.typed.of_variable.__getitem__, Product)

    def pulled_back(
        self, pattern: Pattern, body: PullbackTerm, form: Any, value: Any, environment: Environment, k: Continue
    ) -> Any:
        """`((Ω λx. P) . w) V`: one sweep gives the adjoints of the reals of V; along the functions and duals of V the
        derivative is found when the dual is applied to a tangent."""
        if form is ZERO:
            return lambda: k(ZERO)
        tape = CellTape()
        point = _cells(self.pattern_type(pattern), value, tape)

        def forward(out: Any) -> Any:
            return lambda: applied(form, stripped(out, tape), lambda t: reverse(out, t))

        def reverse(out: Any, t: Any) -> Any:
            return lambda: k(ZERO) if t is ZERO else applied(t, out, lambda result: swept(result, t))

        def swept(result: Any, t: Any) -> Any:
            parts = leaves(point)
            cells = [x for x in parts if isinstance(x, Traced)]
            adjoints = tape.adjoints(result, cells)
            found = mapped(lambda x: (adjoints or {}).get(x, 0.0) if isinstance(x, Traced) else ZERO, point)
            if len(cells) == len(parts):
                return lambda: k(ZERO if adjoints is None else Coefficients(found))
            at = stripped(point, tape)
            return lambda: k(
                FunctionValue(
                    lambda u, then: (
                        lambda: self.along(pattern, body, t, at, u, environment, lambda x: then(plus(dot(found, u), x)))
                    )
                )
            )

        return lambda: self.of(body, bind(_Scope(environment), pattern, point), forward)

    def along(
        self, pattern: Pattern, body: PullbackTerm, t: Any, at: Any, u: Any, environment: Environment, k: Continue
    ) -> Any:
        """The derivative of T(P) along the functions and duals of u: that by e at V + e u, where e is 0."""
        if u is ZERO:
            return lambda: k(ZERO)
        tape = CellTape()
        e = Traced(tape, 0.0)

        def swept(result: Any) -> Any:
            adjoints = tape.adjoints(result, [e]) or {}
            return lambda: k(adjoints.get(e, ZERO))

        inner = bind(_Scope(environment), pattern, moved(at, u, e))
        return lambda: self.of(body, inner, lambda out: applied(t, out, swept))


class _Scope(dict[str, Any]):
    """Variables and those outside of them, which are not copied."""

    __slots__ = ("outer",)

    def __init__(self, outer: Mapping[str, Any]) -> None:
        self.outer = outer

    def __missing__(self, name: str) -> Any:
        scope: Any = self.outer
        while isinstance(scope, _Scope):
            if dict.__contains__(scope, name):
                return dict.__getitem__(scope, name)
            scope = scope.outer
        return scope[name]

    def __contains__(self, name: object) -> bool:
        scope: Any = self
        while isinstance(scope, _Scope):
            if dict.__contains__(scope, name):
                return True
            scope = scope.outer
        return name in scope


def bind(scope: Environment, pattern: Pattern, value: Any) -> Environment:
    """The scope, in which a pattern is bound to a value."""
    todo = [(pattern, value)]
    while todo:
        part, given = todo.pop()
        if isinstance(part, str):
            scope[part] = given
        else:
            left, right = (ZERO, ZERO) if given is ZERO else given
            todo += ((part[1], right), (part[0], left))
    return scope


def by_type(type: TermType, value: Any, of: Callable[[TermType, Any], Any]) -> Any:
    """Pairs of what a function gives of the leaves of a type and of a value of it."""
    done: list[Any] = []
    todo: list[tuple[TermType, Any] | None] = [(type, value)]
    count = 0
    while todo:
        item = todo.pop()
        count = counted(count)
        if item is None:
            second, first = done.pop(), done.pop()
            done.append((first, second))
            continue
        here, given = resolved(item[0]), item[1]
        if isinstance(here, Product):
            left, right = (ZERO, ZERO) if given is ZERO else given
            todo += (None, (here.second, right), (here.first, left))
        elif isinstance(here, TypeVariable) and isinstance(given, tuple):
            todo += (None, (here, given[1]), (here, given[0]))
        else:
            done.append(of(here, given))
    return done[0]


def _cells(type: TermType, value: Any, tape: CellTape) -> Any:
    """What a pullback's body is given: cells for reals; functions and duals as they are."""

    def leaf(type: TermType, given: Any) -> Any:
        if isinstance(type, Arrow | DualType) or isinstance(given, FunctionValue):
            return given
        return Traced(tape, 0.0 if given is ZERO else given)

    return by_type(type, value, leaf)


def _reals(value: Any, given: PrimitiveFunction) -> list[Any]:
    """The numbers of the argument of a primitive: its tangents, and the point."""
    found: list[Any] = []
    for index in range(given.order + 1):
        block = value
        if index < given.order:
            block, value = (ZERO, ZERO) if value is ZERO else value
        found += [0.0] * given.width if block is ZERO else [0.0 if x is ZERO else x for x in leaves(block)]
    return found


# -- from Python -------------------------------------------------------------------------------------------------------


def evaluate(of: PullbackTerm | str, /, *, max_steps: int = MOST_STEPS, **values: Any) -> Any:
    """The value of a term: a float, tuples of values, or a function or dual that Python can call.

    `values` are those of its free variables: numbers, nested tuples, or functions, which a pullback does not go
    through. More than `max_steps` small steps are an error, for each call from Python.

    >>> d = evaluate("((Ω λ<x, y>. square((x + 1) * (2 * x + y * y))) . (λ_. 1^)) <1, 3>")
    >>> d, d((1.0, 0.0))
    (<dual (660.0, 528.0)>, 660.0)
    """
    typed = infer(of)
    evaluator = Evaluator(typed, checked_steps(max_steps))
    environment: Environment = {}
    for name, value in values.items():
        if name not in typed.free:
            raise Error(f"`{name}` is not free in the term, and was given a value")
        environment[name] = inside(value, typed.free[name], evaluator)
    return outside(value_in(evaluator, environment), typed.type, evaluator)


def value_in(evaluator: Evaluator, environment: Environment) -> Any:
    """The value of the evaluator's term, as it has it."""
    found: list[Any] = []
    evaluator.run(evaluator.of(evaluator.typed.term, environment, found.append))
    return found[0]


def inside(value: Any, type: TermType, evaluator: Evaluator) -> Any:
    """A value of Python, as the evaluator has it; an error where it is not of the type."""
    done: list[Any] = []
    todo: list[tuple[Any, TermType] | None] = [(value, type)]
    while todo:
        item = todo.pop()
        if item is None:
            second, first = done.pop(), done.pop()
            done.append((first, second))
            continue
        given, wanted = item[0], resolved(item[1])
        if not isinstance(given, tuple) or not given:
            done.append(_leaf_inside(given, wanted, evaluator))
        elif len(given) == 1:
            todo.append((given[0], wanted))
        elif isinstance(wanted, Product | TypeVariable):
            first, second = given if len(given) == 2 else nested_right(given, lambda a, b: (a, b))
            one, other = (wanted.first, wanted.second) if isinstance(wanted, Product) else (wanted, wanted)
            todo += (None, (second, other), (first, one))
        else:
            raise _of_another_type(given, wanted)
    return done[0]


def _leaf_inside(given: Any, wanted: TermType, evaluator: Evaluator) -> Any:
    number = as_number(given)
    if number is not None or hasattr(given, "__apply_operation__"):
        if not isinstance(wanted, Real | TypeVariable):
            raise _of_another_type(given, wanted)
        return given if number is None else float(number)
    if not callable(given):
        raise Error(f"a number, a tuple or a function is needed, and {shown(given)} is none")
    if not isinstance(wanted, Arrow | DualType | TypeVariable):
        raise _of_another_type(given, wanted)
    if isinstance(given, CallableValue):
        if not fits(given.type, wanted):
            raise _of_another_type(given, wanted)
        return given.function
    source, target = _ends(wanted)
    return FunctionValue(lambda u, k: lambda: k(inside(given(outside(u, source, evaluator)), target, evaluator)))


def _of_another_type(given: Any, wanted: TermType) -> Error:
    return Error(f"a value of the type {wanted} is needed, and {shown(given)} is none")


def _ends(type: TermType) -> tuple[TermType, TermType]:
    """What a function or a dual takes and gives; unknown types, where its own is."""
    match type:
        case Arrow(source, target):
            return source, target
        case DualType(of):
            return of, R
    return TypeVariable(0), TypeVariable(0)


class CallableValue:
    """A function or a dual, as Python calls it."""

    def __init__(self, function: FunctionValue, type: TermType, evaluator: Evaluator) -> None:
        self.function, self.type, self._evaluator = function, type, evaluator

    @property
    def coefficients(self) -> Any:
        """Those of a dual of R^n; None of others."""
        return self.function.tree if isinstance(self.function, Coefficients) else None

    def __call__(self, *argument: Any) -> Any:
        if not argument:
            raise Error(f"what is called takes an argument: it has the type {self.type}")
        found: list[Any] = []
        source, target = _ends(self.type)
        self._evaluator.run(self.function.call(inside(argument, source, self._evaluator), found.append))
        return outside(found[0], target, self._evaluator)

    def __repr__(self) -> str:
        return "<function>" if self.coefficients is None else f"<dual {nested_text(self.coefficients)}>"


def nested_text(value: Any) -> str:
    """Nested tuples as Python writes them, however deep they are."""
    made: list[str] = []
    todo = [(value, "")]
    while todo:
        part, after = todo.pop()
        if isinstance(part, tuple):
            made.append("(")
            todo += ((part[1], ")" + after), (part[0], ", "))
        else:
            made.append(f"{part!r}{after}")
    return "".join(made)


def outside(value: Any, type: TermType, evaluator: Evaluator) -> Any:
    """A value of the evaluator, for Python."""

    def leaf(type: TermType, given: Any) -> Any:
        if isinstance(given, FunctionValue):
            return CallableValue(given, type, evaluator)
        if isinstance(given, Traced):
            raise NotDifferentiable("a function of Python is no term: a pullback does not go through it")
        return 0.0 if given is ZERO else given

    return by_type(type, value, leaf)
