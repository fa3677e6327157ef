// The functions of every program that Python calls, over the program's entry (`outside/entry.hpp`).
#pragma once
#include <dynagrad/base/builtins.hpp>
#include <dynagrad/running/chart.hpp>
#include <dynagrad/outside/entry.hpp>
#include <dynagrad/outside/examples.hpp>
#include <dynagrad/running/tape.hpp>

#define DYNAGRAD_EXPORT extern "C" __attribute__((visibility("default")))

using dynagrad::ChartBase;
using dynagrad::FactTable;
using dynagrad::Host;
using dynagrad::Report;
using dynagrad::Settings;
using dynagrad::World;

// Where memory or time ends, functions that make something return null, and others that take memory a Failure;
// `dg_failure` says which it was last in this thread.
static constinit thread_local dynagrad::Failure failure = dynagrad::none;
template <class F>
static int64_t guard(dynagrad::Account* account, F work) {
  return failure = dynagrad::guarded(account, work);
}
DYNAGRAD_EXPORT int64_t dg_failure() { return failure; }

DYNAGRAD_EXPORT World* dg_world_new(const World* base) {
  World* w = dynagrad::blank<World>(failure);
  if (w && guard(nullptr, [&] { w->terms.open(base ? &base->terms : nullptr); })) dynagrad::dispose(w), w = nullptr;
  return w;
}
DYNAGRAD_EXPORT void dg_world_free(World* w) { dynagrad::dispose(w); }
// What charts over this world may take, its own terms included.
DYNAGRAD_EXPORT void dg_world_limit(World* w, int64_t bytes) { w->account.limit = bytes; }
DYNAGRAD_EXPORT int64_t dg_world_domains(World* w, int64_t n, const int32_t* low, const int64_t* count) {
  return guard(nullptr, [=] {
    w->domain.clear();
    for (int64_t i = 0; i < n; i++) w->domain.push({low[i], count[i]});
    while (w->rank.size < n) w->rank.push(nullptr);
  });
}
DYNAGRAD_EXPORT int64_t dg_world_rank(World* w, int64_t domain, const int32_t* ranks, int64_t n) {
  return guard(nullptr, [=] { w->set_rank(domain, ranks, n); });
}
DYNAGRAD_EXPORT int64_t dg_world_constants(World* w, int64_t n, const int32_t* values) {
  return guard(nullptr, [=] {
    w->constant.clear();
    for (int64_t i = 0; i < n; i++) w->constant.push(values[i]);
  });
}
// Interns n nodes; the children of node i are first[i] .. first[i+1], as indices of earlier nodes. out[i] is its number.
DYNAGRAD_EXPORT int64_t dg_terms_make(World* w, int64_t n, const int32_t* kind, const int32_t* payload,
                                      const int64_t* first, const int32_t* children, int32_t* out) {
  return guard(nullptr, [=] {
    dynagrad::Array<int32_t> parts;
    for (int64_t i = 0; i < n; i++) {
      parts.clear();
      for (int64_t c = first[i]; c < first[i + 1]; c++) parts.push(out[children[c]]);
      out[i] = w->terms.make(kind[i], payload[i], parts.data, (int32_t)parts.size);
    }
  });
}
DYNAGRAD_EXPORT int64_t dg_terms_count(const World* w) { return w->terms.count(); }
// One term: kind, payload and arity into `out`; up to `room` arguments into `arguments`.
DYNAGRAD_EXPORT void dg_terms_node(const World* w, int32_t t, int32_t* out, int32_t* arguments, int32_t room) {
  const auto& n = w->terms.node(t);
  out[0] = n.kind, out[1] = n.payload, out[2] = n.arity;
  for (int32_t i = 0; i < n.arity && i < room; i++) arguments[i] = w->terms.arguments(t)[i];
}
DYNAGRAD_EXPORT int32_t dg_terms_find(const World* w, int32_t kind, int32_t payload, const int32_t* args, int32_t n) {
  return w->terms.find(kind, payload, args, n);
}

// A guarded call with the interpreter lock given up, which ends where its time does (-1: no limit) or is told to stop.
template <class F>
static int64_t patiently(int64_t timeout_ns, const Host* host, int32_t* stop, F work) {
  dynagrad::Unlocked unlocked(host, stop);
  const dynagrad::Patience waits{&unlocked, timeout_ns};
  const dynagrad::Patience* const before = dynagrad::patience;
  dynagrad::patience = &waits;
  const int64_t ended = guard(nullptr, work);
  dynagrad::patience = before;
  return ended;
}
DYNAGRAD_EXPORT FactTable* dg_facts_new(World* w, int64_t table, const int32_t* const* columns, int64_t rows,
                                        int64_t timeout_ns, const Host* host, int32_t* stop) {
  FactTable* facts = dynagrad::new_facts(dynagrad_entry.facts[table], failure);
  if (facts && patiently(timeout_ns, host, stop, [=] { dynagrad::load(facts, w, columns, rows); }))
    dynagrad::dispose(facts), facts = nullptr;
  return facts;
}
// How many rows there are, copies of a fact counted once.
DYNAGRAD_EXPORT int64_t dg_facts_rows(const FactTable* facts) { return facts->rows; }
DYNAGRAD_EXPORT void dg_facts_free(FactTable* facts) { dynagrad::dispose(facts); }
DYNAGRAD_EXPORT void* dg_weights_new(int64_t table, const FactTable* facts, const uint64_t* words, int64_t timeout_ns,
                                     const Host* host, int32_t* stop) {
  const dynagrad::ValueReader& values = *dynagrad_entry.values;
  void* made = values.weights_new(failure);
  const void* copies = (const char*)dynagrad_entry.copies + table * dynagrad_entry.copies_each;
  if (made && patiently(timeout_ns, host, stop, [=] { values.weigh(*facts, words, made, copies); }))
    values.weights_free(made), made = nullptr;
  return made;
}
DYNAGRAD_EXPORT void dg_weights_free(void* weights) { dynagrad_entry.values->weights_free(weights); }

DYNAGRAD_EXPORT ChartBase* dg_chart_new(World* w, FactTable* const* facts, void* const* weights, const uint64_t* constants) {
  return dynagrad::new_chart(failure, w, facts, weights, constants);
}
DYNAGRAD_EXPORT int64_t dg_chart_size() { return dynagrad_entry.size; }
// Enters all that this chart does into its tape; before it runs.
DYNAGRAD_EXPORT void dg_chart_record(ChartBase* c) { c->recording = true; }
DYNAGRAD_EXPORT void dg_chart_free(ChartBase* c) { dynagrad::free_chart(c); }
DYNAGRAD_EXPORT void dg_chart_run(ChartBase* c, const Settings* settings, Report* report, const Host* host, int32_t* stop) {
  c->settings = *settings;
  {
    dynagrad::Unlocked unlocked(host, stop);
    c->unlocked = &unlocked;
    if (settings->max_bytes >= 0) c->account.limit = c->world->account.limit = settings->max_bytes;
    if (guard(&c->account, [=] { dynagrad_entry.run(c); })) c->stop_for_memory(failure);
    c->unlocked = nullptr;
  }
  *report = c->report;
}
// A step of a change of facts; `Change` in `runtime/engine.py` has their numbers.
DYNAGRAD_EXPORT int64_t dg_chart_change(ChartBase* c, int64_t step, int64_t table, const int32_t* rows,
                                        const uint64_t* words, int64_t count, const Host* host) {
  dynagrad::Unlocked unlocked(host, nullptr);
  c->unlocked = &unlocked;
  c->settings = Settings{};
  const int64_t ended = guard(&c->account, [=] { dynagrad_entry.change(c, step, table, rows, words, count); });
  c->unlocked = nullptr;
  return ended;
}
DYNAGRAD_EXPORT int64_t dg_chart_swap(ChartBase* c, int64_t table, const FactTable* facts, const void* weights, int64_t settled) {
  return guard(&c->account, [=] { dynagrad_entry.swap(c, table, facts, weights, settled); });
}
// Whether there is room for all items; `bounds` are what `dg_chart_bounds` gave, or null.
DYNAGRAD_EXPORT int64_t dg_chart_restore(ChartBase* c, int64_t table, const int32_t* rows, const uint64_t* words,
                                         const double* bounds, int64_t n, int64_t* fits) {
  return guard(&c->account, [=] { *fits = dynagrad_entry.restore(c, table, rows, words, bounds, n); });
}
// The error bound of each item's component, in the order of `dg_chart_items`; how many, which is none where it has none.
DYNAGRAD_EXPORT int64_t dg_chart_bounds(const ChartBase* c, int64_t table, double* bounds, int64_t room) {
  return dynagrad_entry.bounds ? dynagrad_entry.bounds(c, table, bounds, room) : 0;
}
// The value of an item in the chart; 0 where it was never derived.
DYNAGRAD_EXPORT int64_t dg_chart_get(const ChartBase* c, int64_t table, const int32_t* arguments, uint64_t* words) {
  return c->get(table, arguments, words);
}
// The value of a fact as it was given; 0 where there is none.
DYNAGRAD_EXPORT int64_t dg_chart_fact(const ChartBase* c, int64_t table, const int32_t* arguments, uint64_t* words) {
  return c->fact(table, arguments, words);
}
// The items of a predicate, `room` at most: arguments row by row, and values. Returns how many there are.
DYNAGRAD_EXPORT int64_t dg_chart_items(const ChartBase* c, int64_t table, int32_t* arguments, uint64_t* words, int64_t room) {
  return c->items(table, arguments, words, room);
}
// The items with an update that was not propagated: arguments and the update.
DYNAGRAD_EXPORT int64_t dg_chart_pending(const ChartBase* c, int64_t table, int32_t* arguments, uint64_t* words, int64_t room) {
  return c->waiting(table, arguments, words, room);
}
DYNAGRAD_EXPORT void dg_chart_arguments(const ChartBase* c, int64_t table, int64_t cell, int32_t* arguments) {
  c->arguments(table, cell, arguments);
}
// The cell of an item to stop at; makes room for it.
DYNAGRAD_EXPORT int64_t dg_chart_locate(ChartBase* c, int64_t table, const int32_t* arguments) {
  int64_t cell = -1;
  return guard(&c->account, [&] { cell = c->locate(table, arguments); }) ? -2 : cell;
}
DYNAGRAD_EXPORT void dg_chart_external(ChartBase* c, int64_t table, int32_t (*f)(const int32_t*, uint64_t*)) {
  c->externals[table] = f;
}

// What a function of values said that failed.
DYNAGRAD_EXPORT const char* dg_chart_message(const ChartBase* c) { return c->message; }
DYNAGRAD_EXPORT const char* dg_chart_blamed(const ChartBase* c) { return c->blamed; }
DYNAGRAD_EXPORT const double* dg_chart_disagree(const ChartBase* c) { return c->disagree.data; }

// The items around a cycle of the component that diverges, `room` at most: table and cell of each. Returns how many.
DYNAGRAD_EXPORT int64_t dg_chart_cycle(const ChartBase* c, int32_t* tables, int64_t* cells, int64_t room) {
  for (int64_t i = 0; i < c->cycle.size && i < room; i++)
    tables[i] = (int32_t)dynagrad::table_of(c->cycle[i]), cells[i] = dynagrad::cell_of(c->cycle[i]);
  return c->cycle.size;
}

// The derivations of an item that is in the chart, in a class that collects them; the report says how that ended. `how`
// has bits of `Collected::How`.
DYNAGRAD_EXPORT void dg_forest_collect(ChartBase* c, const Settings* settings, Report* report, int64_t table,
                                       const int32_t* arguments, int64_t most, int64_t how, const Host* host,
                                       int32_t* stop) {
  c->settings = *settings;
  {
    dynagrad::Unlocked unlocked(host, stop);
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
// How many nodes, instances, antecedents and given facts were collected.
DYNAGRAD_EXPORT void dg_forest_sizes(ChartBase* c, int64_t* sizes) {
  const dynagrad::Collected& f = *dynagrad_entry.collected(c);
  sizes[0] = f.item.size, sizes[1] = f.instances, sizes[2] = f.antecedents, sizes[3] = f.given.size;
}
// What was collected, taken from the chart: where its arrays are, until it is freed, and the value of each node.
DYNAGRAD_EXPORT dynagrad::Collected* dg_forest_take(ChartBase* c, const void** arrays, uint64_t* words) {
  dynagrad::Collected* f = dynagrad::blank<dynagrad::Collected>(failure);
  if (!f) return nullptr;
  f->swap(*dynagrad_entry.collected(c));
  f->queue.release();
  arrays[0] = f->item.data, arrays[1] = f->begin.data, arrays[2] = f->end.data, arrays[3] = f->opened.data;
  arrays[4] = f->rule.data, arrays[5] = f->first.data, arrays[6] = f->antecedent.data, arrays[7] = f->given.data;
  for (int64_t n = 0; n < f->item.size; n++, words += c->reader->words) {
    const dynagrad::TableView& t = c->views[dynagrad::table_of(f->item[n])];
    const int64_t at = dynagrad::cell_of(f->item[n]);
    if (t.items) c->reader->write(c->reader->element(t.values, at), words);
    else c->reader->write_row(t.view, at, words);
  }
  return f;
}
DYNAGRAD_EXPORT void dg_forest_free(dynagrad::Collected* f) { dynagrad::dispose(f); }
// The arguments of `count` places of a table, row by row.
DYNAGRAD_EXPORT void dg_forest_arguments(const ChartBase* c, int64_t table, const int64_t* places, int64_t count,
                                         int32_t* arguments) {
  const int64_t width = c->views[table].width;
  for (int64_t i = 0; i < count; i++) c->arguments(table, places[i], arguments + i * width);
}

// Differentiation. `open` makes room for adjoints, all zero; `seed` gives an item a cotangent (0 where it is not in the
// chart; `whole`: one, whatever the scale); `backward` runs the pass, within a time (-1: without a limit), and returns a
// Status; then adjoints are read.
DYNAGRAD_EXPORT int64_t dg_adjoints_open(ChartBase* c) {
  return guard(&c->account, [=] { dynagrad_entry.adjoints(c, true); });
}
DYNAGRAD_EXPORT void dg_adjoints_close(ChartBase* c) { dynagrad_entry.adjoints(c, false); }
DYNAGRAD_EXPORT int64_t dg_adjoints_seed(ChartBase* c, int64_t table, const int32_t* arguments, const uint64_t* cotangent,
                                         int64_t whole) {
  return dynagrad_entry.seed(c, table, arguments, cotangent, whole);
}
DYNAGRAD_EXPORT int64_t dg_adjoints_backward(ChartBase* c, Report* report, int64_t timeout_ns, const Host* host,
                                             int32_t* stop) {
  int64_t status = 0;
  {
    dynagrad::Unlocked unlocked(host, stop);
    c->unlocked = &unlocked;
    c->back_timeout_ns = timeout_ns < 0 ? -1 : timeout_ns + c->spent_before;
    if (guard(&c->account, [&] { status = dynagrad_entry.backward(c); })) {
      status = failure == dynagrad::limited ? dynagrad::at_bytes : dynagrad::no_memory;
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
// Those of the items of a predicate, in the order of `dg_chart_items`.
DYNAGRAD_EXPORT int64_t dg_adjoints_items(const ChartBase* c, int64_t table, uint64_t* words, int64_t room) {
  return dynagrad_entry.adjoints_of_items(c, table, words, room);
}
// Those of facts, row by row as they were given, with the numbers that were given (null: all one).
DYNAGRAD_EXPORT int64_t dg_adjoints_rows(const ChartBase* c, int64_t table, const uint64_t* given, uint64_t* words) {
  return guard(nullptr, [=] { dynagrad_entry.adjoints_of_rows(c, table, given, words); });
}
// Room for results, out of the blocks that charts use again and again.
DYNAGRAD_EXPORT void* dg_block_new(int64_t bytes) {
  void* made = nullptr;
  guard(nullptr, [&] { made = dynagrad::Blocks::take(bytes, false, nullptr, nullptr); });
  return made;
}
DYNAGRAD_EXPORT void dg_block_free(void* data) { dynagrad::Blocks::give(data); }
// The pops of a run, `room` at most: table and cell of each. Returns how many there are.
DYNAGRAD_EXPORT int64_t dg_tape_pops(const ChartBase* c, int32_t* tables, int64_t* cells, int64_t room) {
  const auto& pops = *dynagrad_entry.pops(c);
  for (int64_t t = 0; t < pops.size && t < room; t++) {
    const dynagrad::Handle h = pops[t] & ~dynagrad::again;
    tables[t] = (int32_t)dynagrad::table_of(h), cells[t] = dynagrad::cell_of(h);
  }
  return pops.size;
}

// Many examples, see `outside/examples.hpp`; -1 where they were told to stop.
DYNAGRAD_EXPORT int64_t dg_examples(const dynagrad::Examples* examples, const Host* host, int32_t* stop) {
  return dynagrad::run_examples(*examples, host, stop);
}

#ifdef DYNAGRAD_RUNTIME  // templates that programs are linked to
template struct dynagrad::Levels<int64_t>;
template struct dynagrad::Levels<__int128>;
template struct dynagrad::RowLevels<int64_t>;
template struct dynagrad::RowLevels<__int128>;
#endif
