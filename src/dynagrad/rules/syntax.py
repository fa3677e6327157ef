"""The abstract syntax of programs: immutable trees, whose nodes have their spans in the text.

Terms stand in argument positions, expressions on right sides, conditions after `for`. Syntactic sugar is gone: `[n,pp]`
is `cons(n,cons(pp,nil))` here, and `X/Y` is `slash(X,Y)`. Rules after desugaring are in `normal.py`, the text of trees
is written by `show.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from ..errors import Span
from ..moved import renamed

__getattr__ = renamed(__name__)

NOWHERE = Span(0, 0, 1, 1)

MAX_DEPTH = 150  # of terms and expressions in source text; immutable syntax is compared and hashed by recursion

FUNCTIONS = {"exp": 1, "log": 1, "sqrt": 1, "tanh": 1, "sigmoid": 1, "abs": 1, "min": 2, "max": 2, "lse": 2}
"""The built-in functions of values, with their arities."""

INCREASING = frozenset({"+", "min", "max", "lse", "exp", "log", "sqrt", "tanh", "sigmoid"})
"""Operations that never fall as an operand rises."""
OF_POSITIVE = frozenset({"log", "sqrt"})
"""Those that are undefined for negative numbers. No other is undefined anywhere on its way up or down."""
BOUNDED = frozenset({"tanh", "sigmoid"})
"""Those whose values are bounded, whatever their operands are."""
KINKED = frozenset({"abs", "min", "max"})
"""Those that have kinks."""
WITH_POLES = frozenset({"/", "^", "log"})
"""Those that may be infinite for finite numbers, and without overflow."""

INTEGER_FUNCTIONS = {"abs": 1, "min": 2, "max": 2}
"""The functions of integers in conditions, with their arities."""

COMPARISONS = ("<", "=<", ">", ">=", "==", "!=")


def restore(made: Any, state: Sequence[Any]) -> None:
    """Sets the fields of an instance that is unpickled; a pickle of before may lack the last ones."""
    for n, each in enumerate(fields(made)):
        object.__setattr__(made, each.name, state[n] if n < len(state) else each.default)


# -- terms -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Variable:
    """`X`. Each `_` of the text is a variable of its own, named `_1`, `_2`, ... and marked anonymous."""

    name: str
    anonymous: bool = False
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Symbol:
    """`np`, `'N P'` or `"Mary"`, without the quotes."""

    name: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Integer:
    value: int
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Float:
    value: float
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Compound:
    """`functor(arguments)`, at least one argument."""

    functor: str
    arguments: tuple[Term, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Integer arithmetic in an argument: `+ - * // mod` with two operands, `neg` with one.

    In conditions also `min` and `max` with two, and `abs` with one.
    """

    operator: str
    operands: tuple[Term, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


Term = Variable | Symbol | Integer | Float | Compound | Arithmetic


@dataclass(frozen=True, slots=True)
class Item:
    """A predicate applied to terms: `constit(X,I,K)`, or `goal` with none."""

    predicate: str
    arguments: tuple[Term, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    @property
    def key(self) -> str:
        """The key of its predicate, name and arity: `constit/3`."""
        return f"{self.predicate}/{len(self.arguments)}"


# -- expressions: right sides ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Numeral:
    """`2` or `0.5`."""

    value: float | int
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ItemValue:
    """The value of an item."""

    item: Item
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Side:
    """`SIDE(item)`: one where the item is derived."""

    item: Item
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class AntecedentValue:
    """In normal form, the value of the rule's antecedent number `index`, from 0."""

    index: int
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Application:
    """An operation on values.

    `+ - * / ^` and the comparisons `< =< > >= == !=` (two operands), `neg exp log sqrt tanh sigmoid abs` (one),
    `min max lse` (two), `if` (condition, then, else), or the name of a declared function of values.
    """

    operator: str
    operands: tuple[Expression, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


Expression = Numeral | ItemValue | Side | AntecedentValue | Application

ONE = Application("*", ())
"""The empty product: the body of `head.`, and in normal form the value of a product of side conditions alone."""


# -- conditions ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left operator right` for `< =< > >= == !=` over arguments."""

    operator: str
    left: Term
    right: Term
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Equation:
    """`left = right` over arguments: binds a variable where it can be solved for one, else compares."""

    left: Term
    right: Term
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Negation:
    """`not item`: no item matches."""

    item: Item
    span: Span = field(default=NOWHERE, compare=False, repr=False)


Condition = Comparison | Equation | Negation


# -- rules and declarations ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rule:
    """`head aggregator body for conditions.`"""

    head: Item
    aggregator: str
    body: Expression
    conditions: tuple[Condition, ...]
    text: str = field(compare=False)
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TypeName:
    """`int`, `symbol`, `float`, `term`, or a functor with the types of its arguments: `slash(symbol, list)`."""

    name: str
    arguments: tuple[Type, ...] = ()
    span: Span = field(default=NOWHERE, compare=False, repr=False)


Type = tuple[TypeName, ...]  # a union, in the order written


@dataclass(frozen=True, slots=True)
class SemiringDeclaration:
    """`:- semiring log.` or `:- valtype(term, log).`"""

    name: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PredicateDeclaration:
    """`:- input p/3, q/2 min=.`: kind is `input`, `output`, `transient`, `external` or `function`; keys are `p/3`.

    `joins` has the aggregators that are named behind keys.
    """

    kind: str
    keys: tuple[str, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    joins: tuple[tuple[str, str], ...] = ()

    def __setstate__(self, state: Sequence[Any]) -> None:
        restore(self, state)


@dataclass(frozen=True, slots=True)
class TypeDeclaration:
    """`:- type constit(symbol, int, int).`"""

    predicate: str
    arguments: tuple[Type, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    @property
    def key(self) -> str:
        return f"{self.predicate}/{len(self.arguments)}"


@dataclass(frozen=True, slots=True)
class AgendaDeclaration:
    """`:- agenda auto.`, `priority`, `fifo` or `lifo`."""

    name: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SolveDeclaration:
    """`:- solve auto.`, `iterate`, `linear` or `newton`: how cycles of sums are computed."""

    name: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PriorityDeclaration:
    """`:- priority item = expression.`

    In the expression a `VariableValue` is an integer argument of the item, and an `ItemValue` equal to `item` itself
    is the item's own value with its pending update; other items come from earlier strata.
    """

    item: Item
    expression: PriorityExpression
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class VariableValue:
    """An integer variable used as a number, in priorities only."""

    name: str
    span: Span = field(default=NOWHERE, compare=False, repr=False)


PriorityExpression = Expression | VariableValue


@dataclass(frozen=True, slots=True)
class PruneDeclaration:
    """`:- prune constit(X,I,K) < 1e-6.`"""

    item: Item
    operator: str
    threshold: float
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class BeamDeclaration:
    """`:- beam constit(X,I,K) by (I,K) keep 50.`"""

    item: Item
    group: tuple[Variable, ...]
    keep: int
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ShowDeclaration:
    """`:- show constit(X,I,K) as X.`: what drawings of derivations keep, and its text there; None for the item."""

    item: Item
    label: Term | None
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class DistributionDeclaration:
    """`:- distribution rewrite(X,...) given X.`: kept for the training of parameters; nothing else reads it."""

    item: Item
    rest: bool
    given: tuple[Variable, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)


Declaration = (
    SemiringDeclaration
    | PredicateDeclaration
    | TypeDeclaration
    | AgendaDeclaration
    | SolveDeclaration
    | PriorityDeclaration
    | PruneDeclaration
    | BeamDeclaration
    | ShowDeclaration
    | DistributionDeclaration
)


@dataclass(frozen=True, slots=True)
class Source:
    """A parsed program: rules and declarations in the order written, and the text they came from."""

    rules: tuple[Rule, ...]
    declarations: tuple[Declaration, ...]
    text: str = field(repr=False)
    filename: str = ""
