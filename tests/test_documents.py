"""README.md and the pages of docs/ say what is so: their Python prints what they say, their programs check, their
commands work, their names, files and links are there.

The blocks of a page are run in their order, in one namespace a page. Blocks of other systems, beside which a page sets
ours, are run where the other system is installed.

Costs a minute, half of it compiling.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import inspect
import io
import math
import re
import shlex
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import dynagrad as dg
import dynagrad.math
import dynagrad.numpy
from dynagrad import cli, training
from dynagrad.languages import dvl, pullback
from dynagrad.rules import check, parse
from dynagrad.training.methods import METHODS, TOLD, stochastic

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
}
OURS = "Dynagrad"
PYTHON_PEERS = {"JAX": "jax", "autograd": "autograd", "torch-struct": "torch_struct"}
PEERS = {*PYTHON_PEERS, "ProbLog", "PRISM", "Soufflé", "Dyna"}


@dataclass(frozen=True)
class Block:
    """A code block: the page and line, what it is written in, whose it is, and its text."""

    page: str
    line: int
    language: str
    owner: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_of(page: str, text: str) -> Iterator[Block]:
    for found in re.finditer(r"^```(.*)\n((?:.*\n)*?)^```$", text, re.MULTILINE):
        head, body = found[1], found[2]
        directive = re.fullmatch(r"\{code-block\} (\w+)", head)
        caption = re.match(r":caption: (.*)\n\n?", body) if directive else None
        yield Block(
            page,
            text.count("\n", 0, found.start()) + 1,
            directive[1] if directive else head,
            caption[1] if caption else "" if directive else OURS,
            body[caption.end() :] if caption else body,
        )


BLOCKS = [block for page, text in PAGES.items() for block in blocks_of(page, text)]


def ours(language: str) -> list[Block]:
    return [block for block in BLOCKS if block.language == language and block.owner == OURS]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in that has the documents, as a checkout does."""
    (tmp_path / "docs").symlink_to(DOCS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    """C++ is run by `codegen/rules/header/test_cpp.py`, `text` is what the block before it prints; settings in TOML are
    like those of `test_cli_training.py`."""
    for block in BLOCKS:
        if block.language.startswith("{"):  # a directive of Sphinx, such as a list of pages
            continue
        if block.owner == OURS:
            assert block.language in {"", "python", "dyna", "dvl", "console", "sh", "text", "cpp", "toml"}, str(block)
            assert block.language != "cpp" or block.page == "docs/tools/cpp.md", str(block)
        else:
            assert block.owner in PEERS, f"{block}: whose is it?"
    assert not [page for page, text in PAGES.items() if re.search(r"^[ \t>]+```", text, re.MULTILINE)]


def test_commands_for_the_shell_are_those_that_everybody_runs() -> None:
    targets = "demo|test|versions|lint|format|bench|docs|links|recipes|fuzz"
    known = rf"(make ({targets})\b|pip install|\.ci/run|\.venv/bin/python -m pytest)"
    for block in ours("sh"):
        assert all(re.match(known, line) for line in block.text.splitlines()), str(block)


def test_the_readme_says_how_large_an_installation_is() -> None:
    """Within a third, as releases of the compiler and file systems differ."""
    said = re.search(r"about (\d+) MB: (\d+) MB of them are `ziglang`", PAGES["README.md"])
    assert said is not None and int(said[1]) > int(said[2]) and f"({said[1]} MB" in PAGES["docs/index.md"]
    spec = importlib.util.find_spec("ziglang")
    if spec is None or spec.origin is None:
        pytest.skip("ziglang is not installed")
    files = (path.lstat() for path in Path(spec.origin).parent.rglob("*"))
    assert sum(file.st_blocks for file in files) * 512 / 1e6 == pytest.approx(int(said[2]), rel=1 / 3)


def test_the_first_page_has_a_program_its_picture_and_how_to_install_it_before_anything_else() -> None:
    page = PAGES["docs/index.md"].partition("```{toctree}")[0]
    assert page.index("```python") < page.index("```{figure}") < page.index("pip install .") and len(page) < 3_000


def test_the_site_shows_types_and_wraps_long_lines_of_code() -> None:
    assert '\nautodoc_typehints = "signature"\n' in (DOCS / "conf.py").read_text(encoding="utf-8")
    assert re.search(r"pre[^{]*\{ white-space: pre-wrap;", (DOCS / "static" / "site.css").read_text(encoding="utf-8"))


def test_other_tools_are_named_where_facts_are() -> None:
    """Whoever looks for one of these finds the page."""
    assert all(name in PAGES["docs/rules/facts.md"] for name in ("duckdb", "pandas", "polars", "pyarrow", "numpy"))


# -- Python ------------------------------------------------------------------------------------------------------------


def promised(block: Block, after: str) -> list[str]:
    """What the comments after `print` say that will be printed, or else the block of text that follows."""
    comments = [m[1] for line in block.text.splitlines() if (m := re.match(r"\s*print\(.*\)\s+# (.*)", line))]
    if after:
        assert not comments, f"{block}: what is printed stands below it, or in its comments"
        return after.splitlines()
    assert block.text.count("print(") == len(comments), f"{block}: each print has a comment with what it prints"
    return comments


def run_in_order(blocks: list[Block], folder: Path) -> None:
    """All Python blocks of a page, in one namespace."""
    names: dict[str, object] = {}
    following = dict(zip(blocks, [*blocks[1:], None], strict=True))
    for number, block in enumerate(blocks):
        if block.language != "python":
            continue
        after = following[block]
        printed = io.StringIO()
        file = folder / f"block{number}.py"  # where functions that are compiled are read
        file.write_text(block.text)
        with contextlib.redirect_stdout(printed):
            exec(compile(block.text, str(file), "exec"), names)
        expected = promised(block, after.text if after is not None and after.language == "text" else "")
        assert printed.getvalue().splitlines() == expected, str(block)


@pytest.mark.parametrize("page", sorted({block.page for block in ours("python")}))
def test_the_python_blocks_print_what_they_say(page: str, folder: Path) -> None:
    run_in_order([block for block in BLOCKS if block.page == page and block.owner == OURS], folder)


@pytest.mark.parametrize("peer", PYTHON_PEERS)
@pytest.mark.filterwarnings("ignore")  # theirs
def test_the_python_of_others_prints_what_it_says(peer: str, folder: Path) -> None:
    if importlib.util.find_spec(PYTHON_PEERS[peer]) is None:
        pytest.skip(f"{peer} is not installed")
    theirs = [block for block in BLOCKS if block.owner == peer]
    assert theirs
    for page in {block.page for block in theirs}:
        run_in_order([block for block in theirs if block.page == page], folder)


def test_the_programs_of_problog_have_the_values_that_they_say() -> None:
    problog = pytest.importorskip("problog")
    from problog.program import PrologString

    theirs = [block for block in BLOCKS if block.owner == "ProbLog"]
    assert theirs
    for block in theirs:
        expected = {m[1]: float(m[2]) for m in re.finditer(r"^% (\S+): (\S+)$", block.text, re.MULTILINE)}
        assert expected, str(block)
        found = problog.get_evaluatable().create_from(PrologString(block.text)).evaluate()
        assert {str(term): pytest.approx(value) for term, value in found.items()} == expected, str(block)


# -- rules and commands ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", ours("dyna"), ids=str)
def test_the_programs_check(block: Block) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.ProgramWarning)
        check(parse(block.text), functions=None)


@pytest.mark.parametrize("block", ours("dvl"), ids=str)
def test_the_programs_in_dvl_have_the_values_that_they_say(block: Block) -> None:
    program = dvl.DVLProgram(block.text)
    for result in (*program.run(), *program.compiled_results()):
        assert result.expected is not None and result.holds, f"{block}: {result}"


def commands() -> Iterator[tuple[str, str]]:
    """Each command with the output that it is said to have."""
    for block in ours("console"):
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield command, output


@pytest.mark.parametrize(("command", "output"), list(commands()))
def test_the_commands_print_what_they_say(command: str, output: str, folder: Path) -> None:
    program, *arguments = shlex.split(command)
    result = CliRunner().invoke(cli.app, arguments, catch_exceptions=False)
    assert program == "dynagrad"
    assert (result.exit_code, result.stdout) == (0, output)


def test_every_declaration_of_the_table_parses() -> None:
    table = re.findall(r"^\| `(:- .*?)` \|", PAGES["docs/rules/declarations.md"], re.MULTILINE)
    assert len(table) == 14
    for declaration in table:
        parse(declaration.replace("\\|", "|"))


@pytest.mark.parametrize("method", METHODS)
def test_every_method_of_training_is_there_with_its_options(method: str) -> None:
    page = PAGES["docs/rules/training.md"]
    named = [name for name in inspect.signature(METHODS[method]).parameters if name not in TOLD]
    own = [*named[:-1], *stochastic.RULES[method].options] if method in stochastic.RULES else named
    assert f'`"{method}"`' in page
    assert not [name for name in own if not re.search(rf"`{name}\b", page)]


def test_every_name_of_training_is_spoken_of_where_it_is_explained() -> None:
    page = PAGES["docs/rules/training.md"]
    assert not [name for name in training.__all__ if not re.search(rf"\b{name}\b", page)]


# -- the table of edges ------------------------------------------------------------------------------------------------


EDGES = re.findall(r"^\| `(.+?)` \| `(.+?)` \| `(.+?)` \|", PAGES["docs/functions/edges.md"], re.MULTILINE)


def test_the_table_of_edges_was_found() -> None:
    assert len(EDGES) > 40


@pytest.mark.parametrize(("text", "point", "derivative"), EDGES, ids=[text for text, *_ in EDGES])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy's, of values
def test_derivatives_at_the_edges_are_those_of_the_table(text: str, point: str, derivative: str) -> None:
    names = {"np": np, "dg": dg, "inf": math.inf, "nan": math.nan}
    gradient, at = dg.grad(eval(f"lambda x: {text}", names)), eval(point, names)
    if derivative == "dg.NotDifferentiable":
        with pytest.raises(dg.NotDifferentiable):
            gradient(at)
    else:
        np.testing.assert_allclose(gradient(at), eval(derivative, names), rtol=1e-12, atol=1e-12)


# -- what is spoken of -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES)
def test_every_name_of_the_package_that_is_spoken_of_exists(page: str) -> None:
    for name in set(re.findall(r"\bdg\.([A-Za-z_]\w*)", PAGES[page])):
        assert hasattr(dg, name), name


REFERENCE = {
    line
    for page, text in PAGES.items()
    if page.startswith("docs/reference/")
    for line in re.findall(r"^\.\. auto\w+:: (\S+)$", text, re.MULTILINE)
}


def test_every_public_name_is_in_the_reference() -> None:
    again = {"Model", "fit", "load_model"}  # `dg` has them too
    names = set(dg.__all__) - {"__version__", "special"} | {f"training.{n}" for n in set(training.__all__) - again}
    for name in [*names, *(f"special.{n}" for n in dg.special.__all__)]:
        assert f"dynagrad.{name}" in REFERENCE, name
    assert {"dynagrad.numpy", "dynagrad.numpy.linalg", "dynagrad.math"} <= REFERENCE
    for language in (dvl, pullback):
        assert {f"{language.__name__}.{name}" for name in language.__all__} <= REFERENCE
    chart = dg.Program("total += x(_).").run({"x/1": [("a", 1.0)]})
    gradient, tangents = chart.gradient("total"), chart.jvp({"x/1": [1.0]})
    batch = dg.Program("total += x(_).").bind({"x/1": [("a", 1.0)]}).run_batch([{}], query="total", gradient=["x/1"])
    for found in (gradient, tangents, batch.gradient):
        assert f"{type(found).__module__}.{type(found).__name__}" in REFERENCE


def test_every_public_name_has_a_docstring() -> None:
    for name in REFERENCE:
        found = functools.reduce(getattr, name.split(".")[1:], dg)
        assert inspect.getdoc(found), name
        if inspect.isclass(found) and not issubclass(found, BaseException):
            for member, value in vars(found).items():
                if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                    assert inspect.getdoc(getattr(found, member)), f"{name}.{member}"


def test_docstrings_become_restructured_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code in single backticks and signs that mean nothing, as the package writes them, mean the same to Sphinx."""
    monkeypatch.syspath_prepend(str(DOCS))
    docstrings = importlib.import_module("extensions.docstrings")
    text = ["`f(*xs)` times *k*, x_ and a|b.", "", "", "    >>> `a`", "    *"]
    assert docstrings.as_rest(text) == [r"``f(*xs)`` times \*k\*, x\_ and a\|b.", "", "", "    >>> `a`", "    *"]


def anchors(text: str) -> set[str]:
    """The names that headings have in links, as GitHub and MyST make them."""
    plain = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", plain, re.MULTILINE)
    named = re.findall(r"^\((.*)\)=$", plain, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings} | set(named)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", PAGES[page]):
        if not re.match(r"https?://", target):
            file, _, anchor = target.partition("#")
            path = (ROOT / page).parent / file if file else ROOT / page
            assert path.exists(), target
            if anchor:
                assert anchor in anchors(path.read_text(encoding="utf-8")), target
