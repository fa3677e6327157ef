// The interface between the functions that Python calls and a program: constructors and methods, as function pointers.
//
// The functions themselves are in `outside/runtime.hpp`, and what they call in generated code.
#pragma once
#include <dynagrad/running/sweep.hpp>
#include <dynagrad/running/collected.hpp>

namespace dynagrad {

// Null: this library has no such thing, and functions that would call it may not be called.
struct Entry {
  int64_t size;  // bytes of a chart
  const FactsPlan* facts;          // by table
  const ValueReader* values;
  const void* copies;              // how those of a fact join: by table, so many bytes each; one for all where that is 0
  int64_t copies_each;
  // In zeroed memory of that size; and what gives back what it took.
  void (*chart_open)(ChartBase*, World*, FactTable* const* facts, void* const* weights, const uint64_t* constants);
  void (*chart_close)(ChartBase*);
  void (*run)(ChartBase*);
  // changes of facts
  void (*change)(ChartBase*, int64_t step, int64_t table, const int32_t* rows, const uint64_t* words, int64_t n);
  void (*swap)(ChartBase*, int64_t table, const FactTable* facts, const void* weights, int64_t settled);
  bool (*restore)(ChartBase*, int64_t table, const int32_t* rows, const uint64_t* words, const double* bounds, int64_t n);
  // differentiation
  void (*adjoints)(ChartBase*, bool room);
  int64_t (*seed)(ChartBase*, int64_t table, const int32_t* arguments, const uint64_t* cotangent, int64_t whole);
  int64_t (*backward)(ChartBase*);
  int64_t (*adjoint)(const ChartBase*, int64_t table, const int32_t* arguments, uint64_t* words, int64_t whole);
  int64_t (*adjoints_of_items)(const ChartBase*, int64_t table, uint64_t* words, int64_t room);
  void (*adjoints_of_rows)(const ChartBase*, int64_t table, const uint64_t* given, uint64_t* words);
  const Array<Handle>* (*pops)(const ChartBase*);
  // derivations
  void (*collect)(ChartBase*, int64_t table, const int32_t* arguments, int64_t most, int64_t how);
  Collected* (*collected)(ChartBase*);
};

// The entry of a program P over a semiring S; what it does not have of a class is what ChartBase has.
template <class P, class S>
struct Entries {
  DYNAGRAD_ALWAYS static P* of(ChartBase* c) { return static_cast<P*>(c); }
  DYNAGRAD_ALWAYS static const P* of(const ChartBase* c) { return static_cast<const P*>(c); }

  static void chart_open(ChartBase* c, World* w, FactTable* const* facts, void* const* weights, const uint64_t* constants) {
    DYNAGRAD_ONLY_CALL new ((void*)c, Here{}) P(w, facts, weights, constants);
  }
  static void chart_close(ChartBase* c) { of(c)->~P(); }
  static void run(ChartBase* c) { DYNAGRAD_ONLY_CALL run_program(*of(c)); }
  static void change(ChartBase* c, int64_t step, int64_t table, const int32_t* rows, const uint64_t* words, int64_t n) {
    DYNAGRAD_ONLY_CALL of(c)->change(step, table, rows, words, n);
  }
  static void swap(ChartBase* c, int64_t table, const FactTable* facts, const void* weights, int64_t settled) {
    DYNAGRAD_ONLY_CALL of(c)->swap(table, facts, weights, settled);
  }
  static bool restore(ChartBase* c, int64_t table, const int32_t* rows, const uint64_t* words, const double* bounds,
                      int64_t n) {
    DYNAGRAD_ONLY_CALL return of(c)->restore(table, rows, words, bounds, n);
  }
  static void collect(ChartBase* c, int64_t table, const int32_t* a, int64_t most, int64_t how) {
    DYNAGRAD_ONLY_CALL of(c)->collect(table, a, most, how);
  }
  static Collected* collected(ChartBase* c) { return &of(c)->collected; }
  static void adjoints(ChartBase* c, bool room) { DYNAGRAD_ONLY_CALL open_adjoints(*of(c), room); }
  static int64_t seed(ChartBase* c, int64_t table, const int32_t* a, const uint64_t* cotangent, int64_t whole) {
    return CotangentsOf<P>::seed(*c, table, a, cotangent, scaled<P> && whole);
  }
  static int64_t backward(ChartBase* c) { DYNAGRAD_ONLY_CALL return backward_of(*of(c)); }
  static int64_t adjoint(const ChartBase* c, int64_t table, const int32_t* a, uint64_t* words, int64_t whole) {
    return CotangentsOf<P>::read(*c, table, a, words, scaled<P> && whole);
  }
  static int64_t adjoints_of_items(const ChartBase* c, int64_t table, uint64_t* words, int64_t room) {
    return CotangentsOf<P>::read_items(*c, table, words, room);
  }
  static void adjoints_of_rows(const ChartBase* c, int64_t table, const uint64_t* given, uint64_t* words) {
    CotangentsOf<P>::read_rows(*c, table, P::copy_kinds[table], given, words);
  }
  static const Array<Handle>* pops(const ChartBase* c) { return &of(c)->tape.pops; }

  static constexpr Entry entry() {
    Entry e{};
    e.size = sizeof(P);
    if constexpr (P::goes_forward) {
      e.facts = P::facts_plans, e.values = &ReaderOf<S>::reader, e.copies = P::copies;
      e.copies_each = sizeof P::copies == sizeof P::copies[0] ? 0 : sizeof P::copies[0];
      e.chart_open = chart_open, e.chart_close = chart_close;
      if constexpr (P::changes) e.change = change, e.swap = swap, e.restore = restore;
      if constexpr (P::collects) e.restore = restore, e.collect = collect, e.collected = collected;
      else e.run = run;
    }
    if constexpr (P::goes_back) {
      e.adjoints = adjoints, e.seed = seed, e.backward = backward;
      e.adjoint = adjoint, e.adjoints_of_items = adjoints_of_items, e.adjoints_of_rows = adjoints_of_rows;
      e.pops = pops;
    }
    return e;
  }
};

}  // namespace dynagrad

extern "C" __attribute__((visibility("hidden"))) const dynagrad::Entry dynagrad_entry;  // that of this library's program

namespace dynagrad {

// A chart of this library's program. Null where there is no room for it.
DYNAGRAD_ONCE ChartBase* new_chart(Failure& failure, World* w, FactTable* const* facts, void* const* weights,
                                   const uint64_t* constants) {
  const auto open = [&](void* place) { dynagrad_entry.chart_open((ChartBase*)place, w, facts, weights, constants); };
  const auto close = [](void* place) { dynagrad_entry.chart_close((ChartBase*)place); };
  return (ChartBase*)create(failure, dynagrad_entry.size, open, close);
}
DYNAGRAD_ONCE void free_chart(ChartBase* c) {
  if (!c) return;
  dynagrad_entry.chart_close(c);
  discard((void*)c);
}

}  // namespace dynagrad
