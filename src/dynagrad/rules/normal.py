"""The normal form of rules, which the planner reads.

Items have no arithmetic (`p(I+1)` becomes `p(V)` with an equation `V = I+1`), the items of a right side are numbered
antecedents, transient predicates are unfolded into their uses, and ground axioms are data, not rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import Span
from .syntax import (
    NOWHERE,
    BeamDeclaration,
    Condition,
    DistributionDeclaration,
    Expression,
    Item,
    PriorityDeclaration,
    PruneDeclaration,
    Source,
    Type,
    restore,
)


@dataclass(frozen=True, slots=True)
class Antecedent:
    """An item of a right side; a `side` condition only asks whether the item is derived."""

    item: Item
    side: bool = False


@dataclass(frozen=True, slots=True)
class Unfolded:
    """A transient item in whose place the body of one of its rules stands."""

    item: Item
    source: int  # the place of that rule in the text
    parts: tuple[int | Unfolded, ...]
    constants: tuple[int, ...]  # which of the numbers in the value of the whole are those of this rule


@dataclass(frozen=True, slots=True)
class NormalRule:
    """One rule. Items hold variables, constants and compound terms, never arithmetic.

    `value` reads antecedents as `AntecedentValue(i)`; a side antecedent does not occur in it, because its value is one.
    `conditions` keep arithmetic; negated items do not.
    """

    number: int  # 1-based, in the order of the text
    head: Item
    aggregator: str
    antecedents: tuple[Antecedent, ...]
    value: Expression
    conditions: tuple[Condition, ...]
    text: str = field(compare=False)
    span: Span = field(default=NOWHERE, compare=False)
    source: int = field(default=-1, compare=False)  # its place among the rules of the text, from 0
    parts: tuple[int | Unfolded, ...] = field(default=(), compare=False)
    """What stands in the places of the antecedents as they are written: antecedents, and transient items. Empty where
    no transient item was unfolded."""


@dataclass(frozen=True, slots=True)
class Axiom:
    """`head = constant.`, or `head.`: a ground item with its value; None for that of a fact without a value."""

    item: Item
    value: float | int | None
    span: Span = field(default=NOWHERE, compare=False)
    aggregator: str = field(default="=", compare=False)  # as it is written
    source: int = field(default=-1, compare=False)  # its place among the rules of the text, from 0


@dataclass(frozen=True, slots=True)
class Predicate:
    """What the text says of a predicate, `name/arity`."""

    name: str
    arity: int
    aggregator: str
    """Of inputs without rules that of their readers, see `checks/joining.py`; in a semiring "+=", clauses aside."""
    defined: bool  # some rule other than an axiom has it as its head
    input: bool  # facts may be given: declared, or no rule defines it
    external: bool = False
    output: bool = False
    types: tuple[Type, ...] | None = None  # as declared
    span: Span = field(default=NOWHERE, compare=False)
    stated: bool = False  # the aggregator of an input stands in the text: in a declaration, or with a constant
    unjoined: str = ""  # why rows of one fact do not join, for messages; empty where they do

    def __setstate__(self, state: Sequence[Any]) -> None:
        restore(self, state)

    @property
    def key(self) -> str:
        return f"{self.name}/{self.arity}"


@dataclass(frozen=True, slots=True)
class Rules:
    """A checked program in normal form.

    `components` are the strongly connected components of the graph of defined predicates, in topological order, so that
    each uses only earlier ones; inputs are in none. `semiring` is None for programs of plain arithmetic.
    """

    source: Source
    rules: tuple[NormalRule, ...]
    axioms: tuple[Axiom, ...]
    predicates: dict[str, Predicate]
    components: tuple[frozenset[str], ...]
    semiring: str | None
    agenda: str = "auto"
    solve: str = "auto"  # how cycles are run: auto, iterate, linear or newton
    outputs: tuple[str, ...] = ()  # declared output keys; empty where none was declared
    functions: dict[str, int] = field(default_factory=dict)  # declared functions of values: name -> arity
    priorities: tuple[PriorityDeclaration, ...] = ()
    prunes: tuple[PruneDeclaration, ...] = ()
    beams: tuple[BeamDeclaration, ...] = ()
    distributions: tuple[DistributionDeclaration, ...] = ()
    warnings: tuple[str, ...] = ()
