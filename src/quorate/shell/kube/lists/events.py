"""What a reflector tells of a resource: lists, changes, and how it gets on with the API server.

Made by ``reflector``; taken by the shell's watch stage. Objects are raw bytes.
"""

import msgspec

from quorate.shell.kube.errors import ApiError


class ListBegins(msgspec.Struct, frozen=True, gc=False):
    """A list of all objects begins; one that had begun before and did not end is void."""


class SomeListed(msgspec.Struct, frozen=True, gc=False):
    """Some objects of the list that has begun."""

    items: list[bytes]


class Listed(msgspec.Struct, frozen=True, gc=False):
    """The list is whole; what was known before and is not in it has vanished meanwhile."""

    resource_version: str


class Added(msgspec.Struct, frozen=True, gc=False):
    """An object appeared (or came to match the selectors)."""

    raw: bytes


class Modified(msgspec.Struct, frozen=True, gc=False):
    """An object changed."""

    raw: bytes


class Deleted(msgspec.Struct, frozen=True, gc=False):
    """An object is gone (or ceased to match the selectors); ``raw`` is its last state."""

    raw: bytes


class Absent(msgspec.Struct, frozen=True, gc=False):
    """The resource itself does not exist (its CRD is not installed); nor do any objects.

    ``versions`` are those in which the server has its group, where that was asked.
    """

    versions: tuple[str, ...] = ()


class Garbled(msgspec.Struct, frozen=True, gc=False):
    """A line of the stream that says nothing we know; whatever it reported is lost."""

    raw: bytes
    error: str


class Failing(msgspec.Struct, frozen=True, gc=False):
    """Another try failed: so many in a row by now, over so many seconds. Told after each."""

    error: ApiError
    tries: int
    since_s: float


class Recovered(msgspec.Struct, frozen=True, gc=False):
    """A try succeeded after some that failed."""


Happening = ListBegins | SomeListed | Listed | Added | Modified | Deleted | Absent | Garbled
WatchEvent = Happening | Failing | Recovered
