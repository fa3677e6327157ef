// What a nest tells a visitor, and what visitors share.
//
// The function of a nest is a template over its visitor. The nest enumerates instances of its rule; the visitor says
// what they are for. It is told
//
//   begin()                            first of all: its answer is told what is found,
//   driver(nth<i>, table, cell)        of the item, or the fact, that the nest begins with,
//   item(nth<i>, table, cell)          of each other antecedent, by its place in the rule, as it is found,
//   fact(nth<i>, table, row)
//   outside(nth<i>, value)             a value from a function outside of the program
//   side(nth<i>, table, cell or row)   of one that only has to be there,
//   same(nth<i>, table, cell, driver)  of an item of the driver's predicate to the right of it, which may be the same
//   head(table, arguments...)          of the head, once all antecedents are there,
//
// and answers all but the last with a visitor for what is found further inside. It is asked
//
//   differs(cell, other)               whether an antecedent to the right of the driver may be this other item
//   first_time()                       whether an item that has no part in the value drives the nest
//   made(terms, ...)                   for the code of a term in the head, -1 for one that no item can have.
//
// Where the last loop and the head run over one variable side by side, a visitor with `in_rows` is told of all instances
// together: `row` of a row of items, `stretch` of facts. `in_turn` tells it that other instances come one by one.
#pragma once
#include <dynagrad/storage/terms.hpp>

namespace dynagrad {

template <class T>
constexpr bool is_item = requires { typename T::Stage; };  // of a table of a derived predicate

template <int I>
struct Nth {
  static constexpr int place = I;
};
template <int I>
inline constexpr Nth<I> nth{};

// The answer of a visitor that looks at antecedents once all are there: what was found, one in the other. Facts are left
// out where `Visitor::facts` is false. At the head, `end` of the visitor is called.
template <class Visitor, class Outer, int I, class T>
struct Found {
  const Visitor& visitor;
  const Outer& outer;
  T& table;
  const int64_t at;

  template <int J, class U>
  DYNAGRAD_ALWAYS Found<Visitor, Found, J, U> item(Nth<J>, U& u, int64_t cell) const { return {visitor, *this, u, cell}; }
  template <int J, class U>
  DYNAGRAD_ALWAYS decltype(auto) fact(Nth<J> n, U& u, int64_t row) const {
    if constexpr (Visitor::facts) return item(n, u, row);
    else return (*this);
  }
  template <int J, class Value>
  DYNAGRAD_ALWAYS const Found& outside(Nth<J>, const Value&) const { return *this; }
  template <int J, class U>
  DYNAGRAD_ALWAYS decltype(auto) side(Nth<J> n, U& u, int64_t at) const {
    if constexpr (is_item<U>) return item(n, u, at);
    else return fact(n, u, at);
  }
  template <int J, class U>
  DYNAGRAD_ALWAYS Found<Visitor, Found, J, U> same(Nth<J> n, U& u, int64_t cell, int64_t) const { return item(n, u, cell); }
  DYNAGRAD_ALWAYS bool differs(int64_t cell, int64_t other) const { return visitor.differs(cell, other); }
  DYNAGRAD_ALWAYS void in_turn() const {}
  template <class... A>
  DYNAGRAD_ALWAYS int32_t made(Terms& terms, A... a) const { return visitor.made(terms, a...); }
  template <class Head, class... A>
  DYNAGRAD_ALWAYS void head(Head& table, A... a) const { visitor.end(*this, table, a...); }

  // f(nth, table, cell or row) for each antecedent, in the order in which they were found.
  template <class F>
  DYNAGRAD_ALWAYS void each(F&& f) const {
    outer.each(f);
    f(nth<I>, table, at);
  }
};

// The outermost one, of which nothing is found yet.
template <class Visitor>
struct Nothing {
  static constexpr bool in_rows = false;
  template <int J, class U>
  DYNAGRAD_ALWAYS Found<Visitor, Visitor, J, U> item(Nth<J>, U& u, int64_t cell) const { return {self(), self(), u, cell}; }
  template <int J, class U>
  DYNAGRAD_ALWAYS decltype(auto) fact(Nth<J> n, U& u, int64_t row) const {
    if constexpr (Visitor::facts) return item(n, u, row);
    else return (self());
  }
  template <int J, class U>
  DYNAGRAD_ALWAYS const Visitor& driver(Nth<J>, U&, int64_t) const { return self(); }
  template <int J, class Value>
  DYNAGRAD_ALWAYS const Visitor& outside(Nth<J>, const Value&) const { return self(); }
  template <int J, class U>
  DYNAGRAD_ALWAYS decltype(auto) side(Nth<J> n, U& u, int64_t at) const {
    if constexpr (is_item<U>) return self().item(n, u, at);
    else return fact(n, u, at);
  }
  template <int J, class U>
  DYNAGRAD_ALWAYS decltype(auto) same(Nth<J> n, U& u, int64_t cell, int64_t) const { return self().item(n, u, cell); }
  DYNAGRAD_ALWAYS bool differs(int64_t cell, int64_t other) const { return cell != other; }
  DYNAGRAD_ALWAYS const Visitor& begin() const { return self(); }
  DYNAGRAD_ALWAYS bool first_time() const { return true; }
  DYNAGRAD_ALWAYS void in_turn() const {}
  template <class... A>
  DYNAGRAD_ALWAYS int32_t made(Terms& terms, A... a) const { return terms.make(a...); }
  template <class Head, class... A>
  DYNAGRAD_ALWAYS void head(Head& table, A... a) const { self().end(self(), table, a...); }
  template <class F>
  DYNAGRAD_ALWAYS void each(F&&) const {}

 private:
  DYNAGRAD_ALWAYS const Visitor& self() const { return static_cast<const Visitor&>(*this); }
};

}  // namespace dynagrad
