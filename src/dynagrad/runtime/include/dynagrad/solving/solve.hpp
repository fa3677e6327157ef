// The solution of a strongly connected component of the ground program, x = F(x), and its derivatives.
//
// Use of a `System`: `open` with the number of items; `add` every instance whose head is in the component, as a weight
// times a product of unknowns; `solve`, which leaves the least solution in `value`; or, from a known solution,
// `adjoint`. Weights and values are numbers of the semiring.
//
// Decisions are made by primal numbers, as doubles. In `log` these are relative to a scale for each unknown, so that
// they neither overflow nor underflow. A system in which each instance has one unknown is linear: one factorisation of
// I - A. Any other is a polynomial one: Newton's method from zero, which for a strongly connected monotone system
// converges to the least solution if there is one (Etessami and Yannakakis 2009, "Recursive Markov chains, stochastic
// grammars, and monotone systems of nonlinear equations"). The other components of a number (tangents, the r of an
// expectation) are nilpotent: each correction x += (I - J)^-1 (F(x) - x), with J the Jacobian of the primal part, makes
// one more order of them exact, and the last one removes rounding. So derivatives are those of the implicit function,
// forward over jets, backward with the transpose, and both over jets.
//
// Unknowns that no nonzero constant reaches have the value zero, whatever the weights around them. A system without a
// finite solution `diverges`; one with a solution whose tangents have none has `no_tangent`. Where weights are
// negative, only a linear system whose iteration would converge is solved; `unsolved` says that iteration has to
// decide.
//
// It is long because the least solution and its derivatives in both directions share one factorisation.
#pragma once
#include <dynagrad/solving/linear.hpp>
#include <dynagrad/solving/parts.hpp>
#include <dynagrad/solving/reach.hpp>

namespace dynagrad {

enum class Solved { fine, near_critical, diverges, overflows, unsolved, no_tangent, halted };

// The equations x = F(x) of one component, over a semiring of numbers with a sum: all but counts and those of users.
template <class S, int K>
struct System {
  using Value = typename S::Value;
  using P = Parts<S>;
  static constexpr uint32_t none = 0xFFFFFFFF;
  static constexpr int parts = P::count;
  static constexpr double rounding = 2.220446049250313e-16, half_the_digits = 2e-9, some_digits = 1e-4;
  static constexpr double patient = 6e10;         // operations of a factorisation, where iteration will not do
  static constexpr int64_t unbounded = int64_t(1) << 40;  // an exponent that only a cycle without a solution gets to
  struct Instance { Value weight; uint32_t head; uint32_t of[K]; };

  ChartBase* owner;
  int64_t n = 0;
  Array<Instance> instances;
  Array<Value> given, value;     // what comes from outside; the solution
  double bound = 0;              // of the solution's relative error, rounding apart
  double radius = 0;             // of a system that diverges
  Array<uint32_t> cycle;         // ... unknowns around one of its cycles
  LinearSystem linear;
  bool must_be_linear = false, always_newton = false;  // what the program declares

  __attribute__((noinline)) explicit System(ChartBase* chart) : owner(chart) {
    Account* account = &chart->account;
    instances.account = given.account = value.account = last_.account = unit_.account = reachable_.account = account;
    x_.account = f_.account = size_.account = z_.account = weight_.account = b_.account = shift_.account = account;
    last_shift_.account = account;
    linear.count(account);
    if (P::scaled) linear.most_flops = patient;  // iteration starts from best derivations, which may be far from the sums
  }

  __attribute__((noinline)) ~System() {}

  __attribute__((noinline)) void open(int64_t unknowns) {
    n = unknowns;
    instances.clear();
    given.clear(), given.resize(n, S::zero());
    shift_.wipe(n);
    bound = radius = 0;
  }
  // In `log`: an instance that only multiplies its own head by a weight, whose log is known to the last digit. One minus
  // the weight is formed from it, and not from the weight, which near one has lost what counts.
  void add_loop(uint32_t head, const Value& weight, const uint32_t* of, double log) {
    const double w = first(weight);
    if (log < 0.1 && log > -0.1) shift_[head] += -expm1(log) - (1 - w);
    add(head, weight, of);
  }
  void add(uint32_t head, const Value& weight, const uint32_t* of) {
    Instance i{weight, head, {}};
    bool unknown = false;
    for (int k = 0; k < K; k++) i.of[k] = of[k], unknown = unknown || of[k] != none;
    if (unknown) instances.push(i);
    else given[head] = S::plus(given[head], weight);  // a constant term
  }

  // -- forward

  __attribute__((noinline)) Solved solve() {
    if constexpr (P::scaled) {
      const Solved how = solve_in_doubles();
      if (how != Solved::unsolved) return how;
      factored_ = false;
    }
    const bool again = !P::scaled && same_matrix();
    if (!again) prepare();
    if (must_be_linear && !is_linear_) return Solved::unsolved;
    value.clear(), value.resize(n, S::zero());
    Array<double>& x = x_;
    x.wipe(n);
    if (!finite()) return Solved::unsolved;  // infinite numbers are for iteration, which sums them as they come
    const bool as_linear = is_linear_ && (!always_newton || signed_);
    const Solved how = again ? solve_again(x) : as_linear ? solve_linear(x) : solve_newton(x);
    if (how == Solved::diverges) describe(x);
    if (!again) {
      factored_ = how == Solved::fine && as_linear && !signed_ && !restricted_ && !P::scaled;
      if (factored_) last_.copy(instances);
    }
    if (how != Solved::fine && how != Solved::near_critical) return how;
    return finish(x, how);
  }

  // -- backward: given the solution in `value`, solves a = J' a + g; `g` and the result are arrays of n doubles
  // (of `parts` each) relative to the units. False where that has no finite solution.
  __attribute__((noinline)) Solved adjoint(Array<double>& g) {
    factored_ = false;
    Array<double> x;
    primals(x);
    Array<uint8_t> keep;
    reached_backward(g, keep);
    jacobian(x, &keep);
    if (!linear.factor() && !(signed_ && !linear.halted)) return linear.halted ? Solved::halted : Solved::diverges;
    Array<double> a;
    a.copy(g);
    if constexpr (parts == 1) {
      linear.solve(a.data, 1, true);
      if (!refine_transposed(g, a)) return Solved::unsolved;
    } else {
      if (!correct_transposed(g, a)) return linear.halted ? Solved::halted : Solved::unsolved;
    }
    if (linear.halted) return Solved::halted;
    g.copy(a);
    for (int64_t i = 0; i < n * parts; i++)
      if (!isfinite(g[i])) return Solved::diverges;
    return Solved::fine;
  }
  const Log::Value& unit(int64_t i) const { return unit_[i]; }
  // Whether any number of the solution has a tangent.
  __attribute__((noinline)) bool has_tangent() const {
    for (int64_t i = 0; i < n; i++)
      if (anything(value[i], P::values)) return true;
    return false;
  }
  // Before `adjoint`: chooses the units.
  void measure() { prepare_at_solution(); }

  // -- for `Columns`: the same system for many right sides

  // Factors I - A once for all that may come from outside. False where that depends on it: where weights have signs, a
  // pivot is not positive, or the numbers ask for units.
  __attribute__((noinline)) bool factor_for_all() {
    factored_ = false;
    unit_.clear(), unit_.resize(n, Log::one());
    given.clear(), given.resize(n, S::zero());
    relative();
    if (!weights_fit_doubles()) return false;
    jacobian(b_, nullptr);
    return linear.factor() && !linear.iterative;
  }
  // Whether a number is not negative, and in the range where products need no exponent.
  static bool fits_doubles(double x) { return P::scaled ? x == 0 || (x > 1e-100 && x < 1e100) : x >= 0 && x <= 1e300; }
  static bool nonzero(const Value& v) {
    if constexpr (P::scaled) return P::size(v).m != 0;
    else return first(v) != 0;
  }
  // With one column in `given`, and the primal part of its solution in `value`: all other parts.
  bool complete() { return parts == 1 || correct(); }

 private:
  Array<double> x_, f_, size_, z_;  // room for vectors, kept from system to system
  Array<Instance> last_;         // what is factored, where that may serve again: rules for one span are those for others
  bool factored_ = false;
  Array<double> last_shift_;     // ... and its
  Array<double> shift_;          // see `add_loop`
  Array<Log::Value> unit_;       // per unknown, what its numbers are relative to
  Array<double> weight_, b_;     // primal, relative
  Array<uint8_t> reachable_;     // whether anything non-zero reaches an unknown
  bool is_linear_ = false, signed_ = false;
  bool restricted_ = false;      // what is factored leaves out unknowns that nothing non-zero reaches

  static double first(const Value& v) {
    double all[parts];
    P::split(v, {1, 0}, all);
    return all[0];
  }

  // The solution `x` as numbers, with all their parts.
  Solved finish(const Array<double>& x, Solved how) {
    for (int64_t i = 0; i < n; i++) {
      double all[parts] = {};
      all[0] = x[i];
      value[i] = P::join(all, unit_[i]);
      if (!P::scaled && !isfinite(x[i])) return Solved::overflows;
    }
    if constexpr (parts > 1)
      if (!correct()) return linear.halted ? Solved::halted : Solved::no_tangent;
    return how;
  }
  // In `log`: a linear system whose weights are in the range of doubles, and, up to one factor, what comes from outside
  // and the solution. Its factors serve the next one, if it has the same instances. `unsolved`: it needs units.
  Solved solve_in_doubles() requires(P::scaled) {
    if (!same_matrix()) {
      unit_.clear(), unit_.resize(n, Log::one());
      relative();
      if (!weights_fit_doubles()) return Solved::unsolved;
      jacobian(b_, nullptr);
      if (!linear.factor() || linear.iterative) return linear.halted ? Solved::halted : Solved::unsolved;
      factored_ = true;
      last_.copy(instances), last_shift_.copy(shift_);
    }
    is_linear_ = true, signed_ = restricted_ = false;
    int64_t most = INT64_MIN;
    for (int64_t i = 0; i < n; i++)
      if (nonzero(given[i]) && P::size(given[i]).e > most) most = P::size(given[i]).e;
    for (int64_t i = 0; i < n; i++) {
      unit_[i] = Log::unit_of(most == INT64_MIN ? 0 : most);
      double all[parts];
      P::split(given[i], unit_[i], all);
      b_[i] = all[0];
      if (!fits_doubles(b_[i]) || (b_[i] == 0 && nonzero(given[i]))) return Solved::unsolved;
    }
    x_.copy(b_);
    linear.solve(x_.data, 1, false);
    const Solved how = refined(x_);
    if (how != Solved::fine) return how == Solved::halted ? how : Solved::unsolved;
    for (int64_t i = 0; i < n; i++)
      if (!(x_[i] > 1e-250 && x_[i] < 1e250)) return Solved::unsolved;
    reachable_.filled(n, 1);
    value.clear(), value.resize(n, S::zero());
    return finish(x_, how);
  }
  // Whether the system is linear, and no weight is negative or out of the range of doubles.
  bool weights_fit_doubles() const {
    bool fine = is_linear_ && !signed_ && !always_newton;
    for (int64_t i = 0; fine && i < instances.size; i++)
      fine = fits_doubles(weight_[i]) && (weight_[i] != 0 || !nonzero(instances[i].weight));
    return fine;
  }

  // Whether the instances are those of the last system, but for what comes from outside.
  bool same_matrix() {
    if (!factored_ || last_.size != instances.size || unit_.size != n) return factored_ = false;
    for (int64_t i = 0; i < instances.size; i++) {
      if (instances[i].head != last_[i].head || memcmp(&instances[i].weight, &last_[i].weight, sizeof(Value)))
        return factored_ = false;
      for (int k = 0; k < K; k++)
        if (instances[i].of[k] != last_[i].of[k]) return factored_ = false;
    }
    if constexpr (P::scaled)
      return memcmp(last_shift_.data, shift_.data, n * sizeof(double)) == 0 || (factored_ = false);
    for (int64_t i = 0; i < n; i++) b_[i] = first(given[i]), reachable_[i] = 1, signed_ = signed_ || b_[i] < 0;
    return !signed_ || (factored_ = false);
  }
  bool finite() const {
    bool fine = true;
    for (int64_t i = 0; i < n; i++) fine = fine && isfinite(b_[i]);
    for (int64_t i = 0; i < instances.size; i++) fine = fine && isfinite(weight_[i]);
    return fine;
  }
  Solved solve_again(Array<double>& x) {
    x.copy(b_);
    linear.solve(x.data, 1, false);
    return refined(x);
  }

  // What is known before solving: units, relative weights, signs, and which unknowns something reaches.
  __attribute__((noinline, cold)) void prepare() {
    unit_.clear(), unit_.resize(n, Log::one());
    reachable_.wipe(n);
    for (int64_t i = 0; i < n; i++)
      if (nonzero(given[i])) {
        reachable_[i] = 1;
        if constexpr (P::scaled) unit_[i] = positive(P::size(given[i]));
      }
    reach(instances, reachable_, [&](const Instance& t) {
      if (!nonzero(t.weight)) return false;
      if constexpr (P::scaled) unit_[t.head] = magnitude(t);
      return true;
    });
    if constexpr (P::scaled) {  // near the weight of the best derivation, so that what is relative to it is in range
      const int64_t tries = 20000000 / (instances.size + 1), rounds = 64 + (n < tries ? n : tries);
      bool grew = true;
      for (int64_t round = 0; grew && round < rounds; round++) {
        grew = false;
        for (int64_t i = 0; i < instances.size; i++) {  // to and fro, as derivations may be long in either direction
          const Instance& t = instances[round % 2 ? instances.size - 1 - i : i];
          bool known = nonzero(t.weight);
          for (int k = 0; k < K; k++) known = known && (t.of[k] == none || reachable_[t.of[k]]);
          if (!known) continue;
          const Log::Value m = magnitude(t);
          if (m.e > unbounded) continue;
          if (ratio(m.m, m.e, unit_[t.head]) > 2) unit_[t.head] = m, grew = true;
        }
      }
    }
    relative();
  }
  void prepare_at_solution() {
    unit_.clear(), unit_.resize(n, Log::one());
    reachable_.zeros(n);
    for (int64_t i = 0; i < n; i++) {
      reachable_[i] = nonzero(value[i]);
      if constexpr (P::scaled)
        if (reachable_[i]) unit_[i] = positive(P::size(value[i]));
    }
    relative();
  }
  static Log::Value positive(Log::Value v) { return {fabs(v.m), v.e}; }
  Log::Value magnitude(const Instance& t) const {
    if constexpr (P::scaled) {
      Log::Value m = positive(P::size(t.weight));
      for (int k = 0; k < K; k++)
        if (t.of[k] != none) m = Log::times(m, unit_[t.of[k]]);
      return m;
    } else {
      return Log::one();
    }
  }
  __attribute__((noinline, cold)) void relative() {
    weight_.raw(instances.size), b_.raw(n);
    is_linear_ = true, signed_ = restricted_ = false;
    for (int64_t i = 0; i < instances.size; i++) {
      const Instance& t = instances[i];
      int unknowns = 0;
      for (int k = 0; k < K; k++) unknowns += t.of[k] != none;
      is_linear_ = is_linear_ && unknowns == 1;
      if constexpr (P::scaled) {
        if (unknowns == 1 && loops(t)) {  // whatever the unit
          weight_[i] = first(t.weight);
          signed_ = signed_ || weight_[i] < 0;
          continue;
        }
        const Log::Value m = magnitude(t);
        weight_[i] = ratio(m.m, m.e, unit_[t.head]);
        if (P::size(t.weight).m < 0) weight_[i] = -weight_[i];
      } else {
        weight_[i] = first(t.weight);
      }
      signed_ = signed_ || weight_[i] < 0;
    }
    for (int64_t i = 0; i < n; i++) {
      double all[parts];
      P::split(given[i], unit_[i], all);
      b_[i] = all[0];
      signed_ = signed_ || b_[i] < 0;
    }
  }
  static bool loops(const Instance& t) {
    for (int k = 0; k < K; k++)
      if (t.of[k] == t.head) return true;
    return false;
  }
  void primals(Array<double>& x) const {
    x.zeros(n);
    for (int64_t i = 0; i < n; i++) {
      double all[parts];
      P::split(value[i], unit_[i], all);
      x[i] = all[0];
    }
  }

  // f = F(x), primal; `size` has the sums of the sizes of what is added.
  void evaluate(const Array<double>& x, Array<double>& f, Array<double>& size) const {
    f.copy(b_), size.raw(n);
    for (int64_t i = 0; i < n; i++) size[i] = fabs(b_[i]);
    for (int64_t i = 0; i < instances.size; i++) {
      const Instance& t = instances[i];
      double y = weight_[i];
      for (int k = 0; k < K && y != 0; k++)
        if (t.of[k] != none) y *= x[t.of[k]];
      f[t.head] += y, size[t.head] += fabs(y);
    }
    if constexpr (P::scaled)
      for (int64_t i = 0; i < n; i++) f[i] -= shift_[i] * x[i];
  }
  // The entries of J at x into `linear`, between unknowns that are kept.
  void jacobian(const Array<double>& x, const Array<uint8_t>* keep) {
    linear.open(owner, n);
    if constexpr (P::scaled)
      for (int64_t i = 0; i < n; i++) linear.shift[i] = !keep || (*keep)[i] ? shift_[i] : 0;
    for (int64_t i = 0; i < instances.size; i++) {
      const Instance& t = instances[i];
      if (keep && !(*keep)[t.head]) continue;
      for (int k = 0; k < K; k++) {
        if (t.of[k] == none || (keep && !(*keep)[t.of[k]])) continue;
        double y = weight_[i];
        for (int j = 0; j < K; j++)
          if (j != k && t.of[j] != none) y *= x[t.of[j]];
        if (y != 0) linear.put(t.head, t.of[k], y);
      }
    }
  }

  Solved solve_linear(Array<double>& x) {
    jacobian(x, nullptr);
    bool fine = linear.factor();
    if (linear.halted) return Solved::halted;
    if (!fine || signed_) {
      if (signed_) {  // it is solved where iteration would come to the same
        fine = linear.factor(true);
        if (linear.halted) return Solved::halted;
        if (!fine) return Solved::unsolved;
        linear.factor();
        if (linear.halted) return Solved::halted;
      } else {
        restricted_ = true;
        if (linear.radius_unknown) return Solved::unsolved;
        jacobian(x, &reachable_);
        if (!linear.factor())
          return linear.halted ? Solved::halted : linear.radius_unknown ? Solved::unsolved : Solved::diverges;
      }
    }
    x.copy(b_);
    linear.solve(x.data, 1, false);
    if constexpr (P::scaled)
      if (!signed_ && !linear.halted && !in_range(x)) {
        if (!rescale_to_solution()) return Solved::unsolved;
        jacobian(x, restricted_ ? &reachable_ : nullptr);
        if (!linear.factor()) return linear.halted ? Solved::halted : Solved::unsolved;
        x.copy(b_);
        linear.solve(x.data, 1, false);
      }
    return refined(x);
  }
  bool in_range(const Array<double>& x) const {
    for (int64_t i = 0; i < n; i++)
      if (!(fabs(x[i]) < 1e280)) return false;
    return true;
  }
  // Units that are the solution itself, where that is out of range of the best derivations: many long ones add up.
  __attribute__((noinline, cold)) bool rescale_to_solution() {
    Array<Log::Value> x;
    for (int64_t i = 0; i < n; i++) x.push(Log::settled({b_[i], 0}));
    if (!linear.solve_wide(x)) return false;
    for (int64_t i = 0; i < n; i++) {
      if (!reachable_[i]) continue;
      if (!(x[i].m > 0 && x[i].m < INFINITY)) return false;
      unit_[i] = Log::times(unit_[i], x[i]);
    }
    const bool partial = restricted_;
    relative();
    restricted_ = partial;
    return true;
  }
  // A solution after refinement. Where it was iterated, a small residual says nothing about numbers that are far smaller
  // than the largest: if these are bad, factors get them right.
  Solved refined(Array<double>& x) {
    const Solved how = polished(x);
    const double flops = linear.most_flops;
    if (how != Solved::near_critical || !linear.iterative || flops >= patient) return how;
    linear.most_flops = patient;
    const bool factored = linear.factor() && !linear.iterative;
    linear.most_flops = flops;
    if (linear.halted) return Solved::halted;
    if (!factored) return how;
    bound = 0;
    x.copy(b_);
    linear.solve(x.data, 1, false);
    return polished(x);
  }
  // Whether a solution is as factors of I - J give it, which have 1 - w for a loop of weight w exactly. A residual has the
  // rounding of x - w x there, so that a correction by it would undo digits that elimination without pivots has right.
  bool direct() const { return is_linear_ && (n == 1 || (!signed_ && !linear.iterative)); }
  Solved polished(Array<double>& x) {
    for (int round = 0; round < 2 && n > 1 && !direct(); round++) {
      evaluate(x, f_, size_);
      for (int64_t i = 0; i < n; i++) f_[i] -= x[i];
      linear.solve(f_.data, 1, false);
      bool moved = false;
      for (int64_t i = 0; i < n; i++) {
        moved = moved || !(fabs(f_[i]) <= rounding * fabs(x[i]));
        x[i] += f_[i];
      }
      if (!moved) break;
    }
    if (linear.halted) return Solved::halted;
    return judge(x);
  }

  __attribute__((noinline, cold)) Solved solve_newton(Array<double>& x) {
    if (signed_) return Solved::unsolved;
    Array<double> f, size;
    double before = INFINITY;
    for (int64_t round = 0; round < 400; round++) {
      evaluate(x, f, size);
      jacobian(x, &reachable_);
      bool noise = true;  // whether all that is left is rounding
      for (int64_t i = 0; i < n; i++) {
        f[i] -= x[i];
        noise = noise && fabs(f[i]) <= 4 * rounding * size[i];
      }
      if (!linear.factor()) {
        if (linear.halted) return Solved::halted;
        if (linear.radius_unknown) return Solved::unsolved;
        if (!noise) return Solved::diverges;
        bound = fmax(sqrt(rounding), before < 1 ? before : 1) * 4;
        return Solved::near_critical;
      }
      linear.solve(f.data, 1, false);
      if (linear.halted) return Solved::halted;
      double step = 0;
      for (int64_t i = 0; i < n; i++) {
        x[i] += f[i];
        if (!(x[i] <= 1e300)) return Solved::overflows;  // it shrinks what goes around: the radius is below one
        if (x[i] < 0) x[i] = 0;
        if (x[i] > 0) step = fmax(step, fabs(f[i]) / x[i]);
      }
      if (step <= 2 * rounding || (noise && round && step >= 0.5 * before)) break;
      before = step;
    }
    jacobian(x, nullptr);
    if (!linear.factor() && !linear.halted) {
      restricted_ = true;
      jacobian(x, &reachable_);
      if (!linear.factor() && !linear.halted) {
        bound = fmax(sqrt(rounding), before < 1 ? before : 1) * 4;
        return Solved::near_critical;
      }
    }
    return linear.halted ? Solved::halted : judge(x);
  }

  // How good a solution is: the condition of the system with respect to its numbers is the size of (I - J)^-1 x
  // relative to x (Skeel's, for a monotone system), which is what rounding and the residual are multiplied by. In a linear
  // system that was solved by factors alone the weight of a loop has no part in rounding, if it is the only one: one minus
  // such a weight is exact. Where weights have signs, all terms count by their sizes, and so do the entries of (I - J)^-1.
  Solved judge(const Array<double>& x) {
    Array<double>&f = f_, &size = size_, &z = z_;
    evaluate(x, f, size);
    z.wipe(n);
    for (int64_t i = 0; i < n; i++) z[i] = signed_ ? fmax(fabs(x[i]), size[i]) : fabs(x[i]);
    if (direct() && P::values == 1) {  // the r of an expectation is found by sums and corrections, which round
      Array<uint32_t> loops;  // of each unknown
      loops.zeros(n);
      for (int64_t i = 0; i < instances.size; i++)
        if (instances[i].of[0] == instances[i].head) loops[instances[i].head]++;
      for (int64_t i = 0; i < instances.size; i++) {
        const uint32_t head = instances[i].head;
        if (instances[i].of[0] == head && loops[head] == 1) z[head] -= fabs(weight_[i] * x[head]);
      }
    }
    for (int64_t i = 0; i < n; i++) z[i] = z[i] > 0 ? z[i] : 0;
    if (signed_) magnify(z);
    else linear.solve(z.data, 1, false);
    if (linear.halted) return Solved::halted;
    double condition = 1, left = 0;
    for (int64_t i = 0; i < n; i++) {
      if (fabs(x[i]) < 0x1p-1022) continue;  // it lost digits by being small, which is reported as underflow
      condition = fmax(condition, fabs(z[i] / x[i]));
      left = fmax(left, (fabs(f[i] - x[i]) - 8 * rounding * size[i]) / fabs(x[i]));
    }
    bound = left > 0 ? condition * left : 0;
    if (condition > 4) bound = fmax(bound, 4 * condition * rounding);  // else it is that of any sum
    // Near a double root the solution has half of the digits and its derivative none; that of a linear system has as
    // many as the solution itself.
    return bound > (is_linear_ ? some_digits : half_the_digits) ? Solved::near_critical : Solved::fine;
  }

  // z becomes |(I - J)^-1| z: by the columns of the inverse, or, where there are many, as large as sums of these with
  // signs are, times what that may be too small by.
  __attribute__((noinline, cold)) void magnify(Array<double>& z) {
    constexpr int64_t few = 64, tries = 8;
    Array<double> found, one;
    found.zeros(n);
    uint64_t signs = 0x9e3779b97f4a7c15;
    for (int64_t k = 0; k < (n <= few ? n : tries) && !linear.halted; k++) {
      one.zeros(n);
      for (int64_t i = 0; i < n; i++) {
        signs ^= signs << 13, signs ^= signs >> 7, signs ^= signs << 17;  // xorshift (Marsaglia 2003)
        if (n <= few) one[i] = i == k ? z[i] : 0;
        else one[i] = (signs & 1 << 20) ? z[i] : -z[i];
      }
      linear.solve(one.data, 1, false);
      for (int64_t i = 0; i < n; i++) found[i] = n <= few ? found[i] + fabs(one[i]) : fmax(found[i], fabs(one[i]));
    }
    for (int64_t i = 0; i < n; i++) z[i] = n <= few ? found[i] : found[i] * sqrt((double)n);
  }

  // -- all parts of the numbers

  Value evaluate_at(int64_t instance) const {
    const Instance& t = instances[instance];
    Value y = t.weight;
    for (int k = 0; k < K; k++)
      if (t.of[k] != none) y = S::times(y, value[t.of[k]]);
    return y;
  }
  // False where that does not come to an end: a tangent reaches a cycle of zeros whose weights would let it grow.
  bool correct() {
    if (restricted_ && !reach_further()) return false;
    Array<double> left;
    Array<Value> f;
    for (int round = 0; round <= P::nilpotent + 1; round++) {
      f.copy(given);
      for (int64_t i = 0; i < instances.size; i++) {
        Value& to = f[instances[i].head];
        to = S::plus(to, evaluate_at(i));
      }
      left.zeros(n * parts);
      for (int64_t i = 0; i < n; i++) {
        double old[parts];
        P::split(f[i], unit_[i], left.data + i * parts);
        P::split(value[i], unit_[i], old);
        for (int k = 0; k < parts; k++) left[i * parts + k] -= old[k];
        left[i * parts] = 0;  // the primal part stays as it is, to the bit
        for (int k = 1; restricted_ && k < parts; k++)
          if (round > P::nilpotent && !reachable_[i] && fabs(left[i * parts + k]) > 1e-10 * fabs(old[k])) return false;
      }
      if (round > P::nilpotent) break;
      linear.solve(left.data, parts, false);
      if (linear.halted) return false;
      for (int64_t i = 0; i < n; i++) {
        double all[parts];
        P::split(value[i], unit_[i], all);
        for (int k = 1; k < parts; k++) all[k] += left[i * parts + k];
        value[i] = P::join(all, unit_[i]);
      }
    }
    return true;
  }
  // Factors what tangents reach, too, where that can be factored: they get to unknowns without mass. False: halted.
  bool reach_further() {
    Array<uint8_t> some;
    some.zeros(n);
    for (int64_t i = 0; i < n; i++) some[i] = reachable_[i] || anything(given[i]);
    reach(instances, some, [](const Instance& t) { return anything(t.weight); });
    bool further = false;
    for (int64_t i = 0; i < n; i++) further = further || (some[i] && !reachable_[i]);
    if (!further) return true;
    Array<double> x;
    primals(x);
    jacobian(x, &some);
    if (linear.factor() || linear.halted) return !linear.halted;
    jacobian(x, &reachable_);
    linear.factor();
    return !linear.halted;
  }
  // to += J' adjoint, in all parts, relative to the units.
  void transposed(const Array<double>& adjoint, Array<double>& to) const {
    for (int64_t i = 0; i < instances.size; i++) {
      const Instance& t = instances[i];
      const Value seed = P::join(adjoint.data + t.head * parts, Log::one());
      for (int k = 0; k < K; k++) {
        if (t.of[k] == none) continue;
        Value y = t.weight;
        Log::Value unit = unit_[t.head];  // the partial derivative is relative to head over antecedent
        for (int j = 0; j < K; j++)
          if (j != k && t.of[j] != none) y = S::times(y, value[t.of[j]]);
        double all[parts];
        if constexpr (P::scaled) {
          const Log::Value own = unit_[t.of[k]];
          unit = Log::over(unit, own);
        }
        P::split(y, unit, all);
        const Value product = S::times(P::join(all, Log::one()), seed);
        P::split(product, Log::one(), all);
        for (int p = 0; p < parts; p++) to[t.of[k] * parts + p] += all[p];
      }
    }
  }
  bool correct_transposed(const Array<double>& g, Array<double>& adjoint) {
    memset(adjoint.data, 0, adjoint.size * sizeof(double));
    Array<double> left;
    for (int round = 0; round <= P::nilpotent + 1; round++) {
      left.copy(g);
      transposed(adjoint, left);
      for (int64_t i = 0; i < left.size; i++) left[i] -= adjoint[i];
      linear.solve(left.data, parts, true);
      if (linear.halted) return false;
      for (int64_t i = 0; i < left.size; i++) adjoint[i] += left[i];
    }
    return true;
  }
  // False where the residual stays large: then the adjoints were not found.
  bool refine_transposed(const Array<double>& g, Array<double>& adjoint) {
    Array<double> left;
    left.zeros(n);
    for (int round = 0; round < 2; round++) {
      double size = 0, worst = 0;
      linear.multiply(adjoint.data, left.data, true);
      for (int64_t i = 0; i < n; i++) {
        left[i] += g[i] - adjoint[i];
        size = fmax(size, fabs(adjoint[i])), worst = fmax(worst, fabs(left[i]));
      }
      if (round) return worst <= 1e-9 * size || linear.halted;
      if (n == 1) return true;
      linear.solve(left.data, 1, true);
      for (int64_t i = 0; i < n; i++) adjoint[i] += left[i];
    }
    return true;
  }
  // Unknowns that an adjoint reaches, going back from where it is not zero. A weight of zero that has a tangent lets the
  // adjoint's own tangent through.
  __attribute__((noinline, cold)) void reached_backward(const Array<double>& g, Array<uint8_t>& keep) {
    keep.zeros(n);
    for (int64_t i = 0; i < n * parts; i++)
      if (g[i] != 0) keep[i / parts] = 1;
    Array<uint8_t> some;
    some.zeros(n);
    for (int64_t i = 0; i < n; i++) some[i] = anything(value[i]);
    Array<int64_t> start, at;  // instances by their heads
    Array<int64_t> own;
    start.zeros(n + 1), own.zeros(instances.size);
    for (int64_t i = 0; i < instances.size; i++) start[instances[i].head + 1]++;
    for (int64_t i = 0; i < n; i++) start[i + 1] += start[i];
    at.copy(start);
    for (int64_t i = 0; i < instances.size; i++) own[at[instances[i].head]++] = i;
    Array<uint32_t> reached;
    for (int64_t i = 0; i < n; i++)
      if (keep[i]) reached.push((uint32_t)i);
    for (int64_t r = 0; r < reached.size; r++)
      for (int64_t i = start[reached[r]]; i < start[reached[r] + 1]; i++) {
        const Instance& t = instances[own[i]];
        for (int k = 0; k < K && anything(t.weight); k++) {
          if (t.of[k] == none || keep[t.of[k]]) continue;
          bool counts = true;
          for (int j = 0; j < K; j++) counts = counts && (j == k || t.of[j] == none || some[t.of[j]]);
          if (counts) keep[t.of[k]] = 1, reached.push(t.of[k]);
        }
      }
  }
  // Whether any part of a number is not zero, from one part on.
  static bool anything(const Value& v, int from = 0) {
    double all[parts];
    if constexpr (P::scaled) P::split(v, {1, v.e}, all);
    else P::split(v, {1, 0}, all);
    for (int p = from; p < parts; p++)
      if (all[p] != 0) return true;
    return false;
  }

  // -- what to say of a system that diverges

  __attribute__((noinline, cold)) void describe(const Array<double>& x) {
    Array<double> at;
    at.copy(x);
    for (int64_t i = 0; i < n; i++)
      if (!isfinite(at[i]) || at[i] > 1e150) at[i] = 1e150;
    jacobian(at, &reachable_);
    linear.factor();
    Array<double> growing;  // not zero where what grows fastest gets to
    radius = linear.radius(growing);
    // along the heaviest way into each unknown
    Array<uint32_t> from;
    Array<double> best;
    from.filled(n, none), best.zeros(n);
    for (int64_t i = 0; i < linear.entries.size; i++) {
      const auto& e = linear.entries[i];
      const double weight = fabs(e.value) * growing[e.column];
      if (weight > best[e.row]) best[e.row] = weight, from[e.row] = e.column;
    }
    Array<uint8_t> seen;
    seen.zeros(n);
    cycle.clear();
    for (int64_t root = 0; root < n && !cycle.size; root++) {
      uint32_t v = (uint32_t)root;
      while (v != none && !seen[v]) seen[v] = 1, v = from[v];
      if (v == none) continue;
      uint32_t w = v;
      do cycle.push(w), w = from[w];
      while (w != v && w != none && cycle.size < n);
      if (w != v) cycle.clear();
    }
  }
};

}  // namespace dynagrad
