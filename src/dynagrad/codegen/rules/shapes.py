"""Function merging: joins of the same shape share one function, in programs of thousands of rules.

The function has parameters for what a join reads and writes: derived tables and their indexes, and codes of constants.
Those of its value are its visitor's. Fact tables are not parameters, as each has a type of its own. Joins have the same
shape if they are written in the same way over these parameters: their statements are compared, as LLVM compares
instructions when it merges functions, and nothing is read out of them. A key of the plan would have to repeat all that
decides a statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

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

    def function(self, join: Join) -> tuple[str, Sequence[str]]:
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
        return self._known[key], [p.given for p in names.found.values()]


class _Parameter:
    """A parameter of a shape: its declaration, and the argument of one join."""

    def __init__(self, declared: str, given: str) -> None:
        self.declared, self.given = declared, given


class _Parameters(Names):
    """`Names` for a join in which tables, indexes and constants are parameters, numbered as they come up."""

    def __init__(self, plan: Plan, names: Names) -> None:
        self.plan, self.names = plan, names
        self.found: dict[tuple[object, ...], _Parameter] = {}
        self._numbers: dict[tuple[object, ...], str] = {}
        self.table = _Tables(self)
        self.functions = names.functions

    def parameter(self, key: tuple[object, ...], declared: Callable[[str], str], given: str) -> str:
        """The name of a parameter, which `declared` turns into its declaration; `given` is the argument."""
        if key not in self.found:
            self._numbers[key] = f"{key[0]}{len(self.found)}"
            self.found[key] = _Parameter(declared(self._numbers[key]), given)
        return self._numbers[key]

    def constant(self, domain: int | None, term: Term) -> str:
        text = self.names.constant(domain, term)
        return self.parameter(("code", text), lambda name: f"int32_t {name}", text)

    def functor(self, name: str, arity: int) -> int:
        return self.names.functor(name, arity)

    def index(self, key: str, number: int) -> str:
        width = len(self.plan.indexes[number].by)
        text = self.names.index(key, number)
        return self.parameter(("by", text), lambda name: f"const Index<{width}>& {name}", text)

    def arrive(self, key: str) -> str:
        given = self.names.arrive(key)
        return self.parameter(("arrive", key), lambda name: f"Arrive {name}", given)


class _Tables(Mapping[str, str]):
    """The names of tables, in which derived ones are parameters."""

    def __init__(self, owner: _Parameters) -> None:
        self.owner = owner

    def __getitem__(self, key: str) -> str:
        table, name = self.owner.plan.tables[key], self.owner.names.table[key]
        if not is_derived(table):
            return name
        return self.owner.parameter(("table", key), lambda alias: f"auto& {alias}", name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.owner.names.table)

    def __len__(self) -> int:
        return len(self.owner.names.table)
