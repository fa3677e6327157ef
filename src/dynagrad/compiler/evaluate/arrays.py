"""Arrays while a function is specialised: making, indexing, writing to them, and conversion of their kinds.

Their attributes and methods are in `compiler/objects/methods.py`, numpy's functions in `compiler/numpy/calls.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...eager.numpy.functions import FUNCTIONS
from ...errors import Error
from ...ir import Node
from ...ir.node import constant
from ...ir.ops import integers, places
from ...ir.types import KINDS, Type, arrays
from .masks import broadcast_mask, masked_elements, where
from .specialiser import Specialiser
from .values import Array, Iteration, Masked, as_type, describe, node_of, type_of, unwrapped, wrapped

FOREIGN = "it was made outside of the compiled function; change a copy of it"


def holds_node(x: Any) -> bool:
    """Whether there is a dynamic number in an unwrapped value."""
    if isinstance(x, Node | Masked):
        return True
    if isinstance(x, tuple | list):
        return any(map(holds_node, x))
    if isinstance(x, slice):
        return holds_node((x.start, x.stop, x.step))
    return isinstance(x, dict) and any(map(holds_node, x.values()))


# -- making ------------------------------------------------------------------------------------------------------------


def stacked(parts: Sequence[Any]) -> Any:
    """Numbers, or arrays of one shape, stacked along a new first axis: a numpy array or a node."""
    contents = [unwrapped(p) for p in parts]
    if not any(map(holds_node, contents)):
        return np.array(contents)
    nodes = [node_of(content_of(c)) for c in contents]
    shapes = {n.shape for n in nodes}
    if len(shapes) > 1:
        raise Error(f"arrays of different shapes cannot be stacked: {', '.join(map(str, sorted(shapes)))}")
    kinds = {n.type.kind for n in nodes}
    if "real" in kinds or len(kinds) > 1:
        return FUNCTIONS[np.stack](nodes)
    dtype = np.int64 if kinds == {"integer"} else np.bool_
    found: Any = constant(np.zeros((len(nodes), *shapes.pop()), dtype))
    for i, n in enumerate(nodes):
        found = places.at_set(found, i, n)
    return found


def content_of(x: Any) -> Any:
    """A nested list as an array; other values unchanged."""
    return stacked(list(x)) if isinstance(x, list | tuple) else x


def as_array(s: Specialiser, x: Any) -> Array | Any:
    """A value as an array, as `np.asarray` converts it."""
    if isinstance(x, Array):
        return x
    if isinstance(x, Iteration):
        x = s.apply("items", x)
    return wrapped(content_of(unwrapped(x)) if holds_node(unwrapped(x)) else np.asarray(unwrapped(x)))


def cast_to(x: Any, t: Type) -> Any:
    """A value as the new content of an array of a type. Raises Error where shape or kind do not fit."""
    content = unwrapped(x)
    given = type_of(content)
    if given is None:
        raise Error(f"{describe(x)} cannot become part of an array")
    if given.shape != t.shape:
        raise Error(f"an array of shape {t.shape} cannot become one of shape {given.shape} in place")
    if given.kind != t.kind and not (t.kind == "real" or (t.kind == "integer" and given.kind == "boolean")):
        raise Error(f"{describe(x)} cannot be written into an array of another kind of number; convert it first")
    if isinstance(content, Node):
        return as_type(content, t)
    return np.asarray(content, {"real": float, "integer": np.int64, "boolean": bool}[t.kind])


# -- indexing ----------------------------------------------------------------------------------------------------------


def index_of(index: Any) -> Any:
    """An index as numpy and the graph take it."""
    found = unwrapped(index)
    parts = found if isinstance(found, tuple) else (found,)
    out = [np.asarray(content_of(p)) if isinstance(p, list) and not holds_node(p) else content_of(p) for p in parts]
    return tuple(out) if isinstance(found, tuple) else out[0]


def _is_basic(index: Any) -> bool:
    """Whether an index is basic in numpy's sense, and so makes a view."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(
        p is None
        or p is Ellipsis
        or isinstance(p, slice | int)
        or (isinstance(p, Node) and not p.shape and p.type.kind == "integer")
        for p in parts
    )


def _is_mask(index: Any) -> bool:
    return isinstance(index, Node) and index.type.kind == "boolean" and bool(index.shape)


def _indexed(content: Any, index: Any) -> Any:
    """`content[index]` of a numpy array or a node."""
    if not isinstance(content, Node) and not holds_node(index):
        return content[index]
    index = _without_masks(index)
    return node_of(content)[index]


def _without_masks(index: Any) -> Any:
    """An index with static masks converted to indices. Raises Error for dynamic ones."""
    parts = list(index) if isinstance(index, tuple) else [index]
    if any(isinstance(p, Masked) for p in parts):
        raise Error(
            "elements chosen by a mask cannot be an index: how many there are is known only as the function runs"
        )
    out: list[Any] = []
    for p in parts:
        if isinstance(p, np.ndarray) and p.dtype == bool:
            out.extend(np.nonzero(p))
        elif isinstance(p, Node) and p.type.kind == "boolean":
            raise Error(
                "how many elements a mask chooses is known only as the function runs, and shapes must be known when it "
                "is compiled; use np.where(mask, x, 0.0), or np.sum with it"
            )
        else:
            out.append(p)
    return tuple(out) if isinstance(index, tuple) or len(out) > 1 else out[0]


def at_index(s: Specialiser, x: Any, index: Any) -> Any:
    """`x[index]` of an array."""
    place = index_of(index)
    content = unwrapped(x)
    if _is_mask(place):
        return masked_elements(content, place, s.at)
    t = type_of(content)
    if t is not None and not t.shape and _adds_axes_only(place):
        if not isinstance(x, Array) or place == ():
            return wrapped(_with_new_axes(content, place))
        return Array(None, x.owner, x, lambda c: _with_new_axes(c, place), place, lambda _, new: _reshaped(new, ()))
    if holds_node(place):
        s.may_raise(IndexError)
    found = _indexed(content, place)
    shape = found.shape if isinstance(found, Node) else np.shape(found)
    if not (shape or _has_ellipsis(place)) or not isinstance(x, Array) or not _is_basic(place):
        return wrapped(found)
    return Array(None, x.owner, x, lambda c: _indexed(c, place), place, lambda c, new: with_item(c, place, new))


def _has_ellipsis(index: Any) -> bool:
    """Whether an index has an ellipsis; its result is then an array, even without axes."""
    return any(p is Ellipsis for p in (index if isinstance(index, tuple) else (index,)))


def _adds_axes_only(index: Any) -> bool:
    parts = index if isinstance(index, tuple) else (index,)
    return all(p is None or p is Ellipsis for p in parts)


def _with_new_axes(content: Any, index: Any) -> Any:
    """A number, or with `None` in the index an array with axes of length 1."""
    parts = index if isinstance(index, tuple) else (index,)
    extra = sum(p is None for p in parts)
    return _reshaped(content, (1,) * extra) if extra else content


def _reshaped(content: Any, shape: tuple[int, ...]) -> Any:
    return (FUNCTIONS[np.reshape] if isinstance(content, Node) else np.reshape)(content, shape)


def with_item(content: Any, index: Any, value: Any) -> Any:
    """The content of an array with another value at an index (a functional update)."""
    if not holds_node((content, index, value)):
        new = np.array(content)
        new[index] = value
        return new
    if isinstance(content, np.ndarray) and content.dtype not in KIND_OF:
        raise Error(_OTHERS.format(content.dtype))
    node = node_of(content)
    t = node.type
    if _is_mask(index):
        return _with_masked(node, index, value)
    given = type_of(value)
    if given is None:
        raise Error(f"{describe(value)} cannot be written into an array")
    if given.kind != t.kind and t.kind != "real":
        raise Error(f"{describe(value)} cannot be written into {describe(content)}; convert one of them")
    place = _without_masks(index)
    return places.at_set(node, place, _with_fewer_axes(as_type(value, array_type(t, given)), node[place]))


def _with_fewer_axes(value: Any, there: Any) -> Any:
    """A value without the leading axes of length 1 that numpy drops in an assignment."""
    shape, ndim = np.shape(value) if not isinstance(value, Node) else value.shape, len(there.shape)
    skip = len(shape) - ndim
    return _reshaped(value, shape[skip:]) if skip > 0 and set(shape[:skip]) == {1} else value


def array_type(kind: Type, shape: Type) -> Type:

    return arrays(kind, shape.shape)


def _with_masked(node: Node, mask: Node, value: Any) -> Any:
    """The content of an array with another value under a dynamic mask."""

    rows = node.shape[mask.ndim :]
    if isinstance(value, Masked):
        if value.mask is not mask:
            raise Error("x[mask] can be assigned to elements that the very same mask chooses, and to no others")
        value, fits = value.values, value.values.shape == node.shape
    else:
        value = node_of(value)
        fits = value.ndim <= len(rows) and value.shape == rows[len(rows) - value.ndim :]
        fits = fits or value.shape == node.shape
    if node.shape[: mask.ndim] != mask.shape or not fits:
        raise Error(
            "under a mask that is known only as the function runs, assign a number or an array of the whole shape"
        )
    if value.type.kind != node.type.kind:
        if node.type.kind != "real":
            raise Error(f"{describe(value)} cannot be written into {describe(node)}; convert one of them")
        value = as_type(value, array_type(node.type, value.type))
    return where(broadcast_mask(mask, node.shape), value, node)


def store(s: Specialiser, a: Array, content: Any) -> None:
    """Writes the content of an array; a view writes through to its base."""
    if a.base is None:
        s.write(a, content)
        return
    if a.put is None:
        raise Error(
            "this view of an array cannot be changed: numpy does not allow it, or whether it is a view depends on how "
            "the array lies in memory; change the array itself, or a copy of the view"
        )
    if a.owner:
        s.write(a, content)  # which raises
    store(s, a.base, a.put(a.base.read(), content))


def set_index(s: Specialiser, x: Any, index: Any, value: Any) -> None:
    """`x[index] = value` of an array."""

    if not isinstance(x, Array):
        raise Error(f"this array cannot be changed: {FOREIGN}")
    if holds_node(unwrapped(index)):
        s.may_raise(IndexError)
    content = content_of(unwrapped(value))
    t, place = type_of(x), index_of(index)
    if t is not None and not t.shape and _adds_axes_only(place):
        store(s, x, node_of(cast_to(content, t)))
        return
    store(s, x, with_item(x.read(), place, content))


def add_index(s: Specialiser, x: Any, index: Any, value: Any, negative: bool) -> None:
    """`x[index] += value` and `x[index] -= value` of an array."""

    if not isinstance(x, Array):
        raise Error(f"this array cannot be changed: {FOREIGN}")
    place, content, z = index_of(index), x.read(), content_of(unwrapped(value))
    t = type_of(content)
    real = t is not None and bool(t.shape) and t.kind == "real" and type_of(z) is not None
    if not (real and _is_basic(place) and holds_node((content, place, z))):
        old = at_index(s, x, index)
        set_index(s, x, index, s.apply("subtract" if negative else "add", old, value))
        return
    _add(s, x, place, z, negative)


def add_each(s: Specialiser, x: Any, index: Any, value: Any, negative: bool) -> None:
    """`np.add.at`: like `x[index] += value`, but an index that occurs several times adds as often."""
    t = type_of(x)
    if not isinstance(x, Array):
        raise Error(f"this array cannot be changed: {FOREIGN}")
    if t is None or t.kind != "real":
        raise Error(f"np.add.at takes arrays of reals, not {describe(x)}")
    _add(s, x, index_of(index), content_of(unwrapped(value)), negative)


def _add(s: Specialiser, x: Array, place: Any, z: Any, negative: bool) -> None:

    content = x.read()
    if holds_node(place):
        s.may_raise(IndexError)
    t, given = type_of(content), type_of(z)
    if t is None or given is None:
        raise Error(f"{describe(z)} cannot be added to an array")
    z = as_type(z, array_type(t, given))
    place = _without_masks(place)
    store(s, x, places.at_add(node_of(content), place, -z if negative else z))


KIND_OF = {np.dtype(np.float64): "real", np.dtype(np.int64): "integer", np.dtype(np.bool_): "boolean"}
_OTHERS = (
    "a compiled function has no {} numbers, only float64, int64 and bool: others round, or wrap around, differently; "
    "use float, int or bool, or convert the result outside of the function"
)


def kind_of(dtype: Any) -> str:
    """The kind of a dtype. Raises Error for one that compiled functions do not have."""
    kind = KIND_OF.get(np.dtype(dtype))
    if kind is None:
        raise Error(_OTHERS.format(np.dtype(dtype)))
    return kind


def converted(content: Any, dtype: Any) -> Any:
    """An array or number converted to a dtype."""
    if not isinstance(content, Node):
        return np.asarray(content).astype(dtype)
    kind = kind_of(dtype)
    if kind == content.type.kind:
        return content
    if kind == "real":
        return as_type(content, array_type(KINDS[kind], content.type))
    if kind == "boolean":
        return content != 0
    return (integers.count_true if content.type.kind == "boolean" else integers.to_integer)(content)


def of_kind(x: Any, kind: str) -> Any:
    """One or several results converted to a kind."""
    if isinstance(x, tuple | list):
        return type(x)(of_kind(part, kind) for part in x)
    if not isinstance(x, Node) or x.type.kind == kind:
        return x
    if kind == "boolean":
        return x != (0 if x.type.kind == "integer" else 0.0)
    return converted(x, np.int64)
