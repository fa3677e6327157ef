"""The house is laid out as CONTRIBUTING.md says: who may import whom, read off the source files themselves."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

HOUSE = Path(__file__).parent.parent / "src" / "dynagrad"

# Leaves: small files about values, below everything that handles facts.
LEAVES = {"facts", "files", "table", "terms"}
HANDLES_FACTS = LEAVES | {"errors"}

ARROWS: dict[str, set[str]] = {
    "errors": set(),
    **{leaf: HANDLES_FACTS for leaf in LEAVES},
    "graph": {"errors"},
    "rules": {"graph", "errors"},
    "native": {"graph", "errors"},
    "plan": {"rules", "graph", "native", "errors"},
    "functions": {"graph", "native", "errors"},
    "languages": {"functions", "graph", "native", "errors"},
    "semirings": HANDLES_FACTS,
    "encoding": {"rules"} | HANDLES_FACTS,
    "binding": {"rules", "plan", "encoding", "semirings"} | HANDLES_FACTS,
    "reading": {"rules", "binding", "encoding"} | HANDLES_FACTS,
    "progress": set(),
    "changing": {"rules", "plan", "binding", "encoding", "reading"} | HANDLES_FACTS,
    "gradient": {"rules", "plan", "binding", "limits", "reading", "semirings"} | HANDLES_FACTS,
    "limits": {"plan", "binding", "reading", "semirings"} | HANDLES_FACTS,
    "looking": {"rules", "binding", "encoding", "reading"} | HANDLES_FACTS,
    "directions": {"binding", "gradient", "looking", "reading"} | HANDLES_FACTS,
    "questions": {"plan", "binding", "directions", "gradient", "looking"} | HANDLES_FACTS,
    "chart": {"rules", "plan", "binding", "changing", "directions", "encoding", "gradient", "limits", "looking"}
    | {"progress", "questions", "reading"}
    | HANDLES_FACTS,
    "batch": {"chart", "gradient", "semirings"} | HANDLES_FACTS,
    "function": {"chart", "gradient", "binding", "limits", "looking", "semirings", "functions", "graph"}
    | HANDLES_FACTS,
    "program": {"chart", "batch", "binding", "function", "graph", "limits", "rules", "plan", "functions", "semirings"}
    | HANDLES_FACTS,
    "forest": {"chart", "binding", "plan", "rules"} | HANDLES_FACTS,
    "training": {"program", "forest", "functions"} | HANDLES_FACTS,
    "interop": {"program", "forest", "functions"} | HANDLES_FACTS,
}
# The command line and the public names stand on top of everything.
TOP = {"cli", "demo", "__init__", "__main__"}


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
    assert here in ARROWS, f"{here} is a new room: say in CONTRIBUTING.md and here what it may import"
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
