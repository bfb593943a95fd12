"""Objects that rules look up besides pods and nodes: each goes to the part of the state it is for.

In: objects that appeared, changed or went. Called by ``state.cluster``.
"""

from __future__ import annotations

from quorate.core.changes import ObjectChanged, ObjectGone
from quorate.core.model import DeviceClass, Namespace, ResourceClaim, ResourceSlice
from quorate.core.state.devices import Devices
from quorate.core.state.neighbours import Neighbours
from quorate.core.state.spread_defaults import SpreadDefaults


class LookedUp:
    """Hands objects on."""

    def __init__(
        self, neighbours: Neighbours, spread_defaults: SpreadDefaults, devices: Devices
    ) -> None:
        self._neighbours = neighbours
        self._spread_defaults = spread_defaults
        self._devices = devices

    def changed(self, change: ObjectChanged) -> None:
        """Add or replace an object."""
        match change.object:
            case Namespace() as namespace:
                self._neighbours.put_namespace(namespace)
            case ResourceSlice() | DeviceClass() | ResourceClaim() as found:
                self._devices.put(found)
            case selects:
                self._spread_defaults.put(selects)

    def gone(self, change: ObjectGone) -> None:
        """Forget an object."""
        if change.kind == "Namespace":
            self._neighbours.remove_namespace(change.name)
        elif not self._devices.remove(change.kind, change.namespace, change.name):
            self._spread_defaults.remove(change.kind, change.namespace, change.name)
