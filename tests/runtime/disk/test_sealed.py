"""Sealed files: which are read and which refused, and the state after a write (less than a second)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dynagrad.runtime.disk import sealed

POSIX = pytest.mark.skipif(os.name != "posix", reason="owners, modes, links and pipes")
ROOT = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs files of another user")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kept"
    sealed.save(path, b"content")
    return path


def refused(path: Path) -> bool:
    return sealed.read(path) is None and sealed.load(path) is None


def linked(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def piped(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def test_what_was_saved_is_loaded(file: Path) -> None:
    assert sealed.load(file) == b"content"
    assert sealed.read(file) == sealed.seal("kept", b"content") + b"content"


@POSIX
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o622, 0o777])
def test_files_that_others_may_write_to_are_refused(file: Path, mode: int) -> None:
    file.chmod(mode)
    assert refused(file)
    file.chmod(0o644)
    assert not refused(file), "others may read it"


@ROOT
def test_files_of_another_user_are_refused(file: Path) -> None:
    os.chown(file, 4242, -1)
    assert refused(file)
    os.chown(file, os.geteuid(), 4242)
    assert not refused(file), "its group may not write to it"


@POSIX
@pytest.mark.parametrize("planted", [linked, piped, a_folder, os.unlink])
def test_links_pipes_and_folders_are_refused_at_once(file: Path, planted: Callable[[Path], None]) -> None:
    planted(file)
    assert refused(file)


@pytest.mark.parametrize(
    "damage", [lambda d: d[:-1], lambda d: d + b"x", lambda d: d[:70] + b"T" + d[71:], lambda d: b""]
)
def test_what_is_not_whole_is_read_but_not_loaded(file: Path, damage: Callable[[bytes], bytes]) -> None:
    file.write_bytes(damage(file.read_bytes()))
    assert sealed.read(file) is not None and sealed.load(file) is None


@pytest.mark.parametrize("write", [sealed.write, sealed.save])
def test_writing_that_fails_leaves_nothing_and_what_was_there(
    file: Path, write: Callable[[Path, bytes], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*names: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        write(file, b"other")
    assert sealed.load(file) == b"content" and [path.name for path in file.parent.iterdir()] == ["kept"]


@POSIX
def test_a_link_is_replaced_and_not_followed(file: Path) -> None:
    link = file.with_name("link")
    link.symlink_to(file)
    sealed.write(link, b"other")
    assert sealed.load(file) == b"content" and sealed.read(link) == b"other"


def test_a_seal_is_for_one_name(file: Path) -> None:
    assert sealed.load(file.rename(file.with_name("other"))) is None
