"""Hand over: the journal of open attempts, from one leader's Lease to the next leader's core.

In: what the Lease says. Out: what it shall say. Asked by ``leader`` before each write; wired by
``app``, which gives what was ``found`` to the core.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from quorate.core.changes import JournalFound
from quorate.core.journal import Journal

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Journal)


class Handover:
    """Of one process: it keeps the journal that it finds until its own core has taken all up.

    ``identity`` begins the ids of its attempts.
    """

    def __init__(self, own: Callable[[], Journal], identity: str) -> None:
        self._own = own
        self._identity = identity
        self._found: Journal | None = None
        self.has_decided = False
        """Whether our core has taken up what it found, so that its own journal is the true one."""

    def found(self) -> list[JournalFound]:
        """Return what to tell the core when we begin to lead: nothing if there was no journal."""
        return [JournalFound(self._found)] if self._found is not None else []

    def journal(self, found: str) -> str:
        """Return what the Lease shall say, where it says ``found``; nothing leaves it as it is."""
        if self.has_decided:
            return _ENCODER.encode(self._own()).decode()
        self._found = None
        try:
            journal = _DECODER.decode(found)
        except (msgspec.MsgspecError, UnicodeError):
            return ""  # a first leader finds none; what somebody else wrote there says nothing
        self._found = journal.passed_on(self._identity)
        return _ENCODER.encode(self._found).decode()
