"""Devices, and the claims that have them."""
