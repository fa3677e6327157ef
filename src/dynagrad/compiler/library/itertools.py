"""`itertools`, `np.ndindex` and `next` while a function is specialised.

Iterables have a static length, or an end that a static condition decides. What has an item at each index, such as
`count` and `cycle`, is an `Iteration`: it may be endless, and loops of the graph may run over it. What drops or joins
items is a tuple.

`range`, `enumerate`, `zip` and `reversed` are iteration spaces themselves (`compiler/evaluate/iteration.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...errors import Error
from ..evaluate.iteration import LONGEST, items, iteration_space
from ..evaluate.operators import binary, truth
from ..evaluate.specialiser import Args, Named, Specialiser, calls
from ..evaluate.values import Iteration, describe, known, unwrapped


def _enter_eager(function: Any) -> None:
    def handler(s: Specialiser, args: Args, named: Named) -> Any:
        parts = [x if x is None or isinstance(x, int) else items(s, x) for x in args]
        return tuple(function(*parts, **named))

    calls(function, knows="r repeat strict fillvalue")(handler)


for _function in (itertools.product, itertools.permutations, itertools.chain, itertools.pairwise):
    _enter_eager(_function)
_enter_eager(itertools.combinations)
_enter_eager(itertools.combinations_with_replacement)
if hasattr(itertools, "batched"):  # from Python 3.12
    _enter_eager(itertools.batched)
_enter_eager(itertools.zip_longest)


@calls(itertools.chain.from_iterable)
def _joined(s: Specialiser, args: Args, named: Named) -> Any:
    return tuple(item for part in items(s, args[0]) for item in items(s, part))


@calls(np.ndindex)
def _ndindex(s: Specialiser, args: Args, named: Named) -> Any:
    if not all(map(known, args)):
        raise Error("np.ndindex: the shape must be known when the function is compiled")
    return tuple(np.ndindex(*map(unwrapped, args)))


@calls(itertools.starmap)
def _starred(s: Specialiser, args: Args, named: Named) -> Any:
    function, x = args
    return tuple(s.call(function, list(items(s, part))) for part in items(s, x))


@calls(itertools.accumulate, knows="func initial")
def _accumulated(s: Specialiser, args: Args, named: Named) -> Any:
    x, function = args[0], args[1] if len(args) > 1 else None
    found: list[Any] = [] if named.get("initial") is None else [named["initial"]]
    for item in items(s, x):
        if not found:
            found.append(item)
        else:
            pair = [found[-1], item]
            found.append(binary(s, "add", *pair) if function is None else s.call(function, pair))
    return tuple(found)


@calls(itertools.tee, knows="n")
def _tee(s: Specialiser, args: Args, named: Named) -> Any:
    return (items(s, args[0]),) * (args[1] if len(args) > 1 else 2)


# -- endless iterables -------------------------------------------------------------------------------------------------


@calls(itertools.count, knows="start step")
def _counted(s: Specialiser, args: Args, named: Named) -> Any:
    """`itertools.count`: a range that ends where 64 bits do."""
    start, step = args[0] if args else 0, args[1] if len(args) > 1 else 1
    if not isinstance(step, int):
        raise Error("the step of itertools.count() must be a whole number that is known when the function is compiled")
    return Iteration("range", (start, 2**62 if step > 0 else -(2**62), step))


@calls(itertools.repeat, knows="times")
def _repeated(s: Specialiser, args: Args, named: Named) -> Any:
    times = args[1] if len(args) > 1 else None
    if times is None:
        return Iteration("cycle", ((args[0],),))
    if not isinstance(times, int):
        raise Error("times= of itertools.repeat() must be known when the function is compiled")
    return (args[0],) * times


@calls(itertools.cycle)
def _cycled(s: Specialiser, args: Args, named: Named) -> Any:
    return Iteration("cycle", (items(s, args[0]),))


# -- filters -----------------------------------------------------------------------------------------------------------


def _lazily(s: Specialiser, x: Any) -> Iterator[Any]:
    """The items of an iterable that may be endless."""
    found = iteration_space(s, x)
    if not isinstance(found.length, int):
        raise Error(f"how many items {found.what} has is known only as the function runs")
    for i in range(found.length):
        if i >= LONGEST:
            raise Error(f"{found.what} has too many items for a structure in a compiled function; use arrays")
        yield found.static_item(i)


@calls(itertools.islice, knows="stop step")
def _sliced(s: Specialiser, args: Args, named: Named) -> Any:
    x, *bounds = args
    if not all(b is None or isinstance(b, int) for b in bounds):
        raise Error("the bounds of itertools.islice() must be known when the function is compiled")
    return tuple(itertools.islice(_lazily(s, x), *bounds))


def _static_condition(s: Specialiser, name: str, x: Any) -> bool:
    """A condition on an item. Raises Error where it is dynamic."""
    found = truth(s, x)
    if not isinstance(found, bool):
        raise Error(
            f"which items itertools.{name}() keeps must be known when the function is compiled, and here it depends on "
            "a number that is known only as it runs; use a loop with `if`, or np.where"
        )
    return found


def _filter(function: Any) -> Callable[..., Any]:
    name: str = function.__name__

    def handler(s: Specialiser, args: Args, named: Named) -> Any:
        test, x = args
        return tuple(function(lambda item: _static_condition(s, name, _apply_test(s, test, item)), _lazily(s, x)))

    return handler


def _apply_test(s: Specialiser, test: Any, item: Any) -> Any:
    return item if test is None else s.call(test, [item])


for _keeping in (itertools.takewhile, itertools.dropwhile, itertools.filterfalse):
    calls(_keeping)(_filter(_keeping))


@calls(itertools.compress)
def _compressed(s: Specialiser, args: Args, named: Named) -> Any:
    data, selectors = args
    pairs = zip(_lazily(s, data), _lazily(s, selectors), strict=False)
    return tuple(item for item, keep in pairs if _static_condition(s, "compress", keep))


@calls(itertools.groupby, knows="key")
def _grouped(s: Specialiser, args: Args, named: Named) -> Any:
    x, key = args[0], args[1] if len(args) > 1 else None
    found: list[tuple[Any, list[Any]]] = []
    for item in items(s, x):
        mine = item if key is None else s.call(key, [item])
        if found and _static_condition(s, "groupby", binary(s, "equal", found[-1][0], mine)):
            found[-1][1].append(item)
        else:
            found.append((mine, [item]))
    return tuple((k, tuple(group)) for k, group in found)


@calls(next, knows=None)
def _next(s: Specialiser, args: Args, named: Named) -> Any:
    raise Error(
        f"next() of {describe(args[0])} cannot be compiled, since iterators have no state there; index it, or loop "
        "over it with `for` and `break`"
    )
