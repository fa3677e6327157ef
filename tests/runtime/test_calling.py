"""Generated functions called from Python: arguments, results, errors, Ctrl-C, threads, no leaks, overhead.

Most tests run on both routes: the builtin function that the interpreter calls, and ctypes. Costs ten seconds.
"""

from __future__ import annotations

import ctypes
import gc
import pickle
import signal
import sys
import threading
import time
import timeit
import tracemalloc
import weakref

import numpy as np
import pytest

from dynagrad.errors import CompileError, Error
from dynagrad.runtime import calling, library
from dynagrad.runtime.calling import LeafType
from dynagrad.runtime.compiling import cache

REAL, INTEGER, BOOLEAN = LeafType("real"), LeafType("integer"), LeafType("boolean")
TEN = LeafType("real", (10,))

# What each body takes and returns, and its text.
BODIES: dict[str, tuple[list[LeafType], list[LeafType], str]] = {
    "same": ([REAL], [REAL], "*OUT(double, 0) = *IN(double, 0);"),
    "kinds": (
        [REAL, INTEGER, BOOLEAN],
        [BOOLEAN, REAL, INTEGER],
        "*OUT(bool, 0) = !*IN(bool, 2); *OUT(double, 1) = *IN(double, 0) / 2; *OUT(int64_t, 2) = *IN(int64_t, 1) - 1;",
    ),
    "integer": ([INTEGER], [INTEGER], "*OUT(int64_t, 0) = *IN(int64_t, 0);"),
    "boolean": ([BOOLEAN], [BOOLEAN], "*OUT(bool, 0) = *IN(bool, 0);"),
    "add": (
        [TEN, TEN, TEN],
        [TEN],
        "for (int i = 0; i < 10; ++i) OUT(double, 0)[i] = IN(double, 0)[i] + IN(double, 1)[i] + IN(double, 2)[i];",
    ),
    "matrix": ([LeafType("real", (2, 3))], [LeafType("real", (2, 3))], "memcpy(outputs[0], inputs[0], 48);"),
    "integers": ([LeafType("integer", (3,))], [LeafType("integer", (3,))], "memcpy(outputs[0], inputs[0], 24);"),
    "booleans": ([LeafType("boolean", (3,))], [LeafType("boolean", (3,))], "memcpy(outputs[0], inputs[0], 3);"),
    "empty": ([LeafType("real", (0, 3))], [LeafType("integer", (2, 0))], ""),
    "nothing": ([], [], ""),
    "constant": (
        [],
        [LeafType("real", (2,)), REAL],
        "OUT(double, 0)[0] = 1; OUT(double, 0)[1] = 2; *OUT(double, 1) = 3;",
    ),
    "large": ([REAL], [LeafType("real", (1 << 20,)), REAL], "OUT(double, 0)[9] = *OUT(double, 1) = *IN(double, 0);"),
    "monstrous": ([], [REAL, TEN, LeafType("real", (1 << 29, 1 << 29))], ""),
    "fails": (
        [INTEGER],
        [TEN, REAL],
        'const int64_t n = *IN(int64_t, 0);return n < 0 ? -n : context->fail(n, "row 7 \\xc2\\xb1 \\xff");',
    ),
    "talks": ([], [REAL], f'return context->fail(6, "{"much " * 100}");'),
    "spin": (
        [REAL],
        [REAL],
        """
        dynagrad::Watch watch(context);
        const int64_t until = dynagrad::coarse_time() + static_cast<int64_t>(*IN(double, 0) * 1e9);
        int64_t units = 0;
        do {
            ++units;
            if (watch.interrupted()) return dynagrad::kInterrupted;
        } while (units % 64 != 0 || dynagrad::coarse_time() < until);
        *OUT(double, 0) = static_cast<double>(units);
        """,
    ),
    "many": ([REAL] * 100, [REAL] * 100, "for (int i = 0; i < 100; ++i) *OUT(double, i) = *IN(double, 99 - i);"),
}


def source() -> str:
    text = [
        "#include <dynagrad/calls/body.hpp>",
        "#define IN(type, i) static_cast<const type*>(inputs[i])",
        "#define OUT(type, i) static_cast<type*>(outputs[i])",
    ]
    for name, (inputs, outputs, body) in BODIES.items():
        text += [
            f"DYNAGRAD_EXPORT int64_t {name}(const dynagrad::Context* context, const void* const* inputs,",
            "                               void* const* outputs) {",
            f"    {body}",
            "    return dynagrad::kDone;",
            f"}}{calling.glue(name, inputs, outputs)}",
        ]
    return "\n".join(text)


@pytest.fixture(scope="module")
def made():
    return library.load(cache.build(source(), optimise=1))


@pytest.fixture(params=["builtin", "ctypes"])
def function(request, made, monkeypatch):
    """Makes the function of a body, by one route or the other; a body with one output returns it alone."""
    if request.param == "ctypes":
        monkeypatch.setattr(calling, "PYTHON", None)
    else:
        assert calling.PYTHON is not None

    def make(body: str, /, **options):
        inputs, outputs, _ = BODIES[body]
        options = {"single": len(outputs) == 1, **options}
        return calling.callable_of(made, body, inputs, outputs, **options)

    return make


def same(found: object, expected: object) -> bool:
    """Equal in value, type and dtype."""
    if isinstance(expected, np.ndarray):
        return type(found) is np.ndarray and found.dtype is expected.dtype and np.array_equal(found, expected)
    return type(found) is type(expected) and found == expected


# -- what fits --------------------------------------------------------------------------------------------------------


def test_a_real(function):
    f = function("same")
    for x in (1.5, -0.0, 5e-324, float("inf"), np.float64(2.5)):
        assert same(f(x), float(x))
    assert np.isnan(f(float("nan")))
    assert str(f(-0.0)) == "-0.0"


def test_reals_integers_and_booleans_in_any_order(function):
    assert function("kinds")(3.0, 7, True) == (False, 1.5, 6)
    found = function("kinds")(np.float64(3), np.int64(7), np.False_)
    assert all(map(same, found, (True, 1.5, 6)))


@pytest.mark.parametrize("n", [0, -1, 1, 2**31, -(2**63), 2**63 - 1])
def test_integers_have_64_bits(function, n):
    assert same(function("integer")(n), n)
    assert same(function("integer")(np.int64(n)), n)


@pytest.mark.parametrize("b", [True, False, np.True_, np.False_])
def test_booleans(function, b):
    assert function("boolean")(b) is bool(b)


def test_arrays_come_back_new(function):
    a, b, c = np.arange(10.0), np.ones(10), np.full(10, 0.5)
    f = function("add")
    first, second = f(a, b, c), f(a, a, a)
    assert same(first, a + 1.5)
    assert same(second, 3 * a)
    assert first.flags.owndata and first.flags.writeable and first.flags.c_contiguous and first.flags.aligned
    assert not np.shares_memory(first, second)
    assert same(a, np.arange(10.0))


def test_arrays_of_integers_and_booleans(function):
    assert same(function("integers")(np.array([1, -2, 2**62])), np.array([1, -2, 2**62]))
    assert same(function("booleans")(np.array([True, False, True])), np.array([True, False, True]))


def test_arrays_without_elements(function):
    assert same(function("empty")(np.zeros((0, 3))), np.zeros((2, 0), np.int64))


def test_no_arguments_and_no_results(function):
    assert function("nothing")() == ()
    array, real = function("constant")()
    assert same(array, np.array([1.0, 2.0])) and same(real, 3.0)


def test_one_result_in_a_tuple_or_alone(function):
    assert function("same", single=False)(1.5) == (1.5,)
    assert function("same", single=True)(1.5) == 1.5
    with pytest.raises(CompileError, match="returns 3 values, not a single one"):
        function("kinds", single=True)


def test_a_hundred_leaves(function):
    assert function("many")(*map(float, range(100))) == tuple(map(float, range(99, -1, -1)))


def test_a_read_only_array_is_taken_as_it_is(function):
    a = np.arange(6.0).reshape(2, 3)
    a.flags.writeable = False
    assert same(function("matrix", otherwise=pytest.fail)(a), a)


def test_an_array_from_a_file_is_taken_as_it_is(function):
    a = pickle.loads(pickle.dumps(np.arange(6.0).reshape(2, 3)))  # its dtype is a copy
    found = function("matrix", otherwise=pytest.fail)(a)
    assert same(found, np.arange(6.0).reshape(2, 3))


# -- what does not ----------------------------------------------------------------------------------------------------


class Sub(np.ndarray):
    pass


UNFIT = {
    "transposed": np.arange(6.0).reshape(3, 2).T,
    "strided": np.arange(24.0).reshape(2, 12)[:, ::4],
    "backward": np.arange(6.0).reshape(2, 3)[::-1, ::-1],
    "broadcast": np.broadcast_to(np.arange(3.0), (2, 3)),
    "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "float32": np.arange(6, dtype=np.float32).reshape(2, 3),
    "longdouble": np.arange(6, dtype=np.longdouble).reshape(2, 3),
    "other bytes": np.arange(6.0).astype(np.dtype(np.float64).newbyteorder()).reshape(2, 3),
    "unaligned": np.frombuffer(b"x" + np.arange(6.0).tobytes(), np.uint8)[1:].view(np.float64).reshape(2, 3),
    "integers": np.arange(6).reshape(2, 3),
    "booleans": np.eye(2, 3) > 0,
    "a subclass": np.arange(6.0).reshape(2, 3).view(Sub),
    "a matrix": np.arange(6.0).reshape(2, 3).view(np.matrix),
    "lists": [[1, 2.5, 3], [4, 5, True]],
    "a buffer": memoryview(np.arange(6.0).reshape(2, 3)),
}


@pytest.mark.parametrize("x", UNFIT.values(), ids=UNFIT.keys())
def test_arrays_of_another_kind_are_converted(function, x):
    assert same(function("matrix")(x), np.array(x, dtype=float))


@pytest.mark.parametrize("x", UNFIT.values(), ids=UNFIT.keys())
def test_or_passed_on_as_they_are(function, x):
    seen = []
    f = function("matrix", otherwise=lambda *arguments: seen.append(arguments) or "done")
    assert f(x) == "done"
    assert len(seen) == 1 and len(seen[0]) == 1 and seen[0][0] is x


@pytest.mark.parametrize(
    "name, x, value",
    [
        ("same", 2, 2.0),
        ("same", True, 1.0),
        ("same", 2**70, 2.0**70),
        ("same", np.float32(0.5), 0.5),
        ("same", np.int8(3), 3.0),
        ("same", np.array(2.5), 2.5),
        ("same", np.array(3), 3.0),
        ("integer", True, 1),
        ("integer", np.uint8(200), 200),
        ("integer", np.array(4), 4),
        ("boolean", np.array(True), True),
    ],
)
def test_single_numbers_are_converted_where_nothing_is_lost(function, name, x, value):
    assert same(function(name)(x), value)


@pytest.mark.parametrize(
    "name, x, message",
    [
        ("same", "2.5", "same: argument 1 is a str, and real is expected"),
        ("same", None, "a NoneType, and real"),
        ("same", 1j, "a complex, and real"),
        ("same", np.ones(1), r"an array of shape \(1,\) and type float64, and real"),
        ("same", 10**400, "beyond the largest real, 1.798e\\+308"),
        ("same", len, "and real is expected"),
        ("integer", 1.0, "a float, and integer"),
        ("integer", 2**63, "beyond the integers of 64 bits"),
        ("integer", -(2**63) - 1, "beyond the integers of 64 bits"),
        ("integer", np.uint64(2**63), "beyond the integers of 64 bits"),
        ("boolean", 1, "a int, and boolean"),
        ("boolean", 0.0, "a float, and boolean"),
        ("matrix", 1.0, r"a float, and real\[2,3\]"),
        ("matrix", np.ones((3, 2)), r"shape \(3, 2\) and type float64, and real\[2,3\]"),
        ("matrix", np.ones(6), r"shape \(6,\)"),
        ("matrix", np.ones((1, 2, 3)), r"shape \(1, 2, 3\)"),
        ("matrix", np.ones((2, 3)) * 1j, "type complex128"),
        ("matrix", np.full((2, 3), "a"), "type <U1"),
        ("matrix", np.ones((2, 3), object), "type object"),
        ("matrix", [[1, 2, 3], [4]], "not an array of numbers"),
        ("integers", np.ones(3), r"type float64, and integer\[3\]"),
        ("integers", np.array([1, 2, 2**63], np.uint64), "beyond the integers of 64 bits"),
        ("integers", np.zeros(3, "m8[s]"), "type timedelta64"),
        ("booleans", np.ones(3, int), r"and boolean\[3\]"),
        ("empty", np.zeros((3, 0)), r"shape \(3, 0\)"),
    ],
)
def test_what_cannot_be_converted_is_refused(function, name, x, message):
    with pytest.raises(Error, match=message):
        function(name)(x)


def test_the_number_of_arguments(function):
    with pytest.raises(Error, match="same takes 1 argument, but 0 were given"):
        function("same")()
    with pytest.raises(Error, match="f takes 3 arguments, but 4 were given"):
        function("add", name="f")(1.0, 2.0, 3.0, 4.0)
    assert function("add", otherwise=lambda *arguments: len(arguments))(*range(7)) == 7
    with pytest.raises(TypeError, match="keyword"):
        function("same")(x=1.5)


def test_numbers_and_their_like_say_what_is_wrong_themselves(function):
    class Odd:
        def __array__(self, dtype=None, copy=None):
            raise Error("an odd one out")

    with pytest.raises(Error, match="an odd one out"):
        function("same")(Odd())


def test_what_otherwise_raises_is_raised(function):
    def otherwise(*arguments):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        function("same", otherwise=otherwise)("no real")


def test_otherwise_may_call_the_function_again(function):
    f = function("same", otherwise=lambda x: f(float(x)))
    assert f("1.5") == 1.5


# -- failures ---------------------------------------------------------------------------------------------------------

FAILURES = {2: MemoryError, 3: RecursionError, 4: IndexError, 5: ZeroDivisionError, 6: ValueError, 7: Error, 99: Error}


@pytest.mark.parametrize("status", FAILURES)
def test_a_status_becomes_an_exception(function, status):
    with pytest.raises(FAILURES[status], match=r"^row 7 ± .$"):
        function("fails")(status)
    with pytest.raises(FAILURES[status], match=r"full|deep|range|zero|failed|status 99"):
        function("fails")(-status)  # without a message


def test_a_long_message_is_cut(function):
    with pytest.raises(ValueError) as caught:
        function("talks")()
    assert str(caught.value) == ("much " * 100)[:255]


def test_failures_of_ones_own(function):
    seen = []
    f = function("fails", failed=lambda status, message: seen.append((status, message)) or "instead")
    assert f(64) == "instead"
    assert seen == [(64, "row 7 ± \ufffd")]


def test_no_memory_for_a_result(function):
    f, dtype = function("monstrous"), np.dtype(float)
    before = sys.getrefcount(dtype)
    for _ in range(50):
        with pytest.raises(MemoryError):
            f()
    assert sys.getrefcount(dtype) == before


def test_a_body_is_not_called_for_other_leaves(made):
    with pytest.raises(CompileError, match=r"takes and returns \(real\) -> \(real\)"):
        calling.callable_of(made, "same", [TEN], [REAL])
    with pytest.raises(CompileError, match="no text 'missing_leaves'"):
        calling.callable_of(made, "missing", [], [])


# -- loops that take long ---------------------------------------------------------------------------------------------


def test_ctrl_c_ends_a_long_call(function):
    timer = threading.Timer(0.2, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        function("spin")(20.0)
    assert time.monotonic() - start < 2
    timer.join()


def test_a_handler_that_returns_ends_nothing(function):
    hits = []
    before = signal.signal(signal.SIGINT, lambda *_: hits.append(1))
    timer = threading.Timer(0.1, lambda: signal.raise_signal(signal.SIGINT))
    try:
        timer.start()
        assert function("spin")(0.4) > 0
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert hits


def test_a_long_call_lets_other_threads_run(function):
    f, times = function("spin"), []
    thread = threading.Thread(target=lambda: times.append(f(0.5)))
    thread.start()
    start, steps = time.monotonic(), 0
    while thread.is_alive() and time.monotonic() - start < 5:
        time.sleep(0.005)
        steps += 1
    thread.join()
    assert times[0] > 0 and steps > 10


# -- threads, references, the price -----------------------------------------------------------------------------------


def test_threads_call_one_function_at_once(function):
    kinds, add, failures = function("kinds"), function("add"), []

    def work(number: int) -> None:
        a = np.full(10, float(number))
        for n in range(500):
            if kinds(float(number), n, False) != (True, number / 2, n - 1) or not same(add(a, a, a), 3 * a):
                failures.append((number, n))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert failures == []


def test_nothing_leaks(function):
    a, x, n = np.arange(10.0), 12345.678, 123456789
    dtype = np.dtype(float)
    add, kinds, fails, matrix = function("add"), function("kinds"), function("fails"), function("matrix")

    def work(times: int) -> None:
        for _ in range(times):
            add(a, a, a)
            kinds(x, n, True)
            matrix(UNFIT["float32"])
            for call in (lambda: fails(4), lambda: matrix(a), lambda: kinds(x)):
                with pytest.raises((Error, IndexError)):
                    call()

    work(20)
    gc.collect()
    before = [sys.getrefcount(o) for o in (a, x, n, dtype)]
    tracemalloc.start()
    try:
        grown = []
        for _ in range(2):  # in one of them a table of the interpreter may grow
            start = tracemalloc.get_traced_memory()[0]
            work(200)
            gc.collect()
            grown.append(tracemalloc.get_traced_memory()[0] - start)
    finally:
        tracemalloc.stop()
    assert [sys.getrefcount(o) for o in (a, x, n, dtype)] == before
    assert min(grown) < 20_000  # one leaked result per round would be 32,000 at least


def test_a_large_result_is_given_back(function):
    f = function("large")
    tracemalloc.start()
    try:
        array, real = f(2.5)
        assert tracemalloc.get_traced_memory()[0] > 8 << 20
        assert array[9] == real == 2.5
        del array
        assert tracemalloc.get_traced_memory()[0] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_function_frees_what_it_holds(function):
    class Other:
        def __call__(self, *arguments):
            return arguments

    other = Other()
    f, seen = function("same", otherwise=other), weakref.ref(other)
    del other
    assert f("x") == ("x",)
    del f
    gc.collect()
    assert seen() is None


def test_a_cycle_through_a_function_is_collected(function):
    class Dispatcher:
        def __init__(self):
            self.fast = function("same", otherwise=self.slow)

        def slow(self, x):
            return self.fast(float(x))

    dispatcher = Dispatcher()
    assert dispatcher.fast("1.5") == 1.5
    seen = weakref.ref(dispatcher)
    del dispatcher
    gc.collect()
    assert seen() is None


def test_a_million_calls_take_a_fraction_of_a_second(made):
    same, add = (calling.callable_of(made, name, *BODIES[name][:2], single=True) for name in ("same", "add"))
    a = np.ones(10)
    scalar = timeit.timeit("f(1.5)", globals={"f": same}, number=1_000_000) * 1000
    arrays = min(timeit.repeat("f(a, a, a)", globals={"f": add, "a": a}, number=100_000, repeat=3)) * 10_000
    assert scalar < 500  # nanoseconds; about 30 on a machine with nothing else to do
    assert arrays < 1000  # about 60


# -- where objects lie elsewhere --------------------------------------------------------------------------------------


def test_another_layout_is_noticed(monkeypatch):
    assert calling._as_expected()
    fields = calling._Array._fields_
    swapped = (*fields[:2], fields[3], fields[2], *fields[4:])
    monkeypatch.setattr(calling, "_Array", type("Other", (ctypes.Structure,), {"_fields_": swapped}))
    assert not calling._as_expected()
    assert calling._table() is None


def test_another_interpreter_is_noticed(monkeypatch):
    monkeypatch.setattr(sys, "implementation", type("Other", (), {"name": "other"}))
    assert calling._table() is None
