"""Labelled brackets of parses, scored as the program evalb does with its parameters for the Penn Treebank.

Words whose tag in the treebank is punctuation are left out, brackets that have no words left do not count, nor do the
root and the tags of words, and ADVP and PRT are one label (Black and others 1991; Sekine and Collins 1997).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Bracket = tuple[str, int, int]
"""A label, and the places where it begins and ends."""

DELETED = frozenset(("TOP", "S1", "-NONE-"))
PUNCTUATION = frozenset((",", ":", "``", "''", "."))
EQUAL = {"PRT": "ADVP"}


@dataclass(frozen=True)
class Tree:
    """A constituent: its label and children, or a word under its tag."""

    label: str
    children: tuple[Tree, ...] = ()
    word: str = ""

    def leaves(self) -> list[Tree]:
        """The words, as trees of their tags."""
        return [leaf for child in self.children for leaf in child.leaves()] if self.children else [self]

    def brackets(self, begin: int = 0) -> list[Bracket]:
        """All constituents but the tags of words."""
        if not self.children:
            return []
        found: list[Bracket] = []
        at = begin
        for child in self.children:
            found += child.brackets(at)
            at += len(child.leaves())
        return [(self.label, begin, at), *found]


def read_tree(text: str) -> Tree:
    """A tree in brackets, as in `(S (NP (PRP I)) (VP (VBP sleep)))`."""
    tokens = re.findall(r"[()]|[^\s()]+", text)

    def tree(n: int) -> tuple[Tree, int]:
        label, n = tokens[n + 1], n + 2
        if tokens[n] != "(":
            return Tree(label, word=tokens[n]), n + 2
        children = []
        while tokens[n] == "(":
            child, n = tree(n)
            children.append(child)
        return Tree(label, tuple(children)), n + 1

    return tree(0)[0]


@dataclass(frozen=True)
class Score:
    """How many brackets there are in the treebank, in parses, and in both."""

    gold: int = 0
    parsed: int = 0
    both: int = 0

    def __add__(self, other: Score) -> Score:
        return Score(self.gold + other.gold, self.parsed + other.parsed, self.both + other.both)

    @property
    def precision(self) -> float:
        """The share of the parses' brackets that are right."""
        return self.both / self.parsed if self.parsed else 0.0

    @property
    def recall(self) -> float:
        """The share of the treebank's brackets that were found."""
        return self.both / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        return 2 * self.both / (self.gold + self.parsed) if self.gold + self.parsed else 0.0


def score(tags: Sequence[str], gold: Iterable[Bracket], parsed: Iterable[Bracket]) -> Score:
    """Of one sentence; `tags` are those of the treebank."""
    places = [0]  # of the words that are left
    for tag in tags:
        places.append(places[-1] + (tag not in PUNCTUATION))
    one, other = counted(gold, places), counted(parsed, places)
    return Score(one.total(), other.total(), (one & other).total())


def counted(brackets: Iterable[Bracket], places: Sequence[int]) -> Counter[Bracket]:
    """Brackets over the words that are left, as often as they are there."""
    return Counter(
        (EQUAL.get(label, label), places[begin], places[end])
        for label, begin, end in brackets
        if label not in DELETED and places[begin] < places[end]
    )
