"""Tests end to end: ``quorate run`` as it is shipped, on a whole cluster."""
