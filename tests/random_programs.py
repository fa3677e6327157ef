"""Small random rule programs, as text with facts; and several combined into one.

All are programs whose values converge: without cycles, with contracting cycles, or with cycles under a selecting plus.
Where contraction is likely but not certain, `settles` filters by evaluation. What is drawn follows from the seed of a
`Draw` alone: a program takes hundreds of draws, and those of hypothesis cost far more than running what they make.
"""

from __future__ import annotations

import math
import random
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from dynagrad.errors import Error, ProgramWarning
from dynagrad.rules import check
from dynagrad.rules import syntax as s
from dynagrad.rules.normal import Predicate
from dynagrad.rules.parse import parse
from oracle import Diverged, Real, Semiring, Struct, evaluate

Choice = TypeVar("Choice")


class Draw:
    """What is drawn at random; the same for the same seed."""

    def __init__(self, seed: int | str) -> None:
        self._random = random.Random(seed)

    def whole(self, least: int, most: int) -> int:
        return self._random.randint(least, most)

    def coin(self) -> bool:
        return self._random.random() < 0.5

    def one(self, choices: Sequence[Choice]) -> Choice:
        return self._random.choice(choices)

    def several(self, choices: Sequence[Choice], least: int, most: int) -> list[Choice]:
        """From `least` to `most` of them, some perhaps more than once."""
        return [self.one(choices) for _ in range(self.whole(least, most))]

    def shuffled(self, values: Sequence[Choice]) -> list[Choice]:
        return self._random.sample(values, len(values))


@dataclass(frozen=True)
class Program:
    """A program without its semiring declaration, and its facts."""

    source: str
    facts: Mapping[str, list[tuple[Any, ...]]]
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Program(\n{self.source}\n{dict(self.facts)!r})"


# -- several programs in one -----------------------------------------------------------------------------------------


def prefixed(source: str, prefix: str) -> str:
    """A source with a prefix before the name of each predicate and of each function that it declares.

    >>> prefixed("goal += a(X) * a('a', a(a)).", "p_")
    "p_goal += p_a(X) * p_a('a', a(a))."
    """
    parsed = parse(source)
    places: set[int] = set()
    names: set[str] = set()
    functions: set[str] = set()

    def see(item: s.Item) -> None:
        names.add(item.predicate)
        places.add(item.span.start)

    def walk(expression: s.Expression) -> None:
        if isinstance(expression, (s.ItemValue, s.Side)):
            see(expression.item)
        elif isinstance(expression, s.Application):
            if expression.operator in functions:
                places.add(expression.span.start)
            for operand in expression.operands:
                walk(operand)

    for declaration in parsed.declarations:
        if isinstance(declaration, s.PredicateDeclaration):
            named = {key.rsplit("/", 1)[0] for key in declaration.keys}
            names |= named
            functions |= named if declaration.kind == "function" else set()
    for rule in parsed.rules:
        see(rule.head)
        walk(rule.body)
        for condition in rule.conditions:
            if isinstance(condition, s.Negation):
                see(condition.item)
    word = re.compile(rf"(?<!\w)(?:{'|'.join(sorted(map(re.escape, names)))})(?!\w)")
    for declaration in parsed.declarations:
        start, end = declaration.span.start, declaration.span.end
        places |= {match.start() for match in word.finditer(source, start, end)}
    for place in sorted(places, reverse=True):
        source = source[:place] + prefix + source[place:]
    return source


def combined(programs: Sequence[Any]) -> Program:
    """One program that holds several side by side, each under names of its own (`p0_goal`), for one compile."""
    sources, facts, functions = [], {}, {}
    for number, program in enumerate(programs):
        prefix = f"p{number}_"
        sources.append(prefixed(program.source, prefix))
        facts.update({prefix + key: list(rows) for key, rows in program.facts.items()})
        functions.update({prefix + name: function for name, function in program.functions.items()})
    return Program("\n".join(sources), facts, functions)


def used(source: str, facts: Mapping[str, list[tuple[Any, ...]]]) -> dict[str, list[tuple[Any, ...]]]:
    """The facts whose predicates the program mentions; others would be refused."""
    words = set(re.findall(r"\w+", source))
    return {key: rows for key, rows in facts.items() if key.rsplit("/", 1)[0] in words}


# -- pieces ----------------------------------------------------------------------------------------------------------

_SYMBOLS = ("a", "b", "c")
_TERMS: tuple[tuple[str, Any], ...] = (  # as written, and as a value
    ("f(a)", Struct("f", ("a",))),
    ("f(b)", Struct("f", ("b",))),
    ("g(a,1)", Struct("g", ("a", 1))),
    ("[]", "nil"),
    ("[a]", Struct("cons", ("a", "nil"))),
    ("[b,a]", Struct("cons", ("b", Struct("cons", ("a", "nil"))))),
)
_MIXED: tuple[tuple[str, Any], ...] = (  # atoms of all kinds, some of which look alike
    ("a", "a"),
    ("0", 0),
    ("1", 1),
    ("1.0", 1.0),
    ("'1'", "1"),
    ("-0.5", -0.5),
    ("-2147483648", -(2**31)),
)
_ANY = (*_MIXED[:5], *_TERMS[:4], ("f(1)", Struct("f", (1,))), ("f(1.0)", Struct("f", (Real(1.0),))))
# The types of columns, and what may stand there: text and value. `m` mixes atoms, `x` mixes atoms and terms.
_DOMAINS: dict[str, tuple[tuple[str, Any], ...]] = {
    "s": tuple((x, x) for x in _SYMBOLS),
    "i": tuple((str(x), x) for x in range(5)),
    "m": _MIXED,
    "t": _TERMS,
    "x": _ANY,
}
_VARIABLES = {"s": ("S", "Q"), "i": ("I", "J"), "m": ("M", "N"), "t": ("T", "U"), "x": ("X", "Y")}
# What a variable of each kind may be held against: integers are computed with, so nothing else can stand there.
_AGAINST = {**_DOMAINS, "s": (*_DOMAINS["s"], *_MIXED), "m": (*_MIXED, *_TERMS[:1]), "t": _ANY}

# What weights facts may have, per semiring: for programs without cycles, and for programs with.
_LOG = lambda *weights: tuple(math.log(w) if w else -math.inf for w in weights)  # noqa: E731
_ACYCLIC: dict[str, tuple[Any, ...]] = {
    "real": (1.0, 0.5, 0.0, 2.0, 0.3, -1.0),
    "log": (0.0, -0.5, -math.inf, 1.0, -3.25),
    "viterbi": (0.0, -1.0, -2.5, -math.inf, 1.0),
    "tropical": (0.0, 1.0, 2.5, math.inf, -1.0),
    "boolean": (None,),
    "count": (1, 0, 2, 3),
    "expectation": ((1.0, 0.0), (0.5, 1.0), (0.0, 0.0), (0.25, -2.0)),
    "shifted": (0.0, -1.0, 1.0, -0.5, -2.0),
}
_CYCLIC: dict[str, tuple[Any, ...]] = {
    "real": (0.2, 0.1, 0.0, 0.05),
    "log": _LOG(0.2, 0.1, 0.0, 0.05),
    "viterbi": (0.0, -1.0, -2.5, -math.inf),
    "tropical": (0.0, 1.0, 2.5, math.inf),
    "boolean": (None,),
    "expectation": ((0.2, 1.0), (0.1, 0.0), (0.0, 0.0), (0.05, -2.0)),
    "shifted": (-0.8, -0.9, -1.0, -0.95),
}
_CONSTANTS: dict[str, tuple[str, ...]] = {  # that contract too
    "real": ("0.2", "0.1"),
    "log": ("-2", "-1.5"),
    "viterbi": ("-1", "-0.5", "0"),
    "tropical": ("1", "0.5", "0"),
    "boolean": (),
    "count": ("2", "3"),
    "expectation": ("0.2", "0.1"),
    "shifted": ("-0.75",),
}
CYCLIC_SEMIRINGS = tuple(_CYCLIC)
SEMIRINGS = tuple(_ACYCLIC)


@dataclass(frozen=True)
class _Predicate:
    name: str
    columns: str  # a type per column
    stratum: int  # inputs are in stratum 0

    @property
    def key(self) -> str:
        return f"{self.name}/{len(self.columns)}"


_INPUT_COLUMNS = ("ss", "si", "ii", "sii", "ssi", "iis", "s", "i", "sm", "mi", "m", "st", "t", "")
_INPUT_COLUMNS += ("m", "mm", "x", "xm", "ix")
_DERIVED_COLUMNS = ("s", "i", "ss", "si", "ii", "is", "m", "sm", "t", "", "m", "x", "mx")


class _RuleDraft:
    """A rule in the making: which variables its body binds so far."""

    def __init__(self, draw: Draw) -> None:
        self.draw, self.bound, self.anonymous = draw, set[str](), True

    def body_argument(self, kind: str) -> str:
        roll = self.draw.whole(0, 11)
        if roll == 11 and self.anonymous:
            return "_"
        if roll >= 9:
            return str(self.draw.one(_DOMAINS[kind])[0])
        variable = str(self.draw.one(_VARIABLES[kind]))
        self.bound.add(variable)
        if kind == "i" and roll == 8:
            return f"{variable}{self.draw.one(['+1', '-1', '*2'])}"
        if kind == "t" and roll == 8:
            inner = self.body_argument("s")
            self.bound.discard(variable)  # not in this pattern after all; it counts again where it occurs
            rest = self.body_argument("t") if self.draw.coin() else None
            return f"f({inner})" if rest is None else f"[{inner}|{rest}]"
        if kind == "x" and roll == 8:
            self.bound.discard(variable)
            return f"f({self.body_argument('m')})"
        return variable

    def item(self, predicate: _Predicate) -> str:
        arguments = ",".join(self.body_argument(kind) for kind in predicate.columns)
        return f"{predicate.name}({arguments})" if arguments else predicate.name

    def known(self, kind: str) -> list[str]:
        return [v for v in _VARIABLES[kind] if v in self.bound]

    def head_argument(self, kind: str, recursive: bool) -> str:
        variables = self.known(kind)
        if kind == "t" and not recursive and self.known("s") and self.draw.whole(0, 2) == 0:
            return f"f({self.known('s')[0]})"
        if kind == "x" and not recursive and self.known("m") and self.draw.whole(0, 2) == 0:
            return f"f({self.known('m')[0]})"
        if not variables or self.draw.whole(0, 7) == 0:
            return str(self.draw.one(_DOMAINS[kind])[0])
        variable = str(self.draw.one(variables))
        if kind == "i" and self.draw.whole(0, 5) == 0:
            return f"({variable}+1) mod 5" if recursive else f"{variable}+1"
        return variable

    def against(self, kind: str) -> str:
        """An equation or a comparison with a constant, or an equation with a term of variables; it may bind one."""
        text = str(self.draw.one(_AGAINST[kind])[0])
        known = self.known(kind)
        atoms = self.known("m")
        if kind == "x" and atoms and self.draw.coin():
            text = self.draw.one([f"f({atoms[0]})", f"[{atoms[-1]}]", f"g(a,{atoms[0]})"])
        variable = str(self.draw.one(_VARIABLES[kind]))
        if variable in known:
            shape = self.draw.one(["{} = {}", "{} == {}", "{} != {}"])
        else:
            shape = "{} = {}"
            self.bound.add(variable)
        return shape.format(*self.draw.shuffled([variable, text]))

    def conditions(self, lower: Sequence[_Predicate]) -> list[str]:
        result = []
        ints = self.known("i")
        if len(ints) == 1 and self.draw.whole(0, 4) == 0:
            other = next(v for v in _VARIABLES["i"] if v != ints[0])
            shapes = [f"{other} = {ints[0]}+1", f"{ints[0]} = {other}-1", f"{other} = abs({ints[0]}-2)"]
            shapes += [f"{other} = max({ints[0]},2)", f"min(3,{ints[0]}) = {other}", f"{other} = 2-abs(1-{ints[0]})"]
            result.append(self.draw.one(shapes))
            self.bound.add(other)
        if ints and self.draw.whole(0, 3) == 0:
            left, right = self.draw.one(ints), self.draw.one([*ints, "2"])
            right = self.draw.one([right, f"max({right},{left}-1)", f"abs({left}-{right})"])
            result.append(f"{left} {self.draw.one(['<', '=<', '>', '>=', '==', '!='])} {right}")
        if ints and self.draw.whole(0, 5) == 0:
            result.append(f"0 {self.draw.one(['<', '=<', '<=', '!='])} {ints[0]} < {ints[-1]}+1 =< 4")
        for kind in "smtx":
            pair = self.known(kind)
            if len(pair) == 2 and self.draw.whole(0, 3) == 0:
                result.append(f"{pair[0]} {self.draw.one(['!=', '==', '='])} {pair[1]}")
        for kind in "simtx":
            if self.draw.whole(0, 3) == 0:
                result.append(self.against(kind))
        if lower and self.draw.whole(0, 4) == 0:
            predicate = self.draw.one(lower)
            arguments = [self.draw.one([*self.known(kind), "_", _DOMAINS[kind][0][0]]) for kind in predicate.columns]
            result.append(f"not {predicate.name}" + (f"({','.join(arguments)})" if arguments else ""))
        return result


def _facts(draw: Draw, columns: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    rows = []
    for _ in range(draw.whole(1, 12 if columns else 2)):
        arguments, value = tuple(draw.one(_DOMAINS[kind])[1] for kind in columns), draw.one(values)
        rows.append(arguments if value is None else (*arguments, value))
    return rows


def joined(
    source: str, facts: dict[str, list[tuple[Any, ...]]], functions: Mapping[str, Callable[..., Any]] | None = None
) -> dict[str, list[tuple[Any, ...]]]:
    """The facts of a program of plain arithmetic, with one row for each fact of predicates whose rows do not join."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProgramWarning)
        try:
            predicates = check(parse(source), functions=functions or {}).predicates
        except Error:  # it is refused whatever the facts are
            return facts
    return {key: _without_copies(key, rows) if _is_single(predicates.get(key)) else rows for key, rows in facts.items()}


def _is_single(predicate: Predicate | None) -> bool:
    return predicate is not None and bool(predicate.unjoined or predicate.aggregator == "=")


def _without_copies(key: str, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    arity = int(key.rsplit("/", 1)[1])
    return list({row[:arity]: row for row in reversed(rows)}.values())[::-1]


def _rule(
    draw: Draw,
    head: _Predicate,
    allowed: Sequence[_Predicate],
    lower: Sequence[_Predicate],
    constants: Sequence[str],
    same: Sequence[_Predicate] = (),
) -> str:
    """A rule; with `same`, one whose first item is of the head's own stratum, and which makes weights smaller."""
    draft = _RuleDraft(draw)
    damped = bool(same)
    chosen = draw.several(allowed, *(0, 2) if damped else (1, 3))
    chosen = [draw.one(same), *chosen] if damped else chosen
    recursive = any(p.stratum == head.stratum for p in chosen)
    factors = []
    for position, predicate in enumerate(chosen):
        text = draft.item(predicate)
        side = draw.whole(0, 6) == 0 and not (recursive and damped and position == 0)
        factors.append(f"SIDE({text})" if side else text)
    if constants and ((recursive and damped) or draw.whole(0, 4) == 0):
        factors.insert(draw.whole(0, len(factors)), draw.one(constants))
    conditions = draft.conditions(lower)
    arguments = ",".join(draft.head_argument(kind, recursive) for kind in head.columns)
    left = f"{head.name}({arguments})" if arguments else head.name
    return f"{left} += {' * '.join(factors)}" + (f" for {', '.join(conditions)}" if conditions else "") + "."


def _level_rule(draw: Draw, head: _Predicate, inputs: Sequence[_Predicate]) -> str:
    """A recursive rule without cycles: its first argument, an integer, grows."""
    draft = _RuleDraft(draw)
    kinds = head.columns[1:]

    def item(level: str) -> str:
        return f"{head.name}({','.join([level, *map(draft.body_argument, kinds)])})"

    factors = [item("L1")]
    if draw.coin():
        factors.append(item("L2"))
        bounds = ["L = L1+L2+1"] if draw.coin() else ["L = L1+1", "L2 < L"]
    else:
        bounds = ["L = L1+1"]
    if inputs and draw.coin():
        factors.append(draft.item(draw.one(inputs)))
    arguments = "".join("," + draft.head_argument(kind, recursive=True) for kind in kinds)
    body = " * ".join(draw.shuffled(factors))
    return f"{head.name}(L{arguments}) += {body} for {', '.join([*bounds, 'L =< 4'])}."


def in_range(values: Iterable[Any]) -> bool:
    """Whether values are finite, and counts no larger than the engine counts."""
    flat = [part for value in values for part in (value if isinstance(value, tuple) else (value,))]
    return all(part < 2**127 if isinstance(part, int) else math.isfinite(part) for part in flat)


def settles(
    source: str, facts: Any, semiring: str | Semiring | None, rounds: int = 60, *, infinite: bool = False
) -> bool:
    """Whether the oracle's iteration ends soon, with not too many items, and without growing beyond all numbers, but
    for the `infinite` ones that facts may have."""
    try:
        values = evaluate(parse(source), facts, semiring=semiring, max_rounds=rounds, max_items=100)
    except Diverged:
        return False
    if infinite:
        return not any(map(math.isnan, values.values()))
    return semiring in ("log", "viterbi", "tropical") or in_range(values.values())


def semiring_program(draw: Draw, semiring: str, cyclic: bool, ring: str | Semiring | None = None) -> Program:
    """A program in a semiring. With `cyclic`, items may depend on themselves in any way that settles."""
    while True:
        program = _semiring_program(draw, semiring, cyclic)
        if not cyclic or settles(program.source, program.facts, ring or semiring):
            return program


def _semiring_program(draw: Draw, semiring: str, cyclic: bool) -> Program:
    values = (_CYCLIC if cyclic else _ACYCLIC)[semiring]
    inputs = [_Predicate(f"e{i}", draw.one(_INPUT_COLUMNS), 0) for i in range(draw.whole(1, 3))]
    facts = {p.key: _facts(draw, p.columns, values) for p in inputs}
    derived: list[_Predicate] = []
    stratum = 1
    for i in range(draw.whole(1, 3)):
        derived.append(_Predicate(f"d{i}", draw.one(_DERIVED_COLUMNS), stratum))
        stratum += 0 if cyclic and draw.coin() else 1
    rules = []
    for number, head in enumerate(derived):
        lower = [p for p in inputs + derived if p.stratum < head.stratum]
        same = [p for p in derived if p.stratum == head.stratum] if cyclic else []
        constants = _CONSTANTS[semiring]
        rules.append(_rule(draw, head, lower, lower, constants))
        for _ in range(draw.whole(1 if cyclic else 0, 2)):
            rules.append(_rule(draw, head, lower + same, lower, constants, same))
        if draw.whole(0, 3) == 0:  # a fact of the text, of value one
            constants_of = [str(draw.one(_DOMAINS[kind])[0]) for kind in head.columns]
            rules.append(f"{head.name}({','.join(constants_of)})." if constants_of else f"{head.name}.")
        if not cyclic and head.columns[:1] == "i" and draw.coin():
            rules.append(_level_rule(draw, head, inputs + derived[:number]))
    source = "\n".join(draw.shuffled(rules))
    return Program(source, used(source, facts))


# -- plain arithmetic ------------------------------------------------------------------------------------------------

_PLAIN_VALUES = (1.0, 0.0, -1.0, 0.5, 2.0, -0.25)


def _expression(draw: Draw, leaves: Sequence[str], inputs: Sequence[str], depth: int) -> str:
    """Arithmetic that stays finite, over all the given items; an `if` looks at inputs only, whose values are exact."""
    if len(leaves) > 1:
        cut = draw.whole(1, len(leaves) - 1)
        left = _expression(draw, leaves[:cut], inputs, depth - 1)
        right = _expression(draw, leaves[cut:], inputs, depth - 1)
        shape = draw.one(
            ["{} + {}", "{} - {}", "{} * {}", "min({}, {})", "max({}, {})", "{} / (1 + abs({}))", "lse({}, {})"]
        )
        return f"({shape.format(left, right)})"
    leaf = leaves[0]
    if depth > 0 and draw.coin():
        shapes = ["2 * {}", "({} - 0.5)", "tanh({})", "sigmoid({})", "abs({})", "sqrt(abs({}))", "exp(-abs({}))"]
        shapes += ["log(1 + abs({}))", "min({}, 1) ^ 2", "-{}", "({} / 4)"]
        leaf = draw.one(shapes).format(_expression(draw, [leaf], inputs, depth - 1))
        if inputs and draw.whole(0, 3) == 0:
            test = f"{draw.one(inputs)} {draw.one(['<', '>=', '==', '!=', '>', '=<'])} 0.5"
            leaf = f"(if {test} then {leaf} else {draw.one(['0', '-1.5'])})"
    return leaf


def plain_program(draw: Draw) -> Program:
    """A program of plain arithmetic: layers of predicates, each with an aggregator of its own."""
    inputs = [_Predicate(f"e{i}", draw.one(_INPUT_COLUMNS), 0) for i in range(draw.whole(1, 3))]
    facts = {p.key: _facts(draw, p.columns, _PLAIN_VALUES) for p in inputs}
    known = list(inputs)
    rules = []
    for i in range(draw.whole(1, 4)):
        aggregator = draw.one(["+=", "log+=", "*=", "max=", "min=", "|=", "&=", "="])
        head = _Predicate(f"d{i}", draw.one(_DERIVED_COLUMNS), i + 1)
        for _ in range(1 if aggregator == "=" else draw.whole(1, 2)):
            draft = _RuleDraft(draw)
            draft.anonymous = aggregator != "="
            truth = aggregator in ("|=", "&=")
            chosen = draw.several(inputs if truth else known, 1, 3)
            items = [(draft.item(p), p.stratum == 0) for p in chosen]
            exact = [text for text, is_input in items if is_input]
            leaves = [text if draw.whole(0, 7) else f"SIDE({text})" for text, _ in items]
            body = " * ".join(leaves) if truth else _expression(draw, leaves, exact, 2)
            conditions = draft.conditions(known)
            if aggregator == "=":  # one instance per head: the head holds all variables
                head = _Predicate(head.name, "".join(k for k in _VARIABLES for v in draft.known(k)), head.stratum)
                arguments = ",".join(v for k in _VARIABLES for v in draft.known(k))
            else:
                arguments = ",".join(draft.head_argument(kind, recursive=False) for kind in head.columns)
            left = f"{head.name}({arguments})" if arguments else head.name
            rules.append(f"{left} {aggregator} {body}" + (f" for {', '.join(conditions)}" if conditions else "") + ".")
        known.append(head)
    if draw.coin():  # a recursion that selects, over arcs that never help twice
        operator, sign, choose = draw.one([("min=", "+", "abs({})"), ("max=", "-", "abs({})")])
        facts["arc/2"] = _facts(draw, "ss", _PLAIN_VALUES)
        rules.append(f"best(a) {operator} 0.5.")
        rules.append(f"best(Q) {operator} best(S) {sign} {choose.format('arc(S,Q)')}.")
        rules.append("last += best(S) * 2." if draw.coin() else "last max= 1 - best(S).")
    if draw.coin():  # a sum over growing integers, under another aggregator
        facts["step/1"] = _facts(draw, "i", _PLAIN_VALUES)
        rules.append("sum(0) += 1. sum(I) += step(I).")
        change = draw.one(["tanh(sum(I))", "sum(I) - step(J)", "abs(sum(I)) / 2"])
        rules.append(f"sum(J) += {change} for J = I+1, J < 5.")
        rules.append("least min= sum(I) + step(I).")
    source = "\n".join(rules)
    return Program(source, joined(source, used(source, facts)))


# -- cycles of plain arithmetic ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Cycle:
    """How values go around a cycle under an aggregator, so that they settle: `d` and `f` are items of the cycle, `e` is
    none."""

    aggregator: str
    values: tuple[float, ...]
    shapes: tuple[str, ...]


_CYCLES = (
    _Cycle("+=", (0.5, 0.1, 0.0, 0.25), ("0.2 * {d} * {e}", "0.1 * {d} * {f} + 0.05 * {e}", "{d} * {e} / 4")),
    _Cycle("+=", (0.5, -0.1, 0.0, 0.25), ("0.2 * tanh({d}) * {e}", "0.1 * {d} * {f}", "0.2 * {d} / (1 + abs({e}))")),
    _Cycle("+=", (0.5, -0.1, 0.0), ("0.1 * max({d}, {e})", "0.2 * sigmoid({d})", "if {e} > 0.2 then {d} / 5 else 0.1")),
    _Cycle("log+=", (-1.0, -2.0, -math.inf, 0.5), ("{d} + {e} - 3", "{d} + {f} + {e} - 4", "tanh({d}) + {e} - 3")),
    _Cycle("log+=", (-1.0, -2.0, 0.5), ("min({d}, {e}) - 3", "lse({d}, {e}) - 4", "{d} - 3")),
    _Cycle("max=", (1.0, -2.0, 0.0, 0.5, -math.inf), ("{d} - abs({e})", "min({d}, {e})", "{d} + {f} - 5")),
    _Cycle("min=", (1.0, -2.0, 0.0, 0.5, math.inf), ("{d} + abs({e})", "max({d}, {e})", "max({d}, {f}) + 0.5")),
    _Cycle("|=", (1.0, 0.0, 2.0), ("{d} * {e}", "{d}", "{d} * {f}")),
    _Cycle("&=", (1.0, 0.0, 2.0), ("{d} * {e}", "{d}", "{d} * {f}")),
)


def plain_cycles(draw: Draw) -> Program:
    """A program of plain arithmetic whose items may depend on themselves, in any way that settles."""
    while True:
        cycle = draw.one(_CYCLES)
        program = _plain_cycles(draw, cycle)
        infinite = any(map(math.isinf, cycle.values))
        if is_accepted(program) and settles(program.source, program.facts, None, 200, infinite=infinite):
            return program


def _plain_cycles(draw: Draw, cycle: _Cycle) -> Program:
    inputs = [_Predicate(f"e{i}", draw.one(_INPUT_COLUMNS), 0) for i in range(draw.whole(1, 3))]
    around = [_Predicate(f"d{i}", draw.one(_DERIVED_COLUMNS), 1) for i in range(draw.whole(1, 2))]
    rules = []
    for head in around:
        rules.append(_cycle_rule(draw, cycle, "{e}", head, inputs, around))
        rules += [
            _cycle_rule(draw, cycle, draw.one(cycle.shapes), head, inputs, around) for _ in range(draw.whole(1, 2))
        ]
    arguments = ",".join("_" for _ in around[0].columns)
    item = f"{around[0].name}({arguments})" if arguments else around[0].name
    rules.append(draw.one([f"last += tanh({item}).", f"last max= {item}.", f"last min= abs({item})."]))
    facts = {p.key: _facts(draw, p.columns, cycle.values) for p in inputs}
    source = "\n".join(draw.shuffled(rules))
    return Program(source, joined(source, used(source, facts)))


def _cycle_rule(
    draw: Draw,
    cycle: _Cycle,
    shape: str,
    head: _Predicate,
    inputs: Sequence[_Predicate],
    around: Sequence[_Predicate],
) -> str:
    draft = _RuleDraft(draw)
    items = {name: draft.item(draw.one(inputs if name == "e" else around)) for name in "def" if f"{{{name}}}" in shape}
    if "f" in items and draw.coin():
        items["f"] = items["d"]  # an item that meets itself
    if "e" in items and draw.whole(0, 6) == 0:
        items["e"] = f"SIDE({items['e']})"
    conditions = draft.conditions(inputs)
    arguments = ",".join(draft.head_argument(kind, recursive="d" in items) for kind in head.columns)
    left = f"{head.name}({arguments})" if arguments else head.name
    body = shape.format(**items)
    return f"{left} {cycle.aggregator} {body}" + (f" for {', '.join(conditions)}" if conditions else "") + "."


def is_accepted(program: Program, semiring: str | None = None) -> bool:
    """Whether the language has a program in a semiring; what it warns of counts as accepted."""
    name = "user" if semiring == "shifted" else semiring
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProgramWarning)
        try:
            check(parse(program.source), semiring=name, functions=program.functions)
        except Error:
            return False
    return True
