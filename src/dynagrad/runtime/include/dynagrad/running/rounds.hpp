// Rounds of a stage in which all rules fire, over the chart of the last round, until nothing changes.
//
// What watches over them is `solving/convergence.hpp`, which compares the changes of two rounds.
#pragma once
#include <dynagrad/running/stages.hpp>
#include <dynagrad/solving/convergence.hpp>

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

// -- a round, and all of them -----------------------------------------------------------------------------------------

// Naive evaluation: all rules of the stage over the chart of the last round. Whether there is to be another.
template <class Stage, class P>
DYNAGRAD_FIRED bool run_round(P& p) {
  auto& convergence = Stage::convergence(p);
  bool changed = false;
  convergence.begin();
  if constexpr (P::keeps_tape)
    if (p.recording) p.tape.rounds.push(p.tape.pops.size), convergence.recorded++;
  fire_stage<Stage>(p);
  if (p.halt) return false;
  Stage::each(p, [&](auto& table) { changed |= take_round(p, table); });
  return changed || convergence.more(p.settings, p.report);
}
// Whether one more round finds a cycle among the items that are marked.
template <class Stage, class P>
DYNAGRAD_FIRED bool trace_cycle(P& p) {
  Stage::moving(p).watch = Moving::tracing;
  run_round<Stage>(p);
  return !p.halt && Stage::moving(p).around(p.cycle);
}
// Fails with a cycle of items that do not settle.
template <class Stage, class P>
DYNAGRAD_FIRED void fail_unsettled(P& p) {
  Stage::moving(p).begin(P::tables_in_all);
  for (int i = 0; i < Moving::rounds && !p.halt; i++) run_round<Stage>(p);
  const bool found = !p.halt && trace_cycle<Stage>(p);
  if (p.halt) p.report.partial = 1;
  else p.fail(diverges, found ? (int64_t)table_of(p.cycle[0]) : -1, found ? cell_of(p.cycle[0]) : -1);
}
// After the last round: fails for values that are NaN, or infinite and not excused; causes first, and with a cycle of
// infinite items, where there is one.
template <class Stage, class P>
DYNAGRAD_FIRED void check_finite(P& p) {
  int64_t number = -1, cell = -1;
  for (int later = 0; later < 2; later++)
    Stage::each(p, [&](auto& table) {
      if (cell < 0) number = table.number, cell = wrong_at(table, later);
    });
  if (cell < 0) return;
  Stage::moving(p).begin(P::tables_in_all);
  Stage::each(p, [&](auto& table) { mark_infinite(p, table); });
  const bool found = trace_cycle<Stage>(p);
  p.fail(bad_value, found ? (int64_t)table_of(p.cycle[0]) : number, found ? cell_of(p.cycle[0]) : cell);
}
template <class Stage, class P>
DYNAGRAD_ALWAYS void run_rounds(P& p, int64_t started) {
  while (!p.halt) {
    if (p.pause_here(started)) break;
    if (Stage::convergence(p).idle > Rounds::patience) {
      fail_unsettled<Stage>(p);
      break;
    }
    if (!run_round<Stage>(p)) {
      if (p.halt) p.report.partial = 1;
      break;
    }
  }
  if (!p.halt) check_finite<Stage>(p);
}

}  // namespace dynagrad
