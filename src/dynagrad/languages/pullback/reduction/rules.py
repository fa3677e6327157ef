"""The reductions of a pullback term that is applied to a value, by the elementary term it is taken along: 9 to 20.

`((Ω λx. E) . w) V` becomes `(λv. S)^ . (w E[V/x])`, where `λv. S` is the Jacobian of `λx. E` at V. A rule says what S
is, and what E is at V where its premise had to find that out. It is given E, the values of variables, and what the
tangents of those that depend on x are called. Premises are reductions of the machine, which calls these rules; the
rules before 9 are in `call_by_value.py`, `transpose.py` and `pullbacks.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from ..infer import slots
from ..primitives import known
from ..terms import ZERO, App, DualMap, FormPullback, Jac, Lam, Pair, Prim, Proj, PullbackTerm, TermSum, Var, Zero
from ..trampoline import Call, pause
from ..trees import nested_right
from .machine import AbstractMachine, Active, Outcome, Stuck
from .numbering import NAMES, rule
from .values import Activation, Chain, Deferred, MachineClosure, closed, depends, unreduced

Rule = Callable[..., Call[Outcome]]
ELEMENTARY: dict[str, Rule] = {}


def elementary(number: str, name: str) -> Callable[[Rule], Rule]:
    """Enters the rule for an elementary term in the table."""

    def enter(function: Rule) -> Rule:
        ELEMENTARY[number] = function
        return rule(number, name)(function)

    return enter


def tangent(of: PullbackTerm, active: Active) -> PullbackTerm:
    """The tangent of a variable."""
    return Var(active[of.name]) if isinstance(of, Var) and of.name in active else ZERO


def is_active(of: PullbackTerm, active: Active) -> bool:
    return isinstance(of, Var) and of.name in active


def total(first: PullbackTerm, second: PullbackTerm) -> PullbackTerm:
    if isinstance(first, Zero):
        return second
    return first if isinstance(second, Zero) else TermSum(first, second)


def choose(of: PullbackTerm, active: Active) -> str:
    """The number of the rule for an elementary term."""
    if not depends(of, active):
        return "9"
    match of:
        case Var():
            return "10"
        case TermSum():
            return "11"
        case Proj():
            return "12"
        case Jac():
            return "13"
        case Prim():
            return "15"
        case DualMap(pattern, body, functional):
            if not depends(Lam(pattern, body), active):
                return "16a"
            return "16c" if is_active(functional, active) else "16b"
        case FormPullback():
            return "17"
        case Lam():
            return "18"
        case Pair():
            return "20"
        case App(_, argument):
            return "19b" if is_active(argument, active) else "19a"
    raise AssertionError(of)


@elementary("9", "constant")
def constant(machine: AbstractMachine, of: PullbackTerm, frame: Activation, active: Active) -> Call[Outcome]:
    yield from pause()
    return ZERO, None


@elementary("10", "linear: a variable")
def variable(machine: AbstractMachine, of: Var, frame: Activation, active: Active) -> Call[Outcome]:
    yield from pause()
    return tangent(of, active), None


@elementary("11", "linear: a sum")
def summed(machine: AbstractMachine, of: TermSum, frame: Activation, active: Active) -> Call[Outcome]:
    yield from pause()
    return total(tangent(of.first, active), tangent(of.second, active)), None


@elementary("12", "linear: a projection")
def projection(machine: AbstractMachine, of: Proj, frame: Activation, active: Active) -> Call[Outcome]:
    yield from pause()
    return Proj(of.index, tangent(of.of, active)), None


@elementary("13", "linear: a Jacobian along a variable")
def jacobian(machine: AbstractMachine, of: Jac, frame: Activation, active: Active) -> Call[Outcome]:
    yield from pause()
    return Jac(of.name, tangent(of.along, active), span=of.span), None


@elementary("14", "linear: a dual applied to a variable")
def dual_applied(machine: AbstractMachine, of: App, frame: Activation, active: Active) -> Call[Outcome]:
    yield from pause()
    dual, at = machine.value_of(of.function, frame), machine.value_of(of.argument, frame)
    first = App(tangent(of.function, active), at) if is_active(of.function, active) else ZERO
    return total(first, App(dual, tangent(of.argument, active))), None


@elementary("15", "primitive")
def primitive(machine: AbstractMachine, of: Prim, frame: Activation, active: Active) -> Call[Outcome]:
    """Of a derivative f', which is linear in its tangents, there is a part for each of these, and one for the point."""
    yield from pause()
    *given, point = slots(of.name, of.argument) or [of.argument]
    if not given:
        return App(Jac(of.name, tangent(point, active), span=of.span), machine.value_of(point, frame)), None
    values = [machine.value_of(part, frame) for part in [*given, point]]
    made: PullbackTerm = ZERO
    for index, part in enumerate(given):
        if is_active(part, active):
            made = total(made, call(of, of.name, [*values[:index], tangent(part, active), *values[index + 1 :]]))
    if is_active(point, active):
        made = total(made, call(of, of.name + "'", [*values[:-1], tangent(point, active), values[-1]]))
    return made, None


def call(of: PullbackTerm, name: str, parts: list[PullbackTerm]) -> PullbackTerm:
    """A primitive of several arguments, for a term that stands where `of` does."""
    return Prim(name, nested_right(parts, Pair), span=of.span)


@elementary("16a", "dual map: of a variable")
def dual_of_variable(machine: AbstractMachine, of: DualMap, frame: Activation, active: Active) -> Call[Outcome]:
    yield from pause()
    inside = closed(Lam(of.pattern, of.body), frame)
    assert isinstance(inside, Lam)
    return DualMap(inside.pattern, inside.body, tangent(of.functional, active)), None


@elementary("16b", "dual map: along what depends on the variable")
def dual_along(machine: AbstractMachine, of: DualMap, frame: Activation, active: Active) -> Call[Outcome]:
    function: PullbackTerm = yield machine.curried(Lam(of.pattern, of.body), frame, active)
    functional = machine.value_of(of.functional, frame)
    match function:
        case Zero():
            return ZERO, None
        case Lam():
            return DualMap(function.pattern, function.body, functional), None
    name = machine.fresh("v")
    return DualMap(name, App(function, Var(name)), functional), None


@elementary("16c", "dual map: both")
def dual_both(machine: AbstractMachine, of: DualMap, frame: Activation, active: Active) -> Call[Outcome]:
    second, _ = yield dual_along(machine, of, frame, active)
    first, _ = yield dual_of_variable(machine, of, frame, active)
    return total(first, second), None


@elementary("17", "pullback of a variable")
def pullback(machine: AbstractMachine, of: FormPullback, frame: Activation, active: Active) -> Call[Outcome]:
    """The pullback applied to a fresh variable is reduced to some S, and the abstraction of S stands in its place.

    Where it gets stuck, because the variable is a function, the Jacobian is deferred until its value is known.
    """
    function: PullbackTerm = yield machine.unfolded(of, frame, active)
    if isinstance(function, Deferred):
        return function, None
    outcome: Outcome = yield machine.jacobian_of(function, frame, active)
    return outcome


@elementary("18", "abstraction (D-curry)")
def abstraction(machine: AbstractMachine, of: Lam, frame: Activation, active: Active) -> Call[Outcome]:
    jacobian: PullbackTerm = yield machine.curried(of, frame, active)
    return jacobian, None


@elementary("19a", "application: of what depends on the variable")
def applied(machine: AbstractMachine, of: App, frame: Activation, active: Active) -> Call[Outcome]:
    yield from pause()
    return App(tangent(of.function, active), machine.value_of(of.argument, frame)), None


@elementary("19b", "application (D-eval)")
def evaluation(machine: AbstractMachine, of: App, frame: Activation, active: Active) -> Call[Outcome]:
    """Of a function's Jacobian a premise says what it is; where it vanishes, this is 19c."""
    function, argument = machine.value_of(of.function, frame), machine.value_of(of.argument, frame)
    first: PullbackTerm = App(tangent(of.function, active), argument) if is_active(of.function, active) else ZERO
    inner, value = yield from _along(machine, function, of.argument, frame, active)
    return total(first, inner), value


NAMES["19c"] = "application: of what is constant"


def _along(
    machine: AbstractMachine, function: PullbackTerm, point: PullbackTerm, frame: Activation, active: Active
) -> Call[Outcome]:
    """The Jacobian of a function that is known at a value, along its tangent, and its value there."""
    argument, along = machine.value_of(point, frame), tangent(point, active)
    if isinstance(function, Deferred):
        function = yield machine.evaluate(unreduced(function), Activation())
    match function:
        case Zero():
            return ZERO, ZERO
        case TermSum(first, second):
            left, one = yield from _along(machine, first, point, frame, active)
            right, other = yield from _along(machine, second, point, frame, active)
            value = (yield machine.add(one, other)) if one is not None and other is not None else None
            return total(left, right), value
        case Jac(name, fixed):
            if known(name).order == 0:
                return call(function, name + "''", [fixed, along, argument]), None
    if machine.is_dual(function):
        return App(function, along), None
    if isinstance(function, Chain):
        reduced: PullbackTerm = yield machine.unfolded(function, Activation(), {})
        if isinstance(reduced, Deferred):
            name = machine.fresh("t")
            only = Activation({**frame, name: function}, frame.definitions)
            return machine.deferred(None, App(Var(name), point), only, active, reduced.type), None
        function = MachineClosure(reduced, {}) if isinstance(reduced, Lam) else reduced
    if not isinstance(function, MachineClosure):
        raise Stuck
    outcome: Outcome = yield machine.inside(function, argument, along)
    return outcome


@elementary("20", "pair")
def pair(machine: AbstractMachine, of: Pair, frame: Activation, active: Active) -> Call[Outcome]:
    yield from pause()
    return Pair(tangent(of.first, active), tangent(of.second, active)), None
