"""The lint rules: small functions from ``Manifests`` to findings, one row of ``RULES`` for each.

To add a rule: a function in a file of this folder, a row, and in ``tests/unit/lint/cases.py``
one manifest with a finding and one without. Names of rules are stable: people silence them by
name, and CI systems read them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from quorate.lint.finding import Finding
from quorate.lint.manifests import Manifests
from quorate.lint.rules import affinity, gangs, groups, objects, pods, shape, volcano, workloads

Check = Callable[[Manifests], Iterator[Finding]]


class Rule(NamedTuple):
    """One check, the names of its possible findings, and its purpose."""

    check: Check
    names: tuple[str, ...]
    about: str


RULES = (
    Rule(objects.duplicate_keys, ("duplicate-key",), "a field is written twice"),
    Rule(objects.duplicate_objects, ("duplicate-object",), "an object is written twice"),
    Rule(objects.label_values, ("label-not-a-string", "label-invalid"), "labels no cluster takes"),
    Rule(objects.replicas, ("replicas-invalid",), "a number of pods that is none"),
    Rule(pods.unreadable, ("pod-invalid",), "a pod that the scheduler cannot read"),
    Rule(pods.unknown_labels, ("unknown-gang-label",), "a label that looks like a gang's"),
    Rule(
        pods.incomplete_labels,
        ("gang-label-incomplete", "min-available-invalid"),
        "labels that name no gang after all",
    ),
    Rule(
        pods.other_spellings, ("gang-label-not-current",), "a gang's label in its second spelling"
    ),
    Rule(pods.several_dialects, ("several-dialects",), "a pod that names several gangs"),
    Rule(groups.unknown_api, ("podgroup-api-unknown",), "a PodGroup that quorate does not read"),
    Rule(groups.unknown_fields, ("podgroup-field-unknown",), "a misspelt field of a PodGroup"),
    Rule(groups.invalid, ("podgroup-invalid", "min-invalid"), "a PodGroup that cannot be used"),
    Rule(groups.min_not_positive, ("min-not-positive",), "a min that makes no gang"),
    Rule(groups.timeout, ("timeout-out-of-range",), "a timeout that does not count"),
    Rule(volcano.ignored_fields, ("podgroup-field-ignored",), "a field that does not count"),
    Rule(
        volcano.missing_names,
        ("queue-missing", "priority-class-missing"),
        "a queue or priority class that is not there",
    ),
    Rule(groups.without_pods, ("podgroup-without-pods",), "a PodGroup that no pod names"),
    Rule(gangs.mixed_eras, ("label-era-mixed",), "pods and PodGroup of different APIs"),
    Rule(
        gangs.missing_group,
        ("podgroup-missing", "namespaces-differ"),
        "a PodGroup that is not there",
    ),
    Rule(gangs.min_above_replicas, ("min-above-replicas",), "fewer pods than the gang needs"),
    Rule(volcano.min_by_task, ("min-task-above-replicas",), "fewer pods than a task needs"),
    Rule(gangs.min_available, ("min-available-disagrees",), "labels that disagree on min"),
    Rule(
        gangs.schedulers,
        ("scheduler-names-differ", "default-scheduler", "scheduler-unknown"),
        "a scheduler that places no gangs",
    ),
    Rule(gangs.priorities, ("priorities-differ",), "members of different priority"),
    Rule(gangs.min_resources, ("min-resources-above-pods",), "minResources that no pod asks for"),
    Rule(workloads.pods_without_gang, ("pods-without-gang",), "pods that belong to no gang"),
    Rule(workloads.unusable_min, ("workload-min-invalid",), "a min that no operator can use"),
    Rule(workloads.made_later, ("members-made-later",), "members that wait for one another"),
    Rule(
        workloads.made_in_order, ("pods-made-in-order",), "a StatefulSet that makes a pod at a time"
    ),
    Rule(workloads.runs_share_gang, ("runs-share-gang",), "runs of a CronJob in one gang"),
    Rule(affinity.needs_others, ("affinity-needs-others",), "pods that wait for other pods"),
    Rule(
        shape.fits,
        ("no-node-fits", "gang-above-shape", "min-resources-above-shape"),
        "pods and gangs that a shape of cluster cannot hold",
    ),
)
"""In the order in which findings at one place are reported."""

NAMES = tuple(name for rule in RULES for name in rule.names)
"""All names of findings."""
