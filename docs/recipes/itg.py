"""Inversion transduction grammars: two sentences, one tree, and which words are translations of which.

Each node of the tree that two sentences share keeps the order of its children in both, or turns it around in one (Wu
1997). The sum over all trees is a probability of the pair; its derivatives say how likely two words are linked, and are
what expectation maximisation needs to learn a dictionary from pairs of sentences alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dynagrad as dg

PROGRAM = """
:- input source/2, target/2.       % source(I,W): the word after position I is W
:- input lengths/2.
:- input straight/0, inverted/0.   % a node that keeps the order of its children, and one that turns it around
:- input translation/2.            % translation(W,V): W and V are a pair of words
:- input dropped/1, added/1.       % a word with no partner in the other sentence

% span(I,K,J,L): the words from I to K of the one sentence and those from J to L of the other are one node.
link(I,J) += source(I,W) * target(J,V) * translation(W,V).
span(I,I+1,J,J+1) += link(I,J).
span(I,I+1,J,J)   += source(I,W) * dropped(W) * SIDE(place(J)).
span(I,I,J,J+1)   += target(J,V) * added(V) * SIDE(position(I)).

span(I,K,J,L) += straight * span(I,M,J,N) * span(M,K,N,L).
span(I,K,J,L) += inverted * span(I,M,N,L) * span(M,K,J,N).

% Where a word without a partner may stand in the other sentence.
position(0) += SIDE(lengths(_,_)).
position(I+1) += SIDE(source(I,_)).
place(0) += SIDE(lengths(_,_)).
place(J+1) += SIDE(target(J,_)).

goal += span(0,M,0,N) * lengths(M,N).
"""

Facts = dict[str, Any]
LEARNED = ["straight/0", "inverted/0", "translation/2", "dropped/1", "added/1"]


def pair(source: list[str], target: list[str]) -> Facts:
    return {
        "source/2": list(enumerate(source)),
        "target/2": list(enumerate(target)),
        "lengths/2": [(len(source), len(target))],
    }


def start(pairs: list[Facts]) -> Facts:
    """Where learning begins: a fifth for either kind of node, and all words that occur in one pair alike."""
    linked = sorted({(w, v) for facts in pairs for _, w in facts["source/2"] for _, v in facts["target/2"]})
    sources, targets = sorted({w for w, _ in linked}), sorted({v for _, v in linked})
    return {
        "straight/0": [(0.2,)],
        "inverted/0": [(0.2,)],
        "translation/2": [(*words, 0.5 / len(linked)) for words in linked],
        "dropped/1": [(w, 0.05 / len(sources)) for w in sources],
        "added/1": [(v, 0.05 / len(targets)) for v in targets],
    }


def corpus(number: int, words: int = 40, seed: int = 0) -> list[tuple[list[str], list[str]]]:
    """Sentences, and what they are with other words, with some pieces turned around and some words missing."""
    random = np.random.default_rng(seed)

    def translated(sentence: list[str]) -> list[str]:
        if len(sentence) == 1:
            return [] if random.random() < 0.08 else [sentence[0].replace("s", "t")]
        cut = int(random.integers(1, len(sentence)))
        halves = [translated(sentence[:cut]), translated(sentence[cut:])]
        return halves[1] + halves[0] if random.random() < 0.3 else halves[0] + halves[1]

    result: list[tuple[list[str], list[str]]] = []
    while len(result) < number:
        sentence = [f"s{w}" for w in random.integers(words, size=random.integers(4, 9))]
        if other := translated(sentence):
            result.append((sentence, other))
    return result


def data(size: str = "small") -> tuple[Facts, list[Facts]]:
    """The probabilities to begin with, and the facts of each pair of sentences."""
    if size == "small":
        pairs = [
            pair(["la", "casa", "blanca"], ["the", "white", "house"]),
            pair(["la", "casa"], ["the", "house"]),
        ]
    else:
        pairs = [pair(*each) for each in corpus(80)]
    return start(pairs), pairs


def learn(model: Facts, pairs: list[Facts], steps: int) -> tuple[list[float], dg.Bound]:
    """The log likelihood before each step of expectation maximisation, and the grammar at the end."""
    grammar = dg.Program(PROGRAM, "log", values="probabilities").bind(model)
    likelihoods = []
    for _ in range(steps):
        batch = grammar.run_batch(pairs, query="goal", gradient=LEARNED)
        likelihoods.append(float(batch.values.sum()))
        total = sum(batch.gradient[key].values.sum() for key in LEARNED)
        updated = {key: batch.gradient[key].values / total for key in LEARNED}
        grammar = grammar.with_values(updated, values="probabilities")
    return likelihoods, grammar


def main(size: str = "small") -> Iterator[tuple[str, float]]:
    model, pairs = data(size)
    yield "pairs of sentences", len(pairs)
    yield "possible translations", len(model["translation/2"])

    grammar = dg.Program(PROGRAM, "log", values="probabilities").bind(model)
    yield "log likelihood before learning", grammar.run_batch(pairs, query="goal").values.sum()
    grammar = learn(model, pairs, 5)[1]
    yield "log likelihood after 5 steps", grammar.run_batch(pairs, query="goal").values.sum()
    yield "expected links of the first pair", float(links(grammar, pairs[0]).sum())


def links(grammar: dg.Bound, facts: Facts) -> np.ndarray:
    """For each two words of a pair of sentences the probability that they are linked."""
    result = np.zeros(facts["lengths/2"][0])
    for i, j, p in grammar.run(facts).gradient("goal")["link/2"]:
        result[i, j] = p
    return result


def figure(path: str) -> None:
    import matplotlib.pyplot as plt

    model, pairs = data("real")
    facts = max(pairs, key=lambda each: each["lengths/2"][0][0])
    with plt.style.context(Path(__file__).with_name("recipe.mplstyle")):
        _, both = plt.subplots(1, 2, sharey=True)
        for axes, steps in zip(both, (1, 8), strict=True):
            shown = axes.imshow(links(learn(model, pairs, steps)[1], facts), vmin=0, vmax=1)
            axes.set_xticks(range(len(facts["target/2"])), [v for _, v in facts["target/2"]], rotation=60)
            axes.set_yticks(range(len(facts["source/2"])), [w for _, w in facts["source/2"]])
            axes.set(title=f"after {steps} step{'s' * (steps > 1)}")
        plt.colorbar(shown, label="probability of a link")
        plt.savefig(path)
        plt.close()


if __name__ == "__main__":
    for what, value in main("real"):
        print(f"{what}: {value:,.6g}")
