"""The house is laid out as CONTRIBUTING.md says: which room may import which, read off the source files themselves.

Costs five seconds: every file is parsed once.
"""

from __future__ import annotations

import ast
import functools
import gc
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from dynagrad.collector import collecting_later

HOUSE = Path(__file__).parent.parent / "src" / "dynagrad"
CONTRIBUTING = HOUSE.parent.parent / "CONTRIBUTING.md"
PROJECT = (HOUSE.parent.parent / "pyproject.toml").read_text()
FILES = sorted(HOUSE.rglob("*.py"))
MOST_FILES = 15
"""How many files a folder holds at most, beside its `__init__.py`."""
MOST_CONDITIONS = 12
"""How many conditions a function has at most that writes the class of a program."""
MOST_LINES = 500
"""From how many lines on a file says why it is one."""


def drawn() -> list[str]:
    """The rooms of CONTRIBUTING.md, from the top down: those of one line stand side by side."""
    text = CONTRIBUTING.read_text().partition("## How the house is laid out")[2].partition("\n## ")[0]
    lines = re.findall(r"^    (?! )(.*?)(?:  .*)?$", text, re.MULTILINE)
    return [name.rstrip("/").removesuffix(".py") for line in lines for name in line.split()]


ROOMS = drawn()


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(HOUSE).with_suffix("").parts).removesuffix("__init__").rstrip(".")


NAMES = {name_of(path): path for path in FILES}


@functools.cache  # not as tests are collected: each worker of a parallel run collects all, and runs some
def trees() -> dict[str, ast.Module]:
    """What is parsed of each file."""
    with collecting_later():
        found = {name: ast.parse(path.read_text()) for name, path in NAMES.items()}
    gc.freeze()  # a million objects that stay: to look through them again and again takes longer than all else here
    return found


@functools.cache
def nodes(tree: ast.AST) -> tuple[ast.AST, ...]:
    """All nodes of a tree, which most tests look at."""
    return tuple(ast.walk(tree))


def imported(tree: ast.AST, here: tuple[str, ...], files: set[str]) -> set[str]:
    """The files that one in the package `here` imports, wherever in it: in functions and for types alone as well."""
    found = set()
    for node in nodes(tree):
        names: list[tuple[str, ...]] = []
        if isinstance(node, ast.Import):
            names = [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ("dynagrad", *here)[: len(here) + 2 - node.level] if node.level else ()
            base += tuple(node.module.split(".")) if node.module else ()
            names = [(*base, alias.name) for alias in node.names]
        for name in names:
            if name[0] == "dynagrad":
                longest = next(n for n in range(len(name), 0, -1) if ".".join(name[1:n]) in files)
                found.add(".".join(name[1:longest]))
    return found


@functools.cache
def imports() -> dict[str, set[str]]:
    """What each file imports of the package."""
    every = set(NAMES)
    return {
        name: imported(trees()[name], path.relative_to(HOUSE).parent.parts, every) - {name}
        for name, path in NAMES.items()
    }


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


def test_the_list_has_every_room() -> None:
    there = {name.partition(".")[0] for name in NAMES} - {""}
    assert sorted(ROOMS) == sorted(there)


def above(name: str) -> set[str]:
    """What a file imports of the rooms above its own."""
    here = name.partition(".")[0]
    allowed = set(ROOMS[ROOMS.index(here) :])
    if here == ROOMS[0]:
        allowed.add("")  # the public names stand on all rooms but the first
    return {other for other in imports()[name] if other.partition(".")[0] not in allowed}


def test_a_room_imports_only_rooms_below_it() -> None:
    assert {name: wrong for name in NAMES if name and (wrong := above(name))} == {}


def test_no_file_is_in_a_circle() -> None:
    assert in_circles({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": {"e"}, "e": set()}) == {"b", "c"}
    assert not in_circles(imports())


def parts_of(folder: str) -> dict[str, set[str]]:
    """What the files and folders of a folder import of each other."""
    inside = f"{folder}." if folder else ""
    arrows: dict[str, set[str]] = {}
    for name, others in imports().items():
        if name.startswith(inside) and name not in ("", folder):
            own = name.removeprefix(inside).partition(".")[0]
            parts = {other.removeprefix(inside).partition(".")[0] for other in others if other.startswith(inside)}
            arrows.setdefault(own, set()).update(parts - {own, ""})
    return arrows


KNOTS = {
    "eager": {"numbers", "numpy"},  # a number has the methods of an array
    "ir": {"node", "operation", "ops"},  # a node has Python's operators, which are operations
}
"""Where a folder and a file beside it import each other, though none of their files is in a circle."""


@pytest.mark.parametrize("folder", sorted({name.rpartition(".")[0] for name in NAMES if name}))
def test_a_folder_is_in_no_circle_with_what_lies_beside_it(folder: str) -> None:
    if folder:  # the rooms have an order
        assert in_circles(parts_of(folder)) == KNOTS.get(folder, set())


def set_from_outside(tree: ast.AST) -> list[str]:
    """The attributes of classes and modules of the package that a file sets although it only imports them."""
    strangers: set[str] = set()
    found = []
    for node in nodes(tree):
        if isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").startswith("dynagrad")):
            strangers |= {alias.asname or alias.name for alias in node.names}
    for node in nodes(tree):
        if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in strangers:
                found.append(ast.unparse(node))
        elif isinstance(node, ast.Call) and (
            (isinstance(node.func, ast.Name) and node.func.id in ("setattr", "delattr"))
            or (isinstance(node.func, ast.Attribute) and ast.unparse(node.func) == "type.__setattr__")
        ):
            if isinstance(node.args[0], ast.Name) and node.args[0].id in strangers:
                found.append(ast.unparse(node))
    return found


def test_no_file_changes_the_classes_of_another() -> None:
    """It may enter things into a table that the other keeps for this."""
    assert {name: found for name, tree in trees().items() if (found := set_from_outside(tree))} == {}


def test_attributes_set_from_outside_are_found() -> None:
    text = """
from .numbers import Number, LIFTS
from . import node
class Own: pass
Own.shape = 1
LIFTS[Own] = 2
Number.shape = 3
node.VARIABLE += 4
def f(): setattr(Number, "shape", 5)
"""
    assert set_from_outside(ast.parse(text)) == ["Number.shape", "node.VARIABLE", "setattr(Number, 'shape', 5)"]


FOREIGN = {"_asdict", "_at_fork_reinit", "_fields", "_field_defaults", "_make", "_replace"}  # of named tuples, of locks
FOREIGN |= {
    "_ARRAY_API",
    "_NoValue",
    "_exit",
    "_getframe",
    "_handle",
    "_load",
    "_lru_cache_wrapper",
    "_run_exitfuncs",
    "_version",
}
"""Private names of Python and of other packages that are used."""


def private_names_of_others(tree: ast.AST) -> list[str]:
    """The private names that a file uses, of modules it imports or of objects other than `self`, and that it does not
    set or define."""
    own: set[str] = set()
    for node in nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            own.add(node.name)
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            own.add(node.id if isinstance(node, ast.Name) else node.attr)
    known, found = own | FOREIGN, []
    for node in nodes(tree):
        if isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").startswith("dynagrad")):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Attribute) and not (isinstance(node.value, ast.Name) and node.value.id == "self"):
            names = [] if node.attr in known else [node.attr]
        else:
            continue
        found += [name for name in names if name.startswith("_") and not name.startswith("__")]
    return found


def test_no_file_uses_private_names_of_another() -> None:
    assert {name: found for name, tree in trees().items() if (found := private_names_of_others(tree))} == {}


def test_private_names_of_others_are_found() -> None:
    text = """
from .gradients import _vjp
class Own:
    def f(self, other, chart):
        self._x = other._x
        return self._inherited, chart._run, chart.__class__, np._NoValue
"""
    assert private_names_of_others(ast.parse(text)) == ["_vjp", "_run"]


REASONS = ("for a quick start", "an optional package", "an optional part of Python")
"""What an import inside a function may be for; a comment on its line says which."""


def deferred(tree: ast.AST) -> dict[ast.Import | ast.ImportFrom, None]:
    """The imports inside functions, each once."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    return {
        node: None
        for function in nodes(tree)
        if isinstance(function, functions)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }


def at_once(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports that run when a file is imported: not those inside functions, or for types alone."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield node
    elif isinstance(node, ast.stmt | ast.Module | ast.ExceptHandler) and not (
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    ):
        for part in ast.iter_child_nodes(node):
            yield from at_once(part)


def loaded_with(name: str) -> set[str]:
    """The files of the package, and the modules of others, that are loaded when a file of the package is."""
    seen: set[str] = set()
    todo = [name]
    while todo:
        now = todo.pop()
        if now in seen:
            continue
        seen.add(now)
        if now in NAMES:
            parents = [".".join(now.split(".")[:n]) for n in range(now.count(".") + 1)]
            todo += [*parents, *loaded_at_once()[now]]
    return seen


def modules_of(nodes: Iterable[ast.Import | ast.ImportFrom], path: Path) -> set[str]:
    """What a file imports there: its names in the package, and whole names of others."""
    body: list[ast.stmt] = list(nodes)
    found = imported(ast.Module(body, []), path.relative_to(HOUSE).parent.parts, set(NAMES))
    for node in body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if not alias.name.startswith("dynagrad")}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module and "dynagrad" not in node.module:
            found.add(node.module)
    return found


@functools.cache
def loaded_at_once() -> dict[str, set[str]]:
    """What is loaded with each file."""
    return {name: modules_of(at_once(trees()[name]), path) for name, path in NAMES.items()}


def reason_of(node: ast.stmt, text: str) -> str:
    """The comment on the line of an import."""
    return text.splitlines()[node.lineno - 1].rpartition("# ")[2]


def test_an_import_inside_a_function_says_what_it_is_for() -> None:
    """And it is true: what is put off for a quick start is not loaded anyway, and what is optional is not required."""
    listed = re.findall(r"^dependencies = \[(.*?)\]", PROJECT, re.DOTALL | re.MULTILINE)
    required = set(re.findall(r'"([\w-]+)', listed[0]))
    for name, path in NAMES.items():
        for node in deferred(trees()[name]):
            where, reason = f"{name}:{node.lineno}", reason_of(node, path.read_text())
            assert reason in REASONS, f"{where}: why not on top?"
            put_off = modules_of([node], path)
            if reason == "for a quick start":
                anyway = put_off & loaded_with(name)
                assert not anyway, f"{where}: {', '.join(anyway)} is loaded anyway"
            elif reason == "an optional package":
                assert not put_off & required, f"{where} is not optional"


def test_imports_that_are_put_off_are_found() -> None:
    text = """
import os
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from .plan import model
def f():
    def g():
        import torch  # an optional package
    async def h(): from . import parse  # no reason
"""
    tree = ast.parse(text)
    assert [reason_of(node, text) for node in deferred(tree)] == ["an optional package", "no reason"]
    assert modules_of(at_once(tree), HOUSE / "rules" / "show.py") == {"os", "typing"}


def test_imports_are_read_in_all_their_forms() -> None:
    text = """
import dynagrad.plan.model
from dynagrad import charts
def f():
    from ..errors import Error
    from .. import ir
    from . import parse
    import dynagrad
"""
    files = {"", "plan", "plan.model", "charts", "errors", "ir", "rules", "rules.parse"}
    assert imported(ast.parse(text), ("rules",), files) == {"plan.model", "charts", "errors", "ir", "rules.parse", ""}


IN_SEVERAL_FORMS = {
    "Loop": {"ir.control", "plan.nest"},  # of a graph, and of the instances of a rule
    "Let": {"compiler.frontend.core", "plan.nest"},  # of the language of functions, and of the instances of a rule
}
"""Classes with a name of the field that each form has: forms that no file knows together."""


def test_a_name_of_a_class_is_used_once() -> None:
    found: dict[str, list[str]] = {}
    for name, tree in trees().items():
        for node in nodes(tree):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(name)
    assert {name: set(files) for name, files in found.items() if len(files) > 1} == IN_SEVERAL_FORMS


def docstring(tree: ast.AST) -> str:
    assert isinstance(tree, ast.Module)
    return ast.get_docstring(tree) or ""


def test_each_file_says_what_lives_in_it() -> None:
    assert [name for name, tree in trees().items() if not docstring(tree)] == []


def test_a_folder_says_what_its_files_are() -> None:
    """But for the package, of which CONTRIBUTING.md says it, and the names of numpy, which are numpy's."""
    unnamed = [
        f"{folder.relative_to(HOUSE)}/{entry.name}"
        for folder in sorted({path.parent for path in FILES} - {HOUSE, HOUSE / "numpy"})
        for entry in sorted(folder.iterdir())
        if entry.name != "__init__.py" and (entry.suffix == ".py" or any(entry.glob("*.py")))
        if f"`{entry.name}{'/' if entry.is_dir() else ''}`" not in docstring(trees()[name_of(folder / "__init__.py")])
    ]
    assert unnamed == []


@pytest.mark.parametrize("folder", sorted({path.parent for path in FILES}), ids=lambda f: str(f.relative_to(HOUSE)))
def test_a_folder_can_be_taken_in_at_a_glance(folder: Path) -> None:
    assert (folder / "__init__.py").exists()
    assert len([path for path in folder.glob("*.py") if path.name != "__init__.py"]) <= MOST_FILES


@pytest.mark.parametrize("folder", sorted({path.parent for path in HOUSE.rglob("*.hpp")}), ids=lambda f: f.name)
def test_a_folder_of_headers_can_be_taken_in_at_a_glance(folder: Path) -> None:
    assert len(list(folder.glob("*.hpp"))) <= MOST_FILES


def test_a_long_file_says_why_it_is_one() -> None:
    long = [name for name, path in NAMES.items() if path.read_text().count("\n") > MOST_LINES]
    assert [name for name in long if "It is long" not in docstring(trees()[name])] == []


@pytest.mark.parametrize("path", sorted(HOUSE.rglob("*.hpp")), ids=lambda path: str(path.relative_to(HOUSE)))
def test_a_long_header_says_why_it_is_one(path: Path) -> None:
    text = path.read_text()
    if text.count("\n") > MOST_LINES:
        assert "// It is long" in text.partition("#pragma once")[0]


def test_one_header_includes_math_h() -> None:
    """It takes a compiler longer than all others of the system; `base/math.hpp` does without it where it can."""
    including = [path.name for path in HOUSE.rglob("*.hpp") if "#include <math.h>" in path.read_text()]
    assert including == ["math.hpp"]


ROOT = HOUSE.parent.parent
PROSE = [*FILES, *sorted((ROOT / "tests").rglob("*.py")), CONTRIBUTING, *sorted((ROOT / "docs").rglob("*.md"))]


def spoken_of(path: Path) -> list[str]:
    """The files that a text speaks of and that are not there: by their names from the root, the package, the tests, the
    headers, the room that speaks of them, or its folder."""
    places = [ROOT, ROOT / "tests", HOUSE, HOUSE / "runtime/include", HOUSE / "runtime/include/dynagrad", path.parent]
    if HOUSE in path.parents:
        places += [path.parent.parent, HOUSE / path.relative_to(HOUSE).parts[0]]
    names = re.findall(r"`([a-z_/]+\.(?:py|hpp|lark|md))`", path.read_text())
    return [name for name in names if not any((place / name).exists() for place in places)]


def test_files_that_are_spoken_of_are_there() -> None:
    assert {str(path.relative_to(ROOT)): found for path in PROSE if (found := spoken_of(path))} == {}


VERBS = {"is", "has", "was", "does", "takes", "needs", "gives", "this", "as", "makes"}
COUNTS = {
    "count",
    "n",
    "number",
    "size",
    "needed",
    "expected",
    "most",
    "least",
    "arity",
    "many",
    "total",
    "rank",
    "ndim",
}


def is_a_count(x: ast.expr, spec: ast.expr | None) -> bool:
    """Whether what stands in a message is a number of things that may be one: by its name, by `len`, or by commas
    between thousands; a constant of ours, whose name is in capitals, is more."""
    match x:
        case ast.Name(name) | ast.Attribute(attr=name):
            by_name = name in COUNTS
            if name.isupper():
                return False
        case ast.Call(ast.Name("len")):
            by_name = True
        case ast.BinOp(left, _, right):
            by_name = is_a_count(left, None) or is_a_count(right, None)
        case _:
            by_name = False
    return by_name or (spec is not None and ast.unparse(spec) == "f','")


def bare_counts(tree: ast.Module) -> Iterator[str]:
    """Counts with the plural of a noun, in a text: "1 rows". That of a part of them is right: "1 of 3 rows"."""
    for node in nodes(tree):
        parts = node.values if isinstance(node, ast.JoinedStr) else []
        for before, x, after in zip([None, *parts], parts, [*parts[1:], None], strict=False):
            if isinstance(x, ast.FormattedValue) and isinstance(after, ast.Constant):
                noun = re.match(r" (?:(?:more|such|[a-z]+ed) )?([a-z]+s)\b", str(after.value))
                of_them = isinstance(before, ast.Constant) and re.search(r"\bof (the )?$", str(before.value))
                if noun and noun[1] not in VERBS and not of_them and is_a_count(x.value, x.format_spec):
                    yield f"{node.lineno}: {ast.unparse(x.value)} {noun[1]}"
            if isinstance(x, ast.FormattedValue) and isinstance(x.value, ast.IfExp):
                ends = (x.value.body, x.value.orelse)
                if [end.value for end in ends if isinstance(end, ast.Constant)] in (["", "s"], ["s", ""]):
                    yield f"{node.lineno}: {ast.unparse(x.value)}"


def test_a_number_of_things_and_their_name_agree() -> None:
    """They are written by `errors.counted`, which knows of one; code that is generated counts nothing."""
    found = [
        f"{name}, line {what}"
        for name, tree in trees().items()
        if not name.startswith("codegen")
        for what in bare_counts(tree)
    ]
    assert not found
    wrong = "f'{len(rows)} rows', f'{n:,} more items', f'{count} row{\"\" if count == 1 else \"s\"}'"
    assert len(list(bare_counts(ast.parse(wrong)))) == 3
    right = "f'{len(some)} of {len(rows)} rows', f'{name} rows', f'{MOST} rows', f'{n} is too many'"
    assert not list(bare_counts(ast.parse(right)))


# -- how large the house is --------------------------------------------------------------------------------------------

CEILINGS = {
    "autodiff": 1363,
    "charts": 6597,
    "cli": 1086,
    "codegen": 170,
    "codegen/graph": 2466,
    "codegen/rules": 3365,
    "compiler": 8348,
    "dynagrad": 890,
    "eager": 6671,
    "facts": 1798,
    "forests": 3929,
    "ir": 4168,
    "languages": 7098,
    "numpy": 33,
    "passes": 2566,
    "plan": 4035,
    "rules": 3327,
    "runtime": 2421,
    "training": 6929,
}
"""The most Python statements of each room; those of `codegen` apart. A feature that needs more raises its room's here,
with the reason in its commit."""
HEADERS = 17_600
"""The most lines of headers."""
SLACK = 0.02
"""How far below its ceiling a room may be, so that what was won is not lost again."""


def room_of(name: str) -> str:
    first, _, rest = name.partition(".")
    return f"codegen/{rest.partition('.')[0]}" if first == "codegen" and "." in rest else first or "dynagrad"


def statements() -> dict[str, int]:
    """How many statements each room has."""
    found: dict[str, int] = {}
    for name, tree in trees().items():
        room = room_of(name) if (HOUSE / name.partition(".")[0]).is_dir() else "dynagrad"
        found[room] = found.get(room, 0) + sum(isinstance(node, ast.stmt) for node in nodes(tree))
    return found


def test_no_room_outgrows_its_ceiling() -> None:
    found = statements()
    assert found.keys() == CEILINGS.keys()
    over = {room: count for room, count in found.items() if count > CEILINGS[room]}
    assert over == {}, "more statements than CEILINGS has: raise it in the commit of the feature, with the reason"
    under = {room: count for room, count in found.items() if count < CEILINGS[room] * (1 - SLACK) - 10}
    assert under == {}, "fewer statements than CEILINGS has: lower it, so that what was won stays"


def test_headers_do_not_outgrow_their_ceiling() -> None:
    found = sum(path.read_text().count("\n") for path in HOUSE.rglob("*.hpp")) + sum(
        path.read_text().count("\n") for path in HOUSE.rglob("*.h")
    )
    assert HEADERS * (1 - SLACK) - 50 <= found <= HEADERS


def conditions(function: ast.FunctionDef) -> int:
    """The conditions of a function: `if`, conditional expressions, and operands of `and` and `or`."""
    inside = nodes(function)
    ifs = sum(isinstance(node, ast.If | ast.IfExp) for node in inside)
    return ifs + sum(len(node.values) for node in inside if isinstance(node, ast.BoolOp))


def test_no_function_that_writes_rules_asks_too_much() -> None:
    found = {
        f"{name}.{node.name}": conditions(node)
        for name, tree in trees().items()
        if name.startswith("codegen.rules")
        for node in nodes(tree)
        if isinstance(node, ast.FunctionDef)
    }
    most = max(found, key=lambda name: found[name])
    assert found[most] <= MOST_CONDITIONS, f"{most} has {found[most]} conditions"
