"""Machine code for terms: the evaluator runs on nodes of the op graph, and `codegen` makes code of what comes out.

Functions, duals and pullbacks are gone by then. A term of reals is a program whose numerals are its inputs; a function
of reals has its arguments as inputs. No derivatives are taken here.
"""

from __future__ import annotations

from typing import Any

from ...codegen.graph.native import Native
from ...errors import Error
from ...ir import constant, variable
from ...ir.control import Graph
from ...ir.node import as_node
from .evaluate import ZERO, Coefficients, applied, outside, run, value_in
from .infer import infer
from .parse import parse
from .rename import Names, names_of
from .terms import Num, Term, Var, children, rebuilt
from .trampoline import Call
from .trampoline import run as run_call
from .types import Arrow, Dual, Product, Real, Type, flat, resolved, show


class Compiled:
    """A term as machine code. `graph` is what was compiled; it is called with what the term's function takes."""

    def __init__(self, graph: Graph, shape: Any, numerals: list[float] | None) -> None:
        self.graph, self.shape, self.numerals = graph, shape, numerals
        self.native = Native(graph, "pullback")

    def __call__(self, *arguments: Any) -> Any:
        if self.numerals is not None:
            given = self.numerals
        else:
            given = _leaves(arguments if len(arguments) > 1 else arguments[0])
            if len(given) != len(self.graph.inputs):
                raise Error(f"the function takes {len(self.graph.inputs)} numbers, and was given {len(given)}")
        results = iter(self.native(*given))
        return _filled(self.shape, results)


def compile(of: Term | str) -> Compiled:
    """A term of reals, or a function of reals to reals or their duals, as machine code.

    >>> compile("(Ω λ<x, y>. square((x + 1) * (2 * x + y * y))) . (λ_. 1^)")(1.0, 3.0)
    (660.0, 528.0)
    """
    text = of if isinstance(of, str) else ""
    parsed = parse(of) if isinstance(of, str) else of
    typed = infer(parsed, text)
    type = resolved(typed.type)
    if typed.free:
        raise Error(f"`{next(iter(typed.free))}` is free in the term; only closed terms are compiled")
    if isinstance(type, Arrow):
        if not flat(type.source) or not _result(type.target):
            raise Error(f"a function from reals to reals or their dual is compiled, and this has the type {show(type)}")
        inputs: list[Any] = []
        argument = _variables(type.source, inputs)
        function = value_in(typed, {})
        found: list[Any] = []
        run(applied(function, argument, found.append))
        return _made(inputs, found[0], type.target, None)
    if not _result(type):
        raise Error(f"a term of reals or their dual is compiled, and this has the type {show(type)}")
    lifted, values = _lifted(typed.term)
    again = infer(lifted)
    given = {name: variable(f"c{index}") for index, name in enumerate(values)}
    return _made(list(given.values()), value_in(again, dict(given)), type, list(values.values()))


def _result(type: Type) -> bool:
    type = resolved(type)
    return flat(type.of if isinstance(type, Dual) else type)


def _made(inputs: list[Any], value: Any, type: Type, numerals: list[float] | None) -> Compiled:
    outputs: list[Any] = []
    type = resolved(type)
    if isinstance(value, Coefficients):
        value = value.tree
    shape = _shape(value, type.of if isinstance(type, Dual) else type, outputs)
    return Compiled(Graph(tuple(inputs), tuple(outputs)), shape, numerals)


def _shape(value: Any, type: Type, outputs: list[Any]) -> Any:
    type = resolved(type)
    if isinstance(type, Product):
        first, second = (ZERO, ZERO) if value is ZERO else value
        return _shape(first, type.first, outputs), _shape(second, type.second, outputs)
    node = as_node(outside(value))
    outputs.append(constant(0.0) if node is None else node)
    return None


def _variables(type: Type, inputs: list[Any]) -> Any:
    type = resolved(type)
    if isinstance(type, Product):
        return _variables(type.first, inputs), _variables(type.second, inputs)
    assert isinstance(type, Real)
    inputs.append(variable(f"x{len(inputs)}"))
    return inputs[-1]


def _leaves(value: Any) -> list[float]:
    return [leaf for part in value for leaf in _leaves(part)] if isinstance(value, tuple) else [float(value)]


def _filled(shape: Any, results: Any) -> Any:
    if shape is None:
        return next(results)
    return _filled(shape[0], results), _filled(shape[1], results)


def _lifted(of: Term) -> tuple[Term, dict[str, float]]:
    """The term with a variable for each numeral, and their values."""
    names, values = Names(names_of(of)), {}

    def walk(here: Term) -> Call[Term]:
        if isinstance(here, Num):
            name = names.fresh("c")
            values[name] = here.value
            return Var(name)
        parts = []
        for part in children(here):
            parts.append((yield walk(part)))
        return rebuilt(here, parts)

    return run_call(walk(of)), values
