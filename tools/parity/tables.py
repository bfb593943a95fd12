"""The scheduler's own table tests as cases for the core: completed as the API server would.

``complete`` gives bare objects what both sides expect of stored ones; ``left_out`` says which cases
compare nothing.
"""

from __future__ import annotations

import copy
import json

from tools.oracle.tables import Fixture
from tools.parity.choice import Object

_REFUSED = ("{{.bad-value.}}", "invalid value: ___@#$%^")
"""Values of labels in selectors."""
_ARGUMENTS_OF_FILTERS = (
    "addedAffinity",
    "defaultConstraints",
    "ignoredResources",
    "ignoredResourceGroups",
)
_NOT_DONE = ("adminAccess", "allowMultipleAllocations", "bindingConditions", "extendedResourceName")
"""Fields of devices that quorate does not serve: docs/users/limits.md."""
_VOLUMES_NOT_DONE = (
    "awsElasticBlockStore",
    "azureDisk",
    "cinder",
    "gcePersistentDisk",
    "iscsi",
    "portworxVolume",
    "rbd",
    "CSIStorageCapacity",
    "VolumeAttachment",
)
"""Fields and kinds of volumes that it does not look at."""


def left_out(fixture: Fixture) -> str:
    """Return why a case cannot be compared; nothing when it can."""
    text = json.dumps(fixture.case)
    if any(value in text for value in _REFUSED):
        return "the API server refuses the value of a label"
    if any(argument in text for argument in _ARGUMENTS_OF_FILTERS):
        return "its filter has arguments"
    if any(f'"{field}"' in text for field in _NOT_DONE):
        return "it has devices that quorate does not give"
    if any(f'"{field}"' in text for field in _VOLUMES_NOT_DONE):
        return "it has volumes that quorate does not count"
    return ""


def complete(given: Object) -> Object:
    """Return the case with what the API server demands of its objects."""
    case: Object = copy.deepcopy(given)
    for pod in (*case["pods"], case["pod"]):
        pod.setdefault("spec", {}).setdefault("containers", [{"name": "c"}])
        for volume in pod["spec"].get("volumes", ()):
            if "ephemeral" in volume:
                volume["ephemeral"].setdefault("volumeClaimTemplate", {"spec": {}})
    case["pod"]["spec"].pop("nodeName", None)  # it would be bound already
    for index, one in enumerate(case.get("objects", ())):
        one["metadata"].setdefault("name", f"object-{index}")
    case.pop("profile", None)  # what is left are arguments of scores, and limits of time
    return case
