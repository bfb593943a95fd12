"""What is, by change: pods, gangs, nodes and all that rules look at. The one mutable state."""
