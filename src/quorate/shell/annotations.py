"""What we leave on pods, by our Bindings, and on our Lease: a successor reads what was under way.

Those on pods are written by ``shell.commit`` and read by ``shell.watch``, which do not know one
another; those of the Lease are written by ``shell.lease.elector``. ``shell.lease.handover`` reads
the journal, and the command line the scheduler names and what ``shell.report`` writes on Events.
"""

ATTEMPT = "quorate.dev/attempt"
ATTEMPT_SIZE = "quorate.dev/attempt-size"
GANG = "quorate.dev/gang"
"""The gang that a Binding was of, as the journal names it: a label may name another one later."""
EXPLAINS, EXPLANATION = "quorate.dev/explains", "quorate.dev/explanation"
"""On Events about gangs and pods of no gang: a label (``gang`` or ``pod``) by which they are found,
and an ``Explanation`` as JSON, which ``quorate why`` prints."""
STARTED = "quorate.dev/started"
"""On the members that were bound when all others of a quorum were, and on every later one."""
JOURNAL = "quorate.dev/journal"
"""On the Lease: which attempts are open (``core.model.journal``), as JSON."""
SCHEDULER_NAMES = "quorate.dev/scheduler-names"
"""On the Lease: the values of ``spec.schedulerName`` that its holder owns, joined by commas."""
