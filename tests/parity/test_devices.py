"""Claims of devices: filters, scores and sentences are kube-scheduler's, also of later pods.

A case in which an expression is broken is compared by node: kube-scheduler gives the pod up,
quorate leaves those nodes out (a named difference). So is a case in which quorate cut a search
short, without the nodes where it did (another named difference).
"""

import copy
from collections import Counter

import numpy as np
import pytest

from quorate.core.cluster.cluster import Cluster
from quorate.core.model.profile import KUBE_SCHEDULER
from quorate.core.room.room import Room
from quorate.core.room.rule_cache import RuleCache
from quorate.core.rules.filtering import verdicts
from quorate.core.turn.cycle import members_of
from tests.property.seeds import first, kept, times
from tools.oracle import Oracle, OracleError
from tools.parity.compare import (
    cut_short,
    differences,
    differences_by_node,
    ends_in_error,
    is_cut_short,
)
from tools.parity.devices import draw_device_case
from tools.parity.ours import SCHEDULER, answer, changes_of
from tools.parity.seeded import Seeded

CASES = times(2_500)
FIRST_SEED = first("devices")
BLOCK = 500
CUT_SHORT_MAX = BLOCK // 100
"""Of 5,000 cases about one is cut short, so a block has more of them only if a search is worse."""
RULE = "DynamicResources"


def seeds_of(block: int) -> list[int]:
    """Return the seeds of one block of this run's cases; the first block has those kept, too."""
    begin = FIRST_SEED + block
    return [*(kept("devices") if not block else ()), *range(begin, begin + BLOCK)]


@pytest.mark.parametrize("block", range(0, CASES, BLOCK))
def test_random_claims_agree(oracle: Oracle, block: int) -> None:
    said, met = [], Counter()
    for seed in seeds_of(block):
        case = draw_device_case(Seeded(seed))
        try:
            theirs = oracle.ask(case)
        except OracleError:  # the case names itself, and API validation would have refused it
            met["refused"] += 1
            continue
        ours = answer(case)
        met["features"] += any("NodeDeclaredFeatures" in said for said in ours.filters.values())
        if ends_in_error(theirs):
            met["broken"] += 1
            found = differences_by_node(ours, theirs)
        elif cut_short(ours):
            met["cut short"] += 1
            found = differences_by_node(ours, theirs)
        else:
            met["feasible" if ours.feasible else "infeasible"] += 1
            found = differences(ours, theirs)
        said += [f"seed {seed}: {one}" for one in found]
    assert not said, "\n".join(said[:20])
    assert met["refused"] < BLOCK // 10
    assert met["cut short"] <= CUT_SHORT_MAX
    of_each = (met[kind] for kind in ("feasible", "infeasible", "broken", "features"))
    assert min(of_each) > BLOCK // 20


@pytest.mark.parametrize("block", range(0, CASES, BLOCK))
def test_what_earlier_pods_took_is_missing_to_later_ones(oracle: Oracle, block: int) -> None:
    """kube-scheduler places three pods with alike claims; ours take the same devices there."""
    said, placed = [], 0
    for seed in seeds_of(block):
        case = draw_device_case(Seeded(seed))
        pods = three_alike(case)
        if pods is None:
            continue
        try:
            theirs = oracle.ask({**case, "sequence": [{"pod": one} for one in pods]})
        except OracleError:
            continue
        wrong, count = placed_alike(case, pods, theirs["steps"])
        said += [f"seed {seed}, {one}" for one in wrong]
        placed += count
    assert not said, "\n".join(said[:20])
    assert placed > BLOCK // 20


def placed_alike(case, pods, steps) -> tuple[list[str], int]:
    """Place pods where kube-scheduler did; return the first difference, and how many were placed.

    It ends where kube-scheduler gave a pod up, or chose a node where we cut the search short.
    """
    cluster = Cluster([SCHEDULER], {SCHEDULER: KUBE_SCHEDULER})
    for one in pods:
        for change in changes_of({**case, "pod": one}):
            cluster.apply(change)
    room, placed = Room(cluster.snapshot(), RuleCache()), 0
    for one, step in zip(pods, steps, strict=True):
        name = one["metadata"]["name"]
        pod_class = class_of(cluster, name)
        if ends_in_error(step):
            break
        mine = refusals(dict(verdicts(pod_class, room)).get(RULE), cluster)
        other = {n: v[RULE]["reasons"][0] for n, v in step["filter"].items() if RULE in (v or {})}
        unsearched = {node for node, refusal in mine.items() if is_cut_short(refusal)}
        for node in unsearched:
            del mine[node]
            other.pop(node, None)
        if mine != other:
            return [f"{name}: {mine}, theirs {other}"], placed
        node = step.get("assumed")
        if node in unsearched:
            break
        if node and not step.get("assumeFailed"):
            pods_at = np.zeros(len(room.free), np.int64)
            pods_at[cluster.nodes.rows[node]] = 1
            room.take(pod_class, pods_at)
            placed += 1
    return [], placed


def three_alike(case) -> list[dict] | None:
    """Take the case's pending pod out, and return three like it, each with claims of its own."""
    pending = case.pop("pod")
    if any("resourceClaimName" in entry for entry in pending["spec"]["resourceClaims"]):
        return None
    claims = {o["metadata"]["name"]: o for o in case["objects"] if o["kind"] == "ResourceClaim"}
    namespace = pending["metadata"].get("namespace", "default")
    pods = []
    for index in range(3):
        pod = copy.deepcopy(pending)
        name = pod["metadata"]["name"] = f"pending{index}"
        for status in pod["status"]["resourceClaimStatuses"]:
            claim = copy.deepcopy(claims.get(status["resourceClaimName"]))
            status["resourceClaimName"] += f"-{index}"
            if claim is None:
                continue
            claim.pop("status", None)
            claim["metadata"]["name"] = status["resourceClaimName"]
            for owner in claim["metadata"]["ownerReferences"]:
                owner |= {"name": name, "uid": f"{namespace}/{name}"}
            case["objects"].append(claim)
        pods.append(pod)
    return pods


def class_of(cluster: Cluster, name: str):
    entry = next(one for one in cluster.pods.values() if one.pod.name == name)
    members = members_of(entry.gang, cluster)
    return next(pod_class for pod_class, entries in members.items() if entry in entries)


def refusals(verdict, cluster: Cluster) -> dict[str, str]:
    if verdict is None:
        return {}
    return {
        name: verdict.refusals[verdict.codes[row] - 1].message
        for name, row in cluster.nodes.rows.items()
        if verdict.codes[row]
    }
