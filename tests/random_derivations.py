"""Derivations of small random programs, held against all of them by brute force, in every semiring, cyclic ones too.

    PYTHONPATH=src:tests python tests/random_derivations.py SECONDS [FIRST]

Ranks, counts, draws, expectations, second moments, decoding, reasons, and what is missing. Programs are drawn by
`tests/random_programs.py`, and those of a semiring are one compiled program; `tests/derivation_oracle.py` writes their
derivations down. `tests/forests/test_random_programs.py` runs some; this draws other ones for as long as it is told to.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import Any

import numpy as np

import dynagrad as dg
from derivation_oracle import Ground, TooMany, Tree, as_tree, grounded
from dynagrad.forests.terms import PartialMatch
from dynagrad.rules.parse import parse, parse_item
from dynagrad.rules.syntax import Compound, Negation, Variable
from oracle import Conflict, Diverged, Key, Real, Struct, evaluate, term
from random_programs import CYCLIC_SEMIRINGS, Draw, Program, combined, semiring_program

SIZE = 6
"""The most instances of a derivation of a cyclic program that is written down."""
NAMES = ("real", "log", "viterbi", "tropical", "boolean", "count", "expectation")
MOMENTS = ("real", "log", "viterbi", "expectation")
"""Semirings in which decoding and second moments are asked for."""
REASONS = ("boolean", "viterbi")
"""Semirings in which sets of facts are asked for."""
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


def generated(semiring: str, cyclic: bool, number: int = 0, count: int = 10) -> tuple[Program, ...]:
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
        # the first part of a pair is ranked, and its last bit is not always that of the product of pairs
        assert a < b or (a == b and (m <= n or semiring == "expectation")), (mine, trees)
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
    value = ground.ring.one if item[0] in ground.clauses else total(semiring, list(weights.values()))
    assert close(chart[name], value), (name, chart[name], value)
    chances = {t: chance(semiring, w) for t, w in weights.items()}
    all_ = math.fsum(chances.values())
    if all_ <= 0:
        try:
            chart.sample(name, 1)
        except dg.QueryError as error:
            assert "have weight zero" in str(error)
            return 0
        raise AssertionError(f"{name} was drawn, which has weight zero")
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
    if semiring in ("real", "log") and not ground.with_functions(item):
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


# -- programs of a semiring, as one ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Together:
    """Programs of a semiring that are compiled as one, and were run."""

    semiring: str
    programs: tuple[Program, ...]

    @cached_property
    def facts(self) -> dict[str, list[tuple[Any, ...]]]:
        return given_facts(combined(self.programs).facts)

    @cached_property
    def compiled(self) -> dg.Program:
        return dg.Program(combined(self.programs).source, semiring=self.semiring)

    @cached_property
    def chart(self) -> dg.Chart:
        return self.compiled.run(self.facts)

    @cached_property
    def grounds(self) -> list[Ground]:
        return [grounded(program.source, program.facts, self.semiring) for program in self.programs]

    def items(self) -> Iterator[tuple[int, Ground, Key, str, int]]:
        """The items that rules derive: the number of the program, its instances, the item, the prefix of its names in
        the compiled program, and the number of its first rule there."""
        first_rule = 0
        for number, ground in enumerate(self.grounds):
            for item in ground.items:
                if item in ground.instances:
                    yield number, ground, item, f"p{number}_", first_rule
            first_rule += len(ground.source.rules)


@cache
def together(semiring: str, cyclic: bool, number: int = 0) -> Together:
    """The programs of a number, with their chart, which several questions are asked of."""
    return Together(semiring, generated(semiring, cyclic, number))


def check_all_sums(of: Together) -> int:
    """Sums, draws and expectations of all items; how many derivations there were."""
    checked = 0
    for number, ground, item, prefix, first_rule in of.items():
        with contextlib.suppress(TooMany):
            many = 400 if number else 100_000
            checked += check_sums(of.chart, ground, item, of.semiring, prefix, first_rule, many)
    return checked


def check_all_ranks(of: Together) -> int:
    """The best derivations of all items; how many there were."""
    return sum(
        check_item(of.chart, ground, item, of.semiring, prefix, first_rule, of.compiled, of.facts)
        for _, ground, item, prefix, first_rule in of.items()
    )


# -- reasons -----------------------------------------------------------------------------------------------------------


def derivable(ground: Ground, facts: set[Key], item: Key) -> bool:
    """Whether an item is derived by some given facts, the axioms, and the instances that there are."""
    known = {k for k, rows in ground.given.items() if k in facts or any(row is None or row < 0 for row, _ in rows)}
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


def check_all_reasons(of: Together) -> int:
    """Sets of facts for items: each suffices, and no fact of it can be left out; how many sets there were."""
    checked = 0
    for number, ground in enumerate(of.grounds):
        for item in list(ground.instances)[:20]:
            why = of.chart.why(item_of(item, f"p{number}_"), sets=5, budget=20_000)
            assert why.sets
            for names in why.sets:
                facts = {fact_of(name, f"p{number}_") for name in names}
                assert derivable(ground, facts, item), (item, names)
                assert not any(derivable(ground, facts - {f}, item) for f in facts), (item, names)
                checked += 1
            if why.complete:
                assert len({frozenset(s) for s in why.sets}) == len(why.sets)
    return checked


def check_all_absences(programs: Sequence[Program]) -> int:
    """What items of programs in `boolean` lack derives them; how many attempts could be tried.

    Of programs without negation; variables that are left stand for new symbols.
    """
    sources = [parse(program.source) for program in programs]
    plain = [
        (program, source)
        for program, source in zip(programs, sources, strict=True)
        if not any(isinstance(c, Negation) for r in source.rules for c in r.conditions)
    ]
    of, checked = Together("boolean", tuple(program for program, _ in plain)), 0
    for number, (_, source) in enumerate(plain):
        heads = dict.fromkeys(r.head.key for r in source.rules)
        for key, argument in itertools.product(heads, ("zzz", "c", "4")):
            name, _, arity = key.rpartition("/")
            wanted = f"p{number}_{name}" + (f"({','.join([argument] * int(arity))})" if arity != "0" else "")
            if wanted in of.chart:
                continue
            found = of.chart.why_not(wanted, seconds=5)
            for attempt in found.attempts[:3] if found.complete else ():
                checked += derives_with(of.compiled, of.facts, wanted, attempt)
    return checked


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


def check_all_moments(of: Together) -> int:
    """Second moments and decoding of all items that have a few derivations; how many there were."""
    checked = 0
    for _, ground, item, prefix, first_rule in of.items():
        with contextlib.suppress(TooMany):
            every = ground.derivations(item, 60)
            if 1 < len(every) < 200:
                checked += check_moments(of.chart, ground, item, of.semiring, prefix, first_rule, every)
    return checked


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

    def used(tree: Tree) -> list[Tree]:
        """The instances of rules, each with its head and the items below, and the facts; as often as they are used."""
        if tree[0] in ("fact", "side"):
            return [tree] if tree[0] == "fact" else []
        own = (tree[0], tree[1], tuple(t[1] for t in tree[2:]))
        return [own, *(u for t in tree[2:] for u in used(t))]

    occurs: dict[Tree, float] = {}  # the chance that a derivation has it
    for tree, q in zip(every, p, strict=True):
        for instance in set(used(tree)):
            occurs[instance] = occurs.get(instance, 0.0) + q
    possible = [t for t, q in zip(every, p, strict=True) if q > 0]

    def check(gain: Callable[[Any, Any], float], *, given: bool = True) -> None:
        """`gain` gets the number of a rule, or None and the row of a fact."""

        def of_instance(i: Any) -> float:
            return gain(None if i.rule is None else i.rule_number - first_rule, i.row)

        def expected(tree: Tree) -> float:
            of = [(u, (None, u[2]) if u[0] == "fact" else (u[0], None)) for u in used(tree)]
            return math.fsum(gain(*key) * occurs[u] for u, key in of)

        found = as_tree(forest.decode(of_instance) if given else forest.decode(), prefix, first_rule)
        assert math.isclose(expected(found), max(map(expected, possible)), rel_tol=1e-9)

    def third(rule: int | None, row: int | None) -> float:
        return 0.0 if rule is None else 1.0 + rule % 3

    def of_facts(rule: int | None, row: int | None) -> float:
        return 0.5 + (row or 0) % 3 if rule is None else 0.0

    def both_kinds(rule: int | None, row: int | None) -> float:
        return third(rule, row) - of_facts(rule, row) / 4

    check(lambda *_: 1.0, given=False)
    for gain in (third, of_facts, both_kinds):
        check(gain)

    def product(tree: Tree) -> float:
        return math.prod(occurs[u] for u in used(tree) if u[0] != "fact")

    best = as_tree(forest.decode(by="product"), prefix, first_rule)
    assert math.isclose(product(best), max(map(product, possible)), rel_tol=1e-9)
    return 1


# -- for as long as it is told to --------------------------------------------------------------------------------------


def main(seconds: float, number: int = 1) -> int:
    """Draws programs until the time is over; 1 where something was wrong."""
    warnings.simplefilter("ignore")
    end, count = time.monotonic() + seconds, Counter[str]()

    def tried(what: str, check: Callable[[], int], of: str) -> None:
        try:
            count[what] += check()
        except Exception as error:  # a difference, or what the package raised: print it and go on
            count["wrong"] += 1
            print(f"{what} of {of}, group {number}: {type(error).__name__}: {error}", flush=True)

    while time.monotonic() < end:
        for semiring, cyclic in itertools.product(NAMES, (False, True)):
            if cyclic and semiring not in CYCLIC_SEMIRINGS:
                continue
            of, called = together(semiring, cyclic, number), f"{semiring}{', cyclic' * cyclic}"
            tried("ranks", lambda of=of: check_all_ranks(of), called)  # type: ignore[misc]
            if not cyclic:
                tried("sums", lambda of=of: check_all_sums(of), called)  # type: ignore[misc]
            if not cyclic and semiring in MOMENTS:
                tried("moments", lambda of=of: check_all_moments(of), called)  # type: ignore[misc]
            if cyclic and semiring in REASONS:
                tried("reasons", lambda of=of: check_all_reasons(of), called)  # type: ignore[misc]
            if semiring == "boolean":
                tried("absences", lambda of=of: check_all_absences(of.programs), called)  # type: ignore[misc]
        together.cache_clear()
        number += 1
    print(dict(count))
    return min(1, count["wrong"])


if __name__ == "__main__":
    said, *rest = sys.argv[1:]
    sys.exit(main(float(said), *map(int, rest)))
