"""What each kind of work costs: so much of it takes as long as one step. Measured, not chosen.

Whoever works counts steps by these numbers, so that a turn ends after about the same time whatever
it works at. Costs of CEL selectors are in tenths of a microsecond. Read them as ``costs.NAME``, so
that a test may set them.
"""

from __future__ import annotations

SEARCH_US_PER_STEP = 16
"""Microseconds of work of the joint search, as it estimates them, that are one step."""
DEVICE_LOOKS_PER_STEP = 8
"""A search counts one step for so many devices looked at."""
DEVICES_LISTED_PER_LOOK = 16
"""Devices that are listed for a choice in the time of one look."""
CEL_COST_PER_STEP = 150
"""So much cost is one step."""
CHECKED_NODES_PER_STEP = 1_500
"""Nodes whose slots for a class are counted (``place.gang``)."""
PACKED_NODES_PER_STEP = 115
"""Nodes over which pods of one class are placed at once (``place.packing``)."""
SPREAD_NODES_PER_STEP = 20
"""Nodes over which pods that constrain one another are placed, besides the next."""
SPREAD_LOOKUPS_PER_STEP = 16
"""Counters of one domain that are looked up for it."""
NOMINATED_PODS_PER_STEP = 6
"""Nominated pods whose room is taken first for a gang (``place.one_pod.nominated``)."""
NOMINATED_CLASSES_PER_STEP = 2
"""Classes of these."""
NOMINATED_ROWS_PER_STEP = 10
"""Nodes with nominated pods that are passed over."""
TRIAL_NODES_PER_STEP = 10_000
"""Nodes over which counts are copied, or a rule judges, in a trial of one node."""
VOLUME_PAIRS_PER_STEP = 1_500
"""Pairs of volume and node that are looked at for a claim (``room.volume_candidates``)."""
VOLUME_GROUPS_PER_STEP = 40
"""Groups of volumes that are looked at for a claim on one node."""
VOLUME_PAIRS_PER_GROUP = 10
"""Pairs of volume and node that are sorted in the time of one look at a group."""
CLAIM_NODES_PER_STEP = 300
"""Nodes for which a volume is chosen for one claim (``room.claim_choices``)."""
CLAIM_PODS_PER_STEP = 4
"""Pods that get volumes for one claim each."""
REACH_WORK_PER_STEP = 15
"""Microseconds of work at volumes' node affinity."""
REACH_NODES_PER_WORK = 200
"""Nodes that are asked about one expression of it in a microsecond."""
PORTS_PER_STEP = 16
"""Host ports that are taken (``room.port_room``)."""
PORT_PAIRS_PER_STEP = 100
"""Host ports that are looked up."""
PORTS_COPIED_PER_STEP = 1_000
"""Host ports that are copied with a room."""
DEVICE_SEARCH_STEPS = 3
"""Steps of a search for devices that succeeds at once."""
DEVICES_TAKEN_PER_STEP = 32
"""Devices of a kind of node that are listed anew after it has given some away."""
DEVICES_SORTED_PER_STEP = 16
"""Devices of a kind of node that are sorted by what device needs may have of them."""
QUEUE_LOOKS_PER_STEP = 8
"""Gangs that the queue passes over (``queue.line``)."""
SLOT_CELLS_PER_STEP = 1_500
"""Comparisons of a demand with a row (``queue.totals.slots``)."""
MASK_ROWS_PER_STEP = 4
"""Rows of masks that are brought up to date. A whole mask takes as long as ``MASK_ROWS_AS_WHOLE``
rows, and one more for each ``MASK_ROWS_PER_ROW`` rows that it has."""
WOKEN_ROWS_PER_STEP = 1_000
"""Rows that rules look at for one class of a blocked gang (``turn.waking``)."""
WOKEN_PODS_PER_STEP = 8
"""Waiting pods of a gang that news may concern."""
PORT_LOOKS_PER_STEP = 200
"""Host ports that NodePorts compares."""
VICTIM_NODES_PER_STEP = 500
"""Nodes that are looked at for victims (``turn.cycle``)."""
KNOWN_NODES_PER_STEP = 100
"""Nodes of which preemption knows already whether it helps there (``preempt.preemption``)."""
VICTIM_PODS_PER_STEP = 3
"""Pods that may be victims on one node."""
EXPLAINED_NODES_PER_STEP = 1_500
"""Nodes that are asked whether they have slots when a gang is explained (``words.diagnosis``)."""
MASK_ROWS_AS_WHOLE = 8
MASK_ROWS_PER_ROW = 700
"""What a whole mask takes, in rows: so many, and one for each of so many rows of it."""

# What parts of CEL selectors cost (``room.devices.cel.text``), with the library.

CEL_TOKEN_COST = 10
"""A name, number, text or sign."""
CEL_CALL_COST = 30
"""A call of a function, and passing a device's attributes at all."""
CEL_ATTRIBUTE_COST = 20
"""Passing one attribute or capacity to the library."""
CEL_WHOLE_DEVICE_LOOKUPS = 2
"""Passing a whole device counts as this many look-ups."""
CEL_OWN_CALL_COST = 300
"""A call of a function of ours (``cel.programs``): it parses quantities and versions each time."""
