// Sums over derivations: the weight of all derivations of a node, how many there are, and draws in proportion.
//
// Components without a cycle are summed in order. What a cyclic component sums up to is worked out elsewhere, and given as
// `View::known`: `Sums::find` stops in front of each that is not known yet.
#pragma once
#include "order.hpp"

namespace dynagrad {

// The same number as a mantissa and an exponent, for any kind of weight: exp of a log.
inline Weight as_product(const View& f, const Weight& w) {
  if (f.kind == products) return w;
  if (w.m == -INFINITY) return {0, lowest};
  if (f.kind == sizes) return {0.5, 1};
  const double bits = w.m * 1.4426950408889634074, whole = floor(bits);
  // the fraction from the log itself, where that is exact
  const double rest = fma(-whole, 0.69314718055994528623, w.m) - whole * 2.3190468138462995584e-17;
  return scaled(exp(rest), (int64_t)whole);
}
inline Weight added(const Weight& a, const Weight& b) {
  if (a.m == 0) return b;
  if (b.m == 0) return a;
  const Weight &x = a.e >= b.e ? a : b, &y = a.e >= b.e ? b : a;
  const int64_t apart = x.e - y.e;
  return apart > 200 ? x : scaled(x.m + ldexp(y.m, (int)-apart), x.e);
}
inline Weight multiplied(const Weight& a, const Weight& b) {
  double m = a.m * b.m;
  if (m == 0) return {0, lowest};
  int64_t e = a.e + b.e;
  if (m < 0.5) m *= 2, e--;
  return {m, e};
}
inline double ratio(const Weight& a, const Weight& of) {
  if (a.m == 0) return 0;
  const int64_t apart = a.e - of.e;
  return apart < -1100 ? 0 : apart > 1000 ? INFINITY : ldexp(a.m / of.m, (int)apart);
}

struct Sums {
  Array<Weight> total;           // of a node
  Array<double> upto;            // of an instance: the share of those before it and of its own, in its node
  int64_t next = 0;              // the first component that is not summed

  explicit Sums(Account* a) : total(a), upto(a) {}

  Weight contribution(const View& f, int64_t e) const {
    Weight w = as_product(f, f.own(e));
    for (uint32_t i = f.first[e]; i < f.first[e + 1]; i++)
      if (f.antecedent[i] >= 0) w = multiplied(w, total[f.antecedent[i]]);
    return w;
  }
  void open(const View& f) {
    total.zeros(f.nodes);
    next = 0;
  }
  // 0: done; 1: component `next` is cyclic and not known; 2: interrupted.
  int64_t find(const View& f, const Order& order, Unlocked& unlocked) {
    for (; next < order.count(); next++) {
      if (unlocked.interrupted()) return 2;
      const uint32_t *from = &order.nodes[order.begin[next]], *to = order.nodes.data + order.begin[next + 1];
      if (order.cyclic[next]) {
        if (!f.known) return 1;
        for (const uint32_t* v = from; v < to; v++) total[*v] = scaled(f.known[*v], f.known_e[*v]);
        continue;
      }
      Weight sum{0, lowest};
      for (uint32_t e = f.begin[*from]; e < f.end[*from]; e++) sum = added(sum, contribution(f, e));
      total[*from] = sum;
    }
    return 0;
  }
  // The shares of all instances, once all is summed; in a node they are cumulative.
  int64_t shares(const View& f, const Order& order, Unlocked& unlocked) {
    upto.zeros(f.instances);
    for (int64_t i = 0; i < order.nodes.size; i++) {
      if (unlocked.interrupted()) return 2;
      const uint32_t v = order.nodes[i];
      Weight sum{0, lowest};
      for (uint32_t e = f.begin[v]; e < f.end[v]; e++) sum = added(sum, contribution(f, e));
      double so_far = 0;
      for (uint32_t e = f.begin[v]; e < f.end[v]; e++)
        upto[e] = so_far += sum.m == 0 ? 0 : ratio(contribution(f, e), sum);
    }
    return 0;
  }
};

// Random numbers that depend on a seed, the number of a draw, and how many were taken for it, and on nothing else
// (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"; the function is that of SplitMix64).
struct Random {
  uint64_t state;
  static uint64_t stir(uint64_t z) {
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
  }
  Random(uint64_t seed, uint64_t draw) : state(stir(stir(seed + 0x9e3779b97f4a7c15ull) ^ draw * 0xda942042e4dd58b5ull)) {}
  double uniform() {
    state += 0x9e3779b97f4a7c15ull;
    return (double)(stir(state) >> 11) * 0x1p-53;
  }
};

struct Draws {
  Array<uint32_t> instances;     // of each draw, each before those of its antecedents
  Array<int64_t> begin;          // of each draw; and the end of the last
  Array<double> log_probability;
  explicit Draws(Account* a) : instances(a), begin(a), log_probability(a) {}

  // 0: done; 1: a draw has more than `most` instances; 2: interrupted; 3: all derivations have weight zero.
  int64_t take(const View& f, const Sums& sums, uint64_t seed, int64_t from, int64_t to, int64_t most, Unlocked& unlocked) {
    Array<uint32_t> waiting;
    instances.clear(), begin.clear(), log_probability.clear();
    for (int64_t n = from; n < to; n++) {
      Random random(seed, (uint64_t)n);
      const int64_t start = instances.size;
      begin.push(start);
      double log_p = 0;
      waiting.push((uint32_t)f.root);
      while (waiting.size) {
        if (unlocked.interrupted()) return 2;
        if (instances.size - start >= most) return 1;
        const uint32_t v = waiting[--waiting.size];
        const double* const share = sums.upto.data;
        uint32_t low = f.begin[v], high = f.end[v];
        const uint32_t least = low;
        if (low == high) return 3;
        const double all = share[high - 1];
        if (!(all > 0)) return 3;
        if (high - low > 1) {
          const double u = random.uniform() * all;
          while (low < high) {  // the first instance with more than u up to it
            const uint32_t middle = low + (high - low) / 2;
            if (share[middle] > u) high = middle;
            else low = middle + 1;
          }
          if (low >= f.end[v]) low = f.end[v] - 1;
          const double p = share[low] - (low > least ? share[low - 1] : 0);
          log_p += log(p / all);
        }
        instances.push(low);
        for (uint32_t i = f.first[low + 1]; i-- > f.first[low];)
          if (f.antecedent[i] >= 0) waiting.push((uint32_t)f.antecedent[i]);
      }
      log_probability.push(log_p);
    }
    begin.push(instances.size);
    return 0;
  }
};

// How many derivations the root has. 0: done; 1: infinitely many; 2: interrupted; 3: too many for 128 bits.
inline int64_t count_derivations(const View& f, const Order& order, Unlocked& unlocked, uint64_t* found) {
  Array<unsigned __int128> count;
  count.zeros(f.nodes);
  for (int64_t c = 0; c < order.count(); c++) {
    if (unlocked.interrupted()) return 2;
    if (order.cyclic[c]) return 1;
    const uint32_t v = order.nodes[order.begin[c]];
    unsigned __int128 sum = 0;
    for (uint32_t e = f.begin[v]; e < f.end[v]; e++) {
      unsigned __int128 product = 1;
      for (uint32_t i = f.first[e]; i < f.first[e + 1]; i++) {
        if (f.antecedent[i] < 0) continue;
        const unsigned __int128 x = count[f.antecedent[i]];
        if (x >> 64 && product >> 64) return 3;
        if (x >> 64 || product >> 64) {
          const unsigned __int128 big = x >> 64 ? x : product, small = x >> 64 ? product : x;
          if (small && (big >> 64) * small >> 62) return 3;
        }
        product *= x;
      }
      sum += product;
      if (sum >> 127) return 3;
    }
    count[v] = sum;
  }
  const unsigned __int128 all = count[f.root];
  found[0] = (uint64_t)all, found[1] = (uint64_t)(all >> 64);
  return 0;
}

}  // namespace dynagrad
