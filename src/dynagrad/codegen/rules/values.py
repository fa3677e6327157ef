"""Right sides, their adjoints, and users' semirings as C++, from their op graphs (`plan/right_sides.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ... import ir
from ...autodiff import generate_adjoints
from ...ir import Node
from ...passes.simplify import simplify
from ...plan.right_sides import TracedSemiring, called, component, inline, lift, to_node
from ...rules.normal import NormalRule
from ..expression import cxx
from .functions import Code, Functions


def value_cxx(
    rule: NormalRule,
    functions: Mapping[str, Callable[..., Any]],
    names: Mapping[str, str],
    prefix: str,
    order: int,
    collected: Functions,
) -> Code:
    """The value of a rule, over reals, or over jets of `order` directions."""
    return lifted_cxx([to_node(rule.value, functions)], names, prefix, order, collected, called(rule.value, functions))


def adjoints_cxx(
    rule: NormalRule,
    functions: Mapping[str, Callable[..., Any]],
    names: Mapping[str, str],
    prefix: str,
    order: int,
    collected: Functions,
) -> tuple[Code, dict[int, str]]:
    """The contributions of a rule's value to its antecedents' adjoints; its own is the variable `g` of `names`."""
    places = sorted(int(name[1:]) for name in names if name != "g")
    variables = [ir.variable(f"x{i}") for i in places]
    value = to_node(rule.value, functions)

    def adjoints() -> list[Node | None]:
        found = generate_adjoints([value], [ir.variable("g")], variables)
        return [found[v] for v in variables]

    kept = adjoints() if inline([value]) else collected.once((value, tuple(places)), adjoints)
    connected = [(i, node) for i, node in zip(places, kept, strict=True) if node is not None]
    code = lifted_cxx([node for _, node in connected], names, prefix, order, collected, called(rule.value, functions))
    return code, {i: text for (i, _), text in zip(connected, code.results, strict=True)}


def lifted_cxx(
    outputs: Sequence[Node], names: Mapping[str, str], prefix: str, order: int, collected: Functions, name: str
) -> Code:
    """C++ of graphs over reals, or over jets with 2**order components, which for variable `x` are `x.v[0]`, ...

    Graphs that are no expressions become functions among those `collected`, where errors call them `name`.
    """
    texts: Mapping[str, str] = names
    if order:
        texts = {component(n, s): f"{text}.v[{s}]" for n, text in names.items() for s in range(1 << order)}

    def components() -> list[Node]:
        return [c for parts in lift(outputs, list(names), order) for c in parts] if order else list(outputs)

    if inline(outputs):
        code = Code(*cxx(simplify(components()), texts, prefix=prefix))
    else:
        code = collected.call(collected.once((*outputs, *names, order), components), texts, prefix, name)
    if not order:
        return code
    size = 1 << order
    jets = [
        "value_t{{" + ", ".join(f"(double)({r})" for r in code.results[n * size : (n + 1) * size]) + "}}"
        for n in range(len(outputs))
    ]
    return replace(code, results=jets)


# Whether plus selects the value that less calls better. If less calls neither better, plus may keep its first argument
# always, or its second always, but may not prefer one of the values.
_AGREE = [
    "  static bool agree(const Value& a, const Value& b) {",
    "    if (!valid(a) || !valid(b)) return true;  // which is an error of its own",
    "    const bool first = better(a, b), second = better(b, a);",
    "    if (same(a, b)) return !first && !second;",
    "    const Value sum = plus(a, b);",
    "    if (first || second) return first != second && same(sum, first ? a : b);",
    "    return (same(sum, a) || same(sum, b)) && !same(sum, plus(b, a));",
    "  }",
    "  struct Rank {",
    "    Value value;",
    "    bool operator>(const Rank& other) const { return better(value, other.value); }",
    "  };",
]


def semiring_cxx(semiring: TracedSemiring) -> list[str]:
    """The C++ struct of a user-defined semiring, with the members that `semirings.hpp` requires."""
    n = semiring.width
    names = {f"{letter}{i}": f"{letter}.v[{i}]" for letter in "ab" for i in range(n)}

    def function(name: str, outputs: Sequence[Node], letters: str = "ab") -> list[str]:
        statements, results = cxx(outputs, names)
        return [
            f"  static Value {name}({', '.join(f'const Value& {letter}' for letter in letters)}) {{",
            *(f"    {s}" for s in statements),
            f"    return Value{{{{{', '.join(results)}}}}};",
            "  }",
        ]

    def literal(values: Sequence[float]) -> str:
        return "Value{{" + ", ".join(cxx([ir.constant(v)], {})[1][0] for v in values) + "}}"

    if semiring.less is not None:  # less(b, a): a is the better one
        turned = {f"{letter}{i}": f"{other}.v[{i}]" for letter, other in ("ab", "ba") for i in range(n)}
        statements, results = cxx([semiring.less], turned)
        better = [
            "  static bool better(const Value& a, const Value& b) {",
            *(f"    {s}" for s in statements),
            f"    return {results[0]};",
            "  }",
            *_AGREE,
        ]
    else:
        better = ["  static bool better(const Value&, const Value&) { return false; }"]
    selective = "true" if semiring.less is not None else "false"
    closed = "true" if semiring.star is not None else "false"
    # without a closure, this is never called
    star = ["  static Value star(const Value& a) { return a; }"]
    if semiring.star is not None:
        star = function("star", semiring.star, "a")
    same = " && ".join(f"(a.v[{i}] == b.v[{i}])" for i in range(n))
    return [
        "struct user {",
        f"  struct Value {{ double v[{n}]; }};",
        f"  static constexpr int words = {n};",
        f"  static constexpr bool selective = {selective}, closed = {closed}, flat = false, zero_bytes = false;",
        f"  static Value zero() {{ return {literal(semiring.zero)}; }}",
        f"  static Value one() {{ return {literal(semiring.one)}; }}",
        *function("plus", semiring.plus),
        *function("times", semiring.times),
        *star,
        *better,
        "  static bool same(const Value& a, const Value& b) { return " + same + "; }",
        "  static Value read(const uint64_t* w) { Value x; memcpy(&x, w, sizeof x); return x; }",
        "  static void write(const Value& x, uint64_t* w) { memcpy(w, &x, sizeof x); }",
        "  static double size(const Value&, const Value&, const Value&) { return 0; }",
        "  // An update that changes no part of the value by more than the tolerance, relative to that part.",
        "  static bool negligible(const Value& update, const Value& now, double tolerance) {",
        "    const Value sum = plus(now, update);",
        f"    for (int i = 0; i < {n}; i++)",
        "      if (fabs(sum.v[i] - now.v[i]) > tolerance * fabs(now.v[i]) && sum.v[i] != now.v[i]) return false;",
        "    return true;",
        "  }",
        "  // The most by which a part of one value differs from that of another, relative to the latter; at most one.",
        "  static double apart(const Value& a, const Value& b) {",
        "    double most = 0;",
        f"    for (int i = 0; i < {n}; i++) {{",
        "      const double change = a.v[i] == b.v[i] ? 0 : fabs(a.v[i] - b.v[i]) / fabs(b.v[i]);",
        "      if (!(change <= most)) most = change < 1 ? change : 1;",
        "    }",
        "    return most;",
        "  }",
        "  // An infinity that neither zero nor one has is an overflow.",
        "  static bool valid(const Value& x) {",
        "    const Value none = zero(), unit = one();",
        f"    for (int i = 0; i < {n}; i++)",
        "      if (!isfinite(x.v[i]) && x.v[i] != none.v[i] && x.v[i] != unit.v[i]) return false;",
        "    return true;",
        "  }",
        "  static bool tiny(const Value&) { return false; }",
        "};",
    ]
