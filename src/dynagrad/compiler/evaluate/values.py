"""The values of the specialiser, static, dynamic or in part: what a variable may hold while a function is specialised.

Static numbers are Python's own, as are strings, None, classes and library functions. Dynamic numbers are nodes of the
graph; tuples are tuples of values. Mutable values are references (`Ref`) with an identity: arrays, lists, dicts,
objects and cells, whose content is an immutable value that is replaced when it changes. A view of an array is a lens
(Foster et al. 2007) on its base, so a write to either shows in both, as in numpy. Functions are closures, or host
functions that the specialiser itself runs. How two values are joined is in `joins.py`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...eager.closures import Dual
from ...eager.mutation.arrays import MutableArray
from ...eager.numbers import Number
from ...errors import Error
from ...ir import Node
from ...ir.builders import convert
from ...ir.node import as_node, constant, whole
from ...ir.operation import Operation, apply
from ...ir.ops import scalars as ops
from ...ir.ops.cells import nothing
from ...ir.types import KINDS, Type, arrays
from ..frontend.core import Lambda, Position

_serial = itertools.count()


Heap = Mapping["Ref", Any]
"""The contents of references at the end of a branch; a reference that is not in it holds what it holds now."""
NOW: Heap = {}


_EMPTY: Mapping[Any, Any] = {}


class Ref:
    """A mutable value. `owner` says why it is read-only, and is empty if it is not."""

    __slots__ = ("born", "content", "owner")

    def __init__(self, content: Any, owner: str = "") -> None:
        self.content, self.owner, self.born = content, owner, next(_serial)


class Cell(Ref):
    """The cell of a captured variable."""

    __slots__ = ("name",)

    def __init__(self, content: Any, name: str, owner: str = "") -> None:
        super().__init__(content, owner)
        self.name = name


class Array(Ref):
    """An array; its content is a node or a numpy array that nobody changes.

    A view has a `base`: `get(content of the base)` is its content, and `put(content of the base, new content)` the
    content of the base after a write to the view, None where it is read-only. `index` is the basic index that it was
    made with, if it was. `contiguous` says that it is certainly C-contiguous in numpy.
    """

    __slots__ = ("base", "contiguous", "get", "index", "put")

    def __init__(
        self,
        content: Any,
        owner: str = "",
        base: Array | None = None,
        get: Any = None,
        index: Any = None,
        put: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        super().__init__(content, owner)
        self.base, self.get, self.index, self.put = base, get, index, put
        self.contiguous = isinstance(content, np.ndarray) and content.flags.c_contiguous

    def read(self, heap: Heap = NOW) -> Any:
        return heap.get(self, self.content) if self.base is None else self.get(self.base.read(heap))


DYNAMIC_TEXT = (
    "this text has a number in it that is known only as the function runs; it can only be the message of an exception"
)


class DynamicText(str):
    """A text with dynamic numbers in it, which may only become the message of an exception.

    `parts` are its texts and numbers in order; as a `str` it describes the numbers. What would look at the characters,
    which are not those that Python has, is an error.
    """

    parts: tuple[Any, ...]

    def __bool__(self) -> bool:
        return True  # numbers have digits

    @staticmethod
    def of(*parts: Any) -> DynamicText:
        inside = [p for part in parts for p in (part.parts if isinstance(part, DynamicText) else (part,))]
        shown = [p if isinstance(p, str) else f"<{describe(p)}>" for p in inside]
        made = DynamicText("".join(shown))
        single = [isinstance(p, Node) and not p.shape for p in inside]
        made.parts = tuple(p if is_one else text for p, is_one, text in zip(inside, single, shown, strict=True))
        return made


def _refuse(*_: Any, **__: Any) -> Any:
    raise Error(DYNAMIC_TEXT)


_LOOKS = ("len", "iter", "getitem", "contains", "mul", "rmul", "mod", "rmod")
"""The operators by which a text is looked at; comparisons and sums are those of `operators.py`."""
for _name in _LOOKS:
    setattr(DynamicText, f"__{_name}__", _refuse)
for _name in (name for name in dir(str) if not name.startswith("_")):
    setattr(DynamicText, _name, property(_refuse))


class List(Ref):
    """A list; its content is a tuple."""

    __slots__ = ()


class Dict(Ref):
    """A dict; its content has static keys and is never changed. `empty` is an empty dict of its class, such as an
    OrderedDict."""

    __slots__ = ("empty",)

    def __init__(self, content: Mapping[Any, Any], owner: str = "", empty: Mapping[Any, Any] = _EMPTY) -> None:
        super().__init__(content, owner)
        self.empty = empty

    @property
    def factory(self) -> Any:
        """The default factory of a defaultdict; None for others."""
        return getattr(self.empty, "default_factory", None)


class Instance(Ref):
    """An object; its content is the dict of its attributes, which is never changed. `frozen` as in dataclasses."""

    __slots__ = ("cls", "frozen")

    def __init__(self, cls: type, content: dict[str, Any], owner: str = "", frozen: bool = False) -> None:
        super().__init__(content, owner)
        self.cls, self.frozen = cls, frozen


@dataclass(frozen=True, eq=False, slots=True)
class Closure:
    """A function with the values it captures; `group` is its binding group."""

    code: Lambda
    captured: Mapping[str, Any] = field(default_factory=dict)
    group: tuple[tuple[str, Lambda], ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.code.name


@dataclass(frozen=True, eq=False, slots=True)
class HostFunction:
    """A closure whose code is Python: `run(specialiser, captured, args, named)`. Equal kinds can be joined."""

    kind: Any
    run: Callable[..., Any]
    captured: tuple[Any, ...] = ()

    @property
    def name(self) -> str:
        return str(self.kind[1] if isinstance(self.kind, tuple) else self.kind)


@dataclass(frozen=True, eq=False, slots=True)
class Iteration:
    """An iterable that is no container: `range`, `enumerate`, `zip`, `reversed`, `cycle`."""

    kind: str
    operands: tuple[Any, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Optional:
    """The join of None and a value, which it is where `present` holds."""

    present: Node
    value: Any


@dataclass(frozen=True, slots=True)
class Kinds:
    """What a cell may be: the keys of its alternatives, and those of the parts of records, by key and index (a regular
    tree grammar). What keys mean is in the table of `heap/unions.py`."""

    roots: frozenset[int]
    parts: Mapping[tuple[int, int], frozenset[int]]

    def __or__(self, other: Kinds) -> Kinds:
        parts = dict(self.parts)
        for place, roots in other.parts.items():
            parts[place] = parts.get(place, frozenset()) | roots
        return Kinds(self.roots | other.roots, parts)


@dataclass(frozen=True, eq=False, slots=True)
class Union:
    """A value on the heap, one of several alternatives; which one is known only as the graph runs. A number is one."""

    cell: Node
    kinds: Kinds

    @staticmethod
    def __apply_operation__(operation: Operation, arguments: Sequence[Any]) -> Any:
        return ON_HEAP["operation"](operation, arguments)

    def __add__(self, other: Any) -> Any:
        return apply(ops.add, self, other)

    def __radd__(self, other: Any) -> Any:
        return apply(ops.add, other, self)

    def __sub__(self, other: Any) -> Any:
        return apply(ops.subtract, self, other)

    def __rsub__(self, other: Any) -> Any:
        return apply(ops.subtract, other, self)

    def __mul__(self, other: Any) -> Any:
        return apply(ops.multiply, self, other)

    def __rmul__(self, other: Any) -> Any:
        return apply(ops.multiply, other, self)

    def __truediv__(self, other: Any) -> Any:
        return apply(ops.divide, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return apply(ops.divide, other, self)

    def __neg__(self) -> Any:
        return apply(ops.negative, self)


ON_HEAP: dict[str, Callable[..., Any]] = {}
"""How an operation is applied to numbers on the heap: `operation`, which `heap/tags.py` enters."""


@dataclass(frozen=True, eq=False, slots=True)
class Masked:
    """The elements of an array under a dynamic mask of its first axes. `listed` ones are of a list, which has no
    arithmetic."""

    values: Node
    mask: Node
    at: Position | None = None
    listed: bool = False


def function_like(x: Any) -> bool:
    """Whether a value is a function, or another callable."""
    return isinstance(x, Closure | HostFunction) or (callable(x) and not isinstance(x, Node | Ref))


def is_dual(x: Any) -> bool:
    """Whether a value is a linear functional on functions, a `dg.Dual`."""
    return isinstance(x, Dual) or (isinstance(x, HostFunction) and x.kind[0] == "dual")


# -- numbers -----------------------------------------------------------------------------------------------------------


def is_number(x: Any) -> bool:
    """Whether a value is a static real number, whole number or truth value."""
    return isinstance(x, bool | int | float | np.bool_ | np.number) and not isinstance(x, complex | np.complexfloating)


def normal(x: Any) -> Any:
    """A static value with numbers of numpy as Python's own."""
    if isinstance(x, np.bool_ | np.integer | np.floating) or (isinstance(x, np.ndarray) and not x.ndim):
        return x.item()
    return x


def known(x: Any) -> bool:
    """Whether a value is static throughout."""
    if isinstance(x, Node):
        return False
    if isinstance(x, Array):
        return not isinstance(x.read(), Node)
    if isinstance(x, tuple):
        return all(map(known, x))
    if isinstance(x, List | Cell):
        return known(x.content)
    if isinstance(x, Dict | Instance):
        return all(map(known, x.content.values()))
    if isinstance(x, Closure):
        return all(map(known, x.captured.values())) and all(map(known, x.defaults.values()))
    if isinstance(x, HostFunction | Iteration):
        return all(map(known, x.captured if isinstance(x, HostFunction) else x.operands))
    if isinstance(x, slice):
        return known((x.start, x.stop, x.step))
    return not isinstance(x, Optional | Masked | Union)


def type_of(x: Any) -> Type | None:
    """The type in the graph of a number or an array; None of anything else."""
    if isinstance(x, Array):
        x = x.read()
    if isinstance(x, Node):
        return x.type
    if isinstance(x, bool | np.bool_):
        return KINDS["boolean"]
    if isinstance(x, int | np.integer):
        return KINDS["integer"]
    if isinstance(x, float | np.floating):
        return KINDS["real"]
    if isinstance(x, np.ndarray) and x.dtype.kind in "biuf":
        return arrays(KINDS[{"b": "boolean", "f": "real"}.get(x.dtype.kind, "integer")], x.shape)
    return None


def as_type(x: Any, wanted: Type) -> Node:
    """A number or an array as a node of a type; whole numbers and truth values can become reals."""

    if isinstance(x, Array):
        x = x.read()
    if isinstance(x, np.ndarray) and wanted.kind == "real":
        x = x.astype(np.float64)
    node = convert(normal(x), wanted)
    if node is None or node.type is not wanted:
        raise Error(f"{x!r:.60} cannot become a {wanted}")
    return node


def node_of(x: Any) -> Node:
    """A number or array as a node of its own type."""
    if isinstance(x, Array):
        x = x.read()
    x = normal(x)
    if isinstance(x, int) and not isinstance(x, bool):
        if not -(2**63) <= x < 2**63:
            raise Error("a whole number of a compiled function has 64 bits, and this one is larger; use a float")
        return whole(x)
    node = as_node(x)
    if node is None:
        raise Error(f"a number is expected here, and this is {describe(x)}")
    return node


def zero(t: Type) -> Node:
    """A zero of a type, in place of what is never read."""
    if t.kind == "heap":
        return nothing()
    if t.shape:
        return constant(np.zeros(t.shape, {"real": float, "integer": np.int64, "boolean": bool}[t.kind]))
    return whole(0) if t.kind == "integer" else constant(False if t.kind == "boolean" else 0.0)


def wrapped(x: Any) -> Any:
    """A result of numpy or of the graph as a value: arrays and lists become references."""
    if isinstance(x, Node):
        return Array(x) if x.type.shape else x
    x = normal(x)
    if isinstance(x, np.ndarray):
        return Array(x)
    if isinstance(x, list):
        return List(tuple(map(wrapped, x)))
    if isinstance(x, tuple):
        return rebuilt(x, [wrapped(part) for part in x])
    return x


def unwrapped(x: Any) -> Any:
    """A value as numpy and the graph take it: references are replaced by their contents."""
    if isinstance(x, Array):
        return x.read()
    if isinstance(x, List):
        return [unwrapped(part) for part in x.content]
    if isinstance(x, tuple):
        return rebuilt(x, [unwrapped(part) for part in x])
    if isinstance(x, Dict):
        return {key: unwrapped(value) for key, value in x.content.items()}
    if isinstance(x, Iteration) and x.kind == "range" and known(x):
        return range(*x.operands)
    return x


def rebuilt(old: tuple[Any, ...], parts: list[Any]) -> Any:
    """A tuple, or named tuple, of the same class with other parts."""
    kind: Any = type(old)
    return kind._make(parts) if hasattr(old, "_fields") else tuple(parts)


def describe(x: Any) -> str:
    """What a value is, for a message."""
    t = type_of(x)
    if t is not None:
        names = {"real": "a real", "integer": "a whole number", "boolean": "a truth value"}
        if t.shape:
            plural = {"real": "reals", "integer": "whole numbers", "boolean": "truth values"}[t.kind]
            return f"an array of {plural} of shape {t.shape}"
        return names[t.kind] if isinstance(x, Node) else f"{x!r}, {names[t.kind]}"
    if isinstance(x, tuple):
        return f"a tuple of {len(x)}"
    if isinstance(x, List):
        return f"a list of {len(x.content)}"
    if isinstance(x, Dict):
        return f"a dict of {len(x.content)}"
    if isinstance(x, Instance):
        return f"an object of {x.cls.__name__}"
    if isinstance(x, Closure | HostFunction):
        return f"the function {x.name}"
    if isinstance(x, Iteration):
        return f"a {x.kind}"
    if isinstance(x, Masked):
        return "the elements of an array that a mask chooses"
    if isinstance(x, Optional):
        return f"either None or {describe(x.value)}"
    if isinstance(x, Union):
        return "a value whose kind is decided as the function runs"
    content = x.content if isinstance(x, Array) else x
    if is_complex(content):
        return "an array of complex numbers" if isinstance(content, np.ndarray) else f"the complex number {content:.60}"
    if isinstance(content, np.ndarray):
        return f"an array of {content.dtype}"
    if isinstance(content, Number | MutableArray):
        return "a value with derivatives from outside (make it an argument of the compiled function, or compile it all)"
    if hasattr(x, "described"):  # a constant of a front end
        return str(x.described)
    return f"{x!r:.60} of type {type(x).__name__}"


def is_complex(x: Any) -> bool:
    """Whether a value is a complex number, or an array of these."""
    return isinstance(x, complex | np.complexfloating) or (isinstance(x, np.ndarray) and x.dtype.kind == "c")
