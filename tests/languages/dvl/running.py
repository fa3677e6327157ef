"""What the tests of DVL share: values of a program, as text, run or compiled."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import dynagrad.languages.dvl.program as dvl
from dynagrad.eager.numbers import Number
from dynagrad.languages.dvl.checks import printed

EXAMPLES = sorted((Path(dvl.__file__).parent / "examples").glob("*.dvl"))


def values(text: str) -> list[Any]:
    """The values of the expressions of a program."""
    return [result.value for result in dvl.DVLProgram(text).run()]


def value(text: str) -> Any:
    """The value of the last expression."""
    return values(text)[-1]


def shown(text: str) -> str:
    """The same, printed."""
    return printed(value(text))


def compiled(text: str) -> list[Any]:
    """The values by machine code."""
    return [result.value for result in dvl.DVLProgram(text).compiled_results()]


def close(a: Any, b: Any, within: float = 1e-12) -> bool:
    """Whether two values are one, numbers but for rounding."""
    if isinstance(a, Number):  # a bundle that the program returns; compiled, it is what is printed
        return re.sub(r"gensym \d+", "gensym", printed(a)) == re.sub(r"gensym \d+", "gensym", printed(b))
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(close(x, y, within) for x, y in zip(a, b, strict=True))
    if type(a) is float and type(b) is float:
        return abs(a - b) <= within * max(1.0, abs(a), abs(b))
    return printed(a).startswith("#[") and printed(b).startswith("#[") if callable(a) else type(a) is type(b) and a == b
