"""Objects in one file, so that they outlive the process.

In: each write of the store. Out: the newest version of each object after a restart, or DataError,
which says what to do. A write is one line, appended before the API answers: what a process has
written survives it, also ``kill -9``; a power failure may lose the last seconds. What is outdated
goes when the file is opened, and when it has grown. A file that cannot be trusted is left as it is.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import msgspec

from pocketkube.private_files import FILE_MODE, tighten, write_private

_HEAD = b"pocketkube state, format 1\n"
_CHECKSUM_BYTES = 9
_REWRITE_BYTES = 64 * 1024 * 1024
"""The file is rewritten when it has grown by this, and to three times its size."""


class DataError(Exception):
    """The file with the cluster's state cannot be used; the text says why, and what to do."""


class Key(NamedTuple):
    """What an object is stored under."""

    bucket: str
    namespace: str
    name: str


class Journal:
    """Keeps the newest version of each object in a file; one process at a time may have it."""

    def __init__(self, path: Path) -> None:
        """Open the file, or make it. Raises DataError; a file that is damaged stays as it is."""
        self._path = path
        try:
            self._lock = _locked(path)
        except OSError as error:
            raise DataError(f"{path} cannot be used: {error.strerror}.") from error
        try:
            tighten(path)
            self._open()
        except BaseException as error:
            os.close(self._lock)
            if isinstance(error, OSError):
                raise DataError(f"{path} cannot be used: {error.strerror}.") from error
            raise

    def _open(self) -> None:
        """Read the file, write it anew without what is out of date, and append from there."""
        path = self._path
        data = path.read_bytes() if path.exists() else _HEAD
        self.revision, self.objects = _read(path, data)
        lines = [_line(key, *version) for key, version in self.objects.items()]
        lines.append(_line(Key("", "", ""), self.revision, b""))
        write_private(path, _HEAD + b"".join(lines))
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND)
        self._size = os.fstat(self._file).st_size
        self._rewrite_at = max(self._size + _REWRITE_BYTES, 3 * self._size)

    def take_objects(self) -> dict[Key, tuple[int, bytes]]:
        """Return revision and bytes of each object that was kept; they are forgotten here."""
        objects, self.objects = self.objects, {}
        return objects

    def write(self, key: Key, revision: int, raw: bytes) -> None:
        """Keep a version of an object; no bytes: it is gone. Raises DataError, as for a full disk.

        What is written in part is taken back.
        """
        line = _line(key, revision, raw)
        try:
            if os.write(self._file, line) != len(line):
                os.ftruncate(self._file, self._size)
                raise DataError(f"{self._path} cannot be used: the disk is full.")
            self._size += len(line)
            if self._size > self._rewrite_at:
                os.close(self._file)
                self._open()
                self.objects = {}
        except OSError as error:
            raise DataError(f"{self._path} cannot be used: {error.strerror}.") from error

    def close(self) -> None:
        """Let go of the file: the next process may have it."""
        os.close(self._file)
        os.close(self._lock)


def _line(key: Key, revision: int, raw: bytes) -> bytes:
    return _framed(msgspec.json.encode((*key, revision)) + b"\t" + raw)


def _framed(content: bytes) -> bytes:
    return b"%d %08x %b\n" % (len(content), crc32(content), content)


def _read(path: Path, data: bytes) -> tuple[int, dict[Key, tuple[int, bytes]]]:
    """Return the last revision, and the newest version of each object. Raises DataError.

    A last line that was cut off is what a power failure leaves of a write; it is dropped.
    """
    first, newline, rest = data.partition(b"\n")
    if first + newline != _HEAD:
        raise _damaged(path, "it begins otherwise")
    *lines, cut_off = rest.split(b"\n")
    length, _, left = cut_off.partition(b" ")
    if left and not (length.isdigit() and len(left) <= int(length) + _CHECKSUM_BYTES):
        raise _damaged(path, "its last line is longer than what was written")
    objects: dict[Key, tuple[int, bytes]] = {}
    last = 1
    for number, line in enumerate(lines, start=2):
        content = line.split(b" ", 2)[-1]
        if line + b"\n" != _framed(content):
            raise _damaged(path, f"line {number} is not what was written")
        head, _, raw = content.partition(b"\t")
        *names, revision = msgspec.json.decode(head)
        last = max(last, revision)
        if raw:
            objects[Key(*names)] = (revision, raw)
        else:
            objects.pop(Key(*names), None)
    return last, objects


def _damaged(path: Path, why: str) -> DataError:
    return DataError(
        f"{path} is damaged, or no state of this version of pocketkube ({why}), and was left as it "
        "is. Put a copy of the folder back, or choose another folder with --data to begin anew."
    )


def _locked(path: Path) -> int:
    """Keep other processes out, until the descriptor is closed or the process is gone."""
    lock = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, FILE_MODE)
    os.fchmod(lock, FILE_MODE)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(lock)
        raise DataError(
            f"{path.parent} is in use by another cluster. Stop that one, or choose another folder "
            "with --data."
        ) from error
    return lock
