"""The scheduler's own table tests as cases for the core: completed as the API server would.

``complete`` gives bare objects what both sides expect of stored ones; ``profile_of`` reads the
arguments that a table has for its plugin; ``left_out`` says which cases compare nothing.
"""

from __future__ import annotations

import copy
import json

from quorate.core.model.profile import KUBE_SCHEDULER, Profile
from quorate.shell.configuration.config import parse
from tools.oracle.tables import Fixture
from tools.parity.choice import Object
from tools.parity.ours import SCHEDULER

_REFUSED = ("{{.bad-value.}}", "invalid value: ___@#$%^")
"""Values of labels in selectors."""
_NO_ARGUMENTS = frozenset(
    {"DynamicResources", "VolumeBinding", "VolumeRestrictions", "DefaultPreemption"}
)
"""Arguments that the answer does not depend on: time limits, and how many nodes preemption looks at
(the oracle looks at all)."""


def left_out(fixture: Fixture) -> str:
    """Return why a case cannot be compared; nothing when it can."""
    text = json.dumps(fixture.case)
    if any(value in text for value in _REFUSED):
        return "the API server refuses the value of a label"
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
    profile = case.get("profile", {})
    profile["pluginConfig"] = [
        one for one in profile.get("pluginConfig", ()) if one["name"] not in _NO_ARGUMENTS
    ]
    return case


def profile_of(case: Object) -> Profile:
    """Return the profile of a case that is complete, read as a configuration file is."""
    profile = case.get("profile", {})
    if not profile.get("pluginConfig"):
        return KUBE_SCHEDULER
    document = {
        "apiVersion": "quorate.dev/v1alpha1",
        "kind": "SchedulerConfiguration",
        "profiles": [{"schedulerName": SCHEDULER, **profile}],
    }
    ((_, found),) = parse(json.dumps(document), "a table").policy.profiles
    return found
