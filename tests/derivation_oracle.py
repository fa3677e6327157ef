"""All derivations of the items of a small program, by brute force: ground instances by the oracle, then every tree.

It shares nothing with the engine but the parser. A derivation is nested tuples: `("fact", item, row)`, where `row` is
the place among the given rows (from 0; axioms of the text from -1 downwards), or `(rule, item, antecedents...)`, where
`rule` is the rule's place in the text and an antecedent under `SIDE` is `("side", item)`, as is one of
clauses, which is worth one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dynagrad as dg
from dynagrad.rules import syntax as s
from dynagrad.rules.parse import parse
from oracle import (
    Instance,
    Key,
    Numbers,
    Semiring,
    _constant,
    _Database,
    _groups,
    _instances,
    _is_axiom,
    builtin_semirings,
    fact_rows,
    ground,
    term,
)

Tree = tuple[Any, ...]


@dataclass
class Ground:
    """The ground instances of a program and its given facts."""

    source: s.Source
    ring: Semiring
    given: dict[Key, list[tuple[int | None, Any]]] = field(
        default_factory=dict
    )  # item -> rows (None: a function's), values
    instances: dict[Key, list[tuple[int, Instance]]] = field(default_factory=dict)  # head -> rules and instances

    external: frozenset[str] = frozenset()
    clauses: frozenset[str] = frozenset()  # predicates whose items are worth one, however often they are derived

    @property
    def items(self) -> list[Key]:
        return list(dict.fromkeys([*self.given, *self.instances]))

    def below(self, rule: int, instance: Instance) -> list[tuple[Key, bool]]:
        """The items of an instance, and whether each is a leaf that is not opened."""
        leaves = _leaves(self.source.rules[rule].body)
        return [
            (item, isinstance(e, s.Side) or item[0] in self.clauses)
            for item, e in zip(instance.items, leaves, strict=True)
        ]

    # -- one derivation

    def weight(self, tree: Tree) -> Any:
        """The product of the constants and the facts of a derivation."""
        if tree[0] == "side":
            return self.ring.one
        if tree[0] == "fact":
            return next(value for row, value in self.given[tree[1]] if row == tree[2])
        below = iter(tree[2:])

        def compute(expression: s.Expression) -> Any:
            constant = _constant(expression)
            if constant is not None:
                return self.ring.number(constant)
            match expression:
                case s.ItemValue() | s.Side():
                    return self.weight(next(below))
                case s.Application("*", ()):
                    return self.ring.one
                case s.Application("*", operands):
                    parts = [compute(o) for o in operands]
                    return self.ring.times(*parts)
            raise TypeError(expression)

        return compute(self.source.rules[tree[0]].body)

    def size(self, tree: Tree) -> int:
        return 0 if tree[0] in ("fact", "side") else 1 + sum(self.size(t) for t in tree[2:])

    # -- all of them

    def derivations(self, item: Key, most: int) -> list[Tree]:
        """All derivations of an item with at most `most` instances of rules."""
        return [tree for tree, _ in self._sized(item, most, {})]

    def _sized(
        self, item: Key, most: int, memo: dict[tuple[Key, int], list[tuple[Tree, int]]]
    ) -> list[tuple[Tree, int]]:
        """The same with their sizes."""
        if (item, most) in memo:
            return memo[item, most]
        found: list[tuple[Tree, int]] = [(("fact", item, row), 0) for row, _ in self.given.get(item, ())]
        if most > 0:
            for rule, instance in self.instances.get(item, ()):
                options = [
                    [(("side", below), 0)] if side else self._sized(below, most - 1, memo)
                    for below, side in self.below(rule, instance)
                ]
                if math.prod(map(len, options)) > 5000:
                    raise TooMany
                for parts in itertools.product(*options):
                    size = 1 + sum(part[1] for part in parts)
                    if size <= most:
                        found.append(((rule, item, *(part[0] for part in parts)), size))
        if len(found) > 1000:
            raise TooMany
        memo[item, most] = found
        return found

    def opened(self) -> dict[Key, set[Key]]:
        """The items that the derivations of each item go on with."""
        return {
            head: {b for rule, instance in instances for b, side in self.below(rule, instance) if not side}
            for head, instances in self.instances.items()
        }

    def with_functions(self, item: Key) -> bool:
        """Whether rules for a predicate, or for one that these open, have values of functions."""
        opened = {
            (rule.head.key, e.item.key)
            for rule in self.source.rules
            for e in _leaves(rule.body)
            if isinstance(e, s.ItemValue) and rule.head.key not in self.clauses
        }
        seen, grew = {item[0]}, True
        while grew:
            more = {b for a, b in opened if a in seen} - seen
            seen, grew = seen | more, bool(more)
        return bool(seen & self.external)

    def cyclic(self, item: Key) -> bool:
        """Whether an item that reaches itself is reached."""
        below = self.opened()
        state: dict[Key, int] = {}

        def visit(at: Key) -> bool:
            if state.get(at) == 1:
                return True
            if state.get(at) == 2:
                return False
            state[at] = 1
            around = any(visit(b) for b in below.get(at, ()))
            state[at] = 2
            return around

        return visit(item)


class TooMany(Exception):
    """There are more derivations than are worth writing down."""


def _leaves(expression: s.Expression) -> list[s.Expression]:
    if isinstance(expression, s.ItemValue | s.Side):
        return [expression]
    if isinstance(expression, s.Application):
        return [leaf for operand in expression.operands for leaf in _leaves(operand)]
    return []


def grounded(
    text: str,
    facts: Mapping[str, Any],
    semiring: str | Semiring,
    functions: Mapping[str, Callable[..., Any]] | None = None,
) -> Ground:
    """The ground instances of a program in a semiring; `functions` are those of its external predicates."""
    source = parse(text)
    external, transient = (
        {key for d in source.declarations if isinstance(d, s.PredicateDeclaration) and d.kind == kind for key in d.keys}
        for kind in ("external", "transient")
    )
    ring = builtin_semirings(Numbers())[semiring] if isinstance(semiring, str) else semiring
    clauses = {rule.head.key for rule in source.rules if rule.aggregator == "|="} if semiring != "boolean" else set()
    found = Ground(source, ring, external=frozenset(external), clauses=frozenset(clauses))
    rows: dict[str, int] = {}

    axioms: dict[str, int] = {}

    def give(item: Key, value: Any, places: dict[str, int]) -> None:
        row = places.get(item[0], 0)
        places[item[0]] = row + 1
        found.given.setdefault(item, []).append((row if places is rows else -1 - row, value))

    for number, rule in enumerate(source.rules):
        if _is_axiom(rule):
            row = tuple(v for a in rule.head.arguments if (v := ground(a, {})) is not None)
            constant = _constant(rule.body)
            if rule.head.key in transient:  # an instance of its rule
                found.instances.setdefault((rule.head.key, row), []).append((number, Instance(rule, row, ())))
                continue
            give((rule.head.key, row), ring.one if constant is None else ring.number(constant), axioms)
    for key, row, value in fact_rows(facts):
        give((key, row), ring.one if value is None else ring.number(value), rows)
    database = _Database()
    for key, row in [*found.given, *found.instances]:
        database.add(key, row)
    rules = [(n, rule) for n, rule in enumerate(source.rules) if not _is_axiom(rule)]
    for group in _groups([rule for _, rule in rules]):
        mine = [(n, rule) for n, rule in rules if rule.head.key in group]
        grew = bool(mine)
        while grew:
            database.new_round()
            every = [(n, i) for n, rule in mine for i in _instances(rule, database, frozenset(external))]
            grew = False
            for _, i in every:
                grew |= database.add(i.rule.head.key, i.head)
            if not grew:
                for n, i in every:
                    found.instances.setdefault((i.rule.head.key, i.head), []).append((n, i))
                    for item in i.items:
                        if item[0] in external and item not in found.given:
                            value = (functions or {})[item[0].rpartition("/")[0]](*item[1])
                            found.given[item] = [(None, ring.number(value))]
    return found


# -- what the engine made, in the same form ----------------------------------------------------------------------------


def as_tree(derivation: dg.Derivation, prefix: str = "", first_rule: int = 0) -> Tree:
    """A derivation in the form of the oracle; `prefix` and `first_rule` are those of one of several programs in one."""
    steps = derivation.steps
    made: list[Any] = [None] * len(steps)
    for n in range(len(steps) - 1, -1, -1):
        step = steps[n]
        key, arguments = step.name
        item = (key.removeprefix(prefix), tuple(term(a) for a in arguments))
        if step.side:
            made[n] = ("side", item)
        elif step.rule is None:
            made[n] = ("fact", item, step.row)
        else:
            assert step.rule_number is not None
            made[n] = (step.rule_number - first_rule, item, *(made[i] for i in step.antecedents))
    tree: Tree = made[0]
    return tree


def sorted_by(ground: Ground, trees: Sequence[Tree], order: Callable[[Any], Any]) -> list[Tree]:
    """Derivations, the best first."""
    return sorted(trees, key=lambda t: (order(ground.weight(t)), ground.size(t)))


def each(trees: Sequence[Tree]) -> Iterator[Tree]:
    yield from trees
