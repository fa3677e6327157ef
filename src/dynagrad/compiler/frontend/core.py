"""The core language that functions are lowered to: a lambda calculus in A-normal form (Flanagan et al. 1993).

Every operand is an atom and every other value is named by a `Let`, so the order of evaluation is the order of the text.
The language knows nothing of Python: beyond functions, choices, loops and tuples there are primitives, which the front
end names and the specialiser has a table for. Of assignment two things remain: loops have state, and a captured
variable that is assigned later is a cell (assignment conversion). Nothing here rewrites or evaluates the language.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Position:
    """A range of a file: lines from 1, columns from 0, the end excluded."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Primitive:
    """An operation of the source language, by name: `add`, `getitem`."""

    name: str

    def __repr__(self) -> str:
        return self.name


class Undefined:
    """The value of a variable before its first assignment; reading it is an error."""

    def __repr__(self) -> str:
        return "undefined"


UNDEFINED = Undefined()


@dataclass(frozen=True, slots=True, eq=False)
class Name:
    """A variable."""

    name: str
    at: Position | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A value that is known before anything runs: a number, a string, a function, a primitive."""

    value: Any
    at: Position | None = None


Atom = Name | Constant


@dataclass(frozen=True, slots=True, eq=False)
class Let:
    """Binds `value` to a name in `body`, where it shadows earlier bindings."""

    name: str
    value: Expression
    body: Expression
    at: Position | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Parameter:
    """A parameter. `kind` is "positional", "named" (keyword-only), "either", "rest" (`*args`) or "named rest"."""

    name: str
    kind: str = "either"
    default: Atom | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Lambda:
    """A function; `free` are its free variables, captured by value where it is made."""

    name: str
    parameters: tuple[Parameter, ...]
    body: Expression
    free: tuple[str, ...] = ()
    at: Position | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Fix:
    """Mutually recursive functions, bound to their names in `body` (letrec)."""

    functions: tuple[tuple[str, Lambda], ...]
    body: Expression
    at: Position | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Apply:
    """A call."""

    function: Atom
    arguments: tuple[Atom, ...]
    named: tuple[tuple[str, Atom], ...] = ()
    at: Position | None = None


@dataclass(frozen=True, slots=True, eq=False)
class If:
    """A choice; only the chosen branch is evaluated. `names` name the parts of its result in messages.

    With `catches`, classes of exceptions or tuples of these, the first branch is the body of a `try`.
    """

    condition: Atom
    then: Expression
    otherwise: Expression
    at: Position | None = None
    names: tuple[str, ...] = ()
    catches: tuple[Atom, ...] = ()


KEPT = ("%kept",)
"""The `names` of the filter of a comprehension, which has messages of its own."""


@dataclass(frozen=True, slots=True, eq=False)
class While:
    """A loop with state: while `condition` holds, the tuple that `body` returns is the next state. Returns the last.

    `by_reals` says that the language counts in reals: where a real of the state decides when the loop ends, it is
    unrolled only if it cannot be compiled otherwise.
    """

    state: tuple[str, ...]
    initial: tuple[Atom, ...]
    condition: Expression
    body: Expression
    at: Position | None = None
    by_reals: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class For:
    """A loop over a sequence, with state as in `While`; it ends early where `guard`, if there is one, does not hold."""

    item: str
    sequence: Atom
    state: tuple[str, ...]
    initial: tuple[Atom, ...]
    guard: Expression | None
    body: Expression
    at: Position | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Tuple:
    """A tuple of atoms."""

    items: tuple[Atom, ...]
    at: Position | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Project:
    """A component of a tuple."""

    value: Atom
    index: int
    at: Position | None = None


Expression = Name | Constant | Let | Lambda | Fix | Apply | If | While | For | Tuple | Project


class Bindings:
    """The bindings that a front end has made so far; `wrap` puts them around a body."""

    def __init__(self) -> None:
        self.found: list[tuple[str | tuple[tuple[str, Lambda], ...], Expression | None, Position | None]] = []

    def let(self, name: str, value: Expression, at: Position | None) -> None:
        self.found.append((name, value, at))

    def fix(self, functions: tuple[tuple[str, Lambda], ...], at: Position | None) -> None:
        self.found.append((functions, None, at))

    def wrap(self, body: Expression) -> Expression:
        for name, value, at in reversed(self.found):
            if isinstance(name, tuple):
                body = Fix(name, body, at)
            else:
                assert value is not None
                body = Let(name, value, body, at)
        return body


def show(expression: Expression, indent: int = 0) -> str:
    """The text of an expression, one binding per line.

    >>> print(show(Let("y", Apply(Constant(Primitive("add")), (Name("x"), Constant(1))), Name("y"))))
    let y = add(x, 1)
    y
    """
    return "\n".join(_lines(expression, "    " * indent))


def _lines(expression: Expression, pad: str) -> Iterator[str]:
    while isinstance(expression, Let | Fix):
        if isinstance(expression, Let):
            yield from _bound(f"let {expression.name} = ", expression.value, pad)
        else:
            for name, function in expression.functions:
                yield from _bound(f"fix {name} = ", function, pad)
        expression = expression.body
    yield from _bound("", expression, pad)


def _bound(start: str, value: Expression, pad: str) -> Iterator[str]:
    deeper = pad + "    "
    match value:
        case Let() | Fix():
            yield pad + start.rstrip()
            yield from _lines(value, deeper)
        case Lambda():
            yield f"{pad}{start}\\{', '.join(p.name for p in value.parameters)}."
            yield from _lines(value.body, deeper)
        case If():
            yield f"{pad}{start}if {_atom(value.condition)}"
            yield from _lines(value.then, deeper)
            yield f"{pad}else"
            yield from _lines(value.otherwise, deeper)
        case While():
            yield f"{pad}{start}loop {_state(value)} while"
            yield from _lines(value.condition, deeper)
            yield f"{pad}do"
            yield from _lines(value.body, deeper)
        case For():
            yield f"{pad}{start}loop {_state(value)} for {value.item} in {_atom(value.sequence)}"
            if value.guard is not None:
                yield f"{pad}while"
                yield from _lines(value.guard, deeper)
            yield f"{pad}do"
            yield from _lines(value.body, deeper)
        case Apply():
            given = [*map(_atom, value.arguments), *(f"{n}={_atom(a)}" for n, a in value.named)]
            yield f"{pad}{start}{_atom(value.function)}({', '.join(given)})"
        case Tuple():
            yield f"{pad}{start}({', '.join(map(_atom, value.items))})"
        case Project():
            yield f"{pad}{start}{_atom(value.value)}[{value.index}]"
        case Name() | Constant():
            yield f"{pad}{start}{_atom(value)}"


def _state(loop: While | For) -> str:
    return ", ".join(f"{n} = {_atom(a)}" for n, a in zip(loop.state, loop.initial, strict=True)) or "()"


def _atom(atom: Atom) -> str:
    if isinstance(atom, Name):
        return atom.name
    shown = getattr(atom.value, "__name__", None) if callable(atom.value) else None
    return shown if isinstance(shown, str) else repr(atom.value)[:60]
