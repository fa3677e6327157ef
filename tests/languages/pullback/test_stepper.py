"""The stepper: text, the page, the notebook view and the command. The page is loaded in a browser too, if there is one.

Costs ten seconds.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dynagrad import cli
from dynagrad.languages.pullback import StepView, html, lines, reduce, stepper
from dynagrad.languages.pullback.stepper import walk

EXAMPLE = "((Ω λ<x, y>. square((x + 1) * (2 * x + y * y))) . (λ_. 1^)) <1, 3>"
PREMISES = "((Ω λx. let f = λy. y * y in f (x + 1)) . (λ_. 1^)) 2"
VOID = {"meta", "link", "br", "img", "input"}


class Page(HTMLParser):
    """The elements of a page; each that opens has to close."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_a_page_has_the_term_its_type_the_steps_and_the_result() -> None:
    reduction = reduce(EXAMPLE)
    page = Page(html(reduction, title="example"))
    text = " ".join(page.texts)
    assert "(R × R)^" in text and "(660, 528)^" in text
    steps = [value for name, value in page.attributes if (name, value) == ("class", "step")]
    assert len(steps) == reduction.count()
    for step in reduction:
        assert step.name in text
    assert page.texts.count("Forward phase") == page.texts.count("Reverse phase") == 1


def test_a_redex_and_what_it_becomes_are_marked_in_the_whole_term() -> None:
    """In the order of the page: a redex, those of its premises, and what it becomes."""
    term = "((Ω λx. let f = λy. y * x in f (x + 1)) . (λ_. 1^)) 2"
    line = r'<code class="whole">(→ )?([^<]*)<span class="(?:old|new)">([^<]*)</span>([^<]*)</code>'
    found = [tuple(map(unescape, parts)) for parts in re.findall(line, html(reduce(term)))]
    steps = [(step, begins) for step, _, begins in walk(reduce(term))]
    assert len(found) == len(steps) > 40
    inside = 0
    for (arrow, before, part, after), (step, begins) in zip(found, steps, strict=True):
        assert bool(arrow) != begins
        whole, marked = (step.before, step.redex) if begins else (step.after, step.contractum)
        text = before + part + after
        assert "…" in text or text in (str(whole), str(marked))  # a part that is written in pieces stands by itself
        assert part.strip("()") == str(marked).strip("()")
        inside += bool(before or after)
    assert inside > 20


def test_a_page_writes_only_so_much_of_whole_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    """After that each redex stands by itself."""
    full = html(reduce(EXAMPLE))
    monkeypatch.setattr(stepper, "_WRITTEN_AS_A_WHOLE", 2_000)
    short = html(reduce(EXAMPLE))
    assert short.count('class="step"') == full.count('class="step"') and len(short) < 0.8 * len(full)


def test_links_go_to_the_phases_and_the_result() -> None:
    page = Page(html(reduce(EXAMPLE)))
    ids = {value for name, value in page.attributes if name == "id"}
    links = [value for name, value in page.attributes if name == "href"]
    assert links == ["#forward", "#reverse", "#result"]
    assert {link[1:] for link in links if link} <= ids


def test_premises_fold() -> None:
    page = html(reduce(PREMISES))
    folded = re.findall(r"<details><summary>(\d+) premises?</summary>", page)
    assert folded and sum(map(int, folded)) == reduce(PREMISES).count() - len(list(reduce(PREMISES)))


def test_a_page_needs_no_network() -> None:
    page = html(reduce(EXAMPLE))
    assert "http" not in page and "url(" not in page and "@import" not in page
    assert not {"script", "link", "img", "iframe"} & set(Page(page).tags)


def test_what_is_in_terms_and_titles_is_text() -> None:
    page = html(reduce(EXAMPLE), title="<script>alert(1)</script>&")
    assert "<script" not in page
    assert "<script>alert(1)</script>&" in Page(page).texts
    assert "&lt;x, y&gt;" in page


def test_a_page_of_a_long_reduction_has_its_first_steps() -> None:
    page = html(reduce(EXAMPLE), max_steps=5)
    assert page.count('class="step"') == 5 and "The first 5 steps are shown." in page


def test_a_notebook_shows_the_page_in_a_frame() -> None:
    view = StepView(lambda: reduce(EXAMPLE))
    shown = view._repr_html_()
    frame = Page(shown)
    assert frame.tags == ["iframe"]
    inside = dict(frame.attributes)["srcdoc"]
    assert inside is not None and Page(inside).tags.count("h2") == 2
    assert repr(view) == "\n".join(lines(reduce(EXAMPLE)))
    assert repr(StepView(lambda: reduce(EXAMPLE), max_steps=2)).endswith("\n...")


def test_text_has_a_step_in_two_lines_under_its_rule() -> None:
    text = list(lines(reduce("(λx. x + 1) 2"), unicode=False))
    assert text == [
        "let x = 2 in x + 1 : R",
        "     1    application of an abstraction",
        "          let x = 2 in x + 1",
        "          -> 2 + 1",
        "   sum    sums",
        "          2 + 1",
        "          -> 3",
        "= 3",
    ]


def test_an_abbreviation_is_the_start_of_the_term() -> None:
    lets = "".join(f"let y{i + 1} = sin(y{i}) in " for i in range(400)) + "y400"
    reduction = reduce(f"((Ω λy0. {lets}) . (λ_. 1^)) 1")
    for step, _ in zip(reduction, range(3), strict=False):
        whole, short = str(step.redex), str(step.read_redex(50))
        start = short.partition("…")[0]
        assert "…" in short and len(short) < 0.5 * len(whole) and whole.startswith(start)
    assert str(reduce(f"((Ω λy0. {lets}) . (λ_. 1^)) 1").result) == str(reduction.result)


CHROMIUM = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None)


@pytest.mark.skipif(CHROMIUM is None, reason="there is no browser")
def test_a_browser_shows_the_page(tmp_path: Path) -> None:
    """It is loaded without a network; the folded premises, the colours and the sticky links are laid out."""
    (tmp_path / "page.html").write_text(html(reduce(PREMISES), title="Premises"), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND"]
    options += [f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", (tmp_path / "page.html").as_uri()]
    done = subprocess.run([str(CHROMIUM), *options], capture_output=True, text=True, timeout=120)
    if done.returncode:
        pytest.skip(f"the browser does not start here: {done.stderr[-200:]}")
    page = Page(done.stdout)
    assert "Premises" in page.texts
    assert page.tags.count("details") == html(reduce(PREMISES)).count("<details>")
    assert any("6^" in text for text in page.texts)


# -- the command -------------------------------------------------------------------------------------------------------


@pytest.fixture
def call(tmp_path: Path):
    def run(text: str, *options: str) -> tuple[int, str, str]:
        (tmp_path / "term.pullback").write_text(text, encoding="utf-8")
        result = CliRunner().invoke(cli.app, ["pullback", str(tmp_path / "term.pullback"), *options])
        return result.exit_code, result.stdout, result.stderr.replace(str(tmp_path), "")

    return run


def test_the_command_prints_a_term_its_type_and_its_value(call) -> None:
    assert call(EXAMPLE) == (0, f"{EXAMPLE} : (R × R)^\n= (660, 528)^\n", "")


def test_the_command_prints_steps(call) -> None:
    assert call(EXAMPLE, "--steps") == (0, "\n".join(lines(reduce(EXAMPLE))) + "\n", "")


@pytest.mark.parametrize("options", [["--html"], ["--steps", "--html"]])
def test_the_command_prints_a_page(call, options: list[str]) -> None:
    status, page, _ = call(EXAMPLE, *options)
    assert status == 0 and page.count('class="step"') == reduce(EXAMPLE).count()
    assert Page(page).texts


def test_the_command_compiles(call) -> None:
    assert call(EXAMPLE, "--compile")[:2] == (0, "(660.0, 528.0)\n")


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("1 +", [], "The text ends where a term should stand.\n  at /term.pullback, line 1, column 4"),
        ("(λx. 5)^ . 1^", [], "does not depend on it.\n  at /term.pullback, line 1, column 6"),
        ("let a = 2 in\n a / 0.0", [], "has no value there\n  at /term.pullback, line 2, column 2"),
        (EXAMPLE, ["--max-steps", "3"], "more than 3 steps; allow more with max_steps="),
        (EXAMPLE, ["--compile", "--max-steps", "3"], "more than 3 steps; allow more with max_steps="),
        (EXAMPLE, ["--compile", "--steps"], "--compile shows no steps"),
        ("λx. x * x", ["--compile"], "the term is a function"),
        ("x + 1", ["--compile"], "`x` is free in the term"),
    ],
)
def test_what_the_command_says_of_mistakes(call, text: str, options: list[str], said: str) -> None:
    status, _, error = call(text, *options)
    assert status == 1 and error.startswith("error: ") and said in error


def test_the_help_of_the_command_says_what_its_options_do(call) -> None:
    text = CliRunner().invoke(cli.app, ["pullback", "--help"]).stdout
    for option in ("FILE", "--steps", "--html", "--compile", "--max-steps"):
        assert option in text


def test_the_text_says_which_rule_it_was_once_the_premise_is_known() -> None:
    """Where the function is constant along its argument, 19b turns out to be 19c; the page has the rule in the end."""
    reduction = reduce("((Ω λx. let f = λy. 7 * x in f x) . (λ_. 1^)) 2")
    text = list(lines(reduction))
    rules = [line.split()[0] for line in text if line.strip()[:3] in ("19b", "19c")]
    assert rules == ["19b", "19c"]
    assert "19c" in html(reduction)
