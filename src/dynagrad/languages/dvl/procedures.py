"""Procedures of a running program, and the trampoline that calls them.

A call is a pair of a procedure and its argument; calls that return are frames on a stack of our own, so a tail call
takes no room, and no depth of calls is too much for Python. A frame is a function and what it holds: it gets the value
that was waited for. Derivatives are such frames: one makes a tag, calls, and a frame takes the tag out of the result
(Radul 2011). Code that was made of a program is called in the same way; `machine.py` makes it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...charts.machine import memory, resident
from ...eager.closures import swapped_real
from ...eager.kinds import fresh, real_part, zero_like
from ...eager.numbers import Bundle, Number, Tape, TapeCell, bundle
from ...eager.perturbations import opened
from ...eager.splitting import split
from ...eager.sweep import sweep
from ...errors import Error, NotDifferentiable, RoomError, counted
from ...ir import Node
from .data import Gensym, Procedure, is_pair, is_real
from .vectors import Vectors, constant, said, stays

Stack = list[tuple[Callable[[Any, Any, Any], Any], Any]]
Step = tuple[Any, Any]
"""A procedure and its argument; None and a value that is returned."""


_ROUNDS = 100_000
DEEPEST = 3_000_000
"""Calls that wait for others, at most: their frames have to be somewhere."""
MOST_STEPS = 1_000_000_000
"""Calls that a run may make, unless it is told otherwise: some minutes of them."""
MOST_PARTS = 10_000
"""Parts of one number with derivatives inside of derivatives: each level doubles them, and a product takes three times
as long as on the level before, so a minute goes by until there are as many."""


MOST_REALS = 20_000_000
"""Reals in what a gradient is taken by: a structure whose parts are shared may have more than can be counted."""


def room() -> int:
    """The bytes by which a run may grow: half of the memory that the process may use, as for a chart."""
    return memory() // 2


def run(f: Any, x: Any, max_steps: int | None = None) -> Any:
    """The value of a call. Raises Error where calls are nested too deep, or after so many steps."""
    stack: Stack = []
    try:
        return _run(f, x, stack, max_steps)
    except Exception as problem:
        if not hasattr(problem, "dvl_frames"):  # for `machine.py`, which knows where they stand in the program
            problem.dvl_frames = [then for then, _ in stack[-100:]]  # type: ignore[attr-defined]  # as any object has
        raise


def _run(f: Any, x: Any, stack: Stack, max_steps: int | None) -> Any:
    done, before = 0, -1
    while True:
        for _ in range(_ROUNDS):
            if f is None:
                if not stack:
                    return x
                then, held = stack.pop()
                f, x = then(held, x, stack)
            elif f.__class__ is DvlClosure:
                f, x = f.code(f.held, x, stack)
            elif isinstance(f, Procedure):
                f, x = f.enter(x, stack)  # type: ignore[attr-defined]  # all but closures have it
            elif callable(f):
                f, x = foreign(f, x, stack)
            else:
                raise Error(f"{said(f)} is called, and is no procedure")
        done += _ROUNDS
        name = getattr(f, "name", "a procedure")
        if len(stack) > DEEPEST:
            raise Error(f"more than {DEEPEST:,} calls wait for the result of another, as `{name}` is called")
        if before < 0:
            before = resident()
        elif resident() - before > room():
            raise RoomError(f"the program takes more than {room() / 1e9:.3g} GB of memory, as `{name}` is called")
        if done >= (MOST_STEPS if max_steps is None else max_steps):
            more = "allow more with max_steps, or --max-steps"
            raise Error(f"the program was stopped after {counted(done, 'step')}, as `{name}` was called; {more}")


@dataclass(frozen=True, slots=True, eq=False)
class LambdaCode:
    """The lambda of the core language that a closure is made of, the names of what it holds, and what calls it inside
    of compiled functions: `lift(specialiser, closure)`."""

    code: Any
    names: tuple[str, ...]
    lift: Callable[[Any, DvlClosure], Any]


class DvlClosure(Procedure):
    """A lambda with what it holds."""

    __slots__ = ("code", "core", "held", "name")

    def __init__(self, code: Callable[..., Step], held: tuple[Any, ...], name: str, core: LambdaCode | None) -> None:
        self.code, self.held, self.name, self.core = code, held, name, core

    @property
    def __name__(self) -> str:
        return self.name

    def __dynagrad_lift__(self, s: Any) -> Any:
        """What calls this inside of compiled functions."""
        assert self.core is not None
        return self.core.lift(s, self)

    def __call__(self, *arguments: Any) -> Any:
        return called(self, arguments)

    def __repr__(self) -> str:
        return f"#[procedure {self.name}]"


def called(f: Any, arguments: tuple[Any, ...]) -> Any:
    """A call from Python; several arguments are a chain of pairs."""
    x: Any = ()
    for i, argument in enumerate(reversed(arguments)):
        x = (from_python(argument), x) if i else from_python(argument)
    return run(f, x)


def from_python(x: Any) -> Any:
    """A value of Python's as one of DVL: whole numbers are reals, a list of Python's is a list."""
    if isinstance(x, bool) or type(x) is float:
        return x
    if isinstance(x, list):
        found: Any = ()
        for item in reversed(x):
            found = (from_python(item), found)
        return found
    if isinstance(x, tuple):
        if len(x) not in (0, 2):
            raise Error(f"a tuple is a pair in DVL, and one of {len(x)} was given; a list of Python's is a list")
        return tuple(map(from_python, x))
    if isinstance(x, int) or (
        not isinstance(x, Number | Node) and hasattr(x, "__float__") and not getattr(x, "shape", ())
    ):
        return float(x)
    return x


class Made(Procedure):
    """A procedure that is made of others: `enter` says how."""

    __slots__ = ("held", "name")

    def __init__(self, *held: Any) -> None:
        self.held, self.name = held, type(self).__name__.lower()

    def __call__(self, *arguments: Any) -> Any:
        return called(self, arguments)

    def __repr__(self) -> str:
        return f"#[procedure {self.name}]"

    def enter(self, x: Any, stack: Stack) -> Step:
        raise NotImplementedError


def foreign(f: Callable[..., Any], x: Any, stack: Stack) -> Step:
    """A call of a function of Python's: a chain of pairs is its arguments, where it takes several."""
    arguments = [x]
    while is_pair(arguments[-1]):
        arguments[-1:] = arguments[-1]
    if isinstance(x, tuple) and not x:
        arguments = []
    tags = [held if isinstance(held, int) else held[0] for then, held in stack if then in _PASSES]
    with opened(*tags):
        return None, from_python(f(*arguments))


# -- sums and multiples of functions -----------------------------------------------------------------------------------


class Combined(Made):
    """The sum or difference of two procedures, or a multiple of one."""

    def enter(self, x: Any, stack: Stack) -> Step:
        sign, a, b = self.held
        if sign == "*":
            stack.append((_times, a))
            return b, x
        stack.append((_second, (sign, b, x)))
        return a, x


def _second(held: Any, y: Any, stack: Stack) -> Step:
    sign, b, x = held
    stack.append((_joined, (sign, y)))
    return b, x


def _joined(held: Any, y: Any, stack: Stack) -> Step:
    sign, first = held
    return None, VECTORS.add(first, y) if sign == "+" else VECTORS.subtract(first, y)


def _times(c: Any, y: Any, stack: Stack) -> Step:
    return None, VECTORS.multiply(c, y)


VECTORS = Vectors(Combined, callable)


# -- tags in structures ------------------------------------------------------------------------------------------------


def mapped(
    x: Any, real: Callable[[Any], Any], function: Callable[[Any], Any], done: dict[int, Any] | None = None
) -> Any:
    """A structure of pairs with its reals and functions changed; lists without recursion, as they may be longer than
    what `eager/pytree.py` takes. With `done`, parts that are shared are changed once: what was made of each pair."""
    front: list[Any] = []
    while is_pair(x):
        first = x[0]
        if done is None or not is_pair(first):
            front.append(mapped(first, real, function, done))
        else:
            if id(first) not in done:
                done[id(first)] = mapped(first, real, function, done)
            front.append(done[id(first)])
        x = x[1]
    last = real(x) if is_real(x) else x if constant(x) else function(x)
    for item in reversed(front):
        last = (item, last)
    return last


def tangent(tag: int, x: Any) -> Any:
    """The tangent of a structure along a tag; of a procedure, the procedure that gives that of its results."""
    return mapped(x, lambda r: _tangent(tag, r), lambda f: PartOfResults(tag, f, tangent), {})


def primal(tag: int, x: Any) -> Any:
    """A structure without a tag."""
    return mapped(x, lambda r: split(tag, r)[0], lambda f: PartOfResults(tag, f, primal), {})


def _tangent(tag: int, x: Any) -> Any:
    if type(x) is float:
        return 0.0
    first, second = split(tag, x)
    if second is None:
        return zero_like(first)
    _answered(second, first)
    return second


def _answered(derivative: Any, value: Any) -> None:
    """Raises where the chain rule has no answer."""
    d = real_part(derivative)
    if d != d:
        y = real_part(value)
        if y == y:
            raise NotDifferentiable(
                "the chain rule has no answer here: a derivative is 0 times infinity, or infinity less infinity, such "
                "as that of the square of a square root at 0"
            )


def swapped(a: int, b: int, x: Any) -> Any:
    """A structure with two tags in each other's place."""
    return mapped(x, lambda r: swapped_real(a, b, r), lambda f: Swapped(a, b, f), {})


class Swapped(Made):
    """A procedure whose arguments and results have two tags in each other's place."""

    def enter(self, x: Any, stack: Stack) -> Step:
        a, b, f = self.held
        stack.append((_swap_back, (a, b)))
        return f, swapped(a, b, x)


def _swap_back(held: Any, y: Any, stack: Stack) -> Step:
    a, b = held
    return None, swapped(a, b, y)


class PartOfResults(Made):
    """A procedure whose results have a part taken out. Its arguments may hold the tag from an earlier call of itself,
    so each call uses a fresh one."""

    def enter(self, x: Any, stack: Stack) -> Step:
        tag, f, take = self.held
        other = fresh()
        stack.append((_take, (tag, other, take)))
        return f, swapped(tag, other, x)


def _take(held: Any, y: Any, stack: Stack) -> Step:
    tag, other, take = held
    return None, swapped(tag, other, take(tag, y))


# -- derivatives -------------------------------------------------------------------------------------------------------


class Derivative(Made):
    """`(derivative f)`: forward, along 1."""

    def enter(self, x: Any, stack: Stack) -> Step:
        if not is_real(x):
            raise Error(f"derivative: the argument is a real, and {said(x)} is none; there is directional-derivative")
        _of_some_size(x, self.held[0])
        tag = fresh()
        stack.append((_along, tag))
        return self.held[0], Bundle(tag, x, 1.0)


def _of_some_size(x: Any, f: Any) -> None:
    """Raises where a number has so many parts that the next level of derivatives would take all time and memory."""
    deep, inner = 0, x
    while isinstance(inner, Number):
        deep, inner = deep + 1, inner.primal
    if 1 << deep <= MOST_PARTS:
        return
    count, left = 0, [x]
    while left:
        inner = left.pop()
        count += 1
        if count > MOST_PARTS:
            raise RoomError(
                f"derivatives nest {deep} deep, and a number has more than {MOST_PARTS:,} parts, as "
                f"`{getattr(f, 'name', 'a procedure')}` is differentiated"
            )
        if isinstance(inner, Number):
            left.append(inner.primal)
            if type(inner) is Bundle:
                left.append(inner.tangent)


def _along(tag: int, y: Any, stack: Stack) -> Step:
    return None, tangent(tag, y)


class GradientOf(Made):
    """`(gradient-r f)`: backward. In the place of a function in the argument it gives a procedure: at h, the derivative
    of f as that function is moved along h."""

    def enter(self, x: Any, stack: Stack) -> Step:
        tape, f = Tape(), self.held[0]
        count = itertools.count(1)

        def cell(r: Any) -> Any:  # one for each place, also where parts are shared
            if next(count) > MOST_REALS:
                raise RoomError(f"gradient-r: the argument has more than {MOST_REALS:,} reals")
            _of_some_size(r, f)
            return tape.cell(r)

        cells = mapped(x, cell, lambda g: g)
        stack.append((_backward, (tape.tag, tape, cells, f, x)))
        return f, cells


def _backward(held: Any, y: Any, stack: Stack) -> Step:
    _, tape, cells, f, x = held
    if not is_real(y):
        raise Error(f"gradient-r: the result of the function is a real, and {said(y)} is none")
    numbers: set[int] = set()
    mapped(cells, lambda cell: numbers.add(cell.number), lambda g: g)
    mine = type(y) is TapeCell and y.tape is tape
    found = sweep(tape, {y.number: 1.0}, numbers, free=True) if mine else {}

    def adjoint(cell: Any) -> Any:
        d = found.get(cell.number)
        if d is None:
            return zero_like(cell)
        _answered(d, y)
        return d

    count = iter(range(1 << 60))
    return None, mapped(cells, adjoint, lambda g: Moved(f, x, next(count)))


class Moved(Made):
    """The functional of a function in the argument of `f`: at h, the derivative of f as that function moves along h."""

    def enter(self, h: Any, stack: Stack) -> Step:
        f, x, place = self.held
        if not callable(h):
            raise Error(f"the gradient with respect to a function is applied to a function, and {said(h)} is none")
        tag, count = fresh(), iter(range(1 << 60))
        step = Bundle(tag, 0.0, 1.0)
        stack.append((_along, tag))
        moved = mapped(
            x, lambda r: r, lambda g: Combined("+", g, Combined("*", step, h)) if next(count) == place else g
        )
        return f, moved


_PASSES = frozenset({_along, _backward, _take})


# -- tags that a program makes itself ----------------------------------------------------------------------------------


def _serial(tag: Any) -> int:
    if not isinstance(tag, Gensym):
        raise Error(f"a tag is made by (gensym), and {said(tag)} is none")
    return tag.serial


def make_bundle(tag: Any, x: Any, d: Any) -> Any:
    """`x` with a tangent `d` along a tag, part by part."""
    return _bundled(_serial(tag), x, d, False, {})


def _bundled(serial: int, x: Any, d: Any, inside: bool, done: dict[tuple[int, int], Any]) -> Any:
    front: list[Any] = []
    while is_pair(x) and is_pair(d):
        at = id(x[0]), id(d[0])
        if at not in done or not is_pair(x[0]):  # parts may be shared
            done[at] = _bundled(serial, x[0], d[0], True, done)
        front.append(done[at])
        x, d, inside = x[1], d[1], True
    if is_real(x) and is_real(d):
        last = ordered(serial, x, d)
    elif type(x) is type(d) and stays(x, inside) and x == d:
        last = x
    elif callable(x) and callable(d):
        last = Combined("+", x, Combined("*", Bundle(serial, 0.0, 1.0), d))
    else:
        raise Error(f"make-bundle: the tangent has the shape of the primal; they are {said(x)} and {said(d)}")
    for item in reversed(front):
        last = (item, last)
    return last


def ordered(serial: int, x: Any, d: Any) -> Any:
    """The bundle of a primal and a tangent that may hold younger tags."""
    young = [n.tag for n in (x, d) if isinstance(n, Number) and n.tag >= serial]
    return VECTORS.add(x, VECTORS.multiply(d, Bundle(serial, 0.0, 1.0))) if young else bundle(serial, x, d)


def is_bundle(x: Any) -> bool:
    return isinstance(x, Number)


def primal_of(tag: Any, x: Any) -> Any:
    return primal(_serial(tag), x)


def tangent_of(tag: Any, x: Any) -> Any:
    return tangent(_serial(tag), x)
