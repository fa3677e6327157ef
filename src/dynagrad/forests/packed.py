"""The packed forest of an item's derivations: items, rule instances, and which instance has which antecedents.

A forest is flat arrays, see `runtime/include/dynagrad/running/collected.hpp`, with what is needed to say their meaning:
names of items, rules, weights. It never changes. How it is collected is the business of who has a chart; what
derivations it holds that of `ranking/` and `sums/`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import cut
from ..facts.terms import item_text
from ..forks import cached
from ..rules.normal import NormalRule
from ..rules.syntax import Rule, Source
from .algebra import Algebra, refuse_signs
from .listed import Listed
from .native import Held, Walk
from .terms import PartialMatch, bind_rule, instance_text

NO_ROW = 2**40
"""Of an external value, which no row gives."""
_NONE = np.zeros(0, np.int64)
Name = tuple[str, tuple[Any, ...]]
"""An item: the key of its predicate, and its arguments."""


@dataclass(frozen=True)
class ForestRule:
    """A rule as it is written, and as instances of it are told."""

    number: int
    text: str
    source: int  # its place among the rules of the text
    constants: tuple[float | int, ...]
    normal: NormalRule | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Arrays:
    """The instances of each node, and their antecedents; ~n is an antecedent that only has to be derived."""

    begin: npt.NDArray[np.uint32]
    end: npt.NDArray[np.uint32]
    opened: npt.NDArray[np.uint8]
    rule: npt.NDArray[np.int32]
    first: npt.NDArray[np.uint32]
    antecedent: npt.NDArray[np.int32]

    @cached
    def owner(self) -> npt.NDArray[np.int64]:
        """The node of each instance."""
        opened = np.flatnonzero(self.end > self.begin)
        order = opened[np.argsort(self.begin[opened], kind="stable")]
        return np.repeat(order, (self.end[order] - self.begin[order]).astype(np.int64))


@dataclass(frozen=True)
class Meaning:
    """What the numbers in the arrays stand for, asked for when it is needed."""

    names: Callable[[Sequence[int]], list[Name]]
    values: Callable[[], npt.NDArray[Any]]
    """Of each node, in the semiring's scale; a node that a chart does not keep has none, which is NaN."""
    given: npt.NDArray[Any]
    """The weight of each given fact."""
    given_row: npt.NDArray[np.int64]
    """Which of the rows of its predicate it is: from 0 those that were given, from -1 downwards axioms of the text."""
    rank: Callable[[], npt.NDArray[np.int64]]
    """The order of nodes in ties: by predicate, then by argument."""
    rules: Mapping[int, ForestRule]
    algebra: Algebra
    source: Source
    exact: bool = True
    """Whether the run came to its end."""
    aggregators: Mapping[str, str] = field(default_factory=dict)
    """Of each predicate."""
    partial: bool = False
    """Whether some items have no value in the chart: transient ones."""
    evaluate: Callable[[ForestRule, Sequence[Any]], Any] | None = None
    """In plain arithmetic, the value of an instance from those of its antecedents."""
    given_of: Mapping[str, npt.NDArray[np.int64]] = field(default_factory=dict)
    """The numbers of the given facts of each predicate, of a forest that a chart has made."""
    instance_values: Sequence[Any] = ()
    """In plain arithmetic, the values of instances where they were worked out before."""


class Packed:
    """A packed forest, as the rest of this room works on it: arrays and their meaning."""

    def __init__(self, arrays: Arrays, meaning: Meaning) -> None:
        self.arrays, self.meaning = arrays, meaning
        self._names: dict[int, Name] = {}
        self._values: npt.NDArray[Any] | None = None
        self._walks: dict[bool, Walk] = {}
        self._conditions: dict[int, tuple[str, ...]] = {}  # many derivations share an instance

    def name(self, node: int) -> Name:
        found = self._names.get(node)
        if found is None:
            self.learn([node])
            found = self._names[node]
        return found

    def learn(self, nodes: Sequence[int]) -> None:
        """Learns the names of several nodes at once."""
        fresh = [n for n in dict.fromkeys(nodes) if n not in self._names]
        if fresh:
            self._names.update(zip(fresh, self.meaning.names(fresh), strict=True))

    def text(self, node: int) -> str:
        """The item of a node, as short as messages want it."""
        return cut(self.full_text(node))

    def full_text(self, node: int) -> str:
        """The item of a node, whole."""
        return item_text(*self.name(node))

    def facts(self) -> list[Name]:
        """The given facts that derivations use, each once."""
        nodes = np.unique(self.arrays.owner[self.arrays.rule < 0]).tolist()
        self.learn(nodes)
        return [self.name(node) for node in nodes]

    def rows(self, key: str) -> npt.NDArray[np.int64]:
        """The numbers of the rows of a predicate that derivations use, in order; of a forest that a chart has made."""
        rows = self.meaning.given_row[self.meaning.given_of.get(key, _NONE)]
        return np.unique(rows[(rows >= 0) & (rows < NO_ROW)])

    def value(self, node: int) -> Any:
        if self._values is None:
            self._values = self.meaning.values()
        return python_value(self._values[node])

    def antecedents(self, instance: int) -> list[int]:
        a = self.arrays
        found: list[int] = a.antecedent[a.first[instance] : a.first[instance + 1]].tolist()
        return found

    def own_weight(self, instance: int) -> Any:
        """The weight of an instance apart from its antecedents."""
        number = int(self.arrays.rule[instance])
        if number < 0:
            return python_value(self.meaning.given[-1 - number])
        return self.meaning.algebra.constant(self.meaning.rules[number].constants)

    def written(self, instance: int) -> Rule | None:
        """The rule of an instance as it is written; None of a given fact."""
        rule = self.meaning.rules.get(int(self.arrays.rule[instance]))
        return None if rule is None else self.meaning.source.rules[rule.source]

    def bindings(self, instance: int) -> PartialMatch | None:
        """The variables of an instance's rule."""
        rule = self.written(instance)
        if rule is None:
            return None
        rows = [self.name(n if n >= 0 else ~n)[1] for n in self.antecedents(instance)]
        return bind_rule(rule, self.name(int(self.arrays.owner[instance]))[1], rows)

    def conditions(self, instance: int) -> tuple[str, ...]:
        rule = self.written(instance)
        if rule is None or not rule.conditions:
            return ()
        found = self._conditions.get(instance)
        if found is None:
            bindings = self.bindings(instance)
            found = () if bindings is None else tuple(bindings.condition_text(c) for c in rule.conditions)
            self._conditions[instance] = found
        return found

    def walk(self, *, sampling: bool = False) -> Walk:
        """The native algorithms over this forest; for sums over derivations, or for ranking them."""
        algebra = self.meaning.algebra
        sampling = sampling and (algebra.sampled is not algebra.kind)
        if sampling not in self._walks:
            self._walks[sampling] = self._opened(sampling)
        return self._walks[sampling]

    def _opened(self, sampling: bool) -> Walk:
        a, meaning, algebra = self.arrays, self.meaning, self.meaning.algebra
        kind = algebra.sampled if sampling else algebra.kind
        convert = algebra.chances if sampling else algebra.numbers
        most = max([0, *meaning.rules])
        constants = np.zeros(most + 1)
        given = np.zeros(0)
        if kind is not None:
            numbered = sorted(meaning.rules)
            weights = np.empty(len(numbered), object)
            weights[:] = [algebra.constant(meaning.rules[n].constants) for n in numbered]
            if numbered:
                constants[numbered] = convert(_stacked(weights))
            given = convert(meaning.given) if len(meaning.given) else given
            refuse_signs(algebra, constants, lambda n: f"the rule `{meaning.rules[n].text}`")
            refuse_signs(algebra, given, self.given_text)
        held = Held(a.begin, a.end, a.rule, a.first, a.antecedent, constants, np.ascontiguousarray(given))
        return Walk(-1 if kind is None else int(kind), 0, held, meaning.rank)

    def given_text(self, given: int) -> str:
        instance = int(np.flatnonzero(self.arrays.rule == -1 - given)[0])
        return f"the fact {self.text(int(self.arrays.owner[instance]))}"


@dataclass(frozen=True)
class ForestItem:
    """An item of a forest."""

    forest: Packed = field(repr=False, compare=False)
    number: int

    @property
    def predicate(self) -> str:
        """Its predicate, as `name/arity`."""
        return self.forest.name(self.number)[0]

    @property
    def arguments(self) -> tuple[Any, ...]:
        """Its arguments, as Python values."""
        return self.forest.name(self.number)[1]

    @property
    def value(self) -> Any:
        """Its value in the chart."""
        return self.forest.value(self.number)

    @property
    def opened(self) -> bool:
        """Whether its instances are in the forest: it is not reached by `SIDE` alone."""
        return bool(self.forest.arrays.opened[self.number])

    @property
    def instances(self) -> Sequence[RuleInstance]:
        """The instances of rules that derive it, and the rows that give it."""
        a = self.forest.arrays
        begin, count = int(a.begin[self.number]), int(a.end[self.number] - a.begin[self.number])
        return Listed(count, lambda n: RuleInstance(self.forest, begin + n))

    def __str__(self) -> str:
        return self.forest.full_text(self.number)


@dataclass(frozen=True)
class RuleInstance:
    """An instance of a rule in a forest, or a given fact."""

    forest: Packed = field(repr=False, compare=False)
    number: int

    @property
    def head(self) -> ForestItem:
        """The item that it derives."""
        return ForestItem(self.forest, int(self.forest.arrays.owner[self.number]))

    @property
    def rule(self) -> str | None:
        """The rule as it is written; None of a given fact."""
        found = self.forest.meaning.rules.get(int(self.forest.arrays.rule[self.number]))
        return None if found is None else found.text

    @property
    def rule_number(self) -> int | None:
        """The place of the rule in the program's text, from 0; None of a given fact."""
        found = self.forest.meaning.rules.get(int(self.forest.arrays.rule[self.number]))
        return None if found is None else found.source

    @property
    def row(self) -> int | None:
        """Of a given fact, which of the rows of its predicate it is: from 0 those that were bound, then those of the
        run; -1, -2, ... are axioms of the text."""
        number = int(self.forest.arrays.rule[self.number])
        row = 0 if number >= 0 else int(self.forest.meaning.given_row[-1 - number])
        return None if number >= 0 or row == NO_ROW else row

    @property
    def antecedents(self) -> tuple[ForestItem, ...]:
        """The items on its right side, in the order of the rule."""
        return tuple(ForestItem(self.forest, n if n >= 0 else ~n) for n in self.forest.antecedents(self.number))

    @property
    def sides(self) -> tuple[bool, ...]:
        """Of each antecedent, whether only it counts that it is derived."""
        return tuple(n < 0 for n in self.forest.antecedents(self.number))

    @property
    def conditions(self) -> tuple[str, ...]:
        """What the rule asks for beside its items, with what is known of its variables: `1 < 2`, `not stop(3)`."""
        return self.forest.conditions(self.number)

    @property
    def value(self) -> Any:
        """What it contributes to its head: its constants times the values of its antecedents."""
        forest, meaning = self.forest, self.forest.meaning
        nodes = forest.antecedents(self.number)
        number = int(forest.arrays.rule[self.number])
        if meaning.algebra.times is None:
            if meaning.instance_values:
                return meaning.instance_values[self.number]
            if number < 0:
                return forest.own_weight(self.number)
            values = [None if n < 0 else forest.value(n) for n in nodes]
            return None if meaning.evaluate is None else meaning.evaluate(meaning.rules[number], values)
        return meaning.algebra.product([forest.own_weight(self.number), *(forest.value(n) for n in nodes if n >= 0)])

    def __str__(self) -> str:
        rule = self.forest.written(self.number)
        bindings = self.forest.bindings(self.number)
        if rule is None:
            return f"{self.head}."
        return f"{self.head} {rule.aggregator} ..." if bindings is None else instance_text(rule, bindings)


def python_value(value: Any) -> Any:
    """A value of an array, as Python has it; a row is a pair, or a tuple."""
    if isinstance(value, np.ndarray):
        if value.ndim == 1 and len(value) == 2:
            return (float(value[0]), float(value[1]))
        return tuple(value.tolist())
    return value.item() if isinstance(value, np.generic) else value


def _stacked(weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Weights as facts have them: pairs are rows."""
    listed = weights.tolist()
    if listed and isinstance(listed[0], tuple):
        return np.array(listed, np.float64)
    return np.array(listed)
