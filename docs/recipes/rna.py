"""RNA folding: the partition function of all secondary structures, and the probability of each base pair.

After McCaskill (1990), with stacking energies, loop penalties by length, and linear multiloops; without dangling ends,
special loops and mismatches of certain bases. In `log` a structure of energy E weighs exp(-E/RT), and the derivative by
a closed pair is its probability. In `viterbi` the same rules find the structure of least energy.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dynagrad as dg

PROGRAM = """
:- input base/2.          % base(I,B): the base at position I, from 1, is B
:- input length/1.
:- input bond/2.          % bond(A,B): A and B may pair; what a helix pays for ending in them
:- input stack/4.         % stack(A,B,C,D): the pair of A and B right around that of C and D
:- input hairpin/1.       % hairpin(L): a loop of L bases within one pair
:- input interior/2.      % interior(L,M): a bulge or an interior loop, of L bases on one side and M on the other
:- input multiloop/0.     % a loop of three helices or more
:- input branch/0.        % each helix of it

% ends(I,J): I and J may pair, and what it costs that a helix ends there.
ends(I,J) += base(I,A) * base(J,B) * bond(A,B) for J > I+3.

% closed(I,J): all structures between I and J in which these two pair.
closed(I,J) += ends(I,J) * hairpin(L) for L = J-I-1.
closed(I,J) += closed(I+1,J-1) * base(I,A) * base(J,B) * base(I+1,C) * base(J-1,D) * stack(A,B,C,D).
closed(I,J) += ends(I,J) * interior(L,M) * helix(P,Q) for I < P, Q < J, L = P-I-1, M = J-Q-1.
closed(I,J) += ends(I,J) * multiloop * branch * several(I+1,K-1) * one(K,J-1).

helix(I,J) += closed(I,J) * ends(I,J).

% one(I,J): a helix that begins at I, and bases after it.  several(I,J): one helix or more between I and J.
one(I,J)     += helix(I,J) * branch.
one(I,J)     += one(I,J-1) * SIDE(base(J,_)).
first(I,J)   += one(I,J).
first(I,J)   += first(I+1,J) * SIDE(base(I,_)).
several(I,J) += first(I,J).
several(I,J) += several(I,K-1) * one(K,J).

% outer(J): all structures of the first J bases.
outer(0) += SIDE(length(_)).
outer(J) += outer(J-1) * SIDE(base(J,_)).
outer(J) += outer(I-1) * helix(I,J).
goal += outer(N) * length(N).
"""

Facts = dict[str, Any]
RT = 0.0019872 * 310.15
"""In kcal/mol, at 37 degrees."""

PAIRS = ["cg", "gc", "gu", "ug", "au", "ua"]
# Turner's rules (2004), kcal/mol: the row is the outer pair, the column the inner one read from its other end.
STACKS = [
    [-2.4, -3.3, -2.1, -1.4, -2.1, -2.1],
    [-3.3, -3.4, -2.5, -1.5, -2.2, -2.4],
    [-2.1, -2.5, 1.3, -0.5, -1.4, -1.3],
    [-1.4, -1.5, -0.5, 0.3, -0.6, -1.0],
    [-2.1, -2.2, -1.4, -0.6, -1.1, -0.9],
    [-2.1, -2.4, -1.3, -1.0, -0.9, -1.3],
]
HAIRPINS = {3: 5.4, 4: 5.6, 5: 5.7, 6: 5.4, 7: 6.0, 8: 5.5, 9: 6.4}
BULGES = {1: 3.8, 2: 2.8, 3: 3.2, 4: 3.6, 5: 4.0, 6: 4.4}
INTERIORS = {2: 0.9, 3: 1.6, 4: 1.1, 5: 2.0, 6: 2.0, 7: 2.2, 8: 2.3, 9: 2.4, 10: 2.5}
MISMATCH, ASYMMETRY, AU_END, MULTILOOP, BRANCH, LONGEST = -0.8, 0.6, 0.45, 3.4, 0.4, 30

TRNA = "gcggauuuagcucaguugggagagcgccagacugaagaucuggagguccuguguucgauccacagaauucgcacca"
"""The transfer RNA of yeast for phenylalanine, without its chemical modifications."""
CLOVERLEAF = [(1, 72, 7), (10, 25, 4), (27, 43, 5), (49, 65, 5)]
"""Its helices as they are known from the crystal: the first pair, and how many there are."""


def loop(table: dict[int, float], length: int) -> float:
    """The energy of a loop; beyond the table it grows with the logarithm of the length."""
    last = max(table)
    return table[length] if length <= last else table[last] + 1.75 * RT * float(np.log(length / last))


def energies() -> Facts:
    """The energies as facts, each as -E/RT."""
    stacks = [
        (*a, *reversed(b), e) for a, row in zip(PAIRS, STACKS, strict=True) for b, e in zip(PAIRS, row, strict=True)
    ]
    interiors = []
    for n in range(1, LONGEST + 1):
        for left in range(n + 1):
            bulge = left in (0, n)
            energy = loop(BULGES, n) if bulge else loop(INTERIORS, n) + ASYMMETRY * abs(n - 2 * left)
            interiors.append((left, n - left, energy))
    hairpins = [(n, loop(HAIRPINS, n) + (MISMATCH if n > 3 else 0.0)) for n in range(3, 500)]
    tables: dict[str, list[tuple[Any, ...]]] = {
        "bond/2": [(*pair, 0.0 if pair in ("cg", "gc") else AU_END) for pair in PAIRS],
        "stack/4": stacks,
        "hairpin/1": hairpins,
        "interior/2": interiors,
        "multiloop/0": [(MULTILOOP,)],
        "branch/0": [(BRANCH,)],
    }
    return {key: [(*row[:-1], -row[-1] / RT) for row in rows] for key, rows in tables.items()}


def molecule(bases: str) -> Facts:
    return {"base/2": list(enumerate(bases, 1)), "length/1": [(len(bases),)]}


def data(size: str = "small") -> tuple[Facts, list[Facts]]:
    """The energies, and a molecule: a small hairpin, or a random one of 500 bases."""
    if size == "small":
        return energies(), [molecule("ggggaaaccccaacgaaag")]
    return energies(), [molecule("".join(np.random.default_rng(0).choice(list("acgu"), 500)))]


def main(size: str = "small") -> Iterator[tuple[str, float]]:
    model, (bases,) = data(size)
    yield "bases", len(bases["base/2"])

    chart = dg.Program(PROGRAM, "log").bind(model).run(bases)
    yield "free energy of the ensemble, kcal/mol", -RT * chart["goal"]
    yield "expected pairs", float(sum(p for *_, p in chart.gradient("goal")["closed/2"]))

    best = dg.Program(PROGRAM, "viterbi").bind(model).run(bases)
    yield "least energy, kcal/mol", -RT * best["goal"]
    yield "pairs of the structure of least energy", float(sum(uses for *_, uses in best.gradient("goal")["closed/2"]))


def figure(path: str) -> None:
    import matplotlib.pyplot as plt

    program = {semiring: dg.Program(PROGRAM, semiring).bind(energies()) for semiring in ("log", "viterbi")}
    chance = np.full((len(TRNA) + 1, len(TRNA) + 1), np.nan)
    for i, j, p in program["log"].run(molecule(TRNA)).gradient("goal")["closed/2"]:
        chance[i, j] = p if p > 1e-3 else np.nan
    best = [(i, j) for i, j, uses in program["viterbi"].run(molecule(TRNA)).gradient("goal")["closed/2"] if uses]
    known = [(i + n, j - n) for i, j, pairs in CLOVERLEAF for n in range(pairs)]
    with plt.style.context(Path(__file__).with_name("recipe.mplstyle")):
        _, axes = plt.subplots(figsize=(5.6, 4.6))
        shown = axes.imshow(chance, interpolation="nearest", vmin=0, vmax=1)
        axes.plot(*zip(*[(i, j) for i, j in best], strict=True), "s", ms=3, color="C1", label="least energy")
        axes.plot(*zip(*known, strict=True), "+", ms=6, mew=0.7, color="C4", label="known structure")
        axes.plot(*zip(*[(j, i) for i, j in known], strict=True), "+", ms=6, mew=0.7, color="C4")
        axes.set(xlabel="position", ylabel="position", title="Base pairs of a transfer RNA")
        axes.legend(loc="lower left", bbox_to_anchor=(0.0, 0.0))
        plt.colorbar(shown, label="probability of the pair")
        plt.savefig(path)
        plt.close()


if __name__ == "__main__":
    for what, value in main("real"):
        print(f"{what}: {value:,.6g}")
