"""Radul, "Automatic Differentiation in DVL" (2011), point by point: what it says of numbers, of both modes, and of
compilation; and each of its outstanding issues, closed by the test that names it. Issue 2, that gradients be right in
the examples, is closed by `test_examples.py`.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

import dynagrad as dg
from dynagrad.compiler.evaluate.specialiser import Specialiser
from dynagrad.eager.numbers import Bundle, TapeCell
from dynagrad.languages.dvl.program import DVLProgram
from languages.dvl.running import close, compiled, shown, value, values

# -- the text ----------------------------------------------------------------------------------------------------------


def test_what_a_number_holds_has_smaller_tags() -> None:
    seen = []

    def look(x: object) -> object:
        seen.append(x)
        return x

    program = DVLProgram(
        "(define (f x) ((gradient-r (lambda (y) ((derivative (lambda (z) (look (* x y z)))) 2))) 3))((derivative f) 5)",
        functions={"look": look},
    )
    assert program.run()[0].value == 1.0
    number, tags = seen[0], []
    while isinstance(number, Bundle | TapeCell):
        tags.append(number.tag)
        number = number.primal
    assert number == 30.0 and tags == sorted(tags, reverse=True) and len(tags) == 3


def test_a_primitive_on_bundles() -> None:
    """(f primal) and (* (Jf primal) tangent); what has no tangent stands for tangent zero; pairs are gone through."""
    text = """
    (define e (gensym))
    (tangent e (* (make-bundle e 3 10) (make-bundle e 4 1)))
    (tangent e (+ 7 (sin (make-bundle e 0 2))))
    (tangent e (cons (make-bundle e 3 10) 5))
    (primal e (list (make-bundle e 3 10) 'a))
    (tangent e (make-bundle e '(1 2) '(3 4)))
    """
    assert values(text) == [43.0, 2.0, (10.0, 0.0), (3.0, ("a", ())), (3.0, (4.0, ()))]
    assert all(close(a, b) for a, b in zip(values(text), compiled(text), strict=True))


def test_a_bundle_looks_for_its_tag_beneath_younger_ones() -> None:
    text = """
    (define a (gensym))
    (define b (gensym))
    (define x (make-bundle b (make-bundle a 2 1) 1))
    (tangent a (primal b (* x x x)))
    (tangent b (primal a (* x x x)))
    (tangent a (tangent b (* x x x)))
    (tangent b (tangent a (* x x x)))
    """
    assert values(text)[-4:] == [12.0, 12.0, 12.0, 12.0]
    assert compiled(text)[-4:] == [12.0, 12.0, 12.0, 12.0]


def test_derivative_and_gradient_by_the_operations_of_the_text() -> None:
    """`derivative` as the text defines it, in DVL itself, and `directional-derivative` of it."""
    text = """
    (define (my-derivative f)
      (let ((epsilon (gensym)))
        (lambda (x) (tangent epsilon (f (make-bundle epsilon x 1))))))
    (define (my-directional f point direction) ((my-derivative (lambda (e) (f (+ point (* e direction))))) 0))
    (define (f x) (* (sin x) (exp x)))
    (- ((my-derivative f) (real 1)) ((derivative f) (real 1)))
    (- ((my-derivative (my-derivative f)) (real 1)) ((derivative (derivative f)) (real 1)))
    (- ((my-derivative (derivative f)) (real 1)) ((derivative (my-derivative f)) (real 1)))
    (- ((my-derivative (gradient-r f)) (real 1)) ((derivative (derivative f)) (real 1)))
    (- ((gradient-r (my-derivative f)) (real 1)) ((derivative (derivative f)) (real 1)))
    (- ((my-derivative (my-derivative (gradient-r f))) (real 1)) ((derivative (derivative (derivative f))) (real 1)))
    (- ((my-derivative (gradient-r (my-derivative f))) (real 1)) ((derivative (derivative (derivative f))) (real 1)))
    (- ((my-derivative (lambda (x) (car (cdr ((gradient-r (lambda ((list a b)) (* x a (f b)))) '(2 1)))))) (real 3))
       (* 2 ((derivative f) 1)))
    (my-directional (lambda (p) (dot p p)) '(1 2) '(10 1))
    (((my-derivative (lambda (x) (lambda (y) (* x y)))) 3) 5)
    """
    for found in (values(text), compiled(text)):
        assert all(abs(x) < 1e-11 for x in found[:8])
        assert found[8:] == [24.0, 5.0]


def test_functions_as_results_are_post_composed() -> None:
    """And the subtlety of that: a derivative that is a function may be called inside of itself."""
    text = """
    (define (f x) (lambda (g) (lambda (y) (g (+ x y)))))
    (define h ((derivative f) 3))
    ((h (h exp)) 1)
    ((gradient-r (h exp)) 1)
    ((h exp) 1)
    """
    for found in (values(text), compiled(text)):
        assert all(close(a, math.exp(b)) for a, b in zip(found, (7, 4, 4), strict=True))


def test_constants_in_the_argument_of_a_gradient_stay() -> None:
    assert shown("((gradient-r (lambda (x) (* 2 (car x)))) '(3 a #t))") == "(2 a #t)"


def test_vectors_are_pairs_and_functions() -> None:
    assert shown("(+ (* 2 '(1 (2))) '(1 (1)))") == "(3 (5))"
    assert value("((* 3 (+ sin cos)) 0)") == 3.0


def test_tags_vanish_where_the_nesting_is_known() -> None:
    """The conjecture: nothing but operations on reals is left of a nested derivative, and it is what is left of the
    derivative that was taken by hand."""
    program = DVLProgram(
        "(define (f x) ((derivative (lambda (y) ((gradient-r (lambda (z) (* x y y z z z))) y))) x))"
        "(define (by-hand x) (* 12 x x x x))"
    )
    f, by_hand = program["f"], program["by-hand"]
    graph = str(dg.graph(f, 2.0))
    assert dg.compile(f)(2.0) == dg.compile(by_hand)(2.0) == 192.0
    assert "call" not in graph and "loop" not in graph and len(graph.splitlines()) < 32


def test_the_specialiser_is_that_of_python_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """One partial evaluator for both front ends: what it does not evaluate is not compiled."""
    seen = []
    enter = Specialiser.enter

    def told(self: Specialiser, function: Any, *rest: Any) -> Any:
        seen.append(function.code.name)
        return enter(self, function, *rest)

    monkeypatch.setattr(Specialiser, "enter", told)
    dg.graph(DVLProgram("(define (cube x) (* x x x))")["cube"], 2.0)
    dg.graph(lambda x: x * x * x, 2.0)
    assert any("cube" in name for name in seen) and any("lambda" in name for name in seen)


# -- the outstanding issues --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", [values, compiled], ids=["run", "compiled"])
def test_issue_1_fixed_points_in_both_modes_nested(run: object) -> None:
    assert callable(run)
    text = """
    (define (root a) (fixed-point (lambda (x) (/ (+ x (/ a x)) 2)) 1))
    (list ((derivative root) (real 9)) ((gradient-r root) (real 9)) ((gradient-r (derivative root)) (real 9)))
    (define (nested a)
      (fixed-point (lambda (y) (* 1/2 (cos (+ y (fixed-point (lambda (x) (* a (sin (+ x y)) 1/2)) 0))))) 0))
    (list ((derivative nested) (real 1/2)) ((gradient-r nested) (real 1/2)) (nested 0.50001) (nested 0.49999))
    """
    first, second = run(text)
    assert close(first, (1 / 6, (1 / 6, (-1 / 108, ()))), 1e-10)
    forward, (reverse, (above, (below, _))) = second
    assert abs(forward - reverse) < 1e-11 and abs(forward - (above - below) / 2e-5) < 1e-8


def test_issue_3_reverse_mode_keeps_sharing_in_time_and_in_what_is_compiled() -> None:
    """Work and code grow with the length of the program, not with the paths through it."""

    def source(n: int) -> str:
        body = "x"
        for i in range(n):
            body = f"(let ((x{i} {body})) (* x{i} (sin x{i})))"
        return f"(define (f x) {body})"

    sizes = {}
    for n in (8, 16, 32):
        program = DVLProgram(source(n))
        f = program["f"]
        sizes[n] = len(str(dg.graph(dg.grad(f), 0.9)).splitlines())
    assert sizes[32] < 2.5 * sizes[16] < 6 * sizes[8]
    deep = "(define (f x) (let loop ((i 0) (x x)) (if (< i 1000) (loop (+ i 1) (* 1/2 (+ x x))) x)))"
    assert value(f"{deep} ((gradient-r f) 3)") == 1.0  # 2^1000 paths


def test_issue_4_reverse_agrees_with_forward() -> None:
    """In value, and in cost: the gradient of a function of n reals is one pass, not n."""
    text = """
    (define (f v) (sum (map (lambda (x) (* (sin x) (exp x))) v)))
    (define v (list 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8))
    (distance ((gradient-r f) v) ((gradient-f f) v))
    """
    assert value(text) < 1e-14 and compiled(text)[-1] < 1e-14
    f = DVLProgram("(define (f v) (sum (map (lambda (x) (* (sin x) (exp x))) v)))")["f"]

    def lines(function: object, n: int) -> int:
        return len(str(dg.graph(function, [0.1 * i for i in range(n)])).splitlines())

    for n in (8, 32):
        assert n < lines(f, n) and lines(dg.grad(f), n) < 4 * lines(f, n)


def test_issue_5_gradients_with_respect_to_functions() -> None:
    text = "(define (twice f) (f (f 2))) (((gradient-r twice) sin) cos) (((gradient-r twice) (lambda (x) (* x x))) exp)"
    wanted = [math.cos(math.sin(2)) * (1 + math.cos(2)), math.exp(4) + 8 * math.exp(2)]
    assert all(map(close, values(text), wanted)) and all(map(close, compiled(text), wanted))


def test_issue_6_reverse_mode_through_a_loop_of_unknown_length() -> None:
    program = DVLProgram(
        "(define (fall drag) (let loop ((v 0) (h 100))"
        " (if (> h 0) (loop (+ v (* 0.01 (- 9.81 (* drag v v)))) (- h (* 0.01 v))) v)))"
    )
    f = program["fall"]
    fast = dg.compile(dg.grad(f))
    for drag in (0.02, 0.05, 0.3):
        assert close(dg.grad(f)(drag), fast(drag)) and close(dg.derivative(f)(drag), fast(drag))
    million = "(let loop ((i 0) (x 1)) (if (< i 1000000) (loop (+ i 1) (+ x (* 1e-6 a x))) x))"
    text = f"(define (f a) {million}) ((gradient-r f) (real 1))"
    assert abs(compiled(text)[0] - math.e) < 1e-5
