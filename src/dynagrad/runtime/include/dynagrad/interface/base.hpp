// What the charts of all programs have: terms, facts, runs, lookups. A program's header includes this within its own
// namespace, where `engine` is the generated class with its data; so it is included once for each program.
// It is long because it is one class, which users read as a whole.

#pragma GCC system_header

class base {
  template <int N> friend class items;
  friend class derivatives_base;

 public:
  // Limits: max_pops, timeout_ns, max_items, max_bytes (-1 for none), tolerance.
  dynagrad::Settings settings;
  // What the last run did: pops, updates, items, bytes, nanoseconds and more.
  dynagrad::Report report;

  // Where memory ends, here or in a call below, that is an error, as `error` says.
  base() { ready = within("the terms of the program", [&] { open(); }); }
  ~base() {
    drop();
    for (int t = 0; t < engine::tables; t++) release(t);
    for (int64_t i = 0; i < texts.size; i++) dynagrad::discard(texts[i].data);
  }
  base(const base&) = delete;
  base& operator=(const base&) = delete;

  // -- making terms; where memory ends, what comes back is no term, and `error` says so

  term symbol(const char* name) { return symbol(name, (int64_t)strlen(name)); }
  term symbol(const char* name, int64_t length) { return making([&] { return make_symbol(name, length); }); }
  term integer(int64_t n) { return making([&] { return make_integer(n); }); }
  term real(double x) {
    return making([&] { return make(dynagrad::Terms::atom, real_number(x + 0.0), nullptr, 0); });
  }
  template <class... A>
  term compound(const char* name, A... arguments) {
    return making([&] {
      const int32_t all[] = {of(argument(arguments)).number...};
      const int32_t f = functor(text_number(name, (int64_t)strlen(name)), (int)sizeof...(A));
      return make(dynagrad::Terms::compound, f, all, (int32_t)sizeof...(A));
    });
  }
  template <class... A>
  term list(A... elements) {
    return making([&] {
      const term all[] = {of(argument(elements))..., term{}};
      term made = make_symbol("nil", 3);
      for (int64_t i = (int64_t)sizeof...(A) - 1; i >= 0; i--) made = pair(all[i], made);
      return made;
    });
  }
  term cons(argument first, argument rest) {
    return making([&] {
      const term a = of(first), b = of(rest);
      return pair(a, b);
    });
  }

  // -- taking terms apart

  bool is_integer(term t) const { return node_of(t).kind == dynagrad::Terms::integer; }
  bool is_compound(term t) const { return node_of(t).kind == dynagrad::Terms::compound; }
  bool is_symbol(term t) const { return is_atom(t) && texts[node_of(t).payload].data; }
  bool is_real(term t) const { return is_atom(t) && !texts[node_of(t).payload].data; }
  // The name of a symbol, or of a compound's functor; it lives as long as the chart.
  const char* name(term t) const {
    if (is_compound(t)) return texts[functor_list[node_of(t).payload].name].data;
    return is_symbol(t) ? texts[node_of(t).payload].data : "";
  }
  int32_t number(term t) const { return is_integer(t) ? node_of(t).payload : 0; }
  double to_double(term t) const { return is_real(t) ? texts[node_of(t).payload].number : number(t); }
  int arity(term t) const { return node_of(t).arity; }
  term part(term t, int i) const {
    return i >= 0 && i < arity(t) ? term{world.terms.arguments(t.number)[i]} : term{};
  }
  // Prints a term as rules write it.
  void print(term t, FILE* to = stdout) const {
    if (dynagrad::guarded(nullptr, [&] { write(t, [to](const char* text) { fputs(text, to); }); }))
      say("there is no memory left to print a term");
  }

  // -- running

  // Runs on the facts as they are, from the start. False where it did not come to its end; `error` says why.
  bool run() {
    bool whole = false;
    base* const before = asking;
    if (const auto failure = dynagrad::guarded(nullptr, [&] { whole = attempt(); })) {
      asking = before;
      if (loading >= 0) release(loading), loading = -1;
      report.status = failure == dynagrad::limited ? dynagrad::at_bytes : dynagrad::no_memory;
      if (chart_) {
        chart_->unlocked = nullptr;
        chart_->stop_for_memory(failure);
        report = chart_->report;
      }
      say(failure == dynagrad::limited ? "the run stopped: it met its limit on bytes" : "the run stopped: there is no memory left");
    }
    return whole;
  }
  // What went wrong, or nothing. A fact or a term that cannot be, or that there was no memory for, stays wrong: make a new
  // chart.
  const char* error() const { return message; }

 protected:
  bool attempt() {
    using namespace engine;
    drop();
    runs++;
    if (bad) return false;
    message[0] = 0;
    int32_t low[domains + 1], high[domains + 1];
    for (int d = 0; d < domains; d++) low[d] = least[d], high[d] = most[d];
    for (int t = 0; t < tables; t++) {
      if (!table_given[t]) continue;
      if (!facts[t]) load(t);
      for (int k = 0; k < arity_of(t); k++) {
        const int d = table_domain[table_first[t] + k];
        if (column_low[table_first[t] + k] < low[d]) low[d] = column_low[table_first[t] + k];
        if (column_high[table_first[t] + k] > high[d]) high[d] = column_high[table_first[t] + k];
      }
    }
    for (int d = 0; d < domains; d++) {
      if (domain_kind[d] == 'i' && low[d] > high[d]) world.domain[d] = {0, 0};
      if (domain_kind[d] == 'i' && low[d] <= high[d]) world.domain[d] = {low[d], (int64_t)high[d] - low[d] + 1};
      if (domain_kind[d] == 'a') world.domain[d] = {0, members_of[d].size};
    }
    if (!order() || !check_gaps() || !check_ranges()) return false;
    world.account.limit = settings.max_bytes >= 0 ? settings.max_bytes : INT64_MAX;
    dynagrad::Failure failure = dynagrad::none;
    chart_ = dynagrad::create<program>(failure, &world, facts, weights, rule_words);
    if (!chart_) dynagrad::out_of_memory(failure);
    for (int t = 0; t < tables; t++)
      if (ask[t]) chart_->externals[t] = asked[t];
    chart_->settings = settings;
    {
      dynagrad::Unlocked unlocked(nullptr, nullptr);
      base* const before = asking;
      asking = this;
      chart_->unlocked = &unlocked;
      run_program(*chart_);
      chart_->unlocked = nullptr;
      asking = before;
    }
    report = chart_->report;
    static const char* const why[] = {
        "", "it met its limit on pops", "it met its limit on time", "it came to its last item",
        "it met its limit on items", "it met its limit on bytes", "a value left the range of the semiring",
        "it was interrupted", "integer arithmetic of arguments left 32 bits or divided by zero", "it paused", "an item has two values",
        "a function of the host failed", "", "", "a function failed", "an item has no finite value",
        "values go around a cycle that cannot be solved", "", "it changed nothing for a million pops",
        "the order of a semiring is none", "there is no memory left"};
    if (report.status != dynagrad::done) {
      const Line item = reported();
      char said[300] = "";
      if (report.status == dynagrad::function_failed)
        snprintf(said, sizeof said, "%s: %s", chart_->blamed, chart_->message);
      if (report.status == dynagrad::integer_overflow && report.error_table < -1)
        snprintf(said, sizeof said, "in rule %lld of the program", (long long)report.error_cell);
      say("the run stopped: %s%s%s%s%s", why[report.status], item.size ? ": " : "", item.text, *said ? ": " : "", said);
    }
    return report.status == dynagrad::done && !bad;
  }

  using Answer = int32_t (*)(const int32_t*, uint64_t*);
  external ask[engine::tables + 1] = {};
  Answer asked[engine::tables + 1] = {};

  bool give(int table, const argument* a, weight value) {
    bool given = false;
    return within("facts", [&] { given = give_row(table, a, value); }) && given;
  }
  bool give_row(int table, const argument* a, weight value) {
    using namespace engine;
    if (bad) return false;
    const int n = arity_of(table);
    const int64_t before = rows[table].size;
    for (int k = 0; k < n; k++) {
      int32_t code = -1;
      if (!encode(table, k, a[k], true, code)) {
        rows[table].size = before;
        return false;
      }
      rows[table].push(code);
    }
    uint64_t w[semiring::words];
    to_words(value, w);
    for (int i = 0; i < semiring::words; i++) words[table].push(w[i]);
    release(table);
    return true;
  }
  void take_all(int table) {
    rows[table].size = fixed_rows[table], words[table].size = fixed_words[table];
    release(table);
  }
  result look_up(int table, const argument* a) {
    result found{false, zero_of(table), {this, -1, {}}};
    if (!codes_of(table, a, found.at.codes)) return found;
    found.at.table = table;
    uint64_t w[engine::semiring::words];
    if (chart_ && chart_->get(table, found.at.codes, w)) found.derived = true, found.value = from_words(w);
    return found;
  }

 private:
  struct Text { char* data; int64_t length; double number; };  // data is null for floats
  struct Functor { int32_t name, arity; };
  dynagrad::World world;
  engine::program* chart_ = nullptr;
  int loading = -1;  // facts that are being loaded
  dynagrad::Array<Text> texts;
  dynagrad::Array<uint32_t> text_slots;
  dynagrad::Array<Functor> functor_list;
  dynagrad::Array<int32_t> node, parts;
  dynagrad::Array<int32_t> number_in[engine::domains + 1];   // term -> atom
  dynagrad::Array<int32_t> members_of[engine::domains + 1];  // atom -> term
  int32_t least[engine::domains + 1], most[engine::domains + 1];  // of the program's own integers
  dynagrad::Array<int32_t> rows[engine::tables + 1];               // row after row
  dynagrad::Array<uint64_t> words[engine::tables + 1];
  int64_t fixed_rows[engine::tables + 1] = {}, fixed_words[engine::tables + 1] = {};  // of axioms
  int32_t column_low[sizeof engine::table_domain / sizeof(int)], column_high[sizeof engine::table_domain / sizeof(int)];
  dynagrad::FactTable* facts[engine::tables + 1] = {};
  void* weights[engine::tables + 1] = {};
  int64_t runs = 0, gradients = 0, filled = 0;  // `filled`: which gradient's adjoints are in the chart
  bool bad = false, ready = false;
  mutable char message[400] = "";

  static int arity_of(int t) { return engine::table_first[t + 1] - engine::table_first[t]; }
  dynagrad::Terms::Node node_of(term t) const {
    return t.number >= 0 && t.number < world.terms.count() ? world.terms.node(t.number) : dynagrad::Terms::Node{-1, 0, 0, 0};
  }
  bool is_atom(term t) const { return node_of(t).kind == dynagrad::Terms::atom; }

  __attribute__((format(printf, 2, 3))) bool say(const char* format, ...) const {
    va_list values;
    va_start(values, format);
    vsnprintf(message, sizeof message, format, values);
    va_end(values);
    return false;
  }
  template <class... A>
  bool fail(const char* format, A... values) {
    if (!bad) snprintf(message, sizeof message, format, values...);
    bad = true;
    return false;
  }

  // Does what may take memory; where that ends, the chart is wrong from then on.
  template <class F>
  bool within(const char* what, F work) {
    if (!dynagrad::guarded(nullptr, work)) return true;
    return fail("there is no memory left for %s", what);
  }
  template <class F>
  term making(F work) {
    term made;
    if (!ready || !within("terms", [&] { made = work(); })) return {};
    return made;
  }
  // What follows is called in `within`. A part that is no term makes none of the whole.
  term make(int32_t kind, int32_t payload, const int32_t* arguments, int32_t count) {
    for (int32_t i = 0; i < count; i++)
      if (arguments[i] < 0) return {};
    return {world.terms.make(kind, payload, arguments, count)};
  }
  term make_symbol(const char* name, int64_t length) {
    return make(dynagrad::Terms::atom, text_number(name, length), nullptr, 0);
  }
  term make_integer(int64_t n) {
    if (n != (int32_t)n) fail("the integer %lld is beyond 32 bits", (long long)n);
    return make(dynagrad::Terms::integer, (int32_t)n, nullptr, 0);
  }
  term pair(term first, term rest) {
    const int32_t both[] = {first.number, rest.number};
    return make(dynagrad::Terms::compound, functor(text_number("cons", 4), 2), both, 2);
  }
  // The codes of an item's arguments; false where there can be no such item.
  bool codes_of(int table, const argument* a, int32_t* codes) {
    bool known = ready;
    const bool whole = within("terms", [&] {
      for (int k = 0; known && k < arity_of(table); k++) known = encode(table, k, a[k], false, codes[k]);
    });
    return whole && known;
  }
  void open() {
    using namespace engine;
    world.terms.open(nullptr);
    for (int i = 0; i < functors; i++)
      functor(text_number(symbol_text[functor_name[i]], symbol_length[functor_name[i]]), functor_arity[i]);
    for (int i = 0; i < nodes; i++) {
      const int n = node_first[i + 1] - node_first[i];
      parts.clear();
      for (int c = 0; c < n; c++) parts.push(node[node_child[node_first[i] + c]]);
      const int32_t p = node_payload[i];
      switch (node_kind[i]) {
        case 'i': node.push(make_integer(p).number); break;
        case 's': node.push(make_symbol(symbol_text[p], symbol_length[p]).number); break;
        case 'r': node.push(world.terms.make(dynagrad::Terms::atom, real_number(real_value[p] + 0.0), nullptr, 0)); break;
        default: node.push(world.terms.make(dynagrad::Terms::compound, p, parts.data, n));
      }
    }
    for (int d = 0; d < domains; d++) {
      const dynagrad::Range empty;
      world.domain.push(empty);
      world.rank.push(nullptr);
      least[d] = INT32_MAX, most[d] = INT32_MIN;
    }
    for (int i = 0; i < members; i++) {
      const int d = member[2 * i];
      const int32_t t = node[member[2 * i + 1]];
      const auto n = world.terms.node(t);
      if (domain_kind[d] == 'a') atom(d, t);
      if (domain_kind[d] == 'i' && n.kind == dynagrad::Terms::integer) widen(d, n.payload);
    }
    for (int i = 0; i < slots; i++) {
      const int d = slot[2 * i];
      const int32_t t = node[slot[2 * i + 1]];
      const char kind = d < 0 ? 't' : domain_kind[d];
      world.constant.push(kind == 't' ? t : kind == 'a' ? atom(d, t) : world.terms.node(t).payload);
    }
    for (int t = 0; t < tables; t++) clear_facts(t);
    const int32_t* at = axiom;
    for (int i = 0; at < axiom + axiom_numbers; i++) {
      const int table = *at++, n = table_first[table + 1] - table_first[table];
      for (int k = 0; k < n; k++) {
        const argument a(term{node[*at++]});
        int32_t code = -1;
        if (encode(table, k, a, true, code)) rows[table].push(code);
      }
      for (int w = 0; w < semiring::words; w++) words[table].push(axiom_words[i * semiring::words + w]);
    }
    for (int t = 0; t < tables; t++) fixed_rows[t] = rows[t].size, fixed_words[t] = words[t].size;
  }

  static uint64_t hash_text(const char* text, int64_t length, double number) {
    uint64_t h = dynagrad::as_word(number) ^ (uint64_t)length;
    for (int64_t i = 0; i < length; i++) h = (h ^ (uint8_t)text[i]) * 0x100000001b3ull;
    return dynagrad::mix(h);
  }
  int32_t text_number(const char* text, int64_t length) { return text_of(text, length, 0); }
  int32_t real_number(double x) { return text_of(nullptr, -1, x); }
  int32_t text_of(const char* text, int64_t length, double number) {
    if (texts.size * 2 >= text_slots.size) {
      const int64_t room = text_slots.size ? text_slots.size * 2 : 64;
      text_slots.zeros(room);
      for (int64_t i = 0; i < texts.size; i++) {
        uint64_t h = hash_text(texts[i].data, texts[i].length, texts[i].number) & (uint64_t)(room - 1);
        while (text_slots[h]) h = (h + 1) & (uint64_t)(room - 1);
        text_slots[h] = (uint32_t)i + 1;
      }
    }
    const uint64_t mask = (uint64_t)text_slots.size - 1;
    uint64_t h = hash_text(text, length, number) & mask;
    while (const uint32_t s = text_slots[h]) {
      const Text& t = texts[s - 1];
      if (t.length == length && dynagrad::as_word(t.number) == dynagrad::as_word(number) &&
          (length <= 0 || !memcmp(t.data, text, (size_t)length)))
        return (int32_t)(s - 1);
      h = (h + 1) & mask;
    }
    Text made{nullptr, length, number};
    texts.reserve(texts.size + 1);
    if (length >= 0) {
      made.data = dynagrad::fails() ? nullptr : (char*)dynagrad::obtain((size_t)length + 1, false);
      if (!made.data) dynagrad::out_of_memory();
      memcpy(made.data, text, (size_t)length);
      made.data[length] = 0;
    }
    texts.push(made);
    text_slots[h] = (uint32_t)texts.size;
    return (int32_t)texts.size - 1;
  }
  int32_t functor(int32_t name, int arity) {
    for (int64_t i = 0; i < functor_list.size; i++)
      if (functor_list[i].name == name && functor_list[i].arity == arity) return (int32_t)i;
    functor_list.push({name, arity});
    return (int32_t)functor_list.size - 1;
  }
  term of(const argument& a) {
    if (a.kind == argument::is_term) return {(int32_t)a.number};
    return a.kind == argument::is_integer ? make_integer(a.number) : make_symbol(a.text, (int64_t)a.length);
  }

  // -- text

  // A term as rules write it, piece by piece to `put`.
  template <class Put>
  void write(term t, Put put) const {
    struct Piece { int kind; int32_t number; };  // 0: a term, 1: the rest of a list, 2: a character
    dynagrad::Array<Piece> stack;
    char digits[40];
    stack.push({0, t.number});
    while (stack.size) {
      const Piece p = stack[--stack.size];
      if (p.kind == 2) {
        const char one[] = {(char)p.number, 0};
        put(one);
        continue;
      }
      const term at{p.number};
      const bool pair = is_compound(at) && arity(at) == 2 && !strcmp(name(at), "cons");
      if (p.kind == 1) {
        if (pair) {
          put(",");
          stack.push({1, part(at, 1).number});
          stack.push({0, part(at, 0).number});
        } else {
          stack.push({2, ']'});
          if (!is_symbol(at) || strcmp(name(at), "nil")) {
            put("|");
            stack.push({0, at.number});
          }
        }
      } else if (pair) {
        put("[");
        stack.push({1, part(at, 1).number});
        stack.push({0, part(at, 0).number});
      } else if (is_compound(at) && arity(at) == 2 && !strcmp(name(at), "slash")) {
        const bool inner = is_compound(part(at, 1)) && !strcmp(name(part(at, 1)), "slash");
        if (inner) stack.push({2, ')'});
        stack.push({0, part(at, 1).number});
        if (inner) stack.push({2, '('});
        stack.push({2, '/'});
        stack.push({0, part(at, 0).number});
      } else if (is_compound(at)) {
        put(name(at));
        put("(");
        stack.push({2, ')'});
        for (int i = arity(at) - 1; i >= 0; i--) {
          stack.push({0, part(at, i).number});
          if (i) stack.push({2, ','});
        }
      } else if (is_integer(at)) {
        snprintf(digits, sizeof digits, "%d", (int)number(at));
        put(digits);
      } else if (is_real(at)) {
        snprintf(digits, sizeof digits, "%.17g", to_double(at));
        put(digits);
      } else {
        put(at == t || strcmp(name(at), "nil") ? name(at) : "[]");
      }
    }
  }

  // An item as rules write it, cut where it is long.
  struct Line {
    char text[200] = "";
    size_t size = 0;
    void add(const char* piece) { add(piece, strlen(piece)); }
    void add(const char* piece, size_t length) {
      const size_t room = sizeof text - 1 - size, taken = length < room ? length : room;
      memcpy(text + size, piece, taken);
      text[size += taken] = 0;
    }
  };
  Line item_text(int table, const int32_t* codes) {
    Line line;
    const char* const key = engine::table_key[table];
    line.add(key, (size_t)(strrchr(key, '/') - key));
    for (int k = 0; k < arity_of(table); k++) {
      line.add(k ? "," : "(");
      write(decode(engine::table_domain[engine::table_first[table] + k], codes[k]), [&](const char* t) { line.add(t); });
    }
    if (arity_of(table)) line.add(")");
    return line;
  }
  // The item that the end of a run or of a pass is about; an empty line where it is about none.
  Line reported() {
    const auto& r = chart_->report;
    if (r.error_table < 0 || r.error_cell < 0) return {};
    int32_t codes[engine::most_arguments] = {};
    chart_->arguments(r.error_table, r.error_cell, codes);
    return item_text((int)r.error_table, codes);
  }

  // -- codes

  void widen(int d, int32_t n) {
    if (n < least[d]) least[d] = n;
    if (n > most[d]) most[d] = n;
  }
  int32_t atom(int d, int32_t t, bool create = true) {
    auto& numbers = number_in[d];
    if (t >= numbers.size) {
      if (!create) return -1;
      numbers.resize(t + 1, -1);
    }
    if (numbers[t] < 0 && create) {
      members_of[d].push(t);
      numbers[t] = (int32_t)members_of[d].size - 1;
    }
    return numbers[t];
  }
  // The code of an argument. Where it must be made and cannot be, that is an error.
  bool encode(int table, int k, const argument& a, bool create, int32_t& code) {
    using namespace engine;
    const int d = table_domain[table_first[table] + k];
    const term t = of(a);
    if (t.number < 0) return create ? fail("argument %d of %s is no term", k + 1, table_key[table]) : false;
    const auto n = world.terms.node(t.number);
    switch (domain_kind[d]) {
      case 'i':
        if (n.kind != dynagrad::Terms::integer) {
          if (!create) return false;
          const char* const given = name(t);
          return fail("argument %d of %s is an integer here, and %.100s is none", k + 1, table_key[table], given);
        }
        code = n.payload;
        return true;
      case 'a':
        if (n.kind == dynagrad::Terms::compound) {
          if (!create) return false;
          return fail("argument %d of %s is a symbol or a number here, and a compound term was given; declare its type "
                      "as term", k + 1, table_key[table]);
        }
        code = atom(d, t.number, create);
        return code >= 0;
      default:
        code = t.number;
        return true;
    }
  }
  term decode(int d, int32_t code) {
    switch (engine::domain_kind[d]) {
      case 'i': return make_integer(code);
      case 'a': return {members_of[d][code]};
      default: return {code};
    }
  }
  weight zero_of(int table) const {
    uint64_t w[engine::semiring::words];
    engine::semiring::write(engine::semiring::zero(), w);
    if constexpr (engine::plain_values) w[0] = dynagrad::as_word(engine::table_zero[table]);
    return from_words(w);
  }

  // -- facts

  void clear_facts(int t) { rows[t].clear(), words[t].clear(); }
  int64_t count(int t) const { return words[t].size / engine::semiring::words; }
  void release(int t) {
    drop();  // the chart stands on these facts
    dynagrad::dispose(facts[t]);
    dynagrad::dispose((dynagrad::Weights<engine::semiring>*)weights[t]);
    facts[t] = nullptr, weights[t] = nullptr;
  }
  void drop() {
    dynagrad::dispose(chart_);
    chart_ = nullptr;
  }
  void load(int t) {
    const int n = arity_of(t);
    const int64_t m = count(t);
    dynagrad::Array<int32_t> columns[65];
    const int32_t* data[65] = {};
    for (int k = 0; k < n; k++) {
      int32_t low = INT32_MAX, high = INT32_MIN;
      columns[k].reserve(m + 1);
      for (int64_t i = 0; i < m; i++) {
        const int32_t x = rows[t][i * n + k];
        columns[k].push(x);
        if (x < low) low = x;
        if (x > high) high = x;
      }
      column_low[engine::table_first[t] + k] = low, column_high[engine::table_first[t] + k] = high;
      data[k] = columns[k].data;
    }
    dynagrad::Failure failure = dynagrad::none;
    loading = t;
    facts[t] = dynagrad::new_facts(engine::program::facts_plans[t], failure);
    if (!facts[t]) dynagrad::out_of_memory(failure);
    using values = dynagrad::ReaderOf<engine::semiring>;
    weights[t] = values::weights_new(failure);
    if (!weights[t]) dynagrad::out_of_memory(failure);
    dynagrad::load(facts[t], &world, data, m);
    const auto& copies = engine::program::copies;
    values::weigh(*facts[t], words[t].data, weights[t], &copies[sizeof copies == sizeof copies[0] ? 0 : t]);
    loading = -1;
  }

  // -- what the plan relies on

  // Ranks of the symbols that facts order: the longest way to each along those facts.
  bool order() {
    using namespace engine;
    for (int d = 0; d < domains; d++) {
      if (!domain_ranked[d]) continue;
      const int64_t n = members_of[d].size;
      dynagrad::Array<int32_t> waiting, rank, ready, tails, heads, start, next;
      waiting.zeros(n), rank.zeros(n), start.zeros(n + 1);
      for (int s = 0; s < sources; s++) {
        if (source[s].domain != d) continue;
        const int t = source[s].table, w = arity_of(t);
        for (int64_t i = 0; i < count(t); i++) {
          tails.push(rows[t][i * w + source[s].i]);
          heads.push(rows[t][i * w + source[s].j]);
        }
      }
      for (int64_t i = 0; i < tails.size; i++) start[tails[i] + 1]++, waiting[heads[i]]++;
      for (int64_t i = 0; i < n; i++) start[i + 1] += start[i];
      next.zeros(tails.size);
      dynagrad::Array<int32_t> at;
      at.zeros(n + 1);
      for (int64_t i = 0; i < n; i++) at[i] = start[i];
      for (int64_t i = 0; i < tails.size; i++) next[at[tails[i]]++] = heads[i];
      for (int64_t i = 0; i < n; i++)
        if (!waiting[i]) ready.push((int32_t)i);
      for (int64_t done = 0; done < ready.size; done++) {
        const int32_t from = ready[done];
        for (int64_t e = start[from]; e < start[from + 1]; e++) {
          const int32_t to = next[e];
          if (rank[to] <= rank[from]) rank[to] = rank[from] + 1;
          if (!--waiting[to]) ready.push(to);
        }
      }
      if (ready.size < n) return say("these facts form a cycle, and this header was written for facts without one; "
                                     "write it without facts");
      world.set_rank(d, rank.data, n);
    }
    return true;
  }
  bool check_gaps() {
    using namespace engine;
    for (int g = 0; g < gaps; g++) {
      const int t = gap[g].table, w = arity_of(t), d = table_domain[table_first[t] + gap[g].i];
      for (int64_t r = 0; r < count(t); r++) {
        int64_t a = rows[t][r * w + gap[g].i], b = rows[t][r * w + gap[g].j];
        if (domain_ranked[d]) a = (*world.rank[d])[a], b = (*world.rank[d])[b];
        if (b - a < gap[g].least)
          return say("a fact of %s has argument %d minus argument %d less than %lld, and this header was written for "
                     "facts where that never is so; write it without facts, or with more of them", table_key[t],
                     gap[g].j + 1, gap[g].i + 1, (long long)gap[g].least);
      }
    }
    return true;
  }
  bool check_ranges() {
    using namespace engine;
    double cells = 1;
    for (int i = 0; i < ranges; i++) {
      if (!i || range[i].table != range[i - 1].table) cells = 1;
      const int64_t n = world.domain[range[i].domain].count + range[i].wider;
      cells *= (double)(range[i].last ? (n + 7) / 8 * 8 : n);
      if (cells > most_cells)
        return say("the array of %s would have more than %.0f cells, and this header was written for smaller ones; "
                   "write it without facts", table_key[range[i].table], most_cells);
    }
    return true;
  }

  // -- externals

  inline static thread_local base* asking = nullptr;

 protected:
  template <int T>
  static int32_t answer(const int32_t* codes, uint64_t* to) {
    using namespace engine;
    term arguments[65];
    for (int k = 0; k < arity_of(T); k++) arguments[k] = asking->decode(table_domain[table_first[T] + k], codes[k]);
    weight value;
    if (!asking->ask[T](*asking, arguments, value)) return 0;
    to_words(value, to);
    return 1;
  }
};
