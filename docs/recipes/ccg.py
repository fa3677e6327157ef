"""Combinatory categorial grammar: categories are terms, and rules are schemata over all of them.

Seven rules combine categories of any form, by application and composition. Each reading has many derivations then, but
one of them is normal (Eisner 1996): a category that was made by composition to the right is not the left functor of
another combination to the right, nor the other way around. With that, sums are sums over readings.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dynagrad as dg

PROGRAM = r"""
:- input category/2.   % category(W,X): the probability that the word W has the category X
:- input word/3.       % word(W,I,K): the word W stands between the positions I and K
:- input end/1.

% constit(X,How,I,K): a constituent of category X, made by composition to the right (r), to the left (l), or else (o).
% X/Y wants a Y to its right, under(X,Y) a Y to its left.
constit(X,o,I,K) += category(W,X) * word(W,I,K).

constit(X,o,I,K) += constit(X/Y,How,I,J) * constit(Y,_,J,K) for How != r.                  % X/Y  Y    => X
constit(X,o,I,K) += constit(Y,_,I,J) * constit(under(X,Y),How,J,K) for How != l.           % Y    X\Y  => X
constit(X/Z,r,I,K) += constit(X/Y,How,I,J) * constit(Y/Z,_,J,K) for How != r.              % X/Y  Y/Z  => X/Z
constit(under(X,Z),l,I,K) += constit(under(Y,Z),_,I,J) * constit(under(X,Y),How,J,K) for How != l.  % Y\Z X\Y => X\Z

goal += constit(s,_,0,N) * end(N).
"""

ANY_ORDER = PROGRAM.replace(" for How != r", "").replace(" for How != l", "").replace("How", "_")
"""The same rules with all derivations, as a count of them shows."""

Facts = dict[str, Any]
SURE, IN_DOUBT = "#2f6fb3", "#b0602a"  # colours on which white can be read


def slash(x: Any, y: Any) -> dg.Term:
    """X/Y."""
    return dg.Term("slash", x, y)


def under(x: Any, y: Any) -> dg.Term:
    """X\\Y."""
    return dg.Term("under", x, y)


VP = under("s", "np")
CATEGORIES: list[tuple[Any, float, list[str]]] = [  # a category, how likely a word of its group has it, and the group
    ("np", 1.0, ["names"]),
    ("n", 0.9, ["nouns"]),
    (slash("n", "n"), 0.1, ["nouns"]),
    (slash("np", "n"), 1.0, ["articles"]),
    (slash("n", "n"), 1.0, ["adjectives"]),
    (VP, 0.3, ["verbs"]),
    (slash(VP, "np"), 0.6, ["verbs"]),
    (slash(slash(VP, "np"), "np"), 0.1, ["verbs"]),
    (under("n", "n"), 0.0, []),
    (slash(under("n", "n"), "np"), 0.5, ["prepositions"]),
    (slash(under(VP, VP), "np"), 0.5, ["prepositions"]),
    (under(VP, VP), 0.7, ["adverbs"]),
    (slash(VP, VP), 0.3, ["adverbs"]),
    (slash(VP, VP), 1.0, ["auxiliaries"]),
    (slash(under("n", "n"), VP), 1.0, ["relatives"]),
    (slash(VP, "s"), 1.0, ["believing"]),
    (slash(under("np", "np"), "np"), 0.4, ["conjunctions"]),
    (slash(under("s", "s"), "s"), 0.3, ["conjunctions"]),
    (slash(under(VP, VP), VP), 0.3, ["conjunctions"]),
]

SMALL = {
    "the": "articles",
    "pilot": "nouns",
    "saw": "verbs",
    "old": "adjectives",
    "telescope": "nouns",
    "with": "prepositions",
}


def lexicon(groups: dict[str, str]) -> Facts:
    """The categories of each word."""
    rows = [(w, x, p) for x, p, names in CATEGORIES for w, group in groups.items() if group in names]
    return {"category/2": rows}


def sentence(words: list[str]) -> Facts:
    return {"word/3": [(w, i, i + 1) for i, w in enumerate(words)], "end/1": [(len(words),)]}


def data(size: str = "small") -> tuple[Facts, list[Facts]]:
    """A lexicon, and the facts of each sentence."""
    if size == "small":
        return lexicon(SMALL), [
            sentence(["the", "pilot", "saw", "the", "telescope", "with", "the", "old", "telescope"])
        ]
    random = np.random.default_rng(0)
    names = sorted({name for _, _, group in CATEGORIES for name in group})
    groups = {f"{name}-{n}": name for name in names for n in range(100)}
    sentences: list[Facts] = []
    while len(sentences) < 20:
        words = [f"{name}-{random.integers(100)}" for name in clause(random)]
        if 15 <= len(words) <= 25:
            sentences.append(sentence(words))
    return lexicon(groups), sentences


def clause(random: np.random.Generator) -> list[str]:
    """The groups of the words of a random clause."""

    def phrase() -> list[str]:
        if random.random() < 0.2:
            return ["names"]
        said = ["articles"] + ["adjectives"] * int(random.integers(0, 2)) + ["nouns"]
        if random.random() < 0.35:
            said += ["prepositions", *phrase()]
        return said if random.random() > 0.1 else [*said, "relatives", *predicate()]

    def predicate() -> list[str]:
        said = ["auxiliaries"] if random.random() < 0.3 else []
        if random.random() < 0.15:
            return [*said, "believing", *clause(random)]
        said += ["verbs", *phrase()]
        if random.random() < 0.4:
            said += ["prepositions", *phrase()]
        return said + ["adverbs"] * int(random.integers(0, 2))

    said = [*phrase(), *predicate()]
    return said if random.random() > 0.2 else [*said, "conjunctions", *phrase(), *predicate()]


def main(size: str = "small") -> Iterator[tuple[str, float]]:
    words, sentences = data(size)
    yield "entries of the lexicon", len(words["category/2"])
    yield "sentences", len(sentences)

    count = dg.Program(PROGRAM, "count").bind(without_weights(words))
    readings = [count.run(each)["goal"] for each in sentences]
    yield "readings of all sentences", float(sum(readings))
    every = dg.Program(ANY_ORDER, "count").bind(without_weights(words))
    yield "derivations without the normal form", float(sum(every.run(each)["goal"] for each in sentences))

    parser = dg.Program(PROGRAM, "log", values="probabilities").bind(words)
    batch = parser.run_batch(sentences, query="goal", gradient=["category/2"])
    yield "log weight of the readings of all sentences", batch.values.sum()
    yield (
        "expected uses of transitive verbs",
        float(sum(p for _, x, p in batch.gradient["category/2"] if x == slash(VP, "np"))),
    )


def without_weights(words: Facts) -> Facts:
    """The same entries, each once: what is counted has no weights."""
    return {"category/2": [(w, x) for w, x, _ in words["category/2"]]}


def figure(path: str) -> None:
    import matplotlib.pyplot as plt

    words, (facts,) = data()
    chart = dg.Program(PROGRAM, "log", values="probabilities").bind(words).run(facts)
    said = [w for w, _, _ in facts["word/3"]]
    with plt.style.context(Path(__file__).with_name("recipe.mplstyle")):
        _, axes = plt.subplots(figsize=(8.4, 4.8))
        cells: dict[tuple[int, int], list[str]] = {}
        for x, _, i, k, p in chart.gradient("goal")["constit/4"]:
            if p > 0.01:
                cells.setdefault((i, k), []).append(f"{written(x)} {p:.2f}")
        for (i, k), lines in cells.items():
            sure = len(lines) == 1 and lines[0].endswith("1.00")
            axes.barh(k - i, k - i - 0.1, left=i + 0.05, height=0.8, color=SURE if sure else IN_DOUBT)
            text = "\n".join(lines).replace(" ", "\n" if k == i + 1 and sure else " ")
            axes.text((i + k) / 2, k - i, text, ha="center", va="center", fontsize=7, color="white")
        axes.set_xticks(np.arange(len(said)) + 0.5, said, rotation=30)
        axes.set(ylabel="words", title="Categories of constituents and their probabilities")
        plt.savefig(path)
        plt.close()


def written(x: Any, inner: bool = False) -> str:
    """A category as the literature writes it, with vp for s\\np."""
    if not isinstance(x, dg.Term) or x == VP:
        return "vp" if x == VP else str(x)
    left, right = x.arguments
    text = written(left, True) + ("/" if x.functor == "slash" else "\\") + written(right, True)
    return f"({text})" if inner else text


if __name__ == "__main__":
    for what, value in main("real"):
        print(f"{what}: {value:,.6g}")
