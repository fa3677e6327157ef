"""Attributes and methods of arrays while a function is specialised; most methods are functions of numpy.

Those of lists, dicts and objects are in `containers.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...eager.numpy.functions import check_cast, check_options
from ...eager.numpy.protocol import BY_FUNCTION
from ...errors import Error
from ..evaluate.arrays import at_index, converted, set_index
from ..evaluate.iteration import items
from ..evaluate.specialiser import Specialiser
from ..evaluate.values import Array, HostFunction, List, describe, type_of, unwrapped, wrapped
from ..numpy.calls import flat, numpy_call

_ON_VALUES = ("argmax", "argmin", "argsort", "any", "all", "round", "searchsorted")
_METHODS: dict[str, Any] = {name: getattr(np, name) for name in (*BY_FUNCTION, *_ON_VALUES)}
_METHODS |= {"flatten": np.ravel, "conj": np.conjugate, "conjugate": np.conjugate}


def array_attribute(s: Specialiser, x: Any, name: str) -> Any:
    """`x.name` of an array, or of a dynamic number."""
    t = type_of(x)
    assert t is not None
    simple: dict[str, Callable[[], Any]] = {
        "shape": lambda: t.shape,
        "ndim": lambda: t.ndim,
        "size": lambda: t.size,
        "dtype": lambda: np.dtype({"real": "float64", "integer": "int64", "boolean": "bool"}[t.kind]),
        "T": lambda: numpy_call(s, np.transpose, [x], {}),
        "mT": lambda: numpy_call(s, np.swapaxes, [x, -1, -2], {}),
        "real": lambda: x,
        "flat": lambda: flat(x) if isinstance(x, Array) else numpy_call(s, np.ravel, [x], {}),
    }
    if name in simple:
        return simple[name]()
    own = _OWN.get(name)
    if own is None and name in _METHODS:
        function = _METHODS[name]
        if name == "flatten":
            own = _flatten
        else:
            return HostFunction(
                ("method", name),
                lambda s, captured, args, named: numpy_call(s, function, [captured[0], *args], dict(named)),
                (x,),
            )
    if own is None:
        raise Error(f"{describe(x)} has no {name} in a compiled function")
    run = own
    return HostFunction(("method", name), lambda s, captured, args, named: run(s, captured[0], *args, **named), (x,))


def _flatten(s: Specialiser, x: Any, order: str = "C") -> Any:
    return _contiguous(wrapped(unwrapped(numpy_call(s, np.ravel, [x], {"order": order}))))


def _copy(s: Specialiser, x: Any, order: str = "C") -> Any:
    check_options("copy", {"order": order})
    return _contiguous(wrapped(unwrapped(x)))


def _contiguous(x: Any) -> Any:
    """A copy, marked as C-contiguous."""
    if isinstance(x, Array):
        x.contiguous = True
    return x


def _reshape(s: Specialiser, x: Any, *shape: Any, order: str = "C") -> Any:
    return numpy_call(s, np.reshape, [x, shape[0] if len(shape) == 1 else shape], {"order": order})


def _transpose(s: Specialiser, x: Any, *axes: Any) -> Any:
    if not axes or axes == (None,):
        return numpy_call(s, np.transpose, [x], {})
    return numpy_call(s, np.transpose, [x, axes[0] if isinstance(axes[0], tuple | List) else axes], {})


def _compress(s: Specialiser, x: Any, condition: Any, *rest: Any, **options: Any) -> Any:
    return numpy_call(s, np.compress, [condition, x, *rest], options)


def _astype(
    s: Specialiser, x: Any, dtype: Any, order: Any = "K", casting: Any = "unsafe", subok: Any = True, copy: Any = True
) -> Any:
    check_options("astype", {"order": order, "subok": subok})
    now = array_attribute(s, x, "dtype")
    check_cast(now, dtype, casting)
    return x if not copy and np.dtype(dtype) == now else wrapped(converted(unwrapped(x), dtype))


def _sort(s: Specialiser, x: Any, axis: int = -1, **options: Any) -> None:
    set_index(s, x, Ellipsis, numpy_call(s, np.sort, [x], {"axis": axis, **options}))


def _fill(s: Specialiser, x: Any, value: Any) -> None:
    set_index(s, x, Ellipsis, value)


def _item(s: Specialiser, x: Any, *index: Any) -> Any:
    t = type_of(x)
    assert t is not None
    if index:
        return at_index(s, x, index[0] if len(index) == 1 and t.ndim == 1 else index)
    if t.size != 1:
        raise Error("item() takes an array with one element, or an index")
    return at_index(s, x, (0,) * t.ndim) if t.ndim else x


def _tolist(s: Specialiser, x: Any) -> Any:

    t = type_of(x)
    if t is None or not t.shape:
        return x
    return List(tuple(_tolist(s, part) for part in items(s, x)))


_OWN: dict[str, Callable[..., Any]] = {
    "copy": _copy,
    "reshape": _reshape,
    "transpose": _transpose,
    "astype": _astype,
    "compress": _compress,
    "fill": _fill,
    "sort": _sort,
    "item": _item,
    "tolist": _tolist,
    "__getitem__": at_index,
    "__setitem__": set_index,
}
