"""Draws programs of DVL: closed expressions of a given type, of all forms of the language.

Types are "R", "B", "S", "N" (the empty list), ("P", A, B), ("L", A), a list whose length the run decides, and
("F", A, B). Names are few, so that many are hidden by others.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Type = Any
Scope = dict[str, Type]

NAMES = ("x", "y", "z", "u", "v", "w", "f", "g")
REALS = ("R", ("P", "R", "R"), ("P", "R", ("P", "R", "N")), ("P", ("P", "R", "S"), "R"))
"""Types that gradients are taken of."""


def is_vector(kind: Type, inside: bool = False) -> bool:
    """Whether values of a type can be added; lists are of one length only where they are of one origin."""
    if kind in ("R", "N"):
        return True
    if kind == "S":
        return inside
    if isinstance(kind, tuple) and kind[0] == "P":
        return is_vector(kind[1], True) and is_vector(kind[2], True)
    return isinstance(kind, tuple) and kind[0] == "F" and is_vector(kind[2])


class Drawing:
    """Random expressions."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def kind(self, depth: int) -> Type:
        """A type that a variable may have."""
        r = self.rng.random()
        if depth <= 0 or r < 0.5:
            return "R"
        if r < 0.55:
            return self.rng.choice(["B", "S"])
        if r < 0.7:
            return self.rng.choice(REALS)
        if r < 0.78:
            return ("P", self.kind(depth - 1), self.kind(depth - 1))
        if r < 0.84:
            return ("L", "R")
        return ("F", self.kind(depth - 1), self.kind(depth - 1))

    def real(self) -> str:
        return f"{self.rng.uniform(-2, 2):.2f}"

    def name(self) -> str:
        return self.rng.choice(NAMES)

    def of(self, kind: Type, scope: Scope, depth: int) -> str:
        """An expression of a type."""
        if depth <= 0:
            return self.leaf(kind, scope)
        chosen: list[Callable[..., str]] = [*ANY, *ANY]
        if kind in OF_KIND:
            chosen += OF_KIND[kind] * 2
        elif isinstance(kind, tuple):
            chosen += OF_KIND[kind[0]] * 4
        if is_vector(kind):
            chosen += VECTOR
        if self.rng.random() < 0.1:
            return self.leaf(kind, scope)
        return self.rng.choice(chosen)(self, kind, scope, depth - 1)

    def leaf(self, kind: Type, scope: Scope) -> str:
        mine = [name for name, of in scope.items() if of == kind]
        if mine and self.rng.random() < 0.75:
            return self.rng.choice(mine)
        return self.plain(kind, scope)

    def plain(self, kind: Type, scope: Scope) -> str:
        if kind == "R":
            return self.real()
        if kind == "B":
            return self.rng.choice(["#t", "#f"])
        if kind == "S":
            return "'a"
        if kind == "N":
            return "'()"
        if kind[0] == "P":
            return f"(cons {self.leaf(kind[1], scope)} {self.leaf(kind[2], scope)})"
        if kind[0] == "L":
            return (
                self.rng.choice(["(upto 2)", "(upto (real 2))"])
                if kind[1] == "R"
                else f"(many (real 2) {self.leaf(kind[1], scope)})"
            )
        if kind == ("F", "R", "R") and self.rng.random() < 0.5:
            return self.rng.choice(["sin", "cos", "atan", "-"])
        name = self.name()
        return f"(lambda ({name}) {self.leaf(kind[2], {**scope, name: kind[1]})})"


# -- forms of any type -------------------------------------------------------------------------------------------------


def _let(d: Drawing, kind: Type, scope: Scope, depth: int) -> str:
    form, pairs, inner = d.rng.choice(["let", "let*"]), [], dict(scope)
    used: set[str] = set()
    for _ in range(d.rng.randint(1, 3)):
        name, of = d.name(), d.kind(2)
        if form == "let" and name in used:
            continue
        used.add(name)
        pairs.append(f"({name} {d.of(of, inner if form == 'let*' else scope, depth)})")
        inner[name] = of
    return f"({form} ({' '.join(pairs)}) {d.of(kind, inner, depth)})"


def _choice(d: Drawing, kind: Type, scope: Scope, depth: int) -> str:
    test, a, b = d.of("B", scope, depth), d.of(kind, scope, depth), d.of(kind, scope, depth)
    if d.rng.random() < 0.3:
        return f"(cond ({test} {a}) ({d.of('B', scope, depth)} {d.of(kind, scope, depth)}) (else {b}))"
    return f"(if {test} {a} {b})"


def _applied(d: Drawing, kind: Type, scope: Scope, depth: int) -> str:
    """A lambda with a pattern or several arguments, called."""
    a, b = d.rng.sample(NAMES, 2)
    of_a, of_b = d.kind(1), d.kind(1)
    body = d.of(kind, {**scope, a: of_a, b: of_b}, depth)
    first, second = d.of(of_a, scope, depth), d.of(of_b, scope, depth)
    way = d.rng.randrange(4)
    if way == 0:
        return f"((lambda ({a} {b}) {body}) {first} {second})"
    if way == 1:
        return f"((lambda ((cons {a} {b})) {body}) (cons {first} {second}))"
    if way == 2:
        return f"((lambda ((list {a} {b})) {body}) (list {first} {second}))"
    return f"(let ((made (lambda () (cons {first} {second})))) (let (((cons {a} {b}) (made))) {body}))"


def _called(d: Drawing, kind: Type, scope: Scope, depth: int) -> str:
    """A function that stands in scope, or is made here and called twice."""
    for name, of in scope.items():
        if isinstance(of, tuple) and of[0] == "F" and of[2] == kind and d.rng.random() < 0.6:
            return f"({name} {d.of(of[1], scope, depth)})"
    of = d.kind(2)
    return f"({d.of(('F', of, kind), scope, depth)} {d.of(of, scope, depth)})"


def _part(d: Drawing, kind: Type, scope: Scope, depth: int) -> str:
    other = d.kind(1)
    if d.rng.random() < 0.5:
        return f"(car {d.of(('P', kind, other), scope, depth)})"
    return f"(cdr {d.of(('P', other, kind), scope, depth)})"


def _loop(d: Drawing, kind: Type, scope: Scope, depth: int) -> str:
    """A tail recursion, with a count that is known or not."""
    name = d.name()
    rounds = d.rng.randint(1, 4)
    count = d.rng.choice([f"{rounds}", f"(real {rounds})"])
    inner = {**scope, name: kind}
    start, step = d.of(kind, scope, depth), d.of(kind, inner, depth)
    if kind == "R":
        step = f"(sin {step})"
    return f"(let loop ((i 0) ({name} {start})) (if (< i {count}) (loop (+ i 1) {step}) {name}))"


def _derivative(d: Drawing, kind: Type, scope: Scope, depth: int) -> str:
    """Forward; the tangent has the type of the value."""
    name = d.name()
    body, at = d.of(kind, {**scope, name: "R"}, depth), d.of("R", scope, depth)
    if d.rng.random() < 0.2:
        return f"(tangent-by-hand (lambda ({name}) {body}) {at})"
    if d.rng.random() < 0.2 and is_vector(kind):
        return f"(directional-derivative (lambda ({name}) {body}) {at} {d.of('R', scope, depth)})"
    return f"((derivative (lambda ({name}) {body})) {at})"


ANY: list[Callable[..., str]] = [_let, _choice, _applied, _called, _part, _loop, _derivative]


# -- forms of a type ---------------------------------------------------------------------------------------------------


def _arithmetic(d: Drawing, kind: Type, scope: Scope, depth: int) -> str:
    sign = d.rng.choice("++-**")
    return f"({sign} {d.of('R', scope, depth)} {d.of('R', scope, depth)})"


def _elementary(d: Drawing, kind: Type, scope: Scope, depth: int) -> str:
    a = d.of("R", scope, depth)
    shape = d.rng.choice(
        ["(sin {})", "(cos {})", "(atan {})", "(exp (sin {}))", "(log (+ 2 (sin {})))", "(sqrt (+ 1 (expt {} 2)))",
         "(asin (* 1/2 (sin {})))", "(acos (* 1/2 (cos {})))", "(abs (+ 1 {}))", "(tan (* 1/2 (sin {})))",
         "(expt (+ 2 (cos {})) 1.5)", "(atan {} 1.5)", "(atan 1 {})", "(- {})", "(/ 1 (+ 2 (sin {})))"]
    )  # fmt: skip
    return shape.format(a)


def _quotient(d: Drawing, kind: Type, scope: Scope, depth: int) -> str:
    return f"(/ {d.of('R', scope, depth)} (+ 2 (cos {d.of('R', scope, depth)})))"


def _gradient_of_real(d: Drawing, kind: Type, scope: Scope, depth: int) -> str:
    name = d.name()
    verb = d.rng.choice(["gradient-r", "gradient-r", "gradient-f"])
    return f"(({verb} (lambda ({name}) {d.of('R', {**scope, name: 'R'}, depth)})) {d.of('R', scope, depth)})"


def _gradient_by_function(d: Drawing, kind: Type, scope: Scope, depth: int) -> str:
    name, of = d.name(), d.rng.choice([("F", "R", "R"), ("F", "R", "R"), ("F", ("P", "R", "R"), "R")])
    body = d.of("R", {**scope, name: of}, depth)
    return f"(((gradient-r (lambda ({name}) {body})) {d.of(of, scope, depth)}) {d.of(of, scope, depth)})"


def _inside_of_itself(d: Drawing, kind: Type, scope: Scope, depth: int) -> str:
    """A derivative that is a functional, applied to a function that it made."""
    x, y, g = d.rng.sample(NAMES, 3)
    inner = {**scope, x: "R", g: ("F", "R", "R"), y: "R"}
    h = f"h{d.rng.randrange(3)}"
    made = f"((derivative (lambda ({x}) (lambda ({g}) (lambda ({y}) {d.of('R', inner, depth)})))) {d.real()})"
    verb = d.rng.choice(["", "", "derivative", "gradient-r"])
    called = f"({h} ({h} {d.rng.choice(['sin', 'cos'])}))"
    called = f"({verb} {called})" if verb else called
    return f"(let (({h} {made})) ({called} {d.of('R', scope, depth)}))"


def _of_list(d: Drawing, kind: Type, scope: Scope, depth: int) -> str:
    items = d.of(("L", "R"), scope, depth)
    a, b = d.rng.sample(NAMES, 2)
    return d.rng.choice(
        [
            f"(sum {items})",
            f"(product {items})",
            f"(magnitude-squared {items})",
            f"(let ((l {items})) (dot l (map (lambda ({b}) {d.of('R', {**scope, b: 'R'}, depth)}) l)))",
            f"(reduce (lambda ({a} {b}) (sin {d.of('R', {**scope, a: 'R', b: 'R'}, depth)})) 0.3 {items})",
            f"(sum ((gradient-r (lambda ({a}) {d.of('R', {**scope, a: ('L', 'R')}, depth)})) {items}))",
            f"(length {items})",
        ]
    )


def _dot(d: Drawing, kind: Type, scope: Scope, depth: int) -> str:
    of = d.rng.choice(REALS[1:3])
    return f"(dot {d.of(of, scope, depth)} {d.of(of, scope, depth)})"


def _fixed_point(d: Drawing, kind: Type, scope: Scope, depth: int) -> str:
    name = d.name()
    a, b = d.of("R", scope, depth), d.of("R", scope, depth)
    return f"(let ((a {a}) (b {b})) (fixed-point (lambda ({name}) (+ (sin a) (* 0.4 (sin (+ b {name}))))) 0))"


def _recursion(d: Drawing, kind: Type, scope: Scope, depth: int) -> str:
    """A recursion that is no loop."""
    name = d.name()
    step = d.of("R", {**scope, name: "R"}, depth)
    count = d.rng.choice(["2", "(real 2)", "(real 3)"])
    body = f"(lambda (n {name}) (if (< n 1) {name} (* 1/2 (+ {name} (rec (- n 1) (sin {step}))))))"
    return f"(letrec ((rec {body})) (rec {count} {d.of('R', scope, depth)}))"


def _confusion(d: Drawing, kind: Type, scope: Scope, depth: int) -> str:
    """A derivative inside of a derivative, of what has both variables."""
    a, b = d.rng.sample(NAMES, 2)
    inner = d.of("R", {**scope, a: "R", b: "R"}, depth)
    one, two = d.rng.choice(["derivative", "gradient-r"]), d.rng.choice(["derivative", "gradient-r"])
    at = d.rng.choice([a, d.real(), f"(sin {a})"])
    return f"(({one} (lambda ({a}) (* {a} (({two} (lambda ({b}) (* {a} {inner}))) {at})))) {d.of('R', scope, depth)})"


def _compared(d: Drawing, kind: Type, scope: Scope, depth: int) -> str:
    sign = d.rng.choice(["<", "<=", ">", ">="])
    return f"({sign} {d.of('R', scope, depth)} {d.of('R', scope, depth)})"


def _logic(d: Drawing, kind: Type, scope: Scope, depth: int) -> str:
    a, b = d.of("B", scope, depth), d.of("B", scope, depth)
    return d.rng.choice([f"(and {a} {b})", f"(or {a} {b})", f"(not {a})", f"(equal? {a} {b})"])


def _asked(d: Drawing, kind: Type, scope: Scope, depth: int) -> str:
    what = d.rng.choice(["real?", "pair?", "null?", "boolean?", "symbol?", "procedure?"])
    return f"({what} {d.of(d.kind(1), scope, depth)})"


def _pair(d: Drawing, kind: Type, scope: Scope, depth: int) -> str:
    return f"({d.rng.choice(['cons', 'cons*'])} {d.of(kind[1], scope, depth)} {d.of(kind[2], scope, depth)})"


def _gradient(d: Drawing, kind: Type, scope: Scope, depth: int) -> str:
    """A structure that is a gradient, in one of its ways."""
    if kind not in REALS:
        return _pair(d, kind, scope, depth)
    name = d.name()
    f, at = f"(lambda ({name}) {d.of('R', {**scope, name: kind}, depth)})", d.of(kind, scope, depth)
    verb = d.rng.choice(["gradient-r", "gradient-r", "gradient-f", "jacobian-f", "j-transpose*v"])
    if verb == "j-transpose*v":
        return f"((j-transpose*v {f}) {at} {d.of('R', scope, depth)})"
    return f"(({verb} {f}) {at})"


def _items(d: Drawing, kind: Type, scope: Scope, depth: int) -> str:
    a = d.name()
    items = d.of(kind, scope, depth)
    if kind[1] != "R":
        return d.rng.choice([f"(reverse {items})", f"(append {items} {d.of(kind, scope, depth)})"])
    body = d.of("R", {**scope, a: "R"}, depth)
    return d.rng.choice(
        [
            f"(map (lambda ({a}) {body}) {items})",
            f"(reverse {items})",
            f"(append {items} {d.of(kind, scope, depth)})",
            f"(cons {body if a in scope and scope[a] == 'R' else d.real()} {items})",
            f"(let ((l {items})) (map2 + l (map (lambda ({a}) {body}) l)))",
            f"(let ((l {items})) (+ l (* {d.real()} (map (lambda ({a}) {body}) l))))",
            f"((gradient-r (lambda (l) (sum (map (lambda ({a}) {body}) l)))) {items})",
            f"(tree-map (lambda ({a}) {body}) {items})",
        ]
    )


def _lambda(d: Drawing, kind: Type, scope: Scope, depth: int) -> str:
    name = d.name()
    return f"(lambda ({name}) {d.of(kind[2], {**scope, name: kind[1]}, depth)})"


def _verb(d: Drawing, kind: Type, scope: Scope, depth: int) -> str:
    """A function that is a derivative."""
    if kind[1] == "R":
        if kind[2] == "R" and d.rng.random() < 0.5:
            return f"(gradient-r {d.of(kind, scope, depth)})"
        return f"(derivative {d.of(kind, scope, depth)})"
    return _lambda(d, kind, scope, depth)


def _sum(d: Drawing, kind: Type, scope: Scope, depth: int) -> str:
    return f"({d.rng.choice('+-')} {d.of(kind, scope, depth)} {d.of(kind, scope, depth)})"


def _scaled(d: Drawing, kind: Type, scope: Scope, depth: int) -> str:
    c, x = d.of("R", scope, depth), d.of(kind, scope, depth)
    return d.rng.choice([f"(* {c} {x})", f"(* {x} {c})", f"(/ {x} (+ 2 (sin {c})))"])


VECTOR: list[Callable[..., str]] = [_sum, _scaled]
OF_KIND: dict[Any, list[Callable[..., str]]] = {
    "R": [
        _arithmetic, _arithmetic, _elementary, _elementary, _quotient, _gradient_of_real, _gradient_by_function,
        _inside_of_itself, _of_list, _dot, _fixed_point, _recursion, _confusion, _confusion,
    ],
    "B": [_compared, _compared, _logic, _asked],
    "S": [lambda d, kind, scope, depth: d.plain(kind, scope)],
    "N": [lambda d, kind, scope, depth: d.plain(kind, scope)],
    "P": [_pair, _gradient],
    "L": [_items],
    "F": [_lambda, _lambda, _verb],
}  # fmt: skip

DEFINITIONS = """
(define (upto n) (let loop ((i n) (l '())) (if (<= i 0) l (loop (- i 1) (cons (sin i) l)))))
(define (many n x) (let loop ((i n) (l '())) (if (<= i 0) l (loop (- i 1) (cons x l)))))
(define (tangent-by-hand f x) (let ((e (gensym))) (tangent e (f (make-bundle e x 1)))))
"""
RESULTS = ("R", "R", "R", ("P", "R", "R"), ("P", "R", ("P", "R", "N")), ("L", "R"), ("P", "S", ("P", "R", "B")))


def expression(seed: int) -> str:
    """A closed expression, in which two reals are known only to the run."""
    d = Drawing(seed)
    kind = d.rng.choice(RESULTS)
    body = d.of(kind, {"x": "R", "y": "R"}, d.rng.randint(2, 7))
    return f"(let ((x (real 0.7)) (y (real -0.4))) {body})"
