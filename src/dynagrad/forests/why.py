"""Why an item is there: the rule instances that make it, each with its share, and facts that suffice for it.

The instances are those of its forest, opened to the depth that is asked. Sets of facts come from the same forest, with
items under `SIDE` opened too: an irreducible set by deletion, starting from the facts of one derivation; all of them by
carrying sets of facts through the forest, smaller ones absorbing larger (why-provenance: Buneman, Khanna and Tan 2001),
which ends within a budget or falls back on deletion from derivation after derivation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arguments import real_number, whole_number
from ..calls import public
from ..errors import QueryError, RoomError
from .algebra import Kind
from .drawing.boxes import Box
from .drawing.pictures import svg, text_tree
from .native import Held, Walk
from .packed import Arrays, ForestItem, Packed, RuleInstance
from .ranking.k_best import Ranked
from .storage import json_text

Fact = str
SELECTIVE = ("viterbi", "tropical")

MOST_DEPTH, MOST_REASONS = 100, 100_000
"""How deep an item can be opened, and how many reasons are shown then: a forest unfolds into exponentially many."""


@dataclass(frozen=True)
class Reason:
    """An instance of a rule that makes an item, or a row that gives it."""

    text: str
    rule: str | None
    share: float | None
    """Its part in the item's value: of a sum how much of it, of a maximum one where it attains it. None: not known."""
    value: Any
    change: float | None
    """With a goal: how much the goal changes for it, to first order."""
    conditions: tuple[str, ...]
    antecedents: tuple[Why, ...]


@dataclass(frozen=True)
class Why:
    """Why an item is there.

    >>> import dynagrad as dg
    >>> program = dg.Program("path(V) min= path(U) + edge(U,V).  path(a) = 0.")
    >>> why = program.run({"edge/2": [("a", "b", 2.0), ("b", "c", 1.0), ("a", "c", 9.0)]}).why("path(c)")
    >>> print(why)
    path(c) = 3.0
    ├── path(c) min= path(b) + edge(b,c)   100%
    └── path(c) min= path(a) + edge(a,c)   0%
    suffices: edge(a,c)
    >>> why.complete, why.sets
    (False, [['edge(a,c)']])
    """

    item: str
    value: Any
    reasons: tuple[Reason, ...] | None
    """None where the item was not opened."""
    sets: list[list[Fact]]
    """Irreducible sets of given facts that suffice for the item: without any one of them it is not derived."""
    complete: bool
    """Whether these are all such sets."""

    @property
    def facts(self) -> list[Fact]:
        """The first of the sets."""
        return self.sets[0] if self.sets else []

    @public
    def to_json(self, indent: int | None = None) -> str:
        """All of it as JSON."""
        return json_text(self._data() | {"sets": self.sets, "complete": self.complete}, indent)

    def _data(self) -> dict[str, Any]:
        """What is said of an item wherever it stands: all but the sets of facts."""
        found: dict[str, Any] = {"item": self.item, "value": self.value}
        if self.reasons is not None:
            found["reasons"] = [
                {
                    "instance": r.text,
                    "rule": r.rule,
                    "share": r.share,
                    "value": r.value,
                    **({} if r.change is None else {"change": r.change}),
                    "conditions": list(r.conditions),
                    "antecedents": [a._data() for a in r.antecedents],
                }
                for r in self.reasons
            ]
        return found

    def _boxes(self) -> list[Box]:
        boxes: list[Box] = []

        def add(text: str, depth: int, look: str, hint: str = "") -> int:
            boxes.append(Box(text, (), depth, look, hint))
            return len(boxes) - 1

        def visit(why: Why, depth: int) -> int:
            given = why.reasons is not None and all(r.rule is None for r in why.reasons)
            n = add(f"{why.item} = {_number(why.value)}", depth, "given" if given else "item")
            below = []
            for r in () if given or why.reasons is None else why.reasons:
                share = "" if r.share is None else f"   {_percent(r.share)}"
                change = "" if r.change is None else f"   changes the goal by {_number(r.change)}"
                conditions = f"   {', '.join(r.conditions)}" if r.conditions else ""
                m = add(f"{r.text}{conditions}{share}{change}", depth + 1, "note", r.rule or "given")
                opened = [a for a in r.antecedents if a.reasons is not None]
                inner = tuple(visit(a, depth + 2) for a in opened)
                boxes[m] = replace(boxes[m], antecedents=inner)
                below.append(m)
            boxes[n] = replace(boxes[n], antecedents=tuple(below))
            return n

        visit(self, 0)
        return boxes

    @public
    def svg(self) -> str:
        """The reasons as an SVG picture."""
        return svg(self._boxes(), f"Why {self.item}")

    def _repr_svg_(self) -> str:
        return self.svg()

    def __str__(self) -> str:
        lines = [text_tree(self._boxes())]
        if self.sets:
            lines += [f"suffices: {', '.join(s) or 'nothing but the program'}" for s in self.sets]
        return "\n".join(lines)


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) and value != round(value, 6) else str(value)


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"


def why(
    forest: Packed,
    with_sides: Callable[[], Packed],
    depth: int,
    adjoint: Callable[[str], float] | None,
    sets: int,
    budget: int,
    above: float | None,
) -> Why:
    """Why the root of a forest is there. `adjoint` gives the derivative of a goal by an item, where one was named."""
    depth, sets = whole_number("depth", depth, 0, MOST_DEPTH), whole_number("sets", sets, 0)
    budget = whole_number("budget", budget, 1)
    above = None if above is None else real_number("above", above)
    memo: dict[int, float] = {}
    reasons_left = MOST_REASONS

    def derivative(item: ForestItem) -> float | None:
        if adjoint is None:
            return None
        if item.number not in memo:
            memo[item.number] = adjoint(str(item))
        return memo[item.number]

    def explain(item: ForestItem, left: int, path: frozenset[int]) -> Why:
        nonlocal reasons_left
        reasons = None
        if left > 0 and item.opened and item.number not in path:
            d = derivative(item)
            within = path | {item.number}
            reasons_left -= len(item.instances)
            if reasons_left < 0:
                raise RoomError(f"depth {depth} opens more than {MOST_REASONS:,} reasons; ask for a smaller depth")
            shares = _shares(forest, item)
            reasons = tuple(
                Reason(
                    str(i),
                    i.rule,
                    share,
                    i.value,
                    None if d is None else _change(forest, d, share, i),
                    i.conditions,
                    tuple(explain(a, left - 1, within) for a in i.antecedents),
                )
                for i, share in sorted(zip(item.instances, shares, strict=True), key=lambda pair: -(pair[1] or 0.0))
            )
        return Why(str(item), item.value, reasons, [], False)

    found = explain(ForestItem(forest, 0), depth, frozenset())
    if sets < 1:
        return found
    listed, complete = _Sets(with_sides(), budget, above).find(sets)
    return replace(found, sets=listed, complete=complete)


def _change(forest: Packed, derivative: float, share: float | None, instance: RuleInstance) -> float | None:
    """How the goal changes for an instance: by its value where values add up, and by its log where logs are weights."""
    name = forest.meaning.algebra.name
    if name in ("log", "viterbi", "tropical"):
        return None if share is None else derivative * share
    value = instance.value
    value = value[0] if isinstance(value, tuple) else value
    return None if value is None else derivative * float(value)


def _shares(forest: Packed, item: ForestItem) -> list[float | None]:
    """The part of each instance in the value of its item."""
    meaning = forest.meaning
    name = meaning.algebra.name
    values = [i.value for i in item.instances]
    if any(v is None for v in values):
        return [None] * len(values)
    if name == "expectation":
        values = [v[0] for v in values]
    if name in ("real", "expectation", "count") or (
        name == "plain" and meaning.aggregators.get(item.predicate) == "+="
    ):
        total = math.fsum(values)
        return [float(v) / total if total else 0.0 for v in values]
    if name == "log":
        top = max(values)
        parts = [math.exp(v - top) if top > -math.inf else 0.0 for v in values]
        total = math.fsum(parts)
        return [p / total if total else 0.0 for p in parts]
    if name in SELECTIVE or meaning.aggregators.get(item.predicate) in ("max=", "min="):
        least = name == "tropical" or meaning.aggregators.get(item.predicate) == "min="
        best = (min if least else max)(values)
        return [1.0 if v == best else 0.0 for v in values]
    return [1.0 if v else 0.0 for v in values] if name == "boolean" else [None] * len(values)


# -- sets of facts -----------------------------------------------------------------------------------------------------


class _Sets:
    """Irreducible sets of given facts for the root of a forest whose items under `SIDE` are opened too."""

    def __init__(self, forest: Packed, budget: int, above: float | None) -> None:
        self.forest, self.budget, self.above = forest, budget, above
        a = forest.arrays
        owner = a.owner
        given = np.flatnonzero(a.rule < 0)
        rows = forest.meaning.given_row[-1 - a.rule[given]]
        self.fact_of: dict[int, int] = {}  # given number -> node, of what was given and is no axiom
        for instance, row in zip(given.tolist(), rows.tolist(), strict=True):
            if 0 <= row < 2**40:
                self.fact_of[-1 - int(a.rule[instance])] = int(owner[instance])
        self.rows_of: dict[int, list[int]] = {}
        for number, node in self.fact_of.items():
            self.rows_of.setdefault(node, []).append(number)
        self.open = replace(a, antecedent=np.where(a.antecedent < 0, ~a.antecedent, a.antecedent).astype(np.int32))

    def find(self, most: int) -> tuple[list[list[Fact]], bool]:
        if self.above is not None:
            found = self._above(self.above)
            return [self._names(found)], False
        if most == 1:
            return [self._names(self._one())], False
        every = self._all()
        if every is not None:
            ordered = sorted((self._names(s) for s in every), key=lambda s: (len(s), s))
            return ordered[:most], len(ordered) <= most
        return self._some(most), False

    def _names(self, nodes: frozenset[int] | set[int]) -> list[Fact]:
        self.forest.learn(sorted(nodes))
        rank = self.forest.meaning.rank()
        return [self.forest.text(n) for n in sorted(nodes, key=lambda n: int(rank[n]))]

    # derivable from some facts alone

    def _walk(self, arrays: Arrays, kind: Kind, constants: Any, given: Any) -> Walk:
        held = Held(arrays.begin, arrays.end, arrays.rule, arrays.first, arrays.antecedent, constants, given)
        return Walk(int(kind), 0, held, self.forest.meaning.rank)

    def _derives(self) -> tuple[Walk, Any]:
        """A walk in which an item is derivable where given facts that count are 1, and the array that says which do."""
        given = np.ones(len(self.forest.meaning.given))
        constants = np.ones(1 + max([0, *self.forest.meaning.rules]))
        return self._walk(self.open, Kind.SIZES, constants, given), given

    def _one(self) -> set[int]:
        """One irreducible set: the facts of the smallest derivation, without those that it can do without."""
        walk, given = self._derives()
        first = next(Ranked(self.forest, walk, lambda: None))
        return self._deleted(self._facts(first.instances), walk, given)

    def _facts(self, instances: Sequence[int] | npt.NDArray[Any]) -> set[int]:
        numbers = [-1 - int(r) for r in self.forest.arrays.rule[np.asarray(instances, np.int64)].tolist() if r < 0]
        return {self.fact_of[n] for n in numbers if n in self.fact_of}

    def _deleted(self, facts: set[int], walk: Walk, given: Any) -> set[int]:
        """An irreducible part of a set of facts that suffices."""

        def derives(kept: set[int]) -> bool:
            for node, numbers in self.rows_of.items():
                given[numbers] = 1.0 if node in kept else 0.0
            walk.best(again=True)
            return walk.derivable() is not None

        kept = set(facts)
        for node in sorted(facts, reverse=True):
            if derives(kept - {node}):
                kept.discard(node)
        given[:] = 1.0
        return kept

    # all sets

    def _all(self) -> set[frozenset[int]] | None:
        """All irreducible sets; None where they take more than the budget."""
        walk, _ = self._derives()
        nodes, begin, _, _ = walk.order()
        a = self.open
        found: dict[int, set[frozenset[int]]] = {}
        work = 0

        def absorb(sets: set[frozenset[int]]) -> set[frozenset[int]]:
            kept: list[frozenset[int]] = []
            for s in sorted(sets, key=len):
                if not any(k <= s for k in kept):
                    kept.append(s)
            return set(kept)

        for c in range(len(begin) - 1):
            members = nodes[int(begin[c]) : int(begin[c + 1])].tolist()
            changed = True
            while changed:
                changed = False
                for v in members:
                    sets: set[frozenset[int]] = set()
                    for i in range(int(a.begin[v]), int(a.end[v])):
                        number = int(a.rule[i])
                        if number < 0:
                            fact = self.fact_of.get(-1 - number)
                            sets.add(frozenset() if fact is None else frozenset((fact,)))
                            continue
                        parts: set[frozenset[int]] = {frozenset()}
                        for u in a.antecedent[int(a.first[i]) : int(a.first[i + 1])].tolist():
                            below = found.get(u, set())
                            work += 1 + len(parts) * len(below)
                            if work > self.budget:
                                return None
                            parts = absorb({p | q for p in parts for q in below})
                        sets |= parts
                    sets = absorb(sets)
                    if sets != found.get(v):
                        found[v] = sets
                        changed = len(members) > 1 or v in self._below(v)
        return found[0]

    def _below(self, v: int) -> set[int]:
        a = self.open
        return set(a.antecedent[int(a.first[int(a.begin[v])]) : int(a.first[int(a.end[v])])].tolist())

    def _some(self, most: int) -> list[list[Fact]]:
        """Irreducible sets of derivation after derivation, within the budget."""
        ranking, _ = self._derives()
        walk, given = self._derives()
        seen: set[frozenset[int]] = set()
        for looked, derivation in enumerate(Ranked(self.forest, ranking, lambda: None)):
            seen.add(frozenset(self._deleted(self._facts(derivation.instances), walk, given)))
            if len(seen) >= most or looked >= min(self.budget, 1000):
                break
        return sorted((self._names(s) for s in seen), key=lambda s: (len(s), s))

    # a value above a threshold

    def _above(self, threshold: float) -> set[int]:
        """An irreducible set of facts for which the value is still as good as a threshold."""
        forest, algebra = self.forest, self.forest.meaning.algebra
        if algebra.kind not in (Kind.PRODUCTS, Kind.SUMS) or algebra.name == "expectation":
            raise QueryError(
                "above= asks for real, log, viterbi or tropical, with weights of at least 0; in "
                f"{algebra.name} a value has no such threshold"
            )
        summing = algebra.name in ("real", "log")
        source = forest.walk(sampling=summing)
        given = source.held.given.copy()
        walk = self._walk(
            self.open if not summing else forest.arrays, Kind(source.view.kind), source.held.constant, given
        )
        full = given.copy()
        nothing = -np.inf if walk.view.kind == Kind.SUMS else 0.0
        wanted = float(algebra.numbers(np.array([threshold]))[0])

        def reaches(kept: set[int]) -> bool:
            for node, numbers in self.rows_of.items():
                given[numbers] = full[numbers] if node in kept else nothing
            return _total(walk, summing) >= wanted - 1e-12 * abs(wanted)

        kept = set(self.rows_of)
        if not reaches(kept):
            raise QueryError(f"{forest.text(0)} is {forest.value(0)}, which does not reach {threshold}")
        for node in sorted(self.rows_of, key=lambda n: float(full[self.rows_of[n]].sum())):
            if reaches(kept - {node}):
                kept.discard(node)
        return kept


def _total(walk: Walk, summing: bool) -> float:
    """The value of the root, as native code ranks it."""
    if not summing:
        walk.best(again=True)
        best = walk.derivable()
        if best is None:
            return -math.inf if walk.view.kind == Kind.SUMS else 0.0
        m, e = best
        return m if walk.view.kind == Kind.SUMS else math.ldexp(m, e)
    if walk.sums(again=True) is not None:
        raise QueryError("above= needs a forest without cycles where weights add up; ask in viterbi or tropical")
    m_all, e_all = walk.totals()
    if walk.view.kind == Kind.SUMS:
        return -math.inf if m_all[0] == 0 else math.log(m_all[0]) + int(e_all[0]) * math.log(2)
    return math.ldexp(m_all[0], int(e_all[0]))


__all__ = ["Reason", "Why", "why"]
