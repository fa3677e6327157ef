"""The files that a command line names: a program, the facts of each predicate, and functions.

How a file is read depends on its format, which is for `facts/files.py`; settings of `train` are in `settings.py`.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from ..charts.program import Program, context_of
from ..charts.sources import file_text
from ..errors import Error, FactError, warn
from ..facts.files import header_for, read_file
from ..facts.relation import Relation, concatenate
from ..rules import parse
from ..rules.suggestions import nearest, resembles
from ..rules.syntax import PredicateDeclaration


class Values(StrEnum):
    """How the numbers of facts are given."""

    weights = "weights"
    probabilities = "probabilities"


# -- facts -------------------------------------------------------------------------------------------------------------

_NAMED = re.compile(r"(?P<name>.+)\.(?P<arity>\d+)\.[A-Za-z]+\Z")


def _fact_files(given: Sequence[str], option: str) -> Iterator[tuple[str, Path]]:
    """The predicates and files that options such as `--facts` name."""
    for text in given:
        key, sep, path = text.partition("=")
        if sep:
            yield key.strip(), Path(path)
            continue
        place = Path(text)
        paths = sorted(p for p in place.iterdir() if _NAMED.match(p.name)) if place.is_dir() else [place]
        if not paths:
            raise FactError(f"{option} {text}: the folder has no files with names such as rewrite.3.tsv")
        for at in paths:
            named = _NAMED.match(at.name)
            if named is None and not at.suffix and not at.exists():
                raise FactError(f"{option} {text}: there is no such folder")
            if named is None:
                raise FactError(
                    f"{option} {text}: say which predicate the file is for, as in {option} rewrite/3={text}"
                )
            yield f"{named['name']}/{named['arity']}", at


def facts_of(
    program: Program,
    given: Sequence[str],
    values: Values,
    header: bool | None = None,
    *,
    option: str = "--facts",
    also: Sequence[Program] = (),
) -> dict[str, Relation]:
    """The facts of all files, for a program and perhaps others; those of several files for one predicate are joined.

    `header` says whether the first line of text files is one.
    """
    shape, finite, one = context_of(program).scale.value_form(values is Values.probabilities)
    found: dict[str, Relation] = {}
    known = tuple(dict.fromkeys(key for p in (program, *also) for key in p.predicates))
    for key, path in _fact_files(given, option):
        if key not in known and re.fullmatch(r".+/\d+", key):
            if resembles(key, known):
                near = nearest(key, known)
                raise FactError(f"{option} {key}: the program has no predicate `{key}`.{near}")
            warn(f"{option} {key}: the program does not use `{key}`, so {path} is not read")
            continue
        relation = read_file(path, key, value_shape=shape, finite=finite, header=header_for(path, header))
        found[key] = concatenate(found[key], relation, one) if key in found else relation
    return found


# -- programs and their functions --------------------------------------------------------------------------------------


def program_of(
    file: Path,
    semiring: str | None,
    values: Values = Values.weights,
    functions: Path | None = None,
    *,
    hosted: bool = True,
) -> Program:
    """The program of a file. Unless `hosted`, nothing will run, so external predicates need no function."""
    given: dict[str, Any] = {} if hosted else dict.fromkeys(_declared(file, "external"), _nothing)
    if functions is not None:
        given |= functions_of(file, functions)
    return Program(file, semiring, given, values=values.value)


def functions_of(file: Path, functions: Path) -> dict[str, Any]:
    """The functions that a program declares, from a Python file that defines them."""
    defined = _defined(functions)
    found = {k: defined[n] for k in _declared(file, "external") if (n := k.rsplit("/", 1)[0]) in defined}
    return found | {n: defined[n] for k in _declared(file, "function") if (n := k.rsplit("/", 1)[0]) in defined}


def _declared(file: Path, kind: str) -> list[str]:
    declared = parse(file_text(file), str(file)).declarations
    return [k for d in declared if isinstance(d, PredicateDeclaration) and d.kind == kind for k in d.keys]


def _defined(file: Path) -> dict[str, Any]:
    """The names that a Python file defines."""
    file_text(file, "file")
    spec = importlib.util.spec_from_file_location("functions_of_a_program", file)
    if spec is None or spec.loader is None:
        raise Error(f"--functions {file}: a Python file is wanted, whose name ends in .py")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise Error(f"--functions {file}: {type(error).__name__}: {error}") from error
    return vars(module)


def _nothing(*_: object) -> None:
    """A stand-in for a function that is never called."""
