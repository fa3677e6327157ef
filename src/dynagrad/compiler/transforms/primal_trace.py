"""The primal trace of a function that is differentiated: the function called with fresh variables for its reals.

The result is made of nodes, which may use others from outside. Their tangents or adjoints by the variables are more
nodes; then the variables are replaced by the arguments. Fresh variables for each call rule out perturbation confusion,
however derivatives are nested. What verbs ask of the trace is in `verbs.py` and `jacobians.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from ...autodiff import derive
from ...errors import Error, NotDifferentiable
from ...ir import Node
from ...ir.names import carry
from ...ir.node import fresh, order, substitute
from ...ir.ops.cells import filled
from ...ir.types import heap
from ..evaluate.choices import content_values
from ..evaluate.heap.unions import has_functions, keys
from ..evaluate.joins import (
    AbstractValue,
    Dynamic,
    Heaped,
    Static,
    Structured,
    abstract,
    build,
    destructure,
    flatten,
    leaf_types,
)
from ..evaluate.specialiser import Args, Named, Specialiser
from ..evaluate.values import (
    Array,
    Closure,
    Dict,
    HostFunction,
    List,
    Union,
    describe,
    function_like,
    node_of,
    type_of,
    zero,
)

OWNED = "it is an argument that is differentiated; change a copy of it"


def reals(x: Any) -> AbstractValue:
    """The abstract value with the reals of a structure as its leaves; all else is static in it."""
    t = type_of(x)
    if t is not None:
        return Dynamic(t, bool(t.shape)) if t.kind == "real" else Static(x)
    if isinstance(x, Union):
        if has_functions(x.kinds):
            keys().tags_wanted += 1
            raise Error(
                "what is differentiated, or its result, has functions in it of which the run decides which they are; "
                "call them inside of what is differentiated"
            )
        return Heaped(x.kinds)
    if function_like(x) or isinstance(x, slice):
        return Static(x)
    parts = destructure(x)
    if parts is None:
        return Static(x)
    return Structured(parts[0], tuple(map(reals, parts[1])), parts[2])


def zero_for_exact(x: Any) -> Any:
    """The tangent of a result with zeros for the whole numbers and truth values in it; those in the fields of a class
    stay, as in `pytree.of_result`."""
    t = type_of(x)
    if t is not None and t.kind != "real":
        return Array(np.zeros(t.shape)) if t.shape else 0.0
    if type(x) is tuple:
        return tuple(zero_for_exact(part) for part in x)
    if isinstance(x, List):
        return List(tuple(zero_for_exact(part) for part in x.content))
    if isinstance(x, Dict):
        return Dict({key: zero_for_exact(part) for key, part in x.content.items()}, empty=x.empty)
    return x


def functions_in(x: Any, path: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """The paths to the functions in a structure."""
    if isinstance(x, Closure | HostFunction) or (function_like(x) and not isinstance(x, type)):
        yield path
    elif type_of(x) is None:
        parts = destructure(x)
        for i, part in enumerate(parts[1] if parts is not None else ()):
            yield from functions_in(part, (*path, i))


def at_path(x: Any, path: tuple[int, ...]) -> Any:
    """The part of a structure at a path."""
    for i in path:
        parts = destructure(x)
        if parts is None:
            raise Error(
                "a function that is differentiated must return the same structure each time it is called, and did not"
            )
        x = parts[1][i]
    return x


def with_functions(x: Any, change: Callable[[tuple[int, ...]], Any], path: tuple[int, ...] = ()) -> Any:
    """A structure with its functions replaced by `change` of their paths."""
    if isinstance(x, Closure | HostFunction) or (function_like(x) and not isinstance(x, type)):
        return change(path)
    parts = destructure(x) if type_of(x) is None else None
    if parts is None:
        return x
    return parts[2]([with_functions(part, change, (*path, i)) for i, part in enumerate(parts[1])])


def argument(s: Specialiser, verb: str, index: int, x: Any) -> Any:
    """Checks an argument that is differentiated: it has reals or functions in it, and is no whole number."""
    t = type_of(x)
    if t is not None and t.kind != "real":
        advice = f"write {x}.0" if isinstance(x, int) and not isinstance(x, bool) else "convert it with float()"
        raise Error(
            f"{verb}: argument {index + 1} is {describe(x)}, and derivatives are with respect to reals; {advice}"
        )
    if t is None and destructure(x) is None and not function_like(x) and not isinstance(x, Union):
        raise Error(f"{verb}: argument {index + 1} is {describe(x)}, which has no derivatives")
    return x


# -- the trace ---------------------------------------------------------------------------------------------------------


watched: ContextVar[dict[Node, Node] | None] = ContextVar("watched", default=None)
"""Collects the adjoint of each node, if set: `dg.graph` shows them."""


class PrimalTrace:
    """A function called with fresh variables for the reals of its arguments."""

    def __init__(self, s: Specialiser, verb: str, f: Any, primals: Args, named: Named | None = None) -> None:
        s.may_raise(NotDifferentiable)
        given = tuple(argument(s, verb, i, x) for i, x in enumerate(primals))
        self.s, self.form = s, reals(given)
        self.originals = list(flatten(given, self.form))
        self.variables = [fresh(t) for t in leaf_types(self.form)]
        self.by = dict(zip(self.variables, self.originals, strict=True))
        arguments = build(self.form, iter(self.variables), OWNED)
        with s.journal() as changed, s.closed():
            self.value = s.call(f, list(arguments), named or {})
        for variable, original in self.by.items():
            if not original.is_constant:
                carry(variable.birth, original.birth)
        for ref, content in changed.items():
            if ref is s.token:  # checks are made at the arguments
                s.put(ref, substitute([node_of(content)], self.by)[0])
                continue
            nodes = list(flatten(content_values(ref, content), abstract(content_values(ref, content), deep=True)))
            if set(self.variables) & set(order(nodes)):
                raise s.error(
                    f"{verb}: the function writes a value that depends on its arguments into {describe(ref)} from "
                    "outside; return it instead"
                )
            s.put(ref, content)
        self.result = reals(self.value)
        self.outputs = list(flatten(self.value, self.result))

    def closed(self, nodes: Sequence[Node | None], like: Sequence[Node]) -> list[Node]:
        """Nodes with the arguments substituted for the variables; None stands for zeros like those of `like`."""
        found = [zero(b.type) if n is None else n for n, b in zip(nodes, like, strict=True)]
        found = [filled(b, n) if b.type is heap else n for n, b in zip(found, like, strict=True)]
        return list(substitute(found, self.by))

    def primal(self) -> Any:
        """The value of the function at the arguments."""
        return self.known(self.value)

    def tangent(self, tangents: Sequence[Node | None]) -> Any:
        """The tangent of the value: zero for whole numbers and truth values; other values that are no reals stay."""
        seeds = dict(zip(self.variables, tangents, strict=True))
        found = self.closed(derive.tangents(self.outputs, seeds), self.outputs)
        return self.known(zero_for_exact(build(self.result, iter(found), "")))

    def known(self, x: Any) -> Any:
        """A value with the arguments substituted for the variables."""
        p = abstract(x, deep=True)
        return build(p, iter(substitute(list(flatten(x, p)), self.by)), "")

    def adjoint(self, cotangents: Sequence[Node]) -> tuple[Any, ...]:
        """The adjoints of the arguments; functions among them stay."""
        seen = watched.get()
        inner: dict[Node, Node] | None = None if seen is None else {}
        found = derive.generate_adjoints(self.outputs, cotangents, self.variables, inner)
        if seen is not None and inner:
            seen.update(zip(substitute(list(inner), self.by), substitute(list(inner.values()), self.by), strict=True))
        nodes = self.closed([found[v] for v in self.variables], self.variables)
        arguments: tuple[Any, ...] = build(self.form, iter(nodes), "")
        return arguments


def leaves_like(verb: str, what: str, x: Any, form: AbstractValue) -> list[Node]:
    """The reals of a tangent or cotangent. Raises Error where it has another structure than what it belongs to."""
    try:
        return list(flatten(x, form))
    except Error as problem:
        raise Error(f"{verb}: {what} does not have the structure of what it belongs to: {problem}") from None


def partially_applied(f: Any, places_: Sequence[int], args: Args, named: Named) -> HostFunction:
    """A function with all but the chosen arguments fixed (partial application)."""
    names = tuple(named)
    count = len(args)

    def run(s: Specialiser, captured: tuple[Any, ...], xs: Args, _: Named) -> Any:
        full = list(captured[1 : 1 + count])
        for i, x in zip(places_, xs, strict=True):
            full[i] = x
        return s.call(captured[0], full, dict(zip(names, captured[1 + count :], strict=True)))

    return HostFunction(("chosen", "a function", tuple(places_), names), run, (f, *args, *named.values()))
