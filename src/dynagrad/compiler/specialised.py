"""From Python functions to graphs.

`compiler/frontend/statements.py` (with `compiler/frontend/source.py`, `compiler/frontend/desugar.py`,
`compiler/frontend/scopes.py`, `compiler/frontend/expressions.py`) turns the text of a function into the small language
of `compiler/frontend/core.py`. `compiler/evaluate/specialiser.py` runs that on values of which some are not known
(`compiler/evaluate/values.py`, `compiler/evaluate/joins.py`), with loops, recursion, operators, containers, arrays,
their views and what masks choose of them, the library and the verbs in files of their own.
`compiler/evaluate/signatures.py` says what comes in and out. Here is what the rest of the package uses.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..errors import Error, LiftError
from ..forks import renewed
from ..ir.constants import unchanging
from ..ir.control import Graph
from ..ir.names import Names, naming

# Those that are not named below enter their handlers into the tables of `evaluate/specialiser.py`.
from .evaluate import exceptions, iteration, loops, operators, recursion  # noqa: F401  # enters its handlers
from .evaluate.signatures import Output, abstract_arguments, output, signature
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

_FINDERS = (
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
    """A function for arguments of one structure: its graph, what tells these arguments, how its result is put together.

    The inputs of the graph are the numbers of the arguments in order, as `key_of` finds them.
    """

    graph: Graph
    key: Any
    output: Output
    names: Names
    """What its values are called in the function."""


def key_of(arguments: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, list[Any]]:
    """What a specialisation depends on, which has a hash, and the numbers of the arguments in order."""
    leaves: list[Any] = []
    key = signature((tuple(arguments), dict(sorted(named.items()))), leaves)
    return key, leaves


def specialised(f: Callable[..., Any], arguments: Sequence[Any], named: Mapping[str, Any] | None = None) -> Specialised:
    """The graph of a function for arguments like these. Raises LiftError where it cannot be made.

    >>> from dynagrad.ir.types import real
    >>> specialised(abs, (1.5,)).graph
    <graph of 1 inputs, 1 outputs>
    """
    named = dict(sorted((named or {}).items()))
    key, _ = key_of(arguments, named)
    variables: list[Any] = []
    given, options = abstract_arguments((tuple(arguments), named), variables)
    assert isinstance(options, Dict)
    s = Specialiser(_FINDERS)
    with _deep_recursion(), unchanging(), naming({}) as names:
        try:
            result = output(s.call(f, given, options.content), s.token.content)
        except (Diverges, Recursion) as problem:
            raise LiftError("the function never ends: each of its branches calls it again") from problem
        except LiftError:
            raise
        except Error as problem:
            raise s.error(str(problem)) from problem
        except RecursionError as problem:
            raise s.error("calls are nested too deep to be compiled") from problem
    return Specialised(Graph(tuple(variables), result.outputs), key, result, names)


def graph_of(f: Callable[..., Any], *arguments: Any) -> Graph:
    """The graph of a function for arguments like these; a type of the graph stands for any number of that type."""
    return specialised(f, arguments).graph


_lock = renewed(threading.RLock())
_before: list[int] = []  # the limits that those who are inside have found


@contextmanager
def _deep_recursion() -> Iterator[None]:
    """Room for functions that are nested deeply; specialising one takes several frames of Python for a call."""
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
