"""Nests: how the instances of a rule are found, as data: loops that bind variables, probes, guards, lets, and a head.

A nest is a join of which nothing has to be worked out any more: each operation says what it binds, and what of an item
that was found is still to be matched. It is made by `lower.py`, has a text that reads like pseudocode, and is written
as C++ by `codegen/rules`. Nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from ..rules.normal import NormalRule
from ..rules.show import show
from ..rules.syntax import Arithmetic, Comparison, Compound, Equation, Item, Term, Variable
from .model import TableKind


class Access(Enum):
    """How a loop comes by the items that match what is known."""

    ROW = "row"
    """The last stored argument of a dense table is free: the bits of its row are scanned."""
    INDEX = "index"
    ALL = "all"


@dataclass(frozen=True)
class Loop:
    """For each item, or fact, that matches what is known."""

    antecedent: int
    item: Item
    kind: TableKind
    access: Access
    index: int
    keys: tuple[Term, ...]
    """What is looked up in the index."""
    matches: tuple[int, ...]
    """The arguments that are still to be matched with what was found."""
    binds: tuple[str, ...]
    """The variables that these bind."""
    final: bool
    """Whether the values that are read do not change any more."""
    row: str | None = None
    """The variable over which this loop and the head are one vector operation."""


@dataclass(frozen=True)
class Probe:
    """If the one item whose arguments are all known is there."""

    antecedent: int
    item: Item
    kind: TableKind
    final: bool
    invariant: bool
    """Whether the table of facts that is probed is the same for all turns of a loop around it."""


@dataclass(frozen=True)
class Guard:
    """If a comparison or an equation holds, whose variables are all bound."""

    condition: Comparison | Equation


@dataclass(frozen=True)
class Absence:
    """If no item matches (negation)."""

    item: Item
    index: int
    keys: tuple[Term, ...]


@dataclass(frozen=True)
class Let:
    """Binds a variable to the value of a term."""

    variable: str
    term: Term
    exact: tuple[Term, Term] | None
    """The sides of an equation, to be compared afterwards, where the term divides."""


@dataclass(frozen=True)
class Match:
    """If a bound variable matches a compound term, whose variables that binds."""

    variable: str
    pattern: Term
    binds: tuple[str, ...]


@dataclass(frozen=True)
class Head:
    """The item to which each instance contributes."""

    item: Item


Operation = Loop | Probe | Guard | Absence | Let | Match


@dataclass(frozen=True)
class Nest:
    """The operations around the head of a rule, the outermost first.

    A nest begins with nothing; with the item, or the fact, of the antecedent `driver`; or with its head.
    """

    rule: NormalRule
    driver: int | None
    from_head: bool
    given: tuple[Term, ...]
    """The arguments of what it begins with."""
    body: tuple[Operation, ...]
    head: Head
    same: frozenset[int] = frozenset()
    """Other antecedents that may be the same item as the driver."""
    domains: Mapping[str, int | None] = field(default_factory=dict)
    """The domain of each variable; None for a part of a term."""


# -- what can be read off a nest ---------------------------------------------------------------------------------------


def terms_of(nest: Nest) -> Iterator[Term]:
    """The terms of a nest, as often as they stand in it: of all items, and of what is computed and compared."""
    for item in (nest.head.item, *(antecedent.item for antecedent in nest.rule.antecedents)):
        yield from item.arguments
    for operation in nest.body:
        match operation:
            case Guard(condition=condition):
                yield from (condition.left, condition.right)
            case Let(variable=variable, term=term, exact=exact):
                yield from (Variable(variable), term, *(exact or ()))
            case Match(variable=variable, pattern=pattern):
                yield from (Variable(variable), pattern)
            case Absence(item=item):
                yield from item.arguments


def occurrences(nest: Nest) -> Mapping[str, int]:
    """How often each variable stands in a nest: one that stands there once is bound and never read."""
    found: dict[str, int] = {}
    todo = list(terms_of(nest))
    while todo:
        match todo.pop():
            case Variable(name=name):
                found[name] = found.get(name, 0) + 1
            case Compound(arguments=inside) | Arithmetic(operands=inside):
                todo += inside
    return found


# -- as text -----------------------------------------------------------------------------------------------------------


def title(nest: Nest) -> str:
    """What a nest is of, and what it begins with."""
    rule = f"rule {nest.rule.number}"
    if nest.from_head:
        return f"{rule} for {show(nest.head.item)}"
    if nest.driver is None:
        return rule
    return f"{rule} from {show(nest.rule.antecedents[nest.driver].item)}"


def lines(nest: Nest) -> list[str]:
    """The operations and the head, a line each; what is known of an operation stands after two dashes.

    >>> from dynagrad.rules import check, infer, parse
    >>> from dynagrad.plan.assume import assumed_plan
    >>> from dynagrad.plan.lower import lower
    >>> rules = check(parse("goal += edge(X,Y) * weight(Y) for X != Y."))
    >>> plan = assumed_plan(rules, infer(rules), ["atom"])
    >>> print(*lines(lower(plan, plan.stages[0].fires[0])), sep="\\n")
    for (X, Y) in edge(X,Y)  -- facts, all of them
      if X != Y
        probe weight(Y)
          head goal
    """
    found = []
    for depth, operation in enumerate(nest.body):
        text, notes = _line(nest, operation)
        found.append("  " * depth + text + (f"  -- {'; '.join(notes)}" if notes else ""))
    return [*found, "  " * len(nest.body) + f"head {show(nest.head.item)}"]


def _line(nest: Nest, operation: Operation) -> tuple[str, list[str]]:
    match operation:
        case Loop():
            return _loop(nest, operation)
        case Probe(item=item, antecedent=i, kind=TableKind.EXTERNAL):
            return f"call {show(item)}", _notes(nest, i)
        case Probe(item=item, antecedent=i):
            return f"probe {show(item)}", _notes(nest, i)
        case Guard(condition=condition):
            return f"if {show(condition)}", []
        case Absence(item=item):
            return f"if not {show(item)}", []
        case Let(variable=variable, term=term, exact=exact):
            return f"let {variable} = {show(term)}", [] if exact is None else ["if the division is exact"]
        case Match(variable=variable, pattern=pattern):
            return f"match {variable} with {show(pattern)}", []


def _loop(nest: Nest, loop: Loop) -> tuple[str, list[str]]:
    variables = ", ".join(loop.binds) if len(loop.binds) == 1 else f"({', '.join(loop.binds)})"
    keys = f" by {', '.join(map(show, loop.keys))}" if loop.keys else ""
    what = "facts" if loop.kind is TableKind.FACTS else "items" if loop.final else "items, not all final"
    how = {Access.ROW: "a row of bits", Access.INDEX: f"index {loop.index}", Access.ALL: "all of them"}[loop.access]
    notes = [f"{what}, {how}"]
    if loop.row is not None:
        where = ", where no fact is missing" if loop.access is Access.INDEX else ""
        notes.append(f"contiguous over {loop.row} in the head, too{where}")
    return f"for {variables} in {show(loop.item)}{keys}", [*notes, *_notes(nest, loop.antecedent)]


def _notes(nest: Nest, antecedent: int) -> list[str]:
    found = []
    if nest.rule.antecedents[antecedent].side:
        found.append("its value does not count")
    if antecedent in nest.same:
        found.append("where it is what the nest begins with, its old value")
    return found
