"""Derivations of a WSJ sentence: its forest, the k best and draws, beside the run that they come from, and nltk's
parser; and the k best beside torch-struct's and nltk's."""

from __future__ import annotations

import importlib.util
from functools import partial
from itertools import islice
from typing import Any

import dynagrad as dg

from .common import Row, alternate, timed
from .k_best import k_best
from .wsj import facts, grammar, rows, sentences

WORDS = 40
DRAWS = 10_000


def derivations() -> list[Row]:
    """One sentence of 40 words: each figure is the least of several, taken in turns."""
    given = facts(next(s for s in sentences() if len(s) == WORDS))
    bound, best = grammar("log"), grammar("viterbi")
    for program in (bound, best):
        program.run(given).sample("goal", 2)  # compiles
    chart, ranked = bound.run(given), best.run(given)

    def fresh() -> dg.Forest:
        """A forest that nothing was asked of yet; the items of its chart are collected again."""
        chart = bound.run(given)
        seconds.append(timed(partial(chart.forest, "goal")))
        return chart.forest("goal")

    seconds: list[float] = []

    def first(k: int) -> None:
        for derivation in islice(best.run(given).kbest("goal"), k):
            assert derivation.weight is not None

    def draws() -> float:
        forest = fresh()
        return timed(lambda: forest.sample(DRAWS, seed=1))

    run, single, hundred, thousand, drawn = alternate(
        lambda: timed(partial(bound.run, given)),
        lambda: timed(partial(first, 1)),
        lambda: timed(partial(first, 100)),
        lambda: timed(partial(first, 1000)),
        draws,
        repeats=10,
    )
    forest = chart.forest("goal")
    arrays = forest.packed.arrays
    weight = ranked.best("goal").weight
    assert abs(weight - ranked["goal"]) < 1e-9 * abs(weight)
    iterator = forest.kbest()
    small = forest.packed.walk().bytes
    for _ in islice(iterator, 100):
        pass
    some = forest.packed.walk().bytes
    for _ in islice(iterator, 10_000 - 100):
        pass
    many = forest.packed.walk().bytes
    what = f"WSJ, a sentence of {WORDS} words: "
    return [
        Row(f"{what}the forest", min(seconds), "s", "its inside run", run, 3.0),
        Row(f"{what}bytes of the forest", forest.nbytes / len(arrays.antecedent), "B per antecedent", target=16.0),
        Row(f"{what}run and the first 100 derivations", hundred, "s", "run and the best", single, 1.2),
        Row(f"{what}run and the first 1,000 derivations", thousand, "s", "run and the best", single, 2.0),
        Row(f"{what}{DRAWS:,} draws from the forest", drawn, "s", "its inside run", run, 1.0),
        Row(f"{what}memory of 10,000 derivations", (many - small) / 1e6, "MB", "of 100", (some - small) / 1e6),
        *_nltk(),
        *k_best(),
    ]


def _nltk() -> list[Row]:
    """A sentence of 10 words by nltk's ViterbiParser, over the rules that may apply to it."""
    what = "WSJ, a sentence of 10 words: run and the best derivation"
    if importlib.util.find_spec("nltk") is None:
        return [Row(what, note="nltk is not installed")]
    import nltk  # an optional package

    words = next(s for s in sentences() if len(s) == 10)
    bound = grammar("viterbi")
    lexical = [r for r in rows("lexical.tsv") if r[1] in words]
    tags = {r[0] for r in lexical}
    binary = rows("binary.tsv")
    while (more := tags | {x for x, y, z, _ in binary if y in tags and z in tags}) != tags:
        tags = more
    symbol = nltk.Nonterminal
    productions: list[Any] = [nltk.ProbabilisticProduction(symbol(x), [w], prob=p) for x, w, p in lexical]
    productions += [
        nltk.ProbabilisticProduction(symbol(x), [symbol(y), symbol(z)], prob=p)
        for x, y, z, p in binary
        if y in tags and z in tags
    ]
    parser = nltk.parse.ViterbiParser(nltk.CFG(symbol("TOP"), productions))
    bound.run(facts(words)).best("goal")  # compiles
    own, theirs = alternate(
        lambda: timed(lambda: bound.run(facts(words)).best("goal")),
        lambda: timed(lambda: list(parser.parse(words))),
        repeats=3,
    )
    return [Row(what, own, "s", "nltk's ViterbiParser", theirs)]
