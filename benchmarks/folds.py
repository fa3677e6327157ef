"""Parsing of sentences that the grammar was not read off, in ten folds of the WSJ sample; beside nltk's Viterbi parser.

The grammar is read off nine tenths of the trees: chains of unary rules are joined to one symbol, and rules are made
binary from the right, with one sister of context, which smooths them. Words are smoothed towards those of their tag,
and words that were seen once or never count by how they are written.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import dynagrad as dg

from .common import Row, Skip, alternate, data, timed
from .evalb import Bracket, Score, Tree, read_tree, score

PROGRAM = """
:- semiring viterbi.
constit(X,I,K) += lexical(X,I,K).
constit(X,I,K) += rewrite(X,Y,Z) * constit(Y,I,J) * constit(Z,J,K).
goal += constit(X,0,N) * root(X) * end(N).
"""
FOLDS, LONGEST = 10, 40
STRENGTH = 5.0
"""How many words of its tag a symbol counts as having been seen with."""
RARE = 1
CHAIN, REST = "+", "|<"


def trees() -> list[Tree]:
    """All trees of the sample."""
    return [read_tree(line) for line in data("wsj-sample", "trees.mrg").read_text().splitlines()]


def unknown(word: str) -> str:
    """How a word is written, which stands for words that are rare."""
    shape = "9" if re.search(r"\d", word) else "A" if word[:1].isupper() else "a"
    ending = next((e for e in ("ing", "ed", "ly", "ion", "er", "est", "al", "s", "y") if word.endswith(e)), "")
    return f"<{shape}{'-' * ('-' in word)}{ending}>"


# -- the grammar -------------------------------------------------------------------------------------------------------

Rule = tuple[str, str, str]


def joined(tree: Tree) -> tuple[str, Tree]:
    """The symbol of a chain of unary rules, and the tree at its end."""
    labels = [tree.label]
    while len(tree.children) == 1:
        (tree,) = tree.children
        labels.append(tree.label)
    return CHAIN.join(labels), tree


def read_off(tree: Tree, rules: Counter[Rule], words: Counter[tuple[str, str]]) -> str:
    """Counts the rules and words of a tree; returns the symbol of its root."""
    symbol, end = joined(tree)
    if not end.children:
        words[symbol, end.word] += 1
        return symbol
    parts = [read_off(child, rules, words) for child in end.children]
    above = symbol
    for n in range(len(parts) - 2):
        rest = f"{symbol}{REST}{parts[n]}>"
        rules[above, parts[n], rest] += 1
        above = rest
    rules[above, parts[-2], parts[-1]] += 1
    return symbol


@dataclass(frozen=True)
class Grammar:
    """Probabilities: of rules and roots; of words by symbol, and those of their tags, which smooth them."""

    rules: list[tuple[str, str, str, float]]
    roots: list[tuple[str, float]]
    known: frozenset[str]
    words: dict[str, dict[str, float]]
    """By word, or by how it is written: the probability that a symbol has it."""

    @staticmethod
    def of(sample: Iterable[Tree]) -> Grammar:
        """Relative frequencies in some trees, smoothed."""
        rules: Counter[Rule] = Counter()
        words: Counter[tuple[str, str]] = Counter()
        roots = Counter(read_off(tree, rules, words) for tree in sample)
        often: Counter[str] = Counter()
        for (_, word), n in words.items():
            often[word] += n
        known = frozenset(word for word, n in often.items() if n > RARE)
        by_symbol: Counter[tuple[str, str]] = Counter()
        by_tag: Counter[tuple[str, str]] = Counter()
        uses: Counter[str] = Counter()
        tag_uses: Counter[str] = Counter()
        for (symbol, word), n in words.items():
            seen, tag = word if word in known else unknown(word), symbol.rsplit(CHAIN, 1)[-1]
            by_symbol[symbol, seen] += n
            by_tag[tag, seen] += n
            uses[symbol] += n
            tag_uses[tag] += n
        heads: Counter[str] = Counter()
        for (symbol, _, _), n in rules.items():
            heads[symbol] += n
        found: dict[str, dict[str, float]] = {}
        for symbol, n in uses.items():
            tag = symbol.rsplit(CHAIN, 1)[-1]
            ends = n / (n + heads[symbol])  # the symbol is a word, and no binary rule
            for (other, seen), m in by_tag.items():
                if other == tag:
                    p = (by_symbol[symbol, seen] + STRENGTH * m / tag_uses[tag]) / (n + STRENGTH)
                    found.setdefault(seen, {})[symbol] = ends * p
        total = roots.total()
        return Grammar(
            [(x, y, z, n / (heads[x] + uses[x])) for (x, y, z), n in rules.items()],
            [(x, n / total) for x, n in roots.items()],
            known,
            found,
        )

    def seen(self, word: str) -> str:
        """The word, or what stands for it."""
        if word not in self.known:
            word = unknown(word)
        return word if word in self.words else "<a>"

    def lexical(self, words: Sequence[str]) -> list[tuple[str, int, int, float]]:
        """The symbols of each word."""
        seen = enumerate(map(self.seen, words))
        return [(symbol, n, n + 1, p) for n, word in seen for symbol, p in self.words[word].items()]

    def facts(self, words: Sequence[str]) -> dict[str, Any]:
        """The facts of a sentence."""
        return {"lexical/3": self.lexical(words), "end/1": [(len(words), 1.0)]}

    def bound(self) -> dg.Bound:
        """A parser."""
        return dg.Program(PROGRAM, values="probabilities").bind({"rewrite/3": self.rules, "root/1": self.roots})


def brackets(best: Iterable[Any]) -> list[Bracket]:
    """The constituents of a derivation, with chains taken apart and rules of any length again."""
    found: list[Bracket] = []
    for step in best:
        if step.name[0] == "constit/3":
            symbol, begin, end = step.name[1]
            labels = symbol.split(CHAIN)
            if REST not in symbol:
                found += [(label, begin, end) for label in (labels if end - begin > 1 else labels[:-1])]
    return found


# -- ten folds ---------------------------------------------------------------------------------------------------------


def folds() -> list[Row]:
    """Labelled F1 of all sentences of at most `LONGEST` words, each parsed by the grammar of the other folds."""
    sample = trees()
    total, failed, count, seconds = Score(), 0, 0, 0.0
    each = []
    for fold in range(FOLDS):
        grammar = Grammar.of(t for n, t in enumerate(sample) if n % FOLDS != fold)
        held_out = [t for n, t in enumerate(sample) if n % FOLDS == fold and len(t.leaves()) <= LONGEST]
        parser = grammar.bound()
        given = [grammar.facts([leaf.word for leaf in tree.leaves()]) for tree in held_out]
        batches: list[dg.Batch] = []

        def work(parser: dg.Bound = parser, given: Any = given, batches: Any = batches) -> None:
            batches.append(parser.run_batch(given, query="goal", best=1, threads=1))

        seconds += timed(work)
        scored = Score()
        for tree, best in zip(held_out, batches[0].best, strict=True):
            gold = [leaf.label for leaf in tree.leaves()]
            scored += score(gold, tree.brackets(), brackets(best[0]) if best else [])
            failed += not best
        each.append(scored.f1)
        total += scored
        count += len(held_out)
    what = f"WSJ sample, {FOLDS} folds, {count:,} sentences of at most {LONGEST} words"
    note = f"precision {total.precision:.4f}, recall {total.recall:.4f}, {failed} without a parse"
    return [
        Row(f"{what}: labelled F1", total.f1, "", note=f"{note}, folds {min(each):.4f} to {max(each):.4f}"),
        Row(f"{what}: best parse of a sentence", seconds / count),
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
    grammar = Grammar.of(t for n, t in enumerate(sample) if n % FOLDS)
    held_out = [t for t in sample[::FOLDS] if 2 <= len(t.leaves()) <= SHORT][:FEW]
    sentences = [[grammar.seen(leaf.word) for leaf in tree.leaves()] for tree in held_out]
    given = [grammar.facts([leaf.word for leaf in tree.leaves()]) for tree in held_out]
    parser = grammar.bound()

    symbol, production = nltk.grammar.Nonterminal, nltk.grammar.ProbabilisticProduction
    rules = [production(symbol(x), [symbol(y), symbol(z)], prob=p) for x, y, z, p in grammar.rules]
    rules += [production(symbol("^"), [symbol(x)], prob=p) for x, p in grammar.roots]
    used = {(x, word, p) for words in sentences for word in words for x, p in grammar.words[word].items()}
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
