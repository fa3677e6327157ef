"""The cache of compiled programs: fast, shared, private, and intact whatever happens to its writers (12 s)."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import dynagrad
from dynagrad.errors import CompileError
from dynagrad.rules import cache as rules_cache
from dynagrad.rules import check, parse
from dynagrad.runtime import library
from dynagrad.runtime.compiling import cache, compilation, fingerprint, toolchain, zig_files
from dynagrad.runtime.compiling.objects import Object
from dynagrad.runtime.disk import folder as cache_folder
from dynagrad.runtime.disk import sealed
from dynagrad.runtime.disk.folder import Temporary
from dynagrad.runtime.disk.sources import sources
from forked import Forked
from shared_cache import link_shared

EXPORT = 'extern "C" __attribute__((visibility("default"))) '
SOURCE_ROOT = Path(dynagrad.__path__[0]).parent
ZIG = Path(os.environ["DYNAGRAD_CACHE"]) / "zig"  # its files, where a compiler of these tests calls it


def source(value: int, note: str = "") -> str:
    return f"{EXPORT}int answer() {{ return {value}; }}  // {note}\n"


def answer(path: Path) -> int:
    import ctypes

    return library.Library(path).function("answer", ctypes.c_int)()


AT_HAND = f"""
from dynagrad.runtime import library
from dynagrad.runtime.compiling import cache, compilation, toolchain
from dynagrad.runtime.compiling.cache import build
from dynagrad.runtime.compiling.objects import Object
source = lambda v, note='': {EXPORT!r} + f'int answer() {{{{ return {{v}}; }}}}  // {{note}}\\n'
"""
PYTHONPATH = os.pathsep.join([str(SOURCE_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])


def python(code: str, **environment: str) -> subprocess.Popen[str]:
    """Another Python that runs `code`, with `build` and `source` at hand.

    The package is imported where the code does so, and else the room `runtime` alone, in an eighth of the time.
    """
    alone = "import sys, types\nsys.modules['dynagrad'] = types.ModuleType('dynagrad')\nsys.modules['dynagrad']"
    start = "" if "dynagrad" in code else f"{alone}.__path__ = {[*dynagrad.__path__]!r}\n"
    return subprocess.Popen(
        [sys.executable, "-c", start + AT_HAND + code],
        env={**os.environ, "PYTHONPATH": PYTHONPATH, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.fixture
def fork(forked: Forked) -> Callable[..., tuple[str, str]]:
    """What code prints, and what it says on stderr, in another process that has the package, and what `python` has at
    hand; here libraries would stay loaded. It may be killed after some seconds."""

    def run(code: str, *, folder: Path | None = None, kill: float | None = None) -> tuple[str, str]:
        return forked.run(AT_HAND + code, {} if folder is None else {"DYNAGRAD_CACHE": str(folder)}, kill=kill)

    return run


def contents(folder: Path) -> set[str]:
    """What lies in a cache folder, apart from the locks, what is kept of zig, hashes, and plans."""
    others = (".zig", ".calls", ".contents", ".plan")
    return {path.name for path in folder.iterdir() if path.suffix not in others} - {"locks"}


def name_of(sources: Sequence[str], tool: toolchain.Compiler, options: Sequence[str]) -> str:
    return fingerprint.fingerprint(sources, tool, options, fingerprint.Headers.now())


def slow_compiler(folder: Path, seconds: float) -> str:
    """A compiler that writes half a library, says that it is running, sleeps, and then does the job."""
    zig = toolchain._ziglang().command
    script = folder / "slow.py"
    script.write_text(
        "import os, subprocess, sys, time, pathlib\n"
        f"zig = {list(zig)!r}\n"
        f"os.environ['ZIG_GLOBAL_CACHE_DIR'] = {str(ZIG)!r}\n"
        "if '--version' in sys.argv: sys.exit(subprocess.call(zig + ['--version']))\n"
        "output = pathlib.Path(sys.argv[sys.argv.index('-o') + 1])\n"
        "output.write_bytes(b'half')\n"
        f"with open({str(folder / 'running')!r}, 'a') as file: file.write(f'{{os.getpid()}} ')\n"
        f"time.sleep({seconds})\n"
        "sys.exit(subprocess.call(zig + ['-O2', '-nostdlib++', '-rtlib=none', '-shared', '-o', str(output),\n"
        "    next(a for a in sys.argv if a.endswith('.cpp'))]))\n"
    )
    return f"{sys.executable} {script}"


def wait_for(path: Path, seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not path.exists() or not path.read_text():
        assert time.monotonic() < until, f"{path} did not appear"
        time.sleep(0.01)


def is_alive(process: int) -> bool:
    """Whether a process runs: not whether it is dead, and nobody there to notice."""
    try:
        os.kill(process, 0)
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except ProcessLookupError:
        return False
    except FileNotFoundError:  # there is no such folder in this system, or it has just ended
        return not Path("/proc/self").exists()


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """A cache folder of the test's own, but with the files that zig keeps between calls."""
    shared = os.environ["DYNAGRAD_CACHE"]
    cache.build(source(0, "warm"))
    folder = tmp_path / "cache"
    folder.mkdir()
    for kept in Path(shared).glob("*.zig"):
        shutil.copy(kept, folder)
    monkeypatch.setenv("DYNAGRAD_CACHE", str(folder))
    return folder


class TestHits:
    def test_the_second_build_starts_no_process(self, monkeypatch):
        first = cache.build(source(1))
        monkeypatch.setattr(subprocess, "Popen", None)
        said: list[str] = []
        assert cache.build(source(1), progress=said.append) == first
        assert (answer(first), said) == (1, [])

    def test_a_hit_is_quick(self):
        text = source(2) + "// filler\n" * 10_000
        cache.build(text)
        times = []
        for _ in range(20):
            start = time.perf_counter()
            cache.build(text)
            times.append(time.perf_counter() - start)
        assert min(times) < 0.002

    def test_the_source_lies_beside_the_library(self):
        path = cache.build(source(3))
        assert path.with_suffix(".cpp").read_text() == source(3)

    def test_progress_is_told_before_a_compile(self, fresh):
        said: list[str] = []
        cache.build(source(4), progress=said.append)
        assert said == ["compiling 2 lines of C++"]

    def test_what_decides_the_result_decides_the_name(self, fresh, monkeypatch):
        tool = toolchain.compiler()
        names = {
            name_of(["a"], tool, ("-O3",)),
            name_of(["b"], tool, ("-O3",)),
            name_of(["a"], tool, ("-O1",)),
        }
        names.add(name_of(["a"], toolchain.Compiler(tool.command, True, "another"), ("-O3",)))
        monkeypatch.setattr(fingerprint, "_machine", lambda: "another")
        names.add(name_of(["a"], tool, ("-O3",)))
        monkeypatch.setattr(fingerprint, "_read_headers", lambda _: "another")
        names.add(name_of(["a"], tool, ("-O3",)))
        assert len(names) == 6

    def test_a_changed_header_is_noticed(self, tmp_path, monkeypatch):
        (tmp_path / "dynagrad").mkdir()
        header = tmp_path / "dynagrad" / "x.hpp"
        monkeypatch.setattr(toolchain, "INCLUDE", tmp_path)
        seen, tool = [], toolchain.compiler()
        for text in ("one", "two", "three"):
            header.write_text(text)
            seen.append(name_of("", tool, ()))
        assert len(set(seen)) == 3


PART = """#if defined(DYNAGRAD_LINKED) && !defined(PART)
extern "C" int seven();
#else
extern "C" __attribute__((visibility("hidden"))) int seven() { return 7; }
#endif
"""
PART_ITSELF = f"#define PART\n{PART}"
HEADER = "dynagrad/base/memory.hpp"


def with_part(note: str = "") -> str:
    """A source that calls what is in another object."""
    return f"{PART}{EXPORT}int answer() {{ return seven(); }}\n// {note}\n"


class TestParts:
    """What a library has in common with others: objects that it is linked with, a header that was read before."""

    def own(self) -> Object:
        return Object(PART_ITSELF, bare=True)

    def test_an_object_is_made_once(self, fresh):
        part = self.own()
        paths = [cache.build(with_part(note), objects=[part]) for note in ("a", "b")]
        assert [answer(path) for path in paths] == [7, 7]
        assert len(list(fresh.glob("*.o"))) == 1

    def test_a_compiler_that_cannot_link_so_has_it_all_in_the_source(self, fresh, monkeypatch):
        monkeypatch.setattr(toolchain, "links", lambda tool: False)
        assert answer(cache.build(with_part("alone"), objects=[self.own()])) == 7
        assert not list(fresh.glob("*.o"))

    @pytest.mark.parametrize("damage", [b"", b"no object"])
    def test_a_damaged_object_is_made_again(self, fresh, damage):
        part = self.own()
        cache.build(with_part("a"), objects=[part])
        next(fresh.glob("*.o")).write_bytes(damage)
        assert answer(cache.build(with_part("b"), objects=[part])) == 7

    def test_also_as_python_ends(self, fresh):
        """No thread can be started then."""
        work = "print(build(source(43), objects=[Object('int unused;', bare=True)]).exists())"
        out, err = python(f"import atexit; atexit.register(lambda: {work})").communicate()
        assert (out, err) == ("True\n", "")

    def test_an_object_that_does_not_compile_is_an_error(self, fresh):
        with pytest.raises(CompileError, match="nothing"):
            cache.build(with_part("a"), objects=[Object("int f() { return nothing; }")])
        assert not list(fresh.glob("*.so"))

    def with_header(self, value: int, note: str = "") -> str:
        return f"#include <{HEADER}>\n{source(value, note)}"

    def test_a_header_is_read_once(self, fresh):
        paths = [cache.build(self.with_header(n), prelude=HEADER) for n in (31, 32)]
        assert [answer(path) for path in paths] == [31, 32]
        assert [kept.stat().st_size > 10_000 for kept in fresh.glob("*.pch")] == [True]

    def test_one_that_the_compiler_does_not_take_is_left_out(self, fresh):
        cache.build(self.with_header(33), prelude=HEADER)
        kept = next(fresh.glob("*.pch"))
        kept.write_bytes(b"no header")
        kept.with_suffix(".seal").write_bytes(sealed.seal(kept.name, b"no header"))
        assert answer(cache.build(self.with_header(34), prelude=HEADER)) == 34
        assert kept.stat().st_size > 10_000  # it was made again

    def test_one_that_it_never_takes_is_not_made_again_and_again(self, fresh, monkeypatch):
        made = []

        def precompile(header, output, **_):
            made.append(header)
            return bool(output.write_bytes(b"no header"))

        monkeypatch.setattr(compilation, "precompile", precompile)
        assert [answer(cache.build(self.with_header(n), prelude=HEADER)) for n in (38, 39)] == [38, 39]
        assert made == [HEADER] * 2 and next(fresh.glob("*.pch")).stat().st_size == 0

    def test_one_of_another_compiler_or_of_one_that_was_installed_anew_is_another(self, tmp_path):
        headers, program = fingerprint.Headers.now(), tmp_path / "c++"
        program.touch()
        tools = [toolchain.Compiler((str(program), *more), True, "the same") for more in ([], ["c++"])]
        places = [headers.place(tool) for tool in tools]
        os.utime(program, (0, 0))
        assert len({*places, headers.place(tools[0])}) == 3

    @pytest.mark.parametrize(
        ("said", "error"),
        [
            ((1, "x: No space left on device"), OSError),
            ((0, ""), OSError),  # as clang says nothing of a full disk
            ((-9, ""), CompileError),
            ((1, "error: unable to spawn zig: SystemResources"), CompileError),
        ],
    )
    def test_one_that_could_not_be_made_this_time_is_made_next_time(self, fresh, monkeypatch, said, error):
        with monkeypatch.context() as patch, pytest.raises(error):
            patch.setattr(compilation, "_run", lambda *given, **more: said)
            compilation.precompile(HEADER, fresh / "x.pch", tool=toolchain.compiler(), options=[], zig_cache=fresh)

    def test_long_sources_share_it(self, fresh):
        for n, long in ((40, False), (41, True)):
            assert answer(cache.build(self.with_header(n), prelude=HEADER, long=long)) == n
        assert len(list(fresh.glob("*.pch"))) == 1

    @pytest.mark.parametrize("at", [0, -100])
    def test_a_damaged_one_is_made_again(self, fresh, at):
        cache.build(self.with_header(36), prelude=HEADER)
        kept = next(fresh.glob("*.pch"))
        data = bytearray(kept.read_bytes())
        data[at] ^= 1
        kept.write_bytes(data)
        assert cache.entry(fresh, kept.stem, ".pch") is None
        assert answer(cache.build(self.with_header(37), prelude=HEADER)) == 37
        assert cache.entry(fresh, kept.stem, ".pch") == kept

    def test_one_that_cannot_be_read_is_left_out(self, fresh):
        assert answer(cache.build(source(35), prelude="dynagrad/nothing.hpp")) == 35
        assert [kept.stat().st_size for kept in fresh.glob("*.pch")] == [0]

    def test_errors_are_those_of_the_source(self, fresh):
        with pytest.raises(CompileError, match="nothing") as caught:
            cache.build(f"#include <{HEADER}>\nint f() {{ return nothing; }}", prelude=HEADER)
        assert "pch" not in str(caught.value)


class TestDamage:
    @pytest.mark.parametrize("damage", ["cut", "empty", "changed", "no library", "no seal", "bad seal"])
    def test_a_damaged_entry_is_made_again(self, fresh, damage):
        path = cache.build(source(5))
        whole = path.read_bytes()
        seal = path.with_suffix(".seal")
        {
            "cut": lambda: path.write_bytes(whole[: len(whole) // 2]),
            "empty": lambda: path.write_bytes(b""),
            "changed": lambda: path.write_bytes(bytes([whole[0] ^ 1]) + whole[1:]),
            "no library": path.unlink,
            "no seal": seal.unlink,
            "bad seal": lambda: seal.write_bytes(b"\xff\xfe"),
        }[damage]()
        assert cache.build(source(5)) == path
        assert path.read_bytes() == whole

    def test_a_failed_compile_leaves_its_source_and_no_entry(self, fresh):
        for _ in range(2):
            with pytest.raises(CompileError, match="error: use of undeclared identifier 'nothing'") as caught:
                cache.build("int f() { return nothing; }")
        (kept,) = (fresh / "failed").iterdir()
        assert str(kept) in str(caught.value)
        assert contents(fresh) == {"failed"}

    def test_what_killed_processes_left_is_removed_a_day_later(self, fresh):
        old, new = fresh / "tmp-old", fresh / "tmp-new"
        for folder in (old, new):
            folder.mkdir()
        os.utime(old, (0, 0))
        cache.build(source(6))
        assert (old.exists(), new.exists()) == (False, True)

    def test_records_and_failed_sources_are_removed_after_a_season_and_libraries_never(self, fresh):
        kept = cache.build(source(6))
        cache._sweep.cache_clear()
        (fresh / "failed").mkdir()
        names = ["a.plan", "b.rules", "c.contents", "failed/e.cpp", "d.plan"]
        for name in names:
            (fresh / name).touch()
        for path in (*(fresh / name for name in names[:-1]), kept):
            os.utime(path, (0, 0))
        cache.build(source(7))
        assert [name for name in names if (fresh / name).exists()] == ["d.plan"] and kept.exists()


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
class TestKilled:
    def test_kill_9_leaves_no_entry_and_does_not_block_the_next(self, fresh, tmp_path):
        process = python("build(source(7))", DYNAGRAD_CXX=slow_compiler(tmp_path, 30))
        wait_for(tmp_path / "running")
        process.kill()
        process.communicate()
        assert not list(fresh.glob("*.so")) and not list(fresh.glob("*.seal"))
        slow_compiler(tmp_path, 0)
        again = python("print(build(source(7)))", DYNAGRAD_CXX=f"{sys.executable} {tmp_path / 'slow.py'}")
        out, err = again.communicate(timeout=60)
        assert answer(Path(out.strip())) == 7, err

    def test_ctrl_c_kills_the_compiler_and_leaves_nothing(self, fresh, tmp_path):
        process = python("build(source(8))", DYNAGRAD_CXX=slow_compiler(tmp_path, 30))
        wait_for(tmp_path / "running")
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)  # the compiler holds no end of these pipes, or it would be waited for
        assert "KeyboardInterrupt" in err
        assert time.monotonic() - start < 10  # of the 30 that the compiler sleeps
        assert contents(fresh) == set()

    def test_ctrl_c_kills_the_compilers_of_objects_too(self, fresh, tmp_path):
        objects = "[Object(f'int unused{n};', bare=True) for n in range(3)]"
        process = python(f"build(source(9), objects={objects})", DYNAGRAD_CXX=slow_compiler(tmp_path, 30))
        wait_for(tmp_path / "running")
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert "KeyboardInterrupt" in err
        assert time.monotonic() - start < 10  # of the 30 that the compiler sleeps
        assert contents(fresh) == set()

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
    def test_whatever_ends_the_process_ends_its_compiler(self, fresh, tmp_path, number):
        process = python("build(source(14))", DYNAGRAD_CXX=slow_compiler(tmp_path, 120))
        wait_for(tmp_path / "running")
        compiler = int((tmp_path / "running").read_text())
        process.send_signal(number)
        process.communicate(timeout=60)
        until = time.monotonic() + 10
        while is_alive(compiler):
            assert time.monotonic() < until, "the compiler goes on"
            time.sleep(0.02)

    def test_kills_at_any_moment_leave_nothing_that_counts(self, furnished, fresh, fork):
        """While a header, an object and libraries are compiled, and rules and plans are kept."""
        link_shared(fresh)
        built = f"build({with_part('killed')!r}, objects=[Object({PART_ITSELF!r}, bare=True)], prelude={HEADER!r})"
        code = (
            f"import ctypes; print(library.Library({built}).function('answer', ctypes.c_int)())\n"
            "import dynagrad; print(dynagrad.Program('p += q(_X) * 21.').run({'q/1': [('a', 2.0)]})['p'])"
        )
        for n in range(8):
            fork(code, kill=0.01 + n * 0.05)
        assert fork(code) == ("7\n42.0\n", "")


class TestMany:
    def test_four_processes_compile_once(self, fresh, tmp_path):
        compiler = slow_compiler(tmp_path, 0.3)
        code = "path = build(source(9)); print(path)"
        processes = [python(code, DYNAGRAD_CXX=compiler) for _ in range(4)]
        results = [process.communicate(timeout=60) for process in processes]
        assert [process.returncode for process in processes] == [0] * 4, results
        assert len({out for out, _ in results}) == 1
        assert answer(Path(results[0][0].strip())) == 9
        assert len((tmp_path / "running").read_text().split()) == 1

    def test_threads_compile_once(self, fresh):
        said: list[str] = []
        paths: list[Path] = []
        threads = [
            threading.Thread(target=lambda: paths.append(cache.build(source(10), progress=said.append)))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(said), len(paths), len(set(paths))) == (1, 4, 1)


class TestFolders:
    def test_a_folder_that_cannot_be_written_is_replaced_with_a_warning(self, tmp_path, monkeypatch):
        (tmp_path / "file").write_text("in the way")
        monkeypatch.setenv("DYNAGRAD_CACHE", str(tmp_path / "file" / "cache"))
        monkeypatch.setattr(Temporary, "path", None)
        with pytest.warns(RuntimeWarning, match="Set DYNAGRAD_CACHE"):
            first = cache.build(source(12))
        assert answer(first) == 12
        monkeypatch.setattr(subprocess, "Popen", None)
        assert cache.build(source(12)) == first  # found in the private folder, and no second warning

    def test_a_folder_that_is_deleted_during_a_compile_is_replaced(self, fresh, tmp_path, monkeypatch):
        script = tmp_path / "deleting.py"
        script.write_text(
            "import subprocess, shutil, sys\n"
            f"if '--version' not in sys.argv: shutil.rmtree({str(fresh)!r}, ignore_errors=True)\n"
            f"sys.exit(subprocess.call({list(toolchain._ziglang().command)!r} + sys.argv[1:]))\n"
        )
        monkeypatch.setenv("DYNAGRAD_CXX", f"{sys.executable} {script}")
        monkeypatch.setattr(Temporary, "path", None)
        with pytest.warns(RuntimeWarning, match="it was deleted meanwhile"):
            assert answer(cache.build(source(44))) == 44

    def test_no_home_at_all(self, monkeypatch):
        def nowhere() -> Path:
            raise RuntimeError("no home")

        for name in ("DYNAGRAD_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(cache_folder.Path, "home", staticmethod(nowhere))
        monkeypatch.setattr(Temporary, "path", None)
        assert cache_folder.folder() is None
        with pytest.warns(RuntimeWarning, match="HOME is not set"):
            assert answer(cache.build(source(13))) == 13

    def test_a_folder_that_is_gone_has_no_place_in_it(self, tmp_path):
        (tmp_path / "gone").mkdir()
        code = f"import os; os.chdir({str(tmp_path / 'gone')!r}); os.rmdir({str(tmp_path / 'gone')!r})"
        out, err = python(f"{code}; print(build(source(42)).exists())", DYNAGRAD_CACHE="here").communicate()
        assert out == "True\n" and "the folder of this process is gone" in err

    @pytest.mark.skipif(sys.platform != "linux", reason="the places of other systems")
    def test_the_places(self, monkeypatch, tmp_path):
        monkeypatch.delenv("DYNAGRAD_CACHE")
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("XDG_CACHE_HOME", "relative/paths/do/not/count")
        assert cache_folder.folder() == tmp_path / ".cache" / "dynagrad"
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
        assert cache_folder.folder() == tmp_path / "xdg" / "dynagrad"
        monkeypatch.setenv("DYNAGRAD_CACHE", str(tmp_path / "named"))
        assert cache_folder.folder() == tmp_path / "named"

    def test_the_folder_and_all_in_it_are_for_this_user_alone(self, monkeypatch, tmp_path):
        folder = tmp_path / "made" / "cache"
        shared = link_shared(tmp_path / "shared")
        monkeypatch.setenv("DYNAGRAD_CACHE", str(folder))
        before = os.umask(0)
        try:
            cache.build(with_part("private"), objects=[Object(PART_ITSELF, bare=True)], prelude=HEADER)
            made = [folder, *folder.rglob("*")]
            for path in shared.iterdir():
                path.rename(folder / path.name)
            dynagrad.Program("p += q(_X) * 15.").run({"q/1": [("a", 2.0)]})
        finally:
            os.umask(before)
        made += folder.rglob("*")
        records = {".rules", ".plan"} if sources() is not None else set()  # none where the package was just edited
        assert not {".so", ".o", ".pch", ".cpp", ".seal", ".calls", *records} - {path.suffix for path in made}
        assert not [path for path in made if path.name != "locks" and path.stat().st_mode & 0o077]

    @pytest.mark.parametrize(
        "name", ["a%sb%20", "a:b", "a\\b", "a\nb", "a'b\"c d", "$x;y #", "\u00e9\u2028", "-a", "@a", "a\udcffb"]
    )
    def test_paths_of_any_characters(self, fresh, monkeypatch, tmp_path, name):
        place = tmp_path / name
        place.mkdir()
        for kept in fresh.glob("*.zig"):
            shutil.copy(kept, place)
        monkeypatch.setenv("DYNAGRAD_CACHE", str(place))
        path = cache.build(source(15, ascii(name)))
        assert path.parent == place and answer(path) == 15

    @pytest.mark.parametrize("name", ["a%b", "a:b", "a\\b", "a\nb"])
    def test_headers_at_paths_of_any_characters(self, fresh, monkeypatch, tmp_path, name):
        shutil.copytree(toolchain.INCLUDE, tmp_path / name)
        monkeypatch.setattr(toolchain, "INCLUDE", tmp_path / name)
        path = cache.build("#include <dynagrad/base/memory.hpp>\n" + source(16, ascii(name)))
        assert answer(path) == 16

    def test_a_full_disk_falls_back_and_is_an_error_at_last(self, fresh, monkeypatch, tmp_path):
        script = tmp_path / "full.py"
        zig = list(toolchain._ziglang().command)
        script.write_text(
            "import os, subprocess, sys\n"
            f"os.environ['ZIG_GLOBAL_CACHE_DIR'] = {str(ZIG)!r}\n"
            f"if '--version' in sys.argv: sys.exit(subprocess.call({zig!r} + ['--version']))\n"
            f"if os.getcwd().startswith(tuple(os.environ['FULL'].split(':'))):\n"
            "    sys.exit('error: unable to write: No space left on device')\n"
            f"sys.exit(subprocess.call({zig!r} + sys.argv[1:]))\n"
        )
        monkeypatch.setenv("DYNAGRAD_CXX", f"{sys.executable} {script}")
        monkeypatch.setattr(Temporary, "path", None)
        monkeypatch.setenv("FULL", str(fresh))
        with pytest.warns(RuntimeWarning, match="No space left on device"):
            assert answer(cache.build(source(17))) == 17
        monkeypatch.setenv("FULL", "/")
        with pytest.raises(CompileError, match=r"(?s)no place for a compiled program: .*make room"):
            cache.build(source(18))
        monkeypatch.setattr(Temporary, "path", None)
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
        with pytest.raises(CompileError, match="no place for a compiled program"):
            cache.build(source(18))


PROGRAM, FACTS = "p += q(X) * 16 for X < 3. p += 0.5.", {"q/1": [(1, 2.0), (7, 1.0)]}
CHECK = f"import dynagrad; print(dynagrad.Program({PROGRAM!r}).run({FACTS!r})['p'])"


BUILD = "import ctypes; print(library.Library(build(source(32))).function('answer', ctypes.c_int)())"


@pytest.fixture(scope="module")
def furnished(tmp_path_factory: pytest.TempPathFactory, forked: Forked) -> Path:
    """A cache folder in which the program is, but not what it has in common with others; that is in the shared one."""
    dynagrad.Program(PROGRAM).run(FACTS)
    folder = link_shared(tmp_path_factory.mktemp("furnished"))
    common = list(folder.iterdir())
    assert forked.run(CHECK, {"DYNAGRAD_CACHE": str(folder)}) == ("32.5\n", "")
    for path in common:
        path.unlink()
    return folder


@pytest.fixture
def computed(fork: Callable[..., tuple[str, str]]) -> Callable[[], str]:
    """What another process computes with the cache as it is."""
    return lambda: fork(CHECK)[0].strip()


class TestPlanted:
    """What others may have put into the folder is never loaded."""

    @pytest.fixture
    def entry(self, furnished: Path, fresh: Path, computed: Callable[[], str]) -> Path:
        """The program's library in a folder of the test's own."""
        shutil.copytree(furnished, link_shared(fresh), dirs_exist_ok=True)
        (library,) = fresh.glob("*.so")
        made = library.stat().st_mtime_ns
        assert computed() == "32.5" and library.stat().st_mtime_ns == made, "it is found"
        return library

    def test_a_library_that_others_may_write_to(self, fresh, entry, computed):
        library = entry
        made = library.stat().st_mtime_ns
        for file in (library, library.with_suffix(".seal")):
            file.chmod(0o722)
            assert computed() == "32.5"
            assert library.stat().st_mtime_ns != made, "it was loaded"
            made = library.stat().st_mtime_ns

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs files of another user")
    def test_files_and_folders_of_another_user(self, fresh, entry, computed, fork):
        library = entry
        for file in (library, library.with_suffix(".seal")):
            made = library.stat().st_mtime_ns
            os.chown(file, 4242, 4242)
            assert computed() == "32.5"
            assert library.stat().st_mtime_ns != made, "it was loaded"
        os.chown(fresh, 4242, 4242)
        out, err = fork(BUILD)
        assert out == "32\n" and "belongs to the user with the number 4242" in err and "Set DYNAGRAD_CACHE" in err

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs files of another user")
    def test_rules_of_another_user_under_a_right_seal(self, fresh, entry, computed):
        (rules,) = fresh.glob("*.rules")
        other = rules_cache.encoded(check(parse(PROGRAM.replace("16", "17"))))

        def unplanned() -> str:
            for plan in fresh.glob("*.plan"):  # which is that of the rules before
                plan.unlink()
            return computed()

        sealed.save(rules, other)
        assert unplanned() == "34.5", "what is planted would be loaded, were it ours"
        for spoil in (lambda: os.chown(rules, 4242, 4242), lambda: rules.chmod(0o622)):
            sealed.save(rules, other)
            spoil()
            assert unplanned() == "32.5"

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs files of another user")
    def test_files_of_zig_of_another_user_under_a_right_seal(self, tmp_path):
        archive, theirs, ours = tmp_path / "0123.zig", tmp_path / "theirs", tmp_path / "ours"
        theirs.mkdir()
        (theirs / "libc.so").write_text("theirs")
        zig_files.keep(archive, theirs)
        assert zig_files.unpack(archive, ours) and (ours / "libc.so").read_text() == "theirs", (
            "it would be, were it ours"
        )
        for spoil in (lambda: os.chown(archive, 4242, 4242), lambda: archive.chmod(0o622)):
            zig_files.keep(archive, theirs)
            spoil()
            empty = tmp_path / "empty"
            empty.mkdir(exist_ok=True)
            assert not zig_files.unpack(archive, empty) and not contents(empty)

    def test_folders_that_others_may_write_to_are_left_alone(self, fresh, tmp_path, fork):
        (fresh / "theirs").write_text("theirs")
        above = tmp_path / "above"
        for open_to_others, named in ((fresh, fresh), (above, above / "cache")):
            open_to_others.mkdir(exist_ok=True)
            open_to_others.chmod(0o777)
            out, err = fork(BUILD, folder=named)
            assert out == "32\n" and f"others may write to '{open_to_others}'" in err
            assert open_to_others.stat().st_mode & 0o777 == 0o777
        assert contents(fresh) == {"theirs"} and not contents(above)
        above.chmod(0o1777)  # as /tmp: nobody can move the folders of others
        (above / "cache").mkdir(mode=0o700)
        assert fork(BUILD, folder=above / "cache") == ("32\n", "")

    def test_folders_above_are_made_for_this_user_alone(self, tmp_path, fork):
        home = tmp_path / "one" / "two" / "cache"
        code = f"import os; os.umask(0); {BUILD}"
        assert fork(code, folder=home) == ("32\n", "")
        for folder in (home, home.parent, home.parent.parent):
            assert folder.stat().st_mode & 0o777 == 0o700

    def test_a_link_in_the_place_of_a_kept_source(self, fresh, tmp_path):
        precious = tmp_path / "precious"
        precious.write_text("precious")
        for _ in range(2):
            with pytest.raises(CompileError):
                cache.build("this is no C++")
            (kept,) = (fresh / "failed").glob("*.cpp")
            assert kept.read_text() == "this is no C++" and not kept.is_symlink()
            kept.unlink()
            kept.symlink_to(precious)
        assert precious.read_text() == "precious"

    def test_links_and_pipes(self, fresh, entry, computed, tmp_path):
        library = entry
        elsewhere = tmp_path / "elsewhere.so"
        library.rename(elsewhere)
        library.symlink_to(elsewhere)
        assert computed() == "32.5" and not library.is_symlink()
        (rules,) = fresh.glob("*.rules")
        rules.unlink()
        os.mkfifo(rules)
        assert computed() == "32.5"

    def test_links_in_the_place_of_locks(self, fresh, fork, tmp_path):
        assert fork(BUILD) == ("32\n", "")
        precious = tmp_path / "precious"
        precious.write_text("precious")
        for lock in (fresh / "locks").iterdir():
            lock.unlink()
            lock.symlink_to(precious)
        (library,) = fresh.glob("*.so")
        library.unlink()
        out, err = fork(BUILD)
        assert out == "32\n" and "Set DYNAGRAD_CACHE" in err, "in a folder of its own"
        assert precious.read_text() == "precious"

    def test_no_pickle_is_loaded(self, fresh, entry, computed, tmp_path):
        (rules,) = fresh.glob("*.rules")
        ran = tmp_path / "ran"

        class Planted:
            def __reduce__(self) -> Any:
                return (Path.touch, (ran,))

        for data in (
            pickle.dumps(Planted()),
            sealed.seal(rules.name, pickle.dumps(Planted())) + pickle.dumps(Planted()),
        ):
            rules.write_bytes(data)
            assert computed() == "32.5"
            assert not ran.exists()

    def test_one_entry_does_not_pass_for_another(self, fresh, entry, computed):
        library = entry
        other = cache.build(source(19))
        for suffix in (".so", ".seal"):
            shutil.copy(other.with_suffix(suffix), library.with_suffix(suffix))
        assert computed() == "32.5"
