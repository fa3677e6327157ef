"""The hash of the package's sources covers all that decides rules, plans and classes (half a second)."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import time
from pathlib import Path

import dynagrad
from dynagrad.runtime.disk.sources import OTHERS

PACKAGE = Path(dynagrad.__path__[0])


def file_of(module: tuple[str, ...]) -> Path | None:
    """Of a module of the package, named by the rooms on the way to it."""
    place = PACKAGE.joinpath(*module)
    return next((p for p in (place / "__init__.py", place.with_suffix(".py")) if p.is_file()), None)


def imported(module: tuple[str, ...]) -> set[tuple[str, ...]]:
    """The modules that one imports when it is imported itself; the package's front is left out."""
    file = file_of(module)
    assert file is not None
    home = module if file.name == "__init__.py" else module[:-1]
    found = set()
    waiting: list[ast.AST] = [ast.parse(file.read_text())]
    while waiting:
        for node in ast.iter_child_nodes(waiting.pop()):
            if isinstance(node, ast.ImportFrom) and node.level:
                base = (*home[: len(home) - node.level + 1], *(node.module or "").split("."))
                names = {tuple(filter(None, base)), *(tuple(filter(None, (*base, a.name))) for a in node.names)}
                found |= {name for name in names if name and file_of(name)}
            types_only = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
            if not types_only and not isinstance(node, ast.FunctionDef):
                waiting.append(node)
    return found


def test_no_room_that_is_left_out_is_imported_by_what_makes_rules_and_plans() -> None:
    seen: set[tuple[str, ...]] = set()
    waiting = [("codegen", "rules", "planned"), ("rules",), ("rules", "cache")]
    while waiting:
        module = waiting.pop()
        if module not in seen:
            seen.add(module)
            waiting += imported(module)
    assert len(seen) > 100
    left_out = {room for room in OTHERS for module in seen if module[: room.count("/") + 1] == tuple(room.split("/"))}
    assert not left_out
    assert all((PACKAGE / room).exists() for room in OTHERS), "rooms that have moved"


def test_after_a_change_a_process_that_lives_keeps_nothing(tmp_path: Path) -> None:
    """What it would make is that of the sources before: nobody may find it under those of now."""
    shutil.copytree(PACKAGE, tmp_path / "dynagrad", ignore=shutil.ignore_patterns("__pycache__"))
    code = (
        "from pathlib import Path; import sys, dynagrad; from dynagrad.runtime.disk import sources; import time\n"
        "changed = Path(sources.__file__).parents[2] / 'plan' / 'order.py'\n"
        "if sys.argv[1] == 'changed': changed.write_text(changed.read_text() + '# changed')\n"
        "print(sources.sources())\n"
    )

    def said(*arguments: str) -> str:
        command = [sys.executable, "-c", code, *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.strip()

    time.sleep(2.1)  # newer files are taken for changed
    before = said("same")
    assert len(before) == 40 and said("same") == before
    assert said("changed") == "None"
    time.sleep(2.1)
    assert len(said("same")) == 40 and said("same") != before
