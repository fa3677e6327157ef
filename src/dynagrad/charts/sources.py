"""What a program is made from: its text, compiled functions of values, and constants that are probabilities.

Here it is read and checked against the program's declarations; `program.py` puts it together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..compiler.compiled import Compiled
from ..errors import Error, ProgramError, Span, counted, cut, shown
from ..ir.node import as_node, fresh
from ..ir.types import real
from ..rules.normal import Rules
from ..rules.syntax import Application, Expression, Numeral, PredicateDeclaration
from ..runtime.disk.contents import combined
from ..semirings import ROUNDING
from .binding.context import ProgramContext

LONGEST = 64 << 20
"""The most bytes that are read as a program or a file of functions: a device may have no end."""


def program_text(source: str | Path) -> tuple[str, str]:
    """A program's text, and the name of its file."""
    if isinstance(source, Path):
        return file_text(source), str(source)
    if not isinstance(source, str):
        raise Error(f"a program must be a text or a Path, not {type(source).__name__}")
    if source.endswith(".dyna") and "\n" not in source:  # no program ends so
        raise Error(
            f"{shown(source)} is the name of a file; give pathlib.Path({shown(source)}) to read the program in it"
        )
    return source, ""


def file_text(file: Path, what: str = "program") -> str:
    """The text of a file; errors call it a `what`, such as a program."""
    name = repr(cut(str(file)))
    try:
        with file.open("rb") as source:  # which may be a pipe, or a device without an end
            data = source.read(LONGEST + 1)
        if len(data) > LONGEST:
            raise Error(f"the {what} {name} is larger than {LONGEST >> 20} MiB, which no {what} is")
        return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise Error(f"the {what} {name} is not UTF-8 text: byte {error.start + 1}") from None
    except (OSError, ValueError) as error:  # a name may have a zero in it
        said = error.strerror if isinstance(error, OSError) else None
        raise Error(f"the {what} {name} cannot be read: {said or error}") from None


def check_compiled(rules: Rules, text: str, filename: str, functions: Mapping[str, Callable[..., Any]]) -> None:
    """Raises where a compiled function does not take as many reals as the program declares, or not return one."""
    for declaration in rules.source.declarations:
        if not isinstance(declaration, PredicateDeclaration) or declaration.kind != "function":
            continue
        for key in declaration.keys:
            name = key.rsplit("/", 1)[0]
            function = functions.get(name)
            wrong = _wrong_function(key, function, rules.functions[name]) if isinstance(function, Compiled) else None
            if wrong is not None:
                raise ProgramError(wrong, text, declaration.span, filename)


def _wrong_function(key: str, function: Compiled, arity: int) -> str | None:
    """What is wrong with a compiled function as one of `arity` values."""
    numbers = counted(arity, "number")
    try:
        result = function(*(fresh(real) for _ in range(arity)))
    except Error as error:
        lines = "\n  ".join(str(error).split("\n"))
        return f"`{key}` is called with {numbers}, and the function given for it cannot be compiled so:\n  {lines}"
    node = None if isinstance(result, bool) else as_node(result)
    if node is not None and node.type is real:
        return None
    what = f"a {type(result).__name__}" if node is None else str(node.type)
    return f"`{key}` is a function of values: it returns one real number, and the function given for it returns {what}"


def constants_from_probabilities(context: ProgramContext) -> ProgramContext:
    """The context with the constants of the program's text converted from probabilities to the semiring's scale.

    Those of plain arithmetic stay: an exponent or the factor of a sum is no weight.
    """
    rules, number_scale = context.rules, context.scale
    if number_scale.shape == "expectation" or rules.semiring is None:
        return context

    def convert(number: float | int, span: Span) -> float:
        if not 0 <= number <= 1 + ROUNDING:
            message = f"{number} is not a probability, which is a number from 0 to 1."
            raise ProgramError(message, rules.source.text, span, rules.source.filename)
        converted = number_scale.from_probabilities(np.array([number], np.float64))
        assert converted is not None
        return float(converted[0])

    def rewrite(value: Expression) -> Expression:
        match value:
            case Numeral(value=number, span=span):
                return Numeral(convert(number, span), span)
            case Application(operator=operator, operands=operands, span=span):
                return Application(operator, tuple(map(rewrite, operands)), span)
        return value

    new = replace(
        rules,
        rules=tuple(replace(r, value=rewrite(r.value)) for r in rules.rules),
        axioms=tuple(replace(a, value=None if a.value is None else convert(a.value, a.span)) for a in rules.axioms),
    )
    numbers = repr([[r.value for r in new.rules], [a.value for a in new.axioms]])
    return replace(context, rules=new, entry=context.entry and combined(context.entry, numbers))
