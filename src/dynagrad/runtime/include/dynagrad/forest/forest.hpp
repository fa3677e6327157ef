// The functions of a packed forest that Python calls, see `forests/native.py`: one `Walk` per forest.
//
// All return 0 where they did what was asked, 2 where they were interrupted or came to the end of `limit` nanoseconds, -1
// where memory ended, and otherwise a code that the header of the algorithm defines.
#pragma once
#include <dynagrad/forest/kbest.hpp>
#include <dynagrad/forest/sums.hpp>

#define DYNAGRAD_FOREST extern "C" __attribute__((visibility("default"))) int64_t

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
  return guarded(&w->account, [&] { how = work(unlocked); }) ? -1 : how;
}
// The same, once the components are known.
template <class F>
inline int64_t ordered(Walk* w, const Host* host, int32_t* stop, int64_t limit, F work) {
  return working(w, host, stop, limit, [=](Unlocked& u) -> int64_t {
    if (!w->ordered && !w->order.find(w->f, u)) return 2;
    w->ordered = true;
    return work(u);
  });
}

}  // namespace dynagrad

using dynagrad::Host;
using dynagrad::Unlocked;
using dynagrad::Walk;

extern "C" __attribute__((visibility("default"))) Walk* dg_walk_new() {
  dynagrad::Failure failure;
  return dynagrad::blank<Walk>(failure);
}
extern "C" __attribute__((visibility("default"))) void dg_walk_free(Walk* w) { dynagrad::dispose(w); }
DYNAGRAD_FOREST dg_walk_bytes(const Walk* w) { return w->account.bytes; }

DYNAGRAD_FOREST dg_walk_open(Walk* w, const dynagrad::View* view) {
  w->f = *view;
  return 0;
}
// Finds the components; it is done before whatever needs them.
DYNAGRAD_FOREST dg_walk_arrange(Walk* w, const Host* host, int32_t* stop, int64_t limit) {
  return dynagrad::ordered(w, host, stop, limit, [](Unlocked&) -> int64_t { return 0; });
}
// The components: how many nodes are reached, and where the arrays are.
DYNAGRAD_FOREST dg_walk_order(const Walk* w, const void** arrays) {
  arrays[0] = w->order.nodes.data, arrays[1] = w->order.begin.data, arrays[2] = w->order.cyclic.data;
  arrays[3] = w->order.component.data;
  return w->order.count();
}
DYNAGRAD_FOREST dg_walk_reached(const Walk* w) { return w->order.nodes.size; }

DYNAGRAD_FOREST dg_walk_best(Walk* w, const int64_t* rank, const Host* host, int32_t* stop, int64_t limit) {
  w->f.rank = rank;
  return dynagrad::ordered(w, host, stop, limit, [=](Unlocked& u) { return w->best.find(w->f, w->order, u); });
}
// Whether the root has a derivation that is not zero, after `best`; m and e of the weight of the best.
DYNAGRAD_FOREST dg_walk_derivable(const Walk* w, double* m, int64_t* e) {
  *m = w->best.key[w->f.root].weight.m, *e = w->best.key[w->f.root].weight.e;
  return w->best.instance[w->f.root] != dynagrad::Best::none;
}
// The last instance of the best derivation of each node, after `best`; how many nodes there are.
DYNAGRAD_FOREST dg_walk_chosen(const Walk* w, const void** instances) {
  *instances = w->best.instance.data;
  return w->best.instance.size;
}
DYNAGRAD_FOREST dg_walk_unbounded(const Walk* w) { return w->best.unbounded; }
// Derivation n of the root, from 0; `best` was called before.
DYNAGRAD_FOREST dg_walk_need(Walk* w, int64_t n, const Host* host, int32_t* stop, int64_t limit) {
  return dynagrad::working(w, host, stop, limit, [=](Unlocked& u) -> int64_t {
    if (!w->kbest) {
      void* const place = dynagrad::fails() ? nullptr : dynagrad::obtain(sizeof(dynagrad::KBest), true);
      if (!place) dynagrad::out_of_memory();
      w->kbest = new (place, dynagrad::Here{}) dynagrad::KBest(w->f, w->best, &w->account);
    }
    return w->kbest->need((uint32_t)w->f.root, (uint32_t)n, u);
  });
}
// Its instances go into an array of the walk; `numbers` gets how many there are, e of its weight, and its size.
DYNAGRAD_FOREST dg_walk_derivation(Walk* w, int64_t n, int64_t most, int64_t* numbers, double* m, const void** instances,
                                   const Host* host, int32_t* stop, int64_t limit) {
  return dynagrad::working(w, host, stop, limit, [=](Unlocked& u) -> int64_t {
    w->out.clear();
    const int64_t how = w->kbest->write((uint32_t)w->f.root, (uint32_t)n, w->out, most, u);
    const dynagrad::Key& k = w->kbest->key((uint32_t)w->f.root, (uint32_t)n);
    numbers[0] = w->out.size, numbers[1] = k.weight.e, numbers[2] = k.size, numbers[3] = w->kbest->made;
    *m = k.weight.m, *instances = w->out.data;
    return how;
  });
}

// Sums: 1 in front of a cyclic component, whose number is `dg_walk_next`; `again` begins anew.
DYNAGRAD_FOREST dg_walk_sums(Walk* w, int64_t again, const Host* host, int32_t* stop, int64_t limit) {
  return dynagrad::ordered(w, host, stop, limit, [=](Unlocked& u) -> int64_t {
    if (again) w->sums.open(w->f);
    return w->sums.find(w->f, w->order, u);
  });
}
// The sums of all nodes, worked out elsewhere.
DYNAGRAD_FOREST dg_walk_known(Walk* w, const double* m, const int64_t* e, const Host* host, int32_t* stop, int64_t limit) {
  return dynagrad::working(w, host, stop, limit, [=](Unlocked&) -> int64_t {
    w->sums.open(w->f);
    for (int64_t v = 0; v < w->f.nodes; v++) w->sums.total[v] = dynagrad::scaled(m[v], e[v]);
    return 0;
  });
}
DYNAGRAD_FOREST dg_walk_next(const Walk* w) { return w->sums.next; }
// The sum of each node, as m and e.
DYNAGRAD_FOREST dg_walk_totals(const Walk* w, double* m, int64_t* e) {
  for (int64_t v = 0; v < w->sums.total.size; v++) m[v] = w->sums.total[v].m, e[v] = w->sums.total[v].e;
  return w->sums.total.size;
}
// Gives the nodes of the component at hand their sums.
DYNAGRAD_FOREST dg_walk_settle(Walk* w, const uint32_t* nodes, const double* m, const int64_t* e, int64_t count) {
  for (int64_t i = 0; i < count; i++) w->sums.total[nodes[i]] = dynagrad::scaled(m[i], e[i]);
  w->sums.next++;
  return 0;
}
// The share of each instance in its node.
DYNAGRAD_FOREST dg_walk_shares(Walk* w, const void** shares, const Host* host, int32_t* stop, int64_t limit) {
  const int64_t how =
      dynagrad::ordered(w, host, stop, limit, [=](Unlocked& u) { return w->sums.divide_all(w->f, w->order, u); });
  *shares = w->sums.share.data;
  return how;
}
DYNAGRAD_FOREST dg_walk_expect(Walk* w, double* used, const Host* host, int32_t* stop, int64_t limit) {
  return dynagrad::ordered(w, host, stop, limit, [=](Unlocked& u) { return w->sums.expect(w->f, w->order, used, u); });
}
// Draws from .. to - 1 of a seed; several threads may draw from one walk, each into draws of its own.
extern "C" __attribute__((visibility("default"))) dynagrad::Draws* dg_walk_draws_new() {
  dynagrad::Failure failure;
  return dynagrad::blank<dynagrad::Draws>(failure);
}
extern "C" __attribute__((visibility("default"))) void dg_walk_draws_free(dynagrad::Draws* d) { dynagrad::dispose(d); }
DYNAGRAD_FOREST dg_walk_sample(Walk* w, dynagrad::Draws* draws, uint64_t seed, int64_t from, int64_t to, int64_t most,
                               const void** arrays, const Host* host, int32_t* stop, int64_t limit) {
  Unlocked unlocked(host, stop, limit);
  int64_t how = 0;
  const auto failed = dynagrad::guarded(
      &draws->account, [&] { how = draws->take(w->f, w->sums, seed, from, to, most, unlocked); });
  arrays[0] = draws->instances.data, arrays[1] = draws->begin.data, arrays[2] = draws->log_probability.data;
  return failed ? -1 : how;
}
DYNAGRAD_FOREST dg_walk_count(Walk* w, uint64_t* found, const Host* host, int32_t* stop, int64_t limit) {
  return dynagrad::ordered(
      w, host, stop, limit, [=](Unlocked& u) { return dynagrad::count_derivations(w->f, w->order, u, found); });
}
