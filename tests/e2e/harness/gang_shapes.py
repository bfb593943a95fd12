"""One gang in the shape of each API: its object, and how pods name it."""

from typing import NamedTuple

from tools.objects import NATIVE, SIGS, VOLCANO, X_K8S, pod, workload


class Shape(NamedTuple):
    """``labels``, ``annotations`` and ``spec`` are what a pod needs to be in gang ``{}``."""

    api: str
    scheduler: str
    labels: dict
    annotations: dict
    spec: dict

    def of(self, gang: str) -> dict:
        """Return the parts of a pod that make it a member."""
        return {
            "labels": {key: value.format(gang) for key, value in self.labels.items()},
            "annotations": {key: value.format(gang) for key, value in self.annotations.items()},
            "spec": {"schedulingGroup": {"podGroupName": gang}} if self.spec else {},
        }

    def group(self, name: str, minimum: int, **spec) -> dict:
        if self.api == NATIVE:
            spec = {"schedulingPolicy": {"gang": {"minCount": minimum}}, **spec}
        else:
            spec = {"minMember": minimum, **spec}
        return {
            "apiVersion": self.api,
            "kind": "PodGroup",
            "metadata": {"name": name},
            "spec": spec,
        }

    def pods(self, gang: str, count: int, **options) -> list[dict]:
        part = self.of(gang)
        labels = {"gang": gang, **part["labels"], **options.pop("labels", {})}
        annotations = {**part["annotations"], **options.pop("annotations", {})}
        options = {"scheduler": self.scheduler, **part["spec"], **options}
        return [
            pod(f"{gang}-{i}", labels=labels, annotations=annotations, **options)
            for i in range(count)
        ]

    def deployment(self, name: str, gang: str, replicas: int) -> dict:
        part = self.of(gang)
        about = {"labels": {"app": name, **part["labels"]}, "annotations": part["annotations"]}
        one = pod(name, scheduler=self.scheduler, requests=None, **about, **part["spec"])
        return workload("Deployment", name, one, replicas=replicas)


SHAPES = {
    "x-k8s": Shape(
        X_K8S, "scheduler-plugins-scheduler", {"scheduling.x-k8s.io/pod-group": "{}"}, {}, {}
    ),
    "sigs": Shape(SIGS, "cw-coscheduler", {"pod-group.scheduling.sigs.k8s.io": "{}"}, {}, {}),
    "volcano": Shape(VOLCANO, "volcano", {}, {"scheduling.k8s.io/group-name": "{}"}, {}),
    "native": Shape(NATIVE, "quorate", {}, {}, {"schedulingGroup": "{}"}),
}
