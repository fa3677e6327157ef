"""Checks of declarations: semiring, kinds of predicates, agendas, solvers, types, functions, beams, distributions, and
what drawings show.

What rules may do with what is declared is checked in `each_rule.py` and `recursion.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from ...errors import ProgramError, Span, counted, cut
from ..semirings import declarable
from ..show import show
from ..substitution import expression_items, item_variables, term_variables
from ..suggestions import nearest, resembles
from ..syntax import (
    AgendaDeclaration,
    Application,
    Arithmetic,
    BeamDeclaration,
    Compound,
    Declaration,
    DistributionDeclaration,
    Item,
    ItemValue,
    Negation,
    PredicateDeclaration,
    PriorityDeclaration,
    PriorityExpression,
    PruneDeclaration,
    SemiringDeclaration,
    ShowDeclaration,
    Side,
    SolveDeclaration,
    Source,
    Term,
    Type,
    TypeDeclaration,
    Variable,
)
from .report import Reporter

AGENDAS = ("auto", "priority", "fifo", "lifo")
SOLVERS = ("auto", "iterate", "linear", "newton")
TYPES = ("int", "symbol", "float", "term", "list")


def check_semiring(source: Source, chosen: str | None, report: Reporter) -> str | None:
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
    """The predicates that rules, axioms and priorities mention, each with its first place in the text."""
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
            for item in priority_items(declaration):
                places.setdefault(item.key, item.span)
    return places


def priority_items(declaration: PriorityDeclaration) -> list[Item]:
    """The items whose values a priority is computed from, other than the one it is for."""
    return [
        n.item for n in priority_nodes(declaration) if isinstance(n, ItemValue | Side) and n.item != declaration.item
    ]


def priority_nodes(declaration: PriorityDeclaration) -> Iterator[PriorityExpression]:
    """All expressions in a priority."""
    stack: list[PriorityExpression] = [declaration.expression]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, Application):
            stack.extend(reversed(node.operands))


def _declared_keys(declaration: Declaration) -> tuple[str, ...]:
    """The predicates that a declaration names, except functions of values and distributions with `...`."""
    match declaration:
        case PredicateDeclaration(kind="function"):
            return ()
        case PredicateDeclaration():
            return declaration.keys
        case TypeDeclaration():
            return (declaration.key,)
        case PriorityDeclaration() | PruneDeclaration() | BeamDeclaration() | ShowDeclaration():
            return (declaration.item.key,)
        case DistributionDeclaration(rest=False):
            return (declaration.item.key,)
        case _:
            return ()


def declared_aggregators(source: Source) -> dict[str, tuple[str, PredicateDeclaration]]:
    """The aggregators that are declared behind predicates, as in `:- input road/2 min=.`, with the declarations."""
    named = [d for d in source.declarations if isinstance(d, PredicateDeclaration)]
    return {key: (aggregator, d) for d in named for key, aggregator in d.joins}


def _is_input(declaration: Declaration) -> bool:
    return isinstance(declaration, PredicateDeclaration) and declaration.kind == "input"


def check_declarations(source: Source, functions: Mapping[str, object] | None, report: Reporter) -> None:
    occurring = _occurring(source)
    for declaration in source.declarations:
        for key in _declared_keys(declaration):
            if key not in occurring and not (_is_input(declaration) and not resembles(key, occurring)):
                raise report.error(
                    f"No rule mentions `{key}`, which is declared here.{nearest(key, occurring)}", declaration.span
                )
    _check_duplicates(source, report)
    _check_covered(source, report)
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
            case ShowDeclaration():
                _check_shown(declaration, report)
            case PredicateDeclaration(kind="function"):
                _check_functions(declaration, occurring, functions, report)
            case _:
                pass
        if isinstance(declaration, PriorityDeclaration | PruneDeclaration | BeamDeclaration | DistributionDeclaration):
            items = [declaration.item]
            if isinstance(declaration, PriorityDeclaration):
                items += priority_items(declaration)
            for item in items:
                if item.key in transients:
                    raise report.error(
                        f"`{item.key}` is transient, so it is never stored and cannot stand here.", item.span
                    )
                if any(isinstance(argument, Arithmetic) for argument in item.arguments):
                    raise report.error("The item of a declaration cannot hold arithmetic.", item.span)


def _check_duplicates(source: Source, report: Reporter) -> None:
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
            case ShowDeclaration():
                subjects = []  # see `_check_covered`
            case _:
                subjects = [(declaration, "This")]
        for subject, words in subjects:
            earlier = seen.setdefault(subject, declaration)
            if earlier is not declaration or len({s for s, _ in subjects}) < len(subjects):
                raise report.error(
                    f"{words} is declared twice; the first time in line {earlier.span.line}.", declaration.span
                )


# Kinds of predicates that contradict each other.
_CONTRADICTIONS = (
    ("transient", "input", "a transient predicate is made by rules and never stored"),
    ("transient", "output", "a transient predicate is never stored, so it cannot be looked up"),
    ("transient", "external", "rules make a transient predicate, a function an external one"),
    ("external", "input", "a function gives its values, so facts cannot"),
)


def _check_kinds(source: Source, report: Reporter) -> None:
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


def _check_type(union: Type, report: Reporter) -> None:
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
    declaration: BeamDeclaration | DistributionDeclaration, occurring: Mapping[str, Span], report: Reporter
) -> None:
    variables = {variable.name for variable in item_variables(declaration.item)}
    group = declaration.group if isinstance(declaration, BeamDeclaration) else declaration.given
    for variable in group:
        if variable.name not in variables:
            raise report.error(f"`{variable.name}` is not a variable of `{show(declaration.item)}`.", variable.span)
    if isinstance(declaration, BeamDeclaration):
        if declaration.keep < 1:
            raise report.error("A beam keeps at least one item.", declaration.span)
    elif declaration.rest:
        name, least = declaration.item.predicate, len(declaration.item.arguments)
        fitting = [k for k in occurring if k.rpartition("/")[0] == name and int(k.rpartition("/")[2]) >= least]
        if not fitting:
            raise report.error(
                f"No rule mentions a predicate `{name}` with at least {counted(least, 'argument')}."
                f"{nearest(f'{name}/{least}', occurring)}",
                declaration.span,
            )


def _check_shown(declaration: ShowDeclaration, report: Reporter) -> None:
    if any(isinstance(argument, Arithmetic) for argument in declaration.item.arguments):
        raise report.error("The item of a declaration cannot hold arithmetic.", declaration.item.span)
    known = {variable.name for variable in item_variables(declaration.item)}
    for variable in () if declaration.label is None else term_variables(declaration.label):
        if variable.name not in known:
            raise report.error(f"`{show(variable)}` is not a variable of `{show(declaration.item)}`.", variable.span)


def _check_covered(source: Source, report: Reporter) -> None:
    """Raises where all items of a pattern are shown by an earlier one, so that it says nothing."""
    patterns = [d for d in source.declarations if isinstance(d, ShowDeclaration)]
    for n, later in enumerate(patterns):
        for earlier in patterns[:n]:
            if earlier.item.key == later.item.key and _covers(earlier.item, later.item):
                raise report.error(
                    f"How `{show(later.item)}` is shown is declared already: `{show(earlier.item)}`, in line "
                    f"{earlier.span.line}, fits all of these items. The first pattern that fits counts.",
                    later.span,
                )


def _covers(pattern: Item, item: Item) -> bool:
    """Whether a pattern fits all that another one fits."""
    known: dict[str, Term] = {}
    stack = list(zip(pattern.arguments, item.arguments, strict=True))
    while stack:
        wide, narrow = stack.pop()
        if isinstance(wide, Variable):
            if known.setdefault(wide.name, narrow) != narrow:
                return False
        elif isinstance(wide, Compound) and isinstance(narrow, Compound):
            if wide.functor != narrow.functor or len(wide.arguments) != len(narrow.arguments):
                return False
            stack.extend(zip(wide.arguments, narrow.arguments, strict=True))
        elif wide != narrow:
            return False
    return True


def _check_functions(
    declaration: PredicateDeclaration,
    occurring: Mapping[str, Span],
    functions: Mapping[str, object] | None,
    report: Reporter,
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
