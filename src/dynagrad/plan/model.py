"""What a plan is: immutable data that says how a program will run, from storage to the steps of each join."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Flag, auto
from typing import TYPE_CHECKING, Any

from ..rules.normal import NormalRule, Rules
from ..rules.semirings import SEMIRINGS
from ..rules.syntax import Comparison, Equation, Item, Term
from ..rules.types import Domains

if TYPE_CHECKING:
    from .right_sides import TracedSemiring

# -- what the facts are like ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DomainSummary:
    """A domain as the facts show it. For `int`, all fact values lie in low..high; for `atom`, there are `count`."""

    kind: str  # "int", "atom" or "term"
    low: int = 0
    high: int = -1
    ranked: bool = False  # atoms that facts order without a cycle have a rank

    @property
    def count(self) -> int:
        return max(0, self.high - self.low + 1)


@dataclass(frozen=True)
class FactSummary:
    """A predicate's facts, as far as a plan may depend on them."""

    rows: int
    distinct: tuple[int, ...]
    gaps: Mapping[tuple[int, int], int] = field(default_factory=dict)
    """(i, j) -> the least value of argument j minus argument i, where both are ordered in one domain."""
    nonnegative: bool = True
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


@dataclass(frozen=True)
class TableLayout:
    """Where a predicate's items are. `order` is the stored order of the arguments of a dense table."""

    key: str
    number: int
    kind: str  # "facts", "dense", "hashed" or "external"
    domains: tuple[int, ...]
    extents: tuple[Extent | None, ...]
    order: tuple[int, ...]
    aggregator: str
    updates: bool = True  # a pending update beside the value
    sink: bool = False  # never an antecedent: bypasses the agenda
    cells: int = 0  # of a dense table, with the facts that the plan was made for

    @property
    def arity(self) -> int:
        return len(self.domains)


# -- joins -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lookup:
    """Step: fetch the one item that the bound variables name."""

    antecedent: int


@dataclass(frozen=True)
class Scan:
    """Step: go through the items that agree with what is bound; binds the rest.

    `via` is "rows" (the last stored argument of a dense table is free: its bits are read), "index" or "all".
    """

    antecedent: int
    via: str = ""
    index: int = -1
    keys: tuple[Term, ...] = ()  # what the index is asked for


@dataclass(frozen=True)
class Filter:
    """Step: a comparison or an equation whose variables are all bound."""

    condition: Comparison | Equation


@dataclass(frozen=True)
class Solve:
    """Step: bind `variable` to the value of `term`, then nothing else is unknown in the equation."""

    variable: str
    term: Term
    exact: tuple[Term, Term] | None = None  # both sides to compare afterwards, where division had to be exact


@dataclass(frozen=True)
class Unfold:
    """Step: take the bound `variable` apart as the compound `pattern`."""

    variable: str
    pattern: Term


@dataclass(frozen=True)
class Absent:
    """Step: go on only if no item matches."""

    item: Item
    index: int = -1
    keys: tuple[Term, ...] = ()


Step = Lookup | Scan | Filter | Solve | Unfold | Absent


@dataclass(frozen=True)
class Join:
    """How the instances of a rule are found: from the antecedent `driver`, from nothing, or from the head."""

    rule: NormalRule
    driver: int | None
    steps: tuple[Step, ...]
    from_head: bool = False
    vector: str | None = None  # the variable over which the last scan and the head run side by side
    same: tuple[int, ...] = ()  # other antecedents that may be the driver's own item
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
    """A whole number for an item: the sum of coefficient * argument over its ordered arguments."""

    name: str
    coefficients: Mapping[str, tuple[tuple[int, int], ...]]  # predicate key -> (argument, coefficient)...
    constant: Mapping[str, int] = field(default_factory=dict)  # predicate key -> what is added


@dataclass(frozen=True)
class Stage:
    """Predicates that run together, after all earlier stages.

    strategy: "once" (no recursion: rules fire, nothing is popped), "levels" (items become final in order of `forms`),
    "solve" (level by level, inside a level in topological order of the ground program, whose cyclic components are
    solved), "heap" (by level, then priority), "queue", "stack" or "sweep" (all rules again until nothing changes).
    """

    number: int
    keys: tuple[str, ...]
    strategy: str
    priority: str  # what the heap goes by: "size", "value", "declared" or ""
    forms: tuple[LinearForm, ...]
    final: bool  # each item is popped once
    reason: str
    fires: tuple[Join, ...]  # rules joined once, when the stage begins
    drives: tuple[Join, ...]  # rules joined from each popped item
    inner: frozenset[tuple[int, int]] = frozenset()
    """Of "solve": (rule number, antecedent) from where the head may be on the antecedent's own level."""
    grows: bool = False  # arguments may grow without end
    unknowns: int = 0  # of "solve": the most that an instance multiplies; 0 where cyclic components cannot be solved
    stable: Mapping[str, int] = field(default_factory=dict)
    """Of "solve": per predicate an argument over whose values components are solved side by side; see `stable.py`."""

    @property
    def inner_joins(self) -> tuple[Join, ...]:
        """Of "solve": the joins whose head may be on the level of their driver."""
        return tuple(j for j in self.drives if (j.rule.number, j.driver) in self.inner)

    @property
    def joins_itself(self) -> bool:
        """Whether rules inside a level look for items of the stage, which then have to be in the chart as they do."""
        return any(
            a.item.key in self.keys and i != join.driver
            for join in self.inner_joins
            for i, a in enumerate(join.rule.antecedents)
        )


@dataclass(frozen=True)
class Changes:
    """What a plan needs beside its stages so that facts of a finished chart may change."""

    facts: tuple[Join, ...]  # the driver is a fact that came or went; where cycles are solved, an item too
    heads: tuple[Join, ...]  # the instances of a head that is to be derived again


class Passes(Flag):
    """Which passes of a program a library has.

    Both may be in libraries of their own. Then a class of the backward pass goes over charts that one of the forward
    pass made, and gives back arrays that it took. Both are of the same plan and derivatives, so they have the same
    members in the same order (`Generated.layout`) and the same slots of constants, and they are compiled by the same
    compiler with the same headers.
    """

    FORWARD = auto()
    BACKWARD = auto()
    BOTH = FORWARD | BACKWARD


@dataclass(frozen=True)
class Derivatives:
    """What a class can differentiate: forward along `order` directions at once, and backward where `adjoint`.

    With `outside`, adjoints are always kept with respect to weights, so that outside values can be read off them.
    """

    order: int = 0
    adjoint: bool = True
    outside: bool = False


@dataclass(frozen=True)
class Plan:
    """Everything that the generated class depends on."""

    rules: Rules
    domains: Domains
    summary: Summary
    semiring: str  # a built-in name, "plain" or "user"
    vector: int  # for expectation, the length of r
    tables: Mapping[str, TableLayout]
    indexes: tuple[IndexPlan, ...]
    stages: tuple[Stage, ...]
    omitted: Mapping[str, str]  # predicates that the outputs do not need, with the reason
    fixed: Mapping[str, Mapping[int, Term]] = field(default_factory=dict)  # see `demand.py`
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    user: TracedSemiring | None = None
    selective: bool = False  # plus picks one of its arguments
    until: str | None = None  # the predicate of the item that runs stop at
    changes: Changes | None = None
    gaps: Mapping[str, Mapping[tuple[int, int], int]] = field(default_factory=dict)
    """What the order relies on, per fact predicate: argument j minus argument i is at least this."""
    derivatives: Derivatives | None = None
    iterates: bool = False  # a stage that could find its ground program's components does not
    collects: tuple[Join, ...] | None = None
    """Of a class that runs nothing, but collects the derivations of items: the instances of each rule from its head."""

    @property
    def solves(self) -> bool:
        """Whether a stage finds the components of its ground program."""
        return any(stage.strategy == "solve" for stage in self.stages)

    @property
    def resolves(self) -> bool:
        """Whether the class brings a chart up to date whose cycles were solved."""
        return self.changes is not None and self.solves

    @property
    def keeps_logs(self) -> bool:
        """Whether the logs of weights are kept as they were given: in `log`, where cycles are solved."""
        return SEMIRINGS[self.semiring].adds_logs and any(stage.unknowns for stage in self.stages)

    def bounded(self, table: TableLayout) -> bool:
        """Whether the error bound of a component is kept with its items, so that a change of others can leave it."""
        return not table.sink and any(table.key in stage.keys and stage.unknowns for stage in self.stages)

    @property
    def order(self) -> int:
        """How many directions the numbers carry derivatives along."""
        return self.derivatives.order if self.derivatives is not None else 0

    @property
    def adjoint(self) -> bool:
        """Whether runs can be gone back over: the class has room for a tape and for adjoints."""
        return self.derivatives is not None and self.derivatives.adjoint
