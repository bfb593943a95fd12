"""The known state, updated by change: pods, gangs, nodes and all other objects that rules read."""
