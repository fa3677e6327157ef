// Stages: how each begins, with axioms and rules that fire once, is run, and ends; and all of them in a row.
//
// A stage is a type with traits (`traits.hpp`). What only the program knows it has functions for
// (`codegen/rules/running/stages.py`): `each`, which calls a function with each of its tables; `on`, which calls one with
// the table of an item that is popped, and its cell; `fire`, which calls the joins that no item drives; and its parts of
// the class, such as its `agenda`. Rounds are in `rounds.hpp`, blocks in `solving/blocks.hpp`.
//
// Where a stage iterates sums, updates below a tolerance are held back. The remainder is estimated as the largest update
// that an item holds back, relative to its value, times the geometric series 1 / (1 - rate), where the rate is the sum of
// what pops send back into the stage over the sum of what was popped, both relative to the items' values, in the last
// window of pops. If no tolerance was given, it is lowered, and the updates that were held back are propagated, once at
// least, and until the remainder is below it (`refine`); how far values move tells how what was held back adds up along
// chains of items, which a rate does not know of. The estimate at the end is the chart's `error_bound`. A rate that stays
// at one or above means divergence.
//
// Best-first search has no remainder, but may never end: values may get better each time around a cycle. Once items are
// popped much more often than there are items, each improvement records the item that it came from; these parents form a
// cycle only where going around it is a gain (negative cycle detection, as for Bellman and Ford's algorithm; Cherkassky
// and Goldberg 1999), which is looked for now and then. Where right sides do more than add, as `2 * x(I)` or `exp(x(I))`,
// parents may close a cycle that settles; there they are followed only once a number overflowed, or, in a semiring of
// the user's, after a million pops. Where a sum diverges, too, parents lead from its item to a cycle: the largest
// contribution to an item says where it came from. Where arguments may grow without bound, a run stops after a million
// pops in a row that changed no digit.
#pragma once
#include <dynagrad/running/item.hpp>

namespace dynagrad {

template <class Stage>
constexpr bool has_agenda = Stage::strategy != Strategy::once && Stage::strategy != Strategy::sweep;

// -- what a stage has, in a chart that is new --------------------------------------------------------------------------

template <class Stage, class P>
DYNAGRAD_ALWAYS void open_stage(P& p) {
  constexpr bool heap = Stage::strategy == Strategy::heap, solves = Stage::strategy == Strategy::solve;
  auto& agenda = Stage::agenda(p);
  if constexpr (solves || Stage::strategy == Strategy::levels) agenda.open(Stage::span(p));
  else agenda.open();
  if constexpr (heap) {
    agenda.places.zeros(P::tables_in_all);
    Stage::each(p, [&]<class T>(T& table) {
      if constexpr (!T::sink) agenda.places[table.number] = &table.place;
    });
  } else if constexpr (solves) {
    Stage::blocks(p).levels = Stage::span(p);
    Stage::each(p, [&]<class T>(T& table) {
      if constexpr (T::bounded) p.tables[table.number].bounds = &table.error_bound;
    });
  }
}

// -- how a stage begins -----------------------------------------------------------------------------------------------

// Axioms, and rules that no item drives.
template <class Stage, class P>
DYNAGRAD_ALWAYS void fire_stage(P& p) {
  if constexpr (Stage::has_axioms)
    Stage::each(p, [&]<class T>(T& table) {
      if constexpr (T::has_axioms) add_axioms(p, table);
    });
  Stage::fire(p);
}
template <class Stage, class P>
DYNAGRAD_ALWAYS void begin_stage(P& p) {
  if constexpr (P::keeps_tape) {
    if (p.recording) p.tape.begin();
    p.position = 0;
  }
  if constexpr (Stage::strategy != Strategy::sweep && !P::resolves) fire_stage<Stage>(p);
  if (p.halt) p.report.partial = 1;
  p.begun = true;
}
// Where a stage is resumed, too.
template <class Stage, class P>
DYNAGRAD_ALWAYS void begin_watching(P& p) {
  if constexpr (Stage::estimates) Stage::convergence(p).begin(p.settings);
  auto& parents = Stage::gains(p).parents;
  parents.zeros(P::tables_in_all);
  Stage::each(p, [&]<class T>(T& table) {
    if constexpr (Stage::estimates && !T::sink) table.moved.clear();
    if constexpr (!T::sink) parents[table.number] = &table.parent;
  });
}

// -- how it goes on ---------------------------------------------------------------------------------------------------

// At the end of a stage: propagates what was held back under a lower tolerance, if necessary.
template <class Stage, class P>
DYNAGRAD_RULE bool refine(P& p) {
  auto& convergence = Stage::convergence(p);
  // what pruning or a beam holds back is left where it is
  const auto each = [&](auto f) {
    Stage::each(p, [&]<class T>(T& table) {
      if constexpr (!T::sink && !T::holds_back)
        for (int64_t cell = table.next(0); cell >= 0; cell = table.next(cell + 1)) f(table, cell);
    });
  };
  convergence.look();
  each([&]<class T>(T& table, int64_t cell) {
    const auto& update = table.pending[cell];
    const auto& value = table.value[cell];
    if constexpr (P::of_user) convergence.add(table.moved, cell, T::Semiring::apart(T::plus(value, update), value), 1.0);
    else convergence.add(table.moved, cell, size_of<P, T>(update), size_of<P, T>(value));
  });
  if (!convergence.lower(p.settings, p.report)) return false;
  each([&]<class T>(T& table, int64_t cell) {
    if (!no_change<P, T>(table.value[cell], T::plus(table.value[cell], table.pending[cell])))
      push(p, table, cell, arguments_of(table, cell));
  });
  return Stage::agenda(p).waiting() > 0;
}
// At the end of a stage: puts items with tangents that rest on the agenda, once; whether there are any.
template <class Stage, class P>
DYNAGRAD_RULE bool settle(P& p) {
  if (p.settling) return p.settling = false;
  Stage::each(p, [&]<class T>(T& table) {
    if constexpr (T::settles)
      for (int64_t cell = 0; cell < table.tangents.size && cell < table.bound(); cell++) {  // arrays have spare elements
        if (!T::Semiring::moves(table.tangents[cell], table.value[cell])) continue;
        p.settling = true;
        push(p, table, cell, arguments_of(table, cell));
      }
  });
  if constexpr (P::keeps_tape)
    if (p.settling && p.recording) Stage::settles(p) = p.tape.pops.size;
  return p.settling;
}
// After the pop of an item: looks for divergence, and now and then for a cycle of gain.
template <class Stage, class P>
DYNAGRAD_ALWAYS void watch_gains(P& p, Handle h) {
  if constexpr (Stage::estimates)
    if (Stage::convergence(p).no_nearer(p.report.items)) p.fail(diverges, table_of(h), cell_of(h));
  auto& gains = Stage::gains(p);
  if constexpr (Stage::estimates || !Stage::gains_around || P::ordered) gains.watch(p.report, p.failed, p.cycle);
  if constexpr (Stage::gains_around) {
    if constexpr (P::ordered)  // a gain may come to an end by itself
      if (p.report.pops < gains.late || p.report.pops < gains.often * p.report.items) return;
    if (p.report.pops >= gains.next && gains.look(p.report, p.cycle))
      p.fail(diverges, table_of(p.cycle[0]), cell_of(p.cycle[0]));
  }
}
// Pops items until none waits.
template <class Stage, class P>
DYNAGRAD_ALWAYS void run_pops(P& p, int64_t started) {
  auto& agenda = Stage::agenda(p);
  Handle next = 0;
  while (!p.halt) {
    if (p.pause_here(started)) break;
    uint64_t cells = 0;
    bool found;
    if constexpr (Stage::in_rows) found = agenda.pop(next, cells, p.one_by_one());
    else found = agenda.pop(next);
    if (__builtin_expect(!found, 0)) {
      constexpr bool settles = Stage::rests && P::directions;
      if constexpr (Stage::estimates)
        if (!(settles && p.settling) && refine<Stage>(p)) continue;
      if constexpr (settles)
        if (settle<Stage>(p)) continue;
      break;
    }
    const int64_t pops = p.report.pops;
    Stage::on(p, next, [&]<class T>(T& table, int64_t cell) DYNAGRAD_LAMBDA {
      if constexpr (Stage::in_rows && T::pops_rows) pop_row(p, table, cell, cells);
      else pop(p, table, cell);
    });
    if (p.halt && p.report.pops != pops) p.report.partial = 1;
    if constexpr (watches_gains<Stage>) watch_gains<Stage>(p, next);
    if constexpr (Stage::pops_once || Stage::priority == Priority::value || Stage::priority == Priority::declared)
      p.stop_after(next);
  }
}
// Takes blocks of items until there are no more.
template <class Stage, class P>
DYNAGRAD_ALWAYS void run_blocks(P& p, int64_t started) {
  auto& block = Stage::blocks(p).block;
  while (!p.halt) {
    if (p.pause_here(started)) break;
    const bool due = block.done() || !block.arranged;
    if constexpr (P::resolves) {
      if (due && !gather_again<Stage>(p)) break;
      step_again<Stage>(p);
    } else {
      if (due && !gather<Stage>(p)) break;
      step<Stage>(p);
    }
  }
}

// -- a stage, and all of them -----------------------------------------------------------------------------------------

// Runs a stage to its end, or until something halts it.
template <class Stage, class P>
DYNAGRAD_RULE void run_stage(ChartBase* chart, int64_t started) {
  P& p = *static_cast<P*>(chart);
  if (!p.begun) begin_stage<Stage>(p);
  if constexpr (watches_gains<Stage>) begin_watching<Stage>(p);
  if constexpr (Stage::strategy == Strategy::sweep) run_rounds<Stage>(p, started);
  else if constexpr (Stage::strategy == Strategy::solve) run_blocks<Stage>(p, started);
  else if constexpr (has_agenda<Stage>) run_pops<Stage>(p, started);
  if constexpr (Stage::seals)
    Stage::each(p, [&]<class T>(T& table) {
      if constexpr (T::sink || !has_agenda<Stage>) seal(p, table);
    });
  p.report.pending = 0;
  if constexpr (has_agenda<Stage>) p.report.pending = Stage::agenda(p).waiting();
  if constexpr (Stage::strategy == Strategy::solve) p.report.pending += waiting<Stage>(p);
  if (!p.halt) p.stage++, p.begun = false;
}

// In programs of thousands of rules: what tells stages apart whose tables, one for each, have the same type.
template <class P>
struct StageEntry {
  int32_t table;
  void (P::*fire)();
  void (P::*fire_back)();
};
// Such a stage: the one that is run or undone, whose rules fire once.
template <class Base, class T>
struct Once : Base {
  template <class P, class F>
  DYNAGRAD_ALWAYS static void each(P& p, F&& f) { f(static_cast<T&>(*p.tables[P::entries[p.at_hand].table].items)); }
  template <class P>
  DYNAGRAD_ALWAYS static void fire(P& p) { (p.*P::entries[p.at_hand].fire)(); }
  template <class P>
  DYNAGRAD_ALWAYS static void fire_back(P& p) {
    if (const auto back = P::entries[p.at_hand].fire_back) (p.*back)();
  }
};

template <class Stage, class P>
void undo_stage(ChartBase* chart);  // `sweep.hpp`
template <class Stage, class P>
void redo_stage(ChartBase* chart);

// The stages of a program, in their order.
template <class... Each>
struct StageList {
  static constexpr int64_t count = sizeof...(Each);
  static constexpr bool any(const bool (&of)[count + 1]) {
    for (bool x : of)
      if (x) return true;
    return false;
  }
  static constexpr bool rests = any({Each::rests..., false}), rolls_back = any({Each::rolls_back..., false});
  template <class P>
  static constexpr ChartBase::RunStage run[] = {run_stage<Each, P>..., nullptr};
  template <class P>
  static constexpr void (*undo[])(ChartBase*) = {undo_stage<Each, P>..., nullptr};
  template <class P>
  static constexpr void (*redo[])(ChartBase*) = {redo_stage<Each, P>..., nullptr};
  // Calls a function with each as a template argument.
  template <class F>
  DYNAGRAD_ALWAYS static void each(F f) {
    const int done[] = {(f.template operator()<Each>(), 0)..., 0};
    (void)done;
  }
};
template <class P>
DYNAGRAD_ALWAYS void open_stages(P& p) {
  P::Stages::each([&]<class Stage>() DYNAGRAD_LAMBDA {
    if constexpr (has_agenda<Stage>) open_stage<Stage>(p);
  });
}
template <class P>
void run_program(P& p) {
  p.run_stages(P::Stages::template run<P>, P::Stages::count);
  if constexpr (P::resolves) worst_bound(p);
  if constexpr (P::keeps_tape) p.report.tape = p.tape.bytes();
}

}  // namespace dynagrad
