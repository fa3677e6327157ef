// Reverse: the adjoint of what an instance sent to its head goes to its antecedents.
//
// A product over nested loops is a chain of products, one for each loop. Adjoints go back along the chain: they are
// summed inside a loop, and passed on to the factor, and to the product outside of it, where the loop ends. A value that
// is computed at the head has partial derivatives there, which are summed for each antecedent likewise.
#pragma once
#include <dynagrad/running/undo.hpp>
#include <dynagrad/visiting/values.hpp>

namespace dynagrad {

// What both kinds of values have in common: adjoints of heads, and where those of antecedents are. `inside` is the stage
// of a nest whose instances inside a solved component are visited apart from all others; -1 of other nests.
template <class P, int inside>
struct GoesBack {
  using Back = typename P::Back;
  using Adjoint = typename P::Adjoint;

  // The adjoints of what is sent to heads; where adjoints are posteriors, over the weight.
  template <class Head>
  static DYNAGRAD_ALWAYS auto& adjoints(Head& table) {
    if constexpr (posteriors<P>) return table.h;
    else if constexpr (Head::keeps_updates) return table.ga;
    else return table.g;
  }
  template <class T>
  static DYNAGRAD_ALWAYS Adjoint* target(P& p, T& table, int64_t at) {
    if constexpr (inside >= 0)
      if constexpr (stage_of<T>() == inside)  // that is solved for already
        if (p.inside && is_unknown(p, table, at)) return &p.discarded;
    return &table.g[at];
  }
  // That of an item which may be the driver: of its value before the update.
  template <class Root, class T>
  static DYNAGRAD_ALWAYS Adjoint* target_of_same(const Root& root, T& table, int64_t at, int64_t cell) {
    Adjoint* const own = target(root.p, table, at);
    return at == cell && own == &table.g[at] ? root.begun.gold : own;
  }
  template <class Head>
  static DYNAGRAD_ALWAYS bool is_apart(P& p, Head& table, int64_t to) {
    if constexpr (inside >= 0) return is_unknown(p, table, to) != p.inside;
    else return false;
  }
  // The adjoint of a contribution from that of the head; false where there is nothing to pass on.
  template <class Root, class Link, class Head>
  static DYNAGRAD_ALWAYS bool adjoint_of(const Root& root, const Link& link, Head& table, int64_t to, Adjoint& g, bool& fine) {
    using S = typename P::Semiring;
    P& p = root.p;
    typename S::Value x;
    if constexpr (Head::selects) {
      if (table.wait[to] != p.position) return false;
      if (!(fine = root.value_of(link, x)) || S::primal(x) != S::primal(table.aim[to])) return false;
      table.wait[to] = nowhere;  // this is the first instance that fits
    } else if constexpr (Head::multiplies || Head::keeps_total || Head::keeps_rest) {
      if (!(fine = root.value_of(link, x))) return false;
    }
    g = adjoints(table)[to];
    if constexpr (Head::selects && P::plain && infinite_none<Head>)
      if (S::primal(x) == Head::none) g = {};  // nothing stays nothing, whatever it is the best of
    if constexpr (Head::rests) {
      if (root.begun.update && p.report.stage > table.stage && table.popped.test(to)) {
        typename S::Value sent;
        if (!(fine = root.template contribution<Head>(link, sent))) return false;
        if (S::same(Head::plus(table.value[to], sent), table.value[to]))
          need(Head::Stage::needed(p, table), table.is_needed[to], handle(table.number, to)), g = table.resting[to];
      }
    }
    if (Back::nothing(g)) return false;
    if constexpr (Head::multiplies) g = Back::scale(g, table.factors.others(to, x));
    if constexpr (Head::keeps_total) g = S::share(g, x, table.total[to]);
    else if constexpr (Head::keeps_rest) g = S::share(g, x, table.value[to], rest_of(table.rest, to));
    return true;
  }
};

// -- a product ---------------------------------------------------------------------------------------------------------

// The product up to a factor, whose adjoint is summed here while what is inside is visited. `takes` says whether the
// factor has an adjoint to add to.
template <class Root, class Outer, bool takes, class Product>
struct Chained : Told<Chained<Root, Outer, takes, Product>> {
  using Back = typename Root::Back;
  using Adjoint = typename Root::Adjoint;
  using Value = typename Root::Value;
  static constexpr bool has_bar = takes || Outer::has_bar;
  const Root& root;
  const Outer& outer;
  Adjoint* const target;
  const Value x;
  const Product product;
  mutable Adjoint bar{};

  DYNAGRAD_ALWAYS ~Chained() {
    if constexpr (posteriors<typename Root::P>) {  // each factor of an instance gets the posterior of the instance
      if constexpr (takes) *target += bar;
      if constexpr (Outer::has_bar) outer.bar += bar;
    } else if constexpr (has_bar) {
      if (Back::nothing(bar)) return;
      if constexpr (!decltype(outer.product)::some) {
        *target = Back::gather(*target, bar);
      } else {
        if constexpr (takes) *target = Back::gather(*target, Back::scale(bar, outer.product.w));
        if constexpr (Outer::has_bar) outer.bar = Back::gather(outer.bar, Back::scale(bar, x));
      }
    }
  }

  template <bool has_target>
  DYNAGRAD_ALWAYS auto times(const Value& f, Adjoint* t) const {
    return Chained<Root, Chained, has_target, decltype(product.times(f))>{{}, root, *this, t, f, product.times(f)};
  }
  template <int I, class T>
  DYNAGRAD_ALWAYS auto driver(Nth<I>, T&, int64_t) const {
    return times<true>(*root.begun.update, root.begun.gupdate);
  }
  template <int I, class T>
  DYNAGRAD_ALWAYS auto item(Nth<I>, T& table, int64_t cell) const {
    return times<true>(table.value[cell], Root::Goes::target(root.p, table, cell));
  }
  template <int I, class T>
  DYNAGRAD_ALWAYS auto fact(Nth<I>, T& table, int64_t row) const {
    return times<true>(table.value[row], &table.g[row]);
  }
  template <int I, class T>
  DYNAGRAD_ALWAYS auto same(Nth<I>, T& table, int64_t at, int64_t cell) const {
    return times<true>(root.begun.of_same(table, at, cell), Root::Goes::target_of_same(root, table, at, cell));
  }
  template <int I>
  DYNAGRAD_ALWAYS auto outside(Nth<I>, const Value& f) const {
    return times<false>(f, nullptr);
  }
  template <int I, class T>
  DYNAGRAD_ALWAYS const Chained& side(Nth<I>, T&, int64_t) const {
    return *this;
  }
  template <class Head, class... A>
  DYNAGRAD_ALWAYS void head(Head& table, A... a) const {
    const int64_t to = cell_for(table, a...);
    if (Root::Goes::is_apart(root.p, table, to)) return;
    if constexpr (has_bar && posteriors<typename Root::P>) {
      const Value h = table.h[to];
      if (h.m != 0) bar += Posterior::of(h, product.w);
    } else if constexpr (has_bar) {
      Adjoint g;
      bool fine = true;
      if (Root::Goes::adjoint_of(root, *this, table, to, g, fine)) bar = Back::gather(bar, g);
    }
  }
  template <class T, class Head>
  DYNAGRAD_ALWAYS void row(T& table, int64_t row, Head& head, int64_t to, int64_t shift, Arrive) const {
    bar += back_row(table, row, table.g.data, head, to, Root::Goes::adjoints(head).data, shift, product.w);
  }
  template <bool later, bool alone, class T, class Head>
  DYNAGRAD_ALWAYS void stretch(T& table, int64_t at, int64_t n, Head& head, int64_t to, Arrive) const {
    const auto adjoints = Root::Goes::adjoints(head).data + to;
    if constexpr (posteriors<typename Root::P> && later && alone)
      root.p.back_together.add(table.value, at, n, table.g.data, adjoints, product.w, *root.begun.gupdate);
    else bar += back_stretch(table.value, at, n, table.g.data, adjoints, product.w);
  }
};

struct Unchained {
  static constexpr bool has_bar = false;
};
inline constexpr Unchained unchained{};

// It begins with the product of the rule's constants.
template <class Program, int constants, int inside = -1>
struct ReverseProduct {
  using Goes = GoesBack<Program, inside>;
  using P = Program;
  using Back = typename P::Back;
  using Adjoint = typename P::Adjoint;
  using S = typename P::Semiring;
  using Value = typename S::Value;
  static constexpr bool in_rows = posteriors<P> || !of_logs<S>;
  P& p;
  const BegunBack<Value, typename P::Adjoint> begun;
  const Constants<Value, constants> rule;

  DYNAGRAD_ALWAYS bool first_time() const { return begun.first; }
  DYNAGRAD_ALWAYS auto begin() const {
    const auto product = with_constants<constants>(Product<S, posteriors<P> ? 1 : 0>{}, rule.at);
    return Chained<ReverseProduct, Unchained, false, remove_cvref<decltype(product)>>{{}, *this, unchained, nullptr, {}, product};
  }
  template <class Link>
  DYNAGRAD_ALWAYS bool value_of(const Link& link, Value& x) const {
    x = link.product.settled();
    return true;
  }
  template <class Head, class Link>
  DYNAGRAD_ALWAYS bool contribution(const Link& link, Value& x) const {
    return value_of(link, x);
  }
};

// -- other values ------------------------------------------------------------------------------------------------------

// An antecedent whose adjoint is summed here while what is inside is visited; that of the driver's value before, too.
template <class Root, class Outer, int I, class T, bool began>
struct Summed : Kept<Summed<Root, Outer, I, T, began>, Root, Outer, I, T, began> {
  using Back = typename Root::Back;
  using Adjoint = typename Root::Adjoint;
  static constexpr bool has_bar = !__is_same(T, const Nowhere);
  Adjoint* const target;
  mutable Adjoint bar{}, then{};

  DYNAGRAD_ALWAYS ~Summed() {
    if constexpr (has_bar)
      if (!Back::nothing(bar)) *target = Back::gather(*target, bar);
    if constexpr (began && Root::P::plain)
      if (!Back::nothing(then)) *this->root.begun.gold = Back::gather(*this->root.begun.gold, then);
  }
};

template <class Program, class Rule, bool again = false, int inside = -1>
struct ReverseValue
    : Computes<ReverseValue<Program, Rule, again, inside>, Program, Rule, BegunBack<typename Program::Semiring::Value, typename Program::Adjoint>, again> {
  using Goes = GoesBack<Program, inside>;
  using Base = Computes<ReverseValue, Program, Rule, BegunBack<typename Program::Semiring::Value, typename Program::Adjoint>, again>;
  using typename Base::P;
  using typename Base::S;
  using typename Base::Value;
  using Base::p;
  using Back = typename P::Back;
  using Adjoint = typename P::Adjoint;

  template <bool began, class Outer, int I, class T>
  DYNAGRAD_ALWAYS auto keep(const Outer& outer, Nth<I>, T& table, int64_t at, const Value& x) const {
    Adjoint* target = nullptr;
    if constexpr (began) target = this->begun.gupdate;
    else if constexpr (!__is_same(T, const Nowhere)) target = Goes::target(p, table, at);
    return Summed<ReverseValue, Outer, I, T, began>{{{}, *this, outer, table, at, x}, target};
  }
  template <class Outer, int I, class T>
  DYNAGRAD_ALWAYS auto keep_same(const Outer& outer, Nth<I>, T& table, int64_t at, int64_t cell) const {
    Adjoint* const target = Goes::target_of_same(*this, table, at, cell);
    return Summed<ReverseValue, Outer, I, T, false>{{{}, *this, outer, table, at, this->begun.of_same(table, at, cell)}, target};
  }
  template <class Link, class Head, class... A>
  DYNAGRAD_ALWAYS void end(const Link& link, Head& table, A... a) const {
    const int64_t to = cell_for(table, a...);
    if (Goes::is_apart(p, table, to)) return;
    Adjoint g;
    bool fine = true;
    if (Goes::adjoint_of(*this, link, table, to, g, fine)) {
      if constexpr (P::plain) fine = spread<Head>(link, g);
      else link.each([&]<class One>(const One& one) DYNAGRAD_LAMBDA {
        if constexpr (One::has_bar) one.bar = P::Back::gather(one.bar, part_of<One::place>(link, g));
      });
    }
    if (!fine && !p.halt) p.lose(function_failed, table.number, to);
  }

 private:
  // The adjoint of a factor of a product: that of the product, times all others.
  template <int I, class Link>
  DYNAGRAD_ALWAYS Adjoint part_of(const Link& link, const Adjoint& g) const {
    if constexpr (P::times_adds) return g;  // every partial derivative of a sum is one
    else return P::Back::scale(g, product_of<S>(all_but<I>(Places<>{}, typename Rule::Factors{}), [&](auto n) DYNAGRAD_LAMBDA { return this->factor(link, n); }));
  }
  // The adjoint of a value that functions make, times its partial derivatives.
  template <class Head, class Link>
  DYNAGRAD_ALWAYS bool spread(const Link& link, const Adjoint& g) const {
    if (!add_partials<false>(link, g)) return false;
    if constexpr (Base::template subtracts<Link, Head>)
      if (!this->begun.first) return add_partials<true>(link, S::minus({}, g));
    return true;
  }
  template <bool before, class Link>
  DYNAGRAD_ALWAYS bool add_partials(const Link& link, const Adjoint& g) const {
    return Base::template with_values<before>(link, [&](const auto&... v) DYNAGRAD_LAMBDA {
      return [&]<int... J>(Places<J...>) DYNAGRAD_LAMBDA {
        return Rule::partials(p, g, v..., bar_of<before>(link.link(nth<J>))...);
      }(typename Rule::Partials{});
    });
  }
  template <bool before, class One>
  static DYNAGRAD_ALWAYS Adjoint& bar_of(const One& one) {
    if constexpr (before && One::drives) return one.then;
    else return one.bar;
  }
};

}  // namespace dynagrad
