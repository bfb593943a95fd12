"""Server-side apply: which fields a manager owns, what it changes, and where two disagree."""
