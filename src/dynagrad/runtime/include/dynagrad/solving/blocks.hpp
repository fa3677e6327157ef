// Stages that find their ground program as they run.
//
// Such a stage takes the items of one level together, a *block*. First it explores: from each item it visits the nests
// whose heads may be on the same level, without values, and records the edges between items (`solving/ground.hpp`). Then
// it pops the items by strongly connected components in topological order, so that each item has all its contributions
// when it is popped, once, as in a stage with a static order. Cyclic components are solved before that; contributions
// from within a solved component are ignored, as they are part of the solution.
//
// Where a stage has a stable argument (`plan/analyses/stable.py`), a node of the graph stands for a *line*: all items that
// differ in this argument alone. The one with the least value of it is explored and grounded for all.
//
// A stage is a type with traits (`codegen/rules/traits.py`); `Stage::on(program, item, f)` calls f with the table of an
// item and its cell. A program has `explore` and `ground`, which visit the nests that an item drives
// inside its level, for the tables whose items drive any.
#pragma once
#include <dynagrad/running/item.hpp>
#include <dynagrad/running/tape.hpp>
#include <dynagrad/solving/ground.hpp>
#include <dynagrad/solving/columns.hpp>
#include <dynagrad/solving/closed.hpp>

namespace dynagrad {

constexpr uint32_t unsolved = 0xFFFFFFFF;  // the number of an item that is not an unknown

// The component at hand.
struct Solving {
  int64_t items = 0;             // solved in all components so far
  int64_t first = 0, count = 0;  // of this one
  bool leads_out = true;         // whether joins in the level lead from the current item out of its component
};

// Of stages whose cycles cannot be solved, and of those without a stable argument.
struct NoSystem {
  explicit NoSystem(ChartBase*) {}
};
struct NoColumns {
  explicit NoColumns(NoSystem&) {}
  template <class System>
  explicit NoColumns(System&) {}
};

// What such a stage has.
template <class Stage>
struct BlocksOf {
  Block block;
  int64_t exposed = 0;                // of the items that are explored, those that joins find
  typename Stage::Level level = 0;    // of the block
  typename Stage::Level levels = 1;   // how many there are
  typename Stage::Equations system;
  typename Stage::Lines columns;
  int64_t column = 0;                 // up to which the current line was popped
  bool reached = false;               // whether the item that the run stops at was among these
  Array<SolvedComponent> solved;      // for the way back

  explicit BlocksOf(ChartBase* chart) : block(&chart->account), system(chart), columns(system), solved(&chart->account) {}
};
template <class Stage, class P>
DYNAGRAD_ALWAYS auto& solver_of(P& p) {
  if constexpr (Stage::in_lines) return Stage::blocks(p).columns;
  else return Stage::blocks(p).system;
}

// -- items ------------------------------------------------------------------------------------------------------------

// The number of an item among the unknowns of the component at hand.
template <class P, class T>
DYNAGRAD_ALWAYS uint32_t member(P& p, T& table, int64_t cell) {
  const uint32_t at = grown(table.solved, line_of(table, cell), 0u) - (uint32_t)p.solving.first;
  return at < (uint32_t)p.solving.count ? at : unsolved;
}
template <class P, class T>
DYNAGRAD_ALWAYS bool is_unknown(P& p, T& table, int64_t cell) {
  return member(p, table, cell) != unsolved;
}
// The node of an item in the block; 0 if it is on another level.
template <class P, class T, class... A>
DYNAGRAD_RULE uint32_t node_of(P& p, T& table, A... arguments) {
  int32_t a[] = {arguments..., 0};
  auto& blocks = T::Stage::blocks(p);
  if constexpr (T::stable >= 0) a[T::order[T::stable]] = (int32_t)table.range[T::stable].low;
  if constexpr (T::Stage::forms > 0)
    if (p.level_of(table, a) != blocks.level) return 0;
  const int64_t cell = table.locate_by(T::order, a);
  return blocks.block.reach(grown(table.node, cell, 0u), handle(T::number, cell));
}
// The item of a line that is so far from its first.
template <class Stage, class P>
DYNAGRAD_ALWAYS Handle item_of(P& p, Handle line, int64_t column) {
  return Stage::on(p, line, [&]<class T>(T& table, int64_t cell) {
    if constexpr (T::stable >= 0) return handle(T::number, cell + column * table.stride[T::stable]);
    else return line;
  });
}
template <class Stage, class P>
void expose_item(P& p, Handle h) {
  Stage::on(p, h, [&](auto& table, int64_t cell) { expose(p, table, cell); });
}
template <class Stage, class P>
void hide_item(P& p, Handle h) {
  Stage::on(p, h, [&](auto& table, int64_t cell) { hide(p, table, cell); });
}
template <class Stage, class P>
DYNAGRAD_FIRED void explore_item(P& p, Handle h) {
  Stage::on(p, h, [&](auto& table, int64_t cell) {
    if constexpr (requires { p.explore(table, cell); }) p.explore(table, cell);
  });
}

// -- a block ----------------------------------------------------------------------------------------------------------

// The next level: its items, and an order for them. False where there is none, or where the run stops.
template <class Stage, class P>
DYNAGRAD_FIRED bool gather(P& p) {
  auto& blocks = Stage::blocks(p);
  Block& block = blocks.block;
  if (block.done()) {
    auto& agenda = Stage::agenda(p);
    if (!agenda.next_level(blocks.level)) return false;
    block.begin();
    Handle next = 0;
    while (agenda.pop_from(blocks.level, next))
      Stage::on(p, next, [&]<class T>(T& table, int64_t cell) {
        const int64_t at = line_of(table, cell);
        block.reach(grown(table.node, at, 0u), handle(T::number, at));
      });
  }
  if constexpr (Stage::joins_itself)
    while (blocks.exposed < block.explored) expose_item<Stage>(p, block.items[blocks.exposed++]);
  while (block.explored < block.items.size && !p.halt) {
    if (p.spend(1)) break;
    const int64_t edges = block.edges();
    const Handle h = block.items[block.explored];
    if constexpr (Stage::joins_itself) expose_item<Stage>(p, h), blocks.exposed++;
    explore_item<Stage>(p, h);
    if (p.halt) block.back_to(edges);
    else block.explored++;
  }
  if constexpr (Stage::joins_itself)
    while (blocks.exposed > 0) hide_item<Stage>(p, block.items[--blocks.exposed]);
  if (p.halt) return false;
  block.arrange();
  return true;
}

// Whether joins inside the level lead from an item out of its component, as far as exploration can tell. It misses an
// instance that leads to another level if the item was explored before the item that it is joined with, and that one
// drives no join inside the level.
template <class Stage>
DYNAGRAD_ALWAYS bool leads_out(const Block& block, uint32_t node) {
  return (Stage::forms > 0 && Stage::joins_itself) || block.leads_out(node);
}

// The number of items of the block that are still to be popped.
template <class Stage, class P>
DYNAGRAD_FIRED int64_t waiting(P& p) {
  const Block& block = Stage::blocks(p).block;
  if (block.done()) return 0;
  if (!block.arranged) return block.items.size;
  const int64_t first = block.components[block.at].begin;
  if constexpr (!Stage::in_lines) {
    return block.order.size - first;
  } else {
    int64_t count = 0;
    for (int64_t i = first; i < block.order.size; i++)
      for (int64_t c = 0; c < Stage::width(p); c++)
        Stage::on(p, item_of<Stage>(p, block.items[block.order[i]], c), [&](auto& table, int64_t cell) {
          count += table.seen.test(cell) && !table.popped.test(cell);
        });
    return count;
  }
}

// -- a component ------------------------------------------------------------------------------------------------------

// Grounds all instances of a component. Items are exposed one by one, so that each instance is found once.
template <class Stage, class P, class At>
DYNAGRAD_FIRED void ground_all(P& p, int64_t count, At at) {
  int64_t seen = 0;
  for (int64_t i = 0; i < count && !p.halt; i++) {
    if (p.spend(1)) break;
    if constexpr (Stage::joins_itself) expose_item<Stage>(p, at(i)), seen++;
    Stage::on(p, at(i), [&](auto& table, int64_t cell) {
      if constexpr (requires { p.ground(table, cell); }) p.ground(table, cell);
    });
  }
  if constexpr (Stage::joins_itself)
    for (int64_t i = seen; i-- > 0;) hide_item<Stage>(p, at(i));
}

// The values of the stable argument for which a component has items; how many there are.
template <class Stage, class P, class At>
int64_t open_columns(P& p, int64_t count, At node) {
  auto& columns = Stage::blocks(p).columns;
  columns.open();
  for (int64_t c = 0; c < Stage::width(p); c++) {
    bool entered = false;
    for (int64_t i = 0; i < count && !entered; i++)
      Stage::on(p, item_of<Stage>(p, node(i), c), [&](auto& table, int64_t cell) { entered = table.seen.test(cell); });
    if (entered) columns.column.push(c);
  }
  const int64_t m = columns.column.size;
  columns.given.resize(count * m, Stage::Semiring::zero());
  return m;
}

// How a system may end without a solution, and the status of the run then; that of one that diverges has a cycle.
constexpr int64_t status_of(Solved how) {
  switch (how) {
    case Solved::unsolved: return cyclic;
    case Solved::overflows: return bad_value;
    case Solved::no_tangent: return unsettled;
    default: return diverges;
  }
}

// Solves a component, or fails, or, where the run is stopped, leaves it as it was.
template <class Stage, class P>
DYNAGRAD_FIRED void solve(P& p, int64_t begin, int64_t count) {
  auto& blocks = Stage::blocks(p);
  const Block& block = blocks.block;
  const auto node = [&](int64_t i) { return block.items[block.order[begin + i]]; };
  if constexpr (!Stage::unknowns) {
    for (int64_t i = 0; i < count && i < 64; i++) p.cycle.push(node(i));
    p.fail(cyclic, table_of(p.cycle[0]), cell_of(p.cycle[0]));
  } else {
    using S = typename Stage::Semiring;
    auto& system = blocks.system;
    auto& solver = solver_of<Stage>(p);
    p.solving.first = p.solving.items + 1, p.solving.count = count;
    system.open(count);
    if constexpr (Stage::linear) system.must_be_linear = true;
    if constexpr (Stage::newton) system.always_newton = true;
    int64_t m = 1;
    if constexpr (Stage::in_lines) m = open_columns<Stage>(p, count, node);
    const auto item = [&](int64_t i, int64_t j) {
      if constexpr (Stage::in_lines) return item_of<Stage>(p, node(i), solver.column[j]);
      else return node(i);
    };
    const auto each = [&](auto f) {
      for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < m; j++)
          Stage::on(p, item(i, j), [&](auto& table, int64_t cell) { f(table, cell, i * m + j); });
    };
    for (int64_t i = 0; i < count; i++)
      Stage::on(p, node(i), [&](auto& table, int64_t cell) {
        grown(table.solved, cell, 0u) = (uint32_t)(p.solving.first + i);
      });
    each([&]<class T>(T& table, int64_t cell, int64_t at) {
      if constexpr (T::clause) solver.given[at] = S::one();  // an item that is derived is worth one
      else if (table.seen.test(cell)) solver.given[at] = table.value[cell];
    });
    ground_all<Stage>(p, count, node);
    const Solved how = p.halt ? Solved::halted : solver.solve();
    const auto failing = [&] {
      if constexpr (Stage::in_lines) return item_of<Stage>(p, node(0), solver.column[solver.failing]);
      else return node(0);
    };
    if (how != Solved::fine && how != Solved::near_critical) {
      for (int64_t i = 0; i < count; i++)
        Stage::on(p, node(i), [&](auto& table, int64_t cell) { table.solved[cell] = 0; });
      p.solving.count = 0;
      if (how == Solved::halted) return;
      Handle h = failing();
      if (status_of(how) == diverges) {
        for (int64_t k = 0; k < system.cycle.size; k++) {
          if constexpr (Stage::in_lines) p.cycle.push(item_of<Stage>(p, node(system.cycle[k]), solver.column[solver.failing]));
          else p.cycle.push(node(system.cycle[k]));
        }
        p.report.radius = system.radius;
        if (p.cycle.size) h = p.cycle[0];
      }
      return p.fail(status_of(how), table_of(h), cell_of(h));
    }
    if constexpr (P::directions)
      if (how == Solved::near_critical && solver.has_tangent())
        return p.fail(near_critical, table_of(failing()), cell_of(failing()));
    p.report.critical += how == Solved::near_critical;
    if (solver.bound > p.report.error_bound) p.report.error_bound = solver.bound;
    const double bound = how == Solved::near_critical ? -solver.bound : solver.bound;
    each([&]<class T>(T& table, int64_t cell, int64_t at) {
      table.value[cell] = solver.value[at];
      if constexpr (T::bounded) grown(table.error_bound, cell, 0.0) = bound;
      if (!table.seen.test(cell)) p.enter(table, cell);
    });
    if constexpr (P::keeps_tape)
      if (p.recording) blocks.solved.push({p.tape.pops.size, count * m, m, how == Solved::near_critical});
    if constexpr (Stage::in_lines) solver.close();
    p.solving.items += count, p.solving.count = 0;
  }
}

// Pops the next component of the block.
template <class Stage, class P>
DYNAGRAD_FIRED void step(P& p) {
  auto& blocks = Stage::blocks(p);
  Block& block = blocks.block;
  const auto component = block.components[block.at];
  const int64_t end = block.end(block.at);
  if (component.cyclic) {
    solve<Stage>(p, component.begin, end - component.begin);
    if (p.halt) return;
  }
  const int64_t pops = p.report.pops;
  const Settings kept = p.settings;
  if (component.cyclic) p.settings = Settings{};  // all of it, or nothing
  bool cut = false;  // a stop between two items of a line is no stop inside a pop
  const auto take = [&](Handle h) {
    Stage::on(p, h, [&](auto& table, int64_t cell) {
      if constexpr (Stage::in_lines)
        if (!table.seen.test(cell)) return;
      pop(p, table, cell);
      blocks.reached = blocks.reached || (kept.until_table == (int64_t)table_of(h) && kept.until_cell == cell);
      cut = cut || p.halt;
    });
  };
  for (int64_t i = component.begin; i < end && !p.halt; i++) {
    const uint32_t node = block.order[i];
    p.solving.leads_out = leads_out<Stage>(block, node);
    if constexpr (Stage::in_lines) {
      if (component.cyclic) blocks.column = 0;
      while (blocks.column < Stage::width(p) && !p.halt) {
        if (!component.cyclic && p.spend(1)) break;
        take(item_of<Stage>(p, block.items[node], blocks.column++));
      }
    } else {
      take(block.items[node]);
    }
  }
  p.settings = kept;
  if constexpr (Stage::in_lines) {
    if (cut) p.report.partial = 1;
    if (p.halt && blocks.column < Stage::width(p)) return;  // the rest of the line is still to come
    blocks.column = 0;
  } else {
    if (p.halt && p.report.pops != pops) p.report.partial = 1;
  }
  block.at++;
  if (blocks.reached && !p.halt) p.stop(at_until);
  blocks.reached = false;
}

}  // namespace dynagrad
