// Convergence of an iteration: its remainder, estimated from the rate of convergence, and divergence.
//
// `Convergence` watches a stage that iterates sums: the mass that is popped and the mass that these pops send to the
// stage itself, in windows of pops; their ratio is the rate at which errors shrink. At the end of the stage it
// estimates the remainder, relative to all values, and decides whether to go on under a lower tolerance; how far values
// then move tells how what is held back adds up on its way, which no single rate does. `Gains` looks for cycles among
// the items that improvements came from (negative cycle detection), or that a diverging sum came from, `Moving` for one
// among the items of a stage of rounds that do not settle.
//
// Nothing is iterated or popped here: `running/stages.hpp` and `running/rounds.hpp` tell what was popped, and ask whether
// to go on.
#pragma once
#include <dynagrad/running/chart.hpp>

namespace dynagrad {

// Says how good a chart is of which a rest is to come. Values stand still where a step is lost in rounding, and that is as
// far from the end as what is held back: so many times as large. Where it takes more than half of the digits, the cycle
// is near-critical.
inline void end_with(double rest, double times, const Settings& settings, Report& report) {
  const double rounding = times < 10 ? 0 : 8 * 2.220446049250313e-16 * times;
  if (!(rest + rounding <= report.error_bound)) report.error_bound = rest + rounding;
  const double enough = settings.tolerance > 1e-14 ? settings.tolerance : 1e-14;
  if (!(rest <= enough) || rounding > 1e-9) report.unfinished++;
}

// Sizes are numbers, or with `logs` the logs of numbers.
template <bool logs>
struct Convergence {
  double tolerance = 1e-12;
  double popped = 0, sent = 0, rate = 0;
  double worst = 0;                   // at the end of the stage, the most that an item holds back, relative to it
  bool more = false;                  // ... and whether any holds back what its value could show
  int64_t pops = 0, window = 64;
  double held = 0;                    // `worst` when the tolerance was lowered last; 0: it was not
  double spread = 0;                  // how far a value moved since then at most, relative to it
  bool begun = false, again = false;  // again: what was popped last had been popped before
  static constexpr int64_t patience = 1 << 20, visits = 4096;

  void begin(const Settings& settings) {
    if (!begun || !settings.refine) tolerance = settings.tolerance;
    begun = true, held = 0;
  }
  // Masses are relative to the values of their items, which may be of any size; at most one. The first update of an
  // item, what comes before it, and what it sends, is on its way up, and says nothing of a rate.
  static double mass(double size, double value) {
    const double relative = logs ? ::exp(size - value) : size / value;
    return relative < 1 ? relative : size == (logs ? -INFINITY : 0) ? 0 : 1;
  }
  void send(double size, double value, bool had) {  // had: the item had a value
    if (again && had) sent += mass(size, value);
  }
  // `moved` has how far the value of each cell has moved since the tolerance was lowered.
  void pop(Array<double>& moved, int64_t cell, double size, double value, bool first) {
    if (pops >= window) {  // the window is over; the next is wider, up to the last half of all pops
      if (popped > 0) rate = sent / popped;
      popped = sent = 0, pops = 1, window += window / 2;
    }
    pops++;
    again = !first;
    if (!again) return;
    popped += mass(size, value);
    if (held > 0) grown(moved, cell, 0.0) += mass(size, value);
  }
  // Whether what is popped sends as much again, and has done so for long: while values are on their way up, too.
  bool no_nearer(int64_t items) const {
    return __builtin_expect(rate >= 1 - 1e-12, 0) && window > patience && window > visits * items;
  }
  void look() { worst = spread = 0, more = false; }
  void add(Array<double>& moved, int64_t cell, double pending, double value) {
    if (cell < moved.size) {
      spread = moved[cell] > spread ? moved[cell] : spread;
      moved[cell] = 0;
    }
    const double relative = logs ? ::exp(pending - value) : pending == 0 ? 0 : pending / value;
    if (pending == (logs ? -INFINITY : 0)) return;
    if (!(relative <= worst)) worst = relative;
    more = more || relative > 2.220446049250313e-16;
  }

  // Whether the tolerance was lowered. If not, the chart is as good as it gets, and the report says how good that is.
  bool lower(const Settings& settings, Report& report) {
    if (popped > 0 && (rate == 0 || pops * 2 > window)) rate = sent / popped;
    double times = rate < 1 ? 1 / (1 - rate) : worst == 0 ? 1 : INFINITY;  // how much is to come of what is held back
    if (held > 0) {
      const double measured = spread / held;
      times = rate < 1 && times > measured ? times : measured > 1 ? measured : 1;
    }
    const double rest = worst == 0 ? 0 : worst * times;
    if (settings.refine && more && tolerance > 1e-30 && !(held > 0 && rest <= settings.tolerance)) {
      tolerance *= 1e-3, held = worst;
      return true;
    }
    end_with(rest, times, settings, report);
    return false;
  }
};

// The same for a stage of rounds, from the largest relative change of a value in each.
struct Rounds {
  double moved = 0, before = 0, rate = 0;
  double first = 0;                   // the change where the window of rounds begins that the rate is of
  int64_t length = 0, window = 16;    // the rounds since, and how many there may be
  int64_t idle = 0;                   // rounds in a row that came no nearer
  int64_t recorded = 0;               // rounds that are in the tape
  static constexpr int64_t patience = 20000;

  void begin() { before = moved, moved = 0; }
  void move(double now, double old) {
    const double change = now == old || (isnan(now) && isnan(old)) ? 0 : fabs(now - old) / fabs(now);
    if (!(change <= moved)) moved = change <= 1 ? change : 1;
  }
  // The rate over a window of rounds: from one to the next it is lost in rounding, where it is close to one. Changes
  // below 1e-13 are rounding; but a round that changes nothing after one that changed much has come to the end.
  void measure() {
    if (moved <= 1e-15 && before > 1e-9) {
      rate = 0;
    } else if (moved > 1e-13) {
      if (first == 0 || length >= window) {
        first = moved, length = 0, window += window / 2;
      } else if (++length; moved < 1e-6) {
        rate = ::pow(moved / first, 1.0 / (double)length);
      } else {
        rate = moved / before;
      }
    }
  }
  bool more(const Settings& settings, Report& report) {
    measure();
    idle = moved > 1e-15 && rate >= 1 - 1e-12 ? idle + 1 : 0;
    const double rest = moved <= 4e-16 ? 0 : rate < 1 ? moved * rate / (1 - rate) : INFINITY;
    const bool enough = moved <= settings.tolerance && (!settings.refine || rest <= settings.tolerance);
    if (moved > 4e-16 && !enough) return true;
    end_with(rest, rate < 1 ? 1 / (1 - rate) : INFINITY, settings, report);
    return false;
  }
};

// The items that move from round to round, and for each an antecedent that moves, too: followed up, these close a cycle.
struct Moving {
  enum Watch { off, marking, tracing } watch = off;
  static constexpr int rounds = 256;  // of marking: what goes around a ring moves each item now and then
  Array<Array<uint64_t>> parents;     // per table; of each item its parent + 2; 1 while it has none; 0: it does not move

  void begin(int64_t tables) {
    watch = marking;
    parents.zeros(tables);
  }
  void mark(Handle h) {
    grown(parents[table_of(h)], cell_of(h), (uint64_t)0) = 1;
  }
  uint64_t of(Handle h) const {
    if ((int64_t)table_of(h) >= parents.size || cell_of(h) >= parents[table_of(h)].size) return 0;
    return parents[table_of(h)].data[cell_of(h)];
  }
  void trace(Handle head, Handle from) {
    if (of(head) == 1 && of(from)) parents[table_of(head)][cell_of(head)] = from + 2;
  }
  // Whether there is a cycle; it goes from each item to the one that it came from.
  bool around(Array<Handle>& cycle) {
    Handle h = 0;
    int64_t count = 0;
    for (int64_t t = 0; t < parents.size; t++)
      for (int64_t c = 0; c < parents[t].size; c++)
        if (parents[t][c] > 1) count++, h = handle((uint32_t)t, c);
    for (int64_t i = 0; i < count && of(h) > 1; i++) h = of(h) - 2;  // now it is on a cycle, if there is one
    cycle.clear();
    for (Handle at = h; of(at) > 1 && (at != h || !cycle.size); at = of(at) - 2) cycle.push(at);
    for (int64_t t = 0; t < parents.size; t++) parents[t].release();
    return cycle.size > 0;
  }
};

struct Gains {
  static constexpr int64_t late = 1000000, often = 1000;  // pops, in all and per item: gains that may end do not
  Array<Array<uint64_t>*> parents;    // per table; of each item the one that its value came from, + 1
  int64_t next = 4096;                // pops at the next look
  bool watching = false;

  explicit Gains(Account* a) : parents(a) {}

  // A contribution to an item of a sum: the largest one, and of these the last, says where the sum came from.
  DYNAGRAD_ALWAYS void came(Array<uint64_t>& parent, Array<double>& most, int64_t cell, Handle from, double size) {
    if (__builtin_expect(watching, 0) && size >= grown(most, cell, (double)-INFINITY))
      grown(parent, cell, (uint64_t)0) = from + 1, most[cell] = size;
  }
  // After a pop of an iterated sum: where the run failed, the cycle that the parents of the failing item lead to.
  DYNAGRAD_ALWAYS void watch(const Report& report, int64_t failed, Array<Handle>& cycle) {
    if (__builtin_expect(!watching && report.pops > 4 * report.items, 0)) watching = true;
    if (__builtin_expect(failed != 0, 0) && watching && !cycle.size && report.error_cell >= 0)
      back(handle((uint32_t)report.error_table, report.error_cell), report.items, cycle);
  }
  uint64_t of(Handle h) const {
    const Array<uint64_t>* parent = (int64_t)table_of(h) < parents.size ? parents[table_of(h)] : nullptr;
    return parent && cell_of(h) < parent->size ? parent->data[cell_of(h)] : 0;
  }
  void back(Handle h, int64_t items, Array<Handle>& cycle) {
    for (int64_t i = 0; i < items; i++) {  // then it is on a cycle, if there is one
      if (!of(h)) return;
      h = of(h) - 1;
    }
    for (Handle at = h; of(at) && (at != h || !cycle.size); at = of(at) - 1) cycle.push(at);
  }

  // Whether there is a cycle; it goes from each item to the one that it came from.
  bool look(const Report& report, Array<Handle>& cycle) {
    const int64_t wait = report.items + 1024;
    if (!watching) {
      if (report.pops > 4 * report.items) watching = true;
      next = report.pops + 2 * wait;
      return false;
    }
    next = report.pops + 4 * wait;
    Array<Handle> path;
    Array<Array<uint32_t>> seen;
    seen.zeros(parents.size);
    uint32_t stamp = 0;
    bool found = false;
    for (int64_t t = 0; t < parents.size; t++)
      if (parents[t]) seen[t].zeros(parents[t]->size);
    for (int64_t t = 0; t < parents.size && !found; t++)
      for (int64_t c = 0; parents[t] && c < parents[t]->size && !found; c++) {
        Handle h = handle((uint32_t)t, c);
        for (stamp++; parents[table_of(h)] && cell_of(h) < parents[table_of(h)]->size;) {
          uint32_t& mark = seen[table_of(h)][cell_of(h)];
          if (mark) {
            found = mark == stamp;
            break;
          }
          mark = stamp;
          const uint64_t from = (*parents[table_of(h)])[cell_of(h)];
          if (!from) break;
          h = from - 1;
        }
        if (!found) continue;
        const Handle first = h;
        cycle.clear();
        do cycle.push(h), h = (*parents[table_of(h)])[cell_of(h)] - 1;
        while (h != first);
      }
    for (int64_t t = 0; t < seen.size; t++) seen[t].release();
    return found;
  }
};

}  // namespace dynagrad
