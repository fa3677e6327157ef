// The functions of every program that Python calls, over the program's entry (`outside/entry.hpp`).
#pragma once
#include <dynagrad/base/builtins.hpp>
#include <dynagrad/running/chart.hpp>
#include <dynagrad/outside/entry.hpp>
#include <dynagrad/outside/examples.hpp>
#include <dynagrad/running/tape.hpp>

#define DYNAGRAD_EXPORT extern "C" __attribute__((visibility("default")))

namespace dynagrad {

static constinit thread_local Failure failure = none;  // how the last call in this thread ended early
template <class F>
static Failure guard(Account* account, F work) {
  return failure = guarded(account, work);
}
DYNAGRAD_EXPORT int64_t dg_failure() { return failure; }

DYNAGRAD_EXPORT World* dg_world_new(const World* base) {
  World* w = blank<World>(failure);
  if (w && guard(nullptr, [&] { w->terms.open(base ? &base->terms : nullptr); })) dispose(w), w = nullptr;
  return w;
}
DYNAGRAD_EXPORT void dg_world_free(World* w) { dispose(w); }
DYNAGRAD_EXPORT void dg_world_limit(World* w, int64_t bytes) { w->account.limit = bytes; }
DYNAGRAD_EXPORT Failure dg_world_domains(World* w, int64_t n, const int32_t* low, const int64_t* count) {
  return guard(nullptr, [=] {
    w->domain.clear();
    for (int64_t i = 0; i < n; i++) w->domain.push({low[i], count[i]});
    while (w->rank.size < n) w->rank.push(nullptr);
  });
}
DYNAGRAD_EXPORT Failure dg_world_rank(World* w, int64_t domain, const int32_t* ranks, int64_t n) {
  return guard(nullptr, [=] { w->set_rank(domain, ranks, n); });
}
DYNAGRAD_EXPORT Failure dg_world_constants(World* w, int64_t n, const int32_t* values) {
  return guard(nullptr, [=] {
    w->constant.clear();
    for (int64_t i = 0; i < n; i++) w->constant.push(values[i]);
  });
}
DYNAGRAD_EXPORT Failure dg_terms_make(World* w, int64_t n, const int32_t* kind, const int32_t* payload,
                                      const int64_t* first, const int32_t* children, int32_t* out) {
  return guard(nullptr, [=] {
    Array<int32_t> parts;
    for (int64_t i = 0; i < n; i++) {
      parts.clear();
      for (int64_t c = first[i]; c < first[i + 1]; c++) parts.push(out[children[c]]);
      out[i] = w->terms.make(kind[i], payload[i], parts.data, (int32_t)parts.size);
    }
  });
}
DYNAGRAD_EXPORT void dg_terms_node(const World* w, int32_t t, TermNode* out, int32_t* arguments, int32_t room) {
  *out = w->terms.node(t);
  for (int32_t i = 0; i < out->arity && i < room; i++) arguments[i] = w->terms.arguments(t)[i];
}
DYNAGRAD_EXPORT int32_t dg_terms_find(const World* w, int32_t kind, int32_t payload, const int32_t* args, int32_t n) {
  return w->terms.find(kind, payload, args, n);
}

// A guarded call with the interpreter lock given up, which ends where its time does (-1: no limit) or is told to stop.
template <class F>
static Failure patiently(int64_t timeout_ns, const Host* host, int32_t* stop, F work) {
  Unlocked unlocked(host, stop);
  const Patience waits{&unlocked, timeout_ns};
  const Patience* const before = patience;
  patience = &waits;
  const Failure ended = guard(nullptr, work);
  patience = before;
  return ended;
}
DYNAGRAD_EXPORT FactTable* dg_facts_new(World* w, int64_t table, const int32_t* const* columns, int64_t rows,
                                        int64_t timeout_ns, const Host* host, int32_t* stop) {
  FactTable* facts = new_facts(dynagrad_entry.facts[table], failure);
  if (facts && patiently(timeout_ns, host, stop, [=] { load(facts, w, columns, rows); }))
    dispose(facts), facts = nullptr;
  return facts;
}
DYNAGRAD_EXPORT int64_t dg_facts_rows(const FactTable* facts) { return facts->rows; }
DYNAGRAD_EXPORT void dg_facts_free(FactTable* facts) { dispose(facts); }
DYNAGRAD_EXPORT void* dg_weights_new(int64_t table, const FactTable* facts, const uint64_t* words, int64_t timeout_ns,
                                     const Host* host, int32_t* stop) {
  const ValueReader& values = *dynagrad_entry.values;
  void* made = values.weights_new(failure);
  const void* copies = (const char*)dynagrad_entry.copies + table * dynagrad_entry.copies_each;
  if (made && patiently(timeout_ns, host, stop, [=] { values.weigh(*facts, words, made, copies); }))
    values.weights_free(made), made = nullptr;
  return made;
}
DYNAGRAD_EXPORT void dg_weights_free(void* weights) { dynagrad_entry.values->weights_free(weights); }

DYNAGRAD_EXPORT ChartBase* dg_chart_new(World* w, FactTable* const* facts, void* const* weights, const uint64_t* constants) {
  return new_chart(failure, w, facts, weights, constants);
}
DYNAGRAD_EXPORT int64_t dg_chart_size() { return dynagrad_entry.size; }
DYNAGRAD_EXPORT void dg_chart_record(ChartBase* c) { c->recording = true; }
DYNAGRAD_EXPORT void dg_chart_free(ChartBase* c) { free_chart(c); }
DYNAGRAD_EXPORT void dg_chart_run(ChartBase* c, const Settings* settings, Report* report, const Host* host, int32_t* stop) {
  c->settings = *settings;
  {
    Unlocked unlocked(host, stop);
    c->unlocked = &unlocked;
    if (settings->max_bytes >= 0) c->account.limit = c->world->account.limit = settings->max_bytes;
    if (guard(&c->account, [=] { dynagrad_entry.run(c); })) c->stop_for_memory(failure);
    c->unlocked = nullptr;
  }
  *report = c->report;
}
DYNAGRAD_EXPORT Failure dg_chart_change(ChartBase* c, int64_t step, int64_t table, const int32_t* rows,
                                        const uint64_t* words, int64_t count, const Host* host) {
  Unlocked unlocked(host, nullptr);
  c->unlocked = &unlocked;
  c->settings = Settings{};
  const Failure ended = guard(&c->account, [=] { dynagrad_entry.change(c, step, table, rows, words, count); });
  c->unlocked = nullptr;
  return ended;
}
DYNAGRAD_EXPORT Failure dg_chart_swap(ChartBase* c, int64_t table, const FactTable* facts, const void* weights, int64_t settled) {
  return guard(&c->account, [=] { dynagrad_entry.swap(c, table, facts, weights, settled); });
}
DYNAGRAD_EXPORT Failure dg_chart_restore(ChartBase* c, int64_t table, const int32_t* rows, const uint64_t* words,
                                         const double* bounds, int64_t n, int64_t* fits) {
  return guard(&c->account, [=] { *fits = dynagrad_entry.restore(c, table, rows, words, bounds, n); });
}
DYNAGRAD_EXPORT int64_t dg_chart_bounds(const ChartBase* c, int64_t table, double* bounds, int64_t room) {
  return c->bounds(table, bounds, room);
}
DYNAGRAD_EXPORT int64_t dg_chart_get(const ChartBase* c, int64_t table, const int32_t* arguments, uint64_t* words) {
  return c->get(table, arguments, words);
}
DYNAGRAD_EXPORT int64_t dg_chart_fact(const ChartBase* c, int64_t table, const int32_t* arguments, uint64_t* words) {
  return c->fact(table, arguments, words);
}
DYNAGRAD_EXPORT int64_t dg_chart_items(const ChartBase* c, int64_t table, int32_t* arguments, uint64_t* words, int64_t room) {
  return c->items(table, arguments, words, room);
}
DYNAGRAD_EXPORT int64_t dg_chart_pending(const ChartBase* c, int64_t table, int32_t* arguments, uint64_t* words, int64_t room) {
  return c->pending(table, arguments, words, room);
}
DYNAGRAD_EXPORT void dg_chart_arguments(const ChartBase* c, int64_t table, int64_t cell, int32_t* arguments) {
  c->arguments(table, cell, arguments);
}
DYNAGRAD_EXPORT int64_t dg_chart_locate(ChartBase* c, int64_t table, const int32_t* arguments) {
  int64_t cell = -1;
  return guard(&c->account, [&] { cell = c->locate(table, arguments); }) ? -2 : cell;
}
DYNAGRAD_EXPORT void dg_chart_external(ChartBase* c, int64_t table, External f) {
  c->externals[table] = f;
}

DYNAGRAD_EXPORT const char* dg_chart_message(const ChartBase* c) { return c->message; }
DYNAGRAD_EXPORT const char* dg_chart_blamed(const ChartBase* c) { return c->blamed; }
DYNAGRAD_EXPORT const double* dg_chart_disagree(const ChartBase* c) { return c->disagree.data; }

DYNAGRAD_EXPORT int64_t dg_chart_cycle(const ChartBase* c, int32_t* tables, int64_t* cells, int64_t room) {
  for (int64_t i = 0; i < c->cycle.size && i < room; i++)
    tables[i] = (int32_t)table_of(c->cycle[i]), cells[i] = cell_of(c->cycle[i]);
  return c->cycle.size;
}

DYNAGRAD_EXPORT void dg_forest_collect(ChartBase* c, const Settings* settings, Report* report, int64_t table,
                                       const int32_t* arguments, int64_t most, int64_t how, const Host* host,
                                       int32_t* stop) {
  c->settings = *settings;
  {
    Unlocked unlocked(host, stop);
    c->unlocked = &unlocked;
    if (settings->max_bytes >= 0) c->account.limit = c->world->account.limit = settings->max_bytes;
    c->halt = c->budget = 0, c->report.status = 0;
    if (guard(&c->account, [=] { dynagrad_entry.collect(c, table, arguments, most, how); }))
      c->stop_for_memory(failure);
    else c->report.status = c->halt;
    c->unlocked = nullptr;
  }
  *report = c->report;
}
DYNAGRAD_EXPORT void dg_forest_sizes(ChartBase* c, ForestSizes* sizes) {
  const Collected& f = *dynagrad_entry.collected(c);
  *sizes = {f.item.size, f.instances, f.antecedents, f.given.size};
}
DYNAGRAD_EXPORT Collected* dg_forest_take(ChartBase* c, ForestArrays* arrays, uint64_t* words) {
  Collected* f = blank<Collected>(failure);
  if (!f) return nullptr;
  f->swap(*dynagrad_entry.collected(c));
  f->queue.release();
  *arrays = {f->item.data, f->begin.data, f->end.data,        f->opened.data,
             f->rule.data, f->first.data, f->antecedent.data, f->given.data};
  for (int64_t n = 0; n < f->item.size; n++, words += c->reader->words) {
    const TableView& t = c->views[table_of(f->item[n])];
    const int64_t at = cell_of(f->item[n]);
    if (t.items) c->reader->write(c->reader->element(t.values, at), words);
    else c->reader->write_row(t.view, at, words);
  }
  return f;
}
DYNAGRAD_EXPORT void dg_forest_free(Collected* f) { dispose(f); }
DYNAGRAD_EXPORT void dg_forest_arguments(const ChartBase* c, int64_t table, const int64_t* places, int64_t count,
                                         int32_t* arguments) {
  const int64_t width = c->views[table].width;
  for (int64_t i = 0; i < count; i++) c->arguments(table, places[i], arguments + i * width);
}

DYNAGRAD_EXPORT Failure dg_adjoints_open(ChartBase* c) {
  return guard(&c->account, [=] { dynagrad_entry.adjoints(c, true); });
}
DYNAGRAD_EXPORT int64_t dg_adjoints_seed(ChartBase* c, int64_t table, const int32_t* arguments, const uint64_t* cotangent,
                                         int64_t whole) {
  return dynagrad_entry.seed(c, table, arguments, cotangent, whole);
}
DYNAGRAD_EXPORT int64_t dg_adjoints_backward(ChartBase* c, Report* report, int64_t timeout_ns, const Host* host,
                                             int32_t* stop) {
  int64_t status = 0;
  {
    Unlocked unlocked(host, stop);
    c->unlocked = &unlocked;
    c->back_timeout_ns = timeout_ns < 0 ? -1 : timeout_ns + c->spent_before;
    if (guard(&c->account, [&] { status = dynagrad_entry.backward(c); })) {
      status = failure == limited ? at_bytes : no_memory;
      c->report.bytes = c->account.bytes + c->world->account.bytes;
    }
    c->unlocked = nullptr;
  }
  *report = c->report;
  return status;
}
DYNAGRAD_EXPORT int64_t dg_adjoints_item(const ChartBase* c, int64_t table, const int32_t* arguments, uint64_t* words,
                                         int64_t whole) {
  return dynagrad_entry.adjoint(c, table, arguments, words, whole);
}
DYNAGRAD_EXPORT int64_t dg_adjoints_items(const ChartBase* c, int64_t table, uint64_t* words, int64_t room) {
  return dynagrad_entry.adjoints_of_items(c, table, words, room);
}
DYNAGRAD_EXPORT Failure dg_adjoints_rows(const ChartBase* c, int64_t table, const uint64_t* given, uint64_t* words) {
  return guard(nullptr, [=] { dynagrad_entry.adjoints_of_rows(c, table, given, words); });
}
DYNAGRAD_EXPORT void* dg_block_new(int64_t bytes) {
  void* made = nullptr;
  guard(nullptr, [&] { made = Blocks::take(bytes, false, nullptr, nullptr); });
  return made;
}
DYNAGRAD_EXPORT void dg_block_free(void* data) { Blocks::give(data); }
DYNAGRAD_EXPORT int64_t dg_tape_pops(const ChartBase* c, int32_t* tables, int64_t* cells, int64_t room) {
  const auto& pops = *dynagrad_entry.pops(c);
  for (int64_t t = 0; t < pops.size && t < room; t++) {
    const Handle h = pops[t] & ~again;
    tables[t] = (int32_t)table_of(h), cells[t] = cell_of(h);
  }
  return pops.size;
}

DYNAGRAD_EXPORT int64_t dg_examples(const Examples* examples, const Host* host, int32_t* stop) {
  return run_examples(*examples, host, stop);
}

#ifdef DYNAGRAD_RUNTIME  // templates that programs are linked to
template struct Levels<int64_t>;
template struct Levels<__int128>;
template struct RowLevels<int64_t>;
template struct RowLevels<__int128>;
#endif

}  // namespace dynagrad
