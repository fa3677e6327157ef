"""Headers of programs, used from C++ as a user would: terms, facts, a run, lookups, and errors that are said.

All headers are compiled into one C++ program, which prints what the tests look at.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import dynagrad as dg
import examples
from dynagrad import cli, demo
from dynagrad.encoding import kinds, program_constants
from dynagrad.native import cache, toolchain
from dynagrad.plan.header import assumed_plan, cxx_name, header
from dynagrad.terms import Term, term_text

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
    return dg.Program(source, semiring, functions)._setting


def any_header(name: str, source: str, semiring: str | None = None) -> str:
    """The header of a program for any facts."""
    setting = setting_of(source, semiring)
    plan = assumed_plan(setting.rules, setting.domains, kinds(setting.rules, setting.domains, {}), setting.options)
    return header(plan, name, program_constants(setting.rules, setting.domains))


def fitted_header(name: str, source: str, facts: Mapping[str, Any]) -> str:
    """The header of a program for facts like these."""
    program = dg.Program(source)
    setting = program._setting
    plan = cli._header_plan(program, program.bind(facts)._binding.given, cli.Values.weights)
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
        "earley": any_header("earley", examples.source("earley")),
        "ordered": fitted_header("ordered", PATHS, {"start/1": [("a", 0.0)], "edge/2": ARCS}),
        "names": any_header("names", NAMES),
        "lists": any_header("lists", LISTS),
        "far": any_header("far", ":- type pair(int,int). " + OUTSIDE),
    }
    for name, text in headers.items():
        (folder / f"{name}.hpp").write_text(text)
    pieces = {
        "PLAIN": facts_in_cxx("chart", words),
        "PLAIN_ITEMS": [printed("chart", "plain", "constit/3")],
        "FITTED": facts_in_cxx("chart", words),
        "COUNTS": facts_in_cxx("chart", counted),
        "EARLEY": facts_in_cxx("chart", examples.facts("earley")),
        "EARLEY_ITEMS": [printed("chart", "earley", "constit/3")],
        "LISTS_ITEMS": [printed("chart", "lists", "size/2"), printed("chart", "lists", "length/1")],
    }
    main = "".join(f'#include "{name}.hpp"\n' for name in headers) + MAIN
    for name, lines in pieces.items():
        main = main.replace(f"@{name}@", "\n    ".join(lines))
    tool = toolchain.compiler()
    options = [f for f in toolchain.flags(tool, 1) if f not in ("-shared", "-fPIC", "-fvisibility=hidden")]
    home = cache.folder()
    zig_cache = None if home is None else home / "zig"
    program = folder / "main"
    toolchain.compile_source(main, program, options=[*options, f"-I{folder}"], tool=tool, zig_cache=zig_cache)
    done = subprocess.run([program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    return {label: rest for label, *rest in (line.split("\t") for line in done.stdout.splitlines())}


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
    assert items(said, "earley:constit") == pytest.approx(python_items("earley", "constit"), rel=1e-12)


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
    program = dg.Program(":- function h/1. a(X) = h(b(X)).", functions={"h": lambda x: x})
    plan = program.run({"b/1": [("x", 1.0)]})._prepared.compiled.plan
    with pytest.raises(dg.Error, match="can be written only of programs without"):
        header(plan, "x", {})


def test_axioms_nested_deeply_are_data():
    deep = "f(" * 140 + "a" + ")" * 140
    assert "node_kind" in any_header("deep", f"goal += p(_X). p({deep}) = 1.")


def test_symbols_of_any_bytes_are_kept(tmp_path: Path):
    text = any_header("x", "goal += p('\\n\"\\\\é?').")
    assert r'"\012\042\134\303\251\077"' in text
