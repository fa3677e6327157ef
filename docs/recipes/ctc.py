"""Connectionist temporal classification: the loss of a label sequence that nobody has aligned with the frames.

A network gives scores of symbols for each frame. A path has one symbol a frame; it stands for the labels that are left
when repetitions are merged and blanks removed. The loss is minus the log of the probability of all paths that stand for
the labels, and its gradient goes back into the network.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dynagrad as dg

PROGRAM = """
:- semiring log.
:- input frame/2.     % frame(T,C): the log probability of the symbol C at frame T, from 0; symbol 0 is the blank
:- input label/2.     % label(K,C): the labels with a blank before, between and after them; K from 0
:- input frames/1, labels/1.

path(0,0) += frame(0,C) * label(0,C).
path(0,1) += frame(0,C) * label(1,C).

path(T+1,K)   += path(T,K) * frame(T+1,C) * label(K,C).
path(T+1,K+1) += path(T,K) * frame(T+1,C) * label(K+1,C).
path(T+1,K+2) += path(T,K) * frame(T+1,C) * label(K+2,C) * label(K,B) for C != 0, C != B.   % over a blank

goal += path(T,K) * frames(T+1) * labels(K+1).   % ends in the last blank
goal += path(T,K) * frames(T+1) * labels(K+2).   % or in the last label
"""

Facts = dict[str, Any]


def utterance(scores: np.ndarray, labels: list[int]) -> Facts:
    """The facts of some frames, as what a network gave before its softmax, and of their labels."""
    extended = [0, *(c for label in labels for c in (label, 0))]
    return {
        "frame/2": scores - np.logaddexp.reduce(scores, axis=1, keepdims=True),
        "label/2": list(enumerate(extended)),
        "frames/1": [(len(scores),)],
        "labels/1": [(len(extended),)],
    }


def drawn(frames: int, labels: int, symbols: int, seed: int) -> tuple[np.ndarray, list[int]]:
    """Scores of a network that is rather sure of its labels, in the middle of the time that each of them has."""
    random = np.random.default_rng(seed)
    said = [int(c) for c in random.integers(1, symbols, labels)]
    scores = random.normal(size=(frames, symbols))
    scores[:, 0] += 3.0
    ends = np.sort(random.choice(np.arange(1, frames), labels - 1, replace=False)) if labels > 1 else np.array([], int)
    for c, first, last in zip(said, [0, *ends], [*ends, frames], strict=True):
        middle = (int(first) + int(last)) // 2
        scores[middle : middle + 2, c] += 5.0
    return scores, said


def data(size: str = "small") -> tuple[Facts, list[Facts]]:
    """Nothing is shared; each utterance brings its frames and labels."""
    if size == "small":
        return {}, [utterance(*drawn(5, 2, 4, 0)), utterance(np.random.default_rng(1).normal(size=(6, 3)), [1, 1, 2])]
    return {}, [utterance(*drawn(500, 60, 40, seed)) for seed in range(16)]


def main(size: str = "small") -> Iterator[tuple[str, float]]:
    _, utterances = data(size)
    yield "utterances", len(utterances)
    yield "frames", sum(u["frames/1"][0][0] for u in utterances)

    program = dg.Program(PROGRAM).bind({})
    yield "loss of all utterances", -program.run_batch(utterances, query="goal").values.sum()
    yield "norm of the gradient by the scores", float(np.sqrt(sum((g**2).sum() for g in slopes(program, utterances))))


def slopes(program: dg.Bound, utterances: list[Facts]) -> list[np.ndarray]:
    """The gradients of the losses by what a network gave: its softmax, less how often paths have the symbol there."""
    batch = program.run_batch(utterances, query="goal", gradient=["frame/2"])
    return [np.exp(u["frame/2"]) - g.values for u, g in zip(utterances, batch.gradient["frame/2"], strict=True)]


def figure(path: str) -> None:
    import matplotlib.pyplot as plt

    facts = utterance(*drawn(80, 12, 20, 3))
    chart = dg.Program(PROGRAM).run(facts)
    alignment = np.zeros((25, 80))
    for t, k, p in chart.gradient("goal")["path/2"]:
        alignment[k, t] = p
    with plt.style.context(Path(__file__).with_name("recipe.mplstyle")):
        _, axes = plt.subplots()
        shown = axes.imshow(alignment, aspect="auto", origin="lower", interpolation="nearest", vmin=0, vmax=1)
        axes.set(xlabel="frame", ylabel="label or blank", title="Where each label is said")
        plt.colorbar(shown, label="probability")
        plt.savefig(path)
        plt.close()


if __name__ == "__main__":
    for what, value in main("real"):
        print(f"{what}: {value:,.6g}")
