"""Edit distance with learned costs: which slips are likely, learned from pairs of words alone.

The distance of Ristad and Yianilos (1998): a memoryless transducer inserts, deletes and replaces letters, each with a
probability, and a pair of words has the sum over all its alignments. The derivatives of the log of that are expected
numbers of edits, and dividing them by their sum is a step of expectation maximisation.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dynagrad as dg

PROGRAM = """
:- input from/2, to/2.       % from(I,A): the letter after position I is A
:- input lengths/2.          % lengths(M,N) of the two words
:- input replace/2.          % replace(A,B): A becomes B, which may be A
:- input delete/1, insert/1, stop/0.

pair(0,0)     += SIDE(lengths(_,_)).
pair(I+1,J)   += pair(I,J) * from(I,A) * delete(A).
pair(I,J+1)   += pair(I,J) * to(J,B) * insert(B).
pair(I+1,J+1) += pair(I,J) * from(I,A) * to(J,B) * replace(A,B).

goal += pair(M,N) * lengths(M,N) * stop.
"""

Facts = dict[str, Any]
ROWS = ["qwertyuiop", "asdfghjkl", "zxcvbnm"]
EDITS = ["replace/2", "delete/1", "insert/1", "stop/0"]


def words(source: str, target: str) -> Facts:
    """The facts of a pair of words."""
    return {
        "from/2": list(enumerate(source)),
        "to/2": list(enumerate(target)),
        "lengths/2": [(len(source), len(target))],
    }


def start(letters: str, copies: float = 0.5) -> Facts:
    """Where learning begins: half of all edits copy a letter, and of all the others each is as likely."""
    other = (1 - copies) / (len(letters) * (len(letters) + 1) + 1)
    same = copies / len(letters)
    return {
        "replace/2": [(a, b, same if a == b else other) for a in letters for b in letters],
        "delete/1": [(a, other) for a in letters],
        "insert/1": [(a, other) for a in letters],
        "stop/0": [(other,)],
    }


def data(size: str = "small") -> tuple[Facts, list[Facts]]:
    """The probabilities to begin with, and the facts of each pair of words."""
    if size == "small":
        return start("abc"), [words("abca", "acba"), words("cab", "cb"), words("abb", "abbc")]
    return start("".join(sorted("".join(ROWS)))), [words(*pair) for pair in typed(200)]


def typed(number: int, seed: int = 0) -> list[tuple[str, str]]:
    """Words, and what a hasty typist makes of them: neighbouring keys, letters missed and letters added."""
    random = np.random.default_rng(seed)
    letters = "".join(ROWS)
    weights = random.dirichlet(np.full(26, 2.0))

    def slip(c: str) -> str:
        u = random.random()
        if u < 0.80:
            return c
        return (
            "" if u < 0.85 else str(random.choice(neighbours(c))) if u < 0.95 else c + str(random.choice(list(letters)))
        )

    drawn = ["".join(random.choice(list(letters), random.integers(4, 11), p=weights)) for _ in range(number)]
    return [(w, "".join(map(slip, w))) for w in drawn]


def neighbours(c: str) -> list[str]:
    """The keys beside a key in its row."""
    row = next(row for row in ROWS if c in row)
    i = row.index(c)
    return [*row[max(i - 1, 0) : i], *row[i + 1 : i + 2]]


def learn(model: Facts, pairs: list[Facts], steps: int) -> tuple[list[float], Facts]:
    """The log likelihood before each step of expectation maximisation and at its end, and the probabilities."""
    bound = dg.Program(PROGRAM, "log", values="probabilities").bind(model)
    likelihoods = []
    for _ in range(steps):
        batch = bound.run_batch(pairs, query="goal", gradient=EDITS)
        likelihoods.append(float(batch.values.sum()))
        counts = {key: batch.gradient[key].values for key in EDITS}
        total = sum(c.sum() for c in counts.values())
        bound = bound.with_values({key: c / total for key, c in counts.items()}, values="probabilities")
        model = {key: [(*row[:-1], p / total) for row, p in zip(model[key], counts[key], strict=True)] for key in EDITS}
    likelihoods.append(float(bound.run_batch(pairs, query="goal").values.sum()))
    return likelihoods, model


def main(size: str = "small") -> Iterator[tuple[str, float]]:
    model, pairs = data(size)
    yield "pairs of words", len(pairs)
    yield "probabilities of edits", sum(len(model[key]) for key in EDITS)

    distance = dg.Program(PROGRAM, "log", values="probabilities").bind(model)
    yield "log likelihood before learning", distance.run_batch(pairs, query="goal").values.sum()
    likelihoods, learned = learn(model, pairs, 5)
    yield "log likelihood after 5 steps", likelihoods[-1]
    yield "probability of a letter that is right", sum(p for a, b, p in learned["replace/2"] if a == b)


def figure(path: str) -> None:
    import matplotlib.pyplot as plt

    model, pairs = data("real")
    _, learned = learn(model, pairs, 6)
    keys = "".join(ROWS)
    chance = np.full((26, 26), np.nan)
    for a, b, p in learned["replace/2"]:
        if a != b:
            chance[keys.index(a), keys.index(b)] = p
    with plt.style.context(Path(__file__).with_name("recipe.mplstyle")):
        _, axes = plt.subplots(figsize=(5, 4.4))
        shown = axes.imshow(chance)
        axes.set_xticks(range(26), keys)
        axes.set_yticks(range(26), keys)
        axes.set(xlabel="typed", ylabel="meant", title="Learned probabilities of wrong letters")
        plt.colorbar(shown)
        plt.savefig(path)
        plt.close()


if __name__ == "__main__":
    for what, value in main("real"):
        print(f"{what}: {value:,.6g}")
