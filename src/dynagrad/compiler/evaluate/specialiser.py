"""The specialiser: an online partial evaluator of the core language, whose residual program is a graph.

Static values are computed at once: functions are inlined, structures taken apart, conditions decided. A dynamic number
is a node. This file has evaluation, calls, and changes in place, which are logged so that those of a branch can be
undone. Choices on dynamic conditions, loops, recursion, primitives and library functions are handlers in other files,
entered into the tables here.

It is long because evaluation and calls are one recursion.
"""

from __future__ import annotations

import itertools
import os
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from ...autodiff.control_flow import NoBody
from ...eager.names.numpy_names import ORIGINALS
from ...errors import Error, LiftError, counted
from ...ir import Node, builders
from ...ir.names import name_value, set_line
from ..call_arguments import checking
from ..frontend.core import (
    UNDEFINED,
    Apply,
    Atom,
    Constant,
    Expression,
    Fix,
    For,
    If,
    Lambda,
    Let,
    Name,
    Position,
    Primitive,
    Project,
    Tuple,
    While,
)
from ..frontend.source import Mistake, error
from ..frontend.statements import lower
from .joins import Mismatch
from .limits import most_calls, most_inlined
from .values import Array, Cell, Closure, Dict, HostFunction, Masked, Ref, Union, describe, normal

Handler = Callable[..., Any]
Args = Sequence[Any]
"""The positional arguments of a call; `Named` has the others."""
Named = Mapping[str, Any]
H = TypeVar("H", bound=Handler)

PRIMITIVES: dict[str, Handler] = {}
"""Handlers of primitives, called with the specialiser and the arguments."""
CALLS: dict[Any, Handler] = {}
"""Handlers of library functions, called with the specialiser, the positional and the named arguments."""
KNOWS: dict[Any, frozenset[str] | None] = {}
"""The names of the optional arguments that the handlers know; None for all."""
PROBLEMS = (ArithmeticError, LookupError, TypeError, ValueError, AttributeError)
"""What Python raises where a static value cannot be computed."""
_LOOKED_AT = 10_000  # parts of arguments, which may be shared, and more than can be counted
MOST_SPLITS = 10  # dynamic choices inside each other after which the continuation is specialised twice
SPLITS_IN_ALL = 100  # how often that may happen in one specialisation
LOOSE_CALLS = (
    3  # calls of a function inside itself, with dynamic choices between, before it becomes a function of the graph
)


class Diverges(Exception):
    """What is being specialised has no value yet (bottom): it recurses before any result is known."""


class Recursion(Exception):
    """A function calls itself under a dynamic condition: it must become a function of the graph. `vary` where static
    reals nest its calls too deep: then they become dynamic."""

    def __init__(self, frame: Frame, vary: bool = False) -> None:
        super().__init__()
        self.frame, self.vary = frame, vary


class Undecided(LiftError):
    """The branches of a dynamic choice cannot be joined; `test` is its condition.

    Where the front end allows it, the continuation is specialised once for each branch, from the `Let` on that waits
    for the value: a union of kinds is told apart by the place in the residual program.
    """

    def __init__(self, test: Node, problem: LiftError) -> None:
        super().__init__(problem.message, problem.source, problem.span, problem.filename)
        self.test = test


class Enclosed(LiftError):
    """The branches of a choice cannot be joined, and it depends on variables of a body, so that it is not split."""


Finder = Callable[["Specialiser", Any], Handler | None]


class Frame:
    """A call that is being specialised: `level` is the number of dynamic choices around it, and `tags` says whether
    derivatives have tags that the graph makes."""

    def __init__(self, code: Lambda, level: int, at: Position | None, tags: bool) -> None:
        self.code, self.level, self.at, self.tags = code, level, at, tags


def _classes_in(x: Any) -> Iterator[type[BaseException]]:
    """The classes of exceptions that an `except` names."""
    for cls in x if isinstance(x, tuple) else (x,):
        if not (isinstance(cls, type) and issubclass(cls, BaseException)):
            raise Error(f"`except` takes classes of exceptions, not {describe(cls)}")
        yield cls


def _captured_names(code: Lambda) -> list[str]:
    """What a closure captures: the free variables of a function, and its default values."""
    return [*code.free, *(p.default.name for p in code.parameters if isinstance(p.default, Name))]


def _parts(x: Any) -> Iterator[Any]:
    """Tuples and all that is in them."""
    yield x
    if isinstance(x, tuple):
        for part in x:
            yield from _parts(part)


def primitive(name: str) -> Callable[[H], H]:
    """Enters a handler of a primitive."""

    def enter(handler: H) -> H:
        PRIMITIVES[name] = handler
        return handler

    return enter


def calls(*functions: Any, knows: str | None = "") -> Callable[[H], H]:
    """Enters a handler of library functions, which knows these optional arguments, or all (None), and gets each
    argument that has a place by place. Others are refused, also those of a newer Python: no argument is dropped."""
    names = None if knows is None else frozenset(knows.split())

    def enter(handler: H) -> H:
        for function in functions:
            CALLS[function] = checking(function, names, handler)
            KNOWS[function] = names
        return handler

    return enter


class Specialiser:
    """One specialisation. `finders` are asked in order for handlers of functions that are not in `CALLS`."""

    def __init__(self, finders: Sequence[Finder]) -> None:
        self.finders = finders
        self._at: Position | None = None
        self.level = 0  # dynamic choices and loops around
        self.product = 1  # how many copies the unrolled loops around make
        self.frames: list[Frame] = []
        self.recursions: dict[tuple[Lambda, bool], Any] = {}  # by their code, and whether tags are of the graph
        self.functions: dict[Any, list[Any]] = {}  # by their code, and by which tags there are
        self.captured: dict[Any, list[Any]] = {}  # functions with custom derivatives; see transforms/captured.py
        self.lowered: dict[Callable[..., Any], Lambda] = {}
        self.journals: list[dict[Ref, Any]] = []
        self.token = Cell(0, "%token")  # orders the checks of the graph; see exceptions.py
        self.test: Node | None = None  # the condition of the dynamic choice around
        self.tries: list[tuple[tuple[Any, ...], Position | None]] = []  # the classes that each `try` around catches
        self.splits = False  # whether the continuation of a dynamic choice may be specialised once for each branch
        self.assumed: dict[Node, bool] = {}  # the conditions of such choices
        self.split = 0  # how often that has happened
        self.inlined, self.most_inlined = 0, most_inlined()
        self.unions = False  # whether values of different kinds are joined to unions on the heap
        self.tags = False  # whether derivatives have tags that the graph makes; see heap/tags.py
        self.raised: Any = None  # the last exception that a branch raises

    @property
    def at(self) -> Position | None:
        """The place in the user's functions that is read."""
        return self._at

    @at.setter
    def at(self, at: Position | None) -> None:
        self._at = at
        set_line(0 if at is None else at.line)

    # -- errors ------------------------------------------------------------------------------------------------------

    def error(self, message: str, at: Position | None = None) -> LiftError:
        return error(message, at or self.at)

    # -- evaluation --------------------------------------------------------------------------------------------------

    def evaluate(self, e: Expression, env: dict[str, Any]) -> Any:
        """The value of an expression; the names that it binds are added to `env`."""
        while True:
            match e:
                case Let() if self.splits and isinstance(e.value, Apply | If | Let | Fix):
                    try:
                        with self.journal() as changed:
                            found = self.evaluate(e.value, env)
                        for ref, content in changed.items():
                            self.put(ref, content)
                    except Undecided as problem:
                        return self._split(problem, e, env)
                    env[e.name] = found
                    self.name(e.name, found, e.at)
                    e = e.body
                case Let():
                    env[e.name] = self.evaluate(e.value, env)
                    self.name(e.name, env[e.name], e.at)
                    e = e.body
                case Fix():
                    for name, code in e.functions:
                        env[name] = self._closure(code, env, e.functions)
                    e = e.body
                case Apply():
                    return self._apply(e, env)
                case If() if e.catches:
                    return self._try(e, env)
                case If():
                    with self.located(e.at):
                        test = self.truth(self.read(e.condition, env))
                        if not isinstance(test, bool):
                            return self.apply("if", e, test, env)
                    e = e.then if test else e.otherwise
                case Name() | Constant():
                    return self.read(e, env)
                case Tuple():
                    return tuple(self.look(item, env) for item in e.items)
                case Project():
                    return self.read(e.value, env)[e.index]
                case Lambda():
                    return self._closure(e, env, ())
                case While() | For():
                    with self.located(e.at):
                        return self.apply("loop", e, env)

    def _split(self, problem: Undecided, e: Let, env: dict[str, Any]) -> Any:
        """A `Let` whose value depends on a dynamic choice, specialised once for each branch of that choice."""
        self.split += 1
        if len(self.assumed) >= MOST_SPLITS or self.split > SPLITS_IN_ALL:
            with self.uniting():
                return self.evaluate(e, env)

        def branch(holds: bool) -> Callable[[], Any]:
            def run() -> Any:
                before = self.assumed
                self.assumed = {**before, problem.test: holds}
                try:
                    return self.evaluate(e, dict(env))
                finally:
                    self.assumed = before

            return run

        try:
            return self.cond(problem.test, branch(True), branch(False))
        except Mismatch:
            raise problem from None

    @contextmanager
    def uniting(self, tags: bool = False) -> Iterator[None]:
        """Inside, values of different kinds are joined to unions on the heap: slower than a continuation for each kind,
        and possible where a continuation cannot be specialised for each, in loops and recursions. With `tags`,
        derivatives have tags that the graph makes."""
        before = self.unions, self.tags
        self.unions, self.tags = True, tags or self.tags
        try:
            yield
        finally:
            self.unions, self.tags = before

    @contextmanager
    def closed(self) -> Iterator[None]:
        """A body with variables of its own: a choice that depends on them cannot be split outside of it."""
        since = builders.now()
        try:
            yield
        except Undecided as problem:
            if problem.test.birth >= since:
                raise Enclosed(problem.message, problem.source, problem.span, problem.filename) from None
            raise

    def _try(self, e: If, env: dict[str, Any]) -> Any:
        """The body of a `try`, which is refused if it may raise what the `try` catches."""
        with self.located(e.at):
            caught = tuple(c for atom in e.catches for c in _classes_in(self.read(atom, env)))
        self.tries.append((caught, e.at))
        try:
            return self.evaluate(e.then, env)
        finally:
            self.tries.pop()

    def may_raise(self, *classes: type[BaseException]) -> None:
        """Raises LiftError where a `try` around would catch an exception that may be raised here as the graph runs."""
        for caught, at in self.tries:
            for cls in classes:
                if issubclass(cls, caught):
                    where = "" if at is None else f" in line {at.line}"
                    raise self.error(
                        f"this may raise {cls.__name__} as the function runs, and the `try`{where} catches it; what "
                        "a compiled function raises can be caught only outside of it: check with `if` instead"
                    )

    def name(self, name: str, value: Any, at: Position | None) -> None:
        """Records the name of a variable for the node it holds, for the text of graphs and of C++."""
        content = value.content if isinstance(value, Array) and value.base is None else value
        if isinstance(content, Node):
            at = at or self.at
            name_value(content.birth, name, 0 if at is None else at.line)

    def look(self, atom: Atom, env: Mapping[str, Any]) -> Any:
        """The value of an atom, UNDEFINED included."""
        if isinstance(atom, Constant):
            return normal(atom.value)
        return env.get(atom.name, UNDEFINED)

    def read(self, atom: Atom, env: Mapping[str, Any]) -> Any:
        """The value of an atom. Raises LiftError where the variable has none."""
        value = self.look(atom, env)
        if value is UNDEFINED and isinstance(atom, Name):
            if self.splits and isinstance(self.raised, Error):  # without assignment, only an error leaves none
                why = "no branch is known to give this a value, and one of them is an error"
                raise self.error(f"{why}: {self.raised}", atom.at) from Mistake(str(self.raised))
            raise self.error(f"{atom.name} has no value here; assign it before, on every path", atom.at)
        return value

    def _closure(self, code: Lambda, env: Mapping[str, Any], group: tuple[tuple[str, Lambda], ...]) -> Closure:
        own = {name for name, _ in group}
        needed = [name for each in (code, *(c for _, c in group)) for name in _captured_names(each)]
        captured = {name: env[name] for name in needed if name not in own and name in env}
        defaults = {p.name: self.look(p.default, env) for p in code.parameters if isinstance(p.default, Name)}
        return Closure(code, captured, group, defaults)

    def truth(self, x: Any) -> bool | Node:
        """A value as a condition: known, or a node."""
        found: bool | Node = self.apply("truth", x)
        return found

    # -- calls -------------------------------------------------------------------------------------------------------

    def _apply(self, e: Apply, env: dict[str, Any]) -> Any:
        function = self.read(e.function, env)
        if isinstance(function, Primitive) and function.name in _TAKES_UNDEFINED:
            given = [self.look(a, env) for a in e.arguments]
        else:
            given = [self.read(a, env) for a in e.arguments]
        named = {name: self.read(a, env) for name, a in e.named}
        with self.located(e.at):
            return self.call(function, given, named)

    @contextmanager
    def located(self, at: Position | None) -> Iterator[None]:
        """Errors inside point to a position, unless they have one."""
        self.at = at = at or self.at
        try:
            yield
        except (LiftError, Diverges, Recursion, NoBody):
            raise
        except RecursionError as problem:
            raise error("calls are nested too deeply to be compiled; use a loop", at) from problem
        except (Error, *PROBLEMS) as problem:
            text = str(problem) if isinstance(problem, Error) else f"{type(problem).__name__}: {problem}"
            raise error(text, at) from problem
        finally:
            self.at = at

    def apply(self, name: str, *arguments: Any) -> Any:
        """Applies a primitive. Handlers call each other in this way, so that their files need not import each other."""
        return PRIMITIVES[name](self, *arguments)

    def cond(self, test: Node, then: Callable[[], Any], otherwise: Callable[[], Any], speculate: bool = False) -> Any:
        """The join of what two functions return, with the join of their changes in place. Raises Mismatch."""
        return self.apply("cond", test, then, otherwise, speculate)

    def call(self, function: Any, arguments: Sequence[Any], named: Mapping[str, Any] | None = None) -> Any:
        """Calls a closure, a primitive, a host function, a library function with a handler, or a Python function."""
        named = named or {}
        if isinstance(function, Primitive):
            if any(isinstance(a, Masked) for a in arguments):
                return self.apply("masked call", function, arguments, named)
            return self.apply(function.name, *arguments)
        if isinstance(function, Closure):
            return self.enter(function, arguments, named)
        if isinstance(function, Union):
            return self.apply("call union", function, arguments)
        if isinstance(function, HostFunction):
            return function.run(self, function.captured, arguments, named)
        handler = self.handler(function)
        if handler is not None:
            if any(isinstance(a, Masked) for a in arguments):
                return self.apply("masked call", function, arguments, named)
            return handler(self, list(arguments), dict(named))
        if isinstance(function, types.FunctionType):
            if function.__code__.co_filename.startswith(_OURS):
                raise self.error(f"{function.__name__} of dynagrad cannot be compiled; call it outside of the function")
            return self.enter(self.closure_of(function), arguments, named)
        if self.splits:  # not Python's
            raise Mistake(f"{describe(function)} is called, and is no procedure")
        raise self.error(
            f"{describe(function)} cannot be called in a compiled function; Python functions with source, dataclasses, "
            "numpy, math and the functions of dynagrad can"
        )

    def closure_of(self, function: Callable[..., Any]) -> Closure:
        """A Python function as a closure, lowered from its source."""
        if function not in self.lowered:
            assert isinstance(function, types.FunctionType)
            self.lowered[function] = lower(function)
        return Closure(self.lowered[function])

    def handler(self, function: Any) -> Handler | None:
        """The handler of a library function, if there is one."""
        try:
            function = ORIGINALS.get(function, function)
            found = CALLS.get(function)
        except TypeError:  # it has no hash
            found = None
        if found is not None:
            return found
        for find in self.finders:
            found = find(self, function)
            if found is not None:
                return found
        return None

    def bind(self, function: Closure, arguments: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters of a function with their values, as Python binds arguments."""
        code, given, left = function.code, list(arguments), dict(named)
        env: dict[str, Any] = {}
        for p in code.parameters:
            if p.kind == "rest":
                env[p.name], given = tuple(given), []
            elif p.kind == "named rest":
                env[p.name], left = Dict(left), {}
            elif p.kind in ("either", "positional") and given:
                if p.name in left and p.kind == "either":
                    raise self.error(f"{code.name}() got two values for {p.name}")
                env[p.name] = given.pop(0)
            elif p.kind != "positional" and p.name in left:
                env[p.name] = left.pop(p.name)
            elif p.name in function.defaults:
                env[p.name] = function.defaults[p.name]
            elif isinstance(p.default, Constant):
                env[p.name] = normal(p.default.value)
            else:
                raise self.error(f"{code.name}() needs a value for {p.name}")
        if given or left:
            extra = f"the argument {next(iter(left))!r}" if left else counted(len(arguments), "argument")
            raise self.error(f"{code.name}() does not take {extra}")
        return env

    def enter(self, function: Closure, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Calls a closure: inlines it, or makes it a function of the graph where inlining would not end."""
        given = self.bind(function, arguments, named)
        code = function.code
        if (code, self.tags) in self.recursions:
            return self.apply("recursive call", function, given)
        active = [f for f in self.frames if f.code is code and f.tags == self.tags]
        if active:
            loose = len({f.level for f in active if f.level < self.level})
            if loose >= LOOSE_CALLS:
                raise Recursion(active[0])
            if len(active) >= (most := most_calls()):
                if any(type(x) is float for x in itertools.islice(_parts(tuple(given.values())), _LOOKED_AT)):
                    raise Recursion(active[0], vary=True)
                raise self.error(
                    f"{code.name} calls itself more than {counted(most, 'time')} while it is compiled, which is "
                    "the limit on "
                    "calls inside each other; the environment variable DYNAGRAD_NESTED raises it. A recursion that "
                    "ends on a condition decided as the function runs needs no limit"
                )
        self.inlined += 1
        if self.inlined > self.most_inlined:
            raise self.error(
                f"{code.name} is called when {counted(self.most_inlined, 'call')} have been inlined, which is the "
                "limit for one "
                "function that is compiled; what is computed from values that are known is computed while it is "
                "compiled, so hide some, or make them arguments. The environment variable DYNAGRAD_INLINED raises the "
                "limit"
            )
        frame = Frame(code, self.level, self.at, self.tags)
        for name, value in given.items():
            self.name(name, value, None)
        depth, at = len(self.frames), self.at
        self.frames.append(frame)
        try:
            return self.evaluate(code.body, self.environment(function, given))
        except Recursion as found:
            if found.frame is not frame:
                raise
            del self.frames[depth:]
            self.at = at
            return self.apply("recurse", function, given, found.vary)
        finally:
            del self.frames[depth:]
            self.at = at

    def environment(self, function: Closure, bound: Mapping[str, Any]) -> dict[str, Any]:
        """The environment of the body of a function: captured variables, its binding group, its parameters."""
        captured = function.captured
        env = {name: captured[name] for name in function.code.free if name in captured}
        for name, code in function.group:
            if code is function.code:
                env[name] = function
                continue
            names = ((p.name, p.default.name) for p in code.parameters if isinstance(p.default, Name))
            defaults = {parameter: captured[name] for parameter, name in names if name in captured}
            env[name] = Closure(code, captured, function.group, defaults)
        env.update(bound)
        return env

    # -- what is changed in place ------------------------------------------------------------------------------------

    def write(self, ref: Ref, content: Any) -> None:
        """Changes the content of a reference. Raises LiftError where it is read-only."""
        if ref.owner and not isinstance(ref, Cell):
            raise self.error(f"this {type(ref).__name__.lower()} cannot be changed in place: {ref.owner}")
        self.put(ref, content)

    def put(self, ref: Ref, content: Any) -> None:
        for journal in self.journals[-1:]:
            journal.setdefault(ref, ref.content)
        ref.content = content

    @contextmanager
    def journal(self) -> Iterator[dict[Ref, Any]]:
        """Undoes changes in place at the end; yields a dict that then has the changed references with their contents.

        References made inside are left out.
        """
        old: dict[Ref, Any] = {}
        changed: dict[Ref, Any] = {}
        start = Ref(None).born
        level, product, depth = self.level, self.product, len(self.journals)
        self.journals.append(old)
        try:
            yield changed
        finally:
            del self.journals[depth:]
            self.level, self.product = level, product
            for ref, content in old.items():
                if ref.born < start:
                    changed[ref] = ref.content
                    ref.content = content


_OURS = str(Path(__file__).parents[2]) + os.sep
_TAKES_UNDEFINED = frozenset({"cell", "write_cell", "dict"})
