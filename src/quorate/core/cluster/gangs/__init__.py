"""Gangs and their members, counted by change, and what is reserved for lost members."""
