"""A treebank grammar: probabilities of rules and words from observed trees, and parses of sentences that were held out.

What is counted is the rules of the trees, made binary, as Charniak (1996) reads them off. A word that is rare counts by
how it is written, and the words of a symbol are smoothed towards those of its tag, by a prior.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

import dynagrad as dg
from dynagrad import training

PROGRAM = """
:- input word/2.         % word(I,W): W is the word at position I, from 0, or its class if it is rare
:- input length/1.
:- distribution root(X).
:- distribution rewrite(X,...) given X.   % X becomes Y and Z, or the word W

constit(X,I,I+1) += rewrite(X,W) * word(I,W).
constit(X,I,K)   += rewrite(X,Y,Z) * constit(Y,I,J) * constit(Z,J,K).

goal += constit(X,0,N) * root(X) * length(N).
"""
OBSERVED = """
:- semiring log.
:- input tree/3.         % tree(X,I,K): the words from I to K are an X
:- distribution root(X).
:- distribution rewrite(X,...) given X.

constit(X,I,I+1) += rewrite(X,W) * word(I,W) * tree(X,I,I+1).
constit(X,I,K)   += rewrite(X,Y,Z) * constit(Y,I,J) * constit(Z,J,K) * tree(X,I,K).

goal += constit(X,0,N) * root(X) * length(N).
"""
TAGS = """
:- semiring log.
:- distribution emit(T,W) given T.
goal += emit(T,W) * seen(T,W).
"""

Facts = dict[str, Any]
Phrase = tuple[str, int, int]
"""A symbol, and where it begins and ends."""
CHAIN, REST = "+", "|<"
STRENGTH = 5.0
"""How many words of its tag a symbol counts as having been seen with."""

SMALL = [
    "(S (NP (DT the) (NN dog)) (VP (VBD saw) (NP (DT the) (NN cat)) (PP (IN with) (NP (DT the) (NN glass)))))",
    "(S (NP (DT the) (NN cat)) (VP (VBD saw) (NP (NP (DT the) (NN dog)) (PP (IN with) (NP (DT a) (NN tail))))))",
    "(S (NP (NNP Fido)) (VP (VBD barked)))",
    "(S (NP (NNP Felix)) (VP (VBD saw) (NP (DT the) (JJ old) (NN dog))))",
]
HELD_OUT = ["(S (NP (NNP Rex)) (VP (VBD saw) (NP (DT a) (NN cat)) (PP (IN with) (NP (DT the) (NN glass)))))"]


def binary(tree: str) -> tuple[list[str], list[Phrase]]:
    """The words of a tree, and its phrases: chains of unary rules are one symbol, and no rule has more than two parts.

    What is left of X after a part Y is the symbol X|<Y>: one sister is known, which smooths long rules.
    """
    words, spans = training.spans_of(tree)
    found = [(CHAIN.join(x for x, _, _ in chain), *ends) for ends, chain in groupby(spans, lambda span: span[1:])]
    parts: list[list[Phrase]] = [[] for _ in found]
    above: list[int] = []
    for n, (_, begin, _) in enumerate(found):
        while above and found[above[-1]][2] <= begin:
            above.pop()
        if above:
            parts[above[-1]].append(found[n])
        above.append(n)
    rest = [
        (f"{x}{REST}{y}>", middle, end)
        for (x, _, end), inside in zip(found, parts, strict=True)
        for y, _, middle in inside[:-2]
    ]
    return words, found + rest


def brackets(phrases: Iterable[Phrase]) -> list[Phrase]:
    """The phrases of a tree as it was before `binary`, without the tags of words."""
    return [
        (label, begin, end)
        for symbol, begin, end in phrases
        if REST not in symbol
        for label in symbol.split(CHAIN)[: None if end - begin > 1 else -1]
    ]


ENDINGS = ("ing", "ed", "ly", "ion", "er", "est", "al", "s", "y")


def spelling(word: str) -> str:
    """How a word is written, which stands for words that are rare: digits, capitals, dashes, English endings."""
    shape = "9" if re.search(r"\d", word) else "A" if word[:1].isupper() else "a"
    ending = next((e for e in ENDINGS if word.endswith(e)), "")
    return f"<{shape}{'-' * ('-' in word)}{ending}>"


class Grammar:
    """What is learned from trees."""

    def __init__(self, trees: Sequence[str], classes: Callable[[str], str] = spelling) -> None:
        pairs = [binary(tree) for tree in trees]
        often = Counter(w for words, _ in pairs for w in words)
        self.vocabulary = training.vocabulary(often, 2, classes)
        self.known = Counter(self.vocabulary(w) for w in often)
        data = [{**self.facts(words), "tree/3": phrases} for words, phrases in pairs]
        self.model = dg.Model(OBSERVED, self.rows(data), prior={"rewrite": self.prior(data)})
        self.model.fit(data, iterations=1)

    def facts(self, words: Sequence[str]) -> Facts:
        """The facts of a sentence."""
        return {"word/2": list(enumerate(map(self.seen, words))), "length/1": [(len(words),)]}

    def seen(self, word: str) -> str:
        """The word, its class if it is rare, or the class of most rare words if that class is new."""
        word = self.vocabulary(word)
        return word if word in self.known else self.known.most_common(1)[0][0]

    def rows(self, data: Sequence[Facts]) -> Facts:
        """All rules of the trees, and the words of each tag for each symbol that ends in it."""
        rules, roots = dict[Any, None](), dict[Any, None]()
        symbols, listed = dict[str, None](), dict[str, dict[str, None]]()
        for facts in data:
            words, at = dict(facts["word/2"]), {(i, k): x for x, i, k in facts["tree/3"]}
            roots[at[0, len(words)],] = None
            for (i, k), x in at.items():
                if k == i + 1:
                    symbols[x] = None
                    listed.setdefault(tag(x), {})[words[i]] = None
                else:
                    (j,) = (j for j in range(i + 1, k) if (i, j) in at and (j, k) in at)
                    rules[x, at[i, j], at[j, k]] = None
        words_of = [(x, w) for x in symbols for w in listed[tag(x)]]
        return {"root/1": list(roots), "rewrite/3": list(rules), "rewrite/2": words_of}

    def prior(self, data: Sequence[Facts]) -> training.Dirichlet:
        """Words that are added to those of each symbol: `STRENGTH` of its tag's."""
        counts: Counter[tuple[str, str]] = Counter()
        for facts in data:
            words = dict(facts["word/2"])
            counts.update((tag(x), words[i]) for x, i, k in facts["tree/3"] if k == i + 1)
        tags = dg.fit(
            TAGS,
            {"emit/2": list(counts)},
            [training.Example({"seen/2": [pair]}, weight=n) for pair, n in counts.items()],
            iterations=1,
        )
        emit = {(t, w): p for t, w, p in tags.weights["emit/2"]}
        return training.Dirichlet(lambda x, y, *z: 1.0 if z else 1.0 + STRENGTH * emit[tag(x), y])

    def parser(self) -> dg.Bound:
        """The program with what was learned, for the best parses."""
        return dg.Program(PROGRAM, "viterbi", values="probabilities").bind(self.model.weights)


def tag(symbol: str) -> str:
    """The tag at the end of a chain."""
    return symbol.rsplit(CHAIN, 1)[-1]


def phrases(best: Iterable[dg.Derivation]) -> list[Phrase]:
    """The phrases of the best derivation, where there is one, as those of a tree."""
    return brackets([step.name[1] for steps in best for step in steps if step.name[0] == "constit/3"])


def f1(grammar: Grammar, trees: Sequence[str]) -> float:
    """F1 of labelled phrases."""
    pairs = [binary(tree) for tree in trees]
    batch = grammar.parser().run_batch([grammar.facts(words) for words, _ in pairs], query="goal", best=1)
    both = total = 0
    for (_, true), best in zip(pairs, batch.best, strict=True):
        one, other = Counter(brackets(true)), Counter(phrases(best))
        both, total = both + (one & other).total(), total + one.total() + other.total()
    return 2 * both / total


# -- trees -------------------------------------------------------------------------------------------------------------

RULES: dict[str, list[tuple[str, float]]] = {
    "S": [("NP VP", 1.0)],
    "NP": [("DT NN", 0.4), ("DT JJ NN", 0.15), ("NNP", 0.15), ("PRP", 0.1), ("NP PP", 0.15), ("NP CC NP", 0.05)],
    "VP": [("VBD NP", 0.4), ("VBD NP PP", 0.2), ("VBD SBAR", 0.1), ("VBD", 0.1), ("VBD ADVP", 0.1), ("VBD PP", 0.1)],
    "PP": [("IN NP", 1.0)],
    "SBAR": [("WDT S", 1.0)],
    "ADVP": [("RB", 1.0)],
}
WORDS = {"DT": "the a this", "PRP": "he she it they", "IN": "in of with on", "CC": "and or", "WDT": "that"}
OPEN = {"NN": ("ion", "er", "s", ""), "VBD": ("ed", ""), "JJ": ("al", "y", ""), "RB": ("ly",), "NNP": ("",)}


def drawn(random: np.random.Generator) -> Iterator[str]:
    """Trees of a small English-like grammar with made-up words, some of them under two tags."""
    stems = ["".join(random.choice([*"bdfgklmnprt"]) + random.choice([*"aeiou"]) for _ in range(3)) for _ in range(400)]
    words = {t: [str(random.choice(stems)) + str(random.choice(ends)) for _ in range(300)] for t, ends in OPEN.items()}
    words["NNP"] = [w.capitalize() for w in words["NNP"]]
    chances = 1 / np.arange(1, 301) / (1 / np.arange(1, 301)).sum()

    def tree(symbol: str) -> str:
        if symbol in RULES:
            rights, p = zip(*RULES[symbol], strict=True)
            inside = " ".join(map(tree, rights[random.choice(len(rights), p=p)].split()))
        elif symbol in WORDS:
            inside = str(random.choice(WORDS[symbol].split()))
        else:
            inside = str(random.choice(words[symbol], p=chances))
        return f"({symbol} {inside})"

    while True:
        found = tree("S")
        if len(found.split()) <= 60:
            yield found


def corpus(size: str, seed: int = 0) -> tuple[list[str], list[str]]:
    """Trees to learn from, and others."""
    if size == "small":
        return SMALL, HELD_OUT
    each = drawn(np.random.default_rng(seed))
    found = [next(each) for _ in range(1000)]
    return found[:800], found[800:]


def data(size: str = "small") -> tuple[Facts, list[Facts]]:
    """What was learned, and the sentences that were held out."""
    known, held_out = corpus(size)
    grammar = Grammar(known)
    weights = {key: list(table) for key, table in grammar.model.weights.items()}
    return weights, [grammar.facts(binary(tree)[0]) for tree in held_out]


def main(size: str = "small") -> Iterator[tuple[str, float]]:
    known, held_out = corpus(size)
    grammar = Grammar(known)
    rare = [w not in grammar.vocabulary.words for tree in held_out for w in binary(tree)[0]]
    yield "trees to learn from", len(known)
    yield "words in them", sum(len(binary(tree)[0]) for tree in known)
    yield "binary rules", len(grammar.model.weights["rewrite/3"])
    yield (
        "share of words that are rare or new, held out",
        sum(rare) / len(rare),
    )
    yield "labelled F1, held out", f1(grammar, held_out)
    yield "labelled F1 where all rare words are alike", f1(Grammar(known, lambda word: "rare"), held_out)


def figure(path: str) -> None:
    import matplotlib.pyplot as plt

    known, held_out = corpus("real")
    sizes = [25, 50, 100, 200, 400, 800]
    with plt.style.context(Path(__file__).with_name("recipe.mplstyle")):
        _, axes = plt.subplots()
        axes.plot(sizes, [f1(Grammar(known[:n]), held_out) for n in sizes], "o-", label="rare words by their spelling")
        alike = [f1(Grammar(known[:n], lambda word: "rare"), held_out) for n in sizes]
        axes.plot(sizes, alike, "o-", label="rare words alike")
        axes.set(xlabel="trees to learn from", ylabel="labelled F1, held out", xscale="log", xticks=sizes)
        axes.set_xticks([], minor=True)
        axes.set_xticks(sizes, list(map(str, sizes)))
        axes.legend()
        plt.savefig(path)
        plt.close()


if __name__ == "__main__":
    for what, value in main("real"):
        print(f"{what}: {value:,.6g}")
