"""Jacobians and Hessians: the derivatives of a function by each element of its arguments, as structures of arrays.

They are made of `jvp` and of pullbacks along unit vectors, one pass for each. Shapes and structures are those of JAX.
Functions have no elements, so none may be among what is differentiated by; of one in the result, each call has a
Jacobian.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...calls import strict_options
from ...errors import Error
from ...ir.ops.ravelling import size
from ..closures import Dual, like
from ..numbers import shape_of
from ..perturbations import place
from ..pytree import is_function, is_real, leaves, of_result, together, transform
from .gradients import argument, chosen, jvp, marked, needs_function, own, rows
from .returned import calls_differentiated, snapshot

Function = Callable[..., Any]


@strict_options
def jacfwd(f: Function, argnums: int | Sequence[int] = 0) -> Function:
    """The Jacobian, one pass forward for each input: for functions with few inputs and many outputs.

    For structures: in the structure of the result, with that of the argument inside, which is a tuple where `argnums`
    is one; of arrays, the shape of the result and then that of the argument.

    >>> import numpy as np
    >>> jacfwd(lambda x: x * x)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    >>> jacfwd(lambda x, y: {"z": x * y}, (0, 1))(2.0, 3.0)
    {'z': (3.0, 2.0)}

    That of a function in the result is a function, whose calls give the Jacobians of calls; so it is in `jacrev`.
    """

    needs_function("jacfwd", f)

    def jacobian(*arguments: Any, **named: Any) -> Any:
        x, of_these = _of_chosen("jacfwd", f, argnums, arguments, named)
        pushed = [jvp(of_these, (x,), (unit,))[1] for unit in basis(x)]
        return _beside(x, pushed) if pushed else _without(x, of_these(own(x)))  # a copy, which a function may change

    return marked(jacobian, "jacfwd", f, argnums=argnums)


@strict_options
def jacrev(f: Function, argnums: int | Sequence[int] = 0) -> Function:
    """The Jacobian, one sweep backward for each output: for functions with many inputs and few outputs.

    Shapes and structures are those of `jacfwd`. Functions in the result become functions that evaluate `f` again in
    each call, and go back from what the function gives there. Each row is the gradient of that component of the result
    alone: it is infinite, or a `NotDifferentiable`, where that is.

    >>> import numpy as np
    >>> jacrev(lambda x: x[0] * x[1])(np.array([2.0, 3.0]))
    array([3., 2.])
    >>> jacrev(lambda x: lambda y: x * y)(np.array([2.0, 3.0]))(5.0)
    array([[5., 0.],
           [0., 5.]])
    """

    needs_function("jacrev", f)

    def jacobian(*arguments: Any, **named: Any) -> Any:
        x, of_these = _of_chosen("jacrev", f, argnums, arguments, named)
        return _by_rows(x, of_these, lambda: _of_chosen("jacrev", f, argnums, *snapshot((arguments, named)))[1])

    return marked(jacobian, "jacrev", f, argnums=argnums)


@strict_options
def hessian(f: Function, argnums: int | Sequence[int] = 0) -> Function:
    """The matrix of second derivatives: forward over reverse.

    With a tuple of `argnums`, a tuple of tuples; of structures, those of `jacfwd` of `jacrev`.

    >>> import numpy as np
    >>> hessian(lambda x: x[0] * x[0] * x[1])(np.array([1.0, 2.0]))
    array([[4., 2.],
           [2., 0.]])
    >>> hessian(lambda x, y: x * x * y, (0, 1))(3.0, 2.0)
    ((4.0, 6.0), (6.0, 0.0))
    """
    return marked(jacfwd(jacrev(f, argnums), argnums), "hessian", f, argnums=argnums)


# -- what a Jacobian is taken by ---------------------------------------------------------------------------------------


def _of_chosen(
    verb: str, f: Function, argnums: int | Sequence[int], arguments: Sequence[Any], named: dict[str, Any]
) -> tuple[Any, Function]:
    """What a Jacobian is taken by: one argument, or a tuple of several; and `f` as a function of it."""
    places = chosen(verb, argnums, len(arguments))
    inputs = tuple(argument(verb, i, arguments[i]) for i in places)
    for x in inputs:
        _no_functions(verb, x)
    alone = not isinstance(argnums, tuple | list)

    def of_these(z: Any) -> Any:
        full = list(arguments)
        for i, x in zip(places, (z,) if alone else z, strict=True):
            full[i] = x
        return f(*full, **named)

    return inputs[0] if alone else inputs, of_these


def _no_functions(verb: str, x: Any) -> None:
    if any(is_function(leaf) for leaf in leaves(x)):
        raise Error(f"{verb}: functions have no coordinates; for these there are dg.jvp and dg.vjp{place()}")


def basis(x: Any) -> list[Any]:
    """The unit vectors of a structure of reals, in order; its functions have no part in them."""
    sizes = [np.shape(leaf) for leaf in leaves(x) if not is_function(leaf)]
    found = []
    for leaf, shape in enumerate(sizes):
        for i in range(int(np.prod(shape))):
            unit = [0.0 if not s else np.zeros(s) for s in sizes]
            if shape:
                unit[leaf].flat[i] = 1.0  # type: ignore[union-attr]  # it has a type, as was asked before
            else:
                unit[leaf] = 1.0
            rest = iter(unit)
            found.append(transform(x, lambda _, rest=rest: next(rest), lambda f: Dual()))  # type: ignore[misc]  # the default binds the value of this round
    return found


# -- putting it together -----------------------------------------------------------------------------------------------


def _stacked(columns: Sequence[Any], shape: tuple[int, ...], inside: tuple[int, ...], leading: bool) -> Any:
    """One leaf of a Jacobian, from the derivatives, of shape `inside`, along (or by) each unit vector of a shape."""
    if not shape:
        return columns[0]
    whole = (*shape, *inside) if leading else (*inside, *shape)
    return np.stack(columns, axis=0 if leading else -1).reshape(whole) if columns else np.zeros(whole)


def _beside(x: Any, pushed: Sequence[Any]) -> Any:
    """The Jacobian by the elements of x, from the derivatives along each; of functions, that of what they return."""

    def functions(*columns: Any) -> Any:
        def jacobian(*arguments: Any, **named: Any) -> Any:
            given = snapshot((arguments, named))
            several = [f(*copy[0], **copy[1]) for f in columns for copy in [snapshot(given)]]
            return _beside(x, several)

        jacobian.__name__ = getattr(columns[0], "__name__", "function")
        return like(columns[0], jacobian) if is_real(x) and not shape_of(x) else jacobian

    return together(
        "jacfwd: the result",
        pushed[0],
        pushed[1:],
        lambda *columns: _by_input(x, columns, shape_of(columns[0])),
        functions,
    )


def _without(x: Any, value: Any) -> Any:
    """The Jacobian by an x that has no elements."""

    def function(f: Any) -> Any:
        return lambda *arguments, **named: _without(x, f(*arguments, **named))

    return of_result(value, lambda y: _by_input(x, [], shape_of(y)), function)


def _by_rows(x: Any, of_these: Function, again: Callable[[], Function]) -> Any:
    """The Jacobian of a function at x, from the way back of each element of its value.

    `again` gives the function once more, for later: as it is now, whatever becomes of other arguments of it.
    """
    value, row = rows("jacrev", of_these, x)
    value = of_result(value, lambda y: y, lambda f: f)
    found = iter([row(unit) for unit in basis(value)])

    def leaf(y: Any) -> Any:
        shape, mine = shape_of(y), [next(found) for _ in range(size(y))]
        return transform(x, lambda r: np.zeros((*shape, *shape_of(r)))) if not mine else _by_output(mine, shape)

    if not any(is_function(y) for y in leaves(value)):
        return transform(value, leaf)
    same = again()
    return transform(value, leaf, calls_differentiated("jacrev", same, x, lambda g: _by_rows(x, g, lambda: g)))


def _by_input(x: Any, columns: Sequence[Any], inside: tuple[int, ...]) -> Any:
    rest = iter(columns)
    return transform(x, lambda r: _stacked([next(rest) for _ in range(size(r))], shape_of(r), inside, False))


def _by_output(rows: Sequence[Any], shape: tuple[int, ...]) -> Any:
    return together("jacrev", rows[0], rows[1:], lambda *parts: _stacked(parts, shape, shape_of(parts[0]), True))
