"""`dg.compile`: the values and derivatives of the function that was compiled, and its versions. Costs a few seconds."""

import gc
import math
import os
import pickle
import threading
import time
from dataclasses import dataclass

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.runtime.compiling import cache


def power(x, n):
    y = 1.0
    for _ in range(n):
        y = y * x
    return y


def collatz(x):
    """A loop of unknown length."""
    steps = 0.0
    while x > 1.0:
        x = x / 2.0 if steps % 2.0 == 0.0 else x - 0.25 * x
        steps = steps + 1.0
    return x * steps


def fibonacci(n, x):
    return x if n < 2 else fibonacci(n - 1, x * 0.5) + fibonacci(n - 2, x + 1.0)


def norm_and_angle(v):
    return {"norm": np.sqrt(np.sum(v * v)), "angle": np.arctan2(v[1], v[0])}


@dataclass
class Line:
    slope: float
    at: np.ndarray

    def __call__(self, x):
        return self.slope * x + self.at


# -- values ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (power, (1.5, 7)),
        (collatz, (100.0,)),
        (fibonacci, (7, 0.5)),
        (lambda a, b: a @ b, (np.arange(6.0).reshape(2, 3), np.arange(3.0))),
        (lambda a: np.linalg.solve(a, np.ones(2)), (np.array([[2.0, 1.0], [0.5, 3.0]]),)),
        (lambda x: math.gamma(2.0) * x, (3.0,)),
        (lambda a: np.sort(a)[::-1], (np.array([2.0, 3.0, 1.0]),)),
        (lambda x, y=2.0, *, z=3.0: x + y * z, (1.0,)),
    ],
)
def test_values_are_those_of_the_function(function, arguments):
    np.testing.assert_allclose(dg.compile(function)(*arguments), function(*arguments), rtol=1e-14)


def test_structures_go_in_and_come_out():
    found = dg.compile(norm_and_angle)(np.array([3.0, 4.0]))
    assert found == {"norm": 5.0, "angle": pytest.approx(math.atan2(4.0, 3.0))}
    line = Line(2.0, np.array([1.0, 2.0]))
    np.testing.assert_array_equal(dg.compile(lambda line, x: line.slope * x + line.at)(line, 3.0), line(3.0))
    pair = dg.compile(lambda p: (p["a"], [p["b"] * 2.0, "text"]))({"a": 1.0, "b": 2.0})
    assert pair == (1.0, [4.0, "text"])


def test_keywords_and_defaults():
    fast = dg.compile(lambda x, *, scale=2.0: x * scale)
    assert fast(3.0) == 6.0
    assert fast(3.0, scale=5.0) == 15.0
    assert fast(x=4.0) == 8.0


def test_a_decorator_keeps_name_and_documentation():
    @dg.compile
    def documented(x):
        """What it does."""
        return x

    assert documented.__name__ == "documented" and documented.__doc__ == "What it does."
    assert documented.function(2.0) == 2.0
    assert "documented" in repr(documented)
    assert dg.compile(documented) is documented


def test_other_kinds_of_numbers_are_converted():
    half = dg.compile(lambda x: x * 0.5)
    assert half(3.0) == 1.5
    np.testing.assert_array_equal(half(np.array([1.0, 2.0], dtype=np.float32)), [0.5, 1.0])
    np.testing.assert_array_equal(half(np.arange(6.0)[::2]), [0.0, 1.0, 2.0])
    assert half(np.float64(3.0)) == 1.5
    assert half(3) == 1.5  # a whole number is known at compile time


# -- versions ----------------------------------------------------------------------------------------------------------


def test_a_version_for_each_shape_and_no_more():
    total = dg.compile(lambda x: np.sum(x))
    for _ in range(2):
        for n in (2, 3, 2):
            assert total(np.ones(n)) == n
    assert total(5.0) == 5.0
    assert len(total._versions) == 3


def test_known_arguments_make_versions_of_their_own():
    fast = dg.compile(power)
    assert (fast(2.0, 3), fast(2.0, 4), fast(3.0, 3)) == (8.0, 16.0, 27.0)
    assert len(fast._versions) == 2


def test_threads_share_versions():
    fast = dg.compile(lambda x, k: np.sum(x) * k)
    results = []
    threads = [
        threading.Thread(target=lambda n=n: results.append((n, fast(np.ones(n), 2.0))))
        for n in (2, 3)
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [(2, 4.0)] * 4 + [(3, 6.0)] * 4
    assert len(fast._versions) == 2


# -- derivatives -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "arguments"), [(power, (1.5, 5)), (collatz, (70.0,)), (lambda x: np.exp(x) / x, (1.3,))]
)
def test_derivatives_of_all_orders_in_all_ways(function, arguments):
    fast = dg.compile(function)
    first, second = dg.grad(function)(*arguments), dg.grad(dg.grad(function))(*arguments)
    close = {"rel": 1e-12, "abs": 1e-12}
    assert dg.compile(dg.grad(function))(*arguments) == pytest.approx(first, **close)
    assert dg.grad(fast)(*arguments) == pytest.approx(first, **close)
    assert dg.compile(dg.grad(fast))(*arguments) == pytest.approx(first, **close)
    assert dg.compile(dg.grad(dg.grad(function)))(*arguments) == pytest.approx(second, **close)
    assert dg.grad(dg.grad(fast))(*arguments) == pytest.approx(second, **close)
    assert dg.grad(dg.compile(dg.grad(fast)))(*arguments) == pytest.approx(second, **close)
    x, rest = arguments[0], arguments[1:]
    assert dg.derivative(lambda x: fast(x, *rest))(x) == pytest.approx(first, **close)
    assert dg.derivative(lambda x: fast(x, *rest), 2)(x) == pytest.approx(second, **close)
    assert dg.jvp(dg.grad(lambda x: fast(x, *rest)), (x,), (1.0,))[1] == pytest.approx(second, **close)


def test_derivatives_of_structures_and_arrays():
    def loss(parameters, x):
        hidden = np.tanh(parameters["w"] @ x + parameters["b"])
        return np.sum(hidden * hidden), hidden

    rng = np.random.default_rng(0)
    parameters = {"w": rng.normal(size=(3, 4)), "b": rng.normal(size=3)}
    x = rng.normal(size=4)
    fast = dg.compile(loss)
    plain = dg.grad(lambda p: loss(p, x)[0])(parameters)
    for found in (
        dg.grad(lambda p: fast(p, x)[0])(parameters),
        dg.compile(dg.grad(lambda p, x: loss(p, x)[0]))(parameters, x),
    ):
        np.testing.assert_allclose(found["w"], plain["w"], rtol=1e-13)
        np.testing.assert_allclose(found["b"], plain["b"], rtol=1e-13)
    np.testing.assert_allclose(
        dg.jacrev(lambda b: fast({"w": parameters["w"], "b": b}, x)[1])(parameters["b"]),
        dg.jacfwd(lambda b: loss({"w": parameters["w"], "b": b}, x)[1])(parameters["b"]),
        rtol=1e-12,
    )


def test_what_is_not_connected_has_derivative_zero():
    fast = dg.compile(lambda x, y: np.floor(x) + 2.0 * y)
    assert dg.grad(fast, (0, 1))(1.5, 2.0) == (0.0, 2.0)


def test_truth_values_and_whole_numbers_beside_reals():
    fast = dg.compile(lambda x: (x > 1.0, x * x))
    assert fast(2.0) == (True, 4.0)
    value, tangent = dg.jvp(lambda x: fast(x)[1], (2.0,), (1.0,))
    assert (value, tangent) == (4.0, 4.0)


# -- what was not picked or chosen -------------------------------------------------------------------------------------


def _overwritten(x):
    y = np.sqrt(x)
    y = np.where(x > 0.0, y, 0.0)
    y[0] = 3.0 * x[1]
    return np.sum(y)


def _in_a_loop(x):
    total = 0.0
    for i in range(len(x)):
        root = np.sqrt(x[i])
        if x[i] > 0.0:
            total += root
    return total


def _of_a_loop(x):
    total, roots, i = 0.0, np.sqrt(x), 0
    while i < len(x):
        total += roots[i] if x[i] > 0.0 else 0.0
        i += 1
    return total


def _returned(x):
    y = np.sqrt(x)
    if x[0] > 0.0:
        return y[0]
    return y[1]


def _distances(p):
    d = p[:, None] - p
    i, j = np.triu_indices(3, 1)
    return np.sum(np.sqrt(np.sum(d**2, axis=-1))[i, j])


ROOTS = np.array([0.0, 1.0, 2.0, 3.0, 0.0, 5.0])
PICKED = {
    "an element": (lambda x: np.log(x)[1], ROOTS),
    "a slice": (lambda x: np.sum(np.log(x)[1:3]), ROOTS),
    "places": (lambda x: np.sum(np.sqrt(x)[[1, 3]]), ROOTS),
    "take": (lambda x: np.sum(np.take(np.sqrt(x), [1, 2])), ROOTS),
    "reshaped": (lambda x: np.sum(np.log(x).reshape(2, 3)[:1, 1]), ROOTS),
    "concatenated": (lambda x: np.concatenate([np.sqrt(x), x])[1], ROOTS),
    "sorted": (lambda x: np.sort(np.sqrt(x))[-1], ROOTS),
    "the largest": (lambda x: max(np.sqrt(x)), ROOTS),
    "where it is largest": (lambda x: np.sqrt(x)[np.argmax(x)], ROOTS),
    "padded": (lambda x: np.pad(np.sqrt(x), 1)[3], ROOTS),
    "chosen and broadcast": (lambda x: np.sum(np.where((x > 0)[:, None], np.log(x)[:, None] * np.ones(2), 0.0)), ROOTS),
    "overwritten": (_overwritten, ROOTS),
    "in a loop": (_in_a_loop, ROOTS),
    "of a loop": (_of_a_loop, ROOTS),
    "returned early": (_returned, ROOTS),
    "distances": (_distances, np.array([[0.1, -0.3], [0.7, 1.1], [-1.2, 0.4]])),
}


@pytest.fixture(scope="module")
def picked():
    """The gradients, of all in one compiled function, and in what differentiates a compiled function of all."""
    functions, points = zip(*PICKED.values(), strict=True)
    each = dg.compile(lambda points: [dg.grad(f)(x) for f, x in zip(functions, points, strict=True)])
    total = dg.compile(lambda points: sum([f(x) for f, x in zip(functions, points, strict=True)]))
    return dict(zip(PICKED, zip(each(points), dg.grad(total)(points), strict=True), strict=True))


@pytest.mark.parametrize("name", sorted(PICKED))
def test_what_is_not_picked_has_derivative_zero_though_its_slope_is_infinite(name, picked):
    f, x = PICKED[name]
    expected = np.zeros_like(x)  # by central differences, where the function does not look at zeros
    for k in np.ndindex(*x.shape):
        if x[k] != 0.0:
            e = np.zeros_like(x)
            e[k] = 1e-6
            with np.errstate(divide="ignore"):
                expected[k] = (f(x + e) - f(x - e)) / 2e-6
    for found in picked[name]:
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


def test_picking_from_what_a_compiled_function_returned():
    root, both = dg.compile(lambda x: np.sqrt(x)), dg.compile(lambda x: (2.0 * x, np.sqrt(x)))
    x = np.array([0.0, 4.0])
    np.testing.assert_array_equal(dg.grad(lambda x: root(x)[1])(x), [0.0, 0.25])
    np.testing.assert_array_equal(dg.grad(lambda x: np.sum(np.where(x > 0, root(x), 0.0)))(x), [0.0, 0.25])
    np.testing.assert_allclose(
        dg.hessian(lambda x: np.sum(np.where(x > 0, root(x), 0.0)))(x), [[0.0, 0.0], [0.0, -0.03125]], rtol=1e-15
    )
    assert dg.grad(lambda x: both(x)[0])(0.0) == 2.0
    with pytest.raises(dg.NotDifferentiable):
        dg.grad(lambda x: both(x)[1] ** 2)(0.0)


def test_derivatives_that_nobody_asked_for_may_be_infinite():
    assert dg.grad(dg.grad(dg.compile(lambda x, n: x**n)))(-1.5, 2.0) == 2.0
    assert dg.grad(dg.grad(dg.compile(lambda x, y: x * x + x * np.sqrt(y))))(2.0, 0.0) == 2.0
    fast = dg.compile(lambda x, y: (x * y, np.sqrt(x)))
    assert dg.grad(lambda y: fast(0.0, y)[0])(3.0) == 0.0


# -- errors ------------------------------------------------------------------------------------------------------------


def test_what_cannot_be_compiled_names_the_line_and_leaves_the_function():
    def prints(x):
        with open("nothing") as f:
            return x * len(f.read())

    fast = dg.compile(prints)
    with pytest.raises(dg.LiftError) as caught:
        fast(1.0)
    assert "test_compiled.py" in str(caught.value) and "with open" in str(caught.value) and "^" in str(caught.value)


@pytest.mark.parametrize("verb", [dg.jacfwd, dg.jacrev])
def test_a_number_with_derivatives_that_is_closed_over_should_be_an_argument(verb):
    with pytest.raises(dg.LiftError, match=r"a value with derivatives from outside \(make it an argument"):
        verb(lambda x: dg.compile(lambda y: y * x)(4.0))(5.0)
    assert verb(lambda x: dg.compile(lambda x, y: y * x)(x, 4.0))(5.0) == 4.0
    assert verb(dg.compile(lambda x: dg.compile(lambda y: y * x)(4.0)))(5.0) == 4.0


def test_only_functions_are_compiled():
    with pytest.raises(dg.Error, match="takes a function"):
        dg.compile(3.0)


def test_whole_numbers_and_truth_values_as_arguments_where_a_derivative_is_taken():
    fast = dg.compile(lambda x, i, m: np.sum(x[i] * np.where(m, 2.0, 3.0)))
    x, i, m = np.array([1.0, 2.0, 3.0]), np.array([0, -1]), np.array([True, False])
    np.testing.assert_array_equal(dg.grad(fast)(x, i, m), [2.0, 0.0, 3.0])
    np.testing.assert_array_equal(dg.grad(fast)(x, i, ~m), [3.0, 0.0, 2.0])
    np.testing.assert_array_equal(dg.hessian(fast)(x, i, m), np.zeros((3, 3)))
    with pytest.raises(dg.Error, match=r"2\*\*53"):
        dg.grad(fast)(x, np.array([0, 2**60]), m)


def test_errors_of_a_run_are_ours_and_pythons_and_name_the_function():
    def pick(x, i):
        return x[int(i)]

    def deep(x):
        return 1.0 + deep(x + 1.0) if x > 0.0 else x

    with pytest.raises(dg.RunError, match="pick: index 7 is out of range for an axis of length 3") as caught:
        dg.compile(pick)(np.ones(3), 7.0)
    assert isinstance(caught.value, IndexError)
    with pytest.raises(dg.RunError, match="deep: ") as caught:
        dg.compile(deep)(1.0)
    assert isinstance(caught.value, RecursionError)


def test_a_call_may_have_a_limit_on_time() -> None:
    """Of loops, of recursion and of derivatives; what does not reach it, nor another function of the same text, has no
    part in it."""

    def steps(x, n):
        total, i = 0.0, 0.0
        while i < n:
            total, i = np.sin(total + x), i + 1.0
        return total

    limited, unlimited = dg.compile(steps, timeout=0.2), dg.compile(steps)
    assert limited(0.5, 10.0) == unlimited(0.5, 10.0) == pytest.approx(steps(0.5, 10.0))
    slope = dg.compile(dg.grad(steps), timeout=0.2)
    for f in (limited, slope):
        began = time.monotonic()
        with pytest.raises(dg.NotConverged, match=r"a call takes more than 200 milliseconds: does it end\? `timeout`"):
            f(0.5, 1e15)
        assert time.monotonic() - began > 0.19
    assert math.isfinite(unlimited(0.5, 1.2e7))  # longer than the limit of the other
    with pytest.raises(dg.NotConverged, match="steps"):
        dg.jvp(limited, (0.5, 1e15), (1.0, 0.0))
    again = pickle.loads(pickle.dumps(dg.compile(_forever, timeout=0.1)))  # found by its name, which is of the function
    with pytest.raises(dg.NotConverged, match="100 milliseconds"):
        again(1.0)
    assert dg.compile(limited) is limited and dg.compile(limited, timeout=5.0).timeout == 5.0
    for seconds, words in ((0.0015, "1500 microseconds"), (1.0, "1 seconds")):
        with pytest.raises(dg.NotConverged, match=f"more than {words}"):
            dg.compile(_forever, timeout=seconds)(1.0)
    for wrong in (-1.0, math.nan, "soon"):
        with pytest.raises(dg.Error, match="timeout must be a number"):
            dg.compile(steps, timeout=wrong)


def _forever(x):
    while x > 0.0:
        x = x + 1.0
    return x


def test_a_structure_of_too_many_parts_is_not_returned() -> None:
    def doubled(x, n):
        y = x
        for _ in range(n):
            y = (y, y)
        return y

    assert dg.compile(doubled)(2.0, 2) == ((2.0, 2.0), (2.0, 2.0))
    with pytest.raises(dg.Error, match="more than 1,000,000 parts is returned, where shared ones count"):
        dg.compile(doubled)(2.0, 60)


def _maps() -> int:
    with open("/proc/self/maps") as lines:
        return sum(".so" in line and "dynagrad" in line for line in lines)


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="where memory maps are listed")
def test_memory_maps_of_versions_are_released_when_nothing_refers_to_them() -> None:
    dg.compile(lambda x, n: np.sort(x) * n)(np.array([1.0]), 3)  # what stays: the library that walks over arguments
    f = dg.compile(lambda x, n: np.sort(np.sin(x) * n)[0])
    gc.collect()
    before = _maps()
    for n in range(3):
        f(np.array([1.5, 2.5]), n)
    kept = dg.compile(dg.grad(lambda x: np.sin(x) * 3.25))
    assert kept(0.0) == 3.25
    call = kept._fast  # the function in C keeps its library by itself
    dg.grad(f)(np.array([1.5, 2.5]), 2)
    assert _maps() > before
    del f, kept
    gc.collect()
    assert call(0.0) == 3.25
    del call
    gc.collect()
    assert _maps() == before


def kalman(a, c, q, r, y):
    """The log-likelihood of observations under a linear Gaussian model; the loop is short enough to be unrolled."""
    mean, cov, total = np.zeros(4), np.eye(4), 0.0
    for seen in y:
        mean, cov = a @ mean, a @ cov @ a.T + q
        s = c @ cov @ c.T + r
        off = seen - c @ mean
        gain = np.linalg.solve(s, c @ cov).T
        total = total - 0.5 * (off @ np.linalg.solve(s, off) + np.linalg.slogdet(s)[1])
        mean, cov = mean + gain @ off, cov - gain @ s @ gain.T
    return total


def test_how_much_is_optimised_is_what_the_environment_says(monkeypatch):
    levels, build = [], cache.build

    def noted(source, *, optimise, **more):
        levels.append(optimise)
        return build(source, optimise=0, **more)

    monkeypatch.setattr(cache, "build", noted)
    for level in ("0", "1", ""):
        monkeypatch.setenv("DYNAGRAD_OPTIMISE", level)
        assert dg.compile(lambda x: x * 4.0 - 1.0)(2.0) == 7.0
    assert levels == [0, 1, 3]
    monkeypatch.setenv("DYNAGRAD_OPTIMISE", "4")
    with pytest.raises(dg.Error, match="DYNAGRAD_OPTIMISE must be 0, 1, 2 or 3, not '4'"):
        dg.compile(lambda x: x * 4.0 - 2.0)(2.0)


def test_a_filter_of_15_steps_is_faster_than_without_compiling():
    """By 80 times and 500 times on a quiet machine, and by a quarter of that where nothing is optimised; here with room
    for one that does other things.
    """
    rng = np.random.default_rng(0)
    given = 0.3 * rng.normal(size=(4, 4)), rng.normal(size=(2, 4)), np.eye(4), np.eye(2), rng.normal(size=(15, 2))

    def least(f):
        times = []
        for _ in range(7):
            start = time.perf_counter()
            f(*given)
            times.append(time.perf_counter() - start)
        return min(times)

    for plain, factor in ((kalman, 5.0), (dg.grad(kalman), 20.0)):
        compiled = dg.compile(plain)
        assert np.allclose(compiled(*given), plain(*given), rtol=1e-11, atol=1e-12)
        assert factor * least(compiled) < least(plain)
