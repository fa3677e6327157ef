// Rounds of a stage in which all rules fire, over the chart of the last round, until nothing changes.
//
// What watches over them is `solving/convergence.hpp`; the rules are in generated code
// (`codegen/rules/running/stages.py`).
#pragma once
#include <dynagrad/running/item.hpp>

namespace dynagrad {

// The values of a round, all of which were computed from those of the last one, take their place. Whether an item is new.
template <class P, class T>
DYNAGRAD_RULE bool take_round(P& p, T& table) {
  using S = typename T::Semiring;
  auto& moving = T::Stage::moving(p, table);
  bool changed = false;
  for (int64_t cell = 0; cell < table.bound(); cell++) {
    if (!table.place[cell]) continue;
    table.place[cell] = 0;
    const typename T::Value now = table.pending[cell], old = table.value[cell];
    if constexpr (!T::sink) {
      const bool first = table.popped.set(cell);
      if constexpr (P::keeps_tape) {
        if (p.recording) {
          p.tape.pops.push(handle(table.number, cell) | (first ? 0 : again));
          if (!first) p.tape.saved.push({old, now});
        }
      }
      if constexpr (T::has_indexes)
        if (first) index(p, table, cell, arguments_of(table, cell));
      changed = changed || first;
      // a value that is infinite or NaN now may be finite in the next round
      if (!first) T::Stage::convergence(p, table).move(S::primal(now), S::primal(old));
      if (moving.watch == moving.marking && S::primal(now) != S::primal(old)) moving.mark(handle(table.number, cell));
      p.report.pops++;
    }
    table.value[cell] = now;
  }
  return changed;
}
// After the last round: the first item whose value is NaN, or infinite and not excused; -1 if there is none. Those that
// are so because of others come `later`.
template <class T>
DYNAGRAD_RULE int64_t wrong_at(const T& table, bool later) {
  for (int64_t cell = 0; cell < table.bound(); cell++) {
    if constexpr (T::excuses)
      if (!later && flags_of(table.excused, cell) & 2) continue;
    const typename T::Value& x = table.value[cell];
    if (table.seen.test(cell) && wrong(table, cell, x)) return cell;
  }
  return -1;
}
// Marks all infinite items, to find a cycle of them.
template <class P, class T>
DYNAGRAD_RULE void mark_infinite(P& p, T& table) {
  for (int64_t cell = 0; cell < table.bound(); cell++) {
    const typename T::Value& x = table.value[cell];
    if (!table.seen.test(cell) || isnan(T::Semiring::primal(x))) continue;
    if (wrong(table, cell, x)) T::Stage::moving(p, table).mark(handle(table.number, cell));
  }
}

}  // namespace dynagrad
