"""The C++ compiler: which one is used, and its flags.

It is the one that `DYNAGRAD_CXX` names; else that of the `ziglang` package, so that a machine without a compiler works;
else one of the system's that is new enough. It is called by `compilation.py`.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import CompileError, warn
from ...packages import how_to_install
from . import child, linking

INCLUDE = Path(__file__).parent.parent / "include"
"""The folder of the runtime headers, for `#include <dynagrad/...>`."""

SUFFIX = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")
"""The suffix of shared libraries on this system."""

# The flags for every compiler.
#   contract=off: no fused multiply-add, so that two ways to compute a number agree to the bit.
#   no-trapping-math, no-math-errno: nobody reads the floating-point flags or errno; comparisons and roots vectorise.
#   visibility=hidden: only what is marked is exported; the rest may be inlined away.
_COMMON = (
    "-std=c++20",
    "-march=native",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-stack-protector",
    "-fomit-frame-pointer",
    "-fvisibility=hidden",
    "-g0",
    "-s",
    "-shared",
    "-fPIC",
    "-pthread",
)

# Libraries, in the order of the linker's command line (after the source). The C++ standard library is in none of them.
LIBRARIES = {"linux": ("-nodefaultlibs", "-lm", "-lpthread", "-lc", "-lgcc"), "darwin": ("-lSystem",)}

WHERE = (
    f"install the package ziglang ({how_to_install('ziglang')}), "
    "or name a C++20 compiler in DYNAGRAD_CXX, such as clang++"
)

_NEW_ENOUGH = {"clang": 15, "gcc": 11}  # versions that have the C++20 of generated code


@dataclass(frozen=True, slots=True)
class Compiler:
    """A compiler: its command, whether it is zig's, and a text that identifies its version."""

    command: tuple[str, ...]
    zig: bool
    identity: str

    @property
    def clang(self) -> bool:
        """Whether it is clang, zig's or another: what it says of itself, whatever its path and its options are called.

        >>> Compiler(("clang-env/g++",), False, "/opt/clang-env/g++ []\\ng++ 12").clang
        False
        """
        return self.zig or "clang" in self.identity.partition("\n")[2]


def compiler() -> Compiler:
    """The compiler to use: `DYNAGRAD_CXX` if it is set, else the one of the ziglang package, else one of the system's.

    >>> compiler().command[-1]
    'c++'
    """
    return _compiler(os.environ.get("DYNAGRAD_CXX", ""), os.environ.get("PATH", ""))


def warn_without_compiler() -> None:
    """Warns where there is no compiler, with the command that installs one."""
    missing = _missing(os.environ.get("DYNAGRAD_CXX", ""), os.environ.get("PATH", ""))
    if missing:
        warn(missing)


def _missing(named: str, path: str) -> str:
    """Why there is no compiler; empty if there is one."""
    try:
        _compiler(named, path)
    except CompileError as error:
        return f"what is made here cannot be run: {error}"
    return ""


@functools.cache
def _compiler(named: str, path: str) -> Compiler:
    """`compiler`, memoised by what it depends on: asking a compiler for its version starts a process."""
    if not named.strip():
        found = _ziglang() or _system(path)
        if found is None:
            raise CompileError(f"there is no C++ compiler\n  {WHERE}")
        return found
    try:
        command = shlex.split(named)
    except ValueError as error:
        raise CompileError(f"DYNAGRAD_CXX={named!r} cannot be split into words: {error}") from None
    program = shutil.which(command[0], path=path)
    if program is None:
        raise CompileError(f"the compiler that DYNAGRAD_CXX names, {command[0]!r}, is not there\n  {WHERE}")
    call = (os.path.abspath(program), *command[1:])
    try:
        version = _version(call)
    except (OSError, subprocess.SubprocessError) as error:
        raise CompileError(f"the compiler that DYNAGRAD_CXX names does not run: {error}\n  {WHERE}") from None
    zig = os.path.splitext(os.path.basename(program))[0] == "zig" or "ziglang" in version
    return Compiler(call, zig, f"{os.path.realpath(program)} {command[1:]}\n{version}")


def _version(call: Sequence[str], question: str = "--version") -> str:
    """The answer of a compiler to `--version` or another question. Raises OSError where it does not start, or hangs."""
    said = _answer((*call, question))
    if said is None:
        raise OSError(f"it does not answer to {question} within {_PATIENCE} seconds")
    return said


_PATIENCE = 20  # seconds


@functools.cache  # what hangs is not waited for again
def _answer(command: tuple[str, ...]) -> str | None:
    """What a program prints; None where it hangs: it is killed then, and so is what it has started."""
    group = 0 if os.name == "posix" else None
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, process_group=group
    ) as asked:
        try:
            return asked.communicate(timeout=_PATIENCE)[0].decode(errors="replace")
        except BaseException as error:
            if group is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(asked.pid, signal.SIGKILL)
            asked.kill()
            if isinstance(error, subprocess.TimeoutExpired):
                return None
            raise


def _system(path: str) -> Compiler | None:
    """A compiler of the system that is new enough, under one of the usual names."""
    for name in ("c++", "g++", "clang++"):
        program = shutil.which(name, path=path)
        if program is None:
            continue
        try:
            version, number = _version([program]), _version([program], "-dumpversion").partition(".")[0].strip()
        except (OSError, subprocess.SubprocessError):
            continue
        least = _NEW_ENOUGH["clang" if "clang" in version else "gcc"]
        if number.isdigit() and int(number) >= least:
            return Compiler((program,), False, f"{os.path.realpath(program)}\n{version}")
    return None


def _ziglang() -> Compiler | None:
    """The compiler of the ziglang package, found without importing it or starting a process."""
    spec = importlib.util.find_spec("ziglang")
    if spec is None or not spec.submodule_search_locations:
        return None
    home = Path(spec.submodule_search_locations[0])
    program = home / ("zig.exe" if os.name == "nt" else "zig")
    # Its version is in the name of a folder that pip makes beside it; reading that is quicker than asking.
    versions: list[str] = []
    with contextlib.suppress(OSError):
        versions = sorted(n for n in os.listdir(home.parent) if n.startswith("ziglang-") and n.endswith(".dist-info"))
    try:
        size = program.stat().st_size
    except OSError:  # packaged in another way: the package can start it
        python = child.interpreter()
        if python is None:
            return None
        return Compiler((python, "-m", "ziglang", "c++"), True, f"ziglang {versions} at {home}")
    # The program itself rather than `python -m ziglang`: one process less to start, and the one to kill is the compiler
    return Compiler((str(program), "c++"), True, f"ziglang {versions} of {size} bytes")


def flags(tool: Compiler, optimise: int = 3) -> tuple[str, ...]:
    """The flags for `tool`; `optimise` is 0 to 3, where 1 is for huge sources and 0 for code that hardly runs.

    >>> "-O1" in flags(compiler(), optimise=1)
    True
    """
    if optimise not in (0, 1, 2, 3):
        raise ValueError(f"optimise is 0, 1, 2 or 3, not {optimise!r}")
    if not tool.zig:
        return (f"-O{optimise}", *_COMMON)
    # zig turns every level into -O2, so clang's own option is passed, too; it adds checks for undefined behaviour to
    # what it takes for debugging builds. Its runtime library, and the C++ library, would be built from source on first
    # use (four seconds and a minute). Without the former its slower exp, log and tanh are not linked in place of the
    # system's; what else generated code needs of it is in builtins.hpp.
    few = ("-mllvm", "-inline-threshold=5") if optimise == 1 else ()  # a third of the time for thousands of rules
    level = max(optimise, 1)  # with -O0, zig makes a debugging build
    zig: tuple[str, ...] = (f"-O{level}", "-Xclang", f"-O{optimise}", *few, "-fno-sanitize=undefined", "-nostdlib++")
    if sys.platform == "linux":
        zig += ("-rtlib=none", "-include", "dynagrad/base/builtins.hpp", *_target())
    return (*zig, "-ferror-limit=20", "-fno-ident", *_COMMON)


@functools.cache
def _target() -> tuple[str, ...]:
    """The target for zig on Linux with glibc: its own headers and libc stubs, whatever else is installed.

    Without one, zig asks the compiler in the path where libc is. The target is the oldest glibc that is supported
    (2.31, or this machine's if that is older): one set of headers and stubs, whatever the machine. A cache on a shared
    disk serves machines with the same processor and libc, which are in the names of libraries.
    """
    machine = platform.machine()
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
        major, minor = (int(part) for part in version.split(".")[:2])
    except (ValueError, OSError):
        return ()
    if name != "glibc" or machine not in ("x86_64", "aarch64") or sys.maxsize < 2**32:
        return ()
    major, minor = min((major, minor), (2, 31))
    return ("-target", f"{machine}-linux-gnu.{major}.{minor}")


_OF_GCC = {"-fno-slp-vectorize": "-fno-tree-slp-vectorize"}


def spelled(tool: Compiler, options: Sequence[str]) -> tuple[str, ...]:
    """Flags of clang in the spelling of another compiler.

    >>> spelled(Compiler(("g++",), False, "g++ 12"), ["-fwrapv", "-fno-slp-vectorize"])
    ('-fwrapv', '-fno-tree-slp-vectorize')
    """
    return tuple(options) if tool.clang else tuple(_OF_GCC.get(option, option) for option in options)


def links(tool: Compiler) -> bool:
    """Whether libraries are linked with objects of the runtime: whether this is clang, which emits no code for
    functions that are defined elsewhere (see `dynagrad/base/linked.hpp`).

    >>> links(compiler())
    True
    """
    return tool.clang


def of_long(tool: Compiler) -> tuple[str, ...]:
    """More flags for a long source: spilled registers share no stack slots, as LLVM compares each with all others.

    >>> of_long(Compiler(("g++",), False, "g++ 12")), of_long(Compiler(("zig",), True, "zig"))
    ((), ('-mllvm', '-no-stack-slot-sharing'))
    """
    return ("-mllvm", "-no-stack-slot-sharing") if tool.zig else ()


def of_object(options: Sequence[str]) -> tuple[str, ...]:
    """The flags for an object that several libraries share, from those for a library.

    A linker drops the sections of what is not used.

    >>> of_object(["-O2", "-s", "-shared", "-fPIC"])
    ('-O2', '-fPIC', '-c', '-ffunction-sections', '-fdata-sections')
    """
    return (*unlinked(options), "-ffunction-sections", "-fdata-sections")


_OF_CODE = ("-s", "-shared", "-c", "-ffunction-sections", "-fdata-sections", "-fno-slp-vectorize")


def of_header(options: Sequence[str]) -> tuple[str, ...]:
    """The flags for a precompiled header, from those of what includes it: none for generating code and linking.

    >>> of_header(["-O3", "-mllvm", "-no-stack-slot-sharing", "-s", "-shared", "-DX"])
    ('-O3', '-DX')
    """
    pairs = zip(("", *options), options, strict=False)
    return tuple(o for before, o in pairs if "-mllvm" not in (before, o) and o not in _OF_CODE)


def unlinked(options: Sequence[str]) -> tuple[str, ...]:
    """The flags for an object that is linked later, from those for a library."""
    return (*(o for o in options if o not in ("-s", "-shared")), "-c")


def linker(tool: Compiler, options: Sequence[str]) -> tuple[str, ...]:
    """The command that links objects, named after it, to a library with such flags; none where the compiler does so."""
    known = tool.zig and "-target" in options and not any(option.startswith("-fsanitize=") for option in options)
    return linking.linker(tool.command) if known else ()
