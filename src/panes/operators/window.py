"""The base of tumbling and sliding windows: handlers of events, insertion, access, saved state, and subwindows.

Paper: Gedik 2014, sections 4.1.1 to 4.1.4 and 4.2. A window that is not partitioned has the single partition ``()``.
The window is logic, with handlers and a clock; its state is in its subwindows (``save`` and ``load``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, ClassVar, Final, Generic, TypeVar

from panes.errors import DeclarationError, StateError
from panes.operators.attributes import WHOLE, DeltaReader, partition_reader
from panes.operators.clocks import Clock, EventClock, WallClock
from panes.operators.events import Event
from panes.operators.partition_eviction import BUILT_IN, Candidates, Keeper, Selection, UserDefined, keeper
from panes.operators.policies import Partitions, Time, WindowPolicies
from panes.operators.subwindow import Subwindow
from panes.queries.eviction import BY_OPERATOR, Evict

T = TypeVar("T")
Step = Callable[[Subwindow[Any], Any, int], None]

_DECLARED: Final = object()
_NOTHING: Final[deque[Any]] = deque(maxlen=0)
_FORMAT: Final = 2


class WindowContainer(ABC, Generic[T]):
    """A container of tuples that follows its policies and calls handlers of its events.

    Parameters
    ----------
    declared
        The window as policies.
    policies
        Its eviction policy, and the trigger policy of a sliding window.
    clock
        The clock of time-based policies and partition ages; by default its own wall clock.
    """

    events: ClassVar[frozenset[Event]]

    def __init__(self, declared: WindowPolicies, policies: Sequence[object], clock: Clock | None) -> None:
        self.declared = declared
        self.subwindows: dict[Hashable, Subwindow[T]] = {}
        self.held = 0
        self.timed = any(isinstance(policy, Time) for policy in policies)
        partitioned = declared.partitioned
        aged = partitioned is not None and partitioned.evict is not None and partitioned.evict.age is not None
        # The policy on the grid of the clock.
        self._grid = next((each for each in policies if isinstance(each, Time) and each.origin == "epoch"), None)
        self.clock = clock if clock is not None or not (self.timed or aged) else WallClock()
        self._deltas: tuple[DeltaReader, ...] = ()
        self._steps: tuple[Step, ...] = ()
        self._partition_of = None if partitioned is None else partition_reader(partitioned)
        self._keeper = self._keep(partitioned)
        # Only a clock with a thread needs a lock.
        self._threaded = self.timed and self.clock is not None and self.clock.threaded
        self._guard = self.clock.guard if self._threaded and self.clock is not None else nullcontext()
        self._asks_clock = self.timed or aged
        # Whether tuples are stored: an empty deque takes more memory than the rest of a subwindow.
        self._stores = True
        # Set by the operator: whether handlers look only at the partition for which they are called.
        self.apart = False
        self._before_insertion: tuple[Callable[..., None], ...] = ()
        self._after_insertion: tuple[Callable[..., None], ...] = ()
        self._partition_eviction: tuple[Callable[..., None], ...] = ()
        self._partition_selection: tuple[Callable[..., None], ...] = ()

    # Events

    def register(self, handler: object, *events: Event) -> None:
        """Call methods of an object, named as in ``WindowEvents``, when some events happen.

        Raises
        ------
        DeclarationError
            If such windows have no such event, or tuples have already been inserted.
        """
        if self.subwindows:
            raise DeclarationError("register handlers before the first tuple: they would miss what happened already.")
        for event in events:
            if event not in self.events:
                known = ", ".join(sorted(each.value for each in self.events))
                raise DeclarationError(f"a {self.declared.kind} window has no event {event.value}. It has: {known}.")
            call = getattr(handler, event.value, None)
            if not callable(call):
                raise DeclarationError(
                    f"{type(handler).__name__} has no method {event.value}. Write one, as in WindowEvents."
                )
            name = f"_{event.value}"
            setattr(self, name, (*getattr(self, name), call))
        self._steps = self._in_order()

    @abstractmethod
    def _in_order(self) -> tuple[Step, ...]:
        """Return the steps at the arrival of a tuple, in the order of ``frames.order``."""

    def _heard(self, insert: Step) -> Step:
        """Return an insertion that also calls the handlers of its events, if there are any."""
        before, after = self._before_insertion, self._after_insertion
        if not before and not after:
            return insert

        def heard(subwindow: Subwindow[T], item: T, now: int) -> None:
            for call in before:
                call(item, subwindow.partition, self)
            insert(subwindow, item, now)
            for call in after:
                call(item, subwindow.partition, self)

        return heard

    def _insert(self, subwindow: Subwindow[T], item: T, _: int) -> None:
        subwindow.tuples.append(item)
        subwindow.size += 1
        self.held += 1

    # Insertion

    def insert(self, item: T, partition: Any = _DECLARED) -> None:
        """Insert a tuple, evict others, and trigger, in the order of ``frames.order``.

        Parameters
        ----------
        partition
            The partition of the tuple; by default the value of its partition-by attributes.
        """
        if partition is _DECLARED:
            partition = WHOLE if self._partition_of is None else self._partition_of(item)
        elif self._partition_of is None and partition != WHOLE:
            raise DeclarationError(
                f"the window is not partitioned, so a tuple cannot go to the partition {partition!r}. Write "
                "by=() to pass a partition with each tuple."
            )
        if not self._asks_clock:
            self._admit(item, partition, 0)
            return
        clock = self.clock
        assert clock is not None
        if not self._threaded:
            self._admit(item, partition, clock.now())
            return
        with self._guard:
            self._admit(item, partition, clock.settle())

    def entry(self) -> Callable[[T], None]:
        """Return a faster ``insert`` for many tuples: what never changes is looked up once."""
        if self._threaded or self._keeper is not None:
            return self.insert
        # Most windows: no thread, and no eviction of partitions.
        find, open_, partition_of = self.subwindows.get, self._open, self._partition_of
        deltas = self._deltas
        read = self.clock.now if self._asks_clock and self.clock is not None else None

        def enter(item: T) -> None:
            partition = WHOLE if partition_of is None else partition_of(item)
            now = 0 if read is None else read()
            subwindow = find(partition)
            for delta in deltas:
                delta.look(item, subwindow)
            if subwindow is None:
                subwindow = open_(partition, now)
            for step in self._steps:
                step(subwindow, item, now)

        return enter

    def insert_all(self, items: Sequence[T], instants: Sequence[int] | None = None) -> None:
        """Insert tuples, with the same effect as one after another; some windows do it faster.

        Parameters
        ----------
        instants
            When each tuple arrives; the event clock is advanced to it. Without them, all arrive now.
        """
        enter = self.entry()
        if instants is None:
            for item in items:
                enter(item)
            return
        advance = self._advance()
        for item, instant in zip(items, instants, strict=True):
            advance(instant)
            enter(item)

    def _advance(self) -> Callable[[int], None]:
        if not isinstance(self.clock, EventClock):
            raise DeclarationError("instants of arrival need an event clock. Write clock=EventClock().")
        return self.clock.advance

    def _admit(self, item: T, partition: Hashable, now: int) -> None:
        kept = self._keeper
        if kept is not None:
            kept.expire(now)
        subwindow = self.subwindows.get(partition)
        # A tuple with an invalid value is rejected before anything changes.
        for delta in self._deltas:
            delta.look(item, subwindow)
        if subwindow is None:
            if kept is not None:
                kept.make_room()
            subwindow = self._open(partition, now)
        if kept is None:
            for step in self._steps:
                step(subwindow, item, now)
            return
        kept.touched(subwindow, now)
        for step in self._steps:
            step(subwindow, item, now)
        kept.trim()

    # Access

    def lock(self) -> AbstractContextManager[Any]:
        """Return the lock to hold while reading the window outside its handlers.

        It costs nothing without a wall clock, whose thread may change the window.
        """
        return self._guard

    def __len__(self) -> int:
        """Return the number of tuples in all subwindows."""
        return self.held

    def __iter__(self) -> Iterator[tuple[Hashable, Sequence[T]]]:
        """Yield partitions with their tuples, in the order in which they were opened."""
        for partition, subwindow in self.subwindows.items():
            yield partition, subwindow.tuples

    def tuples(self, partition: Hashable = WHOLE) -> Sequence[T]:
        """Return the tuples of a subwindow, oldest first; empty if there is no such subwindow. Do not change them."""
        subwindow = self.subwindows.get(partition)
        return () if subwindow is None else subwindow.tuples

    def size(self, partition: Hashable = WHOLE) -> int:
        """Return the number of tuples in a subwindow, stored or summarized."""
        subwindow = self.subwindows.get(partition)
        return 0 if subwindow is None else subwindow.size

    def summarizer(self, partition: Hashable = WHOLE) -> Any:
        """Return the summarizer of a subwindow, or None."""
        subwindow = self.subwindows.get(partition)
        return None if subwindow is None else subwindow.summarizer

    def full(self, partition: Hashable = WHOLE) -> bool:
        """Return whether a sliding subwindow has been full; known with ``partial=False`` or a handler of that event."""
        subwindow = self.subwindows.get(partition)
        return subwindow is not None and subwindow.full

    # State

    def save(self) -> dict[str, Any]:
        """Return the state of the window as plain values, to be loaded into a window of the same declaration."""
        with self._guard:
            state = {
                "format": _FORMAT,
                "subwindows": [subwindow.saved() for subwindow in self.subwindows.values()],
                "order": [] if self._keeper is None else self._keeper.selection.order(),
            }
            origin = self._origin()
            return state if origin is None else state | {"origin": origin}

    def load(self, state: dict[str, Any]) -> None:
        """Continue from the saved state of another window. This one must be empty and of the same declaration."""
        if state.get("format") != _FORMAT:
            raise StateError(
                f"the state of a window has the format {state.get('format')!r}, and this version reads {_FORMAT}. "
                "Load it with the version of Panes that saved it."
            )
        if self.subwindows:
            raise StateError("the window already has tuples, and state is loaded into an empty one. Make a new window.")
        with self._guard:
            later = self._later(state)
            for saved in state["subwindows"]:
                subwindow: Subwindow[T] = Subwindow.loaded(saved, later)
                if later and self._grid is not None:
                    # The grid of the clock went on meanwhile.
                    subwindow.due = self._due(self._grid, self._now())
                self.subwindows[subwindow.partition] = subwindow
                self.held += subwindow.size
                if self.timed and self.clock is not None:
                    self.clock.resume(subwindow.serial)
                self._wake(subwindow)
            if self._keeper is not None:
                for partition in state["order"]:
                    self._keeper.selection.touched(partition, self.subwindows[partition].updates)

    def _origin(self) -> int | None:
        return self.clock.origin() if self._asks_clock and self.clock is not None else None

    def _later(self, state: dict[str, Any]) -> int:
        """Return how far the clock is ahead of the one of the saved state: the time in between does not count."""
        before, now = state.get("origin"), self._origin()
        if before is None:
            return 0
        if now is None:
            raise StateError(
                "the state was saved on a wall clock, whose instants mean nothing on the clock of this window. Write "
                "clock=WallClock(), or leave clock= out."
            )
        return now - int(before)

    def _now(self) -> int:
        assert self.clock is not None
        return self.clock.now()

    def _due(self, policy: Time, opened: int) -> int:
        """Return the end of the period in which a subwindow was opened."""
        if policy.origin != "epoch":
            return opened + policy.period
        assert self.clock is not None
        return opened + policy.period - (opened - self.clock.epoch() - policy.phase) % policy.period

    # Subwindows

    def _open(self, partition: Hashable, now: int) -> Subwindow[T]:
        subwindow: Subwindow[T] = Subwindow(partition, now, deque() if self._stores else _NOTHING)
        if self.timed and self.clock is not None:
            subwindow.serial = self.clock.serial()
        self.subwindows[partition] = subwindow
        self._begin(subwindow)
        return subwindow

    @abstractmethod
    def _begin(self, subwindow: Subwindow[T]) -> None:
        """Set what policies keep about a new subwindow, and its alarms."""

    @abstractmethod
    def _wake(self, subwindow: Subwindow[T]) -> None:
        """Set the alarms of a subwindow that was loaded."""

    def _remove(self, subwindow: Subwindow[T]) -> None:
        """Remove a subwindow and its alarms."""
        del self.subwindows[subwindow.partition]
        self.held -= subwindow.size
        if self._keeper is not None:
            self._keeper.forget(subwindow.partition)
        if subwindow.alarms and self.clock is not None:
            for alarm in subwindow.alarms:
                self.clock.deadlines.cancel(alarm)
            subwindow.alarms = None

    def evict_partitions(self, partitions: Sequence[Hashable]) -> None:
        """Remove partitions, after calling the handlers of that event."""
        gone = [self.subwindows[partition] for partition in partitions]
        for call in self._partition_eviction:
            call(((subwindow.partition, subwindow.tuples) for subwindow in gone), self)
        for subwindow in gone:
            if subwindow.summarizer is not None:
                subwindow.summarizer.close()
            self._remove(subwindow)

    def _keep(self, partitioned: Partitions | None) -> Keeper | None:
        if partitioned is None or partitioned.evict is None:
            return None
        return keeper(self, partitioned.evict, partial(self._selection, partitioned.evict))

    def _selection(self, evict: Evict) -> Selection:
        select = evict.choose
        if isinstance(select, str) and select != BY_OPERATOR:
            return BUILT_IN[select]()
        return UserDefined(self.subwindows, self._ask if isinstance(select, str) else select)

    def _ask(self, candidates: Candidates) -> None:
        if not self._partition_selection:
            raise DeclarationError(
                "choose='by operator' needs an operator that selects partitions. Register a handler of "
                "Event.PARTITION_SELECTION, or write choose='least recently updated'."
            )
        for call in self._partition_selection:
            call(candidates, self)
