"""Pictures of derivations: a tree in a terminal (rich), SVG, and text for Graphviz. Nothing is worked out here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

from ..errors import Error
from .steps import DerivationStep

MOST_DRAWN = 5_000
"""The most steps of a derivation that is drawn: a picture of more shows nothing."""

_WIDTH, _HEIGHT, _LEVEL, _GAP, _MARGIN = 7.2, 22, 54, 14, 12


@dataclass(frozen=True)
class Box:
    """What is drawn: a text, what hangs below it, and how it looks: "item", "given", "side", "missing" or "note"."""

    text: str
    antecedents: tuple[int, ...]
    depth: int
    look: str = "item"
    hint: str = ""


_LOOKS = {
    "item": ("#fff", "#555", ""),
    "given": ("#e8f0fe", "#4a78c8", ""),
    "side": ("#fff", "#999", ' stroke-dasharray="3 2"'),
    "missing": ("#fdecea", "#c0392b", ' stroke-dasharray="3 2"'),
    "note": ("#fff8e1", "#b98900", ""),
}
"""How boxes look: how they are filled, their border, and whether that is dashed."""


def _drawable(steps: Sequence[DerivationStep]) -> Sequence[DerivationStep]:
    _refuse_many(len(steps), f"the derivation of {steps[0].item}")
    return steps


def _refuse_many(count: int, what: str) -> None:
    if count > MOST_DRAWN:
        raise Error(f"{what} has {count:,} parts, and pictures are drawn of at most {MOST_DRAWN:,}")


def boxes(steps: Sequence[DerivationStep]) -> list[Box]:
    """The steps of a derivation as they are drawn."""
    found = []
    for step in _drawable(steps):
        look = "item" if step.rule is not None else "side" if step.side else "given"
        hint = step.rule or ("only has to be derived" if step.side else "given")
        if step.conditions:
            hint += "\n" + ", ".join(step.conditions)
        found.append(Box(step.text, step.antecedents, step.depth, look, hint))
    return found


def svg(boxes: Sequence[Box], title: str) -> str:
    """A tree as SVG; each box stands before those below it."""
    _refuse_many(len(boxes), title)
    sizes = [max(24.0, _WIDTH * len(b.text) + 10) for b in boxes]
    x = _places(boxes, sizes)
    depth = max(b.depth for b in boxes)
    width = max(a + b / 2 for a, b in zip(x, sizes, strict=True)) + _MARGIN
    height = depth * _LEVEL + _HEIGHT + 2 * _MARGIN
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" '
        'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12">',
        f"<title>{escape(title)}</title>",
    ]

    def y(box: Box) -> float:
        return float(_MARGIN + box.depth * _LEVEL + _HEIGHT / 2)

    for n, box in enumerate(boxes):
        for i in box.antecedents:
            out.append(
                f'<line x1="{x[n]:.1f}" y1="{y(box) + _HEIGHT / 2:.1f}" x2="{x[i]:.1f}" '
                f'y2="{y(boxes[i]) - _HEIGHT / 2:.1f}" stroke="#888" stroke-width="1"/>'
            )
    for n, box in enumerate(boxes):
        fill, stroke, dash = _LOOKS[box.look]
        out.append(
            f'<g><title>{escape(box.hint)}</title><rect x="{x[n] - sizes[n] / 2:.1f}" y="{y(box) - _HEIGHT / 2:.1f}" '
            f'width="{sizes[n]:.1f}" height="{_HEIGHT}" rx="4" fill="{fill}" stroke="{stroke}"{dash}/>'
            f'<text x="{x[n]:.1f}" y="{y(box) + 4:.1f}" text-anchor="middle" fill="#222">{escape(box.text)}</text></g>'
        )
    out.append("</svg>")
    return "\n".join(out)


def _places(steps: Sequence[Box], sizes: Sequence[float]) -> list[float]:
    """The middle of each step: over its antecedents, and beside what stands to its left on its own level."""
    x = [0.0] * len(steps)
    ends: dict[int, float] = {}  # how far each level reaches
    for n in _after(steps):
        step, half = steps[n], sizes[n] / 2
        least = ends.get(step.depth, _MARGIN - _GAP) + _GAP + half
        if step.antecedents:
            wanted = (x[step.antecedents[0]] + x[step.antecedents[-1]]) / 2
            if wanted < least:
                _move(steps, x, ends, sizes, n, least - wanted)
                wanted = least
            x[n] = wanted
        else:
            x[n] = least
        ends[step.depth] = max(ends.get(step.depth, 0.0), x[n] + half)
    return x


def _move(
    steps: Sequence[Box], x: list[float], ends: dict[int, float], sizes: Sequence[float], root: int, by: float
) -> None:
    """Moves all that stands below a step to the right."""
    stack = list(steps[root].antecedents)
    while stack:
        n = stack.pop()
        x[n] += by
        ends[steps[n].depth] = max(ends[steps[n].depth], x[n] + sizes[n] / 2)
        stack.extend(steps[n].antecedents)


def _after(steps: Sequence[Box]) -> list[int]:
    """The steps, each after its antecedents, from left to right."""
    order: list[int] = []
    stack: list[tuple[int, bool]] = [(0, False)]
    while stack:
        n, done = stack.pop()
        if done:
            order.append(n)
            continue
        stack.append((n, True))
        stack.extend((i, False) for i in reversed(steps[n].antecedents))
    return order


def graphviz(steps: Sequence[DerivationStep]) -> str:
    """The tree in the language of Graphviz."""
    _drawable(steps)
    out = ["digraph derivation {", '  node [shape=box, fontname="monospace", fontsize=11];', "  edge [dir=none];"]
    for n, step in enumerate(steps):
        style = (
            "" if step.rule is not None else ", style=dashed" if step.side else ", style=filled, fillcolor=aliceblue"
        )
        label = step.text.replace("\\", "\\\\").replace('"', '\\"')
        out.append(f'  n{n} [label="{label}"{style}];')
    for n, step in enumerate(steps):
        out.extend(f"  n{n} -> n{i};" for i in step.antecedents)
    return "\n".join([*out, "}", ""])


def rich_tree(steps: Sequence[DerivationStep]) -> Any:
    """The tree as rich draws it."""
    from rich.text import Text  # for a quick start
    from rich.tree import Tree  # for a quick start

    _drawable(steps)

    def label(step: DerivationStep) -> Text:
        text = Text(step.text, style="bold" if step.rule is not None else "dim" if step.side else "cyan")
        if step.conditions:
            text.append(f"   {', '.join(step.conditions)}", style="dim")
        return text

    made: list[Any] = [None] * len(steps)
    made[0] = Tree(label(steps[0]))
    stack = [0]
    while stack:
        n = stack.pop()
        for i in steps[n].antecedents:
            made[i] = made[n].add(label(steps[i]))
        stack.extend(steps[n].antecedents)
    return made[0]


def text_tree(boxes: Sequence[Box]) -> str:
    """A tree as plain text, a line for each box."""
    out: list[str] = []
    stack: list[tuple[int, str, str]] = [(0, "", "")]
    while stack:
        n, before, below = stack.pop()
        box = boxes[n]
        out.append(f"{before}{box.text}")
        last = len(box.antecedents) - 1
        for place in range(last, -1, -1):
            branch, rest = ("└── ", "    ") if place == last else ("├── ", "│   ")
            stack.append((box.antecedents[place], below + branch, below + rest))
    return "\n".join(out)
