"""The house is laid out as CONTRIBUTING.md says: who may import whom, read off the source files themselves."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

HOUSE = Path(__file__).parent.parent / "src" / "dynagrad"
CONTRIBUTING = HOUSE.parent.parent / "CONTRIBUTING.md"

# The command line and the public names stand on top of everything.
TOP = {"cli", "demo", "__init__", "__main__"}
# Leaves: small files about values, below everything that handles facts.
LEAVES = {"columns", "facts", "files", "relation", "table", "terms", "values"}
FOR_ALL = {"errors", "calls", "forks"}
HANDLES_FACTS = LEAVES | FOR_ALL
# To these, facts are data at run time.
KNOWS_NO_FACTS = {"rules", "plan", "native", "graph", "functions"}


def drawn() -> Iterator[tuple[str, set[str]]]:
    """The arrows of CONTRIBUTING.md: a room, and those that it may import beside the leaves."""
    text = CONTRIBUTING.read_text().partition('An arrow means "may import"')[2]
    lines = re.sub(r"\n {5,}", " ", text).splitlines()  # a long one goes on in the next
    for rooms, to in (line.split("->") for line in lines if re.match(r"    \w.* -> ", line)):
        for name in set(re.findall(r"\w+", rooms)) - TOP:
            yield name, set(re.findall(r"\w+", to)) - {"nothing"}


ARROWS = {name: to | (FOR_ALL if name in KNOWS_NO_FACTS else HANDLES_FACTS) for name, to in drawn()}
ARROWS |= {"errors": set(), "forks": set(), "calls": {"errors"}, **{leaf: HANDLES_FACTS for leaf in LEAVES}}


def room(path: Path) -> str:
    return path.relative_to(HOUSE).parts[0].removesuffix(".py")


def imports(tree: ast.AST, package: tuple[str, ...]) -> set[str]:
    """The rooms that a file imports from, wherever in it the imports stand; `package` is what it lies in."""
    found = set()
    for node in ast.walk(tree):
        names: list[tuple[str, ...]] = []
        if isinstance(node, ast.Import):
            names = [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            base += tuple(node.module.split(".")) if node.module else ()
            names = [(*base, alias.name) for alias in node.names]
        found |= {name[1] if len(name) > 1 else "__init__" for name in names if name[0] == "dynagrad"}
    return found


FILES = sorted(HOUSE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(HOUSE)))
def test_imports_follow_the_arrows(path):
    here = room(path)
    if here in TOP:
        return
    assert here in ARROWS, f"{here} is a new room: say in CONTRIBUTING.md what it may import"
    package = ("dynagrad", *path.relative_to(HOUSE).parent.parts)
    wrong = imports(ast.parse(path.read_text()), package) - ARROWS[here] - {here}
    assert not wrong, f"{path.relative_to(HOUSE)} must not import {', '.join(sorted(wrong))}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(HOUSE)))
def test_each_file_says_what_lives_in_it(path):
    assert ast.get_docstring(ast.parse(path.read_text()))


def test_the_arrows_have_no_cycle_but_among_the_leaves():
    seen: set[str] = set()

    def down(name: str, above: tuple[str, ...]) -> None:
        assert name not in above
        if name not in seen and name not in LEAVES:
            for below in ARROWS[name]:
                down(below, (*above, name))
            seen.add(name)

    for name in ARROWS:
        down(name, ())


def test_imports_are_read_in_all_their_forms():
    text = """
import dynagrad.plan.model
from dynagrad import chart
def f():
    from ..errors import Error
    from .. import graph
    from . import other
    import dynagrad
"""
    assert imports(ast.parse(text), ("dynagrad", "rules")) == {"plan", "chart", "errors", "graph", "rules", "__init__"}


# -- file by file ------------------------------------------------------------------------------------------------------


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(HOUSE).with_suffix("").parts).removesuffix("__init__").rstrip(".")


def files_imported(path: Path, files: set[str]) -> set[str]:
    """The files that a file imports, in functions and for types alone as well."""
    here = path.relative_to(HOUSE).parent.parts
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = (*here[: len(here) - node.level + 1], *(node.module.split(".") if node.module else ()))
            names = [".".join((*base, alias.name)) for alias in node.names]
            found |= {name if name in files else ".".join(base) for name in names}
    return found - {name_of(path)}


def in_circles(arrows: dict[str, set[str]]) -> set[str]:
    """The files that import themselves, through others."""

    def reached(name: str) -> set[str]:
        seen: set[str] = set()
        todo = [name]
        while todo:
            fresh = arrows[todo.pop()] - seen
            seen |= fresh
            todo += fresh
        return seen

    return {name for name in arrows if name in reached(name)}


def test_no_file_is_in_a_circle() -> None:
    names = {name_of(path): path for path in FILES if name_of(path)}  # the package's own `__init__` is on top of all
    arrows = {name: files_imported(path, set(names)) & set(names) for name, path in names.items()}
    assert in_circles({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": {"e"}, "e": set()}) == {"b", "c"}
    assert not in_circles(arrows)
