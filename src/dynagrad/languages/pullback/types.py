"""The types of pullback terms: `R`, products, functions and duals. They know no terms."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...moved import renamed

__getattr__ = renamed(__name__)


class TermType:
    """A type; values are equal where their structure is. Types are as deep as a person writes them."""

    __slots__ = ()

    def __str__(self) -> str:
        return show(self)


@dataclass(frozen=True, slots=True)
class Real(TermType):
    """`R`"""

    __str__ = TermType.__str__


@dataclass(frozen=True, slots=True)
class Product(TermType):
    """`s × t`"""

    first: TermType
    second: TermType
    __str__ = TermType.__str__


@dataclass(frozen=True, slots=True)
class Arrow(TermType):
    """`s ⇒ t`"""

    source: TermType
    target: TermType
    __str__ = TermType.__str__


@dataclass(frozen=True, slots=True)
class DualType(TermType):
    """`s^`, the linear functionals on `s`"""

    of: TermType
    __str__ = TermType.__str__


@dataclass(slots=True, eq=False)
class TypeVariable(TermType):
    """A type that inference has not found, or that nothing decides. `waiting` is what to do when it is found."""

    number: int
    found: TermType | None = None
    waiting: list[object] = field(default_factory=list)
    __str__ = TermType.__str__


R = Real()


def reals(count: int) -> TermType:
    """`R^n`, nested to the right.

    >>> print(reals(3))
    R × (R × R)
    """
    made: TermType = R
    for _ in range(count - 1):
        made = Product(R, made)
    return made


def resolved(type: TermType) -> TermType:
    """The type that stands behind an unknown one, as far as it was found."""
    while isinstance(type, TypeVariable) and type.found is not None:
        type = type.found
    return type


def flat(type: TermType) -> bool:
    """Whether it is made of reals and products alone."""
    todo = [type]
    seen: set[int] = set()  # a type may have parts more than once
    while todo:
        here = resolved(todo.pop())
        if id(here) in seen:
            continue
        seen.add(id(here))
        match here:
            case Product(first, second):
                todo += [first, second]
            case Real():
                pass
            case _:
                return False
    return True


def fits(one: TermType, other: TermType) -> bool:
    """Whether two types are one where both are known.

    >>> fits(Arrow(R, TypeVariable(0)), Arrow(R, DualType(R))), fits(DualType(R), Arrow(R, R))
    (True, False)
    """
    todo = [(one, other)]
    seen: set[tuple[int, int]] = set()  # a type may have parts more than once
    while todo:
        first, second = map(resolved, todo.pop())
        if (id(first), id(second)) in seen:
            continue
        seen.add((id(first), id(second)))
        match first, second:
            case (TypeVariable(), _) | (_, TypeVariable()) | (Real(), Real()):
                pass
            case (Product(a, b), Product(c, d)) | (Arrow(a, b), Arrow(c, d)):
                todo += ((a, c), (b, d))
            case DualType(a), DualType(b):
                todo.append((a, b))
            case _:
                return False
    return True


_TOO_LONG = 400


def show(type: TermType) -> str:
    """The type as text; what nothing decides is `a`, `b`, ...

    >>> show(Arrow(Product(R, R), DualType(Arrow(R, R))))
    'R × R ⇒ (R ⇒ R)^'
    """
    parts: list[str] = []
    names: dict[TypeVariable, str] = {}
    todo: list[tuple[TermType, int] | str] = [
        (type, 0)
    ]  # how tight the place is: 0 any, 1 left of ⇒, 2 in ×, 3 before ^
    while todo and len(parts) < _TOO_LONG:
        item = todo.pop()
        if isinstance(item, str):
            parts.append(item)
            continue
        inner, place = item
        inner = resolved(inner)
        made: list[tuple[TermType, int] | str]
        match inner:
            case Product(first, second):
                made, own = [(first, 2), " × ", (second, 2)], 1
            case Arrow(source, target):
                made, own = [(source, 1), " ⇒ ", (target, 0)], 0
            case DualType(of):
                made, own = [(of, 3), "^"], 3
            case TypeVariable():
                made, own = [names.setdefault(inner, f"{chr(97 + len(names) % 26)}{len(names) // 26 or ''}")], 3
            case _:
                made, own = ["R"], 3
        if own < place:
            made = ["(", *made, ")"]
        todo += reversed(made)
    return "".join(parts) + ("…" if todo else "")
