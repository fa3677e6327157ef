"""Names and slots of constants in a class (`Names`), and terms matched, built and compared as C++ (`RuleScope`).

Nothing is looked up or joined here: `nests.py` does, with the scopes of this file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from ...errors import ProgramError
from ...plan.joins import term_variables
from ...plan.model import Plan
from ...plan.nest import Let
from ...rules.normal import NormalRule
from ...rules.show import show
from ...rules.syntax import Arithmetic, Compound, Float, Integer, Symbol, Term, Variable
from ..cxx import Writer, comment
from .functions import Functions


class Names:
    """C++ names of predicates, and slots of the constants in the program's text.

    Slots are assigned as a class is written. A class that works on charts of another one starts with the slots of
    that, `like`.
    """

    def __init__(self, plan: Plan, like: Names | None = None) -> None:
        self.plan = plan
        self.table: Mapping[str, str] = {key: table_name(key, table.number) for key, table in plan.tables.items()}
        self.places = places_of(plan)
        self.constants: dict[tuple[int | None, Term], int] = {}  # as syntax, in which f(1) is not f(1.0)
        self.functors: dict[tuple[str, int], int] = {}
        self.weights: dict[tuple[int, int], int] = {}  # (rule, which constant) -> slot
        self.weight_values: list[float | int] = []
        self.functions: Functions = Functions(None if like is None else like.functions)
        if like is not None:
            self.constants, self.functors = dict(like.constants), dict(like.functors)
            self.weights, self.weight_values = dict(like.weights), list(like.weight_values)

    @property
    def slots(self) -> tuple[int, int, int]:
        """The numbers of slots: of constants, of functors, of weights."""
        return len(self.constants), len(self.functors), len(self.weight_values)

    def constant(self, domain: int | None, term: Term) -> str:
        """The slot of a ground term in a domain; None stands for a part of a term."""
        slot = self.constants.setdefault((domain, term), len(self.constants))
        return f"world->constant[{slot}]"

    def by(self, number: int) -> str:
        """The name of an index in its table, so that tables which are alike have the same."""
        return f"by{self.places[number]}"

    def index(self, number: int) -> str:
        """An index of a derived predicate."""
        return f"{self.table[self.plan.indexes[number].key]}.{self.by(number)}"

    def arrive(self, key: str) -> str:
        """A pointer to the function that is called for the new items of a row operation."""
        return f"arriving<program, &program::{self.table[key]}>"

    def functor(self, name: str, arity: int) -> int:
        return self.functors.setdefault((name, arity), len(self.functors))

    def weight(self, rule: NormalRule, which: int, value: float | int) -> int:
        """The slot of a constant of a rule's value."""
        place = (rule.number, which)
        if place not in self.weights:
            self.weights[place] = len(self.weight_values)
            self.weight_values.append(value)
        return self.weights[place]


def places_of(plan: Plan) -> Sequence[int]:
    """The place of each index among those of its table."""
    seen = Counter[str]()
    places = []
    for index in plan.indexes:
        places.append(seen[index.key])
        seen[index.key] += 1
    return places


def table_name(key: str, number: int) -> str:
    """The C++ name of a predicate: its number keeps it apart, what follows is for those who read the source.

    Names that are made of it (`add_p1_path`, `p1_path_by0`) begin with words of this package and end with them; none of
    these has a part of `p` and digits, and neither has a name of the runtime. So the first such part of a name says
    which predicate it is of, what stands before and behind it says what it is, and no two names are the same, whatever
    predicates are called.

    >>> table_name("path/2", 1), table_name("add_a/1", 2), table_name("'N P'/0", 3), table_name("été/1", 4)
    ('p1_path', 'p2_add_a', 'p3_N_P', 'p4_t')
    """
    plain = re.sub(r"[^A-Za-z0-9]+", "_", key.rsplit("/", 1)[0]).strip("_")
    return f"p{number}_{plain[:40]}"


def local(name: str) -> str:
    """The C++ name of a rule variable: its own with an underscore behind it, as no macro or name of the runtime has.

    >>> local("X"), local("Word"), local("NULL"), local("__FILE_"), local("X²")
    ('X_', 'Word_', 'NULL_', 'var__5f__5f_FILE_5f_', 'var_X_b2_')
    """
    if name.startswith("_") or not name.isascii():
        return "var_" + "".join(c if c.isascii() and c.isalnum() else f"_{ord(c):x}_" for c in name)
    return name + "_"


class RuleScope:
    """The variables of one rule, and which of them are bound, while a function for it is written."""

    def __init__(self, plan: Plan, names: Names, variables: Mapping[str, int | None], writer: Writer) -> None:
        self.plan, self.names, self.variables, self.out = plan, names, variables, writer
        self.bound: set[str] = set()
        self.read: set[str] = set()  # names in C++ of what was read
        self.number = 0  # of the rule, where it is one of the program's
        self.maker = ""  # what makes new terms, where that is not sure; it says -1 for one that is not made
        self._fresh: Counter[str] = Counter()

    def fresh(self, what: str) -> str:
        """A name for another local of a kind: `at`, `at2`, ..."""
        self._fresh[what] += 1
        return what if self._fresh[what] == 1 else f"{what}{self._fresh[what]}"

    def kind(self, domain: int | None) -> str:
        return "term" if domain is None else self.plan.summary.domains[domain].kind

    def domain(self, variable: str) -> int | None:
        return self.variables.get(variable)

    # -- matching an argument with a pattern

    def match(self, term: Term, text: str, domain: int | None) -> None:
        """Opens blocks that are entered where the code `text`, of a domain (None: a part of a term), matches `term`."""
        match term:
            case Variable(name=name):
                is_int = self.kind(self.domain(name)) == "int"
                if is_int and self.kind(domain) == "term":  # an integer inside a term, or among terms
                    node = self.fresh("node")
                    self.out.line(f"const Terms::Node {node} = world->terms.node({text});")
                    self.out.open(f"if ({node}.kind == Terms::integer)")
                    text = f"{node}.payload"
                if name in self.bound:
                    self.out.open(f"if ({self.name(name)} == {text})")
                else:
                    self.bound.add(name)
                    self.bind(name, text)
            case Compound(functor=functor, arguments=arguments) if term_variables(term):
                number = self.names.functor(functor, len(arguments))
                note = f"{comment(functor)}/{len(arguments)}"
                self.out.open(f"if (world->terms.is({text}, {number}, {len(arguments)}))", note)
                for i, argument in enumerate(arguments):
                    part = f"world->terms.arguments({text})[{i}]"
                    if isinstance(argument, Compound) and term_variables(argument):  # it is looked at more than once
                        whole, part = part, self.fresh("part")
                        self.out.line(f"const int32_t {part} = {whole};")
                    self.match(argument, part, None)
            case _:
                self.out.open(f"if ({text} == {self.literal(term, domain)})")

    def bind(self, variable: str, text: str) -> None:
        """Makes a variable what the code `text` is."""
        self.out.line(f"const int32_t {local(variable)} = {text};")

    def name(self, variable: str) -> str:
        """The code of a variable that is bound."""
        self.read.add(local(variable))
        return local(variable)

    # -- building a term whose variables are bound

    def literal(self, term: Term, domain: int | None) -> str:
        """The code of a ground term in a domain; that of `1` depends on the domain's kind."""
        kind = self.kind(domain)
        if kind != "int":
            return self.names.constant(domain if kind == "atom" else None, term)
        if not isinstance(term, Integer):
            raise self.error(f"only integers can stand here, not {show(term)}", term)
        return whole_literal(term.value)

    def build(self, term: Term, domain: int | None, create: bool, into: str | None = None) -> str:
        """The code of a term; unless `create`, blocks are opened that are not entered where the term does not exist.

        A number is computed `into` the local of a variable, if that is given and its code is the number.
        """
        match term:
            case Variable(name=name):
                if self.kind(domain) == "term" and self.kind(self.domain(name)) == "int":
                    boxed = self.fresh("boxed")
                    self._term(boxed, f"Terms::integer, {self.name(name)}, nullptr, 0", create)
                    return boxed
                return self.name(name)
            case Compound(functor=functor, arguments=arguments) if term_variables(term):
                parts = [self.build(a, None, create) for a in arguments]
                number = self.names.functor(functor, len(arguments))
                array, made = self.fresh("parts"), self.fresh("term")
                self.out.line(f"const int32_t {array}[] = {{{', '.join(parts)}}};")
                note = f"{comment(functor)}/{len(arguments)}"
                self._term(made, f"Terms::compound, {number}, {array}, {len(arguments)}", create, note)
                return made
            case Arithmetic():
                wanted = into if into is not None and self.kind(domain) != "term" else None
                made = self.fresh("number") if wanted is None else local(wanted)
                self.out.line(f"const int32_t {made} = arithmetic.narrow({self.whole(term)});")
                self._stop_without_result()
                if self.kind(domain) != "term":
                    return made
                boxed = self.fresh("boxed")
                self.out.line(f"const int32_t {boxed} = world->terms.make(Terms::integer, {made}, nullptr, 0);")
                return boxed
        return self.literal(term, domain)

    def _term(self, name: str, parts: str, create: bool, note: str = "") -> None:
        """Declares the code of a term; opens a block where there may be none."""
        sure = create and not self.maker
        call = f"{self.maker}(world->terms, {parts})" if create and self.maker else ""
        call = call or f"world->terms.{'make' if create else 'find'}({parts})"
        self.out.line(f"const int32_t {name} = {call};", note)
        if not sure:
            self.out.open(f"if ({name} >= 0)")

    def _stop_without_result(self) -> None:
        """Ends the run where integer arithmetic overflows or divides by zero; the report says which, in which rule."""
        self.out.line(
            "if (__builtin_expect(arithmetic.overflow != 0, 0)) "
            f"return fail(integer_overflow, -1 - arithmetic.overflow, {self.number});"
        )

    def whole(self, term: Term, inside: bool = False) -> str:
        """Integer arithmetic in 64 bits, in parentheses if it is `inside` an operator."""
        match term:
            case Variable(name=name):
                return f"(int64_t){self.name(name)}"
            case Integer(value=value):
                return whole_literal(value)
            case Arithmetic(operator="neg", operands=(inner,)) if size(inner) >= 1 << 63:
                return f"arithmetic.difference(0, {self.whole(inner)})"
            case Arithmetic(operator="neg", operands=(inner,)):
                return f"(-{self.whole(inner, True)})" if inside else f"-{self.whole(inner, True)}"
            case Arithmetic(operator=operator, operands=operands) if operator in CALLS:
                return f"arithmetic.{CALLS[operator]}({', '.join(map(self.whole, operands))})"
            case Arithmetic(operator=operator, operands=(left, right)):
                if size(term) >= 1 << 63:
                    name = "sum" if operator == "+" else "difference"
                    return f"arithmetic.{name}({self.whole(left)}, {self.whole(right)})"
                text = f"{self.whole(left, True)} {operator} {self.whole(right, True)}"
                return f"({text})" if inside else text
        raise self.error(f"{show(term)} is not a whole number", term)

    def is_whole(self, term: Term) -> bool:
        match term:
            case Variable(name=name):
                return self.kind(self.domain(name)) == "int"
            case Integer() | Arithmetic():
                return True
        return False

    def side_domain(self, *terms: Term) -> int | None:
        """The domain in which both sides of a comparison are encoded: one of terms if there is one."""
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
            if may_fail(left) or may_fail(right):  # computed first, to see that before the comparison decides
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

    def let(self, step: Let) -> None:
        """Binds a variable to the value of a term."""
        # The sides of an equation share a domain, in which constants have codes: that of 1 need not be 1.
        text = self.build(step.term, self.domain(step.variable), True, step.variable)
        if text != local(step.variable):
            self.bind(step.variable, text)
        self.bound.add(step.variable)
        if step.exact is not None:
            self.compare("==", *step.exact)


class PatternScope(RuleScope):
    """The variables of a pattern that is matched with stored items, each with its domain.

    Patterns are those of indexes and declarations. Variables are read once or not at all, so they get no locals.
    """

    def __init__(self, plan: Plan, names: Names, variables: Mapping[str, int | None], writer: Writer) -> None:
        super().__init__(plan, names, variables, writer)
        self.texts: dict[str, str] = {}

    def bind(self, variable: str, text: str) -> None:
        self.texts[variable] = text

    def name(self, variable: str) -> str:
        return self.texts[variable]


CALLS = {"*": "product", "//": "quotient", "mod": "remainder", "abs": "absolute", "min": "least", "max": "most"}
"""Integer operations that are functions of `Arithmetic` in the runtime; others are C++ operators."""


def whole_literal(value: int) -> str:
    """An integer of at most 64 bits in C++, where literals have no sign, so that the least ones are differences.

    >>> whole_literal(7), whole_literal(-7), whole_literal(-(2**31))
    ('7', '(-7)', '(-2147483647 - 1)')
    """
    if value in (-(2**31), -(2**63)):
        return f"({value + 1} - 1)"
    return str(value) if value >= 0 else f"({value})"


def may_fail(term: Term) -> bool:
    """Whether integer arithmetic may have no result in 64 bits, so that functions compute it that notice."""
    match term:
        case Arithmetic(operator=operator, operands=operands):
            return operator in CALLS or size(term) >= 1 << 63 or any(map(may_fail, operands))
    return False


def size(term: Term) -> int:
    """A bound on the magnitude of an integer expression; from 2**63 on it may overflow 64 bits."""
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
    return 1 << 63  # products are checked by the runtime


def python_value(term: Term) -> object:
    """A ground term as a Python value: str, int, float, or for compounds ("term", functor, arguments)."""
    match term:
        case Symbol(name=name):
            return name
        case Integer(value=value):
            return value
        case Float(value=number):
            return number
        case Compound(functor=functor, arguments=arguments):
            # iterative in the last argument, because lists are long chains through it
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
