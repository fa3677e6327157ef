"""Pieces of C++ text: names, literals, constant arrays, and the C++ that is the same for all programs.

Nothing here knows what a plan is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

# Words of C++, and names that the face of a program has itself.
RESERVED = frozenset(
    re.findall(
        r"\w+",
        """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const consteval
    constexpr constinit continue co_await co_return co_yield decltype default delete do double dynamic_cast else enum
    explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
    nullptr operator or or_eq private protected public register reinterpret_cast requires return short signed sizeof
    static static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename
    union unsigned using virtual void volatile wchar_t while xor xor_eq std dynagrad
    symbol integer real compound list cons is_symbol is_integer is_real is_compound name number to_double arity part
    print settings report run error result item items term argument weight chart base engine external one give take_all
    look_up answer ask asked gradient derivatives
    weighted items_of rows_of place from_words to_words main unix linux stdin stdout stderr errno assert
    """,
    )
)


def cxx_name(name: str) -> str:
    """A name as C++ may have it.

    >>> cxx_name("goal"), cxx_name("for"), cxx_name("N P"), cxx_name("2nd")
    ('goal', 'for_', 'N_P', 'p2nd')
    """
    plain = re.sub(r"__+", "_", re.sub(r"[^A-Za-z0-9_]", "_", name))
    if not plain[:1].isalpha():
        plain = "p" + plain
    return plain + "_" if plain in RESERVED else plain


def literal(text: str) -> str:
    """A C++ string literal; bytes beyond plain ASCII as octal escapes, which end after three digits."""
    out = []
    for byte in text.encode("utf-8", "surrogatepass"):
        char = chr(byte)
        out.append(char if 32 <= byte < 127 and char not in '"\\?' else f"\\{byte:03o}")
    return f'"{"".join(out)}"'


def array(kind: str, name: str, values: Iterable[object], end: str = "0") -> str:
    """A constant array; it never is empty, because C++ knows none that is."""
    listed = [*map(str, values), end]
    lines: list[str] = []
    for at in range(0, len(listed), 16):
        lines.append("    " + ", ".join(listed[at : at + 16]))
    body = listed[0] if len(listed) == 1 else "\n" + ",\n".join(lines) + "\n"
    return f"inline constexpr {kind} {name}[] = {{{body}}};"


def shared(part: str) -> str:
    """The C++ of a file in this folder, without the comment that opens it for who reads the file itself."""
    text = (Path(__file__).parent / f"{part}.hpp").read_text("utf-8")
    return text.partition("\n\n")[2].strip("\n")
