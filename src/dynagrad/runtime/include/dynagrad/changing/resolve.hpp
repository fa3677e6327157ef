// Stages are solved again after a change of facts, and only what the change reaches is computed.
//
// Every stage runs block by block, as `solving/blocks.hpp` describes, also those with a static order. But a block starts
// from *marked* items: those with an instance that was added, deleted, or has an antecedent with another value. Changed
// facts mark their heads first: old facts by nests over old facts, new ones over new ones. Then, stage by stage and level
// by level:
//
// - The items that marked ones reach on their level are found, among all that exist or may come to exist.
// - All of these are removed from the chart, and each gets its contributions from the items that stayed, by nests that
//   start from the head.
// - From items that have one, the block is explored as in any other run: the items that are derived now, and their
//   components. Items that are no longer derived mark their heads.
// - Component by component in topological order: one without a marked or new item keeps its values. Any other is popped,
//   or solved and popped. Contributions go to items of the block alone. An item whose value differs from before, in any
//   bit, marks its heads: those in the block at once, others when the whole block is in the chart.
//
// So a component of the new ground program is solved once if any of its antecedents changed, and a change without effect
// does not spread. The error bound of a component is kept with its items, as the chart's is that of all components.
//
// If anything fails, the caller runs the chart afresh, so errors are those of a fresh run. The order and the ranges of the
// plan hold for items from the facts before and after; `charts/changes.py` checks that.
#pragma once
#include <dynagrad/changing/rederive.hpp>
#include <dynagrad/solving/blocks.hpp>

namespace dynagrad {

// An item as it was before the change.
template <class Value>
struct Former {
  Handle item;
  Value value;
  double bound;
  bool there;
};

// What such a stage has beside its blocks.
template <class Stage>
struct Changing {
  Array<Former<typename Stage::Semiring::Value>> former;  // of the current block
  Array<Handle> stirred;                                  // items whose values changed
  explicit Changing(Account* a) : former(a), stirred(a) {}
};

// Flags of items that a change reaches.
enum Reached : uint8_t {
  reached_change = 1,  // what the item is made of changed, and it waits for its turn or has it
  reached_block = 2,   // the item belongs to the block at hand
};

// The place of an item whose value is known, so that nothing is to be added to it; no component has so many items.
constexpr uint32_t kept_place = 0xFFFFFFF0;

// An item is to be recomputed.
template <class P, class T>
DYNAGRAD_RULE void mark_again(P& p, T& table, const int32_t* a) {
  using Stage = typename T::Stage;
  if (!table.inside_by(T::order, a)) return;  // out of range before and after
  const int64_t cell = table.locate_by(T::order, a);
  uint8_t& flags = grown(table.marked, cell, (uint8_t)0);
  const bool known = flags != 0;
  flags |= reached_change;
  if (known) return;
  const auto& blocks = Stage::blocks(p);
  const typename Stage::Level at = level(p, table, a);
  bool before = p.stage > Stage::number;
  if constexpr (Stage::forms > 0)
    before = before || at < 0 || at >= blocks.levels || (p.stage == Stage::number && at < blocks.level);
  if (before) return p.fail(cyclic, T::number, cell);  // out of order
  Stage::agenda(p).push(handle(T::number, cell), at);
}

template <class P>
void change_again(P& p, int64_t number, const int32_t* rows, int64_t count) {
  const int64_t width = P::arity[number];
  p.halt = p.failed, p.budget = 0, p.stage = 0, p.begun = true;
  for (int64_t n = 0; n < count && !p.halt; n++) {
    const int32_t* const row = rows + n * width;
    p.reach((uint32_t)number, row);
    p.on_items(number, [&](auto& table) { mark_again(p, table, row); });
  }
}

// -- an item before and after -----------------------------------------------------------------------------------------

template <class T>
DYNAGRAD_ALWAYS double bound_at(T& table, int64_t cell) {
  if constexpr (T::bounded) return grown(table.error_bound, cell, 0.0);
  else return 0;
}
template <class T>
DYNAGRAD_ALWAYS void set_bound(T& table, int64_t cell, double bound) {
  if constexpr (T::bounded) grown(table.error_bound, cell, 0.0) = bound;
}
template <class Stage, class P>
uint8_t& flags_at(P& p, Handle h) {
  return Stage::on(p, h, [](auto& table, int64_t cell) -> uint8_t& { return grown(table.marked, cell, (uint8_t)0); });
}
template <class Stage, class P>
uint32_t& node_at(P& p, Handle h) {
  return Stage::on(p, h, [](auto& table, int64_t cell) -> uint32_t& { return grown(table.node, cell, 0u); });
}
template <class Stage, class P>
Table& items_at(P& p, Handle h) {
  return Stage::on(p, h, [](auto& table, int64_t) -> Table& { return table; });
}
template <class Stage, class P>
auto& former_at(P& p, Handle h) {
  const uint32_t place = Stage::on(p, h, [](auto& table, int64_t cell) { return grown(table.former, cell, 0u); });
  return Stage::changing(p).former[place];
}
// An item of the block is kept in mind as it is.
template <class Stage, class P>
DYNAGRAD_FIRED void note(P& p, Handle h) {
  auto& former = Stage::changing(p).former;
  Stage::on(p, h, [&](auto& table, int64_t cell) {
    former.push({h, table.value[cell], bound_at(table, cell), table.popped.test(cell)});
    grown(table.former, cell, 0u) = (uint32_t)former.size - 1;
    grown(table.marked, cell, (uint8_t)0) |= reached_block;
  });
}
// It is as if it had never been there.
template <class Stage, class P>
DYNAGRAD_FIRED void forget(P& p, Handle h) {
  Stage::on(p, h, [&]<class T>(T& table, int64_t cell) {
    table.popped.clear(cell);
    if (table.seen.test(cell)) table.seen.clear(cell), table.items--, p.report.items--;
    grown(table.solved, cell, 0u) = 0;
    table.value[cell] = T::zero();
    set_bound(table, cell, 0);
    if constexpr (T::excuses)
      if (cell < table.excused.size) table.excused[cell] = 0;
  });
}
// It has the value that it had.
template <class Stage, class P>
DYNAGRAD_FIRED void keep(P& p, Handle h) {
  const auto& f = former_at<Stage>(p, h);
  Stage::on(p, h, [&](auto& table, int64_t cell) {
    if (table.seen.set(cell)) table.items++, p.report.items++;
    table.value[cell] = f.value;
    grown(table.solved, cell, 0u) = kept_place;
    set_bound(table, cell, f.bound);
  });
}
// Whether it has the value that it had, to the last bit.
template <class Stage, class P>
DYNAGRAD_FIRED bool same_as_before(P& p, Handle h) {
  const auto& f = former_at<Stage>(p, h);
  return Stage::on(p, h, [&](auto& table, int64_t cell) {
    return f.there && !memcmp((const void*)&f.value, (const void*)&table.value[cell], sizeof f.value);
  });
}
// Marks the heads of all instances that an item is in.
template <class Stage, class P>
DYNAGRAD_FIRED void reach_from(P& p, Handle h) {
  Stage::on(p, h, [&]<class T>(T& table, int64_t cell) {
    const auto a = arguments_of(table, cell);
    p.reach(T::number, a);
  });
}

// -- a block ----------------------------------------------------------------------------------------------------------

// Explores a block to its end, with something to be done first for each item.
template <class Stage, class P, class First>
DYNAGRAD_ALWAYS void explore_all(P& p, First first) {
  Block& block = Stage::blocks(p).block;
  for (; block.explored < block.items.size && !p.halt; block.explored++) {
    if (p.spend(1)) break;
    const Handle h = block.items[block.explored];
    first(h);
    if constexpr (Stage::joins_itself) expose_item<Stage>(p, h);
    explore_item<Stage>(p, h);
  }
}

// Removes the next marked items of one level, and all that they reach there, from the chart, and orders those of them
// that are derived now. False where there are none, or where the run stops.
template <class Stage, class P>
DYNAGRAD_FIRED bool gather_again(P& p) {
  auto& blocks = Stage::blocks(p);
  Block& block = blocks.block;
  auto& former = Stage::changing(p).former;
  auto& stirred = Stage::changing(p).stirred;
  const auto gone = [&](const auto& f) { return f.there && !block.has(node_at<Stage>(p, f.item)); };
  for (;;) {
    for (Handle h : stirred) {
      if (p.halt || p.spend(1)) return false;
      reach_from<Stage>(p, h);  // now that the whole block is in the chart
    }
    if (p.halt) return false;
    stirred.clear();
    for (const auto& f : former) flags_at<Stage>(p, f.item) = 0;
    former.clear();
    if (!Stage::agenda(p).next_level(blocks.level)) return false;
    block.begin();
    Handle next = 0;
    while (Stage::agenda(p).pop_from(blocks.level, next)) block.reach(node_at<Stage>(p, next), next);
    explore_all<Stage>(p, [&](Handle h) { note<Stage>(p, h); });
    if (p.halt) return false;
    for (const auto& f : former) forget<Stage>(p, f.item);
    for (const auto& f : former) {
      if (p.halt || p.spend(1)) return false;
      Stage::on(p, f.item, [&](auto& table, int64_t cell) { rederive(p, table, arguments_of(table, cell)); });
    }
    if (p.halt) return false;
    block.begin();
    for (const auto& f : former)
      if (items_at<Stage>(p, f.item).seen.test(cell_of(f.item))) block.reach(node_at<Stage>(p, f.item), f.item);
    explore_all<Stage>(p, [](Handle) {});
    if constexpr (Stage::joins_itself)
      for (int64_t i = block.explored; i-- > 0;) hide_item<Stage>(p, block.items[i]);
    if (p.halt) return false;
    // items that are no longer derived are put back for a moment, to find the instances that they were in
    bool some = false;
    for (const auto& f : former) some = some || gone(f);
    if (some) {
      for (const auto& f : former)
        if (f.there) items_at<Stage>(p, f.item).popped.set(cell_of(f.item));
      for (const auto& f : former)
        if (!p.halt && gone(f)) reach_from<Stage>(p, f.item);
      for (const auto& f : former) items_at<Stage>(p, f.item).popped.clear(cell_of(f.item));
    }
    if (p.halt) return false;
    block.keeps_edges = true;
    block.arrange();
    if (block.components.size) return true;
  }
}

template <class Stage, class P>
DYNAGRAD_FIRED void step_again(P& p) {
  Block& block = Stage::blocks(p).block;
  const auto component = block.components[block.at];
  const int64_t begin = component.begin, end = block.end(block.at);
  const auto item = [&](int64_t i) { return block.items[block.order[i]]; };
  bool touched = false;
  for (int64_t i = begin; i < end && !touched; i++)
    touched = (flags_at<Stage>(p, item(i)) & reached_change) || !former_at<Stage>(p, item(i)).there;
  if (touched && component.cyclic) {
    solve<Stage>(p, begin, end - begin);
    if (p.halt) return;
  }
  const Settings kept = p.settings;
  p.settings = Settings{};  // all of it, or nothing
  for (int64_t i = begin; i < end && !p.halt; i++) {
    p.solving.leads_out = leads_out<Stage>(block, block.order[i]);
    if (!touched) keep<Stage>(p, item(i));
    Stage::on(p, item(i), [&](auto& table, int64_t cell) { pop(p, table, cell); });
  }
  for (int64_t i = begin; i < end && touched && !p.halt; i++) {
    const Handle h = item(i);
    if (same_as_before<Stage>(p, h)) continue;
    Stage::changing(p).stirred.push(h);
    block.for_heads(block.order[i], [&](Handle head) { flags_at<Stage>(p, head) |= reached_change; });
  }
  p.settings = kept;
  block.at++;
}

// At the end of a run: the error bound of the chart, that of its worst component, recomputed or not.
template <class P>
void worst_bound(P& p) {
  p.report.error_bound = 0, p.report.critical = 0;
  for (int64_t n = 0; n < P::tables_in_all; n++)
    p.on_items(n, [&]<class T>(T& table) {
      if constexpr (T::bounded)
        for (const double bound : table.error_bound) {
          if (fabs(bound) > p.report.error_bound) p.report.error_bound = fabs(bound);
          p.report.critical += bound < 0;
        }
    });
}

}  // namespace dynagrad
