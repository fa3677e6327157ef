"""Right sides, priorities and user-defined semirings as op graphs, and those as C++."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .. import graph
from ..errors import Error, ProgramError
from ..graph import Node
from ..native.expression import cxx
from ..rules.normal import NormalRule, Rules
from ..rules.syntax import AntecedentValue, Apply, Expression, Item, ItemValue, Number, VariableValue
from .functions import Code, Functions, choice, flows, inline

OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "+": graph.add,
    "-": graph.subtract,
    "*": graph.multiply,
    "/": graph.divide,
    "^": graph.power,
    "<": graph.less,
    "=<": graph.less_equal,
    ">": graph.greater,
    ">=": graph.greater_equal,
    "==": graph.equal,
    "!=": graph.not_equal,
    "neg": graph.negative,
    "exp": graph.exp,
    "log": graph.log,
    "sqrt": graph.sqrt,
    "tanh": graph.tanh,
    "sigmoid": graph.sigmoid,
    "abs": graph.absolute,
    "min": graph.minimum,
    "max": graph.maximum,
    "lse": graph.log_add,
    "if": graph.where,
}


def to_node(
    value: Expression | VariableValue,
    functions: Mapping[str, Callable[..., Any]],
    item_name: Callable[[Item], str] | None = None,
) -> Node:
    """The op graph of an expression; antecedents are the variables `x0`, `x1`, ..., other items as `item_name` says."""
    done: list[Any] = []
    stack: list[tuple[Any, bool]] = [(value, False)]
    while stack:
        at, ready = stack.pop()
        match at:
            case Number(value=number):
                done.append(graph.constant(float(number)))
            case AntecedentValue(index=index):
                done.append(graph.variable(f"x{index}"))
            case VariableValue(name=name):
                done.append(graph.variable(name))
            case ItemValue(item=item):
                assert item_name is not None, "items are numbered antecedents by now"
                done.append(graph.variable(item_name(item)))
            case Apply(operator=operator, operands=operands):
                if not ready:
                    stack.append((at, True))
                    stack.extend((o, False) for o in reversed(operands))
                    continue
                count = len(operands)
                arguments = done[len(done) - count :]
                del done[len(done) - count :]
                known = OPERATIONS.get(operator)
                if operator == "if" and functions and any(flows(a) for a in arguments[1:]):
                    done.append(choice(*arguments))  # what is not chosen might not even end
                elif known is not None:
                    done.append(known(*arguments))
                else:
                    done.append(_call(functions, operator, arguments))
            case _:
                raise Error(f"no op graph for {at!r}")
    return _node(done.pop())


def _node(value: Any) -> Node:
    return value if isinstance(value, Node) else graph.constant(float(value))


def _call(functions: Mapping[str, Callable[..., Any]], name: str, arguments: Sequence[Any]) -> Any:
    try:
        result = graph.trace(functions[name], list(arguments))
    except TypeError as error:
        raise Error(f"the function {name} cannot be called with {len(arguments)} values: {error}") from None
    except Error as error:
        if type(error) is not Error:  # it has a meaning of its own
            raise
        raise Error(
            f"{error}\n  a function with branches, loops, recursion or functions of math can be compiled: pass "
            f"functions={{{name!r}: dg.compile({name})}}"
        ) from error
    if isinstance(result, tuple):
        raise Error(f"the function {name} returns {len(result)} values; a function of values returns one number")
    return result


def value_cxx(
    rule: NormalRule,
    functions: Mapping[str, Callable[..., Any]],
    names: Mapping[str, str],
    prefix: str,
    order: int,
    collected: Functions,
) -> Code:
    """A rule's value, over numbers with derivatives along `order` directions."""
    return lifted_cxx([to_node(rule.value, functions)], names, prefix, order, collected, called(rule.value, functions))


def adjoints_cxx(
    rule: NormalRule,
    functions: Mapping[str, Callable[..., Any]],
    names: Mapping[str, str],
    prefix: str,
    order: int,
    collected: Functions,
) -> tuple[Code, dict[int, str]]:
    """What a rule's value, whose adjoint is the variable `g` of `names`, adds to the adjoint of each antecedent."""
    places = sorted(int(name[1:]) for name in names if name != "g")
    variables = [graph.variable(f"x{i}") for i in places]
    value = to_node(rule.value, functions)

    def adjoints() -> list[Node | None]:
        found = graph.generate_adjoints([value], [graph.variable("g")], variables)
        return [found[v] for v in variables]

    kept = adjoints() if inline([value]) else collected.once((value, tuple(places)), adjoints)
    connected = [(i, node) for i, node in zip(places, kept, strict=True) if node is not None]
    code = lifted_cxx([node for _, node in connected], names, prefix, order, collected, called(rule.value, functions))
    return code, {i: text for (i, _), text in zip(connected, code.results, strict=True)}


def called(value: Expression | VariableValue, functions: Mapping[str, Callable[..., Any]]) -> str:
    """The functions that an expression calls."""
    found: dict[str, None] = {}
    stack: list[Any] = [value]
    while stack:
        match stack.pop():
            case Apply(operator=operator, operands=operands):
                if operator in functions:
                    found[operator] = None
                stack.extend(reversed(operands))
    return ", ".join(found)


def lifted_cxx(
    outputs: Sequence[Node], names: Mapping[str, str], prefix: str, order: int, collected: Functions, name: str
) -> Code:
    """C++ of reals, or of jets with 2**order components: those of variable `x` are written `x.v[0]`, `x.v[1]`, ...

    What is no expression becomes a function among those `collected`; `name` says of what.
    """
    texts: Mapping[str, str] = names
    if order:
        texts = {_component(n, s): f"{text}.v[{s}]" for n, text in names.items() for s in range(1 << order)}

    def components() -> list[Node]:
        return [c for parts in lift(outputs, list(names), order) for c in parts] if order else list(outputs)

    if inline(outputs):
        code = Code(*cxx(graph.simplify(components()), texts, prefix=prefix))
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


def lift(outputs: Sequence[Node], variables: Sequence[str], order: int) -> list[list[Node]]:
    """Graphs over nested dual numbers: of each output one graph per set of directions, the primal first.

    A set is a bit mask; component s of variable `x` is the variable `x@s`, and `x` itself for no direction. By tangents
    of tangents, one direction at a time.

    >>> x = graph.variable("x")
    >>> lift([x * x], ["x"], 1)
    [[x * x, (x@1 * x) + (x@1 * x)]]
    """
    parts = [list(outputs)]
    for direction in range(order):
        seeds: dict[Node, Node | float | None] = {
            graph.variable(_component(name, s)): graph.variable(_component(name, s | 1 << direction))
            for name in variables
            for s in range(1 << direction)
        }
        flat = [node for part in parts for node in part]
        moved = [graph.constant(0.0) if t is None else t for t in graph.tangents(flat, seeds)]
        parts += [moved[n : n + len(outputs)] for n in range(0, len(moved), len(outputs))]
    return [[part[n] for part in parts] for n in range(len(outputs))]


def _component(name: str, directions: int) -> str:
    return f"{name}@{directions}" if directions else name


def numbers(value: Expression) -> list[float | int]:
    """The constants of a product, in the order written."""
    found: list[float | int] = []
    stack: list[Expression] = [value]
    while stack:
        match stack.pop():
            case Number(value=number):
                found.append(number)
            case Apply(operands=operands):
                stack.extend(reversed(operands))
    return found


def factors(value: Expression) -> list[int]:
    """The antecedents of a product, in the order written."""
    found: list[int] = []
    stack: list[Expression] = [value]
    while stack:
        match stack.pop():
            case AntecedentValue(index=index):
                found.append(index)
            case Apply(operands=operands):
                stack.extend(reversed(operands))
    return found


def product_order(value: Expression) -> list[tuple[tuple[int, float | int] | None, int | None]]:
    """The factors of a product as written: (place among the constants, constant) or an antecedent's number."""
    found: list[tuple[tuple[int, float | int] | None, int | None]] = []
    stack: list[Expression] = [value]
    constants = 0
    while stack:
        match stack.pop():
            case Number(value=number):
                found.append(((constants, number), None))
                constants += 1
            case AntecedentValue(index=index):
                found.append((None, index))
            case Apply(operands=operands):
                stack.extend(reversed(operands))
    return found


# -- user-defined semirings --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TracedSemiring:
    """A semiring given as Python functions, traced: numbers are `width` doubles."""

    width: int
    zero: tuple[float, ...]
    one: tuple[float, ...]
    plus: tuple[Node, ...]  # in variables a0.., b0..
    times: tuple[Node, ...]
    less: Node | None
    scalar: bool = field(default=True)
    star: tuple[Node, ...] | None = None  # in variables a0..


def _flat(value: Any) -> tuple[float, ...]:
    return tuple(float(v) for v in value) if isinstance(value, tuple | list) else (float(value),)


def trace_semiring(
    zero: Any,
    one: Any,
    plus: Callable[..., Any],
    times: Callable[..., Any],
    less: Callable[..., Any] | None,
    star: Callable[..., Any] | None = None,
) -> TracedSemiring:
    """The op graphs of a semiring's operations. Raises Error where they do not fit together."""
    flat_zero, flat_one = _flat(zero), _flat(one)
    scalar = not isinstance(zero, tuple | list)
    if len(flat_zero) != len(flat_one) or scalar != (not isinstance(one, tuple | list)):
        raise Error(f"a semiring's zero and one must have one shape, and {zero!r} and {one!r} do not")

    def argument(letter: str) -> Any:
        names = tuple(f"{letter}{i}" for i in range(len(flat_zero)))
        return names[0] if scalar else names

    def traced(name: str, function: Callable[..., Any], letters: str = "ab") -> tuple[Node, ...]:
        try:
            result = graph.trace(function, [argument(letter) for letter in letters])
        except TypeError as error:
            count = "two values" if len(letters) == 2 else "one value"
            raise Error(f"the semiring's {name} cannot be called with {count}: {error}") from None
        nodes = tuple(map(_node, result)) if isinstance(result, tuple) else (_node(result),)
        if len(nodes) != len(flat_zero) or isinstance(result, tuple) == scalar:
            raise Error(
                f"the semiring's {name} returns {len(nodes)} numbers, and its zero has {len(flat_zero)}: "
                "they must have one shape"
            )
        return tuple(graph.simplify(nodes))

    order = None
    if less is not None:
        order = graph.simplify([_truth(graph.trace(less, [argument("a"), argument("b")]))])[0]
    closure = None if star is None else traced("star", star, "a")
    return TracedSemiring(
        len(flat_zero), flat_zero, flat_one, traced("plus", plus), traced("times", times), order, scalar, closure
    )


def _truth(value: Any) -> Node:
    if isinstance(value, tuple):
        raise Error("a semiring's less returns one truth value, not several")
    return value if isinstance(value, Node) else graph.constant(bool(value))


# Whether what plus selects of two values is what less calls better. Where it calls neither so, plus may keep its first
# argument or its second, whichever it is given, but it may not prefer one of the values.
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
    """The C++ struct of a user-defined semiring, with the members that `semirings.hpp` asks for."""
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
        return "Value{{" + ", ".join(cxx([graph.constant(v)], {})[1][0] for v in values) + "}}"

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
    # where there is no closure, nobody calls this
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
        "  static bool valid(const Value& x) {",
        f"    for (int i = 0; i < {n}; i++)",
        "      if (isnan(x.v[i])) return false;",
        "    return true;",
        "  }",
        "  static bool tiny(const Value&) { return false; }",
        "};",
    ]


def own_value(rules: Rules, item: Item) -> ProgramError:
    """The error for an item in a priority that is computed together with the items it orders."""
    return ProgramError(
        f"the priority reads {item.key}, which is computed together with the items it orders; "
        "only items of earlier strata, and the item itself, may be read",
        rules.source.text,
        item.span,
        rules.source.filename,
    )
