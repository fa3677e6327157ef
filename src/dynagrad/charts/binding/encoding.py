"""Dictionary encoding of arguments: for each domain its kind and dictionary, for each relation its columns of codes.

There are three kinds of domain: integers are their own codes, atoms are numbered densely in order of arrival, and terms
are interned by the native store of terms. An `Encoding` is immutable; a run with more facts extends it to another one
that keeps every code. Storage and plans are not known here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import FactError, ProgramError, RowPlaces, SourceError, shown, warn
from ...facts.files import as_floats, as_integers, as_symbols, as_terms, integer, integers_if_all
from ...facts.relation import (
    AtomColumn,
    Column,
    IntColumn,
    Relation,
    TermColumn,
    TextColumn,
    atom_key,
    concatenate,
)
from ...facts.terms import INTEGER_MAX, INTEGER_MIN, Flat, Interner
from ...facts.terms import Term as DataTerm
from ...forks import cached
from ...rules import parse_term, show
from ...rules.normal import Rules
from ...rules.syntax import Arithmetic, Comparison, Compound, Equation, Float, Integer, Symbol, Term
from ...rules.types import NO_DIVISION, Domain, Domains

Codes = npt.NDArray[np.int32]
_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")


def settle_texts(domains: Domains, relations: Mapping[str, Relation]) -> dict[str, Relation]:
    """Types for columns of text files: those that the program says, else integers where a whole domain allows it."""
    by_domain: dict[int, list[tuple[str, int]]] = {}
    for key, relation in relations.items():
        if any(isinstance(c, TextColumn) for c in relation.columns):
            for i in range(relation.arity):
                by_domain.setdefault(domains.of[key, i], []).append((key, i))
    if not by_domain:
        return dict(relations)
    columns = {key: list(r.columns) for key, r in relations.items()}
    for number in by_domain:
        domain = domains.domains[number]
        places = [(k, i) for k, i in domain.positions if k in relations]
        here = [columns[k][i] for k, i in places]
        declared = domain.declared
        one: Callable[[TextColumn, RowPlaces, int], Column] | None = None
        if domain.arithmetic or declared == frozenset({"int"}):
            one = as_integers
        elif declared == frozenset({"symbol"}):
            one = as_symbols
        elif declared == frozenset({"float"}):
            one = as_floats
        elif "term" in domain.kinds or domain.nested or (declared and "term" in declared) or any(map(_has_terms, here)):
            one = _as_terms
        elif "symbol" in domain.kinds:
            one = as_symbols
        at = [(relations[k].places, i) for k, i in places]
        if one is None:
            settled = integers_if_all(here, at)
        else:
            pairs = zip(here, at, strict=True)
            settled = [one(c, *place) if isinstance(c, TextColumn) else c for c, place in pairs]
        for (k, i), column in zip(places, settled, strict=True):
            columns[k][i] = column
    return {key: replace(r, columns=tuple(columns[key])) for key, r in relations.items()}


def _as_terms(column: TextColumn, place: RowPlaces, index: int) -> Column:
    return as_terms(column, text_value, place, index)


def _has_terms(column: Column) -> bool:
    """Whether rows brought lists or compound terms."""
    if isinstance(column, TermColumn):
        return bool(column.terms)
    return isinstance(column, TextColumn) and any(isinstance(a, tuple | DataTerm) for a in column.atoms)


def has_texts(relation: Relation) -> bool:
    """Whether a column has texts whose type is open."""
    return any(isinstance(c, TextColumn) for c in relation.columns)


def typed_beside(domains: Domains, relations: Mapping[str, Relation], here: Relation, more: Relation) -> Relation:
    """The rows of `here`, then those of `more`, with the types of their texts beside all other facts."""
    whole = concatenate(replace(here, values=None), replace(more, values=None), None)
    return settle_texts(domains, {**relations, here.key: whole})[here.key]


def typed_part(domains: Domains, relations: Mapping[str, Relation], part: Relation) -> Relation:
    """Some facts, with the types that their texts have beside all facts, those of the same predicate among them."""
    if not has_texts(part):
        return part
    whole = typed_beside(domains, relations, part, relations[part.key])
    return replace(part, columns=tuple(c.take(np.arange(part.count)) for c in whole.columns))


def kinds(rules: Rules, domains: Domains, relations: Mapping[str, Relation]) -> tuple[str, ...]:
    """The kind of each domain: "int", "atom" or "term"."""
    found = []
    for domain in domains.domains:
        columns = [(k, i, relations[k].columns[i]) for k, i in domain.positions if k in relations]
        filled = [(k, i, c) for k, i, c in columns if len(c)]
        if domain.arithmetic or (domain.declared == frozenset({"int"})) or domain.ordered:
            for key, i, column in filled:
                if not isinstance(column, IntColumn):
                    row = next(r for r, v in enumerate(column.to_list()) if type(v) is not int)
                    raise relations[key].places.error(
                        f"{shown(column.to_list()[row])} is not an integer, but the program computes with this "
                        "argument; give integers",
                        row,
                        i,
                    )
            found.append("int")
            continue
        _check_declared(domain.declared, filled)
        if domain.nested or "term" in domain.kinds or any(isinstance(c, TermColumn) for _, _, c in columns):
            found.append("term")
        elif {"symbol", "float"} & domain.kinds or any(isinstance(c, AtomColumn) for _, _, c in filled):
            found.append("atom")
            if domain.declared is None:
                _warn_of_lookalikes(filled)
        elif filled or "int" in domain.kinds:
            found.append("int")
        else:
            found.append("atom")
    _check_quotients(rules, domains, relations)
    return tuple(found)


def held_by(domains: Domains, chosen: Sequence[str], relation: Relation) -> bool:
    """Whether domains of these kinds hold all entries of a relation."""
    columns = [(chosen[domains.of[relation.key, i]], c) for i, c in enumerate(relation.columns) if len(c)]
    return all(
        kind == "term" or isinstance(column, IntColumn) or (kind == "atom" and isinstance(column, AtomColumn))
        for kind, column in columns
    )


def _check_quotients(rules: Rules, domains: Domains, relations: Mapping[str, Relation]) -> None:
    """Raises for `/` in a condition where the facts show that its operands are integers."""

    def whole(domain: Domain) -> bool:
        columns = [relations[k].columns[i] for k, i in domain.positions if k in relations]
        filled = [c for c in columns if len(c)]
        return bool(filled) and domain.kinds <= {"int"} and all(map(_are_integers, filled))

    for quotient in domains.quotients:
        if all(whole(domains.domains[number]) for number in quotient.domains):
            source = rules.source
            message = NO_DIVISION.format(show(quotient.term))
            raise ProgramError(message, source.text, quotient.term.span, source.filename)


def _are_integers(column: Column) -> bool:
    if isinstance(column, TermColumn):
        return all(type(term) is int for term in column.terms)
    return isinstance(column, IntColumn)


def _warn_of_lookalikes(columns: Sequence[tuple[str, int, Column]]) -> None:
    """Warns where integers are joined with symbols or floats that look like integers, and so never match."""
    whole = next((place for place in columns if isinstance(place[2], IntColumn)), None)
    for key, i, column in columns:
        if not isinstance(column, AtomColumn):
            continue
        if whole is None and not column.mixed:
            continue
        for value in column.atoms:
            if type(value) is int:
                continue
            if isinstance(value, float) or _INTEGER.fullmatch(str(value)):
                other = f"{whole[0]}, column {whole[1] + 1}" if whole else f"{key}, column {i + 1}"
                warn(
                    f"{key}, column {i + 1}: {shown(value)} is not an integer, and {other} has integers, which it is "
                    "joined with; 3, 3.0 and '3' are three different arguments. Declare `:- type` where that is meant"
                )
                return


def _check_declared(declared: frozenset[str] | None, columns: Iterable[tuple[str, int, Column]]) -> None:
    if declared is None or "term" in declared:
        return
    names = {str: "symbol", int: "int", float: "float"}
    for key, i, column in columns:
        values: Sequence[Any] = (0,)  # stands for all integers
        if isinstance(column, AtomColumn):
            values = column.atoms
        elif isinstance(column, TermColumn):
            values = column.terms
        for value in values:
            if names.get(type(value), "term") not in declared:
                raise FactError(
                    f"{key}, column {i + 1}: {shown(value)} is no {' or '.join(sorted(declared))}, "
                    "as the program declares"
                )


@dataclass(frozen=True)
class DomainCodes:
    """One domain: the range of its integers, or its atoms and their numbers."""

    kind: str
    low: int = 0
    high: int = -1
    atoms: list[Any] = field(default_factory=list)
    number: dict[Any, int] = field(default_factory=dict)

    @cached
    def types(self) -> frozenset[type]:
        """The types of its atoms."""
        return frozenset(map(type, self.atoms))

    def code(self, value: Any) -> int | None:
        """The code of a value, or None where the domain has none. Not for terms."""
        if self.kind == "int":
            return value if type(value) is int and -(2**31) <= value < 2**31 else None
        return self.number.get(atom_key(value))


@dataclass
class TermCodes:
    """The atoms and functors that native terms refer to by number. It grows; copy it where it must not."""

    atoms: list[Any]
    number: dict[Any, int]
    functors: list[tuple[str, int]]
    functor_number: dict[tuple[str, int], int]

    @staticmethod
    def start(functors: Sequence[tuple[str, int]]) -> TermCodes:
        """The program's own functors come first, under the numbers that its code uses."""
        return TermCodes([], {}, list(functors), {f: i for i, f in enumerate(functors)})

    def copy(self) -> TermCodes:
        return TermCodes(list(self.atoms), dict(self.number), list(self.functors), dict(self.functor_number))

    def atom(self, value: Any) -> int:
        key = atom_key(value)
        number = self.number.get(key)
        if number is None:
            number = self.number[key] = len(self.atoms)
            self.atoms.append(value)
        return number

    def functor(self, name: str, arity: int) -> int:
        number = self.functor_number.get((name, arity))
        if number is None:
            number = self.functor_number[name, arity] = len(self.functors)
            self.functors.append((name, arity))
        return number

    def translate(self, flat: Flat) -> tuple[Codes, Codes, npt.NDArray[np.int64], Codes]:
        """Flat terms with atoms and functors numbered as in this table."""
        atoms = np.array([self.atom(a) for a in flat.atoms] or [0], np.int64)
        functors = np.array([self.functor(*f) for f in flat.functors] or [0], np.int64)
        payload = flat.payload.astype(np.int64).copy()
        is_atom, is_compound = flat.kind == 1, flat.kind == 2
        payload[is_atom] = atoms[payload[is_atom]]
        payload[is_compound] = functors[payload[is_compound]]
        return (
            flat.kind.astype(np.int32),
            payload.astype(np.int32),
            flat.child_start.astype(np.int64),
            flat.children.astype(np.int32),
        )


def program_constants(rules: Rules, domains: Domains) -> dict[int, list[Any]]:
    """The constants in the program's text, by domain, as Python values."""
    found: dict[int, list[Any]] = {}
    for domain in domains.domains:
        values = [_value(t) for t in domain.constants]
        if values:
            found[domain.number] = values
    for rule in rules.rules:
        variables = domains.variables[rule.number]
        for condition in rule.conditions:
            if isinstance(condition, Comparison | Equation):
                _condition_constants(condition, variables, found)
    return found


def _condition_constants(
    condition: Comparison | Equation, variables: Mapping[str, int | None], found: dict[int, list[Any]]
) -> None:
    names: set[str] = set()
    values: list[Any] = []
    stack: list[Term] = [condition.left, condition.right]
    while stack:
        term = stack.pop()
        match term:
            case Arithmetic(operands=operands):
                stack.extend(operands)
            case Symbol() | Integer() | Float():
                values.append(_value(term))
            case Compound():
                pass
            case _:
                names.add(term.name)
    for name in names:
        number = variables.get(name)
        if number is not None and values:
            found.setdefault(number, []).extend(values)


def _value(term: Term) -> Any:
    assert isinstance(term, Symbol | Integer | Float)
    return term.name if isinstance(term, Symbol) else term.value


@dataclass(frozen=True)
class Encoding:
    """The dictionaries of all domains."""

    domains: tuple[DomainCodes, ...]

    @staticmethod
    def start(kinds_: Sequence[str], constants: Mapping[int, Sequence[Any]]) -> Encoding:
        made = []
        for number, kind in enumerate(kinds_):
            values = constants.get(number, ())
            if kind == "int":
                numbers = [v for v in values if type(v) is int and INTEGER_MIN <= v <= INTEGER_MAX]
                made.append(DomainCodes("int", min(numbers, default=0), max(numbers, default=-1)))
            elif kind == "atom":
                atoms = list(dict.fromkeys(map(atom_key, values)))
                plain = [a if type(a) is str else a[1] for a in atoms]
                made.append(DomainCodes("atom", 0, len(plain) - 1, plain, {a: i for i, a in enumerate(atoms)}))
            else:
                made.append(DomainCodes("term"))
        return Encoding(tuple(made))

    def extend(self, domains: Domains, relations: Mapping[str, Relation]) -> Encoding:
        """This encoding extended to more facts; existing codes stay."""
        ranges = [(d.low, d.high) for d in self.domains]
        fresh: dict[int, DomainCodes] = {}
        for key, relation in relations.items():
            for i, column in enumerate(relation.columns):
                if not len(column):
                    continue
                number = domains.of[key, i]
                codes = fresh.get(number, self.domains[number])
                if codes.kind == "int":
                    assert isinstance(column, IntColumn)
                    low, high = ranges[number]
                    least, most = int(column.numbers.min()), int(column.numbers.max())
                    ranges[number] = (least, most) if high < low else (min(low, least), max(high, most))
                elif codes.kind == "atom":
                    values = column.atoms if isinstance(column, AtomColumn) else np.unique(_numbers(column)).tolist()
                    known = codes.number
                    if set(map(type, values)) <= {str}:  # the usual case, and a quick one
                        new = [v for v in values if v not in known]
                    else:
                        new = [v for v in values if atom_key(v) not in known]
                    if new:
                        if number not in fresh:
                            codes = DomainCodes("atom", 0, 0, list(codes.atoms), dict(codes.number))
                            fresh[number] = codes
                        numbers = range(len(codes.atoms), len(codes.atoms) + len(new))
                        codes.number.update(zip(map(atom_key, new), numbers, strict=True))
                        codes.atoms.extend(new)
        made = []
        for number, codes in enumerate(self.domains):
            if codes.kind == "int":
                low, high = ranges[number]
                made.append(codes if (low, high) == (codes.low, codes.high) else replace(codes, low=low, high=high))
            elif number in fresh:
                made.append(replace(fresh[number], high=len(fresh[number].atoms) - 1))
            else:
                made.append(codes)
        return Encoding(tuple(made))

    def keeps(self, other: Encoding) -> bool:
        """Whether every code of another encoding means the same in this one."""
        return all(
            a.kind == b.kind and a.atoms[: len(b.atoms)] == b.atoms
            for a, b in zip(self.domains, other.domains, strict=True)
        )

    def column(self, number: int, column: Column) -> Codes:
        """The codes of a column of integers or atoms."""
        codes = self.domains[number]
        if codes.kind == "int":
            return _numbers(column).astype(np.int32)
        if isinstance(column, AtomColumn):
            number_of = codes.number.__getitem__
            keys = column.atoms if set(map(type, column.atoms)) <= {str} else map(atom_key, column.atoms)
            table = np.fromiter(map(number_of, keys), np.int32, len(column.atoms))
            return table[column.codes] if len(table) else np.zeros(0, np.int32)
        values, inverse = np.unique(_numbers(column), return_inverse=True)
        table = np.array([codes.number[int, v] for v in values.tolist()] or [0], np.int32)
        return table[inverse.reshape(-1)]

    def codes(self, domains: Domains, relation: Relation) -> list[Codes | None]:
        """The codes of a relation's columns; None for a column of terms, which native code interns."""
        numbers = [domains.of[relation.key, i] for i in range(relation.arity)]
        return [
            None if self.domains[d].kind == "term" else self.column(d, c)
            for d, c in zip(numbers, relation.columns, strict=True)
        ]


def _numbers(column: Column) -> npt.NDArray[np.int64]:
    if isinstance(column, IntColumn):
        return column.numbers
    return np.array(column.to_list(), np.int64)


def flat_terms(values: Sequence[Any]) -> Flat:
    """Values of a domain of terms, in the flat form that native code takes."""
    interner = Interner()
    return interner.flat([interner.add(v) for v in values])


def data_value(value: Any) -> Any:
    """A constant of generated code as a Python value: compounds there are ("term", functor, arguments)."""
    if isinstance(value, tuple) and value and value[0] == "term":
        # iterative in the last argument, because lists are long chains through it
        chain = []
        while isinstance(value, tuple):
            _, functor, arguments = value
            chain.append((functor, [data_value(a) for a in arguments[:-1]]))
            value = arguments[-1]
        made: Any = value
        for functor, front in reversed(chain):
            made = DataTerm(functor, *front, made)
        return made
    return value


def text_value(text: str) -> Any:
    """The value of a text in a domain of terms: an integer, a list or compound term, or else a symbol."""
    if _INTEGER.fullmatch(text):
        return integer(text)
    if not text.endswith((")", "]")):
        return text
    try:
        return syntax_value(parse_term(text))
    except (SourceError, ValueError):
        return text


def syntax_value(term: Term) -> Any:
    """A ground term of the rule language as a Python value. Raises ValueError where it is not ground."""
    match term:
        case Symbol() | Integer() | Float():
            return _value(term)
        case Compound():
            # iterative in the last argument, because lists are long chains through it
            chain = []
            inner: Term = term
            while isinstance(inner, Compound):
                chain.append((inner.functor, [syntax_value(a) for a in inner.arguments[:-1]]))
                inner = inner.arguments[-1]
            made = syntax_value(inner)
            for functor, front in reversed(chain):
                made = DataTerm(functor, *front, made)
            return made
    raise ValueError(f"not ground: {term!r}")
