"""`dg.fixed_point` inside compiled functions: its step is traced once; the graph iterates it, and differentiates it
implicitly (`autodiff/fixed_point.py`).
"""

from __future__ import annotations

import math
from typing import Any

from ...autodiff.custom_rules import apply
from ...autodiff.fixed_point import solver
from ...eager.verbs.fixed_point import fixed_point
from ...errors import Error, NotConverged, NotDifferentiable
from ...ir import Node
from ...ir.control import Graph, GraphFunction
from ...ir.node import constant, whole
from ...ir.types import heap
from ..evaluate.joins import AbstractValue, Dynamic, Heaped, Structured, build, describe_abstract, flatten, leaf_types
from ..evaluate.specialiser import Args, Named, Specialiser, calls
from ..evaluate.values import describe, function_like, node_of, type_of
from .captured import Captures, free_variables, isolated, memoised, variables
from .primal_trace import argument, functions_in, reals

_NAMES = ("f", "x0", "tolerance", "max_steps")


@calls(fixed_point, knows=None)
def _fixed_point(s: Specialiser, args: Args, named: Named) -> Any:
    options = {"tolerance": 1e-12, "max_steps": 10_000} | dict(zip(_NAMES, args, strict=False)) | dict(named)
    wrong = [name for name in options if name not in _NAMES] or [name for name in _NAMES if name not in options]
    if wrong or len(args) > len(_NAMES):
        raise Error("fixed_point takes f, x0, tolerance and max_steps")
    s.may_raise(NotConverged, NotDifferentiable)
    f, x0 = options["f"], options["x0"]
    if not function_like(f):
        raise Error(f"fixed_point: f must be a function, not {describe(f)}")
    tolerance, most = _tolerance(options["tolerance"]), _most(options["max_steps"])
    argument(s, "fixed_point", 1, x0)
    if next(functions_in(x0), None) is not None:
        raise Error("fixed_point: x0 has a function in it; it must be made of reals, arrays and structures of these")
    form = reals(x0)
    if heap in leaf_types(form):
        raise Error("fixed_point: x0 has parts of which the run decides what they are; it must have a fixed structure")
    captures = Captures((f, _outline(form)))
    start = list(flatten(x0, form))

    def make() -> tuple[GraphFunction, list[Node]]:
        return _solver(s, form, captures)

    made, more = memoised(s, "fixed_point", captures, make, lambda found: not found[1])
    return build(form, iter(apply(made, *start, tolerance, most, *captures.numbers, *more)), "")


def _solver(s: Specialiser, form: AbstractValue, captures: Captures) -> tuple[GraphFunction, list[Node]]:
    """The function of the graph that solves the equation, and the free variables that it takes as last arguments."""
    states, inner = variables(leaf_types(form)), variables(captures.types)

    def run() -> list[Node]:
        f, _ = captures.values(iter(inner))
        found = s.call(f, [build(form, iter(states), "")])
        try:
            return list(flatten(found, form))
        except Error:
            raise Error(
                f"fixed_point: f should return {describe_abstract(form)}, with the structure of x0, and it returned "
                f"{describe(found)}"
            ) from None

    outputs = isolated(s, "fixed_point: f", run)
    more = free_variables(outputs, [*states, *inner])
    return solver(Graph((*states, *inner, *more), tuple(outputs)), len(states)), more


def _outline(p: AbstractValue) -> Any:
    """The structure of an abstract value with types in the place of its numbers, to be compared."""
    if isinstance(p, Structured):
        return p.key, tuple(map(_outline, p.parts))
    if isinstance(p, Heaped):
        return p.kinds
    return p.type if isinstance(p, Dynamic) else p.value


def _tolerance(x: Any) -> Node:
    t = type_of(x)
    if t is None or t.shape or t.kind == "boolean" or (not isinstance(x, Node) and not 0.0 <= x < math.inf):
        raise Error(f"fixed_point: tolerance must be a real from 0, not {describe(x)}")
    return node_of(x) if isinstance(x, Node) else constant(float(x))


def _most(x: Any) -> Node:
    t = type_of(x)
    if t is None or t.shape or t.kind != "integer" or (not isinstance(x, Node) and x < 1):
        raise Error(f"fixed_point: max_steps must be a whole number from 1, not {describe(x)}")
    return x if isinstance(x, Node) else whole(x)
