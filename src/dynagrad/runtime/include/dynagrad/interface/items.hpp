// Items to go through.
// A program's header includes this within its own namespace, as it does `base.hpp`.

#pragma GCC system_header

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
    listed([&] {
      const int64_t n = chart->chart_->items(table, nullptr, nullptr, 0);
      dynagrad::Array<int32_t> codes;
      dynagrad::Array<uint64_t> words;
      codes.zeros(n * N + 1), words.zeros(n * engine::semiring::words + 1);
      chart->chart_->items(table, codes.data, words.data, n);
      fill(chart, table, codes.data, words.data, n);
    });
    if (!whole) chart->say("there is no memory left for a list of items");
  }
  // Of what `work` puts in by `fill`; where memory ends in it, `failed` is called.
  template <class F, class G>
    requires requires(G failed) { failed(); }
  items(F work, G failed) {
    listed([&] { work(*this); });
    if (!whole) failed();
  }
  // Whether all items are here. Where memory ended, none are, and `error` of the chart or of the gradient says so.
  explicit operator bool() const { return whole; }
  int64_t size() const { return all.size; }
  const item<N>* begin() const { return all.data; }
  const item<N>* end() const { return all.data + all.size; }

 private:
  friend class derivatives_base;
  dynagrad::Array<item<N>> all;
  bool whole = true;
  template <class F>
  void listed(F work) {
    whole = !dynagrad::guarded(nullptr, work);
    if (!whole) all.clear();
  }
  // Items that are known by number.
  void fill(base* chart, int table, const int32_t* codes, const uint64_t* words, int64_t n) {
    all.reserve(n);
    for (int64_t r = 0; r < n; r++) {
      item<N> made;
      for (int k = 0; k < N; k++)
        made.arguments[k] = chart->decode(engine::table_domain[engine::table_first[table] + k], codes[r * N + k]);
      made.value = from_words(words + r * engine::semiring::words);
      all.push(made);
    }
  }
};
