"""PriorityClasses, and the native gangs: PodGroups and Workloads of scheduling.k8s.io/v1alpha2.

Source: kubernetes ``pkg/apis/scheduling``, ``pkg/registry/scheduling`` and the admission plugins
Priority, PodGroupProtection and PodGroupWorkloadExists of 1.36, with the gates GenericWorkload,
GangScheduling, TopologyAwareWorkloadScheduling and WorkloadAwarePreemption on.
"""

from __future__ import annotations

from typing import Any

from pocketkube.causes import (
    forbidden,
    immutable,
    invalid,
    required,
)
from pocketkube.errors import Cause
from pocketkube.errors import forbidden as forbidden_request
from pocketkube.objects import Object, add_finalizer
from pocketkube.registry.rules.common import Rules, Surroundings, set_default, spec_of
from pocketkube.registry.rules.pods.pod_admission import priority_class_of

GROUP = "scheduling.k8s.io"
HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_CLASSES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
GROUP_FINALIZER = "scheduling.k8s.io/podgroup-protection"


def _default_class(obj: Object) -> None:
    set_default(obj, "preemptionPolicy", "PreemptLowerPriority")
    set_default(obj, "value", 0)


def _prepare_class(obj: Object, _around: Surroundings) -> None:
    obj["metadata"]["generation"] = 1  # and never more, as upstream


def _class_causes(obj: Object) -> list[Cause]:
    name, value = obj["metadata"].get("name", ""), obj["value"]
    if name.startswith("system-") and SYSTEM_CLASSES.get(name) != value:
        why = "priority class names with 'system-' prefix are reserved for system use only"
        return [forbidden("metadata.name", why)]
    if value > HIGHEST_USER_PRIORITY and name not in SYSTEM_CLASSES:
        why = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        return [forbidden("value", why)]
    return []


def _class_update_causes(obj: Object, old: Object) -> list[Cause]:
    causes: list[Cause] = []
    if obj["value"] != old["value"]:
        causes.append(forbidden("value", "may not be changed in an update."))
    kept = old.get("preemptionPolicy")
    return causes + immutable("preemptionPolicy", obj["preemptionPolicy"], kept)


def _default_group(obj: Object) -> None:
    spec = spec_of(obj)
    set_default(spec, "disruptionMode", "Pod")
    spec.setdefault("podGroupTemplateRef", None)  # Go writes it even when there is none
    set_default(spec, "schedulingPolicy", {})


def _prepare_group(obj: Object, around: Surroundings) -> None:
    """Protect the group while it has pods, resolve its priority, find its Workload."""
    metadata, spec = obj["metadata"], obj["spec"]
    add_finalizer(obj, GROUP_FINALIZER)
    obj["status"] = {}
    _set_priority(obj, spec, around)
    wanted = ((spec.get("podGroupTemplateRef") or {}).get("workload")) or {}
    if not wanted.get("workloadName"):
        return
    name, template = wanted["workloadName"], wanted.get("podGroupTemplateName", "")
    found = around.find(f"workloads.{GROUP}", metadata.get("namespace", ""), name)
    if found is None:
        raise _refusal(obj, f'PodGroup rejected: Workload "{name}" not found')
    if "deletionTimestamp" in found["metadata"]:
        raise _refusal(obj, f'PodGroup rejected: Workload "{name}" is being deleted')
    if all(one.get("name") != template for one in found["spec"].get("podGroupTemplates") or ()):
        why = f'PodGroup rejected: PodGroupTemplate "{template}" not found in Workload "{name}"'
        raise _refusal(obj, why)


def _refusal(obj: Object, why: str) -> Exception:
    return forbidden_request(GROUP, "podgroups", obj["metadata"].get("name", ""), why)


def _set_priority(obj: Object, spec: dict[str, Any], around: Surroundings) -> None:
    name = spec.get("priorityClassName", "")
    found = priority_class_of(name, around)
    if found is None and name:
        raise _refusal(obj, f"no PriorityClass with name {name} was found")
    priority = 0
    if found is not None:
        spec["priorityClassName"], priority = found["metadata"]["name"], found["value"]
    given = spec.get("priority")
    if given is not None and given != priority:
        why = (
            f"priority set in the pod group ({given}) must match the priority computed "
            f"({priority}) based on the priority class set in the spec"
        )
        raise _refusal(obj, why)
    spec["priority"] = priority


def _placing_causes(spec: dict[str, Any], field: str) -> list[Cause]:
    """Check what a PodGroup and a template of one have in common."""
    policy = spec.get("schedulingPolicy") or {}
    at = f"{field}.schedulingPolicy"
    found = [name for name in ("basic", "gang") if policy.get(name) is not None]
    causes: list[Cause] = []
    if not found:
        causes.append(invalid(at, "", "must specify one of: `basic`, `gang`"))
    elif len(found) > 1:
        why = "must specify exactly one of: `basic`, `gang`"
        causes.append(invalid(at, f"{{{', '.join(found)}}}", why))
    if found == ["gang"]:
        count = policy["gang"].get("minCount", 0)
        where = f"{at}.gang.minCount"
        if not count:
            causes.append(required(where))
        elif count < 0:
            causes.append(invalid(where, count, "must be greater than or equal to 1"))
    return causes


def _update_causes(obj: Object, old_obj: Object) -> list[Cause]:
    """Refuse any change of the spec, of a PodGroup or a Workload."""
    new, old = obj["spec"], old_obj["spec"]
    return [
        cause
        for field in sorted(new.keys() | old.keys())
        for cause in immutable(f"spec.{field}", new.get(field), old.get(field))
    ]


def _default_workload(obj: Object) -> None:
    for template in spec_of(obj).get("podGroupTemplates") or ():
        template.setdefault("schedulingConstraints", None)  # Go writes it even when there is none
        set_default(template, "schedulingPolicy", {})


def _workload_causes(obj: Object) -> list[Cause]:
    templates = obj["spec"].get("podGroupTemplates") or []
    field = "spec.podGroupTemplates"
    causes = [] if templates else [required(field)]
    for index, template in enumerate(templates):
        causes += _placing_causes(template, f"{field}[{index}]")
    return causes


CLASSES = Rules(
    defaults=_default_class,
    prepare_create=_prepare_class,
    validate_create=_class_causes,
    validate_update=_class_update_causes,
)
POD_GROUPS = Rules(
    defaults=_default_group,
    prepare_create=_prepare_group,
    validate=lambda obj: _placing_causes(obj["spec"], "spec"),
    validate_update=_update_causes,
)
WORKLOADS = Rules(
    defaults=_default_workload,
    validate=_workload_causes,
    validate_update=_update_causes,
)
