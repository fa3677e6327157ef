"""What a DVL program means, for the tests: a reader, an evaluator and derivatives that share no code with the package.

Numbers have 250 digits. A derivative is a central difference, (f(x+h) - f(x-h)) / 2h with h about 1e-30, so there are
no tags that could be confused, nested derivatives are differences of differences, and some 60 digits are left of six
levels. That of a function is the difference of functions; a fixed point is found by Newton's method. Only tags that a
program makes itself are nilpotent variables, of which a number is a polynomial.

`Unclear` says that a program is no test: a comparison is closer than rounding, a number is too large, or it takes too
long.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import mpmath
from mpmath import mp, mpf

from languages.dvl.oracle_numbers import (
    DIGITS,
    GAP,
    STEP,
    Polynomial,
    Tag,
    Unclear,
    absolute,
    guarded,
    is_number,
    number,
    of_series,
    over,
    plus,
    power_of,
    real_of,
    terms_of,
    times,
    two_arctan,
)

MOST_CALLS = 40_000


class Symbol(str):
    """A symbol of quoted data; the names of variables are plain texts."""

    __slots__ = ()


# -- reading -----------------------------------------------------------------------------------------------------------

_TOKENS = re.compile(r"\s*(?:;[^\n]*\s*)*([()']|\"[^\"]*\"|[^\s()';\"]+)")


def read(text: str) -> list[Any]:
    """The data of a text: lists, symbols as plain texts, numbers."""
    stack: list[list[Any]] = [[]]
    quotes: list[list[int]] = [[]]

    def put(x: Any) -> None:
        while quotes[-1] and quotes[-1][-1] == len(stack[-1]):
            quotes[-1].pop()
            x = ["quote", x]
        stack[-1].append(x)

    for token in _TOKENS.findall(text.strip()):
        if token == "(":
            stack.append([])
            quotes.append([])
        elif token == ")":
            done = stack.pop()
            quotes.pop()
            put(done)
        elif token == "'":
            quotes[-1].append(len(stack[-1]))
        elif re.fullmatch(r"[+-]?\d+/\d+", token):
            above, below = token.split("/")
            put(mpf(int(above) / int(below)))
        elif re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", token):
            put(mpf(float(token)))
        elif token in ("#t", "#f"):
            put(token == "#t")
        else:
            put(token)
    return stack[0]


# -- structures --------------------------------------------------------------------------------------------------------


def is_pair(x: Any) -> bool:
    return isinstance(x, tuple) and len(x) == 2


def both(f: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """Two structures of one shape as one, by what numbers become; functions become functions."""
    if is_number(a) and is_number(b):
        return f(a, b)
    if is_pair(a) and is_pair(b):
        return (both(f, a[0], b[0]), both(f, a[1], b[1]))
    if callable(a) and callable(b):
        return lambda x: both(f, a(x), b(x))
    assert type(a) is type(b) and (isinstance(a, Tag) or a == b), (a, b)
    return a


def each(f: Callable[[Any], Any], x: Any) -> Any:
    """A structure with its numbers changed, and the results of its functions."""
    if is_number(x):
        return f(x)
    if is_pair(x):
        return (each(f, x[0]), each(f, x[1]))
    return (lambda y: each(f, x(y))) if callable(x) else x


def add(a: Any, b: Any) -> Any:
    return both(plus, a, b)


def subtract(a: Any, b: Any) -> Any:
    return both(lambda x, y: plus(x, y, -1), a, b)


def multiply(a: Any, b: Any) -> Any:
    if not is_number(a):
        a, b = b, a
    return each(lambda x: times(a, x), b)


def divide(a: Any, b: Any) -> Any:
    return each(lambda x: over(x, b), a)


# -- derivatives -------------------------------------------------------------------------------------------------------

_levels = 0


def slope(f: Callable[[Any], Any]) -> Any:
    """The derivative of f at 0, of whatever it returns."""
    global _levels
    _levels += 1
    try:
        h = mpf(10) ** -STEP * (1 + mpf(_levels) / 7)  # no two levels move alike
        above, below = f(h), f(-h)
    finally:
        _levels -= 1
    return both(lambda x, y: number({tags: c / (2 * h) for tags, c in terms_of(plus(x, y, -1)).items()}), above, below)


def derivative(f: Any) -> Any:
    return lambda x: slope(lambda t: f(plus(x, t)))


def by_parts(f: Callable[[Any], Any], x: Any, whole: Callable[[Any], Any]) -> Any:
    """The derivative of f by each number and each function of its argument."""
    if is_number(x):
        return slope(lambda t: f(whole(plus(x, t))))
    if is_pair(x):
        a, b = x
        return (by_parts(f, a, lambda p: whole((p, b))), by_parts(f, b, lambda p: whole((a, p))))
    if callable(x):
        return lambda g: slope(lambda t: f(whole(add(x, multiply(t, g)))))
    return x


def gradient(f: Any) -> Any:
    return lambda x: by_parts(f, x, lambda whole: whole)


def dot(a: Any, b: Any) -> Any:
    if is_number(a):
        return times(a, b)
    return plus(dot(a[0], b[0]), dot(a[1], b[1])) if is_pair(a) else mpf(0)


def fixed_point(f: Any, start: Any) -> Any:
    """By Newton's method, along the numbers of a list or of one number."""
    flat: list[Any] = []
    each(lambda x: flat.append(real_of(x)) or x, start)  # type: ignore[func-returns-value]  # each number, in order

    def shaped(parts: list[Any]) -> Any:
        left = iter(parts)
        return each(lambda _: next(left), start)

    def rest(parts: list[Any]) -> list[Any]:
        found: list[Any] = []
        each(lambda x: found.append(x) or x, subtract(f(shaped(parts)), shaped(parts)))  # type: ignore[func-returns-value]
        return found

    n, now, h = len(flat), list(flat), mpf(10) ** -STEP
    for _ in range(60):
        values = rest(now)
        if all(abs(c) < mpf(10) ** (-DIGITS * 3 // 4) for v in values for c in terms_of(v).values()):
            return shaped(now)
        jacobian = mpmath.matrix(n, n)
        for j in range(n):
            moved = rest([plus(x, h) if i == j else x for i, x in enumerate(now)])
            for i in range(n):
                jacobian[i, j] = real_of(plus(moved[i], values[i], -1)) / h
        inverse = jacobian**-1
        for i in range(n):
            for j in range(n):
                now[i] = plus(now[i], times(inverse[i, j], values[j]), -1)
    raise Unclear("a fixed point is not found")


def swapped(a: Tag, b: Tag, x: Any) -> Any:
    """A structure with two tags in each other's place."""
    if is_number(x):
        by = {a.number: b.number, b.number: a.number}
        return number({frozenset(by.get(t, t) for t in tags): c for tags, c in terms_of(x).items()})
    if is_pair(x):
        return (swapped(a, b, x[0]), swapped(a, b, x[1]))
    return (lambda y: swapped(a, b, x(swapped(a, b, y)))) if callable(x) else x


def part(tag: Tag, x: Any, tangent: bool) -> Any:
    """The tangent or the primal of a structure; a function's results are taken apart, with a tag of their own."""
    if is_number(x):
        chosen = {tags: c for tags, c in terms_of(x).items() if (tag.number in tags) == tangent}
        return number({tags - {tag.number}: c for tags, c in chosen.items()} or {frozenset(): mpf(0)})
    if is_pair(x):
        return (part(tag, x[0], tangent), part(tag, x[1], tangent))
    if not callable(x):
        return x

    def run(y: Any) -> Any:
        other = Tag()
        return swapped(tag, other, part(tag, x(swapped(tag, other, y)), tangent))

    return run


def make_bundle(tag: Tag, x: Any, d: Any) -> Any:
    step = Polynomial({frozenset([tag.number]): mpf(1)})
    return both(lambda p, t: plus(p, times(step, t)), x, d)


# -- builtins ----------------------------------------------------------------------------------------------------------


def compared(test: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def run(a: Any, b: Any) -> bool:
        p, q = real_of(a), real_of(b)
        if abs(p - q) < GAP and not (p == q and p == int(p)):
            raise Unclear("a comparison of nearly the same")
        return test(p, q)

    return run


def equal(a: Any, b: Any) -> bool:
    if is_number(a) and is_number(b):
        return compared(lambda x, y: bool(x == y))(a, b)
    if is_pair(a) and is_pair(b):
        return equal(a[0], b[0]) and equal(a[1], b[1])
    return type(a) is type(b) and not callable(a) and bool(a == b)


def items_of(x: Any) -> list[Any]:
    found = []
    while is_pair(x):
        found.append(x[0])
        x = x[1]
    return found


def chain(items: list[Any], last: Any = ()) -> Any:
    for item in reversed(items):
        last = (item, last)
    return last


def _tree(f: Any, x: Any) -> Any:
    return (_tree(f, x[0]), _tree(f, x[1])) if is_pair(x) else x if x == () else f(x)


def _fold(f: Callable[[Any, Any], Any], start: Any, items: Any) -> Any:
    for item in items_of(items):
        start = f(start, item)
    return start


def _map(f: Any, *lists: Any) -> Any:
    return chain([f(chain(list(row[:-1]), row[-1])) for row in zip(*map(items_of, lists), strict=True)])


def _jacobian(f: Any) -> Any:
    return lambda x: by_parts(f, x, lambda whole: whole)


ONE: dict[str, Callable[[Any], Any]] = {
    "sin": lambda x: of_series(mpmath.sin, x),
    "cos": lambda x: of_series(mpmath.cos, x),
    "exp": guarded(mpmath.exp, -50, 15),
    "log": guarded(mpmath.log, 0),
    "sqrt": guarded(mpmath.sqrt, 0),
    "tan": lambda x: over(of_series(mpmath.sin, x), of_series(mpmath.cos, x)),
    "asin": guarded(mpmath.asin, -1, 1),
    "acos": guarded(mpmath.acos, -1, 1),
    "abs": absolute,
    "zero?": lambda x: compared(lambda a, b: bool(a == b))(x, mpf(0)),
    "positive?": lambda x: compared(lambda a, b: bool(a > b))(x, mpf(0)),
    "negative?": lambda x: compared(lambda a, b: bool(a < b))(x, mpf(0)),
    "car": lambda x: x[0],
    "cdr": lambda x: x[1],
    "not": lambda x: x is False,
    "real": lambda x: x,
    "real?": is_number,
    "pair?": is_pair,
    "null?": lambda x: x == () if isinstance(x, tuple) else False,
    "boolean?": lambda x: isinstance(x, bool),
    "symbol?": lambda x: isinstance(x, Symbol),
    "procedure?": callable,
    "reverse": lambda x: chain(items_of(x)[::-1]),
    "length": lambda x: mpf(len(items_of(x))),
    "sum": lambda x: _fold(add, items_of(x)[0], x[1]) if x else mpf(0),
    "product": lambda x: _fold(multiply, mpf(1), x),
    "magnitude-squared": lambda x: dot(x, x),
    "derivative": derivative,
    "gradient-r": gradient,
    "gradient-f": gradient,
    "jacobian-f": _jacobian,
    "j-transpose*v": lambda f: lambda x: gradient(lambda p: dot(x[1], f(p)))(x[0]),
    "bundle?": lambda x: isinstance(x, Polynomial),
    "gensym?": lambda x: isinstance(x, Tag),
}
TWO: dict[str, Callable[[Any, Any], Any]] = {
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "<": compared(lambda a, b: bool(a < b)),
    "<=": compared(lambda a, b: bool(a <= b)),
    ">": compared(lambda a, b: bool(a > b)),
    ">=": compared(lambda a, b: bool(a >= b)),
    "=": compared(lambda a, b: bool(a == b)),
    "expt": power_of,
    "cons": lambda a, b: (a, b),
    "equal?": equal,
    "append": lambda a, b: chain(items_of(a), b),
    "map": _map,
    "tree-map": _tree,
    "dot": dot,
    "distance": lambda a, b: guarded(mpmath.sqrt, 0)(dot(subtract(a, b), subtract(a, b))),
    "fixed-point": fixed_point,
    "primal": lambda tag, x: part(tag, x, False),
    "tangent": lambda tag, x: part(tag, x, True),
    "gensym=": lambda a, b: a is b,
    "gensym<": lambda a, b: a.number < b.number,
}
THREE: dict[str, Callable[[Any, Any, Any], Any]] = {
    "map2": _map,
    "reduce": lambda f, start, items: _fold(lambda a, b: f((a, b)), start, items),
    "directional-derivative": lambda f, x, d: slope(lambda t: f(add(x, multiply(t, d)))),
    "make-bundle": make_bundle,
}
FOLDS = {"+", "-", "*", "/"}


def _taking(name: str, f: Callable[..., Any], count: int) -> Any:
    def run(x: Any) -> Any:
        given = [x]
        while len(given) < count and is_pair(given[-1]):
            given[-1:] = given[-1]
        if name in ("-", "/") and len(given) == 1:
            return multiply(mpf(-1), x) if name == "-" else over(mpf(1), x)
        return f(*given)

    run.fold = f if name in FOLDS else None  # type: ignore[attr-defined]  # said of a plain function
    return run


def _arctan(x: Any) -> Any:
    return two_arctan(*x) if is_pair(x) else of_series(mpmath.atan, x)


GLOBAL: dict[str, Any] = {
    **{name: _taking(name, f, 1) for name, f in ONE.items()},
    **{name: _taking(name, f, 2) for name, f in TWO.items()},
    **{name: _taking(name, f, 3) for name, f in THREE.items()},
    "atan": _arctan,
    "gensym": lambda x: Tag(),
}

# -- evaluation --------------------------------------------------------------------------------------------------------

Scope = dict[str, Any]
_calls = 0


def bind(pattern: Any, x: Any, scope: Scope) -> None:
    if isinstance(pattern, str):
        scope[pattern] = x
        return
    kind, *parts = pattern
    if kind == "cons":
        parts, last = parts[:1], parts[1]
    elif kind == "cons*":
        *parts, last = parts
    else:
        last = None
    for p in parts:
        bind(p, x[0], scope)
        x = x[1]
    if last is not None:
        bind(last, x, scope)
    else:
        assert x == ()


def procedure(formals: list[Any], body: list[Any], scope: Scope) -> Any:
    def run(x: Any) -> Any:
        global _calls
        _calls += 1
        if _calls > MOST_CALLS:
            raise Unclear("the program takes long")
        inner = Late(scope)
        if not formals:
            assert x == ()
        elif len(formals) == 1:
            bind(formals[0], x, inner)
        else:
            bind(["cons*", *formals], x, inner)
        return block(body, inner)

    return run


class Late(Scope):
    """A scope inside of another, which may get its names later."""

    def __init__(self, around: Scope) -> None:
        super().__init__()
        self.around = around

    def __missing__(self, name: str) -> Any:
        return self.around[name]


def quoted(x: Any) -> Any:
    if isinstance(x, list):
        if len(x) > 2 and x[-2] == ".":
            return chain([quoted(p) for p in x[:-2]], quoted(x[-1]))
        return chain([quoted(p) for p in x])
    return Symbol(x) if isinstance(x, str) else x


def block(body: list[Any], scope: Scope) -> Any:
    found = None
    for form in body:
        if isinstance(form, list) and form and form[0] == "define":
            define(form, scope)
        else:
            found = evaluate(form, scope)
    return found


def define(form: list[Any], scope: Scope) -> None:
    _, target, *body = form
    if isinstance(target, str):
        scope[target] = evaluate(body[0], scope)
        return
    name, *formals = target
    if isinstance(name, list):
        define(["define", name, ["lambda", formals, *body]], scope)
    else:
        scope[name] = procedure(formals, body, scope)


def evaluate(e: Any, scope: Scope) -> Any:
    if isinstance(e, str):
        return scope[e]
    if not isinstance(e, list):
        return e
    head = e[0] if isinstance(e[0], str) else ""
    if head == "let" and isinstance(e[1], str):
        inner = Late(scope)
        inner[e[1]] = procedure([b[0] for b in e[2]], e[3:], inner)
        return inner[e[1]](arguments([evaluate(b[1], scope) for b in e[2]]))
    if head in FORMS:
        return FORMS[head](e, scope)
    f, *given = [evaluate(x, scope) for x in e]
    fold = getattr(f, "fold", None)
    if fold and len(given) > 2:
        total = given[0]
        for x in given[1:]:
            total = fold(total, x)
        return total
    return f(arguments(given))


def arguments(given: list[Any]) -> Any:
    return chain(given[:-1], given[-1]) if given else ()


def _let(e: list[Any], scope: Scope) -> Any:
    inner = Late(scope)
    for pattern, given in e[1]:
        if e[0] == "let*":
            value, inner = evaluate(given, inner), Late(inner)  # a closure in the value knows none of what follows
        else:
            value = evaluate(given, scope)
        bind(pattern, value, inner)
    return block(e[2:], inner)


def _letrec(e: list[Any], scope: Scope) -> Any:
    inner = Late(scope)
    for name, value in e[1]:
        inner[name] = evaluate(value, inner)
    return block(e[2:], inner)


def _cond(e: list[Any], scope: Scope) -> Any:
    for test, *body in e[1:]:
        found = True if test == "else" else evaluate(test, scope)
        if found is not False:
            return block(body, scope) if body else found
    raise AssertionError("no clause holds")


def _and(e: list[Any], scope: Scope) -> Any:
    found: Any = True
    for x in e[1:]:
        found = evaluate(x, scope)
        if found is False:
            return False
    return found


def _or(e: list[Any], scope: Scope) -> Any:
    for x in e[1:]:
        found = evaluate(x, scope)
        if found is not False:
            return found
    return False


FORMS: dict[str, Callable[[list[Any], Scope], Any]] = {
    "lambda": lambda e, scope: procedure(e[1], e[2:], scope),
    "if": lambda e, scope: evaluate(e[2] if evaluate(e[1], scope) is not False else e[3], scope),
    "let": _let,
    "let*": _let,
    "letrec": _letrec,
    "cond": _cond,
    "and": _and,
    "or": _or,
    "quote": lambda e, scope: quoted(e[1]),
    "list": lambda e, scope: chain([evaluate(x, scope) for x in e[1:]]),
    "cons*": lambda e, scope: arguments([evaluate(x, scope) for x in e[1:]]),
}


def meaning(text: str) -> list[Any]:
    """The values of the expressions of a program, its numbers rounded to floats."""
    global _calls
    _calls = 0
    with mp.workdps(DIGITS):
        scope = Late(GLOBAL)
        found = []
        for form in read(text):
            if isinstance(form, list) and form and form[0] == "define":
                define(form, scope)
            else:
                found.append(rounded(evaluate(form, scope)))
        return found


def rounded(x: Any) -> Any:
    if isinstance(x, Polynomial):
        return None
    if is_number(x):
        return float(x)
    if is_pair(x):
        return (rounded(x[0]), rounded(x[1]))
    return None if callable(x) or isinstance(x, Tag) else x
