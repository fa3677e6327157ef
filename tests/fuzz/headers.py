"""Fuzzes C++ headers with programs that have hostile names: compiled, run, and queried.

One input is one header. `HEADERS` of them are compiled together, since compiling takes the time; each is in a namespace
of its own, whose name is hostile as well.
"""

from __future__ import annotations

import atexit
import functools
import os
import random
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import dynagrad as dg
from dynagrad.charts.binding.encoding import kinds, program_constants
from dynagrad.charts.program import context_of
from dynagrad.codegen.rules.header.members import member_names
from dynagrad.codegen.rules.header.names import namespace
from dynagrad.codegen.rules.header.program import header
from dynagrad.plan.assume import assumed_plan
from dynagrad.runtime.compiling import compilation, toolchain

HEADERS = 12

NAMES = re.findall(
    r"\S+",
    """
    NULL EOF NAN INFINITY BUFSIZ INT32_MAX INT_MAX linux unix errno assert stdin va_start signbit alloca I M_PI min max
    main std dynagrad chart base engine run result item items term argument weight gradient derivatives size_t int32_t
    add_s all_s_1 clear_s_1 added_s_1 set_s_1 add_add_s all_goal_0 goal_ s s_2 add_s_2 for while this operator new
    template class_ int bool not and xor co_await requires export module import final override nullptr true
    one zero give look_up take_all of write widen atom encode decode load order drop functor symbol real number print
    world rows words texts message settings report answer ask asked external name list cons arity part compound error
    malloc free printf puts exit abort memcpy strlen index time exp log gamma y0 j1 read sinf tm FILE far near
""",
)
ODD = (
    "'\nint ran = 1; //",
    "a\nb",
    "\\",
    "x\\",
    "x\\ ",
    "??/",
    "x ??/",
    "*/ int ran = 1; /*",
    '"; int ran = 1; "',
    "\r",
    "\u2028",
    "\x0b",
    "\x00",
    "é",
    "Ä_",
    "λ",
    "\u202e",
    "\U0001f600",
    "_",
    "__",
    "_A",
    "__FILE__",
    "__LINE__",
    "1",
    "2nd",
    "a b",
    "a_b",
    "a__b",
    "a-b",
    "%s%n",
    "{}",
    "{0}",
    "#include",
    "#define x",
    '\n#error "',
    'R"x(',
    "\ud800",
    "N" * 300,
    "",
)
VARIABLES = ("X", "NULL", "EOF", "__FILE_", "_x", "X²", "Ü", "BUFSIZ", "Int", "X1", "INT32_MAX", "M_PI", "World")


@functools.cache
def zig_folder() -> Path:
    """What the compiler keeps from unit to unit: in the cache of the tests, or as long as this process lives."""
    if "DYNAGRAD_CACHE" in os.environ:
        return Path(os.environ["DYNAGRAD_CACHE"]) / "zig"
    folder = Path(tempfile.mkdtemp(prefix="dynagrad-fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def quoted(name: str) -> str:
    escapes = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\t": "\\t"}
    return "'" + "".join(escapes.get(c, c) for c in name) + "'"


def drawn_name(draw: random.Random) -> str:
    kind = draw.random()
    if kind < 0.5:
        return draw.choice(NAMES)
    if kind < 0.85:
        return draw.choice(ODD)
    if kind < 0.95:
        return (
            draw.choice(("add_", "all_", "set_", "clear_", "added_", ""))
            + draw.choice(NAMES)
            + draw.choice(("", "_0", "_1", "_2", "x"))
        )
    return "".join(
        chr(draw.choice((draw.randrange(1, 128), draw.randrange(0x110000)))) for _ in range(draw.randrange(1, 6))
    )


def program(draw: random.Random) -> str:
    """A program whose predicates, symbols and variables have hostile names; its goal is known to Python as well."""
    rules = [":- semiring real."] if draw.random() < 0.7 else [":- semiring tropical."]
    names = [drawn_name(draw) for _ in range(draw.randrange(1, 5))]
    keys = list({(name, draw.randrange(4)) for name in names} | {(name, draw.randrange(3)) for name in names[:2]})
    for number, (name, arity) in enumerate(keys):
        variables = draw.sample(VARIABLES, arity)
        call = f"({', '.join(variables)})" if arity else ""
        symbols = [draw.choice((quoted(drawn_name(draw)), str(draw.randrange(-3, 9)))) for _ in range(arity)]
        fact = f"({', '.join(symbols)})" if arity else ""
        if draw.random() < 0.6:
            rules.append(f"{quoted(name)}{call} += src{number}{call}.")
            rules.append(f"src{number}{fact} = 0.5.")
        else:
            rules.append(f"{quoted(name)}{fact} = 0.25.")
        if draw.random() < 0.4:
            rules.append(f":- input {quoted(name)}/{arity}.")
        rules.append(f"goal += {quoted(name)}{call}.")
    return "\n".join(rules)


def check(seed: int) -> str | None:
    """What is wrong with the headers from `HEADERS * seed` on, or nothing."""
    found = unit(list(range(HEADERS * seed, HEADERS * (seed + 1))))
    return "\n".join(found) or None


def unit(numbers: list[int]) -> list[str]:
    """What is wrong with these headers, compiled together."""
    heads, bodies, wanted = [], [], []
    taken: set[str] = set()
    for seed in numbers:
        draw = random.Random(seed)
        text, space = program(draw), namespace(drawn_name(draw))
        while space in taken:
            space += "x"
        taken.add(space)
        try:
            setting = context_of(dg.Program(text))
            want = float(dg.Program(text).run(max_pops=100)["goal"])
        except dg.Error:
            continue
        plan = assumed_plan(setting.rules, setting.domains, kinds(setting.rules, setting.domains, {}), setting.options)
        heads.append(header(plan, space, program_constants(setting.rules, setting.domains)))
        said = (
            f'if (!chart.run()) printf("%s\\n", chart.error()); printf("{seed} %.17g\\n", (double)chart.goal().value);'
        )
        asked = [f"(void)chart.all_{n}_{plan.tables[k].arity}();" for k, n in member_names(plan).items()]
        adds = []
        for key, name in member_names(plan).items():
            arity = plan.tables[key].arity
            if f" clear_{name}_{arity}(" in heads[-1]:
                adds.append(f"chart.add_{name}({', '.join(['1'] * arity + [f'{space}::one()'])});")
                adds.append(f"chart.clear_{name}_{arity}();")
        bodies.append(f"  {{ {space}::chart chart; {said} {' '.join(asked)} {' '.join(adds)} }}")
        wanted.append(f"{seed} {want:.17g}")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        names = []
        for number, head in enumerate(heads):
            names.append(f"h{number}.hpp")
            (folder / names[-1]).write_bytes(head.encode("utf-8", "backslashreplace"))
        main = "".join(f'#include "{n}"\n' for n in names) + "int main() {\n" + "\n".join(bodies) + "\n}\n"
        tool = toolchain.compiler()
        dropped = ("-shared", "-fPIC", "-fvisibility=hidden")
        options = [f for f in toolchain.flags(tool, 0) if f not in dropped]
        try:
            given = compilation.inputs(main, folder / "main")
            compilation.compile_by_compiler(given, tool, [*options, f"-I{folder}"], zig_cache=zig_folder())
        except dg.CompileError as error:
            return [f"headers {numbers}: {error}"]
        done = subprocess.run([folder / "main"], capture_output=True, text=True, timeout=60)
        got = done.stdout.splitlines()
        return [f"{a!r} is not {b!r}" for a, b in zip(got, wanted, strict=False) if a != b] + (
            [f"{done.returncode} {done.stderr} {len(got)} of {len(wanted)} lines"]
            if done.returncode or len(got) != len(wanted)
            else []
        )
