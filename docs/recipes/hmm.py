"""Hidden Markov models: forward, posterior and Viterbi, on the model of CpG islands.

In most of a genome the pair CG is rare; in islands it is not. Eight hidden states say which base is there and whether
it lies in an island. The recipe finds the islands, by the posterior of each state and by the best sequence of states.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dynagrad as dg

PROGRAM = """
:- input initial/1.       % initial(S): the first state is S
:- input transition/2.    % transition(S,T): T follows S
:- input emission/2.      % emission(S,O): the state S shows O
:- input observation/2.   % observation(I,O): O was seen at time I, from 0
:- input length/1.

forward(0,S)   += initial(S) * emission(S,O) * observation(0,O).
forward(I+1,T) += forward(I,S) * transition(S,T) * emission(T,O) * observation(I+1,O).

goal += forward(I,_) * length(I+1).
"""

BASES = "ACGT"
INSIDE = [
    [0.180, 0.274, 0.426, 0.120],
    [0.171, 0.368, 0.274, 0.188],
    [0.161, 0.339, 0.375, 0.125],
    [0.079, 0.355, 0.384, 0.182],
]
OUTSIDE = [
    [0.300, 0.205, 0.285, 0.210],
    [0.322, 0.298, 0.078, 0.302],
    [0.248, 0.246, 0.298, 0.208],
    [0.177, 0.239, 0.292, 0.292],
]

Facts = dict[str, Any]


def model(into: float = 1e-3, out_of: float = 4e-3) -> Facts:
    """Within an island and outside, a base depends on the one before; at times one is left for the other."""
    tables = {"+": np.array(INSIDE), "-": np.array(OUTSIDE)}
    leave = {"+": out_of, "-": into}
    states = [base + side for side in "+-" for base in BASES]
    transition = []
    for s in states:
        row = tables[s[1]][BASES.index(s[0])] / tables[s[1]][BASES.index(s[0])].sum()
        for t in states:
            share = 1 - leave[s[1]] if s[1] == t[1] else leave[s[1]]
            transition.append((s, t, share * float(row[BASES.index(t[0])])))
    return {
        "initial/1": [(s, 1 / 8) for s in states],
        "transition/2": transition,
        "emission/2": [(s, s[0].lower(), 1.0) for s in states],
    }


def data(size: str = "small") -> tuple[Facts, list[Facts]]:
    """The model and one sequence that was drawn from it."""
    if size == "small":
        return model(0.05, 0.1), [observed("ttacgcgcgtta")]
    return model(), [observed(drawn(100_000)[0])]


def observed(sequence: str) -> Facts:
    return {"observation/2": list(enumerate(sequence)), "length/1": [(len(sequence),)]}


def drawn(length: int, seed: int = 0) -> tuple[str, str]:
    """A sequence, and for each base whether it lies in an island."""
    random = np.random.default_rng(seed)
    rows: dict[str, list[tuple[str, float]]] = {}
    for s, t, p in model()["transition/2"]:
        rows.setdefault(s, []).append((t, p))
    cumulated = {s: ([t for t, _ in row], np.cumsum([p for _, p in row])) for s, row in rows.items()}
    state, states = "A-", []
    for u in random.random(length):
        after, sums = cumulated[state]
        state = after[min(int(np.searchsorted(sums, u)), 7)]
        states.append(state)
    return "".join(s[0].lower() for s in states), "".join(s[1] for s in states)


def main(size: str = "small") -> Iterator[tuple[str, float]]:
    parameters, (sequence,) = data(size)
    yield "observations", len(sequence["observation/2"])
    yield "states", len(parameters["initial/1"])

    chart = dg.Program(PROGRAM, "log", values="probabilities").bind(parameters).run(sequence)
    yield "log likelihood", chart["goal"]
    yield "expected observations in islands", float(sum(posterior(chart)))

    best = dg.Program(PROGRAM, "viterbi", values="probabilities").bind(parameters).run(sequence)
    yield "log probability of the best states", best["goal"]
    yield "observations in islands by the best states", float("".join(best_states(best)).count("+"))


def posterior(chart: dg.Chart) -> list[float]:
    """For each observation the probability that it lies in an island."""
    islands = [0.0] * len(chart.table("observation/2"))
    for i, state, p in chart.gradient("goal")["forward/2"]:
        islands[i] += p * state.endswith("+")
    return islands


def best_states(chart: dg.Chart) -> list[str]:
    """The best sequence of states: in `viterbi` it uses an item once, or never."""
    return [state for _, state, uses in chart.gradient("goal")["forward/2"] if uses]


def figure(path: str) -> None:
    import matplotlib.pyplot as plt

    sequence, truth = drawn(4000, 1)
    facts = observed(sequence)
    islands = posterior(dg.Program(PROGRAM, "log", values="probabilities").bind(model()).run(facts))
    best = best_states(dg.Program(PROGRAM, "viterbi", values="probabilities").bind(model()).run(facts))
    with plt.style.context(Path(__file__).with_name("recipe.mplstyle")):
        _, axes = plt.subplots()
        axes.fill_between(range(len(truth)), [c == "+" for c in truth], color="C1", alpha=0.35, lw=0, label="islands")
        axes.plot(islands, lw=1, label="posterior")
        axes.fill_between(
            range(len(best)), -0.05, -0.1, where=[s[1] == "+" for s in best], color="C2", lw=0, label="best states"
        )
        axes.set(xlabel="position", ylabel="probability of an island")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.15), ncols=3)
        plt.savefig(path)
        plt.close()


if __name__ == "__main__":
    for what, value in main("real"):
        print(f"{what}: {value:,.6g}")
