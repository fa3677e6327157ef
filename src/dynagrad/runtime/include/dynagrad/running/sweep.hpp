// The backward pass of a program: reverse-mode differentiation of a run, over its tape of pops.
//
// The algorithm is back-propagation through Dyna's agenda (the online appendix to Eisner, Goldlust and Smith 2005). The
// tape is traversed from its end. Each pop is undone: the joins that it drove are run once more, and where the forward
// pass sent an update to a head, the backward pass reads the adjoint of that update and adds to the adjoints of the
// antecedents. Then the chart is rolled back to its state before the pop. At the end it is rolled forward again.
//
// How an item is undone is in `undo.hpp`, solved components are in `solving/adjoints.hpp`; here is the order in which
// stages, pops and joins are undone. What only the program knows it has functions for
// (`codegen/rules/backward/sweep.py`): `drive_back`, which calls the joins that an item drove; a stage's `fire_back`,
// those that no item drove; and where some joins were made for whole rows, `undo_rows`, and `in_rows_back`, which has
// what waits for them while a stage is undone.
//
// Updates that leave their item's value as it is *rest* with it: they are not propagated, as values would not change, and
// around a cycle propagation would never end. But their derivatives may be nonzero: where an edge of weight zero closes a
// cycle, the sum over paths still grows with that weight. Such an update has the adjoint of a constant that is added to
// its item when the stage has ended, and settles: the solution of `a = g + J' a`, where g are the adjoints of values at
// that time, and J the derivatives of items by items. A first pass finds out which items need it. A second one solves for
// it at the end of the stage, by rounds of the joins (a fixed-point iteration). Forward, the tangents of such updates are
// kept in an array of their own, and a stage settles at its end (`stages.hpp`). In a stage that is stopped they are
// pending, like any other. An update that the tolerance holds back changes its item; it is part of neither value nor
// derivative, and does not rest. Nor do updates of items that select (one that changes nothing was not chosen), nor those
// in `log` where derivatives are by logs, and those of a weight of zero are zero; outside values, which are by weights,
// have them.
//
// The sweep of `autodiff/accumulation.py`, over a let-series, is another algorithm: there each value is computed once,
// here items are popped again, and the chart is rolled back.
#pragma once
#include <dynagrad/outside/cotangents.hpp>
#include <dynagrad/running/stages.hpp>
#include <dynagrad/running/undo.hpp>

namespace dynagrad {

template <class P>
using CotangentsOf = Cotangents<typename P::Semiring, typename P::Back>;
template <class P>
void open_adjoints(P& p, bool room);

// -- updates that rest ------------------------------------------------------------------------------------------------

// Solves for the adjoints of updates that rest, at the end of a stage. The joins are run backward from pops with a zero
// update. All contributions of such a pop are zero, so they rest: the joins propagate the adjoints of resting updates,
// and request those that are missing.
template <class Stage, class P>
DYNAGRAD_FIRED void solve_resting(P& p) {
  constexpr int64_t most = 1000;  // steps for each pop of the run: more are an error
  const int64_t n = p.at_hand;
  const auto& needed = Stage::needed(p);
  if (!needed.size || p.report.stage <= n) return;
  const auto stands_still = [&](Handle h) {
    return Stage::on(p, h, [&]<class T>(T& table, int64_t cell) {
      if constexpr (T::rests) return solve_rest(p, table, cell);
      else return true;
    });
  };
  for (int64_t at = 0; at < needed.size && !p.halt; at++) stands_still(needed[at]);  // may append more
  Array<Handle> order{&p.account};  // in reverse order of their first pops
  for (int64_t t = p.tape.end(n); t-- > p.tape.begins[n];) {
    const Handle h = p.tape.pops[t];
    if (h & again) continue;
    Stage::on(p, h, [&]<class T>(T& table, int64_t cell) {
      if constexpr (T::rests)
        if (table.is_needed[cell]) order.push(h);
    });
  }
  int64_t solved = 0;
  for (bool stand = false; !stand && !p.halt;) {
    stand = true;
    for (int64_t at = 0; at < order.size && !p.halt; at++) {
      if (p.spend(1)) return;
      if (stands_still(order[at])) continue;
      stand = false;
      if (++solved > most * (p.report.pops + 16)) return p.lose(unsettled, table_of(order[at]), cell_of(order[at]));
    }
  }
}

// -- a stage ----------------------------------------------------------------------------------------------------------

// Undoes the axioms and the rules that no item drove.
template <class Stage, class P>
DYNAGRAD_ALWAYS void undo_begin(P& p) {
  p.position = 0;
  if constexpr (Stage::has_axioms)
    Stage::each(p, [&]<class T>(T& table) {
      if constexpr (T::has_axioms && !T::steps) undo_axioms(p, table);
    });
  if (!p.halt) Stage::fire_back(p);
}
// Undoes the rounds of a sweep, each of which computed all pending values from the chart of the last round.
template <class Stage, class P>
DYNAGRAD_ALWAYS void undo_rounds(P& p) {
  p.position = 0;
  int64_t end = p.tape.end(p.at_hand);
  for (int64_t r = Stage::convergence(p).recorded; r-- > 0 && !p.halt;) {
    const int64_t begin = p.tape.rounds[--p.rounds_at];
    Stage::each(p, [&](auto& table) {
      if (!p.halt) begin_round(p, table);
    });
    if (p.halt) return;
    for (int64_t t = end; t-- > begin;) {
      const Handle h = p.tape.pops[t];
      Stage::on(p, h & ~again, [&](auto& table, int64_t) { undo_in_round(p, table, h); });
    }
    undo_begin<Stage>(p);
    end = begin;
  }
}
// Undoes the pop at t, or those of a row up to there; the place of the first of them.
template <class P, class T>
DYNAGRAD_ALWAYS int64_t undo_at(P& p, T& table, Handle h, int64_t t) {
  if constexpr (T::undoes_rows && T::rows_back) return p.undo_rows(table, t);
  else if constexpr (T::undoes_rows) return undo_row(p, table, t);
  else if constexpr (!T::sink) undo(p, table, h);
  return t;
}
// Undoes the pops of a stage, last popped first; false where the pass has to stop.
template <class Stage, class P>
DYNAGRAD_ALWAYS bool undo_pops(P& p) {
  const int64_t begin = p.tape.begins[p.at_hand];
  int64_t component = 0;
  if constexpr (Stage::unknowns > 0) component = Stage::blocks(p).solved.size;
  for (int64_t t = p.tape.end(p.at_hand); t-- > begin && !p.halt;) {
    if (p.spend(1)) return false;
    if constexpr (Stage::unknowns > 0) {
      const auto& solved = Stage::blocks(p).solved;
      if (component && solved[component - 1].begin + solved[component - 1].items == t + 1) {
        t = solved[--component].begin;
        undo_component<Stage>(p, solved[component]);
        continue;
      }
    }
    const Handle h = p.tape.pops[t];
    p.position = (uint32_t)(t + 1 - begin);
    Stage::on(p, h & ~again, [&](auto& table, int64_t) DYNAGRAD_LAMBDA { t = undo_at(p, table, h, t); });
  }
  return true;
}
template <class Stage, class P>
DYNAGRAD_FIRED void undo_stage(ChartBase* chart) {
  P& p = *static_cast<P*>(chart);
  if constexpr (Stage::rests) solve_resting<Stage>(p);
  if constexpr (Stage::strategy == Strategy::sweep) {
    undo_rounds<Stage>(p);
  } else {
    if constexpr (Stage::selects) p.wanted.zeros(p.tape.end(p.at_hand) - p.tape.begins[p.at_hand] + 1);
    if constexpr (Stage::seals)
      Stage::each(p, [&]<class T>(T& table) {
        if constexpr (T::sink || !has_agenda<Stage>) {
          if constexpr (T::selects) await_all(p, table);
          if (!p.halt) complete(p, table);
        }
      });
    if (p.halt) return;
    if constexpr (has_agenda<Stage>) {
      if (!Stage::in_rows_back(p, [&]() DYNAGRAD_LAMBDA { return undo_pops<Stage>(p); })) return;
    }
    undo_begin<Stage>(p);
  }
}
// Rolls the chart forward along the tape, after it was rolled back.
template <class Stage, class P>
void redo_stage(ChartBase* chart) {
  P& p = *static_cast<P*>(chart);
  if constexpr (Stage::rolls_back)
    for (int64_t t = p.tape.begins[p.at_hand]; t < p.tape.end(p.at_hand); t++) {
      const Handle h = p.tape.pops[t];
      Stage::on(p, h & ~again, [&]<class T>(T& table, int64_t) {
        if constexpr (!T::sink) redo(p, table, h);
      });
    }
}

// -- the pass ---------------------------------------------------------------------------------------------------------

template <class P>
DYNAGRAD_FIRED int64_t pass(P& p) {
  using Stages = typename P::Stages;
  const Settings kept = p.settings;
  const int64_t kept_halt = p.halt;
  p.settings = Settings{};
  p.settings.timeout_ns = p.back_timeout_ns;
  p.halt = 0, p.budget = 0;
  p.saved_at = p.tape.saved.size, p.from_at = p.tape.from.size, p.rounds_at = p.tape.rounds.size;
  const int64_t begun = p.tape.begins.size < Stages::count ? p.tape.begins.size : Stages::count;
  for (p.at_hand = begun; p.at_hand-- > 0 && !p.halt;) Stages::template undo<P>[p.at_hand](&p);
  if constexpr (Stages::rolls_back) {
    p.saved_at = 0;
    for (p.at_hand = 0; p.at_hand < begun; p.at_hand++) Stages::template redo<P>[p.at_hand](&p);
  }
  const int64_t status = p.halt;
  p.halt = kept_halt, p.settings = kept;
  return status;
}
// The pass, and if it needed adjoints of updates that rest, once more with these.
template <class P>
int64_t backward_of(P& p) {
  if constexpr (!P::Stages::rests) {
    return pass(p);
  } else {
    using Adjoints = Array<typename P::Adjoint>;
    bool needed = false;
    Array<Adjoints> seeds{&p.account};
    seeds.zeros(P::tables_in_all);
    const auto each_seed = [&](auto f) {
      for (int64_t n = 0; n < seeds.size; n++)
        if (p.tables[n].adjoints) f(seeds[n], *(Adjoints*)p.tables[n].adjoints);
    };
    each_seed([](Adjoints& seed, Adjoints& g) { seed.copy(g); });
    P::Stages::each([&]<class Stage>() {
      if constexpr (Stage::rests) {
        Stage::needed(p).clear();
        Stage::each(p, [&]<class T>(T& table) {
          if constexpr (T::rests) table.resting.zeros(table.bound()), table.is_needed.zeros(table.bound());
        });
      }
    });
    int64_t status = pass(p);
    P::Stages::each([&]<class Stage>() {
      if constexpr (Stage::rests) needed = needed || Stage::needed(p).size;
    });
    if (status == done && needed) {
      open_adjoints(p, true);
      each_seed([](Adjoints& seed, Adjoints& g) { g.copy(seed); });
      status = pass(p);
    }
    for (int64_t n = 0; n < seeds.size; n++) seeds[n].release();
    return status;
  }
}

// -- before the pass and after it -------------------------------------------------------------------------------------

template <class T>
constexpr bool is_facts = __is_base_of(RelationBase, T);

// Sets all adjoints of a table to zero, or frees them, and says where they are.
template <class P, class T>
DYNAGRAD_RULE void open_adjoints_of(P& p, T& table, bool room) {
  using C = CotangentsOf<P>;
  if constexpr (is_facts<T>) {
    C::open(p.tables[T::number], table.g, table.g, &table.g, room ? table.rows() + 8 : 0);
  } else {
    const int64_t n = room ? table.bound() + 8 : 0;
    TableView& seen = p.tables[table.number];
    if constexpr (T::sums_up) C::open(seen, table.g, table.gt, nullptr, n), table.gt.zeros(n);
    else if constexpr (T::keeps_updates) C::open(seen, table.g, table.ga, nullptr, n);
    else C::open(seen, table.g, table.g, nullptr, n);
    if constexpr (T::keeps_updates) table.ga.zeros(n);
    if constexpr (T::keeps_total) table.total.zeros(n);
    if constexpr (T::selects) table.wait.filled(n, nowhere), table.aim.zeros(n);
    if constexpr (posteriors<P>) table.h.zeros(n);
    if constexpr (T::has_axioms) seen.axioms = &table.g_axioms, table.g_axioms.zeros(room ? table.axioms.rows() : 0);
  }
}
template <class P>
void open_adjoints(P& p, bool room) {
  p.each_table([&](auto& table) { open_adjoints_of(p, table, room); });
}
// For an outside value the root's adjoint is one, whatever the root's scale, where values have one.
template <class P>
constexpr bool scaled = !P::selective && !P::plain && !posteriors<P>;

}  // namespace dynagrad
