"""Fuzzes files of the cache: bits flipped, truncated, emptied, duplicated, or swapped.

One input is one damaged file. Loading it finds nothing, or the content before the damage.
"""

from __future__ import annotations

import atexit
import functools
import os
import random
import shutil
import tempfile
import warnings
from pathlib import Path

import dynagrad as dg
from dynagrad.rules.cache import cached_rules, entry_name
from dynagrad.runtime.compiling import cache
from dynagrad.runtime.disk import sealed
from fuzz.files import damaged
from shared_cache import link_shared

PROGRAMS = ("p += q(_X) * 16.", ":- semiring log. p(X) += q(X) * r(X,Y) for X < Y. p(3) = 0.5.")


@functools.cache
def folder() -> Path:
    """A cache folder of this process's own, with good entries."""
    place = Path(tempfile.mkdtemp(prefix="dynagrad-fuzz-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run()  # so that all that programs share is in the shared cache
        common = {path.name for path in link_shared(place).iterdir()}
        with environment(place):
            run()
    own = [path for path in place.iterdir() if path.is_file() and path.name not in common]
    for suffix in (".o", ".pch"):
        part = min(place.glob(f"*{suffix}"), key=lambda path: path.stat().st_size)
        own += [part, part.with_suffix(".seal")]
    copied = place / "copied"  # the libraries of the others are loaded, and must not change under this process
    copied.mkdir(mode=0o700)
    for path in (*own, *place.glob("*.calls")):
        shutil.copy(path, copied)
    return copied


def run() -> None:
    for text in PROGRAMS:
        dg.Program(text).run({key: [] for key in dg.Program(text).inputs})


class environment:
    """Meanwhile this is the cache folder."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __enter__(self) -> None:
        self.before = os.environ.get("DYNAGRAD_CACHE")
        os.environ["DYNAGRAD_CACHE"] = str(self.place)

    def __exit__(self, *_: object) -> None:
        os.environ.pop("DYNAGRAD_CACHE")
        if self.before is not None:
            os.environ["DYNAGRAD_CACHE"] = self.before


@functools.cache
def whole() -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(folder().iterdir()) if path.is_file() and path.suffix != ".cpp"}


def check(seed: int) -> str | None:
    """What is wrong, or nothing."""
    draw = random.Random(seed)
    path, data = draw.choice(list(whole().items()))
    broken = draw.choice(
        (damaged(data, draw), damaged(data, draw), damaged(data, draw), b"", draw.choice(list(whole().values())))
    )
    path.write_bytes(broken)
    try:
        with environment(folder()):
            return wrong(path, data, broken)
    finally:
        path.unlink(missing_ok=True)
        path.write_bytes(data)
        path.chmod(0o600)


def wrong(path: Path, data: bytes, broken: bytes) -> str | None:
    sealed_apart = (".so", ".dylib", ".dll", ".o", ".pch")
    if path.suffix in (*sealed_apart, ".seal"):
        (suffix,) = {each.suffix for each in whole() if each.stem == path.stem and each.suffix in sealed_apart}
        found = cache.entry(folder(), path.stem, suffix)
        return None if found is None or broken == data else f"a damaged library is loaded: {path.name}"
    loaded = sealed.load(path)
    if loaded is not None and broken != data:
        return f"a damaged file is loaded: {path.name}"
    if path.suffix == ".rules":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for text in PROGRAMS:
                rules = cached_rules(text, "", None, {}, entry_name(text, "", None, {}))
                if rules.source.text != text:
                    return f"{rules.source.text!r} instead of {text!r}"
    return None
