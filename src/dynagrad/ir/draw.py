"""Graphs as pictures: layered drawing of the lines of `show.py`, as an SVG without dependencies.

The layout is that of Sugiyama, Tagawa and Toda 1981: layers by longest paths from the inputs, the order in a layer by
barycentres, coordinates by isotonic regression (least squares that keeps the order). A subgraph is a box in the box of
its node. An adjoint stands beside its value, in another colour, and its arrows go up. Colours are that of the text
around the picture (`currentColor`) and two more, which the CSS variables --dg-value and --dg-adjoint change, so that it
suits light and dark pages. A large graph is drawn in part, and the picture says so. Drawing reads lines, never nodes.

It is long because layout and drawing share the boxes, and nothing else does.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape

from ..errors import counted
from .control import Graph
from .node import Node
from .show import LetSeries, Line, Value, series_of, show

LARGEST = 300
"""The most values that are drawn."""
ROW = 10
"""The most values in a row."""
REACH = 12
"""The most rows that an arrow may cross; longer ones are left out, since the names say the same."""
WIDEST = 46
"""The most characters of a label; the whole text is the tooltip."""
LINES = 1000
"""The most lines of the text that stands in for a picture."""

_LETTER, _HEIGHT, _PAD, _GAP, _RISE = 6.7, 15.0, 8.0, 18.0, 30.0
_VALUE, _ADJOINT = "var(--dg-value,#3b7dd8)", "var(--dg-adjoint,#c8601a)"


@dataclass(frozen=True, eq=False)
class Shown:
    """A graph that prints as text, and in a notebook as a picture.

    >>> from dynagrad.ir import variable
    >>> x = variable("x")
    >>> Shown(Graph((x,), (x * x,)))
    (x : real)
    t1 : real = x * x
    -> t1
    """

    graph: Graph
    names: Mapping[Node, str] = field(default_factory=dict)
    adjoints: Mapping[Node, Node | None] = field(default_factory=dict)
    sources: Mapping[Node, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return show(self.graph, self.names, self.adjoints, self.sources)

    def __repr__(self) -> str:
        return show(self.graph, self.names, self.adjoints, self.sources, LINES)

    def _repr_svg_(self) -> str:
        return draw(self.graph, self.names, self.adjoints, self.sources)


def draw(
    graph: Graph,
    names: Mapping[Node, str] | None = None,
    adjoints: Mapping[Node, Node | None] | None = None,
    sources: Mapping[Node, str] | None = None,
) -> str:
    """The SVG of a graph; `show.show` describes the parameters.

    >>> from dynagrad.ir import variable
    >>> x = variable("x")
    >>> draw(Graph((x,), (x * x,)))[:38]
    '<svg xmlns="http://www.w3.org/2000/svg'
    """
    blocks = series_of(graph, names, adjoints, sources)
    room, pictures = LARGEST, list[_Picture]()
    for block in reversed(blocks):  # the graph itself comes first
        if room <= 0:
            pictures.append(_note(f"{counted(len(blocks) - len(pictures), 'more function')}, not drawn"))
            break
        block, left_out = _bounded(block, room)
        room -= _count(block, None)
        title = f"{block.title}({', '.join(v.name for v in block.inputs)})" if block.title else ""
        pictures.append(_panel(block, title))
        if left_out:
            pictures.insert(0, _note(left_out))
    return _document(_stacked(pictures))


# -- size limits -------------------------------------------------------------------------------------------------------


def _count(block: LetSeries, depth: int | None) -> int:
    """The number of lines, down to a nesting depth."""
    if depth is not None and depth < 0:
        return 0
    below = None if depth is None else depth - 1
    return len(block.inputs) + sum(1 + sum(_count(b, below) for b in line.blocks) for line in block.lines)


def _depth(block: LetSeries) -> int:
    return 1 + max((_depth(b) for line in block.lines for b in line.blocks), default=-1)


def _bounded(block: LetSeries, room: int) -> tuple[LetSeries, str]:
    """The block with at most `room` lines, and a note on what was left out."""
    if _count(block, None) <= room:
        return block, ""
    total = _count(block, None)
    deep = next((d for d in range(_depth(block), -1, -1) if _count(block, d) <= room), 0)
    lines = tuple(_closed(line, deep) for line in block.lines)
    inputs = block.inputs[: room // 3]
    room -= len(inputs) + 1
    if len(lines) > room:
        half = room // 2
        first, rest = lines[:half], lines[len(lines) - half :]
        gap = Line(
            (Value(_GAP_NAME, ""),), f"{counted(len(lines) - 2 * half, 'more value')}", (first[-1].results[0].name,)
        )
        left = {v.name for line in lines[half : len(lines) - half] for v in line.results}
        lines = (*first, gap, *(replace(i, uses=_without(i.uses, left)) for i in rest))
    smaller = replace(block, lines=lines, inputs=inputs, starts=block.starts[: len(inputs)])
    drawn = _count(smaller, None)
    return smaller, f"{drawn} of {total:,} values are drawn: the graph is too large for a picture; its text shows all"


_GAP_NAME = "…"


def _without(names: Sequence[str], left: Collection[str]) -> tuple[str, ...]:
    """Names, with one name in place of all that were left out."""
    return tuple(dict.fromkeys(_GAP_NAME if name in left else name for name in names))


def _closed(line: Line, depth: int) -> Line:
    """The line with its blocks collapsed below a depth."""
    if depth <= 0 and line.blocks:
        inside = sum(_count(b, None) for b in line.blocks)
        return replace(line, blocks=(), text=f"{line.text}: {counted(inside, 'value')} inside")
    blocks = tuple(replace(b, lines=tuple(_closed(i, depth - 1) for i in b.lines)) for b in line.blocks)
    return replace(line, blocks=blocks)


# -- pictures ----------------------------------------------------------------------------------------------------------


@dataclass
class _Picture:
    """SVG elements whose upper left corner is at the origin, and their size."""

    width: float
    height: float
    elements: list[str]

    def at(self, x: float, y: float) -> str:
        return f'<g transform="translate({x:.1f},{y:.1f})">{"".join(self.elements)}</g>'


def _text(x: float, y: float, text: str, faint: bool = False) -> str:
    opacity = ' fill-opacity="0.6"' if faint else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{opacity}>{escape(text, quote=False)}</text>'


def _cut(text: str, length: int = WIDEST) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _wide(text: str) -> float:
    return len(text) * _LETTER


def _note(text: str) -> _Picture:
    return _Picture(_wide(text), _HEIGHT + 4, [_text(0, _HEIGHT - 3, text, faint=True)])


def _stacked(pictures: Sequence[_Picture]) -> _Picture:
    """Pictures in a column."""
    y, elements = 0.0, []
    for picture in pictures:
        elements.append(picture.at(0, y))
        y += picture.height + _GAP
    return _Picture(max(p.width for p in pictures), y - _GAP, elements)


def _document(picture: _Picture) -> str:
    width, height = picture.width + 2 * _PAD, picture.height + 2 * _PAD
    style = (
        "svg:root{color:#1f2328;background:#fff}"  # where the picture is a page, or an image on one
        "@media(prefers-color-scheme:dark){svg:root{color:#e6edf3;background:#0d1117}}"
    )
    arrow = (
        '<marker id="dg-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" '
        'orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" fill="context-stroke"/></marker>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" style="max-width:100%;height:auto" role="img" '
        'font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="11" fill="currentColor">'
        f"<style>{style}</style><defs>{arrow}</defs>{picture.at(_PAD, _PAD)}</svg>"
    )


def _box(width: float, height: float, colour: str, tip: str, kind: str = "value") -> str:
    """The frame of a value."""
    radius = 9 if kind == "input" else 3
    dashes = ' stroke-dasharray="3 2"' if kind == "outside" else ""
    return (
        f"<title>{escape(tip, quote=False)}</title>"
        f'<rect width="{width:.1f}" height="{height:.1f}" rx="{radius}" style="fill:{colour};stroke:{colour}" '
        f'fill-opacity="{0.04 if kind == "outside" else 0.1}" stroke-opacity="0.8"{dashes}/>'
    )


def _leaf(label: str, below: str, colour: str, tip: str, kind: str = "value") -> _Picture:
    """The box of a value: its text, and below it the type."""
    width = max(_wide(label), _wide(below)) + 2 * _PAD
    height = _HEIGHT * (2 if below else 1) + _PAD
    elements = [_box(width, height, colour, tip, kind), _text(_PAD, _HEIGHT, label)]
    if below:
        elements.append(_text(_PAD, 2 * _HEIGHT, below, faint=True))
    return _Picture(width, height, elements)


def _of_line(line: Line, back: bool) -> _Picture:
    """The box of a line, with its subgraphs side by side."""
    colour = _ADJOINT if back else _VALUE
    label = f"{', '.join(v.name for v in line.results)} = {line.text}"
    tip = "\n".join([*map(str, line.results), label, *([line.note] if line.note else [])])
    types = ", ".join(v.type for v in line.results)
    below = "  ".join(part for part in (types, line.note) if part)
    if not line.blocks:
        return _leaf(_cut(label), _cut(below), colour, tip)
    panels = [_panel(block, block.title if len(line.blocks) > 1 else "") for block in line.blocks]
    inner = sum(p.width for p in panels) + _GAP * (len(panels) - 1)
    length = max(WIDEST, int(inner / _LETTER))
    head, foot = _cut(label, length), _cut(below, length)
    width = max(inner, _wide(head), _wide(foot)) + 2 * _PAD
    top = 2 * _HEIGHT + _PAD
    height = top + max(p.height for p in panels) + _PAD
    elements = [_box(width, height, colour, tip), _text(_PAD, _HEIGHT, head), _text(_PAD, 2 * _HEIGHT, foot, True)]
    x = _PAD
    for panel in panels:
        elements.append(panel.at(x, top))
        x += panel.width + _GAP
    return _Picture(width, height, elements)


def _panel(block: LetSeries, title: str) -> _Picture:
    """A let-series: its title, its values in rows, and its results."""
    head = _cut(title)
    foot = _cut(f"{block.last} {', '.join(block.ends)}".strip())
    inner = _rows(block)
    top = _HEIGHT + 2 if head else 0.0
    elements = [_text(0, _HEIGHT - 4, head, faint=True)] if head else []
    elements += [inner.at(0, top), _text(0, top + inner.height + _HEIGHT, foot)]
    return _Picture(max(inner.width, _wide(head), _wide(foot)), top + inner.height + _HEIGHT + 4, elements)


# -- rows --------------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Item:
    """An item of a layer: a value with its adjoints beside it; or, without pictures, a point where an arrow crosses."""

    pictures: list[_Picture] = field(default_factory=list)
    row: int = 0
    x: float = 0.0  # of the middle
    up: list[_Item] = field(default_factory=list)  # neighbours in the rows above and below
    down: list[_Item] = field(default_factory=list)

    @property
    def width(self) -> float:
        return sum(p.width for p in self.pictures) + _PAD * (len(self.pictures) - 1) if self.pictures else 4.0

    @property
    def height(self) -> float:
        return max((p.height for p in self.pictures), default=0.0)

    def place(self, index: int) -> tuple[float, float]:
        """The left and right edge of one of its pictures."""
        x = self.x - self.width / 2 + sum(p.width + _PAD for p in self.pictures[:index])
        return x, x + self.pictures[index].width


@dataclass(frozen=True)
class _Arrow:
    start: tuple[_Item, int]
    end: tuple[_Item, int]
    adjoint: bool
    through: tuple[_Item, ...] = ()


def _rows(block: LetSeries) -> _Picture:
    """The layout of a block's values."""
    items, arrows, above = _items(block)
    if not items:
        return _Picture(0.0, 0.0, [])
    rows = _layered(items, above)
    arrows = [a for a in (_routed(a, rows) for a in arrows) if a is not None]
    _ordered(rows)
    _placed(rows)
    left = min(i.x - i.width / 2 for row in rows for i in row)
    right = max(i.x + i.width / 2 for row in rows for i in row)
    for row in rows:
        for item in row:
            item.x -= left
    tops, y = [], 0.0
    for row in rows:
        tops.append(y)
        y += max(item.height for item in row) + _RISE
    elements = [_drawn(arrow, rows, tops) for arrow in arrows]
    for row in rows:
        for item in row:
            for index, picture in enumerate(item.pictures):
                elements.append(picture.at(item.place(index)[0], tops[item.row]))
    return _Picture(right - left, y - _RISE, elements)


def _items(block: LetSeries) -> tuple[list[_Item], list[_Arrow], dict[_Item, list[_Item]]]:
    """The items of a block, the arrows between them, and the items that should be above each."""
    items: list[_Item] = []
    at: dict[str, tuple[_Item, int]] = {}
    for value, start in zip(block.inputs, block.starts, strict=True):
        label = _cut(f"{value.name} = {start}" if start else value.name)
        items.append(_Item([_leaf(label, value.type, _VALUE, str(value), "input")]))
        at[value.name] = (items[-1], 0)
    own = {v.name for line in block.lines for v in line.results}
    outside = dict.fromkeys(n for line in block.lines for n in line.uses if n not in own and n not in at)
    if block.title:  # at the top level, names without a line are those left out
        for name in outside:
            items.append(_Item([_leaf(_cut(name), "", _VALUE, name, "outside")]))
            at[name] = (items[-1], 0)
    where: list[tuple[Line, tuple[_Item, int], bool]] = []
    backward: set[str] = set()
    for line in block.lines:
        back = bool(line.adjoint_of or backward)  # the backward pass begins with the first adjoint
        picture = _of_line(line, back)
        beside = None if line.blocks else next((at[v] for v in line.adjoint_of if v in at), None)
        if beside is not None:
            beside[0].pictures.append(picture)
            place = (beside[0], len(beside[0].pictures) - 1)
        else:
            items.append(_Item([picture]))
            place = (items[-1], 0)
        where.append((line, place, back))
        at.update((v.name, place) for v in line.results)
        if back:
            backward.update(v.name for v in line.results)
    above: dict[_Item, list[_Item]] = {item: [] for item in items}
    arrows: dict[tuple[_Item, int, _Item, int], _Arrow] = {}
    for line, place, back in where:
        for name in line.uses:
            source = at.get(name)
            if source is None or source[0] is place[0]:
                continue
            arrows[*source, *place] = _Arrow(source, place, name in backward)
            if line.blocks or not back:  # a loop of the backward pass is too large to stand beside a value
                above[place[0]].append(source[0])
            elif name in backward:  # the backward pass goes up
                above[source[0]].append(place[0])
    return items, list(arrows.values()), above


def _layered(items: Sequence[_Item], above: Mapping[_Item, list[_Item]]) -> list[list[_Item]]:
    """The layers, by the longest path to each item; cycles are cut, and long layers split."""
    done: set[_Item] = set()
    for first in items:
        stack, open_ = [(first, iter(above[first]))], {first}
        while stack:
            item, left = stack[-1]
            if item in done:
                stack.pop()
                continue
            waiting = next((a for a in left if a not in done and a not in open_), None)
            if waiting is not None:
                open_.add(waiting)
                stack.append((waiting, iter(above[waiting])))
                continue
            item.row = max((a.row + 1 for a in above[item] if a in done), default=0)
            done.add(item)
            stack.pop()
    rows: list[list[_Item]] = [[] for _ in range(1 + max(item.row for item in items))]
    for item in items:
        rows[item.row].append(item)
    split = [row[i : i + ROW] for row in rows if row for i in range(0, len(row), ROW)]
    for number, row in enumerate(split):
        for item in row:
            item.row = number
    return split


def _routed(arrow: _Arrow, rows: list[list[_Item]]) -> _Arrow | None:
    """The arrow with a dummy item in each row that it crosses; None where it crosses too many."""
    (start, _), (end, _) = arrow.start, arrow.end
    step = 1 if end.row >= start.row else -1
    if abs(end.row - start.row) > REACH:
        return None
    through = [_Item(row=r) for r in range(start.row + step, end.row, step)]
    for item in through:
        rows[item.row].append(item)
    chain = [start, *through, end]
    if start.row != end.row:
        for a, b in itertools.pairwise(chain):
            upper, lower = (a, b) if step > 0 else (b, a)
            upper.down.append(lower)
            lower.up.append(upper)
    return replace(arrow, through=tuple(through))


def _ordered(rows: list[list[_Item]]) -> None:
    """Reduces crossings: orders each row by the barycentres of its neighbours, in sweeps down and up."""
    for row in rows:
        for place, item in enumerate(row):
            item.x = float(place)
    for _ in range(4):
        for down in (True, False):
            for row in rows if down else reversed(rows):
                middle = {i: _mean([n.x for n in (i.up if down else i.down)], i.x) for i in row}
                row.sort(key=middle.__getitem__)
                for place, item in enumerate(row):
                    item.x = float(place)


def _placed(rows: list[list[_Item]]) -> None:
    """Assigns coordinates: as close to those of the neighbours as the order in each row allows."""
    for row in rows:
        x = 0.0
        for item in row:
            item.x = x + item.width / 2
            x += item.width + _GAP
    for sweep in range(6):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wanted = [_mean([n.x for n in (*i.up, *i.down)], i.x) for i in row]
            offsets = [0.0]
            for a, b in itertools.pairwise(row):
                offsets.append(offsets[-1] + (a.width + b.width) / 2 + _GAP)
            level = _rising([w - o for w, o in zip(wanted, offsets, strict=True)])
            for item, base, offset in zip(row, level, offsets, strict=True):
                item.x = base + offset


def _mean(numbers: Sequence[float], otherwise: float) -> float:
    return sum(numbers) / len(numbers) if numbers else otherwise


def _rising(wanted: Sequence[float]) -> list[float]:
    """Isotonic regression: the closest non-decreasing numbers by least squares, by pooling adjacent violators."""
    pools: list[tuple[float, int]] = []  # sum and count
    for w in wanted:
        total, count = w, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            before = pools.pop()
            total, count = total + before[0], count + before[1]
        pools.append((total, count))
    return [total / count for total, count in pools for _ in range(count)]


def _drawn(arrow: _Arrow, rows: Sequence[Sequence[_Item]], tops: Sequence[float]) -> str:
    """The curve of an arrow, through its dummy items."""
    (start, i), (end, j) = arrow.start, arrow.end
    (a, b), (c, d) = start.place(i), end.place(j)
    x0, x1 = (a + b) / 2, (c + d) / 2
    top0, top1 = tops[start.row], tops[end.row]
    bottom0, bottom1 = top0 + start.pictures[i].height, top1 + end.pictures[j].height
    if start.row == end.row:
        path = _sideways((a, b), (c, d), (top0, bottom0), (top1, bottom1), rows[start.row])
    else:
        down = end.row > start.row
        path = f"M{x0:.1f} {bottom0 if down else top0:.1f}"
        at = (x0, bottom0 if down else top0)
        for item in arrow.through:
            upper, lower = tops[item.row], tops[item.row] + max(i.height for i in rows[item.row])
            path += f"{_curve(at, (item.x, upper if down else lower))}V{lower if down else upper:.1f}"
            at = (item.x, lower if down else upper)
        path += _curve(at, (x1, top1 if down else bottom1))
    colour = _ADJOINT if arrow.adjoint else "currentColor"
    return f'<path d="{path}" fill="none" style="stroke:{colour}" stroke-opacity="0.5" marker-end="{_MARK}"/>'


def _sideways(
    start: tuple[float, float],
    end: tuple[float, float],
    tall: tuple[float, float],
    high: tuple[float, float],
    row: Sequence[_Item],
) -> str:
    """The path of an arrow within a row: straight to the neighbour, otherwise below those between."""
    right = end[0] > start[0]
    p, q = (start[1], end[0]) if right else (start[0], end[1])
    if not any(min(p, q) < item.x < max(p, q) for item in row):
        y = min(tall[1], high[1]) / 2 + tall[0] / 2
        return f"M{p:.1f} {y:.1f}H{q:.1f}"
    x0, x1, low = sum(start) / 2, sum(end) / 2, max(tall[1], high[1]) + _RISE / 2
    return f"M{x0:.1f} {tall[1]:.1f}C{x0:.1f} {low:.1f} {x1:.1f} {low:.1f} {x1:.1f} {high[1]:.1f}"


_MARK = "url(#dg-arrow)"


def _curve(p: tuple[float, float], q: tuple[float, float]) -> str:
    middle = (p[1] + q[1]) / 2
    return f"C{p[0]:.1f} {middle:.1f} {q[0]:.1f} {middle:.1f} {q[0]:.1f} {q[1]:.1f}"
