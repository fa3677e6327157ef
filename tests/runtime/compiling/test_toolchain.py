"""The C++ compiler: found, called without a shell, and its errors understood. Costs a few seconds."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.errors import CompileError
from dynagrad.runtime import library
from dynagrad.runtime.compiling import compilation, toolchain

SYSTEM = """
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT extern "C" __attribute__((visibility("default")))

static void* seven(void* to) { *static_cast<int*>(to) = 7; return nullptr; }

EXPORT double numbers(double x) { return exp(x) + log(x) + tanh(x) + log1p(x) + pow(x, 1.5); }

EXPORT int threads() {
    pthread_t thread;
    int answer = 0;
    pthread_create(&thread, nullptr, seven, &answer);
    pthread_join(thread, nullptr);
    return answer;
}

EXPORT int64_t memory(int64_t n) {
    char* bytes = static_cast<char*>(malloc(n));
    memset(bytes, 3, n);
    int64_t sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += bytes[i];
    free(bytes);
    return sum;
}

EXPORT int reads_the_clock() {
    timespec now;
    return clock_gettime(CLOCK_MONOTONIC, &now);
}

EXPORT double apart(double a, double b, double c) { return a * b + c; }
"""

WIDE = """
#include <stdint.h>
#define EXPORT extern "C" __attribute__((visibility("default")))
typedef unsigned __int128 u128;
typedef __int128 i128;
static u128 read(const uint64_t* a) { return static_cast<u128>(a[1]) << 64 | a[0]; }
static void write(uint64_t* a, u128 v) { a[0] = static_cast<uint64_t>(v); a[1] = static_cast<uint64_t>(v >> 64); }
static i128 sread(const uint64_t* a) { return static_cast<i128>(read(a)); }

EXPORT int product(const uint64_t* a, const uint64_t* b, uint64_t* to) {
    u128 result;
    const bool over = __builtin_mul_overflow(read(a), read(b), &result);
    write(to, result);
    return over;
}
EXPORT int signed_product(const uint64_t* a, const uint64_t* b, uint64_t* to) {
    i128 result;
    const bool over = __builtin_mul_overflow(sread(a), sread(b), &result);
    write(to, static_cast<u128>(result));
    return over;
}
EXPORT void divide(const uint64_t* a, const uint64_t* b, uint64_t* quotient, uint64_t* rest) {
    write(quotient, read(a) / read(b));
    write(rest, read(a) % read(b));
}
EXPORT void signed_divide(const uint64_t* a, const uint64_t* b, uint64_t* quotient, uint64_t* rest) {
    write(quotient, static_cast<u128>(sread(a) / sread(b)));
    write(rest, static_cast<u128>(sread(a) % sread(b)));
}
EXPORT double to_double(const uint64_t* a) { return static_cast<double>(read(a)); }
EXPORT double signed_to_double(const uint64_t* a) { return static_cast<double>(sread(a)); }
EXPORT void from_double(double x, uint64_t* to) { write(to, static_cast<u128>(x)); }
EXPORT void signed_from_double(double x, uint64_t* to) { write(to, static_cast<u128>(static_cast<i128>(x))); }
"""

ZIG = Path(os.environ["DYNAGRAD_CACHE"]) / "zig"  # filled by whichever test comes first

INTERESTING = [0, 1, 2, 3, 10, 2**53 - 1, 2**53 + 1, 2**63, 2**64 - 1, 2**64, 2**64 + 1, 2**100 + 1, 2**117 - 1]
INTERESTING += [2**127 - 1, 2**127, 2**127 + 2**74, 2**127 + 2**74 + 1, 2**128 - 2**74, 2**128 - 1]
SIGNED = [*(v for v in INTERESTING if v < 2**127), *(-v for v in INTERESTING if v <= 2**127)]


def words(value: int) -> ctypes.Array[ctypes.c_uint64]:
    return (ctypes.c_uint64 * 2)(value & (2**64 - 1), value >> 64 & (2**64 - 1))


def number(array: ctypes.Array[ctypes.c_uint64], signed: bool = False) -> int:
    value = array[1] << 64 | array[0]
    return value - 2**128 if signed and value >= 2**127 else value


def compile_source(source: str, output: Path, keep: Path | None = None, zig: Path = ZIG) -> None:
    tool = toolchain.compiler()
    given = compilation.inputs(source, output)
    compilation.compile_by_compiler(given, tool, toolchain.flags(tool), zig_cache=zig, keep=keep)


def compiled(source: str, folder: Path) -> library.Library:
    output = folder / ("library" + toolchain.SUFFIX)
    compile_source(source, output)
    return library.Library(output)


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    return compiled(WIDE, tmp_path_factory.mktemp("wide"))


@pytest.fixture(scope="module")
def system(tmp_path_factory):
    return compiled(SYSTEM, tmp_path_factory.mktemp("system"))


class TestWhatIsLinked:
    def test_the_system_is_there_and_the_processor_runs_the_code(self, system):
        assert system.function("numbers", ctypes.c_double, ctypes.c_double)(1.0) == pytest.approx(5.17302, abs=1e-5)
        assert system.function("threads", ctypes.c_int)() == 7
        assert system.function("memory", ctypes.c_int64, ctypes.c_int64)(100_000) == 300_000
        assert system.function("reads_the_clock", ctypes.c_int)() == 0

    def test_multiply_and_add_are_rounded_each(self, system):
        d = ctypes.c_double
        a, b = 1.0 + 2.0**-30, 1.0 - 2.0**-30
        assert system.function("apart", d, d, d, d)(a, b, -1.0) == a * b - 1.0 == 0.0

    def test_no_library_but_the_system_s(self, system, wide):
        if sys.platform != "linux" or shutil.which("objdump") is None:
            pytest.skip("needs objdump")
        for made in (system, wide):
            call = ["objdump", "-p", str(made.path)]
            shown = subprocess.run(call, capture_output=True, text=True, check=True).stdout
            needed = {line.split()[1].split(".")[0] for line in shown.splitlines() if "NEEDED" in line}
            assert needed <= {"libc", "libm", "libpthread", "ld-linux-x86-64", "ld-linux-aarch64"}


class TestWideIntegers:
    def test_products(self, wide):
        for name, values, signed in (("product", INTERESTING, False), ("signed_product", SIGNED, True)):
            multiply = wide.function(name, ctypes.c_int, *[ctypes.c_void_p] * 3)
            low, high = (-(2**127), 2**127) if signed else (0, 2**128)
            for a in values:
                for b in values:
                    over = multiply(words(a), words(b), to := words(0))
                    assert bool(over) == (not low <= a * b < high)
                    assert (number(to, signed) - a * b) % 2**128 == 0

    def test_quotients_and_rests(self, wide):
        for name, values, signed in (("divide", INTERESTING, False), ("signed_divide", SIGNED, True)):
            divide = wide.function(name, None, *[ctypes.c_void_p] * 4)
            for a in values:
                for b in values:
                    if b == 0 or (a, b) == (-(2**127), -1):
                        continue
                    divide(words(a), words(b), quotient := words(0), rest := words(0))
                    size = abs(a) // abs(b)
                    expected = -size if (a < 0) != (b < 0) else size
                    assert (number(quotient, signed), number(rest, signed)) == (expected, a - expected * b)

    def test_to_doubles_rounded_as_python_does(self, wide):
        for name, values in (("to_double", INTERESTING), ("signed_to_double", SIGNED)):
            convert = wide.function(name, ctypes.c_double, ctypes.c_void_p)
            for value in values:
                assert convert(words(value)) == float(value)

    def test_from_doubles(self, wide):
        values = [0.0, 0.9, 1.0, 1.5, 2.0**53, 2.0**63, 2.0**64, 2.0**64 + 2.0**20, 1.1e30, 2.0**126]
        for name, signed in (("from_double", False), ("signed_from_double", True)):
            convert = wide.function(name, None, ctypes.c_double, ctypes.c_void_p)
            for value in [*values, *(-v for v in values if signed)]:
                convert(value, to := words(0))
                assert number(to, signed) == int(value)


class TestComplaints:
    def test_an_error_names_line_source_and_command(self, tmp_path):
        kept = tmp_path / "kept" / "bad.cpp"
        with pytest.raises(CompileError) as caught:
            compile_source("int f() {\n  return nothing;\n}\n", tmp_path / "x.so", kept)
        assert "bad.cpp:2:10: error:" in str(caught.value)
        assert f"the source is {kept}" in str(caught.value)
        assert kept.read_text().startswith("int f()")
        assert not (tmp_path / "x.so").exists()

    def test_a_long_complaint_is_cut(self, tmp_path):
        with pytest.raises(CompileError) as caught:
            compile_source("\n".join(f"int f{i} = a{i};" for i in range(500)), tmp_path / "x.so")
        assert len(str(caught.value).splitlines()) < 32
        assert "a0" in str(caught.value)

    def test_a_missing_compiler_is_named(self, monkeypatch):
        monkeypatch.setenv("DYNAGRAD_CXX", "no-such-compiler --fast")
        with pytest.raises(CompileError, match="'no-such-compiler', is not there"):
            toolchain.compiler()

    def test_it_is_said_before_the_first_run(self, monkeypatch):
        """Where a program or a compiled function is made, with the command to type."""
        monkeypatch.setenv("DYNAGRAD_CXX", "no-such-compiler")
        expected = r"(?s)cannot be run: .*'no-such-compiler', is not there.*pip install ziglang"
        with pytest.warns(dg.ProgramWarning, match=expected) as caught:
            dg.compile(lambda x: x + 1.0)
        with pytest.warns(dg.ProgramWarning, match=expected):
            program = dg.Program("goal += a(_).")
        assert caught[0].filename == __file__
        with pytest.raises(CompileError, match="pip install ziglang"):
            program.run({"a/1": [("x", 2.0)]})

    def test_it_is_said_no_longer_once_there_is_one(self, monkeypatch, tmp_path):
        monkeypatch.setenv("DYNAGRAD_CXX", str(tmp_path / "c++"))
        with pytest.warns(dg.ProgramWarning, match="is not there"):
            dg.Program("goal += a(_).")
        (tmp_path / "c++").write_text("#!/bin/sh\necho 'clang version 19'\n")
        (tmp_path / "c++").chmod(0o755)
        dg.Program("goal += a(_).")  # a warning would be an error

    def test_one_that_hangs_is_waited_for_once_and_ended(self, monkeypatch, tmp_path):
        script = tmp_path / "c++"
        script.write_text(f"#!/bin/sh\nsleep 1000 & echo $! >> {tmp_path}/sleeping; wait\n")
        script.chmod(0o755)
        monkeypatch.setenv("DYNAGRAD_CXX", str(script))
        monkeypatch.setattr(toolchain, "_PATIENCE", 1.0)
        for _ in range(3):
            with pytest.raises(CompileError, match="does not answer"):
                toolchain.compiler()
        (sleeping,) = map(int, (tmp_path / "sleeping").read_text().split())  # one: it was asked once
        began = time.monotonic()
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            while " Z " not in Path(f"/proc/{sleeping}/stat").read_text():  # which is dead, and not waited for
                os.kill(sleeping, 0)
                assert time.monotonic() - began < 10
                time.sleep(0.01)

    def test_a_bad_level_is_refused(self):
        with pytest.raises(ValueError, match="optimise is 0, 1, 2 or 3"):
            toolchain.flags(toolchain.compiler(), optimise=9)


class TestOrder:
    """What is taken where DYNAGRAD_CXX names nothing: the package ziglang, then a compiler of the system."""

    @pytest.fixture(autouse=True)
    def _without_ziglang(self, monkeypatch):
        monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: None)

    def found(self, path: object) -> toolchain.Compiler:
        return toolchain._compiler.__wrapped__("", str(path))

    def fake(self, folder: Path, name: str, says: str, version: str) -> None:
        script = folder / name
        script.write_text(f'#!/bin/sh\ncase "$1" in --version) echo "{says}";; -dumpversion) echo "{version}";; esac\n')
        script.chmod(0o755)

    def test_where_there_is_none_it_says_what_to_install(self, tmp_path):
        with pytest.raises(CompileError, match="pip install ziglang"):
            self.found(tmp_path)

    @pytest.mark.parametrize(
        ("says", "version", "taken"),
        [
            ("g++ (Debian) 12.2.0", "12", True),
            ("g++ (Debian) 10.2.1", "10", False),
            ("Debian clang version 15.0.7", "15.0.7", True),
            ("Debian clang version 14.0.6", "14.0.6", False),
            ("what?", "", False),
        ],
    )
    def test_one_of_the_system_has_to_be_new_enough(self, tmp_path, says, version, taken):
        self.fake(tmp_path, "c++", says, version)
        if taken:
            assert self.found(tmp_path).command == (str(tmp_path / "c++"),)
        else:
            with pytest.raises(CompileError, match="there is no C\\+\\+ compiler"):
                self.found(tmp_path)

    def test_an_old_one_stands_in_nobodys_way(self, tmp_path):
        self.fake(tmp_path, "c++", "g++ (Debian) 8.3.0", "8")
        self.fake(tmp_path, "clang++", "clang version 19.1.0", "19.1.0")
        assert self.found(tmp_path).command == (str(tmp_path / "clang++"),)

    @pytest.mark.skipif(shutil.which("c++") is None, reason="there is no compiler of the system")
    def test_it_compiles(self, tmp_path):
        tool, given = self.found(os.environ["PATH"]), compilation.inputs(SYSTEM, tmp_path / "made.so")
        compilation.compile_by_compiler(given, tool, toolchain.flags(tool))
        assert library.Library(tmp_path / "made.so").function("threads", ctypes.c_int)() == 7


def as_of_the_system(script: Path) -> str:
    """A compiler that is zig's clang, called as if it were one of the system, with the headers of the system."""
    zig = toolchain._ziglang()
    if zig is None or shutil.which("g++") is None or sys.platform != "linux":
        pytest.skip("the package ziglang is not installed, or there are no headers of the system")
    resources, target = Path(zig.command[0]).parent / "lib", f"{platform.machine()}-linux-gnu"
    script.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && exec echo clang version 20\n'
        f'exec {zig.command[0]} clang --driver-mode=g++ -target {target} -resource-dir {resources} "$@"\n'
    )
    script.chmod(0o755)
    return str(script)


class TestAnotherCompiler:
    def test_words_are_split_and_no_shell_is_run(self, tmp_path, monkeypatch):
        script = tmp_path / "my compiler"
        script.write_text(
            f'#!{sys.executable}\nimport sys, pathlib\npathlib.Path("{tmp_path}/saw").write_text(sys.argv[1])\n'
        )
        script.chmod(0o755)
        monkeypatch.setenv("DYNAGRAD_CXX", f"'{script}' '$(touch {tmp_path}/run);'")
        assert not toolchain.compiler().zig
        assert (tmp_path / "saw").read_text() == f"$(touch {tmp_path}/run);"
        assert not (tmp_path / "run").exists()

    @pytest.mark.parametrize("name", ["g++", "clang++"])
    def test_the_usual_ones_do(self, name, tmp_path, monkeypatch):
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed")
        monkeypatch.setenv("DYNAGRAD_CXX", name)
        assert not toolchain.compiler().zig
        assert compiled(SYSTEM, tmp_path).function("threads", ctypes.c_int)() == 7

    @pytest.mark.parametrize("name", ["g++", "clang++", "zig's clang"])
    def test_compiled_functions_and_programs_run(self, name, tmp_path, monkeypatch):
        if name == "zig's clang":
            name = as_of_the_system(tmp_path / "clang++")
        elif shutil.which(name) is None:
            pytest.skip(f"{name} is not installed")
        monkeypatch.setenv("DYNAGRAD_CXX", name)
        monkeypatch.setenv("DYNAGRAD_CACHE", str(tmp_path / "cache"))
        compiled_gradient = dg.compile(dg.grad(lambda x: np.sum(np.sin(x) * x)))
        x = np.array([1.0, 2.0])
        assert compiled_gradient(x) == pytest.approx(np.cos(x) * x + np.sin(x))
        chart = dg.Program("goal += w(X) * w(X).", "log").run({"w/1": [("a", -1.0), ("b", -2.0)]})
        assert chart["goal"] == pytest.approx(np.logaddexp(-2.0, -4.0))
        assert chart.gradient("goal")["w/1"].values.sum() == pytest.approx(2.0)

    @pytest.mark.parametrize("name", ["g++", "clang++"])
    def test_programs_with_cycles_changes_and_derivations_run(self, name, tmp_path, monkeypatch):
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed")
        monkeypatch.setenv("DYNAGRAD_CXX", name)
        monkeypatch.setenv("DYNAGRAD_CACHE", str(tmp_path / "cache"))
        monkeypatch.setenv("DYNAGRAD_OPTIMISE", "0")
        start = {"start/1": [("a", 1.0)]}
        sums = dg.Program("d(X) += start(X). d(Y) += d(X) * e(X,Y).", "real")
        chart = sums.run({**start, "e/2": [("a", "b", 0.5), ("b", "a", 0.25)]})
        assert chart["d(a)"] == pytest.approx(1 / (1 - 0.5 * 0.25))
        assert chart.gradient("d(a)")["start/1"].values == pytest.approx([1 / (1 - 0.5 * 0.25)])
        chart.set("e/2", [("b", "a", 0.5)])
        chart.run()
        assert chart["d(a)"] == pytest.approx(1 / (1 - 0.5 * 0.5))
        costs = dg.Program("d(X) min= start(X). d(Y) min= d(X) + e(X,Y).")
        chart = costs.run({**start, "e/2": [("a", "b", 5.0), ("b", "a", 0.25)]})
        chart.add("e/2", [("a", "c", 1.0), ("c", "b", 1.5)])
        chart.run()
        assert chart["d(b)"] == 3.5
        assert len(chart.best("d(b)").facts()) == 3

    def test_a_set_but_empty_variable_names_none(self, monkeypatch):
        monkeypatch.setenv("DYNAGRAD_CXX", " ")
        assert toolchain.compiler().zig


def test_no_home_is_needed(tmp_path, monkeypatch):
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    compile_source("int x;", tmp_path / "x.so", zig=tmp_path / "zig")
    assert (tmp_path / "x.so").exists()
    assert os.path.isdir(tmp_path / "zig")
