"""Compiled functions, as `dg.compile` returns them.

The versions of a function, for each signature of its arguments, are in `versions.py`. That and all that it imports, the
front end and the code generator, are imported by the first call: most programs never compile a function.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..arguments import real_number
from ..calls import strict_options
from ..errors import Error
from ..forks import cached
from ..runtime.compiling.toolchain import warn_without_compiler

if TYPE_CHECKING:
    from .versions import Versions


class Compiled:
    """A function that runs as machine code; see `compile`."""

    __slots__ = ("__dict__", "__weakref__", "_fast")  # a slot is read sooner than an entry of the dict
    _fast: Callable[..., Any]

    def __init__(self, function: Callable[..., Any], timeout: float | None = None) -> None:
        if not callable(function):
            raise Error(f"dg.compile takes a function, not {function!r:.60}")
        if timeout is not None:
            real_number("timeout", timeout, 0.0)
        warn_without_compiler()
        functools.update_wrapper(self, function, updated=())
        self.function, self.timeout = function, timeout
        self._fast = self._general_call

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
        return name if at is self else (Compiled, (self.function, self.timeout))

    @cached
    def _versions(self) -> Versions:
        from .versions import Versions  # for a quick start

        return Versions(self.function, self.timeout)

    def _general_call(self, *arguments: Any, **named: Any) -> Any:
        """A call of any kind: the slow path, where the native code of the last version does not take the arguments."""
        result, fast = self._versions.call(arguments, named, self._general_call)
        self._fast = fast or self._fast
        return result


@strict_options
def compile(function: Callable[..., Any], *, timeout: float | None = None) -> Compiled:
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

    `timeout` is how many seconds a call may take, once it is compiled; one that takes longer is NotConverged. A
    function that is called inside of another compiled function has the limit of that one. Without a limit, Ctrl-C ends
    a call that does not end by itself.

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
    if isinstance(function, Compiled) and (timeout is None or timeout == function.timeout):
        return function
    return Compiled(function.function if isinstance(function, Compiled) else function, timeout)
