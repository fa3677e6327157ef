"""Stacks of residuals, and the memory of a call: values are popped as they were pushed, and memory is reused."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from dynagrad.runtime import library
from dynagrad.runtime.compiling import cache

SOURCE = """
#include <dynagrad/graphs/call.hpp>
using namespace dynagrad;
using namespace dynagrad::graphs;

// Pushes 0, 1, 2, ... as reals, whole numbers and truth values, takes them off, and says whether they were the same.
DYNAGRAD_EXPORT int64_t there_and_back(int64_t count, bool reserve) {
    const Context context{};
    Call call(&context);
    Slot* slots = call.slots(2);
    Stack stack(slots), other(slots + 1);
    if (reserve && !stack.room(3, count)) return call.memory();
    for (int64_t i = 0; i < count; ++i) {
        if (!reserve && !stack.room(3)) return call.memory();
        put(stack.data + stack.top, 0.5 * static_cast<double>(i));
        put(stack.data + stack.top + 1, INT64_MIN + i);
        put(stack.data + stack.top + 2, i % 3 == 0);
        stack.top += 3;
        if (!other.room(1)) return call.memory();
        put(other.data + other.top, i);
        other.top += 1;
    }
    for (int64_t i = count; i-- > 0;) {
        stack.top -= 3;
        other.top -= 1;
        double x;
        int64_t n, m;
        bool t;
        get(stack.data + stack.top, x);
        get(stack.data + stack.top + 1, n);
        get(stack.data + stack.top + 2, t);
        get(other.data + other.top, m);
        if (x != 0.5 * static_cast<double>(i) || n != INT64_MIN + i || t != (i % 3 == 0) || m != i) return 100;
    }
    call.unslot(2);
    return stack.top == 0 && other.top == 0 ? kDone : 101;
}

// An older value of a stack, looked at again after values were taken off.
DYNAGRAD_EXPORT double twice() {
    const Context context{};
    Call call(&context);
    Stack stack(call.slots(1));
    if (!stack.room(2)) return -1.0;
    put(stack.data + stack.top++, 3.0);
    put(stack.data + stack.top++, 4.0);
    Stack later = stack;
    --later.top;
    double a, b;
    get(stack.data + stack.top - 1, a);
    get(later.data + later.top - 1, b);
    return 10.0 * a + b;
}

// The sum of what comes off a stack that was filled before and is empty now, after room for it was made.
DYNAGRAD_EXPORT double off_an_empty_one(int64_t words) {
    const Context context{};
    Call call(&context);
    Stack stack(call.slots(1));
    if (!stack.room(words)) return -1.0;
    fill(stack.data, words, 1.0);
    if (!stack.has(words)) return -1.0;
    stack.top -= words;
    double sum = stack.top == 0 ? 0.0 : 100.0;
    for (int64_t i = 0; i < words; ++i) sum += stack.data[stack.top + i];
    return sum;
}

DYNAGRAD_EXPORT int64_t too_much(char* message, int64_t words, int64_t rounds) {
    const Context context{nullptr, message};
    Call call(&context);
    Stack stack(call.slots(1));
    return stack.room(words, rounds) ? kDone : call.saved();
}

// The places of the memory that a call gets.
DYNAGRAD_EXPORT void places(int64_t count, int64_t bytes, int64_t* at) {
    const Context context{};
    Call call(&context);
    for (int64_t i = 0; i < count; ++i) {
        char* frame = call.frame(bytes);
        at[i] = static_cast<int64_t>(reinterpret_cast<uintptr_t>(frame));
        if (frame != nullptr) memset(frame, static_cast<int>(i + 1), static_cast<size_t>(bytes));
    }
    for (int64_t i = 0; i < count; ++i) {
        const char* frame = reinterpret_cast<const char*>(static_cast<uintptr_t>(at[i]));
        if (frame[0] != static_cast<char>(i + 1) || frame[bytes - 1] != static_cast<char>(i + 1)) at[i] = 0;
    }
    for (int64_t i = 0; i < count; ++i) call.unframe(bytes);
}

// Whether a stack holds what was put on it one by one, and has room for so many more; it grows where it is, once it is
// large, which `moved` counts.
DYNAGRAD_EXPORT bool grows(int64_t count, int64_t* moved) {
    const Context context{};
    Call call(&context);
    Stack stack(call.slots(1));
    const double* before = nullptr;
    for (int64_t i = 0; i < count; ++i) {
        if (!stack.room(1)) return false;
        put(stack.data + stack.top++, i);
        if (stack.top == 1 << 20) before = stack.data, *moved = 0;
        *moved += before != nullptr && before != stack.data;
        before = before == nullptr ? nullptr : stack.data;
    }
    for (int64_t i = count; i-- > 0;) {
        int64_t n;
        get(stack.data + --stack.top, n);
        if (n != i) return false;
    }
    return true;
}

DYNAGRAD_EXPORT int64_t available(const char* root) { return available_memory(root); }

// How many blocks of memory hold what they held, after they grew from `from` to `to` bytes.
DYNAGRAD_EXPORT bool grown(int64_t from, int64_t to) {
    char* block = static_cast<char*>(take_block(from));
    for (int64_t i = 0; i < from; ++i) block[i] = static_cast<char>(i * 7);
    block = static_cast<char*>(grow_block(block, from, to));
    bool same = block != nullptr && reinterpret_cast<uintptr_t>(block) % 16 == 0;
    for (int64_t i = 0; same && i < from; ++i) same = block[i] == static_cast<char>(i * 7);
    if (same) block[to - 1] = 1;
    free(block);
    return same;
}
"""
SIZE, POINTER = ctypes.c_int64, ctypes.c_void_p
MEMORY = 2


@pytest.fixture(scope="module")
def lib() -> library.Library:
    return library.load(cache.build(SOURCE))


@pytest.mark.parametrize("reserve", [True, False])
@pytest.mark.parametrize("count", [0, 1, 7, 1000, 500_000])
def test_values_come_off_as_they_went_on(lib: library.Library, count: int, reserve: bool) -> None:
    there_and_back = lib.function("there_and_back", SIZE, SIZE, ctypes.c_bool)
    assert there_and_back(count, reserve) == 0


def test_an_older_stack_may_be_looked_at_again(lib: library.Library) -> None:
    assert lib.function("twice", ctypes.c_double)() == 43.0


def test_what_comes_off_an_empty_stack_is_zeros(lib: library.Library) -> None:
    assert lib.function("off_an_empty_one", ctypes.c_double, SIZE)(1000) == 0.0


@pytest.mark.parametrize(("words", "rounds"), [(1, 2**40), (2**40, 1), (2**33, 2**33), (3, 2**62)])
def test_a_stack_without_end_is_a_status(lib: library.Library, words: int, rounds: int) -> None:
    message = ctypes.create_string_buffer(256)
    assert lib.function("too_much", SIZE, POINTER, SIZE, SIZE)(message, words, rounds) == MEMORY
    assert b"memory" in message.value


@pytest.fixture
def most(lib: library.Library) -> Iterator[Callable[[int], None]]:
    """Says how many bytes a stack may have."""
    limit = lib.function("dg_most_saved", None, SIZE)
    yield limit
    limit(2**31)


def test_the_limit_of_a_stack_is_in_what_is_said(lib: library.Library, most: Callable[[int], None]) -> None:
    too_much = lib.function("too_much", SIZE, POINTER, SIZE, SIZE)
    message = ctypes.create_string_buffer(256)
    for size, said in ((2**31, b"2 GB"), (2**33, b"8 GB"), (3 * 2**20, b"3 MB")):
        most(size)
        assert too_much(message, size // 8, 1) == 0 and too_much(message, size // 8 + 1, 1) == MEMORY
        assert b"more than " + said in message.value and message.value.endswith(b"may save")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody is asked how much memory there is")
def test_a_stack_that_is_larger_than_the_memory_is_refused(lib: library.Library, most: Callable[[int], None]) -> None:
    """The system would give addresses for it, and kill somebody later."""
    most(2**45)
    too_much = lib.function("too_much", SIZE, POINTER, SIZE, SIZE)
    assert too_much(None, 2**42, 1) == MEMORY
    assert too_much(None, 2**10, 1) == 0


@pytest.mark.parametrize("limited", [False, True])
def test_a_large_stack_grows_where_it_is(lib: library.Library, most: Callable[[int], None], limited: bool) -> None:
    """Unless addresses are few: then it is a block, which moves."""
    resource = pytest.importorskip("resource")
    before, moved = resource.getrlimit(resource.RLIMIT_AS), ctypes.c_int64(-1)
    most(2**29)
    if limited:
        resource.setrlimit(resource.RLIMIT_AS, (2**46, before[1]))
    try:
        # not the workspace of the test before, whose stack may be large
        assert lib.function("grows", ctypes.c_bool, SIZE, POINTER)(5_000_000, ctypes.addressof(moved))
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    assert limited or sys.platform != "linux" or moved.value == 0


def test_a_large_stack_may_become_larger_when_more_is_allowed(
    lib: library.Library, most: Callable[[int], None]
) -> None:
    grows, moved = lib.function("grows", ctypes.c_bool, SIZE, POINTER), ctypes.c_int64()
    for size in (2**26, 2**27):
        most(size)
        assert grows(size // 8, ctypes.addressof(moved))
        assert not grows(size // 8 + 1, ctypes.addressof(moved))


# Files of the system, and how many bytes they leave: in all, in containers, and in groups of processes.
MEMINFO = "MemTotal:  9000 kB\nMemFree: 10 kB\nMemAvailable:    1000 kB\nBuffers: 5 kB\n"
SYSTEMS: dict[str, tuple[dict[str, str], int]] = {
    "nothing known": ({}, 2**63 - 1 >> 10 << 10),
    "no limits": ({"proc/meminfo": MEMINFO, "proc/self/cgroup": "0::/\n"}, 1_024_000),
    "a container": (
        {
            "proc/meminfo": MEMINFO,
            "proc/self/cgroup": "0::/\n",
            "sys/fs/cgroup/memory.max": "500000\n",
            "sys/fs/cgroup/memory.current": "400000\n",
            "sys/fs/cgroup/memory.stat": "anon 1\nactive_file 7\ninactive_file 3000\nslab 9\n",
        },
        103_000,
    ),
    "full": (
        {
            "proc/meminfo": MEMINFO,
            "sys/fs/cgroup/memory.max": "500000\n",
            "sys/fs/cgroup/memory.current": "500001\n",
        },
        0,
    ),
    "a group in a group": (
        {
            "proc/meminfo": MEMINFO,
            "proc/self/cgroup": "12:cpu:/x\n0::/jobs/mine\n",
            "sys/fs/cgroup/jobs/mine/memory.max": "max\n",
            "sys/fs/cgroup/jobs/memory.max": "70000\n",
            "sys/fs/cgroup/jobs/memory.current": "20000\n",
        },
        50_000,
    ),
    "the older kind": (
        {
            "proc/meminfo": MEMINFO,
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "30000\n",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": "20000\n",
            "sys/fs/cgroup/memory/memory.stat": "inactive_file 1\ntotal_inactive_file 500\n",
        },
        10_500,
    ),
}


@pytest.mark.skipif(sys.platform != "linux", reason="these files are those of Linux")
@pytest.mark.parametrize("system", SYSTEMS)
def test_available_memory(lib: library.Library, tmp_path: Path, system: str) -> None:
    files, wanted = SYSTEMS[system]
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    available = lib.function("available", SIZE, ctypes.c_char_p)
    assert available(str(tmp_path).encode()) == wanted
    assert 0 < available(b"") < 2**50


def test_a_loop_that_does_not_run_needs_no_room(lib: library.Library) -> None:
    too_much = lib.function("too_much", SIZE, POINTER, SIZE, SIZE)
    assert too_much(None, 5, 0) == too_much(None, 5, -3) == 0


def places(lib: library.Library, count: int, size: int) -> list[int]:
    at = np.zeros(count, np.int64)
    lib.function("places", None, SIZE, SIZE, POINTER)(count, size, at.ctypes.data)
    return at.tolist()


@pytest.mark.parametrize(("count", "size"), [(1, 1), (100, 8), (50, 10_000), (3, 5_000_000)])
def test_frames_do_not_overlap_and_are_used_again(lib: library.Library, count: int, size: int) -> None:
    first = places(lib, count, size)
    assert all(first) and not any(place % 64 for place in first)
    assert all(b - a >= size for a, b in zip(sorted(first), sorted(first)[1:], strict=False))
    assert places(lib, count, size) == first


@pytest.mark.parametrize(("start", "end"), [(1, 100), (1000, 5_000_000), (4_500_000, 9_000_001), (100, 101)])
def test_a_block_that_grows_keeps_what_is_in_it(lib: library.Library, start: int, end: int) -> None:
    assert lib.function("grown", ctypes.c_bool, SIZE, SIZE)(start, end)


def test_calls_at_the_same_time_have_memory_of_their_own(lib: library.Library) -> None:
    free = ctypes.CDLL(str(lib.path)).there_and_back  # gives up the interpreter lock
    free.argtypes, free.restype = (SIZE, ctypes.c_bool), SIZE
    found: list[int] = []

    def work() -> None:
        found.extend(free(2000, False) for _ in range(50))

    workers = [threading.Thread(target=work) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == [0] * 300
