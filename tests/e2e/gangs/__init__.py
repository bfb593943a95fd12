"""What a gang means: who counts, what starts when, in each dialect, and what is undone."""
