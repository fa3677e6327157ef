"""The LALR parser: shifts and reduces by the tables of the grammar, and reads the tokens that its state accepts.

It knows no rule of the grammar: actions are the methods of an object, by name. What is said of a mistake is in
`mistakes.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from ..parser_tables import Production, Tables


class Token(str):
    """A piece of text, with the terminal that it matches, and its place."""

    __slots__ = ("column", "end_pos", "line", "start_pos", "type")
    type: str
    start_pos: int
    end_pos: int
    line: int
    column: int

    def __new__(cls, text: str, type: str, start_pos: int, end_pos: int, line: int, column: int) -> Token:
        made = super().__new__(cls, text)
        made.type, made.start_pos, made.end_pos, made.line, made.column = type, start_pos, end_pos, line, column
        return made


class Misplaced(Exception):
    """What stands at some place does not belong there.

    It is a token, or None where there is none, and the terminals that could stand there are `accepted`.
    """

    def __init__(self, position: int, token: Token | None, accepted: set[str]) -> None:
        super().__init__(position)
        self.position, self.token, self.accepted = position, token, accepted


END = "$END"
"""The terminal at the end of a text."""

_NONE = 1 << 30  # where there is nothing to do


class Parser:
    """The parser with the semantic actions of an object; threads may share one."""

    def __init__(self, tables: Tables, actions: object) -> None:
        self._starts, self._states = tables.starts, tables.states
        self._rows: dict[int, dict[str, int]] = {}
        self._reductions = [(rule.size, rule.origin, _reduction(rule, actions)) for rule in tables.rules]
        self._terminals = [(name, text) for name, text in tables.terminals if name not in tables.skipped]
        self._skipped = re.compile(
            f"(?:{'|'.join(text for name, text in tables.terminals if name in tables.skipped)})*"
        )
        self._any = _scanner(self._terminals)
        self._accepted: dict[int, re.Pattern[str]] = {}

    def parse(self, text: str, start: str) -> Any:
        """The value of a text. Raises Misplaced."""
        first, last = self._starts[start]
        states, values = [first], list[Any]()
        end, line, line_start = 0, 1, 0
        while True:
            at = self._skip(text, end)
            lines = text.count("\n", end, at)
            if lines:
                line, line_start = line + lines, text.rindex("\n", end, at) + 1
            kind, end = self._next(text, at, states[-1])
            while (action := self._row(states[-1]).get(kind, _NONE)) < 0:
                size, origin, reduced = self._reductions[~action]
                children = values[len(values) - size :]
                del values[len(values) - size :], states[len(states) - size :]
                values.append(reduced(children))
                states.append(self._row(states[-1])[origin])
                if kind == END and states[-1] == last:
                    return values[0]
            token = Token(text[at:end], kind, at, end, line, at - line_start + 1)
            if action == _NONE:
                raise Misplaced(at, token if kind else None, self._accepts(states))
            values.append(token)
            states.append(action)

    def _row(self, state: int) -> dict[str, int]:
        """What is done in a state, by symbol."""
        row = self._rows.get(state)
        if row is None:
            listed = self._states[state].items()
            row = self._rows[state] = {name: int(action) for action, names in listed for name in names.split()}
        return row

    def _skip(self, text: str, at: int) -> int:
        found = self._skipped.match(text, at)
        return at if found is None else found.end()

    def _next(self, text: str, at: int, state: int) -> tuple[str, int]:
        """The terminal of the next token, empty where there is none, and where the token ends.

        Of all terminals that match, it is the first that the state accepts; that is mostly the first of all.
        """
        if at == len(text):
            return END, at
        row, found = self._row(state), self._any.match(text, at)
        if found is not None and found.lastgroup not in row:
            if state not in self._accepted:
                self._accepted[state] = _scanner([(name, regex) for name, regex in self._terminals if name in row])
            found = self._accepted[state].match(text, at) or found
        return ("", at) if found is None else (str(found.lastgroup), found.end())

    def _accepts(self, states: list[int]) -> set[str]:
        """The terminals that may come next."""
        return {name for name in self._row(states[-1]) if name.isupper() and self._shifts(states[:], name)}

    def _shifts(self, states: list[int], kind: str) -> bool:
        """Whether a terminal is read, after all that is reduced before it."""
        while (action := self._row(states[-1]).get(kind, _NONE)) < 0:
            size, origin, _ = self._reductions[~action]
            del states[len(states) - size :]
            states.append(self._row(states[-1])[origin])
            if kind == END and any(states[-1] == last for _, last in self._starts.values()):
                return True
        return action != _NONE


def _scanner(terminals: Iterable[tuple[str, str]]) -> re.Pattern[str]:
    """The pattern of the first terminal that matches, as a group of its name."""
    return re.compile("|".join(f"(?P<{name}>{text})" for name, text in terminals) or "(?!)")  # nothing matches that


def _reduction(rule: Production, actions: object) -> Callable[[list[Any]], Any]:
    """What makes the value of a rule of those of its symbols. That of a rule for repetitions, `_...`, is a list."""
    action: Any = (lambda kept: kept) if rule.origin.startswith("_") else getattr(actions, rule.action, None)
    assert action is not None or rule.single, f"there is no action {rule.action!r}"

    def reduced(children: list[Any]) -> Any:
        kept = children
        if rule.parts is not None:
            kept = []
            for part in rule.parts:
                if part >= 0:
                    kept.append(children[part])
                elif kept:
                    kept += children[~part]
                else:  # nobody else has it
                    kept = children[~part]
        if rule.single and len(kept) == 1:
            return kept[0]
        return action(kept)

    return reduced
