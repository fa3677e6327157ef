"""Machine code for terms: the evaluator runs on nodes of the op graph, and `codegen` makes code of what comes out.

Functions, duals and pullbacks are gone by then. A term of reals is a program whose numerals are its inputs; a function
of reals has its arguments as inputs. No derivatives are taken here.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from ...codegen.graph.native import Native
from ...errors import Error, ValueRangeError, counted, shown
from ...ir import Node, constant, variable
from ...ir.control import Graph
from ...ir.node import as_node
from ...ir.operation import as_number
from .cells import ZERO, Coefficients, applied, mapped
from .evaluate import Evaluator, by_type, value_in
from .infer import infer
from .rename import FreshNames, names_of
from .terms import Num, PullbackTerm, Var, children, rebuilt
from .trampoline import Call
from .trampoline import run as run_call
from .trees import checked_steps, leaves
from .types import Arrow, DualType, TermType, flat, resolved, show

MOST_STEPS = 2_000_000
"""How many steps of evaluation may go into a graph: each primitive on the way is a line of C++."""


class CompiledTerm:
    """A term as machine code. `graph` is what was compiled; it is called with what the term's function takes."""

    def __init__(self, graph: Graph, shape: Any, numerals: list[float] | None) -> None:
        self.graph, self.shape, self.numerals = graph, shape, numerals
        self.native = Native(graph, "pullback")

    def __call__(self, *arguments: Any) -> Any:
        if self.numerals is not None:
            if arguments:
                raise Error("the compiled term is no function, and takes no argument")
            given = self.numerals
        else:
            given = _numbers(arguments)
            if len(given) != len(self.graph.inputs):
                raise Error(
                    f"the function takes {counted(len(self.graph.inputs), 'number')}, and was given {len(given)}"
                )
        results = list(self.native(*given))
        if not all(map(math.isfinite, results)) and all(map(math.isfinite, given)):
            raise ValueRangeError(
                f"the compiled term gives {results[:6]} there: it has no value or no derivative. "
                "Evaluate it in place of compiling it to see where."
            )
        each = iter(results)
        return mapped(lambda _: next(each), self.shape)


def compile(of: PullbackTerm | str, *, filename: str = "", max_steps: int = MOST_STEPS) -> CompiledTerm:
    """A term of reals, or a function of reals to reals or their duals, as machine code.

    More than `max_steps` small steps of making the graph are an error.

    >>> compile("(Ω λ<x, y>. square((x + 1) * (2 * x + y * y))) . (λ_. 1^)")(1.0, 3.0)
    (660.0, 528.0)
    """
    typed, max_steps = infer(of, filename=filename), checked_steps(max_steps)
    type = resolved(typed.type)
    if typed.free:
        raise Error(f"`{next(iter(typed.free))}` is free in the term; only closed terms are compiled")
    if isinstance(type, Arrow):
        if not flat(type.source) or not _is_result(type.target):
            raise Error(f"a function from reals to reals or their dual is compiled, and this has the type {show(type)}")
        inputs: list[Node] = []
        argument = by_type(type.source, ZERO, lambda *_: _variable(inputs))
        evaluator = Evaluator(typed, max_steps)
        found: list[Any] = []
        evaluator.run(applied(value_in(evaluator, {}), argument, found.append))
        return _made(inputs, found[0], type.target, None)
    if not _is_result(type):
        raise Error(f"a term of reals or their dual is compiled, and this has the type {show(type)}")
    abstracted, values = _abstracted(typed.term)
    again = dataclasses.replace(infer(abstracted), source=typed.source, filename=filename)
    given = {name: variable(f"c{index}") for index, name in enumerate(values)}
    value = value_in(Evaluator(again, max_steps), dict(given))
    return _made(list(given.values()), value, type, list(values.values()))


def _variable(inputs: list[Node]) -> Node:
    inputs.append(variable(f"x{len(inputs)}"))
    return inputs[-1]


def _is_result(type: TermType) -> bool:
    type = resolved(type)
    return flat(type.of if isinstance(type, DualType) else type)


def _made(inputs: list[Node], value: Any, type: TermType, numerals: list[float] | None) -> CompiledTerm:
    type = resolved(type)
    if isinstance(value, Coefficients):
        value = value.tree
    shape = by_type(type.of if isinstance(type, DualType) else type, value, lambda _, leaf: _node(leaf))
    return CompiledTerm(Graph(tuple(inputs), tuple(leaves(shape))), shape, numerals)


def _node(value: Any) -> Node:
    node = None if value is ZERO else as_node(value)
    return constant(0.0) if node is None else node


def _numbers(value: Any) -> list[float]:
    found: list[float] = []
    todo = [value]
    while todo:
        part = todo.pop()
        if isinstance(part, tuple):
            todo += reversed(part)
            continue
        number = as_number(part)
        if number is None:
            raise Error(f"the function takes numbers, and was given {shown(part)}")
        found.append(float(number))
    return found


def _abstracted(of: PullbackTerm) -> tuple[PullbackTerm, dict[str, float]]:
    """The term with a variable for each numeral, and their values."""
    names, values = FreshNames(names_of(of)), {}

    def walk(here: PullbackTerm) -> Call[PullbackTerm]:
        if isinstance(here, Num):
            name = names.fresh("c")
            values[name] = here.value
            return Var(name, span=here.span)
        parts = []
        for part in children(here):
            parts.append((yield walk(part)))
        return rebuilt(here, parts)

    return run_call(walk(of)), values
