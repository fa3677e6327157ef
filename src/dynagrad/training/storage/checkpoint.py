"""Checkpoints: the state of a training run in a file, from which it goes on to the same bits.

The file is replaced as a whole at each write. It opens with a line that names the format and a digest of the rest,
which is a zip of numpy arrays and one JSON; nothing in it is executed. A `Trace`, which only grows, is in a file of its
own beside it (`NAME.evaluations`): what is new is added at its end, before the checkpoint that counts it replaces the
one before. What run a checkpoint is of is for `seal.py`.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import secrets
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import Error, FactError, raised, shown, shown_path
from ...runtime.disk.whole import replace_file, why
from ..parameters.rows import Doubles
from ..steps import Trace
from .seal import check_same

KIND, VERSION = b"dynagrad checkpoint ", b"4"
TRACE = b"dynagrad trace 1\n"
DIGEST = 32


# -- the file ----------------------------------------------------------------------------------------------------------


class Checkpoint:
    """The checkpoint of a run, in a file that may be there already."""

    def __init__(self, path: Path, about: Mapping[str, Any]) -> None:
        self.path, self._about = path, about
        self._traces: dict[str, _Trace] = {}

    def read(self) -> dict[str, Any] | None:
        """What was written last; None where nothing was. Raises Error for one that is damaged, or of another run."""
        where = shown_path(self.path)
        try:
            if not self.path.exists():
                return None
            if not self.path.is_file() and not self.path.is_dir():  # a device may have no end
                raise FactError(f"the checkpoint {where} is no file: give another name")
            data = self.path.read_bytes()
            line, _, rest = data.partition(b"\n")
            if not line.startswith(KIND):
                raise FactError(f"{where} is no checkpoint; it is not overwritten: give another name")
            if line != KIND + VERSION:
                raise FactError(
                    f"{where} is {shown(line.decode(errors='replace'))}, and this version of Dynagrad reads "
                    f"{VERSION.decode()}: remove it to begin again"
                )
            if hashlib.sha256(rest[DIGEST:]).digest() != rest[:DIGEST]:
                raise FactError(f"the checkpoint {where} is damaged: remove it to begin again")
            with zipfile.ZipFile(io.BytesIO(rest[DIGEST:])) as held:
                found = json.loads(held.read("state.json"))
                arrays = [
                    np.load(io.BytesIO(held.read(f"{n}.npy")), allow_pickle=False) for n in range(found["arrays"])
                ]
            state: dict[str, Any] = self._unpacked(found["state"], arrays)
        except Error:
            raise
        except OSError as error:
            raise FactError(f"the checkpoint {where} cannot be read: {why(error)}") from None
        except Exception as error:  # of whatever stands in a file that we did not write
            raise FactError(f"{where} is no checkpoint, or a damaged one: {raised(error)}") from None
        check_same(state["about"], self._about, self.path)
        return state

    def write(self, state: Mapping[str, Any]) -> None:
        """A checkpoint in place of the one before."""
        arrays: list[np.ndarray] = []
        packed = self._packed({"about": dict(self._about), **state}, arrays, "")
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as out:
            out.writestr("state.json", json.dumps({"arrays": len(arrays), "state": packed}))
            for n, array in enumerate(arrays):
                held = io.BytesIO()
                np.save(held, array, allow_pickle=False)
                out.writestr(f"{n}.npy", held.getvalue())
        data = buffer.getvalue()
        replace_file(self.path, KIND + VERSION + b"\n" + hashlib.sha256(data).digest() + data)

    def forget(self) -> None:
        """Starts new trace files; the checkpoint written last refers to none."""
        self._traces.clear()

    def _packed(self, x: Any, arrays: list[np.ndarray], name: Any) -> Any:
        """Nested dicts, lists and numbers as JSON, with arrays apart."""
        if isinstance(x, np.ndarray):
            arrays.append(x)
            return {"array": len(arrays) - 1}
        if isinstance(x, Mapping):
            return {"dict": [[k, self._packed(v, arrays, k)] for k, v in x.items()]}
        if isinstance(x, list | tuple):
            return {"list": [self._packed(v, arrays, None) for v in x]}
        if isinstance(x, Trace):
            file = self._traces.setdefault(name, _Trace(self._beside(name)))
            return {"trace": [name, *file.add(x)]}
        if isinstance(x, float | np.floating):
            return {"float": float(x).hex()}  # every bit
        return int(x) if isinstance(x, np.integer) else x

    def _unpacked(self, x: Any, arrays: list[np.ndarray]) -> Any:
        if not isinstance(x, dict):
            return x
        ((kind, value),) = x.items()
        if kind == "array":
            return arrays[value]
        if kind == "dict":
            return {k: self._unpacked(v, arrays) for k, v in value}
        if kind == "list":
            return [self._unpacked(v, arrays) for v in value]
        if kind == "trace":
            name, run, count, size = value
            self._traces[name] = _Trace(self._beside(name), run, count, size)
            return Trace(self._traces[name].check())
        return float.fromhex(value)

    def _beside(self, name: str) -> Path:
        return self.path.with_name(f"{self.path.name}.{name}")


def _begin(path: Path, size: int) -> bytes:
    with path.open("rb") as file:
        return file.read(size)


class _Trace:
    """A file with arrays of one length, each with a checksum, at whose end new ones are added."""

    def __init__(self, path: Path, run: str = "", count: int = 0, size: int = 0) -> None:
        self.path, self.run, self.count, self.size = path, run, count, size

    @property
    def _head(self) -> bytes:
        return TRACE + self.run.encode()

    def add(self, trace: Trace) -> tuple[str, int, int]:
        """Adds what is new. What stands beyond the arrays that were counted is of a run that was killed."""
        try:
            if not self.run:
                self.run = secrets.token_hex(8)
                if self.path.exists() and not TRACE.startswith(_begin(self.path, len(TRACE))):  # it may be cut short
                    raise Error(f"{shown_path(self.path)} is no file of a checkpoint: move it, or name another one")
                self.path.write_bytes(self._head)
            if trace.new:
                self.size = len(trace.new[0])
                with self.path.open("r+b") as file:
                    file.truncate(len(self._head) + self.count * (8 * self.size + 4))
                    file.seek(0, os.SEEK_END)
                    for array in trace.new:
                        data = array.tobytes()
                        file.write(data + zlib.crc32(data).to_bytes(4, "little"))
                    file.flush()
                    os.fsync(file.fileno())
        except OSError as error:
            raise Error(f"{shown_path(self.path)} cannot be written: {why(error)}") from None
        self.count += len(trace.new)
        trace.new.clear()
        return self.run, self.count, self.size

    def check(self) -> Iterator[Doubles]:
        """The arrays that were counted, after a look at all of them. Raises FactError where one is damaged."""
        for _ in self._arrays():
            pass
        return self._arrays()

    def _arrays(self) -> Iterator[Doubles]:
        where = shown_path(self.path)
        try:
            with self.path.open("rb") as file:
                if file.read(len(self._head)) != self._head:
                    raise FactError(
                        f"{where} is not of the checkpoint that it stands beside; remove both to begin again"
                    )
                for _ in range(self.count):
                    data = file.read(8 * self.size)
                    if len(data) < 8 * self.size or zlib.crc32(data).to_bytes(4, "little") != file.read(4):
                        raise FactError(f"{where} is damaged, and its checkpoint needs it; remove both to begin again")
                    yield np.frombuffer(data, np.float64)
        except OSError as error:
            raise FactError(f"{where}, which a checkpoint needs, cannot be read: {why(error)}") from None
