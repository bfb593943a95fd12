"""Which fields of a pod may change.

Source: kubernetes ``ValidatePodUpdate`` and the pod's strategy of 1.36.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from typing import Any

from pocketkube.causes import forbidden
from pocketkube.errors import Cause
from pocketkube.objects import Object, take

_MAY_CHANGE = (
    "pod updates may not change fields other than "
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def pod_update_causes(pod: Object, old: Object) -> list[Cause]:
    """Refuse changes of a pod's spec but those that a real API server lets pass."""
    new, before = pod["spec"], old["spec"]
    if new == before:
        return []
    for field in ("containers", "initContainers"):
        if len(new.get(field) or ()) != len(before.get(field) or ()):
            return [forbidden(f"spec.{field}", "pod updates may not add or remove containers")]
    causes = _toleration_causes(new, before) + _gate_causes(new, before)
    expected = _with_old_fields(new, before)
    if before.get("schedulingGates"):
        for field in ("nodeSelector", "affinity"):
            take(expected, before, field)
    if expected != before:
        causes.append(forbidden("spec", f"{_MAY_CHANGE}\n{_difference(before, expected)}"))
    return causes


def _with_old_fields(new: Mapping[str, Any], old: Mapping[str, Any]) -> dict[str, Any]:
    """Return the new spec with the old values of all that may change."""
    result = dict(new)
    for field in ("containers", "initContainers"):
        if new.get(field):
            pairs = zip(new[field], old[field], strict=True)
            result[field] = [{**one, "image": other.get("image")} for one, other in pairs]
    for field in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        take(result, old, field)
    was, now = old.get("terminationGracePeriodSeconds"), new.get("terminationGracePeriodSeconds")
    if was is not None and was < 0 and now == 1:
        result["terminationGracePeriodSeconds"] = was
    return result


def _toleration_causes(new: Mapping[str, Any], old: Mapping[str, Any]) -> list[Cause]:
    given = [_without_seconds(one) for one in new.get("tolerations") or ()]
    if all(_without_seconds(one) in given for one in old.get("tolerations") or ()):
        return []
    why = "existing toleration can not be modified except its tolerationSeconds"
    return [forbidden("spec.tolerations", why)]


def _without_seconds(toleration: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _gate_causes(new: Mapping[str, Any], old: Mapping[str, Any]) -> list[Cause]:
    known = {gate.get("name") for gate in old.get("schedulingGates") or ()}
    why = "only deletion is allowed, but found new scheduling gate"
    return [
        forbidden(f"spec.schedulingGates[{index}].name", f"{why} '{gate.get('name', '')}'")
        for index, gate in enumerate(new.get("schedulingGates") or ())
        if gate.get("name") not in known
    ]


def _difference(before: object, after: object) -> str:
    """Show what changed, as text; a real API server shows its own structures."""
    was, now = (json.dumps(one, indent=1, sort_keys=True).splitlines() for one in (before, after))
    return "\n".join(list(difflib.unified_diff(was, now, lineterm=""))[2:])
