"""A bounded cache of values by key that evicts the least recently used ones.

In: keys and values with their sizes. Out: the values. Used in ``cluster`` and ``room``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class LruCache(Generic[_Key, _Value]):
    """Values by key, the least recently used first. ``size`` is the sum of their sizes."""

    def __init__(self) -> None:
        self._values: dict[_Key, tuple[_Value, int]] = {}
        self.size = 0

    def __len__(self) -> int:
        """Return the number of values."""
        return len(self._values)

    def __contains__(self, key: object) -> bool:
        """Whether there is a value for the key. This does not count as a use."""
        return key in self._values

    def __iter__(self) -> Iterator[_Key]:
        """Iterate over the keys, the least recently used first."""
        return iter(self._values)

    def get(self, key: _Key) -> _Value | None:
        """Return the value, or None. This counts as a use."""
        found = self._values.pop(key, None)
        if found is None:
            return None
        self._values[key] = found
        return found[0]

    def peek(self, key: _Key) -> _Value | None:
        """Return the value, or None. This does not count as a use."""
        found = self._values.get(key)
        return None if found is None else found[0]

    def values(self) -> Iterator[_Value]:
        """Iterate over the values, the least recently used first."""
        return (value for value, _ in self._values.values())

    def put(self, key: _Key, value: _Value, size_max: int, size: int = 1) -> None:
        """Keep a value, and evict the least recently used ones until all fit ``size_max``.

        The new value is kept, however large it is.
        """
        self.drop(key)
        self._values[key] = value, size
        self.size += size
        while self.size > size_max and len(self._values) > 1:
            self.drop(next(iter(self._values)))

    def replace(self, key: _Key, value: _Value) -> None:
        """Replace the value of a key; KeyError if there is none. This does not count as a use."""
        _, size = self._values[key]
        self._values[key] = value, size

    def drop(self, key: _Key) -> None:
        """Forget a value, if it is there."""
        _, size = self._values.pop(key, (None, 0))
        self.size -= size
