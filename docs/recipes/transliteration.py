"""Transliteration: two transducers, composed by a rule and trained together on pairs of words.

One transducer reads the letters of a name and speaks sounds, the other hears sounds and writes letters of another
alphabet. Nobody tells what the sounds were. EM trains both on pairs of spellings through their composition (Eisner
2002), and the composition of what was learned spells new names (Knight and Graehl 1998).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import dynagrad as dg
from dynagrad import training

PROGRAM = """
:- input letter/2, written/2.      % letter(I,A): A is the letter of the name after position I; written(J,B) likewise
:- input lengths/2.                % of a name and of what is written
:- distribution speak(P,A,S,Q) given P,A.   % in state P the letter A is spoken as S, or not (eps); then the state is Q
:- distribution write(Q,S,B,R) given Q,S.   % in state Q the sound S is written B, or not (eps); then the state is R

% path(P,Q,I,J): the speaker is in state P and has read I letters; the writer is in Q and has written J.
path(start,ready,0,0) += SIDE(lengths(_,_)).
path(P2,Q2,I+1,J+1) += path(P,Q,I,J) * letter(I,A) * speak(P,A,S,P2) * write(Q,S,B,Q2) * written(J,B) for S != eps.
path(P2,Q2,I+1,J)   += path(P,Q,I,J) * letter(I,A) * speak(P,A,S,P2) * write(Q,S,eps,Q2) for S != eps.
path(P2,ready,I+1,J) += path(P,ready,I,J) * letter(I,A) * speak(P,A,eps,P2).
path(P,Q2,I,J+1)    += path(P,Q,I,J) * write(Q,eps,B,Q2) * written(J,B).

goal += path(_,ready,I,J) * lengths(I,J).
"""

Facts = dict[str, Any]
Name = tuple[list[str], list[str]]
"""The letters of a name, and how it is written in the other alphabet."""
Machine = dict[tuple[str, str, str, str], float]
"""Arcs of a transducer with their probabilities: a state, what is read, what comes out, the state then."""

VOWELS = "aeiou"
PLAIN = dict(zip("abcdefghiklmnoprstuvwz", "abkdefgxiklmnoprstuvvz", strict=True))
"""The sound of each letter."""
SPECIAL = {
    ("start", "c"): ("ts", 0.8),
    ("start", "s"): ("ʃ", 0.4),
    ("start", "z"): ("ts", 0.7),
    ("vowel", "s"): ("z", 0.8),
    ("vowel", "g"): ("x", 0.7),
    ("vowel", "h"): ("eps", 0.9),
    ("consonant", "c"): ("ʃ", 0.8),
    ("consonant", "e"): ("i", 0.6),
    ("consonant", "h"): ("eps", 0.9),
}
"""Another one that it has more often at the beginning, after a vowel, or after a consonant."""
LETTERS = dict(zip("aeioubdfgklmnprstvzxʃ", "аеиоубдфгклмнпрствзхш", strict=True)) | {"ts": "ц"}
"""How each sound is written."""
DOUBLE = {"ts": ("тс", 0.3), "x": ("кх", 0.3), "ʃ": ("сч", 0.1)}
"""With two letters, now and then."""

OWN = 20.0
"""How much likelier than others a sound of its own is for a letter, to begin with."""


def kind(letter: str) -> str:
    """The state of a speaker who has read a letter."""
    return "vowel" if letter in VOWELS else "consonant"


def speaker() -> Machine:
    """The hidden transducer from letters to sounds."""
    arcs: Machine = {}
    for state in ("start", "vowel", "consonant"):
        for a, sound in PLAIN.items():
            special, p = SPECIAL.get((state, a), ("eps", 0.02))
            arcs |= {(state, a, special, kind(a)): p, (state, a, sound, kind(a)): 1 - p}
    return arcs


def writer() -> Machine:
    """The hidden transducer from sounds to letters of the other alphabet; some take two."""
    arcs: Machine = {}
    for sound, b in LETTERS.items():
        double, p = DOUBLE.get(sound, ("", 0.0))
        arcs[("ready", sound, b, "ready")] = 0.98 - p
        arcs[("ready", sound, "eps", "ready")] = 0.02
        if double:
            arcs[("ready", sound, double[0], f"in {sound}")] = p
            arcs[(f"in {sound}", "eps", double[1], "ready")] = 1.0
    return arcs


def drawn(machine: Machine, state: str, text: Sequence[str], random: np.random.Generator) -> list[str]:
    """What a transducer makes of a text, at random."""
    found, left = [], list(text)
    while left or state.startswith("in "):
        read = "eps" if state.startswith("in ") else left.pop(0)
        arcs = [(arc, p) for arc, p in machine.items() if arc[:2] == (state, read)]
        arc = arcs[int(random.choice(len(arcs), p=[p for _, p in arcs]))][0]
        state = arc[3]
        found += [arc[2]] * (arc[2] != "eps")
    return found


SMALL: list[Name] = [(["a", "b"], ["x", "y"]), (["b"], ["y", "z"]), (["a", "a"], ["x"])]


def corpus(size: str, seed: int = 0) -> tuple[list[Name], list[Name]]:
    """Names to train on, and others, spelt by the two hidden transducers."""
    if size == "small":
        return SMALL[:2], SMALL[2:]
    random, first, second = np.random.default_rng(seed), speaker(), writer()
    by_kind = {k: [a for a in PLAIN if kind(a) == k] for k in ("vowel", "consonant")}
    names: list[Name] = []
    while len(names) < 800:
        name = [str(random.choice(list(PLAIN)))]
        for _ in range(random.integers(3, 8)):
            other = kind(name[-1]) == "vowel"
            name.append(str(random.choice(by_kind["consonant" if other == (random.random() < 0.8) else "vowel"])))
        if text := drawn(second, "ready", drawn(first, "start", name, random), random):
            names.append((name, text))
    return names[:600], names[600:]


def pair(name: Sequence[str], text: Sequence[str]) -> Facts:
    """The facts of a name in both alphabets."""
    return {
        "letter/2": list(enumerate(name)),
        "written/2": list(enumerate(text)),
        "lengths/2": [(len(name), len(text))],
    }


def start(names: Sequence[Name], own: float = OWN, more: int = 4, seed: int = 0) -> Facts:
    """All arcs, with weights that are noise, or all sounds would stay alike; a model divides them by their sums.

    There is a sound for each letter, which is `own` times more likely for that letter, and some `more`.
    """
    random = np.random.default_rng(seed)
    letters = sorted({a for name, _ in names for a in name})
    texts = sorted({b for _, text in names for b in text})
    every = [*letters, *(f"s{n}" for n in range(more))]

    def noise(scale: float = 1.0) -> float:
        return scale * (5 + 100 * float(random.random()) ** 2)

    return {
        "speak/4": [
            (state, a, s, kind(a), noise() + 100 * own * (a == s))
            for state in ("start", "vowel", "consonant")
            for a in letters
            for s in [*every, "eps"]
        ],
        "write/4": [
            *(("ready", s, b, "ready", noise()) for s in every for b in texts),
            *(("ready", s, b, f"in {s}", noise(0.3)) for s in every for b in texts),
            *(("ready", s, "eps", "ready", noise()) for s in every),
            *((f"in {s}", "eps", b, "ready", noise()) for s in every for b in texts),
        ],
    }


def data(size: str = "small") -> tuple[Facts, list[Facts]]:
    """Arcs to begin with, and the names."""
    known, held_out = corpus(size)
    return start([*known, *held_out], more=0 if size == "small" else 4), [pair(*name) for name in known]


def learned(rows: Facts, pairs: Sequence[Facts], iterations: int = 30) -> dg.Model:
    """Both transducers, trained on pairs of spellings."""
    model = dg.Model(f":- semiring log. {PROGRAM}", rows, prior=training.add_lambda(0.01))
    model.fit(list(pairs), iterations=iterations)
    return model


def hidden() -> dg.Model:
    """The transducers that made the names."""
    machines = {"speak/4": speaker(), "write/4": writer()}
    rows = {key: [(*arc, p) for arc, p in machine.items()] for key, machine in machines.items()}
    return dg.Model(f":- semiring log. {PROGRAM}", rows)


def spelt(model: dg.Model, name: Sequence[str]) -> list[str]:
    """How a name is written on the best path: any letter may stand anywhere, and any number of them."""
    longest = 2 * len(name)
    texts = sorted({b for _, _, b, _, _ in model.weights["write/4"] if b != "eps"})
    lattice = {
        "letter/2": list(enumerate(name)),
        "written/2": [(j, b) for j in range(longest) for b in texts],
        "lengths/2": [(len(name), n) for n in range(longest + 1)],
    }
    used = (s.name for s in model.predict(lattice))
    return [b for _, b in sorted(arguments for key, arguments in used if key == "written/2")]


def right(model: dg.Model, names: Sequence[Name]) -> float:
    """The share of names whose best spelling is the one that they have."""
    return sum(spelt(model, name) == text for name, text in names) / len(names)


def main(size: str = "small") -> Iterator[tuple[str, float]]:
    known, held_out = corpus(size)
    rows, pairs = data(size)
    tests = [pair(*name) for name in held_out]
    yield "names to train on", len(pairs)
    yield "names held out", len(tests)
    yield "arcs of both transducers", sum(map(len, rows.values()))
    model = learned(rows, pairs)
    yield "log likelihood of a name, held out", model.score(tests) / len(tests)
    yield "share of names spelt as they are, held out", right(model, held_out)
    if size == "small":
        return
    blind = learned(start(known, own=0.0), pairs)
    yield "log likelihood of a name where training began with noise alone", blind.score(tests) / len(tests)
    yield "share of names that this one spells so", right(blind, held_out)
    yield "log likelihood of a name by the hidden transducers", hidden().score(tests) / len(tests)
    yield "share of names that the hidden ones spell so", right(hidden(), held_out)


def heard(model: dg.Model, state: str) -> dict[tuple[str, str], float]:
    """The probability that a letter, in a state of the speaker, becomes a letter of the other alphabet."""
    sounds: dict[str, list[tuple[str, float]]] = {}
    for q, s, b, _, p in model.weights["write/4"]:
        if q == "ready":
            sounds.setdefault(s, []).append((b, p))
    found: dict[tuple[str, str], float] = {}
    for p, a, s, _, chance in model.weights["speak/4"]:
        if p == state:
            for b, x in sounds.get(s, [("eps", 1.0)]):
                found[a, b] = found.get((a, b), 0.0) + chance * x
    return found


def figure(path: str) -> None:
    import matplotlib.pyplot as plt

    rows, pairs = data("real")
    texts = [*dict.fromkeys(LETTERS[s] for a in PLAIN for s in (PLAIN[a],)), "ш", "ц", "eps"]
    with plt.style.context(Path(__file__).with_name("recipe.mplstyle")):
        _, both = plt.subplots(1, 2, sharey=True)
        for axes, model, title in zip(both, (hidden(), learned(rows, pairs)), ("hidden", "learned"), strict=True):
            chance = heard(model, "vowel")
            table = [[chance.get((a, b), 0.0) for b in texts] for a in PLAIN]
            shown = axes.imshow(table, vmin=0, vmax=1)
            axes.set_xticks(range(len(texts)), texts, fontsize=7)
            axes.set_yticks(range(len(PLAIN)), PLAIN, fontsize=7)
            axes.set(title=title, xlabel="written")
        both[0].set(ylabel="letter after a vowel")
        plt.colorbar(shown, ax=both, shrink=0.7, label="probability")
        plt.savefig(path)
        plt.close()


if __name__ == "__main__":
    for what, value in main("real"):
        print(f"{what}: {value:,.6g}")
