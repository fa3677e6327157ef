"""The versions of a compiled function: one for each signature, as a graph and as machine code.

A signature is the structure of the arguments, the shapes of their arrays, and the values of static ones (whole numbers,
strings, functions). A version is a graph (`specialised.py`) and machine code (`codegen/graph/`), made when it is first
needed and cached on disk.

Under eager differentiation, where arguments are dual numbers or tape cells, a version is an operation whose tangent and
adjoint are again compiled graphs, made on demand. In a graph that is being traced, a version is inlined.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..codegen.graph.native import Native
from ..eager.kinds import plain, real_part
from ..eager.mutation.arrays import MutableArray
from ..eager.numbers import Number, lift
from ..eager.pytree import parts, transform
from ..errors import Error
from ..forks import cached, renewed
from ..ir import Node
from ..ir.control import Graph
from ..ir.node import as_node
from ..ir.operation import Operation
from ..runtime import walking
from .evaluate.signatures import leaf_type, parts_of, structure
from .operations import operation_of, split_outputs
from .specialised import Specialised, key_of, specialised


class Versions:
    """The versions of a function that there are, and calls of them."""

    def __init__(self, function: Callable[..., Any], timeout: float | None = None) -> None:
        self.function, self.timeout = function, timeout
        self.lock = renewed(threading.RLock())
        self._by_key: dict[Any, Version] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def call(
        self, arguments: Sequence[Any], named: dict[str, Any], otherwise: Callable[..., Any]
    ) -> tuple[Any, Callable[..., Any] | None]:
        """The result, and a faster function for further calls with arguments like these, which passes others to
        `otherwise`; None where there is none."""
        leaves = list(leaves_of((arguments, dict(sorted(named.items())))))
        if any(type(leaf) is MutableArray for leaf in leaves):
            arguments, named = transform((arguments, named), plain)
            leaves = list(leaves_of((arguments, dict(sorted(named.items())))))
        if any(isinstance(leaf, Node) for leaf in leaves):
            version = self.of(*_map_leaves((arguments, named), Node, lambda node: node.type))
            return version.made.output(version.made.graph(*map(_node, leaves))), None
        if any(isinstance(leaf, Number) for leaf in leaves):
            return self.of(*_map_leaves((arguments, named), Number, real_part)).differentiated(leaves), None
        version = self.of(arguments, named)
        fast = None
        if version.flat and not named and len(leaves) == len(arguments) and all(map(operator.is_, leaves, arguments)):
            fast = version.native.call(version.single, otherwise)
        elif not named:
            fast = version.walk(arguments, otherwise) or otherwise
        return version(leaves), fast

    def of(self, arguments: Sequence[Any], named: dict[str, Any]) -> Version:
        """The version for the signature of these arguments."""
        key, _ = key_of(arguments, named)
        found = self._by_key.get(key)
        if found is None:
            with self.lock:
                found = self._by_key.get(key)
                if found is None:
                    made = specialised(self.function, arguments, named)
                    found = self._by_key[key] = Version(
                        made, getattr(self.function, "__name__", "function"), self.timeout
                    )
        return found


class Version:
    """A function compiled for one signature."""

    def __init__(self, made: Specialised, name: str, timeout: float | None = None) -> None:
        self.made, self.name, self.timeout = made, name, timeout
        self.native = Native(made.graph, name, made.names, timeout)
        count = len(made.graph.outputs)
        marks = [object() for _ in range(count)]
        built = made.output(marks)
        self.single = count == 1 and built is marks[0]
        self.flat = self.single or (type(built) is tuple and list(built) == marks)

    def __call__(self, leaves: Sequence[Any]) -> Any:
        return self.made.output(self.native(*leaves))

    def walk(self, arguments: Sequence[Any], otherwise: Callable[..., Any]) -> Callable[..., Any] | None:
        """A native function of arguments of this structure, others go to `otherwise`; None where there is none."""
        result = self.made.output.structure
        taken = [structure(argument) for argument in arguments]
        if result is None or any(t is None for t in taken):
            return None
        single = len(self.made.graph.outputs) == 1
        flat = self.native.call(single, walking.unfit)
        return walking.walker(flat, [t for t in taken if t is not None], result, otherwise, single=single)

    @cached
    def _reals(self) -> list[int]:
        return [i for i, o in enumerate(self.made.graph.outputs) if o.type.kind == "real"]

    @cached
    def _operation(self) -> Operation:
        graph = self.made.graph
        return operation_of(Graph(graph.inputs, tuple(graph.outputs[i] for i in self._reals)), self.name, self.timeout)

    def differentiated(self, leaves: Sequence[Any]) -> Any:
        """A call with dual numbers or tape cells among its numbers."""
        outputs = self.made.graph.outputs
        values: list[Any] = [None] * len(outputs)
        if len(self._reals) < len(outputs):
            values = list(self.native(*(real_part(leaf) if isinstance(leaf, Number) else leaf for leaf in leaves)))
        if self._reals:
            found = lift(self._operation, tuple(leaves))
            shapes = [outputs[i].type.shape for i in self._reals]
            for i, part in zip(self._reals, split_outputs(found, shapes), strict=True):
                values[i] = part
        return self.made.output(values)


def leaves_of(x: Any) -> Iterator[Any]:
    """The dynamic leaves of arguments in order, dual numbers and tape cells included.

    Those of `eager.pytree.leaves` are what a derivative goes through: reals, functions, and what registered classes
    hold. These are what machine code is handed: reals, whole numbers in arrays and truth values too, and no functions,
    which belong to the signature as registered classes do.
    """
    if isinstance(x, Number) or leaf_type(x) is not None:
        yield x
        return
    taken = parts_of(x)
    for part in taken[1] if taken is not None else ():
        yield from leaves_of(part)


def _node(leaf: Any) -> Node:
    """A number as a node."""
    node = as_node(leaf)
    if node is None:
        raise Error(
            f"a compiled function cannot take {leaf!r:.60} together with nodes of a graph; pass a number or a node"
        )
    return node


def _map_leaves(x: Any, kind: type, change: Callable[[Any], Any]) -> Any:
    """Arguments with a function applied to each leaf of a class."""
    if isinstance(x, kind):
        return change(x)
    if parts_of(x) is None or not any(isinstance(leaf, kind) for leaf in leaves_of(x)):
        return x
    taken = parts(x)
    assert taken is not None
    return taken[1](x, [_map_leaves(part, kind, change) for part in taken[0]])
