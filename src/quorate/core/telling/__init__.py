"""Decides what to report of waiting gangs, and when: in pod conditions, statuses and Events."""
