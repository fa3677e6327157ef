"""Name resolution: raw trees to syntax, once all statements are read.

Only then is it known whether `h(a)` is an item, a built-in operation or a declared function of values. Lists and
slashes become compound terms on the way; whether what is named may be used so is checked by `rules/check.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

from ...errors import Span, SyntaxError
from ..syntax import (
    COMPARISONS,
    FUNCTIONS,
    INTEGER_FUNCTIONS,
    MAX_DEPTH,
    ONE,
    AgendaDeclaration,
    Application,
    Arithmetic,
    BeamDeclaration,
    Comparison,
    Compound,
    Condition,
    Declaration,
    DistributionDeclaration,
    Equation,
    Expression,
    Float,
    Integer,
    Item,
    ItemValue,
    Negation,
    Numeral,
    PredicateDeclaration,
    PriorityDeclaration,
    PruneDeclaration,
    Rule,
    SemiringDeclaration,
    ShowDeclaration,
    Side,
    SolveDeclaration,
    Symbol,
    Term,
    Type,
    TypeDeclaration,
    TypeName,
    Variable,
    VariableValue,
)
from .driver import Token
from .raw import (
    SPELLINGS,
    RawAnonymous,
    RawCall,
    RawLiteral,
    RawOperation,
    RawStatement,
    RawType,
    name_of,
    span_of,
    span_over,
)

_TERM_OPERATORS = frozenset(("+", "-", "*", "//", "mod", "neg"))
_VALUE_OPERATORS = frozenset(("+", "-", "*", "/", "^", "neg"))
_ATOMIC = frozenset((Variable, Symbol, Integer, Float))


_WORD = re.compile(r"\b_[0-9]+\b")
# Hints for operators that terms do not have.
_INSTEAD = {
    "^": " A power (`^` or `**`) of an integer is a product, such as `K*K`, or a table of facts, such as `power(K,P)`.",
}
_LAYOUT = re.compile(r"""('[^'\\\n]*(?:\\.[^'\\\n]*)*'|"[^"\\\n]*(?:\\.[^"\\\n]*)*")|(?:%[^\n]*|\s)+""")


def _one_line(text: str) -> str:
    """A statement without comments and line breaks."""
    if "\n" not in text and "%" not in text:
        return text
    return _LAYOUT.sub(lambda match: match[1] or " ", text)


class Resolver:
    """Name resolution: raw statements to syntax, with the names of predicates and of functions of values known."""

    def __init__(self, text: str, filename: str, statements: Iterable[RawStatement] = ()) -> None:
        self.text, self.filename = text, filename
        self.predicates: set[str] = set()
        self.functions: dict[str, int] = {}
        self.taken = set(_WORD.findall(text)) if "_" in text else set()
        self.anonymous = 0
        for statement in statements:
            self._learn(statement)

    def _learn(self, statement: RawStatement) -> None:
        """Collects the names of predicates and functions that a statement introduces."""
        parts = statement.parts
        if statement.kind in ("rule", "fact", "clause"):
            if isinstance(parts[0], RawCall):
                self.predicates.add(f"{parts[0].name}/{len(parts[0].arguments)}")
        elif statement.kind == "type_declaration":
            self.predicates.update(f"{signature.name}/{len(signature.unions)}" for signature in parts[2])
        elif statement.kind == "predicates":
            for name, arity, _ in parts[2]:
                if parts[1].type == "FUNCTION":
                    self.functions[name] = arity
                else:
                    self.predicates.add(f"{name}/{arity}")

    def error(self, message: str, span: Span) -> SyntaxError:
        return SyntaxError(message, self.text, span, self.filename)

    def too_deep(self, span: Span) -> SyntaxError:
        return self.error(
            f"This is nested more than {MAX_DEPTH} deep. Give deep terms and long lists as facts, and split long "
            "expressions with a predicate of their own.",
            span,
        )

    # Terms.

    def term(self, raw: Any, depth: int = 0, computed: bool = False) -> Term:
        """A term. In conditions (`computed`), `abs`, `min` and `max` are functions of integers."""
        kind = type(raw)
        if kind in _ATOMIC:
            return raw  # type: ignore[no-any-return]  # operations and visitors return anything
        if kind is RawAnonymous:
            return self._anonymous(raw)
        if depth >= MAX_DEPTH:
            raise self.too_deep(raw.span)
        if kind is RawCall:
            arguments = self.terms(raw.arguments, depth + 1, computed)
            if computed and not raw.quoted and self._is_function(raw):
                return Arithmetic(raw.name, arguments, raw.span)
            return Compound(raw.name, arguments, raw.span)
        if kind is RawLiteral:
            return self._literal_term(raw)
        operator, operands = raw.operator, raw.operands
        if operator in _TERM_OPERATORS:
            return Arithmetic(operator, self.terms(operands, depth + 1, computed), raw.span)
        if operator == "/":
            return Compound("slash", self.terms(operands, depth + 1, computed), raw.span)
        if operator == "list":
            return self._list(operands, depth, raw.span, computed)
        if operator == "chain":
            operator = operands[0].operator
        place, more = ("a term of a condition", " abs min max") if computed else ("an argument", "")
        raise self.error(
            f"`{operator}` cannot stand in {place}, where only terms and the arithmetic + - * // mod{more} may stand."
            f"{_INSTEAD.get(operator, '')}",
            raw.span,
        )

    def _is_function(self, raw: RawCall) -> bool:
        """Whether a call in a condition is a function of integers. Raises for one of values, or a wrong arity."""
        name, count = raw.name, len(raw.arguments)
        wanted = INTEGER_FUNCTIONS.get(name)
        if wanted == count:
            return True
        if wanted is not None:
            plural = "s" * (wanted != 1)
            problem = f"After `for`, `{name}` is a function of {wanted} integer{plural}, not of {count}."
        elif FUNCTIONS.get(name) == count or self.functions.get(name) == count:
            problem = (
                f"`{name}` is a function of values; conditions compare arguments, and compute with integers alone."
            )
        else:
            return False
        raise self.error(f"{problem} A term of that name is written in quotes: `'{name}'(...)`.", raw.span)

    def terms(self, raws: list[Any], depth: int = 0, computed: bool = False) -> tuple[Term, ...]:
        return tuple([raw if type(raw) in _ATOMIC else self.term(raw, depth, computed) for raw in raws])

    def _list(self, operands: list[Any], depth: int, span: Span, computed: bool) -> Term:
        *elements, tail = operands
        if depth + len(elements) > MAX_DEPTH:
            raise self.too_deep(span)
        # The elements come first, so that each `_` is numbered in the order of the text.
        terms = self.terms(elements, depth + 1, computed)
        result = Symbol("nil", span) if tail is None else self.term(tail, depth + len(elements), computed)
        for element in reversed(terms):
            result = Compound("cons", (element, result), span_over(element.span, span))
        return result

    def _anonymous(self, raw: RawAnonymous) -> Variable:
        self.anonymous += 1
        while f"_{self.anonymous}" in self.taken:
            self.anonymous += 1
        return Variable(f"_{self.anonymous}", True, raw.span)

    def _literal_term(self, raw: RawLiteral) -> Term:
        value = self._literal(raw)
        if isinstance(value, float):
            return Float(value, raw.span)
        if not -(2**63) <= value < 2**63:
            raise self.error("This integer is too large: an argument has at most 64 bits.", raw.span)
        return Integer(value, raw.span)

    def _literal(self, raw: RawLiteral) -> float | int:
        if raw.text.lstrip("-").isdecimal():
            if len(raw.text) <= 300:
                return int(raw.text)
        elif not math.isinf(value := float(raw.text)):
            return value
        raise self.error("This number is too large.", raw.span)

    def item(self, raw: Any) -> Item:
        if type(raw) is Symbol:
            return Item(raw.name, (), raw.span)
        if type(raw) is RawCall:
            return Item(raw.name, self.terms(raw.arguments, 1), raw.span)
        raise self.error("An item starts with the name of a predicate; this is a variable.", raw.span)

    # Expressions.

    def expression(self, raw: Any, depth: int = 0, variables: bool = False) -> Any:
        kind = type(raw)
        if depth >= MAX_DEPTH:
            raise self.too_deep(raw.span)
        if kind is RawCall:
            return self._application(raw, depth, variables)
        if kind is Symbol:
            return ItemValue(Item(raw.name, (), raw.span), raw.span)
        if kind is Integer or kind is Float:
            return Numeral(raw.value, raw.span)
        if kind is RawLiteral:
            return Numeral(self._literal(raw), raw.span)
        if kind is Variable or kind is RawAnonymous:
            if variables and kind is Variable:
                return VariableValue(raw.name, raw.span)
            name = raw.name if kind is Variable else "_"
            raise self.error(
                f"`{name}` is a variable, which stands for an argument and has no value; a right side is made of "
                "numbers and of the values of items.",
                raw.span,
            )
        operator, operands = raw.operator, raw.operands
        if operator in _VALUE_OPERATORS:
            return Application(operator, tuple([self.expression(x, depth + 1, variables) for x in operands]), raw.span)
        if operator == "SIDE":
            return Side(self.item(operands[0]), raw.span)
        if operator == "if":
            return self._conditional(raw, depth, variables)
        if operator == "chain":
            operator = operands[0].operator
        raise self.error(
            {
                "list": "A list has no value; it can only stand in an argument.",
                "...": "`...` stands for the remaining arguments in `:- distribution` only.",
                "//": "`//` divides integers in arguments; values are divided with `/`.",
                "mod": "`mod` is for integers in arguments; it is not defined for values.",
            }.get(
                operator,
                f"A comparison (`{operator}`) has no value; use it in `if ... then ... else ...` or after `for`.",
            ),
            raw.span,
        )

    def _application(self, raw: RawCall, depth: int, variables: bool) -> Expression:
        name, count = raw.name, len(raw.arguments)
        if f"{name}/{count}" not in self.predicates:
            arity = self.functions.get(name, FUNCTIONS.get(name))
            if arity == count:
                operands = tuple([self.expression(x, depth + 1, variables) for x in raw.arguments])
                return Application(name, operands, raw.span)
            if arity is not None:
                raise self.error(
                    f"The function `{name}` takes {arity} value{'s' * (arity != 1)}, not {count}. If a predicate is "
                    f"meant, declare it: `:- input {name}/{count}.`",
                    raw.span,
                )
        return ItemValue(self.item(raw), raw.span)

    def _conditional(self, raw: RawOperation, depth: int, variables: bool) -> Expression:
        condition, *branches = raw.operands
        operator = condition.operator if type(condition) is RawOperation else None
        if operator not in (*COMPARISONS, "chain"):
            raise self.error(
                "What stands between `if` and `then` must be a comparison of values (< =< > >= == !=), or a chain of "
                "them.",
                condition.span,
            )
        links = condition.operands if operator == "chain" else [condition]
        inner = depth + 3 * len(links) - 2  # how deep the comparisons of a chain stand below
        if inner >= MAX_DEPTH:
            raise self.too_deep(condition.span)
        sides = [self.expression(links[0].operands[0], inner, variables)]
        sides += [self.expression(link.operands[1], inner, variables) for link in links]
        tests = [
            Application(link.operator, (a, b), link.span) for link, a, b in zip(links, sides, sides[1:], strict=False)
        ]
        test = tests[-1]
        for earlier in reversed(tests[:-1]):  # both hold where one is 1, and else 0
            both = Application("if", (earlier, Application("if", (test, Numeral(1), Numeral(0))), Numeral(0)))
            test = Application(">", (both, Numeral(0)), condition.span)
        return Application("if", (test, *[self.expression(x, depth + 1, variables) for x in branches]), raw.span)

    # Statements.

    def conditions(self, raws: list[Any]) -> tuple[list[Condition], list[Item]]:
        """Conditions, and the items that have to be derived."""
        found: list[Condition] = []
        items: list[Item] = []
        for raw in raws:
            kind = type(raw)
            if kind is Symbol or kind is RawCall:
                items.append(self.item(raw))
            elif kind is RawOperation and raw.operator == "chain":
                found += [self.condition(link) for link in raw.operands]
            else:
                found.append(self.condition(raw))
        return found, items

    def condition(self, raw: Any) -> Condition:
        operator = raw.operator if type(raw) is RawOperation else None
        if operator == "not":
            return Negation(self.item(raw.operands[0]), raw.span)
        if operator == "=" or operator in COMPARISONS:
            left, right = (self.term(x, 1, True) for x in raw.operands)
            if operator == "=":
                return Equation(left, right, raw.span)
            return Comparison(operator, left, right, raw.span)
        raise self.error(
            "A condition compares arguments (`I < K`), binds one (`K = I+1`), or asks that an item is derived (`item`) "
            "or is not (`not item`).",
            raw.span,
        )

    def rule(self, statement: RawStatement) -> Rule:
        head, *rest = statement.parts
        span = statement.span
        if isinstance(head, Variable):
            raise self.error(
                f"The name of a predicate starts with a lower-case letter; `{head.name}` is a variable.", head.span
            )
        item = self.item(head)
        value: Expression
        match statement.kind:
            case "fact":
                operator, value, raws = "=", ONE, []
            case "clause":
                operator, value, raws = "|=", ONE, rest[1]
            case _:
                operator, value, raws = str(rest[0]), self.expression(rest[1]), rest[2] if len(rest) == 3 else []
        conditions, derived = self.conditions(raws)
        for asked in derived:  # that an item is derived is a factor of one
            side = Side(asked, asked.span)
            value = side if value is ONE else Application("*", (value, side), value.span)
        return Rule(
            item,
            operator,
            value,
            tuple(conditions),
            _one_line(self.text[span.start : span.end]),
            span,
        )

    def declarations(self, statement: RawStatement) -> list[Declaration]:
        parts, span = statement.parts[1:], statement.span
        match statement.kind:
            case "semiring":
                return [SemiringDeclaration(name_of(parts[1]), span)]
            case "valtype":
                if parts[1] != "term":
                    message = "The older spelling is `:- valtype(term, NAME).`, with the word `term`."
                    raise self.error(message, span_of(parts[1]))
                return [SemiringDeclaration(str(parts[2]), span)]
            case "agenda":
                return [AgendaDeclaration(str(parts[1]), span)]
            case "solve":
                return [SolveDeclaration(str(parts[1]), span)]
            case "predicates":
                joins = tuple((f"{name}/{n}", aggregator) for name, n, aggregator in parts[1] if aggregator)
                keys = tuple(f"{name}/{n}" for name, n, _ in parts[1])
                return [PredicateDeclaration(str(parts[0]), keys, span, joins)]
            case "type_declaration":
                return [
                    TypeDeclaration(raw.name, tuple([self.union(u, 0) for u in raw.unions]), raw.span)
                    for raw in parts[1]
                ]
            case "priority":
                return [PriorityDeclaration(self.item(parts[1]), self.expression(parts[3], 0, True), span)]
            case "prune":
                return [
                    PruneDeclaration(
                        self.item(parts[1]), SPELLINGS.get(parts[2], str(parts[2])), self._number(parts[3]), span
                    )
                ]
            case "beam":
                if len(parts[3]) > 18:
                    raise self.error("This number is too large.", span_of(parts[3]))
                return [BeamDeclaration(self.item(parts[1]), self.group(parts[2]), int(parts[3]), span)]
            case "show":
                label = self.term(parts[2]) if len(parts) == 3 else None
                return [ShowDeclaration(self.item(parts[1]), label, span)]
            case _:  # distribution, perhaps with an ellipsis for the remaining arguments
                item, given = parts[1], self.group(parts[2]) if len(parts) == 3 else ()
                last = item.arguments[-1] if isinstance(item, RawCall) else None
                rest = isinstance(last, RawOperation) and last.operator == "..."
                if rest:
                    item = RawCall(item.name, item.arguments[:-1], item.span)
                return [DistributionDeclaration(self.item(item), rest, given, span)]

    def _number(self, raw: Any) -> float:
        value = raw.value if isinstance(raw, Integer | Float) else self._literal(raw)
        return float(value)

    def group(self, tokens: list[Token]) -> tuple[Variable, ...]:
        for token in tokens:
            if token == "_":
                raise self.error("A group is made of named variables.", span_of(token))
        return tuple(Variable(str(token), False, span_of(token)) for token in tokens)

    def union(self, raws: list[RawType], depth: int) -> Type:
        if depth >= MAX_DEPTH:
            raise self.too_deep(raws[0].span)
        return tuple(
            [TypeName(raw.name, tuple([self.union(u, depth + 1) for u in raw.unions]), raw.span) for raw in raws]
        )

    def resolve(self, statements: Iterable[RawStatement]) -> tuple[list[Rule], list[Declaration]]:
        rules: list[Rule] = []
        declarations: list[Declaration] = []
        for statement in statements:
            self.anonymous = 0
            if statement.kind in ("rule", "fact", "clause"):
                rules.append(self.rule(statement))
            else:
                declarations += self.declarations(statement)
        return rules, declarations
