"""Values whose kind is decided as the run goes on, compiled: what follows a choice is specialised once for each side.
And streams, whose tails are closures; loops of a million rounds; and what stays an error. Costs ten seconds."""

from __future__ import annotations

import math
import resource

import pytest

import dynagrad as dg
from dynagrad.languages.dvl.program import DVLProgram
from languages.dvl.running import close, compiled, values

KINDS = """
(define (pick x) (if (> x 0) sin cos))
((pick (real 1)) 2)
((derivative (pick (real -1))) 2)
(define (maybe x) (if (> x 0) (list x) '()))
((lambda (x) (length (maybe x))) (real 3))
((derivative (lambda (x) (* x (length (maybe x))))) (real 3))
((gradient-r (lambda (x) (* x x (sum (maybe x))))) (real 3))
(define (both x y)
  (let ((a (maybe x)) (b (if (< y 0) 'yes y)))
    (if (real? b) (+ b (length a)) (if (equal? b 'yes) 100 0))))
(list (both (real 1) (real 2)) (both (real -1) (real 2)) (both (real 1) (real -2)))
(define (inner x) (if (> x 1) (if (> (sin x) 0) 'a 'b) '(c)))
(define (outer x) (let ((v (inner x))) (if (pair? v) x (if (equal? v 'a) (* x x) (* x x x)))))
(list (outer (real 0)) (outer (real 2)) (outer (real 4)))
(map (gradient-r outer) (list (real 0.5) (real 2) (real 4)))
(let loop ((i 0) (s 0)) (if (< i 100) (loop (+ i 1) (+ s (length (maybe (sin i))))) s))
"""


def test_choices_of_functions_lists_and_symbols() -> None:
    run, made = values(KINDS), compiled(KINDS)
    assert all(close(a, b) for a, b in zip(run, made, strict=True))
    assert made[0] == math.sin(2) and close(made[4], 27.0) and made[-1] == 50.0


def test_as_functions_of_unknown_arguments() -> None:
    program = DVLProgram(KINDS)
    fast, slow = dg.compile(program["outer"]), program["outer"]
    for x in (-3.0, 0.5, 1.5, 2.0, 4.0, 9.0):
        assert fast(x) == slow(x)
        assert dg.grad(fast)(x) == dg.grad(slow)(x)


def test_streams() -> None:
    text = """
    (define (from n) (cons n (lambda () (from (* 0.5 n)))))
    (define (total s) (let loop ((s s) (t 0)) (if (< (car s) 1e-9) t (loop ((cdr s)) (+ t (car s))))))
    (define (squares s) (cons (* (car s) (car s)) (lambda () (squares ((cdr s))))))
    (list (total (from (real 3))) (total (squares (from (real 3)))))
    ((gradient-r (lambda (x) (total (squares (from x))))) (real 3))
    ((derivative (derivative (lambda (x) (total (squares (from x)))))) (real 3))
    """
    run, made = values(text), compiled(text)
    assert all(close(a, b) for a, b in zip(run, made, strict=True))
    assert close(made[2], 8 / 3, 1e-6)


def test_a_million_rounds_take_no_room() -> None:
    """Compiled and run, with few kilobytes more than for a thousand rounds; mutual recursion too, as it is run."""
    rounds = "(define (f n) (let loop ((i 0) (x 1)) (if (< i n) (loop (+ i 1) (+ x (/ 1 (+ 1 i)))) x)))"
    program = DVLProgram(rounds)
    f, fast = program["f"], dg.compile(program["f"])
    assert close(f(1000.0), fast(1000.0))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert close(f(1e6), fast(1e6), 1e-11)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000


def test_a_recursion_that_is_no_loop_is_compiled_to_calls() -> None:
    program = DVLProgram(
        "(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))"
        "(define (g x n) (if (< n 1) x (sin (g (* x x) (- n 1)))))"
    )
    assert dg.compile(program["fib"])(20.0) == 6765.0
    g = program["g"]
    for n in (0.0, 1.0, 5.0):
        assert close(dg.compile(dg.grad(g))(0.7, n), dg.grad(g)(0.7, n))


@pytest.mark.parametrize("verb", ["derivative", "gradient-r"])
def test_choices_inside_of_what_is_differentiated(verb: str) -> None:
    text = f"""
    (define (at f) (({verb} f) (real 1)))
    (at (lambda (x) ((if (< x 0.4) sin (lambda (y) (* x y))) x)))
    (at (lambda (x) ((lambda (f) (f (f x))) (if (< x 0.4) sin (* x cos)))))
    (at (lambda (x) (* 3 (car (if (< x 0.4) (list x x) (list (* x x)))))))
    """
    found = compiled(text)
    assert found[0] == 2.0 and found[2] == 6.0
    assert all(close(a, b) for a, b in zip(found, values(text), strict=True))
