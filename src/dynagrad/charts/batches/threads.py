"""Examples on several threads, deterministic to the bit.

All that depends on order is done by one thread in the order of the examples: preparing them (the first one may compile,
and the others use that) and reading their results. So what is added up is the same for any number of threads. What an
example is, and how it runs, is for the caller.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future, wait
from queue import SimpleQueue
from threading import Semaphore, Thread
from typing import TypeVar

Prepared = TypeVar("Prepared")
Result = TypeVar("Result")

SIGNAL_INTERVAL = 0.2  # seconds between checks for signals


def in_order(
    count: int,
    prepare: Callable[[int], Prepared],
    finish: Callable[[int, Prepared], Result],
    *,
    threads: int,
    ahead: int,
    stop: Callable[[], None],
) -> Generator[Result | Exception, None, None]:
    """The results of `count` examples in their order, or the errors that they ended with.

    `prepare` is called by this thread, for one example after the other, and `finish` by `threads` others. At most
    `ahead` examples are begun beyond the one whose result comes next. `stop` is to end the examples that are running.

    >>> numbers = [3, 0, 2]
    >>> found = in_order(3, numbers.__getitem__, lambda _, x: 6 / x, threads=2, ahead=4, stop=lambda: None)
    >>> list(found)
    [2.0, ZeroDivisionError('division by zero'), 3.0]
    """
    room = Semaphore(threads + 1)

    def started(n: int) -> Prepared | Exception:
        try:
            return prepare(n)
        except Exception as error:
            return error

    def finished(n: int, prepared: Prepared | Exception) -> Result | Exception:
        try:
            return prepared if isinstance(prepared, Exception) else finish(n, prepared)
        except Exception as error:  # of a function that the program calls, too
            return error
        finally:
            room.release()

    if threads == 1:
        for n in range(count):
            yield finished(n, started(n))
        return
    waiting: deque[Future[Result | Exception]] = deque()
    tasks: SimpleQueue[tuple[Future[Result | Exception], int, Prepared | Exception] | None] = SimpleQueue()

    def work() -> None:
        while (task := tasks.get()) is not None:
            future, n, prepared = task
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(finished(n, prepared))
            except BaseException as error:  # KeyboardInterrupt and the like: raised where the results are read
                future.set_exception(error)

    # Daemons, unlike the threads of an executor: whoever reads the results waits for them, and the interpreter waits
    # for that thread, unless it is a daemon itself.
    workers = [Thread(target=work, name=f"dynagrad-batch-{n}", daemon=True) for n in range(threads)]
    try:
        for worker in workers:
            worker.start()
        for n in range(count):
            while waiting and (waiting[0].done() or len(waiting) >= ahead):
                yield _awaited(waiting.popleft())
            while not room.acquire(timeout=SIGNAL_INTERVAL):
                pass
            waiting.append(Future())
            tasks.put((waiting[-1], n, started(n)))
        while waiting:
            yield _awaited(waiting.popleft())
    except BaseException:  # Ctrl-C, or the reader closes this generator
        stop()
        for future in waiting:
            future.cancel()
        raise
    finally:
        for _ in workers:
            tasks.put(None)
        for worker in workers:
            if worker.ident is not None:
                worker.join()


def _awaited(future: Future[Result]) -> Result:
    """The result of a future, waited for in intervals, so that a signal is handled: it may reach another thread."""
    while not future.done():
        wait([future], SIGNAL_INTERVAL)
    return future.result()
