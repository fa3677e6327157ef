"""The command line: what each command prints, where errors go, and the exit status. Costs 20 seconds."""

from __future__ import annotations

import json
import math
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import dynagrad as dg
import examples
from dynagrad import cli
from dynagrad.cli import demo

PATHS = """
:- semiring tropical.
path(V) += start(V).
path(V) += path(U) * edge(U,V).
goal += path(end).
"""


@pytest.fixture(scope="module")
def cky(tmp_path_factory):
    """A folder with a parser, its grammar and a sentence."""
    folder = tmp_path_factory.mktemp("cky")
    examples.write("cky", folder)
    return folder


@pytest.fixture
def call():
    runner = CliRunner()
    return lambda *arguments: runner.invoke(cli.app, list(map(str, arguments)), catch_exceptions=False)


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    """A program with facts in two files."""
    (tmp_path / "paths.dyna").write_text(PATHS)
    (tmp_path / "start.1.tsv").write_text("a\t0\n")
    (tmp_path / "edges.csv").write_text("a,b,1.5\nb,end,2\na,end,5\n")
    return [str(tmp_path / "paths.dyna"), "-f", str(tmp_path / "start.1.tsv"), "-f", f"edge/2={tmp_path / 'edges.csv'}"]


# -- run


def test_run_prints_the_value_of_a_ground_item(call, paths):
    result = call("run", *paths, "--query", "goal")
    assert (result.exit_code, result.stdout) == (0, "3.5\n")


def test_run_prints_a_table_for_a_pattern(call, paths):
    result = call("run", *paths, "--query", "path(X)")
    assert result.stdout == "path(X): 3 items\n  a    0.0\n  b    1.5\n  end  3.5\n"


def test_the_time_of_compiling_does_not_count_towards_the_timeout(call, paths, monkeypatch):
    from dynagrad.charts.binding import binding

    compile_plan = binding.compile_plan
    monkeypatch.setattr(binding, "compile_plan", lambda *given: (time.sleep(3.0), compile_plan(*given))[1])
    result = call("run", *paths, "--query", "goal", "--timeout", "2.5")
    assert (result.exit_code, result.stdout) == (0, "3.5\n")


def test_a_gradient_is_within_the_timeout_too(call, paths, monkeypatch):
    from dynagrad.charts import chart

    gradient = chart.queries.gradient
    late = SimpleNamespace(**vars(chart.queries))
    late.gradient = lambda *given: (time.sleep(2.5), gradient(*given))[1]
    monkeypatch.setattr(chart, "queries", late)
    assert call("run", *paths, "--grad", "goal", "--timeout", "20").exit_code == 0
    result = call("run", *paths, "--grad", "goal", "--timeout", "2")
    assert result.exit_code == 1 and "the limit on time was met" in result.stderr and not result.stdout


@pytest.mark.parametrize("what", ["items", "bytes"])
def test_limits_on_items_and_bytes_are_errors_that_name_them(call, paths, what):
    assert call("run", *paths, "-q", "goal", f"--max-{what}", 10**9).stdout == "3.5\n"
    result = call("run", *paths, "-q", "goal", f"--max-{what}", 1)
    assert result.exit_code == 1 and not result.stdout
    assert f"Raise max_{what}" in result.stderr or "a larger max_bytes" in result.stderr
    assert f"--max-{what}" in call("run", "--help").stdout
    assert call("run", *paths, f"--max-{what}", -1).exit_code == 2


def test_several_queries_are_told_apart(call, paths):
    result = call("run", *paths, "-q", "goal", "-q", "path(b)")
    assert result.stdout == "goal = 3.5\npath(b) = 1.5\n"


def test_without_a_query_what_no_rule_reads_is_printed(call, paths):
    assert call("run", *paths).stdout == "3.5\n"


def test_tsv_has_a_row_per_item(call, paths):
    result = call("run", *paths, "-q", "path(X)", "-q", "path(b)", "--format", "tsv")
    assert result.stdout == "a\t0.0\nb\t1.5\nend\t3.5\nb\t1.5\n"


def test_json_keeps_types(call, paths):
    result = call("run", *paths, "-q", "path(X)", "-q", "path(nowhere)", "--format", "json")
    rows, nothing = json.loads(result.stdout)
    assert rows["rows"][1] == {"arguments": ["b"], "value": 1.5}
    assert nothing == {"query": "path(nowhere)", "value": "inf"}


def test_long_tables_are_cut_in_text_only(call, paths):
    assert "... and 2 more; --limit 0 shows all" in call("run", *paths, "-q", "path(X)", "--limit", 1).stdout
    assert len(call("run", *paths, "-q", "path(X)", "--limit", 0).stdout.splitlines()) == 4


def test_a_folder_stands_for_the_files_in_it(call, cky):
    result = call("run", cky / "cky.dyna", "--facts", cky, "-q", "goal", "--values", "probabilities")
    expected = dict(examples.expected("cky"))
    assert float(result.stdout) == pytest.approx(expected["goal"], rel=1e-12)


def test_files_of_one_predicate_add_up(call, paths, tmp_path):
    (tmp_path / "more.tsv").write_text("b\tend\t0.25\n")
    assert call("run", *paths, "-f", f"edge/2={tmp_path / 'more.tsv'}", "-q", "goal").stdout == "1.75\n"


def test_files_may_have_a_header(call, tmp_path):
    program = tmp_path / "p.dyna"
    program.write_text("path(V) min= start(V). path(V) min= path(U) + road(U,V).")
    (tmp_path / "start.1.tsv").write_text("town\tcost\na\t0\n")
    (tmp_path / "road.2.csv").write_text("from,to,length\na,b,2.5\n")
    facts = ["-f", tmp_path / "start.1.tsv", "-f", tmp_path / "road.2.csv", "-q", "path(b)"]
    assert call("run", program, *facts, "--header").stdout == "2.5\n"
    assert "path(b)" in call("why", program, *facts, "--header").stdout
    result = call("run", program, *facts)
    assert result.exit_code == 1 and "line 1" in result.stderr and "--header" in result.stderr


def test_probabilities_become_the_semirings_numbers(call, paths, tmp_path):
    program = tmp_path / "p.dyna"
    program.write_text("goal += a(X) * b(X).")
    (tmp_path / "a.1.tsv").write_text("x\t0.5\n")
    (tmp_path / "b.1.tsv").write_text("x\t0.5\n")
    facts = ["-f", tmp_path / "a.1.tsv", "-f", tmp_path / "b.1.tsv", "-q", "goal"]
    assert (
        call("run", program, *facts, "--values", "probabilities", "--semiring", "log").stdout == "-1.3862943611198906\n"
    )
    assert call("run", program, *facts, "--semiring", "real").stdout == "0.25\n"


def test_pairs_with_probabilities(call, tmp_path):
    program = tmp_path / "p.dyna"
    program.write_text(":- semiring expectation.\ngoal += a(X).\n")
    (tmp_path / "a.1.tsv").write_text("x\t0.5 2\n")
    (tmp_path / "more.tsv").write_text("y\n")  # a fact without a number is one
    facts = ["-f", tmp_path / "a.1.tsv", "-f", f"a/1={tmp_path / 'more.tsv'}"]
    assert call("run", program, *facts, "--values", "probabilities").stdout == "1.5 2.0\n"
    assert call("run", program, *facts).stdout == "1.5 2.0\n"


def test_stats_go_to_standard_error(call, paths):
    result = call("run", *paths, "-q", "goal", "--stats")
    assert result.stdout == "3.5\n"
    assert " pops, " in result.stderr and " seconds" in result.stderr


def test_an_early_stop_is_said(call, paths):
    result = call("run", *paths, "-q", "goal", "--max-pops", 1)
    assert result.exit_code == 0
    assert "note: the run stopped early (max_pops)" in result.stderr


def test_inputs_without_facts_are_said(call, cky):
    result = call("run", cky / "cky.dyna", "-f", cky / "word.3.tsv", "-q", "goal")
    assert result.stderr == "note: no facts for rewrite/2, rewrite/3, end/1\n"


def test_results_may_hold_terms(call, tmp_path):
    program = tmp_path / "t.dyna"
    program.write_text("p(f(X),[X|Y]) += q(X,Y).")
    (tmp_path / "q.2.tsv").write_text("a\t[1,b]\t2\n")
    for format, shown in (("tsv", "f(a)\t[a,1,b]\t2.0\n"), ("json", None)):
        result = call("run", program, "-f", tmp_path / "q.2.tsv", "-q", "p(X,Y)", "--format", format)
        if shown is not None:
            assert result.stdout == shown
        else:
            assert json.loads(result.stdout)[0]["rows"] == [{"arguments": ["f(a)", ["a", 1, "b"]], "value": 2.0}]


# -- run --grad


def test_grad_prints_the_derivatives_by_each_predicate_largest_first(call, paths):
    result = call("run", *paths, "--grad", "goal")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == (
        "derivatives of goal by start/1: 1 fact\n  a  1.0\n\n"
        "derivatives of goal by edge/2: 3 facts\n  a  b    1.0\n  b  end  1.0\n  a  end  0.0\n"
    )


def test_several_gradients_beside_a_query(call, paths):
    said = call("run", *paths, "-q", "goal", "-g", "goal", "-g", "path(b)", "--limit", 1).stdout
    assert said.startswith("goal = 3.5\n\nderivatives of goal by start/1: 1 fact\n")
    assert said.endswith(
        "derivatives of path(b) by edge/2: 3 facts\n  a  b  1.0\n  ... and 2 more; --limit 0 shows all\n"
    )


def test_gradients_as_tsv_and_json_keep_the_order_of_the_facts(call, paths, tmp_path):
    (tmp_path / "edges.csv").write_text("a,end,5\na,b,1.5\nb,end,2\n")
    result = call("run", *paths, "--grad", "goal", "--format", "tsv")
    assert result.stdout == (
        "goal\tstart/1\ta\t1.0\ngoal\tedge/2\ta\tend\t0.0\ngoal\tedge/2\ta\tb\t1.0\ngoal\tedge/2\tb\tend\t1.0\n"
    )
    _, edges = json.loads(call("run", *paths, "--grad", "goal", "--format", "json").stdout)
    assert (edges["gradient"], edges["by"]) == ("goal", "edge/2")
    assert edges["rows"][1] == {"arguments": ["a", "b"], "value": 1.0}


def test_gradients_of_pairs(call, tmp_path):
    (tmp_path / "p.dyna").write_text(":- semiring expectation.\ngoal += a(X) * b(X).\n")
    (tmp_path / "a.1.tsv").write_text("y\nx\n")
    (tmp_path / "b.1.tsv").write_text("x\n")
    facts = ["-f", tmp_path / "a.1.tsv", "-f", tmp_path / "b.1.tsv"]
    said = call("run", tmp_path / "p.dyna", *facts, "--grad", "goal").stdout
    assert said.startswith("derivatives of goal by a/1: 2 facts\n  x  1.0 0.0\n  y  0.0 0.0\n")


def test_a_gradient_of_what_was_not_derived_is_zero(call, paths):
    result = call("run", *paths, "--grad", "path(nowhere)", "--format", "tsv")
    assert result.stderr.splitlines() == [
        "warning: No fact and no item has the symbol nowhere, which path(nowhere) asks for",
        "note: path(nowhere) was not derived, so its derivatives are zero",
    ]
    assert result.stdout.count("\t0.0\n") == 4


def test_expected_counts_of_a_grammar(call, tmp_path, cky):
    (tmp_path / "log.dyna").write_text((cky / "cky.dyna").read_text().replace("semiring real", "semiring log"))
    facts = ["--facts", cky, "--values", "probabilities", "--format", "tsv"]
    said = call("run", tmp_path / "log.dyna", *facts, "--grad", "goal").stdout
    rows = [line.split("\t") for line in said.splitlines()]
    used = {key: sum(float(row[-1]) for row in rows if row[1] == key) for key in ("rewrite/2", "rewrite/3")}
    assert used == pytest.approx({"rewrite/2": 12.0, "rewrite/3": 11.0})  # a tree over twelve words


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-g", "gaol"], "error: --grad gaol: the program has no predicate `gaol/0`. Did you mean `goal/0`?\n"),
        (["-g", "path(X)"], "error: --grad path(X): it has variables; --query"),
        (["-g", "goal("], "error: The `(` at line 1"),
        (["-g", "goal", "-g", "1"], "error: "),
    ],
)
def test_wrong_gradients_are_one_message(call, paths, arguments, message):
    result = call("run", *paths, *arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(message) and "Traceback" not in result.stderr


def test_gradients_that_there_cannot_be(call, tmp_path):
    program = tmp_path / "p.dyna"
    program.write_text("goal += a(_).\na(x) = 1.\n")
    result = call("run", program, "--grad", "goal", "--semiring", "boolean")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: a program in the boolean semiring has no gradient: ")
    result = call("run", program, "--grad", "goal", "--semiring", "real")
    assert result.stderr == "error: --grad goal: there are no facts to differentiate by; give them with --facts\n"


# -- errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-q", "gaol"], "error: the program has no predicate `gaol/0`. Did you mean `goal/0`?"),
        (["-q", "goal("], "error: The `(` at line 1"),
        (
            ["-f", "edgy/2=x.tsv"],
            "error: --facts edgy/2: the program has no predicate `edgy/2`. Did you mean `edge/2`?",
        ),
        (["-f", "edge/2=missing.tsv"], "missing.tsv"),
        (["-f", "edge/2=x.doc"], "no format has the suffix '.doc'"),
        (["-f", "facts.tsv"], "error: --facts facts.tsv: say which predicate the file is for"),
        (["-s", "real"], "error: "),
        (["-s", "reel"], "error: "),
        (["--until", "goal(X)"], "error: "),
    ],
)
def test_errors_are_one_message_without_a_traceback(call, paths, arguments, message):
    result = call("run", *paths, *arguments)
    assert result.exit_code == 1
    assert message in result.stderr and "Traceback" not in result.stderr
    assert result.stdout == ""


def test_a_missing_program(call):
    result = call("run", "nowhere.dyna")
    assert result.exit_code == 1
    assert result.stderr == "error: the program 'nowhere.dyna' cannot be read: No such file or directory\n"


def test_a_wrong_row_is_named(call, paths, tmp_path):
    (tmp_path / "edges.csv").write_text("a,b,1\nb,end,many\n")
    result = call("run", *paths)
    assert result.exit_code == 1 and "edges.csv" in result.stderr and "'many'" in result.stderr


# -- check


def test_check_says_ok(call, cky):
    result = call("check", cky / "cky.dyna")
    assert result.exit_code == 0
    assert result.stdout == "OK: 3 rules, 6 predicates; inputs: rewrite/2, word/3, rewrite/3, end/1\n"


def test_check_shows_the_place_of_an_error(call, tmp_path):
    program = tmp_path / "bad.dyna"
    program.write_text("goal(X,Y) += f(X).\n")
    result = call("check", program)
    assert result.exit_code == 1 and result.stdout == ""
    assert result.stderr.startswith("error: Nothing binds the variable `Y`")
    assert result.stderr.endswith("  1 | goal(X,Y) += f(X).\n    |        ^\n")


def test_check_prints_warnings(call, tmp_path):
    program = tmp_path / "warn.dyna"
    program.write_text("goal += f(X).\n")
    result = call("check", program)
    assert result.exit_code == 0 and result.stdout.startswith("OK: 1 rule, 2 predicates")
    assert result.stderr.startswith("warning: The variable `X` occurs once")


def test_check_needs_no_functions(call, tmp_path):
    program = tmp_path / "f.dyna"
    program.write_text(":- function h/1.\n:- external d/1.\na(X) = h(b(X)) * d(X).\n")
    assert call("check", program).exit_code == 0


# -- explain and cpp


def test_explain_with_facts(call, cky):
    result = call("explain", cky / "cky.dyna", "-f", cky)
    assert result.exit_code == 0
    assert "items become final" in result.stdout and "dense array" in result.stdout


def test_explain_without_facts(call, cky):
    result = call("explain", cky / "cky.dyna")
    assert result.exit_code == 0 and result.stderr == ""
    assert "facts: none given" in result.stdout and "hash table" in result.stdout


def test_cpp_writes_a_header(call, tmp_path, cky):
    header = tmp_path / "my-parser.hpp"
    result = call("cpp", cky / "cky.dyna", "-o", header)
    assert result.exit_code == 0 and "my_parser::chart" in result.stderr
    text = header.read_text()
    assert "namespace my_parser {" in text and "bool add_word(" in text
    assert call("cpp", cky / "cky.dyna", "--name", "my_parser").stdout == text


def test_cpp_knows_its_include_folder(call):
    folder = Path(call("cpp", "--include").stdout.strip())
    assert (folder / "dynagrad" / "semirings.hpp").exists()


def test_cpp_that_cannot_be_written(call, tmp_path, cky):
    result = call("cpp", cky / "cky.dyna", "-o", tmp_path / "no" / "x.hpp")
    assert result.exit_code == 1 and "cannot be written" in result.stderr


# -- demo


def test_demo_parses_and_draws(call):
    result = call("demo")
    assert result.exit_code == 0
    assert "time flies like an arrow" in result.stdout
    assert "The chart of: they saw her duck" in result.stdout
    assert "    s\n    ├─ np  they\n    └─ vp" in result.stdout
    assert "The gradient of log p" in result.stdout and "    1.000  s -> np vp\n" in result.stdout


def test_demo_values_agree_with_the_real_semiring():
    parsers = demo.demo_parsers()
    for sentence in demo.demo_sentences()[:3]:
        facts = demo.facts_of(sentence)
        rules = demo.demo_grammar()
        total = dg.Program(demo.DEMO / "parser.dyna", "real").run({**rules, **facts})["goal"]
        assert total > 0
        assert parsers["log"].run(facts)["goal"] == pytest.approx(math.log(total), rel=1e-12)


def test_demo_of_a_sentence_with_strange_words(call):
    result = call("demo", "colourless ideas saw her")
    assert result.exit_code == 1
    assert "error: the demo does not know 'colourless', 'ideas'; its words are: a, " in result.stderr


def test_demo_of_a_sentence_without_a_parse(call):
    result = call("demo", "the the the")
    assert result.exit_code == 0 and "It has no parse." in result.stdout


# -- all


@pytest.mark.parametrize("command", ["run", "check", "explain", "cpp", "demo"])
def test_every_command_has_help_with_an_example(call, command):
    result = call(command, "--help")
    assert result.exit_code == 0 and "Example: dynagrad " in " ".join(result.stdout.split())


def test_version_comes_at_once(call):
    """Beside the import of the package, in turns: a machine's speed changes, and so does that of its neighbours."""
    assert call("--version").stdout == f"dynagrad {dg.__version__}\n"
    runs = {"the version": ["-m", "dynagrad.cli", "--version"], "the import": ["-c", "import dynagrad"]}
    spent: dict[str, list[float]] = {what: [] for what in runs}
    for _ in range(2):
        for what, code in runs.items():
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, *code], check=True, capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent[what].append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    assert min(spent["the version"]) < 2 * min(spent["the import"])  # 1.3 on an idle machine


def test_nothing_heavy_is_imported_for_the_version_and_training_as_it_is_first_asked_for():
    heavy = ("rich", "pandas", "pyarrow", "ziglang")
    late = ("dynagrad.training", "dynagrad.compiler.specialised", "multiprocessing", "scipy", "ssl", "urllib.request")
    code = (  # older releases of typer import rich themselves
        f"import sys, dynagrad; print([m for m in {late} if m in sys.modules]); import typer; its = {{*sys.modules}}; "
        f"import dynagrad.cli; print([m for m in {heavy} if m in {{*sys.modules}} - its]); "
        "print(dynagrad.training.L2(1.0), dynagrad.fit)"
    )
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert said.stdout.startswith("[]\n[]\nGaussian(variance=0.5, mean=0.0) <function fit at ")
    with pytest.raises(AttributeError, match="module 'dynagrad' has no attribute 'fitt'"):
        _ = dg.fitt


def test_interrupts_exit_with_130(tmp_path):
    program, facts = tmp_path / "loop.dyna", tmp_path / "m.1.tsv"
    program.write_text(":- semiring real.  m(I+1) += m(I).  a += m(I).")  # for ever
    os.mkfifo(facts)
    command = [sys.executable, "-m", "dynagrad.cli", "run", str(program), "-f", str(facts)]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        facts.write_text("0\t1.0\n")  # once it reads them
        time.sleep(0.2)  # it compiles or runs now
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=60)
    finally:
        running.kill()  # it would run for ever
    assert running.returncode == 130 and said.endswith(b"interrupted\n") and b"Traceback" not in said


MOMENTS = ("dynagrad.charts", "numpy", "dynagrad.compiler", "dynagrad.cli", "typer", "dynagrad.cli.training", "the end")
"""Imports of a start, in their order, and what is run last of all."""


@pytest.mark.parametrize("moment", MOMENTS)
def test_interrupts_while_it_starts_or_ends_exit_with_130(moment: str, tmp_path: Path) -> None:
    """Ctrl-C comes as the module of that name is looked for; Python's own start, before the package, is Python's."""
    hook = (
        "import atexit, signal, sys\n"
        "class Finder:\n"
        "    def find_spec(name, *_):\n"
        f"        if name == {moment!r}: signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder)\n"
        f"if {moment!r} == 'the end': atexit.register(signal.raise_signal, signal.SIGINT)\n"
    )
    (tmp_path / "sitecustomize.py").write_text(hook)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "dynagrad.cli", "--help"],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == ((0, b"") if moment == "the end" else (130, b"interrupted\n"))


@pytest.mark.parametrize("name", ["dynagrad", "dynagrad.exe"])
def test_the_installed_command_is_known_by_its_name(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("import signal, dynagrad\nsignal.raise_signal(signal.SIGINT)\n")
    done = subprocess.run([sys.executable, str(tmp_path / name)], capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (130, b"interrupted\n")


def test_where_the_package_is_only_imported_interrupts_are_those_of_python() -> None:
    code = "import signal; before = signal.getsignal(2); import dynagrad; print(signal.getsignal(2) is before)"
    for arguments in (["-c", code], ["-c", code, "-m", "dynagrad.cli"]):
        said = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=60)
        assert said.stdout == "True\n", said.stderr


def test_a_reader_that_goes_away_is_no_error(tmp_path):
    program = tmp_path / "many.dyna"
    program.write_text(":- semiring real.\nn(I+1) += n(I) for I < 200000.\nn(0) = 1.\n")
    command = [sys.executable, "-m", "dynagrad.cli", "run", str(program), "-q", "n(X)", "--format", "tsv"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert running.stdout is not None and running.stderr is not None
    running.stdout.readline()
    running.stdout.close()
    said = running.stderr.read()
    running.stderr.close()
    running.wait(timeout=60)
    assert b"Traceback" not in said


def test_run_prints_facts_of_the_text_that_no_rule_reads(call, tmp_path):
    file = tmp_path / "facts.dyna"
    file.write_text("p(a).")
    assert call("run", file).stdout == "p(X1): 1 item\n  a  1.0\n"
    file.write_text("p(a). p(b) += 2. q(c). r += q(_).")
    assert call("run", file).stdout == "p(X1): 2 items\n  a  1.0\n  b  2.0\nr = 1.0\n"
    file.write_text("% nothing")
    result = call("run", file)
    assert (result.exit_code, result.stdout) == (0, "") and "derives nothing; name what to print" in result.stderr


def test_patterns_where_one_item_is_asked_for_are_sent_to_query(call, paths):
    for option in ("--grad", "--until"):
        result = call("run", *paths, option, "path(X)")
        assert result.exit_code == 1
        assert f"{option} path(X): it has variables; --query lists all items that match it" in result.stderr
        assert "A symbol that begins with a capital letter is written in quotes: path('X')" in result.stderr


# -- what files and streams may be -------------------------------------------------------------------------------------


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A command line in which `dynagrad` is the command itself, as its users run it."""
    line = f'dynagrad() {{ {sys.executable} -m dynagrad.cli "$@"; }}; {command}'
    return subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("command", ["run paths.dyna -f start.1.tsv -f edge/2=edges.csv", "cpp paths.dyna", "--help"])
def test_a_full_disk_under_the_output_is_one_line(paths, tmp_path, command):
    done = shell(f"dynagrad {command} > /dev/full", tmp_path)
    assert (done.returncode, done.stderr) == (1, "error: the output cannot be written: No space left on device\n")


def test_nowhere_to_say_an_error_is_still_an_exit_status(paths, tmp_path):
    assert shell("dynagrad check paths.dyna > /dev/full 2> /dev/full", tmp_path).returncode == 1
    assert shell("dynagrad check nothing.dyna 2> /dev/full", tmp_path).returncode == 1
    assert shell("dynagrad check paths.dyna >&-", tmp_path).returncode == 0
    assert shell("dynagrad run paths.dyna -f start.1.tsv -f edge/2=edges.csv | head -c 1", tmp_path).returncode == 0


def test_names_that_cannot_be_printed_are_one_line(tmp_path):
    (tmp_path / "names.dyna").write_text("p('\u4e2d') += 1.\n")
    done = shell("PYTHONIOENCODING=latin1 dynagrad run names.dyna -q 'p(X)'", tmp_path)
    assert done.returncode == 1 and done.stderr.startswith("error: the output cannot be written: 'latin-1'")
    assert done.stderr.count("\n") == 1


def test_a_program_has_an_end(call, tmp_path):
    done = shell("ulimit -v 4000000; dynagrad check /dev/zero", tmp_path)
    assert (done.returncode, done.stderr) == (
        1,
        "error: the program '/dev/zero' is larger than 64 MiB, which no program is\n",
    )
    with pytest.raises(dg.Error, match="larger than 64 MiB"):
        dg.Program(Path("/dev/zero"))
    said, told = os.pipe()
    os.write(told, b"p += q(_).")
    os.close(told)
    assert call("check", f"/dev/fd/{said}").exit_code == 0  # as bash gives it for <(echo 'p += q(_).')
    os.close(said)


def test_facts_from_a_device_are_refused(call, paths, tmp_path):
    (tmp_path / "zeros.tsv").symlink_to("/dev/zero")
    done = call("run", paths[0], "-f", f"start/1={tmp_path / 'zeros.tsv'}")
    assert done.exit_code == 1 and "zeros.tsv' is a device, which has no end" in done.stderr
    with pytest.raises(dg.FactError, match="is a device"):
        dg.read_file(tmp_path / "zeros.tsv", "start/1")


def test_a_header_that_cannot_be_written_leaves_what_was_there(call, paths, tmp_path):
    header = tmp_path / "paths.hpp"
    header.write_text("what was there\n")
    header.chmod(0o640)
    before = sorted(tmp_path.iterdir())
    done = shell("ulimit -f 4; dynagrad cpp paths.dyna -o paths.hpp", tmp_path)
    assert done.returncode == 1 and "cannot be written, and is as it was: File too large" in done.stderr
    assert header.read_text() == "what was there\n" and sorted(tmp_path.iterdir()) == before
    done = call("cpp", paths[0], "-o", paths[0])
    assert done.exit_code == 1 and "the program itself" in done.stderr
    assert (tmp_path / "paths.dyna").read_text() == PATHS
    (tmp_path / "link.hpp").symlink_to("paths.hpp")
    assert call("cpp", paths[0], "-o", tmp_path / "link.hpp").exit_code == 0
    assert "namespace link" in header.read_text() and header.stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "link.hpp").is_symlink()
    assert "namespace" in shell("dynagrad cpp paths.dyna -o /dev/stdout", tmp_path).stdout


# -- best, why and why-not


def test_best_prints_derivations_in_four_forms(call, paths):
    result = call("best", *paths)
    tree = "3.5\ngoal\n└── path(end)\n    ├── path(b)\n    │   ├── path(a)\n    │   │   └── start(a)\n"
    assert (result.exit_code, result.stdout) == (0, tree + "    │   └── edge(a,b)\n    └── edge(b,end)\n")
    result = call("best", *paths, "--k", 2, "--format", "brackets", "-q", "path(end)")
    first = "3.5\t('path(end)' ('path(b)' ('path(a)' 'start(a)') 'edge(a,b)') 'edge(b,end)')\n"
    assert result.stdout == first + "5.0\t('path(end)' ('path(a)' 'start(a)') 'edge(a,end)')\n"
    found = json.loads(call("best", *paths, "--k", 2, "--format", "json").stdout)
    assert [d["weight"] for d in found] == [3.5, 5.0]
    assert call("best", *paths, "--format", "svg").stdout.startswith("<svg")
    result = call("best", *paths, "-q", "path(X)")
    assert result.exit_code == 1 and "it has variables" in result.stderr
    result = call("best", *paths, "-q", "path(z)")
    assert result.exit_code == 1 and "was not derived" in result.stderr


def test_best_prints_what_the_program_shows(call, paths, tmp_path):
    program = tmp_path / "shown.dyna"
    program.write_text((tmp_path / "paths.dyna").read_text() + "\n:- show path(X) as X.\n")
    assert call("best", program, *paths[1:], "--format", "brackets").stdout == "3.5\t(end (b a))\n"
    everything = call("best", program, *paths[1:], "--format", "brackets", "--everything").stdout
    assert everything == call("best", *paths, "--format", "brackets").stdout


def test_why_and_why_not_print_reasons(call, paths):
    result = call("why", *paths, "-q", "path(end)", "--sets", 5)
    assert result.stdout.splitlines() == [
        "path(end) = 3.5",
        "├── path(end) += path(b) * edge(b,end)   100%",
        "└── path(end) += path(a) * edge(a,end)   0%",
        "suffices: start(a), edge(a,end)",
        "suffices: start(a), edge(a,b), edge(b,end)",
    ]
    assert json.loads(call("why", *paths, "--format", "json").stdout)["item"] == "goal"
    result = call("why-not", *paths, "-q", "path(z)")
    assert result.exit_code == 0 and "edge(a,z)   missing" in result.stdout
    found = json.loads(call("why-not", *paths, "-q", "path(z)", "--format", "json").stdout)
    assert found["complete"] and found["missing"] == 1
    assert call("why-not", *paths, "-q", "path(z)", "--format", "svg").stdout.startswith("<svg")
    result = call("why-not", *paths, "-q", "goal")
    assert result.exit_code == 1 and "is derived" in result.stderr
