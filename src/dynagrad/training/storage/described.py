"""Settings, and what users wrote, as texts that are the same in every process: how a checkpoint tells them apart.

A number or a text is told by itself. Of a function it is its code, and what this reads: defaults, what it has from
where it was made, and globals; of a bound method its object, too; of a `partial` the function and its arguments; of an
object its class, with methods, and its state, as `copy` and `pickle` see it. Functions and classes of installed
packages are told by their names. What modules have is not looked at, so `settings.SCALE` is not told apart.

What has changed is another one, whoever changed it: a list that a function appends to makes it another function. Class
attributes and globals that the code itself sets are left out, as they are no setting. What nobody can tell apart, such
as an open file, is an error.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from ...charts.program import Program
from ...errors import Error

PLAIN = bool | int | float | complex | str | bytes | None
CONSTRUCTORS = ("__init__", "__new__", "__post_init__", "__setstate__")
"""Methods that set what an object is, not what becomes of it."""
OWN = __name__.partition(".")[0]
INSTALLED = ("site-packages", "dist-packages")


def digest(parts: Iterable[bytes]) -> str:
    """Of parts, with where one ends."""
    found = hashlib.sha256()
    for part in parts:
        found.update(len(part).to_bytes(8, "little") + part)
    return found.hexdigest()


def described(x: Any) -> str:
    """A setting as a text. Raises Error for what cannot be told from another."""
    return _Description().of(x)


class _Description:
    """A text of one setting, in which each object is described once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, str]] = {}  # with the object, whose number is else given to another

    def of(self, x: Any) -> str:
        if isinstance(x, PLAIN):
            return repr(x)
        if id(x) in self._known:
            return self._known[id(x)][1]
        self._known[id(x)] = x, f"one within itself, {len(self._known)}"
        text = self._of(x)
        self._known[id(x)] = x, text
        return text

    def _all(self, found: Iterable[Any]) -> str:
        return "(" + ", ".join(map(self.of, found)) + ")"

    def _of(self, x: Any) -> str:
        if isinstance(x, np.ndarray | np.generic):
            x = np.asarray(x)
            data = x.tobytes() if not x.dtype.hasobject else self._all(x.ravel().tolist()).encode(errors="replace")
            return f"{x.dtype}{list(x.shape)} {digest([data])}"
        if type(x) in (list, tuple):
            return self._all(x)
        if isinstance(x, set | frozenset):
            return "{" + ", ".join(sorted(map(self.of, x))) + "}"
        if isinstance(x, Program):
            return f"program {digest([x.source.encode()])[:16]} in {x.semiring}"
        if isinstance(x, ModuleType):
            return f"module {x.__name__}"
        if isinstance(x, FunctionType):
            return f"{x.__qualname__} {digest(self._of_function(x))[:16]}"
        if isinstance(x, MethodType):
            return f"{self.of(x.__func__)} of {self.of(x.__self__)}"
        if isinstance(x, functools.partial):
            return f"partial{self._all((x.func, x.args, x.keywords))}"
        if isinstance(x, type):
            return f"{x.__module__}.{x.__qualname__}{self._of_class(x)}"
        if isinstance(x, BuiltinFunctionType):
            owner = x.__self__
            return (
                x.__qualname__
                if owner is None or isinstance(owner, ModuleType)
                else f"{x.__qualname__} of {self.of(owner)}"
            )
        if is_dataclass(x) and _installed(type(x).__module__):
            told = ", ".join(f"{f.name}={self.of(getattr(x, f.name))}" for f in fields(x))
            return f"{type(x).__name__}({told})"
        if isinstance(x, Mapping) and _installed(type(x).__module__):
            return "{" + ", ".join(f"{self.of(k)}: {self.of(v)}" for k, v in x.items()) + "}"
        if hasattr(x, "detach"):  # a tensor of PyTorch
            return self.of(np.asarray(x.detach().cpu()))
        if hasattr(x, "__wrapped__"):  # as `functools.wraps` leaves it, on a function that is none of Python's
            return f"{type(x).__qualname__} of {self.of(x.__wrapped__)}"
        return self._of_object(x)

    def _of_object(self, x: Any) -> str:
        """Its class and its state, as `copy` and `pickle` see them."""
        try:
            found = x.__reduce_ex__(2)
        except Exception as error:
            raise Error(
                f"a checkpoint cannot tell a {type(x).__qualname__} from another one ({error}), and something that "
                "this run depends on has one: leave it out, or give its class a __reduce__"
            ) from None
        if isinstance(found, str):
            return f"{type(x).__qualname__} {found}"
        how, arguments, *rest = found
        told = [self.of(how if isinstance(how, type) else getattr(how, "__qualname__", "")), self._all(arguments)]
        told += [self._all(part) if isinstance(part, Iterator) else self.of(part) for part in rest]
        return f"{type(x).__name__} {digest(text.encode(errors='replace') for text in (self.of(type(x)), *told))[:16]}"

    def _of_class(self, c: type) -> str:
        """What a class of the user's has, with those that it is made from."""
        parts: list[str] = []
        for base in c.__mro__:
            if _installed(base.__module__):
                parts.append(base.__qualname__)
                continue
            functions = {n: f for n, x in vars(base).items() for f in [_function_in(x)] if f is not None}
            sets = {i.argval for n, f in functions.items() if n not in CONSTRUCTORS for i in _code_of(f, "STORE_ATTR")}
            for name, x in vars(base).items():
                if name in functions:
                    parts.append(f"{name} {self.of(functions[name])}")
                elif not name.startswith("__") and name not in sets and not hasattr(type(x), "__get__"):
                    parts.append(f"{name} {self.of(x)}")
        return f" {digest(part.encode(errors='replace') for part in parts)[:16]}" if len(parts) > len(c.__mro__) else ""

    def _of_function(self, f: FunctionType) -> Iterator[bytes]:
        """Its code, and all that this reads."""
        yield f.__code__.co_code
        yield repr(f.__code__.co_names).encode()
        yield from _constants(f.__code__)
        cells = [cell.cell_contents if _filled(cell) else None for cell in f.__closure__ or ()]
        read = [*cells, *(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()]
        if not _installed(f.__module__):
            sets = {i.argval for i in _code_of(f, "STORE_GLOBAL")}
            names = sorted({i.argval for i in _code_of(f, "LOAD_GLOBAL")} - sets)
            read += [f.__globals__[name] for name in names if name in f.__globals__]
        for x in read:
            yield self.of(x).encode(errors="replace")


def _installed(module: Any) -> bool:
    """Whether a module is of an installed package, of Python or of this one: told by name."""
    top = str(module).partition(".")[0]
    if top == "__main__":
        return False
    file = getattr(sys.modules.get(top), "__file__", None) or ""
    return top == OWN or top in sys.stdlib_module_names or any(part in file for part in INSTALLED)


def _function_in(x: Any) -> FunctionType | None:
    """The function in what a class has of this name."""
    for name in ("__func__", "fget", "func"):  # of class and static methods, properties, and cached ones
        x = getattr(x, name, x) if not isinstance(x, FunctionType) else x
    return x if isinstance(x, FunctionType) else None


def _code_of(f: FunctionType, operation: str) -> Iterator[dis.Instruction]:
    """The instructions of a kind, of a function and of those inside it."""
    codes = [f.__code__]
    while codes:
        code = codes.pop()
        codes += [x for x in code.co_consts if isinstance(x, CodeType)]
        yield from (i for i in dis.get_instructions(code) if i.opname == operation)


def _constants(code: CodeType) -> Iterator[bytes]:
    """The constants of a function, with the code of those inside it, whose own text has an address."""
    for x in code.co_consts:
        if isinstance(x, CodeType):
            yield x.co_code
            yield repr(x.co_names).encode()
            yield from _constants(x)
        else:
            yield repr(sorted(map(repr, x)) if isinstance(x, frozenset) else x).encode()


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018  # what is tested
    except ValueError:  # nothing is there yet
        return False
    return True
