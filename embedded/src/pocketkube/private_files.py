"""Files that only their owner may read: tokens, keys, and all that the cluster holds.

In: a path and what goes there. Out: a file of mode 0600, a folder of 0700, whatever the umask, from
their first moment on. What was there with a wider mode is tightened.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Collection
from pathlib import Path

FILE_MODE = 0o600
FOLDER_MODE = 0o700


def write_private(
    path: Path,
    content: str | bytes,
    mode: int = FILE_MODE,
    owner: tuple[int, int] | None = None,
) -> None:
    """Put a file in the place of what is there, whole or not at all.

    ``owner`` is its user's and group's id, else those of the process. Raises OSError; then nothing
    is changed.
    """
    data = content.encode() if isinstance(content, str) else content
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:60]}.")  # 0600, new
    try:
        with os.fdopen(handle, "wb") as file:
            made = os.fstat(handle)
            if owner not in (None, (made.st_uid, made.st_gid)):
                os.fchown(handle, *owner)
            os.fchmod(handle, mode)  # a umask may have taken bits that are needed
            file.write(data)
            file.flush()
            os.fsync(handle)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def tighten(path: Path) -> None:
    """Take from others what a file's mode gives them; nothing to do where there is none."""
    with contextlib.suppress(FileNotFoundError):
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & ~FILE_MODE:
            path.chmod(mode & FILE_MODE)


def private_folder(path: Path, own_files: Collection[str]) -> None:
    """Make a folder that is closed to others, or close the one that is there.

    A folder that holds things, and none of ``own_files``, is somebody's for other purposes too: its
    mode stays, and each file of ours protects itself. Raises OSError.
    """
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(FOLDER_MODE)
        path.chmod(FOLDER_MODE)
        return
    mode = stat.S_IMODE(path.stat().st_mode)
    is_shared = bool(mode & stat.S_ISVTX) or path.stat().st_uid != os.geteuid()
    if is_shared or not mode & ~FOLDER_MODE:
        return
    held = {one.name for one in path.iterdir()}
    if not held or not held.isdisjoint(own_files):
        path.chmod(FOLDER_MODE)
