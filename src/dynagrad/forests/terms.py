"""Terms of rules against values, in plain Python: matching, integer arithmetic, and conditions.

It is an evaluator of its own, which has nothing in common with the engine: what the engine derives is checked by it.
Values are those of facts: a `str` is a symbol, and a list is a tuple, which is `nil` where it is empty.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..facts.terms import Term, arguments_of, canonical, same_term, term_text
from ..rules.show import show
from ..rules.syntax import (
    Application,
    Arithmetic,
    Comparison,
    Compound,
    Condition,
    Equation,
    Expression,
    Float,
    Integer,
    Item,
    ItemValue,
    Negation,
    Rule,
    Side,
    Symbol,
    Variable,
)
from ..rules.syntax import Term as Pattern

Value = Any
Row = tuple[Value, ...]


class Unbound(Exception):
    """A term has a variable that is not known."""


def same(a: Value, b: Value) -> bool:
    """Whether two values are the same term: 1 is not 1.0, and the empty list is `nil`."""
    if isinstance(a, str | int | float) and isinstance(b, str | int | float):
        return type(a) is type(b) and a == b
    return same_term(canonical(_list(a)), canonical(_list(b)))


def hashed(value: Value) -> Hashable:
    """A key that two values share where they are the same."""
    if isinstance(value, tuple | Term) or (isinstance(value, str) and value == "nil"):
        return Term("value", _list(value))
    return (type(value).__name__, value) if isinstance(value, int | float) else value


def _list(a: Value) -> Value:
    return () if a == "nil" and isinstance(a, str) else a


_WHOLE: Mapping[str, Callable[..., int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "mod": operator.mod,
    "neg": operator.neg,
    "abs": abs,
    "min": min,
    "max": max,
}
_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "=<": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass
class PartialMatch:
    """The variables of a rule that are known, and equations that wait for more of them."""

    known: dict[str, Value] = field(default_factory=dict)
    waiting: list[tuple[Pattern, Pattern | None, Value]] = field(default_factory=list)

    def copy(self) -> PartialMatch:
        return PartialMatch(dict(self.known), list(self.waiting))

    # -- values of terms

    def value(self, term: Pattern) -> Value:
        """The value of a term. Raises Unbound."""
        match term:
            case Variable(name=name):
                if name not in self.known:
                    raise Unbound
                return self.known[name]
            case Symbol(name=name):
                return name
            case Integer(value=value) | Float(value=value):
                return value
            case Compound(functor=functor, arguments=arguments):
                return canonical(Term(functor, *(self.value(a) for a in arguments))) if arguments else functor
            case Arithmetic(operator=name, operands=operands):
                numbers = [self.value(o) for o in operands]
                if not all(type(n) is int for n in numbers):
                    raise ArithmeticError
                return _WHOLE[name](*numbers)
        raise TypeError(f"no term: {term!r}")

    # -- matching

    def match(self, pattern: Pattern, value: Value) -> bool:
        """Whether a value fits a pattern; binds its variables. Arithmetic that cannot be worked out yet waits."""
        match pattern:
            case Variable(name=name):
                if name in self.known:
                    return same(self.known[name], value)
                self.known[name] = value
                return True
            case Symbol() | Integer() | Float():
                return same(self.value(pattern), value)
            case Compound(functor=functor, arguments=arguments):
                parts = arguments_of(value, functor, len(arguments))
                return parts is not None and all(self.match(p, v) for p, v in zip(arguments, parts, strict=True))
            case Arithmetic():
                self.waiting.append((pattern, None, value))
                return True

    def match_item(self, item: Item, row: Row) -> bool:
        return len(item.arguments) == len(row) and all(
            self.match(p, v) for p, v in zip(item.arguments, row, strict=True)
        )

    def equate(self, left: Pattern, right: Pattern) -> None:
        self.waiting.append((left, right, None))

    def settle(self) -> bool:
        """Works out the equations that can be; false where one does not hold."""
        progress = True
        while progress and self.waiting:
            progress = False
            for equation in list(self.waiting):
                how = self._try(*equation)
                if how is None:
                    continue
                self.waiting.remove(equation)
                progress = True
                if not how:
                    return False
        return True

    def _try(self, left: Pattern, right: Pattern | None, value: Value) -> bool | None:
        """Whether an equation holds; None where too little is known."""
        sides = [(left, right)] if right is None else [(left, right), (right, left)]
        for a, b in sides:
            try:
                target = value if b is None else self.value(b)
            except Unbound:
                continue
            except (ArithmeticError, ZeroDivisionError):
                return False
            try:
                return same(self.value(a), target)
            except Unbound:
                pass
            except (ArithmeticError, ZeroDivisionError):
                return False
            if not isinstance(a, Arithmetic):
                return self.match(a, target)
            solved = self._solve(a, target)
            if solved is not None:
                return solved
        return None

    def _solve(self, term: Pattern, target: Value) -> bool | None:
        """Solves arithmetic for its one unknown variable, by undoing what is done to it; None where it cannot be."""
        while isinstance(term, Arithmetic):
            if type(target) is not int:
                return False
            if term.operator == "neg":
                term, target = term.operands[0], -target
                continue
            if term.operator not in ("+", "-", "*"):
                return None
            left, right = term.operands
            try:
                number, unknown, on_left = self.value(right), left, True
            except Unbound:
                try:
                    number, unknown, on_left = self.value(left), right, False
                except Unbound:
                    return None
            if type(number) is not int:
                return False
            if term.operator == "+":
                target -= number
            elif term.operator == "-":
                target = target + number if on_left else number - target
            elif number == 0:
                return None
            elif target % number:
                return False
            else:
                target //= number
            term = unknown
        return self.match(term, target)

    # -- conditions

    def holds(self, condition: Condition, derived: Callable[[Item, PartialMatch], bool]) -> bool:
        """Whether a condition holds, all of whose variables are known; `derived` says whether some item matches."""
        match condition:
            case Negation(item=item):
                return not derived(item, self)
            case Equation(left=left, right=right):
                return same(self.value(left), self.value(right))
            case Comparison(operator="==" | "!=" as name, left=left, right=right):
                return same(self.value(left), self.value(right)) == (name == "==")
            case Comparison(operator=name, left=left, right=right):
                a, b = self.value(left), self.value(right)
                return type(a) is int and type(b) is int and _COMPARED[name](a, b)
        raise TypeError(f"no condition: {condition!r}")

    # -- text

    def fill(self, term: Pattern) -> Pattern:
        """A term with what is known of its variables in their places, and arithmetic worked out where it can be."""
        match term:
            case Variable(name=name):
                return syntax(self.known[name]) if name in self.known else term
            case Arithmetic(operator=name, operands=operands):
                try:
                    return syntax(self.value(term))
                except (Unbound, ArithmeticError):
                    return Arithmetic(name, tuple(map(self.fill, operands)))
            case Compound(functor=functor, arguments=arguments):
                return Compound(functor, tuple(map(self.fill, arguments)))
        return term

    def fill_item(self, item: Item) -> Item:
        return replace(item, arguments=tuple(map(self.fill, item.arguments)))

    def text(self, term: Pattern) -> str:
        """A term with what is known of its variables; others as they are called."""
        match term:
            case Variable(name=name, anonymous=anonymous):
                return term_text(self.known[name]) if name in self.known else "_" if anonymous else name
            case Arithmetic(operator="neg", operands=(inner,)):
                return f"-{self.text(inner)}"
            case Arithmetic(operator=name, operands=operands) if name in ("abs", "min", "max"):
                return f"{name}({','.join(map(self.text, operands))})"
            case Arithmetic(operator=name, operands=(a, b)):
                sign = f" {name} " if name == "mod" else name
                return f"{self.text(a)}{sign}{self.text(b)}"
            case Compound(functor=functor, arguments=arguments):
                try:
                    return term_text(self.value(term))
                except (Unbound, ArithmeticError, ZeroDivisionError):
                    return f"{functor}({','.join(map(self.text, arguments))})"
        return term_text(self.value(term))

    def item_text(self, item: Item) -> str:
        return show(self.fill_item(item))

    def condition_text(self, condition: Condition) -> str:
        if isinstance(condition, Negation):
            return f"not {self.item_text(condition.item)}"
        sign = "=" if isinstance(condition, Equation) else condition.operator
        return f"{self.text(condition.left)} {sign} {self.text(condition.right)}"


def syntax(value: Value) -> Pattern:
    """A value as it is written."""
    if isinstance(value, str):
        return Symbol(value)
    if isinstance(value, float):
        return Float(value)
    if isinstance(value, int):
        return Integer(value)
    if isinstance(value, Term):
        return Compound(value.functor, tuple(map(syntax, value.arguments)))
    listed: Pattern = Symbol("nil")
    for element in reversed(value):
        listed = Compound("cons", (syntax(element), listed))
    return listed


def body_items(rule: Rule) -> list[tuple[Item, bool]]:
    """The items on the right side of a rule, in the order of the text; and of each, whether it stands under `SIDE`."""
    found: list[tuple[Item, bool]] = []
    stack: list[Expression] = [rule.body]
    while stack:
        match stack.pop():
            case ItemValue(item=item):
                found.append((item, False))
            case Side(item=item):
                found.append((item, True))
            case Application(operands=operands):
                stack.extend(reversed(operands))
    return found


def bind_rule(rule: Rule, head: Row, rows: Sequence[Row]) -> PartialMatch | None:
    """The variables of a rule as it is written, whose head and items are known; None where they do not fit it."""
    items = [item for item, _ in body_items(rule)]
    if len(items) != len(rows):
        return None
    return bind(rule.head, head, zip(items, rows, strict=True), rule.conditions)


def instance_text(rule: Rule, bindings: PartialMatch) -> str:
    """A rule with what is known of its variables in their places."""

    def fill(node: Expression) -> Expression:
        match node:
            case ItemValue(item=item):
                return ItemValue(bindings.fill_item(item))
            case Side(item=item):
                return Side(bindings.fill_item(item))
            case Application(operator=name, operands=operands):
                return Application(name, tuple(map(fill, operands)))
        return node

    head = bindings.fill_item(rule.head)
    return show(Rule(head, rule.aggregator, fill(rule.body), (), rule.text)).removesuffix(".")


def bind(
    head: Item, row: Row, items: Iterable[tuple[Item, Row]], conditions: Iterable[Condition]
) -> PartialMatch | None:
    """The variables of a rule whose head and items are known; None where they do not fit the rule."""
    bindings = PartialMatch()
    for item, values in items:
        if not bindings.match_item(item, values):
            return None
    if not bindings.match_item(head, row):
        return None
    for condition in conditions:
        if isinstance(condition, Equation):
            bindings.equate(condition.left, condition.right)
    return bindings if bindings.settle() else None


def variables(term: Pattern) -> Iterator[str]:
    """The names of the variables of a term."""
    stack = [term]
    while stack:
        node = stack.pop()
        if isinstance(node, Variable):
            yield node.name
        elif isinstance(node, Compound):
            stack.extend(node.arguments)
        elif isinstance(node, Arithmetic):
            stack.extend(node.operands)
