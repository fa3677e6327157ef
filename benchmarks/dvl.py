"""Compiled DVL: programs with derivatives inside, beside the same in C++ with derivatives by hand; how long they take
to be compiled, and how compiling reverse mode grows with the program.

The C++ of the saddle and of the particle is that of the compiled functions in `programs/`.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import dynagrad as dg
import dynagrad.languages.dvl as languages
from dynagrad.languages.dvl import DVLProgram

from .common import Row, growth, medians, megabytes, megabytes_of_compiler, python, timed
from .compiled import in_turn
from .programs.native import Native
from .programs.program import vary

SADDLE = """
(define (descend slope start)
  (let loop ((x start) (along (slope start)))
    (if (> (magnitude-squared along) 1e-12)
        (let ((next (- x (* 0.1 along)))) (loop next (slope next)))
        x)))
(define (function p q r)
  (define (payoff (list x1 x2) (list y1 y2))
    (+ (* (- x1 p) (- x1 p)) (* (- x2 q) (- x2 q)) (* x1 y1) (* r x2 y1 y2) (- 0 (* y1 y1)) (- 0 (* y2 y2))))
  (define (worst x)
    (payoff x (descend (gradient-r (lambda (y) (- 0 (payoff x y)))) '(1 1))))
  (product (descend (gradient-r worst) '(1 1))))
"""
PARTICLE = """
(define (function x y vx vy)
  (define (miss w)
    (define (potential (list x y))
      (+ (/ 1 (sqrt (+ (* (- x 10) (- x 10)) (* (+ (- y 10) w) (+ (- y 10) w)))))
         (/ 1 (sqrt (+ (* (- x 10) (- x 10)) (* y y))))))
    (let loop ((at (list x y)) (speed (list vx vy)))
      (let ((next (+ at (* 0.1 speed))))
        (if (> (car (cdr next)) 0)
            (loop next (- speed (* 0.1 ((gradient-r potential) at))))
            (let ((last (- (car at) (* (/ (car (cdr at)) (car (cdr speed))) (car speed))))) (* last last))))))
  (let loop ((w 0) (change 1))
    (if (> (abs change) 1e-9)
        (let ((change (/ ((derivative miss) w) ((derivative (derivative miss)) w))))
          (loop (- w change) change))
        w)))
"""
PERCEPTRON = """
(define (squashed x) (/ 1 (+ 1 (exp (- 0 x)))))
(define ((unit inputs) (cons bias weights)) (squashed (+ bias (dot inputs weights))))
(define ((network inputs) weights)
  (reduce (lambda (values weights) (map (unit values) weights)) inputs weights))
(define (misfit weights)
  (sum (map (lambda ((list inputs wanted)) (magnitude-squared (- ((network inputs) weights) (list wanted))))
            '(((0 0) 0) ((0 1) 1) ((1 0) 1) ((1 1) 0)))))
(define (function a b c d e f g h i)
  (let loop ((weights (list (list (list a b c) (list d e f)) (list (list g h i)))) (i 0))
    (if (< i 1000) (loop (- weights (* 2 ((gradient-r misfit) weights))) (+ i 1)) (misfit weights))))
"""


def coins() -> str:
    """The probabilistic lambda calculus of the examples, with its start as an argument."""
    text = example("lambda-calculus").replace('(include "descent.dvl")', "")
    start = text.index("(define (fitted")
    return text[:start] + (
        "(define (function a b c) (let loop ((x (list a b c)) (i 0))"
        " (if (< i 300) (loop (- x (* 0.05 ((gradient-r loss) x))) (+ i 1)) (loss x))))"
    )


def prolog() -> str:
    text = example("prolog")
    start = text.index("(define (fitted")
    return text[:start] + "(define (function p q) (misfit p q))"


def example(name: str) -> str:
    return (Path(languages.__file__).parent / "examples" / f"{name}.dvl").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Case:
    """A program whose `function` is measured, arguments near those given, and its C++."""

    name: str
    text: Callable[[], str]
    arguments: tuple[float, ...]
    native: str


CASES = {
    case.name: case
    for case in (
        Case("saddle", lambda: SADDLE, (1.5, 0.5, 0.7), "saddle.cpp"),
        Case("particle", lambda: PARTICLE, (0.5, 8.0, 0.75, 0.0), "particle.cpp"),
        Case("lambda calculus", coins, (0.0, 1.0, -1.0), "coins.cpp"),
        Case("perceptron", lambda: PERCEPTRON, (0.1, 0.9, -0.8, -0.2, -0.7, 0.8, 0.0, 0.5, 0.6), "perceptron.cpp"),
    )
}


def made(text: str) -> Any:
    return dg.compile(DVLProgram(text)["function"])


def seconds_to_compile(name: str) -> float:
    """Reading, specialising and compiling, where nothing is in the cache but another program."""
    dg.compile(DVLProgram("(define (f x) (* x x))")["f"])(1.0)
    if name == "prolog":
        return timed(lambda: made(prolog())(0.5, 0.5))
    return timed(lambda: made(CASES[name].text())(*CASES[name].arguments))


def first(name: str) -> float:
    with tempfile.TemporaryDirectory() as cache:
        code = f"from benchmarks.dvl import seconds_to_compile\nprint(seconds_to_compile({name!r}))"
        (seconds,) = python(code, cache)
    return seconds


def rows(case: Case) -> list[Row]:
    rng = np.random.default_rng(0)
    near = 0.0 if case.name == "particle" else 1.0  # where steps are more or fewer, its search turns in a circle
    pool = [vary(rng, *case.arguments) if near else case.arguments for _ in range(5)]
    f, native = made(case.text()), Native(case.native)
    calls = [native.function(native.flat(arguments)) for arguments in pool]
    off = max(abs(f(*arguments) - call()) / max(1.0, abs(call())) for arguments, call in zip(pool, calls, strict=True))
    own = in_turn([lambda arguments=arguments: f(*arguments) for arguments in pool])
    mine, theirs = medians(own, in_turn(calls))
    what = f"DVL, {case.name}"
    return [
        Row(what, mine, "s", "C++ by hand", theirs, 1.5),
        Row(f"{what}: difference from that", off, "", target=1e-9),
        Row(f"{what}: specialised and compiled", first(case.name), "s", target=3.0),
    ]


def gradient_of_lines(n: int) -> list[float]:
    """Seconds to specialise and compile the gradient of a program of n lines; megabytes that specialising it takes at
    its most, and the C++ compiler."""

    def gradient(lines: int) -> Any:
        bound = " ".join(f"(x (* 0.9 x (sin (+ x {i}))))" for i in range(lines))
        return dg.grad(DVLProgram(f"(define (f x) (let* ({bound}) x))")["f"])

    dg.compile(gradient(1))(0.9)
    seconds = timed(lambda: dg.compile(gradient(n))(0.9))
    traced = gradient(n)
    return [seconds, megabytes(lambda: dg.graph(traced, 0.9)), megabytes_of_compiler()]


LISTS = """
(define (upto n) (let loop ((i n) (l '())) (if (< i 1) l (loop (- i 1) (cons i l)))))
(define (on-heap n x) (sum (map (lambda (i) (sin (* i x))) (upto n))))
(define (in-loop n x) (let loop ((i n) (s 0)) (if (< i 1) s (loop (- i 1) (+ s (sin (* i x)))))))
(define (nth n f) (if (< n 1) f (nth (- n 1) (derivative f))))
(define (g x) (/ (exp x) (+ 1 (* x x))))
(define (four-by-run n x) ((nth n g) x))
(define (four-known n x) ((derivative (derivative (derivative (derivative g)))) x))
"""


def on_a_heap() -> list[Row]:
    """What only the run knows, beside the same where it is known, or is kept in no list."""
    program = DVLProgram(LISTS)

    def timed_pair(one: str, other: str, n: float, gradient: bool) -> tuple[float, float]:
        made = [dg.compile(dg.grad(program[name], 1) if gradient else program[name]) for name in (one, other)]
        first, second = (f(n, 0.3) for f in made)
        assert abs(first - second) <= 1e-9 * max(1.0, abs(second))
        slow, fast = medians(*(in_turn([lambda f=f: f(n, 0.3)]) for f in made))
        return slow, fast

    table = []
    for what, one, other, n, gradient, peer in (
        ("1000 reals in a list whose length the run decides", "on-heap", "in-loop", 1000.0, False, "no list"),
        ("their gradient", "on-heap", "in-loop", 1000.0, True, "no list"),
        ("four derivatives, as the run decides", "four-by-run", "four-known", 4.0, False, "four that are known"),
    ):
        slow, fast = timed_pair(one, other, n, gradient)
        table.append(Row(f"DVL, {what}", slow, "s", peer, fast))
    return table


def forward_gradient() -> Row:
    """How long it takes to specialise a forward gradient along a list whose length the run decides, in time of the
    processor."""
    halves = "(define (halves x) (if (< x 1) '() (cons x (halves (/ x 2)))))"
    f = DVLProgram(f"{halves} (define (f x) ((gradient-f (lambda (l) (dot l l))) (halves x)))")["f"]
    start = time.process_time()
    dg.graph(f, 100.0)
    return Row("DVL, gradient-f along a list of the run: specialised", time.process_time() - start, "s", target=1.0)


def dvl() -> list[Row]:
    """All rows of DVL."""
    table = [row for case in CASES.values() for row in rows(case)]
    f = made(prolog())
    g = dg.compile(dg.grad(DVLProgram(prolog())["function"], (0, 1)))
    value, gradient = medians(in_turn([lambda: f(0.5, 0.4)]), in_turn([lambda: g(0.5, 0.4)]))
    table.append(Row("DVL, Prolog: gradient", gradient, "s", "its value", value))
    table.append(Row("DVL, Prolog: specialised and compiled", first("prolog"), "s", target=3.0))
    return [
        *table,
        *on_a_heap(),
        forward_gradient(),
        *growth(
            "DVL, gradient of a program",
            "lines",
            (400, 800, 1600),
            "from benchmarks.dvl import gradient_of_lines\nprint(*gradient_of_lines({n}))",
        ),
    ]
