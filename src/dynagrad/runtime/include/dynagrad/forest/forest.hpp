// The functions of a packed forest that Python calls, as `shared.h` declares them: one `Walk` per forest. Those that may
// take long return a WalkEnd.
#pragma once
#include <dynagrad/forest/kbest.hpp>
#include <dynagrad/forest/sums.hpp>

#define DYNAGRAD_EXPORT extern "C" __attribute__((visibility("default")))

namespace dynagrad {

struct Walk {
  Account account;
  View f{};
  Order order{&account};
  bool ordered = false;
  Best best{&account};
  KBest* kbest = nullptr;
  Array<uint32_t> out{&account};
  Sums sums{&account};
  ~Walk() { dispose(kbest); }
};

template <class F>
inline int64_t working(Walk* w, const Host* host, int32_t* stop, int64_t limit, F work) {
  Unlocked unlocked(host, stop, limit);
  int64_t how = 0;
  return guarded(&w->account, [&] { how = work(unlocked); }) ? int64_t{kNoRoom} : how;
}
// The same, once the components are known.
template <class F>
inline int64_t ordered(Walk* w, const Host* host, int32_t* stop, int64_t limit, F work) {
  return working(w, host, stop, limit, [=](Unlocked& u) -> int64_t {
    if (!w->ordered && !w->order.find(w->f, u)) return kHalted;
    w->ordered = true;
    return work(u);
  });
}

DYNAGRAD_EXPORT Walk* dg_walk_new() {
  Failure failure;
  return blank<Walk>(failure);
}
DYNAGRAD_EXPORT void dg_walk_free(Walk* w) { dispose(w); }
DYNAGRAD_EXPORT int64_t dg_walk_bytes(const Walk* w) { return w->account.bytes; }

DYNAGRAD_EXPORT void dg_walk_open(Walk* w, const ForestView* view) { (ForestView&)w->f = *view; }
DYNAGRAD_EXPORT int64_t dg_walk_arrange(Walk* w, const Host* host, int32_t* stop, int64_t limit) {
  return ordered(w, host, stop, limit, [](Unlocked&) -> int64_t { return kComplete; });
}
DYNAGRAD_EXPORT void dg_walk_order(const Walk* w, ForestOrder* order) {
  order->count = w->order.count(), order->reached = w->order.nodes.size;
  order->nodes = w->order.nodes.data, order->begin = w->order.begin.data, order->cyclic = w->order.cyclic.data;
  order->component = w->order.component.data;
}

DYNAGRAD_EXPORT int64_t dg_walk_best(Walk* w, const int64_t* rank, const Host* host, int32_t* stop, int64_t limit) {
  w->f.rank = rank;
  return ordered(w, host, stop, limit, [=](Unlocked& u) { return w->best.find(w->f, w->order, u); });
}
DYNAGRAD_EXPORT int64_t dg_walk_derivable(const Walk* w, double* m, int64_t* e) {
  *m = w->best.key[w->f.root].weight.m, *e = w->best.key[w->f.root].weight.e;
  return w->best.instance[w->f.root] != Best::none;
}
DYNAGRAD_EXPORT int64_t dg_walk_chosen(const Walk* w, const uint32_t** instances) {
  *instances = w->best.instance.data;
  return w->best.instance.size;
}
DYNAGRAD_EXPORT int64_t dg_walk_unbounded(const Walk* w) { return w->best.unbounded; }
DYNAGRAD_EXPORT int64_t dg_walk_need(Walk* w, int64_t n, const Host* host, int32_t* stop, int64_t limit) {
  return working(w, host, stop, limit, [=](Unlocked& u) -> int64_t {
    if (!w->kbest) {
      void* const place = fails() ? nullptr : obtain(sizeof(KBest), true);
      if (!place) out_of_memory();
      w->kbest = new (place, Here{}) KBest(w->f, w->best, &w->account);
    }
    return w->kbest->need((uint32_t)w->f.root, (uint32_t)n, u);
  });
}
DYNAGRAD_EXPORT int64_t dg_walk_derivation(Walk* w, int64_t n, int64_t most, RankedDerivation* derivation,
                                           const Host* host, int32_t* stop, int64_t limit) {
  return working(w, host, stop, limit, [=](Unlocked& u) -> int64_t {
    w->out.clear();
    const int64_t how = w->kbest->write((uint32_t)w->f.root, (uint32_t)n, w->out, most, u);
    const Key& k = w->kbest->key((uint32_t)w->f.root, (uint32_t)n);
    *derivation = {w->out.size, w->out.data, k.weight.m, k.weight.e, k.size};
    return how;
  });
}

DYNAGRAD_EXPORT int64_t dg_walk_sums(Walk* w, int64_t again, const Host* host, int32_t* stop, int64_t limit) {
  return ordered(w, host, stop, limit, [=](Unlocked& u) -> int64_t {
    if (again) w->sums.open(w->f);
    return w->sums.find(w->f, w->order, u);
  });
}
DYNAGRAD_EXPORT int64_t dg_walk_known(Walk* w, const double* m, const int64_t* e, const Host* host, int32_t* stop, int64_t limit) {
  return working(w, host, stop, limit, [=](Unlocked&) -> int64_t {
    w->sums.open(w->f);
    for (int64_t v = 0; v < w->f.nodes; v++) w->sums.total[v] = scaled(m[v], e[v]);
    return kComplete;
  });
}
DYNAGRAD_EXPORT int64_t dg_walk_next(const Walk* w) { return w->sums.next; }
DYNAGRAD_EXPORT void dg_walk_totals(const Walk* w, double* m, int64_t* e) {
  for (int64_t v = 0; v < w->sums.total.size; v++) m[v] = w->sums.total[v].m, e[v] = w->sums.total[v].e;
}
DYNAGRAD_EXPORT void dg_walk_settle(Walk* w, const uint32_t* nodes, const double* m, const int64_t* e, int64_t count) {
  for (int64_t i = 0; i < count; i++) w->sums.total[nodes[i]] = scaled(m[i], e[i]);
  w->sums.next++;
}
DYNAGRAD_EXPORT int64_t dg_walk_shares(Walk* w, const double** shares, const Host* host, int32_t* stop, int64_t limit) {
  const int64_t how =
      ordered(w, host, stop, limit, [=](Unlocked& u) { return w->sums.divide_all(w->f, w->order, u); });
  *shares = w->sums.share.data;
  return how;
}
DYNAGRAD_EXPORT int64_t dg_walk_expect(Walk* w, double* used, const Host* host, int32_t* stop, int64_t limit) {
  return ordered(w, host, stop, limit, [=](Unlocked& u) { return w->sums.expect(w->f, w->order, used, u); });
}
DYNAGRAD_EXPORT Draws* dg_walk_draws_new() {
  Failure failure;
  return blank<Draws>(failure);
}
DYNAGRAD_EXPORT void dg_walk_draws_free(Draws* d) { dispose(d); }
DYNAGRAD_EXPORT int64_t dg_walk_sample(Walk* w, Draws* draws, uint64_t seed, int64_t from, int64_t to, int64_t most,
                               DrawArrays* arrays, const Host* host, int32_t* stop, int64_t limit) {
  Unlocked unlocked(host, stop, limit);
  int64_t how = 0;
  const auto failed = guarded(
      &draws->account, [&] { how = draws->take(w->f, w->sums, seed, from, to, most, unlocked); });
  *arrays = {draws->instances.data, draws->begin.data, draws->log_probability.data};
  return failed ? int64_t{kNoRoom} : how;
}
DYNAGRAD_EXPORT int64_t dg_walk_count(Walk* w, uint64_t* found, const Host* host, int32_t* stop, int64_t limit) {
  return ordered(
      w, host, stop, limit, [=](Unlocked& u) { return count_derivations(w->f, w->order, u, found); });
}

}  // namespace dynagrad
