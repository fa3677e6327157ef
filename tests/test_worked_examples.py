"""The two worked examples of the derivation of Dyna's back-propagation, step by step: values, agenda and gradient
after every number of pops. (The derivation is the online appendix to Eisner, Goldlust and Smith 2005.)

Expected values are written out from the formulas printed there, in plain arithmetic, and share nothing with the package
or with the replay that other tests compare with. Costs a few seconds.
"""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.charts.chart import run_of

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.ProgramWarning")

with warnings.catch_warnings():
    warnings.simplefilter("ignore", dg.ProgramWarning)  # that the sum may diverge
    SQUARE = dg.Program("a += a*a.  a += r.")

# -- the first worked example: a += a*a. a += r. -----------------------------------------------------------------------


@pytest.mark.parametrize("r", [0.2, 0.25, -0.7, 3.0])
@pytest.mark.parametrize("pops", range(6))
def test_every_pop_of_the_square_is_one_more_substitution(r: float, pops: int) -> None:
    value, derivative, last = 0.0, 0.0, None
    for _ in range(pops):
        value, derivative, last = r + value * value, 1 + 2 * value * derivative, value
    chart = SQUARE.run({"r/0": [(r,)]}, max_pops=pops)
    assert chart["a"] == pytest.approx(value, rel=1e-14)
    pending = r if last is None else value * value - last * last
    assert chart.pending["a/0"].values == pytest.approx([pending], rel=1e-13)
    gradient = chart.gradient("a")
    assert gradient["r/0"][()] == pytest.approx(derivative, rel=1e-13)
    assert gradient["r/0"][()] == pytest.approx(square_undone(r, pops), rel=1e-13)
    assert gradient.item("a") == pytest.approx(derivative, rel=1e-13)  # r is a constant that is added to a


def square_undone(r: float, pops: int) -> float:
    """d a / d r by the backward pass as it is printed for rules of any length, with a1 = a2 = c = a.

    (The form printed after it for two antecedents passes what `gchart[a]` gets on at a1 in place of a2, where the
    general form does.)
    """
    chart, agenda, tape = 0.0, r, []
    for _ in range(pops):
        old, update = chart, agenda
        tape.append((old, update))
        chart = old + update
        agenda = update * old + chart * update  # i = 1: a2 is old; i = 2: a1 is new
    gchart, gagenda = 1.0, 0.0
    for old, update in reversed(tape):
        gagendaold, gchartnew = 0.0, gchart
        # i = 1
        gagendaold += gagenda * old
        gchart += update * gagenda
        # i = 2, whose a1 is new, so that what it gets goes to the update too
        gchart += gagenda * update
        gchartnew += gagenda * update
        gagendaold += chart * gagenda
        gagenda = gagendaold + gchartnew
        chart = old
    return gagenda


def test_without_a_tolerance_the_square_ends_where_updates_change_nothing() -> None:
    chart = SQUARE.run({"r/0": [(0.2,)]}, tolerance=0.0)
    assert chart.converged and chart.stats.pops < 200
    assert chart.gradient("a")["r/0"][()] == pytest.approx(1 / math.sqrt(0.2), rel=1e-9)


def test_after_two_pops_the_gradient_is_that_of_r_plus_r_squared() -> None:
    assert SQUARE.run({"r/0": [(0.1,)]}, max_pops=2).gradient("a")["r/0"][()] == pytest.approx(1.2, rel=1e-15)


def test_the_square_converges_to_its_fixed_point_and_its_gradient_to_the_implicit_derivative() -> None:
    for r in (0.24, 0.2, 0.1, 0.0, -0.3):
        chart = SQUARE.run({"r/0": [(r,)]})
        assert chart["a"] == pytest.approx((1 - math.sqrt(1 - 4 * r)) / 2, abs=1e-9)
        assert chart.gradient("a")["r/0"][()] == pytest.approx(1 / math.sqrt(1 - 4 * r), rel=1e-6)


def test_at_a_quarter_the_value_creeps_to_a_half() -> None:
    values = [SQUARE.run({"r/0": [(0.25,)]}, max_pops=n)["a"] for n in (10, 100, 1000)]
    assert values == sorted(values)
    assert 0.498 < values[-1] < 0.5
    assert SQUARE.run({"r/0": [(0.25,)]})["a"] == pytest.approx(0.5, abs=1e-5)


# -- the second: stop and pathto, against the formulas of back-relaxation ----------------------------------------------

RELAXATION = """
:- input pathto/1.
:- agenda {}. :- solve iterate.
stop(I)   += edgezero(I) * pathto(I).
pathto(J) += edge(I,J) * pathto(I).
"""
Edges = Mapping[tuple[str, str], float]
Weights = Mapping[str, float]
Tape = Sequence[tuple[str, float, float]]  # what was popped, what it had, and its update

CYCLIC: Edges = {("u", "v"): 0.5, ("v", "w"): 0.25, ("w", "v"): 0.5, ("u", "w"): 0.125, ("v", "v"): 0.3}
ACYCLIC: Edges = {
    ("u", "v"): 0.5,
    ("u", "w"): 2.0,
    ("v", "x"): -0.75,
    ("w", "x"): 1.5,
    ("x", "y"): 0.2,
    ("v", "y"): 1.1,
}
GRAPHS: dict[str, tuple[Edges, Weights, Weights]] = {  # with edgezero, and the pathto that is given
    "a cycle": (CYCLIC, {"v": 0.3, "w": 0.7}, {"u": 1.0, "w": 0.25}),
    "no cycle": (ACYCLIC, {"v": 0.3, "x": 0.6, "y": 0.9}, {"u": 1.5}),
}
SEEDS = {"stop(v)": 1.0, "stop(w)": 2.0, "stop(y)": -0.5, "pathto(v)": 0.25, "pathto(u)": 3.0}
"""What the gradient is of: the items that stop, and two that others are made of, too."""


def relaxed(
    edge: Edges, edgezero: Weights, given: Weights, order: Sequence[str]
) -> tuple[Weights, Weights, Weights, Tape]:
    """The forward pass, where J is popped in this order: J, what is pending of it, what stops, and the tape."""
    chart: dict[str, float] = {}
    agenda = dict(given)
    stop: dict[str, float] = {}
    tape = []
    for i in order:
        old, update = chart.get(i, 0.0), agenda.pop(i)
        tape.append((i, old, update))
        chart[i] = old + update
        if i in edgezero:
            stop[i] = stop.get(i, 0.0) + edgezero[i] * update
        for (a, b), weight in edge.items():
            if a == i:
                agenda[b] = agenda.get(b, 0.0) + weight * update
    return chart, agenda, stop, tape


def back_relaxed(
    edge: Edges, edgezero: Weights, tape: Tape, gpi: Weights, gchart: Weights
) -> tuple[Weights, Weights, Edges]:
    """gJ, gPi0 and gPij, by the printed lines. `gchart` is zero in the thesis: nobody asks for pathto there."""
    gj: dict[str, float] = defaultdict(float)
    gpi0: dict[str, float] = defaultdict(float)
    gpij: dict[tuple[str, str], float] = defaultdict(float)
    for i, _, update in reversed(tape):
        z = 0.0
        if i in edgezero:
            gpi0[i] += gpi.get(i, 0.0) * update
            z += edgezero[i] * gpi.get(i, 0.0)
        for (a, b), weight in edge.items():
            if a == i:
                gpij[a, b] += gj[b] * update
                z += weight * gj[b]
        gj[i] = z + gchart.get(i, 0.0)
    return gj, gpi0, gpij


@pytest.mark.parametrize("agenda", ["fifo", "lifo", "auto"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_every_pop_of_paths_follows_the_formulas_of_back_relaxation(graph: str, agenda: str) -> None:
    edge, edgezero, given = GRAPHS[graph]
    states = sorted({state for pair in edge for state in pair})
    bound = dg.Program(RELAXATION.format(agenda)).bind(
        {
            "edge/2": [(*pair, weight) for pair, weight in edge.items()],
            "edgezero/1": list(edgezero.items()),
            "pathto/1": list(given.items()),
        }
    )
    seeds = {key: weight for key, weight in SEEDS.items() if key[-2] in states}
    bound.run().gradient("stop(v)")  # from now on runs keep a tape
    whole = bound.run()
    pops = [arguments[0] for _, arguments in run_of(whole).pops()]
    assert len(pops) == whole.stats.pops and set(pops) == set(states)
    for n in range(len(pops) + 1):
        chart = bound.run(max_pops=n) if n < len(pops) else whole
        assert [arguments[0] for _, arguments in run_of(chart).pops()] == pops[:n]
        values, pending, stop, tape = relaxed(edge, edgezero, given, pops[:n])
        near = {"rel": 1e-12, "abs": 1e-300}
        assert dict(chart.query("pathto(X)")) == pytest.approx(values, **near)
        assert dict(chart.pending.get("pathto/1", [])) == pytest.approx(pending, **near)
        # by default what stops is summed up once all of pathto is final
        stopped = stop if agenda != "auto" or n == len(pops) else {}
        assert dict(chart.query("stop(X)")) == pytest.approx(stopped, **near)

        gpi = {key[-2]: weight for key, weight in seeds.items() if key.startswith("stop") and key[-2] in stopped}
        gchart = {key[-2]: weight for key, weight in seeds.items() if key.startswith("pathto")}
        gj, gpi0, gpij = back_relaxed(edge, edgezero, tape, gpi, gchart)
        gradient = chart.gradient(seeds)
        assert gradient["edgezero/1"].values == pytest.approx([gpi0[i] for i in edgezero], **near)
        assert gradient["edge/2"].values == pytest.approx([gpij[pair] for pair in edge], **near)
        assert gradient["pathto/1"].values == pytest.approx([gj[i] for i in given], **near)
        assert [gradient.item(f"pathto({i})") for i in states] == pytest.approx([gj[i] for i in states], **near)


def test_at_the_end_back_relaxation_has_solved_a_linear_system() -> None:
    """Eisner (2001), pages 123 to 124: J is the mass that flowed through a state, gpi the gradient of what stops."""
    generator = np.random.default_rng(3)
    n = 5
    edge, zero = generator.uniform(0.01, 0.15, (n, n)), generator.uniform(0.1, 0.9, n)
    start, weight = generator.uniform(0.1, 0.9, n), generator.uniform(0.5, 2.0, n)
    program = dg.Program("""
        stop(I)   += edgezero(I) * pathto(I).
        pathto(J) += edge(I,J) * pathto(I).
        pathto(J) += start(J).
        goal      += stop(I) * weigh(I).
    """)
    chart = program.run({"edge/2": edge, "edgezero/1": zero, "start/1": start, "weigh/1": weight})
    gradient = chart.gradient("goal")
    through = np.linalg.solve(np.eye(n) - edge.T, start)  # J
    gpi = weight
    back = np.linalg.solve(np.eye(n) - edge, zero * gpi)  # z: what one more unit at a state is worth
    assert chart["goal"] == pytest.approx(through @ (zero * gpi), rel=1e-10)
    assert gradient["edgezero/1"].values == pytest.approx(gpi * through, rel=1e-9)
    assert gradient["edge/2"].values == pytest.approx(np.outer(through, back), rel=1e-9)
    assert gradient["start/1"].values == pytest.approx(back, rel=1e-9)
    assert [value for _, value in gradient["pathto/1"]] == pytest.approx(back, rel=1e-9)
