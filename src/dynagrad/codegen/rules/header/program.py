"""`header`: a C++ header for a program: the generated class, and an interface that needs no Python.

It has what belongs to the program; what all programs have, it includes. The interface makes terms, takes facts, runs,
looks up and lists items, and differentiates. It needs the runtime headers and libc alone, no C++ standard library.
Whatever the plan assumes of facts (an order, a range, the kind of an argument) is checked at run time, and facts that
do not fit are refused with a message. Nothing here writes files or looks at facts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ....errors import Error
from ....plan.model import Derivatives, Plan
from ....plan.traits import is_derived, takes_facts
from ....rules.semirings import SEMIRINGS
from ..program import generate
from .data import Constant, data
from .members import chart, derivatives, member_names
from .names import namespace


def header(plan: Plan, name: str, constants: Mapping[int, Sequence[Constant]], *, gradient: bool = True) -> str:
    """The text of a header that declares class `name::chart`; `constants` has those of each domain.

    With `gradient`, where the semiring has derivatives, runs keep a tape and the chart has a member `gradient`.
    """
    if plan.semiring == "user":
        raise Error("a C++ header cannot be written for a program with a semiring defined in Python")
    deep = next((t for t in plan.tables.values() if t.arity > 60), None)
    if deep is not None:
        raise Error(f"{deep.key} has more arguments than the 60 that a C++ header allows")
    name = namespace(name)
    plan = replace(plan, derivatives=Derivatives() if gradient and SEMIRINGS[plan.semiring].jets else None)
    generated = generate(plan, embed=False)
    tables = sorted(plan.tables.values(), key=lambda t: t.number)
    parts = [
        *generated.rules,
        "//",
        _usage(plan, name, generated.flags),
        "#pragma once",
        "#pragma GCC system_header  // no warnings about generated code",
        *_STANDARD,
        "#include <stdarg.h>",
        "#include <stdio.h>",
        *generated.includes,
        "",
        *generated.shared,
        f"namespace {name} {{",
        "namespace engine {",
        *generated.body,
        "",
        "// -- what the class needs to know of the program's text",
        "",
        *data(plan, generated, tables, constants),
        "}  // namespace engine",
        "",
        "// A value, in the scale of the semiring.",
        SEMIRINGS[plan.semiring].weight.format(vector=plan.vector),
        _interface("values"),
        _interface("base"),
        _interface("items"),
        *([_interface("gradient"), "", *derivatives(plan, tables)] if plan.adjoint else []),
        "",
        *chart(plan, tables),
        "",
        f"}}  // namespace {name}",
        "",
        "#endif  // C++20",
        "",
    ]
    return "\n".join(parts)


# A compiler for an older standard has hundreds of errors to report, and is to report this one alone.
_STANDARD = (
    "#if !defined(__cplusplus) || __cplusplus < 202002L",
    '#error "This header needs C++20: compile it as C++, with -std=c++20 or a newer standard."',
    "#else",
)


def _usage(plan: Plan, name: str, flags: Sequence[str]) -> str:
    names = member_names(plan)
    takers = [t for t in plan.tables.values() if takes_facts(plan, t)]
    gradient = "    (no gradient: this header was written without)"
    if SEMIRINGS[plan.semiring].no_derivatives:
        gradient = f"    (no gradient: {SEMIRINGS[plan.semiring].no_derivatives})"
    asked = [t for t in plan.tables.values() if is_derived(t)]
    lines = ["How to use it (compile as C++20, with the folder of the runtime headers in the include path):", ""]
    if flags:
        lines[:1] = [*lines[:1], f"Its functions need the flags {' '.join(flags)}."]
    lines.append(f"    {name}::chart chart;  // what all charts have: dynagrad/interface/base.hpp")
    for table in takers[:4]:
        codes = [plan.summary.domains[d].kind for d in table.domains]
        arguments = "".join(f"{'1' if kind == 'int' else chr(34) + 'a' + chr(34)}, " for kind in codes)
        lines.append(f"    chart.add_{names[table.key]}({arguments}{name}::one());")
    lines.append('    if (!chart.run()) fprintf(stderr, "%s\\n", chart.error());')
    for table in asked[-1:]:
        codes = [plan.summary.domains[d].kind for d in table.domains]
        arguments = ", ".join("1" if kind == "int" else '"a"' for kind in codes)
        lines.append(f"    auto found = chart.{names[table.key]}({arguments});  // found.derived, found.value")
        lines.append(f"    for (auto& item : chart.all_{names[table.key]}_{table.arity}()) use(item);")
        lines[-1] += "  // item[0], ..., item.value"
    if not plan.adjoint:
        return _commented([*lines, gradient])
    if asked:
        lines.append(
            "    auto gradient = chart.gradient(found);  // of several: chart.gradient({{found, 1.0}, {other, 0.5}})"
        )
        lines.append('    if (!gradient) fprintf(stderr, "%s\\n", gradient.error());')
    for table in takers[:1]:
        what = f"gradient.added_{names[table.key]}_{table.arity}()"
        lines.append(f"    for (auto& fact : {what}) use(fact);  // fact.value: the derivative, in the order added")
    return _commented(lines)


def _commented(lines: Sequence[str]) -> str:
    return "\n".join(f"// {line}".rstrip() for line in lines)


def _interface(part: str) -> str:
    """Includes what the interfaces of all programs have, within the namespace of this one: it needs `engine` there."""
    return f"#include <dynagrad/interface/{part}.hpp>"
