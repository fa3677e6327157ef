"""The tree of steps of a reduction, made as it is looked at.

A step has the number of its rule, the redex and what it becomes, and the steps of its premises. The terms of a step are
made when they are asked for. How they look is in `stepper.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any

from ....collector import collecting_later
from ....errors import Error
from ..terms import PullbackTerm
from .numbering import NAMES
from .values import abbreviated

_AT_ONCE = 20_000
"""How many events are taken between two searches for garbage."""
Plug = Callable[[PullbackTerm], PullbackTerm]
Context = tuple[Plug, Any] | None
"""What stands around a redex, from the inside out."""


def _nothing() -> bool:
    return False


class Step:
    """One reduction."""

    __slots__ = ("_contractum", "_pull", "_redex", "closed", "context", "keep", "made", "phase", "rule")

    def __init__(self, rule: str, redex: Callable[[], PullbackTerm], context: Context, phase: str) -> None:
        self.rule, self._redex, self.context, self.phase = rule, redex, context, phase
        self._contractum: Callable[[], PullbackTerm] | None = None
        self.made: list[Step] = []
        self.closed, self.keep = False, True
        self._pull: Callable[[], bool] = _nothing

    def __repr__(self) -> str:
        return f"<step {self.rule}: {self.name}>"

    def finish(self) -> None:
        """The step ends: all of it is there, and it needs its reduction no more."""
        self.closed, self._pull = True, _nothing

    @property
    def name(self) -> str:
        """The name of the rule."""
        return NAMES[self.rule]

    @property
    def redex(self) -> PullbackTerm:
        """What is reduced."""
        return self.read_redex()

    @property
    def contractum(self) -> PullbackTerm:
        """What the redex becomes. Its premises are reduced first."""
        return self.read_contractum()

    def read_redex(self, most: int | None = None) -> PullbackTerm:
        """The redex, with about so many parts."""
        with abbreviated(most):
            return self._redex()

    def read_contractum(self, most: int | None = None) -> PullbackTerm:
        """The contractum, with about so many parts."""
        while not self.closed and self._pull():
            pass
        assert self._contractum is not None
        with abbreviated(most):
            return self._contractum()

    @property
    def premises(self) -> Iterator[Step]:
        """The steps of the premises, as they are made."""
        index = 0
        while True:
            while index >= len(self.made) and not self.closed and self._pull():
                pass
            if index >= len(self.made):
                return
            yield self.made[index]
            if self.keep:
                index += 1
            else:
                del self.made[index]

    def whole(self, inner: PullbackTerm) -> PullbackTerm:
        """A term in the place of the redex, with all that stands around it."""
        context = self.context
        while context is not None:
            plug, context = context
            inner = plug(inner)
        return inner

    @property
    def before(self) -> PullbackTerm:
        """The whole term before the step; of a step in a premise, the term that the premise is about."""
        return self.whole(self.redex)

    @property
    def after(self) -> PullbackTerm:
        """The whole term after it."""
        return self.whole(self.contractum)


class Reduction:
    """The reduction of a term. Iterating gives its steps, and `result` is what it ends in.

    Where steps are not kept, each is gone when the next is asked for, and all are when the result is.

    >>> from .reduce import reduce
    >>> reduction = reduce("(λx. x + 1) 2")
    >>> [(step.rule, str(step.redex), str(step.contractum)) for step in reduction]
    [('1', 'let x = 2 in x + 1', '2 + 1'), ('sum', '2 + 1', '3')]
    >>> reduction.result
    3
    """

    def __init__(
        self, term: PullbackTerm, type: Any, events: Generator[Any, None, PullbackTerm], keep: bool = True
    ) -> None:
        self.term, self.type, self._keep = term, type, keep
        self._events = events
        self._open: list[Step] = []
        self._made: list[Step] = []
        self._result: PullbackTerm | None = None

    def _pull(self) -> bool:
        """Goes on by one event; False at the end."""
        if self._result is not None:
            return False
        try:
            step = next(self._events)
        except StopIteration as end:
            self._result = end.value
            return False
        if step.__class__ is not Step:  # a number: the step ends, and all that are open inside of it
            while len(self._open) > step:
                self._open.pop().finish()
            return True
        (self._open[-1].made if self._open else self._made).append(step)
        if step._contractum is None:
            step._pull, step.keep = self._pull, self._keep
            self._open.append(step)
        else:
            step.closed = True
        return True

    def __iter__(self) -> Iterator[Step]:
        index = 0
        while True:
            with collecting_later():
                while index >= len(self._made) and self._pull():
                    pass
            if index >= len(self._made):
                return
            yield self._made[index]
            if self._keep:
                index += 1
            else:
                del self._made[index]

    @property
    def result(self) -> PullbackTerm:
        """The value that the term reduces to."""
        while self._result is None:
            with collecting_later():
                for _ in range(_AT_ONCE):
                    if not self._pull():
                        break
                    if not self._keep:
                        (self._open[-1].made if self._open else self._made).clear()
        return self._result

    def count(self) -> int:
        """How many steps there are, premises included."""
        if not self._keep:
            raise Error("the steps of this reduction are not kept, so they cannot be counted")
        assert self.result is not None
        found, todo = 0, list(self._made)
        while todo:
            found += 1
            todo += todo.pop().made
        return found
