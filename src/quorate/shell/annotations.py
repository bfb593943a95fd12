"""What our Bindings leave on pods, so that a successor can read what was under way.

Written by ``shell.commit``, read by ``shell.watch``, which do not know one another.
"""

ATTEMPT = "quorate.dev/attempt"
ATTEMPT_SIZE = "quorate.dev/attempt-size"
HELD_FOR, HELD_UNTIL = "quorate.dev/held-for", "quorate.dev/held-until"
"""On Events about held slots: the gang as ``dialect/name``, and the end of the last hold."""
STARTED = "quorate.dev/started"
"""On the members that were bound when all others of a quorum were, and on every later one."""
