"""Manifests in one line each, for the tables of the rules."""

import yaml

from quorate.lint.check import Report, Text, check
from quorate.lint.manifests import Options
from quorate.lint.objects import objects_of as read_objects
from quorate.lint.tree import documents
from tools import objects
from tools.objects import GANG_LABEL as X_LABEL
from tools.objects import X_K8S, named, pod_group

SIGS = "scheduling.sigs.k8s.io/v1alpha1"
VOLCANO, NATIVE = "scheduling.volcano.sh/v1beta1", "scheduling.k8s.io/v1alpha2"
SIGS_LABEL = "pod-group.scheduling.sigs.k8s.io"
NAME_LABEL = "pod-group.scheduling.sigs.k8s.io/name"
MIN_LABEL = "pod-group.scheduling.sigs.k8s.io/min-available"
ANNOTATION = "scheduling.k8s.io/group-name"


def meta(name, namespace=None, **more):
    return {"name": name, **({"namespace": namespace} if namespace else {}), **more}


def group(min_member=2, name="g", *, api=X_K8S, namespace=None, **spec):
    """A PodGroup; ``min_member`` None leaves the field out."""
    return pod_group(name, min_member, api, metadata=meta(name, namespace), **spec)


def native_group(min_count=2, name="g"):
    return pod_group(name, None, NATIVE, schedulingPolicy={"gang": {"minCount": min_count}})


def template(labels=None, annotations=None, *, requests=None, limits=None, **spec):
    """A pod template that names gang g in the current way, unless told otherwise."""
    resources = {"requests": requests or {}, **({"limits": limits} if limits else {})}
    return {
        "metadata": {
            "labels": {X_LABEL: "g"} if labels is None else labels,
            "annotations": annotations or {},
        },
        "spec": {
            "schedulerName": "quorate",
            "containers": [{"name": "c", "image": "c", "resources": resources}],
            **spec,
        },
    }


def job(count=2, name="j", *, namespace=None, of_job=None, **of_template):
    """A Job of ``count`` pods at once; ``of_job`` is more of its own metadata."""
    spec = {"parallelism": count, "completions": count, "template": template(**of_template)}
    return named("Job", "batch/v1", name, meta(name, namespace, **(of_job or {})), spec=spec)


def stateful_set(count=2, name="s", **spec):
    """A StatefulSet that makes its pods one after another, unless told otherwise."""
    spec = {"replicas": count, "serviceName": name, "template": template(), **spec}
    return named("StatefulSet", "apps/v1", name, spec=spec)


def cron_job(of, **spec):
    """A CronJob that makes Jobs like this one."""
    spec = {"schedule": "@daily", "jobTemplate": {"spec": of["spec"]}, **spec}
    return named("CronJob", "batch/v1", of["metadata"]["name"], spec=spec)


def labelled(least="2", name="g", **more):
    """Labels of the first API; None leaves one out."""
    pairs = {NAME_LABEL: name, MIN_LABEL: least, **more}
    return {key: value for key, value in pairs.items() if value is not None}


def pod(name="p", **of_template):
    made = template(**of_template)
    made["metadata"]["name"] = name
    return {"apiVersion": "v1", "kind": "Pod", **made}


def node(name="n1", *, labels=None, taints=(), **allocatable):
    amounts = {key.replace("gpu", "nvidia.com/gpu"): value for key, value in allocatable.items()}
    amounts = {"memory": "64Gi", **amounts}
    return objects.node(name, labels=labels, allocatable=amounts, taints=list(taints))


def lint(*objects, ignore=(), **options) -> Report:
    """Check objects as one YAML file of several documents."""
    return lint_text(yaml.safe_dump_all(objects, sort_keys=False), ignore=ignore, **options)


def lint_text(text, *, ignore=(), file="f.yaml", **options) -> Report:
    return check([Text(file, text)], Options(**options), ignore)


def rules(report: Report) -> set[str]:
    assert not report.unreadable
    return {finding.rule for finding in report.findings}


def one(*objects, rule, **options):
    """Return the one finding of this rule."""
    found = [finding for finding in lint(*objects, **options).findings if finding.rule == rule]
    assert len(found) == 1, found
    return found[0]


def objects_of(*values):
    """Return values as lint reads them, in their order."""
    text = yaml.safe_dump_all(values, sort_keys=False)
    return [one for document in documents(text) for one in read_objects("f.yaml", document)]
