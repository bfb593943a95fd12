"""Developer tools: they run from a checkout and are not part of the installed package."""
