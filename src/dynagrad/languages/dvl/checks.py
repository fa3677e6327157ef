"""Values of DVL printed, and compared with what a program says that they are. Nothing is computed here."""

from __future__ import annotations

from typing import Any

from ...eager.numbers import Bundle, Number
from .data import Gensym, Procedure, QuotedSymbol, is_pair
from .reader import Datum, ListForm, is_symbol

_CLOSE = 1e-12
_LONG = 100_000


def printed(x: Any) -> str:
    """A value as text.

    >>> printed((1.0, (2.5, ()))), printed((1.0, 2.0)), printed(True)
    ('(1 2.5)', '(1 . 2)', '#t')
    """
    text: list[str] = []
    left = _LONG
    work = [(False, x)]  # a stack, as no value is too deep; True where what follows in an open list comes next
    while work:
        open_list, x = work.pop()
        if not is_pair(x):
            atom = _printed_atom(x)
            text.append(atom if not open_list else ")" if isinstance(x, tuple) else f" . {atom})")
        elif not left:  # parts may be shared, so that there are more than fit anywhere
            text.append(" ...)" if open_list else "...")
        else:
            left -= 1
            text.append(" " if open_list else "(")
            work += [(True, x[1]), (False, x[0])]
    return "".join(text)


def _printed_atom(x: Any) -> str:
    if isinstance(x, bool):
        return "#t" if x else "#f"
    if type(x) is float:
        return repr(x).removesuffix(".0")
    if isinstance(x, tuple):
        return "()"
    if isinstance(x, QuotedSymbol):
        return str(x)
    if isinstance(x, str):
        return '"' + x.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(x, Gensym):
        return f"#[gensym {x.serial}]"
    if type(x) is Bundle:
        return f"(bundle #[gensym {x.tag}] {printed(x.primal)} {printed(x.tangent)})"
    if isinstance(x, Number):
        return f"(tape-cell {printed(x.primal)})"
    name = x.name if isinstance(x, Procedure) else getattr(x, "__name__", type(x).__name__)
    return f"#[procedure {name}]"


def agrees(x: Any, said: Datum, tags: dict[Any, Any] | None = None) -> bool:
    """Whether a value is what a datum says: numbers to 1e-12, or to the digits that are written; tags may be called
    otherwise, one for one; `_` stands for anything."""
    tags = {} if tags is None else tags
    if type(x) is Bundle:
        x = (QuotedSymbol("bundle"), (Gensym(x.tag), (x.primal, (x.tangent, ()))))
    if isinstance(said, ListForm):
        items = said.items
        if len(items) == 2 and is_symbol(items[0], "quote") and agrees(x, items[1], tags):
            return True
        for item in items:
            if not is_pair(x) or not agrees(x[0], item, tags):
                return False
            x = x[1]
        return (isinstance(x, tuple) and not x) if said.tail is None else agrees(x, said.tail, tags)
    value = said.value
    if isinstance(value, QuotedSymbol):
        if value == "_":
            return True
        if value.startswith("#["):
            return _names(x, value, tags)
        return isinstance(x, QuotedSymbol) and x == value
    if type(value) is float:
        return type(x) is float and near(x, value, said.source.text[said.span.start : said.span.end])
    return type(x) is type(value) and bool(x == value)


def _names(x: Any, value: str, tags: dict[Any, Any]) -> bool:
    if not isinstance(x, Gensym):
        return callable(x) and value.startswith("#[procedure")
    if tags.setdefault(("said", value), x) != x or tags.setdefault(("is", x), value) != value:
        return False
    return value.startswith("#[gensym")


def near(x: float, said: float, text: str = "") -> bool:
    """Whether two numbers are the same to 1e-12, or to the digits that one was written with."""
    if abs(x - said) <= _CLOSE * max(1.0, abs(said)):
        return True
    places = len(text.partition(".")[2])
    if places < 3 or not text.lstrip("+-").replace(".", "").isdigit():
        return False
    return abs(x - said) <= 0.5000001 * 10.0**-places
