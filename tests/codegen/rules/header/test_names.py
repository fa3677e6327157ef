"""Names that the C++ header of a program may not have, since it would not compile. Costs nothing."""

from __future__ import annotations

import re

import pytest

from dynagrad.codegen.rules.header.names import namespace
from dynagrad.runtime.compiling.toolchain import INCLUDE

DECLARED = (
    r"^(?:template <[^\n]*>\s*)?(?:struct|class|enum class|enum|namespace|union) (\w+)",
    r"^using (\w+) =",
    r"^(?:template <[^\n]*>\s*)?(?:inline |static |constexpr )*[\w:<>,&* ]+?[ &*](\w+)\(",
    r"^(?:inline |static )*(?:constexpr|const) [\w:<>]+ (\w+)",
)
"""What is declared at the beginning of a line of a header."""
NOT_OURS = frozenset(
    f"{name}.hpp"
    for name in ("abi", "builtins", "collected", "entry", "examples", "known", "python", "rules", "runtime", "walk")
)
"""Headers that the class of a program does not see."""
ROOMS = ("base", "calls", "storage", "running", "solving", "outside")


def declared(text: str) -> set[str]:
    return {name for pattern in DECLARED for name in re.findall(pattern, text, re.MULTILINE)}


def test_no_namespace_is_called_as_what_the_runtime_declares() -> None:
    """Of what is shared with Python, only as what these headers use of it."""
    rooms = [INCLUDE / "dynagrad", *(INCLUDE / "dynagrad" / room for room in ROOMS)]
    headers = [header for room in rooms for header in room.glob("*.hpp") if header.name not in NOT_OURS]
    text = re.sub(r"//.*", "", "\n".join(header.read_text() for header in headers))
    shared = declared((INCLUDE / "dynagrad" / "shared.h").read_text())
    found = {"graphs", *declared(text), *(shared & set(re.findall(r"\w+", text)))}
    found = {name for name in found if not name.isupper()} - {"if", "for", "while", "return", "switch", "operator"}
    assert {"Log", "Array", "ChartBase", "Failure", "Settings"} <= found
    for name in found:
        assert namespace(name) != name, name


@pytest.mark.parametrize("name", ["parser", "grammar", "cky", "speech", "my_rules"])
def test_other_names_stay(name: str) -> None:
    assert namespace(name) == name
