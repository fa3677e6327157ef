"""Lookups in a chart: from the text of an item to its value, from a pattern to the table of matching items.

Plain functions of a program's context and of a native chart: that of a chart's own run, or of its repetition with
derivatives. Where a text is only parsed, before any run, the native chart is None. Decoding of arguments is in
`binding/decoding.py`, the meaning of numbers in the scale (`semirings.py`).
"""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Callable, Collection, ItemsView, Iterator, KeysView, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import Error, FactError, NotComputed, QueryError, cut, shown
from ..facts.relation import Relation
from ..facts.table import Table, make_table
from ..facts.terms import INTEGER_MAX, INTEGER_MIN, canonical, item_text, term_text
from ..plan.traits import is_external
from ..rules import parse_item
from ..rules.aggregators import AGGREGATORS
from ..rules.show import show
from ..rules.substitution import item_variables
from ..rules.suggestions import nearest, quotes_for
from ..rules.syntax import Arithmetic, Compound, Float, Integer, Item, PredicateDeclaration, Symbol, Variable
from ..rules.syntax import Term as SyntaxTerm
from .binding.context import ProgramContext
from .binding.decoding import code as code_of
from .binding.decoding import column, decode, matches, ranks
from .binding.encoding import syntax_value
from .binding.loading import Prepared
from .binding.unknown_arguments import unknown_argument, warn_of_unknown

Codes = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint64]

# -- items as they are written -----------------------------------------------------------------------------------------

_SIMPLE = re.compile(r"([a-z]\w*)(?:\(((?:[a-z]\w*|-?[0-9]{1,9})(?:,(?:[a-z]\w*|-?[0-9]{1,9}))*)\))?", re.ASCII)
_KEYWORDS = frozenset({"for", "if", "then", "else", "not", "mod"})


def _parsed(text: str) -> Item:
    """The item that a text denotes; short texts are memoised."""
    return _remembered(text) if len(text) <= 200 else _read_text(text)


def _read_text(text: str) -> Item:
    """The item that a text denotes; items of symbols and integers alone do not need the parser."""
    simple = _SIMPLE.fullmatch(text)
    arguments = simple[2].split(",") if simple and simple[2] else []
    if simple is None or not _KEYWORDS.isdisjoint((simple[1], *arguments)):
        return parse_item(text)
    return Item(simple[1], tuple(Symbol(a) if a[0].isalpha() else Integer(int(a)) for a in arguments))


_remembered = functools.lru_cache(maxsize=4096)(_read_text)


def read_item(context: ProgramContext, prepared: Prepared | None, text: Any) -> Item:
    """The item, or the pattern, that a text denotes. Raises where it cannot be looked up."""
    return read_known(text, functools.partial(check_known, context, prepared))


def read_known(text: Any, check: Callable[[str], None]) -> Item:
    """The item, or the pattern, that a text denotes; `check` raises for predicates that cannot be looked up."""
    if isinstance(text, str):
        item = _parsed(text)
    elif isinstance(text, Item):
        item = text
    else:
        raise QueryError(f'{shown(text)} is not an item; write it as in rules, such as chart["constit(np,0,2)"]')
    check(item.key)
    terms: list[SyntaxTerm] = list(item.arguments)
    while terms:
        term = terms.pop()
        if isinstance(term, Arithmetic):
            hint = quotes_for(text) if isinstance(text, str) else ""
            more = f", or a symbol in quotes: {cut(hint)}" if hint else ""
            raise QueryError(f"{cut(show(item))} computes in an argument; write the number itself{more}")
        if isinstance(term, Compound):
            terms.extend(term.arguments)
        elif isinstance(term, Integer) and not INTEGER_MIN <= term.value <= INTEGER_MAX:
            raise QueryError(
                f"{cut(show(item))}: the integer {shown(term.value)} is beyond the range of arguments, "
                f"{INTEGER_MIN} to {INTEGER_MAX}"
            )
    return item


def ground(item: Item) -> list[Any]:
    """The arguments of an item. Raises where it has variables."""
    try:
        return [syntax_value(term) for term in item.arguments]
    except ValueError:
        raise QueryError(f"{cut(show(item))} has variables; {ask_for(item)}") from None


def ask_for(item: Item, query: str = "use chart.query to find") -> str:
    """What to write in place of an item with variables; `query` is how to find all items, where one asks."""
    names = {v.name for v in item_variables(item) if not v.name.startswith("_")}
    found = f"{query} all items that match it"
    if not names:
        return found
    quoted = Item(item.predicate, tuple(map(_quoted, item.arguments)))
    return f"{found}. A symbol that begins with a capital letter is written in quotes: {cut(show(quoted))}"


def _quoted(term: SyntaxTerm) -> SyntaxTerm:
    if isinstance(term, Variable) and not term.name.startswith("_"):
        return Symbol(term.name)
    if isinstance(term, Compound):
        return replace(term, arguments=tuple(map(_quoted, term.arguments)))
    return term


def check_known(context: ProgramContext, prepared: Prepared | None, key: str) -> None:
    """Raises where items of a predicate cannot be looked up."""
    predicates = context.rules.predicates
    omitted = {} if prepared is None else prepared.compiled.plan.omitted
    declared = [d for d in context.rules.source.declarations if isinstance(d, PredicateDeclaration)]
    if any(d.kind == "transient" and key in d.keys for d in declared):
        raise QueryError(f"`{key}` is transient, so its items are never stored; look up items that are made of them")
    if key not in predicates or predicates[key].external or key in omitted:
        raise unknown(key, predicates, omitted)


def check_askable(context: ProgramContext, item: Any) -> None:
    """Raises where no run of the program could tell the value of an item, before any runs."""
    key, values = place(item, functools.partial(check_known, context, None))
    if key in context.omitted:
        raise unknown(key, context.rules.predicates, context.omitted)
    check_needed(context.fixed, key, values)


def unknown(key: str, known: Collection[str], omitted: Mapping[str, str]) -> QueryError:
    """The error for a predicate that cannot be looked up; `omitted` has those that the outputs do not need."""
    if key not in known:
        return QueryError(f"the program has no predicate `{cut(key)}`.{nearest(key, sorted(known))}")
    if key in omitted:
        return NotComputed(f"`{key}` was left out: {omitted[key]}; declare it as an output to see it")
    return QueryError(f"`{key}` is external: its values are those of your function")


def check_needed(fixed: Mapping[str, Mapping[int, SyntaxTerm]], key: str, values: Sequence[Any]) -> None:
    """Raises for items that were not derived because the outputs do not need them; None stands for a variable."""
    for i, constant in fixed.get(key, {}).items():
        wanted = syntax_value(constant)
        if type(values[i]) is not type(wanted) or values[i] != wanted:
            raise NotComputed(
                f"of `{key}` only the items with {term_text(wanted)} as argument {i + 1} were derived, because the "
                f"outputs need no others; ask for those, or declare {key} as an output"
            )


def _argument(name: str, place: int, value: Any) -> Any:
    """An argument of an item, given as a Python value."""
    try:
        return canonical(value)
    except FactError as error:
        raise QueryError(f"{cut(name)}, argument {place + 1}: {error}") from None


class ItemName(str):
    """The text of an item together with the item, so that a lookup by it parses nothing."""

    __slots__ = ("place",)
    place: tuple[Any, ...]

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


def names_of(context: ProgramContext, prepared: Prepared, items: Callable[[str], tuple[Codes, Words]]) -> Iterator[str]:
    """The texts of all items, predicate by predicate, each sorted by argument."""
    for key, table in prepared.compiled.plan.tables.items():
        if is_external(table):
            continue
        predicate = key.rpartition("/")[0]
        for row in table_of(context, prepared, key, *items(key)):
            name = ItemName(item_text(key, row[:-1]))
            name.place = (predicate, *row[:-1])
            yield name


class ItemTexts(KeysView[str]):
    """The texts of all items, as a set; asking for anything else is false, not an error."""

    _mapping: Mapping[str, Any]

    def __contains__(self, name: object) -> bool:
        return _has(self._mapping, name)


class ItemPairs(ItemsView[str, Any]):
    """The pairs of the texts of all items and their values, as a set."""

    _mapping: Mapping[str, Any]

    def __contains__(self, pair: object) -> bool:
        if not (isinstance(pair, tuple) and len(pair) == 2 and _has(self._mapping, pair[0])):
            return False
        value = self._mapping[pair[0]]
        return value is pair[1] or bool(value == pair[1])


def _has(chart: Any, name: object) -> bool:
    if not isinstance(name, str):
        return False
    try:
        return name in chart
    except Error:
        len(chart)  # raises where the chart cannot be looked into
        return False


# -- one item ----------------------------------------------------------------------------------------------------------


def codes_of(context: ProgramContext, prepared: Prepared, key: str, values: Sequence[Any]) -> list[int] | None:
    """The codes of an item's arguments, or None where one of them is unknown to the chart."""
    codes = []
    for i, value in enumerate(values):
        code = code_of(prepared, context.domains.of[key, i], value)
        if code is None:
            return None
        codes.append(code)
    return codes


def place_of(context: ProgramContext, prepared: Prepared, item: Any) -> tuple[str, list[int] | None]:
    """An item's predicate, and the codes of its arguments; None where one of them is unknown to the chart."""
    key, values = place(item, functools.partial(check_known, context, prepared))
    check_needed(prepared.compiled.plan.fixed, key, values)
    return key, codes_of(context, prepared, key, values)


def place(item: Any, check: Callable[[str], None]) -> tuple[str, list[Any]]:
    """An item's predicate and arguments; `check` raises for predicates that cannot be looked up."""
    if isinstance(item, ItemName):
        item = item.place
    if isinstance(item, tuple) and item and isinstance(item[0], str):
        key, values = f"{item[0]}/{len(item) - 1}", [_argument(item[0], n, v) for n, v in enumerate(item[1:])]
        check(key)
        return key, values
    found = read_known(item, check)
    return found.key, ground(found)


def words_at(prepared: Prepared, key: str, codes: Sequence[int] | None, width: int) -> Words | None:
    """The words of an item's value, found by the codes of its arguments; None where it was not derived."""
    table = prepared.compiled.plan.tables.get(key)
    return None if table is None or codes is None else prepared.chart.get(table.number, codes, width)


def words_of(context: ProgramContext, prepared: Prepared, item: Any) -> tuple[str, Words | None]:
    """An item's predicate, and the words of its value; None where it was not derived."""
    key, codes = place_of(context, prepared, item)
    return key, words_at(prepared, key, codes, context.scale.width)


def value_of(context: ProgramContext, prepared: Prepared, item: Any, *, quiet: bool = False) -> Any:
    """An item's value in the semiring's scale; the semiring's zero where the item was not derived.

    Unless `quiet`, warns where it could not be derived, having an argument that is nowhere.
    """
    key, words = words_of(context, prepared, item)
    if words is None:
        if not quiet:
            warn_if_unknown(context, prepared, item)
        return zero_of(context, key)
    return context.scale.value(words)


def unknown_in(context: ProgramContext, prepared: Prepared, item: Any) -> str:
    """What is to be said of an argument of an item that no fact and no item has; empty where there is none."""
    return unknown_argument(context, prepared, *place(item, functools.partial(check_known, context, prepared)))


def warn_if_unknown(context: ProgramContext, prepared: Prepared, item: Any) -> None:
    """Warns where an item has an argument that no fact and no item has."""
    warn_of_unknown(context, prepared, *place(item, functools.partial(check_known, context, prepared)))


def zero_of(context: ProgramContext, key: str) -> Any:
    """The value of items of a predicate that were not derived."""
    if context.rules.semiring is not None:
        return copy.deepcopy(context.scale.zero)
    return AGGREGATORS[context.rules.predicates[key].aggregator].zero


# -- all items that match ----------------------------------------------------------------------------------------------


def find(
    context: ProgramContext,
    prepared: Prepared,
    pattern: Any,
    items: Callable[[str], tuple[Codes, Words]],
    *,
    quiet: bool = False,
) -> Table:
    """The table of those items that match a pattern; `items` returns the codes and words of a predicate's items.

    Unless `quiet`, warns of arguments that are nowhere.
    """
    item = read_item(context, prepared, pattern)
    table = prepared.compiled.plan.tables.get(item.key)
    assert table is not None
    check_needed(prepared.compiled.plan.fixed, item.key, constants(item))
    if not quiet:
        warn_of_unknown(context, prepared, item.key, pattern_arguments(item))
    codes, words = items(item.key)
    keep = np.ones(len(codes), np.bool_)
    domains = context.domains
    later: list[tuple[int, SyntaxTerm]] = []
    first: dict[str, int] = {}
    for i, term in enumerate(item.arguments):
        if isinstance(term, Variable):
            if term.name in first:
                same = _comparable(prepared, domains.of[item.key, i], domains.of[item.key, first[term.name]])
                if same:
                    keep &= codes[:, i] == codes[:, first[term.name]]
                else:
                    later.append((i, term))
            else:
                first[term.name] = i
            continue
        try:
            value = syntax_value(term)
        except ValueError:
            later.append((i, term))
            continue
        code = code_of(prepared, domains.of[item.key, i], value)
        keep &= codes[:, i] == code if code is not None else np.bool_(False)
    rows = np.flatnonzero(keep)
    if later:
        columns = [decode(prepared, d, codes[rows, i]) for i, d in enumerate(table.domains)]
        matching = [n for n, values in enumerate(zip(*columns, strict=True)) if matches(item.arguments, values)]
        rows = rows[matching]
    return table_of(context, prepared, item.key, codes[rows], words[rows])


def pattern_arguments(item: Item) -> list[Any]:
    """The arguments of a pattern: those that have variables as they are, and None for a variable alone."""
    found: list[Any] = []
    for term in item.arguments:
        try:
            found.append(syntax_value(term))
        except ValueError:
            found.append(None if isinstance(term, Variable) else term)
    return found


def constants(item: Item) -> list[Any]:
    """The arguments of a pattern that are constants, and None for the others."""
    return [syntax_value(t) if isinstance(t, Symbol | Integer | Float) else None for t in item.arguments]


def _comparable(prepared: Prepared, a: int, b: int) -> bool:
    return a == b or prepared.encoding.domains[a].kind == prepared.encoding.domains[b].kind != "atom"


def table_of(context: ProgramContext, prepared: Prepared, key: str, codes: Codes, words: Words) -> Table:
    """Items of a predicate as a table, sorted by argument."""
    table = prepared.compiled.plan.tables[key]
    scale = context.scale
    if len(codes) and table.arity:
        places = [ranks(prepared, d, codes[:, i]) for i, d in enumerate(table.domains)]
        order = np.lexsort(places[::-1])
        codes, words = codes[order], words[order]
    columns = tuple(column(prepared, d, codes[:, i]) for i, d in enumerate(table.domains))
    names = prepared.relations[key].names if key in prepared.relations else None
    return make_table(Relation(key, len(codes), columns, scale.from_words(words), scale.shape, names=names))
