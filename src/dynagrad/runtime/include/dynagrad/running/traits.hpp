// What tables, stages and programs are: constants by which the templates of `item.hpp` choose what they do.
//
// A class names those that are not as they are here; `codegen/rules/traits.py` says when. What a program is stands in
// `ChartBase`. Numbers of tables and stages are asked of an object: in programs of thousands of rules, tables that are
// alike have one type. What follows of traits alone is here, too: an item's arguments, and how its values are compared.
#pragma once
#include <dynagrad/running/chart.hpp>

namespace dynagrad {

enum class Strategy : uint8_t { once, levels, solve, heap, queue, stack, sweep };
enum class Priority : uint8_t { none, size, value, declared };

struct StageTraits {
  using Level = int64_t;
  using Rank = double;                      // what a priority is
  static constexpr int forms = 0;           // of the levels of its items
  static constexpr int unknowns = 0;        // the degree of the equations of its components
  static constexpr bool grows = false;      // arguments may grow without bound
  static constexpr int64_t quiet = 0;       // pops in a row without a changed digit, after which it stops
  static constexpr bool in_rows = false;    // items wait in rows, at least those of some tables
  static constexpr bool estimates = false;  // the remainder of its iteration
  static constexpr bool improves = false;   // items are watched for gains around cycles
  static constexpr bool gains_around = false;  // ... which improvements alone close
  static constexpr bool rests = false;      // updates may rest with items
  static constexpr bool selects = false;    // a pass back waits for the instances that updates came from
  static constexpr bool rolls_back = false; // a pass back takes pops back one by one
  static constexpr bool pops_once = false;  // each item, which is final then
  static constexpr bool joins_itself = false;  // joins inside a level look up other items of it
  static constexpr bool in_lines = false;   // items that differ in a stable argument alone are one node, see `solving/blocks.hpp`
  static constexpr bool linear = false;     // its components are declared to be
  static constexpr bool newton = false;     // ... or to be solved by Newton's method
  static constexpr bool has_axioms = false; // facts are given for one of its tables, too
  static constexpr bool seals = false;      // one of its tables is never popped
  static constexpr Priority priority = Priority::none;
  template <class P>
  static int span(P&) { return 1; }         // of the levels
  template <class P>
  static void fire(P&) {}                   // no join fires without an item
  template <class P>
  static void fire_back(P&) {}              // ... or has a derivative
  template <class P, class F>
  static void on(P&, Handle, F&&) {}        // no item is popped
  template <class P, class F>
  DYNAGRAD_ALWAYS static bool in_rows_back(P&, F f) { return f(); }  // nothing waits in rows on the way back
};
template <class Stage>
constexpr bool watches_gains = Stage::estimates || Stage::improves;

struct TableTraits {
  static constexpr bool sink = false;           // never an antecedent
  static constexpr bool waits = false;          // in an agenda
  static constexpr bool pops_again = false;     // with a pending update beside its value
  static constexpr bool keeps_updates = false;  // has one: of these, or of a round
  static constexpr bool pops_rows = false;      // items that stand side by side are popped together
  static constexpr bool has_indexes = false;
  static constexpr bool has_axioms = false;     // facts are given for it, too
  static constexpr bool ranked = false;         // items have a priority of their own
  static constexpr bool holds_back = false;     // pruning or a beam may
  static constexpr bool adds = false;           // contributions are added by the program's plus
  static constexpr bool asked_for = false;      // or nothing is
  static constexpr bool together = false;       // its joins put sums over stretches of facts off
  static constexpr bool in_rows = false;        // joins are made for rows of its items
  static constexpr bool at_once = false;        // ... and nothing else is to be done when one is popped
  static constexpr bool truth = false;          // values are 0 and 1
  static constexpr bool clause = false;         // each item is worth one
  static constexpr bool one_value = false;      // all contributions have to be the same
  static constexpr bool selects = false;        // the value is one of the contributions
  static constexpr bool multiplies = false;     // ... or their product
  static constexpr bool keeps_rest = false;     // what rounding takes from the log of a sum
  static constexpr bool excuses = false;        // flags say that an infinite value is right
  static constexpr bool bounded = false;        // items keep the error bound of their component
  static constexpr bool settles = false;        // tangents of updates that change nothing rest
  static constexpr bool steps = false;          // its values have no derivatives
  static constexpr bool undoes_rows = false;    // pops that stand side by side are undone together
  static constexpr bool rows_back = false;      // ... by joins that were made for whole rows
  static constexpr bool sums = false;           // the value is the sum of the contributions
  static constexpr bool sums_up = false;        // ... and its adjoint that of all values that an item had
  static constexpr bool rests = false;          // updates that change nothing rest, and have an adjoint
  static constexpr bool keeps_total = false;    // of which contributions have a share, for each round
  static constexpr bool drives_choices = false; // all joins lead to heads that select
  static constexpr bool together_back = false;  // joins put adjoints of stretches of facts off
  static constexpr int stable = -1;             // the place of the argument in which the items of a line differ
  static constexpr int sign = 0;                // 1 where the larger contribution wins, -1 where the smaller one does
  static constexpr double none = 0;             // without a semiring: what an item has without a contribution
};

template <class T>
constexpr bool by_level = T::Stage::strategy == Strategy::levels || T::Stage::strategy == Strategy::solve;
template <class T>
constexpr bool sweeps = T::Stage::strategy == Strategy::sweep;
template <class T>
constexpr bool solves = T::Stage::strategy == Strategy::solve;
template <class T>
constexpr bool infinite_none = T::none == HUGE_VAL || T::none == -HUGE_VAL;

// -- an item's arguments, in the order of the rules -------------------------------------------------------------------

template <int N>
struct Arguments {
  int32_t at[N + 1];
  DYNAGRAD_ALWAYS int32_t operator[](int i) const { return at[i]; }
  DYNAGRAD_ALWAYS operator const int32_t*() const { return at; }
};
template <class T>
DYNAGRAD_ALWAYS Arguments<T::arity> arguments_of(const T& table, int64_t cell) {
  Arguments<T::arity> a;
  table.arguments_by(T::order, (uint32_t)cell, a.at);
  return a;
}
// The cell that represents an item where its component is solved: that of the first item of its line.
template <class T>
DYNAGRAD_ALWAYS int64_t line_of(const T& table, int64_t cell) {
  if constexpr (T::stable >= 0) return table.line(cell, T::stable);
  else return cell;
}
// The place of an item among 64 of its row, which wait together.
template <class T>
DYNAGRAD_ALWAYS int64_t within(const T& table, const int32_t* a) {
  return ((int64_t)a[T::order[T::arity - 1]] - table.range[T::arity - 1].low) & 63;
}

// -- values -----------------------------------------------------------------------------------------------------------

// How large a number is.
template <class P, class T>
DYNAGRAD_ALWAYS double size_of(const typename T::Value& x) {
  if constexpr (P::plain) return fabs(T::Semiring::primal(x));
  else return T::Semiring::size(T::Semiring::zero(), x, x);
}
// Whether a contribution is selected over what an item has.
template <class P, class T>
DYNAGRAD_ALWAYS bool improves(const typename T::Value& x, const typename T::Value& here) {
  using S = typename T::Semiring;
  if constexpr (!P::plain) return S::better(x, here);
  else if constexpr (T::sign > 0) return S::primal(x) > S::primal(here);
  else if constexpr (T::sign < 0) return S::primal(x) < S::primal(here);
  else return false;
}
template <class T>
DYNAGRAD_ALWAYS typename T::Value& pending_of(T& table, int64_t cell) {
  if constexpr (T::keeps_updates) return table.pending[cell];
  else return table.value[cell];
}
// What an item has, plus a contribution.
template <class T>
DYNAGRAD_ALWAYS typename T::Value sum(T& table, int64_t cell, const typename T::Value& here, const typename T::Value& x) {
  if constexpr (T::keeps_rest) return T::Semiring::log_plus(here, x, grown(table.rest, cell, 0.0));
  else return T::plus(here, x);
}
// Whether a user's plus and less agree about two values, since the run uses both; else it fails, and they are kept for
// the message.
template <class P, class T>
DYNAGRAD_ALWAYS bool agree(P& p, T& table, int64_t cell, const typename T::Value& a, const typename T::Value& b) {
  if constexpr (P::ordered) {
    if (__builtin_expect(T::Semiring::agree(a, b), 1)) return true;
    p.disagree.clear();
    for (double x : a.v) p.disagree.push(x);
    for (double x : b.v) p.disagree.push(x);
    p.fail(no_order, table.number, cell);
    return false;
  }
  return true;
}

}  // namespace dynagrad
