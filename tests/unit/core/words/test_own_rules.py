"""A gang that its own members' rules keep out is told which rule, and how many fit by it."""

import pytest

from quorate.core.model import policy
from quorate.core.model.reasons import Reason
from tests.unit.core.terms import apart, near, pods, spread
from tests.unit.core.world import World

WEB = {"app": "web"}
ME = pods(**WEB)

SAID = {
    "apart by host": (
        "aab",
        4,
        apart(ME),
        "Anti-affinity among the members by host needs 4 nodes, and 3 have room",
    ),
    "apart by zone": (
        "aab",
        3,
        apart(ME, by="zone"),
        "Anti-affinity among the members by zone needs 3 domains, and 2 have room",
    ),
    "spread": (
        "aaab",
        6,
        spread(ME),
        "Spread over zone with maxSkew 1 lets 5 of 6 members in",
    ),
    "too few domains": (
        "aab",
        4,
        spread(ME, min_domains=3),
        "Spread over zone with maxSkew 1 and minDomains 3 (there are 2) lets 2 of 4 members in",
    ),
    "together": (
        "aabb",
        5,
        near(ME),
        "Affinity among the members by zone: the roomiest domain has room for 4 of 5",
    ),
}


def world(zones):
    w = World()
    for number, zone in enumerate(zones):
        w.node(f"n{number}", labels={"zone": zone, "host": f"n{number}"}, cpu=2)
    return w


@pytest.mark.parametrize("case", SAID)
def test_the_sentence_names_the_rule_and_the_counts(case):
    zones, members, rule, words = SAID[case]
    w = world(zones)
    gang = w.gang("job", members, labels=WEB, spec=rule, cpu=1)
    assert w.cycle() == {}
    said = w.why(gang)
    assert said.reason is Reason.NOT_ENOUGH_ROOM
    assert f"0/{len(zones)} nodes are available: " in said.message
    assert said.message.endswith(words)


def test_where_nodes_lack_room_anyway_no_rule_is_blamed():
    w = world("aab")
    gang = w.gang("job", 8, labels=WEB, spec=apart(ME), cpu=1)
    assert "Anti-affinity among" not in w.why(gang).message


def test_affinity_to_pods_that_run_counts_the_room_beside_them():
    w = world("aabb")
    w.running("first", "n0", labels=WEB, cpu=1)
    gang = w.gang("job", 4, labels=WEB, spec=near(ME), cpu=1)
    assert w.cycle() == {}
    assert w.why(gang).message.endswith(
        "by zone: the domains where such pods run have room for 3 of 4"
    )


def test_a_gang_too_large_to_be_searched_for_is_told_so_beside_what_is_in_the_way():
    w = world("aaaabb")
    size = policy.SEARCHED_PODS_MAX + 10
    gang = w.object("job", size + 1)
    for number in range(size):
        w.pod(f"web-{number}", gang, labels=WEB, spec=apart(ME), cpu=0)
    w.pod("db", gang, cpu=1)
    assert w.cycle() == {}
    message = w.why(gang).message
    assert f"needs {size} nodes, and 6 have room" in message
    assert message.endswith("(the search for a joint placement was cut short)")
