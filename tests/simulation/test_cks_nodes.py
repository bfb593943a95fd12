"""Who keeps nodes keeps its promises on virtual time, under the faults of the simulation.

Nodes change hands, states and taints at random, pods come and end, requests are lost, watches
break, and the process that keeps the nodes dies and starts anew. What it writes is checked when it
is written; at the end, without faults, all nodes are as their labels say.
"""

import asyncio
import itertools

import msgspec
import pytest

from quorate.cks import reservations
from quorate.cks.hold import QUIET_S
from quorate.cks.nodes import Nodes
from quorate.cks.reservations import INSTANCE_TYPE, TYPE, Node, hashed, judge
from quorate.cks.rules import Rules
from quorate.cks.states import TRIAGE
from quorate.core.model.life_cycle import CONTROL_PLANE, PRODUCTION
from quorate.shell.process.clock import SteadyClock
from simulate.cluster.network import Connection, Link
from simulate.cluster.world import World
from simulate.fleet import ReplicaClock
from simulate.logs import LOG
from simulate.virtual_loop import VirtualLoop
from tests.property.seeds import first, kept, times

RULES = Rules(organizations=("acme", "zeta"))
STATE, RESERVED, DESIRED = RULES.state_label, RULES.reserved_label, RULES.desired_label
NAMESPACES = {"of-acme": "acme", "of-zeta": "zeta", "system": CONTROL_PLANE, "nobodys": None}
NODES = "n0", "n1", "n2"
FAULTS_S, CALM_S = 60.0, 3 * QUIET_S
BIND_LAG_S = 1.5  # schedulers bind by what they knew so long ago, at most
SEEDS = times(200)


class Fleet:
    """Nodes, pods, and one who keeps the nodes after the other; the checks of what is written."""

    def __init__(self, seed: int, loop: VirtualLoop) -> None:
        self.world = world = World(seed, loop)
        self.chance = world.chance("fleet")
        self.clock = SteadyClock(ReplicaClock(world))
        self.given = self.writes = 0
        self.broken: list[str] = []
        self._numbers = itertools.count()
        self._term: asyncio.Task[None] | None = None
        for name, organization in NAMESPACES.items():
            labels = {RULES.organization_label: organization} if organization else {}
            world.create("v1", "namespaces", {"metadata": {"name": name, "labels": labels}})
        for name in NODES:
            self.add_node(name)
        world.store.watch("nodes", self._on_node)

    # The platform, users and their schedulers

    def add_node(self, name: str, **labels: str) -> None:
        given = labels or {STATE: PRODUCTION, DESIRED: "acme"}
        status = {"capacity": {"cpu": "8"}, "allocatable": {"cpu": "8"}}
        self.world.create(
            "v1", "nodes", {"metadata": {"name": name, "labels": given}, "status": status}
        )

    def come_or_go(self, name: str) -> None:
        if self.world.store.remove("nodes", "", name) is None:
            self.add_node(name)

    def node(self, name: str) -> Node:
        return msgspec.json.decode(self.world.store.get("nodes", "", name).raw, type=Node)

    def label_of(self, name: str, key: str) -> str | None:
        """Return a label of a node, None where there is no such label or node."""
        found = self.world.store.get("nodes", "", name)
        return found and found.labels.get(key)

    def told(self, reason: str) -> list[str]:
        """Return what Events with this reason say."""
        events = [msgspec.json.decode(one.raw) for one in self.world.store.entries("events")]
        return [one["message"] for one in events if one["reason"] == reason]

    def label(self, name: str, key: str, value: str | None) -> None:
        """Change a label of a node, if it is there."""

        def change(node: dict) -> None:
            labels = node["metadata"].setdefault("labels", {})
            labels.pop(key, None)
            if value is not None:
                labels[key] = value

        self.world.api.amend("nodes", "", name, change)

    async def runs(self, namespace: str, node: str, lag_s: float = 0.0) -> str:
        """Bind a pod to a node that its organization has now, ``lag_s`` later."""
        if self.label_of(node, RESERVED) != NAMESPACES[namespace]:
            return ""
        await asyncio.sleep(lag_s)
        name = f"p{next(self._numbers)}"
        spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}
        metadata = {"name": name, "namespace": namespace}
        self.world.create("v1", "pods", {"metadata": metadata, "spec": spec})
        return name

    def ends(self, namespace: str, name: str) -> None:
        done = {"phase": "Succeeded"}
        self.world.api.amend("pods", namespace, name, lambda pod: pod["status"].update(done))

    def owners_on(self, node: str) -> set[str | None]:
        """Return whose pods are on a node that have not ended."""
        return {
            NAMESPACES[pod["metadata"]["namespace"]]
            for pod in self.pods()
            if pod["spec"]["nodeName"] == node
            and pod["status"].get("phase") != "Succeeded"
            and not {"ownerReferences", "annotations"} & pod["metadata"].keys()
        }

    def pods(self) -> list[dict]:
        return [msgspec.json.decode(one.raw) for one in self.world.store.entries("pods")]

    # Who keeps the nodes

    def keeper(self, link: Link, rules: Rules = RULES) -> Nodes:
        return Nodes(
            Connection(self.world.network, link),
            rules,
            may_write=lambda: link.is_alive,
            clock=self.clock,
            instance=link.name,
        )

    def start(self) -> None:
        self.link = Link(f"keeper-{next(self._numbers)}", self._killed)
        self.nodes = self.keeper(self.link)
        self._term = asyncio.create_task(self.nodes.run())

    async def die(self) -> None:
        self.link.is_alive = False
        self._term.cancel()
        await asyncio.gather(self._term, return_exceptions=True)

    def _killed(self) -> None:
        """Die at a request, and start anew."""
        if self.link.is_alive:
            self.link.is_alive = False
            self._reborn = asyncio.create_task(self.starts_anew())

    async def starts_anew(self) -> None:
        await self.die()
        self.start()

    def _on_node(self, event) -> None:
        """Check what was just written, if it was written by who keeps the nodes."""
        if event.type == "DELETED" or not self.world.history.writer.startswith("keeper"):
            return
        self.writes += 1
        node = msgspec.json.decode(event.entry.raw, type=Node)
        reserved, owners = node.labels[RESERVED], set()
        values = [one["value"] for one in node.spec.taints or () if one["key"] == RESERVED]
        is_right = values == [hashed(reserved)]
        if reserved in RULES.organizations:
            self.given += 1
            owners = self.owners_on(node.metadata.name)
            is_right &= (node.labels[STATE], node.labels[DESIRED]) == (PRODUCTION, reserved)
            is_right &= owners <= {reserved, CONTROL_PLANE}
        if not is_right:
            at_s = self.world.loop.now_s
            self.broken.append(f"{at_s:.3f} s, {node.metadata.name}: {node.labels} {owners}")


async def meddle(fleet: Fleet) -> None:
    """Let things happen, some each second."""
    chance = fleet.chance
    changes = [
        *((STATE, state) for state in (PRODUCTION, PRODUCTION, TRIAGE, "test", "broken", None)),
        *((DESIRED, owner) for owner in ("acme", "zeta", CONTROL_PLANE, "nobody", None)),
        (RESERVED, None),
    ]
    running: list[tuple[str, str]] = []

    async def bind() -> None:
        namespace = chance.choice(list(NAMESPACES))
        lag_s = chance.uniform(0.0, BIND_LAG_S)
        name = await fleet.runs(namespace, chance.choice(NODES), lag_s)
        if name:
            running.append((namespace, name))

    while True:
        await asyncio.sleep(chance.expovariate(1.0))
        what = chance.random()
        if what < 0.5:
            fleet.label(chance.choice(NODES), *chance.choice(changes))
        elif what < 0.6:
            node = chance.choice(NODES)
            fleet.world.api.amend("nodes", "", node, lambda one: one["spec"].pop("taints", None))
        elif what < 0.65:
            fleet.come_or_go(chance.choice(NODES))
        elif what < 0.85:
            fleet.world.network.loop.create_task(bind())
        elif running:
            fleet.ends(*running.pop(chance.randrange(len(running))))
        if chance.random() < 0.02:
            await fleet.starts_anew()


async def play(seed: int, loop: VirtualLoop) -> int:
    """Play one seed; return how often a node was given to an organization."""
    fleet = Fleet(seed, loop)
    fleet.start()
    meddling = asyncio.create_task(meddle(fleet))
    done, _ = await asyncio.wait([meddling], timeout=FAULTS_S)
    for one in done:
        one.result()
    meddling.cancel()
    await asyncio.sleep(BIND_LAG_S + 0.1)
    fleet.world.faults.stop()
    fleet.world.network.cut_streams()
    for pod in fleet.pods():
        fleet.ends(pod["metadata"]["namespace"], pod["metadata"]["name"])
    await asyncio.sleep(CALM_S)
    left = {name for name in NODES if fleet.world.store.get("nodes", "", name) is not None}
    assert fleet.nodes.reasons.keys() <= left, "nothing is known of nodes that are gone"
    for name in left:
        node = fleet.node(name)
        verdict = judge(node, RULES, is_vacant=True)
        if verdict is not None:
            assert reservations.amended(node, verdict, RULES) is None, (name, node)
            assert fleet.nodes.reasons[name] == (verdict.reason or "")
    quiet_since = fleet.world.writes
    await asyncio.sleep(CALM_S)
    assert fleet.world.writes == quiet_since, "nothing is written when nothing changes"
    await fleet.die()
    assert not fleet.broken
    return fleet.given


def run(coroutine_of):
    """Run on a loop of its own, where nothing may fail unseen."""
    loop = VirtualLoop()
    failed: list[str] = []
    loop.set_exception_handler(lambda _, context: failed.append(str(context)))
    LOG.begin()
    try:
        return loop.run_until_complete(coroutine_of(loop))
    finally:
        loop.close()
        assert not [*failed, *LOG.errors]


@pytest.fixture
def quiet():
    """Run a test's coroutine with one fleet, without faults, whose nodes are acme's."""

    def run_with(test):
        async def whole(loop):
            fleet = Fleet(1, loop)
            fleet.world.faults.stop()
            fleet.start()
            await asyncio.sleep(5.0)
            assert {fleet.node(name).labels[RESERVED] for name in NODES} == {"acme"}
            await test(fleet)
            await fleet.die()
            assert not fleet.broken

        run(whole)

    return run_with


def test_a_held_node_is_judged_again_when_it_has_been_quiet(quiet):
    async def held_and_let_go(fleet):
        owners = itertools.cycle(("zeta", "acme"))
        while fleet.node("n0").reason.partition(":")[0] != "Unsteady":
            fleet.label("n0", DESIRED, next(owners))
            await asyncio.sleep(3.0)
        assert fleet.node("n0").labels[RESERVED] == TRIAGE
        for _ in range(20):
            fleet.label("n0", DESIRED, next(owners))
            await asyncio.sleep(QUIET_S / 2)
            assert fleet.node("n0").labels[RESERVED] == TRIAGE, "it is not quiet"
        fleet.label("n0", DESIRED, "zeta")
        await asyncio.sleep(QUIET_S + 5.0)
        assert (fleet.node("n0").labels[RESERVED], fleet.node("n0").reason) == ("zeta", "")

    quiet(held_and_let_go)


def test_only_pods_that_stay_keep_a_node_from_its_next_owner(quiet):
    async def kept_and_given(fleet):
        pods = {}
        for name, about in {
            "daemon": {"ownerReferences": [{"kind": "DaemonSet", "controller": True}]},
            "mirror": {"annotations": {"kubernetes.io/config.mirror": "x"}},
            "ended": {},
            "job": {},
        }.items():
            pods[name] = await fleet.runs("of-acme", "n0")
            fleet.world.api.amend(
                "pods",
                "of-acme",
                pods[name],
                lambda pod, about=about: pod["metadata"].update(about),
            )
        fleet.ends("of-acme", pods["ended"])
        fleet.label("n0", DESIRED, "zeta")
        await asyncio.sleep(100.0)
        assert fleet.node("n0").labels[RESERVED] == CONTROL_PLANE
        assert fleet.node("n0").reason.startswith("Pending: it is for zeta")
        [note] = fleet.told("Pending")
        assert note.endswith(f": of-acme/{pods['job']}")
        fleet.ends("of-acme", pods["job"])
        await asyncio.sleep(6.0)
        assert fleet.node("n0").labels[RESERVED] == "zeta"

    quiet(kept_and_given)


def test_two_controllers_with_other_rules_wear_each_other_out(quiet):
    """One knows both organizations, the other one only; nodes are zeta's to the first alone."""

    async def both(fleet):
        link = Link("keeper-of-other-rules", lambda: None)
        other = asyncio.create_task(fleet.keeper(link, Rules(organizations=("acme",))).run())
        fleet.label("n0", DESIRED, "zeta")
        await asyncio.sleep(3600.0)
        first_hour = fleet.given, fleet.writes, len(fleet.told("Unsteady"))
        await asyncio.sleep(3600.0)
        second_hour = fleet.given - first_hour[0], fleet.writes - first_hour[1]
        assert first_hour[0] < 40
        assert first_hour[1] < 200
        assert second_hour[0] < 10
        assert second_hour[1] < 40
        assert len(fleet.told("Unsteady")) < 40
        link.is_alive = False
        other.cancel()
        await asyncio.gather(other, return_exceptions=True)

    quiet(both)


def test_a_fight_over_what_matters_little_is_lost_with_patience(quiet):
    async def fought(fleet):
        fleet.label("n0", INSTANCE_TYPE, "gd-8x")
        for _ in range(300):
            fleet.label("n0", TYPE, "H100")
            await asyncio.sleep(2.0)
            assert fleet.node("n0").labels[RESERVED] == "acme", "it stays in production"
        assert fleet.writes < 80
        assert len(fleet.told("Corrected")) < 8
        await asyncio.sleep(20.0)
        assert fleet.node("n0").labels[TYPE] == "gd-8x"

    quiet(fought)


def test_a_held_node_is_its_organizations_again(quiet):
    async def somebody_removes_the_wish(fleet):
        for _ in range(30):
            fleet.label("n0", DESIRED, None)
            await asyncio.sleep(2.0)
        await asyncio.sleep(2 * QUIET_S)
        assert fleet.node("n0").labels[RESERVED] == "acme"

    quiet(somebody_removes_the_wish)


def test_a_node_that_cannot_be_read_costs_the_others_nothing(quiet):
    async def one_is_broken(fleet):
        def breaks(node: dict) -> None:
            node["spec"]["taints"] = "none"

        fleet.world.api.amend("nodes", "", "n0", breaks)
        fleet.label("n1", STATE, TRIAGE)
        await asyncio.sleep(1.0)
        assert fleet.node("n1").labels[RESERVED] == TRIAGE

    quiet(one_is_broken)


def test_a_node_that_comes_again_is_another_one(quiet):
    async def gone_and_back(fleet):
        fleet.world.store.remove("nodes", "", "n0")
        await asyncio.sleep(1.0)
        assert "n0" not in fleet.nodes.reasons
        fleet.add_node("n0", **{STATE: PRODUCTION, DESIRED: "zeta"})
        await asyncio.sleep(5.0)
        assert fleet.node("n0").labels[RESERVED] == "zeta"

    quiet(gone_and_back)


def test_no_seed_breaks_a_promise():
    seeds = range(first("cks_nodes"), first("cks_nodes") + SEEDS)
    given = [run(lambda loop, seed=seed: play(seed, loop)) for seed in seeds]
    assert sum(given) > SEEDS, "nodes change hands"


@pytest.mark.parametrize("seed", kept("cks_nodes"))
def test_no_seed_that_once_failed_breaks_a_promise(seed):
    run(lambda loop: play(seed, loop))
