"""What is drawn of a derivation: a box for each step, or for those steps that the program shows.

`:- show` says which items are kept, and under which text. What is left out hands its antecedents up to the nearest box
above it. How a box looks, and where it is placed, is for `pictures.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...facts.terms import term_text
from ...rules.show import show
from ...rules.syntax import ShowDeclaration, Source, Term
from ..packed import Name
from ..steps import DerivationStep
from ..terms import PartialMatch, Unbound


@dataclass(frozen=True)
class Box:
    """What is drawn: a text, what hangs below it, and how it looks: "item", "given", "side", "missing" or "note"."""

    text: str
    antecedents: tuple[int, ...]
    depth: int
    look: str = "item"
    hint: str = ""
    conditions: tuple[str, ...] = ()
    leaf: bool = False
    """Whether it is a leaf of the tree: nothing is derived in it, or nothing of that is shown."""


def boxes(steps: Sequence[DerivationStep], everything: bool = False) -> list[Box]:
    """The steps of a derivation as they are drawn, each before those of its antecedents.

    Where several steps would stand at the top, or none, the item that is derived stays above them.
    """
    above = _nearest_shown(steps, everything)
    tops = sum(step.shown and above[n] is None for n, step in enumerate(steps))
    kept = [n for n, step in enumerate(steps) if everything or step.shown or (n == 0 and tops != 1)]
    place = {n: i for i, n in enumerate(kept)}
    below: list[list[int]] = [[] for _ in kept]
    depth = [0] * len(kept)
    for i, n in enumerate(kept[1:], 1):
        head = above[n]
        parent = 0 if head is None else place[head]
        below[parent].append(i)
        depth[i] = depth[parent] + 1
    return [_box(steps[n], tuple(below[i]), depth[i], everything) for i, n in enumerate(kept)]


def _nearest_shown(steps: Sequence[DerivationStep], everything: bool) -> list[int | None]:
    """Of each step, the nearest one above it that is drawn."""
    above: list[int | None] = [None] * len(steps)
    for n, step in enumerate(steps):
        for i in step.antecedents:
            above[i] = n if everything or step.shown else above[n]
    return above


def _box(step: DerivationStep, below: tuple[int, ...], depth: int, everything: bool) -> Box:
    look = "item" if step.rule is not None else "side" if step.side else "given"
    hint = step.rule or ("only has to be derived" if step.side else "given")
    if step.conditions:
        hint += "\n" + ", ".join(step.conditions)
    text = step.text
    if step.label is not None and not everything:
        text, hint = step.label, f"{text}\n{hint}"
    leaf = step.rule is None or (bool(step.antecedents) and not below)
    return Box(text, below, depth, look, hint, step.conditions, leaf)


# -- what a program shows ----------------------------------------------------------------------------------------------


class ShowPatterns:
    """What a program says of the drawings of its derivations."""

    def __init__(self, source: Source) -> None:
        self._patterns: dict[str, list[ShowDeclaration]] = {}
        for declaration in source.declarations:
            if isinstance(declaration, ShowDeclaration):
                self._patterns.setdefault(declaration.item.key, []).append(declaration)

    def of(self, name: Name) -> tuple[bool, str | None]:
        """Whether an item is drawn, and its text there, if that is another than the item."""
        if not self._patterns:
            return True, None
        key, row = name
        for pattern in self._patterns.get(key, ()):
            bindings = PartialMatch()
            if bindings.match_item(pattern.item, row):
                return True, None if pattern.label is None else _label(pattern.label, bindings)
        return False, None


def _label(term: Term, bindings: PartialMatch) -> str:
    """A term over what a pattern bound. A symbol stands as it is, without the quotes that it may need in a program."""
    try:
        value = bindings.value(term)
    except (Unbound, ArithmeticError):  # it computes with what is no integer
        return show(bindings.fill(term))
    return value if isinstance(value, str) and value.isprintable() else term_text(value)
