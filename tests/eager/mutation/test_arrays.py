"""Arrays that are written to while a function is differentiated: values as in numpy, derivatives against differences.

Outside of a derivative `dynagrad.numpy` makes plain arrays, so numpy itself is the oracle of values. Programs by hand,
compiled too (two compilations), and 150 random ones. Costs about 15 s.
"""

from __future__ import annotations

import copy
import gc
import pickle
import warnings
import weakref

import numpy
import pytest

import dynagrad as dg
import dynagrad.numpy as np
from dynagrad.eager.mutation.arrays import MutableArray

X = numpy.array([1.3, -0.7, 0.4, 2.1])


def recurrence(x):
    a = np.zeros(12)
    a[0] = x[0]
    for i in range(1, 12):
        a[i] = np.sin(a[i - 1]) + x[1] * i
    return np.sum(a * a)


def rows(x):
    a = np.empty((3, 4))
    a[0] = x
    a[1] = a[0] * x[2]
    a[2] = a[0] + a[1]
    return np.sum(np.exp(0.1 * a)) + a[2, 3] * a[1, 1]


def in_place(x):
    a = np.ones((3, 4))
    a += x
    a[1] *= x
    a[:, 2] -= x[0] * x[1]
    a[0] /= 2.0 + x[3] ** 2
    a **= 2
    return np.sum(a[:2] * a[1:])


def views(x):
    a = np.zeros((4, 3))
    b = a.T
    b[1] = x
    c = a[1:3]
    c[0, 1] *= 3.0
    d = c.reshape(-1)
    d[4] += x[0] * x[1]
    a[3, :] = d[3:]
    return np.sum(a * np.arange(12.0).reshape(4, 3)) + np.sum(b[1] ** 2)


def overlap(x):
    a = np.zeros(6)
    a[:4] = x
    a[1:5] = a[0:4]
    a[[0, 5]] = a[[5, 0]]
    a[::-1][:2] += x[3]
    return np.sum(a * a * np.arange(1.0, 7.0))


def masks(x):
    a = np.zeros(4)
    a[...] = x * x
    a[x > 0.0] = x[1]
    a[np.array([False, True, False, True])] += np.array([x[0], 2.0])
    return np.sum(a**3)


def filled(x):
    a = np.full((2, 2), x[0])
    b = np.full_like(a, 2.0)
    b[0] = x[1:3]
    c = np.array([[x[0], 1.0], [x[1], x[2] * x[3]]])
    c[0, 1] = c[1, 0]
    return np.sum(a @ b @ c) + np.asarray([x[0], x[3]])[1] * np.ones_like(c)[0, 0]


def joined(x):
    return np.sum(np.r_[x[0], x, 2.0, x[1] * x[2]] ** 2) + np.sum(np.c_[x, x * x] * np.c_[[1.0, 2.0, 3.0, 4.0]])


def matrix(x):
    n = 4
    a = np.eye(n)
    for i in range(n):
        for j in range(n):
            a[i, j] += 0.1 * x[i] * x[j] ** 2
    a[0, 0], a[1, 1] = a[1, 1], a[0, 0]
    return np.linalg.det(a) + np.linalg.solve(a, x)[2]


def copies(x):
    y = x.copy()
    y[1] = 0.0
    z = y.copy()
    z[0] = x[2]
    return np.sum(y * x) + np.sum(z * y)


def overwritten(x):
    a = np.zeros(2)
    a[0] = x[0]
    a[1] = x[1] * a[0]
    a[0] = 5.0
    return np.sum(a) + a[0] * a[1]


def accumulated(x):
    a = np.zeros(3)
    np.add.at(a, np.array([0, 2, 0, 1]), x)
    np.subtract.at(a, np.array([1, 1]), x[:2])
    return np.sum(a**3)


def by_name(x):
    a = np.zeros(3)
    a.__setitem__(1, x[0] * x[1])
    return a.__getitem__(1) ** 2 + np.sum(a)


PROGRAMS = [
    recurrence,
    rows,
    in_place,
    views,
    overlap,
    masks,
    filled,
    joined,
    matrix,
    copies,
    overwritten,
    accumulated,
    by_name,
]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_value_is_numpys_and_derivatives_are_those_of_differences(f):
    value, _ = dg.value_and_grad(f)(X)
    assert numpy.isclose(value, f(X), rtol=1e-13)
    dg.check_derivatives(f, X)


def test_compiled_functions_know_the_names():
    def all_of_them(x):
        return [f(x) for f in PROGRAMS]

    wanted = [f(X) for f in PROGRAMS]
    assert numpy.allclose(dg.compile(all_of_them)(X), wanted, rtol=1e-12)

    def weighted(x):
        return sum(f(x) for f in PROGRAMS)

    assert numpy.allclose(dg.compile(dg.grad(weighted))(X), dg.grad(weighted)(X), rtol=1e-9)


class TestWrites:
    """What writes in place, uncompiled: functions, methods, `out=`."""

    def test_functions_that_write(self):
        def f(x):
            a = np.zeros((4, 4))
            np.fill_diagonal(a, x)
            np.copyto(a[0], x * x, where=np.array([False, True, True, False]))
            np.put(a, [5, 6], x[:2])
            np.place(a, a == 0.0, x[2:])
            np.putmask(a, a > 2.0, x[0] * x)
            np.put_along_axis(a, np.array([[0], [1], [2], [3]]), x[:, None] * 2.0, 1)
            np.multiply(a, x, out=a)
            np.multiply.at(a, (np.array([0, 0, 1]), np.array([1, 1, 2])), x[:3])
            np.cumsum(a, axis=0, out=a)
            return np.sum(a * np.arange(16.0).reshape(4, 4))

        assert numpy.isclose(dg.value_and_grad(f)(X)[0], f(X))
        dg.check_derivatives(f, X)

    def test_out_of_functions_of_the_argument(self):
        """The argument is asked before the array that is written to."""

        def f(x):
            a, b = np.zeros(4), np.zeros((4, 4))
            np.multiply(x, x, out=a)
            np.add(a, x, a)
            np.multiply.outer(x, a, out=b)
            np.exp(x, out=b[0])
            np.cumsum(x, out=b[1])
            x.clip(0.0, 1.0, out=b[:, 2])
            np.concatenate([x[:1], x[1:] * 2.0], out=b[3])
            return np.sum(b * np.arange(16.0).reshape(4, 4)) + np.max(x, out=a[0, ...]) * a[0]

        assert numpy.isclose(dg.value_and_grad(f)(X)[0], f(X))
        dg.check_derivatives(f, X)

    def test_nested_lists_of_numbers_are_written(self):
        def f(x):
            a = np.zeros((2, 2))
            a[:] = [[x[0], 1], [2, x[1]]]
            a *= ((1, x[2]), [x[3], 3.0])
            a[:, :1] -= [[x[0]], [x[1]]]
            return np.sum(a * a) + np.sum(a * [[x[0], 2], [0, 1]])

        assert numpy.isclose(dg.value_and_grad(f)(X)[0], f(X))
        dg.check_derivatives(f, X)

    def test_methods(self):
        def f(x):
            a = np.array(x[::-1])
            a.sort()
            b = np.zeros(4)
            b.fill(x[1])
            b.put([1, 2], x[2:])
            c = np.array([x, x * x])
            c.T.sort(axis=0)
            return np.sum(a * np.arange(4.0)) + np.sum(b * a) + c.flatten() @ np.arange(8.0) + np.sum(c.diagonal())

        assert numpy.isclose(dg.value_and_grad(f)(X)[0], f(X))
        dg.check_derivatives(f, X)

    def test_a_view_made_before_the_first_write_sees_it(self):
        def f(x):
            a = np.zeros((2, 3))
            row, corner, parts = a[1], a[:, 1:], np.split(a, 3, axis=1)
            a[1, 1] = x
            parts[2][0, 0] = x * x
            return row[1] * 2.0 + np.sum(corner * corner)

        assert dg.grad(f)(3.0) == 2.0 + 6.0 + 4.0 * 27.0

    def test_a_view_of_a_copied_number_is_written_through(self):
        def f(x):
            y = np.exp(x).copy().reshape(2, 2)
            first = y[0]
            first[1] = 0.0
            return np.sum(y)

        assert numpy.allclose(dg.grad(f)(X), numpy.exp(X) * [1.0, 0.0, 1.0, 1.0])

    def test_what_was_written_over_has_no_part_in_the_derivative(self):
        def f(x):
            a = np.zeros(3)
            a[:2] = np.sqrt(x)  # with an infinite slope at zero
            a[0] = 1.0
            return np.sum(a)

        assert dg.grad(f)(numpy.array([0.0, 4.0])).tolist() == [0.0, 0.25]

    def test_arrays_without_axes(self):
        def f(x):
            a = np.zeros(())
            a[()] = x * x
            b = np.array([x, 2.0 * x])
            c = b[1, ...]
            c += a
            return np.sum(b * a) + np.sin(a)  # (3 x + x**2) x**2 + sin x**2

        assert numpy.isclose(dg.value_and_grad(f)(1.3)[0], f(1.3))
        dg.check_derivatives(f, 1.3)

    def test_a_failed_write_changes_nothing(self):
        def f(x):
            a = np.zeros(3)
            a[1] = x
            with pytest.raises(ValueError, match="could not broadcast"):
                a[:2] = np.array([x, x, x])
            with pytest.raises(IndexError):
                a[7] = x
            return np.sum(a)

        assert dg.grad(f)(2.0) == 1.0

    def test_plain_array_into_which_a_number_is_written(self):
        def f(x):
            a = numpy.zeros(3)
            a[0] = x
            return a.sum()

        with pytest.raises(dg.Error, match=r"a\[0\] = \.\.\. is a plain one: make it with dynagrad\.numpy"):
            dg.grad(f)(1.0)

        def g(x):
            y = 2.0 * x
            y[0] = 1.0
            return y.sum()

        with pytest.raises(dg.Error, match=r"write into a copy, y = x\.copy\(\)"):
            dg.grad(g)(X)


def views_of_numpy():
    """Functions of numpy and arguments with which the result is a view of the first one that can be written to."""
    plain = numpy.arange(6.0).reshape(2, 3)
    for module in (numpy, numpy.linalg, numpy.lib.stride_tricks):
        for name in sorted(dir(module)):
            f = getattr(module, name)
            if name.startswith("_") or not callable(f) or isinstance(f, type | numpy.ufunc) or name in ("test", "info"):
                continue
            for more in ((), (0,), (1,), (1, 0), ((3, 2),), (0, 1), ([0, 1],)):
                try:
                    with numpy.errstate(all="ignore"), warnings.catch_warnings():
                        warnings.simplefilter("error")
                        found = f(plain, *more)
                        one = found[-1] if isinstance(found, list | tuple) and found else found
                        view = type(one) is numpy.ndarray and one.size and one.flags.writeable
                except Exception:
                    continue
                if view and numpy.may_share_memory(one, plain):
                    yield f"{module.__name__}.{name}", f, more


VIEWS = list(views_of_numpy())


@pytest.mark.parametrize(("name", "f", "more"), VIEWS, ids=[f"{name}{more}" for name, _, more in VIEWS])
@pytest.mark.parametrize("turned", [False, True])
def test_what_is_a_view_in_numpy_is_one_here_or_an_error(name, f, more, turned):
    ours = getattr(np, name.split(".")[-1], f) if name.count(".") == 1 else f

    def program(x, namespace):
        a = namespace.zeros((3, 2)).T if turned else namespace.zeros((2, 3))
        a[...] = x
        found = (f if namespace is numpy else ours)(a, *more)
        one = found[-1] if isinstance(found, list | tuple) else found
        one[...] = 7.0
        one[(0,) * one.ndim] = x * x
        return np.sum(a * np.arange(1.0, 7.0).reshape(2, 3))

    try:
        wanted = program(3.0, numpy)
    except Exception as error:
        pytest.skip(str(error))
    h = 1e-6
    try:
        value, slope = dg.value_and_grad(lambda x: program(x, np))(3.0)
    except (dg.Error, AttributeError):
        return
    except (TypeError, ValueError) as error:  # numpy's own
        assert "bytes-like" in str(error) or "read-only" in str(error)
        return
    assert numpy.isclose(value, wanted)
    assert numpy.isclose(slope, (program(3.0 + h, numpy) - program(3.0 - h, numpy)) / (2.0 * h))


class TestNesting:
    def test_all_orders_and_modes(self):
        def f(x):
            a = np.zeros(3)
            a[0] = x
            for i in range(1, 3):
                a[i] = a[i - 1] * a[i - 1] * x
            return a[2]  # x**7

        assert dg.derivative(f, 5)(1.5) == pytest.approx(7 * 6 * 5 * 4 * 3 * 1.5**2)
        assert dg.grad(dg.grad(dg.derivative(f)))(1.5) == pytest.approx(7 * 6 * 5 * 1.5**4)
        assert dg.derivative(dg.grad(dg.grad(f)))(1.5) == pytest.approx(7 * 6 * 5 * 1.5**4)

    def test_numbers_of_several_passes_in_one_array(self):
        def outer(x):
            a = np.zeros(2)
            a[0] = x * x

            def inner(y):
                b = np.array(a)
                b[1] = y * x
                return np.sum(b * b) * y

            a[1] = dg.grad(inner)(x)  # x**4 + 3 x**4
            return np.sum(a)

        assert dg.grad(outer)(2.0) == pytest.approx(2 * 2.0 + 16 * 2.0**3)

    def test_an_array_of_an_outer_pass_that_an_inner_one_writes_to(self):
        def outer(x):
            a = np.zeros(2)

            def inner(y):
                a[0] = x * 3.0
                return y * a[0]

            return dg.grad(inner)(1.0) * x  # 3 x**2

        assert dg.grad(outer)(2.0) == 12.0

    def test_as_argument_and_result(self):
        def f(x):
            a = np.zeros(2)
            a[1] = x
            return {"a": a, "b": [a[0], a * a]}

        value, d = dg.jvp(f, (3.0,), (1.0,))
        assert type(value["a"]) is numpy.ndarray and d["a"].tolist() == [0.0, 1.0] and d["b"][1].tolist() == [0.0, 6.0]
        assert dg.jacrev(lambda x: f(x)["a"])(3.0).tolist() == [0.0, 1.0]

        def g(x):
            a = np.zeros(2)
            a[0] = x
            return np.sum(dg.grad(lambda y: np.sum(y**3))(a))  # 3 x**2

        assert dg.grad(g)(2.0) == 12.0

    def test_checkpoints_and_rules(self):
        def f(x):
            def step(a):
                b = np.array(a)
                b[0] = b[1] * x
                b[1:] += x
                return b

            def plainly(a):
                for _ in range(4):
                    a = step(a)
                return a

            return np.sum(dg.checkpoint(step, np.ones(3), 4)) * np.sum(plainly(np.ones(3)))

        assert numpy.isclose(dg.value_and_grad(f)(1.3)[0], f(1.3))
        dg.check_derivatives(f, 1.3)

    def test_functions_with_rules_and_compiled_ones(self):
        def doubled(x):
            a = np.zeros(2)
            a[:] = 2.0 * x
            return a

        twice = dg.custom_rule(doubled, jvp=lambda primals, tangents: 2.0 * tangents[0])
        squares = dg.compile(lambda x: np.sum(x * x))

        def f(x):
            a = np.ones(2)
            plainly = squares(a)
            a[0] = x
            return squares(twice(a)) * plainly  # 8 (x**2 + 1)

        assert dg.value_and_grad(f)(3.0) == (80.0, 48.0)


class TestOutside:
    def test_plain_arrays_outside_of_a_derivative(self):
        for made in (np.zeros(3), np.array([1.0, 2.0]), np.full(2, 1.5), np.eye(2), np.r_[1.0, 2.0], np.asarray([1.0])):
            assert type(made) is numpy.ndarray
        assert np.array([1, 2]).dtype == numpy.array([1, 2]).dtype

    def test_integers_and_truth_values_stay_plain_arrays(self):
        def f(x):
            counts = np.zeros(3, dtype=int)
            counts[1] += 2
            assert type(counts) is type(np.arange(3)) is type(np.zeros(2, dtype=bool)) is numpy.ndarray
            assert np.zeros(2, dtype=np.float32).dtype == numpy.float64
            return x * counts[1]

        assert dg.grad(f)(1.0) == 2.0

    def test_it_is_an_array_where_it_holds_plain_numbers(self):
        kept = []

        def f(x):
            a = np.arange(6.0).reshape(2, 3)
            a[0, 0] = 7.0
            kept.append(a)
            assert isinstance(a, MutableArray) and float(np.sum(a)) == 22.0 and int(a[1, 2]) == 5
            assert numpy.asarray(a).tolist() == a.tolist() and a.T.shape == (3, 2) and len(a) == 2
            assert [list(row) for row in a][1] == [3.0, 4.0, 5.0]
            assert a.sum(axis=0).tolist() == [10.0, 5.0, 7.0] and (a > 4.0).sum() == 2 and a.argmax() == 0
            return x

        dg.grad(f)(1.0)
        (a,) = kept
        a[0, 1] = 9.0  # afterwards too
        assert pickle.loads(pickle.dumps(a)).tolist() == [[7.0, 9.0, 2.0], [3.0, 4.0, 5.0]]
        b = copy.deepcopy(a)
        b[0, 0] = 0.0
        assert a[0, 0] == 7.0 and numpy.add(a, 1.0)[0, 1] == 10.0

    def test_an_array_of_the_caller_is_not_taken(self):
        mine = numpy.ones(3)

        def f(x):
            a = np.array(mine)
            a[0] = x
            b = np.asarray(mine)
            assert b is mine and np.reshape(mine, (3, 1)).base is mine
            return np.sum(a)

        assert dg.grad(f)(2.0) == 1.0 and mine.tolist() == [1.0, 1.0, 1.0]

    def test_writes_that_were_written_over_are_forgotten(self):
        def f(x):
            a = np.zeros(2)
            for _ in range(5000):
                a[0] = x
                a[1] = a[0] * 0.5
            assert len(a._memory.written) < 400
            return np.sum(a)

        assert dg.grad(f)(1.0) == 1.5

    def test_nothing_is_kept_after_the_derivative(self):
        seen = []

        def f(x):
            a = np.zeros(3)
            a[0] = x
            seen.append(weakref.ref(a._memory))
            return np.sum(a)

        dg.grad(f)(1.0)
        gc.collect()
        assert seen[0]() is None


# -- random programs ---------------------------------------------------------------------------------------------------


def random_program(seed):
    """A program of writes and reads over a few arrays and views of them; the same in and outside of a derivative."""

    def f(x):
        chance = numpy.random.default_rng(seed)
        arrays = [np.zeros((3, 4)), np.array([x, x * 0.5 + 1.0]), np.ones(5)]
        names = list(range(3))

        def number():
            kind = chance.integers(5)
            if kind == 0:
                return float(chance.normal())
            if kind == 1:
                return x[int(chance.integers(4))]
            if kind == 2:
                return np.sin(x[int(chance.integers(4))]) * x[int(chance.integers(4))]
            a = arrays[int(chance.choice(names))]
            picked = a[tuple(int(chance.integers(n)) for n in a.shape)]
            return picked if kind == 3 else np.tanh(picked) + 0.5

        def index(shape):
            found = []
            for n in shape:
                kind = chance.integers(5)
                low = int(chance.integers(n))
                found.append(
                    low
                    if kind == 0
                    else slice(None)
                    if kind == 1
                    else slice(low, None)
                    if kind == 2
                    else slice(None, None, -1)
                    if kind == 3
                    else slice(low, min(n, low + 2))
                )
            return tuple(found[: int(chance.integers(1, len(shape) + 1))])

        for _ in range(14):
            a = arrays[int(chance.choice(names))]
            kind = int(chance.integers(14))
            if kind == 0:
                a[tuple(int(chance.integers(n)) for n in a.shape)] = number()
            elif kind == 1:
                a[index(a.shape)] = number()
            elif kind == 2:
                at = index(a.shape)
                a[at] += number()
            elif kind == 3:
                at = index(a.shape)
                a[at] = np.cos(a[at])
            elif kind == 4:
                arrays.append(a[index(a.shape)] if a[index(a.shape)].ndim else a)
                if not getattr(arrays[-1], "shape", ()) or 0 in arrays[-1].shape:
                    arrays.pop()
            elif kind == 5:
                arrays.append(a.T)
            elif kind == 6:
                arrays.append(a.reshape(-1))
            elif kind == 7:
                arrays.append(a.copy())
            elif kind == 8:
                a *= number()
            elif kind == 9:
                a[a > chance.normal()] = number()
            elif kind == 10:
                a[:-1] = a[1:] * 0.5
            elif kind == 11:
                a[1:] = a[:-1]
            elif kind == 12:
                order = chance.permutation(a.shape[0])
                a[order] = a[np.sort(order)] + 0.25
            else:
                arrays.append(np.sin(a) * 0.5)
            names = list(range(len(arrays)))
        total = 0.0
        for k, a in enumerate(arrays):
            total = total + np.sum(np.tanh(a) * (k + 1.0)) + np.sum(a) * 0.01
        return total

    return f


@pytest.mark.parametrize("seed", range(75))
def test_random_programs(seed):
    f = random_program(seed)
    value, gradient = dg.value_and_grad(f)(X)
    assert numpy.isclose(value, f(X), rtol=1e-12)
    along = numpy.random.default_rng(seed).normal(size=4)
    assert numpy.isclose(dg.jvp(f, (X,), (along,))[1], gradient @ along, rtol=1e-9, atol=1e-12)
    h = 1e-6
    difference = (f(X + h * along) - f(X - h * along)) / (2.0 * h)
    assert numpy.isclose(gradient @ along, difference, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["plain", "of records", "of one number", "written to"])
def test_a_long_chain_of_views_takes_time_in_proportion(kind):
    steps = []

    def f(x, n):
        v = x.copy() if kind == "of one number" else np.zeros(3)
        if kind == "of records":
            v[:] = x
        for i in range(n):
            v = v[:] if i % 2 else v.viewed(lambda whole: (steps.append(0), whole.reshape(3))[1])
            if kind == "written to":
                v[0] = v[0] + x[0]
        v[1] = x[1]
        return np.sum(v * v)

    counts = []
    for n in (20, 200):
        steps.clear()
        gradient = dg.grad(f)(X[:3], n)
        counts.append(len(steps))
        first = n * n * X[0] if kind == "written to" else 0.0 if kind == "plain" else X[0]
        last = 0.0 if kind in ("plain", "written to") else X[2]
        assert gradient == pytest.approx(2.0 * numpy.array([first, X[1], last]))
    assert counts[1] <= 11 * counts[0]
    assert dg.grad(f)(X[:3], 5_000) is not None  # more than Python recurses
