"""Fuzzes the text of programs, through all checks: valid ones with other names, arities and types, damaged ones, random
derivations of the grammar, and random characters.

One input is one text. It is a program, or an error that names a place; reading it takes no more than seconds.
"""

from __future__ import annotations

import functools
import itertools
import random
import re
import time

import dynagrad as dg
import examples
from random_programs import Draw, plain_program, semiring_program

LONGEST = 5.0
"""Seconds that any of these texts may take."""

ATOMS = re.findall(
    r"\S+",
    """
    X Y Z _ _X a b f(X) f(f(a)) [X|Y] [] [a,b,1] X/Y 0 1 -1 2147483647 -2147483648 2147483648
    99999999999999999999 0.5 1e308 1e999 .5 'a b' "t" 'it\\'s' '' '\\n' nil é λ X² NULL I+1 I-1 2*I I//0 I mod 0
    -X goal p p(X) p(X,Y) q(X) not~p(X) SIDE(p(X)) exp(p) log(p(X)) lse(p,q) max(p,q) min(1,2) abs(X)
    if~p<1~then~1~else~2 p^2 p**2 inf nan true false
    """,
)
OPERATORS = (
    "+=",
    "max=",
    "min=",
    "*=",
    "log+=",
    "|=",
    "&=",
    "=",
    ":-",
    "<-",
    "==",
    "!=",
    "<",
    "=<",
    "<=",
    ">",
    ">=",
    "-=",
)
WORDS = (
    *OPERATORS,
    "+",
    "-",
    "*",
    "/",
    "//",
    "mod",
    "^",
    "**",
    ",",
    ".",
    "(",
    ")",
    "[",
    "]",
    "|",
    " for ",
    " if ",
    " not ",
    ":-",
    ":- semiring ",
    ":- input ",
    ":- output ",
    ":- type ",
    ":- agenda ",
    ":- priority ",
    ":- prune ",
    ":- beam ",
    " by ",
    " keep ",
    ":- transient ",
    ":- external ",
    ":- function ",
    ":- distribution ",
    ":- show ",
    ":- solve ",
    ":- valtype(term, real).",
    "real",
    "log",
    "viterbi",
    "tropical",
    "boolean",
    "count",
    "expectation",
    "%",
    "'",
    '"',
    "\\",
    "\n",
    "\t",
    "\0",
    "\ufeff",
    "\ud800",
    "\u2028",
    "é",
    "\U0001f600",
    " ",
    " ",
)  # fmt: skip


@functools.cache
def good() -> tuple[str, ...]:
    """The programs of the examples, and some of one line."""
    return (
        *map(examples.source, examples.NAMES),
        "path(V) min= path(U) + edge(U,V).  path(a) = 0.",
        "goal += a(X) * b(X) for X < 3, not c(X).",
        ":- semiring log. constit(X,I,K) += rewrite(X,Y,Z) * constit(Y,I,J) * constit(Z,J,K).",
        "n(X+1) max= n(X) + 1. n(0) = 0.",
        ":- function f/1. :- external d/2. p(X) += f(q(X)) * d(X,Y) for Y = X + 1.",
        ":- input e/2 max=, c/1. far(Y) += far(X) * e(X,Y) ^ 2. far(X) += c(X).",
        ":- type t(list). t([X|Xs]) += t(Xs) * w(X). t([]) = 1.",
    )


SHARED = 1000
"""How many inputs, one after the other, change the same whole programs."""


@functools.lru_cache(maxsize=1)
def whole(series: int) -> tuple[str, ...]:
    """Programs that mean something, the same ones for a number each time."""
    draw = Draw(series)
    made = [(semiring_program(draw, "real", True), semiring_program(draw, "log", False)) for _ in range(25)]
    plain = [plain_program(draw) for _ in range(25)]
    return tuple(dict.fromkeys(program.source for program in (*itertools.chain(*made), *plain)))


_ITEM = re.compile(r"([a-z]\w*)\(([^()]*)\)")
_TYPED = ("a", "'b c'", '"t"', "0", "7", "0.5", "f(1)", "[a,1]", "X", "f(X)", "N+1")
_DECLARED = (
    ":- semiring real.",
    ":- semiring count.",
    ":- semiring expectation.",
    ":- solve newton.",
    ":- solve iterate.",
    ":- agenda lifo.",
    ":- output {}.",
    ":- input {}.",
    ":- input {} min=.",
    ":- transient {}.",
    ":- type {}(list).",
    ":- priority {}(_) by 1.",
)


def changed(draw: random.Random, series: int) -> str:
    """A whole program, of which a few items have other names, more or fewer arguments, or others in their place."""
    text = draw.choice(whole(series))
    names = sorted({found[1] for found in _ITEM.finditer(text)})
    for _ in range(draw.choice((0, 1, 1, 2, 3))):
        found = list(_ITEM.finditer(text))
        if not found:
            break
        item = draw.choice(found)
        name, arguments = item[1], item[2].split(",")
        at = draw.randrange(len(arguments))
        match draw.randrange(5):
            case 0:
                name = draw.choice(names)
            case 1:
                arguments.insert(at, draw.choice(_TYPED))
            case 2:
                del arguments[at]
            case 3:
                arguments[at] = draw.choice(_TYPED)
            case 4:
                draw.shuffle(arguments)
        written = f"{name}({','.join(arguments)})" if arguments else name
        text = text[: item.start()] + written + text[item.end() :]
    if names and draw.random() < 0.5:
        text = f"{draw.choice(_DECLARED).format(draw.choice(names))}\n{text}"
    if draw.random() < 0.1:
        text = re.sub(r"\+=|max=|min=", draw.choice(OPERATORS), text, count=1)
    return text


def loose(draw: random.Random) -> str:
    """A text that looks like rules."""
    rules = []
    for _ in range(draw.randrange(1, 5)):
        body = "".join(
            draw.choice(ATOMS) + draw.choice((" * ", " + ", ", ", " - ", " / ", " for ", " < ", " = ", " "))
            for _ in range(draw.randrange(1, 5))
        )
        rules.append(f"{draw.choice(ATOMS)} {draw.choice(OPERATORS)} {body}{draw.choice(ATOMS)}.")
    if draw.random() < 0.3:
        rules.insert(draw.randrange(len(rules) + 1), draw.choice(WORDS) + draw.choice(ATOMS) + ".")
    return draw.choice((" ", "\n")).join(rules).replace("~", " ")


def damaged(draw: random.Random) -> str:
    """A good text with pieces out, in, and in other places."""
    text = draw.choice(good())
    if len(text) > 2000:
        at = draw.randrange(len(text) - 1500)
        text = text[at : at + 1500]
    for _ in range(draw.choice((1, 1, 2, 4, 16))):
        at, length = draw.randrange(len(text) + 1), draw.choice((1, 1, 3, 10, 60))
        match draw.randrange(5):
            case 0:
                text = text[:at] + text[at + length :]
            case 1:
                text = text[:at] + draw.choice(WORDS) + text[at:]
            case 2:
                text = text[:at] + draw.choice(ATOMS).replace("~", " ") + text[at + length :]
            case 3:
                start = draw.randrange(len(text) + 1)
                text = text[:at] + text[start : start + length] + text[at:]
            case 4:
                text = text[:at] + chr(draw.choice((draw.randrange(128), draw.randrange(0x110000)))) + text[at:]
    return text


def text(number: int) -> str:
    """The input of that number."""
    draw = random.Random(number)
    kind = draw.random()
    if kind < 0.5:
        return changed(draw, number // SHARED)
    if kind < 0.7:
        return loose(draw)
    if kind < 0.95:
        return damaged(draw)
    if kind < 0.98:
        return "".join(draw.choice(WORDS) for _ in range(draw.randrange(1, 60)))
    deep = draw.choice(("f(", "[", "(", "-", "p + ", "not ", "if p then ", "a/", "[a|", "2 ^ ", "X < "))
    return f"p += {deep * draw.choice((10, 300, 3000))}a."


def check(seed: int) -> str | None:
    """What is wrong, or nothing."""
    source = text(seed)
    began = time.perf_counter()
    try:
        program = dg.Program(
            source, functions={"f": lambda x: x, "d/2": lambda x, y: 1.0} if "function" in source else None
        )
        str(program), program.inputs, program.predicates
    except dg.Error as error:
        if not str(error).strip():
            return f"an error without words for {source!r}"
    took = time.perf_counter() - began
    return f"{took:.1f} s for {source!r}" if took > LONGEST else None
