// The base of every compiled program: the world of its codes, limits, statistics, and interruption.
//
// A chart is constructed over a World and fact tables; `run` runs stage after stage, popping until a stage has nothing
// left, a limit is reached or it is told to stop; then items are looked up. A run that stopped between two pops may be
// resumed; one that stopped inside a pop (`partial`) may only be read.
#pragma once
#include <dynagrad/base/math.hpp>

#include <dynagrad/running/agenda.hpp>
#include <dynagrad/running/elementwise.hpp>
#include <dynagrad/storage/facts.hpp>
#include <dynagrad/base/host.hpp>
#include <dynagrad/storage/looking.hpp>
#include <dynagrad/running/matrix.hpp>
#include <dynagrad/base/memory.hpp>
#include <dynagrad/running/rows.hpp>
#include <dynagrad/semirings.hpp>
#include <dynagrad/storage/tables.hpp>
#include <dynagrad/storage/terms.hpp>

namespace dynagrad {

// What codes mean: the range of each domain, the rank of each atom, the program's constants, and the terms.
struct World {
  Account account;
  Terms terms{&account};
  Array<Range> domain{&account};
  Array<int32_t> constant{&account};
  Array<Array<int32_t>*> rank{&account};   // per domain; null where atoms have no rank
  DYNAGRAD_ONCE ~World() {
    for (int64_t i = 0; i < rank.size; i++) delete_rank(i);
  }
  void delete_rank(int64_t i) {
    dispose(rank[i]);
    rank[i] = nullptr;
  }
  DYNAGRAD_ONCE void set_rank(int64_t i, const int32_t* ranks, int64_t n) {
    delete_rank(i);
    rank[i] = fails() ? nullptr : (Array<int32_t>*)obtain(sizeof(Array<int32_t>), true);
    if (!rank[i]) out_of_memory();
    rank[i]->account = &account;
    rank[i]->zeros(n);
    memcpy(rank[i]->data, ranks, n * sizeof(int32_t));
  }
};

DYNAGRAD_ONCE int64_t clock_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// What the levels of a stage's items are made of: a sum of so many times the codes of some arguments, or the ranks of atoms.
struct LevelTerm {
  enum Kind : int32_t { constant, code, rank, anywhere } kind;  // anywhere: in a range that is not known
  int64_t times;                        // of a constant, that is all
  int32_t domain = 0, below = 0, above = 0;
};
// One for each item; all in the same range.
struct LevelForm {
  const LevelTerm* terms;
  int32_t items;
  const int32_t* counts;  // of each item's terms
};

struct ChartBase : Looking {
  using RunStage = void (*)(ChartBase*, int64_t started);
  // What the class of a program has, where it says nothing else: see `outside/entry.hpp`.
  static constexpr bool goes_forward = true;
  static constexpr bool goes_back = false;
  static constexpr bool changes = false;   // takes changes of facts
  static constexpr bool collects = false;  // derivations of items
  // What it is, beside the traits of its tables and stages (`running/traits.hpp`).
  static constexpr bool plain = false;       // has no semiring
  static constexpr bool of_user = false;     // ... or one of a user
  static constexpr bool selective = false;   // plus selects
  static constexpr bool ordered = false;     // ... as a user's `less` says
  static constexpr bool by_value = false;    // ... and few contributions are better
  static constexpr bool underflows = false;  // values may, which is counted
  static constexpr bool keeps_tape = false;  // may keep one
  static constexpr bool directions = false;  // numbers have derivatives
  static constexpr bool times_adds = false;  // logs, or costs
  static constexpr bool keeps_logs = false;  // of given weights
  static constexpr bool resolves = false;    // takes changes of facts component by component
  static constexpr int tables_in_all = 0;    // of facts and of items
  Account account;
  World* world;
  Settings settings;
  Report report;
  Unlocked* unlocked = nullptr;
  int64_t stage = 0;
  int64_t at_hand = 0;          // the stage that is run, or undone
  bool begun = false;
  bool has_zero = false;        // whether a fact weighs nothing
  bool recording = false;       // whether the run is entered into the tape: set by a class with both passes, or dg_chart_record
  bool watched = false;         // whether pops are counted, or the clock is looked at as they go on
  int64_t halt = 0;             // a Status once the run has to stop
  int64_t failed = 0;           // ... because something went wrong, which no further run of this chart mends
  int64_t budget = 0;           // work until the next look at the clock
  int64_t spent_before = 0;     // nanoseconds of earlier calls of run
  int64_t back_timeout_ns = -1; // the limit on time of a pass back, from the start of the first run
  const char* blamed = "";      // the functions of values of which one failed
  const char* message = "";     // what it said
  Array<double> disagree{&account};  // the numbers of two values about which a semiring's plus and less disagree
  int32_t (**externals)(const int32_t*, uint64_t*) = nullptr;  // by table
  Array<Handle> cycle{&account};  // of the component that diverges
  Handle driver = 0;            // the item that was popped last, where that is watched
  int64_t quiet = 0;            // pops in a row that changed no digit
  bool settling = false;        // updates that rest are popped
  int64_t settled = 0;          // ... how many

  DYNAGRAD_ONCE explicit ChartBase(World* w) : world(w) {
    w->account.beside = &account, account.beside = &w->account;
    account.limit = w->account.limit;
  }
  DYNAGRAD_ONCE ~ChartBase() { world->account.beside = nullptr; }

  // In a chart that is new: how it is looked at. Fails where copies of a fact contradict, such as two values under `=`.
  DYNAGRAD_ONCE void look_through(const TableView* tables, const ValueReader* values, int64_t count) {
    views = tables, reader = values;
    for (int64_t n = 0; n < count; n++) {
      const TableView& t = views[n];
      if (!t.differing) continue;
      Array<int32_t> a;
      for (int k = 0; k < t.width; k++) a.push(t.facts->table->columns[k].data[t.differing - 1]);
      fail(t.single ? two_values : bad_value, n, t.items ? locate(n, a.data) : t.differing - 1);
    }
  }
  // Enters items of another chart as they are, where nothing but a value goes with them; false where there is no room for
  // them. Programs whose items have more (`restore_items`) have a function of their own.
  DYNAGRAD_ONCE bool restore(int64_t number, const int32_t* rows, const uint64_t* words, const double*, int64_t count) {
    const TableView& t = views[number];
    stage = 0, begun = true;
    for (int64_t n = 0; n < count && t.items; n++) {
      const int64_t cell = locate(number, rows + n * t.width);
      if (cell < 0) return false;
      reader->read(words + n * reader->words, const_cast<void*>(reader->element(t.values, cell)));
      if (t.items->seen.set(cell)) t.items->items++, report.items++;
      t.items->popped.set(cell);
    }
    return true;
  }

  // Says in the report that the run stopped for want of memory.
  DYNAGRAD_ONCE void stop_for_memory(Failure failure) {
    report.status = failure == limited ? at_bytes : no_memory;
    report.partial = 1;
    report.stage = stage;
    report.bytes = account.bytes + world->account.bytes;
    report.peak = account.peak > world->account.peak ? account.peak : world->account.peak;
    if (failure == exhausted) failed = no_memory;
  }

  // Runs stage after stage; what the report says of that.
  DYNAGRAD_ONCE void run_stages(const RunStage* stages, int64_t count) {
    const int64_t started = clock_ns();
    halt = failed, budget = 0, report.status = done, report.partial = failed != 0;
    watched = settings.max_pops >= 0 || settings.pause_ns >= 0;
    while (!halt && stage < count) at_hand = stage, stages[stage](this, started);
    report.status = halt, report.stage = stage;
    report.bytes = account.bytes + world->account.bytes;
    report.peak = account.peak > world->account.peak ? account.peak : world->account.peak;
    spent_before += clock_ns() - started;
    report.nanoseconds = spent_before;
  }
  // The least level of a form, and how many there are.
  DYNAGRAD_ONCE void range_of(const LevelForm& form, int64_t& least, int64_t& span) const {
    int64_t low = INT64_MAX, high = INT64_MIN;
    const LevelTerm* t = form.terms;
    for (int32_t item = 0; item < form.items; item++) {
      int64_t lower = 0, upper = 0;
      for (int32_t left = form.counts[item]; left > 0; left--, t++) {
        int64_t first = 1, last = 1;
        if (t->kind == LevelTerm::code) {
          const Range& r = world->domain[t->domain];
          first = (int64_t)r.low + t->below, last = (int64_t)r.low + r.count - 1 + t->above;
        } else if (t->kind == LevelTerm::rank) {
          first = 0, last = world->domain[t->domain].count - 1;
        } else if (t->kind == LevelTerm::anywhere) {
          first = -(1 << 30), last = 1 << 30;
        }
        lower += t->times * (t->times > 0 ? first : last), upper += t->times * (t->times > 0 ? last : first);
      }
      if (lower < low) low = lower;
      if (upper > high) high = upper;
    }
    least = low, span = high >= low ? high - low + 1 : 1;
  }

  // Called with the work that is about to be done; true if the run has to stop.
  DYNAGRAD_ALWAYS bool spend(int64_t work) { return (budget -= work) < 0 && look(); }

  DYNAGRAD_ONCE bool look() {
    if (halt) return true;
    budget = 4096;
    if (unlocked && unlocked->interrupted(1 << 30)) return stop(interrupted);
    const int64_t now = unlocked ? unlocked->elapsed() : 0;
    if (settings.timeout_ns >= 0 && now + spent_before >= settings.timeout_ns) return stop(at_timeout);
    if (settings.max_bytes >= 0 && account.bytes + world->account.bytes > settings.max_bytes) return stop(at_bytes);
    return false;
  }
  // A run ends between two pops where it can, so that it has a gradient: inside a pop one item in a hundred more is
  // allowed. -1 is no limit.
  DYNAGRAD_ALWAYS int64_t most_items() const { return settings.max_items + settings.max_items / 100; }
  // Whether no item more is allowed, which then ends the run. Asked before each, so that the limit is kept.
  DYNAGRAD_ALWAYS bool full() {
    return __builtin_expect((uint64_t)report.items >= (uint64_t)settings.max_items, 0) && full_now();
  }
  DYNAGRAD_ONCE bool full_now() {
    if (report.items < most_items()) return false;
    if (!halt) stop(at_items);
    return true;
  }
  // An item that is new at a cell of a table; false where no item more is allowed.
  DYNAGRAD_ONCE bool enter(Table& items, int64_t cell) {
    if (full()) return false;
    items.seen.set(cell);
    items.items++, report.items++;
    return true;
  }
  // Of these cells, a bit each, those that items are allowed for.
  uint64_t allowed(uint64_t fresh) {
    int64_t left = most_items() - report.items;
    if (__builtin_expect(settings.max_items < 0 || left >= 64, 1)) return fresh;
    uint64_t kept = 0;
    for (; fresh && left > 0; left--, fresh &= fresh - 1) kept |= fresh & -fresh;
    if (fresh) full();
    return kept;
  }
  // Whether items are popped one by one, and not those of a row together: a limit is near, or there is one that may end
  // the run between any two.
  DYNAGRAD_ALWAYS bool one_by_one() const {
    return settings.max_pops >= 0 || settings.timeout_ns >= 0 || settings.until_table >= 0 ||
           (uint64_t)report.items > (uint64_t)settings.max_items / 2;
  }
  DYNAGRAD_ALWAYS bool stop(int64_t status) {
    halt = status;
    budget = -1;
    return true;
  }
  DYNAGRAD_ONCE void fail(int64_t status, int64_t table, int64_t cell) {
    if (!halt) report.error_table = table, report.error_cell = cell;
    stop(status);
    if (!failed) failed = status;
    report.partial = 1;
  }
  // The same for a pass back, whose failures are not those of the chart.
  DYNAGRAD_ONCE void lose(int64_t status, int64_t table, int64_t cell) {
    if (!halt) report.error_table = table, report.error_cell = cell;
    stop(status);
  }
  // After the pop of an item: ends the run if it was to stop there.
  DYNAGRAD_ALWAYS void stop_after(Handle h) {
    if (settings.until_table == (int64_t)table_of(h) && settings.until_cell == cell_of(h) && !halt) stop(at_until);
  }
  // Between two pops: whether a limit is met. Sets `halt` only to stop for good until run is called again.
  DYNAGRAD_ALWAYS bool pause_here(int64_t started) {
    if (__builtin_expect(watched || (uint64_t)report.items > (uint64_t)settings.max_items, 0)) return pause_now(started);
    return spend(1);
  }
  DYNAGRAD_ONCE bool pause_now(int64_t started) {
    if (settings.max_pops >= 0 && report.pops >= settings.max_pops) return stop(at_max_pops);
    if (__builtin_expect((uint64_t)report.items > (uint64_t)settings.max_items, 0)) return stop(at_items);
    if (spend(1)) return true;
    if (settings.pause_ns >= 0 && (report.pops & 1023) == 0 && clock_ns() - started > settings.pause_ns)
      return stop(paused);
    return false;
  }
};

// Makes all items of a table that were reached part of the chart; `pops` says whether each counts as one, and
// `underflows` whether values may. A stage that is resumed seals again, as items may have grown.
template <class S>
__attribute__((noinline)) void seal(ChartBase& chart, int64_t number, Table& items, const Array<typename S::Value>& value,
                                    bool pops, bool underflows) {
  const int64_t bound = bound_of(items);
  for (int64_t cell = items.seen.next(0, bound); cell >= 0; cell = items.seen.next(cell + 1, bound)) {
    const bool fresh = items.popped.set(cell);
    chart.report.pops += fresh && pops;
    if (__builtin_expect(!S::valid(value[cell]), 0)) return chart.fail(bad_value, number, cell);
    if constexpr (__is_same(typename S::Value, double))
      if (fresh && underflows && S::tiny(value[cell]) && (!chart.has_zero || value[cell] != 0)) chart.report.underflow++;
  }
}

// Counts in a register what a join sends, and adds it up at the end, however the join ends.
struct Counter {
  int64_t count = 0;
  int64_t& total;
  DYNAGRAD_ALWAYS explicit Counter(int64_t& t) : total(t) {}
  DYNAGRAD_ALWAYS Counter(const Counter& other) : total(other.total) {}
  DYNAGRAD_ALWAYS ~Counter() { total += count; }
};

// Integer arithmetic of arguments: what leaves 32 bits is remembered as a failure, never wrapped.
struct Arithmetic {
  int64_t overflow = 0;  // why there is no result, a NoInteger: the first of them
  DYNAGRAD_ALWAYS void failed(int64_t why) {
    if (!overflow) overflow = why;
  }
  DYNAGRAD_ALWAYS int32_t narrow(int64_t x) {
    if (__builtin_expect(x != (int32_t)x, 0)) failed(kOutOfRange);
    return (int32_t)x;
  }
  DYNAGRAD_ALWAYS int64_t product(int64_t a, int64_t b) {
    int64_t c = 0;
    if (__builtin_mul_overflow(a, b, &c)) failed(kOutOfRange);
    return c;
  }
  DYNAGRAD_ALWAYS int64_t sum(int64_t a, int64_t b) {
    int64_t c = 0;
    if (__builtin_add_overflow(a, b, &c)) failed(kOutOfRange);
    return c;
  }
  DYNAGRAD_ALWAYS int64_t difference(int64_t a, int64_t b) {
    int64_t c = 0;
    if (__builtin_sub_overflow(a, b, &c)) failed(kOutOfRange);
    return c;
  }
  // Rounded down, as Python rounds; division by zero is a failure too.
  int64_t quotient(int64_t a, int64_t b) {
    if (b == 0 || (b == -1 && a == INT64_MIN)) {
      failed(b == 0 ? kByZero : kOutOfRange);
      return 0;
    }
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
  }
  int64_t remainder(int64_t a, int64_t b) {
    if (b == 0) failed(kByZero);
    if (b == 0 || b == -1) return 0;
    const int64_t rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
  DYNAGRAD_ALWAYS int64_t absolute(int64_t a) { return a < 0 ? difference(0, a) : a; }
  DYNAGRAD_ALWAYS int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
  DYNAGRAD_ALWAYS int64_t most(int64_t a, int64_t b) { return a < b ? b : a; }
};

}  // namespace dynagrad
