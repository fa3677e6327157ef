// The entry of a program (`entry.hpp`), by which the functions that Python calls reach it: included at the end of
// generated code, which defines `program`, a class derived from ChartBase. The functions are in `runtime.hpp`.
#pragma once
#include "chart.hpp"
#include "entry.hpp"

namespace dynagrad {

// The entry of a program over a semiring; what it does not have of a class is what ChartBase has.
template <class P, class S>
struct Entries {
  static P* of(ChartBase* c) { return static_cast<P*>(c); }
  static const P* of(const ChartBase* c) { return static_cast<const P*>(c); }
  static constexpr Entry entry() {
    Entry e{};
    e.size = sizeof(P);
    if constexpr (P::goes_forward) {
      e.facts_new = P::facts_new;
      e.weights_new = [](Failure& failure) -> void* { return blank<Weights<S>>(failure); };
      e.weights_free = [](void* w) { dispose((Weights<S>*)w); };
      e.weigh = [](int64_t table, const FactTable* facts, const uint64_t* words, void* w) {
        dynagrad::weigh<S>(*facts, *(Weights<S>*)w, words, P::copies(table));
      };
      e.chart_new = [](Failure& failure, World* w, FactTable* const* facts, void* const* weights, const uint64_t* constants)
          -> ChartBase* { return create<P>(failure, w, facts, weights, constants); };
      e.chart_free = [](ChartBase* c) { dispose(of(c)); };
      e.run = [](ChartBase* c) { of(c)->run(); };
      e.locate = [](ChartBase* c, int64_t table, const int32_t* a) { return of(c)->locate(table, a); };
      if constexpr (P::changes) {
        e.change = [](ChartBase* c, int64_t phase, int64_t table, const int32_t* rows, const uint64_t* words, int64_t n) {
          of(c)->change(phase, table, rows, words, n);
        };
        e.swap = [](ChartBase* c, int64_t table, const FactTable* facts, const void* weights, int64_t settled) {
          of(c)->swap(table, facts, weights, settled);
        };
        e.restore = [](ChartBase* c, int64_t table, const int32_t* rows, const uint64_t* words, const double* bounds,
                       int64_t n) { return of(c)->restore(table, rows, words, bounds, n); };
      }
      if constexpr (P::collects) {
        e.restore = [](ChartBase* c, int64_t table, const int32_t* rows, const uint64_t* words, const double* bounds,
                       int64_t n) { return of(c)->restore(table, rows, words, bounds, n); };
        e.collect = [](ChartBase* c, int64_t table, const int32_t* a, int64_t most, int64_t how) {
          of(c)->collect(table, a, most, how);
        };
        e.collected = [](ChartBase* c) -> Collected* { return &of(c)->collected; };
      }
      if constexpr (P::bounded)
        e.bounds = [](const ChartBase* c, int64_t table, double* found, int64_t room) {
          return of(c)->bounds(table, found, room);
        };
    }
    if constexpr (P::goes_back) {
      e.adjoints = [](ChartBase* c, bool room) { of(c)->adjoints(room); };
      e.seed = [](ChartBase* c, int64_t table, const int32_t* a, const uint64_t* cotangent, int64_t whole) {
        return of(c)->seed(table, a, cotangent, whole);
      };
      e.backward = [](ChartBase* c) { return of(c)->backward(); };
      e.adjoint = [](const ChartBase* c, int64_t table, const int32_t* a, uint64_t* words, int64_t whole) {
        return of(c)->adjoint(table, a, words, whole);
      };
      e.adjoints_of_items = [](const ChartBase* c, int64_t table, uint64_t* words, int64_t room) {
        return of(c)->adjoints_of_items(table, words, room);
      };
      e.adjoints_of_rows = [](const ChartBase* c, int64_t table, const uint64_t* given, uint64_t* words) {
        of(c)->adjoints_of_rows(table, given, words);
      };
      e.pops = [](const ChartBase* c) -> const Array<Handle>* { return &of(c)->tape.pops; };
    }
    return e;
  }
};

}  // namespace dynagrad

constinit const dynagrad::Entry dynagrad_entry = dynagrad::Entries<program, semiring>::entry();
#ifndef DYNAGRAD_LINKED
#include "runtime.hpp"
#endif
