"""What others test nesting with, in every verb, mixed, and compiled: 75 programs.

They are written after those that Emmy tests its derivatives with: in its `derivative_test` and `tape_test`, functions
of one and several numbers, curried functions, structures and operators, variations of paths, perturbation confusion,
the amazing bugs of DVL and of Manzyuk and others (2019); and of its mechanics and geometry what is made of functions of
functions. Elementary functions stand for Emmy's literal ones; its symbols, power series, complex numbers, and matrices
as a type of their own have no counterpart here.

Each takes the verb and a point; its value is worked out by hand. Each runs forward, in reverse and in two mixes, and
made into graphs forward and in reverse; the 64 whose derivatives are all of single reals run with `dg.grad` in four
further ways, and through graphs: 770 runs. Ten seconds; 16 of them are one function of machine code.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import dynagrad as dg
from compiler.specialising import through_graph

sin, cos, exp, log, sqrt, tan = np.sin, np.cos, np.exp, np.log, np.sqrt, np.tan


class Case(NamedTuple):
    program: Callable[[Any, Any], Any]
    at: float
    wanted: Any
    real: bool


CASES: dict[str, Case] = {}


def case(at: float, wanted: Any, real: bool = True) -> Callable[[Any], Any]:
    """A program, where it is run, and what it gives there; `real` where `dg.grad` will do for all its derivatives."""

    def enter(program: Callable[[Any, Any], Any]) -> Any:
        CASES[program.__name__] = Case(program, at, wanted, real)
        return program

    return enter


# -- one derivative: functions, structures, several arguments ----------------------------------------------------------


@case(3.0, 2.0)
def slope_of_a_line(d: Any, x: Any) -> Any:
    return d(lambda z: 2.0 * z)(x)


@case(3.0, 27.0)
def cube(d: Any, x: Any) -> Any:
    return d(lambda z: z**3)(x)


@case(0.4, 1.0 / math.cos(0.4) ** 2)
def tangent(d: Any, x: Any) -> Any:
    return d(tan)(x)


@case(0.4, (1.0 / math.sqrt(0.84), -1.0 / math.sqrt(0.84), 1.0 / 1.16))
def inverse_functions(d: Any, x: Any) -> Any:
    return d(np.arcsin)(x), d(np.arccos)(x), d(np.arctan)(x)


@case(9.0, -1.0 / 18.0)
def chain_rule(d: Any, x: Any) -> Any:
    def u(t: Any) -> Any:
        return (3.0 * sqrt(t) - 1.0) ** (2.0 / 3.0)

    return d(lambda t: (u(t) + 2.0) / (u(t) - 1.0))(x)


@case(0.7, (2.0, 1.4), real=False)
def structure_of_powers(d: Any, x: Any) -> Any:
    return d(lambda t: (2.0 * t, t * t))(x)


@case(0.7, (-math.sin(0.7), math.cos(0.7)), real=False)
def circle(d: Any, x: Any) -> Any:
    return d(lambda t: (cos(t), sin(t)))(x)


@case(2.0, {"x": 1.0, "square": 4.0, "cube": 12.0}, real=False)
def dictionary(d: Any, x: Any) -> Any:
    return d(lambda t: {"x": t, "square": t * t, "cube": t**3})(x)


@case(2.0, (-0.25, -0.5, -0.75), real=False)
def structure_over_a_number(d: Any, x: Any) -> Any:
    return d(lambda t: tuple([k / t for k in (1.0, 2.0, 3.0)]))(x)


@case(1.0, ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0)), real=False)
def permutation(d: Any, x: Any) -> Any:
    return d(lambda a, b, c: (c, b, a), (0, 1, 2))(x, 2.0 * x, 3.0 * x)


@case(2.0, (17.0, 24.0))
def partial_derivatives(d: Any, x: Any) -> Any:
    def f(p: Any, q: Any) -> Any:
        return 2.0 * p * p + 3.0 * p * q + 3.0 * q * q

    return d(f)(x, 3.0), d(f, 1)(x, 3.0)


@case(2.0, ((4.0, 3.0), (3.0, 6.0)))
def second_partial_derivatives(d: Any, x: Any) -> Any:
    def f(p: Any, q: Any) -> Any:
        return 2.0 * p * p + 3.0 * p * q + 3.0 * q * q

    return tuple([tuple([d(d(f, i), j)(x, 3.0) for j in (0, 1)]) for i in (0, 1)])


@case(2.0, (3.0, 2.0))
def any_number_of_arguments(d: Any, x: Any) -> Any:
    return d(lambda *several: several[0] * several[1])(x, 3.0), d(lambda a, *rest: a * rest[0], 1)(x, 3.0)


@case(2.0, (3.0 * 4.0, math.log(2.0) * 8.0))
def power_by_both(d: Any, x: Any) -> Any:
    return d(lambda a, b: a**b, (0, 1))(x, 3.0)


@case(0.6, (math.cos(0.6) * math.log(2.0), math.sin(0.6) / 2.0))
def product_by_both(d: Any, x: Any) -> Any:
    return d(lambda a, b: sin(a) * log(b), (0, 1))(x, 2.0)


@case(0.6, (0.5 / math.cos(0.6) ** 2, -math.tan(0.6) / 4.0))
def quotient_by_both(d: Any, x: Any) -> Any:
    return d(lambda a, b: tan(a) / b, (0, 1))(x, 2.0)


@case(2.0, {"x": (2.0 * 2.0, 6.0), "y": (4.0 * 4.0 * (16.0 + 9.0), 4.0 * 3.0 * (16.0 + 9.0))})
def deep_partial_derivatives(d: Any, x: Any) -> Any:
    def f(p: Any) -> Any:
        (a, b), (c, e) = p["x"], p["y"]
        return a * a + b * b + (c * c + e * e) ** 2

    return d(f)({"x": (x, 3.0), "y": (2.0 * x, 3.0)})


@case(6.0, 0.51603111348625)
def hundred_sines(d: Any, x: Any) -> Any:
    def f(t: Any) -> Any:
        total = t
        for _ in range(100):
            total = sin(t + total)
        return total

    return d(f)(x)


@case(4.0, (0.25, -1.0 / 32.0))
def newton_raphson(d: Any, x: Any) -> Any:
    def root(t: Any) -> Any:
        y = t
        for _ in range(12):
            y = y - (y * y - t) / (y + y)
        return y

    return d(root)(x), d(d(root))(x)


@case(0.7, (-math.cos(math.cos(0.7)) * math.sin(0.7), 0.0))
def composition(d: Any, x: Any) -> Any:
    def composed(f: Any, g: Any) -> Any:
        return lambda t: f(g(t))

    return d(composed(sin, cos))(x), d(lambda t: sin(t) ** 2 + cos(t) ** 2)(x)


@case(0.7, 0.0)
def constant_of_any_arity(d: Any, x: Any) -> Any:
    return d(lambda *anything: 0.0 * anything[0])(x)


# -- orders ------------------------------------------------------------------------------------------------------------


@case(2.0, (32.0, 48.0, 48.0))
def fourth_power(d: Any, x: Any) -> Any:
    def f(z: Any) -> Any:
        return z * z * z * z

    return d(f)(x), d(d(f))(x), d(d(d(f)))(x)


@case(2.0, ((6.0, 4.0, 10.0), (4.0, 10.0, 6.0), (10.0, 6.0, 4.0)), real=False)
def second_derivatives_of_three(d: Any, x: Any) -> Any:
    def f(x: Any, y: Any, z: Any) -> Any:
        return x * x * y + y * y * z + z * z * x

    return d(d(f, (0, 1, 2)), (0, 1, 2))(x, 3.0, 5.0)


@case(0.5, (6.0, 2.0, 2.0 * 9.0))
def third_derivatives(d: Any, x: Any) -> Any:
    def f(x: Any, y: Any, z: Any) -> Any:
        return x * x * y + y**3 * z + z * z * x + x**3

    return d(d(d(f)))(x, 2.0, 3.0), d(d(d(f), 1))(x, 2.0, 3.0), d(d(f, 1), 1)(x, 1.0, 3.0)


@case(0.7, (math.sinh(0.7), 1.0 - math.tanh(0.7) ** 2))
def hyperbolic(d: Any, x: Any) -> Any:
    return d(d(np.sinh))(x), d(np.tanh)(x)


@case(0.7, (0.343 * math.cos(0.7) + 3 * 0.49 * math.sin(0.7), 3 * 0.49 * math.sin(0.7)))
def operators(d: Any, x: Any) -> Any:
    return d(lambda t: sin(t) * t**3)(x), sin(x) * d(lambda t: t**3)(x)


@case(0.3, 0.3 - 0.3**3 / 6.0)
def taylor(d: Any, x: Any) -> Any:
    total, f, factor = 0.0, sin, 1.0
    for k in range(4):
        total, f, factor = total + f(0.0) * factor, d(f), factor * x / (k + 1)
    return total


@case(1.0, (math.sin(3) * math.cos(8), (3 * math.cos(3) * math.cos(8), -4 * math.sin(3) * math.sin(8))))
def taylor_of_two(d: Any, x: Any) -> Any:
    def f(p: Any) -> Any:
        return sin(3.0 * p[0]) * cos(4.0 * p[1])

    return f((x, 2.0)), d(f)((x, 2.0))


# -- functions as results ----------------------------------------------------------------------------------------------


@case(2.0, 12.0)
def curried_product(d: Any, x: Any) -> Any:
    return d(lambda x: lambda y, z: x * y * z)(x)(3.0, 4.0)


@case(0.6, -math.sin(0.7))
def derivative_in_a_result(d: Any, x: Any) -> Any:
    return d(lambda e: lambda t: d(lambda s: cos(s) * e)(t))(x)(0.7)


@case(1.0, ((2.0, 0.0), (0.0, 5.0)), real=False)
def function_of_a_pair(d: Any, x: Any) -> Any:
    f = d(lambda a, b: lambda p: (a * p[0], b * p[1]), (0, 1))(x, x)
    first, second = f((2.0, 5.0))
    return first, second


@case(3.0, math.sin(0.4))
def operator_as_a_result(d: Any, x: Any) -> Any:
    return d(lambda x: lambda y: x * sin(y))(x)(0.4)


@case(2.0, (5.0, (20.0, 0.5)), real=False)
def series_as_a_result(d: Any, x: Any) -> Any:
    terms = d(lambda k: [lambda t: k * t, lambda t: k * k * t])(x)
    one, two = terms
    return one(5.0), (two(5.0), one(0.5))


@case(2.0, ((3.0, 6.0), (9.0, 12.0)), real=False)
def matrix_of_functions(d: Any, x: Any) -> Any:
    m = d(lambda k: ((lambda t: k * t, lambda t: 2.0 * k * t), (lambda t: 3.0 * k * t, lambda t: 4.0 * k * t)))(x)
    return tuple([tuple([f(3.0) for f in row]) for row in m])


@case(0.5, 3.0 * math.cos(1.5))
def mixed_orders_agree(d: Any, x: Any) -> Any:
    def f(x: Any) -> Any:
        return lambda y: sin(x * y)

    def flipped(y: Any) -> Any:
        return lambda x: f(x)(y)

    by_x, by_other = d(f)(x)(3.0), d(flipped(3.0))(x)
    return (by_x + by_other) / 2.0


@case(2.0, 24.0)
def squares_of_both(d: Any, x: Any) -> Any:
    return d(d(lambda x: lambda y: x * x * y * y)(x))(3.0)


def variation(d: Any, eta: Any) -> Any:
    """The variation of a function of paths, along a path; the path may hold numbers."""
    return lambda f: lambda q: d(lambda e: f(lambda t: q(t) + e * eta(t)))(0.0)


@case(0.7, math.exp(0.7))
def variation_of_a_path(d: Any, t: Any) -> Any:
    return variation(d, exp)(lambda q: q)(sin)(t)


@case(0.7, math.exp(0.7) * math.cos(math.sin(0.7)))
def variation_of_a_function_of_a_path(d: Any, t: Any) -> Any:
    return variation(d, exp)(lambda q: lambda s: sin(q(s)))(sin)(t)


@case(0.7, math.exp(0.7) * (math.cos(math.sin(0.7)) - math.sin(math.sin(0.7))))
def variation_of_a_sum(d: Any, t: Any) -> Any:
    return variation(d, exp)(lambda q: lambda s: sin(q(s)) + cos(q(s)))(sin)(t)


@case(0.7, math.exp(0.7) * math.cos(2 * math.sin(0.7)))
def variation_of_a_product(d: Any, t: Any) -> Any:
    return variation(d, exp)(lambda q: lambda s: sin(q(s)) * cos(q(s)))(sin)(t)


@case(0.7, 3.0 * math.exp(0.7) * math.cos(math.sin(0.7)))
def variation_of_a_multiple(d: Any, t: Any) -> Any:
    return variation(d, exp)(lambda q: lambda s: 3.0 * sin(q(s)))(sin)(t)


@case(0.7, math.exp(0.7) * math.cos(math.sin(0.7)) * math.exp(math.sin(math.sin(0.7))))
def variation_of_a_composition(d: Any, t: Any) -> Any:
    return variation(d, exp)(lambda q: lambda s: exp(sin(q(s))))(sin)(t)


@case(0.7, math.exp(0.7))
def variation_of_a_velocity(d: Any, t: Any) -> Any:
    return variation(d, exp)(lambda q: d(q))(sin)(t)


# -- mechanics and geometry: functions of paths, fields as functions of functions --------------------------------------


def along(d: Any, q: Any) -> Any:
    """A path as time, place and velocity."""
    return lambda t: (t, q(t), d(q)(t))


def lagrange(d: Any, lagrangian: Any) -> Any:
    """What the equations of Lagrange say of a path: zero where it is one that is taken."""

    def residual(q: Any) -> Any:
        state = along(d, q)
        return lambda t: d(lambda s: d(lagrangian, 2)(*state(s)))(t) - d(lagrangian, 1)(*state(t))

    return residual


@case(0.4, (0.0, (9.0 - 2.0 * 4.0) * math.cos(0.8)))
def equations_of_lagrange(d: Any, t: Any) -> Any:
    residual = lagrange(d, lambda t, x, v: v * v - 4.0 * x * x), lagrange(d, lambda t, x, v: v * v - 4.5 * x * x)
    return residual[0](lambda s: 3.0 * sin(2.0 * s))(t), residual[1](lambda s: cos(2.0 * s))(t)


@case(0.4, 4.0 * 0.4**3)
def variation_of_a_lagrangian(d: Any, t: Any) -> Any:
    def lagrangian(t: Any, x: Any, v: Any) -> Any:
        return v * v * x * 0.5

    return variation(d, lambda s: s)(lambda q: lambda s: lagrangian(*along(d, q)(s)))(lambda s: s * s)(t)


@case(0.7, (4.2, 18.0))
def poisson_brackets(d: Any, x: Any) -> Any:
    def bracket(f: Any, g: Any) -> Any:
        return lambda q, p: d(f)(q, p) * d(g, 1)(q, p) - d(f, 1)(q, p) * d(g)(q, p)

    def energy(q: Any, p: Any) -> Any:
        return p * p * 0.5

    square = bracket(lambda q, p: q * q, energy)
    return square(x, 3.0), bracket(square, energy)(x, 3.0)


def field(d: Any, speed: Any) -> Any:
    """A vector field on the line, as an operator on functions."""
    return lambda f: lambda x: d(lambda t: f(x + t * speed(x)))(0.0)


@case(0.7, ((math.cos(0.7) * 0.7 - math.sin(0.7)) * 2.0 * 0.7, math.sin(0.7) * 3.0 * 0.49))
def commutator_of_fields(d: Any, x: Any) -> Any:
    v, w = field(d, lambda y: y), field(d, sin)

    def commutator(f: Any) -> Any:
        return lambda y: v(w(f))(y) - w(v(f))(y)

    return commutator(lambda y: y * y)(x), w(lambda y: y**3)(x)


@case(0.7, 0.7 * (1.0 + 0.1 + 0.005 + 0.001 / 6.0))
def exponential_of_a_field(d: Any, x: Any) -> Any:
    v, total, f, factor = field(d, lambda y: y), 0.0, lambda y: y, 1.0
    for k in range(4):
        total, f, factor = total + factor * f(x), v(f), factor * 0.1 / (k + 1)
    return total


# -- the amazing bugs --------------------------------------------------------------------------------------------------


def shift(offset: Any) -> Any:
    return lambda g: lambda a: g(a + offset)


@case(5.0, (math.exp(8), math.exp(11)))
def the_amazing_bug(d: Any, x: Any) -> Any:
    h = d(shift)(3.0)
    return h(exp)(x), h(h(exp))(x)


@case(1.0, (math.exp(10), math.exp(13)))
def the_amazing_bug_deeper(d: Any, x: Any) -> Any:
    h = d(shift)(3.0)
    return h(h(h(exp)))(x), h(h(h(h(exp))))(x)


@case(1.0, (math.exp(7), math.exp(7)))
def the_amazing_bug_inside_a_derivative(d: Any, x: Any) -> Any:
    h = d(shift)(3.0)
    return d(h(h(exp)))(x), d(lambda t: h(h(exp))(t))(x)


@case(1.0, math.e)
def the_subtler_bug(d: Any, x: Any) -> Any:
    h = d(lambda u: lambda f: lambda g: lambda x: f(g)(x + u))(0.0)
    return h(h(lambda f: f))(exp)(x)


def box(x: Any) -> Any:
    return lambda m: m(x)


def unbox(x: Any) -> Any:
    return x(lambda y: y)


@case(1.0, math.e)
def church_boxes(d: Any, x: Any) -> Any:
    def wrap(f: Any) -> Any:
        return lambda b: box(f(unbox(b)))

    def unwrap(f: Any) -> Any:
        return lambda y: unbox(f(box(y)))

    def wrapped(f: Any) -> Any:
        return lambda y: lambda g: lambda b: box(f(y)(unwrap(g))(unbox(b)))

    h = d(wrapped(lambda x: lambda g: lambda y: g(x + y)))(0.0)
    return unwrap(h(h(wrap(exp))))(x)


def both(x: Any) -> Any:
    """A function that hands two functions on, which hold the same number."""
    return lambda then: then(lambda y: sin(x) * y * y, lambda g: g(x))


@case(0.7, (math.cos(0.7) * 0.49, math.cos(0.7)))
def one_of_two(d: Any, t: Any) -> Any:
    h = d(both)(t)
    return h(lambda a, b: a(t)), h(lambda a, b: b(sin))


@case(0.7, math.cos(0.7) * 0.49 + math.sin(0.7) * 1.4)
def two_inside_one_call(d: Any, t: Any) -> Any:
    return d(both)(t)(lambda a, b: b(a))


@case(0.7, math.cos(0.7) * 1.4, real=False)
def two_taken_out_of_a_call(d: Any, t: Any) -> Any:
    a, b = d(both)(t)(lambda a, b: (a, b))
    return b(a)


def pair(x: Any) -> Any:
    return (lambda y: sin(x * y)), (lambda g: lambda z: g(x + z))


PI3 = math.pi + 3.0


@case(math.pi, math.cos(3 * PI3) - 3 * PI3 * math.sin(3 * PI3), real=False)
def the_second_bug_with_a_pair(d: Any, x: Any) -> Any:
    g, f = d(pair)(3.0)
    return f(g)(x)


@case(math.pi, PI3 * math.cos(3 * PI3) + 3 * math.cos(3 * PI3))
def the_third_bug_with_a_church_pair(d: Any, x: Any) -> Any:
    return d(lambda x: lambda then: then(*pair(x)))(3.0)(lambda g, f: f(g)(x))


@case(math.pi, PI3 * math.cos(3 * PI3) + 3 * math.cos(3 * PI3))
def the_fourth_bug_with_arguments_swapped(d: Any, x: Any) -> Any:
    return d((lambda then: lambda x: then(*pair(x)))(lambda g, f: f(g)(x)))(3.0)


@case(1.0, (math.cos(1) ** 2, math.sin(2.0), math.sin(2.0)))
def the_fifth_bug_with_a_continuation(d: Any, x: Any) -> Any:
    def church(f: Any) -> Any:
        return lambda x: lambda then: then(f(x))

    def flip(f: Any) -> Any:
        return lambda y: lambda x: f(x)(y)

    def square(x: Any) -> Any:
        return x * x

    return square(d(sin)(x)), d(church(sin))(x)(square), d(flip(church(sin))(square))(x)


# -- perturbation confusion --------------------------------------------------------------------------------------------


@case(1.0, 1.0)
def siskind_and_pearlmutter(d: Any, x: Any) -> Any:
    return d(lambda x: x * d(lambda y: x + y)(2.0))(x)


@case(4.0, (0.0, 1.0, 1.0, 48.0))
def confusions_of_dvl(d: Any, x: Any) -> Any:
    def one(x: Any) -> Any:
        return d(lambda y: x + y)(3.0)

    return (
        d(one)(x),
        d(lambda x: x * one(x))(x),
        d(lambda x: x * one(2.0 * x))(x),
        d(lambda y: d(lambda x: x * (x * y))(y * 3.0))(x),
    )


@case(3.0, 54.0)
def derivative_at_the_outer_variable(d: Any, x: Any) -> Any:
    return d(lambda x: x * d(lambda y: x * y * y)(x))(x)


@case(2.0, (12.0, 48.0))
def three_deep(d: Any, x: Any) -> Any:
    return (
        d(lambda x: d(lambda y: d(lambda z: x * x * y * z * 3.0)(1.0))(1.0))(x),
        d(lambda x: d(lambda y: d(lambda z: x * y * z * z)(x * y))(x))(x),
    )


@case(2.0, (8.0, 8.0))
def addition_of_a_captured_number(d: Any, x: Any) -> Any:
    def f(x: Any) -> Any:
        return d(lambda y: y * y * x)(x)

    return d(f)(x), d(lambda t: f(t))(x)


@case(0.7, 0.7 * (math.cos(1.4) * 2.0) + math.sin(1.4))
def function_with_a_captured_number(d: Any, t: Any) -> Any:
    return d(lambda t: d(shift)(t)(lambda y: -t * cos(y))(t))(t)


@case(0.5, (math.sin(0.85) + 0.5 * math.cos(0.85)) * 0.35)
def a_number_around_and_inside_a_call(d: Any, x: Any) -> Any:
    return d(lambda x: lambda g: lambda y: x * g(x + y) * y)(x)(sin)(0.35)


@case(2.0, (1.0, 0.0, 4.0))
def kept_constants(d: Any, x: Any) -> Any:
    return d(lambda x: lambda y: x)(x)(3.0), d(lambda x: lambda y: y)(x)(3.0), d(lambda x: (lambda y: x * y)(x))(x)


@case(3.0, 2.0)
def identity_of_derivatives(d: Any, x: Any) -> Any:
    return d(lambda x: d(lambda y: y)(x) * x + d(lambda y: x)(x) + x)(x)


@case(0.4, math.cos(0.4) * 0.5 + 0.5 * math.cos(0.4))
def average_of_functions(d: Any, x: Any) -> Any:
    h = d(lambda t: dg.scale(0.5, dg.add(lambda y: sin(t) * y, lambda y: y * sin(t))))(x)
    return h(1.0)


@case(0.4, (3.0 * math.cos(1.2), -9.0 * math.sin(1.2)))
def a_function_out_of_a_list(d: Any, x: Any) -> Any:
    functions = [sin, cos, lambda z: z * z]
    h = d(lambda t: lambda k: functions[k](3.0 * t))(x)
    return h(0), d(lambda t: d(lambda s: functions[0](3.0 * s))(t))(x)


@case(0.4, math.exp(0.4) * (1.0 + 0.4))
def a_function_that_is_called_twice(d: Any, x: Any) -> Any:
    h = d(lambda t: lambda g: g(t) + g(0.0) * t)(x)
    return h(lambda s: s * exp(s))


@case(0.4, 0.0)
def a_function_that_is_never_called(d: Any, x: Any) -> Any:
    return d(lambda t: lambda g: 3.0)(x)(lambda y: y)


@case(0.4, 2.0 * 0.4 * 6.0 + 5.0)
def five_arrows(d: Any, x: Any) -> Any:
    return d(lambda a: lambda b: lambda c: lambda e: lambda f: a * a * b * c + a * e * f)(x)(2.0)(3.0)(1.0)(5.0)


@case(0.4, math.cos(0.4 + 0.3) * 0.3 + 1.0)
def an_argument_by_name(d: Any, x: Any) -> Any:
    return d(lambda a: lambda *, y, g: g(a + y) * y + a)(x)(g=sin, y=0.3)


# -- the runs ----------------------------------------------------------------------------------------------------------


class Turns:
    """A verb that is another one each time that it is used."""

    def __init__(self, *verbs: Any) -> None:
        self.verbs = itertools.cycle(verbs)

    def __call__(self, f: Any, argnums: Any = 0) -> Any:
        return next(self.verbs)(f, argnums)


def agree(found: Any, wanted: Any) -> None:
    if isinstance(wanted, tuple):
        assert isinstance(found, tuple) and len(found) == len(wanted)
        for a, b in zip(found, wanted, strict=True):
            agree(a, b)
    elif isinstance(wanted, dict):
        assert found.keys() == wanted.keys()
        for key, b in wanted.items():
            agree(found[key], b)
    else:
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("name", CASES)
def test_in_both_modes_and_in_mixes(name: str) -> None:
    program, at, wanted, real = CASES[name]
    mixes = [(dg.jacfwd,), (dg.jacrev,), (dg.jacfwd, dg.jacrev), (dg.jacrev, dg.jacfwd)]
    if real:
        mixes += [(dg.grad,), (dg.grad, dg.jacfwd), (dg.jacrev, dg.grad), (dg.jacfwd, dg.grad, dg.jacrev)]
    for verbs in mixes:
        agree(program(Turns(*verbs), at), wanted)


@pytest.mark.parametrize("name", CASES)
def test_compiled(name: str) -> None:
    program, at, wanted, real = CASES[name]
    for verb in (dg.jacfwd, dg.jacrev, *((dg.grad,) if real else ())):
        agree(through_graph(lambda x: program(verb, x), at), wanted)  # noqa: B023


SOME = [name for name in CASES if name.startswith(("variation", "the_"))]


def test_as_machine_code() -> None:
    programs = [CASES[name].program for name in SOME]
    points = np.array([CASES[name].at for name in SOME])

    @dg.compile
    def all_of_them(points: Any) -> Any:
        return [program(dg.jacrev, points[i]) for i, program in enumerate(programs)]

    agree(tuple(all_of_them(points)), tuple(CASES[name].wanted for name in SOME))


def test_how_many_there_are() -> None:
    assert len(CASES) == 75
    assert sum(case.real for case in CASES.values()) == 64
