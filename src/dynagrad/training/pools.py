"""Pools of workers: executors of `concurrent.futures`, processes of our own, Ray. They know nothing of models.

A pool sends objects to where its workers can read them, hands calls to workers, and says whether a worker died.
"""

from __future__ import annotations

import os
import pickle
import tempfile
import uuid
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any

from ..arguments import takes, whole_number
from ..errors import Error, raised, shown, shown_path


class Died(Exception):
    """A worker, or the whole pool, is gone."""


# -- what is sent ------------------------------------------------------------------------------------------------------


FUNCTIONS = (
    "Functions are sent by their names: define them with `def` at the top of a module, not inside a function or as a "
    "lambda"
)


def packed(thing: Any, what: str, advice: str = FUNCTIONS) -> bytes:
    """An object for another process. Raises Error where it has what cannot be sent."""
    try:
        return pickle.dumps(thing, pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # objects of users may raise anything
        raise Error(
            f"{what} cannot be sent to another process: {raised(error)}. {advice}; or train with threads"
        ) from error


def unpacked(data: bytes) -> Any:
    """An object from another process."""
    try:
        return pickle.loads(data)
    except Exception as error:
        raise Error(
            f"a worker cannot read what it was sent: {raised(error)}. What a model or an example refers to has to be "
            "in a module that workers can import"
        ) from error


class Handle(ABC):
    """What stands for an object that was sent."""

    copied: bool = True
    """Whether each worker has a copy of its own, which it may keep more with."""

    @abstractmethod
    def get(self) -> Any:
        """The object, in a worker."""

    def get_to_stay(self) -> tuple[Any, bool]:
        """The object, in a worker, and whether the worker keeps it: then it is the same one at the next call."""
        return self.get(), False


@dataclass(frozen=True, eq=False)
class _Here(Handle):
    """Of an object that stays where it is, as workers are threads."""

    thing: Any
    copied = False

    def get(self) -> Any:
        return self.thing


@dataclass(frozen=True)
class _Enclosed(Handle):
    """Of an object that goes with the call."""

    data: bytes

    def get(self) -> Any:
        return unpacked(self.data)


HELD = 4
_held: OrderedDict[str, Any] = OrderedDict()
"""In a worker's process, the objects that were asked for last: the model, and weights."""


def _kept(key: str, get: Callable[[], Any]) -> Any:
    if key not in _held:
        _held[key] = get()
        while len(_held) > HELD:
            _held.popitem(last=False)
    _held.move_to_end(key)
    return _held[key]


ROOM = 1 << 25
"""So many bytes, as they are sent, of what is to stay are kept in a worker; what comes later is read again."""


class _Stay:
    """In a worker's process, what is to stay there: examples that come again in each pass."""

    def __init__(self) -> None:
        self.held: dict[str, Any] = {}
        self._room = ROOM

    def get(self, key: str, size: int, read: Callable[[], Any]) -> tuple[Any, bool]:
        """An object, and whether it is kept."""
        if key in self.held:
            return self.held[key], True
        if size > self._room:
            return read(), False
        self._room -= size
        self.held[key] = read()
        return self.held[key], True


STAYING = _Stay()


@dataclass(frozen=True)
class _File(Handle):
    """Of an object in a file, for processes of this machine."""

    path: str
    size: int

    def _read(self) -> Any:
        return unpacked(Path(self.path).read_bytes())

    def get(self) -> Any:
        return _kept(self.path, self._read)

    def get_to_stay(self) -> tuple[Any, bool]:
        return STAYING.get(self.path, self.size, self._read)


@dataclass(frozen=True)
class _InStore(Handle):
    """Of an object in Ray's store; the reference stands in a list so that Ray does not follow it at every call."""

    key: str
    references: list[Any] = field(compare=False)
    size: int

    def _fetched(self) -> Any:
        import ray  # type: ignore[import-not-found,unused-ignore]  # an optional package

        return unpacked(ray.get(self.references[0]))

    def get(self) -> Any:
        return _kept(self.key, self._fetched)

    def get_to_stay(self) -> tuple[Any, bool]:
        return STAYING.get(self.key, self.size, self._fetched)


# -- pools -------------------------------------------------------------------------------------------------------------


class Pool(ABC):
    """Workers somewhere."""

    size: int

    @abstractmethod
    def send(self, thing: Any, what: str) -> Handle:
        """Puts an object where workers can read it."""

    def enclosed(self, thing: Any, what: str) -> Handle:
        """An object that goes with one call."""
        return _Enclosed(packed(thing, what))

    @abstractmethod
    def drop(self, handle: Handle) -> None:
        """Removes an object that was sent."""

    @abstractmethod
    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Hands a call to a worker, and gives what stands for its result. Raises Died where the pool is gone."""

    @abstractmethod
    def result(self, pending: Any) -> Any:
        """Waits for a call. Raises Died where its worker died."""

    @abstractmethod
    def lost(self, pending: Any) -> bool:
        """Whether there will be no result of a call, as its worker died."""

    @abstractmethod
    def renew(self) -> None:
        """After a death: new workers, if there are none. Raises Error where that cannot be."""

    @abstractmethod
    def cancel(self, pending: Any) -> None:
        """Forgets a call."""

    @abstractmethod
    def close(self) -> None:
        """Ends the workers that were begun here, and removes all that was sent."""


_Pending = tuple[int, Future[Any]]
"""The number of the executor that a call was handed to, and its future."""


class Futures(Pool):
    """An executor of `concurrent.futures`; or a function that makes one, which is asked again when it breaks."""

    def __init__(self, executor: Any, make: Callable[[], Any] | None) -> None:
        self._make = make
        self._executor = executor if make is None else _made(make)
        self._number, self._broken = 0, False
        self._threads = isinstance(self._executor, ThreadPoolExecutor)
        self._folder = None if self._threads else tempfile.TemporaryDirectory(prefix="dynagrad-training-")
        self.size = getattr(self._executor, "_max_workers", None) or os.cpu_count() or 1

    def send(self, thing: Any, what: str) -> Handle:
        if self._folder is None:
            return _Here(thing)
        path = Path(self._folder.name, uuid.uuid4().hex)
        data = packed(thing, what)
        try:
            path.write_bytes(data)
        except OSError as error:
            raise Error(f"{what} cannot be written for the workers, to {shown_path(path)}: {error.strerror}") from None
        return _File(str(path), len(data))

    def enclosed(self, thing: Any, what: str) -> Handle:
        return _Here(thing) if self._threads else super().enclosed(thing, what)

    def drop(self, handle: Handle) -> None:
        if isinstance(handle, _File):
            Path(handle.path).unlink(missing_ok=True)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> _Pending:
        try:
            return self._number, self._executor.submit(function, *arguments)
        except BrokenExecutor as error:
            self._broken = True
            raise Died(str(error)) from error
        except RuntimeError as error:  # it was shut down
            raise Error(f"the executor takes no work: {error}") from error

    def result(self, pending: _Pending) -> Any:
        number, future = pending
        try:
            return future.result()
        except BrokenExecutor as error:
            self._broken = self._broken or number == self._number
            raise Died(str(error)) from error

    def lost(self, pending: _Pending) -> bool:
        number, future = pending
        return number < self._number and (
            not future.done() or future.cancelled() or isinstance(future.exception(), BrokenExecutor)
        )

    def renew(self) -> None:
        if not self._broken:
            return
        if self._make is None:
            raise Error(
                "a worker died, and the executor takes no more work. Give executor=4 for so many processes, or a "
                "function that makes an executor: then there is a new one, and what was lost is run again"
            )
        self._end()
        self._executor, self._broken, self._number = _made(self._make), False, self._number + 1

    def cancel(self, pending: _Pending) -> None:
        pending[1].cancel()

    def _end(self) -> None:
        if hasattr(self._executor, "shutdown"):
            self._executor.shutdown(wait=True, cancel_futures=True)

    def close(self) -> None:
        if self._make is not None:
            self._end()
        if self._folder is not None:
            self._folder.cleanup()


def _made(make: Callable[[], Any]) -> Any:
    found = make()
    if not hasattr(found, "submit"):
        raise Error(f"the function that makes an executor gave {shown(found)}, which has no submit")
    return found


class Ray(Pool):
    """A cluster of Ray, which runs calls again itself whose worker died."""

    def __init__(self, ray: Any, retries: int = 3) -> None:
        self._ray, self._retries = ray, retries
        self._began = not ray.is_initialized()
        if self._began:
            ray.init(log_to_driver=False)
        self.size = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._remote: dict[Callable[..., Any], Any] = {}

    def send(self, thing: Any, what: str) -> Handle:
        data = packed(thing, what)
        return _InStore(uuid.uuid4().hex, [self._ray.put(data)], len(data))

    def drop(self, handle: Handle) -> None:
        if isinstance(handle, _InStore):
            handle.references.clear()  # Ray removes what nothing refers to

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        if function not in self._remote:
            self._remote[function] = self._ray.remote(max_retries=self._retries)(function)
        return self._remote[function].remote(*arguments)

    def result(self, pending: Any) -> Any:
        exceptions = self._ray.exceptions
        try:
            return self._ray.get(pending)
        except exceptions.RayTaskError as error:
            if isinstance(error.cause, Exception):
                raise error.cause from error
            raise
        except (exceptions.RaySystemError, exceptions.RayError) as error:
            raise Died(str(error)) from error

    def lost(self, pending: Any) -> bool:
        ready, _ = self._ray.wait([pending], timeout=0)
        if not ready:
            return False
        try:
            self.result(pending)
        except Died:
            return True
        except Exception:  # of the call itself, which is told when its turn comes
            return False
        return False

    def renew(self) -> None:
        """Ray has new workers by itself."""

    def cancel(self, pending: Any) -> None:
        self._ray.cancel(pending, force=False)

    def close(self) -> None:
        if self._began:
            self._ray.shutdown()


def _processes(count: int) -> Callable[[], Executor]:
    """Processes that begin afresh, as a fork of a process that has threads may hang."""
    return lambda: ProcessPoolExecutor(count, mp_context=get_context("spawn"))


def pool_of(executor: Any) -> Pool:
    """The pool that is meant by a number of processes, an executor, a function that makes one, or the module `ray`."""
    if isinstance(executor, ModuleType) and executor.__name__ == "ray":
        return Ray(executor)
    if hasattr(executor, "submit") and not isinstance(executor, type):
        return Futures(executor, None)
    if isinstance(executor, int) and not isinstance(executor, bool):
        return Futures(None, _processes(whole_number("executor", executor, 1)))
    if callable(executor) and (not isinstance(executor, type) or hasattr(executor, "submit")):
        if not takes(executor, 0):
            raise Error(
                f"a function that makes an executor is called without arguments, and {shown(executor)} takes some"
            )
        return Futures(None, executor)
    raise Error(
        "executor is a number of processes, an executor of concurrent.futures, a function that makes one, or the "
        f"module ray, not {shown(executor)}"
    )
