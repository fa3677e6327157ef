"""Decoding: codes of a chart as Python values and texts, and Python values as codes that the chart already has.

Facts become codes in `encoding.py`. Values of items are no codes: the scale (`semirings.py`) converts them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import cut
from ...facts.relation import AtomColumn, Column, IntColumn, TermColumn, atom_column, atom_key
from ...facts.terms import ATOM, INTEGER, Flat, Term, arguments_of, item_text, same_term, term_order, unflatten
from ...rules.syntax import Compound, Variable
from ...rules.syntax import Term as SyntaxTerm
from ...runtime.engine import TermNode
from .encoding import flat_terms, syntax_value
from .loading import Prepared


def reported_item(prepared: Prepared, report: Any) -> tuple[str, list[Any]] | None:
    """The predicate and the arguments of the item that a report of native code names."""
    table = next((t for t in prepared.compiled.plan.tables.values() if t.number == report.error_table), None)
    if table is None or report.error_cell < 0:
        return None
    codes = prepared.chart.arguments(table.number, report.error_cell, table.arity)
    return table.key, arguments(prepared, table.key, codes)


def arguments(prepared: Prepared, key: str, codes: Sequence[int]) -> list[Any]:
    """The arguments of an item of a predicate, from their codes."""
    domains = prepared.compiled.plan.tables[key].domains
    return [decode(prepared, d, [c])[0] for d, c in zip(domains, codes, strict=True)]


def place_text(prepared: Prepared, key: str, codes: Sequence[int]) -> str:
    """The item with these codes, in the syntax of rules."""
    return item_text(key, arguments(prepared, key, codes))


def reported(prepared: Prepared, report: Any) -> str:
    """The item that a report of native code names, in the syntax of rules, as short as a message wants it."""
    found = reported_item(prepared, report)
    return "an item" if found is None else cut(item_text(*found))


def popped(prepared: Prepared) -> list[tuple[str, tuple[Any, ...]]]:
    """The items that a run popped, in order, as its tape has them."""
    tables = {t.number: t for t in prepared.compiled.plan.tables.values()}
    found = []
    for number, cell in zip(*(a.tolist() for a in prepared.chart.pops()), strict=True):
        table = tables[number]
        codes = prepared.chart.arguments(number, cell, table.arity)
        found.append((table.key, tuple(arguments(prepared, table.key, codes))))
    return found


def code(prepared: Prepared, domain: int, value: Any) -> int | None:
    """The code of a value in a domain; None where the chart has none for it."""
    codes = prepared.encoding.domains[domain]
    if codes.kind != "term":
        value = "nil" if value == () else value  # the empty list is a symbol
        return None if isinstance(value, Term | tuple) else codes.code(value)
    flat = flat_terms([value])
    atoms = [prepared.terms.number.get(atom_key(a), -1) for a in flat.atoms]
    functors = [prepared.terms.functor_number.get(f, -1) for f in flat.functors]
    world = prepared.chart.world
    find, pointer = world.engine.terms_find, world.pointer
    start, children = flat.child_start.tolist(), flat.children.tolist()
    parts = (ctypes.c_int32 * (1 + max((arity for _, arity in flat.functors), default=0)))()
    address = ctypes.addressof(parts)
    numbers: list[int] = []
    for node, (kind, payload) in enumerate(zip(flat.kind.tolist(), flat.payload.tolist(), strict=True)):
        if kind != INTEGER:
            payload = (atoms if kind == ATOM else functors)[payload]
            if payload < 0:
                return None
        first, last = start[node], start[node + 1]
        for i in range(first, last):
            parts[i - first] = numbers[children[i]]
        number = int(find(pointer, kind, payload, address, last - first))
        if number < 0:
            return None  # every part of a term that exists exists
        numbers.append(number)
    return numbers[int(flat.roots[0])]


def column(prepared: Prepared, domain: int, codes: npt.NDArray[np.int32]) -> Column:
    """Codes of a domain as a column of a table."""
    known = prepared.encoding.domains[domain]
    if known.kind == "int":
        return IntColumn(codes.astype(np.int64))
    if known.kind == "atom":
        used, places = np.unique(codes, return_inverse=True)
        atoms = [known.atoms[c] for c in used.tolist()]
        if atoms and all(type(a) is int for a in atoms):
            return IntColumn(np.array(atoms, np.int64)[places.reshape(-1)])
        return AtomColumn(places.reshape(-1).astype(np.int32), atoms)
    values = decode(prepared, domain, codes)
    if values and all(type(v) is int for v in values):
        return IntColumn(np.array(values, np.int64))
    if any(isinstance(v, tuple | Term) for v in values):
        return TermColumn(values)
    return atom_column(values)


def ranks(prepared: Prepared, domain: int, codes: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Numbers that sort codes as their values sort: integers, then floats, symbols, and terms by their text."""
    if prepared.encoding.domains[domain].kind == "int":
        return codes.astype(np.int64)
    used, places = np.unique(codes, return_inverse=True)
    order = sorted(range(len(used)), key=[term_order(v) for v in decode(prepared, domain, used)].__getitem__)
    rank = np.zeros(len(used), np.int64)
    rank[order] = np.arange(len(used))
    return rank[places.reshape(-1)]


def decode(prepared: Prepared, domain: int, codes: Any) -> list[Any]:
    """Codes of a domain as Python values."""
    known = prepared.encoding.domains[domain]
    listed = codes.tolist() if isinstance(codes, np.ndarray) else list(codes)
    if known.kind == "int":
        return listed
    if known.kind == "atom":
        return [known.atoms[c] for c in listed]
    return decode_terms(prepared, listed)


def decode_terms(prepared: Prepared, codes: Sequence[int]) -> list[Any]:
    """Native terms as Python values, iteratively."""
    world = prepared.chart.world
    read, pointer = world.engine.terms_node, world.pointer
    room = max((arity for _, arity in prepared.terms.functors), default=0)
    head, parts = TermNode(), (ctypes.c_int32 * (1 + room))()
    head_address, parts_address = ctypes.addressof(head), ctypes.addressof(parts)
    nodes: dict[int, tuple[int, int, list[int]]] = {}
    stack = list(codes)
    while stack:
        number = stack.pop()
        if number not in nodes:
            read(pointer, number, head_address, parts_address, room)
            nodes[number] = (head.kind, head.payload, parts[: head.arity])
            stack.extend(nodes[number][2])
    order = sorted(nodes)  # children are made before parents
    place = {number: i for i, number in enumerate(order)}
    start, children = [0], list[int]()
    for number in order:
        children.extend(place[c] for c in nodes[number][2])
        start.append(len(children))
    flat = Flat(
        np.array([nodes[n][0] for n in order], np.int8),
        np.array([nodes[n][1] for n in order], np.int64),
        np.array(start, np.int32),
        np.array(children, np.int32),
        np.array([place[c] for c in codes], np.int32),
        list(prepared.terms.atoms),
        list(prepared.terms.functors),
    )
    return unflatten(flat)


def matches(patterns: Sequence[SyntaxTerm], values: Sequence[Any]) -> bool:
    """Whether values match patterns, compound terms included."""
    bound: dict[str, Any] = {}
    stack = list(zip(patterns, values, strict=True))
    while stack:
        pattern, value = stack.pop()
        if isinstance(pattern, Variable):
            known = bound.setdefault(pattern.name, value)
            if not same_term(known, value):
                return False
        elif isinstance(pattern, Compound):
            parts = arguments_of(value, pattern.functor, len(pattern.arguments))
            if parts is None:
                return False
            stack.extend(zip(pattern.arguments, parts, strict=True))
        else:
            wanted = syntax_value(pattern)
            if wanted == "nil" and value == ():
                continue
            if type(wanted) is not type(value) or wanted != value:
                return False
    return True
