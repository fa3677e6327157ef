"""The terms, axioms and weights of a program's text as constant C++ arrays, which `interface/base.hpp` reads.

Facts that users give are none of this: they come in through the interface.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from ....plan.analyses.ranks import rank_sources
from ....plan.model import Plan, TableLayout
from ....plan.options import DENSE_CELLS
from ....plan.traits import is_dense, takes_facts
from ....rules.aggregators import AGGREGATORS
from ....rules.semirings import SEMIRINGS
from ....rules.syntax import Compound, Float, Integer, Symbol
from ...cxx import array, literal, string
from ..program import Generated

Constant = str | int | float


class _Pool:
    """Interned terms as rows of numbers, children before parents; iterative, as terms may be nested deeply."""

    def __init__(self, functors: Sequence[tuple[str, int]]) -> None:
        self.symbols: dict[str, int] = {}
        self.reals: list[float] = []
        self.functors: dict[tuple[str, int], int] = {}
        self.nodes: list[tuple[str, int]] = []
        self.first: list[int] = [0]
        self.children: list[int] = []
        self.known: dict[tuple[type, Constant], int] = {}
        for name, arity in functors:
            self.functor(name, arity)

    def symbol(self, name: str) -> int:
        return self.symbols.setdefault(name, len(self.symbols))

    def functor(self, name: str, arity: int) -> int:
        self.symbol(name)
        return self.functors.setdefault((name, arity), len(self.functors))

    def _node(self, kind: str, payload: int, children: Sequence[int] = ()) -> int:
        self.nodes.append((kind, payload))
        self.children.extend(children)
        self.first.append(len(self.children))
        return len(self.nodes) - 1

    def plain(self, value: Constant) -> int:
        place = (type(value), value)
        if place not in self.known:
            if isinstance(value, str):
                node = self._node("s", self.symbol(value))
            elif isinstance(value, int):
                node = self._node("i", value)
            else:
                self.reals.append(value)
                node = self._node("r", len(self.reals) - 1)
            self.known[place] = node
        return self.known[place]

    def add(self, value: object) -> int:
        """The node of a syntax term, a Python atom, or a compound written `("term", functor, arguments)`."""
        done: list[int] = []
        stack: list[tuple[object, bool]] = [(value, False)]
        while stack:
            at, ready = stack.pop()
            plain = _plain(at)
            if plain is not None:
                done.append(self.plain(plain))
                continue
            functor, arguments = _parts(at)
            if ready:
                children = done[len(done) - len(arguments) :]
                del done[len(done) - len(arguments) :]
                done.append(self._node("c", self.functor(functor, len(arguments)), children))
            else:
                stack.append((at, True))
                stack.extend((a, False) for a in reversed(arguments))
        return done[0]


def _plain(value: object) -> Constant | None:
    match value:
        case Symbol(name=name):
            return name
        case Integer(value=number):
            return number
        case Float(value=real):
            return real
        case str() | int() | float():
            return value
    return None


def _parts(value: object) -> tuple[str, Sequence[object]]:
    if isinstance(value, Compound):
        return value.functor, value.arguments
    assert isinstance(value, tuple)
    return value[1], value[2]


def _words(plan: Plan, value: float | int | None) -> list[int]:
    """A number of the program's text in the 8-byte words of the semiring; None is its one."""
    if value is None:
        if plan.user is not None:
            return [_double(part) for part in plan.user.one]
        value = 0.0 if SEMIRINGS[plan.semiring].times_adds else 1
    match plan.semiring:
        case "count":
            return [int(value) & (2**64 - 1), int(value) >> 64]
        case "boolean":
            return [_double(1.0 if value else 0.0)]
        case "expectation":
            return [_double(float(value)), *[_double(0.0)] * plan.vector]
    return [_double(float(value))]


def _double(value: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


def data(
    plan: Plan, generated: Generated, tables: Sequence[TableLayout], constants: Mapping[int, Sequence[Constant]]
) -> list[str]:
    """The definitions of the arrays; `constants` has those of each domain."""
    pool = _Pool(generated.functors)
    slots = [(-1 if domain is None else domain, pool.add(value)) for domain, value in generated.constants]
    members = [(d, pool.add(v)) for d, values in constants.items() for v in values]
    axioms: list[int] = []
    words: list[int] = []
    for axiom in plan.rules.axioms:
        if axiom.item.key in plan.tables:
            axioms.append(plan.tables[axiom.item.key].number)
            axioms.extend(map(pool.add, axiom.item.arguments))
            words.extend(_words(plan, axiom.value))
    pool.symbol("nil")
    pool.functor("cons", 2)
    first = [0]
    for table in tables:
        first.append(first[-1] + table.arity)
    kinds = {"int": "'i'", "atom": "'a'", "term": "'t'"}
    domains = plan.summary.domains
    sources = [
        f"{{{d}, {plan.tables[key].number}, {i}, {j}}}"
        for d, found in rank_sources(plan.rules, plan.domains).items()
        if domains[d].ranked
        for key, i, j in found
        if key in plan.tables
    ]
    gaps = [
        f"{{{plan.tables[key].number}, {i}, {j}, {least}}}"
        for key, pairs in plan.gaps.items()
        if key in plan.tables and takes_facts(plan, plan.tables[key])
        for (i, j), least in pairs.items()
    ]
    dense = [t for t in tables if is_dense(t) and t.arity]
    ranges = [
        f"{{{t.number}, {t.domains[i]}, {_wider(t, i)}, {str(place == t.arity - 1).lower()}}}"
        for t in dense
        for place, i in enumerate(t.order)
    ]
    zeros = [
        literal(AGGREGATORS[t.aggregator].zero, operand=False) if plan.semiring == "plain" else "0" for t in tables
    ]
    return [
        "struct gap_t { int table, i, j; int64_t least; };",
        "struct source_t { int domain, table, i, j; };",
        "struct range_t { int table, domain; int64_t wider; bool last; };",
        f"inline constexpr int domains = {len(domains)}, tables = {len(tables)}, functors = {len(pool.functors)};",
        f"inline constexpr int symbols = {len(pool.symbols)}, nodes = {len(pool.nodes)}, slots = {len(slots)};",
        f"inline constexpr int members = {len(members)}, axioms = {len(plan.rules.axioms)}, gaps = {len(gaps)};",
        f"inline constexpr int axiom_numbers = {len(axioms)}, sources = {len(sources)}, ranges = {len(ranges)};",
        f"inline constexpr int most_arguments = {max((t.arity for t in tables), default=0) + 1};",
        f"inline constexpr double most_cells = {DENSE_CELLS};",
        f"inline constexpr bool plain_values = {str(plan.semiring == 'plain').lower()};",
        # a plain program that runs in logs or costs still has the number one where no value is given
        f"inline constexpr bool number_one = {str(plan.rules.semiring is None).lower()};",
        array("char", "domain_kind", (kinds[domains[d].kind] for d in sorted(domains))),
        array("bool", "domain_ranked", (str(domains[d].ranked).lower() for d in sorted(domains)), "false"),
        array("const char* const", "table_key", (string(t.key) for t in tables), "nullptr"),
        array("int", "table_first", first),
        array("int", "table_domain", (d for t in tables for d in t.domains)),
        array("bool", "table_given", (str(takes_facts(plan, t)).lower() for t in tables), "false"),
        array("double", "table_zero", zeros),
        array("const char* const", "symbol_text", map(string, pool.symbols), "nullptr"),
        array("int64_t", "symbol_length", (len(s.encode("utf-8", "surrogatepass")) for s in pool.symbols)),
        array("double", "real_value", map(_real, pool.reals)),
        array("int", "functor_name", (pool.symbols[name] for name, _ in pool.functors)),
        array("int", "functor_arity", (arity for _, arity in pool.functors)),
        array("char", "node_kind", (f"'{kind}'" for kind, _ in pool.nodes)),
        array("int32_t", "node_payload", (_int(payload) for _, payload in pool.nodes)),
        array("int", "node_first", pool.first),
        array("int", "node_child", pool.children),
        array("int", "slot", (x for pair in slots for x in pair)),
        array("int", "member", (x for pair in members for x in pair)),
        array("int", "axiom", axioms),
        array("uint64_t", "axiom_words", (f"{w:#x}u" for w in words)),
        array("uint64_t", "rule_words", (f"{w:#x}u" for x in generated.weights for w in _words(plan, x))),
        array("gap_t", "gap", gaps, "{}"),
        array("source_t", "source", sources, "{}"),
        array("range_t", "range", ranges, "{}"),
    ]


def _int(value: int) -> str:
    return str(value) if value > -(2**31) else "INT32_MIN"


def _real(value: float) -> str:
    return value.hex()


def _wider(table: TableLayout, i: int) -> int:
    extent = table.extents[i]
    return 0 if extent is None else extent.above - extent.below
