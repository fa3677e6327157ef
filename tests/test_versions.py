"""Which Pythons and which releases `make versions` and `.ci/run` take: those that `pyproject.toml` names."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / ".ci" / "versions.py"


@pytest.fixture(scope="module")
def versions() -> ModuleType:
    spec = importlib.util.spec_from_file_location("versions", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fake(path: Path, says: str, code: int = 0) -> Path:
    """A program that answers in the place of a Python."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {says}\nexit {code}\n")
    path.chmod(0o755)
    return path


def test_the_versions_are_those_of_the_classifiers(versions: ModuleType) -> None:
    names = versions.supported(versions.settings())
    assert versions.settings()["requires-python"] == f">={names[0]}"
    assert names == [f"3.{minor}" for minor in range(11, 11 + len(names))]
    lines = ["Programming Language :: Python :: 3", "Programming Language :: Python :: 3.9", "Topic :: Scientific"]
    assert versions.supported({"classifiers": ["Programming Language :: Python :: 3.10", *lines]}) == ["3.9", "3.10"]


def test_pythons_are_found_on_the_path_and_where_others_put_them(versions: ModuleType, tmp_path: Path) -> None:
    path, home = tmp_path / "bin", tmp_path / "home"
    fake(path / "python3.90", "pyenv: version 3.90 is not installed", 127)  # a shim that leads nowhere
    older = fake(home / ".pyenv/versions/3.90.9/bin/python3.90", "3.90 final")
    newer = fake(home / ".pyenv/versions/3.90.10/bin/python3.90", "3.90 final")
    fake(home / ".pyenv/versions/3.91-dev/bin/python3.91", "3.91 alpha")  # no release
    by_uv = fake(home / ".local/share/uv/python/cpython-3.92.1-linux/bin/python3.92", "3.92 final")
    by_conda = fake(home / "miniconda3/envs/some/bin/python3.93", "3.93 final")
    on_path = fake(path / "python3.94", "3.94 final")
    fake(home / ".pyenv/versions/3.94.1/bin/python3.94", "3.94 final")
    (path / "python3.95").mkdir()
    assert versions.pythons([f"3.9{n}" for n in range(6)], home, {"PATH": str(path)}) == {
        "3.90": newer,
        "3.91": None,
        "3.92": by_uv,
        "3.93": by_conda,
        "3.94": on_path,
        "3.95": None,
    }
    newer.unlink()
    assert versions.pythons(["3.90"], home, {}) == {"3.90": older}
    elsewhere = {"PYENV_ROOT": str(home / ".pyenv")}
    assert versions.pythons(["3.90"], tmp_path, elsewhere) == {"3.90": older}


def test_what_runs_this_is_a_python(versions: ModuleType) -> None:
    major, minor = sys.version_info[:2]
    assert versions.is_python(Path(sys.executable), f"{major}.{minor}") == (sys.version_info.releaselevel == "final")
    assert not versions.is_python(Path(sys.executable), "3.5")


def test_the_oldest_releases_are_the_floors_of_the_requirements(versions: ModuleType) -> None:
    lines = ["lark>=1.1.9,<2", "x-y[z] >= 0.3; python_version < '3.14'", "lark>=1.1.10", "numpy>=2"]
    assert versions.oldest(lines) == ["lark==1.1.10", "x-y==0.3; python_version < '3.14'", "numpy==2"]
    with pytest.raises(SystemExit, match="names no oldest release: 'numpy'"):
        versions.oldest(["numpy"])


def test_all_that_is_required_has_an_oldest_release(versions: ModuleType) -> None:
    """Of optional dependencies too, whether `make versions` installs them or not."""
    project = versions.settings()
    assert set(versions.EXTRAS) <= set(project["optional-dependencies"])
    for extra in project["optional-dependencies"]:
        assert versions.oldest(versions.requirements(project, [extra]))
    oldest = versions.oldest(versions.requirements(project, versions.EXTRAS))
    names = [line.partition("==")[0] for line in oldest]
    assert len(names) == len(set(names)) and {"lark", "numpy", "rich", "typer", "ziglang", "pyarrow"} <= set(names)


def test_the_script_says_what_it_found_and_what_not() -> None:
    bare = {"PATH": "/nowhere", "HOME": "/nowhere"}
    found = subprocess.run([sys.executable, SCRIPT, "found"], capture_output=True, text=True, env=bare, check=True)
    assert all(": /" in line or line.endswith(": not found") for line in found.stdout.splitlines())
    unknown = subprocess.run([sys.executable, SCRIPT, "test", "2.7"], capture_output=True, text=True)
    assert unknown.returncode == 1 and "There is no 2.7; there are 3.11, " in unknown.stderr
    said = subprocess.run([sys.executable, SCRIPT, "releases"], capture_output=True, text=True, check=True).stdout
    assert f"Python {sys.version_info.major}.{sys.version_info.minor}." in said and " numpy " in said
