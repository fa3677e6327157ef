// Values of rules, while a nest finds antecedents: what visitors share that compute with them.
//
// The right side of a rule is a struct (`codegen/rules/right_sides.py`), and a visitor has an object of it, or at least
// of its base, the rule's constants. It names
//
//   Factors         the antecedents that have a part in the value, by their places in the rule; ~k is the k-th constant.
//                   In a semiring the value is their product, in this order.
//
// and without a semiring has functions of the program and of the values of these antecedents. They say whether all went
// well, as a function of the user may fail:
//
//   value           computes the value,
//   partials        adds to the adjoints of the antecedents `Partials` what they get from that of the value,
//   terms           tells the coefficients of the value as a polynomial, with the places of its unknowns.
//
// A visitor multiplies the values of a product while they are found, and keeps no more than the product so far. Other
// values are kept until all are there, in a chain, one antecedent in the other.
#pragma once
#include <dynagrad/running/item.hpp>
#include <dynagrad/visiting/found.hpp>

namespace dynagrad {

template <int... I>
struct Places {};

// The constants of a rule, of which a product needs no more than how many there are.
template <class V, int n>
struct Constants {
  static constexpr int count = n;
  const V* at = nullptr;
};

template <int I, int... J>
constexpr bool among(Places<J...>) {
  return ((I == J) || ...);
}

// How a value is made: of a product while its factors are found; of one in the order of the text, where times need not
// commute, or where plus selects, and the last bit of a value must not depend on what drives the nest; or by functions.
enum class Computed { as_found, in_order, by_functions };
template <class P>
constexpr Computed computed = P::plain ? Computed::by_functions : P::by_value || P::of_user ? Computed::in_order : Computed::as_found;

template <class T>
constexpr int stage_of() {
  if constexpr (is_item<T>) return T::stage;
  else return -1;
}

// -- a product ---------------------------------------------------------------------------------------------------------

// The product of the factors so far. Where numbers are logs, up to `most` more are multiplied before it is normalised;
// `raw` of them are not, or it has no factor yet.
constexpr int no_factor = -1;
template <class S, int most, int raw = no_factor>
struct Product {
  static constexpr bool some = true;
  typename S::Value w;

  DYNAGRAD_ALWAYS auto times(const typename S::Value& x) const {
    if constexpr (raw < most) return Product<S, most, raw + 1>{S::raw(w, x)};
    else return Product<S, most, 0>{S::times(settled(), x)};
  }
  DYNAGRAD_ALWAYS typename S::Value settled() const {
    if constexpr (raw > 0) return S::settled(w);
    else return w;
  }
};
template <class S, int most>
struct Product<S, most, no_factor> {
  static constexpr bool some = false;
  typename S::Value w = S::one();

  DYNAGRAD_ALWAYS auto times(const typename S::Value& x) const { return Product<S, most, 0>{x}; }
  DYNAGRAD_ALWAYS typename S::Value settled() const { return w; }
};
template <class S>
constexpr bool of_logs = requires(typename S::Value x) { S::raw(x, x); };

// A product that begins with some constants.
template <int n, class Product, class V>
DYNAGRAD_ALWAYS auto with_constants(const Product& product, const V* at) {
  if constexpr (n == 0) return product;
  else return with_constants<n - 1>(product.times(*at), at + 1);
}
// The product of some factors in their order; one, if there are none.
template <class S, class F>
DYNAGRAD_ALWAYS typename S::Value product_of(Places<>, F&&) {
  return S::one();
}
template <class S, int I, int... J, class F>
DYNAGRAD_ALWAYS typename S::Value product_of(Places<I, J...>, F&& factor) {
  typename S::Value w = factor(nth<I>);
  ((w = S::times(w, factor(nth<J>))), ...);
  return w;
}

// Factors without one of them.
template <int I, int... Before>
constexpr auto all_but(Places<Before...> before, Places<>) {
  return before;
}
template <int I, int... Before, int J, int... After>
constexpr auto all_but(Places<Before...>, Places<J, After...>) {
  if constexpr (I == J) return Places<Before..., After...>{};
  else return all_but<I>(Places<Before..., J>{}, Places<After...>{});
}

// -- what begins a nest ------------------------------------------------------------------------------------------------

// What a nest begins with: nothing; an item that is popped once, or a fact, with its value; an item that may be popped
// again, with its value before and after the update. Backward, there are the adjoints of the update, and of the value before.
template <class Value>
struct Begun {
  const Value *update = nullptr, *old = nullptr, *now = nullptr;
  bool first = true;  // whether this is its first pop
  // Whether an item to the right of it in the rule may be this other one; it has the value that it had before then.
  DYNAGRAD_ALWAYS bool may_be(int64_t cell, int64_t other) const { return cell != other || !first; }
  template <class T>
  DYNAGRAD_ALWAYS Value of_same(T& table, int64_t at, int64_t cell) const {
    return at == cell ? *old : (Value)table.value[at];
  }
};
template <class Value, class Adjoint>
struct BegunBack : Begun<Value> {
  Adjoint *gupdate = nullptr, *gold = nullptr;
};

// -- what is found -----------------------------------------------------------------------------------------------------

// The table of values from outside of the program.
struct Nowhere {};
inline constexpr Nowhere no_table{};

// What every link of a chain is asked; its `root` has what the nest began with.
template <class Link>
struct Told {
  DYNAGRAD_ALWAYS bool differs(int64_t cell, int64_t other) const {
    return static_cast<const Link&>(*this).root.begun.may_be(cell, other);
  }
  template <class... A>
  DYNAGRAD_ALWAYS int32_t made(Terms& terms, A... a) const {
    return terms.make(a...);
  }
  DYNAGRAD_ALWAYS void in_turn() const {}
};

// -- values that are kept ----------------------------------------------------------------------------------------------

// Before anything is found.
struct Start {
  static constexpr bool driven = false, has_log = true;
  static constexpr int unknowns = 0;
  template <class F>
  DYNAGRAD_ALWAYS void each(F&&) const {}
};
inline constexpr Start start{};
constexpr int before_all = -(1 << 30);  // the place of the link of nothing
template <class T>
struct Bare {
  using type = T;
};
template <class T>
struct Bare<const T> : Bare<T> {};
template <class T>
struct Bare<T&> : Bare<T> {};
template <class T>
using remove_cvref = typename Bare<T>::type;

// An antecedent that is found: the item, or the fact, at a place of a table, and its value; in the one that was found
// before. `drives` says whether the nest began with it. What is found next, the root makes a link of.
template <class Link, class Root, class Outer, int I, class T, bool began>
struct Kept : Told<Link> {
  using Table = T;
  static constexpr int place = I;
  static constexpr bool drives = began, driven = began || Outer::driven;
  static constexpr bool weighs = among<I>(typename Root::Factors{});
  const Root& root;
  const Outer& outer;
  T& table;
  const int64_t at;
  const typename Root::Value x;

  template <int J, class U>
  DYNAGRAD_ALWAYS auto driver(Nth<J> n, U& found, int64_t here) const {
    return root.template keep<true>(self(), n, found, here, root.value_of_driver(found, here));
  }
  template <int J, class U>
  DYNAGRAD_ALWAYS auto item(Nth<J> n, U& found, int64_t here) const {
    return root.template keep<false>(self(), n, found, here, found.value[here]);
  }
  template <int J, class U>
  DYNAGRAD_ALWAYS auto fact(Nth<J> n, U& found, int64_t row) const {
    return root.template keep<false>(self(), n, found, row, found.value[row]);
  }
  template <int J, class U>
  DYNAGRAD_ALWAYS auto same(Nth<J> n, U& found, int64_t here, int64_t cell) const {
    return root.keep_same(self(), n, found, here, cell);
  }
  template <int J>
  DYNAGRAD_ALWAYS auto outside(Nth<J> n, const typename Root::Value& value) const {
    return root.template keep<false>(self(), n, no_table, -1, value);
  }
  template <int J, class U>
  DYNAGRAD_ALWAYS decltype(auto) side(Nth<J> n, U& found, int64_t here) const {
    return root.pass(self(), n, found, here);
  }
  template <class Head, class... A>
  DYNAGRAD_ALWAYS void head(Head& head, A... a) const {
    root.end(self(), head, a...);
  }

  // Links by their places in the rule.
  template <int J>
  DYNAGRAD_ALWAYS const auto& link(Nth<J> n) const {
    if constexpr (I == J) return self();
    else return outer.link(n);
  }
  // The value of an antecedent, now or before the update of the driver.
  template <bool before, int J>
  DYNAGRAD_ALWAYS const auto& value(Nth<J> n) const {
    if constexpr (before && remove_cvref<decltype(link(n))>::drives) return *root.begun.old;
    else return link(n).x;
  }
  template <class F>
  DYNAGRAD_ALWAYS void each(F&& f) const {
    outer.each(f);
    if constexpr (I >= 0) f(self());
  }

 private:
  DYNAGRAD_ALWAYS const Link& self() const { return static_cast<const Link&>(*this); }
};

// A root that computes a value once all are there: it makes a link of what is found. `again` says whether what the nest
// begins with may be popped again.
template <class Root, class Program, class Rule, class Beginning, bool again>
struct Computes {
  using P = Program;
  using S = typename P::Semiring;
  using Value = typename S::Value;
  using Factors = typename Rule::Factors;
  static constexpr bool in_rows = false;
  P& p;
  const Beginning begun;
  const Rule rule;

  DYNAGRAD_ALWAYS bool first_time() const { return begun.first; }
  // The link of nothing.
  DYNAGRAD_ALWAYS auto begin() const {
    return root().template keep<false>(start, nth<before_all>, no_table, -1, S::one());
  }
  // What drives the nest weighs its update; without a semiring, its value.
  template <class T>
  DYNAGRAD_ALWAYS const Value& value_of_driver(T&, int64_t) const {
    if constexpr (again && P::plain) return *begun.now;
    else return *begun.update;
  }
  template <class Outer, int I, class T>
  DYNAGRAD_ALWAYS auto keep_same(const Outer& outer, Nth<I> n, T& table, int64_t at, int64_t cell) const {
    return root().template keep<false>(outer, n, table, at, begun.of_same(table, at, cell));
  }
  template <class Link, int I, class T>
  DYNAGRAD_ALWAYS const Link& pass(const Link& link, Nth<I>, T&, int64_t) const {
    return link;
  }

  // The value of an instance, now or before the update of the driver.
  template <bool before = false, class Link>
  DYNAGRAD_ALWAYS bool value_of(const Link& link, Value& x) const {
    if constexpr (computed<P> == Computed::by_functions)
      return with_values<before>(link, [&](const auto&... v) DYNAGRAD_LAMBDA { return Rule::value(p, x, v...); });
    else x = product_of<S>(Factors{}, [&](auto n) DYNAGRAD_LAMBDA { return factor(link, n); });
    return true;
  }
  // Whether what an update sends is the difference of two values: sums without a semiring, whose rules are not linear.
  template <class Link, class Head>
  static constexpr bool subtracts = again && P::plain && Head::adds && Link::driven;
  // What an instance sends to its head.
  template <class Head, class Link>
  DYNAGRAD_ALWAYS bool contribution(const Link& link, Value& x) const {
    if (!value_of(link, x)) return false;
    if constexpr (subtracts<Link, Head>) {
      if (begun.first) return true;
      Value then;
      if (!value_of<true>(link, then)) return false;
      x = S::minus(x, then);
    }
    return true;
  }
  // f(the value of each factor)
  template <bool before, class Link, class F>
  static DYNAGRAD_ALWAYS auto with_values(const Link& link, F&& f) {
    return [&]<int... I>(Places<I...>) DYNAGRAD_LAMBDA { return f(link.template value<before>(nth<I>)...); }(Factors{});
  }
  template <class Link, int I>
  DYNAGRAD_ALWAYS Value factor(const Link& link, Nth<I> n) const {
    if constexpr (I < 0) return rule.at[~I];
    else return link.template value<false>(n);
  }

 private:
  DYNAGRAD_ALWAYS const Root& root() const { return static_cast<const Root&>(*this); }
};

// The cell of an item, which may be a new one.
template <class T, class... A>
DYNAGRAD_ALWAYS int64_t cell_for(T& table, A... arguments) {
  const int32_t a[] = {arguments..., 0};
  return table.locate_by(T::order, a);
}

}  // namespace dynagrad
