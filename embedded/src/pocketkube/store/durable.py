"""Objects in one SQLite file, so that they outlive the process.

In: entries of the store. Out: the same after a restart, or DataError, which says what to do. A file
that cannot be trusted is left as it is: it is never emptied, repaired or written over.

A write is one transaction that is over before the API answers. ``synchronous=OFF`` leaves it to
the kernel when the disk gets it: what a process has written survives the process, also ``kill -9``;
only a power failure may lose the last seconds.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

from pocketkube.private_files import FILE_MODE, make_empty, tighten
from pocketkube.store.store import Entry

_APPLICATION_ID = 0x51524D31  # in the file's header: "QRM1"
_FORMAT = 1
_MAGIC = b"SQLite format 3\0"

_TABLES = f"""
PRAGMA page_size = 8192;
CREATE TABLE objects (
  bucket TEXT NOT NULL,
  namespace TEXT NOT NULL,
  name TEXT NOT NULL,
  revision INTEGER NOT NULL,
  checksum INTEGER NOT NULL,
  raw BLOB NOT NULL,
  PRIMARY KEY (bucket, namespace, name)
);
CREATE TABLE removed (revision INTEGER NOT NULL, checksum INTEGER NOT NULL);
INSERT INTO removed VALUES (0, {crc32(b"0")});
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {_FORMAT};
"""
_PUT = """
INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET revision = excluded.revision, checksum = excluded.checksum,
  raw = excluded.raw
"""
_REMOVE = "DELETE FROM objects WHERE bucket = ? AND namespace = ? AND name = ?"
_REMOVED = "UPDATE removed SET revision = ?, checksum = ?"
_LOAD = "SELECT bucket, namespace, name, revision, checksum, raw FROM objects"
_LOAD_REMOVED = "SELECT revision, checksum FROM removed"
_REVISION = "SELECT max(coalesce((SELECT max(revision) FROM objects), 0), revision) FROM removed"
_CACHE_KIB = 64 * 1024


class DataError(Exception):
    """The file with the cluster's state cannot be used; the text says why, and what to do."""


class SqliteBackend:
    """Keeps the newest version of each object in a file; one process at a time may have it."""

    def __init__(self, path: Path) -> None:
        """Open the file, or make it. Raises DataError; a file that is damaged stays as it is."""
        self._path = path
        try:
            self._lock = _locked(path)
        except OSError as error:
            raise DataError(f"{path} cannot be used: {error.strerror}.") from error
        try:
            for beside in ("", "-wal", "-shm", "-journal"):
                tighten(path.with_name(f"{path.name}{beside}"))
            _check(path) if path.exists() else _make(path)
            self._db = _open(path)
        except BaseException as error:
            os.close(self._lock)
            if isinstance(error, sqlite3.Error):
                raise _explained(path, error) from error
            if isinstance(error, OSError):
                raise DataError(f"{path} cannot be used: {error.strerror}.") from error
            raise

    def put(self, bucket: str, entry: Entry) -> None:
        """Keep this version instead of an earlier one. Raises DataError, as for a full disk."""
        key = (bucket, entry.namespace, entry.name, entry.revision)
        row = (*key, _checksum(*key, entry.raw), entry.raw)
        try:
            self._db.execute(_PUT, row)  # a transaction of its own
        except sqlite3.Error as error:
            raise _explained(self._path, error) from error

    def remove(self, bucket: str, entry: Entry) -> None:
        """Forget the object; ``entry.revision`` is that of its deletion. Raises DataError."""
        try:
            with self._db:
                self._db.execute("BEGIN")
                self._db.execute(_REMOVE, (bucket, entry.namespace, entry.name))
                self._db.execute(_REMOVED, (entry.revision, crc32(b"%d" % entry.revision)))
        except sqlite3.Error as error:
            raise _explained(self._path, error) from error

    def load(self) -> Iterator[tuple[str, int, bytes]]:
        """Give bucket, revision and bytes of each object that was kept."""
        for bucket, _, _, revision, _, raw in self._db.execute(_LOAD):
            yield bucket, revision, raw

    def revision(self) -> int:
        """Return the last revision that was given out."""
        return int(self._db.execute(_REVISION).fetchone()[0])

    def close(self) -> None:
        """Let go of the file: the next process may have it."""
        self._db.close()
        os.close(self._lock)


def _checksum(bucket: str, namespace: str, name: str, revision: int, raw: bytes) -> int:
    """SQLite finds pages that are broken; this finds content that is not what was written."""
    return crc32(raw, crc32(f"{bucket}/{namespace}/{name}/{revision}".encode()))


def _locked(path: Path) -> int:
    """Keep other processes out, until the descriptor is closed or the process is gone.

    The lock is on a file of its own: SQLite's would be lost when this process closes the database
    file for any other reason, as POSIX wants it.
    """
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


def _make(path: Path) -> None:
    """Make an empty file under its name only when it is complete.

    So a file without content is never one that was about to be made: it is one that was cut off.
    """
    unfinished = path.with_name(f"{path.name}.new")
    unfinished.unlink(missing_ok=True)
    make_empty(unfinished)  # SQLite fills it, and gives its log the same mode
    db = sqlite3.connect(unfinished)
    try:
        db.executescript(_TABLES)
    finally:
        db.close()
    unfinished.rename(path)


def _open(path: Path) -> sqlite3.Connection:
    # One thread at a time calls the store; which one is the caller's business.
    db = sqlite3.connect(path, isolation_level=None, timeout=0, check_same_thread=False)
    try:
        db.execute("PRAGMA locking_mode = EXCLUSIVE")  # nobody else comes, and it is faster
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = OFF")
        db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    except sqlite3.Error:
        db.close()
        raise
    return db


def _check(path: Path) -> None:
    """Raise DataError unless the file is whole and ours. Reads only."""
    with path.open("rb") as file:
        header = file.read(100)
    if not header:
        raise _damaged(path, "it is empty")
    if header[:16] != _MAGIC[: len(header)]:
        raise DataError(
            f"{path} is not a state of pocketkube, and was left as it is. "
            "Choose another folder with --data."
        )
    if len(header) < 100:
        raise _damaged(path, "it was cut off")
    # Both numbers are at fixed places of SQLite's header.
    if int.from_bytes(header[68:72], "big") != _APPLICATION_ID:
        raise DataError(
            f"{path} is a database of another program, and was left as it is. "
            "Choose another folder with --data."
        )
    found = int.from_bytes(header[60:64], "big")
    if found != _FORMAT:
        raise DataError(
            f"{path} has format {found}; this version of pocketkube reads format {_FORMAT}. It was "
            "left as it is. Choose another folder with --data, or use the version that wrote it."
        )
    _check_content(path)


def _check_content(path: Path) -> None:
    # Read-only: not even what a killed process left in the write-ahead log is moved.
    uri = f"{path.resolve().as_uri()}?mode=ro"
    db = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=0)
    try:
        answer = db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if answer != "ok":
            raise _damaged(path, str(answer).splitlines()[-1])
        for bucket, namespace, name, revision, checksum, raw in db.execute(_LOAD):
            own = isinstance(raw, bytes) and _checksum(bucket, namespace, name, revision, raw)
            if own != checksum:
                place = " ".join(part for part in (bucket, namespace, name) if part)
                raise _damaged(path, f"the object {place} is not what was written")
        removed = db.execute(_LOAD_REMOVED).fetchall()
        if len(removed) != 1 or crc32(str(removed[0][0]).encode()) != removed[0][1]:
            raise _damaged(path, "the last revision is not what was written")
    finally:
        db.close()


def _explained(path: Path, error: sqlite3.Error) -> DataError:
    text = str(error)
    if not isinstance(error, sqlite3.OperationalError) or "decode" in text or "no such" in text:
        return _damaged(path, text)
    return DataError(f"{path} cannot be used: {text}. Check the disk and the permissions.")


def _damaged(path: Path, why: str) -> DataError:
    return DataError(
        f"{path} is damaged ({why}), and was left as it is. Put a copy of the folder back, or "
        "choose another folder with --data to begin anew."
    )
