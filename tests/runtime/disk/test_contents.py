"""Hashes of files that are kept between processes: those of what the files contain, always (a tenth of a second)."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from dynagrad.runtime.disk import contents


@pytest.fixture
def reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders of which files were read, with an empty cache folder."""
    monkeypatch.setenv("DYNAGRAD_CACHE", str(tmp_path / "cache"))
    folders: list[str] = []
    real = contents._read
    monkeypatch.setattr(contents, "_read", lambda stats, folder: (folders.append(folder), real(stats, folder))[1])
    return folders


def hashed(folder: Path) -> str:
    return contents.hash_of(contents.stats_in(str(folder)), str(folder))


def make(folder: Path) -> Path:
    (folder / "below").mkdir(parents=True)
    (folder / "a").write_text("one")
    (folder / "below" / "b").write_text("two")
    return folder


@pytest.mark.skipif(os.name != "posix", reason="times of changes are of POSIX")
def test_old_files_are_read_once(tmp_path, monkeypatch, reads):
    folder = make(tmp_path / "files")
    monkeypatch.setattr(contents, "NEW", 0)
    first = hashed(folder)
    assert hashed(folder) == first and len(reads) == 1
    (kept,) = (tmp_path / "cache").glob("*.contents")
    kept.write_bytes(kept.read_bytes()[:-1])
    assert hashed(folder) == first and len(reads) == 2, "a damaged record is none"


def test_new_files_are_read_each_time(tmp_path, reads):
    folder = make(tmp_path / "files")
    assert hashed(folder) == hashed(folder) and len(reads) == 2
    assert not list((tmp_path / "cache").glob("*.contents"))


def test_a_change_is_seen_whatever_the_time_of_a_file_says(tmp_path, monkeypatch, reads):
    folder = make(tmp_path / "files")
    monkeypatch.setattr(contents, "NEW", 0)
    first, stat = hashed(folder), (folder / "a").stat()
    time.sleep(0.02)  # several ticks of the clock of files
    (folder / "a").write_text("eno")
    os.utime(folder / "a", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    second = hashed(folder)
    os.rename(folder / "a", folder / "c")
    assert len({first, second, hashed(folder)}) == 3


def test_the_same_files_elsewhere_have_the_same_hash(tmp_path, reads):
    assert hashed(make(tmp_path / "here")) == hashed(make(tmp_path / "there"))
