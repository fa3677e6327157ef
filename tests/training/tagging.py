"""A tagger of three sentences as a conditional random field, which several tests train: program, rows and examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dynagrad import training

TAGS, WORDS = ("d", "n", "v"), ("the", "dog", "saw", "barks")
SENTENCES = (("the dog barks", "d n v"), ("the saw barks", "d n v"), ("dog saw the dog", "n v d n"))
TAGGER = """
:- semiring log.
at(0,start).
at(J,T) += at(I,S) * trans(S,T) * emit(T,W) * word(W,I) * tag(T,I) for J = I+1.
goal += at(N,_) * end(N).
"""
ROWS: dict[str, Any] = {
    "trans/2": [(s, t) for s in ("start", *TAGS) for t in TAGS],
    "emit/2": [(t, w) for t in TAGS for w in WORDS],
}


def tagged(
    sentences: Sequence[tuple[str, str]] = SENTENCES,
    value: Callable[[str, int], float] | None = None,
    weight: Callable[[int], float] = lambda _: 1.0,
) -> list[training.Example]:
    """Sentences whose tags were observed, of all tags; `value` is that of a tag at a place, one where none is given."""
    found = []
    for n, (text, tags) in enumerate(sentences):
        words = text.split()
        every = [(t, i, *([] if value is None else [value(t, i)])) for i in range(len(words)) for t in TAGS]
        facts = {"word/2": [(w, i) for i, w in enumerate(words)], "end/1": [(len(words),)], "tag/2": every}
        gold = [row for row in every if tags.split()[row[1]] == row[0]]
        found.append(training.Example(facts, {"tag/2": gold}, weight=weight(n)))
    return found
