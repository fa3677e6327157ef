"""Random well-typed pullback terms as a stranger to the package would write them, each with its value in 50 digits.

A term is drawn as text, by types of any order, with names that are used again and again, beside a Python function of
mpmath's numbers that is what it means: pullbacks are central differences. Neither the package's terms nor its parser,
types or derivatives have a part in it.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import mpmath

EXACT = mpmath.mp.clone()
EXACT.dps = 180
H = EXACT.mpf(10) ** -30
"""The step of differences. Each of four that are nested loses 30 of 180 digits; their error is of the size of H²."""

Scope = dict[str, Any]
Meaning = Callable[[Scope], Any]
Drawn = tuple[str, Meaning]
R, PAIR = "R", ("×", "R", "R")
NAMES = ["x", "y", "z", "f", "g", "h", "k₁", "α", "u'"]
ONE_ARGUMENT = {
    "sin": EXACT.sin,
    "cos": EXACT.cos,
    "tanh": EXACT.tanh,
    "arctan": EXACT.atan,
    "square": lambda x: x * x,
    "neg": lambda x: -x,
}


# -- values ------------------------------------------------------------------------------------------------------------


def added(a: Any, b: Any) -> Any:
    if isinstance(a, tuple):
        return added(a[0], b[0]), added(a[1], b[1])
    return (lambda u: added(a(u), b(u))) if callable(a) else a + b


def scaled(c: Any, a: Any) -> Any:
    if isinstance(a, tuple):
        return scaled(c, a[0]), scaled(c, a[1])
    return (lambda u: scaled(c, a(u))) if callable(a) else c * a


def nothing(type: Any) -> Any:
    """0 of a type."""
    if type == R:
        return EXACT.mpf(0)
    if type[0] == "×":
        return nothing(type[1]), nothing(type[2])
    target = R if type[0] == "^" else type[2]
    return lambda u: nothing(target)


def directional(f: Callable[[Any], Any], at: Any, along: Any) -> Any:
    """The central difference of a function to any type, at a value of any type, along another."""
    there, back = f(added(at, scaled(H, along))), f(added(at, scaled(-H, along)))
    return scaled(1 / (2 * H), added(there, scaled(-1, back)))


def pulled_back(f: Callable[[Any], Any], form: Any, at: Any) -> Any:
    """`((Ω λx. P) . w) V`, for P as a function."""
    functional = form(f(at))
    return lambda u: functional(directional(f, at, u))


# -- terms -------------------------------------------------------------------------------------------------------------


class Stranger:
    """Draws terms. A term has brackets wherever there might be a doubt."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def type(self, order: int) -> Any:
        """A type; functions and duals in it are nested at most so deep."""
        kind = self.random.choice("RR×" if order == 0 else "RR×⇒⇒^")
        if kind == "R":
            return R
        if kind == "×":
            return "×", self.type(0), self.type(order)
        if kind == "⇒":
            return "⇒", self.type(order - 1), self.type(order)
        return "^", self.type(order - 1)

    def number(self) -> Drawn:
        value = self.random.choice([0.5, 1.5, 0.25, 1.0, -0.75, -1.25])
        return (f"({value})" if value < 0 else f"{value}"), lambda _: EXACT.mpf(value)

    def term(self, type: Any, scope: dict[str, Any], fuel: int) -> Drawn:
        """A term of a type: something in scope that leads there, or what makes such values."""
        pick = self.random
        heads = [(name, path) for name, of in scope.items() if (path := leads(of, type)) is not None]
        if fuel <= 0:  # nothing that needs arguments, which would need some, too
            heads = [(name, path) for name, path in heads if all(step in (1, 2) for step in path)]
        if heads and pick.random() < (0.9 if fuel <= 0 else 0.3):
            return self.spine(*pick.choice(heads), scope, fuel)
        if fuel > 0 and pick.random() < 0.2:
            return self.let(type, scope, fuel)
        if fuel > 1 and pick.random() < 0.06:
            zero = nothing(type)
            text, value = self.term(type, scope, fuel - 1)
            return f"({text} + 0)", lambda s: added(value(s), zero)
        if type == R:
            return self.real(scope, fuel)
        if type[0] == "×":
            (first, a), (second, b) = (self.term(type[i], scope, fuel // 2) for i in (1, 2))
            return f"<{first}, {second}>", lambda s: (a(s), b(s))
        if type[0] == "⇒":
            return self.function(type[1], lambda inner: self.term(type[2], inner, fuel - 1), scope)
        return self.dual(type[1], scope, fuel)

    def binder(self, type: Any, avoided: tuple[str, ...] = ()) -> tuple[str, dict[str, Any], Callable[[Any], Scope]]:
        """A pattern for a type, the types of its names, and their values for a value."""
        names = [name for name in NAMES if name not in avoided]
        if type[0] == "×" and self.random.random() < 0.5:
            a, b = self.random.sample(names, 2)
            return f"<{a}, {b}>", {a: type[1], b: type[2]}, lambda v: {a: v[0], b: v[1]}
        name = self.random.choice(names)
        return name, {name: type}, lambda v: {name: v}

    def function(self, source: Any, body: Callable[[dict[str, Any]], Drawn], scope: dict[str, Any], *no: str) -> Drawn:
        """An abstraction, whose body is drawn in a larger scope."""
        pattern, types, bound = self.binder(source, no)
        text, value = body({**scope, **types})
        return f"(λ{pattern}. {text})", lambda s: lambda v: value({**s, **bound(v)})

    def let(self, type: Any, scope: dict[str, Any], fuel: int) -> Drawn:
        of = self.type(2)
        pattern, types, bound = self.binder(of)
        given, a = self.term(of, scope, fuel // 2)
        text, value = self.term(type, {**scope, **types}, fuel - 1)
        return f"(let {pattern} = {given} in {text})", lambda s: value({**s, **bound(a(s))})

    def spine(self, name: str, path: list[Any], scope: dict[str, Any], fuel: int) -> Drawn:
        """A variable, projected and applied until what is left has the type."""
        text, value = name, (lambda s: s[name])
        return self.along(text, value, path, scope, fuel)

    def along(self, text: str, value: Meaning, path: list[Any], scope: dict[str, Any], fuel: int) -> Drawn:
        for step in path:
            if step in (1, 2):
                text, value = f"(π{step} {text})", (lambda s, v=value, i=step: v(s)[i - 1])
            else:
                given, a = self.term(step, scope, fuel // 2 - 1)
                text, value = f"({text} {given})", (lambda s, v=value, a=a: v(s)(a(s)))
        return text, value

    def real(self, scope: dict[str, Any], fuel: int) -> Drawn:
        pick = self.random
        if fuel <= 0:
            return self.number()
        kind = pick.randrange(9)
        if kind < 2:
            name = pick.choice([*ONE_ARGUMENT])
            (text, a), f = self.term(R, scope, fuel - 1), ONE_ARGUMENT[name]
            return f"({name}({text}))", lambda s: f(a(s))
        (first, a), (second, b) = (self.term(R, scope, fuel // 2) for _ in range(2))
        if kind == 2:
            return f"({first} + {second})", lambda s: a(s) + b(s)
        if kind == 3:
            return f"({first} * {second})", lambda s: a(s) * b(s)
        if kind == 4:
            return f"({first} / (1.5 + square({second})))", lambda s: a(s) / (1.5 + b(s) ** 2)
        if kind == 5:
            name = pick.choice([*ONE_ARGUMENT])
            f = ONE_ARGUMENT[name]
            return f"((J{name} . {first}) {second})", lambda s: directional(f, b(s), a(s))
        of = self.type(2)
        (dual, d), (tangent, u) = self.dual(of, scope, fuel - 1), self.term(of, scope, fuel // 2)
        return f"({dual} {tangent})", lambda s: d(s)(u(s))

    def dual(self, of: Any, scope: dict[str, Any], fuel: int) -> Drawn:
        """A functional on a type: coefficients, a dual map, a pullback that is applied, or a sum."""
        pick = self.random
        if of in (R, PAIR) and (fuel <= 0 or pick.random() < 0.25):
            c = [pick.choice([1.0, -0.5, 2.0]) for _ in range(1 + (of == PAIR))]
            if of == R:
                return f"({c[0]})^", lambda _: lambda u: c[0] * u
            return f"({c[0]}, {c[1]})^", lambda _: lambda u: c[0] * u[0] + c[1] * u[1]
        if fuel <= 0 or pick.random() < 0.35:
            target = self.type(1) if fuel > 0 else R
            name = pick.choice(NAMES)
            inner = {other: type for other, type in scope.items() if other != name}
            text, s_of = self.linear(target, name, of, inner, fuel - 1)
            functional, t = self.dual(target, scope, fuel // 2 - 1)
            return f"((λ{name}. {text})^ . {functional})", lambda s: lambda v: t(s)(s_of({**s, name: v}))
        if pick.random() < 0.15:
            (first, a), (second, b) = self.dual(of, scope, fuel // 2), self.dual(of, scope, fuel // 2)
            return f"({first} + {second})", lambda s: added(a(s), b(s))
        target = self.type(1)
        body, f = self.function(of, lambda inner: self.term(target, inner, fuel - 1), scope)
        form, w = self.function(target, lambda inner: self.dual(target, inner, fuel // 2), scope)
        at, v = self.term(of, scope, fuel // 2)
        return f"(((Ω {body[1:-1]}) . {form}) {at})", lambda s: pulled_back(f(s), w(s), v(s))

    def linear(self, target: Any, name: str, of: Any, scope: dict[str, Any], fuel: int) -> Drawn:
        """A term that is linear in a variable, and depends on it; nothing in scope is that variable."""
        pick = self.random
        path = leads(of, target)
        if path is not None and pick.random() < 0.6:
            return self.along(name, lambda s: s[name], path, scope, fuel)
        if target == R:
            return self.linear_real(name, of, scope, fuel)
        if target[0] == "×":
            (first, a), (second, b) = (self.linear(target[i], name, of, scope, fuel // 2) for i in (1, 2))
            return f"<{first}, {second}>", lambda s: (a(s), b(s))
        if target[0] == "⇒":
            return self.function(target[1], lambda s: self.linear(target[2], name, of, s, fuel - 1), scope, name)
        other = pick.choice([each for each in NAMES if each != name])  # bilinear: a product as a second derivative
        fixed = {each: type for each, type in scope.items() if each != other}
        (left, a), (right, b) = self.read(other, target[1], fixed), self.read(name, of, fixed)
        text = f"mult''(<{left}, 0>, <0, {right}>, <1.0, 1.0>)"
        return f"((λ{other}. {text})^ . 1^)", lambda s: lambda v: a({**s, other: v}) * b(s)

    def linear_real(self, name: str, of: Any, scope: dict[str, Any], fuel: int) -> Drawn:
        pick = self.random
        kind = pick.randrange(5) if fuel > 0 else 0
        if kind == 1:
            (first, a), (second, b) = (self.linear(R, name, of, scope, fuel // 2) for _ in range(2))
            return f"({first} + {second})", lambda s: a(s) + b(s)
        if kind == 2:
            primitive = pick.choice([*ONE_ARGUMENT])
            (along, a), (at, b) = self.linear(R, name, of, scope, fuel - 1), self.term(R, scope, fuel // 2)
            f = ONE_ARGUMENT[primitive]
            return f"((J{primitive} . {along}) {at})", lambda s: directional(f, b(s), a(s))
        if kind == 3:
            middle = self.type(1)
            (dual, d), (tangent, u) = (
                self.dual(middle, scope, fuel // 2),
                self.linear(middle, name, of, scope, fuel // 2),
            )
            return f"({dual} {tangent})", lambda s: d(s)(u(s))
        if kind == 4:  # a pullback of a constant form is linear in what it is taken along
            source = self.type(1)
            body, f = self.function(source, lambda s: self.linear(R, name, of, s, fuel - 1), scope, name)
            (at, v), (tangent, u) = self.term(source, scope, fuel // 2), self.term(source, scope, fuel // 2)
            text = f"((((Ω {body[1:-1]}) . (λ_. (2.0)^)) {at}) {tangent})"
            return text, lambda s: pulled_back(f(s), lambda _: lambda r: 2 * r, v(s))(u(s))
        return self.read(name, of, scope)

    def read(self, name: str, of: Any, scope: dict[str, Any]) -> Drawn:
        """A real that is linear in a variable of any type."""
        path: list[Any] = []
        while of != R:
            if of[0] == "×":
                path.append(self.random.randrange(1, 3))
                of = of[path[-1]]
            else:
                path.append(of[1])
                of = R if of[0] == "^" else of[2]
        return self.along(name, lambda s: s[name], path, {k: t for k, t in scope.items() if k != name}, 0)


def leads(of: Any, type: Any) -> list[Any] | None:
    """How a value of one type leads to one of another: parts of pairs, and the types of arguments; None if it never
    does. It is the way straight to the end, with the first parts first."""
    if of == type:
        return []
    if of == R:
        return None
    if of[0] == "×":
        for index in (1, 2):
            path = leads(of[index], type)
            if path is not None:
                return [index, *path]
        return None
    path = leads(R if of[0] == "^" else of[2], type)
    return None if path is None else [of[1], *path]


def stranger(seed: int) -> tuple[str, float]:
    """A closed term of the reals, a dual that is applied to a tangent, and its value."""
    pick = Random(seed)
    drawn, fuel = Stranger(pick), pick.randrange(3, 12)
    of = drawn.type(2)
    (dual, d), (tangent, u) = drawn.dual(of, {}, fuel), drawn.term(of, {}, fuel // 2)
    return f"({dual} {tangent})", float(d({})(u({})))
