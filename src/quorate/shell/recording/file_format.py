"""The file of a recording: the core's inputs and outputs, as msgpack in frames.

In: records. Out: bytes, and records again. Written by ``recorder``; read by ``quorate replay``.
A file begins with a line that names the format. Each frame is a length (four bytes, big-endian)
and one record. The first record is ``Begin``; then come segments, each of which but the very first
of a process begins with a ``Checkpoint``.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from pathlib import Path
from typing import BinaryIO

import msgspec

from quorate.core.model import GangKey
from quorate.core.model.changes import AnyChange
from quorate.core.model.plan import GangBinds, Plan
from quorate.core.model.policy import Policy
from quorate.core.words.object_words import ApiWords

MAGIC = b"quorate recording 1\n"
FRAME_BYTES_MAX = 1 << 30


class RecordingError(Exception):
    """The file is not a recording that this version can read; the text says why."""


class Record(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Base of all records."""


class Begin(Record, frozen=True, kw_only=True):
    """How the scheduler was made: the version of quorate and the arguments of ``Scheduler``."""

    quorate: str
    policy: Policy
    apis: dict[str, ApiWords]
    identity: str


class Checkpoint(Record, frozen=True, kw_only=True):
    """The exact state at this point, and the numbers of changes and decisions before it."""

    state: bytes
    changes: int
    decisions: int


class Observed(Record, frozen=True):
    """One call of ``observe``."""

    changes: list[AnyChange]


class Deciding(Record, frozen=True):
    """One call of ``decide``; recorded before the call, so that a failing one is included."""

    now_s: float


class GangSummary(msgspec.Struct, frozen=True, omit_defaults=True):
    """The binds of one gang: runs of pods in the plan's order, as ``(node, pods)``."""

    key: GangKey
    attempt: str
    nodes: list[tuple[str, int]]
    digest: str


class Planned(Record, frozen=True, kw_only=True):
    """The plan of ``decide``: a digest of all of it, and enough to show differences."""

    digest: str
    gangs: list[GangSummary] = []
    evictions: list[str] = []
    """Uids of evicted pods."""
    preemptions: list[tuple[str, str, list[str]]] = []
    """The uid of the pod that is promised room, the node, and the uids of the victims."""
    touched: int = 0
    wake_at_s: float | None = None


class Verified(Record, frozen=True, kw_only=True):
    """The result of ``verified``: a digest of the remaining plan, and the problems."""

    digest: str
    problems: list[str] = []


class Stopped(Record, frozen=True):
    """The recording ended here; the text says why."""

    why: str


AnyRecord = Begin | Checkpoint | Observed | Deciding | Planned | Verified | Stopped

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(AnyRecord)


def frame(record: Record) -> bytes:
    """Return the bytes of one record, preceded by its length."""
    data = _ENCODER.encode(record)
    return len(data).to_bytes(4, "big") + data


def digest(value: object) -> str:
    """Return 16 hex digits that differ when the value (of structs and builtins) differs."""
    return hashlib.blake2b(_ENCODER.encode(value), digest_size=8).hexdigest()


def planned(plan: Plan) -> Planned:
    """Return the record of a plan."""
    return Planned(
        digest=digest(plan),
        gangs=[summary(gang) for gang in plan.gangs],
        evictions=[eviction.uid for eviction in plan.evictions],
        preemptions=[(p.uid, p.node, [v.uid for v in p.victims]) for p in plan.preemptions],
        touched=len(plan.touched),
        wake_at_s=plan.wake_at_s,
    )


def summary(gang: GangBinds) -> GangSummary:
    """Return the summary of one gang's binds."""
    runs = [(node, len(list(run))) for node, run in groupby(bind.node for bind in gang.binds)]
    return GangSummary(gang.key, gang.attempt, runs, digest(gang))


def verified(plan: Plan, problems: Sequence[str]) -> Verified:
    """Return the record of a plan that was verified."""
    return Verified(digest=digest(plan), problems=list(problems))


def write(path: Path, frames: Iterable[bytes]) -> int:
    """Write a recording and return its size in bytes. See ``replace_file``."""
    return replace_file(path, chain((MAGIC,), frames))


def replace_file(path: Path, parts: Iterable[bytes]) -> int:
    """Write a file that only its owner can read, and return its size in bytes.

    The write is atomic: the file gets its name last. Raises OSError.
    """
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # of mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(parts)
            size = file.tell()
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
    return size


def read(path: Path) -> Iterator[AnyRecord]:
    """Yield the records of a file; an incomplete last frame is left out.

    Raises RecordingError if the file cannot be read or is not a recording of this version.
    """
    try:
        with path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise RecordingError(f"{path} is no recording of quorate's")
            yield from _records(file, path)
    except OSError as error:
        raise RecordingError(f"{path} cannot be read: {error.strerror or error}") from error


def _records(file: BinaryIO, path: Path) -> Iterator[AnyRecord]:
    count = 0
    while len(head := file.read(4)) == 4:
        length = int.from_bytes(head, "big")
        if length > FRAME_BYTES_MAX:
            raise RecordingError(f"{path}: record {count} is damaged: its length is {length} bytes")
        data = file.read(length)
        if len(data) < length:
            return
        try:
            yield _DECODER.decode(data)
        except msgspec.MsgspecError as error:
            raise RecordingError(
                f"{path}: record {count} is damaged, or another version's: {error}"
            ) from error
        count += 1
