// The life of an item, the same for every program.
//
//   1. It is *seen*: a contribution arrived (`add`; `arrive`, for those of a row). More of them are added; it waits in
//      its stage's agenda (`push`).
//   2. It is *popped*: it enters its indexes, and drives the joins of its stage, with the tape if one is kept.
//   3. It is *undone*, last popped first: its joins are visited in reverse, and it leaves its indexes.
//
// An item that may be popped again has a pending update beside its value, and starts again at 1.
//
// What a table, its stage and the program are is said by their traits (`traits.hpp`). What only the program knows it has
// functions for, by the type of a table (`codegen/rules/running/items.py`): `level_of` an item, `priority_of` one,
// `each_index` of one, whether it is `held_back`, and `drive`, which calls its joins. Stages that run in rounds are in
// `rounds.hpp`.
//
// It is long because the three steps are one story.
#pragma once
#include <dynagrad/running/traits.hpp>

namespace dynagrad {

// -- seen -------------------------------------------------------------------------------------------------------------

template <class P, class T>
DYNAGRAD_ALWAYS typename T::Stage::Level level(P& p, T& table, const int32_t* a) {
  if constexpr (T::Stage::forms > 0) return p.level_of(table, a);
  else return 0;
}
// How soon an item is popped; false where the run has to stop.
template <class P, class T, class Number>
DYNAGRAD_ALWAYS bool rank(P& p, T& table, int64_t cell, const int32_t* a, Number& priority) {
  using S = typename T::Semiring;
  constexpr Priority by = T::Stage::priority;
  const auto current = [&] {
    return table.popped.test(cell) ? T::plus(table.value[cell], table.pending[cell]) : table.pending[cell];
  };
  if constexpr (by == Priority::declared) {
    if constexpr (T::ranked) return p.priority_of(table, cell, a, priority);
    else priority = -HUGE_VAL;
  } else if constexpr (by == Priority::none) {
    priority = 0;
  } else if constexpr (by == Priority::value && P::of_user) {
    priority = {current()};
  } else if constexpr (P::plain) {
    if constexpr (by == Priority::size) priority = fabs(S::primal(table.pending[cell]));
    else priority = T::sign < 0 ? -S::primal(current()) : S::primal(current());
  } else {
    priority = S::size(S::zero(), table.pending[cell], current());
  }
  return true;
}
// An item waits, on a level. Those of a row wait together: `place` is its place among them.
template <class P, class T>
DYNAGRAD_FIRED void wait_on(P& p, T& table, int64_t cell, typename T::Stage::Level level, int64_t place) {
  auto& agenda = T::Stage::agenda(p, table);
  if constexpr (solves<T>)
    if (T::Stage::block(p, table).has(grown(table.node, line_of(table, cell), 0u))) return;  // it has its turn
  if constexpr (T::pops_rows) agenda.push(handle(table.number, cell - place), 1ull << place, level);
  else if constexpr (T::Stage::in_rows) agenda.push(handle(table.number, cell), 1, level);
  else agenda.push(handle(table.number, cell), level);
}
// An item waits by its priority, or in line; if it waits already, its priority may change.
template <class P, class T>
DYNAGRAD_RULE void wait(P& p, T& table, int64_t cell, const int32_t* a) {
  auto& agenda = T::Stage::agenda(p, table);
  if constexpr (T::Stage::strategy == Strategy::heap) {
    typename T::Stage::Rank priority{};
    if (!rank(p, table, cell, a, priority)) return;
    if constexpr (T::settles)
      if (p.settling) priority = T::Semiring::stir(table.tangents[cell]);
    agenda.push(handle(table.number, cell), level(p, table, a), priority);
  } else if (!table.place[cell]) {
    table.place[cell] = 1;
    agenda.push(handle(table.number, cell));
  }
}
// Pushes an item on the agenda of its stage.
template <class P, class T>
DYNAGRAD_ALWAYS void push(P& p, T& table, int64_t cell, const int32_t* a) {
  if constexpr (!by_level<T>) wait(p, table, cell, a);
  else if constexpr (T::pops_rows) wait_on(p, table, cell, level(p, table, a), within(table, a));
  else wait_on(p, table, cell, level(p, table, a), 0);
}
// What happens to items of a row that are new: a bit for each from a cell on.
template <class P, class T>
DYNAGRAD_STEP void arrive(P& p, T& table, int64_t cell, uint64_t cells) {
  const int64_t fresh = __builtin_popcountll(cells);
  table.items += fresh, p.report.items += fresh;
  if constexpr (T::pops_rows) {
    const auto a = arguments_of(table, cell);
    const int64_t place = within(table, a);
    T::Stage::agenda(p, table).push_from(handle(table.number, cell - place), place, cells, level(p, table, a));
  } else {
    for (; cells; cells &= cells - 1) {
      const int64_t here = cell + __builtin_ctzll(cells);
      push(p, table, here, arguments_of(table, here));
    }
  }
}
// The same, as row operations call it.
template <class P, auto table>
void arriving(ChartBase* chart, int64_t first, uint64_t cells) {
  P& p = *static_cast<P*>(chart);
  arrive(p, p.*table, first, cells);
}

// Where a contribution that is selected came from, or the factors of a product, are entered into the tape.
template <class P, class T>
DYNAGRAD_ALWAYS void record(P& p, T& table, int64_t cell, const typename T::Value& x, bool fresh) {
  if constexpr (T::selects)
    if (__builtin_expect(p.recording, 0) && (fresh || improves<P, T>(x, pending_of(table, cell))))
      grown(table.from, cell, 0u) = p.position;
  if constexpr (T::multiplies)
    if (p.recording) table.factors.add(cell, x);
}
// Tangents of a contribution that leaves a value as it is rest with the item.
template <class P, class T>
DYNAGRAD_ALWAYS void rest(P& p, T& table, int64_t cell, typename T::Value& x) {
  using S = typename T::Semiring;
  if (p.settings.stopped && table.stage >= p.settings.stopped - 1) return;
  if (!table.popped.test(cell) || !S::same(T::plus(table.value[cell], x), table.value[cell])) return;
  typename T::Value& tangents = grown(table.tangents, cell, S::zero());
  tangents = S::plus(tangents, S::tangents(x)), x = S::without_tangents(x);
}
// What a stage sends to itself is counted, and where the largest contribution came from.
template <class P, class T>
DYNAGRAD_ALWAYS void sent(P& p, T& table, int64_t cell, const typename T::Value& x) {
  using S = typename T::Semiring;
  const typename T::Value& value = table.value[cell];
  double moved, whole, alone;
  if constexpr (P::of_user) moved = S::apart(S::plus(value, x), value), whole = alone = 1.0;
  else moved = alone = size_of<P, T>(x), whole = size_of<P, T>(value);
  T::Stage::convergence(p, table).send(moved, whole, table.popped.test(cell));
  T::Stage::gains(p, table).came(table.parent, table.most, cell, p.driver, alone);
}

// Adds a contribution to an item.
template <class P, class T, class... A>
DYNAGRAD_RULE void add(P& p, T& table, typename T::Value x, A... arguments) {
  using S = typename T::Semiring;
  using Stage = typename T::Stage;
  const int32_t a[] = {arguments..., 0};
  if constexpr (T::truth) x = S::constant(S::primal(x) != 0);
  if constexpr (P::plain && P::directions && infinite_none<T>)
    if (S::primal(x) == T::none) x = S::constant(S::primal(x));  // nothing stays nothing
  if constexpr (P::resolves)
    if (!table.inside_by(T::order, a)) return;
  const int64_t cell = table.locate_by(T::order, a);
  if constexpr (P::resolves)
    if (!Stage::block(p, table).has(grown(table.node, cell, 0u))) return;  // it stays as it is
  if constexpr (T::clause) {
    if (table.seen.test(cell)) return;  // it is worth one, however often it is derived
    x = S::one();
  }
  if constexpr (Stage::unknowns && !T::sink)
    if (grown(table.solved, line_of(table, cell), 0u)) return;  // it is solved, and this is part of the solution
  constexpr bool improving = P::selective && T::waits && T::pops_again;
  if constexpr (improving) {  // most updates of a best-first search are no improvement
    if constexpr (P::ordered)
      if (table.popped.test(cell) && !agree(p, table, cell, table.value[cell], x)) return;
    if (table.popped.test(cell) && !S::better(x, table.value[cell])) return;
  }
  typename T::Value& here = pending_of(table, cell);
  bool fresh;
  if constexpr (sweeps<T>) {
    if (!table.seen.test(cell) && p.full()) return;
    fresh = !table.place[cell];
    table.place[cell] = 1;
    if (table.seen.set(cell)) table.items++, p.report.items++;
  } else if constexpr (!T::pops_again && !T::one_value) {
    if (__builtin_expect(table.seen.test(cell), 1)) {  // the usual case: one more for an item that is there
      if constexpr (P::by_value)
        if (!S::better(x, here)) return;  // few are better: what follows is for them
      if constexpr (P::keeps_tape) record(p, table, cell, x, false);
      if constexpr (P::ordered)
        if (!agree(p, table, cell, here, x)) return;
      if constexpr (Stage::grows && T::sink) {
        bool changes;
        if constexpr (P::selective) changes = S::better(x, here);
        else changes = !S::same(T::plus(here, x), here);
        if (changes) p.quiet = 0;
      }
      here = sum(table, cell, here, x);
      return;
    }
    if constexpr (P::keeps_tape && (T::selects || T::multiplies)) {
      if (p.full()) return;  // what takes memory comes before the item is there
      record(p, table, cell, x, true);
    }
    if (!p.enter(table, cell)) return;
    if constexpr (T::keeps_rest)
      if (cell < table.rest.size) table.rest[cell] = 0;
    here = x;
    if constexpr (T::waits) push(p, table, cell, a);
    return;
  } else {
    if (!table.seen.test(cell) && p.full()) return;
    fresh = table.seen.set(cell);
    if (fresh) table.items++, p.report.items++;
    if constexpr (P::ordered)
      if (!fresh && !agree(p, table, cell, here, x)) return;
  }
  if constexpr (improving)
    if (!fresh && !S::better(x, here)) return;
  if constexpr (T::one_value) {
    const double one = S::primal(here), other = S::primal(x);
    if (!fresh && one != other && !(isnan(one) && isnan(other))) return p.fail(two_values, table.number, cell);
  }
  if constexpr (P::keeps_tape && !sweeps<T>) record(p, table, cell, x, fresh);
  if constexpr (T::settles) rest(p, table, cell, x);
  if constexpr (Stage::estimates && !T::sink) sent(p, table, cell, x);
  if constexpr (T::selects && Stage::improves && !T::sink)
    if (Stage::gains(p, table).watching && (improving || fresh || improves<P, T>(x, here)))
      grown(table.parent, cell, (uint64_t)0) = p.driver + 1;
  here = fresh ? x : sum(table, cell, here, x);
  if constexpr (T::waits)
    if (!by_level<T> || fresh) push(p, table, cell, a);
}


// The same with arguments in an array.
template <int N, class F, class... A>
DYNAGRAD_ALWAYS void spread(const int32_t* a, F f, A... before) {
  if constexpr (sizeof...(A) == N) f(before...);
  else spread<N>(a, f, before..., a[sizeof...(A)]);
}
template <class P, class T>
DYNAGRAD_ALWAYS void add_at(P& p, T& table, const typename T::Value& x, const int32_t* a) {
  spread<T::arity>(a, [&](auto... each) { add(p, table, x, each...); });
}
// An infinite value of a fact is right for its item.
template <class T>
DYNAGRAD_ALWAYS void excuse(T& table, int64_t cell, const typename T::Value& x) {
  if (!isfinite(T::Semiring::primal(x))) grown(table.excused, cell, (uint8_t)0) |= 1;
}
// Adds the value of a fact to an item.
template <class P, class T>
DYNAGRAD_ALWAYS void add_fact(P& p, T& table, const typename T::Value& x, const int32_t* a) {
  if constexpr (T::excuses) excuse(table, table.locate_by(T::order, a), x);
  add_at(p, table, x, a);
}
// Adds the facts that are given for a predicate that rules define.
template <class P, class T>
DYNAGRAD_RULE void add_axioms(P& p, T& table) {
  for (int64_t at = 0; at < table.axioms.rows(); at++) {
    Arguments<T::arity> a;
    for (int i = 0; i < T::arity; i++) a.at[i] = table.axioms.column(i)[at];
    add_fact(p, table, table.axioms.value[at], a);
  }
  p.report.updates += table.axioms.rows();
}

// -- popped -----------------------------------------------------------------------------------------------------------

// Enters an item into its indexes, once.
template <class P, class T>
DYNAGRAD_ALWAYS void index(P& p, T& table, int64_t cell, const int32_t* a) {
  if constexpr (P::changes)
    if (!first_time(table.indexed, cell)) return;  // deleted items stay there
  p.each_index(table, a, [&](auto& by, const int32_t* key) { by.insert(key, cell); });
}
// Takes the last one that was entered out of its indexes.
template <class P, class T>
DYNAGRAD_ALWAYS void unindex(P& p, T& table, int64_t cell, const int32_t* a) {
  if constexpr (P::changes)
    if (!first_time(table.indexed, cell)) return;
  p.each_index(table, a, [&](auto& by, const int32_t* key) { by.remove(key); });
}
// Makes an item part of the chart, and takes that back.
template <class P, class T>
DYNAGRAD_RULE void expose(P& p, T& table, int64_t cell) {
  table.popped.set(cell);
  if constexpr (T::has_indexes) index(p, table, cell, arguments_of(table, cell));
}
template <class P, class T>
DYNAGRAD_RULE void hide(P& p, T& table, int64_t cell) {
  table.popped.clear(cell);
  if constexpr (T::has_indexes) unindex(p, table, cell, arguments_of(table, cell));
}

// In plain arithmetic facts may be infinite, and so may be values computed from them. An item that is infinite though
// all its antecedents are finite overflowed, or is the log of zero: an error. An item whose value is the aggregator's
// zero, such as a maximum over nothing possible, is not, unless a contribution overflowed to it, which bit 4 of the
// item's flags says: one of finite antecedents, by a rule without a pole, or of one that is infinite and not excused. A
// contribution that is infinite because an antecedent is *excuses* its head: it sets bit 1. Within a stage, where values
// still change, that antecedent has to be excused in turn, or nothing without bit 4, so that two items of a cycle do not
// excuse each other; if it is not, bit 2 says that the infinity came from it. `may_excuse` of `plan/traits.py` says
// which tables have flags.
//
// Whether a value is infinite though nothing excuses it.
template <class T>
DYNAGRAD_ALWAYS bool overflowed(const T& table, int64_t cell, const typename T::Value& x) {
  using S = typename T::Semiring;
  if (__builtin_expect(isfinite(S::primal(x)), 1)) return false;
  const uint8_t flags = flags_of(table.excused, cell);
  if constexpr (infinite_none<T>)
    if (S::primal(x) == T::none) return (flags & 4) != 0;
  return !(flags & 1);
}
// Whether a value is none of the semiring, or infinite without an excuse.
template <class T>
DYNAGRAD_ALWAYS bool wrong(const T& table, int64_t cell, const typename T::Value& x) {
  if constexpr (T::excuses) return !T::Semiring::valid(x) || overflowed(table, cell, x);
  else return !T::Semiring::valid(x);
}
// Ends the run where a value is invalid; counts values that underflowed, if they are `fresh`.
template <class P, class T>
DYNAGRAD_ALWAYS bool check(P& p, T& table, int64_t cell, const typename T::Value& x, bool fresh = true) {
  using S = typename T::Semiring;
  if (__builtin_expect(wrong(table, cell, x), 0)) return p.fail(bad_value, table.number, cell), false;
  if constexpr (P::underflows)
    if (fresh && S::tiny(x) && (x != 0 || !p.has_zero)) p.report.underflow++;
  return true;
}
// Whether two values of an item are the same number, or the second is no better than the first.
template <class P, class T>
DYNAGRAD_ALWAYS bool no_change(const typename T::Value& old, const typename T::Value& now) {
  using S = typename T::Semiring;
  if constexpr (P::selective) return !S::better(now, old);
  else if constexpr (P::plain) return S::primal(now) == S::primal(old);
  else return S::same(now, old);
}
// Whether an update changes nothing, or less than the tolerance.
template <class P, class T>
DYNAGRAD_ALWAYS bool negligible(P& p, T& table, const typename T::Value& update, const typename T::Value& old,
                                const typename T::Value& now, bool first) {
  using S = typename T::Semiring;
  if constexpr (T::settles)
    if (p.settling) return !S::moves(update, now);
  if (first) return false;
  if (S::same(now, old)) return true;
  double tolerance = p.settings.tolerance;
  if constexpr (T::Stage::estimates) tolerance = T::Stage::convergence(p, table).tolerance;
  if constexpr (P::of_user) return S::negligible(update, old, tolerance);
  else return S::negligible(update, now, tolerance);
}
template <class T>
constexpr bool watched = T::Stage::estimates || T::Stage::improves || T::Stage::grows;
// An update is sure to be propagated: watches how a stage converges, and whether anything still changes.
template <class P, class T>
DYNAGRAD_ALWAYS void watch(P& p, T& table, int64_t cell, const typename T::Value& update, const typename T::Value& old,
                           const typename T::Value& now, bool first) {
  using Stage = typename T::Stage;
  if constexpr (Stage::estimates) {
    double moved, whole = 1.0;
    if constexpr (P::of_user) moved = T::Semiring::apart(old, now);
    else moved = size_of<P, T>(update), whole = size_of<P, T>(now);
    Stage::convergence(p, table).pop(table.moved, cell, moved, whole, first);
  }
  if constexpr (Stage::estimates || Stage::improves) p.driver = handle(table.number, cell);
  if constexpr (Stage::grows) {
    if constexpr (!T::asked_for) p.quiet++;
    else p.quiet = no_change<P, T>(old, now) ? p.quiet + 1 : 0;
    if (p.quiet >= Stage::quiet) p.stop(at_quiet);
  }
}

// Pops an item whose value is final.
template <class P, class T>
DYNAGRAD_ALWAYS void pop_final(P& p, T& table, int64_t cell, const int32_t* a) {
  const typename T::Value now = table.value[cell];
  p.report.pops++;
  if constexpr (watched<T>) watch(p, table, cell, now, T::zero(), now, true);
  table.popped.set(cell);
  if constexpr (P::keeps_tape)
    if (p.recording) p.position = p.tape.popped(table.stage, handle(table.number, cell));
  if (__builtin_expect(!check(p, table, cell, now), 0)) return;
  if constexpr (T::has_indexes) index(p, table, cell, a);
  p.drive(table, cell, a, now, now, now, true);
}
// Pops an item whose update is added to its value; an update that changes nothing is dropped, or stays where it is.
template <class P, class T>
DYNAGRAD_ALWAYS void pop_update(P& p, T& table, int64_t cell, const int32_t* a) {
  using Value = typename T::Value;
  using Stage = typename T::Stage;
  constexpr int64_t most = 1000;  // pops while settling, for each of the run: more are an error
  if constexpr (Stage::strategy == Strategy::queue || Stage::strategy == Strategy::stack) table.place[cell] = 0;
  const bool first = !table.popped.test(cell);
  bool settling = false;
  if constexpr (T::settles) settling = p.settling;
  Value update = table.pending[cell];
  if constexpr (T::settles)
    if (settling) update = table.tangents[cell];
  const Value old = first ? T::zero() : table.value[cell];
  const Value now = first ? update : T::plus(old, update);
  if (__builtin_expect(!check(p, table, cell, now), 0)) return;
  if constexpr (!T::adds) {
    if (!first && no_change<P, T>(old, now)) {
      table.pending[cell] = T::zero();
      return;
    }
    update = now;  // it takes the place of the value
  } else if (negligible(p, table, update, old, now, first)) {
    return;
  }
  if constexpr (T::holds_back)
    if (p.held_back(table, cell, a, now, first)) return;
  if (!settling) p.report.pops++;
  if constexpr (T::settles)
    if (settling && ++p.settled > most * (p.report.pops + 16)) return p.fail(unsettled, table.number, cell);
  if constexpr (watched<T>) watch(p, table, cell, update, old, now, first);
  if constexpr (P::keeps_tape) {
    if (p.recording) {
      p.position = p.tape.popped(table.stage, handle(table.number, cell) | (first ? 0 : again));
      if (!first) p.tape.saved.push({old, update});
      if constexpr (T::selects) p.tape.from.push(table.from[cell]);
    }
  }
  table.value[cell] = now;
  if constexpr (T::settles) (settling ? table.tangents[cell] : table.pending[cell]) = T::zero();
  else table.pending[cell] = T::zero();
  if (first) {
    table.popped.set(cell);
    if constexpr (T::has_indexes) index(p, table, cell, a);
  }
  p.drive(table, cell, a, update, old, now, first);
}
template <class P, class T>
DYNAGRAD_STEP void pop(P& p, T& table, int64_t cell) {
  const auto a = arguments_of(table, cell);
  if constexpr (T::Stage::pops_once) pop_final(p, table, cell, a);
  else pop_update(p, table, cell, a);
}
// Pops items that stand side by side, a bit each from a cell on; those that are left where the run has to stop wait
// again.
template <class P, class T>
DYNAGRAD_STEP void pop_row(P& p, T& table, int64_t cell, uint64_t cells) {
  constexpr int last = T::order[T::arity - 1];
  const auto a = arguments_of(table, cell);
  const uint64_t waited = cells;
  if constexpr (T::at_once) {
    if ((cell & 7) == 0 && all_valid(table.value.data + cell, cells)) {
      p.report.pops += __builtin_popcountll(cells);
      table.popped.merge(cell, cells);
      if constexpr (P::keeps_tape)
        if (p.recording) p.tape.push_row(handle(table.number, cell), cells);
      cells = 0;
    }
  }
  for (; cells && !p.halt; cells &= cells - 1) {
    const int32_t i = __builtin_ctzll(cells);
    auto one = a;
    one.at[last] += i;
    pop_final(p, table, cell + i, one);
  }
  if constexpr (T::together) p.together.end(&p);
  if (__builtin_expect(cells != 0, 0)) T::Stage::agenda(p, table).push(handle(table.number, cell), cells, level(p, table, a));
  if constexpr (T::in_rows) {
    if (waited == cells) return;
    const int64_t place = within(table, a);  // not zero where items are popped one by one
    auto first = a;
    first.at[last] -= (int32_t)place;
    p.drive_row(table, cell - place, first, (waited & ~cells) << place);
  }
}

// Enters an item of another chart as it is, with its bound; false where there is no room for it.
template <class P, class T>
DYNAGRAD_RULE bool restore_item(P& p, T& table, const int32_t* a, const typename T::Value& x, double bound) {
  if (!table.inside_by(T::order, a)) return false;
  const int64_t cell = table.locate_by(T::order, a);
  table.value[cell] = x;
  if constexpr (T::bounded)
    if (bound != 0) grown(table.error_bound, cell, 0.0) = bound;
  if constexpr (T::excuses) excuse(table, cell, x);
  if (table.seen.set(cell)) table.items++, p.report.items++;
  table.popped.set(cell);
  if constexpr (T::has_indexes) index(p, table, cell, a);
  return true;
}
// Enters items of another chart as they are, with their bounds; false where there is no room for them.
template <class P>
DYNAGRAD_ALWAYS bool restore_items(P& p, int64_t number, const int32_t* rows, const uint64_t* words, const double* bounds, int64_t count) {
  using S = typename P::Semiring;
  bool room = true;
  p.stage = 0, p.begun = true;
  p.on_items(number, [&]<class T>(T& table) {
    for (int64_t n = 0; n < count && room; n++)
      room = restore_item(p, table, rows + n * T::arity, S::read(words + n * S::words), bounds ? bounds[n] : 0);
  });
  return room;
}
// Makes all items of a table that were reached part of the chart, at the end of a stage without pops. A stage that is
// resumed seals again, as items may have grown.
template <class P, class T>
DYNAGRAD_FIRED void seal(P& p, T& table) {
  constexpr bool counts = T::Stage::strategy == Strategy::once && !T::sink;
  if constexpr (!T::has_indexes && !T::excuses) {
    seal<typename T::Semiring>(p, table.number, table, table.value, counts, P::underflows);
  } else {
    const int64_t bound = table.bound();
    for (int64_t cell = table.seen.next(0, bound); cell >= 0; cell = table.seen.next(cell + 1, bound)) {
      const bool fresh = table.popped.set(cell);
      p.report.pops += fresh && counts;
      if constexpr (T::has_indexes)
        if (fresh) index(p, table, cell, arguments_of(table, cell));
      if (!check(p, table, cell, table.value[cell], fresh)) return;
    }
  }
}

}  // namespace dynagrad
