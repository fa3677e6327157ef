"""Compiled functions, as `dg.compile` returns them: dispatch on the signature of the arguments.

There is a version for each signature: the structure of the arguments, the shapes of their arrays, and the values of
static ones (whole numbers, strings, functions). A version is a graph (`specialised.py`) and machine code
(`codegen.graph`), made when it is first needed and cached on disk.

Under eager differentiation, where arguments are dual numbers or tape cells, a version is an operation whose tangent and
adjoint are again compiled graphs, made on demand. In a graph that is being traced, a version is inlined.
"""

from __future__ import annotations

import functools
import operator
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..calls import strict_options
from ..eager.kinds import plain, real_part
from ..eager.mutation.arrays import MutableArray
from ..eager.numbers import Number, lift
from ..eager.pytree import parts, transform
from ..errors import Error
from ..forks import kept, renewed
from ..ir import Node
from ..ir.control import Graph
from ..ir.node import as_node
from ..ir.operation import Operation
from ..ir.ops.ravelling import unravel
from ..runtime.compiling.toolchain import warn_without_compiler

if TYPE_CHECKING:
    from .specialised import Specialised

# The front end and the code generator are imported by the first call: most programs never compile a function.


class Compiled:
    """A function that runs as machine code; see `compile`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise Error(f"dg.compile takes a function, not {function!r:.60}")
        warn_without_compiler()
        functools.update_wrapper(self, function, updated=())
        self.function = function
        self._versions: dict[Any, _Version] = {}
        self._lock = renewed(threading.RLock())
        self._fast: Callable[..., Any] = self._general_call

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._general_call(*arguments, **named) if named else self._fast(*arguments)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<compiled {getattr(self.function, '__qualname__', self.function)!s}>"

    def __reduce__(self) -> Any:
        """Pickled by name, as functions are; the machine code is in the cache on disk."""
        name: str = getattr(self, "__qualname__", "")
        at: Any = sys.modules.get(self.__module__)
        for part in name.split("."):
            at = getattr(at, part, None)
        return name if at is self else (Compiled, (self.function,))

    def _general_call(self, *arguments: Any, **named: Any) -> Any:
        """A call of any kind: the slow path, where the native code of the last version does not take the arguments."""
        leaves = list(_leaves((arguments, dict(sorted(named.items())))))
        if any(type(leaf) is MutableArray for leaf in leaves):
            arguments, named = transform((arguments, named), plain)
            leaves = list(_leaves((arguments, dict(sorted(named.items())))))
        if any(isinstance(leaf, Node) for leaf in leaves):
            version = self._version(*_map_leaves((arguments, named), Node, lambda node: node.type))
            return version.made.output(version.made.graph(*map(_node, leaves)))
        if any(isinstance(leaf, Number) for leaf in leaves):
            return self._version(*_map_leaves((arguments, named), Number, real_part)).differentiated(leaves)
        version = self._version(arguments, named)
        if version.flat and not named and len(leaves) == len(arguments) and all(map(operator.is_, leaves, arguments)):
            self._fast = version.native.call(version.single, self._general_call)
        elif not named:
            self._fast = version.walk(arguments, self._general_call) or self._general_call
        return version(leaves)

    def _version(self, arguments: Sequence[Any], named: dict[str, Any]) -> _Version:
        """The version for the signature of these arguments."""
        from .specialised import key_of, specialised  # for a quick start

        key, _ = key_of(arguments, named)
        found = self._versions.get(key)
        if found is None:
            with self._lock:
                found = self._versions.get(key)
                if found is None:
                    made = specialised(self.function, arguments, named)
                    found = self._versions[key] = _Version(made, getattr(self.function, "__name__", "function"))
        return found


class _Version:
    """A function compiled for one signature."""

    def __init__(self, made: Specialised, name: str) -> None:
        from ..codegen.graph.native import Native  # for a quick start

        self.made, self.name = made, name
        self.native = Native(made.graph, name, made.names)
        count = len(made.graph.outputs)
        marks = [object() for _ in range(count)]
        built = made.output(marks)
        self.single = count == 1 and built is marks[0]
        self.flat = self.single or (type(built) is tuple and list(built) == marks)

    def __call__(self, leaves: Sequence[Any]) -> Any:
        return self.made.output(self.native(*leaves))

    def walk(self, arguments: Sequence[Any], otherwise: Callable[..., Any]) -> Callable[..., Any] | None:
        """A native function of arguments of this structure, others go to `otherwise`; None where there is none."""
        from ..runtime import walking  # for a quick start
        from .evaluate.signatures import structure  # for a quick start

        result = self.made.output.structure
        taken = [structure(argument) for argument in arguments]
        if result is None or any(t is None for t in taken):
            return None
        single = len(self.made.graph.outputs) == 1
        flat = self.native.call(single, walking.unfit)
        return walking.walker(flat, [t for t in taken if t is not None], result, otherwise, single=single)

    @kept
    def _reals(self) -> list[int]:
        return [i for i, o in enumerate(self.made.graph.outputs) if o.type.kind == "real"]

    @kept
    def _operation(self) -> Operation:
        from .operations import operation_of  # for a quick start

        graph = self.made.graph
        return operation_of(Graph(graph.inputs, tuple(graph.outputs[i] for i in self._reals)), self.name)

    def differentiated(self, leaves: Sequence[Any]) -> Any:
        """A call with dual numbers or tape cells among its numbers."""
        outputs = self.made.graph.outputs
        values: list[Any] = [None] * len(outputs)
        if len(self._reals) < len(outputs):
            values = list(self.native(*(real_part(leaf) if isinstance(leaf, Number) else leaf for leaf in leaves)))
        if self._reals:
            found = lift(self._operation, tuple(leaves))
            shapes = [outputs[i].type.shape for i in self._reals]
            parts = unravel(found, shapes) if len(shapes) > 1 else [found]  # one result stands for itself
            for i, part in zip(self._reals, parts, strict=True):
                values[i] = part
        return self.made.output(values)


def _leaves(x: Any) -> Iterator[Any]:
    """The dynamic leaves of arguments in order, dual numbers and tape cells included."""
    from .evaluate.signatures import leaf_type, parts_of  # for a quick start

    if isinstance(x, Number) or leaf_type(x) is not None:
        yield x
        return
    taken = parts_of(x)
    for part in taken[1] if taken is not None else ():
        yield from _leaves(part)


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
    from .evaluate.signatures import parts_of  # for a quick start

    if isinstance(x, kind):
        return change(x)
    if parts_of(x) is None or not any(isinstance(leaf, kind) for leaf in _leaves(x)):
        return x
    taken = parts(x)
    assert taken is not None
    return taken[1](x, [_map_leaves(part, kind, change) for part in taken[0]])


@strict_options
def compile(function: Callable[..., Any]) -> Compiled:
    """The function as machine code, for the arguments that it is called with.

    The function is read, not run: its text becomes a graph of operations, once for each structure and shapes of
    arguments, and that becomes C++. Floats and arrays are arguments of the compiled code. Whole numbers, truth values,
    strings, None and functions are known when it is made, so another value of one of these is another version.
    Assignments, tuples, lists, dicts, dataclasses, closures, functions as arguments, `if`, `while`, `for`, `break`,
    `continue`, `return`, recursion, indexing, changes of arrays that were made inside, functions of numpy and math, and
    all derivatives of this package may be used, with `fixed_point`, `checkpoint` and `custom_rule`. A function that has
    a rule is compiled like the rest, or else called by Python. A failed `assert`, or a `raise`, is a RunError as it
    runs; `try` may stand around what cannot raise what it catches. There are `sorted` with a key, `operator`,
    `functools`, `itertools` over known lengths, and `np.vectorize`.

    What the function takes from outside is read when a version is made: globals, what closures hold, attributes of
    objects, arrays that belong to someone else. When these change later, versions that are there do not see it; what
    changes should be an argument.

    Raises LiftError, with the line and what to write instead, for what cannot be compiled; `function` is untouched and
    can be called as it is. CompileError where there is no C++ compiler.

    >>> def power(x, n):
    ...     y = 1.0
    ...     for _ in range(n):
    ...         y *= x
    ...     return y
    >>> fast = compile(power)
    >>> fast(2.0, 10)
    1024.0
    """
    return function if isinstance(function, Compiled) else Compiled(function)
