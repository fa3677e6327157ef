"""Python's operators on values of the specialiser: arithmetic, comparisons, truth, cells and text.

Static operands are computed by Python itself; operators of nodes are those of `ir/`. Containers are in
`compiler/objects/containers.py`.

It is long because each operator meets every kind of value: a table would hide which.
"""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from ...eager import pytree
from ...errors import Error
from ...ir import Node
from ...ir.operation import Operation, apply
from ...ir.ops import integers
from ...ir.ops import scalars as ops
from ...ir.ops.arrays import reshape
from ...ir.types import KINDS, arrays
from ..frontend.core import UNDEFINED
from ..frontend.operators import PYTHON, UNARY
from .arrays import as_array, cast_to, of_kind, store
from .exceptions import check
from .iteration import items
from .masks import elementwise, mask_error
from .numpy_scalars import is_numpy_scalar
from .specialiser import Specialiser, primitive
from .values import (
    DYNAMIC_TEXT,
    Array,
    Cell,
    Closure,
    Dict,
    DynamicText,
    HostFunction,
    Instance,
    Iteration,
    List,
    Masked,
    Optional,
    as_type,
    describe,
    is_complex,
    is_dual,
    known,
    node_of,
    type_of,
    unwrapped,
    wrapped,
)

_COMPARISONS = frozenset({"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"})


# -- arithmetic --------------------------------------------------------------------------------------------------------


def binary(s: Specialiser, name: str, a: Any, b: Any) -> Any:
    """A binary operator of Python."""
    compute, method, sign = PYTHON[name]
    if isinstance(a, Masked) or isinstance(b, Masked):
        return elementwise(lambda x, y: unwrapped(binary(s, name, x, y)), [a, b])
    if name != "add" or not (isinstance(a, str) and isinstance(b, str)):
        for x in (a, b):
            if isinstance(x, DynamicText):
                raise Error(DYNAMIC_TEXT)
    elif isinstance(a, DynamicText) or isinstance(b, DynamicText):
        return DynamicText.of(a, b)
    if isinstance(a, Instance) or isinstance(b, Instance):
        return _of_objects(s, name, method, a, b)
    numeric = type_of(a) is not None and type_of(b) is not None
    if numeric:
        x, y = unwrapped(a), unwrapped(b)
        if isinstance(x, Node) or isinstance(y, Node):
            if name in _RAISE and not any(t.shape for t in map(type_of, (a, b)) if t):  # for arrays numpy warns
                s.may_raise(*_RAISE[name])
            if name == "power" and isinstance(y, Node) and "real" not in (_kind(x), _kind(y)):
                return integer_power(s, a, b)
            return wrapped(_of_nodes(name, x, y))
        return wrapped(compute(x, y))
    if isinstance(a, tuple) and isinstance(b, tuple) and name == "add":
        return (*a, *b)
    if isinstance(a, List) and isinstance(b, List) and name == "add":
        return List((*a.content, *b.content))
    if isinstance(a, Dict) and isinstance(b, Dict) and name == "or":
        return Dict({**a.content, **b.content}, empty=a.empty)
    if is_dual(a) or is_dual(b):
        return _of_duals(s, name, a, b)
    for x, y in ((a, b), (b, a)):
        if name == "multiply" and isinstance(x, tuple | List) and isinstance(y, int):
            return x * y if isinstance(x, tuple) else List(x.content * y)
    if (isinstance(a, List | tuple) and type_of(b) is not None) or (
        isinstance(b, List | tuple) and type_of(a) is not None
    ):
        if isinstance(a, Array) or isinstance(b, Array):  # numpy converts a list
            return binary(s, name, as_array(s, a), as_array(s, b))
    if name in ("equal", "not_equal"):
        return _equal_structures(s, a, b) if name == "equal" else negated(_equal_structures(s, a, b))
    if name in _COMPARISONS and any(isinstance(a, kind) and isinstance(b, kind) for kind in (tuple, List)):
        return _lexicographic(s, name, a, b)
    if (
        known(a)
        and known(b)
        and not isinstance(a, Closure | HostFunction | Iteration)
        and not isinstance(b, Closure | HostFunction | Iteration)
    ):
        return wrapped(compute(unwrapped(a), unwrapped(b)))
    if is_complex(unwrapped(a)) or is_complex(unwrapped(b)):
        what = f"{describe(a)} {sign} {describe(b)}"
        raise Error(f"{what}: derivatives are of reals; keep the two parts of a complex number as reals")
    raise Error(f"{describe(a)} {sign} {describe(b)} cannot be compiled")


_RAISE: dict[str, tuple[type[BaseException], ...]] = {
    **dict.fromkeys(("divide", "floor_divide", "modulo"), (ZeroDivisionError,)),
    "power": (ZeroDivisionError, OverflowError),
    **dict.fromkeys(("left_shift", "right_shift"), (ValueError,)),
}
"""What operators of single numbers may raise in Python; compiled code raises nothing."""


def _of_nodes(name: str, x: Any, y: Any) -> Any:
    """A binary operator with at least one dynamic operand."""
    if name == "power" and isinstance(y, int | float) and not isinstance(y, bool):
        if isinstance(y, int) and x.type.kind == "boolean":
            x = as_type(x, arrays(KINDS["integer"], x.shape))
        if y == 2:
            return _square(x)
        if y == 1:
            return x
        if isinstance(y, int):
            if x.type.kind != "real":
                x = as_type(x, arrays(KINDS["integer"], x.shape))
                if y < 0:
                    raise Error("a whole number to a negative power is no whole number; convert it with float()")
                return _repeated_product(x, y)
            y = float(y)
    if name in _BITS:
        return bits(name, x, y)
    if isinstance(x, np.ndarray) and isinstance(y, Node):
        x = node_of(x)
    if isinstance(y, np.ndarray) and isinstance(x, Node):
        y = node_of(y)
    result = arithmetic(name, x, y)
    if result is NotImplemented or not isinstance(result, Node | float | int | np.ndarray):
        raise Error(f"{describe(x)} {PYTHON[name][2]} {describe(y)} cannot be compiled")
    return result


_BITS: dict[str, tuple[Operation, Callable[[Any, Any], Any] | None]] = {
    "and": (integers.bitwise_and, operator.and_),
    "or": (integers.bitwise_or, operator.or_),
    "xor": (integers.bitwise_xor, lambda a, b: (a | b) & ~(a & b)),
    "left_shift": (integers.left_shift, None),
    "right_shift": (integers.right_shift, None),
}


def bits(name: str, x: Any, y: Any) -> Any:
    """Bitwise operators, of whole numbers or of truth values."""
    of_integers, of_truths = _BITS[name]
    if "real" in (_kind(x), _kind(y)):
        raise Error(f"{PYTHON[name][2]} takes truth values and whole numbers, not {describe(x)} and {describe(y)}")
    if of_truths is not None and _kind(x) == _kind(y) == "boolean":
        return of_truths(node_of(x), node_of(y))
    return apply(of_integers, _as_whole(x), _as_whole(y))


def inverted(x: Node) -> Any:
    """`~` of whole numbers or truth values."""
    if x.type.kind == "real":
        raise Error(f"~ takes truth values and whole numbers, not {describe(x)}")
    return integers.invert(x) if x.type.kind == "integer" else ops.logical_not(x)


def _as_whole(x: Any) -> Node:
    node = node_of(x)
    return node if node.type.kind == "integer" else integers.count_true(node)


_COUNTING = frozenset({"add", "subtract", "multiply", "floor_divide", "modulo"})
_OF_TRUTHS = frozenset({"add", "subtract", "multiply"})


def arithmetic(name: str, x: Any, y: Any) -> Any:
    """An arithmetic operator with at least one dynamic operand. Truth values count as whole numbers, as in Python;
    those of arrays and numpy's scalars follow numpy."""
    kinds = [_kind(x), _kind(y)]
    if name in _COUNTING and "boolean" in kinds and "real" not in kinds and "" not in kinds:
        types = [type_of(v) for v in (x, y)]
        if kinds == ["boolean", "boolean"] and name in _OF_TRUTHS and (is_numpy_scalar(x) or is_numpy_scalar(y)):
            if name == "subtract":
                raise Error("truth values cannot be subtracted in numpy; use ^ or np.logical_xor")
            return bits("or" if name == "add" else "and", x, y)
        x, y = (
            as_type(v, arrays(KINDS["integer"], t.shape)) if t is not None and t.kind == "boolean" else v
            for v, t in zip((x, y), types, strict=True)
        )
    found = PYTHON[name][0](x, y)
    if name == "matmul" and "real" not in kinds:
        return of_kind(found, "integer" if "integer" in kinds else "boolean")
    return found


def _kind(x: Any) -> str:
    t = type_of(x)
    return "" if t is None else t.kind


def _square(x: Node) -> Any:
    return ops.square(x) if x.type.kind == "real" else x * x


def integer_power(s: Specialiser, x: Any, y: Any, exact: bool = True) -> Any:
    """A whole number to a dynamic power. Of single numbers it is exact, or a RunError; in arrays, and for numpy's
    functions, it wraps around. A negative exponent is a RunError, since its power would be a real."""
    a, n = (_as_whole(unwrapped(v)) for v in (x, y))
    least = n if not n.shape else s.call(np.min, [wrapped(n)], {"initial": 0})
    real = "a whole number to a negative power is no whole number: convert it with float(), as float(x) ** n"
    check(s, truth(s, binary(s, "greater_equal", least, 0)), real)
    if exact and not a.shape and not n.shape:
        large = ": a whole number of a compiled function has 64 bits; use float(x) ** n"
        check(s, apply(integers.power_fits, a, n), "", a, " ** ", n, large)
    return wrapped(apply(integers.power, a, n))


def _repeated_product(x: Node, n: int) -> Any:
    found: Any = 1
    for _ in range(n):
        found = found * x
    return found


def _of_duals(s: Specialiser, name: str, a: Any, b: Any) -> Any:
    """Operators of `dg.Dual`s: only sums and multiples."""
    if name == "add":
        return s.call(pytree.add, [a, b])
    if name == "multiply" and not (is_dual(a) and is_dual(b)):
        return s.call(pytree.scale, [b, a] if is_dual(a) else [a, b])
    raise Error(f"{describe(a)} {PYTHON[name][2]} {describe(b)} cannot be compiled: Duals add up, and are scaled")


def _of_objects(s: Specialiser, name: str, method: str, a: Any, b: Any) -> Any:
    """Operators that the class of an operand defines."""
    if isinstance(a, Instance) and hasattr(a.cls, method):
        if getattr(a.cls, method) is not getattr(object, method, None) and not _generated(a.cls, method):
            return s.call(s.apply("attribute", a, method), [b])
    reflected = method.replace("__", "__r", 1)
    if isinstance(b, Instance) and hasattr(b.cls, reflected):
        return s.call(s.apply("attribute", b, reflected), [a])
    if name in ("equal", "not_equal"):
        found = _equal_structures(s, a, b)
        return found if name == "equal" else negated(found)
    raise Error(f"{describe(a)} {PYTHON[name][2]} {describe(b)}: the class has no {method}")


def _generated(cls: type, method: str) -> bool:
    """Whether a method was generated by `dataclasses`."""
    return method == "__eq__" and "__dataclass_fields__" in vars(cls)


def _equal_structures(s: Specialiser, a: Any, b: Any) -> Any:
    """`==` of structures, part by part."""
    if type_of(a) is not None and type_of(b) is not None:
        return binary(s, "equal", a, b)
    pairs: list[tuple[Any, Any]]
    if isinstance(a, tuple | List) and isinstance(b, tuple | List) and isinstance(a, tuple) == isinstance(b, tuple):
        x, y = (v if isinstance(v, tuple) else v.content for v in (a, b))
        if len(x) != len(y):
            return False
        pairs = list(zip(x, y, strict=True))
    elif isinstance(a, Instance | Dict) and isinstance(b, Instance | Dict):
        if a.content.keys() != b.content.keys() or (class_in(a) is not class_in(b)):
            return False
        if isinstance(a, Dict) and isinstance(b, Dict) and isinstance(a.empty, OrderedDict):
            if isinstance(b.empty, OrderedDict) and list(a.content) != list(b.content):
                return False
        pairs = [(value, b.content[key]) for key, value in a.content.items()]
    elif known(a) and known(b):
        return bool(a is b or unwrapped(a) == unwrapped(b))
    else:
        return False
    found: Any = True
    for x, y in pairs:
        found = conjunction(found, truth(s, _equal_structures(s, x, y)))
    return found


def _lexicographic(s: Specialiser, name: str, a: Any, b: Any) -> Any:
    """Lexicographic comparison of tuples and of lists: the first parts that differ decide, or else the lengths."""
    x, y = (v if isinstance(v, tuple) else v.content for v in (a, b))
    found: Any = PYTHON[name][0](len(x), len(y))
    for p, q in reversed(list(zip(x, y, strict=False))):
        same = truth(s, _equal_structures(s, p, q))
        if same is False:
            found = truth(s, binary(s, name, p, q))
        elif same is not True:
            here = truth(s, binary(s, name, p, q))
            found = negated(conjunction(negated(conjunction(same, found)), negated(conjunction(negated(same), here))))
    return found


def class_in(x: Instance | Dict) -> type:
    return x.cls if isinstance(x, Instance) else dict


def conjunction(a: Any, b: Any) -> Any:
    """`and` of two truth values, both evaluated."""
    if a is False or b is False:
        return False
    return b if a is True else a if b is True else ops.logical_and(a, b)


def negated(a: Any) -> Any:
    return not a if isinstance(a, bool) else ops.logical_not(a)


def _enter_binary(name: str) -> None:
    def handler(s: Specialiser, a: Any, b: Any) -> Any:
        return binary(s, name, a, b)

    primitive(name)(handler)


def _enter_unary(name: str) -> None:
    def handler(s: Specialiser, a: Any) -> Any:
        return unary(s, name, a)

    primitive(name)(handler)


def unary(s: Specialiser, name: str, a: Any) -> Any:
    compute, method = UNARY[name]
    if isinstance(a, Masked):
        return elementwise(lambda x: unwrapped(unary(s, name, x)), [a])
    if isinstance(a, Instance):
        return s.call(s.apply("attribute", a, method), [])
    x = unwrapped(a)
    if isinstance(x, Node):
        if name == "invert":
            return wrapped(inverted(x))
        if x.type.kind == "boolean" and is_numpy_scalar(x):
            raise Error("truth values have no sign in numpy; use ~ or np.logical_not")
        if x.type.kind == "boolean":
            x = as_type(x, type_of(0) if not x.type.shape else x.type)  # type: ignore[arg-type]  # checked above
    elif type_of(a) is None and not known(a):
        raise Error(f"the operator {name} cannot be applied to {describe(a)}")
    return wrapped(compute(x))


for _name in PYTHON:
    _enter_binary(_name)
for _name in UNARY:
    _enter_unary(_name)


@primitive("update")
def update(s: Specialiser, name: str, a: Any, b: Any) -> Any:
    """Augmented assignment: arrays, lists and dicts change in place, other values become `a + b`."""
    if isinstance(a, Array):
        s_type = type_of(a)
        assert s_type is not None
        new = binary(s, name, Array(a.read()), b)
        store(s, a, cast_to(new, s_type))
        return a
    if isinstance(a, List) and name == "add":
        s.write(a, (*a.content, *items(s, b)))
        return a
    if isinstance(a, Dict) and isinstance(b, Dict) and name == "or":
        s.write(a, {**a.content, **b.content})
        return a
    if isinstance(a, Instance):
        method = PYTHON[name][1].replace("__", "__i", 1)
        if hasattr(a.cls, method):
            return s.call(s.apply("attribute", a, method), [b])
    return binary(s, name, a, b)


# -- conditions --------------------------------------------------------------------------------------------------------


def truth(s: Specialiser, x: Any) -> bool | Node:
    """A value as a condition: known, or a node."""
    if isinstance(x, bool):
        return x
    if isinstance(x, Array):
        content = x.read()
        if isinstance(content, Node):
            if content.type.size != 1:
                raise s.error(
                    f"{describe(x)} cannot be a condition; use np.any, np.all, or np.where for a choice at each element"
                )

            return truth(s, content[(0,) * content.ndim] if content.ndim else reshape(())(content))
        return bool(content)
    if isinstance(x, Node):
        if x.is_constant:
            return bool(x.attribute)
        return x if x.type.kind == "boolean" else x != (0 if x.type.kind == "integer" else 0.0)
    if isinstance(x, List | Dict):
        return bool(x.content)
    if isinstance(x, Iteration):
        return bool(items(s, x))
    if isinstance(x, Instance):
        for method in ("__bool__", "__len__"):
            if hasattr(x.cls, method):
                return truth(s, s.call(s.apply("attribute", x, method), []))
        return True
    if isinstance(x, Masked):
        raise mask_error(x)
    if isinstance(x, Optional):
        found: bool | Node = conjunction(x.present, truth(s, x.value))
        return found
    if isinstance(x, Closure | HostFunction | Cell):
        return True
    return bool(x)


primitive("truth")(truth)


@primitive("not")
def not_(s: Specialiser, x: Any) -> Any:
    return negated(truth(s, x))


@primitive("is")
def is_(s: Specialiser, a: Any, b: Any) -> Any:
    for x, y in ((a, b), (b, a)):
        if isinstance(x, Optional):
            return negated(x.present) if y is None else conjunction(x.present, is_(s, x.value, y))
    if a is not b and (isinstance(a, Node) or isinstance(b, Node)):
        kinds = ["" if isinstance(x, Array) else _kind(x) for x in (a, b)]
        if kinds == ["boolean", "boolean"]:
            return is_numpy_scalar(a) == is_numpy_scalar(b) and _equal_truths(a, b)  # numpy has its own True and False
        if "boolean" in kinds or "" in kinds:
            return False
        raise Error("`is` between numbers that are known only as the function runs: compare them with ==")
    if isinstance(a, bool | int | str | type(None)) and isinstance(b, bool | int | str | type(None)):
        return a is b or (type(a) is type(b) and a == b)
    return a is b


def _equal_truths(a: Any, b: Any) -> Any:
    """`is` of two truth values, which are singletons."""
    for x, y in ((a, b), (b, a)):
        if isinstance(x, bool):
            return y if x else negated(y)
    return integers.choose(a, b, negated(b))


@primitive("is_not")
def is_not(s: Specialiser, a: Any, b: Any) -> Any:
    return negated(is_(s, a, b))


@primitive("contained")
def contained(s: Specialiser, a: Any, b: Any) -> Any:
    """`a in b`."""
    if isinstance(a, DynamicText) or isinstance(b, DynamicText):
        raise Error(DYNAMIC_TEXT)
    if isinstance(b, Dict):
        return unwrapped(a) in b.content
    if isinstance(b, str) or (known(a) and known(b) and not isinstance(b, tuple | List | Iteration)):
        return bool(unwrapped(a) in unwrapped(b))

    found: Any = False
    for x in items(s, b):
        same = truth(s, _equal_structures(s, a, x))
        found = negated(conjunction(negated(found), negated(same)))
    return found


@primitive("not_contained")
def not_contained(s: Specialiser, a: Any, b: Any) -> Any:
    return negated(contained(s, a, b))


# -- cells -------------------------------------------------------------------------------------------------------------


@primitive("cell")
def cell(s: Specialiser, content: Any, name: str) -> Cell:
    return Cell(content, name)


@primitive("read_cell")
def read_cell(s: Specialiser, x: Any, name: str = "") -> Any:
    if x.content is UNDEFINED:
        raise s.error(f"{x.name} has no value here")
    return x.content


@primitive("write_cell")
def write_cell(s: Specialiser, x: Cell, content: Any) -> None:
    if x.owner:
        raise s.error(f"{x.name} cannot be assigned here: {x.owner}")
    s.put(x, content)


# -- text --------------------------------------------------------------------------------------------------------------


@primitive("text")
def text(s: Specialiser, *parts: Any) -> str:
    found = "".join(map(str, parts))
    return DynamicText.of(*parts) if any(isinstance(p, DynamicText) for p in parts) else found


@primitive("format")
def format_(s: Specialiser, x: Any, conversion: int, spec: str) -> str:
    if not known(x):  # the number is not known yet
        return DynamicText.of(x)
    x = unwrapped(x)
    if conversion != -1:
        convert: dict[str, Callable[[Any], str]] = {"s": str, "r": repr, "a": ascii}
        x = convert[chr(conversion)](x)
    return format(x, spec)
