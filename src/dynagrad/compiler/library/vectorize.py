"""`np.vectorize` while a function is specialised: a scalar function called for each element of arrays.

`_filled` and `_several_filled` are not run: they are lowered like functions of users, so that short loops are unrolled
and long ones become loops of the graph. As in numpy, the first call decides the kinds of the results.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...eager.names import numpy_names
from ...errors import Error
from ..evaluate.iteration import items
from ..evaluate.specialiser import Args, Named, Specialiser, calls
from ..evaluate.values import Array, HostFunction, List, describe, known, type_of, unwrapped
from ..numpy.calls import numpy_call


def _filled(f: Any, out: Any, xs: Any) -> Any:
    for i in range(out.shape[0]):
        out[i] = f(*[x[i] for x in xs])
    return out


def _several_filled(f: Any, outs: Any, xs: Any) -> Any:
    for i in range(outs[0].shape[0]):
        ys = f(*[x[i] for x in xs])
        for out, y in zip(outs, ys, strict=True):
            out[i] = y
    return outs


_DTYPES = {"real": np.float64, "integer": np.int64, "boolean": np.bool_}


def _vectorized(f: Any, otypes: Any, excluded: frozenset[Any]) -> HostFunction:
    def run(s: Specialiser, captured: tuple[Any, ...], args: Args, named: Named) -> Any:
        return _called(s, captured[0], otypes, excluded, args, named)

    return HostFunction(("vectorize", f"np.vectorize of {describe(f)}", otypes, excluded), run, (f,))


def _called(s: Specialiser, f: Any, otypes: Any, excluded: frozenset[Any], args: Args, named: Named) -> Any:
    places = [i for i in range(len(args)) if i not in excluded]
    names = [name for name in named if name not in excluded]
    if not places and not names:
        raise Error("np.vectorize: all arguments are excluded")

    def one(s: Specialiser, captured: tuple[Any, ...], xs: Args, _: Named) -> Any:
        every = list(captured[1 : 1 + len(args)])
        for i, x in zip(places, xs, strict=False):
            every[i] = x
        others = dict(zip(named, captured[1 + len(args) :], strict=True))
        return s.call(captured[0], every, others | dict(zip(names, xs[len(places) :], strict=True)))

    kept = (*(None if i in places else x for i, x in enumerate(args)), *(named[n] for n in named))
    each = HostFunction(("element", "np.vectorize", tuple(places), tuple(names)), one, (f, *kept))
    wide = numpy_call(s, np.broadcast_arrays, [*(args[i] for i in places), *(named[n] for n in names)], {})
    t = type_of(items(s, wide)[0])
    if t is None:
        raise Error("np.vectorize takes numbers and arrays as arguments")
    if not t.shape:
        return s.call(each, list(items(s, wide)))
    flat = [numpy_call(s, np.ravel, [x], {}) for x in items(s, wide)]
    kinds, several = _kinds(s, each, otypes, flat, math.prod(t.shape))
    outs = [Array(np.zeros(math.prod(t.shape), kind)) for kind in kinds]
    if several:
        filled = items(s, s.enter(s.closure_of(_several_filled), [each, tuple(outs), tuple(flat)], {}))
    else:
        filled = (s.enter(s.closure_of(_filled), [each, outs[0], tuple(flat)], {}),)
    found = tuple(numpy_call(s, np.reshape, [x, t.shape], {}) for x in filled)
    return found if several else found[0]


def _kinds(s: Specialiser, each: HostFunction, otypes: Any, flat: list[Any], count: int) -> tuple[list[Any], bool]:
    """The kinds of the results, and whether there are several."""
    if otypes:
        return [_DTYPES[_KIND[np.dtype(o).kind]] for o in otypes], len(otypes) > 1
    if not count:
        raise Error("np.vectorize needs otypes= for arrays without elements, as in numpy")
    with s.journal():
        first = s.call(each, [items(s, x)[0] for x in flat])
    parts = first if isinstance(first, tuple) else (first,)
    types = [type_of(part) for part in parts]
    if any(t is None or t.shape for t in types):
        raise Error(f"np.vectorize takes functions that return numbers, and this one returns {describe(first)}")
    return [_DTYPES[t.kind] for t in types if t is not None], isinstance(first, tuple)


_KIND = {"f": "real", "i": "integer", "u": "integer", "b": "boolean"}


def _options(
    f: Any = None, otypes: Any = None, doc: Any = None, excluded: Any = None, cache: Any = False, signature: Any = None
) -> tuple[Any, Any, frozenset[Any]]:
    if signature is not None:
        raise Error("np.vectorize with a signature cannot be compiled; write the loop over the first axis")
    kinds = tuple(np.dtype(o).char for o in (otypes.content if isinstance(otypes, List) else otypes or ()))
    if any(np.dtype(o).kind not in _KIND for o in kinds):
        raise Error(f"np.vectorize: otypes are real, integer or boolean types, not {kinds}")
    return f, kinds, frozenset(unwrapped(excluded) or ())


@calls(np.vectorize, knows=None)
def _vectorize(s: Specialiser, args: Args, named: Named) -> Any:
    if not all(map(known, args[1:])):
        raise Error("the options of np.vectorize must be known when the function is compiled")
    function = args[0] if args and args[0] is not np._NoValue else None
    _, kinds, excluded = _options(None, *args[1:], **named)
    if function is not None:
        return _vectorized(function, kinds, excluded)
    return HostFunction(("vectorize", "np.vectorize"), lambda s, captured, xs, _: _vectorized(xs[0], kinds, excluded))


def of_vectorized(s: Specialiser, function: Any) -> Callable[..., Any] | None:
    """The finder for `np.vectorize` objects made outside of compiled code."""
    function = function.original if isinstance(function, numpy_names.vectorize) else function
    if not isinstance(function, np.vectorize):
        return None
    f, kinds, excluded = _options(
        function.pyfunc, function.otypes, None, function.excluded, False, getattr(function, "signature", None)
    )
    return lambda s, args, named: s.call(_vectorized(f, kinds, excluded), args, named)
