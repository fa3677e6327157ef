"""Pickles from before modules moved can be loaded. `pickles_before.txt` has pickles of the version before that.

Costs a second: two small programs are compiled.
"""

from __future__ import annotations

import base64
import importlib
import io
import pickle
import sys
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.moved import MOVED, RENAMED

EDGES = {"edge/2": [("a", "b", 2.0), ("b", "c", 3.0)]}


def before() -> dict[str, bytes]:
    text = (Path(__file__).parent / "pickles_before.txt").read_text().replace("\n", "")
    found: dict[str, bytes] = pickle.loads(zlib.decompress(base64.b85decode(text)))
    return found


class Unpickler(pickle.Unpickler):
    """For arrays that numpy 2 has written: it names a module that is called `numpy.core` before."""

    def find_class(self, module: str, name: str) -> Any:
        if not hasattr(np, "_core"):
            module = module.replace("numpy._core", "numpy.core")
        return super().find_class(module, name)


def loads(data: bytes) -> Any:
    return Unpickler(io.BytesIO(data)).load()


def loaded(name: str) -> Any:
    with pytest.warns(DeprecationWarning, match=r"dynagrad\.\S+ is dynagrad\.\S+ now"):
        return loads(before()[name])


def test_programs_and_charts() -> None:
    assert loaded("program").run(EDGES)["path(c)"] == 5.0
    assert loaded("bound").run()["path(c)"] == 5.0
    chart = loaded("chart")
    chart.add("edge/2", [("c", "d", 1.0)])
    chart.run()
    assert chart["path(d)"] == 6.0


def test_views_of_charts() -> None:
    keys, items = loaded("views")
    assert list(keys) == ["goal", "a(x)"] and dict(items) == {"goal": 1.0, "a(x)": 1.0}


def test_tables_terms_and_derivatives() -> None:
    assert list(loaded("table").values) == [0.0, 2.0, 5.0]
    assert loaded("term") == dg.Term("f", ("a", 1.0))
    assert list(loaded("termtable").values) == [2.0]
    assert list(loaded("gradient")["a/1"].values) == [3.0, 0.0]
    assert loaded("tangents")["goal"] == 3.0


def test_functions_graphs_and_errors() -> None:
    assert loaded("function")([2.0, 0.0]) == 6.0
    assert str(loaded("node")) == "(exp(x) * cos(y)) + 1.0"
    for name, kind in (("syntax", dg.SyntaxError), ("fact", dg.FactError)):
        assert type(loads(before()[name])) is kind


def test_every_name_of_before_leads_somewhere() -> None:
    for old, new in MOVED.items():
        module = importlib.import_module(f"dynagrad.{new}")
        name = next(name for name in vars(module) if not name.startswith("_"))
        with pytest.warns(DeprecationWarning, match=f"dynagrad.{old} is dynagrad.{new} now"):
            assert getattr(sys.modules[f"dynagrad.{old}"], name) is getattr(module, name)


def test_every_class_with_another_name_is_there() -> None:
    for module, names in RENAMED.items():
        for new in names.values():
            assert isinstance(getattr(importlib.import_module(f"dynagrad.{module}"), new), type)


def test_functions_of_the_package_stay_what_they_are() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert callable(dg.graph) and callable(dg.gradient)
        with pytest.raises(AttributeError):
            _ = sys.modules["dynagrad.graph"].__file__


def test_names_of_languages_before_lead_to_the_classes_of_now() -> None:
    from dynagrad.languages import dvl, pullback

    for module, old, new in [(dvl, "Program", dvl.DVLProgram), (pullback, "Term", pullback.PullbackTerm)]:
        with pytest.warns(DeprecationWarning, match=rf"{old} is dynagrad\.{module.__name__[9:]}\.{new.__name__} now"):
            assert getattr(module, old) is new
