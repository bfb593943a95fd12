"""What was used last: values by key, of which the longest unused go one by one when they are many.

In: keys and values with their sizes. Out: the values. Used by ``cluster.nodes.nodes`` and
``room.answers``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class Recent(Generic[_Key, _Value]):
    """Values by key, the longest unused first. ``size`` is the sum of their sizes."""

    def __init__(self) -> None:
        self._values: dict[_Key, tuple[_Value, int]] = {}
        self.size = 0

    def __len__(self) -> int:
        """Return how many values there are."""
        return len(self._values)

    def __contains__(self, key: object) -> bool:
        """Whether there is a value for the key. It is not used by that."""
        return key in self._values

    def __iter__(self) -> Iterator[_Key]:
        """Iterate over the keys, the longest unused first."""
        return iter(self._values)

    def get(self, key: _Key) -> _Value | None:
        """Return the value and note that it was used; None: there is none."""
        found = self._values.pop(key, None)
        if found is None:
            return None
        self._values[key] = found
        return found[0]

    def peek(self, key: _Key) -> _Value | None:
        """Return the value, which is not used by that; None: there is none."""
        found = self._values.get(key)
        return None if found is None else found[0]

    def values(self) -> Iterator[_Value]:
        """Iterate over the values, the longest unused first."""
        return (value for value, _ in self._values.values())

    def put(self, key: _Key, value: _Value, size_max: int, size: int = 1) -> None:
        """Keep a value, and drop the longest unused ones while all are larger than ``size_max``.

        The value itself is kept, however large it is.
        """
        self.drop(key)
        self._values[key] = value, size
        self.size += size
        while self.size > size_max and len(self._values) > 1:
            self.drop(next(iter(self._values)))

    def replace(self, key: _Key, value: _Value) -> None:
        """Put another value in the place of one that is there. It is not used by that."""
        _, size = self._values[key]
        self._values[key] = value, size

    def drop(self, key: _Key) -> None:
        """Forget a value, if it is there."""
        _, size = self._values.pop(key, (None, 0))
        self.size -= size
