"""Weighted finite-state transducers: two are composed as far as they are needed, and the arcs' posteriors read off.

One transducer turns words into letters, the other letters into keystrokes, with slips. What was typed is given. The sum
over all paths of the composition is its probability, and the derivative by the arc that reads a word is the probability
that this word was meant.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dynagrad as dg

PROGRAM = """
:- input first/4, second/4.     % first(P,X,Y,Q): from state P to Q, reading X and writing Y; `eps` is empty
:- input start/2, end/2.        % states of both in which a path may start and end
:- input typed/2, length/1.     % typed(I,Z): the keystroke after position I is Z

% path(P,Q,F,I): all paths to the states P and Q that have written the first I keystrokes. The filter F keeps one order
% where the transducers move apart: first those moves of the first that write nothing, then those of the second that
% read nothing. So no pair of paths is counted twice (Mohri, Pereira and Riley 1996).
path(P,Q,free,0) += start(P,Q) * SIDE(length(_)).

path(P2,Q2,free,I+1) += path(P,Q,_,I) * first(P,_,Y,P2) * second(Q,Y,Z,Q2) * typed(I,Z) for Y != eps.
path(P2,Q2,free,I)   += path(P,Q,_,I) * first(P,_,Y,P2) * second(Q,Y,eps,Q2) for Y != eps.
path(P2,Q,free,I)    += path(P,Q,free,I) * first(P,_,eps,P2).
path(P,Q2,after,I+1) += path(P,Q,_,I) * second(Q,eps,Z,Q2) * typed(I,Z).
path(P,Q2,after,I)   += path(P,Q,_,I) * second(Q,eps,eps,Q2).

goal += path(P,Q,_,N) * end(P,Q) * length(N).
"""

Facts = dict[str, Any]


def speller(words: dict[str, float]) -> list[tuple[Any, ...]]:
    """A tree of letters, which reads a word at the last one, with the word's probability."""
    arcs: dict[tuple[Any, ...], float] = {}
    for word, p in words.items():
        for n, letter in enumerate(word):
            arcs["at_" + word[:n], "eps", letter, "at_" + word[: n + 1]] = 1.0
        arcs["at_" + word, word, "eps", "read"] = p
    return [(*arc, p) for arc, p in arcs.items()]


def typist(letters: str, slip: float = 0.04, again: float = 0.2) -> list[tuple[Any, ...]]:
    """Letters that are typed wrongly, missed, or typed beside others; where one was, the next is likely."""
    arcs: list[tuple[Any, ...]] = []
    for state, p in (("calm", slip), ("hasty", again)):
        for a in letters:
            arcs.append((state, a, a, "calm", 1 - p))
            arcs.append((state, a, "eps", "hasty", p / 3))
            arcs.append((state, "eps", a, "hasty", p / 3 / len(letters)))
            arcs += [(state, a, b, "hasty", p / 3 / (len(letters) - 1)) for b in letters if a != b]
    return arcs


def machines(words: dict[str, float]) -> Facts:
    letters = "".join(sorted(set("".join(words))))
    return {
        "first/4": speller(words),
        "second/4": typist(letters),
        "start/2": [("at_", "calm", 1.0)],
        "end/2": [("read", "calm", 1.0), ("read", "hasty", 1.0)],
    }


def keystrokes(text: str) -> Facts:
    return {"typed/2": list(enumerate(text)), "length/1": [(len(text),)]}


def lexicon(number: int, seed: int = 0) -> dict[str, float]:
    """Words of a language that nobody speaks, with Zipf's frequencies."""
    random = np.random.default_rng(seed)
    syllables = [c + v for c in "bdfgklmnprst" for v in "aeiou"] + ["an", "el", "or", "us"]
    drawn = dict.fromkeys("".join(random.choice(syllables, random.integers(2, 5))) for _ in range(2 * number))
    weights = 1 / np.arange(2, number + 2)
    return dict(zip(list(drawn)[:number], (weights / weights.sum()).tolist(), strict=True))


def data(size: str = "small") -> tuple[Facts, list[Facts]]:
    """Both transducers, and what was typed."""
    if size == "small":
        return machines({"cat": 0.4, "at": 0.3, "act": 0.2, "tact": 0.1}), [keystrokes("ca"), keystrokes("atc")]
    words = list(lexicon(1500))
    random = np.random.default_rng(1)
    typed = []
    for _ in range(10):
        word = list(words[int(random.integers(len(words)))])
        word[int(random.integers(len(word)))] = str(random.choice(list("aeiobdk")))
        typed.append("".join(word))
    return machines(lexicon(1500)), [keystrokes(text) for text in typed]


def main(size: str = "small") -> Iterator[tuple[str, float]]:
    model, typed = data(size)
    yield "arcs of the first transducer", len(model["first/4"])
    yield "arcs of the second transducer", len(model["second/4"])
    yield "typed words", len(typed)

    composed = dg.Program(PROGRAM, "log", values="probabilities").bind(model)
    yield "log probability of all that was typed", composed.run_batch(typed, query="goal").values.sum()
    yield (
        "probability of the likeliest word, on average",
        float(np.mean([max(meant(composed, t).values()) for t in typed])),
    )


def meant(composed: dg.Bound, typed: Facts) -> dict[str, float]:
    """The probability of each word, given what was typed: how often paths use the arc that reads it."""
    arcs = composed.run(typed).gradient("goal")["first/4"]
    return {word: p for _, word, _, _, p in arcs if word != "eps"}


def figure(path: str) -> None:
    import matplotlib.pyplot as plt

    composed = dg.Program(PROGRAM, "log", values="probabilities").bind(machines(lexicon(1500)))
    with plt.style.context(Path(__file__).with_name("recipe.mplstyle")):
        _, all_axes = plt.subplots(1, 3, sharex=True)
        for axes, text in zip(all_axes, ("banela", "kopu", "dirata"), strict=True):
            found = meant(composed, keystrokes(text))
            likeliest = sorted(found, key=found.__getitem__, reverse=True)[:8]
            axes.barh(likeliest[::-1], [found[word] for word in likeliest[::-1]])
            axes.set(title=f"typed: {text}", xlim=(0, 1))
        all_axes[1].set(xlabel="probability that the word was meant")
        plt.savefig(path)
        plt.close()


if __name__ == "__main__":
    for what, value in main("real"):
        print(f"{what}: {value:,.6g}")
