"""Draw priorities, start times, nominations and disruption budgets: what preemption decides by."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tools.parity.choice import Choice

    Make = Callable[[Choice, str], dict[str, Any]]

Object = dict[str, Any]

PRIORITIES = (-5, 0, 0, 7, 7, 100, 2_000_000_000)


def rank(choice: Choice, case: Object, nodes: list[str], make: Make) -> None:
    """Give the case's pods priorities and start times; sometimes nominate some that wait.

    ``make`` draws a pod of a name. No two pods started at once: kube-scheduler's order of such pods
    is that of its memory.
    """
    for second, one in enumerate(case["pods"]):
        one["spec"]["priority"] = choice.pick(PRIORITIES)
        one["status"] = {"startTime": f"2026-01-01T00:{choice.number(10, 50)}:{second:02d}Z"}
        if "deletionTimestamp" in one["metadata"] and choice.chance(50):
            one["status"]["conditions"] = [_disrupted(choice)]
    pending = case["pod"]
    pending["spec"]["priority"] = choice.pick((0, 100, 100, 200, 2_000_000_000))
    if choice.chance(10):
        pending["spec"]["preemptionPolicy"] = "Never"
    if choice.chance(25):
        pending["status"] = {"nominatedNodeName": choice.pick((*nodes, "gone"))}
    if choice.chance(40):
        for index in range(choice.number(1, 3)):
            waiting = make(choice, f"nominated{index}")
            waiting["spec"]["priority"] = choice.pick((0, 100, 2_000_000_000))
            case["nominated"].append({"pod": waiting, "node": choice.pick(nodes)})


def crowd(choice: Choice, case: Object, make: Make) -> None:
    """Make what is scarce room, not the right node: so that preemption can help."""
    roomy = {"memory": "64Gi", "pods": "110", "example.com/gpu": "9", "ephemeral-storage": "1Ti"}
    for one in case["nodes"]:
        one["spec"] = {}
        one["status"]["allocatable"] = {"cpu": choice.pick(("1", "2", "2"))} | roomy
        for index in range(choice.number(0, 4)):
            more = make(choice, f"{one['metadata']['name']}-{index}")
            more["spec"]["nodeName"] = one["metadata"]["name"]
            case["pods"].append(more)
    for one in (*case["pods"], case["pod"]):
        for field in ("nodeSelector", "overhead", "resources", "initContainers"):
            one["spec"].pop(field, None)
        by_node = one["spec"].get("affinity", {}).get("nodeAffinity", {})
        by_node.pop("requiredDuringSchedulingIgnoredDuringExecution", None)
        for container in one["spec"]["containers"]:
            requests: Object = {"cpu": choice.pick(("250m", "500m", "1"))}
            container["resources"] = {"requests": requests}
    if choice.chance(60):
        for field in ("podAffinity", "podAntiAffinity"):
            case["pod"]["spec"].get("affinity", {}).pop(field, None)


def _disrupted(choice: Choice) -> Object:
    return {
        "type": "DisruptionTarget",
        "status": choice.pick(("True", "True", "False")),
        "reason": choice.pick(("PreemptionByScheduler", "PreemptionByScheduler", "Eviction")),
    }


def budgets(
    choice: Choice, namespaces: tuple[str, ...], selector: Callable[[Choice], Object]
) -> list[Object]:
    """Return disruption budgets; ``selector`` draws a label selector."""
    return [
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": f"b{index}", "namespace": choice.pick(namespaces)},
            "spec": {"selector": selector(choice)} if not choice.chance(8) else {},
            "status": {
                "disruptionsAllowed": choice.pick((0, 0, 1, 2)),
                "disruptedPods": {"p1": "2026-01-01T00:00:00Z"} if choice.chance(15) else {},
            },
        }
        for index in range(choice.number(0, 3))
    ]
