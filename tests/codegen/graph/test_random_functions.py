"""Random Python functions and their derivatives: one value by every way of computing it.

A function is differentiated eagerly in both modes, and specialised to a graph that is interpreted and compiled; its
tangents and adjoints are graphs too. All agree to rounding. Costs a few seconds.
"""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import dynagrad as dg
from compiler.test_random_programs import ALLOWED, HEAD, LAST, Writer
from dynagrad.autodiff.derive import generate_adjoints, tangents
from dynagrad.codegen.graph import run
from dynagrad.compiler.specialised import key_of, specialised
from dynagrad.errors import LiftError
from dynagrad.ir.control import Graph
from dynagrad.ir.interpret import run as interpret
from dynagrad.ir.node import Node, constant
from dynagrad.passes.optimise import optimise


class Changeless(Writer):
    """Writes functions that change no array in place, so that they can be differentiated without a graph."""

    def statement(self, indent: str) -> list[str]:
        lines = super().statement(indent)
        first = lines[0].strip()
        if first.startswith("a[a "):
            return [f"{indent}a = np.where(a {first[4]} 0.4, a * y, a)"]
        if first.startswith("a.reshape"):
            return [f"{indent}a = np.concatenate([a[1:], a.reshape(3, 1)[0] * z])"]
        if first.startswith("a["):
            place, value = first[2:].replace("-1]", "2]").split("]", 1)
            return [f"{indent}a = np.where(np.arange(3) == {place}, {value.split('= ', 1)[1]}, a)"]
        return [f"{indent}a = np.concatenate([a[1:] * x, np.stack([y])])"] if first == "b = a" else lines

    def loop(self, indent: str) -> list[str]:
        return self._counted(indent, f"for NAME in range({self.random.choice('235')}):", False)

    def program(self) -> str:
        lines = [line for _ in range(2) for line in self.block("    ")]
        return HEAD.replace("        a[0] = y\n", "") + "\n".join(lines) + "\n" + LAST


def defined(text: str) -> tuple[Callable[..., Any], Graph]:
    """The function of a text, and its graph; the text is read from a file when the function is traced."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "random_function.py"
        file.write_text(text)
        spec = importlib.util.spec_from_file_location(file.stem, file)
        assert spec is not None and spec.loader is not None
        module: Any = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.f, specialised(module.f, ARGUMENTS, {}).graph


ARGUMENTS = (0.7, np.array([0.3, -0.2, 0.9]))
DIRECTION = (0.5, np.array([1.0, -0.25, 2.0]))


def with_derivatives(graph: Graph) -> Graph:
    """The value, its adjoints, and its tangent along the direction."""
    (y,) = graph.outputs
    back = generate_adjoints([y], [constant(1.0)], graph.inputs)
    outputs = [y, *(_or_zeros(back[x], x) for x in graph.inputs)]
    along = dict(zip(graph.inputs, map(constant, DIRECTION), strict=True))
    outputs += [_or_zeros(d, y) for d in tangents([y], along)]
    return Graph(graph.inputs, tuple(outputs))


def _or_zeros(derivative: Node | None, of: Node) -> Node:
    return constant(np.zeros(of.shape) if of.shape else 0.0) if derivative is None else derivative


@settings(max_examples=7, deadline=None, derandomize=True)
@given(st.integers(0, 10_000))
def test_all_ways_agree(seed: int) -> None:
    text = Changeless(seed).program()
    try:
        f, graph_of = defined(text)
    except LiftError as refused:
        assert any(reason in str(refused) for reason in ALLOWED), text
        assume(False)
    graph, values = with_derivatives(graph_of), key_of(ARGUMENTS, {})[1]
    try:
        value, forward = dg.jvp(f, ARGUMENTS, DIRECTION)
    except dg.Error as refused:  # int(x) is a step where it is compiled, and refused where it runs
        assert "turning it into a whole number" in str(refused), text
        assume(False)
    wanted = (f(*ARGUMENTS), *dg.grad(f, argnums=(0, 1))(*ARGUMENTS), forward)
    assert np.isclose(value, wanted[0], rtol=1e-12), text
    along = wanted[1] * DIRECTION[0] + wanted[2] @ DIRECTION[1]
    assert np.isclose(forward, along, rtol=1e-9, atol=1e-11), text
    for found in (interpret(graph, values), run(optimise(graph), values, optimise=0)):
        for got, expected in zip(found, wanted, strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-11, err_msg=text)
