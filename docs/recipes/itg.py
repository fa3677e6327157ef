"""Inversion transduction grammars: two sentences, one tree, and which words are translations of which.

Each node of the tree that two sentences share keeps the order of its children in both, or turns it around in one (Wu
1997). The sum over all trees is a probability of the pair. EM learns the grammar, a dictionary among it, from pairs of
sentences alone, and the best tree of a pair aligns its words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import dynagrad as dg
from dynagrad import training

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
MODEL_1 = """
:- distribution translation(W,V) given W.

done(0).
done(J+1) += done(J) * source(_,W) * translation(W,V) * target(J,V).
goal += done(N) * lengths(_,N).
"""

Facts = dict[str, Any]
Links = set[tuple[int, int]]
"""Which position of the source goes with which of the target."""


def pair(source: Sequence[str], target: Sequence[str]) -> Facts:
    return {
        "source/2": list(enumerate(source)),
        "target/2": list(enumerate(target)),
        "lengths/2": [(len(source), len(target))],
    }


SMALL = [("la casa blanca", "the white house", {(0, 0), (1, 2), (2, 1)}), ("la casa", "the house", {(0, 0), (1, 1)})]
WORDS = 80
INVERTED, DROPPED, ADDED, OTHER = 0.3, 0.08, 0.05, 0.25
"""How often a hidden tree turns a node around, drops a word, adds one; and has the second translation of a word."""


def corpus(size: str, seed: int = 0) -> tuple[list[Facts], list[Links]]:
    """Pairs of sentences, and their links. Words are Zipfian, and each has two translations, shared with others."""
    if size == "small":
        return [pair(a.split(), b.split()) for a, b, _ in SMALL], [links for *_, links in SMALL]
    random = np.random.default_rng(seed)
    chances = 1 / np.arange(1, WORDS + 1) / (1 / np.arange(1, WORDS + 1)).sum()

    def translated(words: list[tuple[int, int]]) -> list[tuple[int | None, str]]:
        """The words of the target, each with the position that it comes from."""
        if len(words) == 1:
            ((i, w),) = words
            found: list[tuple[int | None, str]] = []
            if random.random() >= DROPPED:
                found.append((i, f"t{w if random.random() >= OTHER else w * 7 % WORDS}"))
            if random.random() < ADDED:
                found.append((None, f"t{int(random.integers(3))}"))
            return found
        cut = int(random.integers(1, len(words)))
        halves = [translated(words[:cut]), translated(words[cut:])]
        return halves[1] + halves[0] if random.random() < INVERTED else halves[0] + halves[1]

    pairs, links = [], []
    while len(pairs) < 250:
        words = random.choice(WORDS, random.integers(4, 10), p=chances).tolist()
        if target := translated(list(enumerate(words))):
            pairs.append(pair([f"s{w}" for w in words], [v for _, v in target]))
            links.append({(i, j) for j, (i, _) in enumerate(target) if i is not None})
    return pairs, links


def together(pairs: Sequence[Facts]) -> list[tuple[str, str]]:
    """The words that occur in one pair."""
    return sorted({(w, v) for facts in pairs for _, w in facts["source/2"] for _, v in facts["target/2"]})


def start(pairs: Sequence[Facts]) -> Facts:
    """Where learning begins: a fifth for either kind of node, and all words that occur in one pair alike."""
    linked = together(pairs)
    sources, targets = sorted({w for w, _ in linked}), sorted({v for _, v in linked})
    return {
        "straight/0": [(0.2,)],
        "inverted/0": [(0.2,)],
        "translation/2": [(*words, 0.5 / len(linked)) for words in linked],
        "dropped/1": [(w, 0.05 / len(sources)) for w in sources],
        "added/1": [(v, 0.05 / len(targets)) for v in targets],
    }


def data(size: str = "small") -> tuple[Facts, list[Facts]]:
    """The probabilities to begin with, and the facts of each pair of sentences."""
    pairs, _ = corpus(size)
    return start(pairs), pairs


def grammar(rows: Facts) -> dg.Model:
    """A node is straight, inverted, a pair of words, or one word: all of these together sum to one."""
    return dg.Model(f":- semiring log. {PROGRAM}", {"nodes": training.Distribution(rows)})


def learned(rows: Facts, pairs: Sequence[Facts], iterations: int = 15) -> dg.Model:
    """A grammar, trained on pairs of sentences."""
    model = grammar(rows)
    model.fit(list(pairs), iterations=iterations)
    return model


def aligned(model: dg.Model, facts: Facts) -> Links:
    """The links of the best tree."""
    return {s.name[1] for s in model.predict(facts) if s.name[0] == "link/2"}


def model_1(pairs: Sequence[Facts], iterations: int = 15) -> dg.Model:
    """A dictionary alone, whatever the order of the words (Brown and others 1993)."""
    model = dg.Model(f":- semiring log. {MODEL_1}", {"translation/2": together(pairs)})
    model.fit(list(pairs), iterations=iterations)
    return model


def likeliest(model: dg.Model, facts: Facts) -> Links:
    """For each word of the target the likeliest translation by model 1, the first of equals."""
    words, table = dict(facts["source/2"]), model.weights["translation/2"]
    return {(max(words, key=lambda i, v=v: (table[words[i], v], -i)), j) for j, v in facts["target/2"]}


def f1(found: Sequence[Links], right: Sequence[Links]) -> float:
    """The harmonic mean of precision and recall."""
    return 2 * sum(len(f & r) for f, r in zip(found, right, strict=True)) / sum(len(x) for x in [*found, *right])


def hidden() -> dg.Model:
    """The grammar that made the pairs, as far as a grammar of this form can say it."""
    chances = 1 / np.arange(1, WORDS + 1) / (1 / np.arange(1, WORDS + 1)).sum()
    linked: dict[tuple[str, str], float] = {}
    for w, p in enumerate(chances.tolist()):
        for v, share in ((w, 1 - OTHER), (w * 7 % WORDS, OTHER)):
            key = f"s{w}", f"t{v}"
            linked[key] = linked.get(key, 0.0) + 0.5 * p * (1 - DROPPED) * share
    return grammar(
        {
            "straight/0": [(0.5 * (1 - INVERTED),)],
            "inverted/0": [(0.5 * INVERTED,)],
            "translation/2": [(*words, p) for words, p in linked.items()],
            "dropped/1": [(f"s{w}", 0.5 * p * DROPPED) for w, p in enumerate(chances.tolist())],
            "added/1": [(f"t{v}", 0.5 * ADDED / 3) for v in range(3)],
        }
    )


def main(size: str = "small") -> Iterator[tuple[str, float]]:
    pairs, right = corpus(size)
    rows = start(pairs)
    yield "pairs of sentences", len(pairs)
    yield "possible translations", len(rows["translation/2"])
    yield "log likelihood before learning", grammar(rows).score(pairs)
    model = learned(rows, pairs)
    yield "log likelihood after 15 steps", model.score(pairs)
    yield "F1 of the links of the best trees", f1([aligned(model, facts) for facts in pairs], right)
    first = model_1(pairs)
    yield "F1 of the links by model 1", f1([likeliest(first, facts) for facts in pairs], right)
    if size == "real":
        made = hidden()
        yield "F1 by the grammar that made the pairs", f1([aligned(made, facts) for facts in pairs], right)


def links(model: dg.Model, facts: Facts) -> np.ndarray:
    """For each two words of a pair of sentences the probability that they are linked."""
    result = np.zeros(facts["lengths/2"][0])
    for i, j, p in model.bound.run(facts).gradient("goal")["link/2"]:
        result[i, j] = p
    return result


def figure(path: str) -> None:
    import matplotlib.pyplot as plt

    pairs, right = corpus("real")
    n = max(range(len(pairs)), key=lambda n: len(right[n]))
    facts = pairs[n]
    with plt.style.context(Path(__file__).with_name("recipe.mplstyle")):
        _, both = plt.subplots(1, 2, sharey=True)
        for axes, steps in zip(both, (1, 15), strict=True):
            shown = axes.imshow(links(learned(start(pairs), pairs, steps), facts), vmin=0, vmax=1)
            axes.plot([j for _, j in right[n]], [i for i, _ in right[n]], "C1s", ms=15, mfc="none", label="link")
            axes.set_xticks(range(len(facts["target/2"])), [v for _, v in facts["target/2"]], rotation=60)
            axes.set_yticks(range(len(facts["source/2"])), [w for _, w in facts["source/2"]])
            axes.set(title=f"after {steps} step{'s' * (steps > 1)}")
        plt.colorbar(shown, ax=both, shrink=0.8, label="probability of a link")
        plt.savefig(path)
        plt.close()


if __name__ == "__main__":
    for what, value in main("real"):
        print(f"{what}: {value:,.6g}")
