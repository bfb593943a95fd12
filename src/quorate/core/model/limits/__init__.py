"""Bounds of the guard, the journal, the queue, wake-ups, preemption and reports.

Every other bound of the core is in ``policy``.
Nobody configures them. Read them as ``limits.NAME``, so that a test may set them.
"""

from __future__ import annotations

# The guard and the invariants (``check``).

ADMITTED_S = 3.0
"""How long an allowed binding counts before the watch shows it."""
ADMITTED_MAX = 10_000
"""So many such bindings are remembered; of more the oldest goes."""
GANGS_NAMED_MAX = 3
"""Gangs that a denial names of those that room is promised to."""
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
AFTER_LOSS_S = 10.0
"""So long after it was lost on its way, it is said again."""
CHANGES_AT_ONCE_MAX = 4
"""So many changes of reason are said at once in ``AGAIN_S``: a reason that flaps is no news."""
SERIES_S_MAX = 3600.0
"""An API server keeps an Event for an hour after it was written last."""

# What one message lists (``words``, ``rules.faults``).

GATES_NAMED_MAX = 5
"""Scheduling gates; a pod may have as many as fit into an object."""
TASKS_NAMED_MAX = 5
"""Tasks that lack members."""
NAME_CHARS_MAX = 60
"""Characters of a name of a gate or a task."""
TERM_CHARS_MAX = 60
"""Characters of an expression that can never be met."""

# What a step is (``core.model.steps``), measured: so much of each work takes as long as one.

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

# How many are looked at one by one, how many at once, and how many that are stale are kept.

WOKEN_FEW = 8
"""So few woken gangs are looked at one by one; of more, by the totals of their buckets."""
SLOT_CELLS_AT_ONCE = 2**20
SLOT_ROWS_AT_ONCE_MIN = 64
"""Slots are counted for so many cells (demands times rows) at once, and for so many rows at
least: the arrays between stay in the cache."""
MASKS_UNUSED_FEW = 64
"""Masks of classes that are kept unused, or as many as are in use."""
MASK_ROWS_AS_WHOLE = 8
MASK_ROWS_PER_ROW = 700
"""What a whole mask takes, in rows: so many, and one for each of so many rows of it."""
STALE_FEW = 64
"""So many entries of a heap or a circle may be stale, beyond as many as are alive; then it is made
anew (``cluster.deadlines``, ``queue.ready``, ``queue.rounds``)."""
PREEMPTABLE_ALIKE_FEW = 8
"""Of so few rows that hold the same, amounts are added up with those of others, of more apart
(``cluster.priorities.preemptable``)."""
