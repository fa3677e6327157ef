// Linear systems with many right sides, one for each value of a stable argument (`plan/analyses/stable.py`).
//
// Use of `Columns`: `open`; push the values of the argument that have contributions from outside to `column`; add the
// instances of any one of them to the `System`, and the contributions from outside to `given`, which has a row for each
// unknown and a column for each value; `solve` leaves `value`, in the same shape. Where no weight is negative and all
// pivots are positive, one factorisation serves all columns. Otherwise columns are solved one by one.
#pragma once
#include <dynagrad/solving/solve.hpp>

namespace dynagrad {

template <class S>
struct Columns {
  using Value = typename S::Value;
  using P = Parts<S>;
  static constexpr int parts = P::count;

  System<S, 1>& system;
  Array<int64_t> column;       // values of the argument, as distances from its least
  Array<Value> given, value;   // per unknown, for each column
  double bound = 0;            // see `System`: the largest of all columns
  int64_t failing = 0;         // the column of which `solve` tells the end

  __attribute__((noinline)) ~Columns() {}
  __attribute__((noinline)) explicit Columns(System<S, 1>& s) : system(s) {
    given.account = value.account = x_.account = b_.account = left_.account = &s.owner->account;
  }

  // Forgets a component, and gives back what it took.
  void close() { given.release(), value.release(), x_.release(), b_.release(), left_.release(); }
  void open() {
    column.clear(), given.clear();
    bound = 0, failing = 0;
  }

  __attribute__((noinline)) Solved solve() {
    const int64_t n = system.n, m = column.size;
    for (int64_t i = 0; i < n * m; i++) given[i] = S::plus(given[i], system.given[i / m]);  // constant terms
    value.clear(), value.resize(n * m, S::zero());
    done_.wipe(m);
    if (m > 1 && system.factor_for_all()) {
      const Solved how = solve_side_by_side();
      if (how != Solved::fine) return how;
    }
    if (system.linear.halted) return Solved::halted;
    Solved worst = Solved::fine;
    for (int64_t j = 0; j < m; j++) {
      if (done_[j]) continue;
      take(given, j, system.given);
      system.bound = 0;
      const Solved how = system.solve();
      if (how != Solved::fine) failing = j, worst = how;
      if (how != Solved::fine && how != Solved::near_critical) return how;
      if (system.bound > bound) bound = system.bound;
      put(system.value, j, value);
    }
    return worst;
  }

  // Backward, with the solution in `value`: adjoints of values into those of what comes from outside. What is left over
  // in `done` is for each column alone.
  template <class Back>
  Solved solve_adjoints(Array<typename Back::Adjoint>& g) {
    done_.wipe(column.size);
    if constexpr (parts == 1 && sizeof(typename Back::Adjoint) == sizeof(double))
      if (column.size > 1 && system.factor_for_all()) adjoints_side_by_side(g);
    return system.linear.halted ? Solved::halted : Solved::fine;
  }
  bool done(int64_t j) const { return done_[j]; }
  // Whether any number of the solution has a tangent.
  bool has_tangent() {
    for (int64_t j = 0; j < column.size; j++) {
      take(value, j, system.value);
      if (system.has_tangent()) return true;
    }
    return false;
  }
  template <class T>
  void take(const Array<T>& all, int64_t j, Array<T>& one) const {
    one.clear();
    for (int64_t i = 0; i < system.n; i++) one.push(all[i * column.size + j]);
  }
  template <class T>
  void put(const Array<T>& one, int64_t j, Array<T>& all) const {
    for (int64_t i = 0; i < system.n; i++) all[i * column.size + j] = one[i];
  }

 private:
  Array<double> b_, x_, left_;  // primal numbers, in the shape of `given`
  Array<uint8_t> done_;         // columns with a solution
  Array<Log::Value> unit_;      // per column

  static double primal(const Value& v, const Log::Value& unit) {
    double all[parts];
    P::split(v, unit, all);
    return all[0];
  }
  // In `log`, per column the exponent of its largest number, which all of it are relative to.
  void choose_units(const Array<Value>& numbers) {
    const int64_t m = column.size;
    unit_.clear(), unit_.resize(m, Log::one());
    if constexpr (P::scaled) {
      for (int64_t j = 0; j < m; j++) unit_[j].e = INT64_MIN;
      for (int64_t i = 0; i < numbers.size; i++) {
        const Log::Value size = P::size(numbers[i]);
        if (size.m != 0 && size.e > unit_[i % m].e) unit_[i % m].e = size.e;
      }
      for (int64_t j = 0; j < m; j++)
        unit_[j] = Log::unit_of(unit_[j].e == INT64_MIN ? 0 : unit_[j].e);
    }
  }

  // The solutions for `b_` in `x_`, and in `left_` what is to be added to them.
  void solve_with_correction(bool transposed) {
    const int64_t m = column.size;
    LinearSystem& linear = system.linear;
    left_.raw(system.n * m), x_.copy(b_);
    linear.solve(x_.data, m, transposed);
    linear.residual(b_.data, x_.data, left_.data, m, transposed);
    linear.solve(left_.data, m, transposed);
  }

  // Rows of the factors have no negative numbers beside their pivots, so that a solution is a sum without cancellation,
  // and one correction takes out what rounding did to the pivots. By how much it moved the solution, and by how much the
  // system may magnify rounding, says whether a column is good.
  Solved solve_side_by_side() {
    const int64_t n = system.n, m = column.size;
    LinearSystem& linear = system.linear;
    b_.raw(n * m);
    for (int64_t j = 0; j < m; j++) done_[j] = 1;
    choose_units(given);
    for (int64_t i = 0; i < n * m; i++) {
      b_[i] = primal(given[i], unit_[i % m]);
      const bool lost = b_[i] == 0 && System<S, 1>::nonzero(given[i]);
      if (lost || !System<S, 1>::fits_doubles(b_[i])) done_[i % m] = 0, b_[i] = 0;
    }
    solve_with_correction(false);
    Array<double> inverse;  // of I - A, times ones
    inverse.filled(n, 1.0);
    linear.solve(inverse.data, 1, false);
    if (linear.halted) return Solved::halted;
    Array<double> most, moved, condition;
    most.zeros(m), moved.zeros(m), condition.zeros(m);
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < m; j++) {
        double& x = x_[i * m + j];
        const double step = fabs(left_[i * m + j]);
        if (step > moved[j] * x) moved[j] = step / x;
        x += left_[i * m + j];
        if (!isfinite(x)) done_[j] = 0;
        if (inverse[i] > condition[j] * x && x != 0) condition[j] = inverse[i] / x;
        if (x > most[j]) most[j] = x;
        if (P::scaled && b_[i * m + j] == 0 && x < 1e-250) condition[j] = INFINITY;
      }
    bool doubtful = false;
    for (int64_t j = 0; j < m; j++) {
      if (most[j] == 0) continue;  // nothing comes from outside
      const double rounded = condition[j] * most[j] * System<S, 1>::rounding;
      done_[j] = done_[j] && most[j] < 1e250 && moved[j] <= 1e-9 && rounded <= 1e-10;
      doubtful = doubtful || (done_[j] && rounded > 1e-15);
    }
    if (doubtful) {  // the condition of each number, as `System::judge` has it
      left_.copy(x_);
      linear.solve(left_.data, m, false);
      for (int64_t i = 0; i < n * m; i++) {
        const double own = x_[i] > 0x1p-1022 && done_[i % m] ? left_[i] / x_[i] : 0;
        if (own > 4) bound = fmax(bound, 4 * own * System<S, 1>::rounding);
      }
      if (linear.halted) return Solved::halted;
    }
    for (int64_t i = 0; i < n * m; i++) {
      double all[parts] = {};
      all[0] = x_[i];
      value[i] = P::join(all, unit_[i % m]);
    }
    for (int64_t j = 0; parts > 1 && j < m; j++) {
      if (!done_[j]) continue;
      take(given, j, system.given), take(value, j, system.value);
      if (!system.complete()) return Solved::halted;  // all columns are factored, so that nothing else may stop it
      put(system.value, j, value);
    }
    return Solved::fine;
  }

  // In `log` adjoints are those of logs, and so relative to values.
  void adjoints_side_by_side(Array<double>& g) {
    const int64_t n = system.n, m = column.size;
    LinearSystem& linear = system.linear;
    b_.raw(n * m);
    for (int64_t j = 0; j < m; j++) done_[j] = 1;
    choose_units(value);
    for (int64_t i = 0; i < n * m; i++) {
      b_[i] = g[i];
      if constexpr (P::scaled) {
        const double x = primal(value[i], unit_[i % m]);
        if (!System<S, 1>::fits_doubles(x) || (x == 0 && System<S, 1>::nonzero(value[i]))) done_[i % m] = 0;
        b_[i] = g[i] == 0 || x == 0 ? 0 : g[i] / x;
      }
      if (!isfinite(b_[i])) done_[i % m] = 0, b_[i] = 0;
    }
    solve_with_correction(true);
    if (linear.halted) return;
    Array<double> most, moved;
    most.zeros(m), moved.zeros(m);
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < m; j++) {
        const double step = fabs(left_[i * m + j]), x = x_[i * m + j] += left_[i * m + j];
        if (!isfinite(x)) done_[j] = 0;
        if (step > moved[j]) moved[j] = step;
        if (fabs(x) > most[j]) most[j] = fabs(x);
      }
    for (int64_t j = 0; j < m; j++) done_[j] = done_[j] && moved[j] <= 1e-9 * most[j] && most[j] < 1e300;
    for (int64_t i = 0; i < n * m; i++) {
      if (!done_[i % m]) continue;
      if constexpr (P::scaled) g[i] = x_[i] * primal(value[i], unit_[i % m]);
      else g[i] = x_[i];
    }
  }
};

}  // namespace dynagrad
