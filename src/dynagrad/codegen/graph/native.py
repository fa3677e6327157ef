"""Lazy compilation: a graph that is optimised, compiled and loaded on its first call.

No C++ is written here.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from typing import Any

from ...collector import collecting_later
from ...forks import cached, renewed
from ...ir.control import Graph
from ...ir.names import Names, naming, without_lines
from ...passes.loops.recurrences import cut_recurrences
from ...passes.optimise import optimise
from ...runtime import library
from ...runtime.calling import Given, LeafType, callable_of, glue
from ...runtime.compiling import cache
from ..effort import at_most
from .emit import NAME, OBJECTS, PRELUDE, emit
from .running import attach, failed


class Native:
    """A graph compiled on first use. Arguments are the inputs in order, results the outputs.

    >>> from dynagrad.ir import variable
    >>> x = variable("x")
    >>> native = Native(Graph((x,), (x * x, x + 1.0)), "f")
    >>> native(3.0)
    (9.0, 4.0)
    """

    def __init__(self, graph: Graph, name: str, names: Names | None = None, timeout: float | None = None) -> None:
        self.graph, self.name = graph, name
        self.names: Names = {} if names is None else names
        self.inputs = [LeafType(n.type.kind, n.shape) for n in graph.inputs]  # type: ignore[arg-type]  # the graph takes and returns these kinds alone
        self.outputs = [LeafType(n.type.kind, n.shape) for n in graph.outputs]  # type: ignore[arg-type]  # the graph takes and returns these kinds alone
        self.timeout = timeout
        """The seconds that a call may take."""
        self.seconds = 0.0
        """How long compilation took; 0 before."""
        self._lock = renewed(threading.RLock())
        self._made: tuple[library.Library, Given | None] | None = None

    @cached
    def small(self) -> Graph:
        """The optimised graph, which is compiled."""
        with naming(self.names):
            return cut_recurrences(optimise(self.graph))

    @cached
    def text(self) -> Any:
        """The generated code, a `Text`. It has no lines of the user's file, since the library is kept under it."""
        small = self.small  # first, since it carries names over
        with naming(without_lines(self.names)):
            return emit(small, limited=self.timeout is not None)

    @property
    def source(self) -> str:
        """The C++ of the graph, for people: with comments that say which lines it comes from."""
        small = self.small
        with naming(self.names):
            source: str = emit(small).source
        return source

    def _library(self) -> tuple[library.Library, Given | None]:
        """The loaded library, and the addresses that each call takes."""
        with self._lock:
            if self._made is None:
                start = time.perf_counter()
                with collecting_later():
                    text = self.text
                    whole = text.source + glue(NAME, self.inputs, self.outputs, text.addresses)
                level = at_most(3)
                built = cache.build(
                    whole, optimise=level, flags=text.flags, long=text.long, objects=OBJECTS, prelude=PRELUDE
                )
                made = library.lent(built)
                self._made = made, attach(made, text, self.timeout)
                self.seconds = time.perf_counter() - start
            return self._made

    def call(self, single: bool, otherwise: Callable[..., Any] | None) -> Callable[..., Any]:
        """A builtin function of Python that runs the graph.

        With `single` it returns the only output, not a tuple; it calls `otherwise` for arguments of other types.
        """
        made, given = self._library()
        return callable_of(
            made,
            NAME,
            self.inputs,
            self.outputs,
            single=single,
            name=self.name,
            otherwise=otherwise,
            failed=functools.partial(failed, name=self.name),
            given=given,
        )

    @cached
    def _call(self) -> Callable[..., Any]:
        return self.call(False, None)

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        found: tuple[Any, ...] = self._call(*arguments)
        return found
