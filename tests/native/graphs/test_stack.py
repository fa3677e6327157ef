"""Stacks of what loops save, and the memory of a call: values come off as they went on, and memory is used again."""

from __future__ import annotations

import ctypes
import threading

import numpy as np
import pytest

from dynagrad.native import cache, library

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
    return stack.room(words, rounds) ? kDone : call.memory();
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
