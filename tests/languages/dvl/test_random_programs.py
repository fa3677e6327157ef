"""Random terms of DVL, with nested derivatives, choices, loops, functions and lists: run, compiled, and by Python's own
calls of the verbs of `dynagrad`. Costs ten seconds: one compiled program has a hundred terms.
"""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

import dynagrad as dg
import dynagrad.math as dm
from languages.dvl.running import compiled, values

Term = tuple[str, Any]
"""A term as text, and as a function from variables to its value."""


def term(rng: random.Random, scope: list[str], depth: int) -> Term:
    """A term whose value is a real; each has a meaning where its variables are of moderate size."""
    if depth <= 0 or rng.random() < 0.1:
        if scope and rng.random() < 0.7:
            name = rng.choice(scope)
            return name, lambda env: env[name]
        number = round(rng.uniform(-2, 2), 2)
        return repr(number), lambda env: number
    return rng.choice(KINDS)(rng, scope, depth - 1)


def _sum(rng: random.Random, scope: list[str], depth: int) -> Term:
    sign, f = rng.choice([("+", lambda x, y: x + y), ("-", lambda x, y: x - y), ("*", lambda x, y: x * y)])
    (a, x), (b, y) = term(rng, scope, depth), term(rng, scope, depth)
    return f"({sign} {a} {b})", lambda env: f(x(env), y(env))


def _bounded(rng: random.Random, scope: list[str], depth: int) -> Term:
    name, f = rng.choice([("sin", dm.sin), ("cos", dm.cos), ("atan", dm.atan)])
    a, x = term(rng, scope, depth)
    return f"({name} {a})", lambda env: f(float(x(env)) if isinstance(x(env), int) else x(env))


def _quotient(rng: random.Random, scope: list[str], depth: int) -> Term:
    (a, x), (b, y) = term(rng, scope, depth), term(rng, scope, depth)
    return f"(/ {a} (+ 1 (* {b} {b})))", lambda env: x(env) / (1.0 + y(env) * y(env))


def _let(rng: random.Random, scope: list[str], depth: int) -> Term:
    name = f"v{len(scope)}"
    (a, x), (b, y) = term(rng, scope, depth), term(rng, [*scope, name], depth)
    return f"(let (({name} {a})) {b})", lambda env: y({**env, name: x(env)})


def _choice(rng: random.Random, scope: list[str], depth: int) -> Term:
    (a, x), (b, y), (c, z) = (term(rng, scope, depth) for _ in range(3))
    return f"(if (< (sin {a}) 0.1) {b} {c})", lambda env: y(env) if dm.sin(1.0 * x(env)) < 0.1 else z(env)


def _loop(rng: random.Random, scope: list[str], depth: int) -> Term:
    name, rounds = f"v{len(scope)}", rng.randint(1, 25)
    (a, x), (b, y) = term(rng, scope, depth), term(rng, [*scope, name], depth)

    def run(env: dict[str, Any]) -> Any:
        state = x(env)
        for _ in range(rounds):
            state = dm.sin(1.0 * y({**env, name: state}))
        return state

    return f"(let loop ((i 0) ({name} {a})) (if (< i {rounds}) (loop (+ i 1) (sin {b})) {name}))", run


def _closure(rng: random.Random, scope: list[str], depth: int) -> Term:
    name = f"v{len(scope)}"
    (a, x), (b, y), (c, z) = term(rng, scope, depth), term(rng, scope, depth), term(rng, [*scope, name], depth)

    def run(env: dict[str, Any]) -> Any:
        def f(v: Any) -> Any:
            return z({**env, name: v})

        return f(x(env)) + f(y(env))

    return f"(let ((f (lambda ({name}) {c}))) (+ (f {a}) (f {b})))", run


def _derivative(rng: random.Random, scope: list[str], depth: int) -> Term:
    mode, verb = rng.choice([("derivative", dg.derivative), ("gradient-r", dg.grad)])
    name = f"v{len(scope)}"
    (a, x), (b, y) = term(rng, scope, depth), term(rng, [*scope, name], depth)
    return f"(({mode} (lambda ({name}) {b})) {a})", lambda env: verb(lambda v: y({**env, name: v}) + 0.0 * v)(x(env))


def _function(rng: random.Random, scope: list[str], depth: int) -> Term:
    """The derivative of a function whose results are functions, called twice, once inside of itself."""
    names = f"v{len(scope)}", f"v{len(scope) + 1}"
    (a, x), (b, y), (c, z) = term(rng, scope, depth), term(rng, scope, depth), term(rng, [*scope, *names], depth)
    text = f"(let ((h ((derivative (lambda ({names[0]}) (lambda ({names[1]}) {c}))) {a}))) (h (sin (h {b}))))"

    def run(env: dict[str, Any]) -> Any:
        def f(u: Any) -> Any:
            return lambda v: z({**env, names[0]: u, names[1]: v}) + 0.0 * u

        h = dg.derivative(f)(x(env))
        return h(dm.sin(1.0 * h(y(env))))

    return text, run


def _list(rng: random.Random, scope: list[str], depth: int) -> Term:
    """A list whose length only the run knows."""
    name, count = f"v{len(scope)}", rng.randint(0, 4)
    b, y = term(rng, [*scope, name], depth)

    def run(env: dict[str, Any]) -> Any:
        return sum((dm.sin(1.0 * y({**env, name: float(i)})) for i in range(1, count + 1)), 0.0)

    return f"(sum (map (lambda ({name}) (sin {b})) (upto (real {count}))))", run


UPTO = "(define (upto n) (let loop ((i n) (l '())) (if (= i 0) l (loop (- i 1) (cons i l)))))"
KINDS = [_sum, _sum, _bounded, _quotient, _let, _choice, _loop, _closure, _derivative, _derivative, _function, _list]


def cases(seed: int, count: int) -> list[tuple[str, float]]:
    rng = random.Random(seed)
    found: list[tuple[str, float]] = []
    while len(found) < count:
        text, meaning = term(rng, ["x", "y"], rng.randint(2, 5))
        expected = float(meaning({"x": 0.7, "y": -0.4}))
        if len(text) < 1500 and math.isfinite(expected) and abs(expected) < 1e6:
            found.append((f"(let ((x (real 0.7)) (y (real -0.4))) {text})", expected))
    return found


@pytest.mark.parametrize("seed", range(4))
def test_run_compiled_and_by_python(seed: int) -> None:
    chosen = cases(seed, 25)
    text = "\n".join(case for case, _ in chosen)
    text = f"{UPTO}\n{text}"
    for (case, expected), a, b in zip(chosen, values(text), compiled(text), strict=True):
        scale = max(1.0, abs(expected))
        assert abs(a - expected) <= 1e-9 * scale, case
        assert abs(a - b) <= 1e-9 * scale, case
