"""What drawings of derivations keep, as `:- show` declares it, in every form; and LaTeX, which a TeX reads where there
is one with the package `forest`.

Costs five seconds: three programs compile.
"""

from __future__ import annotations

import functools
import io
import json
import pickle
import shutil
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import dynagrad as dg

CKY = """
constit(X,I,K) += rewrite(X,W) * word(W,I,K).
constit(X,I,K) += rewrite(X,Y,Z) * constit(Y,I,J) * constit(Z,J,K).
goal += constit('S',0,N) * end(N).
"""
SHOW = ":- show constit(X,_,_) as X. :- show word(W,_,_) as W."
FACTS: dict[str, Any] = {
    "rewrite/3": [("S", "NP", "VP", 1.0), ("VP", "V", "NP", 0.75), ("VP", "VP", "PP", 0.25), ("NP", "NP", "PP", 0.5)]
    + [("PP", "P", "NP", 1.0)],
    "rewrite/2": [("NP", "I", 0.25), ("NP", "stars", 0.125), ("NP", "ears", 0.125), ("V", "saw", 1.0)]
    + [("P", "with", 1.0)],
    "word/3": [(w, i, i + 1) for i, w in enumerate(["I", "saw", "stars", "with", "ears"])],
    "end/1": [(5,)],
}
PARSE = ("S", ("NP", "I"), ("VP", ("V", "saw"), ("NP", ("NP", "stars"), ("PP", ("P", "with"), ("NP", "ears")))))


@functools.cache
def parsed(show: str = SHOW) -> tuple[dg.Program, dg.Chart]:
    program = dg.Program(CKY + show, "real")
    return program, program.run(FACTS)


def best(show: str = SHOW) -> dg.Derivation:
    return parsed(show)[1].best("goal")


def test_a_parse_looks_as_in_a_textbook() -> None:
    derivation = best()
    assert derivation.tree() == PARSE
    assert derivation.brackets() == "(S (NP I) (VP (V saw) (NP (NP stars) (PP (P with) (NP ears)))))"
    assert derivation.text().splitlines()[:5] == ["S", "├── NP", "│   └── I", "└── VP", "    ├── V"]
    assert derivation.latex().startswith(r"\begin{forest} [{S} [{NP} [{I}]] [{VP} [{V} [{saw}]] [{NP}")
    assert 'n0 [label="S"];' in derivation.graphviz() and derivation.graphviz().count(" -> ") == 13
    texts = [e.text for e in ElementTree.fromstring(derivation.svg()).iter() if e.tag.endswith("text")]
    assert texts == ["S", "NP", "I", "VP", "V", "saw", "NP", "NP", "stars", "PP", "P", "with", "NP", "ears"]


def test_in_a_terminal_and_as_a_tree_of_nltk() -> None:
    from rich.console import Console

    console = Console(width=60, record=True, file=io.StringIO())
    console.print(best())
    assert console.export_text().rstrip() == best().text()
    nltk = pytest.importorskip("nltk")
    assert best().nltk() == nltk.Tree.fromstring(best().brackets())
    assert best().nltk().leaves() == ["I", "saw", "stars", "with", "ears"]


def test_everything_is_drawn_where_it_is_asked_for_or_nothing_is_declared() -> None:
    plain, shown = best(""), best()
    for form in ("tree", "brackets", "text", "latex", "graphviz", "svg", "nltk"):
        assert getattr(shown, form)(everything=True) == getattr(plain, form)() == getattr(plain, form)(everything=True)
        assert getattr(shown, form)() != getattr(plain, form)()
    with pytest.raises(dg.Error, match="everything must be"):
        shown.text(everything=1)  # type: ignore[arg-type]


def test_declarations_are_about_drawings_alone() -> None:
    program, chart = parsed()
    derivation, plain = best(), best("")
    assert derivation == plain and hash(derivation) == hash(plain) and derivation.weight == plain.weight
    assert derivation.items() == plain.items() and derivation.facts() == plain.facts() and len(derivation) == 10
    derivation.check(program, FACTS)
    assert [d.tree(everything=True) for d in chart.kbest("goal")] == [d.tree() for d in parsed("")[1].kbest("goal")]
    assert str(chart.why("constit('NP',2,5)")).startswith("constit('NP',2,5) = ")


def test_they_go_with_a_derivation() -> None:
    _, chart = parsed()
    forest = chart.forest("goal")
    again = dg.read_forest(forest.to_json())
    for derivation in (
        pickle.loads(pickle.dumps(best())),
        best().detached(),
        again.best(),
        pickle.loads(pickle.dumps(forest)).best(),
        forest.decode(),
    ):
        assert derivation.tree() == PARSE
    assert {d.brackets() for d in again.sample(50)} == {d.brackets() for d in again.kbest()}
    steps = json.loads(best().to_json())["steps"]
    assert steps[0]["shown"] is False and "label" not in steps[0] and steps[1]["label"] == "S"


def test_detached_has_its_old_name_too() -> None:
    with pytest.warns(DeprecationWarning, match=r"Derivation.apart\(\) is detached\(\) now") as found:
        assert best().apart() == best()
    assert found[0].filename == __file__


def test_what_is_shown_below_what_is_not_moves_up() -> None:
    assert best(":- show constit('NP',I,K) as np(I,K). :- show word(W,_,_).").tree() == (
        "goal",  # it stays, because several would stand at the top
        ("np(0,1)", "word('I',0,1)"),
        "word(saw,1,2)",
        ("np(2,5)", ("np(2,3)", "word(stars,2,3)"), "word(with,3,4)", ("np(4,5)", "word(ears,4,5)")),
    )
    assert best(":- show constit('VP',_,_) as 'VP'.").tree() == "VP"
    assert best(":- show constit('X',_,_).").tree() == "goal" == best(":- show constit('X',_,_).").text()


def test_the_first_pattern_that_fits_counts_and_a_label_is_any_term() -> None:
    show = ":- show constit('S',_,K) as ['S'|K]. :- show constit(X,I,K) as X/(K-I). :- show rewrite(X,X,_) as X+1."
    assert best(show).tree() == (
        "['S'|5]",
        "'NP'/1",
        (
            "'VP'/4",
            "'V'/1",
            ("'NP'/3", "'NP'+1", "'NP'/1", ("'PP'/2", "'P'/1", "'NP'/1")),  # a sum that cannot be worked out
        ),
    )
    assert best(":- show rewrite(X,Y,_) as f(X,Y). :- show end(N) as ' '.").brackets() == (
        r"(goal 'f(\'S\',\'NP\')' 'f(\'VP\',\'V\')' 'f(\'NP\',\'NP\')' 'f(\'PP\',\'P\')' ' ')"
    )


def test_leaves_that_only_have_to_be_derived_and_transient_items() -> None:
    program = dg.Program(
        ":- transient pair/2. pair(X,Y) += a(X) * b(Y) * SIDE(need(X)). need(X) += a(X). goal += pair(X,Y) for X != Y."
        ":- show need(X) as need. :- show pair(X,Y) as X/Y. :- show goal.",
        "real",
    )
    derivation = program.run({"a/1": [("x", 2.0)], "b/1": [("y", 3.0)]}).best("goal")
    assert derivation.tree(conditions=True) == ("goal", ("x/y", "need"), "x != y")
    assert 'stroke-dasharray="3 2"' in derivation.svg() and "SIDE(need(x))" in derivation.svg()


def test_a_drawing_may_be_small_where_the_derivation_is_large() -> None:
    n = 8000
    program = dg.Program("at(J) += at(I) * step(I,J). at(0). :- show at(8000) as end. :- show at(0) as start.", "log")
    derivation = program.run({"step/2": [(i, i + 1, -0.5) for i in range(n)]}).best(f"at({n})")
    assert derivation.text() == "end\n└── start" and derivation.svg().count("<rect") == 2
    with pytest.raises(dg.Error, match="has 16,001 parts"):
        derivation.svg(everything=True)


# -- LaTeX

ODD = "x_1<>|^~\\#$%&{}[],=\"'"
"""Characters that LaTeX, or its package `forest`, reads otherwise."""


def test_what_latex_would_read_otherwise_is_escaped() -> None:
    chart = dg.Program("goal += a(X) * b(X). :- show a(X) as X. :- show goal.").run({"a/1": [(ODD,)], "b/1": [(ODD,)]})
    tree = chart.best("goal").latex()
    escaped = (
        r"x\_1\textless{}\textgreater{}\textbar{}\textasciicircum{}\textasciitilde{}\textbackslash{}\#\$\%\&\{\}[],="
        r"\char34{}\textquotesingle{}"
    )
    assert tree == rf"\begin{{forest}} [{{goal}} [{{{escaped}}}]] \end{{forest}}"


def _has_forest() -> bool:
    if shutil.which("pdflatex") is None or shutil.which("kpsewhich") is None:
        return False
    return bool(subprocess.run(["kpsewhich", "forest.sty", "elocalloc.sty"], capture_output=True).stdout.strip())


@pytest.mark.skipif(not _has_forest(), reason="no TeX with the package forest")
def test_latex_is_read_by_a_tex(tmp_path: Path) -> None:
    odd = dg.Program("goal += a(X) * b(X). :- show a(X) as X. :- show goal.").run({"a/1": [(ODD,)], "b/1": [(ODD,)]})
    trees = "\n\n".join([best().latex(), best().latex(everything=True), odd.best("goal").latex()])
    text = f"\\documentclass{{article}}\\usepackage{{forest}}\\begin{{document}}\n{trees}\n\\end{{document}}\n"
    (tmp_path / "trees.tex").write_text(text)
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "trees.tex"], cwd=tmp_path, capture_output=True
    )
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]
    assert (tmp_path / "trees.pdf").exists()
