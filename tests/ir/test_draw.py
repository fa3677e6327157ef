"""Pictures of graphs: well-formed, complete, without overlaps, bounded in size."""

import re
from xml.etree import ElementTree

import pytest

from dynagrad.autodiff.derive import generate_adjoints
from dynagrad.ir import exp, sin, variable
from dynagrad.ir.builders import call, cond, define, merge, repeat, while_
from dynagrad.ir.control import Graph, GraphFunction
from dynagrad.ir.draw import LARGEST, Shown, draw
from dynagrad.ir.node import fresh, whole
from dynagrad.ir.types import arrays, integer, real

SVG = "{http://www.w3.org/2000/svg}"
x, y = variable("x"), variable("y")


def nested():
    def inner(i, s):
        [u] = repeat(i + 1, lambda j, t: [t * y + s], [s])
        return cond(u > 1.0, lambda: [sin(u)], lambda: [u + x])

    return while_(lambda s: s < 3.0, lambda s: [s + repeat(4, inner, [s])[0]], [x])[0]


def recursive():
    power = GraphFunction("power", (real, integer), (real,))
    define(power, lambda x, n: cond(n > 0, lambda: [x * call(power, x, n - 1)[0]], lambda: [1.0]))
    return call(power, x, whole(3))[0]


def gradient():
    t = exp(x * y) + x
    found = generate_adjoints([t], [1.0], [x, y, x * y, exp(x * y), t])
    return Graph((x, y), (t, found[x], found[y])), found


def gradient_of_a_loop():
    z = nested()
    found = generate_adjoints([z], [1.0], [x, y])
    return Graph((x, y), merge([z, *found.values()])), found


def long_chain(n):
    node = x
    for i in range(n):
        node = sin(node * y) + float(i)
    return node


PICTURES = {
    "a constant": (Graph((), (whole(3),)), {}),
    "nothing": (Graph((), ()), {}),
    "an input": (Graph((x,), (x,)), {}),
    "a sum": (Graph((x, y), (x * y + 2.0,)), {}),
    "nested": (Graph((x, y), (nested(),)), {}),
    "recursive": (Graph((x,), (recursive(),)), {}),
    "gradient": gradient(),
    "gradient of a loop": gradient_of_a_loop(),
    "large": (Graph((x, y), (long_chain(1000),)), {}),
    "many inputs": (Graph((), (sum(fresh() for _ in range(1000)),)), {}),
}


def boxes(root):
    """The frames with what encloses them: (path of groups, left, top, right, bottom)."""
    found = []

    def walk(element, left, top, path):
        place = re.fullmatch(r"translate\((.*),(.*)\)", element.get("transform", ""))
        if place:
            left, top = left + float(place[1]), top + float(place[2])
        for index, child in enumerate(element):
            if child.tag == f"{SVG}rect":
                w, h = float(child.get("width")), float(child.get("height"))
                found.append((path, left, top, left + w, top + h))
            walk(child, left, top, (*path, index))

    walk(root, 0.0, 0.0, ())
    return found


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_well_formed_and_nothing_overlaps(name):
    graph, adjoints = PICTURES[name]
    text = draw(graph, adjoints=adjoints)
    assert text == draw(graph, adjoints=adjoints)
    root = ElementTree.fromstring(text)
    width, height = float(root.get("width")), float(root.get("height"))
    found = boxes(root)
    for _, left, top, right, bottom in found:
        assert left >= 0.0 and right <= width and top >= 0.0 and bottom <= height
    for i, (path, left, top, right, bottom) in enumerate(found):
        for other, a, b, c, d in found[:i]:
            apart = right <= a + 0.2 or c <= left + 0.2 or bottom <= b + 0.2 or d <= top + 0.2
            inside = path[: len(other)] == other or other[: len(path)] == path
            assert apart or inside
    assert len(found) <= 2 * LARGEST
    assert len(text) < 600_000 and width < 20_000


def test_text_is_escaped():
    z = variable("<b>&") * fresh(arrays(real, (3,)))
    root = ElementTree.fromstring(draw(Graph((), (z,)), names={z: '"<script>"'}, sources={z: "a<b & c"}))
    words = [t.text for t in root.iter(f"{SVG}text")]
    assert '"<script>" = <b>& * x1' in words and "real[3]  a<b & c" in words
    assert not list(root.iter(f"{SVG}script"))


def test_an_adjoint_stands_beside_its_value():
    graph, found = gradient()
    root = ElementTree.fromstring(draw(graph, adjoints=found))
    at = {}
    for group in root.iter(f"{SVG}g"):
        words = [t.text for t in group.findall(f"{SVG}text")]
        if words and group.find(f"{SVG}rect") is not None:
            place = re.fullmatch(r"translate\((.*),(.*)\)", group.get("transform"))
            at[words[0].split(" = ")[0]] = float(place[1]), float(place[2]), group.find(f"{SVG}rect").get("style")
    for value in ("x", "y", "t1", "t2", "t3"):
        left, top, style = at[value]
        beside, level, other = at[f"{value}_bar"]
        assert level == top and beside > left and other != style


def test_colours_are_those_of_the_page():
    text = draw(*PICTURES["gradient"][:1], adjoints=PICTURES["gradient"][1])
    assert "currentColor" in text and "var(--dg-adjoint," in text and "prefers-color-scheme:dark" in text
    outside = re.sub(r"<style>.*?</style>", "", text)
    assert set(re.findall(r"#[0-9a-f]{6}", outside)) == {"#3b7dd8", "#c8601a"}


def test_what_is_large_is_drawn_in_part_and_says_so():
    assert "of 3,002 values are drawn" in draw(*PICTURES["large"][:1])
    body = repeat(3, lambda i, s: [long_chain(400) * s], [x])[0]
    inner = repeat(3, lambda i, s: [s + _chain_of(s, 500)], [x])[0]
    text = draw(Graph((x, y), (inner + body,)))
    assert "values inside" in text and "are drawn" in text


def _chain_of(s, n):
    for i in range(n):
        s = sin(s) + float(i)
    return s


def test_a_notebook_shows_it():
    shown = Shown(Graph((x,), (x * x,)))
    assert repr(shown) == str(shown) == "(x : real)\nt1 : real = x * x\n-> t1"
    assert shown._repr_svg_().startswith("<svg ")
    large = Shown(Graph((x, y), (long_chain(1000),)))
    assert len(str(large).splitlines()) == 3002
    assert repr(large).splitlines()[-1] == "... and 2,002 more lines"
