"""Refuses programs that cannot mean anything, and warns of those probably not meant: `check`, `undefined`.

Each check is a function over the source or the normal form. It raises a `ProgramError` at a place and says what to do.
What depends on facts beyond their names (types of columns, values) is no matter of this file.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches

from ..errors import ProgramError, Span, cut, warn
from .integers import check_integers
from .normal import NormalRule, Rules
from .normalise import condition_variables, expression_items, item_variables, normalise, term_variables
from .semirings import declarable
from .show import show
from .syntax import (
    ONE,
    AgendaDeclaration,
    AntecedentValue,
    Apply,
    Arithmetic,
    BeamDeclaration,
    Comparison,
    Compound,
    Declaration,
    DistributionDeclaration,
    Equation,
    Expression,
    Integer,
    Item,
    ItemValue,
    Negation,
    Number,
    PredicateDeclaration,
    PriorityDeclaration,
    PriorityExpression,
    PruneDeclaration,
    Rule,
    SemiringDeclaration,
    Side,
    SolveDeclaration,
    Source,
    Term,
    Type,
    TypeDeclaration,
    Variable,
    VariableValue,
)
from .types import infer

"""The built-in semirings; one that a user defines is called `user`."""

AGENDAS = ("auto", "priority", "fifo", "lifo")
SOLVERS = ("auto", "iterate", "linear", "newton")
TYPES = ("int", "symbol", "float", "term", "list")

_SUMMING = frozenset((None, "real", "log", "count", "expectation"))  # where a sum over a cycle may grow without bound
_LONGEST_CHAIN = 20  # of equations that put one variable off from another
_MOST_WARNINGS = 50  # of each kind; the rest are counted


class _Reporter:
    """Makes errors that show the place in one source."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def error(self, message: str, span: Span) -> ProgramError:
        return ProgramError(message, self.source.text, span, self.source.filename)

    def warning(self, message: str, span: Span) -> str:
        return str(self.error(message, span))


def nearest(key: str, known: Iterable[str]) -> str:
    """A hint at the predicate that was meant, or nothing: the same name with another arity, else a name like it.

    >>> nearest("rewrite/4", ["rewrite/2", "rewrite/3", "word/3"])
    ' There are `rewrite/2` and `rewrite/3`: a predicate is told by its name and the number of its arguments.'
    >>> nearest("wrod/3", ["rewrite/2", "word/3"])
    ' Did you mean `word/3`?'
    """
    keys = list(dict.fromkeys(known))
    name = key.rpartition("/")[0] or key
    same = [other for other in keys if other.rpartition("/")[0] == name and other != key]
    if same:
        listed = " and ".join([f"`{other}`" for other in sorted(same)[:4]])
        verb = "are" if len(same) > 1 else "is"
        return f" There {verb} {listed}: a predicate is told by its name and the number of its arguments."
    close = get_close_matches(key, keys, 1, 0.6)
    return f" Did you mean `{close[0]}`?" if close else ""


_ALIKE = 0.75  # so alike are names of which one may be a slip of the other
_SHORTEST, _LONGEST = 3, 200  # names beyond which likeness says nothing


def resembles(key: str, known: Iterable[str]) -> bool:
    """Whether a predicate may be meant for one of `known`: its arity is another, or its name is nearly the same.

    >>> known = ["rewrite/3", "word/3", "end/1"]
    >>> [resembles(key, known) for key in ("rewrite/2", "words/3", "Word/3", "edn/1", "colour/2", "e/1")]
    [True, True, True, True, False, False]
    """
    name = key.rpartition("/")[0].lower()
    names = {other.rpartition("/")[0].lower() for other in known}
    if name in names:
        return True
    if not _SHORTEST <= len(name) <= _LONGEST:
        return False
    if any(sorted(name) == sorted(other) for other in names):  # letters changed places
        return True
    return bool(get_close_matches(name, [n for n in names if len(n) >= _SHORTEST], 1, _ALIKE))


# -- declarations ----------------------------------------------------------------------------------------------------


def _check_semiring(source: Source, chosen: str | None, report: _Reporter) -> str | None:
    """The program's semiring: as chosen outside, as declared, or None; the two must agree."""
    known = declarable()
    names = ", ".join(known)
    if chosen is not None and chosen not in (*known, "user"):
        close = get_close_matches(chosen, known, 1)
        hint = f" Did you mean `{close[0]}`?" if close else ""
        raise ProgramError(
            f"There is no semiring `{cut(chosen)}`; the built-in ones are {names}.{hint}"
        )  # no place in the text
    declared = None
    for declaration in source.declarations:
        if not isinstance(declaration, SemiringDeclaration):
            continue
        if declared is not None:
            again = "again" if declaration.name == declared.name else f"as `{declaration.name}`"
            raise report.error(
                f"The semiring is declared {again}; line {declared.span.line} declares it as `{declared.name}`.",
                declaration.span,
            )
        declared = declaration
    if declared is None:
        return chosen
    if chosen == "user" and declared.name not in known:
        return chosen
    if declared.name not in known:
        close = get_close_matches(declared.name, known, 1)
        hint = f" Did you mean `{close[0]}`?" if close else ""
        raise report.error(
            f"There is no semiring `{declared.name}`; the built-in ones are {names}, and one defined in Python is "
            f"given as an argument.{hint}",
            declared.span,
        )
    if chosen is not None and chosen != declared.name:
        raise report.error(
            f"The program declares the semiring `{declared.name}`, but `{chosen}` was asked for; the two must agree.",
            declared.span,
        )
    return declared.name


def _occurring(source: Source) -> dict[str, Span]:
    """The predicates that rules, axioms and priorities speak of, each with its first place."""
    places: dict[str, Span] = {}
    for rule in source.rules:
        places.setdefault(rule.head.key, rule.head.span)
        for node in expression_items(rule.body):
            places.setdefault(node.item.key, node.item.span)
        for condition in rule.conditions:
            if isinstance(condition, Negation):
                places.setdefault(condition.item.key, condition.item.span)
    for declaration in source.declarations:
        if isinstance(declaration, PriorityDeclaration):
            for item in _priority_items(declaration):
                places.setdefault(item.key, item.span)
    return places


def _priority_items(declaration: PriorityDeclaration) -> list[Item]:
    return [
        n.item for n in _priority_nodes(declaration) if isinstance(n, ItemValue | Side) and n.item != declaration.item
    ]


def _priority_nodes(declaration: PriorityDeclaration) -> Iterator[PriorityExpression]:
    stack: list[PriorityExpression] = [declaration.expression]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, Apply):
            stack.extend(reversed(node.operands))


def _declared_keys(declaration: Declaration) -> tuple[str, ...]:
    """The predicates that a declaration is about, but for functions and open distributions."""
    match declaration:
        case PredicateDeclaration(kind="function"):
            return ()
        case PredicateDeclaration():
            return declaration.keys
        case TypeDeclaration():
            return (declaration.key,)
        case PriorityDeclaration() | PruneDeclaration() | BeamDeclaration():
            return (declaration.item.key,)
        case DistributionDeclaration(rest=False):
            return (declaration.item.key,)
        case _:
            return ()


def _is_input(declaration: Declaration) -> bool:
    return isinstance(declaration, PredicateDeclaration) and declaration.kind == "input"


def _check_declarations(source: Source, functions: Mapping[str, object] | None, report: _Reporter) -> None:
    occurring = _occurring(source)
    for declaration in source.declarations:
        for key in _declared_keys(declaration):
            if key not in occurring and not (_is_input(declaration) and not resembles(key, occurring)):
                raise report.error(
                    f"No rule speaks of `{key}`, which is declared here.{nearest(key, occurring)}", declaration.span
                )
    _check_duplicates(source, report)
    _check_kinds(source, report)
    transients = {
        k for d in source.declarations if isinstance(d, PredicateDeclaration) and d.kind == "transient" for k in d.keys
    }
    for declaration in source.declarations:
        match declaration:
            case AgendaDeclaration() if declaration.name not in AGENDAS:
                raise report.error(
                    f"There is no agenda `{declaration.name}`; there are {', '.join(AGENDAS)}.", declaration.span
                )
            case SolveDeclaration() if declaration.name not in SOLVERS:
                raise report.error(
                    f"There is no way to solve cycles called `{declaration.name}`; there are {', '.join(SOLVERS)}.",
                    declaration.span,
                )
            case TypeDeclaration():
                for union in declaration.arguments:
                    _check_type(union, report)
            case BeamDeclaration() | DistributionDeclaration():
                _check_group(declaration, occurring, report)
            case PredicateDeclaration(kind="function"):
                _check_functions(declaration, occurring, functions, report)
            case _:
                pass
        if isinstance(declaration, PriorityDeclaration | PruneDeclaration | BeamDeclaration | DistributionDeclaration):
            items = [declaration.item]
            if isinstance(declaration, PriorityDeclaration):
                items += _priority_items(declaration)
            for item in items:
                if item.key in transients:
                    raise report.error(
                        f"`{item.key}` is transient, so it is never stored and cannot be asked about here.", item.span
                    )
                if any(isinstance(argument, Arithmetic) for argument in item.arguments):
                    raise report.error("The item of a declaration cannot hold arithmetic.", item.span)


def _check_duplicates(source: Source, report: _Reporter) -> None:
    seen: dict[object, Declaration] = {}
    for declaration in source.declarations:
        subjects: list[tuple[object, str]]
        match declaration:
            case PredicateDeclaration():
                subjects = [((declaration.kind, key), f"`{key}`") for key in declaration.keys]
            case AgendaDeclaration():
                subjects = [("agenda", "The agenda")]
            case SolveDeclaration():
                subjects = [("solve", "How cycles are solved")]
            case TypeDeclaration():
                subjects = [(("type", declaration.key), f"The type of `{declaration.key}`")]
            case PriorityDeclaration():
                subjects = [(("priority", declaration.item.key), f"The priority of `{declaration.item.key}`")]
            case PruneDeclaration():
                subjects = [
                    (("prune", declaration.item.key, declaration.operator), f"Pruning of `{declaration.item.key}`")
                ]
            case _:
                subjects = [(declaration, "This")]
        for subject, words in subjects:
            earlier = seen.setdefault(subject, declaration)
            if earlier is not declaration or len({s for s, _ in subjects}) < len(subjects):
                raise report.error(
                    f"{words} is declared twice; the first time in line {earlier.span.line}.", declaration.span
                )


# Which declarations of one predicate contradict each other.
_CONTRADICTIONS = (
    ("transient", "input", "a transient predicate is made by rules and never stored"),
    ("transient", "output", "a transient predicate is never stored, so it cannot be looked up"),
    ("transient", "external", "rules make a transient predicate, a function an external one"),
    ("external", "input", "a function gives its values, so facts cannot"),
)


def _check_kinds(source: Source, report: _Reporter) -> None:
    kinds: dict[str, dict[str, Span]] = {}
    for declaration in source.declarations:
        if isinstance(declaration, PredicateDeclaration) and declaration.kind != "function":
            for key in declaration.keys:
                kinds.setdefault(key, {}).setdefault(declaration.kind, declaration.span)
    for key, places in kinds.items():
        for first, second, why in _CONTRADICTIONS:
            if first in places and second in places:
                raise report.error(f"`{key}` cannot be both {first} and {second}: {why}.", places[second])
    for rule in source.rules:
        if "external" in kinds.get(rule.head.key, ()):
            raise report.error(
                f"`{rule.head.key}` is external (line {kinds[rule.head.key]['external'].line}): a function gives its "
                "values, so no rule can.",
                rule.head.span,
            )


def _check_type(union: Type, report: _Reporter) -> None:
    for name in union:
        if not name.arguments and name.name not in TYPES:
            close = {"integer": "int", "str": "symbol", "string": "symbol", "real": "float", "double": "float"}
            near = close.get(name.name) or next(iter(get_close_matches(name.name, TYPES, 1)), "")
            hint = f" Did you mean `{near}`?" if near else ""
            raise report.error(
                f"There is no type `{name.name}`; there are {', '.join(TYPES)}, and terms such as slash(symbol, list)."
                f"{hint}",
                name.span,
            )
        for inner in name.arguments:
            _check_type(inner, report)


def _check_group(
    declaration: BeamDeclaration | DistributionDeclaration, occurring: Mapping[str, Span], report: _Reporter
) -> None:
    variables = {variable.name for variable in item_variables(declaration.item)}
    group = declaration.group if isinstance(declaration, BeamDeclaration) else declaration.given
    for variable in group:
        if variable.name not in variables:
            raise report.error(f"`{variable.name}` is no variable of `{show(declaration.item)}`.", variable.span)
    if isinstance(declaration, BeamDeclaration):
        if declaration.keep < 1:
            raise report.error("A beam keeps at least one item.", declaration.span)
    elif declaration.rest:
        name, least = declaration.item.predicate, len(declaration.item.arguments)
        fitting = [k for k in occurring if k.rpartition("/")[0] == name and int(k.rpartition("/")[2]) >= least]
        if not fitting:
            raise report.error(
                f"No rule speaks of a predicate `{name}` with at least {least} arguments."
                f"{nearest(f'{name}/{least}', occurring)}",
                declaration.span,
            )


def _check_functions(
    declaration: PredicateDeclaration,
    occurring: Mapping[str, Span],
    functions: Mapping[str, object] | None,
    report: _Reporter,
) -> None:
    for key in declaration.keys:
        name = key.rpartition("/")[0]
        if key in occurring:
            raise report.error(
                f"`{key}` is a function of values (declared here) and a predicate at once.", declaration.span
            )
        if key.endswith("/0"):
            raise report.error(f"A function of values takes at least one: write `{name}/1`.", declaration.span)
        if functions is not None and name not in functions and key not in functions:
            close = get_close_matches(name, list(functions), 1)
            hint = f" Did you mean `{close[0]}`?" if close else ""
            raise report.error(
                f"The program declares the function `{key}`, but none was given for it: pass "
                f"`functions={{{name!r}: ...}}`.{hint}",
                declaration.span,
            )


# -- rules one by one ------------------------------------------------------------------------------------------------


def _is_constant(rule: Rule) -> bool:
    """Whether a rule only asserts a number: its head is ground and nothing is asked for."""
    return (
        not rule.conditions
        and next(item_variables(rule.head), None) is None
        and next(expression_items(rule.body), None) is None
    )


def _is_clause(rule: Rule) -> bool:
    """Whether a rule asks for items and for nothing else of them: `head :- item, condition.`"""
    stack: list[Expression] = [rule.body]
    while stack:
        node = stack.pop()
        if isinstance(node, Apply) and node.operator == "*":
            stack.extend(node.operands)
        elif not isinstance(node, Side):
            return False
    return rule.aggregator == "|="


def _spelling(rule: Rule) -> str:
    """The aggregator of a rule as it is written."""
    return ":-" if rule.aggregator == "|=" and "|=" not in rule.text else rule.aggregator


def _check_aggregators(source: Source, semiring: str | None, report: _Reporter) -> None:
    first: dict[str, Rule] = {}
    numbers: list[Rule] = []
    for rule in source.rules:
        if rule.aggregator == "=" and _is_constant(rule):
            if semiring is not None and rule.body != ONE and not isinstance(rule.body, Number):
                raise report.error("In a program with a semiring, `=` asserts a single number.", rule.body.span)
            numbers.append(rule)
            continue
        if semiring == "boolean" and rule.aggregator == "|=":
            continue  # another way to write its plus
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
    for rule in numbers if semiring not in (None, "boolean") else ():
        clause = first.get(rule.head.key)
        if clause is not None and clause.aggregator == "|=" and rule.body != ONE:
            raise report.error(
                f"`{rule.head.key}` is defined by `:-` in line {clause.span.line}, so each of its items is worth one, "
                "and a number cannot be asserted.",
                rule.span,
            )


_PLURAL = {"+": "a sum", "-": "a difference", "/": "a quotient", "^": "a power", "neg": "a negation", "if": "`if`"}


def _check_products(source: Source, report: _Reporter) -> None:
    """In a semiring program a right side is a product of items, constants and side conditions."""
    for rule in source.rules:
        stack: list[Expression] = [rule.body]
        while stack:
            node = stack.pop()
            if isinstance(node, Apply):
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
    """The variables that `equation` gives values to, once those in `bound` have theirs.

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
    """The variables of `rule` that its antecedents and equations give values to.

    External antecedents give none: a function computes their values from their arguments.
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
    while queue:  # an equation is looked at again whenever one of its variables gets a value
        for name in newly_bound(queue.popleft(), bound) - bound:
            bound.add(name)
            queue.extend(holding[name])
    return bound


def _check_bound(rules: Rules, report: _Reporter) -> None:
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
                        f"Nothing binds {_named(variable)}: `{antecedent.item.key}` is external, so a function "
                        "computes its value from arguments that other items must give.",
                        variable.span,
                    )
        for variable in _unbound(item_variables(rule.head), bound, fresh):
            raise report.error(
                f"Nothing binds {_named(variable)}, which stands in the head: an item of the right side or an equation "
                "after `for` must give it values.",
                variable.span,
            )
        for condition in rule.conditions:
            if isinstance(condition, Negation):
                named = (v for v in item_variables(condition.item) if not v.anonymous)
                for variable in _unbound(named, bound, fresh):
                    raise report.error(
                        f"Nothing binds {_named(variable)}, which stands after `not`: bind it elsewhere, or write `_` "
                        "for any value.",
                        variable.span,
                    )
            else:
                for variable in _unbound(condition_variables(condition), bound, fresh):
                    what = "comparison" if isinstance(condition, Comparison) else "equation"
                    hint = " An equation is solved for one variable under `+`, `-` and `*` by a constant."
                    raise report.error(
                        f"Nothing binds {_named(variable)}, which stands in a{'n' * (what == 'equation')} {what}."
                        f"{hint if what == 'equation' else ''}",
                        variable.span,
                    )


def _named(variable: Variable) -> str:
    return "`_`" if variable.anonymous else f"the variable `{variable.name}`"


def _unbound(variables: Iterable[Variable], bound: set[str], fresh: Mapping[str, Equation]) -> Iterator[Variable]:
    """Those of `variables` that have no value; for a piece of arithmetic, those in it."""
    for variable in variables:
        if variable.name not in bound:
            if variable.name in fresh:
                inner = [v for v in term_variables(fresh[variable.name].right) if v.name not in bound]
                yield inner[0] if inner else variable
            else:
                yield variable


# -- the graph of predicates -----------------------------------------------------------------------------------------


def components(uses: Mapping[str, Iterable[str]]) -> tuple[frozenset[str], ...]:
    """The strongly connected sets of a graph, each after all that it uses.

    >>> [sorted(c) for c in components({"a": ["b"], "b": ["a", "c"], "c": []})]
    [['c'], ['a', 'b']]
    """
    # Tarjan's algorithm, with the call stack kept by hand.
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found: list[frozenset[str]] = []
    for root in uses:
        if root in index:
            continue
        work = [(root, iter(uses[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, successors = work[-1]
            for successor in successors:
                if successor not in uses:
                    continue
                if successor not in index:
                    index[successor] = low[successor] = len(index)
                    stack.append(successor)
                    on_stack.add(successor)
                    work.append((successor, iter(uses[successor])))
                    break
                if successor in on_stack:
                    low[node] = min(low[node], index[successor])
            else:
                work.pop()
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[node])
                if low[node] == index[node]:
                    members = set()
                    while True:
                        member = stack.pop()
                        on_stack.discard(member)
                        members.add(member)
                        if member == node:
                            break
                    found.append(frozenset(members))
    return tuple(found)


def _uses(rules: Rules) -> dict[str, dict[str, None]]:
    """For each defined predicate, those that its rules and its priority ask for."""
    uses: dict[str, dict[str, None]] = {key: {} for key, p in rules.predicates.items() if p.defined}
    for rule in rules.rules:
        for antecedent in rule.antecedents:
            uses[rule.head.key].setdefault(antecedent.item.key)
        for condition in rule.conditions:
            if isinstance(condition, Negation):
                uses[rule.head.key].setdefault(condition.item.key)
    for declaration in rules.priorities:
        for item in _priority_items(declaration):
            uses.get(declaration.item.key, {}).setdefault(item.key)
    return uses


def _path(uses: Mapping[str, Iterable[str]], start: str, goal: str, within: frozenset[str]) -> list[str]:
    """A shortest way from `start` to `goal` in a component that holds both."""
    before: dict[str, str | None] = {start: None}
    queue = deque([start])
    while queue and goal not in before:
        node = queue.popleft()
        for successor in uses[node]:
            if successor in within and successor not in before:
                before[successor] = node
                queue.append(successor)
    path: list[str] = []
    step: str | None = goal
    while step is not None:
        path.append(step)
        step = before[step]
    return path[::-1]


def _cycle(uses: Mapping[str, Iterable[str]], head: str, used: str, within: frozenset[str], mark: str = "") -> str:
    """The cycle through `head`, which asks for `used`, in words: `a/1 -> not b/1 -> a/1`."""
    rest = _path(uses, used, head, within)
    if len(rest) > 8:
        rest = [*rest[:4], "...", *rest[-3:]]
    return " -> ".join([head, mark + rest[0], *rest[1:]] if used != head else [head, mark + head])


def _check_cycles(rules: Rules, uses: Mapping[str, Mapping[str, None]], report: _Reporter) -> None:
    component_of = {key: component for component in rules.components for key in component}
    identity: dict[str, dict[str, None]] = {key: {} for key in uses}
    equal: list[tuple[NormalRule, Item]] = []
    for rule in rules.rules:
        head = rule.head.key
        within = component_of[head]
        for condition in rule.conditions:
            if isinstance(condition, Negation) and condition.item.key in within:
                cycle = _cycle(uses, head, condition.item.key, within, "not ")
                raise report.error(
                    f"`{head}` depends on its own negation: {cycle}. What `not` asks for must be complete before; only "
                    "predicates that do not depend on this one can be asked for.",
                    condition.span,
                )
        recursive = [(i, a) for i, a in enumerate(rule.antecedents) if not a.side and a.item.key in within]
        if not recursive or rules.semiring is not None:
            continue
        if rule.aggregator in ("max=", "min=", "|=", "&="):
            for index, antecedent in recursive:
                if _falls(rule.value, index):
                    cycle = _cycle(uses, head, antecedent.item.key, within)
                    raise report.error(
                        f"`{rule.aggregator}` in a cycle, {cycle}, must not fall where `{antecedent.item.key}` rises: "
                        "the item stands after `-`, below `/`, in an `abs` or in the condition of an `if`.",
                        antecedent.item.span,
                    )
        for _, antecedent in recursive:
            if antecedent.item.arguments == rule.head.arguments:
                identity[head].setdefault(antecedent.item.key)
                if rule.aggregator == "=":
                    equal.append((rule, antecedent.item))
    if equal:
        same = {key: component for component in components(identity) for key in component}
        for rule, item in equal:
            if item.key in same[rule.head.key]:
                cycle = _cycle(identity, rule.head.key, item.key, same[rule.head.key])
                raise report.error(
                    f"`=` defines `{show(rule.head)}` by itself: {cycle}. Such a cycle has no first value.",
                    rule.span,
                )


# How an operation's result moves with each operand: 1 with it, -1 against it, 0 either way.
_DIRECTIONS: Mapping[str, tuple[int, ...]] = {
    "-": (1, -1),
    "/": (1, -1),
    "neg": (-1,),
    "abs": (0,),
    "if": (0, 1, 1),
}


def _falls(value: Expression, index: int) -> bool:
    """Whether `value` may fall where the value of antecedent `index` rises; factors count as positive."""
    stack = [(value, 1)]
    while stack:
        node, direction = stack.pop()
        if isinstance(node, AntecedentValue):
            if node.index == index and direction != 1:
                return True
        elif isinstance(node, Apply):
            directions = _DIRECTIONS.get(node.operator, (1,) * len(node.operands))
            if node.operator == "*" and any(isinstance(o, Number) and o.value < 0 for o in node.operands):
                directions = (-1,) * len(node.operands)
            stack.extend((o, direction * d) for o, d in zip(node.operands, directions, strict=True))
    return False


def _check_priorities(rules: Rules, report: _Reporter) -> None:
    """A priority reads its own item's arguments and value, and items that are complete before."""
    component_of = {key: component for component in rules.components for key in component}
    for declaration in rules.priorities:
        own = {variable.name for variable in item_variables(declaration.item) if not variable.anonymous}
        for node in _priority_nodes(declaration):
            if isinstance(node, VariableValue) and node.name not in own:
                raise report.error(f"`{node.name}` is no variable of `{show(declaration.item)}`.", node.span)
        for item in _priority_items(declaration):
            for variable in item_variables(item):
                if variable.name not in own:
                    raise report.error(
                        f"Which `{item.key}` is meant is not known: {_named(variable)} does not stand in "
                        f"`{show(declaration.item)}`.",
                        variable.span,
                    )
            key = declaration.item.key
            if key in component_of.get(item.key, ()):
                raise report.error(
                    f"`{item.key}` is not complete before `{key}` is, so the priority of `{key}` cannot read it.",
                    item.span,
                )


# -- warnings --------------------------------------------------------------------------------------------------------


def _single_variables(source: Source) -> Iterator[tuple[str, Span]]:
    for rule in source.rules:
        if not rule.head.arguments and not rule.conditions and isinstance(rule.body, Number):
            continue
        found = list(item_variables(rule.head))
        for node in expression_items(rule.body):
            found += item_variables(node.item)
        for condition in rule.conditions:
            found += condition_variables(condition)
        counts = Counter(variable.name for variable in found)
        for variable in found:
            if counts[variable.name] == 1 and not variable.name.startswith("_"):
                yield (
                    f"The variable `{variable.name}` occurs once in this rule. If any value is meant, write `_` or "
                    f"`_{variable.name}`.",
                    variable.span,
                )


def diverging(rules: Rules) -> Iterator[tuple[frozenset[str], str]]:
    """Sums in a cycle on which nothing is seen to move on from item to item: predicates, and a warning of the first.

    Whether there is a cycle the facts decide, so only who knows them gives these warnings.

    >>> from dynagrad.rules.parse import parse
    >>> [(keys, text)] = diverging(check(parse("a += a * a. a += r.")))
    >>> sorted(keys), text.splitlines()[0][:39]
    (['a/0'], 'The sum of `a/0` may diverge: its items')
    """
    report = _Reporter(rules.source)
    if rules.semiring not in _SUMMING:
        return
    uses: dict[str, dict[str, None]] = {key: {} for key, p in rules.predicates.items() if p.defined}
    for rule in rules.rules:
        for index, antecedent in enumerate(rule.antecedents):
            if _may_grow(rule, index):
                uses[rule.head.key].setdefault(antecedent.item.key)
    component_of = {key: component for component in components(uses) for key in component}
    recursive = []
    directions: dict[frozenset[str], set[int]] = {}
    for rule in rules.rules:
        within = component_of[rule.head.key]
        items = [a.item for i, a in enumerate(rule.antecedents) if a.item.key in within and _may_grow(rule, i)]
        if not items:
            continue
        shifts = _shifts(rule)
        recursive.append((rule, items, shifts))
        for item in items:
            directions.setdefault(within, set()).update(_directions(rule.head, item, shifts))
    still: dict[str, dict[str, None]] = {key: {} for key in uses}
    suspects: list[tuple[NormalRule, Item]] = []
    for rule, items, shifts in recursive:
        one_way = len(directions.get(component_of[rule.head.key], ())) < 2
        for item in items:
            if not _moves_on(rule, item, items, shifts, one_way):
                still[rule.head.key].setdefault(item.key)
                suspects.append((rule, item))
    if not suspects:
        return
    closed = {key: component for component in components(still) for key in component}
    told: set[frozenset[str]] = set()
    for rule, item in suspects:
        key = rule.head.key
        if rule.aggregator in ("+=", "log+=") and item.key in closed[key] and closed[key] not in told:
            told.add(closed[key])
            cycle = _cycle(still, key, item.key, closed[key])
            text = (
                f"The sum of `{key}` may diverge: its items can depend on themselves ({cycle}). "
                "It is finite where the facts have no cycle, or where the weights around each cycle shrink."
            )
            yield closed[key], report.warning(text, rule.span)


def _may_grow(rule: NormalRule, index: int) -> bool:
    """Whether an antecedent's value reaches the head other than through a function with bounded values."""
    stack = [rule.value]
    while stack:
        node = stack.pop()
        if isinstance(node, AntecedentValue) and node.index == index:
            return True
        if isinstance(node, Apply) and node.operator not in ("sigmoid", "tanh"):
            stack.extend(node.operands)
    return False


def _shifts(rule: NormalRule) -> dict[tuple[str, str], int]:
    """Pairs of variables that equations put a constant apart: (X, Y) has 1 where X is larger, -1 where smaller."""
    shifts: dict[tuple[str, str], int] = {}
    offsets: dict[str, tuple[str, int]] = {}  # a variable as another plus a constant
    for condition in rule.conditions:
        if isinstance(condition, Equation):
            for side, other in ((condition.left, condition.right), (condition.right, condition.left)):
                offset = _step(other)
                if isinstance(side, Variable) and offset is not None:
                    offsets.setdefault(side.name, offset)
        elif isinstance(condition, Comparison) and condition.operator in ("<", ">"):
            if isinstance(condition.left, Variable) and isinstance(condition.right, Variable):
                sign = 1 if condition.operator == ">" else -1
                shifts[condition.left.name, condition.right.name] = sign
                shifts[condition.right.name, condition.left.name] = -sign
    for name in offsets:
        base, total = name, 0
        for _ in range(_LONGEST_CHAIN):
            if base not in offsets:
                break
            base, step = offsets[base]
            total += step
            if total:
                shifts[name, base] = 1 if total > 0 else -1
                shifts[base, name] = -1 if total > 0 else 1
    # Two variables that are both put off from a third: `V1 = I+2` and `V2 = I+1`.
    by_base: dict[str, list[tuple[str, int]]] = {}
    for name, (base, amount) in offsets.items():
        by_base.setdefault(base, []).append((name, amount))
    for group in by_base.values():
        for name, amount in group[:_LONGEST_CHAIN]:
            for second, by in group[:_LONGEST_CHAIN]:
                if amount != by:
                    shifts[name, second] = 1 if amount > by else -1
    return shifts


def _step(term: Term) -> tuple[str, int] | None:
    """`X + c` or `X - c` as the variable and the constant."""
    if isinstance(term, Arithmetic) and term.operator in ("+", "-"):
        left, right = term.operands
        if isinstance(left, Variable) and isinstance(right, Integer):
            return left.name, right.value if term.operator == "+" else -right.value
        if isinstance(right, Variable) and isinstance(left, Integer) and term.operator == "+":
            return right.name, left.value
    return None


def _tops(item: Item) -> list[str]:
    return [argument.name for argument in item.arguments if isinstance(argument, Variable)]


def _directions(head: Item, item: Item, shifts: Mapping[tuple[str, str], int]) -> set[int]:
    return {shifts[h, b] for h in _tops(head) for b in _tops(item) if (h, b) in shifts}


def _moves_on(
    rule: NormalRule, item: Item, items: Sequence[Item], shifts: Mapping[tuple[str, str], int], one_way: bool
) -> bool:
    """Whether going from `item` to the head of `rule` is seen to move on, so that no item comes back to itself."""
    head = rule.head
    if one_way and _directions(head, item, shifts):
        return True
    in_head, in_item = set(_tops(head)), set(_tops(item))
    for other in items:  # another recursive item covers the rest of the way, as the second half of a span does
        if other is not item:
            covered = set(_tops(other))
            if covered & (in_head - in_item) and covered & (in_item - in_head):
                return True
    return any(_nested(a, b) for a in head.arguments for b in item.arguments)


def _nested(a: Term, b: Term) -> bool:
    """Whether one of two terms takes the other apart: somewhere in the same place, one stands inside the other."""
    stack = [(a, b)]
    while stack:
        left, right = stack.pop()
        if isinstance(left, Compound) and isinstance(right, Compound) and left.functor == right.functor:
            stack.extend(zip(left.arguments, right.arguments, strict=False))
            continue
        for outer, inner in ((left, right), (right, left)):
            if isinstance(outer, Compound) and isinstance(inner, Variable):
                if any(variable.name == inner.name for variable in term_variables(outer)):
                    return True
    return False


def _collect(found: Iterator[tuple[str, Span]], report: _Reporter) -> list[str]:
    texts: list[str] = []
    more = 0
    for message, span in found:
        if len(texts) < _MOST_WARNINGS:
            texts.append(report.warning(message, span))
        else:
            more += 1
    if more:
        texts.append(f"There are {more} more warnings like the last.")
    return texts


# -- the whole front end after the parser ----------------------------------------------------------------------------


def undefined(rules: Rules, facts_for: Iterable[str]) -> None:
    """Refuse a program that asks for a predicate that no rule defines, no fact is given for, and no declaration names.

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
            raise _Reporter(rules.source).error(
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

    `facts_for` are the predicates that facts are given for, None where that is not known yet; `semiring` one chosen
    outside the text (`user` for one defined in Python); `functions` the functions of values, None where not known yet.

    >>> from dynagrad.rules.parse import parse
    >>> rules = check(parse("goal += a(X) * b(X).  b(X) += c(X)."))
    >>> [sorted(component) for component in rules.components], rules.predicates["a/1"].input
    ([['b/1'], ['goal/0']], True)
    """
    report = _Reporter(source)
    semiring = _check_semiring(source, semiring, report)
    _check_declarations(source, functions, report)
    _check_aggregators(source, semiring, report)
    if semiring is not None:
        _check_products(source, report)
    rules = normalise(source, semiring)
    _check_bound(rules, report)
    check_integers(rules)
    uses = _uses(rules)
    rules = replace(rules, components=components(uses))
    _check_priorities(rules, report)
    _check_cycles(rules, uses, report)
    infer(rules)
    if facts_for is not None:
        undefined(rules, facts_for)
    texts = _collect(_single_variables(source), report)
    for text in texts:
        warn(text)
    return replace(rules, warnings=tuple(texts))
