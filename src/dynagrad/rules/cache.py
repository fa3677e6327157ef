"""The cache of checked programs on disk: a text that was seen before is not parsed and checked again.

An entry is the normal form as JSON, under a hash of the text and of all else that decides its meaning, the front end's
source included. Entries are in the cache folder, beside the libraries. One that cannot be read is ignored, and decoding
makes syntax and nothing else, so no code in an entry can run.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from ..errors import ProgramWarning, Span, warn
from ..runtime.compiling.fingerprint import combined
from ..runtime.disk.contents import files_in, hash_of, stats_of
from ..runtime.disk.records import recall, remember
from . import check, normal, parse, syntax
from .normal import Rules

LARGE_TEXT = 200_000
"""Larger programs are not cached: reading their entries takes longer than parsing them."""


def cached_rules(text: str, filename: str, semiring: str | None, functions: Mapping[str, object]) -> Rules:
    """The checked normal form of a program's text, from the cache if it is there; warnings are issued either way."""
    name = _name(text, filename, semiring, functions) if len(text) <= LARGE_TEXT else None
    rules = None
    if name is not None:
        entry = recall(name)
        rules = None if entry is None else decoded(entry)
    if rules is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ProgramWarning)
            rules = check(parse(text, filename), semiring=semiring, functions=functions)
        entry = encoded(rules) if name is not None else None
        if name is not None and entry is not None:
            remember(name, entry)
    for warning in rules.warnings:
        warn(warning)
    return rules


def _name(text: str, filename: str, semiring: str | None, functions: Iterable[str]) -> str:
    return f"{combined(_front_end(), filename, str(semiring), *sorted(functions), text)}.rules"


@functools.cache
def _front_end() -> str:
    """A hash of the front end's source: older entries are not found after a change of it."""
    here, package = os.path.dirname(__file__), os.path.dirname(os.path.dirname(__file__))
    # of contents: where files are installed, their times may all be the same
    digest = hash_of(stats_of([*files_in(here), os.path.join(package, "errors.py")]), package)
    return f"{sys.version_info[:2]} {digest}"


# -- as JSON -----------------------------------------------------------------------------------------------------------

# The first entry of a list in JSON is a tag: of a tuple, a frozen set, a dict (keys and values in turn), or, from
# _FIRST on, a class of the syntax, followed by its fields.
_TUPLE, _SET, _DICT, _FIRST = range(4)


@functools.cache
def _classes() -> tuple[type[Any], ...]:
    """The classes of which a normal form is made."""
    named = {**vars(syntax), **vars(normal), "Span": Span}
    return tuple(c for _, c in sorted(named.items()) if isinstance(c, type) and is_dataclass(c))


@functools.cache
def _numbers() -> dict[type, tuple[int, tuple[str, ...]]]:
    """By class, its tag and the names of its fields."""
    return {made: (n, tuple(f.name for f in fields(made))) for n, made in enumerate(_classes(), _FIRST)}


def encoded(rules: Rules) -> bytes | None:
    """The entry for a normal form; None where it is nested too deeply for JSON."""
    numbers = _numbers()

    def plain(value: Any) -> Any:
        kind = type(value)
        if kind in (str, int, float, bool) or value is None:
            return value
        if kind is tuple:
            return [_TUPLE, *map(plain, value)]
        if kind is frozenset:
            return [_SET, *map(plain, sorted(value))]
        if kind is dict:
            return [_DICT, *(plain(part) for pair in value.items() for part in pair)]
        number, names = numbers[kind]
        return [number, *(plain(getattr(value, name)) for name in names)]

    try:
        return json.dumps(plain(rules), separators=(",", ":")).encode()
    except (RecursionError, KeyError, ValueError):  # of numbers with thousands of digits, too
        return None


def decoded(entry: bytes) -> Rules | None:
    """The normal form in an entry; None where the entry is not valid.

    >>> rules = check(parse("goal += a(X) * b(X)."))
    >>> decoded(encoded(rules)) == rules, decoded(b"[0, 1]")
    (True, None)
    """
    classes = _classes()

    def made(value: Any) -> Any:
        if type(value) is not list:
            return value
        number = value[0]
        parts = [made(part) for part in value[1:]]
        if number >= _FIRST:
            return classes[number - _FIRST](*parts)
        if number == _TUPLE:
            return tuple(parts)
        return frozenset(parts) if number == _SET else dict(zip(parts[::2], parts[1::2], strict=True))

    try:
        rules = made(json.loads(entry))
    except (RecursionError, ValueError, TypeError, IndexError, KeyError):
        return None
    return rules if isinstance(rules, Rules) else None
