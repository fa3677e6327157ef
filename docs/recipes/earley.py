"""Earley's algorithm: top-down parsing with rules of any length, and no constituent tried that is not needed.

Categories with what they still want are terms, and lists go through their right sides. What is needed is computed by
rules, too: a constituent is begun only where one that has begun before goes on with it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dynagrad as dg

PROGRAM = """
:- input rewrite/2.     % rewrite(X,[Y,Z,...]): a rule; n(Y) is a nonterminal, any other symbol a word
:- input word/3, end/1.
:- input top/1.         % top(X): a sentence is an X

% constit(X/Rest,I,K): an X that starts at I has been found up to K, all but the list Rest of what must still follow.
% need(X,J): some constituent that ends at J goes on with an X.
need(X,0) += SIDE(top(X)).
need(Y,J) += SIDE(constit(_/[n(Y)|_],_,J)).

constit(X/Rest,I,I) += SIDE(need(X,I)) * rewrite(X,Rest).                    % predict: only what is needed
constit(X/Rest,I,K) += constit(X/[W|Rest],I,J) * word(W,J,K).                % scan a word
constit(X/Rest,I,K) += constit(X/[n(Y)|Rest],I,J) * constit(Y/[],J,K).       % complete a constituent

goal += constit(X/[],0,N) * end(N) * top(X).
"""

EVERYWHERE = (
    PROGRAM.replace("SIDE(need(X,I)) * rewrite(X,Rest)", "SIDE(place(I)) * rewrite(X,Rest)")
    + """
place(I) += SIDE(word(_,I,_)).
"""
)
"""The same without prediction: every rule is begun at every place."""

Facts = dict[str, Any]


def rule(left: str, right: str) -> tuple[str, list[Any]]:
    """A rule as it is written in a grammar: `np -> det n`; words are in quotes."""
    return left, [x.strip('"') if x.startswith('"') else dg.Term("n", x) for x in right.split()]


SMALL: list[tuple[str, str, float]] = [
    ("s", "np vp", 1.0),
    ("np", "det n", 0.5),
    ("np", "np pp", 0.2),
    ("np", '"papa"', 0.3),
    ("vp", "v np", 0.6),
    ("vp", "vp pp", 0.3),
    ("vp", 'v np "to" np', 0.1),
    ("pp", "p np", 1.0),
    ("det", '"the"', 0.6),
    ("det", '"a"', 0.4),
    ("n", '"caviar"', 0.5),
    ("n", '"spoon"', 0.5),
    ("v", '"ate"', 1.0),
    ("p", '"with"', 1.0),
]


def sentence(words: list[str]) -> Facts:
    return {"word/3": [(w, i, i + 1) for i, w in enumerate(words)], "end/1": [(len(words),)]}


def data(size: str = "small") -> tuple[Facts, list[Facts]]:
    """A grammar, and the facts of each sentence."""
    if size == "small":
        rules = [(*rule(left, right), p) for left, right, p in SMALL]
        return {"rewrite/2": rules, "top/1": [("s",)]}, [
            sentence(["papa", "ate", "the", "caviar", "with", "a", "spoon"])
        ]
    folder = Path(os.environ.get("DYNAGRAD_DATA", "")) / "atis"
    return flights(folder) if "DYNAGRAD_DATA" in os.environ and folder.is_dir() else generated()


def flights(folder: Path) -> tuple[Facts, list[Facts]]:
    """The grammar of questions about flights of Moore and Carroll's comparison of parsers, each rule as likely."""
    rules = [line.split("\t") for line in (folder / "productions.tsv").read_text(encoding="utf-8").splitlines()]
    of = {left: sum(left == other for other, _ in rules) for left in {left for left, _ in rules}}
    lines = [line.split("\t") for line in (folder / "sentences.tsv").read_text(encoding="utf-8").splitlines()]
    sentences = [sentence(words.split()) for parses, words in lines if int(parses)][:40]
    return {"rewrite/2": [(*rule(*each), 1 / of[each[0]]) for each in rules], "top/1": [("SIGMA",)]}, sentences


def generated(seed: int = 0, topics: int = 40, number: int = 20) -> tuple[Facts, list[Facts]]:
    """A grammar whose verbs choose what their noun phrases are about, and sentences of 15 to 25 words drawn from it."""
    random = np.random.default_rng(seed)
    zipf = 1 / np.arange(1, 41) / (1 / np.arange(1, 41)).sum()
    rules: dict[str, list[tuple[str, float]]] = {"s": [(f"np{t} vp{t}", 1 / topics) for t in range(topics)]}
    for t in range(topics):
        u, v, w, x = random.integers(topics, size=4)
        rules[f"np{t}"] = [(f'"the" n{t}', 0.4), (f'"a" n{t}', 0.3), (f"np{t} pp{u}", 0.2), (f"np{t} pp{v}", 0.1)]
        rules[f"vp{t}"] = [(f"v{t} np{w}", 0.5), (f"vp{t} pp{x}", 0.3), (f'v{t} np{w} "to" np{x}', 0.2)]
        rules[f"pp{t}"] = [(f'"{word}" np{t}', 0.25) for word in ("in", "with", "of", "on")]
        for kind, vocabulary in (("n", 400), ("v", 300)):
            words = random.choice(vocabulary, 40, replace=False)
            rules[f"{kind}{t}"] = [(f'"{kind}-{word}"', float(p)) for word, p in zip(words, zipf, strict=True)]
    sentences: list[list[str]] = []
    while len(sentences) < number:
        said, todo = list[str](), ["s"]
        while todo and len(said) <= 25:
            symbol = todo.pop()
            if symbol.startswith('"'):
                said.append(symbol.strip('"'))
            else:
                right_sides, weights = zip(*rules[symbol], strict=True)
                todo += reversed(right_sides[random.choice(len(weights), p=weights)].split())
        if not todo and len(said) >= 15:
            sentences.append(said)
    rows = [(*rule(left, right), p) for left, both in rules.items() for right, p in both]
    return {"rewrite/2": rows, "top/1": [("s",)]}, [sentence(said) for said in sentences]


def main(size: str = "small") -> Iterator[tuple[str, float]]:
    grammar, sentences = data(size)
    yield "rules", len(grammar["rewrite/2"])
    yield "sentences", len(sentences)

    parser = dg.Program(PROGRAM, "log", values="probabilities").bind(grammar)
    batch = parser.run_batch(sentences, query="goal", gradient=["rewrite/2"])
    yield "log probability of all sentences", batch.values.sum()
    yield "expected uses of rules", batch.gradient["rewrite/2"].values.sum()

    count = dg.Program(PROGRAM, "count").bind(without_weights(grammar))
    yield "parses of all sentences", float(sum(count.run_batch(sentences, query="goal").values))
    yield "items that are needed", float(sum(items(parser, sentences)))
    everywhere = dg.Program(EVERYWHERE, "log", values="probabilities").bind(grammar)
    yield "items without prediction", float(sum(items(everywhere, sentences)))


def items(parser: dg.Bound, sentences: list[Facts]) -> list[int]:
    """How many items the chart of each sentence has."""
    return [parser.run(facts).stats.items for facts in sentences]


def without_weights(grammar: Facts) -> Facts:
    """The same rules, each once: what is counted has no weights."""
    return {**grammar, "rewrite/2": [(x, right) for x, right, _ in grammar["rewrite/2"]]}


def figure(path: str) -> None:
    import matplotlib.pyplot as plt

    grammar, sentences = generated(number=60)
    lengths = [facts["end/1"][0][0] for facts in sentences]
    with plt.style.context(Path(__file__).with_name("recipe.mplstyle")):
        _, axes = plt.subplots()
        for program, label in ((EVERYWHERE, "every rule everywhere"), (PROGRAM, "only what is needed")):
            parser = dg.Program(program, "log", values="probabilities").bind(grammar)
            axes.plot(lengths, items(parser, sentences), "o", ms=4, alpha=0.7, label=label)
        axes.set(xlabel="words", ylabel="items", yscale="log")
        axes.legend()
        plt.savefig(path)
        plt.close()


if __name__ == "__main__":
    for what, value in main("real"):
        print(f"{what}: {value:,.6g}")
