"""Macro expansion: derived forms written with the few that `lower.py` knows. Data to data; no names are looked up here.

What an expansion mentions cannot be captured: its keywords are a class of their own, and its variables have a space.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .data import QuotedSymbol
from .reader import Atom, Datum, ListForm, is_symbol, problem


class Keyword(str):
    """The name of a form, whatever variables are called."""

    __slots__ = ()


def form(like: Datum, *items: Datum | str) -> ListForm:
    """A list at the place of a datum; texts in it are keywords."""
    return ListForm(tuple(key(like, x) if isinstance(x, str) else x for x in items), like.span, like.source)


def key(like: Datum, name: str) -> Atom:
    return Atom(Keyword(name), like.span, like.source)


def variable(like: Datum, name: str) -> Atom:
    return Atom(QuotedSymbol(f"{name} "), like.span, like.source)


def want(holds: bool, message: str, at: Datum) -> None:
    if not holds:
        raise problem(message, at)


def listed(datum: Datum, message: str, least: int = 0) -> tuple[Datum, ...]:
    """The items of a list that has at least so many."""
    if not isinstance(datum, ListForm) or datum.tail is not None or len(datum.items) < least:
        raise problem(message, datum)
    return datum.items


def head(datum: Datum) -> str | None:
    """The symbol or keyword that a list begins with."""
    if isinstance(datum, ListForm) and datum.items and isinstance(datum.items[0], Atom):
        value = datum.items[0].value
        return value if isinstance(value, QuotedSymbol | Keyword) else None
    return None


def _cond(datum: ListForm) -> Datum:
    found: Datum = form(datum, "no clause")
    for i, clause in enumerate(reversed(listed(datum, "(cond (test value) ... (else value)) is wanted", 2)[1:])):
        test, *body = listed(clause, "a clause of cond is (test value)", 1)
        if is_symbol(test, "else"):
            want(i == 0, "else stands in the last clause of cond", clause)
            want(bool(body), "a clause of cond is (else value)", clause)
            found = form(clause, "body", *body)
        elif not body:
            found = form(clause, "or", test, found)
        else:
            found = form(clause, "if", test, form(clause, "body", *body), found)
    return found


def _and(datum: ListForm) -> Datum:
    items = datum.items[1:]
    if not items:
        return Atom(True, datum.span, datum.source)
    front, last = _halves("and", items)
    return last if front is None else form(front, "if", front, last, Atom(False, front.span, front.source))


def _or(datum: ListForm) -> Datum:
    items = datum.items[1:]
    if not items:
        return Atom(False, datum.span, datum.source)
    front, last = _halves("or", items)
    if front is None:
        return last
    name = variable(front, "or")
    return form(front, "let", form(front, form(front, name, front)), form(front, "if", name, name, last))


def _halves(name: str, items: Sequence[Datum]) -> tuple[Datum | None, Datum]:
    """The first half of the items of `and` or `or`, and the second, each as a form: many of them nest little then."""
    middle = (len(items) + 1) // 2
    front, rest = (
        part[0] if len(part) == 1 else form(part[0], name, *part) if part else None
        for part in (items[:middle], items[middle:])
    )
    assert front is not None
    return (None, front) if rest is None else (front, rest)


def _list(datum: ListForm) -> Datum:
    found: Datum = form(datum, "quote", ListForm((), datum.span, datum.source))
    for item in reversed(datum.items[1:]):
        found = form(item, "cons", item, found)
    return found


def _cons_star(datum: ListForm) -> Datum:
    *front, found = listed(datum, "(cons* a ... last) is wanted", 2)[1:]
    for item in reversed(front):
        found = form(item, "cons", item, found)
    return found


def _named_let(datum: ListForm) -> Datum:
    shape = "(let name ((variable value) ...) body) is wanted"
    _, name, bindings, *body = listed(datum, shape, 4)
    pairs = [listed(binding, shape) for binding in listed(bindings, shape)]
    for pair in pairs:
        want(len(pair) == 2, shape, bindings)
    formals = form(bindings, *(pair[0] for pair in pairs))
    loop = form(datum, "letrec", form(datum, form(datum, name, form(datum, "lambda", formals, *body))), name)
    return form(datum, loop, *(pair[1] for pair in pairs))


def _let(datum: ListForm) -> Datum | None:
    if len(datum.items) > 1 and isinstance(datum.items[1], Atom):
        return _named_let(datum)
    return None


DERIVED: dict[str, Callable[[ListForm], Datum | None]] = {
    "let": _let,
    "cond": _cond,
    "and": _and,
    "or": _or,
    "list": _list,
    "cons*": _cons_star,
}
"""Forms that become others; None where a form is one of the few already."""


def definition(datum: Datum) -> tuple[Atom, Datum] | None:
    """The name and the value of a `define`: curried ones become lambdas."""
    if head(datum) != "define":
        return None
    shape = "(define name value), or (define (name argument ...) body), is wanted"
    _, target, *body = listed(datum, shape, 3)
    if isinstance(target, Atom):
        want(isinstance(target.value, QuotedSymbol), "what is defined is a symbol", target)
        want(len(body) == 1, shape, datum)
        return target, body[0]
    while isinstance(target, ListForm):
        want(bool(target.items), "what is defined is a symbol", target)
        name, formals = target.items[0], ListForm(target.items[1:], target.span, target.source, target.tail)
        body = [form(datum, "lambda", formals, *body)]
        target = name
    want(isinstance(target.value, QuotedSymbol), "what is defined is a symbol", target)
    return target, body[0]
