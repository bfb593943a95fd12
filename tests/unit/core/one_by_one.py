"""Single pods whose placement is asked for twice: with kept totals, and from nothing."""

import numpy as np

from quorate.core.plan.filters import AttributeMasks
from quorate.core.plan.room import Room
from quorate.core.plan.single import Singles


class OneByOne(Singles):
    """Asks once more, of a room and totals that are made anew from the cluster."""

    asked = 0

    def best(self, entry, pod_class, room, cluster):
        found = super().best(entry, pod_class, room, cluster)
        afresh = Room(cluster.snapshot(), AttributeMasks())
        if pod_class.wants is None and pod_class.ask is None:
            assert found == Singles().best(entry, pod_class, afresh, cluster)
            kept = self._totals[pod_class]
            assert np.array_equal(kept.feasible, afresh.slots(pod_class) > 0)
        OneByOne.asked += 1
        return found
