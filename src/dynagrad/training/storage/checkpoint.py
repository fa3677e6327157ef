"""Checkpoints: the state of a training run in a file, from which it goes on to the same bits.

The file is replaced as a whole at each write. It opens with a line that names the format and a digest of the rest,
which is a zip of numpy arrays and one JSON; nothing in it is executed. A `Trace`, which only grows, is in a file of its
own beside it (`NAME.evaluations`): what is new is added at its end, before the checkpoint that counts it replaces the
one before.
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
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from ...charts.program import Program, binding_of
from ...errors import Error, FactError, raised, shown
from ...facts.readers import read
from ...facts.relation import Relation
from ...runtime.disk.whole import replace_file, why
from ..examples import DataPasses
from ..parameters.log_linear import LogLinear
from ..parameters.parametrisation import Parametrisation
from ..parameters.rows import Doubles
from ..specification import Specification, Theta
from ..steps import Trace

KIND, VERSION = b"dynagrad checkpoint ", b"3"
TRACE = b"dynagrad trace 1\n"
DIGEST = 32
LOOKED_AT = 3
"""How many examples a run is known by."""


# -- what a checkpoint is of -------------------------------------------------------------------------------------------


def about(
    spec: Specification, method: str, seed: int, options: Mapping[str, Any], start: Theta, data: DataPasses, dev: bool
) -> dict[str, Any]:
    """What a run is, as far as that is cheap to say: a run goes on from a checkpoint of its own only."""
    return {
        "program": hashlib.sha256(spec.program.source.encode()).hexdigest(),
        "semiring": spec.program.semiring,
        "goal": spec.goal,
        "objective": _short(described(spec.objective)),
        "priors": {name: _short(described(p)) for name, p in spec.priors.items()},
        "method": method,
        "seed": seed,
        "options": {k: _short(described(v)) for k, v in options.items()},
        "parameters": {name: p.size for name, p in spec.parametrisations.items()},
        "parametrisations": _digest(part for p in spec.parametrisations.values() for part in _of_parametrisation(p)),
        "fixed facts": _digest(
            part
            for fixed in (spec.fixed, spec.losses, *(binding_of(bound).given for bound in spec.others.values()))
            for key, r in fixed.items()
            if key not in spec.places
            for part in (key.encode(), _of_relation(r))
        ),
        "start": _digest(x.tobytes() for x in start.values()),
        "first examples": _of_examples(data),
        "held-out data": dev,
    }


def described(x: Any) -> str:
    """A setting as a text that is the same in every process; of a function its name and a digest of its code."""
    if isinstance(x, str | int | float | None):
        return repr(x)
    if isinstance(x, np.ndarray):
        return f"{x.dtype}{list(x.shape)} {_digest([x.tobytes()])}"
    if isinstance(x, Mapping):
        return "{" + ", ".join(f"{described(k)}: {described(v)}" for k, v in x.items()) + "}"
    if isinstance(x, list | tuple):
        return "(" + ", ".join(map(described, x)) + ")"
    if isinstance(x, Program):
        return f"program {_digest([x.source.encode()])[:16]} in {x.semiring}"
    if is_dataclass(x) and not isinstance(x, type):
        told = ", ".join(f"{f.name}={described(getattr(x, f.name))}" for f in fields(x))
        return f"{type(x).__name__}({told})"
    if isinstance(x, FunctionType):
        parts = (x.__code__.co_code, repr(x.__code__.co_names).encode(), *_constants(x.__code__))
        return f"{x.__qualname__} {_digest(parts)[:16]}"
    return str(getattr(x, "__qualname__", type(x).__qualname__))


def _short(text: str) -> str:
    """The text, or its beginning and a digest of it all."""
    return text if len(text) <= 200 else f"{text[:100]}... {_digest([text.encode(errors='replace')])}"


def _constants(code: CodeType) -> Iterator[bytes]:
    """The constants of a function, with the code of those inside it, whose own text has an address."""
    for x in code.co_consts:
        if isinstance(x, CodeType):
            yield x.co_code
            yield from _constants(x)
        else:
            yield repr(sorted(map(repr, x)) if isinstance(x, frozenset) else x).encode()


def _of_parametrisation(p: Parametrisation) -> Iterator[bytes]:
    """What weights are made of: rows, groups, features, and what is frozen."""
    yield type(p).__qualname__.encode()
    for key, relation in p.rows.relations.items():
        yield key.encode()
        yield _of_relation(replace(relation, values=None))  # values are where training begins
    if p.groups is not None:
        yield p.groups.parameter.tobytes() + p.groups.group.tobytes()
    if p.frozen is not None:
        yield p.frozen.tobytes()
    if isinstance(p, LogLinear):
        yield from (repr(name).encode(errors="replace") for name in p.features)
        yield from (part.tobytes() for part in p.entries())


def _of_examples(data: DataPasses) -> str:
    """A digest of the first examples, the same in every process."""
    parts: list[bytes] = []
    for n, example in enumerate(data):
        if n == LOOKED_AT:
            break
        parts.append(repr(float(example.weight)).encode())
        for facts in (example.facts, example.observed):
            for key in sorted(map(str, facts)):
                parts.append(key.encode(errors="replace"))
                try:
                    relation = read(key, facts[key], finite="no_nan")
                except Error:  # the run will say what is wrong with it
                    continue
                parts.append(_of_relation(relation))
    return _digest(parts)


def _of_relation(relation: Relation) -> bytes:
    values = b"" if relation.values is None else np.asarray(relation.values, np.float64).tobytes()
    return repr([c.to_list() for c in relation.columns]).encode(errors="replace") + values


def _digest(parts: Any) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(len(part).to_bytes(8, "little") + part)
    return found.hexdigest()


def check_same(saved: Any, now: Mapping[str, Any], path: Path) -> None:
    """Raises Error where a checkpoint is of another run."""
    for name, value in json.loads(json.dumps(now)).items():
        if saved.get(name) != value:
            secret = name in ("program", "parametrisations", "fixed facts", "start", "first examples")
            told = "" if secret else f": {shown(saved.get(name))} and not {shown(value)}"
            raise Error(
                f"the checkpoint {shown(str(path))} is of another run, whose {name} differ{told}; give another file, "
                "or remove it to begin again"
            )


# -- the file ----------------------------------------------------------------------------------------------------------


class Checkpoint:
    """The checkpoint of a run, in a file that may be there already."""

    def __init__(self, path: Path, about: Mapping[str, Any]) -> None:
        self.path, self._about = path, about
        self._traces: dict[str, _Trace] = {}

    def read(self) -> dict[str, Any] | None:
        """What was written last; None where nothing was. Raises Error for one that is damaged, or of another run."""
        where = shown(str(self.path))
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
                    raise Error(f"{shown(str(self.path))} is no file of a checkpoint: move it, or name another one")
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
            raise Error(f"{shown(str(self.path))} cannot be written: {why(error)}") from None
        self.count += len(trace.new)
        trace.new.clear()
        return self.run, self.count, self.size

    def check(self) -> Iterator[Doubles]:
        """The arrays that were counted, after a look at all of them. Raises FactError where one is damaged."""
        for _ in self._arrays():
            pass
        return self._arrays()

    def _arrays(self) -> Iterator[Doubles]:
        where = shown(str(self.path))
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
