// Many examples in one call: each is run in a chart of its own, gone back over, and its gradient added to one array.
//
// The facts of examples are loaded already. What is out of the ordinary (an error, a warning, a limit) is not said here:
// such an example adds nothing, is marked, and left to whoever called.
#pragma once
#include "entry.hpp"

namespace dynagrad {

// The functions of the library that has the backward pass; they guard themselves.
struct Backward {
  int64_t (*open)(ChartBase*);
  int64_t (*seed)(ChartBase*, int64_t table, const int32_t* arguments, const uint64_t* cotangent, int64_t whole);
  int64_t (*backward)(ChartBase*, Report*, int64_t timeout_ns, const Host*, int32_t* stop);
  int64_t (*rows)(const ChartBase*, int64_t table, const uint64_t* given, uint64_t* words);
};

enum class Ending : int64_t {
  plain = 0,
  underived = 1,  // it has no value, and no gradient
  apart = 2,      // it is left to the caller
};

// The same layout as the ctypes structure in library code: eight-byte fields only. Of each example there is a row.
struct Examples {
  int64_t count, tables;
  World* const* world;
  FactTable* const* facts;          // by table
  void* const* weights;             // by table
  const uint64_t* constants;        // the same for all
  const Settings* settings;
  int64_t goal;                     // the table of the item that is asked for
  int64_t width;                    // of a row of its arguments, which ends in a spare one
  const int32_t* arguments;
  Ending* ending;                   // out
  uint64_t* words;                  // out: values
  // The gradient of the sum of the goals, or of their logs, times cotangents: in semirings whose numbers are doubles.
  const Backward* backward;         // null: values alone
  int64_t of_log;
  const double* cotangent;
  int64_t keys;                     // tables whose rows it is by
  const int64_t* table;
  const int64_t* rows;
  const uint64_t* const* given;     // the numbers of these rows; null: all one
  double* const* own;               // room for the gradient of one example
  double* const* total;             // out: to which it is added
};

inline constinit thread_local Unlocked* waiting_for = nullptr;  // of the examples that this thread runs

inline bool all_finite(const double* numbers, int64_t n) {
  constexpr uint64_t exponent = 0x7ffull << 52;
  uint64_t wrong = 0;
  for (int64_t i = 0; i < n; i++) {
    uint64_t word;
    memcpy(&word, numbers + i, 8);
    wrong |= (word & exponent) == exponent;
  }
  return !wrong;
}

// Its backward pass; false where that is out of the ordinary.
DYNAGRAD_ONCE bool go_back(const Examples& e, int64_t n, ChartBase* c, double value, int32_t* stop) {
  const Backward& back = *e.backward;
  double cotangent = e.cotangent[n];
  if (e.of_log) {
    if (!(value > 0)) return false;
    cotangent /= value;
    if (!(fabs(cotangent) < INFINITY)) return false;
  }
  uint64_t word;
  memcpy(&word, &cotangent, 8);
  // The lock is given up already; signals are asked for by the watch over all examples.
  const Host host{nullptr, nullptr, [] { return (int)waiting_for->interrupted(1 << 30); }};
  Report report;
  if (back.open(c)) return false;
  if (!back.seed(c, e.goal, e.arguments + n * e.width, &word, 0)) return false;
  if (back.backward(c, &report, -1, &host, stop) != done) return false;
  for (int64_t k = 0; k < e.keys; k++) {
    if (back.rows(c, e.table[k], e.given[k], (uint64_t*)e.own[k])) return false;
    if (!all_finite(e.own[k], e.rows[k])) return false;
  }
  for (int64_t k = 0; k < e.keys; k++) {
    double* __restrict to = e.total[k];
    const double* __restrict from = e.own[k];
    for (int64_t r = 0; r < e.rows[k]; r++) to[r] += from[r];
  }
  return true;
}

// One of them. Its chart lives no longer than this call.
DYNAGRAD_ONCE Ending run_example(const Examples& e, int64_t n, Unlocked* unlocked, int32_t* stop) {
  Failure failure = none;
  World* const world = e.world[n];
  if (e.settings->max_bytes >= 0) world->account.limit = e.settings->max_bytes;
  ChartBase* const c = new_chart(failure, world, e.facts + n * e.tables, e.weights + n * e.tables, e.constants);
  if (!c) return Ending::apart;
  c->settings = *e.settings, c->unlocked = unlocked;
  c->recording = c->recording || e.backward;
  Ending ending = Ending::apart;
  if (!guarded(&c->account, [=] { dynagrad_entry.run(c); }) && c->report.status == done && !c->report.partial &&
      !c->report.underflow) {
    uint64_t* const words = e.words + n * c->reader->words;
    double value = 0;
    if (!c->get(e.goal, e.arguments + n * e.width, words))
      ending = e.backward && e.of_log ? Ending::apart : Ending::underived;
    else if (!e.backward) ending = Ending::plain;
    else if (memcpy(&value, words, 8), fabs(value) < INFINITY && go_back(e, n, c, value, stop)) ending = Ending::plain;
  }
  free_chart(c);
  return ending;
}

// All of them, in their order; how many were run before it was told to stop.
DYNAGRAD_ONCE int64_t run_examples(const Examples& e, const Host* host, int32_t* stop) {
  Unlocked unlocked(host, stop);
  Unlocked* const before = waiting_for;
  waiting_for = &unlocked;
  int64_t n = 0;
  for (; n < e.count && !unlocked.interrupted(1 << 12); n++) e.ending[n] = run_example(e, n, &unlocked, stop);
  if (unlocked.interrupted()) n = -1;
  waiting_for = before;
  return n;
}

}  // namespace dynagrad
