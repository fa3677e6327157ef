"""Background jobs, such as compiling: threads whose results are found by key, also after a caller gave up waiting.

The warnings of a job are kept with its result: the thread that takes the result issues them, at its caller's line. What
the jobs do is not known here.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from ...errors import Said, collected
from ...forks import renewed

Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class _Job(Generic[Result]):
    key: Any
    future: Future[tuple[Result, Said]] = field(default_factory=Future)
    process: int = field(default_factory=os.getpid)

    def run(self, work: Callable[[], Result]) -> None:
        try:
            with collected() as said:
                result = work()
            self.future.set_result((result, said))
        except BaseException as error:  # raised where the result is asked for
            self.future.set_exception(error)


class Jobs(Generic[Result]):
    """The background jobs of this process; shared by threads.

    >>> jobs = Jobs()
    >>> jobs.result("sum", lambda: 1 + 1, time.monotonic() + 10)
    (2, [])
    >>> jobs.finished()
    []
    """

    def __init__(self) -> None:
        self._jobs: list[_Job[Result]] = []
        self._lock = renewed(threading.RLock())

    def result(self, key: Any, work: Callable[[], Result], deadline: float) -> tuple[Result, Said] | None:
        """The result of `work` and its warnings; None where that takes longer than the deadline, and it goes on."""
        with self._lock:
            self._forget_others()
            job = next((job for job in self._jobs if job.key == key), None)
            if job is None:
                job = _Job(key)
                self._jobs.append(job)
                threading.Thread(target=job.run, args=(work,), name="dynagrad-compile", daemon=True).start()
        done, _ = wait([job.future], until(deadline))
        if not done:
            return None
        with self._lock:
            self._jobs[:] = [one for one in self._jobs if one is not job]
        return job.future.result()

    def finished(self) -> list[tuple[Any, Result, Said]]:
        """The key, the result and the warnings of each job that is done, once; failed jobs stay for `result`."""
        if not self._jobs:
            return []
        with self._lock:
            self._forget_others()
            done = [job for job in self._jobs if job.future.done() and job.future.exception() is None]
            self._jobs[:] = [job for job in self._jobs if job not in done]
        return [(job.key, *job.future.result()) for job in done]

    def _forget_others(self) -> None:
        """Drops the jobs of a parent process: after a fork they have no thread here."""
        self._jobs[:] = [job for job in self._jobs if job.process == os.getpid()]


def until(deadline: float) -> float:
    """The seconds left until a time of `time.monotonic`, in the range that waiting allows."""
    return min(max(deadline - time.monotonic(), 0.0), 1e6)
