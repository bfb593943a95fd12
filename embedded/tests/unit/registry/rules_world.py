"""A tiny server around the rules, and the form in which its answers and a real one's compare.

The order of the hooks is that of ``api``: this world has no store, no HTTP and no schema.
"""

import copy
import json
import re
from pathlib import Path

import yaml

from pocketkube import errors
from pocketkube.errors import ApiError
from pocketkube.names import generated
from pocketkube.registry.metadata import metadata_causes, metadata_update_causes
from pocketkube.registry.rules import rules_of
from pocketkube.registry.rules.events import to_events_k8s_io
from pocketkube.schema.resource import Resource
from pocketkube.schema.shape import Shape, Type

HERE = Path(__file__).parent
CASES, RECORDED = HERE / "rules_cases", HERE / "rules_recorded"
NAMESPACE = "rules"
NOW_S = 1_767_225_600.0

_GROUPS = {
    "v1": "Pod Node! Namespace! ServiceAccount ConfigMap Secret Service Endpoints "
    "PersistentVolumeClaim PersistentVolume! ReplicationController ResourceQuota LimitRange "
    "PodTemplate Event",
    "apps/v1": "Deployment ReplicaSet StatefulSet DaemonSet ControllerRevision",
    "batch/v1": "Job CronJob",
    "policy/v1": "PodDisruptionBudget",
    "scheduling.k8s.io/v1": "PriorityClass!",
    "scheduling.k8s.io/v1alpha2": "PodGroup Workload",
    "coordination.k8s.io/v1": "Lease",
    "rbac.authorization.k8s.io/v1": "Role RoleBinding ClusterRole! ClusterRoleBinding!",
    "storage.k8s.io/v1": "StorageClass! CSIDriver!",
    "autoscaling/v2": "HorizontalPodAutoscaler",
    "networking.k8s.io/v1": "NetworkPolicy Ingress",
    "discovery.k8s.io/v1": "EndpointSlice",
    "node.k8s.io/v1": "RuntimeClass!",
    "resource.k8s.io/v1": "DeviceClass! ResourceClaim",
    "admissionregistration.k8s.io/v1": "ValidatingWebhookConfiguration!",
}
_ENDINGS = {"Endpoints": "endpoints", "NetworkPolicy": "networkpolicies"}
_WITH_STATUS = (
    "Pod Node Namespace Service PersistentVolumeClaim PersistentVolume ReplicationController "
    "ResourceQuota Deployment ReplicaSet StatefulSet DaemonSet Job CronJob PodDisruptionBudget "
    "PodGroup HorizontalPodAutoscaler Ingress ResourceClaim"
)


def _plural(kind: str) -> str:
    name = kind.lower()
    return _ENDINGS.get(kind) or (name + "es" if name.endswith(("s", "ss")) else name + "s")


def _resource(api_version: str, kind: str) -> Resource:
    group, _, version = api_version.rpartition("/")
    bare = kind.rstrip("!")
    plural = _plural(bare)
    names = ["status"] if bare in _WITH_STATUS.split() else []
    return Resource(
        group=group,
        version=version,
        plural=plural,
        singular=bare.lower(),
        kind=bare,
        namespaced=not kind.endswith("!"),
        verbs=frozenset(),
        subresources=dict.fromkeys(names),  # only their names matter here
        shape=Shape(type=Type.ANY),
        bucket="events" if bare == "Event" else errors.qualified(plural, group),
    )


KINDS = {
    kind.rstrip("!"): _resource(api_version, kind)
    for api_version, kinds in _GROUPS.items()
    for kind in kinds.split()
}
_EVENTS_K8S_IO = _resource("events.k8s.io/v1", "Event")


def resource_of(obj: dict) -> Resource:
    if obj.get("apiVersion") == "events.k8s.io/v1":
        return _EVENTS_K8S_IO
    return KINDS[obj["kind"]]


def path_of(obj: dict) -> str:
    return resource_of(obj).path(NAMESPACE)


def cases_of(name: str) -> list[dict]:
    cases = yaml.safe_load((CASES / f"{name}.yaml").read_text())
    for case in cases:
        for obj in [case["object"], *case.get("with", [])]:
            obj["apiVersion"] = resource_of(obj).api_version
    names = [case["name"] for case in cases]
    assert len(names) == len(set(names)), f"{name}.yaml names a case twice"
    return copy.deepcopy(cases)  # YAML's anchors share objects


def recorded(name: str) -> dict[str, dict]:
    return json.loads((RECORDED / f"{name}.json").read_text())


def merged(target, patch):
    """Apply a JSON merge patch, but leave the items of lists together."""
    if not isinstance(patch, dict) or not isinstance(target, dict):
        return patch
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        else:
            target[key] = merged(target.get(key, {}), value)
    return target


class World:
    """Objects by bucket, namespace and name: what hooks may look at."""

    def __init__(self, *objects: dict) -> None:
        self.objects: dict[tuple[str, str, str], dict] = {}
        for name, value in (
            ("system-node-critical", 2000001000),
            ("system-cluster-critical", 2000000000),
        ):
            self.put(
                "priorityclasses.scheduling.k8s.io", {"metadata": {"name": name}, "value": value}
            )
        self.put("serviceaccounts", {"metadata": {"name": "default", "namespace": NAMESPACE}})
        for obj in objects:
            self.create(obj)

    def put(self, bucket: str, obj: dict) -> None:
        metadata = obj["metadata"]
        self.objects[bucket, metadata.get("namespace", ""), metadata["name"]] = obj

    def now_s(self) -> float:
        return NOW_S

    def suffix(self) -> str:
        return "bcdfg"

    def find(self, bucket: str, namespace: str, name: str):
        return copy.deepcopy(self.objects.get((bucket, namespace, name)))

    def find_all(self, bucket: str, namespace: str = ""):
        return [
            copy.deepcopy(obj)
            for key, obj in self.objects.items()
            if key[0] == bucket and namespace in ("", key[1])
        ]

    def create(self, sent: dict) -> dict:
        """Do as ``Api.create`` does; return the object. Raises ApiError."""
        resource, obj = resource_of(sent), copy.deepcopy(sent)
        rules, metadata = rules_of(resource), obj["metadata"]
        if resource.namespaced:
            metadata["namespace"] = NAMESPACE
        else:
            metadata.pop("namespace", None)
        for field in ("uid", "creationTimestamp", "deletionTimestamp", "generation"):
            metadata.pop(field, None)
        if "generateName" in metadata and "name" not in metadata:
            metadata["name"] = generated(metadata["generateName"], self.suffix())
        metadata |= {"uid": "u-1", "creationTimestamp": "2026-01-01T00:00:00Z"}
        if rules.has_generation:
            metadata["generation"] = 1
        if "status" in resource.subresources and not rules.keeps_status:
            obj.pop("status", None)
        rules.defaults(obj)
        rules.prepare_create(obj, self)
        causes = metadata_causes(obj, resource, rules.name_is) + rules.validate(obj)
        causes += rules.validate_create(obj)
        self._refuse(resource, metadata.get("name", ""), causes)
        self.put(resource.bucket, obj)
        return self._as_read(resource, obj)

    def update(self, old: dict, sent: dict) -> dict:
        """Do as ``Api.update`` does; return the object. Raises ApiError."""
        resource, obj = resource_of(sent), copy.deepcopy(sent)
        rules = rules_of(resource)
        kept = ("uid", "creationTimestamp", "deletionTimestamp", "generation")
        for field in kept:
            obj["metadata"].pop(field, None)
            if field in old["metadata"]:
                obj["metadata"][field] = old["metadata"][field]
        if "status" in resource.subresources and "status" in old:
            obj["status"] = copy.deepcopy(old["status"])
        rules.defaults(obj)
        rules.prepare_update(obj, old, self)
        counted = {*obj, *old} - {"metadata", "status"}
        changed = any(obj.get(field) != old.get(field) for field in counted)
        if rules.counts_annotations:
            changed |= obj["metadata"].get("annotations") != old["metadata"].get("annotations")
        if rules.has_generation and changed:
            obj["metadata"]["generation"] = old["metadata"]["generation"] + 1
        causes = metadata_causes(obj, resource, rules.name_is)
        causes += metadata_update_causes(obj, old)
        causes += rules.validate(obj) + rules.validate_update(obj, old)
        self._refuse(resource, obj["metadata"]["name"], causes)
        return self._as_read(resource, obj)

    def update_status(self, old: dict, status: dict) -> dict:
        """Do as ``Api.update`` of the status does; return the object. Raises ApiError."""
        obj = {**old, "status": copy.deepcopy(status)}
        resource = resource_of(old)
        rules = rules_of(resource)
        rules.prepare_status(obj, old)
        return obj

    def _refuse(self, resource: Resource, name: str, causes: list) -> None:
        if causes:
            group = "" if resource.bucket == "events" else resource.group  # as upstream says
            raise errors.invalid(group, resource.kind, name, causes)

    def _as_read(self, resource: Resource, obj: dict) -> dict:
        return to_events_k8s_io(obj) if resource.group == "events.k8s.io" else obj


def answer_of(case: dict) -> dict:
    """Return what the rules make of a case, in the form of ``rules_recorded``."""
    try:
        world = World(*case.get("with", []))
        obj = world.create(case["object"])
        if "change" in case:
            if case.get("subresource") == "status":
                obj = world.update_status(obj, case["change"]["status"])
            else:
                obj = world.update(obj, merged(copy.deepcopy(obj), case["change"]))
                obj.pop("status", None)
    except ApiError as error:
        status = error.status()
        return {
            key: status[key]
            for key in ("status", "reason", "message", "code", "details")
            if key in status
        }
    return {"object": normalised(obj)}


_VOLUME = re.compile(r"kube-api-access-\w{5}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_ADDRESS = re.compile(r'"10\.96\.\d+\.\d+"')
_ALONE = ("resourceVersion", "managedFields", "uid", "creationTimestamp", "selfLink")


def normalised(obj: dict) -> dict:
    """Return a copy without what differs from one call to the next."""
    obj = copy.deepcopy(obj)
    metadata = obj.get("metadata", {})
    uid = metadata.get("uid", "")
    base, name = metadata.get("generateName", ""), metadata.get("name", "")
    if base and name[: len(name) - 5] == base[:58]:
        metadata["name"] = name[:-5] + "?????"
    for field in _ALONE:
        metadata.pop(field, None)
    text = json.dumps(obj)
    text = text.replace(f'"{uid}"', '"UID"') if uid else text
    text = text.replace(f'"{name}"', f'"{metadata.get("name", "")}"') if base else text
    text = _VOLUME.sub("kube-api-access-?????", text)
    text = _ADDRESS.sub('"10.96.?"', text)
    return json.loads(_TIME.sub("TIME", text))
