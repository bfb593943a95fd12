"""Gangs and their members, counted by change, and what is held for lost members."""
