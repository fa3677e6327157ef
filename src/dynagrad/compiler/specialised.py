"""The way through the compiler: from a Python function and arguments to a graph.

`frontend/` lowers the function to the core language, `evaluate/` specialises that to the signature of the arguments.
The imports below enter handlers of primitives and library functions into the tables of `evaluate/specialiser.py`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..collector import collecting_later
from ..errors import Error, LiftError
from ..forks import renewed
from ..ir.constants import unchanging
from ..ir.control import Graph
from ..ir.names import Names, naming
from .evaluate import choices, exceptions, iteration, loops, operators, recursion  # noqa: F401  # enters its handlers
from .evaluate.heap.unions import new_keys
from .evaluate.signatures import Output, dynamic_arguments, output, signature
from .evaluate.specialiser import Diverges, Recursion, Specialiser
from .evaluate.values import Dict
from .library import builtins, callables, itertools, math, operator, vectorize  # noqa: F401  # enters its handlers
from .numpy import (
    calls,
    masked,  # noqa: F401  # enters its handlers
)
from .objects import classes, containers, sorting  # noqa: F401  # enters its handlers
from .transforms import checkpoint, custom_rule, duals, fixed_point, verbs  # noqa: F401  # enters its handlers

__all__ = ["LiftError", "Specialised", "graph_of", "key_of", "specialised"]


def _of_front_end(s: Specialiser, function: Any) -> Callable[..., Any] | None:
    """The handler of a function of another front end, which knows itself what it is in the core language."""
    lift = getattr(type(function), "__dynagrad_lift__", None)
    return None if lift is None else lift(function, s)


_FINDERS = (
    _of_front_end,
    verbs.of_verb,
    duals.of_dual,
    vectorize.of_vectorized,
    custom_rule.of_rule,
    operator.of_library,
    classes.of_object,
    calls.of_numpy,
    operator.of_getter,
)
_DEEP = 30_000  # frames of Python


@dataclass(frozen=True, eq=False)
class Specialised:
    """A function specialised to one signature: its graph, the signature, and the structure of its result.

    The inputs of the graph are the dynamic leaves of the arguments, in the order of `key_of`.
    """

    graph: Graph
    key: Any
    output: Output
    names: Names
    """The names of its values in the text of the function."""


def key_of(arguments: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, list[Any]]:
    """The signature of arguments, which is hashable, and their dynamic leaves in order."""
    leaves: list[Any] = []
    key = signature((tuple(arguments), dict(sorted(named.items()))), leaves)
    return key, leaves


def specialised(f: Callable[..., Any], arguments: Sequence[Any], named: Mapping[str, Any] | None = None) -> Specialised:
    """Specialises a function to the signature of arguments. Raises LiftError for what cannot be compiled.

    >>> from dynagrad.ir.types import real
    >>> specialised(abs, (1.5,)).graph
    <graph of 1 input, 1 output>
    """
    named = dict(sorted((named or {}).items()))
    key, _ = key_of(arguments, named)
    variables: list[Any] = []
    given, options = dynamic_arguments((tuple(arguments), named), variables)
    assert isinstance(options, Dict)
    s = Specialiser(_FINDERS)
    with collecting_later(), _deep_recursion(), unchanging(), new_keys(), naming({}) as names:
        try:
            result = output(s.call(f, given, options.content), s.token.content)
        except (Diverges, Recursion) as problem:
            raise LiftError("the function never ends: each of its branches calls it again") from problem
        except LiftError:
            raise
        except Error as problem:
            raise s.error(str(problem)) from problem
        except RecursionError as problem:
            raise s.error("calls are nested too deeply to be compiled; use a loop") from problem
        finally:
            s.at = None
    return Specialised(Graph(tuple(variables), result.outputs), key, result, names)


def graph_of(f: Callable[..., Any], *arguments: Any) -> Graph:
    """The graph of a function for arguments like these; a `Type` stands for any value of that type."""
    return specialised(f, arguments).graph


_lock = renewed(threading.RLock())
_before: list[int] = []  # the recursion limits before, one for each run inside


@contextmanager
def _deep_recursion() -> Iterator[None]:
    """Raises Python's recursion limit: an inlined call takes several frames of the specialiser."""
    with _lock:
        _before.append(sys.getrecursionlimit())
        sys.setrecursionlimit(max(_before[0], _DEEP))
    try:
        yield
    finally:
        with _lock:
            first = _before[0]
            _before.pop()
            if not _before:  # the last one
                sys.setrecursionlimit(first)
