"""Where the text of a Python function is, and errors that point into it. Nothing here knows the lambda calculus."""

from __future__ import annotations

import ast
import inspect
import linecache
import types
from collections.abc import Iterator
from typing import Any

from ...errors import LiftError, Span
from .core import Position

Definition = ast.FunctionDef | ast.Lambda

_parsed: dict[tuple[str, str], ast.Module] = {}
_MOST = 256  # files kept

SUPPORTED = (
    "compiled functions are made of assignments, if, while, for, break, continue, return, def, lambda, tuples, lists, "
    "dicts, dataclasses, indexing, numpy and math"
)


def error(message: str, at: Position | None) -> LiftError:
    """An error that shows a place of the user's file."""
    if at is None:
        return LiftError(message)
    lines = linecache.getlines(at.file)
    start, end = (_characters(lines, at.line, c) for c in (at.column, at.end_column))
    width = end - start if at.end_line == at.line else 10**6
    return LiftError(message, "".join(lines), Span(0, max(width, 1), at.line, start + 1), at.file)


def _characters(lines: list[str], line: int, column: int) -> int:
    """A column of a syntax tree, which counts bytes, in characters."""
    if line > len(lines):
        return column
    return len(lines[line - 1].encode()[:column].decode(errors="ignore"))


def position(file: str, node: ast.AST) -> Position | None:
    """Where a part of a syntax tree stands."""
    if not hasattr(node, "lineno"):
        return None
    line: int = node.lineno
    column: int = getattr(node, "col_offset", 0)
    end_line, end_column = getattr(node, "end_lineno", None), getattr(node, "end_col_offset", None)
    return Position(file, line, column, end_line or line, column + 1 if end_column is None else end_column)


def definition(function: types.FunctionType) -> tuple[Definition, str]:
    """The syntax tree of a function, and its file; raises LiftError where its source is not to be had."""
    code = function.__code__
    try:
        file = inspect.getsourcefile(code) or code.co_filename
        lines, _ = inspect.findsource(code)
    except (OSError, TypeError) as problem:
        raise LiftError(
            f"the source of {function.__qualname__} cannot be found, so it cannot be compiled; functions are read from "
            "files, notebooks and doctests, and not from exec or the plain interactive prompt"
        ) from problem
    tree = _module("".join(lines), file)
    found = [node for node in ast.walk(tree) if _is(node, code)]
    if len(found) > 1:
        found = [node for node in found if _covers(node, code)] or found
    if not found:
        raise LiftError(
            f"{function.__qualname__} is not in {file}, line {code.co_firstlineno}: the file changed after it was "
            "imported, or the function was made by other means"
        )
    node = found[0]
    if _changed(tree, file, code):
        raise error(
            f"this is not what {function.__qualname__} was made from: the file changed after it was imported",
            position(file, node),
        )
    if not isinstance(node, ast.FunctionDef | ast.Lambda):
        raise error(f"{function.__qualname__} is an async function; {SUPPORTED}", position(file, node))
    return node, file


def _changed(tree: ast.Module, file: str, code: types.CodeType) -> bool:
    """Whether what stands in the file now has other parameters, or uses other names, than the function itself."""
    key = id(tree)
    if key not in _compiled:
        _compiled[key] = tree, list(_codes(compile(tree, file, "exec", dont_inherit=True)))
    place = (code.co_name, code.co_firstlineno)
    now = [c for c in _compiled[key][1] if (c.co_name, c.co_firstlineno) == place]
    mine = _names(code)
    count = code.co_argcount + code.co_kwonlyargcount
    return not any(c.co_varnames[:count] == code.co_varnames[:count] and _names(c) <= mine for c in now)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            yield from _codes(c)


def _names(code: types.CodeType) -> set[str]:
    return {n for c in _codes(code) for n in (*c.co_varnames, *c.co_names, *c.co_cellvars, *c.co_freevars)}


_compiled: dict[int, tuple[ast.Module, list[types.CodeType]]] = {}


def _module(text: str, file: str) -> ast.Module:
    key = (file, text)
    if key not in _parsed:
        if len(_parsed) >= _MOST:
            _parsed.clear()
            _compiled.clear()
        _parsed[key] = ast.parse(text)
    return _parsed[key]


def _is(node: ast.AST, code: types.CodeType) -> bool:
    if isinstance(node, ast.Lambda):
        return code.co_name == "<lambda>" and node.lineno == code.co_firstlineno
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        return node.name == code.co_name and code.co_firstlineno in (first, node.lineno)
    return False


def _covers(node: ast.AST, code: types.CodeType) -> bool:
    """Whether the instructions of the code come from this of several lambdas of a line."""
    if not isinstance(node, ast.Lambda):
        return True
    body: Any = node.body
    places = [p for p in code.co_positions() if p[0] is not None and p[2] is not None and (p[0], p[2]) != (p[1], p[3])]
    inside = [(p[0], p[2]) for p in places if p[3]]
    if not inside:
        return True
    start, end = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
    return min(inside) == start and max((p[1], p[3]) for p in places if p[3]) == end
