"""C++ headers out of memory: at any allocation a call reports it and the program goes on (8 s, one compilation).

The program counts its allocations, and lets each in turn fail. It prints a line for each kind of outcome with how often
it occurred.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen.rules.header.test_cpp import any_header, output_of

SOURCE = """
    :- semiring real.
    :- type parts(term).
    size(List,0.5) += parts(List).
    size(Rest,0.5) += size([_|Rest],0.5) * 0.5.
    near(X,N+1) += near(X,N) * step(X) for N < 30.
    near(X,0) += start(X).
    goal += size(nil,0.5).
    goal += near(_,30).
"""

MAIN = r"""
#include <string.h>
static const char* const kinds[] = {"whole", "chart", "run", "list", "gradient", "gradient list", "silent", "wrong"};
enum Kind { whole, chart_, run, list, gradient, gradient_list, silent, wrong };
static FILE* nowhere;

// All that a chart can do, once; how it ended.
static Kind once(bool look, double* goal, double* slope) {
  tight::chart chart;
  const tight::term deep = chart.list("a", 7, chart.real(2.5), chart.compound("f", "x", chart.cons(1, "rest")));
  chart.print(deep, nowhere);
  if (*chart.error()) return deep.number < 0 && chart.run() ? silent : chart_;
  chart.add_parts(deep, 2.0);
  char name[8] = "s00";
  for (int i = 0; i < 40; i++) {
    name[1] = (char)('0' + i / 10), name[2] = (char)('0' + i % 10);
    chart.add_start(name, 1.0);
    chart.add_step(name, 0.9);
  }
  if (*chart.error()) return chart.run() ? silent : chart_;
  if (!chart.run()) return *chart.error() ? run : silent;
  const auto found = chart.goal();
  if (*chart.error()) return chart_;
  if (!found.derived) return silent;
  const auto items = chart.all_near_2();
  if (!items) return items.size() == 0 && *chart.error() ? list : silent;
  if (items.size() != 40 * 31) return silent;
  auto derivatives = chart.gradient(found);
  if (!derivatives) return *derivatives.error() ? gradient : silent;
  const double d = derivatives.start("s07");
  if (!derivatives) return *derivatives.error() ? gradient : silent;
  for (int which = 0; which < 2; which++) {
    const auto facts = which ? derivatives.added_start_1() : derivatives.all_start_1();
    if (!facts) return !derivatives && *derivatives.error() ? gradient_list : silent;
    if (facts.size() != 40) return silent;
  }
  chart.print(deep, nowhere);
  if (*chart.error()) return chart_;
  if (look) *goal = found.value, *slope = d;
  return found.value == *goal && d == *slope ? whole : wrong;
}

int main() {
  nowhere = fopen("/dev/null", "w");
  double goal = 0, slope = 0;
  if (once(true, &goal, &slope) != whole) return 1;
  int count[8] = {}, lost = 0, n = 1;
  for (;; n++) {
    dynagrad::dg_fail_allocation = n;
    const Kind kind = once(false, &goal, &slope);
    const bool reached = dynagrad::dg_fail_allocation == 0;
    dynagrad::dg_fail_allocation = 0;
    dynagrad::Blocks::forget();
    lost += dynagrad::dg_live_allocations != 0;
    if (!reached) break;
    count[kind]++;
  }
  for (int k = 0; k < 8; k++) printf("%s\t%d\n", kinds[k], count[k]);
  printf("lost\t%d\ntried\t%d\n", lost, n - 1);
}
"""


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    folder: Path = tmp_path_factory.mktemp("cpp")
    lines = output_of(folder, {"tight": any_header("tight", SOURCE)}, MAIN, {}, ["-DDYNAGRAD_FAILURES"])
    return {label: int(count) for label, count in (line.split("\t") for line in lines)}


def test_each_call_says_that_memory_ended(ends: dict[str, int]) -> None:
    assert ends["tried"] > 100
    assert ends["chart"] > 20 and ends["run"] > 20
    assert ends["list"] and ends["gradient"] and ends["gradient list"]
    assert ends["silent"] == 0


def test_what_comes_out_all_the_same_is_right(ends: dict[str, int]) -> None:
    assert ends["wrong"] == 0


def test_nothing_is_lost(ends: dict[str, int]) -> None:
    assert ends["lost"] == 0
