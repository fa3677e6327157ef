// Sums over derivations: the weight of all derivations of a node, how many there are, and draws in proportion.
//
// Components without a cycle are summed in order; `Sums::find` stops in front of a cyclic one, whose sums are worked out
// elsewhere. Where the sums of all nodes are known, nothing has to be found. A node is divided among its instances when it
// is drawn from for the first time.
#pragma once
#include <dynagrad/forest/order.hpp>

namespace dynagrad {

// The same number as a mantissa and an exponent, for any kind of weight: exp of a log.
inline Weight as_product(const View& f, const Weight& w) {
  if (f.kind == kProducts) return w;
  if (w.m == -INFINITY) return {0, lowest};
  if (f.kind == kSizes) return {0.5, 1};
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
// 2^d, or 0 where that is too small to matter.
inline double power(int64_t d) {
  if (d < -1000) return 0;
  uint64_t bits = (uint64_t)(1023 + d) << 52;
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

// What is needed to divide a node among its instances: each thread has its own.
struct Scratch {
  Array<Weight> parts;
  Array<uint32_t> little, much;  // instances whose share is less than on average, and the others
};

struct Sums {
  Array<Weight> total;           // of a node
  Array<double> share;           // of an instance in its node, once that is `divided`
  Array<double> cut;             // of an instance: see `draw`
  Array<uint32_t> alias;
  Array<uint8_t> divided;        // of a node
  Array<int32_t> only;           // of a node whose one instance is a given fact, that instance; else -1
  Array<Weight> given, constant; // the weights of given facts and of rules, as products
  int64_t next = 0;              // the first component that is not summed
  int32_t lock = 0;              // nodes are divided by one thread at a time

  explicit Sums(Account* a)
      : total(a), share(a), cut(a), alias(a), divided(a), only(a), given(a), constant(a) {}

  void open(const View& f) {
    total.zeros(f.nodes), share.zeros(f.instances + 1), cut.zeros(f.instances + 1), alias.zeros(f.instances + 1);
    divided.zeros(f.nodes), only.filled(f.nodes, -1);
    given.clear(), constant.clear();
    for (int64_t g = 0; g < f.givens; g++) given.push(as_product(f, f.weight(f.given[g])));
    for (int64_t r = 0; r < f.rules; r++) constant.push(as_product(f, f.weight(f.constant[r])));
    for (int64_t v = 0; v < f.nodes; v++)
      if (f.end[v] - f.begin[v] == 1 && f.rule[f.begin[v]] < 0) only[v] = (int32_t)f.begin[v];
    next = 0;
  }
  Weight contribution(const View& f, uint32_t e) const {
    Weight w = f.rule[e] < 0 ? given[-1 - (int64_t)f.rule[e]] : constant[f.rule[e]];
    for (uint32_t i = f.first[e]; i < f.first[e + 1]; i++) {
      const int32_t u = f.antecedent[i];
      if (u >= 0) w = multiplied(w, total[u]);
    }
    return w;
  }
  // kUnlike: component `next` is cyclic, and its sums are worked out elsewhere.
  int64_t find(const View& f, const Order& order, Unlocked& unlocked) {
    for (; next < order.count(); next++) {
      if (unlocked.interrupted()) return kHalted;
      if (order.cyclic[next]) return kUnlike;
      const uint32_t v = order.nodes[order.begin[next]];
      int64_t most = INT64_MIN;
      double sum = 0;
      for (uint32_t e = f.begin[v]; e < f.end[v]; e++) {
        const Weight w = contribution(f, e);
        if (w.m == 0) continue;
        if (w.e > most) sum *= most == INT64_MIN ? 0 : power(most - w.e), most = w.e;
        sum += w.m * power(w.e - most);
      }
      total[v] = scaled(sum, sum > 0 ? most : 0);
    }
    return kComplete;
  }

  // Makes columns of equal width of the shares of a node's instances, each of one instance and of its alias (Walker 1977,
  // "An efficient method for generating discrete random variables"): a draw looks at one of them.
  void divide(const View& f, uint32_t v, Scratch& scratch) {
    if (__atomic_load_n(&divided[v], __ATOMIC_ACQUIRE)) return;
    while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) {
    }
    if (!divided[v]) columns(f, v, scratch), __atomic_store_n(&divided[v], (uint8_t)1, __ATOMIC_RELEASE);
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
  }
  void columns(const View& f, uint32_t v, Scratch& s) {
    const uint32_t from = f.begin[v], n = f.end[v] - from;
    s.parts.clear(), s.little.clear(), s.much.clear();
    s.parts.reserve(n), s.little.reserve(n), s.much.reserve(n);
    int64_t most = INT64_MIN;
    for (uint32_t i = 0; i < n; i++) {
      s.parts.push(contribution(f, from + i));
      if (s.parts[i].m != 0 && s.parts[i].e > most) most = s.parts[i].e;
    }
    double all = 0;
    for (uint32_t i = 0; i < n; i++)
      if (s.parts[i].m != 0) all += share[from + i] = s.parts[i].m * power(s.parts[i].e - most);
    uint32_t possible = from;
    for (uint32_t i = 0; i < n; i++) {
      if (all > 0) share[from + i] /= all;
      if (share[from + i] > 0) possible = from + i;
      cut[from + i] = share[from + i] * n, alias[from + i] = from + i;
      (cut[from + i] < 1 ? s.little : s.much).push(from + i);
    }
    while (s.little.size && s.much.size) {
      const uint32_t small = s.little[--s.little.size], large = s.much[s.much.size - 1];
      alias[small] = large;
      cut[large] -= 1 - cut[small];
      if (cut[large] < 1) s.much.size--, s.little.push(large);
    }
    for (uint32_t i = 0; i < s.little.size; i++)  // what rounding left
      if (share[s.little[i]] > 0) cut[s.little[i]] = 1;
      else alias[s.little[i]] = possible;
  }
  // An instance of a node that is divided, by a number under 1.
  uint32_t draw(uint32_t from, uint32_t n, double u) const {
    const double at = u * n;
    const uint32_t i = from + (uint32_t)at;
    return at - (uint32_t)at < cut[i] ? i : alias[i];
  }
  // Divides all nodes.
  int64_t divide_all(const View& f, const Order& order, Unlocked& unlocked) {
    Scratch scratch;
    for (int64_t i = 0; i < order.nodes.size; i++) {
      if (unlocked.interrupted()) return kHalted;
      divide(f, order.nodes[i], scratch);
    }
    return kComplete;
  }

  // How often each instance is used in a derivation of the root, on average. kUnlike: there is a cyclic component, for
  // which that is worked out elsewhere.
  int64_t expect(const View& f, const Order& order, double* used, Unlocked& unlocked) {
    Array<double> of;
    Scratch scratch;
    of.zeros(f.nodes);
    of[f.root] = 1;
    for (int64_t c = order.count(); c-- > 0;) {
      if (unlocked.interrupted()) return kHalted;
      if (order.cyclic[c]) return kUnlike;
      const uint32_t v = order.nodes[order.begin[c]];
      if (of[v] == 0) continue;
      divide(f, v, scratch);
      for (uint32_t e = f.begin[v]; e < f.end[v]; e++) {
        const double part = share[e] * of[v];
        used[e] = part;
        for (uint32_t i = f.first[e]; i < f.first[e + 1] && part != 0; i++)
          if (f.antecedent[i] >= 0) of[f.antecedent[i]] += part;
      }
    }
    return kComplete;
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

// Draws of one thread, over sums that threads share.
struct Draws {
  // Several draws are made side by side, a step of each in turn: each waits for memory most of its time.
  static constexpr int64_t lanes = 8;
  struct Lane {
    Random random{0, 0};
    double p = 1;
    int64_t p_e = 0;
    Array<uint32_t> waiting, out;
  };
  Account account;
  Array<uint32_t> instances{&account};     // of each draw, each before those of its antecedents; see `take`
  Array<int64_t> begin{&account};          // of each draw; and the end of the last
  Array<double> log_probability{&account};

  // One instance more.
  static void step(const View& f, Sums& sums, Lane& lane, Scratch& scratch) {
    const uint32_t v = lane.waiting[--lane.waiting.size];
    uint32_t e = f.begin[v];
    const uint32_t count = f.end[v] - e;
    if (count > 1) {
      if (__builtin_expect(!__atomic_load_n(&sums.divided[v], __ATOMIC_ACQUIRE), 0)) sums.divide(f, v, scratch);
      e = sums.draw(e, count, lane.random.uniform());
      lane.p *= sums.share[e];
      if (lane.p < 1e-200) {
        const Weight w = scaled(lane.p, lane.p_e);
        lane.p = w.m, lane.p_e = w.e;
      }
    }
    lane.out.push(e);
    for (uint32_t i = f.first[e + 1]; i-- > f.first[e];) {
      const int32_t u = f.antecedent[i];
      if (u >= 0 && sums.only[u] < 0) {
        lane.waiting.push((uint32_t)u);
        __builtin_prefetch(f.begin + u), __builtin_prefetch(f.end + u);
      }
    }
  }
  // Antecedents that are facts given once are left out: whoever reads a draw knows them. kUnlike: a draw has more
  // than `most` instances; kBeyond: all derivations have weight zero.
  int64_t take(const View& f, Sums& sums, uint64_t seed, int64_t from, int64_t to, int64_t most, Unlocked& unlocked) {
    Lane lane[lanes];
    Scratch scratch;
    instances.clear(), begin.clear(), log_probability.clear();
    if (sums.total[f.root].m == 0) return kBeyond;
    for (int64_t n = from; n < to; n += lanes) {
      const int64_t count = to - n < lanes ? to - n : lanes;
      for (int64_t k = 0; k < count; k++) {
        lane[k].random = Random(seed, (uint64_t)(n + k));
        lane[k].p = 1, lane[k].p_e = 0;
        lane[k].out.clear();
        lane[k].waiting.push((uint32_t)f.root);
      }
      for (int64_t steps = 0, busy = count; busy; steps++) {
        busy = 0;
        for (int64_t k = 0; k < count; k++)
          if (lane[k].waiting.size) step(f, sums, lane[k], scratch), busy++;
        if (__builtin_expect((steps & 0xff) == 0xff, 0)) {
          if (unlocked.interrupted(16)) return kHalted;
          if (steps >= most) return kUnlike;
        }
      }
      for (int64_t k = 0; k < count; k++) {
        const Array<uint32_t>& out = lane[k].out;
        begin.push(instances.size);
        if (instances.size + out.size > instances.capacity) instances.grow(instances.size + out.size);
        memcpy(instances.data + instances.size, out.data, out.size * sizeof(uint32_t));
        instances.size += out.size;
        log_probability.push(log(lane[k].p) + (double)lane[k].p_e * 0.69314718055994530942);
      }
      if (unlocked.interrupted(lanes)) return kHalted;
    }
    begin.push(instances.size);
    return kComplete;
  }
};

// How many derivations the root has. kUnlike: infinitely many; kBeyond: too many for 128 bits.
inline int64_t count_derivations(const View& f, const Order& order, Unlocked& unlocked, uint64_t* found) {
  Array<unsigned __int128> count;
  count.zeros(f.nodes);
  for (int64_t c = 0; c < order.count(); c++) {
    if (unlocked.interrupted()) return kHalted;
    if (order.cyclic[c]) return kUnlike;
    const uint32_t v = order.nodes[order.begin[c]];
    unsigned __int128 sum = 0;
    for (uint32_t e = f.begin[v]; e < f.end[v]; e++) {
      unsigned __int128 product = 1;
      for (uint32_t i = f.first[e]; i < f.first[e + 1]; i++) {
        if (f.antecedent[i] < 0) continue;
        const unsigned __int128 x = count[f.antecedent[i]];
        if (x >> 64 && product >> 64) return kBeyond;
        if (x >> 64 || product >> 64) {
          const unsigned __int128 big = x >> 64 ? x : product, small = x >> 64 ? product : x;
          if (small && (big >> 64) * small >> 62) return kBeyond;
        }
        product *= x;
      }
      sum += product;
      if (sum >> 127) return kBeyond;
    }
    count[v] = sum;
  }
  const unsigned __int128 all = count[f.root];
  found[0] = (uint64_t)all, found[1] = (uint64_t)(all >> 64);
  return kComplete;
}

}  // namespace dynagrad
