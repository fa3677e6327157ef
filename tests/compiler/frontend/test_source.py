"""Finding the source of a function: the one that it was compiled from, or an error. Costs a few seconds."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from compiler.specialising import agrees
from dynagrad.compiler.specialised import specialised
from dynagrad.errors import LiftError

Make = Callable[[str], Any]


@pytest.fixture
def module(tmp_path: Path) -> Iterator[Make]:
    """Writes a file, and imports it."""

    def make(text: str) -> Any:
        file = tmp_path / "theirs.py"
        file.write_text(text)
        spec = importlib.util.spec_from_file_location("theirs", file)
        assert spec is not None and spec.loader is not None
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
        return made

    yield make
    sys.modules.pop("theirs", None)


# -- a file that changed -------------------------------------------------------------------------------------------

EDITS = [
    ("2.0 * x", "3.0 * x"),
    ("x if x > 0 else 0.0", "x if x < 0 else 0.0"),
    ("x + 0.0", "x - 0.0"),
    ("x * 0.0", "x * -0.0"),
    ("x * 1", "x * 1.0"),
    ("x * 1", "x * True"),
    ("(lambda y: y * 2.0)(x)", "(lambda y: y * 3.0)(x)"),
    ("sum(x for i in (1, 2))", "sum(x for i in (1, 3))"),
]


@pytest.mark.parametrize(("before", "after"), EDITS)
@pytest.mark.parametrize("form", ["def f(x):\n    return {}\n", "f = lambda x: {}\n"])
def test_an_edit_after_the_import_is_an_error(module: Make, tmp_path: Path, form: str, before: str, after: str) -> None:
    f = module(form.format(before)).f
    (tmp_path / "theirs.py").write_text(form.format(after) + "# edited\n")
    with pytest.raises(LiftError, match="the file changed after it was imported"):
        specialised(f, (1.5,))


def test_an_edit_of_a_function_that_is_called_is_an_error(module: Make, tmp_path: Path) -> None:
    text = "def g(x):\n    return {}\n\n\ndef f(x):\n    return g(x)\n"
    f = module(text.format("x + 1.0")).f
    (tmp_path / "theirs.py").write_text(text.format("x + 22.0"))
    with pytest.raises(LiftError, match="not what g was made from"):
        specialised(f, (1.5,))


def test_an_edit_elsewhere_in_the_file_is_none(module: Make, tmp_path: Path) -> None:
    text = "def f(x):\n    return x + 1.0\n\n\ndef g(x):\n    return {}\n"
    f = module(text.format("x")).f
    (tmp_path / "theirs.py").write_text(text.format("x * 7.0"))
    agrees(f, 1.5)


def test_a_file_that_is_no_program_any_more(module: Make, tmp_path: Path) -> None:
    f = module("def f(x):\n    return x\n").f
    (tmp_path / "theirs.py").write_text("def f(x):\n    return x +\n")
    with pytest.raises(LiftError, match=r"cannot be read, line 2.*the file changed"):
        specialised(f, (1.5,))


@pytest.mark.parametrize(
    "text",
    [
        '"""A docstring."""\nfrom __future__ import annotations\n\n\ndef f(x: Unknown) -> Unknown:\n'
        "    def g(y: Unknown) -> Unknown:\n        return y * 2.0\n    return g(x)\n",
        "def f(x):\n    '''A docstring.'''\n    assert x is not None, 'said'\n    return x * __debug__\n",
        "class A:\n    def f(self, x):\n        return [x, -0.0, 1e400, 'é', b'', ..., 3 in {1, 2, 3}][0]\nf = A().f\n",
        "import functools\n\n\n"
        "@functools.lru_cache\n@functools.wraps(abs)\ndef g(x):\n    return x\n\n\nf = g.__wrapped__\n",
        "def make(k):\n    def f(x):\n        return x * k\n    return f\nf = make(3.0)\n",
    ],
    ids=["future", "assert", "method", "decorators", "closure"],
)
def test_a_file_that_did_not_change(module: Make, text: str) -> None:
    agrees(module(text).f, 1.5)


# -- lambdas of one line -------------------------------------------------------------------------------------------

LINES = [
    ("2 * x", "x if True else 0.0"),
    ("2 * x", "True and x"),
    ("2 * x", "__debug__ and x"),
    ("x.real if False else abs(x)", "2 * x"),
    ("1.0 if True else x", "3 * x", "2.0 if True else x"),
    ("x", "x if True else 0.0"),
    ("(lambda y: y * 2.0)(x)", "(lambda y: y * 3.0)(x)"),
    ("x * 2", "x * 2.0", "x * 2.0"),
]


@pytest.mark.parametrize("bodies", LINES, ids=" | ".join)
def test_of_several_lambdas_of_a_line_the_right_one_is_taken(module: Make, bodies: tuple[str, ...]) -> None:
    made = module("fs = [" + ", ".join(f"lambda x: {body}" for body in bodies) + "]\n")
    for f in made.fs:
        agrees(f, -1.5)


def test_lambdas_inside_of_lambdas(module: Make) -> None:
    made = module("f, g = lambda x: lambda y: x if True else y, lambda x: lambda y: y if True else x\n")
    for f in (made.f(2.0), made.g(2.0)):
        agrees(f, 1.5)


def test_defaults_are_those_of_the_function(module: Make) -> None:
    made = module("f, g = lambda x, k=2.0: k * x, lambda x, k=3.0: k * x\n")
    agrees(made.f, 1.5)
    agrees(made.g, 1.5)


def test_where_it_cannot_be_told_def_is_asked_for(module: Make) -> None:
    made = module("f, g = lambda x: x + 1.0, lambda x: x + 2.0\n")
    code = made.f.__code__
    made.f.__code__ = code.replace(co_linetable=b"", co_code=code.co_code + code.co_code[-2:])
    made.__loader__ = made.f.__globals__["__loader__"] = object()  # something that rewrites what it imports
    with pytest.raises(LiftError, match="write one of them with def"):
        specialised(made.f, (1.5,))
