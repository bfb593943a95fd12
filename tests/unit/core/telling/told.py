"""A world of which is told what there is to tell: by virtual time, with no shell."""

from quorate.core.telling.telling import Now, Telling
from tests.unit.core.world import World

WALL_S = 1.7e9


class Told:
    """A world whose gangs are looked at each tenth of a second, as the reporter does."""

    def __init__(self):
        self.world = World()
        self.telling = Telling()
        self.now_s = 0.0
        self.said = []

    def touch(self, *names):
        self.world.decide()
        gangs = self.world.cluster.gangs
        for one in gangs:
            if not names or one.bare_name in names:
                self.telling.quiet_gangs.touch(one, self.now_s)

    def turn(self):
        gangs = self.world.cluster.gangs
        explainer = self.world.scheduler.explainer(self.now_s)
        self.telling.quiet_gangs.renew(gangs, self.world.cluster.nodes.version, self.now_s)
        for one in self.telling.quiet_gangs.due(gangs, self.now_s, 500):
            self.telling.quiet_gangs.note_explained(one, self.now_s)
            if one in gangs:
                now = Now(self.now_s, WALL_S + self.now_s)
                self.tell(gangs[one], explainer, now)
        self.said += [(self.now_s, one) for one in self.telling.take(self.now_s)]

    def tell(self, gang, explainer, now):
        lost_its_pods = not gang.members and gang.key in self.telling
        awaited = gang.spec and not gang.spec.unanswered_by and explainer.awaited_under(gang)
        if gang.ours or lost_its_pods or awaited:
            self.telling.tell(gang, explainer, explainer.explain(gang.key), now)
        elif not self.telling.tell_of_another(gang, self.world.cluster, explainer, now):
            self.telling.settle(gang.key)
            self.telling.tell_first(gang, explainer)

    def run(self, seconds):
        """Return what is said in that time."""
        before = len(self.said)
        for _ in range(round(seconds * 10)):
            self.now_s += 0.1
            self.turn()
        return [one for _, one in self.said[before:]]


def of(kind, said):
    return [one for one in said if isinstance(one, kind)]
