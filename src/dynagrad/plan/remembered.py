"""Checked programs on disk, so that a program that was seen before is not parsed again.

An entry is the pickled normal form, under a hash of the text and of everything else that decides what the text means,
the front end itself included. It lies in the cache folder, beside the libraries, and is trusted as they are. An entry
that cannot be read is no entry.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
import sys
import tempfile
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..errors import ProgramWarning, warn
from ..native.cache import folder
from ..rules import check, parse
from ..rules.normal import Rules

LARGE_TEXT = 200_000
"""Programs from this many characters on are worth remembering less than their entry would take to read."""


def checked(text: str, filename: str, semiring: str | None, functions: Mapping[str, object]) -> Rules:
    """The checked normal form of a program's text, from the cache if it is there; warnings are issued either way."""
    place = _place(text, filename, semiring, functions)
    if place is not None:
        try:
            rules = pickle.loads(place.read_bytes())
        except Exception:  # whatever is wrong with the entry, the text is still here
            rules = None
        if isinstance(rules, Rules):
            for warning in rules.warnings:
                warn(warning)
            return rules
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProgramWarning)
        rules = check(parse(text, filename), semiring=semiring, functions=functions)
    for warning in rules.warnings:
        warn(warning)
    if place is not None:
        _store(place, rules)
    return rules


def _place(text: str, filename: str, semiring: str | None, functions: Iterable[str]) -> Path | None:
    home = folder()
    if home is None or len(text) > LARGE_TEXT:
        return None
    parts = (_front_end(), filename, str(semiring), *sorted(functions), text)
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "backslashreplace")
        digest.update(b"%d:" % len(data))
        digest.update(data)
    return home / f"{digest.hexdigest()[:40]}.rules"


@functools.cache
def _front_end() -> str:
    """What the front end is: a change in one of its files makes older entries unknown."""
    here = Path(__file__).parent.parent
    files = sorted([*(here / "rules").glob("*"), here / "errors.py"])
    stats = [(f.name, f.stat().st_mtime_ns, f.stat().st_size) for f in files if f.is_file()]
    return f"{sys.version_info[:2]} {stats}"


def _store(place: Path, rules: Rules) -> None:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=place.parent, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                pickle.dump(rules, file, protocol=5)
            os.replace(name, place)
        except BaseException:
            os.unlink(name)
            raise
    except (OSError, RecursionError, pickle.PicklingError):
        return  # remembering is a favour, not a duty
