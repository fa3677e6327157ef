"""The procedures that every DVL program has: a table of names, numbers of arguments, and functions of Python.

Those that call procedures are written in DVL, in `prelude.dvl`. What they do in compiled programs is in
`compiling/builtins.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ...eager.kinds import fresh, real_part
from ...eager.verbs.fixed_point import fixed_point
from ...errors import Error
from ...ir.operation import Operation, apply
from ...ir.ops import scalars as ops
from .checks import printed
from .data import Gensym, Procedure, QuotedSymbol, is_pair, is_real
from .procedures import (
    VECTORS,
    Derivative,
    GradientOf,
    Stack,
    Step,
    called,
    is_bundle,
    make_bundle,
    primal_of,
    tangent_of,
)
from .vectors import checked_start, checked_step, comparison, said


class Builtin(Procedure):
    """A procedure of the table. It takes from `least` to `most` arguments; `fold` says that more are taken two by two,
    and `returns` that what it returns may be called at once with the rest of its arguments."""

    __slots__ = ("fold", "function", "least", "most", "name", "returns")

    def __init__(self, name: str, least: int, most: int, function: Callable[..., Any], kind: str = "") -> None:
        self.name, self.least, self.most, self.function = name, least, most, function
        self.fold, self.returns = kind == "fold", kind == "returns"

    def __call__(self, *arguments: Any) -> Any:
        return called(self, arguments)

    def __repr__(self) -> str:
        return f"#[procedure {self.name}]"

    def spread(self, x: Any) -> list[Any]:
        """The arguments in a chain of pairs."""
        if not self.most:
            no_arguments(x, f"{self.name} takes no arguments")
            return []
        found = [x]
        while len(found) < self.most and is_pair(found[-1]):
            found[-1:] = found[-1]
        if len(found) < self.least:
            raise self.wrong(len(found))
        return found

    def wrong(self, count: int) -> Error:
        many = "argument" if self.most == 1 else "arguments"
        wanted = str(self.least) if self.least == self.most else f"{self.least} to {self.most}"
        return Error(f"{self.name} takes {wanted} {many}, and got {count}")

    def enter(self, x: Any, stack: Stack) -> Step:
        if self.returns and is_pair(x) and callable(x[0]):
            return self.function(x[0]), x[1]
        return None, self.function(*self.spread(x))


ELEMENTARY = {
    "abs": ops.absolute,
    "exp": ops.exp,
    "log": ops.log,
    "sin": ops.sin,
    "cos": ops.cos,
    "tan": ops.tan,
    "asin": ops.arcsin,
    "acos": ops.arccos,
    "sqrt": ops.sqrt,
    "expt": ops.power,
}
BUILTINS: dict[str, Builtin] = {}


def _enter(name: str, count: int | tuple[int, int], function: Callable[..., Any], kind: str = "") -> None:
    least, most = count if isinstance(count, tuple) else (count, count)
    BUILTINS[name] = Builtin(name, least, most, function, kind)


def _car(x: Any) -> Any:
    if not is_pair(x):
        raise Error(f"(car x) takes a pair, and got {said(x)}")
    return x[0]


def _cdr(x: Any) -> Any:
    if not is_pair(x):
        raise Error(f"(cdr x) takes a pair, and got {said(x)}")
    return x[1]


def _minus(a: Any, *b: Any) -> Any:
    return VECTORS.subtract(a, b[0]) if b else VECTORS.negate(a)


def _over(a: Any, *b: Any) -> Any:
    return VECTORS.divide(a, b[0]) if b else VECTORS.divide(1.0, a)


_one, _two = (VECTORS.elementary("atan", operation) for operation in (ops.arctan, ops.arctan2))


def _atan(x: Any, *y: Any) -> Any:
    return _two(x, y[0]) if y else _one(x)


def _sign(name: str) -> Callable[[Any], Any]:
    compare = comparison({"zero?": "=", "positive?": ">", "negative?": "<"}[name])

    def function(x: Any) -> Any:
        if not is_real(x):
            raise Error(f"({name} x) takes a real, and got {said(x)}")
        return compare(x, 0.0)

    return function


def equal(a: Any, b: Any) -> bool:
    """Whether two values are the same: numbers by value, structures part by part."""
    return _equal(a, b, set())


def _equal(a: Any, b: Any, compared: set[tuple[int, int]]) -> bool:
    """The same; `compared` are pairs that have been compared, as parts may be shared."""
    while is_pair(a) and is_pair(b):
        if (id(a), id(b)) in compared:
            return True
        compared.add((id(a), id(b)))  # were they not alike, the whole would not be
        if not _equal(a[0], b[0], compared):
            return False
        a, b = a[1], b[1]
    if is_real(a) and is_real(b):
        return bool(apply(ops.equal, real_part(a), real_part(b)))
    return a is b or (type(a) is type(b) and not callable(a) and bool(a == b))


def _error(*given: Any) -> Any:
    raise Error(" ".join(x if isinstance(x, str) else printed(x) for x in given))


def _read_real() -> float:
    line = sys.stdin.readline()
    try:
        return float(line)
    except ValueError:
        raise Error(f"(read-real) reads a line with a real, and the line is {line.strip()!r}") from None


def write_real(x: Any) -> Any:
    if not is_real(x):
        raise Error(f"(write-real x) takes a real, and got {said(x)}")
    print(printed(real_part(x)), flush=True)
    return x


def real(x: Any) -> Any:
    if not is_real(x):
        raise Error(f"(real x) takes a real, and got {said(x)}")
    return x


def same_tag(a: Any, b: Any) -> bool:
    return _tag("gensym=", a).serial == _tag("gensym=", b).serial


def older_tag(a: Any, b: Any) -> bool:
    return _tag("gensym<", a).serial < _tag("gensym<", b).serial


def _tag(name: str, x: Any) -> Gensym:
    if not isinstance(x, Gensym):
        raise Error(f"({name} a b) takes tags, and got {said(x)}")
    return x


def _procedure(name: str, f: Any) -> Any:
    if not callable(f):
        raise Error(f"({name} f) takes a procedure, and got {said(f)}")
    return f


def _fixed_point(f: Any, x: Any) -> Any:
    checked_start(x, callable, said)
    _procedure("fixed-point", f)
    try:
        return fixed_point(lambda x: checked_step(x, f(x), is_real, said), x)
    except Error as problem:
        if str(problem) == of_fixed_point(str(problem)):
            raise
        raise type(problem)(of_fixed_point(str(problem))) from problem


def of_fixed_point(message: str) -> str:
    """What `dg.fixed_point` says of a failure, as DVL says it, where nobody chooses a number of steps or a tolerance.

    >>> of_fixed_point("fixed_point: step 3 reached NaN; start nearer")
    'fixed-point: step 3 reached NaN; start nearer'
    """
    if message.startswith("fixed_point:"):
        for there, here in _OF_FIXED_POINT.items():
            message = message.replace(there, here, 1)
    return message


_OF_FIXED_POINT = {
    "fixed_point:": "fixed-point:",
    "Give more max_steps or a larger tolerance, start nearer,": "Start nearer,",
    ". Where that is expected, give more max_steps": "",
    "the derivative of f at": "the derivative of the procedure at",
    "of what f depends on": "of what the procedure depends on",
}


def _elementary(name: str, operation: Operation) -> Callable[..., Any]:
    """An operation of reals, and an error where its value is none."""
    compute = VECTORS.elementary(name, operation)

    def function(*given: Any) -> Any:
        found = compute(*given)
        value = found if type(found) is float else real_part(found)
        if type(value) is float and value != value:
            arguments = " ".join(printed(real_part(x)) for x in given)
            raise Error(f"({name} {arguments}) is not a number")
        return found

    return function


for _name, _operation in ELEMENTARY.items():
    _enter(_name, len(_operation.arguments), _elementary(_name, _operation))
for _name in ("<", "<=", ">", ">=", "="):
    _enter(_name, 2, comparison(_name))
for _name in ("zero?", "positive?", "negative?"):
    _enter(_name, 1, _sign(_name))
_enter("+", 2, VECTORS.add, "fold")
_enter("*", 2, VECTORS.multiply, "fold")
_enter("-", (1, 2), _minus, "fold")
_enter("/", (1, 2), _over, "fold")
_enter("atan", (1, 2), _atan)
_enter("cons", 2, lambda a, b: (a, b))
_enter("car", 1, _car)
_enter("cdr", 1, _cdr)
_enter("not", 1, lambda x: x is False)
_enter("real?", 1, is_real)
_enter("pair?", 1, is_pair)
_enter("null?", 1, lambda x: isinstance(x, tuple) and not x)
_enter("boolean?", 1, lambda x: isinstance(x, bool))
_enter("symbol?", 1, lambda x: isinstance(x, QuotedSymbol))
_enter("procedure?", 1, callable)
_enter("equal?", 2, equal)
_enter("error", (1, 9), _error)
_enter("real", 1, real)
_enter("read-real", 0, _read_real)
_enter("write-real", 1, write_real)
_enter("gensym", 0, lambda: Gensym(fresh()))
_enter("gensym?", 1, lambda x: isinstance(x, Gensym))
_enter("gensym=", 2, same_tag)
_enter("gensym<", 2, older_tag)
_enter("bundle?", 1, is_bundle)
_enter("make-bundle", 3, make_bundle)
_enter("primal", 2, primal_of)
_enter("tangent", 2, tangent_of)
_enter("derivative", 1, lambda f: Derivative(_procedure("derivative", f)), "returns")
_enter("gradient-r", 1, lambda f: GradientOf(_procedure("gradient-r", f)), "returns")
_enter("fixed-point", 2, _fixed_point)


def first_argument(x: Any, what: str) -> Any:
    if not is_pair(x):
        raise Error(f"{what}, and got {said(x)}")
    return x[0]


def rest_of_arguments(x: Any, what: str) -> Any:
    if not is_pair(x):
        raise Error(f"{what}, and got {said(x)}")
    return x[1]


def no_arguments(x: Any, what: str) -> Any:
    if not isinstance(x, tuple) or x:
        raise Error(f"{what}, and got {said(x)}")
    return x


def truth(x: Any) -> bool:
    return x is not False


FIRST = Builtin("first argument", 2, 2, first_argument)
REST = Builtin("rest of the arguments", 2, 2, rest_of_arguments)
NONE = Builtin("no arguments", 2, 2, no_arguments)
TRUTH = Builtin("truth", 1, 1, truth)
"""What the front end calls, and no program by name."""
WITHOUT_TAGS = Builtin("without-tags", 1, 1, real_part)
SETTLED = Builtin("settled?", 2, 2, lambda a, b: a == b)
"""What `vectors.dvl` calls, in compiled programs alone."""
