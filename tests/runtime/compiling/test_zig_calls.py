"""How zig calls clang is learned once, and zig is not called after that; its results are the same (five seconds)."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import pytest

from dynagrad.errors import CompileError
from dynagrad.runtime import library
from dynagrad.runtime.compiling import cache, child, fingerprint, linking, toolchain, zig_calls
from dynagrad.runtime.disk import sealed

SOURCE = '#include <math.h>\nextern "C" __attribute__((visibility("default"))) double f(double x) { return exp(x); }'

pytestmark = pytest.mark.skipif(os.name != "posix" or not toolchain.compiler().zig, reason="needs zig")


def answer(path: Path) -> float:
    import ctypes

    found: float = library.Library(path).function("f", ctypes.c_double, ctypes.c_double)(0.0)
    return found


@pytest.fixture
def called(tmp_path, monkeypatch):
    """The programs that are started, and a cache folder of the test's own."""
    monkeypatch.setenv("DYNAGRAD_CACHE", str(tmp_path / "cache"))
    programs: list[str] = []
    run = child.run

    def recorded(command, environment, place, *, then=None, **options):
        programs.append(command[1])
        programs.extend([] if then is None else [then[1]])
        return run(command, environment, place, then=then, **options)

    monkeypatch.setattr(child, "run", recorded)
    return programs


def test_zig_is_called_once_and_the_library_is_the_same(called, tmp_path, monkeypatch):
    first = cache.build(SOURCE)
    assert called == ["c++", "ld.lld"]
    data = first.read_bytes()
    first.unlink()
    again = cache.build(SOURCE)
    assert called == ["c++", "ld.lld", "clang", "ld.lld"]
    assert (again, again.read_bytes(), answer(again)) == (first, data, 1.0)
    cache.build(SOURCE, optimise=1)
    assert called[4:] == ["c++", "ld.lld"], "other options, other calls"


def test_where_a_call_fails_zig_is_called_and_learned_from(called, tmp_path):
    cache.build(SOURCE)
    (place,) = (tmp_path / "cache").glob("*.calls")
    right = zig_calls.load(place)
    assert right is not None
    zig_calls.save(place, zig_calls.Calls((*right.clang, "--no-such-option")))
    called.clear()
    assert answer(cache.build(SOURCE + "  // again")) == 1.0
    assert called == ["clang", "ld.lld", "c++"]
    assert answer(cache.build(SOURCE + "  // once more")) == 1.0
    assert called[3:] == ["clang", "ld.lld"]


@pytest.mark.parametrize("broken", ["an option", "no library", "a library without what is used"])
def test_where_linking_fails_zig_links(called, monkeypatch, broken):
    zig = list(toolchain.compiler().command)
    words = {"an option": [*linking.linker(zig), "--no-such-option"], "no library": []}
    without = [word for word in linking.linker(zig) if "libm.so" not in word]
    monkeypatch.setattr(linking, "linker", lambda front: tuple(words.get(broken, without)))
    assert answer(cache.build(SOURCE + f"  // {broken}")) == 1.0
    assert called[-1] == "c++"


def test_a_library_needs_the_c_library_of_this_process(called):
    needed = cache.build(SOURCE).read_bytes()
    assert b"libm.so.6" in needed and b"GLIBC_2" in needed
    assert [name for name in linking._loaded() if "libm.so" in name]


def test_an_error_is_told_without_what_zig_called(called):
    cache.build(SOURCE)
    for text in ("int f() { return nothing; }", "this is no C++"):
        with pytest.raises(CompileError) as raised:
            cache.build(text)
        said = str(raised.value)
        assert "error:" in said and "target-cpu" not in said and "-target-feature" not in said
    with pytest.raises(CompileError) as raised:
        cache.build("int f() { return nothing; }", optimise=2)  # the first with these options
    assert "error:" in str(raised.value) and "target-cpu" not in str(raised.value)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs files of another user")
def test_calls_of_another_user_under_a_right_seal(called, tmp_path):
    cache.build(SOURCE)
    (place,) = (tmp_path / "cache").glob("*.calls")
    planted = json.dumps(["/bin/sh", "-c", f"touch {tmp_path}/planted"]).encode()
    sealed.save(place, planted)
    os.chown(place, 4242, 4242)
    assert answer(cache.build(SOURCE + "  // again")) == 1.0
    assert not (tmp_path / "planted").exists() and called[-2:] == ["c++", "ld.lld"]
    sealed.save(place, planted)
    cache.build(SOURCE + "  // more")
    assert (tmp_path / "planted").exists(), "what is planted would be called, were it ours"


def test_calls_belong_to_a_compiler_and_its_options():
    tool = toolchain.compiler()
    elsewhere = dataclasses.replace(tool, command=("/other/zig", "c++"))
    names = {fingerprint.name_of_calls(*of) for of in [(tool, ("-O3",)), (tool, ("-O1",)), (elsewhere, ("-O3",))]}
    assert len(names) == 3


@pytest.mark.parametrize(
    "said",
    [
        "",
        "a.cpp:1:1: warning: hm",
        "/with a space/zig clang a.cpp -Iheaders -c -o zig-local/a.o",
        "/zig/zig clang a.cpp -I/with a space -c -o zig-local/a.o",
        "/other/zig clang a.cpp -Iheaders -c -o zig-local/a.o",  # something that calls zig
    ],
)
def test_what_is_not_understood_is_not_learned(said):
    assert zig_calls.learned(said, "/zig/zig", "a.cpp", "-Iheaders") is None


def test_names_of_files_are_left_open():
    said = "/zig/zig clang a.cpp -MD -MV -MF zig-local/tmp/1-a.o.d -O2 -I/x -include-pch p.pch -c -o zig-local/1-a.o\n"
    calls = zig_calls.learned(said, "/zig/zig", "a.cpp", "-I/x")
    assert calls is not None
    compiles = calls.compiles("-I/y", "b.cpp", "b.o", "q.pch")
    assert " ".join(compiles) == "/zig/zig clang b.cpp -O2 -I/y -include-pch q.pch -c -o b.o"
