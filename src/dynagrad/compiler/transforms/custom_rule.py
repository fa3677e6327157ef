"""`dg.custom_rule` inside compiled functions: functions with derivative rules of the user's.

The function is traced for its value; one that cannot be compiled is called back in Python (`opaque.py`). A rule is
traced when a derivative first passes through it, which may be long after the function was compiled, so by a specialiser
of its own. One rule serves both modes: the other mode is its transpose.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...autodiff import custom_rules
from ...autodiff.custom_rules import Several
from ...autodiff.derive import connected
from ...eager.verbs.custom_rule import custom_rule
from ...eager.verbs.gradients import made_by
from ...errors import Error, counted
from ...forks import cached
from ...ir import Node
from ...ir.control import CustomDerivatives, Graph, GraphFunction
from ...ir.node import order
from ...ir.types import Type, arrays, real
from ..evaluate.joins import destructure
from ..evaluate.specialiser import PROBLEMS, Args, Finder, Named, Specialiser, calls
from ..evaluate.values import (
    Array,
    Closure,
    Dict,
    HostFunction,
    List,
    describe,
    function_like,
    node_of,
    normal,
    type_of,
    zero,
)
from ..frontend.core import Position
from ..frontend.source import error
from .captured import Captures, free_variables, isolated, memoised, variables
from .opaque import python_call


@calls(custom_rule, knows=None)
def _custom_rule(s: Specialiser, args: Args, named: Named) -> HostFunction:
    options = {"f": None, "jvp": None, "vjp": None} | ({"f": args[0]} if args else {}) | dict(named)
    f, jvp, vjp = options["f"], options["jvp"], options["vjp"]
    if f is None:
        return HostFunction(
            ("rule", "custom_rule"),
            lambda s, captured, xs, _: _custom_rule(s, list(xs), {"jvp": captured[0], "vjp": captured[1]}),
            (jvp, vjp),
        )
    for what, one in (("function", f), ("jvp", jvp), ("vjp", vjp)):
        if one is not None and not function_like(one):
            raise Error(f"custom_rule: the {what} must be a function, not {describe(one)}")
    if jvp is None and vjp is None:
        raise Error("custom_rule: give jvp=, the forward rule, or vjp=, the backward rule; either is enough")
    name = name_of(f)
    kind = ("rule", f"{name} with a rule", name)
    return HostFunction(kind, lambda s, captured, xs, options: _called(s, name, captured, xs, options), (f, jvp, vjp))


def name_of(f: Any) -> str:
    return str(getattr(f, "__name__", None) or getattr(f, "name", "function"))


def of_rule(s: Specialiser, function: Any) -> Callable[..., Any] | None:
    """The finder for functions that got their rule outside of compiled code."""
    what = made_by(function)
    if what is None or what[0] != "custom_rule":
        return None
    _, f, rules = what
    return lambda s, args, named: _called(s, name_of(f), (f, rules["jvp"], rules["vjp"]), args, named)


def _called(s: Specialiser, name: str, functions: Sequence[Any], args: Args, named: Named) -> Any:
    """A call of a function with a rule."""
    f, jvp, vjp = functions
    places = tuple(i for i, x in enumerate(args) if _real(name, i, x))
    if not places:
        return s.call(f, list(args), named)
    rest = tuple(None if i in places else x for i, x in enumerate(args))
    captures = Captures((f, jvp, vjp, rest, tuple(named.values())))
    reals = [node_of(args[i]) for i in places]
    shape = _CallSignature(name, places, tuple(named), tuple(x.type for x in reals), s.at)
    made, more = memoised(s, shape, captures, lambda: _function(s, shape, captures), lambda found: not found[1])
    [y] = custom_rules.apply(made, *reals, *captures.numbers, *more)
    return Array(y) if y.shape else y


def _real(name: str, place: int, x: Any) -> bool:
    t = type_of(x)
    if t is None and (function_like(x) or destructure(x) is not None):
        raise Error(
            f"custom_rule: {name} takes reals and arrays, and its argument {place + 1} is {describe(x)}; give its "
            "parts as arguments"
        )
    return t is not None and t.kind == "real"


@dataclass(frozen=True)
class _CallSignature:
    """The static part of a call: which arguments are reals, their types, the names of named ones, the position."""

    name: str
    places: tuple[int, ...]
    names: tuple[str, ...]
    types: tuple[Type, ...]
    at: Position | None

    def arguments(self, rest: Sequence[Any], reals: Sequence[Node | None]) -> tuple[Any, ...]:
        """All positional arguments, from the reals among them and the rest."""
        found = list(rest)
        for i, x in zip(self.places, reals, strict=True):
            found[i] = Array(x) if x is not None and x.shape else x
        return tuple(found)


def _function(s: Specialiser, shape: _CallSignature, captures: Captures) -> tuple[GraphFunction, list[Node]]:
    """The function of the graph, and the free variables that it takes as last arguments."""
    reals, inner = variables(shape.types), variables(captures.types)

    def run() -> Node:
        f, jvp, _, rest, named = captures.values(iter(inner))
        options = dict(zip(shape.names, named, strict=True))
        try:
            y = s.call(f, list(shape.arguments(rest, reals)), options)
        except (Error, *PROBLEMS) as problem:
            if isinstance(f, Closure | HostFunction):
                raise
            return _opaque(s, shape, captures, reals, f, Captures((rest, Dict(options))), jvp, problem)
        t = type_of(y)
        if t is None or t.kind != "real":
            raise Error(f"custom_rule: {shape.name} should return one real or one array, and returned {describe(y)}")
        return node_of(y)

    y = isolated(s, f"custom_rule: {shape.name}", run)
    more = free_variables([y], [*reals, *inner])
    graph = Graph((*reals, *inner, *more), (y,))
    series = order([y])
    closed = {i for i, v in enumerate(graph.inputs) if i >= len(reals) and y in connected(series, {v})}
    rule = _RuleGraphs(s.finders, shape, captures, y.type, [v.type for v in more], closed)
    types = [v.type for v in graph.inputs]
    made = custom_rules.function(
        shape.name, types, [y.type], lambda *xs: list(graph(*xs)), CustomDerivatives(rule.tangent, rule.adjoint)
    )
    return made, more


def _opaque(
    s: Specialiser,
    shape: _CallSignature,
    captures: Captures,
    reals: list[Node],
    f: Any,
    rest: Captures,
    jvp: Any,
    problem: Exception,
) -> Node:
    """The result of a function that cannot be compiled, as a callback to Python."""
    if jvp is None and any(t.shape for t in shape.types):
        raise Error(
            f"custom_rule: {shape.name} cannot be compiled: {getattr(problem, 'message', problem)}. To call it in "
            "Python the shape of its result must be known, which the forward rule says; give jvp= too"
        )
    result = real if jvp is None else _result(s, shape, captures, f)

    def assemble(numbers: Sequence[Any], others: Sequence[Any]) -> tuple[Any, ...]:
        found = list(others)
        for i, x in zip(shape.places, numbers, strict=True):
            found[i] = x
        return tuple(found)

    return python_call(f, shape.name, reals, rest, assemble, result)


_being_inferred: ContextVar[tuple[Any, ...]] = ContextVar("asked", default=())
"""The functions whose result types are being inferred from their rules."""


def _result(s: Specialiser, shape: _CallSignature, captures: Captures, f: Any) -> Type:
    """The type of the result, inferred from the forward rule; if that calls the function, it is elementwise."""
    before = _being_inferred.get()
    if any(f is other for other in before):
        return arrays(real, np.broadcast_shapes(*(t.shape for t in shape.types)))
    token = _being_inferred.set((*before, f))
    try:
        return _RuleGraphs(s.finders, shape, captures, None, [], ()).forward.outputs[0].type
    finally:
        _being_inferred.reset(token)


class _RuleGraphs:
    """The rules of a function as graphs, each traced on demand.

    `result` is the type of the function's result, None where the forward rule is traced to infer it; `closed` are the
    indices of the numbers that the function itself, and not only a rule, captures.
    """

    def __init__(
        self,
        finders: Sequence[Finder],
        shape: _CallSignature,
        captures: Captures,
        result: Type | None,
        more: Sequence[Type],
        closed: Collection[int],
    ) -> None:
        self.finders = finders
        self.shape, self.captured, self.result, self.closed = shape, captures, result, closed
        self.rest = [*captures.types, *more]
        self.count = len(shape.places)
        _, jvp, vjp, *_ = captures.values(iter(variables(captures.types)))
        self.has_jvp, self.has_vjp = jvp is not None, vjp is not None

    # -- tangents and adjoints, as CustomDerivatives has them

    def tangent(self, arguments: Sequence[Node], results: Sequence[Node], dots: Several) -> Several:
        if any(dots[i] is not None for i in self.closed):
            raise self._closure_error()
        given = [zero(t) if d is None else d for d, t in zip(dots, self.shape.types, strict=False)]
        if self.has_jvp:
            graph = self.forward
            return custom_rules.instance(graph.outputs, dict(zip(graph.inputs, [*arguments, *given], strict=True)))
        graph, places = self._backward
        deltas = [given[i] for i in places]
        at = len(graph.inputs) - 1
        xs = [*arguments, *results, zero(results[0].type)]
        return [custom_rules.backward(graph.inputs, graph.outputs, xs, deltas, [at])[at]]

    def adjoint(
        self, arguments: Sequence[Node], results: Sequence[Node], deltas: Several, wanted: Sequence[int]
    ) -> Several:
        if any(i in self.closed for i in wanted):
            raise self._closure_error()
        found: Several = [None] * len(arguments)
        [delta] = deltas
        if delta is None:
            return found
        if self.has_vjp:
            graph, places = self._backward
            outputs = custom_rules.instance(
                graph.outputs, dict(zip(graph.inputs, [*arguments, *results, delta], strict=True))
            )
            for i, x in zip(places, outputs, strict=True):
                found[i] = x
            return found
        graph = self.forward
        first = len(arguments)
        xs = [*arguments, *(zero(t) for t in self.shape.types)]
        asked = [i for i in wanted if i < self.count]
        adjoints = custom_rules.backward(graph.inputs, graph.outputs, xs, [delta], [first + i for i in asked])
        for i in asked:
            found[i] = adjoints[first + i]
        return found

    def _closure_error(self) -> Error:
        return error(
            f"custom_rule: {self.shape.name} closes over a number that is differentiated, and has no rule for it; make "
            "it an argument",
            self.shape.at,
        )

    # -- tracing

    @cached
    def forward(self) -> Graph:
        """The forward rule: from the arguments and the tangents of the reals to the tangent of the result."""
        dots = variables(self.shape.types)

        def run(s: Specialiser, primals: tuple[Any, ...], jvp: Any, _: Any) -> list[Node]:
            tangents = self.shape.arguments([None] * len(primals), dots)
            return [self._checked("jvp", s.call(jvp, [primals, tangents]), self.result, "the result")]

        return self._traced(dots, run)

    @cached
    def _backward(self) -> tuple[Graph, list[int]]:
        """The backward rule: from arguments, value and its cotangent to cotangents; and of which reals these are."""
        assert self.result is not None
        y, c = variables([self.result, self.result])
        places: list[int] = []

        def run(s: Specialiser, primals: tuple[Any, ...], _: Any, vjp: Any) -> list[Node]:
            value, cotangent = (Array(x) if x.shape else x for x in (y, c))
            found = s.call(vjp, [primals, value, cotangent])
            parts = list(found.content) if isinstance(found, List) else found if isinstance(found, tuple) else (found,)
            if len(parts) != len(primals):
                raise Error(
                    f"custom_rule: the vjp of {self.shape.name} should return a tuple with "
                    f"{counted(len(primals), 'cotangent')}, "
                    f"one for each argument, and returned {len(parts)}"
                )
            out = []
            for k, (i, t) in enumerate(zip(self.shape.places, self.shape.types, strict=True)):
                if parts[i] is not None:
                    places.append(k)
                    out.append(self._checked("vjp", parts[i], t, f"argument {i + 1}"))
            return out

        return self._traced([y, c], run), places

    def _traced(self, more: Sequence[Node], run: Callable[..., list[Node]]) -> Graph:
        s = Specialiser(self.finders)
        reals, inner = variables(self.shape.types), variables(self.rest)
        with s.located(self.shape.at):

            def traced() -> list[Node]:
                _, jvp, vjp, rest, _ = self.captured.values(iter(inner))
                return run(s, self.shape.arguments(rest, reals), jvp, vjp)

            outputs = isolated(s, f"custom_rule: the rule of {self.shape.name}", traced)
        return Graph((*reals, *inner, *more), tuple(outputs))

    def _checked(self, rule: str, found: Any, wanted: Type | None, what: str) -> Node:
        found = normal(found)
        t = type_of(found)
        if t is None or t.kind != "real" or (wanted is not None and t.shape != wanted.shape):
            should = f"an array of shape {wanted.shape}" if wanted is not None and wanted.shape else "a real"
            raise Error(
                f"custom_rule: the {rule} of {self.shape.name} should return {should} for {what}, and returned "
                f"{describe(found)}"
            )
        return node_of(found)
