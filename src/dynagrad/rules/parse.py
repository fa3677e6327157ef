"""Text to syntax: `parse` for programs, `parse_item` for queries, `parse_term` for terms in files.

The grammar is in `grammar.lark`, run by lark's LALR parser, which needs no recursion. It gives raw shapes in which an
argument and a right side look the same. When all statements are read, `_Resolver` turns them into the syntax of
`syntax.py`: only then is it known whether `h(a)` is an item, a built-in operation or a declared function of values.

What a program means is no matter of this file; it refuses only what is no text of the language.

It is long since every form of the grammar has its line of syntax here, and the errors that go with it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedInput, UnexpectedToken

from ..errors import Span, SyntaxError
from .syntax import (
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
    Side,
    SolveDeclaration,
    Source,
    Symbol,
    Term,
    Type,
    TypeDeclaration,
    TypeName,
    Variable,
    VariableValue,
)
from .tables import parser

MAX_DEPTH = 150  # of terms and expressions in source text; immutable syntax is compared and hashed by recursion

FUNCTIONS = {"exp": 1, "log": 1, "sqrt": 1, "tanh": 1, "sigmoid": 1, "abs": 1, "min": 2, "max": 2, "lse": 2}
"""The built-in functions of values, with how many they take."""

INTEGER_FUNCTIONS = {"abs": 1, "min": 2, "max": 2}
"""The functions of integers in conditions, with how many they take."""

COMPARISONS = ("<", "=<", ">", ">=", "==", "!=")

_TERM_OPERATORS = frozenset(("+", "-", "*", "//", "mod", "neg"))
_VALUE_OPERATORS = frozenset(("+", "-", "*", "/", "^", "neg"))
_ATOMIC = frozenset((Variable, Symbol, Integer, Float))
_DECLARATIONS: tuple[str, ...] = (
    "semiring",
    "valtype",
    "input",
    "output",
    "type",
    "agenda",
    "solve",
    "priority",
    "prune",
    "beam",
)
_DECLARATIONS += ("transient", "external", "function", "distribution")

# -- raw shapes ------------------------------------------------------------------------------------------------------
#
# Variables, symbols, short integers and floats are the syntax of terms from the start; the rest is sorted out later.


class _Raw:
    __slots__ = ("span",)
    span: Span


class _Anonymous(_Raw):
    """`_`, which gets its number when its statement is resolved."""

    __slots__ = ()

    def __init__(self, span: Span) -> None:
        self.span = span


class _Literal(_Raw):
    """A number that needs looking at: many digits, or too large for a double."""

    __slots__ = ("text",)

    def __init__(self, text: str, span: Span) -> None:
        self.text, self.span = text, span


class _Call(_Raw):
    __slots__ = ("arguments", "name", "quoted")

    def __init__(self, name: str, arguments: list[Any], span: Span, quoted: bool = False) -> None:
        self.name, self.arguments, self.span, self.quoted = name, arguments, span, quoted


class _Operation(_Raw):
    """An operator with its operands; also `list` (elements, then the tail or None), `chain`, `if` and `SIDE`."""

    __slots__ = ("operands", "operator")

    def __init__(self, operator: str, operands: list[Any], span: Span) -> None:
        self.operator, self.operands, self.span = operator, operands, span


class _Type(_Raw):
    __slots__ = ("name", "unions")

    def __init__(self, name: str, unions: list[list[_Type]], span: Span) -> None:
        self.name, self.unions, self.span = name, unions, span


class _Statement(_Raw):
    """A statement of some kind, with its parts as the grammar names them."""

    __slots__ = ("kind", "parts")

    def __init__(self, kind: str, parts: list[Any], span: Span) -> None:
        self.kind, self.parts, self.span = kind, parts, span


def _at(token: Token) -> Span:
    return Span(token.start_pos or 0, token.end_pos or 0, token.line or 1, token.column or 1)


def _join(first: Span, last: Span) -> Span:
    return Span(first.start, last.end, first.line, first.column)


_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}


def _unescape(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    if code is None:
        return _ESCAPED.get(match[4], match[4])
    return chr(min(int(code, 16), 0x10FFFF))


def _name(token: Token) -> str:
    """The name that a NAME or QUOTED token stands for."""
    if token.type != "QUOTED":
        return str(token)
    body = token[1:-1]
    return _ESCAPE.sub(_unescape, body) if "\\" in body else str(body)


def is_variable(name: str) -> bool:
    """Whether a bare word is a variable: it starts with a capital letter or an underscore."""
    first = name[0]
    return first == "_" or first.isupper() or first.istitle()


_SPELT = {"<=": "=<", "**": "^"}  # other spellings of operators
_ARGUMENT = re.compile(r"[^\s(),]+")


def _atom(text: str, span: Span) -> Any:
    if text == "_":
        return _Anonymous(span)
    if is_variable(text):
        return Variable(text, False, span)
    if text[0] in "-0123456789":
        return Integer(int(text), span)
    return Symbol(text, span)


class _Builder(Transformer[Token, Any]):
    """Called by the parser at each reduction, from the leaves up; it holds no state, so one serves all threads."""

    def start(self, children: list[Any]) -> list[_Statement]:
        return children

    # Terms and expressions.

    def query(self, children: list[Any]) -> Any:
        return children[0]  # without the final dot

    def variable(self, children: list[Any]) -> Any:
        return _atom(str(children[0]), _at(children[0]))

    def integer(self, children: list[Any]) -> Any:
        token = children[0]
        return Integer(int(token), _at(token)) if len(token) <= 18 else _Literal(str(token), _at(token))

    def float(self, children: list[Any]) -> Any:
        token = children[0]
        value = float(token)
        return _Literal(str(token), _at(token)) if math.isinf(value) else Float(value, _at(token))

    def symbol(self, children: list[Any]) -> Any:
        token = children[0]
        span = _at(token)
        if token.type == "NAME" and is_variable(token):  # a capital outside ASCII, which the grammar does not know
            return Variable(str(token), False, span)
        return Symbol(_name(token), span)

    def plain(self, children: list[Any]) -> Any:
        token = children[0]
        start, line, column = token.start_pos, token.line, token.column
        name, _, _ = token.partition("(")
        arguments = []
        for match in _ARGUMENT.finditer(token, len(name) + 1):
            left, right = match.span()
            arguments.append(_atom(match[0], Span(start + left, start + right, line, column + left)))
        return _Call(str(name), arguments, _at(token))

    def call(self, children: list[Any]) -> Any:
        quoted = children[0].type == "QUOTED"
        return _Call(_name(children[0]), children[1], _join(_at(children[0]), _at(children[2])), quoted)

    def ellipsis(self, children: list[Any]) -> Any:
        return _Operation("...", [], _at(children[0]))

    def values(self, children: list[Any]) -> list[Any]:
        return children

    def binary(self, children: list[Any]) -> Any:
        left, operator, right = children
        return _Operation(_SPELT.get(operator, str(operator)), [left, right], _join(left.span, right.span))

    def chain(self, children: list[Any]) -> Any:
        links = [self.binary(children[i : i + 3]) for i in range(0, len(children) - 2, 2)]
        return _Operation("chain", links, _join(children[0].span, children[-1].span))

    def negate(self, children: list[Any]) -> Any:
        minus, operand = children
        span = _join(_at(minus), operand.span)
        if isinstance(operand, Integer):
            return Integer(-operand.value, span)
        if isinstance(operand, Float):
            return Float(-operand.value, span)
        if isinstance(operand, _Literal):
            return _Literal(operand.text[1:] if operand.text.startswith("-") else "-" + operand.text, span)
        return _Operation("neg", [operand], span)

    def conditional(self, children: list[Any]) -> Any:
        keyword, condition, then, otherwise = children
        return _Operation("if", [condition, then, otherwise], _join(_at(keyword), otherwise.span))

    def side(self, children: list[Any]) -> Any:
        return _Operation("SIDE", [children[1]], _join(_at(children[0]), _at(children[2])))

    def parenthesis(self, children: list[Any]) -> Any:
        return children[0]

    def closed_list(self, children: list[Any]) -> Any:
        elements = children[1] if len(children) == 3 else []
        return _Operation("list", [*elements, None], _join(_at(children[0]), _at(children[-1])))

    def open_list(self, children: list[Any]) -> Any:
        bracket, elements, tail, closing = children
        return _Operation("list", [*elements, tail], _join(_at(bracket), _at(closing)))

    # Conditions.

    def conditions(self, children: list[Any]) -> list[Any]:
        return children

    def equation(self, children: list[Any]) -> Any:
        left, _, right = children
        return _Operation("=", [left, right], _join(left.span, right.span))

    def negation(self, children: list[Any]) -> Any:
        word, item = children
        return _Operation("not", [item], _join(_at(word), item.span))

    # Declarations.

    def keys(self, children: list[Any]) -> list[tuple[str, int, Span]]:
        return children

    def key(self, children: list[Any]) -> tuple[str, int, Span]:
        arity = int(children[2][:9]) if len(children) == 3 else 0
        return _name(children[0]), arity, _join(_at(children[0]), _at(children[-1]))

    def types(self, children: list[Any]) -> list[Any]:
        return children

    def type(self, children: list[Any]) -> _Type:
        unions = [child for child in children if isinstance(child, list)]
        return _Type(_name(children[0]), unions, _join(_at(children[0]), _at_end(children[-1])))

    signature = type

    def union(self, children: list[Any]) -> list[Any]:
        return children

    def group(self, children: list[Any]) -> list[Token]:
        return [token for token in children if token.type == "VARIABLE"]

    def number(self, children: list[Any]) -> Any:
        token = children[-1]
        literal = self.integer([token]) if token.type == "INTEGER" else self.float([token])
        return self.negate([children[0], literal]) if len(children) == 2 else literal


def _at_end(last: Any) -> Span:
    if isinstance(last, Token):
        return _at(last)
    span: Span = last[-1].span
    return span


def _statement(kind: str) -> Callable[[_Builder, list[Any]], _Statement]:
    def build(self: _Builder, children: list[Any]) -> _Statement:
        first = children[0]
        start = _at(first) if isinstance(first, Token) else first.span
        return _Statement(kind, children[:-1], _join(start, _at(children[-1])))

    return build


_STATEMENTS: tuple[str, ...] = (
    "rule",
    "fact",
    "clause",
    "semiring",
    "valtype",
    "agenda",
    "solve",
    "predicates",
    "type_declaration",
)
_STATEMENTS += ("priority", "prune", "beam", "distribution")
for _kind in _STATEMENTS:
    setattr(_Builder, _kind, _statement(_kind))


@lru_cache(maxsize=1)
def _parser() -> Lark:
    """The parser of programs, items and terms, built when first needed."""
    return parser(_Builder())


# -- from raw shapes to syntax ---------------------------------------------------------------------------------------

_WORD = re.compile(r"\b_[0-9]+\b")
# What to write in place of operators that terms have not.
_INSTEAD = {
    "^": " A power (`^` or `**`) of an integer is a product, such as `K*K`, or a table of facts, such as `power(K,P)`.",
}
_LAYOUT = re.compile(r"""('[^'\\\n]*(?:\\.[^'\\\n]*)*'|"[^"\\\n]*(?:\\.[^"\\\n]*)*")|(?:%[^\n]*|\s)+""")


def _one_line(text: str) -> str:
    """A statement without comments and line breaks."""
    if "\n" not in text and "%" not in text:
        return text
    return _LAYOUT.sub(lambda match: match[1] or " ", text)


class _Resolver:
    """Turns raw statements into syntax, knowing which names are predicates and which are functions of values."""

    def __init__(self, text: str, filename: str, statements: Iterable[_Statement] = ()) -> None:
        self.text, self.filename = text, filename
        self.predicates: set[str] = set()
        self.functions: dict[str, int] = {}
        self.taken = set(_WORD.findall(text)) if "_" in text else set()
        self.anonymous = 0
        for statement in statements:
            self._learn(statement)

    def _learn(self, statement: _Statement) -> None:
        """Note what a statement says about names."""
        parts = statement.parts
        if statement.kind in ("rule", "fact", "clause"):
            if isinstance(parts[0], _Call):
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
        """A term; where it is `computed`, as everything after `for` is, `abs`, `min` and `max` are of integers."""
        kind = type(raw)
        if kind in _ATOMIC:
            return raw  # type: ignore[no-any-return]  # operations and visitors return anything
        if kind is _Anonymous:
            return self._anonymous(raw)
        if depth >= MAX_DEPTH:
            raise self.too_deep(raw.span)
        if kind is _Call:
            arguments = self.terms(raw.arguments, depth + 1, computed)
            if computed and not raw.quoted and self._is_function(raw):
                return Arithmetic(raw.name, arguments, raw.span)
            return Compound(raw.name, arguments, raw.span)
        if kind is _Literal:
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

    def _is_function(self, raw: _Call) -> bool:
        """Whether a call in a condition is a function of integers; one of values is an error, and no silent term."""
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
            result = Compound("cons", (element, result), _join(element.span, span))
        return result

    def _anonymous(self, raw: _Anonymous) -> Variable:
        self.anonymous += 1
        while f"_{self.anonymous}" in self.taken:
            self.anonymous += 1
        return Variable(f"_{self.anonymous}", True, raw.span)

    def _literal_term(self, raw: _Literal) -> Term:
        value = self._literal(raw)
        if isinstance(value, float):
            return Float(value, raw.span)
        if not -(2**63) <= value < 2**63:
            raise self.error("This integer is too large: an argument has at most 64 bits.", raw.span)
        return Integer(value, raw.span)

    def _literal(self, raw: _Literal) -> float | int:
        if raw.text.lstrip("-").isdecimal():
            if len(raw.text) <= 300:
                return int(raw.text)
        elif not math.isinf(value := float(raw.text)):
            return value
        raise self.error("This number is too large.", raw.span)

    def item(self, raw: Any) -> Item:
        if type(raw) is Symbol:
            return Item(raw.name, (), raw.span)
        if type(raw) is _Call:
            return Item(raw.name, self.terms(raw.arguments, 1), raw.span)
        raise self.error("An item starts with the name of a predicate; this is a variable.", raw.span)

    # Expressions.

    def expression(self, raw: Any, depth: int = 0, variables: bool = False) -> Any:
        kind = type(raw)
        if depth >= MAX_DEPTH:
            raise self.too_deep(raw.span)
        if kind is _Call:
            return self._application(raw, depth, variables)
        if kind is Symbol:
            return ItemValue(Item(raw.name, (), raw.span), raw.span)
        if kind is Integer or kind is Float:
            return Numeral(raw.value, raw.span)
        if kind is _Literal:
            return Numeral(self._literal(raw), raw.span)
        if kind is Variable or kind is _Anonymous:
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

    def _application(self, raw: _Call, depth: int, variables: bool) -> Expression:
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

    def _conditional(self, raw: _Operation, depth: int, variables: bool) -> Expression:
        condition, *branches = raw.operands
        operator = condition.operator if type(condition) is _Operation else None
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
            if kind is Symbol or kind is _Call:
                items.append(self.item(raw))
            elif kind is _Operation and raw.operator == "chain":
                found += [self.condition(link) for link in raw.operands]
            else:
                found.append(self.condition(raw))
        return found, items

    def condition(self, raw: Any) -> Condition:
        operator = raw.operator if type(raw) is _Operation else None
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

    def rule(self, statement: _Statement) -> Rule:
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

    def declarations(self, statement: _Statement) -> list[Declaration]:
        parts, span = statement.parts[1:], statement.span
        match statement.kind:
            case "semiring":
                return [SemiringDeclaration(_name(parts[1]), span)]
            case "valtype":
                if parts[1] != "term":
                    message = "The older spelling is `:- valtype(term, NAME).`, with the word `term`."
                    raise self.error(message, _at(parts[1]))
                return [SemiringDeclaration(str(parts[2]), span)]
            case "agenda":
                return [AgendaDeclaration(str(parts[1]), span)]
            case "solve":
                return [SolveDeclaration(str(parts[1]), span)]
            case "predicates":
                return [PredicateDeclaration(str(parts[0]), tuple(f"{name}/{n}" for name, n, _ in parts[1]), span)]
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
                        self.item(parts[1]), _SPELT.get(parts[2], str(parts[2])), self._number(parts[3]), span
                    )
                ]
            case "beam":
                if len(parts[3]) > 18:
                    raise self.error("This number is too large.", _at(parts[3]))
                return [BeamDeclaration(self.item(parts[1]), self.group(parts[2]), int(parts[3]), span)]
            case _:  # distribution, perhaps with an ellipsis for the remaining arguments
                item, given = parts[1], self.group(parts[2]) if len(parts) == 3 else ()
                last = item.arguments[-1] if isinstance(item, _Call) else None
                rest = isinstance(last, _Operation) and last.operator == "..."
                if rest:
                    item = _Call(item.name, item.arguments[:-1], item.span)
                return [DistributionDeclaration(self.item(item), rest, given, span)]

    def _number(self, raw: Any) -> float:
        value = raw.value if isinstance(raw, Integer | Float) else self._literal(raw)
        return float(value)

    def group(self, tokens: list[Token]) -> tuple[Variable, ...]:
        for token in tokens:
            if token == "_":
                raise self.error("A group is made of named variables.", _at(token))
        return tuple(Variable(str(token), False, _at(token)) for token in tokens)

    def union(self, raws: list[_Type], depth: int) -> Type:
        if depth >= MAX_DEPTH:
            raise self.too_deep(raws[0].span)
        return tuple(
            [TypeName(raw.name, tuple([self.union(u, depth + 1) for u in raw.unions]), raw.span) for raw in raws]
        )

    def resolve(self, statements: Iterable[_Statement]) -> tuple[list[Rule], list[Declaration]]:
        rules: list[Rule] = []
        declarations: list[Declaration] = []
        for statement in statements:
            self.anonymous = 0
            if statement.kind in ("rule", "fact", "clause"):
                rules.append(self.rule(statement))
            else:
                declarations += self.declarations(statement)
        return rules, declarations


# -- the public functions --------------------------------------------------------------------------------------------


def parse(text: str, filename: str = "") -> Source:
    """The program that `text` is; `filename` is named in errors.

    >>> source = parse("goal += constit(s,0,N) * end(N).  % a parse")
    >>> source.rules[0].head.key, source.rules[0].aggregator
    ('goal/0', '+=')
    >>> parse("goal += constit(s,0,N) * end(N)")
    Traceback (most recent call last):
        ...
    dynagrad.errors.SyntaxError: The last statement does not end: its final `.` is missing.
      at line 1, column 32
      1 | goal += constit(s,0,N) * end(N)
        |                                ^
    """
    statements = _run(text, filename, "start")
    rules, declarations = _Resolver(text, filename, statements).resolve(statements)
    return Source(tuple(rules), tuple(declarations), text, filename)


def parse_item(text: str) -> Item:
    """The item that `text` is, as in a query; a final `.` may stand.

    >>> parse_item("constit(np,0,K)").key
    'constit/3'
    """
    return _Resolver(text, "").item(_run(text, "", "query"))


def parse_term(text: str) -> Term:
    """The term that `text` is.

    >>> parse_term("[n]")
    Compound(functor='cons', arguments=(Symbol(name='n'), Symbol(name='nil')))
    """
    return _Resolver(text, "").term(_run(text, "", "argument"))


def _run(text: str, filename: str, start: str) -> Any:
    try:
        return _parser().parse(text, start=start)
    except UnexpectedInput as error:
        raise _explain(error, text, filename, start) from None


# -- what to say about text that is none of the language's -----------------------------------------------------------

_SKIP = re.compile(
    r"""%[^\n]*|\s+|(?P<quoted>'[^'\\\n]*(?:\\.[^'\\\n]*)*'|"[^"\\\n]*(?:\\.[^"\\\n]*)*")"""
    r"""|(?P<number>\d*\.\d+|\d+\.[eE][+-]?\d+(?!\w))|(?P<dots>\.\.\.)|(?P<dot>\.)|(?P<open>[(\[])|(?P<close>[)\]])|(?P<word>\w+)"""
    r"""|(?P<other>.)""",
    re.DOTALL,
)

_FOREIGN: tuple[tuple[str, str], ...] = (
    (":=", "`:=` is not an operator here: write `+=`, or `=` for a constant."),
    (":-", "`:-` starts a declaration, or stands after a head alone: `head :- item, condition.`"),
    ("<-", "A rule is written `head += body.`"),
    ("->", "`->` is not an operator here; a choice is written `if C then A else B`."),
    ("=>", "The comparison is written `>=`."),
    ("<>", "The comparison is written `!=`."),
    ("\\=", "The comparison is written `!=`."),
    ("\\+", "Negation is written `not item`, after `for`."),
    ("&&", "Conditions are separated by commas, after `for`."),
    ("||", "Write one rule for each of the alternatives."),
    ("//", "A comment starts with `%`."),
    ("/*", "A comment starts with `%` and ends with its line."),
    ("#", "A comment starts with `%`."),
    (";", "A statement ends with `.`; alternatives are rules of their own."),
    ("{", "Terms are written with `(...)` or as lists `[...]`."),
)

_WORD_BEFORE = re.compile(r"\b(if|not)\s*$")
_MISPLACED = {
    "if": "`if` starts a choice, `if C then A else B`, which stands in brackets inside other arithmetic; the "
    "conditions of a rule come after the word `for`.",
    "not": "`not item` is a condition: it stands after the word `for`.",
}

# Which terminals belong together in words; what a group accepts is named once.
_EXPECTED: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("a name", ("NAME",)),
    ("a variable", ("VARIABLE",)),
    ("a number", ("INTEGER", "FLOAT")),
    ("one of `+=`, `*=`, `max=`, `min=`, `|=`, `&=`, `=`", ("AGGREGATOR",)),
    ("`=`", ("EQUALS",)),
    ("a comparison", ("COMPARE",)),
    ("an arithmetic operator", ("PLUS", "STAR")),
    ("`/`", ("SLASH",)),
    ("`(`", ("_LPAR",)),
    ("`)`", ("RPAR",)),
    ("`]`", ("RBRACKET",)),
    ("`,`", ("_COMMA",)),
    ("`|`", ("_BAR",)),
    ("`then`", ("_THEN",)),
    ("`else`", ("_ELSE",)),
    ("`by`", ("_BY",)),
    ("`keep`", ("_KEEP",)),
    ("`given`", ("_GIVEN",)),
    ("`for`", ("_FOR",)),
    ("a final `.`", ("DOT",)),
)


def _expected(accepts: set[str]) -> str:
    """What may stand there, in words."""
    if {"NAME", "INTEGER", "_LPAR"} <= accepts:
        return "an item, a term or a number"
    if "AGGREGATOR" in accepts:
        accepts = accepts - {"EQUALS", "_LPAR"}
    if "SLASH" in accepts and "PLUS" in accepts:
        accepts = accepts - {"SLASH", "FLOOR", "MOD", "POWER"}
    if "_FOR" in accepts:
        accepts = accepts - {"COMPARE", "_LPAR"}
    words = [words for words, group in _EXPECTED if accepts.intersection(group)]
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _span_at(text: str, start: int, end: int) -> Span:
    line_start = text.rfind("\n", 0, start) + 1
    return Span(start, end, text.count("\n", 0, start) + 1, start - line_start + 1)


class _ErrorContext:
    """What stands before an error: the brackets still open, where the statement starts, where the last token ends."""

    def __init__(self, text: str, stop: int) -> None:
        self.open: list[int] = []
        self.statement, self.end, self.tokens = 0, 0, 0
        position = 0
        while position < stop:
            match = _SKIP.match(text, position)
            assert match is not None  # the last alternative takes any character
            position, kind = match.end(), match.lastgroup
            if kind is None:
                continue
            self.tokens += 1
            if self.tokens == 1:
                self.statement = match.start()
            self.end = position
            if kind == "open":
                self.open.append(match.start())
            elif kind == "close" and self.open:
                self.open.pop()
            elif kind == "dot" and not self.open:
                self.tokens = 0


def _explain(error: UnexpectedInput, text: str, filename: str, start: str) -> SyntaxError:
    token = error.token if isinstance(error, UnexpectedToken) else None
    at_end = token is not None and token.type == "$END"
    position = len(text.rstrip()) if at_end else (error.pos_in_stream or 0)
    parser: Any = error.interactive_parser
    accepts: set[str] = parser.accepts()
    context = _ErrorContext(text, len(text) if at_end else position)
    if at_end:
        position = context.end
    length = len(token) if token is not None and not at_end else 1
    message, place = _message(text, position, at_end, accepts, context, start, token)
    if place != position:
        length = 1
    return SyntaxError(message, text, _span_at(text, place, place + max(1, length)), filename)


def _message(
    text: str, position: int, at_end: bool, accepts: set[str], context: _ErrorContext, start: str, token: Token | None
) -> tuple[str, int]:
    """What is wrong, and the offset to point at."""
    program = start == "start"
    first_of_line = not text[text.rfind("\n", 0, position) + 1 : position].strip()
    rest = text[position : position + 3]
    found = "the text ends" if at_end else f"found {_describe(text, position, token)}"
    if not at_end and rest[0] in "'\"" and token is None:
        return "This quoted symbol is not closed on its line.", position
    for foreign, hint in _FOREIGN:
        for place in (position, max(0, position - 1)):
            if text.startswith(foreign, place) and not (foreign == ":-" and first_of_line):
                return f"`{foreign}` cannot stand here. {hint}", place
    before = _WORD_BEFORE.search(text[max(0, position - 20) : position])
    if before and before[1] in _MISPLACED:
        return _MISPLACED[before[1]], position - len(before[0])
    if token is not None and token.type in ("IF", "NOT"):
        return _MISPLACED[token.type.lower()], position
    if program and context.tokens and ("DOT" in accepts and (at_end or first_of_line)):
        which = "The last statement does not end" if at_end else "This statement does not end"
        return f"{which}: its final `.` is missing.", context.end
    aggregator = rest[:1] == "=" and text[position - 1 : position] in ("+", "*", "|", "&")
    if context.open and (at_end or rest[0] == "." or aggregator or (first_of_line and "RPAR" in accepts)):
        opened = _span_at(text, context.open[-1], context.open[-1] + 1)
        bracket = text[opened.start]
        found = f"found `{text[position - 1]}=`" if aggregator else found
        return f"The `{bracket}` at line {opened.line}, column {opened.column} is not closed, and {found}.", position
    if context.tokens == 0 and token is not None and token.type == "VARIABLE":
        return f"A statement starts with the name of a predicate, in lower case; `{token}` is a variable.", position
    if rest[:1] == ")" and "RPAR" not in accepts and not context.open:
        return "This `)` closes no bracket.", position
    if rest[:1] == ")" and text[:position].rstrip()[-1:] == "(" and "NAME" in accepts:
        return "Empty brackets: a predicate without arguments is written without them, as in `goal`.", position
    if rest[:1] == "," and "DOT" in accepts and "_FOR" in accepts:
        return (
            "A `,` cannot stand on a right side: items are joined with `*`, and conditions come after the word `for`.",
            position,
        )
    if "SEMIRING" in accepts:
        word = re.match(r"\w*", text[position : position + 60])
        near = get_close_matches(word[0] if word else "", _DECLARATIONS, 1)
        hint = f" Did you mean `{near[0]}`?" if near else f" The declarations are {', '.join(_DECLARATIONS)}."
        return f"This is not a declaration: {found}.{hint}", position
    if token is not None and token.type in ("NAME", "PLAIN") and "VARIABLE" in accepts and "NAME" not in accepts:
        return f"Expected a variable, which starts with a capital letter or `_`, but {found}.", position
    if "NAME" in accepts and token is not None and token.type == "VARIABLE" and "INTEGER" not in accepts:
        return f"Expected a name, which starts with a lower-case letter, but {found}.", position
    expected = _expected(accepts)
    if token is not None and "PLUS" in accepts and token.type in ("NAME", "PLAIN", "VARIABLE", "INTEGER", "FLOAT"):
        expected += " between the two"
    return f"{found[0].upper()}{found[1:]}{f', but expected {expected}' if expected else ''}.", position


def _describe(text: str, position: int, token: Token | None) -> str:
    if token is None:
        return f"{text[position]!r}" if not text[position].isprintable() else f"`{text[position]}`"
    shown = str(token) if len(token) <= 40 else token[:37] + "..."
    kind = {"VARIABLE": "the variable ", "NAME": "the name ", "INTEGER": "the number ", "FLOAT": "the number "}
    return f"{kind.get(token.type, '')}`{shown}`"
