"""Explanations of an item that was not derived: attempts at it, rule by rule, down to the facts that are missing.

How they are found is said in `searching.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...calls import public
from ..drawing.boxes import Box
from ..drawing.pictures import svg, text_tree
from ..storage import json_text


@dataclass(frozen=True)
class BodyPart:
    """An item or a condition of a rule that did not come to an instance.

    `kind` is "there" (an item of the chart), "missing" (a fact that was not given), "underived" (an item that rules
    define, explained by `attempt`), "fails" (a comparison or an equation), "present" (a negated item that is there),
    "pruned" (an item that the run held back) or "stopped" (one that a run that was stopped did not come to).
    """

    kind: str
    text: str
    note: str = ""
    attempt: Attempt | None = None


@dataclass(frozen=True)
class Attempt:
    """A rule that came near an item: what was there for it, and what was not."""

    item: str
    rule: str
    parts: tuple[BodyPart, ...]

    @property
    def missing(self) -> list[str]:
        """What is missing at the leaves."""
        found: list[str] = []
        for part in self.parts:
            if part.attempt is not None:
                found += part.attempt.missing
            elif part.kind != "there":
                found.append(part.text if part.kind != "present" else f"not {part.text}")
        return list(dict.fromkeys(found))

    @property
    def facts(self) -> list[str]:
        """The facts that were not given."""
        found: list[str] = []
        for part in self.parts:
            found += part.attempt.facts if part.attempt is not None else [part.text] if part.kind == "missing" else []
        return list(dict.fromkeys(found))

    def data(self) -> dict[str, Any]:
        """What it is as JSON."""

        def part_data(part: BodyPart) -> dict[str, Any]:
            found: dict[str, Any] = {"kind": part.kind, "text": part.text}
            if part.note:
                found["note"] = part.note
            if part.attempt is not None:
                found["attempt"] = part.attempt.data()
            return found

        return {"item": self.item, "rule": self.rule, "parts": [part_data(p) for p in self.parts]}


@dataclass(frozen=True)
class WhyNot:
    """Why an item is not there.

    >>> import dynagrad as dg
    >>> program = dg.Program("path(V) min= path(U) + edge(U,V).  path(a) = 0.")
    >>> chart = program.run({"edge/2": [("b", "c", 2.0)]})
    >>> print(chart.why_not("path(c)"))
    path(c) is not derived; 1 is missing for it
    path(c)
    └── path(V) min= path(U) + edge(U,V).
        ├── path(b)
        │   └── path(V) min= path(U) + edge(U,V).
        │       ├── path(a)
        │       └── edge(a,b)   missing (no edge/2 has a as argument 1)
        └── edge(b,c)
    path(c)
    └── path(V) min= path(U) + edge(U,V).
        ├── path(a)
        └── edge(a,c)   missing (no edge/2 has a as argument 1)
    """

    item: str
    attempts: tuple[Attempt, ...]
    """The rules that came nearest, all with the same number of missing leaves."""
    missing: int
    """How many leaves are missing for each of them; 0 where none was found."""
    complete: bool
    """Whether the search came to its end within its limits: then nothing comes nearer."""
    note: str = ""
    """What is known of the item beside that."""

    @public
    def to_json(self, indent: int | None = None) -> str:
        """All of it as JSON."""
        data = {
            "item": self.item,
            "missing": self.missing,
            "complete": self.complete,
            "note": self.note,
            "attempts": [a.data() for a in self.attempts],
        }
        return json_text(data, indent)

    def _boxes(self, attempts: Sequence[Attempt]) -> list[Box]:
        boxes: list[Box] = [Box(self.item, (), 0, "missing")]

        def rule(attempt: Attempt, depth: int) -> int:
            n = len(boxes)
            boxes.append(Box(" ".join(attempt.rule.split()), (), depth, "note"))
            below = []
            for part in attempt.parts:
                m = len(boxes)
                below.append(m)
                look = {"there": "given", "underived": "item"}.get(part.kind, "missing")
                said = _SAID.get(part.kind, "")
                note = f" ({part.note})" if part.note else ""
                text = part.text if part.kind != "present" else f"not {part.text}"
                boxes.append(Box(f"{text}{'   ' if said or note else ''}{said}{note}", (), depth + 1, look, part.kind))
                if part.attempt is not None:
                    boxes[m] = replace(boxes[m], antecedents=(rule(part.attempt, depth + 2),))
            boxes[n] = replace(boxes[n], antecedents=tuple(below))
            return n

        boxes[0] = replace(boxes[0], antecedents=tuple([rule(a, 1) for a in attempts]))
        return boxes

    @public
    def svg(self) -> str:
        """What came nearest, as an SVG picture."""
        return svg(self._boxes(self.attempts[:1]), f"Why not {self.item}")

    def _repr_svg_(self) -> str:
        return self.svg()

    def __str__(self) -> str:
        note = f": {self.note}" if self.note else ""
        if not self.attempts:
            rest = "no rule derives it" if self.complete else "nothing was found within the limits"
            return f"{self.item} is not derived{note or f': {rest}'}"
        limits = "" if self.complete else " (the search met its limits)"
        verb = "is" if self.missing == 1 else "are"
        head = f"{self.item} is not derived{note}; {self.missing} {verb} missing for it{limits}"
        return "\n".join([head, *(text_tree(self._boxes([a])) for a in self.attempts[:3])])


_SAID = {
    "missing": "missing",
    "fails": "does not hold",
    "present": "is there",
    "pruned": "was held back",
    "stopped": "the run stopped before it",
}
