import pytest

from forestprune.system import work
from forestprune.system.work import Work, share_done, time_left


@pytest.fixture
def clock(monkeypatch):
    class Clock:
        now = 100.0

        def monotonic(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(work, "time", clock)
    return clock


def begun(clock, description, total, power=1.0):
    return Work(description, total, power, begun=clock.now, _step_begun=clock.now)


def test_work_alone(clock):
    alone = begun(clock, "alone", 8)
    assert share_done([alone]) == 0.0
    alone.advance(2)
    assert share_done([alone]) == 0.25
    alone.advance(8)
    assert share_done([alone]) is None  # more than had been guessed
    assert share_done([begun(clock, "unknown", None)]) is None
    assert share_done([]) is None


def test_work_that_becomes_slower(clock):
    slower = begun(clock, "slower", 10, power=2.0)
    slower.advance(5)
    assert share_done([slower]) == 0.25


def test_a_step_teaches_what_its_parts_take(clock):
    outer = begun(clock, "outer", 2)
    for share, seconds in (("long", 9.0), ("short", 1.0)):
        inner = begun(clock, share, 4)
        outer.begin(inner)
        clock.now += seconds
        outer.end(inner)
    # Until a step has shown better, work within it is taken for most of what is left of it.
    assert share_done([outer]) == pytest.approx((1 - (1 - work.SHARE) ** 2) / 2)
    outer.advance(1)
    long = begun(clock, "long", 4)
    outer.begin(long)
    long.advance(2)
    assert share_done([outer, long]) == pytest.approx((1 + 0.9 / 2) / 2)
    clock.now += 5.0
    outer.end(long)
    short = begun(clock, "short", 4)
    outer.begin(short)
    short.advance(2)
    assert share_done([outer, short]) == pytest.approx((1 + 0.95) / 2)


def test_what_is_done_at_once_counts_for_nothing(clock):
    outer = begun(clock, "outer", 2)
    inner = begun(clock, "quick", 4)
    outer.begin(inner)
    clock.now += work.QUICK / 2
    outer.end(inner)
    assert share_done([outer]) == 0.0


def test_work_of_unknown_size_within_a_step_adds_nothing(clock):
    outer = begun(clock, "outer", 4)
    outer.advance(1)
    inner = begun(clock, "unknown", None)
    outer.begin(inner)
    inner.advance(7)
    assert share_done([outer, inner]) == 0.25


@pytest.mark.parametrize(
    ("share", "elapsed", "words"),
    [
        (0.0, 5.0, ""),
        (0.9, 18.0, "some seconds left"),
        (0.5, 31.0, "about 30 s left"),
        (0.5, 58.0, "about 1 min left"),
        (0.1, 60.0, "about 9 min left"),
        (0.02, 100.0, "about 1.4 h left"),
    ],
)
def test_the_time_left_is_said_in_words(share, elapsed, words):
    assert time_left(share, elapsed) == words
