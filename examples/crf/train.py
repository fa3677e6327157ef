"""Trains the tagger from nothing on `sentences.tsv`, and tags sentences that it has not seen.

Run it from anywhere: python examples/crf/train.py
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import dynagrad as dg

HERE = Path(__file__).parent
STEPS, RATE, DECAY = 100, 0.5, 0.02
UNSEEN = ("we saw the saw", "the duck will cook", "they can the duck")

Facts = dict[str, list[tuple[Any, ...]]]


def facts_of(words: Sequence[str], tags: Sequence[str] = ()) -> Facts:
    """A sentence, and its tags where they are known."""
    return {
        "word/2": list(enumerate(words, 1)),
        "tag/2": list(enumerate(tags, 1)),
        "length/1": [(len(words),)],
    }


def train(examples: Sequence[tuple[list[str], list[str]]]) -> tuple[dg.Bound, list[float]]:
    """The tagger, and the loss per sentence before each step of gradient descent."""
    vocabulary = sorted({w for words, _ in examples for w in words})
    tags = sorted({t for _, sequence in examples for t in sequence})
    scores: Facts = {
        "emit/2": [(t, w, 0.0) for t in tags for w in vocabulary],
        "move/2": [(s, t, 0.0) for s in ("start", *tags) for t in tags],
    }
    tagger = dg.Program(HERE / "crf.dyna").bind(scores)
    learned = {key: np.zeros(len(rows)) for key, rows in scores.items()}
    facts, losses = [facts_of(*example) for example in examples], []
    for _ in range(STEPS):
        batch = tagger.run_batch(facts, query="loss", gradient=list(learned))
        losses.append(float(batch.values.mean()))
        for key, weights in learned.items():
            weights -= RATE * (batch.gradient[key].values / len(facts) + DECAY * weights)
        tagger = tagger.with_values(learned)
    return tagger, losses


def tagged(tagger: dg.Bound, words: Sequence[str]) -> list[tuple[str, float]]:
    """For each word the likeliest tag and its probability: the derivative of log Z by what the tag adds to it."""
    best: dict[int, tuple[str, float]] = {}
    for position, tag, probability in tagger.run(facts_of(words)).gradient("logz")["fit/2"]:
        if position not in best or probability > best[position][1]:
            best[position] = tag, probability
    return [best[n] for n in sorted(best)]


def main() -> None:
    lines = (HERE / "sentences.tsv").read_text(encoding="utf-8").splitlines()
    tagger, losses = train([(words.split(), tags.split()) for words, tags in (line.split("\t") for line in lines)])
    for step in (0, 10, STEPS - 1):
        print(f"after {step:3} steps the loss per sentence is {losses[step]:.3f}")
    for text in UNSEEN:
        words = text.split()
        print("  ".join(f"{w}/{tag} {p:.2f}" for w, (tag, p) in zip(words, tagged(tagger, words), strict=True)))


if __name__ == "__main__":
    main()
