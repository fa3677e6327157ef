// Items undone: the last step of their life, in a backward pass over the tape of a run.
//
// A pop is undone by the joins that it drove: what the forward pass sent to a head has an adjoint, which the backward
// pass reads, and from which it adds to those of the antecedents. `g` is the adjoint of an item's value, `ga` that of
// its pending update, where it has one. Where plus selects, an item waits for the instance that its update came from
// (`wait`: the pop that made it, `aim`: its value), and the first instance that fits takes the adjoint.
//
// The order in which stages, pops and joins are undone is in `sweep.hpp`. A program has `drive_back`, which calls the
// joins of an item, backward.
#pragma once
#include <dynagrad/running/item.hpp>
#include <dynagrad/running/tape.hpp>

namespace dynagrad {

template <class P>
constexpr bool posteriors = __is_same(typename P::Back, Posterior);

// An item waits for the instance that its update came from.
template <class P, class T>
DYNAGRAD_ALWAYS void await(P& p, T& table, int64_t cell, uint32_t position, const typename T::Value& value) {
  table.wait[cell] = position;
  table.aim[cell] = value;
  p.wanted.set(position);
}
// The same for all items that have an adjoint, where they are not popped.
template <class P, class T>
DYNAGRAD_RULE void await_all(P& p, T& table) {
  for (int64_t cell = 0; cell < table.bound(); cell++)
    if (!P::Back::nothing(table.g[cell])) await(p, table, cell, grown(table.from, cell, 0u), table.value[cell]);
}
// Checks the adjoints of items that are never popped, which are complete before their stage is undone.
template <class P, class T>
DYNAGRAD_RULE void complete(P& p, T& table) {
  for (int64_t cell = table.next(0); cell >= 0; cell = table.next(cell + 1)) {
    if (!P::Back::sound(table.g[cell])) return p.lose(bad_adjoint, table.number, cell);
    if constexpr (posteriors<P>) table.h[cell] = P::Back::share(table.g[cell], table.value[cell]);
  }
}
// The adjoint of an item that was popped once is complete.
template <class P, class T>
DYNAGRAD_ALWAYS void complete_item(P& p, T& table, int64_t cell, const typename P::Adjoint& update) {
  typename P::Adjoint& g = table.g[cell];
  g = P::Back::gather(g, update);
  if constexpr (posteriors<P>) table.h[cell] = P::Back::share(g, table.value[cell]);
  if constexpr (T::selects)
    if (!P::Back::nothing(g)) await(p, table, cell, table.from[cell], table.value[cell]);
  if (__builtin_expect(!P::Back::sound(g), 0)) p.lose(bad_adjoint, table.number, cell);
}
// Undoes the only pop of an item.
template <class P, class T>
DYNAGRAD_ALWAYS void undo_final(P& p, T& table, int64_t cell) {
  const auto a = arguments_of(table, cell);
  const typename T::Value now = table.value[cell];
  typename P::Adjoint update{}, unused{};
  if (!T::drives_choices || p.wanted.test(p.position)) p.drive_back(table, cell, a, now, now, now, true, update, unused);
  complete_item(p, table, cell, update);
  if constexpr (T::Stage::rolls_back) hide(p, table, cell);
}
// Undoes a pop of an item that may have been popped before.
template <class P, class T>
DYNAGRAD_ALWAYS void undo_update(P& p, T& table, int64_t cell, bool again) {
  using Back = typename P::Back;
  using Value = typename T::Value;
  const auto a = arguments_of(table, cell);
  const bool first = !again;
  const Value now = table.value[cell];
  Value old = T::zero(), update = now;
  if (again) p.saved_at--, old = p.tape.saved[p.saved_at].old, update = p.tape.saved[p.saved_at].update;
  typename P::Adjoint gupdate{}, gold{};
  if (!T::drives_choices || p.wanted.test(p.position))
    p.drive_back(table, cell, a, update, old, now, first, gupdate, gold);
  if constexpr (T::settles) {  // a pop while settling leaves the adjoint of the pending update as it is
    if (p.position > T::Stage::settles(p, table) - p.tape.begins[table.stage]) {
      if constexpr (P::plain) table.g[cell] = Back::gather(Back::gather(gupdate, table.g[cell]), gold);
      else table.g[cell] = Back::gather(table.g[cell], gold);
      table.value[cell] = old;
      return;
    }
  }
  typename P::Adjoint& g = table.ga[cell];
  g = Back::gather(gupdate, table.g[cell]);
  if constexpr (T::sums_up) table.gt[cell] = Back::gather(table.gt[cell], g);
  // in plain arithmetic gupdate is by the driver's new value, of which the old one is part
  if (first) table.g[cell] = typename P::Adjoint{};
  else if constexpr (T::selects) table.g[cell] = gold;
  else if constexpr (P::plain) table.g[cell] = Back::gather(g, gold);
  else table.g[cell] = Back::gather(table.g[cell], gold);
  if (again) table.value[cell] = old;
  if constexpr (T::selects) {
    const uint32_t from = p.tape.from[--p.from_at];
    table.wait[cell] = nowhere;
    if (!Back::nothing(g)) await(p, table, cell, from, update);
  }
  if (__builtin_expect(!Back::sound(g), 0)) p.lose(bad_adjoint, table.number, cell);
  if constexpr (T::Stage::rolls_back)
    if (first) hide(p, table, cell);
}
template <class P, class T>
DYNAGRAD_STEP void undo(P& p, T& table, Handle h) {
  if constexpr (T::Stage::pops_once) undo_final(p, table, cell_of(h));
  else undo_update(p, table, cell_of(h), h & again);
}
// Undoes pops that stand one after another on the tape and side by side in the table, the last of which is at t; returns
// the place of the first. What their rules have for them is added up before any of their own adjoints is complete:
// nothing on their level needs that.
template <class P, class T>
DYNAGRAD_STEP int64_t undo_row(P& p, T& table, int64_t t) {
  constexpr int64_t most = 64;
  constexpr int last = T::order[T::arity - 1];
  int64_t cells[most], count = 0;
  typename P::Adjoint updates[most], unused{};
  const int64_t cell = cell_of(p.tape.pops[t]), begin = p.tape.begins[table.stage];
  const auto a = arguments_of(table, cell);
  const int64_t row = cell - (int64_t)a[last] + table.range[T::arity - 1].low;
  for (;;) {
    const int64_t here = cells[count] = cell_of(p.tape.pops[t]);
    typename P::Adjoint& update = updates[count++];
    update = {};
    p.position = (uint32_t)(t + 1 - begin);
    auto one = a;
    one.at[last] += (int32_t)(here - cell);
    const typename T::Value now = table.value[here];
    p.drive_back(table, here, one, now, now, now, true, update, unused);
    if constexpr (T::Stage::rolls_back) hide(p, table, here);
    if (p.halt || count == most || t == begin) break;
    const Handle before = p.tape.pops[t - 1];
    if (table_of(before) != (uint32_t)table.number || (uint64_t)(cell_of(before) - row) >= (uint64_t)table.row_length()) break;
    t--;
  }
  if constexpr (T::together_back) p.back_together.end();
  for (int64_t i = 0; i < count; i++) complete_item(p, table, cells[i], updates[i]);
  return t;
}
// Undoes what the facts of a predicate that rules define added.
template <class P, class T>
DYNAGRAD_RULE void undo_axioms(P& p, T& table) {
  using Back = typename P::Back;
  using S = typename T::Semiring;
  for (int64_t at = 0; at < table.axioms.rows(); at++) {
    Arguments<T::arity> a;
    for (int i = 0; i < T::arity; i++) a.at[i] = table.axioms.column(i)[at];
    const int64_t cell = table.locate_by(T::order, a);
    const typename T::Value& x = table.axioms.value[at];
    if constexpr (T::selects) {
      if (table.wait[cell] != 0 || S::primal(x) != S::primal(table.aim[cell])) continue;
      table.wait[cell] = nowhere;
    }
    typename P::Adjoint g;
    if constexpr (posteriors<P>) g = Back::of(table.h[cell], x);
    else if constexpr (T::keeps_updates) g = table.ga[cell];
    else g = table.g[cell];
    if constexpr (T::multiplies) g = Back::scale(g, table.factors.others(cell, x));
    if constexpr (T::keeps_total) g = S::share(g, x, table.total[cell]);
    else if constexpr (T::keeps_rest) g = S::share(g, x, table.value[cell], rest_of(table.rest, cell));
    table.g_axioms[at] = Back::gather(table.g_axioms[at], g);
  }
}
// Rolls an item forward again.
template <class P, class T>
DYNAGRAD_RULE void redo(P& p, T& table, Handle h) {
  const int64_t cell = cell_of(h);
  if (!(h & again)) {
    if (!table.popped.test(cell)) expose(p, table, cell);
    return;
  }
  const auto& saved = p.tape.saved[p.saved_at++];
  if constexpr (!sweeps<T> && T::sums) table.value[cell] = T::plus(saved.old, saved.update);
  else table.value[cell] = saved.update;
}

// -- rounds -----------------------------------------------------------------------------------------------------------

// Before a round is undone: adjoints are those of its values.
template <class P, class T>
DYNAGRAD_RULE bool begin_round(P& p, T& table) {
  using Back = typename P::Back;
  for (int64_t cell = 0; cell < table.bound(); cell++) {
    table.ga[cell] = table.g[cell];
    table.g[cell] = {};
    table.gt[cell] = Back::gather(table.gt[cell], table.ga[cell]);
    if (!Back::sound(table.gt[cell]) && table.seen.test(cell)) return p.lose(bad_adjoint, table.number, cell), false;
    if constexpr (T::keeps_total) table.total[cell] = table.value[cell];
    if constexpr (T::selects) {
      table.wait[cell] = Back::nothing(table.ga[cell]) ? nowhere : 0;
      table.aim[cell] = table.value[cell];
    }
  }
  return true;
}
// Takes the value of a round back.
template <class P, class T>
DYNAGRAD_RULE void undo_in_round(P& p, T& table, Handle h) {
  if (h & again) table.value[cell_of(h)] = p.tape.saved[--p.saved_at].old;
  else hide(p, table, cell_of(h));
}

// -- updates that rest, see `sweep.hpp` -------------------------------------------------------------------------------

// An item's resting updates need an adjoint.
DYNAGRAD_ALWAYS void need(Array<Handle>& needed, uint8_t& before, Handle h) {
  if (!before) before = 1, needed.push(h);
}
// One step of the solution for the adjoint of an item's resting updates; whether it stands still.
template <class P, class T>
DYNAGRAD_RULE bool solve_rest(P& p, T& table, int64_t cell) {
  using Back = typename P::Back;
  const auto a = arguments_of(table, cell);
  const typename T::Value now = table.value[cell], update = T::zero();
  typename P::Adjoint gupdate{}, gold{};
  p.drive_back(table, cell, a, update, now, now, false, gupdate, gold);
  const typename P::Adjoint g = Back::gather(table.g[cell], gupdate);
  if (!Back::sound(g)) return p.lose(unsettled, table.number, cell), true;
  const bool stands = stand_still(g, table.resting[cell]);
  table.resting[cell] = g;
  return stands;
}

}  // namespace dynagrad
