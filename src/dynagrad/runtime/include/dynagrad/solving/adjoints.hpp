// Adjoints of a solved component: from those of its values to those of the contributions from outside it.
//
// Systems have adjoints as doubles relative to their units; here they are converted from those of each semiring.
//
// What is solved, and how, is in `solving/solve.hpp` and `solving/columns.hpp`.
//
// The backward pass over solved components is by implicit differentiation (Christianson 1994). It differs from that of
// other stages with final items inside a component: adjoints from heads outside it are gathered first, the transposed
// system is solved for the adjoints of its items, and these are propagated to the antecedents in the system's weights. A
// program has `share` for the tables whose items drive joins inside their level: it calls these, backward.
#pragma once
#include <dynagrad/running/undo.hpp>
#include <dynagrad/solving/blocks.hpp>

namespace dynagrad {

// Turns the adjoints `g` of a component's values into those of what comes to them from outside.
template <class Back, class S, int K>
Solved solve_adjoints(System<S, K>& system, Array<typename Back::Adjoint>& g) {
  using Adjoint = typename Back::Adjoint;
  constexpr int parts = Parts<S>::count;
  Array<double> x;
  x.zeros(system.n * parts);
  system.measure();
  if constexpr (!Parts<S>::scaled || sizeof(Adjoint) == sizeof(double)) {  // plain numbers, or posteriors
    static_assert(sizeof(Adjoint) == parts * sizeof(double));
    memcpy((void*)x.data, (const void*)g.data, x.size * sizeof(double));
    const Solved how = system.adjoint(x);
    memcpy((void*)g.data, (const void*)x.data, x.size * sizeof(double));
    return how;
  } else {  // mantissas with exponents: an adjoint times its unit, relative to one exponent for all
    int64_t top = INT64_MIN;
    for (int64_t i = 0; i < system.n; i++) {
      const int64_t e = Log::is_far(g[i].e) || Log::is_far(system.unit(i)) ?
                            Log::far_times({Log::is_far(g[i].e) ? Log::mark : 1, g[i].e}, system.unit(i)).e :
                            g[i].e + system.unit(i).e;
      if (!Back::nothing(g[i]) && e > top) top = e;
    }
    const Log::Value most = Log::unit_of(top == INT64_MIN ? 0 : top);
    for (int64_t i = 0; i < system.n; i++) {
      const Log::Value unit = Log::over(most, system.unit(i));
      Parts<Back>::split(g[i], unit, x.data + i * parts);
    }
    const Solved how = system.adjoint(x);
    for (int64_t i = 0; i < system.n && how == Solved::fine; i++) {
      const Log::Value unit = Log::over(most, system.unit(i));
      g[i] = Parts<Back>::join(x.data + i * parts, unit);
    }
    return how;
  }
}

// The same for many columns; `g` has the shape of their values.
template <class Back, class S>
Solved solve_adjoints(Columns<S>& columns, Array<typename Back::Adjoint>& g) {
  const Solved how = columns.template solve_adjoints<Back>(g);
  Array<typename Back::Adjoint> one;
  for (int64_t j = 0; how == Solved::fine && j < columns.column.size; j++) {
    if (columns.done(j)) continue;
    columns.take(columns.value, j, columns.system.value), columns.take(g, j, one);
    const Solved alone = solve_adjoints<Back>(columns.system, one);
    if (alone != Solved::fine) return alone;
    columns.put(one, j, g);
  }
  return how;
}

// Propagates the adjoint of an item to the weights of the instances inside its component.
template <class P, class T>
DYNAGRAD_ALWAYS void share_item(P& p, T& table, int64_t cell) {
  if constexpr (requires { p.share(table, cell); }) p.share(table, cell);
}
// Undoes the pops of a solved component, and solves for the adjoints of its items.
template <class Stage, class P>
DYNAGRAD_FIRED void undo_component(P& p, const SolvedComponent& c) {
  using Back = typename P::Back;
  constexpr bool exposes = Stage::rolls_back && Stage::joins_itself;  // else a join finds items of earlier pops alone
  const int64_t m = c.columns, count = c.items / m;  // lines of the system, and their length
  auto& solver = solver_of<Stage>(p);
  const auto item = [&](int64_t i) { return p.tape.pops[c.begin + i] & ~again; };  // line after line
  const auto each = [&](auto f) {
    for (int64_t i = 0; i < c.items; i++)
      Stage::on(p, item(i), [&](auto& table, int64_t cell) { f(table, cell, i); });
  };
  const auto each_backwards = [&](auto f) {
    for (int64_t i = c.items; i-- > 0 && !p.halt;)
      Stage::on(p, item(i), [&](auto& table, int64_t cell) { f(table, cell, i); });
  };
  const Handle first = item(0);
  p.solving.first = Stage::on(p, first, [](auto& table, int64_t cell) { return table.solved[line_of(table, cell)]; });
  p.solving.count = count;
  each_backwards([&](auto& table, int64_t, int64_t i) { undo(p, table, item(i)); });
  Stage::blocks(p).system.open(count);
  if constexpr (Stage::in_lines) {
    solver.open();
    for (int64_t j = 0; j < m; j++) solver.column.push(j);
  }
  solver.value.clear(), solver.value.resize(c.items, Stage::Semiring::zero());
  Array<typename P::Adjoint> g{&p.account};
  bool nothing = true;
  each([&](auto& table, int64_t cell, int64_t i) {
    solver.value[i] = table.value[cell];
    g.push(table.g[cell]);
    nothing = nothing && Back::nothing(g[i]);
  });
  if (!nothing && !p.halt) {
    if (c.near_critical) return p.lose(near_critical, table_of(first), cell_of(first));
    ground_all<Stage>(p, count, [&](int64_t i) { return item(i * m); });  // an item of each line, no matter which
    if (p.halt) return;
    const Solved how = solve_adjoints<Back>(solver, g);
    if (how == Solved::halted) return;
    if (how != Solved::fine) return p.lose(unsettled, table_of(first), cell_of(first));
    each([&](auto& table, int64_t cell, int64_t i) {
      table.g[cell] = g[i];
      if constexpr (posteriors<P>) table.h[cell] = Back::share(g[i], table.value[cell]);
    });
    p.inside = true;
    if constexpr (exposes)
      for (int64_t i = 0; i < count; i++) expose_item<Stage>(p, item(i));
    each_backwards([&](auto& table, int64_t cell, int64_t) {
      share_item(p, table, cell);
      if constexpr (exposes) hide(p, table, cell);
    });
    p.inside = false;
  }
  if constexpr (Stage::in_lines) solver.close();
  p.solving.count = 0;
}

}  // namespace dynagrad
