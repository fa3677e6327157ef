"""The pictures in the documents are those of the programs beside them. `DYNAGRAD_DRAW=1` draws them again.

Costs ten seconds: nine programs compile.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import dynagrad as dg

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = [(DOCS / name).read_text(encoding="utf-8") for name in ("rules/gallery.md", "index.md")]
PICTURE = r"(?:!\[.*?\]\(\.\./|```\{figure\} )static/derivations/(\w+)\.svg"
BLOCK = re.compile(rf"```python\n(.*?)```\n(?:\n{PICTURE})?", re.DOTALL)
CASES = [(text, name) for page in PAGES for text, name in BLOCK.findall(page) if name]


@pytest.mark.filterwarnings("ignore::dynagrad.errors.ProgramWarning")  # of cycles
@pytest.mark.parametrize(("text", "name"), CASES, ids=[name for _, name in CASES])
def test_a_picture_is_that_of_its_program(text: str, name: str) -> None:
    namespace: dict[str, Any] = {"dg": dg}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(text, namespace)
    path = DOCS / "static" / "derivations" / f"{name}.svg"
    if os.environ.get("DYNAGRAD_DRAW"):
        path.write_text(namespace["svg"] + "\n", encoding="utf-8")
    drawn = path.read_text(encoding="utf-8").rstrip("\n")
    assert namespace["svg"] == drawn
    boxes = [e for e in ElementTree.fromstring(drawn).iter() if e.tag.endswith("rect")]
    places = [(float(b.get("x", 0)), float(b.get("y", 0)), float(b.get("width", 0))) for b in boxes]
    for n, (x, y, w) in enumerate(places):  # no two boxes overlap
        assert not any(y == v and x < u + s and u < x + w for u, v, s in places[n + 1 :]), name


def test_every_kind_of_program_has_a_picture() -> None:
    assert [name for _, name in CASES] == ["parse", "earley", "ccg", "edit", "hmm", "path", "rna", "network", "front"]
