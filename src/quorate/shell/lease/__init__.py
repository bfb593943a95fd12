"""Who leads: the Lease, its thread, and the journal that one leader leaves to the next."""
