"""Every function of numpy, with dynamic arguments where it needs static ones and with arguments of wrong kinds: it
compiles and agrees with numpy, or says why not. It never crashes.

Costs three seconds: a child process, since a failure may end the process, specialises some 6,000 calls and compiles
none.
"""

from __future__ import annotations

import inspect
import signal
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dynagrad.compiler.numpy import nodes as numpy_nodes
from dynagrad.compiler.specialised import specialised
from dynagrad.eager.numpy.functions import FUNCTIONS
from dynagrad.eager.numpy.protocol import COMPOSED, LOOKS, STEPS, UFUNCS
from dynagrad.errors import Error
from dynagrad.ir.interpret import run
from dynagrad.ir.types import KINDS, Type, arrays


class Later:
    """A number or an array that is known only as the function runs."""

    def __init__(self, value: Any) -> None:
        self.value = value

    @property
    def type(self) -> Type:
        x = np.asarray(self.value)
        return arrays(KINDS[{"f": "real", "i": "integer", "b": "boolean"}[x.dtype.kind]], x.shape)

    def __repr__(self) -> str:
        return f"later({self.value!r})"


MATRIX = Later(np.array([[2.0, 0.5, -1.0], [0.25, 3.0, 1.5], [1.0, -0.5, 4.0]]))
WHOLE = Later(np.array([[2, 0, -1], [0, 3, 1], [1, 0, 4]]))
N, MASK = Later(1), Later(np.array([True, False, True]))
ODD = [N, (N, N), [N, 1], MASK, Later(np.array([0, 2])), Later(1.5), "text", -7, 2**70]
BASE = {
    "shape": (3, 3), "axis": 0, "axis1": 0, "axis2": 1, "source": 0, "destination": 1, "shift": 1, "repeats": 2,
    "reps": 2, "pad_width": 1, "indices": [0], "condition": [True, False, True], "obj": 1, "indices_or_sections": 3,
    "n": 2, "fill_value": 2, "condlist": [Later(MATRIX.value > 0)], "choicelist": [MATRIX],
    "arrays": [MATRIX, MATRIX], "tup": [MATRIX, MATRIX],
}  # fmt: skip
"""What arguments of these names have where another one is odd."""


def through(f: Any, given: Any, named: Any) -> Any:
    return f(*given, **named)


def _changed(x: Any, how: Any) -> Any:
    if isinstance(x, Later):
        return how(x)
    if isinstance(x, tuple | list):
        return type(x)(_changed(part, how) for part in x)
    return {key: _changed(value, how) for key, value in x.items()} if isinstance(x, dict) else x


def _numbers(x: Any) -> Iterator[Any]:
    if isinstance(x, Later):
        yield x.value
    for part in x.values() if isinstance(x, dict) else x if isinstance(x, tuple | list) else ():
        yield from _numbers(part)


def _same(a: Any, b: Any) -> bool:
    if isinstance(b, tuple | list):
        return isinstance(a, tuple | list) and len(a) == len(b) and all(map(_same, a, b))
    a, b = np.asarray(a), np.asarray(b)
    if b.dtype.kind not in "fiub" or a.shape != b.shape:
        return b.dtype.kind not in "fiub"
    kinds = {x.dtype.kind if x.dtype.kind != "u" else "i" for x in (a, b)}
    digits = 1e-3 if b.dtype == np.float16 else 1e-9  # numpy's functions of truth values are of 16 bits
    return len(kinds) == 1 and np.allclose(a.astype(float), b.astype(float), rtol=digits, atol=1e-11, equal_nan=True)


def _late(*_: Any) -> None:
    raise TimeoutError


COMPARED = "compared"


def attempt(f: Any, given: tuple[Any, ...], named: dict[str, Any]) -> str:
    """What is wrong with a call; `COMPARED` where it gives what numpy gives, and nothing where one of them refuses."""

    def said(problem: str) -> str:
        return f"{f.__name__}{given!r}{named!r}{problem}".replace("\n", " ")

    signal.alarm(10)
    try:
        made = specialised(through, (f, _changed(given, lambda x: x.type), _changed(named, lambda x: x.type)))
    except Error as problem:
        return "" if len(str(problem)) > 20 else said(f": says {problem}")
    except BaseException as problem:
        return said(f": {type(problem).__name__}: {problem}")
    try:
        wanted = f(*_changed(given, lambda x: x.value), **_changed(named, lambda x: x.value))
    except BaseException:
        return ""  # numpy refuses more
    try:
        found = made.output(run(made.graph, [*_numbers(given), *_numbers(named)]))
    except Exception as problem:
        return said(f": {type(problem).__name__}: {problem} as it runs")
    finally:
        signal.alarm(0)
    return COMPARED if _same(found, wanted) else said(f" is {found!r} and not {wanted!r}")


def parameters_of(f: Any) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(f).parameters.values())
    except ValueError:
        return []


def is_option(p: inspect.Parameter) -> bool:
    return p.default is not p.empty and p.name not in ("like", "device", "where", "out")


EVERY = list(dict.fromkeys([*FUNCTIONS, *numpy_nodes.ON_NODES, *LOOKS, *UFUNCS, *COMPOSED, *STEPS]))
COUNTS = Counter(p.name for f in EVERY if not isinstance(f, np.ufunc) for p in parameters_of(f) if is_option(p))
SHARED = {name for name, count in COUNTS.items() if count > 1 and name != "mode"}  # which means something else in each


def calls(f: Any, turn: int) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Calls of a function of which each has one odd argument.

    An option that several functions have, and look at in the same way, has every third odd one, others at the next
    `turn`; one that a single function has, each of them.
    """
    thirds = [ODD[k::3] for k in range(3)]
    if isinstance(f, np.ufunc):
        for odd in ODD:
            for i in range(f.nin):
                yield tuple(odd if k == i else MATRIX for k in range(f.nin)), {}
        for i, name in enumerate(("where", "dtype", "axis")):
            for odd in thirds[(turn + i) % 3]:
                yield (MATRIX,) * f.nin, {name: odd}
        return
    parameters = parameters_of(f)
    for main in (MATRIX, WHOLE):
        needed = [
            p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        given = tuple(BASE.get(p.name, main) for p in needed)
        yield given, {}
        for odd in ODD if main is MATRIX else ODD[:2]:
            for i in range(len(needed)):
                yield (*given[:i], odd, *given[i + 1 :]), {}
            for k, p in enumerate(parameters):
                if is_option(p) and (p.name not in SHARED or odd in thirds[(turn + k) % 3]):
                    yield given, {p.name: odd}
                if p.kind is p.VAR_POSITIONAL:
                    yield (odd, main), {}
                    yield (main, odd), {}


def _senseless(f: Any, given: tuple[Any, ...], named: dict[str, Any]) -> bool:
    """Whether numpy takes for ever, divides by 0 in 8 bits, is free to choose signs, or has a kind for one value."""
    if f in (np.quantile, np.nanquantile) and given[0] is WHOLE and given[1:] == (N,):
        return True  # of q = 1 the largest, as it is; of 0.5 a real
    if f is np.reciprocal:
        return given[0] is MASK
    if f in (np.isclose, np.allclose) and np.__version__ < "2":
        return -7 in (*given, *named.values())  # equal numbers are not close there within less than nothing
    return (f is np.diff and named.get("n") == 2**70) or "hermitian" in named


NO_VALUES = {"copy", "empty_like", "may_share_memory", "shares_memory", "empty", "show_config"}  # or none to compare


def walk() -> Iterator[str]:
    """What is wrong with any call."""
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, _late)
    count = compared = 0
    with np.errstate(all="ignore"):
        for turn, f in enumerate(EVERY):
            if f.__name__ not in NO_VALUES:
                for given, named in calls(f, turn):
                    if _senseless(f, given, named):
                        continue
                    count += 1
                    wrong = attempt(f, given, named)
                    compared += wrong is COMPARED
                    yield "" if wrong is COMPARED else wrong
    print(f"{count} calls {compared} compared")


def test_every_function_with_arguments_of_a_wrong_kind() -> None:
    path = [str(Path(__file__).parents[1]), *sys.path]
    command = f"import sys; sys.path[:0] = {path!r}; from compiler import test_every_function as t; t.main()"
    child = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, timeout=600)
    assert child.returncode == 0, child.stderr[-2000:]
    *wrong, count = child.stdout.splitlines()
    assert not wrong, "\n".join(wrong[:20])
    calls, _, compared, _ = count.split()
    assert int(calls) > 4000
    assert int(compared) > 1850  # the others are refused, here or by numpy


def main() -> None:
    for wrong in walk():
        if wrong:
            print(wrong[:300])
