"""A direct evaluator in continuation-passing style, from left to right like reduction.

Reals are numbers of any kind that operations take: floats, nodes of a graph, or cells of a pullback that is under way.
Pairs are Python's. A function or a dual takes an argument and a continuation. A pullback evaluates its body on cells;
what each primitive has to do on the way back is put in front of what is to be done after it, and the whole of that runs
when the 1-form has said what the result counts. Cells of an outer pullback may be in those of an inner one, so
derivatives nest. Nothing here recurses on a term: a call gives what is to be done next.

It is long because values, the way back and the terms are one evaluator.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

from ...errors import Error, NotDifferentiable, ValueRangeError, shown
from ...ir import Node, add, multiply
from ...ir.operation import Operation, as_number
from .infer import Typed, infer
from .parse import parse
from .primitives import known
from .terms import (
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
)
from .types import Arrow, Dual, Product, Type, flat, resolved

Continue = Callable[[Any], Any]
Environment = dict[str, Any]


class Nothing:
    """0 of any type."""

    def __repr__(self) -> str:
        return "0"


ZERO = Nothing()
_tags = itertools.count(1)


class Cell:
    """A real on its way through a pullback: the tag of that, and its value without it."""

    __slots__ = ("primal", "tape")

    def __init__(self, tape: Tape, primal: Any) -> None:
        self.tape, self.primal = tape, primal

    @staticmethod
    def __apply_operation__(operation: Operation, arguments: tuple[Any, ...]) -> Any:
        tape = max((x.tape for x in arguments if type(x) is Cell), key=lambda tape: tape.tag)
        mine = [type(x) is Cell and x.tape is tape for x in arguments]
        primals = [x.primal if own else x for x, own in zip(arguments, mine, strict=True)]
        result = operation(*primals)
        cell = Cell(tape, result)
        rules = operation.tangent
        if rules is None:
            raise NotDifferentiable(f"{operation.name} has no derivative")

        def back(delta: Any) -> None:
            for x, own, rule in zip(arguments, mine, rules, strict=True):
                if own and rule is not None:
                    tape.increase(x, rule(delta, result, *primals))

        tape.backward = (cell, back, tape.backward)
        return cell


class Tape:
    """What a pullback does on the way back, last things first."""

    __slots__ = ("adjoints", "backward", "tag")

    def __init__(self) -> None:
        self.tag = next(_tags)
        self.backward: Any = None
        self.adjoints: dict[int, Any] = {}

    def increase(self, cell: Any, delta: Any) -> None:
        before = self.adjoints.get(id(cell))
        self.adjoints[id(cell)] = delta if before is None else add(before, delta)

    def sweep(self, result: Any) -> None:
        """The way back from a real that is the result."""
        if type(result) is not Cell or result.tape is not self:
            return
        self.adjoints[id(result)] = 1.0
        while self.backward is not None:
            cell, back, self.backward = self.backward
            delta = self.adjoints.get(id(cell))
            if delta is not None:
                back(delta)


class Function:
    """A function or a dual: it takes an argument and a continuation, and gives what is to be done next."""

    __slots__ = ("call",)

    def __init__(self, call: Callable[[Any, Continue], Any]) -> None:
        self.call = call


class Coefficients(Function):
    """The dual of R^n that has these coefficients: a real, or pairs of them."""

    __slots__ = ("tree",)

    def __init__(self, tree: Any) -> None:
        self.tree = tree
        super().__init__(lambda u, k: lambda: k(_dot(tree, u)))


def _dot(tree: Any, u: Any) -> Any:
    if u is ZERO or tree is ZERO:
        return ZERO
    if isinstance(tree, tuple):
        return plus(_dot(tree[0], u[0]), _dot(tree[1], u[1]))
    return multiply(tree, u)


def plus(a: Any, b: Any) -> Any:
    """The sum of two values."""
    if a is ZERO:
        return b
    if b is ZERO:
        return a
    if isinstance(a, tuple):
        return plus(a[0], b[0]), plus(a[1], b[1])
    if isinstance(a, Coefficients) and isinstance(b, Coefficients):
        return Coefficients(plus(a.tree, b.tree))
    if isinstance(a, Function):
        return Function(lambda u, k: lambda: a.call(u, lambda x: lambda: b.call(u, lambda y: lambda: k(plus(x, y)))))
    return add(a, b)


def stripped(value: Any, tape: Tape) -> Any:
    """A value without the cells of a tape."""
    match value:
        case Cell():
            return value.primal if value.tape is tape else value
        case tuple():
            return stripped(value[0], tape), stripped(value[1], tape)
        case Coefficients():
            return Coefficients(stripped(value.tree, tape))
        case Function():
            return Function(lambda u, k: lambda: value.call(u, lambda x: lambda: k(stripped(x, tape))))
    return value


def applied(function: Any, argument: Any, k: Continue) -> Any:
    if function is ZERO:
        return lambda: k(ZERO)
    return lambda: function.call(argument, k)


# -- terms -------------------------------------------------------------------------------------------------------------


class Evaluator:
    """Evaluates the parts of a term whose types are known."""

    def __init__(self, typed: Typed) -> None:
        self.typed = typed

    def of(self, term: Term, environment: Environment, k: Continue) -> Any:
        """What is to be done next to hand the value of a term to a continuation."""
        match term:
            case Var(name):
                if name not in environment:
                    raise Error(f"`{name}` is free in the term, and has no value")
                return lambda: k(environment[name])
            case Num(value):
                return lambda: k(value)
            case Zero():
                return lambda: k(ZERO)
            case Covector(coefficients):
                return lambda: k(Coefficients(coefficients))
            case Lam(pattern, body):
                return lambda: k(
                    Function(lambda u, then: lambda: self.of(body, self.bound(environment, pattern, u), then))
                )
            case App(Lam(pattern, body), bound):
                return lambda: self.of(
                    bound, environment, lambda v: lambda: self.of(body, self.bound(environment, pattern, v), k)
                )
            case App(function, argument):
                return lambda: self.of(
                    function,
                    environment,
                    lambda f: lambda: self.of(argument, environment, lambda a: applied(f, a, k)),
                )
            case Pair(first, second):
                return self.both(first, second, environment, lambda a, b: lambda: k((a, b)))
            case Sum(first, second):
                return self.both(first, second, environment, lambda a, b: lambda: k(plus(a, b)))
            case Proj(index, inner):
                return lambda: self.of(inner, environment, lambda v: lambda: k(ZERO if v is ZERO else v[index - 1]))
            case Prim(name, argument):
                return lambda: self.of(argument, environment, lambda v: lambda: k(primitive_value(name, v)))
            case Jac(name, along):
                return lambda: self.of(along, environment, lambda v: lambda: k(_jacobian(name, v)))
            case DualMap(pattern, body, functional):
                return lambda: self.of(
                    functional, environment, lambda t: self.dual_map(pattern, body, t, environment, k)
                )
            case Pullback(pattern, body, form):
                return lambda: self.of(
                    form,
                    environment,
                    lambda w: (
                        lambda: k(Function(lambda v, then: self.pulled_back(pattern, body, w, v, environment, then)))
                    ),
                )
        raise AssertionError(term)

    def both(self, first: Term, second: Term, environment: Environment, k: Callable[[Any, Any], Any]) -> Any:
        return lambda: self.of(first, environment, lambda a: lambda: self.of(second, environment, lambda b: k(a, b)))

    def bound(self, environment: Environment, pattern: Pattern, value: Any) -> Environment:
        made = _Scope(environment)
        todo = [(pattern, value)]
        while todo:
            part, given = todo.pop()
            if isinstance(part, str):
                made[part] = given
            else:
                left, right = (ZERO, ZERO) if given is ZERO else given
                todo += ((part[1], right), (part[0], left))
        return made

    def dual_map(self, pattern: Pattern, body: Term, t: Any, environment: Environment, k: Continue) -> Any:
        """`(λx. S)^ . T`: the derivative of a linear map is the map, so it is that at 0, if x is a tuple of reals."""
        type = self.pattern_type(pattern)
        if flat(type):
            form = Function(lambda _, then: lambda: then(t))
            return self.pulled_back(pattern, body, form, _zero(type), environment, k)
        return lambda: k(
            Function(lambda u, then: self.of(body, self.bound(environment, pattern, u), lambda v: applied(t, v, then)))
        )

    def pattern_type(self, pattern: Pattern) -> Type:
        done: list[Type] = []
        todo: list[Pattern | None] = [pattern]
        while todo:
            part = todo.pop()
            if part is None:
                second, first = done.pop(), done.pop()
                done.append(Product(first, second))
            elif isinstance(part, str):
                done.append(self.typed.of_variable[part])
            else:
                todo += (None, part[1], part[0])
        return done[0]

    def pulled_back(
        self, pattern: Pattern, body: Term, form: Any, value: Any, environment: Environment, k: Continue
    ) -> Any:
        """`((Ω λx. P) . w) V`: the reals of V get their adjoints on one way back; what V has of functions and duals is
        differentiated along a tangent when the dual is applied to one."""
        if form is ZERO:
            return lambda: k(ZERO)
        tape = Tape()
        point = _cells(self.pattern_type(pattern), value, tape)

        def forward(out: Any) -> Any:
            return lambda: applied(form, stripped(out, tape), lambda t: reverse(out, t))

        def reverse(out: Any, t: Any) -> Any:
            return lambda: k(ZERO) if t is ZERO else applied(t, out, lambda result: swept(result, t))

        def swept(result: Any, t: Any) -> Any:
            tape.sweep(result)
            found = _adjoints(point, tape)
            if not _has_function(point):
                return lambda: k(Coefficients(found) if tape.adjoints else ZERO)
            at = stripped(point, tape)
            return lambda: k(
                Function(
                    lambda u, then: (
                        lambda: self.along(
                            pattern, body, t, at, u, environment, lambda x: then(plus(_dot(found, u), x))
                        )
                    )
                )
            )

        return lambda: self.of(body, self.bound(environment, pattern, point), forward)

    def along(
        self, pattern: Pattern, body: Term, t: Any, at: Any, u: Any, environment: Environment, k: Continue
    ) -> Any:
        """The derivative of T(P) along what u has of functions and duals: that by e at V + e u, where e is 0."""
        if u is ZERO:
            return lambda: k(ZERO)
        tape = Tape()
        e = Cell(tape, 0.0)

        def swept(result: Any) -> Any:
            tape.sweep(result)
            delta = tape.adjoints.get(id(e))
            return lambda: k(ZERO if delta is None else delta)

        moved = self.bound(environment, pattern, _moved(at, u, e))
        return lambda: self.of(body, moved, lambda out: applied(t, out, swept))


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


def _cells(type: Type, value: Any, tape: Tape) -> Any:
    """What a pullback's body is given: cells for reals; functions and duals as they are."""
    type = resolved(type)
    if isinstance(type, Product):
        first, second = (ZERO, ZERO) if value is ZERO else value
        return _cells(type.first, first, tape), _cells(type.second, second, tape)
    if isinstance(type, Arrow | Dual) or isinstance(value, Function):
        return value
    return Cell(tape, 0.0 if value is ZERO else value)


def _has_function(point: Any) -> bool:
    if isinstance(point, tuple):
        return _has_function(point[0]) or _has_function(point[1])
    return not isinstance(point, Cell)


def _adjoints(point: Any, tape: Tape) -> Any:
    """The adjoints of the cells of a point; 0 for its functions."""
    if isinstance(point, tuple):
        return _adjoints(point[0], tape), _adjoints(point[1], tape)
    return tape.adjoints.get(id(point), 0.0) if isinstance(point, Cell) else ZERO


def _moved(at: Any, u: Any, e: Cell) -> Any:
    """`V + e u` in the functions and duals of V."""
    if u is ZERO:
        return at
    if isinstance(at, tuple):
        return _moved(at[0], u[0], e), _moved(at[1], u[1], e)
    return plus(at, _scaled(e, u)) if at is ZERO or isinstance(at, Function) else at


def _scaled(e: Any, u: Any) -> Any:
    if u is ZERO:
        return ZERO
    if isinstance(u, tuple):
        return _scaled(e, u[0]), _scaled(e, u[1])
    if isinstance(u, Function):
        return Function(lambda a, k: lambda: u.call(a, lambda x: lambda: k(_scaled(e, x))))
    return multiply(e, u)


def _zero(type: Type) -> Any:
    type = resolved(type)
    return (_zero(type.first), _zero(type.second)) if isinstance(type, Product) else 0.0


def _reals(value: Any, width: int) -> list[Any]:
    if value is ZERO:
        return [0.0] * width
    found = []
    while width > 1 and isinstance(value, tuple):
        first, value = value
        found += _parts(first)
    found += _parts(value)
    return found


def _parts(value: Any) -> list[Any]:
    if isinstance(value, tuple):
        return _parts(value[0]) + _parts(value[1])
    return [0.0 if value is ZERO else value]


def primitive_value(name: str, value: Any) -> Any:
    """A primitive at reals of any kind; at floats that have no value there, an error."""
    given = known(name)
    reals = _reals(value, len(given.inputs))
    if all(type(x) is float for x in reals):
        return given.value(reals)
    result = given(reals)
    inner, parts = result, reals
    while type(inner) is Cell:
        inner, parts = inner.primal, [x.primal if type(x) is Cell else x for x in parts]
    if type(inner) is float and inner - inner != 0.0:
        raise ValueRangeError(f"{name} is {inner} there: it has no value")
    return result


def _jacobian(name: str, along: Any) -> Any:
    width = len(known(name).inputs)
    if along is ZERO:
        return ZERO

    def call(at: Any, k: Continue) -> Any:
        values = _reals(along, width) + _reals(at, width)
        return lambda: k(known(name + "'")(values))

    return Function(call)


# -- from Python -------------------------------------------------------------------------------------------------------


def run(step: Any) -> None:
    while step is not None:
        step = step()


def evaluate(of: Term | str, **values: Any) -> Any:
    """The value of a term: a float, tuples of values, or a function or dual that Python can call.

    `values` are those of its free variables, numbers or nested tuples of them.

    >>> d = evaluate("((Ω λ<x, y>. square((x + 1) * (2 * x + y * y))) . (λ_. 1^)) <1, 3>")
    >>> d, d((1.0, 0.0))
    (<dual (660.0, 528.0)>, 660.0)
    """
    text = of if isinstance(of, str) else ""
    typed = infer(parse(of) if isinstance(of, str) else of, text)
    return outside(value_in(typed, {name: inside(value) for name, value in values.items()}))


def value_in(typed: Typed, environment: Environment) -> Any:
    """The value of a typed term, as the evaluator has it."""
    found: list[Any] = []
    run(Evaluator(typed).of(typed.term, environment, found.append))
    return found[0]


def inside(value: Any) -> Any:
    """A value of Python, as the evaluator has it."""
    if isinstance(value, tuple):
        made = inside(value[-1])
        for part in reversed(value[:-1]):
            made = (inside(part), made)
        return made
    if isinstance(value, Callable_):
        return value.function
    if isinstance(value, Node):
        return value
    number = as_number(value)
    if number is not None:
        return float(number)
    if callable(value):
        return Function(lambda u, k: lambda: k(inside(value(outside(u)))))
    raise Error(f"a number, a tuple or a function is needed, and {shown(value)} is none")


class Callable_:
    """A function or a dual, as Python calls it."""

    def __init__(self, function: Function) -> None:
        self.function = function

    @property
    def coefficients(self) -> Any:
        """Those of a dual of R^n; None of others."""
        return self.function.tree if isinstance(self.function, Coefficients) else None

    def __call__(self, argument: Any) -> Any:
        found: list[Any] = []
        run(self.function.call(inside(argument), found.append))
        return outside(found[0])

    def __repr__(self) -> str:
        return "<function>" if self.coefficients is None else f"<dual {self.coefficients}>"


def outside(value: Any) -> Any:
    """A value of the evaluator, for Python."""
    if isinstance(value, tuple):
        return tuple(outside(part) for part in value)
    if isinstance(value, Function):
        return Callable_(value)
    return 0.0 if value is ZERO else value
