"""Goal: a gang that is named where no scheduler reads it is an error, at that place (ADR 32).

Method: manifests with the name on the Job, in annotations, and in those of another scheduler.
"""

import pytest

from tests.paths import CASES
from tests.unit.lint.operators import job_set
from tests.unit.lint.world import X_LABEL, cron_job, group, job, lint, lint_text, one, rules


def test_a_gang_that_is_named_on_the_job_and_not_on_its_template():
    """The label stood on the Job, and nothing was said of its 4 pods, which start one by one."""
    made = [group(4), job(4, labels={}, of_job={"labels": {X_LABEL: "g"}})]
    report = lint(*made)
    assert rules(report) == {"unknown-gang-label", "podgroup-without-pods"}
    found = one(*made, rule="unknown-gang-label")
    assert found.severity == "error"
    assert found.path == f"metadata.labels[{X_LABEL}]"
    assert found.message == f"label {X_LABEL} of Job j is read by no scheduler"
    assert found.hint == f"use label {X_LABEL}: g in its pod template"
    assert one(*made, rule="podgroup-without-pods").message == (
        f"no pod in these files names PodGroup g; 4 pods of Job j are meant for it: "
        f"label {X_LABEL} of Job j is read by no scheduler"
    )


def test_a_name_on_the_job_that_the_template_has_too_is_no_mistake():
    """Tools put one set of labels on both."""
    assert rules(lint(group(4), job(4, of_job={"labels": {X_LABEL: "g"}}))) == set()


def test_a_gang_that_is_named_on_a_cron_job_or_on_its_template_of_jobs():
    """Neither is the template of the pods; of several Jobs of a JobSet it is told once."""
    for place in ("metadata", "jobTemplate"):
        made = cron_job(job(4, labels={}), concurrencyPolicy="Forbid")
        above = made if place == "metadata" else made["spec"]["jobTemplate"]
        above.setdefault("metadata", {})["labels"] = {X_LABEL: "g"}
        found = one(made, rule="unknown-gang-label")
        assert found.message == f"label {X_LABEL} of CronJob j is read by no scheduler"
        assert ("jobTemplate" in found.path) == (place == "jobTemplate")
    several = job_set(
        *({"name": name, "replicas": 1, "template": job(2, labels={})} for name in "ab")
    )
    several["metadata"]["labels"] = {X_LABEL: "g"}
    assert one(several, rule="unknown-gang-label").path == f"metadata.labels[{X_LABEL}]"


def test_the_annotations_of_koordinator_are_wrong_where_quorate_schedules():
    """Elsewhere Koordinator reads them."""
    key = "gang.scheduling.koordinator.sh/name"
    made = job(4, labels={}, annotations={key: "g"})
    found = one(made, rule="unknown-gang-label")
    assert found.severity == "error"
    assert found.message == f"annotation {key} is Koordinator's, and quorate does not read it"
    assert found.hint.startswith("use label pod-group.scheduling.sigs.k8s.io/name: g together")
    theirs = job(4, labels={}, annotations={key: "g"}, schedulerName="koord-scheduler")
    assert rules(lint(theirs)) == set()


@pytest.mark.parametrize(
    ("file", "errors"), [("09-annotation.yaml", "abcd"), ("13-sidecar-overhead.yaml", "")]
)
def test_the_cases_of_users_have_an_error_for_each_name_in_the_wrong_place_and_no_other(
    file, errors
):
    report = lint_text((CASES / file).read_text())
    found = [finding for finding in report.findings if finding.severity == "error"]
    assert [finding.object.name for finding in found] == list(errors)
    assert {finding.rule for finding in found} <= {"unknown-gang-label"}
    assert {finding.rule for finding in report.findings} <= {
        "unknown-gang-label",
        "podgroup-without-pods",
    }
