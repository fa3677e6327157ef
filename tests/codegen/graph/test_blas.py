"""Matrix products and linear equations in native code: by BLAS and by loops, for all shapes, against numpy.

Costs a few seconds.
"""

from __future__ import annotations

import ctypes
import itertools
import sys

import numpy as np
import pytest

from dynagrad.runtime import blas, library
from dynagrad.runtime.compiling import cache

SOURCE = """
#include <dynagrad/graphs/linalg/determinants.hpp>
using namespace dynagrad;
using namespace dynagrad::graphs;

static Blas kept;
DYNAGRAD_EXPORT void with_blas(bool yes) {
    if (blas.dgemm != nullptr) kept = blas;
    blas = yes ? kept : Blas{};
}
DYNAGRAD_EXPORT void multiply(double* c, const double* a, const double* b, int64_t m, int64_t k, int64_t n, bool ta,
                              bool tb, bool add) {
    matmul(c, a, b, m, k, n, ta, tb, add);
}
DYNAGRAD_EXPORT void multiply_many(int64_t count, double* c, const double* a, int64_t sa, const double* b, int64_t sb,
                                   int64_t m, int64_t k, int64_t n) {
    matmul(count, c, a, sa, b, sb, m, k, n);
}
DYNAGRAD_EXPORT double inner(const double* a, const double* b, int64_t n) { return dot(a, b, n); }
DYNAGRAD_EXPORT int64_t solve_all(char* message, int64_t count, double* x, const double* a, const double* b, int64_t n,
                                  int64_t m) {
    const Context context{nullptr, message};
    Call call(&context);
    return solve(call, count, x, a, n * n, b, n * m, n, m);
}
DYNAGRAD_EXPORT int64_t of_matrix(char* message, int64_t which, double* x, const double* a, int64_t n) {
    const Context context{nullptr, message};
    Call call(&context);
    if (which == 0) return inverse(call, x, a, n);
    if (which == 1) return cholesky(call, x, a, n);
    return determinant(call, x, x + 1, x + 2, a, n);
}
"""

SINGULAR, NOT_POSITIVE = 64, 65
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def made() -> library.Library:
    loaded = library.load(cache.build(SOURCE))
    blas.attach(loaded)
    return loaded


@pytest.fixture(params=["loops", "scipy"])
def lib(request: pytest.FixtureRequest, made: library.Library) -> library.Library:
    if request.param == "scipy" and blas.table() is None:
        pytest.skip("there is no BLAS")
    made.function("with_blas", None, ctypes.c_bool)(request.param == "scipy")
    return made


def address(x: np.ndarray) -> int:
    assert x.flags.c_contiguous and x.dtype == np.float64
    return x.ctypes.data


POINTER, SIZE, FLAG = ctypes.c_void_p, ctypes.c_int64, ctypes.c_bool
SHAPES = [(1, 1, 1), (3, 4, 5), (8, 8, 16), (9, 17, 33), (1, 40, 7), (5, 7, 1), (40, 200, 37), (2, 0, 3), (70, 1, 70)]
LARGE = [(257, 260, 256), (1024, 600, 1), (1, 600, 1024)]


@pytest.mark.parametrize("shape", SHAPES + LARGE, ids=str)
def test_products_of_all_shapes(lib: library.Library, shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    multiply = lib.function("multiply", None, *[POINTER] * 3, *[SIZE] * 3, *[FLAG] * 3)
    for ta, tb, add in itertools.product((False, True), repeat=3):
        a, b, c = RNG.normal(size=(m, k)), RNG.normal(size=(k, n)), RNG.normal(size=(m, n))
        wanted = a @ b + c if add else a @ b
        left, right = (np.ascontiguousarray(x.T if t else x) for x, t in ((a, ta), (b, tb)))
        multiply(address(c), address(left), address(right), m, k, n, ta, tb, add)
        assert np.allclose(c, wanted, rtol=1e-13, atol=1e-13 * (k + 1))


def test_products_of_stacks_share_operands(lib: library.Library) -> None:
    multiply = lib.function("multiply_many", None, SIZE, POINTER, POINTER, SIZE, POINTER, SIZE, *[SIZE] * 3)
    a, b = RNG.normal(size=(4, 3, 5)), RNG.normal(size=(4, 5, 2))
    for left, right in ((a, b), (a[0], b), (a, b[0])):
        left, right, c = np.ascontiguousarray(left), np.ascontiguousarray(right), np.empty((4, 3, 2))
        steps = 15 * (left.ndim == 3), 10 * (right.ndim == 3)
        multiply(4, address(c), address(left), steps[0], address(right), steps[1], 3, 5, 2)
        assert np.allclose(c, left @ right)


def test_inner_products(lib: library.Library) -> None:
    inner = lib.function("inner", ctypes.c_double, POINTER, POINTER, SIZE)
    for n in (0, 1, 7, 8, 31, 32, 33, 100):
        a, b = RNG.normal(size=n), RNG.normal(size=n)
        assert inner(address(a), address(b), n) == pytest.approx(float(a @ b), abs=1e-13)


def solve(lib: library.Library, a: np.ndarray, b: np.ndarray) -> tuple[int, np.ndarray, str]:
    message = ctypes.create_string_buffer(256)
    x = np.empty_like(b)
    function = lib.function("solve_all", SIZE, POINTER, SIZE, *[POINTER] * 3, SIZE, SIZE)
    status = function(message, a.shape[0], address(x), address(a), address(b), *b.shape[1:])
    return status, x, message.value.decode()


@pytest.mark.parametrize("n", [1, 2, 5, 31, 32, 33, 100])
def test_linear_equations(lib: library.Library, n: int) -> None:
    a = RNG.normal(size=(2, n, n)) + 2 * np.eye(n)
    for m in (1, 3, 40):
        b = RNG.normal(size=(2, n, m))
        status, x, _ = solve(lib, a, b)
        assert status == 0 and np.allclose(a @ x, b, atol=1e-9)


def of_matrix(lib: library.Library, which: int, a: np.ndarray) -> tuple[int, np.ndarray, str]:
    message = ctypes.create_string_buffer(256)
    x = np.empty((len(a), len(a))) if which < 2 else np.empty(3)
    status = lib.function("of_matrix", SIZE, POINTER, SIZE, POINTER, POINTER, SIZE)(
        message, which, address(x), address(a), len(a)
    )
    return status, x, message.value.decode()


@pytest.mark.parametrize("n", [1, 2, 3, 31, 33, 70, 200])
def test_inverses_factors_and_determinants(lib: library.Library, n: int) -> None:
    a = RNG.normal(size=(n, n)) + 2 * np.eye(n)
    assert np.allclose(of_matrix(lib, 0, a)[1] @ a, np.eye(n), atol=1e-8)
    positive = a @ a.T + np.eye(n)
    given = np.tril(positive) + np.triu(np.full((n, n), np.nan), 1)  # the upper triangle is not read
    assert np.allclose(of_matrix(lib, 1, given)[1], np.linalg.cholesky(positive))
    sign, log_size, determinant = of_matrix(lib, 2, a)[1]
    with np.errstate(over="ignore"):
        assert (sign, pytest.approx(log_size)) == tuple(np.linalg.slogdet(a))
        assert determinant == pytest.approx(np.linalg.det(a))


def test_pivots_are_exchanged(lib: library.Library) -> None:
    a = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 2.0], [3.0, 0.0, 0.0]])
    assert np.array_equal(of_matrix(lib, 2, a)[1][[0, 2]], [1.0, 6.0])
    assert np.allclose(of_matrix(lib, 0, a)[1], np.linalg.inv(a))


def test_a_matrix_that_has_no_inverse_is_a_status(lib: library.Library) -> None:
    zeros, ones = np.zeros((3, 3)), np.ones((1, 3, 1))
    assert solve(lib, zeros[None], ones)[::2] == (SINGULAR, "Singular matrix")
    assert of_matrix(lib, 0, zeros)[::2] == (SINGULAR, "Singular matrix")
    assert of_matrix(lib, 1, -np.eye(3))[::2] == (NOT_POSITIVE, "Matrix is not positive definite")
    assert of_matrix(lib, 1, np.full((2, 2), np.nan))[0] == NOT_POSITIVE


def test_the_determinant_of_a_singular_matrix_is_zero(lib: library.Library) -> None:
    assert np.array_equal(of_matrix(lib, 2, np.ones((3, 3)))[1], [0.0, -np.inf, 0.0])


def test_without_scipy_there_is_no_table(monkeypatch: pytest.MonkeyPatch, made: library.Library) -> None:
    monkeypatch.setitem(sys.modules, "scipy.linalg.cython_blas", None)
    blas.table.cache_clear()
    try:
        assert blas.table() is None and not blas.attach(made)
    finally:
        blas.table.cache_clear()
