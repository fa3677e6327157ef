"""Derivatives that only the run can tell apart: through functions of which it decides which they are, as often as it
decides, along tags that a program makes again in each round. Run and compiled, in both modes and mixes of them. Costs
ten seconds: each program is compiled, most of them in less than a second.
"""

from __future__ import annotations

import pytest

import dynagrad as dg
from dynagrad.errors import LiftError, RunError
from dynagrad.languages.dvl.program import DVLProgram
from languages.dvl.running import close, compiled, values

UPTO = "(define (upto n) (let loop ((i n) (l '())) (if (= i 0) l (loop (- i 1) (cons i l)))))\n"
NTH = """
(define (nth n f) (if (= n 0) f (nth (- n 1) (derivative f))))
(define (iterate n g x) (if (= n 0) x (iterate (- n 1) g (g x))))
"""

FUNCTIONS = {
    "a pair of a real and a closure that a loop made": """
    (define (kinds x n) (if (> (sin x) 0) (lambda (y) (* x y)) (if (< n 0) sin (lambda (y) (* x x y)))))
    (define d ((derivative (lambda (x) (cons x (let loop ((i 0) (f sin)) (if (< i (real 2)) (loop (+ i 1)
      (lambda (y) (* x (f y)))) f))))) 0.5))
    (car d) ((cdr d) 2)
    """,
    "a list of closures": UPTO
    + """
    (define d ((derivative (lambda (x) (cons sin (map (lambda (k) (lambda (y) (* k x x y))) (upto (real 3)))))) 0.5))
    (map (lambda (f) (f 2)) d)
    """,
    "a closure that a recursion returns": """
    (define (f n) (lambda (x) (if (= n 0) (lambda (y) (* x y)) (let ((g ((f (- n 1)) (* x x)))) (lambda (y)
      (* x (g y)))))))
    (((derivative (f (real 2))) 0.5) 3)
    """,
    "a gradient by a list of closures of several kinds": UPTO
    + """
    (define fs (cons sin (cons cos (map (lambda (k) (lambda (x) (* k x))) (upto (real 2))))))
    (define g ((gradient-r (lambda ((cons a fs)) (reduce (lambda (s f) (+ s (f a))) 0 fs))) (cons 0.5 fs)))
    (define hs (cdr g))
    (car g)
    (list ((car hs) exp) ((car (cdr hs)) exp) ((car (cdr (cdr hs))) exp))
    """,
    "a gradient by nothing but such a list, of which all are called": UPTO
    + """
    (define fs (cons sin (map (lambda (k) (lambda (x) (* k x))) (upto (real 2)))))
    (map (lambda (h) (h exp)) ((gradient-r (lambda (fs) (reduce (lambda (s f) (+ s (f 0.5))) 0 fs))) fs))
    """,
    "a gradient by a real and a closure that is chosen": """
    (define f (if (> (real 1) 0) sin (lambda (y) (* 2 y))))
    (define g ((gradient-r (lambda ((cons a f)) (* a (f a)))) (cons 0.5 f)))
    (car g) ((cdr g) cos)
    """,
    "gradients by a closure that a loop made": """
    (define f (let loop ((i 0) (f sin)) (if (< i (real 3)) (loop (+ i 1) (lambda (y) (* 0.5 (f y)))) f)))
    ((gradient-r (lambda ((cons a f)) (* a (f a)))) (cons 0.5 f))
    (((gradient-r (lambda (f) (f (f 2)))) f) cos)
    """,
    "a direction of functions": UPTO
    + """
    (define fs (cons sin (map (lambda (k) (lambda (x) (* k x))) (upto (real 2)))))
    (directional-derivative (lambda (fs) (reduce (lambda (s f) (+ s (f 2))) 0 fs)) fs (cons cos (map (lambda
      (k) exp) (upto (real 2)))))
    """,
    "streams": """
    (define (from n) (cons n (lambda () (from (* 0.5 n)))))
    (define (take s k) (if (< k 1) '() (cons (car s) (take ((cdr s)) (- k 1)))))
    (define d ((derivative from) 3))
    (take d (real 3))
    (take d (real 5))
    (define (grown n s) (if (< n 1) s (cons n (lambda () (grown (- n 1) s)))))
    (define e ((derivative (lambda (x) (grown (real 2) (from x)))) 3))
    (take e (real 4))
    """,
    "second derivatives in all mixes of modes": """
    (define (chosen x) (let loop ((i 0) (f sin)) (if (< i (real 2)) (loop (+ i 1) (lambda (y) (* x (f y)))) f)))
    (define (d1 x) (((derivative chosen) x) 0.7))
    ((derivative d1) 0.5)
    ((gradient-r d1) 0.5)
    (((derivative (derivative chosen)) 0.5) 0.7)
    ((derivative ((derivative chosen) 0.5)) 0.7)
    ((gradient-r ((derivative chosen) 0.5)) 0.7)
    """,
    "church numerals in a list": """
    (define (church n) (if (< n 1) (lambda (f x) x) (let ((m (church (- n 1)))) (lambda (f x) (f (m f x))))))
    (define d ((derivative (lambda (y) (list y (church (real 3)) (lambda (z) (* y z))))) 2))
    (car d) ((car (cdr (cdr d))) 5)
    ((car (cdr d)) (lambda (x) (* 2 x)) 1)
    """,
    "bundles of functions": """
    (define e (gensym))
    (define f (let loop ((i 0) (f sin)) (if (< i (real 2)) (loop (+ i 1) (lambda (y) (* 0.5 (f y)))) f)))
    (tangent e ((make-bundle e f cos) 0.3))
    ((tangent e (make-bundle e f cos)) 0.3)
    ((primal e (make-bundle e f cos)) 0.3)
    """,
}

AS_MANY = {
    "a procedure that the run applies": NTH
    + """
    ((iterate (real 3) derivative sin) 1)
    ((iterate (real 4) derivative (lambda (x) (* x x x x x))) 2)
    """,
    "curried procedures": NTH
    + """
    (define ((h x) y) (* x x x y y))
    (((nth (real 2) h) 2) 3)
    ((derivative ((nth (real 2) h) 2)) 3)
    """,
    "a procedure that is called inside of itself": NTH
    + """
    (define ((shift x) g) (lambda (y) (g (+ x y))))
    (define d ((nth (real 1) shift) 3))
    ((d exp) 1)
    ((d (d exp)) 1)
    """,
    "a recursion that differentiates what it returns": """
    (define (f n) (if (= n 0) (lambda (x) (* x x x)) (lambda (x) ((derivative (f (- n 1))) x))))
    ((f (real 2)) 5)
    (define (g n) (if (= n 0) (lambda (x) (lambda (y) (* x x y))) (derivative (g (- n 1)))))
    (((g (real 2)) 5) 3)
    """,
    "results that are functions": """
    (define (f n) (if (= n 0) (lambda (x) x) ((derivative (lambda (y) (f (- n 1)))) n))) ((f (real 1)) 1)
    (define (g n x) (if (= n 0) (lambda (z) (* x z)) ((derivative (lambda (y) (g (- n 1) (* x y)))) x))) ((g
      (real 2) 3) 5)
    """,
    "gradients, and both modes": NTH
    + """
    ((iterate (real 2) gradient-r (lambda (x) (* x x x))) 2)
    (define (mixed n f) (if (= n 0) f (mixed (- n 1) (if (= n 2) (gradient-r f) (derivative f)))))
    ((mixed (real 3) (lambda (x) (exp (* 2 x)))) 0.3)
    """,
    "derivatives of these in both modes": NTH
    + """
    ((derivative (lambda (x) ((nth (real 2) (lambda (y) (* x y y y))) x))) 2)
    ((gradient-r (lambda (x) ((nth (real 2) (lambda (y) (* x y y y))) x))) 2)
    ((nth (real 2) (lambda (x) ((nth (real 2) (lambda (y) (* x x y y y))) x))) 2)
    """,
    "lists of derivatives": NTH
    + """
    (define (all n f) (if (= n 0) '() (cons f (all (- n 1) (derivative f)))))
    (map (lambda (f) (f 0.5)) (all (real 4) sin))
    (sum (map (lambda (f) ((gradient-r f) 0.5)) (all (real 3) sin)))
    """,
    "pairs with a function": NTH
    + """
    (define d ((nth (real 2) (lambda (x) (cons (* x x x) (lambda (y) (* x x y))))) 5))
    (car d) ((cdr d) 3)
    """,
    "gradients by lists": UPTO
    + """
    (define (f n) (if (= n 0) product (lambda (l) (reduce + 0 ((gradient-r (f (- n 1))) l)))))
    ((f (real 2)) (upto (real 3)))
    """,
    "either verb": """
    (define d (if (> (real 1) 0) derivative gradient-r))
    ((d sin) 1)
    ((derivative (d sin)) 1)
    ((d (d sin)) 1)
    """,
}

BUNDLES = {
    "lists": UPTO
    + """
    (define e (gensym))
    (define b (make-bundle e (upto (real 3)) (map (lambda (i) (* i i)) (upto (real 3)))))
    (tangent e b)
    (primal e b)
    (define s (map sin b))
    (tangent e s)
    (primal e s)
    (tangent e (sum s))
    (bundle? (car b))
    """,
    "two tags on lists": UPTO
    + """
    (define e (gensym)) (define d (gensym))
    (define b (make-bundle d (make-bundle e (upto (real 2)) (upto (real 2))) (upto (real 2))))
    (define s (product (map exp b)))
    (tangent e (tangent d s))
    (tangent d (tangent e s))
    (tangent e (primal d s))
    (primal e (tangent d s))
    (define c (make-bundle e (make-bundle d (upto (real 2)) (upto (real 2))) (upto (real 2))))
    (tangent d (tangent e (product (map exp c))))
    """,
    "trees": """
    (define (tree n) (if (< n 2) n (cons (tree (- n 1)) (tree (- n 2)))))
    (define e (gensym))
    (define (total t) (if (pair? t) (+ (total (car t)) (total (cdr t))) (* t t)))
    (tangent e (total (make-bundle e (tree (real 5)) (tree (real 5)))))
    """,
    "inside of derivatives in both modes": UPTO
    + """
    (define (f x) (let ((e (gensym))) (tangent e (reduce + 0 (map (lambda (y) (* x (sin y))) (make-bundle e (upto
      (real 3)) (map (lambda (i) (* x i)) (upto (real 3)))))))))
    ((derivative f) 2)
    ((gradient-r f) 2)
    """,
}

TAGS = {
    "closures": """
    (define (deriv f) (lambda (x) (let ((e (gensym))) (tangent e (f (make-bundle e x 1))))))
    (define (nth n f) (if (= n 0) f (nth (- n 1) (deriv f))))
    ((nth (real 3) sin) 1)
    ((nth (real 2) (lambda (x) (* x ((deriv (lambda (y) (+ x y))) 1)))) 3)
    """,
    "a list of tags": """
    (define (tags n) (if (= n 0) '() (cons (gensym) (tags (- n 1)))))
    (define ts (tags (real 2)))
    (define t1 (car ts)) (define t2 (car (cdr ts)))
    (gensym= t1 t2) (gensym= t1 t1) (gensym< t1 t2) (gensym< t2 t1)
    (tangent t1 (tangent t2 (* (make-bundle t1 3 1) (make-bundle t2 5 1))))
    (tangent t2 (* (make-bundle t1 3 1) (make-bundle t2 5 1)))
    (tangent t1 (* (make-bundle t1 3 1) (make-bundle t1 5 1)))
    (gensym? t1)
    """,
    "a loop of closures": """
    (define e0 (gensym))
    (define (curried n) (let loop ((i 0) (f (lambda (x) x))) (if (= i n) f
       (let ((e (gensym)) (g f)) (loop (+ i 1) (lambda (x) (* x (tangent e (g (make-bundle e (* x x) x))))))))))
    ((curried (real 3)) 2)
    (tangent e0 ((curried (real 3)) (make-bundle e0 2 1)))
    ((derivative (curried (real 3))) 2)
    ((gradient-r (curried (real 3))) 2)
    """,
    "each of a list": UPTO
    + """
    (map (lambda (i) (let ((e (gensym))) (tangent e (* (make-bundle e i 1) (make-bundle e i 1) i)))) (upto (real 3)))
    (define bs (map (lambda (i) (let ((e (gensym))) (cons e (make-bundle e i 1)))) (upto (real 3))))
    (define p (reduce (lambda (a b) (* a (cdr b))) 1 bs))
    (map (lambda (b) (tangent (car b) p)) bs)
    """,
    "products along many tags": """
    (define (f n) (let loop ((i 0) (x 2) (ts '())) (if (= i n) (let back ((ts ts) (x x)) (if (null? ts) x
      (back (cdr ts) (tangent (car ts) x))))
       (let ((e (gensym))) (loop (+ i 1) (* x (make-bundle e x 1)) (cons e ts))))))
    (f (real 1)) (f (real 2)) (f (real 3))
    """,
    "tags that are known, and tags of the run": """
    (define e (gensym))
    (define (nth n f) (if (= n 0) f (nth (- n 1) (derivative f))))
    (tangent e ((nth (real 2) (lambda (x) (* x x x))) (make-bundle e 2 1)))
    (tangent e ((nth (real 2) (lambda (x) (* x x x (make-bundle e 2 1)))) 5))
    ((derivative (lambda (z) (tangent e ((nth (real 2) (lambda (x) (* z x x x))) (make-bundle e 2 z))))) 3)
    """,
}


def agree(text: str) -> list[object]:
    """The values of a program, which are the same run and compiled."""
    run, made = values(text), compiled(text)
    assert len(run) == len(made)
    for a, b in zip(run, made, strict=True):
        assert close(a, b), (a, b)
    return made


@pytest.mark.parametrize("what", FUNCTIONS)
def test_structures_with_functions_that_the_run_decides_have_derivatives(what: str) -> None:
    agree(FUNCTIONS[what])


@pytest.mark.parametrize("what", AS_MANY)
def test_as_many_derivatives_as_the_run_decides(what: str) -> None:
    agree(AS_MANY[what])


@pytest.mark.parametrize("what", BUNDLES)
def test_bundles_as_long_as_the_run_decides(what: str) -> None:
    agree(BUNDLES[what])


@pytest.mark.parametrize("what", TAGS)
def test_a_tag_that_is_made_again_is_another_one(what: str) -> None:
    """No derivative is taken along the tag of another round (perturbation confusion)."""
    agree(TAGS[what])


def test_values_by_hand() -> None:
    """Where both ways could be wrong in the same manner."""
    found = agree(
        """
        (define (along f) (lambda (x) (let ((e (gensym))) (tangent e (f (make-bundle e x 1))))))
        (define (nth n f) (if (= n 0) f (nth (- n 1) (along f))))
        ((nth (real 3) (lambda (x) (* x x x x))) 2)
        ((nth (real 1) (lambda (x) (* x ((nth (real 1) (lambda (y) (+ x y))) 1)))) 3)
        """
    )
    assert found == [48.0, 1.0]


def test_a_tag_may_be_a_real_instead_and_is_equal_to_itself() -> None:
    found = agree(
        """
        (define (several n) (let loop ((i 0) (l '())) (if (< i n) (loop (+ i 1) (cons (if (< i 1) i (gensym)) l)) l)))
        (define l (several (real 3))) (define t (car l)) (define u (car (cdr l)))
        (gensym= t t) (gensym= t u) (gensym? t) (equal? t t) (equal? t u) (equal? t 3) (equal? l l) (equal? l (cdr l))
        (tangent t (* (make-bundle t 3 1) (make-bundle t 5 1)))
        (+ 1 (car (cdr (cdr l))))
        """
    )
    assert found == [True, False, True, True, False, False, True, False, 8.0, 1.0]


def test_shapes_that_differ_are_an_error_of_the_run() -> None:
    with pytest.raises(RunError, match="the tangent has the shape of the primal"):
        compiled(UPTO + "(make-bundle (gensym) (upto (real 3)) (upto (real 2)))")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2))))) (fib 40)", "fib is called when 5,000 calls"),
        ("(define (f n) (if (= n 0) 'a (list (f (- n 1)) (f (- n 1))))) (f 30)", "f is called when 5,000 calls"),
        ("(define (f l n) (+ 1 (f (cons l l) (+ n 1)))) (f '() (real 0))", "f calls itself more than 120 times"),
        ("(define (f g x) (+ 1 (f (derivative g) x))) (f sin (real 1))", "f calls itself more than 120 times"),
        ("(define (f l) (f (cons 1 l))) (f '())", "this loop never ends"),
        ("((lambda (x) (x x)) (lambda (x) (x x)))", "lambda calls itself more than 120 times"),
    ],
)
def test_specialisation_that_does_not_end_names_the_function(
    text: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DYNAGRAD_INLINED", "5000")
    with pytest.raises(LiftError, match=words):
        compiled(text)


def test_procedures_of_the_prelude_take_bundles_where_a_function_is_compiled_by_itself() -> None:
    text = """
      (define (f x)
        (let ((e (gensym)))
          (tangent e (let ((v (make-bundle e x 1))) (* 3 (dot (map (lambda (a) (* a v)) (list 1 v)) (list v 2)))))))"""
    program = DVLProgram(text)
    assert dg.compile(program["f"])(2.0) == program["f"](2.0) == 36.0
