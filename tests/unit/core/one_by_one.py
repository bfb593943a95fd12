"""Single pods whose placement is asked for twice: with kept totals, and from nothing."""

import numpy as np

from quorate.core.place.one_pod.single import Singles
from quorate.core.room.rule_cache import RuleCache
from quorate.core.rules.filtering import pod_slots


class OneByOne(Singles):
    """Asks once more, with no totals: of the same room, and of masks that are made anew."""

    asked = 0

    def best(self, entry, pod_class, room, promises):
        found = super().best(entry, pod_class, room, promises)
        if pod_class.volume_needs is None and pod_class.device_needs is None:
            afresh = room.copy()
            afresh.rule_cache = RuleCache()
            total = Singles().best(entry, pod_class, afresh, promises)
            assert found == total
            kept = self._of_cycle.get(pod_class) or self._totals[pod_class]
            assert np.array_equal(kept.feasible, pod_slots(pod_class, afresh) > 0)
        OneByOne.asked += 1
        return found
