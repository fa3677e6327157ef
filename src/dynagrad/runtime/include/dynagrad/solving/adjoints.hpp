// Adjoints of a solved component: from those of its values to those of the contributions from outside it.
//
// Systems have adjoints as doubles relative to their units; here they are converted from those of each semiring.
//
// What is solved, and how, is in `solving/solve.hpp` and `solving/columns.hpp`; which adjoints go in and come out, in generated code.
#pragma once
#include <dynagrad/solving/columns.hpp>

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

}  // namespace dynagrad
