"""The normal form of rules, the only one that the plan reads.

Here arithmetic has left the items (each `p(I+1)` is `p(V)` with an equation `V = I+1`), the items of a right side are
numbered antecedents, transient predicates are unfolded into their uses, and ground axioms are data apart from rules.
"""

from __future__ import annotations

from dataclasses import dataclass, field

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
)


@dataclass(frozen=True, slots=True)
class Antecedent:
    """An item of a right side; `side` where only its being derived counts."""

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
    """`head = constant.`, or `head.`: a ground item with its value, None for the one that facts have."""

    item: Item
    value: float | int | None
    span: Span = field(default=NOWHERE, compare=False)
    aggregator: str = field(default="=", compare=False)  # as it is written
    source: int = field(default=-1, compare=False)  # its place among the rules of the text, from 0


@dataclass(frozen=True, slots=True)
class Predicate:
    """What is known of `name/arity` from the text alone."""

    name: str
    arity: int
    aggregator: str  # "+=" for inputs of which no rule says another, and in programs with a semiring, but for clauses
    defined: bool  # some rule that is no axiom has it as its head
    input: bool  # facts may be given: declared, or no rule defines it
    external: bool = False
    output: bool = False
    types: tuple[Type, ...] | None = None  # as declared
    span: Span = field(default=NOWHERE, compare=False)

    @property
    def key(self) -> str:
        return f"{self.name}/{self.arity}"


@dataclass(frozen=True, slots=True)
class Rules:
    """A checked program in normal form.

    `components` are the strongly connected sets of defined predicates in an order in which each needs only earlier
    ones; inputs are in none. `semiring` is None for programs of plain arithmetic.
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
