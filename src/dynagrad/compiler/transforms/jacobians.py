"""Jacobians inside compiled functions: a tangent for each input (`jacfwd`), or an adjoint for each output (`jacrev`).

Up to `UNROLLED` columns are computed one by one, more by a loop of the graph. Those of functions that run eagerly are
in `eager/verbs/jacobians.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...autodiff import derive
from ...eager.numpy.functions import FUNCTIONS
from ...eager.verbs import gradients as plain
from ...errors import Error
from ...ir import Node, builders
from ...ir.node import constant, whole
from ...ir.ops import places
from ...ir.types import arrays, real
from ..evaluate.joins import AbstractValue, Static, Structured
from ..evaluate.specialiser import Args, Named, Specialiser
from ..evaluate.values import Array, HostFunction, type_of, zero
from .primal_trace import PrimalTrace, at_path, functions_in, partially_applied, with_functions
from .returned import calls_differentiated

UNROLLED = 8  # columns of a Jacobian that are taken one by one


def _columns(nodes: Sequence[Node], take: Callable[[list[Node]], list[Node]]) -> list[list[Node]]:
    """The columns of a linear map from reals with the types of `nodes`: its values at all unit vectors. For each node,
    arrays whose first axis runs over the elements of that node."""
    found = []
    for at, node in enumerate(nodes):

        def column(k: Any, at: int = at, node: Node = node) -> list[Node]:
            seeds: list[Node] = [zero(n.type) for n in nodes]
            if node.shape:
                flat = places.at_set(zero(arrays(real, (node.size,))), k, constant(1.0))
                seeds[at] = FUNCTIONS[np.reshape](flat, node.shape)
            else:
                seeds[at] = constant(1.0)
            return take(seeds)

        found.append(_each(node.size, column))
    return found


def _each(size: int, column: Callable[[Any], list[Node]]) -> list[Node]:
    """The results of a function at 0, 1, ..., stacked along a new first axis."""
    if size <= UNROLLED:
        each = [column(k) for k in range(size)]
        return [_stack(list(column)) for column in zip(*each, strict=True)]
    init = [zero(arrays(real, (size, *n.shape))) for n in column(0)]

    def body(k: Node, *sofar: Node) -> list[Node]:
        return [places.at_set(a, k, n) for a, n in zip(sofar, column(k), strict=True)]

    return builders.repeat(whole(size), body, init)


def _component(node: Node, k: Any) -> Node:
    """One element of a node."""
    if not node.shape:
        return node
    found: Node = FUNCTIONS[np.reshape](node, (node.size,))[k]
    return found


def _stack(nodes: list[Node]) -> Any:
    return FUNCTIONS[np.stack](nodes)


def _primal_trace(
    s: Specialiser, verb: str, f: Any, argnums: Any, args: Args, named: Named
) -> tuple[PrimalTrace, bool]:
    places_ = plain.chosen(verb, argnums, len(args))
    xs = [args[i] for i in places_]
    if next(functions_in(tuple(xs)), None) is not None:
        raise Error(f"{verb}: an argument is a function, which has no coordinates; use dg.jvp or dg.vjp")
    return PrimalTrace(s, verb, partially_applied(f, places_, args, named), xs), not isinstance(argnums, tuple)


def _with_functions(verb: str, trace: PrimalTrace, found: Any, f: Any, argnums: Any, args: Args, named: Named) -> Any:
    """A Jacobian with a function wherever the result has one: the Jacobian of its calls."""

    def differentiate(s: Specialiser, call: HostFunction, xs: Args, others: Named) -> Any:
        return {"jacfwd": jacfwd, "jacrev": jacrev}[verb](s, call, argnums, xs, others)

    def change(path: tuple[int, ...]) -> Any:
        return calls_differentiated(verb, (argnums,), at_path(trace.value, path), path, f, args, named, differentiate)

    return with_functions(found, change)


def jacfwd(s: Specialiser, f: Any, argnums: Any, args: Args, named: Named) -> Any:
    """The Jacobian, a tangent for each input."""
    trace, alone = _primal_trace(s, "jacfwd", f, argnums, args, named)

    def take(seeds: list[Node]) -> list[Node]:
        found = derive.tangents(trace.outputs, dict(zip(trace.variables, seeds, strict=True)))
        return trace.closed(found, trace.outputs)

    columns = _columns(trace.variables, take)
    table = [
        [_argument_axes_last(columns[i][o], v.shape, out.shape) for i, v in enumerate(trace.variables)]
        for o, out in enumerate(trace.outputs)
    ]
    return _with_functions("jacfwd", trace, _assembled(trace, table, alone), f, argnums, args, named)


def _argument_axes_last(found: Node, inner: tuple[int, ...], outer: tuple[int, ...]) -> Any:
    """Moves the axis over elements of the argument last, and gives it the shape of the argument."""
    n = len(outer)
    last = FUNCTIONS[np.transpose](found, (*range(1, n + 1), 0))
    return FUNCTIONS[np.reshape](last, (*outer, *inner))


def jacrev(s: Specialiser, f: Any, argnums: Any, args: Args, named: Named) -> Any:
    """The Jacobian, an adjoint for each output."""
    trace, alone = _primal_trace(s, "jacrev", f, argnums, args, named)

    def take(output: Node) -> list[Node]:
        found = derive.generate_adjoints([output], [1.0], trace.variables)
        return trace.closed([found[v] for v in trace.variables], trace.variables)

    rows = [_each(out.size, lambda k, out=out: take(_component(out, k))) for out in trace.outputs]  # type: ignore[misc]  # mypy infers no type for a default
    table = [
        [FUNCTIONS[np.reshape](rows[o][i], (*out.shape, *v.shape)) for i, v in enumerate(trace.variables)]
        for o, out in enumerate(trace.outputs)
    ]
    return _with_functions("jacrev", trace, _assembled(trace, table, alone), f, argnums, args, named)


def _assembled(trace: PrimalTrace, table: list[list[Any]], alone: bool) -> Any:
    """A Jacobian in the structure of the result, with that of the arguments inside."""
    rows = iter(table)

    def leaf(p: AbstractValue, counts: bool = True) -> Any:
        if isinstance(p, Static):
            t = type_of(p.value)
            if t is None or not counts:  # whole numbers in fields of a class are constants
                return trace.known(p.value)
            row = iter([zero(arrays(real, (*t.shape, *v.shape))) for v in trace.variables])
        elif isinstance(p, Structured):
            counts = counts and (p.key[0] in ("list", "dict") or p.key[:2] == ("tuple", tuple))
            return p.make([leaf(part, counts) for part in p.parts])
        else:
            row = iter(next(rows))
        found = within(trace.form, row)
        return found[0] if alone else found

    def within(p: AbstractValue, nodes: Iterator[Any]) -> Any:
        if isinstance(p, Static):
            return p.value
        if isinstance(p, Structured):
            return p.make([within(part, nodes) for part in p.parts])
        node = next(nodes)
        return Array(node) if node.shape else node

    return leaf(trace.result)
