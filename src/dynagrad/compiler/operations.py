"""Graphs as operations: a compiled function under eager differentiation.

`operation_of` makes an operation of a graph whose outputs are reals. Its value is machine code, its tangent by an input
is another graph, and its adjoint one graph for all inputs that are wanted; both are operations of the same kind, made
on demand, so derivatives nest. An operation has one result: several outputs are concatenated into a vector.

How a graph is differentiated is in `autodiff/`, how it is compiled in `codegen/graph/native.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..autodiff.derive import generate_adjoints, tangents
from ..codegen.graph.native import Native
from ..errors import Error
from ..ir.builders import merge
from ..ir.control import Graph, zero
from ..ir.node import Node, fresh
from ..ir.operation import Operation
from ..ir.ops.ravelling import ravel, unravel
from ..ir.ops.scalars import where
from ..ir.types import array, boolean
from ..ir.types import arrays as arrays_of

_MOST = 2.0**53  # whole numbers below this are exact as reals


def _together(outputs: Sequence[Node]) -> Node:
    """All outputs as one vector; a single output as it is."""
    whole: Node = ravel(outputs) if len(outputs) > 1 else outputs[0]
    return whole


def split_outputs(result: Any, shapes: Sequence[tuple[int, ...]]) -> list[Any]:
    """The outputs of these shapes, from the result of an operation of a graph."""
    return unravel(result, shapes) if len(shapes) > 1 else [result]


def operation_of(graph: Graph, name: str, timeout: float | None = None) -> Operation:
    """The operation that computes the outputs of a graph; `timeout`: the seconds that a call may take.

    >>> from dynagrad.ir import variable
    >>> x = variable("x")
    >>> double = operation_of(Graph((x,), (2.0 * x,)), "double")
    >>> double(4.0)
    8.0
    """
    result = _together(graph.outputs)
    whole = Graph(graph.inputs, (result,))
    native = Native(whole, name, timeout=timeout)
    derived: dict[Any, Any] = {}
    smooth = [i for i, v in enumerate(graph.inputs) if v.type.kind == "real"]

    exact = [(i, v.type.kind) for i, v in enumerate(graph.inputs) if v.type.kind != "real"]

    def value(*xs: Any) -> Any:
        if exact:  # whole numbers that eager operations have made reals
            given = list(xs)
            for i, kind in exact:
                given[i] = _exact(name, i, given[i], kind)
            return native(*given)[0]
        return native(*xs)[0]

    def tangent(index: int) -> Any:
        def rule(d: Any, _: Any, *xs: Any) -> Any:
            made = derived.get(index)
            if made is None:
                dot = fresh(graph.inputs[index].type)
                [found] = tangents([result], {graph.inputs[index]: dot})
                [out] = merge([zero(result.type) if found is None else found])
                made = derived[index] = operation_of(Graph((*graph.inputs, dot), (out,)), f"{name}'", timeout)
            return made(*xs, d)

        return rule

    def adjoint(wanted: Sequence[int], counts: Any, delta: Any, _: Any, *xs: Any) -> Sequence[Any]:
        """One graph for the adjoints of the inputs that are wanted; others may have no derivative."""
        key = (tuple(wanted), counts is None)
        if key not in derived:
            arriving, chosen = fresh(result.type), fresh(arrays_of(boolean, result.shape))
            seed = arriving if counts is None else where(chosen, arriving, 0.0)
            wrt = [i for i in wanted if i in smooth]
            found = generate_adjoints([result], [seed], [graph.inputs[i] for i in wrt])
            reached = {i: node for i in wrt if (node := found[graph.inputs[i]]) is not None}
            inputs = (*graph.inputs, arriving) if counts is None else (*graph.inputs, arriving, chosen)
            outputs = merge(list(reached.values()))
            made = operation_of(Graph(inputs, outputs), f"{name} back", timeout) if outputs else None
            derived[key] = (list(reached), made)
        places, made = derived[key]
        if made is None:
            return [None] * len(wanted)
        flat = made(*xs, delta) if counts is None else made(*xs, delta, counts)
        parts = dict(zip(places, split_outputs(flat, [graph.inputs[i].type.shape for i in places]), strict=True))
        return [parts.get(i) for i in wanted]

    return Operation(
        name,
        (array,) * len(graph.inputs),
        array,
        value,
        tuple(tangent(i) if i in smooth else None for i in range(len(graph.inputs))),
        "",
        partial=adjoint,
    )


def _exact(name: str, i: int, x: Any, kind: str) -> Any:
    """Whole numbers or truth values again, from what may have become reals."""
    found = np.asarray(x)
    if found.dtype.kind == "f" and kind == "integer" and np.any(np.abs(found) >= _MOST):
        raise Error(
            f"{name}: argument {i + 1} has whole numbers of 2**53 or more in it, which are not exact under a "
            "derivative; make them smaller, or let the function capture them"
        )
    return found.astype(np.int64 if kind == "integer" else bool)
