"""Started gangs that lose members, and the room that is held for these."""

from quorate.core.model import Owner
from tests.unit.core.world import World, key

UNKNOWN = Owner("example.com/v1", "Thing", "a")


def full_world(pods=4, minimum=None, policy=None, **more) -> World:
    """A started gang ``a`` fills a cluster of one-pod nodes; an older gang ``b`` of one waits."""
    w = World(**(policy or {}))
    for index in range(pods):
        w.node(f"n{index}", cpu=1)
    more.setdefault("owner", UNKNOWN)
    w.gang("a", minimum or pods, pods, gang_spec={"created_s": 100.0}, created_s=100.0, **more)
    assert len(w.cycle()) == pods
    w.gang("b", 1, gang_spec={"created_s": 1.0}, created_s=1.0)
    assert w.cycle() == {}
    return w


def lose(w: World, name: str) -> str:
    """The watch says that a member goes, and that it is gone; return its node."""
    node = w.where(name)
    w.edit(name, node=node, phase="Running")
    w.edit(name, terminating=True)
    w.decide()
    w.delete(name)
    return node


def held(w: World, gang="a") -> list[str]:
    return sorted(reservation.node for reservation in w.cluster.reservations.of(key(gang)))


def replace(w: World, name="a-new", **more) -> None:
    w.pod(name, key("a"), created_s=200.0, **more)
