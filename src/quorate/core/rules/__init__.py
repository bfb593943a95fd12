"""The rules that nodes must pass, and scores: one file each, one row of the table for each."""
