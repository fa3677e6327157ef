"""Word segmentation: where words begin in a text without blanks, learned from segmented texts, and from the text alone.

The model is semi-Markov: a word is emitted as a whole, whatever its length. Maximum likelihood learns stretches of its
texts by heart. A prior that expects words to be short, and few of them to be frequent, helps against that (Goldwater,
Griffiths and Johnson 2009, section 3), here by variational Bayes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np

import dynagrad as dg
from dynagrad import training

PROGRAM = """
:- input piece/3.        % piece(W,I,K): the letters from I to K may be the word W
:- input length/1.
:- distribution word(W).

% cut(K): a word ends at K, and all before it is made of words.
cut(0).
cut(K) += cut(I) * word(W) * piece(W,I,K).

goal += cut(N) * length(N).
"""

Facts = dict[str, Any]
LONGEST = 8
"""The most letters of a word."""
SMALL = [["the", "dog"], ["the", "cat"], ["a", "dog"]]


def pieces(words: Sequence[str]) -> Facts:
    """The facts of a text whose words are given."""
    ends = [0, *accumulate(map(len, words))]
    return {"piece/3": list(zip(words, ends, ends[1:], strict=False)), "length/1": [(ends[-1],)]}


def unsegmented(text: str, longest: int = LONGEST) -> Facts:
    """The facts of a text without blanks: any piece of it may be a word."""
    places = [(i, k) for i in range(len(text)) for k in range(i + 1, min(len(text), i + longest) + 1)]
    return {"piece/3": [(text[i:k], i, k) for i, k in places], "length/1": [(len(text),)]}


def corpus(size: str, seed: int = 0) -> tuple[list[list[str]], list[list[str]]]:
    """Texts to train on, and others: words are made of syllables, and Zipfian."""
    if size == "small":
        return SMALL[:2], SMALL[2:]
    random = np.random.default_rng(seed)
    syllables = [c + v for c in ["", *"bdfgklmnprst"] for v in "aeiou"]
    lexicon = sorted({"".join(random.choice(syllables, random.integers(1, 4))) for _ in range(300)})
    random.shuffle(lexicon)
    chances = 1 / np.arange(1, len(lexicon) + 1)
    texts = [
        [str(w) for w in random.choice(lexicon, random.integers(3, 9), p=chances / chances.sum())] for _ in range(800)
    ]
    return texts[:600], texts[600:]


def spelt(word: str, stop: float = 0.5, letters: int = 26) -> float:
    """The probability of a word whose letters are random, after each of which it may end."""
    return stop / letters * ((1 - stop) / letters) ** (len(word) - 1)


def prior(strength: float = 20.0) -> training.Dirichlet:
    """So many words were seen before, with random letters."""
    return training.Dirichlet(lambda w: strength * spelt(w))


def rows(texts: Sequence[Sequence[str]]) -> Facts:
    """All pieces of the texts, which may be words; to begin with, short ones are likelier."""
    found = {w: spelt(w) for words in texts for w, _, _ in unsegmented("".join(words))["piece/3"]}
    total = sum(found.values())
    return {"word/1": [(w, p / total) for w, p in found.items()]}


def data(size: str = "small") -> tuple[Facts, list[Facts]]:
    """The pieces that may be words, and the texts without blanks."""
    known, held_out = corpus(size)
    return rows([*known, *held_out]), [unsegmented("".join(words)) for words in known]


def by_likelihood(known: Sequence[Sequence[str]], every: Facts, iterations: int) -> dg.Model:
    """Trained on texts without blanks, by the likelihood alone."""
    model = dg.Model(f":- semiring log. {PROGRAM}", every)
    model.fit([unsegmented("".join(words)) for words in known], iterations=iterations, tolerance=0.0)
    return model


def with_prior(known: Sequence[Sequence[str]], every: Facts, iterations: int) -> dg.Model:
    """The same with a prior of words, after a few steps by the likelihood."""
    begin = by_likelihood(known, every, 3)
    model = dg.Model(f":- semiring log. {PROGRAM}", begin.weights, prior=prior())
    data = [unsegmented("".join(words)) for words in known]
    model.fit(data, method="variational", iterations=iterations, tolerance=0.0)
    return model


def supervised(known: Sequence[Sequence[str]], every: Facts) -> dg.Model:
    """Trained on texts whose words are given."""
    model = dg.Model(f":- semiring log. {PROGRAM}", every, prior=prior())
    model.fit([pieces(words) for words in known], method="variational", iterations=1)
    return model


UNSUPERVISED = {"likelihood alone": by_likelihood, "with a prior": with_prior}


def cuts(model: dg.Model, texts: Sequence[Sequence[str]]) -> list[set[int]]:
    """Where the words of the best segmentation of each text begin and end."""
    best = dg.Program(PROGRAM, "viterbi", values="probabilities").bind(model.weights)
    batch = best.run_batch([unsegmented("".join(words)) for words in texts], query="goal", best=1)
    return [{s.name[1][-1] for s in steps[0] if s.name[0] == "piece/3"} for steps in batch.best]


def f1(model: dg.Model, texts: Sequence[Sequence[str]], whole: bool = False) -> float:
    """F1 of boundaries within texts, or of whole words."""
    both = one = other = 0
    for words, found in zip(texts, cuts(model, texts), strict=True):
        true, length = set(accumulate(map(len, words))), len("".join(words))
        if whole:
            true_words, found_words = (set(pairwise(sorted({0, *at}))) for at in (true, found))
        else:
            true_words, found_words = true - {length}, found - {length}
        both, one, other = both + len(true_words & found_words), one + len(true_words), other + len(found_words)
    return 2 * both / (one + other)


def main(size: str = "small") -> Iterator[tuple[str, float]]:
    known, held_out = corpus(size)
    every, iterations = rows([*known, *held_out]), 5 if size == "small" else 30
    yield "texts to train on", len(known)
    yield "letters in them", sum(len(w) for words in known for w in words)
    yield "pieces that may be words", len(every["word/1"])
    for name, train in UNSUPERVISED.items():
        model = train(known, every, iterations)
        yield f"{name}: F1 of boundaries", f1(model, known)
        yield f"{name}: F1 of boundaries, held out", f1(model, held_out)
        yield f"{name}: F1 of words, held out", f1(model, held_out, whole=True)
    model = supervised(known, every)
    yield "words given: F1 of boundaries, held out", f1(model, held_out)
    yield "words given: F1 of words, held out", f1(model, held_out, whole=True)


def chances(model: dg.Model, text: str) -> list[float]:
    """The probability of a boundary before each letter but the first."""
    chart = dg.Program(PROGRAM, "log", values="probabilities").bind(model.weights).run(unsegmented(text))
    found = dict(iter(chart.gradient("goal")["cut/1"]))
    return [found.get(i, 0.0) for i in range(1, len(text))]


def figure(path: str) -> None:
    import matplotlib.pyplot as plt

    known, held_out = corpus("real")
    every = rows([*known, *held_out])
    words = next(words for words in held_out if len("".join(words)) > 24)
    text, true = "".join(words), list(accumulate(map(len, words)))[:-1]
    with plt.style.context(Path(__file__).with_name("recipe.mplstyle")):
        _, both = plt.subplots(2, sharex=True, sharey=True)
        for axes, (name, train) in zip(both, UNSUPERVISED.items(), strict=True):
            axes.bar(range(1, len(text)), chances(train(known, every, 30), text), width=0.5, label=name)
            axes.vlines(true, 0, 1, color="C1", lw=1, ls="--", label="boundary")
            axes.set(ylabel="probability", ylim=(0, 1.05))
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.25), ncols=2)
        axes.set_xticks([i + 0.5 for i in range(len(text))], list(text))
        plt.savefig(path)
        plt.close()


if __name__ == "__main__":
    for what, value in main("real"):
        print(f"{what}: {value:,.6g}")
