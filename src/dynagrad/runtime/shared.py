"""What native code and Python share, read from the header that says it: `dynagrad/shared.h`, in plain C.

Its numbers become enums, its structures classes of `ctypes`, and its functions what `ctypes` has to know to call them.
The header is cut into declarations at once, and each is read when it is asked for, since it is on the way of every
import. How much of C is read is said at the head of the header; anything else is an error with its line.
"""

from __future__ import annotations

import ctypes
import enum
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from ..errors import Error

HEADER = Path(__file__).parent / "include" / "dynagrad" / "shared.h"

_NUMBERS: dict[str, Any] = {
    "bool": ctypes.c_bool,
    "char": ctypes.c_char,
    "double": ctypes.c_double,
    "int": ctypes.c_int,
    "int32_t": ctypes.c_int32,
    "int64_t": ctypes.c_int64,
    "intptr_t": ctypes.c_ssize_t,
    "uint8_t": ctypes.c_uint8,
    "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
}
"""The numbers of C."""

_WORD = re.compile(r"\w+|[^\w\s]")


class SharedField(NamedTuple):
    """A field of a structure, or a parameter of a function."""

    ctype: Any
    target: Any = None
    """What it points to, if that is a number or a pointer."""
    default: float | None = None
    """What it begins with."""
    parameters: int | None = None
    """How many parameters the function has that it points to."""


class Signature(NamedTuple):
    """The types of a function."""

    result: Any
    parameters: tuple[Any, ...]
    makes: bool
    """Whether it returns an object that it made, or null."""
    fails: bool
    """Whether it returns a `Failure`."""


class Header:
    """The declarations of a header.

    >>> Header("enum Ending { kPlain, kNotHere = 2 };").numbers("Ending")
    {'PLAIN': 0, 'NOT_HERE': 2}
    >>> [name for name, _ in Header("struct Pair { double left, *right; };").fields("Pair")]
    ['left', 'right']
    """

    def __init__(self, text: str) -> None:
        self._declarations: dict[tuple[str, str], tuple[int, str]] = {}  # by kind and name, from which line
        self._members: dict[str, dict[str, SharedField]] = {}
        self._parameters: dict[str, SharedField] = {}
        self._signatures: dict[str, Signature] = {}
        self._structures: dict[str, Any] = {}
        for line, declaration in _declarations(text):
            self._declarations[_kind(line, declaration)] = (line, declaration)

    def names(self, kind: str) -> list[str]:
        """The names of all that is an "enum", "struct", "constant", "callback" or "function"."""
        return [name for of, name in self._declarations if of == kind]

    def declares(self, kind: str, name: str) -> bool:
        """Whether there is one of this kind and name."""
        return (kind, name) in self._declarations

    def numbers(self, name: str) -> dict[str, int]:
        """The numbers of an enum, by Python's names of them."""
        values: dict[str, int] = {}
        number = -1
        for line, text in _parts(*self._declarations["enum", name], "{}", ","):
            member, equals, value = text.partition(" = ")
            if not member.isidentifier() or not (value.lstrip("-").isdigit() or not equals):
                _refuse(line, text)
            number = int(value) if equals else number + 1
            values[_python_name(member)] = number
        return values

    def constant(self, name: str) -> int:
        """The number that a constant is."""
        line, text = self._declarations["constant", name]
        value = text.partition(" = ")[2].removesuffix(";")
        return int(value) if value.isdigit() else _refuse(line, text)

    def members(self, name: str) -> dict[str, SharedField]:
        """The fields of a structure."""
        if name not in self._members:
            found: dict[str, SharedField] = {}
            for line, text in _parts(*self._declarations["struct", name], "{}", ";"):
                field, called, taken = text.partition("(*")[2].partition(")(")
                if called:
                    found[field] = SharedField(
                        ctypes.c_void_p, parameters=0 if taken == "void)" else taken.count(",") + 1
                    )
                else:
                    found.update(self._variables(line, text))
            self._members[name] = found
        return self._members[name]

    def structure(self, name: str) -> Any:
        """The class of a structure, which takes no other names than those of its fields."""
        if name not in self._structures:
            own = {"_fields_": self.fields(name), "__slots__": ()}
            self._structures[name] = type(name, (ctypes.Structure,), own)
        return self._structures[name]

    def fields(self, name: str) -> list[tuple[str, Any]]:
        """The fields of a structure, for `ctypes`."""
        return [(field, member.ctype) for field, member in self.members(name).items()]

    def defaults(self, name: str) -> dict[str, float]:
        """The values that the fields of a structure begin with, where one is named."""
        return {field: m.default for field, m in self.members(name).items() if m.default is not None}

    def callback(self, name: str) -> tuple[Any, ...]:
        """The types of a function that is passed: of its result, and of its parameters, with what they point to."""
        line, text = self._declarations["callback", name]
        result, *parameters = self._types(line, text.removeprefix("typedef ").partition("(*")[0], text)
        return (result.ctype, *(m.ctype if m.target is None else ctypes.POINTER(m.target) for m in parameters))

    def signature(self, name: str) -> Signature:
        """The types of a function that Python calls. Characters and numbers that it returns are read."""
        if name in self._signatures:
            return self._signatures[name]
        line, text = self._declarations["function", name]
        returned = text.partition(name)[0].strip()
        result, *parameters = self._types(line, returned, text)
        looks, fails = "*" in returned and returned.startswith("const "), returned == "enum Failure"
        read = (
            ctypes.c_char_p if returned == "const char*" else ctypes.POINTER(result.target) if looks else result.ctype
        )
        makes = "*" in returned and not looks
        self._signatures[name] = Signature(read, tuple(m.ctype for m in parameters), makes, fails)
        return self._signatures[name]

    def _types(self, line: int, result: str, text: str) -> Iterator[SharedField]:
        """The types of a function's result, and of the parameters at the end of its text."""
        yield SharedField(None) if result.strip() == "void" else self._parameter(line, f"{result} x")
        head, _, parameters = text.rpartition("(")
        for at, parameter in _parts(line + head.count("\n"), f"({parameters}", "()", ","):
            if parameter != "void":
                yield self._parameter(at, parameter)

    def _parameter(self, line: int, text: str) -> SharedField:
        if text not in self._parameters:
            ((_, self._parameters[text]),) = self._variables(line, text)
        return self._parameters[text]

    def _variables(self, line: int, text: str) -> list[tuple[str, SharedField]]:
        """The names and types of variables, from a text such as "int64_t *a, b"."""
        words = [word for word in reversed(_WORD.findall(text)) if word != "const"]
        found: list[tuple[str, SharedField]] = []
        try:
            base = words.pop()
            base = f"enum {words.pop()}" if base == "enum" else base
            found.append(self._variable(base, words))
            while words:
                if words.pop() != ",":
                    _refuse(line, text)
                found.append(self._variable(base, words))
        except (LookupError, ValueError):  # something ends too early, or is not known
            _refuse(line, text)
        return found

    def _variable(self, base: str, words: list[str]) -> tuple[str, SharedField]:
        """The name and type of a variable, from the end of `words`."""
        stars = 0
        while words[-1] == "*":
            stars += len(words.pop())
        name, default = words.pop(), None
        ctype, target = self._type(base, stars)
        lengths = []
        while words[-1:] == ["["]:
            lengths.append(int(words[-2]))
            del words[-3:]
        for length in reversed(lengths):
            ctype, target = ctype * length, None
        if words[-2:] == ["(", "DYNAGRAD_IS"]:
            end = len(words) - 1 - words[::-1].index(")")
            default = _number("".join(reversed(words[end + 1 : -2])))
            del words[end:]
        if not name.isidentifier():
            raise ValueError(name)
        return name, SharedField(ctype, target, default)

    def _type(self, base: str, stars: int) -> tuple[Any, Any]:
        """The type of a variable, and of what it points to."""
        if not stars:
            return _NUMBERS[base] if base in _NUMBERS else self._named(base), None
        if base != "void" and base not in _NUMBERS and not self.declares("name", base):
            raise LookupError(base)
        return ctypes.c_void_p, ctypes.c_void_p if stars > 1 else _NUMBERS.get(base)

    def _named(self, name: str) -> Any:
        """The type of a value of a type that the header declares."""
        if self.declares("callback", name):
            return ctypes.c_void_p
        if name.startswith("enum "):
            self._declarations["enum", name[5:]]
            return ctypes.c_int
        return self.structure(name)


def _declarations(text: str) -> Iterator[tuple[int, str]]:
    """The declarations, each with the line that it begins in, without comments and what is for compilers alone."""
    silent, depth, begin, lines = False, 0, 0, list[str]()
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#"):
            silent = silent or line.startswith("#ifdef")
            if not silent and not line.startswith(("#pragma once", "#include <std", "#undef")):
                _refuse(number, line)
            silent = silent and not line.startswith("#endif")
            continue
        said = "" if silent else line.partition("//")[0].rstrip()
        if not lines:
            begin = number
        if said or lines:
            lines.append(said)
            depth += said.count("{") - said.count("}")
            if not depth and said.endswith((";", "}")):
                yield begin, "\n".join(lines)
                lines.clear()
    if lines:
        _refuse(begin, lines[0])


def _kind(line: int, text: str) -> tuple[str, str]:
    """What a declaration declares, and its name."""
    first, second, third, *_ = [*text.split(None, 3), "", "", ""]
    if text.endswith(";"):
        if "{" in text and first in ("enum", "struct") and third[:1] == "{" and text.endswith("};"):
            return first, second
        if first == "typedef" and "(*" in text:
            return "callback", text.partition("(*")[2].partition(")")[0]
        if text == f"typedef struct {third} {third};":
            return "name", third
        if (first, second) == ("static", "const") and " = " in text and "{" not in text:
            return "constant", text.partition(" = ")[0].split()[-1]
        if text.endswith(");") and "{" not in text and first not in ("static", "typedef"):
            return "function", text.partition("(")[0].replace("*", " ").split()[-1]
    _refuse(line, text)


def _parts(line: int, text: str, ends: str, separator: str) -> Iterator[tuple[int, str]]:
    """The parts of a text between two signs, each in one line, with the number of the line that it begins in."""
    head, _, inside = text.partition(ends[0])
    line += head.count("\n")
    for part in inside.rpartition(ends[1])[0].split(separator):
        begin = line + part.count("\n", 0, len(part) - len(part.lstrip()))
        line += part.count("\n")
        if part and not part.isspace():
            yield begin, " ".join(part.split())


def _python_name(name: str) -> str:
    """Python's name of a number: that of C in capitals."""
    plain = name[1:] if name[:1] == "k" and name[1:2].isupper() else name
    return "".join(
        f"_{c}" if c.isupper() and a.islower() else c for a, c in zip(f"_{plain}", plain, strict=False)
    ).upper()


def _number(text: str) -> float:
    return int(text) if text.lstrip("-").isdigit() else float(text)


def _refuse(line: int, text: str) -> NoReturn:
    raise Error(f"{HEADER.name}, line {line}: this cannot be read: {text.splitlines()[0]}")


SHARED = Header(HEADER.read_text(encoding="utf-8"))


def numbers(name: str, kind: type[enum.Enum] = enum.IntEnum) -> Any:
    """The enum of that name.

    >>> numbers("Ending")(1)
    <Ending.UNDERIVED: 1>
    """
    made: Any = kind
    return made(name, SHARED.numbers(name), module=__name__)
