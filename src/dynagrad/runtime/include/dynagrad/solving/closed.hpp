// Systems of cyclic components over semirings without subtraction: counts, in topological order of what is nonzero, and
// closed semirings of users, by elimination (Lehmann 1977, "Algebraic structures for transitive closure").
//
// They are used like `System`: `open`, `add` every instance, `solve`.
#pragma once
#include <dynagrad/solving/solve.hpp>

namespace dynagrad {

// Counts have no solution around a cycle but zero: what reaches it goes around without end. Everything else is summed in
// order.
template <int K>
struct System<Count, K> {
  using Value = Count::Value;
  static constexpr uint32_t none = 0xFFFFFFFF;
  struct Instance { Value weight; uint32_t head; uint32_t of[K]; };
  int64_t n = 0;
  Array<Instance> instances;
  Array<Value> given, value;
  double bound = 0, radius = 0;
  Array<uint32_t> cycle;
  bool must_be_linear = false, always_newton = false;

  explicit System(ChartBase* chart) { instances.account = given.account = value.account = &chart->account; }

  void open(int64_t unknowns) {
    n = unknowns;
    instances.clear();
    given.clear(), given.resize(n, 0);
  }
  void add(uint32_t head, const Value& weight, const uint32_t* of) {
    Instance i{weight, head, {}};
    bool unknown = false;
    for (int k = 0; k < K; k++) i.of[k] = of[k], unknown = unknown || of[k] != none;
    if (!unknown) given[head] = Count::plus(given[head], weight);
    else if (weight != 0) instances.push(i);
  }
  Solved solve() {
    Array<uint8_t> mass;
    mass.zeros(n);
    for (int64_t i = 0; i < n; i++) mass[i] = given[i] != 0;
    reach(instances, mass, [](const Instance&) { return true; });
    // Kahn's order of what has mass: an unknown is complete when all instances that have mass are summed.
    Array<int64_t> waiting;
    waiting.zeros(n);
    for (int64_t t = 0; t < instances.size; t++)
      if (all(instances[t], mass)) waiting[instances[t].head]++;
    value.copy(given);
    Array<uint8_t> complete;
    complete.zeros(n);
    for (int64_t i = 0; i < n; i++) complete[i] = mass[i] && !waiting[i];
    reach(
        instances, complete,
        [&](const Instance& t) {
          Value y = t.weight;
          for (int k = 0; k < K; k++)
            if (t.of[k] != none) y = Count::times(y, value[t.of[k]]);
          value[t.head] = Count::plus(value[t.head], y);
          return --waiting[t.head] == 0;
        });
    for (int64_t i = 0; i < n; i++)
      if (mass[i] && !complete[i]) return find_cycle((uint32_t)i, mass, complete), Solved::diverges;
    return Solved::fine;
  }

 private:
  static bool all(const Instance& t, const Array<uint8_t>& flags) {
    for (int k = 0; k < K; k++)
      if (t.of[k] != none && !flags[t.of[k]]) return false;
    return true;
  }
  // From an unknown that waits to one that it waits for, until one comes again.
  void find_cycle(uint32_t v, const Array<uint8_t>& mass, const Array<uint8_t>& done) {
    Array<uint32_t> from;
    from.filled(n, none);
    for (int64_t t = 0; t < instances.size; t++)
      for (int k = 0; k < K; k++)
        if (instances[t].of[k] != none && all(instances[t], mass) && !done[instances[t].of[k]])
          from[instances[t].head] = instances[t].of[k];
    Array<uint8_t> seen;
    seen.zeros(n);
    while (v != none && !seen[v]) seen[v] = 1, v = from[v];
    cycle.clear();
    if (v == none) return;
    const uint32_t first = v;
    do cycle.push(v), v = from[v];
    while (v != first);
  }
};

// A closed semiring, which has the sum of all powers of a number, `star`: elimination as Kleene's and Lehmann's (1977,
// "Algebraic structures for transitive closure"). Times need not commute, so an instance has a weight on one side of its
// unknown: x = A x + b, or x = x A + b. Systems with weights on both sides are for iteration.
template <class S>
struct ClosedSystem {
  using Value = typename S::Value;
  static constexpr uint32_t none = 0xFFFFFFFF;
  struct Instance { Value left, right; uint32_t head, of[1]; };
  static constexpr int64_t most = 3000;  // unknowns, for whose matrix there is room

  ChartBase* owner;
  int64_t n = 0;
  Array<Instance> instances;
  Array<Value> given, value;
  double bound = 0, radius = 0;
  Array<uint32_t> cycle;
  bool must_be_linear = false, always_newton = false;

  explicit ClosedSystem(ChartBase* chart) : owner(chart) {
    instances.account = given.account = value.account = &chart->account;
  }

  void open(int64_t unknowns) {
    n = unknowns;
    instances.clear();
    given.clear(), given.resize(n, S::zero());
  }
  void add(uint32_t head, const Value& left, const Value& right, uint32_t of) {
    if (of == none) given[head] = S::plus(given[head], S::times(left, right));
    else instances.push({left, right, head, {of}});
  }
  Solved solve() {
    bool lefts = true, rights = true;
    for (int64_t i = 0; i < instances.size; i++) {
      lefts = lefts && S::same(instances[i].right, S::one());
      rights = rights && S::same(instances[i].left, S::one());
    }
    if ((!lefts && !rights) || n > most) return Solved::unsolved;
    Array<Value> a(&owner->account);
    Array<uint8_t> there(&owner->account);
    a.filled(n * n, S::zero()), there.zeros(n * n);
    for (int64_t i = 0; i < instances.size; i++) {
      const int64_t at = instances[i].head * n + instances[i].of[0];
      const Value& w = lefts ? instances[i].left : instances[i].right;
      a[at] = there[at] ? S::plus(a[at], w) : w;
      there[at] = 1;
    }
    value.copy(given);
    // Only what something enters counts: the closure of a loop around which nothing goes may not exist.
    Array<uint8_t> mass;
    mass.zeros(n);
    const Value zero = S::zero();
    for (int64_t i = 0; i < n; i++) mass[i] = !S::same(given[i], zero);
    reach(instances, mass, [&](const Instance& t) { return !S::same(lefts ? t.left : t.right, zero); });
    for (int64_t i = 0; i < n * n; i++)
      if (!mass[i / n] || !mass[i % n]) there[i] = 0;
    const auto product = [&](const Value& outer, const Value& inner) {  // the factor nearer to the unknown is `inner`
      return lefts ? S::times(outer, inner) : S::times(inner, outer);
    };
    for (int64_t k = 0; k < n; k++) {
      if (owner->spend(1 + n * n / 8)) return Solved::halted;
      if (there[k * n + k]) {
        const Value s = S::star(a[k * n + k]);
        there[k * n + k] = 0;
        for (int64_t j = 0; j < n; j++)
          if (there[k * n + j]) a[k * n + j] = product(s, a[k * n + j]);
        value[k] = product(s, value[k]);
      }
      for (int64_t i = 0; i < n; i++) {
        if (i == k || !there[i * n + k]) continue;
        const Value w = a[i * n + k];
        there[i * n + k] = 0;
        for (int64_t j = 0; j < n; j++) {
          if (!there[k * n + j]) continue;
          const Value p = product(w, a[k * n + j]);
          a[i * n + j] = there[i * n + j] ? S::plus(a[i * n + j], p) : p;
          there[i * n + j] = 1;
        }
        value[i] = S::plus(value[i], product(w, value[k]));
      }
    }
    return Solved::fine;
  }
};

}  // namespace dynagrad
