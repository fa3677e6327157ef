"""The pretty-printer: `show` prints syntax as text, which `parse` reads back as the same syntax.

It keeps a stack of its own, so it prints any depth of nesting. Layout, comments and the spelling of lists and slash
terms are not kept.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .normal import Axiom, NormalRule
from .syntax import (
    FUNCTIONS,
    INTEGER_FUNCTIONS,
    AntecedentValue,
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
    Numeral,
    PriorityExpression,
    Rule,
    Side,
    Symbol,
    Term,
    TypeName,
    Variable,
    VariableValue,
)

Shown = Term | Item | PriorityExpression | Condition | Rule | NormalRule | Axiom | TypeName

# Precedences; an operand of lower precedence than its place requires is put in brackets.
_LOOSE, _SUM, _PRODUCT, _UNARY, _POWER, _ATOM = range(6)
_BINARY = {
    # operator: (precedence, that required of its left side, of its right side, text in an argument, on a right side)
    "+": (_SUM, _SUM, _PRODUCT, "+", " + "),
    "-": (_SUM, _SUM, _PRODUCT, "-", " - "),
    "*": (_PRODUCT, _PRODUCT, _UNARY, "*", " * "),
    "/": (_PRODUCT, _PRODUCT, _UNARY, "/", " / "),
    "//": (_PRODUCT, _PRODUCT, _UNARY, "//", " // "),
    "mod": (_PRODUCT, _PRODUCT, _UNARY, " mod ", " mod "),
    "^": (_POWER, _ATOM, _UNARY, "^", "^"),
    **{op: (_LOOSE, _SUM, _SUM, f" {op} ", f" {op} ") for op in ("<", "=<", ">", ">=", "==", "!=")},
}
_KEYWORDS = frozenset(("if", "then", "else", "not", "for", "mod"))
_PLAIN = re.compile(r"[^\W\d_A-Z]\w*\Z")
_SPECIAL = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\", "'": "\\'"}


def show_name(name: str) -> str:
    """A symbol or the name of a predicate as text, in quotes where they are needed.

    >>> show_name("np"), show_name("N P")
    ('np', "'N P'")
    """
    if _PLAIN.match(name) and name not in _KEYWORDS and not (name[0].isupper() or name[0].istitle()):
        return name
    return "'" + "".join([_SPECIAL.get(c) or (c if c.isprintable() else f"\\U{ord(c):08x}") for c in name]) + "'"


def show(node: Shown) -> str:
    """The text of `node` in the rule language.

    >>> from dynagrad.rules.parse import parse
    >>> show(parse("a(slash(X,nil)) += 2*(b(X,[1|X])+c) for X<3.").rules[0])
    'a(X/nil) += 2 * (b(X,[1|X]) + c) for X < 3.'
    """
    antecedents: Sequence[Item] = [a.item for a in node.antecedents] if isinstance(node, NormalRule) else ()
    out: list[str] = []
    stack: list[_Piece] = [(node, _LOOSE)]
    while stack:
        piece = stack.pop()
        if isinstance(piece, str):
            out.append(piece)
            continue
        thing, place = piece
        if isinstance(thing, AntecedentValue) and thing.index < len(antecedents):
            thing = antecedents[thing.index]
        pieces = _pieces(thing, place)
        stack.extend(reversed(pieces))
    return "".join(out)


_Piece = str | tuple[Shown, int]


def _listed(things: Sequence[Shown], separator: str = ",", place: int = _LOOSE) -> list[_Piece]:
    pieces: list[_Piece] = []
    for thing in things:
        pieces += [separator, (thing, place)]
    return pieces[1:]


def _call(name: str, arguments: Sequence[Shown], quoted: bool = False) -> list[_Piece]:
    shown = f"'{name}'" if quoted else show_name(name)
    return [shown, "(", *_listed(arguments), ")"] if arguments else [shown]


def _binary(operator: str, operands: Sequence[Shown], place: int, values: bool) -> list[_Piece]:
    binds, left, right, in_term, in_value = _BINARY[operator]
    pieces: list[_Piece] = [(operands[0], left), in_value if values else in_term, (operands[1], right)]
    return ["(", *pieces, ")"] if binds < place else pieces


def _unary(operand: Shown, place: int) -> list[_Piece]:
    if isinstance(operand, Integer | Float | Numeral):  # without brackets it would be parsed as a negative number
        return ["-(", (operand, _LOOSE), ")"]
    pieces: list[_Piece] = ["-", (operand, _POWER)]
    return ["(", *pieces, ")"] if place > _UNARY else pieces


def _number(value: float | int, place: int) -> list[_Piece]:
    text = repr(value)
    return [f"({text})" if text.startswith("-") and place >= _PRODUCT else text]


def _list(node: Compound) -> list[_Piece]:
    """A list, with as much of its tail as stands in the text; its elements are gathered without recursion."""
    elements: list[Term] = []
    tail: Term = node
    while isinstance(tail, Compound) and tail.functor == "cons" and len(tail.arguments) == 2:
        elements.append(tail.arguments[0])
        tail = tail.arguments[1]
    pieces = ["[", *_listed(elements)]
    return [*pieces, "]"] if tail == Symbol("nil") else [*pieces, "|", (tail, _LOOSE), "]"]


def _union(union: Sequence[TypeName]) -> list[_Piece]:
    return _listed(union, " | ")


def _rule(head: Item, aggregator: str, body: Sequence[_Piece], conditions: Sequence[Condition]) -> list[_Piece]:
    pieces: list[_Piece] = [(head, _LOOSE), f" {aggregator} ", *body]
    if conditions:
        pieces += [" for ", *_listed(conditions, ", ")]
    return [*pieces, "."]


def _pieces(node: Shown, place: int) -> list[_Piece]:
    match node:
        case Variable():
            return ["_" if node.anonymous else node.name]
        case VariableValue():
            return [node.name]
        case Symbol():
            return [show_name(node.name)]
        case Integer() | Float() | Numeral():
            return _number(node.value, place)
        case Compound(functor="cons", arguments=(_, _)):
            return _list(node)
        case Compound(functor="slash", arguments=(_, _)):
            return _binary("/", node.arguments, place, values=False)
        case Compound():
            # In a condition a bare `max(I,J)` is computed; in quotes it is the term everywhere.
            return _call(node.functor, node.arguments, quoted=node.functor in FUNCTIONS)
        case Item():
            return _call(node.predicate, node.arguments)
        case ItemValue():
            return [(node.item, place)]
        case Side():
            return ["SIDE(", (node.item, _LOOSE), ")"]
        case AntecedentValue():
            return [f"#{node.index}"]
        case Arithmetic(operator="neg") | Application(operator="neg"):
            return _unary(node.operands[0], place)
        case Arithmetic():
            if node.operator in INTEGER_FUNCTIONS:
                return _call(node.operator, node.operands)
            return _binary(node.operator, node.operands, place, values=False)
        case Application():
            return _apply(node, place)
        case Comparison():
            return [(node.left, _SUM), f" {node.operator} ", (node.right, _SUM)]
        case Equation():
            return [(node.left, _SUM), " = ", (node.right, _SUM)]
        case Negation():
            return ["not ", (node.item, _LOOSE)]
        case Rule(body=Application(operator="*", operands=()), conditions=()):
            return [(node.head, _LOOSE), "."]
        case Rule():
            return _rule(node.head, node.aggregator, [(node.body, _LOOSE)], node.conditions)
        case NormalRule():
            return _rule(node.head, node.aggregator, _normal_body(node), node.conditions)
        case Axiom():
            if node.value is None:
                return [(node.item, _LOOSE), "."]
            return _rule(node.item, node.aggregator, _number(node.value, _LOOSE), ())
        case TypeName():
            if not node.arguments:
                return [show_name(node.name)]
            pieces: list[_Piece] = [show_name(node.name), "("]
            for index, union in enumerate(node.arguments):
                pieces += [", "] * (index > 0) + _union(union)
            return [*pieces, ")"]


def _apply(node: Application, place: int) -> list[_Piece]:
    if node.operator == "if":
        condition, then, otherwise = node.operands
        pieces: list[_Piece] = ["if ", (condition, _LOOSE), " then ", (then, _LOOSE), " else ", (otherwise, _LOOSE)]
        return ["(", *pieces, ")"] if place > _LOOSE else pieces
    if node.operator == "*" and not node.operands:
        return ["1"]
    if node.operator in _BINARY:
        return _binary(node.operator, node.operands, place, values=True)
    return _call(node.operator, node.operands)


def _normal_body(rule: NormalRule) -> list[_Piece]:
    """The value, after the side antecedents as factors, which the value does not contain."""
    sides: list[Expression] = [Side(antecedent.item) for antecedent in rule.antecedents if antecedent.side]
    if not sides:
        return [(rule.value, _LOOSE)]
    pieces = _listed(sides, " * ")
    is_one = isinstance(rule.value, Application) and rule.value.operator == "*" and not rule.value.operands
    return pieces if is_one else [*pieces, " * ", (rule.value, _UNARY)]
