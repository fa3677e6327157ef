"""The reductions of a pullback term that is applied to a value, by the elementary term it is taken along: 9 to 20.

`((Ω λx. E) . w) V` becomes `(λv. S)^ . (w E[V/x])`, where `λv. S` is the Jacobian of `λx. E` at V. A rule says what S
is, and what E is at V where its premise had to find that out. It is given E, the values of variables, and what the
tangents of those that depend on x are called. Premises are reductions of the machine, which calls these rules; the
rules before 9 are in `reduce.py` and `transpose.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..infer import slots
from ..primitives import known
from ..terms import ZERO, App, DualMap, Jac, Lam, Pair, Prim, Proj, Pullback, Sum, Term, Var, Zero
from ..trampoline import Call
from .values import Chain, Closure, Environment, closed, depends

Machine = Any
"""That of `reduce.py`, which stands above."""

Active = Mapping[str, str]
"""The variables that depend on x, and what their tangents are called."""
Outcome = tuple[Term, Term | None]
"""S, and the value of E if a premise found it."""

NAMES: dict[str, str] = {
    "A": "administrative reduction",
    "1": "application of an abstraction",
    "2": "projection of a pair",
    "3": "value of a primitive",
    "4": "Jacobian of a primitive",
    "5": "dual along an elementary linear map",
    "6": "contravariance of dual maps",
    "7": "pullback along the last of a let series",
    "8": "pullback along a let series",
    "dual": "application of a dual",
    "sum": "sums",
}
"""The names of rules by their numbers. A, `dual` and `sum` have none in the paper."""
Rule = Callable[..., Call[Outcome]]
ELEMENTARY: dict[str, Rule] = {}


def rule(number: str, name: str) -> Callable[[Rule], Rule]:
    """Enters a rule in the table."""

    def enter(function: Rule) -> Rule:
        NAMES[number] = name
        ELEMENTARY[number] = function
        return function

    return enter


class Stuck(Exception):
    """There is no Jacobian yet: a free variable stands in function position, or what is no abstraction would."""


def _nothing() -> Call[None]:
    return
    yield


def tangent(of: Term, active: Active) -> Term:
    """The tangent of a variable."""
    return Var(active[of.name]) if isinstance(of, Var) and of.name in active else ZERO


def is_active(of: Term, active: Active) -> bool:
    return isinstance(of, Var) and of.name in active


def total(first: Term, second: Term) -> Term:
    if isinstance(first, Zero):
        return second
    return first if isinstance(second, Zero) else Sum(first, second)


def choose(of: Term, environment: Environment, active: Active) -> str:
    """The number of the rule for an elementary term."""
    if not depends(of, active):
        return "9"
    match of:
        case Var():
            return "10"
        case Sum():
            return "11"
        case Proj():
            return "12"
        case Jac():
            return "13"
        case Prim():
            return "15"
        case DualMap(pattern, body, functional):
            inside = depends(Lam(pattern, body), active)
            if not inside:
                return "16a"
            return "16c" if is_active(functional, active) else "16b"
        case Pullback():
            return "17"
        case Lam():
            return "18"
        case Pair():
            return "20"
        case App(_, argument):
            if not is_active(argument, active):
                return "19a"
            return "19b"
    raise AssertionError(of)


@rule("9", "constant")
def constant(machine: Machine, of: Term, environment: Environment, active: Active) -> Call[Outcome]:
    yield from _nothing()
    return ZERO, None


@rule("10", "linear: a variable")
def variable(machine: Machine, of: Var, environment: Environment, active: Active) -> Call[Outcome]:
    yield from _nothing()
    return tangent(of, active), None


@rule("11", "linear: a sum")
def summed(machine: Machine, of: Sum, environment: Environment, active: Active) -> Call[Outcome]:
    yield from _nothing()
    return total(tangent(of.first, active), tangent(of.second, active)), None


@rule("12", "linear: a projection")
def projection(machine: Machine, of: Proj, environment: Environment, active: Active) -> Call[Outcome]:
    yield from _nothing()
    return Proj(of.index, tangent(of.of, active)), None


@rule("13", "linear: a Jacobian along a variable")
def jacobian(machine: Machine, of: Jac, environment: Environment, active: Active) -> Call[Outcome]:
    yield from _nothing()
    return Jac(of.name, tangent(of.along, active)), None


@rule("14", "linear: a dual applied to a variable")
def dual_applied(machine: Machine, of: App, environment: Environment, active: Active) -> Call[Outcome]:
    yield from _nothing()
    dual, at = environment[of.function.name], environment[of.argument.name]  # type: ignore[attr-defined]  # both are variables
    first = App(tangent(of.function, active), at) if is_active(of.function, active) else ZERO
    return total(first, App(dual, tangent(of.argument, active))), None


@rule("15", "primitive")
def primitive(machine: Machine, of: Prim, environment: Environment, active: Active) -> Call[Outcome]:
    """Of a derivative f', which is linear in its tangents, there is a part for each of these, and one for the point."""
    yield from _nothing()
    *given, point = slots(of.name, of.argument) or [of.argument]
    if not given and known(of.name).order == 0:
        at = machine.value_of(point, environment)
        return App(Jac(of.name, tangent(point, active)), at), None
    if not given:  # a tuple by one name
        whole, name = machine.value_of(point, environment), of.name
        return App(Jac(name, tangent(point, active)), whole), None
    values = [machine.value_of(part, environment) for part in [*given, point]]
    made: Term = ZERO
    for index, part in enumerate(given):
        if is_active(part, active):
            made = total(made, _call(of.name, [*values[:index], tangent(part, active), *values[index + 1 :]]))
    if is_active(point, active):
        made = total(made, _call(of.name + "'", [*values[:-1], tangent(point, active), values[-1]]))
    return made, None


def _call(name: str, parts: list[Term]) -> Term:
    *before, made = parts
    for part in reversed(before):
        made = Pair(part, made)
    return Prim(name, made)


@rule("16a", "dual map: of a variable")
def dual_of_variable(machine: Machine, of: DualMap, environment: Environment, active: Active) -> Call[Outcome]:
    yield from _nothing()
    inside = closed(Lam(of.pattern, of.body), environment)
    assert isinstance(inside, Lam)
    return DualMap(inside.pattern, inside.body, tangent(of.functional, active)), None


@rule("16b", "dual map: along what depends on the variable")
def dual_along(machine: Machine, of: DualMap, environment: Environment, active: Active) -> Call[Outcome]:
    function = yield machine.curried(Lam(of.pattern, of.body), environment, active)
    if isinstance(function, Zero):
        return ZERO, None
    return DualMap(function.pattern, function.body, machine.value_of(of.functional, environment)), None


@rule("16c", "dual map: both")
def dual_both(machine: Machine, of: DualMap, environment: Environment, active: Active) -> Call[Outcome]:
    second, _ = yield dual_along(machine, of, environment, active)
    first, _ = yield dual_of_variable(machine, of, environment, active)
    return total(first, second), None


@rule("17", "pullback of a variable")
def pullback(machine: Machine, of: Pullback, environment: Environment, active: Active) -> Call[Outcome]:
    """The pullback applied to a fresh variable is reduced to some S, and the abstraction of S stands in its place."""
    function = yield machine.unfolded(of, environment, active)
    return (yield machine.jacobian_of(function, environment, active))


@rule("18", "abstraction (D-curry)")
def abstraction(machine: Machine, of: Lam, environment: Environment, active: Active) -> Call[Outcome]:
    return (yield machine.curried(of, environment, active)), None


@rule("19a", "application: of what depends on the variable")
def applied(machine: Machine, of: App, environment: Environment, active: Active) -> Call[Outcome]:
    yield from _nothing()
    return App(tangent(of.function, active), machine.value_of(of.argument, environment)), None


@rule("19b", "application (D-eval)")
def evaluation(machine: Machine, of: App, environment: Environment, active: Active) -> Call[Outcome]:
    """Of a function's Jacobian a premise says what it is; where it vanishes, this is 19c."""
    function = machine.value_of(of.function, environment)
    argument = machine.value_of(of.argument, environment)
    first: Term = App(tangent(of.function, active), argument) if is_active(of.function, active) else ZERO
    inner, value = yield from _along(machine, function, argument, tangent(of.argument, active))
    return total(first, inner), value


NAMES["19c"] = "application: of what is constant"


def _along(machine: Machine, function: Term, argument: Term, along: Term) -> Call[Outcome]:
    """The Jacobian of a function that is known at a value, along a tangent, and its value there."""
    match function:
        case Zero():
            return ZERO, ZERO
        case Sum(first, second):
            left, one = yield from _along(machine, first, argument, along)
            right, other = yield from _along(machine, second, argument, along)
            value = (yield machine.add(one, other)) if one is not None and other is not None else None
            return total(left, right), value
        case Jac(name, fixed):
            if known(name).order == 0:
                return _call(name + "''", [fixed, along, argument]), None
    if machine.is_dual(function):
        return App(function, along), None
    if isinstance(function, Chain):
        function = yield machine.unfolded(function, {}, {})
    if not isinstance(function, Closure):
        raise Stuck
    return (yield machine.inside(function, argument, along))


@rule("20", "pair")
def pair(machine: Machine, of: Pair, environment: Environment, active: Active) -> Call[Outcome]:
    yield from _nothing()
    return Pair(tangent(of.first, active), tangent(of.second, active)), None
