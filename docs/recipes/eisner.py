"""Eisner's algorithm: projective dependency trees in cubic time, with the probability of each arc, and the best tree.

Each word has a head to the left or to the right, and arcs do not cross. The weight of a tree is the product of the
weights of its arcs. The algorithm of Eisner (1996) makes the dependents of a word on its left and on its right apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dynagrad as dg

PROGRAM = """
:- input arc/2.       % arc(H,D): the log weight of the arc from the head H to its dependent D; 0 is the root
:- input word/1.      % word(D): the positions of the words, from 1
:- input length/1.

% right(I,K): I with all its dependents to the right, up to K.  left(I,K): K with all of its to the left, down to I.
% to_right(I,K): those with an arc from I to K, K without its dependents to the right yet; to_left(I,K): from K to I.
right(0,0) = 0.
left(0,0)  = 0.
right(D,D) += word(D).
left(D,D)  += word(D).

to_right(I,K) += right(I,J) * left(J+1,K) * arc(I,K) for I =< J, J < K.
to_left(I,K)  += right(I,J) * left(J+1,K) * arc(K,I) for I =< J, J < K.
right(I,K)    += to_right(I,J) * right(J,K).
left(I,K)     += left(I,J) * to_left(J,K).

goal += right(0,N) * length(N).
"""

Facts = dict[str, Any]


def sentence(scores: np.ndarray) -> Facts:
    """Facts from a matrix of scores: `scores[h, d]` of the arc from h to d, the root being 0."""
    n = len(scores) - 1
    arcs = [(h, d, float(scores[h, d])) for h in range(n + 1) for d in range(1, n + 1) if h != d]
    return {"arc/2": arcs, "word/1": [(d,) for d in range(1, n + 1)], "length/1": [(n,)]}


def scores(n: int, seed: int) -> np.ndarray:
    """Scores that prefer short arcs, and the arcs of a random projective tree."""
    random = np.random.default_rng(seed)
    places = np.arange(n + 1)
    result = random.normal(size=(n + 1, n + 1)) - 0.3 * abs(places[:, None] - places)

    def attach(head: int, first: int, last: int) -> None:
        if first <= last:
            child = int(random.integers(first, last + 1))
            result[head, child] += 3.0
            attach(child, first, child - 1)
            attach(child, child + 1, last)

    attach(0, 1, n)
    return result


def data(size: str = "small") -> tuple[Facts, list[Facts]]:
    """Nothing is shared; each sentence brings its scores."""
    if size == "small":
        return {}, [sentence(scores(4, 0))]
    return {}, [sentence(scores(40, seed)) for seed in range(50)]


def main(size: str = "small") -> Iterator[tuple[str, float]]:
    _, sentences = data(size)
    yield "sentences", len(sentences)
    yield "words", sum(each["length/1"][0][0] for each in sentences)

    inside = dg.Program(PROGRAM, "log").bind({})
    yield "log partition functions", inside.run_batch(sentences, query="goal").values.sum()

    batch = inside.run_batch(sentences, query="goal", gradient=["arc/2"])
    yield "expected arcs", float(sum(table.values.sum() for table in batch.gradient["arc/2"]))

    best = dg.Program(PROGRAM, "viterbi").bind({})
    batch = best.run_batch(sentences, query="goal", gradient=["arc/2"])
    yield "log weight of the best trees", batch.values.sum()


def heads(chart: dg.Chart) -> dict[int, int]:
    """The head of each word in the best tree."""
    return {d: h for h, d, uses in chart.gradient("goal")["arc/2"] if uses}


def figure(path: str) -> None:
    import matplotlib.pyplot as plt
    from matplotlib.patches import Arc

    facts = sentence(scores(14, 2))
    marginals = dg.Program(PROGRAM, "log").run(facts).gradient("goal")["arc/2"]
    best = heads(dg.Program(PROGRAM, "viterbi").run(facts))
    with plt.style.context(Path(__file__).with_name("recipe.mplstyle")):
        _, axes = plt.subplots()
        for h, d, p in marginals:
            if p > 0.02:
                color = "C0" if best[d] == h else "C1"
                axes.add_patch(
                    Arc(((h + d) / 2, 0), abs(h - d), abs(h - d), theta1=0, theta2=180, color=color, lw=3 * p)
                )
        axes.plot([], color="C0", label="best tree")
        axes.plot([], color="C1", label="other arcs; the width is the probability")
        axes.set_xticks(range(15), ["root", *map(str, range(1, 15))])
        axes.set(xlim=(-0.5, 14.5), ylim=(0, 5), yticks=[], xlabel="word")
        axes.spines["left"].set_visible(False)
        axes.legend(loc="upper right")
        plt.savefig(path)
        plt.close()


if __name__ == "__main__":
    for what, value in main("real"):
        print(f"{what}: {value:,.6g}")
