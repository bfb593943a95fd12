"""Deployments, ReplicaSets, StatefulSets, DaemonSets and their kin.

Source: kubernetes ``pkg/apis/apps`` (defaults, validation) and ``pkg/registry/apps`` of 1.36.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pocketkube.causes import (
    forbidden,
    immutable,
    invalid,
    required,
    unsupported,
)
from pocketkube.errors import Cause
from pocketkube.matching.selectors import selector_of
from pocketkube.objects import Object
from pocketkube.registry.rules.common import (
    Rules,
    Surroundings,
    label_selector_causes,
    number_of,
    set_default,
    spec_of,
    with_status,
)
from pocketkube.registry.rules.pods.pod_defaults import default_template
from pocketkube.registry.rules.pods.pod_spec import template_causes
from pocketkube.registry.rules.volumes import claim_causes, default_claim

_MISMATCH = "`selector` does not match template `labels`"


def default_template_of(spec: dict[str, Any]) -> None:
    """Set the defaults of ``spec.template``, in place."""
    if spec.get("template") is None:
        spec["template"] = {}
    default_template(spec["template"])


def _default_replicas(obj: Object) -> None:
    spec = spec_of(obj)
    default_template_of(spec)
    set_default(spec, "replicas", 1)


def _default_deployment(obj: Object) -> None:
    _default_replicas(obj)
    spec = obj["spec"]
    if spec.get("strategy") is None:
        spec["strategy"] = {}
    strategy = spec["strategy"]
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        set_default(strategy, "rollingUpdate", {})
        set_default(strategy["rollingUpdate"], "maxUnavailable", "25%")
        set_default(strategy["rollingUpdate"], "maxSurge", "25%")
    set_default(spec, "revisionHistoryLimit", 10)
    set_default(spec, "progressDeadlineSeconds", 600)


def _template_causes(obj: Object) -> list[Cause]:
    """Check that the pods of the template are selected: else pods would be made without end."""
    spec = obj["spec"]
    template, selector = spec["template"], spec.get("selector")
    if not any((selector or {}).values()):
        return [required("spec.selector")]
    causes = label_selector_causes(selector, "spec.selector")
    labels = template["metadata"].get("labels")
    if not causes and not selector_of(selector).matches(labels or {}):
        causes.append(invalid("spec.template.metadata.labels", labels, _MISMATCH))
    causes += template_causes(template, "spec.template")
    policy = template["spec"]["restartPolicy"]
    if policy != "Always":
        at = "spec.template.spec.restartPolicy"
        causes.append(unsupported(at, policy, ("Always",)))
    return causes


def _stateful_set_causes(obj: Object) -> list[Cause]:
    causes = _template_causes(obj)
    for index, claim in enumerate(obj["spec"].get("volumeClaimTemplates") or ()):
        at = f"spec.volumeClaimTemplates[{index}]"
        causes += [cause._replace(field=f"{at}.{cause.field}") for cause in claim_causes(claim)]
    return causes


def _fixed_selector(obj: Object, old: Object) -> list[Cause]:
    return immutable("spec.selector", obj["spec"].get("selector"), old["spec"].get("selector"))


def _default_stateful_set(obj: Object) -> None:
    _default_replicas(obj)
    spec = obj["spec"]
    if not spec.get("podManagementPolicy"):
        spec["podManagementPolicy"] = "OrderedReady"
    set_default(spec, "updateStrategy", {})
    strategy = spec["updateStrategy"]
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        set_default(strategy, "rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and strategy.get("rollingUpdate") is not None:
        set_default(strategy["rollingUpdate"], "partition", 0)
    set_default(spec, "persistentVolumeClaimRetentionPolicy", {})
    for field in ("whenDeleted", "whenScaled"):
        set_default(spec["persistentVolumeClaimRetentionPolicy"], field, "Retain")
    set_default(spec, "revisionHistoryLimit", 10)
    set_default(spec, "serviceName", "")
    for claim in spec.get("volumeClaimTemplates") or ():
        claim |= {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
        default_claim(claim)
        claim["status"] = {"phase": "Pending"}


_STATEFUL_SET_MAY_CHANGE = (
    "replicas",
    "template",
    "updateStrategy",
    "minReadySeconds",
    "ordinals",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
)


def _stateful_set_update_causes(obj: Object, old: Object) -> list[Cause]:
    new, before = obj["spec"], old["spec"]
    fields = (new.keys() | before.keys()) - set(_STATEFUL_SET_MAY_CHANGE)
    if all(new.get(field) == before.get(field) for field in fields):
        return []
    why = (
        "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
        "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
        "'minReadySeconds' are forbidden"
    )
    return [forbidden("spec", why)]


def _default_daemon_set(obj: Object) -> None:
    spec = spec_of(obj)
    default_template_of(spec)
    set_default(spec, "updateStrategy", {})
    strategy = spec["updateStrategy"]
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        set_default(strategy, "rollingUpdate", {})
        set_default(strategy["rollingUpdate"], "maxUnavailable", 1)
        set_default(strategy["rollingUpdate"], "maxSurge", 0)
    set_default(spec, "revisionHistoryLimit", 10)


_no_daemons = with_status(
    {
        "currentNumberScheduled": 0,
        "desiredNumberScheduled": 0,
        "numberMisscheduled": 0,
        "numberReady": 0,
    }
)


def _fixed_data(obj: Object, old: Object) -> list[Cause]:
    return immutable("data", obj.get("data"), old.get("data"))


_no_replicas: Callable[[Object, Surroundings], None] = with_status({"replicas": 0})

DEPLOYMENTS = Rules(
    defaults=_default_deployment,
    prepare_create=with_status({}),
    validate=_template_causes,
    validate_update=_fixed_selector,
    has_generation=True,
    counts_annotations=True,
)
REPLICA_SETS = Rules(
    defaults=_default_replicas,
    prepare_create=_no_replicas,
    validate=_template_causes,
    validate_update=_fixed_selector,
    has_generation=True,
    selectable={"status.replicas": number_of("status", "replicas")},
)
STATEFUL_SETS = Rules(
    defaults=_default_stateful_set,
    prepare_create=with_status({"replicas": 0, "availableReplicas": 0}),
    validate=_stateful_set_causes,
    validate_update=_stateful_set_update_causes,
    has_generation=True,
    name_is="dns-label",
)
DAEMON_SETS = Rules(
    defaults=_default_daemon_set,
    prepare_create=_no_daemons,
    validate=_template_causes,
    validate_update=_fixed_selector,
    has_generation=True,
)
CONTROLLER_REVISIONS = Rules(validate_update=_fixed_data)
