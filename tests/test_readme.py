"""README.md says what is so: its Python prints what the comments say, its programs check, its commands work."""

from __future__ import annotations

import contextlib
import io
import math
import re
import shlex
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import dynagrad as dg
from dynagrad import cli
from dynagrad.rules import check, parse

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """The code blocks in a language, in the order of the text."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in that has the examples, as a checkout does."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    assert set(re.findall(r"^```(\w*)$", README, re.MULTILINE)) == {"", "python", "dyna", "console", "sh"}
    assert all(re.match(r"(make (demo|test)|pip install)\b", line) for b in blocks("sh") for line in b.splitlines())


def promised(block: str) -> list[str]:
    """What the comments after `print` say that will be printed."""
    return [m[1] for line in block.splitlines() if (m := re.match(r"\s*print\(.*\)\s+# (.*)", line))]


def test_the_python_blocks_print_what_they_say(folder: Path) -> None:
    names: dict[str, object] = {}
    for number, block in enumerate(blocks("python")):
        printed = io.StringIO()
        file = folder / f"block{number}.py"  # where functions that are compiled are read
        file.write_text(block)
        with contextlib.redirect_stdout(printed):
            exec(compile(block, str(file), "exec"), names)
        assert block.count("print(") == len(promised(block))
        assert printed.getvalue().splitlines() == promised(block)


@pytest.mark.parametrize("text", blocks("dyna"))
def test_the_programs_check(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.ProgramWarning)
        check(parse(text), functions=None)


def commands() -> Iterator[tuple[str, str]]:
    """Each command with the output that it is said to have."""
    for block in blocks("console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield command, output


@pytest.mark.parametrize(("command", "output"), list(commands()))
def test_the_commands_print_what_they_say(command: str, output: str, folder: Path) -> None:
    program, *arguments = shlex.split(command)
    result = CliRunner().invoke(cli.app, arguments, catch_exceptions=False)
    assert program == "dynagrad"
    assert (result.exit_code, result.stdout) == (0, output)


EDGES = re.findall(r"^\| `(.+?)` \| `(.+?)` \| `(.+?)` \|", README.partition("### Edges")[2], re.MULTILINE)


def test_the_table_of_edges_was_found() -> None:
    assert len(EDGES) > 20


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


def test_every_declaration_of_the_table_parses() -> None:
    table = re.findall(r"^\| `(:- .*?)` \|", README, re.MULTILINE)
    assert len(table) == 13
    for declaration in table:
        parse(declaration.replace("\\|", "|"))


def test_every_example_is_listed() -> None:
    listed = set(re.findall(r"\(examples/(\w+)/\)", README))
    assert listed == {path.name for path in (ROOT / "examples").iterdir() if path.is_dir()}


def test_every_name_of_the_package_that_is_spoken_of_exists() -> None:
    for name in set(re.findall(r"\bdg\.([A-Za-z_]\w*)", README)):
        assert hasattr(dg, name), name


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target
