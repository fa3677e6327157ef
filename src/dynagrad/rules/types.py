"""Type inference: `infer` groups the argument positions of a program into domains, by union-find over its text.

Two positions share a domain where one variable stands at both, or where an equation or a comparison joins two
variables. A domain collects what the text says of its members: constants, arithmetic, patterns, declarations; facts add
to this later. A domain may mix kinds of values, unless arithmetic or a declaration forbids it. Where one rule computes
with an argument in which another has a compound term, the position is *mixed*: it holds terms, and a variable that is
computed with has a domain of its own, of integers, so that it matches only those members that are integers.

It is long because the errors of inference retrace it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ..errors import ProgramError, Span
from .normal import NormalRule, Rules
from .show import show
from .substitution import term_variables
from .syntax import (
    Application,
    Arithmetic,
    Comparison,
    Compound,
    Equation,
    Float,
    Integer,
    Item,
    ItemValue,
    Negation,
    PriorityExpression,
    ShowDeclaration,
    Side,
    Symbol,
    Term,
    Type,
    TypeDeclaration,
    Variable,
    VariableValue,
)

Position = tuple[str, int]  # a predicate's key, and the argument, from 0

KINDS = ("int", "symbol", "float", "term")
_DECLARED: dict[str, frozenset[str]] = {
    "int": frozenset(("int",)),
    "symbol": frozenset(("symbol",)),
    "float": frozenset(("float",)),
    "term": frozenset(KINDS),  # any term at all, atomic ones too
    "list": frozenset(("term", "symbol")),  # the empty list is the symbol nil
}


@dataclass(frozen=True, slots=True)
class Domain:
    """The values that some argument positions share."""

    number: int
    positions: tuple[Position, ...]
    kinds: frozenset[str]  # of `int`, `symbol`, `float`, `term`: what the text shows; the facts may add to it
    declared: frozenset[str] | None  # the kinds that declarations allow here, None where they are silent
    arithmetic: bool  # some member is computed with, so all are integers
    ordered: bool  # some members are compared by `<` and the like, so all are integers
    nested: bool  # some variable of this domain also stands inside a compound term
    constants: tuple[
        Term, ...
    ]  # symbols, integers and floats that stand at its positions: those of axioms, then of rules


@dataclass(frozen=True, slots=True)
class Quotient:
    """`A/B` in a condition: the term `slash(A,B)`, but an error where facts show that both are integers."""

    term: Compound
    domains: tuple[int, ...]  # those of its operands that the text does not restrict to integers


@dataclass(frozen=True, slots=True)
class Domains:
    """All domains of a program, by position and by variable."""

    domains: tuple[Domain, ...]
    of: dict[Position, int]
    variables: dict[int, dict[str, int | None]] = field(default_factory=dict)
    quotients: tuple[Quotient, ...] = ()  # in the order of the text

    def at(self, key: str, argument: int) -> Domain:
        """The domain of an argument position."""
        return self.domains[self.of[key, argument]]


# A reason for a property of a domain: a place in the text, and a description of what stands there.
_Evidence = tuple[Span, str]


class _Groups:
    """Union-find over nodes numbered from 0, with path compression; the least node of a set represents it."""

    def __init__(self) -> None:
        self.parent: list[int] = []

    def new(self) -> int:
        self.parent.append(len(self.parent))
        return len(self.parent) - 1

    def find(self, node: int) -> int:
        parent = self.parent
        root = node
        while parent[root] != root:
            root = parent[root]
        while parent[node] != root:
            parent[node], node = root, parent[node]
        return root

    def join(self, a: int, b: int) -> None:
        a, b = self.find(a), self.find(b)
        if a != b:  # the smaller number stays on top, so that domains are numbered in the order of the text
            self.parent[max(a, b)] = min(a, b)


NO_DIVISION = (
    "`{}` is a term here, and its parts are integers. To divide integers write `//`, which rounds down. Where the "
    "term is meant, let it stand in an item."
)
"""The error for `/` between integers after `for`."""


class _Inference:
    def __init__(self, rules: Rules, mixed: frozenset[Position] = frozenset()) -> None:
        self.rules = rules
        self.mixed = mixed
        self.computed: frozenset[str] = frozenset()  # the variables of the current rule that hold integers
        self.loose: set[str] = set()  # and those that stand at mixed positions and may hold terms
        self.groups = _Groups()
        self.positions: dict[Position, int] = {}
        self.kinds: list[tuple[int, str, _Evidence]] = []
        self.arithmetic: list[tuple[int, _Evidence]] = []
        self.ordered: list[tuple[int, _Evidence]] = []
        self.constants: list[tuple[int, Term]] = []
        self.nested: list[int] = []
        self.quotients: list[tuple[Compound, list[int]]] = []  # with the nodes of operands that are variables
        self.variables: dict[int, dict[str, int | None]] = {}
        # By variable of the current rule, the kinds that declarations allow.
        self.allowed: dict[str, frozenset[str]] = {}
        for predicate in rules.predicates.values():
            for argument in range(predicate.arity):
                self.positions[predicate.key, argument] = self.groups.new()

    def error(self, message: str, span: Span) -> ProgramError:
        return ProgramError(message, self.rules.source.text, span, self.rules.source.filename)

    # Gathering.

    def kind(self, node: int, kind: str, span: Span, words: str) -> None:
        self.kinds.append((node, kind, (span, words)))

    def rule(self, rule: NormalRule) -> None:
        nodes: dict[str, int | None] = {}
        self.variables[rule.number] = nodes
        self.allowed = {}
        self.computed, self.loose = _computed(rule) if self.mixed else frozenset(), set()
        for item in _items(rule):
            self.item(item, nodes)
        for condition in rule.conditions:
            if isinstance(condition, Comparison | Equation):
                self.condition(condition, nodes)
        self.inside(rule, nodes)
        for condition in rule.conditions:
            if isinstance(condition, Comparison | Equation):
                self.divisions((condition.left, condition.right), nodes)

    def divisions(self, terms: Iterable[Term], nodes: dict[str, int | None]) -> None:
        """Collects each `A/B` whose operands are integers, or variables that may turn out to be."""
        stack = list(terms)
        while stack:
            term = stack.pop()
            if not isinstance(term, Compound):
                continue
            stack.extend(term.arguments)
            if term.functor == "slash" and len(term.arguments) == 2:
                known = [nodes.get(o.name) if isinstance(o, Variable) else None for o in term.arguments]
                if all(isinstance(o, Integer) or n is not None for o, n in zip(term.arguments, known, strict=True)):
                    self.quotients.append((term, [n for n in known if n is not None]))

    def item(self, item: Item, nodes: dict[str, int | None]) -> None:
        key = item.key
        types = self.rules.predicates[key].types
        for argument, term in enumerate(item.arguments):
            node = self.positions[key, argument]
            if types is not None:
                self.fit(term, types[argument], key, argument)
            if isinstance(term, Variable):
                separate = (key, argument) in self.mixed and term.name in self.computed
                if (key, argument) in self.mixed and not separate:
                    self.loose.add(term.name)
                self.tie(term, self.node(term, nodes) if separate else node, nodes)
            else:
                self.evidence(term, node)

    def fit(self, term: Term, union: Type, key: str, argument: int) -> None:
        """Checks a term against the declaration of its position."""
        declared = f"argument {argument + 1} of `{key}` is declared `{' | '.join(map(show, union))}`"
        if not fits(term, union):
            raise self.error(f"These types cannot meet: {declared}, and this is {_kind_of(term)}.", term.span)
        if isinstance(term, Variable):
            kinds = frozenset(_union_kinds(union))
            known = self.allowed.get(term.name, kinds)
            if not kinds & known:
                raise self.error(
                    f"These types cannot meet: {declared}, but where `{term.name}` stands elsewhere in this rule only "
                    f"`{_listing(known)}` is declared.",
                    term.span,
                )
            self.allowed[term.name] = kinds & known

    def tie(self, variable: Variable, node: int, nodes: dict[str, int | None]) -> None:
        known = nodes.get(variable.name)
        if known is None:
            nodes[variable.name] = node
        else:
            self.groups.join(known, node)

    def evidence(self, term: Term, node: int) -> None:
        """Records what a term other than a variable says of its domain."""
        match term:
            case Symbol():
                self.kind(node, "symbol", term.span, f"the symbol `{_short(term.name)}`")
                self.constants.append((node, term))
            case Integer():
                self.kind(node, "int", term.span, f"the integer `{term.value}`")
                self.constants.append((node, term))
            case Float():
                self.kind(node, "float", term.span, f"the float `{term.value}`")
                self.constants.append((node, term))
            case Compound():
                self.kind(node, "term", term.span, f"a term `{_short(term.functor)}(...)`")

    def node(self, variable: Variable, nodes: dict[str, int | None]) -> int:
        """The node of a variable in a condition; a new one where no item has it as an argument."""
        known = nodes.get(variable.name)
        if known is None:
            known = nodes[variable.name] = self.groups.new()
        return known

    def condition(self, condition: Comparison | Equation, nodes: dict[str, int | None]) -> None:
        sides = (condition.left, condition.right)
        if self.differs(condition):
            for side in sides:
                if isinstance(side, Arithmetic):
                    for variable in self.operands(side):
                        words = f"`{variable.name}` is computed with"
                        self.arithmetic.append((self.node(variable, nodes), (variable.span, words)))
            return
        computed = any(isinstance(side, Arithmetic) for side in sides)
        tied: list[int] = []
        for side in sides:
            if isinstance(side, Arithmetic):
                for variable in self.operands(side):
                    if "int" not in self.allowed.get(variable.name, ("int",)):
                        raise self.error(
                            f"These types cannot meet: `{variable.name}` is computed with, but declared "
                            f"`{_listing(self.allowed[variable.name])}`.",
                            variable.span,
                        )
                    node = self.node(variable, nodes)
                    self.arithmetic.append((node, (variable.span, f"`{variable.name}` is computed with")))
                    tied.append(node)
            elif isinstance(side, Variable):
                node = self.node(side, nodes)
                if computed:
                    other = condition.right if side is condition.left else condition.left
                    self.arithmetic.append((node, (side.span, f"`{show(other)}` is computed")))
                tied.append(node)
            elif computed and not isinstance(side, Integer):
                raise self.error(f"Arithmetic gives an integer; this is {_kind_of(side)}.", side.span)
        for node in tied[1:]:
            self.groups.join(tied[0], node)
        order = isinstance(condition, Comparison) and condition.operator not in ("==", "!=")
        for side in sides:
            if tied and not isinstance(side, Variable | Arithmetic):
                self.evidence(side, tied[0])
            if order and isinstance(side, Symbol | Compound | Float):
                raise self.error(f"Only integers have an order here; this is {_kind_of(side)}.", side.span)
        if order and tied and not computed:
            self.ordered.append((tied[0], (condition.span, "members are compared by their order")))

    def differs(self, condition: Comparison | Equation) -> bool:
        """Whether a condition is `!=` between an integer and a variable that may hold a term: it joins no domains."""
        if not isinstance(condition, Comparison) or condition.operator != "!=":
            return False

        def whole(side: Term) -> bool:
            return isinstance(side, Arithmetic) or (isinstance(side, Variable) and side.name in self.computed)

        def loose(side: Term) -> bool:
            return isinstance(side, Variable) and side.name in self.loose

        left, right = condition.left, condition.right
        return (loose(left) and whole(right)) or (whole(left) and loose(right))

    def operands(self, arithmetic: Arithmetic) -> Iterable[Variable]:
        """The variables in `arithmetic`. Raises where another operand is not an integer."""
        stack: list[Term] = [arithmetic]
        while stack:
            term = stack.pop()
            if isinstance(term, Arithmetic):
                stack.extend(term.operands)
            elif isinstance(term, Variable):
                yield term
            elif not isinstance(term, Integer):
                is_slash = isinstance(term, Compound) and term.functor == "slash"
                hint = " To divide integers, write `//`." if is_slash else ""
                raise self.error(f"Arithmetic in arguments is for integers; this is {_kind_of(term)}.{hint}", term.span)

    def inside(self, rule: NormalRule, nodes: dict[str, int | None]) -> None:
        """Marks the domains of variables that also stand inside compound terms."""

        def mark(term: Term) -> None:
            if isinstance(term, Compound):
                for variable in term_variables(term):
                    node = nodes.setdefault(variable.name, None)
                    if node is not None:
                        self.nested.append(node)

        for item in _items(rule):
            for argument in item.arguments:
                mark(argument)
        for condition in rule.conditions:
            if not isinstance(condition, Negation):
                mark(condition.left)
                mark(condition.right)

    def declarations(self) -> None:
        """Reads the items of declarations: their constants, and the arguments that priorities compute with."""
        rules = self.rules
        items = [prune.item for prune in rules.prunes] + [beam.item for beam in rules.beams]
        items += [distribution.item for distribution in rules.distributions if not distribution.rest]
        self.computed = frozenset()
        for item in items:
            self.allowed = {}
            self.item_if_known(item, {})
        for shown in rules.source.declarations:
            if isinstance(shown, ShowDeclaration) and shown.item.key in rules.predicates:
                self.shown(shown.item, rules.predicates[shown.item.key].types)
        for priority in rules.priorities:
            self.allowed = {}
            nodes: dict[str, int | None] = {}
            stack: list[PriorityExpression] = [priority.expression]
            items = [priority.item]
            values: list[VariableValue] = []
            while stack:
                node = stack.pop()
                if isinstance(node, Application):
                    stack.extend(node.operands)
                elif isinstance(node, ItemValue | Side):
                    items.append(node.item)
                elif isinstance(node, VariableValue):
                    values.append(node)
            self.computed = frozenset(value.name for value in values)
            for item in items:
                self.item_if_known(item, nodes)
            for value in values:
                known = nodes.get(value.name)
                if known is not None:
                    words = f"the priority of `{priority.item.key}` computes with `{value.name}`"
                    self.ordered.append((known, (value.span, words)))

    def shown(self, item: Item, types: tuple[Type, ...] | None) -> None:
        """Checks what drawings show against declared types; it says nothing of the program itself."""
        self.allowed = {}
        for argument, (term, union) in enumerate(zip(item.arguments, types or (), strict=False)):
            self.fit(term, union, item.key, argument)

    def item_if_known(self, item: Item, nodes: dict[str, int | None]) -> None:
        if item.key in self.rules.predicates:
            self.item(item, nodes)

    # Conclusions.

    def gather(self) -> None:
        """Collects the evidence of the whole text."""
        for axiom in self.rules.axioms:
            self.item(axiom.item, {})
        for rule in self.rules.rules:
            self.rule(rule)
        self.declarations()

    def terms(self, computed: bool) -> frozenset[Position]:
        """The positions of domains with compound terms; with `computed`, only of those that are also computed with."""
        find = self.groups.find
        roots = {find(node) for node, kind, _ in self.kinds if kind == "term"}
        if computed:
            roots &= {find(node) for node, _ in (*self.arithmetic, *self.ordered)}
        return frozenset(position for position, node in self.positions.items() if find(node) in roots)

    def run(self) -> Domains:
        find = self.groups.find
        numbers: dict[int, int] = {}
        for node in range(len(self.groups.parent)):
            numbers.setdefault(find(node), len(numbers))

        def number(node: int) -> int:
            return numbers[find(node)]

        count = len(numbers)
        positions: list[list[Position]] = [[] for _ in range(count)]
        for position, node in self.positions.items():
            positions[number(node)].append(position)
        kinds: list[dict[str, _Evidence]] = [{} for _ in range(count)]
        for node, kind, evidence in self.kinds:
            kinds[number(node)].setdefault(kind, evidence)
        arithmetic: dict[int, _Evidence] = {}
        for node, evidence in self.arithmetic:
            arithmetic.setdefault(number(node), evidence)
        ordered: dict[int, _Evidence] = {}
        for node, evidence in self.ordered:
            ordered.setdefault(number(node), evidence)
        nested = {number(node) for node in self.nested}
        constants: list[dict[Term, None]] = [{} for _ in range(count)]
        for node, term in self.constants:
            constants[number(node)].setdefault(term)
        declared = self.declared(number, count)

        domains = []
        for index in range(count):
            self.meet(positions[index], kinds[index], declared[index], arithmetic.get(index), ordered.get(index))
            found = frozenset(kinds[index]) | (frozenset(("int",)) if index in arithmetic else frozenset())
            allowed = declared[index]
            domains.append(
                Domain(
                    number=index,
                    positions=tuple(positions[index]),
                    kinds=found,
                    declared=None if allowed is None else frozenset(allowed),
                    arithmetic=index in arithmetic,
                    ordered=index in ordered,
                    nested=index in nested,
                    constants=tuple(constants[index]),
                )
            )
        variables = {
            rule: {name: None if node is None else number(node) for name, node in nodes.items()}
            for rule, nodes in self.variables.items()
        }
        of = {p: number(node) for p, node in self.positions.items()}
        return Domains(tuple(domains), of, variables, self.divided(domains, number))

    def divided(self, domains: list[Domain], number: Callable[[int], int]) -> tuple[Quotient, ...]:
        """The quotients of which only facts can say whether they divide integers. Raises where the text says so."""
        found = []
        for term, nodes in self.quotients:
            here = [domains[number(node)] for node in nodes]
            open_ = [d.number for d in here if not (d.arithmetic or d.ordered or d.declared == frozenset(("int",)))]
            if not open_:
                raise self.error(NO_DIVISION.format(show(term)), term.span)
            found.append(Quotient(term, tuple(open_)))
        return tuple(found)

    def declared(self, number: Callable[[int], int], count: int) -> list[dict[str, _Evidence] | None]:
        """By domain, the kinds that its declared positions allow, each with the place of a declaration."""
        result: list[dict[str, _Evidence] | None] = [None] * count
        for declaration in self.rules.source.declarations:
            if not isinstance(declaration, TypeDeclaration) or declaration.key not in self.rules.predicates:
                continue
            for argument, union in enumerate(declaration.arguments):
                index = number(self.positions[declaration.key, argument])
                allowed = result[index]
                if allowed is None:
                    allowed = result[index] = {}
                for kind in _union_kinds(union):
                    words = f"argument {argument + 1} of `{declaration.key}` is declared"
                    allowed.setdefault(kind, (union[0].span, words))
        return result

    def meet(
        self,
        positions: list[Position],
        kinds: dict[str, _Evidence],
        declared: dict[str, _Evidence] | None,
        arithmetic: _Evidence | None,
        ordered: _Evidence | None,
    ) -> None:
        """Raises where what the text says of a domain is contradictory."""
        where = " and ".join([f"argument {i + 1} of `{key}`" for key, i in positions[:2]])
        shared = f" Both belong to {where}{', and more' if len(positions) > 2 else ''}." if positions else ""
        if arithmetic is not None:
            for kind in ("symbol", "term", "float"):
                if kind in kinds:
                    self.clash(kinds[kind], arithmetic, "arithmetic is for integers", shared)
            if declared is not None and "int" not in declared:
                place = next(iter(declared.values()))
                self.clash(arithmetic, (place[0], f"{place[1]} {_listing(declared)}"), "that is not an integer", "")
        if ordered is not None:
            for kind in ("symbol", "term", "float"):
                if kind in kinds:
                    self.clash(kinds[kind], ordered, "only integers have an order here", shared)
            if declared is not None and "int" not in declared:
                place = next(iter(declared.values()))
                self.clash(ordered, (place[0], f"{place[1]} {_listing(declared)}"), "that has no order", "")
        if declared is not None:
            for kind, evidence in kinds.items():
                if kind not in declared:
                    place = next(iter(declared.values()))
                    self.clash(evidence, (place[0], f"{place[1]} {_listing(declared)}"), "", "")

    def clash(self, here: _Evidence, there: _Evidence, reason: str, shared: str) -> None:
        span, words = here
        because = f", and {reason}" if reason else ""
        here_is = "here" if words.startswith("`") else "here is"
        raise self.error(
            f"These types cannot meet: {here_is} {words}, but in line {there[0].line} {there[1]}{because}.{shared}",
            span,
        )


def _computed(rule: NormalRule) -> frozenset[str]:
    """The variables of a rule that must be integers: those computed, computed with, or compared by order."""
    found: set[str] = set()
    pairs: list[tuple[str, str]] = []
    for condition in rule.conditions:
        if isinstance(condition, Negation):
            continue
        sides = (condition.left, condition.right)
        operator = condition.operator if isinstance(condition, Comparison) else "=="
        for side in sides:
            if isinstance(side, Arithmetic):
                found.update(v.name for v in term_variables(side))
        if operator == "!=":  # also a term is different from an integer
            continue
        if operator != "==" or any(isinstance(side, Arithmetic) for side in sides):
            found.update(side.name for side in sides if isinstance(side, Variable))
        elif isinstance(condition.left, Variable) and isinstance(condition.right, Variable):
            pairs.append((condition.left.name, condition.right.name))
    size = -1
    while size != len(found):  # a variable that equals one of these is one of them
        size = len(found)
        for pair in pairs:
            if not found.isdisjoint(pair):
                found.update(pair)
    return frozenset(found)


def _items(rule: NormalRule) -> Iterable[Item]:
    yield rule.head
    for antecedent in rule.antecedents:
        yield antecedent.item
    for condition in rule.conditions:
        if isinstance(condition, Negation):
            yield condition.item


def _union_kinds(union: Type) -> list[str]:
    """The kinds that a declared union allows; a compound type such as `slash(symbol, list)` is of kind `term`."""
    kinds: dict[str, None] = {}
    for name in union:
        for kind in sorted(_DECLARED.get(name.name, frozenset(("term",))) if not name.arguments else ("term",)):
            kinds.setdefault(kind)
    return list(kinds)


def _listing(kinds: Iterable[str]) -> str:
    return " | ".join(sorted(kinds))


def _short(name: str) -> str:
    return name if len(name) <= 30 else name[:27] + "..."


def _kind_of(term: Term) -> str:
    match term:
        case Symbol():
            return f"the symbol `{_short(term.name)}`"
        case Integer() | Float():
            return f"the number `{term.value}`"
        case Compound():
            return f"a term `{_short(term.functor)}(...)`"
        case _:
            return "arithmetic"


def fits(term: Term, union: Type) -> bool:
    """Whether `term` can be a member of a declared type; a variable fits everything.

    >>> from dynagrad.rules.parse import parse, parse_term
    >>> union = parse(":- type p(slash(symbol, list) | int).").declarations[0].arguments[0]
    >>> fits(parse_term("s/[np,vp]"), union), fits(parse_term("s/vp"), union)
    (True, False)
    """
    return any(_fits_one(term, name.name, name.arguments) for name in union)


def _fits_one(term: Term, name: str, arguments: tuple[Type, ...]) -> bool:
    if isinstance(term, Variable):
        return True
    if isinstance(term, Arithmetic):
        return name in ("int", "term") and not arguments
    if arguments:
        return (
            isinstance(term, Compound)
            and term.functor == name
            and len(term.arguments) == len(arguments)
            and all(fits(a, u) for a, u in zip(term.arguments, arguments, strict=True))
        )
    if name == "list":
        while isinstance(term, Compound) and term.functor == "cons" and len(term.arguments) == 2:
            term = term.arguments[1]
        return isinstance(term, Variable) or term == Symbol("nil")
    wanted = {"int": Integer, "symbol": Symbol, "float": Float, "term": object}.get(name, ())
    return isinstance(term, wanted)


def infer(rules: Rules) -> Domains:
    """The domains of the argument positions of `rules`.

    >>> from dynagrad.rules.parse import parse
    >>> from dynagrad.rules.normalise import normalise
    >>> domains = infer(normalise(parse("path(I+1) += path(I) * step(I,X).")))
    >>> domains.of["path/1", 0] == domains.of["step/2", 0] != domains.of["step/2", 1]
    True
    >>> domains.at("path/1", 0).arithmetic, sorted(domains.at("path/1", 0).kinds)
    (True, ['int'])
    """
    typed = {d.key for d in rules.source.declarations if isinstance(d, TypeDeclaration)}
    mixed: frozenset[Position] = frozenset()
    while True:
        inference = _Inference(rules, mixed)
        inference.gather()
        clashing = frozenset(p for p in inference.terms(computed=True) if p[0] not in typed) - mixed
        if not clashing:
            return inference.run()
        alone = _Inference(rules, mixed | clashing)  # those that have terms without the variables computed with
        alone.gather()
        more = clashing & alone.terms(computed=False)
        if not more:
            return inference.run()
        mixed |= more  # it grows, so this ends
