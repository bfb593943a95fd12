"""Hand over: the journal of open attempts, from one leader's Lease to the next leader's core.

In: what the Lease says. Out: what it shall say. Wired by ``leadership``, which asks before each
write; ``app`` gives what was ``found`` to the core. The core's own journal is read in the core's
loop alone (``hand_over``); what was read then is an immutable value, for the lease's thread.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from quorate.core.model.changes import JournalFound
from quorate.core.model.journal import Journal

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Journal)


class Handover:
    """Of one process: it keeps the journal that it finds until its own core has taken all up.

    ``identity`` begins the ids of its attempts.
    """

    def __init__(self, own: Callable[[], Journal], identity: str) -> None:
        self._own = own
        self._identity = identity
        self._newest: Journal | None = None
        self._found: Journal | None = None
        self.has_decided = False
        """Whether our core has taken up what it found, so that its own journal is the true one."""

    def found(self) -> list[JournalFound]:
        """Return what to tell the core when we begin to lead: nothing if there was no journal."""
        return [JournalFound(self._found)] if self._found is not None else []

    def hand_over(self) -> None:
        """Read our core's journal, once it has decided. Called in the core's loop only."""
        if self.has_decided:
            self._newest = self._own()

    def journal(self, found: str) -> str:
        """Return what the Lease shall say, where it says ``found``; nothing leaves it as it is."""
        own = self._newest
        if own is not None:
            return _ENCODER.encode(own).decode()
        try:
            journal = _DECODER.decode(found).passed_on(self._identity)
        except (msgspec.MsgspecError, UnicodeError):
            self._found = None
            return ""  # a first leader finds none; what somebody else wrote there says nothing
        self._found = journal
        return _ENCODER.encode(journal).decode()
