"""The classes that a user of a header calls: a few functions for each predicate, named after it.

They only name and number; what they do is in `runtime/include/dynagrad/interface`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from ....plan.model import Plan, TableLayout
from ....plan.traits import is_external, takes_facts
from ...cxx import comment, paragraphs
from .names import cxx_name


def member_names(plan: Plan) -> Mapping[str, str]:
    """The C++ name of each predicate, such that no two functions have the same name and number of arguments.

    Predicates of different arities share a name. Where functions would clash, as those of `add_s/1` and of adding facts
    to `s/1` do, one predicate gets a number: the one with the longer name, or whose name is not a C++ identifier.
    """
    taken: dict[tuple[str, int], str] = {}
    names: dict[str, str] = {}

    def key(table: TableLayout) -> tuple[bool, int, int]:
        name = _name(table)
        return cxx_name(name) != name, len(name), table.number

    for table in sorted(plan.tables.values(), key=key):
        plain = name = cxx_name(_name(table))
        for count in itertools.count(2):
            clashes = [f for f in _functions(plan, table, name) if f in taken]
            # `add` without a value clashes with that of a predicate with one argument less: only the latter is made
            if all(f[0] == f"add_{name}" and taken[f] == name for f in clashes):
                break
            name = f"{plain}_{count}"
        taken.update(dict.fromkeys(_functions(plan, table, name), name))
        names[table.key] = name
    return names


def _name(table: TableLayout) -> str:
    return table.key.rsplit("/", 1)[0]


def _functions(plan: Plan, table: TableLayout, name: str) -> list[tuple[str, int]]:
    """The functions of a predicate, if it has this name, with the numbers of their arguments."""
    n = table.arity
    if is_external(table):
        return [(f"set_{name}_{n}", 1)]
    functions = [(name, n), (f"all_{name}_{n}", 0)]
    if takes_facts(plan, table):
        functions += [(f"add_{name}", n), (f"add_{name}", n + 1), (f"clear_{name}_{n}", 0), (f"added_{name}_{n}", 0)]
    return functions


def chart(plan: Plan, tables: Sequence[TableLayout]) -> list[str]:
    """The lines of class `chart`, with a few functions for each predicate."""
    parts: list[list[str]] = []
    names = member_names(plan)
    counts = {(names[t.key], t.arity) for t in tables if takes_facts(plan, t)}
    if plan.adjoint:
        parts.append([_GRADIENT.strip("\n")])
    for table in tables:
        name, n = names[table.key], table.arity
        parameters, pack = _arguments(table)
        out = [f"  // {comment(table.key)}{_summary(plan, table)}"]
        parts.append(out)
        number = table.number
        if is_external(table):
            out.append("  // f is called for each value that is asked for")
            out.append(
                f"  void set_{name}_{n}(external f) {{ ask[{number}] = f, asked[{number}] = answer<{number}>; }}"
            )
            continue
        if takes_facts(plan, table):
            comma = ", " if n else ""
            give = f"{{ {pack} return give({number}, given, "
            out.append(f"  bool add_{name}({parameters}{comma}weight value) {give}value); }}")
            if (name, n - 1) not in counts:
                out.append(f"  bool add_{name}({parameters}) {give}one()); }}")
            out.append(f"  void clear_{name}_{n}() {{ take_all({number}); }}")
        out.append(f"  result {name}({parameters}) {{ {pack} return look_up({number}, given); }}")
        out.append(f"  items<{n}> all_{name}_{n}() {{ return items<{n}>(this, {number}); }}")
    return [
        "// The program's chart. Its functions may be called any number of times between runs; `run` starts over.",
        "class chart : public base {",
        " public:",
        *paragraphs(parts),
        "};",
    ]


_GRADIENT = """
  // The derivatives of an item in the last run: `gradient(goal())`; or of a sum of items with their cotangents:
  // `gradient({{goal(), 1.0}, {other("a"), 0.5}})`. Each call is one backward pass.
  derivatives gradient(const result& item) {
    const weighted one_item{item};
    return derivatives(this, &one_item, 1);
  }
  template <size_t N>
  derivatives gradient(const weighted (&sum)[N]) { return derivatives(this, sum, N); }
  derivatives gradient(const weighted* sum, size_t count) { return derivatives(this, sum, count); }
"""

_MEANING = """
// The derivatives of an item, or of a sum of items: of each predicate the derivative with respect to one fact or item,
// to all items in the order in which the chart lists them, and to the facts that were added, in that order. The
// derivative with respect to an item is that with respect to a number added to it. Numbers are in the semiring's scale:
// those of `log` are with respect to log weights; those of `viterbi` and `tropical` count uses in the winner.
"""


def derivatives(plan: Plan, tables: Sequence[TableLayout]) -> list[str]:
    """The lines of class `derivatives`, a gradient, with functions for the same predicates."""
    out = [_MEANING.strip("\n"), "class derivatives : public derivatives_base {", " public:"]
    out.append("  using derivatives_base::derivatives_base;")
    names = member_names(plan)
    for table in tables:
        name = names[table.key]
        n, number = table.arity, table.number
        if is_external(table):
            continue
        parameters, pack = _arguments(table)
        out += ["", f"  // {comment(table.key)}{_summary(plan, table)}"]
        out.append(f"  weight {name}({parameters}) {{ {pack} return look_up({number}, given); }}")
        out.append(f"  items<{n}> all_{name}_{n}() {{ return items_of<{n}>({number}); }}")
        if takes_facts(plan, table):
            out.append(f"  items<{n}> added_{name}_{n}() {{ return rows_of<{n}>({number}); }}")
    out += ["", " private:", "  friend class chart;", "};"]
    return out


def _arguments(table: TableLayout) -> tuple[str, str]:
    """The parameters of a function, and the statement that makes an array of its arguments."""
    names = [f"a{i + 1}" for i in range(table.arity)]
    return ", ".join(f"argument {a}" for a in names), f"const argument given[] = {{{', '.join(names) or '0'}}};"


def _summary(plan: Plan, table: TableLayout) -> str:
    kinds = {"int": "integer", "atom": "symbol", "term": "term"}
    arguments = ", ".join(kinds[plan.summary.domains[d].kind] for d in table.domains)
    return f": {arguments}" if arguments else ""
