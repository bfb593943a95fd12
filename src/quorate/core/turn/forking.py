"""Copies a whole scheduler, for *what if* questions.

In: a scheduler between two of its calls. Out: another scheduler in the same state, which shares
only immutable values with it. Cached answers (masks, searches) are not copied, because they can be
computed again. So a search that lasts several turns starts again in the copy, which may find its
answer some turns later.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from enum import Enum
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

import msgspec
import numpy as np

from quorate.core.place.one_pod.single import Singles
from quorate.core.place.search.joint import OpenSearches
from quorate.core.preempt.victim_searches import VictimSearches
from quorate.core.room.rule_cache import RuleCache

Scheduler = TypeVar("Scheduler")

_PLAIN: Final = (type(None), bool, int, float, str, bytes, type)
_SHARED: Final = (*_PLAIN, msgspec.Struct, Enum)
"""Immutable types, whose values are shared; subclasses of ``_SHARED`` are immutable too."""
_MADE_ANEW: Final = (RuleCache, Singles, OpenSearches, VictimSearches)
"""Caches of answers, which are derived from the rest: the copy starts with empty ones."""


def fork(scheduler: Scheduler) -> Scheduler:
    """Return an independent copy of a scheduler in the same state."""
    other: Scheduler = _Copy().of(scheduler)
    return other


class _Copy:
    """Copies each object once, by its identity; recursion is as deep as classes are nested."""

    def __init__(self) -> None:
        self._copies: dict[int, Any] = {}
        self._kept: list[object] = []
        """The originals, kept alive so that no ``id`` is reused while copying."""
        self._plan: dict[type, Callable[[Any], Any]] = dict.fromkeys(_PLAIN, _itself)

    def of(self, value: Any) -> Any:  # noqa: ANN401  a copy has the type of what is copied
        """Return the copy of a value; an immutable value is returned itself."""
        kind = type(value)
        copy = self._plan.get(kind)
        if copy is None:
            copy = self._plan[kind] = self._way(kind)
        return copy(value)

    def _way(self, kind: type) -> Callable[[Any], Any]:
        if issubclass(kind, _SHARED) or kind in (np.dtype, frozenset):
            return _itself
        if issubclass(kind, tuple):
            return self._tuple
        if kind in (dict, Counter):
            return self._dict
        if kind is WeakValueDictionary:
            return self._weak
        if kind in (list, set, deque):
            return self._items
        if kind is np.ndarray:
            return self._array
        if kind is object:
            return lambda value: self._known(value, object)[0]
        if kind in _MADE_ANEW:
            return lambda _: kind()
        assert kind.__module__.startswith("quorate.core."), f"a {kind} cannot be copied"
        return self._object

    def _known(self, value: object, make: Callable[[], Any]) -> tuple[Any, bool]:
        found = self._copies.get(id(value))
        if found is not None:
            return found, True
        self._kept.append(value)
        made = self._copies[id(value)] = make()
        return made, False

    def _tuple(self, value: Any) -> Any:  # noqa: ANN401
        parts = [self.of(part) for part in value]
        if all(a is b for a, b in zip(parts, value, strict=True)):
            return value
        kind = type(value)
        return kind(*parts) if hasattr(kind, "_fields") else kind(parts)

    def _dict(self, value: Any) -> Any:  # noqa: ANN401
        made, known = self._known(value, type(value))
        if not known:
            of = self.of
            dict.update(made, {of(key): of(item) for key, item in value.items()})
        return made

    def _weak(self, value: Any) -> Any:  # noqa: ANN401
        """Copy a table of weak references; the objects that hold the values keep them alive."""
        made, known = self._known(value, WeakValueDictionary)
        if not known:
            self._kept.append([made.setdefault(self.of(k), self.of(v)) for k, v in value.items()])
        return made

    def _items(self, value: Any) -> Any:  # noqa: ANN401
        made, known = self._known(value, type(value))
        if not known:
            items = [self.of(item) for item in value]
            made.update(items) if isinstance(made, set) else made.extend(items)
        return made

    def _array(self, value: Any) -> Any:  # noqa: ANN401
        return self._known(value, lambda: value.copy(order="K"))[0]

    def _object(self, value: Any) -> Any:  # noqa: ANN401
        kind = type(value)
        made, known = self._known(value, lambda: object.__new__(kind))
        if not known:
            for name in attributes(value):
                object.__setattr__(made, name, self.of(getattr(value, name)))
        return made


def attributes(one: object) -> list[str]:
    """Return the names of an object's attributes, from its slots and its ``__dict__``."""
    slots = [name for cls in type(one).__mro__ for name in getattr(cls, "__slots__", ())]
    return [name for name in (*slots, *getattr(one, "__dict__", ())) if name != "__weakref__"]


def _itself(value: Any) -> Any:  # noqa: ANN401
    return value
