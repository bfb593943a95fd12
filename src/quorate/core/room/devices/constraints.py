"""Constraints between the devices of a claim: equal, or all different, values of an attribute.

Source: the constraints of kube-scheduler's structured allocator; like it, only one value is
remembered for each request. Called by ``picked``.
"""

from __future__ import annotations

from collections.abc import Mapping

from quorate.core.model.devices import Attribute, DeviceConstraint, DeviceTraits

_Value = tuple[str, bool | int | str]


class Constraint:
    """One constraint while a claim's devices are chosen: ``add`` and ``remove`` come in pairs."""

    def __init__(self, written: DeviceConstraint) -> None:
        self._written = written
        self._devices = 0
        self._value: _Value = ("", "")
        self._by_request: dict[str, _Value] = {}

    def add(self, request: str, label: str, values: Mapping[str, Attribute | None]) -> bool:
        """Count a device for a request, or return False if the constraint forbids it.

        ``label`` is the request's name with its alternative. ``values`` are the device's attributes
        by the names that constraints use.
        """
        if not self._applies(request, label):
            return True
        name = self._written.match or self._written.distinct
        attribute = values[name]
        if attribute is None:
            return False
        value = attribute.kind, attribute.value
        if self._devices and not self._admits(value):
            return False
        self._by_request[request] = value
        if not self._devices:
            self._value = value
        self._devices += 1
        return True

    def remove(self, request: str, label: str) -> None:
        """Take back an ``add`` that returned True."""
        if self._applies(request, label):
            self._devices -= 1
            self._by_request.pop(request, None)

    def _applies(self, request: str, label: str) -> bool:
        requests = self._written.requests
        return not requests or request in requests or label in requests

    def _admits(self, value: _Value) -> bool:
        if not value[0]:
            return False  # a type of attribute that is not known
        if self._written.match:
            return value == self._value
        return value not in self._by_request.values()


def look_up(traits: DeviceTraits, name: str) -> Attribute | None:
    """Return the attribute with a full name; the driver's domain may be left out on the device."""
    domain, _, short = name.partition("/")
    by_name = {one.name: one for one in traits.attributes}
    found = by_name.get(name)
    if found is None and short and domain == traits.driver:
        found = by_name.get(short)
    return found
