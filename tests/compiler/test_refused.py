"""What cannot be compiled: an error with the user's file, line and a caret, that says what to do."""

from __future__ import annotations

import importlib.util
import linecache
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.compiler.specialised import key_of, specialised
from dynagrad.errors import Error, LiftError

OUTSIDE = np.zeros(3)
HEAD = (
    "import math\nimport random\nimport numpy as np\nimport dynagrad as dg\nOUTSIDE = np.zeros(3)\n\n"
    "class Box:\n    def __init__(self, value):\n        self.value = value\n\n"
)

# The text of a function, the arguments, a line of it, what stands above the caret, a part of the message.
CASES: dict[str, tuple[str, tuple[Any, ...], str, str]] = {
    "with": ("def f(x):\n    with open('a') as g:\n        return x", (1.0,), "with open", "`with` of anything but"),
    "try": (
        "def f(x):\n    try:\n        return 1.0 / x\n    except ZeroDivisionError:\n        return 0.0",
        (1.0,),
        "1.0 / x",
        "this may raise ZeroDivisionError as the function runs, and the `try` in line 12 catches it",
    ),
    "pow": ("def f(x):\n    return pow(int(x), 2, 5)", (2.0,), "pow(int(x), 2, 5)", "pow() with three arguments"),
    "yield": ("def f(x):\n    yield x", (1.0,), "yield x", "yield cannot be compiled; compiled functions are made of"),
    "class": ("def f(x):\n    class A:\n        pass\n    return x", (1.0,), "class A", "a class inside a function"),
    "del": ("def f(x):\n    del x\n    return 1.0", (1.0,), "del x", "`del` of a variable cannot"),
    "global": ("def f(x):\n    global Q\n    Q = x\n    return x", (1.0,), "Q", "global variable Q"),
    "name": ("def f(x):\n    return x + matth.sqrt(2)", (1.0,), "matth", "matth is not defined"),
    "near name": ("def f(value):\n    return valeu + 1", (1.0,), "valeu", "is it value?"),
    "no value": (
        "def f(x):\n    if x > 0:\n        return z\n    z = 2.0\n    return z",
        (1.0,),
        "z",
        "z has no value here",
    ),
    "branches": (
        "def f(x):\n    if x > 0:\n        y = 1.0\n    else:\n        y = (1.0, 2.0)\n    return y",
        (1.0,),
        "if x > 0:",
        "y is 1.0, a real in one branch and a tuple of 2 in the other",
    ),
    "a list in branches": (
        "def f(x):\n    a = [1.0, (x, x)]\n    if x > 0:\n        a[1] = (x, (x, 1.0))\n    return a[0]",
        (1.0,),
        "if x > 0:",
        "[1][1] of a list of 2 is a tuple of 2 in one branch",
    ),
    "a dict in branches": (
        "def f(x):\n    d = {'u': x, 'v': 1.0}\n    if x > 0:\n        d['v'] = (x, x)\n    return d['u']",
        (1.0,),
        "if x > 0:",
        "['v'] of a dict of 2 is a tuple of 2 in one branch and 1.0, a real in the other",
    ),
    "a dict that grows": (
        "def f(x):\n    d = {'u': x}\n    if x > 0:\n        d['v'] = x\n    return d['u']",
        (1.0,),
        "if x > 0:",
        "a dict of 1 is a tuple of 3 in one branch and a tuple of 2 in the other",
    ),
    "an attribute in rounds": (
        "def f(x):\n    p = Box(1.0)\n    while x < 10:\n        p.value = (p.value, x)\n        x += 1\n    return x",
        (1.0,),
        "while x < 10:",
        ".value of an object of Box is 1.0, a real before a round of this loop and a tuple of 2 after it",
    ),
    "shapes of branches": (
        "def f(a):\n    return a if a[0] > 0 else a[1:]",
        (np.ones(3),),
        "a if a[0] > 0 else a[1:]",
        "an array of reals of shape (3,) in one branch",
    ),
    "rounds": (
        "def f(x):\n    y = (1.0,)\n    while x < 10:\n        y = (y, x)\n        x = x + 1\n    return x, y",
        (1.0,),
        "while x < 10:",
        "y is a tuple of 1 before a round of this loop and a tuple of 2 after it",
    ),
    "lists that grow": (
        "def f(x):\n    xs = []\n    while x < 10:\n        xs.append(x)\n        x += 1\n    return sum(xs)",
        (1.0,),
        "while x < 10:",
        "a list of 0",
    ),
    "broadcasting": (
        "def f(a, b):\n    return (a + b).sum()",
        (np.ones(3), np.ones(4)),
        "a + b",
        "arrays of shapes (3,) and (4,) do not broadcast",
    ),
    "endless": ("def f(x):\n    return f(x + 1)", (1.0,), "f(x + 1)", "calls itself more than 120 times"),
    "endless both ways": ("def f(x):\n    return f(x + 1) if x > 0 else f(x - 1)", (1.0,), "def f(x):", "never ends"),
    "endless loop": ("def f(x):\n    while True:\n        x = x + 1", (1.0,), "while True:", "never ends"),
    "types of recursion": (
        "def f(x):\n    return x if x < 0 else (f(x - 1),)",
        (1.0,),
        "x if x < 0",
        "a real in one branch and a tuple of 1",
    ),
    "raise at once": (
        "def f(x, n=3):\n    if n == 3:\n        raise ValueError(f'bad {n}')\n    return x",
        (1.0,),
        "raise ValueError",
        "the function raises ValueError: bad 3",
    ),
    "assert": ("def f(x, n=3):\n    assert n > 3\n    return x", (1.0,), "assert n > 3", "raises AssertionError"),
    "argument": ("def f(a):\n    a[0] = 2.0\n    return a", (np.ones(3),), "a[0]", "it is an argument of the compiled"),
    "outside": (
        "def f(x):\n    OUTSIDE[0] = x\n    return x",
        (1.0,),
        "OUTSIDE[0]",
        "made outside of the",
    ),
    "either of two": (
        "def f(x):\n    a, b = np.zeros(2), np.ones(2)\n    c = a if x > 0 else b\n    c[0] = 5.0\n    return a, b",
        (1.0,),
        "c[0]",
        "change a copy of it",
    ),
    "random": ("def f(x):\n    return x * np.random.rand()", (1.0,), "np.random.rand()", "the same in each call"),
    "print": ("def f(x):\n    print(x)\n    return x", (1.0,), "print(x)", "print() cannot be compiled"),
    "c function": ("def f(x):\n    return x * random.random()", (1.0,), "random.random()", "cannot be called"),
    "shape": (
        "def f(x):\n    return np.zeros(int(x))",
        (1.0,),
        "np.zeros(int(x))",
        "the shape of an array must be known",
    ),
    "mask": ("def f(a):\n    return a[a > 0]", (np.ones(3),), "a[a > 0]", "use np.where(mask, x, 0.0)"),
    "array as condition": (
        "def f(a):\n    if a > 0:\n        return 1.0\n    return 2.0",
        (np.ones(3),),
        "if a > 0:",
        "use np.any, np.all",
    ),
    "text": ("def f(x):\n    return x + 'a'", (1.0,), "x + 'a'", "cannot be compiled"),
    "attribute": ("def f(x):\n    return x.foo", (1.0,), "x.foo", "a real has no foo"),
    "index": ("def f(a):\n    return a[5]", (np.ones(3),), "a[5]", "out of range"),
    "key": ("def f(x):\n    return {'a': x}['b']", (1.0,), "{'a': x}['b']", "its keys are 'a'"),
    "too many arguments": (
        "def f(x):\n    g = lambda a: a\n    return g(x, 2.0)",
        (1.0,),
        "g(x, 2.0)",
        "does not take",
    ),
    "missing argument": ("def f(x):\n    g = lambda a, b: a\n    return g(x)", (1.0,), "g(x)", "needs a value for b"),
    "unpacking": ("def f(x):\n    a, b = x, x, x\n    return a", (1.0,), "a, b", "has 3 parts"),
    "by a whole number": ("def f(x):\n    return dg.grad(lambda n: n * 2.0)(3)", (1.0,), "dg.grad(", "write 3.0"),
    "of an array": (
        "def f(x):\n    return dg.grad(lambda n: np.stack([n, n]))(x)",
        (1.0,),
        "dg.grad(",
        "one real, or a function whose calls do, and returned an array of reals of shape (2,)",
    ),
    "which items": ("def f(x):\n    return [i for i in range(3) if x > i]", (1.0,), "[i for i", "which items"),
    "items by a place of the run": (
        "def f(x):\n    xs = [x, (x, x)]\n    return xs[int(x)]",
        (1.0,),
        "xs[int(x)]",
        "can look up only numbers, or arrays of one shape",
    ),
    "a function of this package": (
        "def f(x):\n    return dg.check_derivatives(lambda y: y * 0.5, x)",
        (1.0,),
        "dg.check_derivatives(",
        "dynagrad",
    ),
    "a step that changes something else": (
        "def f(x):\n    n = np.zeros(1)\n    def step(y):\n        n[0] = y\n        return y * 0.5\n"
        "    return dg.fixed_point(step, x)",
        (1.0,),
        "dg.fixed_point(",
        "changes a value from outside",
    ),
    "a state that changes its shape": (
        "def f(x):\n    return dg.checkpoint(lambda s: None if s[0] > 2.0 else np.append(s, x), np.ones(1) * x)",
        (1.0,),
        "dg.checkpoint(",
        "the state is an array of reals of shape (1,) before a step and an array of reals of shape (2,) after it",
    ),
    "None where a number is wanted": (
        "def f(x):\n    return dg.checkpoint(lambda s: None if s > 2.0 else s * 2.0, x, 3)",
        (1.0,),
        "None if",
        "the result is None",
    ),
    "in place": (
        "def f(a):\n    b = a + 1\n    np.put(b, [0], 0)\n    return b",
        (np.eye(3),),
        "np.put(",
        "in place",
    ),
    "looping over a number": ("def f(x):\n    for i in x:\n        pass", (1.0,), "for i in x", "single number"),
    "a range of reals": (
        "def f(x):\n    for i in range(x):\n        pass",
        (1.0,),
        "for i in range(x)",
        "whole numbers",
    ),
    "arguments of recursion": (
        "def f(x):\n    def g(y):\n        return 1.0 if x < 0 else g((y, y))\n    return g(x)",
        (1.0,),
        "def g(y):",
        "g() calls itself with, or returns, a real in one place and a tuple of 2 in another",
    ),
    "rounds that may not come": (
        "def f(x):\n    y = 1.0\n    for g in (np.sin, np.cos):\n        y = (y, x)\n        if x > 0:\n"
        "            break\n    return y",
        (1.0,),
        "for g in",
        "must keep its kind",
    ),
    "walrus": (
        "def f(x):\n    return x if x > 0 and (y := x) > 1 else 2.0",
        (1.0,),
        "y := x",
        "assign the name before it",
    ),
}

LOOKS = {
    "length": "len({})",
    "prefix": "1.0 if ({}).startswith('1') else 2.0",
    "index": "1.0 if ({})[0] == '1' else 2.0",
    "parts": "len(({}).split('.'))",
    "count": "({}).count('1')",
    "characters": "len(list({}))",
    "loop": "sum(c == '.' for c in ({}))",
    "sum": "len('a' + {})",
    "code": "ord(({})[0])",
    "upper": "1.0 if ({}).upper() == '1' else 2.0",
    "times": "len(({}) * 2)",
}
CASES["a set of texts"] = (
    "def f(x):\n    return len({str(x), '1.0'}) * x",
    (1.0,),
    "{str(x)",
    "the elements of a set must be known",
)


@pytest.fixture
def made(tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    def make(text: str) -> Any:
        file = tmp_path / "theirs.py"
        file.write_text(HEAD + text + "\n")
        spec = importlib.util.spec_from_file_location("theirs", file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.f

    yield make
    sys.modules.pop("theirs", None)


@pytest.mark.parametrize("name", CASES)
def test_what_cannot_be_lifted_is_shown(name: str, made: Any) -> None:
    text, arguments, place, message = CASES[name]
    f = made(text)
    with pytest.raises(LiftError) as caught:
        specialised(f, arguments)
    shown = str(caught.value)
    assert message in shown
    *_, source, caret = shown.splitlines()
    assert "theirs.py, line " in shown
    column = caret.index("^")
    assert source[column:].startswith(place), shown


@pytest.mark.parametrize("text", ["f'{x:.2f}'", "str(x)", "repr([x])", "str(np.array([x]))", "f'{x}' + 'a'"])
def test_texts_of_numbers_are_not_looked_into(text: str, made: Any) -> None:
    """As a function is compiled the digits are not known, and none others may be taken for them."""
    for look in LOOKS.values():
        f = made(f"def f(x):\n    return x * ({look.format(text)})")
        assert f(1.75) > 0.0  # Python has the text
        with pytest.raises(LiftError, match="known only as the function runs"):
            specialised(f, (1.75,))
    nonempty = made(f"def f(x):\n    return x if {text} else 2.0 * x")
    assert dg.compile(nonempty)(1.75) == 1.75


def test_a_function_without_source() -> None:
    space: dict[str, Any] = {}
    exec("def f(x): return x", space)
    with pytest.raises(LiftError, match=r"the source of f cannot be found"):
        specialised(space["f"], (1.0,))


@pytest.mark.parametrize("text", ["def f(x): return x", "def f(x): return x + 1.0", "def g(x): return x"])
def test_a_function_without_source_beside_text_of_the_command_line(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.13 keeps the text of `python -c` as that of the file `<string>`, where exec's functions are not."""
    entry = (len(text), None, [f"{text}\n"], "<string>")
    monkeypatch.setitem(linecache.cache, "<string>", entry)
    monkeypatch.setattr(linecache, "checkcache", lambda *_: None)  # before 3.13 it drops what is no file
    space: dict[str, Any] = {}
    exec("def f(x): return x", space)
    if text == "def f(x): return x":
        assert specialised(space["f"], (1.0,)) is not None
    else:
        with pytest.raises(LiftError, match=r"the source of f cannot be found"):
            specialised(space["f"], (1.0,))


def test_a_file_that_changed(made: Any, tmp_path: Path) -> None:
    f = made("def f(x):\n    return x + 1")
    (tmp_path / "theirs.py").write_text(HEAD + "def f(y):\n    return y + OUTSIDE\n")
    with pytest.raises(LiftError, match="the file changed"):
        specialised(f, (1.0,))


def test_what_is_returned_must_be_numbers() -> None:
    with pytest.raises(LiftError, match="this one returns the function <lambda>"):
        specialised(lambda x: lambda y: x, (1.0,))


@pytest.mark.parametrize("f", [3, "f", None])
def test_what_is_no_function(f: Any) -> None:
    with pytest.raises(LiftError, match="cannot be called"):
        specialised(f, (1.0,))


def test_the_function_itself_still_runs(made: Any) -> None:
    f = made("def f(x):\n    print(end='')\n    return x * x")
    with pytest.raises(LiftError):
        specialised(f, (3.0,))
    assert f(3.0) == 9.0 and dg.grad(f)(3.0) == 6.0


@pytest.mark.parametrize(
    "result", ["str(n)", "f'{n}'", "{'3': x}[str(n)]", "x if str(n) == '3' else 0.0", "'3' in f'n{n}'", "'n' + str(n)"]
)
def test_texts_of_numbers_that_are_not_known(made: Any, result: str) -> None:
    f = made(f"def f(x):\n    n = 0\n    while n < x:\n        n += 1\n    return {result}")
    with pytest.raises(LiftError, match="known"):
        specialised(f, (2.5,))


@pytest.mark.parametrize("wrong", [np.matrix([[1.0, 2.0]]), np.ma.array([1.0, 2.0], mask=[False, True])])
def test_arrays_that_are_more_than_arrays(wrong: Any) -> None:
    with pytest.raises(Error, match="takes plain arrays"):
        key_of((wrong,), {})
