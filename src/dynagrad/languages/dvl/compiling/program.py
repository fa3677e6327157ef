"""DVL programs as machine code, by the compiler that Python functions have: programs, and closures of the machine.

What the builtins do there is in `builtins.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....compiler.evaluate.heap.tags import without_tags
from ....compiler.evaluate.heap.unions import has_functions, keys
from ....compiler.evaluate.specialiser import Specialiser, Undecided
from ....compiler.evaluate.values import Closure, HostFunction, Union
from ....compiler.frontend.core import Apply, Bindings, Constant, Expression, Lambda, Name, Tuple
from ....errors import Error, LiftError
from ....ir import Node
from ..builtins import Builtin
from ..data import NIL, Procedure, QuotedSymbol, chain, is_pair
from ..lower import FunctionGroup, Item, fresh
from ..variables import free
from .builtins import enter
from .loops import looped, looped_function
from .unions import Handler, each_part
from .values import Bundled, is_function


def packed(given: Sequence[Any]) -> Any:
    """The arguments of a call from Python as one."""
    return chain([_number(x) for x in given[:-1]], _number(given[-1])) if given else NIL


def _number(x: Any) -> Any:
    if isinstance(x, tuple) and not isinstance(x, Bundled):
        return tuple(map(_number, x))
    content = getattr(x, "content", None)
    if isinstance(content, tuple) and not isinstance(x, Node):  # a list of Python's
        return chain([_number(part) for part in content])
    return float(x) if isinstance(x, int) and not isinstance(x, bool) else x


def foreign(f: Callable[..., Any]) -> HostFunction:
    """A function of Python's as one of DVL."""

    def run(s: Specialiser, held: tuple[Any, ...], given: Sequence[Any], named: Any) -> Any:
        arguments = list(given)
        while is_pair(arguments[-1]):
            arguments[-1:] = arguments[-1]
        return _number(s.call(f, [] if isinstance(given[0], tuple) and not given[0] else arguments))

    return HostFunction(("dvl", getattr(f, "__name__", "a function"), f), run, ())


def lifted(s: Specialiser, code: Lambda, held: dict[str, Any], own: str | None) -> Handler:
    """What calls a closure of the machine, in the compiler."""
    if own is not None:
        code = looped_function(own, code)
    else:
        code = Lambda(code.name, code.parameters, looped(code.body), code.free, code.at)
    closure = Closure(code, {name: _captured(held[name]) for name in code.free if name in held})
    return lambda s, given, named: _splitting(s, lambda: s.call(closure, [packed(given)]))


def _splitting(s: Specialiser, run: Callable[[], Any]) -> Any:
    """What is computed where values of different kinds may come out of a choice: each goes its own way from there on,
    or else they are unions."""
    before, s.splits = s.splits, True
    wanted = keys().tags_wanted
    try:
        return run()
    except LiftError as problem:
        with_tags = keys().tags_wanted > wanted
        if s.level or not (with_tags or isinstance(problem, Undecided)):
            raise
        with s.uniting(tags=with_tags):
            found = run()
        return found if s.tags else without_tags(found)
    finally:
        s.splits = before


def _captured(x: Any) -> Any:
    return foreign(x) if callable(x) and not isinstance(x, Procedure) else x


class Whole:
    """A program as a function without arguments, whose result is the values of its expressions."""

    def __init__(self, items: Sequence[Item], functions: dict[str, Any]) -> None:
        out, names = Bindings(), []
        for item in items:
            if isinstance(item, FunctionGroup):
                out.fix(item.group, item.group[0][1].at)
            else:
                out.let(item.name, item.value, None)
                if not item.symbol:
                    names.append(item.name)
        shown = []
        for name in names:
            made = fresh("result")
            out.let(made, Apply(Constant(RESULT), (Name(name),)), None)
            shown.append(Name(made))
        e: Expression = looped(out.wrap(Tuple(tuple(shown))))
        held = {name: foreign(f) for name, f in functions.items()}
        self.closure = Closure(Lambda("program", (), e, tuple(sorted(free(e)))), held)
        self.__name__ = "program"

    def __call__(self) -> Any:
        raise Error("a whole program is compiled, and not called")

    def __dynagrad_lift__(self, s: Specialiser) -> Handler:
        return lambda s, given, named: _splitting(s, lambda: s.call(self.closure, []))


def _result(s: Specialiser, x: Any, made: dict[int, Any]) -> Any:
    """A value as a result of the whole: functions by their name alone, and bundles as they are printed. `made` has what
    shared pairs became."""
    if isinstance(x, Bundled):
        return chain([QuotedSymbol("bundle"), x.tag, _result(s, x.primal, made), _result(s, x.tangent, made)])
    if isinstance(x, Union):
        return each_part(s, RESULT, x) if has_functions(x.kinds) else x
    if is_pair(x):
        if id(x) not in made:
            made[id(x)] = (_result(s, x[0], made), _result(s, x[1], made))
        return made[id(x)]
    return QuotedSymbol(f"#[procedure {getattr(x, 'name', 'function')}]") if is_function(x) else x


RESULT = Builtin("result", 1, 1, lambda x: x)
enter(RESULT, lambda s, x: _result(s, x, {}))
