"""Mistakes and bad input: each is answered with its reason, and everything else goes on."""
