"""Replays the forward run of an engine in many digits, along given pops: the oracle of its gradient.

An engine that stops early, prunes, or leaves small updates pending has computed some function of its facts, determined
by the order of the pops, and its gradient is that of this function. So here the pops are given, facts may be perturbed,
and derivatives are differences of values; no derivative rule is shared. Terms, matching and semirings are those of
`oracle.py`. Slow on purpose.

An update that changes nothing in doubles is not propagated: its item is not popped for it. But it is part of a
derivative. So in the unperturbed run such contributions are recorded by their numbers in the order of sending, and in
every perturbed run the same ones stay pending with their items. A stage that came to its end settles: items are popped
for their pending contributions, and what these pops send is pending in turn, until nothing of size is left.

A maximum has a derivative only where one derivation wins, and an `abs` only away from zero: where left and right
differences disagree, the result is NaN.

Programs of plain arithmetic that the engine re-runs as a whole (a contribution may get worse, and no order makes items
final) have no pops to follow, and no place here.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import mpmath

from dynagrad.rules import syntax as s
from dynagrad.rules.parse import parse
from oracle import (
    Instance,
    Key,
    Numbers,
    Row,
    Semiring,
    _constant,
    _Database,
    _groups,
    _instances,
    _is_axiom,
    _items,
    aggregator_of,
    aggregators,
    builtin_semirings,
    declared_semiring,
    fact_rows,
    ground,
    term,
)

DIGITS = 50
STEP, SECOND_STEP = "1e-15", "1e-11"  # of first and second differences
REST, ROUNDS = "1e-45", 600  # what may be left when a stage has settled; how many times its items are popped for that
SELECTIVE = ("viterbi", "tropical", "boolean")

Pops = Iterable[tuple[str, Sequence[Any]]]
Place = tuple[str, int]  # a predicate and the number of one of its fact rows
Moves = Mapping[Place | Key, Any]  # what is added to a fact's number, or to an item from the start


class NotPending(Exception):
    """The pops name an item that had no update waiting: no run can have popped it then."""


@dataclass(frozen=True)
class Replayed:
    """The chart after the last pop, in the semiring's scale."""

    values: Mapping[Key, Any]

    def value(self, key: str, arguments: Sequence[Any] = ()) -> Any:
        """The value of an item; None where it was never derived."""
        return self.values.get((key, tuple(map(term, arguments))))


def item_of(goal: str | tuple[str, Sequence[Any]]) -> Key:
    """An item from its text, or from its predicate and arguments."""
    if isinstance(goal, str):
        head = parse(f"{goal} = 1.").rules[0].head
        return head.key, tuple(v for a in head.arguments if (v := ground(a, {})) is not None)
    return goal[0], tuple(map(term, goal[1]))


# -- values ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Arithmetic:
    """What values are combined with. In `log` a value is a weight inside and its log outside."""

    one: Any
    read: Callable[[Any], Any]  # a number of the text or of a fact
    outside: Callable[[Any], Any]
    total: Callable[[str, list[Any]], Any]  # contributions to an item of a predicate
    sends: Callable[[str], str]  # how updates reach a head: "update", "new" or "difference"
    operation: Callable[[str], Callable[..., Any]]


def _arithmetic(
    semiring: str | Semiring | None,
    aggregator: Mapping[str, str],
    functions: Mapping[str, Callable[..., Any]],
    digits: int,
) -> _Arithmetic:
    numbers = Numbers(digits)
    same = lambda value: value  # noqa: E731
    if semiring is None:
        totals = {key: aggregators(numbers)[op][1] for key, op in aggregator.items()}
        known = numbers.operations
        return _Arithmetic(
            numbers.convert(1),
            numbers.convert,
            same,
            lambda key, values: totals.get(key, numbers.sum)(values),
            lambda key: "difference" if aggregator[key] == "+=" else "new",
            lambda name: known[name] if name in known else lambda *values: numbers.convert(functions[name](*values)),
        )
    ring = builtin_semirings(numbers)[semiring] if isinstance(semiring, str) else semiring
    outside: Callable[[Any], Any] = same
    if semiring == "log":
        ring = replace(builtin_semirings(numbers)["real"], number=lambda value: mpmath.exp(numbers.convert(value)))
        outside = lambda weight: mpmath.log(weight) if weight else mpmath.mpf("-inf")  # noqa: E731
    how = "new" if semiring in SELECTIVE else "update"
    return _Arithmetic(
        ring.one, ring.number, outside, lambda _, values: ring.total(values), lambda _: how, lambda _: ring.times
    )


def _right_side(rule: s.Rule, arithmetic: _Arithmetic) -> Callable[[Sequence[Any]], Any]:
    """A rule's value as a function of those of its items, in the order of the text."""
    places = itertools.count()

    def build(expression: s.Expression) -> Callable[[Sequence[Any]], Any]:
        constant = _constant(expression)
        if constant is not None:
            number = arithmetic.read(constant)
            return lambda _: number
        match expression:
            case s.ItemValue() | s.Side():
                place = next(places)
                return lambda values: values[place]
            case s.Application(operator, operands):
                parts = [build(o) for o in operands]
                operation = arithmetic.operation(operator)
                return lambda values: operation(*(part(values) for part in parts))
        raise TypeError(f"not an expression: {expression!r}")

    return build(rule.body)


def _sides(expression: s.Expression) -> list[bool]:
    """For each item of a right side whether it stands in `SIDE`."""
    match expression:
        case s.ItemValue() | s.Side():
            return [isinstance(expression, s.Side)]
        case s.Application(_, operands):
            return [side for operand in operands for side in _sides(operand)]
    return []


def _moved(value: Any, by: Any) -> Any:
    """A number and what is added to it; a pair moves in its first part, or by a pair."""
    if not isinstance(value, tuple):
        return value + by
    p, r = by if isinstance(by, tuple) else (by, 0)
    rest = tuple(x + y for x, y in zip(value[1], r, strict=True)) if isinstance(r, tuple) else value[1]
    return value[0] + p, rest if isinstance(value[1], tuple) else value[1] + r


# -- the computation -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Stage:
    """Predicates that run together after all earlier ones, and which instances send what."""

    keys: frozenset[str]
    pops: tuple[Key, ...] | None  # None: nothing is popped, everything comes in one go
    sinks: frozenset[str]  # never antecedents: contributions count at once
    unfolded: frozenset[str]  # transient: no update of theirs ever waits
    fires: tuple[Instance, ...]  # no item in this stage
    drives: Mapping[Key, tuple[tuple[Instance, int], ...]]
    rests: frozenset[str]  # updates that change nothing rest with items of these
    number: int


class _Agenda:
    """What a stage still has to do: updates one by one, by item, and apart those that changed nothing."""

    def __init__(self, waiting: dict[Key, list[Any]], rest_of: Callable[[Key, Any], bool]) -> None:
        self.waiting, self.resting = waiting, dict[Key, list[Any]]()
        self.rest_of = rest_of

    def send(self, item: Key, value: Any) -> None:
        agenda = self.resting if self.rest_of(item, value) else self.waiting
        agenda.setdefault(item, []).append(value)


class Computation:
    """A program, its facts and the order of its pops, ready to be computed with other numbers.

    `pops` are the items in the order in which they were taken off the agenda; facts, and what comes in one go, are not
    among them. `together` says whether all predicates share one agenda, apart from negation; unless given it is read
    off the declarations and the pops: in a semiring, a declared order, a beam or pruning does that. `ended` has the
    predicates whose stage came to its end by itself, and so settles.
    """

    def __init__(
        self,
        source: str,
        facts: Mapping[str, Any],
        pops: Pops,
        *,
        semiring: str | Semiring | None = None,
        functions: Mapping[str, Callable[..., Any]] | None = None,
        digits: int = DIGITS,
        together: bool | None = None,
        ended: Collection[str] = (),
    ) -> None:
        program = parse(source)
        self.ended = frozenset(ended)
        self.rested: set[tuple[int, int]] = set()  # stage and number of contributions that changed nothing
        self.unsettled: set[Key] = set()  # items whose rests did not come to an end, in some replay
        self.digits, self.functions = digits, dict(functions or {})
        self.semiring = declared_semiring(program) if semiring is None else semiring
        self.pops = [(key, tuple(map(term, arguments))) for key, arguments in pops]
        self.rules = [rule for rule in program.rules if not _is_axiom(rule)]
        self.axioms = [rule for rule in program.rules if _is_axiom(rule)]
        if self.semiring is None:  # what is asserted by `=` alone counts once
            told = aggregator_of(program)
            places = {(rule.head, rule.head.key in told and n): rule for n, rule in enumerate(self.axioms)}
            self.axioms = list(places.values())
        with mpmath.workdps(digits):
            aggregator = aggregator_of(program)
            self.sums = frozenset(key for key, op in aggregator.items() if op == "+=")
            self.arithmetic = _arithmetic(self.semiring, aggregator, self.functions, digits)
            self.value_of = {id(rule): _right_side(rule, self.arithmetic) for rule in self.rules}
            self.rows: dict[Place, tuple[Row, Any]] = {}
            counts: dict[str, int] = {}
            for key, row, value in fact_rows(facts):
                self.rows[key, counts.setdefault(key, 0)] = row, self._number(value)
                counts[key] += 1
        self.side = {id(rule): _sides(rule.body) for rule in self.rules}
        kinds: dict[str, set[str]] = {"external": set(), "transient": set()}
        for d in program.declarations:
            if isinstance(d, s.PredicateDeclaration):
                kinds.setdefault(d.kind, set()).update(d.keys)
        self.external, self.transient = frozenset(kinds["external"]), frozenset(kinds["transient"])
        self.stages = self._stages(program, together)

    @cached_property
    def unmoved(self) -> Replayed:
        """The chart of the facts as they are."""
        return self._replay({}, base=True)

    def _number(self, value: Any) -> Any:
        """A fact's number in the semiring's scale; without one it is the semiring's one."""
        if value is None:
            return self.arithmetic.outside(self.arithmetic.one)
        return mpmath.mpf(value) if self.semiring == "log" else self.arithmetic.read(value)

    # -- which instances there are

    def _stages(self, program: s.Source, together: bool | None) -> list[_Stage]:
        popped = {key for key, _ in self.pops}
        held = {d.item.key for d in program.declarations if isinstance(d, s.PruneDeclaration | s.BeamDeclaration)}
        ordered = any(
            isinstance(d, s.PriorityDeclaration) or (isinstance(d, s.AgendaDeclaration) and d.name != "auto")
            for d in program.declarations
        )
        heads = {rule.head.key for rule in self.rules}
        used = {item.key for rule in self.rules for item in _items(rule.body)}
        groups = [frozenset(group & heads) for group in _groups(self.rules) if group & heads]
        cyclic = {
            group: any(r.head.key in group and i.key in group for r in self.rules for i in _items(r.body))
            for group in groups
        }
        if together is None:
            alone = any(group & popped and not cyclic[group] for group in groups)
            together = self.semiring is not None and bool(ordered or held or alone)
        if together:
            depth: dict[str, int] = {}
            for group in groups:
                mine = [rule for rule in self.rules if rule.head.key in group]
                below = [depth.get(i.key, 0) for r in mine for i in _items(r.body)]
                negated = [c.item.key for r in mine for c in r.conditions if isinstance(c, s.Negation)]
                level = max([0, *below, *(depth[key] + 1 for key in negated if key in depth)])
                depth.update(dict.fromkeys(group, level))
            groups = [frozenset(k for k in depth if depth[k] == level) for level in sorted(set(depth.values()))]
        database = _Database()
        for item in self._given({}):
            if item[0] not in heads:
                database.add(*item)
        stages = []
        for group in groups:
            pops = None
            if together or cyclic[group] or group & (popped | held):
                pops = tuple(item for item in self.pops if item[0] in group)
            sinks = group - used - popped - held
            stage = self._stage(group, pops, sinks, database)
            rests = group & self.ended - sinks - self.transient
            if held or pops is None or self.semiring not in ("real", "expectation", None) or rests - self.sums:
                rests = frozenset()
            stages.append(replace(stage, rests=rests, number=len(stages)))
        strangers = {key for key, _ in self.pops} - {key for stage in stages for key in stage.keys if stage.pops}
        if strangers:
            raise NotPending(f"no rule derives {sorted(strangers)}")
        return stages

    def _stage(
        self, keys: frozenset[str], pops: tuple[Key, ...] | None, sinks: Collection[str], database: _Database
    ) -> _Stage:
        """A stage, and in the database all items of its chart."""
        mine = [rule for rule in self.rules if rule.head.key in keys]
        at_once = keys if pops is None else keys & (self.transient | set(sinks))
        for item in dict.fromkeys(pops or ()):
            database.add(*item)
        for item in self._given({}):
            if item[0] in at_once:
                database.add(*item)
        found: list[Instance] = []
        grew = True
        while grew:
            database.new_round()
            found = [instance for rule in mine for instance in _instances(rule, database, self.external)]
            reached = [(i.rule.head.key, i.head) for i in found if i.rule.head.key in at_once]
            grew = any([database.add(*item) for item in reached])
        drives: dict[Key, list[tuple[Instance, int]]] = {}
        fires: list[Instance] = []
        for instance in found:
            inside = [i for i, (key, _) in enumerate(instance.items) if key in keys]
            for i in inside:
                drives.setdefault(instance.items[i], []).append((instance, i))
            if not inside:
                fires.append(instance)
        return _Stage(
            keys,
            pops,
            frozenset(sinks),
            keys & self.transient,
            tuple(fires),
            {item: tuple(those) for item, those in drives.items()},
            frozenset(),
            0,
        )

    def _given(self, moves: Moves) -> dict[Key, list[Any]]:
        """What facts, axioms and moves say of items, each a value inside."""
        arithmetic = self.arithmetic
        given: dict[Key, list[Any]] = {}
        for (key, n), (row, number) in self.rows.items():
            moved = _moved(number, moves[key, n]) if (key, n) in moves else number
            given.setdefault((key, row), []).append(arithmetic.read(moved))
        for rule in self.axioms:
            row = tuple(v for a in rule.head.arguments if (v := ground(a, {})) is not None)
            constant = _constant(rule.body)
            number = arithmetic.one if constant is None else arithmetic.read(constant)  # `head.` is a fact without one
            given.setdefault((rule.head.key, row), []).append(number)
        for (key, place), added in moves.items():
            if not isinstance(place, int):
                given.setdefault((key, place), []).append(added)
        return given

    # -- the values

    def replay(self, moves: Moves | None = None) -> Replayed:
        """The chart after the last pop; moves add to the numbers of facts, or to an item from the start."""
        unmoved = self.unmoved  # which contributions rest, this run says
        return self._replay(moves, base=False) if moves else unmoved

    def _replay(self, moves: Moves, base: bool) -> Replayed:
        with mpmath.workdps(self.digits):
            chart: dict[Key, Any] = {}
            given = self._given(moves)
            heads = {key for stage in self.stages for key in stage.keys}
            for item, values in given.items():
                if item[0] not in heads:
                    chart[item] = self.arithmetic.total(item[0], values)
            for stage in self.stages:
                self._run(stage, {k: list(v) for k, v in given.items() if k[0] in stage.keys}, chart, base)
            return Replayed({item: self.arithmetic.outside(value) for item, value in chart.items()})

    def _run(self, stage: _Stage, waiting: dict[Key, list[Any]], chart: dict[Key, Any], base: bool) -> None:
        """One stage: `waiting` is its agenda, with the updates of an item one by one."""
        numbers = itertools.count()

        def rests(item: Key, value: Any) -> bool:
            place = stage.number, next(numbers)
            if base and item[0] in stage.rests and item in chart and self._nothing_new(item, chart[item], value):
                self.rested.add(place)
            return place in self.rested

        def unfold() -> None:
            while unfolded := [item for item in agenda.waiting if item[0] in stage.unfolded]:
                self._pop(unfolded[0], stage, agenda, chart)

        agenda = _Agenda(waiting, rests)
        for instance in stage.fires:
            values = [self._antecedent(item, chart) for item in instance.items]
            agenda.send((instance.rule.head.key, instance.head), self._value(instance, values))
        if stage.pops is not None:
            unfold()
            for item in stage.pops:
                self._pop(item, stage, agenda, chart)
                unfold()
        if stage.rests:
            self._settle(stage, agenda, chart)
        for item, updates in agenda.waiting.items():
            if stage.pops is None or item[0] in stage.sinks:
                chart[item] = self.arithmetic.total(item[0], updates)

    def _nothing_new(self, item: Key, old: Any, update: Any) -> bool:
        """Whether doubles cannot tell an item's value from what it is with an update."""
        return all(float(a) + float(b) == float(a) for a, b in zip(_flat(old), _flat(update), strict=True))

    def _settle(self, stage: _Stage, agenda: _Agenda, chart: dict[Key, Any]) -> None:
        """Pops items for what rests with them, in rounds, until that is too little to be seen."""
        agenda.rest_of = lambda item, _: item[0] in stage.rests
        held = agenda.waiting
        restless: set[Key] = set()
        for n in range(ROUNDS):
            moving = {k: v for k, v in agenda.resting.items() if not _tiny(self.arithmetic.total(k[0], v))}
            if not moving:
                return
            if n >= ROUNDS // 2:
                restless.update(moving)
            agenda.resting = {}
            for item, values in moving.items():
                # what is held back stays so; what goes through transients and to items that are only read does not
                stays = held.pop(item, None)
                held[item] = values
                self._pop(item, stage, agenda, chart)
                if stays is not None:
                    held[item] = stays
                while unfolded := [key for key in held if key[0] in stage.unfolded]:
                    self._pop(unfolded[0], stage, agenda, chart)
        self.unsettled |= restless
        for item in restless:
            chart[item] = _scaled(mpmath.nan, chart[item])

    def _pop(self, item: Key, stage: _Stage, agenda: _Agenda, chart: dict[Key, Any]) -> None:
        if item not in agenda.waiting and item in agenda.resting:  # too little one by one, and enough together
            agenda.waiting[item] = agenda.resting.pop(item)
        if item not in agenda.waiting:
            raise NotPending(f"{item} was popped with nothing pending")
        update = self.arithmetic.total(item[0], agenda.waiting.pop(item))
        old = chart.get(item)
        new = update if old is None else self.arithmetic.total(item[0], [old, update])
        chart[item] = new
        for instance, driver in stage.drives.get(item, ()):
            if self.side[id(instance.rule)][driver] and old is not None:
                continue  # being derived is news only once
            values = []
            for i, other in enumerate(instance.items):
                if other == item:
                    values.append(new if i <= driver else old)
                else:
                    values.append(self._antecedent(other, chart))
            if any(value is None for value in values):
                continue
            how = self.arithmetic.sends(instance.rule.head.key)
            if how == "update":
                values[driver] = update
            sent = self._value(instance, values)
            if how == "difference" and old is not None and not self.side[id(instance.rule)][driver]:
                values[driver] = old
                sent -= self._value(instance, values)
            agenda.send((instance.rule.head.key, instance.head), sent)

    def _antecedent(self, item: Key, chart: Mapping[Key, Any]) -> Any:
        if item[0] in self.external:
            return self.arithmetic.read(self.functions[item[0].rsplit("/", 1)[0]](*item[1]))
        return chart.get(item)

    def _value(self, instance: Instance, values: Sequence[Any]) -> Any:
        side = self.side[id(instance.rule)]
        seen = [self.arithmetic.one if at_side else v for v, at_side in zip(values, side, strict=True)]
        return self.value_of[id(instance.rule)](seen)

    # -- derivatives

    def places(self, wrt: Collection[str]) -> Iterator[Place]:
        """The fact rows of some predicates."""
        return (place for place in self.rows if place[0] in wrt)

    def _slopes(self, moves: Moves, goals: Sequence[Key]) -> list[Any]:
        """Derivatives of goals along moves that are not small."""
        with mpmath.workdps(self.digits):
            h = mpmath.mpf(STEP)
            small = [{p: _scaled(sign * h, by) for p, by in moves.items()} for sign in (-1, 1)]
            before, here, after = self.replay(small[0]).values, self.unmoved.values, self.replay(small[1]).values
            return [_combined(_slope(h), before.get(g), here.get(g), after.get(g)) for g in goals]

    def differences(self, goals: Sequence[Key], wrt: Collection[str | Place]) -> dict[Key, dict[Place, Any]]:
        """For each goal its derivative with respect to the number of each fact, or of those at some places; zero for
        infinite numbers."""
        found: dict[Key, dict[Place, Any]] = {goal: {} for goal in goals}
        for place in (place for place in self.rows if place in wrt or place[0] in wrt):
            number = self.rows[place][1]
            finite = mpmath.isfinite(number[0] if isinstance(number, tuple) else number)
            slopes = self._slopes({place: 1} if finite else {}, goals)
            for goal, slope in zip(goals, slopes, strict=True):
                found[goal][place] = slope
        return found

    def along(self, direction: Mapping[str, Sequence[Any]], goals: Sequence[Key]) -> dict[Key, Any]:
        """The derivatives of goals along a direction: a number per fact row of the predicates it names."""
        return dict(zip(goals, self._slopes(self._moves(direction), goals), strict=True))

    def of_constants(self, goals: Sequence[Key], items: Collection[Key]) -> dict[Key, dict[Key, Any]]:
        """Derivatives of goals with respect to a weight added to derived items from the start."""
        found: dict[Key, dict[Key, Any]] = {goal: {} for goal in goals}
        for item in items:
            for goal, slope in zip(goals, self._slopes({item: 1}, goals), strict=True):
                found[goal][item] = slope
        return found

    def hessian_times(
        self, goal: Key, direction: Mapping[str, Sequence[Any]], wrt: Collection[str]
    ) -> dict[Place, Any]:
        """The derivative, along a direction, of the derivative with respect to each fact."""
        forward = self._moves(direction)
        found: dict[Place, Any] = {}
        with mpmath.workdps(self.digits):
            h = mpmath.mpf(SECOND_STEP)
            for place in self.places(wrt):
                corners = []
                for a, b in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
                    moves = {p: _scaled(b * h, by) for p, by in forward.items()}
                    one = _scaled(a * h, 1)
                    moves[place] = _moved(moves[place], one) if place in moves else one
                    corners.append(self.replay(moves).values.get(goal))
                found[place] = _combined(lambda w, x, y, z: ((w - x) - (y - z)) / (4 * h * h), *corners)
        return found

    def _moves(self, direction: Mapping[str, Sequence[Any]]) -> dict[Place | Key, Any]:
        moves: dict[Place | Key, Any] = {}
        for key, numbers in direction.items():
            places = list(self.places({key}))
            for place, by in zip(places, numbers, strict=True):
                moves[place] = _exact(by)
        return moves


def _exact(number: Any) -> Any:
    return tuple(map(_exact, number)) if isinstance(number, Sequence) else mpmath.mpf(number)


def _flat(number: Any) -> list[Any]:
    return [x for part in number for x in _flat(part)] if isinstance(number, tuple) else [number]


def _tiny(number: Any) -> bool:
    return all(abs(x) < mpmath.mpf(REST) for x in _flat(number))


def _scaled(factor: Any, number: Any) -> Any:
    return tuple(_scaled(factor, x) for x in number) if isinstance(number, tuple) else factor * number


def _slope(h: Any) -> Callable[[Any, Any, Any], Any]:
    def slope(before: Any, here: Any, after: Any) -> Any:
        left, right = (here - before) / h, (after - here) / h
        kink = abs(left - right) > mpmath.mpf("1e-6") * (abs(left) + abs(right)) + mpmath.mpf("1e-9")
        return mpmath.nan if kink else (left + right) / 2

    return slope


def _combined(formula: Callable[..., Any], *values: Any) -> Any:
    """A formula of values, of pairs part by part; zero where there is no value at all."""
    if all(value is None for value in values):
        return mpmath.mpf(0)
    if isinstance(values[0], tuple):
        return tuple(_combined(formula, *parts) for parts in zip(*values, strict=True))
    return formula(*values)


# -- in one call -----------------------------------------------------------------------------------------------------


def replay(source: str, facts: Mapping[str, Any], pops: Pops, **options: Any) -> Replayed:
    """The chart that some pops lead to; see `Computation` for the options."""
    return Computation(source, facts, pops, **options).replay()


def differences(
    source: str, facts: Mapping[str, Any], pops: Pops, goal: Any, wrt: Collection[str], **options: Any
) -> dict[Place, Any]:
    """The derivative of a goal with respect to each fact of some predicates, in the semiring's scale.

    In `expectation` a fact moves in its first part alone: the pair of derivatives is that of a number and its dual.
    """
    item = item_of(goal)
    return Computation(source, facts, pops, **options).differences([item], wrt)[item]


def directional(
    source: str, facts: Mapping[str, Any], pops: Pops, goal: Any, direction: Mapping[str, Sequence[Any]], **options: Any
) -> Any:
    """The derivative of a goal along a direction, which has a number for each row of the predicates that it names."""
    item = item_of(goal)
    return Computation(source, facts, pops, **options).along(direction, [item])[item]


def hessian_times(
    source: str,
    facts: Mapping[str, Any],
    pops: Pops,
    goal: Any,
    direction: Mapping[str, Sequence[Any]],
    wrt: Collection[str],
    **options: Any,
) -> dict[Place, Any]:
    """The derivative of `differences` along a direction."""
    return Computation(source, facts, pops, **options).hessian_times(item_of(goal), direction, wrt)
