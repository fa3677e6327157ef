"""Fixed points: the solution of x = f(x), differentiated by what f closes over (implicit differentiation).

The equation is solved on plain numbers. Derivatives are restored by Newton steps with the derivative A of f at the
solution, `y += (I - A)^-1 (f(y) - y)`: the error of y is a polynomial in tags without terms of low degree, each step
removes the lowest degree, and a product with more factors than there are tags is zero. So one step for each tag is
enough, in any mix of modes; for a power series, one for each order. A and its inverse are plain numbers; only the
operations of f, differences, and a constant linear map are recorded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from ...arguments import whole_number
from ...autodiff.fixed_point import DENSE, ILL
from ...calls import strict_options
from ...errors import Error, shown
from ...ir import failures
from ...ir.failures import failure
from ...ir.operation import Operation
from ...ir.ops import scalars as ops
from ...ir.ops.arrays import linear, shape_of
from ...ir.ops.ravelling import ravel, size, unravel
from ..kinds import fresh, plain, real_part, zero_like
from ..numbers import Bundle, Number, Tape, TapeCell
from ..perturbations import inside, located, opened
from ..pytree import is_function, leaves, together, transform
from ..splitting import split
from ..sweep import sweep
from ..tape import Recorded, Scalars
from .gradients import argument


@strict_options
def fixed_point(f: Callable[[Any], Any], x0: Any, tolerance: float = 1e-12, max_steps: int = 10_000) -> Any:
    """The solution of x = f(x) by iterating f from `x0`, with derivatives by the implicit function theorem.

    x is a real, an array or a structure of these, and `f` returns the same. The iteration ends where no element changes
    by more than `tolerance` times max(1, |x|). Derivatives are with respect to the numbers that `f` closes over, in
    both modes and to every order; that by `x0` is zero. Their cost does not depend on the number of steps: for each
    open pass one more evaluation of `f`, and once its Jacobian, which above 1,000 reals is not built but used in an
    iteration of its own (a contraction wherever that of `f` is one).

    Raises NotConverged where the iteration does not converge within `max_steps`, Error where x becomes infinite or NaN
    or `f` returns another structure, NotDifferentiable where I - A is singular. (Christianson 1994, "Reverse
    accumulation and attractive fixed points", has the first order.)

    >>> from dynagrad.eager.verbs.gradients import derivative
    >>> derivative(lambda r: fixed_point(lambda a: a * a + r, 0.0))(0.0)  # of (1 - sqrt(1 - 4 r)) / 2
    1.0
    """
    with located():
        return _solved(f, x0, tolerance, max_steps)


def _solved(f: Callable[[Any], Any], x0: Any, tolerance: float, max_steps: int) -> Any:
    if not callable(f):
        raise Error(f"fixed_point: the first argument should be a function, and is {shown(f)}")
    max_steps = whole_number("fixed_point: max_steps", max_steps, 1)
    if not isinstance(tolerance, float | int) or not 0.0 <= tolerance < math.inf:
        raise Error(f"fixed_point: the tolerance is a real from 0, and {shown(tolerance)} is not")
    x = transform(argument("fixed_point", 1, x0), real_part)
    if any(is_function(leaf) for leaf in leaves(x)):
        raise Error("fixed_point: x0 has a function in it; a fixed point is of reals, arrays and structures of these")
    with _no_tapes():
        x = _settled(f, x, tolerance, max_steps)
    reals, corrections, since = list(leaves(x)), 0, fresh()
    solve: Callable[[Any], Any] | None = None
    y = x
    while True:
        z = _called(f, y)
        if corrections >= _degree([*leaves(y), *leaves(z)], since):
            return y
        if solve is None:
            with _no_tapes():
                solve = _inverse(f, x, max_steps)
        corrections += 1
        residual = [_infinitesimal(ops.subtract(b, a)) for a, b in zip(leaves(y), leaves(z), strict=True)]
        change = iter(residual if not reals else unravel(solve(ravel(residual)), [shape_of(r) for r in reals]))
        y = transform(y, lambda r, change=change: ops.add(r, next(change)))  # type: ignore[misc]  # the default binds the value of this round


def _infinitesimal(x: Any) -> Any:
    """A number minus its value, so that the solution is the same to the bit with derivatives and without."""
    return ops.subtract(x, real_part(x))


def _called(f: Callable[[Any], Any], x: Any) -> Any:
    z = f(transform(x, _writable))
    return together("fixed_point: the result of f", x, [z], lambda _, q: q)


def _writable(x: Any) -> Any:
    return x.copy() if isinstance(x, np.ndarray) else x


def _settled(f: Callable[[Any], Any], x: Any, tolerance: float, max_steps: int) -> Any:
    change = math.inf
    for step in range(1, max_steps + 1):
        new = transform(_called(f, x), real_part)
        change, settled = 0.0, True
        for a, b in zip(leaves(x), leaves(new), strict=True):
            if not np.isfinite(b).all():
                raise failure(failures.NAN if np.isnan(b).any() else failures.INFINITE, step)
            d = np.abs(b - a)
            settled = settled and bool((d <= tolerance * np.maximum(1.0, np.abs(b))).all())
            change = max(change, float(np.max(d, initial=0.0)))
        x = new
        if settled:
            return x
    raise failure(failures.UNSETTLED, max_steps, change)


@contextmanager
def _no_tapes() -> Iterator[None]:
    """A context in which all reverse passes are paused."""
    with ExitStack() as stack:
        for tape in inside():
            if isinstance(tape, Tape):
                stack.enter_context(tape.pause(set()))
        yield


# -- the number of Newton steps ----------------------------------------------------------------------------------------


def _degree(numbers: Sequence[Any], since: int) -> int:
    """The highest degree of a product of tags in these numbers.

    A tag may be in the residuals of a cell only, so entries that are younger than `since` are searched too. Older ones
    occur in a product with the tag of their tape already.
    """
    orders: dict[int, int] = {}
    stack, tapes = list(numbers), set()
    while stack:
        x = stack.pop()
        if not isinstance(x, Number):
            continue
        orders[x.tag] = max(orders.get(x.tag, 0), getattr(x, "order", 1))
        if not isinstance(x, TapeCell):
            stack.extend(x.held())
            continue
        stack.append(x.primal)
        if x.tape.tag not in tapes:
            tapes.add(x.tape.tag)
            for number in reversed(x.tape.entries):
                if number < since:
                    break
                held = _held(x.tape.entries[number])
                if held is None:  # not known: it may hold the tag of any open pass
                    for one in inside():
                        orders.setdefault(one.tag if isinstance(one, Tape) else one, 1)
                else:
                    stack.extend(held)
    return sum(orders.values())


def _held(entry: Any) -> Sequence[Any] | None:
    """The residuals of an entry; None where they are not known."""
    if entry is None:
        return ()
    if isinstance(entry, tuple):
        return entry[1::2]
    if isinstance(entry, Scalars):
        return entry.entry[1::2]
    if isinstance(entry, Recorded):
        return (entry.result, *entry.arguments)
    inner = getattr(entry, "pull", None)  # for a part of a split cell: its entry
    return None if inner is None else _held(inner)


# -- the linear map ----------------------------------------------------------------------------------------------------


def _inverse(f: Callable[[Any], Any], x: Any, max_steps: int) -> Callable[[Any], Any]:
    """(I - A)^-1 as an operation on vectors, A the derivative of f at x."""
    forward, backward = (_dense if sum(map(size, leaves(x))) <= DENSE else _iterated)(f, x, max_steps)
    there: Operation = linear("fixed_point", forward, lambda d, s: back(d))
    back: Operation = linear("fixed_point_transposed", backward, lambda d, s: there(d))
    return there


Maps = tuple[Callable[[Any], Any], Callable[[Any], Any]]  # a linear map of plain vectors and its transpose


def _times_a(f: Callable[[Any], Any], x: Any, direction: Any) -> Any:
    """A times a vector, by a forward pass, as a plain vector."""
    tag = fresh()
    tangents = iter(unravel(direction, [shape_of(leaf) for leaf in leaves(x)]))
    with opened(tag):
        z = _called(f, transform(x, lambda r: Bundle(tag, r, next(tangents))))
        pairs = [split(tag, leaf) for leaf in leaves(z)]
    return ravel([real_part(zero_like(p) if d is None else d) for p, d in pairs])


def _dense(f: Callable[[Any], Any], x: Any, max_steps: int) -> Maps:
    n = sum(map(size, leaves(x)))
    a = np.stack([_times_a(f, x, unit) for unit in np.eye(n)], axis=-1)
    matrix = np.eye(n) - a
    if not np.isfinite(matrix).all():
        raise failure(failures.NOT_FINITE)
    try:
        inverse = np.linalg.inv(matrix)
        condition = float(np.linalg.norm(matrix, 1) * np.linalg.norm(inverse, 1))
    except np.linalg.LinAlgError:
        condition = math.inf
    if not condition < ILL:
        raise failure(failures.SINGULAR)
    return lambda v: inverse @ v, lambda v: inverse.T @ v


def _iterated(f: Callable[[Any], Any], x: Any, max_steps: int) -> Maps:
    def transposed(direction: Any) -> Any:
        """The transpose of A times a vector, by a reverse pass of its own."""
        tape = Tape()
        with _no_tapes(), opened(tape.tag, tape=tape):
            inputs = transform(x, tape.cell)
            seed: dict[int, Any] = {}
            for leaf, c in zip(
                leaves(_called(f, inputs)), unravel(direction, [shape_of(leaf) for leaf in leaves(x)]), strict=True
            ):
                if isinstance(leaf, TapeCell) and leaf.tape is tape:
                    seed[leaf.number] = ops.add(seed[leaf.number], c) if leaf.number in seed else c
            cells = list(leaves(inputs))
            adjoints = sweep(tape, seed, {cell.number for cell in cells}, free=True)
        return ravel([real_part(plain(adjoints.get(cell.number, zero_like(cell)))) for cell in cells])

    def forward(direction: Any) -> Any:
        with _no_tapes():
            return _times_a(f, x, direction)

    def solve(apply_a: Callable[[Any], Any], right: Any) -> Any:
        """The solution of v = right + A v, by iteration."""
        v = right
        for _ in range(max_steps):
            new = right + apply_a(v)
            if not np.isfinite(new).all():
                break
            done = np.max(np.abs(new - v), initial=0.0) <= 1e-15 * np.max(np.abs(new), initial=0.0)
            v = new
            if done:
                return v
        raise failure(failures.LINEAR_UNSETTLED, max_steps)

    return lambda v: solve(forward, v), lambda v: solve(transposed, v)
