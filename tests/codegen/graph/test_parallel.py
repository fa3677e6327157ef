"""Parallel loops: the same results for any number of threads, also after a fork and from many threads at once."""

from __future__ import annotations

import ctypes
import os
import threading
import time

import numpy as np
import pytest

from dynagrad.errors import Error
from dynagrad.runtime import library, threads
from dynagrad.runtime.compiling import cache

SOURCE = """
#include <math.h>
#include <dynagrad/graphs/parallel.hpp>
using namespace dynagrad;
using namespace dynagrad::graphs;

DYNAGRAD_EXPORT void squares(const double* x, double* y, int64_t n, int64_t grain) {
    in_parallel(n, grain, [=](int64_t begin, int64_t end, int64_t) {
        for (int64_t i = begin; i < end; ++i) y[i] = x[i] * x[i];
    });
}
DYNAGRAD_EXPORT double sum(const double* x, int64_t n, int64_t grain) {
    double parts[kMostParts] = {};
    in_parallel(n, grain, [&](int64_t begin, int64_t end, int64_t part) {
        double s = 0.0;
        for (int64_t i = begin; i < end; ++i) s += x[i];
        parts[part] = s;
    });
    double all = 0.0;
    for (double s : parts) all += s;
    return all;
}
DYNAGRAD_EXPORT int64_t nested(int64_t n) {
    int64_t count = 0;
    each_part(n, [&](int64_t) { each_part(n, [&](int64_t) { __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED); }); });
    return count;
}
DYNAGRAD_EXPORT int64_t cuts(int64_t n, int64_t grain, int64_t* at) {
    const int64_t parts = parts_of(n, grain);
    for (int64_t part = 0; part <= parts; ++part) at[part] = begin_of(n, parts, part);
    return parts;
}
DYNAGRAD_EXPORT void empty(int64_t times) {
    for (int64_t i = 0; i < times; ++i) each_part(2, [](int64_t) {});
}
"""
POINTER, SIZE = ctypes.c_void_p, ctypes.c_int64


@pytest.fixture(scope="module")
def made() -> library.Library:
    return library.load(cache.build(SOURCE))


@pytest.fixture(params=[1, 2, 5])
def lib(request: pytest.FixtureRequest, made: library.Library) -> library.Library:
    threads.attach(made, request.param)
    return made


def squares(lib: library.Library, x: np.ndarray, grain: int = 100) -> np.ndarray:
    y = np.full(len(x), np.nan)
    lib.function("squares", None, POINTER, POINTER, SIZE, SIZE)(x.ctypes.data, y.ctypes.data, len(x), grain)
    return y


def total(lib: library.Library, x: np.ndarray) -> float:
    return float(lib.function("sum", ctypes.c_double, POINTER, SIZE, SIZE)(x.ctypes.data, len(x), 100))


def test_every_element_is_computed(lib: library.Library) -> None:
    for n in (0, 1, 99, 100, 201, 1000, 12345):
        x = np.arange(float(n))
        assert np.array_equal(squares(lib, x), x * x)


def test_results_do_not_depend_on_the_number_of_threads(made: library.Library) -> None:
    x = np.random.default_rng(0).normal(size=10_001)
    found = set()
    for count in (1, 2, 3, 7):
        threads.attach(made, count)
        found |= {total(made, x) for _ in range(20)}
    assert len(found) == 1


def test_a_range_is_cut_at_multiples_of_eight_in_parts_of_some_size(made: library.Library) -> None:
    cuts = made.function("cuts", SIZE, SIZE, SIZE, POINTER)
    at = np.zeros(64, np.int64)
    for n, grain in ((10, 100), (1000, 100), (999, 100), (10**6, 1), (10**12, 7)):
        parts = cuts(n, grain, at.ctypes.data)
        places = at[: parts + 1]
        assert 1 <= parts <= 32 and places[0] == 0 and places[-1] == n
        assert np.all(np.diff(places) > 0) and not np.any(places[:-1] % 8)


def test_a_loop_in_a_part_of_a_loop(lib: library.Library) -> None:
    assert lib.function("nested", SIZE, SIZE)(20) == 400


def test_many_threads_of_python_at_once(made: library.Library) -> None:
    """ctypes.CDLL gives up the interpreter lock, so that they do meet."""
    threads.attach(made, 3)
    free = ctypes.CDLL(str(made.path)).squares
    free.argtypes, free.restype = (POINTER, POINTER, SIZE, SIZE), None
    wrong = []

    def work(seed: int) -> None:
        x = np.random.default_rng(seed).normal(size=5000)
        y = np.empty_like(x)
        for _ in range(100):
            y[:] = np.nan
            free(x.ctypes.data, y.ctypes.data, len(x), 200)
            if not np.array_equal(y, x * x):
                wrong.append(seed)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_has_threads_of_its_own(made: library.Library) -> None:
    threads.attach(made, 3)
    x = np.arange(10_000.0)
    squares(made, x)
    child = os.fork()
    if child == 0:
        os._exit(0 if all(np.array_equal(squares(made, x), x * x) for _ in range(10)) else 1)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            assert status == 0
            break
        time.sleep(0.005)
    else:
        os.kill(child, 9)
        pytest.fail("the child hangs")
    assert np.array_equal(squares(made, x), x * x)


def test_libraries_share_a_pool(made: library.Library) -> None:
    other = library.load(cache.build(SOURCE + "\n// another\n"))
    before = count_of_threads()
    for lib in (made, other, made, other):
        threads.attach(lib, 6)
        squares(lib, np.arange(10_000.0))
    assert count_of_threads() - before <= 5


def count_of_threads() -> int:
    return len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 0


def test_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DYNAGRAD_THREADS", "3")
    assert threads.threads() == 3
    monkeypatch.setenv("DYNAGRAD_THREADS", "")
    assert 1 <= threads.threads() <= 8
    for wrong in ("0", "-1", "many", "1000"):
        monkeypatch.setenv("DYNAGRAD_THREADS", wrong)
        with pytest.raises(Error, match="DYNAGRAD_THREADS"):
            threads.threads()
