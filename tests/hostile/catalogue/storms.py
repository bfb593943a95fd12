"""Storms: as many objects, and as often, as the API server takes them."""

from tests.hostile.catalogue.groups import by_labels
from tests.hostile.catalogue.rows import Catalogue
from tests.hostile.harness.attacker import Attacker
from tests.property.seeds import times
from tools.objects import GANG_LABEL, gang_pods, pod, pod_group

STORMS = Catalogue()
TINY = {"requests": {"cpu": "1m"}}
GANGS = times(1_500)
SPECS = times(2_500)


@STORMS.attack("Insufficient cpu")
def gangs_for_which_there_is_no_room(a: Attacker) -> None:
    a.create_many(
        one
        for number in range(GANGS)
        for one in by_labels(f"g{number}", 2, 2, requests={"cpu": f"{1_000 + number}"})
    )


@STORMS.attack("Insufficient cpu")
def waiting_pods_each_of_its_own_size(a: Attacker) -> None:
    a.create_many(
        pod(f"p{number}", requests={"cpu": f"{100_000 + number}m", "memory": f"{number}"})
        for number in range(SPECS)
    )
    a.keep_on(lambda number: _come_and_go(a, f"foreign-{number}", "default-scheduler", "node-3"))


def _come_and_go(a: Attacker, name: str, scheduler: str, node: str) -> None:
    one = pod(name, scheduler=scheduler, nodeName=node, **TINY)
    a.create(one)
    a.delete(one)


@STORMS.attack()
def pods_of_ever_new_specs_that_come_and_go(a: Attacker) -> None:
    def come_and_go(number: int) -> None:
        requests = {"cpu": f"{number + 1}m", "memory": f"{1_000_000 + number}"}
        one = pod(f"p{number}", requests=requests, labels={f"l{number}": f"{number}"})
        a.create(one)
        a.delete(one)

    for _ in range(3):
        a.keep_on(come_and_go)


@STORMS.attack()
def gangs_that_come_and_go(a: Attacker) -> None:
    def come_and_go(number: int) -> None:
        group, members = pod_group(f"g{number}", 4), gang_pods(f"g{number}", 4, **TINY)
        a.create(group, *members)
        for one in (*members, group):
            a.delete(one)

    for _ in range(2):
        a.keep_on(come_and_go)


@STORMS.attack()
def names_that_the_server_makes(a: Attacker) -> None:
    one = pod("x", labels={GANG_LABEL: "g"}, **TINY)
    one["metadata"] = {"generateName": "x" * 200, "labels": {GANG_LABEL: "g"}}
    a.create(pod_group("g", 2**31 - 1))
    a.create_many(one for _ in range(300))


@STORMS.attack()
def labels_of_running_pods_that_never_rest(a: Attacker) -> None:
    a.create_many(pod(f"p{number}", **TINY) for number in range(30))

    def stir(number: int) -> None:
        labels = {"stir": f"{number}", f"k{number % 100}": "x"}
        a.patch(pod(f"p{number % 30}"), {"metadata": {"labels": labels}})

    for _ in range(3):
        a.keep_on(stir)


@STORMS.attack()
def a_pod_that_waits_among_ever_new_ones(a: Attacker) -> None:
    """The waiting one is told why while others are created without end."""
    a.create(pod("stuck", requests={"cpu": "100000"}))
    a.keep_on(lambda number: a.create(pod(f"p{number}", **TINY)))


@STORMS.attack()
def a_namespace_that_goes_in_the_midst_of_gangs(a: Attacker) -> None:
    a.create(pod_group("g", 60))
    a.create_many(gang_pods("g", 59, **TINY))
    # An editor may not, and an administrator may at any time.
    a.cluster.api("DELETE", f"/api/v1/namespaces/{a.namespace}")
    a.create(gang_pods("g", 60, **TINY)[-1])
    a.keep_on(lambda number: a.create(pod(f"p{number}", **TINY)))
