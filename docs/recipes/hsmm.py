"""Hidden semi-Markov models: a state lasts for a time that has a distribution of its own.

A Markov chain leaves each state with the same probability at every step, so that durations are geometric. Here they
have any distribution. The recipe cuts a noisy signal into segments, and finds where segments end.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dynagrad as dg

PROGRAM = """
:- input initial/1.      % initial(S): the first segment is of state S
:- input transition/2.   % transition(S,T): a segment of T follows one of S
:- input duration/2.     % duration(S,D): a segment of S has D observations
:- input emission/2.     % emission(I,S): how likely what was seen at time I, from 0, is in S
:- input length/1.

% begin(I,S): a segment of S begins at I.  stay(I,S,D): the observations from I to I+D-1 are the rest of one.
begin(0,S)   += initial(S).
begin(I+1,T) += stay(I,S,1) * emission(I,S) * transition(S,T).

stay(I,S,D)     += begin(I,S) * duration(S,D).
stay(I+1,S,D-1) += stay(I,S,D) * emission(I,S) for D > 1.

goal += stay(I,S,1) * emission(I,S) * length(I+1).
"""

Facts = dict[str, Any]
MEANS, SPREAD = np.array([-1.0, 0.0, 1.5]), 0.8


def model(longest: int) -> Facts:
    """Three states that last for a while, each about a time of its own, and never follow themselves."""
    lengths = np.arange(1, longest + 1)
    around = longest * np.array([0.25, 0.5, 0.7])
    weights = np.exp(-0.5 * ((lengths - around[:, None]) / (0.08 * longest)) ** 2)
    durations = weights / weights.sum(1, keepdims=True)
    return {
        "initial/1": np.log(np.full(3, 1 / 3)),
        "transition/2": [(s, t, np.log(0.5)) for s in range(3) for t in range(3) if s != t],
        "duration/2": [(s, int(d), float(np.log(durations[s, d - 1]))) for s in range(3) for d in lengths],
    }


def drawn(length: int, longest: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A signal, and the states behind it; the last segment ends where the signal does."""
    random = np.random.default_rng(seed)
    states: list[int] = []
    state = 0
    while len(states) < length:
        state = int((state + random.integers(1, 3)) % 3)
        typical = longest * (0.25, 0.5, 0.7)[state]
        states += [state] * int(np.clip(round(random.normal(typical, 0.08 * longest)), 1, longest))
    truth = np.array(states)
    return MEANS[truth] + SPREAD * random.normal(size=len(truth)), truth


def observed(signal: np.ndarray) -> Facts:
    """Log densities of each observation in each state, as a dense table, and the length."""
    deviations = (signal[:, None] - MEANS) / SPREAD
    return {
        "emission/2": -0.5 * deviations**2 - np.log(SPREAD * np.sqrt(2 * np.pi)),
        "length/1": [(len(signal),)],
    }


def data(size: str = "small") -> tuple[Facts, list[Facts]]:
    """The model, and the facts of one signal."""
    length, longest = (7, 3) if size == "small" else (5000, 60)
    signal = drawn(length, longest)[0]
    return model(longest), [observed(signal[:length] if size == "small" else signal)]


def main(size: str = "small") -> Iterator[tuple[str, float]]:
    parameters, (signal,) = data(size)
    yield "observations", signal["length/1"][0][0]
    yield "states with a duration", len(parameters["duration/2"])

    chart = dg.Program(PROGRAM, "log").bind(parameters).run(signal)
    yield "log likelihood", chart["goal"]
    yield "expected segments", float(boundaries(chart).sum())

    best = dg.Program(PROGRAM, "viterbi").bind(parameters).run(signal)
    yield "log probability of the best segments", best["goal"]
    yield "segments of the best", float(len(best_segments(best)))


def boundaries(chart: dg.Chart) -> np.ndarray:
    """For each time the probability that a segment begins there."""
    begins = np.zeros(len(chart.table("length/1")) + int(chart.table("length/1").arguments[0][0]))
    for i, _, p in chart.gradient("goal")["begin/2"]:
        begins[i] += p
    return begins


def best_segments(chart: dg.Chart) -> list[tuple[int, int]]:
    """The first observation and the state of each segment of the best segmentation."""
    return [(i, s) for i, s, uses in chart.gradient("goal")["begin/2"] if uses]


def figure(path: str) -> None:
    import matplotlib.pyplot as plt

    signal, truth = drawn(400, 60)
    facts = observed(signal)
    chance = boundaries(dg.Program(PROGRAM, "log").bind(model(60)).run(facts))
    best = best_segments(dg.Program(PROGRAM, "viterbi").bind(model(60)).run(facts))
    ends = [i for i, _ in best[1:]] + [len(signal)]
    with plt.style.context(Path(__file__).with_name("recipe.mplstyle")):
        _, (above, below) = plt.subplots(2, sharex=True, height_ratios=[3, 1])
        above.plot(signal, ".", ms=3, alpha=0.7)
        above.plot(MEANS[truth], color="C2", lw=1, label="truth")
        for (i, s), k in zip(best, ends, strict=True):
            above.plot([i, k], [MEANS[s]] * 2, color="C1", lw=3, alpha=0.7, label="best segments" if i == 0 else None)
        above.legend(loc="upper center", bbox_to_anchor=(0.5, 1.25), ncols=2)
        above.set(ylabel="signal")
        below.plot(chance, lw=1, color="C3")
        below.set(xlabel="time", ylabel="begins")
        plt.savefig(path)
        plt.close()


if __name__ == "__main__":
    for what, value in main("real"):
        print(f"{what}: {value:,.6g}")
