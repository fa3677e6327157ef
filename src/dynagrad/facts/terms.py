"""Terms as Python values, interning (hash consing), and the flat encoding in which native code takes and returns them.

A Python `str` is a symbol, an `int` an integer, a `float` a float, a list or tuple a list, and a `Term` anything else.
Terms may be nested to any depth, so nothing here recurses, and may share subterms, so none is visited twice. The parser
of terms is in the rule language.

It is long because terms and their flat encoding are written, read and shown by the same rules.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from ..errors import FactError, QueryError, shown
from ..runtime.shared import SHARED

INTEGER_MIN, INTEGER_MAX = -(2**31), 2**31 - 1
"""The range of integers in arguments: they are packed into 32 bits."""

TEXT_LIMIT = 1_000_000
"""The longest text of one term: terms that share subterms can have texts larger than memory."""

CELL_LIMIT = 50_000_000
"""The most list elements that one call of `unflatten` makes: a list and its suffixes share memory only when flat."""

_Result = TypeVar("_Result")


# -- the term --------------------------------------------------------------------------------------------------------


class Term:
    """A compound term: `Term("slash", "np", ["n", "pp"])` is `slash(np,[n,pp])`, which rules also write `np/[n,pp]`.

    Immutable and hashable. Lists among the arguments become tuples. A list is made of `cons` and `nil`, so
    `Term("cons", "a", "nil")` equals `("a",)`, and `"nil"` inside a term is the empty list. A float never equals an
    integer.

    >>> Term("slash", "np", ["n", "pp"])
    Term('slash', 'np', ('n', 'pp'))
    >>> print(Term("slash", "np", ["n", "pp"]))
    np/[n,pp]
    >>> Term("cons", "a", Term("cons", "b", "nil")) == ["a", "b"]
    True
    >>> Term("f", 1) == Term("f", 1.0)
    False
    """

    __match_args__ = ("functor", "arguments")
    __slots__ = ("_hash", "arguments", "functor")

    functor: str
    arguments: tuple[Any, ...]
    _hash: int | None

    def __init__(self, functor: str, *arguments: object) -> None:
        if not isinstance(functor, str):
            raise FactError(f"the functor of a term is a string, but {shown(functor)} was given")
        if not arguments:
            raise FactError(f"a term has arguments; the symbol {symbol_text(functor)} is the string {functor!r}")
        _set(self, "functor", _symbol(functor))
        _set(self, "arguments", tuple(map(canonical, arguments)))
        _set(self, "_hash", None)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a term never changes; make a new one")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("a term never changes; make a new one")

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Term):
            return self is other or same_term(self, other)
        if isinstance(other, list | tuple):
            try:
                return same_term(self, canonical(other))
            except FactError:
                return False
        return NotImplemented

    def __hash__(self) -> int:
        if self._hash is None:
            _set(self, "_hash", _fold(self, _hash_children, hash, _hash_node))
        assert self._hash is not None
        return self._hash

    def __repr__(self) -> str:
        return _write(self, _python_layout, TEXT_LIMIT)

    def __str__(self) -> str:
        return term_text(self)

    def __copy__(self) -> Term:
        return self

    def __deepcopy__(self, memo: object) -> Term:
        return self

    def __reduce__(self) -> tuple[Callable[[str, Flat], Term], tuple[str, Flat]]:
        return _restore, (self.functor, flatten(self.arguments))


_set = object.__setattr__


def _term(functor: str, arguments: tuple[Any, ...]) -> Term:
    """A term from parts that are canonical already."""
    term = Term.__new__(Term)
    _set(term, "functor", functor)
    _set(term, "arguments", arguments)
    _set(term, "_hash", None)
    return term


def _restore(functor: str, arguments: Flat) -> Term:
    return _term(functor, tuple(unflatten(arguments)))


# -- canonical form --------------------------------------------------------------------------------------------------


def canonical(value: object) -> Any:
    """The canonical form of a term: `str`, `int`, `float`, a tuple for a list, or a `Term`. Raises `FactError` for
    anything else.

    >>> canonical(["a", ["b", 1], []])
    ('a', ('b', 1), ())
    """
    if isinstance(value, list | tuple):
        if not any(isinstance(element, list | tuple) for element in value):
            return tuple(map(_leaf, value))
        return _fold(value, lambda v: v if isinstance(v, list | tuple) else None, _leaf, lambda _, kids: tuple(kids))
    return _leaf(value)


def atom(value: object) -> str | int | float:
    """A symbol, integer or float as plain Python, also from a numpy number. Raises `FactError` for anything else."""
    kind = type(value)
    if kind is str:
        return _symbol(value)  # type: ignore[arg-type]  # it is a str
    if isinstance(value, bool | np.bool_):
        raise FactError(f"{value} is not a term; write 1 or 0, or a symbol such as 'true'")
    if isinstance(value, int | np.integer):
        number = int(value)
        if not INTEGER_MIN <= number <= INTEGER_MAX:
            raise FactError(
                f"the integer {shown(number)} is beyond the range of arguments, {INTEGER_MIN} to {INTEGER_MAX}; "
                "make it a string if it is only a name"
            )
        return number
    if isinstance(value, float | np.floating):
        if not math.isfinite(value):
            raise FactError(f"{value} is not a term; leave rows with missing or infinite arguments out")
        return float(value) + 0.0  # -0.0 becomes 0.0, which prints and hashes alike
    if isinstance(value, str):
        return _symbol(str.__str__(value))
    if hasattr(value, "isoformat") or isinstance(value, np.datetime64):
        raise FactError(f"{shown(value)} is not a term; give dates as texts, such as '2026-01-31': str(...) makes one")
    raise FactError(f"{shown(value)} is not a term; {_HINTS.get(kind, _HINT)}")


_HINT = "arguments are strings, integers, floats, lists and dg.Term; str(...) makes a string of anything else"
_HINTS: dict[type, str] = {
    type(None): "leave rows with missing arguments out",
    bytes: "decode it to a string first",
    bytearray: "decode it to a string first",
    dict: "arguments are strings, integers, floats, lists and dg.Term",
    set: "make it a list, in an order of your choice",
    frozenset: "make it a list, in an order of your choice",
}


def _symbol(name: str) -> str:
    if not name.isascii():
        try:
            name.encode()
        except UnicodeEncodeError:
            raise FactError(f"{shown(name)} holds half of a surrogate pair and is not text; repair it first") from None
    return name


def _leaf(value: object) -> Any:
    if isinstance(value, Term):
        return value
    plain = atom(value)
    return () if plain == "nil" else plain


# -- folds and equality, without recursion ---------------------------------------------------------------------------


def _fold(
    root: object,
    children: Callable[[Any], Sequence[Any] | None],
    leaf: Callable[[Any], _Result],
    node: Callable[[Any, list[_Result]], _Result],
) -> _Result:
    """Folds a term bottom up: `leaf` where `children` is None, else `node` of their results; memoises subterms."""
    done: dict[int, _Result] = {}
    entered: set[int] = set()  # the path from the root, to catch a list that holds itself
    results: list[_Result] = []
    stack: list[tuple[Any, Sequence[Any] | None]] = [(root, None)]
    while stack:
        value, parts = stack.pop()
        name = id(value)
        if parts is not None:
            first = len(results) - len(parts)
            result = done[name] = node(value, results[first:])
            results[first:] = [result]
            entered.discard(name)
        elif name in done:
            results.append(done[name])
        elif (parts := children(value)) is None:
            results.append(leaf(value))
        elif name in entered:
            raise FactError("a list contains itself, so it is not a term")
        else:
            entered.add(name)
            stack.append((value, parts))
            stack.extend((part, None) for part in reversed(parts))
    return results[0]


def _spine(value: Any) -> tuple[Sequence[Any], Any]:
    """The elements of a list and its tail, which is `()` for a proper list."""
    if type(value) is tuple:
        return value, ()
    elements = []
    while type(value) is Term and value.functor == "cons" and len(value.arguments) == 2:
        element, value = value.arguments
        elements.append(element)
    if type(value) is tuple:
        elements.extend(value)
        value = ()
    return elements, value


def _is_cons(value: object) -> bool:
    return type(value) is Term and value.functor == "cons" and len(value.arguments) == 2


def arguments_of(value: Any, functor: str, arity: int) -> Sequence[Any] | None:
    """The arguments of a canonical term with this functor; None for any other. A list is a `cons` of its first element.

    >>> arguments_of(("a", "b"), "cons", 2), arguments_of((), "cons", 2)
    (('a', ('b',)), None)
    """
    if isinstance(value, Term):
        return value.arguments if (value.functor, len(value.arguments)) == (functor, arity) else None
    if isinstance(value, tuple) and value and (functor, arity) == ("cons", 2):
        return (value[0], value[1:])
    return None


def same_term(left: Any, right: Any) -> bool:
    """Whether two canonical terms are equal. Unlike `==` on tuples, at any depth, and 1.0 is not 1."""
    seen: set[tuple[int, int]] = set()
    stack = [(left, right)]
    while stack:
        a, b = stack.pop()
        if a is b:
            continue
        if type(a) is not type(b):
            if type(b) is Term:
                a, b = b, a
            if not (_is_cons(a) and type(b) is tuple):
                return False
            a, tail = _spine(a)
            if tail != () or len(a) != len(b):
                return False
            stack.extend(zip(a, b, strict=True))
        elif type(a) is Term or type(a) is tuple:
            if (id(a), id(b)) in seen:
                continue
            seen.add((id(a), id(b)))
            if type(a) is Term:
                if a._hash is not None and b._hash is not None and a._hash != b._hash:
                    return False
                if a.functor != b.functor:
                    return False
                a, b = a.arguments, b.arguments
            if len(a) != len(b):
                return False
            stack.extend(zip(a, b, strict=True))
        elif a != b:
            return False
    return True


class _Hashed:
    """A stand-in for a value whose hash is known."""

    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        self.value = value

    def __hash__(self) -> int:
        return self.value


def _hash_children(value: Any) -> Sequence[Any] | None:
    if type(value) is tuple:
        return value
    if type(value) is not Term or value._hash is not None:
        return None
    if _is_cons(value):
        elements, tail = _spine(value)
        return elements if tail == () else [*elements, tail]
    return value.arguments


def _hash_node(value: Any, hashes: list[int]) -> int:
    own = hash(tuple(map(_Hashed, hashes)))  # what Python's tuple of the parts hashes to
    if type(value) is tuple or (_is_cons(value) and _spine(value)[1] == ()):
        return own
    return hash((value.functor, own))


# -- text ------------------------------------------------------------------------------------------------------------

_PLAIN = re.compile(r"[a-z][A-Za-z0-9_]*\Z")
_RESERVED = frozenset({"for", "if", "is", "mod", "not", "then", "else"})
_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0"})


def symbol_text(name: str) -> str:
    r"""A symbol in the syntax of rules.

    >>> print(symbol_text("np"), symbol_text("N P"), symbol_text("it's"))
    np 'N P' 'it\'s'
    """
    if _PLAIN.match(name) and name not in _RESERVED:
        return name
    return f"'{name.translate(_ESCAPES)}'"


def term_order(value: Any) -> tuple[int, float, str]:
    """The key by which canonical terms are sorted: integers, then floats, symbols, and other terms by their text.

    >>> sorted(["b", (), 2, "a", 1.5, 10], key=term_order)
    [2, 10, 1.5, 'a', 'b', ()]
    """
    if isinstance(value, int | float):
        return (isinstance(value, float), value, "")
    return (2, 0.0, value) if isinstance(value, str) else (3, 0.0, term_text(value))


def term_text(value: object, limit: int = TEXT_LIMIT) -> str:
    """A term in the syntax of rules, cut with `...` after about `limit` characters.

    >>> print(term_text(["n", "N P", 1, Term("slash", "s", "np"), Term("cons", "a", "b")]))
    [n,'N P',1,s/np,[a|b]]
    """
    return _write(value, _rule_layout, limit)


def item_text(key: str, values: Sequence[Any]) -> str:
    """An item in the syntax of rules.

    >>> print(item_text("rewrite/3", ["s", "N P", 1]))
    rewrite(s,'N P',1)
    """
    name = key.rsplit("/", 1)[0]
    return f"{name}({','.join(term_text(v) for v in values)})" if values else name


_Layout = list[tuple[bool, Any]]  # pieces of text (True), and parts still to be laid out (False)


def _write(root: object, layout: Callable[[Any], str | _Layout], limit: int) -> str:
    out: list[str] = []
    size = 0
    stack: _Layout = [(False, root)]
    while stack:
        is_text, item = stack.pop()
        piece = item if is_text else layout(item)
        if isinstance(piece, str):
            out.append(piece)
            size += len(piece)
            if size > limit:
                return "".join(out)[:limit] + "..."
        else:
            stack.extend(reversed(piece))
    return "".join(out)


def _commas(parts: Iterable[object], comma: str = ",") -> _Layout:
    pieces: _Layout = []
    for part in parts:
        pieces += ((True, comma), (False, part))
    return pieces[1:]


def _rule_layout(value: Any) -> str | _Layout:
    if isinstance(value, list | tuple):
        return [(True, "["), *_commas(value), (True, "]")]
    if not isinstance(value, Term):
        return symbol_text(value) if isinstance(value, str) else float_text(value)
    if _is_cons(value):
        elements, tail = _spine(value)
        rest: _Layout = [] if tail == () else [(True, "|"), (False, tail)]
        return [(True, "["), *_commas(elements), *rest, (True, "]")]
    if value.functor == "slash" and len(value.arguments) == 2:
        left, right = value.arguments
        negative = isinstance(left, int | float) and left < 0
        nested = isinstance(right, Term) and right.functor == "slash" and len(right.arguments) == 2
        if not negative and not nested:  # those two would be read otherwise
            return [(False, left), (True, "/"), (False, right)]
    return [(True, symbol_text(value.functor) + "("), *_commas(value.arguments), (True, ")")]


def float_text(value: object) -> str:
    """A number as a text that parses to the same number: floats always have a point.

    >>> float_text(1e22), float_text(3)
    ('1.0e+22', '3')
    """
    text = repr(value)
    if isinstance(value, float) and "." not in text and "e" in text:
        text = text.replace("e", ".0e")
    return text


def _python_layout(value: Any) -> str | _Layout:
    if type(value) is tuple:
        return [(True, "("), *_commas(value, ", "), (True, ",)" if len(value) == 1 else ")")]
    if type(value) is Term:
        return [(True, f"Term({value.functor!r}, "), *_commas(value.arguments, ", "), (True, ")")]
    return repr(value)


# -- the flat encoding -----------------------------------------------------------------------------------------------

_KINDS = SHARED.numbers("TermKind")
INTEGER, ATOM, COMPOUND = (_KINDS[f"{name}_TERM"] for name in ("INTEGER", "ATOM", "COMPOUND"))
"""The kinds of node in a `Flat`."""


@dataclass(frozen=True, slots=True, eq=False)
class Flat:
    """Many terms as arrays: a DAG with each distinct subterm once, children before parents.

    Node `i` is the integer `payload[i]`, the symbol or float `atoms[payload[i]]`, or the compound with functor
    `functors[payload[i]]` and children `children[child_start[i]:child_start[i + 1]]`. Lists are `("cons", 2)` and
    the atom `"nil"`. `roots` has the node of each term.
    """

    kind: npt.NDArray[np.int8]
    payload: npt.NDArray[np.int64]
    child_start: npt.NDArray[np.int32]
    children: npt.NDArray[np.int32]
    roots: npt.NDArray[np.int32]
    atoms: list[str | float]
    functors: list[tuple[str, int]]


_ATOMS = frozenset({str, int, float})


class Interner:
    """Interns terms: equal terms get equal numbers, in whatever Python form they are given.

    >>> interner = Interner()
    >>> interner.add(["a"]) == interner.add(Term("cons", "a", "nil"))
    True
    """

    def __init__(self) -> None:
        self._kind: list[int] = []
        self._payload: list[int] = []
        self._child_start: list[int] = [0]
        self._children: list[int] = []
        self._atoms: list[str | float] = []
        self._functors: list[tuple[str, int]] = []
        self._functor_number: dict[tuple[str, int], int] = {}
        self._node: dict[Any, int] = {}  # (type, value) of an atom, (functor, children...) of a compound

    def add(self, value: object) -> int:
        """The number of a term."""
        if isinstance(value, list | tuple | Term):
            return _fold(value, _children, self._atom, self._parent)
        return self._atom(value)

    def flat(self, roots: Iterable[int]) -> Flat:
        """All terms added so far; `roots` has the numbers of those that are wanted."""
        return Flat(
            np.array(self._kind, np.int8),
            np.array(self._payload, np.int64),
            np.array(self._child_start, np.int32),
            np.array(self._children, np.int32),
            np.fromiter(roots, np.int32),
            list(self._atoms),
            list(self._functors),
        )

    def _atom(self, value: object) -> int:
        node = self._node.get((type(value), value)) if type(value) in _ATOMS else None
        if node is None:
            plain = atom(value)
            node = self._node.get((type(plain), plain))
            if node is None:
                if isinstance(plain, int):
                    node = self._new(INTEGER, plain, ())
                else:
                    self._atoms.append(plain)
                    node = self._new(ATOM, len(self._atoms) - 1, ())
                self._node[type(plain), plain] = node
        return node

    def _parent(self, value: Any, parts: list[int]) -> int:
        if isinstance(value, Term):
            return self._compound(value.functor, tuple(parts))
        node = self._atom("nil")
        for part in reversed(parts):
            node = self._compound("cons", (part, node))
        return node

    def _compound(self, functor: str, parts: tuple[int, ...]) -> int:
        node = self._node.get((functor, *parts))
        if node is None:
            signature = functor, len(parts)
            number = self._functor_number.setdefault(signature, len(self._functors))
            if number == len(self._functors):
                self._functors.append(signature)
            node = self._node[(functor, *parts)] = self._new(COMPOUND, number, parts)
        return node

    def _new(self, kind: int, payload: int, parts: tuple[int, ...]) -> int:
        self._kind.append(kind)
        self._payload.append(payload)
        self._children.extend(parts)
        self._child_start.append(len(self._children))
        return len(self._kind) - 1


def _children(value: Any) -> Sequence[Any] | None:
    if type(value) is Term:
        return value.arguments
    return value if isinstance(value, list | tuple) else None


def flatten(values: Iterable[object]) -> Flat:
    """The flat encoding of terms; `unflatten` is the inverse.

    >>> flat = flatten([["a", 1], "a"])
    >>> flat.roots.tolist(), flat.atoms, flat.functors
    ([4, 0], ['a', 'nil'], [('cons', 2)])
    """
    interner = Interner()
    return interner.flat([interner.add(value) for value in values])


def unflatten(flat: Flat) -> list[Any]:
    """The terms of `flat` in canonical Python form: tuples for lists, the atom `nil` as `()`.

    >>> unflatten(flatten([["a", 1], Term("slash", "s", "nil"), 2.5]))
    [('a', 1), Term('slash', 's', ()), 2.5]
    """
    kind, payload = flat.kind.tolist(), flat.payload.tolist()
    start, children, roots = flat.child_start.tolist(), flat.children.tolist(), flat.roots.tolist()
    cons = flat.functors.index(("cons", 2)) if ("cons", 2) in flat.functors else -1
    nil = next((i for i, k in enumerate(kind) if k == ATOM and flat.atoms[payload[i]] == "nil"), -1)

    length = [-1] * len(kind)  # of proper lists
    for node, is_kind in enumerate(kind):
        if node == nil:
            length[node] = 0
        elif is_kind == COMPOUND and payload[node] == cons and length[children[start[node] + 1]] >= 0:
            length[node] = length[children[start[node] + 1]] + 1

    # Top down: the nodes that are needed as values. Tails of a list are not, unless another term contains them.
    wanted = bytearray(len(kind))
    for root in roots:
        wanted[root] = 1
    lists: dict[int, list[int]] = {}
    cells = 0
    for node in range(len(kind) - 1, -1, -1):
        if not wanted[node]:
            continue
        parts = children[start[node] : start[node + 1]]
        if length[node] > 0:
            cells += length[node]
            if cells > CELL_LIMIT:
                raise QueryError(
                    f"written out, these lists have more than {CELL_LIMIT} elements; ask for fewer rows at a time"
                )
            parts, tail = [], node
            while tail != nil:
                parts.append(children[start[tail]])
                tail = children[start[tail] + 1]
            lists[node] = parts
        for part in parts:
            wanted[part] = 1

    values: list[Any] = [None] * len(kind)
    for node, is_wanted in enumerate(wanted):
        if not is_wanted:
            continue
        if kind[node] == INTEGER:
            values[node] = payload[node]
        elif kind[node] == ATOM:
            values[node] = () if node == nil else flat.atoms[payload[node]]
        elif node in lists:
            values[node] = tuple([values[part] for part in lists[node]])
        else:
            parts = children[start[node] : start[node + 1]]
            values[node] = _term(flat.functors[payload[node]][0], tuple([values[part] for part in parts]))
    return [values[root] for root in roots]
