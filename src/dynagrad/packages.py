"""Packages that may be missing from an installation: imported where they are needed, or an error in one form for all.

What is told is how to install the package itself, which works for every installation, a checkout as well.
"""

from __future__ import annotations

import importlib
from typing import Any

from .errors import Error, raised

_NAMES = {"tomli_w": "tomli-w"}
"""Packages whose name is not that of their module."""


def optional(module: str, what: str) -> Any:
    """A module of a package that may be missing; if it is, an error says what needs it and how to install it.

    >>> optional("json.decoder", "a file").__name__
    'json.decoder'
    >>> optional("no_such_package.parts", "a file of parts")
    Traceback (most recent call last):
    dynagrad.errors.Error: a file of parts needs no_such_package, which is not installed: pip install no_such_package
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        if (error.name or package).partition(".")[0] != package or not isinstance(error, ModuleNotFoundError):
            reason = f"{package}, which cannot be imported: {raised(error)}"
        else:
            reason = f"{package}, which is not installed: {how_to_install(package)}"
        raise Error(f"{what} needs {reason}") from error


def how_to_install(package: str) -> str:
    """The command that installs a package.

    >>> how_to_install("tomli_w")
    'pip install tomli-w'
    """
    return f"pip install {_NAMES.get(package, package)}"
