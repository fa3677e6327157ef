"""A graph that is compiled when it is first called, and the ways to call it."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from typing import Any

from ...forks import kept, renewed
from ...ir.control import Graph
from ...ir.names import Names, naming
from ...passes.loops.recurrences import cut_recurrences
from ...passes.optimise import optimise
from ...runtime import library
from ...runtime.calling import Given, LeafType, callable_of, glue
from ...runtime.compiling import cache
from .emit import NAME, PRELUDE, emit
from .running import attach, failed


class Native:
    """The machine code of a graph. Arguments are the inputs in order, results the outputs.

    >>> from dynagrad.ir import variable
    >>> x = variable("x")
    >>> native = Native(Graph((x,), (x * x, x + 1.0)), "f")
    >>> native(3.0)
    (9.0, 4.0)
    """

    def __init__(self, graph: Graph, name: str, names: Names | None = None) -> None:
        self.graph, self.name = graph, name
        self.names: Names = {} if names is None else names
        self.inputs = [LeafType(n.type.kind, n.shape) for n in graph.inputs]  # type: ignore[arg-type]  # the graph takes and returns these kinds alone
        self.outputs = [LeafType(n.type.kind, n.shape) for n in graph.outputs]  # type: ignore[arg-type]  # the graph takes and returns these kinds alone
        self.seconds = 0.0
        """What it took to compile, once it was."""
        self._lock = renewed(threading.RLock())
        self._made: tuple[library.Library, Given | None] | None = None

    @kept
    def small(self) -> Graph:
        """What is compiled."""
        with naming(self.names):
            return cut_recurrences(optimise(self.graph))

    @kept
    def text(self) -> Any:
        small = self.small
        with naming(self.names):
            return emit(small)

    @property
    def source(self) -> str:
        """The C++ of the graph."""
        source: str = self.text.source
        return source

    def _library(self) -> tuple[library.Library, Given | None]:
        """The library, and what each call of it is given."""
        with self._lock:
            if self._made is None:
                start = time.perf_counter()
                whole = self.source + glue(NAME, self.inputs, self.outputs, self.text.given)
                made = library.lent(cache.build(whole, flags=self.text.flags, prelude=PRELUDE))
                self._made = made, attach(made, self.text)
                self.seconds = time.perf_counter() - start
            return self._made

    def call(self, single: bool, otherwise: Callable[..., Any] | None) -> Callable[..., Any]:
        """A builtin function; `single` for the only output itself, `otherwise` for arguments that do not fit."""
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

    @kept
    def _call(self) -> Callable[..., Any]:
        return self.call(False, None)

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        found: tuple[Any, ...] = self._call(*arguments)
        return found
