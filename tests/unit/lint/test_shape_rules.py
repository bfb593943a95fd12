"""Goal: with a shape, lint says which pods and gangs could never start there, and only those.

Method: shapes of one or two nodes; the words come from the scheduler's own core.
"""

import copy

import pytest

from tests.unit.lint.operators import (
    job_set,
    ray,
    runtime,
    train_job,
    training,
    volcano,
    worker_set,
)
from tests.unit.lint.world import (
    X_LABEL,
    group,
    job,
    labelled,
    lint,
    meta,
    native_group,
    node,
    pod,
    rules,
)

SMALL = [node("n1"), node("n2", labels={"zone": "a"}, gpu="4")]
GPU = "nvidia.com/gpu"


def on_shape(*objects, nodes=SMALL, **options):
    return lint(*objects, nodes=nodes, shape_name="small", **options)


def one(report, rule):
    (found,) = report.findings
    assert found.rule == rule
    assert found.severity == "error"
    return found


def test_without_a_shape_nothing_is_too_large():
    assert rules(lint(group(2), job(2, requests={"cpu": "900"}))) == set()


def test_a_pod_that_fits_and_a_gang_that_fits():
    assert rules(on_shape(group(4), job(4, requests={"cpu": "4"}))) == set()


def test_nodes_of_the_shape_that_are_out_of_production_are_named_as_such():
    label, taint = "node.coreweave.cloud/state", {"key": "node.coreweave.cloud/reserved"}
    nodes = [
        node("n1", labels={label: "triage"}, taints=[{**taint, "effect": "NoSchedule"}], gpu="4")
    ]
    found = one(on_shape(group(2), job(2, requests={GPU: "4"}), nodes=nodes), "no-node-fits")
    assert found.message.endswith("not open to it: 1 node in triage")


def test_a_pod_larger_than_any_node_names_the_resource_and_the_nearest_node():
    report = on_shape(group(2), job(2, requests={GPU: "8"}))
    found = one(report, "no-node-fits")
    assert "8 nvidia.com/gpu; the largest matching node has 4" in found.message
    assert found.hint == "nearest: node n2 lacks 4 nvidia.com/gpu"
    assert found.path == "spec.template.spec"


def test_limits_are_requests_as_the_api_server_makes_them():
    one(on_shape(pod(labels={}, limits={GPU: "8"})), "no-node-fits")
    made = pod(labels={}, requests={"cpu": "1"}, limits={"cpu": "900"})
    assert rules(on_shape(made)) == set()


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"nodeSelector": {"zone": "b"}}, "node affinity/selector"),
        (
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {
                                    "matchExpressions": [
                                        {"key": "zone", "operator": "In", "values": ["b"]}
                                    ]
                                }
                            ]
                        }
                    }
                }
            },
            "node affinity/selector",
        ),
    ],
)
def test_a_pod_that_no_node_takes_for_what_nodes_are(spec, words):
    assert words in one(on_shape(pod(labels={}, **spec)), "no-node-fits").message


def test_taints_keep_pods_away_unless_tolerated():
    tainted = [node("n1", taints=[{"key": "gpu", "effect": "NoSchedule"}])]
    found = one(on_shape(pod(labels={}), nodes=tainted), "no-node-fits")
    assert "untolerated taint" in found.message
    tolerant = pod(labels={}, tolerations=[{"key": "gpu", "operator": "Exists"}])
    assert rules(on_shape(tolerant, nodes=tainted)) == set()


def test_a_gang_larger_than_the_empty_shape():
    found = one(on_shape(group(5), job(5, requests={"cpu": "4"})), "gang-above-shape")
    assert found.path == "spec.minMember"
    assert "the 5 members that must start together and 4 fit" not in found.message
    assert "5 members must start together and 4 fit" in found.message


def test_only_min_members_have_to_fit_at_once():
    assert rules(on_shape(group(4), job(40, requests={"cpu": "4"}))) == set()
    assert rules(on_shape(native_group(4), job(9, labels={}, requests={"cpu": "4"},
                          schedulingGroup={"podGroupName": "g"}))) == set()  # fmt: skip


def test_a_gang_of_two_kinds_of_pods_is_placed_jointly():
    small, large = job(2, requests={"cpu": "3"}), job(2, "k", requests={"cpu": "5"})
    assert rules(on_shape(group(4), small, large)) == set()
    three = job(3, "k", requests={"cpu": "5"})
    assert rules(on_shape(group(5), small, three)) == {"gang-above-shape"}


def test_more_members_than_the_shape_takes_pods_at_all():
    report = on_shape(job(1_000_000_000, labels=labelled("1000000000")))
    assert "its 2 nodes take 20 pods in all" in one(report, "gang-above-shape").message


def test_min_resources_above_the_shape():
    made = group(2, minResources={"cpu": "17"})
    report = on_shape(made, job(2, requests={"cpu": "1"}), ignore=["min-resources-above-pods"])
    found = one(report, "min-resources-above-shape")
    assert "17 cpu (16 free)" in found.message
    fine = group(2, minResources={"cpu": "2"})
    assert rules(on_shape(fine, job(2, requests={"cpu": "1"}))) == set()


def test_one_gang_does_not_take_the_room_of_another():
    gangs = [
        job(4, name, labels=labelled("4", name), requests={"cpu": "4"}) for name in ("a", "b", "c")
    ]
    assert rules(on_shape(*gangs)) == set()


def test_pods_of_any_scheduler_are_checked_and_gates_do_not_matter():
    made = pod(labels={}, schedulerName="default-scheduler", requests={"cpu": "9"})
    one(on_shape(made), "no-node-fits")
    gated = job(2, requests={"cpu": "4"}, schedulingGates=[{"name": "kueue.x-k8s.io/admission"}])
    assert rules(on_shape(group(2), gated)) == set()


# Pods that must be near others


def near(app="nvl", **term):
    found = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}, **term}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [found]}}


def members(count, app="nvl", name="j", **more):
    return job(count, name, labels={X_LABEL: "g", "app": app}, requests={"cpu": "4"}, **more)


ZONES = [node(f"n{number}", labels={"zone": f"z{number // 2}"}) for number in range(4)]


@pytest.mark.parametrize("namespace", [None, "ml", "not-yet"])
@pytest.mark.parametrize("term", [{}, {"namespaceSelector": {}}])
def test_a_gang_that_must_be_near_itself_is_placed_in_one_domain(namespace, term):
    """It was called impossible, as no pod of its kind runs yet and no namespace exists."""
    gang = [group(4, namespace=namespace), members(4, namespace=namespace, affinity=near(**term))]
    assert rules(on_shape(*gang, nodes=ZONES)) == set()


def test_a_gang_that_no_domain_takes_says_how_many_the_roomiest_takes():
    """The answer of the scheduler, in place of a false one about namespaces."""
    report = on_shape(group(5), members(5, affinity=near()), nodes=ZONES)
    message = one(report, "gang-above-shape").message
    assert "the roomiest domain has room for 4 of 5" in message
    assert "does not exist" not in message


def test_workers_near_the_launcher_of_their_gang_are_placed():
    """Each template alone finds no pod to be near; the gang has it."""
    gang = [group(3), members(1, "launcher"), members(2, "w", "k", affinity=near("launcher"))]
    assert rules(on_shape(*gang, nodes=ZONES)) == set()


def test_affinity_to_pods_that_no_file_has_is_no_error():
    """Those pods may run in the cluster; without them, the gang waits."""
    gang = [group(2), members(2, affinity=near("cache"))]
    (found,) = on_shape(*gang, nodes=ZONES).findings
    assert (found.rule, str(found.severity)) == ("affinity-needs-others", "warning")
    cache = pod("cache", labels={"app": "cache"})
    assert rules(on_shape(*gang, cache, nodes=ZONES)) == set()


def test_affinity_by_labels_of_a_namespace_reads_the_namespace_of_the_files():
    """The labels of a namespace are those of the files, and its name."""
    term = {"namespaceSelector": {"matchLabels": {"team": "a"}}}
    gang = [group(2, namespace="ml"), members(2, namespace="ml", affinity=near(**term))]
    there = {"apiVersion": "v1", "kind": "Namespace", "metadata": meta("ml", labels={"team": "a"})}
    assert rules(on_shape(*gang, there, nodes=ZONES)) == set()
    assert rules(on_shape(*gang, nodes=ZONES)) == {"affinity-needs-others"}
    named = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ml"}}}
    gang[1] = members(2, namespace="ml", affinity=near(**named))
    assert rules(on_shape(*gang, nodes=ZONES)) == set()


def test_a_topology_key_that_no_node_has_is_an_error():
    """The scheduler places such a gang nowhere, and lint says so."""
    gang = [group(2), members(2, affinity=near(topologyKey="zoen"))]
    assert rules(on_shape(*gang, nodes=ZONES)) == {"no-node-fits"}


def test_claims_are_taken_to_exist():
    """A claim of a volume or a device that lint cannot see is no reason to fail."""
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    device = {"name": "gpu", "resourceClaimTemplateName": "gpu"}
    made = pod(labels={}, volumes=[volume], resourceClaims=[device])
    assert rules(on_shape(made)) == set()


SIZES = (264, 326, 440, 399, 251, 251, 310, 282, 279, 390, 315, 333, 342, 381, 274, 316, 270)
"""Three of these and four more would nearly fill each of seven nodes of 1,000 cpu."""


def test_a_search_that_was_cut_short_proves_nothing():
    """What nobody has shown to be impossible is a warning."""
    sizes = (*SIZES, 363, 428, 302, 480)
    jobs = [job(1, f"j{number}", requests={"cpu": str(s)}) for number, s in enumerate(sizes)]
    nodes = [node(f"n{number}", cpu="1000") for number in range(7)]
    (found,) = on_shape(group(len(sizes)), *jobs, nodes=nodes).findings
    assert (found.rule, str(found.severity)) == ("gang-above-shape", "warning")
    assert found.message.startswith("no place was found in shape small, empty, for the 21 members")


def all_near(value, key):
    """Have all pods of an object near pods with the label ``key: w``; return the object."""
    if isinstance(value, dict) and "containers" in value:
        value["affinity"] = near()
        podlike = value["affinity"]["podAffinity"]
        (term,) = podlike["requiredDuringSchedulingIgnoredDuringExecution"]
        term["labelSelector"] = {"matchLabels": {key: "w"}}
    for below in value.values() if isinstance(value, dict) else value:
        if isinstance(below, dict | list):
            all_near(below, key)
    return value


@pytest.mark.parametrize(
    ("made", "key"),
    [
        ([job(4, "w", labels=labelled("4"))], "batch.kubernetes.io/job-name"),
        ([job_set(labelled("9"))], "jobset.sigs.k8s.io/jobset-name"),
        ([training(policy={})], "training.kubeflow.org/job-name"),
        ([worker_set(leader=False)], "leaderworkerset.sigs.k8s.io/name"),
        ([volcano(4, 4)], "volcano.sh/job-name"),
        (
            [ray(labels={"volcano.sh/queue-name": "q"}, groups=[{"replicas": 3}])],
            "ray.io/cluster",
        ),
        (
            [runtime({"coscheduling": {}}), train_job(trainer={"numNodes": 3})],
            "jobset.sigs.k8s.io/jobset-name",
        ),
    ],
)
def test_labels_that_controllers_give_are_known(made, key):
    """The usual way to be near one's own is a label that no template has."""
    gang = all_near(copy.deepcopy(made), key)
    large = [node(f"n{n}", labels={"zone": f"z{n}"}, pods="20", gpu="99") for n in range(2)]
    small = [node(f"n{n}", labels={"zone": f"z{n}"}, pods="2", gpu="99") for n in range(9)]
    assert rules(on_shape(*gang, nodes=large)) == set()
    assert rules(on_shape(*gang, nodes=small)) == {"gang-above-shape"}


def test_labels_whose_values_nobody_knows_are_no_reason_to_warn():
    """An index, or a uid, is in no file."""
    made = job(2, labels={X_LABEL: "g"}, affinity=near())
    affinity = made["spec"]["template"]["spec"]["affinity"]["podAffinity"]
    term = affinity["requiredDuringSchedulingIgnoredDuringExecution"][0]
    term["labelSelector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}
    assert rules(on_shape(group(2), made, nodes=ZONES)) == set()
