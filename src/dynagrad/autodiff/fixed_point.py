"""Fixed points in graphs: iteration until x = f(x, p), differentiated by the implicit function theorem.

With A the derivative of f by x at the solution and B that by p, the tangent of the solution is `(I - A)^-1 B dp`, and
the adjoint is its transpose. Up to `DENSE` reals A is a matrix; above, the linear equation is solved by iterating
`v = A v + r` (Christianson 1994), a fixed point with derivatives by the same theorem. Tracing f is done elsewhere; the
messages of errors are in `ir/failures.py`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..forks import cached
from ..ir import failures
from ..ir.builders import cond, repeat, while_
from ..ir.control import CustomDerivatives, Graph, GraphFunction, zero
from ..ir.failures import failing
from ..ir.node import Node, constant, fresh, whole
from ..ir.ops import integers
from ..ir.ops import scalars as ops
from ..ir.ops.arrays import matmul, stack, swap
from ..ir.ops.determinants import sign_of_determinant
from ..ir.ops.matrices import inverse
from ..ir.ops.places import at_set
from ..ir.ops.ravelling import ravel, unravel
from ..ir.ops.reductions import extreme, total
from ..ir.types import Type, arrays, integer, real
from . import custom_rules
from .custom_rules import Several
from .derive import tangents

DENSE = 1000  # the most reals of x for which A is a matrix; above, only products with A are computed
UNROLLED = 8  # the most columns of A that are computed without a loop
ILL = 1e15  # the least condition number that counts as singular

GOING, SETTLED, NAN, INFINITE = failures.UNSETTLED, 1, failures.NAN, failures.INFINITE  # the state of an iteration


def _largest(xs: Sequence[Node]) -> Node:
    """The largest element of all arrays; NaN if there is one."""
    found: Node | None = None
    for x in xs:
        if not x.type.size:
            continue
        one = extreme(True, tuple(range(x.ndim)))(x) if x.shape else x
        found = one if found is None else ops.maximum(found, one)
    assert found is not None
    return found


# -- the iteration -----------------------------------------------------------------------------------------------------

Settled = Callable[[Sequence[Node], Sequence[Node], Node], Node]
"""A convergence test: (the new x, the size of the changes, the tolerance) -> whether x is the solution."""


def each(new: Sequence[Node], changes: Sequence[Node], tolerance: Node) -> Node:
    """Converged when no element changes by more than the tolerance, absolute or relative to the element."""
    excess = [d - tolerance * ops.maximum(1.0, ops.absolute(x)) for x, d in zip(new, changes, strict=True)]
    done: Node = _largest(excess) <= 0.0
    return done


def all_together(new: Sequence[Node], changes: Sequence[Node], tolerance: Node) -> Node:
    """Converged when no element changes by more than the tolerance relative to the largest element."""
    done: Node = _largest(changes) <= tolerance * _largest([ops.absolute(x) for x in new])
    return done


def solver(step: Graph, states: int, settled: Settled = each, failure: int = GOING) -> GraphFunction:
    """The function that solves x = step(x, p): of the initial x, the tolerance, the most steps, and p.

    It is differentiable in p. Where it does not converge it raises `failure`; where x becomes infinite or NaN it raises
    the error for that, unless another `failure` than the default is given.

    >>> from dynagrad.ir import variable
    >>> from dynagrad.ir.interpret import run
    >>> x, a = variable("x"), variable("a")
    >>> root = solver(Graph((x, a), (0.5 * (x + a / x),)), 1)
    >>> [y] = custom_rules.apply(root, 1.0, 1e-12, 100, a)
    >>> run(Graph((a,), (y, *tangents([y], {a: 1.0}))), [4.0])
    (2.0, 0.25)
    """
    types = [v.type for v in step.inputs]
    x_types, others = types[:states], types[states:]

    def body(*inputs: Node) -> list[Node]:
        start, (tolerance, most), rest = inputs[:states], inputs[states : states + 2], inputs[states + 2 :]
        if not any(t.size for t in x_types):
            return list(start)

        def once(*state: Node) -> list[Node]:
            x, steps = state[:states], state[states]
            new = custom_rules.instance(step.outputs, dict(zip(step.inputs, (*x, *rest), strict=True)))
            changes = [ops.absolute(b - a) for a, b in zip(x, new, strict=True)]
            size = _largest([ops.absolute(b) for b in new])
            code = integers.where(settled(new, changes, tolerance), whole(SETTLED), whole(GOING))
            code = integers.where(ops.equal(size, math.inf), whole(INFINITE), code)
            code = integers.where(ops.not_equal(size, size), whole(NAN), code)
            return [*new, steps + 1, code, _largest(changes)]

        def going(*state: Node) -> Node:
            test: Node = ops.logical_and(
                integers.equal(state[states + 1], whole(GOING)), integers.less(state[states], most)
            )
            return test

        *found, steps, code, change = while_(going, once, [*start, whole(0), whole(GOING), constant(math.inf)])
        said = code if failure == GOING else whole(failure)
        done = integers.equal(code, whole(SETTLED))
        return cond(done, lambda: found, lambda: failing(x_types, said, steps, change))

    rule = _Implicit(step, states)
    arguments = (*x_types, real, integer, *others)
    return custom_rules.function("fixed point", arguments, x_types, body, CustomDerivatives(rule.tangent, rule.adjoint))


class _Implicit:
    """The derivatives of a fixed point, by the implicit function theorem."""

    def __init__(self, step: Graph, states: int) -> None:
        self.step, self.states = step, states
        self.types = [v.type for v in step.inputs[:states]]
        self.size = sum(t.size for t in self.types)

    def tangent(self, arguments: Sequence[Node], results: Sequence[Node], dots: Several) -> Several:
        first = self.states + 2
        outside = arguments[first:]
        of_parameters = [*[None] * self.states, *dots[first:]]
        right = custom_rules.forward(self.step.inputs, self.step.outputs, [*results, *outside], of_parameters)
        if all(r is None for r in right):
            return [None] * self.states
        return self._solved(False, arguments, results, custom_rules.filled(right, self.types))

    def adjoint(
        self, arguments: Sequence[Node], results: Sequence[Node], deltas: Several, wanted: Sequence[int]
    ) -> Several:
        first = self.states + 2
        found: Several = [None] * len(arguments)
        wanted = [i for i in wanted if i >= first]
        if not wanted:
            return found
        outside = arguments[first:]
        back = self._solved(True, arguments, results, custom_rules.filled(deltas, self.types))
        inner = [i - 2 for i in wanted]
        adjoints = custom_rules.backward(self.step.inputs, self.step.outputs, [*results, *outside], back, inner)
        for i in wanted:
            found[i] = adjoints[i - 2]
        return found

    def _solved(
        self, transposed: bool, arguments: Sequence[Node], results: Sequence[Node], right: Sequence[Node]
    ) -> Several:
        """(I - A)^-1 times a vector, or its transpose times a vector."""
        at = [*results, *arguments[self.states + 2 :]]
        if not self.size:
            return list(right)
        if self.size > DENSE:
            most = arguments[self.states + 1]
            linear = self._transposed_solver if transposed else self._solver
            return list(custom_rules.apply(linear, *right, 1e-15, most, *at, *right))
        [matrix] = custom_rules.instance([self._matrix], dict(zip(self.step.inputs, at, strict=True)))
        first = next(r for r in results if r.type.size)
        if self.size == 1:
            [factor] = custom_rules.apply(_reciprocal(first.type), matrix, first)
            return [ops.multiply(r, factor) if r.type.size else r for r in right]
        [inverted] = custom_rules.apply(_inverted(self.size, first.type), matrix, first)
        inverted = swap(inverted) if transposed else inverted
        return unravel(matmul(inverted, ravel(right)), [t.shape for t in self.types])

    @cached
    def _matrix(self) -> Node:
        """I - A, as a function of x and p; a single number where x is one."""
        n = self.size
        inputs, outputs = self.step.inputs[: self.states], self.step.outputs

        def product(flat: Node) -> Node:
            """A times a vector."""
            seeds: dict[Node, Any] = dict(zip(inputs, unravel(flat, [t.shape for t in self.types]), strict=True))
            vector: Node = ravel(custom_rules.filled(tangents(outputs, seeds), self.types))
            return vector

        if n == 1:
            [at] = [i for i, v in enumerate(inputs) if v.type.size]
            one = constant(np.ones(inputs[at].shape)) if inputs[at].shape else constant(1.0)
            slope = custom_rules.filled(tangents([outputs[at]], {inputs[at]: one}), [inputs[at].type])[0]
            number: Node = ops.subtract(1.0, total(tuple(range(slope.ndim)))(slope) if slope.shape else slope)
            return number
        if n <= UNROLLED:
            rows = [product(constant(unit)) for unit in np.eye(n)]
            transposed = stack(0, n)(*rows)
        else:

            def body(k: Node, so_far: Node) -> list[Node]:
                return [at_set(so_far, k, product(at_set(zero(arrays(real, (n,))), k, constant(1.0))))]

            [transposed] = repeat(whole(n), body, [zero(arrays(real, (n, n)))])
        found: Node = ops.subtract(constant(np.eye(n)), swap(transposed))
        return found

    @cached
    def _solver(self) -> GraphFunction:
        """The solver of v = A v + r."""
        inputs, outputs = self.step.inputs, self.step.outputs
        moved = [fresh(t) for t in self.types]
        found = tangents(outputs, dict(zip(inputs[: self.states], moved, strict=True)))
        return self._linear(moved, found)

    @cached
    def _transposed_solver(self) -> GraphFunction:
        """The solver of v = A^T v + r."""
        inputs, outputs = self.step.inputs, self.step.outputs
        moved = [fresh(t) for t in self.types]
        found = custom_rules.backward(inputs, outputs, inputs, moved, range(self.states))
        return self._linear(moved, found[: self.states])

    def _linear(self, moved: Sequence[Node], found: Sequence[Any]) -> GraphFunction:
        """The solver of v = f(v) + r for a linear f, given as a function of x, p and `moved`."""
        right = [fresh(t) for t in self.types]
        after = tuple(r if f is None else ops.add(f, r) for f, r in zip(found, right, strict=True))
        graph = Graph((*moved, *self.step.inputs, *right), after)
        return solver(graph, self.states, all_together, failures.LINEAR_UNSETTLED)


# -- the matrix --------------------------------------------------------------------------------------------------------


@functools.cache
def _inverted(n: int, solution: Type) -> GraphFunction:
    """The inverse of matrices with n rows, which raises an error where there is none.

    It takes a part of the solution as an argument too, so that it runs after the solver has converged.
    """
    square = arrays(real, (n, n))

    def norm(x: Node) -> Node:
        columns = total((0,))(ops.absolute(x))
        largest: Node = extreme(True, (0,))(columns)
        return largest

    def body(matrix: Node, _: Node) -> list[Node]:
        finite = ops.less(norm(matrix), math.inf)
        [sign] = cond(finite, lambda: [sign_of_determinant(matrix)], lambda: [0.0])
        [found] = cond(ops.not_equal(sign, 0.0), lambda: [inverse(matrix)], lambda: [zero(square)])
        condition = ops.multiply(norm(matrix), norm(found))
        possible = ops.logical_and(ops.less(condition, ILL), ops.greater(condition, 0.0))
        why = integers.where(finite, whole(failures.SINGULAR), whole(failures.NOT_FINITE))
        return cond(possible, lambda: [found], lambda: failing([square], why))

    def tangent(arguments: Sequence[Node], results: Sequence[Node], dots: Several) -> Several:
        [y], [d, _] = results, dots
        return [None if d is None else ops.negative(matmul(matmul(y, d), y))]

    def adjoint(arguments: Sequence[Node], results: Sequence[Node], deltas: Several, wanted: Sequence[int]) -> Several:
        [y], [d] = results, deltas
        return [None if d is None else ops.negative(matmul(matmul(swap(y), d), swap(y))), None]

    return custom_rules.function("inverse", [square, solution], [square], body, CustomDerivatives(tangent, adjoint))


@functools.cache
def _reciprocal(solution: Type) -> GraphFunction:
    """The same for a single number."""

    def body(number: Node, _: Node) -> list[Node]:
        finite = ops.less(ops.absolute(number), math.inf)
        possible = ops.logical_and(finite, ops.not_equal(number, 0.0))
        why = integers.where(finite, whole(failures.SINGULAR), whole(failures.NOT_FINITE))
        return cond(possible, lambda: [ops.divide(1.0, number)], lambda: failing([real], why))

    def tangent(arguments: Sequence[Node], results: Sequence[Node], dots: Several) -> Several:
        [y], [d, _] = results, dots
        return [None if d is None else ops.negative(y * y * d)]

    def adjoint(arguments: Sequence[Node], results: Sequence[Node], deltas: Several, wanted: Sequence[int]) -> Several:
        [y], [d] = results, deltas
        return [None if d is None else ops.negative(y * y * d), None]

    return custom_rules.function("inverse", [real, solution], [real], body, CustomDerivatives(tangent, adjoint))
