"""Parsing of sentences that the grammar was not read off, in ten folds of the WSJ sample; beside nltk's Viterbi parser.

The grammar is that of the recipe `docs/recipes/treebank.py`: a `dg.Model` whose trees are observed.
"""

from __future__ import annotations

import inspect
from collections import Counter
from typing import Any

import numpy as np
from docs.recipes.treebank import Grammar, phrases

import dynagrad as dg

from .common import Row, Skip, alternate, data, timed
from .evalb import Score, read_tree, score

FOLDS, LONGEST = 10, 40


def trees() -> list[str]:
    """All trees of the sample, in brackets."""
    return data("wsj-sample", "trees.mrg").read_text().splitlines()


# -- ten folds ---------------------------------------------------------------------------------------------------------


def folds() -> list[Row]:
    """Labelled F1 of all sentences of at most `LONGEST` words, each parsed by the grammar of the other folds."""
    sample = trees()
    total, failed, count, seconds, learning = Score(), 0, 0, 0.0, 0.0
    each = []
    for fold in range(FOLDS):
        grammars: list[Grammar] = []
        rest = [t for n, t in enumerate(sample) if n % FOLDS != fold]
        learning += timed(lambda rest=rest, grammars=grammars: grammars.append(Grammar(rest)))
        grammar = grammars[0]
        held_out = [t for t in map(read_tree, sample[fold::FOLDS]) if len(t.leaves()) <= LONGEST]
        parser = grammar.parser()
        given = [grammar.facts([leaf.word for leaf in tree.leaves()]) for tree in held_out]
        batches: list[dg.Batch] = []

        def work(parser: dg.Bound = parser, given: Any = given, batches: Any = batches) -> None:
            batches.append(parser.run_batch(given, query="goal", best=1, threads=1))

        seconds += timed(work)
        scored = Score()
        for tree, best in zip(held_out, batches[0].best, strict=True):
            gold = [leaf.label for leaf in tree.leaves()]
            scored += score(gold, tree.brackets(), phrases(best))
            failed += not best
        each.append(scored.f1)
        total += scored
        count += len(held_out)
    what = f"WSJ sample, {FOLDS} folds, {count:,} sentences of at most {LONGEST} words"
    note = f"precision {total.precision:.4f}, recall {total.recall:.4f}, {failed} without a parse"
    return [
        Row(f"{what}: labelled F1", total.f1, "", note=f"{note}, folds {min(each):.4f} to {max(each):.4f}"),
        Row(f"{what}: best parse of a sentence", seconds / count),
        Row(f"{what}: learning the grammar of a fold", learning / FOLDS),
    ]


# -- beside nltk -------------------------------------------------------------------------------------------------------

SHORT, FEW = 10, 20


def beside_nltk() -> list[Row]:
    """The best parses of some short sentences of the first fold: their weights agree."""
    try:
        import nltk  # type: ignore[import-untyped]  # it has no types
    except ImportError:
        raise Skip("nltk is not installed") from None
    sample = trees()
    grammar = Grammar([t for n, t in enumerate(sample) if n % FOLDS])
    held_out = [t for t in map(read_tree, sample[::FOLDS]) if 2 <= len(t.leaves()) <= SHORT][:FEW]
    sentences = [[grammar.seen(leaf.word) for leaf in tree.leaves()] for tree in held_out]
    given = [grammar.facts([leaf.word for leaf in tree.leaves()]) for tree in held_out]
    parser, weights = grammar.parser(), grammar.model.weights

    symbol, production = nltk.grammar.Nonterminal, nltk.grammar.ProbabilisticProduction
    rules = [production(symbol(x), [symbol(y), symbol(z)], prob=p) for x, y, z, p in weights["rewrite/3"]]
    rules += [production(symbol("^"), [symbol(x)], prob=p) for x, p in weights["root/1"]]
    used = {(x, word, p) for x, word, p in weights["rewrite/2"] if any(word in words for words in sentences)}
    rules += [production(symbol(x), [word], prob=p) for x, word, p in sorted(used)]
    sums: Counter[Any] = Counter()
    for rule in rules:
        sums[rule.lhs()] += rule.prob()
    rules += [production(x, ["<other>"], prob=1 - p) for x, p in sums.items() if p < 1]  # nltk wants sums of one
    limit = {"max_time": None} if "max_time" in inspect.signature(nltk.ViterbiParser).parameters else {}
    theirs = nltk.ViterbiParser(nltk.PCFG(symbol("^"), rules), **limit)

    batch = parser.run_batch(given, query="goal", best=1, threads=1)  # compiles
    found: list[Any] = []
    peer = timed(lambda: found.extend(next(theirs.parse(words), None) for words in sentences))  # once: it takes long
    logs = [-np.inf if tree is None else np.log(tree.prob()) for tree in found]
    worst = max((0.0 if a == b else abs(a - b) for a, b in zip(batch.values, logs, strict=True)), default=0.0)
    (own,) = alternate(lambda: timed(lambda: parser.run_batch(given, query="goal", best=1, threads=1)))
    what = f"WSJ sample, best parses of {len(sentences)} held-out sentences of at most {SHORT} words"
    return [
        Row(what, own, "s", "nltk.ViterbiParser", peer, 1.0),
        Row(f"{what}: worst difference of log p", worst, "", target=1e-9),
    ]
