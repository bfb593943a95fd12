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
    negative,
    required,
    unsupported,
)
from pocketkube.errors import Cause
from pocketkube.matching.selectors import selector_of
from pocketkube.objects import Object
from pocketkube.registry.rules.base import Rules, Surroundings
from pocketkube.registry.rules.common import (
    number_of,
    set_default,
    spec_of,
    with_status,
)
from pocketkube.registry.rules.pods.pod_defaults import default_template
from pocketkube.registry.rules.pods.pod_spec import template_causes
from pocketkube.registry.rules.selectors import label_selector_causes
from pocketkube.registry.rules.volumes import claim_causes, default_claim

_MISMATCH = "`selector` does not match template `labels`"
_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


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


def _selector_causes(spec: dict[str, Any], kind: str) -> list[Cause]:
    selector = spec.get("selector")
    if selector is None:
        return [required("spec.selector")]
    causes = label_selector_causes(selector, "spec.selector")
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        causes.append(invalid("spec.selector", selector, f"empty selector is invalid for {kind}"))
    return causes


def _template_causes(spec: dict[str, Any], kind: str, *, fits_empty: bool) -> list[Cause]:
    """Check the template of what keeps its pods running; ``fits_empty``: of an empty selector."""
    template, selector = spec["template"], spec.get("selector")
    causes: list[Cause] = []
    labels = template["metadata"].get("labels")
    empty = selector is not None and not any(selector.values())
    if label_selector_causes(selector, ""):
        causes.append(invalid("spec.selector", selector, "invalid label selector."))
    elif not (fits_empty and empty) and not selector_of(selector).matches(labels or {}):
        causes.append(invalid("spec.template.metadata.labels", labels, _MISMATCH))
    causes += template_causes(template, "spec.template")
    policy = template["spec"]["restartPolicy"]
    if policy != "Always":
        at = "spec.template.spec.restartPolicy"
        causes.append(unsupported(at, policy, ("Always",)))
    if template["spec"].get("activeDeadlineSeconds") is not None:
        why = f"activeDeadlineSeconds in {kind} is not Supported"
        causes.append(forbidden("spec.template.spec.activeDeadlineSeconds", why))
    return causes


def _not_negative(spec: dict[str, Any], *fields: str) -> list[Cause]:
    return [cause for field in fields for cause in negative(f"spec.{field}", spec.get(field))]


def _deployment_causes(obj: Object) -> list[Cause]:
    spec = obj["spec"]
    causes = _not_negative(spec, "replicas") + _selector_causes(spec, "deployment")
    causes += _template_causes(spec, "ReplicaSet", fits_empty=True)
    causes += _not_negative(
        spec, "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"
    )
    deadline = spec["progressDeadlineSeconds"]
    if deadline <= spec.get("minReadySeconds", 0):
        why = "must be greater than minReadySeconds"
        causes.append(invalid("spec.progressDeadlineSeconds", deadline, why))
    return causes


def _replica_set_causes(obj: Object) -> list[Cause]:
    spec = obj["spec"]
    causes = _not_negative(spec, "replicas", "minReadySeconds")
    causes += _selector_causes(spec, "deployment")  # upstream says so of ReplicaSets too
    return causes + _template_causes(spec, "ReplicaSet", fits_empty=True)


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


def _stateful_set_causes(obj: Object) -> list[Cause]:
    spec = obj["spec"]
    causes = _not_negative(spec, "replicas", "minReadySeconds")
    causes += _selector_causes(spec, "statefulset")
    claims = spec.get("volumeClaimTemplates")
    if claims:
        spec = {**spec, "template": _with_claims(spec["template"], claims)}
    return causes + _template_causes(spec, "StatefulSet", fits_empty=True)


def _claims_causes(obj: Object) -> list[Cause]:
    return [
        cause._replace(field=f"spec.volumeClaimTemplates[{index}].{cause.field}")
        for index, claim in enumerate(obj["spec"].get("volumeClaimTemplates") or ())
        for cause in claim_causes(claim)
    ]


def _with_claims(template: dict[str, Any], claims: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the template with the volumes that its claims will become."""
    names = [(claim.get("metadata") or {}).get("name", "") for claim in claims]
    own = [one for one in template["spec"].get("volumes") or () if one.get("name") not in names]
    claimed = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    return {**template, "spec": {**template["spec"], "volumes": [*claimed, *own]}}


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


def _daemon_set_causes(obj: Object) -> list[Cause]:
    spec = obj["spec"]
    causes = [] if spec.get("selector") is None else _selector_causes(spec, "daemonset")
    causes += _template_causes(spec, "DaemonSet", fits_empty=False)
    return causes + _not_negative(spec, "minReadySeconds", "revisionHistoryLimit")


def _prepare_daemon_set(obj: Object, around: Surroundings) -> None:
    _no_daemons(obj, around)
    set_default(obj["metadata"], "annotations", {})
    obj["metadata"]["annotations"].setdefault(_TEMPLATE_GENERATION, "1")


def _prepare_daemon_set_update(obj: Object, old: Object, _around: object = None) -> None:
    generation = int((old["metadata"].get("annotations") or {}).get(_TEMPLATE_GENERATION, "0"))
    if obj["spec"]["template"] != old["spec"]["template"]:
        generation += 1
    set_default(obj["metadata"], "annotations", {})
    obj["metadata"]["annotations"][_TEMPLATE_GENERATION] = str(generation)


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


def _default_controller(obj: Object) -> None:
    """Set the defaults of a ReplicationController: its labels are those of its pods."""
    spec = spec_of(obj)
    set_default(spec, "replicas", 1)
    if spec.get("template") is None:
        return
    default_template(spec["template"])
    labels = spec["template"]["metadata"].get("labels")
    if labels:
        spec["selector"] = spec.get("selector") or dict(labels)
        obj["metadata"]["labels"] = obj["metadata"].get("labels") or dict(labels)


_no_replicas: Callable[[Object, Surroundings], None] = with_status({"replicas": 0})

DEPLOYMENTS = Rules(
    defaults=_default_deployment,
    prepare_create=with_status({}),
    validate=_deployment_causes,
    validate_update=_fixed_selector,
    has_generation=True,
    counts_annotations=True,
)
REPLICA_SETS = Rules(
    defaults=_default_replicas,
    prepare_create=_no_replicas,
    validate=_replica_set_causes,
    validate_update=_fixed_selector,
    has_generation=True,
    selectable={"status.replicas": number_of("status", "replicas")},
)
STATEFUL_SETS = Rules(
    defaults=_default_stateful_set,
    prepare_create=with_status({"replicas": 0, "availableReplicas": 0}),
    validate=_stateful_set_causes,
    validate_create=_claims_causes,
    validate_update=_stateful_set_update_causes,
    has_generation=True,
    name_is="dns-label",
)
DAEMON_SETS = Rules(
    defaults=_default_daemon_set,
    prepare_create=_prepare_daemon_set,
    prepare_update=_prepare_daemon_set_update,
    prepare_status=_prepare_daemon_set_update,
    validate=_daemon_set_causes,
    validate_update=_fixed_selector,
    has_generation=True,
)
CONTROLLER_REVISIONS = Rules(validate_update=_fixed_data)
REPLICATION_CONTROLLERS = Rules(
    defaults=_default_controller,
    prepare_create=_no_replicas,
    has_generation=True,
    selectable={"status.replicas": number_of("status", "replicas")},
)
