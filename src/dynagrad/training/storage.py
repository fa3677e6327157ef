"""Models in folders, and checkpoints in files: each is whole and new, or as it was before.

A model's folder has the program's text, one TOML that a person can read, and an Arrow file of rows and numbers for each
parametrisation. Nothing in it is executed when it is read. A checkpoint is a zip of numpy arrays and one JSON.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import Error, FactError, shown
from .specification import Specification, Theta

FORMAT = "dynagrad checkpoint 1"


# -- checkpoints -------------------------------------------------------------------------------------------------------


def about(spec: Specification, method: str, seed: int, options: Mapping[str, Any]) -> dict[str, Any]:
    """What a checkpoint is of: a run goes on from one of its own only."""
    sizes = {name: p.size for name, p in spec.parametrisations.items()}
    text = hashlib.sha256(spec.program.source.encode()).hexdigest()
    plain = {k: v if isinstance(v, str | int | float | bool) else repr(type(v)) for k, v in options.items()}
    return {"program": text, "method": method, "seed": seed, "sizes": sizes, "goal": spec.goal, "options": plain}


def check_same(saved: Mapping[str, Any], now: Mapping[str, Any], path: Path) -> None:
    """Raises Error where a checkpoint is of another run."""
    for name, value in now.items():
        if saved.get(name) != value:
            raise Error(
                f"the checkpoint {shown(str(path))} is of another run, whose {name} is {shown(saved.get(name))} and "
                f"not {shown(value)}; give another file, or remove it"
            )


def write_checkpoint(path: Path, state: Mapping[str, Any]) -> None:
    """Writes a checkpoint in place of the one before: through another file, which is then renamed."""
    arrays: list[np.ndarray] = []
    text = json.dumps({"format": FORMAT, "state": _packed(state, arrays)})
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as out:
        out.writestr("state.json", text)
        for n, array in enumerate(arrays):
            held = io.BytesIO()
            np.save(held, array, allow_pickle=False)
            out.writestr(f"{n}.npy", held.getvalue())
    replace_file(path, buffer.getvalue())


def replace_file(path: Path, data: bytes) -> None:
    """A file with new contents, or as it was, whatever happens in between."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise Error(f"{shown(str(path))} cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise Error(f"{shown(str(path))} cannot be written, and is as it was: {error.strerror}") from None


def read_checkpoint(path: Path) -> dict[str, Any] | None:
    """What a checkpoint has; None where there is none."""
    if not path.exists():
        return None
    try:
        with zipfile.ZipFile(path) as held:
            data = json.loads(held.read("state.json"))
            if data["format"] != FORMAT:
                raise Error(f"{shown(str(path))} is {data['format']}, and this version reads {FORMAT}")
            names = [n for n in held.namelist() if n.endswith(".npy")]
            arrays = [np.load(io.BytesIO(held.read(f"{n}.npy")), allow_pickle=False) for n in range(len(names))]
        found: dict[str, Any] = _unpacked(data["state"], arrays)
        return found
    except (OSError, ValueError, KeyError, TypeError, IndexError, zipfile.BadZipFile) as error:
        raise FactError(f"{shown(str(path))} is no checkpoint, or a damaged one: {error}") from None


def _packed(x: Any, arrays: list[np.ndarray]) -> Any:
    """Nested dicts, lists and numbers as JSON, with arrays apart."""
    if isinstance(x, np.ndarray):
        arrays.append(x)
        return {"array": len(arrays) - 1}
    if isinstance(x, Mapping):
        return {"dict": [[k, _packed(v, arrays)] for k, v in x.items()]}
    if isinstance(x, list | tuple):
        return {"list": [_packed(v, arrays) for v in x]}
    if isinstance(x, float | np.floating):
        return {"float": float(x).hex()}  # every bit
    return int(x) if isinstance(x, np.integer) else x


def _unpacked(x: Any, arrays: list[np.ndarray]) -> Any:
    if not isinstance(x, dict):
        return x
    ((kind, value),) = x.items()
    if kind == "array":
        return arrays[value]
    if kind == "dict":
        return {k: _unpacked(v, arrays) for k, v in value}
    if kind == "list":
        return [_unpacked(v, arrays) for v in value]
    return float.fromhex(value)


# -- models ------------------------------------------------------------------------------------------------------------


def save(spec: Specification, theta: Theta, folder: Path) -> None:
    raise NotImplementedError


def load(folder: Path) -> tuple[Specification, Theta]:
    raise NotImplementedError
