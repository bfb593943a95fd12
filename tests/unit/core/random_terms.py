"""Random nodes, and random affinity, anti-affinity and spread as fields of a PodSpec."""

from quorate.core.model import LabelSelector, Node
from tests.unit.core.terms import apart, labels, near, pods, pulled, spread
from tests.unit.core.world import TEAM

NAMESPACES = (TEAM, "dev")


def random_selector(chance):
    wanted = chance.choice([{"app": "web"}, {"app": "db"}, {"app": ("db", "web")}, {"rev": None}])
    of = chance.choice([None, None, LabelSelector(), labels(env="x"), labels(env=None)])
    namespaces = chance.choice([(TEAM,), (TEAM,), ("dev",), NAMESPACES, () if of else (TEAM,)])
    nobody = chance.random() < 0.05
    return pods(namespaces=namespaces, of=of, nobody=nobody, **({} if nobody else wanted))


def random_terms(chance):
    """Return fields of a PodSpec that look at other pods, most often none."""
    by, one = chance.choice(["zone", "host"]), random_selector(chance)
    two = random_selector(chance)
    own = own_selector(chance)
    return chance.choice(
        [
            *[{}] * 8,
            apart(one, by=by),
            apart(own, by=by),
            near(one, by=by),
            near(own, by=by),
            near(one, two, by=by),
            near(own, by="zone") | apart(own, by="host"),
            pulled(one, chance.choice([5, -5]), by=by),
            spread(own, by=by, skew=chance.choice([1, 2]), min_domains=chance.choice([1, 1, 3])),
            spread(one, by=by, hard=chance.random() < 0.7, honor_taints=chance.random() < 0.3),
        ]
    )


def own_selector(chance):
    """A selector that often selects the pod itself."""
    return pods(app=chance.choice(["web", "db"]))


def random_node(chance, number):
    labels = {"host": f"h{number}", "zone": chance.choice("abc"), "rack": chance.choice("xyzuv")}
    kept = sorted(name for name in labels if chance.random() < 0.9)
    return Node(
        f"n{number}",
        (("cpu", chance.randint(0, 6)), ("pods", chance.randint(1, 6))),
        tuple((name, labels[name]) for name in kept),
        unschedulable=chance.random() < 0.1,
    )
