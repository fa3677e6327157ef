// Derivatives of a run.
// A program's header includes this within its own namespace, as it does `base.hpp`.
// The backward pass is that of the generated class; here are its cotangents and derivatives in a user's words.

#pragma GCC system_header

// An item with its cotangent: what it counts for in a sum of items.
struct weighted {
  result item;
  double cotangent = 1;
};

// What one backward pass computes: the derivatives of a sum of items with respect to every fact and every item. It can
// be looked at until its chart runs again or gets other facts; the chart has to live as long.
class derivatives_base {
 public:
  // Whether there are derivatives; where there are none, all are zero, and `error` says why.
  explicit operator bool() const { return !message[0]; }
  const char* error() const { return message; }
  derivatives_base(const derivatives_base&) = delete;
  derivatives_base& operator=(const derivatives_base&) = delete;

 protected:
  using Cotangents = dynagrad::CotangentsOf<engine::program>;
  derivatives_base(base* c, const weighted* of, size_t count) : chart(c), run(c->runs), number(++c->gradients) {
    within([&] {
      for (size_t i = 0; i < count; i++) {
        if (of[i].item.at.table >= 0) seeds.push({of[i].item.at, of[i].cotangent});
        if (of[i].item.at.chart != chart) say("an item is one that this chart looked up, and one here is not");
        if (!isfinite(of[i].cotangent)) say("a cotangent is not a finite number");
      }
    });
    if (still()) within([&] { check(); });
  }
  weight look_up(int table, const argument* a) {
    int32_t codes[engine::most_arguments];
    const bool before = chart->bad;
    if (!chart->codes_of(table, a, codes)) {
      if (chart->bad && !before) say("%s", chart->message);
      return weight{};
    }
    uint64_t words[engine::semiring::words] = {};
    if (still()) Cotangents::read(*chart->chart_, table, codes, words, false);
    return from_words(words);
  }
  template <int N>
  items<N> items_of(int table) {
    const bool there = still();
    return items<N>(
        [&](items<N>& to) {
          dynagrad::Array<int32_t> codes;
          dynagrad::Array<uint64_t> words;
          const int64_t n = there ? chart->chart_->items(table, nullptr, nullptr, 0) : 0;
          codes.zeros(n * N + 1), words.zeros(n * engine::semiring::words + 1);
          if (n) chart->chart_->items(table, codes.data, words.data, n);
          for (int64_t r = 0; r < n; r++)
            Cotangents::read(*chart->chart_, table, codes.data + r * N, words.data + r * engine::semiring::words, false);
          to.fill(chart, table, codes.data, words.data, n);
        },
        [&] { no_room(); });
  }
  // The facts that were added, without those of the program's text.
  template <int N>
  items<N> rows_of(int table) {
    const bool there = still();
    return items<N>(
        [&](items<N>& to) {
          dynagrad::Array<uint64_t> words;
          if (there) read_rows(table, words);
          const int64_t skipped = chart->fixed_words[table] / engine::semiring::words;
          const int64_t n = words.size / engine::semiring::words - skipped;
          to.fill(chart, table, chart->rows[table].data + skipped * N, words.data + chart->fixed_words[table],
                  n > 0 ? n : 0);
        },
        [&] { no_room(); });
  }

 private:
  struct Seed {
    place at;
    double cotangent;
  };
  base* chart;
  int64_t run, number;
  dynagrad::Array<Seed> seeds;
  char message[400] = "";

  __attribute__((format(printf, 2, 3))) bool say(const char* format, ...) {
    va_list values;
    va_start(values, format);
    vsnprintf(message, sizeof message, format, values);
    va_end(values);
    return false;
  }
  bool no_room() { return say("there is no memory left for the gradient"); }
  template <class F>
  void within(F work) {
    if (dynagrad::guarded(nullptr, work)) no_room();
  }
  // Whether the adjoints in the chart are, or now become, those of this gradient.
  bool still() {
    if (message[0]) return false;
    if (!chart->chart_)
      return say("there is no run to differentiate: the chart did not run, or its facts changed since");
    if (chart->runs != run) return say("the chart ran again since this gradient was made; ask for it anew");
    if (chart->chart_->report.partial)
      return say("the run stopped in the middle of a step, so it has no gradient; stop it with max_pops instead");
    if (chart->filled == number) return true;
    bool whole = false;
    base* const before = base::asking;
    if (!dynagrad::guarded(&chart->chart_->account, [&] { whole = fill(); })) return whole;
    base::asking = before;
    chart->chart_->unlocked = nullptr;
    return no_room();
  }
  bool fill() {
    using namespace engine;
    static_assert(semiring::words == semiring::adjoint_words, "a derivative is written as a value is");
    program& p = *chart->chart_;
    chart->filled = 0;
    dynagrad::open_adjoints(p, true);
    for (int64_t i = 0; i < seeds.size; i++) {
      uint64_t words[semiring::words];
      const Seed& seed = seeds[i];
      memset(words, 0, sizeof words);
      words[0] = dynagrad::as_word(seed.cotangent);
      Cotangents::seed(p, seed.at.table, seed.at.codes, words, false);
    }
    int64_t status;
    {
      dynagrad::Unlocked unlocked(nullptr, nullptr);
      base* const before = base::asking;
      base::asking = chart;
      p.unlocked = &unlocked;
      status = dynagrad::backward_of(p);
      p.unlocked = nullptr;
      base::asking = before;
    }
    if (status == dynagrad::done) {
      chart->filled = number;
      return true;
    }
    const auto item = chart->reported();
    const char* const which = item.size ? item.text : "an item";
    if (status == dynagrad::bad_adjoint)
      return say("the derivative with respect to %s became NaN or infinite, and is the first that did, going backward; "
                 "where numbers are only very large, use log", which);
    if (status == dynagrad::unsettled)
      return say("the derivative with respect to %s does not settle: values around a cycle stand still, since a weight "
                 "there is zero, and its derivatives grow without end, or shrink too slowly", which);
    if (status == dynagrad::near_critical)
      return say("the derivative with respect to %s has no correct digit: the weights around its cycle are too near to "
                 "where its value becomes infinite", which);
    if (status == dynagrad::function_failed)
      return say("the derivative of a function failed for %s: %s: %s", which, p.blamed, p.message);
    return say("the backward pass ended with status %d", (int)status);
  }
  // The derivatives with respect to the rows of a predicate, those of axioms first.
  void read_rows(int table, dynagrad::Array<uint64_t>& words) {
    words.zeros(chart->words[table].size);
    if (words.size) Cotangents::read_rows(*chart->chart_, table, engine::program::copy_kinds[table], chart->words[table].data, words.data);
  }
  // No derivative with respect to a fact is NaN or infinite; items were looked at going backward.
  void check() {
    using namespace engine;
    for (int t = 0; t < tables; t++) {
      if (!table_given[t]) continue;
      dynagrad::Array<uint64_t> words;
      read_rows(t, words);
      for (int64_t i = 0; i < words.size; i++) {
        if (isfinite(dynagrad::as_double(words[i]))) continue;
        const int32_t* const codes = chart->rows[t].data + i / semiring::words * base::arity_of(t);
        say("the derivative with respect to %s is NaN or infinite; where numbers are only very large, use log",
            chart->item_text(t, codes).text);
        return;
      }
    }
  }
};
