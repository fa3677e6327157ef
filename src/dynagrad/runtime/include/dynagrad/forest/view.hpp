// A packed forest as the algorithms on it see it: arrays that somebody else owns, and the weights of derivations.
//
// Nodes are items, and an instance of a rule has its antecedents side by side; see `dynagrad/running/collected.hpp`. A weight is
// a product of constants of rules and of given facts. It is a double with an exponent of its own, so that no product
// leaves its range; where weights are added (logs, costs), the exponent is zero.
#pragma once
#include <dynagrad/base/math.hpp>

#include <dynagrad/base/host.hpp>
#include <dynagrad/base/memory.hpp>

namespace dynagrad {

struct Weight {
  double m = 0;      // 0, or 0.5 <= m < 1; where weights are added, the number itself, and -inf for zero
  int64_t e = 0;
};

constexpr int64_t lowest = -((int64_t)1 << 60);

// m * 2^e in its normal form.
inline Weight scaled(double m, int64_t e) {
  if (m == 0) return {0, lowest};
  int shift = 0;
  const double fraction = frexp(m, &shift);
  return {fraction, e + shift};
}
// Whether a is the larger one.
inline bool larger(const Weight& a, const Weight& b) { return a.e != b.e ? a.e > b.e : a.m > b.m; }
inline bool same(const Weight& a, const Weight& b) { return a.e == b.e && a.m == b.m; }

struct View : ForestView {
  double number(int64_t e) const { return rule[e] < 0 ? given[-1 - rule[e]] : constant[rule[e]]; }
  Weight one() const { return kind == kProducts ? Weight{0.5, 1} : Weight{0, 0}; }
  Weight own(int64_t e) const { return weight(number(e)); }
  Weight weight(double x) const {
    if (kind == kProducts) return scaled(x, 0);
    if (kind == kSums) return {x, 0};
    return x != 0 ? Weight{0, 0} : Weight{-INFINITY, 0};
  }
  bool nothing(const Weight& w) const { return kind == kProducts ? w.m == 0 : w.m == -INFINITY; }
  Weight times(const Weight& a, const Weight& b) const {
    if (kind != kProducts) {
      const double sum = a.m + b.m;  // one that overflows is no zero: it stays, as the least of all, for an error
      return {sum == -INFINITY && !nothing(a) && !nothing(b) ? -0x1.fffffffffffffp1023 : sum, 0};
    }
    double m = a.m * b.m;
    if (m == 0) return {0, lowest};
    int64_t e = a.e + b.e;
    if (m < 0.5) m *= 2, e--;
    return {m, e};
  }
};

// How good a derivation is: a larger weight first, then fewer instances.
struct Key {
  Weight weight;
  int64_t size;
};
constexpr int64_t huge = (int64_t)1 << 60;
inline bool better(const Key& a, const Key& b) {
  if (!same(a.weight, b.weight)) return larger(a.weight, b.weight);
  return a.size < b.size;
}
inline bool equal(const Key& a, const Key& b) { return same(a.weight, b.weight) && a.size == b.size; }

// Of two instances of one node with equal keys, whether a comes first: the order of rules, then that of antecedents.
inline bool precedes(const View& f, int64_t a, int64_t b) {
  if (f.rule[a] != f.rule[b]) {
    const int64_t x = f.rule[a] < 0 ? -1 - (int64_t)f.rule[a] : huge + f.rule[a];
    const int64_t y = f.rule[b] < 0 ? -1 - (int64_t)f.rule[b] : huge + f.rule[b];
    return x < y;
  }
  const uint32_t *i = f.first + a, *j = f.first + b;
  for (uint32_t k = 0; i[0] + k < i[1] && j[0] + k < j[1]; k++) {
    const int32_t p = f.antecedent[i[0] + k], q = f.antecedent[j[0] + k];
    const int64_t x = f.rank[p < 0 ? ~p : p], y = f.rank[q < 0 ? ~q : q];
    if (x != y) return x < y;
  }
  return a < b;
}

}  // namespace dynagrad
