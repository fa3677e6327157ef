// Ground: each instance whose head is in the component at hand is an equation of it, or a part of one.
#pragma once
#include <dynagrad/solving/blocks.hpp>
#include <dynagrad/visiting/values.hpp>

namespace dynagrad {

// An antecedent, with its number among the unknowns if it is an item of the stage. A product is that of what is known.
template <class Root, class Outer, int I, class T, bool began, class Product>
struct Known : Kept<Known<Root, Outer, I, T, began, Product>, Root, Outer, I, T, began> {
  static constexpr bool may_be_unknown = stage_of<T>() == Root::stage;
  static constexpr int unknowns = Outer::unknowns + may_be_unknown;
  static constexpr bool foreign = I >= 0 && __is_same(T, const Nowhere);
  static constexpr bool has_log = Outer::has_log && !foreign && (may_be_unknown || !began);
  const Product product;
  const uint32_t number;
};

template <class P, class Rule>
struct Ground : Computes<Ground<P, Rule>, P, Rule, Begun<typename P::Semiring::Value>, false> {
  using Base = Computes<Ground, P, Rule, Begun<typename P::Semiring::Value>, false>;
  using typename Base::Factors;
  using typename Base::S;
  using typename Base::Value;
  using Base::p;
  static constexpr int stage = Rule::stage;

  DYNAGRAD_ALWAYS auto begin() const {
    const auto product = with_constants<Rule::count>(Product<S, of_logs<S> ? 2 : 0>{}, this->rule.at);
    return link<false>(start, nth<before_all>, no_table, -1, S::one(), product, unsolved);
  }
  template <class T>
  DYNAGRAD_ALWAYS Value value_of_driver(T& table, int64_t cell) const {
    return table.value[cell];
  }
  template <class Outer, int I, class T>
  DYNAGRAD_ALWAYS auto keep_same(const Outer& outer, Nth<I> n, T& table, int64_t at, int64_t) const {
    return keep<false>(outer, n, table, at, table.value[at]);
  }
  template <bool began, class Outer, int I, class T>
  DYNAGRAD_ALWAYS auto keep(const Outer& outer, Nth<I> n, T& table, int64_t at, const Value& x) const {
    uint32_t number = unsolved;
    if constexpr (stage_of<T>() == stage) number = member(p, table, at);
    if constexpr (computed<P> != Computed::as_found) return link<began>(outer, n, table, at, x, outer.product, number);
    else return link<began>(outer, n, table, at, x, outer.product.times(number == unsolved ? x : S::one()), number);
  }
  template <class Link, class Head, class... A>
  DYNAGRAD_ALWAYS void end(const Link& link, Head& table, A... a) const {
    const int64_t cell = cell_for(table, a...);
    const uint32_t head = member(p, table, cell);
    if (head == unsolved) return;
    auto& system = Head::Stage::blocks(p).system;
    if constexpr (P::of_user) {
      add_sides(system, head, link);
    } else if constexpr (!P::plain) {
      uint32_t of[Head::Stage::unknowns];
      int n = 0;
      link.each([&]<class One>(const One& one) DYNAGRAD_LAMBDA {
        if constexpr (One::may_be_unknown) of[n++] = one.number;
      });
      while (n < Head::Stage::unknowns) of[n++] = unsolved;
      if constexpr (P::keeps_logs && Link::unknowns == 1 && Link::has_log) {
        if (of[0] == head) return system.add_loop(head, link.product.settled(), of, log_of(link));
      }
      system.add(head, link.product.settled(), of);
    } else {
      const auto term = [&]<int... I>(Value weight, Places<I...>) DYNAGRAD_LAMBDA {
        const auto known = [&](const auto& one) DYNAGRAD_LAMBDA -> Value { return one.number == unsolved ? one.x : S::one(); };
        ((weight = S::times(weight, known(link.link(nth<I>)))), ...);
        uint32_t of[Head::Stage::unknowns + 1] = {link.link(nth<I>).number...};
        for (int n = sizeof...(I); n < Head::Stage::unknowns; n++) of[n] = unsolved;
        system.add(head, weight, of);
      };
      const bool fine = Base::template with_values<false>(link, [&](const auto&... v) DYNAGRAD_LAMBDA { return Rule::terms(p, term, v...); });
      if (!fine && !p.halt) p.fail(function_failed, table.number, cell);
    }
  }

 private:
  template <bool began, class Outer, int I, class T, class Product>
  DYNAGRAD_ALWAYS auto link(const Outer& outer, Nth<I>, T& table, int64_t at, const Value& x, const Product& w, uint32_t n) const {
    return Known<Ground, Outer, I, T, began, Product>{{{}, *this, outer, table, at, x}, w, n};
  }
  // A user's times need not commute: the products before and after the unknown.
  template <class System, class Link>
  DYNAGRAD_ALWAYS void add_sides(System& system, uint32_t head, const Link& link) const {
    const auto factor = [&](auto n) DYNAGRAD_LAMBDA { return this->factor(link, n); };
    if constexpr (Link::unknowns == 0) {
      system.add(head, product_of<S>(Factors{}, factor), S::one(), unsolved);
    } else {
      const auto left = product_of<S>(beside<true>(link, Places<>{}, Factors{}), factor);
      const auto right = product_of<S>(beside<false>(link, Places<>{}, Factors{}), factor);
      uint32_t of = unsolved;
      Value x;
      link.each([&]<class One>(const One& one) DYNAGRAD_LAMBDA {
        if constexpr (One::may_be_unknown) of = one.number, x = one.x;
      });
      if (of == unsolved) system.add(head, S::times(S::times(left, x), right), S::one(), unsolved);
      else system.add(head, left, right, of);
    }
  }
  // The factors before the unknown, or behind it.
  template <bool before, class Link, int... Left, int I, int... Right>
  static constexpr auto beside(const Link& link, Places<Left...>, Places<I, Right...>) {
    if constexpr (is_unknown_factor<I, Link>()) {
      if constexpr (before) return Places<Left...>{};
      else return Places<Right...>{};
    } else {
      return beside<before>(link, Places<Left..., I>{}, Places<Right...>{});
    }
  }
  template <int I, class Link>
  static constexpr bool is_unknown_factor() {
    if constexpr (I < 0) return false;
    else return remove_cvref<decltype(((const Link*)nullptr)->link(nth<I>))>::may_be_unknown;
  }
  // The log of the weight of an instance whose only unknown is its own head.
  template <class Link>
  DYNAGRAD_ALWAYS double log_of(const Link& link) const {
    double log = 0;
    [&]<int... I>(Places<I...>) DYNAGRAD_LAMBDA {
      ([&]() DYNAGRAD_LAMBDA { if constexpr (I < 0) log += p.weight_log[this->rule.at + ~I - p.weight.data]; }(), ...);
      ([&]() DYNAGRAD_LAMBDA { if constexpr (I >= 0) log += log_at(link.link(nth<I>)); }(), ...);
    }(Factors{});
    return log;
  }
  template <class One>
  DYNAGRAD_ALWAYS double log_at(const One& one) const {
    if constexpr (One::may_be_unknown) return 0;
    else if constexpr (is_item<typename One::Table>) return P::semiring_log(one.x);
    else return one.table.logs[one.at];
  }
};

}  // namespace dynagrad
