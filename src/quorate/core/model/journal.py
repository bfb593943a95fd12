"""The journal: which attempts were open, in the words of one leader for those that come after it.

A leader writes it into its Lease with each renewal, so it costs no request. A successor that finds
a gang bound in part, without a mark on any member, asks it: was the gang still being bound, or had
it started and lost its marked members since? No object of the API but this one tells.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from quorate.core.model import GangKey, policy


class Journal(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one leader knew of its attempts, up to its last renewal.

    ``by`` begins the ids of its attempts, and ``made`` is the number of its newest. ``open`` are
    the gangs that were being bound or undone; None when it is not known, or they were too many.
    ``since`` began the ids of leaders that came after it, in their order, and have written no
    journal of their own.
    """

    by: str
    made: int
    open: tuple[str, ...] | None = ()
    since: tuple[str, ...] = ()

    def passed_on(self, to: str) -> Journal:
        """Return it as the next leader keeps it until it has one of its own."""
        if to in (self.by, *self.since):
            return self
        if len(self.since) >= policy.SINCE_MAX:
            first, *others = *self.since, to
            return Journal(first, 0, None, tuple(others))
        return msgspec.structs.replace(self, since=(*self.since, to))

    def is_settled(self, gang: GangKey, attempts: Iterable[str]) -> bool:
        """Tell whether these attempts, which the gang's pods bear, had ended: it had started.

        Not so when one began after the last renewal.
        """
        if self.open is None or entry_of(gang) in self.open:
            return False
        for attempt in attempts:
            by, _, number = attempt.rpartition("-")
            if by in self.since:
                return False
            if by == self.by and not (number.isdecimal() and int(number[:18]) <= self.made):
                return False
        return True


def is_older(attempt: str, than: str, journal: Journal | None) -> bool:
    """Tell whether it is known that one attempt began before another.

    One leader numbers its attempts; ``journal`` says which leaders came last.
    """
    by, _, number = attempt.rpartition("-")
    later_by, _, later = than.rpartition("-")
    if by == later_by:
        return _number(number) < _number(later)
    leaders = (journal.by, *journal.since) if journal is not None else ()
    if not by or later_by not in leaders:
        return False
    return by not in leaders or leaders.index(by) < leaders.index(later_by)


def _number(text: str) -> int:
    """Return the number of an attempt; -1 if it is none, as whoever writes pods may see to."""
    return int(text[:18]) if text.isdecimal() else -1


def journal_of(
    by: str, made: int, gangs: Iterable[GangKey], waiting: Iterable[GangKey] = ()
) -> Journal:
    """Return the journal of a leader with these gangs open.

    Those that are ``waiting`` are open too, if there is room for all of them: they have not
    started, and binds of the leader before may still arrive.
    """
    entries = set(map(entry_of, gangs))
    for some in (entries | set(map(entry_of, waiting)), entries):
        if sum(map(len, some)) <= policy.OPEN_BYTES_MAX:
            return Journal(by, made, tuple(sorted(some)))
    return Journal(by, made, None)


def entry_of(gang: GangKey) -> str:
    """Return how the journal names a gang."""
    return f"{gang.dialect}/{gang.namespace}/{gang.name}"
