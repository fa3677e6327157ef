"""Words that are too rare for parameters of their own: each stands for its class, which a lexicon has rows for.

A class is told by the letters of a word, as in the Berkeley parser (Petrov, Barrett, Thibaux and Klein 2006; after
Klein and Manning 2003): capitals, digits, dashes and frequent English endings. Nothing is learned here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from math import inf
from numbers import Real
from typing import Any

from ...arguments import function_of, real_number, whole_number
from ...calls import strict_options, strict_options_class
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


@strict_options_class
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

    def __post_init__(self) -> None:
        words: Any = self.words
        if isinstance(words, str) or not isinstance(words, Collection):
            raise Error(f"the words of a vocabulary are a set of texts, not {shown(words)}")
        for word in words:
            _word(word)
        object.__setattr__(self, "words", frozenset(words))
        function_of("classes", self.classes, 1, "a word")

    def __call__(self, word: str) -> str:
        """The word if it is known, else its class."""
        if _word(word) in self.words:
            return word
        found = self.classes(word)
        if not isinstance(found, str):
            raise Error(f"classes gives {shown(found)} for {shown(word)}; the class of a word is a text")
        return found

    @strict_options
    def lexicon(self, rows: Iterable[tuple[Any, ...]], column: int = 1) -> list[tuple[Any, ...]]:
        """Rows of (tag, word, count), or without counts, with rare words as their classes: counts of one are added.

        `column` is where the word stands; a count is a last member that is a number beyond the word.
        """
        found: dict[tuple[Any, ...], float | None] = {}
        column = whole_number("column", column, 0)
        if not isinstance(rows, Iterable):
            raise FactError(f"a lexicon is a list of rows such as (tag, word, count), not {shown(rows)}")
        for row in rows:
            if not isinstance(row, tuple) or not column < len(row) or not isinstance(row[column], str):
                raise FactError(f"a row of a lexicon is a tuple with a word at {column}, and {shown(row)} is none")
            last = row[-1]
            counted = len(row) - 1 > column and isinstance(last, Real) and not isinstance(last, bool)
            if counted and not 0 <= last < inf:
                raise FactError(f"{shown(row)}: a count is a number from 0 on")
            key = (*row[:column], self(row[column]), *row[column + 1 : len(row) - counted])
            if not all(isinstance(x, Hashable) for x in key):
                raise FactError(f"{shown(row)}: the members of a row of a lexicon are texts and numbers")
            before = found.get(key)
            if key in found and (before is None) == counted:
                raise FactError(f"{shown(row)}: give all rows of a lexicon a count, or none")
            found[key] = float(last) + (before or 0.0) if counted else None
        return [key if count is None else (*key, count) for key, count in found.items()]


@strict_options
def vocabulary(
    words: Iterable[str] | Mapping[str, float], least: int = 2, classes: Callable[[str], str] = word_class
) -> Vocabulary:
    """The words that stand at least so often in data, or have such a count.

    >>> sorted(vocabulary(["the", "the", "dog"]).words), sorted(vocabulary({"the": 7, "dog": 3}, least=3).words)
    (['the'], ['dog', 'the'])
    """
    if isinstance(words, str | bytes) or not isinstance(words, Iterable):
        raise Error(f"vocabulary takes words one by one, or their counts, not {shown(words)}")
    least = whole_number("least", least, 1)
    counts: Mapping[str, float] = words if isinstance(words, Mapping) else Counter(map(_word, words))
    for word, count in counts.items():
        real_number(f"the count of {shown(_word(word))}", count, 0.0)
    return Vocabulary(frozenset(w for w, n in counts.items() if n >= least), classes)


def _word(given: Any) -> str:
    if not isinstance(given, str):
        raise Error(f"a word is a text, not {shown(given)}")
    return given
