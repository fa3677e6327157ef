"""The cache of checked programs on disk: a text that was seen before is not parsed and checked again.

An entry is the normal form as bytes (`runtime/disk/values.py`), under a hash of the text and of all else that decides
its meaning, the front end's source included. Entries are in the cache folder, beside the libraries. One that cannot be
read is ignored, and decoding makes syntax and nothing else, so no code in an entry can run.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterable, Mapping

from ..collector import collecting_later
from ..errors import ProgramWarning, warn
from ..runtime.disk.contents import combined
from ..runtime.disk.records import RULES, recall, remember
from ..runtime.disk.sources import sources
from ..runtime.disk.values import classes_of_data, packed, unpacked
from . import check, normal, parse, syntax
from .normal import Rules

LARGE_TEXT = 5_000_000
"""Larger programs are not cached: their entries take fifteen times as many bytes."""


def cached_rules(text: str, filename: str, semiring: str | None, functions: Mapping[str, object], entry: str) -> Rules:
    """The checked normal form of a program's text, from the cache if it is there; warnings are issued either way.

    `entry` is the `entry_name` of these.
    """
    with collecting_later():
        kept = recall(f"{entry}{RULES}") if entry else None
        rules = None if kept is None else decoded(kept)
        if rules is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ProgramWarning)
                rules = check(parse(text, filename), semiring=semiring, functions=functions)
            data = encoded(rules) if entry else None
            if data is not None:
                remember(f"{entry}{RULES}", data)
    for warning in rules.warnings:
        warn(warning)
    return rules


def entry_name(text: str, filename: str, semiring: str | None, functions: Iterable[str]) -> str:
    """A hash of a program's text and of all else that decides its normal form, the package's sources included; empty
    for what is not cached."""
    ours = sources()
    if ours is None or len(text) > LARGE_TEXT:
        return ""
    return combined(ours, filename, str(semiring), *sorted(functions), text)


# -- as bytes ----------------------------------------------------------------------------------------------------------


@functools.cache
def _classes() -> tuple[type, ...]:
    """The classes of which a normal form is made."""
    return classes_of_data(syntax, normal)


def encoded(rules: Rules) -> bytes | None:
    """The entry for a normal form; None where it is nested too deeply for one."""
    return packed(rules, _classes())


def decoded(entry: bytes) -> Rules | None:
    """The normal form in an entry; None where the entry is not valid.

    >>> rules = check(parse("goal += a(X) * b(X)."))
    >>> decoded(encoded(rules)) == rules, decoded(b"goal")
    (True, None)
    """
    rules = unpacked(entry, _classes())
    return rules if isinstance(rules, Rules) else None
