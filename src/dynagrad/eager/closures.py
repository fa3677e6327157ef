"""Higher-order functions: derivatives of functions whose outputs or inputs are functions.

As an output: the tangent of a function along a tag is the function that gives the tangents of its results (`tangent`,
`primal`). It may be called with numbers that hold the tag already, from an earlier call of itself; so every call swaps
the tag for a fresh one in its arguments, and back in its results. That keeps `h(h(exp))` right, without perturbation
confusion (Manzyuk et al. 2019).

As an input, in forward mode: the tangent of a function is a function (`paired`). In reverse mode: the cotangent of a
function is a `Dual`, a linear functional on functions. A call of the function at x whose result has the adjoint c
contributes the functional h -> <c, h(x)>; a result that is a function is such an input again, with a Dual as adjoint.

Structures are taken apart by `pytree.py`, numbers by `splitting.py`; sums of functions are in `combinations.py`. What
is returned to a user is checked by `result_checks.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..errors import Error, counted, shown
from ..ir.operation import apply
from ..ir.ops import scalars as ops
from ..ir.ops.arrays import sum_to
from .combinations import Combination
from .copies import kept
from .kinds import fresh, plain, shape_of, tag_of, zero_like
from .numbers import Number, Tape, TapeCell, bundle
from .perturbations import any_younger, opened, place
from .pytree import (
    float_of,
    is_exact,
    is_function,
    is_real,
    leaves,
    no_hidden_numbers,
    of_result,
    parts,
    together,
    transform,
)
from .result_checks import finite_choice, unescaped
from .splitting import split

# -- functions as outputs ----------------------------------------------------------------------------------------------


def tangent(tag: int, x: Any) -> Any:
    """The tangent of a structure along a tag; of a function, the function that gives tangents of its results."""
    return of_result(x, lambda r: _tangent_of_real(tag, r), lambda f: _part_of_function(tag, f, tangent))


def primal(tag: int, x: Any) -> Any:
    """The primal of a structure: its part without a tag."""
    return transform(x, lambda r: split(tag, r)[0], lambda f: _part_of_function(tag, f, primal))


def _tangent_of_real(tag: int, x: Any) -> Any:
    first, second = split(tag, x)
    return zero_like(first) if second is None else second


def _part_of_function(tag: int, f: Any, take: Callable[[int, Any], Any]) -> Any:
    def part(*arguments: Any, **named: Any) -> Any:
        other = fresh()
        with opened(tag, other):
            y = f(*swapped(tag, other, arguments), **swapped(tag, other, named))
            no_hidden_numbers("a derivative that is a function", y)
            found = take(tag, y)
            if take is tangent:
                finite_choice("a derivative that is a function", found, y)
            found = swapped(tag, other, found)
        return unescaped("a derivative that is a function", found)

    part.__name__ = f"{take.__name__}_of_{getattr(f, '__name__', 'function')}"
    return like(f, part)


def swapped(a: int, b: int, x: Any) -> Any:
    """A structure with two tags swapped. A swapped function swaps them in its arguments and results."""
    return transform(x, lambda r: swapped_real(a, b, r), lambda f: _swapped_function(a, b, f))


def swapped_real(a: int, b: int, x: Any) -> Any:
    """A number with two tags swapped."""
    if not isinstance(x, Number):
        return x
    rest, along_a = split(a, x)
    neither, along_b = split(b, rest)
    first, both = (None, None) if along_a is None else split(b, along_a)
    if along_a is None and along_b is None:
        return x
    return bundle(
        a,
        bundle(b, neither, first),
        None if along_b is None and both is None else bundle(b, _or_zero(along_b, neither), both),
    )


def _or_zero(x: Any, like: Any) -> Any:
    return zero_like(like) if x is None else x


def _swapped_function(a: int, b: int, f: Any) -> Any:
    def called(*arguments: Any, **named: Any) -> Any:
        with opened(a, b):
            y = swapped(a, b, f(*swapped(a, b, arguments), **swapped(a, b, named)))
        return unescaped("a derivative that is a function", y)

    return like(f, called)


# -- functions as inputs, forward --------------------------------------------------------------------------------------


def paired(tag: int, x: Any, d: Any, what: str = "the tangent") -> Any:
    """A structure with tangents along a tag."""
    return together(what, x, [d], lambda p, t: bundle(tag, plain(p), kept(t)), lambda f, g: _pair_function(tag, f, g))


def _pair_function(tag: int, f: Any, g: Any) -> Any:
    if not callable(g):
        raise Error(f"the tangent of a function should be a function, and is {shown(g)}{place()}")

    def pair(*arguments: Any, **named: Any) -> Any:
        change = g(*primal(tag, arguments), **primal(tag, named))
        return plus_tangent(tag, f(*arguments, **named), change)

    return pair


def plus_tangent(tag: int, x: Any, d: Any) -> Any:
    """A structure, which may hold the tag already, with a tangent added along it."""
    if is_exact(x) and is_real(plain(d)):
        x = float_of(x)  # an integer from a function that gives reals at other points
    return together(
        "the tangent of a function's result",
        x,
        [d],
        lambda p, t: apply(ops.add, p, bundle(tag, zero_like(p), t)),
        lambda f, g: _pair_function(tag, f, g),
    )


# -- functions as inputs, backward -------------------------------------------------------------------------------------


class Dual:
    """A linear functional on functions: the cotangent of a function.

    `Dual(functional)` takes a function from functions h to reals that is linear in h: sums of values of h at points, or
    of derivatives there, integrals. Calling it on a function gives that real. Duals form a vector space (`+`, `*`,
    `dg.add`, `dg.scale`); `Dual()` is zero.

    >>> at_two = Dual(lambda h: h(2.0))
    >>> (at_two + at_two * 3.0)(lambda x: x * x)
    16.0
    """

    __slots__ = ("_combination",)

    def __init__(self, functional: Callable[[Any], Any] | None = None) -> None:
        if functional is not None and not callable(functional):
            raise Error(
                f"dg.Dual: the functional should be a function from functions to reals, and is {shown(functional)}"
            )
        self._combination = None if functional is None else Combination(functional)

    @staticmethod
    def at(c: Any, arguments: tuple[Any, ...], named: dict[str, Any] | None = None) -> Dual:
        """The functional h -> <c, h(arguments)>.

        >>> Dual.at(10.0, (2.0,))(lambda x: x * x)
        40.0
        """
        return Dual(At(c, arguments, named or {}))

    def __call__(self, function: Callable[..., Any]) -> Any:
        if not callable(function):
            raise Error(f"a Dual should be applied to a function, and not to {shown(function)}{place()}")
        total: Any = 0.0
        for factor, term in terms_of(self):
            y = term(function)
            if type(y) is not float and (isinstance(y, tuple | list) or not is_real(plain(y)) or shape_of(y)):
                raise Error(f"the functional of a Dual should give one real, and gave {shown(y)}{place()}")
            if not (type(factor) is float and factor == 1.0):
                y = apply(ops.multiply, plain(factor), plain(y))
            total = apply(ops.add, total, plain(y))
        return total

    def __dynagrad_halves__(self, tag: int) -> tuple[Dual, Dual]:
        """The primal and the tangent of the functional along a tag; see `splitting.split`."""
        return primal(tag, self), tangent(tag, self)

    def __dynagrad_plus__(self, other: Any) -> Dual:
        if not isinstance(other, Dual):
            raise Error(f"only a Dual can be added to a Dual, and not {shown(other)}{place()}")
        if self._combination is None or other._combination is None:
            return other if self._combination is None else self
        return _dual(self._combination.plus(other._combination))

    def __dynagrad_times__(self, c: Any) -> Dual:
        return self if self._combination is None else _dual(self._combination.times(c))

    def __add__(self, other: Any) -> Dual:
        return self.__dynagrad_plus__(other)

    def __sub__(self, other: Any) -> Dual:
        return self.__dynagrad_plus__(-other)

    def __neg__(self) -> Dual:
        return self.__dynagrad_times__(-1.0)

    def __radd__(self, other: Any) -> Dual:
        """For `sum()`, which starts from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __truediv__(self, c: Any) -> Dual:
        return self.__dynagrad_times__(1.0 / c)

    def __mul__(self, c: Any) -> Dual:
        return self.__dynagrad_times__(c)

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"<Dual of {counted(len(terms_of(self)), 'term')}>"


def terms_of(dual: Dual) -> list[tuple[Any, Callable[[Any], Any]]]:
    """The functionals that a dual is the sum of, each with its factor."""
    return [] if dual._combination is None else dual._combination.terms()


class At:
    """The functional h -> <c, h(arguments)>."""

    __slots__ = ("arguments", "c", "named")

    def __init__(self, c: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        self.c, self.arguments, self.named = c, arguments, named

    def __call__(self, h: Any) -> Any:
        return inner(self.c, h(*self.arguments, **self.named))


def _dual(combination: Combination) -> Dual:
    made = Dual()
    made._combination = combination
    return made


def like(f: Any, made: Callable[..., Any]) -> Any:
    """A function derived from f: a Dual if f is one."""
    return Dual(made) if isinstance(f, Dual) else made


def inner(c: Any, x: Any) -> Any:
    """The pairing <c, x> of a cotangent with a vector: reals, arrays, structures, a Dual with a function."""
    total: list[Any] = []

    def reals(p: Any, q: Any) -> Any:
        product = apply(ops.multiply, plain(p), q)
        total.append(_summed(product))
        return p

    def functions(d: Any, f: Any) -> Any:
        if not isinstance(d, Dual):
            raise Error(f"the cotangent of a function should be a dg.Dual, and is {shown(d)}{place()}")
        total.append(d(f))
        return d

    together("the value", c, [x], reals, functions)
    result: Any = 0.0
    for term in total:
        result = apply(ops.add, result, term)
    return result


def _summed(x: Any) -> Any:
    return sum_to(())(x) if np.shape(x) else x


class TapedFunction:
    """An input of a reverse pass that is a function: its calls are recorded on the tape.

    A call inside a younger pass is not recorded, since its contribution depends on derivatives of a function h that is
    not known yet. Then the tape is marked, and the pass computes its Duals in forward mode; see `gradients.Pullback`.
    """

    def __init__(self, tape: Tape, function: Callable[..., Any], number: int) -> None:
        self.tape, self.function, self.number = tape, function, number
        self.__name__ = getattr(function, "__name__", "function")

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        at = transform(stripped(self.tape, (arguments, named)), kept, lambda f: f)  # copies, in case of later writes
        result = self.function(*arguments, **named)
        if self.tape.paused and self.tape.is_paused(self.number):
            return result
        if any_younger(self.tape.tag) or any(tag_of(x) > self.tape.tag for x in leaves((at, result))):
            self.tape.forward = True
            return result

        def pick(h: Any) -> Any:
            positional, by_name = transform(at, lambda x: x, lambda f: f)  # new containers, since h may change them
            return h(*positional, **by_name)

        whole = is_exact(result) and not isinstance(result, bool | np.bool_ | np.ndarray)
        return self._result(float_of(result) if whole else result, pick)  # an integer counts as a real here

    def _result(self, result: Any, pick: Callable[[Any], Any]) -> Any:
        """The result of a call, recorded; `pick(h)` is the corresponding result of another function h."""
        if is_real(result):
            return self._real(result, pick)
        taken = parts(result)
        if taken is None:
            return self._function(result, pick) if is_function(result) else result
        inside, unflatten = taken
        return unflatten(result, [self._result(part, _place(pick, i)) for i, part in enumerate(inside)])

    def _real(self, value: Any, pick: Callable[[Any], Any]) -> Any:
        tape, mine = self.tape, self.number
        before = value.number if isinstance(value, TapeCell) and value.tape is tape else None

        def pull(delta: Any) -> Iterable[tuple[int, Any]]:
            found: list[tuple[int, Any]] = [(mine, Dual(lambda h: inner(delta, pick(h))))]
            if before is not None:
                found.append((before, delta))
            return found

        numbers = [mine] if before is None else [mine, before]
        return tape.cell(kept(plain(value)) if before is None else value.primal, Entry(pull, numbers))

    def _function(self, f: Callable[..., Any], pick: Callable[[Any], Any]) -> TapedFunction:
        mine, number = self.number, fresh()

        def pull(delta: Any) -> Iterable[tuple[int, Any]]:
            return [(mine, Dual(lambda h: delta(pick(h))))]

        self.tape.entries[number] = Entry(pull, [mine])
        return TapedFunction(self.tape, f, number)


def _place(pick: Callable[[Any], Any], i: int) -> Callable[[Any], Any]:
    def part(h: Any) -> Any:
        taken = parts(pick(h))
        if taken is None:
            raise Error("a function that a Dual was applied to returns another structure than the one it belongs to")
        return taken[0][i]

    return part


class Entry:
    """A `Pull` made of a function, with the numbers of the parent cells."""

    __slots__ = ("numbers", "pull")

    def __init__(self, pull: Callable[[Any], Iterable[tuple[int, Any]]], numbers: list[int]) -> None:
        self.pull, self.numbers = pull, numbers

    def __call__(self, delta: Any) -> Iterable[tuple[int, Any]]:
        return self.pull(delta)


def stripped(tape: Tape, x: Any) -> Any:
    """A structure with the cells of a pass replaced by their primals, in results of its functions too."""
    return transform(
        x,
        lambda r: r.primal if isinstance(r, TapeCell) and r.tape is tape else r,
        lambda f: (
            f.function
            if isinstance(f, TapedFunction) and f.tape is tape
            else like(f, lambda *arguments, **named: stripped(tape, f(*arguments, **named)))
        ),
    )
