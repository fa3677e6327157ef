// Delete and rederive (DRed): incremental updates of a chart whose cycles are not solved.
//
// Gupta, Mumick and Subrahmanian (1993), "Maintaining views incrementally". Every item that the changed facts reach is
// marked, with the old facts in place; marked items are deleted, and rederived from the facts that stayed, by nests that
// start from the head; the agenda propagates. Then facts are added: every instance with a new fact sends an update, where
// facts to the left of it in the rule are new ones and facts to the right old ones, so that an instance with several new
// facts counts once (semi-naive evaluation).
//
// A program has `reach(table, arguments)`, which visits the nests that something drives to mark their heads,
// `derive(table, arguments)`, which sends an item what it gets from its rules, and `bring(table, row, value)` for a new
// fact. Programs whose cycles are solved use `changing/resolve.hpp`, and the second half of this file.
#pragma once
#include <dynagrad/running/item.hpp>

namespace dynagrad {

// An item that something marked reaches is marked, too, if it is there.
template <class P, class T>
DYNAGRAD_RULE void mark_at(P& p, T& table, const int32_t* a) {
  const int64_t cell = find_item(table, T::order, a);
  if (cell >= 0 && first_time(table.marked, cell)) p.marks.push(handle(T::number, cell));
}
// Adds what an item gets from its axiom, and from all instances of rules for it.
template <class P, class T>
DYNAGRAD_RULE void rederive(P& p, T& table, const int32_t* a) {
  if constexpr (T::has_axioms) {
    int64_t at = -1;
    spread<T::arity>(a, [&](auto... each) { at = table.axioms.find(each...); });
    if (at >= 0) add_fact(p, table, table.axioms.value[at], a);
  }
  if constexpr (requires { p.derive(table, a); }) p.derive(table, a);  // else no rule defines it
}

template <class P>
DYNAGRAD_ALWAYS void change_step(P& p, int64_t step, int64_t number, const int32_t* rows, const uint64_t* words, int64_t count) {
  using S = typename P::Semiring;
  const int64_t width = P::arity[number];
  p.halt = 0, p.budget = 0;
  const auto each_mark = [&](auto f) DYNAGRAD_LAMBDA {
    for (int64_t m = 0; m < p.marks.size && !p.halt; m++) {
      const Handle h = p.marks[m];
      p.on_items(table_of(h), [&](auto& table) DYNAGRAD_LAMBDA { f(table, cell_of(h)); });
    }
  };
  switch (step) {
    case kBegin:
      p.marks.clear();
      for (int64_t n = 0; n < P::tables_in_all; n++) p.on_items(n, [&](auto& table) { table.marked.clear(); });
      break;
    case kMark:
      for (int64_t n = 0; n < count; n++) {
        const int32_t* const row = rows + n * width;
        p.reach((uint32_t)number, row);
        p.on_items(number, [&](auto& table) { mark_at(p, table, row); });
      }
      each_mark([&]<class T>(T& table, int64_t cell) {
        const auto arguments = arguments_of(table, cell);
        p.reach(T::number, arguments);
      });
      break;
    case kDelete:
      each_mark([&]<class T>(T& table, int64_t cell) {
        table.popped.clear(cell), table.seen.clear(cell);
        table.value[cell] = T::zero();
        if constexpr (T::keeps_updates) table.pending[cell] = T::zero();
        table.items--, p.report.items--;
      });
      break;
    case kDerive:
      each_mark([&](auto& table, int64_t cell) { rederive(p, table, arguments_of(table, cell)); });
      break;
    case kAdd:
      for (int64_t n = 0; n < count && !p.halt; n++) {
        const typename S::Value x = S::read(words + n * S::words);
        const int32_t* const row = rows + n * width;
        p.bring(number, row, x);
        p.on_items(number, [&](auto& table) { add_fact(p, table, x, row); });
      }
      break;
  }
  if (p.halt) p.report.partial = 1;
  p.stage = 0, p.begun = true;
}

// Replaces the rows of a fact table; until `settled`, the previous rows are its old ones.
template <class P>
DYNAGRAD_ALWAYS void swap_facts(P& p, int64_t number, const FactTable* facts, const void* weights, int64_t settled) {
  const auto* w = (const Weights<typename P::Semiring>*)weights;
  p.on_facts(number, [&](auto& now, auto& old) {
    old = now;
    now.open(facts, w);
    p.has_zero = p.has_zero || w->has_zero;
    if (settled) old = now;
  });
  p.on_items(number, [&]<class T>(T& table) {
    if constexpr (T::has_axioms) table.axioms.open(facts, w);
  });
}

}  // namespace dynagrad
