"""The scheduler's whole state as bytes, and back: exactly, so that replay may begin anywhere.

In: a ``Scheduler`` between two of its calls. Out: msgpack, compressed. Called by ``recorder``
(capture) and ``quorate replay`` (restore). It walks attributes, so the core needs no code for it:
every object of a class of the core, with the order of dicts, arrays, and shared references. Nothing
named in a file is ever called or imported: only classes of the core that are imported already are
filled.

Objects of one class are written as columns, one for each attribute, in blocks of at most
``BLOCK_OBJECTS`` objects. Each slice writes one block; between slices other tasks run, but the core
must not. A block is reduced to bytes at once: millions of new containers would trigger garbage
collections.
"""

from __future__ import annotations

import sys
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from itertools import islice
from typing import Any, Final

import msgspec
import numpy as np

from quorate.core.cluster.cluster import Cluster
from quorate.core.cluster.devices.views import DeviceViews
from quorate.core.scheduler import Scheduler

_OF_THE_CORE: Final = "quorate.core."
_PLAIN: Final = frozenset({type(None), bool, int, float, str})
_CONTAINERS: Final = (list, dict, Counter, set, frozenset, tuple, deque)
_STATE_BYTES_MAX: Final = 1 << 32
_LEFT_OUT: Final = {
    ("Cluster", "_handlers"),  # methods: a new cluster has its own
    ("Cluster", "device_views"),  # derived from the rest
    ("Planner", "_rule_cache"),  # a cache: it is computed again
    ("Planner", "_searches"),  # generators under way: see ``capture``
    ("Planner", "_singles"),  # a cache; its room reaches ``device_views``
}

BLOCK_OBJECTS = 250
_NAMES_A_SLICE = 10_000
_NOTHING: Final = ["plain", []]

Value = Any
"""An attribute's value, or its written form."""


class CheckpointError(Exception):
    """The state cannot be written, or the bytes are not a state of this version."""


def capture(scheduler: Scheduler) -> bytes:
    """Return the state of ``scheduler``. Raises CheckpointError if a value cannot be written."""
    one = Capture(scheduler)
    deque(one.slices(), maxlen=0)
    return one.state


def unpacked(state: bytes) -> bytes:
    """Return the msgpack of a state, which is one zlib stream or several."""
    parts, left = [], _STATE_BYTES_MAX
    while state:
        stream = zlib.decompressobj()
        parts.append(stream.decompress(state, left))
        left = max(1, left - len(parts[-1]))
        state = stream.unused_data
    return b"".join(parts)


def restore(scheduler: Scheduler, state: bytes) -> None:
    """Give a new ``scheduler`` the state that was captured.

    Raises CheckpointError if the bytes are not a state of this version.
    """
    try:
        _Reader(scheduler).read(msgspec.msgpack.decode(unpacked(state)))
        cluster = scheduler.cluster
        cluster.devices.all_stale = True
        cluster.device_views = DeviceViews(cluster.devices, cluster.nodes)
    except CheckpointError:
        raise
    except (
        zlib.error,
        msgspec.MsgspecError,
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
    ) as error:
        raise CheckpointError(f"no state of this version: {error}") from error


class Capture:
    """A state that is being written; after the last of ``slices``, ``state`` has its bytes."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._root = scheduler
        self._head: list[bytes] = []
        self._body: list[bytes] = []

    @property
    def state(self) -> bytes:
        """Two zlib streams; the first has the classes, which are complete only at the end."""
        return b"".join(self._head + self._body)

    def slices(self) -> Iterator[None]:
        """Write block after block of objects; the core must not be called before the end.

        Raises CheckpointError if a value cannot be written.
        """
        writer, packer, encode = _Writer(), zlib.compressobj(level=1), msgspec.msgpack.encode
        blocks = 0
        for block in writer.blocks(self._root):
            if block is not None:
                blocks += 1
                self._body.append(packer.compress(encode(block)))
            yield
        self._body.append(packer.flush())
        packer, names = zlib.compressobj(level=1), writer.classes
        self._head.append(packer.compress(b"\x92" + _array_head(len(names))))
        for start in range(0, len(names), _NAMES_A_SLICE):
            some = b"".join(map(encode, names[start : start + _NAMES_A_SLICE]))
            self._head.append(packer.compress(some))
            yield
        self._head.append(packer.compress(_array_head(blocks)) + packer.flush())


def _array_head(length: int) -> bytes:
    return b"\xdd" + length.to_bytes(4, "big")


class _Writer:
    """Numbers each object and each container in the order of first visits.

    Visited values stay referenced, so that no later value can have the same ``id``.
    """

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._made = 0
        self.classes: list[str] = []
        """The class of each object, by the object's number."""
        self._new: list[object] = []
        self._kept: list[object] = []

    def blocks(self, root: Scheduler) -> Iterator[object]:
        """Yield one block after the other, and None where a slice ends without one."""
        self._reference(root)
        while self._new:
            by_class: dict[type, list[object]] = {}
            for found in self._new:
                by_class.setdefault(type(found), []).append(found)
            self._new = []
            for cls, objects in by_class.items():
                for start in range(0, len(objects), BLOCK_OBJECTS):
                    some = objects[start : start + BLOCK_OBJECTS]
                    for _ in self._meet_many(some):
                        yield None
                    yield self._block(cls, some)

    def _meet_many(self, objects: list[Any]) -> Iterator[None]:
        """Number the items of large containers in slices, before their block is written."""
        for one in objects:
            for name in _attributes(one):
                value = getattr(one, name)
                if type(value) in _CONTAINERS and len(value) > BLOCK_OBJECTS:
                    found = iter(value.values() if isinstance(value, dict) else value)
                    while some := list(islice(found, BLOCK_OBJECTS)):
                        for each in some:
                            if _is_object(type(each)):
                                self._reference(each)
                        yield

    def _block(self, cls: type, objects: list[Any]) -> object:
        columns = {
            name: self._many([getattr(one, name) for one in objects])
            for name in _attributes(objects[0])
            if (cls.__name__, name) not in _LEFT_OUT
        }
        return [[self._numbers[id(one)] for one in objects], columns]

    def _reference(self, value: object) -> int:
        number = self._numbers.get(id(value))
        if number is None:
            number = self._numbers[id(value)] = len(self.classes)
            self.classes.append(_name(type(value)))
            self._new.append(value)
            self._kept.append(value)
        return number

    def _many(self, values: list[Any]) -> object:
        """Write many values; values of one type at once."""
        if not values:
            return _NOTHING
        kinds = set(map(type, values))
        if kinds <= _PLAIN:
            return ["plain", values]
        if len(kinds) == 1:
            (kind,) = kinds
            if issubclass(kind, msgspec.Struct):
                return ["structs", _name(kind), values]
            if issubclass(kind, Enum):
                return ["enums", _name(kind), [one.value for one in values]]
            if _is_object(kind):
                numbers, reference = self._numbers, self._reference
                known = [numbers.get(id(one)) for one in values]
                return [
                    "objects",
                    [reference(v) if n is None else n for v, n in zip(values, known, strict=True)],
                ]
            if issubclass(kind, tuple) and hasattr(kind, "_fields"):
                rows = [self._many(list(column)) for column in zip(*values, strict=True)]
                return ["named", _name(kind), rows]
        return ["mixed", [self._one(value) for value in values]]

    def _one(self, value: Value) -> object:
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind in _CONTAINERS or kind is np.ndarray:
            return self._container(value, kind)
        if issubclass(kind, msgspec.Struct | Enum) or _is_object(kind) or hasattr(kind, "_fields"):
            return ["one", self._many([value])]
        raise CheckpointError(f"a {kind.__module__}.{kind.__name__} has no place in a recording")

    def _container(self, value: Value, kind: type) -> object:
        """Write a container; one visited before (a shared dict) is written as its number."""
        if kind is not tuple and kind is not frozenset:
            shared = self._numbers.get(id(value))
            if shared is not None:
                return ["again", shared]
            self._made += 1
            self._numbers[id(value)] = self._made
            self._kept.append(value)
        if kind is np.ndarray:
            order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
            return ["array", value.dtype.str, value.shape, order, value.tobytes(order=order)]
        if kind in (dict, Counter):
            if not value:
                return [kind.__name__, _NOTHING, _NOTHING]
            return [kind.__name__, self._many(list(value)), self._many(list(value.values()))]
        return [kind.__name__, self._many(list(value))]


class _Reader:
    """Reads in the order in which ``_Writer`` wrote, so that numbers mean the same."""

    def __init__(self, scheduler: Scheduler) -> None:
        planner = scheduler.planner
        self._ready: dict[type, object] = {
            Scheduler: scheduler,
            Cluster: scheduler.cluster,
            type(planner): planner,
        }
        self._objects: list[Any] = []
        self._containers: dict[int, Any] = {}
        self._made = 0

    def read(self, document: Value) -> None:
        classes, blocks = document
        self._objects = [self._empty(_class(name)) for name in classes]
        for numbers, columns in blocks:
            objects = [self._objects[number] for number in numbers]
            self._expect(objects[0], set(columns))
            for name, column in columns.items():
                for one, value in zip(objects, self._many(column), strict=True):
                    setattr(one, name, value)

    def _expect(self, one: object, names: set[str]) -> None:
        """Raise CheckpointError for another version's state: other slots, or other attributes."""
        cls = type(one)
        if self._ready.get(cls) is one or not hasattr(one, "__dict__"):
            ours = {name for name in _attributes(one) if (cls.__name__, name) not in _LEFT_OUT}
            if ours != names:
                differ = ", ".join(sorted(ours ^ names))
                raise CheckpointError(f"{cls.__name__} differs in {differ}")

    def _empty(self, cls: type) -> object:
        if not _is_object(cls):
            raise CheckpointError(f"{cls.__name__} is no class of states")
        ready = self._ready.get(cls)
        return object.__new__(cls) if ready is None else ready

    def _many(self, column: Value) -> list[Any]:
        kind, *rest = column
        if kind == "plain":
            return list(rest[0])
        if kind == "structs":
            cls = _class(rest[0], msgspec.Struct)
            return msgspec.convert(rest[1], list[cls])  # type: ignore[valid-type]
        if kind == "enums":
            values: Callable[[Any], Any] = _class(rest[0], Enum)
            return [values(value) for value in rest[1]]
        if kind == "objects":
            return [self._objects[number] for number in rest[0]]
        if kind == "named":
            make = _class(rest[0], tuple)
            return [make(*row) for row in zip(*map(self._many, rest[1]), strict=True)]
        if kind == "mixed":
            return [self._one(value) for value in rest[0]]
        raise CheckpointError(f"{kind!r} is no kind of column")

    def _one(self, value: Value) -> Value:
        if not isinstance(value, list):
            return value
        kind, *rest = value
        if kind == "one":
            return self._many(rest[0])[0]
        if kind == "again":
            return self._containers[rest[0]]
        if kind in ("tuple", "frozenset"):
            return (tuple if kind == "tuple" else frozenset)(self._many(rest[0]))
        self._made += 1
        number = self._made
        made = self._containers[number] = self._container(kind, rest)
        return made

    def _container(self, kind: str, rest: list[Any]) -> Value:
        if kind == "array":
            dtype, shape, order, data = rest
            flat = np.frombuffer(data, np.dtype(dtype))
            return flat.reshape(shape, order=order).copy(order=order)
        if kind in ("dict", "Counter"):
            pairs = zip(self._many(rest[0]), self._many(rest[1]), strict=True)
            return dict(pairs) if kind == "dict" else Counter(dict(pairs))
        makers: dict[str, Callable[[Iterable[Any]], Any]] = {
            "list": list,
            "set": set,
            "deque": deque,
        }
        return makers[kind](self._many(rest[0]))


def _is_object(kind: type) -> bool:
    """Whether this is a class of the core with mutable objects: neither values nor enums."""
    found = _IS_OBJECT.get(kind)
    if found is None:
        is_value = issubclass(kind, msgspec.Struct | Enum | tuple | BaseException)
        found = kind.__module__.startswith(_OF_THE_CORE) and not is_value
        _IS_OBJECT[kind] = found
    return found


_IS_OBJECT: Final[dict[type, bool]] = {}


def _attributes(one: object) -> list[str]:
    return [*_slots(type(one)), *getattr(one, "__dict__", ())]


def _slots(kind: type) -> list[str]:
    return [name for cls in kind.__mro__ for name in getattr(cls, "__slots__", ())]


def _name(cls: type) -> str:
    if not cls.__module__.startswith(_OF_THE_CORE):
        raise CheckpointError(f"{cls.__module__}.{cls.__name__} is no class of the core")
    return f"{cls.__module__}:{cls.__qualname__}"


def _class(name: str, base: type = object) -> Value:
    """Return a class of the core that is imported already and derives from ``base``."""
    module, _, qualname = name.partition(":")
    if not module.startswith(_OF_THE_CORE) or "." in qualname:
        raise CheckpointError(f"{name} is no class of the core")
    cls = getattr(sys.modules.get(module), qualname, None)
    if not isinstance(cls, type) or cls.__module__ != module or not issubclass(cls, base):
        raise CheckpointError(f"{name} is no class of this version")
    return cls
