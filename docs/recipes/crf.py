"""Linear-chain conditional random fields: a tagger that is trained by its exact gradient, with scipy's L-BFGS.

The score of a tag sequence is a sum of learned weights; its probability is the softmax over all tag sequences. The
program has the loss of a sentence, minus the log of the probability of its tags, and training needs no more than that.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult, minimize

import dynagrad as dg

PROGRAM = """
:- input feature/2.    % feature(I,F): the word at position I, from 1, has the feature F
:- input tag/2.        % tag(I,T): the tag that it should get is T
:- input length/1.
:- input emit/2.       % emit(T,F): how well the tag T suits the feature F; learned
:- input move/2.       % move(S,T): how well the tag T suits after S, or after `start`; learned

fit(I,T) += emit(T,F) * feature(I,F).

% The log of the sum over all ways to tag the first I words, the last with T.
all(1,T)   log+= move(start,T) + fit(1,T).
all(I+1,T) log+= all(I,S) + move(S,T) + fit(I+1,T).
logz       log+= all(N,_) * SIDE(length(N)).

score += fit(I,T) * tag(I,T).
score += move(start,T) * tag(1,T).
score += move(S,T) * tag(I,S) * tag(I+1,T).

loss = logz - score.
"""

Facts = dict[str, Any]
Sentence = tuple[list[str], list[str]]
DECAY = 1e-3


def features(word: str) -> list[str]:
    """The word, its end, and how it is written."""
    shape = "digit" if any(c.isdigit() for c in word) else "upper" if word[0].isupper() else "lower"
    return [f"word={word.lower()}", f"end={word[-2:]}", f"shape={shape}"]


def sentence(words: list[str], tags: list[str]) -> Facts:
    return {
        "feature/2": [(i, f) for i, word in enumerate(words, 1) for f in features(word)],
        "tag/2": list(enumerate(tags, 1)),
        "length/1": [(len(words),)],
    }


def data(size: str = "small") -> tuple[Facts, list[Facts]]:
    """Weights of zero for all tags and features that were seen, and the facts of the sentences."""
    sentences = SMALL if size == "small" else corpus()[:100]
    return weights(sentences), [sentence(*each) for each in sentences]


SMALL: list[Sentence] = [
    (["The", "pilot", "saw", "it"], ["article", "noun", "verb", "pronoun"]),
    (["It", "saw", "the", "saw"], ["pronoun", "verb", "article", "noun"]),
    (["Planes", "fly"], ["noun", "verb"]),
]


def weights(sentences: list[Sentence]) -> Facts:
    tags = sorted({t for _, each in sentences for t in each})
    seen = sorted(
        {(t, f) for words, each in sentences for word, t in zip(words, each, strict=True) for f in features(word)}
    )
    return {
        "emit/2": [(t, f, 0.0) for t, f in seen],
        "move/2": [(s, t, 0.0) for s in ("start", *tags) for t in tags],
    }


def corpus(seed: int = 0) -> list[Sentence]:
    """Tagged sentences: of a treebank where there is one, else drawn from a random hidden Markov model."""
    file = Path(os.environ.get("DYNAGRAD_DATA", "")) / "wsj-sample" / "tagged.txt"
    if "DYNAGRAD_DATA" in os.environ and file.exists():
        lines = file.read_text(encoding="utf-8").splitlines()
        pairs = [[token.rsplit("/", 1) for token in line.split()] for line in lines]
        return [([w for w, _ in each], [t for _, t in each]) for each in pairs if 5 <= len(each) <= 40]
    random = np.random.default_rng(seed)
    tags, vocabulary, ends = 20, 3000, ["ed", "ing", "er", "ly", "on", "al", "s", "e", "t", "y"]
    follows = random.dirichlet(np.full(tags, 0.2), tags)
    # Words of a tag are Zipfian, and tags prefer some endings.
    words = [random.choice(vocabulary, 300, replace=False) for _ in range(tags)]
    chances = 1 / np.arange(1, 301) / (1 / np.arange(1, 301)).sum()
    sentences = []
    for _ in range(300):
        t, said, given = int(random.integers(tags)), [], []
        for _ in range(random.integers(8, 30)):
            w = int(random.choice(words[t], p=chances))
            said.append(f"w{w}{ends[(w + t) % 4 + t % 7]}")
            given.append(f"tag{t}")
            t = int(random.choice(tags, p=follows[t]))
        sentences.append((said, given))
    return sentences


def train(model: Facts, sentences: list[Facts], steps: int) -> list[tuple[float, dg.Bound]]:
    """The loss and the tagger before the first step of L-BFGS, and after each."""
    tagger = dg.Program(PROGRAM).bind(model)
    emitting = len(model["emit/2"])

    def weighted(x: np.ndarray) -> dg.Bound:
        return tagger.with_values({"emit/2": x[:emitting], "move/2": x[emitting:]})

    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        batch = weighted(x).run_batch(sentences, query="loss", gradient=["emit/2", "move/2"])
        slope = np.concatenate([batch.gradient[key].values for key in ("emit/2", "move/2")])
        return batch.values.sum() + DECAY * x @ x, slope + 2 * DECAY * x

    start = np.zeros(emitting + len(model["move/2"]))
    course = [(loss(start)[0], tagger)]

    def after_a_step(intermediate_result: OptimizeResult) -> None:
        course.append((intermediate_result.fun, weighted(intermediate_result.x)))

    minimize(loss, start, jac=True, method="L-BFGS-B", callback=after_a_step, options={"maxiter": steps})
    return course


def main(size: str = "small") -> Iterator[tuple[str, float]]:
    model, sentences = data(size)
    yield "weights", len(model["emit/2"]) + len(model["move/2"])
    yield "sentences", len(sentences)
    yield "words", sum(len(each["tag/2"]) for each in sentences)

    losses = dg.Program(PROGRAM).bind(model).run_batch(sentences, query="loss").values
    yield "loss of a word before training", losses.sum() / words(sentences)
    loss, tagger = train(model, sentences, 10)[-1]
    yield "loss of a word after 10 steps of L-BFGS", loss / words(sentences)
    yield "share of the training tags that are right", accuracy(tagger, sentences)


def words(sentences: list[Facts]) -> int:
    return sum(len(each["tag/2"]) for each in sentences)


def marginals(tagger: dg.Bound, given: Facts) -> dict[int, dict[str, float]]:
    """For each position the probability of each tag: the derivative of log Z by what the tag adds to it."""
    found: dict[int, dict[str, float]] = {}
    for i, tag, p in tagger.run({**given, "tag/2": []}).gradient("logz")["fit/2"]:
        found.setdefault(i, {})[tag] = p
    return found


def accuracy(tagger: dg.Bound, sentences: list[Facts]) -> float:
    """The share of words whose likeliest tag is the one that they should get."""
    right = 0
    for given in sentences:
        found = marginals(tagger, given)
        right += sum(max(found[i], key=found[i].__getitem__) == tag for i, tag in given["tag/2"] if i in found)
    return right / words(sentences)


def figure(path: str) -> None:
    import matplotlib.pyplot as plt

    sentences = corpus()
    training, held_out = sentences[:100], [sentence(*each) for each in sentences[150:190]]
    facts = [sentence(*each) for each in training]
    course = train(weights(training), facts, 12)
    steps = [0, 2, 4, 8, 12]
    with plt.style.context(Path(__file__).with_name("recipe.mplstyle")):
        _, axes = plt.subplots()
        axes.plot([loss / words(facts) for loss, _ in course], label="loss of a word, training")
        axes.plot(
            steps,
            [accuracy(course[n][1], held_out) for n in steps],
            "o-",
            label="share of tags that are right, held out",
        )
        axes.set(xlabel="steps of L-BFGS", ylim=(0, None))
        axes.legend()
        plt.savefig(path)
        plt.close()


if __name__ == "__main__":
    for what, value in main("real"):
        print(f"{what}: {value:,.6g}")
