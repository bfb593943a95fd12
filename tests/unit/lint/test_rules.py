"""Goal: each rule finds what it is for, and is silent on the manifest that is right.

Method: for each name of a finding, one bad and one good set of objects, through the whole of lint.
"""

import pytest

from quorate.lint.rules import NAMES, RULES
from tests.unit.lint.cases import CASES, LONG, VOLCANO_NAME
from tests.unit.lint.operators import mpi, training, volcano
from tests.unit.lint.world import (
    MIN_LABEL,
    NAME_LABEL,
    SIGS,
    SIGS_LABEL,
    VOLCANO,
    X_LABEL,
    group,
    job,
    labelled,
    lint,
    native_group,
    one,
    pod,
    rules,
    stateful_set,
    template,
)
from tools.objects import named

CLASSES = "scheduling.k8s.io/v1"
ELSEWHERE = {
    "pods-without-gang": "test_workloads",
    "workload-min-invalid": "test_workloads",
    "members-made-later": "test_workloads",
    "affinity-needs-others": "test_shape_rules",
    "duplicate-key": "test_tree",
    "no-node-fits": "test_shape_rules",
    "gang-above-shape": "test_shape_rules",
    "min-resources-above-shape": "test_shape_rules",
}


def test_every_rule_has_a_case_and_a_name_of_its_own():
    assert len(NAMES) == len(set(NAMES))
    assert set(CASES) | set(ELSEWHERE) == set(NAMES)
    assert all(rule.about and rule.check.__doc__ for rule in RULES)


@pytest.mark.parametrize("rule", CASES)
def test_the_bad_manifest_is_found_fault_with(rule):
    severity, bad, _ = CASES[rule]
    found = [finding for finding in lint(*bad).findings if finding.rule == rule]
    assert found
    assert {str(finding.severity) for finding in found} == {severity}
    for finding in found:
        assert finding.message
        assert finding.hint
        assert finding.line > 1 or finding.path == "apiVersion"


@pytest.mark.parametrize("rule", CASES)
def test_the_good_manifest_is_not(rule):
    assert rules(lint(*CASES[rule][2])) == set()


# Labels and eras


@pytest.mark.parametrize(
    ("labels", "api", "wanted"),
    [
        ({SIGS_LABEL: "g"}, None, "label scheduling.x-k8s.io/pod-group: g"),
        ({X_LABEL: "g"}, SIGS, "label pod-group.scheduling.sigs.k8s.io: g"),
        ({X_LABEL: "g"}, VOLCANO, "annotation scheduling.k8s.io/group-name: g"),
        (labelled("2"), None, "label scheduling.x-k8s.io/pod-group: g"),
        ({NAME_LABEL: "g"}, None, "label scheduling.x-k8s.io/pod-group: g"),
    ],
)
def test_a_mixed_era_names_both_and_says_what_to_write(labels, api, wanted):
    made = group(2, **({"api": api} if api else {}))
    found = one(made, job(2, labels=labels), rule="label-era-mixed")
    assert wanted in found.hint
    assert made["apiVersion"] in found.message
    assert found.path.startswith("spec.template.metadata.labels[")


def test_a_near_miss_is_said_in_the_schedulers_own_words():
    labels = {"pod-group.scheduling.sigs.k8s.io/pod-group": "g"}
    found = one(job(2, labels=labels), rule="unknown-gang-label")
    assert "is read by no scheduler" in found.message
    assert found.path == "spec.template.metadata.labels[pod-group.scheduling.sigs.k8s.io/pod-group]"


@pytest.mark.parametrize(
    ("least", "rule", "severity"),
    [
        ("two", "min-available-invalid", "error"),
        ("1.5", "min-available-invalid", "error"),
        ("99999999999", "min-available-invalid", "error"),
        ("0", "min-available-invalid", "warning"),
        ("-1", "min-available-invalid", "warning"),
        (None, "gang-label-incomplete", "error"),
        ("", "gang-label-incomplete", "error"),
    ],
)
def test_labels_that_make_no_gang(least, rule, severity):
    assert one(job(2, labels=labelled(least)), rule=rule).severity == severity


def test_a_number_in_a_label_is_told_once_and_read_as_it_was_meant():
    report = lint(job(2, labels=labelled(4)))
    assert rules(report) == {"label-not-a-string", "min-above-replicas"}
    first = report.findings[0]
    assert 'write it in quotes: "4"' in first.hint


@pytest.mark.parametrize("key", [X_LABEL, SIGS_LABEL])
def test_an_empty_name_is_no_gang(key):
    assert rules(lint(job(2, labels={key: ""}))) == {"gang-label-incomplete"}


@pytest.mark.parametrize(
    "labels",
    [
        {"team": LONG},
        {"team": "-a"},
        {"team": "ä"},
        {LONG: "a"},
        {"Upper/x": "a"},
        {"a/b/c": "a"},
        {"": "a"},
    ],
)
def test_labels_that_the_api_server_refuses(labels):
    """The real server 1.36 answers 422 to each of these."""
    assert "label-invalid" in rules(lint(job(2, labels=labels)))


def test_a_selector_that_does_not_select_its_own_template():
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": template(labels={})},
    }
    assert one(deployment, rule="label-invalid").path == "spec.selector.matchLabels.app"


# Gangs


def test_min_above_replicas_names_both_and_says_how_to_mend_it():
    found = one(group(4), job(2), rule="min-above-replicas")
    assert found.message == "PodGroup g needs 4 members (spec.minMember), and Job j makes 2"
    assert found.hint == (
        "set parallelism and completions of Job j to 4, or lower minMember to 2; more members may "
        "come from elsewhere"
    )


@pytest.mark.parametrize(
    ("written", "fields"),
    [
        ({"parallelism": 1, "completions": 1}, "parallelism and completions"),
        ({"parallelism": 2, "completions": 3}, "parallelism and completions"),
        ({"completions": 2}, "parallelism and completions"),
        ({"parallelism": 2, "completions": 8}, "parallelism"),
        ({"parallelism": 8, "completions": 2}, "completions"),
        ({"parallelism": 2}, "parallelism"),
        ({"completions": 8}, "parallelism"),
    ],
)
def test_a_job_that_both_its_numbers_limit_is_told_to_change_both(written, fields):
    """A Job with 1 of each was told "set parallelism", which gave the same error again."""
    made = job()
    made["spec"] = written | {"template": made["spec"]["template"]}
    found = one(group(4), made, rule="min-above-replicas")
    assert found.hint.startswith(f"set {fields} of Job j to 4, or lower minMember to ")


@pytest.mark.parametrize(
    ("objects", "found"),
    [
        ([group(1), stateful_set(3)], set()),
        ([group(2), stateful_set(1), job(1)], set()),
        ([group(2), stateful_set(3), job(1)], set()),
        ([group(3), stateful_set(3), job(1)], {"pods-made-in-order"}),
        ([group(3), stateful_set(3, podManagementPolicy="OrderedReady")], {"pods-made-in-order"}),
        ([group(5), stateful_set(3)], {"pods-made-in-order", "min-above-replicas"}),
    ],
)
def test_a_stateful_set_makes_one_pod_until_that_is_ready(objects, found):
    """Lint found nothing of a ring of 3 that could never start."""
    assert rules(lint(*objects)) == found


def test_min_above_replicas_adds_up_all_templates():
    assert rules(lint(group(4), job(2), job(2, "k"))) == set()
    found = one(group(5), job(2), job(2, "k"), rule="min-above-replicas")
    assert found.message.endswith("Job j makes 2 and Job k makes 2, 4 in all")


@pytest.mark.parametrize(
    ("objects", "path"),
    [
        (
            [job(2, labels=labelled("3"))],
            f"spec.template.metadata.labels[{MIN_LABEL}]",
        ),
        (
            [native_group(3), job(2, labels={}, schedulingGroup={"podGroupName": "g"})],
            "spec.schedulingPolicy.gang.minCount",
        ),
        (
            [group(3, api=VOLCANO), job(2, labels={}, annotations=VOLCANO_NAME)],
            "spec.minMember",
        ),
        ([group(2, api=SIGS), pod(labels={SIGS_LABEL: "g"})], "spec.minMember"),
    ],
)
def test_min_above_replicas_in_every_dialect(objects, path):
    assert one(*objects, rule="min-above-replicas").path == path


@pytest.mark.parametrize("min_member", [0, -1, None])
def test_a_min_that_makes_no_gang_is_worst_where_the_api_refuses_it(min_member):
    refused = {0: "error", -1: "error", None: "warning"}
    report = lint(group(min_member), job(2))
    assert [str(f.severity) for f in report.findings] == [refused[min_member]]
    volcano = lint(group(min_member, api=VOLCANO), job(2, labels={}, annotations=VOLCANO_NAME))
    assert [str(f.severity) for f in volcano.findings] == [
        {0: "warning", -1: "error", None: "warning"}[min_member]
    ]


def test_a_misspelt_min_is_one_finding_with_the_name_that_was_meant():
    for field in ("minMembers", "minmember", "minAvailable", "minCount"):
        report = lint(group(None, **{field: 2}), job(2))
        assert [f.rule for f in report.findings] == ["podgroup-field-unknown"], field
        assert report.findings[0].hint == "did you mean minMember?"
    made = native_group(2)
    made["spec"]["minMember"] = 2
    found = one(made, rule="podgroup-field-unknown")
    assert "spec.schedulingPolicy.gang.minCount" in found.hint


@pytest.mark.parametrize(
    ("api", "severity", "hint"),
    [
        ("scheduling.x-k8s.io/v1beta1", "error", "scheduling.x-k8s.io/v1alpha1"),
        ("scheduling.sigs.k8s.io/v1", "error", "scheduling.sigs.k8s.io/v1alpha1"),
        ("scheduling.xk8s.io/v1alpha1", "error", "scheduling.x-k8s.io/v1alpha1"),
        ("scheduling.volcano.sh/v1alpha2", "error", "scheduling.volcano.sh/v1beta1"),
        ("scheduling.incubator.k8s.io/v1alpha1", "error", "scheduling.volcano.sh/v1beta1"),
        ("scheduling.run.ai/v2alpha2", "warning", "for quorate"),
        ("scheduling.k8s.io/v1beta1", "warning", "for quorate"),
    ],
)
def test_apis_of_podgroups_that_nobody_serves_any_more_or_that_are_others(api, severity, hint):
    found = one(group(2, api=api), rule="podgroup-api-unknown")
    assert (str(found.severity), hint in found.hint) == (severity, True)


def test_a_podgroup_in_another_namespace_is_sure_only_where_both_are_written():
    found = one(group(2, namespace="a"), job(2), rule="namespaces-differ")
    assert found.severity == "warning"
    assert "-n a" in found.message
    assert (
        rules(lint(group(2, namespace="a"), job(2), namespace="a", namespace_given=True)) == set()
    )
    there = {"namespace": "b", "namespace_given": True}
    assert (
        one(group(2, namespace="a"), job(2), rule="namespaces-differ", **there).severity == "error"
    )


def test_a_missing_podgroup_may_be_a_typo():
    report = lint(group(2, "trian"), job(2, labels={X_LABEL: "train"}))
    found = next(f for f in report.findings if f.rule == "podgroup-missing")
    assert "did you mean trian?" in found.message


def not_found(kind, made):
    """Return what is said of names of this kind, in files with an object and one of this kind."""
    is_queue = kind == "Queue"
    api, name = ("scheduling.volcano.sh/v1beta1", "research") if is_queue else (CLASSES, "high")
    found = lint(named(kind, api, name), made).findings
    return [(f.rule, f.path, f.hint) for f in found if f.rule.endswith("-missing")]


QUEUE_NAMED = [
    (volcano(2, 2, scheduler="volcano"), ("spec", "queue")),
    (training(policy={}), ("spec", "runPolicy", "schedulingPolicy", "queue")),
    (mpi(policy={}), ("spec", "runPolicy", "schedulingPolicy", "queue")),
]


def with_value(made, path, value):
    """Return the object with another value of a field."""
    if not path:
        return value
    return {**made, path[0]: with_value(made.get(path[0], {}), path[1:], value)}


@pytest.mark.parametrize(("made", "path"), QUEUE_NAMED, ids=["vcjob", "PyTorchJob", "MPIJob"])
def test_a_queue_that_a_job_names_is_looked_for_if_the_files_have_queues(made, path):
    at = ".".join(path)
    assert not_found("Queue", with_value(made, path, "reserach")) == [
        ("queue-missing", at, f"write {at}: research")
    ]
    assert not_found("Queue", with_value(made, path, "team-b")) == [
        ("queue-missing", at, "add that Queue, or have it made before")
    ]
    for name in ("research", "default", ""):
        assert not_found("Queue", with_value(made, path, name)) == []
    assert rules(lint(with_value(made, path, "reserach"))) == set(), "the cluster may have it"


def test_a_priority_class_of_the_system_is_in_each_cluster():
    made = volcano(2, 2, scheduler="volcano")
    for name in ("system-cluster-critical", "high"):
        assert (
            not_found("PriorityClass", with_value(made, ["spec", "priorityClassName"], name)) == []
        )
    made = with_value(made, ["spec", "priorityClassName"], "hihg")
    assert not_found("PriorityClass", made) == [
        ("priority-class-missing", "spec.priorityClassName", "write spec.priorityClassName: high")
    ]


def test_the_queue_that_a_gang_names_is_told_though_all_is_well():
    report = lint(
        group(2, api=VOLCANO, queue="research"), job(2, labels={}, annotations=VOLCANO_NAME)
    )
    assert [one.queue for one in report.gangs] == ["research"]
    report = lint(with_value(volcano(2, 2, scheduler="volcano"), ["spec", "queue"], "research"))
    assert [one.queue for one in report.gangs] == ["research"]


def test_tasks_of_volcanos_jobs_may_differ_in_priority():
    one, other = (
        job(1, name, labels={}, annotations=VOLCANO_NAME, priorityClassName=name)
        for name in ("a", "b")
    )
    assert rules(lint(group(2, api=VOLCANO), one, other)) == set()


def test_priority_classes_of_one_value_agree():
    classes = [
        {
            "apiVersion": CLASSES,
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": 7,
        }
        for name in ("a", "b")
    ]
    jobs = [job(2, priorityClassName="a"), job(2, "k", priorityClassName="b")]
    assert rules(lint(group(4), *jobs)) == {"priorities-differ"}
    assert rules(lint(group(4), *jobs, *classes)) == set()


def test_the_default_scheduler_is_right_for_native_gangs_and_where_the_caller_says_so():
    native = job(
        2, labels={}, schedulerName="default-scheduler", schedulingGroup={"podGroupName": "g"}
    )
    assert rules(lint(native_group(2), native)) == set()
    made = [group(2), job(2, schedulerName="default-scheduler")]
    assert rules(lint(*made, scheduler_names=("default-scheduler",))) == set()


def test_a_pod_without_a_scheduler_name_is_the_default_schedulers():
    made = job(2)
    del made["spec"]["template"]["spec"]["schedulerName"]
    assert one(group(2), made, rule="default-scheduler").path == "spec.template.spec"
