"""What native code and Python share is said once, in `shared.h`: layouts, numbers and functions are those of compilers.

Costs a few seconds of the compiler.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import dynagrad as dg
from dynagrad.charts.chart import run_of
from dynagrad.errors import CompileError, Error
from dynagrad.rules.semirings import SEMIRINGS
from dynagrad.runtime import shared
from dynagrad.runtime.compiling import cache, toolchain
from dynagrad.runtime.engine import Settings
from dynagrad.runtime.library import Library, load
from dynagrad.runtime.shared import SHARED, Header

HOUSE = shared.HEADER.parents[3]
SOURCES = {path: path.read_text() for path in HOUSE.rglob("*.py") if path.name != "shared.py"}
STRUCTURES, ENUMS, CONSTANTS = (SHARED.names(kind) for kind in ("struct", "enum", "constant"))
EXPORT = 'extern "C" __attribute__((visibility("default")))'


@pytest.fixture(scope="module")
def measured() -> Library:
    """What the compiler says of all structures and numbers."""
    lines = ["#include <dynagrad/shared.h>", "#include <stddef.h>", "using namespace dynagrad;"]
    for name in STRUCTURES:
        places = [f"offsetof({name}, {m}), sizeof((({name}*)nullptr)->{m})" for m in SHARED.members(name)]
        lines.append(f"{EXPORT} const int64_t layout_{name}[] = {{{', '.join(map(str, places))}, sizeof({name})}};")
    for name in ENUMS:
        values = ", ".join(f"(int64_t){member}" for member in members(name))
        lines.append(f"{EXPORT} const int64_t enum_{name}[] = {{{values}}};")
    lines += [f"{EXPORT} const int64_t constant_{name} = (int64_t){name};" for name in CONSTANTS]
    return load(cache.build("\n".join(lines), optimise=0))


def members(enum: str) -> list[str]:
    """The names of an enum's numbers, as C has them."""
    body = re.search(rf"enum {enum} {{(.*?)}}", re.sub("//.*", "", shared.HEADER.read_text()), re.DOTALL)
    assert body is not None
    return re.findall(r"(\w+)(?: = -?\d+)?,?", body[1])


def exported(library: Library, name: str, count: int) -> list[int]:
    return list((ctypes.c_int64 * count).in_dll(library._functions, name))


@pytest.mark.parametrize("name", STRUCTURES)
def test_structures_lie_in_memory_as_the_compiler_lays_them(measured: Library, name: str) -> None:
    made = SHARED.structure(name)
    fields = [getattr(made, field) for field, _ in made._fields_]
    found = [number for field in fields for number in (field.offset, field.size)]
    assert [*found, ctypes.sizeof(made)] == exported(measured, f"layout_{name}", 2 * len(fields) + 1)


@pytest.mark.parametrize("name", ENUMS)
def test_numbers_are_those_of_the_compiler(measured: Library, name: str) -> None:
    numbers = list(SHARED.numbers(name).values())
    assert numbers == exported(measured, f"enum_{name}", len(numbers))
    assert len(numbers) == len(members(name))


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_are_those_of_the_compiler(measured: Library, name: str) -> None:
    assert [SHARED.constant(name)] == exported(measured, f"constant_{name}", 1)


def test_limits_begin_as_in_native_code() -> None:
    text = f"""#include <dynagrad/shared.h>
{EXPORT} void defaults(dynagrad::Settings* settings, dynagrad::Report* report) {{
  *settings = {{}}, *report = {{}};
}}"""
    settings, report = SHARED.structure("Settings")(), SHARED.structure("Report")()
    load(cache.build(text, optimise=0)).function("defaults", None, ctypes.c_void_p, ctypes.c_void_p)(
        ctypes.addressof(settings), ctypes.addressof(report)
    )
    for made, name in ((settings, "Settings"), (report, "Report")):
        assert {field: getattr(made, field) for field, _ in made._fields_} == SHARED.defaults(name)


def test_limits_that_are_not_there_are_an_error() -> None:
    assert (Settings(max_pops=3).max_pops, Settings(max_pops=3).max_items) == (3, -1)
    for made in (Settings, SHARED.structure("Examples")):
        with pytest.raises(AttributeError, match="max_pop"):
            made(max_pop=3)


# -- functions --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def libraries() -> list[Library]:
    """Libraries that define all functions among them: of a program with its backward pass, forests, graphs, calls."""
    program = dg.Program("a += b(X) * c(X).")
    chart = program.run({"b/1": [("x", 2.0)], "c/1": [("x", 3.0)]})
    chart.gradient("a")
    engine = run_of(chart).require().compiled.engine
    headers = ("forest/forest", "calls/walk", "calls/python", "graphs/parallel", "graphs/linalg/blas", "graphs/call")
    found = [Library(engine.path)]
    for header in headers:
        text = f"#define DYNAGRAD_FAILURES\n#include <dynagrad/{header}.hpp>\n"
        found.append(load(cache.build(text, optimise=0)))
    return found


def functions_of(library: Library) -> set[str]:
    """The functions that a library exports, by the names in its table of symbols."""
    names = re.findall(rb"\0_?(dg_\w+)(?=\0)", library.path.read_bytes())
    return {name.decode() for name in names if name.decode() not in COUNTERS}


COUNTERS = {"dg_fail_allocation", "dg_live_allocations"}
"""Numbers that tests set and read."""


def test_what_is_declared_is_defined_and_nothing_else(libraries: list[Library]) -> None:
    declared = set(SHARED.names("function"))
    defined = set().union(*map(functions_of, libraries))
    assert defined == declared
    assert all(any(hasattr(one._functions, name) for one in libraries) for name in declared)


def test_what_is_declared_is_called_and_nothing_else() -> None:
    """By its name, or by the one that it has as an attribute of an engine or a walk."""
    text = "\n".join(SOURCES.values())
    declared = SHARED.names("function")
    for name in declared:
        short = name.removeprefix("dg_walk_").removeprefix("dg_")
        assert re.search(rf'"{name}"|engine\.{short}\b|self\.{short}\b|"{short}"', text), name
    assert set(re.findall(r'"(dg_\w*[a-z])"', text)) - set(declared) == set()


def test_no_layout_number_or_signature_is_said_twice() -> None:
    structures = {str(path): re.findall(r"(\w+)\(ctypes\.Structure\)", text) for path, text in SOURCES.items()}
    assert {name for names in structures.values() for name in names} == {"_Method", "Settings", "Report"}
    for path, text in SOURCES.items():
        assert not re.search(r"function\(f?\"dg_", text), path
        said = set(re.findall(r"`(\w+)` (?:of|in) \w+\.hpp", text)) - {"CellExport", "parts_of"}  # algorithms
        assert not said and not re.search(r"in the order of \S+\.hpp", text), path
    for header in HOUSE.rglob("*.hpp"):
        assert not re.search(r"ctypes|layout is that|in the order of \w+\.py", header.read_text()), header


WRONG = {
    "a parameter": "int64_t dg_facts_rows(const FactTable*, int64_t) { return 0; }",
    "its type": "int64_t dg_facts_rows(const World*) { return 0; }",
    "the result": "int32_t dg_facts_rows(const FactTable*) { return 0; }",
}


@pytest.mark.parametrize("definition", WRONG.values(), ids=WRONG)
def test_another_definition_is_an_error_of_the_compiler(definition: str) -> None:
    with pytest.raises(CompileError, match="dg_facts_rows"):
        cache.build(f"#include <dynagrad/shared.h>\nnamespace dynagrad {{\n{EXPORT} {definition}\n}}\n", optimise=0)


def test_it_is_plain_c(tmp_path: Path) -> None:
    source = tmp_path / "plain.c"
    source.write_text("#include <dynagrad/shared.h>\nint main(void) { return (int)sizeof(Settings) + kDone; }\n")
    tool = toolchain.compiler()
    strict = ("-std=c11", "-Wall", "-Wextra", "-pedantic", "-Werror", "-Wno-unused-const-variable", "-c")
    command = [*(part.replace("++", "c") if tool.zig else part for part in tool.command), "-x", "c", *strict]
    done = subprocess.run(
        [*command, f"-I{toolchain.INCLUDE}", source, "-o", tmp_path / "plain.o"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


# -- reading ----------------------------------------------------------------------------------------------------------

UNREAD = {
    "a union": "union Pair { int32_t a; };",
    "a definition": "static inline int32_t one(void) { return 1; }",
    "a macro": "#define FIVE 5",
    "no end": "enum Ending { kPlain = 0 }",
    "a variable": "int32_t count;",
}
"""What is not read at all, on the third line."""


@pytest.mark.parametrize("text", UNREAD.values(), ids=UNREAD)
def test_what_is_not_read_is_an_error_with_its_line(text: str) -> None:
    with pytest.raises(Error, match=r"shared\.h, line 3: this cannot be read: "):
        Header(f"// a header\nenum Ending {{ kEnd }};\n{text}\n")


INSIDE: dict[str, tuple[str, Any]] = {
    "a type of a field": ("struct S {\n  unsigned a;\n};", lambda h: h.fields("S")),
    "a bit field": ("struct S {\n  int32_t a : 3;\n};", lambda h: h.fields("S")),
    "a structure that is not there": ("struct S {\n  Host* a;\n};", lambda h: h.fields("S")),
    "a number of an enum": ("enum E {\n  kA = 1 << 3\n};", lambda h: h.numbers("E")),
    "a parameter without a name": ("void f(\n  int64_t);", lambda h: h.signature("f")),
    "a type of a parameter": ("void f(\n  float x);", lambda h: h.signature("f")),
}


@pytest.mark.parametrize(("text", "read"), INSIDE.values(), ids=INSIDE)
def test_what_is_not_read_inside_is_an_error_with_its_line(text: str, read: Any) -> None:
    header = Header(f"// a header\n{text}\n")
    with pytest.raises(Error, match=r"shared\.h, line 3: this cannot be read: "):
        read(header)


def test_what_is_read() -> None:
    header = Header("""
typedef struct World World;
struct Inner { int32_t x, y; };
struct Outer {
  const double* const* rows;  // of each
  char* text;
  struct_t (*call)(World* world, int64_t n);
  int64_t part DYNAGRAD_IS(-1), *place;
  double tolerance DYNAGRAD_IS(1e-12);
  Inner inner;
  uint8_t bytes[2][3];
};
#ifdef __cplusplus
namespace anything {
#endif
enum Failure { none, kOutOfRange = 4, kHTTPError };
typedef int32_t (*Callback)(const int32_t* codes, void* with);
World* dg_make(const World* base, enum Failure why, Callback call);
const char* dg_said(void);
const double* dg_numbers(void);
enum Failure dg_work(int32_t* out);
""")
    fields = dict(header.fields("Outer"))
    assert list(fields) == ["rows", "text", "call", "part", "place", "tolerance", "inner", "bytes"]
    assert (fields["part"], fields["place"], fields["tolerance"]) == (ctypes.c_int64, ctypes.c_void_p, ctypes.c_double)
    assert fields["inner"] is header.structure("Inner") and ctypes.sizeof(fields["bytes"]) == 6
    assert header.defaults("Outer") == {"part": -1, "tolerance": 1e-12}
    assert header.members("Outer")["call"].parameters == 2
    assert header.members("Outer")["text"].target is ctypes.c_char
    assert header.numbers("Failure") == {"NONE": 0, "OUT_OF_RANGE": 4, "HTTPERROR": 5}
    result, codes, given = header.callback("Callback")
    assert (result, codes._type_, given) == (ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p)
    made = header.signature("dg_make")
    assert made.makes and made.result is ctypes.c_void_p
    assert made.parameters == (ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
    assert header.signature("dg_said").result is ctypes.c_char_p and not header.signature("dg_said").makes
    assert header.signature("dg_numbers").result._type_ is ctypes.c_double
    assert header.signature("dg_work").fails and not header.signature("dg_make").fails


# -- what headers say of themselves -----------------------------------------------------------------------------------


def test_semirings_have_numbers_of_as_many_words() -> None:
    types = {name: row for name, row in SEMIRINGS.items() if name != "user" and not row.source}
    lines = ["#include <dynagrad/semirings.hpp>", "using namespace dynagrad;"]
    for row in types.values():  # an `expectation` has the more words the longer its r is
        lines.append(f"static_assert({row.cxx.format(vector=1)}::words == {row.words});")
    assert len(types) > 6
    cache.build("\n".join(lines), optimise=0)


def test_cells_and_threads_stand_in_one_library() -> None:
    cache.build("#include <dynagrad/graphs/heap.hpp>\n#include <dynagrad/graphs/parallel.hpp>\n", optimise=0)
