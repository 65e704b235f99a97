import threading

import joblib
import pytest

from forestprune.system.threads import Crew, run_in_threads, split_range, thread_count


@pytest.mark.parametrize(
    ("n", "parts", "expected"),
    [
        (10, 3, [(0, 3), (3, 6), (6, 10)]),
        (2, 5, [(0, 1), (1, 2)]),
        (4, 1, [(0, 4)]),
        (0, 3, []),
    ],
)
def test_ranges_are_cut_evenly(n, parts, expected):
    assert split_range(n, parts) == expected


def test_n_jobs_counts_as_joblib_does(monkeypatch):
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    assert thread_count(None) == thread_count(-1) == joblib.cpu_count()
    assert thread_count(3) == 3
    with pytest.raises(ValueError, match="n_jobs"):
        thread_count(0)


def test_a_joblib_worker_takes_its_share(monkeypatch):
    monkeypatch.setattr(joblib, "cpu_count", lambda: 8)
    monkeypatch.setenv("NUMBA_NUM_THREADS", "3")
    assert thread_count(None) == 3
    assert thread_count(5) == 5
    for share in ("nonsense", "²", "9"):
        monkeypatch.setenv("NUMBA_NUM_THREADS", share)
        assert thread_count(None) == 8


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_every_task_runs_once(n_jobs):
    done, lock = [], threading.Lock()

    def task(number, name):
        with lock:
            done.append((number, name))

    tasks = [(number, "x") for number in range(20)]
    run_in_threads(task, tasks, n_jobs, "testing")
    assert sorted(done) == tasks


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_errors_come_through(n_jobs):
    def task(number):
        if number == 5:
            raise RuntimeError("five")

    with pytest.raises(RuntimeError, match="five"):
        run_in_threads(task, [(number,) for number in range(9)], n_jobs, "testing")


def test_an_error_ends_what_has_not_begun():
    begun, gate = [], threading.Event()

    def task(number):
        begun.append(number)
        if number == 0:
            raise RuntimeError
        gate.wait(0.05)

    with pytest.raises(RuntimeError):
        run_in_threads(task, [(number,) for number in range(200)], 2, "testing")
    assert len(begun) < 100


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_a_crew_does_every_task_once_and_again(n_jobs):
    crew, lock = Crew(n_jobs), threading.Lock()
    for count in (20, 1, 0, 7):
        done = []

        def task(number, name, done=done):
            with lock:
                done.append((number, name))

        tasks = [(number, "x") for number in range(count)]
        crew.run(task, tasks)
        assert sorted(done) == tasks


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("bad", [0, 5])
def test_errors_of_a_crew_come_through(n_jobs, bad):
    def task(number):
        if number == bad:
            raise RuntimeError("bad")

    with pytest.raises(RuntimeError, match="bad"):
        Crew(n_jobs).run(task, [(number,) for number in range(9)])


def test_a_crew_does_not_wait_for_threads_that_have_not_begun():
    crew, gate = Crew(2), threading.Event()
    busy = crew._pool.submit(gate.wait)
    done = []
    crew.run(done.append, [(number,) for number in range(5)])
    assert done == list(range(5))
    gate.set()
    assert busy.result()
