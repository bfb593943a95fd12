"""Law 2 in the shell: a defect of ours costs what met it, and nothing else.

In: a block, where it stands and what it is about. Out: ``note`` is told of what it raises, and the
rest goes on. ``Scheduler.note_defect`` is such a ``note``: its incidents are logged and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Note = Callable[[str, str, Exception], object]
"""Takes note of a defect: its stage (``core.turn.defects.STAGES``), what it is about, the error."""


@contextmanager
def contained(note: Note, stage: str, about: str) -> Iterator[None]:
    """Note what the block raises, and go on after it."""
    try:
        yield
    except Exception as error:
        note(stage, about, error)


def words_of(error: Exception) -> str:
    """Return a defect as a message has it; the log and the incident have the rest."""
    return f"a defect of quorate's own: {type(error).__name__}"
