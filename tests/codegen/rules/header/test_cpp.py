"""C++ headers of programs, used from C++ as a user would: terms, facts, a run, lookups, and errors.

All headers are compiled into one C++ program, whose output the tests check. Costs a few seconds.
"""

from __future__ import annotations

import math
import re
import subprocess
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import dynagrad as dg
import examples
from dynagrad import cli
from dynagrad.charts.binding.encoding import kinds, program_constants
from dynagrad.charts.chart import run_of
from dynagrad.charts.program import binding_of, context_of
from dynagrad.cli import demo
from dynagrad.cli.commands import header_plan
from dynagrad.cli.inputs import Values
from dynagrad.codegen.rules.header.names import cxx_name
from dynagrad.codegen.rules.header.program import header
from dynagrad.facts.terms import Term, term_text
from dynagrad.plan.assume import assumed_plan
from dynagrad.runtime.compiling import compilation, toolchain
from dynagrad.runtime.disk import folder as cache_folder

PATHS = ":- semiring tropical. path(V) += start(V). path(V) += path(U) * edge(U,V)."
ARCS = [("a", "b", 1.0), ("b", "c", 2.0), ("a", "c", 4.0)]
NAMES = """
    :- semiring real.
    'for'(X) += 'a b'(X) * 2.
    'a b'(7) = 0.5.
    'a b'("quo\\"te") = 0.25.
    goal += 'for'(_X).
"""
LISTS = """
    :- type parts(term).
    size(List,0) max= parts(List) * 0 + 1.
    size(Rest,N+1) max= size([_|Rest],N).
    length(N) max= size(nil,N).
"""
OUTSIDE = ":- external distance/2. goal += pair(X,Y) * distance(X,Y)."


def facts_in_cxx(chart: str, facts: Mapping[str, Sequence[Sequence[Any]]]) -> list[str]:
    """Statements that give facts."""
    lines = []
    for key, rows in facts.items():
        name, arity = key.rsplit("/", 1)
        for row in rows:
            arguments = [*map(lambda a: literal(chart, a), row[: int(arity)]), *map(repr, row[int(arity) :])]
            lines.append(f"{chart}.add_{cxx_name(name)}({', '.join(arguments)});")
    return lines


def literal(chart: str, value: Any) -> str:
    match value:
        case str():
            return f'"{value}"'
        case int():
            return str(value)
        case Term():
            return f'{chart}.compound("{value.functor}", {", ".join(literal(chart, a) for a in value.arguments)})'
    return f"{chart}.list({', '.join(literal(chart, a) for a in value)})"


def printed(chart: str, label: str, key: str) -> str:
    """A loop that prints all items of a predicate."""
    name, arity = key.rsplit("/", 1)
    body = f"for (int k = 0; k < {arity}; k++) {{ {chart}.print(item[k]); putchar(k + 1 < {arity} ? ',' : ')'); }}"
    value = 'printf("\\t%.17g\\n", (double)item.value);'
    return f'for (auto& item : {chart}.all_{cxx_name(name)}_{arity}()) {{ printf("{label}:{name}("); {body} {value} }}'


def setting_of(source: str, semiring: str | None = None) -> Any:
    functions = {"distance/2": lambda x, y: 0.0} if "external" in source else {}
    return context_of(dg.Program(source, semiring, functions))


def any_header(name: str, source: str, semiring: str | None = None, gradient: bool = True) -> str:
    """The header of a program for any facts."""
    setting = setting_of(source, semiring)
    plan = assumed_plan(setting.rules, setting.domains, kinds(setting.rules, setting.domains, {}), setting.options)
    return header(plan, name, program_constants(setting.rules, setting.domains), gradient=gradient)


def fitted_header(name: str, source: str, facts: Mapping[str, Any]) -> str:
    """The header of a program for facts like these."""
    program = dg.Program(source)
    setting = context_of(program)
    plan = header_plan(program, binding_of(program.bind(facts)).given, Values.weights)
    return header(plan, name, program_constants(setting.rules, setting.domains))


MAIN = r"""
static void say(const char* label, double value, bool derived) { printf("%s\t%.17g\t%d\n", label, value, derived); }
static bool distance(far::base& chart, const far::term* arguments, far::weight& value) {
  value = 100 * chart.number(arguments[0]) + chart.number(arguments[1]);
  return chart.number(arguments[1]) != 3;
}
struct Text {  // like std::string
  const char* text;
  const char* c_str() const { return text; }
  size_t size() const { return strlen(text); }
};
int main() {
  {
    plain::chart chart;
    @PLAIN@
    if (!chart.run()) puts(chart.error());
    say("plain:goal", chart.goal().value, chart.goal().derived);
    say("plain:none", chart.constit("np", 3, 1).value, chart.constit("np", 3, 1).derived);
    say("plain:unknown", chart.constit("xyz", 0, 1).value, chart.constit("xyz", 0, 1).derived);
    say("plain:fact", chart.rewrite(Text{"s"}, "np", "vp").value, chart.rewrite("s", "np", "vp").derived);
    @PLAIN_ITEMS@
    chart.clear_word_3();
    chart.clear_end_1();
    chart.add_word("they", 0, 1);
    chart.add_word("slept", 1, 2, 1.0);
    chart.add_end(2);
    chart.run();
    say("again:goal", chart.goal().value, chart.goal().derived);
    chart.settings.max_pops = 1;
    say("again:stopped", chart.run(), false);
    printf("again:why\t%s\n", chart.error());
  }
  {
    fitted::chart chart;
    @FITTED@
    if (!chart.run()) puts(chart.error());
    say("fitted:goal", chart.goal().value, chart.goal().derived);
    say("fitted:bytes", chart.report.bytes > 0 && chart.report.pops > 0, true);
    chart.add_word("the", 5, 5);
    say("fitted:refused", chart.run(), chart.goal().derived);
    printf("fitted:why\t%s\n", chart.error());
  }
  {
    counts::chart chart;
    @COUNTS@
    chart.run();
    say("counts:goal", (double)chart.goal().value, chart.goal().derived);
  }
  {
    earley::chart chart;
    @EARLEY@
    if (!chart.run()) puts(chart.error());
    @EARLEY_ITEMS@
  }
  {
    ordered::chart chart;
    chart.add_start("a", 0);
    chart.add_edge("b", "c", 2), chart.add_edge("a", "b", 1), chart.add_edge("a", "c", 4);
    say("ordered:ran", chart.run(), true);
    say("ordered:c", chart.path("c").value, chart.path("c").derived);
    say("ordered:d", chart.path("d").value, chart.path("d").derived);
    chart.add_edge("c", "a", 1);
    say("ordered:cycle", chart.run(), true);
    printf("ordered:why\t%s\n", chart.error());
  }
  {
    names::chart chart;
    chart.add_a_b("x", 0.125);
    chart.run();
    say("names:goal", chart.goal().value, true);
    say("names:for", chart.for_("x").value, chart.for_(7).derived && chart.for_("quo\"te").derived);
  }
  {
    lists::chart chart;
    chart.add_parts(chart.list("a", 2, chart.real(0.5), chart.list("b", chart.compound("f", "x", 1))), 1);
    if (!chart.run()) puts(chart.error());
    @LISTS_ITEMS@
    const lists::term pair = chart.cons("a", "b");
    printf("lists:parts\t%s %d %d ", chart.name(pair), chart.arity(pair), chart.is_compound(pair));
    printf("%s ", chart.name(chart.part(pair, 1)));
    chart.print(pair);
    putchar(' ');
    chart.print(chart.compound("slash", "a", chart.compound("slash", "b", "c")));
    putchar('\n');
  }
  {
    far::chart chart;
    chart.set_distance_2(distance);
    chart.add_pair(1, 2, 1), chart.add_pair(2, 3, 1), chart.add_pair(4, 5, 1);
    chart.run();
    say("far:goal", chart.goal().value, chart.goal().derived);
  }
  {
    plain::chart chart;
    say("wrong:added", chart.add_word("the", "x", 1), true);
    chart.add_word("the", 0, 1);
    say("wrong:ran", chart.run(), chart.goal().derived);
    printf("wrong:why\t%s\n", chart.error());
    plain::chart other;
    say("wrong:compound", other.add_word(other.list(1), 0, 1), true);
    printf("wrong:why2\t%s\n", other.error());
    plain::chart third;
    say("wrong:big", third.add_word("the", 0, 5000000000), true);
    printf("wrong:why3\t%s\n", third.error());
  }
}
"""


def output_of(
    folder: Path,
    headers: Mapping[str, str],
    main: str,
    pieces: Mapping[str, Sequence[str]],
    flags: Sequence[str] = (),
) -> list[str]:
    """The lines that a C++ program prints, which is compiled here; `pieces` come into the text at their names."""
    for name, text in headers.items():
        (folder / f"{name}.hpp").write_text(text)
    for name, lines in pieces.items():
        main = main.replace(f"@{name}@", "\n    ".join(lines))
    main = "".join(f'#include "{name}.hpp"\n' for name in headers) + main
    tool = toolchain.compiler()
    options = [f for f in toolchain.flags(tool, 0) if f not in ("-shared", "-fPIC", "-fvisibility=hidden")]
    program = folder / "main"
    given = compilation.inputs(main, program)
    compilation.compile_by_compiler(given, tool, [*options, *flags, f"-I{folder}"], zig_cache=zig_cache())
    done = subprocess.run([program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    return done.stdout.splitlines()


def zig_cache() -> Path | None:
    """The folder where zig keeps what it made once, which all tests share."""
    home = cache_folder.folder()
    return None if home is None else home / "zig"


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What the C++ program printed: by label, the rest of the line."""
    folder = tmp_path_factory.mktemp("cpp")
    cky, words = examples.source("cky"), examples.facts("cky")
    counted = {key: [(*row[: int(key[-1])], 1) for row in rows] for key, rows in words.items()}
    headers = {
        "plain": any_header("plain", cky),
        "fitted": fitted_header("fitted", cky, words),
        "counts": any_header("counts", cky.replace(":- semiring real.", ""), "count"),
        "earley": any_header("earley", examples.source("earley_recipe")),
        "ordered": fitted_header("ordered", PATHS, {"start/1": [("a", 0.0)], "edge/2": ARCS}),
        "names": any_header("names", NAMES),
        "lists": any_header("lists", LISTS),
        "far": any_header("far", ":- type pair(int,int). " + OUTSIDE),
    }
    pieces = {
        "PLAIN": facts_in_cxx("chart", words),
        "PLAIN_ITEMS": [printed("chart", "plain", "constit/3")],
        "FITTED": facts_in_cxx("chart", words),
        "COUNTS": facts_in_cxx("chart", counted),
        "EARLEY": facts_in_cxx("chart", examples.facts("earley_recipe")),
        "EARLEY_ITEMS": [printed("chart", "earley", "constit/3")],
        "LISTS_ITEMS": [printed("chart", "lists", "size/2"), printed("chart", "lists", "length/1")],
    }
    lines = output_of(folder, headers, MAIN, pieces)
    return {label: rest for label, *rest in (line.split("\t") for line in lines)}


def number(said: Mapping[str, Sequence[str]], label: str) -> tuple[float, bool]:
    value, derived = said[label]
    return float(value), derived == "1"


def items(said: Mapping[str, Sequence[str]], prefix: str) -> dict[str, float]:
    return {label[len(prefix) :]: float(rest[0]) for label, rest in said.items() if label.startswith(prefix)}


def python_items(name: str, predicate: str) -> dict[str, float]:
    chart = dg.Program(examples.source(name)).run(examples.facts(name))
    key = f"{predicate}/3"
    return {f"({','.join(term_text(a) for a in row[:-1])})": row[-1] for row in chart.table(key)}


def test_values_are_those_of_python(said):
    value, derived = number(said, "plain:goal")
    assert derived and value == pytest.approx(dict(examples.expected("cky"))["goal"], rel=1e-12)
    assert items(said, "plain:constit") == pytest.approx(python_items("cky", "constit"), rel=1e-12)


def test_what_is_not_derived_has_the_value_of_nothing(said):
    assert number(said, "plain:none") == number(said, "plain:unknown") == (0.0, False)


def test_facts_can_be_looked_up_with_any_string(said):
    assert number(said, "plain:fact") == (0.8, True)


def test_a_chart_runs_again_on_other_facts(said):
    chart = dg.Program(examples.source("cky")).bind(
        {k: v for k, v in examples.facts("cky").items() if k.startswith("rewrite")}
    )
    expected = chart.run({"word/3": [("they", 0, 1, 1.0), ("slept", 1, 2, 1.0)], "end/1": [(2, 1.0)]})["goal"]
    assert number(said, "again:goal") == (pytest.approx(expected, rel=1e-12), True)


def test_limits_stop_a_run_and_say_so(said):
    assert number(said, "again:stopped")[0] == 0
    assert said["again:why"] == ["the run stopped: it met its limit on pops"]


def test_a_header_for_facts_keeps_their_plan_and_refuses_others(said):
    assert number(said, "fitted:goal") == (
        pytest.approx(dict(examples.expected("cky"))["goal"], rel=1e-12),
        True,
    )
    assert number(said, "fitted:bytes")[0] == 1
    assert number(said, "fitted:refused") == (0.0, False)
    assert said["fitted:why"][0].startswith(
        "a fact of word/3 has argument 3 minus argument 2 less than 1, and this header"
    )


def test_counts_are_whole_numbers(said):
    bound = demo.demo_parsers()["count"]
    sentence = demo.demo_sentences()[0]
    assert number(said, "counts:goal") == (bound.run(demo.facts_of(sentence))["goal"], True)


def test_terms_of_any_shape(said):
    assert items(said, "earley:constit") == pytest.approx(python_items("earley_recipe", "constit"), rel=1e-12)


def test_an_order_of_symbols_is_found_again_at_run_time(said):
    assert number(said, "ordered:ran")[0] == 1
    assert number(said, "ordered:c") == (3.0, True)
    assert number(said, "ordered:d") == (float("inf"), False)
    assert number(said, "ordered:cycle")[0] == 0
    assert said["ordered:why"][0].startswith("these facts form a cycle")


def test_names_that_cpp_does_not_have(said):
    assert number(said, "names:goal")[0] == 2 * (0.5 + 0.25 + 0.125)
    assert number(said, "names:for") == (0.25, True)


def test_lists_are_made_and_taken_apart(said):
    assert items(said, "lists:length") == {"(4)": 1.0}
    assert "([2,0.5,[b,f(x,1)]],1)" in items(said, "lists:size")
    assert said["lists:parts"] == ["cons 2 1 b [a|b] a/(b/c)"]


def test_external_values_come_from_a_function(said):
    assert number(said, "far:goal") == (102.0 + 405.0, True)


def test_what_cannot_be_is_refused_with_a_message(said):
    assert number(said, "wrong:added")[0] == 0
    assert number(said, "wrong:ran") == (0.0, False)
    assert said["wrong:why"] == ["argument 2 of word/3 is an integer here, and x is none"]
    assert said["wrong:why2"][0].startswith("argument 1 of word/3 is a symbol or a number here")
    assert said["wrong:why3"] == ["the integer 5000000000 is beyond 32 bits"]


def test_only_what_needs_python_is_refused():
    longest = dg.Semiring(0.0, 1.0, lambda a, b: a + b, lambda a, b: a * b)
    plan = run_of(dg.Program("a(X) += b(X).", longest).run({"b/1": [("x", 1.0)]})).require().compiled.plan
    with pytest.raises(dg.Error, match="cannot be written for a program with"):
        header(plan, "x", {})


def test_a_class_says_of_its_abilities_those_that_are_not_usual():
    flags = re.compile(r"static constexpr bool ((?:goes_|changes|bounded|collects).*);")  # others are traits
    assert flags.findall(any_header("plain", PATHS, gradient=False)) == []
    assert flags.findall(any_header("plain", PATHS)) == ["goes_back = true"]


def test_axioms_nested_deeply_are_data():
    deep = "f(" * 140 + "a" + ")" * 140
    assert "node_kind" in any_header("deep", f"goal += p(_X). p({deep}) = 1.")


def test_symbols_of_any_bytes_are_kept(tmp_path: Path):
    text = any_header("x", "goal += p('\\n\"\\\\é?').")
    assert r'"\012\042\134\303\251\077"' in text


@pytest.mark.parametrize("end", ["\\n", "\r", "\u2028", "??/\\n", "\\\\\\n"])
def test_a_name_puts_no_line_of_its_own_into_a_header(end: str):
    text = any_header("x", f"'{end}int ran = 1; //'(X) += start(X).")
    assert not [line for line in text.splitlines() if line.startswith("int ran")]


@pytest.mark.parametrize("standard", ["c++17", "c++11"])
def test_a_compiler_for_an_older_standard_is_told_of_the_one_that_is_needed(tmp_path: Path, standard: str):
    tool = toolchain.compiler()
    options = [f"-std={standard}" if o.startswith("-std=") else o for o in toolchain.flags(tool, 0)]
    given = compilation.inputs(any_header("reach", PATHS), tmp_path / "library")
    with pytest.raises(dg.CompileError) as told:
        compilation.compile_by_compiler(given, tool, options, zig_cache=zig_cache())
    errors = [line for line in str(told.value).splitlines() if "error:" in line]
    assert len(errors) == 1 and "needs C++20" in errors[0]


def test_keys_of_indexes_are_made_of_what_is_there():
    """The arguments of an item, and the columns of facts, get no names of their own for that."""
    parsing = "phrase(X,I,J) += word(X,I,J). phrase(X,I,K) += phrase(Y,I,J) * phrase(Z,J,K) * rule(X,Y,Z)."
    text = any_header("keys", f"{parsing} twice(X) += edge(X,X).")
    assert "const int32_t key[] = {a[0], a[1], 0};" in text and "const int32_t key[] = {a[0], a[2], 0};" in text
    assert "if (column[0][at] == column[1][at]) {" in text
    assert not re.search(r"const int32_t v\d+ =", text)


def test_functions_of_predicates_never_have_one_name_and_as_many_arguments():
    source = ":- input s/1. goal += add_s(X) * s(X) * 'a b'(X) * a_b(X) * 'NULL'(X) * 'all_s_1'. add_s(1) = 1."
    text = any_header("x", source)
    for function in ("bool add_s(argument a1)", "result add_s_2(argument a1)", "result a_b(argument a1)",
                     "result a_b_2(argument a1)", "result NULL_(argument a1)", "result all_s_1_2()"):  # fmt: skip
        assert text.count(f"  {function} ") == 1, function


# -- derivatives -------------------------------------------------------------------------------------------------------

CYCLE = """
    :- semiring real.
    path(V) += start(V).
    path(V) += path(U) * edge(U,V).
    goal += path(_V).
"""
CYCLE_FACTS = {
    "start/1": [("a", 1.0)],
    "edge/2": [("c", "a", 0.25), ("a", "b", 0.5), ("b", "c", 0.5), ("b", "b", 0.125), ("a", "b", 0.25)],
}
AXIOMS = """
    :- semiring tropical.
    path(V) += path(U) * edge(U,V).
    path(a) = 0.
    path(d) = 7.
    edge(a,b) = 2.
    gradient(V) += path(V).
"""
PAIRS = ":- semiring expectation. goal += p(X) * q(X)."
STEEP = ":- semiring real. x(N) += z(N). y(N) += x(N) * c(N). goal += y(N) * a(N)."

GRADIENT_MAIN = r"""
template <class C> concept differentiable = requires(C c) { c.gradient(c.goal()); };
static_assert(differentiable<cky::chart> && !differentiable<truth::chart> && !differentiable<without::chart>);
template <class G> static void say(const char* label, const G& g) { printf("%s\t%s\n", label, g ? "fine" : g.error()); }

int main() {
  {
    cky::chart chart;
    @CKY@
    if (!chart.run()) puts(chart.error());
    auto g = chart.gradient(chart.goal());
    say("cky", g);
    @CKY_ITEMS@
    printf("cky:one\t%.17g\n", g.rewrite("s", "np", "vp"));
    printf("cky:none\t%.17g %.17g\n", g.rewrite("s", "s", "s"), g.constit("np", 3, 1));
    auto none = chart.gradient(chart.constit("np", 3, 1));
    auto unknown = chart.gradient(chart.constit("xyz", 3, 1));
    say("cky:zero", none);
    printf("cky:zeros\t%.17g %.17g\n", none.rewrite("s", "np", "vp"), unknown.rewrite("s", "np", "vp"));
    printf("cky:back\t%.17g\n", g.rewrite("s", "np", "vp"));
  }
  {
    logs::chart chart;
    @LOGS@
    if (!chart.run()) puts(chart.error());
    auto g = chart.gradient(chart.goal());
    @LOGS_ITEMS@
  }
  {
    cycle::chart chart;
    say("cycle:early", chart.gradient(chart.goal()));
    @CYCLE@
    if (!chart.run()) puts(chart.error());
    auto g = chart.gradient(chart.goal());
    @CYCLE_ITEMS@
    auto h = chart.gradient({{chart.path("b"), 2.0}, {chart.path("c"), -0.5}});
    printf("sum\t%.17g %.17g\n", h.edge("a", "b"), h.edge("c", "a"));
    const cycle::result item = chart.goal();
    chart.clear_edge_2();
    say("cycle:changed", (g.goal(), g));
    printf("cycle:gone\t%d %.17g\n", (int)g.all_path_1().size(), g.edge("a", "b"));
    chart.add_edge("a", "b", 0.25);
    chart.add_edge("b", "a", 0.5);
    chart.run();
    say("cycle:again", (h.goal(), h));
    auto other = chart.gradient(item);
    for (auto& fact : other.added_edge_2()) printf("new\t%s\t%.17g\n", chart.name(fact[0]), fact.value);
    cycle::chart stranger;
    say("cycle:stranger", stranger.gradient(item));
    say("cycle:infinite", chart.gradient({{item, INFINITY}}));
    chart.settings.max_pops = 2;
    chart.run();
    auto stopped = chart.gradient(chart.path("b"));
    printf("cycle:stopped\t%.17g\n", stopped.edge("a", "b"));
  }
  {
    axioms::chart chart;
    @AXIOMS@
    if (!chart.run()) puts(chart.error());
    auto g = chart.gradient(chart.path("d"));
    @AXIOMS_ITEMS@
    printf("axioms:text\t%.17g %.17g\n", g.edge("a", "b"), chart.gradient_("d").value);
  }
  {
    network::chart chart;
    @NETWORK@
    if (!chart.run()) puts(chart.error());
    auto g = chart.gradient(chart.loss());
    @NETWORK_ITEMS@
  }
  {
    pairs::chart chart;
    chart.add_p("x", {0.5, {2}}), chart.add_q("x", {0.25, {3}});
    chart.run();
    auto g = chart.gradient(chart.goal());
    printf("pairs\t%.17g %.17g\n", g.p("x").p, g.p("x").r[0]);
  }
  {
    cycle::chart chart;
    chart.add_start("a", 0), chart.add_edge("a", "b", 1e300), chart.add_edge("b", "c", 1e300);
    chart.run();
    say("cycle:steep", chart.gradient(chart.goal()));
    auto g = chart.gradient(chart.path("b"));
    printf("cycle:after\t%.17g %.17g\n", g.start("a"), g.edge("a", "b"));
    chart.clear_start_1(), chart.clear_edge_2();
    chart.add_start("a", 1e300), chart.add_edge("a", "b", 0);
    chart.run();
    say("cycle:fact", chart.gradient({{chart.path("b"), 1e10}}));
  }
  {
    cycle::chart chart;
    chart.add_start("a", 1), chart.add_edge("a", "b", 0.5), chart.add_edge("b", "a", 0);
    chart.run();
    auto g = chart.gradient(chart.goal());
    printf("cycle:zero\t%.17g %.17g\n", g.edge("b", "a"), g.edge("a", "b"));
    chart.clear_start_1(), chart.clear_edge_2();
    chart.add_start("a", 0), chart.add_edge("a", "b", 2), chart.add_edge("b", "a", 2);
    chart.run();
    say("cycle:unsettled", chart.gradient(chart.goal()));
  }
  {
    namespace parser = cky;
    @DOCUMENT@
  }
  {
    steep::chart chart;
    chart.add_z(1, 0), chart.add_c(1, 1e300), chart.add_a(1, 1e300);
    if (!chart.run()) puts(chart.error());
    auto g = chart.gradient(chart.goal());
    say("steep:item", g);
    printf("steep:zeros\t%.17g %d\n", g.z(1), (int)g.added_a_1().size());
    chart.clear_z_1();
    chart.add_z(1, 1e300);
    chart.run();
    printf("steep:run\t%s\n", chart.error());
    say("steep:partial", chart.gradient(chart.goal()));
  }
}
"""


def gradients_printed(label: str, keys: Sequence[str], derived: Sequence[str]) -> list[str]:
    """Loops that print the derivatives `g` with respect to the facts of some predicates and the items of others."""
    lines = []
    for key in (*keys, *derived):
        name, arity = key.rsplit("/", 1)
        members = f"{'added' if key in keys else 'all'}_{cxx_name(name)}_{arity}()"
        body = f"for (int k = 0; k < {arity}; k++) {{ chart.print(item[k]); putchar(k + 1 < {arity} ? ',' : ')'); }}"
        value = 'printf("\\t%.17g\\n", item.value);'
        lines.append(f'for (auto& item : g.{members}) {{ printf("{label}:{key}\\t("); {body} {value} }}')
    return lines


LOG_WORDS = {
    key: [(*row[: int(key[-1])], *map(math.log, row[int(key[-1]) :])) for row in rows]
    for key, rows in examples.facts("cky").items()
}
AXIOM_EDGES = [("b", "c", 1.0), ("c", "d", 1.5), ("a", "d", 6.0), ("c", "d", 2.5), ("a", "b", 3.0)]
DOCUMENT = (Path(__file__).resolve().parents[4] / "docs/tools/cpp.md").read_text(encoding="utf-8")
NETWORK = examples.facts("network")


@pytest.fixture(scope="module")
def derived(tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    """What the C++ program on derivatives printed: the columns of each line."""
    cky, words = examples.source("cky"), examples.facts("cky")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.ProgramWarning)  # of sums around a cycle
        cyclic = fitted_header("cycle", CYCLE, CYCLE_FACTS)
    headers = {
        "cky": fitted_header("cky", cky, words),
        "logs": fitted_header("logs", cky.replace("real", "log"), LOG_WORDS),
        "cycle": cyclic,
        "axioms": any_header("axioms", AXIOMS),
        "network": fitted_header("network", examples.source("network"), NETWORK),
        "pairs": any_header("pairs", PAIRS),
        "steep": any_header("steep", ":- type z(int), a(int). " + STEEP),
        "truth": any_header("truth", cky.replace(":- semiring real.", ""), "boolean"),
        "without": any_header("without", cky, gradient=False),
    }
    _, _, example = next(block for block in DOCUMENT.split("```")[1::2] if "::chart" in block).partition("\n")
    pieces = {
        "DOCUMENT": example.splitlines(),
        "CKY": facts_in_cxx("chart", words),
        "CKY_ITEMS": gradients_printed("cky", list(words), ["constit/3", "goal/0"]),
        "LOGS": facts_in_cxx("chart", LOG_WORDS),
        "LOGS_ITEMS": gradients_printed("logs", list(words), ["constit/3"]),
        "CYCLE": facts_in_cxx("chart", CYCLE_FACTS),
        "CYCLE_ITEMS": gradients_printed("cycle", list(CYCLE_FACTS), ["path/1"]),
        "AXIOMS": facts_in_cxx("chart", {"edge/2": AXIOM_EDGES}),
        "AXIOMS_ITEMS": gradients_printed("axioms", ["edge/2"], ["path/1"]),
        "NETWORK": facts_in_cxx("chart", NETWORK),
        "NETWORK_ITEMS": gradients_printed("network", list(NETWORK), []),
    }
    lines = output_of(tmp_path_factory.mktemp("gradients"), headers, GRADIENT_MAIN, pieces)
    return [line.split("\t") for line in lines]


def rows_of(derived: Sequence[Sequence[str]], label: str) -> list[tuple[str, float]]:
    """The derivatives that were printed under a label, in order."""
    return [(line[1], float(line[2])) for line in derived if line[0] == label]


def python_rows(gradient: Mapping[str, dg.Table], key: str) -> list[tuple[str, float]]:
    return [(f"({','.join(map(term_text, row[:-1]))}" + ")" * (len(row) > 1), row[-1]) for row in gradient[key]]


def told(derived: Sequence[Sequence[str]], label: str) -> str:
    return next(line[1] for line in derived if line[0] == label)


def numbers(derived: Sequence[Sequence[str]], label: str) -> list[float]:
    return [float(x) for x in told(derived, label).split()]


@pytest.mark.parametrize(
    ("name", "source", "facts", "item", "items"),
    [
        ("cky", examples.source("cky"), examples.facts("cky"), "goal", ["constit/3", "goal/0"]),
        ("logs", examples.source("cky").replace("real", "log"), LOG_WORDS, "goal", ["constit/3"]),
        ("cycle", CYCLE, CYCLE_FACTS, "goal", ["path/1"]),
        ("network", examples.source("network"), NETWORK, "loss", []),
    ],
)
@pytest.mark.filterwarnings("ignore::dynagrad.ProgramWarning")
def test_gradients_are_those_of_python_to_the_last_digit(derived, name, source, facts, item, items):
    gradient = dg.Program(source).run(facts).gradient(item)
    for key in facts:
        found = rows_of(derived, f"{name}:{key}")
        assert found == python_rows(gradient, key)
        assert found
    for key in items:
        assert dict(rows_of(derived, f"{name}:{key}")) == dict(python_rows(gradient, key))


def test_a_derivative_can_be_looked_up(derived):
    assert told(derived, "cky") == "fine"
    rows = dict(rows_of(derived, "cky:rewrite/3"))
    assert numbers(derived, "cky:one") == [rows["(s,np,vp)"]]
    assert numbers(derived, "cky:none") == [0.0, 0.0]


def test_an_item_that_was_not_derived_has_gradient_zero(derived):
    assert told(derived, "cky:zero") == "fine"
    assert numbers(derived, "cky:zeros") == [0.0, 0.0]


def test_several_gradients_of_one_chart_stand_side_by_side(derived):
    assert told(derived, "cky:back") == told(derived, "cky:one")


def test_several_items_are_summed_with_their_cotangents(derived):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.ProgramWarning)
        gradient = dg.Program(CYCLE).run(CYCLE_FACTS).gradient({"path(b)": 2.0, "path(c)": -0.5})
    assert numbers(derived, "sum") == [gradient["edge/2"]["a", "b"], gradient["edge/2"]["c", "a"]]


def test_a_gradient_after_other_facts_is_that_of_the_new_run(derived):
    # goal = (1 + x) / (1 - x y) with x = 1/4 from a to b, y = 1/2 back
    x, y = 0.25, 0.5
    expected = [(1 + y) / (1 - x * y) ** 2, x * (1 + x) / (1 - x * y) ** 2]
    assert [line[1] for line in derived if line[0] == "new"] == ["a", "b"]
    assert [value for _, value in rows_of(derived, "new")] == pytest.approx(expected, rel=1e-9)


def test_a_gradient_of_an_earlier_run_says_so(derived):
    assert told(derived, "cycle:early").startswith("there is no run to differentiate")
    assert told(derived, "cycle:changed").startswith("there is no run to differentiate")
    assert numbers(derived, "cycle:gone") == [0.0, 0.0]
    assert told(derived, "cycle:again") == "the chart ran again since this gradient was made; ask for it anew"


def test_a_gradient_of_what_cannot_be_says_so(derived):
    assert told(derived, "cycle:stranger") == "an item is one that this chart looked up, and one here is not"
    assert told(derived, "cycle:infinite") == "a cotangent is not a finite number"


def test_a_run_that_a_limit_stopped_has_a_gradient_unless_it_stopped_inside_a_step(derived):
    assert numbers(derived, "cycle:stopped") == [pytest.approx(1 / (1 - 0.125) ** 2)]  # a component is popped whole
    assert told(derived, "steep:run") == "the run stopped: a value left the range of the semiring: y(1)"
    assert told(derived, "steep:partial").startswith("the run stopped in the middle of a step, so it has no gradient")


def test_facts_of_the_text_have_derivatives_too_but_were_not_added(derived):
    used = [("(b,c)", 1.0), ("(c,d)", 1.0), ("(a,d)", 0.0), ("(c,d)", 0.0), ("(a,b)", 0.0)]
    assert rows_of(derived, "axioms:edge/2") == used  # from a to b, the one of the text is shorter
    assert rows_of(derived, "axioms:path/1") == [(f"({v})", 1.0) for v in "adbc"]
    assert numbers(derived, "axioms:text") == [1.0, 4.5]


def test_derivatives_of_expectation_are_pairs(derived):
    assert numbers(derived, "pairs") == [0.25, 3.0]


def test_what_is_not_finite_is_named(derived):
    why = "the derivative with respect to"
    assert told(derived, "steep:item").startswith(f"{why} x(1) became NaN or infinite, and is the first that did")
    assert numbers(derived, "steep:zeros") == [0.0, 0.0]
    assert told(derived, "cycle:steep").startswith(f"{why} path(a) became NaN or infinite, and is the first that did")
    assert numbers(derived, "cycle:after") == [1e300, 0.0]
    assert told(derived, "cycle:fact").startswith(f"{why} edge(a,b) is NaN or infinite; ")


def test_a_weight_of_zero_around_a_cycle_has_the_derivative_of_the_fixed_point(derived):
    assert numbers(derived, "cycle:zero") == [0.75, 1.0]
    assert "does not settle" in told(derived, "cycle:unsettled")


def test_the_readme_shows_a_gradient(derived):
    assert [line for line in derived if line[0] in ("goal", "time")] == [["goal", "0.5"], ["time", "0.5"]]


def test_headers_say_why_there_is_no_gradient():
    cky = examples.source("cky").replace(":- semiring real.", "")
    assert "(no gradient: derivations of the count semiring are whole numbers" in any_header("x", cky, "count")
    assert "(no gradient: this header was written without)" in any_header("x", cky, gradient=False)
    assert "tape" not in any_header("x", cky, gradient=False)
    assert "tape" in any_header("x", cky)


def test_the_command_leaves_the_gradient_out_where_it_is_told_to(tmp_path):
    file = str(examples.write("cky", tmp_path))
    texts = [CliRunner().invoke(cli.app, ["cpp", file, *more]).stdout for more in ([], ["--no-gradient"])]
    assert ["derivatives gradient(" in text for text in texts] == [True, False]
