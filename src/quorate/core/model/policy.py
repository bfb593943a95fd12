"""Every bound of the core: what an operator may choose (``Policy``), and what nobody configures.

A bound says how much is done, kept, named or waited for at most. How much of each kind of work is
one step of a turn's budget is measured, not chosen: that is in ``steps.costs``.
"""

from __future__ import annotations

import msgspec

from quorate.core.model.life_cycle import LifeCycleLabels
from quorate.core.model.profile import Packing, Profile

DEFAULT_SCHEDULER_NAMES = ("quorate", "cw-coscheduler", "coscheduler")

# Bounds that nobody configures. Read them as ``policy.NAME``, so that a test may set them.

INCIDENT_FRAMES_MAX = 4
"""So many calls of a defect's traceback are logged, the innermost ones."""
INCIDENTS_KEPT_MAX = 100
"""So many defects of ours are kept to be told of; of more, only the number is known."""
ASIDE_S = 1.0
ASIDE_S_MAX = 600.0
"""What met a defect of ours is tried again after these seconds: at first, and at most."""
TURN_STEPS_MAX = 6_000
"""Steps (``core.model.steps``) of one decision: about 100 ms. What is left goes on in the next
one."""
TRY_STEPS_MAX = 600
"""Of these a gang may take so many before others had their try; it goes on after them."""
TOUCHED_PER_TURN_MAX = 4_000
"""So many gangs, and pods of no gang, have their news taken in by one turn: about 50 ms. After a
start there are as many as pods; nothing is planned before the last of them."""
OWNER_ASKED_AGAIN_S = 60.0
"""The owner of pods of no gang that are held because it names one is read again after these
seconds: each of its pods is tried then."""
OWNER_READ_AGAIN_S = 10.0
OWNER_READS_MAX = 3
"""Likewise the owner that could not be read. So many reads in a row may fail before its pods no
longer wait for the answer."""
TASKS_PER_GANG_MAX = 256
"""Tasks with a minimum of their own in one gang (Volcano's ``minTaskMember``)."""

# Bounds of what one pod may bring. Its decoding names the field that is above one of them; a pod
# of ours is held back then, and of others the terms beyond a bound are left out.

RESOURCES_PER_POD_MAX = 32
"""Names of resources, over all containers; also those of a gang's ``minResources``."""
CONTAINERS_PER_POD_MAX = 256
"""Containers and init containers."""
POD_TERMS_PER_POD_MAX = 64
"""Terms of pod affinity and anti-affinity, required and preferred."""
SPREADS_PER_POD_MAX = 32
"""Topology spread constraints."""
EXPRESSIONS_PER_POD_MAX = 256
"""Terms and expressions of node selectors; likewise expressions of the label selectors in terms of
pod affinity, and in spread constraints."""
VALUES_PER_POD_MAX = 4096
"""Values in all expressions of each of these three, namespaces included. People list host names."""
TOLERATIONS_PER_POD_MAX = 256
"""Entries of ``spec.tolerations``."""
PORTS_PER_POD_MAX = 256
"""Host ports."""
VOLUMES_PER_POD_MAX = 256
"""Claims of volumes. The largest limit of a driver on one node is about half of it."""

PREEMPTABLE_SUMS_MAX = 16
"""So many priorities have what pods of lower priority take kept as an array over all nodes
(``cluster.priorities.preemptable``): at 50,000 nodes and 8 resources 3 MB each. The longest unasked
goes."""
PREEMPTION_CANDIDATES_FEW = 100
"""A search for victims looks at this number of nodes, or at a tenth of those that may help, and at
more while each victim's disruption budget forbids it: as kube-scheduler's."""
PREEMPTABLE_ROWS_FEW = 64
"""What so few nodes hold is added up when it is asked for; nothing is kept for it."""

ALIKE_IDLE_MAX = 32
"""Selectors of replicas that stay counted while no replica waits (``cluster.labels.alike``): the
next one comes soon, and to count anew is to look at all label sets of the namespace."""


def back_off_s(failures: int) -> float:
    """Return how long to leave alone what has met a defect of ours so many times in a row."""
    return min(ASIDE_S * 2.0 ** min(failures - 1, 30), ASIDE_S_MAX)


COLUMNS_UNUSED_MAX = 8
"""So many columns of resources may be free beyond as many as are in use; then they close up."""
LABEL_COLUMNS_KEPT_MAX = 256
"""So many labels of nodes are kept encoded; of more the longest unused is encoded when asked for.
At 5,000 nodes that is 5 MB, and encoding one takes 1 ms."""
VALUES_UNUSED_MAX = 64
"""So many values of a label, or sets of taints, are kept that no node has any more, beyond as many
as are in use; then the label is encoded anew."""
CLASS_VARIANTS_KEPT_MAX = 16_384
"""So many pod classes are kept that differ from another in matched labels, volumes or devices."""
MASKS_KEPT_BYTES_MAX = 128 * 2**20
"""So much of what rules and scores say of nodes is kept from decision to decision: at 5,000 nodes
that is 22,000 different selectors, at 50,000 2,600."""
TOTALS_CELLS_MAX = 2_000_000
"""So many totals of pods that are placed one by one, of all nodes and classes together, are
remembered (``place.one_pod.single``); at 5,000 nodes that is 400 classes."""
MASK_ENTRY_BYTES = 1_000
"""So many bytes each of them counts for besides its arrays."""
LOG_KEPT_MAX = 20_000
"""So many entries of a log (of rows, of selectors) are kept; who asks later begins anew."""

SEARCHED_PODS_MAX = 400
"""Of gangs that need more pods only greedy orders are tried, and verified. Of others any order."""
GREEDY_ORDERS_MAX = 24
"""Orders of its classes in which a gang is tried, each with both ways of packing."""
GREEDY_FILLS_MAX = 96
"""Of a gang of so many classes one order is tried, of one with half as many two, and so on."""
SEARCH_CHOSEN_MAX = 64
"""Where a gang has more pods than it needs: ways to choose those that it needs."""
RESTART_FAILURES_MAX = 20
"""Dead ends after which the joint search begins anew with another heuristic; once all were tried,
twice as many."""
ORDER_FAILURES_MAX = 150
"""Dead ends after which the pods of a placement are taken to have no order."""
SEARCH_SIZES_MAX = 16
"""Sizes of pods, by resource, for which the joint search counts how many as large fit."""

SEARCHES_OPEN_MAX = 8
"""So many gangs have a joint search that goes on in later turns; each keeps what it needs of all
nodes. Further ones wait until one has ended."""

EXPLAIN_STEPS_MAX = 2_000
"""So many steps go into the question whether a gang would fit when it is explained."""
EXPLAINED_CLASSES_MAX = 64
"""Classes of a gang that are explained, each in 1 ms at 5,000 nodes; the message says how many."""
SEARCH_STEPS_MIN = 600
"""A joint search that is gone on with in a turn has so many steps at least, so that it ends."""

INTERRUPTIONS_FEW = 4
"""A gang that so many turns in a row had to leave while its claims were looked at gets a turn
twice as long, and after as many again one twice as long as that: what is kept from turn to turn may
be too little."""
LONG_TURN_STEPS_MAX = 200_000
"""Such a turn has no more steps: about 3 s, in which nothing else is planned. A thousand pods with
claims of their own are looked at in it on 50,000 nodes. A gang that needs more is left alone for
``ASIDE_S_MAX``, so that others have their turns."""

CHECK_STEPS_MAX = 2_000
"""Of the steps of a turn, so many at most are for asking which blocked gangs news could help."""
CLASSES_WATCHED_MAX = 10_000
"""Of so many classes of blocked pods the slots over all nodes are kept. Gangs of further classes
are looked at one after the other whenever something changes: nothing is lost, it takes longer."""
CLASS_MASKS_CELLS_MAX = 2**27
"""Bytes of the masks that are kept for it, one for each node selector, by node: all that 10,000
classes could need on 13,000 nodes. Classes whose mask has no place are further ones, too."""
PRIORITIES_WATCHED_MAX = 16
"""Of so many priorities it is kept what their pods could have by preemption; likewise for what is
reserved or promised at them. What further ones could have is estimated, never too low."""
EXPLAINED_PER_TURN_MAX = 200
"""So many blocked gangs are given out in one decision to be explained again: nodes are others."""
EXPLAINED_AGAIN_S = 0.1
"""So long after it the next of them follow."""

# Devices (``room.devices``). What is above the limits per pod is not looked at: the pod waits, with
# a reason that names the field.

DEVICE_CLAIMS_PER_POD_MAX = 32
"""Entries of a pod's ``spec.resourceClaims``. The API has no limit."""
DEVICE_CHOICES_PER_POD_MAX = 256
"""Requests of all claims of a pod together, each alternative counted."""
DEVICE_SELECTORS_PER_POD_MAX = 256
"""CEL selectors of all requests of a pod's claims together, with those of their classes."""
DEVICES_PER_CLAIM_MAX = 32
"""The API's own limit (AllocationResultsMaxSize): a claim gets no more devices."""
DEVICE_LOOKS_MAX = 20_000
"""Devices looked at in one search for devices, about 10 ms in all, without a pause; kube-scheduler
gives up after ten seconds."""
DEVICE_PODS_PER_NODE_MAX = 256
"""Pods that are tried on one kind of node: more than any node takes."""
DEVICE_ASKS_MAX = 16_384
"""Most device needs that are kept. Each request, selector and configuration counts as one more, as
it may have 10 KiB. The ones used longest ago go."""
DEVICE_OUTCOMES_ASKS_MAX = 4_096
"""Device needs whose outcomes are kept, counted in the same way."""
DEVICE_OUTCOMES_MAX = 500_000
"""Outcomes that are kept, of all device needs together, by kind of node: about 50 MB."""
DEVICE_KINDS_SPARE_MIN = 10_000
"""Kinds of nodes that are kept at least; at most two more for each node. Then all are forgotten."""
DEVICE_STALE_POOLS_MAX = 10_000
"""Pools that changed and are remembered one by one until somebody asks for devices."""
DEVICE_REFUSALS_MAX = 127
"""Reasons why nodes do not get devices that are told apart for one pod: each is an int8. The last
stands for all further ones."""

# CEL selectors of devices.

CEL_TEXT_MAX = 1_000
"""Characters of an expression. Without macros, they bound what it costs: at most about 4 ms."""
CEL_DEPTH_MAX = 50
"""Brackets within brackets of an expression."""
CEL_NAMES_MAX = 1_000
"""Names of attributes of devices of which an expression remembers whether it looks at them."""
CEL_PROGRAMS_TEXT_MAX = 2**18
"""Characters of all expressions whose programs are kept, and 100 more for each."""
CEL_ANSWERS_MAX = 200
"""Answers that are kept with a program."""

COUNT_ENTRY_CELLS = 8
"""So many cells of an array are as large as one entry of a dictionary: counts by node are kept as
an array once more than one in so many nodes has one (``cluster.labels.row_counts``)."""
NEIGHBOUR_CELLS_MAX = 4_000_000
"""Cells of arrays that are kept of counts by node that are no arrays themselves, those asked for
last: 32 MB, 800 arrays at 5,000 nodes."""

RESERVED_NODES_NAMED_MAX = 5
"""Nodes that a message names of those on which capacity is reserved."""

# The invariants (``check``).

OVERCOMMIT_TOLERATED_S = 15.0
"""Another scheduler may take room at the moment of our bind; the kubelet then refuses a pod."""
UNDONE_TOLERATED_S = 120.0
"""Evicted pods have a grace period."""
LATE_TOLERATED_S = 15.0
"""The last outcome of an attempt may arrive shortly after its deadline."""

# The journal in the Lease, and the new beginning after a defect.

OPEN_BYTES_MAX = 100_000
"""Bytes of the names of open gangs. Annotations of one object may take 256 KiB together."""
SINCE_MAX = 32
"""Leaders without a journal that are named; after more of them nothing is known."""
LATE_S = 60.0
"""So long after a leader's end its binds may still arrive: no request lasts longer."""
REBUILDING_PASSES_MAX = 3
"""An object that meets a defect may leave damage behind: it is set aside, and all begins anew, so
many times."""

# What is told, and how often (``telling``).

SAYINGS_PER_S = 100
"""Conditions and Events of all gangs together, in the long run."""
SAYINGS_AT_ONCE_MAX = 2000
"""So many may be said at once after a quiet time: a gang of 1,000 hears it all in one go."""
QUIET_S = 0.2
"""A gang is looked at once it has not changed for so long."""
PATIENCE_S = 1.0
"""And after so long at most, though it goes on changing."""
PODS_PER_S = 200
"""A large gang that keeps changing is looked at less often: each of its pods may have to hear."""
AGAIN_S = 30.0
"""So long after it was said, a reason is said again with other counts."""
PODS_RENEWED_PER_S = 10
"""Pods of gangs that are told anew how the nodes stand, while pods on these come and go."""
AFTER_LOSS_S = 10.0
"""So long after it was lost on its way, it is said again."""
CHANGES_AT_ONCE_MAX = 4
"""So many changes of reason are said at once in ``AGAIN_S``: a reason that flaps is no news."""
ANSWER_S = 30.0
"""So long another scheduler may say nothing of a gang of its own before that is said."""
STILL_SO_S = 1200.0
"""So long after it, the same is said again: an API server forgets an Event an hour after it."""

# What one message lists (``words``, ``rules.faults``).

GATES_NAMED_MAX = 5
"""Scheduling gates; a pod may have as many as fit into an object."""
TASKS_NAMED_MAX = 5
"""Tasks that lack members."""
OWNERS_NAMED_MAX = 3
"""Owners of members, where a gang lacks some."""
NAME_CHARS_MAX = 60
"""Characters of a name of a gate or a task."""
TERM_CHARS_MAX = 60
"""Characters of an expression that can never be met."""
LISTED_MAX = 3
"""Those who hold the room that a gang lacks, nodes to uncordon; the others are counted. Likewise
nodes that are closed to a pod."""
CLOSED_KINDS_MAX = 6
"""Reasons for which nodes are closed to a pod, by the labels of their life-cycle."""
HOLDERS_PODS_MAX = 5_000
"""Pods looked at for that, on the fullest nodes: 5 ms, once for all who lack the same."""

# How many are looked at one by one, how many at once, and how many that are stale are kept.

SUM_PLACES_MAX = 32
"""Sums of room that gangs with minResources wait for; more gangs wait for that of all nodes."""
ANSWERS_UNUSED_FEW = 64
"""So many classes may be given back before answers that no class needs are looked for."""
ROOM_ROWS_FEW = 4
"""Of so few nodes that have changed, sums by domain follow; of more they are added up anew."""
SINGLE_ROWS_FEW = 10
"""So few nodes are judged and scored one by one; more as arrays, which costs more for one."""
WOKEN_FEW = 8
"""So few woken gangs are looked at one by one; of more, by the totals of their buckets."""
SLOT_CELLS_AT_ONCE = 2**20
SLOT_ROWS_AT_ONCE_MIN = 64
"""Slots are counted for so many cells (demands times rows) at once, and for so many rows at
least: the arrays between stay in the cache."""
MASKS_UNUSED_FEW = 64
"""Masks of classes that are kept unused, or as many as are in use."""
STALE_FEW = 64
"""So many entries of a heap or a circle may be stale, beyond as many as are alive; then it is made
anew (``cluster.alarms``, ``queue.queue``)."""
PREEMPTABLE_ALIKE_FEW = 8
"""Of so few rows that hold the same, amounts are added up with those of others, of more apart
(``cluster.priorities.preemptable``)."""


class Policy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the core may be told by configuration. Times are in seconds.

    ``scheduler_names`` are the values of ``spec.schedulerName`` that quorate owns. ``packing`` is
    the node score: ``most-allocated`` fills nodes, ``least-allocated`` spreads.
    """

    scheduler_names: tuple[str, ...] = DEFAULT_SCHEDULER_NAMES
    packing: Packing = "most-allocated"
    profiles: tuple[tuple[str, Profile], ...] = ()
    """How pods are placed, by scheduler name; of names that are not here, as gangs are packed."""
    attempt_timeout_s: float = 60.0
    attempt_timeout_s_max: float = 900.0
    recovery_s: float = 2.0
    """What a dead leader left half done is finished within this time, or undone."""
    avoid_s: float = 300.0
    """A node whose kubelet refused a pod gets no other pod of that gang for so long."""
    hold_s: float = 300.0
    """How long room is reserved for the replacement of a started gang's lost member; 0: never."""
    hold_s_max: float = 1800.0
    """The most that a gang may ask for."""
    held_slots_per_gang_max: int = 256
    """Most reservations of one gang: a rack of 18 nodes with 8 pods each, and some more."""
    held_slots_per_namespace_max: int = 512
    """Most reservations of all gangs of a namespace: no quota counts them."""
    backoff_s: float = 1.0
    backoff_s_max: float = 60.0
    binds_per_plan_max: int = 100_000
    singles_per_plan_max: int = 64
    """So many pods of no gang are placed in one plan: their binds are sent, over as many
    connections, while the next are decided on."""
    preemptions_per_plan_max: int = 20
    """So many pods are promised room in one decision at most; the next follows at once."""
    search_steps_max: int = 20_000
    """Bound of the search for a joint placement of a gang with several pod classes, in steps of
    ``SEARCH_US_PER_STEP``. So many take about 0.3 s."""
    life_cycle: LifeCycleLabels = LifeCycleLabels()
    """Labels of nodes that say why a gang waits; nothing is placed by them."""

    def timeout_s(self, asked_s: float | None) -> float:
        """Return the bound of one attempt: absent or 0 means the default, and at most the max."""
        wanted_s = asked_s if asked_s and asked_s > 0 else self.attempt_timeout_s
        return min(wanted_s, self.attempt_timeout_s_max)
