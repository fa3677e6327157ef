"""Programs whose predicates, variables and constants are called as what is generated for them, as keywords, macros and
members of the runtime: they give what the same programs give under plain names. Costs about ten seconds, since each
program is compiled for its values, its gradient, its derivatives forward, its derivations and its changes.
"""

from __future__ import annotations

import itertools
import random
import re
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.codegen.rules.scope import local, table_name
from dynagrad.runtime.compiling.toolchain import INCLUDE

GENERATED = re.findall(
    r"\S+",
    """
    add_a g_a a add_add_a h_a ga_a gt_a push_a pop_a pop_row_a enter_a mark_a marked_a indexed_a axioms_a facts_a
    relation_a old_a nodes_a rows_a from_a wait_a aim_a total_a factors_a again_a undo_a nothing_a arrive_a excused_a
    outside_a order_a extents_a resting_of_a g_axioms_a member_a node_a parent_a a_by0 a_by1 by0 rule1 back1 derive1
    rule0_from1_a p0 p1 p0_a p1_a p2_p1_a a_1 a_11 x1 x_1 x1_1 low0 low0_0 span0 beam0 agenda0 undo0 again0 stage0
    """,
)
TAKEN = re.findall(
    r"\S+",
    """
    int for class new this operator template namespace void double true nullptr NULL EOF INT_MAX isfinite linux
    errno assert value_t semiring program tables weight world tape position collected report settings halt budget run
    change pass restore swap reach cell at value pending seen popped items table locate find place Dense Hashed Array
    World Handle Terms Index Facts std dynagrad main malloc memcpy log exp min max sum
    """,
)
ODD = ["N P", "n p", "n-p", "N" * 300, "N" * 299 + "M", "É", "été", "日本", "λ", "_", "__", "_A", "__FILE__", "2nd"]
ODD += ["*/", "//", "\\", "x\\", "??/", '"; int ran = 1; "', "\n#error x", "{0}", "%s", "a b", "a_b", "a__b", "A", "aA"]
ODD += ["Aa", "'"]
VARIABLES = re.findall(r"\S+", "X NULL EOF INT_MAX Terms Handle World Array Y Value_t X² __FILE__ _x1 I")


def quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"


def source(names: Sequence[str], variables: Sequence[str], symbols: Sequence[str]) -> str:
    """A chain of items, each with a fact, with joins of two items, terms, sides and axioms, over these names."""
    f, d = names[: len(names) // 2], names[len(names) // 2 :]
    x = itertools.cycle(variables)
    lines = []
    for n, name in enumerate(d):
        a, b = next(x), next(x)
        fact, head = quoted(f[n % len(f)]), quoted(name)
        if not n:
            lines.append(f"{head}({a}) += {fact}({a}).")
            continue
        below = quoted(d[n - 1])
        kind = n % 5
        if kind == 0:
            lines.append(f"{head}({b}) += {below}({a}) * {fact}({a},{b}).")
        elif kind == 1:
            lines.append(f"{head}({a}) += {below}({a}) * {quoted(d[n // 2])}({a}) * SIDE({fact}({a})).")
        elif kind == 2:
            lines.append(f"{head}({a}) += {below}({a}) * {fact}.")
        elif kind == 3:
            term = f"{quoted(symbols[n % len(symbols)])}({a},{quoted(symbols[-1])})"
            lines.append(f"{head}({term}) += {below}({a}). {head}({a}) += {head}({term}) * {fact}({a}).")
        else:
            lines.append(f"{head}({a}) += {below}({a}) * {quoted(names[0])}({b}) for {a} != {b}.")
    lines.append(f"goal += {quoted(d[-1])}({next(x)}).")
    return "\n".join(lines)


def facts(names: Sequence[str]) -> dict[str, Any]:
    """The same facts for the same places in the list."""
    generator = random.Random(4)
    found: dict[str, Any] = {}
    for name in names[: len(names) // 2]:
        found[f"{name}/1"] = [(a, generator.uniform(0.5, 1.5)) for a in "uv"]
        found[f"{name}/2"] = [(a, b, generator.uniform(0.5, 1.0)) for a in "uv" for b in "uv"]
        found[f"{name}/0"] = generator.uniform(0.5, 1.5)
    return found


def asked(program: Any, names: Sequence[str]) -> list[Any]:
    """What a program says, with everything in the order of the names."""
    used = {k: v for k, v in facts(names).items() if k in program.inputs}
    assert len(used) == len(program.inputs) > len(names) // 4
    chart = program.run(used)
    found = [chart["goal"]]
    gradient = chart.gradient("goal")
    found += [gradient[key].values.ravel().tolist() for key in used]
    found.append(len(chart.forest("goal").instances))
    best = chart.best("goal")
    found += [best.weight, len(best), len(best.facts())]
    first = next(iter(used))
    arity = int(first[-1])
    direction = {first: [(*row[:arity], 1.0) for row in used[first]]}
    found.append(chart.jvp(direction)["goal"])
    chart.set(first, [(*row[:arity], 0.25) for row in used[first]])
    chart.retract(first, [used[first][0][:arity]])
    found.append(chart.run()["goal"])
    return found


def flat(found: Any) -> list[float]:
    return [float(y) for x in found for y in (flat(x) if isinstance(x, (list, tuple)) else [x])]


def compare(names: Sequence[str], variables: Sequence[str], symbols: Sequence[str]) -> None:
    plain = [f"q{n}" for n in range(len(names))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.ProgramWarning)
        one = asked(dg.Program(source(names, variables, symbols), "real"), names)
        other = asked(dg.Program(source(plain, ["X", "Y"], [f"s{n}" for n in range(len(symbols))]), "real"), plain)
    assert flat(one) == pytest.approx(flat(other), rel=1e-12)


@pytest.mark.parametrize("names", [GENERATED, TAKEN, ODD], ids=["generated", "taken", "odd"])
def test_a_program_may_use_any_names(names: Sequence[str]) -> None:
    names = list(dict.fromkeys(names))
    names = names[: len(names) // 2 * 2]
    compare(names, VARIABLES, [*names[-3:], *names[:2]])


# Next to each other: what is made for one predicate has the name that another would have.
@pytest.mark.parametrize("first", ["add_", "g_", "push_", "facts_", "axioms_", "nodes_", "rows_", "mark_", "from_"])
def test_names_made_of_names_differ(first: str) -> None:
    for n, key in enumerate(("a/1", f"{first}a/1", "a_1/1", "A/1", "a_by0/1")):
        assert table_name(key, n) not in {
            f"{first}{table_name(k, m)}" for m, k in enumerate(("a/1", "a_1/1", "p0_a/0"))
        }


def declared() -> set[str]:
    """The words of all headers of the runtime."""
    return {w for h in INCLUDE.rglob("*.hpp") for w in re.findall(r"[A-Za-z_]\w*", h.read_text())}


def test_no_name_of_the_runtime_is_that_of_a_predicate_or_a_variable() -> None:
    words = declared()
    assert not [w for w in words if re.search(r"(^|_)p\d+_", w)]
    assert not [w for w in words if w[0].isupper() and w.endswith("_")]
    assert not {local(name) for name in VARIABLES} & words


def test_functions_and_externals_may_have_any_names() -> None:
    names = ["a", "add_a", "t0", "double", "now", "cell", "call0", "functions", "log_of", "isfinite", "program", "p0_a"]
    lines: list[str] = []
    functions: dict[str, Any] = {}
    for n, name in enumerate(names):
        lines.append(f":- function {name}/1. :- external {name}/2. r{n} += {name}(w(X)) * {name}(X,Y) * v(Y).")
        lines.append(f"goal += r{n}.")
        functions |= {
            name: (lambda k: lambda x: x * (k + 1))(n),
            f"{name}/2": (lambda k: lambda x, y: float(x + y + k))(n),
        }
    program = dg.Program("\n".join(lines), functions=functions)
    chart = program.run({"w/1": [(1, 0.5), (2, 0.25)], "v/1": [(1, 1.0), (3, 2.0)]})
    w, v = {1: 0.5, 2: 0.25}, {1: 1.0, 3: 2.0}

    def value(w: dict[int, float]) -> float:
        return sum(w[x] * (n + 1) * (x + y + n) * v[y] for n in range(len(names)) for x in w for y in v)

    assert chart["goal"] == pytest.approx(value(w))
    slope = [value({1: 1.0, 2: 0.0}), value({1: 0.0, 2: 1.0})]
    np.testing.assert_allclose(chart.gradient("goal")["w/1"].values, slope)
