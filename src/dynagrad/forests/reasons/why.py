"""Why an item is there: the rule instances that make it, each with its share, and facts that suffice for it.

The instances are those of its forest, opened to the depth that is asked. Sets of facts are the business of `sets.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ...arguments import real_number, whole_number
from ...calls import public
from ...errors import RoomError
from ..drawing.boxes import Box
from ..drawing.pictures import svg, text_tree
from ..packed import ForestItem, Packed, RuleInstance
from ..storage import json_text
from .sets import Fact, FactSets

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
    listed, complete = FactSets(with_sides(), budget, above).find(sets)
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


__all__ = ["Reason", "Why", "why"]
