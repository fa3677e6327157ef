"""Runs the core language on our numbers: writes a function of Python for each lambda, and for what follows each call.

A function gets what its closure holds, its argument and the stack, and returns the next call, or None and a value
(`procedures.py`). What a program computes at its top is kept under the names of variables, in one namespace, so that
functions need not hold it. Arithmetic on floats stands in the text; all else goes through the table of builtins.
"""

from __future__ import annotations

import functools
import linecache
import re
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...compiler.frontend.core import (
    Apply,
    Constant,
    Expression,
    Fix,
    If,
    Lambda,
    Let,
    Name,
    Position,
    Project,
    Tuple,
)
from ...compiler.frontend.core import Atom as CoreAtom
from ...errors import Error, SourceError, Span
from .builtins import BUILTINS, FIRST, REST, Builtin
from .lower import FunctionGroup, Item
from .procedures import DvlClosure, LambdaCode, run
from .reader import Datum, position
from .variables import MANY, free, may_call

_NESTED = 12  # choices inside each other that are written as such
_FAST = {
    "+": "{0} + {1}",
    "-": "{0} - {1}",
    "*": "{0} * {1}",
    "<": "{0} < {1}",
    "<=": "{0} <= {1}",
    ">": "{0} > {1}",
    ">=": "{0} >= {1}",
    "=": "{0} == {1}",
}
_TESTS = {"null?": "{0}.__class__ is tuple and not {0}", "not": "{0} is False"}


class Machine:
    """A program that runs; what was run before is there for what comes later."""

    def __init__(self, max_steps: int | None = None) -> None:
        self.max_steps = max_steps
        self.space: dict[str, Any] = {"Closure": DvlClosure}
        self.known: dict[str, str] = {}  # variables of the top, and the names that they have in the text
        self.codes: dict[Lambda, str] = {}
        self.cores: dict[Lambda, LambdaCode] = {}
        self.constants: dict[int, tuple[str, Any]] = {}
        self.places: dict[str, list[Position | None]] = {}

    def run(self, item: Item) -> Any:
        """Enters functions, or computes a value, which is returned and has its name from then on."""
        writer = _PythonText(self)
        if isinstance(item, FunctionGroup):
            self.known.update((name, _word(name)) for name, _ in item.group)
            for _, code in item.group:
                writer.function(code)
            self._execute(writer)
            for name, code in item.group:
                self.space[_word(name)] = DvlClosure(self.space[self.codes[code]], (), code.name, writer.core(code))
            return None
        start = writer.block((), item.value)
        self._execute(writer)
        found = self.located(
            item.datum, lambda: run(DvlClosure(self.space[start], (), "top", None), (), self.max_steps)
        )
        self.bind(item.name, found)
        return found

    def bind(self, name: str, value: Any) -> None:
        """Gives a variable of the top its value."""
        self.known[name] = _word(name)
        self.space[_word(name)] = value

    def value(self, name: str) -> Any:
        """What a variable of the top holds."""
        return self.space[self.known[name]]

    def lift(self, s: Any, closure: DvlClosure) -> Any:
        """What calls a closure inside of compiled functions."""
        from .compiling.program import lifted  # for a quick start

        assert closure.core is not None
        code, names = closure.core.code, closure.core.names
        held = {name: self.space[word] for name in code.free if (word := self.known.get(name)) in self.space}
        held.update(zip(names, closure.held, strict=True))
        return lifted(s, code, held, next((name for name, x in held.items() if x is closure), None))

    def located(self, datum: Datum, compute: Callable[[], Any]) -> Any:
        """What is computed; errors get the place in the program where they came from, which is in a datum."""
        try:
            return compute()
        except SourceError:
            raise
        except (Error, ArithmeticError, ValueError, RecursionError) as problem:
            raise placed(problem, self.place_of(problem) or position(datum)) from problem

    def place_of(self, problem: BaseException) -> Position | None:
        """The place that an error came from, if it is known; not one in the prelude, but where that was called."""
        for frame, line in reversed(list(traceback.walk_tb(problem.__traceback__))):
            places = self.places.get(frame.f_code.co_filename)
            if places is not None:
                at = next((p for p in reversed(places[:line]) if p is not None), None)
                if at is not None:
                    return at
        waiting: list[Callable[..., Any]] = getattr(problem, "dvl_frames", [])
        for then in reversed(waiting):
            places = self.places.get(then.__code__.co_filename)
            called = None if places is None else places[int(then.__code__.co_firstlineno) - 1]
            if called is not None:
                return called
        return None

    def _execute(self, writer: _PythonText) -> None:
        file = f"<dvl {len(self.places)} of {id(self)}>"
        self.places[file] = writer.places
        exec(compile("\n".join(writer.lines), file, "exec"), self.space)


_OWN_PLACE = re.compile(r" \(<dvl \d+ of \d+>, line \d+\)")
"""The place in the text of Python that a verb of the package says it was called from: users see that of DVL."""


def placed(problem: BaseException, at: Position) -> Error:
    """An error of a run, with its place."""
    words = str(problem) if isinstance(problem, Error) else f"{type(problem).__name__}: {problem}"
    words = _OWN_PLACE.sub("", words)
    if isinstance(problem, RecursionError):
        words = "a value is nested too deep: pairs whose first part is a pair, and so on"
    lines = linecache.getlines(at.file)
    width = at.end_column - at.column if at.end_line == at.line else 10**6
    before = lines[at.line - 1].encode()[: at.column].decode(errors="ignore") if at.line <= len(lines) else ""
    span = Span(0, max(width, 1), at.line, len(before) + 1)
    kind = type(problem) if isinstance(problem, Error) else Error
    located = SourceError(words, "".join(lines), span, at.file)
    return located if kind is Error else _both(kind)(words, "".join(lines), span, at.file)


_KINDS: dict[type[Error], type[SourceError]] = {}


def _both(kind: type[Error]) -> type[SourceError]:
    """An error that is of its kind and has a place."""
    if kind not in _KINDS:
        _KINDS[kind] = type(kind.__name__, (SourceError, kind), {})
    return _KINDS[kind]


@functools.lru_cache(maxsize=100_000)
def _word(name: str) -> str:
    """A variable as a name of Python's; the number in it keeps names apart."""
    base, _, number = name.rpartition(".")
    return f"v{number}_{re.sub(r'[^A-Za-z0-9]', '_', base)[:40]}"


class _PythonText:
    """Text of Python, and the place of each line in the program."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.lines: list[str] = []
        self.places: list[Position | None] = []
        self.waiting: list[Callable[[], None]] = []
        self.shared = False  # whether variables are in a dict, which all frames of this call have

    def line(self, depth: int, text: str, at: Position | None = None) -> None:
        self.lines.append(f"{' ' * depth}{text}")
        self.places.append(at)

    # -- functions

    def function(self, code: Lambda) -> str:
        """The name of the function of a lambda, which is written later."""
        codes = self.machine.codes
        if code not in codes:
            codes[code] = name = f"f{len(codes)}"
            (parameter,) = code.parameters
            held = self.held(code)
            self.later(lambda: self._define(name, held, _word(parameter.name), code.body, code.at))
        return codes[code]

    def held(self, code: Lambda) -> list[str]:
        return [name for name in code.free if name not in self.machine.known]

    def variable(self, name: str) -> str:
        """The text of a variable that is assigned or read."""
        return f"shared[{_word(name)!r}]" if self.shared and name not in self.machine.known else _word(name)

    def block(self, held: Iterable[str] | None, body: Expression, got: str = "_", at: Position | None = None) -> str:
        """A function that computes an expression, as a frame does, of what it holds and a value; None where that is
        the dict of all variables."""
        codes = self.machine.codes
        made = f"k{len(self.machine.space)}_{len(codes)}_{len(self.lines)}_{len(self.waiting)}"
        self.machine.space[made] = None
        held = None if held is None else list(held)
        self.later(lambda: self._define(made, held, got, body, at))
        return made

    def later(self, write: Callable[[], None]) -> None:
        """Writes now, unless something is being written: without recursion on the depth of lambdas."""
        self.waiting.append(write)
        if len(self.waiting) == 1:
            while self.waiting:
                self.waiting[0]()
                self.waiting.pop(0)

    def _define(
        self, name: str, held: Sequence[str] | None, parameter: str, body: Expression, at: Position | None
    ) -> None:
        self.shared = held is None
        self.line(0, f"def {name}({'shared' if self.shared else 'held'}, {parameter}, stack):", at)
        if held is None:
            self.line(1, f"shared[{parameter!r}] = {parameter}")
        elif held:
            self.line(1, f"{', '.join(map(_word, held))}{',' if len(held) == 1 else ''} = held")
        self.tail(1, body, 0)

    # -- expressions

    def tail(self, depth: int, e: Expression, nested: int) -> None:
        """Text that returns the value of an expression, or calls what does."""
        if not self.shared and self.long(e):
            names = self.local(free(e))
            self.line(depth, f"shared = {{{', '.join(f'{_word(name)!r}: {_word(name)}' for name in names)}}}")
            self.shared = True
        while True:
            match e:
                case Let():
                    if self.direct(e.value):
                        self.assign(depth, self.variable(e.name), e.value, 0)
                        e = e.body
                        continue
                    self.push(depth, e)
                    e = e.value
                case Fix():
                    self.closures(depth, e.functions)
                    e = e.body
                case If(condition=Constant()):
                    e = _chosen(e)
                case If():
                    if nested >= _NESTED:
                        live = None if self.shared else self.local(free(e))
                        self.line(depth, f"return {self.block(live, e)}({self.row(live)}, None, stack)", e.at)
                        return
                    self.line(depth, f"if {self.atom(e.condition)} is not False:", e.at)
                    shared = self.shared
                    self.tail(depth + 1, e.then, nested + 1)
                    self.shared = shared
                    e = e.otherwise
                    if not shared and self.long(e):
                        self.tail(depth, e, nested)
                        return
                case Apply() if not self.direct(e):
                    function, argument = self.atom(e.function), self.atom(e.arguments[0])
                    self.line(depth, f"return {function}, {argument}", e.at)
                    return
                case _:
                    self.line(depth, f"return None, {self.simple(e)}", getattr(e, "at", None))
                    return

    def push(self, depth: int, e: Let) -> None:
        """Text that has what follows a binding wait for its value."""
        live = None if self.shared else self.local(free(e.body) - {e.name})
        made = self.block(live, e.body, _word(e.name), e.at)
        self.line(depth, f"stack.append(({made}, {self.row(live)}))")

    def long(self, e: Expression) -> bool:
        """Whether there are many calls in bindings one after the other, so that frames share a dict of variables: else
        each would hold what all calls before it came to."""
        count = 0
        while isinstance(e, Let | Fix):
            count += may_call(e) and isinstance(e, Let) and not self.direct(e.value)
            e = e.body
        return count > MANY

    def local(self, names: Iterable[str]) -> list[str]:
        return sorted(name for name in names if name not in self.machine.known)

    def row(self, names: Sequence[str] | None) -> str:
        if names is None:
            return "shared"
        return f"({', '.join(map(self.variable, names))}{',' if len(names) == 1 else ''})"

    def assign(self, depth: int, name: str, e: Expression, nested: int) -> None:
        """Text that computes an expression without a call, and names it."""
        while isinstance(e, Let | Fix):
            if isinstance(e, Fix):
                self.closures(depth, e.functions)
            else:
                self.assign(depth, self.variable(e.name), e.value, nested)
            e = e.body
        if isinstance(e, If) and isinstance(e.condition, Constant):
            self.assign(depth, name, _chosen(e), nested)
        elif isinstance(e, If):
            self.line(depth, f"if {self.atom(e.condition)} is not False:", e.at)
            self.assign(depth + 1, name, e.then, nested + 1)
            self.line(depth, "else:")
            self.assign(depth + 1, name, e.otherwise, nested + 1)
        elif isinstance(e, Lambda):
            self.line(depth, f"{name} = {self.closure(e)}")
        else:
            self.line(depth, f"{name} = {self.simple(e)}", getattr(e, "at", None))

    def direct(self, e: Expression, nested: int = 0) -> bool:
        """Whether an expression calls nothing but builtins that return at once."""
        while isinstance(e, Let):
            if not self.direct(e.value, nested):
                return False
            e = e.body
        match e:
            case Apply():
                f = e.function
                return isinstance(f, Constant) and isinstance(f.value, Builtin)
            case If():
                return nested < _NESTED and self.direct(e.then, nested + 1) and self.direct(e.otherwise, nested + 1)
            case Fix():
                return self.direct(e.body, nested)
        return True

    def core(self, code: Lambda) -> LambdaCode:
        cores = self.machine.cores
        if code not in cores:
            cores[code] = LambdaCode(code, tuple(self.held(code)), self.machine.lift)
        return cores[code]

    def closure(self, code: Lambda, whole: bool = True) -> str:
        held = self.row(self.held(code)) if whole else "()"
        return f"Closure({self.function(code)}, {held}, {code.name!r}, {self.constant(self.core(code))})"

    def closures(self, depth: int, functions: Sequence[tuple[str, Lambda]]) -> None:
        for name, code in functions:
            self.line(depth, f"{self.variable(name)} = {self.closure(code, whole=False)}")
        for name, code in functions:
            if self.held(code):
                self.line(depth, f"{self.variable(name)}.held = {self.row(self.held(code))}")

    def constant(self, x: Any) -> str:
        if type(x) is float and x == x and abs(x) != float("inf"):
            return repr(x)
        if x is True or x is False or (isinstance(x, tuple) and not x) or type(x) is str:
            return repr(x)
        constants = self.machine.constants
        if id(x) not in constants:
            constants[id(x)] = (f"c{len(constants)}", x)
            self.machine.space[constants[id(x)][0]] = x
        return constants[id(x)][0]

    def atom(self, a: CoreAtom) -> str:
        return self.constant(a.value) if isinstance(a, Constant) else self.variable(a.name)

    def simple(self, e: Expression) -> str:
        match e:
            case Name() | Constant():
                return self.atom(e)
            case Tuple():
                return f"({', '.join(map(self.atom, e.items))})"
            case Project():
                return f"{self.atom(e.value)}[{e.index}]"
            case Lambda():
                return self.closure(e)
            case Apply(function=Constant(value=Builtin() as builtin)):
                return self.primitive(builtin, [self.atom(a) for a in e.arguments], e)
        raise AssertionError(e)

    def primitive(self, builtin: Builtin, given: list[str], e: Apply) -> str:
        """A call of a builtin."""
        if not given:
            return f"{self.constant(builtin.function)}()"
        if len(given) == 1 and builtin.most > 1:
            made = self.constant(builtin)
            return f"{made}.function(*{made}.spread({given[0]}))"
        slow = f"{self.constant(builtin.function)}({', '.join(given)})"
        if BUILTINS.get(builtin.name) is builtin and len(given) == 2 and builtin.name in _FAST:
            tests = " and ".join(
                f"type({g}) is float"  # a number with derivatives says that its class is float
                for g, a in zip(given, e.arguments, strict=True)
                if not (isinstance(a, Constant) and type(a.value) is float)
            )
            return f"{_FAST[builtin.name].format(*map(_bracketed, given))} if {tests or 'True'} else {slow}"
        if not isinstance(e.arguments[0], Name):
            return slow
        if builtin.name in _TESTS and BUILTINS.get(builtin.name) is builtin:
            return _TESTS[builtin.name].format(*given)
        if builtin is FIRST or builtin is REST or builtin.name in ("car", "cdr"):
            place = 0 if builtin is FIRST or builtin.name == "car" else 1
            return f"{given[0]}[{place}] if {given[0]}.__class__ is tuple and {given[0]} else {slow}"
        return slow


def _chosen(e: If) -> Expression:
    """What a choice comes to whose condition stands in the text."""
    assert isinstance(e.condition, Constant)
    return e.otherwise if e.condition.value is False else e.then


def _bracketed(text: str) -> str:
    return f"({text})" if text.startswith("-") else text
