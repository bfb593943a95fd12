"""One turn of the scheduler: which gangs to try, their placement, and the effects' application."""
