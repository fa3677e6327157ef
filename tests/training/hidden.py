"""Models with hidden states, which are alike where they begin so, and data for each."""

from __future__ import annotations

from typing import Any

import numpy as np

import dynagrad as dg
from dynagrad import training

HMM = dg.Program(""":- semiring log. :- distribution init(T). :- distribution next(S,T) given S.
    :- distribution emit(T,O) given T. at(0,T) += init(T) * emit(T,O) * obs(0,O).
    at(I+1,T) += at(I,S) * next(S,T) * emit(T,O) * obs(I+1,O). goal += at(I,_) * len(I+1).""")
PAIRS = dg.Program(""":- semiring log. :- distribution z(K). :- distribution e(K,O) given K.
    goal += z(K) * e(K,O) * x(O) * e(K,P) * y(P).""")
TREES = dg.Program(""":- semiring log. :- distribution r(X,...) given X.
    phrase(X,I,I+1) += r(X,W) * word(I,W). phrase(X,I,K) += r(X,Y,Z) * phrase(Y,I,J) * phrase(Z,J,K).
    goal += phrase(s,0,N) * len(N).""")


def turns(length: int = 60, seed: int = 1) -> list[dict[str, Any]]:
    """Three states that follow each other, each with a symbol of its own nine times in ten."""
    draw = np.random.default_rng(seed)
    symbols = [int((i + (0 if draw.random() < 0.9 else draw.integers(1, 3))) % 3) for i in range(length)]
    return [{"obs/2": list(enumerate(symbols)), "len/1": [(length,)]}]


def chain(states: int, **options: Any) -> dg.Model:
    rows = {
        "init/1": [(i,) for i in range(states)],
        "next/2": [(i, j) for i in range(states) for j in range(states)],
        "emit/2": [(i, o) for i in range(states) for o in range(3)],
    }
    return dg.Model(HMM, {key: training.Distribution({key: r}, **options) for key, r in rows.items()})


def mixture(**options: Any) -> dg.Model:
    rows = {"z/1": [(k,) for k in range(3)], "e/2": [(k, o) for k in range(3) for o in "abcd"]}
    return dg.Model(PAIRS, {key: training.Distribution({key: r}, **options) for key, r in rows.items()})


def grammar(**options: Any) -> dg.Model:
    rows = {
        "r/2": [(x, w) for x in "sab" for w in "uv"],
        "r/3": [(x, y, z) for x in "sab" for y in "ab" for z in "ab"],
    }
    return dg.Model(TREES, {"r": training.Distribution(rows, **options)})


OF_PAIRS = [{"x/1": [(a,)], "y/1": [(b,)]} for a, b in ("aa", "ab", "bb", "cd", "cc", "dd", "dc", "ab", "aa", "cd")]
OF_TREES = [
    {"word/2": list(enumerate(text)), "len/1": [(len(text),)]}
    for text in ("uv", "uuvv", "uvuv", "vu", "uuv", "v", "uvv")
]
MODELS: dict[str, Any] = {
    "chain of 2": (lambda **o: chain(2, **o), turns()),
    "chain of 4": (lambda **o: chain(4, **o), turns()),
    "mixture": (mixture, OF_PAIRS),
    "grammar": (grammar, OF_TREES),
}
