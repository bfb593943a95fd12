"""Files of an image, by path: what a layer holds, without owner and time.

In: bytes, folders. Out: ``Tree``, and layers (tar) of one. Everything belongs to root and to the
beginning of 1970, so that equal contents are equal bytes.
"""

import io
import stat
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple


class Entry(NamedTuple):
    """A file, a symbolic link (``target``), or a folder (neither)."""

    mode: int
    data: bytes | None = None
    target: str = ""


Tree = dict[str, Entry]
"""By path without a leading slash; folders that no entry names are made with mode 755."""


def folder_tree(folder: Path, at: str) -> Tree:
    """Read all files and links below a folder, as they are to be below ``at``."""
    found: Tree = {}
    for path in sorted(folder.rglob("*")):
        name = f"{at}/{path.relative_to(folder).as_posix()}"
        if path.is_symlink():
            found[name] = Entry(0o777, target=str(path.readlink()))
        elif path.is_file():
            runs = path.stat().st_mode & stat.S_IXUSR
            found[name] = Entry(0o755 if runs else 0o644, path.read_bytes())
    return found


def write_tree(tree: Mapping[str, Entry], folder: Path) -> None:
    """Put a tree into a folder of the machine; owners are whoever calls."""
    with tarfile.open(fileobj=io.BytesIO(layer(tree))) as tar:
        tar.extractall(folder, filter="tar")


def layer(tree: Mapping[str, Entry]) -> bytes:
    """Return the tree as a tar file, sorted, with each folder before what is in it."""
    whole = {**{name: Entry(0o755) for name in _folders(tree)}, **tree}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, entry in sorted(whole.items()):
            info = tarfile.TarInfo(name)
            info.mode = entry.mode
            if entry.target:
                info.type, info.linkname = tarfile.SYMTYPE, entry.target
            elif entry.data is None:
                info.type = tarfile.DIRTYPE
            else:
                info.size = len(entry.data)
            tar.addfile(info, io.BytesIO(entry.data) if entry.data is not None else None)
    return out.getvalue()


def _folders(tree: Mapping[str, Entry]) -> set[str]:
    found = set()
    for name in tree:
        parent = name.rpartition("/")[0]
        while parent and parent not in found:
            found.add(parent)
            parent = parent.rpartition("/")[0]
    return found
