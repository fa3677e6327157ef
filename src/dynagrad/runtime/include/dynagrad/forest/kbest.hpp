// The derivations of the root from the best on, one after the other as they are asked for: Huang and Chiang (2005),
// "Better k-best parsing", algorithm 3, which on graphs is that of Jimenez and Marzal (1999).
//
// Each node has the derivations that were asked for, and a heap of candidates. A derivation is an instance and, of each
// antecedent, which of its derivations is meant. Its successors have the next derivation of one antecedent, from the
// place on where the one before was changed last: so each comes up once. They are made when the derivation after it is
// asked for. The next derivation of a node that is at work is never asked for, also in cycles: what is asked for stands
// inside a derivation that the node has already, so it has one more.
#pragma once
#include <dynagrad/forest/best.hpp>

namespace dynagrad {

struct Derivation {
  Key key;
  uint32_t instance, last;       // the antecedent that was changed last
  int64_t which;                 // its place among the numbers of derivations of antecedents
};

struct Ranked {                  // the derivations of a node
  Array<Derivation> found, candidates;
  bool expanded = true, exhausted = false;
  uint32_t next = 0;             // the antecedent whose next derivation the last of them is waiting for
  explicit Ranked(Account* a) : found(a), candidates(a) {}
};

struct KBest {
  const View& f;
  const Best& best;
  Account* account;
  Array<Ranked*> of;             // by node; null where nobody asked
  Array<uint32_t> numbers;       // of derivations of antecedents, derivation after derivation

  KBest(const View& view, const Best& b, Account* a) : f(view), best(b), account(a), of(a), numbers(a) { of.zeros(f.nodes); }
  ~KBest() {
    for (int64_t v = 0; v < of.size; v++) dispose(of[v]);
  }

  uint32_t arity(uint32_t e) const { return f.first[e + 1] - f.first[e]; }

  bool before(const Derivation& a, const Derivation& b) const {
    if (!equal(a.key, b.key)) return better(a.key, b.key);
    if (a.instance != b.instance) return precedes(f, a.instance, b.instance);
    for (uint32_t i = 0; i < arity(a.instance); i++) {
      const uint32_t x = numbers[a.which + i], y = numbers[b.which + i];
      if (x != y) return x < y;
    }
    return false;
  }
  void push(Array<Derivation>& heap, const Derivation& d) {
    heap.push(d);
    sift(heap, heap.size - 1, d);
  }
  void sift(Array<Derivation>& heap, int64_t i, const Derivation& d) {
    for (; i && before(d, heap[(i - 1) / 2]); i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
    heap[i] = d;
  }
  void down(Array<Derivation>& heap, int64_t i, const Derivation& d) {
    for (;;) {
      int64_t child = 2 * i + 1;
      if (child >= heap.size) break;
      if (child + 1 < heap.size && before(heap[child + 1], heap[child])) child++;
      if (!before(heap[child], d)) break;
      heap[i] = heap[child], i = child;
    }
    heap[i] = d;
  }
  Derivation pop(Array<Derivation>& heap) {
    const Derivation top = heap[0], d = heap[--heap.size];
    if (heap.size) down(heap, 0, d);
    return top;
  }

  // The derivations of a node, begun with every instance over the best of its antecedents.
  Ranked& ranked(uint32_t v) {
    if (of[v]) return *of[v];
    void* const place = fails() ? nullptr : obtain(sizeof(Ranked), true);
    if (!place) out_of_memory();
    Ranked& r = *(of[v] = new (place, Here{}) Ranked(account));
    for (uint32_t e = f.begin[v]; e < f.end[v]; e++) {
      Key k;
      if (!best.rate(f, e, k)) continue;
      const int64_t which = numbers.size;
      for (uint32_t i = 0; i < arity(e); i++) numbers.push(0);
      r.candidates.push({k, e, 0, which});
    }
    for (int64_t i = r.candidates.size / 2; i-- > 0;) {
      const Derivation d = r.candidates[i];
      down(r.candidates, i, d);
    }
    return r;
  }
  const Key& key(uint32_t v, uint32_t n) const {
    return of[v] && n < of[v]->found.size ? of[v]->found[n].key : best.key[v];
  }
  bool has(uint32_t v, uint32_t n) const { return of[v] && n < of[v]->found.size; }

  // Sees to it that a node has derivation n. kUnlike: there is none; kHalted: it may be asked again, as how
  // far each node came stands in what it has.
  int64_t need(uint32_t root, uint32_t n, Unlocked& unlocked) {
    struct Frame { uint32_t node, n; };
    Array<Frame> frames;
    frames.push({root, n});
    while (frames.size) {
      if (unlocked.interrupted()) return kHalted;
      const Frame at = frames[frames.size - 1];
      Ranked& r = ranked(at.node);
      if (r.found.size > (int64_t)at.n || r.exhausted) {
        frames.size--;
        continue;
      }
      bool waits = false;
      while (!r.expanded) {
        const Derivation d = r.found[r.found.size - 1];
        if (r.next < d.last) r.next = d.last;
        if (r.next >= arity(d.instance)) {
          r.expanded = true;
          break;
        }
        const uint32_t i = r.next;
        const int32_t u = f.antecedent[f.first[d.instance] + i];
        if (u >= 0) {
          const uint32_t next = numbers[d.which + i] + 1;
          Ranked& below = ranked((uint32_t)u);
          if (below.found.size <= (int64_t)next && !below.exhausted) {
            frames.push({(uint32_t)u, next});
            waits = true;
            break;
          }
          if (below.found.size > (int64_t)next) {
            const int64_t which = numbers.size;
            for (uint32_t k = 0; k < arity(d.instance); k++) numbers.push(numbers[d.which + k]);
            numbers[which + i]++;
            push(r.candidates, {rate(d.instance, which), d.instance, i, which});
          }
        }
        r.next++;
      }
      if (waits) continue;
      if (!r.candidates.size) {
        r.exhausted = true;
        continue;
      }
      r.found.push(pop(r.candidates));
      r.expanded = false, r.next = 0;
    }
    return has(root, n) ? kComplete : kUnlike;
  }
  Key rate(uint32_t e, int64_t which) {
    Key found{f.own(e), f.rule[e] < 0 ? 0 : 1};
    for (uint32_t i = 0; i < arity(e); i++) {
      const int32_t u = f.antecedent[f.first[e] + i];
      if (u < 0) continue;
      const Key& k = key((uint32_t)u, numbers[which + i]);
      found.weight = f.times(found.weight, k.weight);
      found.size = found.size + k.size < huge ? found.size + k.size : huge;
    }
    return found;
  }

  // The instances of a derivation, each before those of its antecedents. kUnlike: more than `most`.
  int64_t write(uint32_t root, uint32_t n, Array<uint32_t>& out, int64_t most, Unlocked& unlocked) {
    struct Frame { uint32_t node, n; };
    Array<Frame> frames;
    frames.push({root, n});
    while (frames.size) {
      if (unlocked.interrupted()) return kHalted;
      if (out.size >= most) return kUnlike;
      const Frame at = frames[--frames.size];
      const bool known = has(at.node, at.n);
      const uint32_t e = known ? of[at.node]->found[at.n].instance : best.instance[at.node];
      out.push(e);
      for (uint32_t i = arity(e); i-- > 0;) {
        const int32_t u = f.antecedent[f.first[e] + i];
        if (u >= 0) frames.push({(uint32_t)u, known ? numbers[of[at.node]->found[at.n].which + i] : 0});
      }
    }
    return kComplete;
  }
};

}  // namespace dynagrad
