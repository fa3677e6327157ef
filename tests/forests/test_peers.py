"""Derivations against nltk, on a small grammar and on real ones. Skipped where nltk is missing, or the data.

Costs three seconds: nltk takes long for a sentence.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import dynagrad as dg

nltk = pytest.importorskip("nltk")

OPTIMISED = True  # compiled as users have it
SHARED = Path(__file__).resolve().parents[3] / "shared"
DATA = Path(os.environ.get("DYNAGRAD_DATA") or SHARED / "data")
needs_wsj = pytest.mark.skipif(not (DATA / "wsj-sample").is_dir(), reason=f"no WSJ sample in {DATA}")

CKY = """
constit(X,I,K) += rewrite(X,W) * word(W,I,K).
constit(X,I,K) += rewrite(X,Y,Z) * constit(Y,I,J) * constit(Z,J,K).
goal += constit(START,0,N) * end(N).
"""
SMALL = """
S -> NP VP [1.0]
NP -> Det N [0.4] | NP PP [0.25] | 'I' [0.2] | 'telescopes' [0.15]
VP -> V NP [0.55] | VP PP [0.35] | 'saw' [0.1]
PP -> P NP [1.0]
Det -> 'the' [0.7] | 'a' [0.3]
N -> 'man' [0.5] | 'park' [0.3] | 'telescope' [0.2]
V -> 'saw' [1.0]
P -> 'with' [0.6] | 'in' [0.4]
"""


def facts_of(words: Sequence[str]) -> dict[str, Any]:
    return {"word/3": [(w, i, i + 1) for i, w in enumerate(words)], "end/1": [(len(words),)]}


def tree_of(derivation: dg.Derivation) -> Any:
    """The parse tree of a derivation: nested tuples of labels."""
    steps = derivation.steps

    def subtree(n: int) -> Any:
        step = steps[n]
        below = [i for i in step.antecedents if steps[i].name[0] in ("constit/3", "word/3")]
        if step.name[0] == "word/3":
            return step.name[1][0]
        return (step.name[1][0], *map(subtree, below))

    return subtree(steps[0].antecedents[0])


def nested(tree: Any) -> Any:
    return tree if isinstance(tree, str) else (tree.label(), *map(nested, tree))


def grammar_facts(productions: Sequence[Any]) -> dict[str, list[tuple[Any, ...]]]:
    found: dict[str, list[tuple[Any, ...]]] = {"rewrite/2": [], "rewrite/3": []}
    for p in productions:
        right = [str(x) for x in p.rhs()]
        found[f"rewrite/{len(right) + 1}"].append((str(p.lhs()), *right, p.prob()))
    return found


def test_all_parses_in_order_are_those_of_nltk() -> None:
    grammar = nltk.PCFG.fromstring(SMALL)
    words = ["I", "saw", "the", "man", "with", "a", "telescope", "in", "the", "park", "with", "telescopes"]
    chance = {(p.lhs(), p.rhs()): p.prob() for p in grammar.productions()}
    trees = list(nltk.parse.ChartParser(nltk.CFG(grammar.start(), grammar.productions())).parse(words))
    theirs = [(math.prod(chance[p.lhs(), p.rhs()] for p in t.productions()), nested(t)) for t in trees]
    program = dg.Program(CKY.replace("START", "'S'"), "real")
    facts = grammar_facts(grammar.productions()) | facts_of(words)
    chart = program.run(facts)
    mine = list(chart.kbest("goal"))
    assert len(mine) == len(theirs) == chart.count("goal") == 14
    probabilities = sorted((p for p, _ in theirs), reverse=True)
    assert [d.weight for d in mine] == pytest.approx(probabilities, rel=1e-12)
    assert sorted(map(tree_of, mine)) == sorted(t for _, t in theirs)
    assert chart["goal"] == pytest.approx(math.fsum(probabilities), rel=1e-12)
    for d in mine:
        d.check(program, facts)


def rows(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines() if line]


@pytest.fixture(scope="module")
def grammar() -> dict[str, list[tuple[Any, ...]]]:
    folder = DATA / "wsj-sample"
    return {
        "rewrite/3": [(x, y, z, float(p)) for x, y, z, p in rows(folder / "binary.tsv")],
        "rewrite/2": [(x, w, float(p)) for x, w, p in rows(folder / "lexical.tsv")],
    }


@pytest.fixture(scope="module")
def sentences() -> list[list[str]]:
    lines = (DATA / "wsj-sample" / "sentences.txt").read_text(encoding="utf-8").splitlines()
    return sorted((line.split() for line in lines), key=len)


@needs_wsj
def test_short_sentences_have_the_best_trees_of_nltk(
    grammar: dict[str, list[tuple[Any, ...]]], sentences: list[list[str]]
) -> None:
    short = [words for words in sentences if 4 <= len(words) <= 10]
    chosen = [short[n * (len(short) - 1) // 5] for n in range(6)]
    bound = dg.Program(CKY.replace("START", "'TOP'"), "viterbi").bind(grammar, values="probabilities")
    for words in chosen:
        chart = bound.run(facts_of(words))
        derivations = chart.kbest("goal", 2)
        best = next(derivations)
        second = next(derivations, None)
        used = set(words)
        lexical = [r for r in grammar["rewrite/2"] if r[1] in used]
        tags = {r[0] for r in lexical}
        while True:  # what can dominate words of this sentence
            more = tags | {x for x, y, z, _ in grammar["rewrite/3"] if y in tags and z in tags}
            if more == tags:
                break
            tags = more
        binary = [r for r in grammar["rewrite/3"] if r[1] in tags and r[2] in tags]
        productions = [_production(r) for r in (*lexical, *binary)]
        parser = nltk.parse.ViterbiParser(_Unchecked(nltk.Nonterminal("TOP"), productions))
        (theirs,) = parser.parse(words)
        assert best.weight == pytest.approx(math.log(theirs.prob()), rel=1e-9), words
        if second is None or second.weight < best.weight - 1e-9:
            assert tree_of(best) == nested(theirs), words


def _production(row: tuple[Any, ...]) -> Any:
    if len(row) == 3:
        return nltk.ProbabilisticProduction(nltk.Nonterminal(row[0]), [row[1]], prob=row[2])
    right = [nltk.Nonterminal(x) for x in row[1:3]]
    return nltk.ProbabilisticProduction(nltk.Nonterminal(row[0]), right, prob=row[3])


class _Unchecked(nltk.CFG):  # type: ignore[misc]  # nltk has no types
    """A part of a grammar, whose probabilities add up to less than one."""


@needs_wsj
def test_long_sentences_are_checked_and_have_the_weight_of_the_chart(
    grammar: dict[str, list[tuple[Any, ...]]], sentences: list[list[str]]
) -> None:
    program = dg.Program(CKY.replace("START", "'TOP'"), "viterbi")
    bound = program.bind(grammar, values="probabilities")
    long = [words for words in sentences if 12 <= len(words) <= 40]
    for words in [long[n * (len(long) - 1) // 11] for n in range(12)]:
        facts = facts_of(words)
        chart = bound.run(facts)
        best = chart.best("goal")
        assert best.weight == pytest.approx(chart["goal"], rel=1e-12)
        assert [s.name[1][0] for s in best if s.name[0] == "word/3"] == words
        best.check(program, grammar | facts, values="probabilities")


ATIS = """
:- semiring count.
part(X,Rest,I,K) += rewrite(X,[W|Rest]) * word(W,I,K).
part(X,Rest,I,K) += rewrite(X,[n(Y)|Rest]) * part(Y,[],I,K).
part(X,Rest,I,K) += part(X,[W|Rest],I,J) * word(W,J,K).
part(X,Rest,I,K) += part(X,[n(Y)|Rest],I,J) * part(Y,[],J,K).
goal += part('SIGMA',[],0,N) * end(N).
"""


@pytest.mark.skipif(not (DATA / "atis").is_dir(), reason=f"no ATIS grammar in {DATA}")
@pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")  # of cycles of unary rules
def test_the_derivations_of_an_ambiguous_grammar_are_as_many_as_were_published() -> None:
    productions = []
    for parent, right in rows(DATA / "atis" / "productions.tsv"):
        symbols = [s.strip('"') if s.startswith('"') else dg.Term("n", s) for s in right.split(" ")]
        productions.append((parent, symbols))
    program = dg.Program(ATIS)
    bound = program.bind({"rewrite/2": productions})
    listed = 0
    for number, text in rows(DATA / "atis" / "sentences.tsv")[::12]:
        facts = facts_of(text.split())
        chart = bound.run(facts)
        if int(number) == 0:
            continue
        assert chart.count("goal") == int(number) == chart["goal"]
        if int(number) < 300:
            found = list(chart.kbest("goal"))
            assert len(found) == len(set(found)) == int(number)
            assert [len(d) for d in found] == sorted(len(d) for d in found)
            found[-1].check(program, {"rewrite/2": productions} | facts)
            listed += 1
    assert listed > 2
