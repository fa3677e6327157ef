"""Lists, dicts, tuples and objects in compiled functions: mutation and aliasing as in Python."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math
from typing import Any, NamedTuple

import numpy as np
import pytest

from compiler.specialising import agrees, agrees_with_gradient


@dataclasses.dataclass
class Point:
    x: float
    y: float = 1.0
    tags: list[Any] = dataclasses.field(default_factory=list)

    def norm(self) -> Any:
        return math.sqrt(self.x**2 + self.y**2)

    def __add__(self, other: Any) -> Any:
        return Point(self.x + other.x, self.y + other.y)


@dataclasses.dataclass(frozen=True)
class Pair:
    first: Any
    second: int = 3

    def __post_init__(self) -> None:
        object.__setattr__(self, "second", self.second + 1)


class Both(NamedTuple):
    a: Any
    b: Any = 2.0

    @property
    def total(self) -> Any:
        return self.a + self.b

    def times(self, k: Any) -> Any:
        return self._replace(a=self.a * k)


class Counter:
    step = 2

    def __init__(self, start: Any) -> None:
        self.value = start

    def count(self, by: Any) -> None:
        self.value += by * self.step

    def __len__(self) -> int:
        return 3


def test_names_of_one_list_see_each_other() -> None:
    def f(x: Any) -> Any:
        xs = [x, x * 2]
        ys = xs
        ys.append(3.0)
        zs = [[0.0] * 2 for _ in range(3)]
        zs[1][0] = x
        zs[1][1] -= x
        if x > 1:
            xs[0] = 7.0
        while xs[1] < 100:
            xs[1] *= 2
        xs += [x]
        last = xs.pop()
        return xs, zs, len(xs), last, ys is xs, xs[::2], xs + [1.0], xs.copy()[1]

    agrees(f, 2.0)
    agrees(f, 0.5)


def test_dicts() -> None:
    def f(x: Any) -> Any:
        d: dict[Any, Any] = {"a": x, 1: 2.0}
        d["b"] = d["a"] * 2
        d["a"] += 1
        e = {**d, "c": d.get("z", 5.0)}
        e.update(q=x)
        found = [k for k in e], list(e.values()), {i: x * i for i in range(3)}, "a" in e, len(e)
        return found, e, dict([("u", x)]), d.pop("a")

    agrees(f, 2.0)


def test_changes_of_dicts_and_lists() -> None:
    def f(x: Any) -> Any:
        d = {"a": x}
        first = d.setdefault("b", x * 2), d.setdefault("a", 3.0)
        e = d | {"c": 1.0}
        same = d
        same |= {"q": x}
        del e["a"]
        xs = [x, 1.0, 2.0, x, 3.0]
        del xs[1], xs[2:]
        return first, d, e, xs, [1, 2, 1].count(1), [x, 1.3, 2.0].count(x), (x, x).count(2.0)

    agrees(f, 1.3)
    agrees(f, 2.0)


def test_items_chosen_by_a_truth_value_or_a_key() -> None:
    def f(x: Any) -> Any:
        a = [x, 20.0][x > 1] + (1.0, x)[bool(x > 2)]
        b = max([x, 2.0, -3.0], key=lambda v: v * v) + min((x, 1.5), (2.0, x), key=lambda p: p[0] - p[1])[0]
        c = sorted([x, 2.0, 1.0]), sorted([x, 2.0, 1.0], reverse=True)
        weights = zip(c[0], c[1], strict=True)
        return a * b + sum(i * u - v for i, (u, v) in enumerate(weights))

    for x in (0.5, 1.7, 2.6, -4.0):
        agrees_with_gradient(f, x)


def test_more_of_itertools() -> None:
    def f(x: Any) -> Any:
        a = list(itertools.accumulate([x, 2.0, x])), list(itertools.accumulate([x, 2.0], lambda p, q: p * q))
        return sum(a[0]) * a[1][1] + sum(itertools.repeat(x, 3)) + sum(itertools.islice([x, x * x, 1.0], 1, 3))

    agrees_with_gradient(f, 1.5)


def test_dataclasses() -> None:
    def f(x: Any) -> Any:
        p = Point(x)
        q = Pair(p)
        p.y += x
        for _ in range(20):
            p.x = p.x * 0.9 + p.y * 0.1
        r = dataclasses.replace(p, y=4.0)
        if x > 0:
            p.x = 0.0
        p.tags.append(x)
        return p.norm(), q, r, (p + r).norm(), q.second

    agrees(f, 2.0)
    agrees(f, -3.0)


def test_structures_as_arguments() -> None:
    def f(p: Any, both: Any, d: Any, xs: Any) -> Any:
        return Point(p.x * both.a, p.y), both.times(2.0), d["k"] + xs[0], p.norm()

    agrees(f, Point(1.0, 2.0), Both(3.0), {"k": 1.0}, [np.ones(2), 2])


def test_named_tuples_and_objects_of_other_classes() -> None:
    def f(x: Any) -> Any:
        v = Both(x).times(3.0)
        c = Counter(x)
        for _ in range(18):
            c.value = c.value * 0.9 + v.total
            c.count(1.0)
        return v.a + v.total + c.value + len(c) + getattr(v, "b") + hasattr(c, "nothing")  # noqa: B009

    agrees_with_gradient(f, 0.7)


def test_comprehensions_and_what_takes_them() -> None:
    def f(x: Any) -> Any:
        return (
            sum(x * i for i in range(4)),
            [(i, j) for i in range(3) for j in range(i) if i + j > 1],
            any(x > i for i in range(3)),
            all(x > i for i in (0, 0.1)),
            tuple(map(lambda a: a * 2, (x, x))),
            list(filter(lambda i: i > 1, range(4))),
            list(reversed([x, 1.0])),
            sorted([3, 1, 2], key=lambda i: -i),
            [*zip((1, 2), (x, x), strict=True)],
            max([x, 1.0, x * x]),
            min(x, 2, 3.0),
            list(itertools.product((1, 2), (x,))),
            {1, 2} == {2, 1},
            [1, x][1] == x,
        )

    agrees(f, 2.0)
    agrees(f, 0.05)


@pytest.mark.parametrize("deep", [False, True])
def test_copies(deep: bool) -> None:
    def f(x: Any) -> Any:
        p = Point(x, tags=[x])
        q = (copy.deepcopy if deep else copy.copy)(p)
        p.x = 5.0
        p.tags.append(1.0)
        return q.x, len(q.tags)

    agrees(f, 2.0)


def test_lists_are_looked_up_at_a_place_that_only_the_run_knows() -> None:
    def f(x: Any) -> Any:
        xs, s = [x, 2.0, x * x], 0.0
        for i in range(20):
            s += xs[i % 3] * i
        return s

    agrees_with_gradient(f, 1.5)


def test_fields_and_keys_may_be_named_as_what_takes_them() -> None:
    def f(x: Any) -> Any:
        pair, d = Named(x, 1), {"a": x}
        pair = pair._replace(x=x * 2.0)
        d.update(x=x * 3.0, s=1.0)
        return pair.x * d["x"], pair, d

    agrees(f, 1.5)


class Named(NamedTuple):
    x: float
    s: int
