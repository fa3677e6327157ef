"""Terms as text, which parses to the same term. Nothing here recurses on a term.

A place in a term is as tight as what may stand there without brackets: a term, a summand, a factor, the function of an
application, an operand, an atom.
"""

from __future__ import annotations

from ...errors import Error, shown
from .terms import (
    TEXT,
    App,
    Coefficients,
    Covector,
    DualMap,
    FormPullback,
    Jac,
    Lam,
    Num,
    Pair,
    Pattern,
    Prim,
    Proj,
    PullbackTerm,
    TermSum,
    Var,
    Zero,
)
from .trees import counted

_TERM, _SUMMAND, _FACTOR, _UNARY, _FUNCTION, _OPERAND, _ATOM = range(7)
_UNICODE = {"λ": "λ", "Ω": "Ω ", "π": "π"}
_PLAIN = {"λ": "\\", "Ω": "W ", "π": "pi"}
_INFIX = {"mult": "*", "div": "/"}


BEGIN, END = "\x02", "\x03"
"""What stands around a subterm that is marked; no term has them in its text."""


def show(
    of: PullbackTerm, *, unicode: bool = True, limit: int | None = None, marked: PullbackTerm | None = None
) -> str:
    """The text of a term; with `limit` it ends in dots after about as many characters.

    `marked` is a subterm, the object itself, that has BEGIN and END around it where it is written as one piece: a
    function that a `let` applies, and a pair in another one, are not.

    >>> from .parse import parse
    >>> show(parse(r"((W \\<x,y>. square((x+1) * (2*x+y*y))) . (\\_. 1^)) <1,3>"))
    '((Ω λ<x, y>. square((x + 1) * (2 * x + y * y))) . (λ_. 1^)) <1, 3>'
    """
    if not isinstance(of, PullbackTerm):
        raise Error(f"a term is needed, and {shown(of)} is none")
    signs = _UNICODE if unicode else _PLAIN
    made: list[str] = []
    length = count = 0
    todo: list[tuple[PullbackTerm, int] | str] = [(of, _TERM)]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            made.append(item)
            length += len(item)
            if limit is not None and length > limit and todo:
                return "".join(made) + " …"
            continue
        count = counted(count)
        parts, own = _written(item[0], signs)
        if own < item[1]:
            parts = ["(", *parts, ")"]
        if item[0] is marked:
            parts = [BEGIN, *parts, END]
        todo += reversed(parts)
    return "".join(made)


def number(value: float) -> str:
    """A numeral: a whole number without its point, but for 0, which would be the term 0.

    >>> number(3.0), number(0.0), number(-2.5), number(1e300)
    ('3', '0.0', '-2.5', '1e+300')
    """
    if value == 0.0 or value != value or abs(value) >= 1e15:
        return repr(value)
    return str(int(value)) if value == int(value) else repr(value)


def pattern_text(pattern: Pattern) -> str:
    """A pattern, with what is nested to the right in one bracket.

    >>> pattern_text((("x", "y"), ("z", "w")))
    '<<x, y>, z, w>'
    """
    made: list[str] = []
    todo: list[Pattern | list[str]] = [pattern]
    while todo:
        part = todo.pop()
        if isinstance(part, list):
            made += part
        elif isinstance(part, str):
            made.append(part)
        else:
            line: list[Pattern | list[str]] = [["<"]]
            while not isinstance(part, str):
                line += [part[0], [", "]]
                part = part[1]
            todo += reversed([*line, part, [">"]])
    return "".join(made)


def coefficients_text(of: Coefficients) -> str:
    """Coefficients as a covector has them."""
    if not isinstance(of, tuple):
        return number(of) if of >= 0 else f"({number(of)})"
    made: list[str] = []
    todo: list[Coefficients | str] = [of]
    while todo:
        part = todo.pop()
        if isinstance(part, str):
            made.append(part)
        elif not isinstance(part, tuple):
            made.append(number(part))
        else:
            line: list[Coefficients | str] = ["("]
            here: Coefficients = part
            while isinstance(here, tuple):
                line += [here[0], ", "]
                here = here[1]
            todo += reversed([*line, here, ")"])
    return "".join(made)


_Parts = list[tuple[PullbackTerm, int] | str]


def _written(of: PullbackTerm, signs: dict[str, str]) -> tuple[_Parts, int]:
    """The pieces of a term, and how tight it is."""
    match of:
        case Var(name):
            return [name], _ATOM
        case Num(value):
            return [number(value)], _ATOM if value >= 0 and str(value)[0] != "-" else _UNARY
        case Zero():
            return ["0"], _ATOM
        case Covector(coefficients):
            return [coefficients_text(coefficients), "^"], _ATOM
        case App(Lam(pattern, body), bound):
            return ["let ", pattern_text(pattern), " = ", (bound, _TERM), " in ", (body, _TERM)], _TERM
        case Lam(pattern, body):
            return [signs["λ"], pattern_text(pattern), ". ", (body, _TERM)], _TERM
        case App(function, argument):
            place = _ATOM if isinstance(function, DualMap | FormPullback | Jac) else _FUNCTION
            return [(function, place), " ", (argument, _OPERAND)], _FUNCTION
        case Proj(index, inner):
            return [f"{signs['π']}{index} ", (inner, _OPERAND)], _OPERAND
        case Pair():
            return _tuple(of), _ATOM
        case Prim(name, Pair(first, second)) if name in _INFIX:
            return [(first, _FACTOR), f" {_INFIX[name]} ", (second, _UNARY)], _FACTOR
        case Prim("neg", inner) if not isinstance(inner, Num):
            return ["-", (inner, _FUNCTION)], _UNARY
        case Prim(name, Pair() as several):
            return [name, "(", *_tuple(several)[1:-1], ")"], _FUNCTION
        case Prim(name, inner):
            return [name, "(", (inner, _TERM), ")"], _FUNCTION
        case Jac(name, along):
            return [f"J{name} . ", (along, _OPERAND)], _OPERAND
        case DualMap(pattern, body, functional):
            return [
                *("(", signs["λ"], pattern_text(pattern), ". ", (body, _TERM), ")^ . "),
                (functional, _OPERAND),
            ], _OPERAND
        case FormPullback(pattern, body, form):
            return [
                *("(", signs["Ω"], signs["λ"], pattern_text(pattern), ". ", (body, _TERM), ") . "),
                (form, _OPERAND),
            ], _OPERAND
        case TermSum(first, second):
            return [(first, _SUMMAND), " + ", (second, _FACTOR)], _SUMMAND
    raise AssertionError(type(of))


def _tuple(of: Pair) -> _Parts:
    made: _Parts = ["<"]
    here: PullbackTerm = of
    while isinstance(here, Pair):
        made += [(here.first, _TERM), ", "]
        here = here.second
    return [*made, (here, _TERM), ">"]


TEXT["show"] = show
