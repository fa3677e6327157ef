"""Stages whose ground program is found as it runs: its order, and the solution of its cycles.

Such a stage takes the items of one level together, a *block*. It explores first: from each item it goes through the
rules whose heads may lie on the same level, without values, and notes which item leads to which (`native/include/
dynagrad/ground.hpp`). Then it pops the items component by component of that graph, antecedents first, so that each
item has all its contributions when it is popped, once, by the same functions as a stage whose order is known before.
What is left are cyclic components. Their instances are *grounded* once more, this time with weights, as a system of
equations that `solve.hpp` solves; contributions from within a solved component are passed over, as they are in the
solution.

The way back is that of any stage in which items are final, but for a solved component: what its items got from heads
outside is gathered first, the transposed system is solved for their adjoints, and these go on to whatever the weights
of the system were made of.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..rules.normal import NormalRule
from ..rules.show import show
from ..rules.syntax import AntecedentValue, Apply, Expression, Number
from .adjoints import posteriors, stage_of
from .model import Join, Plan, Stage, Table
from .statements import JoinWriter, comment
from .values import called, lifted_cxx, numbers, product_order, to_node

if TYPE_CHECKING:
    from .classes import ClassWriter

Monomials = Mapping[tuple[int, ...], Expression]
"""A polynomial in the values of some antecedents: their numbers, as often as they are factors, to the coefficient."""

MOST_MONOMIALS = 32
MOST_FACTORS = 8


# -- what can be solved ------------------------------------------------------------------------------------------------


def polynomial(value: Expression, inside: frozenset[int]) -> Monomials | None:
    """A right side as a polynomial in the antecedents `inside`; None where it is none, or a large one.

    >>> x, c = AntecedentValue(0), AntecedentValue(1)
    >>> sorted(polynomial(Apply("+", (Apply("*", (c, x)), Number(1.0))), frozenset({0})))
    [(), (0,)]
    >>> polynomial(Apply("exp", (x,)), frozenset({0})) is None
    True
    """
    match value:
        case AntecedentValue(index=index) if index in inside:
            return {(index,): Number(1.0)}
        case Apply(operator="+" | "-" as operator, operands=(left, right)):
            a, b = polynomial(left, inside), polynomial(right, inside)
            if a is None or b is None:
                return None
            total = dict(a)
            for factors, c in b.items():
                negative = Apply("neg", (c,)) if operator == "-" else c
                total[factors] = Apply("+", (total[factors], negative)) if factors in total else negative
            return total
        case Apply(operator="neg", operands=(operand,)):
            a = polynomial(operand, inside)
            return None if a is None else {factors: Apply("neg", (c,)) for factors, c in a.items()}
        case Apply(operator="*", operands=(left, right)):
            return _product(polynomial(left, inside), polynomial(right, inside))
        case Apply(operator="/", operands=(left, right)):
            a, b = polynomial(left, inside), polynomial(right, inside)
            if a is None or b is None or set(b) != {()}:
                return None
            return {factors: Apply("/", (c, right)) for factors, c in a.items()}
        case Apply(operator="^", operands=(left, Number(value=power))) if power in (2, 3, 4):
            a = polynomial(left, inside)
            if a is None or set(a) == {()}:
                return a if a is None else {(): value}
            made: Monomials | None = a
            for _ in range(int(power) - 1):
                made = _product(made, a)
            return made
        case Apply(operands=operands):
            parts = [polynomial(o, inside) for o in operands]
            return {(): value} if all(p is not None and set(p) == {()} for p in parts) else None
    return {(): value}


def _product(a: Monomials | None, b: Monomials | None) -> Monomials | None:
    if a is None or b is None or len(a) * len(b) > MOST_MONOMIALS:
        return None
    total: dict[tuple[int, ...], Expression] = {}
    for left, c in a.items():
        for right, d in b.items():
            factors = tuple(sorted((*left, *right)))
            product = d if c == Number(1.0) else c if d == Number(1.0) else Apply("*", (c, d))
            total[factors] = Apply("+", (total[factors], product)) if factors in total else product
    return None if any(len(f) > MOST_FACTORS for f in total) else total


def recursive(rule: NormalRule, keys: frozenset[str]) -> frozenset[int]:
    """The antecedents of a rule whose values are unknown while a component among these predicates is solved."""
    return frozenset(i for i, a in enumerate(rule.antecedents) if a.item.key in keys and not a.side)


def unknowns(rule: NormalRule, keys: frozenset[str], semiring: str) -> int | None:
    """The most unknowns that an instance of the rule multiplies; None where its right side is no polynomial."""
    inside = recursive(rule, keys)
    if semiring != "plain":
        return len(inside)
    found = polynomial(rule.value, inside)
    return None if found is None else max((len(f) for f in found), default=0)


def plan_is_users(plan: Plan) -> bool:
    """Whether numbers are of a semiring of the user's own."""
    return plan.semiring == "user"


def keeps_logs(plan: Plan) -> bool:
    """Whether the logs of weights are kept as they were given: in `log`, where cycles are solved."""
    return plan.semiring == "log" and any(stage.unknowns for stage in plan.stages)


def has_bounds(plan: Plan, table: Table) -> bool:
    """Whether the error bound of a component is kept with its items, so that a change of others can leave it."""
    return solves(plan, table) and stage_of(plan, table).unknowns > 0


def sighted(stage: Stage) -> bool:
    """Whether rules inside a level look for items of the stage, which then have to be in the chart as they do."""
    return any(
        a.item.key in stage.keys and i != join.driver
        for join in inner(stage)
        for i, a in enumerate(join.rule.antecedents)
    )


def inner(stage: Stage) -> list[Join]:
    """The joins whose head may lie on the level of their driver."""
    return [j for j in stage.drives if (j.rule.number, j.driver) in stage.inner]


def solves(plan: Plan, table: Table) -> bool:
    """Whether items of the table may be part of a solved component."""
    if table.kind not in ("dense", "hashed"):
        return False
    stage = stage_of(plan, table)
    return stage.strategy == "solve" and not table.sink


# -- joins -------------------------------------------------------------------------------------------------------------


class EdgeWriter(JoinWriter):
    """Writes a join that notes which items lead to its head, and computes no values."""

    @property
    def in_rows(self) -> bool:
        return False

    def start(self) -> None:
        self.inside: list[tuple[str, str]] = []

    def _prologue(self) -> None:
        pass

    def take(self, antecedent: int, value: str, old: str | None = None) -> None:
        pass

    def _passenger(self, i: int, at: str) -> None:
        key = self.rule.antecedents[i].item.key
        if key in self.stage.keys:
            self.inside.append((self.names.table[key], at))
        if i in self.join.same and i > (self.join.driver or 0):
            self.out.open(f"if ({at} != cell)")

    def _head(self) -> None:
        table = self.plan.tables[self.rule.head.key]
        name, n = self.names.table[table.key], self.stage.number
        texts = self._arguments(self.rule.head, table, True)
        self.out.line(f"const uint32_t head = reach_{name}({', '.join(texts)});")
        self.out.open("if (head)")
        self.out.line(f"block{n}.edge(node, head);")
        for other, at in self.inside:
            self.out.line(f"if (const uint32_t o = grown(node_{other}, {at}, 0u); block{n}.has(o)) ")
            self.out.lines[-1] += f"block{n}.edge(o, head);"


class GroundWriter(JoinWriter):
    """Writes a join that adds each instance with its head in the component at hand to the system of equations."""

    def __init__(self, owner: ClassWriter, join: Join) -> None:
        super().__init__(owner.plan, owner.names, join, owner.out)
        self.keys = frozenset(self.stage.keys)
        self.unknown: dict[int, str] = {}  # antecedent -> the local with its number in the system, or none
        self.at: dict[int, str] = {}  # antecedent -> its cell or row

    @property
    def in_rows(self) -> bool:
        return False

    def _prologue(self) -> None:
        pass

    def _driver(self, driver: int) -> None:
        self._number(driver, "cell")
        super()._driver(driver)

    def _passenger(self, i: int, at: str) -> None:
        self.at[i] = at
        self._number(i, at)
        super()._passenger(i, at)

    def _logs(self) -> str:
        """The log of the weight of an instance whose one unknown is its own head."""
        parts = [
            f"weight_log[{self.names.weights[self.rule.number, k]}]" for k, _ in enumerate(numbers(self.rule.value))
        ]
        for i in self.product:
            antecedent = self.rule.antecedents[i]
            if antecedent.side or i in self.unknown:
                continue
            table = self.table_of[i]
            if table.kind == "facts":
                parts.append(f"{self.place(i)}.logs[{self.at[i]}]")
            elif table.kind == "external" or i == self.join.driver:
                return ""
            else:
                parts.append(f"semiring_log({self.place(i)}.value[{self.at[i]}])")
        return " + ".join(parts) or "0.0"

    def _number(self, i: int, at: str) -> None:
        antecedent = self.rule.antecedents[i]
        if antecedent.item.key in self.keys and not antecedent.side:
            self.unknown[i] = self.fresh("u")
            name = self.names.table[antecedent.item.key]
            self.out.line(f"const uint32_t {self.unknown[i]} = member_{name}({at});")

    def take(self, antecedent: int, value: str, old: str | None = None) -> None:
        if antecedent in self.unknown and not self.plain and not plan_is_users(self.plan):
            value = f"({self.unknown[antecedent]} == unsolved ? {value} : semiring::one())"
        super().take(antecedent, value, old)

    def _head(self) -> None:
        table = self.plan.tables[self.rule.head.key]
        self.out.line(f"const uint32_t head = member_{self.names.table[table.key]}({self.head_cell(table)});")
        self.out.open("if (head != unsolved)")
        if plan_is_users(self.plan):
            self._add_sides()
            return
        if not self.plain:
            self._add(self._value(table), list(self.unknown.values()))
            return
        found = polynomial(self.rule.value, recursive(self.rule, self.keys))
        assert found is not None
        functions = self.plan.functions
        for k, (factors, coefficient) in enumerate(found.items()):
            name = called(coefficient, functions)
            names = {f"x{i}": text for i, text in self.values.items()}
            node = to_node(coefficient, functions)
            code = lifted_cxx([node], names, f"c{k}_", self.plan.order, self.names.functions, name)
            self.compute(code)
            weight = code.results[0]
            for i in factors:
                known = f"({self.unknown[i]} == unsolved ? {self.values[i]} : semiring::one())"
                weight = f"semiring::times({weight}, {known})"
            self._add(weight, [self.unknown[i] for i in factors])

    def _add_sides(self) -> None:
        """The product before the unknown, and the product after it."""
        sides: list[str] = ["semiring::one()", "semiring::one()"]
        after = 0
        for which, antecedent in product_order(self.rule.value):
            if antecedent is not None and antecedent in self.unknown:
                after = 1
                continue
            if antecedent is None:
                assert which is not None
                text = self.names.weight(self.rule, which[0], which[1])
            else:
                text = self.values[antecedent]
            sides[after] = text if sides[after] == "semiring::one()" else f"semiring::times({sides[after]}, {text})"
        unknown = next(iter(self.unknown.values()), None)
        if unknown is None:
            self.out.line(f"system{self.stage.number}.add(head, {sides[0]}, semiring::one(), unsolved);")
            return
        value = self.values[next(iter(self.unknown))]
        self.out.open(f"if ({unknown} == unsolved)")
        product = f"semiring::times(semiring::times({sides[0]}, {value}), {sides[1]})"
        self.out.line(f"system{self.stage.number}.add(head, {product}, semiring::one(), unsolved);")
        self.out.close("} else {")
        self.out.depth += 1
        self.out.line(f"system{self.stage.number}.add(head, {sides[0]}, {sides[1]}, {unknown});")
        self.out.close()

    def _add(self, weight: str, factors: list[str]) -> None:
        places = [*factors, *["unsolved"] * (self.stage.unknowns - len(factors))]
        of = self.fresh("of")
        self.out.line(f"const uint32_t {of}[] = {{{', '.join(places)}}};")
        log = self._logs() if keeps_logs(self.plan) and len(self.unknown) == 1 and len(factors) == 1 else ""
        if log:
            self.out.line(f"if ({factors[0]} == head) system{self.stage.number}.add_loop(head, {weight}, {of}, {log});")
            self.out.line(f"else system{self.stage.number}.add(head, {weight}, {of});")
            return
        self.out.line(f"system{self.stage.number}.add(head, {weight}, {of});")


# -- forward -----------------------------------------------------------------------------------------------------------


def write_members(writer: ClassWriter) -> None:
    """The state of stages that solve, and of their items."""
    out = writer.out
    stages = [s for s in writer.plan.stages if s.strategy == "solve"]
    if not stages:
        return
    if keeps_logs(writer.plan):
        primal = "v" if not writer.plan.order else "{v.m[0], v.e}"
        out.line(f"static double semiring_log(const value_t& v) {{ return Log::out({primal}); }}")
    out.line("static constexpr uint32_t unsolved = 0xFFFFFFFF;  // the number of what is no unknown")
    out.line("int64_t solved_items = 0;  // of all components, which numbers them")
    out.line("int64_t solved_first = 0, solved_count = 0;  // the component at hand")
    for stage in stages:
        n = stage.number
        out.line(f"Block block{n}{{&account}};")
        out.line(f"int64_t exposed{n} = 0;")
        if stage.unknowns:
            system = "ClosedSystem<semiring>" if plan_is_users(writer.plan) else f"System<semiring, {stage.unknowns}>"
            out.line(f"{system} system{n}{{this}};")
            if writer.plan.adjoint:
                out.line(f"Array<SolvedComponent> solved{n}{{&account}};")
        for key in stage.keys:
            name = writer.names.table[key]
            out.line(f"Array<uint32_t> node_{name}{{&account}};    // in the block, see there")
            out.line(f"Array<uint32_t> place_{name}{{&account}};   // among solved items, from 1; 0 where it is none")
            if has_bounds(writer.plan, writer.plan.tables[key]):
                out.line(f"Array<double> {name}_bound{{&account}};     // of its component; below zero: near-critical")
    if writer.plan.adjoint:
        out.line("bool inside = false;  // the way back is on its way through a solved component")
        out.line("adjoint_t spare{};")


def write_items(writer: ClassWriter, stage: Stage) -> None:
    """Functions of single items, which the rest of the class calls."""
    out, n = writer.out, stage.number
    for key in stage.keys:
        table, name = writer.plan.tables[key], writer.names.table[key]
        out.open(f"uint32_t member_{name}(int64_t cell)")
        out.line(f"const uint32_t at = grown(place_{name}, cell, 0u) - (uint32_t)solved_first;")
        out.line("return at < (uint32_t)solved_count ? at : unsolved;")
        out.close()
        parameters = ", ".join(f"int32_t a{i}" for i in range(table.arity))
        out.open(f"uint32_t reach_{name}({parameters})")
        if stage.forms:
            out.line(f"if ({writer.level(stage, table)} != level{n}) return 0;")
        out.line(f"const int64_t cell = {name}.locate({writer.stored(table)});")
        out.line(f"return block{n}.reach(grown(node_{name}, cell, 0u), handle({table.number}, cell));")
        out.close()
        if sighted(stage):
            out.open(f"void expose_{name}(int64_t cell)")
            out.line(f"{name}.popped.set(cell);")
            if writer.by_key.get(key):
                writer.unpack(table)
                writer.enter(table)
            out.close()
            out.open(f"void hide_{name}(int64_t cell)")
            out.line(f"{name}.popped.clear(cell);")
            if writer.by_key.get(key):
                writer.unpack(table)
                writer.enter(table, "remove(key)")
            out.close()
    out.line()


def write_stage(writer: ClassWriter, stage: Stage) -> None:
    """The functions of a stage: `gather`, which explores the next block, and `step`, which pops a component of it."""
    out, n = writer.out, stage.number
    joins = inner(stage)
    for join in joins:
        _function(writer, join, "edges", ", uint32_t node")
        if stage.unknowns:
            _function(writer, join, "ground", "")
    _switch(writer, stage, "explore", "edges", "node")
    if stage.unknowns:
        _switch(writer, stage, "ground", "ground", "")
    if sighted(stage):
        for verb in ("expose", "hide"):
            out.open(f"void {verb}{n}(Handle h)")
            out.open("switch (table_of(h))")
            for key in stage.keys:
                table = writer.plan.tables[key]
                out.line(f"case {table.number}: {verb}_{writer.names.table[key]}(cell_of(h)); break;")
            out.close()
            out.close()
    _solve(writer, stage)
    if writer.plan.changes is not None:  # `resolving.py` has its own
        return
    _gather(writer, stage)
    _step(writer, stage)


def _parameters(table: Table) -> str:
    return "".join(f", int32_t a{i}" for i in range(table.arity))


def _function(writer: ClassWriter, join: Join, prefix: str, more: str) -> None:
    out = writer.out
    assert join.driver is not None
    item = join.rule.antecedents[join.driver].item
    table = writer.plan.tables[item.key]
    name = writer.names.table[item.key]
    writer.join_comment(join)
    out.line(f"// {prefix}, driver: {comment(show(item))}, antecedent {join.driver + 1}")
    out.open(f"DYNAGRAD_RULE void {writer.drive_name(join, prefix)}(int64_t cell{_parameters(table)}{more})")
    out.line("const bool first = true;")
    out.line("(void)cell, (void)first;")
    if table.arity:
        out.line(" ".join(f"(void)a{i};" for i in range(table.arity)))
    if prefix == "edges":
        out.line("(void)node;")
        EdgeWriter(writer.plan, writer.names, join, out).write()
    else:
        out.line(f"const value_t update = {name}.value[cell];")
        out.line("const value_t &old = update, &now = update;")
        out.line("(void)update, (void)old, (void)now;")
        GroundWriter(writer, join).write()
    out.close()
    out.line()


def _switch(writer: ClassWriter, stage: Stage, verb: str, prefix: str, more: str) -> None:
    """`explore` or `ground`: all joins inside the level from one item."""
    out, n = writer.out, stage.number
    joins = inner(stage)
    for key in stage.keys:
        table, name = writer.plan.tables[key], writer.names.table[key]
        own = [j for j in joins if j.driver is not None and j.rule.antecedents[j.driver].item.key == key]
        out.open(f"void {verb}_{name}(int64_t cell)")
        if own:
            writer.unpack(table)
            if more:
                out.line(f"const uint32_t node = node_{name}[cell];")
        arguments = "".join(f", a{i}" for i in range(table.arity))
        for join in own:
            out.line(f"{writer.drive_name(join, prefix)}(cell{arguments}{', node' if more else ''});")
        out.line("(void)cell;")
        out.close()
    out.open(f"void {verb}{n}(Handle h)")
    out.open("switch (table_of(h))")
    for key in stage.keys:
        table = writer.plan.tables[key]
        out.line(f"case {table.number}: {verb}_{writer.names.table[key]}(cell_of(h)); break;")
    out.close()
    out.line("if (__builtin_expect(arithmetic.overflow, 0)) fail(integer_overflow, -1, -1);")
    out.close()
    out.line()


def _gather(writer: ClassWriter, stage: Stage) -> None:
    out, n, sight = writer.out, stage.number, sighted(stage)
    out.line("// The next level: its items, and an order for them. False where there is none, or where the run stops.")
    out.open(f"bool gather{n}()")
    out.open(f"if (block{n}.done())")
    out.line(f"if (!agenda{n}.next_level(level{n})) return false;")
    out.line(f"block{n}.begin();")
    out.line("Handle next = 0;")
    out.open(f"while (agenda{n}.pop_from(level{n}, next))")
    out.open("switch (table_of(next))")
    for key in stage.keys:
        table = writer.plan.tables[key]
        name = writer.names.table[key]
        out.line(f"case {table.number}: block{n}.reach(grown(node_{name}, cell_of(next), 0u), next); break;")
    out.close()
    out.close()
    out.close()
    if sight:
        out.line(f"while (exposed{n} < block{n}.explored) expose{n}(block{n}.items[exposed{n}++]);")
    out.open(f"while (block{n}.explored < block{n}.items.size && !halt)")
    out.line("if (spend(1)) break;")
    out.line(f"const int64_t edges = block{n}.edges();")
    out.line(f"const Handle h = block{n}.items[block{n}.explored];")
    if sight:
        out.line(f"expose{n}(h), exposed{n}++;")
    out.line(f"explore{n}(h);")
    out.line(f"if (halt) block{n}.back_to(edges);")
    out.line(f"else block{n}.explored++;")
    out.close()
    if sight:
        out.line(f"while (exposed{n} > 0) hide{n}(block{n}.items[--exposed{n}]);")
    out.line("if (halt) return false;")
    out.line(f"block{n}.arrange();")
    out.line("return true;")
    out.close()
    out.line()


def _solve(writer: ClassWriter, stage: Stage) -> None:
    out, n = writer.out, stage.number
    tables = [writer.plan.tables[k] for k in stage.keys]
    at = f"block{n}.items[block{n}.order[begin + i]]"
    out.line("// Solves a component, or fails, or, where the run is stopped, leaves it as it was.")
    out.open(f"void solve{n}(int64_t begin, int64_t count)")
    if not stage.unknowns:
        out.line(f"for (int64_t i = 0; i < count && i < 64; i++) cycle.push({at});")
        out.line("fail(cyclic, table_of(cycle[0]), cell_of(cycle[0]));")
        out.close()
        out.line()
        return
    out.line("solved_first = solved_items + 1, solved_count = count;")
    out.line(f"system{n}.open(count);")
    if writer.plan.rules.solve in ("linear", "newton"):
        flag = "must_be_linear" if writer.plan.rules.solve == "linear" else "always_newton"
        out.line(f"system{n}.{flag} = true;")
    out.open("for (int64_t i = 0; i < count; i++)")
    out.line(f"const Handle h = {at};")
    out.open("switch (table_of(h))")
    for table in tables:
        name = writer.names.table[table.key]
        out.open(f"case {table.number}:")
        out.line(f"grown(place_{name}, cell_of(h), 0u) = (uint32_t)(solved_first + i);")
        out.line(f"if ({name}.seen.test(cell_of(h))) system{n}.given[i] = {name}.value[cell_of(h)];")
        out.line("break;")
        out.close()
    out.close()
    out.close()
    _ground_all(writer, stage, at, sighted(stage))
    out.line(f"const Solved how = halt ? Solved::halted : system{n}.solve();")
    out.open("if (how != Solved::fine && how != Solved::near_critical)")
    out.open("for (int64_t i = 0; i < count; i++)")
    out.line(f"const Handle h = {at};")
    out.open("switch (table_of(h))")
    for table in tables:
        out.line(f"case {table.number}: place_{writer.names.table[table.key]}[cell_of(h)] = 0; break;")
    out.close()
    out.close()
    out.line("solved_count = 0;")
    out.line("if (how == Solved::halted) return;")
    out.line("const int64_t i = 0;")
    out.line(f"if (how == Solved::unsolved) return fail(cyclic, table_of({at}), cell_of({at}));")
    out.line(f"if (how == Solved::overflows) return fail(bad_value, table_of({at}), cell_of({at}));")
    out.line(f"if (how == Solved::steep) return fail(unsettled, table_of({at}), cell_of({at}));")
    out.open(f"for (int64_t k = 0; k < system{n}.cycle.size; k++)")
    out.line(f"cycle.push(block{n}.items[block{n}.order[begin + system{n}.cycle[k]]]);")
    out.close()
    out.line(f"report.radius = system{n}.radius;")
    out.line(f"const Handle h = cycle.size ? cycle[0] : {at};")
    out.line("return fail(diverges, table_of(h), cell_of(h));")
    out.close()
    if writer.plan.order:
        out.line(f"if (how == Solved::near_critical && system{n}.moves()) {{")
        out.line("  const int64_t i = 0;")
        out.line(f"  return fail(near_critical, table_of({at}), cell_of({at}));")
        out.line("}")
    out.line("report.critical += how == Solved::near_critical;")
    out.line(f"if (system{n}.bound > report.error_bound) report.error_bound = system{n}.bound;")
    out.open("for (int64_t i = 0; i < count; i++)")
    out.line(f"const Handle h = {at};")
    out.open("switch (table_of(h))")
    for table in tables:
        name = writer.names.table[table.key]
        out.open(f"case {table.number}:")
        out.line(f"{name}.value[cell_of(h)] = system{n}.value[i];")
        out.line(f"if ({name}.seen.set(cell_of(h))) {name}.items++, report.items++;")
        if has_bounds(writer.plan, table):
            bound = f"how == Solved::near_critical ? -system{n}.bound : system{n}.bound"
            out.line(f"grown({name}_bound, cell_of(h), 0.0) = {bound};")
        out.line("break;")
        out.close()
    out.close()
    out.close()
    if writer.plan.adjoint:
        out.line(f"solved{n}.push({{tape.pops.size, count, how == Solved::near_critical}});")
    out.line("solved_items += count, solved_count = 0;")
    out.close()
    out.line()


def _ground_all(writer: ClassWriter, stage: Stage, at: str, sight: bool) -> None:
    """All instances of a component, from its items in their order, of which each sees those before it."""
    out, n = writer.out, stage.number
    if sight:
        out.line("int64_t seen = 0;")
    out.open("for (int64_t i = 0; i < count && !halt; i++)")
    out.line("if (spend(1)) break;")
    if sight:
        out.line(f"expose{n}({at}), seen++;")
    out.line(f"ground{n}({at});")
    out.close()
    if sight:
        out.line(f"for (int64_t i = seen; i-- > 0;) hide{n}({at});")


def _step(writer: ClassWriter, stage: Stage) -> None:
    out, n = writer.out, stage.number
    out.open(f"void step{n}()")
    out.line(f"const auto component = block{n}.components[block{n}.at];")
    out.line(f"const int64_t end = block{n}.end(block{n}.at);")
    out.open("if (component.cyclic)")
    out.line(f"solve{n}(component.begin, end - component.begin);")
    out.line("if (halt) return;")
    out.close()
    out.line("const int64_t pops = report.pops;")
    out.line("const Settings kept = settings;")
    out.line("if (component.cyclic) settings = Settings{};  // all of it, or nothing")
    out.line("bool reached = false;")
    out.open("for (int64_t i = component.begin; i < end && !halt; i++)")
    out.line(f"const Handle h = block{n}.items[block{n}.order[i]];")
    out.open("switch (table_of(h))")
    for key in stage.keys:
        table = writer.plan.tables[key]
        out.line(f"case {table.number}: pop_{writer.names.table[key]}(cell_of(h)); break;")
    out.close()
    out.line("reached = reached || (kept.until_table == (int64_t)table_of(h) && kept.until_cell == cell_of(h));")
    out.close()
    out.line("settings = kept;")
    out.line("if (halt && report.pops != pops) report.partial = 1;")
    out.line(f"block{n}.at++;")
    out.line("if (reached && !halt) stop(at_until);")
    out.close()
    out.line()


# -- backward ----------------------------------------------------------------------------------------------------------


def write_undo_component(writer: ClassWriter, stage: Stage, rolls: bool) -> None:
    """`undo_component<n>`: takes back the pops of a solved component, and solves for the adjoints of its items."""
    if stage.strategy != "solve" or not stage.unknowns:
        return
    plan, out, n = writer.plan, writer.out, stage.number
    tables = [plan.tables[k] for k in stage.keys]
    sight = rolls and sighted(stage)  # else what such a join finds is on an earlier level, or was there before
    drives = {t.key: [j for j in inner(stage) if _driven(j) == t.key] for t in tables}
    for table in tables:
        name = writer.names.table[table.key]
        out.open(f"DYNAGRAD_RULE void share_{name}(int64_t cell)")
        writer.unpack(table)
        out.line("const bool first = true;")
        out.line(f"const value_t now = {name}.value[cell];")
        out.line("const value_t &update = now, &old = now;")
        out.line("adjoint_t gupdate = {}, gold = {};")
        out.line("(void)first, (void)update, (void)old, (void)gold, (void)gupdate;")
        arguments = "".join(f", a{i}" for i in range(table.arity))
        for join in drives[table.key]:
            out.line(f"{writer.drive_name(join, 'back')}(cell{arguments}, update, old, now, first, gupdate, gold);")
        out.close()
    out.open(f"void undo_component{n}(const SolvedComponent& c)")
    at = "(tape.pops[c.begin + i] & ~tape.again)"
    out.line("const int64_t count = c.count;")
    out.open(f"switch (table_of({at.replace(' + i', '')}))")
    for table in tables:
        name = writer.names.table[table.key]
        out.line(f"case {table.number}: solved_first = place_{name}[cell_of({at.replace(' + i', '')})]; break;")
    out.close()
    out.line("solved_count = count;")
    out.open("for (int64_t i = count; i-- > 0 && !halt;)")
    out.line(f"const Handle h = {at};")
    out.open("switch (table_of(h))")
    for table in tables:
        out.line(f"case {table.number}: undo_{writer.names.table[table.key]}(cell_of(h), false); break;")
    out.close()
    out.close()
    out.line(f"system{n}.open(count);")
    out.line(f"system{n}.value.clear(), system{n}.value.resize(count, semiring::zero());")
    out.line("Array<adjoint_t> g{&account};")
    out.line("bool nothing = true;")
    out.open("for (int64_t i = 0; i < count; i++)")
    out.line(f"const Handle h = {at};")
    out.open("switch (table_of(h))")
    for table in tables:
        name = writer.names.table[table.key]
        out.line(f"case {table.number}: system{n}.value[i] = {name}.value[cell_of(h)]; ")
        out.lines[-1] += f"g.push(g_{name}[cell_of(h)]); break;"
    out.close()
    out.line("nothing = nothing && back::nothing(g[i]);")
    out.close()
    out.open("if (!nothing && !halt)")
    out.line(f"if (c.near_critical) return lose(near_critical, table_of({at.replace(' + i', '')}), ")
    out.lines[-1] += f"cell_of({at.replace(' + i', '')}));"
    _ground_all(writer, stage, at, sight)
    out.line("if (halt) return;")
    out.line(f"const Solved how = late_adjoints<back>(system{n}, g);")
    out.line("if (how == Solved::halted) return;")
    out.open("if (how != Solved::fine)")
    out.line(f"const Handle h = {at.replace(' + i', '')};")
    out.line("return lose(unsettled, table_of(h), cell_of(h));")
    out.close()
    out.open("for (int64_t i = 0; i < count; i++)")
    out.line(f"const Handle h = {at};")
    out.line("const int64_t cell = cell_of(h);")
    out.open("switch (table_of(h))")
    for table in tables:
        name = writer.names.table[table.key]
        out.open(f"case {table.number}:")
        out.line(f"g_{name}[cell] = g[i];")
        if posteriors(plan):
            out.line(f"h_{name}[cell] = back::share(g[i], {name}.value[cell]);")
        out.line("break;")
        out.close()
    out.close()
    out.close()
    out.line("inside = true;")
    if sight:
        out.line(f"for (int64_t i = 0; i < count; i++) expose{n}({at});")
    out.open("for (int64_t i = count; i-- > 0 && !halt;)")
    out.line(f"const Handle h = {at};")
    out.open("switch (table_of(h))")
    for table in tables:
        name = writer.names.table[table.key]
        forget = f" hide_{name}(cell_of(h));" if sight else ""
        out.line(f"case {table.number}: share_{name}(cell_of(h));{forget} break;")
    out.close()
    out.close()
    out.line("inside = false;")
    out.close()
    out.line("solved_count = 0;")
    out.close()
    out.line()


def _driven(join: Join) -> str:
    assert join.driver is not None
    return join.rule.antecedents[join.driver].item.key
