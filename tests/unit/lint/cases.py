"""One bad and one good set of manifests for each name of a finding, by that name."""

from tests.unit.lint.operators import volcano
from tests.unit.lint.world import (
    ANNOTATION,
    SIGS,
    SIGS_LABEL,
    VOLCANO,
    X_LABEL,
    cron_job,
    group,
    job,
    labelled,
    stateful_set,
)
from tools.objects import named

GOOD = [group(2), job(2)]
VOLCANO_NAME = {ANNOTATION: "g"}
QUEUE = named("Queue", "scheduling.volcano.sh/v1beta1", "research")
CLASS = named("PriorityClass", "scheduling.k8s.io/v1", "high", value=5)
TASK = VOLCANO_NAME | {"volcano.sh/task-spec": "worker"}
LONG = "a" * 64

# rule: (severity, what it finds fault with, what it does not)
CASES = {
    "duplicate-object": ("error", [*GOOD, job(2)], [*GOOD, job(2, "k")]),
    "label-not-a-string": ("error", [job(2, labels=labelled(2))], [job(2, labels=labelled("2"))]),
    "label-invalid": (
        "error",
        [job(2, labels={"team": "a b"})],
        [group(2), job(2, labels={X_LABEL: "g", "team": "a-b", "empty": ""})],
    ),
    "replicas-invalid": ("error", [group(2), job("2")], GOOD),
    "pod-invalid": (
        "error",
        [group(2), job(2, requests={"cpu": "4x"})],
        [group(2), job(2, requests={"cpu": "4"})],
    ),
    "unknown-gang-label": ("error", [job(2, labels={"scheduling.x-k8s.io/podgroup": "g"})], GOOD),
    "gang-label-not-current": (
        "warning",
        [group(2), job(2, labels={"pod-group.scheduling.x-k8s.io": "g"})],
        GOOD,
    ),
    "gang-label-incomplete": (
        "error",
        [job(2, labels=labelled(None))],
        [job(2, labels=labelled())],
    ),
    "min-available-invalid": (
        "error",
        [job(2, labels=labelled("two"))],
        [job(2, labels=labelled("2"))],
    ),
    "several-dialects": (
        "warning",
        [group(2), job(2, labels={X_LABEL: "g", SIGS_LABEL: "g"})],
        GOOD,
    ),
    "podgroup-api-unknown": ("error", [group(2, api="scheduling.x-k8s.io/v1beta1")], GOOD),
    "podgroup-field-unknown": ("error", [group(None, minMembers=2), job(2)], GOOD),
    "podgroup-invalid": (
        "error",
        [group(2, minResources={"cpu": "x"}), job(2)],
        [group(2, minResources={"pods": "2"}), job(2)],
    ),
    "min-invalid": ("error", [group("2"), job(2)], GOOD),
    "min-not-positive": ("error", [group(0), job(2)], GOOD),
    "timeout-out-of-range": (
        "warning",
        [group(2, scheduleTimeoutSeconds=901), job(2)],
        [group(2, scheduleTimeoutSeconds=900), job(2)],
    ),
    "podgroup-field-ignored": (
        "warning",
        [
            group(2, api=VOLCANO, networkTopology={"mode": "soft"}),
            job(2, labels={}, annotations=VOLCANO_NAME),
        ],
        [
            group(2, api=VOLCANO, priorityClassName="high"),
            job(2, labels={}, annotations=VOLCANO_NAME),
        ],
    ),
    "queue-missing": (
        "warning",
        [
            QUEUE,
            group(2, api=VOLCANO, queue="reserach"),
            job(2, labels={}, annotations=VOLCANO_NAME),
        ],
        [
            QUEUE,
            group(2, api=VOLCANO, queue="research"),
            job(2, labels={}, annotations=VOLCANO_NAME),
        ],
    ),
    "priority-class-missing": (
        "warning",
        [CLASS, volcano(2, 2, scheduler="volcano", of_job={"priorityClassName": "hihg"})],
        [CLASS, volcano(2, 2, scheduler="volcano", of_job={"priorityClassName": "high"})],
    ),
    "min-task-above-replicas": (
        "error",
        [
            group(2, api=VOLCANO, minTaskMember={"worker": 1, "master": 1}),
            job(2, labels={}, annotations=TASK),
        ],
        [
            group(2, api=VOLCANO, minTaskMember={"worker": 2}),
            job(2, labels={}, annotations=TASK),
        ],
    ),
    "podgroup-without-pods": ("warning", [group(2, "other"), *GOOD], GOOD),
    "label-era-mixed": ("error", [group(2, api=SIGS), job(2)], GOOD),
    "podgroup-missing": ("warning", [job(2)], GOOD),
    "namespaces-differ": (
        "error",
        [group(2, namespace="a"), job(2, namespace="b")],
        [group(2, namespace="a"), job(2, namespace="a")],
    ),
    "min-above-replicas": ("error", [group(3), job(2)], [group(2), job(3)]),
    "min-available-disagrees": (
        "error",
        [job(2, labels=labelled("2")), job(2, "k", labels=labelled("3"))],
        [job(2, labels=labelled("4")), job(2, "k", labels=labelled("4"))],
    ),
    "scheduler-names-differ": (
        "error",
        [group(4), job(2), job(2, "k", schedulerName="volcano")],
        [group(4), job(2), job(2, "k")],
    ),
    "default-scheduler": ("error", [group(2), job(2, schedulerName="default-scheduler")], GOOD),
    "scheduler-unknown": ("warning", [group(2), job(2, schedulerName="quorat")], GOOD),
    "priorities-differ": (
        "error",
        [group(4), job(2, priorityClassName="high"), job(2, "k")],
        [group(4), job(2, priorityClassName="high"), job(2, "k", priorityClassName="high")],
    ),
    "runs-share-gang": (
        "warning",
        [group(2), cron_job(job(2))],
        [group(2), cron_job(job(2), concurrencyPolicy="Forbid")],
    ),
    "pods-made-in-order": (
        "error",
        [group(3), stateful_set(3)],
        [group(3), stateful_set(3, podManagementPolicy="Parallel")],
    ),
    "min-resources-above-pods": (
        "warning",
        [group(2, minResources={"cpu": "9"}), job(2, requests={"cpu": "4"})],
        [group(2, minResources={"cpu": "8"}), job(2, requests={"cpu": "4"})],
    ),
}
