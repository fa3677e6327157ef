"""Signatures of compiled calls: which arguments are static or dynamic, and the structure of arguments and results.

Floats, numpy's floats and arrays are dynamic: leaves of the signature, inputs of the graph. Whole numbers, truth
values, strings, None, functions and all other objects are static, and part of the signature. Tuples, lists, dicts and
dataclasses are structures of these.

What is compiled for a signature is kept by `compiler/versions.py`. In calls of machine code, `runtime/walking.py` takes
structures apart natively; here they are described to it.
"""

from __future__ import annotations

import copy
import dataclasses
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from ...eager.pytree import is_registered
from ...errors import Error, counted
from ...ir import Node
from ...ir.failures import after
from ...ir.node import fresh, intern
from ...ir.ops.cells import HeapCell, exported
from ...ir.types import KINDS, Type, arrays
from ...runtime.walking import LEAF, Fixed, Keyed, Sequenced, Structure
from ..frontend.core import UNDEFINED
from ..returned_cells import imported
from .heap.unions import Row, keys
from .limits import most_parts
from .masks import mask_error
from .values import (
    Array,
    Cell,
    Closure,
    Dict,
    DynamicText,
    HostFunction,
    Instance,
    Iteration,
    List,
    Masked,
    Optional,
    Union,
    describe,
    node_of,
    type_of,
)

OWNED = "it is an argument of the compiled function, which must not change it; change a copy of it (x = x.copy())"
_OURS = __name__.split(".")[0] + "."
_DICTS: tuple[type, ...] = (dict, OrderedDict, defaultdict)
_DTYPES = {"f": "real", "i": "integer", "u": "integer", "b": "boolean"}


def leaf_type(x: Any) -> Type | None:
    """The type of a dynamic argument; None for static ones and structures."""
    if type(x) is float or isinstance(x, np.floating):
        return KINDS["real"]
    if isinstance(x, np.ndarray) and x.dtype.kind in _DTYPES:
        return arrays(KINDS[_DTYPES[x.dtype.kind]], x.shape)
    if isinstance(x, Type):
        return x
    return x.type if isinstance(x, Node) else None


def parts_of(x: Any) -> tuple[tuple[Any, ...], Sequence[Any]] | None:
    """The key and the parts of a structure of arguments; None for others. The key has what is static in it.

    Unlike `eager.pytree.parts` it does not open registered classes: the user's functions do that, which are not
    compiled.
    """
    kind = type(x)
    if kind is tuple or kind is list:
        return (kind, len(x)), x
    if kind in _DICTS:
        factory = x.default_factory if kind is defaultdict else None
        return (kind, factory, tuple(x), tuple(map(type, x))), list(x.values())
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return (kind, len(x)), x
    if dataclasses.is_dataclass(x) and not isinstance(x, type) and not _is_ours(x):
        return (kind, "fields"), [getattr(x, f.name) for f in dataclasses.fields(x)]
    return None


def signature(x: Any, leaves: list[Any]) -> Any:
    """The signature of arguments: their structure, static values and types. The dynamic ones are added to `leaves`.

    >>> leaves = []
    >>> key = signature(((1.5, 2), {"a": 2.5}), leaves)
    >>> leaves, key == signature(((3.5, 2), {"a": 4.5}), []), key == signature(((3.5, 3), {"a": 4.5}), [])
    ([1.5, 2.5], True, False)
    """
    t = leaf_type(x)
    if t is not None:
        if isinstance(x, np.matrix | np.ma.MaskedArray):
            raise Error(
                f"an argument is a {type(x).__name__}, and a compiled function takes plain arrays; use np.asarray"
            )
        leaves.append(x)
        return t
    if isinstance(x, np.ndarray):
        raise Error(
            f"an argument is an array of {x.dtype}; a compiled function takes arrays of "
            + ("reals; keep the two parts of complex numbers" if x.dtype.kind == "c" else "numbers and truth values")
        )
    structured = parts_of(x)
    if structured is not None:
        return (structured[0], *(signature(part, leaves) for part in structured[1]))
    return _constant(x)


def structure(x: Any) -> Structure | None:
    """The structure of an argument for the native walker; None where it is not made of tuples, lists and dicts."""
    if leaf_type(x) is not None:
        return LEAF
    if type(x) is tuple or type(x) is list:
        return sequence_of(type(x), map(structure, x))
    if type(x) is dict:
        parts = [structure(part) for part in x.values()]
        return None if None in parts else Keyed(tuple(x), tuple(p for p in parts if p is not None))
    return None if parts_of(x) is not None else Fixed(x)


def sequence_of(kind: type, parts: Iterable[Structure | None]) -> Structure | None:
    """A list or tuple of structures; None where one of them is None."""
    found = list(parts)
    return None if None in found else Sequenced(kind, tuple(p for p in found if p is not None))


def _is_ours(x: Any) -> bool:
    """Whether a value is a function of this package, though it is a dataclass."""
    return callable(x) and type(x).__module__.startswith(_OURS)


def _constant(x: Any) -> Any:
    """The signature of a static value. Raises Error for containers that are not opened: the numbers in them would
    silently become constants."""
    kind = type(x)
    if isinstance(x, set | frozenset):
        return (kind, frozenset((type(item), item) for item in x))
    if isinstance(x, tuple) and not any(map(_has_numbers, x)):
        return (kind, *(signature(part, []) for part in x))
    suggestion = next((name for cls, name in _SUGGESTED.items() if isinstance(x, cls)), None)
    if is_registered(kind):
        suggestion = "a dataclass"
    if suggestion is not None:
        raise Error(
            f"an argument is a {kind.__name__}, and a compiled function takes tuples, lists, dicts and dataclasses; "
            f"make {suggestion} of it"
        )
    try:
        hash(x)
    except TypeError:
        return ByIdentity(x)
    return (kind, x)


_SUGGESTED: dict[type, str] = {MutableMapping: "a dict", MutableSequence: "a list", tuple: "a tuple"}


def _has_numbers(x: Any) -> bool:
    leaves: list[Any] = []
    signature(x, leaves)
    return bool(leaves)


class ByIdentity:
    """The signature of a static value without a hash, compared by identity."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByIdentity) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def dynamic_arguments(x: Any, variables: list[Node]) -> Any:
    """Arguments as values of the specialiser, with a variable for each dynamic one, in the order of `signature`."""
    t = leaf_type(x)
    if t is not None:
        variables.append(x if isinstance(x, Node) and x.is_variable else fresh(t))
        return Array(variables[-1], OWNED) if t.shape else variables[-1]
    structured = parts_of(x)
    if structured is None:
        return x
    parts = [dynamic_arguments(part, variables) for part in structured[1]]
    if isinstance(x, list):
        return List(tuple(parts), OWNED)
    if isinstance(x, dict):
        empty = defaultdict(x.default_factory) if isinstance(x, defaultdict) else type(x)()
        return Dict(dict(zip(x, parts, strict=True)), OWNED, empty)
    if isinstance(x, tuple):
        return type(x)._make(parts) if hasattr(x, "_fields") else tuple(parts)  # type: ignore[attr-defined]  # checked above
    names = [f.name for f in dataclasses.fields(x)]
    return Instance(type(x), dict(zip(names, parts, strict=True)), OWNED, x.__dataclass_params__.frozen)


# -- results -----------------------------------------------------------------------------------------------------------

Build = Callable[[Iterator[Any]], Any]


@dataclasses.dataclass(frozen=True, eq=False)
class Output:
    """The structure of a result, which `build` fills with the outputs of the graph."""

    build: Build
    outputs: tuple[Node, ...]
    shown: str
    structure: Structure | None = None  # for the native walker; None where it cannot build it

    def __call__(self, values: Sequence[Any]) -> Any:
        return self.build(iter(values))

    def __repr__(self) -> str:
        return self.shown


def output(x: Any, token: Any = 0) -> Output:
    """The structure of what a function returned. Raises Error for values that compiled code cannot return.

    The outputs come after `token`, which orders the checks; without outputs it is the only one.
    """
    leaves = _Leaves()
    _find_constants(x, leaves.constant)
    if _count(x, leaves.constant, {}) > most_parts():
        raise Error(
            f"a structure with more than {counted(most_parts(), 'part')} is returned, where shared ones count as "
            "often as they "
            "occur; return what you need of it"
        )
    build, nodes, shown = _output(x, leaves), leaves.nodes, "".join(leaves.shown)
    if isinstance(token, Node) and not nodes:
        return Output(lambda values: (next(values), build(values))[1], (token,), shown)
    tied = tuple(after(token, node) for node in nodes) if isinstance(token, Node) else tuple(nodes)
    return Output(build, tied, shown, _structure(x, leaves.constant) if nodes else None)


class _Leaves:
    """The leaves of a result so far."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.shown: list[str] = []
        self.constant: dict[int, bool] = {}
        """Which tuples, by identity, have nothing in them but constants: each is returned as it is, with what its parts
        share."""


def _find_constants(x: Any, found: dict[int, bool]) -> bool:
    """Whether a value is a constant that nobody can change; notes it of each tuple."""
    if type(x) is not tuple:
        return x is None or isinstance(x, float | int | str)
    if id(x) not in found:
        inside = [_find_constants(part, found) for part in x]
        found[id(x)] = all(inside)
    return found[id(x)]


def _count(x: Any, constant: dict[int, bool], known: dict[int, int]) -> int:
    """How many parts a result has, with itself. Shared ones count as often as they occur, and are looked at once."""
    if constant.get(id(x)):
        return 1
    if isinstance(x, List | Dict | Instance):
        parts: Iterable[Any] = x.content if isinstance(x, List) else x.content.values()
    elif isinstance(x, tuple):
        parts = x
    else:
        return 1
    if id(x) not in known:
        known[id(x)] = 1 + sum(_count(part, constant, known) for part in parts)
    return known[id(x)]


def _structure(x: Any, constant: dict[int, bool]) -> Structure | None:
    """The structure for the native walker of a result that `_output` accepts."""
    if constant.get(id(x)):
        return Fixed(x)
    if isinstance(x, Node | Array) or (isinstance(x, np.ndarray) and type_of(x) is not None):
        return LEAF
    if isinstance(x, List) or type(x) is tuple:
        parts = x.content if isinstance(x, List) else x
        return sequence_of(list if isinstance(x, List) else tuple, [_structure(part, constant) for part in parts])
    if isinstance(x, Dict) and type(x.empty) is dict:
        inside = [_structure(part, constant) for part in x.content.values()]
        return None if None in inside else Keyed(tuple(x.content), tuple(p for p in inside if p is not None))
    return None if isinstance(x, tuple | Dict | Instance | Union) else Fixed(x)


def _output(x: Any, leaves: _Leaves) -> Build:
    if isinstance(x, Node | Array):
        leaves.nodes.append(node_of(x))
        leaves.shown.append(str(leaves.nodes[-1].type))
        return next
    if leaves.constant.get(id(x)):
        leaves.shown.append("a constant")
        return lambda values: x
    if isinstance(x, DynamicText):
        raise Error(
            f"the result has a text with a number in it that is known only as the function runs: {x!s:.60}; return the "
            "number"
        )
    if x is UNDEFINED:
        raise Error("the function may return a variable that was not assigned; assign it on every path")
    if isinstance(x, Masked):
        raise mask_error(x)
    if isinstance(x, Optional):
        raise Error(
            f"the function may return {describe(x)}, which is decided as it runs; return a truth value for it as well"
        )
    if isinstance(x, Union):
        leaves.nodes.append(intern(exported, (x.cell,), object(), KINDS["integer"]))  # each is freed by itself
        leaves.shown.append("a value of several kinds")
        rows = keys().rows
        return lambda values: _import(next(values), rows)
    if isinstance(x, np.ndarray) and type_of(x) is not None:
        return _output(Array(x), leaves)
    if isinstance(x, tuple | List):
        cls: Any = list if isinstance(x, List) else type(x)
        parts = [_output(part, leaves) for part in (x.content if isinstance(x, List) else x)]
        if hasattr(cls, "_fields"):
            return lambda values: cls._make(build(values) for build in parts)
        return lambda values: cls([build(values) for build in parts])
    if isinstance(x, Dict):
        inside = {key: _output(part, leaves) for key, part in x.content.items()}
        empty: Any = x.empty
        if type(empty) is dict:
            return lambda values: {key: build(values) for key, build in inside.items()}
        return lambda values: _refill(empty, {key: build(values) for key, build in inside.items()})
    if isinstance(x, Instance):
        fields: dict[str, Build] = {key: _output(part, leaves) for key, part in x.content.items()}
        of: type = x.cls
        return lambda values: _new_object(of, {key: build(values) for key, build in fields.items()})
    if isinstance(x, Closure | HostFunction | Iteration | Cell) or (callable(x) and not isinstance(x, type)):
        raise Error(
            f"a compiled function returns numbers and structures of these, and this one returns {describe(x)}; call "
            "that inside, or compile the caller"
        )
    leaves.shown.append(f"{x!r:.40}")
    return lambda values: x


def _import(address: Any, rows: Mapping[int, Row]) -> Any:
    """The value of a union that a compiled function returned."""
    if isinstance(address, Node):
        raise Error("a compiled function whose result has parts of which the run decides what they are runs by itself")
    if not isinstance(address, int | HeapCell):
        return None  # of what stands for an output while the structure of a result is looked at

    def made(key: int, parts: list[Any]) -> Any:
        row = rows.get(key)
        if row is None:
            raise Error("a compiled function returned a number with a tag of a derivative that is over")
        if row.name and row.make is not None:
            raise Error("a compiled function returns numbers and structures of these, and this one returned a function")
        return row.value if row.make is None else row.make(parts)

    return imported(address, made)


def _refill(empty: Any, content: Mapping[Any, Any]) -> Any:
    made = copy.copy(empty)
    made.update(content)
    return made


def _new_object(cls: type, fields: Mapping[str, Any]) -> Any:
    made: Any = object.__new__(cls)
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made
