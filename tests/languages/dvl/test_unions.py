"""Lists and structures as long as the run decides, closures of several kinds, and derivatives as many as the run
decides: run and compiled, with derivatives through them in both modes and with respect to them. Costs five seconds: a
compiled program has all cases of a test.
"""

from __future__ import annotations

import math

import pytest

import dynagrad as dg
from dynagrad.errors import DepthError, RoomError
from dynagrad.languages.dvl.program import DVLProgram
from languages.dvl.running import close, compiled, values

UPTO = "(define (upto n) (let loop ((i n) (l '())) (if (= i 0) l (loop (- i 1) (cons i l)))))\n"


def agree(text: str, within: float = 1e-12) -> list[object]:
    """The values of a program, which are the same run and compiled."""
    run, made = values(text), compiled(text)
    assert len(run) == len(made)
    for a, b in zip(run, made, strict=True):
        assert close(a, b, within), (a, b)
    return made


def test_lists_as_long_as_the_run_decides() -> None:
    found = agree(
        UPTO
        + """
        (define (halves n) (if (< n 1) '() (cons n (halves (/ n 2)))))
        (define (filter f l)
          (cond ((null? l) l) ((f (car l)) (cons (car l) (filter f (cdr l)))) (else (filter f (cdr l)))))
        (define (insert x l)
          (cond ((null? l) (list x)) ((< x (car l)) (cons x l)) (else (cons (car l) (insert x (cdr l))))))
        (define (look k l) (cond ((null? l) 'none) ((= k (car (car l))) (cdr (car l))) (else (look k (cdr l)))))
        (sum (halves (real 100)))
        (halves (real 3))
        (length (upto (real 1000)))
        (filter (lambda (x) (> (sin x) 0)) (upto (real 12)))
        (reduce (lambda (done x) (insert x done)) '() (map sin (upto (real 8))))
        (look (real 4) (map (lambda (i) (cons i (* i i))) (upto (real 6))))
        (look (real 9) (map (lambda (i) (cons i (* i i))) (upto (real 6))))
        (append (upto (real 2)) (cons 'a (reverse (upto (real 3)))))
        """
    )
    assert found[0] == 198.4375 and found[2] == 1000.0


def test_vectors_as_long_as_the_run_decides() -> None:
    found = agree(
        UPTO
        + """
        (define (rows n) (map (lambda (i) (list i (* i i))) (upto n)))
        (define (tree n) (if (< n 2) n (cons (tree (- n 1)) (tree (- n 2)))))
        (define (total t) (if (pair? t) (+ (total (car t)) (total (cdr t))) t))
        (+ (upto (real 3)) (* 2 (upto (real 3))))
        (- (/ (upto (real 2)) 2) (upto (real 2)))
        (distance (rows (real 3)) (* 2 (rows (real 3))))
        (list (equal? (rows (real 3)) (rows (real 3))) (equal? (upto (real 3)) (list 1 2 4)))
        (list (equal? (upto (real 3)) (upto (real 4))) (equal? (upto (real 3)) 'a))
        (total (tree (real 10)))
        (tree-map (lambda (x) (* x x)) (tree (real 4)))
        """
    )
    assert found[0] == (3.0, (6.0, (9.0, ()))) and found[5] == 55.0


def test_vectors_of_which_one_may_have_pairs_where_the_other_has_reals() -> None:
    """A loop over both would take the second apart, if the first had a pair there: none does."""
    tree = "(tree-map (lambda (v) 1.5) (upto (real 2)))"
    for text in (f"(+ {tree} (upto (real 2)))", f"(- {tree} (upto (real 2)))", f"(+ (upto (real 2)) {tree})"):
        assert compiled(UPTO + text) == values(UPTO + text)
    with pytest.raises(dg.RunError, match="takes a pair"):
        compiled(f"{UPTO} (let loop ((l (real 3)) (n 0)) (if (< n (real 2)) (loop (cdr l) (+ n 1)) n))")


def test_derivatives_through_lists_and_of_lists() -> None:
    found = agree(
        UPTO
        + """
        (define (f x) (sum (map (lambda (i) (sin (* i x))) (upto (real 4)))))
        (define (chained l) (reduce (lambda (a x) (sin (+ a (* x x)))) 0 l))
        ((derivative f) 0.3)
        ((gradient-r f) 0.3)
        ((gradient-r (gradient-r f)) 0.3)
        ((derivative (gradient-r f)) 0.3)
        ((derivative (lambda (x) (map (lambda (i) (* i x x)) (upto (real 3))))) 2)
        ((gradient-r chained) (upto (real 5)))
        ((gradient-f chained) (upto (real 5)))
        ((j-transpose*v (lambda (l) (map sin l))) (upto (real 3)) (upto (real 3)))
        (directional-derivative (lambda (l) (map sin l)) (upto (real 3)) (upto (real 3)))
        ((gradient-r (lambda (l) (car l))) (cons (real 7) (upto (real 2))))
        """
    )
    first = sum(i * math.cos(i * 0.3) for i in range(1, 5))
    assert all(close(x, first) for x in found[:2])
    assert all(close(x, -sum(i * i * math.sin(i * 0.3) for i in range(1, 5))) for x in found[2:4])
    assert close(found[5], found[6]) and found[9] == (1.0, (0.0, (0.0, ())))


def test_tags_that_the_program_makes_in_lists() -> None:
    found = agree(
        UPTO
        + """
        (define e (gensym))
        (define bundles (map (lambda (i) (* i (make-bundle e i 1))) (upto (real 3))))
        (tangent e bundles)
        (primal e (cons 'a bundles))
        (tangent e (sum bundles))
        (reverse bundles)
        """
    )
    assert found[0] == (1.0, (2.0, (3.0, ()))) and found[2] == 6.0


def test_closures_of_several_kinds() -> None:
    found = agree(
        UPTO
        + """
        (define fs (cons sin (cons cos (map (lambda (k) (lambda (x) (* k x))) (upto (real 3))))))
        (map (lambda (f) (f 10)) fs)
        (map (lambda (f) ((derivative f) 10)) fs)
        (map (lambda (f) ((gradient-r f) 10)) fs)
        (define (doubled n f) (if (= n 0) f (doubled (- n 1) (lambda (x) (f (* 2 x))))))
        (define f (doubled (real 3) sin))
        (list (f 1) ((derivative f) 1) ((gradient-r f) 1))
        (define (church n) (if (< n 1) (lambda (f x) x) (let ((m (church (- n 1)))) (lambda (f x) (f (m f x))))))
        ((gradient-r (lambda (y) ((church (real 5)) (lambda (x) (* y x)) 1))) 2)
        (define (from n) (cons n (lambda () (from (* 0.5 n)))))
        (define (take s k) (if (< k 1) '() (cons (car s) (take ((cdr s)) (- k 1)))))
        ((gradient-r (lambda (x) (sum (take (from x) (real 4))))) 3)
        (list sin (map (lambda (k) (lambda (x) (* k x))) (upto (real 2))))
        (if (> (real 1) 2) sin 'a)
        """
    )
    assert found[4] == 80.0 and found[5] == 1.875


NTH = "(define (nth n f) (if (= n 0) f (nth (- n 1) (derivative f))))\n"


def test_an_unknown_number_of_derivatives() -> None:
    """Tags are told apart as the program runs, through every elementary procedure."""
    found = agree(
        NTH
        + """
        (map (lambda (n) ((nth n sin) 1)) (list (real 0) (real 1) (real 2) (real 3)))
        ((nth (real 4) (lambda (x) (* x x x x x))) 2)
        ((nth (real 3) (lambda (x) (/ (exp x) (+ 1 (* x x))))) 0.5)
        ((nth (real 3) (lambda (x) (expt x 3.5))) 1.3)
        ((nth (real 2) (lambda (x) (expt 2 x))) 1.3)
        ((nth (real 3) (lambda (x) (atan x (sqrt x)))) 1.3)
        ((nth (real 2) (lambda (x) (abs (- (cos x) (* (tan x) (asin (/ x 4)) (acos (/ x 5)) (log x) (atan x)))))) 1.3)
        (let loop ((i 0) (f sin)) (if (< i (real 5)) (loop (+ i 1) (derivative f)) (f 1)))
        (define (taylor f x h n)
          (let loop ((i 0) (g f) (c 1) (t 0))
            (if (= i n) t (loop (+ i 1) (derivative g) (/ (* c h) (+ i 1)) (+ t (* c (g x)))))))
        (taylor exp 0 1 (real 6))
        """
    )
    assert close(found[0], (math.sin(1), (math.cos(1), (-math.sin(1), (-math.cos(1), ())))))
    assert (
        found[1] == 240.0
        and close(found[7], math.cos(1))
        and close(found[8], sum(1 / math.factorial(i) for i in range(6)))
    )


def test_derivatives_in_a_recursion_and_derivatives_of_it() -> None:
    """Each call differentiates the next one; in both modes, and both modes of the whole are differentiated again."""
    found = agree(
        """
        (define (f n x) (if (= n 0) (sin x) ((derivative (lambda (y) (f (- n 1) y))) x)))
        (define (g n x) (if (= n 0) (sin x) ((gradient-r (lambda (y) (* x (g (- n 1) (* y x))))) x)))
        (define (pair-of n x) (if (= n 0) (list x (* x x)) ((derivative (lambda (y) (pair-of (- n 1) (* y y)))) x)))
        (f (real 3) 1)
        ((derivative (lambda (x) (f (real 2) x))) 1)
        ((gradient-r (lambda (x) (f (real 2) x))) 1)
        ((gradient-r (gradient-r (lambda (x) (f (real 1) x)))) 1)
        ((derivative (gradient-r (lambda (x) (f (real 1) x)))) 1)
        (g (real 2) 0.5)
        (pair-of (real 2) 1)
        """
    )
    assert all(close(x, -math.cos(1)) for x in found[:5])
    assert found[6] == (4.0, (24.0, ()))


def test_more_choices_than_continuations() -> None:
    """Eleven choices inside of each other, more than ten, whose sides are of different kinds."""
    names = [f"v{i}" for i in range(11)]
    bound = "".join(f"(let (({v} (if (> (sin (+ x {i})) 0) x 'no))) " for i, v in enumerate(names))
    text = f"(define (f x) {bound} (+ 0 {' '.join(f'(if (real? {v}) {v} 1)' for v in names)}){')' * 11})"
    f = DVLProgram(text)["f"]
    fast = dg.compile(f)
    for x in (0.3, 1.7, 4.2):
        assert close(f(x), fast(x)) and close(dg.grad(f)(x), dg.grad(fast)(x))


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("(car (upto (real 0)))", dg.RunError, "takes a pair, and got the empty list"),
        ("(+ (upto (real 3)) (upto (real 4)))", dg.RunError, "two vectors of one shape"),
        ("((gradient-r (lambda (x) (upto (real 2)))) 1)", dg.Error, "the result of the function is a real"),
        ("(sin (upto (real 2)))", dg.Error, "takes reals"),
        (
            "(define (count n) (if (< n 1) '() (cons n (count (- n 1))))) (count (real 3000000))",
            DepthError,
            "too often",
        ),
        (
            "(let loop ((i (real 0)) (l 1)) (if (< i 1000000) (loop (+ i 1) (cons l 1)) (+ l l)))",
            DepthError,
            "too (deep|often)",
        ),
    ],
)
def test_what_goes_wrong_is_an_error(text: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        compiled(UPTO + text)


def test_a_list_without_end_stops() -> None:
    """Where it takes more room than the environment says."""
    text = "(let loop ((i (real 0)) (l '())) (if (< i 0) l (loop (+ i 1) (cons i l))))"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DYNAGRAD_SAVED_GB", "0.05")
        with pytest.raises(RoomError, match="take more than 51 MB"):
            compiled(text)


def test_results_are_structures_of_python() -> None:
    program = DVLProgram(
        "(define (halves n) (if (< n 1) '() (cons n (halves (/ n 2))))) (define (self n) (if (< n 1) 'no n))"
    )
    halves, kind = dg.compile(program["halves"]), dg.compile(program["self"])
    assert halves(3.0) == program["halves"](3.0) == (3.0, (1.5, ()))
    assert halves(0.5) == ()
    deep = dg.compile(
        DVLProgram("(define (f n) (let loop ((i 0) (l 1)) (if (< i n) (loop (+ i 1) (cons l i)) l)))")["f"]
    )
    found, at = deep(1e5), 1e5
    while at > 0:
        found, last = found
        at -= 1
        assert last == at
    assert kind(0.5) == "no" and kind(2.5) == 2.5


def test_forward_gradients_by_lists_of_the_run_are_little_code() -> None:
    """The kinds of values that an `and` asks for are known where it holds."""
    halves = "(define (halves x) (if (< x 1) '() (cons x (halves (/ x 2)))))"
    program = DVLProgram(f"{halves} (define (f x) ((gradient-f (lambda (l) (dot l l))) (halves x)))")
    assert len(str(dg.graph(program["f"], 100.0)).splitlines()) < 300
    found = compiled(f"{halves} ((gradient-f (lambda (l) (dot l l))) (halves (real 7)))")
    assert found == values(f"{halves} (* 2 (halves 7))")
