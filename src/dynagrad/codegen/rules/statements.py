"""Joins as C++ statements: taking items apart, going through the others, building the head.

A `Writer` holds the text of one function with its open braces. What it writes is nested `if`s and loops, so that a
failed match simply falls out of its block. Names of rule variables are kept; they start with a capital letter or an
underscore, and every other name in generated code starts with a small letter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ...errors import ProgramError
from ...plan.joins import term_variables
from ...plan.model import Absent, Filter, IndexPlan, Join, Lookup, Plan, Scan, Solve, Step, Table, Unfold
from ...plan.right_sides import factors, numbers, product_order
from ...rules.normal import NormalRule
from ...rules.semirings import SEMIRINGS
from ...rules.show import show
from ...rules.syntax import Arithmetic, Comparison, Compound, Equation, Float, Integer, Item, Symbol, Term, Variable
from ..cxx import Writer, comment
from .combine import may_excuse, not_nothing
from .functions import Code, Functions
from .values import value_cxx


class Names:
    """C++ names of predicates, and slots of the constants that the program mentions.

    Slots are handed out as a class is written. Where a class goes over charts of another one, `like` has those of that.
    """

    def __init__(self, plan: Plan, like: Names | None = None) -> None:
        self.plan = plan
        self.table: Mapping[str, str] = {}
        named: dict[str, str] = {}
        taken: set[str] = set()
        for key in plan.tables:
            name, arity = key.rsplit("/", 1)
            plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
            plain = plain[0].lower() + plain[1:40] if plain[:1].isalpha() else "p" + plain[:40]
            wanted = f"{plain}_{arity}"
            while wanted in taken:
                wanted += "x"
            taken.add(wanted)
            named[key] = wanted
        self.table = named
        self.constants: dict[tuple[int | None, Term], int] = {}  # as syntax, in which f(1) is not f(1.0)
        self.functors: dict[tuple[str, int], int] = {}
        self.weights: dict[tuple[int, int], int] = {}  # (rule, which constant) -> slot
        self.weight_values: list[float | int] = []
        self.functions = Functions()
        if like is not None:
            self.constants, self.functors = dict(like.constants), dict(like.functors)
            self.weights, self.weight_values = dict(like.weights), list(like.weight_values)

    @property
    def slots(self) -> tuple[int, int, int]:
        """How many there are of each kind."""
        return len(self.constants), len(self.functors), len(self.weight_values)

    def constant(self, domain: int | None, term: Term) -> str:
        """The slot of a ground term in a domain; None stands for terms."""
        slot = self.constants.setdefault((domain, term), len(self.constants))
        return f"world->constant[{slot}]"

    def index(self, key: str, number: int) -> str:
        """An index of a derived predicate."""
        return f"{self.table[key]}_by{number}"

    def add(self, key: str) -> str:
        """The function that gives an item a contribution."""
        return f"add_{self.table[key]}"

    def arrive(self, key: str) -> str:
        """The function that takes note of an item that a row has reached, as a pointer."""
        return f"&program::arrive_{self.table[key]}"

    def functor(self, name: str, arity: int) -> int:
        return self.functors.setdefault((name, arity), len(self.functors))

    def weight(self, rule: NormalRule, which: int, value: float | int) -> str:
        place = (rule.number, which)
        if place not in self.weights:
            self.weights[place] = len(self.weight_values)
            self.weight_values.append(value)
        return f"weight[{self.weights[place]}]"


def local(name: str) -> str:
    """The C++ name of a rule variable: its own, unless that could be a macro's, or is none that C++ has.

    >>> local("X"), local("Word"), local("NULL"), local("__FILE_"), local("X²")
    ('X', 'Word', 'NULL_', 'var__5f__5f_FILE_5f_', 'var_X_b2_')
    """
    if name.startswith("_") or not name.isascii():
        return "var_" + "".join(c if c.isascii() and c.isalnum() else f"_{ord(c):x}_" for c in name)
    mixed = len(name) <= 2 or any(c.islower() for c in name)
    return name if mixed else name + "_"


class Scope:
    """The variables of one rule while a function for it is written."""

    def __init__(self, plan: Plan, names: Names, variables: Mapping[str, int | None], writer: Writer) -> None:
        self.plan, self.names, self.variables, self.out = plan, names, variables, writer
        self.bound: set[str] = set()
        self.number = 0  # of the rule, where it is one of the program's
        self._fresh = 0

    def fresh(self, prefix: str) -> str:
        self._fresh += 1
        return f"{prefix}{self._fresh}"

    def kind(self, domain: int | None) -> str:
        return "term" if domain is None else self.plan.summary.domains[domain].kind

    def domain(self, variable: str) -> int | None:
        return self.variables.get(variable)

    # -- reading: an argument against a pattern

    def match(self, term: Term, text: str, domain: int | None) -> None:
        """Opens blocks that are entered where the code `text`, of a domain (None: a part of a term), fits `term`."""
        match term:
            case Variable(name=name):
                is_int = self.kind(self.domain(name)) == "int"
                if is_int and self.kind(domain) == "term":  # an integer inside a term, or among terms
                    node = self.fresh("node")
                    self.out.line(f"const Terms::Node {node} = world->terms.node({text});")
                    self.out.open(f"if ({node}.kind == Terms::integer)")
                    text = f"{node}.payload"
                if name in self.bound:
                    self.out.open(f"if ({local(name)} == {text})")
                else:
                    self.bound.add(name)
                    self.out.line(f"const int32_t {local(name)} = {text};")
            case Compound(functor=functor, arguments=arguments) if term_variables(term):
                number = self.names.functor(functor, len(arguments))
                self.out.open(f"if (world->terms.is({text}, {number}, {len(arguments)}))")
                self.out.lines[-1] += f"  // {comment(functor)}/{len(arguments)}"
                parts = []
                for i in range(len(arguments)):
                    part = self.fresh("part")
                    self.out.line(f"const int32_t {part} = world->terms.arguments({text})[{i}];")
                    parts.append(part)
                for argument, part in zip(arguments, parts, strict=True):
                    self.match(argument, part, None)
            case _:
                self.out.open(f"if ({text} == {self.literal(term, domain)})")

    # -- writing: the code of a term whose variables are bound

    def literal(self, term: Term, domain: int | None) -> str:
        """A ground term as a code of a domain: what `1` is there depends on what else the domain holds."""
        kind = self.kind(domain)
        if kind != "int":
            return self.names.constant(domain if kind == "atom" else None, term)
        if not isinstance(term, Integer):
            raise self.error(f"only integers can stand here, and {show(term)} is none", term)
        return whole_literal(term.value)

    def build(self, term: Term, domain: int | None, create: bool) -> str:
        """The code of a term; where `create` is false and there is no such term, its blocks are not entered."""
        verb = "make" if create else "find"
        match term:
            case Variable(name=name):
                if self.kind(domain) == "term" and self.kind(self.domain(name)) == "int":
                    boxed = self.fresh("boxed")
                    self.out.line(
                        f"const int32_t {boxed} = world->terms.{verb}(Terms::integer, {local(name)}, nullptr, 0);"
                    )
                    if not create:
                        self.out.open(f"if ({boxed} >= 0)")
                    return boxed
                return local(name)
            case Compound(functor=functor, arguments=arguments) if term_variables(term):
                parts = [self.build(a, None, create) for a in arguments]
                number = self.names.functor(functor, len(arguments))
                array, made = self.fresh("parts"), self.fresh("term")
                self.out.line(f"const int32_t {array}[] = {{{', '.join(parts)}}};")
                call = f"world->terms.{verb}(Terms::compound, {number}, {array}, {len(arguments)})"
                self.out.line(f"const int32_t {made} = {call};  // {comment(functor)}/{len(arguments)}")
                if not create:
                    self.out.open(f"if ({made} >= 0)")
                return made
            case Arithmetic():
                made = self.fresh("number")
                self.out.line(f"const int32_t {made} = arithmetic.narrow({self.whole(term)});")
                self._stop_without_result()
                if self.kind(domain) != "term":
                    return made
                boxed = self.fresh("boxed")
                self.out.line(f"const int32_t {boxed} = world->terms.make(Terms::integer, {made}, nullptr, 0);")
                return boxed
        return self.literal(term, domain)

    def _stop_without_result(self) -> None:
        """Ends the run where integer arithmetic has no result; the report says why, and in which rule."""
        self.out.line(
            "if (__builtin_expect(arithmetic.overflow != 0, 0)) "
            f"return fail(integer_overflow, -1 - arithmetic.overflow, {self.number});"
        )

    def whole(self, term: Term) -> str:
        """Integer arithmetic in 64 bits."""
        match term:
            case Variable(name=name):
                return f"(int64_t){local(name)}"
            case Integer(value=value):
                return whole_literal(value)
            case Arithmetic(operator="neg", operands=(inner,)) if size(inner) >= 1 << 63:
                return f"arithmetic.difference(0, {self.whole(inner)})"
            case Arithmetic(operator="neg", operands=(inner,)):
                return f"(-{self.whole(inner)})"
            case Arithmetic(operator=operator, operands=operands) if operator in CALLS:
                return f"arithmetic.{CALLS[operator]}({', '.join(map(self.whole, operands))})"
            case Arithmetic(operator=operator, operands=(left, right)):
                if size(term) >= 1 << 63:
                    name = "sum" if operator == "+" else "difference"
                    return f"arithmetic.{name}({self.whole(left)}, {self.whole(right)})"
                return f"({self.whole(left)} {operator} {self.whole(right)})"
        raise self.error(f"{show(term)} is no whole number", term)

    def is_whole(self, term: Term) -> bool:
        match term:
            case Variable(name=name):
                return self.kind(self.domain(name)) == "int"
            case Integer() | Arithmetic():
                return True
        return False

    def side_domain(self, *terms: Term) -> int | None:
        """The domain in which two sides of a comparison are coded: one of terms, where one is of terms."""
        found = [self.domain(term.name) for term in terms if isinstance(term, Variable)]
        return next((d for d in found if self.kind(d) == "term"), found[0] if found else None)

    def error(self, message: str, term: Term) -> ProgramError:
        source = self.plan.rules.source
        return ProgramError(message, source.text, term.span, source.filename)

    # -- conditions

    def compare(self, operator: str, left: Term, right: Term) -> None:
        """Opens a block that is entered where the comparison holds; all variables are bound."""
        sign = {"=<": "<=", "=": "=="}.get(operator, operator)
        if self.is_whole(left) and self.is_whole(right):
            one, other = self.whole(left), self.whole(right)
            if "arithmetic." in one + other:  # computed first, so that what does not fit is seen before it decides
                name = self.fresh("holds")
                self.out.line(f"const bool {name} = {one} {sign} {other};")
                self._stop_without_result()
                self.out.open(f"if ({name})")
            else:
                self.out.open(f"if ({one} {sign} {other})")
            return
        if sign in ("==", "!="):
            domain = self.side_domain(left, right)
            one, other = self.build(left, domain, True), self.build(right, domain, True)
            self.out.open(f"if ({one} {sign} {other})")
            return
        raise self.error(
            f"{operator} compares integers, and the facts put other things here: {show(left)} {operator} {show(right)}",
            left,
        )

    def solve(self, step: Solve) -> None:
        if step.variable in self.bound:
            return
        # The two sides of an equation share a domain, and a constant has its code there: 1 need not be 1.
        text = self.build(step.term, self.domain(step.variable), True)
        self.out.line(f"const int32_t {local(step.variable)} = {text};")
        self.bound.add(step.variable)
        if step.exact is not None:
            self.compare("==", *step.exact)


class PatternScope(Scope):
    """Variables of a pattern that is matched against stored items; each was given its domain."""


CALLS = {"*": "product", "//": "quotient", "mod": "remainder", "abs": "absolute", "min": "least", "max": "most"}
"""Integer operations that are functions of `Arithmetic` in the runtime; the others are written as they are."""


def whole_literal(value: int) -> str:
    """An integer of at most 64 bits in C++, where a literal has no sign: the least ones cannot be written as such.

    >>> whole_literal(7), whole_literal(-7), whole_literal(-(2**31))
    ('7', '(-7)', '(-2147483647 - 1)')
    """
    if value in (-(2**31), -(2**63)):
        return f"({value + 1} - 1)"
    return str(value) if value >= 0 else f"({value})"


def size(term: Term) -> int:
    """A bound on the size of a whole number; where that is 2**63 or more, it may not fit 64 bits."""
    match term:
        case Variable():
            return 1 << 31
        case Integer(value=value):
            return abs(value)
        case Arithmetic(operator="+" | "-", operands=(left, right)):
            return min(size(left), 1 << 63) + min(size(right), 1 << 63)
        case Arithmetic(operator="mod", operands=(_, right)):
            return min(size(right), 1 << 63)
        case Arithmetic(operator="neg" | "abs" | "//", operands=(inner, *_)):
            return min(size(inner), 1 << 63)
        case Arithmetic(operator="min" | "max", operands=(left, right)):
            return min(max(size(left), size(right)), 1 << 63)
    return 1 << 63  # a product is checked for itself


def python_value(term: Term) -> object:
    """A ground term as the Python value that facts would have: str, int, float, or nested tuples ("functor", ...)."""
    match term:
        case Symbol(name=name):
            return name
        case Integer(value=value):
            return value
        case Float(value=number):
            return number
        case Compound(functor=functor, arguments=arguments):
            # lists are long chains through their last argument: walked, not recursed into
            chain = [(functor, arguments[:-1])]
            last = arguments[-1]
            while isinstance(last, Compound):
                chain.append((last.functor, last.arguments[:-1]))
                last = last.arguments[-1]
            made: object = python_value(last)
            for name, front in reversed(chain):
                made = ("term", name, (*map(python_value, front), made))
            return made
    raise TypeError(f"not ground: {term!r}")


class JoinWriter(Scope):
    """Writes one join. What reaches the head is an update, or, with `mark`, the head is marked as reached."""

    def __init__(self, plan: Plan, names: Names, join: Join, writer: Writer, *, mark: bool = False) -> None:
        super().__init__(plan, names, plan.domains.variables[join.rule.number], writer)
        self.join = join
        self.mark = mark
        self.rule = join.rule
        self.number = join.rule.number
        self.plain = plan.semiring == "plain"
        self.product = factors(join.rule.value) if not self.plain else []
        self.weight: str | None = None  # the product so far
        self.finders: dict[int, str] = {}  # passenger -> the local that finds its facts
        self.unsettled = 0  # factors since it was last in range
        self.values: dict[int, str] = {}  # plain arithmetic: antecedent -> value
        self.cells: dict[int, str] = {}  # antecedent -> its cell, of a derived item
        self.old: dict[int, str] = {}  # ... and what it was before this pop
        self.table_of: list[Table] = [plan.tables[a.item.key] for a in join.rule.antecedents]
        self.stage = next(s for s in plan.stages if join.rule.head.key in s.keys)

    @property
    def in_order(self) -> bool:
        """Whether factors must be multiplied as they are written.

        A user's times need not commute; and where plus selects, a value must not depend, not even in its last bit, on
        which antecedent drove the join.
        """
        return self.plan.semiring == "user" or SEMIRINGS[self.plan.semiring].order == "value"

    @property
    def in_rows(self) -> bool:
        """Whether a join that may run side by side with its head is written so."""
        return not self.mark

    def start(self) -> None:
        """What holds before anything is joined: the constants of the rule."""
        if self.plain:
            return
        if self.in_order:
            return
        for i, v in enumerate(numbers(self.rule.value)):
            self.multiply(self.names.weight(self.rule, i, v))

    def multiply(self, text: str) -> None:
        """One more factor. In `log`, up to three are multiplied before the number is brought into range again."""
        if self.weight is None:
            self.weight = text
            return
        name = self.fresh("w")
        if self.plan.semiring == "log" and self.unsettled < 2:
            self.unsettled += 1
            self.out.line(f"const value_t {name} = semiring::raw({self.weight}, {text});")
        else:
            settled = f"semiring::settled({self.weight})" if self.unsettled else self.weight
            self.unsettled = 0
            self.out.line(f"const value_t {name} = semiring::times({settled}, {text});")
        self.weight = name

    def take(self, antecedent: int, value: str, old: str | None = None) -> None:
        """The value of one more antecedent is known."""
        if self.rule.antecedents[antecedent].side:
            return
        if self.plain or self.in_order:
            name = f"x{antecedent}"
            self.out.line(f"const value_t {name} = {value};")
            self.values[antecedent] = name
            if old is not None:
                self.out.line(f"const value_t old{antecedent} = {old};")
                self.old[antecedent] = f"old{antecedent}"
        elif antecedent in self.product:
            self.multiply(value)

    # -- steps

    def write(self) -> None:
        """The steps of the join and the update of the head, inside a function that is already open."""
        base = self.out.depth
        steps = list(self.join.steps)
        vector = self.join.vector
        self._prologue()
        for n, step in enumerate(steps):  # what inner loops look up is kept in locals, which no write can touch
            if isinstance(step, Lookup) and any(isinstance(s, Scan) for s in steps[:n]):
                table = self.table_of[step.antecedent]
                if table.kind == "facts" and table.arity:
                    self.finders[step.antecedent] = self.fresh("find")
                    place = self.place(step.antecedent)
                    self.out.line(f"const auto {self.finders[step.antecedent]} = {place}.finder();")
        self.start()
        if self.join.from_head:
            head = self.plan.tables[self.rule.head.key]
            for i, term in enumerate(self.rule.head.arguments):
                self.match(term, f"a{i}", head.domains[i])
        if self.join.driver is not None:
            self._driver(self.join.driver)
        for n, step in enumerate(steps):
            if vector is not None and n == len(steps) - 1 and self.in_rows:
                assert isinstance(step, Scan)
                if step.via == "rows":
                    self._side_by_side(step, vector)
                    self._close_to(base)
                    return
                self._scan(step, vector)
                continue
            self._step(step)
        self._head()
        self._close_to(base)

    def _prologue(self) -> None:
        if not self.mark:
            self.out.line("Counter updates(report.updates);")

    def _close_to(self, depth: int) -> None:
        self.out.close_to(depth)

    def _driver(self, driver: int) -> None:
        item = self.rule.antecedents[driver].item
        table = self.table_of[driver]
        self.cells[driver] = "cell"
        if self.rule.antecedents[driver].side:
            self.out.open("if (first)")
        for i, term in enumerate(item.arguments):
            self.match(term, f"a{i}", table.domains[i])
        if self.plain and not self.stage.final:
            self.take(driver, "now", "old")
        else:
            self.take(driver, "update")

    def _step(self, step: Step) -> None:
        match step:
            case Lookup(antecedent=i):
                self._lookup(i)
            case Scan():
                self._scan(step)
            case Filter(condition=Comparison(operator=operator, left=left, right=right)):
                self.compare(operator, left, right)
            case Filter(condition=Equation(left=left, right=right)):
                self.compare("==", left, right)
            case Solve():
                self.solve(step)
            case Unfold(variable=variable, pattern=pattern):
                self.match(pattern, local(variable), self.domain(variable))
            case Absent():
                self._absent(step)

    def _arguments(self, item: Item, table: Table, create: bool = False) -> list[str]:
        return [self.build(t, d, create) for t, d in zip(item.arguments, table.domains, strict=True)]

    def _stored(self, table: Table, texts: Sequence[str]) -> str:
        return ", ".join(texts[i] for i in table.order) if table.kind == "dense" else ", ".join(texts)

    def place(self, i: int) -> str:
        """Where antecedent i is looked for. When a fact changes, facts to the right of it are still the old ones."""
        name = self.names.table[self.rule.antecedents[i].item.key]
        driver = self.join.driver
        changing = driver is not None and not self.mark and self.table_of[driver].kind == "facts"
        return f"old_{name}" if changing and i > (driver or 0) and self.table_of[i].kind == "facts" else name

    def _lookup(self, i: int) -> None:
        item, table = self.rule.antecedents[i].item, self.table_of[i]
        name = self.place(i)
        if table.kind == "external":
            texts = self._arguments(item, table, True)
            value = self.fresh("outside")
            self.out.line(f"const int32_t {value}_arguments[] = {{{', '.join([*texts, '0'])}}};")
            self.out.line(f"value_t {value};")
            self.out.open(f"if (external({table.number}, {value}_arguments, {value}))")
            self.take(i, value)
            return
        texts = self._arguments(item, table)
        at = self.fresh("at")
        find = self.finders.get(i, f"{name}.find")
        self.out.line(f"const int64_t {at} = {find}({self._stored(table, texts)});")
        self.out.open(f"if ({at} >= 0)")
        self._passenger(i, at)

    def _passenger(self, i: int, at: str) -> None:
        """The item of passenger i stands at cell `at`: its value, old or new as the driver's place demands."""
        value = f"{self.place(i)}.value[{at}]"
        self.cells[i] = at
        driver = self.join.driver
        if driver is None or i not in self.join.same:
            self.take(i, value)
            return
        if i > driver:  # the same item on the right of its driver still has its old value, and none at its first pop
            self.out.open(f"if ({at} != cell || !first)")
            if self.rule.antecedents[i].side:
                return
            self.take(i, f"{at} == cell ? old : {value}")
        elif self.plain and not self.stage.final:
            self.take(i, value, f"{value}")
        else:
            self.take(i, value)

    def _keys(self, keys: Sequence[Term], index: IndexPlan) -> list[str]:
        """The codes that an index is asked for."""
        domains = key_domains(self.plan, index)
        return [self.build(t, d, False) for t, d in zip(keys, domains, strict=True)]

    def _scan(self, step: Scan, vector: str | None = None) -> None:
        """Goes through the matching items; facts that stand side by side over the variable `vector` all at once."""
        i = step.antecedent
        item, table = self.rule.antecedents[i].item, self.table_of[i]
        name = self.place(i)
        at = self.fresh("at")
        if step.via == "rows":
            row, free = self._row(item, table)
            self.out.open(f"if ({row} >= 0)")
            self.out.line(f"if (spend({name}.row_length())) return;")
            low = f"{name}.range[{table.arity - 1}].low"
            word, base = self.fresh("word"), self.fresh("base")
            self.out.open(f"for (int64_t {base} = 0; {base} < {name}.row_length(); {base} += 64)")
            self.out.open(
                f"for (uint64_t {word} = {name}.popped.word({row} + {base}, {name}.row_length() - {base}); "
                f"{word}; {word} &= {word} - 1)"
            )
            self.out.line(f"const int64_t {at} = {row} + {base} + __builtin_ctzll({word});")
            self.match(item.arguments[free], f"(int32_t)({at} - {row} + {low})", table.domains[free])
        elif step.via == "all" and table.kind == "facts":
            self.out.open(f"for (int64_t {at} = 0; {at} < {name}.rows(); {at}++)")
            self.out.line("if (spend(1)) return;")
            self._columns(i, at)
        elif step.via == "all":
            self.out.open(f"for (int64_t {at} = {name}.next(0); {at} >= 0; {at} = {name}.next({at} + 1))")
            self.out.line("if (spend(1)) return;")
            self._cell(item, table, at)
        else:
            index = self.plan.indexes[step.index]
            keys = self._keys(step.keys, index)
            if table.kind == "facts":
                found, p = self.fresh("found"), self.fresh("p")
                self.out.line(f"const auto {found} = {name}.by{index.number}().find({', '.join(keys)});")
                self.out.line(f"if (spend({found}.end - {found}.begin)) return;")
                if vector is not None:
                    self._stretch(step, vector, found)
                self.out.open(f"for (int64_t {p} = {found}.begin; {p} < {found}.end; {p}++)")
                self.out.line(f"const int64_t {at} = {name}.by{index.number}().rows[{p}];")
                self._columns(i, at)
            else:
                array, entry = self.fresh("key"), self.fresh("entry")
                self.out.line(f"const int32_t {array}[] = {{{', '.join([*keys, '0'])}}};")
                by = self.names.index(item.key, index.number)
                self.out.open(f"for (int64_t {entry} = {by}.begin({array}); {entry}; {entry} = {by}.next({entry}))")
                self.out.line("if (spend(1)) return;")
                self.out.line(f"const int64_t {at} = {by}.cell({entry});")
                if self.plan.changes is not None:  # what was deleted stays in the index
                    self.out.open(f"if ({name}.popped.test({at}))")
                self._cell(item, table, at)
        self._passenger(i, at)

    def _row(self, item: Item, table: Table) -> tuple[str, int]:
        """The first cell of the row of a dense table in which all but the last stored argument are known, or -1."""
        name = self.names.table[item.key]
        free = table.order[-1]
        texts = {i: self.build(item.arguments[i], table.domains[i], False) for i in table.order[:-1]}
        row = self.fresh("row")
        last = f"{name}.range[{table.arity - 1}].low"
        stored = ", ".join([*(texts[i] for i in table.order[:-1]), last])
        checked = f"{name}.inside({stored}) ? {name}.cell({stored}) : -1"
        self.out.line(f"const int64_t {row} = {checked};")
        return row, free

    def _columns(self, i: int, at: str) -> None:
        item, table, name = self.rule.antecedents[i].item, self.table_of[i], self.place(i)
        for k, term in enumerate(item.arguments):
            if self._known(term):
                continue
            self.match(term, f"{name}.column({k})[{at}]", table.domains[k])

    def _cell(self, item: Item, table: Table, at: str) -> None:
        name = self.names.table[item.key]
        array = self.fresh("arguments")
        self.out.line(f"int32_t {array}[{max(1, table.arity)}];")
        self.out.line(f"{name}.arguments({at}, {array});")
        for place, k in enumerate(table.order):
            if not self._known(item.arguments[k]):
                self.match(item.arguments[k], f"{array}[{place}]", table.domains[k])

    def _known(self, term: Term) -> bool:
        """Whether an index already made sure of an argument: a constant or a bound variable at top level."""
        return (isinstance(term, Variable) and term.name in self.bound) or not term_variables(term)

    def _absent(self, step: Absent) -> None:
        table = self.plan.tables[step.item.key]
        name = self.names.table[step.item.key]
        if step.index < 0:
            texts = self._arguments_or_none(step.item, table)
            self.out.open(f"if ({name}.find({self._stored(table, texts)}) < 0)")
            return
        index = self.plan.indexes[step.index]
        domains = key_domains(self.plan, index)
        keys = [self.build(t, d, True) for t, d in zip(step.keys, domains, strict=True)]
        if table.kind == "facts":
            found = self.fresh("found")
            self.out.line(f"const auto {found} = {name}.by{index.number}().find({', '.join(keys)});")
            self.out.open(f"if ({found}.begin == {found}.end)")
        else:
            array = self.fresh("key")
            self.out.line(f"const int32_t {array}[] = {{{', '.join([*keys, '0'])}}};")
            self.out.open(f"if (!{self.names.index(step.item.key, index.number)}.begin({array}))")

    def _arguments_or_none(self, item: Item, table: Table) -> list[str]:
        return [self.build(t, d, True) for t, d in zip(item.arguments, table.domains, strict=True)]

    # -- the head

    def _head(self) -> None:
        table = self.plan.tables[self.rule.head.key]
        name = self.names.table[self.rule.head.key]
        if self.mark:
            texts = self._arguments(self.rule.head, table, self.plan.resolves)  # there it may be new
            self.out.line(f"mark_{name}({', '.join(texts)});")
            return
        value = self._value(table)
        texts = self._arguments(self.rule.head, table, True)
        if may_excuse(self.plan, table):
            value = self._excuse(table, name, value, texts)
        self.out.line("updates.count++;")
        self.out.line(f"{self.names.add(table.key)}({', '.join([*texts, value])});")

    def _excuse(self, table: Table, name: str, value: str, texts: Sequence[str]) -> str:
        """Where a contribution is infinite, whether something that it is made of is, too; the contribution's name."""
        legal, passed = [], []
        for i, x in sorted(self.values.items()):
            antecedent = self.table_of[i]
            infinite = f"!isfinite(semiring::primal({x}))"
            if antecedent.key not in self.stage.keys:
                legal.append(infinite)
                continue
            if not may_excuse(self.plan, antecedent):
                continue
            excuses = [f"(flags_of(excused_{self.names.table[antecedent.key]}, {self.cells[i]}) & 1)"]
            nothing = not_nothing(antecedent, x)
            if nothing:
                excuses.append(f"!({nothing})")
            legal.append(f"({infinite} && ({' || '.join(excuses)}))")
            passed.append(infinite)
        if not legal:
            return value
        x = self.fresh("contribution")
        self.out.line(f"const value_t {x} = {value};")
        self.out.open(f"if (__builtin_expect(!isfinite(semiring::primal({x})), 0))")
        self.out.line(
            f"uint8_t& flags = grown(excused_{name}, {name}.locate({self._stored(table, texts)}), (uint8_t)0);"
        )
        self.out.line(f"if ({' || '.join(legal)}) flags |= 1;")
        if passed and self.stage.strategy == "sweep":
            self.out.line(f"else if ({' || '.join(passed)}) flags |= 2;")
        self.out.close()
        return x

    def _value(self, table: Table) -> str:
        if not self.plain:
            if self.in_order:
                for which, antecedent in product_order(self.rule.value):
                    weight = self.names.weight(self.rule, which[0], which[1]) if which is not None else ""
                    self.multiply(weight if antecedent is None else self.values[antecedent])
            weight = self.weight if self.weight is not None else "semiring::one()"
            return f"semiring::settled({weight})" if self.unsettled else weight
        now = self.plain_value(self.values)
        if not self.subtracts(table):
            return now
        before = self.plain_value({**self.values, **self.old}, prefix="s", unless="first")
        return f"first ? {now} : semiring::minus({now}, {before})"

    def subtracts(self, table: Table) -> bool:
        """Whether an update of a plain head is new minus old."""
        driver = self.join.driver
        if driver is None or self.stage.final or table.aggregator != "+=":
            return False
        return not self.rule.antecedents[driver].side

    def plain_value(self, values: Mapping[int, str], prefix: str = "t", unless: str = "") -> str:
        """The right side of a plain rule, after its statements; functions are not called `unless` it is needed."""
        names = {f"x{i}": text for i, text in values.items()}
        code = value_cxx(self.rule, self.plan.functions, names, prefix, self.plan.order, self.names.functions)
        self.compute(code, unless)
        return code.results[0]

    def compute(self, code: Code, unless: str = "") -> None:
        """What is to be done before the results are there. A function that fails, or has to stop, ends the rule."""
        for statement in code.statements:
            self.out.line(statement)
        if not code.call:
            return
        self.out.open(f"if ({f'!{unless} && ' if unless else ''}{code.call} != 0)")
        self.out.line("if (halt) return;")
        self.out.line(f'functions.blame("{code.name}");')
        table = self.plan.tables[self.rule.head.key]
        self.out.line(f"return {self.failing}(function_failed, {table.number}, {self.head_cell(table)});")
        self.out.close()

    failing = "fail"

    def head_cell(self, table: Table) -> str:
        """Where the head is."""
        texts = self._arguments(self.rule.head, table, True)
        return f"{self.names.table[table.key]}.locate({self._stored(table, texts)})"

    @property
    def _factors(self) -> str:
        """The product so far; what rows are multiplied by is settled there."""
        return self.weight if self.weight is not None else "semiring::one()"

    def _side_by_side(self, step: Scan, variable: str) -> None:
        """The last scan and the head run over one variable: a row is added to a row."""
        name, row, head_name, to, shift = self._rows(step)
        self.out.line(
            f"add_row({name}, {row}, {head_name}, {to}, {shift}, {self._factors}, this, "
            f"{self.names.arrive(self.rule.head.key)});  // side by side over {comment(variable)}"
        )

    def _stretch(self, step: Scan, variable: str, found: str) -> None:
        """The same where the last scan is over the facts of a stretch, if they turn out to lie side by side.

        What follows is done for facts that do not.
        """
        item = self.rule.antecedents[step.antecedent].item
        name, head = self.names.table[item.key], self.plan.tables[self.rule.head.key]
        column = f"{name}.column({item.arguments.index(Variable(variable))})"
        place = head.order[-1]
        self.out.open(f"if ({name}.by{step.index}().side_by_side({found}, {column}))")
        self.out.lines[-1] += f"  // over {comment(variable)}"
        texts = [
            f"{column}[{found}.begin]" if i == place else self.build(term, head.domains[i], True)
            for i, term in enumerate(self.rule.head.arguments)
        ]
        to = self.fresh("to")
        self.out.line(f"const int64_t {to} = {self.names.table[head.key]}.cell({self._stored(head, texts)});")
        self._along(name, found, self.names.table[head.key], to)
        self.out.close()
        self.out.open("else")

    def _along(self, name: str, found: str, head_name: str, to: str) -> None:
        self.out.line(
            f"add_stretch({name}.value, {found}.begin, {found}.end - {found}.begin, {head_name}, {to}, "
            f"{self._factors}, this, {self.names.arrive(self.rule.head.key)});"
        )

    def _rows(self, step: Scan) -> tuple[str, str, str, str, str]:
        """The row of the last scan and that of the head: table and first cell of each, and how far they are shifted."""
        item, table = self.rule.antecedents[step.antecedent].item, self.table_of[step.antecedent]
        head = self.plan.tables[self.rule.head.key]
        name, head_name = self.names.table[item.key], self.names.table[self.rule.head.key]
        row, _ = self._row(item, table)
        self.out.open(f"if ({row} >= 0)")
        self.out.line(f"if (spend({name}.row_length() / 8)) return;")
        place = head.order[-1]
        texts = {i: self.build(self.rule.head.arguments[i], head.domains[i], True) for i in head.order if i != place}
        low = f"{head_name}.range[{head.arity - 1}].low"
        stored = ", ".join([*(texts[i] for i in head.order[:-1]), low])
        to = self.fresh("to")
        self.out.line(f"const int64_t {to} = {head_name}.cell({stored});")
        shift = "0" if name == head_name else f"{name}.range[{table.arity - 1}].low - {low}"
        return name, row, head_name, to, shift


def key_domains(plan: Plan, index: IndexPlan) -> list[int | None]:
    """The domain of each key of an index: that of its top-level place, or None for a part of a term."""
    table = plan.tables[index.key]
    domains: list[int | None] = []
    for name in index.by:
        places = [i for i, t in enumerate(index.pattern) if isinstance(t, Variable) and t.name == name]
        domains.append(table.domains[places[0]] if places else None)
    return domains
