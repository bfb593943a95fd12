"""A device with traits of every type, and expressions that name them."""

from quorate.core.model.devices import Capacity, DeviceTraits
from tests.unit.core.device_world import attribute

TRAITS = DeviceTraits(
    "dra.example.com",
    (
        attribute("cores", 5),
        attribute("kind", "x"),
        attribute("other.example.com/ok", True),
        attribute("uuid", "u-1"),
        attribute("v", "1.2.3-rc.1"),
    ),
    (Capacity("memory", "10Gi"),),
)
A = 'device.attributes["dra.example.com"]'
C = 'device.capacity["dra.example.com"]'
