"""Goal: ``quorate why`` names owners that have made no pod of a gang yet, which no pod tells of.

Method: the command line in this process, against a server that answers by path over real HTTP.
"""

import json

import pytest

from tests.unit.cli.api_server import PODS, X_GROUPS, group, listing, pod, serving, small_cluster
from tools.objects import GANG_LABEL, named

DRIVER = "/apis/batch/v1/namespaces/team/jobs/driver"
JOBS = "/apis/batch/v1/namespaces/team/jobs"
SETS = "/apis/apps/v1/namespaces/team/statefulsets"
EVENTS = "/apis/events.k8s.io/v1/namespaces/team/events"
ALONE = "1 of 3 members exist; Job driver makes 1"
HINT = (
    "make Job driver anew with parallelism and completions of 3, or lower min to 1; more members "
    "may come from elsewhere"
)


def workload(kind, name, gang="mixed", status=None, **spec):
    api_version = "batch/v1" if kind == "Job" else "apps/v1"
    template = {"metadata": {"labels": {GANG_LABEL: gang}}, "spec": {"containers": []}}
    spec = {"template": template, **spec}
    known = {"namespace": "team", "uid": name}
    return named(kind, api_version, name, known, spec=spec, status=status or {})


def job(name, *, status=None, **spec):
    return workload("Job", name, status=status, **{"parallelism": 2, "completions": 2, **spec})


DRIVEN = job("driver", parallelism=1, completions=1, status={"active": 1})
SUSPENDED = job("workers", suspend=True)
OVER = job("earlier", status={"conditions": [{"type": "Complete", "status": "True"}]})


@pytest.fixture(scope="module")
def cluster():
    made = small_cluster()
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "driver", "controller": True}
    member = pod("driver-0", "mixed")
    member["metadata"]["ownerReferences"] = [{**owner, "uid": "driver"}]
    made.answers |= {
        PODS: listing(member),
        X_GROUPS: listing(group("mixed", 3), group("refused", 2)),
        DRIVER: (200, DRIVEN),
    }
    with serving(made.tell()) as server:
        yield server


@pytest.fixture
def why(cluster, quorate):
    """Ask why a gang waits, where a namespace has these workloads."""
    kept = dict(cluster.answers)

    def run(name, *jobs, **answers):
        cluster.answers |= {JOBS: listing(DRIVEN, *jobs), **answers}
        code, out, err = quorate("why", name, "-o", "json")
        assert (code, err) == (0, "")
        found = json.loads(out)
        return found["message"], found["hint"]

    yield run
    cluster.answers = kept


def test_a_second_job_that_is_suspended_is_named(why):
    """It said "Job driver has to make 3"."""
    assert why("mixed", SUSPENDED, OVER) == (
        f"{ALONE}; Job workers is suspended",
        "resume Job workers (spec.suspend: false)",
    )


@pytest.mark.parametrize(
    "others",
    [
        [],
        [OVER],
        [workload("Job", "others", "other", suspend=True)],
        [job("none", parallelism=0)],
    ],
    ids=["none", "a Job that is over", "a Job of another gang", "a Job that makes none"],
)
def test_owners_that_bring_no_member_are_not_named(why, others):
    assert why("mixed", *others) == (ALONE, HINT)


@pytest.mark.parametrize("status", [403, 404, 500])
def test_of_what_the_caller_may_not_list_nothing_is_said(why, status):
    refusal = {"kind": "Status", "code": status, "message": "no"}
    assert why("mixed", **{JOBS: (status, refusal)}) == (ALONE, HINT)


def test_a_stateful_set_that_would_make_the_others_one_after_another_is_named(why):
    ring = workload("StatefulSet", "ring", replicas=2)
    assert why("mixed", **{SETS: listing(ring)}) == (
        f"{ALONE}; StatefulSet ring makes its 2 pods one after another",
        "make StatefulSet ring anew with podManagementPolicy: Parallel",
    )


def test_a_gang_whose_pods_are_all_refused_says_by_what(why):
    """It said "create the other 2" of a Job that tries to."""
    template = {"metadata": {"labels": {GANG_LABEL: "refused"}}, "spec": {}}
    event = {"metadata": {}, "note": 'pods "x" is forbidden: exceeded quota: team-cpu'}
    tries = job("tries", template=template)
    assert why("refused", tries, **{EVENTS: listing(event)}) == (
        "0 of 2 members exist; Job tries makes 2, and the API server refuses the others: exceeded "
        "quota: team-cpu",
        "let what refuses them allow more",
    )
