"""Loops: unrolled where they are short, and loops of the graph elsewhere.

The state of a loop of the graph is what its rounds change: variables, and the contents of references. Its abstract
value is found by fixed-point iteration, as in abstract interpretation (Cousot and Cousot 1977): a round is specialised
from the values before the loop; what it leaves unchanged stays static, what it changes becomes dynamic, and so on until
nothing more changes. Static reals are dynamic from the start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import LiftError, counted
from ...ir import Node, builders
from ...ir.node import fresh, whole
from ...ir.ops import integers
from ...ir.ops.scalars import logical_and
from ...ir.types import integer
from ..frontend.core import For, While
from ..frontend.source import mistake
from .choices import content_from, content_values, mismatch, token_index
from .heap.tags import without_tags
from .heap.unions import keys, refined_parts, unions_in
from .iteration import IterationSpace, iteration_space
from .joins import (
    AbstractValue,
    AtIndex,
    InContent,
    Mismatch,
    abstract,
    allow_unions,
    build,
    equal,
    flatten,
    join,
    leaf_types,
)
from .limits import most_copies
from .specialiser import Diverges, Specialiser, primitive
from .values import NOW, Ref, node_of

SHORT = 16  # rounds up to which a loop is unrolled
REPEATED = 64  # copies of a round up to which loops inside each other are unrolled
MOST_ITERATIONS = 60

State = tuple[Any, ...]


class NotUnrolled(Exception):
    """A loop cannot be unrolled: its condition is dynamic, or it is too long."""


class TooLong(NotUnrolled):
    """A loop needs at least so many copies of its round, which is more than the limit."""

    def __init__(self, copies: int) -> None:
        super().__init__()
        self.copies = copies


@primitive("loop")
def loop(s: Specialiser, e: While | For, env: dict[str, Any]) -> State:
    """The state after a loop."""
    initial = tuple(s.look(a, env) for a in e.initial)
    run = _While(s, e, env) if isinstance(e, While) else _For(s, e, env)
    s.at = e.at or s.at
    if run.short and not (isinstance(run, _While) and run.ends_by_real(initial)):
        try:
            return _unroll(s, run, initial, min(SHORT, REPEATED // s.product))
        except NotUnrolled:
            pass
    try:
        with s.closed():
            return run.in_graph(initial)
    except (Mismatch, LiftError) as problem:
        s.at = e.at or s.at
        wrong = mismatch(s, problem, e) if isinstance(problem, Mismatch) else problem
        most, product = most_copies(), s.product
        try:
            return _unroll(s, run, initial, most // product)
        except NotUnrolled as unrolled:
            if s.splits:
                return _united(s, run, initial)
            if not isinstance(unrolled, TooLong):
                raise wrong from None
            long = unrolled
            s.at = e.at or s.at
            raise s.error(
                "this loop could be compiled only by unrolling it, to at least "
                f"{counted(long.copies * product, 'copy', 'copies')} of a round with the loops around it, and the "
                "limit on unrolling is "
                f"{counted(most, 'copy', 'copies')}; the environment variable DYNAGRAD_UNROLLED raises it. It "
                "cannot stay a loop since "
                f"{_reason(wrong)}"
            ) from None


def _united(s: Specialiser, run: _While | _For, initial: State) -> State:
    """A loop whose state has values of several kinds, and tags of the graph where it has to."""
    wanted = keys().tags_wanted
    try:
        with s.uniting(), s.closed():
            return run.in_graph(initial, unions=True)
    except (Mismatch, LiftError):
        if s.tags or keys().tags_wanted == wanted:
            raise
    with s.uniting(tags=True), s.closed():
        found: State = without_tags(run.in_graph(initial, unions=True))
    return found


def _reason(problem: LiftError) -> str:
    """The message of an error, without its position."""
    return str(problem).split("\n", 1)[0]


def _unroll(s: Specialiser, run: _While | _For, state: State, most: int) -> State:
    """Runs a loop round by round. Raises NotUnrolled, and undoes all changes, where that cannot be."""
    with s.journal() as changed:
        rounds = 0
        count = run.count if run.count is not None else 2  # which is a guess
        if count > most:
            raise TooLong(count)
        s.product *= max(count, 1)
        while run.goes_on(rounds, state):
            if rounds >= most:
                raise TooLong(rounds + 1)
            state = run.round(rounds, state)
            rounds += 1
    for ref, content in changed.items():
        s.put(ref, content)
    return state


class _While:
    """A `while` loop: its condition, its round, and itself in the graph."""

    count: int | None = None
    short = True

    def __init__(self, s: Specialiser, e: While, env: dict[str, Any]) -> None:
        self.s, self.e, self.env = s, e, env

    def _environment(self, state: State) -> dict[str, Any]:
        return self.env | _named(self.s, self.e, state)

    def test(self, state: State) -> bool | Node:
        self.s.at = self.e.at or self.s.at
        return self.s.truth(self.s.evaluate(self.e.condition, self._environment(state)))

    def ends_by_real(self, initial: State) -> bool:
        """Whether the front end says that loops count in reals, and a real of the state decides when this one ends."""
        if not self.e.by_reals:
            return False
        forms = [abstract(x, vary=True) for x in initial]
        varied = tuple(build(p, iter([fresh(t) for t in leaf_types(p)])) for p in forms)
        try:
            with self.s.journal():
                return not isinstance(self.test(varied), bool)
        except LiftError:
            return False

    def goes_on(self, rounds: int, state: State) -> bool:
        found = self.test(state)
        if not isinstance(found, bool):
            raise NotUnrolled
        return found

    def round(self, rounds: int, state: State) -> State:
        found: State = self.s.evaluate(self.e.body, self._environment(state))
        return found

    def in_graph(self, initial: State, unions: bool = False) -> State:
        s = self.s
        changes = False  # whether evaluating the condition changes something in place
        right = False  # whether there is a round that is no mistake
        wanted = keys().tags_wanted

        def trace_round(state: State) -> tuple[Any, State]:
            nonlocal changes, right
            with s.journal() as changed:
                test = self.test(state)
            for ref, content in changed.items():
                s.put(ref, content)
            changes = bool(changed)
            if isinstance(test, bool):
                return test, self.round(0, state)
            try:
                after = self.round(0, refined_parts(state, test, True))
            except Diverges:  # a recursion around has no result yet: so far there are no rounds
                return test, state
            right = True
            return test, after

        def finish(traced: _TracedRound) -> list[Node]:
            test = node_of(traced.test)
            if not traced.states or (test.is_constant and test.attribute):
                raise s.error("this loop never ends: nothing that its condition reads changes", self.e.at)
            return builders.loop_of(None, test, traced.states, traced.after, traced.start, traced.since)

        try:
            found = _in_graph(s, initial, trace_round, finish, unions)
        except LiftError as problem:
            wrong = None if right or not s.splits or keys().tags_wanted > wanted else mistake(problem)
            test = None if wrong is None else self.test(initial)
            if not isinstance(test, Node):
                raise
            return s.cond(test, lambda: s.apply("raise", wrong), lambda: initial)  # type: ignore[no-any-return]  # the state, since the other ends the run
        if changes:
            self.test(found)  # the last evaluation, after which there is no round
        elif unions_in(found):
            with s.journal():
                test = self.test(found)
            found = found if isinstance(test, bool) else refined_parts(found, test, False)
        return found


class _For:
    """A `for` loop over its iteration space."""

    def __init__(self, s: Specialiser, e: For, env: dict[str, Any]) -> None:
        self.s, self.e, self.env = s, e, env
        self.space: IterationSpace = iteration_space(s, s.read(e.sequence, env))
        length = self.space.length
        self.count = length if isinstance(length, int) else None
        self.short = self.count is not None

    def _environment(self, item: Any, state: State) -> dict[str, Any]:
        return self.env | _named(self.s, self.e, state) | {self.e.item: item}

    def guard(self, state: State) -> bool | Node:
        if self.e.guard is None:
            return True
        return self.s.truth(self.s.evaluate(self.e.guard, self._environment(None, state)))

    def goes_on(self, rounds: int, state: State) -> bool:
        if self.count is None:
            raise NotUnrolled
        if rounds >= self.space.current_length():  # a list may have grown
            return False
        found = self.guard(state)
        if isinstance(found, bool):
            return found
        if self.space.dynamic_item is None:
            return True  # each round becomes a choice
        raise NotUnrolled

    def round(self, rounds: int, state: State) -> State:
        guard = self.guard(state)
        item = self.space.static_item(rounds)

        def body() -> State:
            found: State = self.s.evaluate(self.e.body, self._environment(item, state))
            return found

        if isinstance(guard, bool):
            return body()
        try:
            found: State = self.s.cond(guard, body, lambda: state)
        except Mismatch as problem:
            raise mismatch(self.s, problem, self.e) from None
        return found

    def in_graph(self, initial: State, unions: bool = False) -> State:
        s, space = self.s, self.space
        if space.dynamic_item is None:
            raise s.error(
                f"items of {space.what} cannot be looked up at an index that is known only as the function runs; use "
                "an array"
            )
        count = whole(space.length) if isinstance(space.length, int) else space.length
        if self.e.guard is None:
            return self._repeated(initial, count, space.dynamic_item, unions)
        at = space.dynamic_item

        def trace_round(state: State) -> tuple[Any, State]:
            i, rest = state[0], state[1:]
            guard = s.truth(self.guard(rest))
            return guard, (i + 1, *s.evaluate(self.e.body, self._environment(at(i), rest)))

        def finish(traced: _TracedRound) -> list[Node]:

            test = logical_and(integers.less(traced.counter, count), node_of(traced.test))
            return builders.loop_of(None, test, traced.states, traced.after, traced.start, traced.since)

        zero = whole(0)
        found = _in_graph(s, (zero, *initial), trace_round, finish, unions)
        return found[1:]

    def _repeated(self, initial: State, count: Node, at: Callable[[Node], Any], unions: bool) -> State:
        s, i = self.s, fresh(integer)

        def trace_round(state: State) -> tuple[Any, State]:
            found: State = s.evaluate(self.e.body, self._environment(at(i), state))
            return i, found

        def finish(traced: _TracedRound) -> list[Node]:
            return builders.loop_of(count, i, traced.states, traced.after, traced.start, traced.since)

        return _in_graph(s, initial, trace_round, finish, unions)


def _named(s: Specialiser, e: For | While, state: State) -> dict[str, Any]:
    """The state of a loop by the names of its variables."""
    found = dict(zip(e.state, state, strict=True))
    for name, value in found.items():
        s.name(name, value, e.at)
    return found


class _TracedRound:
    """A round traced from fresh variables as its state: the condition, the state before and after, and initially."""

    def __init__(self, test: Any, states: list[Node], after: list[Node], start: list[Node], since: int) -> None:
        self.test, self.states, self.after, self.start, self.since = test, states, after, start, since
        self.counter = states[0] if states else None

    def before(self, place: int) -> None:
        """Moves one state to the front, so that it is computed before the others."""
        for nodes in (self.states, self.after, self.start):
            nodes.insert(0, nodes.pop(place))


def _in_graph(
    s: Specialiser,
    initial: State,
    trace_round: Callable[[State], tuple[Any, State]],
    finish: Callable[[_TracedRound], list[Node]],
    unions: bool,
) -> State:
    """The state after a loop of the graph. Raises Mismatch where a round changes the type or structure of its state,
    unless `unions` may be made."""
    since = builders.now()
    forms: list[AbstractValue] = [abstract(x, vary=True) for x in initial]
    changing: dict[Ref, AbstractValue] = {}
    for _ in range(MOST_ITERATIONS):
        states: list[Node] = []

        def built(p: AbstractValue, states: list[Node] = states) -> Any:
            variables = [fresh(t) for t in leaf_types(p)]
            states.extend(variables)
            return build(p, iter(variables))

        given = tuple(map(built, forms))
        with s.journal() as changed:
            s.level += 1
            for ref, p in changing.items():
                s.put(ref, content_from(ref, built(p)))
            test, result = trace_round(given)
        with allow_unions(unions):
            joined = [
                join(p, abstract(x, heap=changed), (AtIndex(i),), NOW, changed)
                for i, (p, x) in enumerate(zip(forms, result, strict=True))
            ]
        refs: dict[Ref, AbstractValue] = {}
        for ref, content in changed.items():
            old = changing.get(ref, abstract(content_values(ref, ref.content)))
            new = abstract(content_values(ref, content), heap=changed)
            refs[ref] = join(old, new, (InContent(ref, content),), NOW, changed)
        stable = all(map(equal, forms, joined)) and refs.keys() == changing.keys()
        if stable and all(equal(changing[ref], refs[ref]) for ref in refs):
            break
        forms, changing = joined, refs
    else:
        raise s.error("what this loop changes gets another kind or structure in each round; keep both the same")
    order = list(changing)
    after = [n for x, p in zip(result, forms, strict=True) for n in flatten(x, p, changed)]
    after += [n for ref in order for n in flatten(content_values(ref, changed[ref]), changing[ref], changed)]
    start = [n for x, p in zip(initial, forms, strict=True) for n in flatten(x, p)]
    start += [n for ref in order for n in flatten(content_values(ref, ref.content), changing[ref])]
    traced = _TracedRound(test, states, after, start, since)
    place = token_index(s, forms, order, list(changing.values()))
    if place >= 0:  # checks come first
        traced.before(place)
        made = finish(traced)
        made.insert(place, made.pop(0))
    else:
        made = finish(traced)
    nodes = iter(made)
    found = tuple(build(p, nodes) for p in forms)
    for ref in order:
        s.put(ref, content_from(ref, build(changing[ref], nodes)))
    return found
