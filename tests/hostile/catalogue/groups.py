"""Gangs: objects of every API, members that name others' gangs, and lives that never end well."""

from tests.e2e.harness.gang_shapes import SHAPES
from tests.hostile.catalogue.pods import HOST, REQUIRED
from tests.hostile.catalogue.rows import STARTS, Catalogue
from tests.hostile.harness.attacker import Attacker
from tools.objects import GANG_LABEL, SIGS, VOLCANO, X_K8S, gang_pods, pod, pod_group

GROUPS = Catalogue()
INT32_MAX = 2**31 - 1
NAME, MIN = (f"pod-group.scheduling.sigs.k8s.io/{part}" for part in ("name", "min-available"))
TINY = {"requests": {"cpu": "1m"}}
APIS = (X_K8S, SIGS, VOLCANO)


def by_labels(gang: str, count: int, minimum: object, **more) -> list[dict]:
    labels = {NAME: gang, MIN: str(minimum)}
    return [pod(f"{gang}-{i}", labels=labels, **{**TINY, **more}) for i in range(count)]


@GROUPS.attack(f"of {INT32_MAX} members exist", refused=422)
def a_min_at_each_edge(a: Attacker) -> None:
    for number, minimum in enumerate((INT32_MAX, 2**31, 0, -1, -(2**31), 10**18, 2.5, "4", None)):
        for api in APIS:
            group = pod_group(f"g{number}-{api.split('.')[1][:3]}", 1, api)
            group["spec"]["minMember"] = minimum
            a.create(group)
    a.create(*gang_pods("g0-x-k", 3, **TINY))
    for number, minimum in enumerate((INT32_MAX, 2**31, 0, -1, "+3", "0x3", "9" * 60, "1e3", "")):
        a.create(*by_labels(f"l{number}", 2, minimum))


@GROUPS.attack()
def min_edited_again_and_again_while_it_starts(a: Attacker) -> None:
    group = pod_group("g", 4)
    a.create(group)

    def edit(number: int) -> None:
        a.patch(group, {"spec": {"minMember": (1, 4, 2**31 - 1, 2)[number % 4]}})
        a.create(pod(f"p{number}", labels={GANG_LABEL: "g"}, **TINY))
        if number % 8 == 7:
            a.send("DELETE", f"{a.path('v1', 'pods')}?gracePeriodSeconds=0")

    a.keep_on(edit)


@GROUPS.attack()
def annotations_of_a_quarter_of_a_megabyte(a: Attacker) -> None:
    def large(number: int) -> dict:
        group = pod_group(f"g{number}", 2, APIS[number % 3])
        group["metadata"]["annotations"] = {"a": "x" * 260_000}
        return group

    a.create_many(large(number) for number in range(90))


@GROUPS.attack()
def two_thousand_objects_without_pods_that_wait_for_room(a: Attacker) -> None:
    """Each has an Event and a condition: their clients make no pod before there is room."""
    a.create_many(
        pod_group(f"g{number}", 2, VOLCANO, minResources={"nvidia.com/gpu": "1000"})
        for number in range(2_000)
    )


@GROUPS.attack("exist")
def one_name_in_every_dialect(a: Attacker) -> None:
    for api in APIS:
        a.create(pod_group("same", 3, api))
    a.create(SHAPES["native"].group("same", 3))
    labels = {NAME: "same", MIN: "3"}
    for shape in SHAPES.values():
        labels |= shape.of("same")["labels"]
    annotations = {"scheduling.k8s.io/group-name": "same"}
    for number in range(2):
        every = {"labels": labels, "annotations": annotations}
        a.create(pod(f"p{number}", schedulingGroup={"podGroupName": "same"}, **every, **TINY))


@GROUPS.attack("GangNameInvalid")
def names_of_gangs_that_steer_a_terminal(a: Attacker) -> None:
    odd = ["\x1b[2J", "\x1b]0;x\x07", "a\r\nb", "x" * 200_000, "../..", "a b", "{}", "%s", "\u202e"]
    for number, name in enumerate((*odd, "victim@x", "neighbour/g0", "-", "")):
        annotations = {"scheduling.k8s.io/group-name": name}
        a.create(pod(f"p{number}", annotations=annotations, scheduler="volcano", **TINY))


@GROUPS.attack()
def hold_times_that_are_none(a: Attacker) -> None:
    for number, held in enumerate(("86400", "1e9", "\x1b[2J", "-1", "9" * 5_000, "nan", "inf")):
        annotations = {"quorate.dev/hold-seconds": held}
        a.create(*by_labels(f"g{number}", 2, 2, annotations=annotations))


@GROUPS.attack()
def a_loop_that_holds_room_which_no_quota_counts(a: Attacker) -> None:
    """Start a gang, lose all but one of its members, go on with the next."""
    annotations = {"quorate.dev/hold-seconds": "86400"}

    def hold(number: int) -> None:
        gang = f"g{number}"
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": gang, "uid": gang}
        members = by_labels(gang, 20, 20, annotations=annotations, requests={"cpu": "15"})
        for one in members:
            one["metadata"]["ownerReferences"] = [owner | {"controller": True}]
            a.create(one)
        for one in members[1:]:
            a.delete(one)

    for number in range(12):
        hold(number)


@GROUPS.attack()
def tasks_without_end(a: Attacker) -> None:
    group = pod_group("tasks", 5_000, VOLCANO)
    group["spec"]["minTaskMember"] = {f"t{i}": 1 for i in range(5_000)}
    a.create(group)
    negative = pod_group("negative", 2, VOLCANO)
    negative["spec"]["minTaskMember"] = {"a": -1, "b": INT32_MAX, "\x1b[2J": 1}
    a.create(negative)
    for gang in ("tasks", "negative"):
        for number in range(40):
            notes = {
                "scheduling.k8s.io/group-name": gang,
                "volcano.sh/task-spec": f"t{number}\x1b[2J",
            }
            name = f"{gang}-{number}"
            a.create(pod(name, annotations=notes, scheduler="volcano", **TINY))


@GROUPS.attack()
def min_resources_of_every_name(a: Attacker) -> None:
    for number, api in enumerate(APIS):
        group = pod_group(f"g{number}", 1, api)
        group["spec"]["minResources"] = {f"r.io/{i}": "9223372036854775807" for i in range(5_000)}
        a.create(group)
    a.create(*gang_pods("g0", 2, **TINY))


@GROUPS.attack("members must start together and")
def a_leader_beside_its_workers_over_zones(a: Attacker) -> None:
    """The joint search of a gang of two hundred with rules between its members, for no place."""
    near = {"podAffinity": {REQUIRED: [_near({"role": "worker"})]}}
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"role": "worker"}},
    }
    a.create(pod_group("job", 200))
    leader = gang_pods("job", 1, labels={"role": "leader"}, affinity=near, requests={"cpu": "31"})
    workers = gang_pods(
        "job", 200, labels={"role": "worker"}, topologySpreadConstraints=[spread], **TINY
    )
    apart = {"podAntiAffinity": {REQUIRED: [_near({"role": "leader"})]}}
    for one in workers[1:]:
        one["spec"]["affinity"] = apart
    a.create_many([*leader, *workers[1:]])
    a.create(pod("large", requests={"cpu": "100000"}))


def _near(labels: dict) -> dict:
    return {"topologyKey": HOST, "labelSelector": {"matchLabels": labels}}


@GROUPS.attack()
def a_gang_of_two_hundred_classes_with_rules(a: Attacker) -> None:
    a.create(pod_group("g", 200))
    members = gang_pods("g", 200)
    for number, one in enumerate(members):
        one["metadata"]["labels"] |= {"n": f"{number}", "m": f"{number % 7}"}
        one["spec"]["containers"][0]["resources"] = {"requests": {"cpu": f"{100 + number}m"}}
        term = _near({"m": f"{(number + 1) % 7}"})
        kind = "podAffinity" if number % 3 == 0 else "podAntiAffinity"
        one["spec"]["affinity"] = {kind: {REQUIRED: [term]}}
    a.create_many(members)


@GROUPS.attack(STARTS)
def running_members_that_change_their_gang(a: Attacker) -> None:
    a.create(pod_group("first", 4), pod_group("second", 8))
    a.create(*gang_pods("first", 4, **TINY))

    def relabel(number: int) -> None:
        for one in a.pods():
            labels = {GANG_LABEL: ("first", "second", "third")[number % 3], MIN: "1", NAME: "x"}
            a.patch(one, {"metadata": {"labels": labels}})

    a.keep_on(relabel)


@GROUPS.attack("does not exist")
def members_of_the_neighbours_gang(a: Attacker) -> None:
    for number in range(30):
        for name in ("g0", "neighbour/g0", "neighbour.g0"):
            labels = {GANG_LABEL: name.replace("/", "_")}
            a.create(pod(f"p{number}-{len(name)}", labels=labels, **TINY))


@GROUPS.attack()
def a_whole_restart_that_keeps_its_failed_pods(a: Attacker) -> None:
    a.create(pod_group("g", 4))

    def restart(number: int) -> None:
        for one in gang_pods("g", 4, requests={"cpu": "20"}):
            one["metadata"]["name"] += f"-{number}"
            a.create(one)
            a.patch(one, {"status": {"phase": "Failed"}}, "/status")

    a.keep_on(restart)


@GROUPS.attack()
def statuses_of_groups_written_by_the_user(a: Attacker) -> None:
    """A writer that never agrees with ours."""
    groups = [pod_group(f"g{number}", 2, APIS[number % 3]) for number in range(12)]
    a.create(*groups)

    def write(number: int) -> None:
        group = groups[number % 12]
        status = {"phase": "Running", "running": -1, "occupiedBy": "x" * 1_000}
        plain = group["apiVersion"] == VOLCANO
        a.patch(group, {"status": status}, "" if plain else "/status")

    a.keep_on(write)


@GROUPS.attack()
def members_that_disagree(a: Attacker) -> None:
    a.create(pod_group("g", 3))
    for number in range(120):
        labels = {GANG_LABEL: "g", NAME: f"other-{number}", MIN: f"{number}"}
        scheduler = ("quorate", "coscheduler", "cw-coscheduler")[number % 3]
        a.create(pod(f"p{number}", labels=labels, scheduler=scheduler, **TINY))


@GROUPS.attack()
def objects_that_come_and_go_under_their_members(a: Attacker) -> None:
    a.create(*gang_pods("g", 6, **TINY))

    def come_and_go(number: int) -> None:
        group = pod_group("g", 6 + number % 2)
        a.create(group)
        a.delete(group)

    a.keep_on(come_and_go)
