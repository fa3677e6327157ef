"""The Pythons of this machine, and the oldest releases of what the package needs, as `pyproject.toml` names both.

    python .ci/versions.py found            # each supported Python, and where it is; `make versions` begins with it
    python .ci/versions.py newest           # the newest of them, by its path
    python .ci/versions.py oldest           # constraints for pip: of each requirement the oldest release
    python .ci/versions.py releases         # what is installed with the Python that runs this
    python .ci/versions.py test [3.12 oldest ...] [-k parse ...]
                                            # `make versions`: tests and demo under each, in an environment of its own

Pythons are looked for by their names on PATH, and where pyenv, uv, conda and Homebrew put them. Each is asked for its
version, as a name may be a shim that leads nowhere. Only Python's own library is used here.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENTS = ROOT / "build" / "versions"
EXTRAS = ("arrow", "train", "pandas", "test")
"""The optional dependencies that the suite uses; their oldest releases are tested together."""

OLDEST = "oldest"


def settings() -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project


# -- Pythons -----------------------------------------------------------------------------------------------------------


def supported(project: Mapping[str, Any]) -> list[str]:
    """The versions that the classifiers name, oldest first, such as 3.11."""
    found = [re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line) for line in project["classifiers"]]
    return sorted((match[1] for match in found if match), key=_number)


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


def places(version: str, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """Where a Python of this version may be, those on PATH first."""
    name = f"python{version}"
    for folder in environ.get("PATH", "").split(os.pathsep):
        if folder:
            yield Path(folder) / name
    pyenv = Path(environ.get("PYENV_ROOT", home / ".pyenv")) / "versions"
    uv = Path(environ.get("UV_PYTHON_INSTALL_DIR", home / ".local" / "share" / "uv" / "python"))
    conda = Path(environ.get("CONDA_PREFIX", home / "miniconda3")) / "envs"
    for root in (pyenv, uv, conda):
        folders = sorted(root.glob("*"), key=lambda folder: _number(folder.name), reverse=True)
        yield from (folder / "bin" / name for folder in folders)
    for root in (Path("/opt/homebrew"), Path("/usr/local"), Path("/usr")):
        yield root / "bin" / name


def is_python(path: Path, version: str) -> bool:
    """Whether this runs, and is a finished release of that version which can make environments."""
    if not os.access(path, os.X_OK) or path.is_dir():
        return False
    asks = "import sys, venv, ensurepip; v = sys.version_info; print('%d.%d' % v[:2], v.releaselevel)"
    try:
        answer = subprocess.run([path, "-c", asks], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0 and answer.stdout.split() == [version, "final"]


def pythons(
    versions: Sequence[str], home: Path | None = None, environ: Mapping[str, str] | None = None
) -> dict[str, Path | None]:
    """The Python of each version; None for what is not there."""
    home, environ = home or Path.home(), os.environ if environ is None else environ
    return {
        version: next((path for path in places(version, home, environ) if is_python(path, version)), None)
        for version in versions
    }


# -- requirements ------------------------------------------------------------------------------------------------------


def requirements(project: Mapping[str, Any], extras: Sequence[str]) -> list[str]:
    optional = project["optional-dependencies"]
    return [*project["dependencies"], *(line for extra in extras for line in optional[extra])]


def oldest(lines: Sequence[str]) -> list[str]:
    """Requirements with a floor, each with that release and no other.

    >>> oldest(["lark>=1.1.9,<2", "x>=0.3; python_version < '3.14'", "lark>=1.1.8"])
    ['lark==1.1.9', "x==0.3; python_version < '3.14'"]
    """
    pinned: dict[str, tuple[tuple[int, ...], str]] = {}
    for line in lines:
        requirement, semicolon, marker = line.partition(";")
        match = re.match(r"\s*([\w.-]+)\s*(?:\[[^]]*\])?\s*>=\s*([\d.]+)", requirement)
        if match is None:
            raise SystemExit(f"pyproject.toml names no oldest release: {line!r}; write {line!r} as `name>=release`")
        name, floor = match[1], match[2]
        new = (_number(floor), f"{name}=={floor}" + (f"; {marker.strip()}" if semicolon else ""))
        pinned[name.lower()] = max(pinned.get(name.lower(), new), new)
    return [line for _, line in pinned.values()]


def releases(lines: Sequence[str]) -> str:
    """The Python that runs this, and the releases of these requirements that it has."""
    names = dict.fromkeys(re.split(r"[\s\[<>=;]", line, maxsplit=1)[0] for line in lines)
    there = [f"{name} {version}" for name in names if (version := _installed(name))]
    return f"Python {platform.python_version()}, {', '.join(there)}"


def _installed(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


# -- environments ------------------------------------------------------------------------------------------------------


def environment(name: str, python: Path, pins: Sequence[str] = ()) -> Path:
    """An environment with the newest releases of all that the tests need, or with those of `pins`."""
    folder = ENVIRONMENTS / name
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([python, "-m", "venv", folder], check=True)
    pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    options: list[str | Path] = ["-e", f"{ROOT}[{','.join(EXTRAS)}]"]
    if pins:
        constraints = folder / "constraints.txt"
        constraints.write_text("".join(f"{line}\n" for line in pins), encoding="utf-8")
        options += ["-c", constraints]
    subprocess.run([*pip, *options], check=True)
    return folder / "bin"


def tested(name: str, python: Path, pins: Sequence[str], options: Sequence[str]) -> bool:
    """Whether tests and demo pass there. What they said is on the terminal."""
    print(f"\n== {name}: {python}, with the {'oldest' if pins else 'newest'} releases", flush=True)
    try:
        programs = environment(name, python, pins)
    except subprocess.CalledProcessError as error:
        print(f"{name}: no environment: {error}", flush=True)
        return False
    commands: list[list[str | Path]] = [
        [programs / "python", __file__, "releases"],
        [programs / "python", "-m", "pytest", "-q", *options],
        [programs / "dynagrad", "demo"],
    ]
    return all([subprocess.run(command, cwd=ROOT).returncode == 0 for command in commands])  # all of them are run


def say(found: Mapping[str, Path | None]) -> None:
    for version, path in found.items():
        print(f"Python {version}: {path or 'not found'}", flush=True)


def main(arguments: Sequence[str]) -> int:
    project = settings()
    versions = supported(project)
    match arguments:
        case ["found"]:
            say(pythons(versions))
        case ["newest"]:
            there = [str(path) for path in pythons(versions).values() if path is not None]
            if not there:
                raise SystemExit(f"No Python of {', '.join(versions)} was found.")
            print(there[-1])
        case ["oldest"]:
            print("\n".join(oldest(requirements(project, EXTRAS))))
        case ["releases"]:
            print(releases(requirements(project, EXTRAS)))
        case ["test", *wanted]:
            first = next((i for i, word in enumerate(wanted) if word.startswith("-")), len(wanted))
            return test(project, versions, wanted[:first] or [*versions, OLDEST], wanted[first:] or ["-n", "2"])
        case _:
            raise SystemExit(__doc__)
    return 0


def test(project: Mapping[str, Any], versions: Sequence[str], names: Sequence[str], options: Sequence[str]) -> int:
    """Tests under each of these; says at the end how each went."""
    if unknown := [name for name in names if name not in (*versions, OLDEST)]:
        raise SystemExit(f"There is no {', '.join(unknown)}; there are {', '.join((*versions, OLDEST))}.")
    found = pythons(versions)
    say(found)
    ended: dict[str, str] = {}
    for name in names:
        python = found[versions[0] if name == OLDEST else name]
        if python is None:
            ended[name] = "not found"
            continue
        pins = oldest(requirements(project, EXTRAS)) if name == OLDEST else []
        start = time.monotonic()
        passed = tested(name, python, pins, options)
        ended[name] = f"{'passed' if passed else 'FAILED'}, in {(time.monotonic() - start) / 60:.1f} minutes"
    print()
    for name, how in ended.items():
        print(f"{name}: {how}")
    return int(any(how.startswith("FAILED") for how in ended.values()) or all(h == "not found" for h in ended.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
