"""Goal: what pods ask for is counted as the scheduler does, with sidecars and overhead.

Method: a gang in sandboxes, with its RuntimeClass in the files and without.
"""

from tests.paths import CASES
from tests.unit.lint.world import group, job, lint, node, one, rules
from tools.testing import call


def in_sandboxes(min_cpu, **podspec):
    """Return a gang of 3 pods that ask for 2 CPUs each, one of them for a sidecar."""
    made = job(3, requests={"cpu": "1"}, runtimeClassName="vm", **podspec)
    sidecar = {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}
    made["spec"]["template"]["spec"]["initContainers"] = [sidecar]
    return [group(3, minResources={"cpu": min_cpu}), made]


def runtime_class(cpu):
    """Return the RuntimeClass vm, each pod of which costs that much more."""
    overhead = {"overhead": {"podFixed": {"cpu": cpu}}} if cpu else {}
    meta = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "vm"}}
    return {**meta, "handler": "vm", **overhead}


def test_the_overhead_of_a_runtime_class_is_part_of_what_pods_ask_for():
    """It said "lower minResources to 6" of 3 pods of 1 CPU, 1 for a sidecar and 1 of overhead."""
    assert rules(lint(*in_sandboxes("9"), runtime_class("1"))) == set()
    assert rules(lint(runtime_class("1"), *in_sandboxes("9"))) == set()
    found = one(*in_sandboxes("10"), runtime_class("1"), rule="min-resources-above-pods")
    assert found.hint == "lower it to 9, or leave it out"
    found = one(*in_sandboxes("9"), runtime_class(""), rule="min-resources-above-pods")
    assert found.hint == "lower it to 6, or leave it out"


def test_no_sum_is_claimed_where_the_runtime_class_is_in_none_of_the_files():
    """Its overhead is not known, so the sum is not; an overhead that is written is known."""
    assert rules(lint(*in_sandboxes("9"))) == set()
    written = in_sandboxes("10", overhead={"cpu": "1"})
    assert rules(lint(*written)) == {"min-resources-above-pods"}


def test_the_number_of_pods_is_known_without_the_runtime_class():
    """Overhead is of CPU, memory and the like."""
    made = in_sandboxes("9")
    made[0]["spec"]["minResources"]["pods"] = "4"
    assert rules(lint(*made)) == {"min-resources-above-pods"}


def test_a_pod_with_its_overhead_is_tried_on_a_shape():
    """2 CPUs and 1 of overhead are more than a node of 2 has."""
    on_two = {"nodes": [node(f"n{number}", cpu="2") for number in range(3)], "shape_name": "s"}
    assert rules(lint(*in_sandboxes("6"), runtime_class(""), **on_two)) == set()
    assert rules(lint(*in_sandboxes("6"), runtime_class("1"), **on_two)) == {"no-node-fits"}


def test_a_users_own_manifests_have_no_finding_on_the_cluster_that_they_were_for(capsys):
    """Of the gang ``sand`` it said "lower minResources to 6"."""
    case, shape = CASES / "13-sidecar-overhead.yaml", CASES / "shape-a.yaml"
    assert call("lint", str(case), "--shape", str(shape), "--strict") == 0
    assert "0 errors, 0 warnings in 6 objects" in capsys.readouterr().out
