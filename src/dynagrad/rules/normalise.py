"""Syntax to normal form: `normalise` numbers antecedents, moves arithmetic out of items, and unfolds transients.

It refuses only what has no normal form (a recursive transient predicate, a constant division by zero); everything else
that a program can have wrong with it is for `check.py`.

It is long since its rewrites feed each other: items, arithmetic and transients.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..errors import ProgramError, Span
from ..ir.ops import ieee
from .aggregators import AGGREGATORS
from .normal import Antecedent, Axiom, NormalRule, Predicate, Rules
from .semirings import means_plus
from .show import show
from .syntax import (
    MAX_DEPTH,
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

MAX_UNFOLDED = 5_000  # rules that the unfolding of transient predicates may make
MAX_ANTECEDENTS = 200  # of one rule that unfolding makes

# -- small walks -----------------------------------------------------------------------------------------------------


def term_variables(term: Term) -> Iterator[Variable]:
    """Every variable in `term`, from left to right, as often as it stands there.

    >>> [v.name for v in term_variables(Compound("f", (Variable("X"), Compound("g", (Variable("Y"), Variable("X"))))))]
    ['X', 'Y', 'X']
    """
    stack: list[Term] = [term]
    while stack:
        node = stack.pop()
        if isinstance(node, Variable):
            yield node
        elif isinstance(node, Compound):
            stack.extend(reversed(node.arguments))
        elif isinstance(node, Arithmetic):
            stack.extend(reversed(node.operands))


def item_variables(item: Item) -> Iterator[Variable]:
    """Every variable in `item`, from left to right, as often as it stands there."""
    for argument in item.arguments:
        yield from term_variables(argument)


def condition_variables(condition: Condition) -> Iterator[Variable]:
    """Every variable in `condition`, from left to right, as often as it stands there."""
    if isinstance(condition, Negation):
        yield from item_variables(condition.item)
    else:
        yield from term_variables(condition.left)
        yield from term_variables(condition.right)


def expression_items(expression: Expression) -> Iterator[ItemValue | Side]:
    """Every item on a right side, in the order of the text, as a value or as a side condition."""
    stack: list[Expression] = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, ItemValue | Side):
            yield node
        elif isinstance(node, Application):
            stack.extend(reversed(node.operands))


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
    """`arithmetic` as an integer where its operands are integers, else as it is.

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
    """The number that a right side of numbers alone stands for; None where it is none."""
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


class _Names:
    """Fresh names of variables, apart from those that a rule has."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.taken = set(taken)
        self.counters: dict[str, int] = {}

    def fresh(self, stem: str) -> str:
        number = self.counters.get(stem, 0) + 1
        while f"{stem}{number}" in self.taken:
            number += 1
        self.counters[stem] = number
        name = f"{stem}{number}"
        self.taken.add(name)
        return name


class _Normaliser:
    """Rewrites the rules of one program."""

    def __init__(self, source: Source, semiring: str | None) -> None:
        self.source, self.semiring = source, semiring

    def error(self, message: str, span: Span) -> ProgramError:
        return ProgramError(message, self.source.text, span, self.source.filename)

    def folded(self, term: Term) -> Term:
        """`term` with its ground arithmetic worked out."""
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
        names = _Names(v.name for v in _rule_variables(rule))
        solved: dict[Arithmetic, Variable] = {}
        equations: list[Condition] = []

        def plain(term: Term) -> Term:
            """`term` with each piece of arithmetic replaced by a variable that an equation defines."""
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
            """`term` inside arithmetic or a condition, where arithmetic may stay but not inside compound terms."""
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
            """`node` with items numbered; None for a side condition, which is one."""
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
        conditions = apart(equations)
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


def apart(conditions: Iterable[Condition]) -> list[Condition]:
    """Conditions in which an equation of two compound terms of one form is one equation for each argument.

    >>> [x, y, one] = Variable("X"), Variable("Y"), Integer(1)
    >>> [show(c) for c in apart([Equation(Compound("f", (x, Compound("g", (y,)))), Compound("f", (one, x)))])]
    ['X = 1', 'g(Y) = X']
    """
    found: list[Condition] = []
    stack = list(conditions)[::-1]
    while stack:
        condition = stack.pop()
        if isinstance(condition, Equation):
            left, right = condition.left, condition.right
            if isinstance(left, Compound) and isinstance(right, Compound) and left.functor == right.functor:
                if len(left.arguments) == len(right.arguments):
                    pairs = zip(left.arguments, right.arguments, strict=True)
                    stack.extend([Equation(a, b, condition.span) for a, b in pairs][::-1])
                    continue
        found.append(condition)
    return found


def _rule_variables(rule: Rule) -> Iterator[Variable]:
    yield from item_variables(rule.head)
    for node in expression_items(rule.body):
        yield from item_variables(node.item)
    for condition in rule.conditions:
        yield from condition_variables(condition)


# -- substitution and unification ------------------------------------------------------------------------------------

_Substitution = dict[str, Term]


def _walk(term: Term, substitution: _Substitution) -> Term:
    while isinstance(term, Variable) and term.name in substitution:
        term = substitution[term.name]
    return term


def unify(pairs: Iterable[tuple[Term, Term]], substitution: _Substitution) -> bool:
    """Extend `substitution` so that the two terms of each pair become equal; False where nothing does that.

    >>> bindings = {}
    >>> unify([(Variable("X"), Compound("f", (Variable("Y"),))), (Variable("Y"), Integer(1))], bindings)
    True
    >>> unify([(Variable("X"), Integer(2))], bindings)
    False
    """
    stack = list(pairs)
    while stack:
        left, right = stack.pop()
        left, right = _walk(left, substitution), _walk(right, substitution)
        if isinstance(left, Variable):
            if not (isinstance(right, Variable) and right.name == left.name):
                if _occurs(left.name, right, substitution):
                    return False
                substitution[left.name] = right
        elif isinstance(right, Variable):
            stack.append((right, left))
        elif isinstance(left, Compound) and isinstance(right, Compound):
            if left.functor != right.functor or len(left.arguments) != len(right.arguments):
                return False
            stack.extend(zip(left.arguments, right.arguments, strict=True))
        elif left != right:
            return False
    return True


def _occurs(name: str, term: Term, substitution: _Substitution) -> bool:
    stack, seen = [term], set()
    while stack:
        for variable in term_variables(stack.pop()):
            if variable.name == name:
                return True
            if variable.name in substitution and variable.name not in seen:
                seen.add(variable.name)
                stack.append(substitution[variable.name])
    return False


class TooDeep(Exception):
    """Unfolding made a term or an expression deeper than the language allows."""


def _substitute(term: Term, substitution: _Substitution, depth: int = 0) -> Term:
    if depth > MAX_DEPTH:
        raise TooDeep
    term = _walk(term, substitution)
    if isinstance(term, Compound):
        return replace(term, arguments=tuple([_substitute(a, substitution, depth + 1) for a in term.arguments]))
    if isinstance(term, Arithmetic):
        return replace(term, operands=tuple([_substitute(a, substitution, depth + 1) for a in term.operands]))
    return term


def _substitute_item(item: Item, substitution: _Substitution) -> Item:
    return replace(item, arguments=tuple([_substitute(a, substitution) for a in item.arguments]))


def _substitute_condition(condition: Condition, substitution: _Substitution) -> Condition:
    if isinstance(condition, Negation):
        return replace(condition, item=_substitute_item(condition.item, substitution))
    left, right = _substitute(condition.left, substitution), _substitute(condition.right, substitution)
    return replace(condition, left=left, right=right)


def _replace_values(node: Expression, values: Mapping[int, Expression], depth: int = 0) -> Expression:
    """`node` with each antecedent's value replaced by what `values` has for it."""
    if depth > MAX_DEPTH:
        raise TooDeep
    if isinstance(node, AntecedentValue):
        return values[node.index]
    if isinstance(node, Application):
        return replace(node, operands=tuple([_replace_values(x, values, depth + 1) for x in node.operands]))
    return node


# -- transient predicates --------------------------------------------------------------------------------------------


class _Unfolder:
    """Replaces each use of a transient predicate by what its rules say."""

    def __init__(self, normaliser: _Normaliser, keys: Mapping[str, Span], axioms: list[Axiom]) -> None:
        self.normaliser, self.keys = normaliser, keys
        self.definitions: dict[str, list[NormalRule]] = {key: [] for key in keys}
        self.made = 0
        for axiom in axioms:
            if axiom.item.key in keys:
                value = self._asserted(axiom)
                written = "" if axiom.aggregator == "=" else axiom.aggregator
                self.definitions[axiom.item.key].append(
                    NormalRule(0, axiom.item, written, (), value, (), show(axiom), axiom.span)
                )

    def _asserted(self, axiom: Axiom) -> Expression:
        if axiom.value is not None:
            return Numeral(axiom.value, axiom.span)
        return ONE if self.normaliser.semiring is not None else Numeral(1, axiom.span)

    def error(self, message: str, span: Span) -> ProgramError:
        return self.normaliser.error(message, span)

    def run(self, rules: list[NormalRule]) -> list[NormalRule]:
        for rule in rules:
            if rule.head.key in self.definitions:
                self.definitions[rule.head.key].append(rule)
        for key in self._order():
            if not self.definitions[key]:
                raise self.error(f"No rule defines the transient predicate `{key}`.", self.keys[key])
            self.definitions[key] = [new for rule in self.definitions[key] for new in self.unfold(rule)]
        return [new for rule in rules if rule.head.key not in self.keys for new in self.unfold(rule)]

    def _order(self) -> list[str]:
        """The transient predicates, each after those that it uses."""
        uses = {
            key: sorted({a.item.key for rule in rules for a in rule.antecedents if a.item.key in self.keys})
            for key, rules in self.definitions.items()
        }
        done: dict[str, bool] = {}
        order: list[str] = []
        for root in uses:
            stack = [(root, False)]
            while stack:
                key, left = stack.pop()
                if left:
                    done[key] = True
                    order.append(key)
                elif key not in done:
                    done[key] = False
                    stack.append((key, True))
                    for used in uses[key]:
                        if done.get(used) is False:
                            raise self.error(
                                f"The transient predicate `{used}` depends on itself; only a stored one may.",
                                self.keys[used],
                            )
                        stack.append((used, False))
        return order

    def unfold(self, rule: NormalRule) -> list[NormalRule]:
        for condition in rule.conditions:
            if isinstance(condition, Negation) and condition.item.key in self.keys:
                raise self.error(
                    f"`not` cannot ask for `{condition.item.key}`: a transient predicate is never stored.",
                    condition.span,
                )
        current = [rule]
        for index in reversed(range(len(rule.antecedents))):  # from the right, so that earlier numbers stay
            antecedent = rule.antecedents[index]
            if antecedent.item.key not in self.keys:
                continue
            definitions = self.definitions[antecedent.item.key]
            self._check_use(rule, index, antecedent, definitions)
            current = [new for old in current for d in definitions for new in self._combine(old, index, d)]
        return current

    def _check_use(self, rule: NormalRule, index: int, antecedent: Antecedent, definitions: list[NormalRule]) -> None:
        key, span = antecedent.item.key, antecedent.item.span
        if antecedent.side:
            raise self.error(f"SIDE cannot ask for `{key}`: a transient predicate is never stored.", span)
        if self.normaliser.semiring is not None:  # a right side is a product there, and times distributes over plus
            if any(d.aggregator == "|=" for d in definitions):
                raise self.error(
                    f"The transient predicate `{key}` cannot be unfolded here: an item that `:-` derives is worth one, "
                    "however often it is derived, so it has to be stored.",
                    span,
                )
            return
        wanted = {rule.aggregator} | {d.aggregator for d in definitions if d.aggregator}
        if len(wanted) != 1:
            other = next(aggregator for aggregator in sorted(wanted) if aggregator != rule.aggregator)
            raise self.error(
                f"The transient predicate `{key}` cannot be unfolded here: it is made with `{other}`, and what uses it "
                f"with `{rule.aggregator}`.",
                span,
            )
        places = AGGREGATORS[rule.aggregator].distributes
        if not places or not _is_linear(rule.value, index, places):
            raise self.error(
                f"The transient predicate `{key}` cannot be unfolded here: `{rule.aggregator}` does not distribute "
                "over this use of its value.",
                span,
            )

    def _combine(self, rule: NormalRule, index: int, definition: NormalRule) -> Iterator[NormalRule]:
        """`rule` with its antecedent number `index` replaced by the body of `definition`, if the two fit."""
        names = _Names(_normal_names(rule))
        renaming: _Substitution = {}
        for variable in _normal_variables(definition):
            if variable.name not in renaming:
                known = variable.name not in names.taken
                name = variable.name if known else names.fresh(f"{variable.name}_")
                names.taken.add(name)
                renaming[variable.name] = replace(variable, name=name)
        try:
            # The renaming is no substitution to walk along: a new name may be an old one of another variable.
            fresh = _rename(definition, renaming)
            substitution: _Substitution = {}
            if not unify(zip(fresh.head.arguments, rule.antecedents[index].item.arguments, strict=True), substitution):
                return
            self.made += 1
            if self.made > MAX_UNFOLDED:
                raise self.error(
                    f"Unfolding the transient predicates makes more than {MAX_UNFOLDED} rules; let one be stored.",
                    rule.span,
                )
            merged = self._merge(rule, index, fresh, substitution)
        except TooDeep:
            raise self.error(
                f"Unfolding transient predicates nests terms or values more than {MAX_DEPTH} deep here.", rule.span
            ) from None
        yield merged

    def _merge(self, rule: NormalRule, index: int, fresh: NormalRule, substitution: _Substitution) -> NormalRule:
        inserted = len(fresh.antecedents)
        values: dict[int, Expression] = {}
        for old in range(len(rule.antecedents)):
            values[old] = AntecedentValue(old if old < index else old + inserted - 1)
        values[index] = _replace_values(fresh.value, {i: AntecedentValue(index + i) for i in range(inserted)})
        value = _replace_values(rule.value, values)
        if self.normaliser.semiring is not None:
            value = _without_ones(value)
        antecedents = (*rule.antecedents[:index], *fresh.antecedents, *rule.antecedents[index + 1 :])
        if len(antecedents) > MAX_ANTECEDENTS:
            raise self.error(
                f"Unfolding transient predicates gives this rule more than {MAX_ANTECEDENTS} items.", rule.span
            )
        conditions = [_substitute_condition(c, substitution) for c in (*fresh.conditions, *rule.conditions)]
        return replace(
            rule,
            head=_substitute_item(rule.head, substitution),
            antecedents=tuple([replace(a, item=_substitute_item(a.item, substitution)) for a in antecedents]),
            value=value,
            conditions=tuple(apart(conditions)),
        )


def _without_ones(value: Expression) -> Expression:
    """A product without the empty products in it."""
    if not isinstance(value, Application) or value.operator != "*":
        return value
    kept = [x for x in map(_without_ones, value.operands) if x != ONE]
    return replace(value, operands=tuple(kept)) if len(kept) == 2 else kept[0] if kept else ONE


def _rename(rule: NormalRule, renaming: _Substitution) -> NormalRule:
    def term(node: Term) -> Term:
        if isinstance(node, Variable):
            return renaming[node.name]
        if isinstance(node, Compound):
            return replace(node, arguments=tuple([term(a) for a in node.arguments]))
        if isinstance(node, Arithmetic):
            return replace(node, operands=tuple([term(a) for a in node.operands]))
        return node

    def item(node: Item) -> Item:
        return replace(node, arguments=tuple([term(a) for a in node.arguments]))

    def condition(node: Condition) -> Condition:
        if isinstance(node, Negation):
            return replace(node, item=item(node.item))
        return replace(node, left=term(node.left), right=term(node.right))

    return replace(
        rule,
        head=item(rule.head),
        antecedents=tuple([replace(a, item=item(a.item)) for a in rule.antecedents]),
        conditions=tuple([condition(c) for c in rule.conditions]),
    )


def _normal_variables(rule: NormalRule) -> Iterator[Variable]:
    yield from item_variables(rule.head)
    for antecedent in rule.antecedents:
        yield from item_variables(antecedent.item)
    for condition in rule.conditions:
        yield from condition_variables(condition)


def _normal_names(rule: NormalRule) -> set[str]:
    return {variable.name for variable in _normal_variables(rule)}


def _is_linear(value: Expression, index: int, places: Mapping[str, tuple[int, ...]]) -> bool:
    """Whether the antecedent's value stands in `value` once, and only under operators that let a sum through."""
    node = value
    while isinstance(node, Application):
        holding = [i for i, operand in enumerate(node.operands) if _mentions(operand, index)]
        if len(holding) != 1 or holding[0] not in places.get(node.operator, ()):
            return False
        node = node.operands[holding[0]]
    return isinstance(node, AntecedentValue) and node.index == index


def _mentions(value: Expression, index: int) -> bool:
    stack: list[Expression] = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, AntecedentValue) and node.index == index:
            return True
        if isinstance(node, Application):
            stack.extend(node.operands)
    return False


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
    for rule in source.rules:
        normal = normaliser.rule(rule)
        if isinstance(normal, Axiom):
            axioms.append(normal)
        else:
            rules.append(normal)
    defined = {rule.head.key for rule in rules}
    transients = {key: d.span for d in _predicate_declarations(source, "transient") for key in d.keys}
    aggregators = _aggregators(source, defined, semiring)
    if semiring is None:
        axioms = _agreed(normaliser, axioms, aggregators)
    if transients:
        rules = _Unfolder(normaliser, transients, axioms).run(rules)
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
    """The aggregators by predicate. In a semiring all are its plus, but for what `head :- item.` states.

    A constant asserted by `=` says nothing about the aggregator; one with `max=` does.
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
    """The axioms, those of one item that are asserted by `=` and nothing else once. Raises where their values differ.

    Under another aggregator they are contributions like any other.
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
