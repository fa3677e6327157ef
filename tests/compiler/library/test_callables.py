"""Higher-order functions of numpy, and `ufunc.at`, compiled; and the functions of `eager/numpy/numpy_cases.py` on whole
numbers.

Five functions are compiled, in five seconds; the rest is evaluated as graphs.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
import dynagrad.numpy as dnp
from compiler.specialising import agrees, agrees_with_gradient, through_graph
from dynagrad.errors import LiftError

x = np.array([1.5, -0.5, 2.0, 0.25, -3.0])
rows = np.arange(6.0).reshape(2, 3) - 2.2
PLACES = np.array([0, 3, 0, 4, 0, 3])
VALUES = np.array([2.0, 0.6, -1.0, 3.0, 0.7, 0.2])


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "maximum", "minimum", "hypot", "logaddexp"])
def test_at_changes_places_each_time_that_they_occur(name: str) -> None:
    ufunc = getattr(np, name)

    def f(x: Any) -> Any:
        a = x * 2.0
        ufunc.at(a, PLACES, VALUES)
        ufunc.at(a, (slice(1, 3),), 2.0 * x[0])
        ufunc.at(a, [1, 1], x[:2] + 3.0)
        return np.sum(a * np.arange(1.0, 6.0))

    agrees_with_gradient(f, x)


def test_at_of_one_argument_of_two_axes_of_numbers_and_of_a_place_that_is_not_known() -> None:
    def f(x: Any) -> Any:
        a, b = x * 1.0, np.outer(x, x)
        np.negative.at(a, [0, 1, 0])
        np.multiply.at(b, ([0, 1, 0], [1, 1, 1]), x[:3])
        np.multiply.at(a, np.argmax(x), 3.0)
        n = np.zeros(3, int)
        np.add.at(n, [0, 2, 0], 1)
        np.maximum.at(n, [1], 5)
        return a, b, n, np.sum(a) + np.sum(b)

    agrees(f, x)
    agrees_with_gradient(lambda x: f(x)[3], x)
    with pytest.raises(LiftError, match=r"np\.multiply\.at with indices that are known only as the function runs"):
        through_graph(lambda x: np.multiply.at(x * 1.0, np.argsort(x), 2.0), x)
    with pytest.raises(LiftError, match="occurs over 256 times"):
        through_graph(lambda x: np.multiply.at(x * 1.0, np.zeros(300, int), 2.0), x)


def test_functions_of_parts_are_loops() -> None:
    wide = np.linspace(-1.0, 1.0, 60).reshape(20, 3)

    def f(x: Any) -> Any:
        return np.sum(np.apply_along_axis(lambda r, k: np.cumsum(r * r) * k, 1, x, 2.0) ** 2)

    assert dg.compile(dg.grad(f))(wide) == pytest.approx(dg.grad(f)(wide))

    def of_any_kind(x: Any) -> Any:
        flags = np.apply_along_axis(lambda r: r[0] > r[1], 0, x)
        places = np.apply_along_axis(np.argmax, 1, x)
        return flags, places, np.apply_along_axis(lambda r: [r[0], 2.0 * r[1]], 0, x)

    agrees(of_any_kind, rows)
    with pytest.raises(LiftError, match="iteration dimensions are 0"):
        through_graph(lambda x: np.apply_along_axis(np.sum, 0, x[:, :0]), rows)
    with pytest.raises(LiftError, match="should return numbers or arrays"):
        through_graph(lambda x: np.apply_along_axis(lambda r: "text", 0, x), rows)


def branching(a: float, b: float) -> float:
    return a * b if a > 0 else a - b


made = np.vectorize(branching)
ours = dnp.vectorize(branching)


def test_vectorized_functions() -> None:
    agrees_with_gradient(lambda x: np.sum(made(x, x[::-1]) ** 2), x)
    agrees_with_gradient(lambda x: np.sum(ours(x[:, None], rows[0])), x)
    agrees_with_gradient(lambda x: np.vectorize(lambda a: np.sin(a) * x[0])(x)[2], x)
    agrees(lambda x: np.vectorize(lambda a: (a > 0, int(a)))(x), x)
    agrees(lambda x: made(x[0], 2.0), x)
    many = np.linspace(-1.0, 1.0, 50)
    assert dg.compile(dg.grad(lambda x: np.sum(made(x, 2.0))))(many) == pytest.approx(np.where(many > 0, 2.0, 1.0))
    with pytest.raises(LiftError, match="signature="):
        through_graph(lambda x: np.vectorize(np.dot, signature="(n),(n)->()")(x, x), x)


def test_piecewise_functions() -> None:
    def pieces(x: Any) -> Any:
        y = np.piecewise(x, [x < -1.0, x > 1.0], [lambda t: t * t, 5.0, np.exp])
        z = np.piecewise(x, np.array([x < 0.0, x >= 0.0]), [lambda t, k: t * k, lambda t, k: t**k], 3.0)
        return y, z, np.piecewise(x[0], [x[0] > 9.0], [1.0, lambda t: t * t])

    agrees(pieces, x)
    agrees_with_gradient(lambda x: sum(np.sum(part) for part in pieces(x)), x)
    with pytest.raises(LiftError, match="for 2 conditions there are as many functions"):
        through_graph(lambda x: np.piecewise(x, [x > 0, x < 0], [np.sin]), x)


def test_whole_numbers_and_truth_values_keep_their_kind() -> None:
    def f(n: Any, x: Any) -> Any:
        k = np.arange(5) + n
        kept = np.insert(k, 1, n), np.block([k, k]), np.hsplit(k, [2])[0], np.partition(k, 2)[2], np.convolve(k, k)
        moved = (
            np.rollaxis(k.reshape(1, 5), 1),
            np.lib.stride_tricks.sliding_window_view(k, 2),
            np.choose(k, [k, -k], mode="wrap"),
        )
        real = np.linspace(n, 2 * n, 3), np.median(k), np.quantile(k, 0.3), np.cov(k), np.gradient(k)
        steps = np.digitize(x, [0.0, 1.0]), np.digitize(x, [1.0, 0.0]), np.histogram(x, 3)[0], np.digitize(x[0], x[:1])
        return kept, moved, real, steps, np.bitwise_or.reduce(k), np.logical_and.reduce(k > 2)

    agrees(lambda x: f(3, x), x)
    agrees(lambda x: f(int(x[2]), x), x)


def test_what_must_be_known_says_so() -> None:
    for f, says in (
        (
            lambda n, x: np.linspace(0.0, x[0], n),
            "num must be known",
        ),
        (lambda n, x: np.vander(x, n), "N must be known"),
        (lambda n, x: np.insert(x, n, 1.0), "obj must be known"),
        (lambda n, x: np.partition(x, n), "np.partition: kth is a whole number"),
        (lambda n, x: np.polyfit(x, x, n), "deg must be known"),
        (lambda n, x: np.lib.stride_tricks.sliding_window_view(x, n), "window_shape is a whole number"),
        (lambda n, x: np.rollaxis(x[None], 1, n), "start must be known"),
        (lambda n, x: np.add.reduceat(x, [0, n]), "np.add.reduceat: an index is a whole number"),
        (lambda n, x: np.apply_along_axis(np.sum, n, x), "axis must be known"),
        (lambda n, x: np.histogram(x, "auto")[0], "is not known when it is compiled"),
        (lambda n, x: np.choose(n, [x, x]), "mode='wrap' or mode='clip'"),
    ):
        with pytest.raises(LiftError) as caught:
            through_graph(lambda x, f=f: f(int(x[2]), x), x)
        assert says in str(caught.value), str(caught.value)


def test_an_element_is_left_out_at_a_place_that_the_graph_knows() -> None:
    def f(a: Any) -> Any:
        i, wide = np.argmin(a), np.outer(a, a[:3])
        first = np.delete(a, i) * a[i]
        others = np.delete(wide, i - 5, axis=0), np.delete(wide, np.argmax(a[:3]), 1), np.delete(wide, 3 * i)
        return first, *others, np.delete(arr=np.arange(3) * 2, obj=np.argmax(a)), np.delete(a[:1], np.argmin(a[:1]))

    agrees(f, x)
    assert through_graph(f, x)[4].dtype == np.int64
    agrees_with_gradient(lambda a: sum(np.sum(part * part[0]) for part in f(a)[:4]), x)
    g = dg.compile(lambda a: np.delete(a, int(a[0]), axis=-1))
    for i in (-3.0, -1.0, 0.0, 2.0):
        given = np.array([i, 5.0, 7.0])
        assert np.array_equal(g(given), np.delete(given, int(i)))
    for i in (-4.0, 3.0):
        with pytest.raises(
            dg.RunError, match=rf"np\.delete: the index {int(i)} is out of bounds for axis 0 with size 3"
        ):
            g(np.array([i, 5.0, 7.0]))
    with pytest.raises(dg.RunError, match="out of bounds for axis 0 with size 0"):
        through_graph(lambda a: np.delete(a[:0], np.argmin(a)), x)
    with pytest.raises(LiftError, match=r"np\.delete: obj must be known"):
        through_graph(lambda a: np.delete(a, np.argsort(a)[:2]), x)


def test_arrays_of_items_and_of_functions_of_places() -> None:
    def f(a: Any) -> Any:
        squares = np.fromiter((v * v for v in a), float)
        some = np.fromiter([a[0], 2.0, a[1]], dtype=np.float64, count=2), np.fromiter(itertools.count(), int, 3)
        table = np.fromfunction(lambda i, j: a[0] * i + a[1] * j, (2, 3))
        equal = np.fromfunction(lambda i, j, by: by * (i == j), (2, 2), dtype=int, by=a[2])
        return (
            squares,
            *some,
            table,
            equal,
            dnp.fromfunction(np.add, (2, 2)),
            np.fromfunction(lambda i: a[i], (3,), dtype=int),
        )

    agrees(f, x)
    agrees_with_gradient(lambda a: sum(np.sum(part * part) for part in f(a)), x)
    with pytest.raises(LiftError, match="count=7 is more than 5 items"):
        through_graph(lambda a: np.fromiter(a, float, 7), x)
    with pytest.raises(LiftError, match="count must be known"):
        through_graph(lambda a: np.fromiter(a, float, np.argmin(a)), x)
    with pytest.raises(LiftError, match="too many for a structure"):
        through_graph(lambda a: np.fromiter(itertools.repeat(a[0]), float), x)


def test_classes_of_numpy_of_what_is_known() -> None:
    def f(a: Any) -> Any:
        p = np.poly1d([1.0, 2.0, 3.0])
        places = [i[0] + 2 * i[1] for i in np.ndindex(2, 3)]
        return p(a[0]), p(2.0), [a[0] * k for k in places], sum([a[i] * 2.0 for i in np.ndindex(a.shape)])

    agrees(f, x)
    with pytest.raises(LiftError, match=r"np\.poly1d has no derivative here: .* write np\.polyval"):
        through_graph(lambda a: dnp.poly1d([a[0], 1.0])(2.0), x)
    with pytest.raises(LiftError, match=r"np\.ndenumerate has no derivative here: .* np\.ndindex"):
        through_graph(lambda a: sum(v for _, v in np.ndenumerate(a)), x)
