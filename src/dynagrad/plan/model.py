"""Plans as immutable data: storage, indexes, stages, and the steps of each join.

Nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, Flag, auto
from typing import TYPE_CHECKING, Any

from ..forks import cached
from ..rules.normal import NormalRule, Rules
from ..rules.semirings import SEMIRINGS
from ..rules.syntax import Comparison, Equation, Item, Term
from ..rules.types import Domains

if TYPE_CHECKING:
    from .right_sides import TracedSemiring

# -- statistics of facts -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DomainSummary:
    """The extent of a domain: the range low..high of its integers in facts, or the `count` of its atoms."""

    kind: str  # "int", "atom" or "term"
    low: int = 0
    high: int = -1
    ranked: bool = False  # whether facts order its atoms topologically

    @property
    def count(self) -> int:
        return max(0, self.high - self.low + 1)


@dataclass(frozen=True)
class FactSummary:
    """Statistics of a predicate's facts, on which a plan may depend."""

    rows: int
    distinct: tuple[int, ...]
    gaps: Mapping[tuple[int, int], int] = field(default_factory=dict)
    """(i, j) -> the least value of argument j minus argument i, where both are ordered in one domain."""
    superior: bool = False  # no value is better than the semiring's one


@dataclass(frozen=True)
class Summary:
    domains: Mapping[int, DomainSummary]
    facts: Mapping[str, FactSummary]


# -- storage -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Extent:
    """The range of an integer argument: from the domain's low + `below` to its high + `above`."""

    below: int
    above: int


class TableKind(Enum):
    """Where the items of a predicate are."""

    FACTS = "facts"
    """Rows that are given."""
    DENSE = "dense"
    """An array over the ranges of the arguments."""
    HASHED = "hashed"
    EXTERNAL = "external"
    """Nowhere: a function outside of the program has their values."""


@dataclass(frozen=True)
class TableLayout:
    """The storage of a predicate's items. `order` is the storage order of the arguments of a dense table."""

    key: str
    number: int
    kind: TableKind
    domains: tuple[int, ...]
    extents: tuple[Extent | None, ...]
    order: tuple[int, ...]
    aggregator: str
    updates: bool = True  # whether an item has a pending update beside its value
    sink: bool = False  # never an antecedent, so it bypasses the agenda
    cells: int = 0  # of a dense table, for the facts that the plan was made for

    @property
    def arity(self) -> int:
        return len(self.domains)


# -- joins -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lookup:
    """Step: look up the one item whose arguments are all bound."""

    antecedent: int


@dataclass(frozen=True)
class Scan:
    """Step: scan the items that match the bound variables, and bind the others.

    `via` is "rows" (the last stored argument of a dense table is free: its occupancy bits are scanned), "index" or
    "all".
    """

    antecedent: int
    via: str = ""
    index: int = -1
    keys: tuple[Term, ...] = ()  # the key that is looked up in the index


@dataclass(frozen=True)
class Filter:
    """Step: check a comparison or an equation whose variables are all bound."""

    condition: Comparison | Equation


@dataclass(frozen=True)
class Solve:
    """Step: bind `variable`, the only unknown of an equation, to the value of `term`."""

    variable: str
    term: Term
    exact: tuple[Term, Term] | None = None  # the sides of the equation, to compare afterwards if `term` divides


@dataclass(frozen=True)
class Unfold:
    """Step: match the bound `variable` with the compound `pattern`, and bind the variables in that."""

    variable: str
    pattern: Term


@dataclass(frozen=True)
class Absent:
    """Step: check that no item matches (negation)."""

    item: Item
    index: int = -1
    keys: tuple[Term, ...] = ()


Step = Lookup | Scan | Filter | Solve | Unfold | Absent


@dataclass(frozen=True)
class Join:
    """How the instances of a rule are found: driven by the antecedent `driver`, from nothing, or from the head."""

    rule: NormalRule
    driver: int | None
    steps: tuple[Step, ...]
    from_head: bool = False
    vector: str | None = None  # the variable over which the last scan and the head are one vector operation
    same: tuple[int, ...] = ()  # other antecedents that may be the same item as the driver
    cost: float = 0.0


@dataclass(frozen=True)
class IndexPlan:
    """The items of `key` that match `pattern`, grouped by the values of the variables `by`."""

    key: str
    number: int
    pattern: tuple[Term, ...]
    by: tuple[str, ...]


# -- order -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LinearForm:
    """A level mapping: the sum of coefficient * argument over an item's ordered arguments, and a constant."""

    name: str
    coefficients: Mapping[str, tuple[tuple[int, int], ...]]  # predicate key -> (argument, coefficient)...
    constant: Mapping[str, int] = field(default_factory=dict)  # predicate key -> constant


class Strategy(Enum):
    """How the items of a stage are derived."""

    ONCE = "once"
    """There is no recursion: rules fire, and nothing is popped."""
    LEVELS = "levels"
    """Items become final in order of `forms`."""
    SOLVE = "solve"
    """Level by level, and within a level in topological order of the ground program, whose cyclic components are
    solved."""
    HEAP = "heap"
    """By level, then by priority."""
    QUEUE = "queue"
    STACK = "stack"
    SWEEP = "sweep"
    """All rules in rounds, until nothing changes."""


@dataclass(frozen=True)
class Stage:
    """A stratum: predicates that run together, after all earlier stages."""

    number: int
    keys: tuple[str, ...]
    strategy: Strategy
    priority: str  # of the heap: "size", "value", "declared" or ""
    forms: tuple[LinearForm, ...]
    final: bool  # each item is popped once
    reason: str
    fires: tuple[Join, ...]  # rules joined once, when the stage begins
    drives: tuple[Join, ...]  # rules joined from each popped item
    inner: frozenset[tuple[int, int]] = frozenset()
    """Of "solve": the (rule number, antecedent) whose head may be on the antecedent's own level."""
    grows: bool = False  # arguments may grow without bound
    unknowns: int = 0  # of "solve": the highest degree of its equations; 0 where cyclic components cannot be solved
    stable: Mapping[str, int] = field(default_factory=dict)
    """Of "solve": by predicate the stable argument, for all of whose values one system is solved; see
    `analyses/stable.py`."""

    @cached
    def one_driver_each(self) -> bool:
        """Whether no rule has two antecedents that drive it."""
        rules = [join.rule.number for join in self.drives]
        return len(rules) == len(set(rules))

    @property
    def inner_joins(self) -> tuple[Join, ...]:
        """Of "solve": the joins whose head may be on the level of their driver."""
        return tuple(join for join in self.drives if self.is_inner(join))

    def is_inner(self, join: Join) -> bool:
        """Whether a join of this stage is one of the inner ones."""
        return (join.rule.number, join.driver) in self.inner

    @property
    def joins_itself(self) -> bool:
        """Whether inner joins look up other items of the stage, which then have to be in the chart at that time."""
        return any(
            a.item.key in self.keys and i != join.driver
            for join in self.inner_joins
            for i, a in enumerate(join.rule.antecedents)
        )


@dataclass(frozen=True)
class Changes:
    """The joins of an incremental update, beside those of the stages."""

    facts: tuple[Join, ...]  # driven by facts that were added or deleted; where cycles are solved, by items too
    heads: tuple[Join, ...]  # from heads that are to be rederived


class Passes(Flag):
    """The passes that a library has: forward, backward, or both.

    Where each has a library of its own, the backward class works on charts of the forward class, and frees what that
    allocated. So both are generated from the same plan and derivatives, with the same members in the same order and the
    same slots of constants (`Generated.works_on`), and compiled by the same compiler with the same headers.
    """

    FORWARD = auto()
    BACKWARD = auto()
    BOTH = FORWARD | BACKWARD


@dataclass(frozen=True)
class Derivatives:
    """The derivatives that a class computes: forward along `order` directions at once, and backward if `adjoint`.

    With `outside`, adjoints are always with respect to weights, never to logs, so that they are outside values.
    """

    order: int = 0
    adjoint: bool = True
    outside: bool = False


@dataclass(frozen=True)
class Plan:
    """A plan: all that the generated class depends on."""

    rules: Rules
    domains: Domains
    summary: Summary
    semiring: str  # a built-in name, "plain" or "user"
    vector: int  # for expectation, the length of r
    tables: Mapping[str, TableLayout]
    indexes: tuple[IndexPlan, ...]
    stages: tuple[Stage, ...]
    omitted: Mapping[str, str]  # predicates that the outputs do not need, with the reason
    fixed: Mapping[str, Mapping[int, Term]] = field(default_factory=dict)  # see `analyses/demand.py`
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    user: TracedSemiring | None = None
    selective: bool = False  # plus selects one of its arguments
    until: str | None = None  # the predicate of the item that runs stop at
    changes: Changes | None = None
    gaps: Mapping[str, Mapping[tuple[int, int], int]] = field(default_factory=dict)
    """What the order requires of facts, by predicate: the least value of argument j minus argument i."""
    derivatives: Derivatives | None = None
    iterates: bool = False  # some stage iterates though its strategy could be "solve"
    collects: tuple[Join, ...] | None = None
    """Of a class that collects derivations, and runs nothing: a join from the head for each rule."""

    @cached
    def stage_of(self) -> Mapping[str, Stage]:
        """The stage in which the items of each derived predicate are made."""
        return {key: stage for stage in self.stages for key in stage.keys}

    @cached
    def pops_once(self) -> bool:
        """Whether every item is popped once at most."""
        return all(stage.final for stage in self.stages)

    @property
    def solves(self) -> bool:
        """Whether a stage finds the strongly connected components of its ground program."""
        return any(stage.strategy is Strategy.SOLVE for stage in self.stages)

    @property
    def resolves(self) -> bool:
        """Whether the class updates charts whose cycles were solved."""
        return self.changes is not None and self.solves

    @property
    def keeps_logs(self) -> bool:
        """Whether the logs of facts' weights are kept as given: in `log`, where cycles are solved."""
        return SEMIRINGS[self.semiring].adds_logs and any(stage.unknowns for stage in self.stages)

    def pops_rows(self, key: str) -> bool:
        """Whether items of a predicate that stand side by side wait and are popped together: all are on one level."""
        return key in self._row_keys

    def waits_in_rows(self, stage: Stage) -> bool:
        """Whether items of a stage wait in rows, at least those of some predicates."""
        return stage.number in self._row_stages

    @cached
    def _row_stages(self) -> frozenset[int]:
        return frozenset(s.number for s in self.stages if not self._row_keys.isdisjoint(s.keys))

    @cached
    def _row_keys(self) -> frozenset[str]:
        if self.changes is not None:
            return frozenset()
        found = set[str]()
        for stage in self.stages:
            for table in (self.tables[key] for key in stage.keys if stage.strategy is Strategy.LEVELS and stage.final):
                if table.sink or table.kind is not TableKind.DENSE or not table.arity:
                    continue
                levels = (i for form in stage.forms for i, _ in form.coefficients.get(table.key, ()))
                if table.order[-1] not in levels:
                    found.add(table.key)
        return frozenset(found)

    def sums_together(self, join: Join) -> bool:
        """Whether the stretches of facts that a join adds to rows of its head are added for many drivers at once."""
        if join.driver is None or join.vector is None or not isinstance(last := join.steps[-1], Scan):
            return False
        facts = self.tables[join.rule.antecedents[last.antecedent].item.key].kind is TableKind.FACTS
        return facts and self.pops_rows(join.rule.antecedents[join.driver].item.key)

    @cached
    def heads_summed(self) -> frozenset[str]:
        """The predicates that such joins add to."""
        drives = (join for stage in self.stages for join in stage.drives)
        return frozenset(join.rule.head.key for join in drives if self.sums_together(join))

    @property
    def order(self) -> int:
        """The number of directions of forward derivatives."""
        return self.derivatives.order if self.derivatives is not None else 0

    @property
    def adjoint(self) -> bool:
        """Whether the class has a backward pass, and so members for a tape and for adjoints."""
        return self.derivatives is not None and self.derivatives.adjoint
