"""Points-to analysis: which objects a variable of a program may point to, after Andersen (1994).

Four clauses over facts that a compiler reads off a program: the recursive core of pointer analysis in Datalog. In
`boolean` an item is derived or it is not; the same clauses find which calls may go where, as functions are objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dynagrad as dg

PROGRAM = """
:- semiring boolean.
:- input new/2.        % new(V,O):      v = new O
:- input assign/2.     % assign(V,W):   v = w
:- input store/3.      % store(V,F,W):  v.f = w
:- input load/3.       % load(V,W,F):   v = w.f

points(V,O) :- new(V,O).
points(V,O) :- assign(V,W), points(W,O).
points(V,O) :- load(V,W,F), points(W,B), field(B,F,O).

% field(B,F,O): the field F of the object B may hold O.
field(B,F,O) :- store(V,F,W), points(V,B), points(W,O).

alias(V,W) :- asked(V), points(V,O), points(W,O), V != W.
"""

Facts = dict[str, Any]

SMALL: Facts = {
    "new/2": [("a", "o1"), ("b", "o2"), ("c", "o3")],
    "assign/2": [("d", "a"), ("e", "d")],
    "store/3": [("a", "next", "b"), ("e", "next", "c")],
    "load/3": [("f", "d", "next"), ("g", "f", "next")],
    "asked/1": [("f",)],
}


def program(functions: int, seed: int = 0) -> Facts:
    """A made-up program: functions with a few variables each, which call those before them, and share some objects."""
    random = np.random.default_rng(seed)
    facts: dict[str, set[tuple[Any, ...]]] = {key: set() for key in ("new/2", "assign/2", "store/3", "load/3")}
    own = 8
    for f in range(functions):
        here = range(own * f, own * f + own)
        for v in here[:2]:
            facts["new/2"].add((v, f"o{v}"))
        for v in here[2:]:
            facts["assign/2"].add((v, int(random.choice(here[: v - here[0]]))))
        for _ in range(2):
            v, w = (int(x) for x in random.choice(here, 2))
            field = f"f{random.integers(40)}"
            facts["store/3"].add((v, field, w))
            facts["load/3"].add((int(random.choice(here)), int(random.choice(here)), field))
        if f:  # an argument of a call goes in, its result comes back
            called = max(0, f - int(random.geometric(0.02)))
            facts["assign/2"].add((own * called + 4, here[0]))
            facts["assign/2"].add((here[6], own * called + 7))
    return {**{key: sorted(rows) for key, rows in facts.items()}, "asked/1": [(0,)]}


def data(size: str = "small") -> tuple[Facts, list[Facts]]:
    """The facts of a program; one run needs no more."""
    return (SMALL if size == "small" else program(8000)), [{}]


def main(size: str = "small") -> Iterator[tuple[str, float]]:
    facts, (nothing,) = data(size)
    yield "statements", sum(len(facts[key]) for key in ("new/2", "assign/2", "store/3", "load/3"))

    chart = dg.Program(PROGRAM).bind(facts).run(nothing)
    yield "pairs of a variable and an object", float(len(chart.table("points/2")))
    yield "contents of fields", float(len(chart.table("field/3")))
    yield "aliases of the variable that was asked about", float(len(chart.table("alias/2")))


def figure(path: str) -> None:
    import matplotlib.pyplot as plt

    chart = dg.Program(PROGRAM).run(program(8000))
    variables, counts = np.unique(np.array([v for v, _, _ in chart.table("points/2")]), return_counts=True)
    with plt.style.context(Path(__file__).with_name("recipe.mplstyle")):
        _, axes = plt.subplots()
        axes.hist(counts, bins=np.geomspace(1, counts.max() + 1, 40).tolist())
        axes.set(xscale="log", yscale="log", xlabel="objects that a variable may point to", ylabel="variables")
        axes.set_title(f"{len(variables):,} variables")
        plt.savefig(path)
        plt.close()


if __name__ == "__main__":
    for what, value in main("real"):
        print(f"{what}: {value:,.6g}")
