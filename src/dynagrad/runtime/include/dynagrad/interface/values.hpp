// Terms, arguments and values, as a C++ user writes them.
// A program's header includes this within its own namespace, as it does `base.hpp`.
// They become codes and words in `base.hpp`.

#pragma GCC system_header

// A term: a symbol, an integer, a float, a list or a compound. It belongs to the chart that made it.
struct term {
  int32_t number = -1;
  bool operator==(const term&) const = default;
};

// What functions take where a term is wanted: a term, an integer, or the name of a symbol.
struct argument {
  enum Kind { is_term, is_integer, is_name } kind;
  int64_t number = 0;
  const char* text = nullptr;
  size_t length = 0;
  argument(term t) : kind(is_term), number(t.number) {}
  argument(int n) : kind(is_integer), number(n) {}
  argument(long n) : kind(is_integer), number(n) {}
  argument(long long n) : kind(is_integer), number(n) {}
  argument(unsigned n) : kind(is_integer), number(n) {}
  argument(unsigned long n) : kind(is_integer), number(n > INT64_MAX ? INT64_MAX : (int64_t)n) {}
  argument(const char* name) : kind(is_name), text(name), length(strlen(name)) {}
  template <class S>
    requires requires(const S& s) { s.c_str(); s.size(); }
  argument(const S& name) : kind(is_name), text(name.c_str()), length(name.size()) {}
  argument(double) = delete;  // a float is a term that the chart makes: chart.real(0.5)
};

// Which item that is, by number: good as long as the chart that it was looked up in lives.
class base;
struct place {
  const base* chart;
  int32_t table;  // -1 where there can be no such item
  int32_t codes[engine::most_arguments];
};

// An item that was looked up. What was never derived has the value of nothing.
struct result {
  bool derived;
  weight value;
  place at;
  explicit operator bool() const { return derived; }
};

template <class W = weight>
W from_words(const uint64_t* words) {
  if constexpr (sizeof(W) == 1) {
    return (W)(dynagrad::as_double(*words) != 0);
  } else {
    W value;
    memcpy(&value, words, sizeof value);
    return value;
  }
}
inline void to_words(weight value, uint64_t* words) {
  if constexpr (sizeof(weight) == 1) {
    uint8_t truth;
    memcpy(&truth, &value, 1);
    *words = dynagrad::as_word(truth ? 1 : 0);
  } else {
    memcpy(words, &value, sizeof value);
  }
}
inline weight one() {
  uint64_t words[engine::semiring::words];
  engine::semiring::write(engine::semiring::one(), words);
  if (engine::number_one) words[0] = dynagrad::as_word(1);
  return from_words(words);
}

// The value of an item that the host computes; false where there is none.
using external = bool (*)(base& chart, const term* arguments, weight& value);
