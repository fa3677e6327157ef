"""Jobs that go on in threads of their own, found again by whoever asks for the same thing, in the same process.

What a job would warn of is kept with its result: the thread that takes the result says it, at its caller's line. What
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
    """What goes on in the background; shared by threads.

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
        """What `work` gives and would warn of, or None where that is not done in time; then it goes on."""
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
        """The key, the result and the warnings of each job that is done, once; those that failed stay to be asked."""
        if not self._jobs:
            return []
        with self._lock:
            self._forget_others()
            done = [job for job in self._jobs if job.future.done() and job.future.exception() is None]
            self._jobs[:] = [job for job in self._jobs if job not in done]
        return [(job.key, *job.future.result()) for job in done]

    def _forget_others(self) -> None:
        """After a fork, the jobs of the parent have no thread in the child."""
        self._jobs[:] = [job for job in self._jobs if job.process == os.getpid()]


def until(deadline: float) -> float:
    """The seconds that are left until a time of `time.monotonic`, as waiting takes them."""
    return min(max(deadline - time.monotonic(), 0.0), 1e6)
