// Many examples in one call: each is run in a chart of its own, gone back over, and its gradient added to one array.
//
// The adjoints of the facts that a gradient is by are lent from one chart to the next, so that they add up where they
// are made, and no example pays for the facts that it has no use for. Where a pass back goes wrong, what it had added
// by then cannot be told apart: all are run again, and each has arrays of its own.
//
// The facts of examples are loaded already. What is out of the ordinary (an error, a warning, a limit) is not said here:
// such an example adds nothing, is marked, and left to whoever called.
#pragma once
#include <dynagrad/outside/entry.hpp>

namespace dynagrad {

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

// Arrays of adjoints, one for each table that a gradient is by, of whatever adjoints are in the program.
struct Lent {
  using Adjoints = Array<char>;  // all arrays look alike
  Array<char> room;
  int64_t count;
  explicit Lent(int64_t n) : count(n) {}
  ~Lent() {
    for (int64_t k = 0; room.data && k < count; k++) at(k).release();
  }
  bool open() { return !guarded(nullptr, [this] { room.zeros(count * (int64_t)sizeof(Adjoints)); }); }
  Adjoints& at(int64_t k) { return ((Adjoints*)room.data)[k]; }
  // Hands them to a chart that has not gone back; and takes them again from one that has.
  void give(const Examples& e, ChartBase* c) {
    for (int64_t k = 0; k < count; k++) const_cast<TableView&>(c->views[e.table[k]]).lent = &at(k);
  }
  void take(const Examples& e, ChartBase* c) {
    for (int64_t k = 0; k < count; k++) at(k).swap(*(Adjoints*)c->views[e.table[k]].axioms);
  }
};

inline void add_to(double* __restrict to, const double* __restrict from, int64_t n) {
  for (int64_t r = 0; r < n; r++) to[r] += from[r];
}

// Adds the derivatives by all rows, as a chart has them, to the totals; false where they are out of the ordinary.
DYNAGRAD_ONCE bool add_rows(const Examples& e, ChartBase* c) {
  for (int64_t k = 0; k < e.keys; k++) {
    if (e.backward->rows(c, e.table[k], e.given[k], (uint64_t*)e.own[k])) return false;
    if (!all_finite(e.own[k], e.rows[k])) return false;
  }
  for (int64_t k = 0; k < e.keys; k++) add_to(e.total[k], e.own[k], e.rows[k]);
  return true;
}

enum class Back { fine, untouched, wrong };  // untouched: it is out of the ordinary, and nothing was added up yet

// The backward pass of an example.
DYNAGRAD_ONCE Back go_back(const Examples& e, int64_t n, ChartBase* c, double value, Lent* lent, int32_t* stop) {
  const Backward& back = *e.backward;
  double cotangent = e.cotangent[n];
  if (e.of_log) {
    if (!(value > 0)) return Back::untouched;
    cotangent /= value;
    if (!(fabs(cotangent) < INFINITY)) return Back::untouched;
  }
  uint64_t word;
  memcpy(&word, &cotangent, 8);
  // The lock is given up already; signals are asked for by the watch over all examples.
  const Host host{nullptr, nullptr, [] { return (int)waiting_for->interrupted(1 << 30); }};
  Report report;
  if (lent) lent->give(e, c);
  if (back.open(c)) return Back::wrong;
  if (!back.seed(c, e.goal, e.arguments + n * e.width, &word, 0)) return Back::wrong;
  if (back.backward(c, &report, -1, &host, stop) != done) return Back::wrong;
  if (!lent) return add_rows(e, c) ? Back::fine : Back::wrong;
  lent->take(e, c);
  return Back::fine;
}

// A chart of an example, which is to be freed; null where there is no room for it.
inline ChartBase* chart_of(const Examples& e, int64_t n) {
  Failure failure = none;
  return new_chart(failure, e.world[n], e.facts + n * e.tables, e.weights + n * e.tables, e.constants);
}

// Runs example `n`, whose chart lives no longer than this call. False where what adds up in `lent` is lost.
DYNAGRAD_ONCE bool run_example(const Examples& e, int64_t n, Lent* lent, Unlocked* unlocked, int32_t* stop) {
  World* const world = e.world[n];
  if (e.settings->max_bytes >= 0) world->account.limit = e.settings->max_bytes;
  int64_t& ending = e.ending[n] = kApart;
  ChartBase* const c = chart_of(e, n);
  if (!c) return true;
  c->settings = *e.settings, c->unlocked = unlocked;
  c->recording = c->recording || e.backward;
  Back back = Back::fine;
  if (!guarded(&c->account, [=] { dynagrad_entry.run(c); }) && c->report.status == done && !c->report.partial &&
      !c->report.underflow) {
    if (e.single) e.single[n] = c->report.updates == c->report.items;
    uint64_t* const words = e.words + n * c->reader->words;
    double value = 0;
    if (!c->get(e.goal, e.arguments + n * e.width, words)) {
      ending = e.backward && e.of_log ? kApart : kUnderived;
    } else if (!e.backward) {
      ending = kPlain;
    } else if (memcpy(&value, words, 8), fabs(value) < INFINITY) {
      back = go_back(e, n, c, value, lent, stop);
      if (back == Back::fine) ending = kPlain;
    }
  }
  free_chart(c);
  return !lent || back != Back::wrong;
}

// Adds what was summed up in `lent` to the totals, through a chart of one of the examples. False where that cannot be.
DYNAGRAD_ONCE bool add_lent(const Examples& e, Lent& lent) {
  for (int64_t n = 0; n < e.count; n++) {
    if (e.ending[n] != kPlain) continue;
    ChartBase* const c = chart_of(e, n);
    if (!c) return false;
    lent.give(e, c);
    const bool fine = !e.backward->open(c) && add_rows(e, c);
    free_chart(c);
    return fine;
  }
  return true;
}

// Whether the adjoints of all rows that a gradient is by can be lent: those of derived items that are facts as well
// stand apart, in arrays that begin anew.
DYNAGRAD_ONCE bool lends(const Examples& e) {
  if (!e.backward || e.count < 2) return false;
  ChartBase* const c = chart_of(e, 0);
  bool fine = c != nullptr;
  for (int64_t k = 0; fine && k < e.keys; k++) fine = !c->views[e.table[k]].items;
  free_chart(c);
  return fine;
}

// Prefetches what lies at an address, or the beginning of it.
inline void prefetch(const void* at, int64_t bytes) {
  constexpr int64_t line = 64, most = 16 * line;
  for (int64_t i = 0; at && i < bytes && i < most; i += line) __builtin_prefetch((const char*)at + i);
}
template <class T>
inline void prefetch_first(const Array<T>& array) {
  prefetch(array.data, (array.size < 32 ? array.size : 32) * (int64_t)sizeof(T));
}
// Prefetches what the examples after one have of their own, while it runs: it lies anywhere in memory, and was last looked
// at a pass ago. Of the one after next that is its tables; of the next, whose tables have come by now, what these begin
// with. Tables in one place belong to one predicate, and look alike.
DYNAGRAD_ONCE void prefetch_next(const Examples& e, int64_t n) {
  for (int64_t t = 0; t < e.tables && n + 1 < e.count; t++) {
    const int64_t own = n * e.tables + t, next = own + e.tables, after = next + e.tables;
    const FactTable* const facts = e.facts[own];
    if (!facts || !e.facts[next] || e.facts[next] == facts) continue;
    if (n + 2 < e.count) prefetch(e.facts[after], facts->bytes()), prefetch(e.weights[after], 128);
    for (int k = 0; k < facts->arity; k++) prefetch_first(e.facts[next]->columns[k]);
    for (int g = 0; g <= facts->plan.count; g++)
      prefetch_first(e.facts[next]->grouping(g)->start), prefetch_first(e.facts[next]->grouping(g)->rows);
  }
  if (n + 2 < e.count) prefetch(e.world[n + 2], sizeof(World));
}

// All of them, in their order. False where what adds up in `lent` is lost, and nothing was added to the totals.
DYNAGRAD_ONCE bool run_all(const Examples& e, Lent* lent, Unlocked& unlocked, int32_t* stop) {
  for (int64_t n = 0; n < e.count && !unlocked.interrupted(1 << 12); n++) {
    prefetch_next(e, n);
    if (!run_example(e, n, lent, &unlocked, stop)) return false;
  }
  return !lent || add_lent(e, *lent);
}

// The examples from one on, at most so many.
inline Examples part_of(Examples e, int64_t begin) {
  e.count = e.count - begin < e.part ? e.count - begin : e.part;
  e.world += begin, e.facts += begin * e.tables, e.weights += begin * e.tables;
  e.arguments += begin * e.width, e.ending += begin, e.words += begin, e.cotangent += begin;
  if (e.single) e.single += begin;
  return e;
}

// Runs all examples; returns how many were run, or -1 where it was told to stop. Where there are several parts, and one
// cannot be added up on its own, all are left to the caller.
DYNAGRAD_ONCE int64_t run_examples(const Examples& e, const Host* host, int32_t* stop) {
  Unlocked unlocked(host, stop);
  Unlocked* const before = waiting_for;
  waiting_for = &unlocked;
  const Shelf shelf;
  bool fine = lends(e) || (!e.backward && e.part < e.count);
  for (int64_t begin = 0; fine && begin < e.count; begin += e.part) {
    const Examples part = part_of(e, begin);
    Lent lent(e.keys);
    fine = e.backward ? lent.open() && run_all(part, &lent, unlocked, stop) : run_all(part, nullptr, unlocked, stop);
  }
  if (!fine && e.part >= e.count) run_all(e, nullptr, unlocked, stop);
  else if (!fine) for (int64_t n = 0; n < e.count; n++) e.ending[n] = kApart;
  const int64_t ran = unlocked.interrupted() ? -1 : e.count;
  waiting_for = before;
  return ran;
}

}  // namespace dynagrad
