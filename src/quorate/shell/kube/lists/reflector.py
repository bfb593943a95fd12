"""List and watch one resource for ever. In: a path. Out: events about its objects, in order.

Used by ``watch.feed``, with one ``Reflector`` per resource; it reaches the API server through
``client``. Objects are handed on as raw bytes: this module knows none of their fields.
"""

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec

from quorate.core.words.plain_text import plain
from quorate.shell.kube.client import KubeClient, Params
from quorate.shell.kube.connections.availability import Availability
from quorate.shell.kube.connections.lines import LINE_BYTES_MAX, LineSplitter
from quorate.shell.kube.errors import (
    ApiError,
    Gone,
    NotFound,
    ServerError,
    TooLarge,
    TooManyRequests,
    Unreachable,
    error_from_event,
)
from quorate.shell.kube.lists.events import (
    Absent,
    Added,
    Deleted,
    Failing,
    Garbled,
    ListBegins,
    Listed,
    Modified,
    Recovered,
    SomeListed,
    WatchEvent,
)
from quorate.shell.kube.lists.pages import UNREADABLE, Pages
from quorate.shell.process.clock import Clock

_SHORT_WATCH_S: Final = 1.0
SLICE_EVENTS: Final = 200
"""Events that are handed on before other tasks run: after a pause thousands come at once."""


class _Envelope(msgspec.Struct, gc=False):
    type: str
    object: msgspec.Raw


class _Meta(msgspec.Struct, gc=False):
    resourceVersion: str = ""  # noqa: N815  the API's own name


class _Versioned(msgspec.Struct, gc=False):
    metadata: _Meta


_ENVELOPE: Final = msgspec.json.Decoder(_Envelope)
_VERSIONED: Final = msgspec.json.Decoder(_Versioned)


class _GroupVersion(msgspec.Struct):
    version: str


class _Group(msgspec.Struct):
    versions: list[_GroupVersion]


_GROUP: Final = msgspec.json.Decoder(_Group)
_VERSIONS_MAX: Final = 5
_VERSION_CHARS_MAX: Final = 20
_EVENT_BY_TYPE: Final[dict[str, Callable[[bytes], WatchEvent]]] = {
    "ADDED": Added,
    "MODIFIED": Modified,
    "DELETED": Deleted,
}


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """Page size, back-off, and the intervals of polls, watches and new lists."""

    page_size: int = 500  # objects per page of a list
    backoff_s_min: float = 0.1  # after the first failure; doubles with each further one
    backoff_s_max: float = 10.0
    absent_poll_s: float | None = 5.0
    """How often to look for a missing CRD. None: a missing resource is a failure like any other,
    and never ``Absent``."""
    tells_versions: bool = False  # with ``Absent``: whether to ask for those that are there
    watch_s: tuple[float, float] = (240.0, 480.0)  # how long one watch lasts, between these
    garbled_relist_s: tuple[float, float] = (5.0, 300.0)
    """Delay of a new list after garbled events: of the second in a row, and at most."""
    silence_s_max: float = 120.0  # bookmarks come once a minute: beyond that the connection is dead


class Reflector:
    """Keeps a consumer's picture of one resource up to date.

    ``on_event`` gets a list first (``ListBegins``, then ``SomeListed`` as often as needed, then
    ``Listed``), or ``Absent``. Then it gets each event after the list's resource version, in the
    server's order. No event is lost or comes twice, however often the connection is cut: a watch
    resumes after the last event that was handed on, and a line that was cut is not handed on. When
    the server no longer has that version (410), a new list follows; objects that are not in it are
    gone. The one exception is announced: ``Garbled`` is an event that could not be read. Later
    events are handed on, and a new list is due.

    ``on_event`` must be quick (append to a queue): the API server drops watchers that read slowly.
    What it raises ends ``run``. The counters are plain attributes, for metrics.
    """

    def __init__(
        self,
        client: KubeClient,
        path: str,
        *,
        on_event: Callable[[WatchEvent], object],
        clock: Clock,
        chance: Callable[[], float],
        pace: Pace = Pace(),  # noqa: B008  frozen
        availability: Availability | None = None,
        kind: str = "",
    ) -> None:
        """Prepare to watch ``path``, a collection.

        All reflectors of one server share an ``availability``. ``kind`` is the kind of the objects:
        a list of another kind is refused. ``chance`` returns numbers in [0, 1), for jitter.
        """
        self._client = client
        self._path = path
        self._on_event = on_event
        self._clock = clock
        self._chance = chance
        self._pace = pace
        self._availability = availability or Availability(clock, chance)
        self._failing_since_s: float | None = None
        self._tries_failed = 0
        self._pages = Pages(client, path, pace.page_size, kind)
        self._resource_version = ""  # "": the next thing to do is to list
        self._is_resuming = False
        self._failures_in_a_row = 0
        self._expiries_in_a_row = 0
        self._garbled_in_a_row = 0  # lists anew in a row that were due to garbled events
        self._relist_requested_at_s = 0.0
        self._relist_due_s: float | None = None
        self.relists = 0  # how often all had to be read once more
        self.reconnects = 0  # how often a watch went on where an earlier one had ended
        self.events = 0
        self.bookmarks = 0
        self.garbled = 0
        self.failures = 0  # how often it had to wait before it could go on
        self.is_synced = False  # a list was delivered, and no later one is due
        self.is_absent = False
        self.heard_at_s = clock.monotonic_s()
        """When the server last answered about this kind (monotonic), also without news."""
        self.last_error: ApiError | None = None  # None again as soon as the server answers

    @property
    def listed(self) -> int:
        """How many objects the latest list has so far."""
        return self._pages.listed

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            try:
                if self._resource_version:
                    await self._watch()
                else:
                    await self._list()
            except Gone as error:
                await self._start_again(error)
            except NotFound as error:
                if self._resource_version:  # the list tells whether the resource is gone
                    await self._start_again(error)
                elif self._pace.absent_poll_s is None:
                    await self._back_off(error)
                else:
                    await self._absent(error, self._pace.absent_poll_s)
            except ApiError as error:
                await self._back_off(error)

    async def _list(self) -> None:
        """Deliver one consistent list, in as many pages as it takes."""
        while True:
            self._relist_due_s = None
            self._on_event(ListBegins())
            size = self._pages.size
            try:
                version = await self._pages.read(lambda items: self._on_event(SomeListed(items)))
            except TooLarge:
                if self._pages.size == size:
                    raise
            else:
                break
        self._resource_version = version
        self.is_synced, self.is_absent, self._is_resuming = True, False, False
        self._succeeded()
        self._on_event(Listed(version))

    async def _watch(self) -> None:
        """Watch until the stream ends, for whatever reason."""
        shortest_s, longest_s = self._pace.watch_s
        params: dict[str, str | int] = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._resource_version,
            "timeoutSeconds": int(shortest_s + (longest_s - shortest_s) * self._chance()),
        }
        started_s = self._clock.monotonic_s()
        version_before = self._resource_version
        try:
            async with asyncio.timeout(self._until_relist_s()) as until:
                cut = await self._follow(params, until)
        except TimeoutError:
            self._list_anew()
            return
        lasted_s = self._clock.monotonic_s() - started_s
        if self._resource_version == version_before and lasted_s < _SHORT_WATCH_S:
            # A server that ends watches at once, without an event, gets a back-off.
            raise cut or Unreachable(f"the watch of {self._path} ended as soon as it began")
        self._succeeded()

    async def _follow(self, params: Params, until: asyncio.Timeout) -> Unreachable | None:
        """Hand on the events of one watch. Return the error that cut it, or None.

        ``until`` is the timeout of this watch: it is moved to the time when a new list is due.
        """
        async with self._client.stream(
            self._path, params, silence_s_max=self._pace.silence_s_max
        ) as stream:
            self._availability.answered()
            self.last_error = None
            self.reconnects += self._is_resuming
            self._is_resuming = True
            splitter = LineSplitter()
            try:
                while chunk := await stream.read():
                    skipped = splitter.skipped
                    await self._deliver_slices(splitter.split(chunk))
                    if splitter.skipped > skipped:
                        self._deliver_garbled(b"", f"more than {LINE_BYTES_MAX // 2**20} MiB")
                    rest_s = self._until_relist_s()
                    if rest_s is not None and not until.expired():
                        until.reschedule(asyncio.get_running_loop().time() + rest_s)
            except Unreachable as error:
                return error  # the stream was cut; what was whole has been delivered
        return None

    def request_relist(self) -> None:
        """Request a new list, because an event was missed. At once if that is rare.

        Nothing is decided on what was known before it, then. Else later, and events are handed on
        until then: a kind whose events are all garbled must not load the API server with lists.
        """
        if self._relist_due_s is not None:
            return
        now_s = self._clock.monotonic_s()
        first_s, longest_s = self._pace.garbled_relist_s
        if now_s - self._relist_requested_at_s > 2 * longest_s:
            self._garbled_in_a_row = 0
        delay_s = (
            min(longest_s, first_s * 2.0 ** (self._garbled_in_a_row - 1))
            if self._garbled_in_a_row
            else 0.0
        )
        self._garbled_in_a_row = min(self._garbled_in_a_row + 1, 20)
        self._relist_due_s = self._relist_requested_at_s = now_s + delay_s
        self.is_synced &= delay_s > 0.0

    def _until_relist_s(self) -> float | None:
        """Return the seconds until a new list is due; None if none is."""
        if self._relist_due_s is None:
            return None
        return max(0.0, self._relist_due_s - self._clock.monotonic_s())

    async def _deliver_slices(self, lines: list[bytes]) -> None:
        """Hand on the events of whole lines, in slices. Other tasks run between two slices."""
        for start in range(0, len(lines), SLICE_EVENTS):
            if start:
                await asyncio.sleep(0)
            self._deliver(lines[start : start + SLICE_EVENTS])

    def _deliver(self, lines: list[bytes]) -> None:
        """Hand on the events of whole lines, and remember the last resource version."""
        newest: bytes | msgspec.Raw | None = None
        try:
            for line in lines:
                try:
                    envelope = _ENVELOPE.decode(line)
                except UNREADABLE as error:
                    self._deliver_garbled(line, str(error))
                    continue
                make = _EVENT_BY_TYPE.get(envelope.type)
                if make is not None:
                    self.events += 1
                    newest = raw = bytes(envelope.object)
                    self._on_event(make(raw))
                elif envelope.type == "BOOKMARK":
                    self.bookmarks += 1
                    newest = envelope.object
                elif envelope.type == "ERROR":
                    raise error_from_event(envelope.object)
                else:
                    self._deliver_garbled(line, f"event of unknown type {envelope.type!r}")
        finally:
            # Only the last version of a slice is needed, and decoding one is expensive.
            if newest is not None:
                self._remember_version(newest)

    def _deliver_garbled(self, line: bytes, error: str) -> None:
        self.garbled += 1
        self.request_relist()
        self._on_event(Garbled(line, error))

    def _remember_version(self, newest: bytes | msgspec.Raw) -> None:
        try:
            version = _VERSIONED.decode(newest).metadata.resourceVersion
        except UNREADABLE:
            version = ""
        if version:
            self._resource_version = version
            self._expiries_in_a_row = 0
            self._succeeded()

    async def _start_again(self, error: ApiError) -> None:
        """List again: at once, but backing off if the server keeps refusing its own versions."""
        self._list_anew()
        self._expiries_in_a_row += 1
        if self._expiries_in_a_row > 1:
            self._failures_in_a_row = self._expiries_in_a_row - 2
            await self._back_off(error)
        else:
            self.last_error = error

    def _list_anew(self) -> None:
        self.relists += 1
        self._resource_version = ""
        self.is_synced = False

    async def _absent(self, error: NotFound, poll_s: float) -> None:
        self.last_error = error
        self._failures_in_a_row = 0
        self._note_recovery()
        self.heard_at_s = self._clock.monotonic_s()
        if not self.is_absent:
            versions = await self._versions_served() if self._pace.tells_versions else ()
            self.is_absent, self.is_synced = True, True
            self._on_event(Absent(versions))
        await asyncio.sleep(poll_s)

    async def _versions_served(self) -> tuple[str, ...]:
        """Return the versions of this kind's group that the server has."""
        try:
            raw = await self._client.get("/".join(self._path.split("/")[:3]))
            found = _GROUP.decode(raw).versions
        except (ApiError, *UNREADABLE):
            return ()
        return tuple(plain(one.version, _VERSION_CHARS_MAX) for one in found[:_VERSIONS_MAX])

    def _succeeded(self) -> None:
        self._availability.answered()
        self.heard_at_s = self._clock.monotonic_s()
        self._failures_in_a_row = 0
        self.last_error = None
        self._note_recovery()

    def _note_recovery(self) -> None:
        if self._failing_since_s is not None:
            self._failing_since_s, self._tries_failed = None, 0
            self._on_event(Recovered())

    def _fail(self, error: ApiError) -> None:
        now_s = self._clock.monotonic_s()
        if self._failing_since_s is None:
            self._failing_since_s = now_s
        self._tries_failed += 1
        self._on_event(Failing(error, self._tries_failed, now_s - self._failing_since_s))

    async def _back_off(self, error: ApiError) -> None:
        """Wait, twice as long after each failure in a row, and at least as the server asks."""
        self.failures += 1
        self.last_error = error
        self._fail(error)
        doublings = min(self._failures_in_a_row, 20)
        self._failures_in_a_row += 1
        delay_s = min(self._pace.backoff_s_max, self._pace.backoff_s_min * 2**doublings)
        delay_s *= 0.5 + 0.5 * self._chance()
        asked_s = error.retry_after_s or 0.0
        await asyncio.sleep(asked_s)
        if isinstance(error, (TooManyRequests, ServerError, Unreachable)):
            await self._availability.wait(delay_s - asked_s)
        else:
            await asyncio.sleep(delay_s - asked_s)
