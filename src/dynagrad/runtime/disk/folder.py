"""The cache folder: the user's, or a temporary one of this process where that cannot be used.

The user's is `DYNAGRAD_CACHE`, or `dynagrad` in this system's folder for caches. `sealed.py` checks whether it can be
trusted.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...errors import warn
from ...forks import renewed
from . import sealed


def folder() -> Path | None:
    """The user's cache folder, which may not exist yet; None if there is no place for one.

    >>> import os
    >>> os.environ["DYNAGRAD_CACHE"] == str(folder()) if "DYNAGRAD_CACHE" in os.environ else True
    True
    """
    named = os.environ.get("DYNAGRAD_CACHE")
    try:
        if named:
            return Path(named).absolute()
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Caches" / "dynagrad"
        if sys.platform == "win32":
            return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "dynagrad" / "cache"
        base = os.environ.get("XDG_CACHE_HOME", "")
        return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "dynagrad"
    except (RuntimeError, OSError):  # no home, or the folder of this process is gone
        return None


def trusted_folder() -> tuple[Path | None, str]:
    """The cache folder if it may be used, else None and the reason."""
    home = folder()
    if home is None:
        return None, "there is no folder for it: HOME is not set, or the folder of this process is gone"
    home = Path(os.path.realpath(home))  # resolved once, so that no link can be changed later
    reason = sealed.objection(home)
    return (None, reason) if reason else (home, "")


@contextmanager
def scratch(home: Path) -> Iterator[Path]:
    """A temporary folder in the cache folder. It is removed in the end, but not by a fork of this process."""
    made, owner = home / f"tmp-{os.urandom(8).hex()}", os.getpid()
    try:  # from here on, as Ctrl-C may come at any time
        made.mkdir(mode=0o700)
        yield made
    finally:
        _remove(made, owner)


class Temporary:
    """The temporary cache folder of this process, once it was needed."""

    path: Path | None = None
    lock = renewed(threading.RLock())


def temporary_folder(reason: str) -> Path:
    """A temporary folder of this process, made with a warning, and removed when the process ends."""
    with Temporary.lock:
        if Temporary.path is None:
            Temporary.path = Path(os.path.realpath(tempfile.mkdtemp(prefix="dynagrad-")))
            atexit.register(_remove, Temporary.path, os.getpid())
            warn(
                f"the cache of compiled programs cannot be used ({reason}); programs are compiled again in each "
                "process. Set DYNAGRAD_CACHE to a folder of yours that can be written.",
                RuntimeWarning,
            )
        return Temporary.path


def _remove(path: Path, owner: int) -> None:
    if os.getpid() != owner:  # a forked child ends
        return
    try:
        shutil.rmtree(path, ignore_errors=True)
    except KeyboardInterrupt:
        shutil.rmtree(path, ignore_errors=True)
        raise
