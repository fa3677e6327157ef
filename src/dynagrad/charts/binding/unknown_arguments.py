"""Arguments of lookups that no fact and no item has: what is said of them, with what may have been meant.

It is a `ProgramWarning` where something is looked up, and the reason of an error where it has to be there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from difflib import get_close_matches
from typing import Any

from ...errors import cut
from ...errors import warn as issue
from ...facts.relation import atom_key
from ...facts.terms import INTEGER_MAX, INTEGER_MIN, symbol_text, term_text
from ...facts.terms import Term as DataTerm
from ...rules import show
from ...rules.syntax import Compound, Float, Integer, Symbol, Variable
from .context import ProgramContext
from .decoding import code
from .encoding import DomainCodes, syntax_value
from .loading import Prepared

_CONSTANTS = (Symbol, Integer, Float)
MOST_COMPARED = 10_000
"""Among more symbols than this no similar one is looked for."""

_NUMBER = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?", re.ASCII)
_QUOTES = "'\"`\u2018\u2019\u201c\u201d"
_NOUNS = {int: "integers", float: "floats", str: "symbols"}


def warn_of_unknown(context: ProgramContext, prepared: Prepared, key: str, values: Sequence[Any]) -> None:
    """Warns where an argument of an item, or of a pattern, is none that it could have."""
    said = unknown_argument(context, prepared, key, values)
    if said:
        issue(said[0].upper() + said[1:])


def unknown_argument(context: ProgramContext, prepared: Prepared, key: str, values: Sequence[Any]) -> str:
    """What is to be said of such an argument. Among the values may be terms with variables; None stands for one alone.

    A symbol or a functor that is nowhere is told of, and what is of another type than all that is there. A number among
    other numbers is not: it may be one that was not reached.
    """
    for index, value in enumerate(values):
        number = context.domains.of[key, index]
        if value is None or (not isinstance(value, Compound) and code(prepared, number, value) is not None):
            continue
        known = prepared.encoding.domains[number]
        column = f"argument {index + 1} of `{cut(key)}`"
        if known.kind == "term":
            said = _in_terms(context, prepared, number, value)
        elif known.kind == "int":
            said = _among((int,), None, value, column)
        elif not known.atoms or (isinstance(value, str) and value in context.symbols):
            continue  # there are no facts, or the text has it
        else:
            said = _among(known.types, known, value, column)
        if said is not None:
            given = ["_" if v is None else _text(v, 40) for v in values]
            item = f"{symbol_text(key.rpartition('/')[0])}({','.join(given)})"
            what, hint = said
            return f"no fact and no item has {what}, which {cut(item)} asks for{hint and '; '}{hint}"
    return ""


def _among(types: Collection[type], known: DomainCodes | None, value: Any, column: str) -> tuple[str, str] | None:
    """What an argument is that a column of atoms does not have, and what to write; None where it may be unreached."""
    what = _what(value)
    nouns = f"{column} has {' and '.join(_NOUNS[t] for t in _NOUNS if t in types)}"
    if known is None:
        number = next((form for form in _other_forms(value) if type(form) is int), None)
        how = " it without quotes:" if isinstance(value, str) else ""
        return what, nouns if number is None else f"{nouns}; write{how} {number}"
    other = _other(value, lambda atom: atom_key(atom) in known.number)
    if other or type(value) not in types:
        return what, other or nouns
    return (what, _nearest(value, known.atoms)) if isinstance(value, str) else None


def _in_terms(context: ProgramContext, prepared: Prepared, domain: int, value: Any) -> tuple[str, str] | None:
    """The same of an argument that a column of terms does not have: of the first atom or functor that is nowhere."""
    terms = prepared.terms
    if not terms.atoms and not terms.functors:
        return None
    for part in _parts(value):
        if isinstance(part, tuple):
            if part not in terms.functor_number:
                return _functor(part, terms.functors)
        elif code(prepared, domain, part) is None and part not in context.symbols:
            other = _other(part, lambda atom: code(prepared, domain, atom) is not None)
            if other or isinstance(part, str):
                return _what(part), other or _nearest(part, terms.atoms)
    return None


def _what(value: Any) -> str:
    kind = "symbol" if isinstance(value, str) else "number" if isinstance(value, int | float) else "term"
    return f"the {kind} {_text(value, 60)}"


def _text(value: Any, limit: int) -> str:
    return cut(show(value), limit) if isinstance(value, Compound) else term_text(value, limit)


def _functor(functor: tuple[str, int], functors: Sequence[tuple[str, int]]) -> tuple[str, str]:
    name, arity = functor
    if functor == ("cons", 2):
        return "a list", ""
    same = [f"{symbol_text(n)}/{a}" for n, a in functors if n == name]
    names = sorted({n for n, _ in functors} - {name})
    close = [] if same or len(names) > MOST_COMPARED else get_close_matches(name, names, 1)
    hint = f"{same[0]} is there" if same else f"did you mean {symbol_text(close[0])}?" if close else ""
    return f"the functor {cut(symbol_text(name), 60)}/{arity}", hint


def _parts(value: Any) -> Iterator[Any]:
    """The atoms of a term, and its functors as pairs of a name and an arity."""
    stack = [value]
    while stack:
        part = stack.pop()
        if isinstance(part, DataTerm | Compound):
            yield part.functor, len(part.arguments)
            stack.extend(reversed(part.arguments))
        elif isinstance(part, tuple):
            if part:
                yield "cons", 2
            stack.extend(reversed(part))
        elif isinstance(part, _CONSTANTS):  # beside variables
            stack.append(syntax_value(part))
        elif part != "nil" and not isinstance(part, Variable):
            yield part


def _other(value: Any, there: Callable[[Any], bool]) -> str:
    """What to write for an atom that is not there, where one is that looks like it."""
    found = next((form for form in _other_forms(value) if there(form)), None)
    if found is None:
        return ""
    noun = "symbol" if isinstance(found, str) else "float" if isinstance(found, float) else "integer"
    here, asked = isinstance(found, str), isinstance(value, str)
    quotes = "" if here == asked else ", in quotes" if here else ", without quotes"
    return f"the {noun} {term_text(found, 60)} is there{quotes}"


def _other_forms(value: Any) -> list[Any]:
    """Atoms that look like this one: 2, 2.0 and '2' are three different ones, and so is a symbol that has quotes."""
    if isinstance(value, str):
        numbers: list[Any] = []
        if _NUMBER.fullmatch(value):
            number = float(value)
            numbers = [*_whole(number), number]
        bare = value.strip(_QUOTES)
        return [form for form in (*numbers, bare, f"'{bare}'", f'"{bare}"') if form != value]
    if isinstance(value, int):
        return [str(value), float(value)]
    return [*(form for n in _whole(value) for form in (n, str(n))), str(value)] if isinstance(value, float) else []


def _whole(number: float) -> list[int]:
    """The integer that equals a float, where arguments may be this integer."""
    return [int(number)] if number.is_integer() and INTEGER_MIN <= number <= INTEGER_MAX else []


def _nearest(symbol: str, atoms: Sequence[Any]) -> str:
    if len(atoms) > MOST_COMPARED:
        return ""
    texts = [a for a in atoms if isinstance(a, str)]
    same = [a for a in texts if a.lower() == symbol.lower()]
    close = same or get_close_matches(symbol, texts, 1)
    return f"did you mean {term_text(close[0], 60)}?" if close else ""
