"""Function merging: joins of the same shape share one function, in programs of thousands of rules.

The function has parameters for what a join reads and writes: derived tables and their indexes, and codes of constants.
Those of its value are its visitor's. Fact tables are not parameters, as each has a type of its own. Joins have the same
shape if they are written in the same way over these parameters: their statements are compared, as LLVM compares
instructions when it merges functions, and nothing is read out of them. A key of the plan would have to repeat all that
decides a statement. Their calls are data, too (`write_visits`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...plan.model import Join, Plan
from ...plan.traits import is_derived
from ...rules.syntax import Term
from ..cxx import Writer
from .nests import NestWriter
from .scope import Names


class Shapes:
    """The shared functions so far, by their texts."""

    def __init__(self, plan: Plan, names: Names, out: Writer) -> None:
        self.plan, self.names, self.out = plan, names, out
        self._known: dict[tuple[str, ...], str] = {}

    def function(self, join: Join) -> tuple[str, Sequence[SharedParameter]]:
        """The function of a join's nest, and what it is given for it; written if it is the first of its shape."""
        names, body = _Parameters(self.plan, self.names), Writer(self.out.depth + 1)
        writer = NestWriter(self.plan, names, join, body)
        writer.write()
        declared = [p.declared for p in names.found.values()]
        key = (*declared, *writer.arguments, *body.lines)
        if key not in self._known:
            self._known[key] = f"shape{len(self._known) + 1}"
            writer.out = self.out
            writer.function(self._known[key], "DYNAGRAD_RULE", body.lines, declared)
        return self._known[key], list(names.found.values())


@dataclass(frozen=True)
class SharedParameter:
    """A parameter of a shape: its declaration, and what it is for one join; as a field of a row, its value there, and
    how the parameter is made of it."""

    declared: str
    given: str
    value: str
    of_row: str = "{}"
    type: str = "int32_t"
    table: str = ""  # where it is one

    def kind(self, types: Mapping[str, str]) -> str:
        """Its type as a field, from those of tables."""
        return f"{types[self.table]} program::*" if self.table else self.type


class _Parameters(Names):
    """`Names` for a join in which tables, indexes and constants are parameters, numbered as they come up."""

    def __init__(self, plan: Plan, names: Names) -> None:
        self.plan, self.names = plan, names
        self.found: dict[tuple[str, str], SharedParameter] = {}
        self._numbers: dict[tuple[str, str], str] = {}
        self.table = _Tables(self)
        self.functions = names.functions

    def parameter(self, key: tuple[str, str], make: Callable[[str], SharedParameter]) -> str:
        """The name of a parameter, of which `make` makes it."""
        if key not in self.found:
            self._numbers[key] = f"{key[0]}{len(self.found)}"
            self.found[key] = make(self._numbers[key])
        return self._numbers[key]

    def constant(self, domain: int | None, term: Term) -> str:
        text = self.names.constant(domain, term)
        slot = str(self.names.constants[domain, term])
        return self.parameter(
            ("code", text), lambda name: SharedParameter(f"int32_t {name}", text, slot, "world->constant[{}]")
        )

    def functor(self, name: str, arity: int) -> int:
        return self.names.functor(name, arity)

    def by(self, number: int) -> str:
        return self.names.by(number)

    def index(self, number: int) -> str:
        return f"{self.table[self.plan.indexes[number].key]}.{self.by(number)}"

    def arrive(self, key: str) -> str:
        given = self.names.arrive(key)
        return self.parameter(
            ("arrive", key), lambda name: SharedParameter(f"Arrive {name}", given, given, type="Arrive")
        )


class _Tables(Mapping[str, str]):
    """The names of tables, in which derived ones are parameters."""

    def __init__(self, owner: _Parameters) -> None:
        self.owner = owner

    def __getitem__(self, key: str) -> str:
        table, name = self.owner.plan.tables[key], self.owner.names.table[key]
        if not is_derived(table):
            return name
        return self.owner.parameter(
            ("table", key),
            lambda alias: SharedParameter(f"auto& {alias}", name, f"&program::{name}", "this->*{}", table=key),
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self.owner.names.table)

    def __len__(self) -> int:
        return len(self.owner.names.table)


# -- visits as data ----------------------------------------------------------------------------------------------------

FEW = 8
"""So many visits are written one by one."""


def write_visits(
    out: Writer,
    joins: Mapping[int, Sequence[Join]],
    row_of: Callable[[Join], tuple[str, Sequence[str], Sequence[str]]],
    key: str = "",
    halts: bool = False,
) -> None:
    """Visits to the joins of the number `key`; without one, to all. With `halts`, the run may stop in between.

    What functions are given is data, and a loop calls them. Joins stay in their order, as sums depend on it. A row has,
    for one join, the call in terms of `row`, the types of the row's fields, and their values.
    """
    kinds: dict[tuple[str, ...], list[str]] = {}  # what is called with what, in terms of a row; and the rows
    steps: list[str] = []
    first = [0] * (max(joins, default=-1) + 2)
    for number in range(len(first) - 1):
        for join in joins.get(number, ()):
            call, types, row = row_of(join)
            rows = kinds.setdefault((call, *types), [])
            steps.append(f"{{{list(kinds).index((call, *types))}, {len(rows)}}}")
            rows.append(f"{{{', '.join(row)}}}")
        first[number + 1] = len(steps)
    if not steps:
        return
    for k, ((_, *types), rows) in enumerate(kinds.items()):
        fields = " ".join(f"{kind} x{i};" for i, kind in enumerate(types))
        out.line(f"struct Row{k} {{ {fields} }};")
        _array(out, f"static constexpr Row{k} rows{k}[]", rows)
    out.line("struct Step { int32_t kind, row; };")
    _array(out, "static constexpr Step steps[]", steps)
    begin, end = "0", str(len(steps))
    if key:
        _array(out, "static constexpr int32_t begins[]", [str(x) for x in first])
        begin, end = f"begins[{key}]", f"begins[{key} + 1]"
    out.open(f"for (int32_t s = {begin}; s < {end}; s++)")
    cases = {k: [f"const Row{k}& row = rows{k}[steps[s].row];", call] for k, (call, *_) in enumerate(kinds)}
    out.switch("steps[s].kind", cases)
    if halts:
        out.line("if (halt) return;")
    out.close()


def _array(out: Writer, head: str, rows: Sequence[str]) -> None:
    out.open(f"{head} =")
    for i in range(0, len(rows), 16):
        out.line(", ".join(rows[i : i + 16]) + ",")
    out.close("};")
