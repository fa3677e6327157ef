"""Gradients and tangents of charts, against differences of the computation that ran.

The engine reports the order in which it popped items; `replay.py` replays it in fifty digits with perturbed facts. So a
gradient is tested against what was computed: after an early stop, under a tolerance, behind pruning, in every order.
Where the engine solved the equations of a cycle, `ground_equations.py` solves them in fifty digits. Compiling costs
about as much as all the differences. So there are few programs, and their runs keep a tape from the first, so that none
is compiled without one as well. Runs that are repeated for a tape are in `test_the_example_of_the_derivation_...`, for
stops and tolerances, and in test_gradient.py.

Costs ten seconds where they are compiled.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

import dynagrad as dg
from charts.test_engine import AGENDAS, COMBINABLE, compiled, given_facts, share, visible
from dynagrad.charts.chart import run_of
from dynagrad.charts.program import binding_of
from dynagrad.plan.model import Strategy
from dynagrad.rules.parse import parse
from ground_equations import Solution
from language_cases import CASES
from oracle import Key, Real, Struct, term
from random_programs import combined
from replay import Computation

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")

# All texts in all orders, and more draws for each, as many as that says, take minutes and more:
# DYNAGRAD_SEEDS=2 pytest tests/charts/derivatives/test_gradient_replay.py
DRAWS = int(os.environ.get("DYNAGRAD_SEEDS", "1"))
EVERYTHING = DRAWS > 1
DIFFERENTIABLE = ("real", "log", "viterbi", "tropical", "expectation", None)


@dataclass(frozen=True, eq=False)
class Shape:
    """A program and the rows of its facts; their numbers are drawn anew for each run."""

    source: str
    facts: Mapping[str, Sequence[tuple[Any, ...]]]
    functions: Mapping[str, Any] = field(default_factory=dict)


# -- programs in every semiring --------------------------------------------------------------------------------------

ARCS = [("a", "b"), ("b", "c"), ("c", "a"), ("a", "c"), ("c", "d"), ("d", "b"), ("a", "b"), ("d", "d")]
SQUARE = Shape("a += a * a. a += r. c += a * a * a. d += a * q * a.", {"r/0": [()], "q/0": [()]})
PATHS = Shape(
    """
    stop(I) += edgezero(I) * pathto(I).
    pathto(J) += edge(I,J) * pathto(I).
    pathto(J) += start(J).
    both(I,J) += pathto(I) * pathto(J) * edge(I,J) * pathto(I).
    """,
    {"start/1": [("a",), ("c",)], "edge/2": ARCS, "edgezero/1": [("b",), ("d",)]},
)
TREES = Shape(
    """
    constit(X,I,K) += rewrite(X,W) * word(W,I,K).
    constit(X,I,K) += rewrite(X,Y,Z) * constit(Y,I,J) * constit(Z,J,K).
    goal += constit(s,0,N) * end(N).
    """,
    {
        "rewrite/2": [("s", "u"), ("x", "u")],
        "rewrite/3": [("s", "s", "s"), ("s", "s", "x"), ("x", "s", "s")],
        "word/3": [("u", i, i + 1) for i in range(4)],
        "end/1": [(4,)],
    },
)
MUTUAL = Shape(
    """
    x(I) += s(I). x(I) += y(I) * w.
    y(J) += x(I) * e(I,J) * SIDE(x(J)).
    z += x(I) * y(I) * x(I).
    u(I) += y(I) * k(I). u(J) += u(I) * e(I,J) * y(I).
    v += u(I) * z * SIDE(u(I)).
    """,
    {
        "s/1": [(0,), (1,)],
        "w/0": [()],
        "e/2": [(0, 1), (1, 2), (2, 0), (1, 0), (0, 0)],
        "k/1": [(0,), (2,)],
    },
)
GIVEN = Shape(
    """
    :- input p/1, q/1.
    p(a) = 0.25.
    p(Y) += p(X) * e(X,Y).
    q(X) += p(X) * p(X).
    r += q(X) * p(X).
    """,
    {"p/1": [("a",), ("b",), ("a",)], "q/1": [("z",), ("b",)], "e/2": ARCS[:5]},
)
TERMS = Shape(
    """
    sub(f(X),I) += c(X,I).
    sub(f(T),J) += sub(T,I) * d(I,J).
    seen([T],I) += sub(T,I) * d(I,_).
    total += sub(f(f(_)),I) * sub(_,I) * seen([f(_)],_).
    """,
    {"c/2": [("m", 0), ("n", 1)], "d/2": [(0, 1), (0, 2), (1, 2), (2, 3)]},
)
NEGATED = Shape(
    """
    r(X) += t(X). r(Y) += r(X) * e(X,Y).
    bad(X) += n(X) * m for not r(X).
    bad(X) += bad(X) * bad(X).
    worse += bad(X) * r(Y) * bad(X).
    """,
    {"t/1": [("a",)], "e/2": [("a", "b"), ("b", "a"), ("c", "a")], "n/1": [("a",), ("c",), ("d",)], "m/0": [()]},
)
UNFOLDED = Shape(
    """
    :- transient t/2.
    t(X,Z) += p(X,Y) * e(Y,Z).
    p(X,Y) += e(X,Y). p(X,Z) += t(X,Y) * e(Y,Z).
    q += t(X,X) * p(X,_).
    """,
    {"e/2": ARCS[:5]},
)
SHAPES = (SQUARE, PATHS, TREES, MUTUAL, GIVEN, TERMS, NEGATED, UNFOLDED)

PLAIN = (
    Shape(
        """
        h(I) += b(I). h(J) += w(I,J) * tanh(h(I)) - w(I,J) * h(I) * h(J) / 8.
        out += h(I) * h(I) / 2 - exp(-h(I)). low min= out - h(I). low min= h(I) * h(I).
        """,
        {"b/1": [(0,), (1,)], "w/2": [(0, 1), (1, 2), (2, 0), (1, 1)]},
    ),
    Shape(
        """
        :- input e/2 +=.
        d(Y) min= s(Y). d(Y) min= d(X) + e(X,Y) * e(X,Y).
        far max= d(X). rest += (d(X) - far) ^ 2. worst max= 5 - d(X).
        best(Y) max= s(Y). best(Y) max= best(X) - sqrt(e(X,Y)).
        """,
        {"s/1": [("a",), ("c",)], "e/2": ARCS},
    ),
    Shape(
        """
        :- input a/1 +=.
        t *= a(X) + 1. t *= b. p(X) = sigmoid(a(X)) + sqrt(b).
        q(X) += if a(X) > 0.2 then p(X) * p(X) else b - log(b). q(X) += a(X) / (b + p(X)).
        m min= abs(p(X)) + SIDE(a(X)) * t. g(X) += max(a(X), b) ^ 3 - min(a(X), b) / b.
        """,
        {"a/1": [("x",), ("y",), ("z",), ("x",)], "b/0": [()]},
    ),
    Shape(
        """
        :- input m/2 +=.
        all(0,T) log+= u(T). all(I+1,T) log+= all(I,S) + m(S,T) * tanh(all(I,T)) for I < 3.
        z log+= all(I,_) + SIDE(u(I)). z log+= lse(u(X), m(X,X)). soft += z * all(2,T) - lse(z, m(T,T)).
        """,
        {"u/1": [(0,), (1,)], "m/2": [(0, 0), (0, 1), (1, 0), (1, 1), (0, 1)]},
    ),
    Shape(
        "n(0) = v. n(I+1) = tanh(n(I)) + c(I) * n(I) for I < 4. end += n(I) * n(4). t *= n(I).",
        {"v/0": [()], "c/1": [(i,) for i in range(4)]},
    ),
)

PRUNED = (
    ("real", Shape(f":- prune pathto(X) < 0.08. {PATHS.source}", PATHS.facts)),
    ("log", Shape(f":- beam constit(X,I,K) by (I,K) keep 1. {TREES.source}", TREES.facts)),
    ("tropical", Shape(f":- priority pathto(X) = pathto(X). :- prune pathto(X) > 2. {PATHS.source}", PATHS.facts)),
    (None, Shape(f":- prune h(I) < 0.2. {PLAIN[0].source}", PLAIN[0].facts)),
)


# -- numbers ---------------------------------------------------------------------------------------------------------


def drawn(semiring: str | None, random: np.random.Generator) -> Any:
    """A number for a fact, now and then the semiring's zero. Cycles settle with these, and there are no ties."""
    zero = random.random() < 0.04
    weight = random.uniform(0.05, 0.23)
    return {
        "real": 0.0 if zero else weight,
        "log": -math.inf if zero else math.log(weight),
        "viterbi": -math.inf if zero else -random.uniform(0.1, 3),
        "tropical": math.inf if zero else random.uniform(0.1, 3),
        "expectation": (0.0 if zero else weight, random.uniform(-1, 1)),
        None: weight,
    }[semiring]


def shaken(value: Any, semiring: str | None, random: np.random.Generator) -> Any:
    """A given number, moved a little so that nothing ties; a cycle that settled still does."""
    by = random.uniform(0.01, 0.2)
    match semiring:
        case "real":
            return value * (1 - by)
        case "expectation":
            pair = value if isinstance(value, tuple) else (value, 0.0)
            return (pair[0] * (1 - by), pair[1] + by)
        case "log" | "viterbi":
            return value - by
    return value + by


def direction_of(facts: Mapping[str, Any], semiring: str | None, random: np.random.Generator) -> dict[str, Any]:
    """A number for each row, a pair in `expectation`."""
    pair = (2,) if semiring == "expectation" else ()
    return {key: random.normal(size=(len(rows), *pair)) for key, rows in facts.items()}


# -- comparing -------------------------------------------------------------------------------------------------------


def text_of(value: Any) -> str:
    """A term as text."""
    if isinstance(value, Struct):
        return f"{value.functor}({','.join(map(text_of, value.arguments))})"
    if isinstance(value, Real):
        return repr(value.value)
    return str(value) if isinstance(value, int) or value.isidentifier() else f"'{value}'"


def item_text(item: Key, prefix: str) -> str:
    name = prefix + item[0].rsplit("/", 1)[0]
    return f"{name}({','.join(map(text_of, item[1]))})" if item[1] else name


def parts(number: Any) -> list[float]:
    """A number, or both of a pair."""
    return list(map(float, np.ravel(number)))


def close_to(found: Any, wanted: Any, scale: float, relative: float = 1e-7) -> bool:
    """Near enough for doubles where others of a gradient are of some size; what has no derivative is let pass."""
    pairs = list(zip(parts(found), parts(wanted), strict=True))
    return all(math.isnan(w) or abs(f - w) <= relative * (abs(w) + 0.01 * scale) + 1e-25 for f, w in pairs)


def derived(chart: Any, keys: Sequence[str], prefix: str) -> Iterator[tuple[Key, Any]]:
    """The items of a chart, and their values."""
    for key in keys:
        arity = int(key.rsplit("/", 1)[1])
        for row in chart.table(prefix + key):
            yield (key, tuple(map(term, row[:arity]))), row[arity]


def ended_by_itself(chart: Any) -> set[str]:
    """The predicates that were done when the run was."""
    prepared = run_of(chart).prepared
    stages = prepared.compiled.plan.stages
    return {key for stage in stages if stage.number < prepared.chart.report.stage for key in stage.keys}


def has_roots(chart: Any) -> bool:
    """Whether the program takes roots: at zero the chain rule has no answer, and the engine says so."""
    return "sqrt(" in run_of(chart).context.rules.source.text


def check(
    chart: Any,
    program: Any,
    semiring: str | None,
    random: np.random.Generator,
    prefix: str = "",
    goals: int = 3,
    forward: bool = True,
) -> int:
    """Compare derivatives of some items of a chart with differences; how many items there were.

    Those by all facts along a direction, in which none may be wrong, and those by a few facts one by one, which say
    which is. The class that derives forward is a compile of its own, which `forward=False` saves.
    """
    pops = [(key.removeprefix(prefix), row) for key, row in run_of(chart).pops() if key.startswith(prefix)]
    agenda = run_of(chart).context.rules.agenda
    source = f":- agenda {agenda}.\n{program.source}"
    ended = {key.removeprefix(prefix) for key in ended_by_itself(chart) if key.startswith(prefix)}
    made = Solution if run_of(chart).require().compiled.plan.solves else Computation
    computed = made(source, program.facts, pops, semiring=semiring, functions=program.functions, ended=ended)
    keys = visible(parse(program.source))
    items = dict(derived(chart, keys, prefix))
    finite = [item for item, value in items.items() if all(map(math.isfinite, parts(value)))]
    for item in finite:
        assert close_to(items[item], computed.unmoved.values[item], 1.0, 1e-9), item
    chosen = [finite[i] for i in sorted(random.permutation(len(finite))[:goals])]
    wrt = list(program.facts)
    places = list(computed.places(wrt))
    some = [places[i] for i in sorted(random.permutation(len(places))[:2])]
    slopes = computed.differences(chosen, some)
    direction = direction_of(program.facts, semiring, random)
    along = computed.along({key: numbers.tolist() for key, numbers in direction.items()}, chosen)
    constants = [item for item in items if semiring == "real" and item[0] not in program.facts]
    constants = [constants[i] for i in random.permutation(len(constants))[:2]]
    adjoints = computed.of_constants(chosen, constants)
    tangents = None
    if forward:
        try:
            tangents = chart.jvp({prefix + key: numbers for key, numbers in direction.items()})
        except dg.ValueRangeError:
            assert has_roots(chart) or computed.unsettled
    for goal in chosen:
        text = item_text(goal, prefix)
        try:
            gradient = chart.gradient(text)
        except dg.ValueRangeError:
            assert has_roots(chart) or goal in computed.unsettled
            continue
        assert goal not in computed.unsettled
        assert parts(gradient.value) == parts(items[goal])
        scale = max([abs(x) for d in (*slopes[goal].values(), along[goal]) for x in parts(d) if x == x], default=0.0)
        total: Any = np.zeros(2 if semiring == "expectation" else ())
        for key in wrt:
            table = gradient[prefix + key]
            assert len(table) == len(program.facts[key]) == len(table.values)
            for n, found in enumerate(table.values):
                if (key, n) in slopes[goal]:
                    wanted = slopes[goal][key, n]
                    assert close_to(found, wanted, scale), f"{text} by {key} row {n}: {found}, should be {wanted}"
                by = direction[key][n]
                if semiring == "expectation":
                    total = total + np.array([found[0] * by[0], found[1] * by[0] + found[0] * by[1]])
                else:
                    total = total + found * by
        assert close_to(total, along[goal], scale), f"{text}: {total}, should be {along[goal]}"
        if tangents is not None:
            assert close_to(tangents[text], total, scale, 1e-10), f"{text}: {tangents[text]}, should be {total}"
        for item in constants:
            found = gradient.item(item_text(item, prefix))
            assert close_to(found, adjoints[goal][item], scale), f"{text} by {item}: {found}"
    return len(chosen)


# -- few texts, many numbers -----------------------------------------------------------------------------------------


def taped(program: dg.Program) -> dg.Bound:
    """The program, whose runs keep a tape from the first."""
    bound = program.bind({})
    binding_of(bound).keep_tapes()
    return bound


@cache
def program_of(shapes: tuple[Shape, ...], semiring: str | None, agenda: str) -> dg.Bound:
    source = combined(shapes).source if len(shapes) > 1 else shapes[0].source
    return taped(compiled(source, semiring, agenda, {}))


def valued(shape: Shape, semiring: str | None, random: np.random.Generator) -> Shape:
    rows = {key: [(*row, drawn(semiring, random)) for row in rows] for key, rows in shape.facts.items()}
    return Shape(shape.source, rows)


SEEDS = st.integers(0, 2**32 - 1)
STOPS = st.none() | st.integers(0, 160)
TOLERANCES = st.sampled_from([None, None, 1e-2, 1e-5])
few = settings(
    max_examples=2 * DRAWS,  # the simplest, and others at each run
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def run_and_check(
    shapes: tuple[Shape, ...],
    semiring: str | None,
    agenda: str,
    forward: bool,
    seed: int,
    stop: int | None,
    tolerance: float | None,
) -> None:
    random = np.random.default_rng(seed)
    made = [valued(shape, semiring, random) for shape in shapes]
    together = combined(made) if len(made) > 1 else made[0]
    chart = program_of(shapes, semiring, agenda).run(together.facts, max_pops=stop, tolerance=tolerance)
    for number, shape in enumerate(made):
        check(chart, shape, semiring, random, f"p{number}_" if len(made) > 1 else "", forward=forward)


# Which programs run in which semiring and order, and where the forward derivative is compared as well.
RUNS: tuple[tuple[str | None, str, tuple[Shape, ...], bool], ...] = (
    ("real", "auto", (SQUARE, PATHS, TREES, GIVEN, NEGATED), True),
    ("real", "priority", (MUTUAL, TERMS), False),
    ("real", "fifo", (PATHS, UNFOLDED), False),
    ("real", "lifo", (SQUARE, MUTUAL, NEGATED), False),
    ("log", "auto", (TREES, MUTUAL, UNFOLDED), True),
    ("log", "fifo", (PATHS, TERMS), False),
    ("viterbi", "lifo", (MUTUAL, GIVEN), False),
    ("tropical", "auto", (MUTUAL, TERMS), True),
    ("tropical", "fifo", (PATHS, SQUARE), False),
    ("expectation", "auto", (SQUARE, TREES, NEGATED), False),
    (None, "auto", PLAIN, True),
    (None, "lifo", PLAIN[:2], False),
)
if EVERYTHING:
    RUNS = tuple((s, agenda, SHAPES if s else PLAIN, True) for s in DIFFERENTIABLE for agenda in AGENDAS)


@pytest.mark.parametrize(("semiring", "agenda", "shapes", "forward"), RUNS, ids=[f"{s}-{a}" for s, a, _, _ in RUNS])
def test_the_gradient_is_that_of_the_computation_that_ran(
    semiring: str | None, agenda: str, shapes: tuple[Shape, ...], forward: bool
) -> None:
    @few
    @example(1263, 122, 1e-2)
    @given(SEEDS, STOPS, TOLERANCES)
    def compare(seed: int, stop: int | None, tolerance: float | None) -> None:
        run_and_check(shapes, semiring, agenda, forward, seed, stop, tolerance)

    if semiring == "real":  # two updates that change nothing one by one, and do together
        compare = example(1263, 122, None)(compare)
    compare()


@pytest.mark.parametrize(("semiring", "shape"), PRUNED, ids=["real", "log", "tropical", "plain"])
def test_what_pruning_holds_back_has_no_part_in_it(semiring: str | None, shape: Shape) -> None:
    @few
    @given(SEEDS, st.none() | st.integers(0, 20))
    def compare(seed: int, stop: int | None) -> None:
        run_and_check((shape,), semiring, "auto", False, seed, stop, None)

    compare()


@pytest.mark.parametrize("stop", range(8))
def test_the_example_of_the_derivation_after_each_pop(stop: int) -> None:
    """`a += a*a. a += r.`: r, r + r^2, r + (r+r^2)^2, ... and their derivatives."""
    r, value, slope = 0.2, 0.0, 0.0
    for _ in range(stop):
        value, slope = r + value * value, 1 + 2 * value * slope
    shape = Shape(SQUARE.source, {"r/0": [(r,)], "q/0": [(0.5,)]})
    chart = compiled(SQUARE.source, "real", "fifo", {}).run(shape.facts, max_pops=stop)
    gradient = chart.gradient("a")
    assert gradient["r/0"].values.tolist() == [pytest.approx(slope, rel=1e-13)]
    assert gradient.value == pytest.approx(value, rel=1e-14)
    assert gradient["q/0"].values.tolist() == [0.0]
    cube = chart.gradient("c")
    assert cube["r/0"].values.tolist() == [pytest.approx(3 * value**2 * slope, rel=1e-13)]
    check(chart, shape, "real", np.random.default_rng(stop))


@pytest.mark.parametrize("tolerance", [1e-1, 1e-2, 1e-4])
def test_the_example_of_the_derivation_under_a_tolerance(tolerance: float) -> None:
    shape = Shape(SQUARE.source, {"r/0": [(0.2,)], "q/0": [(0.5,)]})
    chart = compiled(SQUARE.source, "real", "fifo", {}).run(shape.facts, tolerance=tolerance)
    assert (1 - math.sqrt(0.2)) / 2 - chart["a"] > tolerance / 10  # which is held back
    check(chart, shape, "real", np.random.default_rng(1))


@pytest.mark.parametrize("there", [0.0, 0.5])
def test_where_derivatives_do_not_settle_differences_do_not_either(there: float) -> None:
    """Nothing flows around the cycle of a and b, whose weights are two, or nothing and two."""
    edges = [("a", "b", 2.0), ("b", "a", 4 * there), ("c", "c", 0.5)]
    shape = Shape(PATHS.source, {"start/1": [("a", 0.0), ("c", 1.0)], "edge/2": edges, "edgezero/1": []})
    chart = program_of((PATHS,), "real", "fifo").run(shape.facts)
    assert check(chart, shape, "real", np.random.default_rng(0), goals=20) > 3
    if there:
        with pytest.raises(dg.ValueRangeError, match="does not settle"):
            chart.gradient("pathto(a)")
    assert chart.gradient("pathto(c)")["start/1"]["c"] == pytest.approx(2.0)


def test_an_item_that_was_never_derived_has_zeros() -> None:
    shapes = (PATHS, UNFOLDED)  # as above, so that nothing is compiled twice
    facts = combined([valued(shape, "real", np.random.default_rng(0)) for shape in shapes]).facts
    chart = program_of(shapes, "real", "fifo").run(facts, max_pops=0)
    for text in ("p0_pathto(a)", "p0_pathto(nowhere)", "p0_stop(b)", "p1_q"):
        gradient = chart.gradient(text)
        for key, rows in facts.items():
            assert gradient[key].values.tolist() == [0.0] * len(rows)


# -- the cases and the generated programs of the engine's tests --------------------------------------------------------

STEPS = ("|=", "&=")  # aggregators without a derivative
TIED = {"equality"}  # two rules that must agree: their facts cannot be moved one at a time


def smooth(program: Any) -> bool:
    """Whether differences make sense of a program."""
    rules = parse(program.source).rules
    return getattr(program, "name", "") not in TIED and not any(rule.aggregator in STEPS for rule in rules)


def moved(program: Any, semiring: str | None, random: np.random.Generator) -> Shape:
    """The program with other numbers."""
    facts = {}
    for key, rows in program.facts.items():
        arity = int(key.rsplit("/", 1)[1])
        facts[key] = [(*row[:arity], *(shaken(v, semiring, random) for v in row[arity:])) for row in rows]
    return Shape(program.source, facts if smooth(program) else program.facts, program.functions)


def swept(chart: Any) -> set[str]:
    """Predicates that the engine computes again in whole, without pops."""
    stages = run_of(chart).require().compiled.plan.stages
    return {key for stage in stages if stage.strategy is Strategy.SWEEP for key in stage.keys}


def compare_all(programs: Sequence[Any], semiring: str | None, agenda: str, stop: int | None, seed: int) -> int:
    """Run programs side by side with other numbers; how many items were compared."""
    random = np.random.default_rng(seed)
    made = [moved(program, semiring, random) for program in programs]
    together = combined(made)
    program = taped(compiled(together.source, semiring, agenda, together.functions))
    chart = program.run(given_facts(together.facts), max_pops=stop)
    count = 0
    for number, (given_program, shape) in enumerate(zip(programs, made, strict=True)):
        prefix = f"p{number}_"
        if smooth(given_program) and not any(key.startswith(prefix) for key in swept(chart)):
            count += check(chart, shape, semiring, random, prefix, goals=4, forward=EVERYTHING)
    return count


GENERATED: list[tuple[str | None, str]] = [
    ("real", "auto"),
    ("log", "fifo"),
    ("viterbi", "lifo"),
    (None, "auto"),
]
if EVERYTHING:
    GENERATED = [(semiring, agenda) for semiring in DIFFERENTIABLE for agenda in AGENDAS]


@pytest.mark.parametrize(("semiring", "agenda"), GENERATED, ids=str)
def test_generated_programs(semiring: str | None, agenda: str) -> None:
    programs = share(semiring, agenda)
    counts = [compare_all(programs, semiring, agenda, stop, seed) for seed, stop in enumerate((None, 30))]
    assert counts[0] > 3


@pytest.mark.parametrize("semiring", DIFFERENTIABLE, ids=str)
def test_cases(semiring: str | None) -> None:
    assert {case.semiring for case in CASES} >= set(DIFFERENTIABLE)
    assert compare_all(COMBINABLE[semiring], semiring, "auto", None, 0) > 1
