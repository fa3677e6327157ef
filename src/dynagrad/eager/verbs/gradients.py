"""Gradients and products with Jacobians: `jvp`, `vjp`, `grad`, `derivative`, `pullback` and `hvp`.

Names, and the order of arguments, are those of JAX. Every verb is one pass (`jvp` in forward, `vjp` in reverse mode) or
composed of these, and all nest in any order, through closures, with functions as inputs and as outputs. Values may be
tuples, lists, dicts, dataclasses and registered classes; integers, strings and None in them are constants.
`eager/numbers.py` says how numbers carry derivatives.

It is long because of the docstrings of what users call.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...calls import strict_options
from ...collector import collecting_later
from ...errors import Error, counted, shown
from ...ir.operation import apply
from ...ir.ops import scalars as ops
from ..closures import (
    Dual,
    TapedFunction,
    inner,
    paired,
    primal,
    stripped,
    tangent,
    terms_of,
)
from ..copies import kept
from ..kinds import fresh, plain, real_part, shape_of, zero_like
from ..masks import Masks
from ..numbers import Bundle, Tape, TapeCell
from ..perturbations import opened, place
from ..pytree import is_exact, is_function, is_real, leaves, no_hidden_numbers, parts, together, transform
from ..result_checks import check_open, finite_choice, finite_pullback, has_nan
from ..sweep import sweep
from ..taylor import derivative_n
from .returned import calls_differentiated, calls_undifferentiated, snapshot

Function = Callable[..., Any]

# -- arguments and results ---------------------------------------------------------------------------------------------


def argument(verb: str, index: int, x: Any) -> Any:
    """An input of a pass, copied: a real, an array of reals, a function, or a structure of these; else raises Error."""
    if type(x) is float or (type(x) is np.ndarray and x.dtype is _FLOAT and x.ndim):  # the common case
        return kept(x)
    if isinstance(x, np.ndarray) and x.dtype.kind in "biu":
        raise Error(
            f"{verb}: argument {index + 1} is an array of {x.dtype}, and derivatives are with respect to reals; "
            f"convert it with .astype(float){place()}"
        )
    if isinstance(x, bool | int | np.integer | np.bool_):
        raise Error(
            f"{verb}: argument {index + 1} is {_shown(x)}, and derivatives are with respect to reals; write "
            f"{int(x)}.0{place()}"
            if abs(int(x)) < 10**15
            else f"{verb}: argument {index + 1} is a whole number; convert it with float(){place()}"
        )
    if is_real(x):
        x = kept(plain(x))
        if isinstance(x, np.ndarray) and x.dtype.kind != "f":
            raise Error(
                f"{verb}: argument {index + 1} is an array of {x.dtype}, and derivatives are for reals{place()}"
            )
        return x
    if isinstance(x, complex | np.complexfloating) or (isinstance(x, np.ndarray) and x.dtype.kind == "c"):
        raise Error(
            f"{verb}: argument {index + 1} is complex, and has no derivatives; give its two parts as reals{place()}"
        )
    if parts(x) is None and not is_function(x):
        raise Error(
            f"{verb}: argument {index + 1} is {_shown(x)} of type {type(x).__name__}, which has no derivatives; give "
            "reals, arrays, functions, or tuples, lists, dicts and dataclasses of these, or dg.register its class"
            + place()
        )
    taken = transform(x, lambda r: kept(plain(r)), lambda f: f)
    if next(leaves(taken), None) is None and _has_exact(taken):
        raise Error(
            f"{verb}: argument {index + 1} is {_shown(x)}, which has integers where reals are; write 1.0 for 1, and "
            f"x.astype(float) for arrays, or leave it out of what is differentiated{place()}"
        )
    return taken


def _has_exact(x: Any) -> bool:
    taken = parts(x)
    return is_exact(x) if taken is None else any(map(_has_exact, taken[0]))


def own(x: Any) -> Any:
    """The same numbers in new containers, which a function may change."""
    return x if type(x) is TapeCell or type(x) is Bundle else transform(x, lambda r: r, lambda f: f)


def needs_function(verb: str, f: Any) -> None:
    """Raises Error where f is not a function."""
    if not callable(f):
        raise Error(f"{verb}: {_shown(f)} is no function{place()}")


def in_tuples(verb: str, *several: Any) -> None:
    """Raises Error where arguments are not given as tuples."""
    if not all(isinstance(x, tuple | list) for x in several):
        raise Error(f"{verb}: the primals, and the tangents, are given as a tuple with one for each argument{place()}")


def chosen(verb: str, argnums: Any, count: int) -> list[int]:
    """The positions that `argnums` selects among `count` arguments."""
    found = []
    for n in argnums if isinstance(argnums, tuple | list) else (argnums,):
        if type(n) is not int and (isinstance(n, bool) or not isinstance(n, int | np.integer)):
            raise Error(
                f"{verb}: argnums is a whole number, or a tuple of these, and {_shown(argnums)} is not{place()}"
            )
        if not -count <= n < count:
            raise Error(f"{verb}: argnums has {n}, and the call has {counted(count, 'argument')}{place()}")
        found.append(int(n) % count)
    if len(set(found)) < len(found):
        raise Error(f"{verb}: argnums has an argument twice: {_shown(argnums)}{place()}")
    return found


def _shown(x: Any) -> str:
    return shown(x)


def result(verb: str, x: Any) -> Any:
    """The result of a verb, with writable arrays that share no memory; raises Error for numbers of closed passes."""
    seen: set[int] = set()

    def own(r: Any) -> Any:
        if not isinstance(r, np.ndarray):
            return check_open(verb, r)
        owner: Any = r
        while isinstance(owner, np.ndarray) and owner.base is not None:
            owner = owner.base
        memory = id(owner)
        if memory in seen or not r.flags.writeable:
            return r.copy()
        seen.add(memory)
        return r

    return transform(x, own, lambda f: f)


_FLOAT = np.dtype(np.float64)
_INPUTS = frozenset([TapeCell, TapedFunction])  # the types of inputs of a reverse pass


# -- forward -----------------------------------------------------------------------------------------------------------


@strict_options
def jvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The value of `f` at the primals, and its derivative along the tangents: one pass in forward mode.

    A tangent has the structure of its primal; that of a function is a function. Raises Error where structures differ.

    >>> jvp(lambda x, y: x * y, (2.0, 3.0), (1.0, 10.0))
    (6.0, 23.0)
    """
    needs_function("jvp", f)
    in_tuples("jvp", primals, tangents)
    if len(primals) != len(tangents):
        raise Error(
            f"jvp: {counted(len(primals), 'primal')} and {counted(len(tangents), 'tangent')} were given; give one "
            f"tangent for each primal{place()}"
        )
    tag = fresh()
    arguments = [
        paired(tag, argument("jvp", i, x), d, f"jvp: tangent {i + 1}")
        for i, (x, d) in enumerate(zip(primals, tangents, strict=True))
    ]
    with opened(tag):
        y = f(*arguments)
        no_hidden_numbers("jvp", y)
        value, derivative = primal(tag, y), tangent(tag, y)
    return result("jvp", value), result("jvp", finite_choice("jvp", derivative, value))


@strict_options
def derivative(f: Function, n: int = 1) -> Function:
    """The n-th derivative of a function of one real, as a function; the result of `f` may be any structure.

    The derivative of a function whose results are functions is such a function again, and may be applied to itself.
    Higher orders are computed by Taylor arithmetic, in time polynomial in n.

    >>> derivative(lambda x: x * x * x)(2.0), derivative(lambda x: x * x * x, 2)(2.0)
    (12.0, 12.0)
    """
    needs_function("derivative", f)
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise Error(f"derivative: the order is a whole number from 0, and {_shown(n)} is not{place()}")

    def derived(x: Any) -> Any:
        x = argument("derivative", 0, x)
        if not is_real(x) or np.shape(x):
            raise Error(
                f"derivative: the argument is one real, and {_shown(x)} is not; for arrays and structures there are "
                f"dg.grad, dg.jvp, dg.jacfwd and dg.jacrev{place()}"
            )
        if n == 0:
            return f(x)
        if n > 1:
            found = derivative_n(f, x, n)
            return result("derivative", derivative(derivative(f), n - 1)(x) if found is NotImplemented else found)
        tag = fresh()
        with opened(tag):
            y = f(Bundle(tag, x, 1.0))
            no_hidden_numbers("derivative", y)
            found = tangent(tag, y)
            value = primal(tag, y)
        return result("derivative", finite_choice("derivative", found, value))

    return marked(derived, "derivative", f, n=n)


# -- backward ----------------------------------------------------------------------------------------------------------


class Pullback:
    """The pullback of a function: from a cotangent of its value to those of its arguments; made by `vjp`, reusable.

    A cotangent has the structure of the value; that of a function is a `Dual`. With `once` it is called only once, and
    the sweep frees the tape.
    """

    def __init__(self, tape: Tape, arguments: Sequence[Any], value: Any, function: Function, once: bool) -> None:
        self.tape, self._arguments, self._value, self._function = tape, arguments, value, function
        self._once = once

    def __call__(self, cotangent: Any, *, mask_nan: bool = False, mask_zero: bool = False) -> tuple[Any, ...]:
        """The cotangents of the arguments. With `mask_nan`, elements of the value that are NaN and have cotangent
        zero are structural zeros (they propagate nothing); with `mask_zero`, all with cotangent zero are."""
        value = self._value
        if type(value) is TapeCell and value.tape is self.tape and type(cotangent) is float and not value.shape:
            with opened(self.tape.tag):  # the fast path of gradients
                return self._swept(self.tape, self._arguments, {value.number: cotangent}, cotangent)
        cotangent = together("vjp: the cotangent", value, [cotangent], lambda y, c: kept(c), _dual)
        if any(isinstance(c, Dual) and terms_of(c) for c in leaves(cotangent)):
            return self._of_functions(cotangent)
        seed: dict[int, Any] = {}
        masks = Masks() if mask_nan or mask_zero else None

        def plant(y: Any, c: Any) -> Any:
            if isinstance(y, TapeCell) and y.tape is self.tape:
                seed[y.number] = apply(ops.add, seed[y.number], c) if y.number in seed else c
                if masks is not None:
                    lost = (mask_zero | np.isnan(real_part(y))) & (np.asarray(real_part(c)) == 0.0)
                    masks.mark(y.number, np.where(lost, 0.0, 1.0))
            return y

        together("vjp: the cotangent", value, [cotangent], plant)
        with opened(self.tape.tag):
            return self._swept(self.tape, self._arguments, seed, cotangent, masks)

    def _swept(
        self,
        tape: Tape,
        arguments: Sequence[Any],
        seed: dict[int, Any],
        cotangent: Any,
        masks: Masks | None = None,
    ) -> tuple[Any, ...]:
        numbers = [leaf.number for leaf in leaves(arguments) if type(leaf) in _INPUTS]
        adjoints = sweep(tape, seed, set(numbers), free=self._once, masks=masks)

        def real(x: Any) -> Any:
            adjoint = adjoints.get(x.number)
            return zero_like(x) if adjoint is None else adjoint

        count = itertools.count()

        def function(f: TapedFunction) -> Dual:
            at = next(count)
            return self._forward(cotangent, at) if tape.forward else adjoints.get(f.number, Dual())

        found = transform(tuple(arguments), real, function)
        assert isinstance(found, tuple)
        return found

    def _forward(self, cotangent: Any, index: int) -> Dual:
        """The Dual of one input function, by forward mode: at h, <cotangent, tangent of the value along h>."""

        def functional(h: Any) -> Any:
            tag, at = fresh(), itertools.count()
            arguments = transform(
                tuple(self._function.arguments),  # type: ignore[attr-defined]  # functions take attributes
                lambda x: x,
                lambda f: paired(tag, f, h) if next(at) == index else f,
            )
            with opened(tag):
                return inner(cotangent, tangent(tag, self._function(*arguments)))

        return Dual(functional)

    def _of_functions(self, cotangent: Any) -> tuple[Any, ...]:
        """For a value with functions: evaluates it again in a pass of its own, in which Duals are applied to them."""
        tape = Tape()
        arguments = wrapped(tape, self._function.arguments)  # type: ignore[attr-defined]  # functions take attributes
        with opened(tape.tag, tape=tape):
            value = self._function(*arguments)
            total = inner(cotangent, value)
            seed = {total.number: 1.0} if isinstance(total, TapeCell) and total.tape is tape else {}
            return self._swept(tape, arguments, seed, cotangent)


def _dual(f: Any, c: Any) -> Dual:
    if isinstance(c, Dual):
        return c
    advice = "; dg.Dual(functional) makes one of a function from functions to reals" if callable(c) else ""
    raise Error(f"vjp: the cotangent of a function should be a dg.Dual, and is {_shown(c)}{advice}{place()}")


def wrapped(tape: Tape, x: Any) -> Any:
    """A structure with its reals and functions made inputs of a reverse pass."""

    def function(f: Any) -> Any:
        number = fresh()
        tape.entries[number] = None
        return TapedFunction(tape, f, number)

    return transform(x, tape.cell, function)


@strict_options
def vjp(f: Function, *primals: Any) -> tuple[Any, Pullback]:
    """The value of `f`, and its pullback: from a cotangent of the value to a tuple of those of the arguments.

    The cotangent of an argument that is a function is a `Dual`. A value that is a function needs a Dual as its
    cotangent, such as `Dual(functional)`; then `f` is evaluated once more, in a pass of its own. Where `f` called an
    argument inside another derivative, as `dg.grad(g)(2.0)` calls g, a Dual evaluates `f` again each time that it is
    applied.

    >>> value, pullback = vjp(lambda x, y: x * y, 2.0, 3.0)
    >>> value, pullback(10.0)
    (6.0, (30.0, 20.0))
    >>> value, pullback = vjp(lambda x: lambda y: x * x * y, 3.0)
    >>> value(5.0), pullback(Dual(lambda h: h(5.0) - h(1.0)))
    (45.0, (24.0,))
    """
    needs_function("vjp", f)
    value, pullback = vjp_unchecked("vjp", f, primals)

    def back(cotangent: Any) -> Any:
        found = pullback(cotangent)
        if has_nan(found) and has_nan(value):
            found = pullback(cotangent, mask_nan=True)
        return result("vjp", finite_pullback("vjp", found, value, cotangent))

    return result("vjp", value), marked(back, "vjp", f, primals=primals)  # type: ignore[return-value]  # what is known of it above is more than its type says


def rows(verb: str, f: Function, x: Any) -> tuple[Any, Function]:
    """The value at x, and a function from unit vectors to rows of the Jacobian; a row does not depend on components
    other than its own, even where these have infinite derivatives."""
    value, pullback = vjp_unchecked(verb, f, (x,))

    def row(unit: Any) -> Any:
        found = pullback(unit)
        if has_nan(found):
            found = pullback(unit, mask_zero=True)
        return result(verb, finite_pullback(verb, found, value, unit))[0]

    return result(verb, value), row


def vjp_unchecked(verb: str, f: Function, primals: Sequence[Any], *, once: bool = False) -> tuple[Any, Pullback]:
    """`vjp` of arguments that are not checked, for `verb`; with `once` the pullback is called only once."""
    inputs = tuple([argument(verb, i, x) for i, x in enumerate(primals)])
    tape = Tape()
    arguments = wrapped(tape, inputs)

    def function(*xs: Any) -> Any:
        return f(*map(own, xs))  # new containers, since it may change them

    function.arguments = inputs  # type: ignore[attr-defined]  # functions take attributes
    with opened(tape.tag, tape=tape), collecting_later():
        y = function(*arguments)
        no_hidden_numbers(verb, y)
    if type(y) is TapeCell and y.tape is tape:  # the fast path of gradients
        return y.primal, Pullback(tape, arguments, y, function, once)
    value = transform(y, lambda r: stripped(tape, r), calls_undifferentiated(verb, lambda: function(*inputs)))
    return value, Pullback(tape, arguments, transform(y, plain, lambda g: g), function, once)


def _value_and_gradient(f: Function, xs: tuple[Any, ...], alone: bool, copied: Callable[[], Function]) -> Any:
    """The value of a function, its gradient, by one argument if `alone`, else as a tuple, and the pullback.

    If the value is a function, so is the gradient: a call of it is the gradient of a call of the value. `copied` gives
    the same function with copies of its other arguments, for these later evaluations.
    """

    def one(*arguments: Any) -> Any:
        y = f(*arguments)
        if type(y) is TapeCell and not y.shape:
            return y
        if is_function(y) and parts(y) is None:
            return y
        if not isinstance(y, tuple | list) and is_real(plain(y)) and not shape_of(y):
            return y
        raise Error(
            f"grad: the function should return one real, or a function whose calls do, and returned {_returned(y)}; "
            f"for other results there are dg.jacrev, dg.vjp and dg.jacfwd{place()}"
        )

    value, pullback = vjp_unchecked("grad", one, xs, once=True)
    if is_function(value):
        inputs = pullback._function.arguments  # type: ignore[attr-defined]  # functions take attributes
        f = copied()  # for calls of the value, too

        def derive(g: Function) -> Any:
            return _value_and_gradient(g, inputs, alone, lambda: g)[1]

        gradient = calls_differentiated("grad", f, inputs[0] if alone else inputs, derive)(value)
    else:
        gradient = finite_pullback("grad", pullback(1.0), value)
        gradient = result("grad", gradient[0] if alone else gradient)
    return result("grad", value), gradient, pullback


@strict_options
def value_and_grad(f: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """The value of a function whose result is one real, and its gradient with respect to the arguments of `argnums`.

    The gradient has the structure of the argument; for several arguments it is a tuple. By an argument that is a
    function it is a `Dual`. With `has_aux` the function returns its value and something else, which is returned as
    well. If the result is a function whose calls give reals, the gradient is a function of the gradients of these
    calls. Each evaluates `f` again.

    >>> value_and_grad(lambda x, y: x * x * y)(3.0, 2.0)
    (18.0, 12.0)
    >>> value, gradient = value_and_grad(lambda x: lambda y: x * x * y)(3.0)
    >>> value(2.0), gradient(2.0)
    (18.0, 12.0)
    """
    needs_function("grad", f)
    if not isinstance(has_aux, bool):
        raise Error(f"grad: has_aux is True or False, and {shown(has_aux)} is neither")

    def both(*arguments: Any, **named: Any) -> Any:
        places = chosen("grad", argnums, len(arguments))
        aux: list[Any] = []

        def with_others(others: Any) -> Function:
            positional, by_name = others

            def of_these(*xs: Any) -> Any:
                full = list(positional)
                for n, x in zip(places, xs, strict=True):
                    full[n] = x
                y = f(*full, **by_name)
                if has_aux:
                    if not isinstance(y, tuple | list) or len(y) != 2:
                        raise Error(
                            f"grad: with has_aux the function should return its value and something else, and "
                            f"returned {_returned(y)}{place()}"
                        )
                    y, extra = y
                    no_hidden_numbers("grad", extra)
                    aux[:] = [extra]
                return y

            return of_these

        def copied() -> Function:
            return with_others(snapshot((arguments, named)))

        xs = tuple([arguments[n] for n in places])
        alone = not isinstance(argnums, tuple | list)
        value, gradient, pullback = _value_and_gradient(with_others((arguments, named)), xs, alone, copied)
        if has_aux:
            tape, functions = pullback.tape, None
            if any(map(is_function, leaves(aux[0]))):
                same = copied()

                def undifferentiated() -> Any:
                    same(*map(own, pullback._function.arguments))
                    return aux[0]

                functions = calls_undifferentiated("grad", undifferentiated)
            value = (value, result("grad", transform(aux[0], lambda r: stripped(tape, r), functions)))
        return value, gradient

    return marked(both, "value_and_grad", f, argnums=argnums, has_aux=has_aux)


@strict_options
def grad(f: Function, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Function:
    """The gradient of a function whose result is one real, or a function whose calls give one; see `value_and_grad`.

    At the edges, here and in all verbs: the derivative of `abs` and `np.sign` at 0 is 0; that of `np.maximum`, `np.max`
    and the like goes to the first of equal elements, and `np.sort` is stable; the ends of `np.clip` are inside; the
    derivative of `x**0` is 0 everywhere, and so is that of `0.0**y` by y; those of `np.sqrt` and `np.log` at 0 are
    infinite; `np.where` ignores what it does not select, even infinities and NaN. Where the chain rule has no answer,
    which is 0 times infinity, NotDifferentiable is raised: `np.sqrt(x)**2` and `np.linalg.norm` at 0, `x**y` by y where
    x is negative, vectors of equal eigenvalues. `docs/functions/edges.md` has the whole table.

    >>> grad(abs)(0.0), grad(lambda x: max(x, 0.0))(0.0), grad(lambda x: x**0)(0.0)
    (0.0, 1.0, 0.0)
    >>> grad(lambda x: x * x)(3.0)
    6.0
    >>> grad(lambda x: lambda y: x * x * y)(3.0)(5.0)  # the gradient of a function result is a function
    30.0
    >>> import math
    >>> grad(lambda f: f(2.0) * 3.0)(math.sqrt)(lambda x: x)  # the cotangent of a function is a functional
    6.0
    """
    both = value_and_grad(f, argnums, has_aux)

    def gradient(*arguments: Any, **named: Any) -> Any:
        value, found = both(*arguments, **named)
        return (found, value[1]) if has_aux else found

    return marked(gradient, "grad", f, argnums=argnums, has_aux=has_aux)


gradient = grad


# -- functions that verbs make -----------------------------------------------------------------------------------------


def marked(made: Function, verb: str, f: Any, **options: Any) -> Function:
    """Marks a function that a verb made: `__dynagrad__` has the verb, its function and its options, for the compiler.

    >>> grad(abs, argnums=0).__dynagrad__
    ('grad', <built-in function abs>, {'argnums': 0, 'has_aux': False})
    """
    made.__name__ = f"{verb}_of_{getattr(f, '__name__', 'function')}"
    made.__dynagrad__ = (verb, f, options)  # type: ignore[attr-defined]  # functions take attributes
    return made


def made_by(f: Any) -> tuple[str, Any, dict[str, Any]] | None:
    """The mark of a function that a verb made; None for others, even where `functools.wraps` copied a mark to them.

    >>> made_by(derivative(abs)), made_by(abs)
    (('derivative', <built-in function abs>, {'n': 1}), None)
    """
    what: tuple[str, Any, dict[str, Any]] | None = getattr(f, "__dynagrad__", None)
    code = getattr(f, "__code__", None)
    return what if code is not None and code.co_filename.startswith(_HERE) else None


_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def _returned(y: Any) -> str:
    if is_real(y):
        return f"an array of shape {np.shape(y)}"
    return f"{_shown(y)} of type {type(y).__name__}"


@strict_options
def pullback(f: Function, omega: Function) -> Function:
    """The pullback of a 1-form along `f`: at x, the cotangent omega(f(x)) pulled back to x (Betancourt 2018).

    A 1-form maps a point to a cotangent there. With the constant 1-form of a coordinate this is a row of the Jacobian.

    >>> pullback(lambda x: x * x, lambda y: 10.0)(3.0)
    60.0
    """
    needs_function("pullback", f)
    needs_function("pullback", omega)

    def form(*arguments: Any) -> Any:
        value, back = vjp(f, *arguments)
        found = back(omega(value))
        return found[0] if len(arguments) == 1 else found

    return marked(form, "pullback", f, omega=omega)


@strict_options
def hvp(f: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The Hessian of a function whose result is one real, times a vector, by forward over reverse mode.

    With several arguments, a tuple.

    >>> hvp(lambda x: x * x * x, (2.0,), (1.0,))
    12.0
    """
    in_tuples("hvp", primals, tangents)
    if not len(primals):
        raise Error("hvp: there has to be at least one primal")
    numbers = 0 if len(primals) == 1 else tuple(range(len(primals)))
    return jvp(grad(f, numbers), primals, tangents)[1]
