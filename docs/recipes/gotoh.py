"""Gotoh's algorithm: the best alignment of two proteins with affine costs of gaps, and how sure each part of it is.

A gap costs more to open than to extend, so an alignment has three states: a pair of residues, a gap in the first
sequence, a gap in the second. The same rules in `log` are a pair hidden Markov model, whose posterior says how probable
each pair of residues is.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dynagrad as dg

PROGRAM = """
:- input first/2, second/2.     % first(I,A): the residue after position I is A
:- input lengths/2.
:- input score/2.               % score(A,B): what it is worth that A and B stand beside each other
:- input open/0, extend/0.      % what a gap of one residue is worth, and each more of them; below zero

% The first I residues of one sequence and the first J of the other are aligned, and the alignment ends in a pair, in a
% gap in the first, or in a gap in the second. Of two gaps side by side the one in the first sequence comes first.
paired(0,0)     += SIDE(lengths(_,_)).
paired(I+1,J+1) += aligned(I,J) * first(I,A) * second(J,B) * score(A,B).

first_gap(I,J+1) += paired(I,J)    * SIDE(second(J,_)) * open.
first_gap(I,J+1) += first_gap(I,J) * SIDE(second(J,_)) * extend.

second_gap(I+1,J) += paired(I,J)     * SIDE(first(I,_)) * open.
second_gap(I+1,J) += first_gap(I,J)  * SIDE(first(I,_)) * open.
second_gap(I+1,J) += second_gap(I,J) * SIDE(first(I,_)) * extend.

aligned(I,J) += paired(I,J).
aligned(I,J) += first_gap(I,J).
aligned(I,J) += second_gap(I,J).

goal += aligned(M,N) * lengths(M,N).
"""

Facts = dict[str, Any]
RESIDUES = "ARNDCQEGHILKMFPSTWYV"
BLOSUM62 = """
 4
-1  5
-2  0  6
-2 -2  1  6
 0 -3 -3 -3  9
-1  1  0  0 -3  5
-1  0  0  2 -4  2  5
 0 -2  0 -1 -3 -2 -2  6
-2  0  1 -1 -3  0  0 -2  8
-1 -3 -3 -3 -1 -3 -3 -4 -3  4
-1 -2 -3 -4 -1 -2 -3 -4 -3  2  4
-1  2  0 -1 -3  1  1 -2 -1 -3 -2  5
-1 -1 -2 -3 -1  0 -2 -3 -2  1  2 -1  5
-2 -3 -3 -3 -2 -3 -3 -3 -1  0  0 -3  0  6
-1 -2 -2 -1 -3 -1 -1 -2 -2 -3 -3 -1 -2 -4  7
 1 -1  1  0 -1  0  0  0 -1 -2 -2  0 -1 -2 -1  4
 0 -1  0 -1 -1 -1 -1 -2 -2 -1 -1 -1 -1 -2 -1  1  5
-3 -3 -4 -4 -2 -2 -3 -2 -2 -3 -2 -3 -1  1 -4 -3 -2 11
-2 -2 -2 -3 -2 -1 -2 -3  2 -1 -1 -2 -1  3 -3 -2 -2  2  7
 0 -3 -3 -3 -1 -2 -2 -3 -3  3  1 -2  1 -1 -2 -2  0 -3 -1  4
"""
HALF_BIT = float(np.log(2) / 2)
"""The unit of BLOSUM62: its entries times this are logs of odds."""


def blosum() -> dict[tuple[str, str], int]:
    """The matrix of Henikoff and Henikoff (1992), both halves."""
    lines = [line.split() for line in BLOSUM62.strip().splitlines()]
    half = {
        (a, b): int(x) for a, line in zip(RESIDUES, lines, strict=True) for b, x in zip(RESIDUES, line, strict=False)
    }
    return half | {(b, a): x for (a, b), x in half.items()}


def scores(gap: int = -11, longer: int = -1) -> Facts:
    """The scores in nats, so that they serve `viterbi` and `log`."""
    return {
        "score/2": [(a, b, HALF_BIT * x) for (a, b), x in blosum().items()],
        "open/0": HALF_BIT * gap,
        "extend/0": HALF_BIT * longer,
    }


def sequences(first: str, second: str) -> Facts:
    return {
        "first/2": list(enumerate(first)),
        "second/2": list(enumerate(second)),
        "lengths/2": [(len(first), len(second))],
    }


def related(length: int, seed: int = 0) -> tuple[str, str]:
    """A random protein, and a relative: residues replaced as the matrix has it, stretches lost and inserted."""
    random = np.random.default_rng(seed)
    matrix = blosum()
    odds = {a: np.exp2([0.8 * matrix[a, b] for b in RESIDUES]) for a in RESIDUES}
    first = "".join(random.choice(list(RESIDUES), length))
    second = ""
    skip = 0
    for a in first:
        u = random.random()
        skip = max(skip - 1, 0)
        if u < 0.015:
            skip = int(random.geometric(0.15))
        elif u < 0.03:
            second += "".join(random.choice(list(RESIDUES), random.geometric(0.15)))
        if not skip:
            second += str(random.choice(list(RESIDUES), p=odds[a] / odds[a].sum()))
    return first, second


def data(size: str = "small") -> tuple[Facts, list[Facts]]:
    """The scores, and the facts of one pair of proteins."""
    return scores(), [sequences(*(("HEAGAWGHEE", "PAWHEAE") if size == "small" else related(700)))]


def main(size: str = "small") -> Iterator[tuple[str, float]]:
    matrix, (pair,) = data(size)
    yield "residues of the first", pair["lengths/2"][0][0]
    yield "residues of the second", pair["lengths/2"][0][1]

    best = dg.Program(PROGRAM, "viterbi").bind(matrix).run(pair)
    yield "score of the best alignment, in half bits", best["goal"] / HALF_BIT
    yield "pairs of the best alignment", float(len(pairs(best)))

    chart = dg.Program(PROGRAM, "log").bind(matrix).run(pair)
    yield "log odds of all alignments", chart["goal"]
    yield "expected pairs", chart.gradient("goal")["paired/2"].values.sum() - 1  # less paired(0,0)


def pairs(chart: dg.Chart) -> list[tuple[int, int]]:
    """The pairs of positions, from 1, that the best alignment puts beside each other."""
    return [(i, j) for i, j, uses in chart.gradient("goal")["paired/2"] if uses and i]


def figure(path: str) -> None:
    import matplotlib.pyplot as plt

    matrix, facts = scores(), sequences(*related(160, 6))
    m, n = facts["lengths/2"][0]
    chance = np.zeros((m + 1, n + 1))
    for i, j, p in dg.Program(PROGRAM, "log").bind(matrix).run(facts).gradient("goal")["paired/2"]:
        chance[i, j] = p
    best = np.array(pairs(dg.Program(PROGRAM, "viterbi").bind(matrix).run(facts)))
    with plt.style.context(Path(__file__).with_name("recipe.mplstyle")):
        _, axes = plt.subplots(figsize=(5, 4.2))
        shown = axes.imshow(chance, interpolation="nearest", vmin=0, vmax=1)
        axes.plot(best[:, 1] + 4, best[:, 0] - 4, ".", ms=1.5, color="C1", label="best alignment, moved aside")
        axes.set(xlabel="second protein", ylabel="first protein", xlim=(0, n), ylim=(m, 0))
        axes.legend(loc="lower left", labelcolor="white")
        plt.colorbar(shown, label="probability of the pair")
        plt.savefig(path)
        plt.close()


if __name__ == "__main__":
    for what, value in main("real"):
        print(f"{what}: {value:,.6g}")
