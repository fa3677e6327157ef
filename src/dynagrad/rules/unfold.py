"""Unfolding of transient predicates: each use is replaced by the bodies of their rules (Tamaki and Sato 1984).

The aggregator must distribute over the use, or the program is refused. All else of the normal form is made by
`normalise.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ..errors import ProgramError, Span
from .aggregators import AGGREGATORS
from .normal import Antecedent, Axiom, NormalRule, Unfolded
from .show import show
from .substitution import (
    FreshVariables,
    Substitution,
    TooDeep,
    condition_variables,
    decomposed,
    item_variables,
    substituted_condition,
    substituted_item,
    unify,
    with_values,
)
from .syntax import (
    MAX_DEPTH,
    ONE,
    AntecedentValue,
    Application,
    Arithmetic,
    Compound,
    Condition,
    Expression,
    Item,
    Negation,
    Numeral,
    Source,
    Term,
    Variable,
)

MAX_UNFOLDED = 5_000  # rules that the unfolding of transient predicates may make
MAX_ANTECEDENTS = 200  # of one rule that unfolding makes


class Unfolder:
    """Unfolds each use of a transient predicate by its rules."""

    def __init__(self, source: Source, semiring: str | None, keys: Mapping[str, Span], axioms: list[Axiom]) -> None:
        self.source, self.semiring, self.keys = source, semiring, keys
        self.definitions: dict[str, list[NormalRule]] = {key: [] for key in keys}
        self.made = 0
        for axiom in axioms:
            if axiom.item.key in keys:
                value = self._asserted(axiom)
                written = "" if axiom.aggregator == "=" else axiom.aggregator
                self.definitions[axiom.item.key].append(
                    NormalRule(0, axiom.item, written, (), value, (), show(axiom), axiom.span, axiom.source)
                )

    def _asserted(self, axiom: Axiom) -> Expression:
        if axiom.value is not None:
            return Numeral(axiom.value, axiom.span)
        return ONE if self.semiring is not None else Numeral(1, axiom.span)

    def error(self, message: str, span: Span) -> ProgramError:
        return ProgramError(message, self.source.text, span, self.source.filename)

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
        """The transient predicates in topological order: each after those that it uses."""
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
                    f"`not` cannot use `{condition.item.key}`: a transient predicate is never stored.",
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
            raise self.error(f"SIDE cannot use `{key}`: a transient predicate is never stored.", span)
        if self.semiring is not None:  # a right side is a product there, and times distributes over plus
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
        if not places or not is_linear(rule.value, index, places):
            raise self.error(
                f"The transient predicate `{key}` cannot be unfolded here: `{rule.aggregator}` does not distribute "
                "over this use of its value.",
                span,
            )

    def _combine(self, rule: NormalRule, index: int, definition: NormalRule) -> Iterator[NormalRule]:
        """The resolvent of `rule` and `definition` at the antecedent number `index`, if they unify."""
        rule = _named(rule, index)
        names = FreshVariables(_normal_names(rule))
        renaming: Substitution = {}
        for variable in _normal_variables(definition):
            if variable.name not in renaming:
                known = variable.name not in names.taken
                name = variable.name if known else names.fresh(f"{variable.name}_")
                names.taken.add(name)
                renaming[variable.name] = replace(variable, name=name)
        try:
            # A renaming is applied once, unlike a substitution: a new name may be the old one of another variable.
            fresh = _rename(definition, renaming)
            substitution: Substitution = {}
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

    def _merge(self, rule: NormalRule, index: int, fresh: NormalRule, substitution: Substitution) -> NormalRule:
        inserted = len(fresh.antecedents)
        values: dict[int, Expression] = {}
        for old in range(len(rule.antecedents)):
            values[old] = AntecedentValue(old if old < index else old + inserted - 1)
        values[index] = with_values(fresh.value, {i: AntecedentValue(index + i) for i in range(inserted)})
        value = with_values(rule.value, values)
        if self.semiring is not None:
            value = _without_ones(value)
        before, numbers = _numbers_before(rule.value, index), _numbers_before(fresh.value, None)
        taken = _constants(fresh.parts)
        own = tuple(before + n for n in range(numbers) if n not in taken)
        below = _moved(_parts(fresh), (0, index), (0, before))
        inside = Unfolded(rule.antecedents[index].item, fresh.source, below, own)
        parts = _moved(_parts(rule), (index, inserted - 1), (before, numbers), inside)
        antecedents = (*rule.antecedents[:index], *fresh.antecedents, *rule.antecedents[index + 1 :])
        if len(antecedents) > MAX_ANTECEDENTS:
            raise self.error(
                f"Unfolding transient predicates gives this rule more than {MAX_ANTECEDENTS} items.", rule.span
            )
        conditions = [substituted_condition(c, substitution) for c in (*fresh.conditions, *rule.conditions)]
        return replace(
            rule,
            head=substituted_item(rule.head, substitution),
            antecedents=tuple([replace(a, item=substituted_item(a.item, substitution)) for a in antecedents]),
            value=value,
            conditions=tuple(decomposed(conditions)),
            parts=tuple(_substituted_part(part, substitution) for part in parts),
        )


# -- what stands where the rule as it is written has a transient item --------------------------------------------------

_Parts = tuple[int | Unfolded, ...]


def _parts(rule: NormalRule) -> _Parts:
    return rule.parts or tuple(range(len(rule.antecedents)))


def _moved(parts: _Parts, antecedents: tuple[int, int], numbers: tuple[int, int], by: Unfolded | None = None) -> _Parts:
    """Antecedents, and numbers, from a place on moved by some places; `by` replaces that antecedent, if given."""
    found: list[int | Unfolded] = []
    for part in parts:
        if isinstance(part, Unfolded):
            constants = tuple([n + numbers[1] if n >= numbers[0] else n for n in part.constants])
            found.append(replace(part, parts=_moved(part.parts, antecedents, numbers, by), constants=constants))
        elif part == antecedents[0] and by is not None:
            found.append(by)
        else:
            found.append(part + antecedents[1] if part >= antecedents[0] else part)
    return tuple(found)


def _constants(parts: _Parts) -> set[int]:
    """The numbers that belong to transient items."""
    inside = [part for part in parts if isinstance(part, Unfolded)]
    return set().union(*(part.constants for part in inside), *(_constants(part.parts) for part in inside))


def _numbers_before(value: Expression, index: int | None) -> int:
    """How many numbers stand in a value before that of an antecedent; None: how many there are."""
    count = 0
    stack: list[Expression] = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, AntecedentValue) and node.index == index:
            return count
        if isinstance(node, Numeral):
            count += 1
        elif isinstance(node, Application):
            stack.extend(reversed(node.operands))
    return count


def _substituted_part(part: int | Unfolded, substitution: Substitution) -> int | Unfolded:
    if isinstance(part, int):
        return part
    parts = tuple([_substituted_part(p, substitution) for p in part.parts])
    return replace(part, item=substituted_item(part.item, substitution), parts=parts)


def _without_ones(value: Expression) -> Expression:
    """A product without factors that are empty products."""
    if not isinstance(value, Application) or value.operator != "*":
        return value
    kept = [x for x in map(_without_ones, value.operands) if x != ONE]
    return replace(value, operands=tuple(kept)) if len(kept) == 2 else kept[0] if kept else ONE


def _named(rule: NormalRule, index: int) -> NormalRule:
    """The rule with names for what one of its antecedents leaves open with `_`: the definition may ask for it again,
    and under `not` a `_` stands for anything.
    """

    def term(node: Term) -> Term:
        if isinstance(node, Variable):
            return replace(node, anonymous=False)
        return replace(node, arguments=tuple(map(term, node.arguments))) if isinstance(node, Compound) else node

    item = rule.antecedents[index].item
    named = replace(rule.antecedents[index], item=replace(item, arguments=tuple(map(term, item.arguments))))
    return replace(rule, antecedents=(*rule.antecedents[:index], named, *rule.antecedents[index + 1 :]))


def _rename(rule: NormalRule, renaming: Substitution) -> NormalRule:
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

    def part(node: int | Unfolded) -> int | Unfolded:
        if isinstance(node, int):
            return node
        return replace(node, item=item(node.item), parts=tuple([part(p) for p in node.parts]))

    return replace(
        rule,
        head=item(rule.head),
        antecedents=tuple([replace(a, item=item(a.item)) for a in rule.antecedents]),
        conditions=tuple([condition(c) for c in rule.conditions]),
        parts=tuple([part(p) for p in rule.parts]),
    )


def _normal_variables(rule: NormalRule) -> Iterator[Variable]:
    yield from item_variables(rule.head)
    for antecedent in rule.antecedents:
        yield from item_variables(antecedent.item)
    for condition in rule.conditions:
        yield from condition_variables(condition)


def _normal_names(rule: NormalRule) -> set[str]:
    return {variable.name for variable in _normal_variables(rule)}


def is_linear(value: Expression, index: int, places: Mapping[str, tuple[int, ...]]) -> bool:
    """Whether `value` is linear in an antecedent: it occurs once, and only below operators that distribute."""
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
