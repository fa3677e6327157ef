"""Calls of numpy's functions with each of their optional arguments, given values that change the result.

`calls_of(f)` has what `VALUES` says of an argument in any function, and what `CALLS` says of one function, whose
argument means something of its own there, or wants another beside it. What cannot change a value is in `UNCHANGING`,
and why. `tests/compiler/test_every_argument.py` holds that one of these has each argument.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np

from compiler.test_every_function import BASE, _same

X = np.array([[2.5, 0.5, -1.25, np.nan], [0.25, 3.0, 1.5, 2.0], [1.0, -0.5, 4.0, 0.5], [1.0, 5.0, 0.0, -7.5]])
FINITE = np.nan_to_num(X)
POSITIVE = np.array([[2.5, 0.5, 1.25, 0.75], [0.25, 3.0, 1.5, 2.0], [1.05, 3.5, 4.0, 0.3], [1.1, 5.0, 0.1, 7.5]])
SYMMETRIC = POSITIVE + POSITIVE.T + 20.0 * np.eye(4)
LINE = np.array([0.5, 1.25, 2.0, 3.75])
VALUES: dict[str, list[Any]] = {
    "axis": [0, 1], "keepdims": [True], "ddof": [1, 2], "decimals": [1], "descending": [True], "side": ["right"],
    "equal_nan": [True], "rtol": [1.0], "atol": [9.0], "invert": [True], "nan": [3.0], "n": [2], "k": [1, 2],
    "offset": [1], "axis1": [1], "axis2": [0], "shape": [(2, 2)], "dtype": [int, bool, np.float32], "ndmin": [3],
    "order": ["F"], "copy": [False], "right": [True], "correction": [2], "kind": ["nonsense"], "initial": [9.0, -9.0],
    "where": [FINITE > 1], "mean": [np.ones(())], "posinf": [1.0], "neginf": [1.0], "default": [7.0],
    "mode": ["clip", "wrap", "same", "r"], "stable": ["x", True], "ndmax": [1], "bias": [True], "rowvar": [False],
    "increasing": [True], "ord": [1, np.inf], "left": [3.0], "prepend": [1.0], "append": [1.0], "to_begin": [1.0],
    "to_end": [1.0], "dx": [2.0], "axes": [(0, 1), (1, 0), 1], "deg": [True], "start": [1], "max": [1.0],
    "weights": [LINE, POSITIVE], "minlength": [9], "axisa": [0], "axisb": [0], "axisc": [0], "UPLO": ["U"],
    "full_matrices": [False], "compute_uv": [False], "hermitian": [True], "rcond": [0.5], "full": [True], "w": [LINE],
    "cov": [True], "num": [3], "endpoint": [False], "retstep": [True], "base": [2.0], "sparse": [True], "N": [2],
    "indexing": ["ij"], "method": ["lower", "hazen"], "include_initial": [True], "period": [2.0], "edge_order": [2],
    "x": [np.array([0.0, 1.0, 3.0, 4.0])], "y": [LINE**2], "fweights": [[1, 2, 1, 3]], "aweights": [LINE], "M": [2],
    "bins": [3, [0.0, 1.0, 5.0]], "range": [(0.0, 2.0)], "density": [True], "tol": [1.5], "casting": ["no"],
    "returned": [True], "return_index": [True], "return_inverse": [True], "return_counts": [True], "step": [2],
    "upper": [True], "value": [1.5], "min": [1.0], "interpolation": ["lower"],
}  # fmt: skip
"""Values of arguments that differ from the usual ones, whatever the function."""

INFINITE = np.array([1.5, np.inf, -np.inf, np.nan])
DEEP = np.arange(24.0).reshape(2, 3, 4) ** 1.5
_TALL = POSITIVE[:, :2]
_KNOTS = ([-1.0, 0.25, 1.5, 9.0], [0.0, 1.0, 2.0, 3.0], LINE)
Call = tuple[tuple[Any, ...], dict[str, Any]]
_LIMITS: list[Call] = [
    ((FINITE,), {"a_min": 0.75, "a_max": 2.25}), ((FINITE, 0.75), {"a_max": 2.25}), ((FINITE,), {"min": 0.75}),
    ((FINITE,), {"max": 2.25}), ((FINITE,), {"min": 0.75, "max": 2.25}), ((FINITE,), {"a_min": None, "a_max": 1.25}),
]  # fmt: skip
_CHOSEN: list[Call] = [
    ((POSITIVE,), {"where": POSITIVE > 1, "initial": 2.0}), ((POSITIVE, 0), {"where": POSITIVE > 1, "initial": 0.5}),
    ((POSITIVE,), {"where": POSITIVE < 1, "initial": 0.1}), ((POSITIVE, 1), {"initial": 2.0}),
    ((POSITIVE, 1, None, True, 2.0, POSITIVE > 1), {}),
]  # fmt: skip
_CAST: list[Call] = [(([X, X],), {"dtype": int, "casting": "unsafe"}), (([X, X],), {"dtype": np.float32})]
_PARTED: list[Call] = [  # by all places, since the order is free between them
    ((POSITIVE, [0, 1, 2, 3]), {"axis": 0}), ((LINE[::-1].reshape(2, 2), [0, 1, 2, 3], None), {})
]  # fmt: skip
CALLS: dict[str, list[Call]] = {
    "max": _CHOSEN, "amax": _CHOSEN, "min": _CHOSEN, "amin": _CHOSEN, "nanmax": _CHOSEN, "nanmin": _CHOSEN,
    "prod": _CHOSEN, "nanprod": _CHOSEN, "sum": _CHOSEN, "nansum": _CHOSEN,
    "all": [((FINITE, 0), {"where": FINITE != 0}), ((FINITE,), {"where": FINITE > 99, "keepdims": True})],
    "any": [((FINITE, 0), {"where": FINITE > 1}), ((FINITE,), {"where": FINITE > 99})],
    "arange": [((1.5,), {"stop": 4}), ((1, 9), {"step": 2}), ((4,), {"dtype": float})],
    "array": [((X,), {"ndmin": 3, "copy": False}), ((X, int), {})],
    "array_equal": [((X, X), {"equal_nan": True})],
    "bincount": [(([0, 1, 1, 3],), {"weights": LINE}), (([0, 1, 1, 3], LINE, 9), {}), (([0, 1],), {"minlength": 4})],
    "choose": [(([0, 3, 1, -1], [LINE, -LINE]), {"mode": "wrap"}), (([0, 3, 1, -1], [LINE, -LINE], None, "clip"), {})],
    "cholesky": [((SYMMETRIC,), {"upper": True})],
    "clip": _LIMITS,
    "concatenate": [(([X, X],), {"axis": 1}), (([X, X],), {"dtype": int, "casting": "unsafe"}), (([X, X], None), {}),
                    (([X, X],), {"dtype": np.float32}), (([X, X],), {"casting": "nonsense"})],
    "cov": [((POSITIVE,), {"y": FINITE, "rowvar": False, "ddof": 0}), ((POSITIVE, None, False, True), {})],
    "corrcoef": [((POSITIVE,), {"dtype": np.float32})],
    "cross": [((POSITIVE[:3, :3], FINITE[:3, :3]), {"axis": 0}), ((POSITIVE[:3, :3], FINITE[:3, :3], 0, 0, 0), {}),
              *(((POSITIVE[:3, :3], FINITE[:3, :3]), {name: 0}) for name in ("axisa", "axisb", "axisc"))],
    "cumulative_sum": [((LINE,), {"include_initial": True}), ((FINITE,), {"axis": 0, "include_initial": True})],
    "diagonal": [((DEEP, 1, 2, 0), {}), ((DEEP,), {"axis1": 2}), ((DEEP,), {"axis2": 2}), ((DEEP,), {"offset": -1})],
    "eye": [((3,), {"M": 2}), ((3,), {"k": 1}), ((3,), {"dtype": int}), ((3, 4, -1), {})],
    "geomspace": [((LINE, 2 * LINE, 4), {"axis": 1}), ((1.0, 8.0), {"num": 4, "endpoint": False}),
                  ((1.0, 8.0), {"num": 3}), ((1.5, 9.0, 3), {"dtype": int})],
    "insert": [((FINITE, 1, 2.5), {"axis": 1}), ((FINITE, 1, 2.5, 0), {})],
    "interp": [(_KNOTS, {"left": -5.0}), (_KNOTS, {"right": 7.0}), (_KNOTS, {"period": 2.5}),
               ((*_KNOTS, 0.5, 7.0), {})],
    "isclose": [((X, X + 0.5), {"rtol": 0.6}), ((X, X + 0.5), {"atol": 0.6}), ((X, X), {"equal_nan": True})],
    "allclose": [((POSITIVE, POSITIVE + 0.5), {"rtol": 9.0}), ((POSITIVE, POSITIVE + 0.5), {"atol": 0.6}),
                 ((X, X), {"equal_nan": True})],
    "lexsort": [((DEEP % 3,), {"axis": 0})],
    "linspace": [((0.5, 4.0), {"endpoint": False, "num": 5}), ((LINE, 4.0, 3), {"axis": 1}),
                 ((0.5, 4.0, 3, True, True), {})],
    "logspace": [((0.5, 2.0), {"endpoint": False, "num": 5}), ((LINE, 4.0, 3), {"axis": 1, "base": 2.0})],
    "meshgrid": [((LINE, LINE[:2]), {"sparse": True}), ((LINE, LINE[:2]), {"indexing": "ij"}),
                 ((LINE, LINE[:2]), {"indexing": "ij", "sparse": True, "copy": False})],
    "nan_to_num": [((INFINITE,), {"nan": 3.5}), ((INFINITE,), {"posinf": 3.5}), ((INFINITE,), {"neginf": 3.5}),
                   ((INFINITE, True, 1.0, 2.0), {})],
    "partition": _PARTED, "argpartition": _PARTED,
    "polyfit": [((LINE, POSITIVE[0], 2), {name: value}) for name, value in
                (("w", [1.0, 2.0, 3.0, 4.0]), ("rcond", 0.5), ("full", True), ("cov", True), ("cov", "unscaled"))],
    "qr": [((POSITIVE,), {"mode": "r"}), ((_TALL,), {"mode": "complete"}), ((_TALL,), {"mode": "raw"})],
    **{name: [((POSITIVE, [0.3 * all_, 0.5]), {"axis": 1}), ((POSITIVE, 0.3 * all_), {"keepdims": True}),
              ((POSITIVE, [0.3 * all_]), {"method": "lower"}), 
              ((POSITIVE, 0.4 * all_, 0, None, False, "hazen", True), {}),
              ((POSITIVE, 0.3 * all_), {"weights": POSITIVE + 1, "method": "inverted_cdf"}),
              ((POSITIVE, 0.3 * all_), {"weights": LINE, "method": "inverted_cdf", "axis": 0})]
       for name, all_ in (("quantile", 1.0), ("percentile", 100.0), ("nanquantile", 1.0), ("nanpercentile", 100.0))},
    "rollaxis": [((DEEP, 2), {"start": 1}), ((DEEP, 0, 3), {})],
    "rot90": [((DEEP[0],), {"k": 2}), ((DEEP,), {"axes": (1, 2)}), ((DEEP, 3, (2, 0)), {})],
    "round": [((FINITE,), {"decimals": 1}), ((FINITE * 100, -1), {})],
    "searchsorted": [((LINE, POSITIVE), {"side": "right"}), ((LINE[::-1], POSITIVE), {"sorter": [3, 2, 1, 0]})],
    "sliding_window_view": [((LINE, 2), {"axis": 0}), ((FINITE, 2), {"axis": 1}), ((FINITE, (2, 3), (1, 0)), {})],
    "split": [((FINITE, 2), {"axis": 1}), ((FINITE, [1, 3], 1), {})],
    "squeeze": [((DEEP[None, :, None],), {"axis": 0}), ((DEEP[None, :, None], (2,)), {})],
    "stack": [(([X, X],), {"axis": 1}), (([X, X],), {"dtype": int, "casting": "unsafe"})],
    "svd": [((_TALL,), {"full_matrices": False}), ((SYMMETRIC, False), {"compute_uv": False, "hermitian": True})],
    "take": [((FINITE, [7, -9]), {"mode": "clip"}), ((FINITE, [7, -9]), {"mode": "wrap"}),
             ((FINITE, [0], 1, None, "clip"), {})],
    "take_along_axis": [((FINITE, np.argsort(FINITE, 0)), {"axis": 0})],
    "trace": [((DEEP, 1, 2, 0), {}), ((DEEP,), {"axis1": 2}), ((DEEP,), {"axis2": 2}), ((DEEP,), {"dtype": int})],
    "unique": [((X[0] + np.nan,), {"equal_nan": False})],
    "vstack": _CAST, "hstack": _CAST, "row_stack": _CAST,
    "can_cast": [((float, int), {"casting": "unsafe"})],
    "where": [((FINITE > 0, FINITE, 2.0), {})],
}  # fmt: skip
"""Calls of one function, whose argument means something of its own, or wants others beside it."""
_TEXT = (
    *("max_line_width", "precision", "suppress_small", "separator", "prefix", "suffix", "formatter", "threshold"),
    *("edgeitems", "sign", "floatmode", "legacy", "style"),
)
UNCHANGING: dict[str, str] = {
    **dict.fromkeys(_TEXT, "of texts, and the handlers of these functions have no numbers to give"),
    **dict.fromkeys(
        ("order", "device", "subok", "like", "copy", "writeable"), "where an array lies, and in which order"
    ),
    "overwrite_input": "whether the argument may be spoilt",
    "optimize": "in which order products are made",
    "assume_unique": "by which method",
    "kind": "by which method",
    "stable": "whether elements that are equal change places",
    "sorted": "without, the order is free",
    "ndmax": "of arrays of objects",
    "real_if_close.tol": "of complex numbers",
    **dict.fromkeys(("corrcoef.bias", "corrcoef.ddof"), "what it scales cancels"),
    "histogram_bin_edges.weights": "is not looked at where the number of bins is given, and refused where it is not",
}
"""Arguments, of any function or of one, of which no value changes a number, and why."""


def parameters(f: Any) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(f).parameters)
    except ValueError:
        return {}


def optional(f: Any) -> list[str]:
    return [name for name, p in parameters(f).items() if p.default is not p.empty and name != "out"]


def needed(f: Any) -> list[str]:
    return [name for name, p in parameters(f).items() if p.default is p.empty and p.kind in (0, 1)]


FITTING = {**BASE, "q": [0.25, 0.5]}


def calls_of(f: Any, mains: tuple[Any, ...] = (X, FINITE, POSITIVE, LINE)) -> Iterator[Call]:
    """Calls of a function that give one or more of its optional arguments."""
    own = parameters(f)
    for given, named in CALLS.get(f.__name__, []):
        if named.keys() <= own.keys():
            yield given, named
    for name in optional(f):
        for value in VALUES.get(name, []):
            for main in mains:
                lists = {"condlist": [main > 0], "choicelist": [main], "arrays": [main], "tup": [main]}
                given = tuple(lists.get(n, FITTING.get(n, main)) for n in needed(f))
                by_place = own[name].kind is inspect.Parameter.POSITIONAL_ONLY
                yield ((*given, value), {}) if by_place else (given, {name: value})


def put(x: Any, values: list[Any]) -> Any:
    """Arguments with other arrays of reals."""
    if isinstance(x, np.ndarray):
        return values.pop(0) if x.dtype == np.float64 else x
    if isinstance(x, dict):
        return {key: put(value, values) for key, value in x.items()}
    return type(x)([put(part, values) for part in x]) if isinstance(x, tuple | list) else x


def result(f: Any, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """What numpy makes of a call, or the exception that it raises."""
    try:
        return f(*copy.deepcopy(given), **copy.deepcopy(named))
    except Exception as problem:
        return problem


def same(a: Any, b: Any, kinds: bool = False) -> bool:
    """Whether results are equal; with `kinds`, their types, too."""
    if isinstance(a, Exception) or isinstance(b, Exception):
        return False
    if hasattr(b, "Vh") and len(a) == 3:  # pairs of columns and rows have a sign that is free
        a, b = ((u[:, : len(s)] * s @ v[: len(s)], abs(u), s, abs(v)) for u, s, v in (a, b))
    if isinstance(a, tuple | list) or isinstance(b, tuple | list):
        alike = isinstance(a, tuple | list) and isinstance(b, tuple | list) and len(a) == len(b)
        return alike and all(same(x, y, kinds) for x, y in zip(a, b, strict=True))
    if isinstance(a, str | np.dtype):
        return bool(a == b)
    return _same(a, b) and not (kinds and np.asarray(a).dtype != np.asarray(b).dtype)


def given_in(f: Any, given: tuple[Any, ...], named: dict[str, Any]) -> list[str]:
    """The optional arguments that a call gives, of which each is left out in turn: those that change the result."""
    places = [name for name, p in parameters(f).items() if p.kind in (0, 1)]
    wanted, found = result(f, given, named), []
    for name in named:
        if not same(result(f, given, {k: v for k, v in named.items() if k != name}), wanted, kinds=True):
            found.append(name)
    for i in range(len(needed(f)), min(len(given), len(places))):
        if not same(result(f, given[:i], {}), wanted, kinds=True):
            found.append(places[i])
    return found
