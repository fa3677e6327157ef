// Cotangents in and derivatives out: adjoints as whoever stands outside of a program sets and reads them.
//
// Arrays of adjoints come as addresses, as `TableView` has them. S is the semiring and Back what adjoints are of.
//
// How adjoints are propagated between these is in `running/sweep.hpp`.
#pragma once
#include <dynagrad/storage/looking.hpp>
#include <dynagrad/running/tape.hpp>

namespace dynagrad {

// How a row of facts joined its copies, and so what each copy has of the row's adjoint.
enum class CopyKind : uint8_t { sum, select, product, shift, softmax, step };

template <class S, class Back>
struct Cotangents {
  using Value = typename S::Value;
  using Adjoint = typename Back::Adjoint;
  static constexpr bool posteriors = __is_same(Back, Posterior);
  static constexpr bool plain = requires(Value x) { S::share(x, x, x); };

  static Adjoint& at(void* array, int64_t cell) { return (*(Array<Adjoint>*)array)[cell]; }

  // Makes room for the adjoints of a table, all zero, which are then seen through `t`: n that a pass back starts from, and
  // others that it ends with, and those of its facts, if it has any. Those of facts may be lent, with what they are.
  static void open(TableView& t, Array<Adjoint>& adjoints, Array<Adjoint>& totals, Array<Adjoint>* axioms, int64_t n);
  // Adds to the adjoint of an item; `whole`: one, whatever the scale. 0 where there is no such item.
  static int64_t seed(const Looking& chart, int64_t table, const int32_t* a, const uint64_t* cotangent, bool whole);
  // The derivative by an item, or its adjoint, `whole`. 0 where there is no such item.
  static int64_t read(const Looking& chart, int64_t table, const int32_t* a, uint64_t* words, bool whole);
  // Those by all items of a table, `room` at most. Returns how many there are.
  static int64_t read_items(const Looking& chart, int64_t table, uint64_t* words, int64_t room);
  // Those by rows of facts as they were given, with the numbers that were given (null: all one).
  static void read_rows(const Looking& chart, int64_t table, CopyKind kind, const uint64_t* given, uint64_t* words);
};

// Not in the class: what is not inline is not made again where it is known (`known.hpp`).
template <class S, class Back>
void Cotangents<S, Back>::open(TableView& t, Array<Adjoint>& adjoints, Array<Adjoint>& totals, Array<Adjoint>* axioms,
                               int64_t n) {
  Array<Adjoint>* const lent = (Array<Adjoint>*)t.lent;
  if (lent && lent->size == n) adjoints.swap(*lent);
  else adjoints.zeros(n);
  t.adjoints = &adjoints, t.totals = &totals, t.axioms = axioms;
}
template <class S, class Back>
int64_t Cotangents<S, Back>::seed(const Looking& chart, int64_t table, const int32_t* a, const uint64_t* cotangent,
                                  bool whole) {
  const int64_t cell = chart.place(table, a);
  if (cell < 0) return 0;
  const TableView& t = chart.views[table];
  Adjoint& g = at(t.adjoints, cell);
  Adjoint own = Back::start(cotangent, value_at<S>(t, cell));
  if constexpr (!posteriors) own = whole ? S::one() : own;
  g = Back::gather(g, own);
  return 1;
}
template <class S, class Back>
int64_t Cotangents<S, Back>::read(const Looking& chart, int64_t table, const int32_t* a, uint64_t* words, bool whole) {
  const int64_t cell = chart.place(table, a);
  if (cell < 0) return 0;
  const TableView& t = chart.views[table];
  const Adjoint g = at(t.totals, cell);
  if constexpr (!posteriors)
    if (whole) return S::write(g, words), 1;
  Back::finish(g, value_at<S>(t, cell), words);
  return 1;
}
template <class S, class Back>
int64_t Cotangents<S, Back>::read_items(const Looking& chart, int64_t table, uint64_t* words, int64_t room) {
  const TableView& t = chart.views[table];
  const int64_t bound = t.items ? bound_of(*t.items) : 0;
  int64_t count = 0;
  for (int64_t c = t.items ? t.items->popped.next(0, bound) : -1; c >= 0; c = t.items->popped.next(c + 1, bound)) {
    if (count++ >= room) continue;
    Back::finish(at(t.totals, c), ReaderOf<S>::at(t.values, c), words);
    words += S::adjoint_words;
  }
  return count;
}
template <class S, class Back>
void Cotangents<S, Back>::read_rows(const Looking& chart, int64_t table, CopyKind kind, const uint64_t* given,
                                    uint64_t* words) {
  const TableView& t = chart.views[table];
  const FactTable& facts = *t.facts->table;
  const auto& value = *(const typename Weights<S>::View*)t.view;
  const Adjoint* const g = ((Array<Adjoint>*)t.axioms)->data;
  const bool copies = facts.given != facts.rows;
  if (kind == CopyKind::step) {
    memset((void*)words, 0, (size_t)facts.given * S::adjoint_words * 8);
    return;
  }
  if (posteriors && facts.in_order) {
    memcpy((void*)words, (const void*)g, (size_t)facts.rows * sizeof(Adjoint));
    return;
  }
  const auto number = [&](int64_t n) { return given ? S::read(given + n * S::words) : S::one(); };
  Array<uint8_t> taken;
  if (kind == CopyKind::select) taken.zeros(facts.rows);
  Factors<S> factors{nullptr};
  if constexpr (plain)
    for (int64_t n = 0; n < facts.given && kind == CopyKind::product && copies; n++)
      factors.add(facts.row_of[n], number(n));
  Array<double> shares;  // of a row, what its copies have of it, which is one but for rounding
  if constexpr (plain)
    if (kind == CopyKind::softmax && copies) {
      shares.zeros(facts.rows);
      for (int64_t n = 0; n < facts.given; n++) {
        const double x = S::primal(number(n)), all = S::primal(value[facts.row_of[n]]);
        shares[facts.row_of[n]] += all == -INFINITY ? 0 : exp(x - all);
      }
    }
  for (int64_t n = 0; n < facts.given; n++) {
    const int64_t row = facts.row_of[n];
    const Value x = number(n);
    Adjoint own = g[row];
    if (kind == CopyKind::select) {  // of equal copies the first was selected
      if (taken[row] || S::primal(x) != S::primal(value[row])) own = {};
      else taken[row] = 1;
    }
    // a copy has its share of the merged weight
    if constexpr (posteriors)
      if (copies && kind != CopyKind::shift) own = Posterior::of(Posterior::share(own, value[row]), x);
    if constexpr (plain) {
      if (kind == CopyKind::product && copies) own = Back::scale(own, factors.others(row, x));
      if (kind == CopyKind::softmax && copies)
        own = S::share(own, x, value[row], shares[row] > 0 ? log(shares[row]) : 0);
    }
    // where copies are added as logs, the derivative by each is that by the sum
    Back::finish(own, kind == CopyKind::shift ? value[row] : x, words + n * S::adjoint_words);
  }
}

}  // namespace dynagrad
