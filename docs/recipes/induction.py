"""Grammar induction: a grammar learned from the sentences of another one that is hidden, with and without brackets.

The inside-outside algorithm (Lari and Young 1990) begins with all rules over five symbols, at random. On words alone it
finds a grammar whose phrases are others than those of the hidden one; a few brackets are enough to find them, as
Pereira and Schabes (1992, section 4.1) show for palindromes. The same program and the same training serve both.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import dynagrad as dg
from dynagrad import training

PROGRAM = """
:- input word/2.          % word(I,W): W is the word at position I, from 0
:- input permitted/2.     % permitted(I,K): the words from I to K may be a phrase
:- input length/1.
:- distribution rewrite(X,...) given X.

phrase(X,I,I+1) += rewrite(X,W) * word(I,W).
phrase(X,I,K)   += rewrite(X,Y,Z) * phrase(Y,I,J) * phrase(Z,J,K) * permitted(I,K).

goal += phrase(s,0,N) * length(N).
"""
HIDDEN = {
    "rewrite/3": [
        *[("s", "first a", "rest a", 0.4), ("s", "first b", "rest b", 0.4)],
        *[("s", "first a", "first a", 0.1), ("s", "first b", "first b", 0.1)],
        *[("rest a", "s", "first a", 1.0), ("rest b", "s", "first b", 1.0)],
    ],
    "rewrite/2": [("first a", "a", 1.0), ("first b", "b", 1.0)],
}
"""Palindromes: what begins with a letter ends with it."""

Facts = dict[str, Any]
Span = tuple[int, int]
Sentence = tuple[list[str], list[Span]]
"""The words, and the phrases of the hidden grammar."""


def drawn(random: np.random.Generator) -> Sentence:
    """A sentence of the hidden grammar."""
    words: list[str] = []
    spans: list[Span] = []

    def expand(symbol: str) -> None:
        begin = len(words)
        rules = [row for rows in HIDDEN.values() for row in rows if row[0] == symbol]
        _, *parts, _ = rules[random.choice(len(rules), p=[row[-1] for row in rules])]
        if len(parts) == 1:
            words.append(parts[0])
            return
        for part in parts:
            expand(part)
        spans.append((begin, len(words)))

    expand("s")
    return words, spans


def corpus(size: str, seed: int = 0) -> tuple[list[Sentence], list[Sentence]]:
    """Sentences to train on, and others."""
    random, (train, test) = np.random.default_rng(seed), (4, 3) if size == "small" else (100, 400)
    found: list[Sentence] = []
    while len(found) < train + test:
        one = drawn(random)
        if len(one[0]) <= (6 if size == "small" else 24):
            found.append(one)
    return found[:train], found[train:]


def facts(words: Sequence[str], spans: Sequence[Span] = ()) -> Facts:
    """The facts of a sentence: its phrases cross none of these."""
    return {
        "word/2": list(enumerate(words)),
        "permitted/2": training.permitted(len(words), spans),
        "length/1": [(len(words),)],
    }


def rows(symbols: int, seed: int) -> Facts:
    """All rules over so many symbols and the two letters; probabilities are random to begin with."""
    random = np.random.default_rng(seed)
    names = ["s", *(f"x{n}" for n in range(1, symbols))]
    return {
        "rewrite/3": [(x, y, z, random.exponential()) for x in names for y in names for z in names],
        "rewrite/2": [(x, w, random.exponential()) for x in names for w in "ab"],
    }


def data(size: str = "small") -> tuple[Facts, list[Facts]]:
    """Rules with weights to begin with, and sentences without brackets."""
    known, _ = corpus(size)
    return rows(2 if size == "small" else 5, 0), [facts(words) for words, _ in known]


def learned(
    known: Sequence[Sentence], bracketed: int, symbols: int, iterations: int, starts: int
) -> tuple[dg.Model, training.Fit]:
    """A grammar from sentences, so many of which have brackets: the likeliest that EM finds from some starts."""
    given = [facts(words, spans if n < bracketed else ()) for n, (words, spans) in enumerate(known)]
    found = []
    for seed in range(starts):
        model = dg.Model(f":- semiring log. {PROGRAM}", rows(symbols, seed))
        found.append((model, model.fit(given, iterations=iterations)))
    return max(found, key=lambda each: each[1].objective)


def bits(grammar: Facts, sentences: Sequence[Sentence]) -> float:
    """How many bits a word of the sentences takes by a grammar: the cross-entropy."""
    bound = dg.Program(PROGRAM, "log", values="probabilities").bind(grammar)
    values = bound.run_batch([facts(words) for words, _ in sentences], query="goal").values
    return -float(values.sum()) / math.log(2) / sum(len(words) for words, _ in sentences)


def phrases(grammar: Facts, sentences: Sequence[Sentence]) -> list[set[Span]]:
    """The phrases of the best parse of each sentence."""
    bound = dg.Program(PROGRAM, "viterbi", values="probabilities").bind(grammar)
    batch = bound.run_batch([facts(words) for words, _ in sentences], query="goal", best=1)
    return [{s.name[1][1:] for s in best[0] if s.name[0] == "phrase/3"} for best in batch.best]


def right(grammar: Facts, sentences: Sequence[Sentence]) -> float:
    """The share of phrases that are right, but for words and whole sentences: recall, precision and F1 in one."""
    found = total = 0
    for (words, spans), best in zip(sentences, phrases(grammar, sentences), strict=True):
        inner = {span for span in spans if span != (0, len(words))}
        found, total = found + len(inner & best), total + len(inner)
    return found / total


SHARES = (0, 20, 100)
"""How many of a hundred sentences have brackets."""


def main(size: str = "small") -> Iterator[tuple[str, float]]:
    known, held_out = corpus(size)
    symbols, iterations, starts = (2, 10, 2) if size == "small" else (5, 60, 4)
    yield "sentences to train on", len(known)
    yield "words in them", sum(len(words) for words, _ in known)
    yield "bits a word by the hidden grammar, held out", bits(HIDDEN, held_out)
    for share in SHARES:
        model, _ = learned(known, len(known) * share // 100, symbols, iterations, starts)
        yield f"bits a word, learned with brackets of {share} % of the sentences", bits(model.weights, held_out)
        yield f"share of right phrases, with brackets of {share} %", right(model.weights, held_out)


def figure(path: str) -> None:
    import matplotlib.pyplot as plt

    known, _ = corpus("real")
    words = sum(len(words) for words, _ in known)
    with plt.style.context(Path(__file__).with_name("recipe.mplstyle")):
        _, axes = plt.subplots()
        for share in SHARES:
            _, fit = learned(known, len(known) * share // 100, 5, 60, 4)
            curve = [-record.data / math.log(2) / words for record in fit.history]
            axes.plot(curve, label=f"brackets of {share} % of the sentences" if share else "words alone")
        axes.axhline(bits(HIDDEN, known), color="#808080", ls="--", label="the hidden grammar")
        axes.set(xlabel="iterations of EM", ylabel="bits a word")
        axes.legend()
        plt.savefig(path)
        plt.close()


if __name__ == "__main__":
    for what, value in main("real"):
        print(f"{what}: {value:,.6g}")
