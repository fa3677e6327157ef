// Items to go through. A part of every generated header.

// The items of a predicate, to go through: `for (auto& item : chart.all_goal_0())`.
template <int N>
struct item {
  term arguments[N ? N : 1];
  weight value;
  term operator[](int i) const { return arguments[i]; }
};
template <int N>
class items {
 public:
  items(base* chart, int table) {
    if (!chart->chart_) return;
    const int64_t n = chart->chart_->items(table, nullptr, nullptr, 0);
    dynagrad::Array<int32_t> codes;
    dynagrad::Array<uint64_t> words;
    codes.zeros(n * N + 1), words.zeros(n * engine::semiring::words + 1);
    chart->chart_->items(table, codes.data, words.data, n);
    fill(chart, table, codes.data, words.data, n);
  }
  // Of `n` items that are known by number.
  items(base* chart, int table, const int32_t* codes, const uint64_t* words, int64_t n) {
    fill(chart, table, codes, words, n);
  }
  int64_t size() const { return all.size; }
  const item<N>* begin() const { return all.data; }
  const item<N>* end() const { return all.data + all.size; }

 private:
  dynagrad::Array<item<N>> all;
  void fill(base* chart, int table, const int32_t* codes, const uint64_t* words, int64_t n) {
    for (int64_t r = 0; r < n; r++) {
      item<N> made;
      for (int k = 0; k < N; k++)
        made.arguments[k] = chart->decode(engine::table_domain[engine::table_first[table] + k], codes[r * N + k]);
      made.value = from_words(words + r * engine::semiring::words);
      all.push(made);
    }
  }
};
