"""Desugaring to normal form: `normalise` numbers antecedents, flattens arithmetic in items, and folds constants.

`unfold.py` unfolds transient predicates. Refused is only what has no normal form (a recursive transient predicate, a
constant division by zero); all other checks are in `check.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..errors import ProgramError, Span
from ..ir.ops import ieee
from .normal import Antecedent, Axiom, NormalRule, Predicate, Rules
from .semirings import means_plus
from .show import show
from .substitution import FreshVariables, condition_variables, decomposed, expression_items, item_variables
from .syntax import (
    ONE,
    AgendaDeclaration,
    AntecedentValue,
    Application,
    Arithmetic,
    BeamDeclaration,
    Compound,
    Condition,
    DistributionDeclaration,
    Equation,
    Expression,
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
    Term,
    TypeDeclaration,
    Variable,
)
from .unfold import Unfolder

# -- arithmetic ------------------------------------------------------------------------------------------------------

_INTEGER_OPERATIONS: Mapping[str, Callable[..., int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,  # towards minus infinity, as in Python
    "mod": lambda a, b: a % b,  # with the sign of the divisor, as in Python
    "neg": lambda a: -a,
    "abs": abs,
    "min": min,
    "max": max,
}

_NUMBER_OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "^": lambda a, b: math.pow(a, b),
    "neg": lambda a: -a,
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "tanh": math.tanh,
    "sigmoid": lambda a: 1 / (1 + math.exp(-a)) if a >= 0 else 1 - 1 / (1 + math.exp(a)),
    "abs": abs,
    "min": min,
    "max": max,
    "lse": ieee.log_add,
}


def fold(arithmetic: Arithmetic) -> Term:
    """Constant folding: `arithmetic` as an integer where its operands are integers, else as it is.

    >>> fold(Arithmetic("+", (Integer(1), Integer(2))))
    Integer(value=3)
    """
    values: list[int] = []
    for operand in arithmetic.operands:
        if not isinstance(operand, Integer):
            return arithmetic
        values.append(operand.value)
    value = _INTEGER_OPERATIONS[arithmetic.operator](*values)
    if not -(2**63) <= value < 2**63:
        raise OverflowError
    return Integer(value, arithmetic.span)


def _constant(expression: Expression) -> float | int | None:
    """The value of a right side of numbers alone; None where it is anything else, or its value is not finite."""
    if isinstance(expression, Numeral):
        return expression.value
    if not isinstance(expression, Application) or expression.operator not in _NUMBER_OPERATIONS:
        return None
    operands = []
    for operand in expression.operands:
        value = _constant(operand)
        if value is None:
            return None
        operands.append(value)
    try:
        result = _NUMBER_OPERATIONS[expression.operator](*operands)
        return result if math.isfinite(result) else None
    except (ArithmeticError, ValueError):
        return None  # left for the run, which names the item


# -- one rule --------------------------------------------------------------------------------------------------------


class _Normaliser:
    """Rewrites the rules of one program."""

    def __init__(self, source: Source, semiring: str | None) -> None:
        self.source, self.semiring = source, semiring

    def error(self, message: str, span: Span) -> ProgramError:
        return ProgramError(message, self.source.text, span, self.source.filename)

    def folded(self, term: Term) -> Term:
        """`term` with its ground arithmetic folded."""
        if isinstance(term, Compound):
            arguments = tuple([self.folded(a) for a in term.arguments])
            return term if arguments == term.arguments else replace(term, arguments=arguments)
        if not isinstance(term, Arithmetic):
            return term
        rebuilt = replace(term, operands=tuple([self.folded(a) for a in term.operands]))
        try:
            return fold(rebuilt)
        except ZeroDivisionError:
            raise self.error("This divides by zero.", term.span) from None
        except OverflowError:
            raise self.error("The result of this arithmetic has more than 64 bits.", term.span) from None

    def rule(self, rule: Rule) -> NormalRule | Axiom:
        names = FreshVariables(v.name for v in _rule_variables(rule))
        solved: dict[Arithmetic, Variable] = {}
        equations: list[Condition] = []

        def plain(term: Term) -> Term:
            """`term` with arithmetic replaced by variables, each defined by an equation."""
            if isinstance(term, Compound):
                return replace(term, arguments=tuple([plain(a) for a in term.arguments]))
            if not isinstance(term, Arithmetic):
                return term
            result = self.folded(term)
            if not isinstance(result, Arithmetic):
                return result
            key = result
            variable = solved.get(key)
            if variable is None:
                result = replace(result, operands=tuple([inner(a) for a in result.operands]))
                variable = solved[key] = Variable(names.fresh("V"), False, term.span)
                equations.append(Equation(variable, result, term.span))
            return variable

        def inner(term: Term) -> Term:
            """`term` in arithmetic or a condition: arithmetic stays, except inside compound terms."""
            if isinstance(term, Arithmetic):
                term = self.folded(term)
            if isinstance(term, Arithmetic):
                return replace(term, operands=tuple([inner(a) for a in term.operands]))
            return plain(term)

        def item(it: Item) -> Item:
            if not any(isinstance(a, Compound | Arithmetic) for a in it.arguments):
                return it
            return replace(it, arguments=tuple([plain(a) for a in it.arguments]))

        antecedents: list[Antecedent] = []

        def value(node: Expression) -> Expression | None:
            """`node` with its items numbered; None for a side condition, whose value is one."""
            if isinstance(node, ItemValue | Side):
                antecedents.append(Antecedent(item(node.item), isinstance(node, Side)))
                return None if isinstance(node, Side) else AntecedentValue(len(antecedents) - 1, node.span)
            if not isinstance(node, Application):
                return node
            operands = [value(operand) for operand in node.operands]
            if node.operator == "*":
                kept = [operand for operand in operands if operand is not None]
                if len(kept) < 2:
                    return kept[0] if kept else None
            return replace(node, operands=tuple([Numeral(1, node.span) if x is None else x for x in operands]))

        body = value(rule.body)
        for condition in rule.conditions:
            before = len(equations)
            rewritten: Condition
            if isinstance(condition, Negation):
                rewritten = replace(condition, item=item(condition.item))
            else:
                rewritten = replace(condition, left=inner(condition.left), right=inner(condition.right))
            equations[before:] = [*equations[before:], rewritten]
        head = item(rule.head)
        conditions = decomposed(equations)
        ground = not antecedents and not conditions and next(item_variables(head), None) is None
        if rule.body == ONE and ground:
            return Axiom(head, None, rule.span, rule.aggregator)
        if body is None:
            body = Numeral(1, rule.body.span) if self.semiring is None else ONE
        if ground:
            number = body.value if isinstance(body, Numeral) else None if self.semiring else _constant(body)
            if number is not None:
                return Axiom(head, number, rule.span, rule.aggregator)
        stated = rule.aggregator == "|=" and not means_plus("|=", self.semiring)
        aggregator = rule.aggregator if self.semiring is None or stated else "+="
        return NormalRule(0, head, aggregator, tuple(antecedents), body, tuple(conditions), rule.text, rule.span)


def _rule_variables(rule: Rule) -> Iterator[Variable]:
    yield from item_variables(rule.head)
    for node in expression_items(rule.body):
        yield from item_variables(node.item)
    for condition in rule.conditions:
        yield from condition_variables(condition)


# -- the program -----------------------------------------------------------------------------------------------------


def normalise(source: Source, semiring: str | None = None) -> Rules:
    """The normal form of `source`, unchecked; `semiring` is one chosen outside the text.

    >>> from dynagrad.rules.parse import parse
    >>> rule = normalise(parse("path(I+1) += path(I) * step(I).")).rules[0]
    >>> show(rule)
    'path(V1) += path(I) * step(I) for V1 = I+1.'
    >>> rule.antecedents[0].item.key, rule.value.operands[0]
    ('path/1', AntecedentValue(index=0))
    """
    declared = [d for d in source.declarations if isinstance(d, SemiringDeclaration)]
    if semiring is None and declared:
        semiring = declared[0].name
    normaliser = _Normaliser(source, semiring)
    rules: list[NormalRule] = []
    axioms: list[Axiom] = []
    for place, rule in enumerate(source.rules):
        normal = normaliser.rule(rule)
        if isinstance(normal, Axiom):
            axioms.append(replace(normal, source=place))
        else:
            rules.append(replace(normal, source=place))
    defined = {rule.head.key for rule in rules}
    transients = {key: d.span for d in _predicate_declarations(source, "transient") for key in d.keys}
    aggregators = _aggregators(source, defined, semiring)
    if semiring is None:
        axioms = _agreed(normaliser, axioms, aggregators)
    if transients:
        rules = Unfolder(source, semiring, transients, axioms).run(rules)
        axioms = [axiom for axiom in axioms if axiom.item.key not in transients]
    rules = [replace(rule, number=number) for number, rule in enumerate(rules, 1)]

    functions: dict[str, int] = {}
    for declaration in _predicate_declarations(source, "function"):
        for key in declaration.keys:
            name, _, arity = key.rpartition("/")
            functions[name] = int(arity)
    agendas = [d.name for d in source.declarations if isinstance(d, AgendaDeclaration)]
    outputs = [key for d in _predicate_declarations(source, "output") for key in d.keys]
    predicates = _predicates(source, aggregators, defined, transients)
    return Rules(
        source=source,
        rules=tuple(rules),
        axioms=tuple(axioms),
        predicates=predicates,
        components=(),
        semiring=semiring,
        agenda=agendas[0] if agendas else "auto",
        solve=next((d.name for d in source.declarations if isinstance(d, SolveDeclaration)), "auto"),
        outputs=tuple(dict.fromkeys(outputs)),
        functions=functions,
        priorities=tuple([d for d in source.declarations if isinstance(d, PriorityDeclaration)]),
        prunes=tuple([d for d in source.declarations if isinstance(d, PruneDeclaration)]),
        beams=tuple([d for d in source.declarations if isinstance(d, BeamDeclaration)]),
        distributions=tuple([d for d in source.declarations if isinstance(d, DistributionDeclaration)]),
    )


def _predicate_declarations(source: Source, kind: str) -> Iterator[PredicateDeclaration]:
    for declaration in source.declarations:
        if isinstance(declaration, PredicateDeclaration) and declaration.kind == kind:
            yield declaration


def _aggregators(source: Source, defined: set[str], semiring: str | None) -> dict[str, str]:
    """The aggregators by predicate. In a semiring all are its plus, except those of clauses (`head :- item.`).

    An axiom with `=` says nothing about the aggregator; one with `max=` does.
    """
    if semiring is not None:
        stated = {rule.head.key for rule in source.rules if rule.aggregator == "|=" and not means_plus("|=", semiring)}
        return dict.fromkeys(stated & defined, "|=")
    found = {key: "=" for key in defined}
    for rule in reversed(source.rules):
        if rule.aggregator != "=":
            found[rule.head.key] = rule.aggregator
    return found


def _agreed(normaliser: _Normaliser, axioms: list[Axiom], aggregators: Mapping[str, str]) -> list[Axiom]:
    """The axioms without duplicates under `=`. Raises where two of them give an item different values.

    Under other aggregators axioms are contributions, and duplicates count.
    """
    kept: list[Axiom] = []
    asserted: dict[Item, Axiom] = {}
    for axiom in axioms:
        if aggregators.get(axiom.item.key, "=") != "=":
            kept.append(axiom)
            continue
        before = asserted.setdefault(axiom.item, axiom)
        if before.value != axiom.value:
            raise normaliser.error(
                f"`{show(axiom.item)}` is given two different values by `=`; the first is in line {before.span.line}. "
                "Use +=, max= or min= where several contributions may meet.",
                axiom.span,
            )
        if before is axiom:
            kept.append(axiom)
    return kept


def _predicates(
    source: Source,
    aggregators: Mapping[str, str],
    defined: set[str],
    transients: Mapping[str, Span],
) -> dict[str, Predicate]:
    """Every predicate that occurs, in the order of the text."""
    places: dict[str, tuple[Span, str, int]] = {}

    def seen(item: Item) -> None:
        places.setdefault(item.key, (item.span, item.predicate, len(item.arguments)))

    for rule in source.rules:
        seen(rule.head)
        for node in expression_items(rule.body):
            seen(node.item)
        for condition in rule.conditions:
            if isinstance(condition, Negation):
                seen(condition.item)
    for declaration in source.declarations:
        if isinstance(declaration, PriorityDeclaration):
            for node in expression_items(declaration.expression):  # type: ignore[arg-type]  # walks variables too
                seen(node.item)
        if isinstance(declaration, PredicateDeclaration) and declaration.kind in ("input", "external"):
            for key in declaration.keys:
                name, _, arity = key.rpartition("/")
                places.setdefault(key, (declaration.span, name, int(arity)))

    kinds = {
        kind: {key for d in _predicate_declarations(source, kind) for key in d.keys}
        for kind in ("input", "output", "external")
    }
    types = {d.key: d.arguments for d in source.declarations if isinstance(d, TypeDeclaration)}
    return {
        key: Predicate(
            name=name,
            arity=arity,
            aggregator=aggregators.get(key, "+="),
            defined=key in defined,
            input=key in kinds["input"] or (key not in defined and key not in kinds["external"]),
            external=key in kinds["external"],
            output=key in kinds["output"],
            types=types.get(key),
            span=span,
        )
        for key, (span, name, arity) in places.items()
        if key not in transients
    }
