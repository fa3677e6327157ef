"""What users pass on to scipy's methods, checked before scipy sees it: bounds, constraints, and options.

scipy takes some wrong ones in silence, and of others it tells from deep within. What a method does with them is for
`descent.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from ...arguments import bounded_number, function_of, real_number, whole_number, yes_or_no
from ...calls import nearest_option
from ...errors import Error, counted, raised, shown
from ..parameters.rows import Doubles

# -- bounds ------------------------------------------------------------------------------------------------------------


def checked_bounds(given: Any, names: Sequence[str]) -> list[tuple[float, float]]:
    """Bounds of the parameters of these names, as pairs: from pairs, one pair for all, or scipy's own Bounds.

    >>> checked_bounds([(0, None), (None, 1.0)], ["a", "b"])
    [(0.0, inf), (-inf, 1.0)]
    """
    size = len(names)
    wanted = (
        f"bounds are a list with a pair (low, high) for each of the {counted(size, 'parameter')}, None where there "
        "is none, "
        "or scipy.optimize.Bounds"
    )
    if hasattr(given, "lb") and hasattr(given, "ub"):
        try:
            ends = [np.broadcast_to(np.asarray(end, np.float64), size).tolist() for end in (given.lb, given.ub)]
        except (TypeError, ValueError):
            raise Error(f"{wanted}; {shown(given)} does not fit these") from None
        pairs: list[Any] = list(zip(*ends, strict=True))
    elif isinstance(given, str | bytes | Mapping | set | frozenset) or not isinstance(given, Iterable):
        raise Error(f"{wanted}, not {shown(given)}")
    else:
        pairs = list(given)
    if len(pairs) == 1:
        pairs *= size
    if len(pairs) != size:
        raise Error(f"{wanted}; there are {len(pairs):,}")
    return [_pair(pair, name, wanted) for pair, name in zip(pairs, names, strict=True)]


def _pair(given: Any, name: str, wanted: str) -> tuple[float, float]:
    given = given.tolist() if isinstance(given, np.ndarray) else given
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise Error(f"{wanted}; that of {name} is {shown(given)}")
    low, high = (
        without if end is None else real_number(f"a bound of {name}", end)
        for end, without in zip(given, (-np.inf, np.inf), strict=True)
    )
    if low > high or low == np.inf or high == -np.inf:
        raise Error(f"no number is within the bounds of {name}, {shown(given)}: a pair is (low, high)")
    return low, high


# -- constraints -------------------------------------------------------------------------------------------------------

ENTRIES = ("type", "fun", "jac", "args")
"""What a constraint that is a dict may have."""


def checked_constraints(given: Any, start: Doubles) -> list[Any]:
    """Constraints as a list, from any of scipy's forms; their functions are tried at the initial parameters."""
    if isinstance(given, Mapping) or hasattr(given, "lb"):
        given = [given]
    if not isinstance(given, list | tuple):
        raise Error(
            "constraints are a LinearConstraint or NonlinearConstraint of scipy.optimize, a dict such as "
            f"{{'type': 'eq', 'fun': function of the parameters}}, or a list of these, not {shown(given)}"
        )
    for n, one in enumerate(given):
        name = f"constraints[{n}]"
        if isinstance(one, Mapping):
            _check_entries(one, name, start)
        elif hasattr(one, "A") and hasattr(one, "lb"):
            _check_linear(one, name, len(start))
        elif hasattr(one, "fun") and hasattr(one, "lb"):
            function_of(f"{name}.fun", one.fun, 1, "the parameters")
            _check_result(f"{name}.fun", one.fun(start.copy()))
        else:
            raise Error(
                f"{name} is {shown(one)}; wanted is a LinearConstraint or NonlinearConstraint of scipy.optimize, or a "
                "dict such as {'type': 'eq', 'fun': function of the parameters}"
            )
    return list(given)


def _check_entries(one: Mapping[str, Any], name: str, start: Doubles) -> None:
    for entry in one:
        if entry not in ENTRIES:
            raise Error(f"{name} has {shown(entry)}{nearest_option(str(entry), ENTRIES)}")
    if str(one.get("type")).lower() not in ("eq", "ineq"):
        raise Error(
            f"{name}['type'] is 'eq' where 'fun' has to be 0, or 'ineq' where it has to be 0 or more, not "
            f"{shown(one.get('type'))}"
        )
    more = one.get("args", ())
    if not isinstance(more, tuple | list):
        raise Error(f"{name}['args'] is a tuple of what 'fun' takes beside the parameters, not {shown(more)}")
    of = f"the parameters and {len(more)} of args" if more else "the parameters"
    function = function_of(f"{name}['fun']", one.get("fun"), 1 + len(more), of)
    count = _check_result(f"{name}['fun']", function(start.copy(), *more))
    if callable(one.get("jac")):
        slopes = function_of(f"{name}['jac']", one["jac"], 1 + len(more), of)(start.copy(), *more)
        if np.size(slopes) != count * len(start):
            raise Error(
                f"a result of {name}['jac'] has {counted(np.size(slopes), 'number')}, and there are {count:,} of "
                "'fun' by "
                f"{counted(len(start), 'parameter')}"
            )
    elif one.get("jac") not in (None, False, "2-point", "3-point", "cs"):
        raise Error(f"{name}['jac'] is a function of {of}, or is left out, not {shown(one['jac'])}")


def _check_result(what: str, found: Any) -> int:
    """Checks what a function of a constraint returned, and counts its numbers."""
    try:
        numbers = np.atleast_1d(np.asarray(found, np.float64))
    except (TypeError, ValueError):
        numbers = np.full(1, np.nan)
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise Error(
            f"a result of {what} must be a finite number, or a row of them, and is {shown(found)} for the initial "
            "parameters"
        )
    return len(numbers)


def _check_linear(one: Any, name: str, size: int) -> None:
    sparse = hasattr(one.A, "tocsr")
    shape = one.A.shape if sparse else np.atleast_2d(one.A).shape
    if len(shape) != 2 or shape[1] != size:
        raise Error(
            f"{name} has a matrix of shape {shape}: it needs a column for each of the {counted(size, 'parameter')}"
        )
    numbers = one.A.data if sparse else np.asarray(one.A)
    if numbers.dtype.kind not in "fiu" or not np.isfinite(numbers).all():
        raise Error(f"{name} has a matrix in which some are no finite numbers: {shown(one.A)}")
    low, high = np.asarray(one.lb), np.asarray(one.ub)
    if low.dtype.kind not in "fiu" or high.dtype.kind not in "fiu" or not (low <= high).all():
        raise Error(f"{name} has lb={shown(one.lb)} and ub={shown(one.ub)}: the first are at most the second")


HOLDS = 1e-3
"""By how much a constraint may be violated, relative to one plus the size of its bound."""


def broken(constraints: Sequence[Any], x: Doubles) -> str | None:
    """What is said of the first constraint that does not hold, if there is one."""
    for n, one in enumerate(constraints):
        if isinstance(one, Mapping):
            values = np.atleast_1d(np.asarray(one["fun"](x.copy(), *one.get("args", ())), np.float64))
            low, high = np.zeros(1), np.full(1, 0.0 if str(one["type"]).lower() == "eq" else np.inf)
        else:
            found = one.A @ x if hasattr(one, "A") else one.fun(x.copy())
            values = np.atleast_1d(np.asarray(found, np.float64))
            low, high = np.asarray(one.lb, np.float64), np.asarray(one.ub, np.float64)
        for value, least, most in zip(*map(np.ravel, np.broadcast_arrays(values, low, high)), strict=True):
            bound = least if not value >= least else most
            if not abs(value - bound) <= HOLDS * (1 + abs(bound)) and not least <= value <= most:
                wanted = f"{bound:g}" if least == most else f"{bound:g} or {'more' if bound == least else 'less'}"
                return f"constraints[{n}] is {value:g}, and has to be {wanted}"
    return None


# -- options -----------------------------------------------------------------------------------------------------------

_Check = Callable[[str, Any], Any]
_COUNT: _Check = lambda name, x: whole_number(name, x, 1)  # noqa: E731
_WHOLE: _Check = lambda name, x: whole_number(name, x)  # noqa: E731
_FROM_ZERO: _Check = lambda name, x: bounded_number(name, x, 0.0)  # noqa: E731
_ABOVE_ZERO: _Check = lambda name, x: bounded_number(name, x, 0.0, above=True)  # noqa: E731
_PART: _Check = lambda name, x: bounded_number(name, x, 0.0, 1.0, above=True)  # noqa: E731

CHECKS: Mapping[str, _Check] = MappingProxyType(
    {
        **dict.fromkeys(("maxiter", "maxfun", "maxcor", "maxls"), _COUNT),
        **dict.fromkeys(("maxCGit", "mesg_num", "iprint", "verbose"), _WHOLE),
        **dict.fromkeys(("gtol", "ftol", "xtol", "xrtol", "barrier_tol"), _FROM_ZERO),
        **dict.fromkeys(("initial_trust_radius", "max_trust_radius", "initial_tr_radius"), _ABOVE_ZERO),
        **dict.fromkeys(("initial_constr_penalty", "initial_barrier_parameter"), _ABOVE_ZERO),
        **dict.fromkeys(("initial_barrier_tolerance",), _ABOVE_ZERO),
        **dict.fromkeys(("c1", "c2"), _PART),
        **dict.fromkeys(("norm", "stepmx", "accuracy", "minfev", "rescale", "eta"), real_number),
        **dict.fromkeys(("return_all", "inexact"), yes_or_no),
    }
)
"""What a value of an option has to be. Those that are not here scipy judges."""


def checked_options(optimize: Any, given: Any, method: str, own: Iterable[str]) -> Mapping[str, Any]:
    """Options of scipy's `method`, which takes unknown ones, and some values that mean nothing, in silence.

    `own` are options that it has, whatever its documentation names.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise Error(f"options are a dict of those of scipy's {method}, not {shown(given)}")
    known = _known(optimize, method, own)
    for name, value in given.items():
        if known and name not in known:
            raise Error(f"scipy's {method} has no option {shown(name)}{nearest_option(str(name), known)}")
        if name in CHECKS:
            CHECKS[name](f"options[{name!r}]", value)
    return given


def _known(optimize: Any, method: str, own: Iterable[str]) -> list[str]:
    """The options that the documentation of scipy names; none where it was left out, as by `python -OO`."""
    found: dict[str, None] = {}
    for name in (method, "trust-ncg") if method == "trust-krylov" else (method,):
        text = optimize.show_options("minimize", name.lower(), disp=False) or ""
        found |= dict.fromkeys(re.findall(r"^ *(\w+) : ", re.split(r"\n *(?:Returns|Notes)\n", text)[0], re.M))
    more = () if method == "trust-constr" else ("return_all",)
    return list(dict.fromkeys([*found, *own, "disp", *more])) if found else []


def refused(method: str, error: Exception, **given: Any) -> Error:
    """The error where scipy cannot work with what a user gave, most of which is checked above."""
    what = ", ".join(f"{name}={shown(x)}" for name, x in given.items() if x is not None)
    return Error(f"scipy's {method} cannot work with {what}: {raised(error)}")
