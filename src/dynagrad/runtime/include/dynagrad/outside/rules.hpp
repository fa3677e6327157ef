// What the class of every program needs that Python calls: included first, and compiled once (`cache.py`).
//
// What else a class needs, it includes itself: `codegen/rules/program.py` says what.
#pragma once
#include <dynagrad/running/rounds.hpp>
#include <dynagrad/running/sweep.hpp>
#include <dynagrad/outside/entry.hpp>
#include <dynagrad/outside/known.hpp>
#include <dynagrad/changing/rederive.hpp>
#include <dynagrad/visiting/collect.hpp>
#include <dynagrad/visiting/mark.hpp>
#include <dynagrad/visiting/forward.hpp>
#include <dynagrad/visiting/reverse.hpp>

#if defined(DYNAGRAD_LINKED)
namespace dynagrad {
// What most programs use of templates, so that it is known. None of this is called.
template <class T>
inline void opened() {
  T made{(Account*)nullptr};
}
template <class T>
inline void begun(T& table) {
  TableView view;
  table.begin(view, nullptr, nullptr, nullptr, false, false);
}
template <class R>
inline void filled(R& relation) {
  TableView view;
  bool zeros = false;
  relation.begin(view, zeros, nullptr, nullptr);
}
template <class Agenda>
inline void by_rows(Agenda& agenda, uint64_t cells) {
  Handle h = 0;
  agenda.open(1), agenda.push(h, cells, 0), agenda.push_from(h, 0, cells, 0), agenda.pop(h, cells, false);
}
template <class S>
inline void usual(Relation<Facts<1>, S>& a, Relation<Facts<2>, S>& b, Relation<Facts<3>, S>& c,
                  Dense<S, 0>& none, Dense<S, 1>& one, Dense<S, 2>& two, Dense<S, 3>& three, Tape<S>& tape, int32_t i) {
  opened<Dense<S, 0>>(), opened<Dense<S, 1>>(), opened<Dense<S, 2>>(), opened<Dense<S, 3>>(), opened<Tape<S>>();
  opened<Array<typename S::Value>>(), opened<Array<typename S::Adjoint>>();
  begun(none), begun(one), begun(two), begun(three), filled(a), filled(b), filled(c);
  a.column(0), a.rows(), a.find(i), b.column(0), b.find(i, i), c.column(0), c.find(i, i, i);
  none.locate(), none.find(), one.locate(i), one.find(i), two.locate(i, i), two.find(i, i);
  three.locate(i, i, i), three.find(i, i, i), three.inside(i, i, i), three.cell(i, i, i), three.row_length();
  none.value[0] = none.value[0], one.arguments(0, &i), two.arguments(0, &i), three.arguments(0, &i);
  tape.pops.push(0), tape.begins.push(0), tape.end(0), tape.bytes();
}
inline void usual(Levels<int64_t>& narrow, Levels<__int128>& wide, RowLevels<int64_t>& narrow_rows,
                  RowLevels<__int128>& wide_rows, const Grouping<1>& by, const Grouping<2>& by_two) {
  Handle h = 0;
  opened<Levels<int64_t>>(), opened<Levels<__int128>>(), opened<RowLevels<int64_t>>(), opened<RowLevels<__int128>>();
  by_rows(narrow_rows, 0), by_rows(wide_rows, 0), narrow.open(1), wide.open(1);
  narrow.push(h, 0), narrow.pop(h), wide.push(h, 0), wide.pop(h), by.find(0), by_two.find(0, 0);
  (void)&usual<Log>, (void)&usual<Real>, (void)&usual<Viterbi>, (void)&usual<Tropical>;
}
}  // namespace dynagrad
#endif
