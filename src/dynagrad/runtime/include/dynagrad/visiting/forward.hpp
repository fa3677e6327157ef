// Forward: each instance of a rule sends its value to its head.
#pragma once
#include <dynagrad/visiting/values.hpp>

namespace dynagrad {

// -- a product is multiplied while its factors are found ---------------------------------------------------------------

template <class Root, class Product>
struct Multiplied : Told<Multiplied<Root, Product>> {
  using Value = typename Root::Value;
  const Root& root;
  const Product product;

  template <class More>
  using Next = Multiplied<Root, More>;
  template <int I, class T>
  DYNAGRAD_ALWAYS auto driver(Nth<I>, T&, int64_t) const {
    return Next<decltype(product.times(*root.begun.update))>{{}, root, product.times(*root.begun.update)};
  }
  template <int I, class T>
  DYNAGRAD_ALWAYS auto item(Nth<I>, T& table, int64_t cell) const {
    return Next<decltype(product.times(table.value[cell]))>{{}, root, product.times(table.value[cell])};
  }
  template <int I, class T>
  DYNAGRAD_ALWAYS auto fact(Nth<I>, T& table, int64_t row) const {
    return Next<decltype(product.times(table.value[row]))>{{}, root, product.times(table.value[row])};
  }
  template <int I, class T>
  DYNAGRAD_ALWAYS auto same(Nth<I>, T& table, int64_t at, int64_t cell) const {
    const Value x = root.begun.of_same(table, at, cell);
    return Next<decltype(product.times(x))>{{}, root, product.times(x)};
  }
  template <int I>
  DYNAGRAD_ALWAYS auto outside(Nth<I>, const Value& x) const {
    return Next<decltype(product.times(x))>{{}, root, product.times(x)};
  }
  template <int I, class T>
  DYNAGRAD_ALWAYS const Multiplied& side(Nth<I>, T&, int64_t) const {
    return *this;
  }
  template <class Head, class... A>
  DYNAGRAD_ALWAYS void head(Head& table, A... a) const {
    root.updates.count++;
    add(root.p, table, product.settled(), a...);
  }
  template <class T, class Head>
  DYNAGRAD_ALWAYS void row(T& table, int64_t row, Head& head, int64_t to, int64_t shift, Arrive arrive) const {
    add_row(table, row, head, to, shift, product.w, &root.p, arrive);
  }
  template <bool later, bool, class T, class Head>
  DYNAGRAD_ALWAYS void stretch(T& table, int64_t at, int64_t n, Head& head, int64_t to, Arrive arrive) const {
    if constexpr (later) root.p.together.add(table.value, at, n, head, to, product.w, &root.p, arrive);
    else add_stretch(table.value, at, n, head, to, product.w, &root.p, arrive);
  }
  DYNAGRAD_ALWAYS void in_turn() const {
    if constexpr (requires { root.p.together; }) root.p.together.end(&root.p);  // sums over stretches
  }
};

// It begins with the product of the rule's constants, of which there are so many.
template <class Program, int constants>
struct ForwardProduct {
  using S = typename Program::Semiring;
  using Value = typename S::Value;
  static constexpr bool in_rows = true;
  Program& p;
  const Begun<Value> begun;
  const Constants<Value, constants> rule;
  mutable Counter updates{p.report.updates};

  DYNAGRAD_ALWAYS bool first_time() const { return begun.first; }
  DYNAGRAD_ALWAYS auto begin() const {
    const auto product = with_constants<constants>(Product<S, of_logs<S> ? 2 : 0>{}, rule.at);
    return Multiplied<ForwardProduct, remove_cvref<decltype(product)>>{{}, *this, product};
  }
};

// -- other values are computed at the head -----------------------------------------------------------------------------

template <class Root, class Outer, int I, class T, bool began>
struct Factor : Kept<Factor<Root, Outer, I, T, began>, Root, Outer, I, T, began> {};

template <class P, class Rule, bool again = false>
struct ForwardValue : Computes<ForwardValue<P, Rule, again>, P, Rule, Begun<typename P::Semiring::Value>, again> {
  using Base = Computes<ForwardValue, P, Rule, Begun<typename P::Semiring::Value>, again>;
  using typename Base::S;
  using typename Base::Value;
  using Base::p;
  mutable Counter updates{p.report.updates};

  template <bool began, class Outer, int I, class T>
  DYNAGRAD_ALWAYS auto keep(const Outer& outer, Nth<I>, T& table, int64_t at, const Value& x) const {
    return Factor<ForwardValue, Outer, I, T, began>{{{}, *this, outer, table, at, x}};
  }
  // What only has to be there is a link where a cycle may have to be told.
  template <class Link, int I, class T>
  DYNAGRAD_ALWAYS decltype(auto) pass(const Link& link, Nth<I> n, T& table, int64_t at) const {
    if constexpr (is_swept<T>()) return keep<false>(link, n, table, at, table.value[at]);
    else return (link);
  }
  template <class Link, class Head, class... A>
  DYNAGRAD_ALWAYS void end(const Link& link, Head& table, A... a) const {
    Value x;
    if (!this->template contribution<Head>(link, x)) {
      if (!p.halt) p.fail(function_failed, table.number, cell_for(table, a...));
      return;
    }
    if constexpr (Head::excuses) excuse_head(link, table, x, a...);
    if constexpr (is_swept<Head>() && !Head::sink) trace(link, table, a...);
    updates.count++;
    add(p, table, x, a...);
  }

 private:
  template <class T>
  static constexpr bool is_swept() {
    if constexpr (is_item<T>) return sweeps<T>;
    else return false;
  }
  // In rounds that do not settle: from which items of its stage a head comes, see `Moving`.
  template <class Link, class Head, class... A>
  DYNAGRAD_ALWAYS void trace(const Link& link, Head& table, A... a) const {
    auto& moving = Head::Stage::moving(p, table);
    if (__builtin_expect(moving.watch != moving.tracing, 1)) return;
    const Handle head = handle(table.number, cell_for(table, a...));
    link.each([&]<class One>(const One& one) DYNAGRAD_LAMBDA {
      if constexpr (stage_of<typename One::Table>() == Head::stage) moving.trace(head, handle(one.table.number, one.at));
    });
  }
  // A contribution that is infinite since an antecedent is, see `overflowed` in `running/item.hpp`.
  template <class Link, class Head, class... A>
  DYNAGRAD_ALWAYS void excuse_head(const Link& link, Head& table, const Value& x, A... a) const {
    if (__builtin_expect(isfinite(S::primal(x)), 1)) return;
    uint8_t& flags = grown(table.excused, cell_for(table, a...), (uint8_t)0);
    bool right = false, within = false, all_finite = true;
    link.each([&]<class One>(const One& one) DYNAGRAD_LAMBDA {
      using T = typename One::Table;
      if constexpr (One::weighs) {
        if (isfinite(S::primal(one.x))) return;
        all_finite = false;
        if constexpr (stage_of<T>() != Head::stage) {
          right = true;
        } else if constexpr (T::excuses) {
          const uint8_t own = flags_of(one.table.excused, one.at);
          within = true;
          right = right || (own & 1);
          if constexpr (infinite_none<T>) right = right || (S::primal(one.x) == T::none && !(own & 4));
        }
      }
    });
    bool none = false;
    if constexpr (infinite_none<Head>) none = S::primal(x) == Head::none;
    if (right) flags |= 1;
    else if (sweeps<Head> && within) flags |= none ? 6 : 2;
    else if (!Rule::poles && none && all_finite) flags |= 4;
  }
};

}  // namespace dynagrad
