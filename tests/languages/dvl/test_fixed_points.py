"""Fixed points whose derivatives have tags that are known, tags of the program's own, and tags that the run makes, and
whose state the run decides; against the oracle, run and compiled. Costs three seconds.
"""

from __future__ import annotations

import pytest

import dynagrad as dg
from dynagrad.languages.dvl.program import DVLProgram
from languages.dvl.oracle import meaning
from languages.dvl.running import close, compiled, values

TEXT = """
(define (root a) (fixed-point (lambda (x) (/ (+ x (/ a x)) 2)) 1))
(define (slow a) (fixed-point (lambda (x) (+ (* 0.9 (sin x)) a)) 1))
(define (pair a)
  (sum (fixed-point (lambda (l) (list (* 1/2 (cos (+ a (car (cdr l))))) (* a 1/3 (sin (car l))))) '(0 0))))
(define (upto n) (if (<= n 0) '() (cons 0 (upto (- n 1)))))
(define (many a) (sum (fixed-point (lambda (l) (map (lambda (x) (* 1/2 (cos (+ a x)))) l)) (upto (real 3)))))
(define (nth n f) (if (= n 0) f (nth (- n 1) (derivative f))))
(define (by-tag f x) (let ((e (gensym))) (tangent e (f (make-bundle e x 1)))))
(define (in-rounds f x)
  (let loop ((i 0) (s 0))
    (if (= i (real 2)) s (let ((e (gensym))) (loop (+ i 1) (+ s (tangent e (f (make-bundle e x 1)))))))))
((nth (real 2) root) 4)
((nth (real 0) root) 4)
((nth 3 root) 4)
((nth (real 3) root) (real 4))
(by-tag root (real 4))
(by-tag (derivative root) (real 4))
((derivative (lambda (x) (by-tag root x))) (real 4))
((gradient-r (lambda (x) (by-tag root x))) (real 4))
((nth (real 2) slow) 0.3)
((nth (real 1) pair) 0.4)
((nth (real 2) (gradient-r pair)) (real 0.4))
(by-tag pair (real 0.4))
((derivative many) (real 0.4))
((gradient-r many) (real 0.4))
(in-rounds (gradient-r many) (real 0.4))
"""


def test_derivatives_by_every_kind_of_tag() -> None:
    for a, b, c in zip(meaning(TEXT), values(TEXT), compiled(TEXT), strict=True):
        assert close(a, b, 1e-9) and close(a, c, 1e-9), (a, b, c)


def test_by_tags_of_the_run_it_is_found_to_the_last_digits() -> None:
    text = TEXT.partition("((nth")[0] + "((nth (real 2) slow) 0.3)"
    assert close(compiled(text)[-1], meaning(text)[-1], 1e-14)


SHAPES = [
    ("(fixed-point (lambda (x) (cons x x)) 3)", "returns a pair in the place of"),
    ("(fixed-point (lambda (x) 'a) 3)", "returns the symbol a in the place of"),
    ("(fixed-point (lambda (x) sin) 3)", "returns (the|a) procedure( sin)? in the place of"),
    (
        "(fixed-point (lambda (x) x) (list 1 sin))",
        "starts from a real or a structure of reals, and got the procedure sin",
    ),
    ("(fixed-point (lambda (x) x) 'a)", "starts from a real or a structure of reals, and got the symbol a"),
    ("((derivative (lambda (a) (fixed-point (lambda (x) (list a)) 3))) 2)", "returns a pair in the place of"),
    ("((nth (real 1) (lambda (a) (fixed-point (lambda (x) (cons a x)) 3))) 2)", "returns a pair in the place of"),
    ("(fixed-point (lambda (l) (upto (real 2))) (upto (real 3)))", "place of a pair|another shape than its argument"),
]


@pytest.mark.parametrize("way", [values, compiled], ids=["run", "compiled"])
@pytest.mark.parametrize(("text", "words"), SHAPES)
def test_shapes_that_differ_are_errors(text: str, words: str, way: object) -> None:
    assert callable(way)
    with pytest.raises(dg.Error, match=words):
        way(TEXT.partition("((nth")[0] + text)


def test_one_that_does_not_settle_is_an_error() -> None:
    text = TEXT.partition("((nth")[0] + "((nth (real 1) (lambda (a) (fixed-point (lambda (x) (+ a x)) 3))) 2)"
    with pytest.raises(dg.NotConverged, match="fixed-point: no fixed point was reached"):
        DVLProgram(text).run()
    with pytest.raises(dg.RunError, match="still changes after 10000 steps"):
        compiled(text)
