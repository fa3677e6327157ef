"""Every pair of declarations with everything that generated code is for: values, derivations, gradients, derivatives
forward, changes, batches. The oracle lists all derivations of a small graph. Costs half a minute: a hundred classes.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

import dynagrad as dg

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")

RULES = """
path(V) += start(V).
path(V) += path(U) * {step}(U,V).
pair(U,V) += path(U) * path(V) * far(U,V).
goal += path(V) * last(V).
goal += pair(_,_).
"""
Facts = dict[str, dict[tuple[str, ...], float]]
GIVEN: Facts = {
    "start/1": {("a",): 0.5, ("b",): 0.3},
    "arc/2": {("a", "b"): 0.7, ("a", "c"): 0.4, ("b", "c"): 0.6, ("c", "d"): 0.9, ("b", "d"): 0.2},
    "last/1": {("c",): 0.35, ("d",): 0.8},
    "far/2": {("a", "d"): 0.45, ("b", "c"): 0.55},
}
FACTORS: dict[str, dict[str, str]] = {
    "semiring": {name: name for name in ("real", "log", "viterbi", "boolean", "plain")},
    "agenda": {"auto": "", "fifo": ":- agenda fifo.", "lifo": ":- agenda lifo.", "priority": ":- agenda priority."},
    "priority": {
        "none": "",
        "own value": ":- priority path(V) = path(V).",
        "constant": ":- priority path(V) = 1. :- priority pair(U,V) = 2.",
        "sink": ":- priority goal = 1.",
    },
    "beam": {
        "none": "",
        "one": ":- beam path(V) by (V) keep 1.",
        "two": ":- beam path(V) by () keep 4. :- beam pair(U,V) by (U) keep 9.",
        "of one predicate": ":- beam path(V) by () keep 99. :- beam path(V) by (V) keep 9. :- beam goal by () keep 1.",
    },
    "prune": {"none": "", "items": ":- prune path(V) > 99.", "sink": ":- prune goal > 99. :- prune pair(U,V) > 99."},
    "extra": {
        "none": "",
        "output": ":- output goal.",
        "distribution": ":- distribution arc(U,...) given U. :- input start/1, arc/2, last/1, far/2.",
        "transient": ":- transient near/2. near(U,V) += arc(U,V).",
        "external": ":- external far/2.",
        "solve": ":- solve iterate.",
    },
}
Choice = dict[str, str]


def cover() -> list[Choice]:
    """Choices such that each pair of levels of two factors is in one of them."""
    generator = random.Random(2)
    names = list(FACTORS)
    left = {((f, a), (g, b)) for f, g in itertools.combinations(names, 2) for a in FACTORS[f] for b in FACTORS[g]}
    found: list[Choice] = []

    def new(choice: Choice) -> int:
        return sum(((f, choice[f]), (g, choice[g])) in left for f, g in itertools.combinations(names, 2))

    while left:
        (f, a), (g, b) = min(left)
        drawn = [{n: generator.choice(list(FACTORS[n])) for n in names} | {f: a, g: b} for _ in range(200)]
        best = max(drawn, key=new)
        left -= {((f, best[f]), (g, best[g])) for f, g in itertools.combinations(names, 2)}
        found.append(best)
    return found


# -- the oracle

Derivation = tuple[tuple[str, tuple[str, ...]], ...]
"""The facts that it uses, as often as it does."""


def derivations(facts: Facts) -> list[Derivation]:
    def paths(v: str) -> Iterator[Derivation]:
        if (v,) in facts["start/1"]:
            yield (("start/1", (v,)),)
        for arc in facts["arc/2"]:
            if arc[1] == v:
                for path in paths(arc[0]):
                    yield (*path, ("arc/2", arc))

    found = [(*path, ("last/1", v)) for v in facts["last/1"] for path in paths(v[0])]
    for u, v in facts["far/2"]:
        found += [(*p, *q, ("far/2", (u, v))) for p in paths(u) for q in paths(v)]
    return found


def weight(facts: Facts, derivation: Derivation) -> float:
    return math.prod(facts[key][fact] for key, fact in derivation)


def value(facts: Facts, semiring: str) -> float:
    weights = [weight(facts, d) for d in derivations(facts)]
    match semiring:
        case "boolean":
            return bool(weights)
        case "log":
            return math.log(math.fsum(weights))
        case "viterbi":
            return math.log(max(weights))
    return math.fsum(weights) / (1 + math.fsum(weights)) if semiring == "plain" else math.fsum(weights)


def slope(facts: Facts, semiring: str, key: str, fact: tuple[str, ...]) -> float:
    """The derivative by a fact; in log and viterbi by its log."""
    h = 1e-6

    def at(scale: float) -> float:
        return value({**facts, key: {**facts[key], fact: facts[key][fact] * scale}}, semiring)

    change = (at(1 + h) - at(1 - h)) / (2 * h)
    return change if semiring in ("log", "viterbi") else change / facts[key][fact]


# -- what is asked


def program_of(choice: Choice) -> Any:
    """The program, with the functions that it needs."""
    semiring, extra = choice["semiring"], choice["extra"]
    rules = RULES.format(step="near" if extra == "transient" else "arc")
    functions: dict[str, Any] = {}
    if semiring == "plain":
        rules = rules.replace("goal +=", "sum +=") + ":- function squash/1. goal = squash(sum)."
        rules = rules.replace("path(V) += start(V).", "path(V) += start(V) * 1.0 + 0.0.")
        functions["squash"] = lambda x: x / (1 + x)
    if extra == "external":
        as_it_is = (lambda w: math.log(w)) if semiring in ("log", "viterbi") else (lambda w: w)
        functions["far/2"] = lambda u, v: as_it_is(GIVEN["far/2"][u, v]) if (u, v) in GIVEN["far/2"] else None
    text = "\n".join([*(FACTORS[f][choice[f]] for f in FACTORS if f != "semiring"), rules])
    return dg.Program(text, None if semiring == "plain" else semiring, functions=functions)


def rows(facts: Facts, semiring: str, extra: str) -> dict[str, list[tuple[Any, ...]]]:
    def row(fact: tuple[str, ...], w: float) -> tuple[Any, ...]:
        return fact if semiring == "boolean" else (*fact, math.log(w) if semiring in ("log", "viterbi") else w)

    return {
        key: [row(*pair) for pair in given.items()]
        for key, given in facts.items()
        if (key, extra) != ("far/2", "external")
    }


def check_derivations(chart: Any, facts: Facts, semiring: str) -> None:
    item = "sum" if semiring == "plain" else "goal"
    every = derivations(facts)
    assert chart.count(item) == len(every)
    assert {str(i.head) for i in chart.forest(item).instances} >= {"path(a)", "pair(a,d)", "last(c)", item}
    assert chart.why(item, depth=3).reasons
    if semiring == "plain":
        return
    found = list(chart.kbest(item))
    if semiring == "boolean":
        assert len(found) == len(every) and len(found[0]) <= min(map(len, found))
    else:
        logs = semiring != "real"
        want = sorted((weight(facts, d) for d in every), reverse=True)
        assert [math.exp(d.weight) if logs else d.weight for d in found] == pytest.approx(want, rel=1e-12)
        assert chart.best(item).weight == pytest.approx(math.log(want[0]) if logs else want[0], rel=1e-12)
    assert {tuple(d.facts()) for d in chart.sample(item, 30, seed=1)} <= {tuple(d.facts()) for d in found}
    assert chart.expected(item, lambda i: 0.25) > 0 and chart.forest(item).decode().weight is not None


def check(choice: Choice) -> None:
    semiring, extra = choice["semiring"], choice["extra"]
    program = program_of(choice)
    given = rows(GIVEN, semiring, extra)
    chart = program.run(given)
    assert chart.converged and chart["goal"] == pytest.approx(value(GIVEN, semiring), rel=1e-12)
    check_derivations(chart, GIVEN, semiring)
    if semiring != "boolean":
        gradient, tangents = chart.gradient("goal"), chart.jvp({"arc/2": {fact: 1.0 for fact in GIVEN["arc/2"]}})
        for key in given:
            want = [slope(GIVEN, semiring, key, fact) for fact in GIVEN[key]]
            assert gradient[key].values.tolist() == pytest.approx(want, rel=1e-6, abs=1e-8), key
        along = math.fsum(slope(GIVEN, semiring, "arc/2", fact) for fact in GIVEN["arc/2"])
        assert tangents["goal"] == pytest.approx(along, rel=1e-6)
    changed: Facts = {**GIVEN, "arc/2": {**GIVEN["arc/2"], ("b", "c"): 0.11}}
    del changed["arc/2"]["a", "c"]
    chart.set("arc/2", [r for r in rows(changed, semiring, extra)["arc/2"] if r[:2] == ("b", "c")])
    chart.retract("arc/2", [("a", "c")])
    chart.run()
    assert chart["goal"] == pytest.approx(value(changed, semiring), rel=1e-12)
    check_derivations(chart, changed, semiring)
    if semiring != "plain":
        batch = program.run_batch([given, rows(changed, semiring, extra)], query="goal", best=2, sample=1)
        assert not batch.errors and list(batch.values) == pytest.approx([value(f, semiring) for f in (GIVEN, changed)])
        assert [d.facts() for d in batch.best[1]] == [d.facts() for d in chart.kbest("goal", 2)]


COVER = cover()


def name(choice: Choice) -> str:
    return "-".join(choice.values()).replace(" ", "_")


@pytest.mark.parametrize("choice", COVER, ids=name)
def test_declarations_that_hold_nothing_back_change_nothing(choice: Choice) -> None:
    check(choice)


def test_the_cover_has_every_pair() -> None:
    assert len(COVER) < 45
    for f, g in itertools.combinations(FACTORS, 2):
        assert {(c[f], c[g]) for c in COVER} == set(itertools.product(FACTORS[f], FACTORS[g]))


@pytest.mark.parametrize("semiring", ["tropical", "count", "expectation"])
def test_the_other_semirings(semiring: str) -> None:
    declared = " ".join(
        FACTORS[f][level] for f, level in (("beam", "two"), ("agenda", "lifo"), ("priority", "constant"))
    )
    if semiring == "tropical":
        declared += FACTORS["prune"]["items"]
    plain = dg.Program(RULES.format(step="arc"), semiring)
    held = dg.Program(declared + RULES.format(step="arc"), semiring)
    facts: dict[str, Any] = {
        key: [(*fact, {"tropical": -math.log(w), "expectation": (w, w)}.get(semiring, 2)) for fact, w in given.items()]
        for key, given in GIVEN.items()
    }
    one, other = plain.run(facts), held.run(facts)
    assert other["goal"] == pytest.approx(one["goal"], rel=1e-12)
    assert [d.facts() for d in other.kbest("goal")] == [d.facts() for d in one.kbest("goal")]
    assert other.count("goal") == one.count("goal") == len(derivations(GIVEN))
    if semiring != "count":
        for key in facts:
            assert other.gradient("goal")[key].values.ravel().tolist() == pytest.approx(
                one.gradient("goal")[key].values.ravel().tolist(), rel=1e-12
            )


def test_a_model_predicts_under_a_beam() -> None:
    text = """:- semiring real. :- distribution r(X,...) given X.
        c(X,I,K) += r(X,W) * word(W,I,K). c(X,I,K) += r(X,Y,Z) * c(Y,I,J) * c(Z,J,K).
        goal += c(s,0,N) * end(N)."""
    rules = {"r/3": [("s", "s", "s", 0.5), ("s", "s", "t", 0.25)], "r/2": [("s", "u", 0.125), ("t", "u", 0.0625)]}
    facts: dict[str, Any] = {"word/3": [("u", i, i + 1) for i in range(3)], "end/1": [(3,)]}
    beams = ":- beam c(X,I,K) by (I,K) keep 9. :- beam c(X,I,K) by () keep 99."
    held, free = (dg.Model(t, rules).predict(facts) for t in (beams + text, text))
    assert held.tree() == free.tree() and held.weight == free.weight


# Nothing is popped here: no item is an antecedent, so the stage's agenda stays empty.
@pytest.mark.parametrize("semiring", ["real", "log", "viterbi", "tropical", "expectation", "plain"])
def test_an_agenda_from_which_nothing_is_popped(semiring: str) -> None:
    one: Any = (0.5, 0.25) if semiring == "expectation" else 0.5
    facts: dict[str, Any] = {"f/1": [(x, one) for x in "uv"], "h/0": [(one,)]}
    found = []
    for declared in ("", ":- agenda lifo.", ":- agenda fifo.", ":- priority goal = 1.", ":- beam goal by () keep 1."):
        text = f"{declared} goal += f(_) * h. other(X) += f(X) * h."
        chart = dg.Program(text, None if semiring == "plain" else semiring).run(facts)
        assert chart.count("goal") == 2 and (not declared.startswith(":- agenda") or chart.stats.pops == 0)
        gradient, direction = (
            chart.gradient("goal"),
            {key: [(*r[:-1], one) for r in rows] for key, rows in facts.items()},
        )
        found.append([*(gradient[key].values.ravel().tolist() for key in facts), chart.jvp(direction)["goal"]])
    assert all(f == pytest.approx(found[0]) if isinstance(f, float) else f == found[0] for f in found)


def narrow(keep: int, semiring: str, agenda: str) -> Sequence[Any]:
    text = f":- beam path(V) by () keep {keep}. {agenda}" + RULES.format(step="arc")
    return (dg.Program(text, semiring), dg.Program(RULES.format(step="arc"), semiring))


@pytest.mark.parametrize(
    "agenda", ["", ":- agenda lifo.", ":- priority path(V) = 1."], ids=["auto", "lifo", "declared"]
)
@pytest.mark.parametrize("semiring", ["real", "viterbi"])
def test_a_narrow_beam(semiring: str, agenda: str) -> None:
    for keep in (1, 2, 3):
        held, free = (p.run(rows(GIVEN, semiring, "none")) for p in narrow(keep, semiring, agenda))
        assert len(held.table("path/1")) == keep
        if "goal" not in held:
            continue
        assert held["goal"] <= free["goal"]
        some, all_ = list(held.kbest("goal")), list(free.kbest("goal"))
        assert {d.tree() for d in some} <= {d.tree() for d in all_}
        assert all(a.weight <= b.weight for a, b in zip(some, all_, strict=False))
        joined = math.fsum(d.weight for d in some) if semiring == "real" else some[0].weight
        assert held["goal"] == pytest.approx(joined, rel=1e-12)
        used = {i for d in some for i in d.items() if i.startswith("path")}
        assert used <= {f"path({row[0]})" for row in held.table("path/1")}
