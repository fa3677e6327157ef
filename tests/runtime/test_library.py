"""Loaded libraries: calls without the interpreter lock, Ctrl-C within a second, threads, forks, damage.

Costs a few seconds.
"""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time

import pytest

from dynagrad.errors import CompileError
from dynagrad.runtime import library
from dynagrad.runtime.compiling import cache

SOURCE = """
#include <dynagrad/base/host.hpp>
#define EXPORT extern "C" __attribute__((visibility("default")))

// Runs for so many seconds, in units that take a few nanoseconds each, or `pause` nanoseconds.
EXPORT int spin(const dynagrad::Host* host, int32_t* stop, double seconds, int64_t pause) {
    dynagrad::Unlocked unlocked(host, stop);
    const int64_t until = dynagrad::coarse_time() + static_cast<int64_t>(seconds * 1e9);
    volatile int64_t units = 0;
    while (true) {
        units = units + 1;
        if (pause > 0) { const timespec t{0, static_cast<long>(pause)}; nanosleep(&t, nullptr); }
        if (unlocked.interrupted()) return 1;
        if (units % 1024 == 0 || pause > 0) if (dynagrad::coarse_time() >= until) return 0;
    }
}

EXPORT double price(int64_t calls) {
    dynagrad::Unlocked unlocked(nullptr);
    int64_t stops = 0;
    for (int64_t i = 0; i < calls; ++i) stops += unlocked.interrupted();
    return static_cast<double>(stops);
}

EXPORT int64_t elapsed(double seconds) {
    dynagrad::Unlocked unlocked(nullptr);
    const int64_t until = dynagrad::coarse_time() + static_cast<int64_t>(seconds * 1e9);
    while (dynagrad::coarse_time() < until) unlocked.interrupted();
    return unlocked.elapsed();
}
"""


@pytest.fixture(scope="module")
def made():
    return library.load(cache.build(SOURCE))


@pytest.fixture(scope="module")
def spin(made):
    return made.function("spin", ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_double, ctypes.c_int64)


def in_a_while(seconds: float, action) -> threading.Timer:
    timer = threading.Timer(seconds, action)
    timer.start()
    return timer


@pytest.mark.parametrize("pause", [0, 1_000_000], ids=["short units", "long units"])
def test_ctrl_c_ends_native_code_within_a_second(spin, pause):
    timer = in_a_while(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        spin(library.host(), None, 10.0, pause)
    timer.join()
    assert 0.1 < time.perf_counter() - start < 1.2


def test_a_handler_that_does_not_raise_does_not_end_it(spin):
    seen = []
    old = signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
    try:
        timer = in_a_while(0.05, lambda: os.kill(os.getpid(), signal.SIGUSR1))
        assert spin(library.host(), None, 0.3, 0) == 0
        timer.join()
    finally:
        signal.signal(signal.SIGUSR1, old)
    assert seen == [1]


def test_ctrl_c_raises_the_flag_for_the_other_threads_of_a_run(spin):
    stop = library.Stop()
    results = []
    other = threading.Thread(target=lambda: results.append(spin(library.host(), stop.address, 10.0, 0)))
    other.start()
    timer = in_a_while(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        spin(library.host(), stop.address, 10.0, 0)
    timer.join()
    other.join(2)
    assert (results, stop.raised) == ([1], True)


def test_a_flag_stops_native_code_from_another_thread(spin):
    stop = library.Stop()
    in_a_while(0.05, stop.set)
    start = time.perf_counter()
    assert spin(library.host(), stop.address, 10.0, 0) == 1
    assert time.perf_counter() - start < 1.0
    stop.clear()
    assert not stop.raised


def test_python_runs_while_native_code_does(spin):
    """Three threads are inside native code at once: each takes 0.3 s, and so do all three."""
    start = time.perf_counter()
    inside = [threading.Thread(target=spin, args=(library.host(), None, 0.3, 1_000_000)) for _ in range(2)]
    for thread in inside:
        thread.start()
    assert spin(library.host(), None, 0.3, 1_000_000) == 0
    for thread in inside:
        thread.join()
    assert time.perf_counter() - start < 0.7


def test_without_python(spin):
    assert spin(None, None, 0.02, 0) == 0


def test_asking_costs_next_to_nothing(made):
    price = made.function("price", ctypes.c_double, ctypes.c_int64)
    start = time.perf_counter()
    assert price(10_000_000) == 0
    assert time.perf_counter() - start < 0.5


def test_elapsed_follows_the_clock(made):
    elapsed = made.function("elapsed", ctypes.c_int64, ctypes.c_double)(0.05)
    assert 0.03e9 < elapsed < 0.2e9


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_works_in_a_fork_and_there_too_ctrl_c_ends_it(spin):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if spin(library.host(), None, 0.02, 0) == 0:
                spin(library.host(), None, 10.0, 0)
        except KeyboardInterrupt:
            status = 42
        finally:
            os._exit(status)
    time.sleep(0.3)
    os.kill(child, signal.SIGINT)
    start = time.perf_counter()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 42
    assert time.perf_counter() - start < 1.0


def test_the_same_path_is_loaded_once(made):
    assert library.load(made.path) is made


def test_a_missing_function_and_a_bad_library_are_errors(made, tmp_path):
    with pytest.raises(CompileError, match="no function 'nothing'"):
        made.function("nothing", None)
    (tmp_path / "bad.so").write_bytes(b"not a library")
    with pytest.raises(CompileError, match="cannot be loaded"):
        library.load(tmp_path / "bad.so")
