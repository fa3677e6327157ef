"""`ClassContext`: what the writers of a generated class share: plan, names, text, and fragments that several need.

Every file that writes a part of a class takes one; `program.py` calls them all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...plan.joins import term_variables
from ...plan.model import IndexPlan, Join, Passes, Plan, Stage, Strategy, TableLayout
from ...plan.rows.joins import RowJoins
from ...plan.size import is_large, shares_joins
from ...plan.traits import (
    drives_again,
    estimates,
    has_agenda,
    is_derived,
    is_external,
    is_facts,
    multiplies_as_found,
    solves,
    stored_order,
    traces,
)
from ...rules.aggregators import AGGREGATORS, HeadKind
from ...rules.semirings import SEMIRINGS
from ...rules.show import show
from ...rules.syntax import BeamDeclaration, Variable
from ..cxx import Writer, comment, literal
from .nests import NestWriter
from .right_sides import constants
from .scope import Names, PatternScope
from .shapes import Shapes, SharedParameter

AGENDAS = {
    Strategy.LEVELS: "Levels",
    Strategy.SOLVE: "Levels",
    Strategy.HEAP: "Heap",
    Strategy.QUEUE: "Queue",
    Strategy.STACK: "Stack",
}
"""The agenda of each strategy that has one."""

GROUP = 100
"""The most tables in one function: LLVM takes more than linear time for long functions."""


class ClassContext:
    """The plan of a class, its names, and its text so far."""

    def __init__(self, plan: Plan, passes: Passes, like: Names | None = None) -> None:
        self.plan, self.passes = plan, passes
        self.names = Names(plan, like)
        self.out = Writer()
        self.facts = [t for t in plan.tables.values() if is_facts(t)]
        self.derived = [t for t in plan.tables.values() if is_derived(t)]
        self.externals = [t for t in plan.tables.values() if is_external(t)]
        self.plain = plan.semiring == "plain"
        self.large = is_large(plan)
        self.shapes = Shapes(plan, self.names, self.out) if shares_joins(plan) else None
        # The functions of nests, and what they are given beside arguments, by rule, driver, and whether from the head.
        self.nests: dict[tuple[int, int | None, bool], tuple[str, Sequence[SharedParameter]]] = {}
        self.right_sides: dict[int, str] = {}  # the structs of rules' right sides
        # The types of tables and stages, and those that are alike in programs of thousands of rules, by what they have.
        self.table_types: dict[str, str] = {}
        self.stage_types: dict[int, str] = {}
        self.types: dict[tuple[str, ...], str] = {}
        self.estimated = frozenset(key for s in plan.stages if estimates(plan, s) for key in s.keys)
        self.traced = frozenset(key for s in plan.stages if traces(plan, s) for key in s.keys)
        self.drives_of: dict[int, dict[str, list[Join]]] = {}
        row_joins = RowJoins.of(plan, self.large)
        self.elementwise, self.matrices = row_joins.elementwise, row_joins.matrices
        for stage in plan.stages:
            by_driver = self.drives_of.setdefault(stage.number, {})
            for join in stage.drives:
                assert join.driver is not None
                by_driver.setdefault(join.rule.antecedents[join.driver].item.key, []).append(join)
        self.by_key: dict[str, list[IndexPlan]] = {}
        for index in plan.indexes:
            self.by_key.setdefault(index.key, []).append(index)

    def in_rows(self, join: Join) -> bool:
        """Whether a join is one of a whole row of drivers."""
        return (join.rule.number, join.driver) in self.elementwise or (join.rule.number, join.driver) in self.matrices

    @property
    def goes_back(self) -> bool:
        """Whether the class has the backward pass itself, beside the members that it needs."""
        return self.plan.adjoint and Passes.BACKWARD in self.passes

    @property
    def beams(self) -> list[tuple[int, BeamDeclaration]]:
        """The beams of the class, numbered: a class that collects derivations runs nothing, so it has none."""
        if self.plan.collects is not None:
            return []
        return [(n, b) for n, b in enumerate(self.plan.rules.beams) if b.item.key in self.plan.tables]

    def zero(self, table: TableLayout) -> str:
        if not self.plain:
            return "semiring::zero()"
        zero = literal(AGGREGATORS[table.aggregator].zero, operand=False)
        return f"semiring::constant({zero})" if self.plan.order else zero

    def own_plus(self, table: TableLayout) -> str:
        """The C++ expression that joins a and b, two contributions; empty where that is the semiring's plus."""
        row = SEMIRINGS[self.plan.semiring]
        if self.plain:
            own = AGGREGATORS[table.aggregator]
            return own.jets if self.plan.order else own.plus
        if is_facts(table) and row.copies and self.plan.rules.semiring is None:
            return copies(row.copies[table.aggregator], table.aggregator)
        return ""

    def plus(self, table: TableLayout, a: str, b: str) -> str:
        return f"{own_plus_name(self.own_plus(table)) or 'semiring::plus'}({a}, {b})"

    def groups(self) -> list[list[TableLayout]]:
        """The tables in groups for one function each: a single group, unless there are very many tables."""
        tables = [*self.facts, *self.derived]
        if len(tables) <= GROUP:
            return [tables]
        return [tables[i : i + GROUP] for i in range(0, len(tables), GROUP)]

    def index_text(self, index: IndexPlan) -> str:
        pattern = ", ".join(show(t) for t in index.pattern)
        return comment(f"({pattern}) by ({', '.join(index.by)})")

    def keys_of_indexes(self, table: TableLayout) -> list[str]:
        """Statements that call f with each index of an item, and its key there."""
        out = self.out
        with out.aside(1) as lines:
            for index in self.by_key.get(table.key, ()):
                out.open("")
                base = out.depth
                scope = self.index_scope(table, index)
                for i, term in enumerate(index.pattern):
                    scope.match(term, f"a[{i}]", table.domains[i])
                out.line(f"const int32_t key[] = {{{', '.join([*map(scope.name, index.by), '0'])}}};")
                out.line(f"f(table.{self.names.by(index.number)}, key);")
                out.close_to(base)
                out.close()
        return lines

    def index_scope(self, table: TableLayout, index: IndexPlan) -> PatternScope:
        variables: dict[str, int | None] = {}
        for i, term in enumerate(index.pattern):
            if isinstance(term, Variable):
                variables[term.name] = table.domains[i]
        for term in index.pattern:
            for v in term_variables(term):
                variables.setdefault(v, None)
        return PatternScope(self.plan, self.names, variables, self.out)

    @property
    def ordered(self) -> bool:
        """Whether a user's `less` says which values are better; it may contradict the user's plus."""
        return self.plan.semiring == "user" and self.plan.selective

    def level(self, stage: Stage, table: TableLayout, argument: str = "a{}") -> str:
        """The level of an item with arguments a0, a1, ..."""
        text = "0"
        for f, form in enumerate(stage.forms):
            constant = form.constant.get(table.key, 0)
            terms: list[str] = []
            for i, c in form.coefficients.get(table.key, ()):
                code = argument.format(i)
                if self.plan.summary.domains[table.domains[i]].kind == "atom":
                    code = f"(*world->rank[{table.domains[i]}])[{code}]"
                times = "" if abs(c) == 1 else f"{abs(c)} * "
                terms.append(f"{_sign(c, not terms)}{times}(int64_t){code}")
            if constant:
                terms.append(f"{_sign(constant, not terms)}{abs(constant)}")
            low = f"low{stage.number}_{f}"
            value = " ".join([*terms, f"- {low}"]) if terms else f"-{low}"
            if f == 0:
                text = value if len(stage.forms) == 1 else f"({level_type(stage)})({value})"
            else:
                before = text if f == 1 else f"({text})"
                text = f"{before} * span{stage.number}_{f} {f'+ ({value})' if terms else f'- {low}'}"
        return text

    def join_comment(self, join: Join) -> None:
        self.out.line(f"// rule {join.rule.number}: {comment(join.rule.text)}")

    def nest(self, join: Join) -> None:
        """Writes the function of a nest, unless it is there, or one that can be called for it."""
        place = join.rule.number, join.driver, join.from_head
        if place in self.nests:
            return
        if self.shapes is not None:
            self.nests[place] = self.shapes.function(join)
            return
        name = self.nest_name(join)
        self.nests[place] = name, ()
        self.join_comment(join)
        writer = NestWriter(self.plan, self.names, join, self.out)
        with self.out.aside(1) as body:
            writer.write()
        writer.function(name, self.often(join), body)

    def often(self, join: Join) -> str:
        """From how many places a join is called, as `running/rows.hpp` has it."""
        if join.driver is None:
            return "DYNAGRAD_RULE" if join.from_head else "DYNAGRAD_FIRED"
        stage, key = self.plan.stage_of[join.rule.head.key], join.rule.antecedents[join.driver].item.key
        if self.plan.changes is not None or not has_agenda(stage) or solves(stage):
            return "DYNAGRAD_RULE"
        alone = [other for other in self.drives_of[stage.number].get(key, []) if not self.in_rows(other)] == [join]
        return "DYNAGRAD_STEP" if alone else "DYNAGRAD_RULE"

    def visit(
        self,
        join: Join,
        visitor: str,
        arguments: Sequence[str] = (),
        cell: str = "cell",
        given: Sequence[str] | None = None,
    ) -> str:
        """A visit to the instances of a join, of the arguments of its driver, or of its head; `given` has what a
        function that joins share is given."""
        name, parameters = self.nests[join.rule.number, join.driver, join.from_head]
        driver = [cell] if join.driver is not None else []
        fixed = [p.given for p in parameters] if given is None else given
        return f"{name}({', '.join([visitor, *driver, *arguments, *fixed])});"

    def row(
        self, join: Join, visitor: Callable[..., str], arguments: Sequence[str] = ()
    ) -> tuple[str, Sequence[str], Sequence[str]]:
        """A visit in terms of a row of data, the types of what the row has, and what it is for this join."""
        types, given = ["int32_t"], list[str]()
        values = [str(min(constants(self.plan, self.names, join.rule), default=0))]  # where its constants begin
        for parameter in self.nests[join.rule.number, join.driver, join.from_head][1]:
            given.append(parameter.of_row.format(f"row.x{len(types)}"))
            types.append(parameter.kind(self.table_types))
            values.append(parameter.value)
        return self.visit(join, visitor(join, at="weight[row.x0]"), arguments, given=given), types, values

    def rule(self, join: Join, at: str = "") -> str:
        """The right side of a join's rule, as an object, with its constants, or those `at` a place."""
        own = self._constants(join, at)
        return f"{self.right_sides[join.rule.number]}{{{f'{own}' if own else ''}}}"

    def _constants(self, join: Join, at: str) -> str:
        own = constants(self.plan, self.names, join.rule)
        return f"{{&{at or f'weight[{own[0]}]'}}}" if own else ""

    def forward(self, join: Join, update: str = "update", at: str = "") -> str:
        """The visitor that sends the values of instances to their heads."""
        begun = [] if join.driver is None else [f"&{update}"]
        if drives_again(self.plan, join):
            begun += ["&old", "&now", "first"]
        return self._visitor("Forward", join, begun, [], at)

    def reverse(self, join: Join, update: str = "update", gupdate: str = "gupdate", at: str = "") -> str:
        """The visitor that sends the adjoints of heads to the antecedents."""
        stage = self.plan.stage_of[join.rule.head.key]
        inner = stage.is_inner(join) and stage.unknowns > 0
        begun = [] if join.driver is None else [f"&{update}", "nullptr", "nullptr", "true", f"&{gupdate}"]
        if drives_again(self.plan, join):
            begun = [f"&{update}", "&old", "&now", "first", f"&{gupdate}", "&gold"]
        return self._visitor("Reverse", join, begun, [str(stage.number)] if inner else [], at)

    def _visitor(self, what: str, join: Join, begun: Sequence[str], more: Sequence[str], at: str) -> str:
        """A product needs no more than the constants of its rule; other values need to know all of it."""
        started = ", ".join(["*this", f"{{{', '.join(begun)}}}"])
        if not multiplies_as_found(self.plan):
            again = str(drives_again(self.plan, join)).lower()
            kind = ", ".join(["program", self.right_sides[join.rule.number], again, *more])
            return f"{what}Value<{kind}>{{{started}, {self.rule(join, at)}}}"
        count = len(constants(self.plan, self.names, join.rule))
        kind, own = ", ".join(["program", str(count), *more]), self._constants(join, at)
        return f"{what}Product<{kind}>{{{started}{f', {own}' if own else ''}}}"

    def row_parameters(self, join: Join, writer: NestWriter) -> str:
        """The parameters of such a function."""
        listed = ["int64_t cell", *(f"int32_t {a}" for a in writer.arguments), "uint64_t cells"]
        return ", ".join([*listed, *(["bool& done"] if (join.rule.number, join.driver) in self.matrices else [])])

    def drive_name(self, join: Join, prefix: str = "rule") -> str:
        """The name of the function of a join that an antecedent drives."""
        assert join.driver is not None
        key = join.rule.antecedents[join.driver].item.key
        return f"{prefix}{join.rule.number}_from{join.driver + 1}_{self.names.table[key]}"

    def nest_name(self, join: Join) -> str:
        """The name of the function of a nest."""
        begins = "_head" if join.from_head else ""
        return f"nest{join.rule.number}{begins}" if join.driver is None else self.drive_name(join, "nest")

    def unpack(self, table: TableLayout) -> None:
        """Declares a0, a1, ..., the arguments of the item at `cell`."""
        name, out = self.names.table[table.key], self.out
        if not table.arity:
            return
        out.line(f"int32_t arguments[{table.arity}];")
        out.line(f"{name}.arguments(cell, arguments);")
        stored = ", ".join(f"a{i}" for i in stored_order(table))
        out.line(f"const auto [{stored}] = arguments;")

    @property
    def underflows(self) -> bool:
        """Whether values may underflow, which is counted."""
        return SEMIRINGS[self.plan.semiring].underflows and not self.plan.order


def _sign(number: int, first: bool) -> str:
    """The sign of a term of a sum, between it and the one before."""
    if first:
        return "-" if number < 0 else ""
    return "- " if number < 0 else "+ "


def level_type(stage: Stage) -> str:
    """The C++ type of a stage's levels: one form fits 64 bits, several together may not."""
    return "int64_t" if len(stage.forms) < 2 else "__int128"


# Copies of a fact join by the aggregator of their predicate, also where a semiring was recognised, so that recognition
# does not change the meaning of a program.

_COPIES = {HeadKind.SUM: "", HeadKind.SHIFT: "semiring::times(a, b)"}


def copies(kind: HeadKind, aggregator: str) -> str:
    """The C++ expression that joins two copies of a fact, by a kind of the semirings' `copies`; empty for its plus."""
    return _COPIES.get(kind, AGGREGATORS[aggregator].jets)


_NAMES = {
    "+=": "sum",
    "log+=": "log_sum",
    "*=": "product",
    "max=": "greatest",
    "min=": "least",
    "|=": "any",
    "&=": "all",
    "=": "last",
}
_OWN = {body: f"plus_{name}" for key, name in _NAMES.items() for body in (AGGREGATORS[key].plus, AGGREGATORS[key].jets)}


def own_plus_name(body: str) -> str:
    """The name of the function with one of the aggregators' expressions; empty for none."""
    return _OWN[body] if body else ""
