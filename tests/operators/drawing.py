"""Random windows and what happens to them, and a recorder of everything that a window says."""

from __future__ import annotations

from hypothesis import strategies as st

from panes.operators import EventClock, SlidingWindow, TumblingWindow
from panes.operators.policies import Partitions, SlidingPolicies, Time, TumblingPolicies, operator_policies
from panes.queries.eviction import CHOICES, Evict
from panes.queries.measures import Delta, Punctuation, Rows

NEXT, FIRST, SECOND = 0, 1, 2  # a tuple: its number, and two attributes that never decrease


def mark_the_largest(candidates):
    """A user's selection: the subwindow with most tuples, and every one that is empty."""
    pairs = [(len(tuples), partition) for partition, tuples in candidates]
    candidates.mark(max(pairs)[1])
    for size, partition in pairs:
        if not size:
            candidates.mark(partition)


def _counts(least=1):
    return st.builds(Rows, st.integers(least, 5))


def _deltas():
    return st.builds(Delta, st.sampled_from([FIRST, SECOND]), st.integers(0, 5))


def _times(*origins):
    """Periods; each origin a strategy of its own, so that the grid of the clock is drawn as often."""
    periods = st.integers(1, 6)
    return st.one_of(
        st.builds(Time, periods, st.just(o), st.integers(0, 5) if o == "epoch" else st.just(0)) for o in origins
    )


def policies():
    return st.one_of(_counts(), _deltas(), _times("first"))


def triggers():
    return st.one_of(_counts(), _deltas(), _times("first", "epoch"))


def partitions(by=()):
    selections = st.sampled_from([*(s for s in CHOICES if s != "by operator"), mark_the_largest])
    by_keys = st.builds(Evict, keys=st.integers(1, 3), choose=selections)
    by_rows = st.builds(Evict, rows=st.integers(1, 6), choose=selections)
    by_age = st.builds(Evict, age=st.integers(1, 6))
    limits = st.one_of(st.none(), by_keys, by_rows, by_age)
    return st.one_of(st.none(), st.builds(Partitions, st.just(by), limits))


def tumbling(by=()):
    times = _times("first", "row", "epoch")
    return st.builds(TumblingPolicies, st.one_of(_counts(), _deltas(), times, st.just(Punctuation(""))), partitions(by))


def sliding(by=()):
    return st.builds(SlidingPolicies, policies(), triggers(), partitions(by), st.booleans())


def windows(by=()):
    return st.one_of(tumbling(by), sliding(by))


def often(*strategies):
    """A list, as a rule of some length: Hypothesis alone would draw five elements."""
    return st.one_of(st.lists(st.one_of(*strategies), min_size=least, max_size=60) for least in (15, 12, 0))


def happenings():
    """Tuples of some partition (with steps of both attributes), time that passes, and punctuations."""
    arrival = st.tuples(st.just("insert"), st.integers(0, 3), st.integers(0, 3), st.integers(0, 3))
    passing = st.tuples(st.just("advance"), st.integers(1, 9))
    return often(arrival, arrival, arrival, passing, st.just(("punctuate",)))


class Recorder:
    """Hears every event; a log of (event, partition, tuple or contents)."""

    def __init__(self):
        self.log = []

    def of_tuple(self, name):
        return lambda item, partition, window: self.log.append((name, partition, item))

    def of_window(self, name):
        return lambda partition, window: self.log.append((name, partition, tuple(window.tuples(partition))))

    def __getattr__(self, name):
        if name.endswith(("insertion", "eviction")) and not name.startswith("partition"):
            return self.of_tuple(name)
        if name == "partition_eviction":
            return lambda evicted, window: self.log.append((name, None, tuple((p, tuple(t)) for p, t in evicted)))
        if name == "partition_selection":
            return lambda candidates, window: mark_the_largest(candidates)
        if name.startswith("__"):
            raise AttributeError(name)
        return self.of_window(name)


def make(window, clock=None, by=None, evict=None, **options):
    """A window on an event clock, and the recorder that hears it."""
    clock = clock or EventClock(0)
    declared = operator_policies(window, by, evict)
    kind = SlidingWindow if isinstance(declared, SlidingPolicies) else TumblingWindow
    window = kind(declared, clock=clock, **options)
    recorder = Recorder()
    window.register(recorder, *kind.events)
    return window, recorder, clock


def play(happened, insert, advance, punctuate, partitioned):
    """Let things happen to any window."""
    number = first = second = 0
    for what, *how in happened:
        if what == "insert":
            partition, a, b = how
            first, second = first + a, second + b
            insert((number, first, second), partition if partitioned else ())
            number += 1
        elif what == "advance":
            advance(how[0])
        else:
            punctuate()
