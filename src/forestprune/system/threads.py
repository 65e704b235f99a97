"""Running kernels on several threads.

Kernels release the interpreter lock, so plain threads run them in parallel. numba's own
`parallel=True` is not used: depending on the threading layer it finds, it ends the whole process
when it is entered from two threads at once, or after a fork.
"""

import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache

import joblib
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from forestprune.system.progress import track


def thread_count(n_jobs: int | None) -> int:
    """Return how many threads `n_jobs` asks for.

    None means every core this process may use, or its share of them inside a joblib worker.
    Negative numbers count back from the number of cores, as in joblib.
    """
    if n_jobs is None:
        cores: int = joblib.cpu_count()
        # joblib tells its workers through this variable how many cores each may use.
        share = os.environ.get("NUMBA_NUM_THREADS", "")
        return min(cores, max(1, int(share))) if share.isdecimal() else cores
    threads: int = joblib.effective_n_jobs(n_jobs)
    return threads


def run_in_threads(
    function: Callable[..., None],
    tasks: Sequence[tuple[object, ...]],
    n_jobs: int | None,
    description: str,
) -> None:
    """Call `function(*task)` for every task; the first error of any task is raised."""
    threads = min(thread_count(n_jobs), len(tasks))
    if threads <= 1:
        for task in track(tasks, description, len(tasks)):
            function(*task)
        return
    with ThreadPoolExecutor(threads) as pool:
        futures = [pool.submit(function, *task) for task in tasks]
        try:
            for future in track(futures, description, len(futures)):
                future.result()
        except BaseException:
            # Also on Ctrl-C: end with the tasks that run, not with all that wait.
            pool.shutdown(cancel_futures=True)
            raise


class Crew:
    """Threads that stay, for tasks so short that starting threads would take longer.

    The thread that calls takes tasks like the others, so that it never waits for one that the
    system has not found a core for.
    """

    def __init__(self, n_jobs: int | None, pays: bool = True) -> None:
        self.size = thread_count(n_jobs) if pays else 1
        self._pool = ThreadPoolExecutor(self.size - 1) if self.size > 1 else None

    def run(self, function: Callable[..., object], tasks: Sequence[tuple[object, ...]]) -> None:
        """Call `function(*task)` for every task; the first error of any task is raised."""
        if self._pool is None or len(tasks) == 1:
            for task in tasks:
                function(*task)
            return
        waiting = deque(tasks)

        def work() -> None:
            while True:
                try:
                    task = waiting.popleft()
                except IndexError:
                    return
                function(*task)

        helpers = [self._pool.submit(work) for _ in range(min(self.size, len(tasks)) - 1)]
        try:
            work()
        finally:
            waiting.clear()
            begun = [helper for helper in helpers if not helper.cancel()]
            for helper in begun:
                helper.result()

    def share(
        self, kernel: Callable[..., object], some: NDArray[np.int64], *arguments: object
    ) -> None:
        """Call a kernel that goes through the trees `some`, a few of them in each thread."""
        # More pieces than threads: trees differ, and so do cores.
        pieces = split_range(some.size, 4 * self.size if self.size > 1 else 1)
        self.run(kernel, [(some[first:last], *arguments) for first, last in pieces])


def one_blas_thread() -> AbstractContextManager[object]:
    """Return a context in which linear algebra runs on one thread.

    For matrices of some hundred rows that is as fast as more threads on an idle machine, and many
    times faster on a busy one, where threads wait for each other by spinning.
    """
    context: AbstractContextManager[object] = _blas().limit(limits=1, user_api="blas")
    return context


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


def split_range(n: int, parts: int) -> list[tuple[int, int]]:
    """Cut range(n) into at most `parts` contiguous pieces of nearly equal length."""
    parts = min(parts, n)
    return [(n * part // parts, n * (part + 1) // parts) for part in range(parts)]
