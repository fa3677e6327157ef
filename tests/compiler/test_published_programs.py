"""Published test programs of other systems of automatic differentiation, and the figures published for them.

The programs are written anew from their descriptions. From STALINGRAD, a compiler of Siskind and Pearlmutter: `saddle`
and `particle`, where an optimisation by derivatives runs inside another, or a potential is differentiated inside its
objective; maximum likelihood of a probabilistic program, in a lambda calculus and in logic, each with an interpreter
that is differentiated; `backprop`; and small ones. From ADBench: a Gaussian mixture, bundle adjustment, a recurrent
network, and hand tracking. Where nothing is published (the two interpreters) the oracle is a closed form; where the
published inputs are not available (network, hand) inputs are given by formulas, and figures were computed with jax 0.10
in float64.

Modes are written from the outside in: FR is forward over reverse. Six seconds of processor time, with 17 functions
of machine code.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

import dynagrad as dg
import dynagrad.numpy as np

Verb = Callable[..., Any]
SLOPE: Mapping[str, Verb] = {"F": dg.jacfwd, "R": dg.grad}
JACOBIAN: Mapping[str, Verb] = {"F": dg.jacfwd, "R": dg.jacrev}
NESTINGS = ("FF", "FR", "RF", "RR")


def close(found: Any, wanted: Any, rel: float = 1e-9, abs: float = 0.0) -> None:
    assert np.asarray(found) == pytest.approx(np.asarray(wanted), rel=rel, abs=abs)


# -- optimisation inside of optimisation -------------------------------------------------------------------------------


def lowest(gradient: Verb, f: Callable[[Any], Any], x: Any) -> Any:
    """Where f is lowest: descent whose steps double after ten that went down, and halve after one that did not."""
    value, slope, rate, good = f(x), gradient(f)(x), 1e-5, 0.0
    while np.sqrt(np.sum(slope * slope)) > 1e-5:
        if good == 10.0:
            rate, good = 2.0 * rate, 0.0
        else:
            there = x - rate * slope
            if np.sqrt(np.sum((x - there) ** 2)) <= 1e-5:
                break
            found = f(there)
            if found < value:
                x, value, slope, good = there, found, gradient(f)(there), good + 1.0
            else:
                rate, good = rate / 2.0, 0.0
    return x


def saddle(outer: Verb, inner: Verb, start: Any) -> Any:
    """The saddle point of a quadratic form: lowest in two coordinates where it is highest in the two others."""

    def form(p: Any, q: Any) -> Any:
        return np.sum(p * p) - np.sum(q * q)

    def highest(p: Any) -> Any:
        return lowest(inner, lambda q: 0.0 - form(p, q), start)

    p = lowest(outer, lambda p: form(p, highest(p)), start)
    return np.concatenate((p, highest(p)))


def landing(gradient: Verb, w: Any) -> Any:
    """How far from 0, squared, a particle crosses a line that two charges repel it from; one of them stands at w."""
    charges = np.array([[10.0, 10.0 - w], [10.0, 0.0]])

    def potential(x: Any) -> Any:
        return np.sum(1.0 / np.sqrt(np.sum((charges - x) ** 2, axis=1)))

    x, speed, step = np.array([0.0, 8.0]), np.array([0.75, 0.0]), 0.1
    there = x + step * speed
    while there[1] > 0.0:
        x, speed = there, speed - step * gradient(potential)(x)
        there = x + step * speed
    return (x[0] - x[1] / speed[1] * speed[0]) ** 2


def particle(outer: Verb, inner: Verb) -> Any:
    return lowest(outer, lambda w: landing(inner, w[0]), np.array([0.0]))[0]


SADDLE, PARTICLE = 8.246324826140356e-06, 0.20719187464861194
LANDING_SLOPE = -19.404636450028153  # at w = 0, by differences in 40 digits, with the force in closed form


@functools.cache
def compiled_nestings() -> Any:
    """Saddles and particles in all nestings, in machine code."""

    @dg.compile
    def all_of_them(start: Any) -> Any:
        modes = [(SLOPE[a], SLOPE[b]) for a, b in NESTINGS]
        return [saddle(a, b, start) for a, b in modes], [particle(a, b) for a, b in modes]

    return all_of_them(np.ones(2))


@pytest.mark.parametrize("place", range(4), ids=NESTINGS)
def test_saddle_and_particle_as_machine_code(place: int) -> None:
    saddles, particles = compiled_nestings()
    close(saddles[place], [SADDLE] * 4)
    close(particles[place], PARTICLE)


@pytest.mark.parametrize("modes", NESTINGS)
def test_what_a_descent_found_is_differentiated_in_plain_python(modes: str) -> None:
    """At a lowest point the derivative by what it depends on is that of the form itself, up to the tolerance."""
    outer, inner = (SLOPE[mode] for mode in modes)

    def value(p: Any) -> Any:
        q = lowest(inner, lambda q: np.sum((q - p) ** 2), np.ones(2))
        return np.sum(q * q * q)

    close(outer(value)(np.array([0.5, -1.5])), [0.75, 6.75], rel=1e-4)


@pytest.mark.parametrize("modes", ["FR", "RF"])
def test_the_slope_of_a_landing_in_plain_python(modes: str) -> None:
    outer, inner = (SLOPE[mode] for mode in modes)
    close(outer(lambda w: landing(inner, w))(0.0), LANDING_SLOPE)


# -- interpreters ------------------------------------------------------------------------------------------------------
#
# Both have the same meaning: 0 with probability p, else 1 with probability q, else 2. What was seen is 0, 1, 2, 2.

SEEN = (0, 1, 2, 2)


def likelihood(p: Any, q: Any) -> Any:
    return p * (1 - p) ** 3 * q * (1 - q) ** 2


def its_gradient(p: float, q: float) -> list[float]:
    return [(1 - p) ** 2 * (1 - 4 * p) * q * (1 - q) ** 2, p * (1 - p) ** 3 * (1 - q) * (1 - 3 * q)]


Worlds = list[tuple[Any, tuple[tuple[str, bool], ...], Any]]  # probability, the choices that it rests on, value


def sure(value: Any) -> Worlds:
    return [(1.0, (), value)]


def coin(name: str, p: Any) -> Worlds:
    return [(p, ((name, True),), True), (1.0 - p, ((name, False),), False)]


def then(worlds: Worlds, f: Callable[[Any], Worlds]) -> Worlds:
    """What f makes of each value; worlds whose choices contradict each other are left out."""
    found = [
        (p * q, before + tuple(c for c in after if c not in before), result)
        for p, before, value in worlds
        for q, after, result in f(value)
        if not any((name, not choice) in before for name, choice in after)
    ]
    total = sum([p for p, _, _ in found])
    return [(p / total, choices, value) for p, choices, value in found]


def evaluate(expression: Any, names: tuple[tuple[str, Worlds], ...]) -> Worlds:
    """Lambda calculus: text is a variable, a number itself, ("fun", name, body) a function, a pair an application."""
    if isinstance(expression, str):
        return dict(names)[expression]
    if isinstance(expression, int):
        return sure(expression)
    if expression[0] == "fun":
        return sure(lambda argument: evaluate(expression[2], (*names, (expression[1], argument))))
    argument = evaluate(expression[1], names)
    return then(evaluate(expression[0], names), lambda function: function(argument))


def branching(test: Worlds) -> Worlds:
    def chosen(yes: Worlds, no: Worlds) -> Worlds:
        return then(test, lambda true: then(yes if true else no, lambda thunk: thunk(sure(None))))

    return sure(lambda yes: sure(lambda no: chosen(yes, no)))


def conditional(test: Any, yes: Any, no: Any) -> Any:
    return ((("if", test), ("fun", "_", yes)), ("fun", "_", no))


def by_lambda_calculus(x: Any) -> Any:
    names = (("a", coin("a", x[0])), ("b", coin("b", x[1])), ("if", sure(branching)))
    worlds = evaluate(conditional("a", 0, conditional("b", 1, 2)), names)
    found = 1.0
    for seen in SEEN:
        found = found * sum([p for p, _, value in worlds if value == seen])
    return found


Goal = tuple[str, Any]  # a predicate and its argument; an argument that is text is a variable


def proofs(goal: Goal, clauses: Sequence[Any]) -> Any:
    """The probability that a goal without variables is proved by clauses of one variable at the most."""
    found = 0.0
    for p, (predicate, argument), body in clauses:
        if predicate == goal[0] and (isinstance(argument, str) or argument == goal[1]):
            each = p
            for name, of in body:
                each = each * proofs((name, goal[1] if of == argument else of), clauses)
            found = found + each
    return found


def by_logic(x: Any) -> Any:
    clauses = [
        (x[0], ("top", 0), ()),
        (1.0 - x[0], ("top", "X"), (("rest", "X"),)),
        (x[1], ("rest", 1), ()),
        (1.0 - x[1], ("rest", 2), ()),
    ]
    found = 1.0
    for seen in SEEN:
        found = found * proofs(("top", seen), clauses)
    return found


INTERPRETERS = (by_lambda_calculus, by_logic)


@pytest.mark.parametrize("program", INTERPRETERS)
def test_an_interpreter_is_differentiated(program: Any) -> None:
    p, q = 0.4, 0.3
    second = (1 - p) * ((1 - p) * -4 - 2 * (1 - 4 * p)) * q * (1 - q) ** 2
    across = (1 - p) ** 2 * (1 - 4 * p) * (1 - q) * (1 - 3 * q)
    close(program([p, q]), likelihood(p, q))
    for mode in "FR":
        close(SLOPE[mode](program)([p, q]), its_gradient(p, q))
    for a, b in NESTINGS:
        close(SLOPE[a](lambda x: SLOPE[b](program)(x)[0])([p, q]), [second, across])  # noqa: B023


def test_a_thousand_steps_up_end_where_the_closed_form_ends() -> None:
    def climb(gradient: Verb, x: Any) -> Any:
        count = 0
        while count < 1000:
            slope = gradient(x)
            x = [x[0] + 0.1 * slope[0], x[1] + 0.1 * slope[1]]
            count += 1
        return x

    @dg.compile
    def all_of_them(start: Any) -> Any:
        return [climb(SLOPE[mode](program), start) for program in INTERPRETERS for mode in "FR"]

    wanted = climb(lambda x: its_gradient(*x), [0.5, 0.5])
    for found in all_of_them([0.5, 0.5]):
        close(found, wanted, rel=1e-12)


# -- a small network, trained step by step -----------------------------------------------------------------------------

EXCLUSIVE_OR = (([0.0, 0.0], 0.0), ([0.0, 1.0], 1.0), ([1.0, 0.0], 1.0), ([1.0, 1.0], 0.0))
WEIGHTS = [[[0.0, -0.284227, 1.16054], [0.0, 0.617194, 1.30467]], [[0.0, -0.084395, 0.648461]]]
ERRORS = {
    1: 0.51056788825725874,
    10: 0.496749686741378649,
    100: 0.491116831072180071,
    1000: 0.290919259225036198,
    10_000: 0.251370787133396389,
    100_000: 0.250112962464064559,
}


def network_error(layers: Any) -> Any:
    error = 0.0
    for units, wanted in EXCLUSIVE_OR:
        for layer in layers:
            sums = [w[0] + sum([a * b for a, b in zip(w[1:], units, strict=True)]) for w in layer]
            units = [1.0 / (np.exp(0.0 - s) + 1.0) for s in sums]
        error = error + 0.5 * (units[0] - wanted) ** 2
    return error


def trained(gradient: Verb, layers: Any, steps: Any) -> Any:
    count = 0.0
    while count < steps:
        layers = dg.add(layers, dg.scale(-0.3, gradient(network_error)(layers)))
        count = count + 1.0
    return network_error(layers)


@pytest.mark.parametrize("mode", "FR")
def test_a_network_has_the_published_errors(mode: str) -> None:
    def training(layers: Any, steps: Any) -> Any:
        return trained(SLOPE[mode], layers, steps)

    close(training(WEIGHTS, 10.0), ERRORS[10])
    compiled = dg.compile(training)
    for steps, error in ERRORS.items():
        close(compiled(WEIGHTS, float(steps)), error, rel=1e-10)


# -- small ones --------------------------------------------------------------------------------------------------------


def newton_root(x: Any) -> Any:
    guess, better = 1.0, (1.0 + x) / 2.0
    while abs(guess - better) > 1e-5:
        guess, better = better, better - (better * better - x) / (better + better)
    return guess


def zero(verb: Verb, f: Callable[[Any], Any], x: Any) -> Any:
    before, x = x, x - f(x) / verb(f)(x)
    while abs(before - x) > 1e-5:
        before, x = x, x - f(x) / verb(f)(x)
    return before


def secant_root(x: Any) -> Any:
    low, high = 0.0, x + 1.0
    at_low, at_high = low * low - x, high * high - x
    while True:
        share = at_high / (at_high - at_low)
        new = share * low + (1.0 - share) * high
        at_new = new * new - x
        if abs(at_new) <= 1e-14:
            return new
        if at_new < 0.0:
            low, at_low = new, at_new
        else:
            high, at_high = new, at_new


def marble(verb: Verb, f: Callable[[Any], Callable[[Any], Any]]) -> Callable[[Any], Any]:
    return lambda w: f(0.0)(w) + verb(lambda x: f(x)(w))(0.0)


def running_sums(x: Any) -> Any:
    found, total = [], 0.0
    for each in x:
        total = total + each
        found.append(total)
    return found


def small_ones(a: Verb, b: Verb, x: Any) -> dict[str, Any]:
    """Programs of two verbs, at x = 4."""

    def repeatedly(n: int, f: Any) -> Any:
        return f if n == 0 else repeatedly(n - 1, (a if n % 2 else b)(f))

    return {
        "root": newton_root(x),
        "its slope": a(newton_root)(x),
        "its curvature": a(b(newton_root))(x),
        "zero": zero(a, lambda t: t * t - x, 5.0),
        "lowest": zero(a, b(lambda t: (t - x) ** 2), 5.0),
        "secant": secant_root(x + 6.0),
        "marble": a(marble(b, lambda x: lambda w: np.sin(x * w + np.sqrt(w))))(x - 1.0),
        "fifth of exp": repeatedly(5, np.exp)(x),
        "third of cos": repeatedly(3, np.cos)(x - 4.0),
        "sums": a(lambda t: b(lambda y: y * y * t)(t * 2.0))(x - 2.0),
    }


FIGURES = {
    "root": 2.000000092922295,
    "its slope": 0.2500002594080783,
    "its curvature": -0.03124939229460099,
    "zero": 2.000005181219473,
    "lowest": 4.0,
    "secant": 3.162277660168378,
    "marble": -1.061695367731588,
    "fifth of exp": 54.59815003314424,
    "third of cos": 0.0,
    "sums": 16.0,
}


@pytest.mark.parametrize("modes", NESTINGS)
def test_small_programs(modes: str) -> None:
    found = small_ones(SLOPE[modes[0]], SLOPE[modes[1]], 4.0)
    for name, figure in FIGURES.items():
        close(found[name], figure, rel=1e-13, abs=1e-15)


def test_small_programs_as_machine_code() -> None:
    @dg.compile
    def all_of_them(x: Any) -> Any:
        return [small_ones(SLOPE[a], SLOPE[b], x) for a, b in NESTINGS]

    for found in all_of_them(4.0):
        for name, figure in FIGURES.items():
            close(found[name], figure, rel=1e-13, abs=1e-15)


@pytest.mark.parametrize("mode", "FR")
def test_running_sums_of_a_list(mode: str) -> None:
    x = [0.0, 1.0, 2.0, 3.0, 4.0]
    close(JACOBIAN[mode](running_sums)(x), [[float(j <= i) for j in range(5)] for i in range(5)])
    assert dg.vjp(running_sums, x)[1]([0.0, 0.0, 0.0, 0.0, 1.0])[0] == [1.0] * 5


# -- ADBench: a mixture of Gaussians -----------------------------------------------------------------------------------


def log_sum(x: Any) -> Any:
    top = np.max(x)
    return np.log(np.sum(np.exp(x - top))) + top


def mixture(weights: Any, means: Any, factors: Any) -> Any:
    """The log likelihood of one point in the plane under three Gaussians, with a Wishart prior of scale 1.

    A row of `factors` has the logs of the diagonal of a lower triangular matrix, then what is below.
    """
    point, count, size = np.array([1.175171, 2.029160]), 3, 2
    scales, logs = np.exp(factors[:, :size]), np.sum(factors[:, :size], axis=1)
    squares = []
    for i in range(count):
        triangle = np.zeros((size, size))
        triangle[0, 0], triangle[1, 1], triangle[1, 0] = scales[i, 0], scales[i, 1], factors[i, 2]
        squares.append(np.sum((triangle @ (point - means[i])) ** 2))
    data = log_sum(weights + logs - 0.5 * np.array(squares)) - log_sum(weights) - size * 0.5 * np.log(2.0 * np.pi)
    freedom = size + 1
    normal = freedom * size * math.log(math.sqrt(0.5)) - 0.5 * math.log(math.pi)
    normal -= math.lgamma(freedom / 2) + math.lgamma((freedom - 1) / 2)
    return data + 0.5 * (np.sum(scales**2) + np.sum(factors[:, 2] ** 2)) - count * normal


MIXTURE = (
    np.array([-0.649014, 1.181166, -0.758453]),
    np.array([[0.092339, 0.186260], [0.345561, 0.396767], [0.538817, 0.419195]]),
    np.array([[0.586443, -0.851887, 0.800321], [-1.509405, 0.875874, -0.242790], [0.166813, -1.965419, -1.270071]]),
)
MIXTURE_GRADIENT = (
    [1.08662855508652456e-01, -7.41270039523898472e-01, 6.32607184015246071e-01],
    [
        [1.11692576532787013, 1.63333013551455269e-01],
        [-2.19989824071193142e-02, 2.27778292254236098e-01],
        [1.20963025612832187, -6.06375920733956339e-02],
    ],
    [
        [2.58529994051162237, 1.12632694524213789e-01, 3.85744309849611777e-01],
        [7.35180573182305508e-02, 5.41836362715595232, -3.21494409677446469e-01],
        [1.71892309775004937, 8.60091090790866875e-01, -9.94640930466322848e-01],
    ],
)


@pytest.mark.parametrize("kind", ["plain", "compiled", "compiled inside"])
@pytest.mark.parametrize("mode", "FR")
def test_a_mixture_of_gaussians(mode: str, kind: str) -> None:
    f = dg.compile(mixture) if kind == "compiled inside" else mixture
    gradient = SLOPE[mode](f, (0, 1, 2))
    found = (dg.compile(gradient) if kind == "compiled" else gradient)(*MIXTURE)
    close(f(*MIXTURE), 8.07380408004975791)
    for part, wanted in zip(found, MIXTURE_GRADIENT, strict=True):
        close(part, wanted)


# -- ADBench: bundle adjustment ----------------------------------------------------------------------------------------


def reprojection(camera: Any, point: Any, weight: Any) -> Any:
    """How far from a feature a camera sees a point.

    The camera: a rotation by axis and angle, the centre, the focal length, the principal point, radial distortion.
    """
    angle = np.sqrt(np.sum(camera[:3] ** 2))
    axis, seen = camera[:3] / angle, point - camera[3:6]
    along = axis * np.dot(axis, seen)
    seen = along + (seen - along) * np.cos(angle) + np.cross(axis, seen) * np.sin(angle)
    flat = seen[:2] / seen[2]
    square = np.sum(flat * flat)
    image = flat * (1.0 + camera[9] * square + camera[10] * square * square) * camera[6] + camera[7:9]
    return weight * (image - np.array([-525.672849, 161.811929]))


CAMERA = np.array(
    [1.797201, 0.590697, -0.635786, 90.859550, 29.361415, 28.777534, 211.628116, -0.284531, -14.762924]
    + [0.058931, 0.069976]
)
BUNDLE = (CAMERA, np.array([4.173048, 5.586898, 1.403869]), 0.417022)
BY_CAMERA = [
    [228.877202208246757, 634.574811495545418, -782.222866259340549, 2.42892615607159668, -11.7828079628011313]
    + [2.54169312487743460, -1.03657084958518086, 0.417022, 0.0, -350.739521096005205, -912.107773668008576],
    [-120.542435994996879, -385.673240766460424, 97.5476291403326456, -1.78372108529576567, 4.15466799433126077]
    + [2.04025718029898906, 0.349176397433145880, 0.0, 0.417022, 118.149147704414503, 307.250108960343255],
]
BY_POINT = [
    [-2.42892615607159668, 11.7828079628011313, -2.54169312487743460],
    [1.78372108529576567, -4.15466799433126077, -2.04025718029898906],
]
BY_WEIGHT = [-0.645167039712987389, 0.623335921553064054]


@pytest.mark.parametrize("kind", ["plain", "compiled"])
@pytest.mark.parametrize("mode", "FR")
def test_bundle_adjustment(mode: str, kind: str) -> None:
    jacobian = JACOBIAN[mode](reprojection, (0, 1, 2))
    found = (dg.compile(jacobian) if kind == "compiled" else jacobian)(*BUNDLE)
    close(reprojection(*BUNDLE), [-2.69048849235189402e-01, 2.59944792677901881e-01])
    for part, wanted in zip(found, (BY_CAMERA, BY_POINT, BY_WEIGHT), strict=True):
        close(part, wanted, abs=1e-12)


# -- ADBench: a recurrent network --------------------------------------------------------------------------------------


def waves(*shape: int, start: float = 1.0) -> Any:
    """Numbers that have no pattern to speak of."""
    return np.sin(np.arange(start, start + math.prod(shape)) ** 2).reshape(shape)


BITS, LAYERS = 3, 2
SEQUENCE = (waves(6, BITS) > 0.0) * 1.0
STATE = 0.5 + 0.5 * waves(2 * LAYERS, BITS, start=2.0)
NETWORK = (0.5 + 0.5 * waves(2 * LAYERS, 4 * BITS, start=3.0), 0.5 + 0.5 * waves(3, BITS, start=4.0))


def loss(weights: Any, extra: Any) -> Any:
    """The average loss of predicting each row of the sequence; two cells, whose gates weight numbers one by one."""

    def sigmoid(x: Any) -> Any:
        return 1.0 / (1.0 + np.exp(-x))

    state, total = list(STATE), 0.0
    for now, coming in itertools.pairwise(SEQUENCE):
        x = now * extra[0]
        for i in range(0, 2 * LAYERS, 2):
            gates = np.concatenate((x, state[i], x, state[i])) * weights[i] + weights[i + 1]
            forget, enter, leave, change = (gates[k * BITS : (k + 1) * BITS] for k in range(4))
            state[i + 1] = state[i + 1] * sigmoid(forget) + sigmoid(enter) * np.tanh(change)
            state[i] = sigmoid(leave) * np.tanh(state[i + 1])
            x = state[i]
        guess = x * extra[1] + extra[2]
        total = total + np.sum(coming * (guess - np.log(np.sum(np.exp(guess)) + 2.0)))
    return -total / (BITS * (len(SEQUENCE) - 1))


NETWORK_BY_EXTRA = [
    [4.871431807650726e-06, -0.0003782245846911188, 4.054002590591628e-06],
    [0.019044531715893945, -0.04416185583653802, 0.005323979839128407],
    [0.029955340446145753, -0.10679456448896946, 0.03071508549422349],
]
NETWORK_BY_LAST_ROW = [
    [8.930338907221708e-05, -0.007332626084530812, 0.00038111302182037746],
    [4.9039248375036225e-05, -0.005723600693821567, 0.00022874826873525424],
    [0.00013212740552239583, -0.01988788929644511, 0.00040509838001833896],
    [0.00014061425393660244, -0.014967498014800774, 0.004300828576642417],
]
NETWORK_TWICE = [  # the derivative by `extra`, of the derivative by `extra` times `extra`
    [7.247768532519919e-06, -0.0005326937520544414, 6.288758482426248e-06],
    [0.010111607356378421, -0.01872600872334035, 0.002934174810771183],
    [0.015782604441421152, -0.044968629036883465, 0.016949619165268246],
]


@pytest.mark.parametrize("kind", ["plain", "compiled"])
@pytest.mark.parametrize("mode", "FR")
def test_a_recurrent_network(mode: str, kind: str) -> None:
    def all_of_it(weights: Any, extra: Any) -> Any:
        def along(e: Any) -> Any:
            if mode == "F":
                return dg.jvp(lambda e: loss(weights, e), (e,), (e,))[1]
            return np.sum(dg.grad(loss, 1)(weights, e) * e)

        return loss(weights, extra), SLOPE[mode](loss, (0, 1))(weights, extra), SLOPE[mode](along)(extra)

    value, (by_weights, by_extra), twice = (dg.compile(all_of_it) if kind == "compiled" else all_of_it)(*NETWORK)
    close(value, 0.1527150087853734)
    close(by_weights[-1], np.ravel(np.array(NETWORK_BY_LAST_ROW)))
    close(by_extra, NETWORK_BY_EXTRA)
    close(twice, NETWORK_TWICE)


# -- ADBench: a hand ---------------------------------------------------------------------------------------------------

PARENTS = (None, 0, 1, 0, 3)  # a wrist, and two fingers of two bones


def rigid(k: int) -> Any:
    """A turn and a shift."""
    a, b = np.cos(1.0 + k), np.sin(1.0 + k)
    shift = waves(3, start=k + 5.0)
    return np.array([[a, -b, 0.0, shift[0]], [b, a, 0.0, shift[1]], [0.0, 0.0, 1.0, shift[2]], [0.0, 0.0, 0.0, 1.0]])


RELATIVE = [rigid(k) for k in range(5)]
SKIN = np.concatenate((waves(6, 3), np.ones((6, 1))), axis=1)
SHARES = (1.5 + waves(6, 5, start=2.0)) / np.sum(1.5 + waves(6, 5, start=2.0), axis=1, keepdims=True)
SEEN_AT = waves(2, 3, start=7.0)
TRIANGLES = ((0, 1, 2), (3, 4, 5))
HAND = (0.5 + 0.25 * waves(2, 2), 0.7 * waves(12, start=3.0))


def hand(places: Any, pose: Any) -> Any:
    """How far from what was seen two points of a hand are, each inside of a triangle of its skin.

    The pose: a turn by axis and angle and a shift of all, then for each finger two angles of its first bone and one of
    its second.
    """

    def turn(x: Any, z: Any) -> Any:
        a, b, c, d = np.cos(x), np.sin(x), np.cos(z), np.sin(z)
        rows = [[c, -d * a, d * b, 0.0], [d, c * a, -c * b, 0.0], [0.0, b, a, 0.0], [0.0, 0.0, 0.0, 1.0]]
        return np.stack([np.stack([0.0 * x + each for each in row]) for row in rows])

    turns = [turn(pose[6], pose[7]), turn(pose[8], 0.0), turn(pose[9], pose[10]), turn(pose[11], 0.0)]
    rest, bones, skin = [RELATIVE[0]], [RELATIVE[0]], SHARES[:, :1] * SKIN
    for i, parent in enumerate(PARENTS):
        if parent is not None:
            rest.append(rest[parent] @ RELATIVE[i])
            bones.append(bones[parent] @ RELATIVE[i] @ turns[i - 1])
            skin = skin + SHARES[:, i : i + 1] * (SKIN @ np.transpose(bones[i] @ np.linalg.inv(rest[i])))
    angle = np.sqrt(np.sum(pose[:3] ** 2))
    axis = pose[:3] / angle
    shape = skin[:, :3]
    along = np.outer(shape @ axis, axis)
    turned = along + (shape - along) * np.cos(angle) - np.cross(shape, axis) * np.sin(angle) + pose[3:6]
    found = []
    for (i, j, k), place, seen in zip(TRIANGLES, places, SEEN_AT, strict=True):
        inside = place[0] * turned[i] + place[1] * turned[j] + (1.0 - place[0] - place[1]) * turned[k]
        found.append(seen - inside)
    return np.stack(found)


HAND_VALUES = [
    [-0.8689590301776161, 2.8022635702883694, -1.6609218303025943],
    [0.034082282126346786, 0.9529859873433315, -1.507423357300024],
]
BACK_TO_PLACES = [[-2.3929699980601793, -0.49618574195332077], [0.6213905269827168, 0.38088284291532093]]
BACK_TO_POSE = (
    [0.7945302209410487, -0.1953691795822324, -0.8039948896356413, -0.5535676681428312, 0.8891542454057012]
    + [0.579660368201359, -0.19600922512260782, 0.11213293015293997, -0.11562899377455171, 0.2623293702421513]
    + [-0.3076879875455406, -0.33000791355242487]
)


@pytest.mark.parametrize("kind", ["plain", "compiled"])
@pytest.mark.parametrize("mode", "FR")
def test_a_hand_of_bones(mode: str, kind: str) -> None:
    jacobian = JACOBIAN[mode](hand, (0, 1))
    by_places, by_pose = (dg.compile(jacobian) if kind == "compiled" else jacobian)(*HAND)
    back = waves(2, 3)
    close(hand(*HAND), HAND_VALUES)
    close(np.tensordot(back, by_places, 2), BACK_TO_PLACES)
    close(np.tensordot(back, by_pose, 2), BACK_TO_POSE)
