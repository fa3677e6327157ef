"""A tagger by a hidden Markov model: trained on tagged sentences, on untagged ones, and with a dictionary.

The same program and the same training serve all three. What is known of a sentence is which tags each of its words may
have: the one that was observed, all of them, or those that a dictionary has for the word (Merialdo 1994).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import dynagrad as dg
from dynagrad import training

PROGRAM = """
:- input word/2.           % word(I,W): W is the word at position I, from 0
:- input permitted/2.      % permitted(I,T): it may have the tag T
:- input length/1.

:- distribution first(T).            % the tag of the first word
:- distribution next(S,T) given S.   % the tag after S
:- distribution emit(T,W) given T.   % the word under T

at(0,T)   += first(T) * emit(T,W) * word(0,W) * permitted(0,T).
at(I+1,T) += at(I,S) * next(S,T) * emit(T,W) * word(I+1,W) * permitted(I+1,T).

goal += at(I,_) * length(I+1).
"""

Facts = dict[str, Any]
Tagged = tuple[list[str], list[str]]

SMALL: list[Tagged] = [
    (["the", "dog", "saw", "it"], ["d", "n", "v", "n"]),
    (["it", "saw", "the", "saw"], ["n", "v", "d", "n"]),
    (["dog", "barks"], ["n", "v"]),
]


def sentence(words: Sequence[str], permitted: Sequence[Sequence[str]]) -> Facts:
    """The facts of a sentence, with the tags that each word may have."""
    return {
        "word/2": list(enumerate(words)),
        "permitted/2": [(i, t) for i, tags in enumerate(permitted) for t in tags],
        "length/1": [(len(words),)],
    }


def corpus(size: str, seed: int = 0) -> tuple[list[Tagged], list[Tagged]]:
    """Sentences to train on and others: of a random hidden Markov model, with ambiguous words."""
    if size == "small":
        return SMALL[:2], SMALL[2:]
    random = np.random.default_rng(seed)
    tags, vocabulary = 10, 600
    follows = random.dirichlet(np.full(tags, 0.3), tags)
    listed = [random.choice(vocabulary, 90, replace=False) for _ in range(tags)]
    chances = 1 / np.arange(1, 91) / (1 / np.arange(1, 91)).sum()
    drawn = []
    for _ in range(600):
        t, words, given = int(random.integers(tags)), [], []
        for _ in range(random.integers(8, 25)):
            words.append(f"w{int(random.choice(listed[t], p=chances))}")
            given.append(f"t{t}")
            t = int(random.choice(tags, p=follows[t]))
        drawn.append((words, given))
    return drawn[:500], drawn[500:]


def rows(sentences: Sequence[Tagged], seed: int | None = None) -> Facts:
    """All weights that are learned: alike to begin with, or with some noise, without which tags would stay alike."""
    random = None if seed is None else np.random.default_rng(seed)
    tags = sorted({t for _, given in sentences for t in given})
    words = sorted({w for each, _ in sentences for w in each})

    def start() -> float:
        return 1.0 if random is None else 1.0 + float(random.random())

    return {
        "first/1": [(t, start()) for t in tags],
        "next/2": [(s, t, start()) for s in tags for t in tags],
        "emit/2": [(t, w, start()) for t in tags for w in words],
    }


def tags_of(sentences: Sequence[Tagged]) -> list[str]:
    return sorted({t for _, given in sentences for t in given})


def data(size: str = "small") -> tuple[Facts, list[Facts]]:
    """Weights to begin with, and the sentences, in which any word may have any tag."""
    known, held_out = corpus(size)
    both = [*known, *held_out]
    every = tags_of(both)
    return rows(both, 0), [sentence(words, [every] * len(words)) for words, _ in known]


def tagger(given: Facts) -> dg.Model:
    """A model to be trained; no probability becomes zero."""
    return dg.Model(f":- semiring log. {PROGRAM}", given, prior=training.add_lambda(0.1))


def supervised(known: Sequence[Tagged], both: Sequence[Tagged]) -> dg.Model:
    """Trained on sentences whose tags are given: one step of EM is counting."""
    model = tagger(rows(both))
    model.fit([sentence(words, [[t] for t in tags]) for words, tags in known], iterations=2)
    return model


def unsupervised(known: Sequence[Tagged], both: Sequence[Tagged], iterations: int) -> dg.Model:
    """Trained on words alone."""
    model, every = tagger(rows(both, 0)), tags_of(both)
    model.fit([sentence(words, [every] * len(words)) for words, _ in known], iterations=iterations)
    return model


def with_dictionary(known: Sequence[Tagged], both: Sequence[Tagged], iterations: int) -> dg.Model:
    """Trained on words, each with the tags that a dictionary has for it."""
    model, found = tagger(rows(both)), dictionary(both)
    model.fit([sentence(words, [found[w] for w in words]) for words, _ in known], iterations=iterations)
    return model


def dictionary(sentences: Sequence[Tagged]) -> dict[str, list[str]]:
    """The tags of each word."""
    found: dict[str, set[str]] = {}
    for words, tags in sentences:
        for w, t in zip(words, tags, strict=True):
            found.setdefault(w, set()).add(t)
    return {w: sorted(tags) for w, tags in found.items()}


def best_tags(model: dg.Model, facts: Facts) -> list[str]:
    """The tags of the best derivation."""
    steps = model.predict(facts)
    return [t for _, t in sorted(s.name[1] for s in steps if s.name[0] == "permitted/2")]


def compared(
    model: dg.Model, sentences: Sequence[Tagged], allowed: dict[str, list[str]] | None = None
) -> list[tuple[str, str]]:
    """For each word the tag of the best derivation, and the one that it should have."""
    every, found = [t for t, _ in model.weights["first/1"]], []
    for words, tags in sentences:
        permitted = [every if allowed is None else allowed[w] for w in words]
        found += zip(best_tags(model, sentence(words, permitted)), tags, strict=True)
    return found


def accuracy(pairs: Sequence[tuple[str, str]]) -> float:
    """The share of words whose tag is right."""
    return sum(found == right for found, right in pairs) / len(pairs)


def many_to_one(pairs: Sequence[tuple[str, str]]) -> float:
    """The same where tags have no names: each stands for the one that it most often goes with."""
    counts = Counter(pairs)
    return sum(max(n for (f, _), n in counts.items() if f == found) for found in {f for f, _ in counts}) / len(pairs)


def main(size: str = "small") -> Iterator[tuple[str, float]]:
    known, held_out = corpus(size)
    both = [*known, *held_out]
    iterations = 5 if size == "small" else 40
    yield "sentences to train on", len(known)
    yield "words in them", sum(len(words) for words, _ in known)
    yield "supervised: share of right tags, held out", accuracy(compared(supervised(known, both), held_out))
    blind = unsupervised(known, both, iterations)
    yield "unsupervised: the same, tags as they best fit", many_to_one(compared(blind, held_out))
    listed = with_dictionary(known, both, iterations)
    yield "with a dictionary: share of right tags, held out", accuracy(compared(listed, held_out, dictionary(both)))


def figure(path: str) -> None:
    import matplotlib.pyplot as plt

    known, held_out = corpus("real")
    both = [*known, *held_out]
    found = dictionary(both)
    steps = [1, 2, 5, 10, 20, 40]
    with plt.style.context(Path(__file__).with_name("recipe.mplstyle")):
        _, axes = plt.subplots()
        top = accuracy(compared(supervised(known, both), held_out))
        axes.axhline(top, color="C2", ls="--", label="trained on tags")
        axes.plot(
            steps,
            [accuracy(compared(with_dictionary(known, both, n), held_out, found)) for n in steps],
            "o-",
            label="trained with a dictionary",
        )
        axes.plot(
            steps,
            [many_to_one(compared(unsupervised(known, both, n), held_out)) for n in steps],
            "o-",
            label="trained on words alone",
        )
        axes.set(xlabel="iterations of EM", ylabel="share of right tags", ylim=(0, 1), xscale="log")
        axes.legend()
        plt.savefig(path)
        plt.close()


if __name__ == "__main__":
    for what, value in main("real"):
        print(f"{what}: {value:,.6g}")
