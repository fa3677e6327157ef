"""Jacobians and Hessians, as structures of arrays: by `jvp` or pullbacks of unit vectors, one pass for each.

Shapes and structures are those of JAX. Inputs may not be functions, which have no coordinates; the Jacobian of a
function in the result is a function, which gives the Jacobians of calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...calls import strict_options
from ...errors import Error
from ...ir.ops.ravelling import size
from ..closures import Dual, like
from ..kinds import shape_of
from ..perturbations import place
from ..pytree import is_function, is_real, leaves, of_result, together, transform
from .gradients import argument, chosen, jvp, marked, needs_function, own, rows
from .returned import calls_differentiated, snapshot

Function = Callable[..., Any]


@strict_options
def jacfwd(f: Function, argnums: int | Sequence[int] = 0) -> Function:
    """The Jacobian by forward mode, one pass for each input: for functions with few inputs and many outputs.

    It has the structure of the result, with the structure of the argument inside, which is a tuple where `argnums` is
    one; for arrays, the shape of the result and then that of the argument.

    >>> import numpy as np
    >>> jacfwd(lambda x: x * x)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    >>> jacfwd(lambda x, y: {"z": x * y}, (0, 1))(2.0, 3.0)
    {'z': (3.0, 2.0)}

    The Jacobian of a function in the result is a function, which gives the Jacobians of calls; so it is in `jacrev`.
    """
    needs_function("jacfwd", f)

    def jacobian(*arguments: Any, **named: Any) -> Any:
        x, of_these = _of_chosen("jacfwd", f, argnums, arguments, named)
        pushed = [jvp(of_these, (x,), (unit,))[1] for unit in basis(x)]
        return (
            _by_columns(x, pushed) if pushed else _without(x, of_these(own(x)))
        )  # a copy, which a function may change

    return marked(jacobian, "jacfwd", f, argnums=argnums)


@strict_options
def jacrev(f: Function, argnums: int | Sequence[int] = 0) -> Function:
    """The Jacobian by reverse mode, one sweep for each output: for functions with many inputs and few outputs.

    Shapes and structures are those of `jacfwd`. Functions in the result become functions that evaluate `f` again in
    each call. Each row is the gradient of that component of the result alone: it is infinite, or raises
    NotDifferentiable, where that gradient does.

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
    """The matrix of second derivatives, by forward over reverse mode.

    With a tuple of `argnums`, a tuple of tuples; for structures, that of `jacfwd` of `jacrev`.

    >>> import numpy as np
    >>> hessian(lambda x: x[0] * x[0] * x[1])(np.array([1.0, 2.0]))
    array([[4., 2.],
           [2., 0.]])
    >>> hessian(lambda x, y: x * x * y, (0, 1))(3.0, 2.0)
    ((4.0, 6.0), (6.0, 0.0))
    """
    return marked(jacfwd(jacrev(f, argnums), argnums), "hessian", f, argnums=argnums)


# -- inputs ------------------------------------------------------------------------------------------------------------


def _of_chosen(
    verb: str, f: Function, argnums: int | Sequence[int], arguments: Sequence[Any], named: dict[str, Any]
) -> tuple[Any, Function]:
    """The input of a Jacobian, one argument or a tuple of several, and `f` as a function of it."""
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
    """The unit vectors of a structure of reals, in order; functions in it have the zero Dual."""
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


# -- assembly ----------------------------------------------------------------------------------------------------------


def _stacked(columns: Sequence[Any], shape: tuple[int, ...], inside: tuple[int, ...], leading: bool) -> Any:
    """One leaf of a Jacobian, from its derivatives, of shape `inside`, for each unit vector of `shape`.

    Axes of `shape` come first with `leading` (rows, by unit vectors of the output), else last (columns).
    """
    if not shape:
        return columns[0]
    whole = (*shape, *inside) if leading else (*inside, *shape)
    return np.stack(columns, axis=0 if leading else -1).reshape(whole) if columns else np.zeros(whole)


def _by_columns(x: Any, pushed: Sequence[Any]) -> Any:
    """The Jacobian at x from its columns; for functions in the result, a function that does this for calls."""

    def functions(*columns: Any) -> Any:
        def jacobian(*arguments: Any, **named: Any) -> Any:
            original = snapshot((arguments, named))
            several = [f(*copy[0], **copy[1]) for f in columns for copy in [snapshot(original)]]
            return _by_columns(x, several)

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
    """The Jacobian by an x without elements."""

    def function(f: Any) -> Any:
        return lambda *arguments, **named: _without(x, f(*arguments, **named))

    return of_result(value, lambda y: _by_input(x, [], shape_of(y)), function)


def _by_rows(x: Any, of_these: Function, copied: Callable[[], Function]) -> Any:
    """The Jacobian of a function at x, row by row.

    `copied` gives the same function with copies of its other arguments, for derivatives that are functions.
    """
    value, row = rows("jacrev", of_these, x)
    value = of_result(value, lambda y: y, lambda f: f)
    found = iter([row(unit) for unit in basis(value)])

    def leaf(y: Any) -> Any:
        shape, mine = shape_of(y), [next(found) for _ in range(size(y))]
        return transform(x, lambda r: np.zeros((*shape, *shape_of(r)))) if not mine else _by_output(mine, shape)

    if not any(is_function(y) for y in leaves(value)):
        return transform(value, leaf)
    same = copied()
    return transform(value, leaf, calls_differentiated("jacrev", same, x, lambda g: _by_rows(x, g, lambda: g)))


def _by_input(x: Any, columns: Sequence[Any], inside: tuple[int, ...]) -> Any:
    rest = iter(columns)
    return transform(x, lambda r: _stacked([next(rest) for _ in range(size(r))], shape_of(r), inside, False))


def _by_output(rows: Sequence[Any], shape: tuple[int, ...]) -> Any:
    return together("jacrev", rows[0], rows[1:], lambda *parts: _stacked(parts, shape, shape_of(parts[0]), True))
