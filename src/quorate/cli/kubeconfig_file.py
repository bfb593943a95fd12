"""Add a context to a kubeconfig that somebody uses, and take it out again.

In: the file's path, a cluster's address, authority and token. Out: the same file with one cluster,
one user and one context more, which is the current one; at the end without them. Called by ``up``.

The file is edited as a tree of YAML's nodes: no field, no scalar and no order of others' entries
changes, whatever they mean; only comments are lost, and those come back if nobody else has written
meanwhile. It is replaced whole or not at all, under the lock that kubectl takes, keeps its place
behind symbolic links, and is its owner's alone.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from pocketkube.private_files import FILE_MODE, FOLDER_MODE, write_private

_LOCK_TRIES = 50
_LOCK_TRY_S = 0.1
_BYTES_MAX = 8 << 20
_CURRENT = "current-context"
_LISTS = ("clusters", "users", "contexts")
_CONTENT = {"clusters": "cluster", "users": "user", "contexts": "context"}


class KubeconfigFileError(Exception):
    """The file cannot be used; the text says why, and what to do. It is as it was."""


class Added(NamedTuple):
    """What was added to a file: names of the entries, and how to know them for ours."""

    path: Path
    context: str
    server: str
    token: str
    before: str
    """The current context of before; empty where there was none."""
    original: bytes | None
    """What the file held; None where there was none."""
    written: bytes


def check(path: Path) -> None:
    """Raise KubeconfigFileError unless a context can be added to the file; change nothing."""
    target = _target(path)
    _read(target)
    folder = target.parent
    while not folder.exists():
        folder = folder.parent
    if not os.access(folder, os.W_OK | os.X_OK):
        raise KubeconfigFileError(f"{path}: {folder} cannot be written to; name another file")


def add(path: Path, config: dict[str, Any]) -> Added:
    """Add the only cluster, user and context of ``config``, under names that are free.

    Raises KubeconfigFileError.
    """
    target = _target(path)
    with _held(target):
        original = target.read_bytes() if target.exists() else None
        root = _read(target)
        name = _free_name(root, config["contexts"][0]["name"])
        cluster = config["clusters"][0]["cluster"]
        user = config["users"][0]["user"]
        entries: dict[str, dict[str, Any]] = {
            "clusters": cluster,
            "users": user,
            "contexts": {"cluster": name, "user": name},
        }
        for key, content in entries.items():
            entry = {"name": name, _CONTENT[key]: content}
            _list_of(root, key, make=True).value.append(_node(entry))
        before = _text(_get(root, _CURRENT))
        _set(root, _CURRENT, name)
        for key, value in (("apiVersion", "v1"), ("kind", "Config")):
            if _get(root, key) is None:
                _set(root, key, value)
        written = _serialized(root)
        _write(target, written)
    return Added(path, name, cluster["server"], user["token"], before, original, written)


def remove(added: Added) -> None:
    """Take out what was added, unless somebody has made something else of it meanwhile.

    The current context becomes that of before, if it is still ours. Raises KubeconfigFileError.
    """
    target = _target(added.path)
    if not target.exists():
        return  # whoever removed it has removed what is ours, too
    with _held(target):
        root = _read(target)
        is_ours = target.read_bytes() == added.written
        _take_out(root, added)
        if added.original is None and (is_ours or _is_bare(root)):
            target.unlink()
        else:  # byte for byte what it was, where nobody else has written meanwhile
            original = added.original if is_ours else None
            _write(target, _serialized(root) if original is None else original)


def _take_out(root: MappingNode, added: Added) -> None:
    ours = {
        "clusters": {"server": added.server},
        "users": {"token": added.token},
        "contexts": {"cluster": added.context, "user": added.context},
    }
    for key, marks in ours.items():
        entries = _list_of(root, key).value
        entries[:] = [one for one in entries if not _is_ours(one, key, added.context, marks)]
    if _text(_get(root, _CURRENT)) == added.context:
        _set(root, _CURRENT, added.before)


def _target(path: Path) -> Path:
    """Return the file behind symbolic links, there or not."""
    try:
        return path.expanduser().resolve()
    except (OSError, RuntimeError) as error:
        raise KubeconfigFileError(f"{path}: its symbolic links lead nowhere: {error}") from error


@contextlib.contextmanager
def _held(target: Path) -> Iterator[None]:
    """Keep kubectl and its like from writing the file meanwhile: their lock is a file beside it."""
    lock = target.with_name(f"{target.name}.lock")
    try:
        if not target.parent.exists():
            target.parent.mkdir(mode=FOLDER_MODE, parents=True)
        for tries in range(_LOCK_TRIES):
            try:
                os.close(os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0))
                break
            except FileExistsError:
                if tries + 1 == _LOCK_TRIES:
                    raise KubeconfigFileError(
                        f"{target}: another program writes it, or {lock} was left behind by one "
                        "that died; remove that file if so"
                    ) from None
                time.sleep(_LOCK_TRY_S)
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)
    except OSError as error:
        raise KubeconfigFileError(
            f"{target}: it cannot be written: {error.strerror or error}; name another file"
        ) from error


def _read(target: Path) -> MappingNode:
    """Return the file's tree; an empty one where there is no file, or nothing in it."""
    try:
        if not target.exists():
            return MappingNode("tag:yaml.org,2002:map", [], flow_style=False)
        if not target.is_file():
            raise KubeconfigFileError(f"{target} is no file; name another one")
        with target.open("rb") as file:
            data = file.read(_BYTES_MAX + 1)
        if len(data) > _BYTES_MAX:
            raise KubeconfigFileError(f"{target} is too large for a kubeconfig; name another file")
        root = yaml.compose(data.decode(), Loader=yaml.SafeLoader)
    except OSError as error:
        raise KubeconfigFileError(f"{target} cannot be read: {error.strerror or error}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        why = " ".join(str(error).split()) or "it is nested too deeply"
        raise KubeconfigFileError(
            f"{target} is no kubeconfig: {why}; name another file, or mend it"
        ) from error
    if root is None:
        return MappingNode("tag:yaml.org,2002:map", [], flow_style=False)
    wrong = _wrong_with(root)
    if wrong or not isinstance(root, MappingNode):
        raise KubeconfigFileError(
            f"{target} is no kubeconfig: {wrong}; name another file, or mend it"
        )
    return root


def _wrong_with(root: Node) -> str:
    """Say why a tree is that of no kubeconfig; ``""`` if it is one."""
    if not isinstance(root, MappingNode):
        return "it holds no fields"
    kind = _get(root, "kind")
    if kind is not None and _text(kind) != "Config":
        return f'its kind is "{_text(kind)[:60]}", not Config'
    if root.value and all(_get(root, key) is None for key in ("kind", _CURRENT, *_LISTS)):
        return f"it has none of the fields {', '.join(('kind', *_LISTS))}"
    for key in _LISTS:
        found = _get(root, key)
        if found is None or _is_null(found):
            continue
        if not isinstance(found, SequenceNode):
            return f"{key} is no list"
        if not all(isinstance(one, MappingNode) for one in found.value):
            return f"an entry of {key} has no fields"
    return ""


def _serialized(root: MappingNode) -> bytes:
    text: str = yaml.serialize(root, Dumper=yaml.SafeDumper, allow_unicode=True, width=2**31)
    return text.encode()


def _write(target: Path, data: bytes) -> None:
    """Replace the file: nobody but its owner may read it, and its mode gets no wider."""
    if not target.exists():
        write_private(target, data)
        return
    found = target.stat()
    owner = found.st_uid, found.st_gid
    write_private(target, data, stat.S_IMODE(found.st_mode) & FILE_MODE, owner)


def _free_name(root: MappingNode, wanted: str) -> str:
    """Return a name that no cluster, user or context has."""
    entries = [entry for key in _LISTS for entry in _list_of(root, key).value]
    taken = {_text(_get(entry, "name")) for entry in entries}
    number, name = 1, wanted
    while name in taken:
        number += 1
        name = f"{wanted}-{number}"
    return name


def _is_ours(entry: MappingNode, key: str, name: str, marks: dict[str, str]) -> bool:
    content = _get(entry, _CONTENT[key])
    return (
        _text(_get(entry, "name")) == name
        and isinstance(content, MappingNode)
        and all(_text(_get(content, field)) == value for field, value in marks.items())
    )


def _is_bare(root: MappingNode) -> bool:
    """Whether nothing is left but the frame of a kubeconfig."""
    known = {"apiVersion", "kind", _CURRENT, *_LISTS}
    return (
        all(_text(key) in known for key, _ in root.value)
        and not any(_list_of(root, key).value for key in _LISTS)
        and not _text(_get(root, _CURRENT))
    )


def _list_of(root: MappingNode, key: str, *, make: bool = False) -> SequenceNode:
    found = _get(root, key)
    if isinstance(found, SequenceNode):
        return found
    new = SequenceNode("tag:yaml.org,2002:seq", [], flow_style=False)
    if make:
        _set(root, key, new)
    return new


def _get(where: MappingNode, key: str) -> Node | None:
    return next((value for name, value in where.value if _text(name) == key), None)


def _set(where: MappingNode, key: str, value: str | Node) -> None:
    new = value if isinstance(value, Node) else _node(value)
    for index, (name, _) in enumerate(where.value):
        if _text(name) == key:
            where.value[index] = name, new
            return
    where.value.append((_node(key), new))


def _text(node: Node | None) -> str:
    return str(node.value) if isinstance(node, ScalarNode) and not _is_null(node) else ""


def _is_null(node: Node) -> bool:
    return node.tag == "tag:yaml.org,2002:null"


def _node(value: object) -> Node:
    """Return the tree of plain data."""
    found = yaml.compose(yaml.safe_dump(value, sort_keys=False), Loader=yaml.SafeLoader)
    assert found is not None, "plain data has a tree"
    return found
