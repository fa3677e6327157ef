"""At first order, reduction performs exactly the sweeps of the op graph: the same primitives at the same numbers in the
same order on the way there, the same partial derivatives and the same additions on the way back.

The op graph is made beside the term, of a program in a list, and swept with floats by `autodiff.sweep`.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from dynagrad.autodiff import sweep
from dynagrad.ir import Node, variable
from dynagrad.languages.pullback import reduce
from dynagrad.languages.pullback.primitives import BASE, PrimitiveFunction
from dynagrad.languages.pullback.reduction.reduce import Reducer
from dynagrad.languages.pullback.terms import Covector, Num, Prim

Line = tuple[str, str, list[str]]
"""A variable, the primitive that it is bound to, and the variables that this takes."""
NAMES = {operation: name for name, operation in BASE.items()}
POINT = {"x": 0.75, "y": -1.25, "z": 0.5}


def straight_line(pick: random.Random, count: int) -> list[Line]:
    """A program in which everything counts for the last variable."""
    lines: list[Line] = []
    known, unused = list(POINT), list(POINT)
    while len(lines) < count or len(unused) > 1:
        name = pick.choice(["sin", "tanh", "square", "mult", "mult", "add"] if len(lines) < count else ["add"])
        taken = [unused.pop(pick.randrange(len(unused)))]
        if name in ("mult", "add"):
            taken.append(
                unused.pop() if (unused and pick.random() < 0.4) or len(lines) >= count else pick.choice(known)
            )
        made = f"v{len(lines)}"
        lines.append((made, name, taken))
        known.append(made)
        unused.append(made)
    return lines


def text_of(lines: list[Line]) -> str:
    written = {"mult": "{} * {}", "add": "{} + {}"}
    body = "".join(f"let {made} = {written.get(f, f + '({})').format(*taken)} in " for made, f, taken in lines)
    at = ", ".join(map(str, POINT.values()))
    return f"((Ω λ<{', '.join(POINT)}>. {body}{lines[-1][0]}) . (λ_. 1^)) <{at}>"


Sweeps = tuple[list[Any], list[Any], int, list[float]]
"""The primitives of the forward phase, those of the reverse phase with their partial derivatives, the number of
additions of adjoints, and the gradient."""


def by_the_graph(lines: list[Line]) -> Sweeps:
    nodes: dict[str, Any] = {name: variable(name) for name in POINT}
    for made, f, taken in lines:
        x = [nodes[name] for name in taken]
        nodes[made] = x[0] + x[1] if f == "add" else BASE[f](*x)
    series = list(dict.fromkeys(nodes[made] for made, _, _ in lines))
    values: dict[Node, float] = {nodes[name]: at for name, at in POINT.items()}
    forward, reverse, additions = [], [], 0
    for node in series:
        given = [values[x] for x in node.arguments]
        values[node] = node.operation(*given)
        forward.append((NAMES.get(node.operation, "add"), given, values[node]))

    def generate(node: Node, delta: float) -> list[tuple[Node, float]]:
        if node.is_variable:
            return []
        given = [values[x] for x in node.arguments]
        partials = [rule(1.0, values[node], *given) for rule in node.operation.tangent]
        reverse.append((NAMES.get(node.operation, "add"), given, partials))
        return [(x, slope * delta) for x, slope in zip(node.arguments, partials, strict=True)]

    def add(a: float, b: float) -> float:
        nonlocal additions
        additions += 1
        return a + b

    inputs = [nodes[name] for name in POINT]
    found = sweep([*inputs, *series], {series[-1]: 1.0}, add, generate, set(inputs))
    return forward, reverse, additions, [found[x] for x in inputs]


def by_reduction(lines: list[Line], monkeypatch: pytest.MonkeyPatch) -> Sweeps:
    reverse, additions = [], 0
    slopes, plus = PrimitiveFunction.slopes, Reducer.add

    def seen(self: PrimitiveFunction, given: list[float], which: slice = slice(None)) -> list[float]:
        reverse.append((self.name, given, slopes(self, given, which)))
        return reverse[-1][2]

    def counted(self: Reducer, u: Any, v: Any, of: Any = None) -> Any:
        nonlocal additions
        additions += isinstance(u, Covector) and isinstance(v, Covector) and not isinstance(u.coefficients, tuple)
        return plus(self, u, v, of)

    with monkeypatch.context() as patch:
        patch.setattr(PrimitiveFunction, "slopes", seen)
        patch.setattr(Reducer, "add", counted)
        reduction = reduce(text_of(lines))
        steps = list(reduction)
    forward = []
    for step in steps:
        if step.phase == "forward" and step.rule in ("3", "sum"):
            redex, value = step.redex, step.contractum
            assert isinstance(value, Num)
            parts = redex.argument if isinstance(redex, Prim) else redex
            given = [parts.value] if isinstance(parts, Num) else [parts.first.value, parts.second.value]  # type: ignore[attr-defined]
            forward.append((redex.name if isinstance(redex, Prim) else "add", given, value.value))
    result = reduction.result
    assert isinstance(result, Covector)
    x, (y, z) = result.coefficients  # type: ignore[misc]
    return forward, reverse, additions, [x, y, z]


@pytest.mark.parametrize("seed", range(40))
def test_reduction_performs_the_sweeps_of_the_op_graph(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pick = random.Random(seed)
    lines = straight_line(pick, pick.randrange(1, 30))
    forward, reverse, additions, gradient = by_the_graph(lines)
    there, back, added, found = by_reduction(lines, monkeypatch)
    assert there == forward
    assert back == [entry for entry in reverse if entry[0] != "add"]  # whose partial derivatives are 1
    assert added == additions
    assert found == gradient


@pytest.mark.parametrize("seed", range(5))
def test_the_reverse_phase_has_a_step_for_each_primitive_from_the_last_to_the_first(seed: int) -> None:
    lines = straight_line(random.Random(seed), 12)
    steps = [step for step in reduce(text_of(lines)) if step.phase == "reverse"]
    assert {step.rule for step in steps} == {"5"}
    names = [step.redex.body for step in steps]  # type: ignore[attr-defined]
    seen = [str(body).partition("J")[2].partition(" ")[0] for body in names if " . " in str(body)]
    assert seen == [name for _, name, _ in reversed(lines) if name != "add"]
