"""PriorityClasses, and the native gangs: PodGroups and Workloads of scheduling.k8s.io/v1alpha2.

Source: kubernetes ``pkg/apis/scheduling``, ``pkg/registry/scheduling`` and the admission plugins
Priority, PodGroupProtection and PodGroupWorkloadExists of 1.36, with the gates GenericWorkload,
GangScheduling, TopologyAwareWorkloadScheduling and WorkloadAwarePreemption on.
"""

from __future__ import annotations

from typing import Any

from pocketkube.causes import (
    duplicate,
    forbidden,
    immutable,
    invalid,
    one_of,
    required,
    too_many,
)
from pocketkube.errors import Cause
from pocketkube.errors import forbidden as forbidden_request
from pocketkube.names import dns_label, invalid_text, label_key
from pocketkube.objects import Object, add_finalizer
from pocketkube.registry.rules.base import Rules, Surroundings
from pocketkube.registry.rules.common import set_default, spec_of
from pocketkube.registry.rules.pods.pod_admission import PRIORITY_CLASSES, priority_class_of
from pocketkube.registry.rules.pods.pod_spec import PREEMPTION_POLICIES

GROUP = "scheduling.k8s.io"
HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_CLASSES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
GROUP_FINALIZER = "scheduling.k8s.io/podgroup-protection"
_TEMPLATES_MAX = 8
_CLAIMS_MAX = 4


def _default_class(obj: Object) -> None:
    set_default(obj, "preemptionPolicy", "PreemptLowerPriority")
    set_default(obj, "value", 0)


def _prepare_class(obj: Object, around: Surroundings) -> None:
    obj["metadata"]["generation"] = 1  # and never more, as upstream
    _only_one_default(obj, around)


def _only_one_default(obj: Object, around: Surroundings) -> None:
    if not obj.get("globalDefault"):
        return
    name = obj["metadata"].get("name", "")
    for other in around.find_all(PRIORITY_CLASSES):
        if other.get("globalDefault") and other["metadata"]["name"] != name:
            taken = other["metadata"]["name"]
            why = f"PriorityClass {taken} is already marked as default. Only one default can exist"
            raise forbidden_request(GROUP, "priorityclasses", name, why)


def _only_one_default_update(obj: Object, _old: Object, around: Surroundings) -> None:
    _only_one_default(obj, around)


def _class_causes(obj: Object) -> list[Cause]:
    name, value = obj["metadata"].get("name", ""), obj["value"]
    causes: list[Cause] = []
    if name.startswith("system-"):
        if SYSTEM_CLASSES.get(name) != value:
            why = "priority class names with 'system-' prefix are reserved for system use only"
            known = "value or globalDefault is not as expected" if name in SYSTEM_CLASSES else ""
            reason = known or f"{name} is not a known system priority class"
            causes.append(forbidden("metadata.name", f"{why}. error: {reason}"))
    elif value > HIGHEST_USER_PRIORITY:
        why = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        causes.append(forbidden("value", why))
    return causes + one_of("preemptionPolicy", obj["preemptionPolicy"], PREEMPTION_POLICIES)


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


def _group_causes(obj: Object) -> list[Cause]:
    return _placing_causes(obj["spec"], "spec")


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
    topology = (spec.get("schedulingConstraints") or {}).get("topology") or []
    where = f"{field}.schedulingConstraints.topology"
    if len(topology) > 1:
        causes.append(too_many(where, len(topology), 1))
    else:
        for index, one in enumerate(topology):
            causes += invalid_text(f"{where}[{index}].key", one.get("key", ""), label_key)
    claims = spec.get("resourceClaims") or []
    if len(claims) > _CLAIMS_MAX:
        causes.append(too_many(f"{field}.resourceClaims", len(claims), _CLAIMS_MAX))
    if spec.get("disruptionMode") is not None:
        modes = ("Pod", "PodGroup")
        causes += one_of(f"{field}.disruptionMode", spec["disruptionMode"], modes)
    return causes


def _group_update_causes(obj: Object, old: Object) -> list[Cause]:
    return _fixed_fields(obj["spec"], old["spec"])


def _fixed_fields(new: dict[str, Any], old: dict[str, Any]) -> list[Cause]:
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
    if not templates:
        return [required(field)]
    if len(templates) > _TEMPLATES_MAX:
        return [too_many(field, len(templates), _TEMPLATES_MAX)]
    causes: list[Cause] = []
    names: set[str] = set()
    for index, template in enumerate(templates):
        name, at = template.get("name", ""), f"{field}[{index}]"
        if name in names:
            causes.append(duplicate(at, template))
        names.add(name)
        causes += invalid_text(f"{at}.name", name, dns_label) if name else [required(f"{at}.name")]
        causes += _placing_causes(template, at)
    return causes


def _workload_update_causes(obj: Object, old: Object) -> list[Cause]:
    return _fixed_fields(obj["spec"], old["spec"])


CLASSES = Rules(
    defaults=_default_class,
    prepare_create=_prepare_class,
    prepare_update=_only_one_default_update,
    validate_create=_class_causes,
    validate_update=_class_update_causes,
)
POD_GROUPS = Rules(
    defaults=_default_group,
    prepare_create=_prepare_group,
    validate=_group_causes,
    validate_update=_group_update_causes,
)
WORKLOADS = Rules(
    defaults=_default_workload,
    validate=_workload_causes,
    validate_update=_workload_update_causes,
)
