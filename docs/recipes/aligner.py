"""Word alignment: which word of a sentence is the translation of which, learned from pairs of sentences alone.

IBM's model 1 takes each word of the target as a translation of any word of the source (Brown and others 1993). What it
learned is where a hidden Markov model begins, in which the positions of neighbours are near each other (Vogel, Ney and
Tillmann 1996).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import dynagrad as dg
from dynagrad import training

PROGRAM = """
:- input source/2, target/2.          % source(I,W): W is the word at position I, from 0
:- input length/1.                    % of the target
:- distribution translate(W,V) given W.
:- distribution jump(D).              % the source position is D after the one before

% at(J,I): the words of the target up to J, of which J is a translation of the source's word I.
at(0,I)   += jump(D) * source(I,W) * translate(W,V) * target(0,V) for D = I+1.
at(J+1,K) += at(J,I) * jump(D) * source(K,W) * translate(W,V) * target(J+1,V) for D = K-I.

goal += at(J,_) * length(J+1).
"""
MODEL_1 = """
:- distribution translate(W,V) given W.

done(0).
done(J+1) += done(J) * source(_,W) * translate(W,V) * target(J,V).
goal += done(N) * length(N).
"""

Facts = dict[str, Any]
Link = dict[int, int]
FAR = 12
"""The longest jump."""


def pair(source: Sequence[str], target: Sequence[str]) -> Facts:
    """The facts of a pair of sentences."""
    return {
        "source/2": list(enumerate(source)),
        "target/2": list(enumerate(target)),
        "length/1": [(len(target),)],
    }


SMALL = [("the house", "la casa"), ("the blue house", "la casa blu"), ("blue flower", "fiore blu")]


def corpus(size: str, seed: int = 0) -> tuple[list[Facts], list[Link]]:
    """Pairs of sentences, and for each word of the target the word of the source that it comes from.

    Drawn at random: words are Zipfian, each has two translations, and neighbours change places now and then.
    """
    if size == "small":
        links = [{0: 0, 1: 1}, {0: 0, 1: 2, 2: 1}, {0: 1, 1: 0}]
        return [pair(a.split(), b.split()) for a, b in SMALL], links
    random = np.random.default_rng(seed)
    words, pairs, links = 300, [], []
    chances = 1 / np.arange(1, words + 1) / (1 / np.arange(1, words + 1)).sum()
    for _ in range(800):
        source = random.choice(words, random.integers(4, FAR), p=chances)
        order = list(range(len(source)))
        for i in range(len(order) - 1):
            if random.random() < 0.25:
                order[i], order[i + 1] = order[i + 1], order[i]
        target = [f"v{int(source[i]) % 250}{'ab'[int(random.random() < 0.3)]}" for i in order]
        pairs.append(pair([f"w{w}" for w in source], target))
        links.append(dict(enumerate(order)))
    return pairs, links


def together(pairs: Sequence[Facts]) -> list[tuple[str, str]]:
    """The words that occur in one pair."""
    return sorted({(w, v) for facts in pairs for _, w in facts["source/2"] for _, v in facts["target/2"]})


def data(size: str = "small") -> tuple[Facts, list[Facts]]:
    """Weights to begin with, all alike, and the pairs."""
    pairs, _ = corpus(size)
    return start({(w, v): 1.0 for w, v in together(pairs)}), pairs


def start(translate: dict[tuple[str, str], float]) -> Facts:
    """All that the hidden Markov model learns, with translations that are known, and jumps alike."""
    return {
        "translate/2": [(w, v, p) for (w, v), p in translate.items()],
        "jump/1": [(d, 1 / (2 * FAR + 1)) for d in range(-FAR, FAR + 1)],
    }


def model_1(pairs: Sequence[Facts], iterations: int) -> dg.Model:
    """Model 1: all translations are alike to begin with."""
    model = dg.Model(f":- semiring log. {MODEL_1}", {"translate/2": together(pairs)})
    model.fit(list(pairs), iterations=iterations, tolerance=0.0)
    return model


def with_jumps(pairs: Sequence[Facts], before: dg.Model, iterations: int) -> dg.Model:
    """The hidden Markov model, which begins with the translations of model 1."""
    learned = {(w, v): p for w, v, p in before.weights["translate/2"]}
    model = dg.Model(f":- semiring log. {PROGRAM}", start(learned), prior=training.add_lambda(0.01))
    model.fit(list(pairs), iterations=iterations, tolerance=0.0)
    return model


def likeliest(model: dg.Model, facts: Facts) -> Link:
    """For each word of the target the likeliest translation by model 1, the first of equals."""
    words, table = dict(facts["source/2"]), model.weights["translate/2"]
    return {j: max(words, key=lambda i, v=v: (table[words[i], v], -i)) for j, v in facts["target/2"]}


def best_links(model: dg.Model, facts: Facts) -> Link:
    """The best alignment by the hidden Markov model."""
    return dict(s.name[1] for s in model.predict(facts) if s.name[0] == "at/2")


def wrong(found: Sequence[Link], right: Sequence[Link]) -> float:
    """The share of words of the targets that are linked to another word than they come from."""
    pairs = [(f[j], i) for f, r in zip(found, right, strict=True) for j, i in r.items()]
    return sum(a != b for a, b in pairs) / len(pairs)


def main(size: str = "small") -> Iterator[tuple[str, float]]:
    pairs, links = corpus(size)
    yield "pairs of sentences", len(pairs)
    yield "words of the targets", sum(len(facts["target/2"]) for facts in pairs)
    first = model_1(pairs, 5)
    yield "log likelihood of model 1, all positions alike and not counted", first.score(pairs)
    yield "share of wrong links, model 1", wrong([likeliest(first, facts) for facts in pairs], links)
    second = with_jumps(pairs, first, 5)
    yield "log likelihood with jumps", second.score(pairs)
    yield "share of wrong links, with jumps", wrong([best_links(second, facts) for facts in pairs], links)


def figure(path: str) -> None:
    import matplotlib.pyplot as plt

    pairs, _ = corpus("real")
    learned = dict(iter(with_jumps(pairs, model_1(pairs, 5), 5).weights["jump/1"]))
    with plt.style.context(Path(__file__).with_name("recipe.mplstyle")):
        _, axes = plt.subplots()
        near = range(-6, 7)
        axes.bar(near, [learned[d] for d in near], label="learned")
        axes.plot(near, [1 / (2 * FAR + 1)] * len(near), "C1", label="to begin with")
        axes.set(xlabel="jump in the source from one word of the target to the next", ylabel="probability")
        axes.legend()
        plt.savefig(path)
        plt.close()


if __name__ == "__main__":
    for what, value in main("real"):
        print(f"{what}: {value:,.6g}")
