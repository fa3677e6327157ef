"""Checks of rules one by one: aggregators, right sides in a semiring, and range restriction (variables are bound).

What several rules do together, such as cycles, is checked in `recursion.py`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping

from ..normal import NormalRule, Rules
from ..semirings import means_plus
from ..substitution import condition_variables, expression_items, item_variables, term_variables
from ..syntax import (
    ONE,
    Application,
    Arithmetic,
    Comparison,
    Compound,
    Equation,
    Expression,
    Integer,
    Negation,
    Numeral,
    Rule,
    Side,
    Source,
    Term,
    Variable,
)
from .declarations import declared_aggregators
from .report import Reporter


def is_constant(rule: Rule) -> bool:
    """Whether a rule only asserts a number: its head is ground, and it has no antecedents and conditions."""
    return (
        not rule.conditions
        and next(item_variables(rule.head), None) is None
        and next(expression_items(rule.body), None) is None
    )


def _is_clause(rule: Rule) -> bool:
    """Whether a rule is a clause, which only asks whether items are derived: `head :- item, condition.`"""
    stack: list[Expression] = [rule.body]
    while stack:
        node = stack.pop()
        if isinstance(node, Application) and node.operator == "*":
            stack.extend(node.operands)
        elif not isinstance(node, Side):
            return False
    return rule.aggregator == "|="


def _spelling(rule: Rule) -> str:
    """The aggregator of a rule as it is written."""
    return ":-" if rule.aggregator == "|=" and "|=" not in rule.text else rule.aggregator


def check_aggregators(source: Source, semiring: str | None, report: Reporter) -> None:
    first: dict[str, Rule] = {}
    numbers: list[Rule] = []
    for rule in source.rules:
        if rule.aggregator == "=" and is_constant(rule):
            if semiring is not None and rule.body != ONE and not isinstance(rule.body, Numeral):
                raise report.error("In a program with a semiring, `=` asserts a single number.", rule.body.span)
            numbers.append(rule)
            continue
        if means_plus(rule.aggregator, semiring):
            continue
        if semiring is not None and rule.aggregator != "+=" and not _is_clause(rule):
            what = (
                "`=` only asserts a constant"
                if rule.aggregator == "="
                else f"`{rule.aggregator}` is for programs without a semiring"
            )
            raise report.error(f"This program has a semiring, so {what}; its plus is written `+=`.", rule.span)
        earlier = first.setdefault(rule.head.key, rule)
        if earlier.aggregator != rule.aggregator:
            raise report.error(
                f"`{rule.head.key}` is aggregated with `{_spelling(rule)}` here, but with `{_spelling(earlier)}` in "
                f"line {earlier.span.line}; a predicate has one aggregator.",
                rule.span,
            )
    _check_joins(source, semiring, first, report)
    for rule in numbers if semiring not in (None, "boolean") else ():
        clause = first.get(rule.head.key)
        if clause is not None and clause.aggregator == "|=" and rule.body != ONE:
            raise report.error(
                f"`{rule.head.key}` is defined by `:-` in line {clause.span.line}, so each of its items is worth one, "
                "and a number cannot be asserted.",
                rule.span,
            )


def _check_joins(source: Source, semiring: str | None, first: Mapping[str, Rule], report: Reporter) -> None:
    """Raises for an aggregator behind a declared predicate that is no input, or is joined otherwise."""
    for key, (aggregator, declaration) in declared_aggregators(source).items():
        if declaration.kind != "input":
            raise report.error(
                f"`{aggregator}` says how rows of one fact join, and facts are given for an input: write "
                f"`:- input {key} {aggregator}.`",
                declaration.span,
            )
        if semiring is not None and aggregator != "+=" and not means_plus(aggregator, semiring):
            raise report.error(
                f"This program has a semiring, so rows of one fact join by its plus, which is written `+=`, and not by "
                f"`{aggregator}`.",
                declaration.span,
            )
        rule = first.get(key)
        if rule is not None and rule.aggregator != aggregator and semiring is None:
            raise report.error(
                f"`{key}` is declared with `{aggregator}` here, but aggregated with `{_spelling(rule)}` in line "
                f"{rule.span.line}; a predicate has one aggregator.",
                declaration.span,
            )


_PLURAL = {"+": "a sum", "-": "a difference", "/": "a quotient", "^": "a power", "neg": "a negation", "if": "`if`"}


def check_products(source: Source, report: Reporter) -> None:
    """Raises where a right side in a semiring program is not a product of items, constants and side conditions."""
    for rule in source.rules:
        stack: list[Expression] = [rule.body]
        while stack:
            node = stack.pop()
            if isinstance(node, Application):
                if node.operator != "*":
                    what = _PLURAL.get(node.operator, f"the function `{node.operator}`")
                    hint = " Write one rule for each term of the sum." if node.operator == "+" else ""
                    raise report.error(
                        "This program has a semiring, so a right side is a product of items, constants and SIDE(item); "
                        f"{what} is not allowed.{hint}",
                        node.span,
                    )
                stack.extend(reversed(node.operands))


def newly_bound(equation: Equation, bound: frozenset[str] | set[str]) -> frozenset[str]:
    """The variables that `equation` binds, once those in `bound` are bound.

    >>> I, K = Variable("I"), Variable("K")
    >>> equation = Equation(K, Arithmetic("+", (I, Integer(1))))
    >>> newly_bound(equation, {"I"}), newly_bound(equation, {"K"}), newly_bound(equation, set())
    (frozenset({'K'}), frozenset({'I'}), frozenset())
    """
    found: set[str] = set()
    stack = [(equation.left, equation.right)]
    while stack:
        left, right = stack.pop()
        if isinstance(left, Compound) and isinstance(right, Compound):
            if left.functor == right.functor and len(left.arguments) == len(right.arguments):
                stack.extend(zip(left.arguments, right.arguments, strict=True))
            continue
        for target, given in ((left, right), (right, left)):
            if all(variable.name in bound for variable in term_variables(given)):
                if isinstance(target, Arithmetic):
                    name = _solved(target, bound)
                    if name is not None:
                        found.add(name)
                elif isinstance(target, Variable) or isinstance(given, Variable):  # no atom is a compound term
                    found.update(v.name for v in term_variables(target) if v.name not in bound)
    return frozenset(found)


def _solved(arithmetic: Arithmetic, bound: frozenset[str] | set[str]) -> str | None:
    """The one variable that `arithmetic = known value` can be solved for."""
    term: Term = arithmetic
    while isinstance(term, Arithmetic):
        unknown = [o for o in term.operands if any(v.name not in bound for v in term_variables(o))]
        if len(unknown) != 1:
            return None
        if term.operator == "*":  # only by a constant, and not by zero, which would leave any value
            factors = [o for o in term.operands if o is not unknown[0]]
            if not all(isinstance(f, Integer) and f.value != 0 for f in factors):
                return None
        elif term.operator not in ("+", "-", "neg"):
            return None
        term = unknown[0]
    return term.name if isinstance(term, Variable) else None


def bound_variables(rule: NormalRule, externals: frozenset[str] = frozenset()) -> set[str]:
    """The variables of `rule` that its antecedents and equations bind.

    External antecedents bind none: a function computes their values from their arguments.
    """
    bound: set[str] = set()
    for antecedent in rule.antecedents:
        if antecedent.item.key not in externals:
            bound.update(v.name for v in item_variables(antecedent.item))
    equations = [c for c in rule.conditions if isinstance(c, Equation)]
    holding: dict[str, list[Equation]] = {}
    for equation in equations:
        for name in {v.name for v in condition_variables(equation)}:
            holding.setdefault(name, []).append(equation)
    queue = deque(equations)
    while queue:  # an equation is tried again whenever one of its variables is bound
        for name in newly_bound(queue.popleft(), bound) - bound:
            bound.add(name)
            queue.extend(holding[name])
    return bound


def check_bound(rules: Rules, report: Reporter) -> None:
    externals = frozenset(key for key, predicate in rules.predicates.items() if predicate.external)
    for rule in rules.rules:
        bound = bound_variables(rule, externals)
        fresh = {
            c.left.name: c
            for c in rule.conditions
            if isinstance(c, Equation) and isinstance(c.left, Variable) and c.span == c.left.span
        }
        for antecedent in rule.antecedents:
            if antecedent.item.key in externals:
                for variable in _unbound(item_variables(antecedent.item), bound, fresh):
                    raise report.error(
                        f"Nothing binds {quoted(variable)}: `{antecedent.item.key}` is external, so a function "
                        "computes its value from arguments that other items must give.",
                        variable.span,
                    )
        for variable in _unbound(item_variables(rule.head), bound, fresh):
            raise report.error(
                f"Nothing binds {quoted(variable)}, which stands in the head: an item of the right side or an equation "
                "after `for` must give it values.",
                variable.span,
            )
        for condition in rule.conditions:
            if isinstance(condition, Negation):
                named = (v for v in item_variables(condition.item) if not v.anonymous)
                for variable in _unbound(named, bound, fresh):
                    raise report.error(
                        f"Nothing binds {quoted(variable)}, which stands after `not`: bind it elsewhere, or write `_` "
                        "for any value.",
                        variable.span,
                    )
            else:
                for variable in _unbound(condition_variables(condition), bound, fresh):
                    what = "comparison" if isinstance(condition, Comparison) else "equation"
                    hint = " An equation is solved for one variable under `+`, `-` and `*` by a constant."
                    raise report.error(
                        f"Nothing binds {quoted(variable)}, which stands in a{'n' * (what == 'equation')} {what}."
                        f"{hint if what == 'equation' else ''}",
                        variable.span,
                    )


def quoted(variable: Variable) -> str:
    """A variable as errors name it."""
    return "`_`" if variable.anonymous else f"the variable `{variable.name}`"


def _unbound(variables: Iterable[Variable], bound: set[str], fresh: Mapping[str, Equation]) -> Iterator[Variable]:
    """Those of `variables` that are not bound; for a variable that stands for arithmetic, one in the arithmetic."""
    for variable in variables:
        if variable.name not in bound:
            if variable.name in fresh:
                inner = [v for v in term_variables(fresh[variable.name].right) if v.name not in bound]
                yield inner[0] if inner else variable
            else:
                yield variable
