"""The rule about devices that pods claim."""
