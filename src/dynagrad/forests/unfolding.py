"""Transient items in a forest: a rule that was unfolded is several again, as the program has them.

The engine has no transient items, so a forest comes with instances of unfolded rules. Here each becomes an instance of
the rule as it is written, over an item of its own for each transient one, whose instances are those of its rules.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np

from ..facts.terms import term_order
from ..rules.normal import NormalRule, Unfolded
from ..rules.syntax import Source
from .algebra import AGGREGATED
from .packed import Arrays, ForestRule, Name, Packed, python_value
from .terms import PartialMatch, bind, hashed


def unfolded(forest: Packed) -> Packed:
    """The forest with its transient items; itself where there are none."""
    meaning = forest.meaning
    if not any(_transient(rule.normal) for rule in meaning.rules.values()):
        return forest
    return _Unfolding(forest).forest()


def _transient(rule: NormalRule | None) -> bool:
    return rule is not None and any(isinstance(part, Unfolded) for part in rule.parts)


def _claimed(parts: tuple[int | Unfolded, ...]) -> set[int]:
    inside = [part for part in parts if isinstance(part, Unfolded)]
    return set().union(*(part.constants for part in inside), *(_claimed(part.parts) for part in inside))


class _Unfolding:
    def __init__(self, forest: Packed) -> None:
        self.of = forest
        self.instances: list[list[tuple[int, tuple[int, ...]]]] = [[] for _ in forest.arrays.begin]
        self.names: dict[int, Name] = {}  # of transient items
        self.nodes: dict[Hashable, int] = {}  # by what tells 1 from 1.0
        self.seen: set[tuple[int, int, tuple[int, ...]]] = set()
        self.rules: dict[int, ForestRule] = {}

    def forest(self) -> Packed:
        a = self.of.arrays
        owners = a.owner
        for i in range(len(a.rule)):
            number, head = int(a.rule[i]), int(owners[i])
            nodes = self.of.antecedents(i)
            if number < 0:
                self.instances[head].append((number, ()))
                continue
            rule = self.of.meaning.rules[number]
            normal = rule.normal
            assert normal is not None
            below = tuple(nodes)
            if _transient(normal):
                rows = [self.of.name(n if n >= 0 else ~n)[1] for n in nodes]
                pairs = [(x.item, row) for x, row in zip(normal.antecedents, rows, strict=True)]
                bindings = bind(normal.head, self.of.name(head)[1], pairs, normal.conditions)
                assert bindings is not None
                below = self._below(normal.parts, nodes, bindings, rule)
                own = set(range(len(rule.constants))) - _claimed(normal.parts)
                self._add(head, normal.source, below, tuple(rule.constants[n] for n in sorted(own)))
            else:
                self._add(head, normal.source, below, rule.constants)
        return self._packed()

    def _below(
        self, parts: tuple[int | Unfolded, ...], nodes: list[int], bindings: PartialMatch, rule: ForestRule
    ) -> tuple[int, ...]:
        return tuple(
            nodes[part] if isinstance(part, int) else self._item(part, nodes, bindings, rule) for part in parts
        )

    def _item(self, part: Unfolded, nodes: list[int], bindings: PartialMatch, rule: ForestRule) -> int:
        """The node of a transient item, with the instance of its rule that stands here."""
        name = (part.item.key, tuple(bindings.value(t) for t in part.item.arguments))
        key = (name[0], *map(hashed, name[1]))
        if key not in self.nodes:
            self.nodes[key] = len(self.instances)
            self.names[len(self.instances)] = name
            self.instances.append([])
        node = self.nodes[key]
        below = self._below(part.parts, nodes, bindings, rule)
        self._add(node, part.source, below, tuple(rule.constants[n] for n in part.constants))
        return node

    def _add(self, head: int, source: int, below: tuple[int, ...], constants: tuple[Any, ...]) -> None:
        if (head, source, below) in self.seen:
            return
        self.seen.add((head, source, below))
        number = source + 1
        self.instances[head].append((number, below))
        if number not in self.rules:
            self.rules[number] = ForestRule(number, _text(self.of.meaning.source, source), source, constants)

    def _packed(self) -> Packed:
        old, meaning = self.of.arrays, self.of.meaning
        begin: list[int] = []
        end: list[int] = []
        rule: list[int] = []
        first: list[int] = []
        antecedent: list[int] = []
        for listed in self.instances:
            begin.append(len(rule))
            for number, below in listed:
                rule.append(number)
                first.append(len(antecedent))
                antecedent.extend(below)
            end.append(len(rule))
        first.append(len(antecedent))
        fresh = len(self.instances) - len(old.begin)
        arrays = Arrays(
            np.array(begin, np.uint32),
            np.array(end, np.uint32),
            np.concatenate([old.opened, np.ones(fresh, np.uint8)]),
            np.array(rule, np.int32),
            np.array(first, np.uint32),
            np.array(antecedent, np.int32),
        )
        count = len(old.begin)

        def names(nodes: Any) -> list[Name]:
            kept = [n for n in nodes if n < count]
            known = dict(zip(kept, meaning.names(kept), strict=True)) if kept else {}
            return [known[n] if n < count else self.names[n] for n in nodes]

        def values() -> Any:
            given = meaning.values()
            more = np.full((fresh, *given.shape[1:]), np.nan) if given.dtype.kind == "f" else np.empty(fresh, object)
            every = np.concatenate([given if given.dtype.kind == "f" else given.astype(object), more])
            known: dict[int, Any] = {}
            for n in range(count, count + fresh):
                every[n] = self._value(n, every, known)
            return every

        def rank() -> Any:
            given = meaning.rank()
            order = sorted(self.names, key=lambda n: (self.names[n][0], [*map(term_order, self.names[n][1])]))
            place = {n: i for i, n in enumerate(order)}
            return np.concatenate([given, [len(given) + place[n] for n in sorted(self.names)]]).astype(np.int64)

        aggregators = dict(meaning.aggregators)
        for n, (key, _) in self.names.items():
            aggregators[key] = self._aggregator(self.instances[n][0][0])
        changed = replace(meaning, names=names, values=values, rank=rank, rules=self.rules, aggregators=aggregators)
        return Packed(arrays, replace(changed, partial=True))

    def _value(self, node: int, values: Any, known: dict[int, Any]) -> Any:
        """The value of an item; that of a transient one is not in `values` but made by its instances."""
        if node not in self.names:
            return python_value(values[node])
        if node not in known:
            meaning = self.of.meaning
            made = []
            for number, below in self.instances[node]:
                rule = self.rules[number]
                parts = [None if u < 0 else self._value(u, values, known) for u in below]
                if meaning.algebra.times is None:
                    made.append(None if meaning.evaluate is None else meaning.evaluate(rule, parts))
                else:
                    weights = [p for u, p in zip(below, parts, strict=True) if u >= 0]
                    made.append(meaning.algebra.product([meaning.algebra.constant(rule.constants), *weights]))
            plus = meaning.algebra.plus or AGGREGATED.get(self._aggregator(self.instances[node][0][0]))
            known[node] = math.nan if plus is None or any(m is None for m in made) else plus(made)
        return known[node]

    def _aggregator(self, number: int) -> str:
        return self.of.meaning.source.rules[self.rules[number].source].aggregator


def _text(source: Source, place: int) -> str:
    return source.rules[place].text
