"""Derivations of small random programs against all of them by brute force, in every semiring, cyclic ones too.

Costs 20 seconds where programs are compiled for the first time: those of a semiring are one compiled program, with its
class that collects derivations.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from derivation_oracle import Ground, TooMany, Tree, as_tree, grounded
from dynagrad.forests.terms import PartialMatch
from dynagrad.rules.parse import parse, parse_item
from dynagrad.rules.syntax import Compound, Negation, Variable
from oracle import Conflict, Diverged, Key, Real, Struct, evaluate, term
from random_programs import CYCLIC_SEMIRINGS, Draw, Program, combined, semiring_program

pytestmark = pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")  # of odd rules

SIZE = 6
"""The most instances of a derivation of a cyclic program that is written down."""
NAMES = ("real", "log", "viterbi", "tropical", "boolean", "count", "expectation")
WORSE: dict[str, Callable[[Any], Any]] = {
    "real": lambda w: -w,
    "log": lambda w: -w,
    "viterbi": lambda w: -w,
    "tropical": lambda w: w,
    "boolean": lambda w: not w,
    "count": lambda w: w == 0,
    "expectation": lambda w: -w[0],
}
"""A number by which the best derivation is least."""


def _positive(program: Program, semiring: str) -> Program:
    if semiring != "real":
        return program
    facts = {
        key: [(*row[:-1], abs(row[-1]) if isinstance(row[-1], float) else row[-1]) for row in rows]
        for key, rows in program.facts.items()
    }
    arity = {key: int(key.rpartition("/")[2]) for key in facts}
    facts = {
        key: [(*old[: arity[key]], *new[arity[key] :]) for old, new in zip(program.facts[key], rows, strict=True)]
        for key, rows in facts.items()
    }
    return Program(program.source, facts)


@cache
def generated(semiring: str, cyclic: bool, number: int = 0, count: int = 24) -> tuple[Program, ...]:
    """Of so many programs those that differ and in which something is derived; the same ones for the same number."""
    draw, kept = Draw(f"{semiring} {cyclic} {number}"), dict[str, Program]()
    for _ in range(count):
        program = _positive(semiring_program(draw, semiring, cyclic), semiring)
        source = parse(program.source)
        try:
            values = evaluate(source, program.facts, semiring=semiring, max_rounds=300)
        except (Diverged, Conflict):
            continue
        heads = {rule.head.key for rule in source.rules}
        if any(key in heads for key, _ in values):
            kept[program.source] = program
    return tuple(kept.values())


def close(a: Any, b: Any) -> bool:
    if isinstance(a, tuple):
        return all(map(close, a, b))
    return bool(a == b or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12))


def plain(value: Any) -> Any:
    """A value of the oracle as the engine takes it."""
    if isinstance(value, Struct):
        return dg.Term(value.functor, *map(plain, value.arguments))
    return float(value.value) if isinstance(value, Real) else value


def item_of(key: Key, prefix: str) -> tuple[Any, ...]:
    """An item as `chart` takes it."""
    return (prefix + key[0].rpartition("/")[0], *map(plain, key[1]))


def given_facts(facts: Mapping[str, Any]) -> dict[str, list[tuple[Any, ...]]]:
    """Facts as the engine takes them."""
    arity = {key: int(key.rpartition("/")[2]) for key in facts}
    return {key: [(*map(plain, r[: arity[key]]), *r[arity[key] :]) for r in rows] for key, rows in facts.items()}


def check_item(
    chart: dg.Chart, ground: Ground, item: Key, semiring: str, prefix: str, first_rule: int, program: Any, facts: Any
) -> int:
    """Compares the derivations of one item; how many there were."""
    name = item_of(item, prefix)
    cyclic = ground.cyclic(item)
    try:
        every: list[Tree] = ground.derivations(item, SIZE if cyclic else 60)
    except TooMany:
        return 0
    worse = WORSE[semiring]

    def rank(tree: Tree) -> tuple[Any, int]:
        return (worse(ground.weight(tree)), ground.size(tree))

    count = chart.count(name)
    assert count == (math.inf if cyclic else len(every)), name
    wanted = 25 if cyclic else len(every)
    found = list(chart.kbest(name, wanted))
    trees = [as_tree(d, prefix, first_rule) for d in found]
    assert len(set(trees)) == len(trees) == len(set(found))
    assert len(found) == wanted
    for n, (derivation, tree) in enumerate(zip(found, trees, strict=True)):
        if n % 4 == 0:  # those of an item have most of their steps in common
            derivation.check(program, facts)
        assert close(derivation.weight, ground.weight(tree)), (derivation.weight, ground.weight(tree))
        assert len(derivation) == ground.size(tree)
    ranks = [rank(tree) for tree in trees]
    for (a, _), (b, _) in pairwise(ranks):
        assert a <= b or close(a, b)
    mine = [(worse(d.weight), len(d)) for d in found]  # equal to the last bit, which is a matter of rounding
    for (a, m), (b, n) in pairwise(mine):
        assert a < b or (a == b and m <= n), (mine, trees)
    known = set(trees)
    if not cyclic:
        assert known == set(every)
    else:
        assert {t for t in trees if ground.size(t) <= SIZE} <= set(every)
        last = ranks[-1]
        better = {t for t in every if rank(t) < last and not close(rank(t)[0], last[0])}
        assert better <= known
    assert chart.best(name) == found[0]
    return len(found)


def chance(semiring: str, weight: Any) -> float:
    """What a derivation is drawn in proportion to."""
    if semiring in ("log", "viterbi"):
        return math.exp(weight)
    if semiring == "tropical":
        return math.exp(-weight)
    return float(weight[0] if semiring == "expectation" else weight)


def total(semiring: str, weights: list[Any]) -> Any:
    """The value of an item from the weights of its derivations."""
    if semiring == "log":
        top = max(weights)
        return top if top == -math.inf else top + math.log(math.fsum(math.exp(w - top) for w in weights))
    if semiring == "expectation":
        return (math.fsum(w[0] for w in weights), math.fsum(w[1] for w in weights))
    plus: dict[str, Callable[[list[Any]], Any]] = {"viterbi": max, "tropical": min, "boolean": any, "count": sum}
    return plus.get(semiring, math.fsum)(weights)


def check_sums(
    chart: dg.Chart, ground: Ground, item: Key, semiring: str, prefix: str, first_rule: int, many: int
) -> int:
    """Weights add up to the chart's value; draws and expectations are in proportion to them."""
    every = ground.derivations(item, 60)
    name = item_of(item, prefix)
    weights = {t: ground.weight(t) for t in every}
    assert close(chart[name], total(semiring, list(weights.values()))), name
    chances = {t: chance(semiring, w) for t, w in weights.items()}
    all_ = math.fsum(chances.values())
    if all_ <= 0:
        with pytest.raises(dg.QueryError, match="have weight zero"):
            chart.sample(name, 1)
        return 0
    size = math.fsum(c / all_ * ground.size(t) for t, c in chances.items())
    assert math.isclose(chart.expected(name, lambda i: float(i.rule is not None)), size, rel_tol=1e-9, abs_tol=1e-12)
    if len(every) < 2:
        return 0
    draws = chart.sample(name, many, seed=3)
    begin, rows = draws.begin.tolist(), draws.instances
    alike: dict[bytes, list[int]] = {}  # draws of the same instances, so that each derivation is made once
    for n in range(many):
        alike.setdefault(rows[begin[n] : begin[n + 1]].tobytes(), []).append(n)
    seen: dict[Tree, int] = {}
    for places in alike.values():
        tree = as_tree(draws[places[0]], prefix, first_rule)
        seen[tree] = seen.get(tree, 0) + len(places)
        expected = math.log(chances[tree] / all_)
        assert np.allclose(draws.log_probability[places], expected, rtol=1e-9, atol=1e-9)
    assert likely(seen, chances, many)
    if semiring in ("real", "log"):
        entropy = -math.fsum(c / all_ * math.log(c / all_) for c in chances.values() if c)
        assert math.isclose(chart.entropy(name), entropy, rel_tol=1e-6, abs_tol=1e-9)
    return len(every)


def likely(seen: Mapping[Any, int], chances: Mapping[Any, float], draws: int) -> bool:
    """Whether frequencies are what chances make likely, by chi-square: rare outcomes are put together."""
    all_ = math.fsum(chances.values())
    observed, expected = [0.0], [0.0]
    for outcome, c in chances.items():
        if c / all_ * draws < 5:
            observed[0] += seen.get(outcome, 0)
            expected[0] += c / all_ * draws
        else:
            observed.append(seen.get(outcome, 0))
            expected.append(c / all_ * draws)
    assert set(seen) <= {o for o, c in chances.items() if c > 0}
    cells = [(o, e) for o, e in zip(observed, expected, strict=True) if e > 0]
    statistic = sum((o - e) ** 2 / e for o, e in cells if e >= 1) + sum(o - e for o, e in cells if e < 1 and o > 6)
    freedom = max(1, len(cells) - 1)
    return statistic < freedom + 6 * math.sqrt(2 * freedom) + 12  # far beyond any likely value


@pytest.mark.parametrize("semiring", NAMES)
def test_sums_draws_and_expectations_are_those_of_brute_force(semiring: str) -> None:
    programs = generated(semiring, False)
    together = combined(programs)
    chart = dg.Program(together.source, semiring=semiring).run(given_facts(together.facts))
    first_rule = checked = 0
    for number, program in enumerate(programs):
        ground = grounded(program.source, program.facts, semiring)
        for item in ground.items:
            if item in ground.instances:
                with contextlib.suppress(TooMany):
                    many = 100_000 if number % 20 == 0 else 400
                    checked += check_sums(chart, ground, item, semiring, f"p{number}_", first_rule, many)
        first_rule += len(ground.source.rules)
    assert checked > 30


@pytest.mark.parametrize("cyclic", [False, True], ids=["acyclic", "cyclic"])
@pytest.mark.parametrize("semiring", NAMES)
def test_k_best_are_those_of_brute_force(semiring: str, cyclic: bool) -> None:
    if cyclic and semiring not in CYCLIC_SEMIRINGS:
        pytest.skip(f"no cycles in {semiring}")
    programs = generated(semiring, cyclic)
    assert len(programs) > 8
    together = combined(programs)
    compiled, facts = dg.Program(together.source, semiring=semiring), given_facts(together.facts)
    chart = compiled.run(facts)
    first_rule = checked = 0
    for number, program in enumerate(programs):
        ground = grounded(program.source, program.facts, semiring)
        for item in ground.items:
            if item in ground.instances:
                checked += check_item(chart, ground, item, semiring, f"p{number}_", first_rule, compiled, facts)
        first_rule += len(ground.source.rules)
    assert checked > 100


# -- reasons -----------------------------------------------------------------------------------------------------------


def derivable(ground: Ground, facts: set[Key], item: Key) -> bool:
    """Whether an item is derived by some given facts, the axioms, and the instances that there are."""
    known = {k for k, rows in ground.given.items() if k in facts or any(row < 0 for row, _ in rows)}
    grew = True
    while grew and item not in known:
        grew = False
        for head, instances in ground.instances.items():
            if head not in known and any(all(b in known for b in i.items) for _, i in instances):
                known.add(head)
                grew = True
    return item in known


def fact_of(text: str, prefix: str) -> Key:
    """A given fact from its text."""
    item = parse_item(text)
    bindings = PartialMatch()
    return (item.key.removeprefix(prefix), tuple(term(bindings.value(a)) for a in item.arguments))


@pytest.mark.parametrize("semiring", ["boolean", "viterbi"])
def test_sets_of_facts_suffice_and_are_irreducible(semiring: str) -> None:
    programs = generated(semiring, True)
    together = combined(programs)
    chart = dg.Program(together.source, semiring=semiring).run(given_facts(together.facts))
    checked = 0
    for number, program in enumerate(programs):
        ground = grounded(program.source, program.facts, semiring)
        for item in list(ground.instances)[:20]:
            why = chart.why(item_of(item, f"p{number}_"), sets=5, budget=20_000)
            assert why.sets
            for names in why.sets:
                facts = {fact_of(name, f"p{number}_") for name in names}
                assert derivable(ground, facts, item), (item, names)
                assert not any(derivable(ground, facts - {f}, item) for f in facts), (item, names)
                checked += 1
            if why.complete:
                assert len({frozenset(s) for s in why.sets}) == len(why.sets)
    assert checked > 60


def test_what_is_missing_derives_the_item() -> None:
    """Of programs without negation; variables that are left stand for new symbols."""
    checked = 0
    for program in (*generated("boolean", False), *generated("boolean", True), *generated("boolean", True, 1)):
        source = parse(program.source)
        if any(isinstance(c, Negation) for r in source.rules for c in r.conditions):
            continue
        compiled, facts = dg.Program(program.source, "boolean"), given_facts(program.facts)
        chart = compiled.run(facts)
        for key, argument in itertools.product(dict.fromkeys(r.head.key for r in source.rules), ("zzz", "c", "4")):
            name, _, arity = key.rpartition("/")
            wanted = f"{name}({','.join([argument] * int(arity))})" if arity != "0" else name
            if wanted in chart:
                continue
            found = chart.why_not(wanted, seconds=5)
            for attempt in found.attempts[:3] if found.complete else ():
                checked += derives_with(compiled, facts, wanted, attempt)
    assert checked > 10


def derives_with(compiled: dg.Program, facts: Mapping[str, Any], wanted: str, attempt: Any) -> bool:
    """Whether it could be tried that an item is derived with the facts that an attempt misses, which it then is."""
    items = [parse_item(text) for text in attempt.facts]
    if len(items) < len(attempt.missing) or any(isinstance(a, Compound) for item in items for a in item.arguments):
        return False  # a comparison that no fact mends, or a part of a term that is not known
    more = {key: list(rows) for key, rows in facts.items()}
    for item in items:
        row = tuple(
            f"new_{a.name.lower()}" if isinstance(a, Variable) else PartialMatch().value(a) for a in item.arguments
        )
        more.setdefault(item.key, []).append(row)
    try:
        again = compiled.run(more)
    except dg.Error:
        return False  # a symbol where the program computes
    assert wanted in again, (compiled.source, wanted, attempt)
    return True


# -- decoding and second moments ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("semiring", ["real", "log", "viterbi", "expectation"])
def test_decoding_and_covariances_are_those_of_brute_force(semiring: str) -> None:
    programs = generated(semiring, False)
    together = combined(programs)
    chart = dg.Program(together.source, semiring=semiring).run(given_facts(together.facts))
    first_rule = checked = 0
    for number, program in enumerate(programs):
        ground = grounded(program.source, program.facts, semiring)
        for item in ground.items:
            with contextlib.suppress(TooMany):
                every = ground.derivations(item, 60)
                if item in ground.instances and 1 < len(every) < 200:
                    checked += check_moments(chart, ground, item, semiring, f"p{number}_", first_rule, every)
        first_rule += len(ground.source.rules)
    assert checked > 5


def check_moments(
    chart: dg.Chart, ground: Ground, item: Key, semiring: str, prefix: str, first_rule: int, every: list[Tree]
) -> int:
    chances = [chance(semiring, ground.weight(t)) for t in every]
    all_ = math.fsum(chances)
    if all_ <= 0:
        return 0
    p = [c / all_ for c in chances]
    forest = chart.forest(item_of(item, prefix))

    def facts(tree: Tree) -> int:
        return 1 if tree[0] == "fact" else 0 if tree[0] == "side" else sum(map(facts, tree[2:]))

    sizes, leaves = [ground.size(t) for t in every], [facts(t) for t in every]

    def mean(values: list[int]) -> float:
        return math.fsum(x * q for x, q in zip(values, p, strict=True))

    def covariance(xs: list[int], ys: list[int]) -> float:
        a, b = mean(xs), mean(ys)
        return math.fsum((x - a) * (y - b) * q for x, y, q in zip(xs, ys, p, strict=True))

    def is_rule(i: Any) -> float:
        return float(i.rule is not None)

    assert math.isclose(forest.covariance(is_rule), covariance(sizes, sizes), rel_tol=1e-9, abs_tol=1e-9)
    both = forest.covariance(is_rule, lambda i: float(i.rule is None))
    assert math.isclose(both, covariance(sizes, leaves), rel_tol=1e-9, abs_tol=1e-9)

    def heads(tree: Tree) -> list[Key]:
        return [] if tree[0] in ("fact", "side") else [tree[1], *(h for t in tree[2:] for h in heads(t))]

    def used(tree: Tree) -> list[Tree]:
        """The instances of rules: a rule, its head, and the items below."""
        if tree[0] in ("fact", "side"):
            return []
        own = (tree[0], tree[1], tuple(t[1] for t in tree[2:]))
        return [own, *(u for t in tree[2:] for u in used(t))]

    of_item: dict[Key, float] = {}
    of_instance: dict[Tree, float] = {}
    for tree, q in zip(every, p, strict=True):
        for head in heads(tree):
            of_item[head] = of_item.get(head, 0.0) + q
        for instance in used(tree):
            of_instance[instance] = of_instance.get(instance, 0.0) + q
    possible = [t for t, q in zip(every, p, strict=True) if q > 0]
    # a fact that is derived too has a chance as a fact, which is not counted here
    if any(len(i) and h in ground.given for h, i in ground.instances.items()):
        return 1

    def gain(tree: Tree) -> float:
        return math.fsum(of_item[h] for h in heads(tree))

    def product(tree: Tree) -> float:
        return math.prod(of_instance[u] for u in used(tree))

    best = as_tree(forest.decode(), prefix, first_rule)
    assert math.isclose(gain(best), max(map(gain, possible)), rel_tol=1e-9)

    def third(tree: Tree) -> float:
        """The gain of rules by their number, which is that of the tree."""
        if tree[0] in ("fact", "side"):
            return 0.0
        return (1 + tree[0] % 3) * of_item[tree[1]] + math.fsum(map(third, tree[2:]))

    best = as_tree(forest.decode(lambda i: 1 + (i.rule_number - first_rule) % 3), prefix, first_rule)
    assert math.isclose(third(best), max(map(third, possible)), rel_tol=1e-9)
    best = as_tree(forest.decode(by="product"), prefix, first_rule)
    assert math.isclose(product(best), max(map(product, possible)), rel_tol=1e-9)
    return 1
