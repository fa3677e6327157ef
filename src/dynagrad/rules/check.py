"""Static checks of programs: `check` runs them all and returns the normal form, `undefined` needs the facts' names.

Each check is a function over the source or the normal form, in `checks/`. It raises a `ProgramError` at a place in the
text that says what to do. Nothing here depends on facts beyond their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ..errors import warn
from .checks.declarations import check_declarations, check_semiring
from .checks.each_rule import check_aggregators, check_bound, check_products
from .checks.joining import joined
from .checks.recursion import check_cycles, check_priorities, components, uses_of
from .checks.report import Reporter
from .checks.suspicious_rules import collect, single_variables
from .integers import check_integers
from .normal import Rules
from .normalise import normalise
from .suggestions import nearest
from .syntax import (
    PredicateDeclaration,
    Source,
)
from .types import infer

# -- declarations ----------------------------------------------------------------------------------------------------

# -- rules one by one ------------------------------------------------------------------------------------------------

# -- the graph of predicates -----------------------------------------------------------------------------------------

# -- warnings --------------------------------------------------------------------------------------------------------

# -- the whole front end after the parser ----------------------------------------------------------------------------


def undefined(rules: Rules, facts_for: Iterable[str]) -> None:
    """Raises where a program uses a predicate that no rule defines, no fact is given for, and no declaration names.

    >>> from dynagrad.rules.parse import parse
    >>> undefined(check(parse("goal += wrod(X) * end(X).")), ["word/1", "end/1"])
    Traceback (most recent call last):
        ...
    dynagrad.errors.ProgramError: No rule defines `wrod/1` and no facts are given for it. Did you mean `word/1`?
      at line 1, column 9
      1 | goal += wrod(X) * end(X).
        |         ^^^^^^^
    """
    given = set(facts_for)
    known = given | {axiom.item.key for axiom in rules.axioms}
    for declaration in rules.source.declarations:
        if isinstance(declaration, PredicateDeclaration) and declaration.kind in ("input", "external"):
            known.update(declaration.keys)
    known |= {key for key, predicate in rules.predicates.items() if predicate.defined}
    for key, predicate in rules.predicates.items():
        if key not in known:
            raise Reporter(rules.source).error(
                f"No rule defines `{key}` and no facts are given for it.{nearest(key, sorted(known))}", predicate.span
            )


def check(
    source: Source,
    *,
    facts_for: frozenset[str] | None = None,
    semiring: str | None = None,
    functions: Mapping[str, object] | None = {},  # never changed
) -> Rules:
    """The normal form of `source`, checked; warnings are issued as `ProgramWarning` and kept in `Rules.warnings`.

    `facts_for` has the predicates that facts are given for, or is None where that is not known yet. `semiring` is one
    chosen outside the text (`user` for one defined in Python). `functions` has the functions of values, or is None
    where they are not known yet.

    >>> from dynagrad.rules.parse import parse
    >>> rules = check(parse("goal += a(X) * b(X).  b(X) += c(X)."))
    >>> [sorted(component) for component in rules.components], rules.predicates["a/1"].input
    ([['b/1'], ['goal/0']], True)
    """
    report = Reporter(source)
    semiring = check_semiring(source, semiring, report)
    check_declarations(source, functions, report)
    check_aggregators(source, semiring, report)
    if semiring is not None:
        check_products(source, report)
    rules = normalise(source, semiring)
    rules = replace(rules, predicates=joined(rules))
    check_bound(rules, report)
    check_integers(rules)
    uses = uses_of(rules)
    rules = replace(rules, components=components(uses))
    check_priorities(rules, report)
    check_cycles(rules, uses, report)
    infer(rules)
    if facts_for is not None:
        undefined(rules, facts_for)
    texts = collect(single_variables(source), report)
    for text in texts:
        warn(text)
    return replace(rules, warnings=tuple(texts))
