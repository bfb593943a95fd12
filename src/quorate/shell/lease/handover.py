"""The journal of open attempts: from one leader's Lease to the next leader's core.

In: the journal that the Lease has. Out: the journal to write. ``leadership`` asks before each write
of the Lease; ``app`` gives the journal that was found to the core. Only the core's loop reads the
core's own journal (``hand_over``); the lease's thread gets an immutable copy.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from quorate.core.model.changes import JournalFound
from quorate.core.model.journal import Journal

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Journal)


class Handover:
    """Keeps the journal that was found until our own core has taken up all of its attempts.

    ``identity`` begins the ids of its attempts.
    """

    def __init__(self, own: Callable[[], Journal], identity: str) -> None:
        self._own = own
        self._identity = identity
        self._newest: Journal | None = None
        self._found: Journal | None = None
        self.has_decided = False
        """Whether our core has taken up what was found.

        From then on its own journal is the true one.
        """

    def found(self) -> list[JournalFound]:
        """Return the change for the core when we begin to lead; nothing if there was no journal."""
        return [JournalFound(self._found)] if self._found is not None else []

    def hand_over(self) -> None:
        """Copy our core's journal, once it has decided. Called in the core's loop only."""
        if self.has_decided:
            self._newest = self._own()

    def journal(self, found: str) -> str:
        """Return the journal to write, given the one found; "" leaves the Lease as it is."""
        own = self._newest
        if own is not None:
            return _ENCODER.encode(own).decode()
        if not found:
            self._found = None
            # It knows nothing of attempts; those that come after us know that we led before them.
            return _ENCODER.encode(Journal(self._identity, 0, None)).decode()
        try:
            journal = _DECODER.decode(found).passed_on(self._identity)
        except (msgspec.MsgspecError, UnicodeError):
            self._found = None
            return ""  # not ours
        self._found = journal
        return _ENCODER.encode(journal).decode()
