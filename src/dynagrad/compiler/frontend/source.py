"""Finds the source text and syntax tree of a Python function, and makes errors that point into it.

A function whose file has changed since it was imported is refused: its code object is compared with what the file
compiles to now. Nothing here knows the core language.
"""

from __future__ import annotations
import __future__

import ast
import functools
import inspect
import linecache
import operator
import types
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ...errors import Error, LiftError, Span
from .core import Position

Definition = ast.FunctionDef | ast.Lambda
_T = TypeVar("_T")

_MOST = 256  # files kept

SUPPORTED = (
    "compiled functions are made of assignments, if, while, for, break, continue, return, assert, raise, def, lambda, "
    "tuples, lists, dicts, dataclasses, indexing, numpy and math"
)


def error(message: str, at: Position | None) -> LiftError:
    """An error that shows the place in the user's file."""
    if at is None:
        return LiftError(message)
    lines = linecache.getlines(at.file)
    start, end = (_characters(lines, at.line, c) for c in (at.column, at.end_column))
    width = end - start if at.end_line == at.line else 10**6
    return LiftError(message, "".join(lines), Span(0, max(width, 1), at.line, start + 1), at.file)


class Mistake(Error):
    """What a builtin of a language says of its arguments, or that what is called is no function: wrong in the program,
    whether it is compiled or not."""


def mistake(problem: Error) -> Error | None:
    """The mistake that an error is about, for a run that may come to it; None for what compiling alone minds."""
    cause = problem if isinstance(problem, Mistake) else problem.__cause__
    return Error(str(cause)) if isinstance(cause, Mistake | ArithmeticError) else None


def _characters(lines: list[str], line: int, column: int) -> int:
    """A column in characters, from one in bytes, as syntax trees count."""
    if line > len(lines):
        return column
    return len(lines[line - 1].encode()[:column].decode(errors="ignore"))


def position(file: str, node: ast.AST) -> Position | None:
    """The position of a node of a syntax tree."""
    if not hasattr(node, "lineno"):
        return None
    line: int = node.lineno
    column: int = getattr(node, "col_offset", 0)
    end_line, end_column = getattr(node, "end_lineno", None), getattr(node, "end_col_offset", None)
    return Position(file, line, column, end_line or line, column + 1 if end_column is None else end_column)


def definition(function: types.FunctionType) -> tuple[Definition, str]:
    """The syntax tree of a function, and its file. Raises LiftError where the source cannot be found or has changed."""
    code = function.__code__
    try:
        file = inspect.getsourcefile(code) or code.co_filename
        # not by `inspect.findsource`, which looks through all modules for that of the code
        linecache.checkcache(file)
        around = function.__globals__
        lines = linecache.getlines(file, around if around.get("__file__") == file else None)
        if not lines:
            raise OSError(f"there is no text of {file}")
    except (OSError, TypeError) as problem:
        raise _without_source(function) from problem
    text = "".join(lines)
    parsed = _parse_file(text, file)
    found = parsed.defined.get(_place(code), [])
    if file == "<string>" and not (found and _is_current(parsed, file, function)):
        raise _without_source(function)  # newer Pythons keep the text of `python -c`, where exec's is not
    if not found:
        raise LiftError(
            f"{function.__qualname__} is not in {file}, line {code.co_firstlineno}: the file changed after it was "
            "imported, or the function was generated"
        )
    if not _is_current(parsed, file, function):
        raise error(
            f"this is not what {function.__qualname__} was made from: the file changed after it was imported; import "
            "it again",
            position(file, found[0]),
        )
    node = found[0] if len(found) == 1 else _matching_lambda(found, text, file, function)
    if not isinstance(node, ast.FunctionDef | ast.Lambda):
        raise error(f"{function.__qualname__} is an async function; {SUPPORTED}", position(file, node))
    return node, file


def _without_source(function: types.FunctionType) -> LiftError:
    return LiftError(
        f"the source of {function.__qualname__} cannot be found, so it cannot be compiled; functions are read from "
        "files, notebooks and doctests, and not from exec or the plain interactive prompt"
    )


# -- whether the text is that of the function ------------------------------------------------------------------------

_FEATURES = functools.reduce(operator.or_, (getattr(__future__, n).compiler_flag for n in __future__.all_feature_names))
_FEATURES &= ~inspect.CO_NESTED  # a bit that means something else in later versions


def _is_current(parsed: _SourceFile, file: str, function: types.FunctionType) -> bool:
    """Whether the file as it is now compiles to the code object of the function."""
    code = function.__code__
    features = code.co_flags & _FEATURES
    if features not in parsed.compiled:
        parsed.compiled[features] = _by_place((_place(c), c) for c in _nested_codes(_compile(parsed.tree, file, code)))
    now = parsed.compiled[features].get(_place(code), [])
    if not _is_unmodified(function):
        return any(_parameters(c) == _parameters(code) and _names(c) <= _names(code) for c in now)
    mine = _fingerprint(code)
    return any(_fingerprint(c) == mine for c in now)


def _is_unmodified(function: types.FunctionType) -> bool:
    """Whether the importer cannot have rewritten the function, as pytest does with `assert`."""
    loader = function.__globals__.get("__loader__")
    return loader is None or getattr(loader, "__module__", type(loader).__module__).startswith(
        ("importlib.", "_frozen_importlib", "zipimport")
    )


def _compile(tree: ast.Module, file: str, code: types.CodeType) -> types.CodeType:
    """The code object of a file, with the `__future__` features of a function: notebooks keep those of other cells."""
    flags = (code.co_flags & _FEATURES) | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    found: types.CodeType = compile(tree, file, "exec", flags, dont_inherit=True)
    return found


def _nested_codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            yield from _nested_codes(c)


def _parameters(code: types.CodeType) -> tuple[str, ...]:
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _names(code: types.CodeType) -> set[str]:
    return {n for c in _nested_codes(code) for n in (*c.co_varnames, *c.co_names, *c.co_cellvars, *c.co_freevars)}


def _fingerprint(x: Any) -> Any:
    """What a code object does, without its position; constants of different types differ, and so do 0.0 and -0.0."""
    if isinstance(x, types.CodeType):
        names = (x.co_names, x.co_varnames, x.co_freevars, x.co_cellvars)
        counts = (x.co_argcount, x.co_posonlyargcount, x.co_kwonlyargcount)
        return (x.co_code, names, counts, tuple(map(_fingerprint, x.co_consts)))
    if isinstance(x, tuple):
        return tuple(map(_fingerprint, x))
    if isinstance(x, frozenset):
        return frozenset(map(_fingerprint, x))
    return (type(x), repr(x))


def _matching_lambda(found: list[ast.AST], text: str, file: str, function: types.FunctionType) -> ast.AST:
    """Which of several lambdas on one line a function is: the one with the same code."""
    code = function.__code__
    marked = ast.parse(text)
    first = 1 + text.count("\n")
    for i, node in enumerate(
        [node for node in ast.walk(marked) if _place(code) in _places(node)]
    ):  # each gets a line number of its own
        for name, value in (("lineno", first + i), ("col_offset", 0), ("end_lineno", first + i), ("end_col_offset", 1)):
            setattr(node, name, value)
    now = {c.co_firstlineno: c for c in _nested_codes(_compile(marked, file, code)) if c.co_name == code.co_name}
    mine = _fingerprint(code)
    alike = [node for i, node in enumerate(found) if first + i in now and _fingerprint(now[first + i]) == mine]
    if not alike:
        alike = [node for node in found if _is_origin(node, code)]
        if len(alike) != 1:
            raise error(
                "which of the lambdas on this line is to be compiled cannot be told; write one of them with def",
                position(file, found[0]),
            )
    return next((node for node in alike if _is_origin(node, code)), alike[0])


# -- files -------------------------------------------------------------------------------------------------------------

Place = tuple[str, int]
"""The name of a function, and the line where it begins."""


@dataclass(frozen=True)
class _SourceFile:
    """The syntax tree of a file, walked and compiled once for all of its functions."""

    tree: ast.Module
    defined: Mapping[Place, list[ast.AST]]  # definitions, in the order of a walk
    compiled: dict[int, Mapping[Place, list[types.CodeType]]] = field(default_factory=dict)  # by `__future__` features


_parsed: dict[tuple[str, str], _SourceFile] = {}


def _parse_file(text: str, file: str) -> _SourceFile:
    key = (file, text)
    if key not in _parsed:
        if len(_parsed) >= _MOST:
            _parsed.clear()
        try:
            tree = ast.parse(text)
        except SyntaxError as problem:
            raise LiftError(
                f"{file} cannot be read, line {problem.lineno}: {problem.msg}; the file changed after it was imported"
            ) from problem
        _parsed[key] = _SourceFile(tree, _by_place((place, node) for node in ast.walk(tree) for place in _places(node)))
    return _parsed[key]


def _by_place(pairs: Iterable[tuple[Place, _T]]) -> dict[Place, list[_T]]:
    found: dict[Place, list[_T]] = {}
    for place, x in pairs:
        found.setdefault(place, []).append(x)
    return found


def _place(code: types.CodeType) -> Place:
    return code.co_name, code.co_firstlineno


def _places(node: ast.AST) -> set[Place]:
    """Where the code of a node may begin, if it defines a function: at its first decorator, or at its name."""
    if isinstance(node, ast.Lambda):
        return {("<lambda>", node.lineno)}
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return {(node.name, n) for n in (node.lineno, min([node.lineno, *(d.lineno for d in node.decorator_list)]))}
    return set()


def _is_origin(node: ast.AST, code: types.CodeType) -> bool:
    """Whether the instructions of a code object have the positions of this lambda."""
    if not isinstance(node, ast.Lambda):
        return True
    body: Any = node.body
    places = [p for p in code.co_positions() if p[0] is not None and p[2] is not None and (p[0], p[2]) != (p[1], p[3])]
    inside = [(p[0], p[2]) for p in places if p[3]]
    if not inside:
        return True
    start, end = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
    return min(inside) == start and max((p[1], p[3]) for p in places if p[3]) == end
