"""The cache of checked programs on disk: a text that was seen before is not parsed and checked again.

An entry is the normal form as bytes (`runtime/disk/values.py`), under a hash of the text and of all else that decides
its meaning, the front end's source included. Entries are in the cache folder, beside the libraries. One that cannot be
read is ignored, and decoding makes syntax and nothing else, so no code in an entry can run.
"""

from __future__ import annotations

import functools
import os
import sys
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass

from ..errors import ProgramWarning, Span, warn
from ..runtime.compiling.fingerprint import combined
from ..runtime.disk.contents import hash_of, stats_in
from ..runtime.disk.records import recall, remember
from ..runtime.disk.values import packed, unpacked
from . import check, normal, parse, syntax
from .normal import Rules

LARGE_TEXT = 5_000_000
"""Larger programs are not cached: their entries take fifteen times as many bytes."""


def cached_rules(
    text: str, filename: str, semiring: str | None, functions: Mapping[str, object], entry: str | None = None
) -> Rules:
    """The checked normal form of a program's text, from the cache if it is there; warnings are issued either way.

    `entry` is the `entry_name` of these, if it is known.
    """
    rules = None
    name = None
    if len(text) <= LARGE_TEXT:
        name = f"{entry or entry_name(text, filename, semiring, functions)}.rules"
        kept = recall(name)
        rules = None if kept is None else decoded(kept)
    if rules is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ProgramWarning)
            rules = check(parse(text, filename), semiring=semiring, functions=functions)
        data = encoded(rules) if name is not None else None
        if name is not None and data is not None:
            remember(name, data)
    for warning in rules.warnings:
        warn(warning)
    return rules


def entry_name(text: str, filename: str, semiring: str | None, functions: Iterable[str]) -> str:
    """A hash of a program's text and of all else that decides its normal form."""
    return combined(_front_end(), filename, str(semiring), *sorted(functions), text)


@functools.cache
def _front_end() -> str:
    """A hash of the front end's source: older entries are not found after a change of it."""
    here, package = os.path.dirname(__file__), os.path.dirname(os.path.dirname(__file__))
    # of contents: where files are installed, their times may all be the same
    digest = hash_of(stats_in(here, os.path.join(package, "errors.py")), package)
    return f"{sys.version_info[:2]} {digest}"


# -- as bytes ----------------------------------------------------------------------------------------------------------


@functools.cache
def _classes() -> tuple[type, ...]:
    """The classes of which a normal form is made."""
    named = {**vars(syntax), **vars(normal), "Span": Span}
    return tuple(c for c in named.values() if isinstance(c, type) and is_dataclass(c))


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
