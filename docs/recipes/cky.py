"""CKY with unknown words: the inside algorithm, constituents with their probabilities, and the best parse.

A probabilistic grammar in Chomsky normal form, and words that it has never seen: such a word may be anything that is an
open class, with a probability of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dynagrad as dg

PROGRAM = """
:- input rewrite/2.   % rewrite(X,W): the probability of the rule X -> W, W a word
:- input rewrite/3.   % rewrite(X,Y,Z): the probability of the rule X -> Y Z
:- input unknown/1.   % unknown(X): how likely an X is one certain word that the grammar does not have
:- input word/3.      % word(W,I,K): the word W stands between the positions I and K
:- input end/1.       % end(N): the last position

constit(X,I,K) += rewrite(X,W) * word(W,I,K).
constit(X,I,K) += unknown(X) * word(W,I,K) for not rewrite(_,W).
constit(X,I,K) += rewrite(X,Y,Z) * constit(Y,I,J) * constit(Z,J,K).

goal += constit('TOP',0,N) * end(N).
"""

Facts = dict[str, Any]
SURE, IN_DOUBT = "#2f6fb3", "#b0602a"  # colours on which white can be read


def sentence(words: list[str]) -> Facts:
    """The facts of a sentence."""
    return {"word/3": [(w, i, i + 1) for i, w in enumerate(words)], "end/1": [(len(words),)]}


def data(size: str = "small") -> tuple[Facts, list[Facts]]:
    """A grammar, and the facts of each sentence."""
    if size == "small":
        return SMALL, [sentence(["the", "pilot", "saw", "the", "blorf", "with", "the", "telescope"])]
    folder = Path(os.environ.get("DYNAGRAD_DATA", "")) / "wsj-sample"
    return treebank(folder) if "DYNAGRAD_DATA" in os.environ and folder.is_dir() else generated()


SMALL: Facts = {
    "rewrite/3": [
        ("TOP", "np", "vp", 1.0),
        ("np", "det", "n", 0.7),
        ("np", "np", "pp", 0.3),
        ("vp", "v", "np", 0.7),
        ("vp", "vp", "pp", 0.3),
        ("pp", "p", "np", 1.0),
    ],
    "rewrite/2": [
        ("det", "the", 1.0),
        ("n", "pilot", 0.5),
        ("n", "telescope", 0.4),
        ("v", "saw", 0.9),
        ("p", "with", 1.0),
    ],
    "unknown/1": [("n", 0.01), ("v", 0.01)],
}


def treebank(folder: Path) -> tuple[Facts, list[Facts]]:
    """The grammar of a treebank, and sentences of 20 to 30 words in which each fortieth word is made up."""

    def rows(name: str) -> Iterator[tuple[Any, ...]]:
        for line in (folder / name).read_text(encoding="utf-8").splitlines():
            *symbols, probability = line.split("\t")
            yield *symbols, float(probability)

    lexical = list(rows("lexical.tsv"))
    lines = (folder / "sentences.txt").read_text(encoding="utf-8").splitlines()
    sentences = [words for words in map(str.split, lines) if 20 <= len(words) <= 30][:20]
    grammar = {"rewrite/3": list(rows("binary.tsv")), "rewrite/2": lexical, "unknown/1": unknown(lexical)}
    return grammar, with_new_words(sentences)


def generated(seed: int = 0, phrases: int = 120, tags: int = 40, vocabulary: int = 4000) -> tuple[Facts, list[Facts]]:
    """A random grammar of 3,000 binary and 8,000 lexical rules, and sentences of 20 to 30 words drawn from it."""
    random = np.random.default_rng(seed)
    names = ["TOP"] + [f"x{n}" for n in range(1, phrases)]
    classes = [f"t{n}" for n in range(tags)]
    binary, lexical = {}, {}
    for x in names:
        # Fewer than one phrase a rule on average, so that a sentence comes to an end.
        pairs = {
            tuple(str(random.choice(classes if random.random() < 0.55 else names)) for _ in "yz") for _ in range(25)
        }
        binary[x] = sorted(pairs), random.dirichlet(np.full(len(pairs), 0.3))
    for t in classes:
        lexical[t] = random.choice(vocabulary, 200, replace=False), random.dirichlet(1.0 / np.arange(1, 201))

    def words(symbol: str) -> list[str]:
        found: list[str] = []
        todo = [symbol]
        while todo and len(found) + len(todo) <= 30:
            x = todo.pop()
            if x in lexical:
                found.append(f"w{random.choice(lexical[x][0], p=lexical[x][1])}")
            else:
                y, z = binary[x][0][random.choice(len(binary[x][0]), p=binary[x][1])]
                todo += [z, y]
        return [] if todo else found

    rules = [(t, f"w{w}", p) for t in classes for w, p in zip(*lexical[t], strict=True) if p > 0]
    grammar = {
        "rewrite/3": [(x, *right, p) for x in names for right, p in zip(*binary[x], strict=True) if p > 0],
        "rewrite/2": rules,
        "unknown/1": unknown(rules),
    }
    sentences: list[list[str]] = []
    while len(sentences) < 20:
        drawn = words("TOP")
        if len(drawn) >= 20:
            sentences.append(drawn)
    return grammar, with_new_words(sentences)


def unknown(lexical: list[tuple[Any, ...]], share: float = 0.1) -> list[tuple[str, float]]:
    """A symbol makes new words the more easily, the more of its known words are rare: a share of their probability."""
    rare: dict[str, float] = {}
    for x, _, p in lexical:
        rare[x] = rare.get(x, 0.0) + (share * p if p < 0.01 else 0.0)
    return [(x, p) for x, p in rare.items() if p > 0]


def with_new_words(sentences: list[list[str]]) -> list[Facts]:
    """The facts of sentences in which each fortieth word is one that no grammar has."""
    return [
        sentence([f"new-{i}" if (i + n) % 40 == 7 else w for i, w in enumerate(s)]) for n, s in enumerate(sentences)
    ]


def main(size: str = "small") -> Iterator[tuple[str, float]]:
    grammar, sentences = data(size)
    yield "binary rules", len(grammar["rewrite/3"])
    yield "lexical rules", len(grammar["rewrite/2"])
    yield "sentences", len(sentences)

    parser = dg.Program(PROGRAM, "log", values="probabilities").bind(grammar)
    yield "log probability of all sentences", parser.run_batch(sentences, query="goal").values.sum()

    # The derivative of a log probability by the log of a rule's: how often parses use the rule, on average.
    counts = parser.run_batch(sentences, query="goal", gradient=["rewrite/3", "unknown/1"]).gradient
    yield "expected uses of binary rules", counts["rewrite/3"].values.sum()
    yield "expected uses of unknown words", counts["unknown/1"].values.sum()

    best = dg.Program(PROGRAM, "viterbi", values="probabilities").bind(grammar)
    yield "log probability of the best parses", best.run_batch(sentences, query="goal").values.sum()
    yield "brackets of the best parse of the first sentence", float(len(best_parse(best.run(sentences[0]))))


def best_parse(chart: dg.Chart) -> list[tuple[str, int, int]]:
    """The constituents of the best parse: those that it uses once, where the others are used never."""
    return [(x, i, k) for x, i, k, uses in chart.gradient("goal")["constit/3"] if uses]


def figure(path: str) -> None:
    import matplotlib.pyplot as plt

    grammar, sentences = data()
    chart = dg.Program(PROGRAM, "log", values="probabilities").bind(grammar).run(sentences[0])
    table = chart.gradient("goal")["constit/3"]
    words = [w for w, _, _ in sentences[0]["word/3"]]
    with plt.style.context(Path(__file__).with_name("recipe.mplstyle")):
        _, axes = plt.subplots()
        for x, i, k, p in table:
            if p > 0.005:
                axes.barh(k - i, k - i - 0.08, left=i + 0.04, height=0.8, color=SURE if p > 0.995 else IN_DOUBT)
                axes.text((i + k) / 2, k - i, f"{x} {p:.2f}", ha="center", va="center", color="white")
        axes.set_xticks(np.arange(len(words)) + 0.5, words, rotation=30)
        axes.set(ylabel="words", title="Constituents and their probabilities")
        plt.savefig(path)
        plt.close()


if __name__ == "__main__":
    for what, value in main("real"):
        print(f"{what}: {value:,.6g}")
