"""The verbs (`grad`, `jvp`, `vjp`, ...) inside compiled functions: each is made of primal traces.

Where the result of a function is a function, so is its derivative (`returned.py`). Finders recognise functions that a
verb made outside of compiled code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...eager import pytree
from ...eager.verbs import gradients as plain
from ...eager.verbs import jacobians as plain_jacobians
from ...errors import Error, counted
from ...ir import Node
from ...ir.node import constant
from ..evaluate.iteration import items
from ..evaluate.joins import AbstractValue, build, flatten
from ..evaluate.specialiser import Args, Named, Specialiser, calls
from ..evaluate.values import HostFunction, List, describe, function_like, is_dual, node_of, normal, type_of, zero
from .duals import dual, pairing, plus, times
from .jacobians import jacfwd, jacrev
from .primal_trace import PrimalTrace, at_path, functions_in, leaves_like, partially_applied, reals, with_functions
from .returned import calls_differentiated

# -- the verbs ---------------------------------------------------------------------------------------------------------


def jvp(s: Specialiser, f: Any, primals: Any, tangents: Any) -> tuple[Any, Any]:
    """The value and its tangent."""
    xs, ds = items(s, primals), items(s, tangents)
    if len(xs) != len(ds):
        raise Error(
            f"jvp: {counted(len(xs), 'primal')} and {counted(len(ds), 'tangent')} were given; give one tangent for "
            "each primal"
        )
    return forward(s, "jvp", f, xs, ds)


def _as_it_is(y: Any, d: Any) -> Any:
    return d


def forward(
    s: Specialiser, verb: str, f: Any, primals: Args, tangents: Args, settle: Callable[[Any, Any], Any] = _as_it_is
) -> tuple[Any, Any]:
    """The value and its tangent; functions in the result become derivatives of functions. `settle` makes of a value and
    its tangent what a language says that the tangent is, here and in calls of such functions."""
    original, given, count = f, (*primals, *tangents), len(primals)
    paths = tuple(functions_in(tuple(primals)))
    if paths:  # tangents of functions: d/de of f + e g at e = 0
        perturbed = _perturbed(paths, [at_path(tuple(tangents), path) for path in paths])
        f, primals, tangents = (
            HostFunction(perturbed.kind, perturbed.run, (f, *perturbed.captured)),
            (*primals, 0.0),
            (*tangents, 1.0),
        )
    trace = PrimalTrace(s, verb, f, primals)
    seeds = leaves_like(verb, "a tangent", tuple(tangents), trace.form)
    primal = trace.primal()
    derivative = settle(primal, trace.tangent(list(seeds)))

    def differentiate(s: Specialiser, call: HostFunction, xs: Args, _: Named) -> Any:
        return forward(s, verb, call, xs[:count], xs[count:], settle)[1]

    def change(path: tuple[int, ...]) -> Any:
        y = at_path(trace.value, path)
        return calls_differentiated(verb, (count, settle), y, path, original, given, {}, differentiate)

    return primal, with_functions(derivative, change)


def _perturbed(paths: Sequence[tuple[int, ...]], tangents: Sequence[Any]) -> HostFunction:
    """Calls its first captured function with arguments whose functions f become f + e g; e is the last argument."""

    def run(s: Specialiser, captured: tuple[Any, ...], args: Args, named: Named) -> Any:
        f, *functions = captured
        *xs, e = args
        ways = dict(zip(paths, functions, strict=True))

        def change(path: tuple[int, ...]) -> Any:
            return _sum(at_path(tuple(xs), path), e, ways[path]) if path in ways else at_path(tuple(xs), path)

        return s.call(f, list(with_functions(tuple(xs), change)), named)

    return HostFunction(("moved", "a function", tuple(paths)), run, tuple(tangents))


def _sum(f: Any, e: Any, g: Any) -> HostFunction:
    """f + e g."""
    if not function_like(g):
        raise Error(f"the tangent of a function must be a function, not {describe(g)}")

    def run(s: Specialiser, captured: tuple[Any, ...], args: Args, named: Named) -> Any:
        f, e, g = captured
        return add(s, [s.call(f, list(args), named), scale(s, [e, s.call(g, list(args), named)], {})], {})

    return HostFunction(("moved", "a function that is moved"), run, (f, e, g))


def duals(s: Specialiser, found: tuple[Any, ...], f: Any, primals: Args, cotangent: Any) -> tuple[Any, ...]:
    """Adjoints of arguments, with a linear functional (`dg.Dual`) in the place of each function.

    Its value at h is the pairing of the cotangent with the tangent of f where this function has the tangent h.
    """
    if next(functions_in(found), None) is None:
        return found

    def change(path: tuple[int, ...]) -> Any:
        def run(s: Specialiser, captured: tuple[Any, ...], h: Any) -> Any:
            f, c, *xs = captured
            perturbed = _perturbed([path], [h])
            line = HostFunction(
                ("line", "a function", path),
                lambda s, captured, e, _: s.call(
                    HostFunction(perturbed.kind, perturbed.run, (captured[0], captured[1])), [*captured[2:], *e]
                ),
                (f, h, *xs),
            )
            return pairing(s, c, forward(s, "grad", line, [0.0], [1.0])[1])

        return dual(("of", path), run, (f, cotangent, *primals))

    changed: tuple[Any, ...] = with_functions(found, change)
    return changed


def derivative(s: Specialiser, f: Any, n: int, x: Any) -> Any:
    """The n-th derivative at a real."""
    t = type_of(x)
    if t is not None and t.shape:
        raise Error(f"derivative: the argument must be one real, not {describe(x)}; use dg.grad or dg.jacfwd")
    if n == 0:
        return s.call(f, [x])
    if n > 1:
        return forward(s, "derivative", derived_function("derivative", (f, n - 1)), [x], [1.0])[1]
    return forward(s, "derivative", f, [x], [1.0])[1]


def value_and_grad(s: Specialiser, f: Any, argnums: Any, has_aux: bool, args: Args, named: Named) -> Any:
    """The value and the gradient of a function that returns one real, or a function whose calls do."""
    places_ = plain.chosen("grad", argnums, len(args))
    trace = PrimalTrace(s, "grad", partially_applied(f, places_, args, named), [args[i] for i in places_])
    y = trace.value
    if has_aux:
        if not isinstance(y, tuple) or len(y) != 2:
            raise Error(
                f"grad: with has_aux the function must return a pair, its value and other results, not {describe(y)}"
            )
        y = y[0]
    if next(functions_in(y), None) == ():

        def differentiate(s: Specialiser, call: HostFunction, xs: Args, others: Named) -> Any:
            return value_and_grad(s, call, argnums, False, xs, others)[1]

        path = (0,) if has_aux else ()
        return trace.primal(), calls_differentiated("grad", (argnums,), y, path, f, args, named, differentiate)
    t = type_of(y)
    if t is None or t.shape or t.kind == "boolean":
        raise Error(
            f"grad: the function must return one real, or a function whose calls do, and returned {describe(y)}; for "
            "other results use dg.jacrev, dg.vjp or dg.jacfwd"
        )
    ones = [constant(1.0)] if t.kind == "real" else []  # a whole number has derivative zero
    seeds = [*ones, *(zero(o.type) for o in trace.outputs[len(ones) :])]
    found = trace.adjoint(seeds)
    inner = partially_applied(f, places_, args, named)
    first = HostFunction(("first", "a function"), lambda s, captured, xs, _: s.call(captured[0], list(xs))[0], (inner,))
    found = duals(s, found, first if has_aux else inner, [args[i] for i in places_], 1.0)
    gradient = found if isinstance(argnums, tuple) else found[0]
    return trace.primal(), gradient


def vjp(s: Specialiser, f: Any, primals: Args) -> tuple[Any, Any]:
    """The value, and the pullback: from a cotangent of it to those of the arguments."""
    trace = PrimalTrace(s, "vjp", f, primals)
    return trace.primal(), HostFunction(("pullback", "a pullback"), _pull, (f, *primals))


def _pull(s: Specialiser, captured: tuple[Any, ...], args: Args, named: Named) -> Any:
    f, *primals = captured
    (c,) = args
    trace = PrimalTrace(s, "vjp", f, primals)
    if next(functions_in(trace.value), None) is None:
        found = trace.adjoint(leaves_like("vjp", "the cotangent", c, trace.result))
    else:
        total = HostFunction(
            ("pairing", "a pairing"),
            lambda s, captured, xs, _: pairing(s, captured[1], s.call(captured[0], xs)),
            (f, c),
        )
        found = PrimalTrace(s, "vjp", total, primals).adjoint([constant(1.0)])
    return duals(s, found, f, primals, c)


def pullback(s: Specialiser, f: Any, omega: Any, args: Args) -> Any:
    value, back = vjp(s, f, args)
    found = s.call(back, [s.call(omega, [value])])
    return found[0] if len(args) == 1 else found


# -- handlers ----------------------------------------------------------------------------------------------------------


def derived_function(verb: str, options: tuple[Any, ...]) -> HostFunction:
    """The function that a verb returns for a function."""
    f, *rest = options
    fixed = tuple(rest)
    run = _RUNS[verb]
    return HostFunction(
        ("verb", f"dg.{verb} of {describe(f)}", verb, fixed),
        lambda s, captured, args, named: run(s, captured[0], *fixed, args=args, named=named),
        (f,),
    )


_RUNS: dict[str, Callable[..., Any]] = {
    "derivative": lambda s, f, n=1, *, args, named: derivative(s, f, n, *args),
    "grad": lambda s, f, argnums=0, aux=False, *, args, named: _gradient(s, f, argnums, aux, args, named),
    "value_and_grad": lambda s, f, argnums=0, aux=False, *, args, named: value_and_grad(
        s, f, argnums, aux, args, named
    ),
    "jacfwd": lambda s, f, argnums=0, *, args, named: jacfwd(s, f, argnums, args, named),
    "jacrev": lambda s, f, argnums=0, *, args, named: jacrev(s, f, argnums, args, named),
    "hessian": lambda s, f, argnums=0, *, args, named: jacfwd(
        s, derived_function("jacrev", (f, argnums)), argnums, args, named
    ),
}


def _gradient(s: Specialiser, f: Any, argnums: Any, aux: bool, args: Args, named: Named) -> Any:
    value, found = value_and_grad(s, f, argnums, aux, args, named)
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
    def handler(s: Specialiser, args: Args, named: Named) -> Any:
        options: list[Any] = [*args, *(_DEFAULTS[name] for name in _OPTIONS[verb][len(args) - 1 :])]
        f, *rest = options
        return derived_function(verb, (f, *(_plain_option(x) for x in rest)))

    calls(function, knows=None)(handler)


def _plain_option(x: Any) -> Any:
    return tuple(x.content) if isinstance(x, List) else tuple(x) if isinstance(x, list) else normal(x)


for _verb in _OPTIONS:
    _enter(_verb, getattr(plain, _verb, None) or getattr(plain_jacobians, _verb))


@calls(plain.jvp, knows=None)
def _enter_jvp(s: Specialiser, args: Args, named: Named) -> Any:
    return jvp(s, *args)


@calls(plain.vjp, knows=None)
def _enter_vjp(s: Specialiser, args: Args, named: Named) -> Any:
    return vjp(s, args[0], args[1:])


@calls(plain.hvp, knows=None)
def _enter_hvp(s: Specialiser, args: Args, named: Named) -> Any:
    f, primals, tangents = args
    xs = items(s, primals)
    numbers: Any = 0 if len(xs) == 1 else tuple(range(len(xs)))
    return jvp(s, derived_function("grad", (f, numbers, False)), xs, tangents)[1]


@calls(plain.pullback, knows=None)
def _enter_pullback(s: Specialiser, args: Args, named: Named) -> Any:
    f, omega = args
    return HostFunction(
        ("verb", "dg.pullback"), lambda s, captured, xs, _: pullback(s, captured[0], captured[1], xs), (f, omega)
    )


@calls(pytree.add, knows=None)
def add(s: Specialiser, args: Args, named: Named) -> Any:
    """`dg.add` of reals, structures, functions and Duals."""
    a, b = args
    if is_dual(a) or is_dual(b):
        return plus(a, b)
    if function_like(a) and type_of(a) is None and not isinstance(a, type):
        return HostFunction(
            ("sum", "a sum of functions"),
            lambda s, captured, xs, options: add(s, [s.call(f, list(xs), options) for f in captured], {}),
            (a, b),
        )
    form = reals(float(a) if isinstance(a, int) and not isinstance(a, bool) else a)
    sums = [x + y for x, y in zip(_leaves_of(form, a), leaves_like("add", "the second summand", b, form), strict=True)]
    return build(form, iter(sums), "")


def _leaves_of(form: AbstractValue, x: Any) -> list[Node]:
    return list(flatten(x, form))


@calls(pytree.scale, knows=None)
def scale(s: Specialiser, args: Args, named: Named) -> Any:
    """`dg.scale` of a real, structure, function or Dual by a real."""
    c, x = args
    if is_dual(x):
        return times(c, x)
    if function_like(x) and type_of(x) is None and not isinstance(x, type):
        return HostFunction(
            ("multiple", "a multiple of a function"),
            lambda s, captured, xs, options: scale(s, [captured[0], s.call(captured[1], list(xs), options)], {}),
            (c, x),
        )
    form = reals(float(x) if isinstance(x, int) and not isinstance(x, bool) else x)
    return build(form, iter([node_of(c) * n for n in _leaves_of(form, x)]), "")


def of_verb(s: Specialiser, function: Any) -> Callable[..., Any] | None:
    """The finder for functions that a verb made outside of compiled code."""
    verb, f, options = plain.made_by(function) or ("", None, {})
    if verb == "pullback":
        return lambda s, args, named: pullback(s, f, options["omega"], args)
    if verb not in _RUNS:
        return None
    derived = derived_function(verb, (f, *(_plain_option(options[name]) for name in _OPTIONS[verb])))
    return lambda s, args, named: s.call(derived, args, named)
