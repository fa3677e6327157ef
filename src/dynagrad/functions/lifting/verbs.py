"""The verbs inside of compiled functions: derivatives that are taken while the graph is made.

What is differentiated is called with fresh variables in the place of the reals of its arguments, and gives nodes that
may use any others from outside. Their tangents or adjoints with respect to these variables are more nodes; then the
variables are replaced by what the arguments were. A fresh variable for each call keeps derivatives apart, however they
are nested. Where the result is a function, so is its derivative: each call of it differentiates what the function was
called for, once more from the start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import Error
from ...graph import Node, control, derive, places
from ...graph.node import constant, fresh, substitute, whole
from ...graph.types import arrays, real
from .. import structure
from .. import verbs as plain
from ..numpy_functions import FUNCTIONS
from .patterns import Known, Leaf, Parts, Pattern, build, flatten, leaf_types, pattern, taken
from .specialise import KINDS, Specialiser, calls
from .values import Array, Closure, Made, describe, function_like, node_of, normal, type_of, zero

Given = Sequence[Any]
Named = Mapping[str, Any]

OWNED = "derivatives are taken with respect to it; change a copy of it"
UNROLLED = 8  # columns of a Jacobian that are taken one by one

# -- reals of structures -----------------------------------------------------------------------------------------------


def reals(x: Any) -> Pattern:
    """The pattern whose leaves are the reals of a structure; everything else is known in it."""
    t = type_of(x)
    if t is not None:
        return Leaf(t, bool(t.shape)) if t.kind == "real" else Known(x)
    if function_like(x) or isinstance(x, slice):
        return Known(x)
    parts = taken(x)
    if parts is None:
        return Known(x)
    return Parts(parts[0], tuple(map(reals, parts[1])), parts[2])


def functions_in(x: Any, path: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Where the functions of a structure are."""
    if isinstance(x, Closure | Made) or (function_like(x) and not isinstance(x, type)):
        yield path
    elif type_of(x) is None:
        parts = taken(x)
        for i, part in enumerate(parts[1] if parts is not None else ()):
            yield from functions_in(part, (*path, i))


def at_path(x: Any, path: tuple[int, ...]) -> Any:
    for i in path:
        parts = taken(x)
        if parts is None:
            raise Error("a function that is differentiated returned another structure when it was called again")
        x = parts[1][i]
    return x


def with_functions(x: Any, change: Callable[[tuple[int, ...]], Any], path: tuple[int, ...] = ()) -> Any:
    """A structure with other functions."""
    if isinstance(x, Closure | Made) or (function_like(x) and not isinstance(x, type)):
        return change(path)
    parts = taken(x) if type_of(x) is None else None
    if parts is None:
        return x
    return parts[2]([with_functions(part, change, (*path, i)) for i, part in enumerate(parts[1])])


def argument(s: Specialiser, verb: str, index: int, x: Any) -> Any:
    """What is differentiated with respect to."""
    t = type_of(x)
    if t is not None and t.kind != "real":
        advice = f"write {x}.0" if isinstance(x, int) and not isinstance(x, bool) else "convert it with float()"
        raise Error(
            f"{verb}: argument {index + 1} is {describe(x)}, and derivatives are with respect to reals; {advice}"
        )
    if any(True for _ in functions_in(x)):
        raise Error(
            f"{verb}: argument {index + 1} holds functions; derivatives with respect to functions cannot be compiled, "
            "but the function itself can be differentiated without compiling it"
        )
    if t is None and taken(x) is None:
        raise Error(f"{verb}: argument {index + 1} is {describe(x)}, which has no derivatives")
    return x


# -- one pass ----------------------------------------------------------------------------------------------------------


class Region:
    """A function called with variables for the reals of its arguments."""

    def __init__(self, s: Specialiser, verb: str, f: Any, primals: Given, named: Named | None = None) -> None:
        given = tuple(argument(s, verb, i, x) for i, x in enumerate(primals))
        self.s, self.form = s, reals(given)
        self.originals = list(flatten(given, self.form))
        self.variables = [fresh(t) for t in leaf_types(self.form)]
        self.by = dict(zip(self.variables, self.originals, strict=True))
        arguments = build(self.form, iter(self.variables), OWNED)
        with s.journal() as changed:
            self.value = s.call(f, list(arguments), named or {})
        for ref, content in changed.items():
            from .specialise import inside

            nodes = list(flatten(inside(ref, content), pattern(inside(ref, content), deep=True)))
            if set(self.variables) & set(derive.order(nodes)):
                raise s.error(
                    f"{verb}: the function changes {describe(ref)} from outside by what it is differentiated by; "
                    "return it instead"
                )
            s.put(ref, content)
        self.result = reals(self.value)
        self.outputs = list(flatten(self.value, self.result))

    def closed(self, nodes: Sequence[Node | None], like: Sequence[Node]) -> list[Node]:
        """Nodes with the arguments in the place of the variables; None is zero."""
        filled = [zero(b.type) if n is None else n for n, b in zip(nodes, like, strict=True)]
        return list(substitute(filled, self.by))

    def primal(self) -> Any:
        """The value at the arguments."""
        p = pattern(self.value, deep=True)
        return build(p, iter(substitute(list(flatten(self.value, p)), self.by)), "")

    def tangent(self, tangents: Sequence[Node | None]) -> Any:
        """The derivative of the value; what is no real in it stays as it is."""
        seeds = dict(zip(self.variables, tangents, strict=True))
        found = self.closed(derive.tangents(self.outputs, seeds), self.outputs)
        return build(self.result, iter(found), "")

    def adjoint(self, cotangents: Sequence[Node]) -> tuple[Any, ...]:
        """The adjoints of the arguments."""
        found = derive.generate_adjoints(self.outputs, cotangents, self.variables)
        nodes = self.closed([found[v] for v in self.variables], self.variables)
        arguments: tuple[Any, ...] = build(self.form, iter(nodes), "")
        return arguments


def matched(verb: str, what: str, x: Any, form: Pattern) -> list[Node]:
    """The reals of something that should have the structure of something else."""
    try:
        return list(flatten(x, form))
    except Error as problem:
        raise Error(f"{verb}: {what} does not have the structure of what it belongs to: {problem}") from None


def _call_tangent(s: Specialiser, verb: str, path: tuple[int, ...], held: Any, given: Given, named: Named) -> Any:
    f, primals, tangents = held
    inner = Made(
        ("result", "a result", path),
        lambda s, held, xs, _: s.call(at_path(s.call(held[0], list(xs)), path), list(held[1]), dict(named)),
        (f, tuple(given)),
    )
    return forward(s, verb, inner, primals, tangents)[1]


def _derivative_function(verb: str, path: tuple[int, ...], held: tuple[Any, ...]) -> Made:
    return Made(
        ("derivative", "the derivative of a function", verb, path),
        lambda s, held, given, named: _call_tangent(s, verb, path, held, given, named),
        held,
    )


# -- the verbs ---------------------------------------------------------------------------------------------------------


def jvp(s: Specialiser, f: Any, primals: Any, tangents: Any) -> tuple[Any, Any]:
    from .containers import items

    xs, ds = items(s, primals), items(s, tangents)
    if len(xs) != len(ds):
        raise Error(f"jvp: {len(xs)} primals need as many tangents, and {len(ds)} were given")
    return forward(s, "jvp", f, xs, ds)


def forward(s: Specialiser, verb: str, f: Any, primals: Given, tangents: Given) -> tuple[Any, Any]:
    """The value and the derivative along tangents; functions in the result become derivatives of functions."""
    region = Region(s, verb, f, primals)
    seeds = matched(verb, "a tangent", tuple(tangents), region.form)
    derivative = region.tangent(list(seeds))
    held = (f, tuple(primals), tuple(tangents))
    if next(functions_in(region.value), None) is not None:
        derivative = with_functions(derivative, lambda path: _derivative_function(verb, path, held))
    return region.primal(), derivative


def derivative(s: Specialiser, f: Any, n: int, x: Any) -> Any:
    """The n-th derivative at a real."""
    t = type_of(x)
    if t is not None and t.shape:
        raise Error(f"derivative: the argument is one real, and {describe(x)} is not; there are dg.grad and dg.jacfwd")
    if n == 0:
        return s.call(f, [x])
    if n > 1:
        return forward(s, "derivative", made("derivative", (f, n - 1)), [x], [1.0])[1]
    return forward(s, "derivative", f, [x], [1.0])[1]


def value_and_grad(s: Specialiser, f: Any, argnums: Any, has_aux: bool, given: Given, named: Named) -> Any:
    """The value and the gradient of a function with one real as its result."""
    places_ = plain.chosen("grad", argnums, len(given))
    region = Region(s, "grad", _of_chosen(f, places_, given, named), [given[i] for i in places_])
    y = region.value
    if has_aux:
        if not isinstance(y, tuple) or len(y) != 2:
            raise Error(f"grad: with has_aux the function returns its value and something else, and not {describe(y)}")
        y = y[0]
    t = type_of(y)
    if t is None or t.shape or (t.kind != "real" and not isinstance(y, int)):
        raise Error(
            f"grad: the function should return one real, and returned {describe(y)}; for other results there are "
            "dg.jacrev, dg.vjp and dg.jacfwd"
        )
    if t.kind != "real":
        raise Error(f"grad: the function returned {describe(y)}, which does not depend on its argument as a real would")
    seeds = [constant(1.0), *(zero(o.type) for o in region.outputs[1:])]
    found = region.adjoint(seeds)
    gradient = found if isinstance(argnums, tuple) else found[0]
    return region.primal(), gradient


def _of_chosen(f: Any, places_: Sequence[int], given: Given, named: Named) -> Made:
    """A function of the chosen arguments alone."""
    names = tuple(named)
    count = len(given)

    def run(s: Specialiser, held: tuple[Any, ...], xs: Given, _: Named) -> Any:
        full = list(held[1 : 1 + count])
        for i, x in zip(places_, xs, strict=True):
            full[i] = x
        return s.call(held[0], full, dict(zip(names, held[1 + count :], strict=True)))

    return Made(("chosen", "a function", tuple(places_), names), run, (f, *given, *named.values()))


def vjp(s: Specialiser, f: Any, primals: Given) -> tuple[Any, Any]:
    """The value, and the function from a cotangent of it to those of the arguments."""
    region = Region(s, "vjp", f, primals)
    if next(functions_in(region.value), None) is not None:
        raise Error("vjp: the pullback of a function that returns functions cannot be compiled; dg.jvp can")
    return region.primal(), Made(("pullback", "a pullback"), _pull, (f, *primals))


def _pull(s: Specialiser, held: tuple[Any, ...], given: Given, named: Named) -> Any:
    f, *primals = held
    region = Region(s, "vjp", f, primals)
    return region.adjoint(matched("vjp", "the cotangent", given[0], region.result))


def pullback(s: Specialiser, f: Any, omega: Any, given: Given) -> Any:
    value, back = vjp(s, f, given)
    found = s.call(back, [s.call(omega, [value])])
    return found[0] if len(given) == 1 else found


# -- Jacobians ---------------------------------------------------------------------------------------------------------


def _columns(nodes: Sequence[Node], take: Callable[[list[Node]], list[Node]]) -> list[list[Node]]:
    """What a linear map from reals like `nodes` makes of all unit vectors: for each of these nodes arrays with a new
    first axis, one entry for each element of the node."""
    found = []
    for at, node in enumerate(nodes):

        def along(k: Any, at: int = at, node: Node = node) -> list[Node]:
            seeds: list[Node] = [zero(n.type) for n in nodes]
            if node.shape:
                flat = places.at_set(zero(arrays(real, (node.size,))), k, constant(1.0))
                seeds[at] = FUNCTIONS[np.reshape](flat, node.shape)
            else:
                seeds[at] = constant(1.0)
            return take(seeds)

        if node.size <= UNROLLED:
            rows = [along(k) for k in range(node.size)]
            found.append([_stack(list(each)) for each in zip(*rows, strict=True)] if rows else [])
            continue
        shapes = [n.shape for n in along(0)]
        init = [zero(arrays(real, (node.size, *shape))) for shape in shapes]

        def body(k: Node, *sofar: Node) -> list[Node]:
            return [places.at_set(a, k, n) for a, n in zip(sofar, along(k), strict=True)]

        found.append(control.repeat(whole(node.size), body, init))
    return found


def _stack(nodes: list[Node]) -> Any:
    return FUNCTIONS[np.stack](nodes)


def _chosen_region(s: Specialiser, verb: str, f: Any, argnums: Any, given: Given, named: Named) -> tuple[Region, bool]:
    places_ = plain.chosen(verb, argnums, len(given))
    region = Region(s, verb, _of_chosen(f, places_, given, named), [given[i] for i in places_])
    if next(functions_in(region.value), None) is not None:
        raise Error(f"{verb}: functions have no coordinates; for these there are dg.jvp and dg.vjp")
    return region, not isinstance(argnums, tuple)


def jacfwd(s: Specialiser, f: Any, argnums: Any, given: Given, named: Named) -> Any:
    """The Jacobian, a tangent for each input."""
    region, alone = _chosen_region(s, "jacfwd", f, argnums, given, named)

    def take(seeds: list[Node]) -> list[Node]:
        found = derive.tangents(region.outputs, dict(zip(region.variables, seeds, strict=True)))
        return region.closed(found, region.outputs)

    columns = _columns(region.variables, take)
    table = [
        [_moved(columns[i][o], v.shape, out.shape) for i, v in enumerate(region.variables)]
        for o, out in enumerate(region.outputs)
    ]
    return _assembled(region, table, alone)


def _moved(found: Node, inner: tuple[int, ...], outer: tuple[int, ...]) -> Any:
    """From elements first to the shape of the result and then that of the argument."""
    n = len(outer)
    last = FUNCTIONS[np.transpose](found, (*range(1, n + 1), 0))
    return FUNCTIONS[np.reshape](last, (*outer, *inner))


def jacrev(s: Specialiser, f: Any, argnums: Any, given: Given, named: Named) -> Any:
    """The Jacobian, an adjoint for each output."""
    region, alone = _chosen_region(s, "jacrev", f, argnums, given, named)

    def take(seeds: list[Node]) -> list[Node]:
        found = derive.generate_adjoints(region.outputs, seeds, region.variables)
        return region.closed([found[v] for v in region.variables], region.variables)

    rows = _columns(region.outputs, take)
    table = [
        [FUNCTIONS[np.reshape](rows[o][i], (*out.shape, *v.shape)) for i, v in enumerate(region.variables)]
        for o, out in enumerate(region.outputs)
    ]
    return _assembled(region, table, alone)


def _assembled(region: Region, table: list[list[Any]], alone: bool) -> Any:
    """A Jacobian in the structure of the result, with that of the arguments inside."""
    rows = iter(table)

    def leaf(p: Pattern) -> Any:
        if isinstance(p, Known):
            return p.value
        if isinstance(p, Parts):
            return p.make([leaf(part) for part in p.parts])
        inner = iter(next(rows))
        found = within(region.form, inner)
        return found[0] if alone else found

    def within(p: Pattern, nodes: Iterator[Any]) -> Any:
        if isinstance(p, Known):
            return p.value
        if isinstance(p, Parts):
            return p.make([within(part, nodes) for part in p.parts])
        node = next(nodes)
        return Array(node) if node.shape else node

    return leaf(region.result)


# -- entering ----------------------------------------------------------------------------------------------------------


def made(verb: str, options: tuple[Any, ...]) -> Made:
    """The function that a verb makes of a function."""
    f, *rest = options
    fixed = tuple(rest)
    run = _RUNS[verb]
    return Made(
        ("verb", f"dg.{verb} of {describe(f)}", verb, fixed),
        lambda s, held, given, named: run(s, held[0], *fixed, given=given, named=named),
        (f,),
    )


_RUNS: dict[str, Callable[..., Any]] = {
    "derivative": lambda s, f, n=1, *, given, named: derivative(s, f, n, *given),
    "grad": lambda s, f, argnums=0, aux=False, *, given, named: _gradient(s, f, argnums, aux, given, named),
    "value_and_grad": lambda s, f, argnums=0, aux=False, *, given, named: value_and_grad(
        s, f, argnums, aux, given, named
    ),
    "jacfwd": lambda s, f, argnums=0, *, given, named: jacfwd(s, f, argnums, given, named),
    "jacrev": lambda s, f, argnums=0, *, given, named: jacrev(s, f, argnums, given, named),
    "hessian": lambda s, f, argnums=0, *, given, named: jacfwd(s, made("jacrev", (f, argnums)), argnums, given, named),
}


def _gradient(s: Specialiser, f: Any, argnums: Any, aux: bool, given: Given, named: Named) -> Any:
    value, found = value_and_grad(s, f, argnums, aux, given, named)
    return (found, value[1]) if aux else found


_OPTIONS = {
    "derivative": ("n",),
    "grad": ("argnums", "has_aux"),
    "value_and_grad": ("argnums", "has_aux"),
    "jacfwd": ("argnums",),
    "jacrev": ("argnums",),
    "hessian": ("argnums",),
}
_DEFAULTS = {"n": 1, "argnums": 0, "has_aux": False}


def _enter(verb: str, function: Any) -> None:
    def handler(s: Specialiser, given: Given, named: Named) -> Any:
        options = list(given)
        for name in _OPTIONS[verb][len(options) - 1 :]:
            options.append(named.get(name, _DEFAULTS[name]))
        f, *rest = options
        return made(verb, (f, *(_plain_option(x) for x in rest)))

    calls(function)(handler)


def _plain_option(x: Any) -> Any:
    from .values import List

    return tuple(x.content) if isinstance(x, List) else tuple(x) if isinstance(x, list) else normal(x)


for _verb in _OPTIONS:
    _enter(_verb, getattr(plain, _verb))


@calls(plain.jvp)
def _enter_jvp(s: Specialiser, given: Given, named: Named) -> Any:
    return jvp(s, *given, **named)


@calls(plain.vjp)
def _enter_vjp(s: Specialiser, given: Given, named: Named) -> Any:
    return vjp(s, given[0], given[1:])


@calls(plain.hvp)
def _enter_hvp(s: Specialiser, given: Given, named: Named) -> Any:
    from .containers import items

    f, primals, tangents = given
    xs = items(s, primals)
    numbers: Any = 0 if len(xs) == 1 else tuple(range(len(xs)))
    return jvp(s, made("grad", (f, numbers, False)), xs, tangents)[1]


@calls(plain.pullback)
def _enter_pullback(s: Specialiser, given: Given, named: Named) -> Any:
    f, omega = given
    return Made(("verb", "dg.pullback"), lambda s, held, xs, _: pullback(s, held[0], held[1], xs), (f, omega))


@calls(structure.add)
def add(s: Specialiser, given: Given, named: Named) -> Any:
    """`dg.add`: of reals, structures and functions."""
    a, b = given
    if function_like(a) and type_of(a) is None and not isinstance(a, type):
        return Made(
            ("sum", "a sum of functions"),
            lambda s, held, xs, options: add(s, [s.call(f, list(xs), options) for f in held], {}),
            (a, b),
        )
    form = reals(float(a) if isinstance(a, int) and not isinstance(a, bool) else a)
    sums = [x + y for x, y in zip(_of(form, a), matched("add", "the second summand", b, form), strict=True)]
    return build(form, iter(sums), "")


def _of(form: Pattern, x: Any) -> list[Node]:
    return list(flatten(x, form))


@calls(structure.scale)
def scale(s: Specialiser, given: Given, named: Named) -> Any:
    """`dg.scale`: a structure, or the results of a function, times a real."""
    c, x = given
    if function_like(x) and type_of(x) is None and not isinstance(x, type):
        return Made(
            ("multiple", "a multiple of a function"),
            lambda s, held, xs, options: scale(s, [held[0], s.call(held[1], list(xs), options)], {}),
            (c, x),
        )
    form = reals(float(x) if isinstance(x, int) and not isinstance(x, bool) else x)
    return build(form, iter([node_of(c) * n for n in _of(form, x)]), "")


# Functions that a verb made before anything was compiled are known by what they hold.
_MADE_BY = {
    "derivative.<locals>.derived": ("derivative", ("f", "n")),
    "value_and_grad.<locals>.both": ("value_and_grad", ("f", "argnums", "has_aux")),
    "jacfwd.<locals>.jacobian": ("jacfwd", ("f", "argnums")),
    "jacrev.<locals>.jacobian": ("jacrev", ("f", "argnums")),
}


def _of_verb(s: Specialiser, function: Any) -> Callable[..., Any] | None:
    """The handler of a function that a verb made."""
    if getattr(function, "__module__", "") != plain.__name__ or not hasattr(function, "__closure__"):
        return None
    cells = {
        name: cell.cell_contents
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    }
    if function.__qualname__ == "grad.<locals>.gradient":
        both = _cells(cells["both"])
        cells |= {name: both[name] for name in ("f", "argnums", "has_aux")}
        verb, names = "grad", ("f", "argnums", "has_aux")
    elif function.__qualname__ == "pullback.<locals>.form":
        return lambda s, given, named: pullback(s, cells["f"], cells["omega"], given)
    elif function.__qualname__ in _MADE_BY:
        verb, names = _MADE_BY[function.__qualname__]
    else:
        return None
    f, *rest = (cells[name] for name in names)
    derived = made(verb, (f, *(_plain_option(x) for x in rest)))
    return lambda s, given, named: s.call(derived, given, named)


def _cells(function: Any) -> dict[str, Any]:
    names = function.__code__.co_freevars
    return {name: c.cell_contents for name, c in zip(names, function.__closure__ or (), strict=True)}


KINDS.insert(0, _of_verb)
