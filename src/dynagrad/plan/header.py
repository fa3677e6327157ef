"""A C++ header for a program: the generated class, and a face for it that a C++ program can use without Python.

The face makes terms, takes facts, runs, looks items up and lists them. It needs the runtime headers and libc alone, no
C++ standard library. Whatever the plan took from facts (an order, a range, the kind of an argument) is checked again at
run time, and a run that does not fit is refused with a message. Nothing here writes files or looks at facts.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..errors import Error, ProgramError
from ..rules.normal import Rules
from ..rules.syntax import Compound, Float, Integer, Symbol
from ..rules.types import Domains
from .classes import COMBINE, Generated, generate
from .layout import DENSE_CELLS
from .model import DomainSummary, FactSummary, Plan, Summary, Table
from .order import rank_sources
from .planner import Options, make_plan

Constant = str | int | float

# What estimates go by where nothing is known.
_ROWS, _DISTINCT, _MEMBERS = 1000, 100, 100


@dataclass(frozen=True)
class Assumed(Summary):
    """A summary made without facts: its numbers are guesses for estimates, and nothing else may depend on them."""


def assume(rules: Rules, domains: Domains, kinds: Sequence[str]) -> Assumed:
    """What may be taken for granted of facts that are not known: nothing but the kinds of arguments."""
    members = {"int": (0, _MEMBERS - 1), "atom": (0, _MEMBERS - 1), "term": (0, -1)}
    summaries = {n: DomainSummary(kind, *members[kind]) for n, kind in enumerate(kinds)}
    facts = {key: guess(rules, key) for key in takers(rules)}
    return Assumed(summaries, facts)


def guess(rules: Rules, key: str) -> FactSummary:
    """Facts of which nothing is known."""
    return FactSummary(_ROWS, (_DISTINCT,) * rules.predicates[key].arity)


def takers(rules: Rules) -> tuple[str, ...]:
    """The predicates that may have facts: inputs, and those of axioms."""
    with_axioms = {axiom.item.key for axiom in rules.axioms}
    return tuple(k for k, p in rules.predicates.items() if not p.external and (p.input or k in with_axioms))


def assumed_plan(rules: Rules, domains: Domains, kinds: Sequence[str], options: Options | None = None) -> Plan:
    """A plan that is right for any facts of these kinds: hash tables, and only the order that the rules show.

    >>> from ..rules import check, infer, parse
    >>> rules = check(parse("f(N+1) += f(N).  f(0) = 1."))
    >>> assumed_plan(rules, infer(rules), ["int"]).tables["f/1"].kind
    'hashed'
    """
    options = options or Options()
    wanted = Options(options.until, options.functions, options.user, 0, options.vector)
    return make_plan(rules, domains, assume(rules, domains, kinds), wanted)


# -- data of the program -----------------------------------------------------------------------------------------------


class _Pool:
    """Terms as rows of numbers, children before parents; no recursion, for terms may be nested deeply."""

    def __init__(self, functors: Sequence[tuple[str, int]]) -> None:
        self.symbols: dict[str, int] = {}
        self.reals: list[float] = []
        self.functors: dict[tuple[str, int], int] = {}
        self.nodes: list[tuple[str, int]] = []
        self.first: list[int] = [0]
        self.children: list[int] = []
        self.known: dict[tuple[type, Constant], int] = {}
        for name, arity in functors:
            self.functor(name, arity)

    def symbol(self, name: str) -> int:
        return self.symbols.setdefault(name, len(self.symbols))

    def functor(self, name: str, arity: int) -> int:
        self.symbol(name)
        return self.functors.setdefault((name, arity), len(self.functors))

    def _node(self, kind: str, payload: int, children: Sequence[int] = ()) -> int:
        self.nodes.append((kind, payload))
        self.children.extend(children)
        self.first.append(len(self.children))
        return len(self.nodes) - 1

    def plain(self, value: Constant) -> int:
        place = (type(value), value)
        if place not in self.known:
            if isinstance(value, str):
                node = self._node("s", self.symbol(value))
            elif isinstance(value, int):
                node = self._node("i", value)
            else:
                self.reals.append(value)
                node = self._node("r", len(self.reals) - 1)
            self.known[place] = node
        return self.known[place]

    def add(self, value: object) -> int:
        """The node of a syntax term, a Python atom, or a compound written `("term", functor, arguments)`."""
        done: list[int] = []
        stack: list[tuple[object, bool]] = [(value, False)]
        while stack:
            at, ready = stack.pop()
            plain = _plain(at)
            if plain is not None:
                done.append(self.plain(plain))
                continue
            functor, arguments = _parts(at)
            if ready:
                children = done[len(done) - len(arguments) :]
                del done[len(done) - len(arguments) :]
                done.append(self._node("c", self.functor(functor, len(arguments)), children))
            else:
                stack.append((at, True))
                stack.extend((a, False) for a in reversed(arguments))
        return done[0]


def _plain(value: object) -> Constant | None:
    match value:
        case Symbol(name=name):
            return name
        case Integer(value=number):
            return number
        case Float(value=real):
            return real
        case str() | int() | float():
            return value
    return None


def _parts(value: object) -> tuple[str, Sequence[object]]:
    if isinstance(value, Compound):
        return value.functor, value.arguments
    assert isinstance(value, tuple)
    return value[1], value[2]


def _words(plan: Plan, value: float | int) -> list[int]:
    """A number of the program's text, in the 8-byte words that the semiring reads."""
    match plan.semiring:
        case "count":
            return [int(value) & (2**64 - 1), int(value) >> 64]
        case "boolean":
            return [_double(1.0 if value else 0.0)]
        case "expectation":
            return [_double(float(value)), *[_double(0.0)] * plan.vector]
    return [_double(float(value))]


def _double(value: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


# -- text --------------------------------------------------------------------------------------------------------------

# Words of C++, and names that the face of a program has itself.
_RESERVED = frozenset(
    re.findall(
        r"\w+",
        """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const consteval
    constexpr constinit continue co_await co_return co_yield decltype default delete do double dynamic_cast else enum
    explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
    nullptr operator or or_eq private protected public register reinterpret_cast requires return short signed sizeof
    static static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename
    union unsigned using virtual void volatile wchar_t while xor xor_eq std dynagrad
    symbol integer real compound list cons is_symbol is_integer is_real is_compound name number to_double arity part
    print settings report run error result item items term argument weight chart base engine external one give take_all
    look_up answer ask asked from_words to_words main unix linux stdin stdout stderr errno assert
    """,
    )
)

_TYPES = {"boolean": "bool", "count": "unsigned __int128"}


def cxx_name(name: str) -> str:
    """A name as C++ may have it.

    >>> cxx_name("goal"), cxx_name("for"), cxx_name("N P"), cxx_name("2nd")
    ('goal', 'for_', 'N_P', 'p2nd')
    """
    plain = re.sub(r"__+", "_", re.sub(r"[^A-Za-z0-9_]", "_", name))
    if not plain[:1].isalpha():
        plain = "p" + plain
    return plain + "_" if plain in _RESERVED else plain


def _literal(text: str) -> str:
    """A C++ string literal; bytes beyond plain ASCII as octal escapes, which end after three digits."""
    out = []
    for byte in text.encode("utf-8", "surrogatepass"):
        char = chr(byte)
        out.append(char if 32 <= byte < 127 and char not in '"\\?' else f"\\{byte:03o}")
    return f'"{"".join(out)}"'


def _array(kind: str, name: str, values: Iterable[object], end: str = "0") -> str:
    """A constant array; it never is empty, because C++ knows none that is."""
    listed = [*map(str, values), end]
    lines: list[str] = []
    for at in range(0, len(listed), 16):
        lines.append("    " + ", ".join(listed[at : at + 16]))
    body = listed[0] if len(listed) == 1 else "\n" + ",\n".join(lines) + "\n"
    return f"inline constexpr {kind} {name}[] = {{{body}}};"


def header(plan: Plan, name: str, constants: Mapping[int, Sequence[Constant]]) -> str:
    """The text of a header that declares class `name::chart`; `constants` are those of each domain."""
    if plan.semiring == "user" or plan.functions:
        raise Error("a C++ header can be written only of programs without semirings or functions defined in Python")
    deep = next((t for t in plan.tables.values() if t.arity > 60), None)
    if deep is not None:
        raise Error(f"{deep.key} has more arguments than the 60 that a C++ header allows")
    name = cxx_name(name)
    generated = generate(plan, embed=False)
    before, include, body = generated.source.partition("#include <dynagrad/chart.hpp>\n")
    if not include:
        raise ProgramError("the generated class does not include its runtime")
    body = body.replace("namespace {\n", "namespace engine {\n", 1).rstrip()
    body = body.removesuffix("}  // namespace").rstrip()
    tables = sorted(plan.tables.values(), key=lambda t: t.number)
    type_ = _TYPES.get(plan.semiring, "double")
    if plan.semiring == "expectation":
        type_ = f"struct {{ double p; double r[{plan.vector}]; }}"
    weight = f"using weight = {type_};" if "{" not in type_ else f"struct weight {type_.removeprefix('struct ')};"
    parts = [
        before.rstrip() + "\n//",
        _usage(plan, name),
        "#pragma once",
        "#pragma GCC system_header  // no warnings about generated code",
        "#include <stdarg.h>",
        "#include <stdio.h>",
        "#include <dynagrad/chart.hpp>",
        "",
        f"namespace {name} {{",
        body.strip("\n"),
        "",
        "// -- what the class needs to know of the program's text",
        "",
        *_data(plan, generated, tables, constants),
        "}  // namespace engine",
        "",
        "// A value, in the scale of the semiring.",
        weight,
        _SUPPORT.strip("\n"),
        "",
        *_chart(plan, tables, generated),
        "",
        f"}}  // namespace {name}",
        "",
    ]
    return "\n".join(parts)


def _usage(plan: Plan, name: str) -> str:
    given = [t for t in plan.tables.values() if _given(plan, t)]
    asked = [t for t in plan.tables.values() if t.kind in ("dense", "hashed")]
    lines = ["How to use it (compile as C++20, with the folder of the runtime headers in the include path):", ""]
    lines.append(f"    {name}::chart chart;")
    for table in given[:4]:
        codes = [plan.summary.domains[d].kind for d in table.domains]
        arguments = "".join(f"{'1' if kind == 'int' else chr(34) + 'a' + chr(34)}, " for kind in codes)
        lines.append(f"    chart.add_{cxx_name(_name(table))}({arguments}{name}::one());")
    lines.append('    if (!chart.run()) fprintf(stderr, "%s\\n", chart.error());')
    for table in asked[-1:]:
        codes = [plan.summary.domains[d].kind for d in table.domains]
        arguments = ", ".join("1" if kind == "int" else '"a"' for kind in codes)
        lines.append(f"    auto found = chart.{cxx_name(_name(table))}({arguments});  // found.derived, found.value")
        lines.append(f"    for (auto& item : chart.all_{cxx_name(_name(table))}_{table.arity}()) use(item);")
        lines[-1] += "  // item[0], ..., item.value"
    return "\n".join(f"// {line}".rstrip() for line in lines)


def _given(plan: Plan, table: Table) -> bool:
    """Whether facts may be given."""
    derived = table.kind in ("dense", "hashed")
    known = table.key in plan.summary.facts or plan.rules.predicates[table.key].input
    return table.kind == "facts" or (derived and known)


def _name(table: Table) -> str:
    return table.key.rsplit("/", 1)[0]


def _data(
    plan: Plan, generated: Generated, tables: Sequence[Table], constants: Mapping[int, Sequence[Constant]]
) -> list[str]:
    pool = _Pool(generated.functors)
    slots = [(-1 if domain is None else domain, pool.add(value)) for domain, value in generated.constants]
    members = [(d, pool.add(v)) for d, values in constants.items() for v in values]
    axioms: list[int] = []
    words: list[int] = []
    for axiom in plan.rules.axioms:
        if axiom.item.key in plan.tables:
            axioms.append(plan.tables[axiom.item.key].number)
            axioms.extend(map(pool.add, axiom.item.arguments))
            words.extend(_words(plan, axiom.value))
    pool.symbol("nil")
    pool.functor("cons", 2)
    first = [0]
    for table in tables:
        first.append(first[-1] + table.arity)
    kinds = {"int": "'i'", "atom": "'a'", "term": "'t'"}
    domains = plan.summary.domains
    sources = [
        f"{{{d}, {plan.tables[key].number}, {i}, {j}}}"
        for d, found in rank_sources(plan.rules, plan.domains).items()
        if domains[d].ranked
        for key, i, j in found
        if key in plan.tables
    ]
    gaps = [
        f"{{{plan.tables[key].number}, {i}, {j}, {least}}}"
        for key, pairs in plan.gaps.items()
        if key in plan.tables and _given(plan, plan.tables[key])
        for (i, j), least in pairs.items()
    ]
    dense = [t for t in tables if t.kind == "dense" and t.arity]
    ranges = [
        f"{{{t.number}, {t.domains[i]}, {_wider(t, i)}, {str(place == t.arity - 1).lower()}}}"
        for t in dense
        for place, i in enumerate(t.order)
    ]
    zeros = [COMBINE[t.aggregator][1] if plan.semiring == "plain" and t.kind != "facts" else "0" for t in tables]
    return [
        "struct gap_t { int table, i, j; int64_t least; };",
        "struct source_t { int domain, table, i, j; };",
        "struct range_t { int table, domain; int64_t wider; bool last; };",
        f"inline constexpr int domains = {len(domains)}, tables = {len(tables)}, functors = {len(pool.functors)};",
        f"inline constexpr int symbols = {len(pool.symbols)}, nodes = {len(pool.nodes)}, slots = {len(slots)};",
        f"inline constexpr int members = {len(members)}, axioms = {len(plan.rules.axioms)}, gaps = {len(gaps)};",
        f"inline constexpr int axiom_numbers = {len(axioms)}, sources = {len(sources)}, ranges = {len(ranges)};",
        f"inline constexpr double most_cells = {DENSE_CELLS};",
        f"inline constexpr bool plain_values = {str(plan.semiring == 'plain').lower()};",
        _array("char", "domain_kind", (kinds[domains[d].kind] for d in sorted(domains))),
        _array("bool", "domain_ranked", (str(domains[d].ranked).lower() for d in sorted(domains)), "false"),
        _array("char* const", "table_key", (_literal(t.key) for t in tables), "nullptr").replace(
            "char*", "const char*"
        ),
        _array("int", "table_first", first),
        _array("int", "table_domain", (d for t in tables for d in t.domains)),
        _array("bool", "table_given", (str(_given(plan, t)).lower() for t in tables), "false"),
        _array("double", "table_zero", zeros),
        _array("const char* const", "symbol_text", map(_literal, pool.symbols), "nullptr"),
        _array("int64_t", "symbol_length", (len(s.encode("utf-8", "surrogatepass")) for s in pool.symbols)),
        _array("double", "real_value", map(_real, pool.reals)),
        _array("int", "functor_name", (pool.symbols[name] for name, _ in pool.functors)),
        _array("int", "functor_arity", (arity for _, arity in pool.functors)),
        _array("char", "node_kind", (f"'{kind}'" for kind, _ in pool.nodes)),
        _array("int32_t", "node_payload", (_int(payload) for _, payload in pool.nodes)),
        _array("int", "node_first", pool.first),
        _array("int", "node_child", pool.children),
        _array("int", "slot", (x for pair in slots for x in pair)),
        _array("int", "member", (x for pair in members for x in pair)),
        _array("int", "axiom", axioms),
        _array("uint64_t", "axiom_words", (f"{w:#x}u" for w in words)),
        _array("uint64_t", "rule_words", (f"{w:#x}u" for x in generated.weights for w in _words(plan, x))),
        _array("gap_t", "gap", gaps, "{}"),
        _array("source_t", "source", sources, "{}"),
        _array("range_t", "range", ranges, "{}"),
    ]


def _int(value: int) -> str:
    return str(value) if value > -(2**31) else "INT32_MIN"


def _real(value: float) -> str:
    return value.hex()


def _wider(table: Table, i: int) -> int:
    extent = table.extents[i]
    return 0 if extent is None else extent.above - extent.below


def _chart(plan: Plan, tables: Sequence[Table], generated: Generated) -> list[str]:
    """The class that a user sees: a few functions per predicate."""
    out = ["// The program's chart. A function may be called between runs as often as one likes; `run` starts over."]
    out += ["class chart : public base {", " public:"]
    taken: set[tuple[str, int, str]] = set()
    names: dict[str, str] = {}
    for table in tables:
        wanted = cxx_name(_name(table))
        while (wanted, table.arity, "") in taken:
            wanted += "x"
        taken.add((wanted, table.arity, ""))
        names[table.key] = wanted
    counts = {(names[t.key], t.arity) for t in tables if _given(plan, t)}
    for table in tables:
        name, n = names[table.key], table.arity
        parameters = ", ".join(f"argument a{i + 1}" for i in range(n))
        pack = f"const argument given[] = {{{', '.join(f'a{i + 1}' for i in range(n)) or '0'}}};"
        out += ["", f"  // {table.key}{_summary(plan, table)}"]
        number = table.number
        if table.kind == "external":
            out.append("  // f is called for each value that is asked for")
            out.append(
                f"  void set_{name}_{n}(external f) {{ ask[{number}] = f, asked[{number}] = answer<{number}>; }}"
            )
            continue
        if _given(plan, table):
            comma = ", " if n else ""
            give = f"{{ {pack} return give({number}, given, "
            out.append(f"  bool add_{name}({parameters}{comma}weight value) {give}value); }}")
            if (name, n - 1) not in counts:
                out.append(f"  bool add_{name}({parameters}) {give}one()); }}")
            out.append(f"  void clear_{name}_{n}() {{ take_all({number}); }}")
        out.append(f"  result {name}({parameters}) {{ {pack} return look_up({number}, given); }}")
        out.append(f"  items<{n}> all_{name}_{n}() {{ return items<{n}>(this, {number}); }}")
    out.append("};")
    return out


def _summary(plan: Plan, table: Table) -> str:
    kinds = {"int": "integer", "atom": "symbol", "term": "term"}
    arguments = ", ".join(kinds[plan.summary.domains[d].kind] for d in table.domains)
    return f": {arguments}" if arguments else ""


_SUPPORT = r"""
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

// An item that was looked up. What was never derived has the value of nothing.
struct result {
  bool derived;
  weight value;
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
  return from_words(words);
}

class base;
// The value of an item that the host computes; false where there is none.
using external = bool (*)(base& chart, const term* arguments, weight& value);

class base {
  template <int N> friend class items;

 public:
  // Limits: max_pops, timeout_ns, max_items, max_bytes (-1 for none), tolerance.
  dynagrad::Settings settings;
  // What the last run did: pops, updates, items, bytes, nanoseconds and more.
  dynagrad::Report report;

  base() {
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
        case 'i': node.push(integer(p).number); break;
        case 's': node.push(symbol(symbol_text[p], symbol_length[p]).number); break;
        case 'r': node.push(real(real_value[p]).number); break;
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
  ~base() {
    drop();
    for (int t = 0; t < engine::tables; t++) release(t);
    for (int64_t i = 0; i < texts.size; i++) free(texts[i].data);
  }
  base(const base&) = delete;
  base& operator=(const base&) = delete;

  // -- making terms

  term symbol(const char* name) { return symbol(name, (int64_t)strlen(name)); }
  term symbol(const char* name, int64_t length) {
    return {world.terms.make(dynagrad::Terms::atom, text_number(name, length), nullptr, 0)};
  }
  term integer(int64_t n) {
    if (n != (int32_t)n) fail("the integer %lld is beyond 32 bits", (long long)n);
    return {world.terms.make(dynagrad::Terms::integer, (int32_t)n, nullptr, 0)};
  }
  term real(double x) { return {world.terms.make(dynagrad::Terms::atom, real_number(x + 0.0), nullptr, 0)}; }
  template <class... A>
  term compound(const char* name, A... arguments) {
    const int32_t all[] = {of(argument(arguments)).number...};
    const int32_t f = functor(text_number(name, (int64_t)strlen(name)), (int)sizeof...(A));
    return {world.terms.make(dynagrad::Terms::compound, f, all, (int32_t)sizeof...(A))};
  }
  template <class... A>
  term list(A... elements) {
    const term all[] = {of(argument(elements))..., term{}};
    term made = symbol("nil");
    for (int64_t i = (int64_t)sizeof...(A) - 1; i >= 0; i--) made = cons(all[i], made);
    return made;
  }
  term cons(argument first, argument rest) {
    const int32_t pair[] = {of(first).number, of(rest).number};
    return {world.terms.make(dynagrad::Terms::compound, functor(text_number("cons", 4), 2), pair, 2)};
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
  term part(term t, int i) const { return {world.terms.arguments(t.number)[i]}; }
  // Prints a term as rules write it.
  void print(term t, FILE* to = stdout) const {
    struct Piece { int kind; int32_t number; };  // 0: a term, 1: the rest of a list, 2: a character
    dynagrad::Array<Piece> stack;
    stack.push({0, t.number});
    while (stack.size) {
      const Piece p = stack[--stack.size];
      if (p.kind == 2) {
        fputc(p.number, to);
        continue;
      }
      const term at{p.number};
      const bool pair = is_compound(at) && arity(at) == 2 && !strcmp(name(at), "cons");
      if (p.kind == 1) {
        if (pair) {
          fputc(',', to);
          stack.push({1, part(at, 1).number});
          stack.push({0, part(at, 0).number});
        } else {
          stack.push({2, ']'});
          if (!is_symbol(at) || strcmp(name(at), "nil")) {
            fputc('|', to);
            stack.push({0, at.number});
          }
        }
      } else if (pair) {
        fputc('[', to);
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
        fprintf(to, "%s(", name(at));
        stack.push({2, ')'});
        for (int i = arity(at) - 1; i >= 0; i--) {
          stack.push({0, part(at, i).number});
          if (i) stack.push({2, ','});
        }
      } else if (is_integer(at)) {
        fprintf(to, "%d", (int)number(at));
      } else if (is_real(at)) {
        fprintf(to, "%.17g", to_double(at));
      } else {
        fputs(at == t || strcmp(name(at), "nil") ? name(at) : "[]", to);
      }
    }
  }

  // -- running

  // Runs on the facts as they are, from the start. False where it did not come to its end; `error` says why.
  bool run() {
    using namespace engine;
    drop();
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
    chart_ = new (malloc(sizeof(program)), dynagrad::Here{}) program(&world, facts, weights, rule_words);
    for (int t = 0; t < tables; t++)
      if (ask[t]) chart_->externals[t] = asked[t];
    chart_->settings = settings;
    {
      dynagrad::Unlocked unlocked(nullptr, nullptr);
      base* const before = asking;
      asking = this;
      chart_->unlocked = &unlocked;
      chart_->run();
      chart_->unlocked = nullptr;
      asking = before;
    }
    report = chart_->report;
    static const char* const why[] = {
        "", "it met its limit on pops", "it met its limit on time", "it came to its last item",
        "it met its limit on items", "it met its limit on bytes", "a value left the range of the semiring",
        "it was interrupted", "integer arithmetic of arguments left 32 bits", "it paused", "an item has two values",
        "a function of the host failed"};
    if (report.status != dynagrad::done) say("the run stopped: %s", why[report.status]);
    return report.status == dynagrad::done;
  }
  // What went wrong, or nothing. A fact or a term that cannot be stays wrong: make a new chart.
  const char* error() const { return message; }

 protected:
  using Answer = int32_t (*)(const int32_t*, uint64_t*);
  external ask[engine::tables + 1] = {};
  Answer asked[engine::tables + 1] = {};

  bool give(int table, const argument* a, weight value) {
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
    result found{false, zero_of(table)};
    int32_t codes[64] = {};
    for (int k = 0; k < arity_of(table); k++)
      if (!encode(table, k, a[k], false, codes[k])) return found;
    uint64_t w[engine::semiring::words];
    if (chart_ && chart_->get(table, codes, w)) found = {true, from_words(w)};
    return found;
  }

 private:
  struct Text { char* data; int64_t length; double number; };  // data is null for floats
  struct Functor { int32_t name, arity; };
  dynagrad::World world;
  engine::program* chart_ = nullptr;
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
  void* facts[engine::tables + 1] = {};
  void* weights[engine::tables + 1] = {};
  bool bad = false;
  char message[400] = "";

  static int arity_of(int t) { return engine::table_first[t + 1] - engine::table_first[t]; }
  dynagrad::Terms::Node node_of(term t) const { return world.terms.node(t.number); }
  bool is_atom(term t) const { return node_of(t).kind == dynagrad::Terms::atom; }

  __attribute__((format(printf, 2, 3))) bool say(const char* format, ...) {
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
    if (length >= 0) {
      made.data = (char*)malloc((size_t)length + 1);
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
    return a.kind == argument::is_integer ? integer(a.number) : symbol(a.text, (int64_t)a.length);
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
      numbers[t] = (int32_t)members_of[d].size;
      members_of[d].push(t);
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
      case 'i': return integer(code);
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
    if (!facts[t]) return;
    engine::program::facts_free(t, facts[t]);
    auto* w = (dynagrad::Weights<engine::semiring>*)weights[t];
    w->~Weights();
    free((void*)w);
    facts[t] = weights[t] = nullptr;
  }
  void drop() {
    if (!chart_) return;
    chart_->~program();
    free((void*)chart_);
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
    facts[t] = engine::program::facts_new(&world, t, data, m);
    weights[t] = engine::program::weights_new(t, facts[t], words[t].data);
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
    for (int64_t r = 0; r < n; r++) {
      item<N> made;
      for (int k = 0; k < N; k++)
        made.arguments[k] = chart->decode(engine::table_domain[engine::table_first[table] + k], codes[r * N + k]);
      made.value = from_words(words.data + r * engine::semiring::words);
      all.push(made);
    }
  }
  int64_t size() const { return all.size; }
  const item<N>* begin() const { return all.data; }
  const item<N>* end() const { return all.data + all.size; }

 private:
  dynagrad::Array<item<N>> all;
};
"""
