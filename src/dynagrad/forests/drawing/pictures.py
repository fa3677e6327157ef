"""Pictures of boxes: SVG, a tree in a terminal (rich), plain text, and text for Graphviz.

Which boxes there are, and what stands in them, was decided in `boxes.py`: here they are only placed and written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from ...errors import Error, counted
from .boxes import Box

MOST_DRAWN = 5_000
"""The most boxes of a picture: one of more shows nothing."""

_WIDTH, _HEIGHT, _LEVEL, _GAP, _MARGIN = 7.2, 22, 54, 14, 12


@dataclass(frozen=True)
class _Look:
    fill: str
    border: str
    dashed: bool = False
    graphviz: str = ""
    rich: str = "bold"


_LOOKS = {
    "item": _Look("#fff", "#555"),
    "given": _Look("#e8f0fe", "#4a78c8", False, ", style=filled, fillcolor=aliceblue", "cyan"),
    "side": _Look("#fff", "#999", True, ", style=dashed", "dim"),
    "missing": _Look("#fdecea", "#c0392b", True),
    "note": _Look("#fff8e1", "#b98900"),
}
"""How boxes look: in SVG how they are filled and their border, which may be dashed; in Graphviz; in a terminal."""


def drawable(boxes: Sequence[Box]) -> Sequence[Box]:
    """The boxes, where they are not too many for a picture."""
    if len(boxes) > MOST_DRAWN:
        raise Error(
            f"the drawing of {boxes[0].text} has {counted(len(boxes), 'part')}, and pictures are drawn of at most "
            f"{MOST_DRAWN:,}"
        )
    return boxes


def svg(boxes: Sequence[Box], title: str) -> str:
    """A tree as SVG; each box stands before those below it."""
    drawable(boxes)
    sizes = [max(24.0, _WIDTH * len(b.text) + 10) for b in boxes]
    x = _places(boxes, sizes)
    depth = max(b.depth for b in boxes)
    width = max(a + b / 2 for a, b in zip(x, sizes, strict=True)) + _MARGIN
    height = depth * _LEVEL + _HEIGHT + 2 * _MARGIN
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" '
        'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12">',
        f"<title>{escape(title, quote=False)}</title>",
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
        look = _LOOKS[box.look]
        dash = ' stroke-dasharray="3 2"' if look.dashed else ""
        hint, text = escape(box.hint, quote=False), escape(box.text, quote=False)
        out.append(
            f'<g><title>{hint}</title><rect x="{x[n] - sizes[n] / 2:.1f}" y="{y(box) - _HEIGHT / 2:.1f}" '
            f'width="{sizes[n]:.1f}" height="{_HEIGHT}" rx="4" fill="{look.fill}" stroke="{look.border}"{dash}/>'
            f'<text x="{x[n]:.1f}" y="{y(box) + 4:.1f}" text-anchor="middle" fill="#222">{text}</text></g>'
        )
    out.append("</svg>")
    return "\n".join(out)


def _places(boxes: Sequence[Box], sizes: Sequence[float]) -> list[float]:
    """The middle of each box: over its antecedents, and beside what stands to its left on its own level."""
    x = [0.0] * len(boxes)
    ends: dict[int, float] = {}  # how far each level reaches
    for n in _after(boxes):
        box, half = boxes[n], sizes[n] / 2
        least = ends.get(box.depth, _MARGIN - _GAP) + _GAP + half
        if box.antecedents:
            wanted = (x[box.antecedents[0]] + x[box.antecedents[-1]]) / 2
            if wanted < least:
                _move(boxes, x, ends, sizes, n, least - wanted)
                wanted = least
            x[n] = wanted
        else:
            x[n] = least
        ends[box.depth] = max(ends.get(box.depth, 0.0), x[n] + half)
    return x


def _move(
    boxes: Sequence[Box], x: list[float], ends: dict[int, float], sizes: Sequence[float], root: int, by: float
) -> None:
    """Moves all that stands below a box to the right."""
    stack = list(boxes[root].antecedents)
    while stack:
        n = stack.pop()
        x[n] += by
        ends[boxes[n].depth] = max(ends[boxes[n].depth], x[n] + sizes[n] / 2)
        stack.extend(boxes[n].antecedents)


def _after(boxes: Sequence[Box]) -> list[int]:
    """The boxes, each after its antecedents, from left to right."""
    order: list[int] = []
    stack: list[tuple[int, bool]] = [(0, False)]
    while stack:
        n, done = stack.pop()
        if done:
            order.append(n)
            continue
        stack.append((n, True))
        stack.extend((i, False) for i in reversed(boxes[n].antecedents))
    return order


def graphviz(boxes: Sequence[Box]) -> str:
    """The tree in the language of Graphviz."""
    drawable(boxes)
    out = ["digraph derivation {", '  node [shape=box, fontname="monospace", fontsize=11];', "  edge [dir=none];"]
    for n, box in enumerate(boxes):
        label = box.text.replace("\\", "\\\\").replace('"', '\\"')
        out.append(f'  n{n} [label="{label}"{_LOOKS[box.look].graphviz}];')
    for n, box in enumerate(boxes):
        out.extend(f"  n{n} -> n{i};" for i in box.antecedents)
    return "\n".join([*out, "}", ""])


def rich_tree(boxes: Sequence[Box]) -> Any:
    """The tree as rich draws it."""
    from rich.text import Text  # for a quick start
    from rich.tree import Tree  # for a quick start

    drawable(boxes)

    def label(box: Box) -> Text:
        text = Text(box.text, style=_LOOKS[box.look].rich)
        if box.conditions:
            text.append(f"   {', '.join(box.conditions)}", style="dim")
        return text

    made: list[Any] = [None] * len(boxes)
    made[0] = Tree(label(boxes[0]))
    for n, box in enumerate(boxes):
        for i in box.antecedents:
            made[i] = made[n].add(label(boxes[i]))
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
