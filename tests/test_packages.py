"""What is missing from an installation is said in one way, wherever it is needed; and in no other."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad import packages, training
from dynagrad.facts.readers import read
from dynagrad.facts.table import make_table
from dynagrad.training.methods import torch_optimisers
from dynagrad.training.storage import tables

PACKAGE = Path(packages.__file__).parent
ROOT = PACKAGE.parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def hide(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes a package one that is not installed."""
    for name in [package, *(name for name in sys.modules if name.startswith(f"{package}."))]:
        monkeypatch.setitem(sys.modules, name, None)
    dg.special._scipy.cache_clear()


class Stream:
    """What exports an Arrow stream."""

    def __arrow_c_stream__(self, schema: Any = None) -> Any:
        raise AssertionError("nothing is read without pyarrow")


def chart() -> dg.Chart:
    return dg.Program("goal += a(X) * b(X).").run({"a/1": [("x", 2.0)], "b/1": [("x", 3.0)]})


def model() -> dg.Model:
    return dg.Model(":- semiring log. :- distribution p(X). goal += p(X)*o(X).", {"p/1": [("a",), ("b",)]})


DATA = [{"o/1": [(x,)]} for x in "aab"]


def fitted(**options: Any) -> Any:
    return model().fit(DATA, iterations=1, **options)


CALLS: list[tuple[str, str, Callable[[Path], object]]] = [
    ("pyarrow", "a .parquet file", lambda at: dg.read_file(at / "x.parquet", "a/1")),
    ("pyarrow", "a .arrow file", lambda at: dg.read_file(at / "x.arrow", "a/1")),
    ("pyarrow", "a .feather file", lambda at: dg.read_file(at / "x.feather", "a/1")),
    ("pyarrow", "an Arrow table", lambda at: dg.Program("goal += a(_).").run({"a/1": Stream()})),
    ("pyarrow", "an Arrow table", lambda at: make_table(read("a/1", [("x", 1.0)])).to_arrow()),
    ("pandas", "a data frame", lambda at: make_table(read("a/1", [("x", 1.0)])).to_pandas()),
    ("pyarrow", "forest.to_arrow()", lambda at: chart().forest("goal").to_arrow()),
    ("nltk", "derivation.nltk()", lambda at: chart().best("goal").nltk()),
    ("scipy", "dg.special.erf", lambda at: dg.special.erf(0.5)),
    ("torch", "training.Torch", lambda at: training.Torch({"p/1": [("a",)]}, None)),
    ("torch", "method='torch.optim.Adam'", lambda at: fitted(method="torch.optim.Adam")),
    ("torch", "a torch optimiser", lambda at: torch_optimisers._TorchSteps(None, np.zeros(1), {}, type, {})),  # type: ignore[arg-type]
    ("scipy", "method='trust-constr'", lambda at: fitted(method="trust-constr")),
    ("tomli_w", "model.save()", lambda at: model().save(at / "model")),
    ("pyarrow", "a folder with a model", lambda at: tables.arrow()),
    ("matplotlib", "fit.plot()", lambda at: fitted().plot()),
    ("pyarrow", "a history as an Arrow table", lambda at: fitted().to_arrow()),
    ("pyarrow", "a log as Arrow", lambda at: fitted(log=at / "log.arrow")),
]


@pytest.mark.parametrize(("package", "what", "call"), CALLS, ids=[what for _, what, _ in CALLS])
def test_what_is_missing_is_said_in_one_way(
    package: str, what: str, call: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide(package, monkeypatch)
    for suffix in ("parquet", "arrow", "feather"):
        (tmp_path / f"x.{suffix}").write_bytes(b"some")
    name = package.replace("_", "-")
    with pytest.raises(dg.Error) as caught:
        call(tmp_path)
    assert str(caught.value) == f"{what} needs {package}, which is not installed: pip install {name}"


def calls_of_optional() -> list[str]:
    """The second argument of each call, as it is written."""
    return [
        ast.literal_eval(node.args[1]) if isinstance(node.args[1], ast.Constant) else ast.unparse(node.args[1])
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "optional"
    ]


def test_every_place_that_needs_a_package_is_among_them() -> None:
    said = {what for _, what, _ in CALLS}
    for text in calls_of_optional():
        if text.startswith("f'") or text.startswith('f"'):
            pattern = re.sub(r"\\\{.*?\\\}", ".*", re.escape(ast.literal_eval(text[1:])))
            assert any(re.fullmatch(pattern, what) for what in said), text
        else:
            assert text in said


def texts(tree: ast.AST) -> list[str]:
    """The texts of a file that are no docstrings."""
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in docstrings)
    return [node.value for node in constants if isinstance(node.value, str)]


def test_no_other_file_says_how_to_install_a_package() -> None:
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if path.name != "packages.py":
            assert not [t for t in texts(tree) if re.search(r"pip install|not installed|dynagrad\[", t)], path


def test_packages_that_are_needed_are_named_by_an_extra() -> None:
    names = {re.split(r"[\[<>=; ]", line)[0] for lines in PROJECT["optional-dependencies"].values() for line in lines}
    assert {package.replace("_", "-") for package, *_ in CALLS} <= names


def test_a_package_that_is_there_and_broken_is_not_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_package.py").write_text("import no_such_library")
    (tmp_path / "half_package.py").write_text("from math import no_such_name")
    monkeypatch.syspath_prepend(tmp_path)
    for name, reason in (("broken_package", "no_such_library"), ("half_package", "no_such_name")):
        with pytest.raises(dg.Error, match=rf"^this needs {name}, which cannot be imported: .*{reason}"):
            packages.optional(name, "this")
