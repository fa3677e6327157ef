"""Words that are too rare for parameters of their own: each stands for its class, which a lexicon has rows for.

A class is told by the letters of a word, as in the Berkeley parser (Petrov, Barrett, Thibaux and Klein 2006; after
Klein and Manning 2003): capitals, digits, dashes and frequent English endings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...arguments import whole_number
from ...errors import Error, FactError, shown

ENDINGS = ("ed", "ing", "ion", "er", "est", "ly", "ity", "y", "al")
"""In the order in which they are looked for; plurals in -s come before."""


def word_class(word: str) -> str:
    """The class of a word by its letters.

    >>> [word_class(w) for w in ("Zanzibar", "IBM", "re-elected", "1987", "walking", "dogs", "bus")]
    ['UNK-CAP', 'UNK-CAPS', 'UNK-LC-DASH', 'UNK-NUM', 'UNK-LC-ing', 'UNK-LC-s', 'UNK-LC']
    """
    if not isinstance(word, str):
        raise Error(f"a class of words is told by their letters, and {shown(word)} is no text")
    capitals = sum(c.isupper() for c in word)
    digit, dash = any(c.isdigit() for c in word), "-" in word
    found = "UNK"
    if word[:1].isupper():
        found += "-CAP" if capitals == 1 else "-CAPS"
    elif capitals:
        found += "-CAPS"
    elif any(c.islower() for c in word):
        found += "-LC"
    found += "-NUM" * digit + "-DASH" * dash
    lower = word.lower()
    if lower.endswith("s") and len(word) >= 3 and lower[-2] not in "siu":
        return found + "-s"
    if len(word) >= 5 and not dash and not (digit and capitals):
        found += next((f"-{e}" for e in ENDINGS if lower.endswith(e)), "")
    return found


@dataclass(frozen=True)
class Vocabulary:
    """The words that are known; others stand for their class. It maps words, in a lexicon and in data alike.

    >>> known = vocabulary(["the", "the", "dog", "dog", "barks", "runs"])
    >>> known("dog"), known("barks"), known("houses")
    ('dog', 'UNK-LC-s', 'UNK-LC-s')
    >>> known.lexicon([("n", "dog", 2.0), ("v", "barks", 1.0), ("v", "runs", 1.0)])
    [('n', 'dog', 2.0), ('v', 'UNK-LC-s', 2.0)]
    """

    words: frozenset[str]
    classes: Callable[[str], str] = word_class

    def __call__(self, word: str) -> str:
        """The word if it is known, else its class."""
        return word if word in self.words else self.classes(word)

    def lexicon(self, rows: Iterable[tuple[Any, ...]], column: int = 1) -> list[tuple[Any, ...]]:
        """Rows of (tag, word, count), or without counts, with rare words as their classes: counts of one are added.

        `column` is where the word stands; a count is a last member that is a number beyond the word.
        """
        found: dict[tuple[Any, ...], float | None] = {}
        for row in rows:
            if not isinstance(row, tuple) or not 0 <= column < len(row) or not isinstance(row[column], str):
                raise FactError(f"a row of a lexicon is a tuple with a word at {column}, and {shown(row)} is none")
            last = row[-1]
            counted = len(row) - 1 > column and isinstance(last, int | float) and not isinstance(last, bool)
            key = (*row[:column], self(row[column]), *row[column + 1 : len(row) - counted])
            before = found.get(key)
            if key in found and (before is None) == counted:
                raise FactError(f"{shown(row)}: give all rows of a lexicon a count, or none")
            found[key] = float(last) + (before or 0.0) if counted else None
        return [key if count is None else (*key, count) for key, count in found.items()]


def vocabulary(
    words: Iterable[str] | Mapping[str, float], least: int = 2, classes: Callable[[str], str] = word_class
) -> Vocabulary:
    """The words that stand at least so often in data, or have such a count."""
    if isinstance(words, str):
        raise Error(f"vocabulary takes words one by one, or their counts, not the text {shown(words)}")
    least = whole_number("least", least, 1)
    counts: Mapping[str, float] = words if isinstance(words, Mapping) else Counter(words)
    return Vocabulary(frozenset(w for w, n in counts.items() if n >= least), classes)
