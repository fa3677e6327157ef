"""The cache of compiled programs: quick, shared, and never broken by what happens to its makers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import dynagrad
from dynagrad.errors import CompileError
from dynagrad.native import cache, library, toolchain

EXPORT = 'extern "C" __attribute__((visibility("default"))) '
SOURCE_ROOT = Path(dynagrad.__path__[0]).parent


def source(value: int, note: str = "") -> str:
    return f"{EXPORT}int answer() {{ return {value}; }}  // {note}\n"


def answer(path: Path) -> int:
    import ctypes

    return library.Library(path).function("answer", ctypes.c_int)()


def python(code: str, **environment: str) -> subprocess.Popen[str]:
    """Another Python that runs `code`, with `build` and `source` at hand."""
    start = (
        "from dynagrad.native import cache, library, toolchain\n"
        "from dynagrad.native.cache import build\n"
        f"source = lambda v, note='': {EXPORT!r} + f'int answer() {{{{ return {{v}}; }}}}  // {{note}}\\n'\n"
    )
    path = os.pathsep.join([str(SOURCE_ROOT), *(p for p in [os.environ.get("PYTHONPATH")] if p)])
    return subprocess.Popen(
        [sys.executable, "-c", start + code],
        env={**os.environ, "PYTHONPATH": path, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def contents(folder: Path) -> set[str]:
    """What lies in a cache folder, apart from the locks and what zig keeps."""
    return {path.name for path in folder.iterdir()} - {"locks", "zig"}


def slow_compiler(folder: Path, seconds: float) -> str:
    """A compiler that writes half a library, says that it is running, sleeps, and then does the job."""
    zig = toolchain._ziglang().command
    script = folder / "slow.py"
    script.write_text(
        "import os, subprocess, sys, time, pathlib\n"
        f"zig = {list(zig)!r}\n"
        "if '--version' in sys.argv: sys.exit(subprocess.call(zig + ['--version']))\n"
        "output = pathlib.Path(sys.argv[sys.argv.index('-o') + 1])\n"
        "output.write_bytes(b'half')\n"
        f"with open({str(folder / 'running')!r}, 'a') as file: file.write(f'{{os.getpid()}} ')\n"
        f"time.sleep({seconds})\n"
        "sys.exit(subprocess.call(zig + ['-O2', '-nostdlib++', '-rtlib=none', '-shared', '-o', str(output),\n"
        "    next(a for a in sys.argv if a.endswith('.cpp'))]))\n"
    )
    return f"{sys.executable} {script}"


def wait_for(path: Path, seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    while not path.exists() or not path.read_text():
        assert time.monotonic() < until, f"{path} did not appear"
        time.sleep(0.01)


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """A cache folder of the test's own, but with the files that zig keeps between calls."""
    shared = os.environ["DYNAGRAD_CACHE"]
    cache.build(source(0, "warm"))
    folder = tmp_path / "cache"
    folder.mkdir()
    (folder / "zig").symlink_to(Path(shared) / "zig")
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
        names = {cache._name("a", tool, ("-O3",)), cache._name("b", tool, ("-O3",)), cache._name("a", tool, ("-O1",))}
        names.add(cache._name("a", toolchain.Compiler(tool.command, True, "another"), ("-O3",)))
        monkeypatch.setattr(cache, "_processor", lambda: "another")
        names.add(cache._name("a", tool, ("-O3",)))
        monkeypatch.setattr(cache, "_headers", lambda: "another")
        names.add(cache._name("a", tool, ("-O3",)))
        assert len(names) == 6

    def test_a_changed_header_is_noticed(self, tmp_path, monkeypatch):
        (tmp_path / "dynagrad").mkdir()
        header = tmp_path / "dynagrad" / "x.hpp"
        monkeypatch.setattr(toolchain, "INCLUDE", tmp_path)
        seen = []
        for text in ("one", "two", "three"):
            header.write_text(text)
            seen.append(cache._headers())
        assert len(set(seen)) == 3


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


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
class TestKilled:
    def test_kill_9_leaves_no_entry_and_does_not_block_the_next(self, fresh, tmp_path):
        process = python("build(source(7))", DYNAGRAD_CXX=slow_compiler(tmp_path, 30))
        wait_for(tmp_path / "running")
        process.kill()
        process.communicate()
        os.kill(int((tmp_path / "running").read_text()), signal.SIGKILL)  # the compiler would go on
        assert not list(fresh.glob("*.so")) and not list(fresh.glob("*.seal"))
        slow_compiler(tmp_path, 0)
        again = python("print(build(source(7)))", DYNAGRAD_CXX=f"{sys.executable} {tmp_path / 'slow.py'}")
        out, err = again.communicate(timeout=20)
        assert answer(Path(out.strip())) == 7, err

    def test_ctrl_c_kills_the_compiler_and_leaves_nothing(self, fresh, tmp_path):
        process = python("build(source(8))", DYNAGRAD_CXX=slow_compiler(tmp_path, 30))
        wait_for(tmp_path / "running")
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)  # the compiler holds no end of these pipes, or it would be waited for
        assert "KeyboardInterrupt" in err
        assert time.monotonic() - start < 2
        assert contents(fresh) == set()


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

    def test_a_fork_taken_during_a_compile_can_compile_itself(self, fresh):
        if not hasattr(os, "fork"):
            pytest.skip("needs fork")
        reached, go_on = threading.Event(), threading.Event()

        def pause(_: str) -> None:
            reached.set()
            go_on.wait(20)

        thread = threading.Thread(target=cache.build, args=(source(11),), kwargs={"progress": pause})
        thread.start()
        reached.wait(20)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                cache._turns.setdefault("x", threading.Lock())
                status = 0 if list(cache._turns) == ["x"] else 2
            finally:
                os._exit(status)
        go_on.set()
        thread.join()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


class TestFolders:
    def test_a_folder_that_cannot_be_written_is_replaced_with_a_warning(self, tmp_path, monkeypatch):
        (tmp_path / "file").write_text("in the way")
        monkeypatch.setenv("DYNAGRAD_CACHE", str(tmp_path / "file" / "cache"))
        monkeypatch.setattr(cache._Private, "path", None)
        with pytest.warns(RuntimeWarning, match="Set DYNAGRAD_CACHE"):
            first = cache.build(source(12))
        assert answer(first) == 12
        monkeypatch.setattr(subprocess, "Popen", None)
        assert cache.build(source(12)) == first  # found in the private folder, and no second warning

    def test_no_home_at_all(self, monkeypatch):
        def nowhere() -> Path:
            raise RuntimeError("no home")

        for name in ("DYNAGRAD_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(cache.Path, "home", staticmethod(nowhere))
        monkeypatch.setattr(cache._Private, "path", None)
        assert cache.folder() is None
        with pytest.warns(RuntimeWarning, match="HOME is not set"):
            assert answer(cache.build(source(13))) == 13

    @pytest.mark.skipif(sys.platform != "linux", reason="the places of other systems")
    def test_the_places(self, monkeypatch, tmp_path):
        monkeypatch.delenv("DYNAGRAD_CACHE")
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("XDG_CACHE_HOME", "relative/paths/do/not/count")
        assert cache.folder() == tmp_path / ".cache" / "dynagrad"
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
        assert cache.folder() == tmp_path / "xdg" / "dynagrad"
        monkeypatch.setenv("DYNAGRAD_CACHE", str(tmp_path / "named"))
        assert cache.folder() == tmp_path / "named"
