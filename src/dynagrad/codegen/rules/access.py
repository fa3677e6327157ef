"""Access to a generated class from outside: facts in, items and values out, by number.

Python (through `outside/runtime.hpp`) and C++ programs name a predicate by the number of its table. Lookups are the
same code for all programs (`storage/looking.hpp`), over a description of the program's tables.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...plan.model import Passes, TableLayout
from ...plan.traits import has_axioms
from ...rules.aggregators import AGGREGATORS
from .context import ClassContext, own_plus_name


def write_access(context: ClassContext) -> None:
    """The members that `outside/abi.hpp` and the C++ header call, other than `Looking`; and flags that are not as in
    `ChartBase`."""
    out, plan = context.out, context.plan
    facts = [*context.facts, *(t for t in context.derived if has_axioms(context.plan, t))]
    _copies(context, facts)
    if Passes.FORWARD not in context.passes:
        out.line("static constexpr bool goes_forward = false;")
    if context.goes_back:
        out.line("static constexpr bool goes_back = true;")
    if plan.changes is not None:
        out.line("static constexpr bool changes = true;")


def _copies(context: ClassContext, facts: Sequence[TableLayout]) -> None:
    """`copies`: how those of a fact join, by the number of its table; a single one where it is the same for all."""
    out, how = context.out, {table.number: _how_copies_join(context, table) for table in facts}
    plain = ("nullptr", "nullptr", "nullptr", str(context.plan.keeps_logs).lower())
    if all(own == plain for own in how.values()):
        out.line(f"static constexpr Copies<semiring> copies[] = {{{{{', '.join(plain)}}}}};")
    else:
        out.open("static constexpr Copies<semiring> copies[] =")
        for number in range(max(how, default=0) + 1):
            out.line(f"{{{', '.join(how.get(number, ('nullptr',)))}}},")
        out.close("};")


def _how_copies_join(context: ClassContext, table: TableLayout) -> tuple[str, ...]:
    """The `Copies` of a table: its plus, the conversion of each number, and a test for copies that contradict."""
    own = own_plus_name(context.own_plus(table))
    plus = own or "nullptr"
    logs = str(context.plan.keeps_logs).lower()
    predicate = context.plan.rules.predicates[table.key]
    if predicate.unjoined:
        return "nullptr", "nullptr", "[](const value_t&, const value_t&) { return true; }", logs, "true"
    if _is_truth(context, table):
        truth = "[](const value_t& v) { return semiring::constant(semiring::primal(v) != 0); }"
        return plus, truth, "nullptr", logs
    if table.aggregator == "=":
        differ = "[](const value_t& a, const value_t& b) { return semiring::primal(a) != semiring::primal(b); }"
        return plus, "nullptr", differ, logs, "true"
    if context.plan.semiring in ("plain", "real"):  # what is too large as a sum
        return plus, "nullptr", f"overflows<semiring, {own or 'semiring::plus'}>", logs
    return plus, "nullptr", "nullptr", logs


def _is_truth(context: ClassContext, table: TableLayout) -> bool:
    """Whether facts are 0 or 1, whatever number is given."""
    predicate = context.plan.rules.predicates[table.key]
    return context.plain and AGGREGATORS[table.aggregator].truth and (predicate.defined or predicate.stated)


def write_external(context: ClassContext) -> None:
    """`external`: calls the host's function for the value of an item."""
    out = context.out
    out.open("bool external(int table, const int32_t* arguments, value_t& value)")
    out.line("uint64_t words[semiring::words] = {};")
    out.line("const int32_t answer = externals[table] ? externals[table](arguments, words) : -1;")
    out.line("if (answer < 0) fail(host_error, table, -1);")
    out.line("if (answer > 0) value = semiring::read(words);")
    out.line("return answer > 0;")
    out.close()
    out.line()
