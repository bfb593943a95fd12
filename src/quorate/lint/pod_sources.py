"""Where the pods of a manifest come from: pods themselves, and pod templates with their count.

In: an object. Out: one ``PodSource`` for each pod template in it, found without knowing its kind:
a mapping with a ``template`` that has ``spec.containers``, next to ``replicas`` or ``parallelism``.
So Jobs, JobSets, Kubeflow's jobs, RayClusters and those that are yet to come are read alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from quorate.core.model import DEFAULT_SCHEDULER, Meant, Pod
from quorate.dialects import PodFacts, Resolution, resolve
from quorate.dialects.near_misses import of_owner
from quorate.lint.added_labels import added_labels
from quorate.lint.objects import Json, KubeObject, mapping, text, value_at
from quorate.lint.pod_values import decoded, read_pairs
from quorate.lint.tree import Path

DEPTH_MAX = 24
"""How deep templates are looked for: those of a RayService are the deepest known, at 8."""

_NEVER_MAKE_PODS = ("CustomResourceDefinition", "ConfigMap", "Secret", "ControllerRevision")
_ONLY_DESCRIBE = ("PodTemplate", "TrainingRuntime", "ClusterTrainingRuntime", "DaemonSet")
"""Kinds whose manifest does not say how many pods there will be."""
_COUNTS_FROM_ZERO = ("RayCluster", "RayJob", "RayService")
"""Kinds that may leave ``replicas`` out for an autoscaler to choose."""

_ONLY_BY_TEMPLATE = ("batch", "apps", "jobset.x-k8s.io")
"""API groups whose objects make pods by their templates alone; operators may copy labels."""


class Misplaced(NamedTuple):
    """The gang that an object names above its pods' template, where, and what to write instead."""

    meant: Meant
    path: Path
    remedy: str


@dataclass(frozen=True, slots=True, eq=False)
class PodSource:
    """One pod template: whose it is, where it stands, and how many pods it makes at once.

    ``count`` is None when the manifest does not say; ``count_path`` is the field that says it.
    ``pod`` is what the scheduler would see of each of these pods, with labels of its controller.
    ``misplaced`` is set where the object names the gang, and the template names none.
    """

    object: KubeObject
    path: Path
    template: Json
    count: int | None
    count_path: Path
    namespace: str
    facts: PodFacts
    resolution: Resolution
    pod: Pod
    misplaced: Misplaced | None = None

    @property
    def meant(self) -> Meant | None:
        """The gang that the pods are meant for, and do not name rightly."""
        return self.misplaced.meant if self.misplaced else self.resolution.meant

    @property
    def spec(self) -> Json:
        """The pod's spec."""
        return mapping(self.template.get("spec"))

    @property
    def scheduler(self) -> str:
        """The scheduler that the pods name; a Volcano job's pods have the job's own."""
        default = ""
        if self.object.kind == "Job" and self.object.group == "batch.volcano.sh":
            default = text(self.object.spec().get("schedulerName")) or "volcano"
        return text(self.spec.get("schedulerName")) or default or DEFAULT_SCHEDULER

    @property
    def requests_are_known(self) -> bool:
        """Whether the files say all that a pod asks for: a RuntimeClass elsewhere may add to it."""
        return not self.spec.get("runtimeClassName") or "overhead" in self.spec

    @property
    def title(self) -> str:
        """The object as a sentence names it, with the part of it that makes these pods."""
        part = _part_name(self.object, self.path)
        return f"{self.object.subject.short} ({part})" if part else self.object.subject.short


def pod_sources(found: KubeObject, namespace: str) -> list[PodSource]:
    """Return the pod templates of an object; ``namespace`` is that of objects that name none."""
    where = found.namespace or namespace
    if found.kind in _NEVER_MAKE_PODS:
        return []
    if found.kind in _ONLY_DESCRIBE and found.kind != "PodTemplate":
        return [replace(one, count=None) for one in templates_of(found, where)]
    if found.kind == "Pod" and found.group == "":
        return [made_of(found, (), found.value, 1, (), where)]
    if found.kind == "PodTemplate":
        return [
            made_of(found, ("template",), mapping(found.value.get("template")), None, (), where)
        ]
    if found.kind == "LeaderWorkerSet":
        return [made_of(found, *part, where) for part in _leader_worker_set(found.spec())]
    return templates_of(found, where)


def templates_of(found: KubeObject, namespace: str) -> list[PodSource]:
    """Return all templates in an object's spec, with the pods that each stands for there."""
    walk = _walk(found.spec(), ("spec",), 1, (), found.kind)
    return [made_of(found, path, made, count, at, namespace) for path, made, count, at in walk]


_Part = tuple[Path, Json, "int | None", Path]


def _walk(
    value: object, path: Path, times: int | None, times_path: Path, kind: str, depth: int = 0
) -> Iterator[_Part]:
    """Yield each pod template below ``value``; ``times`` is how often ``value`` itself is made."""
    if depth > DEPTH_MAX:
        return
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _walk(item, (*path, index), times, times_path, kind, depth + 1)
        return
    if not isinstance(value, dict):
        return
    own, at = _count(value, path, kind)
    for key, below in value.items():
        here = (*path, key)
        if key == "template" and isinstance(below, dict):
            count, count_path = _product(times, own), at or times_path
            if isinstance(mapping(below.get("spec")).get("containers"), list):
                yield here, below, count, count_path
            else:
                yield from _walk(below, here, count, count_path, kind, depth + 1)
        elif isinstance(below, dict | list):
            yield from _walk(below, here, times, times_path, kind, depth + 1)


def _count(value: Json, path: Path, kind: str) -> tuple[int | None, Path]:
    """Return how many pods a mapping makes of its ``template``, and the field that says so."""
    if "parallelism" in value or "completions" in value:
        parallelism, completions = value.get("parallelism"), value.get("completions")
        if parallelism is None:
            return _whole(1), (*path, "parallelism")
        if completions is None:
            return _whole(parallelism), (*path, "parallelism")
        some, others = _whole(parallelism), _whole(completions)
        fewest = None if some is None or others is None else min(some, others)
        return fewest, (*path, "parallelism" if fewest == some else "completions")
    if "replicas" in value:
        hosts = _whole(value.get("numOfHosts", 1))
        written = 1 if value["replicas"] is None else value["replicas"]
        return _product(_whole(written), hosts), (*path, "replicas")
    if kind in _COUNTS_FROM_ZERO and "groupName" in value:
        return None, ()
    return 1, ()


def _leader_worker_set(spec: Json) -> Iterator[_Part]:
    """Yield leader and workers: ``size`` pods for each replica, one of which leads."""
    where: Path = ("spec", "leaderWorkerTemplate")
    both = mapping(spec.get("leaderWorkerTemplate"))
    size, replicas = _whole(both.get("size", 1)), _whole(spec.get("replicas", 1))
    leader = both.get("leaderTemplate")
    workers = size
    if isinstance(leader, dict):
        yield (*where, "leaderTemplate"), leader, replicas, ("spec", "replicas")
        workers = None if size is None else max(0, size - 1)
    if isinstance(worker := both.get("workerTemplate"), dict):
        count = _product(replicas, workers)
        yield (*where, "workerTemplate"), worker, count, (*where, "size")


def _part_name(found: KubeObject, path: Path) -> str:
    """Return what a template is called within its object: ``Worker``, or a replicated job's name.

    Nothing for the one template of a Deployment.
    """
    value: object = found.value
    name = ""
    for part in path:
        if isinstance(part, int):
            value = value[part] if isinstance(value, list) else None
            item = mapping(value)
            name = text(item.get("name")) or text(item.get("groupName")) or f"{name}[{part}]"
            continue
        value = mapping(value).get(part)
        if part not in ("spec", "template", "jobTemplate"):
            name = part
    return name


def _whole(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _product(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one * other


def made_of(
    found: KubeObject, path: Path, template: Json, count: int | None, at: Path, namespace: str
) -> PodSource:
    """Return the pods that a template at ``path`` makes: ``count`` of them, as ``at`` says."""
    meta = mapping(template.get("metadata"))
    spec = mapping(template.get("spec"))
    facts = PodFacts(
        namespace,
        found.name or "unnamed",
        read_pairs(meta.get("labels")),
        read_pairs(meta.get("annotations")),
        text(mapping(spec.get("schedulingGroup")).get("podGroupName")),
    )
    made = facts._replace(labels={**added_labels(found, path), **facts.labels})
    pod = decoded(made, spec)
    said = resolve(facts)
    misplaced = None if said.membership or said.defect else _misplaced(found, path, namespace)
    return PodSource(found, path, template, count, at, namespace, facts, said, pod, misplaced)


def _misplaced(found: KubeObject, path: Path, namespace: str) -> Misplaced | None:
    """Return the gang that the object names anywhere above the template at ``path``."""
    for end in range(len(path) if found.group in _ONLY_BY_TEMPLATE else 0):
        meta = mapping(mapping(value_at(found.value, path[:end])).get("metadata"))
        pairs = read_pairs(meta.get("labels")), read_pairs(meta.get("annotations"))
        if said := of_owner(found.subject.short, namespace, *pairs):
            return Misplaced(said.meant, (*path[:end], *said.key.path), said.remedy)
    return None
