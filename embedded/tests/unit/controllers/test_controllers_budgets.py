"""What a PodDisruptionBudget expects while a Deployment has pods of several ReplicaSets."""

from embedded.tests.unit.controllers.controllers_world import World, workload


def _with_image(image):
    def change(obj):
        obj["spec"]["template"]["spec"]["containers"][0]["image"] = image

    return change


def test_a_deployment_counts_once_however_many_of_its_replica_sets_have_pods():
    world = World(nodes=0)  # no pod ever runs, so that the old ones stay
    world.create("apps/v1", "deployments", workload("d", replicas=3))
    selector = {"matchLabels": {"app": "d"}}
    budget = {"metadata": {"name": "b"}, "spec": {"selector": selector, "maxUnavailable": 1}}
    world.create("policy/v1", "poddisruptionbudgets", budget)
    world.settle()
    world.patch("deployments.apps", "d", _with_image("other"))
    world.settle(for_s=5)
    assert len({p["metadata"]["ownerReferences"][0]["uid"] for p in world.pods(app="d")}) == 2
    status = world.status("poddisruptionbudgets.policy", "b")
    assert (status["expectedPods"], status["desiredHealthy"]) == (3, 2)
