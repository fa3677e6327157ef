"""A step of a derivation: a rule instance over other steps, or a leaf.

Nothing is drawn or checked here.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..facts.terms import item_text
from .packed import Name


@dataclass(frozen=True)
class DerivationStep:
    """An instance of a rule in a derivation, or a leaf.

    `antecedents` are the places of its antecedents among the steps. `rule` is None for a leaf: a given fact, with its
    `row`; an item of which only it counts that it is derived (`side`); or the value of an external predicate.
    """

    name: Name
    rule: str | None
    rule_number: int | None
    antecedents: tuple[int, ...]
    conditions: tuple[str, ...] = ()
    row: int | None = None
    side: bool = False
    depth: int = 0
    shown: bool = True
    """Whether drawings keep it, as `:- show` says."""
    label: str | None = None
    """Its text there; None for the item."""

    @property
    def item(self) -> str:
        """The item, as it is written."""
        return item_text(*self.name)

    @property
    def text(self) -> str:
        """As it is drawn, where no label is declared."""
        return f"SIDE({self.item})" if self.side else self.item
