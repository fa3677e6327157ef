"""Derivatives in DVL: in both modes, of every nesting, of functions and with respect to functions; run and compiled.

The judges are sympy's derivatives, and those of Python's functions by `dynagrad`. Costs ten seconds: a compiled program
has all cases of a test.
"""

from __future__ import annotations

import itertools
import math
import time

import pytest
import sympy

import dynagrad as dg
from dynagrad.languages.dvl.checks import printed
from dynagrad.languages.dvl.program import DVLProgram
from languages.dvl.running import close, compiled, shown, value, values

MODES = {"forward": "derivative", "reverse": "gradient-r"}
X = sympy.Symbol("x")
FUNCTIONS = {
    "(* x (sin (* x x)))": X * sympy.sin(X * X),
    "(exp (/ x (+ 1 (* x x))))": sympy.exp(X / (1 + X * X)),
    "(expt x 3.5)": X ** sympy.Float("3.5"),
    "(atan (log x) (sqrt x))": sympy.atan2(sympy.log(X), sympy.sqrt(X)),
    "(let loop ((i 0) (y x)) (if (< i 4) (loop (+ i 1) (sin (* x y))) y))": sympy.sin(
        X * sympy.sin(X * sympy.sin(X * sympy.sin(X * X)))
    ),
    "(abs (- (cos x) (* (tan x) (asin (/ x 4)) (acos (/ x 5)))))": None,
}
AT = 1.3


def expected(text: str, n: int) -> float:
    f = FUNCTIONS[text]
    if f is None:
        f = sympy.cos(X) - sympy.tan(X) * sympy.asin(X / 4) * sympy.acos(X / 5)
        f = f if f.subs(X, AT) > 0 else -f
    return float(sympy.diff(f, X, n).evalf(30, subs={X: sympy.Float(str(AT), 40)}))


@pytest.mark.parametrize("order", [1, 2, 3])
def test_all_mixes_of_modes(order: int) -> None:
    """First derivatives by both modes, second by all four mixes, third by all eight; interpreted and compiled."""
    cases, wanted = [], []
    for text in FUNCTIONS:
        for modes in itertools.product(MODES.values(), repeat=order):
            f = f"(lambda (x) {text})"
            for mode in modes:
                f = f"({mode} {f})"
            cases.append(f"({f} (real {AT}))")
            wanted.append(expected(text, order))
    assert len(cases) == len(FUNCTIONS) * 2**order
    run, made = values("\n".join(cases)), compiled("\n".join(cases))
    for case, a, b, c in zip(cases, run, made, wanted, strict=True):
        assert close(a, c, 1e-11), case
        assert close(a, b), case


def test_structures_of_arguments_and_results() -> None:
    text = """
    (define (f (list a (cons b c))) (list (* a b) (cons (sin c) '(x #t))))
    (define at '(2 (3 . 4)))
    ((derivative (lambda (x) (f (list x (cons x x))))) 2)
    ((gradient-r (lambda (p) (car (f p)))) at)
    ((gradient-r (lambda (p) (* 5 (car (f (car p)))))) (cons at '(x #t 1)))
    ((jacobian-f (lambda (p) (car (f p)))) at)
    ((gradient-f (lambda (p) (car (f p)))) at)
    ((j-transpose*v (lambda ((list a b)) (list (* a b) (+ a b)))) '(2 3) '(1 10))
    (directional-derivative (lambda ((list a b)) (* a b)) '(2 3) '(10 1))
    ((gradient-r (lambda (x) 7)) '(1 2))
    """
    found = [
        "(4 (-0.4161468365471424 x #t))",
        "(3 (2 . 0))",
        "((15 (10 . 0)) x #t 0)",
        "(3 (2 . 0))",
        "(3 (2 . 0))",
        "(13 12)",
        "32",
        "(0 0)",
    ]
    assert list(map(printed, values(text))) == found
    assert all(close(a, b) for a, b in zip(values(text)[1:], compiled(text)[1:], strict=True))


def test_gradients_with_respect_to_functions_are_procedures() -> None:
    """Of f in f(f(2)): h -> h(f(2)) + f'(f(2)) h(2). Beside numbers, and differentiated once more."""
    text = """
    (define (twice f) (f (f 2)))
    (((gradient-r twice) sin) cos)
    (define g ((gradient-r (lambda (f x) (* x (f (* x x))))) sin 3))
    ((car g) cos)
    (cdr g)
    ((derivative (lambda (x) (((gradient-r (lambda (f) (f (* x x)))) sin) exp))) 1.5)
    ((gradient-r (lambda (x) (((gradient-r (lambda (f) (f (* x x)))) sin) exp))) 1.5)
    (((gradient-r (lambda (f) ((derivative f) 2))) sin) (lambda (x) (* x x x)))
    """
    wanted = [
        math.cos(math.sin(2)) + math.cos(math.sin(2)) * math.cos(2),
        3 * math.cos(9),
        math.sin(9) + 18 * math.cos(9),
        2 * 1.5 * math.exp(2.25),
        2 * 1.5 * math.exp(2.25),
        12.0,
    ]
    run, made = values(text), compiled(text)
    assert all(map(close, run, wanted))
    assert all(map(close, run, made))


def test_reverse_mode_keeps_sharing() -> None:
    """A number that is used twice is gone through once: 200 doublings, which are 2^200 paths."""
    text = "(define (f x) (let loop ((i 0) (x x)) (if (< i 200) (loop (+ i 1) (* 0.5 (+ x x))) x)))"
    for case in (
        f"{text} ((gradient-r f) (real 3))",
        f"{text} ((gradient-r (gradient-r (lambda (x) (* x (f x))))) (real 3))",
    ):
        assert close(value(case), 1.0 if "x (f" not in case else 2.0)
        assert close(compiled(case)[0], value(case))


def test_the_time_of_reverse_mode_is_linear() -> None:
    def seconds(n: int) -> float:
        program = DVLProgram(f"(define (f x) (let loop ((i 0) (x x)) (if (< i {n}) (loop (+ i 1) (sin (+ x x))) x)))")
        f = program["f"]
        best = math.inf
        for _ in range(3):
            start = time.perf_counter()
            dg.grad(f)(0.3)
            best = min(best, time.perf_counter() - start)
        return best

    assert seconds(16_000) < 16 * seconds(2_000)


def test_a_gradient_through_a_loop_of_unknown_length() -> None:
    text = """
    (define (root a) (let loop ((x a)) (if (> (abs (- (* x x) a)) 1e-13) (loop (/ (+ x (/ a x)) 2)) x)))
    (define (collatz x)
      (let loop ((x x)) (cond ((< x 2) x) ((> (sin (* 9 x)) 0) (loop (/ x 2))) (else (loop (- x 1))))))
    (list (root (real 2)) ((gradient-r root) (real 2)) ((derivative root) (real 2)))
    (list (collatz (real 100)) ((gradient-r collatz) (real 100)) ((derivative collatz) (real 100)))
    """
    run, made = values(text), compiled(text)
    assert close(run[0], (math.sqrt(2), (0.5 / math.sqrt(2), (0.5 / math.sqrt(2), ()))), 1e-9)
    assert run[1][1][0] == run[1][1][1][0] != 0.0
    assert close(tuple(run[0]), tuple(made[0])) and close(run[1], made[1])


def test_numbers_of_python_go_through() -> None:
    """A pass of Python's around one of DVL, and one of DVL around one of Python's."""
    program = DVLProgram(
        "(define (f x) ((derivative (lambda (y) (* x y y))) 3)) ((derivative (lambda (x) (* x (g x)))) 2)",
        functions={"g": dg.grad(lambda x: x**3 / 3.0 * 2.0)},
    )
    assert dg.grad(program["f"])(5.0) == 6.0
    (result,) = program.run()
    assert result.value == 3 * 2.0 * 2.0**2
    assert shown("((derivative (lambda (x) (tangent (gensym) x))) 2)") == "0"


def test_truth_values_in_a_derivative_stay_compiled_too() -> None:
    text = "(define (f x) (list x (< x 3) 'a #f)) ((derivative f) (real 1)) ((derivative (lambda (x) #t)) 1)"
    assert values(text) == compiled(text) == [(1.0, (True, ("a", (False, ())))), True]
    text = "(((derivative (lambda (x) (lambda (y) (cons (* x y) (cons 'a #t))))) (real 1)) 2)"
    assert values(text) == compiled(text) == [(2.0, ("a", True))]


@pytest.mark.parametrize(
    ("text", "words"), [("((gradient-r sin) 'a)", "takes reals"), ("((gradient-r car) '(a))", "none")]
)
def test_a_gradient_by_what_is_no_number_is_that_of_a_function_that_has_a_value(text: str, words: str) -> None:
    for run in (values, compiled):
        with pytest.raises(dg.Error, match=words):
            run(text)
