"""The storage capacity that CSI drivers publish, by storage class.

Owned by ``cluster.storage.storage``.
"""

from __future__ import annotations

from collections.abc import Collection

from quorate.core.model.storage import ClaimKey, CSIStorageCapacity


class Capacities:
    """CSIStorageCapacity objects by storage class. Updated by change."""

    def __init__(self) -> None:
        self._by_class: dict[str, dict[ClaimKey, CSIStorageCapacity]] = {}
        self._class_of: dict[ClaimKey, str] = {}

    def of(self, storage_class: str) -> Collection[CSIStorageCapacity]:
        """Return the capacities of one storage class."""
        return self._by_class.get(storage_class, {}).values()

    def put(self, found: CSIStorageCapacity) -> bool:
        """Take an object's newest version; return whether a claim may fit that did not before."""
        key = ClaimKey(found.namespace, found.name)
        before = self.remove(key)
        self._class_of[key] = found.storage_class
        self._by_class.setdefault(found.storage_class, {})[key] = found
        if before is None or before.storage_class != found.storage_class:
            return True
        return before.nodes != found.nodes or (found.size_max or 0) > (before.size_max or 0)

    def remove(self, key: ClaimKey) -> CSIStorageCapacity | None:
        """Forget an object; return it, or None if it was not known."""
        storage_class = self._class_of.pop(key, None)
        if storage_class is None:
            return None
        alike = self._by_class[storage_class]
        before = alike.pop(key)
        if not alike:
            del self._by_class[storage_class]
        return before
