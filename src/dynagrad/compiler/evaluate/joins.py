"""The join of two abstract values: one value that stands for either, where only the graph knows which.

An abstract value has static parts and dynamic leaves (a partially static structure, in the terms of partial
evaluation). `join` keeps static parts that agree; numbers that differ become dynamic (whole numbers become reals where
the other is one); structures must agree, or `Mismatch` says where they do not. `flatten` takes the numbers out of a
value, `build` puts others in. References are new in what is built, unless both sides had the same one.

These are structures of the specialiser's values; those of Python's values are taken apart by `eager/pytree.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import Error, counted
from ...ir import Node
from ...ir.node import constant
from ...ir.ops.cells import REAL, TRUTH
from ...ir.types import KINDS, Type, arrays
from ...ir.types import heap as heap_type
from ..frontend.core import UNDEFINED
from .heap.tags import NUMBER
from .heap.unions import NO_KIND, NoUnion, boxed, is_constant, is_structure, keys, one_kind
from .limits import most_parts
from .values import (
    NOW,
    Array,
    Cell,
    Closure,
    Dict,
    Heap,
    HostFunction,
    Instance,
    Iteration,
    Kinds,
    List,
    Masked,
    Optional,
    Ref,
    Union,
    as_type,
    describe,
    is_number,
    node_of,
    rebuilt,
    type_of,
    zero,
)

SHARED = (
    "it may be the same as what another name holds, since which one it is is decided by a choice or a loop; "
    "change a copy of it (x = x.copy()), or write x = x + y instead of x += y"
)


@dataclass(frozen=True, slots=True)
class AtIndex:
    """A step of a path: to an item."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@dataclass(frozen=True, slots=True)
class AtName:
    """A step of a path: to an attribute, or to a variable of a function."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


@dataclass(frozen=True, eq=False, slots=True)
class InContent:
    """The first step of a path: to the content of a reference, as a tuple (`choices.content_values`)."""

    ref: Ref
    content: Any


Path = tuple[AtIndex | AtName | InContent, ...]
"""From a value to a part of it."""


class Mismatch(Exception):
    """Two values that cannot be joined: what they are, and the path to them."""

    def __init__(self, path: Path, a: str, b: str) -> None:
        super().__init__(path, a, b)
        self.path, self.a, self.b = path, a, b


@dataclass(frozen=True, eq=False, slots=True)
class Static:
    """A static value, or a reference that is the same on both sides."""

    value: Any


@dataclass(frozen=True, eq=False, slots=True)
class Dynamic:
    """A dynamic number, or a new array with dynamic content."""

    type: Type
    array: bool


@dataclass(frozen=True, eq=False, slots=True)
class Structured:
    """A structure of abstract values; structures with equal keys can be joined part by part."""

    key: tuple[Any, ...]
    parts: tuple[AbstractValue, ...]
    make: Callable[[list[Any]], Any]


@dataclass(frozen=True, eq=False, slots=True)
class Heaped:
    """A cell that may be one of several things."""

    kinds: Kinds


AbstractValue = Static | Dynamic | Structured | Heaped


def destructure(x: Any, heap: Heap = NOW) -> tuple[tuple[Any, ...], list[Any], Callable[[list[Any]], Any]] | None:
    """The key, the parts and the constructor of a structure; None for other values."""
    content: Any = heap.get(x, x.content) if isinstance(x, Ref) else None
    match x:
        case tuple():
            return ("tuple", type(x), len(x)), list(x), lambda parts: rebuilt(x, parts)
        case List():
            return ("list", len(content)), list(content), lambda parts: List(tuple(parts), SHARED)
        case Dict():
            keys, empty = tuple(content), x.empty
            return (
                ("dict", type(empty), x.factory, keys),
                list(content.values()),
                lambda parts: Dict(dict(zip(keys, parts, strict=True)), SHARED, empty),
            )
        case Instance():
            names, cls, frozen = tuple(content), x.cls, x.frozen
            return (
                ("object", cls, names),
                list(content.values()),
                lambda parts: Instance(cls, dict(zip(names, parts, strict=True)), SHARED, frozen),
            )
        case Cell():
            name = x.name
            return ("cell", name), [content], lambda parts: Cell(parts[0], name, SHARED)
        case Closure():
            names = tuple(x.captured)
            defaults = tuple(x.defaults)
            code, group, n = x.code, x.group, len(names)
            return (
                ("function", code, names, defaults),
                [*x.captured.values(), *x.defaults.values()],
                lambda parts: Closure(
                    code,
                    dict(zip(names, parts[:n], strict=True)),
                    group,
                    dict(zip(defaults, parts[n:], strict=True)),
                ),
            )
        case HostFunction():
            kind, run = x.kind, x.run
            return (
                ("made", kind, len(x.captured)),
                list(x.captured),
                lambda parts: HostFunction(kind, run, tuple(parts)),
            )
        case Iteration():
            kind = x.kind
            return ("items", kind, len(x.operands)), list(x.operands), lambda parts: Iteration(kind, tuple(parts))
        case Masked():
            at = x.at
            return ("masked",), [x.values, x.mask], lambda parts: Masked(node_of(parts[0]), node_of(parts[1]), at)
        case Optional():
            return ("optional",), [x.present, x.value], lambda parts: Optional(*parts)
        case slice():
            return ("slice",), [x.start, x.stop, x.step], lambda parts: slice(*parts)
    return None


def abstract(
    x: Any, *, deep: bool = False, vary: bool = False, heap: Heap = NOW, left: list[int] | None = None
) -> AbstractValue:
    """The abstract value of a value. `deep` opens references and closures too; `vary` makes static reals dynamic.
    Raises Error where it has too many parts; those `left` are counted."""
    if isinstance(x, Node):
        return Dynamic(x.type, False)
    if isinstance(x, Union):
        return Heaped(x.kinds)
    if isinstance(x, Array):
        return _leaf(x) if deep and isinstance(x.read(heap), Node) else Static(x)
    if vary and type(x) is float:
        return Dynamic(_type(x), False)
    if isinstance(x, Ref) and not deep:
        return Static(x)
    if isinstance(x, Closure | HostFunction) and not deep:
        return Static(x)
    parts = destructure(x, heap)
    if parts is None:
        return Static(x)
    key, inside, make = parts
    vary = vary and not isinstance(x, slice)
    left = [most_parts()] if left is None else left
    left[0] -= len(inside)
    if left[0] < 0:
        raise Error(
            f"a structure with more than {counted(most_parts(), 'part')}, of which some may be shared, is made "
            "while this is "
            "compiled; does it grow without end?"
        )
    return Structured(key, tuple(abstract(p, deep=deep, vary=vary, heap=heap, left=left) for p in inside), make)


def _type(x: Any) -> Type:
    t = type_of(x)
    assert t is not None
    return t


def _leaf(x: Any) -> Dynamic:
    return Dynamic(_type(x), True)


def expanded(p: AbstractValue, heap: Heap = NOW) -> AbstractValue:
    """A static structure as a structure of abstract values."""
    if not isinstance(p, Static):
        return p
    x = p.value
    if isinstance(x, Array) or (isinstance(x, np.ndarray) and type_of(x) is not None):
        return _leaf(x)
    parts = destructure(x, heap)
    return p if parts is None else Structured(parts[0], tuple(abstract(part, heap=heap) for part in parts[1]), parts[2])


_ORDER = {"boolean": 0, "integer": 1, "real": 2}


def join(p: AbstractValue, q: AbstractValue, path: Path = (), first: Heap = NOW, second: Heap = NOW) -> AbstractValue:
    """The least abstract value above two, whose references have the contents of two heaps. Raises Mismatch."""
    if isinstance(p, Static) and isinstance(q, Static) and same(p.value, q.value):
        return p
    if isinstance(p, Static) and p.value is UNDEFINED:
        return q
    if isinstance(q, Static) and q.value is UNDEFINED:
        return p
    if isinstance(p, Heaped) or isinstance(q, Heaped):
        return _united(p, q, path, first, second)
    if _optional.get() and (_is_none(p) or _is_none(q) or _is_optional(p) or _is_optional(q)):
        return _join_optional(p, q, path, first, second)
    a, b = expanded(p, first), expanded(q, second)
    if isinstance(a, Structured) and isinstance(b, Structured):
        if a.key != b.key:
            return _different(p, q, path, first, second)
        names: Sequence[Any] = range(len(a.parts))
        if a.key[0] in ("dict", "object"):
            names = a.key[-1]
        elif a.key[0] == "function":
            names = [*a.key[2], *a.key[3]]
        step = AtIndex if a.key[0] in ("tuple", "list", "dict") else AtName
        merged = tuple(
            join(x, y, (*path, step(n)), first, second) for n, x, y in zip(names, a.parts, b.parts, strict=True)
        )
        return Structured(a.key, merged, a.make)
    types = _type_in(a), _type_in(b)
    if types[0] is None or types[1] is None or types[0].shape != types[1].shape:
        return _different(p, q, path, first, second)
    kinds = types[0].kind, types[1].kind
    if "boolean" in kinds and kinds[0] != kinds[1]:
        return _different(p, q, path, first, second)
    higher = max(types, key=lambda t: _ORDER[t.kind])  # type: ignore[union-attr]  # checked above: not None
    assert higher is not None
    return Dynamic(arrays(higher, types[0].shape), bool(higher.shape))


# -- values of different kinds -----------------------------------------------------------------------------------------

_unions: ContextVar[bool] = ContextVar("unions", default=False)


@contextmanager
def allow_unions(allowed: bool = True) -> Iterator[None]:
    """Inside, the join of values of different kinds is a `Union` instead of a Mismatch."""
    before = _unions.set(allowed)
    try:
        yield
    finally:
        _unions.reset(before)


def _different(p: AbstractValue, q: AbstractValue, path: Path, first: Heap, second: Heap) -> AbstractValue:
    if not _unions.get():
        raise Mismatch(path, describe_abstract(p), describe_abstract(q))
    return _united(p, q, path, first, second)


def _united(p: AbstractValue, q: AbstractValue, path: Path, first: Heap, second: Heap) -> AbstractValue:
    try:
        return Heaped(kinds_of(p, first) | kinds_of(q, second))
    except NoUnion:
        raise Mismatch(path, describe_abstract(p), describe_abstract(q)) from None


def kinds_of(p: AbstractValue, heap: Heap = NOW) -> Kinds:
    """What the cell of a value may be. Raises NoUnion."""
    if isinstance(p, Heaped):
        return p.kinds
    if isinstance(p, Static) and p.value is UNDEFINED:
        return NO_KIND
    p = expanded(p, heap) if not isinstance(p, Static) or is_structure(p.value) else p
    if isinstance(p, Structured):
        if p.key[0] not in ("tuple", "function", "made"):
            raise NoUnion
        if p.key[0] == "tuple" and hasattr(p.key[1], "heap_number"):
            return NUMBER
        key = keys().record(p.key, len(p.parts), p.make)
        return one_kind(key, [kinds_of(part, heap) for part in p.parts])
    if isinstance(p, Static) and is_constant(p.value):
        return one_kind(keys().constant(p.value))
    t = _type_in(p)
    if t is None or t.shape or t.kind not in ("real", "boolean"):
        raise NoUnion
    return one_kind(REAL if t.kind == "real" else TRUTH)


# -- None or a value ---------------------------------------------------------------------------------------------------

_optional: ContextVar[bool] = ContextVar("optional", default=False)


@contextmanager
def allow_optional() -> Iterator[None]:
    """Inside, the join of None and a value is an `Optional` instead of a Mismatch."""
    before = _optional.set(True)
    try:
        yield
    finally:
        _optional.reset(before)


def _is_none(p: AbstractValue) -> bool:
    return isinstance(p, Static) and p.value is None


def _is_optional(p: AbstractValue) -> bool:
    return isinstance(p, Structured) and p.key == ("optional",)


def _dynamic(p: AbstractValue, heap: Heap) -> AbstractValue:
    """An abstract value with references opened, so that their numbers are leaves: the other branch has none of them."""
    if isinstance(p, Static):
        return abstract(p.value, deep=True, heap=heap)
    return (
        p
        if isinstance(p, Dynamic | Heaped)
        else Structured(p.key, tuple(_dynamic(part, heap) for part in p.parts), p.make)
    )


def _join_optional(p: AbstractValue, q: AbstractValue, path: Path, first: Heap, second: Heap) -> AbstractValue:
    """The join where at least one side may be None, but not both are None."""

    def value_of(x: AbstractValue, heap: Heap) -> AbstractValue:
        if _is_none(x):
            return Static(UNDEFINED)
        return x.parts[1] if isinstance(x, Structured) and _is_optional(x) else _dynamic(x, heap)

    value = join(value_of(p, first), value_of(q, second), path, first, second)
    return Structured(("optional",), (Dynamic(KINDS["boolean"], False), value), lambda parts: Optional(*parts))


def _type_in(p: AbstractValue) -> Type | None:
    if isinstance(p, Dynamic):
        return p.type
    return type_of(p.value) if isinstance(p, Static) else None


def describe_abstract(p: AbstractValue) -> str:
    """What an abstract value is, for a message."""
    match p:
        case Static():
            return "nothing" if p.value is UNDEFINED else describe(p.value)
        case Dynamic():
            names = {"real": "a real", "integer": "a whole number", "boolean": "a truth value"}
            plural = {"real": "reals", "integer": "whole numbers", "boolean": "truth values"}[p.type.kind]
            return f"an array of {plural} of shape {p.type.shape}" if p.type.shape else names[p.type.kind]
        case Heaped():
            return "a value of several kinds"
    if _is_optional(p):
        return f"either None or {describe_abstract(p.parts[1])}"
    kind = {"tuple": "tuple", "list": "list", "dict": "dict"}.get(p.key[0])
    if kind is None:
        return f"the function {p.key[1].name}" if p.key[0] == "function" else f"a {p.key[0]}"
    return f"a {kind} of {len(p.parts)}"


def same(a: Any, b: Any) -> bool:
    """Whether two static values are the same; 0.0 and -0.0 are not."""
    if a is b:
        return True
    if type(a) is not type(b) or isinstance(a, Node | Ref | Closure | HostFunction | Iteration):
        return False
    if isinstance(a, float):
        return (a == b and str(a) == str(b)) or (a != a and b != b)
    if is_number(a) or isinstance(a, str | bytes):
        return bool(a == b)
    if isinstance(a, np.ndarray):
        return a.shape == b.shape and a.dtype == b.dtype and bool(np.array_equal(a, b))
    try:
        return bool(a == b) if hasattr(a, "__eq__") and not isinstance(a, Node) else False
    except Exception:
        return False


def flatten(x: Any, p: AbstractValue, heap: Heap = NOW) -> Iterator[Node]:
    """The numbers of a value at the leaves of an abstract value above it."""
    if isinstance(p, Static):
        return
    if isinstance(p, Heaped):
        yield boxed(x, lambda y: destructure(y, heap))
        return
    if isinstance(p, Dynamic):
        yield zero(p.type) if x is UNDEFINED else as_type(x.read(heap) if isinstance(x, Array) else x, p.type)
        return
    if x is UNDEFINED:
        for part in p.parts:
            yield from flatten(x, part)
        return
    if p.key == ("optional",) and not isinstance(x, Optional):
        x = Optional(constant(x is not None), UNDEFINED if x is None else x)
    parts = destructure(x, heap)
    if parts is None or parts[0] != p.key:
        raise Error(f"{describe(x)} is not {describe_abstract(p)}")
    for each, part in zip(parts[1], p.parts, strict=True):
        yield from flatten(each, part, heap)


def build(p: AbstractValue, nodes: Iterator[Node], owner: str = SHARED) -> Any:
    """The value of an abstract value with these numbers at its leaves."""
    if isinstance(p, Static):
        return p.value
    if isinstance(p, Dynamic):
        node = next(nodes)
        return Array(node, owner) if p.array else node
    if isinstance(p, Heaped):
        return Union(next(nodes), p.kinds)
    return p.make([build(part, nodes, owner) for part in p.parts])


def leaf_types(p: AbstractValue) -> list[Type]:
    """The types of the leaves, in order."""
    if isinstance(p, Static):
        return []
    if isinstance(p, Heaped):
        return [heap_type]
    return [p.type] if isinstance(p, Dynamic) else [t for part in p.parts for t in leaf_types(part)]


def equal(p: AbstractValue, q: AbstractValue) -> bool:
    """Whether two abstract values are equal."""
    if isinstance(p, Static) and isinstance(q, Static):
        return same(p.value, q.value)
    if isinstance(p, Dynamic) and isinstance(q, Dynamic):
        return p.type is q.type and p.array == q.array
    if isinstance(p, Heaped) and isinstance(q, Heaped):
        return p.kinds == q.kinds
    if isinstance(p, Structured) and isinstance(q, Structured):
        return p.key == q.key and all(map(equal, p.parts, q.parts))
    return False


def map_numbers(x: Any, change: Callable[[Node], Node]) -> Any:
    """A value with a function applied to all its numbers; references that hold some are new."""
    p = abstract(x, deep=True)
    if not leaf_types(p):
        return x
    return build(p, iter([change(n) for n in flatten(x, p)]))
