"""Generated functions as builtin functions of Python (a foreign function interface), with calls as cheap as its own.

The numbers and arrays that a generated function takes and returns are its leaves. Its body knows nothing of Python
(`calls/body.hpp`); `glue` writes a wrapper for it in the same library, and `callable_of` makes a builtin function of
that. The interpreter then calls the library directly, which reads floats and numpy arrays in place (`calls/python.hpp`)
through a table of pointers that is filled here, so that it is compiled without the headers of Python and works with
every version. Where the memory layout of objects is not that of CPython, which is checked once, at import, `ctypes`
calls the body: slower, and the same to the caller.

Arguments that do not fit exactly (an integer for a real, a float32 or strided array, a list) are passed to a Python
function, `otherwise`. Nested structures of leaves are for `walking.py`.

It is long because the wrappers, written in C++, and the tables that they read have to agree.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

import numpy as np

from ..errors import CompileError, DepthError, Error, NotConverged, PlaceError, RoomError, counted
from .library import MAIN, Library, host
from .shared import SHARED, numbers

Kind = Literal["real", "integer", "boolean"]


@dataclass(frozen=True, slots=True)
class LeafType:
    """The type of an argument or result: a kind of number, and the shape of an array; the empty shape is a scalar.

    A scalar real is a float (or numpy.float64) and is returned as a float; likewise int (numpy.int64) and bool. Arrays
    are of float64, int64 and bool.

    >>> print(LeafType("real"), LeafType("integer", (2, 3)))
    real integer[2,3]
    """

    kind: Kind
    shape: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}[{','.join(map(str, self.shape))}]" if self.shape else self.kind


@dataclass(frozen=True, slots=True)
class _Numbers:
    """A kind of number: its types, and the kinds of numpy's dtypes that convert to it without loss."""

    cxx: str
    ctype: type[Any]
    dtype: np.dtype[Any]
    single: type
    exact: tuple[type, type]
    takes: str


_KINDS: dict[Kind, _Numbers] = {
    "real": _Numbers("dynagrad::kReal", ctypes.c_double, np.dtype(np.float64), float, (float, np.float64), "fiub"),
    "integer": _Numbers("dynagrad::kInteger", ctypes.c_int64, np.dtype(np.int64), int, (int, np.int64), "iub"),
    "boolean": _Numbers("dynagrad::kBoolean", ctypes.c_bool, np.dtype(np.bool_), bool, (bool, np.bool_), "b"),
}

_OUTCOMES = numbers("Outcome")

# The exceptions for the statuses of a body, and their messages if it gives none.
_FAILURES: dict[int, tuple[type[BaseException], str]] = {
    _OUTCOMES.INTERRUPTED: (KeyboardInterrupt, ""),
    _OUTCOMES.MEMORY: (RoomError, "the memory is full"),
    _OUTCOMES.RECURSION: (DepthError, "the recursion is too deep"),
    _OUTCOMES.INDEX: (PlaceError, "an index is out of range"),
    _OUTCOMES.DIVISION: (ZeroDivisionError, "division by zero"),
    _OUTCOMES.VALUE: (ValueError, "a value is out of range"),
    _OUTCOMES.FAILED: (Error, "the compiled function failed"),
    _OUTCOMES.LATE: (NotConverged, "a call takes longer than it may"),
}


class Given:
    """Data that a body gets with each call besides its arguments (`Context::given`): addresses, and their owners.

    It belongs to one function, while functions may share a library.

    >>> Given([None, np.zeros(3)]).count
    2
    """

    def __init__(self, items: Sequence[Any]) -> None:
        self.count = len(items)
        self.kept = tuple(items)
        self.table = (ctypes.c_void_p * self.count)(*map(_place, items))
        self.address = ctypes.addressof(self.table)


def _place(item: Any) -> int | None:
    """The address of an array, or of a ctypes function."""
    if item is None:
        return None
    return _address(item) if isinstance(item, np.ndarray) else ctypes.cast(item, ctypes.c_void_p).value


_FEW = 4
_REAL = LeafType("real")


def glue(name: str, inputs: Sequence[LeafType], outputs: Sequence[LeafType], given: int = 0) -> str:
    """The C++ wrapper to append to the body called `name`, for `callable_of`.

    `given` is the number of addresses that the body gets with each call.

    The source before it includes `<dynagrad/calls/body.hpp>` and defines

        DYNAGRAD_EXPORT int64_t name(const dynagrad::Context*, const void* const* inputs, void* const* outputs)
    """

    def leaves(part: str, several: Sequence[LeafType]) -> list[str]:
        shapes = [
            f"static constexpr intptr_t {name}_{part}{at}[] = {{{', '.join(map(str, leaf.shape))}}};"
            for at, leaf in enumerate(several)
            if leaf.shape
        ]
        rows = [
            f"{{{_KINDS[leaf.kind].cxx}, {len(leaf.shape)}, {f'{name}_{part}{at}' if leaf.shape else 'nullptr'}}}"
            for at, leaf in enumerate(several)
        ]
        # An array of C++ has at least one element.
        listed = ", ".join(rows or ["{dynagrad::kReal, 0, nullptr}"])
        return [*shapes, f"static constexpr dynagrad::Leaf {name}_{part}[] = {{{listed}}};"]

    def entry(single: bool) -> str:
        called = _entry(name, single)
        few = single and not given and 0 < len(inputs) <= _FEW and all(leaf == _REAL for leaf in (*inputs, *outputs))
        call = f"call_of_reals<{len(inputs)}>" if few else "call"
        rest = f"{len(inputs)}, {len(outputs)}, {'true' if single else 'false'}, {'true' if given else 'false'}"
        return (
            f"static constexpr dynagrad::Form {called}_form = {{{name}_in, {name}_out, {rest}}};\n"
            f"DYNAGRAD_EXPORT void* {called}(void* self, void* const* arguments, intptr_t count) {{\n"
            f"    return dynagrad::{call}({name}, {called}_form, self, arguments, count);\n"
            "}"
        )

    lines = [
        "#include <dynagrad/calls/python.hpp>",
        *leaves("in", inputs),
        *leaves("out", outputs),
        entry(single=False),
    ]
    if len(outputs) == 1:
        lines.append(entry(single=True))
    lines.append(f"DYNAGRAD_EXPORT const char {name}_leaves[] = {_signature(inputs, outputs, given)};")
    return "\n" + "\n".join(lines) + "\n"


def callable_of(
    library: Library,
    symbol: str,
    inputs: Sequence[LeafType],
    outputs: Sequence[LeafType],
    *,
    single: bool = False,
    name: str | None = None,
    otherwise: Callable[..., Any] | None = None,
    failed: Callable[[int, str], Any] | None = None,
    given: Given | None = None,
) -> Callable[..., Any]:
    """The body `symbol` of a library, with its `glue`, as a function from positional inputs to a tuple of outputs.

    With `single` it returns its only output instead. Arguments that do not fit the leaves exactly are passed to
    `otherwise(*arguments)`, whose result is returned; by default they are converted where that is lossless (integers to
    reals, any layout, byte order, lists), and refused with an `Error` otherwise. If the body returns a status other
    than 0, `failed(status, message)` has to raise; by default, `failure`. Arguments are never changed, results are new,
    and many threads may call at once. `given` has the data that the body gets with each call, as many addresses as
    `glue` was told.

    >>> from dynagrad.runtime.compiling import cache
    >>> from dynagrad.runtime import library
    >>> one = [LeafType("real")]
    >>> body = '''#include <dynagrad/calls/body.hpp>
    ... DYNAGRAD_EXPORT int64_t twice(const dynagrad::Context*, const void* const* inputs, void* const* outputs) {
    ...     *static_cast<double*>(outputs[0]) = 2 * *static_cast<const double*>(inputs[0]);
    ...     return dynagrad::kDone;
    ... }'''
    >>> made = library.load(cache.build(body + glue("twice", one, one)))
    >>> callable_of(made, "twice", one, one, single=True)(1.5)
    3.0
    """
    said = library.text(f"{symbol}_leaves")
    if _quoted(said) != _signature(inputs, outputs, 0 if given is None else given.count):
        raise CompileError(f"{symbol} in {library.path} takes and returns {said}, and was taken for another")
    if single and len(outputs) != 1:
        raise CompileError(f"{symbol} returns {counted(len(outputs), 'value')}, not a single one")
    inputs, outputs, name, failed = tuple(inputs), tuple(outputs), name or symbol, failed or failure

    def make(otherwise: Callable[..., Any]) -> Callable[..., Any]:
        if PYTHON is None:
            return _slow(library, symbol, inputs, outputs, single, name, otherwise, failed, given)
        return _fast(PYTHON, library, symbol, single, name, otherwise, failed, given)

    return make(otherwise or _converting(name, inputs, make(_refuse)))


def failure(status: int, message: str, name: str = "") -> NoReturn:
    """Raises the exception for a status of a body (`Outcome` in shared.h), with its message.

    >>> failure(4, "row 7 of 5", "pick")
    Traceback (most recent call last):
    dynagrad.errors.PlaceError: pick: row 7 of 5
    """
    kind, words = _FAILURES.get(status, (Error, f"the compiled function ended with status {status}"))
    raise kind(f"{name}: {message or words}" if name and issubclass(kind, Error) else message or words)


def _entry(name: str, single: bool) -> str:
    """The name of the function that the interpreter calls."""
    return f"{name}_call_{'single' if single else 'tuple'}"


def _signature(inputs: Sequence[LeafType], outputs: Sequence[LeafType], given: int) -> str:
    """The leaves as a C++ string, by which a library is checked."""
    more = f", given {given}" if given else ""
    return _quoted(f"({', '.join(map(str, inputs))}) -> ({', '.join(map(str, outputs))}){more}")


def _quoted(text: str) -> str:
    return f'"{text}"'


# -- the fast route ---------------------------------------------------------------------------------------------------

_NEW_ARRAY = 94  # the index of PyArray_NewFromDescr in numpy's table of functions for extensions
_METH_FASTCALL = 0x80


class _Method(ctypes.Structure):
    """`PyMethodDef` of CPython."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_Array = SHARED.structure("ArrayFields")
"""The first fields of a numpy array."""

_Descr = SHARED.structure("DescrFields")
"""The first fields of a numpy dtype."""


def _as_expected() -> bool:
    """Whether the memory layout of objects and arrays is that which python.hpp assumes, tried on some of each."""
    # objects have another size in an interpreter without a lock, or one that traces references
    if sys.implementation.name != "cpython" or object.__basicsize__ != 16 or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    if any(ctypes.c_void_p.from_address(id(x) + 8).value != id(type(x)) for x in (1.5, 7, True, np.float64(1.5))):
        return False
    plain = np.zeros((2, 3))
    arrays: list[np.ndarray[Any, Any]] = [plain, plain[:, ::2], plain.T, np.zeros(0), np.zeros(3, np.bool_)]
    arrays += [np.zeros((1, 2, 3), np.int64), np.zeros(2, ">f8"), np.zeros(2, "<f8"), np.zeros(2, "f4")]
    arrays += [np.frombuffer(bytes(25), np.uint8)[1:].view(np.float64)]
    return all(map(_array_as_expected, arrays))


def _array_as_expected(a: np.ndarray[Any, Any]) -> bool:
    """Whether an array and its dtype have their fields in the expected places; pointers are followed last."""
    found, descr = _Array.from_address(id(a)), _Descr.from_address(id(a.dtype))
    seen = (found.type, found.data, found.dimensions, found.descr, found.flags)
    said = (id(np.ndarray), a.ctypes.data, a.ndim, id(a.dtype), a.flags.num)
    if seen != said or (descr.byteorder.decode(), descr.number) != (a.dtype.byteorder, a.dtype.num):
        return False
    lengths = ctypes.c_ssize_t * a.ndim
    shape, strides = (lengths.from_address(place) if place else () for place in (found.shape, found.strides))
    return (tuple(shape), tuple(strides)) == (a.shape, a.strides)


def _new_array() -> int | None:
    """The address of numpy's function that makes arrays; None for an unknown version of numpy."""
    try:
        inside = importlib.import_module("numpy._core._multiarray_umath")
    except ImportError:  # before numpy 2
        inside = importlib.import_module("numpy.core._multiarray_umath")
    pointer = ctypes.pythonapi["PyCapsule_GetPointer"]
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table = (ctypes.c_void_p * (_NEW_ARRAY + 1)).from_address(pointer(inside._ARRAY_API, None))
    version = ctypes.PYFUNCTYPE(ctypes.c_uint)(table[0] or 0)()
    return table[_NEW_ARRAY] if version >> 24 in (1, 2) else None


Python = SHARED.structure("Python")
"""Functions and objects of the interpreter and of numpy, for libraries."""


def pointers(structure: str) -> dict[str, int | None]:
    """The addresses of the interpreter's functions that are named in a structure."""
    named = [name for name in SHARED.members(structure) if name.startswith("Py")]
    return {name: ctypes.cast(ctypes.pythonapi[name], ctypes.c_void_p).value for name in named}


def _table() -> Any:
    """The table that is passed to libraries; None where the interpreter or numpy is not as expected."""
    try:
        if not _as_expected():
            return None
        found = {**pointers("Python"), "new_array": _new_array(), "array_type": id(np.ndarray)}
    except (AttributeError, ImportError, ValueError):  # something is missing, in this interpreter or this numpy
        return None
    if not all(found.values()):
        return None
    table = Python(**found, host=MAIN, truths=(id(True), id(np.True_)))
    for kind, of in _KINDS.items():
        number = numbers("NumberKind")[kind.upper()]
        table.descr[number] = id(of.dtype)
        table.types[number][:] = list(map(id, of.exact if kind != "boolean" else (False, np.False_)))
    return table


PYTHON = _table()
"""The table that is passed to libraries, or None if they are called by `ctypes`."""


def _fast(
    table: Any,
    library: Library,
    symbol: str,
    single: bool,
    name: str,
    otherwise: Callable[..., Any],
    failed: Callable[[int, str], Any],
    given: Given | None,
) -> Callable[..., Any]:
    """The body as a builtin function."""
    library.shared("dg_python")(ctypes.addressof(table))
    method = method_of(library, _entry(symbol, single), name)
    # The definition, the data and the library have to live as long as the function, which holds this tuple.
    return builtin_of(method, (otherwise, failed, 0 if given is None else given.address, given, method, library))


def method_of(library: Library, symbol: str, name: str) -> _Method:
    """The definition of a builtin function with calling convention METH_FASTCALL."""
    address = ctypes.cast(library.function(symbol, None), ctypes.c_void_p).value  # type: ignore[arg-type]  # what is known of it above is more than its type says
    return _Method(name.encode(), address, _METH_FASTCALL, None)


def builtin_of(method: _Method, held: tuple[Any, ...]) -> Callable[..., Any]:
    """A builtin function of a definition, which has to stay alive; `held`, its `self`, has what has to."""
    new = ctypes.pythonapi["PyCFunction_NewEx"]
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    made: Callable[..., Any] = new(ctypes.addressof(method), held, None)
    return made


# -- the slow route ---------------------------------------------------------------------------------------------------

Context = SHARED.structure("Context")
"""What a body gets with each call besides its arguments."""


def _slow(
    library: Library,
    symbol: str,
    inputs: Sequence[LeafType],
    outputs: Sequence[LeafType],
    single: bool,
    name: str,
    otherwise: Callable[..., Any],
    failed: Callable[[int, str], Any],
    given: Given | None,
) -> Callable[..., Any]:
    """The body as a function that calls it by ctypes."""
    body = library.function(symbol, *SHARED.callback("Body"))
    ins, outs = ctypes.c_void_p * len(inputs), ctypes.c_void_p * len(outputs)
    text = ctypes.c_char * SHARED.constant("kMessage")

    def call(*arguments: Any) -> Any:
        if len(arguments) != len(inputs) or not all(map(_fits, inputs, arguments)):
            return otherwise(*arguments)
        taken = [x if leaf.shape else _KINDS[leaf.kind].ctype(x) for leaf, x in zip(inputs, arguments, strict=True)]
        try:
            made: list[Any] = [np.empty(leaf.shape, of.dtype) if leaf.shape else of.ctype() for leaf, of in kinds]
        except MemoryError:
            return failed(_OUTCOMES.MEMORY, "there is no memory for an array that it returns")
        message = text()
        context = Context(host(), ctypes.addressof(message), None if given is None else given.address)
        status = body(ctypes.addressof(context), ins(*map(_address, taken)), outs(*map(_address, made)))
        if status != _OUTCOMES.DONE:
            return failed(status, message.value.decode(errors="replace"))
        results = tuple(x if leaf.shape else x.value for leaf, x in zip(outputs, made, strict=True))
        return results[0] if single else results

    kinds = [(leaf, _KINDS[leaf.kind]) for leaf in outputs]
    call.held = library  # type: ignore[attr-defined]  # which lives as long as the function
    call.__name__ = call.__qualname__ = name
    return call


def _address(x: Any) -> int:
    """The address of an array's data, or of a ctypes number."""
    place: int = x.__array_interface__["data"][0] if type(x) is np.ndarray else ctypes.addressof(x)
    return place


def _fits(leaf: LeafType, x: Any) -> bool:
    """Whether an argument is exactly of a leaf's type."""
    numbers = _KINDS[leaf.kind]
    if not leaf.shape:
        return type(x) in numbers.exact and (leaf.kind != "integer" or -(2**63) <= x < 2**63)
    return (
        type(x) is np.ndarray
        and x.shape == leaf.shape
        and (x.dtype.num, x.dtype.byteorder) == (numbers.dtype.num, numbers.dtype.byteorder)
        and x.flags.c_contiguous
        and x.flags.aligned
    )


# -- conversion of arguments that do not fit --------------------------------------------------------------------------


def _refuse(*arguments: Any) -> NoReturn:
    """The `otherwise` of calls with converted arguments, which always fit."""
    raise Error(
        f"a compiled function does not take {counted(len(arguments), 'converted argument')}; this is a bug in Dynagrad"
    )


def _converting(name: str, inputs: Sequence[LeafType], call: Callable[..., Any]) -> Callable[..., Any]:
    """A function that converts its arguments to the types of the leaves, or raises `Error`, and calls."""

    def convert_and_call(*arguments: Any) -> Any:
        if len(arguments) != len(inputs):
            count = counted(len(inputs), "argument")
            raise Error(f"{name} takes {count}, but {len(arguments)} were given")
        return call(*map(_convert, names, inputs, arguments))

    names = [f"{name}: argument {at + 1}" for at in range(len(inputs))]
    return convert_and_call


def _convert(name: str, leaf: LeafType, x: Any) -> Any:
    """An argument converted to the type of a leaf: a float, int or bool, or a contiguous array."""
    numbers = _KINDS[leaf.kind]
    if isinstance(x, int) and not leaf.shape and leaf.kind != "boolean":  # numpy would look at its size first
        try:
            number = numbers.single(x)
        except OverflowError:
            raise Error(f"{name} is beyond the largest real, {sys.float_info.max:.4g}") from None
        if leaf.kind == "integer" and not _fits(leaf, number):
            raise Error(f"{name} is beyond the integers of 64 bits")
        return number
    if _fits(leaf, x):
        return x
    try:
        a = np.asarray(x)
    except (TypeError, ValueError) as error:
        raise Error(f"{name} is not an array of numbers: {error}") from None
    if a.shape != leaf.shape or a.dtype.kind not in numbers.takes:
        what = f"an array of shape {a.shape} and type {a.dtype}" if a.shape else f"a {type(x).__name__}"
        raise Error(f"{name} is {what}, and {leaf} is expected")
    if leaf.kind == "integer" and a.dtype.kind == "u" and a.size and int(a.max()) >= 2**63:
        raise Error(f"{name} is beyond the integers of 64 bits")
    if not leaf.shape:
        return numbers.single(a.item())
    fresh = np.empty(leaf.shape, numbers.dtype)
    fresh[...] = a
    return fresh
