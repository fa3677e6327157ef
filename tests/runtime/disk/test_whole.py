"""Files that are replaced as a whole: what was there stays until the new contents are on the disk. Costs nothing."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import dynagrad as dg
from dynagrad.runtime.disk import whole
from dynagrad.runtime.disk.whole import replace_file, replace_folder

posix = pytest.mark.skipif(sys.platform == "win32", reason="modes, links and pipes are those of POSIX")


def test_a_new_file_and_a_file_that_was_there(tmp_path: Path) -> None:
    file = tmp_path / "a"
    replace_file(file, b"one")
    replace_file(file, b"two")
    assert file.read_bytes() == b"two" and list(tmp_path.iterdir()) == [file]


@posix
def test_a_file_keeps_its_mode_and_a_link_stays_a_link(tmp_path: Path) -> None:
    file, link = tmp_path / "a", tmp_path / "b"
    file.write_bytes(b"one")
    file.chmod(0o640)
    link.symlink_to("a")
    replace_file(link, b"two")
    assert link.is_symlink() and file.read_bytes() == b"two" and file.stat().st_mode & 0o777 == 0o640


@posix
def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe, found = tmp_path / "p", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    replace_file(pipe, b"text")
    reader.join()
    assert found == [b"text"] and pipe.is_fifo()


@posix
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write to any file")
def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"one")
    file.chmod(0o440)
    with pytest.raises(dg.Error, match="cannot be written, and is as it was: Permission denied"):
        replace_file(file, b"two")
    assert file.read_bytes() == b"one"


def test_where_the_disk_is_full_the_file_is_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: Any) -> None:
        raise OSError(28, "No space left on device")

    file = tmp_path / "a"
    file.write_bytes(b"one")
    monkeypatch.setattr(whole.os, "fsync", full)
    with pytest.raises(dg.Error, match="cannot be written, and is as it was: No space left"):
        replace_file(file, b"two")
    assert file.read_bytes() == b"one" and list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("name", ["no/such/folder", "zero\0"])
def test_names_that_cannot_be(name: str, tmp_path: Path) -> None:
    with pytest.raises(dg.Error, match="cannot be written"):
        replace_file(tmp_path / name, b"")


@posix
def test_a_loop_of_links(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    for name in ("a", "a/below"):  # newer Pythons resolve such links in silence
        with pytest.raises(dg.Error, match=f"{name}' cannot be written, and is as it was: Too many"):
            replace_file(tmp_path / name, b"")
        with pytest.raises(dg.Error, match=f"{name}' cannot be written, and is as it was: Too many"):
            replace_folder(tmp_path / name, {"c": b""}, lambda _: None)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a", "b"] and (tmp_path / "a").is_symlink()
